"""A program as a user writes it. `mypy --strict` must understand it, and must see each mistake below: an ignored error that is
none is an error itself."""

from __future__ import annotations

from typing import assert_type

import pandas as pd

import dpframe
from dpframe import Accountant, Estimate, Plan, PrivateFrame
from dpframe.accounting import Gaussian, epsilon
from dpframe.learn import LinearRegression

df = pd.DataFrame({"age": [30, 41, 55], "cost": [100.0, 50.0, 75.0], "state": ["CA", "NY", "CA"]})


def opened(frame: pd.DataFrame) -> PrivateFrame:
    accountant = Accountant(3, 1e-6)
    opened: PrivateFrame = frame.dp.open(  # pandas-stubs take `.dp` for a Series
        accountant=accountant,
        bounds={"age": (0, 110), "cost": (0, 50_000)},
        keys={"state": ["CA", "NY"]},
    )
    assert_type(accountant.budget.report(), pd.DataFrame)
    assert_type(dpframe.private(frame), PrivateFrame)
    return opened


def asked(p: PrivateFrame) -> pd.DataFrame:
    old = p.query("age >= 65")
    assert_type(old, PrivateFrame)
    assert_type(old.assign(decade=old["age"] // 10), PrivateFrame)
    n: Estimate = old.count(epsilon=0.1)
    mean: Estimate = p.mean("cost", epsilon=0.2)
    average: Estimate = p["cost"].mean(epsilon=0.2)
    both: tuple[float, float] = mean.interval(0.95)
    plan: Plan = p.explain.mean("age")
    by_state: pd.Series[float] = p.groupby("state")["cost"].mean(epsilon=0.1)
    table: pd.DataFrame = p.groupby("state").agg(n=("age", "size"), cost=("cost", "mean"))
    bins: pd.Series[int] = p.histogram("age", bins=[0, 50, 110])
    assert_type(p.budget.spent, float)
    wide = bins.sum() > both[1] - both[0] and plan == mean.plan
    return table.assign(part=by_state, people=n.plan.epsilon, wide=wide, price=average.cost.epsilon)


def elsewhere(p: PrivateFrame) -> float:
    model = LinearRegression(epsilon=1)
    p.fit(model, X=["age"], y="cost")
    return epsilon([(Gaussian(sigma=30), 10)], delta=1e-6)


def mistaken(p: PrivateFrame) -> None:
    p.count(epsilon="much")  # type: ignore[call-overload]
    p.query(65)  # type: ignore[arg-type]
    p.mean("cost", epsilom=1)  # type: ignore[call-overload]
    p.budget.spent = 0  # type: ignore[misc]
    p.groupby("state").size(epsilon="much")  # type: ignore[arg-type]
    Accountant("much")  # type: ignore[arg-type]
    dpframe.private(5)  # type: ignore[arg-type]
    total: str = p.budget.spent  # type: ignore[assignment]
    print(total)
