"""Randomizing rows, next to numpy's insecure coins on the same machine in the same run.

Run ``python -m tests.benchmarks.bench_local [ROWS]`` where dpframe is installed; ten million rows unless said otherwise.
Each figure is the best of five; the ratio that the project promises, for yes and no, is below four.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd

from dpframe import local
from dpframe.mechanisms.response import Response

RNG = np.random.default_rng(1)
TRUTH = 0.7310585786300049  # of epsilon 1


def best(run: Callable[[], object]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def numpy_way(values: np.ndarray, k: int) -> Callable[[], object]:
    if k == 2:
        return lambda: np.where(RNG.random(len(values)) < TRUTH, values, ~values)
    return lambda: np.where(
        RNG.random(len(values)) < TRUTH, values, RNG.integers(0, k, len(values), dtype=values.dtype)
    )


def main(rows: int) -> None:
    print(f"{rows} rows; seconds, and times numpy's rng.random(n) < p and where")
    for k in (2, 5, 300):
        values = RNG.integers(0, k, rows, dtype=np.uint16 if k > 256 else np.uint8)
        insecure = best(numpy_way(values == 1 if k == 2 else values, k))
        places, response = values + 1, Response(Fraction(1), k)
        own = best(partial(response.respond, places))
        print(
            f"coins of {k} values: numpy {insecure:.3f}, dpframe {own:.3f}, ratio {own / insecure:.2f}"
        )

    smokes = RNG.random(rows) < 0.3
    df = pd.DataFrame({"smoker": smokes, "age": RNG.integers(0, 100, rows)})
    p = df.dp.open(1000, neighbors="replace-one", bounds={"age": (0, 110)})
    p.count(epsilon=1)  # columns are normalised once
    insecure = best(numpy_way(smokes, 2))
    for name in ("smoker", "age"):
        own = best(partial(p.randomize, name, epsilon=1, fresh=True))
        print(f"{name}.dp.randomize(), all of it: {own:.3f}, ratio {own / insecure:.2f}")
    reports = p.randomize("smoker", epsilon=1)
    print(f"estimate: {best(lambda: local.estimate(reports)):.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**7)
