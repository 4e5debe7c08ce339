"""An argument that cannot be meant is refused where it is given: no error comes after the debit, and none of Python's own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe import DPError

REFUSED: dict[str, Callable[[Any], Any]] = {
    "a zone that is a number": lambda p: p["t"].dt.tz_localize(0),
    "another zone that is a number": lambda p: p["z"].dt.tz_convert(3600),
    "a zone that is a truth": lambda p: p["t"].dt.tz_localize(True),
    "a zone that is a path": lambda p: p["t"].dt.tz_localize("../UTC"),
    "a pattern with half of a character": lambda p: p["s"].str.contains("\ud800"),
    "an extract with half of a character": lambda p: p["s"].str.extract("(\ud800)"),
    "a count with half of a character": lambda p: p["s"].str.count("\ud800"),
    "ends that are no word": lambda p: p["d"].between("-1h", "1h", pd.NA),
    "ends that are an array": lambda p: p["d"].between("-1h", "1h", np.array([1, 2])),
    "a null end": lambda p: p["d"].between("-1h", pd.NA),
    "a null edge": lambda p: pd.cut(p["x"], [np.nan]),
    "a null edge with the lowest": lambda p: pd.cut(p["x"], [np.nan, 1], include_lowest=True),
    "no edge": lambda p: pd.cut(p["x"], [], include_lowest=True),
    "a null case": lambda p: p["s"].str.replace("a", "b", case=pd.NA),
    "a null regex": lambda p: p["s"].str.replace("a", "b", regex=pd.NA),
    "a null unit": lambda p: p["t"].dt.as_unit(pd.NA),
    "a null format": lambda p: pd.to_datetime(p["s"], format=pd.NA),
    "a date before the years of zones": lambda p: p["z"] > "\\1",
    "a moment beyond the years of zones": lambda p: (
        p["z"] > pd.Timestamp(np.datetime64(2**40, "s")).tz_localize("UTC")
    ),
    "a key that is a dict": lambda p: p.replace({"s": {"a": {}}}),
    "a width below all": lambda p: p["s"].str.ljust(-(10**30)),
}


@pytest.fixture
def p() -> Any:
    moments = pd.Series(pd.date_range("2024-01-01", periods=3))
    columns = {
        "t": moments,
        "z": moments.dt.tz_localize("Europe/Berlin"),
        "d": moments - moments[0],
    }
    frame = pd.DataFrame(
        {**columns, "s": pd.Series(["a", "b", None], dtype="str"), "x": [1.0, 2.0, np.nan]}
    )
    return frame.dp.open(1000, because="an example")


@pytest.mark.parametrize("name", REFUSED)
def test_an_argument_is_refused_where_it_is_given(p: Any, name: str) -> None:
    with pytest.raises(DPError):
        REFUSED[name](p)
    assert p.budget.spent == 0


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", UTC, timezone(timedelta(hours=2))], ids=str
)
def test_a_zone_by_its_name_or_as_an_object_of_python_is_taken(p: Any, zone: Any) -> None:
    assert p[p["t"].dt.tz_localize(zone).dt.year == 2024].count(epsilon=900) == 3
