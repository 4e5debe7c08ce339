"""People named by several columns: a null in any of them is nobody, and equal cells in other places are other people."""

from __future__ import annotations

import pandas as pd
import pytest

EXACT = 300.0
NULLS = [None, float("nan"), pd.NA]


def people(frame: pd.DataFrame, **words) -> int:
    p = frame.dp.open(1000, unit=["a", "b"], max_rows=1, max_groups=1, **words)
    return int(p.count(epsilon=EXACT))


@pytest.mark.parametrize("null", NULLS, ids=str)
@pytest.mark.parametrize("place", ["a", "b"])
def test_a_null_in_any_of_the_columns_is_nobody(place, null):
    other = {"a": "b", "b": "a"}[place]
    frame = pd.DataFrame(
        {place: pd.Series([1, null, null, null, 2, null], dtype=object), other: [1, 2, 3, 4, 1, 2]}
    )
    assert people(frame) == 2


def test_the_same_cells_the_other_way_round_are_somebody_else():
    assert people(pd.DataFrame({"a": [1, 2, 1, 2], "b": [2, 1, 2, 1]})) == 2


def test_every_column_counts():
    assert people(pd.DataFrame({"a": [1, 1, 1, 2], "b": ["x", "y", "x", "x"]})) == 3


def test_three_columns_name_a_person():
    frame = pd.DataFrame({"a": [1, 1, 1, None], "b": [1, 1, 1, 1], "c": ["x", "x", "y", "x"]})
    p = frame.dp.open(1000, unit=["a", "b", "c"], max_rows=1)
    assert p.count(epsilon=EXACT) == 2
