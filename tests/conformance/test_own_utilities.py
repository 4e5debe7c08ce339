"""Choices by a utility of the owner's, who says how far one row moves it: no score moves further against another.

Doubles are rounded to the grid of the scores, half to even, which takes values that are one step apart two steps apart.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe import _expr
from dpframe._expr import Column
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import Output
from dpframe._questions.question import Query
from dpframe._statistics.base import Grid
from dpframe._statistics.scores import Scores
from dpframe._validate import Bounds
from dpframe.engines.pandas import PandasEngine

QUERY = Query((Output("n", "size"),), None, ())


def scores(values: list[float], statistic: Any, unit: Unit) -> Any:
    frame = frame_of(values)
    return statistic.integers(PandasEngine(frame).reduce(QUERY, set(statistic.primitives), unit))


def frame_of(values: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"x": np.array(values, dtype=float), "id": [1] * len(values)})


def leaves() -> tuple[Column, Column]:
    dtypes = frame_of([0.0]).dtypes
    return tuple(Column.of(i, name, dtypes.iloc[i]) for i, name in enumerate(("x", "id")))


def moved(one: Any, two: Any) -> int:
    step = one - two
    return int(step.max() - step.min())


def both_ways(exponent: int, moves: float) -> Scores:
    """A value and its negative: one goes up by as much as the other goes down."""
    x, _ = leaves()
    return Scores(
        (_expr.fill(x, 0), _expr.fill(_expr.negate(x), 0)), Grid(Bounds(-9.0, 9.0), exponent), moves
    )


@pytest.mark.parametrize("exponent", [0, 1, 4])
@pytest.mark.parametrize("moves", [0.25, 0.75, 1.0, 2.0])
def test_added_row_moves_scores_by_the_claim_at_most_and_nearly_as_much(exponent, moves):
    statistic = both_ways(exponent, moves)
    empty = scores([], statistic, Unit())
    found = [moved(scores([x], statistic, Unit()), empty) for x in (-moves, moves, moves / 2, 0.0)]
    claim = statistic.reach(Unit())
    assert max(found) <= claim <= max(found) + 4  # a step of rounding for each, in either direction


@pytest.mark.parametrize("exponent", [0, 1, 4])
@pytest.mark.parametrize("steps", [1, 2, 3, 8])
def test_a_row_that_is_replaced_moves_scores_by_no_more_than_the_claim(exponent, steps):
    """All values half a step off the grid and as far apart as the owner said: the claim is reached where it is odd."""
    unit = Unit("replace-one")
    step = 2.0**-exponent
    statistic = both_ways(exponent, steps * step)
    found = []
    for first in (0.5, 1.5, 2.5):
        one, two = (scores([v * step], statistic, unit) for v in (first, first + steps))
        found.append(moved(one, two))
    assert max(found) <= statistic.reach(unit)
    if steps % 2:
        assert max(found) == statistic.reach(unit)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("rows", "limit"), [(1, 1), (3, 2), (5, 2), (4, 4), (7, 3)])
def test_a_person_with_many_rows_moves_scores_by_no_more_than_the_claim(rows, limit, relation):
    _, who = leaves()
    unit = Unit(relation, (who,), limit, None)
    statistic = both_ways(0, 1.0)
    cells = [[*some] for some in itertools.combinations_with_replacement((-0.5, 0.5, 1.0), rows)]
    found = [scores(values, statistic, unit) for values in cells]
    others = [scores([], statistic, unit)] if relation == "add-remove" else found
    within = [values for values in cells if max(values) - min(values) <= 1.0]
    assert within
    claim = statistic.reach_of_person(unit, None)
    for (values, one), (other, two) in itertools.product(
        zip(cells, found, strict=True), enumerate(others)
    ):
        reached = [*values, *(cells[other] if relation == "replace-one" else [0.0])]
        if max(reached) - min(reached) <= 1.0:
            assert moved(one, two) <= claim
    assert claim <= 2 * (2 * limit + 1)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_word_of_the_owner_counts_only_where_it_is_below_the_bounds(relation):
    unit = Unit(relation)
    provable = both_ways(4, None).reach(unit)
    assert provable == 18 * 16 * (2 if unit.replaces else 1)
    assert both_ways(4, 1000.0).reach(unit) == provable
    assert both_ways(4, 0.5).reach(unit) < provable
    people = Unit(relation, (leaves()[1],), 3, None)
    assert both_ways(4, None).reach_of_person(people, None) == 3 * provable
    assert both_ways(4, 1000.0).reach_of_person(people, None) == 3 * provable
    assert both_ways(4, 0.5).reach_of_person(people, None) < provable
