# The two commands that matter: make run, make test. Everything they need they fetch by themselves.
.DEFAULT_GOAL := help
SHELL := /bin/bash
VENV := .venv
PYTHON := $(VENV)/bin/python
# Twice the two cores of CI: with three workers a fifth of the processor time is idle, because tests wait for services;
# five workers need more processor time for the same tests.
PYTEST_WORKERS ?= 4
# Tests start about a hundred processes of the service; without byte code each of them compiles every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test test-tools soak simulate validation package package-test check check-code check-python check-infra check-commands check-dependencies check-console bench services assets format clean

help: ## Say what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: $(VENV)/local.installed assets ## Start the service on HOST and PORT (127.0.0.1:7071), state under DATA_DIR (.data)
	@exec $(PYTHON) -m local

test: test-tools ## Run every test
	./scripts/in-memory $(PYTHON) -m pytest -n $(PYTEST_WORKERS) --dist loadfile --no-loadscope-reorder -m "not soak and not package" $(ARGS)

test-tools: $(VENV)/dev.installed .venv-clients/installed tests/azurite/node_modules/installed tests/node_suites/node_modules/installed assets ## Install and build what the tests need

soak: $(VENV)/dev.installed tests/node_suites/node_modules/installed ## Run what takes over a minute: load, fuzz, fault storms, many random examples
	$(PYTHON) -m pytest -m soak $(ARGS)
	$(PYTHON) -m pytest -m "hypothesis and not soak and not package" --hypothesis-profile soak $(ARGS)

simulate: $(VENV)/dev.installed ## Run worlds of tests/simulation for MINUTES (10) on all cores; SEED=n replays one, MUTANTS=1 proves that defects are found
	@$(PYTHON) -m tests.simulation

validation: $(VENV)/dev.installed assets ## Run the tests of docs/explanation/regulated-plants.md and write a dated report; ARGS="--by 'Ann Example'"
	$(PYTHON) -m scripts.validation --workers $(PYTEST_WORKERS) $(ARGS)

package: $(VENV)/local.installed assets ## Build dist/app.zip, the file that every way of deploying deploys
	@$(PYTHON) -m scripts.package

package-test: package $(VENV)/dev.installed tests/azurite/node_modules/installed ## Check its size, then run it against local stand-ins for Azure
	@$(PYTHON) -m scripts.package_size dist/app.zip
	$(PYTHON) -m pytest -m package tests/package $(ARGS)

check: check-code $(VENV)/dev.installed ## check-code, and the tests of documentation and templates
	$(PYTHON) -m pytest -q -n $(PYTEST_WORKERS) --dist loadfile tests/docs tests/infra

check-code: $(VENV)/dev.installed ## Everything that runs no test, two parts at a time
	@$(MAKE) --no-print-directory -j 2 check-commands check-python check-infra check-dependencies check-console

check-python: $(VENV)/dev.installed ## Format, lint, types, import rules
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	$(VENV)/bin/lint-imports
	@$(PYTHON) -m scripts.modules_without_tests --at-least 85 >/dev/null
	@$(PYTHON) -m scripts.modules_imported_once --at-most 0 >/dev/null

check-dependencies: .venv-audit/installed ## Look the pinned packages up in the advisories; ADVISORIES=--required fails where none are reached
	@.venv-audit/bin/python scripts/dependency_advisories.py $(ADVISORIES)

check-infra: .venv-infra/installed $(VENV)/dev.installed ## Scan the Bicep templates, compare their properties and API versions with Azure's
	@$(PYTHON) scripts/bicep_scan.py .venv-infra/bin/checkov
	@$(PYTHON) scripts/bicep_properties.py .venv-infra/lib/python3.13/site-packages
	@$(PYTHON) scripts/bicep_versions.py .venv-infra/lib/python3.13/site-packages

check-commands: .venv-azure-cli/installed ## Parse the commands of the pages on Azure with the parser of Azure CLI; takes two minutes
	@.venv-azure-cli/bin/python -W ignore scripts/azure_commands.py

check-console: console/node_modules/installed ## Types, lint and format of the web console, where npm is
	@if command -v npm >/dev/null; then npm run --silent --prefix console check; else echo "npm is not here: the console is not checked"; fi

bench: $(VENV)/dev.installed .venv-bench/installed bench/lighthouse/node_modules/installed assets ## Run the benchmarks, one JSON object a line; ONLY=name runs one, RUNS=n runs each n times (3); exit code 3 when a tool is missing
	@$(PYTHON) -m bench --runs $(or $(RUNS),3) $(ONLY)

services: $(VENV)/local.installed ## Start what the local host otherwise carries, for Core Tools (embedded Kusto on 8088, Web PubSub on 8089)
	@if [ -n "$$WEB_PUBSUB_ACCESS_KEY" ]; then $(PYTHON) -m emulators.web_pubsub --port 8089 --anonymous --events connect connected disconnected \
		--upstream http://127.0.0.1:7071/oi-api/live-stream/events & trap "kill $$!" EXIT; \
		else echo "without WEB_PUBSUB_ACCESS_KEY there is no live stream" >&2; fi; \
	$(PYTHON) -m emulators.kusto --data $${DATA_DIR:-.data}/kusto --port 8088 --hub $${DATA_DIR:-.data}/hub.sqlite --retention-days $${TELEMETRY_RETENTION_DAYS:-366}

assets: ## Build the browser pages into static/, with npm; where npm is missing the pages say so and the API works
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory static/built static/console/built \
		|| echo "the browser pages could not be built; everything else works" >&2; \
	else echo "npm is not here: the browser pages are left out (install Node.js 20 or later, then: make assets)" >&2; fi

static/built: web/package-lock.json web/build.mjs $(wildcard web/explorer/* web/graphiql/*)
	@cd web && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null && npm run --silent build
	@touch $@

static/console/built: console/node_modules/installed console/index.html console/vite.config.ts $(shell find console/src console/public -type f)
	@npm run --silent --prefix console build
	@touch $@

console/node_modules/installed: console/package.json console/package-lock.json
	@if command -v npm >/dev/null; then npm ci --prefix console --no-audit --no-fund --ignore-scripts --silent; \
	else mkdir -p $(@D); fi
	@touch $@

format: $(VENV)/dev.installed ## Format and mend what can be mended
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .
	@if [ -d console/node_modules/.bin ]; then npm run --silent --prefix console format; fi

clean: ## Remove the virtual environment and caches, never the data
	rm -rf $(VENV) .venv-uv .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# One stamp per set of packages, so that make run does not wait for what only tests need.
$(VENV)/bin/python:
	@./scripts/make-venv $(VENV)

$(VENV)/local.installed: requirements.txt requirements/local.txt requirements/constraints.txt | $(VENV)/bin/python
	@./scripts/install-packages $(VENV) -r requirements/local.txt
	@touch $@

# Azurite, which the contract suite of the blob store runs against, and the checks that are written for Node.js;
# without npm those parts are skipped, and say so.
tests/%/node_modules/installed: tests/%/package.json tests/%/package-lock.json
	@if command -v npm >/dev/null; then npm ci --prefix tests/$* --no-audit --no-fund --ignore-scripts --silent; \
	else echo "npm is not there: what tests/$* is for is left out"; mkdir -p $(@D); fi
	@touch $@

# Lighthouse, which measures the web console. Without it that benchmark is left out, and the others run.
bench/lighthouse/node_modules/installed: bench/lighthouse/package.json bench/lighthouse/package-lock.json
	@if command -v npm >/dev/null; then npm ci --prefix $(@D)/.. --no-audit --no-fund --ignore-scripts --loglevel=error && touch $@ \
		|| echo "Lighthouse could not be installed" >&2; \
	else echo "npm is not there: Lighthouse is not installed" >&2; fi

.venv-infra/installed: requirements/infra.txt requirements/infra-types.txt requirements/constraints-infra.txt
	@./scripts/make-venv .venv-infra
	@./scripts/install-packages .venv-infra --no-compile -r requirements/infra.txt
	@./scripts/install-packages .venv-infra --no-compile --no-deps -r requirements/infra-types.txt
	@touch $@

.venv-azure-cli/installed: requirements/azure-cli.txt requirements/constraints-azure-cli.txt
	@./scripts/make-venv .venv-azure-cli
	@./scripts/install-packages .venv-azure-cli --no-compile -r requirements/azure-cli.txt
	@touch $@

.venv-audit/installed: requirements/audit.txt requirements/constraints-audit.txt
	@./scripts/make-venv .venv-audit
	@./scripts/install-packages .venv-audit --no-compile -r requirements/audit.txt
	@touch $@

# A generator of clients and further programs that read the API.
.venv-clients/installed: requirements/clients.txt requirements/constraints-clients.txt
	@./scripts/make-venv .venv-clients
	@./scripts/install-packages .venv-clients --no-compile -r requirements/clients.txt
	@touch $@

.venv-bench/installed: requirements/bench.txt requirements/constraints-bench.txt
	@./scripts/make-venv .venv-bench
	@./scripts/install-packages .venv-bench -r requirements/bench.txt && touch $@ \
		|| echo "datasette and roapi could not be installed" >&2

$(VENV)/dev.installed: requirements/dev.txt $(VENV)/local.installed
	@./scripts/install-packages $(VENV) --no-compile -r requirements/dev.txt
	@touch $@
