"""Each kind of table hands over the same cells: the integers of nasty rows are those of one frame of them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadValue, SessionError
from dpframe import _expr as ex
from dpframe._expr import Column
from dpframe._frame.sources import recognise_source
from dpframe._groups.unit import Unit
from dpframe._questions.question import Query
from dpframe._sizes import SIZES
from dpframe._statistics.base import (
    Distincts,
    Grid,
    Leaves,
    Magnitudes,
    Persons,
    Powers,
    Rows,
    Trues,
)
from dpframe._validate import Bounds
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.parts import PartsEngine
from dpframe.engines.tables import KINDS
from tests.engines import spark
from tests.engines.conformance import KEY, shaken
from tests.engines.counted import divided

pa = pytest.importorskip("pyarrow")

FLOATS = [
    *(
        np.nan,
        None,
        np.inf,
        -np.inf,
        -0.0,
        0.0,
        1e300,
        5e-324,
        0.49999999999999994,
        0.5,
        1.5,
        2.5,
        3.5,
        None,
    ),
    *(0.1, -3.75, 2.0**53 + 2, 1e-308),
]
WHOLE = [
    2**53 + 1,
    2**53,
    -(2**62),
    2**63 - 1,
    0,
    None,
    7,
    7,
    -7,
    1,
    2,
    3,
    None,
    5,
    -(2**53) - 1,
    9,
    9,
    -1,
]
TEXTS = [
    *("a", "A", "a ", "\u00e9", "e\u0301", "", "it's", None, '"q"', "b\\n"),
    *("ß", "ss", "\U0001f600", "a", "%", "_", None, "NULL"),
]
IDS = [1, 1, 2, None, 3, 3, 3, 4, 5, 5, 2**53, 2**53 + 1, -1, -1, 6, 7, 8, None]
TRUE = [True, False, None] * 6


def nasty() -> Any:
    return pa.table(
        {
            "id": pa.array(IDS, pa.int64()),
            "x": pa.array(FLOATS, pa.float64()),
            "n": pa.array(WHOLE, pa.int64()),
            "s": pa.array(TEXTS, pa.string()),
            "b": pa.array(TRUE, pa.bool_()),
        }
    )


def framed(table: Any) -> pd.DataFrame:
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def files(table: Any, folder: Any) -> str:
    pq = import_module("pyarrow.parquet")
    for i in range(3):
        pq.write_table(table.slice(i * 6, 6), folder / f"{i}.parquet", row_group_size=4)
    return str(folder / "*.parquet")


def filled(base: Any, table: Any, mark: str, types: str) -> None:
    base.execute(f"CREATE TABLE t ({types})")
    cells = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    for row in cells:
        base.execute(f"INSERT INTO t VALUES ({', '.join([mark] * 5)})", row)


def in_categories(table: Any, folder: Path) -> Any:
    pl = import_module("polars")
    return pl.from_arrow(table).cast({"s": pl.Categorical})


def in_spark(table: Any, folder: Path) -> Any:
    return spark.session().read.parquet(str(files(table, folder)).removesuffix("/*.parquet"))


# The examples of all kinds of tables, and of those that take a server or have cells of other types.
SERVERS = {"Spark DataFrame": in_spark}
EXAMPLES = {
    **{kind.title: kind.example for kind in KINDS if kind.example is not None},
    **SERVERS,
    "polars categories": in_categories,
}


def test_every_kind_of_table_has_an_example():
    without = {kind.title for kind in KINDS if kind.example is None}
    assert without == {*SERVERS, "PostgreSQL table"}  # which has tests of its own below


# The tables that a database counts, where it is installed
COUNTED = {
    "Parquet files": "duckdb",
    "duckdb relation": "duckdb",
    "duckdb table": "duckdb",
    "SQLite table": "sqlite3",
    "Spark DataFrame": "pyspark",
}


def integers(engine: Any, dtypes: Any, people: bool) -> list[Any]:
    """What an engine makes of the rows: sums, distinct values, keys."""
    leaves = [Column.of(i, name, dtype) for i, (name, dtype) in enumerate(dtypes.items())]
    who, x, n, s, b = leaves
    unit = Unit("add-remove", (who,), 1, 2) if people else Unit()
    asked = {
        *(Rows(), Persons(), Trues(b), Distincts(x), Distincts(n), Distincts(s), Magnitudes(x)),
        Powers(x, Grid.for_width(Bounds(-3.0, 5.0), 15), 2),
        Powers(n, Grid.for_width(Bounds(0.0, 1e6), 31), 1),
        Leaves(x, Grid(Bounds(0.0, 4.0), 0)),
        *(Trues(ex.compare("==", n, ex.constant(k))) for k in (2**53, 2**53 + 1, 2**63 - 1)),
        *(Trues(ex.compare("==", s, ex.constant(k))) for k in ("a", "é", "it's", "b\\n")),
    }
    found = engine.reduce(Query(()), asked, unit)
    keys = [engine.occurring((e,), None, unit) for e in (s, n, x, b)]
    sums = {(type(p).__name__, str(p)): found[p].tolist() for p in asked}
    told = [(texts, shaken(some)[Persons()]) for texts, some in keys]
    return [sums, told, engine.people(Unit(people=(who,))), len(engine)]


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support")
@pytest.mark.filterwarnings("ignore:fetch_arrow_table")  # in ibis
@pytest.mark.parametrize("people", [False, True], ids=["rows", "people"])
@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=pytest.mark.slow) if k == "Spark DataFrame" else k for k in EXAMPLES],
)
def test_the_cells_of_a_table_are_those_that_were_put_in(kind, people, tmp_path):
    if kind == "Spark DataFrame" and spark.missing() is not None:
        pytest.skip(str(spark.missing()))
    try:
        table = EXAMPLES[kind](nasty(), tmp_path)
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")
    source = recognise_source(table)
    frame = framed(nasty())
    expected = integers(PandasEngine(frame, KEY), frame.dtypes, people)
    for source.memory in (2**30, 1000):
        assert integers(PartsEngine(source, KEY), source.schema.dtypes, people) == expected
        if kind in COUNTED and find_spec(COUNTED[kind]) is not None:
            assert integers(divided(source, KEY), source.schema.dtypes, people) == expected


# PostgreSQL ---------------------------------------------------------------------------------------------------


def address(server: Any) -> str:
    return f"postgresql://{server.user}@127.0.0.1:{server.port}/postgres"


@pytest.fixture
def base(server: Any) -> Iterator[Any]:
    with import_module("psycopg").connect(address(server), autocommit=True) as connection:
        yield connection
        connection.execute("DROP TABLE IF EXISTS t CASCADE")


@pytest.mark.parametrize("people", [False, True], ids=["rows", "people"])
def test_the_cells_of_a_server_are_those_that_were_put_in(server, base, people):
    filled(base, nasty(), "%s", "id bigint, x float8, n bigint, s text, b boolean")
    source = recognise_source(dpframe.sql(address(server), "t"))
    frame = framed(nasty())
    expected = integers(PandasEngine(frame, KEY), frame.dtypes, people)
    for source.memory in (2**30, 1000):
        assert integers(PartsEngine(source, KEY), source.schema.dtypes, people) == expected
        assert integers(divided(source, KEY), source.schema.dtypes, people) == expected
    source.close()


def test_no_cell_of_a_server_makes_a_cast_fail(server, base):
    base.execute("CREATE TABLE t (id int, x numeric, d date, w timestamp, z timestamptz, j jsonb)")
    base.execute(
        "INSERT INTO t VALUES (1, 1.5, '2024-02-01', '2024-02-01 10:00', '2024-02-01 10:00+02', '{}'),"
        " (2, 'NaN', 'infinity', 'infinity', 'infinity', NULL), (3, 1e400, NULL, '1600-01-01', NULL, '[]'),"
        " (4, -1e-400, '4713-01-01 BC', NULL, '-infinity', NULL), (5, '-Infinity', NULL, NULL, NULL, NULL)"
    )
    p = dpframe.open(
        dpframe.sql(address(server), "t"), 1000, because="made up", bounds={"x": (-10, 10)}
    )
    counts = {name: p[name].count(epsilon=50) for name in ("id", "x", "d", "w", "z")}
    assert counts == {"id": 5, "x": 4, "d": 2, "w": 2, "z": 1}
    assert p["j"].isna().sum(epsilon=50) == 3
    assert float(p.sum("x", epsilon=300)) == pytest.approx(1.5, abs=1)
    assert p["z"].dt.hour.isin([8]).sum(epsilon=50) == 1
    p.close()


def test_a_table_of_a_server_stays_what_it_was_until_its_connection_ends(server, base):
    base.execute("CREATE TABLE t AS SELECT i AS id, i % 5 AS x FROM generate_series(1, 100) i")
    base.execute("CREATE VIEW few AS SELECT * FROM t WHERE random() < 0.5")
    with pytest.raises(BadValue, match="RANDOM"):
        dpframe.open(dpframe.sql(address(server), "few"), 1, because="made up")
    p = dpframe.open(dpframe.sql(address(server), "t"), 1000, because="made up")
    base.execute("DELETE FROM t WHERE x = 1")
    assert p.query("x == 1").count(epsilon=100) == 20
    others = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
    base.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
    with pytest.raises(SessionError, match="cannot be reached"):
        p.count(epsilon=100)
    assert p.budget.spent == 100


def test_a_function_of_a_server_that_is_written_anew_is_seen(server, base):
    base.execute("CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 100) i")
    written = "CREATE OR REPLACE FUNCTION ours(i int) RETURNS bool LANGUAGE plpgsql STABLE AS 'BEGIN RETURN i < {}; END'"
    base.execute(written.format(41))
    base.execute("CREATE VIEW chosen AS SELECT * FROM t WHERE ours(id)")
    p = dpframe.open(dpframe.sql(address(server), "chosen"), 1000, because="made up")
    assert p.count(epsilon=100) == 40
    base.execute(written.format(4))
    with pytest.raises(SessionError, match="has changed"):
        p.query("id > 0").count(epsilon=100)
    assert p.budget.spent == 100
    p.close()
    base.execute("DROP VIEW chosen; DROP FUNCTION ours")


def test_what_a_server_says_when_it_refuses_is_not_shown():
    pytest.importorskip("psycopg")
    with pytest.raises(SessionError, match="cannot be reached") as caught:
        dpframe.open(dpframe.sql("postgresql://u:sesame@127.0.0.1:1/db", "t"), 1, because="made up")
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert "sesame" not in str(caught.value)


# Spark --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_frame_of_spark_is_counted_where_it_is_and_each_row_once(tmp_path):
    if spark.missing() is not None:
        pytest.skip(str(spark.missing()))
    frame = spark.session().read.parquet(files(nasty(), tmp_path).removesuffix("/*.parquet"))
    for other in (frame.limit(3), frame.where("rand() < 0.5"), frame.sample(0.5)):
        with pytest.raises(BadValue, match="gives other rows each time"):
            dpframe.open(other, 1, because="made up")
    p = dpframe.open(frame, 1000, because="made up", unit="id", max_rows=4, max_groups=4)
    assert p.count(epsilon=100) == sum(i is not None for i in IDS)
    assert p.count(epsilon=50, max_rows=1, max_groups=1) == len({*IDS} - {None})
    assert p.query("s == 'a'").count(epsilon=100) == TEXTS.count("a")
    assert (
        dpframe.open(frame, 1000, because="made up").budget.spent == p.budget.spent
    )  # the line once more
    q = dpframe.open(frame, 1000, because="rows as people", bounds={"n": (0, 10)})
    assert q.count(epsilon=100) == 18
    (tmp_path / "0.parquet").unlink()
    with pytest.raises(SessionError, match="cannot be reached"):
        q.mean("n", epsilon=100)
    assert q.budget.spent == 100


def test_names_with_dots_and_nested_columns_are_columns_like_any_other(tmp_path):
    odd = pa.table(
        {
            "a": [1, 2, 3],
            "a.b": [1.0, 2.0, None],
            "x y": ["q", "r", None],
            "s": [{"u": 1}, None, {"u": 2}],
        }
    )
    import_module("pyarrow.parquet").write_table(odd, tmp_path / "odd.parquet")
    p = dpframe.open(tmp_path / "odd.parquet", 1000, because="made up")
    assert [p[name].notna().sum(epsilon=90) for name in odd.column_names] == [3, 2, 2, 2]
    assert p.query("a == 2 and `x y` == 'r'").count(epsilon=90) == 1
    many = Path(tmp_path / "many.parquet")
    import_module("pyarrow.parquet").write_table(nasty(), many, row_group_size=18)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SIZES, "batch", 2)  # a group that is too large to be read at once
        assert dpframe.open(many, 1000, because="made up").query("s == 'a'").count(
            epsilon=90
        ) == TEXTS.count("a")
