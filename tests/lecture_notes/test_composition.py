"""How losses add up in the lecture notes: k releases, k people, and the theorem that has the root of k."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction as F

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dpframe
from dpframe import audit, calibrate
from dpframe.accounting import ApproxDP, PureDP, epsilon
from dpframe.audit import approximate_max_divergence, kl_divergence, max_divergence
from tests.lecture_notes.draws import drawn

Law = dict[tuple[int, ...], F]


def response(bit: int, odds: F) -> dict[int, F]:
    """Randomized response whose epsilon is ln(odds)."""
    return {bit: odds / (1 + odds), 1 - bit: 1 / (1 + odds)}


def one_after_the_other(first: dict[int, F], second: Callable[[int], dict[int, F]]) -> Law:
    return {(a, b): p * q for a, p in first.items() for b, q in second(a).items()}


# Epsilons add up ----------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.fractions(1, 9, max_denominator=7),
    st.fractions(1, 9, max_denominator=7),
    st.tuples(*[st.sampled_from([0, 1])] * 2),
)
def test_a_second_release_that_depends_on_the_first_adds_its_epsilon(one, two, turned):
    """K2 may be another mechanism for each answer of K1: here it turns its bit around, or not."""

    def both(bit: int) -> Law:
        return one_after_the_other(response(bit, one), lambda z: response(bit ^ turned[z], two))

    p, q = both(0), both(1)
    assert sum(p.values()) == 1
    assert max(p[z] / q[z] for z in p) == one * two  # e**(e1 + e2), and no less
    assert max_divergence(p, q) == pytest.approx(math.log(one) + math.log(two), abs=1e-12)


def test_a_session_adds_them_exactly_and_refuses_what_is_more():
    p = pd.DataFrame({"age": [30, 41, 52]}).dp.open(epsilon=1, bounds={"age": (0, 110)})
    told = p.count(epsilon=0.3)
    p.query("age > 40" if told > 3 else "age <= 40").count(
        epsilon=0.5
    )  # chosen by the first answer
    assert p.budget.spent == 0.8
    with pytest.raises(dpframe.BudgetExceeded):
        p.count("age", epsilon=0.21)
    p.count("age", epsilon=0.2)
    assert p.budget.remaining == 0


def test_k_releases_with_delta_are_k_epsilon_k_delta_private():
    """The worst (epsilon, delta)-private release: with probability delta it says all, else it is randomized response."""
    d, odds = F(1, 100), F(2)

    def law(bit: int) -> dict[int, F]:
        told = {z: (1 - d) * p for z, p in response(bit, odds).items()}
        return {**told, 2 + bit: d}

    p, q = law(0), law(1)
    assert approximate_max_divergence(p, q, d) <= math.log(2)
    for k in (2, 3, 4):
        many: list[Law] = [
            {z: math.prod(one[i] for i in z) for z in itertools.product(one, repeat=k)}
            for one in (p, q)
        ]
        assert approximate_max_divergence(*many, k * d) <= k * math.log(2) + 1e-12
        assert (
            approximate_max_divergence(*many, d) == math.inf
        )  # delta alone, without its k, is not enough
        assert epsilon([(ApproxDP(0.5, d), k)], delta=float(k * d), accountant="pure") == 0.5 * k
        assert (
            epsilon([(ApproxDP(0.5, d), k)], delta=float(k * d * F(99, 100)), accountant="pure")
            == math.inf
        )


# Groups of people ---------------------------------------------------------------------------------------------------------


def noisy(count: int, reach: int, cut: bool = False) -> list[F]:
    """A count with Laplace noise of epsilon ln 2; ``cut`` to less than ``reach`` steps, which is private with a delta only."""
    cells = range(-reach, 2 * reach)
    weight = [
        F(1, 2 ** abs(z - count)) if not cut or abs(z - count) < reach else F(0) for z in cells
    ]
    if not cut:  # the tails go to the cells at the ends
        weight[0], weight[-1] = 2 * weight[0], 2 * weight[-1]
    return [w / sum(weight) for w in weight]


def test_groups_of_k_lose_k_epsilon():
    for k in range(1, 6):
        p, q = noisy(0, 10), noisy(k, 10)  # a count that all k are in
        assert max_divergence(p, q) == pytest.approx(k * math.log(2))
        frame = pd.DataFrame({"age": [30, 41]})
        assert frame.dp.open(0.5).budget.for_group(k).epsilon == 0.5 * k


@pytest.mark.parametrize("k", [2, 4])
def test_counts_of_tables_that_differ_in_k_people_show_up_to_k_epsilon(k):
    epsilon, n = 0.5, 4000
    draws = [
        drawn(
            lambda p: int(p.count(epsilon=epsilon, fresh=True)),
            pd.DataFrame({"age": [30] * size}),
            n,
            epsilon,
        )
        for size in (3, 3 + k)
    ]
    seen = audit.from_draws(*draws, level=0.999).epsilon
    assert (k - 1) * epsilon < seen <= k * epsilon


def test_groups_of_k_with_delta_stay_below_the_bound_of_the_notes():
    def excess(one: list[F], two: list[F], factor: int) -> F:
        return sum((max(F(0), a - factor * b) for a, b in zip(one, two, strict=True)), F(0))

    laws = [noisy(c, 6, cut=True) for c in range(5)]
    d = excess(laws[0], laws[1], 2)
    assert 0 < d == excess(laws[1], laws[0], 2)
    assert max_divergence(laws[0], laws[1]) == math.inf
    for k in (2, 3, 4):
        seen = excess(laws[0], laws[k], 2**k)
        assert (
            d < seen <= d * (2**k - 1) <= k * 2**k * d
        )  # the sum that dpframe tells, and the simpler bound
        given = (
            pd.DataFrame({"age": [30]})
            .dp.open(math.log(2), float(d), accountant="pure", n=1)
            .budget.for_group(k)
        )
        assert given.epsilon == pytest.approx(k * math.log(2))
        assert given.delta == pytest.approx(float(d * (2**k - 1)))
        assert given.delta_of_the_notes == pytest.approx(float(k * 2**k * d))


# Advanced composition -----------------------------------------------------------------------------------------------------


def responses(k: int, odds: F) -> tuple[list[F], list[F]]:
    """The law of k randomized responses, told apart by how many say 1: nothing else tells the two tables apart."""
    p = odds / (1 + odds)
    one = [math.comb(k, i) * p**i * (1 - p) ** (k - i) for i in range(k + 1)]
    return one, one[::-1]


@pytest.mark.parametrize(("k", "odds"), [(40, F(11, 10)), (100, F(21, 20)), (10, F(2))])
@pytest.mark.parametrize("delta", [F(1, 20), F(1, 10**6)])
def test_advanced_composition_with_both_constants(k, odds, delta):
    """The two forms in the notes, next to the exact loss of k responses, which no bound may be below."""
    p, q = responses(k, odds)
    exact = approximate_max_divergence(p, q, delta)
    e = math.log(odds)
    root = e * math.sqrt(2 * k * math.log(1 / delta))
    price = PureDP(F(e))
    forms = {"advanced": root + k * e * math.expm1(e), "advanced-squared": root + k * e * e}
    for name, form in forms.items():
        assert exact <= form
        assert epsilon([(price, k)], delta=float(delta), accountant=name) == pytest.approx(form)
    assert (
        exact
        <= epsilon([(price, k)], delta=float(delta), accountant="pld")
        <= min(k * e, *forms.values())
    )
    assert epsilon([(PureDP(1), k)], delta=float(delta), accountant="advanced-squared") == math.inf


def test_it_is_worth_it_for_epsilons_far_below_one_over_the_root_of_k():
    k, delta = 10_000, 1e-6
    for e, better in ((0.001, True), (0.01, True), (0.7, False), (2, False)):
        many = epsilon([(PureDP(e), k)], delta=delta, accountant="advanced")
        assert (many < k * e) == better
    small = [
        epsilon([(PureDP(1e-4), n)], delta=delta, accountant="advanced")
        for n in (10_000, 1_000_000)
    ]
    assert small[1] == pytest.approx(
        10 * small[0], rel=0.2
    )  # a hundred times as many for ten times the price


def test_releases_with_delta_bring_k_of_it_along():
    e, d, k, extra = F(1, 10), F(1, 10**8), 30, F(1, 10**6)
    form = float(e) * math.sqrt(2 * k * math.log(1 / extra)) + k * float(e) * math.expm1(e)
    told = epsilon([(ApproxDP(e, d), k)], delta=float(extra + k * d), accountant="advanced")
    assert told == pytest.approx(form, rel=1e-6)
    assert epsilon([(ApproxDP(e, d), k)], delta=float(k * d), accountant="advanced") > 10 * form


# Its proof: expected losses, and Azuma's inequality -----------------------------------------------------------------------


@pytest.mark.parametrize(("n", "p"), [(20, F(1, 2)), (60, F(1, 2)), (40, F(1, 10))])
def test_azumas_inequality_holds_for_sums_and_is_no_larger_than_it_must_be(n, p):
    mean = float(n * p)
    for t in (1, 3, 6, 9):
        exact = float(stats.binom.sf(math.ceil(mean + t) - 1, n, float(p)))
        stated = calibrate.azuma_tail(t, [1] * n)
        assert exact <= stated == pytest.approx(math.exp(-2 * t * t / n))
        if p == F(1, 2) and t == 6:
            assert exact > calibrate.azuma_tail(
                t, [0.5] * n
            )  # effects must not be taken for smaller
    assert calibrate.azuma_tail(0, [1, 2]) == 1


def test_azumas_inequality_holds_where_each_draw_depends_on_the_last():
    """A walk whose step is 1 or 2 wide, as the step before went up or down: each effect is at most 4, the expectation 0."""
    law: dict[tuple[int, int], F] = {(0, 1): F(1)}
    steps = 12
    for _ in range(steps):
        longer: dict[tuple[int, int], F] = {}
        for (at, wide), chance in law.items():
            for sign in (-1, 1):
                key = (at + sign * wide, 1 if sign > 0 else 2)
                longer[key] = longer.get(key, F(0)) + chance / 2
        law = longer
    assert sum(at * p for (at, _), p in law.items()) == 0
    for t in range(1, 2 * steps):
        beyond = sum((p for (at, _), p in law.items() if at >= t), F(0))
        assert beyond <= calibrate.azuma_tail(t, [4] * steps)


@pytest.mark.parametrize("odds", [F(11, 10), F(2)])
def test_the_proof_of_advanced_composition_step_by_step(odds):
    """Bounded losses, a small expectation, and a total that is seldom far above it."""
    k, e, delta = 30, math.log(odds), 1e-4
    expected = kl_divergence(response(0, odds), response(1, odds))
    assert expected <= e * math.expm1(e) < e or odds == 2
    reach = e * math.sqrt(2 * k * math.log(1 / delta))
    assert calibrate.azuma_tail(reach, [2 * e] * k) == pytest.approx(delta)
    losses = [(2 * i - k) * e for i in range(k + 1)]  # of i true answers
    chances = [float(x) for x in responses(k, odds)[0]]
    assert sum(a * b for a, b in zip(losses, chances, strict=True)) == pytest.approx(k * expected)
    beyond = sum(
        b for a, b in zip(losses, chances, strict=True) if a > k * e * math.expm1(e) + reach
    )
    assert beyond <= delta


@pytest.mark.parametrize("wrong", [[], "12", [1, 0], [1, -1], [math.inf], 3])
def test_wrong_effects_are_refused(wrong):
    with pytest.raises(dpframe.DPError):
        calibrate.azuma_tail(1, wrong)
