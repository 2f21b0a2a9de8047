/* Import of foreign Arrow streams: calls of the callbacks that other producers supply. */
#ifndef ICEBERGEXEC_BRIDGE_IMPORT_H
#define ICEBERGEXEC_BRIDGE_IMPORT_H

#include "icebergexec.h"

#pragma GCC visibility push(hidden) /* not part of the library's interface */

/* iex_import_stream moves a stream to memory of ours; NULL when out of memory or when it is released already. */
struct ArrowArrayStream *iex_import_stream(struct ArrowArrayStream *from);
int iex_import_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out);
int iex_import_next(struct ArrowArrayStream *stream, struct ArrowArray *out);
const char *iex_import_error(struct ArrowArrayStream *stream);
/* iex_import_end releases a stream that iex_import_stream returned. */
void iex_import_end(struct ArrowArrayStream *stream);

void iex_import_release_schema(struct ArrowSchema *schema);
/* iex_import_keep moves an array to memory of ours, for as long as its buffers are used; NULL when out of memory. */
struct ArrowArray *iex_import_keep(struct ArrowArray *from);
/* iex_import_drop releases an array that iex_import_keep returned. */
void iex_import_drop(struct ArrowArray *array);
void iex_import_release_array(struct ArrowArray *array);

#pragma GCC visibility pop

#endif
