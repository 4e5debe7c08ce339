"""A table that is opened twice in one process has two budgets: `open` says so, and says how to go on."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from dpframe import PrivacyWarning
from dpframe._session import recognition
from dpframe.datasets import BOUNDS, KEYS, visits

ROWS = 60


@pytest.fixture(autouse=True)
def forget_tables(monkeypatch):
    """Start each test in a process that has opened no table."""
    monkeypatch.setattr(recognition, "_opened", type(recognition._opened)())


def load(seed=0):
    return visits(ROWS, seed=seed)


def open_quietly(frame, **words):
    """Open a frame; any privacy warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        return frame.dp.open(**{"epsilon": 1, "bounds": BOUNDS, "keys": KEYS, **words})


def open_with_warning(frame, **words):
    """Open a frame of which one warning is expected, and return the frame and its text."""
    with pytest.warns(PrivacyWarning) as caught:
        p = frame.dp.open(**{"epsilon": 1, "bounds": BOUNDS, "keys": KEYS, **words})
    assert len(caught) == 1
    assert caught[0].filename == __file__
    return p, str(caught[0].message)


def read_again(df, tmp_path):
    df.to_csv(tmp_path / "visits.csv", index=False)
    return pd.read_csv(tmp_path / "visits.csv").astype(df.dtypes.to_dict())


COPIES = {
    "loaded again": lambda df, path: load(),
    "a dict": lambda df, path: pd.DataFrame(df.to_dict()).astype(df.dtypes.to_dict()),
    "numpy": lambda df, path: pd.DataFrame(df.to_numpy(), columns=df.columns).astype(
        df.dtypes.to_dict()
    ),
    "a file": read_again,
    "one cell edited": lambda df, path: load().assign(age=[40, *df["age"].tolist()[1:]]),
}


@pytest.mark.parametrize("copy", COPIES)
def test_recognition_warns_once_of_a_table_that_was_opened_before(copy, tmp_path):
    df = load()
    open_quietly(df)
    _, message = open_with_warning(COPIES[copy](df, tmp_path))
    assert len(message) <= 120
    assert "accountant=p.accountant" in message
    assert "ledger=" in message


def test_recognition_warns_at_each_run_of_a_cell():
    open_quietly(load())
    for _ in range(2):
        open_with_warning(load())


def test_suggested_line_goes_on_with_the_first_budget():
    df = load()
    p = open_quietly(df)
    p.count(epsilon=0.25)
    del df
    q = open_quietly(load(), epsilon=None, accountant=p.accountant)
    q.mean("age", epsilon=0.25)
    assert p.budget.spent == q.budget.spent == 0.5


OTHERS = {
    "other cells": lambda df: load(seed=1),
    "one row fewer": lambda df: load().iloc[:-1].copy(),
    "another name": lambda df: load().rename(columns={"age": "years"}),
    "another dtype": lambda df: load().astype({"age": "int32"}),
}


@pytest.mark.parametrize("other", OTHERS)
def test_recognition_is_silent_about_another_table(other):
    df = load()
    open_quietly(df, bounds={}, keys={})
    open_quietly(OTHERS[other](df), bounds={}, keys={})


def test_recognition_is_silent_where_a_ledger_recognises_the_table(tmp_path):
    words = {"ledger": tmp_path / "budget.db", "population": "patients"}
    df = load()
    open_quietly(df, **words).close()
    del df
    p = open_quietly(load(), **words)
    assert p.budget.spent == 0
    open_with_warning(load())  # this one has a budget beside that of the file


def test_recognition_is_silent_about_a_second_budget_with_a_reason():
    open_quietly(load())
    open_quietly(load(), because="a rehearsal on synthetic data")


def test_recognition_knows_a_closed_table_if_anything_was_spent():
    p = open_quietly(load())
    p.close()
    q = open_quietly(load())
    q.count(epsilon=1)
    q.close()
    q.close()
    open_with_warning(load())


def test_recognition_leaves_tables_with_few_rows_alone():
    for _ in range(2):
        open_quietly(pd.DataFrame({"age": [30, 41, 55]}), bounds={}, keys={})


def test_recognition_reads_nothing_of_a_table_of_a_new_form(monkeypatch):
    monkeypatch.setattr(recognition, "read_private", lambda *_: pytest.fail("rows were read"))
    open_quietly(load())
    open_quietly(load().rename(columns={"age": "years"}), bounds={}, keys={})


def test_recognition_is_silent_about_rows_that_cannot_be_read(monkeypatch):
    def fail(*_):
        raise RuntimeError("a cell")

    monkeypatch.setattr(recognition, "sample_sketch", fail)
    for _ in range(2):
        open_quietly(load())


def test_recognition_runs_no_code_of_a_cell():
    ran = []

    class Cell:
        def __hash__(self):
            ran.append(self)
            return 0

    cells = [Cell() for _ in range(ROWS)]
    open_quietly(pd.DataFrame({"thing": pd.Series(cells, dtype=object)}), bounds={}, keys={})
    open_with_warning(pd.DataFrame({"thing": pd.Series(cells, dtype=object)}), bounds={}, keys={})
    assert not ran


def test_recognition_turned_into_an_error_opens_nothing():
    open_quietly(load())
    df = load()
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        with pytest.raises(PrivacyWarning):
            df.dp.open(epsilon=1)
    assert "dpframe" not in df.attrs


def test_recognition_remembers_a_bounded_number_of_tables(monkeypatch):
    monkeypatch.setattr(recognition, "FORMS", 3)
    monkeypatch.setattr(recognition, "TABLES", 2)
    for i in range(5):
        for seed in range(3):
            frame = pd.DataFrame({f"x{i}": np.arange(20.0) + 100 * seed})
            open_quietly(frame, bounds={}, keys={})
    assert [len(tables) for tables in recognition._opened.values()] == [2, 2, 2]
