"""`dpframe.audit`: bounds that hold as often as they say and see what there is, the game of the notes, and divergences."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction as F
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dpframe
from dpframe._session.data import sessions
from dpframe.audit import (
    View,
    _events,
    approximate_max_divergence,
    composition_experiment,
    epsilon_lower_bound,
    from_draws,
    kl_divergence,
    max_divergence,
)
from dpframe.mechanisms import _sampling
from dpframe.mechanisms.noise import LaplaceNoise

ONE = pd.DataFrame({"age": [30, 41, 55], "g": ["a", "b", "a"]})
TWO = pd.DataFrame({"age": [30, 41, 55, 110], "g": ["a", "b", "a", "a"]})
KEYS = ["a", "b"]


def flip(bit: int, lies: int = 64) -> int:
    """Randomized response that lies ``lies`` times in 256."""
    return bit ^ (_sampling.random_bytes(1)[0] < lies)


TRUE_LOSS = math.log(3)  # of a lie in four

# The bounds of one probability ------------------------------------------------------------------------------------------


def test_clopper_pearson_is_that_of_scipy_stats_and_on_the_safe_side():
    for n in (1, 7, 1000, 10**6):
        for k in sorted({0, 1, n // 3, n - 1, n}):
            for risk in (1e-9, 1e-3, 0.3):
                low, high = float(_events.at_least(k, n, risk)), float(_events.at_most(k, n, risk))
                assert low == pytest.approx(
                    stats.beta.ppf(risk, k, n - k + 1) if k else 0, rel=1e-7
                )
                assert high == pytest.approx(
                    stats.beta.isf(risk, k + 1, n - k) if k < n else 1, rel=1e-7
                )
                # By the binomial law itself: at the bound, so many or more (so few or fewer) are as likely as the risk.
                assert not k or stats.binom.sf(k - 1, n, low) <= risk
                assert k == n or stats.binom.cdf(k, n, high) <= risk


@pytest.mark.scaled
def test_a_bound_is_wrong_no_more_often_than_it_says(full, monkeypatch):
    """At confidence 0.8, so that failures could be seen. Twin: the bound of the very draws that chose the event."""
    monkeypatch.setattr(_events, "_CHOOSING", 0.2)  # what a careless audit would go by
    games = 700 if full else 250
    wrong = tempted = 0
    for _ in range(games):
        one, two = (LaplaceNoise(F(1)).release(np.full((200, 3), c)) for c in (0, 0))
        wrong += from_draws(one, two, level=0.8).epsilon > 0  # the truth: the same law
        shape = _events.AnswerShape(3)
        event = _events.find(one, two, shape, 0.0, None)
        tempted += _events.prove(event, one, two, 0.0, 0.2, False).epsilon > 0
    assert stats.binom.sf(wrong - 1, games, 0.2) > 1e-6
    assert stats.binom.sf(tempted - 1, games, 0.2) < 1e-9


# What is found -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lies", [4, 64, 120])
def test_most_of_a_loss_is_seen_and_no_more(lies):
    found = epsilon_lower_bound(lambda bit: flip(bit, lies), 0, 1, n=8000, level=0.999)
    truth = math.log((256 - lies) / lies)
    assert found.epsilon <= truth
    assert found.epsilon >= (0.7 if lies < 100 else 0) * truth


def test_labels_arrays_tables_and_lists_are_read():
    """Each release tells the bit with a lie in four, in its own way."""
    ways = {
        "label": lambda bit: "yes" if flip(bit) else "no",
        "bool": lambda bit: bool(flip(bit)),
        "nothing": lambda bit: None if flip(bit) else "some",
        "array": lambda bit: np.array([7, flip(bit), 7]),
        "series": lambda bit: pd.Series([flip(bit), 7], index=KEYS),
        "shuffled": lambda bit: pd.Series([flip(bit), 7], index=KEYS).iloc[:: [1, -1][flip(0)]],
        "table": lambda bit: pd.DataFrame({"x": [0, flip(bit)], "y": [1, 2]}),
        "texts": lambda bit: ["constant", "yes" if flip(bit) else "no"],
        "nan": lambda bit: math.nan if flip(bit) else 1.0,
        "sizes": lambda bit: [0] * (1 + flip(bit)),
    }
    for name, release in ways.items():
        found = epsilon_lower_bound(release, 0, 1, n=1000, level=0.999)
        assert 0.5 <= found.epsilon <= TRUE_LOSS, name
    assert str(epsilon_lower_bound(ways["series"], 0, 1, n=500).event).startswith("answer['a'] ")


def test_the_event_is_in_words_and_can_be_tested_again():
    found = epsilon_lower_bound(lambda bit: flip(bit), 0, 1, n=4000)
    assert str(found.event) in ("answer >= 1", "answer <= 0", "answer == 1", "answer == 0")
    inside = 1 if found.event.of_neighbour else 0
    assert [found.event(0), found.event(1)] == [inside == 0, inside == 1]
    again = epsilon_lower_bound(lambda bit: flip(bit), 0, 1, n=4000, event=found.event)
    assert again.counts[0][1] == 4000  # no half is needed to find it
    assert 0.9 <= again.epsilon <= TRUE_LOSS
    assert "at least" in repr(again)
    assert "at least" in again._repr_html_()
    labels = epsilon_lower_bound(lambda bit: "xyz"[flip(bit)], 0, 1, n=4000)
    assert str(labels.event) in ("answer == 'x'", "answer == 'y'")
    assert labels.event("x") != labels.event("y")
    assert not labels.event("never seen")


def test_an_event_and_a_score_of_ones_own():
    given = epsilon_lower_bound(flip, 0, 1, n=4000, event=lambda answer: answer == 1)
    assert (
        0.9 <= given.epsilon <= TRUE_LOSS
    )  # likelier under the neighbour: both ways are looked at
    hidden = lambda bit: (_sampling.random_bytes(1)[0] % 16) * 2 + flip(bit)  # noqa: E731  (in the parity)
    parity = epsilon_lower_bound(hidden, 0, 1, n=4000, score=lambda draws: draws[:, 0] % 2)
    assert parity.epsilon >= 0.9
    assert str(parity.event).startswith("score ")


def test_delta_is_taken_off():
    def leaks(bit: int) -> int:
        return (
            2 + bit if _sampling.random_bytes(1)[0] < 8 else flip(0, 128)
        )  # tells everything once in 32 times

    assert epsilon_lower_bound(leaks, 0, 1, n=20_000).epsilon > 3
    assert epsilon_lower_bound(leaks, 0, 1, n=20_000, delta=1 / 32).epsilon == 0
    assert epsilon_lower_bound(leaks, 0, 1, n=20_000, delta=0.02).epsilon > 2


def test_how_answers_are_read_is_chosen_by_the_first_half_alone():
    """An answer of another kind that comes up later is counted, whatever it is, and changes nothing of the event."""
    one = [float(i % 4 == 0) for i in range(4000)]
    two = [float(i % 4 != 0) for i in range(4000)]
    plain = from_draws(one, two)
    for odd in ("text", None, [1.0, 2.0], math.nan):
        found = from_draws([*one[:-1], odd], [*two[:-1], odd])
        assert str(found.event) == str(plain.event)
        assert found.epsilon == pytest.approx(plain.epsilon, abs=0.02)
    assert from_draws(["text", *one], ["text", *two]).event.labels


def test_vectors_are_combined():
    """Thirty per cent of the loss in each of three components: the fitted ratio sees more than any of them."""
    draws = [LaplaceNoise(F(10, 3)).release(np.full((40_000, 3), c)) for c in (0, 1)]
    best_of_one = max(
        from_draws(a[:, [i]], b[:, [i]]).epsilon for a, b in [draws] for i in range(3)
    )
    assert best_of_one <= 0.3
    assert 0.5 <= from_draws(*draws).epsilon <= 0.9


# Releases that open a session ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        lambda p: p.count(epsilon=1),
        lambda p: p.value_counts("g", keys=KEYS, epsilon=1),
        lambda p: p.groupby("g", keys=KEYS)["age"].mean(bounds=(0, 110), epsilon=1),
        lambda p: p.argmax("g", keys=KEYS, epsilon=1),
    ],
    ids=["count", "value_counts", "means", "argmax"],
)
def test_a_release_may_open_a_session_and_loses_no_more_than_it_costs(ask):
    before = set(sessions)
    found = epsilon_lower_bound(lambda df: ask(df.dp.open(1)), ONE, TWO, n=150, level=1 - 1e-6)
    assert found.epsilon <= 1
    assert set(sessions) == before
    assert not ONE.attrs


def test_a_session_with_too_little_noise_is_caught(monkeypatch):
    price = LaplaceNoise.for_price
    monkeypatch.setattr(LaplaceNoise, "for_price", staticmethod(lambda s, e: price(s, 4 * e)))
    found = epsilon_lower_bound(
        lambda df: df.dp.open(1).count(epsilon=1), ONE, TWO, n=400, level=1 - 1e-6
    )
    assert found.epsilon > 1


def test_just_a_few_random_rows_are_not_private():
    """The notes' example: the fraction with a tag, from a few random people."""
    one, two = (pd.DataFrame({"tag": tags}) for tags in ([0] * 20, [0] * 20 + [1]))

    def sampled(df: pd.DataFrame) -> int:
        at = int.from_bytes(_sampling.random_bytes(8), "little") % len(df)
        return int(df["tag"].iloc[at])

    found = epsilon_lower_bound(sampled, one, two, n=4000)
    assert found.epsilon > 2
    assert "1" in str(found.event)


# What is refused ------------------------------------------------------------------------------------------------------------


def test_frames_with_a_session_are_refused():
    opened = pd.DataFrame({"age": [1]})
    p = opened.dp.open(1)
    with pytest.raises(dpframe.SessionError, match="has a session"):
        epsilon_lower_bound(len, opened, TWO, n=10)
    p.close()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n": 0}, "n must be at least 1"),
        ({"n": 1}, "at least two draws"),
        ({"level": 1}, "level must lie"),
        ({"delta": -1}, "delta must be"),
        ({"event": 3}, "event must be a function"),
    ],
)
def test_wrong_words_are_refused(wrong, words):
    with pytest.raises(dpframe.DPError, match=words):
        epsilon_lower_bound(len, ONE, TWO, **{"n": 10, **wrong})


def test_answers_that_cannot_be_compared_are_refused():
    with pytest.raises(dpframe.BadType, match="hashed"):
        epsilon_lower_bound(lambda _: {1, 2}, ONE, TWO, n=10)
    no_function: Any = 3
    with pytest.raises(dpframe.BadType, match="function of a frame"):
        epsilon_lower_bound(no_function, ONE, TWO)


# The composition experiment ------------------------------------------------------------------------------------------------


def adversary(view: View) -> tuple[int, int, str]:
    """Adaptive: after a 1 it turns the pair around, and it likes the louder mechanism after a 0."""
    last = view.outputs[-1] if view.outputs else 0
    return (1, 0, "quiet") if last else (0, 1, "loud")


FLIPS = {"loud": lambda bit: flip(bit, 64), "quiet": lambda bit: flip(bit, 96)}
LIES = {"loud": F(1, 4), "quiet": F(3, 8)}


def law(b: int, k: int) -> dict[tuple[int, ...], F]:
    """The exact law of the views of the experiment b."""
    found: dict[tuple[int, ...], F] = {(): F(1)}
    for _ in range(k):
        longer = {}
        for outputs, p in found.items():
            *pair, name = adversary(View(0, outputs))
            for answer in (0, 1):
                longer[*outputs, answer] = p * (LIES[name] if answer != pair[b] else 1 - LIES[name])
        found = longer
    return found


@pytest.mark.parametrize("k", [1, 2, 4])
def test_epsilons_add_up_whatever_the_adversary_does(k):
    """The notes' theorem 1, exactly; and the lower bound of the game as it is played."""
    zero, one = law(0, k), law(1, k)
    exact = max(max_divergence(zero, one), max_divergence(one, zero))
    assert exact <= k * math.log(3) + 1e-12
    played = epsilon_lower_bound(
        composition_experiment(adversary, FLIPS, k), 0, 1, n=6000, level=0.999
    )
    assert 0.55 * exact <= played.epsilon <= exact


def test_advanced_composition_holds_for_the_views():
    """The notes' theorem 6 for k rounds of epsilon: their approximate divergence is at most epsilon'."""
    k, d = 8, F(1, 100)
    zero, one = law(0, k), law(1, k)
    e = math.log(3)
    claimed = math.sqrt(2 * k * math.log(1 / d)) * e + k * e * (math.exp(e) - 1)
    for p, q in ((zero, one), (one, zero)):
        assert approximate_max_divergence(p, q, d) <= min(claimed, max_divergence(p, q))
        assert kl_divergence(p, q) <= k * e * (math.exp(e) - 1)


def test_views_are_what_the_adversary_saw():
    seen: list[View] = []

    def watching(view: View) -> tuple[int, int, int]:
        seen.append(view)
        return (5, 6, view.coins % 2)

    view = composition_experiment(watching, [lambda x: ("a", x), lambda x: ("b", x)], 3)(1)
    assert [v.outputs for v in seen] == [(), view.outputs[:1], view.outputs[:2]]
    assert {v.coins for v in seen} == {view.coins}  # drawn once
    assert view.outputs == ((("a", "b")[view.coins % 2], 6),) * 3


def test_mechanisms_of_the_game_may_open_sessions():
    game = composition_experiment(
        lambda view: (ONE, TWO, "count"),
        {"count": lambda df: df.dp.open(1).count(epsilon=0.5)},
        k=2,
    )
    assert epsilon_lower_bound(game, 0, 1, n=200, level=1 - 1e-6).epsilon <= 1


PEOPLE = pd.DataFrame({"id": [1, 1, 2, 3], "x": [0.0, 1.0, 2.0, 3.0]})


def played(one, two, **words):
    return composition_experiment(lambda view: (one, two, 0), [len], 2, **words)(0)


@pytest.mark.parametrize(
    ("one", "two", "words"),
    [
        (PEOPLE.head(1), pd.concat([PEOPLE] * 12), {}),
        (PEOPLE, PEOPLE.head(2), {}),
        (PEOPLE, PEOPLE.replace({"x": {3.0: 4.0}}), {"neighbors": "add-remove"}),
        (PEOPLE, PEOPLE.head(3), {"neighbors": "replace-one"}),
        (PEOPLE, PEOPLE.query("id == 3"), {"unit": "id"}),
        (PEOPLE, PEOPLE.replace({"x": {3.0: 4.0}}), {"unit": "id", "neighbors": "add-remove"}),
    ],
)
def test_tables_that_are_no_neighbours_are_not_played(one, two, words):
    with pytest.raises(dpframe.BadValue, match=r"no neighbours.*rows apart"):
        played(one, two, **words)


@pytest.mark.parametrize(
    ("one", "two", "words"),
    [
        (PEOPLE, PEOPLE[::-1], {}),
        (PEOPLE, PEOPLE.head(3), {}),
        (PEOPLE, PEOPLE.replace({"x": {3.0: 4.0}}), {}),
        (PEOPLE, PEOPLE.head(3), {"neighbors": "add-remove"}),
        (PEOPLE, PEOPLE.replace({"x": {3.0: 4.0}}), {"neighbors": "replace-one"}),
        (PEOPLE, PEOPLE.query("id != 1"), {"unit": "id", "neighbors": "add-remove"}),
        (PEOPLE, PEOPLE.query("id != 1"), {"unit": ["id"]}),
        (PEOPLE, PEOPLE.assign(x=[9.0, 9.0, 2.0, 3.0]), {"unit": "id", "neighbors": "replace-one"}),
    ],
)
def test_tables_that_are_neighbours_are_played(one, two, words):
    assert played(one, two, **words).outputs == (len(one), len(one))


def test_a_table_beside_something_else_is_refused():
    with pytest.raises(dpframe.BadType, match="two DataFrames, not DataFrame and list"):
        played(PEOPLE, [1])
    with pytest.raises(dpframe.BadValue, match="neighbors"):
        played(PEOPLE, PEOPLE, neighbors="add")


def test_moves_outside_the_rules_are_refused():
    for move, words in (
        ((0, 1, "other"), "not one of the mechanisms"),
        ((0, 1), "a tuple of three"),
    ):
        with pytest.raises(dpframe.DPError, match=words):
            composition_experiment(lambda _, move=move: move, FLIPS, 1)(0)
    with pytest.raises(dpframe.BadValue, match="the bit"):
        composition_experiment(adversary, FLIPS, 1)(2)
    with pytest.raises(dpframe.BadType, match="must be functions"):
        composition_experiment(adversary, {}, 1)


# Divergences -----------------------------------------------------------------------------------------------------------------

laws = st.lists(st.integers(0, 12), min_size=2, max_size=6).filter(sum)


def normal(weights: list[int]) -> list[F]:
    return [F(w, sum(weights)) for w in weights]


@st.composite
def pairs(draw: Any) -> tuple[list[F], list[F]]:
    one = draw(laws)
    two = draw(st.lists(st.integers(0, 12), min_size=len(one), max_size=len(one)).filter(sum))
    return normal(one), normal(two)


def best_set(p: list[F], q: list[F], delta: F) -> float:
    """Straight from the definition: over all sets."""
    best = -math.inf
    for chosen in itertools.product([0, 1], repeat=len(p)):
        above, below = (
            sum((x for x, c in zip(law, chosen, strict=True) if c), F(0)) for law in (p, q)
        )
        if above > delta:
            best = max(best, math.log((above - delta) / below) if below else math.inf)
    return best


@settings(max_examples=60, deadline=None)
@given(pairs(), st.sampled_from([F(0), F(1, 100), F(1, 5), F(9, 10)]))
def test_divergences_are_their_definitions(pair, delta):
    p, q = pair
    assert approximate_max_divergence(p, q, delta) == pytest.approx(
        best_set(p, q, delta), abs=1e-12
    )
    assert max_divergence(p, q) == pytest.approx(best_set(p, q, F(0)), abs=1e-12)
    assert kl_divergence(p, q) == pytest.approx(
        stats.entropy(np.array(p, float), np.array(q, float)), abs=1e-12
    )


@settings(max_examples=100, deadline=None)
@given(pairs())
def test_the_lemma_that_links_them(pair):
    """Lemma 7 of the notes: if both max divergences are at most e, KL is at most e (e**e - 1)."""
    p, q = pair
    e = max(max_divergence(p, q), max_divergence(q, p))
    if e < math.inf:
        both = kl_divergence(p, q), kl_divergence(q, p)
        assert max(both) <= e * math.expm1(e) + 1e-12
        assert sum(both) <= e * math.expm1(e) + 1e-12  # what its proof shows
        assert max(both) <= e
    else:
        assert math.inf in (kl_divergence(p, q), kl_divergence(q, p))


def test_the_lemma_would_fail_for_half_of_its_bound():
    p, q = [F(3, 4), F(1, 4)], [F(1, 4), F(3, 4)]
    e = max_divergence(p, q)
    assert kl_divergence(p, q) > e * math.expm1(e) / 5
    small = [F(51, 100), F(49, 100)], [F(49, 100), F(51, 100)]
    e = max_divergence(*small)
    assert kl_divergence(*small) > e * math.expm1(e) / 3


@settings(max_examples=100, deadline=None)
@given(
    pairs(),
    st.sampled_from([F(1), F(5, 4), F(2), F(7)]),
    st.sampled_from([F(0), F(1, 50), F(1, 4)]),
)
def test_beyond_delta_is_close_to_a_law_of_bounded_loss(pair, ratio, delta):
    """(ln ratio, delta) holds one way iff some law within delta of p (in total variation) has no larger loss against q."""
    p, q = pair
    holds = approximate_max_divergence(p, q, delta) <= math.log(ratio) + 1e-12
    cut = [
        min(a, ratio * b) for a, b in zip(p, q, strict=True)
    ]  # the nearest mass function below ratio * q
    missing = 1 - sum(cut)
    assert holds == (missing <= delta)
    if holds:
        room = [ratio * b - c for b, c in zip(q, cut, strict=True)]
        share = missing / sum(room) if missing else F(0)
        near = [c + share * r for c, r in zip(cut, room, strict=True)]
        assert sum(near) == 1
        assert max_divergence(near, q) <= math.log(ratio) + 1e-12
        assert sum(abs(a - b) for a, b in zip(near, p, strict=True)) / 2 <= delta


def test_what_is_no_distribution_is_refused():
    half = [F(1, 2), F(1, 2)]
    for wrong, words in (
        ([F(1, 2), F(1, 3)], "add up to"),
        ([0.5, 0.6], "add up to"),
        ([1.5, -0.5], "negative"),
        ([math.nan, 1.0], "finite"),
        ([True, False], "bool"),
        ("ab", "list of probabilities"),
        ({"a": 1}, "one kind"),
        ([1], "same outcomes"),
        (pd.Series([0.5, 0.5], index=["a", "a"]), "twice"),
    ):
        with pytest.raises(dpframe.DPError, match=words):
            max_divergence(half, wrong)
    assert max_divergence([0.1] * 10, [F(1, 10)] * 10) == 0
    assert max_divergence(pd.Series({"a": 1.0}), {"b": 1}) == math.inf
    assert kl_divergence({"a": 1}, pd.Series({"b": 0.5, "a": 0.5})) == pytest.approx(math.log(2))
    with pytest.raises(dpframe.BadValue, match="delta"):
        approximate_max_divergence(half, half, 1)


def test_small_losses_keep_their_digits():
    tiny = F(1, 10**12)
    found = max_divergence([F(1, 2) + tiny, F(1, 2) - tiny], [F(1, 2), F(1, 2)])
    assert found == pytest.approx(2e-12, rel=1e-9)
    assert max_divergence(
        [1 - F(1, 10**400), F(1, 10**400)], [1 - F(1, 10**800), F(1, 10**800)]
    ) == pytest.approx(400 * math.log(10))
