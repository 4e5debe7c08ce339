"""The person-wise verbs: what pandas gives on the same frame, without a look at it, and refusals that advise."""

from __future__ import annotations

import datetime
import operator

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue, MissingBounds, UnknownColumn
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.reading import FrameReader

N = 400
BOUNDS = {"age": (0, 110), "cost": (0, 1000), "score": (-5, 5), "stay": (0, 60)}
EXACT = 40  # at this price noise of a count is zero but once in 10**17, and sums of N rows are as good as exact


def visits():
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 110, N),
            "cost": rng.uniform(0, 1000, N).round(2),
            "score": pd.array(rng.integers(-5, 6, N), dtype="Int64"),
            "stay": rng.integers(0, 60, N).astype("float32"),
            "state": rng.choice(["CA", "NY", "WA", "ny"], N),
            "smoker": rng.random(N) < 0.3,
            "when": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(rng.integers(0, 700 * 24, N), unit="h"),
            "kind": pd.Categorical(rng.choice(["x", "y"], N)),
        }
    )
    frame.loc[::7, "cost"] = np.nan
    frame.loc[::11, "score"] = pd.NA
    frame.loc[::13, "state"] = None
    frame.loc[::17, "when"] = pd.NaT
    return frame


@pytest.fixture
def df():
    return visits()


@pytest.fixture
def p(df):
    return df.dp.open(1000, bounds=BOUNDS)


def close(answer, exact, width):
    assert float(answer) == pytest.approx(float(exact), abs=width * 4e-3)


# Rows ---------------------------------------------------------------------------------------------------------

old, coast = 65, ["CA", "WA"]
CONDITIONS = {
    "comparison": ("age > 30", lambda d: d["age"] > 30),
    "chained": ("30 < age <= 60", lambda d: (d["age"] > 30) & (d["age"] <= 60)),
    "and or not": (
        "age > 60 and not smoker or score == 5",
        lambda d: ((d["age"] > 60) & ~d["smoker"]) | (d["score"] == 5),
    ),
    "in a list": ("state in ['CA', 'NY']", lambda d: d["state"].isin(["CA", "NY"])),
    "not in a list": ("state not in ['CA']", lambda d: ~d["state"].isin(["CA"])),
    "a local list": ("state in @coast", lambda d: d["state"].isin(["CA", "WA"])),
    "a local number": ("age >= @old", lambda d: d["age"] >= 65),
    "between": ("age.between(20, 40)", lambda d: d["age"].between(20, 40)),
    "arithmetic": ("cost / age > 20 + score", lambda d: d["cost"] / d["age"] > 20 + d["score"]),
    "two columns": ("cost < age", lambda d: d["cost"] < d["age"]),
    "strings": ("state.str.lower() == 'ny'", lambda d: d["state"].str.lower() == "ny"),
    "starts with": ("state.str.startswith('N')", lambda d: d["state"].str.startswith("N")),
    "dates": ("when >= '2024-07-01'", lambda d: d["when"] >= "2024-07-01"),
    "parts of dates": ("when.dt.month == 3", lambda d: d["when"].dt.month == 3),
    "between columns": (
        "stay.between(score, age)",
        lambda d: d["stay"].between(d["score"], d["age"]),
    ),
    "a letter": ("state.str[0] == 'N'", lambda d: d["state"].str[0] == "N"),
    "a bool from the left": ("smoker and age > 3", lambda d: True & d["smoker"] & (d["age"] > 3)),
    "nulls": ("cost.isna()", lambda d: d["cost"].isna()),
    "not null": (
        "score.notna() & state.notna()",
        lambda d: d["score"].notna() & d["state"].notna(),
    ),
    "unequal keeps nulls": ("score != 5", lambda d: (d["score"] != 5).fillna(True)),
    "a bool": ("smoker", lambda d: d["smoker"]),
    "categories": ("kind == 'x'", lambda d: d["kind"] == "x"),
}


def rows(frame, mask):
    return frame[mask.fillna(False).astype(bool)]


@pytest.mark.parametrize("name", CONDITIONS)
def test_query_keeps_the_rows_that_pandas_keeps(df, p, name):
    text, mask = CONDITIONS[name]
    kept = rows(df, mask(df))
    q = p.query(text)
    assert q.count(epsilon=EXACT) == len(kept)
    assert 0 < len(kept) < N


SPOKEN = [
    "comparison",
    "and or not",
    "in a list",
    "between",
    "two columns",
    "dates",
    "nulls",
    "strings",
    "a letter",
]


@pytest.mark.parametrize("name", [*SPOKEN, "between columns"])
def test_masks_columns_lambdas_and_pd_col_keep_the_same_rows(df, p, name):
    mask = CONDITIONS[name][1]
    asked = [p[mask(p)], p[lambda q: mask(q)]]
    if name != "chained":
        asked.append(p[mask({c: pd.col(c) for c in df})])
    expected = len(rows(df, mask(df)))
    assert [q.count(epsilon=EXACT) for q in asked] == [expected] * len(asked)
    assert len(p.ledger) == 1  # one question in three spellings


def test_an_expression_is_read_once_and_anew_where_something_else_decides():
    """A text means columns, and perhaps a variable or a moment: it is kept only where nothing can differ."""
    frame = pd.DataFrame({"a": [1, 2], "t": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    q = frame.dp.open(1)

    def condition(tracked, text):
        return tracked.query(text)._selection.where

    assert condition(q, "a > 1") is condition(q, "a > 1")
    assert str(condition(q.assign(a="a + 1"), "a > 1")) == "(a + 1) > 1"
    assert str(condition(q[q["a"] > 0], "a > 1")) == str(condition(q, "a > 0 and a > 1"))
    found = []
    for k in (3, 4):
        found.append(str(q.query("a > @k")._selection.where))
        assert found[-1] == f"a > {k}"
    early = condition(q, "t < 'now'")
    while pd.Timestamp("now") == early.right.value:
        pass
    assert condition(q, "t < 'now'") != early
    for n in range(200):
        assert str(condition(q, f"a > {n}")) == f"a > {n}"
    assert len(q._selection.parsed_texts) < 100


def test_filters_add_up(df, p):
    q = p.query("age > 30")[lambda q: q["cost"] < 500].dropna(subset=["state"])
    kept = df[(df["age"] > 30) & (df["cost"] < 500) & df["state"].notna()]
    assert q.count(epsilon=EXACT) == len(kept)


@pytest.mark.parametrize(
    "subset", [None, "cost", ["cost", "score"], pd.Index(["when", "age"])], ids=str
)
def test_dropna_keeps_the_rows_that_pandas_keeps(df, p, subset):
    assert p.dropna(subset=subset).count(epsilon=EXACT) == len(df.dropna(subset=subset))


def test_sort_values_changes_nothing_and_says_so(p):
    with pytest.warns(UserWarning, match="does nothing here") as caught:
        q = p.sort_values("age", ascending=False)
    assert q.query("age > 3").explain.count() == p.query("age > 3").explain.count()
    assert caught[0].filename == __file__


# Columns ------------------------------------------------------------------------------------------------------

BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
]
COLUMNS = {
    "a string": ("cost / 10 + age", lambda d: d["cost"] / 10 + d["age"], (0, 210)),
    "a power": ("score ** 2", lambda d: d["score"] ** 2, (0, 25)),
    "abs": (lambda d: d["score"].abs(), lambda d: d["score"].abs(), (0, 5)),
    "the builtin abs": (lambda d: abs(d["score"]), lambda d: d["score"].abs(), (0, 5)),
    "minus": (lambda d: -d["age"], lambda d: -d["age"], (-110, 0)),
    "round": (lambda d: d["cost"].round(-1), lambda d: d["cost"].round(-1), (0, 1000)),
    "clip": (lambda d: d["cost"].clip(100, 500), lambda d: d["cost"].clip(100, 500), (100, 500)),
    "clip above": (
        lambda d: d["cost"].clip(upper=500),
        lambda d: d["cost"].clip(upper=500),
        (0, 500),
    ),
    "fillna": (lambda d: d["cost"].fillna(10), lambda d: d["cost"].fillna(10), (0, 1000)),
    "astype float": (lambda d: d["age"].astype(float), lambda d: d["age"].astype(float), (0, 110)),
    "astype int": (
        lambda d: d["stay"].astype("int64"),
        lambda d: d["stay"].astype("int64"),
        (0, 60),
    ),
    "a condition": (lambda d: d["age"] > 50, lambda d: d["age"] > 50, (0, 1)),
    "isin": (lambda d: d["state"].isin(["CA"]), lambda d: d["state"].isin(["CA"]), (0, 1)),
    "map": (
        lambda d: d["state"].map({"CA": 1, "NY": 2}),
        lambda d: d["state"].map({"CA": 1, "NY": 2}),
        (1, 2),
    ),
    "str.len": (lambda d: d["state"].str.len(), lambda d: d["state"].str.len(), None),
    "dt.day": (lambda d: d["when"].dt.day, lambda d: d["when"].dt.day, (1, 31)),
    "a numpy scalar on the left": (
        lambda d: np.float64(2) * d["age"],
        lambda d: 2.0 * d["age"],
        (0, 220),
    ),
    "a power of two": (lambda d: 2 ** (d["age"] / 50), lambda d: 2 ** (d["age"] / 50), None),
    "plus": (lambda d: +d["age"], lambda d: +d["age"], (0, 110)),
    "minus from the left": (lambda d: 100 - d["age"], lambda d: 100 - d["age"], (-10, 100)),
    "over from the left": (lambda d: 10 / (d["age"] + 1), lambda d: 10 / (d["age"] + 1), None),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_assigned_column_has_pandas_values_and_derived_bounds(df, p, name):
    ours, theirs, bounds = COLUMNS[name]
    q = p.assign(new=ours)
    exact = theirs(df).astype(float)
    given = {} if bounds else {"bounds": (0, 10)}
    width = bounds[1] - bounds[0] if bounds else 10
    assert q.count("new", epsilon=EXACT) == exact.count()
    close(q.mean("new", epsilon=EXACT, **given), exact.mean(), width)
    close(q.sum("new", epsilon=EXACT, **given) / N, exact.sum() / N, 2 * width)
    if bounds:
        assert q["new"]._expr.bounds(p._session.bounds) == pytest.approx(bounds)
    else:
        with pytest.raises(MissingBounds):
            p.assign(new=COLUMNS["str.len"][0]).mean("new")


@pytest.mark.parametrize("op", BINARY)
def test_operators_agree_with_pandas_both_ways(df, p, op):
    pairs = [
        (op(p["cost"], 7), op(df["cost"], 7)),
        (op(p["cost"], p["age"] + 1), op(df["cost"], df["age"] + 1)),
    ]
    if op is not operator.mod:
        pairs.append((op(7, p["age"] + 1), op(7, df["age"] + 1)))
    for ours, theirs in pairs:
        close(ours.mean(bounds=(0, 1000), epsilon=EXACT), theirs.clip(0, 1000).mean(), 1000)


def test_assign_sees_the_columns_before_it_and_constants(df, p):
    q = p.assign(k="cost / 1000", half=lambda q: q["k"] / 2, one=1, price=pd.col("cost") * 2)
    close(q.mean("half", epsilon=EXACT), df["cost"].mean() / 2000, 1)
    close(q.mean("price", epsilon=EXACT), df["cost"].mean() * 2, 2000)
    assert q.sum("one", epsilon=EXACT, bounds=(0, 1)) == N
    assert list(q.columns)[-4:] == ["k", "half", "one", "price"]


def test_bounds_travel_through_arithmetic_by_interval(p):
    q = p.assign(cost_k="cost / 1000", change="cost - 10 * age", worse="1 - smoker")
    known = {c: q[c]._expr.bounds(p._session.bounds) for c in ("cost_k", "change", "worse")}
    assert known == {"cost_k": (0, 1), "change": (-1100, 1000), "worse": (0, 1)}


@pytest.mark.parametrize(("lower", "upper"), [(0, 5), (0, 1e300), (0, 2.0**-899), (-1e308, 1e308)])
def test_derived_bounds_are_those_that_would_be_typed(lower, upper):
    p = pd.DataFrame({"x": [1.0]}).dp.open(1, bounds={"x": (lower, upper)}).assign(y="-x")
    derived, typed = p.explain.sum("y"), p.explain.sum("y", bounds=(-upper, -lower))
    assert derived == typed
    assert repr(derived.cells[0].upper) == repr(
        typed.cells[0].upper
    )  # a negative zero would be another question


def test_names_that_swap_keep_their_bounds_by_identity(df, p):
    q = p.rename(columns={"age": "cost", "cost": "age"})
    assert q.explain.sum("age").sensitivity == 1000
    assert q.explain.sum("cost").sensitivity == 110
    close(q.mean("age", epsilon=EXACT), df["cost"].mean(), 1000)
    r = p.assign(age=p["cost"], cost=p["age"])
    assert r.explain.sum("age").sensitivity == 1000


def test_rename_takes_functions_and_refuses_to_merge_names(p):
    assert list(p[["age", "cost"]].rename(columns=str.upper).columns) == ["AGE", "COST"]
    assert list(p[["age"]].rename(columns={"nothing": "x"}).columns) == ["age"]
    with pytest.raises(BadValue, match="same name"):
        p.rename(columns={"age": "cost"})
    with pytest.raises(BadType):
        p.rename(columns=["a"])


def test_declared_bounds_do_not_follow_a_name_to_another_column(p):
    q = p.assign(age="cost * 2")
    assert q.explain.sum("age").sensitivity == 2000


@pytest.mark.parametrize("gone", ["age", ["age", "cost"], pd.Index(["when"])], ids=str)
def test_drop_and_selection_give_the_columns_of_pandas(df, p, gone):
    assert list(p.drop(columns=gone).columns) == list(df.drop(columns=gone).columns)
    kept = p.drop(columns=gone).columns
    assert list(p[kept].columns) == list(kept)
    with pytest.raises(UnknownColumn):
        p.drop(columns=gone)["age" if "age" in gone else "when"]


def test_whole_frame_verbs_agree_with_pandas(df, p):
    numbers = ["age", "cost", "stay"]
    for ours, theirs in [
        (p[numbers].fillna(3), df[numbers].fillna(3)),
        (p[numbers].fillna({"cost": 5}), df[numbers].fillna({"cost": 5})),
        (p[numbers].clip(10, 50), df[numbers].clip(10, 50)),
        (p[numbers].astype(float), df[numbers].astype(float)),
        (p[numbers].astype({"age": "float64"}), df[numbers].astype({"age": "float64"})),
    ]:
        found, exact = ours.mean(epsilon=EXACT), theirs.mean()
        assert list(found.index) == list(exact.index)
        np.testing.assert_allclose(found, exact.astype(float), atol=1)


@pytest.mark.parametrize(
    "values", [[1, 30, 2.0], {"age": [30], "stay": [1]}, {"cost": [5]}], ids=str
)
def test_isin_of_a_frame_agrees_with_pandas(df, p, values):
    numbers = ["age", "cost", "stay"]
    found = p[numbers].isin(values).sum(epsilon=EXACT)
    assert found.to_dict() == df[numbers].isin(values).sum().to_dict()


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("labels", [None, ["young", "mid", "old"]], ids=["intervals", "labels"])
def test_cut_groups_as_pandas_cuts(df, p, right, labels):
    edges = [0, 18, 65, 110]
    found = (
        p.assign(band=p.cut("age", edges, labels=labels, right=right))
        .groupby("band")
        .size(epsilon=EXACT)
    )
    exact = df.groupby(pd.cut(df["age"], edges, labels=labels, right=right), observed=False).size()
    assert found.tolist() == exact.tolist()
    assert list(found.index) == list(exact.index)
    assert found.index.dtype == "category"
    assert found.index.ordered


def test_mapped_columns_bring_their_groups_along(df, p):
    found = (
        p.assign(coast=p["state"].map({"CA": "west", "WA": "west", "NY": "east"}))
        .groupby("coast")
        .size(epsilon=EXACT)
    )
    assert list(found.index) == ["west", "east"]
    assert found["west"] == df["state"].isin(["CA", "WA"]).sum()


def test_attribute_access_and_column_releases(df, p):
    close(p.age.mean(epsilon=EXACT), df["age"].mean(), 110)
    assert p.cost.count(epsilon=EXACT) == df["cost"].count()
    close(p["cost"].sum(epsilon=EXACT) / N, df["cost"].sum() / N, 1000)
    close(p["age"].var(epsilon=EXACT), df["age"].var(), 110**2)
    close(p["age"].std(epsilon=EXACT), df["age"].std(), 110)
    assert p["state"].value_counts(keys=["CA"], epsilon=EXACT)["CA"] == (df["state"] == "CA").sum()
    assert p["kind"].argmax(keys=["x", "y"], epsilon=EXACT) == df["kind"].value_counts().idxmax()


def test_null_rule_is_one_for_none_nan_na_and_nat(df, p):
    for name in ("cost", "score", "state", "when"):
        assert p[p[name].isna()].count(epsilon=EXACT) == df[name].isna().sum()
        assert p[p[name].notna()].count(epsilon=EXACT) == df[name].notna().sum()
        assert p.count(name, epsilon=EXACT) == df[name].count()


def test_dates_compare_with_dates_of_any_type(df, p):
    day = datetime.datetime(2024, 7, 1)
    for value in (day, day.date(), pd.Timestamp(day), np.datetime64(day), "2024-07-01"):
        assert p[p["when"] < value].count(epsilon=EXACT) == (df["when"] < day).sum()
    assert p[pd.Timestamp(day) > p["when"]].count(epsilon=EXACT) == (df["when"] < day).sum()


# Nothing is read ----------------------------------------------------------------------------------------------


def test_no_person_wise_verb_and_no_plan_reads_data(p, monkeypatch):
    def forbidden(*_):
        pytest.fail("the data was read")

    monkeypatch.setattr(FrameReader, "column", forbidden)
    monkeypatch.setattr(PandasEngine, "reduce", forbidden)
    for text, mask in CONDITIONS.values():
        p.query(text)
        p[mask(p)]
    for ours, _, _ in COLUMNS.values():
        p.assign(new=ours)
    q = p.rename(columns={"age": "years"}).drop(columns="when").dropna()[["years", "cost", "score"]]
    q = q.fillna(0).clip(0, 50).astype(float).isin([1])
    with pytest.warns(UserWarning, match="does nothing"):
        q = q.sort_values("years")
    repr(q), q._repr_html_(), q.columns, dir(q), "years" in q, p.cut("age", [0, 50, 110])
    groups = p.explain.groupby(["state", "smoker"], keys={"state": ["CA"]})
    for plan in (
        p.explain.count(),
        p.explain.mean("age"),
        p.explain.histogram("age"),
        p.explain.argmax("state", keys=["CA"]),
        p.explain.counts({"a": "age > 3", "b": p["smoker"]}),
        p.explain[["age", "cost"]].var(),
        groups.agg(n=("age", "size"), m=("cost", "mean")),
    ):
        assert isinstance(plan, dpframe.Plan)
        repr(plan), plan._repr_html_(), plan.error(n=100)
    assert p.budget.spent == 0
    with pytest.raises(pytest.fail.Exception):
        p.count()


@pytest.mark.parametrize(
    ("op", "kept"), [("==", 0), ("!=", 70), ("<", 40), ("<=", 40), (">", 30), (">=", 30)]
)
def test_a_whole_number_that_no_double_is_lies_between_two(op, kept):
    df = pd.DataFrame({"x": np.repeat([2.0**53, 2.0**53 + 2], [40, 30])})
    assert df.dp.open(1000).query(f"x {op} {2**53 + 1}").count(epsilon=900) == kept
