"""Synthetic tables for examples: made from a seed, the same everywhere, about nobody."""

from __future__ import annotations

import numpy as np
import pandas as pd

STATES = ["CA", "FL", "IL", "MA", "NY", "OH", "TX", "WA"]
DIAGNOSES = ["asthma", "diabetes", "flu", "fracture", "hypertension", "migraine"]

# What is public about the visits: used by the demo, the docs and the notebooks.
BOUNDS = {"age": (0, 110), "cost": (0, 50_000), "days": (0, 60)}
KEYS = {"state": STATES, "diagnosis": DIAGNOSES}


def visits(rows: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Hospital visits, one row a person: state, age, smoker, diagnosis, days, cost, admitted.

    Older people have more hypertension and diabetes, smokers more asthma; cost grows with days and differs by
    state; one in twenty-five costs is missing.

    >>> visits(3)
      state  age  smoker     diagnosis  days      cost   admitted
    0    NY   48   False  hypertension     3   4758.32 2025-04-04
    1    FL   52   False        asthma    11  14642.72 2025-08-13
    2    CA   63    True  hypertension     2   2457.67 2025-10-06
    """
    rng = np.random.default_rng(seed)
    state = rng.choice(STATES, size=rows, p=[0.24, 0.13, 0.08, 0.06, 0.18, 0.08, 0.18, 0.05])
    age = np.clip(rng.gamma(9.0, 5.4, rows), 0, 109).astype(np.int64)
    smoker = rng.random(rows) < np.where(age < 60, 0.22, 0.12)
    weights = np.stack(
        [
            0.6 + 0.9 * smoker,
            0.2 + age / 70,
            np.full(rows, 1.5),
            0.5 + (age > 70) * 0.6,
            0.1 + age / 45,
            np.full(rows, 0.5),
        ],
        axis=1,
    )
    share = weights.cumsum(axis=1) / weights.sum(axis=1, keepdims=True)
    diagnosis = np.array(DIAGNOSES)[(rng.random(rows)[:, None] > share).sum(axis=1)]
    days = np.minimum(rng.geometric(1 / (1.8 + age / 25)), 90).astype(np.int64)
    level = pd.Series([1.25, 1.0, 1.05, 1.2, 1.3, 0.95, 0.9, 1.1], index=STATES)
    cost = np.round(rng.lognormal(7.1, 0.55, rows) * days**0.8 * level[state].to_numpy(), 2)
    cost[rng.random(rows) < 0.04] = np.nan
    admitted = pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 365, rows), unit="D")
    return pd.DataFrame(
        {
            "state": state,
            "age": age,
            "smoker": smoker,
            "diagnosis": diagnosis,
            "days": days,
            "cost": cost,
            "admitted": admitted,
        }
    )
