# Everything here works on a machine that has Python 3.11 with pip, and nothing else of ours.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
READY   = $(VENV)/.ready

.PHONY: test check demo bench clean

test: check
	$(BIN)/pytest -q -n 2 --dist worksteal

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

demo: $(READY)
	$(BIN)/cadec translate docs/dialogue.txt --lines --compare

bench: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m bench

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

# make bundle DATA=…: the embedded bundle, trained from corpora
include recipes/en-ru/recipe.mk

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
