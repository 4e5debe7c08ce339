"""An example of each hazard that a kind of table does something about: what it refuses, has declared, or watches."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import dpframe
from tests.engines import spark

Change = Callable[[], object]
Make = Callable[[Path], Any]


class Example(NamedTuple):
    """A table with a hazard. Of one that is watched ``make`` returns the table, and the change that has to be seen."""

    kind: str  # of the source
    hazard: str
    answer: str
    make: Make
    name: str = ""

    @property
    def label(self) -> str:
        return "-".join(filter(None, (self.kind, self.hazard, self.name)))


def rows(seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    cells = {"id": rng.integers(0, 9, 60), "g": rng.integers(0, 3, 60), "x": rng.random(60)}
    return pa.table({**cells, "s": rng.choice(["a", "b"], 60)})


def file(folder: Path, name: str = "t.parquet") -> Path:
    pq.write_table(rows(), folder / name)
    return folder / name


def replace_file(path: Path) -> None:
    """Write other rows, surely at another time."""
    pq.write_table(rows(1), path)
    os.utime(path, ns=(1, 1))


def write_in_place(path: Path) -> None:
    """Change bytes of a file, and put its size, its times and its inode back."""
    before = os.stat(path)
    time.sleep(0.05)  # the clock of the files goes on
    with open(path, "r+b") as opened:
        opened.seek(8)
        opened.write(b"\xfe\xfe")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = os.stat(path)
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (
        before.st_size,
        before.st_mtime_ns,
        before.st_ino,
    )


def of_files(kind: str, make: Callable[[Path], Any]) -> list[Example]:
    """Two examples of a kind of table that reads a file."""

    def watched(change: Callable[[Path], None]) -> Make:
        def made(folder: Path) -> tuple[Any, Change]:
            path = file(folder)
            return make(path), lambda: change(path)

        return made

    return [
        Example(kind, "writes", "watched", watched(replace_file)),
        Example(kind, "in place", "watched", watched(write_in_place)),
    ]


# polars ---------------------------------------------------------------------------------------------------------


def lazy(steps: Callable[[Any, Any], Any]) -> Make:
    def made(folder: Path) -> Any:
        pl = import_module("polars")
        return steps(pl, pl.scan_parquet(file(folder)))

    return made


def io_source(pl: Any, _: Any) -> Any:
    register = import_module("polars.io.plugins").register_io_source
    return register(lambda *words: iter([pl.DataFrame({"x": [1]})]), schema={"x": pl.Int64})


_POLARS = {
    ("chance", "refused"): {
        "rank": lambda pl, t: t.with_columns(r=pl.col("g").rank("random")),
        "rank with a seed": lambda pl, t: t.with_columns(r=pl.col("g").rank("random", seed=1)),
        "rank of rows in memory": lambda pl, t: (
            t.collect().lazy().with_columns(r=pl.col("g").rank("random"))
        ),
        "shuffle": lambda pl, t: t.with_columns(pl.col("x").shuffle()),
        "sample": lambda pl, t: t.select(pl.col("x").sample(3)),
        "sample inside a list": lambda pl, t: t.select(
            pl.concat_list("x", "x").list.eval(pl.element().shuffle())
        ),
        "sample of a list": lambda pl, t: t.select(pl.concat_list("x", "x").list.sample(1)),
    },
    ("first", "refused"): {
        "head": lambda pl, t: t.head(3),
        "n_rows": lambda pl, t: pl.concat([t]).slice(2, 3),
        "sorted head": lambda pl, t: t.sort("x").head(3),
        "any": lambda pl, t: t.unique("g", keep="any"),
        "unstable sort": lambda pl, t: t.sort("g").with_columns(pl.col("x").shift(1).over("id")),
        "order of a join": lambda pl, t: t.join(t, on="g").group_by("id").agg(pl.col("x").first()),
        "ties of a sort": lambda pl, t: t.group_by("id").agg(pl.col("x").sort_by("g").first()),
        "row numbers of a sort": lambda pl, t: t.sort("g").with_row_index(),
        "as of an unstable sort": lambda pl, t: t.sort("x").join_asof(t.sort("x"), on="x"),
        "by": lambda pl, t: t.group_by("id").agg(pl.col("x").top_k_by("g", k=1)),
    },
    ("sums", "refused"): {
        "sum": lambda pl, t: t.group_by("id").agg(pl.col("x").sum()),
        "mean": lambda pl, t: t.group_by("id").agg(pl.col("g").mean()),
        "std": lambda pl, t: t.with_columns(pl.col("x").std().over("id")),
        "corr": lambda pl, t: t.group_by("id").agg(pl.corr("x", "g")),
        "cast before": lambda pl, t: t.group_by("id").agg(
            (pl.col("g").cast(pl.Int64) * pl.col("x")).sum()
        ),
        "sql": lambda pl, t: pl.SQLContext(t=t).execute(
            "select id, sum(x) as s from t group by id"
        ),
    },
    ("elsewhere", "refused"): {
        "s3": lambda pl, t: pl.scan_parquet("s3://bucket/t.parquet", schema={"x": pl.Float64})
    },
    ("code", "declared"): {
        "batches": lambda pl, t: t.map_batches(lambda d: d),
        "elements": lambda pl, t: t.with_columns(
            pl.col("x").map_elements(lambda x: x, return_dtype=pl.Float64)
        ),
        "rolling": lambda pl, t: t.select(
            pl.col("x").rolling_map(lambda s: s.max(), window_size=1)
        ),
        "fold": lambda pl, t: t.select(pl.fold(pl.lit(0.0), lambda a, b: a + b, [pl.col("x")])),
        "groups": lambda pl, t: t.group_by("s").map_groups(lambda d: d, schema=t.collect_schema()),
        "io": io_source,
    },
    ("across", "declared"): {
        "join": lambda pl, t: t.join(t.select("id").unique(), on="id"),
        "window": lambda pl, t: t.with_columns(pl.col("x").max().over("id")),
        "cumulative": lambda pl, t: t.with_columns(pl.col("x").cum_max()),
        "rank": lambda pl, t: t.with_columns(pl.col("x").rank()),
        "filter": lambda pl, t: t.filter(pl.col("x") > pl.col("x").median()),
        "group_by": lambda pl, t: t.group_by("id").agg(
            pl.len(), pl.col("g").cast(pl.Int64).sum(), (pl.col("x") > 0.5).sum()
        ),
        "unique": lambda pl, t: t.unique(),
        "concat": lambda pl, t: pl.concat([t, t]),
        "isin": lambda pl, t: t.filter(pl.col("id").is_in(pl.col("g").implode())),
        "duplicated": lambda pl, t: t.filter(pl.col("id").is_duplicated()),
        "explode": lambda pl, t: t.with_columns(pl.concat_list("x", "x")).explode("x"),
    },
}

STEADY = {
    "scan": lambda pl, t: t,
    "filter": lambda pl, t: t.filter(pl.col("x") > 0.5).select("id", "x"),
    "words of a row": lambda pl, t: t.with_columns(
        a=pl.col("s").str.to_uppercase(),
        b=pl.when(pl.col("x") > 0.5).then(1).otherwise(pl.col("g")),
        c=pl.col("x").fill_null(0).round(1),
        d=pl.max_horizontal("x", "g"),
        e=pl.col("id").is_in([1, 2]),
        f=pl.col("s").replace({"a": "b"}),
        h=pl.col("x").cast(pl.Float32),
    ),
    "names": lambda pl, t: t.rename({"x": "Join"}).drop("s").select(pl.all().exclude("g")),
    "names of steps": lambda pl, t: t.select(
        pl.col("x").alias("Random"), pl.col("id").alias("limit 3")
    ),
    "rows in memory": lambda pl, t: t.collect().lazy().filter(pl.col("x") > 0.5),
    "sort": lambda pl, t: t.sort("x"),
    "no nulls": lambda pl, t: t.drop_nulls(),
}


# Databases ------------------------------------------------------------------------------------------------------


def duck(text: str) -> Make:
    def made(folder: Path) -> Any:
        return base(folder).sql(text)

    return made


def base(folder: Path) -> Any:
    connection = import_module("duckdb").connect()
    connection.execute(f"create table t as select * from '{file(folder)}'")
    return connection


def duck_function(folder: Path) -> Any:
    connection = base(folder)
    connection.create_function("ours", lambda x: x, ["DOUBLE"], "DOUBLE")
    return connection.sql("select id, ours(x) as x from t")


def duck_view(text: str) -> Make:
    def made(folder: Path) -> Any:
        connection = base(folder)
        connection.execute(f"create view v as {text}")
        return connection.table("v")

    return made


def duck_registered(text: str) -> Make:
    def made(folder: Path) -> Any:
        connection = import_module("duckdb").connect()
        connection.register("t", rows())
        return connection.sql(text)

    return made


def duck_watched(text: str, change: str) -> Make:
    def made(folder: Path) -> tuple[Any, Change]:
        connection = base(folder)
        return connection.sql(text), lambda: connection.execute(change)

    return made


_DUCKDB = {
    ("chance", "refused"): [
        *(
            "select * from t where random() < 0.5",
            "select * from t using sample 5",
            "select *, uuid() as u from t",
        ),
        "select *, getvariable('v') as v from t",
    ],
    ("clock", "refused"): [
        "select *, now() as n from t",
        "select * from t where current_date > date '2020-01-01'",
    ],
    ("first", "refused"): [
        *(
            "select * from t limit 3",
            "select id, first(x) as x from t group by id",
            "select id, arg_max(x, g) as x from t group by id",
        ),
        "select id, mode(g) as g from t group by id",
    ],
    ("sums", "refused"): [
        *("select id, sum(x) as s from t group by id", "select id, avg(x) as s from t group by id"),
        *(
            "select id, stddev(g) as s from t group by id",
            "select *, sum(x) over (partition by id) as s from t",
        ),
        *(
            "select id, corr(x, g) as c from t group by id",
            "select id, fsum(x) as s from t group by id",
        ),
    ],
    ("across", "declared"): [
        *(
            "select a.* from t a join t b on a.id = b.id",
            "select id, count(*) as n, sum(g) as s from t group by id",
        ),
        *("select *, max(x) over (partition by id) as m from t", "select distinct id, g from t"),
        *(
            "select * from t where x > (select median(x) from t)",
            "select * from t union all select * from t",
        ),
        *(
            "select a.* from t a, t b",
            "select id, sum(cast(x as decimal(18, 4))) as s from t group by id",
        ),
        *(
            "select *, (select 1 from t b where b.id = 0) as one from t",
            "select id, avg(g) as m from t group by id",
        ),
    ],
}


def sqlite(text: str, **functions: Any) -> Make:
    def made(folder: Path) -> Any:
        connection = sqlite_base(folder)
        for name, function in functions.items():
            connection.create_function(name, -1, function)
        connection.execute(text)
        connection.commit()
        return dpframe.sql(connection, "v")

    return made


def sqlite_base(folder: Path) -> Any:
    connection = sqlite3.connect(folder / "t.db")
    connection.execute("CREATE TABLE t (id INTEGER, g INTEGER, x REAL, s TEXT)")
    connection.executemany(
        "INSERT INTO t VALUES (?, ?, ?, ?)", rows().to_pandas().to_numpy().tolist()
    )
    connection.commit()
    return connection


def sqlite_in_transaction(folder: Path) -> Any:
    connection = sqlite_base(folder)
    connection.execute("DELETE FROM t WHERE g = 0")
    return dpframe.sql(connection, "t")


def sqlite_collation(folder: Path) -> Any:
    connection = sqlite_base(folder)
    connection.create_collation("ours", lambda a, b: (a > b) - (a < b))
    connection.execute("CREATE VIEW v AS SELECT x, s FROM t WHERE s = 'A' COLLATE ours")
    connection.commit()
    return dpframe.sql(connection, "v")


def sqlite_generated(folder: Path) -> Any:
    connection = sqlite_base(folder)
    connection.create_function("ours", 1, lambda x: x, deterministic=True)
    connection.execute("CREATE TABLE v (x REAL, y REAL AS (ours(x)))")
    connection.commit()
    return dpframe.sql(connection, "v")


def sqlite_watched(change: str) -> Make:
    def made(folder: Path) -> tuple[Any, Change]:
        connection = sqlite_base(folder)
        connection.execute("CREATE VIEW v AS SELECT x FROM t WHERE g = 1")
        return dpframe.sql(connection, "v"), lambda: connection.executescript(change)

    return made


def sqlite_in_place(folder: Path) -> tuple[Any, Change]:
    sqlite_base(folder).close()
    return dpframe.sql(f"sqlite:///{folder}/t.db", "t"), lambda: write_in_place(folder / "t.db")


_SQLITE = {
    ("chance", "refused"): [
        "SELECT x FROM t WHERE random() > 0",
        "SELECT x FROM t WHERE last_insert_rowid() > 0",
    ],
    ("clock", "refused"): [
        "SELECT x FROM t WHERE datetime('now') > s",
        "SELECT x FROM t WHERE date() > s",
    ],
    ("first", "refused"): [
        "SELECT x FROM t LIMIT 3",
        "SELECT x FROM (SELECT x, row_number() OVER () AS n FROM t)",
    ],
    ("across", "declared"): [
        *(
            "SELECT a.x FROM t a JOIN t b USING (id)",
            "SELECT id, g FROM t GROUP BY id, g",
            "SELECT DISTINCT g FROM t",
        ),
        *(
            "SELECT x FROM t WHERE x > (SELECT min(x) FROM t)",
            "SELECT a.x FROM t a, t b",
            "SELECT x FROM t WHERE id IN (SELECT g FROM t)",
        ),
    ],
}

POSTGRES = {
    ("chance", "refused"): [
        *("SELECT * FROM t WHERE random() < 0.5", "SELECT *, volatile_one(id) AS f FROM t"),
        "SELECT * FROM t TABLESAMPLE BERNOULLI (50)",
    ],
    ("clock", "refused"): [
        "SELECT *, now() AS w FROM t",
        "SELECT * FROM t WHERE clock_timestamp() > '2020-01-01'",
    ],
    ("first", "refused"): [
        "SELECT * FROM t LIMIT 3",
        "SELECT DISTINCT ON (id) * FROM t",
        "SELECT *, row_number() OVER () AS r FROM t",
    ],
    ("sums", "refused"): [
        *(
            "SELECT id, sum(x) AS s FROM t GROUP BY id",
            "SELECT id, stddev(x) AS s FROM t GROUP BY id",
        ),
        *("SELECT id, sum(x) OVER (PARTITION BY id) AS s FROM t", "SELECT s FROM summed"),
    ],
    ("code", "declared"): ["SELECT *, stable_one(id) AS f FROM t"],
    ("across", "declared"): [
        *(
            "SELECT a.* FROM t a JOIN t b USING (id)",
            "SELECT id, sum(n) AS n, avg(x::numeric) AS m FROM t GROUP BY id",
        ),
        *("SELECT *, max(x) OVER (PARTITION BY id) AS m FROM t", "SELECT a.* FROM t a, t b"),
    ],
    ("elsewhere", "refused"): ["SELECT * FROM far"],
}


# Others ---------------------------------------------------------------------------------------------------------


def dask_frame(folder: Path) -> Any:
    return import_module("dask.dataframe").from_pandas(rows().to_pandas(), npartitions=2)


def sparks(steps: Callable[[Any], Any]) -> Make:
    def made(folder: Path) -> Any:
        return steps(spark.session().read.parquet(f"file://{file(folder)}"))

    return made


def _twice(t: Any) -> Any:
    functions = import_module("pyspark.sql.functions")
    return t.withColumn("y", functions.udf(lambda x: 2 * x, "double")("x"))


_SPARK = {
    ("chance", "refused"): {
        "rand": lambda t: t.selectExpr("x", "rand() AS r"),
        "sample": lambda t: t.sample(0.5),
    },
    ("clock", "refused"): {"now": lambda t: t.selectExpr("x", "current_timestamp() AS n")},
    ("first", "refused"): {
        "limit": lambda t: t.limit(3),
        "first": lambda t: t.groupBy("g").agg({"x": "first"}),
        "max_by": lambda t: t.groupBy("id").agg(
            import_module("pyspark.sql.functions").max_by("x", "g")
        ),
    },
    ("sums", "refused"): {
        "sum": lambda t: t.groupBy("id").agg({"x": "sum"}),
        "avg": lambda t: t.groupBy("id").agg({"x": "avg"}),
    },
    ("code", "declared"): {"udf": _twice},
    ("across", "declared"): {
        "join": lambda t: t.join(t.select("id").distinct(), "id"),
        "sum": lambda t: (
            t.selectExpr("id", "cast(g as bigint) as g").groupBy("id").agg({"g": "max"})
        ),
        "exact sum": lambda t: t.groupBy("id").agg(
            import_module("pyspark.sql.functions").expr("sum(cast(x as decimal(18, 4)))")
        ),
        "union": lambda t: t.union(t),
    },
}


def dataset_elsewhere(folder: Path) -> tuple[Any, Change]:
    """A file system that is not this machine's, as Arrow sees it."""
    fs = import_module("pyarrow.fs")
    path = file(folder)
    far = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
    return ds.dataset("t.parquet", filesystem=far), lambda: replace_file(path)


def delta(folder: Path) -> tuple[Any, Path]:
    lake = import_module("deltalake")
    lake.write_deltalake(folder / "d", rows())
    return lake.DeltaTable(folder / "d"), next((folder / "d").glob("*.parquet"))


def iceberg(folder: Path) -> tuple[Any, Path]:
    from tests.engines.test_tables import EXAMPLES

    return EXAMPLES["Iceberg table"](rows(), folder), next(folder.rglob("*.parquet"))


def lake(make: Callable[[Path], tuple[Any, Path]], change: Callable[[Path], None]) -> Make:
    def made(folder: Path) -> tuple[Any, Change]:
        table, path = make(folder)
        return table, lambda: change(path)

    return made


def _some() -> list[Example]:
    found = [
        *of_files("ParquetSource", str),
        *of_files("DatasetSource", lambda path: ds.dataset(path)),
        *of_files("LazySource", lambda path: import_module("polars").scan_parquet(path)),
        *of_files(
            "DuckSource",
            lambda path: import_module("duckdb").connect().sql(f"select * from '{path}'"),
        ),
        *of_files("SparkSource", lambda path: spark.session().read.parquet(f"file://{path}")),
        Example("ParquetSource", "elsewhere", "refused", lambda folder: "s3://bucket/t.parquet"),
        Example("DatasetSource", "elsewhere", "watched", dataset_elsewhere),
        Example("DuckSource", "code", "declared", duck_function),
        Example(
            "DuckSource",
            "sums",
            "refused",
            duck_view("select id, sum(x) as s from t group by id"),
            "a view",
        ),
        Example(
            "DuckSource",
            "sums",
            "refused",
            duck_registered("select id, sum(x) as s from t group by id"),
            "registered",
        ),
        Example(
            "DuckSource",
            "across",
            "declared",
            duck_registered("select id, sum(g::bigint) as s from t group by id"),
            "registered",
        ),
        Example(
            "DuckSource",
            "transaction",
            "watched",
            duck_watched("select * from t", "begin transaction"),
        ),
        Example(
            "DuckSource",
            "meaning",
            "watched",
            duck_watched("select g / 2 as h from t", "set integer_division = true"),
            "division",
        ),
        Example(
            "DuckSource",
            "meaning",
            "watched",
            duck_watched("select * from t", "set timezone = 'Asia/Tokyo'"),
            "zone",
        ),
        Example(
            "DuckSource",
            "writes",
            "watched",
            duck_watched("select * from t", "insert into t from t"),
            "rows",
        ),
        Example("SqliteSource", "code", "declared", sqlite_generated, "generated column"),
        Example("SqliteSource", "transaction", "refused", sqlite_in_transaction),
        Example(
            "SqliteSource",
            "code",
            "declared",
            sqlite("CREATE VIEW v AS SELECT x FROM t WHERE coin() = 1", coin=lambda: 1),
            "function",
        ),
        Example("SqliteSource", "code", "declared", sqlite_collation, "collation"),
        Example("SqliteSource", "writes", "watched", sqlite_watched("DELETE FROM t WHERE g = 1")),
        Example(
            "SqliteSource",
            "meaning",
            "watched",
            sqlite_watched("DROP VIEW v; CREATE VIEW v AS SELECT x FROM t WHERE g = 2"),
        ),
        Example("SqliteSource", "in place", "watched", sqlite_in_place),
        Example("DeltaSource", "writes", "watched", lake(delta, replace_file)),
        Example("DeltaSource", "in place", "watched", lake(delta, write_in_place)),
        Example("IcebergSource", "writes", "watched", lake(iceberg, replace_file)),
        Example("IcebergSource", "in place", "watched", lake(iceberg, write_in_place)),
    ]
    found += [
        Example("DaskSource", hazard, "declared", dask_frame)
        for hazard in ("chance", "clock", "first", "sums", "code", "across", "meaning")
    ]
    for (hazard, answer), made in _POLARS.items():
        found += [
            Example("LazySource", hazard, answer, lazy(steps), name) for name, steps in made.items()
        ]
    for (hazard, answer), texts in _DUCKDB.items():
        found += [Example("DuckSource", hazard, answer, duck(text), text) for text in texts]
    for (hazard, answer), texts in _SQLITE.items():
        found += [
            Example("SqliteSource", hazard, answer, sqlite(f"CREATE VIEW v AS {text}"), text)
            for text in texts
        ]
    for (hazard, answer), made in _SPARK.items():
        found += [
            Example("SparkSource", hazard, answer, sparks(steps), name)
            for name, steps in made.items()
        ]
    return found


EXAMPLES = _some()
NEEDS = {
    "LazySource": "polars",
    "DuckSource": "duckdb",
    "DaskSource": "dask",
    "SparkSource": "pyspark",
    "DeltaSource": "deltalake",
    "IcebergSource": "pyiceberg",
}
# What no test on one machine can show: lakes in object stores, whose files `version` asks for their sizes, and files that duckdb
# reads by a network (`find_far`).
ELSEWHERE = {
    ("DeltaSource", "elsewhere"),
    ("IcebergSource", "elsewhere"),
    ("DuckSource", "elsewhere"),
}
