"""Connections: those that a URL made end with the session, and what those of others are set to has no say."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import dpframe
from dpframe.engines.sql.databases import RelatedDatabase

ROWS = [(i % 7, float(i), "ab"[i % 2]) for i in range(50)]
WORDS: dict[str, Any] = {
    "bounds": {"x": (0, 100)},
    "keys": {"g": ["a", "b"]},
    "because": "rows that a test made",
}


def filled(path: Path) -> sqlite3.Connection:
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE visits (id INTEGER, x REAL, g TEXT)")
    base.execute("CREATE VIEW women AS SELECT * FROM visits WHERE g = 'a'")
    base.executemany("INSERT INTO visits VALUES (?, ?, ?)", ROWS)
    base.commit()
    return base


def of_rows(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return {"cells": row}


@pytest.mark.parametrize(
    "text_factory", [str, bytes, lambda text: text[::-1]], ids=["str", "bytes", "another"]
)
@pytest.mark.parametrize(
    "row_factory", [None, sqlite3.Row, of_rows], ids=["tuples", "rows", "dicts"]
)
@pytest.mark.parametrize("name", ["visits", "women"])
def test_what_a_connection_makes_of_texts_and_rows_has_no_say(
    name, row_factory, text_factory, tmp_path
):
    base = filled(tmp_path / "t.db")
    base.text_factory, base.row_factory = text_factory, row_factory
    p = dpframe.open(dpframe.sql(base, name), 1000, **WORDS)
    rows = [row for row in ROWS if name == "visits" or row[2] == "a"]
    assert (
        abs(p.sum("x", epsilon=450) - sum(x for _, x, _ in rows)) < 20
    )  # noise of a scale below 1/3
    assert p.groupby("g").size(epsilon=450).tolist() == [25, 25 * (name == "visits")]
    assert base.text_factory is text_factory
    assert base.row_factory is row_factory
    p.close()
    assert base.execute("SELECT 1").fetchone() is not None  # it is another's, and stays open


def test_a_connection_of_a_url_ends_with_its_session(tmp_path, monkeypatch):
    filled(tmp_path / "t.db").close()
    made: list[Any] = []
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **words: made.append(connect(*args, **words)) or made[-1]
    )
    p = dpframe.open(dpframe.sql(f"sqlite:///{tmp_path}/t.db", "visits"), 1000, **WORDS)
    with pytest.raises(dpframe.BadValue, match="no table 'others'"):
        dpframe.open(dpframe.sql(f"sqlite:///{tmp_path}/t.db", "others"), 1000, **WORDS)
    assert made[0].execute("SELECT 1").fetchone() == (1,)
    p.close()
    for connection in made:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_a_file_of_duckdb_is_free_again_when_its_session_is_closed(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="it has the file open")
    path = str(tmp_path / "t.duckdb")
    with duckdb.connect(path) as base:
        base.execute("CREATE TABLE visits (id BIGINT, x DOUBLE, g VARCHAR)")
        base.executemany("INSERT INTO visits VALUES (?, ?, ?)", ROWS)
    p = dpframe.open(dpframe.sql(f"duckdb:///{path}", "visits"), 1000, **WORDS)
    filtered = p.query("x > 3")
    assert round(filtered.count(epsilon=900)) == 46
    with pytest.raises(dpframe.BadValue, match="no table 'others'"):
        dpframe.open(dpframe.sql(f"duckdb:///{path}", "others"), 1000, **WORDS)
    with pytest.raises(duckdb.Error):
        duckdb.connect(path)  # to write, while it is read
    p.close()
    with duckdb.connect(path) as base:
        base.execute("INSERT INTO visits VALUES (1, 2.0, 'a')")
    with pytest.raises(dpframe.SessionError, match="closed"):
        filtered.count(epsilon=1)


def test_failed_transaction_of_duckdb_is_refused_before_the_debit():
    """Through a relation duckdb takes no ROLLBACK then, so its connection stays as it is until its owner ends it."""
    duckdb = pytest.importorskip("duckdb", reason="a relation needs duckdb")
    base = duckdb.connect()
    base.execute("CREATE TABLE visits AS SELECT i AS x, 'a' AS g FROM range(50) t(i)")
    p = dpframe.open(base.table("visits"), 1000, **WORDS)
    database = RelatedDatabase(base.table("visits"))
    with (
        pytest.raises(duckdb.InvalidInputException, match="a cell"),
        database.snapshot(),
    ):  # and no other error
        database.fetch("SELECT error('a cell' || g) FROM dpframe_rows", [])
    with pytest.raises(dpframe.SessionError, match=r"rollback\(\).*Nothing was charged"):
        p.count(epsilon=10)
    assert p.budget.spent == 0
    base.rollback()
    assert p.count(epsilon=500) == pytest.approx(50, abs=1)
