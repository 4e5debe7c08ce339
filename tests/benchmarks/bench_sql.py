"""duckdb over a Parquet file, next to its own aggregation: ``python -m tests.benchmarks.bench_sql [rows]``.

Of rows, and of people with limits: seconds of the engine, and of what somebody would write in SQL without noise or limits.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from dpframe._expr import Column
from dpframe._expr._parse import parse
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._groups.unit import Unit
from dpframe._questions.question import Query
from dpframe._statistics.base import Grid, Powers, Rows
from dpframe._validate import Bounds
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.sql import SqlEngine
from dpframe.engines.sql.databases import DuckDatabase

KEYS = [f"state {i:02d}" for i in range(50)]
SCHEMA = pd.DataFrame(
    {
        "user": pd.array([], "int64"),
        "state": pd.array([], "str"),
        "age": pd.array([], "Int64"),
        "cost": pd.array([], "float64"),
    }
)
WRITTEN = """
COPY (
    SELECT CAST(hash(i) % {people} AS BIGINT) AS user, printf('state %02d', hash(i + 1) % 50) AS state,
        CAST(hash(i + 2) % 100 AS BIGINT) AS age, (hash(i + 3) % 1000000) / 200.0e0 AS cost
    FROM range({rows}) AS t(i)
) TO '{path}' (FORMAT parquet)
"""
PLAIN = "SELECT state, COUNT(*), COUNT(cost), VAR_SAMP(cost) FROM {relation} WHERE age >= 30 GROUP BY state"
PEOPLE = """
SELECT state, COUNT(*), VAR_SAMP(cost) FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY user, state) AS nth FROM {relation} WHERE age >= 30
) WHERE nth <= 5 GROUP BY state
"""


def seconds(call: Callable[[], Any], times: int = 3) -> float:
    best = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return best


def run(rows: int) -> None:
    import duckdb

    connection = duckdb.connect()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        connection.execute(WRITTEN.format(rows=rows, people=max(rows // 10, 1), path=path))
        relation = f"read_parquet('{path}')"
        engine = SqlEngine(
            DuckDatabase(connection), relation, SCHEMA, b"12345678", PandasEngine(SCHEMA)
        )
        user, state, _, cost = (
            Column.of(i, c, SCHEMA.dtypes.iloc[i]) for i, c in enumerate(SCHEMA)
        )
        columns = {c: Column.of(i, c, SCHEMA.dtypes.iloc[i]) for i, c in enumerate(SCHEMA)}
        where = parse("age >= 30", columns, {}.__getitem__).expr
        query = Query((), where, (KeyBy(state, keys_for(KEYS, state, "state")),))
        asked = {Rows(), Powers(cost, Grid.for_width(Bounds(0.0, 5000.0), 15), 2)}
        plain = seconds(lambda: connection.execute(PLAIN.format(relation=relation)).fetchall())
        own = seconds(lambda: engine.reduce(query, asked, Unit()))
        print(
            f"{rows} rows: variance by 50 states {own:.2f} s, plain duckdb {plain:.2f} s, ratio {own / plain:.2f}"
        )
        unit = Unit("add-remove", (user,), 5, 3)
        plain = seconds(lambda: connection.execute(PEOPLE.format(relation=relation)).fetchall(), 1)
        own = seconds(lambda: engine.reduce(query, asked, unit), 1)
        print(
            f"{rows} rows, people: {own:.2f} s, five rows of each by a window in plain duckdb {plain:.2f} s, {own / plain:.2f}"
        )


if __name__ == "__main__":
    for size in sys.argv[1:] or ["10000000"]:
        run(int(size))
