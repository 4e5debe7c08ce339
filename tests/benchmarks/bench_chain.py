"""What a chain of ten steps costs beside the bare question, on 10,000 rows.

Steps build expressions and read nothing, so that a chain adds what it takes to put it together. Each question is new; the time is
that of the question and its steps. `python -m tests.benchmarks.bench_chain`
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any

from dpframe.datasets import BOUNDS, KEYS, visits

ROWS, ROUNDS = 10_000, 400


def bare(p: Any) -> Any:
    return p


def steps(p: Any) -> Any:
    """Ten steps that change no answer, so that what is asked of the rows takes as long."""
    return (
        p.rename(columns={"days": "stay"})
        .assign(double=p["age"] * 2)
        .drop(columns=["double"])
        .filter(items=["age", "cost", "state", "stay", "diagnosis"])
        .add_suffix("_x")
        .rename(columns={"cost_x": "cost"})
        .loc[:, ["age_x", "cost"]]
        .set_axis(["age", "cost"], axis=1)
        .reset_index(drop=True)
        .copy()
    )


def in_place(p: Any) -> Any:
    """Ten changes of one frame."""
    q = p.copy()
    q["double"] = q["age"] * 2
    q["half"] = q["age"] / 2
    q["sum"] = q["double"] + q["half"]
    q.drop(columns="sum", inplace=True)
    q.rename(columns={"half": "h"}, inplace=True)
    q["one"] = 1
    del q["h"]
    q[["a", "b"]] = q[["age", "days"]]
    q.insert(0, "first", q["age"])
    q.reset_index(drop=True, inplace=True)
    return q


def seconds(make: Callable[[Any], Any]) -> float:
    """The median time of a question that was not asked before, with its steps."""
    p = visits(ROWS).dp.open(1000, delta=1e-6, queries=1_000_000, bounds=BOUNDS, keys=KEYS)
    took = []
    gc.collect()
    gc.disable()
    for i in range(ROUNDS):
        before = perf_counter()
        make(p).mean("cost", epsilon=0.001, fresh=True)
        took.append(perf_counter() - before)
        del i
    gc.enable()
    return statistics.median(took)


def main() -> None:
    base = seconds(bare)
    print(f"the bare question       {base * 1e6:8.0f} us")
    for make in (steps, in_place):
        print(
            f"{make.__name__:<24}{seconds(make) * 1e6:8.0f} us   {(seconds(make) - base) * 1e6:+8.0f} us"
        )


if __name__ == "__main__":
    main()
