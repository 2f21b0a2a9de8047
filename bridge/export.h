/*
 * Export of Arrow arrays and schemas. Go describes a tree as flat tables without pointers; C makes one allocation that
 * holds every structure of the tree, and releases it without Go.
 *
 * Each structure of the tree is released on its own and gives its share back, so that a consumer may move a child out
 * and keep it after the parent is gone, as the specification allows.
 */
#ifndef ICEBERGEXEC_BRIDGE_EXPORT_H
#define ICEBERGEXEC_BRIDGE_EXPORT_H

#include "icebergexec.h"
#include "memory.h"

#pragma GCC visibility push(hidden) /* not part of the library's interface */

/* One array of the tree. Node 0 is the root; indices point into the other tables. */
struct iex_flat_array {
	int64_t length, null_count, offset;
	int64_t first_buffer, buffers;
	int64_t first_child, children; /* in the table of child indices */
	int64_t dictionary;            /* node index, or 0 for none: the root is nobody's dictionary */
};

/* One buffer: its address, and the start of the allocation that it is a part of. */
struct iex_flat_buffer {
	uintptr_t address;
	uintptr_t allocation;
	int64_t kind;
};

/* Kinds of buffers that have no allocation to hold. */
#define IEX_BUFFER_BLOCK 0  /* has one */
#define IEX_BUFFER_ABSENT 1 /* a validity bitmap without nulls: NULL */
#define IEX_BUFFER_EMPTY 2  /* nothing in it: points to zeros that are never freed */

/*
 * iex_export_array writes the tree to out and returns 0. When a buffer is not 64-byte aligned C memory of ours it
 * returns 1 + the buffer's index; when out of memory -1. out is written only on success.
 */
int64_t iex_export_array(const struct iex_flat_array *arrays, int64_t n_arrays, const struct iex_flat_buffer *buffers,
                         int64_t n_buffers, const int64_t *children, int64_t n_children, struct ArrowArray *out);

/* One field of a schema's tree. Texts are offsets into one text arena; -1 is NULL. */
struct iex_flat_field {
	int64_t format, name, metadata;
	int64_t flags;
	int64_t first_child, children;
	int64_t dictionary;
};

/* iex_export_schema writes the tree to out and returns 0, or -1 when out of memory. */
int64_t iex_export_schema(const struct iex_flat_field *fields, int64_t n_fields, const int64_t *children,
                          int64_t n_children, const char *text, int64_t text_size, struct ArrowSchema *out);

#pragma GCC visibility pop

#endif
