"""The parts of numerical composition: discrete loss distributions above a pair, and what an
adversary gains by its choice.

*Atoms.* H is convex and falling in e**t, hence below the chords through any of its points, and a
sum of chords is the curve of a discrete loss distribution ("connect the dots": Doroshenko, Ghazi,
Kamath, Kumar and Manurangsi 2022). A point may be left out, a value may be too high and mass may be
added: all of these only raise the curve, so neither noise in H nor few points make it unsafe.
Masses may add up to a hair more than 1, which is why nothing here asks for probabilities.

*Ranges.* What is gained by picking each bounded-range pair as the session goes, by value iteration,
rounded up. An exponential mechanism of range epsilon is dominated by no one pair, but at each step
by one of the pairs of losses {t, t - epsilon}, 0 <= t <= epsilon, of P-probabilities p_t = (1 -
e**(t - epsilon)) / (1 - e**-epsilon) and 1 - p_t (Dong, Durfee and Rogers 2020). Whoever picks t
from the losses so far reaches

    V_j(s) = sup_t p_t V_{j-1}(s - t) + (1 - p_t) V_{j-1}(s - t + epsilon),   V_0(s) = (1 - e**s)+,

after j steps, s being the threshold that is left; V_j is a sup of curves of pairs, so it is convex
and falling in e**s. It is kept on a grid, between the points of which chords lie above it. The sup
is covered, not sampled: cell by cell of t the chords' own maximum is taken, in closed form. Of
several ranges the adversary also picks the order, so the state counts what is left of each range,
and V is the maximum over the next range to be used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.loss import Curve, Loss

Floats = NDArray[np.float64]
ULP = 2.0**-53


class Atoms(NamedTuple):
    """A discrete loss distribution: its values, the logarithms of their probabilities, and the
    probability of infinite loss."""

    at: Floats  # the values, as losses or as grid indices
    log_mass: Floats
    infinite: float

    def change(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return self._replace(**changes)


def _sample(
    curve: Callable[[Floats], Floats],
    levels: int,
    worth: Callable[[Floats, Floats, Floats, Floats], NDArray[np.bool_]],
    place: Callable[[Floats], Floats],
    first: int,
) -> tuple[Floats, Floats]:
    """Return points of a privacy curve, close together where it bends: node numbers and values.

    The line between two points, a chord, lies above the curve. It begins with ``first`` equal
    intervals. Those whose chord lies too far above the curve are halved, up to ``levels`` times.
    Nodes are numbered in units of the finest interval, and ``place`` maps their numbers to
    thresholds. ``worth(threshold, gap, excess, value)`` returns a mask of the intervals to halve:
    by their middle and its gap to the next node, and the excess of the chord over the value there.
    """
    nodes: Floats = np.arange(first + 1, dtype=np.float64) * float(1 << levels)
    values = curve(place(nodes))
    left: Floats
    left, a, b = nodes[:-1], values[:-1], values[1:]
    all_nodes, all_values = [nodes], [values]
    for level in range(levels - 1, -1, -1):
        middle: Floats = left + float(1 << level)
        c = curve(place(middle))
        gap = place(left + float(2 << level)) - place(left)
        weight = 1 / (1 + np.exp(np.minimum(gap / 2, 700.0)))
        keep = worth(place(middle), gap, a + (b - a) * weight - c, c)
        all_nodes.append(middle)
        all_values.append(c)
        left = np.concatenate((left[keep], middle[keep]))
        a, b = np.concatenate((a[keep], c[keep])), np.concatenate((c[keep], b[keep]))
        if not 0 < len(left) <= 1 << 20:  # chords over what is left are only looser
            break
    nodes, values = np.concatenate(all_nodes), np.concatenate(all_values)
    order = np.argsort(nodes)
    return nodes[order], np.clip(values[order], 0.0, 1.0)


def _connect(nodes: Floats, values: Floats, step: float) -> Atoms:
    """Return a discrete loss distribution whose privacy curve connects some points of a curve.

    Between the points it runs along chords: it is linear in e**t. ``nodes`` are the thresholds t in
    steps of ``step``, and ``values`` those of a falling convex curve.

    The probability at a point is by how much the slope changes there. ``rise`` is that slope, u
    dH/du with u = e**t, at the left end of each chord. A point with a negative probability lies
    above a chord of others, and is dropped. A few units in the last place are added for rounding.
    """
    values = np.minimum.accumulate(values)
    while True:
        drop = values[:-1] - values[1:]
        with np.errstate(over="ignore"):
            rise = drop / np.expm1(np.diff(nodes) * step)
        mass = np.concatenate(([1 - values[0]], drop))
        mass[:-1] -= rise
        mass[1:] += rise
        inner = mass[1:-1]
        inner[:] = (rise[:-1] - rise[1:]) + drop[:-1]
        bad = mass < 0
        if not bad.any() or len(nodes) < 3:
            break
        nodes, values = nodes[~bad], values[~bad]
    mass = np.maximum(mass, 0.0) * (1 + 8 * ULP)
    mass[1:] += 8 * ULP * drop
    mass[0] += 8 * ULP
    some = mass > 0
    return Atoms(nodes[some], np.log(mass[some]), float(values[-1]))


def curve_of(loss: Loss, side: int) -> Curve:
    """Return the privacy curve of a loss in one direction, raised by its rounding errors.

    ``side`` is 0 or 1 for the two directions. For a loss of bounded range it is a curve above any
    single use.
    """
    reach = loss.bounded_range
    if reach is None:
        curve = loss.curves[side if len(loss.curves) > 1 else 0]
        # Normal curves lose digits as they narrow: about 1e-15 / mu, and the support below is 76
        # mu.
        slack = 1e-13 + (
            1e-13 / max(curve.upper - curve.lower, 1e-6) if loss.epsilon is None else 0.0
        )
        return curve.change(delta=lambda t: curve.delta(t) * (1 + slack))

    def delta(t: Floats) -> Floats:
        inside = np.expm1((np.clip(t, -reach, reach) - reach) / 2) ** 2 / -math.expm1(-reach)
        return np.maximum(inside * (1 + 1e-13), -np.expm1(np.minimum(t, 0.0)))

    return Curve(delta, -reach, reach)


@lru_cache(maxsize=4096)
def sketch(loss: Loss, side: int) -> Atoms:
    """Return a coarse discrete loss distribution whose privacy curve lies above that of a loss.

    It has a few hundred atoms at any losses, enough to find scales and saddle points. ``side`` is 0
    or 1 for the two directions.
    """
    curve = curve_of(loss, side)
    step = max(curve.upper - curve.lower, 1e-300) / (32 << 26)

    def worth(t: Floats, gap: Floats, excess: Floats, value: Floats) -> NDArray[np.bool_]:
        """Return which intervals to halve: those where the chord adds noticeably to the curve."""
        above = value - np.maximum(-np.expm1(np.minimum(t, 0.0)), 0.0)
        # The chord decides and not the curve: in the middle of a wide interval the curve itself may
        # be 0.
        return (excess > 0.02 * above) & (excess > 1e-14 * value) & (excess > 1e-60)

    nodes, values = _sample(curve.delta, 26, worth, lambda i: curve.lower + i * step, 32)
    return _connect(curve.lower + nodes * step, values, 1.0)


def atoms_on_grid(curve: Curve, h: float, theta: float, log_scale: float, spare: float) -> Atoms:
    """Return a discrete loss distribution at multiples of ``h`` whose privacy curve lies above
    ``curve``.

    Points are close together where their chords would add an error that is seen: where the excess
    of a chord times its length exceeds exp(log_scale - theta t). Losses above the last point count
    as infinite. That point is moved until their probability is at most ``spare``, and nearly that.
    """
    top, low = curve.upper, curve.lower
    wide = max(top - low, h)
    for _ in range(40):
        if float(curve.delta(np.array([top]))[0]) <= spare:
            break
        top += wide / 4
    bottom = low
    for _ in range(4):
        ladder = np.linspace(bottom, top, 65)
        enough = np.flatnonzero(curve.delta(ladder) <= spare)
        if not len(enough) or enough[0] == 0:
            break
        bottom, top = float(ladder[enough[0] - 1]), float(ladder[enough[0]])
    start = math.floor(low / h)
    span = max(1, math.ceil(top / h) - start)
    levels = max(0, math.ceil(math.log2(span / 32)))
    first = -(-span // (1 << levels))

    def place(i: Floats) -> Floats:
        t = (i + start) * h
        return t - 2 * ULP * np.abs(
            t
        )  # the curve is read a hair to the left of the node: from above

    def worth(t: Floats, gap: Floats, excess: Floats, value: Floats) -> NDArray[np.bool_]:
        """Return which intervals to halve: those whose chord adds more than the tilted
        tolerance."""
        real = excess > 4 * ULP * value
        with np.errstate(divide="ignore"):
            size = np.log(np.where(real, excess, 0.0)) + np.log(gap) + theta * (t + gap / 2)
        return size > log_scale

    nodes, values = _sample(curve.delta, levels, worth, place, first)
    atoms = _connect(nodes, values, h)
    return atoms.change(at=atoms.at + start)


def cut(atoms: Atoms, spare: float) -> Atoms:
    """Return the same discrete losses with the highest ones made infinite.

    Their probabilities add up to at most ``spare``. A grid then needs no room for rare large
    losses.
    """
    above = np.cumsum(np.exp(atoms.log_mass[::-1]))[::-1] * (1 + 1e-12)
    m = max(1, int(np.searchsorted(-above, -spare)))
    lost = float(above[m]) if m < len(above) else 0.0
    return Atoms(atoms.at[:m], atoms.log_mass[:m], atoms.infinite + lost)


@np.errstate(all="ignore")  # whatever the caller's numpy does with tiny numbers
def moment(x: Floats, log_mass: Floats, theta: Floats) -> Floats:
    """Return the log of the sum of mass * e**(theta x), for each theta, without overflow.

    ``x`` are the values of a discrete distribution, and ``log_mass`` the logs of their
    probabilities.
    """
    terms = np.multiply.outer(theta, x) + log_mass
    top = terms.max(axis=1)
    log_moments: Floats = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
    return log_moments


# Ranges ---------------------------------------------------------------------------------------------------------------


class GameValue(NamedTuple):
    """The value V of the adversary's game at thresholds on a grid, with bounds of it elsewhere."""

    start: float  # the first threshold of the grid
    step: float  # between two thresholds of the grid
    values: Floats  # V at the thresholds start + i step

    def __call__(self, s: Floats) -> Floats:
        """Return an upper bound on what the adversary can gain at these thresholds s."""
        place = (s - self.start) / self.step
        i = np.clip(np.floor(place), 0, len(self.values) - 2).astype(np.int64)
        beyond_point = np.clip(s - (self.start + i * self.step), 0.0, self.step)
        share = np.expm1(beyond_point) / math.expm1(self.step)
        inside = self.values[i] + (self.values[i + 1] - self.values[i]) * share
        before = 1 - (1 - self.values[0]) * np.exp(np.minimum(s - self.start, 0.0))
        bounds: Floats = np.where(s < self.start, before, inside) * (1 + 1e-15)
        return bounds


def _cuts(m: int, near: float, far: float) -> list[int]:
    """Return whole numbers that cut [0, m] into cells, with 0 and m.

    The shift that is best for an adversary lies from ``near`` to ``far``. Cells have length 1
    there. Elsewhere a cell is half as long as it is away from there.
    """
    low, high = max(0, math.floor(near) - 1), min(m, math.ceil(far) + 1)
    cuts = list(range(low, high + 1))
    while cuts[0] > 0:
        cuts.insert(0, max(0, cuts[0] - max(1, int(0.5 * (near - cuts[0])))))
    while cuts[-1] < m:
        cuts.append(min(m, cuts[-1] + max(1, int(0.5 * (cuts[-1] - far)))))
    return cuts


def _steer(values: Floats, h: float, m: int, cuts: Sequence[int]) -> Floats:
    """Return what an adversary can gain with one more choice of bounded range, rounded up, at every
    threshold s of a grid.

    A choice of range m h has one of the pairs of losses {t, t - m h}, 0 <= t <= m h. t has the
    probability p_t = (1 - e**(t - m h)) / (1 - e**(-m h)). The adversary picks t by what was
    released so far. ``values`` is the gain V without this choice, on a grid of step ``h``. The
    range is ``m`` steps, and ``cuts`` divide it into cells. The new value is the sup over t of p_t
    V(s - t) + (1 - p_t) V(s - t + m h).

    The sup is found cell by cell, and the largest is returned. On a cell both V are replaced by
    chords in e**-t, which lie above them. With a in [0, 1] for the position on the chord, the sum
    becomes B(a) + p(a) D(a) with linear B and D. It is largest at an end of the cell (``best``) or
    at its one stationary point, which is known in closed form. V to the left of the grid lies on
    the chord to 1 at e**s = 0, and V to its right is at most its last value.
    """
    n, reach = len(values), m * h
    # V(s - t) and V(s - t + m h) for each t in the cuts (rows) and each s (columns).
    left = 1 - (1 - values[0]) * np.exp(-h * np.arange(m, 0, -1))
    padded = np.concatenate((left, values, np.full(m, values[-1])))
    c = np.array(cuts)
    down = np.stack([padded[m - i : m - i + n] for i in cuts])
    up = np.stack([padded[2 * m - i : 2 * m - i + n] for i in cuts])
    scale = -math.expm1(-reach)
    p = (-np.expm1(c * h - reach) / scale)[:, None]  # p_t
    gap = down - up
    best: Floats = np.max(up + p * gap, axis=0)
    # Within each cell, by the chords: ``rise`` and ``bend`` are the changes of ``up`` and ``gap``.
    shrink = -np.expm1(-np.diff(c) * h)[:, None]
    beta = (np.exp(c[:-1] * h - reach) / scale)[:, None]
    rise, bend, gap, up, p = np.diff(up, axis=0), np.diff(gap, axis=0), gap[:-1], up[:-1], p[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        # At the stationary point a is (1 - sqrt(1 - fall)) / shrink. Both forms are equal, and the
        # one below loses no digits.
        fall = (rise + p * bend - beta * shrink * gap) / (rise + bend / scale)
        a = fall / (1 + np.sqrt(np.maximum(1 - fall, 0.0))) / shrink
    a = np.clip(np.nan_to_num(a), 0.0, 1.0)
    p = p - beta * a * shrink / (1 - a * shrink)
    largest: Floats = np.maximum(best, np.max(up + a * rise + p * (gap + a * bend), axis=0))
    return largest


_WORK = 2e9  # element operations that a value iteration may take: one to three seconds


def _best_shift(reach: float, theta: float) -> float:
    """Return the shift t at which an adversary gains most from a choice of bounded range.

    ``reach`` is the length of the range. The gain is measured by the exponential moment of order
    theta, p_t e**(theta t) + (1 - p_t) e**(theta (t - reach)), whose maximum has a closed form.
    """
    top = theta * -math.expm1(-(1 + theta) * reach)
    shift = math.log(top / (-math.expm1(-theta * reach) * (1 + theta))) + reach
    return min(max(shift, reach / 2), reach)


def _grid(
    ranges: tuple[tuple[float, int], ...], width: float, theta: float
) -> tuple[float, list[int], list[list[int]]]:
    """Return the finest grid for `adversary` that the limit on work allows: its step, and for each
    range its length in steps (rounded up) and the cells of its shift.

    ``ranges`` are pairs of a range and a count. Half the grid has to cover ``width``, and
    ``theta`` is the order at which the gain matters. The step is 0 if no grid is cheap enough.
    """
    steps = math.prod(c + 1 for _, c in ranges) * len(ranges)
    widest = ranges[-1][0]
    for m in (256, 128, 64, 32, 16, 8, 4):
        h = widest / m * (1 + 8 * ULP)
        sizes = [max(1, math.ceil(e / h)) for e, _ in ranges]
        cuts = [
            _cuts(k, k / 2, _best_shift(e, 1.5 * theta) / h)
            for (e, _), k in zip(ranges, sizes, strict=True)
        ]
        work = steps * (2 * width / h * max(map(len, cuts)) * 20 + 2e5)
        if work <= _WORK * (1 if m > 8 else 3):
            return h, sizes, cuts
    return 0.0, [], []


@lru_cache(maxsize=64)
def adversary(
    ranges: tuple[tuple[float, int], ...], log_delta: float, theta: float
) -> GameValue | None:
    """Return what an adversary can gain from choices of bounded range in any order, picked as the
    session goes.

    ``ranges`` are pairs of a range and a count. ``log_delta`` and ``theta`` say where the value
    matters, and so how wide the grid is. The ``table`` of the value iteration has V for each state:
    how many choices of each range are used so far. Ranges close to each other are merged if the
    grid would cost too much. Return None if it still would, or if Renyi's bound is no worse.
    """
    ranges = tuple(sorted(ranges))
    exact_rho = sum(c * e * e / 8 for e, c in ranges)
    if ranges[-1][0] > 300:
        return None  # nothing is left to bound, and exponentials would overflow
    while True:
        rho = sum(c * e * e / 8 for e, c in ranges)
        if rho > 1.1 * exact_rho:
            return None  # merged so far that Renyi's bound is no worse
        width = (
            min(sum(c * e for e, c in ranges), rho + 2 * math.sqrt(rho * (12 - log_delta)))
            + ranges[-1][0]
        )
        h, sizes, cuts = _grid(ranges, width, theta)
        if h:
            break
        if len(ranges) == 1:
            return None
        # A range is also any wider range: merge the closest two.
        i = min(range(len(ranges) - 1), key=lambda i: ranges[i + 1][0] / ranges[i][0])
        ranges = (
            *ranges[:i],
            (ranges[i + 1][0], ranges[i][1] + ranges[i + 1][1]),
            *ranges[i + 2 :],
        )
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
    return GameValue(start, h, np.minimum(table[state] * (1 + 4e-15 * uses), 1.0))
