"""The rules by which questions are written in SQL, each with a writer that forgets it and is caught; and what nobody may see."""

from __future__ import annotations

import contextlib
import sqlite3
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe import DataError
from dpframe import _expr as ex
from dpframe._expr import Column
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._groups.unit import Unit
from dpframe._questions.question import Query
from dpframe._statistics.base import Grid, Leaves, Persons, Powers, Primitive, Rows, Trues
from dpframe._validate import Bounds
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.people import Draw
from dpframe.engines.sql import SqlEngine
from dpframe.engines.sql import dialects as sql_dialects_module
from dpframe.engines.sql.databases import DuckDatabase, SqliteDatabase
from tests.engines.conformance import KEY, shaken
from tests.engines.test_sql import engine_in
from tests.engines.test_sql_cells import (
    FLAG,
    MAKE,
    SMALL,
    TEXTS,
    WHO,
    G,
    X,
    Y,
    constant,
    make,
    table,
)
from tests.engines.written import in_duckdb, in_sqlite

__all__ = ["make"]  # a fixture
DRAW = Draw(KEY)
Duck, Sqlite, Postgres = (
    getattr(sql_dialects_module, name) for name in ("Dialect", "Sqlite", "Postgres")
)
COARSE = [
    Grid.for_width(Bounds(*b), bits) for b in ((-3.0, 5.0), (0.0, 1e6)) for bits in (2, 3, 15, 31)
]
VALUES: set[Primitive] = {
    Powers(e, grid, 1)
    for grid in COARSE
    for e in (X, Y, ex.Fill(X, constant(0.25)), ex.Clip(X, None, constant(4)))
}
CONDITIONS: set[Primitive] = {
    *(
        Trues(ex.Compare(op, X, constant(c)))
        for op in ("==", "!=", "<", ">")
        for c in (0, 0.1, 2.5)
    ),
    *(Trues(ex.Not(ex.Compare(op, SMALL, constant(1)))) for op in ("==", "!=", "<", ">")),
    *(Trues(ex.Compare("<", X, constant(c))) for c in (3.9999999999999996, 0.49999999999999994, 4)),
    Trues(ex.IsIn(X, (constant(0.5), constant(1e300)))),
    Trues(
        ex.Compare(">", ex.Arithmetic("+", constant(0.1), constant(0.2)), constant(0.3))
    ),  # in doubles it is
}
PEOPLE = Unit("add-remove", (Column.of(5, "id", pd.Int64Dtype()),), 2, 1)
NAMES = Unit("add-remove", (WHO,), 2, 2)
BY = (KeyBy(G, keys_for([t for t in TEXTS if "\0" not in t], G, "g")),)


# Broken writers ---------------------------------------------------------------------------------------------


class HalfUp(Duck):
    def rounded(self, x: str, magic: str) -> str:
        return f"ROUND({x})"


class HalfUpSqlite(Sqlite):
    def rounded(self, x: str, magic: str) -> str:
        return f"ROUND({x})"


class Decimals(Duck):
    def double(self, value: float) -> str:
        return repr(value)


class WithNan(Duck):
    def without_nan(self, x: str) -> str:
        return x


class Greatest(Duck):
    def clipped(self, x: str, low: str | None, high: str | None) -> str:
        x = x if low is None else f"GREATEST({x}, {low})"
        return x if high is None else f"LEAST({x}, {high})"


class GreatestSqlite(Sqlite):
    """Whose MAX and MIN are null of a null, as they should be; so it is the order that is turned round here."""

    def clipped(self, x: str, low: str | None, high: str | None) -> str:
        return f"COALESCE({super().clipped(x, low, high)}, {low or high})"


class CellsWithNan(Duck):
    def clipped_cell(self, x: str, low: str, high: str) -> str:
        return self.clipped(x, low, high)


class UnclippedCells(Duck):
    def clipped_cell(self, x: str, low: str, high: str) -> str:
        return x


class ThreeValued(Duck):
    def two_valued(self, condition: str, of_null: bool) -> str:
        return condition


class ThreeValuedSqlite(Sqlite):
    def two_valued(self, condition: str, of_null: bool) -> str:
        return condition


class Unclipped(Duck):
    def clipped(self, x: str, low: str | None, high: str | None) -> str:
        return x


class Narrow(Duck):
    def as_integer(self, x: str) -> str:
        return f"CAST({x} AS SMALLINT)"

    as_narrow = as_integer


class Signed(Duck):
    def number(self, cell: str, kind: str) -> str:
        return super().number(cell, kind) if kind == "text" else f"(({cell}) % 2147483647)"


class SignedSqlite(Sqlite):
    def number(self, cell: str, kind: str) -> str:
        return super().number(cell, kind) if kind == "text" else f"(({cell}) % 2147483647)"


class RealDivision(Duck):
    def quotient(self, a: str, b: str) -> str:
        return f"CAST({a} / {b} AS BIGINT)"


class Declared(Sqlite):
    """Cells are what their column is declared as."""

    def read_double(self, column: str) -> str:
        return f"CAST({column} AS REAL)"


def asked(engine: Any, question: str) -> dict[Any, Any]:
    query, primitives, unit = {
        "values": (Query(()), VALUES, Unit()),
        "conditions": (Query(()), CONDITIONS, Unit()),
        "people": (Query((), None, BY), {Rows(), Persons(), Powers(X, COARSE[2], 2)}, PEOPLE),
        "signs": (Query((), None, BY), {Rows(), Persons()}, PEOPLE),
        "names": (Query((), None, BY), {Rows(), Persons(), Powers(X, COARSE[2], 2)}, NAMES),
    }[question]
    assert engine.writes(query, primitives, unit)
    found: dict[Any, Any] = engine.reduce(query, primitives, unit)
    return shaken(found)


BROKEN: dict[str, tuple[Any, Any, str]] = {
    "ties away from zero": (HalfUp, in_duckdb, "values"),
    "ties away from zero, SQLite": (HalfUpSqlite, in_sqlite, "values"),
    "decimals": (Decimals, in_duckdb, "conditions"),
    "NaN is a value": (WithNan, in_duckdb, "conditions"),
    "NaN is the upper bound": (WithNan, in_duckdb, "values"),
    "NaN of a cell is the upper bound": (CellsWithNan, in_duckdb, "values"),
    "casts of cells that are beyond": (UnclippedCells, in_duckdb, "values"),
    "nulls are bounds": (Greatest, in_duckdb, "values"),
    "nulls are bounds, SQLite": (GreatestSqlite, in_sqlite, "values"),
    "three truths": (ThreeValued, in_duckdb, "conditions"),
    "three truths, SQLite": (ThreeValuedSqlite, in_sqlite, "conditions"),
    "casts of what is beyond": (Unclipped, in_duckdb, "values"),
    "casts into too little": (Narrow, in_duckdb, "values"),
    "rests with a sign": (Signed, in_duckdb, "signs"),
    "rests with a sign, SQLite": (SignedSqlite, in_sqlite, "signs"),
    "division that rounds": (RealDivision, in_duckdb, "people"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_writer_that_forgets_a_rule_is_caught(name):
    twin, written, question = BROKEN[name]
    if written is in_duckdb:
        pytest.importorskip("duckdb", reason="tables in duckdb need duckdb")
    df = table(300, 11)
    if question == "signs":
        df["id"] = pd.array(-(10**9) * (np.arange(300) % 60), dtype="Int64")
    if question == "people":  # who have more values than count
        df["id"] = pd.array(np.arange(300) % 5, dtype="Int64")
    expected = asked_of_numpy(df, question)
    engine = engine_in(written, df)
    assert asked(engine, question) == expected
    engine._database.dialect = twin()
    with pytest.raises((AssertionError, DataError)):
        assert asked(engine, question) == expected


def asked_of_numpy(df: pd.DataFrame, question: str) -> dict[Any, Any]:
    class Written(PandasEngine):
        def writes(self, *_: Any) -> bool:
            return True

    return asked(Written(df, KEY), question)


def folded(kind: str) -> tuple[Any, pd.DataFrame]:
    """A table whose texts fold cases; people and keys that differ in case alone."""
    df = pd.DataFrame(
        {
            "who": pd.Series(["u1", "U1", "u2", "U2", "u3"] * 8, dtype="str"),
            "g": pd.Series(["a", "A", "b", "B"] * 10, dtype="str"),
            "x": np.arange(40.0),
        }
    )
    if kind == "duckdb":
        import duckdb

        connection = duckdb.connect()
        database: Any = DuckDatabase(connection)
    else:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        database = SqliteDatabase(connection)
    connection.execute(
        "CREATE TABLE visits (who TEXT COLLATE NOCASE, g TEXT COLLATE NOCASE, x DOUBLE)"
    )
    connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", df.values.tolist())
    return database, df


@pytest.mark.parametrize("kind", MAKE)
def test_texts_are_told_apart_by_their_bytes_whatever_the_collation(kind):
    """A folded id makes one person of two, who stays when one of them leaves: twice what one person may move."""
    if kind == "duckdb":
        pytest.importorskip("duckdb", reason="tables in duckdb need duckdb")
    database, df = folded(kind)
    who, g, _ = (Column.of(i, c, df.dtypes.iloc[i]) for i, c in enumerate(df))
    engine = SqlEngine(database, "visits", df, KEY, PandasEngine(df, KEY))
    by = (KeyBy(g, keys_for(["a", "A", "B", "b"], g, "g")),)

    def found(e: Any) -> Any:
        unit = Unit("add-remove", (who,), 2, 3)
        sums = [e.reduce(Query((), None, by), {Rows(), Persons()}, one) for one in (Unit(), unit)]
        where = ex.Compare("==", g, constant("A"))
        sums += [
            e.reduce(Query((), one), {Rows()}, Unit())
            for one in (where, ex.IsIn(g, (constant("B"),)))
        ]
        texts, counts = e.occurring((g,), None, unit)
        return [*map(shaken, sums), texts, shaken(counts), e.people(unit)]

    assert engine.writes(Query((), None, by), {Rows()}, Unit("add-remove", (who,), 2, 3))
    expected = found(PandasEngine(df, KEY))
    assert found(engine) == expected

    class Folding(type(database.dialect)):  # type: ignore[misc]
        def binary(self, text: str) -> str:
            return f"({text})"

        def read_text(self, column: str) -> str:
            return f"({column})"

    database.dialect = Folding()
    wrong = found(engine)
    assert wrong != expected
    assert wrong[-1] < expected[-1]  # people have become one


@pytest.mark.parametrize("low", [3e15, -3e15 - 8, 2.0**52 - 4])
def test_what_rounds_near_zero_does_not_round_far_from_it(low):
    """1.5 * 2**52 rounds halves between 2**51 and 2**52 to multiples of two."""
    df = pd.DataFrame({"x": low + np.arange(-16, 80) / 8})
    asked_for: set[Primitive] = {
        Leaves(Column.of(0, "x", df["x"].dtype), Grid(Bounds(low, low + 8), 0))
    }
    engine = engine_in(in_sqlite, df)
    expected = shaken(PandasEngine(df, KEY).reduce(Query(()), asked_for, Unit()))
    assert shaken(engine.reduce(Query(()), asked_for, Unit())) == expected

    class Near(Sqlite):
        def rounded_far(self, x: str, wide: str, zero: str) -> str:
            return self.rounded(x, f"(1.5 * {wide})")

    engine._database.dialect = Near()
    assert shaken(engine.reduce(Query(()), asked_for, Unit())) != expected


def test_sums_beyond_64_bits_are_exact():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE t (a INTEGER)")
    values = [2**62, 2**62 + 1, 2**63 - 1, 65_537, 0]
    connection.executemany("INSERT INTO t VALUES (?)", [(v,) for v in values])

    class Whole(Sqlite):
        wide = True

    def summed(dialect: Any) -> int:
        (parts,) = connection.execute(f"SELECT {', '.join(dialect.totals('a'))} FROM t").fetchall()
        return int(dialect.total(list(parts)))

    assert summed(Sqlite()) == sum(values)
    with pytest.raises(sqlite3.Error):
        summed(Whole())
    duckdb = pytest.importorskip("duckdb", reason="tables in duckdb need duckdb")
    other = duckdb.connect()
    other.execute("CREATE TABLE t (a BIGINT)")
    other.executemany("INSERT INTO t VALUES (?)", [[v] for v in values])
    (parts,) = other.execute(f"SELECT {', '.join(Duck().totals('a'))} FROM t").fetchall()
    assert Duck().total(list(parts)) == sum(values)


def test_groups_of_one_hash_go_by_their_place(make, monkeypatch):
    """If all hashes were equal, those that are listed first would stay, in every engine."""
    df = table(200, 3)
    monkeypatch.setattr(Draw, "hash_with", lambda self, people, m, c: people * 0)
    engine, numpy = engine_in(make, df), PandasEngine(df, KEY)
    real = engine._database.fetch
    monkeypatch.setattr(
        engine._database,
        "fetch",
        lambda sql, p: real(sql.replace("% 2147483647 AS h FROM", "* 0 AS h FROM"), p),
    )
    for limits in ((1, 1), (2, 3)):
        unit = Unit("add-remove", (WHO,), *limits)
        found, expected = (
            e.reduce(Query((), None, BY), {Rows(), Persons()}, unit) for e in (engine, numpy)
        )
        assert shaken(found) == shaken(expected)
        assert found[Persons()].any()


# One state of the data ----------------------------------------------------------------------------------------


def two_statements(engine: Any) -> tuple[int, int]:
    """Rows, and values at the points of a grid: of the same rows."""
    points = Leaves(X, Grid.for_width(Bounds(-1.0, 1.0), 4))
    found = engine.reduce(Query(()), {Rows(), points}, Unit())
    return int(found[Rows()][0]), int(found[points].sum())


@pytest.mark.parametrize("kind", MAKE)
def test_a_question_reads_one_state_of_the_data(kind, tmp_path, monkeypatch):
    df = pd.DataFrame({"x": np.linspace(-1, 1, 50)})
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb", reason="tables in duckdb need duckdb")
        one = duckdb.connect(str(tmp_path / "visits.duckdb"))
        other, database = one.cursor(), DuckDatabase(one)
    else:
        one, other = (
            sqlite3.connect(tmp_path / "visits.sqlite", isolation_level=None) for _ in range(2)
        )
        one.execute("PRAGMA journal_mode=WAL")
        database = SqliteDatabase(one)
    other.execute("CREATE TABLE visits (x DOUBLE)")
    other.executemany("INSERT INTO visits VALUES (?)", [[v] for v in df["x"]])
    engine = SqlEngine(database, "visits", df, KEY, PandasEngine(df, KEY))
    real = database.fetch

    def fetch(sql: str, parameters: Any) -> Any:
        rows = real(sql, parameters)
        other.execute("INSERT INTO visits VALUES (0.5)")  # by somebody else, between two statements
        return rows

    monkeypatch.setattr(database, "fetch", fetch)
    rows, values = two_statements(engine)
    assert rows == values == 50
    assert len(engine) == 52
    monkeypatch.setattr(database, "snapshot", contextlib.nullcontext)
    rows, values = two_statements(engine)
    assert rows != values


def test_question_is_one_statement_where_a_statement_is_a_state():
    df = table(50, 2)
    engine = engine_in(in_sqlite, df)

    class Alone(Sqlite):
        snapshots = False

    engine._database.dialect = Alone()
    points = Leaves(X, COARSE[0])
    assert engine.writes(Query(()), {Rows(), Persons(), Powers(X, COARSE[0], 1)}, Unit())
    assert engine.writes(Query(()), {points}, Unit())
    assert not engine.writes(Query(()), {points, Rows()}, Unit())
    found, expected = (
        e.reduce(Query(()), {points, Rows()}, Unit()) for e in (engine, PandasEngine(df, KEY))
    )
    assert shaken(found) == shaken(expected)


# What is printed, and what is told ------------------------------------------------------------------------------


class Listening:
    """What a database is sent."""

    def __init__(self, database: Any):
        self._database, self.dialect, self.texts = database, database.dialect, []

    def fetch(self, sql: str, parameters: Any) -> Any:
        self.texts.append(sql)
        return self._database.fetch(sql, parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


SECRETS = ["Sesame", "it's Sesame", "Sesame'; DROP TABLE visits; --", '"Sesame"', "\\'Sesame"]


def heard(make: Any) -> tuple[Any, list[str]]:
    df = table(60, 4).assign(g=pd.Series((SECRETS * 12)[:60], dtype="str"))
    engine = engine_in(make, df)
    engine._database = listening = Listening(engine._database)
    by = (KeyBy(G, keys_for(SECRETS, G, "g")),)
    filled = ex.Compare("==", ex.Fill(G, constant(SECRETS[1])), constant(SECRETS[2]))
    where = ex.Or(ex.IsIn(G, tuple(map(constant, SECRETS))), filled)
    sums = [engine.reduce(Query((), where, by), {Rows()}, unit) for unit in (Unit(), NAMES)]
    return sums, listening.texts


def test_no_text_and_no_secret_is_printed_into_a_statement(make):
    (rows, _), texts = heard(make)
    assert rows[Rows()].tolist() == [12] * 5
    assert len(texts) == 2
    assert "Sesame" not in "".join(texts)
    constants = DRAW.constants
    assert not any(str(one) in text for one in constants for text in texts)


def test_a_writer_that_prints_texts_is_caught(make, monkeypatch):
    compiler = type(engine_in(make, table(3, 0))._compiler())
    bind = compiler.bind

    def printed(self: Any, value: Any) -> str:
        return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else bind(self, value)

    monkeypatch.setattr(compiler, "bind", printed)
    _, texts = heard(make)
    assert "Sesame" in "".join(texts)


RAISES: dict[str, Callable[[Any], Any]] = {
    "reduce": lambda e: e.reduce(Query((), FLAG, BY), {Rows()}, PEOPLE),
    "occurring": lambda e: e.occurring((G,), None, PEOPLE),
    "people": lambda e: e.people(PEOPLE),
    "len": len,
}


@pytest.mark.parametrize("ask", RAISES)
@pytest.mark.parametrize("stage", ["fetch", "register", "forget"])
def test_whatever_a_database_says_is_one_error_without_its_words(make, ask, stage, monkeypatch):
    engine = engine_in(make, table(20, 1))

    def failing(*_: Any) -> Any:
        raise ValueError("could not cast Sesame to DOUBLE")

    monkeypatch.setattr(engine._database, stage, failing)
    if stage == "fetch" or (stage == "register" and ask == "reduce"):
        with pytest.raises(DataError, match="the database failed while it read the data") as caught:
            RAISES[ask](engine)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert "Sesame" not in "".join(traceback.format_exception(caught.value))
    else:
        RAISES[ask](engine)


def test_lists_are_let_go_of(make, monkeypatch):
    engine = engine_in(make, table(20, 1))
    held: set[str] = set()
    register, forget = engine._database.register, engine._database.forget
    monkeypatch.setattr(
        engine._database,
        "register",
        lambda name, listing: (held.add(name), register(name, listing)),
    )
    monkeypatch.setattr(engine._database, "forget", lambda name: (held.remove(name), forget(name)))
    for _ in range(2):
        RAISES["reduce"](engine)
        assert not held


def test_no_row_decides_who_is_asked(make):
    """Tables without rows, with others, and of other cells in the same dtypes are asked in the same words."""
    texts = []
    for df in (
        table(0, 1),
        table(50, 1),
        table(50, 2),
        table(50, 1).assign(x=np.nan, g=pd.Series([None] * 50, dtype="str")),
    ):
        engine = engine_in(make, df)
        engine._database = listening = Listening(engine._database)
        for ask in (RAISES["reduce"], RAISES["occurring"], RAISES["people"]):
            ask(engine)
        engine.reduce(Query(()), CONDITIONS | VALUES, Unit())
        texts.append([renamed(text) for text in listening.texts])
    assert texts[0] == texts[1] == texts[2] == texts[3]
    assert len(texts[0]) == 4


def renamed(text: str) -> str:
    import re

    return re.sub(r"dpframe_list_\d+", "list", text)


def test_cells_of_another_type_than_their_column_are_null_in_sqlite():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE visits (x, y, g, flag)")
    odd = ["a", b"b", None, 1, 2.5]
    connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", [(c, c, c, c) for c in odd])
    df = pd.DataFrame(
        {
            "x": [np.nan, np.nan, np.nan, 1, 2.5],
            "y": pd.array([None, None, None, 1, None], dtype="Int64"),
            "g": pd.Series(["a", None, None, None, None], dtype="str"),
            "flag": pd.array([None, None, None, True, None], dtype="boolean"),
        }
    )
    leaves = [Column.of(i, c, df.dtypes.iloc[i]) for i, c in enumerate(df)]
    asked_here: set[Primitive] = {
        *(Powers(leaf, None, 0) for leaf in leaves),
        *(Powers(leaf, COARSE[0], 1) for leaf in leaves if leaf.kind != "text"),
        Trues(leaves[3]),
    }
    engine = SqlEngine(SqliteDatabase(connection), "visits", df, KEY, PandasEngine(df, KEY))
    expected = shaken(PandasEngine(df, KEY).reduce(Query(()), asked_here, Unit()))
    assert shaken(engine.reduce(Query(()), asked_here, Unit())) == expected
    engine._database.dialect = Declared()
    assert shaken(engine.reduce(Query(()), asked_here, Unit())) != expected


def test_texts_of_sqlite_that_are_no_utf8_count_as_in_a_frame():
    """As ids by their bytes; and as keys for nothing, so that they take no place among a person's groups."""
    pa = pytest.importorskip("pyarrow", reason="texts that are no UTF-8")
    ids = [bytes([200 + i]) for i in range(12)]  # Latin-1 letters
    rows = [(i, g) for i in ids for g in (b"a", b"b", b"c", b"\xfc")]
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE visits (row_number INTEGER, id TEXT, g TEXT)")
    insert = "INSERT INTO visits VALUES (?, CAST(? AS TEXT), CAST(? AS TEXT))"
    connection.executemany(insert, [(n, *row) for n, row in enumerate(rows)])
    cells = [
        pa.array([row[i] for row in rows], pa.large_binary()).view(pa.large_string())
        for i in (0, 1)
    ]
    texts = pd.StringDtype("pyarrow", na_value=np.nan)
    df = pd.DataFrame(
        {n: pd.array(c, dtype=texts) for n, c in zip(("id", "g"), cells, strict=True)}
    )
    one, two = (Column.of(i, c, df.dtypes.iloc[i]) for i, c in enumerate(df))
    numpy = PandasEngine(df, KEY)
    engine = SqlEngine(SqliteDatabase(connection), "visits", df.iloc[:0], KEY, numpy)
    asks, by = Unit("add-remove", (one,), 1, 1), KeyBy(two, keys_for(["a", "b", "c"], two, "g"))
    query, asked = Query((), None, (by,)), {Rows(), Persons()}
    assert engine.writes(query, asked, asks)
    assert shaken(engine.reduce(query, asked, asks)) == shaken(numpy.reduce(query, asked, asks))
    found, expected = (e.occurring((two,), None, asks, frozenset(asked)) for e in (engine, numpy))
    assert found[0] == expected[0] == [("sa",), ("sb",), ("sc",)]
    assert shaken(found[1]) == shaken(expected[1])
    assert found[1][Persons()].sum() == 12


def test_columns_that_a_database_does_not_know_are_read_elsewhere():
    """Which is known before anything is asked, and so before anything is paid."""
    duckdb = pytest.importorskip("duckdb", reason="tables in duckdb need duckdb")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (x DOUBLE, g UUID)")
    connection.execute("INSERT INTO visits VALUES (1, '00000000-0000-0000-0000-000000000001')")
    df = pd.DataFrame(
        {
            "x": [1.0],
            "g": pd.Series(["00000000-0000-0000-0000-000000000001"], dtype="str"),
            "missing": [2.0],
        }
    )
    engine = SqlEngine(DuckDatabase(connection), "visits", df, KEY, PandasEngine(df, KEY))
    leaves = [Column.of(i, c, df.dtypes.iloc[i]) for i, c in enumerate(df)]
    written = [engine.writes(Query(()), {Powers(leaf, None, 0)}, Unit()) for leaf in leaves]
    assert written == [True, True, False]
    for leaf in leaves:
        assert engine.reduce(Query(()), {Powers(leaf, None, 0)}, Unit())[
            Powers(leaf, None, 0)
        ].tolist() == [[1]]


def test_postgresql_writes_no_arithmetic_that_may_raise():
    """Its doubles raise where they overflow or vanish, and its texts have no NUL: whether they do would be told by an error."""
    engine = engine_in(in_sqlite, table(9, 0))
    engine._database.dialect = Postgres()
    assert not engine.writes(Query(()), {Powers(ex.Arithmetic("*", X, X), COARSE[0], 1)}, Unit())
    assert engine.writes(Query(()), {Powers(X, COARSE[0], 1)}, Unit())
    assert not Postgres().holds("a\0b")
    assert "CASE WHEN x >" in Postgres().scaled("x", -3, "f")
    assert Postgres().double(0.1) == "CAST('0.1' AS DOUBLE PRECISION)"
