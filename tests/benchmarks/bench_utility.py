"""How far answers are from the truth, next to the textbook at the same price: ``python -m tests.benchmarks.bench_utility``.

Root mean square over 1000 releases of 100,000 rows, and 200 where people have many. The textbook: Laplace noise; the price
halved between a sum and a count and divided by what one person may move; five rows of a person drawn first; keys by a
Laplace threshold; a median by the exponential mechanism. Its noise is numpy's, as it is drawn here for comparison only.
The price is epsilon 0.5, and where a session has delta, delta 1e-6. With the argument ``keys`` only the last table: keys that
are found with their counts, next to the published rules of others.
"""

from __future__ import annotations

import math
import sys
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
    misses = [
        np.asarray(ask(), dtype=float) - np.asarray(truth, dtype=float) for _ in range(releases)
    ]
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
    return frame.dp.open(
        1024, delta, bounds=bounds, keys={"g": GROUPS}, because="a benchmark", **words
    )


def rows_are_people(frame: pd.DataFrame, delta: float) -> None:
    words: dict[str, Any] = {"epsilon": EPSILON, "fresh": True} | (
        {"delta": DELTA} if delta else {}
    )
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
    exact = [
        int(((frame["age"] > i) & (frame["cost"] < 2 * i + 20)).sum()) for i in range(0, 80, 2)
    ]
    line(
        f"{len(exact)} overlapping counts",
        error(ask(lambda p: p.counts(questions, **words)), exact),
        error(lambda: exact + noise(len(exact) / e, len(exact)), exact),
    )
    means = frame.groupby("g")["cost"].mean().loc[GROUPS]
    sums, sizes = (
        frame.groupby("g")["cost"].sum().loc[GROUPS],
        frame.groupby("g").size().loc[GROUPS],
    )
    line(
        "group means",
        error(ask(lambda p: p.groupby("g")["cost"].mean(**words)), means),
        error(
            lambda: (sums + noise(200 * 2 / e, 12)) / np.maximum(sizes + noise(2 / e, 12), 1), means
        ),
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
    words: dict[str, Any] = {"epsilon": EPSILON, "fresh": True} | (
        {"delta": DELTA} if delta else {}
    )
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
        p = frame.dp.open(
            1024, 0.01, unit="id", max_groups=most, accountant="pure", because="a benchmark"
        )
        ours = [len(p.unique("k", epsilon=EPSILON, delta=DELTA, fresh=True)) for _ in range(20)]
        threshold = 1 + most / EPSILON * math.log(most / (2 * DELTA))
        textbook = [
            (people + noise(most / EPSILON, len(people)) > threshold).sum() for _ in range(20)
        ]
        print(
            f"{f'{most} a person':<52}{np.mean(ours):>10.1f}{np.mean(textbook):>12.1f}{np.mean(ours) / np.mean(textbook):>9.2f}"
        )


# Keys that are found with their counts -------------------------------------------------------------------------------------


def cities(most: int, rows: int) -> pd.DataFrame:
    """10,000 people with so many cities each (one of them drawn again is the same), and so many rows in each; a value in 0..4."""
    weights = 1 / (1 + np.arange(10_000))
    city = RNG.choice(10_000, 10_000 * most, p=weights / weights.sum())
    frame = pd.DataFrame({"id": np.repeat(np.arange(10_000), most), "city": city}).drop_duplicates(
        ignore_index=True
    )
    frame = frame.loc[frame.index.repeat(rows)].reset_index(drop=True)
    return frame.assign(x=RNG.integers(0, 5, len(frame)))


def thresholds(
    e: float, d: float, most: int, rows: int
) -> dict[str, Callable[[Any, Any, Any], Any]]:
    """From people, rows and sums of each key to which are shown, with counts and sums, at (e, d): the published rules.

    The textbook (Korolova and others 2009): Laplace noise on the rows, and a threshold that a person's own rows pass with
    probability d in all. OpenDP's expert form: the same thresholds on discrete noise (`make_laplace_threshold`; as a pair with a
    sum, half of the price for each). PipelineDP: half of the price for a truncated geometric selection by people, half for
    noisy counts (with a sum, a third for each of the three).
    """

    def laplace_threshold(share: float) -> float:
        scale = most * rows / (e * share)
        return rows + scale * math.log(1 / (2 * (1 - (1 - d) ** (1 / most))))

    def textbook(people: Any, n: Any, sums: Any) -> Any:
        share = 1.0 if sums is None else 0.5
        noisy = n + noise(most * rows / (e * share), len(n))
        shown = noisy >= laplace_threshold(share)
        return (
            shown,
            noisy,
            None if sums is None else sums + noise(4 * most * rows / (e / 2), len(n)),
        )

    def opendp(people: Any, n: Any, sums: Any) -> Any:
        share = 1.0 if sums is None else 0.5
        a = e * share / (most * rows)
        noisy = n + two_sided(a, len(n))
        each = 1 - (1 - d) ** (1 / most)
        least = rows + math.ceil(math.log(1 / (each * (1 + math.exp(-a)))) / a)
        return (
            noisy >= least,
            noisy,
            None if sums is None else sums + noise(4 * most * rows / (e / 2), len(n)),
        )

    def pipelinedp(people: Any, n: Any, sums: Any) -> Any:
        parts = 2 if sums is None else 3
        a, each = e / parts / most, 1 - (1 - d) ** (1 / most)
        k = math.ceil(math.log(math.tanh(a / 2) / each) / a)
        drawn = two_sided(a, len(n))
        while (wide := np.abs(drawn) > k).any():
            drawn[wide] = two_sided(a, int(wide.sum()))
        scale = most * rows / (e / parts)
        return (
            people + drawn > k,
            n + noise(scale, len(n)),
            None if sums is None else sums + noise(4 * scale, len(n)),
        )

    return {"textbook": textbook, "OpenDP": opendp, "PipelineDP": pipelinedp}


def two_sided(a: float, size: int) -> Any:
    p = -math.expm1(-a)
    return RNG.geometric(p, size) - RNG.geometric(p, size)


def found_counts(releases: int = 150) -> None:
    """Keys and root mean square errors of the counts that are shown: epsilon 1 and delta 1e-6 for all of it."""
    e, d = 1.0, 1e-6
    title = "keys found of 10,000, and the error of their counts"
    print(
        f"\n{title:<52}"
        + "".join(f"{name:>14}" for name in ("dpframe", "textbook", "OpenDP", "PipelineDP"))
    )
    for most, rows, declared in ((0, 1, 1), (1, 1, 1), (5, 1, 1), (20, 1, 1), (5, 5, 5), (5, 2, 5)):
        frame = cities(max(most, 1), rows)
        unit = {"unit": "id", "max_rows": declared, "max_groups": most} if most else {}
        groups = frame.groupby("city")
        people, n, sums = groups["id"].nunique(), groups.size(), groups["x"].sum()
        who = f"{most} keys a person" if most else "a row a person"
        who += f", {rows} of {declared} rows in each" if declared > 1 else ""
        for with_sums in (False, True):
            p = frame.dp.open(
                1024, 0.9, bounds={"x": (0, 4)}, accountant="pure", because="a benchmark", **unit
            )
            frame.attrs.clear()
            ours = [asked(p, e, d, with_sums, n, sums) for _ in range(releases)]
            shown = [ours]
            for rule in thresholds(e, d, max(most, 1), declared).values():
                told = []
                for _ in range(releases):
                    kept, counts, totals = rule(
                        people.to_numpy(), n.to_numpy(), sums.to_numpy() if with_sums else None
                    )
                    miss = (
                        (counts - n.to_numpy())[kept],
                        (totals - sums.to_numpy())[kept] if with_sums else np.zeros(0),
                    )
                    told.append((int(kept.sum()), *miss))
                shown.append(told)
            means = [
                (
                    np.mean([k for k, _, _ in one]),
                    rms([c for _, c, _ in one]),
                    rms([s for _, _, s in one]),
                )
                for one in shown
            ]
            print(
                f"{who + (', with sums' if with_sums else ''):<52}"
                + "".join(f"{k:>7.1f}{c:>7.2f}" for k, c, _ in means)
            )
            if with_sums:
                print(
                    f"{'    error of the sums':<52}" + "".join(f"{s:>14.1f}" for _, _, s in means)
                )


def asked(p: Any, e: float, d: float, with_sums: bool, n: Any, sums: Any) -> tuple[int, Any, Any]:
    """One release, and how far its numbers are from the truth."""
    groups = p.groupby("city")
    if not with_sums:
        sizes = groups.size(epsilon=e, delta=d, fresh=True)
        p._session.found.clear()  # else the next question would be about these keys
        return len(sizes), (sizes - n.loc[sizes.index]).to_numpy(), np.zeros(0)
    table = groups.agg(n=("x", "size"), s=("x", "sum"), epsilon=e, delta=d, fresh=True)
    p._session.found.clear()
    return (
        len(table),
        (table["n"] - n.loc[table.index]).to_numpy(),
        (table["s"] - sums.loc[table.index]).to_numpy(),
    )


def rms(misses: list[Any]) -> float:
    every = np.concatenate(misses)
    return float(np.sqrt(np.mean(np.square(every)))) if len(every) else math.nan


def releases_next_to_the_textbook() -> None:
    data = table()
    for budget in (0.0, 0.01):
        print(
            f"\n{'delta ' + (f'{DELTA:g}' if budget else '0'):<52}{'dpframe':>10}{'textbook':>12}{'better':>9}"
        )
        rows_are_people(data, budget)
        people_have_rows(data, budget)
    print(
        f"\n{'keys found of 10,000, delta 1e-06':<52}{'dpframe':>10}{'textbook':>12}{'better':>9}"
    )
    keys_found()


if __name__ == "__main__":
    if "keys" not in sys.argv[1:]:
        releases_next_to_the_textbook()
    found_counts()
