"""Durations are measured as seconds and answered as durations, in every shape as pandas has it, with intervals of durations."""

from __future__ import annotations

import copy
import json
import pickle
import types
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue, DPError, MissingBounds, NotOffered, audit
from dpframe._plans import durations as durations_module
from dpframe._plans.aggregates import Output as query_Output

N = 4000
DAYS = ("0D", "14D")
BOUNDS = {
    "came": ("2025-01-01", "2025-12-31"),
    "left": ("2025-01-01", "2026-01-31"),
    "wait": ("0h", "3h"),
    "cost": (0, 100),
}
KEYS = {"ward": ["A", "B"], "sex": ["F", "M"]}


@pytest.fixture(scope="module")
def df() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    came = pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 365 * 24 * 60, N), "min")
    wait = pd.Series(pd.to_timedelta(rng.integers(0, 180, N), "min"))
    return pd.DataFrame(
        {
            "came": came,
            "left": came + pd.to_timedelta(rng.integers(0, 14 * 24, N), "h"),
            "wait": wait.mask(rng.random(N) < 0.1),
            "ward": rng.choice(["A", "B"], N, p=[0.6, 0.4]),
            "sex": rng.choice(["F", "M"], N),
            "cost": rng.uniform(0, 100, N),
        }
    )


@pytest.fixture
def p(df: pd.DataFrame) -> Any:
    p = df.copy().dp.open(1000, queries=4, bounds=BOUNDS, keys=KEYS, because="synthetic")
    p["stay"] = p["left"] - p["came"]
    return p


def seconds(answer: Any) -> Any:
    """Numbers in place of durations, whichever shape."""
    if isinstance(answer, pd.DataFrame):
        return answer.apply(seconds)
    if isinstance(answer, pd.Series) and answer.dtype == object:
        return answer.map(lambda v: v.total_seconds() if isinstance(v, pd.Timedelta) else v).astype(
            float
        )
    if isinstance(answer, pd.Series):
        return answer.dt.total_seconds() if answer.dtype.kind == "m" else answer.astype(float)
    return answer.total_seconds()


LINES = [
    "df['stay'].mean()",
    "(df['left'] - df['came']).mean()",
    "df['stay'].sum()",
    "df['stay'].std()",
    "df['stay'].median()",
    "df['stay'].quantile(0.9)",
    "df['stay'].quantile([0.1, 0.5])",
    "df['wait'].mean()",
    "df['wait'].max()",
    "df['wait'].describe()",
    "df['stay'].agg('mean')",
    "df['stay'].agg(['mean', 'std'])",
    "df['wait'].agg(['count', 'median'])",
    "df[['stay', 'wait']].mean()",
    "df[['stay', 'cost']].mean()",
    "df.groupby('ward')['stay'].mean()",
    "df.groupby('ward')['wait'].median()",
    "df.groupby('ward')['wait'].sum()",
    "df.groupby(['ward', 'sex'])['stay'].mean()",
    "df.groupby('ward')['stay'].quantile([0.25, 0.75])",
    "df.groupby('ward')[['stay', 'cost']].mean()",
    "df.groupby('ward')['stay'].agg(['mean', 'count'])",
    "df.groupby('ward').agg(n=('stay', 'size'), m=('stay', 'mean'), c=('cost', 'mean'))",
    "df.groupby('ward', as_index=False)['stay'].mean()",
    "df.groupby('ward')['wait'].describe()",
    "df.pivot_table(values='stay', index='ward', columns='sex', aggfunc='mean')",
    "df.resample('QE', on='came')['stay'].mean()",
    "df['stay'].abs().mean()",
    "df['stay'].where(df['ward'] == 'A').mean()",
]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.filterwarnings("ignore")
def test_the_same_line_gives_durations_as_pandas_does(df: pd.DataFrame, p: Any, line: str) -> None:
    frame = df.assign(stay=df["left"] - df["came"])
    wanted, found = eval(line, {"df": frame}), eval(line, {"df": p})
    if isinstance(wanted, pd.Timedelta):
        assert isinstance(found, pd.Timedelta)
        assert isinstance(found, dpframe.Estimate)
        assert abs(found - wanted) <= max(0.05 * wanted, pd.Timedelta("2h"))
        return
    assert isinstance(found, type(wanted))
    assert found.index.equals(wanted.index)
    if isinstance(wanted, pd.DataFrame):
        assert [d.kind for d in found.dtypes] == [
            d.kind for d in wanted.dtypes
        ] or "describe" in line
        keyed = [c for c in wanted if c in KEYS]
        wanted, found = wanted.drop(columns=keyed), found.drop(columns=keyed)
    else:
        assert found.dtype.kind == wanted.dtype.kind
    a, b = seconds(found), seconds(wanted)
    assert (np.abs(np.asarray(a - b, dtype=float)) <= 0.06 * np.abs(np.asarray(b)).max()).all()


TIMES = [
    "df['came'].min()",
    "df['came'].max()",
    "df['came'].mean()",
    "df['came'].median()",
    "df['came'].quantile(0.25)",
    "df['came'].quantile([0.1, 0.9])",
    "df['came'].agg(['min', 'max'])",
    "df['came'].describe()",
    "df[['came', 'left']].max()",
    "df['came'].dt.normalize().max()",
    "df.groupby('ward')['came'].max()",
    "df.groupby('ward').agg(first=('came', 'min'), n=('came', 'size'))",
    "df.groupby(['ward', 'sex'])['left'].median()",
    "df.pivot_table(values='came', index='ward', columns='sex', aggfunc='max')",
    "df.resample('QE', on='came')['left'].max()",
]


@pytest.mark.parametrize("line", TIMES)
@pytest.mark.filterwarnings("ignore")
def test_the_same_line_gives_moments_as_pandas_does(df: pd.DataFrame, p: Any, line: str) -> None:
    wanted, found = eval(line, {"df": df}), eval(line, {"df": p})
    if isinstance(wanted, pd.Timestamp):
        assert isinstance(found, pd.Timestamp)
        assert isinstance(found, dpframe.Estimate)
        assert abs(found - wanted) < pd.Timedelta("12D")
        return
    assert isinstance(found, type(wanted))
    assert found.index.equals(wanted.index)
    days = [
        (a - b) / pd.Timedelta("1D") if isinstance(b, pd.Timestamp) else (a - b) / 100
        for a, b in zip(
            np.ravel(found.astype(object)), np.ravel(wanted.astype(object)), strict=True
        )
    ]
    assert max(map(abs, days)) < 12


def test_a_moment_has_an_interval_of_moments(p: Any) -> None:
    stated = len(p.declarations)
    mean = p["came"].mean(epsilon=100)
    low, high = mean.interval()
    assert type(low) is pd.Timestamp
    assert low < mean < high
    assert type(mean + pd.Timedelta("1D")) is pd.Timestamp
    assert type(mean - low) is pd.Timedelta
    assert str(mean) == str(pd.Timestamp(mean.asm8))
    assert "±" in repr(mean)
    assert "95 % interval" in mean._repr_html_()
    again = pickle.loads(pickle.dumps(mean))
    assert again == mean
    assert again.interval() == (low, high)
    assert again.cost == mean.cost
    assert p["came"].mean(epsilon=100) == mean  # recalled
    assert repr(p["came"].max(epsilon=100)).startswith("2025-12-")  # chosen, without an interval
    table = p.groupby("ward").agg(m=("came", "mean"), n=("came", "count"), epsilon=100)
    ends = table["m"].dp.interval()
    assert (ends["lower"] < table["m"]).all()
    assert (table["m"] < ends["upper"]).all()
    assert len(p.declarations) == stated  # nothing new was


def test_moments_beyond_the_range_count_as_its_ends() -> None:
    frame = pd.DataFrame(
        {"t": pd.to_datetime(["1900-01-01", "2100-01-01", "2024-06-01", None] * 50)}
    )
    q = frame.dp.open(1000, queries=4)
    bounds = ("2024-01-01", "2024-12-31")
    mean = q["t"].mean(bounds=bounds, epsilon=250)
    ends = pd.Series(pd.to_datetime(["2024-01-01", "2025-01-01", "2024-06-01"]))
    assert abs(mean - ends.mean()) < pd.Timedelta("2D")
    assert q["t"].max(bounds=bounds, epsilon=250) <= pd.Timestamp("2024-12-31 23:59:59.999999")
    with pytest.raises(MissingBounds, match="first and last moment"):
        q["t"].max()
    assert q["t"].count(epsilon=250) == 150


def test_an_answer_is_a_timedelta_with_an_interval(p: Any) -> None:
    mean = p["stay"].mean(DAYS, epsilon=100)
    low, high = mean.interval()
    assert isinstance(low, pd.Timedelta)
    assert low < mean < high
    assert str(mean) == str(pd.Timedelta(mean.asm8))
    assert "±" in repr(mean)
    assert type(mean + mean) is pd.Timedelta
    assert type(mean / pd.Timedelta("1h")) is float
    assert mean.dp is mean
    assert mean.cost.epsilon == 100
    for again in (pickle.loads(pickle.dumps(mean)), copy.deepcopy(mean)):
        assert again == mean
        assert again.interval() == (low, high)
        assert type(again) is type(mean)
    assert mean == p["stay"].mean(DAYS, epsilon=100)  # recalled
    assert "95 % interval" in mean._repr_html_()
    assert repr(p["stay"].median(DAYS, epsilon=100)).count("days") == 2


def test_ends_of_intervals_are_durations_around_the_answer(p: Any) -> None:
    for answer in (
        p.groupby("ward")["stay"].mean(bounds=DAYS, epsilon=50),
        p[["stay", "wait"]].mean(epsilon=50),
        p.groupby("ward")["wait"].quantile([0.2, 0.4], method="tree", epsilon=50),
    ):
        ends = answer.dp.interval()
        assert (ends.dtypes == answer.dtype).all()
        assert (ends["lower"] <= answer).all()
        assert (answer <= ends["upper"]).all()
        assert pickle.loads(pickle.dumps(answer)).dp.interval().equals(ends)
    table = p.groupby("ward").agg(m=("wait", "mean"), n=("wait", "count"), epsilon=50)
    ends = table.dp.interval()
    assert (ends["m", "lower"] <= table["m"]).all()
    assert ends["n", "lower"].dtype == float
    mixed = p["wait"].agg(["mean", "count"], epsilon=50)
    assert mixed.dp.interval().loc["count", "lower"] <= mixed["count"]
    assert isinstance(mixed.dp.interval().loc["mean", "lower"], pd.Timedelta)
    margins = p.pivot_table(
        values="wait", index="ward", columns="sex", aggfunc="sum", margins=True, epsilon=50
    )
    cells = margins.loc[["A", "B"], ["F", "M"]].sum().sum()
    assert abs(margins.loc["All", "All"] - cells) <= pd.Timedelta(
        "3us"
    )  # five numbers, each to half a microsecond
    chosen = p["wait"].quantile([0.2, 0.4], epsilon=20)
    assert (chosen.dp.interval()["lower"] <= chosen).all()


def test_intervals_cover_the_truth() -> None:
    truth, covered = pd.Timedelta("36min"), 0
    frame = pd.DataFrame({"d": [truth] * 50})
    for i in range(100):
        q = frame.copy().dp.open(1, bounds={"d": ("0h", "1h")}, because=f"again {i}")
        low, high = q["d"].mean(epsilon=0.5).interval(0.9)
        covered += low <= truth <= high
    assert covered >= 75  # of 100 at 0.9: fewer by chance once in 10**5 runs


def test_ends_are_rounded_outwards() -> None:
    """Where there is hardly any noise the interval still holds the value, to the last nanosecond."""
    frame = pd.DataFrame({"d": pd.to_timedelta([7, 11, 5] * 9, "ns")})
    total = frame.dp.open(1000, bounds={"d": ("0ns", "20ns")})["d"].sum(epsilon=1000)
    low, high = total.interval(0.999999)
    assert total.unit == "ns"
    assert low <= pd.Timedelta(23 * 9, "ns") <= high
    assert low <= total <= high


def test_numbers_of_seconds_become_durations_by_public_facts_alone() -> None:
    cells = np.array([1e-7, 2.5, np.nan, -1e300, 1e300])
    for upper, unit in ((3.0, "ns"), (1e6, "us")):
        cell = query_Output("x", "mean", duration=True)
        cell = types.SimpleNamespace(lower=0.0, upper=upper, origin=cell.origin)
        ways: tuple[Any, ...] = ("nearest", "down", "up")
        nearest, down, up = (durations_module.show_seconds(cells, cell, way) for way in ways)
        assert nearest.dtype == f"timedelta64[{unit}]"
        assert np.isnat(nearest).tolist() == [False, False, True, False, False]
        assert (down[[0, 1]] <= nearest[[0, 1]]).all()
        assert (up[[0, 1]] >= nearest[[0, 1]]).all()
        assert nearest[3] < nearest[1] < nearest[4]
    assert down[0] == np.timedelta64(0, "us") < up[0] == np.timedelta64(1, "us")


def test_sums_beyond_what_a_timedelta_holds_end_there() -> None:
    frame = pd.DataFrame({"d": pd.to_timedelta([36500] * 4000, "D").astype("timedelta64[s]")})
    total = frame.dp.open(1000, bounds={"d": ("0D", "36500D")})["d"].sum(epsilon=900)
    assert total.total_seconds() > 9.2e12
    assert total.interval()[1] >= total


BOUND_LINES = {
    "p['stay'].mean(bounds=(0, 14))": (BadType, "duration"),
    "p['stay'].mean(bounds='14D')": (BadType, "pair"),
    "p['stay'].mean(bounds=('14D', '0D'))": (BadValue, "reversed"),
    "p['stay'].mean(bounds=('0D', 'NaT'))": (BadType, "duration"),
    "p['stay'].mean(bounds=('0D', 'soon'))": (BadType, "duration"),
    "p['odd'].mean()": (MissingBounds, r"bounds=\('0D', '30D'\)"),
    "p['stay'].var()": (BadType, "total_seconds"),
    "p['stay'].sem()": (BadType, "total_seconds"),
    "p['stay'].skew()": (BadType, "total_seconds"),
    "p['stay'].cov(p['cost'])": (BadType, "total_seconds"),
    "p.agg({'stay': ['mean', 'count']})": (BadType, "one column"),
    "p['stay'].mean(within=3, n=100)": (BadType, "within must be a duration"),
    "p['cost'].mean(within=pd.Timedelta('1h'), n=100)": (BadType, "number"),
    "p[['stay', 'cost']].mean(within=3, n=100)": (BadType, "apart"),
    "p['stay'].median(resolution=60)": (BadType, "resolution must be a duration"),
    "p.mean()": (BadType, "kind text"),
    "p['came'].sum()": (BadType, "means and quantiles"),
    "p['came'].std()": (BadType, "Measure from a moment"),
    "p['came'].mean(bounds=('2025-02-01', '2025-01-01'))": (BadValue, "reversed"),
    "p.agg({'came': ['min', 'count']})": (BadType, "one column"),
}


@pytest.mark.parametrize("line", BOUND_LINES)
def test_what_does_not_fit_is_said_before_anything_is_paid(p: Any, line: str) -> None:
    kind, text = BOUND_LINES[line]
    if "odd" in line:
        q = pd.DataFrame({"odd": pd.to_timedelta([1, 2], "h")}).dp.open(1)
        with pytest.raises(kind, match=text):
            eval(line, {"p": q, "pd": pd})
        return
    with pytest.raises(kind, match=text):
        eval(line, {"p": p, "pd": pd})
    assert p.budget.spent == 0


def test_bounds_are_taken_in_every_spelling(p: Any) -> None:
    spellings = [
        ("0D", "14D"),
        (pd.Timedelta(0), pd.Timedelta(14, "D")),
        [np.timedelta64(0, "h"), np.timedelta64(14 * 24, "h")],
        ("0s", pd.Timedelta(14, "D").to_pytimedelta()),
    ]
    plans = [p.explain["stay"].mean(bounds=pair, epsilon=1) for pair in spellings]
    assert all(plan == plans[0] for plan in plans)
    assert (
        p.explain["stay"].mean(epsilon=1).sensitivity > plans[0].sensitivity
    )  # of what was declared of times
    near = p.explain["stay"].mean(bounds=DAYS, within="30min", n=1000)
    assert near.error(n=1000) == pytest.approx(1800, rel=0.01)
    assert "seconds" in repr(near)


def test_declared_bounds_of_durations_are_public_facts(df: pd.DataFrame, p: Any) -> None:
    record = p.declarations
    assert record["value"].str.contains(r"'wait': \('0 days 00:00:00', '0 days 03:00:00'\)").any()
    p["wait"].mean(epsilon=1)
    assert len(p.declarations) == len(record)  # nothing new was stated
    assert "0 days 03:00:00" in p._repr_html_()
    assert p.head(50)["wait"].between("0h", "3h").all()
    assert p["wait"].dt.total_seconds().mean(epsilon=5) > 0
    with pytest.raises(BadType, match="numbers, times and durations"):
        df.copy().dp.open(1, bounds={"ward": (0, 1)}, because="again")


def test_pictures_of_durations_are_refused_with_lines_that_work(p: Any) -> None:
    answer = p.groupby("ward")["wait"].mean(epsilon=5)
    with pytest.raises(NotOffered) as refused:
        answer.dp.plot()
    assert "(answer / pd.Timedelta('1h')).plot()" in str(refused.value)
    assert (answer / pd.Timedelta("1h")).between(1, 2).all()
    assert p["wait"].dt.total_seconds().mean(epsilon=5) / 3600 > 1


def test_receipts_of_numbers_are_what_they_were(p: Any) -> None:
    rows = p.explain["cost"].mean(epsilon=1).to_json()["cells"]
    assert [len(row) for row in rows] == [9]
    assert json.loads(p.explain["wait"].mean(epsilon=1).text)["cells"][0][9:] == [True]


def test_neighbours_move_seconds_no_further_than_the_plan_says(df: pd.DataFrame) -> None:
    one = df.head(30)
    far = one.iloc[[0]].assign(wait=pd.Timedelta("3h"), left=pd.Timestamp("2026-01-31"))
    report = audit.replay(
        lambda q: (
            q["wait"].sum(),
            q.groupby("ward")["wait"].mean(),
            q["wait"].median(),
            (q["left"] - q["came"]).mean(),
        ),
        one,
        pd.concat([one, far], ignore_index=True),
        epsilon=10,
        bounds=BOUNDS,
        keys=KEYS,
    )
    assert report.ok
    assert len(report.steps) == 5
    assert max(step.distance / step.sensitivity for step in report.steps) == 1


def test_a_person_with_many_rows_is_bounded() -> None:
    frame = pd.DataFrame({"id": [1] * 50 + [2], "d": [pd.Timedelta("2h")] * 51})
    q = frame.dp.open(1000, unit="id", max_rows=3, max_groups=1, bounds={"d": ("0h", "2h")})
    assert abs(q["d"].sum(epsilon=900) - pd.Timedelta("8h")) < pd.Timedelta("15min")


@pytest.mark.parametrize(
    "line",
    ["p['wait'].mean()", "p.groupby('ward')['wait'].median()", "(p['left'] - p['came']).mean()"],
)
def test_sources_in_parts_answer_alike(df: pd.DataFrame, line: str) -> None:
    polars = pytest.importorskip("polars", reason="frames of polars are read in batches")
    words: dict[str, Any] = {
        "epsilon": 1000,
        "queries": 2,
        "bounds": BOUNDS,
        "keys": KEYS,
        "because": "synthetic",
    }
    p = dpframe.open(polars.from_pandas(df), **words)
    q = df.copy().dp.open(**words)
    a, b = eval(line, {"p": p}), eval(line, {"p": q})
    assert (
        (np.abs(a - b) < pd.Timedelta("30min")).all()
        if isinstance(a, pd.Series)
        else abs(a - b) < pd.Timedelta("30min")
    )


def test_refusals_are_dpframes_own(p: Any) -> None:
    for line in (
        "p['wait'].histogram()",
        "p['wait'].value_counts()",
        "p.groupby('wait').size()",
        "p['wait'].argmax()",
    ):
        with pytest.raises(DPError):
            eval(line, {"p": p})
    assert p.budget.spent == 0


def test_bounds_of_very_long_durations_are_what_they_say():
    frame = pd.DataFrame(
        {"stay": [pd.Timedelta("2D")] * 1000, "came": [pd.Timestamp("2000-01-01")] * 1000}
    )
    p = frame.dp.open(1000)
    for days in (99_999, 100_000, 106_751):
        plan = p.explain.sum("stay", bounds=("0D", f"{days}D"), epsilon=1)
        assert plan.sensitivity == days * 86_400
    found = p["came"].mean(bounds=("1740-01-01", "2026-01-01"), epsilon=100)
    assert abs(found - pd.Timestamp("2000-01-01")) < pd.Timedelta("100D")


@pytest.mark.filterwarnings("ignore")
def test_a_sum_as_wide_as_can_be_is_answered():
    p = pd.DataFrame({"stay": [pd.Timedelta("2D")] * 1000}).dp.open(1)
    answer = p["stay"].sum(bounds=("0D", "365D"), epsilon=1e-5)
    assert repr(answer).endswith(", noise")


def test_tables_of_durations_and_moments_are_written_as_text(p: Any) -> None:
    for answer, rows in (
        (p["wait"].mean(epsilon=5), 1),
        (p["came"].mean(epsilon=5), 1),
        (p[["came", "wait", "cost"]].mean(epsilon=5), 3),
        (p.groupby("ward").agg(m=("wait", "mean"), n=("wait", "count"), epsilon=5), 4),
        (p.groupby("ward")["came"].median(epsilon=5), 2),
    ):
        table = answer.dp.table()
        assert len(table) == rows
        assert len(table.to_markdown().splitlines()) == rows + 2
        to_the_minute = str(table["lower"].iloc[0]).rpartition(":")[
            0
        ]  # seconds have the digits that the interval leaves
        assert to_the_minute in table.to_markdown() or table["lower"].isna().all()
        assert "NaT" not in table.to_html()
        assert len(answer.dp.table(wide=True).to_markdown().splitlines()) >= 3
