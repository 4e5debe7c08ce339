"""Fits on neighbours with rows as odd as cells can be: within the sensitivities of their plans, and alike in all else."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from dpframe import audit
from dpframe.learn import LinearRegression, LogisticRegression

WILD = pd.DataFrame(
    {
        "a": [1e308, np.nan, -np.inf, 0.3, 5e-324, 1.0, -1.0, 0.5],
        "b": [np.inf, 1.0, -1.0, np.nan, -1e300, 1.0, 1.0, 0.5],
        "t": [1e300, -1.0, 1.0, 0.0, np.nan, -np.inf, 1.0, -1.0],
        "word": ["yes", "no", None, "maybe", "", "yes", "\x00", "no"],
    }
)


def wild(who: list[object], rows: list[int]) -> pd.DataFrame:
    return WILD.iloc[rows].reset_index(drop=True).assign(who=pd.array(who, dtype="Int64"))


@pytest.mark.parametrize(
    "model",
    ["statistics", "output", "gradient", "gradient clipped", "classes", "classes by gradient"],
)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_neighbours_with_wild_rows_stay_within_the_plan_and_look_alike(model, neighbors):
    price = {"epsilon": 1, "delta": 1e-6}
    made, y = {
        "statistics": (LinearRegression(**price), "t"),
        "output": (LinearRegression("output", **price), "t"),
        "gradient": (LinearRegression("gradient", max_iter=3, **price), "t"),
        "gradient clipped": (LinearRegression("gradient", max_iter=3, clip=0.01, **price), "t"),
        "classes": (LogisticRegression("output", classes=["no", "yes"], **price), "word"),
        "classes by gradient": (
            LogisticRegression("gradient", max_iter=3, classes=["no", "yes"], **price),
            "word",
        ),
    }[model]
    everything = list(range(8))
    base = wild([1, 2, 2, 3, 4, 5, None, None], everything)
    words = {
        "bounds": {"a": (-1, 1), "b": (-1, 1), "t": (-1, 1)},
        "unit": "who",
        "max_rows": 2,
        "neighbors": neighbors,
    }
    moved = 0
    for mine in (
        everything,
        [0] * 8,
        [5, 5, 6, 6],
        [1],
        [7] * 5,
    ):  # somebody with all of it, or the same often
        person = pd.concat([base, wild([9] * len(mine), mine)], ignore_index=True)
        others = wild([9], [6]) if neighbors == "replace-one" else base.iloc[:0]
        other = pd.concat([base, others.astype(base.dtypes)], ignore_index=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            found = audit.replay(
                lambda p: p.fit(made, X=["a", "b"], y=y).coef_,
                person,
                other,
                epsilon=10,
                delta=1e-4,
                accountant="pure",
                **words,
            )
        assert found.ok, found
        moved += sum(step.distance > 0 for step in found.steps)
    assert moved


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(epsilon=1),
        LinearRegression("output", epsilon=1),
        LinearRegression("gradient", epsilon=1, delta=1e-6, max_iter=3),
    ],
)
def test_rows_of_nobody_do_not_move_a_fit(model):
    base = wild([1, 2, 2, 3, 4, 5, 6, 7], list(range(8)))
    nobody = wild([None] * 40, [5, 6, 7, 1, 0] * 8)
    bounds = {"a": (-1, 1), "b": (-1, 1), "t": (-1, 1)}
    words = {
        "bounds": bounds,
        "unit": "who",
        "max_rows": 2,
        "epsilon": 10,
        "delta": 1e-4,
        "accountant": "pure",
    }
    found = audit.replay(
        lambda p: p.fit(model, X=["a", "b"], y="t").coef_,
        pd.concat([base, nobody], ignore_index=True),
        base,
        **words,
    )
    assert found.ok
    assert {step.distance for step in found.steps} == {0}
    assert found.steps
