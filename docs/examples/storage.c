/*
 * Reads an Iceberg table whose files the program serves itself: here a folder that is loaded into memory and served
 * under locations of the form mem://...
 *
 *     cc storage.c -o storage $(pkg-config --cflags --libs icebergexec)
 *     ./storage FOLDER PREFIX METADATA_LOCATION
 *
 * FOLDER is served as the locations that begin with PREFIX, to which the table's metadata refers. IEX_OPTIONS in the
 * environment may hold further engine options.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icebergexec.h"

/* What the callbacks get as their context. They run on any thread, so it does not change while the engine is open. */
struct memory {
	const char *folder, *prefix;
};

struct file {
	int64_t size;
	char *content;
};

/* Each thread has a text of its own for its last error. */
static _Thread_local char message[1024];

static iex_status fail(struct iex_error *error, iex_status code, const char *what) {
	snprintf(message, sizeof message, "%s", what);
	error->message = message;
	return code;
}

static iex_status open_file(void *context, const char *location, void **out, struct iex_error *error) {
	const struct memory *memory = context;
	char path[4096];
	if (strncmp(location, memory->prefix, strlen(memory->prefix)) != 0)
		return fail(error, IEX_NOT_FOUND, "this location is not in memory");
	snprintf(path, sizeof path, "%s%s", memory->folder, location + strlen(memory->prefix));
	FILE *source = fopen(path, "rb");
	if (!source) return fail(error, IEX_NOT_FOUND, "there is no such file in memory");
	struct file *file = calloc(1, sizeof *file);
	if (file && fseek(source, 0, SEEK_END) == 0 && (file->size = ftell(source)) >= 0 && fseek(source, 0, SEEK_SET) == 0) {
		file->content = malloc((size_t)file->size + 1);
		if (file->content && fread(file->content, 1, (size_t)file->size, source) == (size_t)file->size) {
			fclose(source);
			*out = file;
			return IEX_OK;
		}
		free(file->content);
	}
	fclose(source);
	free(file);
	return fail(error, IEX_INTERNAL, "the file cannot be loaded");
}

static iex_status size_of(void *context, void *file, int64_t *out, struct iex_error *error) {
	(void)context, (void)error;
	*out = ((struct file *)file)->size;
	return IEX_OK;
}

static iex_status read_at(void *context, void *file, int64_t offset, void *buffer, size_t size, size_t *read,
                          struct iex_error *error) {
	const struct file *f = file;
	(void)context;
	if (offset < 0) return fail(error, IEX_INVALID_ARGUMENT, "the offset is negative");
	int64_t left = offset < f->size ? f->size - offset : 0;
	*read = (uint64_t)left < size ? (size_t)left : size;
	memcpy(buffer, f->content + (offset < f->size ? offset : 0), *read);
	return IEX_OK;
}

static void close_file(void *context, void *file) {
	(void)context;
	free(((struct file *)file)->content);
	free(file);
}

static void release_memory(void *context) {
	(void)context;
	fprintf(stderr, "the engine uses the storage no more\n");
}

static int report(const char *what, struct iex_error *error) {
	fprintf(stderr, "%s: %s\n", what, error->message ? error->message : "no message");
	if (error->release) error->release(error);
	return 1;
}

int main(int argc, char **argv) {
	if (argc != 4) {
		fprintf(stderr, "usage: %s FOLDER PREFIX METADATA_LOCATION\n", argv[0]);
		return 2;
	}
	struct memory memory = {.folder = argv[1], .prefix = argv[2]};
	struct iex_storage storage = {
	    .struct_size = sizeof storage,
	    .context = &memory,
	    .open = open_file,
	    .size = size_of,
	    .read_at = read_at,
	    .close = close_file,
	    .release = release_memory,
	}; /* schemes is NULL: all locations come here */
	struct iex_error error = IEX_ERROR_INIT;
	const char *options = getenv("IEX_OPTIONS");
	iex_engine *engine = NULL;
	iex_stream *rows = NULL;
	if (iex_engine_open_with_host(options, options ? strlen(options) : 0, &storage, NULL, &engine, &error) != IEX_OK)
		return report("open", &error);

	char request[4096];
	snprintf(request, sizeof request, "{\"metadata_location\": \"%s\"}", argv[3]);
	int64_t count = 0;
	iex_status status = iex_scan(engine, request, strlen(request), &rows, &error);
	while (status == IEX_OK || status == IEX_PENDING) {
		struct ArrowArray batch;
		status = iex_stream_next(rows, 100, &batch, &error);
		if (status == IEX_OK) {
			count += batch.length;
			batch.release(&batch);
		}
	}
	int code = status == IEX_END ? 0 : report("scan", &error);
	iex_stream_release(&rows, NULL);
	if (iex_engine_close(&engine, &error) != IEX_OK) code = report("close", &error);
	if (code == 0) printf("%" PRId64 " rows\n", count);
	return code;
}
