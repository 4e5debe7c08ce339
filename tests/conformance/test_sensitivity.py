"""The integers of neighbouring frames: as far apart as claimed, and never further.

Frames are random and small; the integers are compared with exact rational arithmetic written out from the
definitions. Twins that must fail: a statistic that claims half its sensitivity, one that claims twice as much
as it needs, and engines that forget to clip, to round, or to leave nulls out.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction as F
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpframe import _expr
from dpframe._expr import Column
from dpframe._query import ROW_CEILING, KeyBy, Output, Query, Unit, keys_for
from dpframe._stats import (
    MAGNITUDE_BITS,
    SQUARE_BITS,
    VALUE_BITS,
    Centred,
    Grid,
    Questions,
    RowCount,
    Sensitivity,
    Simplex,
    Statistic,
    Total,
    ValueCount,
)
from dpframe._validate import Bounds
from dpframe.engines import pandas as engine_module
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
    extremes = [n for n in (low, low + 1, -1, 0, 1, 2**31, 2**53 + 1, high - 1, high) if low <= n <= high]
    return st.sampled_from(extremes) | st.integers(low, high) | st.integers(max(low, -6), min(high, 6))


def real(width: int) -> st.SearchStrategy[Any]:
    nice = st.sampled_from([0.0, -0.0, 0.5, 1.5, -3.0, 5.0, math.inf, -math.inf])
    return st.floats(width=width) | nice | st.floats(-6, 6, width=width)


def numpy_column(dtype: str) -> Any:
    return lambda cells: pd.Series(np.array([math.nan if c is None else c for c in cells], dtype=dtype))


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
HUGE = [(0.0, 2.0**63), (-(2.0**63), 0.0), (0.0, 2.0**64), (0.0, 2.0**70), (-(2.0**63), 2.0**64), (4.0, 4.0)]
FRACTIONS = [(0.1, 0.7), (0.0, 1e308), (-1e308, 1e308), (0.0, 1e-200), (1.0, 1.0 + 2**-52), (-1e-150, 1e-200)]
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
    "int64[pyarrow]": Storage(MAYBE | whole(-(2**63), 2**63 - 1), arrow_column("int64"), SMALL, True),
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
    "str": Grouping(["a", "b", "c", None], lambda c: pd.Series(list(c), dtype="str"), ["a", "b", None]),
    "object": Grouping(
        ["a", 1, 1.0, True, None, math.nan, (1, 2), "c"],
        lambda c: pd.Series([*c, None], dtype=object).iloc[:-1],  # a lone tuple would be taken for the data
        ["a", 1, None],
    ),
    "time": Grouping([DAY, DAY + pd.Timedelta(1, "us"), None], times, [DAY, None]),
    "int64": Grouping(
        [-(2**63), 0, 1, 2**53 + 1], lambda c: pd.Series(list(c), dtype="int64"), [1, -(2**63)]
    ),
    "float": Grouping([0.5, -0.0, 2.0, math.nan], lambda c: pd.Series(list(c), dtype=float), [0.0, 0.5, 2.0]),
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
    always: bool = False  # for columns that are never null only


def wide(bits: int) -> Any:
    return lambda b: Grid.for_width(b, bits)


VALUE, SQUARE = wide(VALUE_BITS), wide(SQUARE_BITS)
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
        lambda x, b, w: Total(x, Grid.for_magnitude(b, MAGNITUDE_BITS, w), always=True),
        lambda null, a, v, w: (v,),
        alone=True,
        public=True,
        always=True,
    ),
    "simplex 1": Case(
        lambda x, b, w: Simplex(x, VALUE(b), 1, False), lambda null, a, v, w: (0, 0) if null else (w - a, a)
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
        lambda null, a, v, w: (0, 0, 0, w * w) if null else ((w - a) ** 2, 2 * a * (w - a), a**2, 0),
    ),
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
    steps = [p - q for one, other in zip(a, b, strict=True) for p, q in zip(one, other, strict=True)]
    return sum(map(abs, steps)), sum(s * s for s in steps)


def within(claim: Sensitivity, a: list[Any], b: list[Any]) -> bool:
    l1, l2_squared = distance(a, b)
    return l1 <= claim.l1 and l2_squared <= claim.l2_squared


def statistics_for(layout: Layout, bounds: Bounds, unit: Unit | None = None) -> dict[str, Statistic]:
    """Every statistic that may be asked like this; for a relation, those that are for it."""
    x = layout.leaves[0]
    return {
        name: case.make(x, bounds, x.integral and bounds.lower.is_integer() and bounds.upper.is_integer())
        for name, case in CASES.items()
        if not (case.alone and (layout.levels or unit is ADD))
        and not (case.public and layout.filtered)
        and not (case.always and STORAGES[layout.storage].null)
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


@pytest.fixture
def examples(request):
    """A decorator for hypothesis: a smaller share unless pytest was called with ``-m slow``."""
    full = request.config.getoption("markexpr") == "slow"
    return settings(
        max_examples=300 if full else 8,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


# What one person can do ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("relation", UNITS)
@pytest.mark.parametrize("storage", STORAGES)
def test_one_person_moves_the_integers_by_at_most_the_claim(storage, relation, examples):
    @examples
    @given(st.data())
    def check(data):
        unit = UNITS[relation]
        layout = data.draw(layouts(storage))
        bounds = data.draw(bounds_of(storage))
        rows = data.draw(st.lists(rows_of(layout), max_size=12))
        at = data.draw(st.integers(0, len(rows)))
        person = data.draw(rows_of(layout))
        other = [data.draw(rows_of(layout))] if unit.replaces else []
        statistics = statistics_for(layout, bounds, unit)
        one = integers(layout, [*rows[:at], person, *rows[at:]], statistics)
        two = integers(layout, [*rows[:at], *other, *rows[at:]], statistics)
        for name, statistic in statistics.items():
            claim = statistic.sensitivity(unit, bool(layout.levels))
            assert within(claim, one[name], two[name]), name

    check()


@pytest.mark.slow
@pytest.mark.parametrize("storage", STORAGES)
def test_the_integers_are_the_definition_in_exact_arithmetic(storage, examples):
    """Clip, scale by a power of two, round half to even, add: whatever the dtype, and without wrapping around."""

    @examples
    @given(st.data())
    def check(data):
        layout = data.draw(layouts(storage))
        bounds = data.draw(bounds_of(storage))
        rows = data.draw(st.lists(rows_of(layout), max_size=12))
        statistics = statistics_for(layout, bounds)
        found = integers(layout, rows, statistics)
        for name, statistic in statistics.items():
            assert found[name] == expected(layout, rows, name, statistic, bounds), name

    check()


@pytest.mark.slow
@pytest.mark.parametrize("storage", STORAGES)
def test_neither_order_nor_blocks_change_a_bit(storage, examples, monkeypatch):
    @examples
    @given(st.data())
    def check(data):
        layout = data.draw(layouts(storage))
        bounds = data.draw(bounds_of(storage))
        rows = data.draw(st.lists(rows_of(layout), max_size=12))
        shuffled = data.draw(st.permutations(rows))
        block = data.draw(st.integers(2, 7))
        statistics = statistics_for(layout, bounds)
        with monkeypatch.context() as patch:
            at_once = integers(layout, rows, statistics)
            patch.setattr(engine_module, "_BLOCK", block)
            patch.setattr(engine_module, "_LARGEST_BLOCK", block)
            assert integers(layout, rows, statistics) == at_once
            assert integers(layout, shuffled, statistics) == at_once

    check()


# The claims are reached ----------------------------------------------------------------------------------------


def extremes(layout: Layout, bounds: Bounds) -> list[tuple[Any, ...]]:
    """Rows at both bounds and null, in and out of the filter, in each group."""
    whole_bounds = [bool(b) if layout.storage.startswith("bool") else int(b) for b in bounds]
    cells = whole_bounds + [None] * STORAGES[layout.storage].null
    flags = [True, False] if layout.filtered else [False, True]
    return list(itertools.product(cells, flags, GROUPINGS[layout.grouping].cells[:2], [1]))


def frames_of_one(layout: Layout, bounds: Bounds, statistics: dict[str, Statistic]) -> list[dict[str, Any]]:
    """The integers of the empty frame, then of each frame of one extreme row."""
    frames = [[]] + [[row] for row in extremes(layout, bounds)]
    return [integers(layout, rows, statistics) for rows in frames]


def neighbours(frames: list[Any], unit: Unit) -> list[tuple[Any, Any]]:
    empty, *alone = frames
    return list(itertools.combinations(alone, 2)) if unit.replaces else [(empty, one) for one in alone]


@pytest.mark.parametrize("levels", [0, 1], ids=["ungrouped", "grouped"])
@pytest.mark.parametrize("relation", UNITS)
@pytest.mark.parametrize("storage", STORAGES)
def test_some_person_moves_the_integers_by_the_whole_claim(storage, relation, levels):
    """Exactly, in L1 and in L2, for every statistic. The twin: half the claim is too little for one of the pairs."""
    unit = UNITS[relation]
    for pair in STORAGES[storage].bounds:
        bounds = Bounds(*pair)
        for filtered in (True, False) if unit.replaces and not levels else (True,):
            layout = Layout(storage, "category", levels, filtered)
            statistics = statistics_for(layout, bounds, unit)
            frames = frames_of_one(layout, bounds, statistics)
            for name, statistic in statistics.items():
                if CASES[name].public == filtered:
                    continue  # a frame of a public number of rows has no filter, and the others have one
                if name == "values, nulls" and not STORAGES[storage].null:
                    continue  # never arranged for a column without nulls
                claim = statistic.sensitivity(unit, bool(levels))
                pairs = neighbours([f[name] for f in frames], unit)
                distances = [distance(a, b) for a, b in pairs]
                assert (max(d[0] for d in distances), max(d[1] for d in distances)) == claim, (name, bounds)
                assert all(within(claim, a, b) for a, b in pairs)
                assert not all(within(half(claim), a, b) for a, b in pairs)


def half(claim: Sensitivity) -> Sensitivity:
    return Sensitivity(F(claim.l1, 2), F(claim.l2_squared, 4))


def test_half_a_claim_is_caught_by_random_neighbours(examples):
    """The twin of the random search: with half the claims, some of its frames are too far apart."""

    caught: set[str] = set()

    @settings(examples, max_examples=80)
    @given(st.data())
    def search(data):
        layout = data.draw(layouts("Float64"))._replace(grouping="category", levels=0, filtered=False)
        bounds = Bounds(-5.0, 5.0)
        rows = data.draw(st.lists(rows_of(layout), max_size=12))
        cells = st.tuples(st.sampled_from([-5.0, 5.0, None]), st.booleans(), st.just("a"), st.just(1))
        person, other = data.draw(cells), data.draw(cells)
        for unit in (ADD, REPLACE):
            statistics = statistics_for(layout, bounds, unit)
            one = integers(layout, [*rows, person], statistics)
            two = integers(layout, [*rows, other] if unit.replaces else rows, statistics)
            for name, statistic in statistics.items():
                if not within(half(statistic.sensitivity(unit, False)), one[name], two[name]):
                    caught.add(name)

    search()
    assert caught == {name for name, case in CASES.items() if not case.always}


def forgets_to_clip(values: Any, a: Any, grid: Any) -> None:
    a[:] = np.rint(values * 2.0**grid.exponent) - grid.low


def forgets_to_round(values: Any, a: Any, grid: Any) -> None:
    a[:] = np.clip(values, *grid.bounds) * 2.0**grid.exponent - grid.low


def clips_nulls_too(values: Any, a: Any, grid: Any) -> None:
    numbers = np.nan_to_num(values, nan=grid.bounds.upper)
    a[:] = np.rint(np.clip(numbers, *grid.bounds) * 2.0**grid.exponent) - grid.low


BROKEN = [forgets_to_clip, forgets_to_round, clips_nulls_too]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda f: f.__name__)
def test_a_broken_engine_is_not_the_definition(broken, monkeypatch):
    monkeypatch.setattr(engine_module, "_to_grid", broken)
    layout, bounds = Layout("float64", "category", 0, False), Bounds(-5.0, 5.0)
    between = [0.37 * i % 5 for i in range(60)] + [1 + 3 * 2.0**-29] * 60
    rows = [(x, True, "a", 1) for x in (2.0, 7.0, None, *between)]
    statistics = statistics_for(layout, bounds)
    found = integers(layout, rows, statistics)
    wrong = [n for n, s in statistics.items() if found[n] != expected(layout, rows, n, s, bounds)]
    assert {"total", "simplex 1", "simplex 2", "centred"} <= set(wrong)
    assert "rows" not in wrong


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
    Bounds(*b) for b in SMALL + UNSIGNED + HUGE + FRACTIONS + [(0.0, 0.0), (0.0, 1.0), (-1e-300, 5e-300)]
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
                python = statistic.integers({p: np.array(s, dtype=object) for p, s in sums.items()}).tolist()
                machine = statistic.integers({p: np.array(s, dtype=np.int64) for p, s in sums.items()})
                assert machine.tolist() == python, name
                assert all(abs(s) <= 2**62 for row in python for s in row), name
                assert all(
                    abs(s) <= 2**62 for row in sums.values() for one in row for s in np.atleast_1d(one)
                ), name


@pytest.mark.parametrize("bits", [VALUE_BITS, MAGNITUDE_BITS, SQUARE_BITS])
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
