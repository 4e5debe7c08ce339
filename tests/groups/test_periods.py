"""Periods of time: pandas' own labels, bins and freq for a frame that spans the declared range, and exact counts."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe._groups import periods as _times

SURE = 50  # an epsilon at which noise is zero but once in 10^20 times
FREQS = [
    "D",
    "2D",
    "5D",
    "W",
    "W-WED",
    "2W",
    "MS",
    "ME",
    "BME",
    "BMS",
    "SMS",
    "QS",
    "QE",
    "QE-FEB",
    "BQE",
    "YS",
    "YE",
    "BYE",
    "B",
]
CLOCKS = ["h", "7h", "15min", "90min", "6h", "12h"]
RANGES = [
    ("2024-01-01", "2024-12-31"),
    ("2023-12-31", "2024-03-01"),
    ("2024-02-29", "2024-02-29"),
    ("2024-01-14", "2024-03-30"),
]


def spread(first, last, n, zone=None, unit="us", seed=0):
    """Times within a range: every midnight, its very end, and some between."""
    begin, end = (
        pd.Timestamp(first),
        pd.Timestamp(last) + pd.Timedelta(days=1) - pd.Timedelta("1us"),
    )
    ticks = np.random.default_rng(seed).integers(0, (end - begin) // pd.Timedelta("1us"), n)
    times = pd.DatetimeIndex(
        [*pd.date_range(begin, end, freq="D"), *(begin + pd.to_timedelta(ticks, "us")), end]
    )
    times = times.as_unit(unit)
    return (
        times
        if zone is None
        else times.tz_localize(zone, ambiguous=True, nonexistent="shift_forward")
    )


def asked(times, first, last, **words):
    frame = pd.DataFrame({"t": times, "x": 1.0})
    p = frame.dp.open(1000, bounds={"t": (first, last), "x": (0, 2)})
    return frame, p.resample(on="t", **words)


def expected(frame, rule, words):
    """pandas' counts, without the period it adds after a range that ends with the last moment of a day."""
    found = frame.resample(rule, on="t", **words).size()
    while found.iloc[-1] == 0:
        found = found.iloc[:-1]
    return found


@pytest.mark.parametrize("rule", FREQS)
@pytest.mark.parametrize("pair", RANGES)
def test_periods_of_days_are_those_of_pandas(rule, pair):
    for closed, label in [(None, None), ("left", "right"), ("right", "left")]:
        words = {"closed": closed, "label": label}
        frame, groups = asked(spread(*pair, 40), *pair, rule=rule, **words)
        answer = groups.size(epsilon=SURE)
        pd.testing.assert_series_equal(pd.Series(answer), expected(frame, rule, words))
        assert answer.index.freq == expected(frame, rule, words).index.freq


@pytest.mark.parametrize("rule", CLOCKS)
def test_periods_of_the_clock_are_those_of_pandas(rule):
    for closed, zone in itertools.product(["left", "right"], [None, "America/New_York"]):
        words = {"closed": closed}
        first, last = "2024-03-09", "2024-03-12"  # with a day of 23 hours
        frame, groups = asked(spread(first, last, 60, zone), first, last, rule=rule, **words)
        pd.testing.assert_series_equal(
            pd.Series(groups.size(epsilon=SURE)), expected(frame, rule, words)
        )


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "UTC"])
@pytest.mark.parametrize("rule", ["D", "W", "MS", "ME", "QE", "YE", "h"])
def test_zones_have_their_own_midnights(zone, rule):
    pair = ("2024-02-25", "2024-04-03")
    frame, groups = asked(spread(*pair, 60, zone), *pair, rule=rule)
    pd.testing.assert_series_equal(pd.Series(groups.size(epsilon=SURE)), expected(frame, rule, {}))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("rule", ["ME", "D", "MS", "h"])
def test_any_unit_counts_its_own_ticks(unit, rule):
    pair = ("2024-01-31", "2024-03-01")
    frame, groups = asked(spread(*pair, 60, unit=unit), *pair, rule=rule)
    pd.testing.assert_series_equal(pd.Series(groups.size(epsilon=SURE)), expected(frame, rule, {}))


def test_a_wrong_side_is_noticed():
    """The twin: periods that take their edges from the other side do not count as pandas does."""
    pair = ("2024-01-01", "2024-03-31")
    for rule, words in (("D", {}), ("D", {"closed": "right"}), ("ME", {})):
        frame, groups = asked(spread(*pair, 40), *pair, rule=rule, **words)
        groups._selection.by[0].periods.side = (
            "left" if groups._selection.by[0].periods.side == "right" else "right"
        )
        assert groups.size(epsilon=SURE).tolist() != expected(frame, rule, words).tolist()
        _times._known_periods.cache_clear()


def test_grouper_is_the_same_and_goes_with_other_keys():
    frame = pd.DataFrame({"t": spread("2024-01-01", "2024-03-31", 50), "x": 1.0})
    frame["state"] = np.where(np.arange(len(frame)) % 3 == 0, "CA", "NY")
    p = frame.dp.open(
        1000, bounds={"t": ("2024-01-01", "2024-03-31"), "x": (0, 2)}, keys={"state": ["NY", "CA"]}
    )
    grouper = pd.Grouper(key="t", freq="ME")
    pd.testing.assert_series_equal(
        p.groupby(grouper).size(epsilon=SURE), p.resample("ME", on="t").size(epsilon=SURE)
    )
    both = p.groupby([grouper, "state"]).size(epsilon=SURE)
    exact = frame.groupby([grouper, "state"]).size()
    assert both.to_dict() == exact.to_dict()
    assert both.index.names == ["t", "state"]
    assert list(both.index[:2].get_level_values("state")) == ["NY", "CA"]
    turned = p.groupby(["state", grouper])["x"].count(epsilon=SURE)
    assert turned.to_dict() == frame.groupby(["state", grouper])["x"].count().to_dict()
    flat = p.groupby(grouper, as_index=False).agg(n=("x", "size"), epsilon=SURE)
    assert flat["t"].tolist() == list(both.index.levels[0])
    rest = p.groupby([grouper, "state"], keys=["CA"], other={"state": "else"}).size(epsilon=SURE)
    assert rest.sum() == len(frame)


def test_pivot_tables_have_periods_too():
    frame = pd.DataFrame({"t": spread("2024-01-01", "2024-03-31", 50), "x": 1.0})
    frame["state"] = np.where(np.arange(len(frame)) % 3 == 0, "CA", "NY")
    p = frame.dp.open(
        1000, bounds={"t": ("2024-01-01", "2024-03-31"), "x": (0, 2)}, keys={"state": ["CA", "NY"]}
    )
    grouper = pd.Grouper(key="t", freq="ME")
    table = p.pivot_table("x", grouper, "state", aggfunc="count", epsilon=SURE)
    pd.testing.assert_frame_equal(
        pd.DataFrame(table),
        frame.pivot_table("x", grouper, "state", aggfunc="count"),
        check_freq=False,
    )
    across = p.crosstab("state", grouper, margins=True, epsilon=SURE)
    assert across["All"].tolist() == [*table.sum().tolist(), len(frame)]
    with pytest.raises(dpframe.BadType, match="for groupby"):
        p.value_counts(grouper)


def test_other_verbs_answer_by_period():
    frame = pd.DataFrame(
        {"t": pd.to_datetime(["2024-01-05", "2024-01-06", "2024-03-31"]), "x": [1.0, 2.0, 3.0]}
    )
    p = frame.dp.open(1000, bounds={"t": ("2024-01-01", "2024-03-31"), "x": (0, 4)})
    months = p.resample("ME", on="t")
    pd.testing.assert_series_equal(
        months["x"].sum(epsilon=SURE).round(),
        frame.resample("ME", on="t")["x"].sum(),
        check_series_type=False,
    )
    table = months.agg(n=("x", "size"), s=("x", "sum"), epsilon=SURE)
    assert table["n"].tolist() == [2, 0, 1]
    assert months["x"].median(epsilon=SURE).index.equals(table.index)
    lower = months.size(epsilon=SURE).dp.interval()["lower"]
    assert lower.tolist() == [2, 0, 1]


def test_rows_outside_the_range_and_nulls_are_in_no_period():
    times = pd.to_datetime(
        ["2023-12-31 23:59:59", "2024-01-01", "2024-01-31 23:59:59", "2024-02-01", None],
        format="mixed",
    )
    p = pd.DataFrame({"t": times}).dp.open(1000, bounds={"t": ("2024-01-01", "2024-01-31")})
    assert p.resample("ME", on="t").size(epsilon=SURE).tolist() == [2]
    assert p.resample("YE", on="t").size(epsilon=SURE).tolist() == [2]
    noon = p.resample("D", on="t", bounds=("2024-01-01", "2024-01-31 12:00")).size(epsilon=SURE)
    assert (len(noon), noon.sum()) == (31, 1)  # a time of day is meant as it stands
    wide = p.resample("YE", on="t", bounds={"t": ("2023-01-01", "2024-12-31")}).size(epsilon=SURE)
    assert wide.tolist() == [1, 3]


def test_years_that_have_no_nanoseconds():
    times = pd.DatetimeIndex(np.array(["1500-06-01", "2900-01-01", "2900-12-31"], dtype="M8[s]"))
    p = pd.DataFrame({"t": times}).dp.open(1000, bounds={"t": ("1500-01-01", "2900-12-31")})
    found = p.resample("100YS", on="t").size(epsilon=SURE)
    assert found.sum() == 3
    assert found.iloc[0] == 1


def test_computed_times_take_bounds_with_the_question():
    frame = pd.DataFrame(
        {"t": pd.to_datetime(["2024-01-05 10:00", "2024-02-06 11:00"]).as_unit("ns")}
    )
    p = frame.dp.open(1000, bounds={"t": ("2024-01-01", "2024-02-29")}).assign(
        day=lambda q: q["t"].dt.normalize()
    )
    with pytest.raises(dpframe.MissingBounds, match="'day' needs a public first and last moment"):
        p.resample("ME", on="day")
    found = p.resample("ME", on="day", bounds=("2024-01-01", "2024-02-29"), closed="right").size(
        epsilon=SURE
    )
    assert found.tolist() == [1, 1]
    assert (
        p.rename(columns={"t": "when"}).resample("MS", on="when").size(epsilon=SURE).index.name
        == "when"
    )


def test_zoned_columns_of_arrow():
    pa = pytest.importorskip("pyarrow")
    times = spread("2024-03-01", "2024-04-02", 30, "Europe/Berlin")
    column = pd.Series(times).astype(pd.ArrowDtype(pa.timestamp("us", tz="Europe/Berlin")))
    p = pd.DataFrame({"t": column}).dp.open(1000, bounds={"t": ("2024-03-01", "2024-04-02")})
    exact = expected(pd.DataFrame({"t": times}), "W", {})
    assert p.resample("W", on="t").size(epsilon=SURE).tolist() == exact.tolist()


def test_people_are_bounded_by_period():
    rows = pd.DataFrame({"id": [1] * 12, "t": pd.date_range("2024-01-15", periods=12, freq="MS")})
    p = rows.dp.open(
        1000, unit="id", max_rows=1, max_groups=3, bounds={"t": ("2024-01-01", "2025-01-31")}
    )
    with pytest.warns(dpframe.PrivacyWarning, match="in at most 3 of 13 groups"):
        assert p.resample("ME", on="t").size(epsilon=300).sum() == 3


WRONG = {
    "no bounds": (lambda p: p.resample("ME", on="other"), dpframe.MissingBounds, "open\\(..., bounds="),
    "no on": (lambda p: p.resample("ME"), dpframe.BadType, "on="),
    "a number": (lambda p: p.resample("ME", on="x"), dpframe.BadType, "periods need times"),
    "nonsense": (lambda p: p.resample("nonsense", on="t"), dpframe.BadValue, "nonsense"),
    "a freq of three": (lambda p: p.resample(3, on="t"), dpframe.BadType, "frequency"),
    "no prefix": (lambda p: p.resample(pd.DateOffset(months=2), on="t"), dpframe.BadValue, "pandas knows no"),
    "no freq": (lambda p: p.resample(None, on="t"), dpframe.BadType, "frequency"),
    "backwards": (lambda p: p.resample("-1D", on="t"), dpframe.BadValue, "forward"),
    "zero": (lambda p: p.resample("0D", on="t"), dpframe.BadValue, "forward"),
    "too many": (lambda p: p.resample("ns", on="t"), dpframe.BadValue, "more than"),
    "closed": (lambda p: p.resample("ME", on="t", closed="both"), dpframe.BadValue, "closed"),
    "label": (lambda p: p.resample("ME", on="t", label="middle"), dpframe.BadValue, "label"),
    "origin": (lambda p: p.resample("2D", on="t", origin="epoch"), dpframe.NotOffered, "origin"),
    "offset": (lambda p: p.resample("2D", on="t", offset="1h"), dpframe.NotOffered, "offset"),
    "level": (lambda p: p.resample("2D", on="t", level=0), dpframe.NotOffered, "level"),
    "reversed": (lambda p: p.resample("D", on="t", bounds=("2024-02-01", "2024-01-01")), dpframe.BadValue, "reversed"),
    "a zone": (lambda p: p.resample("D", on="t", bounds=("2024-02-01T00Z", "2024-03-01T00Z")), dpframe.BadType, "time zone"),
    "three bounds": (lambda p: p.resample("D", on="t", bounds=(1, 2, 3)), dpframe.BadType, "pair"),
    "no key": (lambda p: p.groupby(pd.Grouper(freq="ME")), dpframe.BadType, "key="),
    "dropna": (lambda p: p.groupby(pd.Grouper(key="t", freq="ME", dropna=False)), dpframe.NotOffered, "null"),
    "keys": (lambda p: p.groupby(pd.Grouper(key="t", freq="ME"), keys=["a"]), dpframe.BadType, "no keys"),
    "bounds of values": (lambda p: p.groupby("x", keys=[1], bounds=(0, 1)), dpframe.BadType, "Grouper"),
    "unknown": (lambda p: p.resample("ME", on="when"), dpframe.UnknownColumn, "when"),
    "rolling": (lambda p: p.resample("ME", on="t").ffill(), dpframe.NotOffered, "different people"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_words_are_refused_and_cost_nothing(name):
    call, error, match = WRONG[name]
    times = pd.to_datetime(["2024-01-05", "2024-03-31"])
    p = pd.DataFrame({"t": times, "other": times, "x": [1, 2]}).dp.open(
        1, bounds={"t": ("2024-01-01", "2024-03-31")}
    )
    with pytest.raises(error, match=match):
        call(p)
    assert p.budget.spent == 0


def test_plans_and_ledger_tell_the_periods():
    p = pd.DataFrame({"t": pd.to_datetime(["2024-01-05"])}).dp.open(
        1, bounds={"t": ("2024-01-01", "2024-03-31")}
    )
    plan = p.explain.resample("ME", on="t").size(epsilon=0.1)
    assert plan.question == "size() by t in 3 periods of ME"
    assert (plan.groups, plan.sensitivity) == (3, 1)
    answer = p.resample("ME", on="t").size(epsilon=0.1)
    assert p.resample("ME", on="t").size(epsilon=0.1).equals(answer)  # the same question is free
    assert not p.resample("ME", on="t", label="left").size(epsilon=0.1).index.equals(answer.index)
    assert p.budget.spent == pytest.approx(0.1)  # labels are no part of a release


def test_periods_shorter_than_the_ticks_of_the_column_are_refused():
    """pandas divides by the ticks of such a period, of which there are none."""
    frame = pd.DataFrame({"t": pd.to_datetime(["1970-01-01"]).as_unit("ms")})
    p = frame.dp.open(1, bounds={"t": (pd.Timestamp(0), pd.Timestamp(0))})
    with pytest.raises(dpframe.BadValue, match="no periods of 'ns'"):
        p.resample("1ns", on="t")
    assert p.ledger.empty


NAMED = [
    (
        "resample",
        "2024-01-01",
        ("2024-01-01", "2024-03-31"),
        lambda p, name: p.resample("ME", on=name).size(),
    ),
    ("histogram", 1.0, (0, 2), lambda p, name: p.histogram(name, bins=[0, 1, 2])),
]


@pytest.mark.parametrize(("verb", "cell", "bounds", "ask"), NAMED)
def test_labels_have_the_name_of_their_own_column(verb, cell, bounds, ask):
    """1, True and 1.0 are equal, also as parts of the names of hierarchical columns: no cache takes one for another."""
    for part in (1, True, 1.0, 1):
        name = ("x", part)
        cells = pd.to_datetime([cell]) if verb == "resample" else [cell]
        frame = pd.DataFrame({name: cells, ("y", ""): [1]})
        answer = ask(frame.dp.open(1, bounds={name: bounds}), name)
        assert [type(p) for p in answer.index.name] == [str, type(part)]


@pytest.mark.parametrize("rule", ["ME", "W", "D", "6h"])
@pytest.mark.parametrize(
    "ends", [("2025-01-01 00:00Z", "2025-12-31 23:59:59Z"), ("2025-01-01", "2025-12-31")]
)
def test_a_time_in_another_zone_has_the_range_of_its_column(ends, rule):
    rng = np.random.default_rng(3)
    seconds = np.append(rng.integers(0, 365 * 86_400, 3000), [0, 365 * 86_400 - 1])
    df = pd.DataFrame({"t": pd.Timestamp("2025-01-01", tz="UTC") + pd.to_timedelta(seconds, "s")})
    p = df.copy().dp.open(1000, bounds={"t": ends})
    for zone in ("Asia/Tokyo", "America/New_York"):
        exact = df.assign(local=df["t"].dt.tz_convert(zone)).resample(rule, on="local").size()
        answer = (
            p.assign(local=p["t"].dt.tz_convert(zone)).resample(rule, on="local").size(epsilon=SURE)
        )
        assert answer.index.equals(exact.index)
        assert answer.tolist() == exact.tolist()


def test_a_time_without_a_zone_that_was_made_of_one_needs_a_range():
    df = pd.DataFrame({"t": pd.to_datetime(["2025-01-01", "2025-03-01"], utc=True)})
    p = df.dp.open(1, bounds={"t": ("2025-01-01", "2025-12-31")})
    for made in (p["t"].dt.tz_convert(None), p["t"].dt.tz_localize(None), p["t"].dt.floor("D")):
        with pytest.raises(dpframe.MissingBounds, match="first and last moment"):
            p.assign(made=made).resample("ME", on="made")
    assert p.ledger.empty
