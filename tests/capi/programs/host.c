/*
 * Storage and inputs of the host: host FOLDER PREFIX METADATA_LOCATION ROWS FIRST_COLUMN
 */
#include <pthread.h>

#include "check.h"

struct store {
	const char *folder, *prefix;
	pthread_mutex_t lock;
	int open_files, opened, released;
	const char *failing; /* what a location contains whose read_at fails */
};

struct entry {
	FILE *file;
	int fails;
};

static iex_status store_open(void *context, const char *location, void **file, struct iex_error *e) {
	struct store *s = context;
	char path[4096];
	CHECK(e->struct_size == sizeof *e && e->message == NULL && *file == NULL);
	if (strncmp(location, s->prefix, strlen(s->prefix)) != 0) {
		e->message = "the location is not here";
		return IEX_NOT_FOUND;
	}
	snprintf(path, sizeof path, "%s%s", s->folder, location + strlen(s->prefix));
	FILE *f = fopen(path, "rb");
	if (!f) return IEX_NOT_FOUND; /* a message is not required */
	struct entry *entry = calloc(1, sizeof *entry);
	entry->file = f;
	entry->fails = s->failing && strstr(location, s->failing);
	pthread_mutex_lock(&s->lock);
	s->open_files++, s->opened++;
	pthread_mutex_unlock(&s->lock);
	*file = entry;
	return IEX_OK;
}

static iex_status store_size(void *context, void *file, int64_t *out, struct iex_error *e) {
	(void)context, (void)e;
	fseek(((struct entry *)file)->file, 0, SEEK_END);
	*out = ftell(((struct entry *)file)->file);
	return IEX_OK;
}

static void release_message(struct iex_error *e) {
	free((char *)e->message);
	e->release = NULL;
}

/* Reads at most 1000 bytes at a time, which is allowed. */
static iex_status store_read_at(void *context, void *file, int64_t offset, void *buffer, size_t size, size_t *read,
                                struct iex_error *e) {
	struct store *s = context;
	if (((struct entry *)file)->fails) {
		e->message = strdup("the line is cut");
		e->release = release_message;
		return IEX_PERMISSION_DENIED;
	}
	pthread_mutex_lock(&s->lock);
	fseek(((struct entry *)file)->file, (long)offset, SEEK_SET);
	*read = fread(buffer, 1, size < 1000 ? size : 1000, ((struct entry *)file)->file);
	pthread_mutex_unlock(&s->lock);
	return IEX_OK;
}

static void store_close(void *context, void *file) {
	struct store *s = context;
	fclose(((struct entry *)file)->file);
	free(file);
	pthread_mutex_lock(&s->lock);
	s->open_files--;
	pthread_mutex_unlock(&s->lock);
}

static void store_release(void *context) { ((struct store *)context)->released++; }

static struct iex_storage storage_of(struct store *s) {
	return (struct iex_storage){.struct_size = sizeof(struct iex_storage),
	                            .context = s,
	                            .open = store_open,
	                            .size = store_size,
	                            .read_at = store_read_at,
	                            .close = store_close,
	                            .release = store_release};
}

static void all_files_come_from_the_host(struct store s, const char *location, int64_t rows) {
	struct iex_storage storage = storage_of(&s);
	iex_engine *engine;
	CHECK_STATUS(iex_engine_open_with_host(NULL, 0, &storage, NULL, &engine, &error), IEX_OK);
	memset(&storage, 0xA5, sizeof storage); /* the engine has a copy */
	iex_stream *stream = scan(engine, location);
	CHECK(read_all(stream) == rows);
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	CHECK(s.opened > 2 && s.open_files == 0 && s.released == 0);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
	CHECK(s.released == 1);
}

static void errors_of_the_host_are_errors_of_the_stream(struct store s, const char *location) {
	s.failing = ".parquet";
	struct iex_storage storage = storage_of(&s);
	iex_engine *engine;
	CHECK_STATUS(iex_engine_open_with_host(NULL, 0, &storage, NULL, &engine, &error), IEX_OK);
	iex_stream *stream = scan(engine, location);
	struct ArrowArray batch;
	CHECK_STATUS(iex_stream_next(stream, -1, &batch, &error), IEX_PERMISSION_DENIED);
	CHECK_TEXT(error.message, "the line is cut");
	CHECK_TEXT(error.message, ".parquet");
	clear_error();
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	CHECK_STATUS(iex_scan(engine, "{\"metadata_location\": \"/elsewhere\"}", 35, &stream, &error), IEX_NOT_FOUND);
	CHECK_TEXT(error.message, "the location is not here");
	clear_error();
	CHECK(s.open_files == 0);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
	CHECK(s.released == 1);
}

static void schemes_are_told_apart(struct store s, const char *location) {
	struct iex_storage storage = storage_of(&s);
	storage.schemes = "mem, S3";
	iex_engine *engine;
	iex_stream *stream;
	CHECK_STATUS(iex_engine_open_with_host(NULL, 0, &storage, NULL, &engine, &error), IEX_OK);
	char request[4096];
	snprintf(request, sizeof request, "{\"metadata_location\": \"%s.missing\"}", location);
	CHECK_STATUS(iex_scan(engine, request, strlen(request), &stream, &error), IEX_NOT_FOUND); /* the local one */
	CHECK(s.opened == 0);
	clear_error();
	CHECK_STATUS(iex_scan(engine, "{\"metadata_location\": \"s3://b/k\"}", 33, &stream, &error), IEX_NOT_FOUND);
	CHECK_TEXT(error.message, "the location is not here");
	clear_error();
	CHECK_STATUS(iex_scan(engine, "{\"metadata_location\": \"gs://b/k\"}", 33, &stream, &error), IEX_UNSUPPORTED);
	clear_error();
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

/* A host may use small numbers for its contexts and files, and leave empty buffers pointing nowhere. */
static char document[] = "{\"format-version\": 9}";

static iex_status number_open(void *context, const char *location, void **file, struct iex_error *e) {
	(void)location, (void)e;
	CHECK((uintptr_t)context == 1);
	*file = (void *)(uintptr_t)5;
	return IEX_OK;
}

static iex_status number_size(void *context, void *file, int64_t *out, struct iex_error *e) {
	(void)context, (void)e;
	CHECK((uintptr_t)file == 5);
	*out = (int64_t)strlen(document);
	return IEX_OK;
}

static iex_status number_read_at(void *context, void *file, int64_t offset, void *buffer, size_t size, size_t *read,
                                 struct iex_error *e) {
	(void)context, (void)file, (void)e;
	*read = strlen(document) - (size_t)offset < size ? strlen(document) - (size_t)offset : size;
	memcpy(buffer, document + offset, *read);
	return IEX_OK;
}

static int number_closed, number_released;

static void number_close(void *context, void *file) {
	(void)context;
	number_closed += (uintptr_t)file == 5;
}

static void number_release(void *context) { number_released += (uintptr_t)context == 1; }

static void numbers_pass_for_contexts_and_files(void) {
	struct iex_storage storage = {.struct_size = sizeof storage,
	                              .context = (void *)(uintptr_t)1,
	                              .open = number_open,
	                              .size = number_size,
	                              .read_at = number_read_at,
	                              .close = number_close,
	                              .release = number_release};
	iex_engine *engine;
	iex_stream *stream;
	CHECK_STATUS(iex_engine_open_with_host(NULL, 0, &storage, NULL, &engine, &error), IEX_OK);
	for (int i = 0; i < 50; i++) {
		CHECK_STATUS(iex_scan(engine, "{\"metadata_location\": \"x\"}", 26, &stream, &error), IEX_UNSUPPORTED);
		CHECK_TEXT(error.message, "format version 9");
		clear_error();
	}
	CHECK(number_closed == 50);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
	CHECK(number_released == 1);
}

static void release_nothing(struct ArrowArray *array) { array->release = NULL; }
static void release_no_schema(struct ArrowSchema *schema) { schema->release = NULL; }
static void release_no_stream(struct ArrowArrayStream *stream) { stream->release = NULL; }

static int nowhere_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
	static struct ArrowSchema child, *children[1] = {&child};
	(void)stream;
	child = (struct ArrowSchema){.format = "vu", .name = "s", .flags = 2, .children = (void *)8, .release = release_no_schema};
	*out = (struct ArrowSchema){.format = "+s", .n_children = 1, .children = children, .release = release_no_schema};
	return 0;
}

/* Batches without rows whose buffers point to address 8. */
static int nowhere_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
	static struct ArrowArray child, *children[1] = {&child};
	static const void *nowhere[3] = {(void *)8, (void *)8, (void *)8}, *none[1];
	memset(out, 0, sizeof *out);
	if (stream->private_data == NULL) return 0;
	stream->private_data = (void *)((uintptr_t)stream->private_data - 1);
	child = (struct ArrowArray){.n_buffers = 3, .buffers = nowhere, .children = (void *)8, .release = release_nothing};
	*out = (struct ArrowArray){.n_buffers = 1, .buffers = none, .n_children = 1, .children = children, .release = release_nothing};
	return 0;
}

static void empty_buffers_may_point_nowhere(void) {
	const char *by_s = "{\"keys\": [{\"column\": \"s\"}]}";
	iex_engine *engine = open_engine();
	for (int i = 0; i < 20; i++) {
		struct ArrowArrayStream input = {nowhere_schema, nowhere_next, NULL, release_no_stream, (void *)(uintptr_t)50};
		iex_stream *stream;
		CHECK_STATUS(iex_sort(engine, &input, by_s, strlen(by_s), &stream, &error), IEX_OK);
		CHECK(read_all(stream) == 0);
		CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	}
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

static void a_host_that_is_refused_is_released(struct store s) {
	struct iex_storage storage = storage_of(&s);
	iex_engine *engine;
	CHECK_STATUS(iex_engine_open_with_host("{\"nonsense\": 1}", 15, &storage, NULL, &engine, &error), IEX_INVALID_ARGUMENT);
	CHECK(engine == NULL && s.released == 1);
	clear_error();
	storage.read_at = NULL;
	CHECK_STATUS(iex_engine_open_with_host(NULL, 0, &storage, NULL, &engine, &error), IEX_INVALID_ARGUMENT);
	CHECK_TEXT(error.message, "read_at");
	CHECK(s.released == 2);
	clear_error();
	storage.struct_size = 8;
	CHECK_STATUS(iex_engine_open_with_host(NULL, 0, &storage, NULL, &engine, &error), IEX_INVALID_ARGUMENT);
	CHECK(s.released == 3);
	clear_error();
}

/* Exported streams of one scan are the inputs of another operation: a sort, a set of literals. */
static struct ArrowArrayStream column_of(iex_engine *engine, const char *location, const char *column) {
	char request[4096];
	iex_stream *stream = NULL;
	struct ArrowArrayStream out;
	snprintf(request, sizeof request, "{\"metadata_location\": \"%s\", \"columns\": [\"%s\"]}", location, column);
	CHECK_STATUS(iex_scan(engine, request, strlen(request), &stream, &error), IEX_OK);
	CHECK_STATUS(iex_stream_export(stream, &out, &error), IEX_OK);
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	return out;
}

static void inputs_are_taken_over(const char *location, int64_t rows, const char *column) {
	iex_engine *engine = open_engine();
	iex_stream *stream;
	char request[4096];

	snprintf(request, sizeof request, "{\"keys\": [{\"column\": \"%s\", \"direction\": \"descending\"}]}", column);
	struct ArrowArrayStream input = column_of(engine, location, column);
	CHECK_STATUS(iex_sort(engine, &input, request, strlen(request), &stream, &error), IEX_OK);
	CHECK(input.release == NULL);
	CHECK(read_all(stream) == rows);
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);

	/* Also when the operation fails, at every stage. */
	const struct {
		iex_engine *engine;
		const char *request;
	} failing[] = {{engine, "{}"}, {engine, NULL}, {NULL, request}, {engine, "{\"keys\": [{\"column\": \"no such\"}]}"}};
	for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
		input = column_of(engine, location, column);
		CHECK_STATUS(iex_sort(failing[i].engine, &input, failing[i].request, failing[i].request ? strlen(failing[i].request) : 0,
		                      &stream, &error),
		             IEX_INVALID_ARGUMENT);
		CHECK(input.release == NULL && stream == NULL);
		clear_error();
	}
	CHECK_STATUS(iex_sort(engine, NULL, request, strlen(request), &stream, &error), IEX_INVALID_ARGUMENT);
	clear_error();
	CHECK_STATUS(iex_sort(engine, &input, request, strlen(request), &stream, &error), IEX_INVALID_ARGUMENT);
	CHECK_TEXT(error.message, "released already");
	clear_error();

	/* All values of the column as a set of literals: every row matches, and none of its complement does. */
	for (int negated = 0; negated < 2; negated++) {
		struct ArrowArrayStream set = column_of(engine, location, column), *sets[] = {&set};
		snprintf(request, sizeof request,
		         "{\"metadata_location\": \"%s\", \"filter\": [{\"op\": \"%s\", \"ref\": \"%s\", \"set\": 0}]}", location,
		         negated ? "not-in" : "in", column);
		CHECK_STATUS(iex_scan_with_sets(engine, request, strlen(request), sets, 1, &stream, &error), IEX_OK);
		CHECK(set.release == NULL);
		CHECK(read_all(stream) == (negated ? 0 : rows));
		CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	}
	CHECK_STATUS(iex_scan(engine, request, strlen(request), &stream, &error), IEX_INVALID_ARGUMENT); /* no set 0 */
	clear_error();
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

/* Operations without an engine part say so, and take their inputs over all the same. */
static void missing_operations_say_so(const char *location, const char *column) {
	iex_engine *engine = open_engine();
	iex_stream *stream;
	struct ArrowArrayStream left = column_of(engine, location, column), right = column_of(engine, location, column);
	CHECK_STATUS(iex_anti_join(engine, &left, &right, "{}", 2, &stream, &error), IEX_UNSUPPORTED);
	CHECK(left.release == NULL && right.release == NULL && stream == NULL);
	CHECK_TEXT(error.message, "iex_anti_join");
	clear_error();
	left = column_of(engine, location, column);
	CHECK_STATUS(iex_filter(engine, &left, "{}", 2, &stream, &error), IEX_UNSUPPORTED);
	clear_error();
	left = column_of(engine, location, column);
	CHECK_STATUS(iex_write(engine, &left, "{}", 2, &stream, &error), IEX_UNSUPPORTED);
	clear_error();
	left = column_of(engine, location, column);
	CHECK_STATUS(iex_write_manifest(engine, &left, "{}", 2, &stream, &error), IEX_UNSUPPORTED);
	clear_error();
	CHECK_STATUS(iex_rewrite(engine, "{}", 2, &stream, &error), IEX_UNSUPPORTED);
	clear_error();
	CHECK_STATUS(iex_position_deletes(engine, "{}", 2, &stream, &error), IEX_UNSUPPORTED);
	clear_error();
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

int main(int argc, char **argv) {
	if (argc != 6) return 2;
	struct store s = {.folder = argv[1], .prefix = argv[2], .lock = PTHREAD_MUTEX_INITIALIZER};
	all_files_come_from_the_host(s, argv[3], atoll(argv[4]));
	errors_of_the_host_are_errors_of_the_stream(s, argv[3]);
	schemes_are_told_apart(s, argv[3]);
	a_host_that_is_refused_is_released(s);
	numbers_pass_for_contexts_and_files();
	empty_buffers_may_point_nowhere();
	inputs_are_taken_over(argv[3], atoll(argv[4]), argv[5]);
	missing_operations_say_so(argv[3], argv[5]);
	return done();
}
