"""What replay cannot judge, people drawn by coins among them: no step moves further than it is priced."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpframe.learn import LinearRegression, LogisticRegression
from dpframe.learn import _descent as learn_descent_module
from dpframe.learn._descent import CLIP, SIZE_STEPS
from dpframe.mechanisms.noise import GaussianNoise

PRICE = {"epsilon": 1, "delta": 1e-6}
WILD = [-1.0, 1.0, 0.3, 1e308, -np.inf, np.nan, 0.01]


def frame(rng, n, d, wild, number):
    x = (
        rng.choice(WILD, (n, d), p=[0.2, 0.2, 0.2, 0.1, 0.1, 0.02, 0.18])
        if wild
        else rng.uniform(-1, 1, (n, d))
    )
    y = rng.normal(0, 2, n) if number else rng.random(n) < 0.5
    return pd.DataFrame(x, columns=[f"x{i}" for i in range(d)]).assign(
        y=y, who=rng.integers(0, n // 2 + 1, n)
    )


def heard(df, model, outputs, unit, neighbors, number, monkeypatch):
    """The integers that each noise is added to; ``outputs`` are what leaves, those of an earlier run if there was one."""
    sums = []

    def noisy(noise, integers):
        if len(outputs) <= len(sums):
            typical = np.array([[SIZE_STEPS * 30], [SIZE_STEPS * 9]])
            outputs.append(integers * 3 // 4 if sums else typical)
        sums.append(integers.copy())
        return outputs[len(sums) - 1]

    monkeypatch.setattr(GaussianNoise, "release", noisy)
    monkeypatch.setattr(learn_descent_module, "coins", lambda rate, size: np.ones(size, dtype=bool))
    names = [c for c in df if str(c).startswith("x")]
    bounds = dict.fromkeys([*names, "y"] if number else names, (-1, 1))
    words = {"unit": "who", "max_rows": 2} if unit else {}
    p = df.reset_index(drop=True).dp.open(
        4, 4e-6, bounds=bounds, accountant="pure", neighbors=neighbors, **words
    )
    p.fit(model, X=names, y="y")
    return [a.astype(np.float64) for a in sums]


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("sample", [1, 0.5])
@pytest.mark.parametrize("clip", [None, 0.3])
def test_a_person_moves_each_sum_by_no_more_than_its_price_says(
    neighbors, unit, sample, clip, monkeypatch
):
    """Wherever the person's rows stand, also where they shift others into the next block of rows."""
    rng = np.random.default_rng([unit, sample == 1, clip is None, len(neighbors)])
    largest = 0.0
    for n, d, wild, number in (
        (5, 1, True, False),
        (200, 17, True, True),
        (4096, 3, False, False),
        (4095, 2, True, True),
    ):
        base = frame(rng, n, d, wild, number)
        mine = frame(rng, 4 if unit else 1, d, False, number).assign(who=10**6)
        mine.iloc[:, :d] = np.sign(mine.iloc[:, :d])
        if neighbors == "replace-one":
            gone = base["who"] == base["who"].iloc[0] if unit else base.index == 0
            rest = base[~gone]
        else:
            rest = base
        at = np.argsort(
            np.r_[np.arange(len(rest)), rng.integers(0, len(rest) + 1, len(mine)) - 0.5],
            kind="stable",
        )
        other = pd.concat([rest, mine], ignore_index=True).iloc[at]
        kind = LinearRegression if number else LogisticRegression
        model = kind("gradient", max_iter=3, clip=clip, sample=sample, **PRICE)
        outputs: list = []
        one, two = (
            heard(df, model, outputs, unit, neighbors, number, monkeypatch) for df in (base, other)
        )
        assert len(one) == len(two) == 4
        moved = [float(np.sum((a - b) ** 2)) for a, b in zip(one, two, strict=True)]
        assert moved[0] <= 2 * SIZE_STEPS**2
        most = CLIP**2 * (4 if neighbors == "replace-one" else 1)
        assert max(moved[1:]) <= most
        largest = max(largest, *(m / most for m in moved[1:]))
    assert largest > 0.05  # the room is used
