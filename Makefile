# icebergexec: `make demo` and `make test` set up everything they need under
# this folder (.venv, build/out) and download packages only.

SHELL := /bin/bash
STAGE := build/stage.sh
PY    := .venv/bin/python
LIB   := build/out/libicebergexec.so
export CGO_ENABLED ?= 1

.PHONY: help demo test lint test-go test-go-nocgo test-c test-python test-pyiceberg bench wheel lib install fuzz clean tools venv

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: lib ## build, make a small table with deletes, read it through pyiceberg
	@ICEBERGEXEC_LIBRARY=$(abspath $(LIB)) PYTHONPATH=python $(PY) tests/demo/demo.py

test: tools ## everything that must pass: lint, Go, C and Python tests
	@$(STAGE) "environment" 400 build/venv.sh
	@$(STAGE) "lint" 300 $(MAKE) --no-print-directory lint
	@$(STAGE) "go tests" 500 $(MAKE) --no-print-directory test-go
	@$(STAGE) "go tests without cgo" 400 $(MAKE) --no-print-directory test-go-nocgo
	@$(STAGE) "library" 400 $(MAKE) --no-print-directory lib
	@$(STAGE) "c tests" 600 $(MAKE) --no-print-directory test-c
	@$(STAGE) "python tests" 600 $(MAKE) --no-print-directory test-python

lint: venv ## gofmt, vet, staticcheck, ruff, mypy
	@build/lint.sh

test-go: tools ## Go unit tests, the Java-written tables, lint rules
	@go test $$(go list ./... | grep -v /tests/capi)

test-go-nocgo: tools ## the engine as a Go program without a C compiler uses it
	@CGO_ENABLED=0 go test ./engine/... ./spill/...

test-c: lib ## C programs against the library
	@go test ./tests/capi/...

test-python: lib ## the Python package against the library
	@ICEBERGEXEC_LIBRARY=$(abspath $(LIB)) PYTHONPATH=python $(PY) -m pytest -q python/tests

test-pyiceberg: lib ## pyiceberg's own unit tests, without and with icebergexec enabled
	@build/test-pyiceberg.sh

fuzz: tools ## every Go fuzz target, FUZZTIME (default 30s) each
	@build/fuzz.sh $(or $(FUZZTIME),30s)

lib: venv ## build/out/libicebergexec.so
	@build/lib.sh

wheel: venv ## dist/*.whl, tested in a clean environment
	@build/wheel.sh

install: lib ## header, library and pkg-config file under PREFIX (default /usr/local)
	@build/install.sh "$(or $(PREFIX),/usr/local)"

bench: lib ## benchmarks against other engines; results belong into docs/benchmarks.md
	@ICEBERGEXEC_LIBRARY=$(abspath $(LIB)) PYTHONPATH=python $(PY) -m tests.bench $(BENCH)

tools:
	@build/check-tools.sh

venv: tools
	@build/venv.sh

clean: ## remove what the build made, the environment included
	@rm -rf .venv build/out dist
