# Everything here works on a machine that has Python 3.11 with pip, and nothing else of ours.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
READY   = $(VENV)/.ready
LOCK    = requirements.lock
# Exact versions, of what pip builds the package with too: older pips take those from the first variable, newer
# ones from the second. Relative, since pip splits the value at spaces.
LOCKED  = PIP_CONSTRAINT=$(LOCK) PIP_BUILD_CONSTRAINT=$(LOCK)
INSTALL = pip install --quiet --disable-pip-version-check

.PHONY: test quick check fuzz kill demo bench lock clean

test: check
	$(BIN)/pytest -q -n 2 --dist worksteal

# What can run in about a minute: the rooms that need no trained network.
quick: $(READY)
	$(BIN)/ruff check .
	$(BIN)/pytest -q -n 2 -m "not slow and not trains" $(QUICK)
QUICK = $(addprefix tests/,method text fs data decoding jobs session terminal parallel) $(wildcard tests/test_*.py)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# make fuzz MINUTES=30: damaged and hostile input for every reader; SEED=… tries what an earlier run printed
fuzz: $(READY)
	$(BIN)/python -m tests.robustness.fuzz --minutes $(or $(MINUTES),30) $(if $(SEED),--seed $(SEED))

demo: $(READY)
	$(BIN)/cadec translate examples/dialogue.txt --lines --compare

bench: $(READY)
	$(LOCKED) $(BIN)/$(INSTALL) -e '.[bench]'
	$(BIN)/python -m bench

# make kill KILLS=100, or make kill MINUTES=60: commands killed at random moments, on full disks, two at once
kill: $(READY)
	$(BIN)/python -m tests.robustness.kills $(if $(KILLS),--kills $(KILLS)) $(if $(MINUTES),--minutes $(MINUTES))

$(READY): pyproject.toml $(LOCK) hatch_build.py $(wildcard cadec_cli/models/int8/*.[ch]) cadec_cli/models/int8/compile.py
	$(PYTHON) -m venv $(VENV)
	$(LOCKED) $(BIN)/$(INSTALL) -e '.[dev]'
	touch $@

# The lock anew: the newest versions that pyproject.toml allows, together with what the package is built with.
# Local versions (torch's +cpu) and what only CUDA builds of torch bring depend on the machine: left out.
lock:
	rm -rf $(VENV)-lock
	$(PYTHON) -m venv $(VENV)-lock
	env -u PIP_CONSTRAINT -u PIP_BUILD_CONSTRAINT $(VENV)-lock/bin/$(INSTALL) -e '.[dev]' hatchling editables
	$(VENV)-lock/bin/pip check --disable-pip-version-check
	{ echo "# Exact versions for 'make test' and CI; the wheel keeps the ranges of pyproject.toml."; \
	  echo "# Made by 'make lock' on $$(date -u +%Y-%m-%d), $$($(PYTHON) -V), $$(uname -sm); see CONTRIBUTING.md."; \
	  $(VENV)-lock/bin/pip freeze --disable-pip-version-check --all --exclude-editable --exclude pip \
	  | sed 's/+.*//' | grep -Ev '^(nvidia-|cuda-|triton)' | LC_ALL=C sort -f; } > $(LOCK).part
	mv $(LOCK).part $(LOCK)
	rm -rf $(VENV)-lock

# make bundle DATA=…: the embedded bundle, trained from corpora
include recipes/en-ru/recipe.mk

clean:
	rm -rf $(VENV) $(VENV)-lock build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
