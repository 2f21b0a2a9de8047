/*
 * A plan, and a scan of its tasks: plans METADATA_LOCATION ROWS
 */
#include "check.h"

/* column finds a child of the schema. */
static int64_t column(const struct ArrowSchema *schema, const char *name) {
	for (int64_t i = 0; i < schema->n_children; i++)
		if (!strcmp(schema->children[i]->name, name)) return i;
	return -1;
}

int main(int argc, char **argv) {
	CHECK(argc == 3);
	const char *table = argv[1];
	iex_engine *engine = open_engine();
	char head[4096];
	iex_stream *plan = NULL, *rows = NULL;
	int length = snprintf(head, sizeof head, "{\"metadata_location\": \"%s\"}", table);
	CHECK_STATUS(iex_plan(engine, head, (size_t)length, &plan, &error), IEX_OK);

	struct ArrowSchema schema;
	CHECK_STATUS(iex_stream_schema(plan, &schema, &error), IEX_OK);
	int64_t task = column(&schema, "task");
	CHECK(task >= 0 && !strcmp(schema.children[task]->format, "u"));
	CHECK(column(&schema, "path") == 0);
	schema.release(&schema);

	/* Each task alone; together they are the table. */
	int64_t read = 0;
	struct ArrowArray batch;
	iex_status status;
	while ((status = iex_stream_next(plan, -1, &batch, &error)) == IEX_OK) {
		const struct ArrowArray *texts = batch.children[task];
		const int32_t *offsets = (const int32_t *)texts->buffers[1] + texts->offset;
		for (int64_t i = 0; i < batch.length; i++) {
			int size = offsets[i + 1] - offsets[i];
			char *request = malloc((size_t)size + sizeof head);
			length = sprintf(request, "{\"metadata_location\": \"%s\", \"tasks\": [%.*s]}", table, size,
			                 (const char *)texts->buffers[2] + offsets[i]);
			CHECK_STATUS(iex_scan(engine, request, (size_t)length, &rows, &error), IEX_OK);
			read += read_all(rows);
			CHECK_STATUS(iex_stream_release(&rows, &error), IEX_OK);
			free(request);
		}
		batch.release(&batch);
	}
	CHECK_STATUS(status, IEX_END);
	CHECK(read == strtoll(argv[2], NULL, 10));
	CHECK_STATUS(iex_stream_release(&plan, &error), IEX_OK);

	length = snprintf(head, sizeof head, "{\"metadata_location\": \"%s\", \"tasks\": [{\"version\": 9}]}", table);
	CHECK_STATUS(iex_scan(engine, head, (size_t)length, &rows, &error), IEX_INVALID_ARGUMENT);
	CHECK_TEXT(error.message, "tasks[0]: version is 9; it must be 1");
	clear_error();
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
	return done();
}
