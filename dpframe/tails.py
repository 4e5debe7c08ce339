"""Tail bounds: how likely noise is to be further off than so much, for each mechanism. No data, no
session, no cost.

`dpframe.calibrate` has them too, beside the functions that go the other way, from a probability to
a distance: `laplace_within`, `gaussian_within`, `exponential_within`. Proofs:
docs/guarantees/accuracy.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from dpframe import _validate
from dpframe._errors import BadType, BadValue
from dpframe.accounting import _gaussian

__all__ = ["azuma_tail", "exponential_tail", "gaussian_tail", "gaussian_within", "laplace_tail"]

Real = float | Fraction | Decimal

_UP = 1 + 1e-12  # covers a handful of correctly rounded operations a thousand times over
_MOST = 2**53


def laplace_tail(*, reach: Real, scale: Real, answers: int = 1) -> float:
    """Return the probability that any of ``answers`` numbers with Laplace noise of this scale is
    off by more than ``reach``.

    1 - (1 - e**-t)**k for reach = t scale and k numbers: one number is off by t scales with
    probability e**-t (the tail of the Laplace law), and noises are independent. The union bound, k
    e**-t, is a little more: t = 10 + ln k gives e**-10 for any number of bins.

    Whole-number noise, which sessions add, is more than a *whole* reach off no more often than
    this; it is a little less.

    >>> round(laplace_tail(reach=6, scale=2), 4)  # e**-3
    0.0498
    >>> round(laplace_tail(reach=6, scale=2, answers=20), 4)  # twenty bins at once
    0.6399
    >>> laplace_tail(reach=2 * (10 + math.log(20)), scale=2, answers=20) <= math.exp(-10)
    True
    """
    t = _distance(reach, "reach") / _positive(scale, "scale")
    return _any(math.exp(-t), answers)


def gaussian_tail(*, reach: Real, sigma: Real, answers: int = 1) -> float:
    """Return the probability that any of ``answers`` numbers with Gaussian noise is off by more
    than ``reach``.

    1 - (1 - 2 Phi(-t))**k for reach = t sigma and k independent noises; 2 Phi(-t) is below
    e**(-t**2 / 2).

    Whole-number noise of the same parameter is more than a *whole* reach off no more often than
    this.

    >>> round(gaussian_tail(reach=19.6, sigma=10), 4), round(gaussian_tail(reach=19.6, sigma=10, answers=20), 4)
    (0.05, 0.6415)
    """
    t = _distance(reach, "reach") / _positive(sigma, "sigma")
    return _any(math.erfc(t / math.sqrt(2)), answers)


def gaussian_within(sigma: Real, *, answers: int = 1, level: Real = 0.95) -> float:
    """Return a distance w such that all ``answers`` numbers with Gaussian noise are off by at most
    w, with probability ``level``.

    `gaussian_tail` backwards. It grows with the square root of ln k, where `laplace_within` grows
    with ln k. For whole-number noise round it up.

    >>> round(gaussian_within(10), 1), round(gaussian_within(10, answers=20), 1)
    (19.6, 30.2)
    """
    each = _each(_number(answers, "answers"), _beta(level))
    return -_gaussian.quantile(each / 2) * _positive(sigma, "sigma") * _UP


def exponential_tail(
    *,
    shortfall: Real,
    epsilon: Real,
    candidates: int,
    sensitivity: Real = 1,
    weights: str = "halved",
) -> float:
    """Return a bound on the probability that the chosen candidate's score falls short of the best
    by ``shortfall`` or more.

    k e**(-rate shortfall) for k candidates, at most 1. With S = ``sensitivity``, the most that one
    person moves a score:

    - ``weights="halved"``: exp(epsilon u / (2 S)), which is epsilon-private: rate = epsilon / (2
      S). The usual form (Dwork and Roth 2014, theorem 3.11).
    - ``weights="notes"``: exp(epsilon u / S), which is 2 epsilon-private: rate = epsilon / S. A
      shortfall of (S / epsilon)(ln k + t) or more then has probability at most e**-t (the notes on
      privacy, "Exponential mechanism"): the same as halved weights at twice the epsilon.

    It holds for noisy max of the same rate as well, which sessions use where it is as good.

    >>> round(exponential_tail(shortfall=20, epsilon=1, candidates=50), 5)
    0.00227
    >>> round(exponential_tail(shortfall=10, epsilon=1, candidates=50, weights="notes"), 5)
    0.00227
    """
    e, w = float(_validate.epsilon(epsilon)), _distance(shortfall, "shortfall")
    halved = _validate.choice(weights, "weights", ("halved", "notes")) == "halved"
    k = _number(candidates, "candidates")
    rate = e / _positive(sensitivity, "sensitivity") / (2 if halved else 1)
    return min(1.0, math.exp(math.log(k) - rate * w))


def azuma_tail(reach: Real, effects: Sequence[Real]) -> float:
    """Return a bound on the probability that a function of several variables is ``reach`` or more
    above its expectation.

    exp(-2 t**2 / sum c**2) for reach t, where c, in ``effects``, bounds for each variable what it
    can change of the expectation given those before it (Azuma 1967). They may depend on each other.

    The loss of an epsilon-private release lies within epsilon of 0, so its effect is 2 epsilon.
    Over k of them the sum of the losses is epsilon sqrt(2 k ln(1/delta)) above its expectation with
    probability delta at most: advanced composition.

    >>> round(azuma_tail(10, [1] * 100), 4)  # a hundred fair coins, sixty heads
    0.1353
    >>> k, epsilon, delta = 50, 0.1, 1e-6
    >>> round(azuma_tail(epsilon * math.sqrt(2 * k * math.log(1 / delta)), [2 * epsilon] * k) / delta, 6)
    1.0
    """
    t = _distance(reach, "reach")
    if isinstance(effects, str | bytes) or not isinstance(effects, Sequence) or not effects:
        raise BadType("effects must be a list of numbers, one for each variable.")
    length = math.hypot(*(_positive(c, "an effect") for c in effects))
    return min(1.0, math.exp(-2 * (t / length) ** 2))


def _any(risk: float, answers: int) -> float:
    """Return the probability that any of several independent numbers fails, if each fails with
    probability ``risk``."""
    k = _number(answers, "answers")
    return min(1.0, -math.expm1(k * math.log1p(-risk)) if risk < 1 else 1.0)


def _distance(value: object, name: str) -> float:
    x = _validate.real(value, name)
    if x < 0:
        raise BadValue(f"{name} must not be negative, not {value}.")
    return x


def _positive(value: object, name: str) -> float:
    """Return a positive number, and refuse others. It must be of a size at which products of a few
    such numbers do not overflow. ``name`` is for errors."""
    x = _validate.real(value, name)
    if x <= 0:
        raise BadValue(f"{name} must be positive, not {value}.")
    if not 2.0**-400 <= x <= 2.0**400:
        raise BadValue(f"{name} must lie between 2**-400 and 2**400. Choose another unit.")
    return x


def _number(value: object, name: str) -> int:
    k = _validate.positive_int(value, name)
    if k > _MOST:
        raise BadValue(f"{name} must be at most 2**53.")
    return k


def _beta(level: object) -> float:
    """Return the probability of failure, 1 - level, and below 1 also where that rounds to 1."""
    return min(1 - _validate.level(level), 1 - 2.0**-53)


def _each(answers: int, beta: float) -> float:
    """Return the probability with which each of several independent numbers may fail, if one of
    them may fail with ``beta``."""
    return -math.expm1(math.log1p(-beta) / answers)
