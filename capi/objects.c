/* The C-owned objects behind the interface: handles, errors, and the queue of released streams. */
#include "shim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

extern volatile int iex_forked;

/* ---- handles ---- */

#define CELLS_PER_SLAB 4096

static pthread_mutex_t cells_lock = PTHREAD_MUTEX_INITIALIZER;
static char *slab;
static int64_t cells;

/* Slabs are chained through their first bytes, so that leak checkers see that they are kept on purpose. */
uintptr_t iex_cell_new(void) {
	pthread_mutex_lock(&cells_lock);
	size_t at = sizeof(char *) + (size_t)(cells % CELLS_PER_SLAB);
	if (at == sizeof(char *)) {
		char *fresh = calloc(1, sizeof(char *) + CELLS_PER_SLAB);
		if (!fresh) {
			pthread_mutex_unlock(&cells_lock);
			return 0;
		}
		memcpy(fresh, &slab, sizeof slab);
		slab = fresh;
	}
	uintptr_t cell = (uintptr_t)(slab + at);
	cells++;
	pthread_mutex_unlock(&cells_lock);
	return cell;
}

int64_t iex_cells(void) {
	pthread_mutex_lock(&cells_lock);
	int64_t n = cells;
	pthread_mutex_unlock(&cells_lock);
	return n;
}

/* ---- errors ---- */

/* An error's texts: message, NUL, detail, NUL in one allocation. */
static void release_error(struct iex_error *error) {
	free(error->private_data);
	size_t size = error->struct_size;
	memset(error, 0, sizeof *error);
	error->struct_size = size;
}

void iex_error_set(struct iex_error *error, int32_t code, const char *message, const char *detail) {
	if (!error) return;
	size_t message_size = strlen(message) + 1, detail_size = detail ? strlen(detail) + 1 : 0;
	error->code = code;
	error->release = release_error;
	char *text = malloc(message_size + detail_size);
	if (!text) {
		error->message = "the system has no memory left for the error message";
		return;
	}
	memcpy(text, message, message_size);
	if (detail) memcpy(text + message_size, detail, detail_size);
	error->message = text;
	error->detail = detail ? text + message_size : NULL;
	error->private_data = text;
}

/* ---- released streams ----
 *
 * A consumer may release an ArrowArrayStream on any thread, also one that must not wait; so release only leaves a note
 * here, and a goroutine ends the stream.
 */

static pthread_mutex_t released_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released_any = PTHREAD_COND_INITIALIZER;
static struct iex_exported *released;

void iex_released_put(struct iex_exported *exported) {
	if (iex_forked) return; /* its goroutines stayed in the parent, and so may have the lock */
	pthread_mutex_lock(&released_lock);
	exported->next = released;
	released = exported;
	pthread_cond_signal(&released_any);
	pthread_mutex_unlock(&released_lock);
}

struct iex_exported *iex_released_wait(void) {
	pthread_mutex_lock(&released_lock);
	while (!released) pthread_cond_wait(&released_any, &released_lock);
	struct iex_exported *exported = released;
	released = exported->next;
	pthread_mutex_unlock(&released_lock);
	return exported;
}

void iex_exported_fail(struct iex_exported *exported, const char *message) {
	free(exported->last_error);
	exported->last_error = strdup(message);
}

void iex_exported_free(struct iex_exported *exported) {
	free(exported->last_error);
	free(exported);
}

void iex_input_release(struct ArrowArrayStream *input) {
	if (input->release) input->release(input);
}

void iex_trim_heap(void) {
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
