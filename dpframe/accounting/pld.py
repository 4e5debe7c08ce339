"""The cost of a list of events that was fixed in advance: numerical composition, rounded up at
every step.

*Formal guarantee.* If every event of the list was fixed before the first release (the mechanisms
may look at earlier releases, the prices may not), all releases together are (`epsilon(events,
delta)`, delta)-DP. As a rule for stopping this number is NOT sound: a list that grew with the
answers needs a filter.

Why. Write H(t) = sup_S P(S) - e**t Q(S). If H <= H' for every t then E H(t - L) <= E H'(t - L) for
the loss L of any other pair, so factors may be replaced one by one by larger ones (Zhu, Dong and
Wang 2022).

1. Each pair is replaced by a discrete loss distribution on a common grid whose curve lies above its
   own (`_pld_bounds`).
2. These are convolved by FFT after an exponential tilt to the saddle point of delta, which makes
   errors relative to the tail asked for. What lies below the window is bounded by Chernoff on the
   atoms themselves, else the window is moved; aliases from above only add mass. What lies above the
   window is bounded by Chernoff and counts as infinite loss. The rounding of the FFT is bounded as
   in theorem 24.2 of Higham 2002 and added to each cell. A few rare losses with a tail too heavy
   for any tilt are counted as infinite before, within _SPARE of delta.
3. Exponential mechanisms leave the choice of the pair to an adversary (`_pld_bounds.adversary`).
   The other events are put first, when the adversary has all of their losses to go by: delta(t) = E
   V(t - L).
4. From the same atoms Renyi's bound is free: delta <= E e**(a L - a t) a**a / (1 + a)**(1 + a) for
   every a > 0 (Balle, Barthe, Gaboardi, Hsu and Sato 2020; proposition 12 of Canonne, Kamath and
   Steinke 2020).

All of these and the pure sum hold for a fixed list, so the least is reported.

As an accountant it guards one batch of plans that was declared in advance: a fixed list, however
its parts are then used, so the product of its pairs dominates it (docs/guarantees/accounting.md). A
second batch would depend on the first one's answers: it is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpframe.accounting._additive import Gdp
from dpframe.accounting._filter import Charge, Filter, Price, register
from dpframe.accounting._pld_bounds import (
    ULP,
    Atoms,
    GameValue,
    adversary,
    atoms_on_grid,
    curve_of,
    cut,
    moment,
    sketch,
)
from dpframe.accounting._tight import Either, Tight
from dpframe.accounting.loss import Curve, Events, Loss

Floats = NDArray[np.float64]

_CELLS = 1 << 21  # the longest FFT
_LOST = 1e-14  # tilted mass that the window may miss or see twice
_SPARE = (
    1e-5  # share of delta that goes to losses counted as infinite: tails too heavy for any tilt
)
_TINY = 1e-100  # below it masses come near the smallest doubles, and Renyi's bound is left
_UP = 1 + 1e-9  # the last rounding; the doubles before it err by less than 1e-10


def epsilon(events: Sequence[tuple[Loss, int]], delta: float, *, cells: int = _CELLS) -> float:
    """Return the least epsilon known at which these events, fixed in advance, are together
    (epsilon, delta)-DP.

    ``events`` are pairs of a loss and a count, and ``cells`` is the largest number of points of a
    grid. The result is the smaller of two numbers: the sum of pure epsilons, and the epsilon of the
    composed losses at the delta that failures leave. It is infinite if delta is below the
    probability of outright failure. At delta = 0 it is the pure sum.

    >>> from dpframe.accounting.loss import PureDP
    >>> epsilon([(PureDP(Fraction(1, 10)), 10)], 0.0)
    1.0
    >>> round(epsilon([(PureDP(Fraction(1, 10)), 100)], 1e-6), 3)
    4.775
    """
    counts = _counts(events)
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), got {delta!r}")
    if Fraction(str(delta)) < _failures(counts) and delta < _failure(counts):
        return math.inf
    best = _pure(counts)
    failure = _failure(counts)
    target = (delta - failure) / max(1 - failure, 1e-300) * (1 - 8 * ULP)
    if target > 0:
        composed = max((side.epsilon(target) for side in _sides(counts, cells)), default=0.0)
        best = min(best, composed * _UP)
    return best


def profile(
    events: Sequence[tuple[Loss, int]], epsilons: ArrayLike, *, cells: int = _CELLS
) -> Floats:
    """Return delta(epsilon) of these events, fixed in advance, at each epsilon; never below the
    truth.

    ``events`` are pairs of a loss and a count, and ``cells`` is the longest grid.

    >>> from dpframe.accounting.loss import PureDP
    >>> [round(float(x), 4) for x in profile([(PureDP(Fraction(1)), 1)], [0.0, 0.5, 1.0])]
    [0.4621, 0.2876, 0.0]
    """
    counts = _counts(events)
    pure, failure = _pure(counts), _failure(counts)
    sides = _sides(counts, cells)
    points = np.asarray(epsilons, float)

    def delta_at(t: float) -> float:
        """Return the delta of the composition at one epsilon t."""
        if t >= pure:
            return failure
        finite = max((side.delta(t) for side in sides), default=-math.expm1(min(t, 0.0)))
        return failure + (1 - failure) * finite * _UP

    deltas = [delta_at(float(t)) for t in points.ravel()]
    capped: Floats = np.minimum(np.array(deltas, float), 1.0).reshape(points.shape)
    return capped


def _counts(events: Sequence[tuple[Loss, int]]) -> dict[Loss, int]:
    """Return the number of uses of each loss in a list of events. Negative counts are refused."""
    counts: dict[Loss, int] = {}
    for loss, count in events:
        if count < 0:
            raise ValueError(f"a count must not be negative, got {count!r}")
        if count:
            counts[loss] = counts.get(loss, 0) + count
    return counts


def _pure(counts: dict[Loss, int]) -> float:
    """Return the sum of the pure epsilons of all uses, rounded up; inf if a loss is not pure."""
    total = Fraction(0)
    for loss, count in counts.items():
        if loss.epsilon is None:
            return math.inf
        total += count * loss.epsilon
    near = float(total)
    return (
        near
        if Fraction(near) >= total or Fraction(str(near)) == total
        else math.nextafter(near, math.inf)
    )


def _failures(counts: dict[Loss, int]) -> Fraction:
    return sum((count * loss.failure for loss, count in counts.items()), Fraction(0))


def _failure(counts: dict[Loss, int]) -> float:
    """Return the probability that any event fails outright and reveals everything, rounded up."""
    if any(loss.failure >= 1 for loss in counts):
        return 1.0
    logs = sum(
        count * math.log1p(-float(loss.failure)) for loss, count in counts.items() if loss.failure
    )
    return min(float(_failures(counts)) * (1 + 2 * ULP), -math.expm1(logs) * (1 + 1e-14))


class _Kind(NamedTuple):
    """One kind of loss in a composition, and how often it is used."""

    curve: Curve  # its privacy curve in one direction
    uses: int
    sketch: Atoms  # a discrete loss distribution above it
    pure: bool  # whether it has a pure epsilon

    def change(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return self._replace(**changes)


class _Sum(NamedTuple):
    """Composed privacy loss on a grid, with upper bounds of the probability of each value."""

    x: Floats
    mass: Floats  # of the loss being x, rounded up
    infinite_mass: float  # mass counted as infinite
    # With choices that an adversary steers: at most how much they add to delta, by threshold.
    adversary_gain: GameValue | None = None

    def change(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return self._replace(**changes)

    def delta(self, t: float) -> tuple[float, float]:
        """Return the delta of the composition at the epsilon t, and its derivative, which need not
        be exact.

        It is the mean of max(0, 1 - e**(t - L)) over the composed loss L. Losses that count as
        infinite add their whole mass. If an adversary steers further choices, the largest gain from
        these at the threshold t - L takes the place of max(0, 1 - e**(t - L)).
        """
        if self.adversary_gain is None:
            first = int(np.searchsorted(self.x, t, side="right"))  # smaller losses add nothing
            # Near t, expm1 keeps the digits that 1 - exp loses. From ``far`` on 1 - exp keeps 12
            # digits, and is much faster.
            far = int(np.searchsorted(self.x, t + 1e-3))
            near, rest = self.mass[first:far], self.mass[far:]
            all_mass = float(near.sum() + rest.sum())
            finite = float(near @ -np.expm1(t - self.x[first:far])) + float(
                rest @ (1 - np.exp(t - self.x[far:]))
            )
            return finite + self.infinite_mass, finite - all_mass
        gain, step = self.adversary_gain, self.adversary_gain.step * 1e-3
        here, next_to = (float(self.mass @ gain(u - self.x)) for u in (t, t + step))
        return here + self.infinite_mass, (next_to - here) / step


_NO_LOSS = _Sum(np.zeros(1), np.ones(1), 0.0)


def _power(base: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """Return a power of a transform by repeated squaring, for the composition of ``count`` equal
    events.

    The relative error is at most about 4 count units, which complex ``**`` does not promise.
    """
    product = None
    while True:
        if count & 1:
            product = base.copy() if product is None else np.multiply(product, base, out=product)
        count >>= 1
        if not count:
            assert product is not None
            return product
        base = np.multiply(base, base, out=base)


def _length(n: int) -> int:
    return min(f << max(0, math.ceil(math.log2(n / f))) for f in (1, 3, 5, 9, 15))


def _window(kinds: Sequence[_Kind], theta: float) -> tuple[float, float, float]:
    """Return the two ends of a window that holds nearly all of the composed loss, and the variance
    of that loss.

    The distribution is tilted: its probabilities are multiplied by e**(theta loss) and divided by
    their sum. The probability outside the window is at most _LOST by Chernoff's bound.
    """
    mean = variance = 0.0
    for kind in kinds:
        x, log_mass, _ = kind.sketch
        weight = np.exp(theta * x + log_mass - moment(x, log_mass, np.array([theta])))
        centre = float(weight @ x)
        mean += kind.uses * centre
        variance += kind.uses * float(weight @ (x - centre) ** 2)
    s = _steps(kinds, variance)
    here = _cumulant(kinds, np.array([theta]))
    above = float(((_cumulant(kinds, theta + s) - here - math.log(_LOST)) / s).min())
    below = float(((_cumulant(kinds, theta - s) - here - math.log(_LOST)) / s).min())
    least = sum(k.uses * float(k.sketch.at[0]) for k in kinds)
    most = sum(k.uses * float(k.sketch.at[-1]) for k in kinds)
    reach = _reach(kinds)
    return max(min(-below, mean), least) - reach, min(max(above, mean), most) + reach, variance


def _reach(kinds: Sequence[_Kind]) -> float:
    return 1e-7 * max(max(abs(k.curve.lower), abs(k.curve.upper)) for k in kinds)


def _steps(kinds: Sequence[_Kind], variance: float) -> Floats:
    """Return the changes of order at which Chernoff's bound is tried."""
    orders = np.array([0.05, 0.2, 0.5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 14, 20, 40, 100])
    return orders / (math.sqrt(variance) + _reach(kinds))


def _cumulant(kinds: Sequence[_Kind], theta: Floats) -> Floats:
    total = np.zeros(len(theta))
    for kind in kinds:
        total += kind.uses * moment(kind.sketch.at, kind.sketch.log_mass, theta)
    return total


def _below(kinds: Sequence[_Kind], theta: float, low: float, variance: float) -> float:
    """Return an upper bound, by Chernoff, on the probability that the tilted composed loss lies
    below ``low``.

    The tilt has the order ``theta``, and ``variance`` is that of the tilted loss.
    """
    if low <= sum(k.uses * float(k.sketch.at[0]) for k in kinds):
        return 0.0
    steps = _steps(kinds, variance)
    here = float(_cumulant(kinds, np.array([theta]))[0])
    # P[L < low] <= E exp(s (low - L)) for each s > 0, and the tilt divides by exp(here).
    return math.exp(min(0.0, float((_cumulant(kinds, theta - steps) - here + steps * low).min())))


def _compose(
    kinds: Sequence[_Kind], theta: float, delta: float, scale: float, cells: int, tries: int = 3
) -> _Sum:
    """Return the distribution of the sum of all losses, by FFT on a grid, rounded up.

    ``kinds`` are the losses with their uses, and ``theta`` is the order of the tilt. ``delta`` and
    the epsilon ``scale`` say which errors would be seen. ``cells`` is the largest number of points
    of the grid, and ``tries`` is how often the window may be moved.

    The steps: choose a window and the step h of the grid; put each loss on the grid, tilt it, and
    multiply its transform into the product; transform back; add the rounding errors, undo the tilt,
    and bound what lies above the window.
    """
    low, high, variance = _window(kinds, theta)
    uses = sum(k.uses for k in kinds)
    # Chords add at most h**2 / 4 to the variance of each use: half of its share, 2e-6 to 1e-5, goes
    # to epsilon.
    wide = max(math.sqrt(variance), (high - low) / 1000)
    h = min(math.sqrt(4e-9 * max(1.0, 2500 / uses)) * wide, (high - low) / (1 << 16))
    h = max(h, (high - low) / (cells - 2 * min(2 * uses + 5, cells // 4)))
    finest = min((k.curve.upper for k in kinds if k.pure), default=0.0)
    if finest > h:
        h = finest / math.floor(finest / h)  # atoms of the smallest event then lie on the grid
    margin = min(2 * uses + 4, 1 << 10) * h  # on the grid each atom may move by two cells
    low, high = low - margin, high + margin
    first = math.floor(low / h) - 1
    n = min(_length(math.ceil(high / h) + 2 - first), max(cells, 8))
    transform = np.ones(n // 2 + 1, complex)
    shift, top, total, error, relative, infinite = 0, 0, 0.0, 0.0, 0.0, 0.0
    fine: list[_Kind] = []
    for kind in kinds:
        kappa = float(moment(kind.sketch.at, kind.sketch.log_mass, np.array([theta]))[0])
        log_scale = (
            math.log(1e-10 * min(scale, high - low) / (len(kinds) * kind.uses * (1 + theta)))
            + kappa
        )
        atoms = atoms_on_grid(
            kind.curve, h, theta, log_scale, _SPARE * delta / (len(kinds) * kind.uses)
        )
        losses = atoms.at * h
        fine.append(kind.change(sketch=atoms.change(at=losses)))
        kappa = float(moment(losses, atoms.log_mass, np.array([theta]))[0])
        weight = np.exp(theta * losses + atoms.log_mass - kappa)
        cell = ((atoms.at - atoms.at[0]) % n).astype(np.int64)
        spread = np.fft.rfft(np.bincount(cell, weight, n))
        transform *= _power(spread, kind.uses)
        shift += kind.uses * int(atoms.at[0])
        top += kind.uses * int(atoms.at[-1])
        total += kind.uses * kappa
        infinite += kind.uses * atoms.infinite
        error += kind.uses * float(np.linalg.norm(weight))
        relative += kind.uses * (8 + theta * float(np.abs(losses).max()) + abs(kappa))
    # A sketch bounds curves, not the lower tail of the tilted law: what the window loses is known
    # of the atoms only.
    if _below(fine, theta, h * first, variance) > 10 * _LOST:
        if tries == 0:
            return _Sum(np.zeros(1), np.zeros(1), 1.0)  # nothing is known; other bounds are left
        return _compose(fine, theta, delta, scale, cells, tries - 1)
    tilted: Floats = np.roll(np.fft.irfft(transform, n), -((first - shift) % n))
    x: Floats = np.arange(first, first + n, dtype=np.float64) * h
    # Each transform errs by 8 log2(n) units of its norm at most, a power by `count` times its base:
    # every cell gets it.
    units = 8 * math.log2(n) * (error + float(np.linalg.norm(tilted))) + 8 * uses * float(
        np.abs(transform).mean()
    )
    relative = ULP * (2 * relative + 4 * abs(total) + 4 * theta * float(np.abs(x).max()) + n)
    log_mass = np.log(np.maximum(tilted, 0.0) + units * ULP) + (total - theta * x) + relative
    end = h * (first + n)  # if all losses lie below it, nothing is lost
    orders = theta + np.array([0, 0.5, 1, 2, 4, 6, 8, 12]) / (math.sqrt(variance) + h)
    tail = float((_cumulant(fine, orders) - orders * end).min()) if top >= first + n else -math.inf
    above = math.exp(min(0.0, tail)) * (1 + 1e-9)
    return _Sum(x, np.exp(np.minimum(log_mass, 1e-9)), min(1.0, above + infinite * (1 + 1e-9)))


class _Plan(NamedTuple):
    """Composition for one direction of the neighbours: fixed pairs, then choices that an adversary
    steers."""

    kinds: list[_Kind]
    ranges: tuple[tuple[float, int], ...]
    cells: int

    def cumulant(self, theta: Floats) -> Floats:
        """Return log E e**(theta L) of the composed loss L, or more, at each order theta.

        A choice of bounded range counts by its epsilon**2 / 8 (Cesar and Rogers 2021).
        """
        total = _cumulant(self.kinds, theta)
        for reach, count in self.ranges:
            total += count * np.minimum(theta * (1 + theta) * reach * reach / 8, theta * reach)
        return total

    def search(self, goal: Callable[[Floats, Floats], Floats]) -> tuple[float, float]:
        """Return the order that minimises ``goal``, roughly, and the minimum, rounded up.

        ``goal(orders, log_moments)`` is a Renyi bound on epsilon or on log delta, for an array of
        orders a and the logs of E e**(a L) a**a / (1 + a)**(1 + a). The second factor is the
        maximum of e**(-a y) (1 - e**-y). A coarse grid of orders is searched, and then two finer
        ones about the best.
        """
        spans = [float(k.sketch.at[-1] - k.sketch.at[0]) * math.sqrt(k.uses) for k in self.kinds]
        spans += [reach * math.sqrt(count) for reach, count in self.ranges]
        exponents = np.linspace(math.log(1e-3 / sum(spans)), math.log(1e6 / min(spans)), 48)
        for _ in range(3):
            a = np.exp(exponents)
            logs = self.cumulant(a) * (1 + 1e-12) + 1e-11
            value = goal(a, logs - a * np.log1p(1 / a) - np.log1p(a))
            best = int(np.argmin(value))
            step = exponents[1] - exponents[0]
            exponents = exponents[best] + np.linspace(-step, step, 9)
        return float(a[best]), float(value[best])

    def infinite(self) -> float:
        return sum(k.uses * k.sketch.infinite for k in self.kinds)

    def compose_at(self, theta: float, delta: float, scale: float) -> _Sum | None:
        """Return the distribution of the composed loss, computed with a tilt of the order
        ``theta``.

        If there are choices of bounded range, it holds the value of the adversary's game, too.
        ``delta`` and the epsilon ``scale`` say which errors would be seen. Return None if the game
        would take long.
        """
        total = _compose(self.kinds, theta, delta, scale, self.cells) if self.kinds else _NO_LOSS
        if not self.ranges:
            return total
        # Rounded, so that similar questions share a cached game.
        value = adversary(
            self.ranges, 4.0 * math.floor(math.log(delta) / 4), 2.0 ** round(math.log2(theta))
        )
        return None if value is None else total.change(adversary_gain=value)

    def cut(self, delta: float) -> _Plan:
        """Return the same composition without losses that are too rare to be seen at this delta.
        They count as infinite."""
        share = _SPARE * delta / max(len(self.kinds), 1)
        return self._replace(
            kinds=[k.change(sketch=cut(k.sketch, share / k.uses)) for k in self.kinds]
        )

    def epsilon(self, target: float) -> float:
        """Return the least epsilon found at which the composition has a delta of at most
        ``target``.

        It is the better of two bounds: Renyi's, at the best order, and that of the composed
        distribution, computed with a tilt of that order.
        """
        plan = self.cut(target)
        rest = target - plan.infinite()
        if rest <= 0:
            return math.inf
        theta, best = plan.search(lambda a, moment: (moment - math.log(rest)) / a)
        if best <= 0:
            return 0.0
        if target < _TINY:
            return best
        total = plan.compose_at(theta, target, max(best, 1.0 / theta))
        return best if total is None else min(best, _solve(total, target * (1 - 1e-10), best))

    def delta(self, t: float) -> float:
        """Return the least delta found for the composition at the epsilon ``t``.

        It is the better of two bounds: Renyi's, at the best order, and that of the composed
        distribution, computed with a tilt of that order. How rare a loss must be to count as
        infinite depends on delta, so Renyi's bound is repeated while it falls.
        """
        bound = 1.0
        for _ in range(5):
            plan, before = self.cut(bound), bound
            theta, best = plan.search(lambda a, moment: moment - a * t)
            bound = min(bound, math.exp(min(best, 0.0)) * (1 + 1e-12) + plan.infinite())
            if bound < _TINY:
                return bound
            if bound > before / 10:
                break
        total = plan.compose_at(theta, bound, max(abs(t), 1 / theta))
        return bound if total is None else min(bound, total.delta(t)[0] * (1 + 1e-10))


def _solve(total: _Sum, target: float, high: float) -> float:
    """Return the least epsilon in [0, high] at which a composed loss has a delta of at most
    ``target``.

    It is right to 10 digits and on the safe side. It is inf if delta exceeds the target at
    ``high``. The search is Newton's rule on log delta, from ``high`` downwards, and bisection if
    that leaves the interval. The result is an epsilon ``t`` that was tried.
    """
    low, t = 0.0, high
    solution = math.inf
    for _ in range(100):
        delta, slope = total.delta(t)
        miss = math.log(max(delta, 1e-320) / target)
        if miss <= 0:
            high = solution = t
            if miss > -1e-10 or t == 0:
                break
        elif math.isinf(solution):
            return solution
        else:
            low = t
        step = miss * delta / slope if slope < 0 else math.inf
        if high - low <= 1e-11 * high or (t == high and abs(step) <= 1e-11 * high):
            break
        t = t - step + 1e-13 * high
        if not low < t < high:
            t = 0.0 if low == 0 and t <= 0 else (low + high) / 2
    return solution


class _Side(NamedTuple):
    """All that bounds one ordering of the neighbours; each plan holds, so the least counts."""

    plans: list[_Plan]

    def epsilon(self, target: float) -> float:
        return min((plan.epsilon(target) for plan in self.plans), default=math.inf)

    def delta(self, t: float) -> float:
        return min((plan.delta(t) for plan in self.plans), default=1.0)


def _sides(counts: dict[Loss, int], cells: int) -> list[_Side]:
    """Return the compositions for both directions of the neighbours, or for one if all pairs are
    symmetric.

    ``counts`` has the number of uses of each loss, and ``cells`` is the largest number of points of
    a grid. Each side has a plan in which choices of bounded range count by a curve above any single
    use. With several such choices it has a second plan, in which an adversary steers them.
    """
    if not counts:
        return []
    sides = (
        (0, 1)
        if any(loss.bounded_range is None and len(loss.curves) > 1 for loss in counts)
        else (0,)
    )
    directions = []
    for side in sides:
        fixed: list[_Kind] = []
        adaptive: list[_Kind] = []
        ranges: list[tuple[float, int]] = []
        for loss, count in counts.items():
            rough = sketch(loss, side)
            if rough.infinite >= 1:
                return [_Side([])]
            kind = _Kind(curve_of(loss, side), count, rough, loss.epsilon is not None)
            (fixed if loss.bounded_range is None else adaptive).append(kind)
            if loss.bounded_range is not None:
                ranges.append((math.nextafter(loss.bounded_range, math.inf), count))
        plans = [_Plan(fixed + adaptive, (), cells)]
        if sum(c for _, c in ranges) > 1:
            plans.append(_Plan(fixed, tuple(sorted(ranges)), cells))
        directions.append(_Side(plans))
    return directions


# The accountant -------------------------------------------------------------------------------------------------------

_USED = Fraction(1, 2**1074)
# The part of delta for outright failures; the curve of the batch takes them from the delta that
# converts.
_FAILURES = Fraction(1, 10)


@register
class Composed(Filter):
    """Accounting rule that admits one batch declared in advance, if its composed curve keeps the
    budget.

    The state is the epsilon of the batch, or 0 before it.

    Prices are those of `Tight` after the questions that are in the batch already. A list that
    filter admits keeps the budget, and here it is fixed in advance, so the promises of that filter
    hold here.
    """

    name: ClassVar[str] = "pld"
    place: ClassVar[int] = 8
    reserve_share: ClassVar[Fraction] = Fraction(0)  # the curve of the batch has its failures in it
    batches: ClassVar[bool] = True

    @cached_property
    def _tight(self) -> Tight:
        limits = self.limits
        return Tight(limits.change(reserve=limits.reserve + _FAILURES * limits.conversion))

    def start(self) -> Fraction:
        return Fraction(0)

    def after(self, state: Fraction, charge: Charge) -> Fraction | None:
        """Return the state after the one batch that this rule admits.

        Return None if the batch does not fit, or if one was made before.
        """
        if state:
            return None
        epsilon, limit = self.report(charge.losses, self.limits.delta), self.limits.epsilon
        if epsilon > limit and self._tight.after(self._tight.start(), charge) is None:
            return None
        # Never 0: a batch whose epsilon is 0 at this delta has used the delta, and a second one
        # would use it again.
        return max(Fraction(epsilon) if epsilon <= limit else limit, _USED)

    def ahead(self, state: object, charges: Sequence[Charge]) -> Any:
        return self._tight.ahead(self.as_tight_state(state), charges)

    def as_tight_state(self, state: object) -> Either:
        return state if isinstance(state, Either) else self._tight.start()

    def spent(self, state: Fraction) -> Fraction:
        return Fraction(1) if state else Fraction(0)

    def share(self, queries: int | Fraction, state: object) -> Price:
        return self._tight.share(queries, self.as_tight_state(state))

    def worth(self, epsilon: Fraction, state: object) -> Price:
        return self._tight.worth(epsilon, self.as_tight_state(state))

    def gaussian(self, amount: Fraction, queries: int, state: object) -> Price | None:
        return self._tight.gaussian(amount, queries, self.as_tight_state(state))

    def price_guarantee(self, epsilon: Fraction, delta: Fraction, state: object) -> Price:
        return self._tight.price_guarantee(epsilon, delta, self.as_tight_state(state))

    @staticmethod
    def report(events: Events, delta: Fraction) -> float:
        # Both hold for a fixed list. The closed form has no grid, so that default shares fill the
        # budget.
        return min(epsilon(events, float(delta) * (1 - 1e-12)), Gdp.report(events, delta))

    def failure_for(self, epsilon: Fraction, state: object, pure: bool = False) -> Fraction:
        return self._tight.failure_for(epsilon, self.as_tight_state(state))

    def times(self, state: Fraction, charge: Charge) -> int:
        """Return how many debits equal to this one fit in one batch, or fewer.

        It uses closed forms, since composing thousands takes seconds.
        """
        return 0 if state else self._tight.times(self._tight.start(), charge)

    def delta_spent(self, state: Fraction) -> Fraction:
        return Fraction(0)

    def refusal(self, state: Fraction, charge: Charge) -> str:
        if state:
            return "its one batch of plans was made, and another would depend on the first one's answers."
        return super().refusal(state, charge)
