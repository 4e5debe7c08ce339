"""Rows that are put together by person are kept between verbs: by the people, the rows that count, the groups and the order."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd
import pytest

from dpframe._session.session import Session

VISITS = pd.DataFrame(
    {
        "u": [1, 1, 1, 2, 2, 3],
        "k": ["a", "a", "b", "b", "b", "a"],
        "t": [3, 1, 2, 2, 1, 1],
        "x": [8.0, 2.0, 4.0, 1.0, 16.0, 32.0],
    }
)
TERMS: dict[str, Any] = {"unit": "u", "max_rows": 3, "max_groups": 1, "bounds": {"x": (0, 64)}}
# Pairs of what is asked here and in pandas, whose layouts differ in one part of their key.
ASKED: dict[str, tuple[Any, Any]] = {
    "all": (
        lambda p: p.groupby("u")["x"].transform("sum"),
        lambda d: d.groupby("u")["x"].transform("sum"),
    ),
    "where": (
        lambda p: p[p["x"] > 3].groupby("u")["x"].transform("sum"),
        lambda d: d[d["x"] > 3].groupby("u")["x"].transform("sum"),
    ),
    "another where": (
        lambda p: p[p["t"] > 1].groupby("u")["x"].transform("sum"),
        lambda d: d[d["t"] > 1].groupby("u")["x"].transform("sum"),
    ),
    "by": (
        lambda p: p.drop_duplicates(["u", "k"])["x"],
        lambda d: d.drop_duplicates(["u", "k"])["x"],
    ),
    "without by": (lambda p: p.drop_duplicates("u")["x"], lambda d: d.drop_duplicates("u")["x"]),
    "by another": (
        lambda p: p.drop_duplicates(["u", "t"])["x"],
        lambda d: d.drop_duplicates(["u", "t"])["x"],
    ),
    "sorted": (
        lambda p: p.sort_values("t").drop_duplicates("u")["x"],
        lambda d: d.sort_values("t").drop_duplicates("u")["x"],
    ),
}


@pytest.fixture(autouse=True)
def without_noise(monkeypatch: Any) -> None:
    monkeypatch.setattr(Session, "_noise", lambda self, plan, part, integers, **words: integers)


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(ASKED, 2)))
def test_one_verb_does_not_get_the_rows_of_another(one, other):
    p = VISITS.copy().dp.open(1000, **TERMS)
    for name in (one, other, one):
        ours, pandas = ASKED[name]
        assert (
            abs(float(ours(p).sum(bounds=(0, 64), epsilon=1, fresh=True)) - pandas(VISITS).sum())
            < 0.01
        )


def test_conditions_of_one_question_keep_their_own_rows():
    p = VISITS.copy().dp.open(1000, **TERMS)
    every = p.assign(a=p.groupby("u")["x"].transform("sum"))
    some = every[every["x"] > 3]
    asked = some.assign(b=some["a"] - some.groupby("u")["x"].transform("sum"))
    wanted = VISITS.assign(a=VISITS.groupby("u")["x"].transform("sum"))
    wanted = wanted[wanted["x"] > 3]
    wanted = wanted.assign(b=wanted["a"] - wanted.groupby("u")["x"].transform("sum"))
    assert wanted["b"].sum() == 5
    assert abs(float(asked.sum("b", (-64, 64), epsilon=1)) - 5) < 0.01


def test_groups_of_one_question_keep_their_own_rows():
    p = VISITS.copy().dp.open(1000, **TERMS)
    alone, first = ~p.duplicated(["u", "k"]), ~p.duplicated("u")
    asked = p[alone & ~first]
    wanted = VISITS[~VISITS.duplicated(["u", "k"]) & VISITS.duplicated("u")]
    assert wanted["x"].sum() == 4
    assert abs(float(asked.sum("x", epsilon=1)) - 4) < 0.01
