"""Rows that are made of a source's rows: the integers of the same steps on a frame in memory, whatever the batches and passes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import NotOffered, SessionError
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._questions.question import Query
from dpframe._sizes import SIZES
from dpframe._statistics.base import Distincts, Grid, Persons, Powers, Rows
from dpframe._validate import Bounds
from tests.engines.conformance import shaken

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

LISTS = [["a"], ["a", "b"], [], None, ["c", None, "a", "a"]]
STATES = ["CA", "NY", "TX"]
WORDS: dict[str, Any] = {"bounds": {"age": (0, 100), "visits": (0, 20)}, "keys": {"state": STATES}}
UNIT: dict[str, Any] = {"unit": "id", "max_rows": 2, "max_groups": 2}
PUBLIC = pd.DataFrame(
    {
        "state": ["CA", "NY", "CA", None],
        "big": [1, 2, 3, 4],
        "name": pd.Categorical(["x", "y", "z", "x"]),
        "when": pd.to_datetime(["2024-01-01"] * 4),
    }
)
SINGLE = PUBLIC.iloc[:2]


def table() -> Any:
    rng = np.random.default_rng(3)
    n = 600
    ids = [None if i % 31 == 0 else int(k) for i, k in enumerate(rng.integers(0, 90, n))]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "age": pa.array([None if i % 7 == 0 else float(i % 90) for i in range(n)]),
            "visits": rng.integers(0, 20, n),
            "state": pa.array([[*STATES, None][k] for k in rng.integers(0, 4, n)]),
            "codes": pa.array([LISTS[k] for k in rng.integers(0, len(LISTS), n)]),
        }
    )


@pytest.fixture
def files(tmp_path):
    for i in range(3):
        pq.write_table(table().slice(i * 200, 200), tmp_path / f"{i}.parquet", row_group_size=37)
    return tmp_path


STEPS: dict[str, Callable[[Any], Any]] = {
    "explode": lambda p: p.explode("codes", max_rows=3, max_groups=2),
    "explode of some": lambda p: p.query("visits > 5")[["age", "codes"]].explode("codes", max_rows=3, max_groups=2),
    "melt": lambda p: p.melt(["state"], ["age", "visits"], max_rows=3, max_groups=2),
    "melt of expressions": lambda p: p.assign(v="visits * 2").melt(["id"], ["age", "v"], max_rows=3, max_groups=2),
    "merge": lambda p: p.merge(PUBLIC, on="state", max_rows=3, max_groups=2),
    "left merge": lambda p: p.merge(PUBLIC, on="state", how="left", max_rows=3, max_groups=2),
    "merge of a single match": lambda p: p.query("age > 20").merge(SINGLE, on="state"),
    "all of them": lambda p: p.explode("codes", max_rows=3, max_groups=2).merge(PUBLIC, on="state", how="left")
    .query("big != 2").melt(["codes", "state"], ["age", "big"], max_rows=2, max_groups=2),
}  # fmt: skip


def integers(frame: Any) -> dict[str, Any]:
    """Sums of each column of a derived frame, as they are before noise."""
    session = frame._session
    asked: set[Any] = {Rows(), Persons()}
    found: dict[str, Any] = {}
    for name, leaf in session.leaves.items():
        if leaf.kind in ("number", "bool"):
            asked.add(Powers(leaf, Grid.for_width(Bounds(0.0, 50.0), 15), 2))
        if leaf.kind in ("number", "text"):
            found[f"distinct {name}"] = shaken(
                session._engine.reduce(Query(()), {Distincts(leaf)}, session.unit)
            )
        if leaf.kind == "text":
            by = KeyBy(leaf, keys_for([*STATES, "a", "b", "age", "x"], leaf, name))
            found[f"by {name}"] = shaken(
                session._engine.reduce(Query((), None, (by,)), {Rows(), Persons()}, session.unit)
            )
            texts, sums = session._engine.occurring((leaf,), None, session.unit)
            found[f"keys of {name}"] = texts, shaken(sums)[Persons()]
    found["sums"] = sorted(
        map(str, shaken(session._engine.reduce(Query(()), asked, session.unit)).values())
    )
    return found  # fmt: skip


@pytest.fixture(autouse=True)
def one_key(monkeypatch):
    """Whose groups count is decided by the same hashes in memory and out of it."""
    from dpframe._session.session import Session

    monkeypatch.setattr(Session, "noise_key", lambda self: b"12345678")


@pytest.mark.parametrize(
    "step", [*list(STEPS)[:-1], pytest.param("all of them", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("memory", ["1GB", "1MB"])
def test_the_integers_are_those_of_the_same_steps_in_memory(files, step, memory, monkeypatch):
    monkeypatch.setattr(SIZES, "batch", 50)
    frame = table().to_pandas(types_mapper=pd.ArrowDtype)
    p = dpframe.open(frame, 1000, because="made up", **UNIT, **WORDS)
    q = dpframe.open(str(files), 1000, because="made up", memory=memory, **UNIT, **WORDS)
    if memory == "1MB":
        monkeypatch.setattr("dpframe.engines.derived.DerivedSource.passes", lambda self, columns: 5)
    whole, parts = STEPS[step](p), STEPS[step](q)
    assert list(whole.columns) == list(parts.columns)
    assert {n: c.kind for n, c in whole._session.leaves.items()} == {
        n: c.kind for n, c in parts._session.leaves.items()
    }
    assert integers(whole) == integers(parts)
    assert integers(parts)["sums"] != integers(q)["sums"]
    assert q.budget.spent == 0


def test_a_row_stays_a_persons_only_one_where_a_merge_has_a_single_match(files):
    frame = table().to_pandas(types_mapper=pd.ArrowDtype)
    for how in ("inner", "left"):
        p, q = (
            dpframe.open(one, 1000, because="made up", **WORDS).merge(SINGLE, on="state", how=how)
            for one in (frame, str(files))
        )
        assert integers(p) == integers(q)
    words = {"neighbors": "replace-one", "because": "made up", **WORDS}
    left = dpframe.open(str(files), 1000, **words).merge(SINGLE, on="state", how="left")
    assert left._session.public_rows == 600


def test_several_rows_of_an_unnamed_row_are_refused_for_nothing(files):
    p = dpframe.open(str(files), 1000, because="made up", **WORDS)
    for step in ("explode", "melt", "merge"):
        with pytest.raises(NotOffered, match="unit="):
            STEPS[step](p)
    assert p.budget.spent == 0


def test_a_file_that_is_replaced_is_seen_before_a_debit(files):
    p = dpframe.open(str(files), 1000, because="made up", **UNIT, **WORDS)
    q = p.merge(PUBLIC, on="state")
    pq.write_table(table().slice(0, 100), files / "1.parquet")
    os.utime(files / "1.parquet", ns=(1, 1))
    with pytest.raises(SessionError, match="has changed"):
        q.mean("big", epsilon=100)
    assert p.budget.spent == 0


def test_answer_of_derived_rows_is_free_when_files_are_opened_again(files, tmp_path):
    words = {"ledger": tmp_path / "b.db", "population": "p", **UNIT, **WORDS}
    ask = lambda p: p.merge(PUBLIC, on="state").mean("big", epsilon=1)  # noqa: E731
    p = dpframe.open(str(files), 10, **words)
    first = ask(p)
    p.close()
    q = dpframe.open(str(files), 10, **words)
    assert ask(q) == first
    assert q.budget.spent == 1
    assert q.merge(SINGLE, on="state").mean("big", epsilon=1) != first
    assert q.budget.spent == 2


def test_rows_of_a_batch_that_have_other_dtypes_are_an_error(files, monkeypatch):
    real = pd.api.extensions.take
    p = dpframe.open(str(files), 1000, because="made up", **UNIT, **WORDS)
    q = p.merge(PUBLIC, on="state")

    def other(array: Any, places: Any, **words: Any) -> Any:
        return np.asarray(real(array, places, **words), dtype=object)

    monkeypatch.setattr(pd.api.extensions, "take", other)
    with pytest.raises(dpframe.DataError):
        q.mean("big", epsilon=1)
    assert p.budget.spent == 1
