/*
 * A child of fork(): every call is an error at once, releasing is allowed: forked METADATA_LOCATION
 */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

int main(int argc, char **argv) {
	if (argc != 2) return 2;
	iex_engine *engine = open_engine();
	iex_stream *stream = scan(engine, argv[1]), *exporting = scan(engine, argv[1]);
	struct ArrowArray batch, other;
	struct ArrowSchema schema;
	struct ArrowArrayStream rows;
	CHECK_STATUS(iex_stream_next(stream, -1, &batch, &error), IEX_OK);
	CHECK_STATUS(iex_stream_schema(stream, &schema, &error), IEX_OK);
	CHECK_STATUS(iex_stream_export(exporting, &rows, &error), IEX_OK);

	pid_t child = fork();
	if (child == 0) {
		alarm(5); /* a hang is a failure */
		double start = seconds();
		iex_engine *second;
		char *json;
		CHECK(iex_abi_version() == IEX_ABI_VERSION);
		CHECK_STATUS(iex_stream_next(stream, -1, &other, &error), IEX_UNUSABLE);
		CHECK(other.release == NULL);
		CHECK_TEXT(error.message, "spawn or forkserver");
		clear_error();
		CHECK_STATUS(iex_engine_open(NULL, 0, &second, &error), IEX_UNUSABLE);
		clear_error();
		CHECK_STATUS(iex_engine_stats(engine, &json, &error), IEX_UNUSABLE);
		clear_error();
		CHECK(rows.get_next(&rows, &other) == EIO);
		CHECK_TEXT(rows.get_last_error(&rows), "spawn or forkserver");
		rows.release(&rows);
		batch.release(&batch);
		schema.release(&schema);
		CHECK_STATUS(iex_stream_release(&stream, &error), IEX_UNUSABLE);
		CHECK(stream == NULL);
		clear_error();
		CHECK_STATUS(iex_engine_close(&engine, &error), IEX_UNUSABLE);
		CHECK(engine == NULL);
		CHECK(seconds() - start < 1);
		_exit(done());
	}
	int status = 0;
	waitpid(child, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);

	/* The parent has not noticed. */
	batch.release(&batch);
	schema.release(&schema);
	CHECK(read_all(stream) > 0);
	rows.release(&rows);
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	CHECK_STATUS(iex_stream_release(&exporting, &error), IEX_OK);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
	return done();
}
