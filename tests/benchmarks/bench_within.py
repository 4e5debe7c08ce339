"""Verbs within a person next to plain pandas: a million rows of two hundred thousand people, the first question of a session.

``make bench BENCH=within``. Processor time, the best of seven by turns; beside it what the bare question takes: a number of rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

ROWS, PEOPLE, ROUNDS = 1_000_000, 200_000, 7
TERMS: dict[str, Any] = {
    "unit": "id",
    "max_rows": 10,
    "max_groups": 3,
    "bounds": {"cost": (0, 5000), "gap": (0, 5000)},
    "keys": {"state": ["CA", "NY", "TX"]},
}
VERBS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda d: d.groupby("id")["cost"].sum(),
    "mean": lambda d: d.groupby("id")["cost"].mean(),
    "std": lambda d: d.groupby("id")["cost"].std(),
    "max": lambda d: d.groupby("id")["cost"].max(),
    "first": lambda d: d.groupby("id")["cost"].first(),
    "median": lambda d: d.groupby("id")["cost"].median(),
    "size": lambda d: d.groupby("id").size(),
    "nunique": lambda d: d.groupby("id")["state"].nunique(),
    "transform": lambda d: d.groupby("id")["cost"].transform("mean"),
    "shift": lambda d: d.groupby("id")["cost"].shift(),
    "ffill": lambda d: d.groupby("id")["gap"].ffill(),
    "cumcount": lambda d: d.groupby("id").cumcount(),
    "head": lambda d: d.groupby("id").head(2)["cost"],
    "cumsum": lambda d: d.groupby("id")["cost"].cumsum(),
    "rank": lambda d: d.groupby("id")["cost"].rank(),
    "sorted head": lambda d: d.sort_values("t").groupby("id").head(1)["cost"],
    "sorted first": lambda d: d.sort_values("t").groupby("id")["cost"].first(),
    "drop_duplicates": lambda d: d.drop_duplicates("id")["cost"],
}


def visits() -> pd.DataFrame:
    """A table of visits."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": rng.integers(0, PEOPLE, ROWS),
            "cost": rng.gamma(2, 300, ROWS),
            "gap": np.where(rng.random(ROWS) < 0.2, np.nan, rng.gamma(2, 300, ROWS)),
            "t": rng.permutation(ROWS),
            "state": rng.choice(["CA", "NY", "TX"], ROWS),
        }
    )


def seconds(*questions: tuple[Callable[[], Any], Callable[[Any], Any]]) -> list[float]:
    """The processor time of each question, the best of so many by turns, so that all of them find the machine as it is."""
    best = [float("inf")] * len(questions)
    for _ in range(ROUNDS):
        for i, (make, ask) in enumerate(questions):
            asked = make()
            start = time.process_time()
            ask(asked)
            best[i] = min(best[i], time.process_time() - start)
            del asked
    return best


def main() -> None:
    """Prints the table."""
    import dpframe  # noqa: F401  (the accessor)

    warnings.simplefilter("ignore")
    frame = visits()

    def opened() -> Any:
        return frame.copy().dp.open(1000, because="a benchmark", **TERMS)

    (bare,) = seconds((opened, lambda p: p.count(epsilon=1)))
    print(f"{'':<16} {'pandas':>9} {'dpframe':>9}   (a count alone {1000 * bare:.0f} ms)")
    for name, verb in VERBS.items():
        plain, ours = seconds(
            (frame.copy, lambda d, verb=verb: verb(d).mean()),
            (opened, lambda p, verb=verb: verb(p).mean(epsilon=1)),
        )
        print(
            f"{name:<16} {1000 * plain:>6.0f} ms {1000 * ours:>6.0f} ms   {ours / plain:.1f} times"
        )


if __name__ == "__main__":
    main()
