# Two commands are enough: `make demo` and `make test`. Both set everything up; neither needs root.
#   make demo DEMO="--quick"                  under five minutes after installation
#   make demo DEMO="--exit --report out"      leave after writing out/verdicts.json
.DEFAULT_GOAL := help
.PHONY: help demo test coverage check format bench simulate clean

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
# Those of the import contract that they do no I/O.
PURE := evaluators/*,service/decision/*,service/capacity/*,service/engines/*,service/wire/*,service/fleet.py,service/strata.py,service/redaction/*,service/leaves.py,service/moments.py,service/traces.py,service/charts/*
PURE_TESTS := tests/decision tests/capacity tests/engines tests/wire tests/evaluators tests/charts $(wildcard tests/test_*.py)
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

help: ## Show this text
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

.venv/ready:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	echo "Tiergate needs Python 3.11 or newer$(if $(PYTHON),; $(PYTHON) is none); set PYTHON=/path/to/python"; exit 1; }
	@echo "creating .venv with $$("$(PYTHON)" --version)"
	@"$(PYTHON)" -m venv .venv || { echo "$(PYTHON) cannot make virtual environments (Debian: package python3-venv)"; exit 1; }
	@touch $@

.venv/demo: .venv/ready pyproject.toml constraints.txt
	@echo "installing Tiergate and the demo's llama.cpp (a minute or so, once)"
	@$(INSTALL) -e '.[demo]'
	@touch $@

.venv/test: .venv/ready pyproject.toml constraints.txt
	@echo "installing Tiergate and what its tests need (a minute or so, once)"
	@$(INSTALL) -e '.[demo,test]'
	@touch $@

demo: .venv/demo ## Real model, real tiers, a real verdict (DEMO="--quick")
	@$(BIN)/tiergate demo $(DEMO)

test: .venv/test ## All tests, several at a time (TEST="tests/decision -k tango")
	@if [ -n "$(TEST)" ]; then $(BIN)/python -m pytest $(TEST); else \
	echo "pure rooms, at least 95 % of lines and branches:" && \
	$(PYTEST) --cov --cov-report= $(PURE_TESTS) && \
	$(BIN)/coverage report --include='$(PURE)' --fail-under=95 && \
	echo "everything else:" && \
	$(PYTEST) $(addprefix --ignore=,$(PURE_TESTS)); fi

coverage: .venv/test ## All tests, and which lines and branches they reach: twice the time of `test`
	$(PYTEST) --cov --cov-report=
	$(BIN)/coverage report

check: .venv/test ## Style, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/test ## Rewrite to the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/test ## The figures of docs/benchmarks.md (BENCH="latency --rounds 1")
	$(BIN)/python -m tests.benchmarks $(BENCH)

simulate: .venv/test ## Error rates and pairs of the decision, three minutes (SIMULATE="--long")
	$(BIN)/python -m tests.benchmarks.simulate $(SIMULATE)

clean: ## Remove the virtual environment and caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage*
