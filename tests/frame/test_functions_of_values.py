"""Functions of one value become expressions, whichever way they branch; what they do beside that is refused."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import DPError

N = 40


@pytest.fixture
def df() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "x": rng.integers(0, 90, N),
            "y": np.where(rng.random(N) < 0.2, np.nan, rng.normal(0, 5, N)),
            "s": rng.choice(["Smith, Ada", "Jones, Ben", "x"], N),
            "sex": rng.choice(["F", "M"], N),
            "t": pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 300, N), "D"),
            "b": rng.random(N) < 0.5,
        }
    )


@pytest.fixture
def p(df: pd.DataFrame) -> Any:
    return df.dp.open(
        1000,
        bounds={"x": (0, 90), "y": (-30, 30), "t": ("2025-01-01", "2025-12-31")},
        keys={"sex": ["F", "M"]},
    )


def band(age: Any) -> str:
    if age < 30:
        return "young"
    elif age < 65:
        return "mid"
    return "old"


def clipped(value: Any, low: float, high: float = 10) -> Any:
    return low if value < low else high if value > high else value


FUNCTIONS: dict[str, tuple[str, Any]] = {
    "branches": ("x", band),
    "a choice": ("x", lambda v: 1 if v >= 65 and v % 2 == 0 else 0),
    "one of several": ("x", lambda v: v in (1, 20, 33) or v > 80),
    "min and max": ("x", lambda v: max(min(v, 60), 20)),
    "arithmetic": ("y", lambda v: (v * 2 + 1) / 4),
    "numpy": ("y", lambda v: np.sqrt(abs(v))),
    "np.where": ("x", lambda v: np.where(v > 40, 1.5, 0)),
    "round": ("y", lambda v: round(v, 1)),
    "text": ("s", lambda v: v.split(",")[0].strip().upper()),
    "part of a text": ("s", lambda v: "comma" if "," in v else v[0]),
    "starts": ("s", lambda v: v.startswith("S")),
    "a type": ("s", lambda v: v.lower() if isinstance(v, str) else "none"),
    "len": ("s", len),
    "str.upper": ("s", str.upper),
    "a date": ("t", lambda v: v.year * 100 + v.month),
    "a weekday": ("t", lambda v: "weekend" if v.weekday() >= 5 else "week"),
    "a text of a date": ("t", lambda v: v.strftime("%Y-%m")),
    "since": ("t", lambda v: (pd.Timestamp("2025-12-31") - v).days),
    "a bool": ("b", lambda v: "yes" if v else "no"),
    "int": ("x", float),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_the_expression_that_it_writes_down(
    df: pd.DataFrame, p: Any, name: str
) -> None:
    column, function = FUNCTIONS[name]
    for method in ("map", "apply"):
        wanted = getattr(df[column], method)(function)
        found = getattr(p[column], method)(function)
        values = wanted.dropna().unique().tolist()
        counted = p.assign(new=found).groupby("new", keys=values).size(epsilon=450)
        assert counted.round().to_dict() == wanted.value_counts().to_dict()


def test_arguments_of_apply_reach_the_function(df: pd.DataFrame, p: Any) -> None:
    found = p["y"].apply(clipped, args=(-5,), high=5)
    assert (
        abs(found.sum((-5, 5), epsilon=900) - df["y"].apply(clipped, args=(-5,), high=5).sum()) < 1
    )


def counting() -> Any:
    seen: list[int] = []

    def function(v: Any) -> Any:
        seen.append(1)
        return v + len(seen)

    return function


def turning() -> Any:
    state = {"turn": False}

    def function(v: Any) -> Any:
        state["turn"] = not state["turn"]
        return v if state["turn"] else -v

    return function


def endless(v: Any) -> Any:
    while v > 0:
        v = v - 1
    return v


def wide(v: Any) -> Any:
    return sum(1 if v > k else 0 for k in range(20))


REFUSED: dict[str, tuple[str, Any, str]] = {
    "a count": ("x", counting(), "another answer"),
    "a state": ("x", turning(), "another answer"),
    "chance": ("x", lambda v: v + random.random(), "another answer"),
    "a print": ("x", lambda v: (print("seen"), v)[1], "prints"),
    "a print of the value": ("x", lambda v: (print(v), v)[1], "nobody looks at"),
    "a dict": ("sex", lambda v: {"F": 1, "M": 2}[v], r"map\(\{...\}\)"),
    "a set": ("x", lambda v: v in {1, 2}, "isin"),
    "int": ("x", lambda v: int(v / 10), "astype"),
    "len inside": ("s", lambda v: len(v) > 3, r"str\.len"),
    "an f-string": ("s", lambda v: f"{v}!", "nobody looks at"),
    "a list": ("x", lambda v: [v], "one value"),
    "an error": ("x", lambda v: 1 / 0, "ZeroDivisionError"),
    "an error of one branch": ("x", lambda v: v if v < 5 else None.up, "AttributeError"),  # type: ignore[attr-defined]
    "endless": ("x", endless, "40 branches"),
    "too many ways": ("x", wide, "256 ways"),
    "two kinds": ("x", lambda v: v if v > 3 else "low", "no one kind"),
    "an unknown method": ("s", lambda v: v.encode(), "not offered"),
    "a generator": ("s", lambda v: list(v), "nobody looks at"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_down_is_refused_before_any_debit(p: Any, name: str) -> None:
    column, function, match = REFUSED[name]
    with pytest.raises(DPError, match=match):
        p[column].map(function)
    assert p.budget.fraction == 0


def test_a_release_inside_a_function_is_the_owners_own_number(p: Any) -> None:
    found = p["x"].map(lambda v: v - p["x"].mean(epsilon=10))
    assert p.budget.spent == 10  # asked once, and recalled
    assert abs(found.mean(epsilon=300)) < 2


def test_values_are_replaced_as_in_pandas(df: pd.DataFrame, p: Any) -> None:
    for args in (
        ({"F": "female", "M": "male"},),
        ({"F": "M"},),  # two values become one
        ("F", "X"),
        (["F", "M"], "person"),
        (["F", "M"], ["M", "F"]),
        ({"F": 0, "M": 1},),
    ):
        found, wanted = p["sex"].replace(*args), df["sex"].replace(*args)
        counted = found.value_counts(keys=sorted(wanted.unique()), epsilon=150)
        assert counted.to_dict() == wanted.value_counts().to_dict(), args
    for args in (({1: 100, 2: 3},), (0, 5), (np.nan, 7)):
        column = "y" if args[0] is np.nan else "x"
        found, wanted = p[column].replace(*args), df[column].replace(*args)
        assert found._expr.bounds(p._session.bounds)[1] == max(
            90 if column == "x" else 30, 100 * (len(args) == 1)
        )
        assert wanted.max() <= found._expr.bounds(p._session.bounds)[1]


def test_a_series_or_a_dict_with_a_default_is_looked_up(df: pd.DataFrame, p: Any) -> None:
    weight = pd.Series([1.5, 2.5], index=["F", "M"])
    assert abs(p["sex"].map(weight).sum(epsilon=300) - df["sex"].map(weight).sum()) < 1
    table = defaultdict(lambda: "other", {"x": "X"})
    wanted = df["s"].map(table).value_counts().to_dict()
    assert p["s"].map(table).value_counts(keys=["X", "other"], epsilon=200).to_dict() == wanted
    assert (
        p["s"]
        .map({"x": "X"}, default="other")
        .value_counts(keys=["X", "other"], epsilon=200)
        .to_dict()
        == wanted
    )


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda p, df: p["x"].map(df["y"]), "belongs to a private session"),
        (lambda p, df: p["x"].map(pd.Series([1, 2], index=[3, 3])), "each value once"),
        (lambda p, df: p["x"].map("x"), "map takes"),
        (lambda p, df: p["x"].map({}), "not empty"),
        (lambda p, df: p["x"].apply("sum"), "apply takes"),
        (lambda p, df: p["s"].replace({"x": 1}), "map has values of any kind"),
        (lambda p, df: p["s"].replace("x", "y", regex=True), "str.replace"),
        (lambda p, df: p["s"].replace({"a": {"x": "y"}}), "flat dict"),
        (lambda p, df: p["s"].replace(["x", "y"], ["z"]), "2 values and 1"),
        (lambda p, df: p["s"].replace(), "replace takes"),
    ],
)
def test_what_is_no_public_table_is_refused(df: pd.DataFrame, p: Any, ask: Any, match: str) -> None:
    with pytest.raises(DPError, match=match):
        ask(p, df)


def test_a_series_by_people_is_refused() -> None:
    df = pd.DataFrame({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0]})
    q = df.dp.open(1, unit="id", max_rows=1, bounds={"x": (0, 5)})
    with pytest.raises(dpframe.Refused, match="names a person"):
        q["id"].map(pd.Series([5.0, 6.0], index=[1, 2]))


def test_categories_are_the_declared_keys(df: pd.DataFrame, p: Any) -> None:
    category = df["sex"].astype("category")
    one = p["sex"].astype("category")
    assert one.cat.categories.tolist() == category.cat.categories.tolist()
    assert abs(one.cat.codes.sum(epsilon=200) - category.cat.codes.sum()) < 1
    for names in ({"F": "female", "M": "male"}, ["female", "male"], str.lower):
        wanted = category.cat.rename_categories(names).value_counts().to_dict()
        assert one.cat.rename_categories(names).value_counts(epsilon=200).to_dict() == wanted
    with pytest.raises(DPError, match="needs keys"):
        p["s"].cat.codes  # noqa: B018  (asking is the test)
    with pytest.raises(DPError, match="3 names for 2"):
        one.cat.rename_categories(["a", "b", "c"])
    assert not hasattr(one.cat, "add_categories")


KEYED = {
    "joined": lambda d: d["sex"] + "-" + d["sex"].str.lower(),
    "a choice": lambda d: d["sex"].where(d["sex"] == "F", "other"),
    "constants": lambda d: (
        pd.Series(np.where(d["x"] > 40, "old", "new"))
        if isinstance(d, pd.DataFrame)
        else (np.where(d["x"] > 40, "old", "new"))
    ),
    "a band": lambda d: d["x"].map(band),
    "a month": lambda d: d["t"].dt.to_period("M"),
}


@pytest.mark.parametrize("name", KEYED)
def test_keys_follow_from_keys_constants_and_ranges(df: pd.DataFrame, p: Any, name: str) -> None:
    make = KEYED[name]
    wanted = df.groupby(make(df)).size()
    found = p.groupby(make(p)).size(epsilon=900)
    assert [k for k in found.index if k in set(wanted.index)] == wanted.index.tolist()
    assert found[found > 0.5].round().to_dict() == wanted.to_dict()


def test_constants_are_keys_also_where_no_listed_key_gives_them() -> None:
    frame = pd.DataFrame({"state": ["CA", "NY", "TX"]})
    q = frame.dp.open(1000, keys={"state": ["CA"]})
    known = (q["state"] == "CA") | q["state"].isna()
    found = q["state"].where(known, "elsewhere").value_counts(epsilon=900)
    assert found.to_dict() == {"elsewhere": 2, "CA": 1}
