"""Distinct values: counted as the definition says, and moved by one person no further than is claimed.

Random frames, both relations, with a row or many rows a person. Twins that must fail: a limit that is forgotten, the
sensitivity of one row, a choice that goes by the place of a value in the frame, and ties that are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe._expr import Column
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import Output
from dpframe._questions.question import Query
from dpframe._statistics.base import Distincts, Sensitivity
from dpframe._statistics.counts import DistinctCount
from dpframe.engines import limits as _distinct
from dpframe.engines.pandas import PandasEngine
from tests.conformance.frames import (
    STORAGES,
    UNITS,
    Layout,
    integers,
    is_null,
    layouts,
    rows_of,
    within,
)

KEY = b"12345678"
GROUPS = ["a", "b", "c"]
VALUES = ["p", "q", "r", "s", "t", None]
RELATIONS = ["add-remove", "replace-one"]


# A row a person -----------------------------------------------------------------------------------------------------


@pytest.fixture
def examples(full):
    return settings(max_examples=200 if full else 6, deadline=None, database=None)


def by_definition(layout: Layout, rows: list[Any]) -> list[int]:
    found: list[set[Any]] = [set() for _ in range(layout.groups)]
    for row in rows:
        group = layout.group(row)
        if group is not None and not is_null(row[0]):
            found[group].add(row[0])
    return [len(values) for values in found]


@pytest.mark.scaled
@pytest.mark.parametrize("storage", STORAGES)
def test_rows_are_counted_and_move_as_claimed(storage, examples):
    @examples
    @given(st.data())
    def check(data):
        layout = data.draw(layouts(storage))
        rows = data.draw(st.lists(rows_of(layout), max_size=12))
        person, other = data.draw(rows_of(layout)), data.draw(rows_of(layout))
        statistic = DistinctCount(layout.leaves[0])
        asked = {"nunique": statistic}
        one = integers(layout, [*rows, person], asked)["nunique"]
        assert one == [by_definition(layout, [*rows, person])]
        for unit in UNITS.values():
            two = integers(layout, [*rows, other] if unit.replaces else rows, asked)["nunique"]
            assert within(statistic.sensitivity(unit, bool(layout.levels)), one, two)

    check()


# Many rows a person -------------------------------------------------------------------------------------------------


def frame_of(
    people: list[tuple[int, list[tuple[Any, Any]]]], order: int = 0, dtype: str = "str"
) -> pd.DataFrame:
    rows = [(i, *row) for i, own in people for row in own]
    places = np.random.default_rng(order).permutation(len(rows))
    frame = pd.DataFrame([rows[i] for i in places], columns=["id", "v", "g"]).astype(
        {"id": "int64", "g": "str"}
    )
    frame["v"] = frame["v"].astype(dtype)
    return frame


def counted(frame: pd.DataFrame, by: bool, unit: Unit) -> list[int]:
    leaves = [Column.of(i, c, frame.dtypes.iloc[i]) for i, c in enumerate(frame.columns)]
    groups = (KeyBy(leaves[2], keys_for(GROUPS, leaves[2], "g")),) if by else ()
    query = Query((Output("v", "nunique", leaves[1]),), None, groups)
    statistic = DistinctCount(leaves[1])
    found = PandasEngine(frame, KEY).reduce(query, {Distincts(leaves[1])}, unit)
    counts: list[int] = statistic.integers(found)[0].tolist()
    return counts


def unit_of(relation: str, most: int) -> Unit:
    return Unit(
        relation, (Column.of(0, "id", np.dtype("int64")),), 1, most
    )  # type-checked by mypy in dpframe only


def claim(unit: Unit, by: bool) -> Sensitivity:
    return DistinctCount(Column.of(1, "v", pd.StringDtype())).of_person(
        unit, len(GROUPS) if by else None
    )


own_rows = st.lists(
    st.tuples(st.sampled_from(VALUES), st.sampled_from([*GROUPS, "other"])), min_size=1, max_size=12
)


@pytest.mark.parametrize("dtype", ["str", "category"])
@pytest.mark.parametrize("relation", RELATIONS)
@settings(max_examples=25, deadline=None)
@given(
    others=st.lists(own_rows, max_size=4),
    first=own_rows,
    second=own_rows,
    by=st.booleans(),
    most=st.integers(1, 5),
)
def test_a_person_moves_them_no_further_than_claimed(
    relation, dtype, others, first, second, by, most
):
    unit, people = unit_of(relation, most), list(enumerate(others))
    one = counted(frame_of([(99, first), *people], 1, dtype), by, unit)
    two = counted(
        frame_of([*people, *([(77, second)] if unit.replaces else [])], 2, dtype), by, unit
    )
    assert within(claim(unit, by), [one], [two])


def test_claims_are_reached_in_both_norms():
    def own(values: str, group: str) -> list[tuple[Any, Any]]:
        return [(v, group) for v in values]

    for most in (1, 3, 5):
        joins = [[(1, own("pqrst", "a"))], []]
        moves = [[(1, own("pqrst", "a"))], [(2, own("pqrst", "b"))]]
        for relation, (one, two) in (("add-remove", joins), ("replace-one", moves)):
            unit = unit_of(relation, most)
            d = np.subtract(counted(frame_of(one), True, unit), counted(frame_of(two), True, unit))
            assert (abs(d).sum(), (d**2).sum()) == claim(unit, True)
        for (
            relation
        ) in RELATIONS:  # without groups a person who says nothing against one who names all
            unit = unit_of(relation, most)
            crowd = [(5, own("p", "a"))]
            silent = [(2, [(None, "a")])]
            d = (
                counted(frame_of([*crowd, (1, own("qrst" + "u", "a"))]), False, unit)[0]
                - counted(frame_of([*crowd, *silent]), False, unit)[0]
            )
            assert (d, d * d) == claim(unit, False)


def test_everybody_is_counted_where_nobody_reaches_the_limit():
    people = [(i, [(v, g) for v in VALUES[i : i + 2] for g in GROUPS[:2]]) for i in range(5)]
    frame = frame_of(people, dtype="object")
    assert counted(frame, False, unit_of("add-remove", 4)) == [frame["v"].nunique()]
    exact = frame.groupby("g")["v"].nunique().reindex(GROUPS, fill_value=0)
    assert counted(frame, True, unit_of("add-remove", 4)) == exact.tolist()


def test_what_a_person_names_depends_on_nobody_else():
    """Alone and in a crowd in whose frame values get other codes, and whatever the order of rows."""
    own = [(v, "a") for v in "pqrst"]
    unit = unit_of("add-remove", 2)
    named = set()
    for order in range(5):
        others = [(7, [("z", "b"), ("t", "c")]), (8, [("y", "b")])] if order % 2 else []
        for (
            value
        ) in "pqrst":  # a value that somebody else has in the group is named if the count stays
            more = [(i + 20, [(value, "a")]) for i in range(1)]
            alone = counted(frame_of([(1, own), *others], order, "category"), True, unit)[0]
            joined = counted(frame_of([(1, own), *others, *more], order, "category"), True, unit)[0]
            assert alone == 2
            if joined == alone:
                named.add((order, value))
    by_order = [{v for o, v in named if o == order} for order in range(5)]
    assert all(found == by_order[0] and len(found) == 2 for found in by_order)


def test_equal_hashes_at_the_limit_are_not_named():
    person = np.array([0, 0, 0, 1, 1, 2])
    rank = np.array([5, 5, 1, 7, 7, 9], dtype=np.uint64)
    assert _distinct.smallest(person, rank, 2).tolist() == [False, False, True, True, True, True]
    assert _distinct.smallest(person, rank, 1).tolist() == [False, False, True, False, False, True]
    assert _distinct.smallest(person[:0], rank[:0], 1).tolist() == []


# Broken copies ------------------------------------------------------------------------------------------------------

HEAVY = [(1, [(v, g) for v in "pqrst" for g in GROUPS])]


def test_a_forgotten_limit_is_seen(monkeypatch):
    unit = unit_of("add-remove", 3)
    assert sum(counted(frame_of(HEAVY), True, unit)) == 3
    monkeypatch.setattr(
        _distinct, "smallest", lambda person, rank, limit: np.ones(len(person), dtype=bool)
    )
    assert not within(claim(unit, True), [counted(frame_of(HEAVY), True, unit)], [[0, 0, 0]])


def test_the_sensitivity_of_one_row_is_seen():
    unit = unit_of("add-remove", 3)
    one_row = DistinctCount(Column.of(1, "v", pd.StringDtype())).sensitivity(unit, True)
    assert not within(one_row, [counted(frame_of(HEAVY), True, unit)], [[0, 0, 0]])


def test_keeping_ties_is_seen(monkeypatch):
    def keeps_ties(person: Any, rank: Any, limit: int) -> Any:
        kept = np.zeros(len(person), dtype=bool)
        for one in np.unique(person):
            at = np.flatnonzero(person == one)
            kept[at] = rank[at] <= np.sort(rank[at])[:limit][-1]
        return kept

    monkeypatch.setattr(_distinct.Draw, "ranks", lambda self, people, groups: people * 0)
    unit = unit_of("add-remove", 3)
    assert sum(counted(frame_of(HEAVY), True, unit)) == 0
    monkeypatch.setattr(_distinct, "smallest", keeps_ties)
    assert sum(counted(frame_of(HEAVY), True, unit)) == 15 > claim(unit, True).l1


def test_a_choice_by_codes_of_the_frame_is_seen(monkeypatch):
    """With codes for hashes somebody else's rows decide what a person names, and both move the count."""
    own = [(v, "a") for v in "pqr"]
    unit = unit_of("add-remove", 1)

    def spread_of(order: int) -> int:
        crowd = [(1, own), (2, [("p", "a")])]
        more = [(3, [("r", "a"), ("q", "other")])]
        one, two = frame_of(crowd, 0), frame_of([*more, *crowd], order)
        return abs(counted(two, True, unit)[0] - counted(one, True, unit)[0])

    assert max(map(spread_of, range(20))) <= 1
    encode_values = _distinct.encode_values

    def by_place(vector: Any) -> Any:
        codes, known = encode_values(vector)
        return codes, np.arange(len(known))

    monkeypatch.setattr(_distinct, "encode_values", by_place)
    named = {
        tuple(counted(frame_of([(1, own), (2, [("p", "a")])], order), True, unit))
        for order in range(20)
    }
    assert len(named) > 1  # the order of the frame has decided
