"""Google's dp_accounting as an oracle of numerical composition, where it is installed (`pip install "dp-accounting>=0.6"`).

Compositions are spelled as lists: some of its events have forgotten a count. Its transforms may end up to 1e-9 below the
truth, relatively, and its grid well above it: it bounds ours from above with its own discretisation, and from below
by optimistic estimates.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpframe.accounting import pld
from dpframe.accounting.loss import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonGaussian,
)

pytest.importorskip("dp_accounting")

F = Fraction
CASES = {
    "gaussian": [(Gaussian(20), 30)],
    "laplace": [(Laplace(F(1, 10)), 30)],
    "discrete laplace": [(DiscreteLaplace(F(1, 10), 2), 12)],
    "subsampled": [(PoissonGaussian(F(1, 50), 1), 200)],
    "mixed": [(Laplace(F(1, 10)), 10), (Gaussian(10), 3), (PoissonGaussian(F(1, 20), 2), 20)],
    "discrete gaussian": [(DiscreteGaussian(20), 50)],
}


def theirs(loss, *, pessimistic):
    from dp_accounting.pld import privacy_loss_distribution as plds

    common = {
        "pessimistic_estimate": pessimistic,
        "value_discretization_interval": 2e-4,
    }
    if isinstance(loss, Gaussian):
        return plds.from_gaussian_mechanism(
            float(loss.sigma), use_connect_dots=pessimistic, **common
        )
    if isinstance(loss, Laplace):
        return plds.from_laplace_mechanism(
            1 / float(loss.epsilon), use_connect_dots=pessimistic, **common
        )
    if isinstance(loss, DiscreteLaplace):
        return plds.from_discrete_laplace_mechanism(
            float(loss.a), sensitivity=loss.sensitivity, use_connect_dots=pessimistic, **common
        )
    if isinstance(loss, DiscreteGaussian):
        sigma = float(loss.parts[0][0]) ** 0.5
        return plds.from_discrete_gaussian_mechanism(sigma, use_connect_dots=pessimistic, **common)
    assert isinstance(loss, PoissonGaussian)
    return plds.from_gaussian_mechanism(
        float(loss.sigma), sampling_prob=float(loss.q), use_connect_dots=pessimistic, **common
    )


def compose(events, *, pessimistic):
    whole = None
    for loss, count in events:
        part = theirs(loss, pessimistic=pessimistic).self_compose(count)
        whole = part if whole is None else whole.compose(part)
    return whole


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_between_their_optimistic_and_pessimistic_estimates(name, delta):
    events = CASES[name]
    found = pld.epsilon(events, delta)
    slack = (
        2e-3 if name == "discrete gaussian" else 1e-5
    )  # its curve is that of a slightly larger continuous one
    assert found <= compose(events, pessimistic=True).get_epsilon_for_delta(delta) * (1 + slack)
    assert found >= compose(events, pessimistic=False).get_epsilon_for_delta(delta) * (1 - 1e-8)


@pytest.mark.parametrize("name", CASES)
def test_profiles_agree(name):
    events = CASES[name]
    points = [0.1, 0.5, 1.0]
    found = pld.profile(events, points)
    upper = compose(events, pessimistic=True)
    for t, delta in zip(points, found, strict=True):
        assert (
            delta
            <= upper.get_delta_for_epsilon(t) * (1.02 if name == "discrete gaussian" else 1.001)
            + 1e-13
        )
        assert (
            delta
            >= compose(events, pessimistic=False).get_delta_for_epsilon(t) * (1 - 1e-8) - 1e-13
        )
