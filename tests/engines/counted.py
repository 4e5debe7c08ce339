"""Tables that databases count, by the engines that sessions have on them."""

from __future__ import annotations

import sqlite3
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

import dpframe
from dpframe._frame.sources import recognise_source
from dpframe.engines import engine_for
from dpframe.engines.sql import SqlEngine
from tests.engines.test_sql import Divided
from tests.engines.written import in_duckdb, in_sqlite


def divided(source: Any, key: bytes) -> Any:
    """The engine of a source, asking its database whatever that writes of a question."""
    made = engine_for(source.schema, key)
    assert type(made) is SqlEngine
    return Divided(
        made._database, made._relation, made._schema, key, made._fallback, passes=made._passes
    )


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with texts in place of anything: what is none is null."""
    odd = [name for name in frame.columns if str(frame[name].dtype) == "object"]
    cells = {
        name: [c if type(c) is str and c.isprintable() else None for c in frame[name]]
        for name in odd
    }
    return frame.assign(**{name: pd.array(some, dtype="str") for name, some in cells.items()})


def files(frame: pd.DataFrame, folder: Path) -> str:
    """Two Parquet files with small groups of rows."""
    pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
    table = pa.Table.from_pandas(plain(frame), preserve_index=False)
    folder.mkdir(parents=True, exist_ok=True)
    for i, part in enumerate((table.slice(0, len(frame) // 2), table.slice(len(frame) // 2))):
        pq.write_table(part, folder / f"{i}.parquet", row_group_size=7)
    return str(folder)


def in_files(frame: pd.DataFrame, folder: Path) -> Any:
    return recognise_source(files(frame, folder))


def in_relation(frame: pd.DataFrame, folder: Path) -> Any:
    return recognise_source(
        in_duckdb(plain(frame))._connection.table("visits").project("* EXCLUDE (row_number)")
    )


def in_table(frame: pd.DataFrame, folder: Path) -> Any:
    base: sqlite3.Connection = in_sqlite(plain(frame))._connection
    base.execute("ALTER TABLE visits DROP COLUMN row_number")
    return recognise_source(dpframe.sql(base, "visits"))


KINDS: dict[str, tuple[str, Any]] = {
    "files": ("duckdb", in_files),
    "relation": ("duckdb", in_relation),
    "SQLite": ("sqlite3", in_table),
}
