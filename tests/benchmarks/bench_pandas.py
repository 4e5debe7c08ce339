"""Private answers next to plain pandas in one run: ratios of the best of some repeats. Nothing is asserted.

    python -m tests.benchmarks.bench_pandas            # 10^6 rows and the small-frame latencies
    python -m tests.benchmarks.bench_pandas 10000000   # another number of rows

Run it on a quiet machine; a ratio above its aim is marked.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import dpframe

KEYS = [f"key{i:02d}" for i in range(50)]
TERMS: dict[str, Any] = {
    "epsilon": 1000,
    "bounds": {"x": (0, 100), "age": (0, 100)},
    "keys": {"text": KEYS, "category": KEYS},
    "because": "a benchmark opens the same table many times",
}
AIMS = {
    "group-by, strings, first": {10**6: 0.6, 10**7: 0.4},
    "group-by, strings, repeated": {10**6: 0.25, 10**7: 0.25},
    "group-by, categories, repeated": {10**6: 0.25, 10**7: 0.25},
    "mean, first": {10**6: 0.5, 10**7: 0.3},
    "mean, repeated": {10**6: 0.5, 10**7: 0.3},
    "histogram, first": {10**6: 0.7, 10**7: 0.7},
    "histogram, repeated": {10**6: 0.7, 10**7: 0.7},
}


def table(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    text = pd.Series(np.array(KEYS, dtype=object)[rng.integers(0, 50, rows)], dtype="str")
    frame = pd.DataFrame(
        {"text": text, "x": rng.normal(50, 20, rows), "age": rng.integers(0, 101, rows)}
    )
    return frame.assign(category=frame["text"].astype("category"))


def opened(frame: pd.DataFrame) -> dpframe.PrivateFrame:
    """A new session, which has not seen any key yet."""
    view = frame.copy(deep=False)
    view.attrs = {}
    private: dpframe.PrivateFrame = view.dp.open(**TERMS)
    return private


def best(action: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def first(
    frame: pd.DataFrame, ask: Callable[[dpframe.PrivateFrame], object], repeats: int = 3
) -> float:
    sessions = [opened(frame) for _ in range(repeats)]
    return min(best(partial(ask, p), 1) for p in sessions)


def group_by(by: str) -> Callable[[dpframe.PrivateFrame], object]:
    return lambda p: p.groupby(by).agg(
        n=("x", "count"), total=("x", "sum"), mean=("x", "mean"), epsilon=0.01, fresh=True
    )


def ratios(rows: int) -> None:
    frame = table(rows)
    questions: list[tuple[str, float, Callable[[dpframe.PrivateFrame], object]]] = [
        (
            "group-by, strings",
            best(lambda: frame.groupby("text")["x"].agg(["count", "sum", "mean"]), 3),
            group_by("text"),
        ),
        (
            "mean",
            best(lambda: frame["x"].clip(0, 100).mean()),
            lambda p: p.mean("x", epsilon=0.01, fresh=True),
        ),
        (
            "histogram",
            best(lambda: frame["age"].value_counts(sort=False).reindex(range(101))),
            lambda p: p.histogram("age", bins=range(102), epsilon=0.01, fresh=True),
        ),
    ]
    # Categories are held against the same pandas line on strings.
    questions.insert(1, ("group-by, categories", questions[0][1], group_by("category")))
    print(f"{rows} rows: time over that of plain pandas")
    for name, plain, ask in questions:
        p = opened(frame)
        ask(p)
        for way, seconds in (("first", first(frame, ask)), ("repeated", best(partial(ask, p)))):
            label, ratio = f"{name}, {way}", seconds / plain
            aim = AIMS.get(label, {}).get(rows)
            note = "" if aim is None else f"  aim {aim}" + ("" if ratio <= aim else "  MISSED")
            print(f"  {label:32} {ratio:5.2f}  (pandas {plain * 1e3:.1f} ms){note}")


SMALL = {
    "open": 600,
    "count": 60,
    "mean": 130,
    "filtered count": 120,
    "histogram": 160,
    "group mean": 250,
}
SMALL["group count, sum, mean"] = 350


def latencies(repeats: int = 300) -> None:
    """One small question, next to the pandas line that it stands for."""
    plain = table(10_000)
    p, frames = opened(table(10_000)), [table(10_000) for _ in range(40)]
    actions: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "count": (lambda: p.count(epsilon=0.01, fresh=True), lambda: len(plain)),
        "mean": (
            lambda: p.mean("x", epsilon=0.01, fresh=True),
            lambda: plain["x"].clip(0, 100).mean(),
        ),
        "filtered count": (
            lambda: p.query("age > 30").count(epsilon=0.01, fresh=True),
            lambda: len(plain.query("age > 30")),
        ),
        "histogram": (
            lambda: p.histogram("age", bins=range(102), epsilon=0.01, fresh=True),
            lambda: plain["age"].value_counts(sort=False).reindex(range(101)),
        ),
        "group mean": (
            lambda: p.groupby("text")["x"].mean(epsilon=0.01, fresh=True),
            lambda: plain.groupby("text")["x"].mean(),
        ),
        "group count, sum, mean": (
            lambda: group_by("text")(p),
            lambda: plain.groupby("text")["x"].agg(["count", "sum", "mean"]),
        ),
    }
    print("10000 rows: microseconds, the best and the median, and those of pandas")
    times = sorted(best(partial(opened, frame), 1) * 1e6 for frame in frames)
    print(f"  {'open':32} {times[0]:5.0f} {times[len(times) // 2]:5.0f}        aim {SMALL['open']}")
    for name, (action, usual) in actions.items():
        action()
        times = sorted(best(action, 1) * 1e6 for _ in range(repeats))
        pandas = best(usual, repeats) * 1e6
        print(
            f"  {name:32} {times[0]:5.0f} {times[len(times) // 2]:5.0f} {pandas:6.0f}  aim {SMALL[name]}"
        )


if __name__ == "__main__":
    for given in sys.argv[1:] or ["1000000"]:
        ratios(int(given))
    latencies()
