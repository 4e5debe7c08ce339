"""The questions of a ledger in ``tests/data`` that was written by dpframe before its labels had one encoding."""

from __future__ import annotations

import datetime

import pandas as pd

from dpframe.learn import LinearRegression
from dpframe.utilities import distance

LONG = [f"questionnaire_2025_wave_{i:02d}_answer_code" for i in range(7)]
TERMS = {"delta": 1e-6, "population": "people", "version": "2026-11"}
BOUNDS = {"cost": (0, 1000), "age": (0, 110)}


def frame():
    """Whole numbers and texts, so that every machine has the same cells."""
    n = 400
    data = {
        "id": [i // 2 for i in range(n)],
        "cost": [float(i * 37 % 900) for i in range(n)],
        "age": [18 + i * 7 % 70 for i in range(n)],
        "state": [("CA", "NY", "TX")[i % 3] for i in range(n)],
        "codes": pd.Series([["a", "b"][: i % 3] for i in range(n)], dtype=object),
        "when": pd.Timestamp("2024-01-01") + pd.to_timedelta([i % 366 for i in range(n)], unit="D"),
        **{name: ["a"] * n for name in LONG},
        "home": ["u"] * n,
        "work": ["v"] * n,
    }
    return pd.DataFrame(data)


def opened(path):
    days = {"when": ("2024-01-01", "2024-12-31")}
    words = {"unit": "id", "max_rows": 2, "max_groups": 2, "bounds": {**BOUNDS, **days}, "queries": 50}
    return frame().dp.open(200, ledger=path, **TERMS, **words)


def long_merge(p, column):
    table = pd.DataFrame({**{f"lookup_{name}": ["a"] for name in LONG}, "place": ["u"], "w": [1]})
    right = [f"lookup_{name}" for name in LONG] + ["place"]
    return p.merge(table, left_on=[*LONG, column], right_on=right)


def regions(p):
    return p.merge(pd.DataFrame({"state": ["CA", "NY"], "coast": ["west", "east"]}), on="state")


QUESTIONS = {
    "count": lambda p: int(p.count(epsilon=1)),
    "share": lambda p: float(p.mean("cost")),
    "within": lambda p: float(p.sum("cost", within=4000)),
    "named": lambda p: float(p.mean("age", epsilon=1, name="age")),
    "filtered": lambda p: int(p.query("age > 30 and state in ['CA', 'NY']").count(epsilon=1)),
    "cases": lambda p: float(p.assign(k="cost / 10").query("state == 'CA'").mean("k", epsilon=1)),
    "var": lambda p: float(p.var("age", ddof=0, epsilon=1)),
    "groupby": lambda p: p.groupby("state", keys=["CA", "NY", None])["cost"].mean(epsilon=1).tolist(),
    "other": lambda p: p.groupby("state", keys=["CA"], other="else").size(epsilon=1).tolist(),
    "tuples": lambda p: (
        p.groupby(["state", "home"], keys=[("CA", "u"), ("NY", "v")]).size(epsilon=1).tolist()
    ),
    "found": lambda p: list(p.unique("state", epsilon=3)),
    "agg": lambda p: (
        p.groupby("state", keys=["CA", "NY"])
        .agg(n=("age", "size"), m=("cost", "mean"), epsilon=1)
        .to_numpy()
        .tolist()
    ),
    "histogram": lambda p: p.histogram("age", bins=[0, 30, 60], epsilon=1).tolist(),
    "months": lambda p: p.resample("ME", on="when").size(epsilon=1).tolist(),
    "argmax": lambda p: p.argmax("state", keys=["CA", "NY"], epsilon=1),
    "choose": lambda p: p.choose([18, 30, 60], distance("age"), epsilon=1),
    "median": lambda p: float(p.median("age", epsilon=1)),
    "nunique": lambda p: int(p.nunique("state", epsilon=1)),
    "limits": lambda p: dict(p.suggest_limits(epsilon=1)),
    "fit": lambda p: p.fit(LinearRegression(l2=1), X=["age"], y="cost", epsilon=1).coef_.tolist(),
    "explode": lambda p: p.explode("codes").groupby("codes", keys=["a", "b"]).size(epsilon=1).tolist(),
    "melt": lambda p: (
        p[["id", "cost", "age"]]
        .melt("id")
        .groupby("variable", keys=["cost"])["value"]
        .mean(epsilon=1)
        .tolist()
    ),
    "merge": lambda p: regions(p).groupby("coast", keys=["west", "east"]).size(epsilon=1).tolist(),
    "named merge": lambda p: int(regions(p).count(epsilon=1, name="mine")),
    "exploded merge": lambda p: int(regions(p).explode("codes").count(epsilon=1)),
}


def days():
    """A table without ids, with a column of times, whose rows were sketched in another way then."""
    n = 300
    when = pd.Timestamp("2024-01-01 06:30") + pd.to_timedelta([i * 7 % 400 for i in range(n)], unit="h")
    born = [datetime.date(1950 + i % 60, 1 + i % 12, 1) for i in range(n)]
    return pd.DataFrame({"cost": [float(i * 37 % 900) for i in range(n)], "when": when, "born": born})


def days_opened(path, frame=None, population="days", **terms):
    return (days() if frame is None else frame).dp.open(5, ledger=path, population=population, **terms)
