"""Thresholds on noisy counts: which keys many people share, and the counts themselves
(docs/guarantees/keys.md).

Each kind adds its noise to integers, a row a component and a column a key, and `shows` tells which
columns may leave. What leaves of these are the noisy integers: a threshold costs no more with its
counts than without.
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
_HIDDEN = -(2**60)  # of a count that is not shown
_COIN = 2**32
_REST = 16  # of the failure, what each bar but the first one gets
_FAR = 700.0  # deviations or rates beyond which a tail is no double
_SURELY = 0.999  # a key that was shown as often as that counts as if it always were


class Bar(NamedTuple):
    """Condition for a key to be shown: the sum of its first ``components`` noisy integers is at
    least ``least``."""

    components: int
    least: int


def each_of(failure: Fraction, keys: int) -> float:
    """Return the largest probability, rounded down, such that one of `keys` independent events has at most
    ``failure``."""
    return -math.expm1(math.log1p(-float(failure) * (1 - 1e-12)) / keys) / _UP


class Threshold(Noise):
    """The base of the kinds: which keys are shown, and how likely each of these was to be shown."""

    __slots__ = ()

    named = False  # whatever the noise below it is
    automatic = False

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

    def shown_at_least(self, noisy: Array, risk: float) -> Floats:
        """Return a lower bound on the probability with which each released key passed the
        threshold. The bounds are wrong with probability ``risk`` at most. Intervals need them,
        since released counts tend to be too large.

        A count n that shows y has passed T <= y, so of all n with P[X >= y - n] < r P[X >= T - n]
        the chance of the true one to be among them is r, given that it shows; and of the others the
        least one is shown least often.
        """
        chances = np.zeros(noisy.shape[1:])
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

    def mask_surely_shown(self, noisy: Array, risk: float) -> NDArray[np.bool_]:
        """Return a mask of the keys whose counts are so far above a threshold that they nearly
        always pass it. Their probability is `_SURELY` or more, so `shown_at_least` need not be
        searched for them.

        With P[X >= a] below r `_SURELY` and P[X >= -b] at least `_SURELY`, a key that shows y >= T + a + b has more than y - a,
        since P[X >= a] is below r P[X >= T - (y - a)]; and whoever has that much is shown that often.
        """
        sure = np.zeros(noisy.shape[1:], dtype=bool)
        far: Floats = np.ldexp(
            1.0, np.arange(60)
        )  # near enough: which keys are searched for changes nothing
        for components, least in self.bars:
            above = self.above(components, far) < risk / len(self.bars) * _SURELY
            below = self.above(components, -far) >= _SURELY
            if above.any() and below.any():
                bar = least + far[above.argmax()] + far[below.argmax()]
                sure |= np.asarray(noisy[:components].sum(axis=0).astype(np.float64) >= bar)
        return sure

    def levels(self, released: Array, level: float) -> Floats:
        """Return for each released key the confidence level to use for its interval. An interval
        for noise without a threshold then covers with probability ``level``, given that the key was
        released.

        A miss is as likely as it is without a threshold, divided by the chance to be shown
        (docs/guarantees/keys.md). Rounded to a few different levels, towards wider intervals.
        """
        risk = 1 - level
        chances = np.ones(released.shape[1:])
        near = ~self.mask_surely_shown(released, risk / 40)
        if near.any():
            chances[near] = self.shown_at_least(released[:, near], risk / 40)
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


def _least(above: Callable[[int], float], each: float) -> int:
    """Return the least whole number t at which the decreasing function ``above`` is at most
    ``each``: a threshold with that probability."""
    high = 1
    while above(high) > each:
        high *= 2
    return (
        _search.last_where(lambda t: above(t) > each, high // 2, high, middle=_search.whole_halfway)
        + 1
    )


def _bars(
    per_key: int, components: Sequence[int], each: float, above: Callable[[int, int], float]
) -> tuple[Bar, ...]:
    """Return the thresholds that a key of a single person passes with probability ``each`` at most.
    Such a key's integers add up to ``per_key`` at most. ``above(c, t)`` bounds the probability that
    ``c`` noises add up to t."""
    rest = each / _REST
    shares = [each - rest * (len(components) - 1), *(rest for _ in components[1:])]
    return tuple(
        Bar(c, per_key + _least(lambda t, c=c: above(c, t) * _UP, share))  # type: ignore[misc]  # a default of c
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
    def for_price(moved: int, epsilon: Fraction, failure: Fraction) -> TruncatedThreshold:
        """Return the mechanism with the least cut for a person who moves `moved` counts by 1.
        ``failure`` is the probability with which a key of one person alone may be shown. A coin
        spends what the whole number leaves of it."""
        rate = epsilon / moved
        each, a = each_of(failure, moved), float(rate)
        # exp(-a k) tanh(a / 2) bounds P[X = k] from below, so no smaller cut will do.
        cut = (
            max(1, math.floor(math.log(math.tanh(a / 2) / each) / a))
            if math.tanh(a / 2) > each
            else 1
        )
        # It is this or the next where the price is not small; where it is, many further: hence no
        # step by step.
        cut += _least(lambda t: _at_cut(a, cut - 1 + t) * _UP, each) - 1
        if cut == 1:
            return TruncatedThreshold(rate, cut)
        high, low = _at_cut(a, cut - 1) * _UP, _at_cut(a, cut) * _UP
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
        """Return the counts with noise where they pass the threshold. All others are replaced by a
        number far below any count."""
        lower = np.zeros(counts.size, dtype=bool)
        if self.lower:
            words = np.frombuffer(_sampling.random_bytes(4 * counts.size), dtype="<u4")
            lower = words < int(self.lower * _COIN)
        noise = self.draw(counts.size)
        while (
            beyond := lower & (np.abs(noise) == self.cut)
        ).any():  # the counts have no part in how often
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
        share = float(self.lower)
        higher = self._above(self.cut, t)
        return higher if not share else share * self._above(self.cut - 1, t) + (1 - share) * higher

    def _above(self, k: int, t: Floats) -> Floats:
        return _truncated_tail(float(self.rate), k, t)

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


def _at_cut(a: float, cut: int) -> float:
    # By expm1, since 1 + q - 2 q**(cut + 1) loses its digits where a is small.
    return math.exp(-a * cut) * -math.expm1(-a) / (math.expm1(-a) - 2 * math.expm1(-a * (cut + 1)))


def _truncated_tail(a: float, k: int, t: Floats) -> Floats:
    """Return P[X >= t] of discrete Laplace noise X with rate ``a``, truncated to -k to k."""
    t = np.ceil(t)
    upper = np.maximum(t, 1 - t)  # from 1 to the cut it is a sum of a geometric series
    with np.errstate(under="ignore"):
        mass = np.exp(-a * np.minimum(upper, k + 1.0)) - math.exp(-a * (k + 1))
    tail = np.where(upper > k, 0.0, mass / (1 + math.exp(-a) - 2 * math.exp(-a * (k + 1))))
    probability: Floats = np.where(t >= 1, tail, 1 - tail)
    return probability


@register
@dataclass(frozen=True, slots=True)
class TruncatedVector(Truncated):
    """Shows counts of several kinds with such noise on each, if a bar is passed: the first is on
    the first of them alone.

    Formal guarantee: non-negative numbers that add up to ``per_key`` at most, added to a key,
    change this by (rate * per_key, P[X > cut - per_key]) in either direction; and a key that one
    person alone has, whose numbers add up to so much, is shown with the probability that `at` was
    given, at most (docs/guarantees/keys.md).
    """

    name: ClassVar[str] = "truncated thresholds"
    proof: ClassVar[str] = "keys.md"
    rate: Fraction
    cut: int
    bars: tuple[Bar, ...]

    @staticmethod
    def at(
        scale: Fraction, per_key: int, components: Sequence[int], moved: int, failure: Fraction
    ) -> TruncatedVector:
        """Return the mechanism with the least thresholds that keep keys of one person alone secret.
        Such a person moves `moved` keys, by ``per_key`` at most each. ``failure`` is the
        probability with which such a key may be shown."""
        a, each = float(1 / scale), each_of(failure, moved)
        first = each * (1 - (len(components) - 1) / _REST)

        def beyond(cut: int) -> float:
            """Return a bound on how likely a key of one person alone passes, if the noise is
            truncated at ``cut``."""
            return (
                float(_truncated_tail(a, cut, np.array(cut - per_key + 1.0))) * _UP
                if cut > per_key
                else 1.0
            )

        cut = _least(beyond, first)
        inside = 1 - 2 * laplace_tail(a, 1, cut + 1)
        rest = []
        for c in components[1:]:

            def tail(t: int, c: int = c) -> float:
                """Return a bound on how likely ``c`` truncated noises add up to ``t`` or more."""
                return float(laplace_tail(a, c, t) / inside**c * _UP)

            rest.append(Bar(c, per_key + _least(tail, each / _REST)))
        return TruncatedVector(1 / scale, cut, (Bar(components[0], cut + 1), *rest))

    def above(self, components: int, t: Floats) -> Floats:
        """Return a lower bound on P[X >= t] for the sum X of ``components`` truncated noises. It is
        exact for one noise."""
        a = float(self.rate)
        if components == 1:
            return _truncated_tail(a, self.cut, t)
        cut_off = 2 * components * float(laplace_tail(a, 1, self.cut + 1))
        return np.maximum(_laplace_above(a, components, t) - cut_off, 0.0)


# Noise that is not -----------------------------------------------------------------------------------------------------


@register
@dataclass(frozen=True)
class LaplaceThreshold(Threshold, LaplaceNoise):
    """Discrete Laplace noise on the counts of each key, shown only for keys that pass a threshold.

    Formal guarantee: that of the noise on the integers of keys which others have too; and a key
    that one person alone has is shown with the probability that `at` was given, at most, in any of
    `keys` keys.
    """

    name: ClassVar[str] = "laplace threshold"
    proof: ClassVar[str] = "keys.md"
    bars: tuple[Bar, ...]

    @staticmethod
    def at(
        scale: Fraction, per_key: int, components: Sequence[int], keys: int, failure: Fraction
    ) -> LaplaceThreshold:
        """Return Laplace noise with the least thresholds that keep keys of one person alone secret.
        Such a person has `keys` keys, and contributes at most ``per_key`` to each. ``failure`` is
        the probability with which such a key may be shown."""
        a = float(1 / scale)
        each = each_of(failure, keys)
        return LaplaceThreshold(
            scale, _bars(per_key, components, each, lambda c, t: laplace_tail(a, c, t))
        )

    def above(self, components: int, t: Floats) -> Floats:
        return _laplace_above(float(1 / self.scale), components, t)


def laplace_tail(a: float, components: int, t: Any) -> Any:
    """Return P[X >= t] for t >= 1, where X sums ``components`` discrete Laplace noises of rate
    ``a``, in closed form. X is the difference of two negative binomial variables.

    Given the smaller one, b, the other is b + t or more with probability sum_i C(b + t + c - 1, i)
    (1 - q)**i q**(b + t + c - 1 - i), i < c; and the mean of that over b follows from the factorial
    moments of b. All terms are positive.
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

    Formal guarantee: that of the noise on the integers of keys which others have too; and a key
    that one person alone has is shown with the probability that `at` was given, at most, in any of
    `keys` keys.
    """

    name: ClassVar[str] = "gaussian threshold"
    proof: ClassVar[str] = "keys.md"
    bars: tuple[Bar, ...]

    @staticmethod
    def at(
        variance: Fraction, per_key: int, components: Sequence[int], keys: int, failure: Fraction
    ) -> GaussianThreshold:
        """Return Gaussian noise with the least thresholds that keep keys of one person alone
        secret. Such a person has `keys` keys, and contributes at most ``per_key`` to each.
        ``failure`` is the probability with which such a key may be shown."""
        each, v = each_of(failure, keys), float(variance)
        return GaussianThreshold(
            variance, _bars(per_key, components, each, lambda c, t: gaussian_tail(v, c, t))
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


def _beside_laplace(
    noise: Any, l1: int, per_key: int, components: Sequence[int], keys: int, failure: Fraction
) -> Threshold:
    """Return the threshold mechanism that finds keys with Laplace noise. Truncated noise is chosen
    wherever the integers of a key allow it."""
    if tuple(components) == (1,):
        return TruncatedThreshold.for_price(l1, l1 / noise.scale, failure)
    if components[0] == 1:
        moved = l1 // per_key  # of keys
        return TruncatedVector.at(noise.scale, per_key, components, moved, failure)
    return LaplaceThreshold.at(noise.scale, per_key, components, keys, failure)


def _beside_gaussian(
    noise: Any, l1: int, per_key: int, components: Sequence[int], keys: int, failure: Fraction
) -> Threshold:
    return GaussianThreshold.at(noise.variance, per_key, components, keys, failure)


# Each takes the noise, the L1 distance by which a person moves all integers, the largest sum of one
# person's integers in a key (``per_key``), the numbers of components whose sums may show a key, the
# keys of a person, and how often such a key may show.
THRESHOLDS: dict[
    type[Noise], Callable[[Any, int, int, Sequence[int], int, Fraction], Threshold]
] = {
    LaplaceNoise: _beside_laplace,
    GaussianNoise: _beside_gaussian,
}


def beside(
    noise: Noise, l1: int, per_key: int, components: Sequence[int], keys: int, failure: Fraction
) -> Threshold:
    """Return the threshold mechanism for some noise that finds group keys. It shows a key of one
    person alone with probability ``failure`` at most, at the least possible threshold. A person has
    ``keys`` keys and adds at most ``per_key`` to each."""
    check_finds_keys(type(noise))
    return THRESHOLDS[type(noise)](noise, l1, per_key, components, keys, failure)


def check_finds_keys(kind: type[Mechanism]) -> None:
    """Refuse a mechanism that cannot find group keys, since it has no threshold."""
    if kind not in THRESHOLDS:
        usable = " or ".join(repr(noise.name) for noise in THRESHOLDS)
        raise BadValue(
            f"mechanism={kind.name!r} finds no keys: leave it out, give mechanism={usable}, or list keys=[...]."
        )
