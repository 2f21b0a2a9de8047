/* What the C test programs share: checks that say where and why, and the usual first steps. */
#ifndef ICEBERGEXEC_TESTS_CHECK_H
#define ICEBERGEXEC_TESTS_CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "icebergexec.h"

static int failures;

#define CHECK(condition)                                                             \
	do {                                                                              \
		if (!(condition)) {                                                           \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);   \
			failures++;                                                               \
		}                                                                             \
	} while (0)

/* CHECK_STATUS also shows the error's message when the status is another one. */
#define CHECK_STATUS(call, want)                                                                        \
	do {                                                                                                 \
		iex_status got_ = (call);                                                                        \
		if (got_ != (want)) {                                                                            \
			fprintf(stderr, "%s:%d: %s gave %d, want %d (%s)\n", __FILE__, __LINE__, #call, (int)got_, \
			        (int)(want), error.message ? error.message : "no message");                         \
			failures++;                                                                                  \
		}                                                                                                \
	} while (0)

#define CHECK_TEXT(text, part)                                                                               \
	do {                                                                                                      \
		const char *text_ = (text);                                                                           \
		if (!text_ || !strstr(text_, (part))) {                                                               \
			fprintf(stderr, "%s:%d: \"%s\" does not say \"%s\"\n", __FILE__, __LINE__, text_ ? text_ : "NULL", \
			        (part));                                                                                  \
			failures++;                                                                                       \
		}                                                                                                     \
	} while (0)

/* The error structure of every call; CHECK_STATUS shows it. */
static struct iex_error error = IEX_ERROR_INIT;

static inline void clear_error(void) {
	if (error.release) error.release(&error);
}

/* open_engine opens an engine with the options in the environment. */
static inline iex_engine *open_engine(void) {
	iex_engine *engine = NULL;
	const char *options = getenv("IEX_OPTIONS");
	CHECK_STATUS(iex_engine_open(options, options ? strlen(options) : 0, &engine, &error), IEX_OK);
	return engine;
}

/* scan starts a scan of all rows of a table; location must not need JSON escapes. */
static inline iex_stream *scan(iex_engine *engine, const char *location) {
	char request[4096];
	iex_stream *stream = NULL;
	snprintf(request, sizeof request, "{\"metadata_location\": \"%s\", \"batch_rows\": 3}", location);
	CHECK_STATUS(iex_scan(engine, request, strlen(request), &stream, &error), IEX_OK);
	return stream;
}

/* read_all reads a stream to its end and returns its number of rows. */
static inline int64_t read_all(iex_stream *stream) {
	int64_t rows = 0;
	struct ArrowArray batch;
	iex_status status;
	while ((status = iex_stream_next(stream, -1, &batch, &error)) == IEX_OK) {
		rows += batch.length;
		batch.release(&batch);
	}
	CHECK_STATUS(status, IEX_END);
	return rows;
}

static inline double seconds(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* member reads an integer member of a flat JSON object; -1 when there is none. */
static inline int64_t member(const char *json, const char *name) {
	char key[64];
	snprintf(key, sizeof key, "\"%s\":", name);
	const char *at = json ? strstr(json, key) : NULL;
	return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

static inline int64_t engine_stat(iex_engine *engine, const char *name) {
	char *json = NULL;
	CHECK_STATUS(iex_engine_stats(engine, &json, &error), IEX_OK);
	int64_t value = member(json, name);
	iex_string_free(json);
	return value;
}

static inline int done(void) {
	clear_error();
	if (failures) fprintf(stderr, "%d checks failed\n", failures);
	return failures != 0;
}

#endif
