"""What an adversary gains who picks each bounded-range pair as the session goes, by value iteration, rounded up.

An exponential mechanism of range epsilon is dominated by no one pair, but at each step by one of the pairs of losses
{t, t - epsilon}, 0 <= t <= epsilon, of P-probabilities p_t = (1 - e**(t - epsilon)) / (1 - e**-epsilon) and 1 - p_t
(Dong, Durfee and Rogers 2020). Whoever picks t from the losses so far reaches

    V_j(s) = sup_t p_t V_{j-1}(s - t) + (1 - p_t) V_{j-1}(s - t + epsilon),   V_0(s) = (1 - e**s)+,

after j steps, s being the threshold that is left; V_j is a sup of curves of pairs, so it is convex and falling in e**s. It
is kept on a grid, between the points of which chords lie above it. The sup is covered, not sampled: cell by cell of t the
chords' own maximum is taken, in closed form. Of several ranges the adversary also picks the order, so the state counts
what is left of each range, and V is the maximum over the next range to be used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting._pld_atoms import ULP

Floats = NDArray[np.float64]


class Value(NamedTuple):
    """V at start + i h, and bounds of it elsewhere."""

    start: float
    h: float
    at: Floats

    def __call__(self, s: Floats) -> Floats:
        place = (s - self.start) / self.h
        i = np.clip(np.floor(place), 0, len(self.at) - 2).astype(np.int64)
        step = np.expm1(np.clip(s - (self.start + i * self.h), 0.0, self.h)) / math.expm1(self.h)
        inside = self.at[i] + (self.at[i + 1] - self.at[i]) * step
        left = 1 - (1 - self.at[0]) * np.exp(np.minimum(s - self.start, 0.0))
        found: Floats = np.where(s < self.start, left, inside) * (1 + 1e-15)
        return found


def _cuts(m: int, near: float, far: float) -> list[int]:
    """Ends of cells of [0, m]: single steps where the best t lies, then as wide as they are far away."""
    low, high = max(0, math.floor(near) - 1), min(m, math.ceil(far) + 1)
    cuts = list(range(low, high + 1))
    while cuts[0] > 0:
        cuts.insert(0, max(0, cuts[0] - max(1, int(0.5 * (near - cuts[0])))))
    while cuts[-1] < m:
        cuts.append(min(m, cuts[-1] + max(1, int(0.5 * (cuts[-1] - far)))))
    return cuts


def _steer(values: Floats, h: float, m: int, cuts: Sequence[int]) -> Floats:
    """sup over t in [0, m h] of p_t V(s - t) + (1 - p_t) V(s - t + m h), or more, at every s of the grid.

    On a cell of t both values are below chords in e**-t, so the sum is B(a) + p(a) D(a) with B and D linear in the
    chord's a in [0, 1], and its one stationary point is known. V outside the grid: 1 at e**s = 0, and falling.
    """
    n, reach = len(values), m * h
    left = 1 - (1 - values[0]) * np.exp(-h * np.arange(m, 0, -1))
    padded = np.concatenate((left, values, np.full(m, values[-1])))
    c = np.array(cuts)
    down = np.stack([padded[m - i : m - i + n] for i in cuts])
    up = np.stack([padded[2 * m - i : 2 * m - i + n] for i in cuts])
    scale = -math.expm1(-reach)
    p = (-np.expm1(c * h - reach) / scale)[:, None]
    gap = down - up
    best: Floats = np.max(up + p * gap, axis=0)
    shrink = -np.expm1(-np.diff(c) * h)[:, None]
    beta = (np.exp(c[:-1] * h - reach) / scale)[:, None]
    rise, bend, gap, up, p = np.diff(up, axis=0), np.diff(gap, axis=0), gap[:-1], up[:-1], p[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        fall = (rise + p * bend - beta * shrink * gap) / (
            rise + bend / scale
        )  # 1 - y**2 at the stationary point
        a = fall / (1 + np.sqrt(np.maximum(1 - fall, 0.0))) / shrink
    a = np.clip(np.nan_to_num(a), 0.0, 1.0)
    p = p - beta * a * shrink / (1 - a * shrink)
    found: Floats = np.maximum(best, np.max(up + a * rise + p * (gap + a * bend), axis=0))
    return found


_WORK = 2e9  # element operations that a value iteration may take: one to three seconds


def _best_shift(reach: float, theta: float) -> float:
    """The t that maximises p_t e**(theta t) + (1 - p_t) e**(theta (t - reach)): where the adversary plays."""
    top = theta * -math.expm1(-(1 + theta) * reach)
    found = math.log(top / (-math.expm1(-theta * reach) * (1 + theta))) + reach
    return min(max(found, reach / 2), reach)


def _grid(
    ranges: tuple[tuple[float, int], ...], width: float, theta: float
) -> tuple[float, list[int], list[list[int]]]:
    """The finest grid that _WORK allows: its step, each range in steps (rounded up), and the cells of its t."""
    steps = math.prod(c + 1 for _, c in ranges) * len(ranges)
    widest = ranges[-1][0]
    for m in (256, 128, 64, 32, 16, 8, 4):
        h = widest / m * (1 + 8 * ULP)
        sizes = [max(1, math.ceil(e / h)) for e, _ in ranges]
        cuts = [
            _cuts(k, k / 2, _best_shift(e, 1.5 * theta) / h) for (e, _), k in zip(ranges, sizes, strict=True)
        ]
        work = steps * (2 * width / h * max(map(len, cuts)) * 20 + 2e5)
        if work <= _WORK * (1 if m > 8 else 3):
            return h, sizes, cuts
    return 0.0, [], []


@lru_cache(maxsize=64)
def adversary(ranges: tuple[tuple[float, int], ...], log_delta: float, theta: float) -> Value | None:
    """V after these (range, count), in whatever order an adversary picks as it goes; None if it would take long."""
    ranges = tuple(sorted(ranges))
    given = sum(c * e * e / 8 for e, c in ranges)
    if ranges[-1][0] > 300:
        return None  # nothing is left to bound, and exponentials would overflow
    while True:
        rho = sum(c * e * e / 8 for e, c in ranges)
        if rho > 1.1 * given:
            return None  # merged so far that Renyi's bound is no worse
        width = (
            min(sum(c * e for e, c in ranges), rho + 2 * math.sqrt(rho * (12 - log_delta))) + ranges[-1][0]
        )
        h, sizes, cuts = _grid(ranges, width, theta)
        if h:
            break
        if len(ranges) == 1:
            return None
        # A range is also any wider range: merge the closest two.
        i = min(range(len(ranges) - 1), key=lambda i: ranges[i + 1][0] / ranges[i][0])
        ranges = (*ranges[:i], (ranges[i + 1][0], ranges[i][1] + ranges[i + 1][1]), *ranges[i + 2 :])
    half = math.ceil(width / h)
    start = -half * h
    table = {(0,) * len(ranges): -np.expm1(h * np.minimum(np.arange(-half, half + 1), 0))}
    for state in itertools.product(*(range(c + 1) for _, c in ranges)):
        options = [
            _steer(table[(*state[:k], state[k] - 1, *state[k + 1 :])], h, sizes[k], cuts[k])
            for k in range(len(ranges))
            if state[k]
        ]
        if options:
            table[state] = np.maximum.reduce(options)
        table.pop((state[0] - 2, *state[1:]), None)
    uses = sum(c for _, c in ranges)
    return Value(start, h, np.minimum(table[state] * (1 + 4e-15 * uses), 1.0))
