"""The same words that mean other rows: settings, names, functions and files of a connection are part of what was opened."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dpframe
from dpframe import BadValue, BudgetExceeded, SessionError
from dpframe._session.opening import open_again
from dpframe.engines.tables.queries import check_sql, files_read

pa = pytest.importorskip("pyarrow", reason="sources are read by pyarrow")
pq = import_module("pyarrow.parquet")
ROWS = 100


@pytest.fixture
def base(tmp_path, monkeypatch):
    duckdb = pytest.importorskip("duckdb", reason="a connection of duckdb")
    monkeypatch.setenv("HOME", str(tmp_path))
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute(f"CREATE TABLE seen AS SELECT range AS x, 'A' AS s FROM range({ROWS})")
        connection.execute(
            "CREATE SCHEMA other; CREATE TABLE other.seen AS SELECT 1 AS x, 'a' AS s"
        )
        (tmp_path / "rows.csv").write_text("x\n" + "1\n" * ROWS)
        (tmp_path / "many").mkdir()
        pq.write_table(pa.table({"x": list(range(ROWS))}), tmp_path / "many" / "a.parquet")
        yield connection


def refused_after(table: Any, change: Any) -> None:
    p = dpframe.open(table, 1000, because="made up")
    assert p.count(epsilon=90) == ROWS
    change()
    with pytest.raises(SessionError, match="has changed"):
        p.query("x > -1").count(epsilon=90)
    assert p.budget.spent == 90


CHANGES = {
    "schema": "SET schema = 'other'",
    "search path": "SET search_path = 'other'",
    "zone": "SET TimeZone = 'Asia/Tokyo'",
    "collation": "SET default_collation = 'NOCASE'",
    "transaction": "BEGIN; UPDATE seen SET x = -5",
}


@pytest.mark.parametrize("change", CHANGES)
def test_words_of_duckdb_that_mean_other_rows_are_refused(base, change):
    refused_after(base.sql("SELECT * FROM seen"), lambda: base.execute(CHANGES[change]))


def test_another_table_of_the_name_with_as_many_rows_is_seen():
    duckdb = pytest.importorskip("duckdb", reason="a connection of duckdb")
    memory, words = (
        duckdb.connect(),
        "CREATE OR REPLACE TABLE seen AS SELECT range % 7 AS x FROM range(100)",
    )
    memory.execute(words)
    refused_after(memory.table("seen"), lambda: memory.execute(words))


NAMED = {
    "home": lambda folder: "SELECT * FROM '~/rows.csv'",
    "address": lambda folder: f"SELECT * FROM read_csv('file://{folder}/rows.csv')",
}


@pytest.mark.parametrize("name", NAMED)
def test_a_file_is_watched_however_it_is_named(base, tmp_path, name):
    lines = "x\n" + "1\n" * (ROWS + 1)
    refused_after(
        base.sql(NAMED[name](tmp_path)), lambda: (tmp_path / "rows.csv").write_text(lines)
    )


def test_hidden_files_and_those_on_the_path_of_files_are_watched(base, tmp_path):
    hidden = base.sql(f"SELECT x FROM read_parquet('{tmp_path}/many/*')")
    more = tmp_path / "many" / ".b.parquet"
    refused_after(hidden, lambda: shutil.copy(tmp_path / "many" / "a.parquet", more))
    base.execute(f"SET file_search_path = '{tmp_path}'")
    refused_after(
        base.sql("SELECT * FROM 'rows.csv'"), lambda: (tmp_path / "rows.csv").write_text("x\n1\n")
    )


def test_folders_are_walked_where_a_query_reads_them_alone():
    text = "SELECT * FROM read_parquet('a b/it''s') JOIN \"read_csv\"(['c', 'd'], header = true) ON s = '/' -- read_csv(x)"
    assert files_read(text) == ["a b/it's", "c", "d"]


def test_names_of_files_that_are_computed_are_refused(base, tmp_path):
    for text in (
        f"SELECT * FROM read_csv('{tmp_path}' || '/rows.csv')",
        f"SELECT * FROM read_parquet(list_transform(['a'], lambda f: '{tmp_path}/many/' || f || '.parquet'))",
    ):
        with pytest.raises(BadValue, match="computes what"):
            dpframe.open(base.sql(text), 1, because="made up")
    listed = base.sql(f"SELECT * FROM read_parquet(['{tmp_path}/many/a.parquet'])")
    assert dpframe.open(listed, 1000, because="made up").count(epsilon=900) == ROWS


def test_functions_that_duckdb_calls_unsteady_are_refused(base):
    for text in ("x < txid_current()", "x < current_query_id()", "x < getvariable('a')"):
        with pytest.raises(BadValue, match="gives other rows each time"):
            dpframe.open(base.sql(f"SELECT * FROM seen WHERE {text}"), 1, because="made up")


def test_other_code_under_the_name_of_a_function_is_seen(base):
    def steady(x: int) -> int:
        return x

    base.create_function("ours", steady, ["BIGINT"], "BIGINT")

    def renewed():
        base.remove_function("ours")
        base.create_function("ours", lambda x: 0, ["BIGINT"], "BIGINT")

    refused_after(base.sql("SELECT ours(x) AS x FROM seen"), renewed)


@pytest.mark.parametrize(
    "text", ["age(born)", "age((born))", "strftime('%f') > '3'", "randomblob(1) < x'80'"]
)
def test_the_clock_and_chance_in_other_words_are_refused(text):
    with pytest.raises(BadValue, match="gives other rows each time"):
        check_sql(f"SELECT * FROM t WHERE {text}")
    check_sql("SELECT age(born, seen), strftime('%Y', born), page(x) FROM t")


# SQLite ---------------------------------------------------------------------------------------------------------


RENEWED = {
    "a view": "DROP VIEW v; CREATE VIEW v AS SELECT x FROM t WHERE x < 0",
    "a table": "ALTER TABLE t RENAME TO old; ALTER TABLE u RENAME TO t",
    "made anew": "DROP TABLE t; CREATE TABLE t (x INTEGER)",
    "a temporary view before it": "CREATE TEMP VIEW v AS SELECT x FROM u",
}


@pytest.mark.parametrize("where", ["memory", "file"])
@pytest.mark.parametrize("change", RENEWED)
def test_tables_and_views_of_sqlite_that_are_made_anew_are_seen(tmp_path, where, change):
    with sqlite3.connect(":memory:" if where == "memory" else tmp_path / "x.db") as connection:
        connection.executescript(
            "CREATE TABLE t (x INTEGER); CREATE TABLE u (x INTEGER); CREATE VIEW v AS SELECT x FROM t"
        )
        connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(ROWS)])
        connection.commit()
        refused_after(
            dpframe.sql(connection, "v"), lambda: connection.executescript(RENEWED[change])
        )


def test_a_temporary_view_of_sqlite_is_read_as_it_is_written(tmp_path):
    other = tmp_path / "y.db"
    with sqlite3.connect(other) as there:
        there.executescript("CREATE TABLE t (x INTEGER)")
        there.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(ROWS)])
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute(f"ATTACH '{other}' AS there")
        connection.execute("CREATE TEMP VIEW lucky AS SELECT x FROM there.t WHERE random() % 2 = 0")
        connection.execute("CREATE TEMP VIEW above AS SELECT x FROM lucky")
        connection.execute("CREATE TEMP VIEW all_of AS SELECT x FROM there.t")
        for name in ("lucky", "above"):
            with pytest.raises(BadValue, match="RANDOM"):
                dpframe.open(dpframe.sql(connection, name), 1, because="made up")

        def deleted():
            with sqlite3.connect(other) as there:
                there.execute("DELETE FROM t WHERE x > 3")

        refused_after(dpframe.sql(connection, "all_of"), deleted)


# Others ---------------------------------------------------------------------------------------------------------


def test_dataset_notices_a_replaced_file_of_the_same_size_and_time(tmp_path):
    dataset = import_module("pyarrow.dataset")
    path, twin = tmp_path / "a.parquet", tmp_path / "b.parquet"
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(pa.table({"x": list(range(ROWS))}), path, **plain)
    pq.write_table(pa.table({"x": [-x for x in range(ROWS)]}), twin, **plain)
    assert path.stat().st_size == twin.stat().st_size
    stat = path.stat()

    def replaced():
        os.utime(twin, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        os.replace(twin, path)

    refused_after(dataset.dataset(str(path)), replaced)


def test_hidden_files_that_polars_reads_are_watched(tmp_path):
    polars = pytest.importorskip("polars", reason="a LazyFrame")
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * ROWS)
    lazy = polars.scan_csv(f"{tmp_path}/*.csv")
    refused_after(lazy, lambda: (tmp_path / ".b.csv").write_text("x\n1\n"))


def test_threads_that_run_the_line_that_opens_have_one_budget(tmp_path: Path, monkeypatch: Any):
    searched = open_again

    def slowly(*words: Any) -> Any:
        found = searched(*words)
        time.sleep(0.05)  # in which another thread would find as little
        return found

    monkeypatch.setattr("dpframe._frame.sources.open_again", slowly)
    pq.write_table(pa.table({"x": list(range(ROWS))}), tmp_path / "a.parquet")
    sessions, answers, start = set(), [], threading.Barrier(6)

    def line(place: int) -> None:
        start.wait()
        p = dpframe.open(tmp_path / "a.parquet", 1, because="the only budget")
        sessions.add(p._session)
        with suppress(BudgetExceeded):
            answers.append(p.query(f"x > -{place + 1}").count(epsilon=1))

    threads = [threading.Thread(target=line, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sessions) == len(answers) == 1
