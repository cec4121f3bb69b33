# Everything a person or CI runs. Each target sets up what it needs, once: one virtual environment in .venv, RocketMQ's
# jars in a cache outside the tree ($ROCKETFLEET_CACHE, default ~/.cache/rocketfleet). `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEV := $(VENV)/.installed-dev
SPARK := $(VENV)/.installed-spark
# The documentation site's programs, apart from what tests run with.
DOCS := $(VENV)/docs
# So with what a release is built with.
RELEASE := $(VENV)/release

# Extra arguments for pytest, e.g. make unit ARGS="-k frame -x"
ARGS ?=
# Processes that tests run in, unit tests and those on a broker; 0 runs all in one. Each process of the latter has a
# broker of its own, and its tests start more of them: on two cores, two are enough.
JOBS ?= 3
BROKER_JOBS ?= 2
PARALLEL := --dist worksteal -n
# Of a release: where its images will be pushed, as in registry.example/rocketfleet, and the repository's address.
REGISTRY ?=
SOURCE ?=

.PHONY: help demo test spark e2e bench bench-spark check crds docs docs-serve fmt clean setup jars unit faults slow lock chart-readme release

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: jars ## a real RocketMQ on loopback and a group scaled 2 → 4 → 1 under traffic, with a verdict
	@$(BIN)/rocketfleet demo

test: check jars ## lint, types, unit and property tests, and the tests on a real broker; AGAIN=1 also what is unchanged
	@$(BIN)/python -m tests.unchanged unit -- $(BIN)/pytest $(PARALLEL) $(JOBS) tests/unit $(ARGS)
	@$(BIN)/python -m tests.unchanged broker -- $(BIN)/pytest $(PARALLEL) $(BROKER_JOBS) tests/broker $(ARGS)

unit: $(DEV) ## only the tests that need no broker
	@$(BIN)/pytest $(PARALLEL) $(JOBS) tests/unit $(ARGS)

faults: jars ## random faults against a real group, from a seed, with a verdict; SEED=, RUNS=, MODE=, or ARGS=--help
	@$(BIN)/python -m tests.faults $(if $(SEED),--seed $(SEED)) $(if $(RUNS),--runs $(RUNS)) $(if $(MODE),--mode $(MODE)) $(ARGS)

slow: jars ## the long tests on a broker, with its real times: frozen members, elections
	@$(BIN)/pytest -m slow tests/broker $(ARGS)

spark: $(SPARK) jars ## the tests of the Spark data source, on a real broker; installs PySpark, 400 MB, once
	@$(BIN)/pytest tests/spark $(ARGS)

e2e: jars ## end to end on a kind cluster, or on the one of KUBECONFIG; ARGS="-m core" for what matters most
	@$(BIN)/pytest tests/cluster $(ARGS)

bench: jars ## the benchmarks, each against a peer measured in the same run
	@for b in decode allocate produce consume lag_sweep; do echo "== bench/$$b.py"; $(BIN)/python bench/$$b.py; done

bench-spark: $(SPARK) jars ## the benchmarks of the Spark data source and of the lag analytics, up to 100 M samples
	@for b in spark_read lag_analytics; do echo "== bench/$$b.py"; $(BIN)/python bench/$$b.py; done

check: $(DEV) ## formatting, lint, types, layers, and the project's own rules
	@$(BIN)/ruff format --check --quiet . || { echo "formatting: run 'make fmt'" >&2; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports
	@$(BIN)/pytest -q tests/unit/test_project.py

crds: $(DEV) ## write crds/, the chart's copy and docs/manifest.md from the models
	@$(BIN)/rocketfleet crds --out crds --reference docs/manifest.md
	@cp crds/*.yaml helm/rocketfleet/files/crds/

docs: $(DOCS)/.installed ## build the documentation site into build/site; broken links fail
	@# Not with --quiet: warnings that are not said are not counted, and would fail nothing.
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build

docs-serve: $(DOCS)/.installed ## show the site on http://127.0.0.1:8000 and follow edits; ARGS="-a 127.0.0.1:8100" for another port
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs serve --livereload $(ARGS)

fmt: $(DEV) ## format the code and fix what the linter can fix
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

chart-readme: $(DEV) ## write the chart's README from Chart.yaml and values.yaml
	@$(BIN)/python -m release.chart_readme

lock: $(RELEASE)/.installed ## write release/requirements/: what images install, with hashes; ARGS=--upgrade for newer versions
	@$(RELEASE)/bin/python -m release.lock $(ARGS)

release: $(RELEASE)/.installed ## all of a release into dist/, the same for each build of a commit; with REGISTRY=… images too
	@$(RELEASE)/bin/python -m release.build --registry "$(REGISTRY)" --source "$(SOURCE)" $(ARGS)

clean: ## remove the environment and every generated file; the cache outside the tree stays
	@if [ -x $(BIN)/rocketfleet ] && [ -d .rocketfleet/broker ]; then $(BIN)/rocketfleet broker stop || true; fi
	rm -rf $(VENV) .rocketfleet .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist build
	@find operator tests bench release -name __pycache__ -type d -prune -exec rm -rf {} +

setup: $(DEV) ## only the virtual environment

jars: $(DEV) ## only RocketMQ's jars, into the cache
	@$(BIN)/rocketfleet broker fetch

$(DEV): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "rocketfleet needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Set PYTHON=…" >&2; exit 1; }
	@echo "setting up $(VENV): once, about a minute"
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check -e '.[dev]'
	@touch $@

$(SPARK): $(DEV)
	@echo "installing PySpark into $(VENV): once"
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet -e '.[dev,spark]'
	@touch $@

$(DOCS)/.installed: pyproject.toml
	@echo "setting up $(DOCS): once"
	@mkdir -p $(VENV)
	@[ -x $(DOCS)/bin/python ] || $(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip install --disable-pip-version-check --quiet '.[docs]'
	@touch $@

$(RELEASE)/.installed: pyproject.toml
	@echo "setting up $(RELEASE): once"
	@mkdir -p $(VENV)
	@[ -x $(RELEASE)/bin/python ] || $(PYTHON) -m venv $(RELEASE)
	@$(RELEASE)/bin/python -m pip install --disable-pip-version-check --quiet '.[release]'
	@touch $@
