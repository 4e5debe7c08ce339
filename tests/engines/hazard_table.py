"""The table of hazards in `docs/explain/engines.md`, as ``python -m tests.engines.hazard_table`` prints it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

COLUMNS = {
    "Parquet files": "ParquetSource",
    "tables in memory": "TableSource",
    "pyarrow dataset": "DatasetSource",
    "Delta": "DeltaSource",
    "Iceberg": "IcebergSource",
    "polars LazyFrame": "LazySource",
    "duckdb": "DuckSource",
    "SQLite": "SqliteSource",
    "PostgreSQL": "PostgresSource",
    "Spark": "SparkSource",
    "dask": "DaskSource",
}


def written() -> str:
    """Return the table in Markdown."""
    rule: Any = import_module("dpframe.engines.steadiness")
    from tests.engines.test_hazards import kinds

    known = {kind.__name__: kind.answers for kind in kinds()}
    assert {*known} - {"DerivedSource"} == {*COLUMNS.values()}
    lines = ["|  | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, hazard in rule.HAZARDS.items():
        cells = [known[kind][name].value for kind in COLUMNS.values()]
        lines.append(f"| {hazard.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(written(), end="")
