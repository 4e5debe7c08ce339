"""A path for a store."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.store.conformance")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"
