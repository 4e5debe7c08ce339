"""Sessions on tables that databases count: who is asked is known before a debit, and what goes wrong answers nothing."""

from __future__ import annotations

import os
import sqlite3
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpframe
from dpframe import DataError, NotOffered, SessionError
from dpframe._expr import Column
from dpframe._frame.sources import recognise_source
from dpframe._groups.unit import Unit
from dpframe._questions.question import Query
from dpframe._statistics.base import Powers, Rows
from dpframe.engines import engine_for
from dpframe.engines import parts as engines_parts_module
from dpframe.engines.parts import PartsEngine
from dpframe.engines.sources import differ_without_case
from dpframe.engines.sql import SqlEngine
from dpframe.engines.sql.databases import PostgresDatabase, RelatedDatabase
from dpframe.engines.tables.parquet import FilesDatabase, plain_columns

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
KEYS = {"s": ["a", "A", "b"]}


def rows(n: int = 400) -> Any:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "id": rng.integers(0, 90, n),
            "s": rng.choice(["a", "A", "b", "c"], n),
            "x": rng.integers(0, 10, n).astype(float),
        }
    )


def opened(table: Any, **words: Any) -> Any:
    return dpframe.open(
        table,
        1000,
        1e-6,
        because="made up",
        bounds={"x": (0, 10)},
        keys=KEYS,
        accountant="pure",
        **words,
    )


@pytest.fixture
def duckdb() -> Any:
    return pytest.importorskip("duckdb", reason="these tables are counted by duckdb")


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was read in parts."""
    asked: list[str] = []

    def hear(name: str) -> None:
        real = getattr(PartsEngine, name)
        monkeypatch.setattr(
            PartsEngine, name, lambda *words, **more: (asked.append(name), real(*words, **more))[1]
        )

    for name in ("reduce", "occurring", "slices", "people"):
        hear(name)
    return asked


def sizes(p: Any) -> list[int]:
    return list(map(int, p.groupby("s").size(epsilon=30)))


SIZES = [int(np.sum(np.asarray(rows()["s"]) == key)) for key in KEYS["s"]]

# Which files and columns ------------------------------------------------------------------------------------


def engine_of(path: Any) -> Any:
    source = recognise_source(path)
    return engine_for(source.schema, b"12345678")


def columns_in_sql(engine: Any) -> set[str]:
    columns = [
        Column.of(i, name, dtype) for i, (name, dtype) in enumerate(engine._schema.dtypes.items())
    ]
    return {c.name for c in columns if engine.writes(Query(()), {Powers(c, None, 0)}, Unit())}


def test_files_are_counted_where_duckdb_is_and_read_where_it_is_not(
    duckdb, tmp_path, monkeypatch, parts
):
    pq.write_table(rows(), tmp_path / "t.parquet")
    p = opened(tmp_path / "t.parquet")
    assert type(engine_of(tmp_path / "t.parquet")) is SqlEngine
    assert sizes(p) == SIZES
    assert parts == []
    p.close()
    monkeypatch.setattr("dpframe.engines.tables.parquet.find_spec", lambda name: None)
    q = opened(tmp_path / "t.parquet")
    assert type(engine_of(tmp_path / "t.parquet")) is PartsEngine
    assert sizes(q) == SIZES
    assert parts == ["reduce"]


@pytest.mark.parametrize(
    "name", ["state=x/a[1].parquet", "it's *.parquet", "a?.parquet", "{a,b}.parquet"]
)
def test_a_name_that_is_a_pattern_to_duckdb_is_a_name(duckdb, tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    pq.write_table(rows(), path)
    pq.write_table(rows(10), tmp_path / "a1.parquet")
    assert type(engine_of(path)) is PartsEngine
    assert sizes(opened(path)) == SIZES


def test_a_folder_is_no_column(duckdb, tmp_path):
    path = tmp_path / "s=z" / "it's.parquet"
    path.parent.mkdir()
    pq.write_table(rows(), path)
    p = opened(tmp_path / "s=z")
    assert type(p._session._engine) is SqlEngine
    assert list(p.columns) == ["id", "s", "x"]
    assert sizes(p) == SIZES


def test_names_that_differ_in_case_alone_are_read_in_parts(duckdb, tmp_path):
    """duckdb would read the one for the other."""
    pq.write_table(rows().append_column("S", rows()["id"]), tmp_path / "t.parquet")
    assert type(engine_of(tmp_path / "t.parquet")) is PartsEngine
    relation = duckdb.sql("select 1 as a, 2 as b").project('a, b as "c"')
    assert type(engine_of(relation)) is SqlEngine
    assert sizes(opened(tmp_path / "t.parquet")) == SIZES


def undecodable(path: Path, writer: bytes) -> None:
    """A file with texts that are not UTF-8, by a writer of this name."""
    texts = pa.array([b"a", b"\xff", b"b", b"\xfe"] * 100).view(pa.string())
    pq.write_table(rows().set_column(1, "s", texts), path)
    raw = path.read_bytes()
    known = b"parquet-cpp-arrow"
    assert raw.count(known) == 1
    path.write_bytes(raw.replace(known, writer.ljust(len(known))))


def test_texts_are_counted_where_their_writer_lets_nothing_else_through(duckdb, tmp_path):
    """duckdb ends with an error at the first text that is not UTF-8, which would tell that there is one."""
    path = tmp_path / "t.parquet"
    undecodable(path, b"parquet-mr")
    assert columns_in_sql(engine_of(path)) == {"id", "x"}
    p = opened(path)
    assert sizes(p) == [100, 0, 100]
    assert int(p["s"].nunique(epsilon=40)) == 4
    q = opened(path, unit="s", max_rows=200, max_groups=1)
    assert int(q.query("x >= 0").count(epsilon=900)) == pytest.approx(400, abs=5)
    pq.write_table(rows(), path)
    assert columns_in_sql(engine_of(path)) == {"id", "s", "x"}


def plain(table: Any, path: Path, writer: bytes = b"", **words: Any) -> list[str]:
    pq.write_table(table, path, **words)
    if writer:
        path.write_bytes(path.read_bytes().replace(b"parquet-cpp-arrow", writer.ljust(17)))
    return plain_columns([pq.read_metadata(path)])


def test_columns_are_plain_by_what_stands_at_the_end_of_a_file(tmp_path):
    one, other = tmp_path / "one.parquet", tmp_path / "other.parquet"
    assert plain(rows(), one) == plain(rows(), one, compression="ZSTD") == ["id", "s", "x"]
    assert plain(rows(), one, b"parquet-mr") == ["id", "x"]
    assert plain(rows(), one, b"Polars") == ["id", "s", "x"]
    assert plain(rows(), one, compression="BROTLI") == []
    more = (
        rows()
        .append_column("n", pa.array([{"id": 1}] * 400))
        .append_column("l", pa.array([[1]] * 400))
    )
    assert plain(more.append_column("b", pa.array([b"\xff"] * 400)), one) == ["id", "s", "x"]
    narrow = rows().set_column(0, "id", rows()["id"].cast(pa.int32()))
    assert plain(rows(), one) == plain(narrow, other) == ["id", "s", "x"]
    assert plain_columns([pq.read_metadata(path) for path in (one, other)]) == []
    assert differ_without_case(["a", "b"])
    assert not differ_without_case(["a", "b", "A"])


def test_columns_of_other_types_and_packings_are_read_in_parts(duckdb, tmp_path):
    more = {
        "wide": pa.array([2**64 - 1, 0] * 200, pa.uint64()),
        "when": pa.array([0, 1] * 200, pa.timestamp("us")),
        "nested": [{"x": 1}] * 400,
        "half": pa.array([1.5, None] * 200, pa.float16()),
        "bytes": [b"a", None] * 200,
    }
    table = rows()
    for name, cells in more.items():
        table = table.append_column(name, pa.array(cells) if isinstance(cells, list) else cells)
    pq.write_table(table, tmp_path / "t.parquet")
    engine = engine_of(tmp_path / "t.parquet")
    assert columns_in_sql(engine) >= {"id", "s", "x"}
    p = opened(tmp_path / "t.parquet")
    assert [int(p[name].count(epsilon=30)) for name in more] == [400, 400, 400, 200, 200]
    assert int(p["wide"].nunique(epsilon=40)) == 2
    pq.write_table(rows(), tmp_path / "other.parquet", compression="BROTLI")
    assert type(engine_of(tmp_path / "other.parquet")) is PartsEngine


def test_types_of_duckdb_that_arrow_has_not_are_read_in_parts(duckdb):
    base = duckdb.connect()
    base.execute(
        "create table t as select i::hugeint * 10000000000 as h, i as n, uuid_of as u, (i / 4)::decimal(9, 2) as d, "
        "(case when i % 2 = 0 then 'a' else 'b' end)::enum('a', 'b') as s from "
        "(select i, ('00000000-0000-0000-0000-00000000000' || (i % 3))::uuid as uuid_of from range(8) r(i))"
    )
    p = dpframe.open(base.table("t"), 1000, because="made up", keys=KEYS)
    assert {"n", "s"} <= columns_in_sql(p._session._engine)
    assert not {"h", "d", "u"} & columns_in_sql(p._session._engine)
    assert [int(p[name].count(epsilon=30)) for name in ("h", "n", "d", "u")] == [8] * 4
    assert sizes(p) == [4, 0, 4]
    assert float(p["d"].sum(bounds=(0, 2), epsilon=300)) == pytest.approx(7, abs=0.2)


# Connections stay as their owners have set them -----------------------------------------------------------------


def in_sqlite(path: Any = ":memory:", **words: Any) -> sqlite3.Connection:
    base = sqlite3.connect(path, **words)
    base.execute("CREATE TABLE t (id INTEGER, s TEXT COLLATE NOCASE, x REAL)")
    base.executemany(
        "INSERT INTO t VALUES (?, ?, ?)", zip(*rows().to_pydict().values(), strict=True)
    )
    base.commit()
    return base


@pytest.mark.parametrize("words", [{}, {"isolation_level": None}, {"isolation_level": "IMMEDIATE"}])
def test_a_connection_of_sqlite_is_asked_and_left_alone(parts, words):
    base = in_sqlite(**words)
    base.text_factory = lambda raw: raw.decode("latin-1")
    before = base.total_changes, base.isolation_level, base.text_factory
    p = opened(dpframe.sql(base, "t"))
    assert sizes(p) == SIZES
    assert p.groupby("s").agg(n=("x", "size"), m=("x", "median"), epsilon=30)["n"].tolist() == SIZES
    assert sorted(p.unique("s", epsilon=30)) == ["A", "a", "b", "c"]
    assert (base.total_changes, base.isolation_level, base.text_factory) == before
    assert not base.in_transaction
    assert base.execute("SELECT name FROM sqlite_temp_master").fetchall() == []
    assert parts == []
    base.execute("INSERT INTO t VALUES (1, 'a', 1)")
    with pytest.raises(SessionError, match="has changed"):
        p.count(epsilon=30)
    base.rollback() if base.in_transaction else base.execute("DELETE FROM t WHERE rowid > 400")


def test_rows_of_an_open_transaction_are_refused():
    base = in_sqlite()
    base.execute("DELETE FROM t WHERE s = 'b'")
    with pytest.raises(dpframe.BadValue, match=r"rollback\(\)"):
        opened(dpframe.sql(base, "t"))
    base.commit()
    p = opened(dpframe.sql(base, "t"))
    assert p.groupby("s").agg(n=("x", "size"), m=("x", "median"), epsilon=30)["n"].tolist() == [
        *SIZES[:2],
        0,
    ]
    base.execute("DELETE FROM t WHERE s = 'a'")
    for _ in range(2):  # before its rollback, and after
        with pytest.raises(dpframe.SessionError, match="has changed"):
            p.count(epsilon=30)
        base.rollback()
    assert p.budget.spent == 30


def test_a_transaction_that_only_reads_is_no_change_and_goes_on():
    base = in_sqlite()
    base.commit()
    p = opened(dpframe.sql(base, "t"))
    base.execute("BEGIN")
    found = p.groupby("s").agg(
        n=("x", "size"), m=("x", "median"), epsilon=30
    )  # in several statements
    assert found["n"].tolist() == SIZES
    assert base.in_transaction
    base.rollback()


def test_a_relation_of_duckdb_is_asked_and_its_connection_left_alone(duckdb, parts):
    base = duckdb.connect()
    base.register("given", rows())
    base.execute("create table t as select * from given")
    base.unregister("given")
    # duckdb keeps the names that relations were asked by, before its version 2.
    ours = "not internal and view_name not in ('dpframe_rows', 'dpframe_asks')"
    catalog = f"select table_name from duckdb_tables() union all select view_name from duckdb_views() where {ours}"
    before = base.execute(catalog).fetchall()
    for ask in (lambda: None, base.begin):
        ask()
        p = opened(base.table("t"))
        assert (
            p.groupby("s").agg(n=("x", "size"), m=("x", "median"), epsilon=30)["n"].tolist()
            == SIZES
        )
        assert int(p.query("s == 'a' and x > 2").count(epsilon=30)) == sum(
            s == "a" and x > 2
            for s, x in zip(*rows().select(["s", "x"]).to_pydict().values(), strict=True)
        )
        p.close()
    base.rollback()  # which there was
    assert base.execute(catalog).fetchall() == before
    assert parts == []
    base.execute("set python_enable_replacements = false")
    p = opened(base.table("t"))
    assert sizes(p) == SIZES
    assert parts == ["reduce"]


def test_what_files_need_goes_with_their_session(duckdb, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spill"))
    (tmp_path / "spill").mkdir()
    pq.write_table(rows(), tmp_path / "t.parquet")
    p = opened(tmp_path / "t.parquet")
    assert sizes(p) == SIZES
    (folder,) = (tmp_path / "spill").iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    p.close()
    assert list((tmp_path / "spill").iterdir()) == []


def test_collations_that_fold_cases_make_no_person_of_two():
    p = opened(dpframe.sql(in_sqlite(), "t"), unit="s", max_rows=1, max_groups=1)
    assert int(p.count(epsilon=30)) == 4


NAMES = [
    "t0",
    "t1",
    "q",
    "s",
    "r",
    "l0",
    "dpframe_stage_0",
    "DPFRAME_LIST_0",
    "dpframe_words",
    "dpframe_rows",
    "v0",
]


@pytest.mark.parametrize("kind", ["SQLite", "relation"])
def test_no_name_of_a_table_is_taken_for_one_of_a_statement(kind):
    for name in NAMES:
        if kind == "SQLite":
            base: Any = in_sqlite()
            base.execute(f"ALTER TABLE t RENAME TO {name}")
            table: Any = dpframe.sql(base, name)
        else:
            base = pytest.importorskip("duckdb").connect()
            given = rows()
            base.register("given", given)
            base.execute(f"create table {name} as select id as place, * from given")
            table = base.table(name)
        p = opened(table)
        assert (
            p.groupby("s").agg(n=("x", "size"), m=("x", "median"), epsilon=30)["n"].tolist()
            == SIZES
        ), name
        assert int(p.query("s == 'a'").count(epsilon=30)) == SIZES[0], name
        p.close()


def test_texts_of_another_encoding_are_refused():
    base = sqlite3.connect(":memory:")
    base.execute("PRAGMA encoding = 'UTF-16le'")
    base.execute("CREATE TABLE t (s TEXT)")
    with pytest.raises(NotOffered, match="UTF-16"):
        dpframe.open(dpframe.sql(base, "t"), 1, because="made up")


def test_a_table_of_more_rows_than_sums_allow_for_is_not_counted(monkeypatch):
    p = opened(dpframe.sql(in_sqlite(), "t"))
    engine, asked = p._session._engine, []
    monkeypatch.setattr(engines_parts_module, "ROW_CEILING", 399)
    monkeypatch.setattr(engine._database, "fetch", lambda *words: asked.append(words))
    with pytest.raises(DataError, match="more than 399 rows"):
        engine.reduce(Query(()), {Rows()}, Unit())
    with pytest.raises(DataError, match="more than 399 rows"):
        engine.occurring((Column.of(1, "s", engine._schema.dtypes.iloc[1]),), None, Unit())
    assert asked == []


# What goes wrong ----------------------------------------------------------------------------------------------


def failing(monkeypatch: pytest.MonkeyPatch, kind: Any, before: Any) -> None:
    """Does something before the next statement that is no probe."""
    real = kind.fetch

    def fetch(self: Any, sql: str, parameters: Any) -> Any:
        if "WHERE 1 = 0" not in sql:
            before()
        return real(self, sql, parameters)

    monkeypatch.setattr(kind, "fetch", fetch)


def refused(ask: Any) -> None:
    with pytest.raises(DataError, match="What was charged stays charged") as caught:
        ask()
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert "Sesame" not in str(caught.value)


@pytest.mark.parametrize("kind", ["files", "relation", "SQLite"])
def test_a_statement_that_fails_is_paid_for_and_nobody_else_is_asked(
    kind, tmp_path, monkeypatch, parts
):
    """Or time would tell what made it fail."""
    if kind != "SQLite":
        pytest.importorskip("duckdb")
    pq.write_table(rows(), tmp_path / "t.parquet")
    tables = {
        "files": lambda: tmp_path / "t.parquet",
        "relation": lambda: import_module("duckdb").read_parquet(str(tmp_path / "t.parquet")),
        "SQLite": lambda: dpframe.sql(in_sqlite(), "t"),
    }
    p = opened(tables[kind]())
    assert sizes(p) == SIZES
    with monkeypatch.context() as patch:

        def fail() -> None:
            raise ValueError("could not convert Sesame to DOUBLE")

        failing(patch, type(p._session._engine._database), fail)
        for ask in (lambda: p.mean("x", epsilon=30), lambda: p.unique("s", epsilon=30)):
            refused(ask)
    assert p.budget.spent == 90
    assert parts == []
    assert float(p.mean("x", epsilon=30)) == pytest.approx(np.mean(rows()["x"].to_numpy()), abs=0.1)
    assert p.budget.spent == 120  # paid for anew: nothing was kept of what failed


@pytest.mark.parametrize("kind", ["files", "relation"])
def test_a_disk_that_is_full_is_an_error_and_no_answer(duckdb, kind, tmp_path, parts):
    duckdb.sql("select i as id, i % 7 as s, i * 0.5 as x from range(600000) r(i)").to_parquet(
        str(tmp_path / "t.parquet")
    )
    base = duckdb.connect()
    table = (
        tmp_path / "t.parquet"
        if kind == "files"
        else base.read_parquet(str(tmp_path / "t.parquet"))
    )
    words = {
        "unit": "id",
        "max_rows": 2,
        "max_groups": 1,
        "keys": {"s": list(range(7))},
        "memory": "1GB",
    }
    p = dpframe.open(table, 1000, because="made up", **words)
    if kind == "files":
        base = p._session._engine._database._connection
    base.execute("set threads = 1; set memory_limit = '20MB'; set max_temp_directory_size = '1MB'")
    refused(lambda: p.groupby("s").size(epsilon=30))
    assert p.budget.spent == 30
    assert parts == []
    base.execute("set memory_limit = '1GB'")
    assert int(p.groupby("s").size(epsilon=30).sum()) == pytest.approx(600_000, abs=20)
    assert p.budget.spent == 60


def test_a_file_that_is_replaced_while_it_is_counted_is_no_answer(duckdb, tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(rows(), path)
    p = opened(path)

    def replace() -> None:
        pq.write_table(rows(10), tmp_path / "new.parquet")
        os.replace(tmp_path / "new.parquet", path)

    failing(monkeypatch, FilesDatabase, replace)
    refused(lambda: p.mean("x", epsilon=30))
    assert p.budget.spent == 30
    with pytest.raises(SessionError, match="has changed"):
        p.mean("x", epsilon=30)
    assert p.budget.spent == 30


def test_a_table_that_changes_while_it_is_counted_is_no_answer(duckdb, monkeypatch):
    base = duckdb.connect()
    base.execute("create table t as select i as id, i % 3 as x from range(90) r(i)")
    p = dpframe.open(base.table("t"), 1000, because="made up", bounds={"x": (0, 2)})
    failing(
        monkeypatch,
        RelatedDatabase,
        lambda: base.cursor().execute("insert into t select 1, 1 from range(9000)"),
    )
    refused(lambda: p.mean("x", epsilon=30))
    assert p.budget.spent == 30


# PostgreSQL -----------------------------------------------------------------------------------------------------


@pytest.fixture
def base(server: Any) -> Any:
    url = f"postgresql://{server.user}@127.0.0.1:{server.port}/postgres"
    with import_module("psycopg").connect(url, autocommit=True) as connection:
        connection.url = url
        folds = "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        connection.execute(f"CREATE COLLATION IF NOT EXISTS folding {folds}")
        connection.execute(
            "CREATE TABLE t (id bigint, s text COLLATE folding, x float8, z timestamptz)"
        )
        cells = [(*row.values(), "2024-02-01 10:00+02") for row in rows().to_pylist()]
        connection.cursor().executemany("INSERT INTO t VALUES (%s, %s, %s, %s)", cells)
        yield connection
        others = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
        connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
        connection.execute("DROP TABLE IF EXISTS t CASCADE")


def test_a_server_counts_whatever_its_session_is_set_to(base, parts):
    odd = "?options=-c%20extra_float_digits%3D-15%20-c%20TimeZone%3DAsia%2FTokyo%20-c%20DateStyle%3Dpostgres"
    base.execute("UPDATE t SET x = x + 0.123456789012345678")
    found = []
    for more in ("", odd):
        p = dpframe.open(
            dpframe.sql(base.url + more, "t"),
            1000,
            1e-6,
            because="made up",
            keys=KEYS,
            accountant="pure",
        )
        answers = [sizes(p), sorted(p.unique("x", epsilon=40)), sorted(p.unique("s", epsilon=30))]
        assert parts == []
        assert int(p["z"].dt.hour.isin([8]).sum(epsilon=30)) == 400
        parts.clear()
        q = dpframe.open(
            dpframe.sql(base.url + more, "t"),
            1000,
            because="made up",
            unit="s",
            max_rows=1,
            max_groups=1,
        )
        answers.append(int(q.count(epsilon=30)))
        found.append(answers)
        p.close()
        q.close()
    assert found[0] == found[1]
    assert found[0][0] == SIZES
    assert found[0][1][0] == 0.123456789012345678
    assert found[0][2:] == [["A", "a", "b", "c"], 4]


def test_a_statement_that_fails_on_a_server_leaves_its_snapshot(base, monkeypatch, parts):
    p = opened(dpframe.sql(base.url, "t"))
    assert sizes(p) == SIZES
    base.execute("DELETE FROM t")
    with monkeypatch.context() as patch:
        real = PostgresDatabase._run
        patch.setattr(
            PostgresDatabase,
            "_run",
            lambda self, sql, words: real(self, sql + " OFFSET 1 / 0", words),
        )
        refused(lambda: p.mean("x", epsilon=30))
    assert float(p.mean("x", epsilon=30)) == pytest.approx(np.mean(rows()["x"].to_numpy()), abs=0.1)
    assert p.budget.spent == 90
    assert parts == []
    p.close()


def test_a_server_that_goes_away_while_it_counts_is_no_answer(base, monkeypatch, parts):
    p = opened(dpframe.sql(base.url, "t"))
    assert sizes(p) == SIZES
    others = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
    end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"
    with monkeypatch.context() as patch:
        failing(patch, PostgresDatabase, lambda: base.execute(end))
        refused(lambda: p.mean("x", epsilon=30))
    assert p.budget.spent == 60
    with pytest.raises(SessionError, match="cannot be reached"):
        p.mean("x", epsilon=30)
    assert p.budget.spent == 60
    assert parts == []
    p.close()
