"""Discrete Gaussian noise against the Gaussian pair that is said to dominate it, in 130 digits."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.accounting._gaussian import delta, shift_mu

DIGITS = 130
END = Decimal(10) ** -(DIGITS + 5)
SIGMAS = [Fraction(s) for s in ("0.3", "0.45", "0.6", "0.8", "1", "1.5", "2.3", "3", "4")]


@pytest.fixture(autouse=True)
def precisely():
    with localcontext() as context:
        context.prec = DIGITS + 10
        yield


def exact(x: Fraction | float) -> Decimal:
    x = Fraction(x)
    return Decimal(x.numerator) / Decimal(x.denominator)


@cache
def pi() -> Decimal:
    def arctan(n):
        total, power, k = Decimal(0), Decimal(1) / n, 0
        while power > END:
            total += (-1) ** k * power / (2 * k + 1)
            power, k = power / (n * n), k + 1
        return total

    return 4 * (4 * arctan(5) - arctan(239))


def above(z: Decimal) -> Decimal:
    """P[Z > z] of a standard Gaussian, by the series of Phi(z) - 1/2 over the density."""
    assert abs(z) < 20  # beyond, the digits would not do
    term, total, k = z, Decimal(0), 1
    while abs(term) > END:
        total, k = total + term, k + 2
        term = term * z * z / k
    return Decimal("0.5") - (-z * z / 2).exp() / (2 * pi()).sqrt() * total


def inverse(tail: Decimal) -> Decimal:
    """The z with P[Z > z] = tail, by Newton's method on the logarithm."""
    z = (-2 * (2 * tail).ln()).sqrt()  # above the root, whence the steps go down to it
    for _ in range(60):
        found = above(z)
        hazard = (-z * z / 2).exp() / (2 * pi()).sqrt() / found
        step = (found / tail).ln() / hazard
        z += step
        if abs(step) < Decimal(10) ** -50:
            return z
    raise AssertionError("no convergence")


def gaussian_curve(mu: Decimal, t: Decimal) -> Decimal:
    return above(t / mu - mu / 2) - t.exp() * above(t / mu + mu / 2)


@cache
def masses(variance: Fraction) -> list[Decimal]:
    """P[0], P[1], ... until nothing is left."""
    v = exact(variance)
    weights = [(-j * j / (2 * v)).exp() for j in range(math.ceil(25 * math.sqrt(variance)) + 10)]
    total = 2 * sum(weights) - weights[0]
    return [w / total for w in weights]


def noise_curve(variance: Fraction, k: int, t: Decimal) -> Decimal:
    """sup over sets of P[noise + k in S] - e**t P[noise in S]: the positive parts added up, and nothing assumed."""
    p = masses(variance)
    top = len(p) - 1
    growth = t.exp()
    pairs = ((p[abs(j - k)] if abs(j - k) <= top else 0, p[abs(j)]) for j in range(-top, top + 1))
    beyond = sum(p[top - k + 1 :], Decimal(0))  # where the moved noise alone has mass left
    return beyond + sum(a - growth * b for a, b in pairs if a > growth * b)


def places(variance: Fraction, mu: Decimal, k: int, reach: int) -> list[Decimal]:
    """Where the curves come near each other. In e**t the noise's curve consists of chords and the Gaussian one
    is convex, so besides the ends of each chord there is the t where the Gaussian curve has the chord's slope."""
    found, p = [], masses(variance)
    for x in range((k + 1) // 2 - reach, (k + 1) // 2 + reach + 1):
        found.append(exact((2 * k * x - k * k) / (2 * variance)))
        tail = sum(p[max(x, 1 - x) :], Decimal(0))
        if tail > Decimal("1e-70"):
            z = inverse(tail) if x > 0 else -inverse(tail)
            found.append(mu * z - mu * mu / 2)
    return found


def dominates(mu: Decimal, variance: Fraction, k: int, reach: int) -> bool:
    return all(
        noise_curve(variance, k, t) <= gaussian_curve(mu, t)
        for t in places(variance, mu, k, reach)
        if abs(t / mu) + mu / 2 < 19
    )


def reach(sigma: Fraction, many: int) -> int:
    return min(many, math.ceil(6 * sigma))


@pytest.mark.parametrize("sigma", SIGMAS, ids=float)
@pytest.mark.parametrize("k", range(1, 6))
def test_moved_by_k_it_is_below_the_curve_of_k_mu(sigma, k):
    mu = k * exact(shift_mu(sigma**2))
    assert dominates(mu, sigma**2, k, reach(sigma, 8))


@pytest.mark.slow(but=12)
@pytest.mark.parametrize("sigma", [*SIGMAS, Fraction(7), Fraction(1, 5)], ids=float)
@pytest.mark.parametrize("k", range(1, 6))
def test_moved_by_k_it_is_below_the_curve_of_k_mu_far_into_the_tails(sigma, k):
    assert dominates(k * exact(shift_mu(sigma**2)), sigma**2, k, reach(sigma, 80))


@pytest.mark.parametrize("sigma", SIGMAS, ids=float)
def test_nothing_smaller_would_do(sigma):
    mu = exact(shift_mu(sigma**2))
    assert not dominates(mu * (1 - Decimal("1e-11")), sigma**2, 1, 1)
    assert not dominates(mu * (1 - Decimal("1e-3") * (mu * exact(sigma) - 1)), sigma**2, 1, 1)
    assert not dominates(1 / exact(sigma), sigma**2, 1, 1)


@pytest.mark.parametrize("sigma", [*SIGMAS, Fraction("7.4"), Fraction(60)], ids=float)
def test_no_threshold_asks_for_more_than_the_one_in_the_middle(sigma):
    """The supremum of Phi**-1(S(x - 1)) - Phi**-1(S(x)) by brute force is what is returned, to 11 digits."""
    p = masses(sigma**2)
    tails = [sum(p[x:]) for x in range(1, min(len(p) - 5, 25))]
    z = [inverse(tail) for tail in tails if tail > Decimal("1e-70")]
    steps = [2 * z[0]] + [after - before for before, after in pairwise(z)]
    assert len(steps) > 2
    mu = exact(shift_mu(sigma**2))
    assert max(steps) == steps[0]
    assert mu * (1 - Decimal("1e-11")) < steps[0] < mu


def test_no_threshold_asks_for_more_when_the_noise_is_wide():
    sigma = 1000
    v = Decimal(sigma**2)
    edges = [1, 2, 3, 10, 100, 1000, 3000, 6000]
    weights = [(-j * j / (2 * v)).exp() for j in range(sigma * 19)]
    total = 2 * sum(weights) - weights[0]
    tails, tail = {}, Decimal(0)
    for j in reversed(range(1, len(weights))):
        tail += weights[j] / total
        tails[j] = tail
    mu = exact(shift_mu(Fraction(sigma**2)))
    first = 2 * inverse(tails[1])
    assert mu * (1 - Decimal("1e-11")) < first < mu
    assert all(inverse(tails[x + 1]) - inverse(tails[x]) < first for x in edges)


# Vectors ------------------------------------------------------------------------------------------------------


def vector_curve(variance: float, move: tuple[int, ...], ts: np.ndarray) -> np.ndarray:
    n = math.ceil(9 * math.sqrt(variance)) + 4
    j = np.arange(-n, n + 1)
    centred = np.exp(-(j**2) / (2 * variance))
    p, q = np.ones(()), np.ones(())
    for k in move:
        p = np.multiply.outer(p, np.exp(-((j - k) ** 2) / (2 * variance)) / centred.sum())
        q = np.multiply.outer(q, centred / centred.sum())
    return np.array([np.maximum(p - math.exp(t) * q, 0).sum() for t in ts])


@pytest.mark.parametrize("sigma", [0.5, 0.8, 1.0, 2.0])
@pytest.mark.parametrize("move", [(1, 1), (1, -2), (3, 1), (1, 1, 1), (0, 2, -1)])
def test_a_vector_costs_its_l2_norm(sigma, move):
    norm = math.hypot(*move)
    ts = np.linspace(-3, 3, 25) * norm / sigma
    mu = shift_mu(Fraction(sigma) ** 2) * norm
    found = vector_curve(sigma**2, move, ts)
    assert np.all(found <= delta(mu, ts) * (1 + 1e-7) + 1e-13)
    assert np.any(
        found > delta(norm / sigma, ts) * (1 + 1e-7) + 1e-13
    )  # the continuous noise's mu is refuted


# The function -------------------------------------------------------------------------------------------------

variances = st.fractions(min_value=Fraction(1, 10**6), max_value=2**120, max_denominator=10**6)


@given(variances, variances)
def test_more_noise_never_costs_more(one, other):
    low, high = sorted((one, other))
    assert shift_mu(low) >= shift_mu(high)


@given(variances)
def test_between_one_and_two_over_sigma(variance):
    ratio = shift_mu(variance) * math.sqrt(variance)
    assert 1 < ratio < 2 * (1 + 2e-12)


@settings(deadline=None)
@given(st.fractions(min_value=Fraction(1, 50), max_value=10**4, max_denominator=1000))
def test_total_variation_is_that_of_the_gaussian_pair(variance):
    steps = np.arange(1, math.ceil(12 * math.sqrt(variance)) + 2)
    centre = 1 / (1 + 2 * np.exp(-(steps**2) / (2 * float(variance))).sum())
    assert math.erf(shift_mu(variance) / math.sqrt(8)) == pytest.approx(centre, rel=1e-11)


@pytest.mark.parametrize("border", [Fraction(1, 1400), Fraction(1, 2)])
def test_falls_across_a_change_of_formula(border):
    below, at = shift_mu(border * (1 - Fraction(1, 10**9))), shift_mu(border)
    assert at < below < at * 1.01


def test_series_of_the_ratio():
    for sigma in (5, 30, 200):
        excess = shift_mu(Fraction(sigma**2)) * sigma - 1
        series = 1 / (24 * sigma**2) + 7 / (1920 * sigma**4)
        assert excess == pytest.approx(series, abs=2e-12 + 1e-3 / sigma**6)


def test_extreme_variances():
    assert shift_mu(Fraction(0)) == math.inf
    assert shift_mu(Fraction(1, 10**400)) == math.inf
    assert 2000 <= shift_mu(Fraction(1, 10**6)) <= 2000.001
    assert 2.0**-60 < shift_mu(Fraction(2**120)) < 2.0**-60 * (1 + 1e-11)
    assert 0 < shift_mu(Fraction(10**400)) < 1e-150
