"""Neighbours differ in one person, who has many rows: exact statistics move no further than is claimed for a person.

Frames are random; people have up to a dozen rows in several groups, some with a null id. The bounded integers are
compared with the same written out in rational arithmetic. Twins that must fail: limits that are forgotten, and one row's
sensitivity.
"""

from __future__ import annotations

import typing
from collections import defaultdict
from fractions import Fraction as F
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe._expr import Column
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import AGGREGATES, Output
from dpframe._plans.plan import arrange
from dpframe._questions.question import Query
from dpframe._sizes import SIZES
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
    Sensitivity,
    Spread,
    Statistic,
    Trues,
)
from dpframe._validate import Bounds
from dpframe.engines import limits as _people
from dpframe.engines import person_sums as person_sums_module
from dpframe.engines.pandas import PandasEngine
from tests import aggregates

KEY = b"12345678"
GROUPS = ["a", "b", "c", "d"]
BOUNDS = Bounds(-3.0, 5.0)
# Each aggregate whose sums of a person's rows are limited, and several at once. Others have people in bins, or a tree
# (`test_representatives.py`, `test_order.py`).
NAMES = [
    *(
        n
        for n in aggregates.measured_names()
        if AGGREGATES[n].counts != "people in bins" and n != "tree"
    ),
    "size+mean",
    "count+sum",
    "nunique+sum",
    "people+size",
    "skew+sem+count+size",
    "true+people+nunique+size+count",
]
IDS: dict[str, Any] = {
    "int": lambda i: i,
    "float": lambda i: np.nan if i is None else float(i),
    "text": lambda i: None if i is None else f"p{i}",
    "category": lambda i: None if i is None else f"p{i}",
    "arrow": lambda i: None if i is None else f"p{i}",
    "object": lambda i: None if i is None else (i if i % 2 else float(i)),
}
DTYPES = {
    "category": "category",
    "text": "str",
    "arrow": "string[pyarrow]",
    "object": object,
    "float": float,
}

Row = tuple[int | None, float | None, str | None, bool]
rows_of_one = st.lists(
    st.tuples(
        st.one_of(st.none(), st.floats(-6, 8)),
        st.sampled_from([*GROUPS, "other", None]),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)
crowd = st.lists(rows_of_one, min_size=0, max_size=5)


def frame_of(people: list[tuple[int | None, list[Any]]], ids: str, order: int = 0) -> pd.DataFrame:
    rows = [(IDS[ids](i), *row) for i, own in people for row in own]
    rng = np.random.default_rng(order)
    rows = [rows[i] for i in rng.permutation(len(rows))]
    columns = {name: [r[k] for r in rows] for k, name in enumerate(("id", "x", "g", "flag"))}
    frame = pd.DataFrame(columns).astype({"x": float, "flag": bool})
    frame["g"] = frame["g"].astype("str")
    return frame.astype({"id": DTYPES[ids]}) if ids in DTYPES else frame.astype({"id": "Int64"})


def question(name: str, frame: pd.DataFrame, by: bool, where: bool) -> tuple[Query, Column]:
    leaves = {c: Column.of(i, c, frame.dtypes.iloc[i]) for i, c in enumerate(frame.columns)}
    outputs = []
    for part in name.split("+"):
        expr = {"size": None, "people": leaves["id"], "true": leaves["flag"]}.get(part, leaves["x"])
        entry = AGGREGATES[part]
        words: dict[str, Any] = {"bounds": BOUNDS} if entry.needs_bounds else {}
        if entry.of_pairs:
            words |= {"other": leaves["x"], "other_bounds": BOUNDS}
        outputs.append(Output(part, part, expr, **words))
    groups = (KeyBy(leaves["g"], keys_for(GROUPS, leaves["g"], "g")),) if by else ()
    return Query(tuple(outputs), leaves["flag"] if where else None, groups), leaves["id"]


def integers(
    query: Query, frame: pd.DataFrame, unit: Unit
) -> list[tuple[Statistic, np.ndarray[Any, Any]]]:
    statistics = [s for s, _ in arrange(query, unit, None)]
    found = PandasEngine(frame, KEY).reduce(
        query, {p for s in statistics for p in s.primitives}, unit
    )
    return [(s, s.integers(found)) for s in statistics]


def moved(a: Any, b: Any) -> tuple[int, int]:
    d = [int(x) - int(y) for x, y in zip(a.ravel(), b.ravel(), strict=True)]
    return sum(map(abs, d)), sum(x * x for x in d)


def claims(query: Query, unit: Unit) -> list[Sensitivity]:
    return [
        s.of_person(unit, query.groups if query.by else None) for s, _ in arrange(query, unit, None)
    ]


def distances(
    query: Query, unit: Unit, one: pd.DataFrame, other: pd.DataFrame
) -> list[tuple[int, int]]:
    pairs = zip(integers(query, one, unit), integers(query, other, unit), strict=True)
    return [moved(a, b) for (_, a), (_, b) in pairs]


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(
    others=crowd, first=rows_of_one, second=rows_of_one, ids=st.sampled_from(list(IDS)), by=st.booleans(), where=st.booleans(),
    limits=st.tuples(st.integers(1, 6), st.integers(1, 5)), orders=st.tuples(st.integers(0, 9), st.integers(0, 9)),
)  # fmt: skip
def test_one_person_moves_no_statistic_further_than_claimed(
    name, relation, others, first, second, ids, by, where, limits, orders
):
    people = list(enumerate(others)) + ([(None, others[0])] if others and ids != "object" else [])
    one = frame_of([*people, (99, first)], ids, orders[0])
    other = frame_of(
        people if relation == "add-remove" else [*people, (77, second)], ids, orders[1]
    )
    query, leaf = question(name, one, by, where)
    unit = Unit(relation, (leaf,), *limits)
    for (l1, l2), claim in zip(
        distances(query, unit, one, other), claims(query, unit), strict=True
    ):
        assert l1 <= claim.l1
        assert l2 <= claim.l2_squared


@pytest.mark.parametrize("name", ["size", "people", "count", "sum", "mean"])
def test_claims_are_reached(name):
    """By a person with as many rows as count, at the end of the bounds, in as many groups."""
    own = [(5.0, g, True) for g in GROUPS[:3] for _ in range(4)]
    one, other = frame_of([(1, own), (2, own)], "int"), frame_of([(2, own)], "int")
    query, leaf = question(name, one, True, False)
    unit = Unit("add-remove", (leaf,), 4, 3)
    ((l1, l2),), (claim,) = distances(query, unit, one, other), claims(query, unit)
    assert (l1, l2) == (claim.l1, claim.l2_squared)


@pytest.mark.parametrize("name", ["size", "sum"])
def test_person_who_leaves_a_group_for_another_moves_it_by_the_whole_claim(name):
    """Twice R times what a row adds: once in the group that is left, and once in the other."""
    one, other = (
        frame_of([(i, [(5.0, g, True)] * 4), (2, [])], "int") for i, g in ((1, "a"), (3, "b"))
    )
    query, leaf = question(name, one, True, False)
    unit = Unit("replace-one", (leaf,), 4, 1)
    ((l1, l2),), (claim,) = distances(query, unit, one, other), claims(query, unit)
    assert l1 == claim.l1
    assert l2 <= claim.l2_squared


def by_hand(people: list[tuple[int, list[Any]]], limit: int) -> dict[str, tuple[F, F]]:
    """Per group: rows that count, and the sum of clipped values, each person's scaled to so many rows."""
    found: dict[str, list[F]] = defaultdict(lambda: [F(0), F(0)])
    for _, own in people:
        for g in GROUPS:
            values = [
                F(min(max(x, BOUNDS.lower), BOUNDS.upper)) for x, group, _ in own if group == g
            ]
            weight = F(min(len(values), limit), max(len(values), 1))
            found[g][0] += len(values) * weight
            found[g][1] += sum(values, F(0)) * weight
    return {g: (n, total) for g, (n, total) in found.items()}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(-6, 8), st.sampled_from(GROUPS), st.booleans()),
            min_size=1,
            max_size=12,
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 6),
)
def test_the_estimand_is_a_mean_in_which_nobody_weighs_more_than_the_limit(others, limit):
    people = list(enumerate(others))
    frame = frame_of(people, "int")
    query, leaf = question("sum", frame, True, False)
    ((statistic, found),) = integers(query, frame, Unit("add-remove", (leaf,), limit, len(GROUPS)))
    truth, step = by_hand(people, limit), statistic.reading().step
    for i, g in enumerate(GROUPS):
        assert abs(float(found[0, i]) * step - float(truth[g][1])) <= len(people) * step
    query, _ = question("size", frame, True, False)
    ((_, rows),) = integers(query, frame, Unit("add-remove", (leaf,), limit, len(GROUPS)))
    assert rows[0].tolist() == [truth[g][0] for g in GROUPS]


def test_order_of_the_frame_and_other_people_change_nothing_of_ones_own():
    own = [(float(i), GROUPS[i % 4], True) for i in range(12)]
    frames = [
        frame_of([(5, own), *extra], "text", order)
        for extra in ([], [(1, own[:2]), (2, own)])
        for order in range(3)
    ]
    query, leaf = question("size", frames[0], True, False)
    unit = Unit("add-remove", (leaf,), 2, 2)
    alone = [integers(query, f, unit)[0][1] for f in frames[:3]]
    assert all((a == alone[0]).all() for a in alone)
    assert alone[0].sum() == 4
    rest = [
        integers(query, frame_of([(1, own[:2]), (2, own)], "text", i), unit)[0][1] for i in range(3)
    ]
    for f, r in zip(frames[3:], rest, strict=True):
        assert (integers(query, f, unit)[0][1] - r == alone[0]).all()


def test_equal_numbers_of_two_types_are_one_person_and_nulls_are_nobody():
    frame = pd.DataFrame(
        {
            "id": pd.Series([1, 1.0, True, None, np.nan], dtype=object),
            "x": 1.0,
            "g": "a",
            "flag": True,
        }
    )
    query, leaf = question("people", frame, False, False)
    ((_, found),) = integers(query, frame, Unit("add-remove", (leaf,), 1, 1))
    assert found.tolist() == [[1]]


def test_many_rows_of_one_person_add_up_exactly(monkeypatch):
    own = [(5.0, "a", True)] * 50 + [(-3.0, "a", True)] * 31
    frame = frame_of([(1, own), (2, own[:7])], "int")
    query, leaf = question("var", frame, True, False)
    for limit in (3, 100):
        ours = integers(query, frame, Unit("add-remove", (leaf,), limit, 2))[0][1]
        for part in (
            1,
            2**40,
        ):  # a person at a time; and in halves, the way for sums that doubles cannot hold
            with monkeypatch.context() as patch:
                patch.setattr(SIZES, "people_pairs", part)
                assert (
                    ours == integers(query, frame, Unit("add-remove", (leaf,), limit, 2))[0][1]
                ).all()


# Broken copies ------------------------------------------------------------------------------------------------------


def worst(query: Query, unit: Unit) -> float:
    """How far a person with a dozen rows in four groups moves it, as a share of the claim."""
    own = [(5.0, g, True) for g in GROUPS for _ in range(3)]
    shares = []
    for order in range(6):
        one, other = (
            frame_of([(1, own), (2, own)], "int", order),
            frame_of([(2, own)], "int", order + 1),
        )
        for (l1, _), claim in zip(
            distances(query, unit, one, other), claims(query, unit), strict=True
        ):
            shares.append(l1 / claim.l1)
    return max(shares)


@pytest.fixture
def asked():
    return question("size", frame_of([(1, [(1.0, "a", True)])], "int"), True, False)


def test_all_groups_of_a_person_are_seen(asked, monkeypatch):
    query, leaf = asked
    unit = Unit("add-remove", (leaf,), 3, 2)
    assert worst(query, unit) <= 1
    monkeypatch.setattr(person_sums_module, "within_groups", lambda *_: None)
    assert worst(query, unit) > 1


def test_rows_beyond_the_limit_are_seen(asked, monkeypatch):
    query, leaf = asked
    unit = Unit("add-remove", (leaf,), 2, 4)
    assert worst(query, unit) <= 1
    monkeypatch.setattr(
        _people.Bound, "rows", lambda self: self._add_over_people(lambda at, rows: [rows])[0]
    )
    assert worst(query, unit) > 1


def test_the_sensitivity_of_one_row_is_seen(asked, monkeypatch):
    query, leaf = asked
    unit = Unit("add-remove", (leaf,), 2, 3)
    monkeypatch.setattr(
        Statistic, "of_person", lambda self, unit, groups: self.sensitivity(unit, True)
    )
    assert worst(query, unit) > 1


@given(
    st.sampled_from(list(combinations(["size", "count", "sum", "true", "people", "nunique"], 2))),
    crowd,
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_what_is_asked_together_is_what_is_asked_alone(names, people, by, where):
    """Sums of different kinds are never taken for one another."""
    frame = frame_of(list(enumerate(people)), "int")
    for unit_of in (
        lambda leaf: Unit("add-remove", (leaf,), 2, 2),
        lambda leaf: Unit("add-remove"),
    ):
        query, leaf = question("+".join(names), frame, by, where)
        if "people" in names and unit_of(leaf).people == ():
            continue
        both = integers(query, frame, unit_of(leaf))
        for name in names:
            for statistic, alone in integers(
                question(name, frame, by, where)[0], frame, unit_of(leaf)
            ):
                # A count may be a part of another's vector, and then there is nothing to compare.
                assert all(np.array_equal(alone, m) for s, m in both if s == statistic)


def test_primitives_of_two_kinds_are_two():
    x = Column.of(0, "x", np.dtype("float64"))
    grid = Grid.for_width(BOUNDS, 31)
    made = [Rows(), Persons(), Trues(x), Bids(x), Magnitudes(x), Distincts(x), Powers(x, grid, 1), Leaves(x, grid),
            Spread("rows", 3), Products(x, grid, x, grid)]  # fmt: skip
    assert {type(p) for p in made} == set(typing.get_args(Primitive))
    assert len(set(made)) == len(made)
    assert not any(a == b for a, b in combinations(made, 2))
