#include "export.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Where empty buffers point: readable, zero, and enough for one offset. */
static _Alignas(IEX_ALIGNMENT) const char zeros[IEX_ALIGNMENT];

/* The head of the one allocation; the tables of the tree follow it. */
struct tree {
	_Atomic int64_t refs; /* structures that are not released */
};

static void tree_drop(struct tree *tree) {
	if (atomic_fetch_sub(&tree->refs, 1) == 1) free(tree);
}

/* ---- arrays: tree | nodes | buffer pointers | held blocks | child pointers ---- */

struct array_node {
	struct ArrowArray array;
	struct tree *tree;
	struct iex_block **held; /* the blocks of this array's buffers, NULL where a buffer has none */
	int64_t n_held;
};

static void release_array(struct ArrowArray *array) {
	struct array_node *node = array->private_data;
	for (int64_t i = 0; i < array->n_children; i++)
		if (array->children[i]->release) array->children[i]->release(array->children[i]);
	if (array->dictionary && array->dictionary->release) array->dictionary->release(array->dictionary);
	for (int64_t i = 0; i < node->n_held; i++)
		if (node->held[i]) iex_block_release(node->held[i]);
	array->release = NULL;
	tree_drop(node->tree);
}

/* hold_buffers returns 0, or 1 + the index of a buffer that cannot be handed out as it is; then nothing is held. */
static int64_t hold_buffers(const struct iex_flat_buffer *buffers, int64_t n, const void **pointers,
                            struct iex_block **held) {
	for (int64_t i = 0; i < n; i++) {
		if (buffers[i].kind == IEX_BUFFER_EMPTY) pointers[i] = zeros;
		if (buffers[i].kind != IEX_BUFFER_BLOCK) continue;
		if (buffers[i].address % IEX_ALIGNMENT == 0) held[i] = iex_block_hold(buffers[i].allocation);
		if (!held[i]) {
			for (int64_t j = 0; j < i; j++)
				if (held[j]) iex_block_release(held[j]);
			return 1 + i;
		}
		pointers[i] = (const void *)buffers[i].address;
	}
	return 0;
}

int64_t iex_export_array(const struct iex_flat_array *arrays, int64_t n_arrays, const struct iex_flat_buffer *buffers,
                         int64_t n_buffers, const int64_t *children, int64_t n_children, struct ArrowArray *out) {
	struct tree *tree =
	    calloc(1, sizeof *tree + (size_t)n_arrays * sizeof(struct array_node) +
	                  (size_t)n_buffers * (sizeof(void *) + sizeof(struct iex_block *)) +
	                  (size_t)n_children * sizeof(struct ArrowArray *));
	if (!tree) return -1;
	struct array_node *nodes = (struct array_node *)(tree + 1);
	const void **pointers = (const void **)(nodes + n_arrays);
	struct iex_block **held = (struct iex_block **)(pointers + n_buffers);
	struct ArrowArray **child_pointers = (struct ArrowArray **)(held + n_buffers);

	int64_t unheld = hold_buffers(buffers, n_buffers, pointers, held);
	if (unheld) {
		free(tree);
		return unheld;
	}
	for (int64_t i = 0; i < n_children; i++) child_pointers[i] = &nodes[children[i]].array;
	for (int64_t i = 0; i < n_arrays; i++) {
		const struct iex_flat_array *flat = &arrays[i];
		struct array_node *node = &nodes[i];
		node->tree = tree;
		node->held = held + flat->first_buffer;
		node->n_held = flat->buffers;
		node->array = (struct ArrowArray){
		    .length = flat->length,
		    .null_count = flat->null_count,
		    .offset = flat->offset,
		    .n_buffers = flat->buffers,
		    .n_children = flat->children,
		    .buffers = flat->buffers ? pointers + flat->first_buffer : NULL,
		    .children = flat->children ? child_pointers + flat->first_child : NULL,
		    .dictionary = flat->dictionary ? &nodes[flat->dictionary].array : NULL,
		    .release = release_array,
		    .private_data = node,
		};
	}
	atomic_store(&tree->refs, n_arrays);
	*out = nodes[0].array;
	return 0;
}

/* ---- schemas: tree | nodes | child pointers | text ---- */

struct schema_node {
	struct ArrowSchema schema;
	struct tree *tree;
};

static void release_schema(struct ArrowSchema *schema) {
	struct schema_node *node = schema->private_data;
	for (int64_t i = 0; i < schema->n_children; i++)
		if (schema->children[i]->release) schema->children[i]->release(schema->children[i]);
	if (schema->dictionary && schema->dictionary->release) schema->dictionary->release(schema->dictionary);
	schema->release = NULL;
	tree_drop(node->tree);
}

static const char *text_at(const char *text, int64_t offset) { return offset < 0 ? NULL : text + offset; }

int64_t iex_export_schema(const struct iex_flat_field *fields, int64_t n_fields, const int64_t *children,
                          int64_t n_children, const char *text, int64_t text_size, struct ArrowSchema *out) {
	struct tree *tree = calloc(1, sizeof *tree + (size_t)n_fields * sizeof(struct schema_node) +
	                                  (size_t)n_children * sizeof(struct ArrowSchema *) + (size_t)text_size);
	if (!tree) return -1;
	struct schema_node *nodes = (struct schema_node *)(tree + 1);
	struct ArrowSchema **child_pointers = (struct ArrowSchema **)(nodes + n_fields);
	char *copy = (char *)(child_pointers + n_children);
	memcpy(copy, text, (size_t)text_size);

	for (int64_t i = 0; i < n_children; i++) child_pointers[i] = &nodes[children[i]].schema;
	for (int64_t i = 0; i < n_fields; i++) {
		const struct iex_flat_field *flat = &fields[i];
		struct schema_node *node = &nodes[i];
		node->tree = tree;
		node->schema = (struct ArrowSchema){
		    .format = text_at(copy, flat->format),
		    .name = text_at(copy, flat->name),
		    .metadata = text_at(copy, flat->metadata),
		    .flags = flat->flags,
		    .n_children = flat->children,
		    .children = flat->children ? child_pointers + flat->first_child : NULL,
		    .dictionary = flat->dictionary ? &nodes[flat->dictionary].schema : NULL,
		    .release = release_schema,
		    .private_data = node,
		};
	}
	atomic_store(&tree->refs, n_fields);
	*out = nodes[0].schema;
	return 0;
}
