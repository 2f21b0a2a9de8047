/*
 * The C side of the public functions, in front of the Go side:
 *
 *     caller --> iex_scan (here)                        --> iexgo_scan (Go)
 *                clears what it will write, so that Go       fences panics, finds the handle,
 *                never sees garbage that looks like a         does the work
 *                pointer; answers in a forked child itself
 *
 * Values that the caller calls pointers but that may be none (a wrong handle, the start of an empty text) do not cross
 * as pointers: the Go runtime ends the process when it finds one on a stack that does not look like an address.
 */
#include "shim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"

extern volatile int iex_forked; /* set in bridge/memory.c */

#define FORKED_MESSAGE                                                                                       \
	"the engine does not survive fork(): this child process was forked after the library had been loaded; " \
	"start child processes with the start method spawn or forkserver, or load the library after the fork"

/* usable clears the error structure and returns it, or NULL when there is none that is large enough. */
static struct iex_error *usable(struct iex_error *error) {
	if (!error || error->struct_size < sizeof *error) return NULL;
	size_t size = error->struct_size;
	memset(error, 0, sizeof *error);
	error->struct_size = size;
	return error;
}

static iex_status fail(struct iex_error *error, iex_status code, const char *message) {
	iex_error_set(error, code, message, NULL);
	return code;
}

/* ENTER is the head of every function that may fail. Out values are cleared before it. */
#define ENTER(out, name)                                                                    \
	error = usable(error);                                                                   \
	if (iex_forked) return fail(error, IEX_UNUSABLE, name ": " FORKED_MESSAGE);              \
	if (!(out)) return fail(error, IEX_INVALID_ARGUMENT, name ": " #out " is NULL")

#define CLEAR(out) \
	if (out) memset(out, 0, sizeof *(out))

/* An empty text begins nowhere: in Rust, for one, at address 1. */
static char *text(const char *start, size_t size) { return size ? (char *)start : ""; }

static struct ArrowArrayStream **streams(struct ArrowArrayStream *const *first, size_t n) {
	return n ? (struct ArrowArrayStream **)first : NULL;
}

int32_t iex_abi_version(void) { return IEX_ABI_VERSION; }

const char *iex_version(void) { return IEX_VERSION; }

void iex_string_free(char *text) { free(text); }

iex_status iex_engine_open(const char *options, size_t size, iex_engine **out, struct iex_error *error) {
	CLEAR(out);
	ENTER(out, "iex_engine_open");
	if (size && !options) return fail(error, IEX_INVALID_ARGUMENT, "iex_engine_open: options is NULL but size is not 0");
	return iexgo_engine_open(text(options, size), size, NULL, NULL, (uintptr_t *)out, error);
}

/* host_is_unused gives the host's contexts back when Go never sees them. */
static iex_status host_is_unused(iex_status status, const struct iex_storage *storage, const struct iex_reader *reader) {
	if (storage && storage->release) storage->release(storage->context);
	if (reader && reader->release) reader->release(reader->context);
	return status;
}

static iex_status checked_host(const char *options, size_t size, const struct iex_storage *storage,
                               const struct iex_reader *reader, iex_engine **out, struct iex_error *error) {
	ENTER(out, "iex_engine_open_with_host");
	if (size && !options)
		return fail(error, IEX_INVALID_ARGUMENT, "iex_engine_open_with_host: options is NULL but size is not 0");
	if (storage && storage->struct_size < sizeof *storage)
		return fail(error, IEX_INVALID_ARGUMENT, "iex_engine_open_with_host: the struct_size of storage is too small");
	if (reader && reader->struct_size < sizeof *reader)
		return fail(error, IEX_INVALID_ARGUMENT, "iex_engine_open_with_host: the struct_size of reader is too small");
	return IEX_OK;
}

iex_status iex_engine_open_with_host(const char *options, size_t size, const struct iex_storage *storage,
                                     const struct iex_reader *reader, iex_engine **out, struct iex_error *error) {
	CLEAR(out);
	iex_status status = checked_host(options, size, storage, reader, out, error);
	if (status != IEX_OK) return host_is_unused(status, storage, reader);
	return iexgo_engine_open(text(options, size), size, (void *)storage, (void *)reader, (uintptr_t *)out, usable(error));
}

iex_status iex_engine_close(iex_engine **engine, struct iex_error *error) {
	iex_engine *closing = engine ? *engine : NULL;
	CLEAR(engine);
	ENTER(engine, "iex_engine_close");
	return closing ? iexgo_engine_close((uintptr_t)closing, error) : IEX_OK;
}

iex_status iex_engine_stats(iex_engine *engine, char **json, struct iex_error *error) {
	CLEAR(json);
	ENTER(json, "iex_engine_stats");
	return iexgo_engine_stats((uintptr_t)engine, json, error);
}

/*
 * ENTER_OPERATION is ENTER for what starts an operation: inputs are taken over, whatever happens.
 */
#define ENTER_OPERATION(name, inputs, n)                                                                   \
	CLEAR(out);                                                                                             \
	error = usable(error);                                                                                  \
	if (iex_forked) return unused(fail(error, IEX_UNUSABLE, name ": " FORKED_MESSAGE), inputs, n);          \
	if (!out) return unused(fail(error, IEX_INVALID_ARGUMENT, name ": out is NULL"), inputs, n);            \
	if (!request) return unused(fail(error, IEX_INVALID_ARGUMENT, name ": request is NULL"), inputs, n);    \
	if (lacks_input(inputs, n))                                                                             \
		return unused(fail(error, IEX_INVALID_ARGUMENT, name ": an input stream is NULL"), inputs, n)

static int lacks_input(struct ArrowArrayStream *const *inputs, size_t n) {
	if (n && !inputs) return 1;
	for (size_t i = 0; i < n; i++)
		if (!inputs[i]) return 1;
	return 0;
}

/* unused releases inputs that Go never sees. */
static iex_status unused(iex_status status, struct ArrowArrayStream *const *inputs, size_t n) {
	for (size_t i = 0; inputs && i < n; i++)
		if (inputs[i] && inputs[i]->release) inputs[i]->release(inputs[i]);
	return status;
}

iex_status iex_scan_with_sets(iex_engine *engine, const char *request, size_t size, struct ArrowArrayStream *const *sets,
                              size_t n_sets, iex_stream **out, struct iex_error *error) {
	ENTER_OPERATION("iex_scan", sets, n_sets);
	return iexgo_scan((uintptr_t)engine, text(request, size), size, streams(sets, n_sets), n_sets, (uintptr_t *)out, error);
}

iex_status iex_scan(iex_engine *engine, const char *request, size_t size, iex_stream **out, struct iex_error *error) {
	return iex_scan_with_sets(engine, request, size, NULL, 0, out, error);
}

iex_status iex_plan_with_sets(iex_engine *engine, const char *request, size_t size, struct ArrowArrayStream *const *sets,
                              size_t n_sets, iex_stream **out, struct iex_error *error) {
	ENTER_OPERATION("iex_plan", sets, n_sets);
	return iexgo_plan((uintptr_t)engine, text(request, size), size, streams(sets, n_sets), n_sets, (uintptr_t *)out, error);
}

iex_status iex_plan(iex_engine *engine, const char *request, size_t size, iex_stream **out, struct iex_error *error) {
	return iex_plan_with_sets(engine, request, size, NULL, 0, out, error);
}

iex_status iex_sort(iex_engine *engine, struct ArrowArrayStream *input, const char *request, size_t size,
                    iex_stream **out, struct iex_error *error) {
	ENTER_OPERATION("iex_sort", &input, 1);
	return iexgo_sort((uintptr_t)engine, input, text(request, size), size, (uintptr_t *)out, error);
}

/* ---- What is not available yet: see docs/requests.md ---- */

/* NOT_YET is the body of an operation without an engine part. */
#define NOT_YET(name, inputs, n)                                                                               \
	(void)engine, (void)size;                                                                                   \
	ENTER_OPERATION(name, inputs, n);                                                                           \
	return unused(fail(error, IEX_UNSUPPORTED, name ": this version of the library cannot do this yet"), inputs, n)

iex_status iex_filter(iex_engine *engine, struct ArrowArrayStream *input, const char *request, size_t size,
                      iex_stream **out, struct iex_error *error) {
	NOT_YET("iex_filter", &input, 1);
}

iex_status iex_anti_join(iex_engine *engine, struct ArrowArrayStream *left, struct ArrowArrayStream *right,
                         const char *request, size_t size, iex_stream **out, struct iex_error *error) {
	struct ArrowArrayStream *inputs[] = {left, right};
	NOT_YET("iex_anti_join", inputs, 2);
}

iex_status iex_position_deletes(iex_engine *engine, const char *request, size_t size, iex_stream **out,
                                struct iex_error *error) {
	NOT_YET("iex_position_deletes", NULL, 0);
}

iex_status iex_write(iex_engine *engine, struct ArrowArrayStream *input, const char *request, size_t size,
                     iex_stream **out, struct iex_error *error) {
	NOT_YET("iex_write", &input, 1);
}

iex_status iex_rewrite(iex_engine *engine, const char *request, size_t size, iex_stream **out, struct iex_error *error) {
	NOT_YET("iex_rewrite", NULL, 0);
}

iex_status iex_write_manifest(iex_engine *engine, struct ArrowArrayStream *files, const char *request, size_t size,
                              iex_stream **out, struct iex_error *error) {
	NOT_YET("iex_write_manifest", &files, 1);
}

/* ---- Streams ---- */

iex_status iex_stream_schema(iex_stream *stream, struct ArrowSchema *out, struct iex_error *error) {
	CLEAR(out);
	ENTER(out, "iex_stream_schema");
	return iexgo_stream_schema((uintptr_t)stream, out, error);
}

iex_status iex_stream_next(iex_stream *stream, int64_t timeout_ms, struct ArrowArray *out, struct iex_error *error) {
	CLEAR(out);
	ENTER(out, "iex_stream_next");
	return iexgo_stream_next((uintptr_t)stream, timeout_ms, out, error);
}

iex_status iex_stream_cancel(iex_stream *stream, struct iex_error *error) {
	ENTER(stream, "iex_stream_cancel");
	return iexgo_stream_cancel((uintptr_t)stream, error);
}

iex_status iex_stream_stats(iex_stream *stream, char **json, struct iex_error *error) {
	CLEAR(json);
	ENTER(json, "iex_stream_stats");
	return iexgo_stream_stats((uintptr_t)stream, json, error);
}

iex_status iex_stream_release(iex_stream **stream, struct iex_error *error) {
	iex_stream *released = stream ? *stream : NULL;
	CLEAR(stream);
	ENTER(stream, "iex_stream_release");
	return released ? iexgo_stream_release((uintptr_t)released, error) : IEX_OK;
}

/* ---- ArrowArrayStream ---- */

static int exported_get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
	CLEAR(out);
	if (iex_forked) return EIO;
	return out ? iexgo_exported_schema(stream->private_data, out) : EINVAL;
}

static int exported_get_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
	CLEAR(out);
	if (iex_forked) return EIO;
	return out ? iexgo_exported_next(stream->private_data, out) : EINVAL;
}

static const char *exported_get_last_error(struct ArrowArrayStream *stream) {
	if (iex_forked) return FORKED_MESSAGE;
	return ((struct iex_exported *)stream->private_data)->last_error;
}

static void exported_release(struct ArrowArrayStream *stream) {
	struct iex_exported *exported = stream->private_data;
	stream->release = NULL;
	iex_released_put(exported);
}

int iex_stream_wrap(uintptr_t cell, struct ArrowArrayStream *out) {
	struct iex_exported *exported = calloc(1, sizeof *exported);
	if (!exported) return -1;
	exported->cell = cell;
	out->get_schema = exported_get_schema;
	out->get_next = exported_get_next;
	out->get_last_error = exported_get_last_error;
	out->release = exported_release;
	out->private_data = exported;
	return 0;
}

iex_status iex_stream_export(iex_stream *stream, struct ArrowArrayStream *out, struct iex_error *error) {
	CLEAR(out);
	ENTER(out, "iex_stream_export");
	return iexgo_stream_export((uintptr_t)stream, out, error);
}

iex_status iex_stream_error(struct ArrowArrayStream *stream, struct iex_error *error) {
	ENTER(stream, "iex_stream_error");
	if (stream->release != exported_release)
		return fail(error, IEX_INVALID_ARGUMENT,
		            "iex_stream_error: stream was released or is not one that iex_stream_export made");
	return iexgo_exported_error(stream->private_data, error);
}
