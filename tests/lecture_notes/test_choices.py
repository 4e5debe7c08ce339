"""Choices in the lecture notes: the most common name, the most common disease, the best price of an auction."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe import audit, calibrate
from dpframe.audit import max_divergence
from dpframe.mechanisms.selection import NoisyMax
from dpframe.utilities import revenue

# The most common name and the most common disease -------------------------------------------------------------------------

NAMES = ["Ada", "Ben", "Cem", "Dia", "Eli"]


def test_the_most_common_name_is_read_off_a_private_histogram():
    people = pd.DataFrame({"name": ["Ada"] * 60 + ["Ben"] * 20 + ["Cem"] * 19})
    p = people.dp.open(1000, neighbors="replace-one", keys={"name": NAMES})
    plan = p.explain.value_counts("name", epsilon=1)
    assert (plan.sensitivity, plan.scale) == (2, 2)
    reach = calibrate.laplace_within(1, sensitivity=2, answers=len(NAMES), level=0.95)
    assert 2 * reach < 60 - 20  # then it is right wherever all bins are within reach
    found = [p.value_counts("name", epsilon=1, fresh=True).index[0] for _ in range(300)]
    assert found.count("Ada") >= 285 - 12  # 95 %, less three deviations
    alone = [p.argmax("name", epsilon=1, fresh=True) for _ in range(300)]  # the choice, and no bin
    assert alone.count("Ada") >= 285 - 12
    assert (
        p.explain.argmax("name", epsilon=1).scale == 2
    )  # one name loses a person, another gains one
    more = pd.DataFrame(people.to_dict("list")).dp.open(
        10, neighbors="replace-one", keys={"name": [*NAMES, *map(str, range(500))]}
    )
    assert more.explain.value_counts("name", epsilon=1).scale == 2  # whatever the number of names


@pytest.mark.parametrize("k", [2, 30])
def test_the_most_common_disease_needs_the_noise_of_one_count_and_not_of_k(k):
    """One person may have all k: option 1 releases all counts, option 2 the largest noisy one only."""
    ill = pd.DataFrame({"diseases": [0, 1, 2, k]})
    questions = {f"disease {i}": f"diseases > {i}" for i in range(k)}
    p = ill.dp.open(10)
    assert p.explain.counts(questions, epsilon=0.5, mechanism="laplace").scale == k / 0.5
    plan = p.explain.argmax(questions, epsilon=0.5)
    assert (plan.scale, plan.mechanism, plan.selects, len(plan.cells)) == (
        1 / 0.5,
        "noisy-max",
        True,
        1,
    )
    assert plan.epsilon == 0.5


def permute_and_flip(scores: tuple[int, ...], q: F) -> list[F]:
    """The law of noisy max with noise P[G >= t] = q**t and ties in random order, in closed form (McKenna and Sheldon 2020)."""
    top, k = max(scores), len(scores)
    law = [F(0)] * k
    for order in itertools.permutations(range(k)):
        left = F(1, math.factorial(k))
        for i in order:
            accept = q ** (top - scores[i])
            law[i] += left * accept
            left *= 1 - accept
    return law


counts = st.tuples(*[st.integers(0, 5)] * 3)
diseases = st.tuples(*[st.integers(0, 1)] * 3)


@settings(max_examples=80, deadline=None)
@given(counts, diseases)
def test_noisy_max_loses_epsilon_however_many_counts_a_person_is_in(before, person):
    after = tuple(a + b for a, b in zip(before, person, strict=True))
    p, q = permute_and_flip(before, F(1, 2)), permute_and_flip(after, F(1, 2))
    assert sum(p) == sum(q) == 1
    assert max(max_divergence(p, q), max_divergence(q, p)) <= math.log(2) + 1e-12


def test_noisy_max_loses_most_of_epsilon_for_some_person():
    p, q = permute_and_flip((9, 0, 0), F(1, 2)), permute_and_flip((10, 0, 0), F(1, 2))
    assert max_divergence(p, q) == pytest.approx(math.log(2), rel=0.01)
    # A person who is replaced moves one count up and another down: dpframe doubles the noise then.
    both = permute_and_flip((9, 1, 0), F(1, 2)), permute_and_flip((10, 0, 0), F(1, 2))
    assert max_divergence(*both) > 1.5 * math.log(2)
    frame = pd.DataFrame({"a": [True], "b": [False]})
    assert (
        frame.dp.open(1, neighbors="replace-one").explain.argmax(["a", "b"], epsilon=1).scale == 2
    )


def test_what_dpframe_draws_has_this_law():
    rate, scores, draws = F(7, 10), (4, 3, 1), 6000
    law = permute_and_flip(scores, F(math.exp(-0.7)))
    found = NoisyMax(rate).release(np.tile(np.array(scores).reshape(1, 3, 1), (draws, 1, 1)))
    seen = np.bincount(np.asarray(found).ravel(), minlength=3) / draws
    assert seen == pytest.approx([float(x) for x in law], abs=5 * math.sqrt(0.25 / draws))


# The exponential mechanism ------------------------------------------------------------------------------------------------


def exponential(scores: tuple[int, ...], base: int) -> list[F]:
    """The weights of the notes, exp(epsilon u) for scores that move by at most 1; the base is exp(epsilon)."""
    weights = [F(base) ** u for u in scores]
    total = sum(weights)
    return [w / total for w in weights]


scores = st.lists(st.integers(-6, 6), min_size=2, max_size=5)


@settings(max_examples=80, deadline=None)
@given(scores, st.data(), st.sampled_from([2, 3]))
def test_the_weights_of_the_notes_are_two_epsilon_private(one, data, base):
    two = [u + data.draw(st.sampled_from([-1, 0, 1])) for u in one]
    p, q = exponential(tuple(one), base), exponential(tuple(two), base)
    assert max(a / b for a, b in zip(p, q, strict=True)) <= base**2
    assert min(a / b for a, b in zip(p, q, strict=True)) >= F(1, base**2)


def test_and_not_less_which_is_why_dpframe_halves_them():
    many = 2000  # candidates, of which one gains and all others lose
    p = exponential((1, *[0] * many), 2)
    q = exponential((0, *[1] * many), 2)
    loss = max_divergence(p, q)
    assert 1.99 * math.log(2) < loss <= 2 * math.log(2)
    for notes, usual in ((0.3, 0.6), (1, 2)):  # one mechanism with two names for its epsilon
        one = calibrate.exponential_tail(shortfall=9, epsilon=notes, candidates=40, weights="notes")
        assert one == calibrate.exponential_tail(shortfall=9, epsilon=usual, candidates=40)


@settings(max_examples=80, deadline=None)
@given(scores, st.integers(0, 8))
def test_the_choice_is_seldom_far_from_the_best(utilities, short):
    """P[u <= OPT - w] <= |R| exp(-epsilon w), so e**-t for w = (ln |R| + t)/epsilon: exactly, and with the homework's law."""
    law = exponential(tuple(utilities), 2)
    assert law == [F(2) ** u / sum(F(2) ** v for v in utilities) for u in utilities]
    fallen = sum(
        (p for u, p in zip(utilities, law, strict=True) if u <= max(utilities) - short), F(0)
    )
    k = len(utilities)
    assert fallen <= F(k, 2**short)
    words = {"epsilon": math.log(2), "candidates": k, "weights": "notes"}
    stated = calibrate.exponential_tail(shortfall=short, **words)
    assert float(fallen) <= stated * (1 + 1e-9)
    assert stated == pytest.approx(min(1, k / 2**short))
    for t in (0.5, 2):
        w = (math.log(k) + t) / math.log(2)
        assert calibrate.exponential_tail(shortfall=w, **words) == pytest.approx(math.exp(-t))


def test_it_grows_with_the_logarithm_of_the_candidates():
    reaches = [calibrate.exponential_within(1, k) for k in (10, 100, 1000)]
    assert np.diff(reaches) == pytest.approx([2 * math.log(10)] * 2)
    one = calibrate.exponential_within(1, 1)
    assert one == pytest.approx(
        2 * math.log(20)
    )  # with one candidate only t is left, as for Laplace noise


# The auction --------------------------------------------------------------------------------------------------------------

BIDS = [1.0, 1.0, 1.0, 3.01]


def test_the_auction_of_four_bids():
    """Prices of 1, 3.01 and 3.02 earn 4, 3.01 and nothing: one cent turns the second best into the worst."""
    bids = pd.Series(BIDS)
    assert [price * int((bids >= price).sum()) for price in (1, 3.01, 3.02)] == [4, 3.01, 0]
    p = pd.DataFrame({"bid": BIDS}).dp.open(1000)

    def best(*prices: float) -> float:
        found: float = p.choose(list(prices), revenue("bid"), epsilon=300)
        return found

    assert best(1, 3.01, 3.02) == 1
    assert best(3.01, 3.02) == 3.01
    plan = p.explain.choose([1, 3.01, 3.02], revenue("bid"), epsilon=0.5)
    assert plan.selects
    assert plan.scale == pytest.approx(3.02 / 0.5)  # the most a bidder can be worth, over epsilon


@pytest.mark.parametrize("lost", range(4))
def test_a_bidder_moves_each_revenue_by_the_price_at_most(lost):
    prices = [0.5, 1, 3.01, 3.02]
    rest = [b for i, b in enumerate(BIDS) if i != lost]

    def earned(bids: list[float], price: float) -> float:
        return price * sum(b >= price for b in bids)

    assert max(earned(BIDS, c) - earned(rest, c) for c in prices) <= max(prices)
    ask: Callable[..., object] = lambda p: p.choose(prices, revenue("bid"))  # noqa: E731
    found = audit.replay(ask, pd.DataFrame({"bid": BIDS}), pd.DataFrame({"bid": rest}), epsilon=1)
    assert found.ok
    (step,) = found.steps
    # The highest price moves by all that its one buyer pays, and nothing moves the one that nobody pays.
    share = max(earned(BIDS, c) - earned(rest, c) for c in prices) / max(prices)
    assert step.distance / step.sensitivity == pytest.approx(share)
