# Everything that a developer or CI runs. `make` alone prints the targets.
# ARGS is passed on to the tool: make test ARGS='-k forget'

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
ARGS ?=

UV := scripts/uv
BIN := .venv/bin
PYTHON := $(BIN)/python
PROTO_DIR := libs/protos/src
MEMBERS := $(patsubst %/pyproject.toml,%,$(wildcard libs/*/pyproject.toml services/*/pyproject.toml devstack/pyproject.toml))
SOURCES := $(filter-out $(PROTO_DIR),$(wildcard $(addsuffix /src,$(MEMBERS))))
MEMBER_FILES := pyproject.toml $(addsuffix /pyproject.toml,$(MEMBERS))
# Looked up when a recipe runs: directories with Python files in them, that is.
CHECKED = $(shell for directory in tests bench evals; do [ -z "$$(find $$directory -name '*.py' -print -quit 2>/dev/null)" ] || echo $$directory; done)

# uv must not take another project's environment for ours.
unexport VIRTUAL_ENV
unexport PYTHONPATH
export UV_PYTHON_DOWNLOADS := never

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# ---------------------------------------------------------------- environments

.PHONY: setup
setup: .venv/.complete ## bring the tools and libraries of this checkout into .venv

# The members are built by the backend inside uv; --no-index proves that nothing unpinned is fetched for it.
.venv/.complete: requirements/dev.txt $(MEMBER_FILES)
	$(UV) venv --quiet --allow-existing --python '>=3.11' .venv
	$(UV) pip sync --quiet --python .venv --require-hashes requirements/dev.txt
	$(UV) pip install --quiet --python .venv --no-deps --no-index $(addprefix --editable ./,$(MEMBERS))
	touch $@

.PHONY: setup-hindsight
setup-hindsight: .venv-hindsight/.complete ## bring the Hindsight server into an environment of its own

.venv-hindsight/.complete: requirements/hindsight.txt services/hindsight_guard/pyproject.toml
	$(UV) venv --quiet --allow-existing --python '>=3.11' .venv-hindsight
	$(UV) pip sync --python .venv-hindsight --require-hashes requirements/hindsight.txt
	$(UV) pip install --quiet --python .venv-hindsight --no-deps --no-index --editable ./services/hindsight_guard
	touch $@

.PHONY: lock
lock: ## resolve all pins anew (ARGS=--upgrade for the newest releases)
	$(UV) lock $(ARGS)
	$(UV) export --quiet --frozen --format requirements.txt --all-packages --all-groups \
		--no-emit-workspace --no-header --output-file requirements/dev.txt
	for name in hindsight uv; do \
		$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header $(ARGS) \
			--output-file requirements/$$name.txt requirements/$$name.in; \
	done

# ---------------------------------------------------------------- static checks

.PHONY: fmt
fmt: setup ## format Python and protobuf sources
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format .
	$(BIN)/buf format --write protos

.PHONY: lint
lint: setup ## style, layering, SQL migrations, protobuf contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	for migration in db/migrations/*.sql; do \
		sed '/^-- migrate:down/,$$d' "$$migration" | $(BIN)/squawk --stdin-filepath "$$migration"; \
	done
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code protos

.PHONY: types
types: setup ## mypy --strict over all sources and tests
	$(BIN)/mypy --strict $(SOURCES)
	$(if $(CHECKED),$(BIN)/mypy --strict --explicit-package-bases $(CHECKED))

.PHONY: protos
protos: setup ## generate libs/protos from protos/
	find $(PROTO_DIR) -name '*_pb2*' -delete
	scripts/generate-protos "$(CURDIR)/$(PROTO_DIR)"

.PHONY: protos-check
protos-check: setup ## fail if libs/protos is not what protos/ generates
	fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	scripts/generate-protos "$$fresh"; \
	diff --recursive --brief --exclude=__init__.py --exclude=py.typed --exclude=__pycache__ $(PROTO_DIR) "$$fresh" \
		|| { echo "run: make protos" >&2; exit 1; }

.PHONY: schema
schema: setup ## write db/schema.sql as the migrations make it
	$(PYTHON) -m devstack.migrations

.PHONY: check
check: lint types protos-check ## everything static

# ---------------------------------------------------------------- running it

.PHONY: test
test: setup setup-hindsight ## all tests, on a real PostgreSQL and a real Hindsight
	$(BIN)/pytest $(ARGS)

.PHONY: demo
demo: setup setup-hindsight ## the whole system tells a short story and checks itself
	$(PYTHON) -m devstack.demo $(ARGS)

.PHONY: dev
dev: setup setup-hindsight ## keep the whole system up and print ready-to-paste calls
	$(PYTHON) -m devstack.dev $(ARGS)

.PHONY: bench
bench: setup setup-hindsight ## measure, as ratios
	$(PYTHON) -m bench $(ARGS)

.PHONY: clean
clean: ## remove environments, caches and this checkout's state
	rm -rf .venv .venv-hindsight .tools .dev .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
