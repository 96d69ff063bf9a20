# The commands of this project: `make` lists them. CONTRIBUTING.md says what each of them holds you to.
#   make setup PYTHON=python3.13           chooses the interpreter
#   make serve PETSTORE_PORT=9000          settings pass through
#   make test-fast ARGS='-k quota'         so do arguments for pytest
#   make lock UPGRADE=--upgrade            takes the newest of everything

export PYTHON
unexport PYTHONDONTWRITEBYTECODE  # else each process of a test compiles all modules anew
UV ?= uv
BIN := .venv/bin
DEVELOP = @tools/environment develop
CORES := $(shell getconf _NPROCESSORS_ONLN)
JOBS ?= $(CORES)
PYTEST = $(BIN)/python -m pytest $(ARGS)
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	$(UPGRADE) --custom-compile-command 'make lock'

# Of these no test is fast and alone, or `make check` runs them.
NOT_ALONE = api/test_schemathesis.py architecture consumers e2e

MAKEFLAGS += --no-print-directory
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help setup setup-scale serve demo cluster test test-fast torture planted mutants upgrade check format pictures clients release bench lock clean

help: ## This list
	@awk -F ':.*## ' '/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

##@ Use it
setup: ## Make the environment in .venv from the hashed lock file
	@tools/environment serve

setup-scale: ## That, with the drivers for PostgreSQL and Valkey
	@tools/environment scale

serve: setup ## Serve production on 127.0.0.1:8080 and staging on :8081, made at the first start
	@exec $(BIN)/python -m tools.serve

demo: setup ## Make a store with ten weeks behind it in demo/, and serve it (ARGS='--seed 7 --no-serve')
	@exec $(BIN)/python -m tools.demo $(ARGS)

cluster: ## Run PostgreSQL, Valkey, two replicas and nginx here (ARGS='--for 60s', ARGS=restart)
	$(DEVELOP)
	@exec $(BIN)/python -m tools.cluster $(ARGS)

##@ Work on it
# One worker more than there are cores: a fifth of the time these tests wait for processes.
test: ## Run the whole suite; at least 95 % of all branches must be covered
	$(DEVELOP)
	@tools/consumers
	@$(PYTEST) -n $$(expr $(JOBS) + 1) --cov --cov-report=term:skip-covered

test-fast: ## Run what needs this program alone: no other process, no server, no browser
	$(DEVELOP)
	@TEST_ALONE=1 $(PYTEST) -n $(JOBS) -r fE -m 'not e2e and not slow and not browser' \
		$(addprefix --ignore=tests/,$(NOT_ALONE))

torture: ## Long campaigns against crashes, kills and power cuts (ARGS='--seed 1 --seconds 600')
	$(DEVELOP)
	@$(BIN)/python -m verification.torture $(ARGS)

planted: ## Plant known bugs, one at a time: its test must fail for each (ARGS='--jobs 4 NAME…')
	$(DEVELOP)
	@tools/consumers
	@$(BIN)/python -m tests.planted $(ARGS)

mutants: ## Change core/ and limiter/ in small ways: a test must fail for each (ARGS='petstore.core.moments*')
	$(DEVELOP)
	@TEST_ALONE=1 $(BIN)/mutmut run --max-children $(JOBS) $(ARGS)

upgrade: ## Try the last release beside this program and in turn (FROM=COMMIT ARGS='--seed 1 --seconds 60')
	$(DEVELOP)
	@$(BIN)/python -m verification.torture.upgrade $(if $(FROM),--from $(FROM)) $(ARGS)

check: ## Formatting, lint, types and the rules of the architecture
	$(DEVELOP)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/architecture

format: ## Format the code, and mend what lint can mend
	$(DEVELOP)
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

pictures: ## Make the pictures of the console's documents anew (needs Chromium)
	$(DEVELOP)
	@$(BIN)/python -m tools.pictures

clients: ## Build the clients that the service serves anew, where their sources have changed
	$(DEVELOP)
	@tools/consumers
	@$(BIN)/python -m tools.sync_client
	@$(BIN)/python -m tools.typescript generate
	@$(BIN)/python -m tools.release clients

bench: ## Measure; verification/benchmarks/README.md says how to read the numbers
	$(DEVELOP)
	@$(BIN)/python -m verification.benchmarks $(ARGS)

##@ Look after it
lock: ## Write the lock files anew from pyproject.toml (needs uv)
	@command -v $(UV) >/dev/null || { echo 'make lock needs uv: .venv/bin/pip install uv, then make lock UV=.venv/bin/uv' >&2; exit 1; }
	@$(COMPILE) pyproject.toml --group build --output-file requirements.lock
	@$(COMPILE) pyproject.toml --group build --all-extras --constraints requirements.lock --output-file requirements-scale.lock
	@$(COMPILE) pyproject.toml --group build --group dev --all-extras --constraints requirements-scale.lock --output-file requirements-dev.lock
	@$(COMPILE) tests/consumers/requirements.in --output-file tests/consumers/requirements.lock

release: ## Build the packages of the commit that is checked out into dist/; nothing is published
	$(DEVELOP)
	@tools/consumers
	@$(BIN)/python -m tools.release

clean: ## Remove what was made here, except the database
	@rm -rf .venv .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist htmlcov mutants \
		tests/consumers/node_modules
	@find src tests verification -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
