"""A path, and whether the heavy tests run in full."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.store.conformance")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"


@pytest.fixture
def full(request):
    """Everything with ``-m slow``; a smaller share otherwise."""
    return request.config.getoption("markexpr") == "slow"
