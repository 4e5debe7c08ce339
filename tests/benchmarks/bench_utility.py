"""How far answers are from the truth, next to the textbook at the same price: ``python tests/benchmarks/bench_utility.py``.

Root mean square over 1000 releases of 100,000 rows, and 200 where people have many. The textbook: Laplace noise; the price
halved between a sum and a count and divided by what one person may move; five rows of a person drawn first; keys by a
Laplace threshold; a median by the exponential mechanism. Its noise is numpy's, as it is drawn here for comparison only.
The price is epsilon 0.5, and where a session has delta, delta 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import dpframe  # noqa: F401  (registers .dp)

EPSILON, DELTA = 0.5, 1e-6
ROWS, PEOPLE, GROUPS = 100_000, 20_000, [f"g{i}" for i in range(12)]
RNG = np.random.default_rng(11)


def table() -> pd.DataFrame:
    """Many rows of some people, some groups larger than others, costs that depend on the group."""
    person = RNG.choice(PEOPLE, ROWS, p=RNG.dirichlet(np.full(PEOPLE, 0.7)))
    group = RNG.choice(len(GROUPS), ROWS, p=np.arange(1, 13) / 78)
    return pd.DataFrame(
        {
            "id": person,
            "g": np.array(GROUPS)[group],
            "age": np.clip(RNG.normal(45, 18, ROWS), 0, 100),
            "cost": np.clip(RNG.gamma(2.0, 20.0 + 3 * group, ROWS), 0, 200),
        }
    )


def noise(scale: float, size: int | None = None) -> Any:
    return RNG.laplace(0, scale, size)


def error(ask: Callable[[], Any], truth: Any, releases: int = 1000) -> float:
    """Over releases and, of several numbers, over these."""
    misses = [np.asarray(ask(), dtype=float) - np.asarray(truth, dtype=float) for _ in range(releases)]
    return float(np.sqrt(np.mean(np.square(misses))))


def five_each(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sample(frac=1, random_state=int(RNG.integers(2**31))).groupby("id").head(5)


def line(name: str, ours: float, textbook: float) -> None:
    print(f"{name:<52}{ours:>10.4g}{textbook:>12.4g}{textbook / ours:>9.2f}")


def opened(frame: pd.DataFrame, delta: float, **words: Any) -> Any:
    frame = frame.copy()
    frame.attrs.clear()
    bounds = {"age": (0, 100), "cost": (0, 200)}
    # A budget of which every release has the price named above, and no more.
    return frame.dp.open(1024, delta, bounds=bounds, keys={"g": GROUPS}, because="a benchmark", **words)


def rows_are_people(frame: pd.DataFrame, delta: float) -> None:
    words: dict[str, Any] = {"epsilon": EPSILON, "fresh": True} | ({"delta": DELTA} if delta else {})
    e = EPSILON

    def ask(verb: Callable[[Any], Any]) -> Callable[[], Any]:
        p = opened(frame, delta, accountant="pure")
        return lambda: verb(p)

    line(
        "count",
        error(ask(lambda p: p.count(**words)), len(frame)),
        error(lambda: len(frame) + noise(1 / e), len(frame)),
    )
    age = frame["age"]
    line(
        "mean",
        error(ask(lambda p: p.mean("age", **words)), age.mean()),
        error(lambda: (age.sum() + noise(100 * 2 / e)) / (len(age) + noise(2 / e)), age.mean()),
    )
    edges = np.linspace(0, 101, 102)
    counts = np.histogram(age, edges)[0]
    line(
        "histogram of 101 bins",
        error(ask(lambda p: p.histogram("age", bins=list(edges), **words)), counts),
        error(lambda: counts + noise(1 / e, len(counts)), counts),
    )
    questions = {f"q{i}": f"age > {i} and cost < {2 * i + 20}" for i in range(0, 80, 2)}
    exact = [int(((frame["age"] > i) & (frame["cost"] < 2 * i + 20)).sum()) for i in range(0, 80, 2)]
    line(
        f"{len(exact)} overlapping counts",
        error(ask(lambda p: p.counts(questions, **words)), exact),
        error(lambda: exact + noise(len(exact) / e, len(exact)), exact),
    )
    means = frame.groupby("g")["cost"].mean().loc[GROUPS]
    sums, sizes = frame.groupby("g")["cost"].sum().loc[GROUPS], frame.groupby("g").size().loc[GROUPS]
    line(
        "group means",
        error(ask(lambda p: p.groupby("g")["cost"].mean(**words)), means),
        error(lambda: (sums + noise(200 * 2 / e, 12)) / np.maximum(sizes + noise(2 / e, 12), 1), means),
    )
    values = np.sort(age.to_numpy())
    points = np.arange(0, 100 + 1 / 64, 1 / 32)  # ours, as the plan has them
    ranks = np.searchsorted(values, points)

    def textbook_median() -> float:
        utility = -np.abs(ranks - len(values) / 2) * e / 2
        weights = np.exp(utility - utility.max())
        return float(RNG.choice(points, p=weights / weights.sum()))

    line(
        "median",
        error(ask(lambda p: p.median("age", **words)), age.median()),
        error(textbook_median, age.median()),
    )


def people_have_rows(frame: pd.DataFrame, delta: float) -> None:
    words: dict[str, Any] = {"epsilon": EPSILON, "fresh": True} | ({"delta": DELTA} if delta else {})
    p = opened(frame, delta, accountant="pure", unit="id", max_rows=5, max_groups=5)
    means = frame.groupby("g")["cost"].mean().loc[GROUPS]

    def textbook() -> Any:
        few = five_each(frame).groupby("g")["cost"]
        total, n = few.sum().reindex(GROUPS), few.size().reindex(GROUPS)
        scale = 2 * 5 / EPSILON  # five rows of a person, wherever they are
        return (total + noise(200 * scale, 12)) / np.maximum(n + noise(scale, 12), 1)

    line(
        "group means, 5 rows of each person",
        error(lambda: p.groupby("g")["cost"].mean(max_rows=1, **words), means, 200),
        error(textbook, means, 200),
    )
    mean = frame["cost"].mean()

    def textbook_mean() -> float:
        few, scale = five_each(frame)["cost"], 2 * 5 / EPSILON
        return float((few.sum() + noise(200 * scale)) / (len(few) + noise(scale)))

    line(
        "mean, 5 rows of each person",
        error(lambda: p.mean("cost", **words), mean, 200),
        error(textbook_mean, mean, 200),
    )


def keys_found() -> None:
    """How many of 10,000 keys are kept, on average: a person has up to so many of them."""
    for most in (1, 5, 20):
        keys = RNG.zipf(1.25, 400_000) % 10_000
        frame = pd.DataFrame({"id": np.arange(400_000) // most, "k": keys})
        people = frame.drop_duplicates().groupby("k").size().to_numpy()
        p = frame.dp.open(1024, 0.01, unit="id", max_groups=most, accountant="pure")
        ours = [len(p.unique("k", epsilon=EPSILON, delta=DELTA, fresh=True)) for _ in range(20)]
        threshold = 1 + most / EPSILON * math.log(most / (2 * DELTA))
        textbook = [(people + noise(most / EPSILON, len(people)) > threshold).sum() for _ in range(20)]
        print(
            f"{f'{most} a person':<52}{np.mean(ours):>10.1f}{np.mean(textbook):>12.1f}{np.mean(ours) / np.mean(textbook):>9.2f}"
        )


if __name__ == "__main__":
    data = table()
    for budget in (0.0, 0.01):
        print(
            f"\n{'delta ' + (f'{DELTA:g}' if budget else '0'):<52}{'dpframe':>10}{'textbook':>12}{'better':>9}"
        )
        rows_are_people(data, budget)
        people_have_rows(data, budget)
    print(f"\n{'keys found of 10,000, delta 1e-06':<52}{'dpframe':>10}{'textbook':>12}{'better':>9}")
    keys_found()
