"""Connections that an engine may ask: they run statements, hold its lists, and keep the data as
they are while it reads."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import pandas as pd

from dpframe.engines.sql.dialects import OURS, Dialect, Postgres, Related, Spark, Sqlite, Type

Rows = Sequence[Sequence[Any]]
ROWS = f"{OURS}rows"  # by which a statement reads a relation of duckdb


class Listing(NamedTuple):
    """Public list as a small table: the names and types of its columns, and its rows."""

    columns: tuple[tuple[str, Type], ...]
    rows: list[tuple[Any, ...]]


class Database(Protocol):
    """Connection to a database, as the engine for SQL uses it.

    An error that it raises is never shown to a user. The engine says only that the database failed.
    """

    @property
    def dialect(self) -> Dialect:
        """Dialect of SQL that this database reads."""

    def fetch(self, sql: str, parameters: Sequence[object], /) -> Rows:
        """Run a statement and return its rows.

        Each parameter is an integer, a double or a text. The statement may use it more than once.
        """

    def register(self, name: str, listing: Listing, /) -> None:
        """Make a list readable as a table under a name, to this connection alone."""

    def forget(self, name: str, /) -> None:
        """Drop the list that was registered under a name."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Return a context in which all statements read the same state of the data.

        The engine enters it before it runs several statements for one question.
        """


class DuckDatabase:
    """Connection of duckdb, which nobody else uses meanwhile."""

    dialect: Dialect = Dialect()

    def __init__(self, connection: Any):
        self._connection = connection

    def fetch(self, sql: str, parameters: Sequence[Any]) -> Rows:
        rows: Rows = self._connection.execute(sql, list(parameters)).fetchall()
        return rows

    def register(self, name: str, listing: Listing) -> None:
        """Make a list readable as a table under a name, by a pandas frame that duckdb reads."""
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
        """Run the statements of a block in one transaction, so that all read the same data.

        The transaction is rolled back at the end, since nothing is written in it.
        """
        self._connection.execute("BEGIN TRANSACTION")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")


class ListBinder(ABC):
    """Base of connections that pass a list to the database as parameters of each statement.

    Nothing is written to the database, not even a temporary table.
    """

    dialect: Dialect

    def __init__(self) -> None:
        self._lists: dict[str, Listing] = {}

    @abstractmethod
    def _run(self, sql: str, parameters: list[Any]) -> Rows:
        """Run a statement and return its rows."""

    @abstractmethod
    def _write_list_query(self, listing: Listing, parameters: list[Any]) -> str:
        """Write a query that returns the rows of a list, and append its cells to ``parameters``.

        `fetch` puts the query into the WITH clause of the statement that names the list.
        """

    def register(self, name: str, listing: Listing) -> None:
        """Make a list readable as a table under a name, to this connection alone."""
        self._lists[name] = listing

    def forget(self, name: str) -> None:
        """Drop the list that was registered under a name."""
        self._lists.pop(name, None)

    def fetch(self, sql: str, parameters: Sequence[object]) -> Rows:
        """Run a statement and return its rows, with the registered lists that it names.

        Such a list becomes a table in the WITH clause. A statement that names one must begin with
        WITH.
        """
        words, named = list(parameters), set(re.findall(r"\w+", sql))
        lists = [
            f"{name} ({', '.join(column for column, _ in listing.columns)}) AS ({self._write_list_query(listing, words)})"
            for name, listing in self._lists.items()
            if name in named
        ]
        if lists:
            sql = f"WITH {', '.join(lists)}, {sql.removeprefix('WITH ')}"
        return self._run(sql, words)


class SqliteDatabase(ListBinder):
    """Connection of the standard library's sqlite3, which nobody else uses meanwhile.

    The settings of the connection stay as they are.
    """

    dialect: Dialect = Sqlite()

    def __init__(self, connection: Any):
        """Keep a connection, and give it the two functions that statements call.

        ``dpframe_digest`` hashes a text, and ``dpframe_readable`` says whether bytes are UTF-8.
        """
        super().__init__()
        self._connection = connection
        connection.create_function("dpframe_digest", 1, _digest, deterministic=True)
        connection.create_function("dpframe_readable", 1, _readable, deterministic=True)

    def _run(self, sql: str, parameters: list[Any]) -> Rows:
        return plain_rows(self._connection, sql, self._number_parameters(parameters))

    @staticmethod
    def _number_parameters(parameters: list[Any]) -> dict[str, Any]:
        """Return the parameters as a dictionary from their numbers, "1", "2" and so on.

        SQLite takes ``?1`` for a name, and Python 3.14 and later refuse a list for names.
        """
        return {str(place): value for place, value in enumerate(parameters, 1)}

    def _write_list_query(self, listing: Listing, parameters: list[Any]) -> str:
        """Write a VALUES clause with the rows of a list, and append its cells to ``parameters``.

        For a list without rows it is a query that returns no row.
        """
        rows = []
        for row in listing.rows:
            rows.append(
                ", ".join(self.dialect.parameter(len(parameters) + i) for i in range(len(row)))
            )
            parameters += row
        nothing = f"SELECT {', '.join(['NULL'] * len(listing.columns))} WHERE 0"
        return f"VALUES {', '.join(f'({row})' for row in rows)}" if rows else nothing

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Open a read transaction for the statements of a block, unless one is open already.

        SQLite's readers see the state of their first statement.
        """
        if self._connection.in_transaction:
            yield
            return
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")


def plain_rows(
    connection: Any, sql: str, parameters: Sequence[object] | dict[str, Any] = ()
) -> Rows:
    """Run a query on SQLite and return its rows as tuples, with texts as Python texts.

    The connection may be set to convert rows or texts in other ways. These settings do not count
    here.
    """
    factory, cursor = connection.text_factory, connection.cursor()
    connection.text_factory, cursor.row_factory = _decode_text, None
    try:
        rows: Rows = cursor.execute(sql, parameters).fetchall()
    finally:
        connection.text_factory = factory
    return rows


def _digest(text: bytes | None) -> int | None:
    """Return the first 15 hexadecimal digits of the MD5 of a text as an integer; None for null."""
    if text is None:
        return None
    return int.from_bytes(hashlib.md5(text, usedforsecurity=False).digest()[:8], "big") >> 4


def _readable(text: bytes | None) -> bool:
    """Return whether some bytes are a text in UTF-8; False for null."""
    if text is not None:
        with suppress(UnicodeDecodeError):
            str(text, "utf-8")
            return True
    return False


def _decode_text(text: bytes) -> str:
    """Return bytes as a text. Bytes that are not UTF-8 become lone surrogates, as pandas holds
    them."""
    return text.decode("utf-8", "surrogateescape")


class PostgresDatabase(ListBinder):
    """Connection of psycopg 3, which nobody else uses.

    It is in autocommit, or in a transaction that sees one state. A statement that fails does not
    end that transaction.
    """

    dialect: Dialect = Postgres()

    def __init__(self, connection: Any):
        """Keep a connection of psycopg, with a cursor that takes statements in PostgreSQL's own
        ``$1``."""
        super().__init__()
        self._connection = connection
        from psycopg import RawCursor  # installed where such a connection exists

        self._cursor: Any = RawCursor(connection)

    def _run(self, sql: str, parameters: list[Any]) -> Rows:
        with self._connection.transaction():  # within a transaction: a savepoint
            # Doubles sent as bytes are exact, whatever text format a session has set.
            rows: Rows = self._cursor.execute(sql, parameters, binary=True).fetchall()
        return rows

    def _write_list_query(self, listing: Listing, parameters: list[Any]) -> str:
        """Write a query that unnests the columns of a list, and append them to ``parameters``.

        Each column is one parameter: an array of integers, doubles or texts.
        """
        d = self.dialect
        kinds = {"integer": d.integers, "double": d.doubles, "text": d.texts}
        cells: Any = (
            zip(*listing.rows, strict=True) if listing.rows else [()] * len(listing.columns)
        )
        arrays = []
        for (_, kind), column in zip(listing.columns, cells, strict=True):
            arrays.append(f"CAST({d.parameter(len(parameters))} AS {kinds[kind]}[])")
            parameters.append(list(column))
        return f"SELECT * FROM unnest({', '.join(arrays)})"

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Run the statements of a block in one transaction, so that all read the same data.

        Without autocommit the connection is in such a transaction already.
        """
        if not self._connection.autocommit:
            yield
            return
        self._cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        try:
            yield
        finally:
            self._cursor.execute("ROLLBACK")


class RelatedDatabase(ListBinder):
    """Connection of a relation of duckdb, which is asked through that relation.

    A statement reads the relation by the name `ROWS`.
    """

    dialect: Dialect = Related()

    def __init__(self, relation: Any):
        super().__init__()
        self._relation = relation

    def _run(self, sql: str, parameters: list[Any]) -> Rows:
        """Run a statement through the relation and return its rows.

        Such a statement takes no parameters. They are in a table of one row, which duckdb finds by
        the name of a local variable.
        """
        pa: Any = import_module("pyarrow")
        cells = {f"p{i + 1}": pa.array([cell]) for i, cell in enumerate(parameters)}
        dpframe_words = pa.table(cells or {"p0": [0]})  # duckdb finds this variable by its name
        rows: Rows = self._relation.query(ROWS, sql).fetchall()
        del dpframe_words
        return rows

    def _write_list_query(self, listing: Listing, parameters: list[Any]) -> str:
        """Write a query that unnests the columns of a list, and append them to ``parameters``.

        Each column is one parameter: a scalar of Arrow that is a list.
        """
        pa: Any = import_module("pyarrow")
        types = {"integer": pa.int64(), "double": pa.float64(), "text": pa.string()}
        cells: Any = (
            zip(*listing.rows, strict=True) if listing.rows else [()] * len(listing.columns)
        )
        columns = []
        for (_, kind), column in zip(listing.columns, cells, strict=True):
            columns.append(f"unnest({self.dialect.parameter(len(parameters))})")
            parameters.append(pa.scalar(list(column), pa.list_(types[kind])))
        return f"SELECT {', '.join(columns)}"

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Open a transaction for the statements of a block, unless one is open already.

        Two statements outside a transaction have different transaction numbers. That tells whether
        one is open.
        """
        ((one,),), ((other,),) = (self._run("SELECT txid_current()", []) for _ in range(2))
        if one == other:
            yield
            return
        self._relation.query(ROWS, "BEGIN TRANSACTION")
        try:
            yield
        finally:
            # After a failure duckdb refuses every query through a relation. `Source.check` then
            # tells the user to roll back.
            with suppress(Exception):
                self._relation.query(ROWS, "ROLLBACK")


class SparkDatabase:
    """Session of Spark, which runs the statements for DataFrames of Spark."""

    dialect: Dialect = Spark()

    def __init__(self, session: Any):
        self._session = session

    def fetch(self, sql: str, parameters: Sequence[object]) -> Rows:
        words = {f"p{i + 1}": value for i, value in enumerate(parameters)}
        rows: Rows = self._session.sql(sql, args=words).collect()
        return rows

    def register(self, name: str, listing: Listing) -> None:
        """Make a list readable as a temporary view under a name.

        The view is marked as small, so that Spark copies it to each worker instead of sorting the
        large table.
        """
        kinds = {"integer": "bigint", "double": "double", "text": "string"}
        schema = ", ".join(f"{column} {kinds[kind]}" for column, kind in listing.columns)
        listed = self._session.createDataFrame(listing.rows, schema)
        # Without the hint Spark does not know that the list is small. It would sort the large
        # table for a join, or send it all to the driver.
        listed.hint("broadcast").createOrReplaceTempView(name)

    def forget(self, name: str) -> None:
        self._session.catalog.dropTempView(name)

    def snapshot(self) -> AbstractContextManager[None]:
        return nullcontext()
