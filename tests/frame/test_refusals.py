"""What a tracked frame refuses: handing out rows, looking across people, data that is not tracked. All with advice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpframe import (
    BadType,
    BadValue,
    Estimate,
    LineageError,
    MissingBounds,
    NotOffered,
    Refused,
    UnknownColumn,
)
from dpframe.datasets import BOUNDS, visits

N = 50


@pytest.fixture
def df():
    return visits(N)


@pytest.fixture
def p(df):
    return df.dp.open(1000, bounds={**BOUNDS, "days": (0, 60)})


# Refusals -----------------------------------------------------------------------------------------------------

ROWS = {
    "len": (lambda p: len(p), "p.count()"),
    "len of a column": (lambda p: len(p["age"]), "p.count()"),
    "iteration": (lambda p: list(p), "p.columns"),
    "iteration over a column": (lambda p: list(p["age"]), "p.columns"),
    "sum of Python": (lambda p: sum(p["age"]), "p.mean"),
    "membership": (lambda p: 30 in p["age"], "release"),
    "items": (lambda p: dict(p.items()), "release"),
    "bool": (lambda p: bool(p["age"] > 30), "&, | and ~"),
    "and": (lambda p: p["age"] > 30 and p["cost"] > 5, "&, | and ~"),
    "chained comparison": (lambda p: 30 < p["age"] < 50, "&, | and ~"),
    "if": (lambda p: 1 if p else 2, "p.count()"),
    "np.asarray": (lambda p: np.asarray(p), "release"),
    "np.array of a column": (lambda p: np.array(p["age"]), "release"),
    "np.logaddexp": (lambda p: np.logaddexp(p["age"], 1), "release"),
    "np.sort": (lambda p: np.sort(p["age"]), "release"),
    "np.log into an array": (lambda p: np.log(p["age"], out=np.zeros(N)), "release"),
    "np.where of a condition alone": (
        lambda p: np.where(p["age"] > 30),
        "np.where(p['x'] > 1, 'a', 'b')",
    ),
    "np.where with an array": (lambda p: np.where(p["age"] > 30, np.arange(N), 0), "release"),
    "np.where of raw conditions": (lambda p: np.where(np.arange(N) > 3, p["age"], 0), "release"),
    "np.select with an array": (lambda p: np.select([p["age"] > 30], [np.arange(N)], 0), "release"),
    "np.add.reduce": (lambda p: np.add.reduce(p["age"]), "release"),
    "an array times a column": (lambda p: np.arange(N) * p["age"], "release"),
    "pd.Series": (lambda p: pd.Series(p["age"]), "p.count()"),
    "pd.DataFrame": (lambda p: pd.DataFrame(p), "release"),
    "pd.DataFrame of columns": (lambda p: pd.DataFrame({"a": p["age"]}), "p."),
    "float": (lambda p: p["age"].item(), "release"),
    **{
        verb: (lambda p, verb=verb: getattr(p, verb)(), "release")
        for verb in [
            "to_numpy",
            "to_dict",
            "to_csv",
            "to_parquet",
            "to_pickle",
            "itertuples",
            "iterrows",
        ]
    },
    **{
        name: (lambda p, name=name: getattr(p, name), "release")
        for name in ["values", "T", "index"]
    },
    "rows by place": (lambda p: p.iloc[0], "release"),
    "some rows by place": (lambda p: p.iloc[:3, 0], "release"),
    "rows by label": (lambda p: p.loc[0], "release"),
    "rows by labels": (lambda p: p.loc[[0, 1], "age"], "release"),
    "rows between labels": (lambda p: p.loc[0:5], "release"),
    "shape": (lambda p: p.shape[0], "p.count()"),
    "shape, unpacked": (lambda p: tuple(p.shape), "p.count()"),
    "empty": (lambda p: p.empty, "p.count()"),
    "column values": (lambda p: p["age"].values, "release"),
    "column tolist": (lambda p: p["age"].tolist(), "release"),
}
ACROSS = {
    "apply": (lambda p: p.apply(lambda r: 1), "a function of a column returns one"),
    "apply of a column": (lambda p: p["age"].apply(np.mean), "as an expression"),
    "transform": (lambda p: p.transform("mean"), "transform takes a function"),
    "pipe": (lambda p: p.pipe(len), "must return a DataFrame"),
    "mode": (lambda p: p["state"].mode(), "argmax"),
    "idxmax": (lambda p: p["age"].idxmax(), "argmax"),
    "rank": (lambda p: p["age"].rank(), "compares people"),
    "shift": (lambda p: p.shift(), "neighbouring row"),
    "ffill": (lambda p: p.ffill(), "fillna(constant)"),
    "cumsum": (lambda p: p["age"].cumsum(), "resample"),
    "sample": (lambda p: p.sample(frac=0.1), "not private"),
    "nlargest": (lambda p: p.nlargest(3, "age"), "comparing people"),
    "drop_duplicates": (lambda p: p.drop_duplicates(), "compares people"),
    "merge": (lambda p: p.merge(pd.DataFrame()), "on="),
    "join": (lambda p: p.join(pd.DataFrame()), "p.join(table, on='key')"),
    "prod": (lambda p: p["age"].prod(), "no price rule"),
    "plot": (lambda p: p.plot.bar(), "plot.hist"),
    "corr of a column": (lambda p: p["age"].corr(p["cost"], method="spearman"), "ranks"),
    "a function in agg": (
        lambda p: p.groupby("smoker").agg(m=("age", lambda x: x.max() - 1)),
        "function",
    ),
    "kurtosis": (lambda p: p["age"].kurtosis(), "no price rule"),
    "any": (lambda p: p["age"].isna().any(), "(p['age'] > 1).sum()"),
    "rolling": (lambda p: p["age"].rolling(7).mean(), ".rolling(7).mean()"),
    "expanding": (lambda p: p.expanding(), ".expanding().mean()"),
    "interpolate": (lambda p: p["age"].interpolate(), "fillna(constant)"),
    "pct_change": (lambda p: p["age"].pct_change(), "neighbouring row"),
    "a function of groups": (lambda p: p.groupby("smoker").apply(len), "p.groupby('k').agg("),
    "groups one by one": (lambda p: list(p.groupby("smoker")), "release"),
    "a mean in pd.col": (lambda p: p[pd.col("age") > pd.col("age").mean()], "Ask it first"),
    "a mean in a new column": (
        lambda p: p.assign(z=pd.col("age") - pd.col("age").mean()),
        "Ask it first",
    ),
    "a mean in a query": (lambda p: p.query("age > age.mean()"), "across people"),
    "a function in map": (lambda p: p["age"].map(np.mean), "p['x'].map({...})"),
    "a function as a column": (lambda p: p.mean(lambda q: q["age"]), "function"),
    "a function to group by": (lambda p: p.groupby(lambda q: q), "function"),
}
RAW = {
    "a raw mask": (lambda p, df: p[df["age"] > 30], "p[p['age'] > 30]"),
    "a mask as an array": (lambda p, df: p[(df["age"] > 30).to_numpy()], "p[p['age'] > 30]"),
    "a slice": (lambda p, df: p[:10], "p[p['age'] > 30]"),
    "comparison with a raw column": (lambda p, df: p["age"] > df["cost"], "tracked"),
    "a raw column on the left": (lambda p, df: df["age"] + p["cost"], "release"),
    "assign of a raw column": (lambda p, df: p.assign(z=df["age"]), "tracked"),
    "assign of an array": (lambda p, df: p.assign(z=np.arange(N)), "tracked"),
    "isin of a raw column": (lambda p, df: p["age"].isin(df["age"]), "list(...)"),
    "isin of a raw column, frame": (lambda p, df: p[["age"]].isin(df["age"]), "list(...)"),
    "keys from a raw column": (lambda p, df: p.groupby("state", keys=df["state"]), "list(...)"),
    "edges from a raw column": (lambda p, df: p.histogram("age", bins=df["age"]), "edges"),
    "bounds from a raw column": (lambda p, df: p.mean("age", bounds=df["age"]), "pair"),
    "a raw column as the column": (lambda p, df: p.mean(df["age"]), "name"),
    "bins by number in cut": (lambda p, df: p.cut("age", 4), "edges"),
    "bins that look": (lambda p, df: p.histogram("age", bins="auto"), "list of edges"),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_not_handed_out_and_the_refusal_says_what_to_write(p, name):
    act, advice = ROWS[name]
    with pytest.raises((Refused, MissingBounds)) as caught:
        act(p)
    assert advice in str(caught.value)
    assert p.budget.spent == 0


@pytest.mark.parametrize("name", ACROSS)
def test_what_looks_across_people_is_refused_with_advice(p, name):
    act, advice = ACROSS[name]
    with pytest.raises((Refused, BadType, BadValue)) as caught:
        act(p)
    assert advice in str(caught.value)
    assert p.budget.spent == 0


@pytest.mark.parametrize("name", RAW)
def test_data_that_is_not_tracked_is_refused_with_advice(df, p, name):
    act, advice = RAW[name]
    with pytest.raises((Refused, BadType, BadValue)) as caught:
        act(p, df)
    assert advice in str(caught.value)
    assert p.budget.spent == 0


def test_columns_of_other_frames_and_other_selections_are_refused(df, p):
    other = visits(N).dp.open(1)
    old = p.query("age > 60")
    for act in (
        lambda: p[other["age"] > 3],
        lambda: p["age"] + other["age"],
        lambda: p.assign(z=other["age"]),
        lambda: p.mean(other["age"]),
        lambda: old[p["smoker"]],
        lambda: old.assign(z=p["age"]),
        lambda: old.counts({"a": p["smoker"]}),
    ):
        with pytest.raises(LineageError, match="another frame or to another selection"):
            act()


def test_hasattr_is_false_for_what_pandas_has_and_dpframe_has_not(p):
    assert not any(hasattr(p, name) for name in ("at", "values", "mode", "nothing_like_it"))
    with pytest.raises(NotOffered, match="Did you mean 'smoker'"):
        p.smokers  # noqa: B018  (looking it up is the test)


@pytest.mark.parametrize("typo", ["agee", "Age", "costs", "staet"])
def test_mistyped_column_gets_a_suggestion_everywhere(p, typo):
    for act in (
        lambda: p[typo],
        lambda: p[["age", typo]],
        lambda: p.mean(typo),
        lambda: p.query(f"{typo} > 3"),
        lambda: p.groupby(typo),
        lambda: p.groupby("smoker")[typo],
        lambda: p.groupby("smoker").agg(m=(typo, "mean")),
        lambda: p.groupby("smoker").agg(m=(typo, "size")),
        lambda: p.drop(columns=typo),
        lambda: p.fillna({typo: 1}),
        lambda: p.assign(z=f"{typo} * 2"),
        lambda: p.dropna(subset=[typo]),
    ):
        with pytest.raises(UnknownColumn, match="Did you mean"):
            act()


@pytest.mark.parametrize(
    "word", ["seed", "random_state", "sensitivity", "scale", "noise", "inplace"]
)
@pytest.mark.parametrize("verb", ["count", "mean", "histogram", "value_counts", "argmax"])
def test_words_that_would_undo_the_noise_or_mean_nothing_are_refused(p, verb, word):
    with pytest.raises(TypeError, match=word):
        getattr(p, verb)("age", **{word: 0})
    assert p.ledger.empty


# After the charge ---------------------------------------------------------------------------------------------

WILD = pd.DataFrame({"x": [0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324] * 3})
BOUNDS_OF_ALL_SIZES = [
    (0, 1),
    (1, 1),
    (0, 0),
    (-5, -4),
    (0, 2**70),
    (1e-250, 1e-240),
    (0, 1e150),
    (-1e150, 1e150),
]
NUMBERS = {
    "sum": lambda p, b, **o: p.sum("x", b, **o),
    "mean": lambda p, b, **o: p.mean("x", b, **o),
    "var": lambda p, b, **o: p.var("x", b, **o),
    "std": lambda p, b, **o: p.std("x", b, ddof=0, **o),
    "of two columns": lambda p, b, **o: p.assign(y="x * x - x / 3")[["x", "y"]].mean(
        bounds={"x": b, "y": b}, **o
    ),
    "in groups": lambda p, b, **o: p.groupby(p["x"] > 0).agg(
        m=("x", "mean"),
        s=("x", "sum"),
        n=("x", "count"),
        v=("x", "var"),
        k=("x", "size"),
        bounds={"x": b},
        **o,
    ),
}


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
@pytest.mark.parametrize("ask", NUMBERS)
def test_charged_question_is_answered_whatever_the_cells_and_bounds(ask, neighbors):
    for epsilon in (1e-15, 1e-3, 20):
        p = WILD.copy().dp.open(1000, neighbors=neighbors, because=f"the price {epsilon}")
        for bounds in BOUNDS_OF_ALL_SIZES:
            answer = NUMBERS[ask](p, bounds, epsilon=epsilon)
            interval = answer.interval() if isinstance(answer, Estimate) else answer.dp.interval()
            assert np.isfinite(np.asarray(answer, dtype=float)).all()
            assert not np.isnan(np.asarray(interval, dtype=float)).any()
            assert repr(answer)
        assert len(p.ledger) == len(BOUNDS_OF_ALL_SIZES)
