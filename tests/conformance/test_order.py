"""Order statistics on neighbouring frames: leaves, scores and trees are their definitions, and move as claimed.

Scores are never noised: the largest is chosen, so the claim is about differences between scores. Twins that must fail:
half of each claim, and an engine that counts nulls.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpframe._sizes import SIZES
from dpframe._statistics.base import Grid, Statistic
from dpframe._statistics.order import Ranks, Surroundings, Tree, list_level_sizes, place_edges
from dpframe._validate import Bounds
from dpframe.engines import row_sums as row_sums_module
from tests.conformance.frames import (
    STORAGES,
    UNITS,
    Layout,
    integers,
    is_null,
    layouts,
    on_grid,
    rows_of,
)

LEVELS = [
    (F(1, 2),),
    (F(0),),
    (F(1, 100), F(99, 100)),
    (F(1, 3), F(1, 2), F(1)),
    (F(1, 4), F(3, 4)),
]
SOME = ["int8", "float64", "Int64", "boolean", "double[pyarrow]", "Sparse[0]"]


@pytest.fixture
def examples(full):
    return settings(
        max_examples=300 if full else 25,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def statistics_of(
    layout: Layout, bounds: Bounds, levels: tuple[F, ...], exponent: int
) -> dict[str, Any]:
    x, grid = layout.leaves[0], Grid(bounds, exponent)
    return {"ranks": Ranks(x, grid, levels), "tree": Tree(x, grid)}


def reach(one: list[Any], two: list[Any]) -> int:
    """By how much differences of scores differ: the widest within each level and group, added up."""
    change = np.array(one) - np.array(two)
    return int((change.max(axis=1) - change.min(axis=1)).sum())


def moved(name: str, one: list[Any], two: list[Any]) -> tuple[int, int]:
    if name == "ranks":
        return reach(one, two), 0
    steps = np.array(one) - np.array(two)
    return int(abs(steps).sum()), int((steps * steps).sum())


def claim_of(
    statistic: Statistic, unit: Any, layout: Layout, share: int = 1
) -> tuple[float, float]:
    l1, l2_squared = statistic.sensitivity(unit, bool(layout.levels))
    return l1 / share, l2_squared / share


@pytest.mark.parametrize("relation", UNITS)
@pytest.mark.parametrize("storage", SOME)
def test_one_person_moves_scores_and_counts_by_at_most_the_claim(storage, relation, examples):
    @examples
    @given(st.data())
    def check(data):
        unit, layout = UNITS[relation], data.draw(layouts(storage))
        bounds = Bounds(*data.draw(st.sampled_from(STORAGES[storage].bounds)))
        statistics = statistics_of(
            layout, bounds, data.draw(st.sampled_from(LEVELS)), data.draw(st.integers(-2, 1))
        )
        rows = data.draw(st.lists(rows_of(layout), max_size=12))
        person = data.draw(rows_of(layout))
        other = [data.draw(rows_of(layout))] if unit.replaces else []
        one = integers(layout, [*rows, person], statistics)
        two = integers(layout, [*rows, *other], statistics)
        for name, statistic in statistics.items():
            l1, l2_squared = moved(name, one[name], two[name])
            claim = claim_of(statistic, unit, layout)
            assert l1 <= claim[0], name
            assert l2_squared <= claim[1], name

    check()


@pytest.mark.parametrize("relation", UNITS)
@pytest.mark.parametrize("storage", SOME)
def test_one_person_moves_the_counts_around_any_choices_by_at_most_the_claim(
    storage, relation, examples
):
    """Whatever was chosen before, and also where choices lie in other groups."""

    @examples
    @given(st.data())
    def check(data):
        unit, layout = UNITS[relation], data.draw(layouts(storage))
        bounds = Bounds(*data.draw(st.sampled_from(STORAGES[storage].bounds)))
        levels = data.draw(st.sampled_from(LEVELS))
        ranks = Ranks(layout.leaves[0], Grid(bounds, data.draw(st.integers(-2, 1))), levels)
        around = Surroundings.of(ranks)
        points = st.integers(0, ranks.points - 1)
        shape = len(levels), layout.groups
        chosen = np.array(
            data.draw(st.lists(points, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
        ).reshape(shape)
        rows = data.draw(st.lists(rows_of(layout), max_size=12))
        person = data.draw(rows_of(layout))
        other = [data.draw(rows_of(layout))] if unit.replaces else []

        def count(some: list[Any]) -> Any:
            leaves = np.array(
                integers(layout, some, {"tree": Tree(ranks.expr, ranks.grid)})["tree"]
            )
            reduced = {around.primitives[0]: leaves[: ranks.points]}
            return around.integers_after(reduced, [chosen])

        one, two = count([*rows, person]), count([*rows, *other])
        assert one.shape == around.shape(layout.groups)
        l1, l2_squared = moved("surroundings", one, two)
        claim = claim_of(around, unit, layout)
        assert l1 <= claim[0]
        assert l2_squared <= claim[1]

    check()


def test_counts_around_choices_are_their_definition():
    """The values from each edge up to the next one, by hand."""
    x = Layout("int64", "category", 0, False).leaves[0]
    around = Surroundings(x, Grid(Bounds(0.0, 9.0), 0), 1)
    counts = np.array([[5, 0, 1, 2, 0, 0, 7, 0, 3, 4]]).T
    found = around.integers_after({around.primitives[0]: counts}, [np.array([[3]])])
    edges = place_edges(np.array([[3]]), 10)[:, 0].tolist()
    assert edges == [0, 0, 0, 2, 3, 4, 5, 7, 10, 10]
    assert found[:, 0].tolist() == [0, 0, 5, 1, 2, 0, 7, 7, 0]
    with pytest.raises(AssertionError, match="chosen before"):
        around.integers({around.primitives[0]: counts})


@pytest.mark.parametrize("grouped", [False, True], ids=["ungrouped", "grouped"])
@pytest.mark.parametrize("relation", UNITS)
def test_some_person_moves_the_counts_around_a_choice_by_the_claim(relation, grouped):
    unit, layout = UNITS[relation], Layout("Int64", "category", int(grouped), False)
    around = Surroundings(layout.leaves[0], Grid(Bounds(-5.0, 5.0), 0), 1)
    chosen = np.full((1, layout.groups), 5)
    frames = []
    for x in (-5, 5, None):
        leaves = integers(layout, [(x, True, "a", 1)], {"tree": Tree(around.expr, around.grid)})[
            "tree"
        ]
        frames.append(around.integers_after({around.primitives[0]: np.array(leaves)}, [chosen]))
    pairs = [(f, g) for f in frames for g in (frames if unit.replaces else [0 * frames[0]])]
    assert max(moved("surroundings", f, g) for f, g in pairs) == claim_of(around, unit, layout)


def worst(relation: str, grouped: bool, levels: tuple[F, ...], shape: list[Any]) -> dict[str, Any]:
    """The furthest that two neighbours among simple frames move, and the claims."""
    unit, layout = UNITS[relation], Layout("Int64", "category", int(grouped), False)
    statistics = statistics_of(layout, Bounds(-5.0, 5.0), levels, 0)
    people = [
        (x, True, g, 1) for x in (-5, 0, 5, None) for g in (("a", "b") if grouped else ("a",))
    ]
    rows = [(x, True, g, 1) for x in shape for g in ("a", "b")]
    frames = [integers(layout, [*rows, person], statistics) for person in people]
    alone = integers(layout, rows, statistics)
    pairs = [(f, g) for f in frames for g in (frames if unit.replaces else [alone])]
    return {
        name: (
            max(moved(name, one[name], two[name]) for one, two in pairs),
            claim_of(statistic, unit, layout),
        )
        for name, statistic in statistics.items()
    }


@pytest.mark.parametrize("grouped", [False, True], ids=["ungrouped", "grouped"])
@pytest.mark.parametrize("relation", UNITS)
def test_some_person_reaches_the_claim_so_half_of_it_is_caught(relation, grouped):
    shape = [-5] * 8 + [0] * 3 + [5] * 8
    found = worst(relation, grouped, (F(1, 2),), [-4, -3, -2, -1, 1, 2, 3, 4])
    assert found["ranks"][0][0] == found["ranks"][1][0]
    assert found["tree"][0] == found["tree"][1]
    many = worst(relation, grouped, (F(1, 4), F(1, 2)), shape)["ranks"]
    assert many[1][0] / 2 < many[0][0] <= many[1][0]


@pytest.mark.parametrize("storage", SOME)
def test_leaves_scores_and_trees_are_their_definitions(storage, examples, monkeypatch):
    @examples
    @given(st.data())
    def check(data):
        layout = data.draw(layouts(storage))
        bounds = Bounds(*data.draw(st.sampled_from(STORAGES[storage].bounds)))
        exponent, levels = data.draw(st.integers(-2, 3)), data.draw(st.sampled_from(LEVELS))
        statistics = statistics_of(layout, bounds, levels, exponent)
        rows = data.draw(st.lists(rows_of(layout), max_size=12))
        with monkeypatch.context() as patch:
            block = data.draw(st.integers(2, 7))
            patch.setattr(SIZES, "block", block)
            patch.setattr(SIZES, "sum_block", block)
            found = integers(layout, rows, statistics)
        low, high = (on_grid(F(b), exponent) for b in bounds)
        counts = [[0] * layout.groups for _ in range(low, high + 1)]
        for row in rows:
            group = layout.group(row)
            if group is not None and not is_null(row[0]):
                clipped = F(min(max(float(row[0]), bounds.lower), bounds.upper))
                counts[on_grid(clipped, exponent) - low][group] += 1
        assert found["tree"] == tree_of(counts)
        for place, q in enumerate(levels):
            assert found["ranks"][place] == scores_of(counts, q, statistics["ranks"].denominator)

    check()


def tree_of(counts: list[list[int]]) -> list[list[int]]:
    found = list(counts)
    level = counts
    while len(level) > 16:
        level = [
            [sum(column) for column in zip(*level[i : i + 16], strict=True)]
            for i in range(0, len(level), 16)
        ]
        found += level
    return found


def scores_of(counts: list[list[int]], q: F, over: int) -> list[list[int]]:
    columns = []
    for column in zip(*counts, strict=True):
        n = sum(column)
        below = [sum(column[:v]) for v in range(len(column))]
        above = [sum(column[v + 1 :]) for v in range(len(column))]
        columns.append(
            [
                -int(over * max(0, b - q * n, a - (1 - q) * n))
                for b, a in zip(below, above, strict=True)
            ]
        )
    return [list(row) for row in zip(*columns, strict=True)]


def test_an_engine_that_counts_nulls_is_not_the_definition(monkeypatch):
    steps = row_sums_module.put_steps

    def counts_nulls(vector, grid, mask, scratch):
        full = replace(vector, values=np.nan_to_num(vector.values), null=None)
        return steps(full, grid, mask, scratch)

    layout = Layout("float64", "category", 0, False)
    rows = [(x, True, "a", 1) for x in (None, 1.0, 2.0)]
    tree = {"tree": Tree(layout.leaves[0], Grid(Bounds(-5.0, 5.0), 0))}
    assert integers(layout, rows, tree)["tree"][5:8] == [[0], [1], [1]]
    monkeypatch.setattr(row_sums_module, "put_steps", counts_nulls)
    assert integers(layout, rows, tree)["tree"][5:8] == [[1], [1], [1]]


def test_level_finer_than_the_integers_is_rounded_within_63_bits():
    x = Layout("int64", "category", 0, False).leaves[0]
    fine = Ranks(x, Grid(Bounds(0.0, 1.0), 0), (F(1, 3), F("0.1234567890123")))
    assert fine.denominator == 2**30
    assert abs(F(fine.numerators[0], fine.denominator) - F(1, 3)) < F(1, 2**30)
    crowd = np.array([[2**31], [0]])
    scores = fine.integers({fine.primitives[0]: crowd})
    assert scores[0, 1, 0] == -(fine.denominator - fine.numerators[0]) * 2**31
    assert list_level_sizes(4096) == (4096, 256, 16)
