"""First questions in memory next to plain polars on its own frame, and plain pandas: ``python -m tests.benchmarks.bench_memory
[rows ...]``, by default a million and ten million rows.

Each line is the time of a first question on a new session, over that of the same line of plain pandas in the same run, by
the clock and by all processors together; the lines take turns, and the best of some turns counts. Polars and pandas add no
noise and bound nobody. ``fast`` is dpframe with the extra of that name, whose kernels are loaded before (how long that takes
stands above). Memory is what a process of its own held at its peak beyond what it held before (Linux tells it), over that of
pandas. Needs polars; nothing is asserted.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl

import dpframe  # noqa: F401  (registers .dp)
from dpframe._sizes import SIZES
from tests.internals import deaf_to_noise

KEYS = [f"key{i:02d}" for i in range(50)]
GROUPS = [f"group {i}" for i in range(20)]
EDGES = np.linspace(0.0, 200.0, 101)
PricedQuestion = Callable[[Any], object]


def table(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "text": pd.Series(KEYS, dtype="str").array.take(rng.integers(0, len(KEYS), rows)),
            "key": pd.Series([f"key {i}" for i in range(10_000)], dtype="str").array.take(
                rng.integers(0, 10_000, rows)
            ),
            "number": rng.integers(0, 10_000, rows),
            "user": rng.integers(0, rows // 10, rows),
            "g": pd.Series(GROUPS, dtype="str").array.take(rng.integers(0, len(GROUPS), rows)),
            "age": rng.integers(0, 101, rows),
            "v": rng.gamma(2.0, 20.0, rows),
        }
    )


def opened(frame: pd.DataFrame, **terms: Any) -> Any:
    """A new session, which has not seen a row yet."""
    view = frame.copy(deep=False)
    view.attrs = {}
    return view.dp.open(1000, because="a benchmark", bounds={"v": (0, 200)}, delta=1e-6, **terms)


def streamed(query: pl.LazyFrame) -> pl.DataFrame:
    """What polars' engine of streams collects, which groups sooner than the other one."""
    return query.collect(engine="streaming")


# Of each question its terms, and the line of dpframe, pandas and polars.
PEOPLE = {"unit": "user", "max_rows": 5, "max_groups": 5, "keys": {"g": GROUPS}}
QUESTIONS: dict[str, tuple[dict[str, Any], PricedQuestion, PricedQuestion, PricedQuestion]] = {
    "means of 10,000 unknown keys, texts": (
        {},
        lambda p: p.groupby("key")["v"].mean(epsilon=0.2, fresh=True),
        lambda f: f.groupby("key", observed=True)["v"].mean(),
        lambda f: streamed(f.lazy().group_by("key").agg(pl.col("v").mean())),
    ),
    "means of 10,000 unknown keys, numbers": (
        {},
        lambda p: p.groupby("number")["v"].mean(epsilon=0.2, fresh=True),
        lambda f: f.groupby("number")["v"].mean(),
        lambda f: streamed(f.lazy().group_by("number").agg(pl.col("v").mean())),
    ),
    "group means, 5 rows of each person": (
        PEOPLE,
        lambda p: p.groupby("g")["v"].mean(epsilon=1, fresh=True),
        lambda f: f.groupby("user").head(5).groupby("g")["v"].mean(),
        lambda f: (
            f.lazy()
            .group_by("user")
            .agg(pl.col("g", "v").head(5))
            .explode("g", "v")
            .group_by("g")
            .agg(pl.col("v").mean())
            .collect()
        ),
    ),
    "count, sum, mean by 50 texts": (
        {"keys": {"text": KEYS}},
        lambda p: p.groupby("text").agg(
            n=("v", "count"), total=("v", "sum"), mean=("v", "mean"), epsilon=0.01, fresh=True
        ),
        lambda f: f.groupby("text")["v"].agg(["count", "sum", "mean"]),
        lambda f: streamed(
            f.lazy()
            .group_by("text")
            .agg(n=pl.col("v").count(), total=pl.col("v").sum(), mean=pl.col("v").mean())
        ),
    ),
    "histogram of 101 whole numbers": (
        {},
        lambda p: p.histogram("age", bins=range(102), epsilon=0.01, fresh=True),
        lambda f: f["age"].value_counts(sort=False).reindex(range(101)),
        lambda f: f["age"].value_counts(),
    ),
    "histogram of 100 bins": (
        {},
        lambda p: p.histogram("v", bins=EDGES.tolist(), epsilon=0.01, fresh=True),
        lambda f: np.histogram(f["v"], EDGES),
        lambda f: f["v"].hist(EDGES.tolist()),
    ),
    "mean": (
        {},
        lambda p: p.mean("v", epsilon=0.01, fresh=True),
        lambda f: f["v"].clip(0, 200).mean(),
        lambda f: f["v"].clip(0, 200).mean(),
    ),
    "median": (
        {},
        lambda p: p.median("v", epsilon=1, fresh=True),
        lambda f: f["v"].median(),
        lambda f: f["v"].median(),
    ),
}


class BoundColumn(NamedTuple):
    """Seconds on the clock, and seconds of all processors together: on a machine that others use these say more."""

    clock: float
    processors: float


def taken(action: Callable[[], object]) -> BoundColumn:
    clock, processors = time.perf_counter(), time.process_time()
    action()
    return BoundColumn(time.perf_counter() - clock, time.process_time() - processors)


@contextmanager
def kernels(wanted: bool) -> Any:
    """With the extra ``fast``, or as if it were not installed."""
    least = SIZES.kernel_rows
    SIZES.kernel_rows = least if wanted else sys.maxsize
    try:
        yield
    finally:
        SIZES.kernel_rows = least


def first(
    frame: pd.DataFrame, terms: dict[str, Any], ask: PricedQuestion, fast: bool
) -> BoundColumn:
    p = opened(frame, **terms)
    with kernels(fast):
        found = taken(lambda: ask(p))
    p.close()
    return found


def ratios(rows: int) -> None:
    frame = table(rows)
    own = pl.from_pandas(frame)
    turns = 5 if rows < 5_000_000 else 3
    print(
        f"{rows} rows: over plain pandas{'':16} time of a first question          of all processors"
    )
    print(f"  {'':40} polars  dpframe    fast     polars  dpframe    fast")
    for name, (terms, ask, by_pandas, by_polars) in QUESTIONS.items():
        lines: list[Callable[[], BoundColumn]] = [
            lambda by=by_pandas: taken(lambda: by(frame)),
            lambda by=by_polars: taken(lambda: by(own)),
            lambda terms=terms, ask=ask: first(frame, terms, ask, False),
            lambda terms=terms, ask=ask: first(frame, terms, ask, True),
        ]
        times = [[line() for line in lines] for _ in range(turns)]
        shown = []
        for way in range(2):
            usual, *others = (
                min(one[way] for one in column) for column in zip(*times, strict=True)
            )
            shown.append("  ".join(f"{one / usual:6.2f}" for one in others))
        pandas = min(turn[0].clock for turn in times)
        print(f"  {name:40} {'     '.join(shown)}   (pandas {pandas * 1e3:.1f} ms)", flush=True)


# Memory ------------------------------------------------------------------------------------------------------


def held(word: str) -> int:
    """What Linux says this process holds, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(word))


def peak(rows: int, way: str) -> None:
    """Prints what one line about people takes at its peak, in a process that has only the columns it needs."""
    frame = table(rows)[["user", "g", "v"]].copy()
    terms, ask, by_pandas, by_polars = QUESTIONS["group means, 5 rows of each person"]
    small = table(2**18)[["user", "g", "v"]].copy()
    if way == "polars":
        whole = pl.from_pandas(frame)
        del frame
        action: Callable[[], object] = lambda: by_polars(whole)  # noqa: E731
    elif way == "pandas":
        action = lambda: by_pandas(frame)  # noqa: E731
    else:
        with kernels(way == "fast"):  # whatever is loaded and compiled is loaded before
            ask(opened(small, **terms))
        p = opened(frame, **terms)
        action = lambda: ask(p)  # noqa: E731
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = held("VmRSS")
    with kernels(way != "dpframe"):
        action()
    print(held("VmHWM") - before)


def memory(rows: int) -> None:
    def of(way: str) -> int:
        command = [sys.executable, "-m", "tests.benchmarks.bench_memory", "--peak", str(rows), way]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    usual, *others = (of(way) for way in ("pandas", "polars", "dpframe", "fast"))
    shown = "  ".join(f"{one / usual:6.2f}" for one in others)
    print(
        f"  {'memory of group means of people':40} {shown}   (pandas {usual / 2**20:.0f} MB)",
        flush=True,
    )


def loading() -> None:
    """How long the first question about people takes that loads the kernels, and one that finds them loaded."""
    p = opened(table(2**20), **PEOPLE)
    ask = QUESTIONS["group means, 5 rows of each person"][1]
    began, again = (taken(lambda: ask(p)).clock for _ in range(2))
    print(f"kernels: {began:.2f} s with loading them, {again:.2f} s without")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        peak(int(sys.argv[2]), sys.argv[3])
        sys.exit()
    deaf_to_noise()
    loading()
    for given in sys.argv[1:] or ["1000000", "10000000"]:
        ratios(int(given))
        memory(int(given))
