"""What databases make of cells, next to numpy: every node that is written, on cells that databases take in their own ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe import _expr as ex
from dpframe._expr import Column
from dpframe._expr._parse import parse
from dpframe._groups.combinations import RestBy
from dpframe._groups.keys import BinBy, KeyBy, keys_for
from dpframe._groups.unit import Unit
from dpframe._questions.question import Query
from dpframe._statistics.base import (
    Bids,
    Distincts,
    Grid,
    Leaves,
    Magnitudes,
    Persons,
    Powers,
    Primitive,
    Products,
    Rows,
    Spread,
    Trues,
)
from dpframe._validate import Bounds
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.sql import SqlEngine
from tests.engines.conformance import KEY, SOME, shaken
from tests.engines.test_sql import Divided, engine_in
from tests.engines.written import in_duckdb, in_sqlite

DOUBLES = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 1e300, -1e300, 5e-324, -5e-324),
    *(
        0.49999999999999994,
        2.0**52 + 1,
        2.0**53,
        2.0**63,
        -(2.0**63),
        np.inf,
        -np.inf,
        1e-300,
        3.9999999999999996,
    ),
]
WHOLE = [0, 1, -1, 2, 7, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63)]
TEXTS = [
    "a",
    "A",
    "a ",
    " a",
    "",
    "é",
    "e\u0301",
    "ß",
    "ss",
    "it's",
    '"',
    "\\",
    "a\\'b",
    "%",
    "$1",
    "?1",
    "\U0001f600",
    "a\0",
    "a\0b",
]
FLAGS = [True, False]
MAKE = {"duckdb": in_duckdb, "sqlite": in_sqlite}


@pytest.fixture(params=MAKE)
def make(request: pytest.FixtureRequest) -> Any:
    if request.param == "duckdb":
        pytest.importorskip("duckdb", reason="tables in duckdb need duckdb")
    return MAKE[request.param]


def table(n: int, seed: int, nul: bool = True) -> pd.DataFrame:
    """Rows of nasty cells; of each column some are null. Without ``nul`` no text holds one."""
    rng = np.random.default_rng(seed)

    def some(cells: list[Any], dtype: Any, missing: float = 0.15) -> Any:
        drawn = [
            cells[i] if rng.random() > missing else None for i in rng.integers(0, len(cells), n)
        ]
        return pd.Series(drawn, dtype=object).astype(dtype)

    return pd.DataFrame(
        {
            "x": some(
                [*DOUBLES, *rng.normal(0, 3, 20).tolist(), *(np.arange(-20, 20) / 8).tolist()],
                "float64",
            ),
            "y": some(WHOLE, "Int64"),
            "small": some(list(range(-3, 9)), "Int64"),
            "g": some([t for t in TEXTS if nul or "\0" not in t], "str"),
            "flag": some(FLAGS, "boolean"),
            "id": some(
                [2**40 * i for i in range(12)] + [-(2**62) + i for i in range(4)], "Int64", 0.05
            ),
            "who": some([*"abcdefgh", *(t for t in TEXTS if "\0" not in t)], "str", 0.05),
            "f": rng.choice([0.1, 2.5, -1.0], n).astype("float32"),
        }
    )


FRAME = table(0, 0)
LEAVES = {name: Column.of(i, name, dtype) for i, (name, dtype) in enumerate(FRAME.dtypes.items())}
X, Y, SMALL, G, FLAG, ID, WHO, F = LEAVES.values()


def constant(value: Any) -> Any:
    return ex.Constant(value)


def compares(left: Any, rights: list[Any]) -> list[Any]:
    ops = ["==", "!="] if left is G or left is WHO else ["==", "!=", "<", "<=", ">", ">="]
    return [ex.Compare(op, left, right) for op in ops for right in rights]


NUMBERS = [
    0,
    1,
    -1,
    0.5,
    -0.0,
    2**53,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
    2**63,
    -(2**64),
    1e300,
    np.inf,
    -np.inf,
    0.1,
]
CONDITIONS = [
    *compares(X, [*map(constant, NUMBERS), Y, F, SMALL]),
    *compares(Y, [*map(constant, NUMBERS), X, SMALL]),
    *compares(F, [constant(0.1), constant(2.5), X]),
    *compares(FLAG, [constant(True), constant(False), ex.Compare(">", X, constant(0))]),
    *compares(G, [*map(constant, TEXTS), constant("\ud800"), WHO]),
    *[ex.IsNull(leaf) for leaf in LEAVES.values()],
    ex.IsIn(X, tuple(map(constant, [1, 0.0, 0.1, 2**53 + 1, np.inf, "a"]))),
    ex.IsIn(X, (constant(None), constant(1.5))),
    ex.IsIn(Y, tuple(map(constant, [1.0, 2**53 + 1, 0.5, 2**70, True]))),
    ex.IsIn(Y, (constant(None),)),
    ex.IsIn(G, (*map(constant, TEXTS[:9]), constant(None))),
    ex.IsIn(G, (constant("it's"), constant("\ud800"), constant(3))),
    ex.IsIn(FLAG, (constant(True),)),
    ex.IsIn(FLAG, (constant(None), constant(False))),
    ex.Not(FLAG),
    ex.And(FLAG, ex.Compare(">", X, constant(0))),
    ex.Or(FLAG, ex.Not(ex.Compare("<", X, constant(0)))),
    ex.Not(ex.Compare("==", X, X)),
    ex.Fill(FLAG, constant(True)),
    ex.Compare("==", ex.Fill(G, constant("A")), constant("A")),
    ex.Cast(X, "bool"),
    ex.Cast(Y, "bool"),
    *[ex.IsNull(ex.Arithmetic(op, X, ex.Arithmetic(op, X, X))) for op in "+-*"],
    ex.Compare(">", ex.Arithmetic("-", X, X), constant(-1)),
    ex.Compare("!=", ex.Arithmetic("*", X, constant(0)), constant(0)),
    *[ex.Compare("==", ex.Arithmetic("/", X, constant(c)), constant(0.5)) for c in (3, -2.0, 0.1)],
    ex.IsNull(ex.Arithmetic("/", X, constant(np.inf))),
]
VALUES = [
    *(X, Y, SMALL, FLAG, F),
    *[ex.Arithmetic(op, X, Y) for op in "+-*"],
    ex.Arithmetic("/", Y, constant(7)),
    ex.Arithmetic("+", FLAG, SMALL),
    ex.Unary(X, "-"),
    ex.Unary(Y, "abs"),
    ex.Clip(X, constant(-1), constant(2.5)),
    ex.Clip(X, None, constant(0)),
    ex.Clip(Y, constant(-5), constant(2**53 + 1)),
    ex.Clip(Y, constant(0.5), None),
    ex.Fill(X, constant(0.25)),
    ex.Fill(Y, constant(3)),
    ex.Fill(Y, constant(0.5)),
    ex.Cast(Y, "float"),
    ex.Cast(X, "int"),
    ex.Cast(FLAG, "int"),
    ex.Cast(Y, "int"),
]


# Bounds that lie close together, far from zero: places on their grids are beyond 2**51, where doubles are halves and whole.
FAR = [
    (1e9, 1e9 + 1),
    (-(2.0**40) - 1, 1.0 - 2.0**40),
    (3e15, 3e15 + 8),
    (-3e15 - 8, -3e15),
    (2.0**53, 2.0**53 + 8),
]


def grids() -> list[Grid]:
    """Coarse ones, on which many values lie between two points, and fine ones."""
    bounds = [
        (-3.0, 5.0),
        (0.0, 1e6),
        (-1e300, 1e300),
        (-0.5, -0.25),
        (2.0, 2.0),
        (-5e-324, 5e-324),
    ]
    found = [
        Grid.for_width(Bounds(*ends), bits) for ends in [*bounds, *FAR] for bits in (2, 3, 15, 31)
    ]
    return [
        grid for grid in found if max(abs(grid.low), abs(grid.high)) < 2**62
    ]  # others are not written


@pytest.fixture(scope="module", params=MAKE)
def opened(request: pytest.FixtureRequest) -> Any:
    if request.param == "duckdb":
        pytest.importorskip("duckdb", reason="tables in duckdb need duckdb")
    df = table(400, 7)
    return request.param, engine_in(MAKE[request.param], df), PandasEngine(df, KEY)


@pytest.mark.parametrize(
    "place",
    range(len(CONDITIONS)),
    ids=lambda i: str(CONDITIONS[i])[:40].encode("ascii", "replace").decode(),
)
def test_conditions_hold_where_they_do_on_numpy(opened, place):
    _, engine, numpy = opened
    asked: set[Primitive] = {Trues(CONDITIONS[place])}
    assert engine.writes(Query(()), asked, Unit())
    assert shaken(engine.reduce(Query(()), asked, Unit())) == shaken(
        numpy.reduce(Query(()), asked, Unit())
    )
    where = Query((), CONDITIONS[place])
    assert shaken(engine.reduce(where, {Rows()}, Unit())) == shaken(
        numpy.reduce(where, {Rows()}, Unit())
    )


@pytest.mark.parametrize("place", range(len(VALUES)), ids=lambda i: str(VALUES[i]))
def test_values_lie_where_they_do_on_numpy(opened, place):
    name, engine, numpy = opened
    value = VALUES[place]
    asked: set[Primitive] = {
        Powers(value, None, 0),
        Magnitudes(value),
        *(Powers(value, grid, 1) for grid in grids()),
    }
    if isinstance(value, ex.Cast) and value.to == "int" and value.x is X and name == "sqlite":
        assert not engine.writes(Query(()), asked, Unit())  # which has no TRUNC
        return
    assert engine.writes(Query(()), asked, Unit())
    assert shaken(engine.reduce(Query(()), asked, Unit())) == shaken(
        numpy.reduce(Query(()), asked, Unit())
    )


@pytest.mark.parametrize(
    "low",
    [*(a for a, _ in FAR), 2.0**51 - 4, 2.0**52 - 4, -(2.0**52) - 4, 2.0**51 / 4 - 1, 2.0**50],
)
def test_places_far_from_zero_are_rounded_as_on_numpy(make, low):
    """Halves among them, on coarse grids and on fine ones."""
    df = pd.DataFrame({"x": low + np.arange(-16, 80) / 8})
    x = Column.of(0, "x", df["x"].dtype)
    close = [Grid(Bounds(low, low + 8), k) for k in (-2, -1, 0, 1, 2, 3)]
    asked: set[Primitive] = {
        Powers(x, grid, 1) for grid in close if max(abs(grid.low), abs(grid.high)) < 2**62
    }
    engine, numpy = engine_in(make, df), PandasEngine(df, KEY)
    assert engine.writes(Query(()), asked, Unit())
    assert shaken(engine.reduce(Query(()), asked, Unit())) == shaken(
        numpy.reduce(Query(()), asked, Unit())
    )
    beyond = {Powers(x, Grid(Bounds(low, low + 8), 40), 1)}
    assert engine.writes(Query(()), beyond, Unit()) is (abs(low) * 2.0**40 < 2**62)


def test_long_conditions_are_written_in_their_length(make):
    """A chain of a hundred is written once for each, and what would be too long is asked elsewhere."""
    df = table(40, 1)
    engine, numpy = engine_in(make, df), PandasEngine(df, KEY)
    chain: Any = ex.Compare(">", X, constant(-100))
    for i in range(90):
        one = ex.Compare("!=", SMALL, constant(i - 300))
        chain = ex.And(chain, one) if i % 2 else ex.Or(one, chain)
    assert shaken(engine.reduce(Query((), chain), {Rows()}, Unit())) == shaken(
        numpy.reduce(Query((), chain), {Rows()}, Unit())
    )
    folded: Any = X
    for _ in range(40):
        folded = ex.Clip(folded, constant(-3), constant(3))
    asked: set[Primitive] = {Powers(folded, COARSE, 1)}
    assert not engine.writes(Query(()), asked, Unit())
    assert shaken(engine.reduce(Query(()), asked, Unit())) == shaken(
        numpy.reduce(Query(()), asked, Unit())
    )


NOT_WRITTEN = [
    ex.Arithmetic("/", X, Y),
    ex.Arithmetic("/", X, constant(0)),
    ex.Arithmetic("**", X, constant(2)),
    ex.Arithmetic("//", X, constant(2)),
    ex.Arithmetic("%", X, constant(2)),
    ex.Round(X, 1),
    ex.text_part(G, "upper"),
]


@pytest.mark.parametrize("place", range(len(NOT_WRITTEN)))
def test_what_is_not_written_goes_to_the_other_engine_and_is_answered(opened, place):
    _, engine, numpy = opened
    asked: set[Primitive] = {
        Powers(NOT_WRITTEN[place], Grid.for_width(Bounds(-3.0, 5.0), 15), 2),
        Rows(),
    }
    assert not engine.writes(Query(()), asked, Unit())
    assert shaken(engine.reduce(Query(()), asked, Unit())) == shaken(
        numpy.reduce(Query(()), asked, Unit())
    )


# Groups and people ------------------------------------------------------------------------------------------

BY: dict[str, Any] = {
    "nothing": (),
    "texts": (KeyBy(G, keys_for([*TEXTS, "nobody's"], G, "g")),),
    "texts and null": (KeyBy(G, keys_for(["it's", None, "a"], G, "g")),),
    "doubles": (KeyBy(X, keys_for([0.0, 0.5, 0.1, 1, 2**53 + 1], X, "x")),),
    "whole": (KeyBy(Y, keys_for([1, 2**53 + 1, 2**53, 2**63 - 1, 0.5], Y, "y")),),
    "flags": (KeyBy(FLAG, keys_for([True, None, False], FLAG, "flag")),),
    "rest": (RestBy(KeyBy(G, keys_for(["a", None, "A"], G, "g")), "other"),),
    "two": (
        KeyBy(G, keys_for(TEXTS[:7], G, "g")),
        KeyBy(SMALL, keys_for(range(-3, 3), SMALL, "small")),
    ),
    "bins": (BinBy(X, (-2.5, -1.0, 0.0, 0.5, 2.5, 5.0), "x"),),
    "bins of whole": (BinBy(Y, (-1.0, 0.0, 1.5, 2.0**53), "y"),),
}
COARSE, WIDE, SQUARE = (
    Grid.for_width(Bounds(-3.0, 5.0), 3),
    Grid.for_width(Bounds(-3.0, 5.0), 31),
    Grid.for_width(Bounds(-3.0, 5.0), 15),
)
PRIMITIVES: list[Primitive] = [
    Rows(),
    Persons(),
    Trues(FLAG),
    Powers(G, None, 0),
    Powers(X, WIDE, 1),
    Powers(X, SQUARE, 2),
    Products(X, SQUARE, SMALL, Grid.for_width(Bounds(0.0, 6.0), 15)),
    Leaves(X, Grid.for_width(Bounds(-3.0, 5.0), 4)),
    Magnitudes(X),
]
UNITS: dict[str, tuple[Any, ...]] = {
    "rows": (),
    "whole": (ID,),
    "texts": (WHO,),
    "two": (ID, WHO),
    "text and flag": (WHO, FLAG),
}
LIMITS = [(1, 1), (2, 3), (7, 2), (400, 100)]


@pytest.mark.slow(but=24)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("by", BY)
def test_groups_and_people_are_those_of_numpy_bit_for_bit(make, by, unit):
    """Where limits are reached as well: the same hash chooses."""
    df = table(300, 5)
    engine, numpy = engine_in(make, df), PandasEngine(df, KEY)
    for limits in LIMITS if UNITS[unit] else LIMITS[:1]:
        asks = Unit("add-remove", UNITS[unit], *limits) if UNITS[unit] else Unit()
        where = (
            parse("x > 0 or y == 1", LEAVES, {}.__getitem__).expr if limits == LIMITS[1] else None
        )
        query, asked = Query((), where, BY[by]), set(PRIMITIVES)
        counted: set[Primitive] = {Distincts(G), Distincts(X), Distincts(Y)}
        asked |= {Spread("rows", 4), Spread("groups", 3)} if UNITS[unit] else counted
        asked |= {Bids(X)} if by == "bins" else set()
        assert engine.writes(query, asked, asks)
        assert shaken(engine.reduce(query, asked, asks)) == shaken(numpy.reduce(query, asked, asks))


@pytest.mark.slow(but=12)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "by",
    [(G,), (SMALL,), (Y, G), (FLAG, SMALL), (X,), (ex.Fill(G, constant("none")),)],
    ids=lambda by: " ".join(map(str, by)),
)
def test_keys_that_nobody_listed_are_those_of_numpy(make, by, unit):
    df = table(300, 6)
    engine, numpy = engine_in(make, df), PandasEngine(df, KEY)
    for limits in LIMITS if UNITS[unit] else LIMITS[:1]:
        asks = Unit("add-remove", UNITS[unit], *limits) if UNITS[unit] else Unit()
        asked = frozenset({Persons(), Rows(), Powers(X, SQUARE, 2)})
        found, expected = (e.occurring(by, FLAG, asks, asked) for e in (engine, numpy))
        assert found[0] == expected[0]
        assert shaken(found[1]) == shaken(expected[1])


@pytest.mark.parametrize("passes", [2, 5])
@pytest.mark.parametrize("unit", [name for name in UNITS if UNITS[name]])
def test_people_in_passes_are_counted_as_at_once(make, unit, passes):
    """Each pass over some of the people, whose sums and keys are added."""
    df = table(300, 8)
    numpy, database = PandasEngine(df, KEY), make(df)
    engine = SqlEngine(database, "visits", df.iloc[:0], KEY, numpy, passes=lambda: passes)
    asks, asked = Unit("add-remove", UNITS[unit], 2, 3), {*PRIMITIVES, Spread("rows", 4)}
    for by in ("texts", "bins", "nothing"):
        query = Query((), FLAG, BY[by])
        assert engine.writes(query, asked, asks)
        assert shaken(engine.reduce(query, asked, asks)) == shaken(numpy.reduce(query, asked, asks))
    found, expected = (
        e.occurring((G, SMALL), None, asks, frozenset({Persons(), Rows()})) for e in (engine, numpy)
    )
    assert found[0] == expected[0]
    assert shaken(found[1]) == shaken(expected[1])


@SOME
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(0, 60),
    by=st.sampled_from(list(BY)),
    unit=st.sampled_from(list(UNITS)),
    limits=st.tuples(st.integers(1, 4), st.integers(1, 4)),
)
def test_any_frame(seed, n, by, unit, limits):
    df = table(n, seed)
    asks = Unit("add-remove", UNITS[unit], *limits) if UNITS[unit] else Unit()
    engine, numpy = engine_in(in_sqlite, df, kind=Divided), PandasEngine(df, KEY)
    query, asked = Query((), None, BY[by]), set(PRIMITIVES)
    assert shaken(engine.reduce(query, asked, asks)) == shaken(numpy.reduce(query, asked, asks))
    if asks.people:
        assert engine.people(asks) == numpy.people(asks)
    assert len(engine) == n
