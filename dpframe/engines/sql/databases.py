"""Connections that an engine may ask: they run statements, hold its lists, and keep the data as they are while it reads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, Protocol

import pandas as pd

from dpframe.engines.sql.dialects import Dialect, Postgres, Spark, Sqlite, Type

Rows = Sequence[Sequence[Any]]


class Listing(NamedTuple):
    """A public list as a small table: the names of its columns, what they hold, and its rows."""

    columns: tuple[tuple[str, Type], ...]
    rows: list[tuple[Any, ...]]


class Database(Protocol):
    """What runs SQL. Whatever it raises is no concern of a user: the engine tells that it failed, and no more."""

    @property
    def dialect(self) -> Dialect:
        """How it is written to."""

    def fetch(self, sql: str, parameters: Sequence[Any], /) -> Rows:
        """The rows that a statement returns. A parameter is an integer, a double or a text, and may stand more than once."""

    def register(self, name: str, listing: Listing, /) -> None:
        """Makes a list readable under a name, to this connection alone."""

    def forget(self, name: str, /) -> None:
        """Lets go of a list."""

    def snapshot(self) -> AbstractContextManager[None]:
        """A block in which all statements read one state of the data."""


class DuckDatabase:
    """A connection of duckdb, which nobody else uses meanwhile."""

    dialect = Dialect()

    def __init__(self, connection: Any):
        self._connection = connection

    def fetch(self, sql: str, parameters: Sequence[Any]) -> Rows:
        rows: Rows = self._connection.execute(sql, list(parameters)).fetchall()
        return rows

    def register(self, name: str, listing: Listing) -> None:
        dtypes = {"integer": "int64", "double": "float64", "text": "str"}
        columns = zip(*listing.rows, strict=True) if listing.rows else [()] * len(listing.columns)
        frame = {
            column: pd.Series(list(cells), dtype=dtypes[kind])
            for (column, kind), cells in zip(listing.columns, columns, strict=True)
        }
        self._connection.register(name, pd.DataFrame(frame))

    def forget(self, name: str) -> None:
        self._connection.unregister(name)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        self._connection.execute("BEGIN TRANSACTION")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")


class _Tables:
    """Lists in temporary tables, of a connection with cursors."""

    dialect: Dialect

    def _execute(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        raise NotImplementedError

    def _insert(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        raise NotImplementedError

    def register(self, name: str, listing: Listing) -> None:
        """Makes a list readable under a name, to this connection alone."""
        d = self.dialect
        kinds = {"integer": d.integers, "double": d.doubles, "text": f"TEXT{d.collation}"}
        self._execute(
            f"CREATE TEMP TABLE {name} ({', '.join(f'{c} {kinds[k]}' for c, k in listing.columns)})"
        )
        places = ", ".join(d.parameter(i) for i in range(len(listing.columns)))
        self._insert(f"INSERT INTO {name} VALUES ({places})", listing.rows)

    def forget(self, name: str) -> None:
        """Lets go of a list."""
        self._execute(f"DROP TABLE IF EXISTS {name}")

    def fetch(self, sql: str, parameters: Sequence[Any]) -> Rows:
        """The rows that a statement returns."""
        rows: Rows = self._execute(sql, parameters).fetchall()
        return rows


class SqliteDatabase(_Tables):
    """A connection of the standard library's sqlite3, in autocommit (``isolation_level=None``), which nobody else uses."""

    dialect = Sqlite()

    def __init__(self, connection: Any):
        self._connection = connection
        connection.create_function("dpframe_digest", 1, _digest, deterministic=True)
        connection.text_factory = _decoded

    def _execute(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        return self._connection.execute(sql, tuple(parameters))

    def _insert(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        self._connection.executemany(sql, rows)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A read transaction: SQLite's readers see the state of their first statement."""
        self._execute("BEGIN")
        try:
            yield
        finally:
            self._execute("ROLLBACK")


def _digest(text: bytes | None) -> int | None:
    if text is None:
        return None
    return int.from_bytes(hashlib.md5(text, usedforsecurity=False).digest()[:8], "big") >> 4


def _decoded(text: bytes) -> str:
    """Bytes that are no UTF-8 become halves of characters, as in columns of texts."""
    return text.decode("utf-8", "surrogateescape")


class PostgresDatabase(_Tables):
    """A connection of psycopg 3 in autocommit, which nobody else uses."""

    dialect = Postgres()

    def __init__(self, connection: Any):
        self._connection = connection
        from psycopg import RawCursor  # an extra: who has such a connection has it

        self._cursor: Any = RawCursor(connection)

    def _execute(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        return self._cursor.execute(sql, list(parameters))

    def _insert(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            self._cursor.executemany(sql, rows)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        self._execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        try:
            yield
        finally:
            self._execute("ROLLBACK")


class SparkDatabase:
    """A session of Spark."""

    dialect = Spark()

    def __init__(self, session: Any):
        self._session = session

    def fetch(self, sql: str, parameters: Sequence[Any]) -> Rows:
        words = {f"p{i + 1}": value for i, value in enumerate(parameters)}
        rows: Rows = self._session.sql(sql, args=words).collect()
        return rows

    def register(self, name: str, listing: Listing) -> None:
        kinds = {"integer": "bigint", "double": "double", "text": "string"}
        schema = ", ".join(f"{column} {kinds[kind]}" for column, kind in listing.columns)
        self._session.createDataFrame(listing.rows, schema).createOrReplaceTempView(name)

    def forget(self, name: str) -> None:
        self._session.catalog.dropTempView(name)

    def snapshot(self) -> AbstractContextManager[None]:
        return nullcontext()
