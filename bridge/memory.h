/*
 * Batch memory: C blocks with reference counts, so that a consumer's release never enters Go.
 *
 *     account (one for each engine)            registry (one for the process)
 *       live, exported: bytes      <---- block ---->  "is this address the start of a block?"
 *                                   refs: 1 for the Go buffer that owns it, 1 for each export
 *
 * A block is [unused | header | data]: data is 64-byte aligned and the header lies right before it.
 */
#ifndef ICEBERGEXEC_BRIDGE_MEMORY_H
#define ICEBERGEXEC_BRIDGE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden) /* not part of the library's interface */

/* Alignment of every buffer handed out: what Arrow recommends, and enough for decimals and SIMD. */
#define IEX_ALIGNMENT 64

struct iex_account;
struct iex_block;

/*
 * iex_account_new makes an account; NULL when out of memory. Accounts are never freed: they are a few bytes for each
 * engine, and the last block of an engine may be released at any time, from any thread.
 */
struct iex_account *iex_account_new(void);
/* iex_account_live is the bytes of all blocks; iex_account_exported of those that a consumer holds, each once. */
int64_t iex_account_live(struct iex_account *account);
int64_t iex_account_exported(struct iex_account *account);

/* iex_block_new makes a block of size zeroed bytes with one reference and returns its data; NULL when out of memory. */
void *iex_block_new(struct iex_account *account, size_t size);
/* iex_block_free gives back the reference of the owner of data. */
void iex_block_free(void *data);
/* iex_block_capacity is the size that data's block was made with. */
size_t iex_block_capacity(void *data);

/*
 * iex_block_hold finds the block whose data starts at address, adds an export's reference and returns it; NULL when the
 * address is not the start of a block. The caller knows that whatever is at the address stays alive meanwhile.
 */
struct iex_block *iex_block_hold(uintptr_t address);
/* iex_block_release gives an export's reference back. Any thread, also in a forked child. */
void iex_block_release(struct iex_block *block);

/* iex_forked is 1 in a child of fork(): locks may then be held by threads that no longer exist. */
extern volatile int iex_forked;

#pragma GCC visibility pop

#endif
