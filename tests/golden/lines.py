"""What is asked for the golden files: frames that follow from arithmetic, sessions, and lines as a user types them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

STATES = ["CA", "FL", "NY", "TX"]
BOUNDS = {"age": (0, 100), "cost": (0, 1000), "day": ("2025-01-01", "2025-12-31")}
KEYS = {"state": STATES, "kind": ["a", "b", "c"]}


def frame(rows: int = 4000) -> pd.DataFrame:
    """Four thousand rows of twelve hundred people; nobody's, and the same with every version of numpy."""
    i = np.arange(rows, dtype=np.int64)
    mixed = (i * 2654435761 + 12345) % 4294967296
    return pd.DataFrame(
        {
            "id": i % 1200,
            "state": pd.Series(np.array([*STATES, "WA"])[mixed % 5], dtype="str"),
            "kind": pd.Categorical.from_codes(mixed // 7 % 3, ["a", "b", "c"]),
            "age": mixed // 11 % 100,
            "cost": np.where(mixed % 29 == 0, np.nan, mixed % 100_000 / 100),
            "smoker": mixed // 13 % 4 == 0,
            "day": pd.Timestamp("2025-01-01") + pd.to_timedelta(mixed // 17 % 365, unit="D"),
            "words": [["x"] * int(m % 3) + ["y"] * int(m // 3 % 2) for m in mixed],
        }
    )


REGIONS = pd.DataFrame(
    {
        "state": [*STATES, "WA"],
        "coast": ["west", "east", "east", "gulf", "west"],
        "size": [3, 2, 2, 3, 1],
    }
)

SESSIONS: dict[str, dict[str, Any]] = {
    "rows": {"epsilon": 1000, "queries": 1000, "bounds": BOUNDS, "keys": KEYS},
    "delta": {"epsilon": 1000, "delta": 1e-6, "queries": 1000, "bounds": BOUNDS, "keys": KEYS},
    "replaced": {
        "epsilon": 1000,
        "queries": 1000,
        "bounds": BOUNDS,
        "keys": KEYS,
        "neighbors": "replace-one",
    },
    "people": {
        "epsilon": 1000,
        "delta": 1e-6,
        "queries": 1000,
        "bounds": BOUNDS,
        "keys": KEYS,
        "unit": "id",
        "max_rows": 4,
        "max_groups": 3,
    },
}

EVERYWHERE = """
p.count()
p.count(epsilon=0.5)
p.count(within=20)
p.count("cost")
p.count(name="all rows")
p.query("age >= 65").count(epsilon=0.5)
p[p["age"] > 50].count(epsilon=0.5)
p.query("state in ['CA', 'NY'] and not smoker").count(epsilon=0.5)
p.query("cost.isna() or day < '2025-03-01'").count(epsilon=0.5)
p.counts({"old": "age >= 65", "dear": "cost > 500"}, epsilon=0.5)
p.sum("cost", epsilon=0.5)
p.sum("age", bounds=(18, 65), epsilon=0.5)
p[["age", "cost"]].sum(epsilon=0.5)
p.mean("cost", epsilon=0.5)
p.mean("cost", bounds=(0, 500), epsilon=0.5)
p["age"].mean(epsilon=0.5)
p.assign(k="cost / 10").mean("k", epsilon=0.5)
p.assign(k=lambda d: d["age"] * 2 + 1).sum("k", epsilon=0.5)
p["cost"].clip(0, 200).mean(epsilon=0.5)
p["cost"].fillna(0).mean(epsilon=0.5)
p.dropna("cost").mean("age", epsilon=0.5)
p.rename(columns={"age": "years"}).mean("years", epsilon=0.5)
p.drop(columns=["day"]).count(epsilon=0.6)
p.var("age", epsilon=0.5)
p.var("age", ddof=0, epsilon=0.5)
p.std("cost", epsilon=0.5)
p.describe("age", epsilon=0.5)
p.agg({"age": "mean", "cost": ["mean", "sum", "count"]}, epsilon=0.5)
p.agg(n=("age", "size"), m=("cost", "mean"), epsilon=0.5)
p.median("cost", epsilon=0.5)
p.quantile("age", 0.25, epsilon=0.5)
p.quantile("age", [0.25, 0.5, 0.75], epsilon=0.5)
p.quantile("cost", 0.9, method="tree", epsilon=0.5)
p.min("cost", epsilon=0.5)
p.max("cost", epsilon=0.5)
p.histogram("age", bins=[0, 20, 40, 60, 80, 100], epsilon=0.5)
p.histogram("cost", bins=10, epsilon=0.5)
p.value_counts("state", epsilon=0.5)
p.value_counts("state", normalize=True, epsilon=0.5)
p.value_counts("state", keys=["CA", "WA"], other="elsewhere", epsilon=0.5)
p.nunique("state", epsilon=0.5)
p.argmax("state", epsilon=0.5)
p.argmax("state", keys=["CA", "WA", "ZZ"], epsilon=0.5)
p.top("state", 2, epsilon=0.5)
p.choose([10, 50, 200], lambda d, c: abs(d["age"] - c), bounds=(0, 200), epsilon=0.5)
p.choose([10, 50], lambda d, c: abs(d["age"] - c), sensitivity=100, because="ages are below 100", epsilon=0.5)
p.groupby("state").size(epsilon=0.5)
p.groupby("state").count(epsilon=0.5)
p.groupby("state")["cost"].mean(epsilon=0.5)
p.groupby("state")["cost"].agg(["mean", "sum"], epsilon=0.5)
p.groupby("state").agg(n=("age", "size"), m=("cost", "mean"), epsilon=0.5)
p.groupby("state", as_index=False)["age"].sum(epsilon=0.5)
p.groupby("state")["age"].var(epsilon=0.5)
p.groupby("state")["age"].median(epsilon=0.5)
p.groupby("state")["age"].nunique(epsilon=0.5)
p.groupby(["state", "kind"]).size(epsilon=0.5)
p.groupby(["state", "kind"])["cost"].mean(epsilon=0.5)
p.groupby(["state", "kind"], keys=[("CA", "a"), ("NY", "b")]).size(epsilon=0.5)
p.groupby("state", keys=["CA", None], dropna=False).size(epsilon=0.5)
p.groupby("state", keys=["NY", "CA"], other="rest").size(epsilon=0.5)
p.groupby(p["age"].cut([0, 40, 100])).size(epsilon=0.5)
p.groupby(p["age"] > 50, keys=[True, False]).size(epsilon=0.5)
p.groupby("smoker", keys=[True, False])["cost"].mean(epsilon=0.5)
p.groupby(p["state"].map({"CA": "west", "NY": "east"}), keys=["west", "east"]).size(epsilon=0.5)
p.groupby(p["state"].str.lower(), keys=["ca", "ny"]).size(epsilon=0.5)
p.groupby(p["day"].dt.month, keys=range(1, 13)).size(epsilon=0.5)
p.resample("ME", on="day").size(epsilon=0.5)
p.resample("QE", on="day")["cost"].mean(epsilon=0.5)
p.pivot_table(values="cost", index="state", columns="kind", aggfunc="mean", epsilon=0.5)
p.pivot_table(values="cost", index="state", aggfunc=["mean", "count"], margins=True, epsilon=0.5)
p.crosstab("state", "kind", epsilon=0.5)
p.crosstab("state", "kind", margins=True, normalize=True, epsilon=0.5)
p[["age", "cost"]].cov(epsilon=0.5)
p[["age", "cost"]].corr(epsilon=0.5)
p["age"].isin([30, 31, 32]).sum(epsilon=0.5)
p["state"].isin(["CA"]).mean(epsilon=0.5)
p["cost"].isna().sum(epsilon=0.5)
p["smoker"].mean(epsilon=0.5)
p["state"].str.startswith("C").sum(epsilon=0.5)
p["state"].str.len().mean(bounds=(0, 5), epsilon=0.5)
p["cost"].round(0).sum(epsilon=0.5)
p["age"].astype(float).mean(epsilon=0.5)
p["age"].between(20, 30).sum(epsilon=0.5)
p.merge(REGIONS, on="state").groupby("coast").size(epsilon=0.5)
p.merge(REGIONS, on="state", how="left").sum("size", epsilon=0.5)
p.melt(id_vars=["state"], value_vars=["age", "cost"], max_rows=8).mean("value", bounds=(0, 1000), epsilon=0.5)
p.explode("words", max_rows=12, max_groups=2).value_counts("words", keys=["x", "y"], epsilon=0.5)
p.suggest_bounds("cost", epsilon=0.5)
p.fit(learn.LinearRegression(), ["age"], "cost", epsilon=0.5)
p.fit(learn.LogisticRegression(method="output"), ["age", "cost"], "smoker", epsilon=0.5)
p.count(mechanism="laplace", epsilon=0.25)
p.count(fresh=True, epsilon=0.25)
p.explain.mean("cost", epsilon=0.5)
p.explain.groupby("state").size(epsilon=0.5)
p.explain.argmax("state", epsilon=0.5)
p.explain.median("cost", epsilon=0.5)
"""

WITH_DELTA = """
p.count(delta=1e-9, epsilon=0.5)
p.histogram("age", bins=[0, 20, 40, 60, 80, 100], mechanism="gaussian", epsilon=0.5)
p.groupby("state")["cost"].mean(mechanism="gaussian", epsilon=0.5)
p.unique("state", epsilon=0.5)
p.unique(["state", "kind"], epsilon=0.5)
p.drop(columns=["kind"]).value_counts("age", keys=range(0, 100, 10), epsilon=0.7)
p.groupby(p["state"].str.upper()).size(epsilon=0.5)
p.groupby(p["state"].str.upper())["cost"].mean(epsilon=0.5)
p.argmax("age", epsilon=0.5)
p.top("age", 2, epsilon=0.5)
"""

REPLACED = """
p.randomize("smoker", keys=[True, False], epsilon=0.5)
p.randomize("age", bounds=(0, 100), epsilon=0.5)
"""

WITH_PEOPLE = """
p.nunique("id", epsilon=0.5)
p.count(max_rows=2, epsilon=0.5)
p.groupby("state").size(max_groups=2, epsilon=0.5)
p.suggest_limits(epsilon=0.5)
p.suggest_limits("state", epsilon=0.5)
"""

REFUSED = """
p.head()
p.nothing
p["nothing"]
p.mean("nothing")
p.mean("state")
p.sum("age", bounds=(5, 1))
p.sum("age", bounds=(0, float("nan")))
p.count(epsilon=0)
p.count(epsilon=-1)
p.count(epsilon=float("nan"))
p.count(epsilon="much")
p.count(epsilon=20_000)
p.count(delta=2, epsilon=1)
p.count(within=5, epsilon=1)
p.count(within=-1)
p.count(n=5)
p.count(mechanism="magic")
p.count(colour="red")
p.query("age >")
p.query("age.mean() > 5")
p.query("state > 5")
p.query("__import__('os')")
p.groupby("nothing")
p.groupby("cost").size()
p.groupby("state", keys=[1]).size()
p.groupby("state", keys=["CA", "CA"]).size()
p.groupby("state", keys=[]).size()
p.groupby(["state", "kind"], keys=[("CA",)]).size()
p.groupby("state").apply(len)
p.groupby("state").transform("mean")
p.groupby("state").first()
p.histogram("age", bins=[3, 2, 1])
p.histogram("age", bins=0)
p.quantile("age", 2)
p.median("state")
p.value_counts("cost")
p.argmax("state", keys=[])
p.top("state", 0)
p.resample("ME", on="age")
p.resample("nonsense", on="day")
p.resample("ME")
p.merge(REGIONS, on="nothing")
p.merge(REGIONS, how="outer", on="state")
p.merge(REGIONS, on="state", validate="1:1")
p.explode("age")
p.melt(id_vars=["nothing"])
p.sample(5)
p.iloc[0]
p.loc[0]
p.to_csv()
p.values
p.T
p["age"].tolist()
p.value_counts("age", bins=[0, 50, 100], epsilon=0.5)
p.groupby(["state", "kind"], keys=[("CA", "a"), ("NY", "b")], other=True).size(epsilon=0.5)
p.groupby("kind").resample("QE", on="day").size(epsilon=0.5)
p["age"].cov(p["cost"], epsilon=0.5)
p["age"].cumsum()
p["age"].shift(1)
p["age"].rank()
p["age"].astype("datetime64[ns]")
p["state"].astype(int)
p["age"].str.len()
p["age"].dt.year
p["age"].cut([2, 1])
bool(p["age"] > 5)
len(p)
list(p)
p["age"] > p
p.assign(x=[1, 2, 3])
p.fillna({"nothing": 0})
p.fillna({"state": 0})
p.choose([], lambda d, c: d["age"], sensitivity=1)
p.randomize("state", keys=[])
p.agg("nothing")
p.agg({"age": "first"})
p.pivot_table(values="age", index="state", aggfunc="first")
p.open(epsilon=5)
p.open(neighbors="both")
p.adopt(REGIONS)
p.unique("state", epsilon=0.5, delta=2)
"""


def lines(session: str) -> list[str]:
    """What is asked in a session, in order; the refused ones are asked in each."""
    found = EVERYWHERE.strip().splitlines()
    if SESSIONS[session].get("delta"):
        found += WITH_DELTA.strip().splitlines()
    if SESSIONS[session].get("neighbors"):
        found += REPLACED.strip().splitlines()
    if SESSIONS[session].get("unit"):
        found += WITH_PEOPLE.strip().splitlines()
    return found


def refused() -> list[str]:
    return REFUSED.strip().splitlines()
