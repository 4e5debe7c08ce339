"""Functions of pandas take tracked columns, and do for all else what they did."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, DPError
from dpframe._frame.columns.hooks import PANDAS_FUNCTIONS
from dpframe._pandas import EXTENDED

DF = pd.DataFrame(
    {
        "x": [1, 20, 30, 65, 90],
        "y": [0.5, None, 2.0, -1.0, 3.5],
        "s": ["2024-01-31", "no", None, "12", " 3.5e1 "],
        "sex": ["F", "M", "F", "F", "M"],
        "t": pd.to_datetime(["2024-01-31", None, "2024-02-29", "2023-12-31", "2024-06-01"]),
    }
)


@pytest.fixture
def p() -> Any:
    return DF.copy().dp.open(
        1000, bounds={"x": (0, 100), "y": (-5, 5)}, keys={"sex": ["F", "M"]}, because="made up"
    )


@pytest.mark.parametrize("labels", [None, False, ["a", "b"]])
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("edges", [[1, 30, 90], [1.0, 30.5, 90.0], (0, 20, 65)])
@pytest.mark.parametrize("lowest", [True, False])
def test_cut_is_that_of_pandas(p: Any, edges: Any, right: bool, labels: Any, lowest: bool) -> None:
    words = {"right": right, "labels": labels, "include_lowest": lowest}
    if lowest and not right:
        return
    wanted = pd.cut(DF["x"], list(edges), **words)
    found = pd.cut(p["x"], edges, **words)
    counted = p.groupby(found).size(epsilon=400)
    assert counted.tolist() == [int((wanted == k).sum()) for k in counted.index]
    if labels is None:
        assert list(counted.index) == list(wanted.cat.categories)
        assert repr(list(counted.index)) == repr(list(wanted.cat.categories))


def test_nulls_are_asked_for_by_four_names(p: Any) -> None:
    assert [str(f(p["y"])._expr) for f in (pd.isna, pd.isnull)] == ["y.isna()"] * 2
    assert [str(f(p["y"])._expr) for f in (pd.notna, pd.notnull)] == ["~y.isna()"] * 2
    assert pd.isna(obj=p["y"]).sum(epsilon=500) == 1


def test_texts_become_numbers_and_times(p: Any) -> None:
    assert round(pd.to_numeric(p["s"], errors="coerce").sum((0, 100), epsilon=400)) == 12 + 35
    assert pd.to_datetime(p["s"]).count(epsilon=200) == 1
    assert pd.to_datetime(p["s"], format="%Y-%m-%d", utc=True)._expr.tz == "UTC"
    assert pd.to_datetime(p["t"])._expr == p["t"]._expr
    assert pd.to_numeric(p["x"])._expr == p["x"]._expr


def test_dummies_are_columns_of_the_keys(p: Any) -> None:
    made = pd.get_dummies(p["sex"], prefix="sex")
    assert list(made.columns) == ["sex_F", "sex_M"]
    assert made.sum(numeric_only=True, epsilon=800).round().to_dict() == {
        "sex_F": 3.0,
        "sex_M": 2.0,
    }
    assert list(pd.get_dummies(p["sex"], drop_first=True).columns) == ["M"]


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda p: pd.cut(p["x"], 3), "would look at the data"),
        (lambda p: pd.cut(p["x"], [0, 1], retbins=True), "retbins=False"),
        (lambda p: pd.cut(p["x"], [0, 1], duplicates="drop"), "duplicates='raise'"),
        (lambda p: pd.cut(p["x"], [0, 1], precision="a", include_lowest=True), "precision"),
        (lambda p: pd.cut(p["x"], [0, 1], wrong=True), "these arguments"),
        (lambda p: pd.cut(p["x"], DF["x"]), "people's data"),
        (lambda p: pd.qcut(p["x"], 4), "quantile"),
        (lambda p: pd.factorize(p["x"]), "map"),
        (lambda p: pd.get_dummies(p["s"]), "are not declared"),
        (lambda p: pd.to_datetime(p["s"], dayfirst=True), "dayfirst=False"),
        (lambda p: pd.to_datetime(p["s"], errors="ignore"), "coerce"),
        (lambda p: pd.to_datetime(p["s"], format=3), "a format"),
        (lambda p: pd.to_datetime(p["x"]), "needs strings"),
        (lambda p: pd.to_numeric(p["t"]), "needs strings"),
        (lambda p: pd.to_timedelta(p["x"], unit="D"), "duration"),
    ],
)
def test_what_they_do_not_do_is_said(p: Any, ask: Any, match: str) -> None:
    with pytest.raises(DPError, match=match):
        ask(p)
    assert p.budget.fraction == 0


def test_for_all_else_they_are_what_they_were(p: Any) -> None:
    assert pd.isna(None)
    assert pd.isna(np.array([1.0, np.nan])).tolist() == [False, True]
    assert pd.to_datetime("2024-01-31") == pd.Timestamp("2024-01-31")
    assert pd.to_datetime(DF["s"], errors="coerce", format="%Y-%m-%d").notna().sum() == 1
    assert pd.cut(DF["x"], [0, 50, 100]).value_counts().tolist() == [3, 2]
    assert pd.get_dummies(DF["sex"]).sum().tolist() == [3, 2]
    with pytest.raises(TypeError, match="wrong"):
        pd.cut(DF["x"], [0, 1], wrong=True)
    assert pd.cut.__name__ == "cut"
    assert pd.cut.__doc__.lstrip().startswith("Bin values")


# How they come into pandas --------------------------------------------------------------------------------------------


def test_replaced_functions_are_those_that_have_a_version_for_tracked_columns() -> None:
    assert set(EXTENDED) == set(PANDAS_FUNCTIONS)
    assert list(EXTENDED) == sorted(EXTENDED)


@pytest.mark.parametrize("name", EXTENDED)
def test_replaced_function_looks_like_the_original(name: str) -> None:
    function: Any = getattr(pd, name)
    original = function.pandas_function
    assert original is not function
    assert inspect.signature(function) == inspect.signature(original)
    assert (function.__doc__, function.__name__) == (original.__doc__, original.__name__)
    assert pickle.loads(pickle.dumps(function)) is function


def test_replaced_function_returns_the_object_that_the_original_returns(monkeypatch: Any) -> None:
    result = object()
    with dpframe.options(extend_pandas=False), monkeypatch.context() as patch:
        patch.setattr(pd, "isna", lambda obj: result)
        dpframe.options.extend_pandas = True
        assert pd.isna(DF["x"]) is pd.isna(obj=DF["x"]) is pd.isna([]) is result
    assert dpframe.options.extend_pandas


def test_option_takes_the_functions_away_and_puts_them_back(p: Any) -> None:
    extended: Any = pd.cut
    with dpframe.options(extend_pandas=False):
        assert not dpframe.options.extend_pandas
        assert pd.cut is extended.pandas_function
        assert not any(hasattr(getattr(pd, name), "pandas_function") for name in EXTENDED)
        assert p["x"].cut([0, 50, 100]) is not None
        with pytest.raises(DPError):
            pd.cut(p["x"], [0, 50, 100])
    assert dpframe.options.extend_pandas
    assert pd.cut(p["x"], [0, 50, 100]) is not None
    dpframe.options.extend_pandas = True
    assert pd.cut.pandas_function is extended.pandas_function  # type: ignore[attr-defined]


def test_options_come_back_after_an_error() -> None:
    with pytest.raises(KeyError), dpframe.options(extend_pandas=False):
        raise KeyError
    assert dpframe.options.extend_pandas


def test_options_take_no_other_name_and_no_other_value() -> None:
    with pytest.raises(BadType, match=r"no option 'extend_panda'\. Did you mean 'extend_pandas'"):
        dpframe.options(extend_panda=False).__enter__()
    with pytest.raises(BadType), dpframe.options(extend_pandas=1):
        pass
    with pytest.raises(AttributeError):
        dpframe.options.extend_panda = False
    assert repr(dpframe.options) == "options: display='interval', extend_pandas=True"


UNCHANGED = """
import pandas as pd
before = dict(vars(pd))
import dpframe
after = dict(vars(pd))
changed = {name for name in before if after[name] is not before[name]}
df = pd.DataFrame({"x": [1, 2]})
df.dp
p = df.dp.open(1, bounds={"x": (0, 9)})
p.mean("x")
assert all(vars(pd)[name] is after[name] for name in after)
print(*sorted(changed))
"""


def test_import_replaces_the_functions_and_reading_dp_changes_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", UNCHANGED],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == list(EXTENDED)
