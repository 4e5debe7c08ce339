"""Synthetic people: ten features of different ranges, a class and a number that depend on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

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
