/*
 * Memory for large blocks, straight from the system, with a small cache of what was given back: a scan frees each batch
 * about as fast as it makes the next, and getting the same pages anew would cost a fault for each of them. The general
 * heap would keep such memory too, but as much of it as it likes and for as long as it likes.
 */
#ifndef ICEBERGEXEC_BRIDGE_PAGES_H
#define ICEBERGEXEC_BRIDGE_PAGES_H

#include <stddef.h>

#pragma GCC visibility push(hidden) /* not part of the library's interface */

/* From this size on, memory comes from here: 16 pages, below which the heap is as good. */
#define IEX_PAGES_FROM ((size_t)64 << 10)

/*
 * iex_pages_take returns at least size bytes, page-aligned, and their number in capacity; NULL when out of memory. Fresh
 * memory is zero; *used says that it is not fresh.
 */
void *iex_pages_take(size_t size, size_t *capacity, int *used);
/* iex_pages_give gives memory back. Any thread, also in a forked child. */
void iex_pages_give(void *start, size_t capacity);
/* iex_pages_keep sets how much the cache may hold; at first nothing. */
void iex_pages_keep(size_t most);
/* iex_pages_flush returns the cache to the system. */
void iex_pages_flush(void);

#pragma GCC visibility pop

#endif
