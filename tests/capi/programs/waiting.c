/*
 * Timeouts, cancel and close while a read waits: waiting METADATA_LOCATION. Needs a library with the tag iextest, which
 * makes every batch take as long as IEX_TEST_SLOW says.
 */
#include <pthread.h>

#include "check.h"

static const char *table;

static void next_returns_in_time(void) {
	iex_engine *engine = open_engine();
	iex_stream *stream = scan(engine, table);
	struct ArrowArray batch;
	setenv("IEX_TEST_SLOW", "300ms", 1);
	double start = seconds();
	CHECK_STATUS(iex_stream_next(stream, 50, &batch, &error), IEX_PENDING);
	CHECK(batch.release == NULL && error.message == NULL);
	double waited = seconds() - start;
	CHECK(waited > 0.04 && waited < 0.2);
	start = seconds();
	CHECK_STATUS(iex_stream_next(stream, 0, &batch, &error), IEX_PENDING);
	CHECK(seconds() - start < 0.05);
	/* The work goes on between the calls. */
	nanosleep(&(struct timespec){0, 350000000}, NULL);
	start = seconds();
	CHECK_STATUS(iex_stream_next(stream, 200, &batch, &error), IEX_OK);
	CHECK(seconds() - start < 0.15);
	batch.release(&batch);
	unsetenv("IEX_TEST_SLOW");
	CHECK(read_all(stream) > 0);
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

struct wait {
	iex_stream *stream;
	iex_status status;
	double ended;
	struct iex_error error;
};

static void *wait_without_limit(void *argument) {
	struct wait *w = argument;
	struct ArrowArray batch;
	w->status = iex_stream_next(w->stream, -1, &batch, &w->error);
	w->ended = seconds();
	return NULL;
}

enum interruption { by_cancel, by_release, by_close };

/* A read that waits without limit ends soon after another thread says so. */
static void a_waiting_read_is_interrupted(enum interruption how) {
	iex_engine *engine = open_engine();
	iex_stream *stream = scan(engine, table);
	struct wait w = {stream, 0, 0, IEX_ERROR_INIT};
	pthread_t thread;
	setenv("IEX_TEST_SLOW", "1h", 1);
	pthread_create(&thread, NULL, wait_without_limit, &w);
	nanosleep(&(struct timespec){0, 50000000}, NULL);
	double start = seconds();
	switch (how) {
	case by_cancel: CHECK_STATUS(iex_stream_cancel(stream, &error), IEX_OK); break;
	case by_release: CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK); break;
	case by_close: CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK); break;
	}
	CHECK(seconds() - start < 0.5);
	pthread_join(thread, NULL);
	CHECK(w.status == IEX_CANCELLED);
	CHECK(w.ended - start < 0.5);
	if (w.error.release) w.error.release(&w.error);
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
	unsetenv("IEX_TEST_SLOW");
}

int main(int argc, char **argv) {
	if (argc != 2) return 2;
	table = argv[1];
	next_returns_in_time();
	a_waiting_read_is_interrupted(by_cancel);
	a_waiting_read_is_interrupted(by_release);
	a_waiting_read_is_interrupted(by_close);
	return done();
}
