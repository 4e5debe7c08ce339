"""Every public name of frames, columns and groups, asked once on each kind of table; and the page that says what each can.

``python -m tests.engines.verbs`` writes the table of docs/explain/engines.md from what it sees.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Callable
from functools import lru_cache
from glob import glob
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import dpframe
from dpframe._frame.people.groups import PersonGroupBy
from dpframe._frame.surface import PrivateColumn, PrivateGroupBy
from tests.engines import spark

PAGE = Path(__file__).parents[2] / "docs" / "explain" / "engines.md"
E, STATES = 900, ["CA", "NY", "TX"]
BOUNDS = {"age": (0, 100), "visits": (0, 20), "when": ("2024-01-01", "2024-12-31")}
OPENED = {"bounds": BOUNDS, "keys": {"state": STATES}}
AGES = {"bounds": {"age": (0, 100)}, "max_rows": 4, "max_groups": 4}
SORTED = ["when", "age", "visits"]
CREATED = count()
UNIT = {"unit": "id", "max_rows": 4, "max_groups": 4}


def rows() -> pd.DataFrame:
    """Sixty people with four rows each, who are in at most four groups of anything that is grouped by."""
    rng, person = np.random.default_rng(7), np.repeat(np.arange(60), 4)
    age = rng.integers(20, 90, 240).astype(float)
    age[::11] = np.nan
    return pd.DataFrame(
        {
            "id": person,
            "state": pd.array(
                np.array(STATES)[(person + rng.integers(0, 2, 240)) % 3], dtype="str"
            ),
            "age": age,
            "visits": rng.integers(0, 20, 240),
            "flag": rng.random(240) < 0.4,
            "when": pd.to_datetime("2024-01-01")
            + pd.to_timedelta(rng.integers(0, 360, 240), unit="D"),
        }
    ).astype({"when": "datetime64[us]"})


# The tables -------------------------------------------------------------------------------------------------------------


def _sqlite(frame: pd.DataFrame, folder: str) -> str:
    base = sqlite3.connect(f"{folder}/visits.db")
    base.execute(
        'CREATE TABLE visits (id INTEGER, state TEXT, age REAL, visits INTEGER, flag BOOLEAN, "when" TIMESTAMP)'
    )
    cells = frame.assign(when=frame["when"].astype(str), flag=frame["flag"].astype(int)).astype(
        object
    )
    base.executemany(
        "INSERT INTO visits VALUES (?, ?, ?, ?, ?, ?)",
        cells.where(frame.notna(), None).to_numpy().tolist(),
    )
    base.commit()
    base.close()
    return f"{folder}/visits.db"


def _parquet(frame: pd.DataFrame, folder: str) -> str:
    for i in range(3):
        frame.iloc[i * 80 : (i + 1) * 80].to_parquet(f"{folder}/part{i}.parquet")
    return f"{folder}/part*.parquet"


def _duckdb(frame: pd.DataFrame, folder: str) -> Any:
    base = import_module("duckdb").connect(f"{folder}/visits.duckdb")
    base.execute(
        f"create table visits as select * from read_parquet('{_parquet(frame, folder)}')"
    ).fetchall()
    return base.table("visits")


def _duckdb_table(frame: pd.DataFrame, folder: str) -> Any:
    _duckdb(frame, folder)
    return dpframe.sql(f"duckdb:///{folder}/visits.duckdb", "visits")


@lru_cache(maxsize=1)
def _server() -> Any:
    return import_module("tests.postgres").Postgres()


def _postgresql(frame: pd.DataFrame, folder: str) -> Any:
    server, name = _server(), f"visits_{next(CREATED)}"  # one that is open cannot be dropped
    kinds = 'id bigint, state text, age float8, visits bigint, flag boolean, "when" timestamp'
    cells = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    url = f"postgresql://{server.user}@127.0.0.1:{server.port}/postgres"
    with import_module("psycopg").connect(url, autocommit=True) as base:
        base.execute(f"CREATE TABLE {name} ({kinds})")
        base.cursor().executemany(f"INSERT INTO {name} VALUES (%s, %s, %s, %s, %s, %s)", cells)
    return dpframe.sql(url, name)


def _spark(frame: pd.DataFrame, folder: str) -> Any:
    return spark.session().read.parquet(str(Path(_parquet(frame, folder)).parent))


TABLES: dict[str, tuple[str, Callable[[pd.DataFrame, str], Any]]] = {
    "pandas": ("pandas", lambda frame, folder: frame),
    "Parquet files": ("pyarrow", _parquet),
    "pyarrow table": ("pyarrow", lambda frame, folder: import_module("pyarrow").Table.from_pandas(frame)),
    "pyarrow dataset": (
        "pyarrow",
        lambda frame, folder: import_module("pyarrow.dataset").dataset(sorted(glob(_parquet(frame, folder)))),
    ),
    "polars DataFrame": ("polars", lambda frame, folder: import_module("polars").from_pandas(frame)),
    "polars LazyFrame": ("polars", lambda frame, folder: import_module("polars").scan_parquet(_parquet(frame, folder))),
    "duckdb relation": ("duckdb", _duckdb),
    "dask DataFrame": ("dask", lambda frame, folder: import_module("dask.dataframe").from_pandas(frame, npartitions=3)),
    "Spark DataFrame": ("pyspark", _spark),
    "duckdb table": ("duckdb", _duckdb_table),
    "PostgreSQL table": ("psycopg", _postgresql),
    "SQLite table": ("sqlite3", lambda frame, folder: dpframe.sql(f"sqlite:///{_sqlite(frame, folder)}", "visits")),
}  # fmt: skip


def installed(table: str) -> bool:
    """Whether the library of a kind of table is there."""
    if find_spec(TABLES[table][0]) is None:
        return False
    servers = {
        "Spark DataFrame": lambda: spark.missing(),
        "PostgreSQL table": lambda: import_module("tests.postgres").missing(),
    }
    return table not in servers or servers[table]() is None


# The questions ----------------------------------------------------------------------------------------------------------


def _numbers(name: str, **more: Any) -> Callable[[Any], Any]:
    return lambda p: getattr(p, name)("age", epsilon=E, **more)


def _planned(p: Any) -> Any:
    with p.plan_ahead() as batch:
        answer = batch.count(epsilon=E)
    return answer.answer


def _fit(p: Any) -> Any:
    model = p.fit(dpframe.learn.LinearRegression(l2=0), X=["visits"], y="age", epsilon=E)
    return np.round(model.intercept_ / 10)


def _randomized(p: Any, column: bool = False) -> Any:
    words = {"keys": STATES, "epsilon": E}
    found = p["state"].randomize(**words) if column else p.randomize("state", **words)
    return found.value_counts().sort_index()


def _replace(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    ask.neighbors = "replace-one"  # type: ignore[attr-defined]
    return ask


def _insert(p: Any) -> Any:
    p.insert(0, "old", p["age"] > 50)
    return p["old"].sum(epsilon=E)


def _report(p: Any) -> bool:
    with TemporaryDirectory() as folder:
        return bool(p.report(f"{folder}/page.md").read_text())


def _bars(axes: Any) -> Any:
    """The heights of the bars of a histogram."""
    return np.array([bar.get_height() for bar in np.ravel(axes)[0].patches])


def _lines(axes: Any) -> Any:
    """Where the lines of boxes and whiskers are."""
    return np.concatenate([line.get_ydata() for line in np.ravel(axes)[0].lines])


# What operators make of ages and a number, with bounds of it where a zero would leave none
OPERATORS: dict[str, tuple[float, dict[str, Any]]] = {
    **{name: (2, {}) for name in ("add", "sub", "mul", "div", "truediv", "pow")},
    **{name: (7, {}) for name in ("floordiv", "mod")},
    "rsub": (100, {}),
    "rdiv": (5000, {"bounds": (50, 250)}),
}
# In units of which the quantiles of a small group are alike, where each has an eighth of the budget
COARSE = pd.Series(
    {"count": 1, "mean": 1, "std": 1, "min": 40, "25%": 10, "50%": 10, "75%": 10, "max": 40}
)
COMPARED = ("eq", "ne", "gt", "ge", "lt", "le")
NUMBERS = (
    "mean",
    "median",
    "min",
    "max",
    "sum",
    "std",
    "var",
    "sem",
    "skew",
    "quantile",
    "describe",
)
COUNTS = ("count", "nunique")
FRAME: dict[str, Callable[[Any], Any]] = {
    **{name: _numbers(name) for name in NUMBERS},
    **{
        name: (lambda p, n=name, x=x, more=more: getattr(p[["age"]], n)(x)["age"].mean(epsilon=E, **more))
        for name, (x, more) in OPERATORS.items()
    },
    **{name: (lambda p, n=name: getattr(p[["age"]], n)(50)["age"].sum(epsilon=E)) for name in COMPARED},
    **{
        name: (lambda p, n=name: getattr(p[["age", "visits"]], n)().sum(epsilon=E))
        for name in ("isna", "isnull", "notna", "notnull")
    },
    **{
        name: (lambda p, n=name: getattr(p, n)().mean("age", epsilon=E))
        for name in ("convert_dtypes", "copy", "infer_objects", "sort_index", "squeeze")
    },
    **{name: (lambda p, n=name: list(getattr(p, n)(3).columns)) for name in ("head", "tail", "sample")},
    **{name: (lambda p, n=name: getattr(p[["flag"]], n)(axis=1).sum(epsilon=E)) for name in ("any", "all")},
    **{
        name: (lambda p, n=name: getattr(p[["age"]], n)(lambda x: x * 2).mean("age", epsilon=E))
        for name in ("apply", "map", "transform")
    },
    **{
        name: (lambda p, n=name: getattr(p[["age"]], n)(p["age"] > 50, 0).mean("age", epsilon=E))
        for name in ("where", "mask")
    },
    "abs": lambda p: p[["age"]].abs().mean("age", epsilon=E),
    "add_prefix": lambda p: p.add_prefix("its_").mean("its_age", epsilon=E),
    "add_suffix": lambda p: p.add_suffix("_now").mean("age_now", epsilon=E),
    "boxplot": lambda p: _lines(p.boxplot("age", epsilon=E)),
    "card": lambda p: p.card(format="json") != "",
    "report": _report,
    "dtypes": lambda p: list(p.dtypes.index),
    "eval": lambda p: p.eval("age / 2").mean(epsilon=E),
    "filter": lambda p: p.filter(like="ag").mean("age", epsilon=E),
    "get": lambda p: p.get("age").mean(epsilon=E),
    "hist": lambda p: _bars(p.hist("age", bins=[0, 25, 50, 100], epsilon=E)),
    "iloc": lambda p: p.iloc[:, 2].mean(epsilon=E),
    "info": lambda p: p.info(buf=StringIO()),
    "insert": _insert,
    "keys": lambda p: list(p.keys()),
    "loc": lambda p: p.loc[p["age"] > 50, "visits"].mean(epsilon=E),
    "ndim": lambda p: p.ndim,
    "plot": lambda p: _bars(p.plot.hist(y="age", bins=[0, 25, 50, 100], epsilon=E)),
    "pop": lambda p: p.pop("age").mean(epsilon=E),
    "reindex": lambda p: p.reindex(columns=["visits", "age"]).mean("age", epsilon=E),
    "rename_axis": lambda p: p.rename_axis("row").mean("age", epsilon=E),
    "replace": lambda p: p.replace({"CA": "NY"})["state"].value_counts(epsilon=E),
    "reset_index": lambda p: p.set_index("state").reset_index().groupby("state").size(epsilon=E),
    "round": lambda p: p[["age"]].round(-1).mean("age", epsilon=E),
    "select_dtypes": lambda p: p.select_dtypes("number").mean("age", epsilon=E),
    "set_axis": lambda p: p[["age"]].set_axis(["years"], axis=1).mean("years", epsilon=E),
    "set_index": lambda p: p.set_index("state").groupby("state").size(epsilon=E),
    "shape": lambda p: p.shape[1],
    "test": lambda p: p.test.means("age", by="state", keys=["CA", "NY"], epsilon=E).estimate,
    "accountant": lambda p: p.accountant.limits.epsilon,
    "adopt": lambda p: p.adopt(rows()[["id", "age"]], because="the same rows", **AGES).mean("age", epsilon=E),
    "agg": lambda p: p.agg(n=("age", "size"), m=("age", "mean"), epsilon=E),
    "aggregate": lambda p: p.aggregate(n=("age", "size"), epsilon=E),
    "argmax": lambda p: p.argmax("state", epsilon=E),
    "assign": lambda p: p.assign(old="age > 50")["old"].sum(epsilon=E),
    "astype": lambda p: p.astype({"visits": "float64"})["visits"].mean(epsilon=E),
    "budget": lambda p: p.budget.epsilon,
    "choose": lambda p: p.choose([10, 50, 95], "(age - @candidate).abs() <= 30", epsilon=E),
    "clip": lambda p: p[["age"]].clip(30, 60).mean("age", epsilon=E),
    "clipped": lambda p: p.clipped("age", bounds=(30, 60), epsilon=E),
    "close": lambda p: p.close(),
    "columns": lambda p: [c for c in p.columns if c != "codes"],
    "corr": lambda p: p[["age", "visits"]].corr(epsilon=E).round(0),
    "count": lambda p: p.count(epsilon=E),
    "counts": lambda p: p.counts({"old": p["age"] > 60, "some": p["visits"] > 3}, epsilon=E),
    "cov": lambda p: p[["age", "visits"]].cov(epsilon=E).round(-2),
    "crosstab": lambda p: p.crosstab("state", "flag", epsilon=E),
    "cut": lambda p: p.cut("age", [0, 50, 100]).value_counts(epsilon=E),
    "declarations": lambda p: len(p.declarations) > 0,
    "drop_duplicates": lambda p: p.sort_values(SORTED).drop_duplicates("id").mean("visits", epsilon=E),
    "duplicated": lambda p: p.sort_values(SORTED).duplicated("id").sum(epsilon=E),
    "drop": lambda p: p.drop(columns="age").count(epsilon=E),
    "dropna": lambda p: p.dropna(subset=["age"]).count(epsilon=E),
    "explain": lambda p: p.explain.count(epsilon=E).scale,
    "explode": lambda p: p.explode("codes", max_rows=9, max_groups=9).count(epsilon=E),
    "fillna": lambda p: p.fillna({"age": 0})["age"].mean(epsilon=E),
    "fit": _fit,
    "groupby": lambda p: p.groupby("state").size(epsilon=E),
    "histogram": lambda p: p.histogram("age", bins=[0, 25, 50, 100], epsilon=E),
    "isin": lambda p: p[p["state"].isin(["CA"])].count(epsilon=E),
    "join": lambda p: p.join(p.groupby("id").agg(most=("visits", "max")), on="id").mean("most", epsilon=E),
    "ledger": lambda p: len(p.ledger),
    "melt": lambda p: p.melt(["id"], ["age", "visits"], max_rows=8, max_groups=8).mean("value", epsilon=E),
    "merge": lambda p: p.merge(pd.DataFrame({"state": STATES, "big": [1.0, 0.0, 1.0]}), on="state").sum("big", epsilon=E),
    "nunique": lambda p: p.nunique("state", epsilon=E),
    "open": lambda p: p.open(queries=50).budget.epsilon,
    "over_limits": lambda p: p.over_limits(epsilon=E),
    "pipe": lambda p: p.pipe(lambda d: d[["id", "age"]], **AGES).mean("age", epsilon=E),
    "pivot_table": lambda p: p.pivot_table(values="age", index="state", aggfunc="mean", epsilon=E),
    "plan_ahead": _planned,
    "query": lambda p: p.query("age > 50 and state != 'CA'").count(epsilon=E),
    "randomize": _replace(_randomized),
    "rename": lambda p: p.rename(columns={"age": "years"}).mean("years", epsilon=E),
    "resample": lambda p: p.resample("QE", on="when").size(epsilon=E),
    "sort_values": lambda p: p.groupby("state").size(epsilon=E).sort_values(),
    "suggest_bounds": lambda p: p.suggest_bounds("visits", epsilon=E),
    "suggest_limits": lambda p: p.suggest_limits(epsilon=E),
    "top": lambda p: p.top("state", k=1, epsilon=E),
    "unique": lambda p: p.unique("state", epsilon=E).tolist(),
    "value_counts": lambda p: p.value_counts("state", epsilon=E),
}  # fmt: skip
COLUMN: dict[str, Callable[[Any], Any]] = {
    **{name: (lambda p, n=name: getattr(p["age"], n)(epsilon=E)) for name in NUMBERS + COUNTS},
    **{name: (lambda p, n=name: getattr(p["age"], n)().sum(epsilon=E)) for name in ("isna", "isnull", "notna", "notnull")},
    **{
        name: (lambda p, n=name, x=x, more=more: getattr(p["age"], n)(x).mean(epsilon=E, **more))
        for name, (x, more) in OPERATORS.items()
    },
    **{name: (lambda p, n=name: getattr(p["age"], n)(50).sum(epsilon=E)) for name in COMPARED},
    **{
        name: (lambda p, n=name: getattr(p["age"], n)().mean(epsilon=E))
        for name in ("copy", "dropna", "infer_objects", "sort_index", "sort_values", "squeeze")
    },
    **{name: (lambda p, n=name: len(getattr(p["age"], n)(3))) for name in ("head", "tail", "sample")},
    **{
        name: (lambda p, n=name: getattr(p["age"], n)(p["age"] > 50, 0).mean(epsilon=E))
        for name in ("where", "mask")
    },
    **{name: (lambda p, n=name: getattr(p["age"], n)(p["visits"], epsilon=E)) for name in ("corr", "cov")},
    "apply": lambda p: p["age"].apply(lambda x: x * 2).mean(epsilon=E),
    "case_when": lambda p: p["age"].case_when([(p["age"] > 50, 50)]).mean(epsilon=E),
    "cat": lambda p: p["state"].cat.codes.mean(epsilon=E),
    "dtype": lambda p: pd.api.types.is_float_dtype(p["age"].dtype),
    "groupby": lambda p: p["age"].groupby(p["state"]).mean(epsilon=E),
    "hist": lambda p: _bars(p["age"].hist(bins=[0, 25, 50, 100], epsilon=E)),
    "loc": lambda p: p["visits"].loc[p["age"] > 50].mean(epsilon=E),
    "pipe": lambda p: p["age"].pipe(lambda x: x.clip(30, 60)).mean(epsilon=E),
    "plot": lambda p: _lines(p["age"].plot.box(epsilon=E)),
    "rename": lambda p: p["age"].rename("years").mean(epsilon=E),
    "replace": lambda p: p["state"].replace({"CA": "NY"}).value_counts(epsilon=E),
    "resample": lambda p: p.set_index("when")["age"].resample("QE").mean(epsilon=E),
    "reset_index": lambda p: p["age"].reset_index(drop=True).mean(epsilon=E),
    "to_frame": lambda p: p["age"].to_frame("years").mean("years", epsilon=E),
    "abs": lambda p: p["age"].abs().mean(epsilon=E),
    "agg": lambda p: p["age"].agg(["mean", "sum"], epsilon=E),
    "aggregate": lambda p: p["age"].aggregate("mean", epsilon=E),
    "argmax": lambda p: p["state"].argmax(epsilon=E),
    "astype": lambda p: p["visits"].astype(float).mean(epsilon=E),
    "between": lambda p: p["age"].between(30, 60).sum(epsilon=E),
    "clip": lambda p: p["age"].clip(30, 60).mean(epsilon=E),
    "clipped": lambda p: p["age"].clipped(bounds=(30, 60), epsilon=E),
    "cut": lambda p: p["age"].cut([0, 50, 100]).value_counts(epsilon=E),
    "dt": lambda p: p["when"].dt.month.value_counts(epsilon=E),
    "fillna": lambda p: p["age"].fillna(0).mean(epsilon=E),
    "histogram": lambda p: p["age"].histogram(bins=[0, 25, 50, 100], epsilon=E),
    "isin": lambda p: p["state"].isin(["CA"]).sum(epsilon=E),
    "mode": lambda p: p["state"].mode(epsilon=E).tolist(),
    "map": lambda p: p["state"].map({"CA": 1.0, "NY": 2.0, "TX": 3.0}).mean(epsilon=E, bounds=(0, 3)),
    "name": lambda p: p["age"].name,
    "randomize": _replace(lambda p: _randomized(p, column=True)),
    "round": lambda p: p["age"].round(-1).mean(epsilon=E, bounds=(0, 100)),
    "str": lambda p: (p["state"].str.lower() == "ca").sum(epsilon=E),
    "top": lambda p: p["state"].top(1, epsilon=E),
    "unique": lambda p: p["state"].unique(epsilon=E).tolist(),
    "value_counts": lambda p: p["state"].value_counts(epsilon=E),
}  # fmt: skip
GROUPS: dict[str, Callable[[Any], Any]] = {
    **{name: (lambda p, n=name: getattr(p.groupby("state")["age"], n)(epsilon=E)) for name in NUMBERS + COUNTS},
    "agg": lambda p: p.groupby("state").agg(n=("age", "size"), m=("age", "mean"), epsilon=E),
    "aggregate": lambda p: p.groupby("state").aggregate(n=("age", "size"), epsilon=E),
    "argmax": lambda p: p.groupby("flag")["state"].argmax(epsilon=E).tolist(),
    "top": lambda p: p.groupby("flag")["state"].top(1, epsilon=E).tolist(),
    "clipped": lambda p: p.groupby("state")["age"].clipped(bounds=(30, 60), epsilon=E),
    "corr": lambda p: p.groupby("state")[["age", "visits"]].corr(epsilon=E),
    "cov": lambda p: p.groupby("state")[["age", "visits"]].cov(epsilon=E) / 10,
    "describe": lambda p: p.groupby("state")["age"].describe(epsilon=E) / COARSE,
    "explain": lambda p: p.groupby("state").explain.size(epsilon=E).scale,
    "hist": lambda p: [_bars(one) for one in p.groupby("state").hist("age", bins=[0, 25, 50, 100], epsilon=E)],
    "histogram": lambda p: p.groupby("state")["age"].histogram([0, 25, 50, 100], epsilon=E),
    "size": lambda p: p.groupby(["state", "flag"]).size(epsilon=E),
    "value_counts": lambda p: p.groupby("state").value_counts("flag", epsilon=E),
}  # fmt: skip


def _own(p: Any) -> Any:
    """Each person's own rows, in an order that every table has."""
    return p.sort_values(SORTED).groupby("id")["visits"]


PERSON = (
    "sum",
    "mean",
    "median",
    "quantile",
    "var",
    "std",
    "sem",
    "min",
    "max",
    "first",
    "last",
    "count",
    "nunique",
    "size",
)
ROWS = ("shift", "cummin", "cummax", "ffill", "bfill", "rank", "cumcount", "cumsum")
PEOPLE: dict[str, Callable[[Any], Any]] = {
    **{name: (lambda p, n=name: getattr(_own(p), n)().mean(epsilon=E)) for name in PERSON + ROWS},
    **{name: (lambda p, n=name: getattr(_own(p), n)().sum(epsilon=E)) for name in ("any", "all")},
    **{name: (lambda p, n=name: getattr(_own(p), n)().mean(bounds=(0, 9000), epsilon=E)) for name in ("prod", "cumprod")},
    **{name: (lambda p, n=name: getattr(_own(p), n)(2).mean(epsilon=E)) for name in ("head", "tail", "nlargest", "nsmallest")},
    "agg": lambda p: p.groupby("id").agg(n=("age", "count"), m=("age", "max")).mean(epsilon=E),
    "aggregate": lambda p: _own(p).aggregate(lambda x: x.max() - x.min()).mean(epsilon=E),
    "apply": lambda p: p.groupby("id").apply(lambda g: g["visits"].sum() / g["age"].count()).mean(bounds=(0, 80), epsilon=E),
    "diff": lambda p: _own(p).diff().mean(epsilon=E),
    "expanding": lambda p: _own(p).expanding().max().mean(epsilon=E),
    "rolling": lambda p: _own(p).rolling(2).mean().mean(epsilon=E),
    "skew": lambda p: _own(p).skew().mean(bounds=(-2, 2), epsilon=E),
    "filter": lambda p: p.groupby("id").filter(lambda g: g["visits"].sum() > 40).count(epsilon=E),
    "nth": lambda p: _own(p).nth(-1).mean(epsilon=E),
    "pct_change": lambda p: _own(p).pct_change().mean(bounds=(-1, 20), epsilon=E),
    "pipe": lambda p: _own(p).pipe(lambda g: g.max() - g.min()).mean(epsilon=E),
    "transform": lambda p: _own(p).transform(lambda x: x - x.mean()).mean(epsilon=E),
}  # fmt: skip
VERBS = {
    **{f"p.{name}": ask for name, ask in FRAME.items()},
    **{f"p[column].{name}": ask for name, ask in COLUMN.items()},
    **{f"p.groupby(...).{name}": ask for name, ask in GROUPS.items()},
    **{f"p.groupby(unit).{name}": ask for name, ask in PEOPLE.items()},
}
NEED_UNIT = {
    "p.suggest_limits",
    "p.over_limits",
    "p.join",
    "p.drop_duplicates",
    "p.duplicated",
    *(v for v in VERBS if "(unit)" in v),
}


def names() -> set[str]:
    """All public names, as they stand in `VERBS`."""
    kinds = {
        "p": dpframe.PrivateFrame,
        "p[column]": PrivateColumn,
        "p.groupby(...)": PrivateGroupBy,
    }
    kinds["p.groupby(unit)"] = PersonGroupBy
    return {
        f"{p}.{name}" for p, kind in kinds.items() for name in dir(kind) if not name.startswith("_")
    }


# What a table cannot do, by number, with what to do instead -------------------------------------------------------------------

REASONS = {
    1: "makes several rows of one, and the column that `unit=` names says whose they are. Open the table with it",
    2: "adopts a frame in memory. Open the other table with the same budget: `dpframe.open(other, accountant=p.accountant)`",
    3: "gives reports in the order of the rows, and this table has no fixed one. Write it to Parquet in an order that is public",
    4: "needs times, which SQLite keeps as texts: `p.assign(t=pd.to_datetime(p['start']))` makes them",
    5: "has no SQL of which every bit is defined in all databases, and is read in parts",
    6: "needs the rows and no sums, and is read in parts",
    7: "computes, which PostgreSQL ends with an error where a double overflows, and is read in parts",
    8: "limits what a person adds in a way that has no SQL yet, and is read in parts",
    9: "needs all rows of all people at once. Make them where the table is kept (a view, a LazyFrame), and open that",
    10: "needs a column of lists, which is not read of SQLite and PostgreSQL",
    11: "makes its rows of batches that are read here, in parts",
    12: "looks at all rows of a person at once, which has no SQL yet, and is read in parts",
    13: "chooses among values row by row, which has no SQL yet, and is read in parts",
    14: "asks several statements of one state of the rows, for which Spark has no transactions, and is read in parts",
}
OF_PEOPLE = {"p.explode": 1, "p.melt": 1}  # but for pandas, which tells rows apart
_ROWS = {"p.pipe": 9, "p.join": 9, "p.adopt": 2}
_UNORDERED = {"p.randomize": 3, "p[column].randomize": 3}
_TIMELESS = {"p.resample": 4, "p[column].resample": 4, "p[column].dt": 4}
CANNOT: dict[str, dict[str, int]] = {
    "pandas": {},
    **dict.fromkeys(
        ("Parquet files", "pyarrow table", "pyarrow dataset", "polars DataFrame", "dask DataFrame"),
        _ROWS,
    ),
    **dict.fromkeys(
        ("polars LazyFrame", "duckdb relation", "Spark DataFrame", "duckdb table"),
        _ROWS | _UNORDERED,
    ),
    "PostgreSQL table": _ROWS | _UNORDERED | {"p.explode": 10},
    "SQLite table": _ROWS | _UNORDERED | _TIMELESS | {"p.explode": 10},
}


# What databases count, and what is read of their tables in parts, by the number of its reason.
COUNTING = (
    "Parquet files",
    "duckdb relation",
    "Spark DataFrame",
    "duckdb table",
    "PostgreSQL table",
    "SQLite table",
)
PARTS = {
    **dict.fromkeys(("p.cut", "p.resample", "p[column].resample"), 5),
    **dict.fromkeys(("p.groupby(...).argmax", "p.groupby(...).top"), 5),
    **{f"p[column].{name}": 5 for name in ("cut", "dt", "map", "str")},
    **{
        f"{p}.{name}": 5
        for p in ("p", "p[column]")
        for name in ("pow", "floordiv", "mod", "rdiv", "round")
    },
    **{f"{p}.{name}": 13 for p in ("p", "p[column]") for name in ("where", "mask", "replace")},
    **dict.fromkeys(("p[column].case_when", "p[column].cat"), 13),
    **dict.fromkeys(("p.fit", "p.randomize", "p[column].randomize"), 6),
    **dict.fromkeys(("p.explode", "p.melt", "p.merge"), 11),
    **dict.fromkeys(NEED_UNIT - {"p.suggest_limits"}, 12),
}
ARITHMETIC = {
    **dict.fromkeys(("p.choose", "p.eval", "p.map", "p.transform"), 7),
    **{
        f"{p}.{name}": 7
        for p in ("p", "p[column]")
        for name in ("add", "sub", "mul", "div", "truediv", "rsub", "apply")
    },
}
SEVERAL = {
    f"{p}.{name}": 14
    for p in ("p", "p[column]", "p.groupby(...)")
    for name in ("clipped", "describe")
}
MORE = {"PostgreSQL table": ARITHMETIC, "Spark DataFrame": SEVERAL}
LIMITED = {
    f"{p}.{name}": 8 for p in ("p", "p[column]", "p.groupby(...)") for name in ("nunique", "skew")
}
NOTHING = {  # is read
    *(
        f"p.{name}"
        for name in (
            "accountant",
            "budget",
            "close",
            "columns",
            "declarations",
            "explain",
            "ledger",
            "open",
        )
    ),
    *("p.card", "p.report", "p.groupby(...).explain"),
    *(
        f"p.{name}"
        for name in ("dtypes", "head", "info", "keys", "ndim", "sample", "shape", "tail")
    ),
    *(f"p[column].{name}" for name in ("dtype", "head", "name", "sample", "tail")),
}


def unwritten(table: str, unit: bool) -> dict[str, int]:
    """The verbs that a table's database does not count, with their reasons."""
    more = MORE.get(table, {})
    return (
        PARTS | more | (LIMITED if unit else {}) if table in COUNTING else dict.fromkeys(VERBS, 0)
    )


def read(table: str, verb: str, unit: bool) -> str:
    """How a verb reads a table: "SQL" where its database counts, "parts" where it is read here, "" where it is not."""
    if verb in NOTHING:
        return ""
    return "parts" if verb in unwritten(table, unit) else "SQL"


HELD: list[Any] = []  # a session knows whether its frame still lives


def opened(table: str, folder: str, verb: str, unit: bool) -> Any:
    """A session on such a table of the rows."""
    frame, words = rows(), {**OPENED, **(UNIT if unit else {})}
    words["neighbors"] = getattr(VERBS[verb], "neighbors", "add-remove")
    if "p.explode" not in CANNOT[table] and verb in ("p.explode", "p.columns"):
        pa = import_module("pyarrow")
        lists = pa.array([["a", "b"]] * len(frame), pa.list_(pa.string()))
        frame["codes"] = pd.array(lists, dtype=pd.ArrowDtype(lists.type))
    made = TABLES[table][1](frame, folder)
    HELD.append(made)
    if table == "SQLite table":
        words["bounds"] = {name: pair for name, pair in BOUNDS.items() if name != "when"}
    return dpframe.open(made, 1000, 1e-6, because="made up", **words)


def _cell(table: str, verb: str) -> str:
    if verb in CANNOT[table]:
        return f"no ({CANNOT[table][verb]})"
    if table == "pandas" or verb in NOTHING:
        return "yes"
    if verb in OF_PEOPLE:
        return f"people in parts ({OF_PEOPLE[verb]})"
    reason = unwritten(table, True).get(verb)
    ways = dict.fromkeys(
        read(table, verb, unit) for unit in ((True,) if verb in NEED_UNIT else (False, True))
    )
    return ", people in ".join(ways) + (f" ({reason})" if reason else "")


def page() -> str:
    """The table of the page."""
    head = ["", *TABLES]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for verb in VERBS:
        lines.append(f"| `{verb}` | {' | '.join(_cell(table, verb) for table in TABLES)} |")
    reasons = [f"- ({number}) It {why}." for number, why in REASONS.items()]
    return "\n".join([*lines, "", *reasons])


MARKS = "<!-- the table: python -m tests.engines.verbs -->\n", "<!-- its end -->\n"


def written() -> str:
    """The page with its table anew."""
    first, last = map(re.escape, MARKS)
    return re.sub(
        f"(?<={first}).*?(?={last})", lambda _: f"\n{page()}\n\n", PAGE.read_text(), flags=re.DOTALL
    )


if __name__ == "__main__":
    PAGE.write_text(written())
    sys.exit(0)
