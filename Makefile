# On a fresh machine with Python 3.11 or newer: make demo, make test. Both install into .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BENCH  := crawl
KILLS  := 50

# A worker for each processor; a file's tests run on one worker in order, so that they share its fixtures.
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

.PHONY: demo quick test test-slow docs check faults bench clean

demo: $(VENV)/.installed
	$(BIN)/thresher demo demo-corpus

# A first answer, in three minutes at most.
quick: $(VENV)/.installed-dev
	$(PYTEST) -m "not slow"

# Everything but the tests of `make test-slow`, in eight minutes at most on two cores.
test: $(VENV)/.installed-dev
	$(PYTEST) -m "not (faults or ray or growth)"

# Crawls that are killed, Ray clusters, inputs that grow.
test-slow: $(VENV)/.installed-dev
	$(PYTEST) -m "faults or ray or growth"

# The reference of all settings, from the code.
docs: $(VENV)/.installed-dev
	$(BIN)/thresher config --reference > docs/configuration.md

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -q tests/test_house.py
	$(BIN)/lint-imports
	$(BIN)/mypy

# Crawls killed at random moments and continued: make faults KILLS=500.
faults: $(VENV)/.installed-dev
	THRESHER_KILLS=$(KILLS) $(BIN)/python -m pytest tests/crawler/test_faults.py -s

# One benchmark: make bench BENCH=crawl; `python -m bench` lists all.
bench: $(VENV)/.installed-dev
	$(BIN)/python -m bench.$(BENCH)

clean:
	rm -rf $(VENV) demo-corpus bench/.cache

$(VENV)/.python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Thresher needs Python 3.11 or newer; try: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	touch $@

$(VENV)/.installed: $(VENV)/.python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(VENV)/.installed $@
