"""Tables of ibis: what stands behind them is read, and never what ibis makes of it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dpframe
from dpframe import BadValue, DPError, NotOffered, SessionError
from dpframe._frame.sources import recognise_source
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.parts import PartsEngine
from tests.engines import spark
from tests.engines.conformance import KEY
from tests.engines.counted import divided
from tests.engines.test_tables import files, filled, framed, integers, nasty

pa = pytest.importorskip("pyarrow")
ibis: Any = pytest.importorskip("ibis", reason="tables of ibis need ibis-framework")
# ibis asks pandas and duckdb for what these will not have for ever.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

TWINS = [2**53, 2**53 + 1, None, None, 7]  # of which pandas makes one person and three rows


def in_files(table: Any, folder: Any) -> Any:
    return ibis.duckdb.connect().read_parquet(files(table, folder))


def of_connection(table: Any, folder: Any) -> Any:
    backend = ibis.duckdb.connect(str(folder / "t.duckdb"))
    backend.con.execute(f"CREATE TABLE t AS SELECT * FROM '{files(table, folder)}'").fetchall()
    return backend.table("t")


def scanned(table: Any, folder: Any) -> Any:
    lazy = import_module("polars").scan_parquet(files(table, folder))
    return ibis.polars.connect({"t": lazy}).table("t")


def framed_in_polars(table: Any, folder: Any) -> Any:
    return ibis.polars.connect({"t": import_module("polars").from_arrow(table)}).table("t")


def in_sqlite(table: Any, folder: Any) -> Any:
    base = sqlite3.connect(folder / "t.db")
    filled(base, table, "?", "id INTEGER, x REAL, n INTEGER, s TEXT, b BOOLEAN")
    base.commit()
    base.close()
    return ibis.sqlite.connect(folder / "t.db").table("t")


def in_spark(table: Any, folder: Any) -> Any:
    if spark.missing() is not None:
        pytest.skip(str(spark.missing()))
    files(table, folder)
    return ibis.pyspark.connect(spark.session()).read_parquet(
        str(folder), table_name=f"t{folder.name}"
    )


MADE: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "duckdb": ("duckdb", of_connection),
    "files of duckdb": ("duckdb", in_files),
    "polars": ("polars", framed_in_polars),
    "lazy": ("polars", scanned),
    "sqlite": ("sqlite3", in_sqlite),
    "spark": ("pyspark", in_spark),
}
COUNTED = {"duckdb", "files of duckdb", "sqlite", "spark"}
KINDS = [pytest.param(k, marks=pytest.mark.slow) if k == "spark" else k for k in MADE]
QUERIED = [k for k in MADE if k not in ("sqlite", "spark")]


def made(kind: str, folder: Path, table: Any = None) -> Any:
    library, make = MADE[kind]
    pytest.importorskip(library, reason=f"this backend of ibis needs {library}")
    return make(nasty() if table is None else table, folder)


def twins() -> Any:
    """Two people whose numbers differ by one, and nulls beside them."""
    return pa.table(
        {**{name: nasty()[name][:5] for name in "xnsb"}, "id": pa.array(TWINS, pa.int64())}
    ).select(nasty().column_names)


# What is read ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("people", [False, True], ids=["rows", "people"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_cells_behind_an_expression_are_those_that_were_put_in(kind, people, tmp_path):
    table = made(kind, tmp_path)
    source = recognise_source(table)
    if kind.endswith(
        "duckdb"
    ):  # ibis keeps its connections from variables, until their owner says otherwise
        assert source.counting() is None
        table.get_backend().con.execute("SET python_enable_replacements = true")
    frame = framed(nasty())
    expected = integers(PandasEngine(frame, KEY), frame.dtypes, people)
    for source.memory in (2**30, 1000):
        assert integers(PartsEngine(source, KEY), source.schema.dtypes, people) == expected
        if kind in COUNTED:
            assert integers(divided(source, KEY), source.schema.dtypes, people) == expected
    source.close()


@pytest.mark.parametrize("kind", QUERIED)
def test_an_expression_is_read_as_it_stands(kind, tmp_path):
    table = made(kind, tmp_path)
    frame = framed(nasty())
    some = table.filter(table.n > 0).mutate(m=table.n - 1).select("id", "m", "s")
    p = dpframe.open(some, 1000, because="made up")
    assert p.columns.tolist() == ["id", "m", "s"]
    assert p.count(epsilon=90) == int((frame["n"] > 0).sum())
    assert p.query(f"m == {2**53}").count(epsilon=90) == 1
    assert p.query("s == 'a'").count(epsilon=90) == int(
        ((frame["n"] > 0) & (frame["s"] == "a")).sum()
    )


def people_of(table: Any) -> int:
    p = dpframe.open(table, 1000, because="made up", unit="id", max_rows=1, max_groups=1)
    return int(p.count(epsilon=900))


@pytest.mark.parametrize("kind", KINDS)
def test_two_people_are_two_where_ibis_itself_makes_them_one(kind, tmp_path):
    """The frame that ibis hands over is the broken twin: a person who is two has twice the weight that is paid for."""
    table = made(kind, tmp_path, twins())
    assert people_of(table) == 3
    through_pandas = table.execute()
    assert through_pandas["id"].nunique() == 2
    assert people_of(through_pandas.astype({"id": "Float64"})) == 2


def test_two_connections_of_duckdb_are_told_apart():
    """ibis takes two backends of connections that were given to it for one and the same."""
    duckdb = pytest.importorskip("duckdb", reason="this backend of ibis needs duckdb")
    for rows in (3, 8):
        base = duckdb.connect()
        base.execute(f"create table t as select i as id from range({rows}) r(i)")
        found = dpframe.open(ibis.duckdb.from_connection(base).table("t"), 1000, because="made up")
        assert found.count(epsilon=900) == rows


# What changes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["files of duckdb", "lazy"])
def test_files_that_change_behind_an_expression_are_seen_before_a_debit(kind, tmp_path):
    table = made(kind, tmp_path)
    p = dpframe.open(table.filter(table.n > 0), 1000, because="made up")
    p.count(epsilon=100)
    path = tmp_path / "1.parquet"
    before = os.stat(path).st_mtime_ns
    import_module("pyarrow.parquet").write_table(nasty(), path)
    os.utime(path, ns=(before + 10**9, before + 10**9))
    with pytest.raises(SessionError, match="has changed"):
        p.mean("n", bounds=(0, 9), epsilon=100)
    assert p.budget.spent == 100


def test_a_table_of_sqlite_that_is_written_to_is_seen_before_a_debit(tmp_path):
    table = made("sqlite", tmp_path)
    p = dpframe.open(table, 1000, because="made up")
    table.get_backend().con.execute("DELETE FROM t WHERE id = 1")
    with pytest.raises(SessionError, match="has changed"):
        p.count(epsilon=100)
    assert p.budget.spent == 0


def test_what_ibis_would_compile_later_is_not_read(tmp_path):
    """A frame that takes another's name in the backend is not in the session."""
    pl = pytest.importorskip("polars", reason="this backend of ibis needs polars")
    backend = ibis.polars.connect({"t": pl.DataFrame({"id": [1, 2, 3]})})
    p = dpframe.open(backend.table("t"), 1000, because="made up")
    backend.create_table("t", pl.DataFrame({"id": [1]}), overwrite=True)
    assert p.count(epsilon=900) == 3


# What is refused ------------------------------------------------------------------------------------------------------

CHANGING: dict[str, Callable[[Any], Any]] = {
    "LIMIT": lambda t: t.limit(3),
    "SAMPLE": lambda t: t.sample(0.5),
    "RANDOMSCALAR": lambda t: t.filter(ibis.random() < 0.5),
    "RANDOMUUID": lambda t: t.mutate(u=ibis.uuid()),
    "TIMESTAMPNOW": lambda t: t.mutate(u=ibis.now()),
    "DATENOW": lambda t: t.mutate(u=ibis.today()),
    "FIRST": lambda t: t.distinct(on="id", keep="first"),
    "LAST": lambda t: t.group_by("id").agg(m=t.n.last()),
    "ARBITRARY": lambda t: t.group_by("id").agg(m=t.n.arbitrary()),
}


@pytest.mark.parametrize("kind", QUERIED)
@pytest.mark.parametrize("word", CHANGING)
def test_an_expression_that_has_other_rows_each_time_is_refused(kind, word, tmp_path):
    changing = CHANGING[word](made(kind, tmp_path))
    deep = changing.union(changing, distinct=True).count().as_table()
    for expression in (changing, deep):
        with pytest.raises(BadValue, match=f"{word} gives other rows each time"):
            dpframe.open(expression, 1, because="made up")


def test_chance_in_the_text_of_a_query_or_a_view_is_refused(tmp_path):
    backend = made("duckdb", tmp_path).get_backend()
    backend.con.execute("create temp view few as select * from t where random() < 0.5")
    with pytest.raises(BadValue, match="RANDOM gives"):
        dpframe.open(backend.table("few"), 1, because="made up")
    pl = pytest.importorskip("polars", reason="this backend of ibis needs polars")
    frames = ibis.polars.connect({"t": pl.DataFrame({"id": [1, 2, 3]})})
    with pytest.raises(BadValue, match="gives other rows each time"):
        dpframe.open(frames.sql("select * from t limit 2"), 1, because="made up")


def in_python(table: Any) -> Any:
    @ibis.udf.scalar.python
    def twice(n: int) -> int:
        return 2 * n

    return table.mutate(m=twice(table.n))


@pytest.mark.parametrize("kind", QUERIED)
def test_rows_in_memory_and_functions_in_python_are_refused(kind, tmp_path):
    table, rows = made(kind, tmp_path), ibis.memtable({"id": [1, 2]})
    for expression in (rows, table.join(rows, "id"), in_python(table)):
        with pytest.raises(NotOffered, match=r"backend\.create_table"):
            dpframe.open(expression, 1, because="made up")


def told(expression: Any, kind: type[DPError], match: str, folder: Path) -> None:
    """Refused, with no word of ibis and no file of a budget."""
    with pytest.raises(kind, match=match) as caught:
        dpframe.open(expression, 1, ledger=folder / "budget.db", population="p")
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert not (folder / "budget.db").exists()


def test_queries_of_sqlite_are_refused_with_the_table_to_make(tmp_path):
    table = made("sqlite", tmp_path)
    refused = partial(
        told, kind=NotOffered, match=r"of SQLite a table or a view is read", folder=tmp_path
    )
    refused(table.filter(table.n > 0))
    base = table.get_backend()
    base.con.execute(f"ATTACH '{tmp_path}/other.db' AS other")
    base.con.execute("CREATE TABLE other.t (id INTEGER)")
    refused(base.table("t", database="other"))


def test_a_backend_that_is_not_read_is_refused_before_a_budget_is_opened(tmp_path, monkeypatch):
    table = made("sqlite", tmp_path)
    monkeypatch.setattr(type(table.get_backend()), "name", "postgres")
    told(
        table,
        NotOffered,
        r"ibis tables of postgres are not read here.*dpframe\.sql\(url, name\)",
        tmp_path,
    )


def test_a_table_of_no_backend_or_of_several_is_refused(tmp_path):
    one = made("sqlite", tmp_path)
    other = ibis.sqlite.connect().create_table("u", schema=one.schema())
    for expression in (ibis.table({"id": "int64"}, name="t"), one.union(other)):
        told(expression, BadValue, "of no backend, or of several", tmp_path)


@pytest.mark.parametrize("kind", ["duckdb", "polars"])
def test_a_table_that_is_gone_or_that_cannot_be_written_is_refused(kind, tmp_path):
    table = made(kind, tmp_path)
    backend = table.get_backend()
    if kind == "duckdb":
        backend.con.execute("DROP TABLE t")
    else:
        backend._tables.clear()
    told(table, BadValue, f"this ibis table cannot be asked of {kind}", tmp_path)
