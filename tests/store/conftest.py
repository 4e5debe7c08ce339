"""A path, a store of either kind, and whether the heavy tests run in full."""

from __future__ import annotations

import pytest

from tests.internals import FileStore, MemoryStore


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"


@pytest.fixture(params=["memory", "file"])
def store(request, path):
    return MemoryStore() if request.param == "memory" else FileStore(path)


@pytest.fixture
def full(request):
    """Everything with ``-m slow``; a smaller share otherwise."""
    return request.config.getoption("markexpr") == "slow"
