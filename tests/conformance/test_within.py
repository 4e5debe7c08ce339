"""Verbs within a person: one person still moves no statistic further than is claimed, and nobody else's values at all.

Frames are random, with the rows of people between each other, nulls and equal values; a person is dropped, or replaced by
another one whose rows stand elsewhere. The questions run as they do for a user, up to the noise: what would get noise is
compared with the claims of its plan. Twins that must fail: limits of one row where a person has more, and pandas own sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe._expr import Column
from dpframe._expr._within import Key as WithinKey
from dpframe._expr._within import within
from dpframe._session.session import Session
from dpframe.engines.pandas import PandasEngine
from tests.conformance.test_people import moved

GROUPS = ["a", "b", "c"]
ROW = st.tuples(
    st.none() | st.sampled_from([-3.0, 0.1, 0.2, 0.3, 1e16, -1e16]),
    st.integers(0, 3),
    st.sampled_from([*GROUPS, None]),
)
ROWS = st.lists(st.tuples(st.integers(0, 3), ROW), max_size=14)
OWN = st.lists(st.tuples(st.integers(0, 14), ROW), min_size=1, max_size=5)
TERMS = {
    "unit": "who",
    "max_rows": 3,
    "max_groups": 2,
    "bounds": {"x": (-3.0, 5.0), "t": (0, 3)},
    "keys": {"g": GROUPS},
}
SUM, OFF = {"bounds": (-9, 15)}, {"bounds": (-8, 8), "epsilon": 1}

# What is asked, as a user types it.
ASKED: dict[str, Any] = {
    "a sum of each": lambda p: p.groupby("who")["x"].sum().mean(epsilon=1),
    "a mean of each": lambda p: p.groupby("who")["x"].mean().sum(epsilon=1),
    "the size of each": lambda p: p.groupby("who").size().mean(epsilon=1),
    "people by what they have": lambda p: (p.groupby("who")["x"].sum() > 1).sum(epsilon=1),
    "the first of each": lambda p: p.sort_values("t").groupby("who").head(1)["x"].mean(epsilon=1),
    "two of each": lambda p: p.sort_values("t", ascending=False).groupby("who").head(2)["x"].sum(epsilon=1),
    "two of each in groups": lambda p: p.groupby("who").head(2).groupby("g")["x"].sum(epsilon=1),
    "the last in groups": lambda p: p.groupby("who").nth(-1).groupby("g").size(epsilon=1),
    "one of each pair": lambda p: p.drop_duplicates(["who", "g"]).groupby("g").size(epsilon=1),
    "some of each in groups": lambda p: p.groupby("who").agg(g=("g", "first"), s=("x", "max")).groupby("g")["s"].mean(epsilon=1),
    "beside the rows": lambda p: p.assign(y=p["x"] - p.groupby("who")["x"].transform("mean")).groupby("g")["y"].sum(**OFF),
    "from row to row": lambda p: p.sort_values("t").groupby("who")["x"].diff().sum(bounds=(-8, 8), epsilon=1),
    "running": lambda p: p.groupby("who")["x"].cumsum().mean(**SUM, epsilon=1),
    "ranks": lambda p: p[p.groupby("who")["x"].rank(method="first") == 1]["t"].sum(epsilon=1),
    "after a filter": lambda p: p[p["t"] > 0].groupby("who")["x"].sum().mean(epsilon=1),
    "people chosen": lambda p: p.groupby("who").filter(lambda g: g["x"].sum() > 0).count(epsilon=1),
    "steps on steps": lambda p: p[p.groupby("who").cumcount() < 2].groupby("who")["x"].sum().mean(epsilon=1),
    "medians in a tree": lambda p: p.groupby("who")["x"].median().quantile(0.5, epsilon=1, method="tree"),
    "values of each": lambda p: p.groupby("who")["g"].nunique().mean(epsilon=1),
    "pairs": lambda p: p.groupby("who").agg(a=("x", "min"), b=("t", "max")).cov(epsilon=1),
}  # fmt: skip


def frame_of(rows: list[tuple[int, Any]]) -> pd.DataFrame:
    cells = [(who, *row) for who, row in rows]
    frame = pd.DataFrame(cells, columns=["who", "x", "t", "g"])
    return frame.astype({"who": "int64", "x": float, "t": "int64", "g": "str"})


def with_own(others: list[tuple[int, Any]], own: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """The rows of others, with those of person 99 in some places between them."""
    rows = list(others)
    for place, row in own:
        rows.insert(min(place, len(rows)), (99, row))
    return rows


def recorded(frame: pd.DataFrame, name: str, relation: str) -> list[tuple[int, int, Any]]:
    """What is claimed and what would get noise."""
    found: list[tuple[int, int, Any]] = []

    def noise(self: Any, plan: Any, part: int, integers: Any, **words: Any) -> Any:
        one = plan.parts[part]
        found.append((one.l1, one.l2_squared, np.array(integers)))
        return np.array(integers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "_noise", noise)
        patch.setattr(Session, "noise_key", lambda self: b"12345678")
        ASKED[name](frame.dp.open(1000, neighbors=relation, **TERMS))
    return found


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", ASKED)
@settings(max_examples=12, deadline=None)
@given(others=ROWS, first=OWN, second=OWN)
def test_one_person_moves_no_statistic_further_than_claimed(name, relation, others, first, second):
    one = with_own(others, first)
    other = others if relation == "add-remove" else with_own(others, second)
    ours, theirs = (recorded(frame_of(rows), name, relation) for rows in (one, other))
    assert ours
    for (l1, l2, a), (_, _, b) in zip(ours, theirs, strict=True):
        d1, d2 = moved(a, b)
        assert d1 <= l1
        assert d2 <= l2


def test_the_claim_of_one_row_would_be_too_small_where_a_person_has_two():
    """The twin that must fail: what is proven of ``head(1)`` said of ``head(2)``."""
    others = [(0, (1.0, 0, "a"))]
    own = [(0, (5.0, 0, "a")), (1, (5.0, 1, "b"))]
    (l1, _, a), *_ = recorded(frame_of(with_own(others, own)), "two of each", "add-remove")
    (_, _, b), *_ = recorded(frame_of(others), "two of each", "add-remove")
    assert l1 / 2 < moved(a, b)[0] <= l1


# Nobody else's values -----------------------------------------------------------------------------------------------------

HOWS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("sum", "mean", "median", "prod", "min", "max", "any", "all", "count", "nunique", "first", "last"), ()),
    **dict.fromkeys(("var", "std", "sem"), (1,)),
    "quantile": (0.3,),
    "size": (),
    "nth": (-2,),
    "shift": (1,),
    **dict.fromkeys(("ffill", "bfill", "cumsum", "cumprod", "cummin", "cummax"), ()),
    "rank": ("average", True, True),
    "cumcount": (True,),
    "duplicated": ("last",),
}  # fmt: skip
ROWLESS = ("size", "cumcount", "duplicated")


def values(frame: pd.DataFrame, how: str, sort: bool, filtered: bool, by: bool) -> pd.Series[Any]:
    """The value in each row, bit by bit."""
    leaves = {n: Column.of(i, n, frame.dtypes.iloc[i]) for i, n in enumerate(frame.columns)}
    keys = [WithinKey(leaves["t"], True)] if sort else []
    where = ~(frame["t"] == 2)
    frame = frame.assign(kept=where)
    condition = Column.of(4, "kept", frame.dtypes.iloc[4]) if filtered else None
    e = within(
        how,
        None if how in ROWLESS else leaves["x"],
        [leaves["who"]],
        condition,
        keys,
        HOWS[how],
        by=[leaves["g"]] if by else [],
    )
    v = PandasEngine(frame).table.column(e, slice(0, len(frame)))
    bits = v.values.view(np.int64) if v.values.dtype == np.float64 else v.values
    bits = np.where(np.isnan(v.values), -1, bits) if v.values.dtype == np.float64 else bits
    null = np.zeros(len(v), dtype=bool) if v.null is None else v.null
    return pd.Series(
        [None if missing else bit for bit, missing in zip(bits.tolist(), null, strict=True)],
        dtype=object,
    )


def test_values_of_a_person_end_where_the_rows_of_another_begin():
    """People have nulls at their ends, equal values, and a large one that would round others."""
    cells = {0: [None, 0.1, 1e16], 1: [1e16, None, 1e16], 2: [0.3, 0.1, None], 3: [0.2, 0.3, 0.1]}
    order = [(place, who) for place in range(3) for who in (2, 0, 3, 1)]
    whole = frame_of([(who, (cells[who][place], place, "a")) for place, who in order])
    for how in HOWS:
        found = values(whole, how, True, False, False)
        for who in cells:
            mask = (whole["who"] == who).to_numpy()
            alone = values(whole[mask].reset_index(drop=True), how, True, False, False)
            assert found[mask].tolist() == alone.tolist(), (how, who)


@pytest.mark.parametrize("how", HOWS)
@settings(max_examples=20, deadline=None)
@given(others=ROWS, own=OWN, sort=st.booleans(), filtered=st.booleans(), by=st.booleans())
def test_values_of_a_person_are_the_same_alone_and_among_others(
    how, others, own, sort, filtered, by
):
    whole = frame_of(with_own(others, own))
    found = values(whole, how, sort, filtered, by)
    for who in set(whole["who"]):
        mask = (whole["who"] == who).to_numpy()
        alone = values(whole[mask].reset_index(drop=True), how, sort, filtered, by)
        assert found[mask].tolist() == alone.tolist()


def test_pandas_own_sum_depends_on_where_the_rows_of_others_stand():
    """The twin that must fail, and why nothing is added by pandas: its sums of a person's doubles are others' business."""
    rng = np.random.default_rng(0)
    differs = 0
    for _ in range(300):
        own = rng.normal(0, 1, 60) * 10.0 ** rng.integers(-8, 9, 60)
        x, who = np.repeat(own, 2), np.tile([1, 0], 60)
        alone = pd.Series(own).groupby(np.ones(60, dtype=int)).sum()[1]
        among = pd.Series(x).groupby(who).sum()[1]
        ours = [
            values(
                frame_of([(w, (v, 0, "a")) for w, v in zip(people, cells, strict=True)]),
                "sum",
                False,
                False,
                False,
            )
            for people, cells in ((np.ones(60, dtype=int), own), (who, x))
        ]
        assert ours[0][0] == ours[1][0]
        differs += alone != among
    assert differs
