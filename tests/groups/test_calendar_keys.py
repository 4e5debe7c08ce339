"""Parts of dates that have few values are groups of their own: the calendar is public."""

from __future__ import annotations

import pandas as pd
import pytest

from dpframe import BadValue, MissingKeys

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
PARTS = {
    "quarter": range(1, 5),
    "month": range(1, 13),
    "day": range(1, 32),
    "dayofweek": range(7),
    "hour": range(24),
}


@pytest.fixture
def df():
    times = pd.to_datetime(
        ["2024-01-01 05:00", "2024-05-31 23:59", None, "2023-12-25 00:00", "2024-02-29 12:00"]
    )
    return pd.DataFrame({"t": times, "id": [1, 2, 3, 4, 5]})


def test_a_session_with_delta_searches_for_none_of_them(df):
    p = df.dp.open(1, delta=1e-6)
    assert p.groupby(p["t"].dt.hour).size(epsilon=0.1).index.tolist() == list(range(24))
    assert len(p.ledger) == 1


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_dates_bring_their_values(df, part):
    p = df.dp.open(1000)
    found = p.groupby(getattr(p["t"].dt, part)).size(epsilon=300)
    wanted = (
        df.groupby(getattr(df["t"].dt, {"dayofweek": "day_of_week"}.get(part, part)))
        .size()
        .reindex(PARTS[part], fill_value=0)
    )
    assert found.tolist() == wanted.tolist()
    assert found.index.tolist() == list(PARTS[part])
    assert p.declarations.empty


def test_names_stand_in_the_order_of_the_calendar(df):
    p = df.dp.open(1000)
    found = p.groupby(p["t"].dt.day_name()).size(epsilon=200)
    assert found.index.tolist() == DAYS
    assert found["Monday"] == 2
    months = p.assign(m=p["t"].dt.month_name()).value_counts("m", sort=False, epsilon=200)
    assert months.index[:3].tolist() == ["January", "February", "March"]
    assert list(p.groupby(p["t"].dt.weekday, keys=[5, 6]).size(epsilon=200).index) == [5, 6]


def test_a_key_between_two_ticks_of_a_column_equals_nothing():
    times = pd.Series(
        pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-02"]).astype("datetime64[s]")
    )
    p = pd.DataFrame({"t": times}).dp.open(1000)
    keys = [
        pd.Timestamp("2024-01-01 00:00:00.5"),
        pd.Timestamp("2024-01-02"),
        pd.Timestamp("2024-01-01 23:59:59.999999999"),
    ]
    assert p.groupby("t", keys=keys).size(epsilon=300).tolist() == [0, 2, 0]


def test_years_are_nobodys_calendar(df):
    p = df.dp.open(1)
    with pytest.raises(MissingKeys, match="year"):
        p.groupby(p["t"].dt.year)


def test_a_table_by_people_needs_a_reason(df):
    people = pd.DataFrame({"id": [1, 2], "rich": [True, False]})
    p = df.dp.open(100, unit="id", max_rows=1, max_groups=1)
    with pytest.raises(BadValue, match="names a person"):
        p.merge(people, on="id")
    with pytest.raises(BadValue, match="names a person"):
        p.assign(k="id + 0").merge(people, left_on="k", right_on="id")
    assert p.declarations.empty
    q = p.merge(people, on="id", because="a list of members of parliament")
    assert q.groupby("rich").size(epsilon=90).to_dict() == {True: 1, False: 1}
    assert p.declarations["value"].str.contains("a list of members of parliament").any()


def test_tables_say_how_keys_are_found(df):
    p = df.assign(a="x", b="y").dp.open(1)
    with pytest.raises(MissingKeys, match=r"keys=\{'a': p.unique\('a'\)\}"):
        p.crosstab("a", "b")
