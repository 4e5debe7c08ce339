"""Refusals speak of the frame that refuses: each line they tell to write has its own columns, names its own person, and is
answered as it stands."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe import DPError
from dpframe._refusals import ADVICE
from dpframe.learn import LogisticRegression
from tests.advice import pieces

N = 400
UNITS: dict[str, Any] = {"one column": "person", "two columns": ["clinic", "person"]}
OWN_ROWS = [  # what looks at several rows of a group
    *(
        "head",
        "tail",
        "nth",
        "first",
        "last",
        "shift",
        "diff",
        "pct_change",
        "cumsum",
        "cumprod",
        "cummin",
        "cummax",
    ),
    *(
        "cumcount",
        "rank",
        "ffill",
        "bfill",
        "transform",
        "filter",
        "nlargest",
        "nsmallest",
        "prod",
        "any",
        "all",
    ),
]
SENSES = [
    "the frame",
    "a column",
    "groups",
    "groups of one column",
    "a person's groups",
    "a person's column",
]


def opened(unit: Any, **terms: Any) -> Any:
    rng = np.random.default_rng(5)
    df = pd.DataFrame(
        {
            "person": rng.integers(0, 80, N),
            "clinic": rng.integers(0, 3, N),
            "amount": rng.choice([1.5, 3.0, 8.0], N),
            "visits left": rng.choice([1, 2], N),
            "came": pd.Timestamp("2024-02-03") + pd.to_timedelta(rng.integers(0, 200, N), "D"),
            "town": rng.choice(["a", "b"], N),
            "ward": rng.choice(["u", "v"], N),
            "insured": rng.choice([True, False], N),
        }
    )
    limits = {} if unit is None else {"unit": unit, "max_rows": 20, "max_groups": 2}
    return df.dp.open(
        1000,
        queries=1000,
        delta=1e-4,
        bounds={"amount": (0, 9), "visits left": (1, 2), "came": ("2024-01-01", "2024-12-31")},
        keys={"town": ["a", "b"], "ward": ["u", "v"]},
        **limits,
        **terms,
    )


def asked(p: Any, sense: str, unit: Any) -> Any:
    return {
        "the frame": lambda: p,
        "a column": lambda: p["amount"],
        "groups": lambda: p.groupby("town"),
        "groups of one column": lambda: p.groupby("town")["amount"],
        "a person's groups": lambda: p.groupby(unit),
        "a person's column": lambda: p.groupby(unit)["amount"],
    }[sense]()


STANDS_FOR = {
    "keys=[...]": "keys=[1, 2]",
    "LogisticRegression(...), X=[...], y='column'": "LogisticRegression(epsilon=1), X=['amount'], y='insured'",
}
GIVEN = {
    "np": np,
    "pd": pd,
    "LogisticRegression": LogisticRegression,
    "f": lambda rows: rows,
    "column": "visits left",
    "constant": 0,
    "regions": pd.DataFrame({"town": ["a", "b"], "tax": [1, 2]}),
    "table": pd.DataFrame({"tax": [1, 2]}, index=pd.Index(["a", "b"], name="town")),
    "values": "amount",
    "index": "town",
    "columns": "ward",
    "aggfunc": "mean",
}


def answered(p: Any, text: str, unit: Any) -> int:
    """How many lines a refusal has, all of which are answered."""
    assert "patient_id" not in text
    codes = [*pieces(text)]
    for code in codes:
        for shown, meant in STANDS_FOR.items():
            code = code.replace(shown, meant)
        if "on='key'" in code:  # the key of a table that is the user's own
            code = code.replace("'key'", "'town'")
        if "fillna(constant)" in code or "fillna({" in code:
            code = code.replace("p.fillna", "p[['amount']].fillna")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert eval(code, {"p": p, **GIVEN}) is not None, code
    return len(codes)


@pytest.mark.parametrize("sense", SENSES)
@pytest.mark.parametrize("unit", UNITS)
def test_whatever_is_refused_says_lines_of_this_frame(unit: str, sense: str) -> None:
    """All that is refused by name, of each kind of object, where a person is named by one column and by two."""
    p = opened(UNITS[unit])
    one, tried = asked(p, sense, UNITS[unit]), 0
    for name in sorted({*ADVICE, *OWN_ROWS}):
        if name.startswith("_") or hasattr(one, name):
            continue
        with pytest.raises(DPError) as refused:
            getattr(one, name)
        tried += answered(p, str(refused.value), UNITS[unit])
    assert tried > 50


@pytest.mark.parametrize("name", OWN_ROWS)
@pytest.mark.parametrize("sense", ["groups", "groups of one column"])
@pytest.mark.parametrize("unit", UNITS)
def test_what_looks_at_several_rows_of_a_group_says_how_it_is_of_a_person(
    unit: str, sense: str, name: str
) -> None:
    p = opened(UNITS[unit])
    groups = asked(p, sense, UNITS[unit])
    with pytest.raises(DPError) as refused:
        getattr(groups, name)
    assert f"p.groupby({UNITS[unit]!r})" in str(refused.value)
    assert answered(p, str(refused.value), UNITS[unit])


# What is refused when it is called, of a person's own rows.
CALLS = {
    "a window of a time": "own['amount'].rolling('7D')",
    "a window of a time that is named": "own['visits left'].rolling('36h', on='came')",
    "a window of times of all columns": "own.rolling('7D')",
    "a window of a function": "own['amount'].transform(lambda s: s.rolling('7D').mean())",
    "no window": "own['amount'].rolling(2.5)",
    "a window that looks ahead": "own['amount'].rolling(3, center=True)",
    "another word of a window": "own['amount'].rolling(3).quantile(0.5)",
    "a column of a window": "p.groupby(UNIT)['amount'].transform(lambda s: s.rolling(2)['x'])",
    "short windows": "own['amount'].rolling(3, min_periods=1).max()",
    "several places": "own.nth([0, 1])",
    "a place too far": "own.head(-1)",
    "the last but one": "own.tail(0)",
    "no column chosen": "own.nlargest(2)",
    "no column chosen of the least": "own.nsmallest(2)",
    "the row of the greatest": "own['amount'].idxmax",
    "the row of the least of a frame": "own.idxmin",
    "texts in a mean": "own.mean()",
    "texts in a deviation": "own.std()",
    "a price of a step": "own['amount'].sum(epsilon=1)",
    "a price of steps": "own.max(epsilon=1)",
    "a verb of frames in a function": "own.apply(lambda g: g.shift())",
    "rows after pipe": "p.pipe(lambda d: d.iloc[::-1]).groupby(UNIT).head(1)",
    "a sum of groups' rows": "p.groupby('town')['amount'].cumsum()",
    "both kinds of groups": "p.groupby([*([UNIT] if isinstance(UNIT, str) else UNIT), 'town'])",
    "a column of rows": "p['amount'].shift()",
    "times in order": "p['came'].diff()",
    "texts in order": "p['town'].ffill()",
    "whether any": "(p['amount'] > 3).any()",
    "cells of a frame": "p.shift()",
}


@pytest.mark.parametrize("case", CALLS)
@pytest.mark.parametrize("unit", UNITS)
def test_a_call_that_is_refused_says_lines_of_this_frame(unit: str, case: str) -> None:
    p = opened(UNITS[unit])
    scope = {"p": p, "UNIT": UNITS[unit], "own": p.groupby(UNITS[unit])}
    with pytest.raises(DPError) as refused:
        eval(CALLS[case], scope)
    assert answered(p, str(refused.value), UNITS[unit]) or case == "both kinds of groups"


def test_a_person_that_was_renamed_has_its_new_name() -> None:
    p = opened("person").rename(columns={"person": "who", "amount": "paid"})
    with pytest.raises(DPError, match=r"p\.groupby\('who'\)\['paid'\]\.shift\(\)"):
        p["paid"].shift()
    assert p.groupby("who")["paid"].shift() is not None


def test_refused_windows_of_a_time_name_the_window_and_the_column() -> None:
    p = opened("person")
    with pytest.raises(
        DPError, match=r"rolling\('36h', on='came'\)\['visits left'\]\.mean\(\)"
    ) as refused:
        p.groupby("person")["visits left"].rolling("36h")
    line = [*pieces(str(refused.value))][-1]
    assert line.startswith("p.dropna(subset='came').pipe(")
    made = eval(line, {"p": p})
    assert 1 <= made.mean("visits left", bounds=(1, 2), epsilon=10) <= 2


def test_rows_that_no_column_gives_to_a_person_name_no_column() -> None:
    long = opened(None).melt(value_vars=["amount", "visits left"])
    with pytest.raises(
        DPError, match=r"with unit=: p\.groupby\('patient_id'\)\['value'\]\.shift\(\)"
    ):
        long["value"].shift()


def test_a_frame_that_has_the_invented_names_keeps_them() -> None:
    df = pd.DataFrame(
        {"person": [1, 2], "w": [1.0, 2.0], "x": [1.0, 2.0], "t": pd.Timestamp("2024-01-01")}
    )
    p = df.dp.open(1, unit="person", bounds={"w": (0, 3)})
    with pytest.raises(
        DPError, match=r"p\.resample\('ME', on='t'\)\['x'\].*p\.groupby\('person'\)\['x'\]"
    ):
        p.cumsum()
    with pytest.raises(DPError, match=r"p\.groupby\('person'\)\['w'\]\.cumsum\(\)"):
        p["w"].cumsum()


def test_advice_where_a_row_is_a_person_explains_unit() -> None:
    p = opened(None)
    with pytest.raises(
        DPError, match=r"Within a person, with unit=: p\.groupby\('patient_id'\)\['amount'\]"
    ):
        p["amount"].shift()
    with pytest.raises(DPError, match=r"p\[p\['town'\] == 'a'\]"):
        p.groupby("town").get_group("a")


def test_names_that_no_identifier_is_stand_in_expressions_too() -> None:
    df = pd.DataFrame({"person": [1, 2], "visits left": [1.0, 2.0], 3: [1, 2], "k": ["a", "b"]})
    p = df.dp.open(1, unit="person", bounds={"visits left": (0, 3)}, keys={"k": ["a", "b"]})
    with pytest.raises(DPError, match=r"p\.assign\(y='`visits left` / 2'\)\.groupby\('k'\)"):
        p.groupby("k")["visits left"].apply  # noqa: B018  (looking it up is the test)
    with pytest.raises(DPError, match=r"p\.groupby\('person'\)\[3\]\.shift\(\)"):
        p[3].shift()
