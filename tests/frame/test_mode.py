"""The most common value, and aggregates that are written as functions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, BadValue, MissingKeys, NotOffered, Plan


@pytest.fixture
def df():
    return pd.DataFrame(
        {
            "state": ["CA", "NY"] * 300,
            "ill": ["flu", "burn", "flu", "burn", "flu", "cold"] * 100,
            "age": np.arange(600) % 90,
        }
    )


@pytest.fixture
def p(df):
    keys = {"state": ["CA", "NY"], "ill": ["burn", "cold", "flu"]}
    return df.dp.open(1000, bounds={"age": (0, 90)}, keys=keys, because="a test")


def test_mode_is_the_choice_of_argmax_as_a_series(df, p):
    answer = p["ill"].mode(epsilon=50)
    pd.testing.assert_series_equal(answer, df["ill"].mode())
    spent = p.budget.spent
    assert p["ill"].argmax(epsilon=50) == answer[0]
    assert p["ill"].mode(dropna=True, epsilon=50)[0] == "flu"
    assert p.budget.spent == spent
    assert p["age"].mode(keys=range(90), epsilon=1).name == "age"
    assert isinstance(p.explain["ill"].mode(epsilon=50), Plan)


def test_mode_of_a_batch_is_the_choice(p):
    with p.plan_ahead() as batch:
        place = batch["ill"].mode(epsilon=50)
    assert place.answer == "flu"


def test_mode_without_keys_names_argmax(p):
    budget = p.budget
    with pytest.raises(MissingKeys, match="argmax over 'age' needs keys"):
        p["age"].mode()
    with pytest.raises(NotOffered, match=r"p\.argmax\("):
        p.mode()
    assert p.budget == budget


@pytest.mark.parametrize(
    "spelling",
    ["mode", "argmax", lambda s: s.mode()[0], lambda s: s.mode().iloc[0], lambda s: s.mode()],
)
def test_groups_take_the_mode_in_every_spelling(p, spelling):
    answer = p.groupby("state")["ill"].agg(spelling, epsilon=50)
    assert answer["CA"] == "flu"
    assert answer["NY"] == "burn"
    assert len(p.ledger) == 1


def test_functions_that_ask_one_aggregate_are_that_aggregate(p):
    named = p.groupby("state").agg(m=("age", "mean"), d=("ill", "argmax"), epsilon=50)
    traced = p.groupby("state").agg(
        m=("age", lambda s: s.mean()), d=("ill", lambda s: s.mode()[0]), epsilon=50
    )
    assert traced.equals(named)
    assert p["age"].agg(lambda s: s.std(), epsilon=50) == p["age"].agg("std", epsilon=50)
    assert len(p.ledger) == 2


@pytest.mark.parametrize(
    "function",
    [
        lambda s: s.max() - s.min(),
        lambda s: s.mean() + 1,
        lambda s: s.std(ddof=0),
        lambda s: s.mode()[1],
        lambda s: s.mean()[0],
        lambda s: s.size,
        lambda s: s.to_list(),
        lambda s: 3,
        lambda s: float(s.mean()),
        lambda: 1,
        len,
        print,
    ],
)
def test_other_functions_are_refused_before_the_debit(p, function):
    with pytest.raises(BadType, match="could see the data"):
        p.groupby("state")["age"].agg(function)
    assert p.ledger.empty


def test_a_frame_has_no_mode_in_agg(p):
    for spelling in ("mode", lambda s: s.mode()[0]):
        with pytest.raises(BadValue, match=r"p\.argmax\("):
            p["ill"].agg(spelling)
    assert p.ledger.empty
