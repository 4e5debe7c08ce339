"""Sums, counts and groups of expressions: a person with whatever cells moves the integers by no more than is declared.

The cells are those that break arithmetic: infinities, NaN, the ends of ticks, dates of the year 1 and of no year, halves of
characters, texts without end. Neither of two neighbouring frames leads to another course, error or answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe.audit import replay

LAST = np.datetime64(2**63 - 1, "ns")
PEOPLE: dict[str, dict[str, Any]] = {
    "usual": {
        "x": 3.0,
        "i": 4,
        "s": "a-b",
        "g": "F",
        "t": pd.Timestamp("2025-03-30 02:30"),
        "u": pd.Timestamp("2025-01-01"),
    },
    "null": {"x": np.nan, "i": 0, "s": None, "g": None, "t": pd.NaT, "u": pd.NaT},
    "infinite": {
        "x": np.inf,
        "i": 2**62,
        "s": "a" * 70_000,
        "g": "Z",
        "t": LAST,
        "u": np.datetime64(-(2**63) + 1, "ns"),
    },
    "negative": {
        "x": -np.inf,
        "i": -(2**62),
        "s": "",
        "g": "M",
        "t": np.datetime64(-(2**63) + 1, "ns"),
        "u": LAST,
    },
    "tiny": {
        "x": 5e-324,
        "i": -1,
        "s": "aaaa!",
        "g": "F",
        "t": pd.Timestamp("1700-01-01"),
        "u": pd.Timestamp("2200-01-01"),
    },
    "large": {
        "x": 1e308,
        "i": 10,
        "s": "9" * 400,
        "g": "M",
        "t": pd.Timestamp("2025-12-31"),
        "u": pd.Timestamp("2025-01-01"),
    },
}
TERMS: dict[str, Any] = {
    "epsilon": 1000,
    "delta": 1e-6,
    "bounds": {
        "x": (-5, 5),
        "i": (0, 9),
        "t": ("2025-01-01", "2025-12-31"),
        "u": ("2025-01-01", "2025-12-31"),
    },
    "keys": {"g": ["F", "M"]},
}


def frame(names: list[str]) -> pd.DataFrame:
    rows = [PEOPLE[name] for name in names]
    dtypes = {"x": "float64", "i": "int64", "s": "str", "g": "str", "t": "M8[ns]", "u": "M8[ns]"}
    return pd.DataFrame(
        {c: pd.Series([row[c] for row in rows], dtype=dtype) for c, dtype in dtypes.items()}
    )


def band(v: Any) -> Any:
    return "low" if v < 0 else "high" if v > 3 else "mid"


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "where": lambda p: p["x"].where(p["x"] > 0, p["i"]),
    "mask": lambda p: p["i"].mask(p["x"].isna(), 7),
    "np.select": lambda p: np.select([p["x"] > 1, p["i"] > 3], [p["x"], 2.5], default=-3),
    "exp": lambda p: np.exp(p["x"]),
    "sqrt": lambda p: np.sqrt(p["x"]),
    "log": lambda p: np.log(p["i"] + 1),
    "sign": lambda p: np.sign(p["x"]),
    "minimum": lambda p: np.minimum(p["x"], p["i"]),
    "fmax": lambda p: np.fmax(p["x"], p["i"]),
    "hypot": lambda p: np.hypot(p["x"], p["i"]),
    "days": lambda p: (p["t"] - p["u"]).dt.days,
    "hours": lambda p: (p["t"] - p["u"]).abs() / pd.Timedelta("1h"),
    "since": lambda p: (
        p["t"].dt.floor("D") + pd.Timedelta(days=3) - p["u"].dt.ceil("h")
    ).dt.total_seconds(),
    "year": lambda p: p["t"].dt.year,
    "week": lambda p: p["t"].dt.isocalendar().week,
    "zone": lambda p: p["t"].dt.tz_localize("Europe/Berlin").dt.hour,
    "a condition": lambda p: p["s"].str.match("a+") & ~p["t"].dt.is_month_start,
    "a default": lambda p: p["g"].map({"F": 1.5, "M": 2.5}, default=-1),
    "a function": lambda p: p["x"].map(lambda v: min(max(v, 0), 1) * 2),
    "replaced": lambda p: p["i"].replace({0: 5, 4: 9}),
}
LIMITED: dict[str, Callable[[Any], Any]] = {
    "count": lambda p: p["s"].str.count("a"),
    "find": lambda p: p["s"].str.find("-"),
    "split": lambda p: p["s"].str.split("-").str.len(),
    "number": lambda p: pd.to_numeric(p["s"]),
    "born": lambda p: pd.to_datetime(p["s"]).dt.year,
}
GROUPS: dict[str, Callable[[Any], Any]] = {
    "constants": lambda p: np.where(p["x"] > 0, "old", "young"),
    "traced": lambda p: p["x"].map(band),
    "joined": lambda p: p["g"] + "-" + p["g"],
    "chosen": lambda p: p["g"].where(p["g"] == "F", "other"),
    "months": lambda p: p["t"].dt.to_period("M"),
    "weeks": lambda p: p["t"].dt.to_period("W"),
    "days": lambda p: p["t"].dt.date,
    "texts": lambda p: p["t"].dt.strftime("%Y-%m"),
    "zoned days": lambda p: p["t"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo").dt.normalize(),
    "extracted": lambda p: p["s"].str.extract("([a-z])-", expand=False),
    "cut": lambda p: pd.cut(p["x"], [-5, 0, 5], include_lowest=True),
}


def found(ask: Callable[[Any], Any], person: str) -> Any:
    """The course of two frames, of which one has one person more."""
    others = ["usual", "null", "large", "usual"]
    return replay(ask, frame(others), frame([*others, person]), **TERMS)


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("name", NUMBERS)
def test_sums_of_expressions_move_by_no_more_than_their_bounds(name: str, person: str) -> None:
    make = NUMBERS[name]
    one = found(
        lambda p: (make(p).sum(epsilon=1), p.assign(new=make(p))["new"].mean(epsilon=1)), person
    )
    assert one.problems == ()
    assert one.steps


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("name", LIMITED)
def test_sums_of_texts_move_by_no_more_than_the_bounds_that_are_given(
    name: str, person: str
) -> None:
    one = found(lambda p: LIMITED[name](p).sum(bounds=(0, 2025), epsilon=1), person)
    assert one.problems == ()
    assert one.steps


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("name", GROUPS)
def test_a_person_is_in_one_group_of_an_expression(name: str, person: str) -> None:
    make = GROUPS[name]
    one = found(lambda p: p.groupby(make(p)).size(epsilon=1).tolist(), person)
    assert one.problems == ()
    assert one.steps
    assert all(step.distance <= step.sensitivity for step in one.steps)
