"""Synthetic people: ten features of different ranges, a class and a number that depend on them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize, special

FEATURES = [f"x{i}" for i in range(10)]
BOUNDS: dict[str, tuple[float, float]] = {f: (-(i + 1.0), i + 1.0) for i, f in enumerate(FEATURES)}
BOUNDS["t"] = (-8.0, 8.0)
_SLOPES = np.array([1.2, -0.8, 0.3, 0.5, -0.4, 0.2, -0.3, 0.1, 0.2, -0.2])


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 10)) * np.arange(1, 11)
    score = x @ _SLOPES + 0.5
    frame = pd.DataFrame(x, columns=FEATURES)
    frame["y"] = rng.random(n) < 1 / (1 + np.exp(-score))
    frame["t"] = score + rng.normal(0, 0.5, n)
    return frame


def opened(frame: pd.DataFrame, epsilon: float = 1, delta: float = 4e-6, **words: Any) -> Any:
    """A session that adds up (epsilon, delta) pairs."""
    fresh = pd.DataFrame({c: frame[c].to_numpy().copy() for c in frame})
    return fresh.dp.open(epsilon, delta, bounds=BOUNDS, accountant="pure", **words)


# Of any number of features: for how far a fit is from the best one ---------------------------------------------------

KINDS = ("uniform", "signs", "narrow")


def of_dimension(kind: str, d: int, n: int, seed: int = 0) -> pd.DataFrame:
    """n people with d features within [-1, 1] and a class: spread evenly; all -1 or 1; or most of them near 0."""
    rng = np.random.default_rng([KINDS.index(kind), d, n, seed])
    draw: dict[str, Any] = {
        "uniform": lambda: rng.uniform(-1, 1, (n, d)),
        "signs": lambda: rng.choice([-1.0, 1.0], (n, d)),
        "narrow": lambda: np.clip(rng.normal(0, 0.25, (n, d)), -1, 1),
    }
    x, slopes = draw[kind](), rng.normal(size=d)
    slopes *= {"uniform": 3.0, "signs": 1.7, "narrow": 6.0}[kind] / np.linalg.norm(slopes)
    y = rng.random(n) < 1 / (1 + np.exp(-(x @ slopes + 0.3)))
    return pd.DataFrame(x, columns=[f"x{i}" for i in range(d)]).assign(y=y)


class Losses:
    """The mean logistic loss over people with features within [-1, 1], and its least."""

    def __init__(self, frame: pd.DataFrame):
        self.names = [c for c in frame if c != "y"]
        signs = np.where(frame["y"], 1.0, -1.0)
        self._x = np.column_stack([np.ones(len(frame)), frame[self.names]]) * signs[:, None]
        found = optimize.minimize(
            self.of,
            np.zeros(len(self.names) + 1),
            jac=self._slope,
            method="L-BFGS-B",
            options={"maxiter": 5000},
        )
        self.best, self.least = found.x, float(found.fun)
        self.none = math.log(2) - self.least  # by how much 1/2 for everybody is worse

    def of(self, w: Any) -> float:
        return float(np.logaddexp(0, -(self._x @ w)).mean())

    def _slope(self, w: Any) -> Any:
        return -special.expit(-(self._x @ w)) @ self._x / len(self._x)

    def excess(self, model: Any) -> float:
        """How much more the average person loses than under the best model without noise."""
        return self.of(np.r_[model.intercept_, model.coef_]) - self.least


def fitted(frame: pd.DataFrame, model: Any, delta: float = 4e-6, **words: Any) -> Any:
    """The model, fitted in a session of its own."""
    names = [c for c in frame if c != "y"]
    fresh = pd.DataFrame({c: frame[c].to_numpy().copy() for c in frame})
    p = fresh.dp.open(1, delta, bounds=dict.fromkeys(names, (-1, 1)), accountant="pure", **words)
    return p.fit(model, X=names, y="y")
