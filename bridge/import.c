#include "import.h"

#include <stdlib.h>
#include <string.h>

struct ArrowArrayStream *iex_import_stream(struct ArrowArrayStream *from) {
	if (!from->release) return NULL;
	struct ArrowArrayStream *stream = malloc(sizeof *stream);
	if (!stream) return NULL;
	*stream = *from;
	from->release = NULL;
	return stream;
}

int iex_import_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
	memset(out, 0, sizeof *out);
	return stream->get_schema(stream, out);
}

int iex_import_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
	memset(out, 0, sizeof *out);
	return stream->get_next(stream, out);
}

const char *iex_import_error(struct ArrowArrayStream *stream) {
	return stream->get_last_error ? stream->get_last_error(stream) : NULL;
}

void iex_import_end(struct ArrowArrayStream *stream) {
	if (stream->release) stream->release(stream);
	free(stream);
}

void iex_import_release_schema(struct ArrowSchema *schema) {
	if (schema->release) schema->release(schema);
}

struct ArrowArray *iex_import_keep(struct ArrowArray *from) {
	struct ArrowArray *array = malloc(sizeof *array);
	if (!array) return NULL;
	*array = *from;
	from->release = NULL;
	return array;
}

void iex_import_drop(struct ArrowArray *array) {
	iex_import_release_array(array);
	free(array);
}

void iex_import_release_array(struct ArrowArray *array) {
	if (array->release) array->release(array);
}
