.PHONY: check test test-slow fuzz mutants

check:  ## what a commit must pass besides the tests
	ruff check .
	ruff format --check .
	mypy

test:  ## everything, the statistics in a smaller share
	pytest

test-slow:  ## the statistics in full
	pytest -m slow

fuzz:  ## random questions on random neighbouring frames; N=20000 for more of them
	python -m tests.fuzz $(or $(N),5000)

mutants:  ## wrong changes of the package that no test sees; JOBS=2 for more at a time
	python -m tests.mutants.run --jobs $(or $(JOBS),1)
