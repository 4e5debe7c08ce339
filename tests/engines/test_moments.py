"""Times and durations give what pandas gives, in every resolution and zone; what pandas refuses to hold is null."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe._expr._parse import parse

moments = st.one_of(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)), st.none())
rows = st.lists(
    st.tuples(
        moments,
        moments,
        st.one_of(st.timedeltas(dt.timedelta(-4000), dt.timedelta(4000)), st.none()),
    ),
    min_size=1,
    max_size=9,
)


def build(cells: list[Any]) -> pd.DataFrame:
    t, s, d = zip(*cells, strict=True)
    frame = pd.DataFrame({"t": pd.Series(t, dtype="M8[us]"), "d": pd.Series(d, dtype="m8[us]")})
    frame["s"] = pd.Series(s, dtype="M8[us]").astype("M8[s]")
    frame["n"] = frame.t.astype("M8[ns]")
    frame["z"] = pd.Series(s, dtype="M8[us]").dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
    frame["e"] = frame.d.astype("m8[s]")
    frame["iso"] = frame.t.dt.strftime("%Y-%m-%d %H:%M:%S")
    frame["day"] = frame.t.dt.strftime("%d.%m.%Y")
    return frame


ONE = pd.Timedelta("1D")
PARTS = ("days_in_month", "microsecond", "nanosecond", "day_of_year", "is_leap_year", "quarter")
VALUES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "t - s": lambda f: f.t - f.s,
    "s - n": lambda f: f.s - f.n,
    "t - '2000-02-29'": lambda f: f.t - pd.Timestamp("2000-02-29"),
    "t + d": lambda f: f.t + f.d,
    "d + n": lambda f: f.d + f.n,
    "s - d": lambda f: f.s - f.d,
    "d - e": lambda f: f.d - f.e,
    "d + e": lambda f: f.d + f.e,
    "-d": lambda f: -f.d,
    "d.abs()": lambda f: f.d.abs(),
    "d / e": lambda f: f.d / f.e,
    "d / '1 day'": lambda f: f.d / ONE,
    "d // '1 day'": lambda f: f.d // ONE,
    "d > e": lambda f: f.d > f.e,
    "d >= '1 day'": lambda f: f.d >= ONE,
    "d != '0 days'": lambda f: f.d != pd.Timedelta(0),
    "d.fillna('3 days')": lambda f: f.d.fillna(pd.Timedelta("3D")),
    "d.isna()": lambda f: f.d.isna(),
    "d if t > s else e": lambda f: f.d.where(f.t > f.s, f.e),
    "t if d > e else s": lambda f: f.t.where(f.d > f.e, f.s),
    "(t - s).dt.days": lambda f: (f.t - f.s).dt.days,
    "d.dt.total_seconds()": lambda f: f.d.dt.total_seconds(),
    "e.dt.total_seconds()": lambda f: f.e.dt.total_seconds(),
    **{
        f"d.dt.{p}": lambda f, p=p: getattr(f.d.dt, p)
        for p in ("days", "seconds", "microseconds", "nanoseconds")
    },
    **{
        f"{x}.dt.{op}('{freq}')": lambda f, x=x, op=op, freq=freq: getattr(f[x].dt, op)(freq)
        for x in "tsnde"
        for op in ("floor", "ceil", "round")
        for freq in ("D", "h", "15min", "7s")
    },
    "z.dt.floor('D')": lambda f: f.z.dt.floor("D"),
    "z.dt.normalize()": lambda f: f.z.dt.normalize(),
    "z.dt.tz_convert('Asia/Tokyo').dt.hour": lambda f: f.z.dt.tz_convert("Asia/Tokyo").dt.hour,
    "z.dt.tz_localize(None)": lambda f: f.z.dt.tz_localize(None),
    "z.dt.tz_convert(None)": lambda f: f.z.dt.tz_convert(None),
    "t.dt.tz_localize('UTC')": lambda f: f.t.dt.tz_localize("UTC"),
    "t.dt.tz_localize('America/New_York', ambiguous='NaT', nonexistent='NaT')": lambda f: (
        f.t.dt.tz_localize("America/New_York", ambiguous="NaT", nonexistent="NaT")
    ),
    **{
        f"{x}.dt.to_period('{freq}')": lambda f, x=x, freq=freq: f[x].dt.to_period(freq)
        for x in "tsn"
        for freq in ("Y", "Q", "M", "W", "D", "h")
    },
    **{
        f"{x}.dt.strftime('{text}')": lambda f, x=x, text=text: f[x].dt.strftime(text)
        for x in "tsz"
        for text in ("%Y-%m", "%d %B %Y", "%a %H:%M", "week %W of %G", "%j%%")
    },
    **{
        f"{x}.dt.{p}": lambda f, x=x, p=p: getattr(f[x].dt, p)
        for x in "tsnz"
        for p in (
            *PARTS,
            *(
                f"is_{part}_{end}"
                for part in ("month", "quarter", "year")
                for end in ("start", "end")
            ),
        )
    },
    **{
        f"{x}.dt.isocalendar().{p}": lambda f, x=x, p=p: f[x].dt.isocalendar()[p]
        for x in "tz"
        for p in ("year", "week", "day")
    },
    "to_datetime(iso)": lambda f: pd.to_datetime(f.iso),
    "to_datetime(day, '%d.%m.%Y')": lambda f: pd.to_datetime(f.day, format="%d.%m.%Y"),
}


def cells_of(series: Any, tz: str | None) -> list[Any]:
    """What pandas has, as the evaluator holds it: times in UTC."""
    if tz is not None and getattr(series.dt, "tz", None) is not None:
        series = series.dt.tz_convert(None)
    return [None if pd.isna(v) else plain(v) for v in series.tolist()]


def plain(v: Any) -> Any:
    if isinstance(v, pd.Timestamp | np.datetime64):
        return pd.Timestamp(v)
    return pd.Timedelta(v) if isinstance(v, pd.Timedelta | np.timedelta64 | dt.timedelta) else v


@settings(max_examples=20, deadline=None)
@given(cells=rows)
def test_a_value_is_the_one_that_pandas_makes(framed: Any, cells: list[Any]) -> None:
    frame = build(cells)
    f = framed(frame)
    middle = slice(1, len(frame) - 1)
    for text, make in VALUES.items():
        e = f.expr(text)
        found = f.cells(e)
        assert [None if v is None else plain(v) for v in found] == cells_of(make(frame), e.tz), text
        assert e.nullable or None not in found, text
        assert repr(f.cells(e, middle)) == repr(found[middle]), text


def test_where_ticks_end_there_is_a_null(framed: Any) -> None:
    last, first = np.datetime64(2**63 - 1, "ns"), np.datetime64(-(2**63) + 1, "ns")
    f = framed(
        pd.DataFrame(
            {
                "a": pd.Series([last, first, last], dtype="M8[ns]"),
                "b": pd.Series([first, last, last], dtype="M8[ns]"),
                "s": pd.Series([2**62, -(2**62), 0], dtype="M8[s]"),
            }
        )
    )
    assert f.vector(f.expr("a - b")).values.view("i8").tolist() == [-(2**63), -(2**63), 0]
    assert f.cells("(a - b).dt.days") == [None, None, 0]
    assert f.cells("(s - a).isna()") == [True, True, False]
    assert f.cells("(a if s > b else s).isna()")[1:] == [True, False]
    assert f.cells("(a + '1 day').isna()") == [True, False, True]
    for text in (
        "a.dt.ceil('D')",
        "a.dt.floor('7s')",
        "a.dt.round('h')",
        "a.dt.to_period('M')",
        "s.dt.to_period('Y')",
    ):
        f.cells(text)  # raises for no cell
    for text in (
        "s.dt.strftime('%Y')",
        "s.dt.tz_localize('Europe/Berlin')",
        "s.dt.isocalendar().week",
        "a.dt.date",
    ):
        f.cells(text)


def test_texts_that_are_no_dates_are_null(framed: Any) -> None:
    texts = [
        "2024-02-29",
        "2023-02-29",
        "29.2.2024",
        "",
        None,
        "2024-01-31 12:30",
        "2024-01-01T00:00:00+01:00",
        "9" * 500,
    ]
    f = framed(pd.DataFrame({"x": pd.Series(texts, dtype="str")}))
    iso = [v is not None for v in f.cells("to_datetime(x)")]
    assert iso == [True, False, False, False, False, True, False, False]
    dotted = [v is not None for v in f.cells("to_datetime(x, '%d.%m.%Y')")]
    assert dotted == [False, False, True, False, False, False, False, False]


SPANS = [
    ("2025-01-01", "2025-12-31 23:59:59.999999"),
    ("2024-12-30", "2025-01-05"),
    ("2025-03-29 12:00", "2025-03-31"),
    ("2024-10-26", "2024-10-28"),
    ("1999-12-31 23:00", "2000-01-01 01:00"),
]
BOUNDED = [
    *(
        "t.dt.year",
        "t.dt.isocalendar().year",
        "t.dt.isocalendar().week",
        "(t - u).dt.days",
        "(t - u).dt.total_seconds()",
    ),
    *(
        "(t - u) / '1 h'",
        "(t - u) // '7 h'",
        "-(t - u) / '1 day'",
        "(t.dt.floor('D') - u).dt.days",
        "(t - u).abs() / '1 s'",
    ),
    *(
        "(t.dt.normalize() - u.dt.ceil('h')).dt.total_seconds()",
        "(t + '3 days' - u).dt.days",
        "t.dt.days_in_month",
    ),
    "(t if t > u else u).dt.year",
]
LISTED = [
    *(
        "t.dt.year",
        "t.dt.date",
        "t.dt.normalize()",
        "t.dt.floor('D')",
        "t.dt.dayofyear",
        "t.dt.isocalendar().week",
    ),
    *(
        "t.dt.to_period('M')",
        "t.dt.to_period('W')",
        "t.dt.to_period('h')",
        "t.dt.strftime('%Y-%m')",
        "t.dt.strftime('%A %d')",
    ),
    *(
        "t.dt.day_name()",
        "t.dt.month",
        "t.dt.days_in_month",
        "'late' if t > '2025-01-03' else 'early'",
    ),
]


@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "America/New_York", "Pacific/Auckland"])
@pytest.mark.parametrize("span", SPANS, ids=lambda s: s[0])
def test_bounds_and_keys_follow_from_the_range(
    framed: Any, span: tuple[str, str], zone: str | None
) -> None:
    low, high = (pd.Timestamp(end, tz=zone).as_unit("us") for end in span)
    steps = np.linspace(low.value, high.value, 800).astype("int64") // 1000 * 1000
    times = pd.Series(
        pd.to_datetime(np.clip(steps, low.as_unit("ns").value, high.as_unit("ns").value))
    )
    times = (
        times.astype("M8[us]") if zone is None else times.dt.tz_localize("UTC").dt.tz_convert(zone)
    )
    if zone is None:
        low, high = low.tz_localize(None), high.tz_localize(None)
        times = times.clip(low, high)
    frame = pd.DataFrame(
        {"t": times, "u": times[::-1].to_numpy() if zone is None else times[::-1].array}
    )
    f = framed(frame)
    ends = tuple(int(v.as_unit("ns").value) for v in (frame.t.min(), frame.t.max()))

    def known(column: Any) -> Any:
        return ends

    for text in BOUNDED:
        e = f.expr(text)
        pair = e.interval(known)
        assert pair is not None, text
        assert all(pair[0] <= v <= pair[1] for v in f.cells(e) if v is not None), (text, pair)
    for text in LISTED:
        e = f.expr(text)
        listed = e.members(lambda column: None, known)
        assert listed is not None, text
        values = {pd.Timestamp(v) if e.kind == "time" else v for v in f.cells(e) if v is not None}
        plain_keys = {_naive(v) if e.kind == "time" else v for v in listed}
        assert values <= plain_keys, (text, values - plain_keys)
        assert len(set(listed)) == len(listed)


def _naive(v: Any) -> pd.Timestamp:
    stamp = pd.Timestamp(v)
    return stamp if stamp.tz is None else stamp.tz_convert(None)


REFUSED = {
    "t + t": "has no value",
    "t - 3": "has no value",
    "d * 2": "pd.Timedelta",
    "t.dt.floor('ME')": "to_period",
    "t.dt.to_period('ns')": "'M'",
    "t.dt.strftime('%Q')": "%Q",
    "t.dt.strftime('%')": "does not offer",
    "t.dt.tz_convert('UTC')": "tz_localize",
    "z.dt.tz_localize('UTC')": "tz_convert",
    "t.dt.tz_localize('Nowhere')": "no time zone",
    "t - z": "time zone",
    "d > 3": "pd.Timedelta",
    "d.isin(['1 day'])": "duration",
    "d > 'soon'": "no duration",
    "d.dt.year": "timestamps",
    "t.dt.days": "not offered",
    "t.dt.isocalendar().month": "year, week, day",
    "iso.dt.year": "timestamps",
    "to_datetime(iso, '%Q')": "%Q",
    "d + 1": "has no value",
    "log(d)": "total_seconds",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_value_is_refused_by_kind(framed: Any, text: str) -> None:
    f = framed(build([(None, None, None)]))
    with pytest.raises(Exception, match=REFUSED[text]) as caught:
        parse(text, f.columns, {}.__getitem__)
    assert type(caught.value).__module__.startswith("dpframe")
