"""One step of the residue filter: what is left of a Gaussian budget after an event
(docs/guarantees/residue.md).

A budget is a remaining mu > 0. An event with dominating pair D may happen if some mu' >= 0 has D x
G(mu') <= G(mu), hockey-stick curve below curve at every real threshold, where G(mu) is N(mu, 1)
against N(0, 1); mu' is what remains. Each function here returns such a mu', as large as it can
certify, or None.

Formal guarantee: every mu' returned satisfies the inequality at all real thresholds, rounding
included. A session that starts at mu, replaces mu by the mu' of each event before it happens, and
ends when no mu is left, is dominated by G(mu), however the events are chosen (theorem 1 of the
page).

For `after_pure`, which losses fall back on, the threshold 0 decides (theorem 2). The others use a
certificate that an event turns no more than one Gaussian budget into another (theorem 3). Let W(t)
= exp(-t/2) H(t), and U = W - W0 for the event less that of no event: a bump on the range of its
losses. Divided by the density of N(0, v'), v' = mu'**2, the inequality at t = x v' reads A(x) <=
B(x) with

    A(x) = integral of U(s) exp(x s - s**2 / (2 v')) ds,
    B(x) = mu' * integral from mu' to mu of exp((v' - s**2)/8 + x**2 v' (1 - v'/s**2)/2) ds,

two integrals of positive terms whose logarithms are convex in x. So chords bound log A from above
and tangents bound log B from below, nothing cancels at any scale, and the grid of x is as coarse as
1/(largest loss).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpframe.accounting import _search
from dpframe.accounting._pairs import NODES, TOP, ULP, WEIGHTS, after_pure, out_of_range, remains

Array = NDArray[np.float64]

# Relative error of A and of B: under 1e-11 for the quadrature (page), under 2e-12 for masses, sums
# and exp.
_MARGIN = 1e-10
_ROUNDS, _POINTS, _PANELS = 14, 3000, 60


def _spend(event: Bump, mu: float) -> float | None:
    """Return the cost at mu, or at `TOP` beyond it."""
    return cost_of(event, min(mu, TOP), 0.0)


def _exponential_cost(epsilon: float, mu: float) -> float | None:
    return _spend(two_points(epsilon), mu)


def _laplace_cost(epsilon: float, mu: float) -> float | None:
    return _spend(laplace(epsilon), mu)


_COSTS = {"exponential": _exponential_cost, "laplace": _laplace_cost}
_KINDS = ("pure", *_COSTS)  # the first has no certificate of its own
_STEPS = 16  # levels an octave


@lru_cache(maxsize=8192)
def _cost_at_level(kind: str, epsilon: float, level: int) -> float | None:
    """Return the cost of a release at a step of the ladder of mu, 2**(level / 16), and cache it."""
    return _COSTS[kind](epsilon, 2.0 ** (level / _STEPS))


@lru_cache(maxsize=4096)
def _direct(kind: str, epsilon: float, mu: float) -> float | None:
    return _COSTS[kind](epsilon, mu)


def after(kind: str, epsilon: float, mu: float) -> float | None:
    """Return the mu that remains of a Gaussian budget after a release of this kind.

    ``kind`` is "pure", "exponential" or "laplace". Return None if the release does not fit.

    Formal guarantee: the release with Gaussian noise of the mu that remains is dominated by
    Gaussian noise of ``mu``.

    A cost in mu squared that is certified at one mu is enough at every larger mu. So costs
    are cached for a ladder of mu, 16 levels an octave, and that of the level below is taken. If the
    release takes much of what remains, that would be too dear, and the cost is computed at mu.
    """
    if kind not in _KINDS:
        raise ValueError(f"kind must be 'pure', 'exponential' or 'laplace', got {kind!r}")
    pure = after_pure(epsilon, mu)  # also right for the other kinds, which are epsilon-private
    if kind not in _COSTS or epsilon == 0 or not mu > 0:
        return pure
    cost = None
    if mu > 4 * epsilon:
        level = math.floor(_STEPS * math.log2(min(mu, TOP)) * (1 - 1e-12) - 1e-9)
        cost = _cost_at_level(kind, epsilon, level)
    elif mu > epsilon / 2:  # less than that no event of either kind survives
        cost = _direct(kind, epsilon, mu)
    if cost is None or cost > mu * mu:
        return pure
    left = remains(mu, cost)
    return left if pure is None else max(left, pure)


def after_exponential(epsilon: float, mu: float) -> float | None:
    """Return the mu that remains of a Gaussian budget after a choice by the exponential mechanism
    or Gumbel noisy max.

    The losses of the choice have a range of length epsilon.

    Formal guarantee: for every pair of neighbours the losses of the event lie in an interval of
    length epsilon (Durfee and Rogers 2019), so some pair of losses a and a - epsilon, 0 <= a <=
    epsilon, dominates it, and mu' does for all of these. It costs about what randomized response of
    epsilon/2 would. Not for permute-and-flip, nor for one-sided noise: charge those by
    `after_pure`.

    >>> round(after_exponential(0.1, 1.0), 4), round(after_pure(0.05, 1.0), 4)
    (0.9987, 0.9987)
    """
    return after("exponential", epsilon, mu)


def after_laplace(epsilon: float, mu: float) -> float | None:
    """Return the mu that remains of a Gaussian budget after one number with Laplace noise of scale
    sensitivity/epsilon.

    Formal guarantee: the exact curve of the Laplace pair is used, 1 - exp((t - epsilon)/2) for |t|
    <= epsilon.

    >>> after_laplace(0.1, 1.0) > after_pure(0.1, 1.0)
    True
    """
    return after("laplace", epsilon, mu)


def after_curve(
    losses: ArrayLike,
    probabilities: ArrayLike,
    infinite: float,
    mu: float,
    slack: float = 0.0,
    *,
    symmetric: bool = False,
) -> float | None:
    """Return the mu that remains of a Gaussian budget after an event with this dominating pair.

    ``probabilities`` are P's masses at the increasing ``losses``, and ``infinite`` is that at
    infinity. Return None if the event does not fit.

    Formal guarantee: sum_i p_i H_mu'(t - l_i) + infinite <= H_mu(t) + slack at all real t, and the
    same for the pair reversed. The slack is owed besides, as a part of delta. Masses have to be
    right to twelve digits, as is what Q lacks of probability 1, sum_i p_i exp(-l_i): that much, as
    well as `infinite`, comes out of the slack. `symmetric` says that the reversed pair is the pair,
    and halves the work.

    >>> e = 0.1
    >>> round(after_curve([-e, e], [1 / (1 + math.exp(e)), 1 / (1 + math.exp(-e))], 0.0, 1.0), 6)
    0.994981
    """
    if not mu >= 0:
        raise out_of_range(0.0, mu)
    values, masses = np.asarray(losses, float), np.asarray(probabilities, float)
    if values.ndim != 1 or values.shape != masses.shape or not values.size:
        raise ValueError("losses and probabilities must be two lists of the same length")
    if not (
        np.isfinite(values).all() and (np.diff(values) > 0).all() and np.abs(values).max() <= 600
    ):
        raise ValueError("losses must be finite, at most 600, and increase")
    if not ((masses >= 0).all() and infinite >= 0 and slack >= 0):
        raise ValueError("probabilities, infinite and slack must not be negative")
    values, masses = values[masses > 0], masses[masses > 0]
    lost = 1 - math.fsum(masses * np.exp(-values))
    if abs(math.fsum(masses) + infinite - 1) > 1e-12 or lost < -1e-12:
        raise ValueError(
            "these are no probabilities of a pair: P must sum to 1, and Q to at most 1"
        )
    owed = infinite + (lost if lost > 1e-12 else 0.0)
    if owed > slack:
        return None
    if not values.any():
        return mu
    spare = (slack - owed) * (1 - 1e-12)
    if mu <= 0:
        return None
    at = min(mu, TOP)
    cost = cost_of(atoms(values, masses, symmetric), at, spare)
    return None if cost is None else remains(mu, cost)


# Events of the certificate ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bump:
    """The function U of an event: its privacy curve less that of no event, for one pair a row.

    It is smooth between consecutive edges and zero outside. The event may have the curve of any
    row.

    `heights` are the values at the edges, and between them U is a combination of exp(s/2) and
    exp(-s/2); without heights it is the Laplace pair's, exp(-|s|/2) - exp(-epsilon/2).
    """

    edges: Array
    heights: Array | None
    symmetric: bool
    # whether the pairs are below G(mu) (1) itself, with this much probability to spare
    fits: Callable[[float, float], bool]
    # how closely cells follow the curves: about what the certificate may waste, relative to the
    # cost
    tolerance: float = 2e-8

    @property
    def reach(self) -> float:
        return float(np.max(np.abs(self.edges)))

    def nodes(self, steepness: float) -> tuple[Array, Array]:
        """Return points and weights, a row for each pair, that integrate U times another function.

        The integral is about the sum of weight times function at the points, by Gaussian
        quadrature. U is in the weights. ``steepness`` bounds the slope of the logarithm of the
        other function, and so says how many points are needed.
        """
        width = np.diff(self.edges, axis=1)
        panels = max(1, math.ceil(float(width.max()) * (steepness + 1)))
        start = (np.arange(panels)[:, None] + (NODES + 1) / 2) / panels
        share, weight = start.ravel(), np.tile(WEIGHTS, panels) / (2 * panels)
        points = self.edges[:, :-1, None] + width[..., None] * share
        if self.heights is None:
            inner = np.abs(points)
            height = -np.exp(-inner / 2) * np.expm1((inner - self.reach) / 2)
        else:
            half = width[..., None] / 2
            with np.errstate(invalid="ignore", divide="ignore"):
                left = np.sinh(half * (1 - share)) / np.sinh(half)
                right = np.sinh(half * share) / np.sinh(half)
            height = self.heights[:, :-1, None] * left + self.heights[:, 1:, None] * right
            height = np.where(half > 0, height, 0.0)
        rows = self.edges.shape[0]
        return points.reshape(rows, -1), (height * weight * width[..., None]).reshape(rows, -1)


def two_points(epsilon: float) -> Bump:
    """Return the U of every choice whose losses lie in a range of length epsilon.

    Such a choice is dominated by a pair with two losses a and -b, a + b = epsilon, or its reverse.
    The a from epsilon/2 to epsilon are divided into cells, with a row for each. A pair with losses
    in [-b, a] is below the one with exactly these two, so each row takes the largest a and b of its
    cell. Cells are fine where a is about b, since the costliest pairs are there.
    """
    shares, step = [0.0], 0.0
    while shares[-1] < 1:
        step = 5e-4 + 0.04 * shares[-1] ** 2
        shares.append(min(1.0, shares[-1] + 2 * step))
    near, far = np.array(shares[:-1]), np.array(shares[1:])
    up = epsilon / 2 * (1 + far) * (1 + 4 * ULP)
    down = epsilon / 2 * (1 - near) * (1 + 4 * ULP)
    peak = 2 / (1 / np.tanh(up / 2) + 1 / np.tanh(down / 2))
    edges = np.stack([-down, np.zeros_like(up), up], axis=1)
    zero = np.zeros_like(up)
    p = np.expm1(down) / (np.exp(down) - np.exp(-up))

    def fits(mu: float, spare: float) -> bool:
        return _below(p, p * np.exp(-up), mu, spare)

    return Bump(edges, np.stack([zero, peak, zero], axis=1), True, fits, 1e-4)


def _below(p: Array, q: Array, mu: float, spare: float) -> bool:
    """Return whether the points (q, p) of a ROC curve lie below that of G(mu), up to ``spare``.

    That means p <= Phi(mu + Phi**-1(q)) + spare for all of them. ``slip`` covers rounding.
    """
    slip = 1e-15 * (2 + len(p))
    up = special.ndtr(mu + special.ndtri(np.clip(q - slip, 0.0, 1.0)))
    return bool(np.all(p <= up + spare - slip * 4))


def atoms(losses: Array, masses: Array, symmetric: bool) -> Bump:
    """Return the U of an event with finitely many losses.

    ``masses`` are the probabilities of the ``losses`` under P. ``symmetric`` says that the reversed
    pair is the pair.
    """
    edges = np.unique(np.append(losses, 0.0))
    reverse = masses * np.exp(-losses)
    above = np.exp(-edges / 2) * (
        np.maximum(-np.expm1(np.minimum(edges[:, None] - losses, 0)), 0) @ masses
    )
    under = np.exp(edges / 2) * (
        np.maximum(-np.expm1(np.minimum(losses - edges[:, None], 0)), 0) @ reverse
    )
    heights = np.where(edges >= 0, above, under)
    heights[[0, -1]] = 0.0
    p, q = np.cumsum(masses[::-1]), np.cumsum(reverse[::-1])

    def fits(mu: float, spare: float) -> bool:
        # with something to spare one order does not imply the other
        return _below(p, q, mu, spare) and _below(np.cumsum(reverse), np.cumsum(masses), mu, spare)

    return Bump(edges[None], heights[None], symmetric, fits)


def laplace(epsilon: float) -> Bump:
    """Return the U of the Laplace pair.

    Its ``fits`` is never true: whether a release just uses up a budget is left to `after_pure`.
    """

    def fits(mu: float, spare: float) -> bool:
        return False

    return Bump(np.array([[-epsilon, 0.0, epsilon]]), None, True, fits)


# The certificate ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Step:
    """The inequality A(x) <= B(x) for all real x. It certifies that an event turns a budget mu into
    mu' and no less, at the cost mu**2 - mu'**2.

    A is an integral over the losses of the event, and B one from mu' to mu. The docstring of this
    file has both. Their logarithms are convex. ``spare`` is a probability by which the inequality
    may fail.
    """

    event: Bump
    mu: float
    cost: float
    spare: float

    @property
    def variance(self) -> float:
        return self.mu * self.mu - self.cost

    def above(self, x: Array, side: int) -> Array:
        """Return log A at these x >= 0 (``side`` 1), or at -x (``side`` -1).

        A(x) is the integral of U(s) exp(x s - s**2 / (2 v)) over losses s, for a function U of the
        event, and v = mu'**2. If the event has several such functions, the largest A counts.
        """
        v = self.variance
        points, weights = self.event.nodes(float(x.max()) + self.event.reach / v)
        slope = (side * x)[:, None, None]
        largest = np.full(len(x), -np.inf)
        block = max(1, 2_000_000 // points.size)
        for i in range(0, len(x), block):
            exponent = slope[i : i + block] * points - points * points / (2 * v)
            top = exponent.max(axis=2)
            with np.errstate(divide="ignore"):
                logs = top + np.log((np.exp(exponent - top[..., None]) * weights).sum(axis=2))
            largest[i : i + block] = logs.max(axis=1)
        return largest

    def below(self, x: Array) -> tuple[Array, Array]:
        """Return log(B + S) at these x >= 0, and its derivative in x. Both are the same at -x.

        B is mu' times the integral of exp((v - s**2)/8 + x**2 v (1 - v/s**2)/2) over s from mu' to
        mu, with v = mu'**2. S stands for the probability ``spare`` by which A may exceed B. B is
        integrated by quadrature over ``past``, s less mu'. Logarithms keep it from overflow.
        """
        v, left = self.variance, math.sqrt(self.variance)  # mu'**2 and mu'
        width = self.cost / (self.mu + left)  # mu - mu', the length of the interval
        # How much the exponent changes over the interval; with it grows the number of panels.
        swing = self.cost / 8 + float(x.max()) ** 2 * v / (self.mu * self.mu) * self.cost / 2
        folds = math.log(self.mu / left)
        panels = math.ceil(6 * folds + min(swing, 1e3) * (1 + 2 * folds)) + 1
        # The panels have ends of equal ratios, since the integrand is singular at 0 only.
        marks = left * np.expm1(np.arange(panels + 1) / panels * math.log1p(width / left))
        size = np.diff(marks)[:, None]
        past = marks[:-1, None] + size * (NODES + 1) / 2
        grown = (past * (2 * left + past)).ravel()  # s**2 - mu'**2
        shift = v * grown / (v + grown)
        exponent = -grown / 8 + x[:, None] ** 2 / 2 * shift
        top = exponent.max(axis=1)
        terms = np.exp(exponent - top[:, None]) * (size * WEIGHTS / 2).ravel()
        total = terms.sum(axis=1)
        logs, slopes = math.log(left) + top + np.log(total), x * (terms @ shift) / total
        if swing > 1e3:  # too steep for this many panels: without B
            logs, slopes = np.full(len(x), -np.inf), np.zeros(len(x))
        if self.spare > 0:
            away = x - 0.5
            more = math.log(self.spare) + math.log(2 * math.pi * v) / 2 + v / 2 * away * away
            both = np.logaddexp(logs, more)
            slopes = np.exp(logs - both) * slopes + np.exp(more - both) * v * away
            logs = both
        return logs, slopes

    @property
    def sides(self) -> tuple[int, ...]:
        return (1,) if self.event.symmetric else (1, -1)

    def holds(self) -> bool:
        """Return whether A <= B is certified for all real x."""
        return all(self.excess(side) <= 0 for side in self.sides)

    def excess(self, side: int) -> float:
        """Return an upper bound on log A - log B over all x on one side of 0.

        ``side`` is 1 for x >= 0 and -1 for x <= 0. The inequality is certified if the bound is not
        positive. Between the points of a grid, chords bound log A and tangents bound log B. Cells
        are halved until the bound is close, or its sign is clear.
        """
        reach = float((side * self.event.edges).max())
        if reach <= 0:
            return -math.inf
        # The slope of log A is at most `reach`. So the grid may end at an x at which log B is as
        # steep. B alone is that steep at about `last`, and with something to spare earlier.
        last = reach / (self.cost * self.variance / (self.mu * self.mu))
        end = 1.02 * (min(last, reach / self.variance + 0.5) if self.spare > 0 else last)
        while float(self.below(np.array([end]))[1][0]) < reach * (1 + 1e-9):
            end *= 1.15
            if end > 12 * last:
                return math.inf
        x = np.linspace(0.0, end, 25)
        a, (b, slope) = self.above(x, side), self.below(x)
        tolerance = self.event.tolerance
        for _ in range(_ROUNDS):
            points = float((a - b).max())
            bound = _cells(x, a, b, slope)
            wide = bound > max(points, -tolerance) + tolerance
            if not wide.any() or len(x) > _POINTS or points > 0:
                break
            new = ((x[:-1] + x[1:]) / 2)[wide]
            fresh, (flat, tilt) = self.above(new, side), self.below(new)
            order = np.argsort(np.concatenate([x, new]), kind="stable")
            x, a, b, slope = (
                np.concatenate(pair)[order]
                for pair in ((x, new), (a, fresh), (b, flat), (slope, tilt))
            )
        return max(points, float(bound.max())) + _MARGIN

    def fits_at_zero(self) -> bool:
        x = np.zeros(1)
        return all(bool(self.above(x, s) + _MARGIN <= self.below(x)[0]) for s in self.sides)


def _cells(x: Array, a: Array, b: Array, slope: Array) -> Array:
    """Return, for each cell of the grid ``x``, the largest possible difference of log A and log B.

    ``a`` and ``b`` are their values at ``x``, and ``slope`` is the derivative of ``b``. Both are
    convex, so the chord of a lies above it, and the two tangents of b below. The difference of
    chord and larger tangent is largest where the tangents ``cross``.
    """
    width = np.diff(x)
    turn = slope[1:] - slope[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = (b[:-1] - b[1:] + slope[1:] * width) / turn
    cross = np.where(turn > 0, np.clip(cross, 0.0, width), width / 2)
    chord = a[:-1] + (a[1:] - a[:-1]) * (cross / width)
    # The smaller tangent: an inexact crossing then errs upwards.
    tangent = np.minimum(b[:-1] + slope[:-1] * cross, b[1:] - slope[1:] * (width - cross))
    excess: Array = chord - tangent
    return excess


def cost_of(event: Bump, mu: float, spare: float) -> float | None:
    """Return the least cost in mu squared that can be certified for an event at this mu.

    ``spare`` is a probability by which the event may exceed the budget. The cost is mu**2 if
    nothing remains, and None if the event does not fit. The search first finds the least cost whose
    inequality holds at x = 0, and raises it until it holds for all x.
    """
    whole = mu * mu
    # Below that remainder the integrands would need more panels than it is worth, and mu**2 - cost
    # would lose digits.
    largest = whole - max(1e-4 * whole, min(whole / 2, event.reach**2 / _PANELS))
    if not _Step(event, mu, largest, spare).fits_at_zero():
        return whole if event.fits(mu, spare) else None
    low, high = 0.0, min(largest, event.reach**2)
    while not _Step(event, mu, high, spare).fits_at_zero():
        low, high = high, min(largest, 2 * high)
    while low == 0.0 and high > whole * 1e-15 and _Step(event, mu, high / 2, spare).fits_at_zero():
        high /= 2
    low = max(low, high / 2)
    high = _search.first_where(
        lambda cost: _Step(event, mu, cost, spare).fits_at_zero(),
        low,
        high,
        close=lambda low, high: high - low <= event.tolerance / 20 * high,
    )
    # Mostly x = 0 decides, and this cost passes at once. For skew pairs it is some other x.
    low, high, grow = high, high * (1 + 4 * event.tolerance), 50 * event.tolerance
    while not _Step(event, mu, min(high, largest), spare).holds():
        if high >= largest:
            return whole if event.fits(mu, spare) else None
        low, high, grow = high, high * (1 + grow), min(1.0, grow * 4)
    high = min(high, largest)
    return _search.first_where(
        lambda cost: _Step(event, mu, cost, spare).holds(),
        low,
        high,
        close=lambda low, high: high - low <= 10 * event.tolerance * high,
    )
