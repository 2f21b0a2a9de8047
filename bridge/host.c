#include "host.h"

#include <string.h>

static void clear(struct iex_error *error) {
	memset(error, 0, sizeof *error);
	error->struct_size = sizeof *error;
}

iex_status iex_host_open(const struct iex_storage *s, const char *location, void **file, struct iex_error *error) {
	clear(error);
	*file = NULL;
	return s->open(s->context, location, file, error);
}

iex_status iex_host_size(const struct iex_storage *s, void *file, int64_t *out, struct iex_error *error) {
	clear(error);
	*out = 0;
	return s->size(s->context, file, out, error);
}

iex_status iex_host_read_at(const struct iex_storage *s, void *file, int64_t offset, void *buffer, size_t size,
                            size_t *read, struct iex_error *error) {
	clear(error);
	*read = 0;
	return s->read_at(s->context, file, offset, buffer, size, read, error);
}

void iex_host_close(const struct iex_storage *s, void *file) { s->close(s->context, file); }

iex_status iex_host_create(const struct iex_storage *s, const char *location, void **file, struct iex_error *error) {
	clear(error);
	*file = NULL;
	return s->create(s->context, location, file, error);
}

iex_status iex_host_write(const struct iex_storage *s, void *file, const void *data, size_t size,
                          struct iex_error *error) {
	clear(error);
	return s->write(s->context, file, data, size, error);
}

iex_status iex_host_finish(const struct iex_storage *s, void *file, struct iex_error *error) {
	clear(error);
	return s->finish(s->context, file, error);
}

void iex_host_abort(const struct iex_storage *s, void *file) { s->abort(s->context, file); }

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

void iex_host_release(void (*release)(void *), void *context) {
	if (release) release(context);
}

void iex_host_release_error(struct iex_error *error) {
	if (error->release) error->release(error);
}
