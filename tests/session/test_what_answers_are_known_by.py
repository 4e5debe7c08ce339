"""Answers are free where the question and its rows are the same, and nowhere else: steps that change rows change their name."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import dpframe

LEFT = pd.DataFrame({"u": [1, 1, 2, 3], "t": [4, 2, 3, 1], "x": [1.0, 3.0, 2.0, 4.0]})
RIGHT = pd.DataFrame({"u": [1, 2, 2, 3], "s": [4, 2, 3, 1], "y": [1.0, 3.0, 2.0, 4.0]})
TABLE = pd.DataFrame({"t": [1, 2, 3, 4], "w": [1.0, 2.0, 3.0, 4.0]})
TERMS: dict[str, Any] = {"unit": "u", "max_rows": 2, "max_groups": 1}


@pytest.fixture(params=["in memory", "in a ledger"])
def pair(request: Any, tmp_path: Any) -> tuple[Any, Any]:
    where: dict[str, Any] = {}
    if request.param == "in a ledger":
        where = {"ledger": tmp_path / "budget.db", "population": "people"}
    p = LEFT.copy().dp.open(
        1000, bounds={"x": (0, 4), "t": (0, 4)}, because="a test", version="left", **where, **TERMS
    )
    q = RIGHT.copy().dp.open(
        accountant=p.accountant, bounds={"y": (0, 4), "s": (0, 4)}, version="right", **TERMS
    )
    return p, q


def spent_by(p: Any, asks: list[Any]) -> list[float]:
    """What each of some questions adds to what is spent."""
    spent = []
    for ask in asks:
        before = p.budget.spent
        ask()
        spent.append(p.budget.spent - before)
    return spent


SIDES: dict[str, Any] = {
    "all": lambda q: q,
    "a filter": lambda q: q[q["y"] > 1.5],
    "another filter": lambda q: q[q["y"] > 2.5],
    "sorted": lambda q: q.sort_values("s"),
    "sorted the other way": lambda q: q.sort_values("s", ascending=False),
    "first rows": lambda q: q.groupby("u").head(1),
    "another column": lambda q: q.assign(y=q["y"] / 2),
    "melted": lambda q: q.melt(["u"], ["y"], value_name="y"),
}


def test_a_private_merge_is_known_by_all_that_was_done_to_its_right_side(pair):
    p, q = pair
    asks = [
        lambda make=make: p.merge(make(q), on="u").sum("y", (0, 4), epsilon=10)
        for make in SIDES.values()
    ]
    assert spent_by(p, asks) == [10] * len(asks)
    assert spent_by(p, asks) == [0] * len(asks)


def test_a_private_merge_is_known_by_all_that_was_done_to_its_left_side(pair):
    p, q = pair
    asks = [
        lambda make=make: q.merge(make(p.rename(columns={"x": "y", "t": "s"})), on="u", suffixes=("_q", ""))
        .sum("y", (0, 4), epsilon=10)
        for make in SIDES.values()
    ]  # fmt: skip
    turned = [
        lambda make=make: (
            make(p.rename(columns={"x": "y", "t": "s"}))
            .merge(q, on="u", suffixes=("", "_q"))
            .sum("y", (0, 4), epsilon=10)
        )
        for make in SIDES.values()
    ]
    assert spent_by(p, [*asks, *turned]) == [10] * 2 * len(asks)
    assert spent_by(p, [*asks, *turned]) == [0] * 2 * len(asks)


MADE: dict[str, Any] = {
    "melt": lambda p: p.melt(["u", "t"], ["x"], value_name="x"),
    "merge": lambda p: p.merge(TABLE, on="t"),
    "explode": lambda p: p.assign(word=p["t"].astype(str).str.split(";")).explode("word"),
}
SORTED: dict[str, Any] = {
    "as it stands": lambda p: p,
    "sorted": lambda p: p.sort_values("t"),
    "sorted the other way": lambda p: p.sort_values("t", ascending=False),
    "by another column": lambda p: p.sort_values("x"),
}


@pytest.mark.parametrize("step", MADE)
def test_derived_rows_are_known_by_what_they_were_sorted_by(step, pair):
    p, _ = pair
    asks = [
        lambda sort=sort: MADE[step](sort(p)).groupby("u").head(1).sum("x", (0, 4), epsilon=10)
        for sort in SORTED.values()
    ]
    assert spent_by(p, asks) == [10] * len(asks)
    assert spent_by(p, asks) == [0] * len(asks)


@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
def test_rows_without_a_match_count_beside_the_pairs_of_an_outer_merge(how):
    """With keys beside the person and one row on each side, somebody has two rows where neither has a match."""
    left = pd.DataFrame({"u": [1, 2], "k": ["a", "b"]})
    right = pd.DataFrame({"u": [1, 2], "k": ["b", "b"]})
    terms = {**TERMS, "max_rows": 1}
    p = left.dp.open(1000, because="a test", version="left", **terms)
    q = right.dp.open(accountant=p.accountant, version="right", **terms)
    merged = p.merge(q, on=["u", "k"], how=how)
    assert merged.explain.count(epsilon=1).sensitivity == (2 if how == "outer" else 1)
    assert merged.count(epsilon=900) == {"inner": 1, "left": 2, "right": 2, "outer": 3}[how]
    assert p.merge(q, on="u", how=how).explain.count(epsilon=1).sensitivity == 1


def test_a_plan_is_of_people_where_columns_name_them():
    """A question that was planned where a row is a person is planned anew where a person may have many rows."""
    rows = LEFT.copy().dp.open(1, because="a test")
    assert rows.explain.count().sensitivity == 1
    people = LEFT.copy().dp.open(1, unit="u", because="a test")
    with pytest.raises(dpframe.BadValue, match="max_rows="):
        people.explain.count()
    with pytest.raises(dpframe.BadValue, match="max_rows="):
        people.count()
    assert people.budget.spent == 0
