/*
 * A defect of the engine: panics METADATA_LOCATION. Needs a library with the tag iextest, which panics in the function
 * that IEX_TEST_PANIC names. The engine of the call becomes unusable; the process and other engines live on.
 */
#include <errno.h>

#include "check.h"

static const char *table;

static void panic_in(const char *function) { setenv("IEX_TEST_PANIC", function, 1); }
static void no_panic(void) { unsetenv("IEX_TEST_PANIC"); }

static void check_defect(iex_status status, const char *function) {
	CHECK_STATUS(status, IEX_INTERNAL);
	CHECK_TEXT(error.message, function);
	CHECK_TEXT(error.message, "defect");
	CHECK_TEXT(error.detail, "\"stack\"");
	clear_error();
}

/* Functions that panic before they know their engine spoil nothing. */
static void a_panic_without_an_engine_spoils_none(void) {
	iex_engine *engine = open_engine(), *other;
	panic_in("iex_engine_open");
	check_defect(iex_engine_open(NULL, 0, &other, &error), "iex_engine_open");
	CHECK(other == NULL);
	no_panic();
	iex_stream *stream = scan(engine, table);
	CHECK(read_all(stream) > 0);
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

static void every_function_is_fenced(void) {
	iex_engine *engine = open_engine(), *closing = engine;
	iex_stream *stream = scan(engine, table), *other;
	struct ArrowArray batch;
	struct ArrowSchema schema;
	struct ArrowArrayStream rows;
	char *json;
	panic_in("iex_scan");
	check_defect(iex_scan(engine, "{}", 2, &other, &error), "iex_scan");
	panic_in("iex_plan");
	check_defect(iex_plan(engine, "{}", 2, &other, &error), "iex_plan");
	panic_in("iex_engine_stats");
	check_defect(iex_engine_stats(engine, &json, &error), "iex_engine_stats");
	panic_in("iex_stream_schema");
	check_defect(iex_stream_schema(stream, &schema, &error), "iex_stream_schema");
	panic_in("iex_stream_next");
	check_defect(iex_stream_next(stream, 0, &batch, &error), "iex_stream_next");
	panic_in("iex_stream_cancel");
	check_defect(iex_stream_cancel(stream, &error), "iex_stream_cancel");
	panic_in("iex_stream_stats");
	check_defect(iex_stream_stats(stream, &json, &error), "iex_stream_stats");
	panic_in("iex_stream_export");
	check_defect(iex_stream_export(stream, &rows, &error), "iex_stream_export");
	panic_in("iex_engine_close");
	check_defect(iex_engine_close(&closing, &error), "iex_engine_close");
	no_panic();
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

static void a_defect_spoils_its_engine_only(void) {
	iex_engine *engine = open_engine(), *other = open_engine();
	iex_stream *stream = scan(engine, table), *second = scan(engine, table), *fine = scan(other, table), *none;
	struct ArrowArray batch;
	panic_in("goroutine");
	iex_status status = iex_stream_next(stream, -1, &batch, &error);
	no_panic();
	check_defect(status, "test goroutine");

	/* The error is final, and the engine's other streams and calls are refused. */
	CHECK_STATUS(iex_stream_next(stream, -1, &batch, &error), IEX_INTERNAL);
	clear_error();
	CHECK_STATUS(iex_stream_next(second, -1, &batch, &error), IEX_UNUSABLE);
	CHECK_TEXT(error.message, "must be closed");
	clear_error();
	CHECK_STATUS(iex_scan(engine, "{}", 2, &none, &error), IEX_UNUSABLE);
	clear_error();

	CHECK(read_all(fine) > 0);
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	CHECK_STATUS(iex_stream_release(&second, &error), IEX_OK);
	CHECK_STATUS(iex_stream_release(&fine, &error), IEX_OK);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
	CHECK_STATUS(iex_engine_close(&other, &error), IEX_OK);
}

static void callbacks_are_fenced(void) {
	iex_engine *engine = open_engine();
	iex_stream *stream = scan(engine, table);
	struct ArrowArrayStream rows;
	struct ArrowArray batch;
	struct ArrowSchema schema;
	CHECK_STATUS(iex_stream_export(stream, &rows, &error), IEX_OK);
	panic_in("get_schema");
	CHECK(rows.get_schema(&rows, &schema) == EIO);
	CHECK_TEXT(rows.get_last_error(&rows), "get_schema");
	panic_in("get_next");
	CHECK(rows.get_next(&rows, &batch) == EIO);
	CHECK_TEXT(rows.get_last_error(&rows), "get_next");
	check_defect(iex_stream_error(&rows, &error), "get_next");
	panic_in("release");
	rows.release(&rows);
	nanosleep(&(struct timespec){0, 100000000}, NULL);
	no_panic();
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	CHECK_STATUS(iex_scan(engine, "{}", 2, &stream, &error), IEX_UNUSABLE);
	clear_error();
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

int main(int argc, char **argv) {
	if (argc != 2) return 2;
	table = argv[1];
	a_panic_without_an_engine_spoils_none();
	every_function_is_fenced();
	a_defect_spoils_its_engine_only();
	callbacks_are_fenced();
	return done();
}
