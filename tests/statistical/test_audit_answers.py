"""What audits read: labels that one frame lacks, lengths, dicts, scores of one's own, and functions that copy first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe._session.data import sessions
from dpframe.audit import Event, epsilon_lower_bound, from_draws
from dpframe.mechanisms import _sampling

ONE = pd.DataFrame({"age": [30, 41, 55], "g": ["a", "c", "a"], "ill": [True, False, False]})
TWO = pd.DataFrame(
    {"age": [30, 41, 55, 110], "g": ["a", "c", "a", "B"], "ill": [True, False, False, True]}
)


def loud() -> float:
    """Noise that hides every number, and no label."""
    return float(int.from_bytes(_sampling.random_bytes(4), "little"))


def counts(df: pd.DataFrame) -> pd.Series[Any]:
    found = df.groupby("g").size()
    return pd.Series([loud() for _ in found], index=found.index)


LEAKS = {
    "series": counts,
    "table": lambda df: counts(df).to_frame("n"),
    "flat table": lambda df: counts(df).reset_index(name="n"),
    "array": lambda df: counts(df).to_numpy(),
    "list": lambda df: counts(df).tolist(),
    "dict": lambda df: counts(df).to_dict(),
    "dict of series": lambda df: {"n": counts(df), "loud": loud()},
    "list of series": lambda df: [counts(df), counts(df)],
    "texts": lambda df: sorted(df["g"].unique()),
    "repeated": lambda df: pd.Series([loud()] * len(df), index=["x"] * len(df)),
    "same length": lambda df: counts(df).iloc[: -1 if len(df) == 3 else -2],
    "null label": lambda df: pd.Series(
        [loud(), loud()], index=[0.5, math.nan if len(df) == 4 else 1.5]
    ),
}


@pytest.mark.parametrize("turned", [False, True], ids=["frame first", "neighbour first"])
@pytest.mark.parametrize("name", LEAKS)
def test_a_label_or_a_length_that_one_frame_lacks_is_seen_in_either_order(
    name: str, turned: bool
) -> None:
    sides = (TWO, ONE) if turned else (ONE, TWO)
    draws = [[LEAKS[name](side) for _ in range(160)] for side in sides]
    again = from_draws(*draws)
    assert again.epsilon > 2.5
    inside = again.event(LEAKS[name](sides[0])), again.event(LEAKS[name](sides[1]))
    assert epsilon_lower_bound(LEAKS[name], *sides, n=30).epsilon > 0.8
    assert inside == ((False, True) if again.event.of_neighbour else (True, False))


def test_the_event_names_the_label() -> None:
    assert str(epsilon_lower_bound(lambda df: counts(df).to_dict(), ONE, TWO, n=160).event) in (
        "answer['B'] is there",
        "answer['B'] is not there",
        "length of the answer >= 3",
        "length of the answer <= 2",
        "length of the answer == 2",
        "length of the answer == 3",
    )
    same = lambda df: pd.Series(loud(), index=["a", "B" if len(df) == 4 else "C"])  # noqa: E731
    assert " there" in str(epsilon_lower_bound(same, ONE, TWO, n=160).event)


def test_labels_of_the_second_half_alone_are_answers_like_any_other() -> None:
    draws = [pd.Series([1.0], index=["a"])] * 200
    odd = [*draws[:-1], pd.Series([1.0, 2.0], index=["a", "z"])]
    assert from_draws(odd, draws).epsilon == 0
    assert from_draws(draws, odd).epsilon == 0


def test_an_honest_release_whose_labels_vary_by_chance_loses_nothing() -> None:
    def some(_: Any) -> pd.Series[Any]:
        kept = [x for x in "abc" if _sampling.random_bytes(1)[0] < 128]
        return pd.Series([loud() for _ in kept], index=kept, dtype=float)

    assert epsilon_lower_bound(some, 0, 1, n=600, level=1 - 1e-6).epsilon == 0


def test_a_number_far_back_is_tried() -> None:
    def release(bit: int) -> Any:
        found = np.full(60, 7.0)
        found[50] = bit
        return found

    found = epsilon_lower_bound(release, 0, 1, n=160)
    assert found.epsilon > 2.5
    assert str(found.event).startswith("answer[50]")


def test_dicts_are_read_by_key_whatever_their_order() -> None:
    def release(bit: int) -> dict[str, int]:
        pair = [("n", 7), ("leak", bit)]
        return dict(pair if loud() % 2 else pair[::-1])

    found = epsilon_lower_bound(release, 0, 1, n=160)
    assert found.epsilon > 2.5
    assert str(found.event).startswith("answer['leak']")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda answer: 1.0,
        lambda answer: answer[0],
        lambda answer: answer["leak"],
        lambda a: ["x"] * len(a),
    ],
)
def test_a_score_is_tried_on_the_first_answers(wrong: Any) -> None:
    asked: list[int] = []

    def release(bit: int) -> list[int]:
        asked.append(bit)
        return [bit, 1]

    with pytest.raises(dpframe.BadType, match="all answers of a side at once, as a matrix"):
        epsilon_lower_bound(release, 0, 1, n=160, score=wrong)
    assert asked == [0, 1]
    with pytest.raises(dpframe.BadType, match="score must be a function"):
        from_draws([1, 2], [3, 4], score=3)  # type-wise anything goes: it is checked when it runs


def test_a_score_of_answers_of_many_lengths_gets_a_list() -> None:
    found = epsilon_lower_bound(
        lambda df: counts(df).to_dict(),
        ONE,
        TWO,
        n=160,
        score=lambda draws: [len(d) for d in draws],
    )
    assert found.epsilon > 2.5
    assert found.event({"a": 1.0, "c": 1.0, "B": 0.0}) == found.event.of_neighbour


@pytest.mark.parametrize(
    "ask",
    [
        lambda d: d.copy().dp.open(1).count(epsilon=1),
        lambda d: d.assign(x=1).dp.open(1).count(epsilon=1),
        lambda d: d[d["age"] > 35].dp.open(1).count(epsilon=1),
        lambda d: d.reset_index(drop=True).dp.open(1).count(epsilon=1),
        lambda d: d.copy(deep=False).dp.open(1).count(epsilon=1),
    ],
)
def test_a_function_may_copy_first(ask: Any) -> None:
    before = set(sessions)
    found = epsilon_lower_bound(ask, ONE, TWO, n=60, level=1 - 1e-6)
    assert found.epsilon <= 1
    assert set(sessions) == before


def test_a_session_on_a_frame_that_was_there_before_stays() -> None:
    """Else its budget could be had once more for each audit."""
    other = pd.DataFrame({"age": [1, 2, 3]})

    def release(_: pd.DataFrame) -> Any:
        return other.dp.open(1).count(epsilon=0.25)

    epsilon_lower_bound(release, ONE, TWO, n=2)
    assert other.dp.budget.spent > 0
    with pytest.raises(dpframe.SessionError):
        other.dp.open(2)
    other.dp.close()


def test_last_digits_are_in_words() -> None:
    event = Event("last binary digit of answer", "<=", -48.0)
    assert str(event) == "last binary digit of answer is worth 2**-48 or less"
    assert str(Event("last binary digit of answer", "==", 99.0)) == "answer is 0 or no number"
    plain = epsilon_lower_bound(lambda bit: 0.1 if bit else 0.5, 0, 1, n=160).event
    assert plain(0.5) != plain(0.1)
