"""What checkers know of a program without a mistake: each `assert_type` holds in mypy and in pyright, and nothing is an error."""

from __future__ import annotations

from typing import Any, assert_type

import pandas as pd

import dpframe
from dpframe import Estimate, Plan, PrivateFrame
from dpframe._answers.estimate import FloatEstimate, IntEstimate
from dpframe._frame.surface import PrivateColumn
from dpframe._session.planned import Planned as PlannedAnswer
from dpframe.learn import LinearRegression


def opened(df: pd.DataFrame) -> PrivateFrame:
    p = dpframe.open(
        df, 1, 1e-6, bounds={"age": (0, 110)}, keys={"state": ["CA", "NY"]}, because="a test"
    )
    assert_type(p, PrivateFrame)
    assert_type(dpframe.private(df), PrivateFrame)
    assert_type(p.open(bounds={"cost": (0, 500)}), PrivateFrame)
    said: PrivateFrame = df.dp.open(1)  # pandas-stubs has `.dp` for a column, and so for anything
    return said


def numbers(p: PrivateFrame) -> None:
    assert_type(p.count(), IntEstimate)
    assert_type(p.count("age", epsilon=0.1), IntEstimate)
    assert_type(p.nunique("age"), IntEstimate)
    assert_type(p.mean("age"), FloatEstimate)
    assert_type(p.mean("age", (0, 110), epsilon=0.1, mechanism="gaussian"), FloatEstimate)
    assert_type(p.mean(column="age", bounds=(0, 110)), FloatEstimate)
    assert_type(p.mean(p["age"] / 10), FloatEstimate)
    assert_type(p.var("age", ddof=0), FloatEstimate)
    assert_type(p.std("age"), FloatEstimate)
    assert_type(p.sem("age"), FloatEstimate)
    assert_type(p.skew("age"), FloatEstimate)
    assert_type(p.sum("age"), IntEstimate | FloatEstimate)
    assert_type(p.median("age", resolution=1), IntEstimate | FloatEstimate)
    assert_type(p.min("age", q=0.05), IntEstimate | FloatEstimate)
    assert_type(p.quantile("age", 0.9), IntEstimate | FloatEstimate)
    number: Estimate = p.mean("age")
    assert_type(number.interval(0.9), tuple[float, float])
    assert_type(number.plan, Plan)
    assert_type(p.mean("age") / 1000, Any)  # a float with an interval
    assert_type(p.count() + 1, Any)
    assert_type(+p.count(), IntEstimate)
    assert_type(p.count() > 3, bool)
    assert_type(number.table(of="population", n=1000).to_csv(), str)
    assert_type(number.table().to_csv("table.csv"), None)
    assert_type(number.table(wide=True).to_markdown(width=80), str)


def shapes(p: PrivateFrame) -> None:
    assert_type(p[["age", "cost"]].mean(epsilon=1), "pd.Series[float]")
    assert_type(p.mean(numeric_only=True), "pd.Series[float]")
    assert_type(p[["age", "cost"]].count(), "pd.Series[int]")
    assert_type(p[["age", "cost"]].sum(), "pd.Series[Any]")
    assert_type(p.mean(axis=1), PrivateColumn)
    assert_type(p.quantile("age", [0.1, 0.9]), "pd.Series[float]")
    assert_type(p[["age", "cost"]].quantile([0.1, 0.9]), pd.DataFrame)
    assert_type(p[["age", "cost"]].quantile(0.9), "pd.Series[float]")
    assert_type(p[["age", "cost"]].agg("mean"), "pd.Series[Any]")
    assert_type(p.agg({"age": "mean", "cost": "sum"}), "pd.Series[Any]")
    assert_type(p[["age", "cost"]].agg(["mean", "std"], epsilon=1), pd.DataFrame)
    assert_type(p.agg(n=("age", "size"), epsilon=1), pd.DataFrame)
    assert_type(p.describe(), pd.DataFrame)
    assert_type(p.describe("age"), "pd.Series[float]")
    assert_type(p.histogram("age", bins=10), "pd.Series[int]")
    assert_type(p.value_counts("state"), "pd.Series[Any]")
    assert_type(p.counts({"old": "age > 80"}), "pd.Series[int]")
    assert_type(p.crosstab("state", "sex"), pd.DataFrame)
    assert_type(p.pivot_table("age", "state", "sex"), pd.DataFrame)
    assert_type(p[["age", "cost"]].corr(), pd.DataFrame)
    assert_type(p.unique("state"), "pd.Index[Any]")


def steps(p: PrivateFrame) -> None:
    old = (
        p.query("age >= 65").assign(decade=p["age"] // 10).dropna().rename(columns={"age": "years"})
    )
    assert_type(old, PrivateFrame)
    assert_type(p[p["age"] > 30], PrivateFrame)
    some: PrivateFrame = p[lambda d: d["age"] > 30]
    assert_type(some.mean("age"), FloatEstimate)
    assert_type(p[pd.col("age") > 30], PrivateFrame)
    assert_type(p.loc[p["age"] > 30], PrivateFrame)
    assert_type(p.loc[p["age"] > 30, ["age", "cost"]], PrivateFrame)
    assert_type(p.loc[p["age"] > 30, "cost"], PrivateColumn)
    assert_type(p.loc[:, "cost"].mean(), FloatEstimate)
    assert_type(p.iloc[:, 0], PrivateColumn)
    assert_type((p.fillna(0) * 2 > 1), PrivateFrame)
    p["decade"] = p["age"] // 10
    p.loc[p["age"] > 90, "age"] = 90
    del p["decade"]
    assert_type(p.fit(LinearRegression(epsilon=1), X=["age"], y="cost"), LinearRegression)
    assert_type(p.columns, "pd.Index[Any]")
    assert_type(p.ledger, pd.DataFrame)
    assert_type(p.budget.spent, float)


def columns(p: PrivateFrame) -> None:
    age = p["age"]
    assert_type(age, PrivateColumn)
    assert_type(age.clip(0, 90).fillna(0).round(1), PrivateColumn)
    assert_type((age > 30) & ~(age == 50), PrivateColumn)
    assert_type(age[p["state"] == "CA"].mean(epsilon=0.1), FloatEstimate)
    assert_type(age.mean((0, 110)), FloatEstimate)
    assert_type(age.count(), IntEstimate)
    assert_type(age.sum(epsilon=0.1), IntEstimate | FloatEstimate)
    assert_type(age.median(), IntEstimate | FloatEstimate)
    assert_type(age.quantile(0.25), IntEstimate | FloatEstimate)
    assert_type(age.quantile([0.25, 0.75]), "pd.Series[float]")
    assert_type(age.describe(), "pd.Series[float]")
    assert_type(age.histogram(bins=[0, 50, 100]), "pd.Series[int]")
    assert_type(age.corr(p["cost"]), FloatEstimate)
    assert_type(age.agg(["mean", "std"]), "pd.Series[Any]")
    assert_type(age.agg("mean"), IntEstimate | FloatEstimate)
    assert_type(age.groupby(p["state"]).mean(), "pd.Series[float]")
    assert_type(p["name"].str.lower().str.contains("x"), PrivateColumn)
    assert_type(p["when"].dt.month, PrivateColumn)
    assert_type(p["when"].dt.day_name().value_counts(), "pd.Series[Any]")


def groups(p: PrivateFrame) -> None:
    g = p.groupby("state")
    assert_type(g.size(), "pd.Series[int]")
    assert_type(g.count(), pd.DataFrame)
    assert_type(g.count("age"), "pd.Series[int]")
    assert_type(g.mean("age"), "pd.Series[float]")
    assert_type(g.mean(), pd.DataFrame)
    assert_type(g["age"].mean(epsilon=0.1), "pd.Series[float]")
    assert_type(g["age"].sum(), "pd.Series[Any]")
    assert_type(g["age"].count(), "pd.Series[int]")
    assert_type(g["age"].quantile([0.1, 0.9]), "pd.Series[float]")
    assert_type(g["age"].agg(["mean", "std"]), pd.DataFrame)
    assert_type(g[["age", "cost"]].mean(), pd.DataFrame)
    assert_type(g[["age", "cost"]].count(), pd.DataFrame)
    assert_type(g.agg(n=("age", "size"), m=("age", "mean"), epsilon=1), pd.DataFrame)
    assert_type(g["age"].describe(), pd.DataFrame)
    assert_type(p.groupby("state", as_index=False).mean("age"), pd.DataFrame)
    assert_type(p.groupby("state", as_index=False)["age"].sum(), pd.DataFrame)
    assert_type(p.resample("ME", on="when").size(), "pd.Series[int]")
    assert_type(p.resample("ME", on="when")["cost"].mean(), "pd.Series[float]")


def explained(p: PrivateFrame) -> None:
    assert_type(p.explain.count(), Plan)
    assert_type(p.explain.mean("age", (0, 110), epsilon=0.1), Plan)
    assert_type(p.explain.mean(), Plan)
    assert_type(p.explain.quantile("age", [0.1, 0.9]), Plan)
    assert_type(p.explain.agg(n=("age", "size")), Plan)
    assert_type(p.explain.describe("age"), Plan)
    assert_type(p.explain.histogram("age", bins=10), Plan)
    assert_type(p.explain.pivot_table("age", "state"), Plan)
    assert_type(p.explain.query("age > 3").dropna().sum("age"), Plan)
    assert_type(p.explain["age"].clip(0, 90).mean(epsilon=1), Plan)
    assert_type(p.explain[["age", "cost"]].count(), Plan)
    assert_type(p.explain.loc[p["age"] > 3, "age"].median(), Plan)
    assert_type(p.explain.groupby("state").size(), Plan)
    assert_type(p.explain.groupby("state", as_index=False)["age"].mean(), Plan)
    assert_type(p.groupby("state").explain.mean("age"), Plan)
    assert_type(p.groupby("state")["age"].explain.mean(epsilon=1), Plan)
    assert_type(p.explain.mean("age").scale, float)


def ahead(p: PrivateFrame) -> Any:
    with p.plan_ahead() as batch:
        rows = batch.count(epsilon=0.1)
        mean = batch.query("age > 50")["age"].mean(epsilon=0.1)
        table = batch.groupby("state").size()
    assert_type(rows, PlannedAnswer)
    assert_type(mean, PlannedAnswer)
    return table.answer
