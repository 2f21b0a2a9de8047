#include "host.h"

#include <string.h>

static void clear(struct iex_error *error) {
	memset(error, 0, sizeof *error);
	error->struct_size = sizeof *error;
}

iex_status iex_host_open(const struct iex_storage *s, const char *location, uintptr_t *file, struct iex_error *error) {
	clear(error);
	*file = 0;
	return s->open(s->context, location, (void **)file, error);
}

iex_status iex_host_size(const struct iex_storage *s, uintptr_t file, int64_t *out, struct iex_error *error) {
	clear(error);
	*out = 0;
	return s->size(s->context, (void *)file, out, error);
}

iex_status iex_host_read_at(const struct iex_storage *s, uintptr_t file, int64_t offset, void *buffer, size_t size,
                            size_t *read, struct iex_error *error) {
	clear(error);
	*read = 0;
	return s->read_at(s->context, (void *)file, offset, buffer, size, read, error);
}

void iex_host_close(const struct iex_storage *s, uintptr_t file) { s->close(s->context, (void *)file); }

iex_status iex_host_create(const struct iex_storage *s, const char *location, uintptr_t *file, struct iex_error *error) {
	clear(error);
	*file = 0;
	return s->create(s->context, location, (void **)file, error);
}

iex_status iex_host_write(const struct iex_storage *s, uintptr_t file, const void *data, size_t size,
                          struct iex_error *error) {
	clear(error);
	return s->write(s->context, (void *)file, data, size, error);
}

iex_status iex_host_finish(const struct iex_storage *s, uintptr_t file, struct iex_error *error) {
	clear(error);
	return s->finish(s->context, (void *)file, error);
}

void iex_host_abort(const struct iex_storage *s, uintptr_t file) { s->abort(s->context, (void *)file); }

iex_status iex_host_remove(const struct iex_storage *s, const char *location, struct iex_error *error) {
	clear(error);
	return s->remove(s->context, location, error);
}

iex_status iex_host_read(const struct iex_reader *r, const char *location, const char *format, const int32_t *field_ids,
                         size_t n, struct ArrowArrayStream *out, struct iex_error *error) {
	clear(error);
	memset(out, 0, sizeof *out);
	return r->read(r->context, location, format, field_ids, n, out, error);
}

void iex_host_release_storage(const struct iex_storage *s) {
	if (s->release) s->release(s->context);
}

void iex_host_release_reader(const struct iex_reader *r) {
	if (r->release) r->release(r->context);
}

void iex_host_release_error(struct iex_error *error) {
	if (error->release) error->release(error);
}
