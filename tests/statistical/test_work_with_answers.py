"""Intervals of what is computed across rows of answers: they cover the numbers without noise.

Each run asks fresh questions of one table and computes on the answers. A coverage fails where its
Wilson upper bound at five deviations is below 0.95. For sound intervals that is less likely than
one in three million for a cell. The twins that must fail add errors as if noises were not shared.
"""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest

from dpframe._answers import forms
from dpframe._answers.estimate import Estimate

WEEKS, STATES, AGES = list(range(10)), ["CA", "NY"], ["<40", "40-60", ">60"]
WEIGHTS = {"<40": 0.5, "40-60": 0.3, ">60": 0.2}
KEYS = {"week": WEEKS, "state": STATES, "age": AGES}
BUDGETS = {"laplace": {"epsilon": 1000}, "gaussian": {"epsilon": 1000, "delta": 1e-6}}
PRICES = {
    "laplace": {"epsilon": 0.5},
    "gaussian": {"epsilon": 1.0, "delta": 1e-9, "mechanism": "gaussian"},
}
RUNS_OF_A_BUDGET = 200


def make_frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    size = 3000
    return pd.DataFrame(
        {
            "week": rng.choice(WEEKS, size),
            "state": rng.choice(STATES, size),
            "age": rng.choice(AGES, size),
            "cost": rng.gamma(2.0, 20.0, size).clip(0, 200),
            "died": rng.random(size) < 0.2,
        }
    )


FRAME = make_frame()


def ask(p, price):
    """Return the answers that a run computes with."""
    price = {**price, "fresh": True}
    return {
        "leaving": p.groupby("week").size(**price),
        "deaths": p[p["died"]].groupby("week").size(**price),
        "cells": p.groupby(["state", "age"]).size(**price),
        "means": p.groupby(["state", "age"])["cost"].mean(**price),
    }


TRUTH = {
    "leaving": FRAME.groupby("week").size(),
    "deaths": FRAME[FRAME["died"]].groupby("week").size(),
    "cells": FRAME.groupby(["state", "age"])
    .size()
    .reindex(pd.MultiIndex.from_product([STATES, AGES], names=["state", "age"])),
    "means": FRAME.groupby(["state", "age"])["cost"]
    .mean()
    .reindex(pd.MultiIndex.from_product([STATES, AGES], names=["state", "age"])),
}
BY_AGE = pd.Series(WEIGHTS).rename_axis("age")
LEVEL = {"level": "state"}


def at_risk(leaving):
    return leaving.iloc[::-1].cumsum().iloc[::-1]


VERBS = {
    "rolling": lambda a: a["leaving"].dp.rolling(4).mean(),
    "cumsum": lambda a: a["leaving"].dp.cumsum(),
    "sums of windows": lambda a: a["leaving"].dp.rolling(4).sum().dp.rolling(3).sum(),
    "row and total": lambda a: a["leaving"].dp + a["leaving"].dp.sum(),
    "weighted counts": lambda a: (a["cells"].dp * BY_AGE).dp.sum(),
    "groups": lambda a: a["cells"].dp.groupby(level="state").sum(),
    "difference": lambda a: a["leaving"].dp - a["deaths"],
    "ratio": lambda a: a["deaths"].dp / a["leaving"],
    "share": lambda a: a["leaving"].dp / a["leaving"].dp.sum(),
    "change": lambda a: a["leaving"].dp.pct_change(),
    "standardised": lambda a: (a["means"].dp * BY_AGE).dp.groupby(level="state").sum(),
    "mean of means": lambda a: a["means"].dp.mean(),
    "product": lambda a: a["means"].dp * a["cells"],
    "survival": lambda a: (
        1 - (a["deaths"].dp / a["leaving"].iloc[::-1].dp.cumsum().iloc[::-1]).dp
    ).dp.cumprod(),
}
PLAIN = {
    "rolling": lambda a: a["leaving"].rolling(4).mean(),
    "cumsum": lambda a: a["leaving"].cumsum(),
    "sums of windows": lambda a: a["leaving"].rolling(4).sum().rolling(3).sum(),
    "row and total": lambda a: a["leaving"] + a["leaving"].sum(),
    "weighted counts": lambda a: a["cells"].mul(BY_AGE, level="age").sum(),
    "groups": lambda a: a["cells"].groupby(level="state").sum(),
    "difference": lambda a: a["leaving"] - a["deaths"],
    "ratio": lambda a: a["deaths"] / a["leaving"],
    "share": lambda a: a["leaving"] / a["leaving"].sum(),
    "change": lambda a: a["leaving"].pct_change(),
    "standardised": lambda a: a["means"].mul(BY_AGE, level="age").groupby(level="state").sum(),
    "mean of means": lambda a: a["means"].mean(),
    "product": lambda a: a["means"] * a["cells"],
    "survival": lambda a: (1 - a["deaths"] / at_risk(a["leaving"])).cumprod(),
}
# What is bounded by its own law is hardly wider than it must be.
EXACT = {"cumsum", "groups", "difference", "ratio", "rolling"}


def ends_of(made):
    if isinstance(made, Estimate):
        return tuple(np.array([end]) for end in made.interval())
    ends = made.dp.interval()
    return ends["lower"].to_numpy(), ends["upper"].to_numpy()


@functools.cache
def count_hits(law: str, runs: int, verbs: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return how often each interval held the truth, for each verb and row."""
    p, hits = None, {}
    for run in range(runs):
        if run % RUNS_OF_A_BUDGET == 0:
            p = FRAME.copy().dp.open(
                **BUDGETS[law], because="a simulation", bounds={"cost": (0, 200)}, keys=KEYS
            )
        answers = ask(p, PRICES[law])
        for verb in verbs:
            low, high = ends_of(VERBS[verb](answers))
            truth = np.atleast_1d(np.asarray(PLAIN[verb](TRUTH), dtype=float))
            there = ~np.isnan(truth)
            held = (low[there] <= truth[there] + 1e-9) & (truth[there] <= high[there] + 1e-9)
            hits[verb] = hits.get(verb, 0) + held.astype(int)
    return hits


def wilson(hits, runs: int, z: float):
    """Return the Wilson bounds of a probability, z deviations apart on either side."""
    share = hits / runs
    middle = (share + z * z / (2 * runs)) / (1 + z * z / runs)
    half = z * np.sqrt(share * (1 - share) / runs + z * z / (4 * runs**2)) / (1 + z * z / runs)
    return middle - half, middle + half


def check_coverage(law: str, runs: int, verbs: tuple[str, ...] = tuple(VERBS)) -> dict[str, str]:
    """Return the verbs with intervals that cover too little, or far too much."""
    wrong = {}
    for verb, hits in count_hits(law, runs, verbs).items():
        low, high = wilson(hits, runs, z=5.0)
        if (high < 0.95).any():
            wrong[verb] = f"covers {np.min(hits) / runs}"
        if verb in EXACT and (low > 0.975).all():
            wrong[verb] = f"covers {np.min(hits) / runs}, too wide"
    return wrong


@pytest.mark.parametrize("law", BUDGETS)
def test_intervals_across_rows_cover_in_a_few_runs(law):
    assert check_coverage(law, 5, ("rolling", "ratio", "survival")) == {}


@pytest.mark.slow
@pytest.mark.parametrize("law", BUDGETS)
def test_intervals_across_rows_cover(law, full):
    assert check_coverage(law, 2000 if full else 100) == {}


def add_as_if_apart(one, two, sign=1.0):
    """Return the sum of two forms with errors as if they shared no noise."""
    made = PLAIN_ADD(one, two, sign)
    one, two = forms._match_sizes(one, two)
    apart = (one.centre.multiply(one.centre) + two.centre.multiply(two.centre)).tocsr().sqrt()
    return forms.replace(made, centre=apart, top=made.top and made.top._replace(weights=apart))


PLAIN_ADD = forms._Steps(lambda form: form.rest).add


def test_errors_added_as_if_noises_were_not_shared_cover_too_little(monkeypatch):
    monkeypatch.setattr(
        forms._Steps, "add", lambda self, one, two, sign=1.0: add_as_if_apart(one, two, sign)
    )
    p = FRAME.copy().dp.open(epsilon=1000, keys=KEYS, because="a simulation")
    truth, hits = TRUTH["leaving"] * 5 + 0.0, 0
    for _ in range(6):
        answer = p.groupby("week").size(epsilon=0.5, fresh=True)
        rolled = answer.dp.rolling(1).sum()
        made = rolled
        for _ in range(4):
            made = made.dp + rolled
        low, high = ends_of(made)
        hits += int(np.count_nonzero((low <= truth) & (truth <= high)))
    assert hits / 60 < 0.85
