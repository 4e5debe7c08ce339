"""What every test shares: which tests run, and noise that is the same in each run.

| command | runs |
|---|---|
| ``pytest`` | all but the tests marked ``slow``; of one marked ``slow(but=4)`` four cases; ``scaled`` ones with a smaller share |
| ``pytest --slow only`` | what that leaves out, with a smaller share too: CI runs this after the line before |
| ``pytest --slow too`` | both |
| ``pytest -m extras`` | of the first line those that need what an extra brings, or a server: ``.ci/extras`` installs both |
| ``pytest -m slow`` | the tests marked ``slow`` or ``scaled``, in full, with the operating system's randomness |
| ``pytest tests/test_x.py::test_y`` | that test, however slow it is |
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec

import pandas as pd
import pytest
from hypothesis import settings

from tests.internals import MEMORY, forget_drafts, sessions
from tests.internals import mechanisms_sampling_module as _sampling
from tests.postgres import Postgres, missing

# Other rooms import it, too, and what is imported can no longer be rewritten.
pytest.register_assert_rewrite("tests.engines.conformance")

# Of randomness itself, and of several processes, which must not draw the same.
OWN_ENTROPY = ("tests/mechanisms/", "tests/ledger/", "tests/store/")

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
    if not in_full(config):
        settings.load_profile("repeatable")


def left_out(items) -> set:
    """The slow tests. Of one that is marked ``slow(but=4)`` four cases, mixed by their names, are none."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow"):
            cases[item.nodeid.partition("[")[0]].append(item)
    slow = set()
    for group in cases.values():
        group.sort(key=lambda item: hashlib.sha256(name_of(item.nodeid).encode()).digest())
        slow |= set(group[group[0].get_closest_marker("slow").kwargs.get("but", 0) :])
    return slow


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave out slow tests, unless they are asked for by an option, a mark or their names."""
    wanted = config.getoption("slow")
    if in_full(config):
        for item in items:
            if item.get_closest_marker("scaled"):
                item.add_marker("slow")
    elif (
        wanted != "too"
        and "slow" not in config.getoption("markexpr")
        and not any("::" in a for a in config.args)
    ):
        slow = left_out(items)
        away = [item for item in items if (item in slow) != (wanted == "only")]
        config.hook.pytest_deselected(items=away)
        gone = set(away)
        items[:] = [item for item in items if item not in gone]


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


def stream(name: str) -> Iterator[bytes]:
    """Blocks that look random and follow from a name."""
    place = 0
    while True:
        yield hashlib.shake_256(f"{name}|{place}".encode()).digest(2**16)
        place += 1


class Everywhere:
    """Fixtures of all tests, and of examples in docstrings as well, which lie in none of the folders of tests."""

    @pytest.fixture(autouse=True)
    def nothing_remembered(self):
        """What plans take from equal questions is made anew: a test before may have broken a sensitivity on purpose."""
        forget_drafts()

    @pytest.fixture(autouse=True)
    def nothing_left(self):
        """Sessions, and populations in the memory of the process, are new in each test, each example and each page: a name that
        another has used, with another budget, is nobody's, and frames are not compared with those of thousands of tests."""
        MEMORY._entries.clear()
        before = set(sessions)
        yield
        for name in set(sessions) - before:
            del sessions[name]

    @pytest.fixture(autouse=True)
    def repeatable(self, request, monkeypatch):
        """A bound that holds with probability 0.9999 fails once in some hundred runs of a thousand tests: so the noise of each
        test follows from its name. A change of the code draws anew; ``-m slow`` has the operating system's entropy."""
        own = request.node.nodeid.startswith(OWN_ENTROPY)
        if own or in_full(request.config):
            return
        blocks, rest, lock = stream(name_of(request.node.nodeid)), b"", threading.Lock()

        def random_bytes(n: int) -> bytes:
            nonlocal rest
            with lock:
                while len(rest) < n:
                    rest += next(blocks)
                taken, rest = rest[:n], rest[n:]
                return taken

        monkeypatch.setattr(_sampling, "random_bytes", random_bytes)


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server, where one is installed."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    server = Postgres()
    yield server
    server.remove()
