# One command each; every target does the set-up it needs, system packages included. `make` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
export TELHA_ROCKSDB ?= system
PY := .venv/bin/python
PIP := $(PY) -m pip --disable-pip-version-check -qq
COMPILE := $(PY) setup.py --quiet build_ext
SYSTEM := scripts/system-packages.sh
BUNDLED := $(if $(filter bundled,$(TELHA_ROCKSDB)),rocksdb)

.PHONY: help build demo test lint format rocksdb wheel clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The environment and what pip puts in it change rarely, so they are stamps. The extension is compiled before the
# editable install (which adds `telha`) because pip would bury a message about a missing header.
.venv/.installed: pyproject.toml $(SYSTEM) | $(BUNDLED)
	@PYTHON=$(PYTHON) $(SYSTEM) $(TELHA_ROCKSDB)
	@echo "telha-queue: setting up .venv and compiling (about a minute)" >&2
	@test -x $(PY) || $(PYTHON) -m venv .venv
	@$(PIP) install "setuptools>=77" "Cython>=3.2,<4"
	@$(COMPILE) --inplace
	@$(PIP) install --no-build-isolation --editable ".[test]"
	@touch $@

.venv/.lint: .venv/.installed
	@$(PIP) install --no-build-isolation --editable ".[dev]"
	@touch $@

# setup.py itself knows what is out of date, and takes about a second to say so.
build: .venv/.installed ## Set up .venv and compile the extensions in place (TELHA_ROCKSDB=system or bundled)
	@$(COMPILE) --inplace

demo: build ## Ingest a folder of real files: make demo [DOCS=folder] [ARGS=...]
	@$(PY) demo/ingest.py $(if $(DOCS),"$(DOCS)") $(ARGS)

test: build ## Run every test: make test [ARGS="tests/unit -k keys"]
	@$(PY) -m pytest $(ARGS)

# Each harness is kept and written down as it ends. Without clang one of them is skipped.
.PHONY: torture
torture: build ## Every harness at length, 70 minutes, docs/torture.md: make torture [ARGS="--seed 3 --only kill"]
	@PYTHON=$(PYTHON) $(SYSTEM) $(TELHA_ROCKSDB) clang libclang-rt-dev || true
	@$(PY) -m tests.torture --jobs 2 --report docs/torture.md $(ARGS)

.venv/.peers: .venv/.installed
	@$(PIP) install --no-build-isolation --editable ".[peers]"
	@touch $@

.PHONY: bench-peers
bench-peers: export TELHA_ROCKSDB = bundled
bench-peers: rocksdb build .venv/.peers ## Measure it beside other queues, 5 minutes: make bench-peers [ARGS=--smoke]
	@bench/peers/servers.sh
	@$(PY) -m bench.peers $(ARGS)

.venv/.bench: .venv/.installed
	@$(PIP) install --no-build-isolation --editable ".[bench]"
	@touch $@

# Figures and counts are for the bundled RocksDB: these link it, and a later `make build` links the system's again.
.PHONY: bench bench-check bench-options bench-pytest
bench bench-check bench-options bench-pytest: export TELHA_ROCKSDB = bundled
bench: rocksdb build ## Measure against RocksDB alone, write docs/performance.md: make bench [ARGS="--only flat --quick"]
	@$(PY) -m bench $(ARGS)

bench-check: rocksdb build ## Compare instruction counts with bench/counts.json: make bench-check [ARGS=--update]
	@PYTHON=$(PYTHON) $(SYSTEM) bundled valgrind
	@$(PY) -m bench.counts $(ARGS)

bench-options: rocksdb build ## Measure RocksDB's options, 5 minutes: writes docs/performance-options.md
	@$(PY) -m bench.options $(ARGS)

bench-pytest: rocksdb build .venv/.bench ## The verbs one by one, with pytest-benchmark
	@$(PY) -m pytest bench $(ARGS)

lint: export PATH := $(CURDIR)/.venv/bin:$(PATH)
lint: build .venv/.lint build/werror/done ## Check style, types, stubs, layers and the generated C++
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/cython-lint ext
	@.venv/bin/clang-format --dry-run -Werror $(wildcard ext/*.hpp)
	@$(PY) -m mypy
	@$(PY) -m mypy.stubtest telha_queue._codec telha_queue._keeper telha_queue._rocks
	@$(PY) scripts/annotate_gate.py
	@.venv/bin/lint-imports --no-cache

format: .venv/.lint ## Rewrite Python and C++ files in the house style
	@.venv/bin/ruff check --fix-only --quiet .
	@.venv/bin/ruff format .
	@.venv/bin/clang-format -i $(wildcard ext/*.hpp)

# A second compilation, beside the one in use, in which every warning is an error.
build/werror/done: setup.py $(wildcard ext/*.pyx ext/*.pxd ext/*.hpp) | build
	@TELHA_WERROR=1 $(COMPILE) --build-lib build/werror/lib --build-temp build/werror/temp
	@touch $@

rocksdb: ## Build the bundled RocksDB, once, in a cache outside this folder (about 10 minutes)
	@PYTHON=$(PYTHON) $(SYSTEM) bundled
	@scripts/build-rocksdb.sh >/dev/null

wheel: rocksdb .venv/.installed ## Build a wheel with the bundled RocksDB inside, in dist/
	@rm -rf build/wheel/lib* build/wheel/bdist* # setuptools would pack whatever an earlier build left there
	@TELHA_ROCKSDB=bundled TELHA_BUILD=build/wheel $(PIP) wheel --no-build-isolation --no-deps --wheel-dir dist .
	@ls -t dist/telha_queue-*.whl | head -n 1

clean: ## Remove everything that the other targets made here; the RocksDB cache stays
	rm -rf .venv build dist *.egg-info telha_queue/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
