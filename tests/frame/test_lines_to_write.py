"""What a refusal says to write is written here as it stands and answered; `replace`, `unique` and windows are as in pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, DPError, MissingBounds, NotOffered
from dpframe.engines.rows import FrameRows as engine_Rows

N = 900


@pytest.fixture
def df() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "pid": rng.integers(0, 150, N),
            "k": rng.choice(["a", "b"], N),
            "x": rng.uniform(0, 3, N),
            "y": rng.uniform(0, 3, N),
            "n": rng.choice([1, 2, 3], N),
            "t": pd.Timestamp("2024-01-05") + pd.to_timedelta(rng.integers(0, 300, N), "D"),
        }
    )


BOUNDS = {"x": (0, 3), "y": (0, 3), "n": (1, 3), "t": ("2024-01-01", "2024-12-31")}


@pytest.fixture
def p(df: pd.DataFrame) -> Any:
    return df.copy().dp.open(
        1000, delta=1e-6, queries=20, bounds=BOUNDS, keys={"k": ["a", "b"]}, because="rows"
    )


@pytest.fixture
def q(df: pd.DataFrame) -> Any:
    return df.copy().dp.open(
        1000, queries=4, unit="pid", max_rows=20, max_groups=1, bounds=BOUNDS, because="people"
    )


# The accessor of pandas' groups ---------------------------------------------------------------------------------------

GROUPED = {
    "df.groupby('k').dp.mean('x')": "df.dp.groupby('k').mean(...)",
    "df.groupby('k')['x'].dp.mean()": "df.dp.groupby('k')['x'].mean(...)",
    "df.groupby(['k']).dp.size()": "df.dp.groupby(['k']).size(...)",
    "df.resample('QE', on='t').dp.size()": "df.dp.resample(...).size(...)",
    "df.groupby('k').dp['x'].mean()": "df.dp.groupby('k').size()",
}


def run(code: str, **names: Any) -> Any:
    """Evaluate a line as a user types it."""
    return eval(code, {"pd": pd, "np": np, **names})


@pytest.mark.parametrize("line", GROUPED)
def test_groups_that_pandas_made_say_which_line_groups_the_tracked_frame(
    df: pd.DataFrame, line: str
) -> None:
    df = df.copy()
    df.dp.open(1000, bounds=BOUNDS, keys={"k": ["a", "b"]}, because="groups")
    with pytest.raises(NotOffered) as refused:
        run(line, df=df)
    told = str(refused.value).partition("Put .dp first: ")[2].removesuffix(".")
    assert told == GROUPED[line]
    told = told.replace("resample(...)", "resample('QE', on='t')").replace("mean(...)", "mean('x')")
    told = told.replace("['x'].mean('x')", "['x'].mean()").replace("...", "")
    assert len(run(told, df=df)) >= 2
    assert df.dp.budget.spent > 0


def test_the_accessor_of_groups_is_there_and_has_no_verbs(df: pd.DataFrame) -> None:
    grouped = df.groupby("k")
    assert "Open one" in repr(grouped.dp)
    with pytest.raises(NotOffered, match=r"p\.groupby\('k'\)\.mean\(\.\.\.\)"):
        grouped.dp.mean("x")
    df.dp.open(1000, bounds=BOUNDS, keys={"k": ["a", "b"]}, because="groups")
    assert hasattr(grouped, "dp")
    assert not hasattr(grouped.dp, "mean")
    with pytest.raises(NotOffered):
        iter(grouped.dp)
    assert "df.dp.groupby('k').size()" in repr(df.groupby("k").dp)
    assert grouped["x"].mean().index.tolist() == ["a", "b"]  # pandas' own verbs are what they were
    assert (
        df.assign(dp=1).groupby("k").dp.sum().name == "dp"
    )  # a column of that name is that column
    filed = df.groupby(df["k"].str.upper())
    assert ".dp.groupby('column').size()" in repr(filed.dp)
    assert df.dp.budget.spent == 0


def test_a_tracked_frame_needs_no_accessor(p: Any) -> None:
    for taken in (p, p.groupby("k"), p["x"]):
        with pytest.raises(NotOffered, match=r"leave .dp out"):
            taken.dp  # noqa: B018
        assert not hasattr(taken, "dp")


# Bounds that were lost ------------------------------------------------------------------------------------------------

LOST = {
    "np.log(p['x'])": ("log(x)", "np.log(p['x']).clip(-3, 2)"),
    "p['x'] / p['y']": ("x / y", "(p['x'] / p['y']).clip(0, 10)"),
    "1 / p['x']": ("1 / x", "(1 / p['x']).clip(0, 10)"),
    "p['x'] ** -1": ("x ** -1", "(p['x'] ** -1).clip(0, 10)"),
    "np.log(p['x'] / p['y']) * 2": ("x / y", "(np.log((p['x'] / p['y']).clip(0.1, 10)) * 2)"),
    "np.sqrt(np.log(p['x']) + p['y'])": ("log(x)", "np.sqrt(np.log(p['x']).clip(-3, 2) + p['y'])"),
}


@pytest.mark.parametrize("code", LOST)
def test_missing_bounds_name_the_function_that_lost_them(p: Any, code: str) -> None:
    culprit, line = LOST[code]
    with pytest.raises(MissingBounds) as refused:
        run(f"({code}).mean()", p=p)
    assert f"The columns of {culprit} have bounds, but no bounds of {culprit} follow" in str(
        refused.value
    )
    assert ".clip(a, b) after it" in str(refused.value)
    assert isinstance(run(f"{line}.mean()", p=p), float)
    assert isinstance(run(f"({code}).mean(bounds=(-5, 10))", p=p), float)


def test_a_column_without_bounds_is_named_itself(df: pd.DataFrame) -> None:
    p = df.copy().dp.open(1, bounds={"x": (0, 3)}, because="no bounds")
    for code in ("np.log(p['y'])", "p['x'] / p['y']", "p['y']"):
        with pytest.raises(MissingBounds, match="none follow from what is declared about y"):
            run(f"({code}).mean()", p=p)


# Functions of groups, times and periods -------------------------------------------------------------------------------

TOLD: dict[str, tuple[type[DPError], list[str]]] = {
    "p.groupby('k').apply(lambda g: g['x'].mean())": (
        NotOffered,
        [
            "p.groupby('k').agg(m=('x', 'mean'), n=('x', 'size'))",
            "p.groupby('k')['x'].agg(['min', 'max'])",
            "p.assign(y='x / 2').groupby('k')['y'].mean()",
        ],
    ),
    "p.groupby('k')['x'].agg(lambda s: s.max() - s.min())": (
        BadType,
        ["p.assign(y='x / 2').groupby('k')['y'].mean()", "p.groupby('k')['x'].agg(['min', 'max'])"],
    ),
    "p.groupby('k').pipe(len)": (NotOffered, ["p.groupby('k').agg(m=('x', 'mean'))"]),
    "p.resample('ME', on='t').size(bounds=('2024-01-01', '2024-06-30'))": (
        BadType,
        ["p.resample('ME', on='t', bounds=('2024-01-01', '2024-12-31')).size()"],
    ),
    "p.set_index('t').resample('ME').size(bounds=('2024-01-01', '2024-06-30'))": (
        BadType,
        ["p.resample('ME', on='t', bounds=('2024-01-01', '2024-12-31')).size()"],
    ),
    "p['t'].std()": (
        BadType,
        ["(p['t'] - pd.Timestamp('2024-01-01')).std()", "p.resample('ME', on='t').size()"],
    ),
    "p['x'].rolling(7).mean()": (
        NotOffered,
        ["p.resample('D', on='t')['x'].mean().rolling(7).mean()"],
    ),
}


@pytest.mark.parametrize("code", TOLD)
def test_what_a_refusal_says_to_write_is_answered(p: Any, code: str) -> None:
    kind, lines = TOLD[code]
    with pytest.raises(kind) as refused:
        run(code, p=p)
    assert p.budget.spent == 0
    for line in lines:
        assert line in str(refused.value)
        assert run(line, p=p) is not None


def test_periods_without_a_range_say_where_it_is_given(df: pd.DataFrame) -> None:
    p = df.copy().dp.open(1000, because="no range")
    with pytest.raises(MissingBounds) as refused:
        p.set_index("t").resample("ME")
    line = ".resample('ME', bounds=('2024-01-01', '2024-12-31'))"
    assert line in str(refused.value)
    assert len(run(f"p.set_index('t'){line}.size()", p=p)) == 12


def test_functions_that_mean_an_aggregate_are_taken_alone(df: pd.DataFrame, p: Any) -> None:
    for how in (np.mean, "mean"):
        found = p.groupby("k")["x"].agg(how, epsilon=100)
        assert (found - df.groupby("k")["x"].mean()).abs().max() < 0.1
    assert abs(p["x"].agg(np.mean, epsilon=100) - df["x"].mean()) < 0.1


# Replace --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mapping", [{"a": "A"}, {"a": "A", "b": "B"}, {"a": "b", "b": "a"}])
def test_cells_that_are_no_keys_stay_what_they_are(mapping: dict[str, str]) -> None:
    frame = pd.DataFrame({"k": ["a", "b", "c", None] * 20})
    p = frame.dp.open(1000, keys={"k": ["a", "b"]})
    wanted = frame["k"].replace(mapping)
    replaced = p["k"].replace(mapping)
    for value in ("A", "B", "a", "b", "c"):
        assert (replaced == value).sum(epsilon=90) == (wanted == value).sum()
    assert replaced.isna().sum(epsilon=90) == wanted.isna().sum()
    assert set(replaced.value_counts(epsilon=90).index) == {mapping.get(key, key) for key in "ab"}


def test_values_of_another_kind_need_all_keys_and_leave_others_null() -> None:
    frame = pd.DataFrame({"k": ["a", "b", "c"] * 20})
    p = frame.dp.open(1000, keys={"k": ["a", "b"]})
    assert round(p["k"].replace({"a": 0, "b": 1}).mean(epsilon=90), 1) == 0.5
    assert p["k"].replace({"a": 0, "b": 1}).count(epsilon=90) == 40
    with pytest.raises(BadType, match="map"):
        p["k"].replace({"a": 0})


def test_numbers_that_are_no_keys_stay_within_the_bounds_of_both() -> None:
    frame = pd.DataFrame({"n": [1, 2, 9] * 50})
    p = frame.dp.open(1000, keys={"n": [1, 2]}, bounds={"n": (0, 9)})
    assert round(p["n"].replace({1: 10, 2: 20}).sum(epsilon=900)) == 50 * 39


# Intervals as pandas has them -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("edges", [[0, 1, 2, 3], [0.0, 1.5, 3.0]])
def test_bands_that_are_found_are_those_of_pandas(
    df: pd.DataFrame, p: Any, edges: list[float]
) -> None:
    found = p["x"].cut(edges).unique(epsilon=100)
    wanted = pd.cut(df["x"], edges).cat.categories
    assert found.equals(wanted.rename("x"))
    assert found.dtype == wanted.dtype
    assert p.groupby(p["x"].cut(edges)).size(epsilon=100).index.tolist() == found.tolist()


# Windows over a person's own rows -------------------------------------------------------------------------------------

WINDOWS = [
    "rolling(2).mean()",
    "rolling(3).sum()",
    "rolling(3, min_periods=1).mean()",
    "rolling(3, min_periods=2).sum()",
    "rolling(2).max()",
    "rolling(2).min()",
    "rolling(3).count()",
    "rolling(1).mean()",
    "rolling(window=2).mean()",
    "rolling(2).std()",
    "rolling(3).var()",
    "rolling(5).std()",
    "rolling(3).std(ddof=0)",
    "rolling(2).var(ddof=0)",
    "rolling(1).std(ddof=0)",
    "expanding().sum()",
    "expanding().mean()",
    "expanding().max()",
    "expanding().min()",
    "expanding().count()",
    "expanding(3).mean()",
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("column", ["x", "n"])
def test_windows_within_a_person_are_those_of_pandas(
    df: pd.DataFrame, window: str, column: str
) -> None:
    """Cell by cell, on frames small enough that each answer is a count of one of them."""
    frame = df.head(120).assign(x=df["x"].where(df["x"] > 0.6))
    frame["pid"] %= 20
    p = frame.dp.open(1000, queries=4, unit="pid", max_rows=20, max_groups=1, bounds=BOUNDS)
    wanted = run(f"d.groupby('pid')[{column!r}].{window}", d=frame)
    made = run(f"p.groupby('pid')[{column!r}].{window}", p=p)
    got = dpframe_values(made, frame)
    loose = {"rtol": 1e-9, "atol": 1e-7} if "std" in window or "var" in window else {"rtol": 1e-12}
    np.testing.assert_allclose(got, wanted.droplevel(0).sort_index().to_numpy(), **loose)
    low, high = made._expr.bounds(p._session.bounds)  # so that it needs none of its own
    assert low <= np.nanmin(got)
    assert np.nanmax(got) <= high
    assert abs(made.sum(epsilon=800) - np.nansum(got)) < 0.02 * max(abs(low), abs(high)) * 20


def dpframe_values(column: Any, frame: pd.DataFrame) -> Any:
    return np.asarray(pd.Series(engine_Rows(frame).array(column._expr)), dtype=float)


def test_skewness_within_a_person_is_that_of_pandas(df: pd.DataFrame) -> None:
    frame = df.head(300)
    p = frame.dp.open(1000, unit="pid", max_rows=20, max_groups=1, bounds=BOUNDS)
    wanted = frame.groupby("pid")["x"].skew()
    for made in (p.groupby("pid")["x"].skew(), p.groupby("pid")["x"].agg(lambda s: s.skew())):
        got = pd.Series(dpframe_values(made, frame)).groupby(frame["pid"].to_numpy()).first()
        np.testing.assert_allclose(got.to_numpy(), wanted.to_numpy(), rtol=1e-9, atol=1e-9)
    with pytest.raises(MissingBounds):
        p.groupby("pid")["x"].skew().mean()
    assert (
        abs(p.groupby("pid")["x"].skew().clip(-2, 2).mean(epsilon=900) - wanted.clip(-2, 2).mean())
        < 0.1
    )


def test_windows_stand_wherever_a_column_does(df: pd.DataFrame, q: Any) -> None:
    wanted = df.groupby("pid")["x"].rolling(2).mean().mean()
    assert abs(q.groupby("pid").rolling(2)["x"].mean().mean(epsilon=200) - wanted) < 0.2
    assert (
        abs(
            q.groupby("pid")["x"].transform(lambda s: s.rolling(2).mean()).mean(epsilon=200)
            - wanted
        )
        < 0.2
    )
    table = q.groupby("pid")[["x", "y"]].rolling(2).mean()
    assert list(table.columns) == ["x", "y"]
    q["smooth"] = q.groupby("pid")["x"].expanding().mean()
    assert (
        abs(q["smooth"].mean(epsilon=200) - df.groupby("pid")["x"].expanding().mean().mean()) < 0.2
    )


REFUSED = {
    "q.groupby('pid')['x'].rolling('7D')": NotOffered,
    "q.groupby('pid')['x'].rolling(3, center=True)": NotOffered,
    "q.groupby('pid')['x'].rolling(3).skew()": NotOffered,
    "q.groupby('pid')['x'].rolling(3, min_periods=2).std()": NotOffered,
    "q.groupby('pid')['x'].expanding().var()": NotOffered,
    "q.groupby('pid')['x'].rolling(1).std()": dpframe.BadValue,
    "q.groupby('pid')['x'].rolling(3).std(ddof=2)": dpframe.BadValue,
    "q.groupby('pid').rolling(3).std()": BadType,
    "q.groupby('pid')['x'].rolling(2, min_periods=1).max()": NotOffered,
    "q.groupby('pid')['x'].rolling(0)": dpframe.BadValue,
    "q.groupby('pid')['x'].rolling(65)": dpframe.BadValue,
    "q.groupby('pid')['x'].rolling(2, min_periods=3)": dpframe.BadValue,
    "q.groupby('pid')['x'].rolling(2.5)": NotOffered,
    "q.groupby('pid')['x'].rolling(True)": NotOffered,
    "q.groupby('pid')['x'].expanding(0)": dpframe.BadValue,
    "q.groupby('pid')['x'].ewm(span=2)": NotOffered,
    "q['x'].rolling(2)": NotOffered,
}


@pytest.mark.parametrize("code", REFUSED)
def test_other_windows_are_refused_for_nothing(q: Any, code: str) -> None:
    with pytest.raises(REFUSED[code]):
        run(code, q=q)
    assert q.budget.spent == 0


@pytest.mark.parametrize("rows", [2, 3, 8, 64])
@np.errstate(all="ignore")
def test_deviations_of_windows_lose_no_digits_and_stay_within_their_bounds(rows: int) -> None:
    """Cells that are far from zero, one that is far from the others, cells that are alike, and those at the ends."""
    rng = np.random.default_rng(8)
    cells = [
        1e9 + rng.uniform(0, 1, 100),
        np.r_[rng.uniform(0, 1, 50), 1e9, rng.uniform(0, 1, 49)],
        np.full(100, 0.1),
        np.resize([0.0, 2e9], 100),
        np.r_[[np.nan], rng.uniform(0, 2e9, 98), [np.inf]],
    ]
    df = pd.DataFrame({"pid": np.repeat(np.arange(5), 100), "x": np.concatenate(cells)})
    p = df.dp.open(1, unit="pid", max_rows=100, max_groups=1, bounds={"x": (0, 2e9)})
    for ddof in (0, 1):
        made = p.groupby("pid")["x"].rolling(rows).std(ddof=ddof)
        got = dpframe_values(made, df)
        low, high = made._expr.bounds(p._session.bounds)
        known = got[~np.isnan(got)]
        assert low == 0
        assert known.min() >= 0
        assert known.max() <= high
        if rows % 2 == 0:
            assert known.max() == pytest.approx(high, rel=1e-12)  # and no narrower ones would do
        for person in range(5):
            own = df["x"][df["pid"] == person].to_numpy()
            true = [
                np.std(own[i - rows + 1 : i + 1], ddof=ddof) if i >= rows - 1 else np.nan
                for i in range(100)
            ]
            np.testing.assert_allclose(
                got[person * 100 : person * 100 + 100], true, rtol=1e-7, atol=1e-9
            )


def test_a_window_is_the_persons_own(df: pd.DataFrame) -> None:
    """Whoever else is in the frame changes nobody's windows: neighbours differ in one person's rows."""
    one = df[df["pid"] < 30].reset_index(drop=True)
    two = one[one["pid"] != 7].reset_index(drop=True)
    report = dpframe.audit.replay(
        lambda p: (
            p.groupby("pid")["x"].rolling(2).mean().sum(),
            p.groupby("pid")["x"].rolling(2).std().sum(),
        ),
        one,
        two,
        epsilon=1,
        unit="pid",
        max_rows=3,
        max_groups=1,
        bounds=BOUNDS,
    )
    assert report.ok
