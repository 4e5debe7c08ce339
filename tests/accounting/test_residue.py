"""The residue filter's step: sound against a dense evaluation, tight enough, and what it refuses."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from dpframe.accounting import PureDP, _pairs
from dpframe.accounting import residue as _residue
from dpframe.accounting._gaussian import delta, delta_at, mu_for, pure_mu
from dpframe.accounting._search import last_where
from dpframe.accounting.residue import (
    after,
    after_curve,
    after_exponential,
    after_laplace,
    after_pure,
)

NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)


def response(epsilon):
    """Losses and masses of randomized response."""
    p = 1 / (1 + math.exp(-epsilon))
    return np.array([-epsilon, epsilon]), np.array([1 - p, p])


def two_points(up, down):
    p = math.expm1(down) / (math.exp(down) - math.exp(-up))
    return np.array([-down, up]), np.array([1 - p, p])


def laplace_quadrature(epsilon):
    """The Laplace pair's losses: P[l > t] = 1 - exp((t - epsilon)/2)/2, an atom at each end and a density."""
    inner = epsilon * NODES
    masses = epsilon * WEIGHTS * np.exp((inner - epsilon) / 2) / 4
    return np.r_[-epsilon, inner, epsilon], np.r_[math.exp(-epsilon) / 2, masses, 0.5]


def laplace_atoms(epsilon, cells):
    """A pessimistic discretisation: H joined by chords in exp(t) between a grid of thresholds."""
    t = np.linspace(-epsilon, epsilon, cells + 1)
    h, x = -np.expm1((t - epsilon) / 2), np.exp(t)
    steps = -np.diff(h) / np.diff(x)
    q = -np.diff(np.r_[1.0, steps, 0.0])
    p = q * x
    return t, p / p.sum()


def gap(losses, masses, left, mu, t, slack=0.0):
    """H_mu + slack less the curve of the event and what is left, by direct summation."""
    return (
        delta(mu, t)
        + slack
        - sum(p * delta(left, t - x) for x, p in zip(losses, masses, strict=True))
    )


def thresholds(mu, reach):
    far = min(9 * mu, 40.0)
    return np.unique(np.r_[np.linspace(-far, far, 4001), np.linspace(-3 * reach, 3 * reach, 2001)])


def cost(mu, left):
    return (mu - left) * (mu + left)


def how_many(kind, epsilon, mu):
    count = -1
    while mu is not None:
        mu, count = after(kind, epsilon, mu), count + 1
    return count


# Purely private events ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [0.02, 0.1, 0.3, 0.5, 0.7, 0.79])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 4.0])
def test_pure_is_sound_at_every_threshold_and_no_larger_remainder_is(epsilon, ratio):
    mu = epsilon / ratio
    left = after_pure(epsilon, mu)
    assert left is not None
    pair, t = response(epsilon), thresholds(mu, epsilon)
    assert gap(*pair, left, mu, t).min() > -1e-14
    more = math.sqrt(mu * mu - cost(mu, left) * (1 - 1e-6))
    if delta_at(mu, 0.0) < 0.999:  # otherwise the difference is below what doubles show of H
        assert gap(*pair, more, mu, np.zeros(1))[0] < 0


@pytest.mark.parametrize(
    ("ratio", "units"),
    [(0.05, 1.0004), (0.1, 1.0017), (0.2, 1.007), (0.3, 1.016), (0.5, 1.05), (0.7, 1.15)],
)
def test_pure_costs_little_more_than_epsilon_squared(ratio, units):
    left = after_pure(0.01, 0.01 / ratio)
    assert cost(0.01 / ratio, left) / 1e-4 == pytest.approx(units, rel=3e-3)


@pytest.mark.parametrize("epsilon", [1e-7, 1e-3, 0.1, 1.0, 5.0, 20.0])
def test_pure_ends_where_the_curve_touches(epsilon):
    least = pure_mu(epsilon)
    assert after_pure(epsilon, least * (1 + 1e-9)) is not None
    assert after_pure(epsilon, least * (1 - 1e-9)) is None


@pytest.mark.parametrize("mu", [1e-8, 1e-5, 1e-2, 0.999, 1.0, 7.0, 50.0])
def test_rounding_wastes_at_most_1e_13_of_the_budget(mu):
    epsilon = mu * 1e-9
    assert cost(mu, after_pure(epsilon, mu)) < 2e-13 * mu * mu * max(1, mu * mu / 8)


@pytest.mark.parametrize("mu", [1e-8, 0.3, 1.0, 49.0, 1e6])
@pytest.mark.parametrize("kind", ["pure", "exponential", "laplace"])
def test_extreme_values_never_gain_and_never_fail(kind, mu):
    for epsilon in (0.0, 1e-9, 1e-3, 1.0, 20.0, 800.0):
        left = after(kind, epsilon, mu)
        assert left is None or 0 <= left <= mu
        if left is not None and epsilon > 0:
            assert left < mu
    assert after(kind, 1.0, 0.0) is None
    assert after(kind, 0.0, mu) == mu


def test_an_endless_budget_stays_endless():
    assert after_pure(1.0, math.inf) == math.inf


@pytest.mark.parametrize(
    "bad", [(-1.0, 1.0), (math.nan, 1.0), (1.0, math.nan), (math.inf, 1.0), (1.0, -1.0)]
)
def test_nonsense_is_refused(bad):
    with pytest.raises(ValueError, match="epsilon must be finite"):
        after_pure(*bad)


def test_unknown_kinds_are_refused():
    with pytest.raises(ValueError, match="'cauchy'"):
        after("cauchy", 0.1, 1.0)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-4, 3.0), st.floats(0.01, 0.78), st.floats(1.0, 1.2))
def test_pure_grows_with_mu_and_falls_with_epsilon(epsilon, ratio, factor):
    mu = epsilon / ratio
    left = after_pure(epsilon, mu)
    assert after_pure(epsilon, mu * factor) >= left * (1 - 1e-12)
    dearer = after_pure(epsilon * factor, mu)
    assert dearer is None or dearer <= left * (1 + 1e-12)
    # theorem 4: what it costs here it costs at most further up
    assert cost(mu * factor, after_pure(epsilon, mu * factor)) <= cost(mu, left) + 1e-12 * mu * mu


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-3, 5.0), st.floats(1e-6, 0.79) | st.floats(0.79, 0.9))
def test_two_close_points_leave_the_search_where_it_was(mu, ratio):
    """The last double with room is the one that is found if every middle is tried."""
    epsilon = mu * ratio
    room = partial(_pairs._room, epsilon, mu)
    at_most, size = room(0.0)
    if at_most < 0:
        assert after_pure(epsilon, mu) is None
        return
    low, high = _pairs._around(room, size, epsilon, mu)
    assert low == 0 or (room(low)[0] >= 0 > room(high)[0] and high - low < 1e-9 * mu)
    found = last_where(lambda left: room(left)[0] >= 0, 0.0, mu)
    assert after_pure(epsilon, mu) == pytest.approx(found, rel=2e-15 if ratio < 0.7 else 1e-11)


@pytest.mark.parametrize("ratio", [1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.78])
@pytest.mark.parametrize("mu", [1e-3, 0.1, 0.6, 1.5, 5.0])
def test_two_close_points_are_found_where_budgets_are(mu, ratio):
    room = partial(_pairs._room, mu * ratio, mu)
    _, size = room(0.0)
    calls = []
    low, high = _pairs._around(lambda left: calls.append(left) or room(left), size, mu * ratio, mu)
    assert 0 < low < high < mu
    assert len(calls) <= 9


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-4, 3.0), st.floats(1e-4, 0.78))
def test_a_cost_lies_between_what_doubles_say_at_first(epsilon, ratio):
    """Not below what affinities prove, nor above mu squared, of which a tangent and a chord say how large it is."""
    mu = epsilon / ratio
    assert (
        cost(mu, after_pure(epsilon, mu)) >= 8 * math.log(math.cosh(epsilon / 2)) - 1e-13 * mu * mu
    )
    assert pure_mu(epsilon) ** 2 >= 2 * math.pi * math.tanh(epsilon / 2) ** 2
    assert epsilon > 1 or pure_mu(epsilon) ** 2 < 1.8 * epsilon**2


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-3, 40.0), st.floats(1e-10, 0.85))
def test_a_loss_leaves_the_larger_of_a_remainder_and_a_difference(mu, ratio):
    loss, square = PureDP(mu * ratio), Fraction(mu) ** 2
    found = loss.residue(math.sqrt(square) * (1 - 1e-15))
    options = [] if found is None else [Fraction(found) ** 2]
    if loss.mu_squared is not None and loss.mu_squared <= square:
        options.append(square - loss.mu_squared)
    assert loss.leaves(square) == max(options, default=None)


# The certificate ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [0.003, 0.05, 0.3, 0.7])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0])
def test_the_certificate_finds_the_cost_of_randomized_response(epsilon, ratio):
    mu = epsilon / ratio
    exact = cost(mu, after_pure(epsilon, mu))
    left = after_curve(*response(epsilon), 0.0, mu, symmetric=True)
    assert 0 <= cost(mu, left) / exact - 1 < 1e-6
    assert after_curve(*response(epsilon), 0.0, mu) == pytest.approx(left, rel=1e-9)


@pytest.mark.parametrize("ratio", [0.003, 0.05, 0.3, 0.7])
def test_the_certificate_refuses_a_cost_that_is_a_millionth_too_low(ratio):
    exact = cost(1.0, after_pure(ratio, 1.0))
    event = _residue.atoms(*response(ratio), True)
    assert _residue._Step(event, 1.0, exact * (1 + 1e-6), 0.0).holds()
    assert not _residue._Step(event, 1.0, exact * (1 - 1e-6), 0.0).holds()


@st.composite
def pairs(draw):
    size = draw(st.integers(2, 6))
    weights = st.lists(st.floats(0.05, 1.0), min_size=size, max_size=size)
    q, other = np.array(draw(weights)), np.array(draw(weights))
    q, other, mix = q / q.sum(), other / other.sum(), draw(st.floats(0.05, 0.5))
    p = (1 - mix) * q + mix * other
    losses, order = np.unique(np.round(np.log(p / q), 12), return_inverse=True)
    q = np.bincount(order, q)
    p = q * np.exp(losses)
    return losses, p / p.sum()


@settings(max_examples=15, deadline=None)
@given(pairs(), st.floats(0.4, 5.0), st.sampled_from([0.0, 0.0, 1e-6, 1e-2]))
def test_what_a_dense_grid_refutes_is_never_accepted(pair, factor, slack):
    losses, masses = pair
    lost = abs(1 - float(masses @ np.exp(-losses)))
    reach = float(np.abs(losses).max())
    if reach < 1e-3 or lost > 1e-12:
        return
    mu = factor * reach
    left = after_curve(losses, masses, 0.0, mu, slack)
    if left is None:
        assert gap(losses, masses, 0.0, mu, thresholds(mu, reach), slack).min() < 1e-6
        return
    assert gap(losses, masses, left, mu, thresholds(mu, reach), slack).min() > -3e-14 - 3 * lost
    reverse = (-losses[::-1], (masses * np.exp(-losses))[::-1])
    assert gap(*reverse, left, mu, thresholds(mu, reach), slack).min() > -3e-14 - 3 * lost
    back = after_curve(*reverse, 0.0, mu, slack)
    assert cost(mu, back) == pytest.approx(cost(mu, left), rel=1e-5, abs=1e-12 * mu * mu)


def test_integrals_do_not_depend_on_the_number_of_nodes(monkeypatch):
    events = [
        _residue.two_points(0.3),
        _residue.laplace(0.3),
        _residue.atoms(np.array([-0.2, 0.1, 0.5]), np.array([0.3, 0.3, 0.4]), False),
    ]
    steps = [
        _residue._Step(event, mu, share * mu * mu, 0.0)
        for event in events
        for mu in (0.35, 1.0, 8.0)
        for share in (0.05, 0.3, 0.95)
    ]

    def integrals():
        for step in steps:
            x = np.linspace(0, 8 / step.event.reach, 7)
            if x[-1] ** 2 * step.cost < 500:
                yield np.concatenate([step.above(x, 1), *step.below(x)])

    few = list(integrals())
    nodes, weights = np.polynomial.legendre.leggauss(32)
    monkeypatch.setattr(_residue, "NODES", nodes)
    monkeypatch.setattr(_residue, "WEIGHTS", weights)
    many = list(integrals())
    assert len(few) >= 15
    for one, other in zip(few, many, strict=True):
        assert np.abs(one - other).max() <= 1e-11 * (1 + np.abs(other).max())


def test_mass_at_infinity_comes_out_of_the_slack():
    losses, masses = response(0.1)
    free = after_curve(losses, masses, 0.0, 1.0)
    losses, masses = losses + math.log1p(-1e-6), masses * (1 - 1e-6)
    assert after_curve(losses, masses, 1e-6, 1.0) is None
    assert after_curve(losses, masses, 1e-6, 1.0, 1e-7) is None
    exact = after_curve(losses, masses, 1e-6, 1.0, 1e-6)
    spare = after_curve(losses, masses, 1e-6, 1.0, 2e-4)
    assert cost(1.0, exact) == pytest.approx(cost(1.0, free), rel=1e-3)
    assert cost(1.0, spare) < cost(1.0, exact)
    t = thresholds(1.0, 0.1)
    assert gap(losses, masses, exact, 1.0, t, 0.0).min() > -1e-14
    assert gap(losses, masses, spare, 1.0, t, 2e-4 - 1e-6).min() > -1e-14


def test_with_slack_both_orders_hold():
    """A rare large loss one way: the slack pays for it, and a check of this order at t < 0 is not one of the other."""
    q = np.array([1e-4, 0.4999, 0.5])
    p = q * np.exp([-3.0, 0.02, 0.0])
    p[2] = 1 - p[:2].sum()
    losses = np.log(p / q)
    losses, p, q = losses[order := np.argsort(losses)], p[order], q[order]
    p = p / p.sum()
    mu, slack, t = 0.2, 2e-4, np.linspace(-8, 8, 8001)
    left = after_curve(losses, p, 0.0, mu, slack)
    assert gap(losses, p, left, mu, t, slack).min() > -1e-14
    assert gap(-losses, q, left, mu, t, slack).min() > -1e-14
    free = math.sqrt(mu**2 - 0.2 * cost(mu, left))
    assert gap(-losses, q, free, mu, t, slack).min() < 0


def test_what_q_lacks_comes_out_of_the_slack():
    """A pair pessimistic on one side only: P's masses moved to a larger loss, so that Q has some left over."""
    losses, masses = response(0.1)
    losses[1] += 1e-3
    assert after_curve(losses, masses, 0.0, 1.0) is None
    assert after_curve(losses, masses, 0.0, 1.0, 1e-2) is not None


@pytest.mark.parametrize(
    ("losses", "masses", "infinite", "match"),
    [
        ([0.1, -0.1], [0.5, 0.5], 0.0, "increase"),
        ([0.1], [0.5, 0.5], 0.0, "same length"),
        ([], [], 0.0, "same length"),
        ([0.0, math.inf], [0.5, 0.5], 0.0, "finite"),
        ([-0.1, 0.1], [0.5, 0.6], 0.0, "sum to 1"),
        ([-0.1, 0.1], [0.5, 0.5], 0.0, "at most 1"),
        ([-0.1, 0.1], [1.5, -0.5], 0.0, "negative"),
    ],
)
def test_what_is_no_pair_is_refused(losses, masses, infinite, match):
    with pytest.raises(ValueError, match=match):
        after_curve(losses, masses, infinite, 1.0)


def test_an_event_without_loss_costs_nothing():
    assert after_curve([0.0], [1.0], 0.0, 1.0) == 1.0


# Exponential and Laplace --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [0.05, 0.3, 0.5, 0.9, 1.3, 1.5])
def test_exponential_is_sound_for_every_pair_of_its_family(ratio):
    mu = 1.0
    left = after_exponential(ratio * mu, mu)
    t = thresholds(mu, ratio * mu)
    for share in np.linspace(0.005, 0.995, 34):
        up = share * ratio * mu
        assert gap(*two_points(up, ratio * mu - up), left, mu, t).min() > -1e-14


@pytest.mark.parametrize("ratio", [0.01, 0.1, 0.3, 0.5])
def test_exponential_costs_within_a_percent_of_half_its_range(ratio):
    least = cost(1.0, after_pure(ratio / 2, 1.0))
    assert least <= cost(1.0, after_exponential(ratio, 1.0)) <= 1.01 * least


@pytest.mark.parametrize("ratio", [0.05, 0.3, 0.7, 0.8])
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_laplace_is_sound_and_cheaper_than_randomized_response(epsilon, ratio):
    mu = epsilon / ratio
    left, pure = after_laplace(epsilon, mu), after_pure(epsilon, mu)
    assert gap(*laplace_quadrature(epsilon), left, mu, thresholds(mu, epsilon)).min() > -1e-13
    assert pure is None or left > pure


def test_laplace_agrees_with_a_fine_discretisation():
    found = cost(1.0, after_laplace(0.3, 1.0))
    atoms = [cost(1.0, after_curve(*laplace_atoms(0.3, n), 0.0, 1.0)) for n in (20, 200)]
    assert atoms[0] > atoms[1] > found * (1 - 1e-3)  # the ladder charges the level below
    assert atoms[1] == pytest.approx(found, rel=1e-3)


@pytest.mark.parametrize("kind", ["exponential", "laplace"])
def test_the_ladder_grows_with_mu(kind):
    grid = np.geomspace(0.05, 1.0, 40)
    left = [after(kind, 0.08, float(mu)) for mu in grid]
    kept = [0.0 if x is None else x for x in left]
    assert all(a <= b * (1 + 1e-6) for a, b in pairwise(kept))


# Sessions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "kind", "epsilon", "least"),
    [
        ((1.0, 1e-6), "pure", 0.02, 138),
        ((1.0, 1e-6), "laplace", 0.1, 5),
        ((1.0, 1e-6), "exponential", 0.1, 21),
        ((3.0, 1e-6), "pure", 0.02, 1047),
        ((3.0, 1e-6), "pure", 0.1, 40),
        ((3.0, 1e-6), "exponential", 0.1, 166),
        ((8.0, 1e-5), "laplace", 0.1, 285),
        ((8.0, 1e-5), "pure", 0.5, 10),
    ],
)
def test_a_session_admits_as_many_events_as_measured(budget, kind, epsilon, least):
    assert how_many(kind, epsilon, mu_for(*budget)) >= least


@pytest.mark.parametrize(
    ("budget", "epsilon"), [((1.0, 1e-6), 0.02), ((3.0, 1e-6), 0.1), ((8.0, 1e-5), 0.5)]
)
def test_repeats_of_one_event_never_beat_the_exact_composition(budget, epsilon):
    k = how_many("pure", epsilon, mu_for(*budget))
    up = np.arange(k + 1)
    p = special.expit(epsilon)
    masses = special.binom(k, up) * p**up * (1 - p) ** (k - up)
    exact = float(np.maximum(-np.expm1(budget[0] - epsilon * (2 * up - k)), 0) @ masses)
    assert exact <= budget[1]


def test_adaptive_choices_stay_below_the_budget():
    """Every path of an analyst who asks for more after good luck, summed exactly."""
    start = 1.0
    paths = [(1.0, 0.0, start)]  # probability under P, loss, remaining mu
    ended = []
    for depth in range(7):
        grown = []
        for p, loss, mu in paths:
            epsilon = 0.5 if loss < 0 else 0.05 + 0.1 * (depth % 3)
            left = after_pure(epsilon, mu)
            if left is None:
                ended.append((p, loss, mu))
                continue
            losses, masses = response(epsilon)
            grown += [(p * m, loss + x, left) for x, m in zip(losses, masses, strict=True)]
        paths = grown
    t = np.linspace(-6, 6, 601)
    joint = sum(
        p * delta(mu, t - loss) for p, loss, mu in paths + ended
    )  # what is left spent in full at the end
    assert ended
    assert len(paths) > 10
    assert (joint <= delta(start, t) + 1e-14).all()
