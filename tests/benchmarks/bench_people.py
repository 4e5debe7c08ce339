"""People with many rows, and medians, next to plain pandas in one run: ``python tests/benchmarks/bench_people.py [rows]``."""

from __future__ import annotations

import sys
import time
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


def table(rows: int, people: int) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "user": rng.integers(0, people, rows),
            "g": rng.choice(GROUPS, rows),
            "v": rng.gamma(2.0, 20.0, rows),
        }
    )


def ratios(name: str, plain: float, first: float, again: float, aims: str) -> None:
    print(
        f"  {name:<44} {first / plain:6.2f} first, {again / plain:6.2f} again   (pandas {plain:.3f} s; aim {aims})"
    )


def run(rows: int) -> None:
    print(f"{rows} rows: time over that of plain pandas")
    for people in (rows // 10, rows):
        frame = table(rows, people)
        plain = seconds(lambda f=frame: f.groupby("user").head(5).groupby("g")["v"].mean(), 3)
        p = frame.dp.open(
            1000, unit="user", max_rows=5, max_groups=5, bounds={"v": (0, 200)}, keys={"g": GROUPS}
        )

        def ask(p: Any = p) -> Any:
            return p.groupby("g")["v"].mean(epsilon=1, fresh=True)

        ratios(
            f"group means, 5 rows of each of {people} people",
            plain,
            seconds(ask),
            seconds(ask, 3),
            "0.7, 0.25",
        )
    frame = table(rows, rows)
    plain = seconds(lambda: frame["v"].median(), 3)
    p = frame.dp.open(1000, bounds={"v": (0, 200)})

    def median() -> Any:
        return p.median("v", epsilon=1, fresh=True)

    ratios("median", plain, seconds(median), seconds(median, 3), "0.6")


if __name__ == "__main__":
    for size in sys.argv[1:] or ["1000000"]:
        run(int(size))
