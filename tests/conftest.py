"""Choose which tests run, and give each noise that is the same in each run.

| command | runs |
|---|---|
| ``pytest`` | all but the tests marked ``slow``, and cases beyond the time of a test |
| ``pytest --slow only`` | what that leaves out; of a test with many cases others each day |
| ``pytest --slow only --whole`` | all that the first line leaves out |
| ``pytest --slow too`` | both |
| ``pytest --listed FILE`` | the tests that the file names: those that a lighter run has skipped |
| ``pytest -m extras`` | of the first line those that need what an extra brings, or a server |
| ``pytest -m slow`` | the tests marked ``slow`` or ``scaled``, in full, with true randomness |
| ``pytest tests/test_x.py::test_y`` | that test, however slow it is |
"""

from __future__ import annotations

import datetime
import hashlib
import math
import os
import sys
from collections import defaultdict
from importlib.util import find_spec

import pandas as pd
import pytest
from hypothesis import settings

from dpframe._ledger import MEMORY
from dpframe._session.data import sessions
from dpframe.mechanisms import _sampling
from tests import budget, skipped
from tests.internals import forget_drafts
from tests.noise import Repeatable
from tests.postgres import Postgres, missing

# Other rooms import it, too, and what is imported can no longer be rewritten.
pytest.register_assert_rewrite("tests.engines.conformance")

# Of randomness itself, and of several processes, which must not draw the same.
OWN_ENTROPY = ("tests/mechanisms/", "tests/ledger/", "tests/store/")

# Slow cases of one test that a run of the slow share has, others each day, and their CPU seconds.
SHARE = 12
SHARE_SECONDS = 1.0

# Modules with examples that import a library of an extra.
ABOUT = {
    "dpframe/polars.py": "polars",
    "dpframe/dask.py": "dask",
    "tests/benchmarks/bench_memory.py": "polars",
}

settings.register_profile("repeatable", derandomize=True)

# For the workers of pytest-xdist, which must name the tests alike: ids that show a set show its order.
os.environ.setdefault("PYTHONHASHSEED", "0")


def in_full(config) -> bool:
    return config.getoption("markexpr") == "slow"


def pytest_addoption(parser):
    words = "the tests marked slow, in a smaller share: not at all, with the others, or they alone"
    parser.addoption("--slow", choices=("no", "too", "only"), default="no", help=words)
    words = "with --slow only: all cases of every test, and not the share of the day"
    parser.addoption("--whole", action="store_true", help=words)
    words = "write the CPU seconds of each case into this file, for python -m tests.budget"
    parser.addoption("--durations-to", default=None, help=words)
    words = "write the names of skipped tests into this file, for --listed"
    parser.addoption("--skipped-to", default=None, help=words)
    words = "run the tests in this file alone, slow ones too; may be given more than once"
    parser.addoption("--listed", action="append", default=[], help=words)
    words = "with --listed: also what the default run has of this folder"
    parser.addoption("--besides", default=None, help=words)


class Absent:
    """Leaves out examples of modules about libraries that are not installed.

    Any other module that cannot be imported is an error. With pytest's own word for this, ``--doctest-ignore-import-errors``, a
    file of tests that cannot be imported would count as one without tests, and nobody would be told.
    """

    def pytest_ignore_collect(self, collection_path):
        about = [
            library for path, library in ABOUT.items() if collection_path.as_posix().endswith(path)
        ]
        return True if about and find_spec(about[0]) is None else None


class Figures:
    """Closes the figures that a test or an example has left open, of which pyplot counts at most twenty."""

    def pytest_runtest_teardown(self):
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:
            pyplot.close("all")


def pytest_configure(config):
    config.pluginmanager.register(Absent())
    config.pluginmanager.register(Figures())
    config.pluginmanager.register(Everywhere())
    if config.getoption("listed"):
        names = skipped.read_names(config.getoption("listed"))
        folders = [config.rootpath / one for one in [config.getoption("besides")] if one]
        config.pluginmanager.register(skipped.Listed(names, config.rootpath, folders))
    config.pluginmanager.register(budget.Durations(config.getoption("durations_to")))
    if config.getoption("skipped_to") is not None:
        config.pluginmanager.register(skipped.Skipped(config.getoption("skipped_to")))
    if not in_full(config):
        settings.load_profile("repeatable")


def hash_of(item) -> bytes:
    """Return what mixes the cases of a test: the hash of a name that stays."""
    return hashlib.sha256(name_of(item.nodeid).encode()).digest()


def left_out(items) -> set:
    """Return the cases that the default run leaves out.

    Cases marked ``slow`` are left out, but for four of a test if they are marked ``slow(but=4)``:
    first those that kill a mutant, then others mixed by their names. Of what stays,
    `tests/slow.txt` leaves out the cases that take too long, but for tests marked ``kept``.
    """
    tests = defaultdict(list)
    for item in items:
        tests[budget.test_of(item.nodeid)].append(item)
    slow, listed, needed = set(), budget.slow_list(), budget.proofs()
    for test, group in tests.items():
        marked = [item for item in group if item.get_closest_marker("slow")]
        if marked:
            marked.sort(key=lambda item: (item.nodeid not in needed, hash_of(item)))
            but = marked[0].get_closest_marker("slow").kwargs.get("but", 0)
            slow |= set(marked[but:])
            group = [item for item in group if item not in slow]
        kept = group and group[0].get_closest_marker("kept")
        if group and not kept and (test in listed or any(item.nodeid in listed for item in group)):
            away = budget.leave_out([item.nodeid for item in group], listed, needed)
            slow |= {item for item in group if item.nodeid in away}
    return slow


def kind_of(item) -> str:
    """Return the name of the test of a case, the same in all classes that inherit the test."""
    function = getattr(item, "function", None)
    if function is None:
        return budget.test_of(item.nodeid)
    return f"{function.__module__}.{function.__qualname__}"


def share_of_day(items, day: int) -> set:
    """Return the slow cases of a day: of a test with many, some others each day.

    So a push waits for `SHARE` cases of a kind or for `SHARE_SECONDS`, but for one at least, and
    every case has its turn. Those of a test that several classes inherit are cases of one test.
    Tests marked ``daily`` have all their slow cases each day.
    """
    tests = defaultdict(list)
    for item in items:
        tests[kind_of(item)].append(item)
    chosen, listed = set(), budget.slow_list()
    for group in tests.values():
        group.sort(key=hash_of)
        seconds = sum(budget.seconds_of(item.nodeid, listed) for item in group)
        turns = min(
            len(group), max(math.ceil(len(group) / SHARE), math.ceil(seconds / SHARE_SECONDS))
        )
        turns = 1 if group[0].get_closest_marker("daily") else turns
        chosen |= set(group[day % turns :: turns])
    return chosen


def leave(config, items, away) -> None:
    """Take some items out of what is run."""
    config.hook.pytest_deselected(items=away)
    gone = set(away)
    items[:] = [item for item in items if item not in gone]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave out slow tests, unless they are asked for by an option, a mark or their names."""
    wanted = config.getoption("slow")
    if config.getoption("listed"):
        names, besides = skipped.read_names(config.getoption("listed")), config.getoption("besides")
        slow = left_out(items) if besides else set(items)
        leave(
            config,
            items,
            [
                item
                for item in items
                if not skipped.is_listed(item.nodeid, names)
                and not (item not in slow and item.nodeid.startswith(f"{besides}/"))
            ],
        )
    elif in_full(config):
        for item in items:
            if item.get_closest_marker("scaled"):
                item.add_marker("slow")
    elif (
        wanted != "too"
        and "slow" not in config.getoption("markexpr")
        and not any("::" in a for a in config.args)
    ):
        slow = left_out(items)
        if wanted == "only":
            whole = config.getoption("whole")
            run = slow if whole else share_of_day(slow, datetime.date.today().toordinal())
        else:
            run = set(items) - slow
        away = [item for item in items if item not in run]
        leave(config, items, away)


@pytest.fixture(scope="session")
def full(request) -> bool:
    """Whether statistics run in full: with ``-m slow``. A smaller share otherwise."""
    return in_full(request.config)


@pytest.fixture
def df():
    """Six visits: one without a cost, one without a state."""
    return pd.DataFrame(
        {
            "age": [31, 47, 66, 80, 12, 55],
            "cost": [120.5, None, 80.25, 900.0, 15.0, 60.0],
            "state": ["CA", "NY", "CA", "WA", None, "NY"],
        }
    )


def name_of(nodeid: str) -> str:
    """The name of a test that stays when its file goes to another folder, so that its noise stays too."""
    path, _, test = nodeid.partition("::")
    return f"tests/{path.rpartition('/')[2]}::{test}"


class Everywhere:
    """A fixture of all tests, and of examples in docstrings, which lie in no folder of tests."""

    @pytest.fixture(autouse=True)
    def start_alone(self, request):
        """Start each test as if it were the only one, with noise that is the same in each run.

        What plans take from equal questions is forgotten: a test before may have broken a
        sensitivity on purpose. Sessions, and populations in the memory of the process, are new in
        each test, each example and each page. So a name that another has used with another budget
        is free, and frames are not compared with those of thousands of tests.

        The noise follows from the name of the test, unless the operating system's is wanted. A
        bound that holds with probability 0.9999 fails once in some hundred runs of a thousand tests.
        """
        forget_drafts()
        MEMORY._entries.clear()
        before, of_system = set(sessions), _sampling.random_bytes
        node = request.node.nodeid
        if not node.startswith(OWN_ENTROPY) and not in_full(request.config):
            _sampling.random_bytes = Repeatable(name_of(node))
        yield
        _sampling.random_bytes = of_system
        for name in set(sessions) - before:
            del sessions[name]


def serve_postgres():
    """Yield a server of PostgreSQL, and remove it. Skip the test where none is installed."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    one = Postgres()
    yield one
    one.remove()


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server, where one is installed."""
    yield from serve_postgres()


@pytest.fixture(scope="module")
def server():
    """A PostgreSQL server of one file of tests, which may end all connections to it."""
    yield from serve_postgres()
