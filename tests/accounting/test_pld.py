"""Numerical composition of fixed lists: against closed forms, exact sums and references, and never below them."""

from __future__ import annotations

import itertools
import json
import math
import random
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpframe.accounting import _gaussian, pld
from dpframe.accounting import _pld_bounds as _pld_atoms
from dpframe.accounting import _pld_bounds as _pld_ranges
from dpframe.accounting.loss import (
    ApproxDP,
    Curve,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Loss,
    PoissonGaussian,
    PureDP,
    from_json,
)

F = Fraction
CASES = json.loads((Path(__file__).parent / "reference.json").read_text())["cases"]


@dataclass(frozen=True)
class Pair(Loss):
    """A pair of laws on a few points."""

    p: tuple[float, ...]
    q: tuple[float, ...]
    noise: float = 0.0
    epsilon = None

    @property
    def curves(self):
        def both(p, q):
            losses = [math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0 and b > 0]

            def delta(t):
                t = np.asarray(t, float)
                found = sum(np.maximum(a - np.exp(t) * b, 0) for a, b in zip(p, q, strict=True))
                return found * (1 + self.noise * np.random.default_rng(1).random(t.shape))

            return Curve(delta, min(losses), max(losses))

        return both(self.p, self.q), both(self.q, self.p)


def brute_delta(pairs, t, back=False):
    """delta(t) of a product of discrete pairs, by enumeration."""
    total = 0.0
    for outcome in itertools.product(*(zip(x.p, x.q, strict=True) for x in pairs)):
        a, b = math.prod(o[0] for o in outcome), math.prod(o[1] for o in outcome)
        total += max(b - math.exp(t) * a if back else a - math.exp(t) * b, 0.0)
    return total


def responses(groups):
    """Losses and masses of [(epsilon, count)] randomized responses: products of binomials by log gamma."""
    losses, masses = np.zeros(1), np.ones(1)
    for e, k in groups:
        i = np.arange(k + 1)
        logs = np.array(
            [math.lgamma(k + 1) - math.lgamma(j + 1) - math.lgamma(k - j + 1) for j in i]
        )
        logs += -i * math.log1p(math.exp(-e)) - (k - i) * math.log1p(math.exp(e))
        losses = np.add.outer(losses, (2 * i - k) * e).ravel()
        masses = np.multiply.outer(masses, np.exp(logs)).ravel()
    return losses, masses


def exact_delta(atoms, t):
    losses, masses = atoms
    return float(masses @ np.maximum(-np.expm1(np.minimum(t - losses, 0.0)), 0.0))


def exact_epsilon(atoms, delta):
    low, high = 0.0, float(atoms[0].max())
    if exact_delta(atoms, 0.0) <= delta:
        return 0.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if exact_delta(atoms, middle) > delta else (low, middle)
    return low


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_reference(case):
    found = pld.epsilon(from_json(case["events"]), case["delta"])
    assert found >= float(case["epsilon_lower"]) * (1 - 1e-9)
    near = (
        2e-4 if {"exponential", "discrete_gaussian"} & {e["type"] for e in case["events"]} else 2e-5
    )
    assert found <= float(case["epsilon_tight"]) * (1 + near)


RESPONSES = [
    ([(0.1, 7)], 1e-3),
    ([(1.0, 30)], 1e-12),
    ([(0.3, 12), (0.07, 40)], 1e-6),
    ([(0.001, 500), (2.0, 1)], 1e-9),
    ([(1e-9, 300)], 1e-12),
    ([(math.pi, 4), (math.e / 10, 9), (0.01, 20)], 1e-5),
    ([(5.0, 3)], 0.3),
    ([(20.0, 2), (1e-3, 50)], 1e-8),
]


@pytest.mark.parametrize(("groups", "delta"), RESPONSES)
def test_randomized_responses_are_tight_and_never_below_the_binomials(groups, delta):
    events = [(PureDP(F(e)), k) for e, k in groups]
    exact = exact_epsilon(responses(groups), delta)
    assert exact <= pld.epsilon(events, delta) <= exact * (1 + 2e-5)


@pytest.mark.parametrize("cells", [8, 500])
@pytest.mark.parametrize(("groups", "delta"), RESPONSES)
def test_a_coarse_grid_is_only_looser(groups, delta, cells):
    events = [(PureDP(F(e)), k) for e, k in groups]
    found = pld.epsilon(events, delta, cells=cells)
    assert exact_epsilon(responses(groups), delta) <= found <= pld.epsilon(events, 0.0)


def test_random_mixtures_of_responses_are_never_below():
    rng = random.Random(3)
    for _ in range(20):
        groups = [
            (10 ** rng.uniform(-5, 1), rng.choice([1, 2, 9, 60]))
            for _ in range(rng.choice([1, 2, 3]))
        ]
        delta, cells = 10 ** rng.uniform(-12, -0.5), rng.choice([32, 1024, 1 << 18])
        exact = exact_epsilon(responses(groups), delta)
        found = pld.epsilon([(PureDP(F(e)), k) for e, k in groups], delta, cells=cells)
        assert found >= exact, (groups, delta, cells)
        if cells > 1024:
            assert found <= exact * (1 + 1e-4) + 1e-300, (groups, delta)


def test_profile_of_responses_at_every_threshold():
    groups = [(0.3, 12), (0.07, 40)]
    points = np.array([-4.0, -0.5, 0.0, 0.1, 1.0, 3.0, 6.0, 6.39, 6.5])
    found = pld.profile([(PureDP(F(e)), k) for e, k in groups], points)
    exact = np.array([exact_delta(responses(groups), t) for t in points])
    assert (found >= exact * (1 - 1e-13)).all()
    assert (found <= exact * (1 + 1e-3) + 1e-12).all()
    assert pld.profile([(PureDP(F(1)), 1)], [[0.5], [2.0]]).shape == (2, 1)


@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-6])
def test_asymmetric_pairs_take_the_worse_direction(noise):
    a, b = Pair((0.7, 0.2, 0.1), (0.1, 0.6, 0.3), noise), Pair((0.05, 0.95), (0.01, 0.99), noise)
    for t in (-0.7, 0.0, 0.4, 1.0, 2.5):
        exact = max(brute_delta([a, a, a, b, b], t, back) for back in (False, True))
        (found,) = pld.profile([(a, 3), (b, 2)], [t])
        assert exact * (1 - 1e-13) <= found <= exact * (1 + 1e-4 + 100 * noise) + 1e-9, t
    assert brute_delta([b], 0.3) != pytest.approx(brute_delta([b], 0.3, True), rel=0.1)


def test_a_loss_without_any_curve_is_infinite():
    class Unknown(Loss):
        epsilon = None

    assert pld.epsilon([(Unknown(), 1)], 1e-6) == math.inf
    assert pld.profile([(Unknown(), 1)], [3.0])[0] == 1.0


MIXED = [
    (Gaussian(30), 20),
    (Laplace(F(1, 10)), 5),
    (PureDP(F(1, 20)), 30),
    (PoissonGaussian(F(1, 100), 1), 40),
    (ApproxDP(F(1, 10), F(1, 10**8)), 3),
    (DiscreteLaplace(F(1, 20), 3), 4),
]


def test_order_and_grouping_do_not_matter():
    expected = pld.epsilon(MIXED, 1e-6)
    shuffled = [(loss, 1) for loss, count in MIXED for _ in range(count)]
    random.Random(1).shuffle(shuffled)
    assert pld.epsilon(shuffled, 1e-6) == pytest.approx(expected, rel=1e-8)
    assert pld.epsilon([*MIXED, (Laplace(1), 0)], 1e-6) == expected


KINDS = [
    Gaussian(5),
    Laplace(F(1, 5)),
    PureDP(F(1, 5)),
    PoissonGaussian(F(1, 20), 1),
    ApproxDP(F(1, 5), F(1, 10**9)),
    DiscreteLaplace(F(1, 10), 2),
    Exponential(F(1, 5)),
]


@pytest.mark.parametrize("loss", KINDS, ids=[k.kind for k in KINDS])
def test_counts_matter_and_only_their_sum(loss):
    one, seven, eight = (pld.epsilon([(loss, k)], 1e-6) for k in (1, 7, 8))
    assert one < 0.8 * seven < 0.8 * eight
    assert pld.epsilon([(loss, 3), (loss, 4)], 1e-6) == seven
    assert pld.epsilon([(loss, 1)] * 7, 1e-6) == seven


@pytest.mark.parametrize("loss", KINDS, ids=[k.kind for k in KINDS])
def test_epsilon_falls_with_delta_and_inverts_the_profile(loss):
    events = [(loss, 6), (Laplace(F(3, 100)), 3)]
    deltas = [1e-7, 1e-5, 1e-3, 0.1, 0.9]
    found = [pld.epsilon(events, d) for d in deltas]
    assert found == sorted(found, reverse=True)
    back = pld.profile(events, found)
    for d, e, b in zip(deltas, found, back, strict=True):
        # an iteration's cells depend a little on the question
        assert b <= d * (1 + (2e-2 if loss.bounded_range else 1e-3))
        assert e == 0 or b >= d * (1 - (2e-2 if loss.bounded_range else 1e-3))


def test_more_events_never_cost_less():
    costs = [pld.epsilon(MIXED[:n], 1e-6) for n in range(len(MIXED) + 1)]
    assert costs[0] == 0.0
    assert all(a <= b * (1 + 1e-6) for a, b in itertools.pairwise(costs))


def test_gaussians_compose_to_one_gaussian():
    for sigma, k in ((F(1, 5), 4), (F(100), 900), (F(10**6), 100)):
        one, many = (
            pld.epsilon([(Gaussian(sigma), 1)], 1e-9),
            pld.epsilon([(Gaussian(sigma * 30), 900)], 1e-9),
        )
        assert many == pytest.approx(one, rel=1e-5), (sigma, k)


def test_tails_too_heavy_for_a_tilt():
    """Renyi's bound alone is 100 times this: the few enormous losses have to be set aside before."""
    events = [(PoissonGaussian(F(1, 10**6), 1), 10**5)]
    assert 0.0023 < pld.epsilon(events, 1e-12) < 0.0025
    assert pld.profile(events, [0.00238])[0] < 1.1e-12


@pytest.mark.parametrize("delta", [1e-60, 1e-150, 1e-300])
def test_absurd_deltas_still_get_an_upper_bound(delta):
    truth = _gaussian.epsilon_for(1.0, delta)
    assert truth * (1 - 1e-9) < pld.epsilon([(Gaussian(1), 1)], delta) < truth * 1.1
    assert pld.epsilon([(Laplace(1), 3)], delta) == 3.0


def test_failures_come_first():
    events = [(ApproxDP(1, F(1, 10**6)), 2)]
    assert pld.epsilon(events, 1.9e-6) == math.inf
    assert pld.epsilon(events, 2e-6) == 2.0
    assert pld.epsilon(events, 0.0) == math.inf
    failure = 1 - (1 - 1e-6) ** 2
    exact = exact_epsilon(responses([(1.0, 2)]), (1e-4 - failure) / (1 - failure))
    assert exact * (1 - 1e-9) <= pld.epsilon(events, 1e-4) <= exact * (1 + 1e-6)
    assert pld.profile(events, [5.0])[0] == pytest.approx(failure)


def test_delta_zero_is_the_exact_pure_sum():
    assert pld.epsilon([(PureDP(F(1, 10)), 10)], 0.0) == 1.0
    assert pld.epsilon([(PureDP(F(1, 3)), 1)], 0.0) > F(1, 3)
    assert pld.epsilon([(PureDP(1), 1), (Gaussian(1), 1)], 0.0) == math.inf


def test_nothing_and_nonsense():
    assert pld.epsilon([], 0.0) == pld.epsilon([], 1e-6) == 0.0
    assert pld.profile([], [-1.0, 0.0, 1.0]).tolist() == [pytest.approx(1 - math.exp(-1)), 0.0, 0.0]
    for delta in (-1e-9, 1.0, math.nan):
        with pytest.raises(ValueError, match="delta"):
            pld.epsilon([], delta)
    with pytest.raises(ValueError, match="count"):
        pld.epsilon([(PureDP(1), -1)], 1e-6)


# Exponential mechanisms ---------------------------------------------------------------------------------------------


def below(sequence, m, delta, others=None, span=1.2):
    """A lower bound of the epsilon of bounded ranges m_i h in this order: only t on the grid, only exact values."""
    h = sequence[0][0] / m
    n = math.ceil(span / h)
    s = np.arange(-n, n + 1) * h
    value = np.maximum(-np.expm1(s), 0)
    for reach, k in sequence:
        size = round(reach / h)
        for _ in range(k):
            wide = np.concatenate(
                (-np.expm1(s[0] - h * np.arange(size, 0, -1)), value, np.zeros(size))
            )
            best = value
            for c in range(1, size):
                p = math.expm1(c * h - reach) / math.expm1(-reach)
                down, up = (
                    wide[size - c : size - c + len(s)],
                    wide[2 * size - c : 2 * size - c + len(s)],
                )
                best = np.maximum(best, p * down + (1 - p) * up)
            value = best
    return float(s[np.flatnonzero(value > delta)[-1]])


def test_adaptive_choices_are_covered():
    found = pld.epsilon([(Exponential(F(1, 10)), 10)], 1e-6)
    lower = below([(0.1, 10)], 200, 1e-6)
    assert lower <= found <= lower * 1.003


def test_any_order_of_ranges_is_covered():
    found = pld.epsilon([(Exponential(F(1, 10)), 3), (Exponential(F(1, 20)), 4)], 1e-6)
    orders = (
        [(0.1, 3), (0.05, 4)],
        [(0.1, 0), (0.05, 4), (0.1, 3)],
        [(0.1, 1), (0.05, 2), (0.1, 2), (0.05, 2)],
    )
    lower = max(below(o, 100, 1e-6, span=0.7) for o in orders)
    assert lower <= found <= lower * 1.01


def test_the_iteration_covers_every_t_between_grid_points():
    """One step on a coarse grid against a fine search over t, with chords in e**s: the same function, not the grid's."""
    h, m = 0.05, 8
    s = np.arange(-60, 61) * h
    value = np.maximum(-np.expm1(s), 0) + np.exp(-((s + 1) ** 2)) / 20
    table = _pld_ranges.GameValue(float(s[0]), h, value)
    reach = m * h
    for cuts in ([0, 8], [0, 3, 4, 5, 8], list(range(9))):
        bound = _pld_ranges._steer(value, h, m, cuts)
        finest = np.zeros(len(s))
        for t in np.linspace(0, reach, 401):
            p = math.expm1(t - reach) / math.expm1(-reach)
            finest = np.maximum(finest, p * table(s - t) + (1 - p) * table(s - t + reach))
        middle = slice(10, -10)
        assert (bound[middle] >= finest[middle] * (1 - 1e-14)).all() or len(cuts) < 9
        if len(cuts) == 9:
            assert bound[middle] == pytest.approx(finest[middle], rel=1e-4)


def test_exponential_mechanisms_after_other_events():
    """Ranges after a randomized response, by the two losses of the response."""
    e, reach, k, delta = 1.0, 0.1, 6, 1e-6
    found = pld.epsilon([(PureDP(1), 1), (Exponential(F(1, 10)), k)], delta)
    value = _pld_ranges.adversary(((reach, k),), math.log(delta), 20.0)
    truth = 1 / (1 + math.exp(-e))
    low, high = 0.0, e + k * reach
    for _ in range(60):
        t = (low + high) / 2
        at = value(np.array([t - e, t + e])) @ [truth, 1 - truth]
        low, high = (t, high) if at > delta else (low, t)
    assert found == pytest.approx(high, rel=5e-4)
    assert (
        below([(reach, k)], 100, delta, span=0.7) + e > found
    )  # the pure events' sum is not the answer


@pytest.mark.parametrize("k", [2, 30])
def test_ranges_cost_no_more_than_zero_concentration_and_responses(k):
    e = F(1, 20)
    found = pld.epsilon([(Exponential(e), k)], 1e-6)
    rho = k / 3200
    orders = 1 + np.geomspace(1e-2, 1e4, 4000)
    renyi = orders * rho + np.log1p(-1 / orders) - (math.log(1e-6) + np.log(orders)) / (orders - 1)
    assert found <= renyi.min() * (1 + 1e-6)
    assert (
        pld.epsilon([(PureDP(e / 2), k)], 1e-6) * 0.999
        <= found
        <= pld.epsilon([(PureDP(e), k)], 1e-6)
    )


def test_many_kinds_of_ranges_fall_back_to_what_holds():
    events = [(Exponential(F(k, 100)), 20) for k in range(1, 11)]
    started = time.process_time()
    found = pld.epsilon(events, 1e-6)
    assert time.process_time() - started < 20
    rho = sum(count * float(loss.epsilon) ** 2 / 8 for loss, count in events)
    assert (
        pld.epsilon([(Exponential(F(1, 10)), 20)], 1e-6)
        < found
        < rho + 2 * math.sqrt(rho * math.log(1e6))
    )


# The parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loss", [k for k in KINDS if k.bounded_range is None], ids=lambda k: k.kind
)
def test_atoms_lie_above_their_curve_everywhere(loss):
    for side in range(len(loss.curves)):
        curve = loss.curves[side]
        rough = _pld_atoms.sketch(loss, side)
        grid = _pld_atoms.atoms_on_grid(_pld_atoms.curve_of(loss, side), 0.0123, 3.0, -20.0, 1e-12)
        for at, log_mass, infinite in (rough, grid._replace(at=grid.at * 0.0123)):
            for t in np.linspace(curve.lower - 1, min(curve.upper, 3.0) + 1, 301):
                (truth,) = curve.delta(np.array([t]))
                mine = infinite + float(
                    np.exp(log_mass) @ np.maximum(-np.expm1(np.minimum(t - at, 0.0)), 0.0)
                )
                assert mine >= truth * (1 - 1e-12) - 1e-300


def test_powers_of_a_transform():
    base = np.exp(1j * np.linspace(0, 6, 50)) * np.linspace(0, 1, 50)
    for k in (1, 2, 3, 10, 37):
        assert pld._power(base.copy(), k) == pytest.approx(base**k, abs=1e-14)


@pytest.mark.scaled
def test_speed():
    kinds = [Laplace(F(k, 1000)) for k in range(1, 11)] + [Gaussian(100 + k) for k in range(10)]
    started = time.process_time()
    pld.epsilon([(loss, 1) for loss in kinds] * 500, 1e-6)
    assert time.process_time() - started < 4  # 0.15 s on an idle core


@pytest.mark.parametrize("sigma", ["5", "50", "684", "141.43"])
@pytest.mark.parametrize("q", ["0.001", "0.00099", "0.0021382", "0.03"])
def test_a_few_steps_of_rare_sampling_are_not_lost_below_the_window(q, sigma):
    """The curve of one step lies in a thirtieth of its support, which a first sketch once overlooked."""
    step = PoissonGaussian(Fraction(q), Fraction(sigma))
    for delta in (1e-6, 1e-8, 1.9e-9):
        alone = float(step.epsilon_at(Fraction(str(delta))))
        one, three = (pld.epsilon([(step, n)], delta) for n in (1, 3))
        assert one >= alone * (1 - 1e-6) - 1e-12
        assert three >= one
