"""What is found comes back whole: every text is a key that can be asked about, and no key makes an error after the debit."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from dpframe import BadValue, Refused
from dpframe._answers.foundkeys import read_keys
from dpframe._cells.texts import key_of, text_of
from dpframe._expr import Column


def labels(cells, each=400):
    found = np.empty(len(cells) * each, dtype=object)
    found[:] = [cell for cell in cells for _ in range(each)]
    return pd.DataFrame({"s": pd.Series(found, dtype=object), "x": 1.0})


def opened(frame):
    return frame.dp.open(
        20,
        delta=1e-6,
        bounds={"x": (0, 1)},
        accountant="pure",
        because="many questions of one frame",
    )


@pytest.mark.parametrize("dtype", ["str", object, "category"])
@pytest.mark.parametrize(
    "cells", [["a\0", "b"], ["a\0", "a"], ["\0", "\0\0", ""], ["a\0b\0", "ü\0"]]
)
def test_keys_keep_their_trailing_nuls(cells, dtype):
    frame = labels(cells).astype({"s": dtype})
    p = opened(frame)
    assert sorted(p.unique("s", epsilon=2)) == sorted(cells)
    sizes = p.groupby("s").size(epsilon=4)
    assert sorted(sizes.index) == sorted(cells)
    assert sizes.between(380, 420).all()
    listed = p.value_counts("s", keys=p.unique("s", epsilon=2), epsilon=4)
    assert sorted(listed.index) == sorted(cells)
    assert listed.between(380, 420).all()


def test_keys_that_end_in_nuls_come_back_from_a_ledger(tmp_path):
    words = {
        "ledger": str(tmp_path / "l.db"),
        "population": "v",
        "delta": 1e-6,
        "accountant": "pure",
        "because": "a test",
    }
    p = labels(["a\0", "a"]).dp.open(20, **words)
    found, sizes = p.unique("s", epsilon=2), p.groupby("s").size(epsilon=4)
    p.close()
    again = labels(["a\0", "a"]).dp.open(20, **words)
    pd.testing.assert_index_equal(again.unique("s", epsilon=2), found)
    pd.testing.assert_series_equal(again.groupby("s").size(epsilon=4), sizes)
    assert len(again.ledger) == 2
    again.close()


def test_one_long_key_takes_its_own_room_only():
    """An array of a fixed width would take a gigabyte: so many keys of the length of the longest."""
    cells = ["x" * 500_000, *(f"k{i}" for i in range(500))]
    found = opened(labels(cells, 30)).unique("s", epsilon=4)
    assert max(map(len, found)) == 500_000
    assert len(found) > 400
    table = opened(labels(cells, 30)).groupby("s").size(epsilon=4)
    assert table.index.str.len().max() == 500_000


ODD = {
    "intervals closed on different sides": [pd.Interval(0, 1), pd.Interval(5, 6, "left")],
    "intervals of times": [pd.Interval(pd.Timestamp("2020"), pd.Timestamp("2021")), "a"],
    "intervals of large whole numbers": [pd.Interval(2**60, 2**60 + 1), pd.Interval(1, 2)],
    "intervals without an end": [pd.Interval(-np.inf, 0), pd.Interval(0, np.inf)],
    "times beyond 9999": [np.datetime64(10**9, "Y"), pd.Timestamp("2020")],
    "times before the year 1": [np.datetime64(-5000, "Y"), pd.Timestamp("2020")],
    "times of several zones": [
        pd.Timestamp("2020", tz="Asia/Tokyo"),
        pd.Timestamp("2021"),
        pd.Timestamp("2022", tz="UTC"),
    ],
    "times of local mean time": [
        pd.Timestamp("1850-01-01", tz="Europe/Berlin"),
        pd.Timestamp("2020", tz="UTC"),
    ],
    "numbers of all kinds": [2**63, -(2**63), 2**200, 0.5, Decimal("1e-30"), -0.0, 1e300],
    "equal keys": [1, True, 1.0, "1", Decimal(1), 0, False],
    "no scalars": [(1, 2), [3], {"a": 1}, "a", object()],
    "half characters": ["\ud800", "a"],
    "bytes": [b"a", b"\xff", "a"],
    "nulls": [None, np.nan, pd.NaT, pd.NA, "a"],
    "durations": [pd.Timedelta(1, "s"), "a"],
}


@pytest.mark.parametrize("cells", ODD.values(), ids=list(ODD))
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("chosen", [False, True])
def test_odd_cells_are_keys_or_none_but_never_an_error(cells, several, chosen):
    p = opened(labels(cells).assign(t="one"))
    by = ["s", "t"] if several else "s"
    found = p.unique(by, epsilon=2)
    assert p.unique(by, epsilon=2).equals(found)
    used = p.budget.fraction
    assert used > 0
    answer = (
        p.groupby(by)["x"].median(epsilon=4)
        if chosen and len(found)
        else p.groupby(by).size(epsilon=4)
    )
    assert answer.index.equals(found)
    assert len(set(map(repr, found))) == len(found)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo", "America/New_York"])
def test_times_at_the_end_of_their_range_are_keys(unit, zone):
    """Keys are times of the years 1 to 9999 that are two days from the ends of the unit, since zones move them."""
    day = int(np.timedelta64(1, "D") / np.timedelta64(1, unit))
    least, most = max(-719_161 * day, -(2**63) + 2 * day), min(2_932_895 * day, 2**63 - 2 * day)
    ticks = [-(2**63) + 2, least - 1, least, 0, most, most + 1, 2**63 - 1]
    column = pd.Series(np.array(ticks).astype(f"M8[{unit}]").repeat(400))
    if zone is not None:
        column = column.dt.tz_localize("UTC").dt.tz_convert(zone)
    p = pd.DataFrame({"s": column}).dp.open(20, delta=1e-6, accountant="pure", because="a test")
    found = p.unique("s", epsilon=2)
    assert found.dtype == column.dtype
    assert found.asi8.tolist() == ticks[2:5]
    assert p.groupby("s").size(epsilon=2).between(380, 420).all()
    assert p.value_counts("s", keys=found, epsilon=2).between(380, 420).all()


@pytest.mark.parametrize("cells", ODD.values(), ids=list(ODD))
def test_every_cell_that_has_a_text_is_its_key(cells):
    for cell in cells:
        text = text_of(cell)
        if text is not None:
            assert key_of(text) == cell


def test_first_of_keys_that_are_equal_in_python_stays_with_its_count():
    column = Column.of(0, "s", np.dtype(object))
    texts = np.array(["b0", "b1", "n0", "n1", "sa"], dtype=object)
    found = read_keys(texts, [(column, "s")])
    assert list(found.index) == [False, True, "a"]
    assert found.places.tolist() == [0, 1, 4]


@pytest.mark.parametrize(
    "ask",
    [lambda p: p.unique("id"), lambda p: p.unique(["id", "g"]), lambda p: p.value_counts("id"), lambda p: p.argmax("id"),
     lambda p: p.top("id", 2), lambda p: p["id"].unique()],
)  # fmt: skip
def test_what_names_a_person_is_not_searched(ask):
    frame = pd.DataFrame({"id": np.arange(3000) // 3, "g": np.arange(3000) % 2, "x": 1.0})
    words = {"unit": "id", "max_rows": 2, "max_groups": 2, "bounds": {"x": (0, 1)}}
    p = frame.dp.open(3, delta=1e-6, accountant="zcdp", **words)
    with pytest.raises(BadValue, match=r"p\.nunique\('id'\)"):
        ask(p)
    assert len(p.ledger) == 0
    assert p.nunique("id", epsilon=0.4) == pytest.approx(1000, abs=60)  # the advice is good


def test_groups_by_the_person_are_steps_within_a_person_and_find_no_keys():
    frame = pd.DataFrame({"id": np.arange(3000) // 3, "g": np.arange(3000) % 2, "x": 1.0})
    p = frame.dp.open(3, delta=1e-6, unit="id", max_rows=2, max_groups=2, bounds={"x": (0, 1)})
    assert type(p.groupby("id")).__name__ == "PersonGroupBy"
    assert p.query("x > 0").groupby("id")["x"].mean().name == "x"
    assert p.explain.groupby("id").size().mean(bounds=(0, 2)).epsilon > 0
    with pytest.raises(Refused, match="who a row belongs to"):
        p.groupby(["id", "g"]).size()
    with pytest.raises(BadValue, match=r"p\.nunique\('id'\)"):
        p.groupby(["id", "g"], keys={"g": [0, 1]}).size()
    assert len(p.ledger) == 0
    assert p.budget.spent == 0


def test_of_several_columns_that_name_a_person_one_alone_may_be_searched():
    frame = pd.DataFrame({"clinic": np.arange(6000) % 3, "no": np.arange(6000) // 3, "x": 1.0})
    p = frame.dp.open(3, delta=1e-6, unit=["clinic", "no"], max_rows=1, max_groups=1)
    assert list(p.unique("clinic")) == [0, 1, 2]
    with pytest.raises(BadValue, match="name the person"):
        p.unique(["no", "clinic"])


def test_listed_keys_of_what_names_a_person_are_the_owners_word():
    frame = pd.DataFrame({"id": np.arange(300) // 3})
    p = frame.dp.open(3, delta=1e-6, unit="id", max_rows=3, max_groups=1, accountant="zcdp")
    assert len(p.value_counts("id", keys=[1, 2], epsilon=0.4)) == 2


@pytest.mark.parametrize("by", ["s", ["s", "t"]])
def test_arguments_are_checked_before_anything_is_charged(by):
    p = opened(labels(["a", "b"]).assign(t="one"))
    for ask in (
        lambda g: g["nope"],
        lambda g: g["x"].mean(bounds=(1, 0)),
        lambda g: g.median("t"),
        lambda g: g.agg(epsilon=1),
        lambda g: g["x"].sum(epsilons=1),
        lambda g: g["x"].mean(mechanism="exponential"),
        lambda g: g["x"].quantile([0.5, 2]),
    ):
        with pytest.raises(Exception):  # noqa: B017, PT011  (of whatever kind: it is the debit that counts)
            ask(p.groupby(by))
    with pytest.raises(BadValue):
        p.groupby(["s", "t"], dropna=False)
    assert len(p.ledger) == 0
    sizes = p.groupby(by, sort=True).size(epsilon=1)
    assert sizes.index.is_monotonic_increasing
