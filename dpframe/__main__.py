"""``python -m dpframe``: ``demo``, a session on a synthetic visits table; ``ledger FILE``, what a ledger holds."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import pandas as pd

from dpframe import DPError, private
from dpframe._ledger.history import as_json, as_text
from dpframe.datasets import BOUNDS, KEYS, visits


def _show(line: str, answer: Any, interval: Any, price: float) -> None:
    print(f"\n>>> {line}\n{answer}")
    if interval is not None:
        print(f"95 % interval {interval}; price epsilon {price:g}")
    else:
        print(f"price epsilon {price:g}")


def _table(answer: pd.Series[Any]) -> pd.DataFrame:
    frame = answer.to_frame(answer.name or "size")
    interval: pd.DataFrame = answer.dp.interval()
    return frame.join(interval).round(1)


def demo() -> None:
    """Opens a session, asks a count, a mean, a histogram, an argmax and a group-by, and shows what is left."""
    frame = visits()
    print(f"A synthetic table of {len(frame)} hospital visits, one row a person.")
    print(">>> visits.dp.open(epsilon=2, bounds={...}, keys={...})")
    frame.dp.open(epsilon=2, bounds=BOUNDS, keys=KEYS)
    p = private(frame)

    count = p.query("age >= 65").count()
    _show('visits.dp.query("age >= 65").count()', repr(count), count.interval(), float(count.cost.epsilon))
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
        'visits.dp.histogram("age", bins=range(0, 111, 10))', _table(ages), "beside each bin", p.budget.share
    )
    common = p.argmax("diagnosis")
    _show('visits.dp.argmax("diagnosis")', common, None, p.budget.share)
    costs = p.groupby("state")["cost"].mean(epsilon=0.4)
    _show('visits.dp.groupby("state")["cost"].mean(epsilon=0.4)', _table(costs), "beside each state", 0.4)

    print("\n>>> visits.dp.budget")
    print(p.budget)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m dpframe", description="Differential privacy for pandas.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="a session on synthetic data, from start to end")
    reader = commands.add_parser("ledger", help="the populations of a ledger, what they spent, and on what")
    reader.add_argument("file", help="its path, or the URL of a server: postgresql+psycopg://host/database")
    reader.add_argument("--json", action="store_true", help="the same as JSON")
    given = parser.parse_args(arguments)
    if given.command == "demo":
        demo()
        return
    try:
        print(as_json(given.file) if given.json else as_text(given.file), end="\n" if given.json else "")
    except DPError as problem:
        sys.exit(f"dpframe: {problem}")


if __name__ == "__main__":
    main()
