/*
 * Calls of the callbacks that a host supplies for storage and formats. The host's files cross to Go as integers, and its
 * contexts not at all: they may be small numbers, which Go must not take for pointers.
 */
#ifndef ICEBERGEXEC_BRIDGE_HOST_H
#define ICEBERGEXEC_BRIDGE_HOST_H

#include "icebergexec.h"

#pragma GCC visibility push(hidden) /* not part of the library's interface */

/* Each clears the error structure and the out values, then calls the callback. */
iex_status iex_host_open(const struct iex_storage *s, const char *location, uintptr_t *file, struct iex_error *error);
iex_status iex_host_size(const struct iex_storage *s, uintptr_t file, int64_t *out, struct iex_error *error);
iex_status iex_host_read_at(const struct iex_storage *s, uintptr_t file, int64_t offset, void *buffer, size_t size,
                            size_t *read, struct iex_error *error);
void iex_host_close(const struct iex_storage *s, uintptr_t file);
iex_status iex_host_create(const struct iex_storage *s, const char *location, uintptr_t *file, struct iex_error *error);
iex_status iex_host_write(const struct iex_storage *s, uintptr_t file, const void *data, size_t size, struct iex_error *error);
iex_status iex_host_finish(const struct iex_storage *s, uintptr_t file, struct iex_error *error);
void iex_host_abort(const struct iex_storage *s, uintptr_t file);
iex_status iex_host_remove(const struct iex_storage *s, const char *location, struct iex_error *error);
iex_status iex_host_read(const struct iex_reader *r, const char *location, const char *format, const int32_t *field_ids,
                         size_t n, struct ArrowArrayStream *out, struct iex_error *error);
void iex_host_release_storage(const struct iex_storage *s);
void iex_host_release_reader(const struct iex_reader *r);
void iex_host_release_error(struct iex_error *error);

#pragma GCC visibility pop

#endif
