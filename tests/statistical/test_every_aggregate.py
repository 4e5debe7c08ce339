"""Every aggregate of the catalogue: its interval covers what pandas computes, by cases computed from its entry.

An entry without a case fails, and so does one with an interval of width zero. These cases are small and run by default.
`test_intervals.py` has more of them, and looks at the width as well.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpframe._expr import Column
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import AGGREGATES, Measured, Output
from dpframe._questions.question import Query
from dpframe.engines.pandas import PandasEngine
from tests import aggregates
from tests.internals import make_plan
from tests.statistical.test_intervals import BOUNDS, FRAMES, LEVELS, SIZES, price_of

DRAWS = 600
FRAME = FRAMES["skewed"]
NAMES = [name for name in aggregates.measured_names() if name not in aggregates.ELSEWHERE]


def answers_and_truths(name: str, mechanism: str) -> tuple[Measured, list[float]]:
    """Return many releases of an aggregate in a group of each size, and the truth of each group."""
    leaves = {n: Column.of(i, n, FRAME.dtypes.iloc[i]) for i, n in enumerate(FRAME)}
    out = Output("answer", name, **aggregates.words_of(name, leaves, BOUNDS))
    by = KeyBy(leaves["g"], keys_for(range(len(SIZES)), leaves["g"], "g"))
    query = Query((out,), None, (by,))
    plan, (statistic,) = make_plan(query, Unit("add-remove"), price_of(mechanism, F(1)), None)
    (cell,), noise = plan.cells, plan.parts[0].noise
    if aggregates.has_truth(name):
        exact = statistic.integers(PandasEngine(FRAME).reduce(query, set(statistic.primitives)))
        clipped = aggregates.clip(FRAME, BOUNDS)
        groups = (clipped[clipped["g"] == group] for group in range(len(SIZES)))
        truths = [aggregates.truth_of(name, group) for group in groups]
    else:  # what counts without a method of pandas is the integer itself
        assert AGGREGATES[name].counts, f"say in TRUTHS what {name!r} is of clipped values"
        exact = np.full(statistic.shape(len(SIZES)), 40)
        truths = [40.0] * exact.shape[-1]
    return Measured(cell, noise, noise.release(np.repeat(exact, DRAWS, axis=-1))), truths


def misses(name: str, mechanism: str) -> list[str]:
    """Return the groups and levels at which the truth is covered less often than it should be."""
    m, truths = answers_and_truths(name, mechanism)
    slack = [1e-9 * (abs(truth) + 8) for truth in truths]  # the rounding of doubles
    found = []
    for level in LEVELS:
        low, high = (
            np.asarray(end, dtype=float).reshape(len(truths), DRAWS)
            for end in AGGREGATES[name].interval(m, level)
        )
        for group, truth in enumerate(truths):
            inside = (low[group] - slack[group] <= truth) & (truth <= high[group] + slack[group])
            hits = int(inside.sum())
            if not np.isnan(truth) and stats.binom.cdf(hits, DRAWS, level) < 1e-8:
                found.append(f"{name}, {SIZES[group]} rows: {hits / DRAWS:.3f} at {level}")
    return found


def test_each_measured_aggregate_has_a_coverage_case():
    for name in aggregates.measured_names():
        if name in aggregates.ELSEWHERE:
            assert aggregates.is_there(aggregates.ELSEWHERE[name]), aggregates.ELSEWHERE[name]
        else:
            assert aggregates.has_truth(name) or AGGREGATES[name].counts, (
                f"say in tests/aggregates.py what {name!r} is of clipped values"
            )


def test_each_aggregate_has_a_line_of_documentation():
    lines = [entry.doc for entry in AGGREGATES.values()]
    assert all(line.endswith(".") and "\n" not in line for line in lines)
    assert len({*lines}) == len(lines)


@pytest.mark.kept
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", NAMES)
def test_interval_of_each_aggregate_covers_the_truth(name, mechanism):
    assert not misses(name, mechanism)


# Broken twins ------------------------------------------------------------------------------------------------------


def add(monkeypatch: pytest.MonkeyPatch, name: str, **changes: Any) -> None:
    """Register a toy that is a copy of the mean, with some changes."""
    entry = replace(AGGREGATES["mean"], name=name, verbs=(), functions=(), **changes)
    monkeypatch.setitem(AGGREGATES, name, entry)


def test_interval_of_width_zero_is_seen(monkeypatch):
    def no_width(m: Measured, level: float) -> Any:
        value = AGGREGATES["mean"].value(m)
        return value, value

    add(monkeypatch, "toy", interval=no_width)
    assert misses("toy", "laplace")
    assert misses("toy", "gaussian")


def test_interval_of_half_the_width_is_seen(monkeypatch):
    def half(m: Measured, level: float) -> Any:
        low, high = AGGREGATES["mean"].interval(m, level)
        return (3 * low + high) / 4, (low + 3 * high) / 4

    add(monkeypatch, "toy", interval=half)
    assert misses("toy", "laplace")


def test_aggregate_without_a_truth_is_seen(monkeypatch):
    add(monkeypatch, "toy", pandas="")
    with pytest.raises(AssertionError, match="toy"):
        test_each_measured_aggregate_has_a_coverage_case()


def test_sound_twin_passes(monkeypatch):
    add(monkeypatch, "toy")
    assert not misses("toy", "laplace")
