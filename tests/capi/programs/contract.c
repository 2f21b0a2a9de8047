/*
 * The rules of the header, one function for each: contract METADATA_LOCATION ROWS
 */
#include "check.h"

static const char *table;
static int64_t table_rows;

static void garbage(void *structure, size_t size) { memset(structure, 0xA5, size); }

/* Out values are cleared by the library, whatever was in them. */
static void out_values_need_no_initialisation(void) {
	iex_engine *engine;
	garbage(&engine, sizeof engine);
	CHECK_STATUS(iex_engine_open("{\"threads\": 0}", 14, &engine, &error), IEX_INVALID_ARGUMENT);
	CHECK(engine == NULL);
	CHECK_TEXT(error.message, "threads is 0");
	clear_error();

	engine = open_engine();
	iex_stream *stream;
	garbage(&stream, sizeof stream);
	CHECK_STATUS(iex_scan(engine, "{}", 2, &stream, &error), IEX_INVALID_ARGUMENT);
	CHECK(stream == NULL);
	CHECK_TEXT(error.message, "metadata_location is missing");
	clear_error();

	stream = scan(engine, table);
	struct ArrowSchema schema;
	garbage(&schema, sizeof schema);
	CHECK_STATUS(iex_stream_schema(stream, &schema, &error), IEX_OK);
	CHECK(strcmp(schema.format, "+s") == 0 && schema.n_children > 0);
	schema.release(&schema);
	CHECK(schema.release == NULL);

	struct ArrowArray batch;
	iex_status status;
	int64_t rows = 0;
	do {
		garbage(&batch, sizeof batch);
		status = iex_stream_next(stream, 10, &batch, &error);
		CHECK((status == IEX_OK) == (batch.release != NULL));
		if (status == IEX_OK) {
			rows += batch.length;
			batch.release(&batch);
			CHECK(batch.release == NULL);
		}
	} while (status == IEX_OK || status == IEX_PENDING);
	CHECK_STATUS(status, IEX_END);
	CHECK(rows == table_rows);
	CHECK_STATUS(iex_stream_next(stream, 10, &batch, &error), IEX_END);

	char *json;
	garbage(&json, sizeof json);
	CHECK_STATUS(iex_stream_stats(stream, &json, &error), IEX_OK);
	CHECK(member(json, "rows") == table_rows);
	iex_string_free(json);
	iex_string_free(NULL);

	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	CHECK(stream == NULL);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
	CHECK(engine == NULL);
}

/* An error structure that the caller did not initialise, or has an older size of, is not written past its size. */
static void error_structures_have_a_size(void) {
	struct iex_error small;
	garbage(&small, sizeof small);
	small.struct_size = sizeof small - sizeof(void *);
	iex_engine *engine;
	CHECK(iex_engine_open("[]", 2, &engine, &small) == IEX_INVALID_ARGUMENT);
	struct iex_error untouched;
	garbage(&untouched, sizeof untouched);
	CHECK(memcmp(&small.code, &untouched.code, sizeof small.code) == 0);
	CHECK(memcmp(&small.private_data, &untouched.private_data, sizeof(void *)) == 0);

	struct {
		struct iex_error error;
		char behind[64]; /* what a later version may add */
	} large;
	garbage(&large, sizeof large);
	large.error.struct_size = sizeof large;
	CHECK(iex_engine_open("[]", 2, &engine, &large.error) == IEX_INVALID_ARGUMENT);
	CHECK(large.error.code == IEX_INVALID_ARGUMENT);
	CHECK_TEXT(large.error.message, "must be a JSON object");
	CHECK_TEXT(large.error.detail, "\"code\":\"InvalidArgument\"");
	CHECK((unsigned char)large.behind[0] == 0xA5 && (unsigned char)large.behind[63] == 0xA5);
	large.error.release(&large.error);
	CHECK(large.error.release == NULL && large.error.struct_size == sizeof large);

	CHECK(iex_engine_open("[]", 2, &engine, NULL) == IEX_INVALID_ARGUMENT);
}

static void bad_handles_are_errors(void) {
	int nothing = 0;
	iex_engine *engine = (iex_engine *)&nothing;
	iex_stream *stream = (iex_stream *)&nothing;
	struct ArrowSchema schema;
	struct ArrowArray batch;
	struct ArrowArrayStream rows;
	char *json;

	CHECK_STATUS(iex_engine_stats(engine, &json, &error), IEX_INVALID_ARGUMENT);
	CHECK_TEXT(error.message, "is not a live engine");
	clear_error();
	CHECK_STATUS(iex_scan(engine, "{}", 2, &stream, &error), IEX_INVALID_ARGUMENT);
	clear_error();
	stream = (iex_stream *)&nothing;
	CHECK_STATUS(iex_stream_next(stream, 0, &batch, &error), IEX_INVALID_ARGUMENT);
	CHECK_TEXT(error.message, "is not a live stream");
	clear_error();
	CHECK_STATUS(iex_stream_schema(stream, &schema, &error), IEX_INVALID_ARGUMENT);
	clear_error();
	CHECK_STATUS(iex_stream_cancel(stream, &error), IEX_INVALID_ARGUMENT);
	clear_error();
	CHECK_STATUS(iex_stream_stats(stream, &json, &error), IEX_INVALID_ARGUMENT);
	clear_error();
	CHECK_STATUS(iex_stream_export(stream, &rows, &error), IEX_INVALID_ARGUMENT);
	CHECK(rows.release == NULL);
	clear_error();
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_INVALID_ARGUMENT);
	CHECK(stream == NULL);
	clear_error();
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_INVALID_ARGUMENT);
	CHECK(engine == NULL);
	clear_error();

	/* NULL where a handle or an out value must be. */
	CHECK_STATUS(iex_engine_stats(NULL, &json, &error), IEX_INVALID_ARGUMENT);
	CHECK_TEXT(error.message, "the engine is NULL");
	clear_error();
	CHECK_STATUS(iex_engine_stats(NULL, NULL, &error), IEX_INVALID_ARGUMENT);
	clear_error();
	CHECK_STATUS(iex_engine_open(NULL, 0, NULL, &error), IEX_INVALID_ARGUMENT);
	CHECK_TEXT(error.message, "out is NULL");
	clear_error();
	CHECK_STATUS(iex_engine_open(NULL, 7, &engine, &error), IEX_INVALID_ARGUMENT);
	clear_error();
	CHECK_STATUS(iex_engine_close(NULL, &error), IEX_INVALID_ARGUMENT);
	clear_error();
	CHECK_STATUS(iex_stream_next(NULL, 0, NULL, &error), IEX_INVALID_ARGUMENT);
	clear_error();
	CHECK_STATUS(iex_stream_error(NULL, &error), IEX_INVALID_ARGUMENT);
	clear_error();
	engine = NULL;
	stream = NULL;
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);

	/* An engine is not a stream. */
	engine = open_engine();
	CHECK_STATUS(iex_stream_cancel((iex_stream *)engine, &error), IEX_INVALID_ARGUMENT);
	clear_error();
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

/* Values that are no addresses at all, such as small numbers and the start of an empty text elsewhere. */
static void odd_values_are_errors(void) {
	static const uintptr_t values[] = {1, 8, 4095, 0xc000000000, 0x1b190b200000, UINTPTR_MAX};
	char *json;
	struct ArrowArray batch;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		iex_engine *engine = (iex_engine *)values[i];
		iex_stream *stream = (iex_stream *)values[i];
		for (int again = 0; again < 20; again++) { /* a Go stack grows or moves now and then */
			CHECK_STATUS(iex_engine_stats(engine, &json, &error), IEX_INVALID_ARGUMENT);
			clear_error();
			CHECK_STATUS(iex_stream_next(stream, 1, &batch, &error), IEX_INVALID_ARGUMENT);
			clear_error();
		}
		CHECK_STATUS(iex_stream_release(&stream, &error), IEX_INVALID_ARGUMENT);
		clear_error();
		CHECK_STATUS(iex_engine_close(&engine, &error), IEX_INVALID_ARGUMENT);
		clear_error();
	}
	iex_engine *engine;
	iex_stream *stream;
	CHECK_STATUS(iex_engine_open((const char *)1, 0, &engine, &error), IEX_OK);
	CHECK_STATUS(iex_scan_with_sets(engine, (const char *)1, 0, (struct ArrowArrayStream *const *)8, 0, &stream, &error),
	             IEX_INVALID_ARGUMENT);
	clear_error();
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

static void a_closed_engine_says_so(void) {
	iex_engine *engine = open_engine(), *copy = engine;
	iex_stream *stream = scan(engine, table), *other;
	struct ArrowArray batch;
	CHECK_STATUS(iex_stream_next(stream, -1, &batch, &error), IEX_OK);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);

	/* The batch is still there. */
	CHECK(batch.length > 0 && batch.children[0]->length == batch.length);
	for (int64_t i = 0; i < batch.n_children; i++)
		for (int64_t b = 1; b < batch.children[i]->n_buffers; b++) CHECK(batch.children[i]->buffers[b] != NULL);
	batch.release(&batch);

	/* So is the stream, as something to release. */
	CHECK_STATUS(iex_stream_next(stream, -1, &batch, &error), IEX_CANCELLED);
	CHECK_TEXT(error.message, "the engine is closed");
	clear_error();
	CHECK_STATUS(iex_stream_next(stream, 0, &batch, &error), IEX_CANCELLED);
	clear_error();
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);

	/* A second close, by a copy of the handle, does nothing; other calls are refused. */
	char *json;
	CHECK_STATUS(iex_engine_stats(copy, &json, &error), IEX_CANCELLED);
	CHECK_TEXT(error.message, "the engine is closed");
	clear_error();
	CHECK_STATUS(iex_scan(copy, "{}", 2, &other, &error), IEX_CANCELLED);
	clear_error();
	CHECK_STATUS(iex_engine_close(&copy, &error), IEX_OK);
	CHECK(copy == NULL);
}

static void a_released_stream_says_so(void) {
	iex_engine *engine = open_engine();
	iex_stream *stream = scan(engine, table), *copy = stream;
	struct ArrowArray batch;
	CHECK_STATUS(iex_stream_next(stream, -1, &batch, &error), IEX_OK);
	batch.release(&batch);
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	CHECK_STATUS(iex_stream_next(copy, 0, &batch, &error), IEX_INVALID_ARGUMENT);
	CHECK_TEXT(error.message, "it was released");
	CHECK(batch.release == NULL);
	clear_error();
	CHECK_STATUS(iex_stream_release(&copy, &error), IEX_INVALID_ARGUMENT);
	clear_error();

	/* Handles are never reused: the copy stays invalid, whatever is made after it. */
	iex_stream *later = scan(engine, table);
	CHECK(later != copy);
	CHECK_STATUS(iex_stream_release(&later, &error), IEX_OK);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

static void released_batches_are_not_counted(void) {
	iex_engine *engine = open_engine();
	iex_stream *stream = scan(engine, table);
	struct ArrowArray batch, moved;
	CHECK_STATUS(iex_stream_next(stream, -1, &batch, &error), IEX_OK);
	CHECK(engine_stat(engine, "exported_bytes") > 0);
	moved = batch; /* as the C data interface says: copy, then mark the source released */
	batch.release = NULL;
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	CHECK(engine_stat(engine, "exported_bytes") > 0);
	moved.release(&moved);
	CHECK(engine_stat(engine, "exported_bytes") == 0);
	CHECK(engine_stat(engine, "allocated_bytes") == 0);
	CHECK(engine_stat(engine, "memory_used") == 0);
	CHECK(engine_stat(engine, "open_streams") == 0);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

static void requests_are_checked(void) {
	static const struct {
		const char *request, *says;
	} cases[] = {
	    {"", "not a valid JSON object"},
	    {"{", "not a valid JSON object"},
	    {"[1]", "must be a JSON object"},
	    {"{\"metadata_location\": \"/x\"} {}", "goes on after"},
	    {"{\"metadata_locations\": \"/x\"}", "unknown field \"metadata_locations\"; known are version, metadata_location"},
	    {"{\"ref\": \"a\", \"ref\": \"b\"}", "the field ref twice"},
	    {"{\"metadata_location\": \"/x\", \"limit\": \"10\"}", "limit is \"10\"; it must be a whole number"},
	    {"{\"metadata_location\": \"/x\", \"limit\": -1}", "limit is -1"},
	    {"{\"metadata_location\": \"/x\", \"columns\": \"a\"}", "columns is \"a\"; it must be an array of strings"},
	    {"{\"metadata_location\": \"/x\", \"version\": 2}", "version is 2; it must be 1"},
	    {"{\"metadata_location\": \"/x\", \"memory_limit\": \"64 parsecs\"}", "memory_limit is \"64 parsecs\""},
	    {"{\"metadata_location\": \"/x\", \"filter_mode\": \"sql\"}", "filter mode"},
	    {"{\"metadata_location\": \"/x\", \"filter\": []}", "filter is empty; leave it out"},
	    {"{\"metadata_location\": null}", "metadata_location is missing"},
	};
	iex_engine *engine = open_engine();
	iex_stream *stream;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CHECK_STATUS(iex_scan(engine, cases[i].request, strlen(cases[i].request), &stream, &error), IEX_INVALID_ARGUMENT);
		CHECK_TEXT(error.message, cases[i].says);
		clear_error();
	}
	const char *tasks = "{\"metadata_location\": \"/x\", \"tasks\": 7}";
	CHECK_STATUS(iex_scan(engine, tasks, strlen(tasks), &stream, &error), IEX_INVALID_ARGUMENT);
	CHECK_TEXT(error.message, "tasks is 7; it must be an array of JSON objects");
	clear_error();
	const char *plan = "{\"metadata_location\": \"/x\", \"limit\": 1}";
	CHECK_STATUS(iex_plan(engine, plan, strlen(plan), &stream, &error), IEX_INVALID_ARGUMENT);
	CHECK_TEXT(error.message, "unknown field \"limit\"; known are version, metadata_location");
	clear_error();
	CHECK_STATUS(iex_plan(engine, NULL, 0, &stream, &error), IEX_INVALID_ARGUMENT);
	CHECK_TEXT(error.message, "request is NULL");
	clear_error();
	const char *missing = "{\"metadata_location\": \"/no/such/v1.metadata.json\"}";
	CHECK_STATUS(iex_scan(engine, missing, strlen(missing), &stream, &error), IEX_NOT_FOUND);
	CHECK_TEXT(error.message, "/no/such/v1.metadata.json");
	CHECK_TEXT(error.detail, "\"path\":\"/no/such/v1.metadata.json\"");
	clear_error();
	const char *small = "{\"memory_limit\": \"1MiB\"}";
	iex_engine *none;
	CHECK_STATUS(iex_engine_open(small, strlen(small), &none, &error), IEX_INVALID_ARGUMENT);
	CHECK_TEXT(error.message, "at least 16 MiB");
	clear_error();
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

int main(int argc, char **argv) {
	if (argc != 3) return 2;
	table = argv[1];
	table_rows = atoll(argv[2]);
	CHECK(iex_abi_version() == IEX_ABI_VERSION);
	CHECK(strcmp(iex_version(), IEX_VERSION) == 0);
	out_values_need_no_initialisation();
	error_structures_have_a_size();
	bad_handles_are_errors();
	odd_values_are_errors();
	a_closed_engine_says_so();
	a_released_stream_says_so();
	released_batches_are_not_counted();
	requests_are_checked();
	return done();
}
