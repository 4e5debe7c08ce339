"""Counts of values beside those of nulls: how far one replaced row moves both."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpframe._groups.unit import Unit
from dpframe._statistics.counts import ValueCount


def test_a_value_that_is_replaced_by_a_null_moves_two_counts() -> None:
    column: Any = None  # whatever it is
    claim = ValueCount(column, nulls=True).sensitivity(Unit("replace-one"), False)
    moved = np.array([1, 0]) - np.array([0, 1])
    assert (claim.l1, claim.l2_squared) == (abs(moved).sum(), (moved**2).sum())
    assert ValueCount(column).sensitivity(Unit("replace-one"), False).l1 == 1
