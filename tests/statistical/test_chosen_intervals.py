"""Intervals of chosen quantiles, measured: they cover the quantile, and nobody calls noise reliable.

The interval of a choice is read off counts around it. Twins that must fail: an interval that ignores the noise of
these counts, and a price that leaves them out.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpframe._expr import Column
from dpframe._groups.unit import Unit
from dpframe._plans import order as order_module
from dpframe._plans import plan as plan_module
from dpframe._plans.aggregates import AGGREGATES, Output
from dpframe._plans.plan import get_noisy_sums
from dpframe._questions.question import Query
from dpframe._statistics.order import place_edges
from dpframe._validate import Bounds
from dpframe.accounting._filter import Price
from dpframe.mechanisms.selection import NoisyMax
from tests.internals import make_plan

X = Column.of(0, "x", np.dtype("int64"))
UNITS = {"add-remove": Unit("add-remove"), "replace-one": Unit("replace-one")}
POINTS = 256
LEVEL = 0.95
SHAPES = {
    "smooth": np.full(POINTS, 8),
    "skewed": np.bincount(
        np.minimum(np.random.default_rng(2).exponential(12, 2_000), POINTS - 1).astype(int),
        minlength=POINTS,
    ),
    "tied": np.where(np.isin(np.arange(POINTS), (17, 200)), 1_000, 0),
    "one value": np.where(np.arange(POINTS) == 40, 2_000, 0),
    "tiny": np.where(np.arange(POINTS) % 40 == 7, 1, 0),
    "empty": np.zeros(POINTS, dtype=int),
}
ASKED = {
    "median": (F(1, 2),),
    "quartiles": (F(1, 4), F(1, 2), F(3, 4)),
    "least": (F(1, 100),),
    "box": (F(1, 100), F(1, 4), F(1, 2), F(3, 4), F(99, 100)),
}


@pytest.fixture
def runs(full):
    return 2_000 if full else 250


def release(shape: str, levels: tuple[F, ...], epsilon: F, relation: str, runs: int) -> Any:
    """As many independent releases as groups, of the same counts: the plan and its integers."""
    outputs = [Output(str(q), "quantile", X, Bounds(0.0, POINTS - 1.0), level=q) for q in levels]
    plan, statistics = make_plan(Query(tuple(outputs)), UNITS[relation], Price(epsilon))
    counts = {statistics[0].primitives[0]: np.repeat(SHAPES[shape][:, None], runs, axis=1)}
    released: list[Any] = []
    for part, statistic in zip(plan.parts, statistics, strict=True):
        released.append(part.noise.release(statistic.integers_after(counts, released)))
    return plan, tuple(released)


def quantiles_of(shape: str, q: F) -> tuple[int, int]:
    """The least and the greatest point that is a quantile."""
    up_to = np.cumsum(SHAPES[shape])
    n = int(up_to[-1])
    places = [
        v
        for v in range(POINTS)
        if up_to[v] - SHAPES[shape][v] <= q * n and n - up_to[v] <= (1 - q) * n
    ]
    return places[0], places[-1]


def wilson(hits: int, runs: int, risk: float = 1e-4) -> tuple[float, float]:
    """Wilson's interval for a probability."""
    z = float(stats.norm.isf(risk / 2))
    middle = (hits + z * z / 2) / (runs + z * z)
    half = z / (runs + z * z) * math.sqrt(hits * (runs - hits) / runs + z * z / 4)
    return middle - half, middle + half


def count_hits(plan: Any, raw: Any, place: int, shape: str, level: float = LEVEL) -> int:
    cell = plan.cells[place]
    low, high = AGGREGATES["quantile"].interval(get_noisy_sums(plan, raw, cell), level)
    truths = quantiles_of(shape, F(cell.name))
    return min(int(((low <= truth) & (truth <= high)).sum()) for truth in truths)


@pytest.mark.slow(but=8)
@pytest.mark.parametrize("relation", UNITS)
@pytest.mark.parametrize("epsilon", [F(1, 20), F(1, 4), F(1)], ids=str)
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_of_choices_cover_the_quantiles(shape, asked, epsilon, relation, runs):
    plan, raw = release(shape, ASKED[asked], epsilon, relation, runs)
    for place in range(len(plan.cells)):
        assert wilson(count_hits(plan, raw, place, shape), runs)[1] >= LEVEL


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("of", ["noise", "population"])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 8.0])
@pytest.mark.parametrize("n", [3, 60, 800])
def test_intervals_in_groups_cover_the_quantiles(n, epsilon, of, runs):
    """Each group is a run with rows of its own."""
    values = np.random.default_rng(n).integers(0, 64, (runs, n)) ** 2 // 64
    frame = pd.DataFrame({"x": values.ravel(), "run": np.repeat(np.arange(runs), n)})
    p = frame.dp.open(1000, bounds={"x": (0, 63)}, keys={"run": range(runs)})
    answer = p.groupby("run")["x"].quantile([0.25, 0.5, 0.75], epsilon=epsilon)
    ends = answer.dp.interval(LEVEL, of=of)
    for q in (0.25, 0.5, 0.75):
        truth: Any = np.sort(values, axis=1)[:, math.ceil(q * n) - 1]
        if of == "population":
            truth = int(math.ceil(q * 64) - 1) ** 2 // 64
        found = ends.xs(q, level=1)
        hits = int(((found["lower"] <= truth) & (truth <= found["upper"])).sum())
        assert wilson(hits, runs)[1] >= LEVEL


def test_an_interval_that_ignores_the_noise_of_the_counts_does_not_cover(runs):
    """The twin: the counts taken for exact."""
    plan, raw = release("smooth", (F(1, 2),), F(1, 2), "add-remove", runs)
    assert wilson(count_hits(plan, raw, 0, "smooth"), runs)[1] >= LEVEL
    noise = plan.parts[1].noise
    quiet = replace(plan.parts[1], noise=type(noise)(noise.scale / 100))
    certain = replace(plan, parts=(plan.parts[0], quiet), _draft=None)
    assert wilson(count_hits(certain, raw, 0, "smooth"), runs)[1] < LEVEL


def test_an_interval_at_a_lower_level_is_no_wider_and_misses_more(runs):
    plan, raw = release("smooth", (F(1, 2),), F(1, 2), "add-remove", runs)
    m = get_noisy_sums(plan, raw, plan.cells[0])
    wide, narrow = (AGGREGATES["quantile"].interval(m, level) for level in (0.95, 0.5))
    assert (wide[0] <= narrow[0]).all()
    assert (narrow[1] <= wide[1]).all()
    assert (narrow[1] - narrow[0]).mean() < 0.8 * (wide[1] - wide[0]).mean()


@pytest.mark.parametrize("shape", ["smooth", "skewed", "one value"])
def test_intervals_are_as_narrow_as_the_counts_allow(shape, runs):
    """Half of the intervals hold a third of the values at most, and one value alone is found."""
    plan, raw = release(shape, (F(1, 2),), F(1), "add-remove", runs)
    m = get_noisy_sums(plan, raw, plan.cells[0])
    low, high = (end.astype(int) for end in AGGREGATES["quantile"].interval(m, LEVEL))
    up_to = np.concatenate([[0], np.cumsum(SHAPES[shape])])
    inside = up_to[high] - up_to[np.minimum(low + 1, high)]
    assert np.median(inside) <= up_to[-1] / 3
    if shape == "one value":
        assert ((low == 40) & (high == 40)).mean() > 0.9


@pytest.mark.slow(but=1)
def test_the_noise_around_a_choice_does_not_cover_the_quantile_of_the_population(runs):
    """The twin without the error of the sample."""
    values = np.random.default_rng(5).integers(0, 1000, (runs, 800))
    frame = pd.DataFrame({"x": values.ravel(), "run": np.repeat(np.arange(runs), 800)})
    p = frame.dp.open(1000, bounds={"x": (0, 999)}, keys={"run": range(runs)})
    answer = p.groupby("run")["x"].median(epsilon=60, resolution=1)
    covered = {}
    for of in ("noise", "population"):
        ends = answer.dp.interval(LEVEL, of=of)
        hits = int(((ends["lower"] <= 499.5) & (ends["upper"] >= 499.5)).sum())
        covered[of] = wilson(hits, runs)[1] >= LEVEL
    assert covered == {"noise": False, "population": True}


# What is called reliable -------------------------------------------------------------------------------------


@pytest.mark.slow(but=4)
@pytest.mark.parametrize("n", [0, 1, 3, 10, 30])
@pytest.mark.parametrize("asked", [0.01, 0.5, 0.99, [0.25, 0.5, 0.75]], ids=str)
@pytest.mark.filterwarnings("ignore::dpframe.PrivacyWarning")
def test_quantiles_of_too_few_rows_are_never_called_reliable(n, asked, runs):
    """Where the choice may miss by all ranks, at most one in twenty is left unmarked, and near to none."""
    values = np.random.default_rng(7).integers(0, 1000, n)
    frame = pd.DataFrame({"x": np.tile(values, runs), "run": np.repeat(np.arange(runs), n)})
    p = frame.dp.open(1000, bounds={"x": (0, 1000)}, keys={"run": range(runs)})
    answer = p.groupby("run")["x"].quantile(asked, epsilon=0.25)
    assert answer.dp.ranks() > n / 2
    unmarked = int(answer.dp.reliable.sum())
    assert wilson(unmarked, len(answer))[0] <= 0.05


def test_quantiles_of_enough_rows_are_called_reliable(runs):
    frame = pd.DataFrame({"x": np.tile(np.arange(1000), 8), "run": np.repeat(np.arange(8), 1000)})
    p = frame.dp.open(1000, bounds={"x": (0, 1000)}, keys={"run": range(8)})
    assert p.groupby("run")["x"].quantile([0.25, 0.5, 0.75], epsilon=2).dp.reliable.all()


# The price -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", UNITS)
@pytest.mark.parametrize("asked", ASKED)
def test_a_choice_errs_by_a_fifteenth_more_than_the_whole_price_would_buy(asked, relation):
    levels = ASKED[asked]
    outputs = [Output(str(q), "quantile", X, Bounds(0.0, POINTS - 1.0), level=q) for q in levels]
    plan, (ranks, around) = make_plan(Query(tuple(outputs)), UNITS[relation], Price(F(1, 4)))
    moved, counted = (s.sensitivity(UNITS[relation], False).l1 for s in (ranks, around))
    whole = NoisyMax.for_price(moved, F(1, 4))
    assert plan.parts[0].noise.scale / whole.scale == F(16, 15) <= F(115, 100)
    assert plan.parts[0].noise.rate * moved + counted / plan.parts[1].noise.scale == F(1, 4)


def test_counts_that_are_not_paid_are_noticed(monkeypatch):
    """The twin: the choice takes the whole price, and the counts come on top."""
    monkeypatch.setattr(plan_module, "_divide_price", lambda arranged: (F(1), F(1, 16)))
    monkeypatch.setattr(plan_module, "_DRAFTS", {})
    out = Output("x", "quantile", X, Bounds(0.0, POINTS - 1.0), level=F(1, 2))
    plan, _ = make_plan(Query((out,)), UNITS["add-remove"], Price(F(1, 4)))
    paid = (
        plan.parts[0].noise.rate * plan.parts[0].l1 + plan.parts[1].l1 / plan.parts[1].noise.scale
    )
    assert paid > plan.loss.epsilon


# Edges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [1, 2, 3, 17, 256])
@pytest.mark.parametrize("many", [1, 3])
def test_edges_lie_around_the_choices_and_enclose_the_grid(points, many):
    chosen = np.random.default_rng(1).integers(0, points, (many, 50))
    edges = place_edges(chosen, points)
    assert (np.diff(edges, axis=0) >= 0).all()
    assert (edges[0] == 0).all()
    assert (edges[-1] == points).all()
    for column, places in zip(chosen.T, edges.T, strict=True):
        for v in column:
            for distance in (0, 1, 3, 9, 27):
                assert {max(v - distance, 0), min(v + 1 + distance, points)} <= set(places) | {
                    p for p in (v - distance, v + 1 + distance) if distance >= points
                }


def test_counts_between_equal_edges_are_not_used(monkeypatch):
    """Their truth is zero, so their noise would only widen the interval."""
    plan, raw = release("smooth", (F(0),), F(1), "add-remove", 50)
    cell = plan.cells[0]
    m = get_noisy_sums(plan, raw, cell)
    edges = order_module._list_edges(m)
    loud = raw[1] + np.where(np.diff(edges, axis=0) == 0, 10**6, 0)
    same = AGGREGATES["quantile"].interval(get_noisy_sums(plan, (raw[0], loud), cell), LEVEL)
    found = AGGREGATES["quantile"].interval(m, LEVEL)
    assert np.array_equal(same, found)
