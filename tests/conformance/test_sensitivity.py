"""The integers of neighbouring frames: as far apart as claimed, and never further.

Frames are random and small; the integers are compared with exact rational arithmetic written out from the
definitions. Twins that must fail: a statistic that claims half its sensitivity, one that claims twice as much
as it needs, and engines that forget to clip, to round, or to leave nulls out.
"""

from __future__ import annotations

import itertools
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpframe._groups.unit import Unit
from dpframe._sizes import SIZES
from dpframe._statistics.base import Sensitivity, Statistic
from dpframe._validate import Bounds
from dpframe.engines import reading as reading_module
from tests.conformance.frames import (
    ADD,
    CASES,
    GROUPINGS,
    REPLACE,
    STORAGES,
    UNITS,
    Layout,
    bounds_of,
    distance,
    expected,
    integers,
    layouts,
    rows_of,
    statistics_for,
    within,
)


@pytest.fixture
def examples(full):
    """A decorator for hypothesis: a smaller share unless pytest was called with ``-m slow``."""
    return settings(
        max_examples=300 if full else 8,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


# What one person can do ----------------------------------------------------------------------------------------


@pytest.mark.scaled
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


@pytest.mark.scaled
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


@pytest.mark.scaled
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
            patch.setattr(SIZES, "block", block)
            patch.setattr(SIZES, "sum_block", block)
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


def frames_of_one(
    layout: Layout, bounds: Bounds, statistics: dict[str, Statistic]
) -> list[dict[str, Any]]:
    """The integers of the empty frame, then of each frame of one extreme row."""
    frames = [[]] + [[row] for row in extremes(layout, bounds)]
    return [integers(layout, rows, statistics) for rows in frames]


def neighbours(frames: list[Any], unit: Unit) -> list[tuple[Any, Any]]:
    empty, *alone = frames
    return (
        list(itertools.combinations(alone, 2)) if unit.replaces else [(empty, one) for one in alone]
    )


@pytest.mark.slow(but=24)
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
                assert (max(d[0] for d in distances), max(d[1] for d in distances)) == claim, (
                    name,
                    bounds,
                )
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
        layout = data.draw(layouts("Float64"))._replace(
            grouping="category", levels=0, filtered=False
        )
        bounds = Bounds(-5.0, 5.0)
        rows = data.draw(st.lists(rows_of(layout), max_size=12))
        cells = st.tuples(
            st.sampled_from([-5.0, 5.0, None]), st.booleans(), st.just("a"), st.just(1)
        )
        person, other = data.draw(cells), data.draw(cells)
        for unit in (ADD, REPLACE):
            statistics = statistics_for(layout, bounds, unit)
            one = integers(layout, [*rows, person], statistics)
            two = integers(layout, [*rows, other] if unit.replaces else rows, statistics)
            for name, statistic in statistics.items():
                if not within(half(statistic.sensitivity(unit, False)), one[name], two[name]):
                    caught.add(name)

    search()
    assert caught == {name for name, case in CASES.items() if not case.every_row_has_value}


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
    monkeypatch.setattr(reading_module, "to_grid", broken)
    layout, bounds = Layout("float64", "category", 0, False), Bounds(-5.0, 5.0)
    between = [0.37 * i % 5 for i in range(60)] + [1 + 3 * 2.0**-29] * 60
    rows = [(x, True, "a", 1) for x in (2.0, 7.0, None, *between)]
    statistics = statistics_for(layout, bounds)
    found = integers(layout, rows, statistics)
    wrong = [n for n, s in statistics.items() if found[n] != expected(layout, rows, n, s, bounds)]
    assert {"total", "simplex 1", "simplex 2", "centred"} <= set(wrong)
    assert "rows" not in wrong
