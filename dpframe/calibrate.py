"""A calculator: from the guarantee or the accuracy wanted to noise, price and number of people. No
data, no session, no cost.

*Which noise:* `gaussian_sigma`, `laplace_scale`; backwards `gaussian_epsilon`, `gaussian_delta`.
*Which epsilon, how far off:* `laplace_epsilon`, `laplace_within`, `gaussian_within`,
`exponential_within`. *How likely to be further off:* `laplace_tail`, `gaussian_tail`,
`exponential_tail`; sums in general `azuma_tail`. *How many people:* `mean_n` where a curator sees
the data, `randomized_response_n` where nobody does, `sgd_n`; `sgd_alpha`.

What carries a guarantee (sigma, scale, and an epsilon or delta claimed for noise) is rounded
towards privacy. A price, a reach or a number of people carries none: it says what to expect, and is
rounded towards the accuracy.

"The notes" are the lecture notes behind this library; "the notes on privacy" are those with the
headings "Randomized response", "Output perturbation", "Exponential mechanism" and "Private ERM".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from dpframe import _validate
from dpframe._errors import BadType, BadValue
from dpframe.accounting import Loss, _gaussian, _search, named_rule
from dpframe.accounting._filter import Charge, Limits, most_that
from dpframe.accounting._sums import Advanced
from dpframe.tails import (
    _MOST,
    _UP,
    _beta,
    _each,
    _number,
    _positive,
    azuma_tail,
    exponential_tail,
    gaussian_tail,
    gaussian_within,
    laplace_tail,
)

__all__ = [
    "azuma_tail",
    "exponential_tail",
    "exponential_within",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "gaussian_tail",
    "gaussian_within",
    "laplace_epsilon",
    "laplace_scale",
    "laplace_tail",
    "laplace_within",
    "mean_n",
    "queries",
    "randomized_response_n",
    "sgd_alpha",
    "sgd_n",
]


def __dir__() -> list[str]:
    return list(__all__)  # completion shows the public names alone


Real = float | Fraction | Decimal

_SLACK = (
    2e-8  # covers the relative error of the Gaussian curve, 1e-8 at worst, and what surrounds it
)
# Beyond it the curve's exponents lose the digits that the slack covers; epsilon is above 10**9
# there.
_LARGE_MU = 1e5


# Gaussian noise ---------------------------------------------------------------------------------------------


def gaussian_sigma(
    epsilon: Real, delta: Real, *, sensitivity: Real = 1, method: str = "analytic"
) -> float:
    """Return the standard deviation of Gaussian noise that makes a release (epsilon,
    delta)-private, rounded up. ``sensitivity`` is how far one person moves the vector in L2.

    *Formal guarantee.* f + N(0, sigma**2) in each coordinate is (epsilon, delta)-private if one
    person moves the vector f by at most S = ``sensitivity`` in L2.

    ``method="analytic"``: the least sigma with

        Phi(S/(2 sigma) - epsilon sigma/S) - e**epsilon Phi(-S/(2 sigma) - epsilon sigma/S) <=
        delta,

    which is necessary, too (Balle and Wang 2018, theorem 8). ``method="classic"``: the formula of
    the notes on privacy, "Gaussian mechanism", sigma = sqrt(2 ln(1.25/delta)) S/epsilon. It is a
    theorem for epsilon below 1 only (Dwork and Roth 2014, theorem A.1), and never less noise there.

    >>> round(gaussian_sigma(0.5, 1e-6), 3)
    8.058
    >>> round(gaussian_sigma(0.5, 1e-6, method="classic"), 3)
    10.598
    """
    e, d, s = _validate.epsilon(epsilon), _delta(delta), _positive(sensitivity, "sensitivity")
    if _validate.choice(method, "method", ("analytic", "classic")) == "classic":
        if e >= 1:
            raise BadValue(
                f"the classic formula is proved for epsilon below 1 only, not for {epsilon}: at large ones it "
                "adds too little noise. Use method='analytic', which holds for every epsilon."
            )
        return math.sqrt(2 * math.log(1.25 / d)) * s / float(e) * _UP
    price = float(e)
    return _least(lambda sigma: _curve(1 / sigma, price) <= d) * s * _UP


def gaussian_epsilon(sigma: Real, delta: Real, *, sensitivity: Real = 1) -> float:
    """Return the least epsilon at which Gaussian noise of deviation ``sigma`` is (epsilon,
    delta)-private, rounded up. It inverts `gaussian_sigma`.

    *Formal guarantee.* f + N(0, sigma**2) is (answer, delta)-private if one person moves f by at
    most ``sensitivity`` in L2 (Balle and Wang 2018, theorem 8). It is 0 where delta alone covers
    the difference, and infinite where sigma is less than 1e-5 sensitivities.

    >>> round(gaussian_epsilon(8.06, 1e-6), 3)
    0.5
    """
    mu, d = _positive(sensitivity, "sensitivity") / _positive(sigma, "sigma") * _UP, _delta(delta)
    if mu > _LARGE_MU:
        return math.inf
    return 0.0 if _curve(mu, 0.0) <= d else _least(lambda e: _curve(mu, e) <= d) * _UP


def gaussian_delta(sigma: Real, epsilon: Real, *, sensitivity: Real = 1) -> float:
    """Return the least delta at which Gaussian noise of deviation ``sigma`` is (epsilon,
    delta)-private, rounded up; never below 2**-900.

    *Formal guarantee.* f + N(0, sigma**2) is (epsilon, answer)-private if one person moves f by at
    most ``sensitivity`` in L2 (Balle and Wang 2018, theorem 8). At epsilon 0 it is the total
    variation distance, 2 Phi(S/(2 sigma)) - 1.

    >>> f"{gaussian_delta(8, 0.5):.2e}"
    '1.14e-06'
    """
    mu = _positive(sensitivity, "sensitivity") / _positive(sigma, "sigma") * _UP
    e = _validate.real(epsilon, "epsilon")
    if e < 0:
        raise BadValue(f"epsilon must not be negative, not {epsilon}.")
    if mu > _LARGE_MU:
        return 1.0
    # Where doubles underflow, the least delta that the library takes is an upper bound as well.
    return min(1.0, max(_curve(mu, e), float(_validate.MIN_DELTA)))


def _curve(mu: float, t: float) -> float:
    """Return an upper bound on the delta of N(mu, 1) against N(0, 1) at t >= 0, tight to 4e-8 (3e-2
    for t over 700)."""
    return _gaussian.delta_at(mu, t) * (1 + _SLACK)


# Budgets ----------------------------------------------------------------------------------------------------


def queries(
    epsilon: Real,
    each: Loss,
    *,
    delta: Real = 0,
    accountant: str | None = None,
    reserve: Real | None = None,
) -> int:
    """Return the number of equal releases that a budget allows, one after the other. ``each`` is
    the privacy loss of one, such as `dpframe.accounting.PureDP`.

    By the rule of ``accountant`` and with the ``reserve`` (the part of delta kept for outright
    failures) that a session would have where none is named. ``"pld"`` counts a batch that is
    declared in advance.

    >>> from dpframe.accounting import PureDP
    >>> [queries(1, PureDP(0.02), **words) for words in ({}, {"delta": 1e-6}, {"delta": 1e-6, "reserve": 0})]
    [50, 129, 138]
    """
    if not isinstance(each, Loss):
        raise BadType(
            f"each= must be a loss such as dpframe.accounting.Laplace(0.1), not {type(each).__name__}."
        )
    e, d = _validate.epsilon(epsilon), _validate.delta(delta)
    if accountant is not None and not isinstance(accountant, str):
        raise BadType("accountant= must be the name of one, such as 'tight'.")
    kind = named_rule(accountant or None, d)
    reserved = d * kind.reserve_share if reserve is None else _validate.delta(reserve, "reserve")
    rule = kind(Limits(e, d, reserved))

    def fit(k: int) -> bool:
        return rule.after(rule.start(), Charge(((each, k),), rule.delta_limit)) is not None

    return most_that(fit)


# Laplace noise and selection --------------------------------------------------------------------------------


def laplace_scale(epsilon: Real, *, sensitivity: Real = 1) -> float:
    """Return the scale b = S/epsilon of Laplace noise that gives pure epsilon, rounded up.

    *Formal guarantee.* f + Laplace(b) in each coordinate is epsilon-private if one person moves the
    vector f by at most S = ``sensitivity`` in L1 (the Laplace mechanism: Dwork, McSherry, Nissim
    and Smith 2006). One count has sensitivity 1; a histogram 1 where people are added or removed
    and 2 where they are replaced; k overlapping counts k.

    >>> laplace_scale(0.5, sensitivity=2)
    4.0
    """
    _positive(sensitivity, "sensitivity")
    scale = _validate.exact(sensitivity, "sensitivity") / _validate.epsilon(epsilon)
    nearest = float(scale)
    return nearest if Fraction(nearest) >= scale else math.nextafter(nearest, math.inf)


def laplace_within(
    epsilon: Real, *, sensitivity: Real = 1, answers: int = 1, level: Real = 0.95
) -> float:
    """Return a distance w such that all ``answers`` numbers with Laplace noise are off by at most
    w, with probability ``level``.

    t S/epsilon with (1 - e**-t)**k = level for k answers: the tail P[|Y| >= t b] = e**-t of the
    Laplace law, k times independently. The union bound, t = ln(k/(1 - level)), is a little more.
    ``sensitivity`` is that of the whole vector in L1, as in `laplace_scale`.

    Noise on counts is a whole number; for it P[|noise| <= w] >= level holds with w this number
    rounded up.

    >>> round(laplace_within(0.5), 2), round(laplace_within(0.5, answers=20), 2)  # twenty bins at once
    (5.99, 11.93)
    """
    e, reach = _validate.epsilon(epsilon), _laplace_reach(_number(answers, "answers"), _beta(level))
    return reach * _positive(sensitivity, "sensitivity") / float(e) * _UP


def laplace_epsilon(
    within: Real, *, sensitivity: Real = 1, answers: int = 1, level: Real = 0.95
) -> float:
    """Return the epsilon at which all ``answers`` numbers with Laplace noise are off by at most
    ``within``, with probability ``level``.

    `laplace_within` backwards: t S/within with (1 - e**-t)**k = level. For counts give a whole
    number.

    >>> round(laplace_epsilon(6), 2), round(laplace_epsilon(6, answers=20), 2)
    (0.5, 0.99)
    """
    reach = _laplace_reach(_number(answers, "answers"), _beta(level))
    e = reach * _positive(sensitivity, "sensitivity") / _positive(within, "within") * _UP
    if e > _validate.MAX_EPSILON:
        raise BadValue(
            f"within={within} would need an epsilon above 1024, where nobody is protected."
        )
    return max(e, float(_validate.MIN_EPSILON))


def exponential_within(
    epsilon: Real, candidates: int, *, sensitivity: Real = 1, level: Real = 0.95
) -> float:
    """Return a bound on how far the chosen candidate's score falls below the best, with probability
    ``level``.

    (2 S/epsilon)(ln k + t) for k candidates, with e**-t = 1 - level (Dwork and Roth 2014, theorem
    3.11). The notes on privacy, "Exponential mechanism", weigh by exp(epsilon u/S), which is 2
    epsilon-private, and state (S/epsilon)(ln k + t): the same, as epsilon here is the whole loss,
    twice theirs. ``sensitivity`` is the most one person moves any one score. The epsilon for a
    given accuracy is ``exponential_within(1, k) / accuracy``.

    dpframe's ``argmax`` is permute-and-flip, for which the bound holds as well; where people are
    added or removed its counts move one way only, and half of this is enough.

    >>> round(exponential_within(1, 50), 2)
    13.82
    """
    e, reach = (
        _validate.epsilon(epsilon),
        math.log(_number(candidates, "candidates") / _beta(level)),
    )
    return 2 * _positive(sensitivity, "sensitivity") * reach / float(e) * _UP


# How many people --------------------------------------------------------------------------------------------


def mean_n(
    alpha: Real,
    epsilon: Real,
    *,
    delta: Real = 0,
    queries: int = 1,
    population: bool = False,
    mechanism: str = "auto",
    level: Real = 0.95,
) -> int:
    """Return the number of people needed so that all ``queries`` private means of values in [0, 1]
    are within ``alpha``.

    A trusted curator adds the noise; n is public and people are replaced, so a mean has sensitivity
    1/n, and n is the reach of noise for sensitivity 1 over alpha. The share of a counting query is
    such a mean.

    - ``"laplace"``: pure epsilon; scale k/epsilon for k queries (the Laplace mechanism: Dwork,
      McSherry, Nissim and Smith 2006). For one query at level 3/4 it is ln(4)/(alpha epsilon); the
      notes on privacy, "Output perturbation", have n >= 2/(alpha epsilon), since they round the
      tail e**-2 up to 1/4.
    - ``"advanced"``: Laplace noise of scale 1/e0 for each query, where k queries of e0 make
      (epsilon, delta) by advanced composition (Dwork, Rothblum and Vadhan 2010): e0 sqrt(2 k
      ln(1/delta)) + k e0 (e**e0 - 1) = epsilon.
    - ``"gaussian"``: sigma from `gaussian_sigma`, for sensitivity sqrt(k) in L2.
    - ``"auto"``: the one of these that needs the fewest people, without delta the first.

    The error is that of the noise: the target is the mean of the people asked. ``population=True``
    takes them as a random sample, asks for the mean of the population, and divides alpha and 1 -
    level between the noise and the sampling error, at most sqrt(ln(2 k/beta)/(2 n)) with
    probability 1 - beta (Hoeffding 1963). That holds for every population, and is some two times
    what shares near a half were seen to need.

    >>> mean_n(0.01, 0.5), mean_n(0.01, 0.5, population=True)
    (600, 21011)
    >>> [mean_n(0.01, 0.5, queries=100, delta=d) for d in (0, 1e-6)]
    [151513, 27992]
    """
    a, e, d = _alpha(alpha), _validate.epsilon(epsilon), _validate.delta(delta)
    k, beta, sampled = _number(queries, "queries"), _beta(level), _flag(population, "population")
    chosen = _validate.choice(mechanism, "mechanism", ("auto", *_NOISES))
    named = _NOISES.values() if chosen == "auto" else [_NOISES[chosen]]
    noises = [noise.of(e, d, k) for noise in named if d > 0 or not noise.needs_delta]
    if not noises:
        raise BadValue(f"mechanism {mechanism!r} needs a positive delta, such as delta=1e-6.")

    def count_people(share: float) -> float:
        """Return the people needed if the noise has this share of the risk.

        With n people the noise is at most c/n, and the sampling error at most h/sqrt(n). The result
        is the n at which they add up to alpha.
        """
        c = min(scale * reach(k, share * beta) for scale, reach in noises)
        h = math.sqrt(math.log(2 * k / ((1 - share) * beta)) / 2) if sampled else 0.0
        return ((h + math.sqrt(h * h + 4 * a * c)) / (2 * a)) ** 2

    return _people(min(map(count_people, [i / 64 for i in range(1, 64)] if sampled else [1.0])))


class _Noise(NamedTuple):
    needs_delta: bool
    of: Callable[[Fraction, Fraction, int], tuple[float, Callable[[int, float], float]]]
    """From epsilon, delta and the number of queries: the scale at sensitivity 1, and the reach in
    units of it."""


_NOISES = {
    "laplace": _Noise(False, lambda e, d, k: (float(k / e), _laplace_reach)),
    "advanced": _Noise(True, lambda e, d, k: (1 / _share(e, d, k), _laplace_reach)),
    "gaussian": _Noise(True, lambda e, d, k: (gaussian_sigma(e, d) * math.sqrt(k), _normal_reach)),
}


def randomized_response_n(
    alpha: Real,
    epsilon: Real,
    *,
    population: bool = False,
    method: str = "bound",
    level: Real = 0.95,
) -> int:
    """Return the number of people needed so that a frequency from randomized response is within
    ``alpha``. No curator is trusted.

    Each person tells the truth with probability p = e**epsilon/(1 + e**epsilon), the notes' 1/2 +
    delta with delta = tanh(epsilon/2)/2, which is epsilon-private. The estimate (mean answer - (1 -
    p))/(2 p - 1) has no bias, and the variance 1/(4 n sinh(epsilon/2)**2) whatever the truth. Its
    target is the frequency among the people asked; ``population=True`` takes them as a random
    sample and asks for the frequency in the population, with a variance of at most 1/(4 n
    tanh(epsilon/2)**2).

    ``method="bound"`` holds for every frequency and every n: the best of Chebyshev's, Hoeffding's
    and Bernstein's inequalities. ``method="normal"`` is the normal quantile for that variance. It
    is about half as large, an approximation, and too small where fewer than some twenty answers
    will be false.

    The notes on privacy, "Randomized response", have n >= 1/(delta**2 alpha**2) for level 3/4: the
    order is 1/(epsilon alpha)**2 where `mean_n` has 1/(epsilon alpha), the price of trusting
    nobody. For k questions to the same people take epsilon/k and level 1 - (1 - level)/k.

    >>> randomized_response_n(0.01, 0.5), randomized_response_n(0.01, 0.5, method="normal")
    (289664, 150497)
    """
    a, e, beta = _alpha(alpha), float(_validate.epsilon(epsilon)), _beta(level)
    sampled = _flag(population, "population")
    lie = math.exp(-e) / (1 + math.exp(-e))
    # For one answer: its variance, kept from underflow, its farthest deviation, and the error of
    # the mean.
    variance = 0.25 if sampled else max(lie * (1 - lie), 1e-300)
    farthest = 1.0 if sampled else 1 - lie
    off = a * math.tanh(e / 2)
    if _validate.choice(method, "method", ("bound", "normal")) == "normal":
        return _people(variance * (_normal_reach(1, beta) / off) ** 2)
    reach = math.log(2 / beta)
    bernstein = reach * (2 * variance / off + 2 * farthest / 3) / off
    return _people(min(variance / beta / off / off, reach / 2 / off / off, bernstein))


def sgd_n(
    alpha: Real,
    epsilon: Real,
    delta: Real,
    dimension: int,
    *,
    length: Real = 1,
    steps: int = 100,
    method: str = "bound",
) -> int:
    """Return the number of people needed so that a private logistic regression has an excess loss
    of at most ``alpha``.

    For ``method="bound"``: with this number of people, one row each, added or removed, the mean loss under
    ``LogisticRegression("gradient")`` exceeds by at most alpha, in expectation, that of any
    coefficients of at most ``length`` for features scaled to [-1, 1]. The loss is that of clipped
    gradients, and epsilon and delta are those of the fit's Gaussian noise:
    docs/guarantees/learning.md, theorem 5. ``dimension`` counts the coefficients, intercept
    included; ``steps`` is the model's ``max_iter``: an alpha that is small beside length**2
    dimension/steps**2 needs more of them.

    ``method="notes"``: sqrt(d ln(1/delta))/(epsilon alpha**2), the order that the notes on privacy
    state, theorem of "Private ERM", with 1 for the constant that they do not give. It is no
    guarantee: for many features that are far from 0 more people are needed, since rows in [-1,
    1]**d are up to sqrt(d) long.

    >>> sgd_n(0.1, 1, 1e-6, dimension=100)
    8334
    >>> sgd_n(0.1, 1, 1e-6, dimension=100, method="notes")
    3717
    """
    a, e, d = _alpha(alpha), float(_validate.epsilon(epsilon)), _delta(delta)
    if _validate.choice(method, "method", ("bound", "notes")) == "notes":
        size = math.sqrt(_number(dimension, "dimension") * -math.log(d)) / e / a / a
        return _people(math.nextafter(size, math.inf))  # more than, not at least
    once, each = _sgd(e, d, dimension, length, steps)
    if each >= a:
        raise BadValue(
            f"an excess loss of {a:g} needs more steps, however many people there are: with {steps} it is proved to be below "
            f"{each:.3g} only."
        )
    return _people(once / (a - each) * _UP)


def sgd_alpha(
    n: int, epsilon: Real, delta: Real, dimension: int, *, length: Real = 1, steps: int = 100
) -> float:
    """Return the excess loss that `sgd_n` promises for n people, rounded up.

    >>> round(sgd_alpha(8000, 1, 1e-6, dimension=5), 4)
    0.0052
    """
    e, d = float(_validate.epsilon(epsilon)), _delta(delta)
    once, each = _sgd(e, d, dimension, length, steps)
    return (once / _number(n, "n") + each) * _UP


def _sgd(
    epsilon: float, delta: float, dimension: int, length: Real, steps: int
) -> tuple[float, float]:
    """Return two numbers, ``once`` and ``each``. The sum of losses of n people exceeds its minimum
    by ``once + each * n`` at most, in expectation.

    This holds for logistic regression by ``steps`` noisy gradient steps, with the longest possible
    rows (docs/guarantees/learning.md, theorem 5). The best coefficients are assumed to be at most
    ``length`` long.
    """
    p, t = _number(dimension, "dimension"), _number(steps, "steps")
    square = _positive(length, "length") ** 2
    # The Gaussian budget, whose square adds up: 1/32 of mu**2 pays for the number of people and the
    # length of their rows, and 31/32 for the gradients.
    mu = _gaussian.mu_for(epsilon, delta)
    # Each of t steps adds noise to p entries. Gradients are clipped to length sqrt(p).
    noise = math.sqrt(p / 3 * 32 / 31 * p) / mu
    # What t steps without noise leave. It is 4 curve p / (t (t + 1)), and the curve is 1/4.
    each = p / (t * (t + 1)) * square
    # Three deviations to either side by which the noisy number of people may be wrong.
    uncertain_people = 6 * math.sqrt(2 * 32) / mu
    # The share of the regulariser, which has weight 1 by default.
    l2 = (0.5 + 4 / (t * (t + 1))) * square
    once = noise * (square + 2 * (t + 2) / (t + 1)) * _UP + each * uncertain_people + l2
    return once, each


# Parts ------------------------------------------------------------------------------------------------------


def _delta(value: object) -> float:
    """Return delta as a double, and refuse 0, at which no Gaussian noise is private."""
    d = _validate.delta(value)
    if d == 0:
        raise BadValue(
            "delta must be positive here: no Gaussian noise is purely private. Laplace noise is."
        )
    return float(d)


def _alpha(value: object) -> float:
    a = _validate.real(value, "alpha")
    if not 0 < a < 1:
        raise BadValue(f"alpha must lie strictly between 0 and 1, such as 0.01, not {value}.")
    return max(a, 2.0**-100)  # too many people either way, and its square is still a double


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise BadType(f"{name} must be True or False, not {type(value).__name__}.")
    return value


def _laplace_reach(answers: int, beta: float) -> float:
    return -math.log(_each(answers, beta))


def _normal_reach(answers: int, beta: float) -> float:
    return -_gaussian.quantile(_each(answers, beta) / 2)


def _share(epsilon: Fraction, delta: Fraction, queries: int) -> float:
    """Return the epsilon of each query that advanced composition allows, rounded down."""
    return Advanced(Limits(epsilon, delta)).each(queries)


def _people(size: float) -> int:
    if not size <= _MOST:
        raise BadValue("that accuracy at that price would need more than 2**53 people.")
    return max(1, math.ceil(size))


def _least(enough: Callable[[float], bool]) -> float:
    """Return the least x > 0 from which on ``enough`` holds, found by bisection to the last digits.
    It is rounded to the side where ``enough`` holds."""
    low = high = 1.0
    while not enough(high):
        low, high = high, 2 * high
    while low == high or enough(low):
        low, high = low / 2, low
    return _search.first_where(enough, low, high)
