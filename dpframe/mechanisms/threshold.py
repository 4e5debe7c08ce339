"""Thresholds on noisy counts: which keys many people share, and the counts themselves
(docs/guarantees/keys.md).

Each kind adds its noise to integers, a row a component and a column a key, and `shows` tells which
columns may leave. What leaves of these are the noisy integers: a threshold costs no more with its
counts than without.

Words of this file: a component is one of the integers of a key, such as its number of rows. A bar
is a threshold on the sum of some components. The ``failure`` is the probability that a key of one
person alone is shown. X is the noise in a count, and T the threshold of a bar.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe._errors import BadValue
from dpframe._types import Array, Json
from dpframe.accounting import _search
from dpframe.mechanisms import _sampling
from dpframe.mechanisms._base import Mechanism, Noise, Pure, register
from dpframe.mechanisms.noise import GaussianNoise, LaplaceNoise, sum_quantile

Floats = NDArray[np.float64]

_UP = 1 + 1e-9  # covers the few roundings of each probability below
_HIDDEN = -(2**60)  # stands for a count that is not shown
_COIN = 2**32  # coins have probabilities in multiples of 1 / _COIN
_REST = 16  # each bar but the first one gets this part of the failure
_FAR = 700.0  # deviations or rates beyond which a tail is no double
_SURELY = 0.999  # a key that was shown as often as that counts as if it always were


class Bar(NamedTuple):
    """Condition for a key to be shown: the sum of its first ``components`` noisy integers is at
    least ``least``."""

    components: int
    least: int


def split_failure(failure: Fraction, keys: int) -> float:
    """Return the largest failure that each of `keys` independent keys may have, rounded down.

    Then at least one of them fails with probability ``failure`` at most.
    """
    return -math.expm1(math.log1p(-float(failure) * (1 - 1e-12)) / keys) / _UP


class Threshold(Noise):
    """The base of the kinds: which keys are shown, and how likely each of these was to be shown."""

    __slots__ = ()

    named = False  # whatever the noise below it is
    automatic = False
    finds_keys = True

    if TYPE_CHECKING:  # a field of some kinds

        @property
        def bars(self) -> tuple[Bar, ...]:
            """A key is shown if it passes any of these."""

        def above(self, components: int, t: Floats) -> Floats:
            """Return P[X >= t] of the sum X of the noises of `components` components, as doubles,
            for intervals."""

    @property
    def half(self) -> float:
        """The count that passes the first bar with probability one half."""
        return float(self.bars[0].least)

    def shows(self, noisy: Array) -> NDArray[np.bool_]:
        """Return a mask of the groups whose noisy counts pass a threshold, so that their keys may
        be released. ``noisy`` has a column for each group."""
        passed = np.zeros(noisy.shape[1:], dtype=bool)
        for bar in self.bars:
            passed |= np.asarray(noisy[: bar.components].sum(axis=0) >= bar.least, dtype=bool)
        return passed

    def bound_chance_of_being_shown(self, noisy: Array, risk: float) -> Floats:
        """Return, for each released key, a lower bound on the probability that its noisy count
        passes the threshold.

        ``noisy`` has a column for each released key, and a row for each of its noisy integers, such
        as its number of rows. The bounds are wrong with probability ``risk`` at most. Intervals
        need them: released counts are too large on average, since a key with unluckily low noise is
        not released.

        Let y be the noisy count, X its noise, T the threshold and r the risk. A true count n is
        ruled out if P[X >= y - n] is less than r P[X >= T - n]. Given that the key is released, the
        true count is ruled out with probability r at most. The least count that is left is shown
        least often. The loop finds it by bisection.
        """
        chances = np.zeros(noisy.shape[1:])
        # A key is shown if it passes any bar: the sum of its first noisy integers is at least a
        # threshold. So the largest of the chances counts, and the bars share the risk.
        for components, least in self.bars:
            sums = noisy[:components].sum(axis=0).astype(np.float64)
            low, high = np.zeros_like(sums), np.maximum(sums, 1.0)  # nobody's key is never shown
            for _ in range(64):
                middle = np.floor((low + high) / 2)
                middle = np.where(middle > low, middle, high)
                chance = self.above(components, sums - middle)
                likely = chance >= risk / len(self.bars) * self.above(components, least - middle)
                low, high = np.where(likely, low, middle), np.where(likely, middle, high)
                if (high - low <= 1).all():  # there is no number in between
                    break
            chances = np.maximum(chances, self.above(components, least - high))
        return chances

    def mask_nearly_always_shown(self, noisy: Array, risk: float) -> NDArray[np.bool_]:
        """Return a mask of the keys that are shown with probability `_SURELY` or more, since their
        noisy counts are far above a threshold.

        ``noisy`` has a column for each released key, and a row for each of its noisy integers. The
        mask is wrong with probability ``risk`` at most. The slower search of
        `bound_chance_of_being_shown` is not needed for these keys.

        Let y be the noisy count, X its noise, T the threshold and r the risk. Choose a with P[X >=
        a] below r `_SURELY`, and b with P[X >= -b] at least `_SURELY`. If y >= T + a + b, then the
        true count is more than y - a: all others are ruled out. A count of y - a >= T + b passes
        with P[X >= -b].
        """
        sure = np.zeros(noisy.shape[1:], dtype=bool)
        # Powers of 2 are near enough: the search gives the same result for a key left to it.
        far: Floats = np.ldexp(1.0, np.arange(60))
        for components, least in self.bars:
            above = self.above(components, far) < risk / len(self.bars) * _SURELY
            below = self.above(components, -far) >= _SURELY
            if above.any() and below.any():
                bar = least + far[above.argmax()] + far[below.argmax()]
                sure |= np.asarray(noisy[:components].sum(axis=0).astype(np.float64) >= bar)
        return sure

    def levels(self, released: Array, level: float) -> Floats:
        """Return, for each released key, the confidence level to ask of an interval that ignores
        the threshold.

        The interval then covers with probability ``level``, given that the key was released. A miss
        is at most as likely as without a threshold, divided by the probability to be shown
        (docs/guarantees/keys.md). The risk of a miss is multiplied by that probability. A twentieth
        of the risk is kept for bounds that are wrong. Levels are rounded to a few different ones,
        towards wider intervals.
        """
        risk = 1 - level
        chances = np.ones(released.shape[1:])
        near = ~self.mask_nearly_always_shown(released, risk / 40)
        if near.any():
            chances[near] = self.bound_chance_of_being_shown(released[:, near], risk / 40)
        with np.errstate(divide="ignore"):
            steps = np.where(
                chances >= _SURELY,
                _SURELY,
                2.0 ** (np.floor(4 * np.log2(np.maximum(chances, 1e-300))) / 4),
            )
        levels: Floats = np.minimum(1 - 0.95 * risk * steps, 1 - 2.0**-53)
        return levels

    def to_json(self) -> Json:
        record = super().to_json()
        return {**record, "bars": [list(bar) for bar in self.bars]} if "bars" in record else record

    @classmethod
    def from_json(cls, data: Json) -> Any:
        return super().from_json({**data, "bars": tuple(Bar(*bar) for bar in data["bars"])})


def _find_least_threshold(tail: Callable[[int], float], failure: float) -> int:
    """Return the least whole t at which ``tail(t)`` is at most ``failure``.

    ``tail`` decreases in t. It is the probability that a key with threshold t is shown.
    """
    high = 1
    while tail(high) > failure:
        high *= 2
    return (
        _search.last_where(
            lambda t: tail(t) > failure, high // 2, high, middle=_search.whole_halfway
        )
        + 1
    )


def _find_bars(
    per_key: int, components: Sequence[int], failure: float, tail: Callable[[int, int], float]
) -> tuple[Bar, ...]:
    """Return a bar for each number in ``components``. A key of one person alone passes any of them
    with probability ``failure`` at most.

    Such a key's integers add up to ``per_key`` at most. ``tail(c, t)`` bounds the probability that
    ``c`` noises add up to t or more.
    """
    rest = failure / _REST
    shares = [failure - rest * (len(components) - 1), *(rest for _ in components[1:])]
    return tuple(
        Bar(c, per_key + _find_least_threshold(lambda t, c=c: tail(c, t) * _UP, share))  # type: ignore[misc]  # a default of c
        for c, share in zip(components, shares, strict=True)
    )


# Noise that is cut off -------------------------------------------------------------------------------------------------


class Truncated(Threshold, Pure):
    """Discrete Laplace noise within ``cut``: who has a count moves what is shown by no more than
    its rate, but at the cut."""

    __slots__ = ()

    if TYPE_CHECKING:  # fields of both kinds
        rate: Fraction
        cut: int

    @property
    def scale(self) -> Fraction:
        return 1 / self.rate

    def epsilon_for(self, distance: int) -> Fraction:
        return self.rate * distance

    def draw(self, size: int) -> Array:
        return _sampling.truncated_laplace(self.scale, self.cut, size)

    @property
    def deviation(self) -> float:
        """An upper bound on the standard deviation: that of the noise before it is cut off."""
        return LaplaceNoise(self.scale).deviation

    def quantile(self, level: float, terms: int = 1) -> int:
        """Return a t with P[|X| <= t] >= level, for the sum of some such variables: never beyond
        the cut."""
        return min(LaplaceNoise(self.scale).quantile(level, terms), terms * self.cut)

    def reach(self, level: float, terms: int) -> float:
        """Return how many deviations of the uncut noise bound any weighted sum of such noise with
        probability ``level``."""
        return LaplaceNoise(self.scale).reach(level, terms)

    def to_json(self) -> Json:
        return {**super().to_json(), "cut": str(self.cut)}

    @classmethod
    def from_json(cls, data: Json) -> Any:
        return super().from_json({**data, "cut": int(data["cut"])})


@register
@dataclass(frozen=True, slots=True)
class TruncatedThreshold(Truncated):
    """Shows a count and noise X on {-cut, ..., cut}, P[x] proportional to exp(-rate |x|), if they
    exceed ``cut`` together; for a share ``lower`` of the keys, drawn by coins, the same with a cut
    that is lower by 1.

    Formal guarantee: a count moved by 1 changes this by (rate, p) in either direction, and a key
    that one person alone has is shown with probability p, where p is the mean of P[X = cut] over
    the coin. Where the coin is sure, no (epsilon, delta)-private rule for one key a person shows
    any key more often (Desfontaines, Voss, Gipson and Mandayam 2022).
    """

    name: ClassVar[str] = "truncated threshold"
    proof: ClassVar[str] = "keys.md"
    rate: Fraction
    cut: int
    lower: Fraction = Fraction(0)

    @staticmethod
    def with_least_cut(keys: int, epsilon: Fraction, failure: Fraction) -> TruncatedThreshold:
        """Return the mechanism with the least cut for a person who adds 1 to the counts of at most
        `keys` keys.

        ``epsilon`` is the privacy loss for all of them, and ``failure`` the probability that any is
        shown which one person alone has. The least whole cut leaves a part of ``failure`` unused. A
        coin uses it up: it lowers the cut by 1 for some keys.
        """
        rate = epsilon / keys
        each, r = split_failure(failure, keys), float(rate)
        # Noise X truncated to -k to k has P[X = k] >= exp(-r k) tanh(r / 2), which must be at most
        # ``each``. So no cut k below this one will do.
        cut = (
            max(1, math.floor(math.log(math.tanh(r / 2) / each) / r))
            if math.tanh(r / 2) > each
            else 1
        )
        # The least cut is this one or the next, unless epsilon is small. Then it may be far.
        cut += (
            _find_least_threshold(lambda t: _compute_chance_of_cut(r, cut - 1 + t) * _UP, each) - 1
        )
        if cut == 1:
            return TruncatedThreshold(rate, cut)
        high, low = _compute_chance_of_cut(r, cut - 1) * _UP, _compute_chance_of_cut(r, cut) * _UP
        # The coin lowers the cut for this part of the keys, so that the mean chance is ``each``.
        part = (each - low) / (high - low) * (1 - 1e-9)
        return TruncatedThreshold(rate, cut, Fraction(math.floor(max(0.0, part) * _COIN), _COIN))

    @property
    def bars(self) -> tuple[Bar, ...]:
        """The bars for intervals, with the higher cut: a key is shown no less often."""
        return (Bar(1, self.cut + 1),)

    @property
    def half(self) -> float:
        return self.cut + 0.5 - float(self.lower)

    def release(self, counts: Array) -> Array:
        """Return the counts with noise where they pass the threshold, and `_HIDDEN` elsewhere.

        For keys with the lower cut, noise equal to the higher cut is drawn again.
        """
        lower = np.zeros(counts.size, dtype=bool)
        if self.lower:
            words = np.frombuffer(_sampling.random_bytes(4 * counts.size), dtype="<u4")
            lower = words < int(self.lower * _COIN)
        noise = self.draw(counts.size)
        # How often the loop runs does not depend on the counts.
        while (beyond := lower & (np.abs(noise) == self.cut)).any():
            noise[beyond] = self.draw(int(beyond.sum()))
        noisy: Array = counts + noise.reshape(counts.shape)
        shown = (noisy > self.cut) | (lower.reshape(counts.shape) & (noisy == self.cut))
        return np.where(shown, noisy, _HIDDEN)

    def shows(self, noisy: Array) -> NDArray[np.bool_]:
        passed: NDArray[np.bool_] = np.asarray(noisy[0] > _HIDDEN // 32, dtype=bool)
        return passed

    def quantile(self, level: float, terms: int = 1) -> int:
        if terms == 1 and self.cut < 2**20:
            x = np.arange(self.cut + 1.0)
            return sum_quantile(np.exp(-float(self.rate) * x), level, 1)
        return Truncated.quantile(self, level, terms)

    def above(self, components: int, t: Floats) -> Floats:
        """Return P[X >= t], averaged over the coin that chooses between the two cuts."""
        share = float(self.lower)
        higher = self._above(self.cut, t)
        return higher if not share else share * self._above(self.cut - 1, t) + (1 - share) * higher

    def _above(self, cut: int, t: Floats) -> Floats:
        return _compute_truncated_tail(float(self.rate), cut, t)

    def to_json(self) -> Json:
        """Return the name and the parameters for a receipt, without ``lower`` if it is 0."""
        record = Truncated.to_json(self)
        return (
            record
            if self.lower
            else {name: value for name, value in record.items() if name != "lower"}
        )

    @classmethod
    def from_json(cls, data: Json) -> TruncatedThreshold:
        return cls(Fraction(data["rate"]), int(data["cut"]), Fraction(data.get("lower", 0)))


def _compute_chance_of_cut(rate: float, cut: int) -> float:
    """Return P[X = cut] of discrete Laplace noise X with this rate, truncated to -cut to cut."""
    # With q = exp(-rate) it is q**cut (1 - q) / (1 + q - 2 q**(cut + 1)). By expm1, since that
    # denominator loses its digits where the rate is small.
    return (
        math.exp(-rate * cut)
        * -math.expm1(-rate)
        / (math.expm1(-rate) - 2 * math.expm1(-rate * (cut + 1)))
    )


def _compute_truncated_tail(rate: float, cut: int, t: Floats) -> Floats:
    """Return P[X >= t] of discrete Laplace noise X with this rate, truncated to -cut to cut."""
    t = np.ceil(t)
    upper = np.maximum(t, 1 - t)  # from 1 to the cut it is a sum of a geometric series
    with np.errstate(under="ignore"):
        mass = np.exp(-rate * np.minimum(upper, cut + 1.0)) - math.exp(-rate * (cut + 1))
    tail = np.where(
        upper > cut, 0.0, mass / (1 + math.exp(-rate) - 2 * math.exp(-rate * (cut + 1)))
    )
    probability: Floats = np.where(t >= 1, tail, 1 - tail)
    return probability


@register
@dataclass(frozen=True, slots=True)
class TruncatedVector(Truncated):
    """Show counts of several kinds with truncated noise on each, if the key passes a bar.

    The first bar is on the first count alone.

    Formal guarantee: non-negative numbers that add up to ``per_key`` at most, added to a key,
    change this by (rate * per_key, P[X > cut - per_key]) in either direction. A key that one person
    alone has, whose numbers add up to ``per_key`` at most, is shown with probability at most the
    ``failure`` that `with_least_bars` was given (docs/guarantees/keys.md).
    """

    name: ClassVar[str] = "truncated thresholds"
    proof: ClassVar[str] = "keys.md"
    rate: Fraction
    cut: int
    bars: tuple[Bar, ...]

    @staticmethod
    def with_least_bars(
        scale: Fraction, per_key: int, components: Sequence[int], keys: int, failure: Fraction
    ) -> TruncatedVector:
        """Return the mechanism with the least thresholds that keep keys of one person alone secret.

        Such a person has at most `keys` keys, and adds at most ``per_key`` to each. ``failure`` is
        the probability with which any of these may be shown. ``scale`` is that of the noise, and
        ``components`` has the number of integers that each bar sums up.
        """
        rate, failure_per_key = float(1 / scale), split_failure(failure, keys)
        first = failure_per_key * (1 - (len(components) - 1) / _REST)

        def beyond(cut: int) -> float:
            """Return a bound on the probability that a key of one person alone passes the first
            bar, if the noise is truncated at ``cut``."""
            return (
                float(_compute_truncated_tail(rate, cut, np.array(cut - per_key + 1.0))) * _UP
                if cut > per_key
                else 1.0
            )

        cut = _find_least_threshold(beyond, first)
        # The probability that noise without truncation lies within the cut.
        inside = 1 - 2 * laplace_tail(rate, 1, cut + 1)
        rest = []
        for c in components[1:]:

            def tail(t: int, c: int = c) -> float:
                """Return a bound on how likely ``c`` truncated noises add up to ``t`` or more."""
                return float(laplace_tail(rate, c, t) / inside**c * _UP)

            rest.append(Bar(c, per_key + _find_least_threshold(tail, failure_per_key / _REST)))
        return TruncatedVector(1 / scale, cut, (Bar(components[0], cut + 1), *rest))

    def above(self, components: int, t: Floats) -> Floats:
        """Return a lower bound on P[X >= t] for the sum X of ``components`` truncated noises. It is
        exact for one noise."""
        rate = float(self.rate)
        if components == 1:
            return _compute_truncated_tail(rate, self.cut, t)
        cut_off = 2 * components * float(laplace_tail(rate, 1, self.cut + 1))
        return np.maximum(_laplace_above(rate, components, t) - cut_off, 0.0)


# Noise that is not -----------------------------------------------------------------------------------------------------


@register
@dataclass(frozen=True)
class LaplaceThreshold(Threshold, LaplaceNoise):
    """Discrete Laplace noise on the counts of each key, shown only for keys that pass a threshold.

    Formal guarantee: that of the noise on the integers of keys which others have too. If one person
    alone has `keys` keys, any of them is shown with probability at most the ``failure`` that
    `with_least_bars` was given.
    """

    name: ClassVar[str] = "laplace threshold"
    proof: ClassVar[str] = "keys.md"
    bars: tuple[Bar, ...]

    @staticmethod
    def with_least_bars(
        scale: Fraction, per_key: int, components: Sequence[int], keys: int, failure: Fraction
    ) -> LaplaceThreshold:
        """Return Laplace noise with the least thresholds that keep keys of one person alone secret.

        Such a person has at most `keys` keys, and adds at most ``per_key`` to each. ``failure`` is
        the probability with which any of these may be shown. ``scale`` is that of the noise, and
        ``components`` has the number of integers that each bar sums up.
        """
        rate = float(1 / scale)
        each = split_failure(failure, keys)
        return LaplaceThreshold(
            scale, _find_bars(per_key, components, each, lambda c, t: laplace_tail(rate, c, t))
        )

    def above(self, components: int, t: Floats) -> Floats:
        return _laplace_above(float(1 / self.scale), components, t)


def laplace_tail(a: float, components: int, t: Any) -> Any:
    """Return P[X >= t] for t >= 1, where X sums ``components`` discrete Laplace noises of rate
    ``a``.

    ``t`` may be an array. The closed form: let c be the number of components, and q = exp(-a). X is
    the difference of two negative binomial variables. Given the smaller one, b, the other is b + t
    or more with probability sum_i C(b + t + c - 1, i) (1 - q)**i q**(b + t + c - 1 - i), i < c. The
    mean of that over b follows from the factorial moments of b. All terms are positive, so none
    cancel.
    """
    c, q = components, math.exp(-a)
    p = -math.expm1(-a)
    ratio = q * q / -math.expm1(-2 * a)
    m = t + c - 1
    total = 0.0
    for i in range(c):
        inner = sum(_choose(m, i - j) * math.comb(c + j - 1, j) * ratio**j for j in range(i + 1))
        total = total + p**i * inner * q ** (c - 1 - i)
    with np.errstate(under="ignore"):
        return np.exp(-a * t) * total / (1 + q) ** c


def _laplace_above(a: float, components: int, t: Floats) -> Floats:
    """Return P[X >= t] for any t, where X sums ``components`` discrete Laplace noises of rate
    ``a``."""
    t = np.ceil(t)
    tail = laplace_tail(a, components, np.minimum(np.maximum(t, 1 - t), _FAR / a))
    probability: Floats = np.where(t >= 1, tail, 1 - tail)
    return probability


def _choose(n: Any, k: int) -> float:
    """Return the binomial coefficient of n over k, in doubles; ``n`` may be a large number or an
    array."""
    product = 1.0
    for i in range(k):
        product = product * ((n - i) / (i + 1))
    return product


@register
@dataclass(frozen=True)
class GaussianThreshold(Threshold, GaussianNoise):
    """Discrete Gaussian noise on the counts of each key, shown only for keys that pass a threshold.

    Formal guarantee: that of the noise on the integers of keys which others have too. If one person
    alone has `keys` keys, any of them is shown with probability at most the ``failure`` that
    `with_least_bars` was given.
    """

    name: ClassVar[str] = "gaussian threshold"
    proof: ClassVar[str] = "keys.md"
    bars: tuple[Bar, ...]

    @staticmethod
    def with_least_bars(
        variance: Fraction, per_key: int, components: Sequence[int], keys: int, failure: Fraction
    ) -> GaussianThreshold:
        """Return Gaussian noise with the least thresholds that keep keys of one person alone
        secret.

        Such a person has at most `keys` keys, and adds at most ``per_key`` to each. ``failure`` is
        the probability with which any of these may be shown. ``variance`` is that of the noise, and
        ``components`` has the number of integers that each bar sums up.
        """
        each, v = split_failure(failure, keys), float(variance)
        return GaussianThreshold(
            variance, _find_bars(per_key, components, each, lambda c, t: gaussian_tail(v, c, t))
        )

    def above(self, components: int, t: Floats) -> Floats:
        """Return about P[X >= t] for the sum X of ``components`` Gaussian noises, by the continuous
        law. Intervals alone use it."""
        from scipy import special  # only for intervals: no privacy hangs on it

        t = np.ceil(t)
        probability: Floats = special.ndtr(-(t - 0.5) / (self.scale * math.sqrt(components)))
        return np.maximum(probability, 1e-300)

    @classmethod
    def from_json(cls, data: Json) -> Any:
        """Return the mechanism that a receipt describes. Old ledgers recorded one threshold
        ``least``, without ``bars``."""
        return super().from_json(
            data if "bars" in data else {**data, "bars": [(1, int(data["least"]))]}
        )


def gaussian_tail(variance: float, components: int, t: float) -> float:
    """Return an upper bound on P[X >= t] for the sum X of ``components`` discrete Gaussian noises.
    Below one deviation the bound is 1.

    P[X = s] is at most the density of N(0, c v) at s, times theta(v / 2)**(c - 1), where theta(w) =
    1 + 2 sum exp(-2 pi**2 w k**2) bounds a sum of that density over any shift of the integers, by
    Poisson's formula. Beyond one deviation the density is convex, so each term is below its
    integral over half a step to either side.
    """
    deviation = math.sqrt(variance * components)
    if t - 0.5 < deviation:
        return 1.0
    theta = 1 + 2 * math.exp(-(math.pi**2) * variance) / -math.expm1(-(math.pi**2) * variance)
    tail = math.erfc((t - 0.5) / deviation / math.sqrt(2)) / 2
    return float(min(1.0, tail * theta ** (components - 1)))


# Which threshold goes with which noise --------------------------------------------------------------------------------


def _choose_with_laplace(
    noise: Any, l1: int, per_key: int, components: Sequence[int], keys: int, failure: Fraction
) -> Threshold:
    """Return the mechanism that finds keys with Laplace noise.

    A person has at most ``keys`` keys, adds at most ``per_key`` to each, and moves all integers by
    ``l1`` at most. A bar is a threshold on the sum of the first integers of a key, and
    ``components`` has their number for each bar. ``failure`` is the probability that a key of one
    person alone is shown. Truncated noise is chosen if the first bar is on one integer.
    """
    if tuple(components) == (1,):
        return TruncatedThreshold.with_least_cut(l1, l1 / noise.scale, failure)
    if components[0] == 1:
        keys_moved = l1 // per_key
        return TruncatedVector.with_least_bars(
            noise.scale, per_key, components, keys_moved, failure
        )
    return LaplaceThreshold.with_least_bars(noise.scale, per_key, components, keys, failure)


def _choose_with_gaussian(
    noise: Any, l1: int, per_key: int, components: Sequence[int], keys: int, failure: Fraction
) -> Threshold:
    return GaussianThreshold.with_least_bars(noise.variance, per_key, components, keys, failure)


# For each kind of noise, a function that chooses the thresholds. Its arguments: the noise, ``l1``
# (the L1 distance by which a person moves all integers), ``per_key`` (the largest sum of one
# person's integers in a key), ``components`` (for each bar, how many integers it sums up), ``keys``
# (the most keys of a person), and ``failure``.
THRESHOLDS: dict[
    type[Noise], Callable[[Any, int, int, Sequence[int], int, Fraction], Threshold]
] = {
    LaplaceNoise: _choose_with_laplace,
    GaussianNoise: _choose_with_gaussian,
}


def choose_threshold(
    noise: Noise, l1: int, per_key: int, components: Sequence[int], keys: int, failure: Fraction
) -> Threshold:
    """Return the mechanism that finds group keys with this noise, with the least possible
    thresholds.

    It shows a key of one person alone with probability ``failure`` at most. A person has at most
    ``keys`` keys, adds at most ``per_key`` to each, and moves all integers by ``l1`` at most. There
    is a bar for each number in ``components``: it is on the sum of the first integers of a key.
    """
    check_finds_keys(type(noise))
    return THRESHOLDS[type(noise)](noise, l1, per_key, components, keys, failure)


def check_finds_keys(kind: type[Mechanism]) -> None:
    """Refuse a mechanism that cannot find group keys, since it has no threshold."""
    if kind not in THRESHOLDS:
        usable = " or ".join(repr(noise.name) for noise in THRESHOLDS)
        raise BadValue(
            f"mechanism={kind.name!r} finds no keys: leave it out, give mechanism={usable}, or list keys=[...]."
        )
