"""How far private fits are from the best one: ``python -m tests.benchmarks.bench_excess [fits]``.

The mean loss of a person above that of the best logistic regression without noise, epsilon 1, delta 1e-6, all other arguments as
they are: the mean of 10 fits, or of as many as are asked for. "none" is 1/2 for everybody, and "bound" what theorem 5 of
docs/guarantees/learning.md states for the gradient method, from the length of the best coefficients. "worst" is the worst of
the gradient fits.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

import dpframe
from dpframe import calibrate
from dpframe.learn import LogisticRegression
from tests.learn.data import KINDS, Losses, fitted, of_dimension

METHODS = ("objective", "output", "gradient")


def main(fits: int) -> None:
    print("| features | d | n | none | objective | output | gradient | worst | bound |")
    print("|---|---|---|---|---|---|---|---|---|")
    best = dict.fromkeys(METHODS, 0)
    for kind in KINDS:
        for d in (4, 16, 64):
            for n in (500, 2000, 8000):
                frame = of_dimension(kind, d, n)
                losses = Losses(frame)
                found = {
                    m: [
                        losses.excess(fitted(frame, LogisticRegression(m, epsilon=1, delta=1e-6)))
                        for _ in range(fits)
                    ]
                    for m in METHODS
                }
                means = {m: float(np.mean(found[m])) for m in METHODS}
                best[min(means, key=means.__getitem__)] += 1
                length = float(np.linalg.norm(losses.best))
                bound = calibrate.sgd_alpha(n, 1, 1e-6, dimension=d + 1, length=length)
                shown = [losses.none, *means.values(), max(found["gradient"]), bound]
                print(
                    f"| {kind} | {d} | {n} | " + " | ".join(f"{v:.4f}" for v in shown) + " |",
                    flush=True,
                )
    print("best of all: " + ", ".join(f"{m} {k} times" for m, k in best.items()))


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpframe.PrivacyWarning)
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
