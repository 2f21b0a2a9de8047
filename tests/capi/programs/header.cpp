// The header is C++, too, and may be included twice.
#include "icebergexec.h"
#include "icebergexec.h"

int main() {
	struct iex_error error = IEX_ERROR_INIT;
	return error.code + (iex_abi_version() == IEX_ABI_VERSION ? 0 : 1);
}
