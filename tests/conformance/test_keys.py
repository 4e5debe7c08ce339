"""Neighbours differ in one person: the counts by which keys are found move by one in at most so many keys, whatever the
keys of others. Twins that must fail: keys chosen by their number in the frame, and rows counted for people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe._expr import Column
from dpframe._groups.unit import Unit
from dpframe._questions.keysearch import KeySearch
from dpframe._statistics.base import Persons
from dpframe.accounting._filter import Price
from dpframe.engines import person_sums as engine
from dpframe.engines.pandas import PandasEngine
from tests.conformance.frames import F
from tests.internals import make_plan

KEY = b"12345678"
cells = st.sampled_from(["a", "b", "c", "d", "e", "f", None])
person = st.lists(st.tuples(cells, cells, st.booleans()), min_size=1, max_size=8)
crowd = st.lists(person, max_size=5)
Counts = dict[tuple[str, ...], int]


def frame_of(people: list[tuple[int | None, list[Any]]], order: int) -> pd.DataFrame:
    rows = [(i, *row) for i, own in people for row in own]
    rows = [rows[i] for i in np.random.default_rng(order).permutation(len(rows))]
    frame = pd.DataFrame(rows, columns=["id", "g", "h", "flag"])
    return frame.astype({"id": "Int64", "g": "str", "h": "category", "flag": bool})


def counted(frame: pd.DataFrame, unit: Unit, columns: str, where: bool) -> Counts:
    leaves = {c: Column.of(i, c, frame.dtypes.iloc[i]) for i, c in enumerate(frame.columns)}
    exprs = tuple(leaves[c] for c in columns)
    texts, sums = PandasEngine(frame, KEY).occurring(exprs, leaves["flag"] if where else None, unit)
    return dict(zip(texts, sums[Persons()].tolist(), strict=True))


def moved(one: Counts, other: Counts) -> tuple[int, int]:
    steps = [abs(one.get(k, 0) - other.get(k, 0)) for k in {*one, *other}]
    return sum(steps), max(steps, default=0)


def unit_of(relation: str, limit: int | None) -> Unit:
    if limit is None:
        return Unit(relation)
    return Unit(relation, (Column.of(0, "id", pd.Int64Dtype()),), None, limit)


def neighbours(others, first, second, relation, orders):
    people = list(enumerate(others)) + ([(None, others[0])] if others else [])
    one = frame_of([*people, (99, first)], orders[0])
    return one, frame_of(people if relation == "add-remove" else [*people, (77, second)], orders[1])


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("columns", ["g", "h", "gh"])
@settings(max_examples=60, deadline=None)
@given(others=crowd, first=person, second=person, where=st.booleans(), limit=st.integers(1, 4),
       orders=st.tuples(st.integers(0, 9), st.integers(0, 9)))  # fmt: skip
def test_one_person_moves_few_counts_and_each_by_one(
    relation, columns, others, first, second, where, limit, orders
):
    unit = unit_of(relation, limit)
    one, other = (
        counted(f, unit, columns, where)
        for f in neighbours(others, first, second, relation, orders)
    )
    plan = make_plan(
        KeySearch((Column.of(1, "g", one_dtype()),), F(1, 100), True), unit, Price(F(1))
    ).plan
    l1, largest = moved(one, other)
    assert largest <= 1
    assert l1 <= plan.parts[0].l1


def one_dtype() -> Any:
    return pd.Series(["a"]).dtype


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@given(others=crowd, first=person, second=person)
def test_without_a_unit_a_row_is_a_person(relation, others, first, second):
    rows = [(i, [row]) for i, row in enumerate(row for own in others for row in own)]
    one, other = (
        counted(f, unit_of(relation, None), "g", False)
        for f in neighbours([own for _, own in rows], first[:1], second[:1], relation, (0, 1))
    )
    assert moved(one, other)[0] <= (1 if relation == "add-remove" else 2)


def test_the_truth_is_counted():
    people = [(i, [("a", "x", True), ("a", "x", True), ("b", "y", False)]) for i in range(7)]
    frame = frame_of([*people, (None, [("a", "x", True)]), (50, [("a", None, True)])], 3)
    assert counted(frame, unit_of("add-remove", 4), "g", False) == {("sa",): 8, ("sb",): 7}
    assert counted(frame, unit_of("add-remove", 4), "gh", False) == {
        ("sa", "sx"): 7,
        ("sb", "sy"): 7,
    }
    assert counted(frame, unit_of("add-remove", 4), "g", True) == {("sa",): 8}
    assert sum(counted(frame, unit_of("add-remove", 1), "g", False).values()) == 8


def worst_over_frames() -> int:
    """The largest move that some hundred pairs of frames show."""
    rng, worst = np.random.default_rng(4), 0
    for _ in range(200):
        people = [
            (i, [(rng.choice(list("abcdef")), "x", True) for _ in range(6)]) for i in range(4)
        ]
        one = frame_of([*people, (99, [(str(rng.choice(list("ABC"))), "x", True)])], 0)
        other = frame_of(people, 0)
        worst = max(
            worst,
            moved(*(counted(f, unit_of("add-remove", 1), "g", False) for f in (one, other)))[0],
        )
    return worst


def test_keys_chosen_by_their_number_are_caught(monkeypatch):
    """One person's new key would shift the numbers of all others', and with them what other people are counted for."""
    assert worst_over_frames() == 1
    real = engine.within_groups
    monkeypatch.setattr(engine, "within_groups", lambda p, h, m, k, labels: real(p, h, m, k))
    assert worst_over_frames() > 1
