"""Neighbours differ in one person: the vectors of groups that are found with their answers move within the declared
sensitivities, and a person who is alone in a group never adds up to more than its bars allow for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe._expr import Column
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import Output
from dpframe._questions.keysearch import Finding, Roomy
from dpframe._validate import Bounds
from dpframe.accounting._filter import Price
from dpframe.engines import person_sums as engine
from dpframe.engines.pandas import PandasEngine
from tests.conformance.frames import F
from tests.internals import make_plan

KEY = b"12345678"
names = st.sampled_from(["a", "b", "c", "d", None])
values = st.sampled_from([0.0, 1.0, 2.5, 4.0, 9.0, -3.0, None])
person = st.lists(st.tuples(names, values), min_size=1, max_size=9)
crowd = st.lists(person, max_size=4)
ASKED = {
    "size": ["size"], "values": ["count"], "sum": ["sum"], "moments": ["mean", "std", "count"], "people": ["people"],
    "both": ["people", "mean"],
}  # fmt: skip


def frame_of(people: list[tuple[int, list[Any]]], order: int) -> pd.DataFrame:
    rows = [(i, *row) for i, own in people for row in own]
    rows = [rows[i] for i in np.random.default_rng(order).permutation(len(rows))]
    return pd.DataFrame(rows, columns=["id", "g", "x"]).astype(
        {"id": "int64", "g": "str", "x": "Float64"}
    )


LEAVES = {
    c: Column.of(i, c, d)
    for i, (c, d) in enumerate(frame_of([(0, [("a", 1.0)])], 0).dtypes.items())
}


def finding(kind: str) -> Finding:
    def output(aggregate: str) -> Output:
        x = None if aggregate in ("size", "people") else LEAVES["x"]
        return Output(
            aggregate,
            aggregate,
            x,
            Bounds(0.0, 4.0) if x is not None and aggregate != "count" else None,
        )

    return Finding((LEAVES["g"],), tuple(map(output, ASKED[kind])), F(1, 1000), True)


def unit_of(relation: str, rows: int, groups: int, people: bool = True) -> Unit:
    return Unit(relation, (LEAVES["id"],), rows, groups) if people else Unit(relation)


def vectors(
    frame: pd.DataFrame, task: Finding, unit: Unit
) -> list[dict[tuple[str, ...], list[int]]]:
    """By statistic, the integers of each group."""
    arranged, _ = task._arrange(unit)
    primitives = {p for s, _ in arranged for p in s.primitives}
    texts, sums = PandasEngine(frame, KEY).occurring(task.exprs, None, unit, primitives)
    return [dict(zip(texts, s.integers(sums).T.tolist(), strict=True)) for s, _ in arranged]


def moved(one: dict, other: dict) -> tuple[int, int]:
    l1 = l2 = 0
    for key in {*one, *other}:
        x, y = one.get(key), other.get(key)
        width = len(x if x is not None else y)
        steps = [a - b for a, b in zip(x or [0] * width, y or [0] * width, strict=True)]
        l1, l2 = l1 + sum(map(abs, steps)), l2 + sum(s * s for s in steps)
    return l1, l2


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", ASKED)
@settings(max_examples=60, deadline=None)
@given(others=crowd, first=person, second=person, rows=st.integers(1, 4), groups=st.integers(1, 3),
       orders=st.tuples(st.integers(0, 9), st.integers(0, 9)))  # fmt: skip
def test_one_person_moves_no_vector_further_than_declared(
    relation, kind, others, first, second, rows, groups, orders
):
    unit, task = unit_of(relation, rows, groups), finding(kind)
    people = list(enumerate(others))
    one = frame_of([*people, (99, first)], orders[0])
    other = frame_of(people if relation == "add-remove" else [*people, (77, second)], orders[1])
    plan = make_plan(task, unit, Price(F(1))).plan
    for part, x, y in zip(
        plan.parts, vectors(one, task, unit), vectors(other, task, unit), strict=True
    ):
        l1, l2 = moved(x, y)
        assert l1 <= part.l1
        assert l2 <= part.l2_squared


@pytest.mark.parametrize("kind", ASKED)
@settings(max_examples=60, deadline=None)
@given(own=person, rows=st.integers(1, 4), groups=st.integers(1, 3), people=st.booleans())
def test_a_person_alone_in_a_group_is_within_what_the_bars_allow(kind, own, rows, groups, people):
    task, unit = finding(kind), unit_of("add-remove", rows, groups, people)
    if not people:
        if kind in ("people", "both"):
            return  # of rows that are people there is nothing to tell apart
        own = own[:1]
    plan = make_plan(task, unit, Price(F(1), mechanism="laplace")).plan
    _, place = task._arrange(unit)
    noise: Any = plan.parts[place].noise
    # With noise on top that is nearly sure to stay below, a bar stands above what one person can add up to.
    found = vectors(frame_of([(1, own)], 0), task, unit)[place]
    assert len(found) <= groups
    for column in found.values():
        assert all(x >= 0 for x in column)
        for bar in noise.bars:
            total = sum(column[: bar.components])
            assert total < bar.least
            assert total <= sum(column)
        assert sum(column) <= plan.parts[place].l1 // (groups if people else 1)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("kind", ["size", "values", "sum", "moments", "both"])
@pytest.mark.parametrize(("rows", "groups"), [(1, 1), (3, 1), (3, 4)])
def test_bars_are_the_least_for_one_person_with_all_their_rows_and_groups(
    kind, mechanism, rows, groups
):
    """What such a person adds up to is measured; the bars are then those of the mechanism itself."""
    task, unit = finding(kind), unit_of("add-remove", rows, groups)
    _, place = task._arrange(unit)
    own = [(name, 4.0) for name in "abcd"[:groups] for _ in range(rows)]
    found = vectors(frame_of([(1, own)], 0), task, unit)[place]
    most = max(sum(column) for column in found.values())
    noise: Any = (
        make_plan(task, unit, Price(F(1), F(1, 9), mechanism=mechanism)).plan.parts[place].noise
    )
    components = sorted({len(next(iter(found.values()))), *(bar.components for bar in noise.bars)})
    if hasattr(noise, "lower"):
        assert (components, noise) == (
            [1],
            noise.with_least_cut(most * groups, noise.rate * most * groups, task.failure),
        )
    else:
        wide = noise.variance if mechanism == "gaussian" else noise.scale
        assert (
            noise.bars == noise.with_least_bars(wide, most, components, groups, task.failure).bars
        )


def test_the_room_tells_how_many_people_there_are():
    people = [(i, [("a", 1.0)] * (i % 4 + 1) + [("b", None)]) for i in range(12)]
    task, unit = finding("moments"), unit_of("add-remove", 3, 2)
    (statistic, _), *_ = task._arrange(unit)[0]
    assert isinstance(statistic, Roomy)
    (found,) = vectors(frame_of(people, 3), task, unit)
    mass = make_plan(task, unit, Price(F(1))).plan.parts[0].l1 // 6
    assert sum(found["sa",]) == mass * 3 * 12
    assert sum(found["sb",]) == mass * 3 * 12
    assert sum(found["sa",][:3]) == mass * sum(min(i % 4 + 1, 3) for i in range(12))


def test_vectors_beyond_63_bits_are_exact():
    task, unit = finding("moments"), unit_of("add-remove", 2**20, 2)
    (found,) = vectors(frame_of([(i, [("a", 4.0)]) for i in range(9)], 0), task, unit)
    plan = make_plan(task, unit, Price(F(1))).plan
    assert sum(found["sa",]) == 9 * plan.parts[0].l1 // 2
    assert plan.parts[0].l1 > 2**48


def worst_over_frames() -> int:
    rng, worst, task, unit = (
        np.random.default_rng(4),
        0,
        finding("size"),
        unit_of("add-remove", 1, 1),
    )
    for _ in range(150):
        people = [(i, [(str(rng.choice(list("abcdef"))), 1.0) for _ in range(6)]) for i in range(4)]
        one = frame_of([*people, (99, [(str(rng.choice(list("ABC"))), 1.0)])], 0)
        pair = (vectors(f, task, unit)[0] for f in (one, frame_of(people, 0)))
        worst = max(worst, moved(*pair)[0])
    return worst


def test_groups_chosen_by_their_number_are_caught(monkeypatch):
    assert worst_over_frames() == 1
    real = engine.within_groups
    monkeypatch.setattr(engine, "within_groups", lambda p, h, m, k, labels: real(p, h, m, k))
    assert worst_over_frames() > 1


def test_a_room_that_forgets_a_limit_is_caught(monkeypatch):
    """Twice the room would move the vector further than rows do."""
    people = [(i, [("a", 1.0)]) for i in range(5)]
    task, unit = finding("size"), unit_of("add-remove", 3, 1)
    plan = make_plan(task, unit, Price(F(1))).plan

    def largest() -> int:
        pair = (
            vectors(frame_of(some, 0), task, unit)[0]
            for some in ([*people, (9, [("a", 1.0)])], people)
        )
        return moved(*pair)[0]

    assert largest() <= plan.parts[0].l1
    real = Roomy.integers
    monkeypatch.setattr(
        Roomy, "integers", lambda self, r: real(replace(self, max_rows=2 * self.max_rows), r)
    )
    assert largest() > plan.parts[0].l1
