"""How much privacy two sets of draws show to be lost: bounds from below that hold with high probability."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.noisy_max import NoisyMax

FALSE_ALARM = 1e-7  # of each bound; a test makes ten at most


class Given(NamedTuple):
    """What a verb gave to its noise."""

    noise: Any
    integers: np.ndarray[Any, Any]


# The loss that is seen -----------------------------------------------------------------------------------------


def low_bit(values: Any) -> Any:
    """The exponent of the last binary digit of each number: 0 for odd integers, negative for fractions."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    digits = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    last = digits & -digits
    return np.where(digits == 0, 99.0, exponent - 53 + np.log2(np.maximum(last, 1)))


def features(draws: Any, likelihood: Callable[[Any], Any] | None) -> list[Any]:
    """Numbers whose thresholds are the events: components, their last digits, sums, and the likelihood ratio."""
    components = [draws[:, i].astype(np.float64) for i in range(min(draws.shape[1], 24))]
    found = [*components, *map(low_bit, components[:6])]
    if len(components) > 1:
        found.append(np.sum(components, axis=0))
        found += [a - b for a, b in itertools.pairwise(components)]
    if likelihood is not None:
        found.append(likelihood(draws))
    return found


def loss_bound(one: Any, two: Any, delta: float = 0.0, likelihood: Any = None) -> float:
    """With probability 1 - FALSE_ALARM the privacy loss of the two laws, beyond delta, is at least this."""
    train, test = ([d[: len(d) // 2] for d in (one, two)], [d[len(d) // 2 :] for d in (one, two)])
    best: tuple[float, int, int, float] = (-math.inf, 0, 0, 0.0)
    for feature, (a, b) in enumerate(zip(*(features(d, likelihood) for d in train), strict=True)):
        thresholds = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0, 1, 41), method="nearest"))
        for event, (p, q) in enumerate(zip(hits(a, thresholds), hits(b, thresholds), strict=True)):
            for swapped, (p_, n, q_, m) in enumerate([(p, len(a), q, len(b)), (q, len(b), p, len(a))]):
                seen = _ratio(p_, n, q_, m, delta, 1e-3)
                top = int(np.argmax(seen))
                if seen[top] > best[0]:
                    best = (float(seen[top]), feature, 2 * event + swapped, float(thresholds[top]))
    _, feature, event, threshold = best
    a, b = (features(d, likelihood)[feature] for d in (test[::-1] if event % 2 else test))
    p, q = (hits(x, np.array([threshold]))[event // 2] for x in (a, b))
    return float(_ratio(p, len(a), q, len(b), delta, FALSE_ALARM)[0])


def hits(x: Any, thresholds: Any) -> tuple[Any, Any, Any]:
    """How many draws are at least, at most, and at each threshold."""
    x = np.sort(x)
    below, up_to = (np.searchsorted(x, thresholds, side=side) for side in ("left", "right"))
    return len(x) - below, up_to, up_to - below


def _ratio(p: Any, n: int, q: Any, m: int, delta: float, risk: float) -> Any:
    """ln((P - delta) / Q) with P and Q replaced by their Clopper-Pearson bounds, at half the risk each."""
    low = np.where(p > 0, stats.beta.ppf(risk / 2, np.maximum(p, 1), n - p + 1), 0.0)
    high = np.where(q < m, stats.beta.isf(risk / 2, q + 1, np.maximum(m - q, 1)), 1.0)
    return np.where(low > delta, np.log(np.maximum(low - delta, 1e-300) / high), -np.inf)


def likelihood_of(one: list[Given], two: list[Given]) -> Callable[[Any], Any] | None:
    """The logarithm of the ratio of the two laws, the best score there is; None for a choice."""
    if any(isinstance(g.noise, NoisyMax) for g in one):
        return None
    centres = [np.concatenate([g.integers.reshape(-1) for g in side]) for side in (one, two)]
    scales = np.concatenate([np.full(g.integers.size, float(g.noise.scale)) for g in one])
    power = 2 if isinstance(one[0].noise, Gaussian) else 1

    def score(draws: Any) -> Any:
        away = [np.abs(draws - c).astype(np.float64) / scales for c in centres]
        return np.round((away[1] ** power - away[0] ** power).sum(axis=1) / power, 9)  # ties stay ties

    return score


def divergence_bound(one: Any, two: Any, score: Callable[[Any], Any]) -> float:
    """With probability 1 - FALSE_ALARM the Kullback-Leibler divergence, hence rho, is at least this.

    KL >= E_P[T] - ln E_Q[exp T] for any T (Donsker and Varadhan), here the likelihood ratio cut at +-1.5; means
    are bounded by theorem 4 of Maurer and Pontil (2009).
    """
    t_one, t_two = (np.clip(score(d), -1.5, 1.5) for d in (one, two))
    exp_two = np.exp(t_two)
    low = t_one.mean() - _bernstein(t_one, 3.0)
    high = exp_two.mean() + _bernstein(exp_two, math.exp(1.5))
    return float(low - math.log(high))


def _bernstein(x: Any, span: float) -> float:
    log = math.log(4 / FALSE_ALARM)
    return math.sqrt(2 * x.var(ddof=1) * log / len(x)) + 7 * span * log / (3 * (len(x) - 1))
