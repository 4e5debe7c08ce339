"""A path for a ledger."""

from __future__ import annotations

import pytest


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "budget.db")
