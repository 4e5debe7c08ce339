"""``python -m dpframe``: ``count``, ``mean``, ``histogram`` and ``groupby`` on a file; ``demo``, a
session from start to end; ``ledger FILE``; ``init FILE``, a card; ``versions``."""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import textwrap
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd

from dpframe import (
    BadType,
    BadValue,
    DPError,
    MissingBounds,
    MissingKeys,
    PrivateFrame,
    __version__,
    private,
)
from dpframe._answers.pages import find_answer
from dpframe._frame.sources import recognise_source
from dpframe._frame.verbs.looking import public_dtype
from dpframe._ledger import exists
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


# Questions on a file ----------------------------------------------------------------------------

QUESTIONS = ("count", "mean", "histogram", "groupby")
FORMATS = ("text", "csv", "json")
HINTS: dict[type[Exception], str] = {
    MissingBounds: "On the command line: --bounds LOW HIGH.",
    MissingKeys: "On the command line: --keys KEY KEY, or --delta with a new budget.",
}
WIDE = 200  # characters of a line where there is no terminal


class _Parser(argparse.ArgumentParser):
    """A parser of arguments that reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        """Print the problem and the usage as one line, and exit with status 2."""
        _fail(f"{message} ({' '.join(self.format_usage().split())})")


def _fail(problem: object) -> NoReturn:
    """Print a problem as one line on standard error, and exit with status 2."""
    print(f"dpframe: {' '.join(str(problem).split())}", file=sys.stderr)
    sys.exit(2)


def read_table(path: str) -> pd.DataFrame:
    """Return a CSV or a Parquet file as a DataFrame; the error for another file quotes no cell."""
    name = path.lower()
    try:
        if name.endswith((".csv", ".csv.gz", ".tsv")):
            return pd.read_csv(path, sep="\t" if name.endswith(".tsv") else ",")
        if name.endswith((".parquet", ".pq")):
            table = pd.read_parquet(path)
            table.attrs = {}  # a file may name the session of the frame that was written
            return table
    except FileNotFoundError:
        raise BadValue(f"there is no file {path!r}.") from None
    except (OSError, ValueError):
        raise BadValue(f"{path!r} cannot be read as a table.") from None
    raise BadValue(f"{path!r} has an unknown ending: a table is a .csv, .tsv or .parquet file.")


def _open_table(given: argparse.Namespace) -> PrivateFrame:
    """Return the session of the table that a command names, with the terms of its options."""
    frame = read_table(given.file)
    for name in (given.column, given.key):
        if name is not None and name not in frame.columns:
            raise BadValue(f"no column {name!r}. The columns are {', '.join(map(str, frame))}.")
    terms: dict[str, Any] = {
        "epsilon": given.budget,
        "delta": given.delta,
        "unit": given.unit,
        "max_rows": given.max_rows,
        "max_groups": given.max_groups,
        "version": given.version,
        "card": given.card,
    }
    if given.ledger is not None:
        terms["ledger"] = given.ledger
        terms["population"] = given.population or Path(given.file).name.partition(".")[0]
    if given.budget is None and (given.ledger is None or not exists(given.ledger)):
        terms["epsilon"] = 1.0
    if given.bounds is not None and given.column is not None:
        terms["bounds"] = {given.column: tuple(given.bounds)}
    if given.keys is not None:
        terms["keys"] = {given.key: _read_keys(given.keys, frame[given.key])}
    named = {word: value for word, value in terms.items() if value is not None}
    frame.dp.open(**named)
    return private(frame)


def _read_keys(texts: list[str], column: Series) -> list[object]:
    """Return keys from the command line in the type of their column."""
    kind = column.dtype.kind
    read: Any = {"i": int, "u": int, "f": float}.get(kind, str)
    try:
        if kind == "b":
            return [{"true": True, "false": False}[text.lower()] for text in texts]
        return [read(text) for text in texts]
    except (ValueError, KeyError):
        raise BadValue(
            f"--keys are values of {column.name!r}, whose dtype is {column.dtype}."
        ) from None


def ask_file(given: argparse.Namespace) -> tuple[PrivateFrame, Any]:
    """Ask the question of a command about its file; return the session and the answer."""
    p = _open_table(given)
    asked = p if given.where is None else p.query(given.where)
    price = {} if given.epsilon is None else {"epsilon": given.epsilon}
    if given.command == "count":
        return p, asked.count(**price)
    if given.command == "mean":
        return p, asked.mean(given.column, **price)
    if given.command == "histogram":
        bins = given.bins
        whole = len(bins) == 1 and bins[0] == int(bins[0])
        return p, asked.histogram(given.column, bins=int(bins[0]) if whole else bins, **price)
    groups = asked.groupby(given.key)
    if given.column is None:
        return p, groups.size(**price)
    return p, getattr(groups[given.column], given.agg)(**price)


def write_answer(p: PrivateFrame, answer: Any, form: str) -> str:
    """Return an answer as text, CSV or JSON, with intervals and the digits that noise leaves."""
    found = find_answer(answer)
    if found is None:
        raise BadType("this answer has no numbers to show.")
    if form == "csv":
        return str(found.to_csv())
    table = found.table()
    if form == "json":
        rounded = json.loads(table.round_to_intervals().to_json(orient="records"))
        record = {"caption": table.caption, "answer": rounded, "budget": p.budget.registry()}
        return json.dumps(record, indent=1, allow_nan=False) + "\n"
    width = shutil.get_terminal_size((WIDE, 24)).columns
    lines = [textwrap.fill(line, width) for line in [table.caption, *repr(p.budget).split("\n")]]
    return "\n".join([table.to_markdown(width=width), *lines, ""])


def answer_command(given: argparse.Namespace) -> None:
    """Answer the question of a command, and print it; an error is one line and status 2."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            p, answer = ask_file(given)
            text = write_answer(p, answer, given.format)
        except (DPError, ImportError, OSError) as problem:
            hints = [hint for kind, hint in HINTS.items() if isinstance(problem, kind)]
            _fail(" ".join([str(problem), *hints]))
    for warning in caught:
        print(f"dpframe: {' '.join(str(warning.message).split())}", file=sys.stderr)
    if given.ledger is None:
        note = "without --ledger this run and the next have a budget each"
        print(f"dpframe: {note}, which add up.", file=sys.stderr)
    print(text, end="")


def _add_questions(commands: Any) -> None:
    """Add the commands that ask a question about a file, with their arguments."""
    helps = {
        "count": "how many rows a table has, with noise",
        "mean": "the mean of a column",
        "histogram": "how many values of a column are in each bin",
        "groupby": "how many rows each group has, or the mean or the sum of a column in it",
    }
    for name in QUESTIONS:
        parser = commands.add_parser(name, help=helps[name], description=helps[name])
        parser.add_argument("file", help="a .csv, .tsv or .parquet file")
        parser.set_defaults(column=None, key=None, keys=None, bounds=None)
        if name == "groupby":
            parser.add_argument("key", help="the column whose values are the groups")
            parser.add_argument("column", nargs="?", help="the column to add up; none: rows")
            parser.add_argument("--agg", choices=("mean", "sum"), default="mean")
            parser.add_argument("--keys", nargs="+", help="the groups that may appear, public")
        elif name != "count":
            parser.add_argument("column")
        if name == "histogram":
            parser.add_argument(
                "--bins", nargs="+", type=float, default=[10], help="their number, or their edges"
            )
        if name != "count":
            parser.add_argument(
                "--bounds",
                nargs=2,
                type=float,
                metavar=("LOW", "HIGH"),
                help="public, of the column",
            )
        _add_terms(parser)


def _add_terms(parser: argparse.ArgumentParser) -> None:
    """Add the options of a session and of a price, which all questions have."""
    options: dict[str, dict[str, Any]] = {
        "--epsilon": {"type": float, "help": "the price of this question; a share if left out"},
        "--where": {"help": "count only rows where this holds: 'age >= 65'"},
        "--ledger": {"help": "the file that keeps the budget between runs"},
        "--population": {"help": "the name of these people in it; that of the file if left out"},
        "--budget": {"type": float, "help": "the whole epsilon of a new budget; 1 if left out"},
        "--delta": {"type": float, "help": "the whole delta of a new budget"},
        "--unit": {"help": "the column that names a person with several rows"},
        "--max-rows": {"type": int, "help": "for how many rows a person counts"},
        "--max-groups": {"type": int, "help": "in how many groups a person counts"},
        "--version": {"help": "the name of this state of the data"},
        "--card": {"help": "a file with the public facts of the table"},
        "--format": {"choices": FORMATS, "default": "text"},
    }
    for name, words in options.items():
        parser.add_argument(name, **words)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line ``python -m dpframe``, a question about a file or another command.

    ``arguments`` are those of the command line by default.
    """
    parser = _Parser(prog="python -m dpframe", description="Differential privacy for pandas.")
    commands = parser.add_subparsers(dest="command", required=True)
    _add_questions(commands)
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
    if given.command in QUESTIONS:
        return answer_command(given)
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
