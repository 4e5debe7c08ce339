"""Each kind of loss: its numbers against independent sums and integrals, its rounding, and what it refuses."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from dpframe import BadType, BadValue
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
    from_json,
)
from dpframe.accounting.loss import KINDS, FailingGaussian, loss_from_json

F = Fraction
EXAMPLES: list[Loss] = [
    PureDP(F(1, 3)),
    Laplace(F("0.1")),
    DiscreteLaplace(F("0.1"), 3),
    Exponential(F("0.7")),
    ApproxDP(F(1, 2), F(1, 10**6)),
    Gaussian(F("2.5"), F(3, 7)),
    DiscreteGaussian(20, 3),
    DiscreteGaussian(parts=[(F(100, 7), 1), (400, 9)]),
    FailingGaussian([(F(30), 2)], F(1, 10**7)),
    PoissonGaussian(F("0.01"), F("1.1")),
]
MAKERS: dict[str, Any] = {
    "PureDP": PureDP,
    "Laplace": Laplace,
    "DiscreteLaplace a": DiscreteLaplace,
    "Exponential": Exponential,
    "ApproxDP epsilon": lambda x: ApproxDP(x, F(1, 10)),
    "Gaussian sigma": Gaussian,
    "Gaussian sensitivity": lambda x: Gaussian(1, x),
    "DiscreteGaussian sigma": DiscreteGaussian,
    "DiscreteGaussian sensitivity": lambda x: DiscreteGaussian(1, x),
    "DiscreteGaussian variance": lambda x: DiscreteGaussian(parts=[(x, 1)]),
    "DiscreteGaussian move": lambda x: DiscreteGaussian(parts=[(1, x)]),
    "FailingGaussian variance": lambda x: FailingGaussian([(x, 1)], F(1, 10)),
    "PoissonGaussian q": lambda x: PoissonGaussian(x, 1),
    "PoissonGaussian sigma": lambda x: PoissonGaussian(F(1, 2), x),
}

# Values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", EXAMPLES, ids=str)
def test_json_is_plain_exact_and_comes_back(loss: Loss) -> None:
    text = json.dumps({**loss.to_json(), "count": 4})
    ((back, count),) = from_json([json.loads(text)])
    assert (back, count) == (loss, 4)
    assert hash(back) == hash(loss)
    assert loss_from_json(loss.to_json()) == loss


def test_every_kind_is_covered_and_knows_its_name() -> None:
    assert {loss.kind for loss in EXAMPLES} == set(KINDS)
    assert all(KINDS[loss.kind] is type(loss) for loss in EXAMPLES)


def test_equality_is_by_kind_and_exact_value() -> None:
    assert len(set(EXAMPLES)) == len(EXAMPLES)
    assert PureDP(0.1) == PureDP(F(1, 10)) == PureDP(Decimal("0.1"))
    assert len({PureDP(F(1, 10)), PureDP(F("0.1"))}) == 1
    assert PureDP(F(1)) != Laplace(F(1)) != Exponential(F(1))
    assert PureDP(F(1)) != PureDP(F(1) + F(1, 10**30))
    assert DiscreteGaussian(3, 2) == DiscreteGaussian(parts=[(9, 4)])
    with pytest.raises(AttributeError):
        EXAMPLES[0].epsilon = F(0)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(
    "value", [0, -1, -1e-300, math.nan, math.inf, -math.inf, np.nan, np.float32("inf")], ids=repr
)
def test_numbers_out_of_range_are_refused(maker: str, value: Any) -> None:
    with pytest.raises(BadValue):
        MAKERS[maker](value)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("value", [True, np.True_, "0.1", None, [1], 1j], ids=repr)
def test_what_is_no_number_is_refused(maker: str, value: Any) -> None:
    if maker.startswith("DiscreteGaussian sigma") and value is None:
        return  # means that parts= are given
    with pytest.raises(BadType):
        MAKERS[maker](value)


def test_parameters_with_a_range_of_their_own() -> None:
    for d in (0, 1, 2, -0.1, math.nan):
        with pytest.raises(BadValue):
            ApproxDP(1, d)
        with pytest.raises(BadValue):
            FailingGaussian([(1, 1)], d)
    with pytest.raises(BadValue):
        PoissonGaussian(F(11, 10), F(1))
    for s in (0, -1):
        with pytest.raises(BadValue):
            DiscreteLaplace(F(1), s)
    with pytest.raises(BadType):
        DiscreteLaplace(F(1), 1.5)
    with pytest.raises(BadValue, match="one of them only"):
        DiscreteGaussian()
    with pytest.raises(BadValue, match="one of them only"):
        DiscreteGaussian(1, parts=[(1, 1)])


@pytest.mark.parametrize(
    "record",
    [
        {"type": "laplace"},
        {"type": "laplace", "epsilon": "one"},
        {"type": "laplace", "epsilon": "1/0"},
        {"type": "laplace", "epsilon": "-1"},
        {"type": "laplace", "epsilon": True},
        {"type": "laplace", "epsilon": 1, "sigma": 1},
        {"type": "cauchy", "epsilon": 1},
        {"epsilon": 1},
        {"type": "discrete_gaussian", "parts": [["1"]]},
        {"type": "discrete_gaussian", "parts": 3},
    ],
    ids=str,
)
def test_unreadable_records_are_bad_values(record: dict[str, Any]) -> None:
    with pytest.raises(BadValue):
        from_json([record])


@pytest.mark.parametrize("count", [0, -1, 1.5, "2", True])
def test_a_bad_count_is_refused(count: Any) -> None:
    with pytest.raises((BadType, BadValue)):
        from_json([{"type": "laplace", "epsilon": 1, "count": count}])


# Pairs of laws, written down once more -----------------------------------------------------------------------------

Law = tuple[np.ndarray, np.ndarray]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def panels(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    width = np.diff(edges)[:, None]
    return (edges[:-1, None] + width * (_NODES + 1) / 2).ravel(), (width * _WEIGHTS / 2).ravel()


def laplace_law(e: float) -> Law:
    x, w = panels(
        np.concatenate(
            [np.linspace(-60, 0, 240), np.linspace(0, e, 120)[1:], np.linspace(e, e + 60, 240)[1:]]
        )
    )
    return w * np.exp(-np.abs(x)) / 2, w * np.exp(-np.abs(x - e)) / 2


def normal(x: np.ndarray, centre: float, sigma: float) -> np.ndarray:
    return np.exp(-(((x - centre) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))


def gaussian_law(mu: float) -> Law:
    x, w = panels(np.linspace(-12, 12 + 12 * mu, 1500))
    return w * normal(x, mu, 1), w * normal(x, 0, 1)


def sampled_law(q: float, sigma: float) -> Law:
    x, w = panels(np.linspace(-14 * sigma, 14 * sigma + 20, 3000))
    return w * ((1 - q) * normal(x, 0, sigma) + q * normal(x, 1, sigma)), w * normal(x, 0, sigma)


def response_law(e: float) -> Law:
    p = np.array([1 / (1 + math.exp(-e)), 1 / (1 + math.exp(e))])
    return p, p[::-1]


def discrete_laplace_law(a: float, s: int) -> Law:
    x = np.arange(-int(60 / a) - s, int(60 / a) + 2 * s)
    p, q = np.exp(-a * np.abs(x)), np.exp(-a * np.abs(x - s))
    return p * math.tanh(a / 2), q * math.tanh(a / 2)


def discrete_gaussian_law(sigma: float, s: int) -> Law:
    x = np.arange(-int(14 * sigma) - s, int(14 * sigma) + 2 * s)
    p, q = np.exp(-(x**2) / (2 * sigma**2)), np.exp(-((x - s) ** 2) / (2 * sigma**2))
    total = np.exp(-(np.arange(-int(16 * sigma), int(16 * sigma) + 1) ** 2) / (2 * sigma**2)).sum()
    return p / total, q / total


def choice_law(e: float, share: float) -> Law:
    """Losses share * e and (share - 1) * e."""
    up, down = share * e, (1 - share) * e
    p = math.expm1(down) / (math.exp(down) - math.exp(-up))
    return np.array([p, 1 - p]), np.array([p * math.exp(-up), (1 - p) * math.exp(down)])


def divergence(law: Law, order: float) -> float:
    p, q = law
    return math.log(math.fsum(np.exp(order * np.log(p) + (1 - order) * np.log(q)))) / (order - 1)


def hockey_stick(law: Law, t: float) -> float:
    p, q = law
    return math.fsum(np.maximum(p - math.exp(t) * q, 0))


@cache
def exact_pairs() -> dict[Loss, list[Law]]:
    """Losses with all their worst pairs: the loss is the supremum of these."""
    return {
        PureDP(F(1, 2)): [response_law(0.5)],
        PureDP(F(3)): [response_law(3)],
        Laplace(F(1, 2)): [laplace_law(0.5)],
        Laplace(F(4)): [laplace_law(4)],
        DiscreteLaplace(F(1, 5), 1): [discrete_laplace_law(0.2, 1)],
        DiscreteLaplace(F(1, 5), 7): [discrete_laplace_law(0.2, 7)],
        Gaussian(F(2)): [gaussian_law(0.5)],
        Gaussian(F(1), F(3, 2)): [gaussian_law(1.5)],
        Exponential(F(1)): [choice_law(1, s) for s in np.linspace(0.02, 0.98, 97)],
        PoissonGaussian(F(1, 10), F(1)): [sampled_law(0.1, 1), sampled_law(0.1, 1)[::-1]],
        PoissonGaussian(F(1, 100), F(2)): [sampled_law(0.01, 2), sampled_law(0.01, 2)[::-1]],
        DiscreteGaussian(F(3)): [discrete_gaussian_law(3, s) for s in (1,)],
        DiscreteGaussian(F(3), 4): [discrete_gaussian_law(3, s) for s in (1, 2, 3, 4)],
    }


ORDERS = np.array([1.02, 1.5, 2.0, 3.0, 7.0, 12.0])
RENYI_IS_EXACT = (Laplace, Gaussian, PureDP)
CURVE_IS_EXACT = (Laplace, Gaussian, PureDP, DiscreteLaplace, PoissonGaussian)


@pytest.mark.parametrize("loss", exact_pairs(), ids=str)
def test_renyi_against_sums_and_quadrature(loss: Loss) -> None:
    claimed = loss.renyi(ORDERS)
    for order, found in zip(ORDERS, claimed, strict=True):
        truth = max(divergence(law, order) for law in exact_pairs()[loss])
        assert found >= truth * (1 - 1e-9) - 1e-13
        if isinstance(loss, RENYI_IS_EXACT) or (
            isinstance(loss, PoissonGaussian) and order == int(order)
        ):
            assert found == pytest.approx(truth, rel=1e-7)


@pytest.mark.parametrize("loss", exact_pairs(), ids=str)
def test_curves_against_sums_and_quadrature(loss: Loss) -> None:
    ts = np.array([-3.0, -1.0, -0.3, -0.01, 0.0, 0.01, 0.2, 0.45, 0.9, 1.3, 2.0, 3.5])
    claimed = np.max([curve.delta(ts) for curve in loss.curves], axis=0)
    for t, found in zip(ts, claimed, strict=True):
        truth = max(hockey_stick(law, t) for law in exact_pairs()[loss])
        # a kink inside a panel costs the quadrature some digits
        assert found >= truth * (1 - 1e-5) - 1e-12
        if isinstance(loss, CURVE_IS_EXACT):
            assert found == pytest.approx(truth, rel=1e-4, abs=1e-9)


def test_the_curve_of_choices_is_their_supremum() -> None:
    ts = np.linspace(-0.9, 0.9, 13)
    (curve,) = Exponential(F(1)).curves
    fine = [choice_law(1, s) for s in np.linspace(0.0005, 0.9995, 2000)]
    for t, found in zip(ts, curve.delta(ts), strict=True):
        assert found == pytest.approx(max(hockey_stick(law, t) for law in fine), rel=1e-6)


@pytest.mark.parametrize("loss", exact_pairs(), ids=str)
def test_zero_concentrated_and_gaussian_claims_lie_above_the_pair(loss: Loss) -> None:
    assert loss.rho is not None
    assert loss.mu_squared is not None
    assert np.all(loss.renyi(ORDERS) <= ORDERS * float(loss.rho) * (1 + 1e-9))
    above = Gaussian(1, F(math.sqrt(loss.mu_squared) * (1 + 1e-12)))
    ts = np.array([-1.0, 0.0, 0.1, 0.4, 1.0, 2.0])
    for law in exact_pairs()[loss]:
        for order in ORDERS:
            assert divergence(law, order) <= order * float(loss.rho) * (1 + 1e-9) + 1e-13
        for t, found in zip(ts, above.curves[0].delta(ts), strict=True):
            assert hockey_stick(law, t) <= found * (1 + 1e-6) + 1e-13  # a kink, again


@pytest.mark.parametrize(
    "loss", [*exact_pairs(), ApproxDP(F(1, 2), F(1, 10**13)), *EXAMPLES], ids=str
)
@pytest.mark.parametrize("delta", ["1e-12", "1e-9", "1e-6", "0.001", "0.3"])
def test_epsilon_at_is_the_least_that_the_curve_allows(loss: Loss, delta: str) -> None:
    d = F(delta)
    found = loss.epsilon_at(d)
    if d <= loss.failure:
        assert found is None or (d == loss.failure and found == loss.epsilon)
        return
    assert found is not None
    at = np.array([float(found), float(found) * (1 - 1e-6)])
    values = np.max([curve.delta(at) for curve in loss.curves], axis=0)
    rest = float(d - loss.failure)
    assert values[0] <= rest * (1 + 1e-7) or found == loss.epsilon
    if found > F(1, 10**6):
        assert values[1] >= rest * (1 - 1e-6)
    assert loss.epsilon is None or found <= loss.epsilon


def test_epsilon_at_without_delta_is_the_pure_epsilon() -> None:
    for loss in EXAMPLES:
        assert loss.epsilon_at(loss.failure) == loss.epsilon
        assert loss.epsilon_at(F(-1, 10**6)) is None or loss.epsilon is None


@pytest.mark.parametrize("loss", EXAMPLES, ids=str)
def test_what_remains_is_never_more_and_grows(loss: Loss) -> None:
    left = [loss.residue(mu) for mu in (0.2, 0.5, 1.0, 2.0, 5.0)]
    alive = [x for x in left if x is not None]
    assert alive == sorted(alive)
    assert alive == left[len(left) - len(alive) :]
    assert all(
        0 <= x <= mu for x, mu in zip(left, (0.2, 0.5, 1.0, 2.0, 5.0), strict=True) if x is not None
    )
