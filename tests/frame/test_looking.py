"""Looking without looking: what is shown is made of declared bounds, keys and dtypes, and of no cell."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue, PrivacyWarning, Refused
from dpframe.datasets import BOUNDS, KEYS, visits

SECRET = "Sesame-Street-123"
TERMS = {
    "bounds": {"n": (0, 9), "x": (-2.5, 2.5), "t": ("2024-03-01", "2024-03-31")},
    "keys": {"s": ["a", "b"], "known": ["p", "q"]},
}


def frame(rows, seed=0):
    """Every everyday dtype; two of different numbers and seeds share nothing but names and dtypes."""
    rng = np.random.default_rng(seed)
    texts = [f"{SECRET}-{seed}-{i}" for i in range(rows)]
    times = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, rows) + seed, "h")
    return pd.DataFrame(
        {
            "n": rng.integers(0, 100, rows),
            "small": rng.integers(0, 100, rows).astype("uint8"),
            "x": rng.normal(size=rows),
            "whole": pd.array(rng.integers(0, 9, rows), dtype="Int64"),
            "flag": rng.random(rows) < 0.5,
            "maybe": pd.array(rng.random(rows) < 0.5, dtype="boolean"),
            "s": pd.Series(["a", "b"] * rows, dtype="str")[:rows],
            "free": pd.Series(texts, dtype="str"),
            "known": pd.Categorical(["p"] * rows, categories=["p", "q", texts[0] if rows else "r"]),
            "cat": pd.Categorical(texts),
            "o": pd.Series([[t] for t in texts], dtype=object),
            "t": pd.Series(times, dtype="datetime64[us]"),
            "zoned": pd.Series(times.tz_localize("UTC")).astype("datetime64[us, Europe/Paris]"),
            "span": pd.Series(pd.to_timedelta(rng.integers(0, 9, rows), "D"), dtype="timedelta64[us]"),
            "sparse": pd.arrays.SparseArray(np.full(rows, float(seed)), fill_value=float(seed)),
        }
    )  # fmt: skip


LOOKS = {
    "head": lambda p: repr(p.head()),
    "many": lambda p: p.head(100).to_csv(),
    "tail": lambda p: p.tail(3).to_csv(),
    "sample": lambda p: p.sample(7).to_csv(),
    "html": lambda p: p.head()._repr_html_(),
    "dtypes": lambda p: p.dtypes.to_string() + repr(p.dtypes["cat"]) + repr(p.dtypes["sparse"]),
    "shape": lambda p: repr(p.shape),
    "info": lambda p: printed(p),
    "dummy": lambda p: dpframe.dummy(p, 50).to_csv(),
    "filtered": lambda p: p[(p["n"] > 5) & (p["s"] == "a")].head(4).to_csv(),
    "new columns": lambda p: (
        p.assign(y=p["x"] * 2 + p["n"], u=p["free"].str.upper()).head(4).to_csv()
    ),
    "choice by dtypes": lambda p: repr(list(p.select_dtypes("number").columns)),
}


def printed(p):
    file = io.StringIO()
    p.info(buf=file)
    return file.getvalue()


@pytest.mark.parametrize("name", LOOKS)
def test_what_is_shown_is_the_same_for_all_data_of_one_schema(name):
    shown = []
    for rows, seed in ((40, 1), (41, 1), (3, 2), (0, 3)):
        p = frame(rows, seed).dp.open(1, **TERMS)
        shown.append(LOOKS[name](p))
        assert p.budget.spent == 0
        assert p.ledger.empty
        assert p._session.data.reader is None
        assert LOOKS[name](p) == shown[-1]
    assert len(set(shown)) == 1
    assert "Sesame" not in shown[0]


def test_rows_are_as_the_declarations_have_them():
    p = frame(20).dp.open(1, **TERMS)
    made = p.head(100)
    assert list(made.columns) == list(p.columns)
    assert len(made) == 100
    assert made["n"].between(0, 9).all()
    assert made["n"].nunique() == 10
    assert made["x"].between(-2.5, 2.5).all()
    assert set(made["s"]) == {"a", "b"}
    assert set(made["known"]) == {"p", "q"}
    assert made["t"].between("2024-03-01", "2024-03-31 23:59:59").all()
    assert [str(d) for d in made.dtypes] == [str(d) for d in p.dtypes]
    assert str(made["zoned"].dtype) == "datetime64[us, Europe/Paris]"
    assert not made.drop(columns=["o", "span"]).isna().to_numpy().any()


@pytest.mark.parametrize(
    ("dtype", "pair"),
    [("uint8", (0, 1000)), ("int8", (-500, 500)), ("uint16", (-5, 5)), ("float32", (0, 1)), ("Int16", (0, 99999)),
     ("int64", (3, 3)), ("float64", (1e-250, 1e-240)), ("float64", (-1e300, 1e300)), ("int64", (0.2, 0.8)),
     ("Float64", (0, 1))],
)  # fmt: skip
def test_numbers_fit_their_dtype_and_bounds(dtype, pair):
    made = dpframe.dummy({"x": dtype}, 200, bounds={"x": pair})["x"]
    low, high = pair
    whole = pd.api.types.is_integer_dtype(made.dtype)
    if whole and np.floor(high) < np.ceil(low):
        return  # no whole number lies between them
    assert ((made >= low) & (made <= high)).all()


def test_conditions_and_expressions_are_of_the_rows_that_are_shown():
    p = visits(50).dp.open(1, bounds=BOUNDS, keys=KEYS)
    p["old"] = p["age"] > 60
    p["ratio"] = p["cost"] / (p["age"] + 1)
    made = p.query("age > 60").head(20)
    assert made["old"].all()
    assert (made["age"] > 60).all()
    np.testing.assert_allclose(made["ratio"], made["cost"] / (made["age"] + 1))
    assert len(p.query("age > 1000").head()) == 0
    assert len(p.head(0)) == 0


def test_derived_frames_show_their_own_columns():
    df = pd.DataFrame({"state": ["CA", "NY"], "a": [1.0, 2.0], "b": [3.0, 4.0]})
    p = df.dp.open(1, bounds={"a": (0, 5), "b": (0, 5)}, keys={"state": ["CA", "NY"]})
    regions = pd.DataFrame({"state": ["CA", "NY"], "tax": [7.5, 8.0]})
    merged = p.merge(regions, on="state").head(30)
    assert list(merged.columns) == ["state", "a", "b", "tax"]
    assert merged["tax"].between(7.5, 8).all()
    melted = p.melt(id_vars="state").head(30)
    assert set(melted["variable"]) == {"a", "b"}


def test_made_up_rows_say_so_wherever_they_are_shown():
    p = visits(50).dp.open(1, bounds=BOUNDS, keys=KEYS)
    made = p.head()
    for shown in (made, made[["age"]], made["age"], made[made["age"] > 0], dpframe.dummy(p)):
        assert repr(shown).startswith("made-up rows")
    assert "made-up rows" in made._repr_html_()
    with pytest.warns(PrivacyWarning, match="says nothing of the data"):
        made["age"].mean()
    with pytest.warns(PrivacyWarning, match="says nothing of the data"):
        made.mean(numeric_only=True)


def test_few_rows_are_shown_and_no_share_of_them():
    p = visits(50).dp.open(1, bounds=BOUNDS, keys=KEYS)
    for n in (-1, 101, 10**9):
        with pytest.raises(BadValue, match=r"dpframe\.dummy\(p"):
            p.head(n)
    for n in ("x", 2.5, True, [1]):
        with pytest.raises(BadType):
            p.head(n)
    for ask in (
        lambda: p.sample(frac=0.5),
        lambda: p.sample(3, weights="age"),
        lambda: p.sample(3, axis=1),
    ):
        with pytest.raises(Refused):
            ask()


def test_a_shape_tells_rows_where_they_are_public_alone():
    df = visits(50)
    p = df.dp.open(1, bounds=BOUNDS, keys=KEYS)
    assert p.shape[1] == p.shape[-1] == df.shape[1]
    assert len(p.shape) == 2
    for ask in (lambda: p.shape[0], lambda: list(p.shape), lambda: p.shape[-2]):
        with pytest.raises(Refused, match=r"p\.count\(\)"):
            ask()
    with pytest.raises(IndexError):
        p.shape[2]
    q = visits(60).dp.open(1, neighbors="replace-one")
    assert q.shape == (60, df.shape[1])
    assert q.query("age > 30").shape[1] == df.shape[1]
    with pytest.raises(Refused):
        q.query("age > 30").shape[0]


def test_info_prints_dtypes_bounds_and_keys(capsys):
    p = visits(50).dp.open(1, bounds=BOUNDS, keys=KEYS)
    assert p.info() is None
    told = capsys.readouterr().out
    assert all(str(name) in told for name in p.columns)
    assert "0 to 110" in told
    assert "not public: p.count()" in told
    assert "50" not in told.split("Columns")[0]


def test_a_dummy_opens_a_session_and_a_notebook_runs_on_it():
    df = visits(200)
    d = dpframe.dummy(df.dtypes, 500, bounds=BOUNDS, keys=KEYS)
    assert isinstance(d, pd.DataFrame)
    assert list(d.columns) == list(df.columns)
    p = d.dp.open(100, bounds=BOUNDS, keys=KEYS)
    assert set(p.groupby("state")["cost"].mean(epsilon=50).index) == set(KEYS["state"])
    assert dpframe.dummy(df.dp.open(1, bounds=BOUNDS, keys=KEYS), 500).equals(d)
    for ask in (
        lambda: dpframe.dummy(df),
        lambda: dpframe.dummy(["age"]),
        lambda: dpframe.dummy({"age": "nonsense"}),
        lambda: dpframe.dummy(p, bounds={"age": (0, 1)}),
    ):
        with pytest.raises(BadType):
            ask()
    with pytest.raises(BadValue):
        dpframe.dummy(p, 0)
    with pytest.raises(dpframe.UnknownColumn):
        dpframe.dummy({"age": "int64"}, bounds={"agee": (0, 1)})
