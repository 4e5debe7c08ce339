"""One table in every kind of source that the package opens."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

import dpframe
from tests.engines import spark

NUMBERS = ("x", "y", "z", "s", "g", "b")
TIMES = (*NUMBERS, "t")
ALL = (*TIMES, "k", "l")


@dataclass(frozen=True)
class Engine:
    """How a table of one kind is made, and which entries of the package's registries read it."""

    build: Callable[[Any, Path, random.Random], Any]
    reads: tuple[str, ...]  # types of `KINDS`, or names in `BACKENDS`
    columns: tuple[str, ...] = TIMES
    needs: tuple[str, ...] = ("pyarrow",)
    share: float = 1.0  # of the questions, beside others

    @property
    def installed(self) -> bool:
        return all(find_spec(name) for name in self.needs)


def arrow(frame: pd.DataFrame) -> Any:
    """The table of a frame, with every NaN as a null."""
    return (
        import_module("pyarrow")
        .Table.from_pandas(frame, preserve_index=False)
        .replace_schema_metadata()
    )


def in_memory(frame: pd.DataFrame, folder: Path, r: random.Random) -> pd.DataFrame:
    """What other engines read, as a frame: their columns are of Arrow."""
    return arrow(frame).to_pandas(types_mapper=pd.ArrowDtype)


def cut(frame: pd.DataFrame, r: random.Random) -> list[Any]:
    """The table in pieces, some of no rows."""
    table = arrow(frame)
    ends = sorted(r.randint(0, len(frame)) for _ in range(r.choice((0, 1, 2, 4))))
    return [table.slice(a, b - a) for a, b in zip([0, *ends], [*ends, len(frame)], strict=True)]


def files(frame: pd.DataFrame, folder: Path, r: random.Random) -> list[str]:
    pq = import_module("pyarrow.parquet")
    found = []
    for i, piece in enumerate(cut(frame, r)):
        found.append(str(folder / f"{i}.parquet"))
        pq.write_table(piece, found[-1], row_group_size=r.choice((1, 2, 3, 7, 100)))
    return found


def one_file(frame: pd.DataFrame, folder: Path, r: random.Random) -> Path:
    path = folder / "one.parquet"
    import_module("pyarrow.parquet").write_table(
        arrow(frame), path, row_group_size=r.choice((1, 2, 5, 100))
    )
    return path


def chunked(frame: pd.DataFrame, folder: Path, r: random.Random) -> Any:
    return import_module("pyarrow").concat_tables(cut(frame, r))


def dataset(frame: pd.DataFrame, folder: Path, r: random.Random) -> Any:
    return import_module("pyarrow.dataset").dataset(files(frame, folder, r))


def polars(frame: pd.DataFrame, folder: Path, r: random.Random) -> Any:
    pl = import_module("polars")
    return pl.concat([pl.from_arrow(piece) for piece in cut(frame, r)], rechunk=False)


def lazy(frame: pd.DataFrame, folder: Path, r: random.Random) -> Any:
    pl = import_module("polars")
    return (
        pl.scan_parquet(files(frame, folder, r))
        if r.random() < 0.5
        else polars(frame, folder, r).lazy()
    )


def dask(frame: pd.DataFrame, folder: Path, r: random.Random) -> Any:
    whole = arrow(frame).to_pandas(types_mapper=pd.ArrowDtype)
    return import_module("dask.dataframe").from_pandas(
        whole, npartitions=r.randint(1, 4), sort=False
    )


def duck(frame: pd.DataFrame) -> Any:
    base = import_module("duckdb").connect(config={"threads": 2})
    base.register("given", arrow(frame))
    base.execute("CREATE TABLE t AS SELECT * FROM given")
    base.unregister("given")
    return base


def relation(frame: pd.DataFrame, folder: Path, r: random.Random) -> Any:
    return duck(frame).table("t")


def sqlite(frame: pd.DataFrame, folder: Path) -> Any:
    base = sqlite3.connect(folder / "t.db", check_same_thread=False)
    types = {
        "Int64": "INTEGER",
        "int64": "INTEGER",
        "float64": "REAL",
        "Float64": "REAL",
        "boolean": "BOOLEAN",
    }
    named = ", ".join(f'"{n}" {types.get(str(d), "TEXT")}' for n, d in frame.dtypes.items())
    base.execute(f"CREATE TABLE t ({named})")
    marks = ", ".join("?" * frame.shape[1])
    base.executemany(
        f"INSERT INTO t VALUES ({marks})", zip(*(_plain(frame[n]) for n in frame), strict=True)
    )
    base.commit()
    return base


def _plain(column: Any) -> list[Any]:
    return [None if pd.isna(cell) else cell for cell in column.astype(object)]


def ibis_duckdb(frame: pd.DataFrame, folder: Path, r: random.Random) -> Any:
    base = import_module("ibis").duckdb.connect()
    base.con.register("given", arrow(frame))
    base.con.execute("CREATE TABLE t AS SELECT * FROM given")
    base.con.unregister("given")
    return base.table("t")


def ibis_polars(frame: pd.DataFrame, folder: Path, r: random.Random) -> Any:
    base = import_module("ibis").polars.connect()
    return base.create_table("t", polars(frame, folder, r))


def ibis_sqlite(frame: pd.DataFrame, folder: Path, r: random.Random) -> Any:
    sqlite(frame, folder).close()
    return import_module("ibis").sqlite.connect(folder / "t.db").table("t")


def ibis_spark(frame: pd.DataFrame, folder: Path, r: random.Random) -> Any:
    base = import_module("ibis").pyspark.connect(spark.session())
    return base.read_parquet(str(one_file(frame, folder, r)))


def in_spark(frame: pd.DataFrame, folder: Path, r: random.Random) -> Any:
    return spark.session().read.parquet(*files(frame, folder, r))


def delta(frame: pd.DataFrame, folder: Path, r: random.Random) -> Any:
    lake = import_module("deltalake")
    for piece in reversed(cut(frame, r)):  # the log lists the last file first
        lake.write_deltalake(str(folder / "lake"), piece, mode="append")
    return lake.DeltaTable(str(folder / "lake"))


def iceberg(frame: pd.DataFrame, folder: Path, r: random.Random) -> Any:
    words = {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"file://{folder}",
    }
    catalog = import_module("pyiceberg.catalog").load_catalog("fuzz", **words)
    catalog.create_namespace("n")
    made = catalog.create_table("n.t", schema=arrow(frame).schema)
    for piece in cut(frame, r):
        made.append(piece)
    return made


ENGINES: dict[str, Engine] = {
    "pandas": Engine(lambda f, d, r: f, ("pandas.DataFrame",), ALL, ()),
    "arrow frame": Engine(in_memory, ("pandas.DataFrame",), ALL),
    "files": Engine(files, ("builtins.list",), (*TIMES, "l")),
    "file": Engine(lambda f, d, r: str(one_file(f, d, r)), ("builtins.str",), (*TIMES, "l")),
    "path": Engine(one_file, ("pathlib.Path", "pathlib.PurePath"), (*TIMES, "l")),
    "arrow": Engine(chunked, ("pyarrow.Table",), ALL),
    "dataset": Engine(dataset, ("pyarrow.Dataset",), (*TIMES, "l")),
    "polars": Engine(polars, ("polars.DataFrame",), (*TIMES, "l"), ("polars",)),
    "lazy": Engine(lazy, ("polars.LazyFrame",), (*TIMES, "l"), ("polars",)),
    "duckdb": Engine(relation, ("duckdb.DuckDBPyRelation", "_duckdb.DuckDBPyRelation"), TIMES, ("duckdb",)),
    "duckdb table": Engine(
        lambda f, d, r: dpframe.sql(duck(f), "t"),
        ("duckdb.DuckDBPyConnection", "_duckdb.DuckDBPyConnection"),
        TIMES,
        ("duckdb",),
    ),
    "sqlite": Engine(lambda f, d, r: dpframe.sql(sqlite(f, d), "t"), ("sqlite3.Connection",), NUMBERS, ()),
    "dask": Engine(dask, ("dask.DataFrame",), TIMES, ("dask",), 0.3),
    "ibis duckdb": Engine(ibis_duckdb, ("ibis.Table", "duckdb"), TIMES, ("ibis", "duckdb"), 0.2),
    "ibis polars": Engine(ibis_polars, ("ibis.Table", "polars"), TIMES, ("ibis", "polars"), 0.2),
    "ibis sqlite": Engine(ibis_sqlite, ("ibis.Table", "sqlite"), NUMBERS, ("ibis",), 0.2),
    "ibis spark": Engine(ibis_spark, ("ibis.Table", "pyspark"), TIMES, ("ibis", "pyspark"), 0.002),
    "spark": Engine(in_spark, ("pyspark.DataFrame",), TIMES, ("pyspark",), 0.005),
    "delta": Engine(delta, ("deltalake.DeltaTable",), TIMES, ("deltalake",), 0.1),
    "iceberg": Engine(iceberg, ("pyiceberg.Table",), TIMES, ("pyiceberg", "sqlalchemy"), 0.02),
}  # fmt: skip
HEAVY = ("spark", "ibis spark", "iceberg")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the words of libraries on the screen."""
    with contextlib.redirect_stdout(None):
        yield
