"""What every test shares: noise that is the same in each run, but for ``pytest -m slow``."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.internals import mechanisms_sampling_module as _sampling

# Of randomness itself, and of several processes, which must not draw the same.
OWN_ENTROPY = ("tests/mechanisms/", "tests/ledger/", "tests/store/")

settings.register_profile("repeatable", derandomize=True)

# For the workers of pytest-xdist, which must name the tests alike: ids that show a set show its order.
os.environ.setdefault("PYTHONHASHSEED", "0")


def pytest_configure(config):
    if config.getoption("markexpr") != "slow":
        settings.load_profile("repeatable")


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


@pytest.fixture(autouse=True)
def repeatable(request, monkeypatch):
    """A bound that holds with probability 0.9999 fails once in some hundred runs of a thousand tests: so the noise of each
    test follows from its name. A change of the code draws anew; ``-m slow`` has the operating system's entropy."""
    own = request.node.nodeid.startswith(OWN_ENTROPY)
    if own or request.config.getoption("markexpr") == "slow":
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
