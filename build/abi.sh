#!/usr/bin/env bash
# Compares the C interface with its baseline in build/abi: what the library exports, and the numbers, sizes and offsets
# that programs compiled against the header rely on.
#   build/abi.sh LIBRARY            fails when something that was there is gone or has moved, or is new and not recorded
#   build/abi.sh LIBRARY --record   writes the baseline, and the header as programs of today see it
set -eu
cd "$(dirname "$0")/.."
library=$1 mode=${2:-}
baseline=build/abi/baseline.txt
now=$(mktemp -d)
trap 'rm -rf "$now"' EXIT
"${CC:-cc}" -std=c11 -Iinclude build/abi/layout.c -o "$now/layout"
{
	"$now/layout"
	nm -D --defined-only "$library" | awk '{print "function " $NF}' | LC_ALL=C sort
} >"$now/baseline.txt"
if [ "$mode" = --record ]; then
	cp "$now/baseline.txt" "$baseline"
	cp include/icebergexec.h build/abi/icebergexec.h
	exit 0
fi
gone=$(grep -Fxv -f "$now/baseline.txt" "$baseline" || true)
new=$(grep -Fxv -f "$baseline" "$now/baseline.txt" || true)
if [ -n "$gone" ]; then
	printf 'The C interface has lost or moved (programs compiled before would break):\n%s\n' "$gone" >&2
	exit 1
fi
if [ -n "$new" ]; then
	printf 'The C interface has grown; raise IEX_ABI_MINOR if it was released before, then run build/abi.sh %s --record:\n%s\n' \
		"$library" "$new" >&2
	exit 1
fi
