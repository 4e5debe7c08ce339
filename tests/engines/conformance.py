"""What every engine does: a new one subclasses `EngineConformance`, says how it is made, and has these tests.

class TestDuck(EngineConformance):
    def engine(self, frame, key=KEY): ...
"""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dpframe import DPError, PrivacyWarning
from dpframe import _expr as ex
from dpframe._expr import Column
from dpframe._expr._parse import parse
from dpframe._groups.keys import BinBy, KeyBy, keys_for
from dpframe._groups.unit import Unit
from dpframe._ledger.store import alike
from dpframe._plans.plan import arrange
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
from dpframe.engines import ENGINES
from tests.conformance.test_people import (
    claims,
    crowd,
    frame_of,
    moved,
    question,
    rows_of_one,
)
from tests.engines.lists import ListEngine, magnitude, person

KEY = b"12345678"
SECRET = b"s" * 32
GROUPS = ["a", "b", "c", "d"]
BOUNDS = [Bounds(-3.0, 5.0), Bounds(0.0, 1e6), Bounds(-0.5, -0.25), Bounds(2.0, 2.0)]
# Frames are small as they are drawn: making a failing one smaller would take longer than reading it.
SOME = settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.differing_executors],
)
ASKED = ["size", "var", "true", "true+people+nunique+size+count"]
CONDITIONS = [
    "x > 1",
    "not x > 1",
    "x == x",
    "x != 2",
    "x + y >= 3 and g == 'a'",
    "x * y < 0 or flag",
    "~flag & g != 'b'",
]

numbers = (
    st.none()
    | st.sampled_from([0.0, -0.0, 2.0, 0.5, np.inf, -np.inf, 1e300, 5e-324])
    | st.floats(-6, 8)
)
row = st.tuples(
    numbers,
    st.none() | st.integers(-9, 9),
    st.sampled_from([*GROUPS, "other", None]),
    st.sampled_from([True, False, None]),
)
people = st.lists(st.lists(row, min_size=1, max_size=6), max_size=6)


def frame(owned: list[list[Any]], nobody: list[Any] = (), order: int = 0) -> pd.DataFrame:  # type: ignore[assignment]
    """The rows of people, and some of nobody, in some order."""
    rows = [*((i, *r) for i, own in enumerate(owned) for r in own), *((None, *r) for r in nobody)]
    rows = [rows[i] for i in np.random.default_rng(order).permutation(len(rows))]
    found = pd.DataFrame(rows, columns=["id", "x", "y", "g", "flag"], dtype=object)
    return found.astype({"id": "Int64", "x": float, "y": "Int64", "g": "str", "flag": "boolean"})


LEAVES = {
    name: Column.of(i, name, dtype) for i, (name, dtype) in enumerate(frame([]).dtypes.items())
}
ID, X, Y, G, FLAG = LEAVES.values()
BY = {
    "nothing": (),
    "keys": (KeyBy(G, keys_for(GROUPS, G, "g")),),
    "null is a key": (KeyBy(G, keys_for(["b", None], G, "g")),),
    "two columns": (KeyBy(G, keys_for(GROUPS, G, "g")), KeyBy(Y, keys_for([1, 0, -3], Y, "y"))),
    "bins": (BinBy(X, (-1.0, 0.0, 0.5, 5.0), "x"),),
}


def condition(text: str) -> Any:
    return parse(text, LEAVES, {}.__getitem__).expr


def primitives(bounds: Bounds, other: Bounds) -> list[Primitive]:
    """Each kind of them, on grids of these bounds."""
    wide, square = Grid.for_width(bounds, 31), Grid.for_width(bounds, 15)
    return [
        Rows(),
        Persons(),
        Trues(FLAG),
        Powers(X, None, 0),
        Powers(Y, None, 0),
        Powers(X, wide, 1),
        Powers(Y, wide, 1),
        Powers(X, square, 2),
        Products(X, square, Y, Grid.for_width(other, 15)),
        Leaves(X, Grid.for_width(bounds, 4)),
        Distincts(Y),
        Distincts(G),
        Magnitudes(X),
    ]


def drawn(p: Primitive, owned: list[list[Any]], unit: Unit) -> bool:
    """Whether a hash decides which values count: engines may have different ones."""
    most = max(map(len, owned), default=0)
    if isinstance(p, Leaves | Bids):
        return bool(unit.people) and most > (unit.rows or 1)
    if isinstance(p, Magnitudes):
        return bool(unit.people) and any(
            len({magnitude(r[0]) for r in own if r[0] is not None}) > 1 for own in owned
        )
    return isinstance(p, Distincts) and bool(unit.people) and most > (unit.groups or 1)


def shaken(found: dict[Primitive, Any]) -> dict[Primitive, Any]:
    return {p: a.tolist() for p, a in found.items()}


class EngineConformance:
    """The tests of `dpframe._statistics.engine.Engine`, by frames, definitions and neighbours."""

    def engine(self, frame: pd.DataFrame, key: bytes = KEY) -> Any:
        """The engine that reads this frame."""
        raise NotImplementedError

    # The integers -------------------------------------------------------------------------------------------

    @SOME
    @given(
        owned=people,
        nobody=st.lists(row, max_size=3),
        by=st.sampled_from(list(BY)),
        where=st.sampled_from([None, *CONDITIONS]),
        bounds=st.tuples(st.sampled_from(BOUNDS), st.sampled_from(BOUNDS)),
        order=st.integers(0, 5),
    )
    def test_sums_over_rows_are_their_definitions(self, owned, nobody, by, where, bounds, order):
        df = frame(owned, nobody, order)
        query = Query((), None if where is None else condition(where), BY[by])
        asked = {*primitives(*bounds), *([Bids(X)] if by == "bins" else [])}
        found, expected = (
            e.reduce(query, asked, Unit()) for e in (self.engine(df), ListEngine(df))
        )
        assert shaken(found) == shaken(expected)

    @SOME
    @given(
        owned=people,
        nobody=st.lists(row, max_size=3),
        by=st.sampled_from(list(BY)),
        where=st.sampled_from([None, *CONDITIONS]),
        bounds=st.tuples(st.sampled_from(BOUNDS), st.sampled_from(BOUNDS)),
        limit=st.integers(1, 7),
        order=st.integers(0, 5),
    )
    def test_sums_over_people_are_their_definitions(
        self, owned, nobody, by, where, bounds, limit, order
    ):
        """Each person's rows are scaled to the limit; of groups there are fewer than anybody may be in."""
        df, unit = frame(owned, nobody, order), Unit("add-remove", (ID,), limit, 12)
        query = Query((), None if where is None else condition(where), BY[by])
        asked = {
            *primitives(*bounds),
            Spread("rows", 4),
            Spread("groups", 3),
            *([Bids(X)] if by == "bins" else []),
        }
        asked = {p for p in asked if not drawn(p, owned, unit)}
        found, expected = (e.reduce(query, asked, unit) for e in (self.engine(df), ListEngine(df)))
        assert shaken(found) == shaken(expected)

    def test_squares_and_products_that_no_values_have_are_moved_back(self):
        """Two fifths of a step are none, and four fifths of a square are one: of one value that is 0 there is no such square."""
        own = [(0.0, 0, "a", True)] * 4 + [(2.0, 2, "a", True), (None, None, "a", True)]
        df, grid = frame([own]), Grid(Bounds(0.0, 2.0), 0)
        asked = {Powers(X, grid, 2), Products(X, grid, Y, grid)}
        unit = Unit("add-remove", (ID,), 1, 1)
        found, expected = (
            e.reduce(Query(()), asked, unit) for e in (self.engine(df), ListEngine(df))
        )
        assert shaken(found) == shaken(expected)
        assert sorted(sum(a.ravel().tolist()[1:]) for a in found.values()) == [0, 0]

    def test_sums_are_whole_numbers_of_the_promised_shapes(self):
        df = frame([[(1.0, 2, "a", True), (None, None, None, None)], [(7.0, 1, "b", False)]])
        for size, unit in itertools.product((0, 3), (Unit(), Unit("add-remove", (ID,), 2, 2))):
            asked = dict.fromkeys(primitives(Bounds(-3.0, 5.0), Bounds(0.0, 1.0)))
            found = self.engine(df.iloc[:size]).reduce(
                Query((), None, BY["keys"]), set(asked), unit
            )
            shapes = {
                Powers: lambda p: (p.degree + 1, 4),
                Products: lambda p: (4, 4),
                Leaves: lambda p: (p.points, 4),
                Magnitudes: lambda p: (121, 1),
            }
            assert set(found) == set(asked)
            for p, integers in found.items():
                assert integers.dtype == np.int64
                assert integers.shape == shapes.get(type(p), lambda p: (4,))(p)

    @pytest.mark.parametrize("text", CONDITIONS)
    def test_conditions_follow_the_rules_for_nulls(self, text):
        cells = itertools.product(
            [None, 1.0, 2.0, np.inf], [None, -1, 2], ["a", "b", None], [True, False, None]
        )
        df = frame([list(cells)])
        found, expected = (
            e.reduce(Query(()), {Trues(condition(text))}, Unit())
            for e in (self.engine(df), ListEngine(df))
        )
        assert shaken(found) == shaken(expected)

    def test_a_comparison_with_a_whole_number_is_exact(self):
        df = pd.DataFrame({"n": np.array([2**53, 2**53 + 1, -(2**63), 2**63 - 1])})
        leaf = Column.of(0, "n", df["n"].dtype)
        for number, rows in ((2**53 + 1, 1), (2**53, 1), (2**63 - 1, 1), (2**63, 0)):
            holds = ex.compare("==", leaf, ex.constant(number))
            assert self.engine(df).reduce(Query(()), {Trues(holds)}, Unit())[
                Trues(holds)
            ].tolist() == [rows]

    # Neighbours, order, parts -------------------------------------------------------------------------------

    @pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
    @pytest.mark.parametrize("name", ASKED)
    @SOME
    @given(
        others=crowd,
        first=rows_of_one,
        second=rows_of_one,
        by=st.booleans(),
        where=st.booleans(),
        limits=st.tuples(st.integers(1, 6), st.integers(1, 5)),
        orders=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    )
    def test_a_person_moves_no_statistic_further_than_claimed(
        self, name, relation, others, first, second, by, where, limits, orders
    ):
        owned = list(enumerate(others))
        one = frame_of([(99, first), *owned], "text", orders[0])
        two = frame_of(
            [*owned, *([(77, second)] if relation == "replace-one" else [])], "text", orders[1]
        )
        query, leaf = question(name, one, by, where)
        unit = Unit(relation, (leaf,), *limits)  # type: ignore[arg-type]
        statistics = [s for s, _ in arrange(query, unit, None)]
        asked = {p for s in statistics for p in s.primitives}
        a, b = (self.engine(side).reduce(query, asked, unit) for side in (one, two))
        for s, claim in zip(statistics, claims(query, unit), strict=True):
            l1, l2_squared = moved(s.integers(a), s.integers(b))
            assert l1 <= claim.l1
            assert l2_squared <= claim.l2_squared

    @SOME
    @given(
        owned=people,
        by=st.sampled_from(list(BY)),
        limits=st.tuples(st.integers(1, 3), st.integers(1, 3)),
        order=st.integers(1, 9),
    )
    def test_the_order_of_rows_and_what_was_asked_before_change_nothing(
        self, owned, by, limits, order
    ):
        asked = {*primitives(*BOUNDS[:2]), Spread("rows", 4)}
        query, unit = Query((), FLAG, BY[by]), Unit("add-remove", (ID,), *limits)
        first = self.engine(frame(owned))
        found = [
            shaken(e.reduce(query, asked, unit))
            for e in (first, self.engine(frame(owned, order=order)))
        ]
        first.reduce(
            Query((), None, BY["keys"]), {Rows(), Persons()}, Unit("add-remove", (ID,), 1, 1)
        )
        assert found == [shaken(first.reduce(query, asked, unit))] * 2

    @SOME
    @given(
        owned=people,
        by=st.sampled_from(list(BY)),
        limits=st.none() | st.tuples(st.integers(1, 3), st.integers(1, 3)),
    )
    def test_parts_of_whole_people_add_up(self, owned, by, limits):
        """All but what says that it does not: a part may have a value that another has too."""
        unit = Unit() if limits is None else Unit("add-remove", (ID,), *limits)
        asked = {
            p
            for p in (*primitives(*BOUNDS[:2]), *([] if limits is None else [Spread("groups", 4)]))
            if p.additive
        }
        df = frame(owned)
        parts = [df[df["id"] % 3 == i].reset_index(drop=True) for i in range(3)]
        whole, *some = (
            self.engine(side).reduce(Query((), None, BY[by]), asked, unit) for side in (df, *parts)
        )
        assert shaken(whole) == {p: sum(one[p] for one in some).tolist() for p in asked}

    # Keys, rows, people -------------------------------------------------------------------------------------

    @SOME
    @given(
        owned=people,
        nobody=st.lists(row, max_size=2),
        two=st.booleans(),
        where=st.booleans(),
        order=st.integers(0, 3),
    )
    def test_keys_that_occur_are_those_of_somebody(self, owned, nobody, two, where, order):
        df, exprs = frame(owned, nobody, order), (G, Y) if two else (G,)
        for unit in (Unit(), Unit("add-remove", (ID,), 3, 30)):
            asked = frozenset(
                {
                    Persons(),
                    Rows(),
                    *([Powers(X, Grid.for_width(BOUNDS[0], 15), 2)] if unit.people else []),
                }
            )
            texts, sums = self.engine(df).occurring(exprs, FLAG if where else None, unit, asked)
            listed, expected = ListEngine(df).occurring(exprs, FLAG if where else None, unit, asked)
            assert texts == listed
            assert shaken(sums) == shaken(expected)

    @SOME
    @given(
        owned=people,
        extra=st.lists(row, min_size=1, max_size=6),
        most=st.integers(1, 3),
        order=st.integers(0, 3),
    )
    def test_a_person_counts_for_at_most_so_many_keys(self, owned, extra, most, order):
        unit, counts = Unit("add-remove", (ID,), None, most), []
        for side in (frame([*owned, extra], order=order), frame(owned)):
            texts, sums = self.engine(side).occurring((G,), None, unit)
            counts.append(dict(zip(texts, sums[Persons()].tolist(), strict=True)))
        steps = [counts[0].get(k, 0) - counts[1].get(k, 0) for k in {*counts[0], *counts[1]}]
        assert all(s in (0, 1) for s in steps)
        assert sum(steps) <= most

    @SOME
    @given(owned=people, nobody=st.lists(row, max_size=2), order=st.integers(0, 3))
    def test_slices_are_all_rows_with_their_people(self, owned, nobody, order):
        df = frame(owned, nobody, order)
        pieces = list(self.engine(df).slices((X, G), condition("x > 1"), Unit(people=(ID,))))
        assert all(piece.total == len(df) for piece in pieces)
        values = [x for piece in pieces for x in piece.vectors[0].values.tolist()]
        assert repr(values) == repr(df["x"].tolist())
        texts = [
            None if c < 0 else v.categories[c]
            for piece in pieces
            for v in piece.vectors[1:]
            for c in v.values
        ]
        assert texts == [None if pd.isna(c) else c for c in df["g"]]
        assert [m for piece in pieces for m in piece.mask.tolist()] == (df["x"] > 1).tolist()
        codes = [c for piece in pieces for c in piece.people.tolist()]
        assert [c < 0 for c in codes] == df["id"].isna().tolist()
        known = {(c, i) for c, i in zip(codes, df["id"], strict=True) if c >= 0}
        assert len({c for c, _ in known}) == len({i for _, i in known}) == len(known)

    def test_people_are_counted_and_a_null_is_nobody(self):
        df = frame(
            [[(1.0, i, "a", True)] * n for i, n in enumerate((1, 4, 2))], [(1.0, 1, "a", True)]
        )
        engine = self.engine(df)
        assert len(engine) == 8
        assert engine.people(Unit(people=(ID,))) == 3
        assert engine.people(Unit(people=(ID, Y))) == 3
        rows = ListEngine(df)._rows
        assert (
            len({person(r, Unit(people=(G,))) for r in rows})
            == engine.people(Unit(people=(G,)))
            == 1
        )

    def test_a_ledger_knows_people_and_tables_again(self):
        """By sketches that tell of no order, and of nothing without the secret."""
        owned = [
            [(float(i), i % 7, GROUPS[i % 4], True), (i / 3, 1, "a", False)] for i in range(60)
        ]
        one, again = (self.engine(frame(owned, order=i)) for i in range(2))
        other = self.engine(
            frame(owned).assign(id=lambda d: d["id"] + 1000, x=lambda d: d["x"] + 99)
        )
        for unit in (Unit(), Unit(people=(ID,))):
            mine = one.sketches(unit, SECRET)
            assert mine == again.sketches(unit, SECRET)
            assert alike(mine.people, mine.people)
            assert not alike(mine.people, other.sketches(unit, SECRET).people)
            assert not {*mine.people, *mine.table} & {
                t for texts in one.sketches(unit, b"t" * 32) for t in texts
            }
        assert self.engine(frame(owned[:3])).sketches(Unit(people=(ID,)), SECRET).people == []

    # What it must not say -----------------------------------------------------------------------------------

    def test_no_error_holds_a_cell_and_none_depends_on_one(self, recwarn):
        cells = [
            "Sesame-Street-123",
            ["Sesame"],
            {"Sesame": 1},
            Decimal("sNaN"),
            10**400,
            b"Sesame\xff",
            "\ud800",
            object(),
            1j,
        ]
        df = pd.DataFrame(
            {"odd": pd.Series([*cells, None], dtype=object), "x": [*map(float, range(9)), np.nan]}
        )
        odd, x = (Column.of(i, c, df.dtypes.iloc[i]) for i, c in enumerate(df))
        raised = []
        for some in (df, df.iloc[::-1].reset_index(drop=True), df.iloc[9:].reset_index(drop=True)):
            engine, texts = self.engine(some), []
            for ask in (
                lambda e: e.reduce(
                    Query((), None, (KeyBy(odd, keys_for(["a", 1, None], odd, "odd")),)),
                    {Rows()},
                    Unit(),
                ),
                lambda e: e.reduce(Query(()), {Powers(odd, None, 0), Distincts(odd)}, Unit()),
                lambda e: e.reduce(
                    Query(()),
                    {Powers(x, Grid.for_width(Bounds(0.0, 5.0), 31), 1)},
                    Unit(people=(odd,), rows=1),
                ),
                lambda e: e.occurring((odd,), None, Unit()),
                lambda e: list(e.slices((odd,), None, Unit(people=(odd,)))),
            ):
                try:
                    ask(engine)
                    texts.append("")
                except DPError as error:
                    texts.append(str(error))
            raised.append(texts)
        assert raised[0] == raised[1] == raised[2]
        assert "Sesame" not in str(raised)
        assert not [w for w in recwarn if not issubclass(w.category, PrivacyWarning)]

    def test_it_can_be_closed(self):
        engine = self.engine(frame([[(1.0, 1, "a", True)]]))
        engine.reduce(Query(()), {Rows()}, Unit())
        assert engine.close() is None

    # A session ----------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("unit", [None, "id"])
    def test_a_session_on_it_answers_every_kind_of_question(self, unit, tmp_path, monkeypatch):
        """With so little noise that the answers are exact, and in a ledger file that knows the table again."""
        df = Table(frame([[(float(i % 5), i % 3, GROUPS[i % 3], i % 2 == 0)] for i in range(40)]))
        monkeypatch.setitem(ENGINES, Table, self.engine)
        words = {"unit": unit, "max_rows": 1, "max_groups": 1} if unit else {}
        p = df.dp.open(
            1000,
            1e-6,
            neighbors="replace-one",
            bounds={"x": (0, 4)},
            keys={"g": GROUPS},
            ledger=tmp_path / "l",
            population="p",
            **words,
        )
        assert int(p.count(epsilon=90)) == 40
        assert float(p.mean("x", epsilon=90)) == pytest.approx(2, abs=0.1)
        assert int(p.query("x > 1").count(epsilon=90)) == 24
        assert p.groupby("g").size(epsilon=90).tolist() == [14, 13, 13, 0]
        assert float(p.median("x", epsilon=90)) == pytest.approx(2, abs=0.1)
        assert set(p.unique("g", epsilon=90)) == {"a", "b", "c"}
        assert int(p.nunique("y", epsilon=90, **({"max_groups": 1} if unit else {}))) == 3
        assert p.argmax("g", epsilon=90) == "a"
        assert sorted(p.randomize("g", epsilon=90)) == sorted(df["g"])
        p.close()


class Table(pd.DataFrame):
    """A frame that an engine of a test reads."""

    @property
    def _constructor(self) -> Any:
        return Table
