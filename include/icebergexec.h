/*
 * icebergexec.h - the C interface of icebergexec, an engine for Apache Iceberg tables.
 *
 *     iex_engine_open --> iex_scan --> iex_stream_next ... iex_stream_next --> iex_stream_release --> iex_engine_close
 *                              \                                                   /
 *                               `-> iex_stream_export --> ArrowArrayStream -------'
 *
 * Rows come out as structures of the Arrow C data and stream interfaces
 * (https://arrow.apache.org/docs/format/CDataInterface.html). Requests go in as JSON documents, which docs/requests.md
 * describes field by field. Link with -licebergexec (pkg-config icebergexec).
 *
 * A complete program (docs/examples has larger ones):
 *
 *     #include <icebergexec.h>
 *     #include <stdio.h>
 *     #include <string.h>
 *
 *     int main(void) {
 *         struct iex_error err = IEX_ERROR_INIT;
 *         iex_engine *engine = NULL;
 *         iex_stream *rows = NULL;
 *         const char *options = "{\"memory_limit\": \"256MiB\"}";
 *         const char *request = "{\"metadata_location\": \"/warehouse/t/metadata/v3.metadata.json\"}";
 *         iex_status status = iex_engine_open(options, strlen(options), &engine, &err);
 *         if (status == IEX_OK) status = iex_scan(engine, request, strlen(request), &rows, &err);
 *         while (status == IEX_OK || status == IEX_PENDING) {
 *             struct ArrowArray batch;
 *             status = iex_stream_next(rows, 100, &batch, &err); // waits at most 100 ms
 *             if (status == IEX_OK) {
 *                 printf("%lld rows\n", (long long)batch.length);
 *                 batch.release(&batch);
 *             }
 *         }
 *         if (status != IEX_END) fprintf(stderr, "%s\n", err.message);
 *         if (err.release) err.release(&err);
 *         iex_stream_release(&rows, NULL);
 *         iex_engine_close(&engine, NULL);
 *         return status == IEX_END ? 0 : 1;
 *     }
 *
 * RULES THAT HOLD FOR EVERY FUNCTION
 *
 * Status.      IEX_OK (0), a positive error code, or for iex_stream_next one of the negative IEX_PENDING and IEX_END.
 * Out values.  Need not be initialised: the library clears them before anything else, so after an error a handle is
 *              NULL and an Arrow structure's release is NULL. (struct iex_error is the exception, see there.)
 * Ownership.   What a function hands out is the caller's to release, and may be released in any order: batches, schemas
 *              and errors stay valid after their stream is released and after the engine is closed.
 * Threads.     Every function may be called from any thread. One engine may run many scans at the same time. One
 *              stream is read by one thread at a time; iex_stream_cancel and the stats functions may be called
 *              meanwhile. The release callback of a batch, schema, stream or error may be called from any thread; it
 *              is plain C that never waits for the engine.
 * Handles.     A handle names one object for the life of the process. A call with NULL, with a handle that was
 *              released, or with an address that never was a handle is IEX_INVALID_ARGUMENT; with a closed engine, or a
 *              stream of one, IEX_CANCELLED. It never crashes.
 * Strings.     UTF-8. Sizes are in bytes, without a terminating NUL; none is needed.
 * Fork.        The library does not survive fork(). In a child process every function returns IEX_UNUSABLE at once,
 *              with a message that says so; releasing what the parent exported stays allowed. Load the library after
 *              the fork, or start children by spawn or exec.
 * Signals.     The library installs no handler for SIGINT, SIGTERM or any other asynchronous signal.
 * Unloading.   dlclose has no effect.
 */
#ifndef ICEBERGEXEC_H
#define ICEBERGEXEC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The Arrow C data and stream interfaces, as their specification prints them ------------------------------- */

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
	const char *format;
	const char *name;
	const char *metadata;
	int64_t flags;
	int64_t n_children;
	struct ArrowSchema **children;
	struct ArrowSchema *dictionary;
	void (*release)(struct ArrowSchema *);
	void *private_data;
};

struct ArrowArray {
	int64_t length;
	int64_t null_count;
	int64_t offset;
	int64_t n_buffers;
	int64_t n_children;
	const void **buffers;
	struct ArrowArray **children;
	struct ArrowArray *dictionary;
	void (*release)(struct ArrowArray *);
	void *private_data;
};

#endif /* ARROW_C_DATA_INTERFACE */

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
	int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
	const char *(*get_last_error)(struct ArrowArrayStream *);
	void (*release)(struct ArrowArrayStream *);
	void *private_data;
};

#endif /* ARROW_C_STREAM_INTERFACE */

/* ---- Version --------------------------------------------------------------------------------------------------- */

/*
 * The ABI's version, (major << 16) | minor. The major number changes when a program compiled against an older header
 * would break, and is the number in the library's soname; the minor number when something is added. A program that
 * loads the library itself checks that the major number is its own and the minor number at least its own.
 */
#define IEX_ABI_MAJOR 1
#define IEX_ABI_MINOR 0
#define IEX_ABI_VERSION ((IEX_ABI_MAJOR << 16) | IEX_ABI_MINOR)

/* The version of the release that this header belongs to. */
#define IEX_VERSION "0.1.0"

/* iex_abi_version returns IEX_ABI_VERSION as the library was built with it. Works in a forked child. \since 1.0 */
int32_t iex_abi_version(void);

/* iex_version returns the library's version, such as "0.1.0"; static, never freed. Works in a forked child. \since 1.0 */
const char *iex_version(void);

/* ---- Status and errors ----------------------------------------------------------------------------------------- */

typedef int32_t iex_status;

/* Success, and the two outcomes of iex_stream_next that are neither a batch nor an error. */
#define IEX_OK 0
#define IEX_PENDING (-1) /* time is up; the work goes on, call again */
#define IEX_END (-2)     /* no more batches */

/*
 * Error codes. Numbers are assigned by hand, never changed and never reused. Beside each: what it means to the caller,
 * and the errno that the callbacks of an exported ArrowArrayStream return for it.
 */
#define IEX_INVALID_ARGUMENT 1   /* EINVAL: the request, an option or a handle is wrong; change it */
#define IEX_NOT_FOUND 2          /* ENOENT: a file, snapshot, reference or column does not exist */
#define IEX_MEMORY_LIMIT 3       /* ENOMEM: the memory limit is reached; the message names the consumers */
#define IEX_SPILL_FULL 4         /* ENOSPC: the spill disk or its limit is full; never used for memory */
#define IEX_CANCELLED 5          /* ECANCELED: the caller cancelled, or closed the engine */
#define IEX_CORRUPT 6            /* EIO: a file contradicts itself or the metadata that names it */
#define IEX_UNSUPPORTED 7        /* ENOSYS: valid, but not within this engine's abilities */
#define IEX_PERMISSION_DENIED 8  /* EACCES: storage refused access */
#define IEX_INTERNAL 9           /* EIO: a defect of the engine, or an I/O failure without a better code */
#define IEX_UNUSABLE 10          /* EIO: the engine met a defect before and must be closed, or this is a forked child */

/*
 * iex_error receives what went wrong. Every function takes a pointer to one, or NULL for a caller to whom the status is
 * enough. Initialise it with IEX_ERROR_INIT: struct_size tells the library how many bytes the caller has, and
 * nothing past them is written.
 *
 * A call that gets an error structure overwrites it: after success all fields but struct_size are zero; after an error
 * code, message and release are set. Release the previous content first (if (err.release) err.release(&err)), which
 * also makes the structure ready for the next call. The texts live until release.
 */
struct iex_error {
	size_t struct_size;                 /* set by the caller: sizeof(struct iex_error) */
	int32_t code;                       /* the status that the call returned */
	const char *message;                /* one sentence: operation, path, cause, and what to do */
	const char *detail;                 /* a JSON object of machine-readable facts, or NULL */
	void (*release)(struct iex_error *);
	void *private_data;
};

#define IEX_ERROR_INIT { sizeof(struct iex_error), 0, NULL, NULL, NULL, NULL }

/* iex_string_free frees a text that a function handed out through a char **; NULL is fine. \since 1.0 */
void iex_string_free(char *text);

/* ---- Engine ---------------------------------------------------------------------------------------------------- */

/* An engine: a memory budget, a spill directory and the operations that run within them. */
typedef struct iex_engine iex_engine;

/*
 * iex_engine_open makes an engine. options is a JSON object ("Engine options" in docs/requests.md); size 0 means all
 * defaults. The caller closes the engine.
 *
 * Errors: IEX_INVALID_ARGUMENT names the option, the value and what is allowed. \since 1.0
 */
iex_status iex_engine_open(const char *options, size_t size, iex_engine **out, struct iex_error *error);

/*
 * iex_engine_close ends an engine and sets the caller's pointer to NULL: it cancels every running call and stream,
 * waits until their work has ended, and deletes what they spilled. Streams that are still held then give
 * IEX_CANCELLED until they are released; batches stay valid until they are released. Closing NULL or a closed engine
 * is IEX_OK.
 *
 * Errors: IEX_INVALID_ARGUMENT for an address that never was an engine (the pointer is set to NULL all the same);
 * IEX_INTERNAL when cleaning up failed (the engine is closed all the same). \since 1.0
 */
iex_status iex_engine_close(iex_engine **engine, struct iex_error *error);

/*
 * iex_engine_stats writes a JSON object ("Engine statistics" in docs/requests.md): memory in use, now and at most so far,
 * bytes that exported batches hold, open streams. Free it with iex_string_free. \since 1.0
 */
iex_status iex_engine_stats(iex_engine *engine, char **json, struct iex_error *error);

/* ---- Storage and formats of the host --------------------------------------------------------------------------- */

/*
 * iex_storage lets the host open files where the engine does not, or in its own way: object stores with the host's
 * credentials, an archive, memory. The engine copies the structure; context goes to every callback.
 *
 * Rules for the callbacks. They are called from any thread, several at a time, also for one file. They return IEX_OK or
 * an error code; for an error they may fill the structure, which comes cleared: message (read before the next callback
 * of the same thread, so a buffer for each thread will do), and release if something is to be freed. out values come
 * cleared. A callback cannot be interrupted: cancelling an operation waits for the callbacks that run. A callback must
 * not call the library.
 *
 * create, write, finish, abort and remove may be NULL for storage that is only read.
 */
struct iex_storage {
	size_t struct_size;  /* set by the caller: sizeof(struct iex_storage) */
	const char *schemes; /* the URI schemes that it serves, such as "s3,gs"; NULL: every location, plain paths too */
	void *context;
	/* opens a file for reading. \since 1.0 */
	iex_status (*open)(void *context, const char *location, void **file, struct iex_error *error);
	/* tells the size of an open file. \since 1.0 */
	iex_status (*size)(void *context, void *file, int64_t *out, struct iex_error *error);
	/* reads at most size bytes from offset on; *read less than size is fine, 0 is the end. \since 1.0 */
	iex_status (*read_at)(void *context, void *file, int64_t offset, void *buffer, size_t size, size_t *read,
	                      struct iex_error *error);
	/* closes a file that open made; no other callback for it runs or follows. \since 1.0 */
	void (*close)(void *context, void *file);
	/* creates a file, which must not exist yet. \since 1.0 */
	iex_status (*create)(void *context, const char *location, void **file, struct iex_error *error);
	/* appends all size bytes to a file that create made. \since 1.0 */
	iex_status (*write)(void *context, void *file, const void *data, size_t size, struct iex_error *error);
	/* makes a created file complete and durable, and closes it, also when that fails. \since 1.0 */
	iex_status (*finish)(void *context, void *file, struct iex_error *error);
	/* closes and removes a created file that will not be finished. \since 1.0 */
	void (*abort)(void *context, void *file);
	/* removes a file. \since 1.0 */
	iex_status (*remove)(void *context, const char *location, struct iex_error *error);
	/* is called once, after the last use of context: when the engine is closed, or could not be opened. May be NULL.
	   \since 1.0 */
	void (*release)(void *context);
};

/*
 * iex_reader decodes data and delete files of formats that the engine does not decode, ORC above all. read makes out a
 * stream of all rows of the file, in the file's order; every field of its schema, at every level, has the field id that
 * the file gives it under the metadata key PARQUET:field_id. field_ids are the leaf columns that are needed, n of them;
 * NULL asks for all; the stream may have more. The engine applies deletes and filters. The rules of iex_storage hold.
 */
struct iex_reader {
	size_t struct_size; /* set by the caller: sizeof(struct iex_reader) */
	void *context;
	/* \since 1.0 */
	iex_status (*read)(void *context, const char *location, const char *format, const int32_t *field_ids, size_t n,
	                   struct ArrowArrayStream *out, struct iex_error *error);
	/* is called once, after the last use of context. May be NULL. \since 1.0 */
	void (*release)(void *context);
};

/*
 * iex_engine_open_with_host is iex_engine_open with storage and a reader of the host, either of which may be NULL.
 * Their release callbacks are called also when it fails. \since 1.0
 */
iex_status iex_engine_open_with_host(const char *options, size_t size, const struct iex_storage *storage,
                                     const struct iex_reader *reader, iex_engine **out, struct iex_error *error);

/* ---- Operations ------------------------------------------------------------------------------------------------ */

/*
 * Every operation returns a stream at once and works while the stream is read, so that a host stays responsive and can
 * cancel. What an operation hands out are rows, also where it made files: their descriptions are its rows.
 *
 * Inputs are ArrowArrayStreams of any producer. An operation takes its inputs over, also when it fails: they are left
 * released (release is NULL). A producer's get_next cannot be interrupted: cancelling waits for it.
 */

/* A stream of record batches that share one schema. */
typedef struct iex_stream iex_stream;

/*
 * iex_scan reads a table: the rows that survive its deletes and the request's filter, in file order. request is a JSON
 * object ("Scan" in docs/requests.md). It returns when the schema is known; reading starts with the first
 * iex_stream_next. The caller releases the stream.
 *
 * Errors: IEX_INVALID_ARGUMENT (the request), IEX_NOT_FOUND (metadata file, snapshot, reference, column),
 * IEX_UNSUPPORTED (a format version or type beyond this engine), IEX_CORRUPT, IEX_PERMISSION_DENIED. \since 1.0
 */
iex_status iex_scan(iex_engine *engine, const char *request, size_t size, iex_stream **out, struct iex_error *error);

/*
 * iex_plan lists the data files that a scan of a table would read, each with its deletes, in the order of the scan's
 * rows: one row a file, as soon as its manifest is read. request is a JSON object ("Plan" in docs/requests.md, which
 * also lists the columns). The column task holds what iex_scan takes in the member tasks of its request, so that one
 * process can plan and others read. The caller releases the stream.
 *
 * Errors: those of iex_scan. \since 1.0
 */
iex_status iex_plan(iex_engine *engine, const char *request, size_t size, iex_stream **out, struct iex_error *error);

/*
 * iex_scan_with_sets and iex_plan_with_sets are iex_scan and iex_plan for filters with many literals: in a node of the
 * filter, "set": i stands for the values of sets[i], a stream of batches with one column. n_sets is their number.
 * \since 1.0
 */
iex_status iex_scan_with_sets(iex_engine *engine, const char *request, size_t size, struct ArrowArrayStream *const *sets,
                              size_t n_sets, iex_stream **out, struct iex_error *error);
iex_status iex_plan_with_sets(iex_engine *engine, const char *request, size_t size, struct ArrowArrayStream *const *sets,
                              size_t n_sets, iex_stream **out, struct iex_error *error);

/*
 * iex_sort orders the rows of input, however many, and keeps rows with equal keys as they came; what does not fit in
 * memory goes to the spill directory. request is a JSON object ("Sort" in docs/requests.md).
 *
 * Errors: IEX_INVALID_ARGUMENT (the request, a column that input has not), IEX_UNSUPPORTED (a type without order).
 * While reading: IEX_SPILL_FULL, and what input's producer gave. \since 1.0
 */
iex_status iex_sort(iex_engine *engine, struct ArrowArrayStream *input, const char *request, size_t size,
                    iex_stream **out, struct iex_error *error);

/*
 * Operations that this version of the library does not have yet: they take their inputs over and return
 * IEX_UNSUPPORTED. Their signatures are final.
 *
 * iex_filter keeps the rows of input that match a filter. iex_anti_join keeps the rows of left whose key is not in
 * right; null matches null. iex_position_deletes reads a data file without the rows that position-delete files name.
 * iex_write writes the rows of input as data files, iex_rewrite replaces the files that rows are to be deleted from;
 * both return a row for each file made or replaced, and leave the commit to the caller. iex_write_manifest writes such
 * files as manifests, and a manifest list. \since 1.0
 */
iex_status iex_filter(iex_engine *engine, struct ArrowArrayStream *input, const char *request, size_t size,
                      iex_stream **out, struct iex_error *error);
iex_status iex_anti_join(iex_engine *engine, struct ArrowArrayStream *left, struct ArrowArrayStream *right,
                         const char *request, size_t size, iex_stream **out, struct iex_error *error);
iex_status iex_position_deletes(iex_engine *engine, const char *request, size_t size, iex_stream **out,
                                struct iex_error *error);
iex_status iex_write(iex_engine *engine, struct ArrowArrayStream *input, const char *request, size_t size,
                     iex_stream **out, struct iex_error *error);
iex_status iex_rewrite(iex_engine *engine, const char *request, size_t size, iex_stream **out, struct iex_error *error);
iex_status iex_write_manifest(iex_engine *engine, struct ArrowArrayStream *files, const char *request, size_t size,
                              iex_stream **out, struct iex_error *error);

/* ---- Streams --------------------------------------------------------------------------------------------------- */

/*
 * iex_stream_schema writes the schema of the stream's batches: a struct (format "+s") with one child for each column.
 * Iceberg field ids are in the metadata key PARQUET:field_id at every level. May be called any number of times. The
 * caller releases the schema. \since 1.0
 */
iex_status iex_stream_schema(iex_stream *stream, struct ArrowSchema *out, struct iex_error *error);

/*
 * iex_stream_next writes the next batch, or returns IEX_PENDING when timeout_ms milliseconds have passed without one:
 * the work goes on meanwhile, and the next call finds it further on. 0 asks without waiting; a negative timeout waits
 * without limit. IEX_END comes after the last batch and again at each later call. The caller releases the batch.
 *
 * Errors are final: each later call returns the same one. IEX_INVALID_ARGUMENT after iex_stream_export. \since 1.0
 */
iex_status iex_stream_next(iex_stream *stream, int64_t timeout_ms, struct ArrowArray *out, struct iex_error *error);

/*
 * iex_stream_cancel asks the stream to stop and returns at once. A waiting or later iex_stream_next, or get_next of the
 * exported stream, gives IEX_CANCELLED. May be called from any thread, any number of times. \since 1.0
 */
iex_status iex_stream_cancel(iex_stream *stream, struct iex_error *error);

/*
 * iex_stream_stats writes a JSON object ("Stream statistics" in docs/requests.md): batches and rows so far. Free it with
 * iex_string_free. \since 1.0
 */
iex_status iex_stream_stats(iex_stream *stream, char **json, struct iex_error *error);

/*
 * iex_stream_release gives the handle back and sets the caller's pointer to NULL. Unless the stream was exported it
 * also ends it: running work is cancelled and has ended when the call returns. NULL is IEX_OK. \since 1.0
 */
iex_status iex_stream_release(iex_stream **stream, struct iex_error *error);

/*
 * iex_stream_export turns the stream into an ArrowArrayStream for any consumer of that interface. From then on batches
 * come only out of it. The handle remains, for iex_stream_cancel and iex_stream_stats: release both, in any order.
 * Releasing the ArrowArrayStream cancels the stream's work and does not wait for its end (iex_engine_close does).
 * A stream can be exported once, and only before its first iex_stream_next.
 *
 * get_next waits without limit. Its return value is an errno, which says less than an error code: see
 * iex_stream_error. \since 1.0
 */
iex_status iex_stream_export(iex_stream *stream, struct ArrowArrayStream *out, struct iex_error *error);

/*
 * iex_stream_error tells the typed error of an ArrowArrayStream that iex_stream_export made, after one of its callbacks
 * failed: it fills error and returns its code, or IEX_OK when nothing has failed. IEX_INVALID_ARGUMENT for a stream of
 * another producer or a released one. \since 1.0
 */
iex_status iex_stream_error(struct ArrowArrayStream *stream, struct iex_error *error);

#ifdef __cplusplus
}
#endif

#endif /* ICEBERGEXEC_H */
