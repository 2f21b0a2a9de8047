#!/usr/bin/env bash
# Builds the shared library.
#
#   build/lib.sh                  build/out/libicebergexec.so with the system's C compiler, for this machine
#   build/lib.sh x86_64|aarch64   build/out/wheel-<arch>/libicebergexec.so against an old glibc, with the C compiler of the
#                                 ziglang package in .venv; for wheels
#
# TAGS adds build tags (iextest: the library that misbehaves on demand, for tests); OUT changes the output file.
set -eu
cd "$(dirname "$0")/.."
glibc=2.17 # what manylinux2014 promises
arch=${1:-}
out=build/out/${arch:+wheel-$arch/}libicebergexec.so # not out/x86_64: loaders look there first
case $arch in
'') ;;
x86_64) export GOARCH=amd64 ;;
aarch64) export GOARCH=arm64 ;;
*)
	echo "build/lib.sh: unknown architecture $arch; known are x86_64 and aarch64" >&2
	exit 2
	;;
esac
if [ -n "$arch" ]; then
	zig="$(pwd)/.venv/bin/python -m ziglang"
	export GOOS=linux CC="$zig cc -target $arch-linux-gnu.$glibc" CXX="$zig c++ -target $arch-linux-gnu.$glibc"
fi
export CGO_ENABLED=1
out=${OUT:-$out}
strip='-s -w' link_strip='-Wl,-s'
[ -z "${TAGS:-}" ] || strip='' link_strip='' # tools that look for errors want names
mkdir -p "$(dirname "$out")"

# Go links anew each time, for half a minute, so look first whether anything has
# changed. The stamp says how the library was built and, by its time, when that
# began; removed files show in the time of their folders.
how="$(go version; go env CC CGO_CFLAGS CGO_LDFLAGS GOFLAGS) tags: ${TAGS:-}"
stamp=$out.stamp
if [ -f "$out" ] && [ -f "$stamp" ] && [ "$how" = "$(cat "$stamp")" ] &&
	[ -z "$(find go.mod go.sum include bridge capi engine spill build/*.sh build/*.map \
		-name testdata -prune -o ! -name '*_test.go' -newer "$stamp" -print -quit)" ]; then
	exit 0
fi
printf '%s\n' "$how" >"$stamp.new"
echo "Building the library (a few minutes the first time) ..."
go build -buildmode=c-shared -trimpath -buildvcs=false ${TAGS:+-tags "$TAGS"} \
	-ldflags "$strip -extldflags '$link_strip -Wl,--version-script=$(pwd)/build/libicebergexec.map -Wl,-soname,libicebergexec.so.1'" \
	-o "$out" ./capi
rm -f "${out%.so}.h" # cgo's own header; the public one is include/icebergexec.h
build/symbols.sh "$out" ${arch:+$glibc}
mv "$stamp.new" "$stamp"
