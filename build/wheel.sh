#!/usr/bin/env bash
# Builds dist/icebergexec-*.whl for this machine (or: build/wheel.sh x86_64|aarch64) and tests it in an environment of
# its own. The library is built against an old glibc; its tag is what build/symbols.sh has proved.
set -eu
cd "$(dirname "$0")/.."
arch=${1:-$(uname -m)}
build/lib.sh "$arch"
platform=manylinux_2_17_$arch
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/icebergexec/lib" dist
cp -r python/icebergexec/. "$stage/icebergexec/"
cp python/pyproject.toml python/setup.py python/README.md LICENSE "$stage/"
cp "build/out/wheel-$arch/libicebergexec.so" "$stage/icebergexec/lib/"
.venv/bin/python build/notices.py "$stage/notices"
mv "$stage/notices/NOTICES.txt" "$stage/" # next to LICENSE, from where it goes into the wheel's metadata
mv "$stage/notices/sbom.cdx.json" "$stage/icebergexec/lib/"
find "$stage" -name __pycache__ -prune -exec rm -rf {} +
rm -f dist/icebergexec-*"$arch".whl
(cd "$stage" && ICEBERGEXEC_WHEEL_PLATFORM=$platform "$OLDPWD/.venv/bin/python" -m build --wheel --no-isolation --outdir "$OLDPWD/dist" . >"$stage/log" 2>&1) ||
	{ cat "$stage/log" >&2; exit 1; }
wheel=$(ls dist/icebergexec-*"$arch".whl)
echo "$wheel: $(stat -c %s "$wheel") bytes"
if [ "$arch" = "$(uname -m)" ]; then
	build/test-wheel.sh "$wheel"
else
	echo "built for $arch: not tested on this machine"
fi
