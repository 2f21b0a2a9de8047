/*
 * Prints the rows of an Iceberg table as text, one line for each row.
 *
 *     cc scan.c -o scan $(pkg-config --cflags --libs icebergexec)
 *     ./scan /warehouse/orders/metadata/00007.metadata.json [column ...]
 *
 * IEX_OPTIONS in the environment may hold the engine options, such as {"memory_limit": "64MiB"}.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icebergexec.h"

/* is_null looks into an array's validity bitmap, which is absent when nothing is null. */
static int is_null(const struct ArrowArray *array, int64_t row) {
	const uint8_t *valid = array->n_buffers ? array->buffers[0] : NULL;
	if (array->null_count == 0 || !valid) return 0;
	row += array->offset;
	return !(valid[row / 8] >> (row % 8) & 1);
}

/* print_value knows the types that this example needs; the rest prints its format. */
static void print_value(const struct ArrowSchema *type, const struct ArrowArray *array, int64_t row) {
	if (is_null(array, row)) {
		printf("null");
		return;
	}
	int64_t at = row + array->offset;
	const void *values = array->n_buffers > 1 ? array->buffers[1] : NULL;
	switch (type->format[0]) {
	case 'b': printf("%s", ((const uint8_t *)values)[at / 8] >> (at % 8) & 1 ? "true" : "false"); return;
	case 'i': printf("%" PRId32, ((const int32_t *)values)[at]); return;
	case 'l': printf("%" PRId64, ((const int64_t *)values)[at]); return;
	case 'f': printf("%g", ((const float *)values)[at]); return;
	case 'g': printf("%g", ((const double *)values)[at]); return;
	case 'u': {
		const int32_t *offsets = values;
		printf("%.*s", (int)(offsets[at + 1] - offsets[at]), (const char *)array->buffers[2] + offsets[at]);
		return;
	}
	}
	printf("<%s>", type->format);
}

static int fail(const char *what, struct iex_error *error) {
	fprintf(stderr, "%s: %s\n", what, error->message ? error->message : "no message");
	if (error->release) error->release(error);
	return 1;
}

/* make_request writes the JSON of a scan; the arguments must not need escapes. */
static char *make_request(int argc, char **argv) {
	size_t size = 100;
	for (int i = 1; i < argc; i++) size += strlen(argv[i]) + 4;
	char *request = malloc(size), *end = request;
	if (!request) exit(1);
	end += sprintf(end, "{\"metadata_location\": \"%s\"", argv[1]);
	for (int i = 2; i < argc; i++) end += sprintf(end, "%s\"%s\"", i == 2 ? ", \"columns\": [" : ", ", argv[i]);
	sprintf(end, "%s}", argc > 2 ? "]" : "");
	return request;
}

int main(int argc, char **argv) {
	if (argc < 2) {
		fprintf(stderr, "usage: %s METADATA_LOCATION [COLUMN ...]\n", argv[0]);
		return 2;
	}
	struct iex_error error = IEX_ERROR_INIT;
	iex_engine *engine = NULL;
	iex_stream *rows = NULL;
	struct ArrowSchema schema;

	const char *options = getenv("IEX_OPTIONS");
	if (iex_engine_open(options, options ? strlen(options) : 0, &engine, &error) != IEX_OK) return fail("open", &error);

	char *request = make_request(argc, argv);
	iex_status status = iex_scan(engine, request, strlen(request), &rows, &error);
	free(request);
	if (status != IEX_OK || iex_stream_schema(rows, &schema, &error) != IEX_OK) {
		int code = fail("scan", &error);
		iex_stream_release(&rows, NULL);
		iex_engine_close(&engine, NULL);
		return code;
	}

	for (;;) {
		struct ArrowArray batch;
		status = iex_stream_next(rows, 100, &batch, &error);
		if (status == IEX_PENDING) continue; /* here a program looks after its user */
		if (status != IEX_OK) break;
		for (int64_t row = 0; row < batch.length; row++)
			for (int64_t i = 0; i < batch.n_children; i++) {
				print_value(schema.children[i], batch.children[i], row);
				putchar(i + 1 < batch.n_children ? '\t' : '\n');
			}
		batch.release(&batch);
	}
	int code = status == IEX_END ? 0 : fail("next", &error);
	schema.release(&schema);
	iex_stream_release(&rows, NULL);
	if (iex_engine_close(&engine, &error) != IEX_OK) code = fail("close", &error);
	return code;
}
