.PHONY: check types generated stubs test test-all test-slow docs pictures links examples bench fuzz mutants

check: types  ## what a commit must pass besides the tests
	ruff check .
	ruff format --check .

types:  ## mypy --strict: the package, and a program as a user writes it
	mypy
	pytest --quiet tests/typing

generated:  ## what follows from the catalogues: stubs, pages of the reference, texts of refusals
	python -m tests.typing.stubs
	python -m tests.frame.parts_stub
	python -m tests.grammar.coverage
	python -m tests.engines.verbs
	python -m tests.golden.refusals

stubs:  ## what type checkers see of the surface, in dpframe/_frame/surface.pyi
	python -m tests.typing.stubs

test:  ## all but the slow tests, in three minutes on two cores
	pytest

test-all:  ## every case of every test, each statistic in a smaller share
	pytest --slow too

test-slow:  ## the slow tests and the statistics, in full
	pytest -m slow

docs:  ## the site, in build/site: a warning, a link that leads nowhere or a misspelt word is an error
	sphinx-build -W --keep-going -q -j auto -b html -c docs/site . build/site
	python docs/site/links.py build/site
	codespell

links:  ## whether addresses elsewhere are still there; needs a network
	sphinx-build -q -b linkcheck -c docs/site . build/links

examples:  ## every example of every page, docstring and notebook
	pytest tests/test_docs.py tests/test_course.py tests/test_notebooks.py dpframe

pictures:  ## the figures of the course, drawn anew by the cells above them
	python -m tests.pictures

bench:  ## timings next to plain pandas; BENCH=people for another of tests/benchmarks
	python -m tests.benchmarks.bench_$(or $(BENCH),pandas)

fuzz:  ## random questions on random neighbouring frames; N=20000 for more of them
	python -m tests.fuzz $(or $(N),5000)

mutants:  ## wrong changes of the package that no test sees; JOBS=2 for more at a time
	python -m tests.mutants.run --jobs $(or $(JOBS),1)
