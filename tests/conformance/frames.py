"""Random small frames of every dtype, and the integers of their statistics by exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction as F
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

from dpframe import _expr
from dpframe._expr import Column
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import Output
from dpframe._questions.question import Query
from dpframe._statistics.base import (
    MAGNITUDE_BITS,
    SQUARE_BITS,
    VALUE_BITS,
    Centred,
    Grid,
    Sensitivity,
    Simplex,
    Statistic,
    Total,
)
from dpframe._statistics.counts import Questions, RowCount, ValueCount
from dpframe._validate import Bounds
from dpframe.engines.pandas import PandasEngine

ADD, REPLACE = Unit("add-remove"), Unit("replace-one")
UNITS = {"add-remove": ADD, "replace-one": REPLACE}


# Columns: for each dtype class how to draw cells and how to store them -----------------------------------------


class Storage(NamedTuple):
    """A dtype class: cells as Python numbers (None is null), the column they make, and useful bounds."""

    cells: st.SearchStrategy[Any]
    build: Any
    bounds: list[tuple[float, float]]
    null: bool


def whole(low: int, high: int) -> st.SearchStrategy[Any]:
    extremes = [
        n for n in (low, low + 1, -1, 0, 1, 2**31, 2**53 + 1, high - 1, high) if low <= n <= high
    ]
    return (
        st.sampled_from(extremes) | st.integers(low, high) | st.integers(max(low, -6), min(high, 6))
    )


def real(width: int) -> st.SearchStrategy[Any]:
    nice = st.sampled_from([0.0, -0.0, 0.5, 1.5, -3.0, 5.0, math.inf, -math.inf])
    return st.floats(width=width) | nice | st.floats(-6, 6, width=width)


def numpy_column(dtype: str) -> Any:
    return lambda cells: pd.Series(
        np.array([math.nan if c is None else c for c in cells], dtype=dtype)
    )


def masked_column(dtype: str) -> Any:
    return lambda cells: pd.Series(pd.array(list(cells), dtype=dtype))


def arrow_column(dtype: str) -> Any:
    pa = pytest.importorskip("pyarrow")

    def build(cells: Any) -> pd.Series[Any]:
        return pd.Series(pd.array(list(cells), dtype=pd.ArrowDtype(getattr(pa, dtype)())))

    return build


def sparse_column(fill: float) -> Any:
    def build(cells: Any) -> pd.Series[Any]:
        dense = np.array([math.nan if c is None else c for c in cells], dtype=np.float64)
        return pd.Series(pd.arrays.SparseArray(dense, fill_value=fill))

    return build


SMALL = [(-3.0, 5.0), (2.0, 5.0), (-5.0, 5.0), (-5.0, -2.0)]
UNSIGNED = [(0.0, 5.0), (2.0, 5.0)]
HUGE = [
    (0.0, 2.0**63),
    (-(2.0**63), 0.0),
    (0.0, 2.0**64),
    (0.0, 2.0**70),
    (-(2.0**63), 2.0**64),
    (4.0, 4.0),
]
FRACTIONS = [
    (0.1, 0.7),
    (0.0, 1e308),
    (-1e308, 1e308),
    (0.0, 1e-200),
    (1.0, 1.0 + 2**-52),
    (-1e-150, 1e-200),
]
MAYBE = st.none()

STORAGES = {
    "int8": Storage(whole(-128, 127), numpy_column("int8"), SMALL, False),
    "int16": Storage(whole(-(2**15), 2**15 - 1), numpy_column("int16"), SMALL, False),
    "int32": Storage(whole(-(2**31), 2**31 - 1), numpy_column("int32"), SMALL, False),
    "int64": Storage(whole(-(2**63), 2**63 - 1), numpy_column("int64"), SMALL, False),
    "uint8": Storage(whole(0, 255), numpy_column("uint8"), UNSIGNED, False),
    "uint64": Storage(whole(0, 2**64 - 1), numpy_column("uint64"), UNSIGNED, False),
    "float16": Storage(real(16), numpy_column("float16"), SMALL, True),
    "float32": Storage(real(32), numpy_column("float32"), SMALL, True),
    "float64": Storage(real(64), numpy_column("float64"), SMALL, True),
    "bool": Storage(st.booleans(), numpy_column("bool"), [(0.0, 1.0)], False),
    "Int64": Storage(MAYBE | whole(-(2**63), 2**63 - 1), masked_column("Int64"), SMALL, True),
    "UInt8": Storage(MAYBE | whole(0, 255), masked_column("UInt8"), UNSIGNED, True),
    "Float64": Storage(MAYBE | real(64), masked_column("Float64"), SMALL, True),
    "boolean": Storage(MAYBE | st.booleans(), masked_column("boolean"), [(0.0, 1.0)], True),
    "int64[pyarrow]": Storage(
        MAYBE | whole(-(2**63), 2**63 - 1), arrow_column("int64"), SMALL, True
    ),
    "double[pyarrow]": Storage(MAYBE | real(64), arrow_column("float64"), SMALL, True),
    "bool[pyarrow]": Storage(MAYBE | st.booleans(), arrow_column("bool_"), [(0.0, 1.0)], True),
    "Sparse[nan]": Storage(real(64), sparse_column(math.nan), SMALL, True),
    "Sparse[0]": Storage(real(64), sparse_column(0.0), SMALL, True),
}


class Grouping(NamedTuple):
    """A key dtype: its cells, the column they make, and the declared keys."""

    cells: list[Any]
    build: Any
    keys: list[Any]


def times(cells: Any) -> pd.Series[Any]:
    return pd.Series(pd.DatetimeIndex(list(cells), dtype="datetime64[us]"))


def categories(cells: Any) -> pd.Series[Any]:
    return pd.Series(pd.Categorical(list(cells), categories=["z", "b", "a", "c"]))


DAY = pd.Timestamp("2024-02-29")
GROUPINGS = {
    "category": Grouping(["a", "b", "c", None], categories, ["b", "a"]),
    "str": Grouping(
        ["a", "b", "c", None], lambda c: pd.Series(list(c), dtype="str"), ["a", "b", None]
    ),
    "object": Grouping(
        ["a", 1, 1.0, True, None, math.nan, (1, 2), "c"],
        lambda c: pd.Series([*c, None], dtype=object).iloc[
            :-1
        ],  # a lone tuple would be taken for the data
        ["a", 1, None],
    ),
    "time": Grouping([DAY, DAY + pd.Timedelta(1, "us"), None], times, [DAY, None]),
    "int64": Grouping(
        [-(2**63), 0, 1, 2**53 + 1], lambda c: pd.Series(list(c), dtype="int64"), [1, -(2**63)]
    ),
    "float": Grouping(
        [0.5, -0.0, 2.0, math.nan], lambda c: pd.Series(list(c), dtype=float), [0.0, 0.5, 2.0]
    ),
    "bool": Grouping(
        [True, False, None], lambda c: pd.Series(pd.array(list(c), dtype="boolean")), [True, False]
    ),
}


def is_null(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def place(cell: Any, keys: list[Any]) -> int | None:
    """Which declared key a cell is: nulls are one key, and a bool is no number."""
    for i, key in enumerate(keys):
        if is_null(cell) or is_null(key):
            if is_null(cell) and is_null(key):
                return i
        elif isinstance(cell, bool) == isinstance(key, bool) and cell == key:
            return i
    return None


# Statistics, each with its contribution of one row, from the definition ----------------------------------------


class Case(NamedTuple):
    make: Any  # of the column, its bounds and whether it is whole
    row: Any  # (null, steps above the lower bound, steps from zero, width) to integers
    alone: bool = False  # for replace-one without groups only
    public: bool = False  # for the whole frame only
    every_row_has_value: bool = False  # for columns that are never null only


def wide(bits: int) -> Any:
    return lambda b: Grid.for_width(b, bits)


VALUE, SQUARE = wide(VALUE_BITS), wide(SQUARE_BITS)


def bernstein(degree: int, nulls: bool) -> Case:
    """The terms of (b + a)**degree of each value, and its mass for a null."""

    def row(null: bool, a: int, v: int, w: int) -> tuple[int, ...]:
        terms = [math.comb(degree, k) * a**k * (w - a) ** (degree - k) for k in range(degree + 1)]
        return (*([0] * len(terms) if null else terms), *[w**degree * null] * nulls)

    return Case(
        lambda x, b, w: Simplex(x, Grid.for_width(b, VALUE_BITS, degree), degree, nulls), row
    )


CASES = {
    "rows": Case(lambda x, b, w: RowCount(), lambda null, a, v, w: (1,)),
    "values": Case(lambda x, b, w: ValueCount(x), lambda null, a, v, w: (int(not null),)),
    "values, nulls": Case(
        lambda x, b, w: ValueCount(x, nulls=True), lambda null, a, v, w: (int(not null), int(null))
    ),
    "total": Case(
        lambda x, b, w: Total(x, Grid.for_magnitude(b, MAGNITUDE_BITS, w)),
        lambda null, a, v, w: (0 if null else v,),
    ),
    "total, always": Case(
        lambda x, b, w: Total(
            x, Grid.for_magnitude(b, MAGNITUDE_BITS, w), every_row_has_value=True
        ),
        lambda null, a, v, w: (v,),
        alone=True,
        public=True,
        every_row_has_value=True,
    ),
    "simplex 1": Case(
        lambda x, b, w: Simplex(x, VALUE(b), 1, False),
        lambda null, a, v, w: (0, 0) if null else (w - a, a),
    ),
    "simplex 1, nulls": Case(
        lambda x, b, w: Simplex(x, VALUE(b), 1, True),
        lambda null, a, v, w: (0, 0, w) if null else (w - a, a, 0),
    ),
    "simplex 2": Case(
        lambda x, b, w: Simplex(x, SQUARE(b), 2, False),
        lambda null, a, v, w: (0, 0, 0) if null else ((w - a) ** 2, 2 * a * (w - a), a**2),
    ),
    "simplex 2, nulls": Case(
        lambda x, b, w: Simplex(x, SQUARE(b), 2, True),
        lambda null, a, v, w: (
            (0, 0, 0, w * w) if null else ((w - a) ** 2, 2 * a * (w - a), a**2, 0)
        ),
    ),
    "simplex 3": bernstein(3, False),
    "simplex 3, nulls": bernstein(3, True),
    "simplex 5, nulls": bernstein(5, True),
    "centred": Case(
        lambda x, b, w: Centred(x, VALUE(b)),
        lambda null, a, v, w: (0, 0) if null else (2 * a - w, w),
        alone=True,
    ),
    "centred, public rows": Case(
        lambda x, b, w: Centred(x, VALUE(b), rows=7),
        lambda null, a, v, w: (0,) if null else (2 * a - w,),
        alone=True,
        public=True,
    ),
    "questions": Case(lambda x, b, w: Questions(asked(x)), None),
}


def asked(x: Column) -> tuple[Any, ...]:
    """Three questions that overlap: is there a value, does the condition hold, both."""
    valued = _expr.not_null(x)
    return (valued, FLAG, _expr.logical_and(valued, FLAG))


FLAG = Column.of(1, "flag", pd.BooleanDtype())


class Layout(NamedTuple):
    """What is asked of a frame with the columns x, flag, key and parity."""

    storage: str
    grouping: str
    levels: int  # grouped by nothing, by key, or by key and parity
    filtered: bool

    def frame(self, rows: list[tuple[Any, ...]]) -> pd.DataFrame:
        x, flag, key, parity = zip(*rows, strict=True) if rows else ((), (), (), ())
        columns = {
            "x": STORAGES[self.storage].build(x),
            "flag": pd.Series(pd.array(list(flag), dtype="boolean")),
            "key": GROUPINGS[self.grouping].build(key),
            "parity": pd.Series(np.array(parity, dtype="int8")),
        }
        return pd.DataFrame(columns)

    @property
    def leaves(self) -> list[Column]:
        frame = self.frame([])
        return [Column.of(i, name, dtype) for i, (name, dtype) in enumerate(frame.dtypes.items())]

    def query(self) -> Query:
        _, flag, key, parity = self.leaves
        by = (
            KeyBy(key, keys_for(GROUPINGS[self.grouping].keys, key, "key")),
            KeyBy(parity, keys_for([1, 0], parity, "parity")),
        )
        return Query((Output("rows", "size"),), flag if self.filtered else None, by[: self.levels])

    def group(self, row: tuple[Any, ...]) -> int | None:
        """The group of a row, or None where it is in none or the filter leaves it out."""
        _, flag, key, parity = row
        if self.filtered and flag is not True:
            return None
        if self.levels == 0:
            return 0
        first = place(key, GROUPINGS[self.grouping].keys)
        if first is None or self.levels == 1:
            return first
        return 2 * first + {1: 0, 0: 1}[parity] if parity in (0, 1) else None

    @property
    def groups(self) -> int:
        return [1, 1, 2][self.levels] * (len(GROUPINGS[self.grouping].keys) if self.levels else 1)


def integers(
    layout: Layout, rows: list[tuple[Any, ...]], statistics: dict[str, Statistic]
) -> dict[str, list[Any]]:
    """What the engine makes of the rows, as Python integers, by statistic, component and group."""
    needed = {p for s in statistics.values() for p in s.primitives}
    reduced = PandasEngine(layout.frame(rows)).reduce(layout.query(), needed)
    return {name: s.integers(reduced).tolist() for name, s in statistics.items()}


def on_grid(x: F, exponent: int) -> int:
    return round(x * F(2) ** exponent)


def expected(
    layout: Layout, rows: list[tuple[Any, ...]], name: str, statistic: Any, bounds: Bounds
) -> list[Any]:
    """The same from the definition, with rational numbers."""
    grid = getattr(statistic, "grid", None)
    width = len(contribution(name, (None, None, None, 0), grid, bounds))
    sums = [[0] * layout.groups for _ in range(width)]
    for row in rows:
        group = layout.group(row)
        if group is not None:
            for i, part in enumerate(contribution(name, row, grid, bounds)):
                sums[i][group] += part
    return sums


def contribution(name: str, row: tuple[Any, ...], grid: Any, bounds: Bounds) -> tuple[int, ...]:
    cell, flag = row[0], row[1] is True
    null = is_null(cell)
    if name == "questions":
        return (int(not null), int(flag), int(not null and flag))
    above = from_zero = width = 0
    if grid is not None:
        low, high = (on_grid(F(b), grid.exponent) for b in bounds)
        width = max(1, high - low)
        if not null:
            x = float(cell)  # numbers of more than 53 bits are read as the nearest double
            clipped = F(min(max(x, bounds.lower), bounds.upper))
            from_zero = on_grid(clipped, grid.exponent)
            above = from_zero - low
    return tuple(CASES[name].row(null, above, from_zero, width))


def distance(a: list[Any], b: list[Any]) -> tuple[int, int]:
    steps = [
        p - q for one, other in zip(a, b, strict=True) for p, q in zip(one, other, strict=True)
    ]
    return sum(map(abs, steps)), sum(s * s for s in steps)


def within(claim: Sensitivity, a: list[Any], b: list[Any]) -> bool:
    l1, l2_squared = distance(a, b)
    return l1 <= claim.l1 and l2_squared <= claim.l2_squared


def statistics_for(
    layout: Layout, bounds: Bounds, unit: Unit | None = None
) -> dict[str, Statistic]:
    """Every statistic that may be asked like this; for a relation, those that are for it."""
    x = layout.leaves[0]
    return {
        name: case.make(
            x, bounds, x.integral and bounds.lower.is_integer() and bounds.upper.is_integer()
        )
        for name, case in CASES.items()
        if not (case.alone and (layout.levels or unit is ADD))
        and not (case.public and layout.filtered)
        and not (case.every_row_has_value and STORAGES[layout.storage].null)
    }


@st.composite
def layouts(draw: Any, storage: str) -> Layout:
    return Layout(
        storage,
        draw(st.sampled_from(sorted(GROUPINGS))),
        draw(st.integers(0, 2)),
        draw(st.booleans()),
    )


def rows_of(layout: Layout) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(
        STORAGES[layout.storage].cells,
        st.sampled_from([True, True, False, None]),
        st.sampled_from(GROUPINGS[layout.grouping].cells),
        st.sampled_from([0, 1, 1, 2]),
    )


def bounds_of(storage: str) -> st.SearchStrategy[Bounds]:
    drawn = st.sampled_from(STORAGES[storage].bounds + HUGE + FRACTIONS)
    return drawn.map(lambda b: Bounds(*b))
