#!/usr/bin/env bash
# Says plainly what this machine lacks before anything is built.
set -u
missing=0
lack() {
	printf 'icebergexec: %s\n' "$1" >&2
	missing=1
}

# at_least WANT HAVE: version HAVE is not older than WANT.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

if ! command -v go >/dev/null 2>&1; then
	lack "Go is missing; install Go 1.25.9 or newer and put it on the PATH"
else
	have=$(go env GOVERSION 2>/dev/null | sed 's/^go//; s/[^0-9.].*$//')
	at_least 1.25.9 "$have" || lack "Go $have is too old; install Go 1.25.9 or newer"
fi

if ! command -v "${CC:-cc}" >/dev/null 2>&1; then
	lack "a C compiler is missing (looked for ${CC:-cc}); install gcc or clang, or set CC"
fi

python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null 2>&1; then
	lack "Python is missing (looked for $python); install Python 3.10 or newer, or set PYTHON"
elif ! "$python" -c '' >/dev/null 2>&1; then
	lack "$python does not run ($(command -v "$python")); install Python 3.10 or newer, or set PYTHON"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
	lack "$("$python" --version 2>&1) is too old; install Python 3.10 or newer, or set PYTHON"
elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
	lack "$("$python" --version 2>&1) has no venv module; install it (on Debian and Ubuntu: python3-venv)"
fi

exit "$missing"
