"""Mistakes that mypy and pyright see: an error in each line that says so, and in no other."""

from __future__ import annotations

import dpframe
from dpframe import Accountant, PrivateFrame


def misspelt_verbs(p: PrivateFrame) -> None:
    p.meen("age")  # wrong
    p.explain.meen("age")  # wrong
    p["age"].meen()  # wrong
    p.groupby("state").meen("age")  # wrong
    p.groupby("state")["age"].meen()  # wrong
    p.explain.groupby("state").meen("age")  # wrong
    p["name"].str.lowr()  # wrong
    print(p["when"].dt.moonth)  # wrong
    print(p.budget.remainin)  # wrong
    p.mean("age").intervall()  # wrong
    print(p.explain.mean("age").scal)  # wrong
    print(dpframe.private_frame)  # wrong


def misspelt_words(p: PrivateFrame) -> None:
    p.count(epsilom=1)  # wrong
    p.mean("age", epsilom=1)  # wrong
    p.mean("age", bound=(0, 1))  # wrong
    p.quantile("age", 0.5, epsilom=1)  # wrong
    p.median("age", resolutoin=1)  # wrong
    p["age"].mean(epsilom=1)  # wrong
    p["age"].value_counts(key=["a"])  # wrong
    p.histogram("age", bin=3)  # wrong
    p.groupby("state", key=["CA"])  # wrong
    p.groupby("state").size(epsilom=1)  # wrong
    p.groupby("state")["age"].mean(epsilom=1)  # wrong
    p.explain.mean("age", epsilom=1)  # wrong
    p.explain["age"].mean(epsilom=1)  # wrong
    p.explain.histogram("age", bin=3)  # wrong
    p.explain.groupby("state").mean("age", epsilom=1)  # wrong
    p.agg(["mean"], epsilom=1)  # wrong
    p.open(bound={"age": (0, 1)})  # wrong
    p.dropna(subsets=["age"])  # wrong


def wrong_values(p: PrivateFrame) -> None:
    p.count(epsilon="much")  # wrong
    p.mean(["age", "cost"])  # wrong
    p.mean("age", 0.5)  # wrong
    p["age"].mean(0.5)  # wrong
    p.query(65)  # wrong
    p.explain.mean("age").interval()  # wrong
    print(p.mean("age").scale)  # wrong
    p.budget.spent = 0  # wrong
    Accountant("much")  # wrong
    dpframe.private(5)  # wrong
    whole: int = p.mean("age")  # wrong
    print(whole)
