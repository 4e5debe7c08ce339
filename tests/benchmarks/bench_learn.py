"""A private logistic regression next to scipy's L-BFGS on the same data: ``python -m tests.benchmarks.bench_learn``.

A million rows, 20 features, epsilon 1. L-BFGS minimises the same sum of losses with the same regulariser, on a ready matrix;
dpframe starts from the frame: clipping, the integer grid and the proof of the gradient are in its time. Seconds are of the
processor, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
from scipy import optimize

import dpframe
from dpframe.learn import LogisticRegression

ROWS, FEATURES = 10**6, 20


def main() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (ROWS, FEATURES))
    y = rng.random(ROWS) < 1 / (1 + np.exp(-(x @ rng.normal(size=FEATURES) + 0.3)))
    names = [f"x{i}" for i in range(FEATURES)]
    frame = pd.DataFrame(x, columns=names).assign(y=y)
    signs, wide = np.where(y, 1.0, -1.0), np.column_stack([np.ones(ROWS), x])

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        z = signs * (wide @ w)
        return np.logaddexp(0, -z).sum() + w @ w / 2, (-signs / (1 + np.exp(z))) @ wide + w

    begun = time.process_time()
    plain = optimize.minimize(loss, np.zeros(FEATURES + 1), jac=True, method="L-BFGS-B")
    scipy_time = time.process_time() - begun
    accuracy = float(np.mean((wide @ plain.x > 0) == y))
    print(f"{'scipy L-BFGS':<24}{scipy_time:7.2f} s  accuracy {accuracy:.4f}")
    for method in ("objective", "output", "gradient"):
        own = pd.DataFrame({c: frame[c].to_numpy().copy() for c in frame})
        p = own.dp.open(1, 4e-6, accountant="pure", bounds=dict.fromkeys(names, (-1, 1)))
        begun = time.process_time()
        model = p.fit(LogisticRegression(method, epsilon=1, delta=1e-6), X=names, y="y")
        taken = time.process_time() - begun
        shown = f"{taken:7.2f} s  accuracy {model.score(frame[names], y):.4f}"
        print(f"{method:<24}{shown}  {taken / scipy_time:.2f} times scipy")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpframe.PrivacyWarning)
        main()
