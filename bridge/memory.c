#include "memory.h"

#include "pages.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct iex_account {
	_Atomic int64_t live;
	_Atomic int64_t exported;
	struct iex_account *next;
};

/* The header of a block. It must fit into IEX_ALIGNMENT bytes. */
struct iex_block {
	void *raw; /* where its memory begins */
	size_t size;
	size_t pages; /* the capacity of memory from pages.h; 0: from the heap */
	_Atomic int64_t refs;
	_Atomic int64_t exports;
	struct iex_account *account;
	struct iex_block *next; /* neighbours in the registry's chain, guarded by its lock */
	struct iex_block **link;
};

_Static_assert(sizeof(struct iex_block) <= IEX_ALIGNMENT, "the header lies in the line before the data");

volatile int iex_forked = 0;

static void after_fork_in_child(void) { iex_forked = 1; }

__attribute__((constructor)) static void watch_fork(void) { pthread_atfork(NULL, NULL, after_fork_in_child); }

/*
 * The registry: chains by hash of the address, new blocks first, since a block is looked up soon after it was made or
 * not at all. Removal is O(1) at any length.
 */
#define CHAINS 16384
#define LOCKS 64

static struct iex_block *chains[CHAINS];
static pthread_mutex_t locks[LOCKS];

__attribute__((constructor)) static void make_locks(void) {
	for (int i = 0; i < LOCKS; i++) pthread_mutex_init(&locks[i], NULL);
}

static void *data_of(struct iex_block *block) { return (char *)block + IEX_ALIGNMENT; }

static struct iex_block *block_of(void *data) { return (struct iex_block *)((char *)data - IEX_ALIGNMENT); }

static size_t chain_of(uintptr_t address) {
	/* Fibonacci hashing: the low six bits of an address are zero and large blocks differ only in high bits. */
	return (size_t)((uint64_t)address * UINT64_C(0x9E3779B97F4A7C15) >> 50) % CHAINS;
}

static void enlist(struct iex_block *block) {
	size_t chain = chain_of((uintptr_t)data_of(block));
	pthread_mutex_t *lock = &locks[chain % LOCKS];
	pthread_mutex_lock(lock);
	block->next = chains[chain];
	block->link = &chains[chain];
	if (block->next) block->next->link = &block->next;
	chains[chain] = block;
	pthread_mutex_unlock(lock);
}

static void delist(struct iex_block *block) {
	if (iex_forked) return; /* nobody looks blocks up in a child, and the lock may be held for ever */
	pthread_mutex_t *lock = &locks[chain_of((uintptr_t)data_of(block)) % LOCKS];
	pthread_mutex_lock(lock);
	*block->link = block->next;
	if (block->next) block->next->link = block->link;
	pthread_mutex_unlock(lock);
}

/* All accounts, so that leak checkers see that they are kept on purpose. */
static struct iex_account *_Atomic accounts;

struct iex_account *iex_account_new(void) {
	struct iex_account *account = calloc(1, sizeof *account);
	if (!account) return NULL;
	account->next = atomic_load(&accounts);
	while (!atomic_compare_exchange_weak(&accounts, &account->next, account)) {
	}
	return account;
}

int64_t iex_account_live(struct iex_account *account) { return atomic_load(&account->live); }

int64_t iex_account_exported(struct iex_account *account) { return atomic_load(&account->exported); }

/* zeroed_memory returns raw, whose first multiple of IEX_ALIGNMENT has room for a header and size zeros. */
static char *zeroed_memory(size_t size, size_t *pages) {
	*pages = 0;
	if (size < IEX_PAGES_FROM) return calloc(1, size + 2 * IEX_ALIGNMENT); /* one line to align, one for the header */
	if (size > SIZE_MAX - IEX_ALIGNMENT) return NULL;
	int used;
	char *raw = iex_pages_take(size + IEX_ALIGNMENT, pages, &used);
	if (raw && used) memset(raw, 0, size + IEX_ALIGNMENT);
	return raw;
}

void *iex_block_new(struct iex_account *account, size_t size) {
	size_t pages;
	char *raw = zeroed_memory(size, &pages);
	if (!raw) return NULL;
	uintptr_t start = ((uintptr_t)raw + IEX_ALIGNMENT - 1) & ~(uintptr_t)(IEX_ALIGNMENT - 1);
	struct iex_block *block = (struct iex_block *)start;
	block->raw = raw;
	block->size = size;
	block->pages = pages;
	block->account = account;
	atomic_store(&block->refs, 1);
	atomic_fetch_add(&account->live, (int64_t)size);
	enlist(block);
	return data_of(block);
}

static void drop(struct iex_block *block) {
	if (atomic_fetch_sub(&block->refs, 1) != 1) return;
	delist(block);
	atomic_fetch_sub(&block->account->live, (int64_t)block->size);
	if (block->pages)
		iex_pages_give(block->raw, block->pages);
	else
		free(block->raw);
}

void iex_block_free(void *data) { drop(block_of(data)); }

size_t iex_block_capacity(void *data) { return block_of(data)->size; }

struct iex_block *iex_block_hold(uintptr_t address) {
	size_t chain = chain_of(address);
	pthread_mutex_t *lock = &locks[chain % LOCKS];
	pthread_mutex_lock(lock);
	struct iex_block *block = chains[chain];
	while (block && (uintptr_t)data_of(block) != address) block = block->next;
	if (block) atomic_fetch_add(&block->refs, 1);
	pthread_mutex_unlock(lock);
	if (block && atomic_fetch_add(&block->exports, 1) == 0)
		atomic_fetch_add(&block->account->exported, (int64_t)block->size);
	return block;
}

void iex_block_release(struct iex_block *block) {
	if (atomic_fetch_sub(&block->exports, 1) == 1)
		atomic_fetch_sub(&block->account->exported, (int64_t)block->size);
	drop(block);
}
