/* What the Go side of capi and its C shim share. */
#ifndef ICEBERGEXEC_CAPI_SHIM_H
#define ICEBERGEXEC_CAPI_SHIM_H

#include "icebergexec.h"

#pragma GCC visibility push(hidden) /* not part of the library's interface */

/*
 * iex_cell_new makes a handle: an address that is given out once in the life of the process, so that a handle which
 * outlived its object can never be taken for another. A cell is one byte that is never freed; nothing is stored there.
 * 0 when out of memory.
 */
uintptr_t iex_cell_new(void);
/* iex_cells is how many were made. */
int64_t iex_cells(void);

/* iex_error_set fills an error structure that the shim has cleared; error may be NULL. detail may be NULL. */
void iex_error_set(struct iex_error *error, int32_t code, const char *message, const char *detail);

/* The private data of an ArrowArrayStream of ours. */
struct iex_exported {
	uintptr_t cell;   /* the stream's handle */
	char *last_error; /* what get_last_error returns, or NULL */
	struct iex_exported *next;
};

/* iex_stream_wrap makes out a stream over the handle; 0, or -1 when out of memory. */
int iex_stream_wrap(uintptr_t cell, struct ArrowArrayStream *out);
/* iex_exported_fail replaces the text of get_last_error. */
void iex_exported_fail(struct iex_exported *exported, const char *message);
/* iex_released_put notes that a consumer has released the stream. Any thread; never waits for the engine. */
void iex_released_put(struct iex_exported *exported);
/*
 * iex_released_wait waits until a consumer has released an ArrowArrayStream and returns what it left. Freed by
 * iex_exported_free.
 */
struct iex_exported *iex_released_wait(void);
void iex_exported_free(struct iex_exported *exported);

/* iex_input_release releases an input stream that nobody has taken over. */
void iex_input_release(struct ArrowArrayStream *input);

/* iex_trim_heap lets the C heap give free memory back to the system. */
void iex_trim_heap(void);

#pragma GCC visibility pop

#endif
