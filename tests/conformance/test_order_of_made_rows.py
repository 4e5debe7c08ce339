"""The order of a person's rows: where rows are made of a source batch by batch, verbs that go by order are refused or sort anew.

Batches are a few rows long here. A newcomer's one row stands before all others and moves every cut between batches. What would
get noise may move by no more than the plan claims, and is what pandas has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe._session.session import Session
from dpframe._sizes import set_sizes

PEOPLE = 12
FIRST = np.arange(2 * PEOPLE) % 2 == 0
OTHERS = pd.DataFrame(
    {
        "u": np.repeat(np.arange(1, PEOPLE + 1), 2),
        "t": np.where(FIRST, 5, 1),
        "x": np.where(FIRST, 0.0, 1.0),
        "y": np.where(FIRST, 0.25, 0.75),
    }
)
NEWCOMER = pd.DataFrame({"u": [0], "t": [1], "x": [0.0], "y": [0.0]})
TABLE = pd.DataFrame({"t": [1, 5], "w": [1.0, 2.0]})
SEVERAL = pd.DataFrame({"t": [1, 1, 5], "w": [1.0, 2.0, 3.0]})
TERMS: dict[str, Any] = {
    "unit": "u",
    "max_rows": 2,
    "max_groups": 1,
    "bounds": {"x": (0, 1), "y": (0, 1), "t": (0, 9)},
    "because": "a test",
}
# How rows are made, and whether a batch of them at a time keeps the order of all.
MADE: dict[str, tuple[Any, bool]] = {
    "sort, melt": (lambda p: p.sort_values("t").melt(id_vars=["u", "t"], value_vars=["x"]), False),
    "melt of one": (lambda p: p.melt(id_vars=["u", "t"], value_vars=["x"]), True),
    "melt of two": (lambda p: p.melt(id_vars=["u", "t"], value_vars=["x", "y"]), False),
    "merge": (lambda p: p.merge(TABLE, on="t").rename(columns={"x": "value"}), True),
    "sort, merge": (
        lambda p: p.sort_values("t").merge(TABLE, on="t").rename(columns={"x": "value"}),
        False,
    ),
    "merge of several": (
        lambda p: p.merge(SEVERAL, on="t", how="left").rename(columns={"w": "value"}),
        True,
    ),
    "sort, merge of several": (
        lambda p: p.sort_values("t").merge(SEVERAL, on="t").rename(columns={"w": "value"}),
        False,
    ),
    "merge, then melt": (
        lambda p: p.merge(TABLE, on="t").melt(id_vars=["u", "t"], value_vars=["x", "w"]),
        False,
    ),
}
BY_ORDER: dict[str, Any] = {
    "head": lambda q: q.groupby("u").head(1)["value"],
    "nth": lambda q: q.groupby("u").nth(1)["value"],
    "first": lambda q: q.groupby("u")["value"].first(),
    "cumsum": lambda q: q.groupby("u")["value"].cumsum(),
}
WITHOUT_ORDER: dict[str, Any] = {
    "sum": lambda q: q.groupby("u")["value"].sum(),
}


def opened(frame: pd.DataFrame, kind: str, folder: Any) -> Any:
    table: Any = frame.copy()
    if kind in ("parquet", "duckdb"):
        table = folder / f"{len(frame)}.parquet"
        frame.to_parquet(table)
    if kind == "duckdb":
        table = pytest.importorskip("duckdb").read_parquet(str(table))
    elif kind == "polars":
        table = pytest.importorskip("polars").from_pandas(frame)
    elif kind == "arrow":
        table = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    elif kind == "dask":
        table = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)
    p = dpframe.open(table, 1000, **TERMS)
    return p


def recorded(frame: pd.DataFrame, kind: str, folder: Any, ask: Any) -> tuple[int, Any]:
    """What is claimed, and what would get noise."""
    found: list[tuple[int, Any]] = []

    def noise(self: Any, plan: Any, part: int, integers: Any, **words: Any) -> Any:
        found.append((plan.parts[part].l1, np.array(integers)))
        return np.array(integers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "_noise", noise)
        patch.setattr(Session, "noise_key", lambda self: b"12345678")
        ask(opened(frame, kind, folder)).sum(bounds=(0, 4), epsilon=1)
    ((claim, integers),) = found
    return claim, integers


def moved(kind: str, folder: Any, ask: Any) -> tuple[int, int]:
    """What is claimed, and by how much a newcomer before all others moves it."""
    claim, without = recorded(OTHERS, kind, folder, ask)
    _, with_newcomer = recorded(pd.concat([NEWCOMER, OTHERS], ignore_index=True), kind, folder, ask)
    return claim, sum(
        abs(int(a) - int(b)) for a, b in zip(without.ravel(), with_newcomer.ravel(), strict=True)
    )


BATCHES = {
    "pandas": 2,
    "parquet": 1,
    "polars": 3,
    "duckdb": 2,
    "arrow": 5,
    "dask": 2,
}  # rows in a batch
FIXED = ["parquet", "polars", "arrow", "dask"]  # sources that have their rows in one order
RARE = [("arrow", "sort, merge", "first"), ("dask", "sort, melt", "head"), ("dask", "merge", "nth")]
COMMON = [
    (kind, step, verb)
    for kind in list(BATCHES)[:4]
    for step in MADE
    for verb in [*BY_ORDER, *WITHOUT_ORDER]
]


@pytest.mark.parametrize(("kind", "step", "verb"), [*COMMON, *RARE])
def test_cuts_between_batches_have_no_say(kind, step, verb, tmp_path):
    with set_sizes(batch=BATCHES[kind]):
        check_cuts(kind, step, verb, tmp_path)


def check_cuts(kind, step, verb, tmp_path):
    """One row moves the integers by at most the claim, and they are those of a frame in memory."""
    make, whole = MADE[step]
    ask = lambda p: {**BY_ORDER, **WITHOUT_ORDER}[verb](make(p))  # noqa: E731
    lost = kind == "duckdb" or (kind in FIXED and not whole)
    if lost and verb in BY_ORDER:
        p = opened(OTHERS, kind, tmp_path)
        with pytest.raises(dpframe.Refused, match="no fixed one"):
            ask(p)
        assert p.budget.spent == 0
        ask = lambda p: BY_ORDER[verb](make(p).sort_values(["t", "value"]))  # noqa: E731  # the line to write
    claim, found = moved(kind, tmp_path, ask)
    assert found <= claim
    if kind != "pandas":
        (_, ours), (_, wanted) = (recorded(OTHERS, k, tmp_path, ask) for k in (kind, "pandas"))
        assert ours.tolist() == wanted.tolist()


def test_reports_of_rows_that_are_made_piece_by_piece_have_no_order(tmp_path):
    """As of every source that has none."""
    OTHERS.to_parquet(tmp_path / "rows.parquet")
    p = dpframe.open(tmp_path / "rows.parquet", 1000, neighbors="replace-one", **TERMS)
    made = p.melt(id_vars=["u"], value_vars=["x", "y"])
    with pytest.raises(dpframe.NotOffered, match="no fixed one"):
        made.randomize("variable", keys=["x", "y"], epsilon=1)
    assert p.budget.spent == 0
    assert (
        len(p.merge(TABLE, on="t", how="left").randomize("t", keys=[1, 5], epsilon=900))
        == 2 * PEOPLE
    )
