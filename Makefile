# make demo    one audit under four settings, on the embedded data; the report is in demo-out/
# make test    what CI runs: lint, types, import contracts, all tests
# make quick   the tests nearest to what has changed since main, and lint: about two minutes
# make golden  bring the sentences that tests hold up to date with what orch says now; read the diff
# make long    the tests that `make test` leaves out, but those of a GPU: some hours; a third of them with PART=1/3
# make gpu     all that is to be measured on a GPU, in about ten minutes; the record is in gpu.json
# make lint    all of it but the tests
# make docs    the documentation as a site, in site/; open site/index.html
# make clean   remove what the commands above have made, the environment too
#
# PYTHON=...   the Python (3.11 or newer) that makes the environment
# VENV=...     the environment's folder

SHELL  := /bin/sh
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/orch-installed
OUT    ?= demo-out
PART   ?= 1/1
PYTHON ?=

define LINT
$(BIN)/ruff check .
$(BIN)/ruff format --check .
$(BIN)/lint-imports
$(BIN)/python .ci/imports.py
$(BIN)/python .ci/names.py
$(BIN)/mypy
endef

define NEWLINE


endef

.PHONY: demo test quick golden long gpu lint docs install clean
.DELETE_ON_ERROR:
.SILENT: lint

demo: $(STAMP)
	@$(BIN)/orch sweep apollo-demo --out $(OUT)

# Style, contracts and types are checked while the tests run, which come first.
define CHECKED
nice -n 10 $(SHELL) -c '$(subst $(NEWLINE), && ,$(LINT))' & lint=$$!; \
OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest --processes 3 $$files; \
tests=$$?; wait $$lint || { echo "lint failed: see above" >&2; exit 1; }; exit $$tests
endef

test: $(STAMP)
	@files=; $(CHECKED)

quick: $(STAMP)
	@files=$$($(BIN)/python .ci/touched.py) || exit 1; test -n "$$files" || exit 0; $(CHECKED)

golden: $(STAMP)
	@OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE $(BIN)/python .ci/golden.py

long: $(STAMP)
	@OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest --processes 2 --part $(PART) -m "long and not gpu"

gpu: $(STAMP)
	@$(BIN)/python -m benchmarks.gpu

lint: $(STAMP)
	$(LINT)

# Warnings (broken links and anchors, pages outside of the navigation) are errors.
docs: $(STAMP)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

install: $(STAMP)

# One pip call, so that torch and torchvision are chosen as a pair.
$(STAMP): pyproject.toml
	@test -x $(BIN)/python || { \
	  for python in "$(PYTHON)" python3 python3.13 python3.12 python3.11 python3.14 python; do \
	    test -n "$$python" || continue; \
	    "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
	    test "$$python" != "$(PYTHON)" || { echo "PYTHON=$(PYTHON) is not a Python of version 3.11 or newer" >&2; exit 1; }; \
	    python=; \
	  done; \
	  test -n "$$python" || { echo "no Python 3.11 or newer found; install one or name it: make PYTHON=/path/to/python3" >&2; exit 1; }; \
	  "$$python" -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "$$python cannot make environments; install them first (on Debian: apt-get install python3-venv)" >&2; exit 1; }; \
	  echo "making the environment $(VENV) with $$python"; \
	  "$$python" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }; \
	}
	@echo "installing into $(VENV): about 7 GB with torch and Ray, some minutes the first time"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) $(OUT) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
