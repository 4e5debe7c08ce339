"""What the project's audits share: `dpframe.audit` on draws of the noise, and a bound on the divergence that it has not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dpframe.audit import from_draws
from dpframe.mechanisms.noise import GaussianNoise
from dpframe.mechanisms.selection import NoisyMax, NoisyTop

FALSE_ALARM = 1e-7  # of each bound; a test makes ten at most


class Given(NamedTuple):
    """What a verb gave to its noise."""

    noise: Any
    integers: np.ndarray[Any, Any]


# The loss that is seen -----------------------------------------------------------------------------------------


def loss_bound(one: Any, two: Any, delta: float = 0.0, likelihood: Any = None) -> float:
    """With probability 1 - FALSE_ALARM the privacy loss of the two laws, beyond delta, is at least this."""
    level = 1 - FALSE_ALARM
    if likelihood is None:
        return from_draws(one, two, delta=delta, level=level).epsilon
    half = [
        from_draws(one, two, delta=delta, level=1 - FALSE_ALARM / 2, score=s).epsilon
        for s in (likelihood, None)
    ]
    return max(half)


def likelihood_of(one: list[Given], two: list[Given]) -> Callable[[Any], Any] | None:
    """The logarithm of the ratio of the two laws, the best score there is; None for a choice."""
    if any(isinstance(g.noise, NoisyMax | NoisyTop) for g in one):
        return None
    centres = [np.concatenate([g.integers.reshape(-1) for g in side]) for side in (one, two)]
    scales = np.concatenate([np.full(g.integers.size, float(g.noise.scale)) for g in one])
    power = 2 if isinstance(one[0].noise, GaussianNoise) else 1

    def score(draws: Any) -> Any:
        away = [np.abs(draws - c).astype(np.float64) / scales for c in centres]
        return np.round(
            (away[1] ** power - away[0] ** power).sum(axis=1) / power, 9
        )  # ties stay ties

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
