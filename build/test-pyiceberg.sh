#!/usr/bin/env bash
# pyiceberg's own unit tests, without and with icebergexec enabled. They come with its source distribution, which is
# fetched here and kept in build/cache, as is an environment with what they need.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^pyiceberg\[.*\]==//p' build/requirements-pyiceberg.txt)
cache=build/cache/pyiceberg-$version
python=${PYTHON:-python3}
mkdir -p "$cache"
want=$(cat build/requirements-pyiceberg.txt; "$python" --version 2>&1)
if [ "$want" != "$(cat "$cache/requirements.stamp" 2>/dev/null)" ]; then
	rm -rf "$cache/venv"
	echo "Making an environment for pyiceberg's tests (a few minutes) ..."
	"$python" -m venv "$cache/venv"
	"$cache/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r build/requirements-pyiceberg.txt
	printf '%s' "$want" >"$cache/requirements.stamp"
fi
if [ ! -d "$cache/source/tests" ]; then
	"$cache/venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary pyiceberg \
		--dest "$cache" "pyiceberg==$version"
	# The tests and their settings only: the package itself is the installed one.
	mkdir -p "$cache/source"
	tar -xzf "$cache/pyiceberg-$version.tar.gz" -C "$cache/source" --strip-components=1 \
		"pyiceberg-$version/tests" "pyiceberg-$version/pyproject.toml"
fi
ICEBERGEXEC_LIBRARY=${ICEBERGEXEC_LIBRARY:-$(pwd)/build/out/libicebergexec.so} \
	exec "$cache/venv/bin/python" tests/pyiceberg/compare.py "$(pwd)/$cache/venv/bin/pytest" "$cache/source"
