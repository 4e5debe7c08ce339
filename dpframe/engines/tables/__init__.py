"""The kinds of tables that sessions are opened on beside frames, and the one place where a source
is made of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpframe._errors import BadType
from dpframe.engines.sources import Source
from dpframe.engines.tables.arrow import DatasetSource, TableSource, of_paths
from dpframe.engines.tables.dask import DaskSource
from dpframe.engines.tables.databases import DuckSource, of_database
from dpframe.engines.tables.frames import LazySource
from dpframe.engines.tables.ibis import of_ibis
from dpframe.engines.tables.lakes import DeltaSource, IcebergSource
from dpframe.engines.tables.spark import SparkSource

# By the package and the name of a type, or of one that it inherits from: none is imported to tell
# them apart.
SOURCES: dict[str, Callable[[Any], Source]] = {
    "builtins.str": of_paths,
    "builtins.list": of_paths,
    "pathlib.Path": of_paths,
    "pathlib.PurePath": of_paths,
    "pyarrow.Table": TableSource,
    "pyarrow.Dataset": DatasetSource,
    "polars.DataFrame": lambda frame: TableSource(frame.to_arrow()),
    "polars.LazyFrame": LazySource,
    "duckdb.DuckDBPyRelation": DuckSource,
    "_duckdb.DuckDBPyRelation": DuckSource,
    "dask.DataFrame": DaskSource,
    "ibis.Table": of_ibis,
    "dpframe.NamedTable": of_database,
    "pyspark.DataFrame": SparkSource,
    "deltalake.DeltaTable": DeltaSource,
    "pyiceberg.Table": IcebergSource,
}


def source_of(table: object) -> Source:
    """The source that reads a table."""
    for kind in type(table).__mro__:
        made = SOURCES.get(f"{kind.__module__.partition('.')[0]}.{kind.__name__}")
        if made is not None:
            return made(table)
    known = (
        "names of Parquet files, a pandas, polars, dask or Spark frame, a pyarrow table or dataset, a duckdb relation, "
        "a table of ibis, deltalake or pyiceberg"
    )
    raise BadType(
        f"dpframe.open does not read a {type(table).__name__}. It takes {known}, or dpframe.sql(...)."
    )
