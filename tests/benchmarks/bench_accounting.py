"""What accounting costs: ``python -m tests.benchmarks.bench_accounting``. Milliseconds, medians; nothing is asserted."""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

import dpframe  # registers .dp
from dpframe._ledger.sqlite import FileStore
from dpframe.accounting import (
    DiscreteGaussian,
    Exponential,
    Gaussian,
    Laplace,
    PoissonGaussian,
    PureDP,
    epsilon,
    make_filter,
)
from dpframe.accounting._filter import Charge, Limits
from dpframe.accounting._gaussian import shift_mu

TINY = {
    "pure": lambda i: PureDP(Fraction(1, 1000) + Fraction(i, 10**7)),
    "gaussian": lambda i: Gaussian(1000 + i),
    "discrete gaussian": lambda i: DiscreteGaussian(1000 + i),
    "laplace": lambda i: Laplace(Fraction(1, 1000) + Fraction(i, 10**7)),
    "exponential": lambda i: Exponential(Fraction(1, 1000) + Fraction(i, 10**7)),
}


def median(calls: list[Callable[[], Any]]) -> float:
    times = []
    for call in calls:
        began = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - began))
    return float(np.median(times))


def filters() -> None:
    rule = make_filter("tight", Limits(Fraction(3), Fraction(1, 10**6), Fraction(0)))
    state = rule.start()
    print("\none debit of the tight filter, ms             first of a kind    the same again")
    for name, make in TINY.items():
        losses = [make(i) for i in range(9)]
        first = median(
            [lambda loss=loss: rule.after(state, Charge(((loss, 1),))) for loss in losses]
        )
        again = median([lambda loss=losses[0]: rule.after(state, Charge(((loss, 1),)))] * 50)
        print(f"  {name:<40} {first:12.3f} {again:18.3f}")


def growth() -> None:
    print("\na debit as the ledger grows, ms per question of one row (memory, file)")
    for place in (None, "file"):
        with tempfile.TemporaryDirectory() as folder:
            words = (
                {}
                if place is None
                else {"ledger": os.path.join(folder, "budget.db"), "population": "bench"}
            )
            frame = pd.DataFrame({"x": [1.0] * 40, "y": np.arange(40.0)})
            p = frame.dp.open(100, 1e-6, queries=10**5, **words)

            def ask(p: Any = p) -> Any:
                return p.count(fresh=True)

            ask()
            line = [median([ask] * 30)]
            for _ in range(1000):
                ask()
            line.append(median([ask] * 30))
            print(f"  {place or 'memory':<40} empty {line[0]:.3f}, after 1000 debits {line[1]:.3f}")


def store() -> None:
    print("\nan entry in a ledger file as it grows, and opening it, ms")
    for entries in (0, 20_000, 100_000):
        with tempfile.TemporaryDirectory() as folder:
            file = FileStore(os.path.join(folder, "budget.db"))
            with file.transaction():
                for _ in range(entries):
                    file.append("people", "debit", "x" * 300)

            def append(file: FileStore = file) -> None:
                with file.transaction():
                    file.append("people", "debit", "x" * 300)

            one = median([append] * 50)
            opened = median(
                [lambda folder=folder: FileStore(os.path.join(folder, "budget.db"))] * 3
            )
            print(f"  {entries:<40} {one:12.3f} {opened:18.3f}")


def conversions() -> None:
    each = median([lambda i=i: shift_mu(Fraction(i + 1, 7919)) for i in range(200)])
    print(f"\nthe mu of discrete Gaussian noise, ms: {each:.3f}")


def reports() -> None:
    kinds = [PureDP(Fraction(i, 1000)) for i in range(1, 9)] + [
        Laplace(Fraction(i, 1000)) for i in range(1, 7)
    ]
    kinds += [Gaussian(100 + i) for i in range(4)] + [
        PoissonGaussian(0.01, 2),
        PoissonGaussian(0.02, 3),
    ]
    entries = list(itertools.islice(itertools.cycle(kinds), 10_000))
    began = time.perf_counter()
    found = epsilon(entries, delta=1e-6)
    print(
        f"\npld report of 10000 entries of 20 kinds: {time.perf_counter() - began:.3f} s, epsilon {found:.3f}"
    )
    began = time.perf_counter()
    found = epsilon(entries, delta=1e-6)
    print(f"the same again: {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    print(f"dpframe {dpframe.__version__}")
    filters()
    growth()
    store()
    conversions()
    reports()
