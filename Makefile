.PHONY: check test test-slow mutants

check:  ## what a commit must pass besides the tests
	ruff check .
	ruff format --check .
	mypy

test:  ## everything, the statistics in a smaller share
	pytest

test-slow:  ## the statistics in full
	pytest -m slow

mutants:  ## wrong changes of the package that no test sees; JOBS=2 for more at a time
	python -m tests.mutants.run --jobs $(or $(JOBS),1)
