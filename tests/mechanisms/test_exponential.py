"""The exponential mechanism and peeling: exactly their laws, at every size of score; wrong twins are caught."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpframe.mechanisms import _sampling
from dpframe.mechanisms.selection import ExponentialChoice, NoisyMax, NoisyTop
from tests.internals import _uniform

DRAWS = 10_000
FALSE_ALARM = 1e-9


def law(scores, rate):
    """The notes' weights, normalised."""
    top = max(scores)
    weights = [math.exp(-float(rate * (top - s))) for s in scores]
    return [w / sum(weights) for w in weights]


def flips(scores, rate):
    """Permute and flip, by going through all orders: the law of noisy max."""
    k, top = len(scores), max(scores)
    accept = [math.exp(-float(rate * (top - s))) for s in scores]
    found = [0.0] * k
    for order in itertools.permutations(range(k)):
        left = 1.0 / math.factorial(k)
        for i in order:
            found[i] += left * accept[i]
            left *= 1 - accept[i]
    return found


def peeled(scores, rate, rounds):
    """The law of an ordered list of winners."""
    found = {}
    for order in itertools.permutations(range(len(scores)), rounds):
        chance, left = 1.0, list(range(len(scores)))
        for place in order:
            chance *= flips([scores[i] for i in left], rate)[left.index(place)]
            left.remove(place)
        found[order] = chance
    return found


def p_value(counts, chances):
    """Of a chi-square test over the outcomes that are expected five times or more, and one for all others."""
    expected = np.array(chances) * sum(counts)
    large = expected >= 5
    seen = [*np.array(counts)[large], np.array(counts)[~large].sum()]
    wanted = [*expected[large], expected[~large].sum()]
    if wanted[-1] < 1e-9:
        assert seen[-1] == 0
        seen, wanted = seen[:-1], wanted[:-1]
    if len(seen) == 1:
        return 1.0
    return float(stats.chisquare(seen, np.array(wanted) * sum(seen) / sum(wanted)).pvalue)


def drawn(mechanism, scores, draws=DRAWS):
    array = np.array([scores])
    return np.bincount(
        [int(mechanism.release(array)[0, 0]) for _ in range(draws)], minlength=len(scores)
    )


SCORES = [
    (0, 1, 3),
    (5, 5, 5),
    (-7, -9, -8, -8),
    (2**60, 2**60 - 1, 2**60 - 3),
    (-(2**60), 2**60, 2**60 - 2),
    (0, 0, 1, 1, 2, 2, 3),
]


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(7, 5)], ids=str)
@pytest.mark.parametrize("scores", SCORES, ids=str)
def test_choices_have_exactly_the_weights_of_the_notes(scores, rate):
    assert p_value(drawn(ExponentialChoice(rate), scores), law(scores, rate)) > FALSE_ALARM


@pytest.mark.parametrize("scores", [(0, 1, 3), (0, 0, 1, 1, 2)], ids=str)
def test_a_wrong_rate_and_the_other_mechanism_are_told_apart(scores):
    rate = Fraction(1, 2)
    counts = drawn(ExponentialChoice(rate), scores, 2 * DRAWS)
    assert p_value(counts, law(scores, rate * Fraction(4, 3))) < FALSE_ALARM
    assert p_value(counts, law(scores, rate * Fraction(3, 4))) < FALSE_ALARM
    assert p_value(drawn(NoisyMax(rate), scores, 2 * DRAWS), law(scores, rate)) < FALSE_ALARM
    assert p_value(drawn(NoisyMax(rate), scores), flips(scores, rate)) > FALSE_ALARM


@pytest.mark.parametrize("scale", [2**20, 2**31, 2**50])
def test_scores_on_a_fine_grid_have_the_same_law(scale):
    scores = (0, scale, 2 * scale)
    counts = drawn(ExponentialChoice(Fraction(1, scale)), scores, 5000)
    assert p_value(counts, law((0, 1, 2), Fraction(1))) > FALSE_ALARM


def test_scores_beyond_63_bits_and_far_apart_are_chosen_among():
    wide = np.array([[-(2**80), 2**80, 2**80 - 1]], dtype=object)
    assert int(ExponentialChoice(Fraction(60)).release(wide)[0, 0]) == 1
    extremes = np.array([[-(2**62), 2**62]])
    assert int(ExponentialChoice(Fraction(1)).release(extremes)[0, 0]) == 1


def test_one_candidate_is_chosen_and_many_take_no_longer_than_a_pass():
    assert ExponentialChoice(Fraction(1, 10)).release(np.array([[-3]])).tolist() == [[0]]
    scores = np.zeros((1, 10**5), dtype=np.int64)
    scores[0, 77] = 1000
    assert ExponentialChoice(Fraction(1)).release(scores).tolist() == [[77]]


@pytest.mark.parametrize("below", [1, 2, 3, 7, 1000, 2**26])
def test_remainders_are_uniform(below):
    found = _uniform(below, 50_000)
    assert found.min() >= 0
    assert found.max() < below
    cells = min(below, 50)
    counts = np.bincount(found * cells // below, minlength=cells)
    edges = [-(-i * below // cells) for i in range(cells + 1)]
    assert p_value(counts, np.diff(edges) / below) > FALSE_ALARM


def test_words_that_would_favour_small_remainders_are_left_out(monkeypatch):
    words = np.array(
        [2**64 - 1, 5, 2**64 - 2], dtype="<u8"
    )  # 2**64 = 1 mod 3: of the last words only one is spare
    monkeypatch.setattr(_sampling, "random_bytes", lambda n: words.tobytes())
    assert _uniform(3, 3).tolist() == [2, (2**64 - 2) % 3]


@pytest.mark.parametrize(
    "scores", [(0, 1, 3), (2, 2, 2), (-5, -5, -4, -2), (2**60, 2**60 + 1, 2**60 - 1)], ids=str
)
def test_peeling_has_the_law_of_noisy_maxima_one_after_the_other(scores):
    mechanism, array = NoisyTop.for_price(1, Fraction(2), 2), np.array([scores])
    chances = peeled(scores, Fraction(1), 2)
    found = dict.fromkeys(chances, 0)
    for _ in range(DRAWS // 2):
        found[tuple(mechanism.release(array)[0].tolist())] += 1
    assert p_value(list(found.values()), list(chances.values())) > FALSE_ALARM
    half = peeled(scores, Fraction(1, 2), 2)
    if len(set(scores)) > 1:
        assert p_value(list(found.values()), list(half.values())) < FALSE_ALARM


def test_peeling_everything_orders_everything():
    assert NoisyTop(Fraction(60), 4).release(np.array([[3, 9, -4, 7]])).tolist() == [[1, 3, 0, 2]]
    assert sorted(NoisyTop(Fraction(1, 9), 3).release(np.array([[1, 1, 1]]))[0].tolist()) == [
        0,
        1,
        2,
    ]


# Privacy by enumeration: all neighbours of all small scores -----------------------------------------------------

SMALL = list(itertools.product(range(4), repeat=3))


def ranges(rate, moves):
    """The largest length of an interval that holds all losses, over pairs of neighbours."""
    found = 0.0
    for scores in SMALL:
        for move in moves:
            other = tuple(s + m for s, m in zip(scores, move, strict=True))
            losses = [
                math.log(a / b) for a, b in zip(law(scores, rate), law(other, rate), strict=True)
            ]
            assert min(losses) <= 1e-12
            assert max(losses) >= -1e-12
            found = max(found, max(losses) - min(losses))
    return found


def test_losses_have_a_range_of_epsilon_where_the_reach_is_right():
    up = list(itertools.product(range(3), repeat=3))  # values within [0, 2]: reach 2
    rate = ExponentialChoice.for_price(2, Fraction(1)).rate
    assert ranges(rate, up) == pytest.approx(1)
    replaced = [tuple(a - b for a, b in zip(x, y, strict=True)) for x in up for y in up]
    assert ranges(rate, replaced) == pytest.approx(2)  # so replacing a row needs twice the reach
    assert ranges(ExponentialChoice.for_price(4, Fraction(1)).rate, replaced) == pytest.approx(1)


def test_peeled_lists_cost_epsilon_and_more_at_the_price_of_one_round():
    def loss(rate):
        worst = 0.0
        for scores in SMALL:
            for i in range(3):
                more = tuple(s + (i == j) for j, s in enumerate(scores))
                one, two = peeled(scores, rate, 2), peeled(more, rate, 2)
                worst = max(worst, *(abs(math.log(one[o] / two[o])) for o in one))
        return worst

    assert loss(NoisyTop.for_price(1, Fraction(1), 2).rate) <= 1 + 1e-9
    assert loss(Fraction(1)) > 1.2
