"""Tables of ibis: an expression says which rows, and what stands behind it is read as if it were
opened itself.

ibis hands rows over through pandas, which rounds whole numbers where there are nulls, so that two
people can become one. So it writes here, and never reads: an expression is made SQL, a LazyFrame or
a name once, when it is opened.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from dpframe._errors import BadValue, NotOffered
from dpframe.engines.sources import Source
from dpframe.engines.steadiness import FoundHazard, make_refusal
from dpframe.engines.tables.arrow import write_example_files
from dpframe.engines.tables.databases import DuckSource, SqliteSource
from dpframe.engines.tables.frames import LazySource
from dpframe.engines.tables.kinds import TableKind, register_kind
from dpframe.engines.tables.spark import SparkSource

# Operations of ibis, by the names of their types or of one that these inherit from: those of
# chance, of the clock, and of which row comes first; and those of this process, of which a backend
# knows nothing before ibis has run them.
_UNSTEADY = {"Limit", "Sample", "First", "Last", "Arbitrary", "Impure"}
_OURS = {"InMemoryTable", "ScalarUDF", "AggUDF", "VectorizedUDF"}


def make_ibis_source(table: Any) -> Source:
    """Return the source of the query, LazyFrame or table behind an ibis table.

    ibis writes the query and never runs it. Backends that cannot be read exactly are refused.
    """
    _check_operations(table)
    backend: Any = None
    with suppress(Exception):  # the error of ibis is not shown
        backend = table.get_backend()
    if backend is None:
        raise BadValue(
            "this ibis table is of no backend, or of several. Open one of a single connection: backend.table(name), and what is "
            "made of it."
        )
    made = BACKENDS.get(backend.name)
    if made is None:
        raise NotOffered(
            f"ibis tables of {backend.name} are not read here: ibis would bring their rows through pandas, which rounds whole "
            "numbers where there are nulls, and two people can become one. Open dpframe.sql(url, name) of a table or a view of "
            "PostgreSQL, and of others Parquet files that the database itself writes."
        )
    return made(backend, table)


def _check_operations(table: Any) -> None:
    """Refuse an ibis table that may return other rows each time.

    An operation that only this process knows, such as rows in memory, is refused too.
    """
    operations: Any = import_module("ibis.expr.operations")
    for node in table.op().find(operations.Node):
        kinds = {kind.__name__ for kind in type(node).__mro__}
        if kinds & _OURS:
            raise NotOffered(
                "this ibis table has rows in memory (ibis.memtable) or a function of ibis.udf, which its backend does not keep. "
                "Open the frame that the rows are in, or a table of the backend: backend.create_table(name, rows)."
            )
        if kinds & _UNSTEADY:
            raise make_refusal(FoundHazard("first", type(node).__name__.upper()))


def _compile(backend: Any, write: Callable[[], object]) -> Any:
    """Return what ``write`` returns: an ibis expression as its backend takes it.

    If that fails, the message of ibis or of the backend is not shown.
    """
    with suppress(Exception):
        return write()
    raise BadValue(
        f"this ibis table cannot be asked of {backend.name}: something that it names is not there, or an operation is none that "
        f"ibis writes for {backend.name}. Make a table of its rows there: backend.create_table(name, table)."
    )


def _of_duckdb(backend: Any, table: Any) -> Source:
    return DuckSource(_compile(backend, lambda: backend.con.sql(backend.compile(table))))


def _of_polars(backend: Any, table: Any) -> Source:
    return LazySource(_compile(backend, lambda: backend.compile(table)))


def _of_spark(backend: Any, table: Any) -> Source:
    return SparkSource(_compile(backend, lambda: backend._session.sql(backend.compile(table))))


def _of_sqlite(backend: Any, table: Any) -> Source:
    """Return the source of an ibis table or view of SQLite; refuse a query.

    The columns of a query have no types in SQLite.
    """
    node = table.op()
    if type(node).__name__ != "DatabaseTable" or node.namespace.database is not None:
        raise NotOffered(
            "of SQLite a table or a view is read, backend.table(name), and no query and no table of an attached file: a query "
            "has no types there that say what its cells are. Make a table of its rows: backend.create_table(name, table)."
        )
    return SqliteSource(backend.con, node.name)


# By the name of a backend: what reads its tables.
BACKENDS: dict[str, Callable[[Any, Any], Source]] = {
    "duckdb": _of_duckdb,
    "polars": _of_polars,
    "pyspark": _of_spark,
    "sqlite": _of_sqlite,
}


# The entry of the catalogue ----------------------------------------------------------------------


def _make_example(table: object, folder: Path) -> Any:
    base = import_module("ibis").duckdb.connect(str(folder / "t.duckdb"))
    base.con.execute(f"CREATE TABLE t AS SELECT * FROM '{write_example_files(table, folder)}'")
    return base.table("t")


register_kind(
    TableKind(
        title="ibis table",
        words="an ibis table of duckdb, polars, SQLite or Spark",
        types=("ibis.Table",),
        read=make_ibis_source,
        source=DuckSource,
        requires=("ibis", "pyarrow"),
        extra="ibis",
        example=_make_example,
    )
)
