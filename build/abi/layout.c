/* Prints what a program that was compiled against icebergexec.h relies on: numbers, sizes and offsets. */
#include <stddef.h>
#include <stdio.h>

#include "icebergexec.h"

#define NUMBER(name) printf("%s = %ld\n", #name, (long)(name))
#define STRUCT(type) printf("%s: %zu bytes\n", #type, sizeof(type))
#define FIELD(type, field) printf("%s.%s at %zu\n", #type, #field, offsetof(type, field))

int main(void) {
	NUMBER(IEX_ABI_VERSION);
	NUMBER(IEX_OK);
	NUMBER(IEX_PENDING);
	NUMBER(IEX_END);
	NUMBER(IEX_INVALID_ARGUMENT);
	NUMBER(IEX_NOT_FOUND);
	NUMBER(IEX_MEMORY_LIMIT);
	NUMBER(IEX_SPILL_FULL);
	NUMBER(IEX_CANCELLED);
	NUMBER(IEX_CORRUPT);
	NUMBER(IEX_UNSUPPORTED);
	NUMBER(IEX_PERMISSION_DENIED);
	NUMBER(IEX_INTERNAL);
	NUMBER(IEX_UNUSABLE);

	STRUCT(struct iex_error);
	FIELD(struct iex_error, struct_size);
	FIELD(struct iex_error, code);
	FIELD(struct iex_error, message);
	FIELD(struct iex_error, detail);
	FIELD(struct iex_error, release);
	FIELD(struct iex_error, private_data);

	STRUCT(struct iex_storage);
	FIELD(struct iex_storage, struct_size);
	FIELD(struct iex_storage, schemes);
	FIELD(struct iex_storage, context);
	FIELD(struct iex_storage, open);
	FIELD(struct iex_storage, size);
	FIELD(struct iex_storage, read_at);
	FIELD(struct iex_storage, close);
	FIELD(struct iex_storage, create);
	FIELD(struct iex_storage, write);
	FIELD(struct iex_storage, finish);
	FIELD(struct iex_storage, abort);
	FIELD(struct iex_storage, remove);
	FIELD(struct iex_storage, release);

	STRUCT(struct iex_reader);
	FIELD(struct iex_reader, struct_size);
	FIELD(struct iex_reader, context);
	FIELD(struct iex_reader, read);
	FIELD(struct iex_reader, release);

	STRUCT(struct ArrowSchema);
	STRUCT(struct ArrowArray);
	STRUCT(struct ArrowArrayStream);
	return 0;
}
