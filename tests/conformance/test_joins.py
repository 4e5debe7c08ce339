"""Private joins: a person who changes in both tables at once moves no statistic of the result further than is claimed.

Two random tables of the same people, rows of people between each other; the person is dropped from both, or replaced in both.
What would get noise is compared with the claims of its plan. The twin that must fail: the limit of one side alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe._session.session import Session
from tests.conformance.test_people import moved

GROUPS = ["a", "b", "c"]
ROW = st.tuples(st.sampled_from([-2.0, 0.5, 5.0, np.nan]), st.sampled_from([*GROUPS, None]))
OTHERS = st.lists(st.tuples(st.integers(0, 3), ROW), max_size=8)
OWN = st.lists(st.tuples(st.integers(0, 8), ROW), max_size=5)
LEFT = {
    "unit": "who",
    "max_rows": 2,
    "max_groups": 2,
    "bounds": {"x": (-3, 5)},
    "keys": {"g": GROUPS},
}
RIGHT = {
    "unit": "who",
    "max_rows": 3,
    "max_groups": 1,
    "bounds": {"y": (-3, 5)},
    "keys": {"h": GROUPS},
}

ASKED: dict[str, Any] = {
    "rows": lambda j: j.count(epsilon=1),
    "left": lambda j: j.sum("x", epsilon=1),
    "right": lambda j: j.mean("y", epsilon=1),
    "groups of the left": lambda j: j.groupby("g")["y"].sum(epsilon=1),
    "groups of the right": lambda j: j.groupby("h")["x"].mean(epsilon=1),
    "groups of both": lambda j: j.groupby(["g", "h"]).size(epsilon=1),
    "both": lambda j: j[["x", "y"]].cov(epsilon=1),
    "within a person": lambda j: j.groupby("who")["y"].sum().mean(bounds=(-9, 15), epsilon=1),
}


def frame_of(rows: list[tuple[int, Any]], names: tuple[str, str]) -> pd.DataFrame:
    frame = pd.DataFrame([(who, *row) for who, row in rows], columns=["who", *names])
    return frame.astype({"who": "int64", names[0]: float, names[1]: "str"})


def with_own(others: list[tuple[int, Any]], own: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    rows = list(others)
    for place, row in own:
        rows.insert(min(place, len(rows)), (99, row))
    return rows


def opened(left: list[Any], right: list[Any], relation: str) -> tuple[Any, Any]:
    p = frame_of(left, ("x", "g")).dp.open(1000, neighbors=relation, **LEFT)
    q = frame_of(right, ("y", "h")).dp.open(accountant=p.accountant, neighbors=relation, **RIGHT)
    return p, q


def recorded(
    left: list[Any], right: list[Any], how: str, on: Any, name: str, relation: str
) -> list[tuple[int, int, Any]]:
    """What is claimed and what would get noise."""
    found: list[tuple[int, int, Any]] = []

    def noise(self: Any, plan: Any, part: int, integers: Any, **words: Any) -> Any:
        found.append((plan.parts[part].l1, plan.parts[part].l2_squared, np.array(integers)))
        return np.array(integers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "_noise", noise)
        patch.setattr(Session, "noise_key", lambda self: b"12345678")
        p, q = opened(left, right, relation)
        if on == "pairs":
            ASKED[name](p.merge(q, how=how, left_on=["who", "g"], right_on=["who", "h"]))
        else:
            ASKED[name](p.merge(q, how=how, on="who"))
    return found


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
@settings(max_examples=30, deadline=None)
@given(
    left=OTHERS, right=OTHERS, one=st.tuples(OWN, OWN), two=st.tuples(OWN, OWN), name=st.sampled_from(list(ASKED)),
    on=st.sampled_from(["who", "pairs"]),
)  # fmt: skip
def test_one_person_in_both_tables_moves_no_statistic_further_than_claimed(
    how, relation, left, right, one, two, name, on
):
    ours = recorded(with_own(left, one[0]), with_own(right, one[1]), how, on, name, relation)
    if relation == "replace-one":
        left, right = with_own(left, two[0]), with_own(right, two[1])
    theirs = recorded(left, right, how, on, name, relation)
    assert ours
    for (l1, l2, a), (_, _, b) in zip(ours, theirs, strict=True):
        d1, d2 = moved(a, b)
        assert d1 <= l1
        assert d2 <= l2


def test_the_limit_of_one_side_would_not_be_enough():
    """The twin that must fail: a person with two rows on the left and three on the right has six."""
    left, right = [(99, (1.0, "a"))] * 5, [(99, (1.0, "a"))] * 5
    ((l1, _, a),) = recorded(left, right, "inner", "who", "rows", "add-remove")
    assert max(LEFT["max_rows"], RIGHT["max_rows"]) < int(a.sum()) == 6 <= l1


@settings(max_examples=60, deadline=None)
@given(
    left=OTHERS,
    right=OTHERS,
    how=st.sampled_from(["inner", "left", "right", "outer"]),
    on=st.sampled_from(["who", "pairs"]),
)
def test_rows_are_those_of_pandas_of_the_first_rows_of_each_person(left, right, how, on):
    p, q = opened(left, right, "add-remove")
    one, other = (
        frame_of(rows, names).groupby("who").head(limit)
        for rows, names, limit in ((left, ("x", "g"), 2), (right, ("y", "h"), 3))
    )
    words = {"on": "who"} if on == "who" else {"left_on": ["who", "g"], "right_on": ["who", "h"]}
    if on == "pairs":  # pandas matches nulls with nulls
        one, other = one.assign(g=one["g"].fillna("-")), other.assign(h=other["h"].fillna("+"))
    wanted = one.merge(other, how=how, **words)
    wanted = wanted.replace({"g": {"-": None}, "h": {"+": None}})
    joined = p.merge(q, how=how, **words)
    found = joined._session.snapshot.iloc[:, : len(joined.columns)].set_axis(
        list(joined.columns), axis=1
    )
    assert list(found.columns) == list(wanted.columns)

    def rows_of(frame: pd.DataFrame) -> list[Any]:
        cells = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
        return sorted(
            [
                [None if c is None else str(float(c)) if not isinstance(c, str) else c for c in r]
                for r in cells
            ],
            key=repr,
        )

    assert rows_of(found) == rows_of(wanted)


def test_pipe_orders_rows_that_differ_in_the_sign_of_a_zero():
    """A function of the owner's may turn the rows of all for one person, and the check of `pipe` compares sets of rows."""
    rows = [(who, x) for who in range(20) for x in (0.0, -0.0)]

    def turned(frame: pd.DataFrame) -> pd.DataFrame:
        return frame[::-1] if (frame["x"] > 10).any() else frame

    def inverses(more: list[Any]) -> float:
        left, right = (
            pd.DataFrame(cells, columns=["who", "x"]) for cells in ([*rows, *more], rows[::2])
        )
        p = left.dp.open(1000, unit="who", max_rows=1, max_groups=1)
        q = right.rename(columns={"x": "y"}).dp.open(
            accountant=p.accountant, unit="who", max_rows=1, max_groups=1
        )
        joined = p.pipe(turned).merge(q, on="who")
        return float((1 / joined["x"]).sum(bounds=(-1, 1), epsilon=900))

    assert abs(inverses([]) - inverses([(99, 50.0)])) < 1
