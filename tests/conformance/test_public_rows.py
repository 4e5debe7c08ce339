"""Where replace-one makes the number of rows public: what that buys, and where it ends."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe._expr import Column
from dpframe._groups.unit import Unit
from dpframe._questions.question import Query
from dpframe._statistics.base import Grid, Total
from dpframe._validate import Bounds
from dpframe.engines.pandas import PandasEngine

REPLACE = Unit("replace-one")
X = Column.of(0, "x", pd.Series([0]).dtype)


def total(values: list[int], statistic: Total) -> int:
    frame = pd.DataFrame({"x": pd.array(values, dtype="int64")})
    reduced = PandasEngine(frame).reduce(Query(()), set(statistic.primitives))
    return int(statistic.integers(reduced)[0, 0])


@given(
    st.lists(st.integers(-50, 2000), min_size=1, max_size=8),
    st.integers(-50, 2000),
    st.integers(-40, 900),
    st.integers(0, 1000),
)
def test_a_sum_over_rows_that_always_count_moves_by_the_width_at_most(
    values: list[int], other: int, lower: int, width: int
) -> None:
    statistic = Total(
        X, Grid(Bounds(float(lower), float(lower + width)), 0), every_row_has_value=True
    )
    moved = abs(total(values, statistic) - total([other, *values[1:]], statistic))
    assert moved <= statistic.sensitivity(REPLACE, False).l1


def test_the_width_is_reached() -> None:
    statistic = Total(X, Grid(Bounds(900.0, 1000.0), 0), every_row_has_value=True)
    assert total([2000, 950], statistic) - total([0, 950], statistic) == 100
    assert statistic.sensitivity(REPLACE, False) == (100, 100**2)


@pytest.mark.parametrize(
    ("step", "sensitivity"),
    [
        (lambda p: p, 100),
        (lambda p: p.query("x > 0"), 1000),
        (lambda p: p.assign(x=p["y"]), 1000),
        (lambda p: p.assign(x=p["y"].fillna(900)), 100),
        (lambda p: p.dropna(), 1000),
    ],
)
def test_width_is_charged_for_the_root_and_columns_without_nulls_only(
    step: Any, sensitivity: float
) -> None:
    frame: Any = pd.DataFrame({"x": [950, 960], "y": [1.0, None]})
    p = frame.dp.open(1, neighbors="replace-one", bounds={"x": (900, 1000), "y": (900, 1000)})
    assert step(p).explain.sum("x").sensitivity == sensitivity


def test_under_add_remove_a_row_moves_a_sum_by_its_magnitude() -> None:
    frame: Any = pd.DataFrame({"x": [950, 960]})
    assert frame.dp.open(1).explain.sum("x", bounds=(900, 1000)).sensitivity == 1000
