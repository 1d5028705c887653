# make demo and make test set up everything by themselves, into .venv. Another Python: make demo PYTHON=python3.12
PYTHON ?= python3
export PYTHON
bin = .venv/bin

.PHONY: help demo test quick docs docs-check fuzz lint format types clean program environment tools
.NOTPARALLEL:

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

demo: program  ## solve a case on a grid and by particles, study its mean-field limit, draw one picture
	@mkdir -p demo
	$(bin)/vlasov converge mixture-2d --n 64,128,256,512,1024,2048,4096 --replicas 32 --exact-up-to 256 \
		-o demo/study --force
	$(bin)/vlasov compare mixture-2d --study demo/study/study.nc -o demo/mixture-2d.png --force
	@echo "Done. demo/mixture-2d.png: the density on a moving grid with tokens over it, where the two differ, how far they"
	@echo "are apart, and how fast n tokens approach the mean-field limit."

test: environment  ## run the tests
	$(bin)/python -m pytest -n auto

quick: environment  ## run one test of each idea, in less than a minute
	$(bin)/python -m pytest -n auto -m quick

docs:  ## build the manual, without network once all is installed; every example in it runs
	@.ci/docs

docs-check: tools  ## open every page of the built manual in Chromium, follow all its links
	$(bin)/python tests/docs/browser.py docs/_build/html

fuzz:  ## throw 10,000 inputs at everything, others each time; takes about an hour
	@.ci/fuzz

lint: tools  ## check the style, change nothing
	$(bin)/python -m ruff check
	$(bin)/python -m ruff format --check

format: tools  ## put the style right
	$(bin)/python -m ruff check --fix
	$(bin)/python -m ruff format

types: tools  ## check the types
	$(bin)/python -m mypy

clean:  ## remove what was made, except .venv
	rm -rf build dist demo *.egg-info .coverage htmlcov .hypothesis
	rm -rf docs/_build docs/jupyter_execute docs/reference/api docs/reference/_made docs/sg_execution_times.rst
	rm -rf docs/gallery/cases docs/gallery/programs
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find vlasov solvers cases postprocess tests docs benchmarks -name __pycache__ -prune -exec rm -rf {} +

program:
	@.ci/bootstrap user

environment:
	@.ci/bootstrap test

tools:
	@.ci/bootstrap dev
