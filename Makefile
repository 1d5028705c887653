# make demo and make test set up everything by themselves, into .venv. Another Python: make demo PYTHON=python3.12
PYTHON ?= python3
export PYTHON
bin = .venv/bin

.PHONY: help demo test lint format types clean environment tools
.NOTPARALLEL:

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

demo: environment  ## run two cases and draw them
	@mkdir -p demo
	$(bin)/vlasov run mixture-2d --solver particles -o demo/mixture-2d.nc
	$(bin)/vlasov plot demo/mixture-2d.nc -o demo/mixture-2d.png
	$(bin)/vlasov run gaussian-blow-up --solver gaussian -o demo/gaussian-blow-up.nc
	$(bin)/vlasov plot demo/gaussian-blow-up.nc -o demo/gaussian-blow-up.png
	@echo "Done. Look at demo/mixture-2d.png and demo/gaussian-blow-up.png"

test: environment  ## run the tests
	$(bin)/python -m pytest -n auto

lint: tools  ## check the style, change nothing
	$(bin)/python -m ruff check
	$(bin)/python -m ruff format --check

format: tools  ## put the style right
	$(bin)/python -m ruff check --fix
	$(bin)/python -m ruff format

types: tools  ## check the types
	$(bin)/python -m mypy

clean:  ## remove what was made, except .venv
	rm -rf build dist demo *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage htmlcov
	find vlasov solvers cases postprocess tests -name __pycache__ -prune -exec rm -rf {} +

environment:
	@.ci/bootstrap test

tools:
	@.ci/bootstrap dev
