"""Order statistics, measured: the loss of a choice, the promise in ranks, the intervals of a tree, and the error.

Twins that must fail: twice the rate, half the promise, intervals for a quarter of the noise.
"""

from __future__ import annotations

import math
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

from dpframe._expr import Column
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import AGGREGATES, Measured, Output
from dpframe._questions.question import Query
from dpframe._statistics.base import Grid
from dpframe._statistics.order import Ranks, deviations, distribution, list_level_sizes
from dpframe._validate import Bounds
from dpframe.accounting._filter import Price
from dpframe.mechanisms.selection import NoisyMax
from tests.internals import make_plan
from tests.statistical.bounds import loss_bound

X = Column.of(0, "x", np.dtype("int64"))
UNITS = {"add-remove": Unit("add-remove"), "replace-one": Unit("replace-one")}


@pytest.fixture
def share(full):
    """How many draws, in units of a short run."""
    return 5 if full else 1


def scores(statistic: Ranks, counts: list[int]) -> Any:
    return statistic.integers({statistic.primitives[0]: np.array(counts)[:, None]})


def draws(noise: NoisyMax, one: Any, n: int) -> Any:
    """n independent choices: as many groups with the same scores."""
    return noise.release(np.repeat(one, n, axis=2)).T


# Privacy -------------------------------------------------------------------------------------------------------

PAIRS = {
    "a row at the top": ("add-remove", [6, 0, 6], [6, 0, 7]),
    "a row at the bottom": ("add-remove", [6, 0, 6], [7, 0, 6]),
    "from bottom to top": ("replace-one", [7, 0, 6], [6, 0, 7]),
}


@pytest.mark.parametrize("levels", [(F(1, 2),), (F(99, 100),), (F(1, 4), F(3, 4))], ids=str)
@pytest.mark.parametrize("pair", PAIRS)
def test_choices_lose_no_more_than_was_paid_and_at_twice_the_rate_more(pair, levels, share):
    relation, one, two = PAIRS[pair]
    statistic = Ranks(X, Grid(Bounds(0.0, 2.0), 0), levels)
    noise = NoisyMax.for_price(statistic.sensitivity(UNITS[relation], False).l1, F(1))
    found = [draws(noise, scores(statistic, c), 60_000 * share) for c in (one, two)]
    assert loss_bound(*found) <= 1
    if levels == (F(1, 2),):
        loud = NoisyMax(noise.rate * 3)
        assert loss_bound(*(draws(loud, scores(statistic, c), 60_000) for c in (one, two))) > 1


def exact_loss(one: Any, two: Any, rate: float) -> float:
    """The loss of a choice among few points, from the chances in closed form (docs/guarantees/noisy-max.md)."""

    def chances(s: Any) -> list[float]:
        found = []
        for i, own in enumerate(s):
            ahead = [x - own for j, x in enumerate(s) if j != i]
            top = max(0, *ahead)
            found.append(
                sum(
                    (-1) ** bin(m).count("1")
                    * math.exp(
                        rate
                        * (
                            sum(a for k, a in enumerate(ahead) if m >> k & 1)
                            - (1 + bin(m).count("1")) * top
                        )
                    )
                    / (1 + bin(m).count("1"))
                    for m in range(2 ** len(ahead))
                )
            )
        return found

    return max(abs(math.log(a / b)) for a, b in zip(chances(one), chances(two), strict=True))


def test_the_loss_of_a_median_of_all_small_frames_is_at_most_the_price():
    statistic = Ranks(X, Grid(Bounds(0.0, 2.0), 0), (F(1, 2),))
    rate = 1 / statistic.sensitivity(UNITS["add-remove"], False).l1
    worst = 0.0
    for counts in np.ndindex(4, 4, 4):
        for place in range(3):
            more = [c + (i == place) for i, c in enumerate(counts)]
            pair = (scores(statistic, list(c))[0, :, 0].tolist() for c in (counts, more))
            worst = max(worst, exact_loss(*pair, rate))
    assert 0.6 < worst <= 1 + 1e-9


# Accuracy ------------------------------------------------------------------------------------------------------

SHAPES = {
    "spread": np.full(400, 25),
    "skewed": np.bincount(
        np.minimum(np.random.default_rng(2).exponential(30, 10_000), 399).astype(int), minlength=400
    ),
    "tied": np.where(np.isin(np.arange(400), (17, 300)), 5_000, 0),
    "few": np.where(np.arange(400) % 40 == 7, 1, 0),
}


def missed(counts: Any, chosen: Any, q: float) -> Any:
    """By how many ranks a point is not the quantile."""
    up_to = np.cumsum(counts)
    n = up_to[-1]
    return np.maximum(
        0, np.maximum((up_to - counts)[chosen] - q * n, (n - up_to)[chosen] - (1 - q) * n)
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("q", [F(1, 2), F(9, 10)])
def test_a_choice_keeps_its_promise_in_ranks(shape, q, share):
    out = Output("x", "quantile", X, Bounds(0.0, 399.0), level=q)
    plan, (statistic, _) = make_plan(Query((out,)), UNITS["add-remove"], Price(F(1, 20)))
    chosen = draws(plan.parts[0].noise, scores(statistic, SHAPES[shape]), 2_000 * share)[:, 0]
    misses = missed(SHAPES[shape], chosen, float(q))
    assert (misses <= plan.worst_error()).mean() >= 0.95
    if shape == "spread":
        assert (misses <= plan.worst_error() / 20).mean() < 0.95


@pytest.mark.parametrize("shape", SHAPES)
def test_median_is_never_worse_than_the_exponential_mechanism(shape, share):
    """The textbook's score is minus the distance of ranks below, of sensitivity 1: weights exp(-epsilon |B - n/2| / 2)."""
    counts, epsilon, n = SHAPES[shape], 0.2, 4_000 * share
    statistic = Ranks(X, Grid(Bounds(0.0, 399.0), 0), (F(1, 2),))
    noise = NoisyMax.for_price(statistic.sensitivity(UNITS["add-remove"], False).l1, F(1, 5))
    ours = missed(counts, draws(noise, scores(statistic, counts), n)[:, 0], 0.5)
    below = np.cumsum(counts) - counts
    score = -np.abs(below - counts.sum() / 2)
    weights = np.exp(epsilon * (score - score.max()) / 2)
    theirs = missed(counts, np.random.default_rng(1).choice(400, n, p=weights / weights.sum()), 0.5)
    ours_rms, theirs_rms = (np.sqrt((m**2).mean()) for m in (ours, theirs))
    assert ours_rms <= theirs_rms * 1.05 + 0.05
    if shape == "spread":
        assert ours_rms < theirs_rms / 1.4


@pytest.mark.parametrize("unit", ["laplace", "gaussian"])
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_of_a_tree_cover_the_quantile(shape, unit, share):
    counts = SHAPES[shape]
    out = Output("x", "tree", X, Bounds(0.0, 399.0), level=F(3, 10))
    price = Price(F(1)) if unit == "laplace" else Price(F(1), mu_squared=F(1), mechanism="gaussian")
    plan, (statistic,) = make_plan(Query((out,)), UNITS["add-remove"], price)
    assert plan.mechanism == unit
    n = 1_500 * share
    exact = statistic.integers({statistic.primitives[0]: np.repeat(counts[:, None], n, axis=1)})
    noise = plan.parts[0].noise
    raw = noise.release(exact)
    entry, cell = AGGREGATES["tree"], plan.cells[0]
    low, high = entry.interval(Measured(cell, noise, raw), 0.95)
    answers = entry.value(Measured(cell, noise, raw))
    truth = int((np.cumsum(counts) >= 0.3 * counts.sum()).argmax())
    assert ((low <= truth) & (truth <= high)).mean() >= 0.94
    assert ((low <= answers) & (answers <= high)).all()
    if shape == "spread":
        low, high = entry.interval(Measured(cell, _quartered(noise), raw), 0.95)
        assert ((low <= truth) & (truth <= high)).mean() < 0.94


def _quartered(noise: Any) -> Any:
    if hasattr(noise, "variance"):
        return type(noise)(noise.variance / 16)
    return type(noise)(noise.scale / 4)


@pytest.mark.parametrize("points", [1, 2, 16, 17, 111, 300])
def test_deviations_of_a_tree_are_those_of_least_squares(points):
    """Against the covariance of the least-squares solution, from its matrix."""
    sizes = list_level_sizes(points)
    rows, leaf = [], np.arange(points)
    for level, size in enumerate(sizes):
        rows.append((leaf // 16**level == np.arange(size)[:, None]).astype(float))
    design = np.concatenate(rows)
    covariance = np.linalg.inv(design.T @ design)
    prefix = np.tril(np.ones((points, points)))
    noisy = np.random.default_rng(3).normal(size=(len(design), 2)) * 10
    assert np.allclose(distribution(noisy, points), prefix @ covariance @ design.T @ noisy)
    for q in (0.0, 0.3, 1.0):
        weights = prefix - q
        wanted = np.sqrt(np.einsum("ij,jk,ik->i", weights, covariance, weights).clip(0))
        assert np.allclose(deviations(points, q), wanted, atol=1e-6)
