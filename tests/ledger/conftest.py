"""A path for a ledger, and whether the races and kills run in full."""

from __future__ import annotations

import pytest


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "budget.db")


@pytest.fixture
def full(request):
    """Everything with ``-m slow``; a smaller share otherwise."""
    return request.config.getoption("markexpr") == "slow"
