"""How far quantiles miss, in ranks, next to textbook ways at the same price: ``python -m tests.benchmarks.bench_quantiles``.

Root mean square over 200 releases (60 for percentiles) of skewed values on 4096 points, pure epsilon 0.1, 20,000 values.
The textbook ways use numpy's noise: they are drawn here for comparison only.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpframe._expr import Column
from dpframe._groups.unit import Unit
from dpframe._statistics.base import Grid
from dpframe._statistics.order import Ranks, Tree, distribution, read_quantile
from dpframe._validate import Bounds
from dpframe.mechanisms.noise import LaplaceNoise
from dpframe.mechanisms.selection import NoisyMax

POINTS, VALUES, EPSILON = 4096, 20_000, Fraction(1, 10)
LEVELS = {
    "1 (median)": [Fraction(1, 2)],
    "3 (quartiles)": [Fraction(i, 4) for i in (1, 2, 3)],
    "8": [Fraction(i, 10) for i in range(1, 9)],
    "9 (deciles)": [Fraction(i, 10) for i in range(1, 10)],
    "99 (percentiles)": [Fraction(i, 100) for i in range(1, 100)],
}
RNG = np.random.default_rng(3)


def misses(levels: Sequence[Fraction], releases: int) -> list[float]:
    """By choice, tree, exponential mechanism and histogram."""
    x = np.clip(RNG.lognormal(0, 1, VALUES) / 12, 0, 1)
    counts = np.bincount((x * (POINTS - 1)).astype(int), minlength=POINTS)
    up_to = np.cumsum(counts)
    below, above = up_to - counts, VALUES - up_to
    column, grid = Column.of(0, "x", np.dtype("float64")), Grid(Bounds(0.0, POINTS - 1.0), 0)
    ranks, tree = Ranks(column, grid, tuple(levels)), Tree(column, grid)
    scores, nodes = (s.integers({s.primitives[0]: counts[:, None]}) for s in (ranks, tree))
    chooser = NoisyMax.for_price(ranks.sensitivity(Unit(), False).l1, EPSILON)
    noise = LaplaceNoise.for_price(tree.sensitivity(Unit(), False).l1, EPSILON)
    edges = np.linspace(0, POINTS, 102)
    coarse = np.histogram(np.repeat(np.arange(POINTS), counts), edges)[0]
    found: list[list[float]] = [[], [], [], []]

    def note(way: int, place: int, q: float) -> None:
        found[way].append(max(0.0, below[place] - q * VALUES, above[place] - (1 - q) * VALUES))

    shares = [float(q) for q in levels]
    for _ in range(releases):
        for place, q in zip(np.sort(chooser.release(scores)[:, 0]), shares, strict=True):
            note(0, int(place), q)
        estimate = distribution(noise.release(nodes), POINTS)
        sums = np.r_[0, np.cumsum(coarse + RNG.laplace(0, float(1 / EPSILON), len(coarse)))]
        sums = np.maximum.accumulate(sums)
        for q in shares:
            note(1, int(read_quantile(estimate, q)[0]), q)
            utility = -np.abs(below - q * VALUES) * float(EPSILON) / (2 * len(levels))
            weights = np.exp(utility - utility.max())
            note(2, int(RNG.choice(POINTS, p=weights / weights.sum())), q)
            note(3, int(min(POINTS - 1, np.interp(q * sums[-1], sums, edges))), q)
    return [float(np.sqrt(np.mean(np.square(one)))) for one in found]


if __name__ == "__main__":
    print(f"{'levels':<20}{'choice':>10}{'tree':>10}{'exponential':>14}{'histogram':>12}")
    for name, levels in LEVELS.items():
        choice, tree, textbook, histogram = misses(levels, 200 if len(levels) < 20 else 60)
        print(f"{name:<20}{choice:>10.0f}{tree:>10.0f}{textbook:>14.0f}{histogram:>12.0f}")
