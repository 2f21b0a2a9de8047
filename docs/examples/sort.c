/*
 * Sorts a stream of numbers that this program produces batch by batch, far more than the memory limit if need be, and
 * prints the smallest and the largest.
 *
 *     cc sort.c -o sort $(pkg-config --cflags --libs icebergexec)
 *     ./sort 5000000
 *
 * IEX_OPTIONS in the environment may hold the engine options, such as {"memory_limit": "64MiB"}.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icebergexec.h"

/* ---- A producer of Arrow batches: one column n of 64-bit integers in a random order ---- */

enum { batch_rows = 100000 };

struct producer {
	int64_t left;
	uint64_t state;
};

/* A batch is a struct array with one child; both are freed with it. */
struct batch {
	struct ArrowArray child;
	struct ArrowArray *children[1];
	const void *struct_buffers[1], *child_buffers[2];
	int64_t values[batch_rows];
};

static void release_child(struct ArrowArray *array) { array->release = NULL; }

static void release_batch(struct ArrowArray *array) {
	free(array->private_data);
	array->release = NULL;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
	struct producer *producer = stream->private_data;
	memset(out, 0, sizeof *out);
	if (producer->left == 0) return 0; /* the end: out stays released */
	struct batch *batch = calloc(1, sizeof *batch);
	if (!batch) return ENOMEM;
	int64_t rows = producer->left < batch_rows ? producer->left : batch_rows;
	producer->left -= rows;
	for (int64_t i = 0; i < rows; i++) {
		producer->state = producer->state * 6364136223846793005u + 1442695040888963407u;
		batch->values[i] = (int64_t)(producer->state >> 24);
	}
	batch->child_buffers[1] = batch->values;
	batch->child = (struct ArrowArray){.length = rows, .n_buffers = 2, .buffers = batch->child_buffers, .release = release_child};
	batch->children[0] = &batch->child;
	*out = (struct ArrowArray){.length = rows,
	                           .n_buffers = 1,
	                           .buffers = batch->struct_buffers,
	                           .n_children = 1,
	                           .children = batch->children,
	                           .release = release_batch,
	                           .private_data = batch};
	return 0;
}

static void release_schema(struct ArrowSchema *schema) { schema->release = NULL; }

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
	static struct ArrowSchema child, *children[1] = {&child};
	(void)stream;
	child = (struct ArrowSchema){.format = "l", .name = "n", .release = release_schema};
	*out = (struct ArrowSchema){.format = "+s", .name = "", .n_children = 1, .children = children, .release = release_schema};
	return 0;
}

static const char *get_last_error(struct ArrowArrayStream *stream) {
	(void)stream;
	return NULL;
}

static void release_stream(struct ArrowArrayStream *stream) { stream->release = NULL; }

/* ---- The sort ---- */

static int fail(const char *what, struct iex_error *error) {
	fprintf(stderr, "%s: %s\n", what, error->message ? error->message : "no message");
	if (error->release) error->release(error);
	return 1;
}

int main(int argc, char **argv) {
	struct iex_error error = IEX_ERROR_INIT;
	struct producer producer = {.left = argc > 1 ? atoll(argv[1]) : 1000000, .state = 1};
	struct ArrowArrayStream input = {get_schema, get_next, get_last_error, release_stream, &producer};
	const char *options = getenv("IEX_OPTIONS"), *request = "{\"keys\": [{\"column\": \"n\"}]}";
	iex_engine *engine = NULL;
	iex_stream *sorted = NULL;
	int64_t rows = 0, first = 0, last = INT64_MIN;
	int code = 0;

	if (iex_engine_open(options, options ? strlen(options) : 0, &engine, &error) != IEX_OK) return fail("open", &error);
	iex_status status = iex_sort(engine, &input, request, strlen(request), &sorted, &error);
	while (status == IEX_OK || status == IEX_PENDING) {
		struct ArrowArray batch;
		status = iex_stream_next(sorted, 100, &batch, &error);
		if (status != IEX_OK) continue;
		const struct ArrowArray *column = batch.children[0];
		const int64_t *values = (const int64_t *)column->buffers[1] + column->offset;
		for (int64_t i = 0; i < batch.length; i++) {
			if (rows++ == 0) first = values[i];
			if (values[i] < last) code = 1;
			last = values[i];
		}
		batch.release(&batch);
	}
	if (status != IEX_END) code = fail("sort", &error);
	iex_stream_release(&sorted, NULL);
	if (iex_engine_close(&engine, &error) != IEX_OK) code = fail("close", &error);
	if (code == 0) printf("%" PRId64 " numbers from %" PRId64 " to %" PRId64 "\n", rows, first, last);
	return code;
}
