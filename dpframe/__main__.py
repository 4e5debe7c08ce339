"""``python -m dpframe``: ``demo``, a session from start to end; ``ledger FILE``; ``init FILE``, a
card; ``versions``."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from importlib import metadata

import pandas as pd

from dpframe import BadValue, DPError, __version__, private
from dpframe._frame.sources import recognise_source
from dpframe._frame.verbs.looking import public_dtype
from dpframe._ledger.history import as_json, as_text
from dpframe._session.card_writing import to_fill_in
from dpframe._types import Series
from dpframe.datasets import BOUNDS, KEYS, visits


def _show(line: str, answer: object, interval: object, price: float) -> None:
    """Print one line of the demo as typed, with its answer, its interval and its price in
    epsilon."""
    print(f"\n>>> {line}\n{answer}")
    if interval is not None:
        print(f"95 % interval {interval}; price epsilon {price:g}")
    else:
        print(f"price epsilon {price:g}")


def _table(answer: Series) -> pd.DataFrame:
    frame = answer.to_frame(answer.name or "size")
    interval: pd.DataFrame = answer.dp.interval()
    return frame.join(interval).round(1)


def demo() -> None:
    """Run a demonstration session on synthetic data: ask five questions, and print the answers and
    the budget left."""
    frame = visits()
    print(f"A synthetic table of {len(frame)} hospital visits, one row a person.")
    print(">>> visits.dp.open(epsilon=2, bounds={...}, keys={...})")
    frame.dp.open(epsilon=2, bounds=BOUNDS, keys=KEYS)
    p = private(frame)

    count = p.query("age >= 65").count()
    _show(
        'visits.dp.query("age >= 65").count()',
        repr(count),
        count.interval(),
        float(count.cost.epsilon),
    )
    mean = p.mean("cost", epsilon=0.2)
    low, high = mean.interval()
    _show(
        'visits.dp.mean("cost", epsilon=0.2)',
        repr(mean),
        (round(low, 1), round(high, 1)),
        float(mean.cost.epsilon),
    )
    ages = p.histogram("age", bins=range(0, 111, 10))
    _show(
        'visits.dp.histogram("age", bins=range(0, 111, 10))',
        _table(ages),
        "beside each bin",
        p.budget.share,
    )
    common = p.argmax("diagnosis")
    _show('visits.dp.argmax("diagnosis")', common, None, p.budget.share)
    costs = p.groupby("state")["cost"].mean(epsilon=0.4)
    _show(
        'visits.dp.groupby("state")["cost"].mean(epsilon=0.4)',
        _table(costs),
        "beside each state",
        0.4,
    )

    print("\n>>> visits.dp.budget")
    print(p.budget)


# What dpframe needs, and what it works with where it is there.
_NEEDED = ("pandas", "numpy", "scipy")
_BESIDE = (
    *("pyarrow", "polars", "duckdb", "dask", "pyspark", "deltalake", "pyiceberg", "ibis-framework"),
    *("numba", "sqlalchemy", "psycopg", "matplotlib"),
)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def show_versions(as_json: bool = False) -> None:
    """Print the versions of dpframe, Python, the system and related packages, to be pasted into a
    report.

    Nothing is imported for it and no data is looked at; a package that is not installed has no
    version.

    >>> show_versions()
    dpframe ...
    Python ...
    """
    threads = not getattr(sys, "_is_gil_enabled", lambda: True)()
    versions = {
        "dpframe": __version__,
        "Python": platform.python_version() + " free-threaded" * threads,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        **{package: _version(package) for package in (*_NEEDED, *_BESIDE)},
    }
    width = max(map(len, versions))
    lines = [
        f"{name:<{width}}  {'-' if version is None else version}"
        for name, version in versions.items()
    ]
    print(json.dumps(versions, indent=2) if as_json else "\n".join(lines))


def blank_card(table: str) -> str:
    """Return a description of a table to be filled in: its columns and types, with blanks for what
    its owner knows. ``table`` is a path.

    Of Parquet the schema is read, of CSV the first line: no cell.
    """
    if not table.lower().endswith((".csv", ".csv.gz", ".tsv")):
        schema = recognise_source(table).schema
        return to_fill_in(
            dict(zip(map(str, schema.columns), map(public_dtype, schema.dtypes), strict=True))
        )
    try:
        names = pd.read_csv(
            table, nrows=0, sep="\t" if table.lower().endswith(".tsv") else ","
        ).columns
    except (OSError, ValueError):
        raise BadValue(f"{table!r} cannot be read as a table with a line of names.") from None
    return to_fill_in(dict.fromkeys(map(str, names)))


def main(arguments: list[str] | None = None) -> None:
    """Run the command line ``python -m dpframe``: the commands are demo, ledger, versions and init.
    ``arguments`` are those of the command line by default."""
    parser = argparse.ArgumentParser(
        prog="python -m dpframe", description="Differential privacy for pandas."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="a session on synthetic data, from start to end")
    reader = commands.add_parser(
        "ledger", help="the populations of a ledger, what they spent, and on what"
    )
    reader.add_argument(
        "file", help="its path, or the URL of a server: postgresql+psycopg://host/database"
    )
    reader.add_argument("--json", action="store_true", help="the same as JSON")
    versions = commands.add_parser(
        "versions", help="of dpframe and of what it works with, for a report"
    )
    versions.add_argument("--json", action="store_true", help="the same as JSON")
    starter = commands.add_parser(
        "init", help="a card to fill in, from the names and dtypes of a table alone"
    )
    starter.add_argument(
        "table",
        help="Parquet files, by name or pattern; or a CSV file, of which only the first line is read",
    )
    given = parser.parse_args(arguments)
    if given.command == "demo":
        return demo()
    if given.command == "versions":
        return show_versions(as_json=given.json)
    try:
        if given.command == "init":
            print(blank_card(given.table), end="")
            return
        print(
            as_json(given.file) if given.json else as_text(given.file),
            end="\n" if given.json else "",
        )
    except DPError as problem:
        sys.exit(f"dpframe: {problem}")


if __name__ == "__main__":
    main()
