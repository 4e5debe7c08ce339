"""Conversions land on the safe side, with the margin that their own roundings may take left over."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, optimize

from dpframe.accounting import PoissonGaussian, PureDP, _gaussian, pld, residue
from dpframe.accounting._additive import zcdp_delta, zcdp_epsilon, zcdp_rho
from dpframe.accounting._filter import stated_gaussian
from dpframe.accounting._gaussian import pure_mu

EPSILONS = [F(1, 100), F(1, 10), F(1, 3), F(1), F(3), F(10)]
DELTAS = [F(1, 10**3), F(1, 10**6), F(1, 10**10)]
CURVE = 2e-8  # what the curve of the Gaussian pair may be off by, relatively: it stays free


@pytest.mark.parametrize("delta", DELTAS, ids=float)
@pytest.mark.parametrize("epsilon", EPSILONS, ids=float)
def test_mu_and_epsilon_of_a_gaussian_leave_the_error_of_its_curve_free(epsilon, delta):
    e, d = float(epsilon), float(delta)
    mu = _gaussian.mu_for(e, d)
    assert 0.999 * d < _gaussian.delta_at(mu, e) <= d * (1 - CURVE)
    up = _gaussian.epsilon_for(mu * 2, d)
    assert 0.999 * d < _gaussian.delta_at(mu * 2, up) <= d * (1 - CURVE)


@pytest.mark.parametrize("delta", DELTAS, ids=float)
@pytest.mark.parametrize("epsilon", EPSILONS, ids=float)
def test_the_rho_of_a_budget_is_worth_no_more_than_the_budget(epsilon, delta):
    """There and back again, both rounded up."""
    rho = zcdp_rho(epsilon, delta)
    assert (1 - 1e-6) * float(epsilon) < zcdp_epsilon(float(rho), float(delta)) <= float(epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS, ids=float)
def test_the_mu_of_a_pure_release_covers_an_epsilon_that_no_double_is(epsilon):
    """An epsilon that lies between two doubles has at least the mu of the upper one."""
    above = math.nextafter(float(epsilon), math.inf)
    assert PureDP(epsilon).mu_squared >= F(pure_mu(above)) ** 2


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.1, 0.7, 1.0])
def test_the_mu_of_an_epsilon_is_rounded_up(epsilon):
    """Where both pairs have the same total variation: erf(mu / 8**0.5) = tanh(epsilon / 2), to the last digits of doubles."""
    assert math.erf(pure_mu(epsilon) / math.sqrt(8)) >= math.tanh(epsilon / 2) * (1 + 2e-13)


@pytest.mark.parametrize("delta", DELTAS, ids=float)
@pytest.mark.parametrize("epsilon", EPSILONS, ids=float)
def test_a_stated_gaussian_is_within_its_own_statement(epsilon, delta):
    mu = math.sqrt(stated_gaussian(epsilon, delta).mu_squared)
    found = _gaussian.epsilon_for(mu, float(delta))
    assert 0.999 * epsilon < found <= float(epsilon)


@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 3])
def test_one_gaussian_may_take_a_whole_budget_of_pairs(epsilon, delta):
    p = pd.DataFrame({"x": [1.0]}).dp.open(epsilon, delta, accountant="pure")
    p.count(epsilon=epsilon, delta=delta, mechanism="gaussian")
    assert p.budget.fraction > 0.999


@pytest.mark.parametrize("delta", DELTAS, ids=float)
@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.5, 3.0])
def test_what_zcdp_converts_to_is_rounded_up_by_more_than_its_own_error(rho, delta):
    """The bound of proposition 12 at the best order, searched for once more and finely."""
    d = float(delta)
    epsilon = zcdp_epsilon(rho, d)
    assert zcdp_delta(rho, epsilon) <= d * (1 - 1e-9)

    def exponent(log_excess):
        x = math.exp(log_excess)
        return x * ((1 + x) * rho - epsilon) - (1 + x) * math.log1p(1 / x) - math.log(x)

    found = optimize.minimize_scalar(
        exponent, bounds=(-30, 40), method="bounded", options={"xatol": 1e-10}
    )
    least = min(found.fun, *(exponent(found.x + shift) for shift in (-1e-6, 1e-6)))
    assert math.exp(least) * (1 + 5e-10) <= zcdp_delta(rho, epsilon) <= math.exp(least) * (1 + 1e-6)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("kind", ["laplace", "exponential"])
@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.1])
def test_no_more_remains_by_the_ladder_than_by_the_cost_at_mu_itself(kind, epsilon):
    """A cost that is certified at one mu is one at every larger mu, and at no smaller one: the step below is taken."""
    steps = 2.0 ** (np.arange(-8, 25) / 16)
    for mu in (f * step for step in steps for f in (1 - 1e-9, 1 + 1e-9, 1.01, 1.02)):
        if mu > 4 * epsilon:
            direct = residue.remains(mu, residue._direct(kind, epsilon, mu))
            assert residue.after(kind, epsilon, mu) <= direct * (1 + 1e-13)


@pytest.mark.parametrize("order", [1.2, 1.5, 2.1, 2.5, 7.9, 30.01])
@pytest.mark.parametrize(("q", "sigma"), [(F(1, 10), F(1)), (F(1, 4), F(2)), (F(1, 100), F(4, 5))])
def test_sampled_divergence_between_whole_orders_is_that_of_the_next_one(q, sigma, order):
    """Never below the divergence itself, by quadrature, in either direction."""
    rate, s = float(q), float(sigma)

    def log_ratio(x):
        return np.log1p(rate * np.expm1((2 * x - 1) / (2 * s * s)))

    def power(a):  # E over N(0, s) of ratio**a
        found = integrate.quad(
            lambda x: math.exp(a * log_ratio(x) - x * x / (2 * s * s)),
            -40 * s,
            40 * s + 2 * order,
            limit=2000,
            points=[0, order],
        )[0]
        return math.log(found / (s * math.sqrt(2 * math.pi))) / (order - 1)

    (stated,) = PoissonGaussian(q, sigma).renyi(np.array([order])).tolist()
    assert stated >= max(power(order), power(1 - order)) * (1 - 1e-9)


def exact_sum(epsilon: float, uses: int) -> dict[int, Decimal]:
    """So many randomized responses: the probability of each sum of losses, in steps of epsilon, to fifty digits."""
    with localcontext() as context:
        context.prec = 50
        likely = 1 / (1 + (-Decimal(epsilon)).exp())
        return {
            2 * k - uses: math.comb(uses, k) * likely**k * (1 - likely) ** (uses - k)
            for k in range(uses + 1)
        }


@pytest.mark.parametrize(("epsilon", "uses"), [(0.1, 20), (0.25, 60), (1.0, 8)])
def test_no_mass_of_a_composed_sum_is_rounded_down(epsilon, uses):
    """Whatever the transform errs by, each loss has at least its exact probability (here losses lie on the grid)."""
    loss = PureDP(F(epsilon))
    kinds = pld._sides({loss: uses}, 2**14)[0].plans[0].kinds
    total = pld._compose(kinds, 1.0, 1e-9, epsilon, 2**14)
    seen = Decimal(0)
    with localcontext() as context:
        context.prec = 50
        for steps, mass in exact_sum(epsilon, uses).items():
            at = int(np.abs(total.x - steps * epsilon).argmin())
            # What lies beyond the window is counted apart.
            if abs(total.x[at] - steps * epsilon) < 1e-12:
                assert Decimal(float(total.mass[at])) >= mass
                seen += mass
    assert 1 - seen < Decimal("1e-9")
