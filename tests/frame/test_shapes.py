"""The shapes of a notebook: summaries, agg, pivot tables and proportions, beside what pandas gives for the same keys."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, BadValue, MissingBounds, NotOffered

N = 600
STATES, ZONES = ["CA", "NY", "WA"], [1, 2]
BOUNDS = {"age": (0, 110), "cost": (0, 1000)}
EXACT = 180  # noise of a count is zero but once in 10**78, and that of sums is a hundredth of a row


def frame(nulls=True):
    rng = np.random.default_rng(11)
    df = pd.DataFrame(
        {
            "age": rng.integers(0, 110, N),
            "cost": rng.uniform(0, 1000, N).round(2),
            "state": rng.choice(STATES, N),
            "zone": rng.choice(ZONES, N),
            "smoker": rng.random(N) < 0.3,
            "note": "free text",
        }
    )
    if nulls:
        df.loc[::7, "cost"] = np.nan
        df.loc[::13, "state"] = None
    return df


@pytest.fixture
def df():
    return frame()


@pytest.fixture
def p(df):
    return df.dp.open(1000, bounds=BOUNDS, keys={"state": STATES, "zone": ZONES})


def same(answer, exact):
    """Type, labels, their names, dtypes and numbers; the squares behind a deviation are on a coarse grid."""
    assert isinstance(answer, type(exact))
    if isinstance(exact, pd.Series):
        pd.testing.assert_series_equal(pd.Series(answer), exact, rtol=1e-2, check_flags=False)
    else:
        pd.testing.assert_frame_equal(pd.DataFrame(answer), exact, rtol=1e-2, check_flags=False)


def covers(answer, exact):
    """Every number that was asked for lies in its interval, which is as tight as this price buys."""
    ends = answer.dp.interval(1 - 1e-9)
    if isinstance(answer, pd.Series):
        low, high = ends["lower"].to_numpy(), ends["upper"].to_numpy()
    else:
        low, high = ends.to_numpy()[:, ::2], ends.to_numpy()[:, 1::2]
        exact = exact.iloc[:, exact.shape[1] - low.shape[1] :]
    low, high, cells = low.astype(float), high.astype(float), exact.to_numpy().astype(float)
    assert np.array_equal(np.isnan(low), np.isnan(cells))
    assert np.array_equal(np.isnan(high), np.isnan(cells))
    asked = ~np.isnan(cells)
    slack = 1e-3 * np.abs(cells[asked]) + 1e-6  # the grid of squares
    assert (low[asked] <= cells[asked] + slack).all()
    assert (high[asked] >= cells[asked] - slack).all()
    assert (high[asked] - low[asked] <= 2 + 0.1 * np.abs(cells[asked])).all()


NUMBERS = ["age", "cost"]
SHAPES = {
    "agg of a list": lambda d, **o: d[NUMBERS].agg(["std", "mean"], **o),
    "agg of a dict": lambda d, **o: d.agg({"age": "mean", "cost": "sum"}, **o),
    "agg of a mixed dict": lambda d, **o: d.agg({"age": "mean", "cost": ["sum", "mean"]}, **o),
    "agg of counts": lambda d, **o: d.agg({"age": ["count"], "cost": ["count"]}, **o),
    "agg of another order": lambda d, **o: d.agg({"cost": ["std"], "age": ["mean", "std"]}, **o),
    "agg by name": lambda d, **o: d.agg(
        k=("age", "count"), m=("cost", "mean"), a=("age", "mean"), **o
    ),
    "agg of sizes by name": lambda d, **o: d.agg(n=("age", "size"), **o),
    "agg of a word": lambda d, **o: d[NUMBERS].agg("mean", **o),
    "aggregate": lambda d, **o: d[NUMBERS].aggregate(["mean"], **o),
    "agg of a column": lambda d, **o: d["age"].agg(["mean", "std"], **o),
    "agg of a column by name": lambda d, **o: d["cost"].agg(a="mean", b="sum", **o),
    "sizes of a column": lambda d, **o: d["cost"].agg(["size", "count"], **o),
    "grouped dict of lists": lambda d, **o: d.groupby("state").agg(
        {"age": ["mean", "std"], "cost": "sum"}, **o
    ),
    "grouped dict of counts": lambda d, **o: d.groupby("state").agg(
        {"age": ["count", "size"]}, **o
    ),
    "grouped list": lambda d, **o: d.groupby("state")["age"].agg(["mean", "std"], **o),
    "grouped list of two": lambda d, **o: d.groupby("state")[NUMBERS].agg(["mean", "sum"], **o),
    "grouped by name": lambda d, **o: d.groupby("state")["age"].agg(a="mean", b="size", **o),
    "grouped word": lambda d, **o: d.groupby("state")["age"].agg("mean", **o),
    "grouped word of two": lambda d, **o: d.groupby("state")[NUMBERS].agg("count", **o),
    "grouped NamedAgg": lambda d, **o: d.groupby("state").agg(m=pd.NamedAgg("age", "mean"), **o),
    "grouped by two": lambda d, **o: d.groupby(["state", "zone"]).agg(
        {"age": ["mean", "count"]}, **o
    ),
    "numeric only": lambda d, **o: d.groupby("state")[NUMBERS].mean(numeric_only=True, **o),
    "axis and skipna": lambda d, **o: d[NUMBERS].mean(axis=0, skipna=True, numeric_only=True, **o),
    "min_count": lambda d, **o: d[NUMBERS].sum(min_count=0, **o),
    "flat sizes": lambda d, **o: d.groupby("state", as_index=False).size(**o),
    "flat mean": lambda d, **o: d.groupby("state", as_index=False)["age"].mean(**o),
    "flat means": lambda d, **o: d.groupby(["state", "smoker"], as_index=False)[NUMBERS].mean(**o),
    "flat lists": lambda d, **o: d.groupby("state", as_index=False).agg(
        {"age": ["mean", "std"]}, **o
    ),
    "flat by name": lambda d, **o: d.groupby("zone", as_index=False).agg(n=("age", "size"), **o),
    "flat list": lambda d, **o: d.groupby("zone", as_index=False)["age"].agg(["mean", "std"], **o),
    "sorted": lambda d, **o: d.groupby("state", sort=True, observed=False, group_keys=False)[
        "age"
    ].sum(**o),
    "pivot": lambda d, **o: d.pivot_table("cost", "state", "smoker", **o),
    "pivot of sums": lambda d, **o: d.pivot_table(
        "age", "state", "smoker", aggfunc="sum", margins=True, **o
    ),
    "pivot of means": lambda d, **o: d.pivot_table("cost", "zone", "smoker", margins=True, **o),
    "pivot of a list": lambda d, **o: d.pivot_table(
        ["cost"], "zone", "smoker", aggfunc="sum", margins=True, **o
    ),
    "pivot of deviations": lambda d, **o: d.pivot_table(
        "age", "zone", "smoker", aggfunc="std", margins=True, **o
    ),
    "pivot without columns": lambda d, **o: d.pivot_table(
        "cost", "zone", aggfunc="sum", margins=True, **o
    ),
    "pivot of two": lambda d, **o: d.pivot_table(
        NUMBERS[::-1], "state", "smoker", aggfunc="sum", **o
    ),
    "pivot of two unsorted": lambda d, **o: d.pivot_table(
        NUMBERS[::-1], "zone", aggfunc="mean", **o
    ),
    "pivot of two rows": lambda d, **o: d.pivot_table(
        "age", ["state", "zone"], "smoker", aggfunc="count", margins=True, margins_name="total", **o
    ),
    "pivot of two columns": lambda d, **o: d.pivot_table(
        "age", "state", ["smoker", "zone"], aggfunc="sum", margins=True, **o
    ),
    "pivot of several": lambda d, **o: d.pivot_table(
        "cost", "state", "zone", aggfunc=["sum", "mean"], **o
    ),
    "pivot of several without": lambda d, **o: d.pivot_table(
        "cost", "state", aggfunc=["sum", "mean"], **o
    ),
    "pivot of all": lambda d, **o: d.pivot_table(NUMBERS, "state", aggfunc=["sum", "mean"], **o),
    "pivot by dict": lambda d, **o: d.pivot_table(
        index="state", columns="smoker", aggfunc={"cost": "sum", "age": "count"}, **o
    ),
    "pivot by dict of lists": lambda d, **o: d.pivot_table(
        index="state", columns="smoker", aggfunc={"cost": ["sum", "mean"], "age": "count"}, **o
    ),
    "proportions": lambda d, **o: d["state"].value_counts(normalize=True, **o),
    "rare first": lambda d, **o: d["zone"].value_counts(ascending=True, **o),
}


@pytest.mark.parametrize("ask", SHAPES)
def test_answer_is_what_pandas_gives_and_has_its_intervals(df, p, ask):
    answer, exact = SHAPES[ask](p, epsilon=EXACT), SHAPES[ask](df)
    same(answer, exact)
    covers(answer, exact)
    assert len(p.ledger) == 1  # one release
    plan = SHAPES[ask](p.explain, epsilon=EXACT)
    assert plan.question == answer.dp.plan.question
    assert plan.cost == answer.dp.cost


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"margins": True},
        {"margins": True, "margins_name": "sum"},
        {"normalize": True},
        {"normalize": "index"},
        {"normalize": "columns"},
        {"normalize": 0},
        {"normalize": 1, "margins": True},
        {"normalize": "all", "margins": True},
        {"normalize": "index", "margins": True},
        {"rownames": ["where"], "colnames": ["whether"]},
        {"dropna": True},
    ],
    ids=str,
)
def test_crosstab_is_that_of_pandas(nulls, options):
    df = frame(nulls)
    p = df.dp.open(1000, keys={"state": STATES})
    answer = p.crosstab("state", "smoker", epsilon=EXACT, **options)
    exact = pd.crosstab(df["state"], df["smoker"], **options)
    # Of pandas' margins, which it takes away again, an object index is left.
    if options.get("normalize") == "index":
        exact.columns = exact.columns.astype(bool)
    same(answer, exact)
    covers(answer, exact)


@pytest.mark.parametrize("margins", [False, True])
def test_crosstab_of_several_columns_and_of_values(df, p, margins):
    both = p.crosstab(["state", "zone"], "smoker", margins=margins, epsilon=EXACT)
    same(both, pd.crosstab([df["state"], df["zone"]], df["smoker"], margins=margins))
    above = p.crosstab("zone", ["state", "smoker"], margins=margins, epsilon=EXACT)
    same(above, pd.crosstab(df["zone"], [df["state"], df["smoker"]], margins=margins))
    known = df.dropna()
    answer = p.crosstab(
        "zone", "smoker", values="age", aggfunc="mean", margins=margins, epsilon=EXACT
    )
    same(
        answer,
        pd.crosstab(df["zone"], df["smoker"], values=df["age"], aggfunc="mean", margins=margins),
    )
    assert len(known) < len(df)


MOMENTS = ["count", "mean", "std"]


def test_describe_has_the_rows_of_pandas(df, p):
    answer = p.describe(epsilon=EXACT)
    assert list(answer.index) == list(df[NUMBERS].describe().index)
    same(answer.loc[MOMENTS], df[NUMBERS].describe().loc[MOMENTS])
    ends = answer.dp.interval(0.99)
    assert ends.notna().all(axis=None)
    one = p["cost"].describe(epsilon=EXACT)
    assert list(one.index) == list(df["cost"].describe().index)
    same(one[MOMENTS], df["cost"].describe()[MOMENTS])
    groups = p.groupby("state")
    inside = groups["age"].describe(epsilon=EXACT)
    assert list(inside.columns) == list(df.groupby("state")["age"].describe().columns)
    same(inside[MOMENTS], df.groupby("state")["age"].describe()[MOMENTS])
    wide = df.groupby("state")[NUMBERS].describe()
    both = groups[NUMBERS].describe(epsilon=EXACT)
    assert list(both.columns) == list(wide.columns)
    assert np.allclose(both["age"][MOMENTS], wide["age"][MOMENTS], rtol=1e-2)
    assert len(p.ledger) == 4


@pytest.mark.parametrize(
    "percentiles", [[], [0.1], [0.5, 0.05, 0.999], (0.25,), [i / 10 for i in range(1, 10)]]
)
def test_describe_takes_percentiles_and_names_them_as_pandas_does(percentiles):
    rng = np.random.default_rng(5)
    df = pd.DataFrame({"x": rng.integers(0, 100, 4000)})
    p = df.dp.open(1000, bounds={"x": (0, 100)})
    answer = p.describe("x", percentiles=percentiles, epsilon=900)
    exact = df["x"].describe(percentiles=sorted(percentiles))
    assert list(answer.index) == list(exact.index)
    assert np.allclose(answer.drop(["min", "max"]), exact.drop(["min", "max"]), rtol=0.01, atol=1)
    assert np.allclose(answer[["min", "max"]], df["x"].quantile([0.01, 0.99]), atol=1)


@pytest.mark.parametrize("given", [[0.5, 0.5], 1.5, "0.5", [0.25, None]])
def test_percentiles_that_are_none_are_refused(p, given):
    with pytest.raises((BadValue, BadType)):
        p.describe(percentiles=given)
    assert p.ledger.empty


def test_describe_costs_one_price_shared_by_moments_and_quantiles(p):
    one = p[["age"]].explain.describe(epsilon=1)
    moments, points, _ = one.parts
    assert moments == p.explain.std("age", epsilon=0.5).parts[0]
    assert points == p.explain.quantile("age", [0.01, 0.25, 0.5, 0.75, 0.99], epsilon=0.5).parts[0]
    assert one.epsilon == 1
    assert len(p.explain.describe(epsilon=1).parts) == 6


def test_quantiles_and_functions_that_name_aggregates_are_taken_by_agg(df, p):
    table = p.groupby("state")["age"].agg(["min", "q90", "max", np.mean, "quantile"], epsilon=EXACT)
    groups = df.groupby("state")["age"]
    for name, level in (("min", 0.01), ("q90", 0.9), ("max", 0.99), ("quantile", 0.5)):
        exact = groups.quantile(level, interpolation="nearest")
        assert np.abs(table[name] - exact).max() <= 2, name
    assert np.allclose(table["mean"], groups.mean(), rtol=1e-2)
    assert p.agg({"age": "max"}, epsilon=EXACT)["age"] == p.max("age", epsilon=EXACT)
    assert (
        p["age"].agg("q99", epsilon=EXACT)
        == p.agg(top=("age", "q99"), epsilon=EXACT).loc["top", "age"]
    )
    wide = p.pivot_table("age", "state", aggfunc=["min", "max"], epsilon=EXACT)
    assert list(wide.columns) == [("min", "age"), ("max", "age")]


@pytest.mark.parametrize(
    "name",
    ["q", "q101", "q-5", "q٩٠", "q5%", "Q90", "first", "last", "all", "tree", "unique"],
)
def test_a_name_that_is_no_aggregate_is_refused_with_advice(p, name):
    with pytest.raises(BadValue, match=f"no private aggregate '{name}'.*'q90'"):
        p.groupby("state")["age"].agg(["mean", name])
    assert p.ledger.empty


def test_describe_without_bounds_says_what_to_write(df):
    p = df.dp.open(1)
    with pytest.raises(MissingBounds, match="bounds="):
        p.describe()
    with pytest.raises(MissingBounds, match="'age'"):
        p.describe(["age"], bounds={"cost": (0, 1)})
    assert p.ledger.empty


@pytest.mark.parametrize(
    "ask",
    [
        lambda p: p.pivot_table("cost", "state", "zone", aggfunc=["mean", "count"], margins=True),
        lambda p: p.agg({"age": ["mean"], "cost": ["sum", "mean"]}),
        lambda p: p.groupby("state", as_index=False).agg(n=("age", "size")),
        lambda p: p["state"].value_counts(normalize=True),
    ],
)
def test_receipt_travels_with_its_answer_and_is_bound_to_it(p, tmp_path, ask):
    answer = ask(p)
    before = answer.dp.interval()
    answer.to_pickle(tmp_path / "answer")
    pd.testing.assert_frame_equal(pd.read_pickle(tmp_path / "answer").dp.interval(), before)
    changed = answer.copy()
    changed.iloc[0] = (
        changed.iloc[0].map(lambda x: x if isinstance(x, str) else x + 1) if changed.ndim > 1 else 7
    )
    with pytest.raises(BadValue, match="changed since"):
        changed.dp.interval()


def test_flat_answer_whose_keys_were_changed_is_refused(p):
    flat = p.groupby("state", as_index=False).size()
    flat["state"] = flat["state"].to_numpy()[::-1]
    with pytest.raises(BadValue, match="changed since"):
        flat.dp.interval()


def test_the_largest_groups_of_an_answer_are_plain_pandas(p):
    sizes = p.groupby("state").size(epsilon=EXACT)
    top = sizes.nlargest(2)
    ends = sizes.dp.interval().loc[top.index]
    assert (ends["lower"] <= top).all()
    assert (top <= ends["upper"]).all()


# Keys ---------------------------------------------------------------------------------------------------------


def test_sort_and_dropna_change_keys_as_pandas_does(df):
    p = df.dp.open(1000, keys={"state": ["WA", None, "CA", "NY"]})
    assert list(p.groupby("state").size(epsilon=EXACT).index[[0, 2, 3]]) == ["WA", "CA", "NY"]
    for dropna in (True, False):
        same(
            p.groupby("state", sort=True, dropna=dropna).size(epsilon=EXACT),
            df.groupby("state", sort=True, dropna=dropna).size(),
        )
    counts = p["state"].value_counts(dropna=False, epsilon=EXACT)
    same(counts.sort_index(), df["state"].value_counts(dropna=False).sort_index())
    q = frame().dp.open(1000, keys={"state": STATES}, because="other keys")
    same(
        q.groupby("state", dropna=False).size(epsilon=EXACT),
        df.groupby("state", dropna=False).size(),
    )
    assert (
        len(q.groupby("smoker", dropna=False)) == 2
    )  # a column without nulls has no group of them


def test_sort_of_what_has_an_order_of_its_own(df, p):
    bands = p.assign(band=p["age"].cut([0, 50, 110], labels=["young", "old"]))
    assert list(bands.groupby("band", sort=True).size(epsilon=EXACT).index) == ["young", "old"]
    mixed = pd.DataFrame({"k": pd.Series(["a", 1], dtype=object)}).dp.open(1)
    with pytest.raises(BadValue, match="no order"):
        mixed.groupby("k", keys=["a", 1], sort=True)


# Refusals -----------------------------------------------------------------------------------------------------

REFUSED = {
    "across a row": (lambda p: p.mean("age", axis=1), BadType, "p.assign"),
    "nulls": (lambda p: p.mean("cost", skipna=False), BadType, "fillna"),
    "min_count": (lambda p: p.groupby("state")["cost"].sum(min_count=3), BadType, "count beside"),
    "engine": (lambda p: p.groupby("state")["cost"].sum(engine="numba"), BadType, "own engine"),
    "observed": (lambda p: p.groupby("state", observed="yes"), BadType, "True or False"),
    "observed in a pivot": (
        lambda p: p.pivot_table("age", "state", observed=1),
        BadType,
        "True or False",
    ),
    "level": (lambda p: p.groupby("state", level=0), NotOffered, "columns"),
    "as_index": (lambda p: p.groupby("state", as_index="no"), BadType, "True or False"),
    "bins of several": (lambda p: p.value_counts(["age", "zone"], bins=3), BadType, "one column"),
    "bins that look": (lambda p: p.value_counts("age", bins="auto"), BadValue, "look at the data"),
    "subset twice": (lambda p: p.value_counts("age", subset=["zone"]), BadType, "not both"),
    "sort": (lambda p: p.groupby("state")["zone"].value_counts(sort=1), BadType, "True or False"),
    "values of flat groups": (
        lambda p: p.groupby("state", as_index=False)["zone"].value_counts(),
        NotOffered,
        "reset_index",
    ),
    "values of combinations": (
        lambda p: p.groupby(["state", "zone"], keys=[("CA", 1)])["smoker"].value_counts(),
        NotOffered,
        "column by column",
    ),
    "values of no column": (
        lambda p: p.groupby("state").value_counts(),
        BadType,
        "name the column",
    ),
    "include": (lambda p: p.describe(include="bool"), NotOffered, "value_counts"),
    "function": (lambda p: p.agg({"age": lambda x: x.max() - 1}), BadType, "function"),
    "function in a list": (lambda p: p.agg(["mean", np.std]), BadType, "function"),
    "no such aggregate": (lambda p: p.agg(["mean", "mode"]), BadValue, "no private aggregate"),
    "twice": (lambda p: p.agg({"age": ["mean", "mean"]}), BadValue, "twice"),
    "nothing": (lambda p: p.agg([]), BadValue, "at least one"),
    "no columns": (lambda p: p.groupby("state").agg(["mean"]), BadType, "name the columns"),
    "dict of a column": (lambda p: p["age"].agg({"age": "mean"}), BadType, "of one column"),
    "dict and names": (
        lambda p: p.agg({"age": ["mean"]}, n=("age", "size")),
        BadType,
        "different tables",
    ),
    "arguments": (
        lambda p: p.agg(n=pd.NamedAgg("age", "std", ddof=0)),
        BadType,
        "no arguments",
    ),
    "no index": (lambda p: p.pivot_table("age", columns="state"), BadValue, "index="),
    "no values": (lambda p: p.pivot_table(index="state"), BadType, "values="),
    "an array": (lambda p: p.crosstab(np.array(["CA"]), "zone"), BadType, "by name"),
    "values alone": (lambda p: p.crosstab("state", "zone", values="age"), BadValue, "together"),
    "shares of means": (
        lambda p: p.crosstab("state", "zone", values="age", aggfunc="mean", normalize=True),
        BadValue,
        "divides counts",
    ),
    "a wrong share": (
        lambda p: p.crosstab("state", "zone", normalize="rows"),
        BadValue,
        "normalize=",
    ),
    "margin as a key": (
        lambda p: p.crosstab("state", "zone", margins=True, margins_name="CA"),
        BadValue,
        "margins_name",
    ),
    "names": (lambda p: p.crosstab("state", "zone", rownames=["a", "b"]), BadValue, "rownames"),
    "flat twice": (
        lambda p: p.groupby("zone", as_index=False)["zone"].mean(bounds=(0, 2)),
        BadValue,
        "two columns",
    ),
}


@pytest.mark.parametrize("ask", REFUSED)
def test_refusal_says_why_and_costs_nothing(p, ask):
    call, error, words = REFUSED[ask]
    with pytest.raises(error, match=words):
        call(p)
    assert p.ledger.empty


def test_pivot_over_keys_given_to_the_verb(df):
    p = df.dp.open(1000, bounds=BOUNDS)
    answer = p.pivot_table(
        "age",
        "state",
        "zone",
        aggfunc="sum",
        keys={"state": ["NY", "CA"], "zone": [2]},
        epsilon=EXACT,
    )
    exact = df.pivot_table("age", "state", "zone", aggfunc="sum").loc[["NY", "CA"], [2]]
    same(answer, exact)
    assert "keys" in set(p.declarations["what"])


# Values, counted ----------------------------------------------------------------------------------------------------


COUNTED = {
    "two columns": lambda d, **w: d[["state", "smoker"]].value_counts(**w),
    "one selected": lambda d, **w: d[["state"]].value_counts(**w),
    "a list": lambda d, **w: d.value_counts(["state", "zone"], **w),
    "subset": lambda d, **w: d.value_counts(subset=["state", "smoker"], **w),
    "shares of pairs": lambda d, **w: d[["state", "smoker"]].value_counts(normalize=True, **w),
    "in groups": lambda d, **w: d.groupby("state")["smoker"].value_counts(**w),
    "in groups, two": lambda d, **w: d.groupby("state")[["smoker", "zone"]].value_counts(**w),
    "shares in groups": lambda d, **w: d.groupby("state")["zone"].value_counts(normalize=True, **w),
    "least first": lambda d, **w: d.groupby("state")["zone"].value_counts(ascending=True, **w),
    "bins": lambda d, **w: d["age"].value_counts(bins=[0, 20, 60, 110], **w),
    "bins in their order": lambda d, **w: d["age"].value_counts(
        bins=[0, 20, 60, 110], sort=False, **w
    ),
}


@pytest.mark.parametrize("ask", COUNTED.values(), ids=COUNTED)
def test_values_are_counted_as_pandas_counts_them(df, p, ask):
    answer, exact = ask(p, epsilon=EXACT), ask(df)
    assert type(answer.index) is type(exact.index)
    assert answer.index.names == exact.index.names
    pd.testing.assert_series_equal(
        pd.Series(answer.sort_index()), exact.sort_index(), rtol=1e-2, check_flags=False
    )
    if isinstance(exact.index, pd.MultiIndex) and "groups" in ask.__code__.co_names:
        assert list(answer.index.get_level_values(0)) == list(exact.index.get_level_values(0))
    ends = answer.dp.interval(1 - 1e-9)
    assert (ends["lower"] <= answer).all()
    assert (answer <= ends["upper"]).all()
    assert ends.index.equals(answer.index)
    assert len(p.ledger) == 1


def test_counts_in_groups_stand_largest_first_in_each_group(df, p):
    answer = p.groupby("state")["zone"].value_counts(epsilon=EXACT)
    for _, part in answer.groupby(level="state"):
        assert part.is_monotonic_decreasing
    shares = p.groupby("state")["zone"].value_counts(normalize=True, epsilon=EXACT)
    assert np.allclose(shares.groupby(level="state").sum(), 1)
    assert len(p.ledger) == 1  # the same release


def test_nulls_of_a_frame_are_one_release(df, p):
    same(p.isna().sum(epsilon=EXACT), df.isna().sum())
    same(p.notnull().mean(epsilon=EXACT), df.notna().mean())
    same(p[["age", "cost"]].isnull().sum(epsilon=EXACT), df[["age", "cost"]].isnull().sum())
    assert len(p.ledger) == 3
    plan = p[["state", "cost"]].explain.isna().sum(epsilon=1)
    assert [part.l1 for part in plan.parts] == [1, 1]
    assert plan.parts[0].noise == p.explain.count(epsilon=0.5).parts[0].noise
    (alone,) = p[["age", "cost"]].explain.isna().sum(epsilon=1).parts  # an age is never null
    assert alone.noise == p.explain.count(epsilon=1).parts[0].noise


def test_all_columns_of_groups_are_measured_where_none_is_named(df, p):
    numbers = df[["state", "age", "cost"]]
    groups = p[["state", "age", "cost"]].groupby("state")
    same(groups.mean(epsilon=EXACT), numbers.groupby("state").mean())
    same(groups.sum(epsilon=EXACT), numbers.groupby("state").sum())
    flat = (
        p[["state", "age", "cost"]]
        .groupby("state", as_index=False, observed=True)
        .mean(epsilon=EXACT)
    )
    same(flat, numbers.groupby("state", as_index=False).mean())
    with pytest.raises(BadType, match=r"p\.groupby\(\.\.\.\)\[\['age', 'cost'\]\]"):
        p.assign(name=p["state"]).groupby("zone").mean()


# Covariances and quantiles, of groups and of columns -----------------------------------------------------------------


def test_covariances_and_correlations_of_groups_stand_below_each_other(df, p):
    whole = df.dropna()
    q = p.dropna()
    cov = q.groupby("state")[["age", "cost"]].cov(epsilon=EXACT)
    pd.testing.assert_frame_equal(
        pd.DataFrame(cov),
        whole.groupby("state")[["age", "cost"]].cov(),
        rtol=0.05,
        atol=30,
        check_flags=False,
    )
    corr = q.groupby("state")[["age", "cost"]].corr(epsilon=EXACT)
    exact = whole.groupby("state")[["age", "cost"]].corr()
    pd.testing.assert_frame_equal(pd.DataFrame(corr), exact, atol=0.05, check_flags=False)
    assert len(p.ledger) == 1  # the same release
    ends = corr.dp.interval(1 - 1e-6)
    for column in exact:
        assert (ends[column, "lower"] <= exact[column] + 1e-9).all()
        assert (exact[column] <= ends[column, "upper"] + 1e-9).all()
    pairs = q.groupby(["state", "zone"])[["age", "cost"]].corr(epsilon=EXACT)
    assert list(pairs.index.names) == ["state", "zone", None]


def test_two_columns_have_a_correlation_that_is_a_number(df, p):
    whole = df.dropna()
    q = p.dropna()
    answer = q["age"].corr(q["cost"], epsilon=EXACT)
    exact = whole["age"].corr(whole["cost"])
    low, high = answer.interval(1 - 1e-6)
    assert low <= exact <= high
    assert low <= answer <= high
    assert pickle.loads(pickle.dumps(answer)).interval() == answer.interval()
    assert len(p.ledger) == 1
    assert answer == q[["age", "cost"]].corr(epsilon=EXACT).loc["age", "cost"]
    assert len(p.ledger) == 1  # one question
    cov = q["age"].cov(q["cost"], epsilon=EXACT)
    low, high = cov.interval(1 - 1e-6)
    assert low <= whole["age"].cov(whole["cost"]) <= high
    with pytest.raises(NotOffered, match="ranks"):
        q["age"].corr(q["cost"], method="kendall")
    with pytest.raises(BadType, match="kind text"):
        q["age"].corr(q["state"])


def test_quantiles_of_several_columns_are_a_table(df, p):
    levels = [0.1, 0.5]
    answer = p[["age", "cost"]].quantile(levels, epsilon=EXACT)
    exact = df[["age", "cost"]].quantile(levels)
    assert answer.index.equals(exact.index)
    assert list(answer.columns) == list(exact.columns)
    assert np.abs(answer - exact).max().max() <= 3
    groups = p.groupby("state")[["age", "cost"]].quantile(levels, epsilon=EXACT, method="tree")
    exact = df.groupby("state")[["age", "cost"]].quantile(levels)
    assert list(groups.index) == list(exact.index)
    assert groups.dp.interval().shape == (len(exact), 4)
    assert p[["age"]].quantile(0.5, epsilon=EXACT)["age"] == p.median("age", epsilon=EXACT)
    assert p.quantile("age", levels, epsilon=EXACT).equals(p["age"].quantile(levels, epsilon=EXACT))


@pytest.mark.parametrize(
    "edges",
    [
        range(0, 101, 20),
        [0, 20, 40, 60, 80, 100],
        [-0.0, 20.0, 40.0, 60.0, 80.0, 100.0],
        np.arange(0, 101, 20),
        [0, 20.0, Fraction(40), np.float32(60), 80, 100],
    ],
    ids=["range", "whole", "doubles", "array", "mixed"],
)
def test_edges_are_the_same_in_whatever_numbers_they_are_written(df, edges):
    p = df.dp.open(100)
    wanted = p.histogram("cost", bins=[0.0, 20.0, 40.0, 60.0, 80.0, 100.0], epsilon=60)
    assert p.histogram("cost", bins=edges, epsilon=60).equals(wanted)
    assert p.budget.spent == 60  # it is one question
    assert not np.signbit(p.histogram("cost", bins=edges, epsilon=60).index.left[0])


@pytest.mark.parametrize("last", [2**53 - 1, 2**53 + 2, 2**60, math.inf])
@pytest.mark.parametrize("first", [0, 0.0, -(2**60), -math.inf])
def test_edges_may_be_as_large_as_doubles_are(df, first, last):
    p = df.dp.open(100)
    assert p.explain.histogram("age", bins=[first, 50, last]).groups == 2
    index = p.histogram("age", bins=[first, last], epsilon=60).index
    assert (index.left[0], index.right[0]) == (first, last)


@pytest.mark.parametrize(
    "edges",
    [
        [1],
        [],
        [1.0],
        [0, 0],
        [0.0, -0.0],
        [1, 0],
        [0.0, math.nan],
        [math.nan, 1.0, 2.0],
        [0, 10**400],
        [0, 2, 1],
    ],
    ids=str,
)
def test_edges_that_do_not_increase_are_refused(df, edges):
    with pytest.raises(BadValue):
        df.dp.open(1).histogram("age", bins=edges)
