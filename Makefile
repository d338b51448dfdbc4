# Everything is made from a bare machine with python3, pip and make: `make run`, `make test`.
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Where PIP's settings cap or point somewhere else, they hold here too: nothing below names an index.
PIP := $(BIN)/python -m pip --disable-pip-version-check

help: ## what can be made
	@grep -E '^[a-z]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 12

$(READY): pyproject.toml setup.py $(wildcard core/ops/native/*.cc)
	@python=$$(.ci/find-python) && echo "sciax: environment in $(VENV) with $$python" && "$$python" -m venv --clear $(VENV)
	@$(PIP) install --quiet --upgrade pip 'setuptools>=77' wheel 'jaxlib>=0.11'
	@# jaxlib is there already, with the headers the native kernels need: no second copy for an isolated build
	@$(PIP) install --quiet --no-build-isolation --editable '.[all,dev]'
	@touch $@

env: $(READY) ## make the environment in .venv

run: $(READY) ## the tour: each domain's main job on embedded input, a table and a report
	@$(BIN)/sciax tour

# A file's tests share fixtures and compiled programs, and so one worker.
test: $(READY) ## the test suite (slow studies: make slow)
	@$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --durations 15 --cov --cov-report term:skip-covered $(ARGS)

slow: $(READY) ## the longer studies, by hand
	@$(BIN)/python -m pytest -m slow $(ARGS)

check: $(READY) ## format, lint, types, import layers
	@$(BIN)/ruff format --check . && $(BIN)/ruff check .
	@$(BIN)/pyright
	@$(BIN)/python -m pytest -q -p no:cacheprovider tests/test_layers.py

# Scripts that train or design for minutes to hours, on a data set or case that is named: run one by hand.
STUDIES := chem_property chem_training elec_converter elec_inversion pinn_accuracy

bench: $(READY) ## timings beside the peers that are installed (pip install -e '.[bench]')
	@for script in $(filter-out $(STUDIES:%=benchmarks/%.py), $(wildcard benchmarks/*.py)); do echo "== $$script"; $(BIN)/python $$script || exit 1; done

tutorials: $(READY) ## run every notebook and write HTML to docs/_build/tutorials
	@$(BIN)/jupyter nbconvert --execute --to html --output-dir docs/_build/tutorials tutorials/*.ipynb

docs: $(READY) ## build the documentation into docs/_build/html
	@$(PIP) install --quiet -e '.[docs]' --no-build-isolation && $(BIN)/sphinx-build -q -b html docs docs/_build/html

clean: ## remove the environment and what was built
	rm -rf $(VENV) build docs/_build docs/_tutorials .jax_cache

.PHONY: help env run test slow check bench tutorials docs clean
