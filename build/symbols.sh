#!/usr/bin/env bash
# Checks what a built library exports and needs:
#   build/symbols.sh LIBRARY [GLIBC]
# It may export iex_* only, must have its soname, may need libc's own libraries only, and with GLIBC given no symbol of
# a later version.
set -eu
library=$1 most=${2:-}
fail() {
	printf '%s: %s\n' "$library" "$1" >&2
	exit 1
}
foreign=$(nm -D --defined-only "$library" | awk '{print $NF}' | grep -v '^iex_' || true)
[ -z "$foreign" ] || fail "exports symbols that are not iex_*: $(echo $foreign)"
readelf -d "$library" | grep -q 'SONAME.*\[libicebergexec\.so\.1\]' || fail "its soname is not libicebergexec.so.1"
needs=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -Ev '^(libc|libpthread|libdl|libm|librt|libresolv|ld-linux.*)\.so' || true)
[ -z "$needs" ] || fail "needs libraries other than libc's: $(echo $needs)"
glibc=$(objdump -T "$library" | sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -Vu | tail -n 1)
if [ -n "$most" ]; then
	[ "$(printf '%s\n%s\n' "$glibc" "$most" | sort -V | tail -n 1)" = "$most" ] ||
		fail "needs GLIBC_$glibc, more than GLIBC_$most: $(objdump -T "$library" | grep "GLIBC_$glibc" | awk '{print $NF}' | head -n 5 | tr '\n' ' ')"
fi
printf '%s: %s functions, %s bytes, needs GLIBC_%s\n' "$library" \
	"$(nm -D --defined-only "$library" | wc -l)" "$(stat -c %s "$library")" "$glibc"
