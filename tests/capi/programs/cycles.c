/*
 * Opening, scanning and closing many times leaves nothing behind: cycles METADATA_LOCATION TIMES
 */
#include <dirent.h>

#include "check.h"

static int entries(const char *path) {
	DIR *directory = opendir(path);
	int n = 0;
	if (!directory) return -1;
	while (readdir(directory)) n++;
	closedir(directory);
	return n;
}

static long resident_kib(void) {
	char line[256];
	long kib = -1;
	FILE *status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof line, status)) sscanf(line, "VmRSS: %ld", &kib);
	if (status) fclose(status);
	return kib;
}

static void cycle(const char *table) {
	iex_engine *engine = open_engine();
	iex_stream *stream = scan(engine, table);
	CHECK(read_all(stream) >= 0);
	CHECK_STATUS(iex_stream_release(&stream, &error), IEX_OK);
	CHECK(engine_stat(engine, "allocated_bytes") == 0);
	CHECK_STATUS(iex_engine_close(&engine, &error), IEX_OK);
}

int main(int argc, char **argv) {
	if (argc != 3) return 2;
	int times = atoi(argv[2]);
	for (int i = 0; i < times / 10; i++) cycle(argv[1]);
	int files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
	long before = resident_kib();
	for (int i = 0; i < times; i++) cycle(argv[1]);
	long after = resident_kib();
	CHECK(entries("/proc/self/fd") == files);
	CHECK(entries("/proc/self/task") < threads + times / 10); /* the Go scheduler adds some when the machine is busy */
	printf("%d cycles: %ld KiB before, %ld KiB after\n", times, before, after);
	CHECK(after - before < 8 << 10);
	return done();
}
