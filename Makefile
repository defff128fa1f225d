# Bare `make` lists what there is. Nothing here deletes anything but `make clean`.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first Python that is new enough; PYTHON=… overrules.
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null \
	&& command -v $$name && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ZIP ?= dist/understudy.zip
OUT ?= out/demo
PYTEST_ARGS ?=
# Two at a time, a file to each, in the order of the folders: what takes long begins first.
TWO_AT_A_TIME := --numprocesses 2 --dist loadfile --no-loadscope-reorder
BENCH_ARGS ?=
CASES ?= 20000
SEED ?= 1
EVENTS ?= all
RELEASE ?= both
CONFORMANCE_ARGS ?=
STEPS ?= 30
REAL_CLUSTER_ARGS ?=

##@ Using it

.PHONY: demo
demo: $(READY) ## replay the sample cluster, let its brokers fail, and show that: out/demo/report.html
	@$(BIN)/understudy demo --out $(OUT)

.PHONY: zip
zip: $(READY) ## build dist/understudy.zip for spark-submit --py-files
	@$(BIN)/python -m understudy.bundle $(ZIP)

.PHONY: wheel
wheel: $(READY) ## build the wheel into dist/
	@PIP_BUILD_CONSTRAINT=$(CURDIR)/constraints.txt PIP_CONSTRAINT=$(CURDIR)/constraints.txt \
		$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

.PHONY: sample-data
sample-data: $(READY) ## make data/sample again from its seed
	@$(BIN)/python data/generate.py sample --seed 7 --into data/sample

##@ Working on it

.PHONY: test
test: $(READY) ## run the tests, but for the slow ones
	@$(BIN)/python -m pytest -m "not slow" $(TWO_AT_A_TIME) $(PYTEST_ARGS)

.PHONY: test-all
test-all: $(READY) ## run every test
	@$(BIN)/python -m pytest $(TWO_AT_A_TIME) $(PYTEST_ARGS)

.PHONY: lint
lint: $(READY) ## check style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

.PHONY: fmt
fmt: $(READY) ## format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: type
type: $(READY) ## check types
	@$(BIN)/mypy

.PHONY: bench
bench: $(READY) ## measure, as ratios in one run (BENCH_ARGS=--full for the largest)
	@$(BIN)/python tests/bench/bench.py $(BENCH_ARGS)

# Both build Kafka's own controller with Apache Maven, which has to be installed.
.PHONY: conformance
conformance: $(READY) ## compare with Kafka's own controller (CASES, SEED, EVENTS, RELEASE)
	@PYTHONPATH=tests $(BIN)/python -m conformance.conformance --cases $(CASES) --seed $(SEED) \
		--events $(EVENTS) --release $(RELEASE) $(CONFORMANCE_ARGS)

.PHONY: vectors
vectors: $(READY) ## record Kafka's answers again as test vectors
	@PYTHONPATH=tests $(BIN)/python -m conformance.vectors

# Fetches Kafka and ZooKeeper with Apache Maven, too, and runs them on the loopback interface.
.PHONY: real-cluster
real-cluster: $(READY) ## run a real cluster and predict what its controller does (STEPS, SEED)
	@PYTHONPATH=tests $(BIN)/python -m real_cluster.run --steps $(STEPS) --seed $(SEED) \
		$(REAL_CLUSTER_ARGS)

.PHONY: clean
clean: ## remove what was built or written here, but for the virtual environment
	rm -rf build dist out spark-warehouse .pytest_cache .mypy_cache .ruff_cache .hypothesis \
		tests/conformance/oracle/*/target tests/conformance/kraft_oracle/*/target
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

.PHONY: help
help: ## this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- The virtual environment -------------------------------------------------------------------

# The spark-submit that pip installs looks for Spark with the PATH's python3, which may have none.
$(READY): pyproject.toml constraints.txt
	@$(check_python)
	@$(check_java)
	@echo "Preparing $(VENV) with $$($(PYTHON) --version): the first time takes some minutes."
	@$(PYTHON) -m venv $(VENV)
	@PIP_BUILD_CONSTRAINT=$(CURDIR)/constraints.txt PIP_CONSTRAINT=$(CURDIR)/constraints.txt \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt -e '.[spark,capture,test,lint]'
	@printf '%s\n' '#!/usr/bin/env bash' \
		'# Finds its own Python and Spark, so that it works without the environment being active.' \
		'bin="$$(cd "$$(dirname "$${BASH_SOURCE[0]}")" && pwd)"' \
		'export PYSPARK_PYTHON="$${PYSPARK_PYTHON:-$$bin/python}"' \
		'home="$$("$$bin/python" -c "import pyspark; print(pyspark.__path__[0])")"' \
		'export SPARK_HOME="$${SPARK_HOME:-$$home}"' \
		'exec "$$SPARK_HOME/bin/spark-submit" "$$@"' > $(BIN)/spark-submit.new
	@chmod +x $(BIN)/spark-submit.new
	@mv $(BIN)/spark-submit.new $(BIN)/spark-submit
	@touch $@

define check_python
if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	2> /dev/null; then \
	echo "Python 3.11 or newer is needed: install it, or name one with make PYTHON=…" >&2; exit 1; fi
endef

define check_java
java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
major="$$({ "$$java" -version 2>&1 || true; } \
	| sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1)"; \
if [ "$${major:-0}" -lt 17 ]; then \
	echo "Java 17 or newer is needed: install it, or point JAVA_HOME to one$${major:+ (found Java $$major)}" >&2; \
	exit 1; fi
endef
