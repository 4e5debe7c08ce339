"""Many rows, extreme grids: counts and sums stay exact, and no integer wraps around."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest

from dpframe._expr import Column
from dpframe._groups.keys import ROW_CEILING, KeyBy, keys_for
from dpframe._plans.aggregates import Output
from dpframe._questions.question import Query
from dpframe._statistics.base import MAGNITUDE_BITS, SQUARE_BITS, VALUE_BITS, Grid
from dpframe._statistics.counts import RowCount
from dpframe._validate import Bounds
from dpframe.engines.pandas import PandasEngine
from tests.conformance.frames import (
    FRACTIONS,
    HUGE,
    SMALL,
    UNSIGNED,
    Layout,
    expected,
    integers,
    statistics_for,
)


@pytest.mark.parametrize("rows", [0, 1, 2**18 - 1, 2**18, 2**18 + 1])
def test_many_rows_are_counted_as_few_are(rows):
    """Long columns of small keys are counted by another path; a filter gives it lengths of both parities."""
    keys = (np.arange(rows) * 7 % 11).astype("int8")
    flags = np.arange(rows) % 3 < 2
    frame = pd.DataFrame({"key": keys, "flag": flags})
    key, flag = (Column.of(i, name, frame.dtypes.iloc[i]) for i, name in enumerate(frame))
    by = (KeyBy(key, keys_for(range(1, 11), key, "key")),)
    for where, asked_about in ((None, keys), (flag, keys[flags])):
        query = Query((Output("rows", "size"),), where, by)
        found = RowCount().integers(PandasEngine(frame).reduce(query, set(RowCount().primitives)))
        assert found.tolist() == [np.bincount(asked_about, minlength=11)[1:].tolist()]


# No wrap-around ------------------------------------------------------------------------------------------------

GRIDS = [
    Bounds(*b)
    for b in SMALL + UNSIGNED + HUGE + FRACTIONS + [(0.0, 0.0), (0.0, 1.0), (-1e-300, 5e-300)]
]


@pytest.mark.parametrize("bounds", GRIDS, ids=str)
def test_sums_over_the_most_rows_fit_63_bits_with_noise(bounds):
    """As many rows as a session may have, all at one bound: 64-bit integers agree with Python's."""
    layout = Layout("Float64", "category", 0, False)
    for name, statistic in statistics_for(layout, bounds).items():
        grid = getattr(statistic, "grid", None)
        for a in {0, grid.high - grid.low} if grid is not None else {0}:
            for valued in (0, ROW_CEILING):
                sums = {}
                for p in statistic.primitives:
                    powers = [valued * a**i for i in range(getattr(p, "degree", 0) + 1)]
                    sums[p] = [[s] for s in powers] if hasattr(p, "degree") else [ROW_CEILING]
                python = statistic.integers(
                    {p: np.array(s, dtype=object) for p, s in sums.items()}
                ).tolist()
                machine = statistic.integers(
                    {p: np.array(s, dtype=np.int64) for p, s in sums.items()}
                )
                assert machine.tolist() == python, name
                assert all(abs(s) <= 2**62 for row in python for s in row), name
                assert all(
                    abs(s) <= 2**62
                    for row in sums.values()
                    for one in row
                    for s in np.atleast_1d(one)
                ), name


@pytest.mark.parametrize(
    "bits", [VALUE_BITS, MAGNITUDE_BITS, SQUARE_BITS, VALUE_BITS // 3, VALUE_BITS // 5]
)
@pytest.mark.parametrize("bounds", GRIDS, ids=str)
def test_a_grid_is_as_fine_as_its_bits_allow(bounds, bits):
    lower, upper = map(F, bounds)
    extents = [
        (Grid.for_width(bounds, bits), upper - lower or max(abs(upper), abs(lower))),
        (Grid.for_magnitude(bounds, bits, integral=False), max(abs(upper), abs(lower))),
    ]
    for grid, extent in extents:
        steps = (extent or 1) * F(2) ** grid.exponent
        assert steps < 2**bits
        assert steps >= 2 ** (bits - 2) or grid.exponent == 960
        assert min(grid.magnitude, grid.width) <= 2**bits
        assert grid.width <= 2 ** (bits + 1)


@pytest.mark.parametrize("top", [2**63 - 1, 2**62, 2**53 + 1])
def test_many_rows_at_the_top_of_a_dtype_do_not_wrap(top):
    """Four rows of 2**62 wrap to zero in int64; here they are exact on the grid, however many there are."""
    rows = [(top, True, "a", 1)] * 1000
    for storage in ("int64", "uint64", "Int64", "int64[pyarrow]"):
        layout, bounds = Layout(storage, "category", 1, True), Bounds(0.0, 2.0**63)
        statistics = statistics_for(layout, bounds)
        found = integers(layout, rows, statistics)
        for name, statistic in statistics.items():
            assert found[name] == expected(layout, rows, name, statistic, bounds), (storage, name)
