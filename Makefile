# Two commands do everything on a fresh machine with Python 3.11 or newer: make demo, make test.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BENCH  := crawl

.PHONY: demo test check faults bench clean

demo: $(VENV)/.installed
	$(BIN)/thresher demo demo-corpus

# A process for each processor; the tests of a file are run by one of them, in order, and the longest come first.
test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Fifty crawls killed at random moments and continued; minutes, not seconds.
faults: $(VENV)/.installed-dev
	THRESHER_KILLS=50 $(BIN)/python -m pytest tests/test_faults.py -s

# One benchmark: make bench BENCH=crawl
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
	$(BIN)/python -c 'import thresher.read.reader, thresher.crawl.learned.guide, thresher.query.found'
	touch $@

$(VENV)/.installed-dev: $(VENV)/.python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -c 'import thresher.read.reader, thresher.crawl.learned.guide, thresher.query.found'
	touch $(VENV)/.installed $@
