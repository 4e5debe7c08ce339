"""Tests of hypotheses: p-values of a release, with an estimate and its interval.

All of it is post-processing of noisy integers. Means and correlations are tested by bounds on the
tails of draws and noise together, so their level holds at every size. Shares and independence are
tested by samples that are drawn as if the hypothesis held, with noise of the law of the release.
docs/guarantees/tests.md tells what is proved and what is simulated.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from html import escape
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dpframe._answers.estimate import Estimate
from dpframe._answers.population import bound_difference
from dpframe._plans.aggregates import AGGREGATES, Measured
from dpframe._plans.plan import Cost, Plan, describe_own_guarantee, get_noisy_sums
from dpframe._plans.sampling import (
    ON_NUMBER,
    ON_SPREAD,
    Draws,
    bound_log_moment,
    find_least_risk,
    find_rate,
    list_rates,
)
from dpframe._questions.question import Release
from dpframe._types import Floats
from dpframe.mechanisms._base import Noise

PEOPLE = "the people are independent draws from the population, one row each"
_TABLES = 1999  # the number of tables that are drawn for each guess at the margins
CELLS = 2500  # the most cells of a table, since all drawn tables are held in memory
_LARGE = 1e6  # a mean of Poisson's law beyond which the normal law is as good
_ON_MEAN = 0.05  # the part of the risk of a correlation's test that each of the two means takes
_STEPS = np.linspace(0.0, 1.0, 5)  # steps across the interval of each mean
_REACH = 3.3  # how many standard errors from the estimate the guesses at a share are
# The guesses at the numbers in two groups, in half widths of their intervals.
_STEPS_OF_NUMBERS = ((0, 0), (-1, -1), (1, 1), (-1, 1), (1, -1))


@dataclass(frozen=True)
class HypothesisTest:
    """The answer to a test: its ``statistic``, its ``pvalue``, an ``estimate`` with its
    ``interval``, its price, and its assumptions.

    The p-value is two-sided. If the hypothesis holds, it is at most a level with at most the
    probability of that level, the noise included.
    """

    hypothesis: str  #: The hypothesis in words.
    statistic: float  #: The distance of the data from the hypothesis.
    pvalue: float  #: The largest probability of that, if it holds.
    estimate: float  #: The difference, share or correlation that was seen, with noise.
    interval: tuple[float, float]  #: The ends of its interval at `level`.
    of: str  #: The people that the estimate is about.
    level: float  #: The level of the interval.
    assumes: str  #: The assumptions of the p-value.
    plan: Plan = field(repr=False)  #: The question, with its mechanism and price.

    @property
    def cost(self) -> Cost:
        """The guarantee of the release by itself: ``epsilon`` and ``delta``.

        The ledger counts it by its accountant.
        """
        return self.plan.cost

    @property
    def dp(self) -> HypothesisTest:
        """The answer itself, which has its plan and its cost."""
        return self

    def _rows(self) -> list[tuple[str, str]]:
        """Return the names and the texts that are shown."""
        low, high = self.interval
        ends = (
            "" if math.isnan(low) else f", {100 * self.level:g} % interval {low:.4g} to {high:.4g}"
        )
        # No test has a p-value below one of these: the search ends, or no drawn sample is as far.
        least = "at most " if self.pvalue <= 1e-12 or self.pvalue == 1 / (_TABLES + 1) else ""
        return [
            ("hypothesis", self.hypothesis),
            ("p-value", f"{least}{self.pvalue:.3g} (statistic {self.statistic:.3g})"),
            ("estimate", f"{self.estimate:.4g}{ends}, {self.of}"),
            ("assumed", self.assumes),
            ("price", describe_own_guarantee(self.plan)),
        ]

    def __repr__(self) -> str:
        return "\n".join(f"{name:>10}  {text}" for name, text in self._rows())

    def _repr_html_(self) -> str:
        """Show the result of the test as an HTML table in a notebook."""
        cells = "".join(
            f"<tr><th scope='row'>{escape(a)}</th><td>{escape(b)}</td></tr>"
            for a, b in self._rows()
        )
        return f"<table><caption>test of a hypothesis</caption>{cells}</table>"


# Two means --------------------------------------------------------------------------------------


def make_means_test(
    release: Release, labels: tuple[Hashable, Hashable], level: float
) -> HypothesisTest:
    """Test that two groups have the same mean.

    ``labels`` name the groups, and ``level`` is the confidence of the interval.

    The p-value is the least risk at which the interval of their difference leaves out zero. So the
    two never contradict each other.
    """
    plan, raw = release[:2]
    m, groups = get_noisy_sums(plan, raw, plan.cells[0]), (slice(0, 1), slice(1, 2))
    labels = to_plain_label(labels[0]), to_plain_label(labels[1])
    draws = AGGREGATES[m.cell.aggregate].draws(m, 1 - level)
    assert draws is not None
    values = AGGREGATES[m.cell.aggregate].value(m)
    estimate, width = float(values[0] - values[1]), m.cell.upper - m.cell.lower
    error = float(np.hypot(*draws.error)) * width

    def excludes(risk: float) -> bool:
        low, high = bound_difference(m, groups, risk)
        return low > 0 or high < 0

    return HypothesisTest(
        f"the mean of {labels[0]!r} is that of {labels[1]!r}",
        estimate / error if error else 0.0,
        find_least_risk(excludes),
        estimate,
        bound_difference(m, groups, 1 - level),
        f"{labels[0]!r} less {labels[1]!r} in the population: noise and sampling",
        level,
        f"{PEOPLE}; each is in one group; values are clipped to the bounds",
        plan,
    )


def to_plain_label(label: Hashable) -> Hashable:
    """Return a key as it was typed, and not as numpy has it."""
    return cast(Hashable, label.item()) if isinstance(label, np.generic) else label


# Two shares -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoisyShares:
    """Noisy numbers of people and of those who say yes, in two groups; or many drawn ones.

    ``yes`` and ``n`` have the groups along the last axis. ``weights_in_yes`` and ``weights_in_n``
    are the weights of each noise in them, and ``spread`` is the standard deviation of a noise.
    """

    yes: Floats
    n: Floats
    weights_in_yes: Floats
    weights_in_n: Floats
    spread: float

    @property
    def people(self) -> Floats:
        """The numbers of people, at least one each."""
        return np.maximum(self.n, 1.0)

    @property
    def shares(self) -> Floats:
        """The shares of the groups."""
        return np.clip(self.yes / self.people, 0.0, 1.0)

    @property
    def estimate(self) -> Floats:
        """The share of the first group less that of the second."""
        return np.asarray(self.shares[..., 0] - self.shares[..., 1])

    def error(self, difference: Floats | float = 0.0) -> Floats:
        """Return the standard error of the estimate, if the shares differ by ``difference``.

        Both groups together say what the shares are then (Farrington and Manning 1990).
        """
        n = self.people
        part = n[..., 0] / (n[..., 0] + n[..., 1])
        both = part * self.shares[..., 0] + (1 - part) * self.shares[..., 1]
        yes, mixed, number = (
            math.fsum(x * y for x, y in zip(one, other, strict=True)) * self.spread**2
            for one, other in (
                (self.weights_in_yes, self.weights_in_yes),
                (self.weights_in_yes, self.weights_in_n),
                (self.weights_in_n, self.weights_in_n),
            )
        )
        variance = np.zeros_like(both)
        for group, moved in enumerate((difference * (1 - part), -difference * part)):
            share, people = np.minimum(np.maximum(both + moved, 0.0), 1.0), n[..., group]
            noise = yes - 2 * share * mixed + np.square(share) * number
            # A share of nobody, or of everybody, is not known better than by one person.
            draws = np.maximum(share * (1 - share), 1 / (people + 4))
            variance = variance + draws / people + noise / np.square(people)
        return np.asarray(np.sqrt(variance))

    @property
    def distance(self) -> Floats:
        """The estimate in standard errors, if the shares are equal."""
        return np.asarray(np.abs(self.estimate) / self.error())


def make_shares_test(
    release: Release, labels: tuple[Hashable, Hashable], level: float
) -> HypothesisTest:
    """Test that two groups have the same share.

    ``labels`` name the groups, and ``level`` is the confidence of the interval.

    The statistic is the difference in standard errors of draws and noise. Samples are drawn as if
    the shares were equal, with noise of the law that the release has. The number of people and the
    share are known up to noise, so the p-value is the largest of several guesses at them. The
    interval has the differences that the same critical value does not exclude.
    """
    plan, raw = release[:2]
    m = get_noisy_sums(plan, raw, plan.cells[0])
    seen = NoisyShares(
        m.values({"t1": 1.0}).astype(float),
        m.values({"n": 1.0}).astype(float),
        m.weights({"t1": 1.0}),
        m.weights({"n": 1.0}),
        m.noise.deviation,
    )
    labels = to_plain_label(labels[0]), to_plain_label(labels[1])
    text = plan.question.encode() + seen.yes.tobytes() + seen.n.tobytes()
    half = m.half_width({"n": 1.0}, 0.99)
    drawn = _draw_distances(seen, m.noise, half, SeededNumbers(text))
    distance, estimate = float(seen.distance), float(seen.estimate)
    p_value = float((drawn >= distance).sum(axis=1).max() + 1) / (_TABLES + 1)
    # The p-value is above 1 - level where the distance is not above this one.
    place = math.floor((1 - level) * (_TABLES + 1) * (1 + 1e-12))
    critical = float(np.sort(drawn, axis=1)[:, -place].max()) if place else math.inf
    return HypothesisTest(
        f"the share of {labels[0]!r} is that of {labels[1]!r}",
        distance if estimate >= 0 else -distance,
        p_value,
        estimate,
        enclose_shares_difference(seen, critical),
        f"{labels[0]!r} less {labels[1]!r} in the population: noise and sampling",
        level,
        f"{PEOPLE}; each is in one group; the p-value is by {_TABLES} drawn samples for each of "
        "several guesses at the numbers and the share",
        plan,
    )


def _draw_distances(seen: NoisyShares, noise: Noise, half: float, stream: SeededNumbers) -> Floats:
    """Return the distances of samples that are drawn as if two shares were equal.

    There is a row for each guess at the numbers of people and at the share, and a column for each
    sample. ``seen`` is the release, with this ``noise``, and ``half`` is half the width of the
    interval of a number of people. All guesses have the same random numbers.
    """
    terms = len(seen.weights_in_n)
    size = _TABLES * 2 * terms
    noises = noise.simulate(stream.draw_uniform(size), stream.draw_uniform(size))
    errors = noises.reshape(_TABLES, 2, terms)
    # A matrix product differs in the last bit between processors.
    yes_error, n_error = (
        sum(float(weight) * errors[..., place] for place, weight in enumerate(weights))
        for weights in (seen.weights_in_yes, seen.weights_in_n)
    )
    uniform = [stream.draw_uniform(_TABLES) for _ in range(2)]
    both = float((seen.people * seen.shares).sum() / seen.people.sum())
    reach = (
        _REACH * float(seen.error()) * math.sqrt(float(np.prod(seen.people))) / seen.people.sum()
    )
    guesses = dict.fromkeys(
        (*(max(0, round(n + step * half)) for n, step in zip(seen.n, steps, strict=True)), share)
        for steps in _STEPS_OF_NUMBERS
        for share in np.clip([both, both - reach, both + reach], 0.0, 1.0)
    )
    rows = []
    for first, second, share in guesses:
        numbers = np.array([first, second], dtype=float)
        yes = [draw_binomial(n, float(share), u) for n, u in zip(numbers, uniform, strict=True)]
        drawn = NoisyShares(
            np.stack(yes, axis=-1) + yes_error,
            numbers + n_error,
            seen.weights_in_yes,
            seen.weights_in_n,
            seen.spread,
        )
        rows.append(drawn.distance)
    return np.array(rows)


def draw_binomial(n: float, share: float, uniform: Floats) -> Floats:
    """Return numbers drawn by the binomial law of ``n`` draws, one for each uniform number.

    For large variances it is the normal law, rounded.
    """
    if not 0 < share < 1 or not n:
        return np.full(len(uniform), n * (share >= 1))
    mean, variance = n * share, n * share * (1 - share)
    spread = 10 * math.sqrt(variance) + 20
    if variance > _LARGE:
        steps = np.rint(np.linspace(mean - spread, mean + spread, 20_001))
        logs = -np.square(steps - mean) / (2 * variance)
    else:
        steps = np.arange(max(0, math.floor(mean - spread)), min(n, math.ceil(mean + spread)) + 1)
        # The logarithms of the law, up to a constant.
        ratios = np.log((n - steps[:-1]) / (steps[:-1] + 1)) + math.log(share / (1 - share))
        logs = np.concatenate([[0.0], np.cumsum(ratios)])
    law = np.cumsum(np.exp(logs - logs.max()))
    return np.asarray(steps[np.searchsorted(law / law[-1], uniform)], dtype=float)


def enclose_shares_difference(seen: NoisyShares, critical: float) -> tuple[float, float]:
    """Return the differences of two shares that lie within ``critical`` standard errors.

    Whether 0 is one of them follows from the distance itself, to the last digit.
    """
    estimate = float(seen.estimate)
    if float(seen.distance) <= critical:
        low, high = (_find_end_of_differences(seen, critical, far) for far in (-1.0, 1.0))
        return min(low, 0.0), max(high, 0.0)
    side = math.copysign(1.0, estimate)
    near = _find_end_of_differences(seen, critical, 0.0)
    near = near or side * math.ulp(0.0)  # 0 itself is excluded
    ends = near, _find_end_of_differences(seen, critical, side)
    return min(ends), max(ends)


def _find_end_of_differences(seen: NoisyShares, critical: float, far: float) -> float:
    """Return the last difference between the estimate and ``far`` that is not excluded.

    A difference is excluded if it is more than ``critical`` standard errors from the estimate.
    """
    estimate = float(seen.estimate)
    near, beyond = estimate, far
    for _ in range(3):
        steps = np.linspace(near, beyond, 201)
        one = NoisyShares(
            seen.yes[None], seen.n[None], seen.weights_in_yes, seen.weights_in_n, seen.spread
        )
        kept = np.abs(estimate - steps) <= critical * one.error(steps)
        first = int(np.argmin(kept)) if not kept.all() else len(steps)
        if first == len(steps):
            return beyond
        near, beyond = float(steps[max(first - 1, 0)]), float(steps[first])
    return near


# A correlation ----------------------------------------------------------------------------------


def make_correlation_test(
    release: Release, names: tuple[Hashable, Hashable], estimate: Estimate, level: float
) -> HypothesisTest:
    """Test that two columns are independent, by their covariance.

    ``names`` are the columns, and ``estimate`` is their correlation. ``level`` is the confidence of
    its interval.
    """
    plan, raw = release[:2]
    first, pair, second = (get_noisy_sums(plan, raw, cell) for cell in plan.cells)
    off, error = estimate_covariance(first, pair, second)
    p_value = find_least_risk(lambda risk: bool(are_excluded(first, pair, second, risk)[0]))
    return HypothesisTest(
        f"{names[0]!r} and {names[1]!r} are independent",
        off / error if error else 0.0,
        p_value,
        float(cast(float, estimate)),
        estimate.interval(level),
        "the correlation of the people in the table: noise only",
        level,
        f"{PEOPLE}; values are clipped to the bounds",
        plan,
    )


def estimate_covariance(first: Measured, pair: Measured, second: Measured) -> tuple[float, float]:
    """Return the sum of the products of two columns about their means, and its standard error.

    The standard error is that under independence. ``first``, ``pair`` and ``second`` are the noisy
    sums of a column, of both, and of the other column.
    """
    x, y = (AGGREGATES["mean"].draws(m, 0.05) for m in (first, second))
    assert x is not None
    assert y is not None
    means = [np.clip(d.total / np.maximum(d.n, 1.0), 0.0, 1.0) for d in (x, y)]
    sums = NoisyProducts.of(pair, *means)
    least = [np.clip(d.error**2 * np.maximum(d.n, 1.0), 0.0, 0.25) for d in (x, y)]
    variance = np.maximum(sums.n, 1.0) * least[0] * least[1] + sums.noise * pair.noise.deviation**2
    return float(sums.off[0]), float(np.sqrt(variance)[0])


@dataclass(frozen=True)
class NoisyProducts:
    """The noisy sum of (x - a)(y - b) for some a and b, and the weights of the noise in it."""

    off: Floats
    n: Floats
    weights: list[Floats]

    @staticmethod
    def of(pair: Measured, a: Floats, b: Floats) -> NoisyProducts:
        """Return the noisy sum of (x - a)(y - b) over the pairs of values.

        ``pair`` has the noisy sums of both columns.
        """
        n, t, s, ts = (pair.values({name: 1.0}).astype(float) for name in ("n", "t1", "s1", "st"))
        rows = [pair.weights({name: 1.0}) for name in ("n", "t1", "s1", "st")]
        weights = [d - a * c - b * e + a * b * f for f, e, c, d in zip(*rows, strict=True)]
        return NoisyProducts(ts - a * s - b * t + a * b * n, n, weights)

    @property
    def noise(self) -> Floats:
        """The variance of the noise, for noises of variance 1."""
        return np.asarray(sum(np.square(w) for w in self.weights))


@np.errstate(all="ignore")
def are_excluded(
    first: Measured, pair: Measured, second: Measured, risk: float
) -> NDArray[np.bool_]:
    """Return in which groups the independence of two columns is excluded at this risk.

    ``first``, ``pair`` and ``second`` are the noisy sums of a column, of both, and of the other
    column.

    Consider the sum of (x - a)(y - b), for means a and b. Under independence it is bounded by draws
    and noise together, by the Chernoff bound (``critical``). Independence is excluded if the noisy
    sum exceeds that for all a and b within their intervals. Parts of the risk are spent on these
    intervals, on the number of values and on their spread.
    """
    x, y = (AGGREGATES["mean"].draws(m, risk) for m in (first, second))
    assert x is not None
    assert y is not None
    a, b = (_span_interval(each, risk * _ON_MEAN) for each in (x, y))
    a, b = np.repeat(a, len(_STEPS), axis=0), np.tile(b, (len(_STEPS), 1))
    sums = NoisyProducts.of(pair, a, b)
    most = np.maximum(sums.n + pair.half_width({"n": 1.0}, 1 - risk * ON_NUMBER), 0.0)
    rate = find_rate(risk * (1 - 3 * ON_NUMBER - 2 * ON_SPREAD - 2 * _ON_MEAN))
    variance = x.variance(a) * y.variance(b)
    exponents = list_rates(rate, most * variance + sums.noise * pair.noise.deviation**2)
    noise = sum(pair.noise.cumulant(exponents * w) for w in sums.weights)
    above, below = np.maximum(a * b, (1 - a) * (1 - b)), np.maximum(a * (1 - b), b * (1 - a))
    bound = np.where(sums.off > 0, above, below)
    moments = most * bound_log_moment(exponents, bound, variance)
    critical = np.fmin.reduce((rate + moments + noise) / exponents, axis=0)
    return np.asarray((np.abs(sums.off) > critical).all(axis=0))


def _span_interval(draws: Draws, risk: float) -> Floats:
    """Return points from end to end of the interval of a mean."""
    low, high = draws.ends(find_rate(risk))
    return np.asarray(low + _STEPS[:, None] * (high - low))


# Independence in a table ------------------------------------------------------------------------


def make_independence_test(
    release: Release, rows: int, names: tuple[Hashable, Hashable]
) -> HypothesisTest:
    """Test that the rows and the columns of a table of counts are independent.

    ``rows`` is the number of rows of the table, and ``names`` are the two columns that make it.

    Tables are drawn as if they were. The noise hides the number of people and the margins, so the
    p-value is the largest of several guesses at them. The guesses at the number are its estimate
    and the ends of its interval. Those at the margins are at least once or twice their noise, or a
    person.
    """
    plan, raw = release[:2]
    noise, counts = plan.parts[0].noise, raw[0][0].astype(float).reshape(rows, -1)
    spread = noise.deviation
    stream = SeededNumbers(plan.question.encode() + counts.tobytes())
    seen = float(measure_distance(counts[None], spread)[0])
    half = noise.reach(0.99, counts.size) * spread * math.sqrt(counts.size)
    worst = 0.0
    for number in dict.fromkeys(max(0, round(counts.sum() + step * half)) for step in (-1, 0, 1)):
        for least in (0.0, max(spread, 1.0), 2 * max(spread, 1.0)):
            tables = _draw_tables(stream, counts, number, least, noise)
            worst = max(
                worst, (1 + int((measure_distance(tables, spread) >= seen).sum())) / (_TABLES + 1)
            )
    freedom = (rows - 1) * (counts.shape[1] - 1)
    people = max(float(counts.sum()), 1.0) * (min(counts.shape) - 1)
    return HypothesisTest(
        f"{names[0]!r} and {names[1]!r} are independent",
        seen,
        worst,
        min(1.0, math.sqrt(max(0.0, seen - freedom) / people)),
        (math.nan, math.nan),
        "Cramer's V less what chance adds, at least 0; it has no interval",
        0.95,
        f"{PEOPLE}; the p-value is by {_TABLES} drawn tables for each of several guesses at the "
        "margins",
        plan,
    )


def measure_distance(tables: Floats, spread: float) -> Floats:
    """Return how far tables of counts are from independence: from the products of their margins.

    ``spread`` is the standard deviation of the noise in a count.

    It is a sum of squares, each over the count to expect and the variance of the noise.
    """
    total = np.maximum(tables.sum(axis=(1, 2)), 1.0)[:, None, None]
    margins = (
        np.maximum(tables.sum(axis=2), 0.0)[:, :, None],
        np.maximum(tables.sum(axis=1), 0.0)[:, None, :],
    )
    expected = margins[0] * margins[1] / total
    return np.asarray(
        (np.square(tables - expected) / (expected + spread**2 + 1e-9)).sum(axis=(1, 2))
    )


class SeededNumbers:
    """Numbers that follow from a seed alone, so that the same release has the same p-value.

    No noise that leaves is made of them.
    """

    def __init__(self, seed: bytes):
        self._seed, self._part = hashlib.blake2b(seed, digest_size=32).digest(), 0

    def draw_uniform(self, size: int) -> Floats:
        """Return uniform numbers between 0 and 1, never 0 or 1."""
        self._part += 1
        digest = hashlib.shake_256(self._seed + self._part.to_bytes(8, "big")).digest(8 * size)
        return np.asarray(((np.frombuffer(digest, dtype="<u8") >> np.uint64(12)) + 0.5) * 2.0**-52)

    def draw_poisson(self, mean: float, size: int) -> Floats:
        """Return ``size`` numbers drawn by Poisson's law with this mean.

        For large means it is the normal law, rounded.
        """
        if mean > _LARGE:
            normal = np.sqrt(-2 * np.log(self.draw_uniform(size))) * np.cos(
                2 * np.pi * self.draw_uniform(size)
            )
            return np.asarray(np.rint(mean + math.sqrt(mean) * normal))
        spread = 10 * math.sqrt(mean) + 20
        least = max(0, math.floor(mean - spread))
        steps = np.arange(least, math.ceil(mean + spread))
        if not mean:
            return np.zeros(size)
        # The logarithms of the law, up to a constant.
        logs = steps * math.log(mean) - np.cumsum(np.log(np.maximum(steps, 1)))
        law = np.cumsum(np.exp(logs - logs.max()))
        return np.asarray(
            least + np.searchsorted(law / law[-1], self.draw_uniform(size)), dtype=float
        )


def _draw_tables(
    stream: SeededNumbers, counts: Floats, number: int, least: float, noise: Noise
) -> Floats:
    """Return noisy tables with independent rows and columns, each count by Poisson's law.

    A test of independence compares the released ``counts`` with them. ``stream`` has the random
    numbers.

    ``number`` is the number of people to expect, and ``least`` the least margin.
    """
    shares = []
    for axis in (1, 0):
        margin = np.maximum(counts.sum(axis=axis), least)
        total = margin.sum()
        shares.append(margin / total if total > 0 else np.full(len(margin), 1 / len(margin)))
    means = number * np.outer(*shares).ravel()
    exact = np.stack([stream.draw_poisson(float(mean), _TABLES) for mean in means], axis=1)
    simulated = noise.simulate(stream.draw_uniform(exact.size), stream.draw_uniform(exact.size))
    return np.asarray((exact + simulated.reshape(exact.shape)).reshape(_TABLES, *counts.shape))
