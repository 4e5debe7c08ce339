"""What the owner sees of a session: ledger, declarations, budget, texts and completion; never a cell."""

from __future__ import annotations

import inspect
import io
import re

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import Accountant
from tests.visits import BOUNDS, KEYS

# Ledger, declarations, budget ---------------------------------------------------------------------------------


def test_ledger_has_a_row_a_debit(df):
    p = df.dp.open(1, bounds=BOUNDS)
    assert p.ledger.empty
    p.count(epsilon=0.25)
    p.query("age > 30").mean("cost", epsilon=0.5)
    ledger = df.dp.ledger
    assert list(ledger) == [
        "when",
        "question",
        "mechanism",
        "scale",
        "epsilon",
        "delta",
        "used",
        "declared",
        "name",
    ]
    assert ledger["epsilon"].tolist() == [0.25, 0.5]
    assert ledger["scale"].tolist()[0] == 4
    assert ledger["question"].tolist() == ["size()", "mean(cost, bounds=(0, 1000)) where age > 30"]
    assert ledger["when"].is_monotonic_increasing
    assert str(ledger["when"].dtype).endswith("UTC]")


def test_declarations_keep_every_word_of_the_owner(df):
    p = df.dp.open(1, bounds={"age": (0, 110)}, keys=KEYS)
    coast, oldest = ["CA", "WA"], 90
    p.query("state in @coast and age < @oldest").count()
    p.mean("cost", bounds=(0, 500))
    p.groupby("state", keys=["WA"]).size()
    p.histogram("age", bins=[0, 50, 100])
    words = p.declarations
    assert list(words) == ["when", "what", "value", "where"]
    text = dict(zip(words["value"], words["what"], strict=True))
    assert (coast, oldest) == (["CA", "WA"], 90)
    assert text["'age': (0, 110)"] == "bounds"
    assert text["'state': ['CA', 'NY']"] == "keys"
    assert text["coast = ['CA', 'WA']"] == "@name"
    assert text["oldest = 90"] == "@name"
    assert text["cost: (0, 500)"] == "bounds"
    assert text["state: ['WA']"] == "keys"
    assert text["age: [0.0, 50.0, 100.0]"] == "bins"
    assert "oldest = 90" in p.ledger["declared"][0]
    assert len(words) == 7


def test_only_what_was_asked_is_declared(df):
    p = df.dp.open(1, bounds={"age": (0, 110)})
    before = p.declarations
    limit = 50
    filtered = p.query("age > @limit")
    filtered.explain.mean("cost", bounds=(0, 500))
    with pytest.raises(dpframe.BudgetExceeded):
        filtered.mean("cost", bounds=(0, 500), epsilon=2)
    pd.testing.assert_frame_equal(p.declarations, before)
    filtered.mean("cost", bounds=(0, 500))
    filtered.mean("cost", bounds=(0, 500), fresh=True)
    assert p.declarations["what"].tolist() == ["bounds", "@name", "bounds"]
    assert limit == 50


def test_ledger_knows_no_way_back():
    """Debits are made and read; nothing refunds, removes or redefines one."""
    public = {name for name in vars(Accountant) if not name.startswith("_")}
    reads = {
        "batches",
        "budget",
        "declarations",
        "file",
        "has_debits",
        "ledger",
        "limits",
        "list_released_integers",
        "meter",
        "name",
        "population",
        "plot",
        "recall",
        "recall_vector",
        "secret",
    }
    adds = {"attach", "debit", "declare", "record"}
    assert public == reads | adds


def test_ledger_and_declarations_are_copies(df):
    p = df.dp.open(1)
    p.count()
    mine = p.ledger
    mine.loc[0, "epsilon"] = 0
    assert p.ledger["epsilon"][0] == 0.05


def test_budget_tells_what_is_spent_and_left(df):
    p = df.dp.open(2, 1e-6, accountant="pure")
    p.count(epsilon=0.5)
    b = df.dp.budget
    assert (b.epsilon, b.delta, b.spent, b.remaining, b.share) == (2, 1e-6, 0.5, 1.5, 0.1)
    assert "0.5 of epsilon 2 spent, 1.5 left" in repr(b)
    html = b._repr_html_()
    assert "width:25.0%" in html
    assert "0.5 of epsilon 2 spent, 1.5 left" in html
    with pytest.raises((AttributeError, TypeError)):
        b.epsilon = 100


def test_texts_show_kinds_and_budget_and_no_cells(df):
    p = df.dp.open(1, bounds=BOUNDS)
    shown = [repr(p), p._repr_html_(), repr(p["state"]), repr(p.query("age > 3")), repr(p._session)]
    for text in shown:
        text = re.sub(r"0x[0-9a-f]+", "", text)  # an address has any digits
        assert not any(cell in text for cell in ("CA", "NY", "900", "120.5", "66"))
    assert "the budget ends with the process" in shown[0]
    assert "the budget ends with the process" in shown[1]
    assert "where age > 3" in shown[3]


def test_docstrings_say_that_the_budget_ends_with_the_process(df):
    closed = inspect.getdoc(df.dp.open)
    p = df.dp.open(1)
    for text in (closed, inspect.getdoc(type(p)), inspect.getdoc(p.open)):
        assert re.search("ends with (it|the process)", text)


# Python and notebooks -----------------------------------------------------------------------------------------


def _lost(frame):
    frame.attrs["dpframe"] = "gone"
    return frame


def _changed_answer(frame):
    answer = frame.dp.open(1, keys=KEYS).groupby("state").size()
    return answer * 2


OBJECTS = {
    "a plain frame": lambda d: d,
    "a plain series": lambda d: d["age"],
    "a lost session": _lost,
    "a series of a lost session": lambda d: _lost(d)["age"],
    "a derived series": lambda d: (d.dp.open(1), d["age"] * 2)[1],
    "a derived frame": lambda d: (d.dp.open(1), d.head(2))[1],
    "a changed answer": _changed_answer,
}


@pytest.mark.parametrize("made", OBJECTS)
def test_dir_hasattr_and_repr_work_on_every_frame_and_series(df, made):
    thing = OBJECTS[made](df)
    assert hasattr(thing, "dp")
    assert "dp" in dir(thing)
    assert isinstance(repr(thing.dp), str)
    assert not hasattr(thing.dp, "_ipython_canary_method_should_not_exist_")


def test_completion_offers_verbs_and_columns(df):
    p = df.dp.open(1)
    names = dir(p)
    for name in ("mean", "query", "groupby", "budget", "ledger", "explain", "age", "state"):
        assert name in names
    assert p._ipython_key_completions_() == ["age", "cost", "state"]
    assert list(p.columns) == ["age", "cost", "state"]
    assert "age" in p
    assert 0 not in p


def test_dp_is_built_anew_and_finds_the_same_session(df):
    df.dp.open(1)
    assert df.dp._session is df.dp._session


def test_typed_spelling_returns_the_tracked_frame(df):
    opened = df.dp.open(1)
    assert isinstance(opened, dpframe.PrivateFrame)
    assert isinstance(dpframe.private(df), dpframe.PrivateFrame)


def test_session_does_not_keep_the_frame_of_the_user_alive_or_change_it(df):
    before = df.copy()
    p = df.dp.open(1, bounds=BOUNDS, keys=KEYS)
    p.query("age > 3").groupby("state")["cost"].mean()
    pd.testing.assert_frame_equal(df, before)
    buffer = io.StringIO()
    df.to_csv(buffer)
    assert buffer.getvalue() == before.to_csv()
    assert np.shares_memory(df["age"].to_numpy(), p._session.snapshot["age"].to_numpy())
