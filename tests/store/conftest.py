"""A path, and a store of either kind."""

from __future__ import annotations

import pytest

from tests.internals import FileStore, MemoryStore


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"


@pytest.fixture(params=["memory", "file"])
def store(request, path):
    return MemoryStore() if request.param == "memory" else FileStore(path)
