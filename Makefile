# Everything a user or a developer does, by name. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup reproduce tables ui screenshots quickstart test test-all lint format schema bench clean

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
RESULTS := results
STORE := $(RESULTS)/mlflow.db
PORT := 5000

# The first interpreter that runs, has pip and is new enough. Override with PYTHON=/path/to/it.
PYTHON ?= $(shell for candidate in python3.11 python3.12 python3.13 python3; do \
	$$candidate -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$candidate && break; done)

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' \
	| while IFS='|' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

setup: $(INSTALLED) ## Create the environment in .venv (other targets do it by themselves)

# Done once, and again only when the package metadata or the pinned versions change. The
# environment is made without pip and filled from outside, because some systems ship venv
# without the means to put pip into it.
$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Expected Python 3.11 or newer with pip; found none. Install it, or say make PYTHON=/path/to/python." >&2; exit 1; }
	@echo "Installing into $(VENV) with $(PYTHON) (once; a few minutes)"
	@$(PYTHON) -m venv --clear --without-pip $(VENV)
	@$(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,qm9,specialists,workflow]'
	@touch $@

# What is published is shown first, in under a minute. Of another tier's sweep the list of runs goes:
# without it the tables are those of the archive, and the workflow writes it anew.
reproduce: $(INSTALLED) ## Show the published runs, then run the workflow (TIER=smoke, workstation or paper)
ifneq ($(TIER),smoke)
	@grep -qs '"tier": "$(or $(TIER),workstation)"' $(RESULTS)/sweep.json || rm -f $(RESULTS)/sweep.json
	@$(MAKE) --no-print-directory tables
endif
	@PLACES_ARE_TOLD=1 $(BIN)/snakemake --cores all $(if $(TIER),--config tier=$(TIER))
	@$(BIN)/lietransformer places

tables: $(INSTALLED) ## Make tables, figures, claims and report from the runs that are there, without training
	@for command in tables figures claims report; do $(BIN)/lietransformer $$command $(RESULTS) >/dev/null; done
	@echo "The report is $(RESULTS)/report.html"

# For this machine alone, without MLflow's telemetry and without its processes for jobs that are
# not ours.
ui: $(STORE) $(INSTALLED) ## Compare the runs in MLflow's web page (PORT=5000)
	@echo "In some seconds MLflow is at http://127.0.0.1:$(PORT); Ctrl-C ends it."
	@MLFLOW_DISABLE_TELEMETRY=true MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false $(BIN)/mlflow ui --host 127.0.0.1 --port $(PORT) --workers 1 --backend-store-uri sqlite:///$(STORE)

$(STORE):
	@echo "Expected runs in $@; found no such file. Run the experiments first: make reproduce." >&2
	@exit 1

screenshots: $(STORE) $(INSTALLED) ## Photograph MLflow's web page for the README (needs chromium)
	@$(BIN)/python -m tests.tracking.screenshots $(RESULTS) docs/pictures

quickstart: $(INSTALLED) ## Build a LieTransformer-SE(2), measure its invariance, train it for a minute
	@$(BIN)/lietransformer quickstart

test: $(INSTALLED) ## Run the tests
	@$(BIN)/python -m pytest --numprocesses auto --dist loadgroup -m "not slow"

test-all: $(INSTALLED) ## Run all tests, those with Slurm, a browser and LaTeX too
	@$(BIN)/python -m pytest --numprocesses auto --dist loadgroup

lint: $(INSTALLED) ## Check style, types and imports between packages
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/snakefmt --check Snakefile workflow
	@$(BIN)/snakemake --lint

format: $(INSTALLED) ## Rewrite the code in the project's style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/snakefmt Snakefile workflow

schema: $(INSTALLED) ## Write the schema of config.yaml from its typed settings
	@$(BIN)/python -m lietransformer.sweep.schema workflow/schemas/config.schema.json

bench: $(INSTALLED) ## Measure the paper's training steps beside the goals (on an idle machine)
	@$(BIN)/python -m benchmarks.train_step

clean: ## Remove the environment and all caches
	@rm -rf $(VENV) .hypothesis .mypy_cache .pytest_cache .ruff_cache *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
