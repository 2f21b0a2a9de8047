#!/usr/bin/env bash
# Formatting, vet and static analysis of Go and Python.
set -eu
cd "$(dirname "$0")/.."
unformatted=$(gofmt -l capi bridge engine spill tests docs 2>/dev/null || true)
if [ -n "$unformatted" ]; then
	printf 'not formatted (run gofmt -w):\n%s\n' "$unformatted" >&2
	exit 1
fi
go vet ./...
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
.venv/bin/ruff check python tests
.venv/bin/ruff format --check python tests
.venv/bin/mypy --config-file python/pyproject.toml python/icebergexec
