"""Frames as tables of a database: what a cell is there, and nulls in every way that a table may have them."""

from __future__ import annotations

import contextlib
import itertools
import math
import sqlite3
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dpframe.engines.sql.databases import DuckDatabase, PostgresDatabase, SqliteDatabase
from dpframe.engines.sql.expressions import held_as

TYPES = {"integer": "BIGINT", "double": "DOUBLE PRECISION", "bool": "BOOLEAN", "text": "TEXT"}


def cells_of(frame: pd.DataFrame, nan: bool) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
    """Names and kinds of the columns that a database can hold, and their cells; with ``nan`` every other null is one."""
    kinds = {
        str(name): held[0]
        for i, name in enumerate(frame)
        if (held := held_as(frame.dtypes.iloc[i])) is not None and isinstance(name, str)
    }
    columns = []
    for name, kind in kinds.items():
        plain = {"integer": int, "double": float, "bool": bool, "text": str}[kind]
        cells = [None if pd.isna(cell) else plain(cell) for cell in frame[name].tolist()]
        if kind == "double" and nan:
            cells = [math.nan if cell is None and i % 2 else cell for i, cell in enumerate(cells)]
        columns.append(cells)
    return list(kinds.items()), list(zip(*columns, strict=True)) if columns else [
        () for _ in range(len(frame))
    ]


def create(
    execute: Any, insert: Any, frame: pd.DataFrame, *, nan: bool, mark: str, name: str = "visits"
) -> None:
    """A table called visits, with a column for the number of the row so that none is without columns."""
    columns, rows = cells_of(frame, nan)
    named = ", ".join(f'"{name}" {TYPES[kind]}' for name, kind in columns)
    execute(f"CREATE TABLE {name} (row_number BIGINT{', ' * bool(named)}{named})")
    if rows:
        marks = ", ".join(mark.format(i + 1) for i in range(len(columns) + 1))
        insert(f"INSERT INTO {name} VALUES ({marks})", [(i, *row) for i, row in enumerate(rows)])


def in_duckdb(frame: pd.DataFrame) -> Any:
    import duckdb

    # An order that leaves its direction out is the other way round here.
    connection = duckdb.connect(config={"threads": 2, "default_order": "DESC"})
    columns, rows = cells_of(frame, True)
    named = ", ".join(f'"{name}" {TYPES[kind]}' for name, kind in columns)
    connection.execute(f"CREATE TABLE visits (row_number BIGINT{', ' * bool(named)}{named})")
    if rows:
        numpy = {"integer": "Int64", "double": "float64", "bool": "boolean", "text": "str"}
        data = {
            name: pd.Series([row[i] for row in rows], dtype=numpy[kind])
            for i, (name, kind) in enumerate(columns)
        }
        table = pd.DataFrame({"row_number": np.arange(len(rows)), **data})
        connection.register("given", table)
        picked = ", ".join(["row_number", *(f'"{name}"' for name, _ in columns)])
        connection.execute(f"INSERT INTO visits SELECT {picked} FROM given")
        connection.unregister("given")
        for name, kind in columns:  # a NaN of pandas is a null there
            if kind == "double":
                at = [i for i, row in enumerate(rows) if i % 2 and frame[name].isna().iloc[i]]
                if at:
                    connection.execute(
                        f"UPDATE visits SET \"{name}\" = 'NaN' WHERE row_number IN ({', '.join(map(str, at))})"
                    )
    return DuckDatabase(connection)


class Places:
    """A connection to the server of the tests, for as long as they run, and numbers for tables in it."""

    connection: Any = None
    tables = itertools.count()


def in_postgresql(frame: pd.DataFrame) -> Any:
    connection, name = Places.connection, f"visits_{next(Places.tables)}"
    with connection.cursor() as cursor:
        create(cursor.execute, cursor.executemany, frame, nan=True, mark="%s", name=name)
    database = PostgresDatabase(connection)
    database.relation = name  # type: ignore[attr-defined]
    return database


@contextlib.contextmanager
def connected(server: Any) -> Iterator[None]:
    import psycopg

    words = {
        "host": str(server.folder),
        "port": server.port,
        "user": server.user,
        "dbname": "postgres",
    }
    with psycopg.connect(**words, autocommit=True) as Places.connection:
        yield
    Places.connection = None


def in_sqlite(frame: pd.DataFrame) -> Any:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    create(connection.execute, connection.executemany, frame, nan=False, mark="?")
    return SqliteDatabase(connection)
