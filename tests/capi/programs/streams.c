/*
 * ArrowArrayStream export: streams METADATA_LOCATION ROWS
 */
#include <errno.h>
#include <pthread.h>

#include "check.h"

static const char *table;
static int64_t table_rows;

static int64_t drain(struct ArrowArrayStream *stream) {
	int64_t rows = 0;
	for (;;) {
		struct ArrowArray batch;
		memset(&batch, 0xA5, sizeof batch);
		int code = stream->get_next(stream, &batch);
		if (code) return -code;
		if (!batch.release) return rows;
		rows += batch.length;
		batch.release(&batch);
	}
}

static struct ArrowArrayStream export_stream(iex_stream *stream) {
	struct ArrowArrayStream out;
	memset(&out, 0xA5, sizeof out);
	CHECK_STATUS(iex_stream_export(stream, &out, &error), IEX_OK);
	return out;
}

static void wait_for(iex_engine *engine, const char *stat, int64_t want) {
	double until = seconds() + 10;
	while (engine_stat(engine, stat) != want && seconds() < until) nanosleep(&(struct timespec){0, 1000000}, NULL);
	CHECK(engine_stat(engine, stat) == want);
}

static void all_rows_come_out(void) {
	iex_engine *engine = open_engine();
	iex_stream *handle = scan(engine, table);
	struct ArrowArrayStream stream = export_stream(handle), again;
	struct ArrowArray batch;
	CHECK_STATUS(iex_stream_next(handle, 0, &batch, &error), IEX_INVALID_ARGUMENT);
	CHECK_TEXT(error.message, "the stream was exported");
	clear_error();
	CHECK_STATUS(iex_stream_export(handle, &again, &error), IEX_INVALID_ARGUMENT);
	clear_error();

	struct ArrowSchema schema;
	memset(&schema, 0xA5, sizeof schema);
	CHECK(stream.get_schema(&stream, &schema) == 0);
	CHECK(strcmp(schema.format, "+s") == 0);
	schema.release(&schema);
	CHECK(drain(&stream) == table_rows);
	CHECK(drain(&stream) == 0); /* the end stays the end */
	CHECK_STATUS(iex_stream_error(&stream, &error), IEX_OK);
	CHECK(stream.get_last_error(&stream) == NULL);
	stream.release(&stream);
	CHECK(stream.release == NULL);
	CHECK_STATUS(iex_stream_error(&stream, &error), IEX_INVALID_ARGUMENT);
	clear_error();
	char *json;
	CHECK_STATUS(iex_stream_stats(handle, &json, &error), IEX_OK);
	CHECK(member(json, "rows") == table_rows);
	iex_string_free(json);
	CHECK_STATUS(iex_stream_release(&handle, &error), IEX_OK);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

static void the_handle_may_go_first(void) {
	iex_engine *engine = open_engine();
	iex_stream *handle = scan(engine, table);
	struct ArrowArrayStream stream = export_stream(handle), moved = stream;
	stream.release = NULL;
	CHECK_STATUS(iex_stream_release(&handle, &error), IEX_OK);
	CHECK(drain(&moved) == table_rows);
	moved.release(&moved);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

static void early_release_ends_the_work(void) {
	iex_engine *engine = open_engine();
	iex_stream *handle = scan(engine, table);
	struct ArrowArrayStream stream = export_stream(handle);
	struct ArrowArray batch;
	CHECK(stream.get_next(&stream, &batch) == 0 && batch.release);
	CHECK(engine_stat(engine, "open_streams") == 1);
	stream.release(&stream);
	wait_for(engine, "open_streams", 0);
	CHECK(engine_stat(engine, "exported_bytes") > 0);
	batch.release(&batch);
	wait_for(engine, "allocated_bytes", 0);
	CHECK_STATUS(iex_stream_release(&handle, &error), IEX_OK);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

static void a_stream_outlives_its_engine(void) {
	iex_engine *engine = open_engine();
	iex_stream *handle = scan(engine, table);
	struct ArrowArrayStream stream = export_stream(handle);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
	struct ArrowArray batch;
	memset(&batch, 0xA5, sizeof batch);
	CHECK(stream.get_next(&stream, &batch) == ECANCELED);
	CHECK(batch.release == NULL);
	CHECK_TEXT(stream.get_last_error(&stream), "the engine is closed");
	CHECK_STATUS(iex_stream_error(&stream, &error), IEX_CANCELLED);
	CHECK_TEXT(error.message, "the engine is closed");
	stream.release(&stream);
	CHECK_TEXT(error.message, "the engine is closed"); /* the error is the caller's */
	clear_error();
	CHECK_STATUS(iex_stream_release(&handle, &error), IEX_OK);
}

static void cancel_reaches_the_export(void) {
	iex_engine *engine = open_engine();
	iex_stream *handle = scan(engine, table);
	struct ArrowArrayStream stream = export_stream(handle);
	CHECK_STATUS(iex_stream_cancel(handle, &error), IEX_OK);
	CHECK_STATUS(iex_stream_cancel(handle, &error), IEX_OK);
	CHECK(drain(&stream) == -ECANCELED);
	CHECK_STATUS(iex_stream_error(&stream, &error), IEX_CANCELLED);
	clear_error();
	stream.release(&stream);
	CHECK_STATUS(iex_stream_release(&handle, &error), IEX_OK);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

static void foreign_streams_are_told_apart(void) {
	struct ArrowArrayStream foreign;
	memset(&foreign, 0, sizeof foreign);
	CHECK_STATUS(iex_stream_error(&foreign, &error), IEX_INVALID_ARGUMENT);
	CHECK_TEXT(error.message, "iex_stream_export");
	clear_error();
}

static void *release_elsewhere(void *batch) {
	((struct ArrowArray *)batch)->release(batch);
	return NULL;
}

static void batches_may_be_released_on_any_thread(void) {
	enum { most = 64 };
	struct ArrowArray batches[most];
	pthread_t threads[most];
	iex_engine *engine = open_engine();
	iex_stream *stream = scan(engine, table);
	int n = 0;
	while (n < most && iex_stream_next(stream, -1, &batches[n], &error) == IEX_OK) n++;
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
	for (int i = 0; i < n; i++) pthread_create(&threads[i], NULL, release_elsewhere, &batches[i]);
	for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
	for (int i = 0; i < n; i++) CHECK(batches[i].release == NULL);
}

int main(int argc, char **argv) {
	if (argc != 3) return 2;
	table = argv[1];
	table_rows = atoll(argv[2]);
	all_rows_come_out();
	the_handle_may_go_first();
	early_release_ends_the_work();
	a_stream_outlives_its_engine();
	cancel_reaches_the_export();
	foreign_streams_are_told_apart();
	batches_may_be_released_on_any_thread();
	return done();
}
