"""Prices, noise and numbers of people: against other formulas, simulation, and one step too far."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from dpframe import BadValue
from dpframe import calibrate as c

EPSILONS = [1e-6, 1e-4, 0.01, 0.1, 0.5, 0.99, 1, 3, 10, 50]
DELTAS = [1e-12, 1e-9, 1e-6, 1e-3, 0.1]

# The Gaussian curve by two routes that the package does not take ------------------------------------------------

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_EDGES = np.concatenate([[0.0], np.geomspace(1e-13, 45, 120)])
_HALF = np.diff(_EDGES)[:, None] / 2
_V = _EDGES[:-1, None] + _HALF * (1 + _NODES)


def by_quadrature(mu, t):
    """The integral over m in (0, mu) of phi(t/m - m/2), with m = mu exp(-v)."""
    m = mu * np.exp(-_V)
    with np.errstate(over="ignore", under="ignore"):
        return float(
            (_HALF * _WEIGHTS * m * np.exp(-((t / m - m / 2) ** 2) / 2)).sum()
            / math.sqrt(2 * math.pi)
        )


def by_logs(mu, t):
    near, far = special.log_ndtr(mu / 2 - t / mu), t + special.log_ndtr(-mu / 2 - t / mu)
    return math.exp(near) * -math.expm1(far - near)


def test_the_two_routes_agree_with_each_other_and_with_erfc():
    for mu, t in itertools.product([0.05, 0.3, 1, 4, 12], [0.0, 0.01, 0.5, 2, 20]):
        if by_quadrature(mu, t) > 1e-280:
            assert by_quadrature(mu, t) == pytest.approx(by_logs(mu, t), rel=1e-11)
    tails = [math.erfc(x / math.sqrt(2)) / 2 for x in (0.5 - 0.5, 0.5 + 0.5)]
    assert by_quadrature(1, 0.5) == pytest.approx(tails[0] - math.exp(0.5) * tails[1], rel=1e-12)


# Gaussian noise -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [2.0**-50, 1e-12, 1e-9, *EPSILONS, 700, 1024])
@pytest.mark.parametrize("delta", [1e-250, 1e-30, *DELTAS, 0.9])
def test_sigma_is_enough_and_a_millionth_less_is_not(epsilon, delta):
    sigma = c.gaussian_sigma(epsilon, delta)
    assert by_quadrature(1 / sigma, epsilon) <= delta
    # Beyond, e**epsilon overflows and the curve is an upper bound only.
    if epsilon <= 700 or delta <= 0.1:
        assert by_quadrature(1 / (sigma * (1 - 1e-6)), epsilon) > delta


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_inverse_questions_lose_next_to_nothing(epsilon, delta):
    sigma = c.gaussian_sigma(epsilon, delta, sensitivity=3)
    assert c.gaussian_delta(sigma, epsilon, sensitivity=3) == pytest.approx(delta, rel=1e-6)
    assert c.gaussian_epsilon(sigma, delta, sensitivity=3) == pytest.approx(epsilon, rel=1e-6)
    # a sigma that a user rounds up keeps the promise
    assert c.gaussian_delta(sigma * 1.000001, epsilon, sensitivity=3) <= delta


@pytest.mark.parametrize("sigma", [1e-4, 0.01, 0.3, 1, 7.7, 1e3, 1e7, 1e14])
@pytest.mark.parametrize("delta", [1e-250, *DELTAS])
def test_epsilon_is_enough_and_a_millionth_less_is_not(sigma, delta):
    epsilon = c.gaussian_epsilon(sigma, delta)
    mu = 1 / sigma
    if epsilon == 0:
        assert math.erf(mu / 2 / math.sqrt(2)) <= delta
    elif mu <= 40:  # the quadrature is for curves of ordinary steepness
        assert by_quadrature(mu, epsilon) <= delta
        assert by_quadrature(mu, epsilon * (1 - 1e-6)) > delta
    else:  # near the tail alone: the second term takes away less than all of it
        z = -special.ndtri(delta)
        assert mu * mu / 2 + mu * (z - 1) < epsilon < mu * mu / 2 + mu * z * (1 + 1e-6)


def test_delta_is_never_below_the_curve_nor_much_above():
    for sigma, epsilon in itertools.product(
        [0.05, 0.4, 1, 30, 99_999, 100_001, 1e8], [0, 1e-9, 1e-6, 0.01, 1, 9]
    ):
        found, exact = c.gaussian_delta(sigma, epsilon), by_quadrature(1 / sigma, epsilon)
        assert exact <= found
        assert found <= max(exact * (1 + 1e-7), 2.0**-900)
    assert c.gaussian_delta(2, 0) == pytest.approx(math.erf(0.25 / math.sqrt(2)))


def test_extremes_stay_on_the_safe_side():
    assert c.gaussian_delta(1e9, 50) == 2.0**-900  # underflows, but is not 0
    assert c.gaussian_delta(1e-6, 1) == c.gaussian_delta(1e-5 * (1 - 1e-9), 1) == 1.0
    assert c.gaussian_epsilon(1e-6, 0.1) == math.inf
    assert c.gaussian_epsilon(0.01, 1e-6) > 5000
    assert c.gaussian_epsilon(100, 0.1) == 0.0


@pytest.mark.parametrize("delta", [*DELTAS, 0.5, 0.9])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 0.01, 0.1, 0.5, 0.9, 0.999999])
def test_the_classic_formula_is_never_less_noise_in_its_range(epsilon, delta):
    classic = c.gaussian_sigma(epsilon, delta, method="classic")
    assert classic >= c.gaussian_sigma(epsilon, delta)
    assert classic == pytest.approx(math.sqrt(2 * math.log(1.25 / delta)) / epsilon, rel=1e-11)


def test_the_classic_formula_is_refused_where_it_is_not_proved():
    with pytest.raises(BadValue, match="below 1 only"):
        c.gaussian_sigma(1, 1e-6, method="classic")
    # and with reason: at epsilon 11 it would overspend
    assert by_quadrature(11 / math.sqrt(2 * math.log(1.25e6)), 11.0) > 1e-6


# Laplace noise and selection -----------------------------------------------------------------------------------


def test_the_scale_is_the_rational_number_rounded_up():
    rng = np.random.default_rng(1)
    for epsilon, s in zip(rng.uniform(0.001, 5, 300), rng.uniform(0.1, 100, 300), strict=True):
        found = c.laplace_scale(float(epsilon), sensitivity=float(s))
        exact = Fraction(repr(float(s))) / Fraction(repr(float(epsilon)))
        assert Fraction(math.nextafter(found, 0)) < exact <= Fraction(found)
    assert c.laplace_scale(0.1) == 10
    assert c.laplace_scale(Decimal("0.1"), sensitivity=Fraction(1, 2)) == 5


def discrete_inside(epsilon, w):
    """P[|X| <= w] of integer noise with P[x] proportional to exp(-epsilon |x|)."""
    q = math.exp(-epsilon)
    return 1 - 2 * q ** (math.floor(w) + 1) / (1 + q)


@pytest.mark.parametrize("level", [0.3, 0.75, 0.95, 0.9999])
@pytest.mark.parametrize("answers", [1, 2, 20, 10_000])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4])
def test_laplace_reaches_have_exactly_their_level(epsilon, answers, level):
    w = c.laplace_within(epsilon, answers=answers, level=level, sensitivity=2)
    assert (1 - math.exp(-w * epsilon / 2)) ** answers == pytest.approx(level, rel=1e-9)
    # the notes' union bound is no less, and on whole numbers the noise of counts keeps the level
    assert w <= 2 / epsilon * math.log(answers / (1 - level)) * (1 + 1e-9)
    assert discrete_inside(epsilon / 2, math.ceil(w)) ** answers >= level
    assert c.laplace_epsilon(w, answers=answers, level=level, sensitivity=2) == pytest.approx(
        epsilon
    )


@pytest.mark.parametrize(
    ("epsilon", "answers", "level"), [(0.5, 1, 0.95), (0.5, 20, 0.95), (2, 200, 0.8)]
)
def test_all_answers_are_within_reach_as_often_as_promised(epsilon, answers, level):
    rng = np.random.default_rng(20)
    draws = 4_000_000 // answers
    worst = np.abs(rng.laplace(scale=c.laplace_scale(epsilon), size=(draws, answers))).max(axis=1)
    w, spread = (
        c.laplace_within(epsilon, answers=answers, level=level),
        math.sqrt(level * (1 - level) / draws),
    )
    assert abs((worst <= w).mean() - level) < 5 * spread
    assert (worst <= 0.97 * w).mean() < level - 5 * spread  # and a smaller reach would not do


def test_the_notes_examples():
    # "(10 + log k)/epsilon with 1 - e**-10": lecture notes on privacy, histogram queries
    level = 1 - math.exp(-10)
    assert c.laplace_within(1, answers=50, level=level) == pytest.approx(
        10 + math.log(50), abs=1e-3
    )
    # 2 log(k/beta)/epsilon: the union bound of a histogram, as in the lecture notes
    assert c.laplace_within(0.5, answers=50, sensitivity=2) == pytest.approx(
        4 * math.log(50 / 0.05), rel=0.004
    )
    # (Delta/e)(ln |R| + t) for the mechanism that is 2e-private
    assert c.exponential_within(2 * 0.3, 40, level=1 - math.exp(-3)) == pytest.approx(
        (math.log(40) + 3) / 0.3
    )
    # 2/(alpha epsilon) and 1/(delta**2 alpha**2) at three quarters
    assert 1386 <= c.mean_n(0.01, 0.1, level=0.75) <= 2 / (0.01 * 0.1)
    rate = math.exp(0.1) / (1 + math.exp(0.1)) - 0.5
    assert c.randomized_response_n(0.01, 0.1, level=0.75) <= 1 / (rate * 0.01) ** 2
    # sqrt(d) sqrt(log(1/delta))/(epsilon alpha**2), more than
    notes = c.sgd_n(0.1, 2, 1e-5, dimension=400, method="notes")
    assert notes == math.floor(20 * math.sqrt(math.log(1e5)) / 0.02) + 1


@pytest.mark.parametrize(
    ("epsilon", "k", "gap"), [(0.5, 10, 5), (1, 100, 1), (1, 100, 14), (3, 2, 1)]
)
def test_a_choice_is_rarely_further_off_than_stated(epsilon, k, gap):
    # one best candidate and the others equally far behind: exact probabilities of the exponential mechanism
    for level in (0.6, 0.95, 0.999):
        reach = c.exponential_within(epsilon, k, level=level)
        weight = (k - 1) * math.exp(-epsilon * gap / 2)
        assert gap <= reach or weight / (1 + weight) <= 1 - level
        weight = (k - 1) * math.exp(-epsilon * reach / 2)  # the worst gap that counts
        assert (1 - level) / 3 < weight / (1 + weight) <= 1 - level


# How many people -----------------------------------------------------------------------------------------------


def coverage(noise, alpha, values=None):
    """How often all columns of noise (and of sampled means) are within alpha."""
    total = noise if values is None else noise + values
    return (np.abs(total).reshape(len(noise), -1).max(axis=1) <= alpha).mean()


@pytest.mark.parametrize("queries", [1, 15])
@pytest.mark.parametrize("mechanism", ["laplace", "advanced", "gaussian"])
def test_means_are_within_alpha_as_often_as_promised_and_no_oftener(queries, mechanism):
    alpha, epsilon, delta, level = 0.02, 0.8, 1e-5, 0.9
    n = c.mean_n(alpha, epsilon, delta=delta, queries=queries, mechanism=mechanism, level=level)
    rng, draws = np.random.default_rng(3), 40_000
    if mechanism == "gaussian":
        sigma = c.gaussian_sigma(epsilon, delta, sensitivity=math.sqrt(queries))
        noise = rng.normal(scale=sigma / n, size=(draws, queries))
    elif mechanism == "laplace":
        noise = rng.laplace(
            scale=c.laplace_scale(epsilon, sensitivity=queries) / n, size=(draws, queries)
        )
    else:
        each = brute_share(epsilon, delta, queries)
        noise = rng.laplace(scale=1 / each / n, size=(draws, queries))
    assert abs(coverage(noise, alpha) - level) < 0.012


def brute_share(epsilon, delta, k):
    """The largest e0 on a grid with e0 sqrt(2 k ln(1/delta)) + k e0 (exp(e0) - 1) <= epsilon."""
    grid = np.linspace(0, epsilon, 400_001)[1:]
    return grid[
        grid * math.sqrt(2 * k * math.log(1 / delta)) + k * grid * np.expm1(grid) <= epsilon
    ].max()


def test_advanced_composition_is_theorem_6_for_large_epsilon_too():
    for epsilon, delta, k in [(20, 0.5, 1), (5, 0.1, 3), (1, 1e-6, 100)]:
        n = c.mean_n(1e-4, epsilon, delta=delta, queries=k, mechanism="advanced", level=0.9)
        reach = -math.log(1 - 0.9 ** (1 / k))
        assert n == pytest.approx(reach / brute_share(epsilon, delta, k) / 1e-4, rel=1e-3)


def test_auto_takes_the_fewest_people():
    for k, e, d in itertools.product([1, 10, 1000], [0.1, 1, 5], [0, 1e-9, 1e-3]):
        names = ["laplace", "advanced", "gaussian"] if d else ["laplace"]
        sizes = [c.mean_n(0.01, e, delta=d, queries=k, mechanism=m) for m in names]
        assert c.mean_n(0.01, e, delta=d, queries=k) == min(sizes)
    many = [
        c.mean_n(0.01, 1, delta=1e-6, queries=5000, mechanism=m)
        for m in ("laplace", "advanced", "gaussian")
    ]
    assert many == sorted(many, reverse=True)  # what composition theorems are for


@pytest.mark.parametrize(("alpha", "epsilon", "k"), [(0.05, 0.1, 1), (0.05, 5, 1), (0.1, 0.5, 4)])
def test_a_sample_of_a_population_is_large_enough(alpha, epsilon, k):
    n = c.mean_n(alpha, epsilon, queries=k, population=True)
    rng, draws = np.random.default_rng(5), 60_000
    noise = rng.laplace(scale=k / epsilon / n, size=(draws, k))
    sampled = rng.binomial(n, 0.5, size=(draws, k)) / n - 0.5
    assert coverage(noise, alpha, sampled) >= 0.95
    # safe, but not wasteful: a third of the people would not do
    few = n // 3
    noise, sampled = noise * n / few, rng.binomial(few, 0.5, size=(draws, k)) / few - 0.5
    assert coverage(noise, alpha, sampled) < 0.94


def responses(rng, n, share, epsilon, draws, population):
    """Estimates less their target, from counts of true and false answers."""
    p = 1 / (1 + math.exp(-epsilon))
    ones = rng.binomial(n, share, size=draws) if population else np.full(draws, round(n * share))
    yes = rng.binomial(ones, p) + rng.binomial(n - ones, 1 - p)
    return (yes / n - (1 - p)) / (2 * p - 1) - (share if population else ones / n)


@pytest.mark.parametrize("population", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.5])
@pytest.mark.parametrize(
    ("alpha", "epsilon", "level"),
    [(0.05, 0.2, 0.95), (0.1, 1, 0.9), (0.1, 4, 0.95), (0.02, 6, 0.6)],
)
def test_randomized_response_keeps_its_level(alpha, epsilon, level, share, population):
    n = c.randomized_response_n(alpha, epsilon, level=level, population=population)
    off = responses(np.random.default_rng(8), n, share, epsilon, 40_000, population)
    assert (np.abs(off) <= alpha + 1e-12).mean() >= level


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 3, 4, 6, 9, 13])
@pytest.mark.parametrize("alpha", [0.03, 0.1, 0.3, 0.7])
def test_randomized_response_keeps_high_levels_where_the_law_is_skewed(alpha, epsilon):
    # everybody's truth is no, so false answers are a binomial number: exact probabilities
    lie = 1 / (1 + math.exp(epsilon))
    off = alpha * (1 - 2 * lie)
    for level in (0.9, 0.99, 1 - 1e-6, 1 - 1e-12):
        n = c.randomized_response_n(alpha, epsilon, level=level)
        above = special.bdtrc(math.floor(n * (lie + off) + 1e-9), n, lie)
        lowest = math.ceil(n * (lie - off) - 1e-9)
        below = special.bdtr(lowest - 1, n, lie) if lowest > 0 else 0.0
        assert above + below <= (1 - level) * (1 + 1e-9)


@pytest.mark.parametrize(("alpha", "epsilon"), [(0.05, 0.2), (0.03, 1), (0.01, 2)])
def test_the_normal_size_is_neither_too_small_nor_too_large(alpha, epsilon):
    for population in (False, True):
        n = c.randomized_response_n(alpha, epsilon, method="normal", population=population)
        off = responses(np.random.default_rng(9), n, 0.5, epsilon, 200_000, population)
        assert (np.abs(off) <= alpha).mean() == pytest.approx(0.95, abs=0.006)
        if not population:  # the variance that the docstring states
            assert off.var() == pytest.approx(1 / (4 * n * math.sinh(epsilon / 2) ** 2), rel=0.03)


def test_trusting_nobody_costs_the_square():
    central = [c.mean_n(a, a) for a in (0.1, 0.01, 0.001)]
    local = [c.randomized_response_n(a, a) for a in (0.1, 0.01, 0.001)]
    assert [round(math.log10(b / a), 1) for a, b in itertools.pairwise(central)] == [2.0, 2.0]
    assert [round(math.log10(b / a), 1) for a, b in itertools.pairwise(local)] == [4.0, 4.0]


# Order ----------------------------------------------------------------------------------------------------------

PRICES = st.floats(1e-6, 50)
SMALL = st.floats(1e-12, 0.1)
SHARES = st.floats(0.001, 0.9)
LEVELS = st.floats(0.01, 0.9999)
MORE = st.floats(1, 4)
TINY = 1 + 1e-9


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PRICES, SMALL, MORE)
def test_more_budget_is_less_gaussian_noise(epsilon, delta, more):
    sigma = c.gaussian_sigma(epsilon, delta)
    assert c.gaussian_sigma(epsilon * more, delta) <= sigma * TINY
    assert c.gaussian_sigma(epsilon, delta * more) <= sigma * TINY
    assert c.gaussian_delta(sigma * more, epsilon) <= c.gaussian_delta(sigma, epsilon) * (1 + 1e-7)
    assert c.gaussian_epsilon(sigma * more, delta) <= c.gaussian_epsilon(sigma, delta) * TINY
    assert by_quadrature(1 / sigma, epsilon) <= delta


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PRICES, LEVELS, MORE, st.integers(1, 10**6), st.integers(0, 10**6))
def test_reaches_grow_with_answers_and_level_and_shrink_with_epsilon(
    epsilon, level, more, k, extra
):
    for within in (
        lambda e, k, p: c.laplace_within(e, answers=k, level=p),
        lambda e, k, p: c.exponential_within(e, k, level=p),
    ):
        w = within(epsilon, k, level)
        assert within(epsilon * more, k, level) <= w * TINY
        assert within(epsilon, k + extra, level) >= w / TINY
        assert within(epsilon, k, 1 - (1 - level) / more) >= w / TINY


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    SHARES,
    st.floats(0.001, 50),
    SMALL,
    LEVELS,
    st.floats(1, 1.1),
    st.integers(1, 300),
    st.booleans(),
)
def test_sizes_shrink_with_alpha_and_epsilon_and_grow_with_the_rest(
    a, e, delta, level, more, k, population
):
    def mean(a=a, e=e, k=k, level=level):
        return c.mean_n(a, e, delta=delta, queries=k, level=level, population=population)

    def response(a=a, e=e, level=level, method="bound"):
        return c.randomized_response_n(a, e, level=level, population=population, method=method)

    higher = 1 - (1 - level) / more
    for size in (mean, response, lambda **kw: response(method="normal", **kw)):
        assert size(a=a * more) <= size() <= size(level=higher)
        assert size(e=e * more) <= size()
    assert mean() <= mean(k=k + 1)
    for words in ({"method": "notes"}, {"steps": 10**5, "length": 0.5}):
        fewer, size = (c.sgd_n(at, e, delta, k, **words) for at in (a * more, a))
        assert fewer <= size <= c.sgd_n(a, e / more, delta, k + 1, **words)
