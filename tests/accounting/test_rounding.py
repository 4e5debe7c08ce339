"""Losses round towards privacy, against long decimals."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpframe.accounting import (
    ApproxDP,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Loss,
    PoissonGaussian,
    PureDP,
)

F = Fraction

# Rounding ----------------------------------------------------------------------------------------------------------

SIZES = [F(1, 10**9), F(1, 10**6), F(1, 1000), F(1, 10), F(1), F(5), F(20)]
MANY = np.array([1.0001, 1.02, 1.5, 2.0, 8.0, 33.0, 1024.0, 1e5])


def decimal(x: float | Fraction) -> Decimal:
    x = F(x)
    return Decimal(x.numerator) / Decimal(x.denominator)


def exact_renyi(loss: Loss, order: float) -> Decimal:
    """In 80 digits, by the textbook formulas, which lose a good part of them at small epsilon."""
    assert loss.epsilon is not None
    a, e = decimal(order), decimal(loss.epsilon)
    if isinstance(loss, Laplace):
        inner = a / (2 * a - 1) * ((a - 1) * e).exp() + (a - 1) / (2 * a - 1) * (-a * e).exp()
    else:
        truth = 1 / (1 + (-e).exp())
        inner = truth**a * (1 - truth) ** (1 - a) + (1 - truth) ** a * truth ** (1 - a)
    return inner.ln() / (a - 1)


@pytest.mark.parametrize("size", SIZES, ids=float)
@pytest.mark.parametrize("kind", [PureDP, Laplace])
def test_renyi_is_rounded_up_and_by_little(kind: Any, size: Fraction) -> None:
    loss = kind(size)
    with localcontext() as context:
        context.prec = 80
        for order, found in zip(MANY, loss.renyi(MANY), strict=True):
            truth = exact_renyi(loss, order)
            assert decimal(found) >= truth * (1 - Decimal("1e-15"))
            # past the range of doubles epsilon itself stands in
            near = order * float(size) < 500
            assert decimal(found) <= (
                truth * (1 + Decimal("1e-11")) if near else decimal(size) * (1 + Decimal("1e-15"))
            )


@pytest.mark.parametrize("size", SIZES, ids=float)
def test_curves_keep_their_digits(size: Fraction) -> None:
    """At delta = 1e-12 and above, next to the upper end and in the middle."""
    e = float(size)
    ts = e * np.array([-0.5, 0.0, 0.5, 0.9, 0.999])
    with localcontext() as context:
        context.prec = 60
        x = decimal(e)
        for t, pure, lap, choice in zip(
            ts, *(k(F(e)).curves[0].delta(ts) for k in (PureDP, Laplace, Exponential)), strict=True
        ):
            d = decimal(float(t))
            truth = 1 / (1 + (-x).exp())
            assert float(
                decimal(pure)
                / (truth * (1 - (d - x).exp()) + (1 - truth) * max(0, 1 - (d + x).exp()))
            ) == (pytest.approx(1, rel=1e-12))
            assert float(decimal(lap) / (1 - ((d - x) / 2).exp())) == pytest.approx(1, rel=1e-12)
            assert float(decimal(choice) / ((1 - ((d - x) / 2).exp()) ** 2 / (1 - (-x).exp()))) == (
                pytest.approx(1, rel=1e-12)
            )


@pytest.mark.parametrize("size", SIZES, ids=float)
def test_exact_claims_stay_exact(size: Fraction) -> None:
    assert PureDP(size).rho == Laplace(size).rho == size**2 / 2
    assert Exponential(size).rho == size**2 / 8
    assert Gaussian(size).rho == 1 / (2 * size**2)
    assert Gaussian(size).mu_squared == 1 / size**2
    assert DiscreteGaussian(size).rho == 1 / (2 * size**2)
    assert DiscreteLaplace(size, 5).epsilon == 5 * size
    assert ApproxDP(size, F(1, 10**12)).failure == F(1, 10**12)


@pytest.mark.parametrize("size", SIZES, ids=float)
def test_the_mu_of_a_pure_release_has_its_total_variation_rounded_up(size: Fraction) -> None:
    """erf(mu / sqrt 8) = tanh(epsilon / 2), from above."""
    squared = PureDP(size).mu_squared
    assert squared is not None
    mu = math.sqrt(squared)
    if size < 5:
        assert math.erf(mu / 8**0.5) == pytest.approx(math.tanh(float(size) / 2), rel=1e-11)
    assert math.erfc(mu / 8**0.5) == pytest.approx(2 / (1 + math.exp(size)), rel=1e-8)
    assert math.erfc(mu * (1 + 1e-11) / 8**0.5) <= 2 / (1 + math.exp(size)) * (1 + 1e-15)


def test_sampled_divergence_with_rare_and_large_losses() -> None:
    """log sum_k C(a, k) (1-q)**(a-k) q**k exp((k*k - k)/(2 sigma**2)) / (a - 1) in decimals, where doubles overflow."""
    with localcontext() as context:
        context.prec = 60
        for q, sigma, order in [
            (1e-12, 0.118, 5),
            (1e-9, 0.5, 40),
            (0.01, 1.0, 64),
            (1e-5, 30.0, 200),
            (1e-7, 0.05, 2),
        ]:
            rate, s = decimal(F(repr(q))), decimal(F(repr(sigma)))
            total = sum(
                math.comb(order, k)
                * (1 - rate) ** (order - k)
                * rate**k
                * (Decimal(k * k - k) / (2 * s * s)).exp()
                for k in range(order + 1)
            )
            truth = total.ln() / (order - 1)
            found = PoissonGaussian(q, sigma).renyi(np.array([float(order)]))[0]
            plain = order / (2 * sigma * sigma)
            assert found >= float(truth) * (1 - 1e-12)
            assert found <= min(plain * (1 + 1e-11), float(truth) * (1 + 1e-8))


def test_drawing_everybody_is_the_gaussian() -> None:
    whole, plain = PoissonGaussian(F(1), F(2)), Gaussian(F(2))
    assert np.allclose(whole.renyi(MANY), plain.renyi(MANY), rtol=1e-11)
    assert whole.epsilon_at(F(1, 10**6)) == pytest.approx(plain.epsilon_at(F(1, 10**6)), rel=1e-7)


def test_several_parts_add_up() -> None:
    whole = DiscreteGaussian(parts=[(25, 1), (100, 9)])
    one, other = DiscreteGaussian(5), DiscreteGaussian(10, 3)
    assert whole.rho == one.rho + other.rho
    assert whole.mu_squared is not None
    assert one.mu_squared is not None
    assert other.mu_squared is not None
    assert whole.mu_squared == one.mu_squared + other.mu_squared


@pytest.mark.parametrize(
    "epsilon", [Fraction(700), Fraction(700) - Fraction(1, 10**12), Fraction(1000)]
)
def test_a_pure_release_without_a_finite_mu_has_none(epsilon):
    """Rounded up, the last epsilon of which a double can tell the mu is beyond it."""
    assert PureDP(epsilon).mu_squared is None
