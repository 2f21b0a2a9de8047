#include "pages.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

#include "memory.h"

/* A cached piece begins with its links: in the list of its class, and in the list by age. */
struct piece {
	struct piece *next, **link;
	struct piece *younger, *older;
	size_t capacity;
};

/*
 * Classes: four sizes for each power of two, so that a piece is at most a quarter larger than asked for, and pages past
 * what is used are never touched.
 */
#define CLASSES 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct piece *classes[CLASSES];
static struct piece *youngest, *oldest;
static size_t cached, cached_most;

static int log2_of(size_t n) { return 63 - __builtin_clzll((unsigned long long)n); }

static size_t round_to_class(size_t size) {
	size_t step = (size_t)1 << (log2_of(size) - 2);
	return (size + step - 1) & ~(step - 1);
}

static int class_of(size_t capacity) {
	int power = log2_of(capacity);
	return power * 4 + (int)(capacity >> (power - 2) & 3);
}

static void remove_locked(struct piece *piece) {
	*piece->link = piece->next;
	if (piece->next) piece->next->link = piece->link;
	*(piece->younger ? &piece->younger->older : &youngest) = piece->older;
	*(piece->older ? &piece->older->younger : &oldest) = piece->younger;
	cached -= piece->capacity;
}

/* evict_locked takes the oldest pieces out until no more than most is cached, and returns them as a list. */
static struct piece *evict_locked(size_t most) {
	struct piece *evicted = NULL;
	while (cached > most) {
		struct piece *piece = oldest;
		remove_locked(piece);
		piece->next = evicted;
		evicted = piece;
	}
	return evicted;
}

static void unmap(struct piece *list) {
	while (list) {
		struct piece *next = list->next;
		munmap(list, list->capacity);
		list = next;
	}
}

void *iex_pages_take(size_t size, size_t *capacity, int *used) {
	if (size > SIZE_MAX / 2) return NULL;
	*capacity = round_to_class(size);
	pthread_mutex_lock(&lock);
	struct piece *piece = classes[class_of(*capacity)];
	if (piece) remove_locked(piece);
	pthread_mutex_unlock(&lock);
	*used = piece != NULL;
	if (piece) return piece;
	void *start = mmap(NULL, *capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return start == MAP_FAILED ? NULL : start;
}

void iex_pages_give(void *start, size_t capacity) {
	if (iex_forked) {
		munmap(start, capacity);
		return;
	}
	struct piece *piece = start;
	pthread_mutex_lock(&lock);
	struct piece **class = &classes[class_of(capacity)];
	*piece = (struct piece){.next = *class, .link = class, .older = youngest, .capacity = capacity};
	if (piece->next) piece->next->link = &piece->next;
	*class = piece;
	*(youngest ? &youngest->younger : &oldest) = piece;
	youngest = piece;
	cached += capacity;
	struct piece *evicted = evict_locked(cached_most);
	pthread_mutex_unlock(&lock);
	unmap(evicted);
}

void iex_pages_keep(size_t most) {
	pthread_mutex_lock(&lock);
	cached_most = most;
	struct piece *evicted = evict_locked(most);
	pthread_mutex_unlock(&lock);
	unmap(evicted);
}

void iex_pages_flush(void) {
	pthread_mutex_lock(&lock);
	struct piece *evicted = evict_locked(0);
	pthread_mutex_unlock(&lock);
	unmap(evicted);
}
