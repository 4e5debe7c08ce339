"""Times with a zone are instants: what is measured of them is what is measured of their UTC, and shown in their zone."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue, DPError, MissingBounds, NotOffered, audit
from dpframe.engines.rows import FrameRows as engine_Rows

N = 3000
YEAR = ("2024-01-01", "2024-12-31")
ZONES = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "Pacific/Apia", "UTC+01:00"]


def frame(zone: str | None = "Europe/Berlin", unit: str = "us") -> pd.DataFrame:
    rng = np.random.default_rng(11)
    seconds = rng.integers(0, 340 * 86_400, N)
    utc = pd.Series(pd.Timestamp("2024-01-10") + pd.to_timedelta(seconds, "s")).astype(
        f"datetime64[{unit}]"
    )
    utc[rng.random(N) < 0.1] = pd.NaT
    came = utc if zone is None else utc.dt.tz_localize("UTC").dt.tz_convert(zone)
    return pd.DataFrame(
        {
            "came": came,
            "left": came + pd.Timedelta("3h"),
            "plain": utc,
            "id": rng.integers(0, 800, N),
            "ward": rng.choice(["A", "B"], N),
            "sex": rng.choice(["F", "M"], N),
        }
    )


def opened(df: pd.DataFrame, **terms: Any) -> Any:
    known = {"bounds": dict.fromkeys(["came", "left", "plain"], YEAR)}
    keys = {"ward": ["A", "B", "C"], "sex": ["F", "M"]}
    return df.dp.open(1000, queries=8, keys=keys, because="a test", **{**known, **terms})


LINES = [
    "df['came'].min()",
    "df['came'].max()",
    "df['came'].mean()",
    "df['came'].median()",
    "df['came'].quantile([0.1, 0.9])",
    "df['came'].agg(['min', 'max'])",
    "df[['came', 'left']].max()",
    "df.groupby('ward')['came'].mean()",
    "df.groupby('ward')[['came', 'left']].mean()",
    "df.groupby('ward').agg(first=('came', 'min'), n=('came', 'size'), plain=('plain', 'mean'))",
    "df.groupby(['ward', 'sex'])['left'].median()",
    "df.groupby('ward', as_index=False)['came'].mean()",
    "df.pivot_table(values='came', index='ward', columns='sex', aggfunc='mean')",
    "df.resample('QE', on='plain')['came'].mean()",
    "df.resample('QE', on='came')['left'].max()",
    "df['came'].dt.normalize().max()",
    "df['came'].dt.tz_convert('Asia/Tokyo').mean()",
    "df.groupby('id')['came'].max().mean()",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC"])
def test_the_same_line_gives_moments_in_the_zone_as_pandas_does(zone: str, line: str) -> None:
    df = frame(zone)
    terms = {"unit": "id", "max_rows": 16, "max_groups": 6} if "'id'" in line else {}
    wanted = eval(line, {"df": df})
    found = eval(line, {"df": opened(df, **terms)})
    if isinstance(wanted, pd.Timestamp):
        assert isinstance(found, pd.Timestamp)
        assert str(found.tz) == str(wanted.tz)
        assert abs(found - wanted) < pd.Timedelta("12D")
        return
    assert isinstance(found, type(wanted))
    if "ward" in line:  # what nobody has is there too
        found = (
            found[found["ward"] != "C"]
            if "as_index" in line
            else found[found.index.get_level_values(0) != "C"]
        )
    assert found.index.equals(wanted.index)
    columns = (
        [(found, wanted)]
        if isinstance(found, pd.Series)
        else [(found[c], wanted[c]) for c in wanted]
    )
    for got, true in columns:
        assert isinstance(got.dtype, pd.DatetimeTZDtype) == isinstance(
            true.dtype, pd.DatetimeTZDtype
        )
        if isinstance(true.dtype, pd.DatetimeTZDtype):
            assert str(got.dtype.tz) == str(true.dtype.tz)
        if true.dtype.kind == "M":
            assert ((got - true).abs() < pd.Timedelta("12D")).all()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", ZONES)
def test_the_numbers_that_noise_is_added_to_are_those_of_utc(zone: str, unit: str) -> None:
    """Bit for bit, over every change of clocks: a zone is how a moment is written."""
    read, plans = [], []
    for df in (frame(zone, unit), frame(None, unit)):
        last = "2024-12-31T00:00+00:00" if df["came"].dt.tz is not None else "2024-12-31T00:00"
        q = df.dp.open(1000, bounds={"came": ("2024-01-01T00:00" + last[16:], last)})
        plan = q.explain["came"].mean(epsilon=1)
        plans.append([(part.sensitivity, part.scale) for part in plan.parts])
        output = q["came"]._frame._selection.output("mean", q["came"], None)
        read.append(np.asarray(engine_Rows(df).array(output.expr), dtype=float))
    np.testing.assert_array_equal(*read)
    assert np.isnan(read[0]).sum() == frame(None)["came"].isna().sum()
    assert plans[0] == plans[1]


def test_an_answer_is_a_timestamp_in_the_zone_with_an_interval_there() -> None:
    p = opened(frame())
    mean = p["came"].mean(epsilon=50)
    low, high = mean.interval()
    assert type(low) is pd.Timestamp
    assert low < mean < high
    assert str(low.tz) == str(high.tz) == str(mean.tz) == "Europe/Berlin"
    assert type(mean + pd.Timedelta("1D")) is pd.Timestamp
    assert "±" in repr(mean)
    for again in (pickle.loads(pickle.dumps(mean)), copy.deepcopy(mean)):
        assert again == mean
        assert str(again.tz) == "Europe/Berlin"
        assert again.interval() == (low, high)
    assert p["came"].mean(epsilon=50) == mean  # recalled
    table = mean.dp.table()
    assert table["lower"].iloc[0] == low
    assert re.match(r"2024-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+02:00 ± ", repr(mean))
    for text in re.findall(r"2024-[^|]*", table.to_markdown()):  # with its offset, and whole
        assert abs(pd.Timestamp(text.strip()) - mean) < pd.Timedelta("1D")
    assert len(re.findall(r"\+02:00", table.to_markdown())) == 3


@pytest.mark.filterwarnings("ignore")
def test_receipts_of_tables_in_a_zone_are_read_again() -> None:
    p = opened(frame())
    answers = [
        p.groupby("ward").agg(m=("came", "mean"), n=("came", "count"), epsilon=20),
        p.groupby("ward")["came"].mean(epsilon=20),
        p.groupby("ward", as_index=False)["came"].mean(epsilon=20),
        p.agg({"came": ["mean", "median"]}, epsilon=20),
        p[["came", "plain"]].mean(epsilon=20),
        p.pivot_table(
            values="came", index="ward", columns="sex", aggfunc="mean", margins=True, epsilon=20
        ),
        p.groupby("ward")["came"].quantile([0.2, 0.4], method="tree", epsilon=20),
    ]
    for answer in answers:
        again = pickle.loads(pickle.dumps(answer))
        ends = again.dp.interval()
        assert ends.equals(answer.dp.interval())
        table = answer.dp.table()
        sides = table[["lower", "upper"]].dropna()
        assert len(sides) > 0
        assert (sides["lower"] <= sides["upper"]).all()
        assert len(table.to_markdown()) > 50
        assert "+0" in answer.to_string()
    one = answers[0]["m"]
    ends = one.dp.interval()
    assert (ends.dtypes == one.dtype).all()
    assert (ends["lower"] <= one).all()
    assert (one <= ends["upper"]).all()
    moved = answers[1].copy()
    moved.iloc[0] += pd.Timedelta("1us")  # no longer what was released
    with pytest.raises(BadValue):
        moved.dp.interval()
    mixed = answers[4].dp.interval()
    assert str(mixed.loc["came", "lower"].tz) == "Europe/Berlin"
    assert mixed.loc["plain", "lower"].tz is None


@pytest.mark.filterwarnings("ignore")
def test_columns_of_several_zones_are_shown_each_in_its_own() -> None:
    df = frame()
    df["far"] = df["came"].dt.tz_convert("Asia/Kathmandu")
    p = opened(df, bounds=dict.fromkeys(["came", "far", "plain"], YEAR))
    found = p[["came", "far"]].mean(epsilon=50)
    assert [str(v.tz) for v in found] == ["Europe/Berlin", "Asia/Kathmandu"]
    assert abs(found["came"] - found["far"]) < pd.Timedelta("6h")
    table = p.groupby("ward")[["came", "far"]].mean(epsilon=50)
    assert [str(d.tz) for d in table.dtypes] == ["Europe/Berlin", "Asia/Kathmandu"]


@pytest.mark.filterwarnings("ignore")
def test_noise_is_marked_and_left_out_as_of_other_times() -> None:
    df = frame()
    p = opened(df, show="nan")
    answer = p.groupby("ward")["came"].mean(epsilon=20)
    assert answer.isna().tolist() == [False, False, True]
    assert str(answer.dtype.tz) == "Europe/Berlin"
    shown = opened(df)
    assert repr(shown.groupby("ward")["came"].mean(epsilon=20)).count("?") >= 1
    assert p["came"].mean(epsilon=1e-6) is not None
    assert "noise" in repr(shown["came"].mean(epsilon=1e-6))


def test_whoever_has_a_moment_in_the_hour_that_is_twice_is_told_apart() -> None:
    """A rounded answer is written by the clock of its zone, where that hour is two: it is rounded as a moment."""
    utc = pd.to_datetime(["2024-10-27 00:30:00.4", "2024-10-27 01:30:00.4"] * 500).tz_localize(
        "UTC"
    )
    for moment in utc[:2]:
        df = pd.DataFrame({"t": [moment.tz_convert("Europe/Berlin")] * 400})
        q = df.dp.open(1000, bounds={"t": ("2024-10-26", "2024-10-28")}, because="an hour")
        mean = q["t"].mean(epsilon=1000)
        assert abs(mean - moment) < pd.Timedelta("10min")
        assert "±" in repr(mean)
        assert mean.dp.table().to_markdown()
        assert mean._repr_html_()
        low, high = mean.interval()
        assert low <= moment <= high


def test_bounds_have_the_zone_or_are_text() -> None:
    p = opened(frame(), bounds={})
    spellings = [
        YEAR,
        ("2024-01-01T00:00+01:00", "2024-12-31T23:59:59.999999999+01:00"),
        (
            pd.Timestamp("2024-01-01", tz="Europe/Berlin"),
            pd.Timestamp("2024-12-31 23:59:59.999999", tz="Europe/Berlin"),
        ),
        (
            pd.Timestamp("2023-12-31 23:00", tz="UTC"),
            pd.Timestamp("2024-12-31 22:59:59.999999", tz="UTC").to_pydatetime(),
        ),
    ]
    plans = [p.explain["came"].mean(bounds=pair, epsilon=1) for pair in spellings]
    assert all(plan == plans[0] for plan in plans)
    declared = opened(frame()).explain["came"].mean(epsilon=1)
    assert declared.parts == plans[0].parts
    for line, kind, text in (
        ("p['came'].mean()", MissingBounds, "first and last moment"),
        ("p['came'].std()", BadType, r"tz='Europe/Berlin'\)\)\.std\(\)"),
        (
            "p['came'].mean(bounds=('2024-03-31 02:30', '2024-12-31'))",
            BadValue,
            "is no moment, or two",
        ),
        (
            "p['came'].mean(bounds=('2024-01-01', '2024-10-27 02:30'))",
            BadValue,
            "is no moment, or two",
        ),
        ("p['came'].mean(bounds=('2024-12-31', '2024-01-01'))", BadValue, "reversed"),
        (
            "p['came'].mean(bounds=('2024-01-01', '2024-12-31T00:00+01:00'))",
            BadType,
            "both with a time zone",
        ),
        (
            "p['plain'].mean(bounds=('2024-01-01T00:00Z', '2024-12-31T00:00Z'))",
            BadType,
            "and the column does not",
        ),
        ("p['came'].mean(bounds=('0001-01-01', '2024-12-31'))", BadValue, "from 0001-01-02"),
        ("p['came'].mean(bounds=('2024-01-01', '9999-12-31'))", BadValue, "to 9999-12-30"),
    ):
        with pytest.raises(kind, match=text):
            eval(line, {"p": p})
    assert p.budget.spent == 0


@pytest.mark.parametrize(
    "kind", [pd.Timestamp, np.datetime64, lambda day: pd.Timestamp(day).to_pydatetime()]
)
def test_bounds_without_a_zone_are_refused_with_the_line_to_write(kind: Any) -> None:
    p = opened(frame(), bounds={})
    with pytest.raises(BadType, match="has the time zone Europe/Berlin") as refused:
        p["came"].mean(bounds=(kind("2024-01-01"), kind("2024-12-31")), epsilon=1)
    line = str(refused.value).partition("Write ")[2].partition(", or both")[0]
    assert eval(f"p['came'].mean({line}, epsilon=1)", {"p": p, "pd": pd}) is not None


def test_far_moments_count_as_the_ends_of_the_range() -> None:
    far = ["0001-01-01", "1800-06-01", "2024-06-01", "9999-12-31 23:59:59.999999", None]
    stamps = pd.to_datetime(far, format="ISO8601").astype("datetime64[us]").tz_localize("UTC")
    df = pd.DataFrame({"t": stamps.tolist() * 100}).astype({"t": "datetime64[us, UTC]"})
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        made = df.assign(t=df["t"].astype(f"datetime64[us, {zone}]"))
        q = made.dp.open(1000, queries=4, because=zone)
        mean = q["t"].mean(bounds=YEAR, epsilon=250)
        assert abs(mean - pd.Timestamp("2024-05-09 12:00", tz=zone)) < pd.Timedelta("6h")
        wide = q["t"].mean(bounds=("0001-01-03", "9999-12-28"), epsilon=250)
        assert wide.interval()[0] < wide < wide.interval()[1]
        assert q["t"].max(bounds=YEAR, epsilon=250) <= pd.Timestamp("2025-01-01", tz=zone)


def test_one_moment_more_moves_no_sum_further_than_the_plan_says() -> None:
    one = frame()[["came", "ward"]].head(40)
    hour = pd.Timestamp("2024-10-27 01:30", tz="UTC").tz_convert("Europe/Berlin")
    for moment in (hour, pd.NaT, pd.Timestamp("1700-01-01", tz="Europe/Berlin")):
        more = one.iloc[[0]].copy()
        more.loc[:, "came"] = moment
        report = audit.replay(
            lambda q: (q["came"].mean(), q.groupby("ward")["came"].mean(), q["came"].median()),
            one,
            pd.concat([one, more], ignore_index=True),
            epsilon=10,
            bounds={"came": YEAR},
            keys={"ward": ["A", "B"]},
        )
        assert report.ok
        assert len(report.steps) == 4  # a median and the counts around it


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize(
    "ends",
    [("1600-01-01", "2100-01-01"), ("1600-01-01", "1700-01-01"), ("1700-01-01", "2262-01-01")],
)
def test_nanoseconds_that_do_not_span_the_bounds_are_refused(
    zone: str | None, ends: tuple[str, str]
) -> None:
    fine, coarse = (frame(zone, unit)[["came"]].dropna() for unit in ("ns", "us"))
    p = fine.dp.open(100, bounds={"came": ends})
    for verb in ("mean", "median", "min"):
        with pytest.raises(BadValue, match=r"in nanoseconds, which reach .*datetime64\[us"):
            getattr(p["came"], verb)(epsilon=1)
    assert len(p.ledger) == 0
    near = p["came"].mean(
        epsilon=40, bounds=("1980-01-01", "2400-01-01")
    )  # 2262 is their last year
    low, high = near.interval(0.9999)
    assert low <= fine["came"].mean() <= high
    if ends[1] > "2024":
        low, high = (
            coarse.dp.open(100, bounds={"came": ends})["came"].mean(epsilon=90).interval(0.9999)
        )
        assert low <= coarse["came"].mean() <= high


def test_groups_of_nobody_and_frames_without_rows_are_answered() -> None:
    df = frame()
    for rows in (df.iloc[:0], df.assign(came=df["came"].where(df["came"].isna()))):
        p = opened(rows.copy())
        assert str(p["came"].mean(epsilon=1).tz) == "Europe/Berlin"
        assert len(p.groupby("ward")["came"].mean(epsilon=1)) == 3


def test_a_zone_without_a_name_has_no_answers() -> None:
    dateutil = pytest.importorskip("dateutil.tz", reason="zones that are files")
    df = pd.DataFrame(
        {"t": pd.to_datetime(["2024-01-05"]).tz_localize(dateutil.gettz("Europe/Berlin"))}
    )
    p = df.dp.open(1)
    with pytest.raises(DPError):
        p["t"].mean(bounds=YEAR)
    assert p.budget.spent == 0


def test_pictures_and_sorted_answers_say_what_they_say_of_other_times() -> None:
    answer = opened(frame()).groupby("ward")["came"].mean(epsilon=5)
    with pytest.raises(NotOffered, match="drawn as numbers"):
        answer.dp.plot()
    with pytest.raises(BadValue, match="durations have intervals as they came"):
        answer.sort_values().iloc[:2].dp.interval()


@pytest.mark.parametrize("line", ["p['came'].mean()", "p.groupby('ward')['came'].median()"])
def test_sources_in_parts_answer_alike(line: str) -> None:
    polars = pytest.importorskip("polars", reason="frames of polars are read in batches")
    df = frame()
    words: dict[str, Any] = {
        "epsilon": 1000,
        "queries": 2,
        "bounds": {"came": YEAR},
        "keys": {"ward": ["A", "B"]},
        "because": "synthetic",
    }
    found = eval(line, {"p": dpframe.open(polars.from_pandas(df), **words)})
    wanted = eval(line, {"p": df.copy().dp.open(**words)})
    near = abs(found - wanted) < pd.Timedelta("12h")
    assert near.all() if isinstance(near, pd.Series) else near
