"""People with many rows, keys nobody listed, and medians: ``python -m tests.benchmarks.bench_people [rows]``.

Times are ratios to the same line of plain pandas in one run, the first time on a new session and again with
``fresh=True``; with the extra ``fast`` people are counted by its kernels, which are loaded before. Memory is the
largest amount that was allocated at once, over that of pandas.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import dpframe  # noqa: F401  (registers .dp)

GROUPS = [f"group {i}" for i in range(20)]


def seconds(call: Callable[[], Any], times: int = 1) -> float:
    best = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return best


def peak(call: Callable[[], Any]) -> int:
    tracemalloc.start()
    call()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def table(rows: int, people: int) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "user": rng.integers(0, people, rows),
            "g": rng.choice(GROUPS, rows),
            "v": rng.gamma(2.0, 20.0, rows),
        }
    )


def opened(frame: pd.DataFrame, **words: Any) -> Any:
    frame.attrs.clear()
    return frame.dp.open(1000, because="a benchmark", bounds={"v": (0, 200)}, **words)


def ratios(name: str, plain: float, first: float, again: float, aims: str) -> None:
    print(
        f"  {name:<44} {first / plain:6.2f} first, {again / plain:6.2f} again   (pandas {plain:.3f} s; aim {aims})"
    )


def run(rows: int) -> None:
    warm = opened(table(2**18, 2**10), unit="user", max_rows=5, max_groups=5, keys={"g": GROUPS})
    warm.groupby("g")["v"].mean(epsilon=1)  # with the extra `fast` its kernels are loaded
    warm.close()
    print(f"{rows} rows: time over that of plain pandas")
    for people in (rows // 10, rows):
        for kind in ("str", "category"):
            frame = table(rows, people).astype({"g": kind})

            def plain(f: pd.DataFrame = frame) -> Any:
                return f.groupby("user").head(5).groupby("g", observed=True)["v"].mean()

            def ask(p: Any) -> Any:
                return p.groupby("g")["v"].mean(epsilon=1, fresh=True)

            limits = {"unit": "user", "max_rows": 5, "max_groups": 5, "keys": {"g": GROUPS}}
            usual = seconds(plain, 3)
            p = opened(frame, **limits)
            first, again = seconds(lambda p=p: ask(p)), seconds(lambda p=p: ask(p), 3)
            ratios(
                f"group means, 5 rows of each of {people} people, {kind}",
                usual,
                first,
                again,
                "0.7, 0.25",
            )
            p.close()
            p = opened(frame, **limits)
            print(f"    memory {peak(lambda p=p: ask(p)) / peak(plain):.2f} of pandas' (aim 0.6)")
            p.close()
    for kind in ("str", "category", "int64"):
        numbers = np.random.default_rng(5).integers(0, 10_000, rows)
        keys = (
            pd.Series(numbers)
            if kind == "int64"
            else pd.Series([f"key {i}" for i in range(10_000)])[numbers]
        )
        frame = pd.DataFrame(
            {"k": keys.astype(kind).array, "v": np.random.default_rng(6).gamma(2.0, 20.0, rows)}
        )
        usual = seconds(lambda f=frame: f.groupby("k", observed=True)["v"].mean(), 3)
        p = opened(frame, delta=1e-6)

        def found(p: Any = p) -> Any:
            return p.groupby("k")["v"].mean(epsilon=0.2, fresh=True)

        ratios(
            f"means of 10,000 keys nobody listed, {kind}",
            usual,
            seconds(found),
            seconds(found, 3),
            "0.9, 0.6",
        )
        p.close()
    frame = table(rows, rows)
    usual = seconds(lambda: frame["v"].median(), 3)
    p = opened(frame)

    def median() -> Any:
        return p.median("v", epsilon=1, fresh=True)

    ratios("median", usual, seconds(median), seconds(median, 3), "0.6")


if __name__ == "__main__":
    for size in sys.argv[1:] or ["1000000"]:
        run(int(size))
