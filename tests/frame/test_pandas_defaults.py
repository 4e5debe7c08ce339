"""An argument at the value that pandas has by default is the same as no argument, in every verb."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from pandas.api.extensions import no_default
from pandas.api.typing import DataFrameGroupBy, Resampler, SeriesGroupBy

from dpframe import BadType, DPError, PrivateFrame

mpl.use("agg")

BOUNDS = {"x": (0, 7), "n": (0, 40), "t": ("2024-01-01", "2024-12-31")}
Given = dict[str, tuple[Any, ...] | dict[str, Any]]


@pytest.fixture
def p() -> PrivateFrame:
    df = pd.DataFrame(
        {
            "x": np.arange(40.0) % 7,
            "n": range(40),
            "s": list("ab") * 20,
            "t": pd.date_range("2024-01-01", periods=40),
        }
    )
    keys = {"s": ["a", "b"], "n": list(range(40))}
    return df.dp.open(1000, queries=10_000, bounds=BOUNDS, keys=keys, because="a test")


def add_one(value: Any) -> Any:
    return value + 1


def is_large(frame: Any) -> Any:
    return frame > 1


# The arguments of the verbs that need some: a tuple by position, a dict by name.
OPERATORS = ("add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "rsub", "rdiv")
BOTH: Given = {
    **dict.fromkeys((*OPERATORS, "eq", "ne", "lt", "le", "gt", "ge"), (2,)),
    **dict.fromkeys(("apply", "map", "transform", "pipe"), (add_one,)),
    **dict.fromkeys(("where", "mask"), (is_large,)),
    "astype": ("float64",),
    "clip": (0, 3),
    "fillna": (0,),
    "isin": ([1, 2],),
    "quantile": (0.5,),
    "replace": ({1: 2},),
}
FRAME: Given = {
    **BOTH,
    **dict.fromkeys(("agg", "aggregate"), ({"x": "mean"},)),
    **dict.fromkeys(("add_prefix", "add_suffix"), ("p_",)),
    **dict.fromkeys(("get", "set_index", "sort_values"), ("x",)),
    **dict.fromkeys(("groupby", "value_counts"), ("n",)),
    "drop": {"columns": ["n"]},
    "eval": ("x + 1",),
    "filter": {"items": ["x"]},
    "melt": {"value_vars": ["x", "n"]},
    "pivot_table": ("x", "n"),
    "query": ("x > 1",),
    "reindex": {"columns": ["x"]},
    "rename": {"columns": {"x": "y"}},
    "reset_index": {"drop": True},
    "select_dtypes": ("number",),
}
COLUMN: Given = {
    **BOTH,
    **dict.fromkeys(("agg", "aggregate"), ("mean",)),
    "between": (1, 2),
    "rename": ("y",),
    "reset_index": {"drop": True},
}
GROUPS: Given = {"quantile": (0.5,), **dict.fromkeys(("agg", "aggregate"), ("mean",))}
TEXTS: Given = {
    **dict.fromkeys(("contains", "count", "endswith", "find", "fullmatch", "match"), ("a",)),
    **dict.fromkeys(("startswith", "removeprefix", "removesuffix", "rfind"), ("a",)),
    **dict.fromkeys(("center", "ljust", "rjust", "pad", "zfill"), (3,)),
    **dict.fromkeys(("get", "repeat"), (2,)),
    "replace": ("a", "b"),
}
TIMES: Given = {
    **dict.fromkeys(("ceil", "floor", "round"), ("D",)),
    "strftime": ("%Y",),
    "to_period": ("M",),
    "tz_localize": ("UTC",),
    "as_unit": ("s",),
}
WHO: dict[str, tuple[Callable[[PrivateFrame], Any], type, Given]] = {
    "frame": (lambda p: p[["x", "n"]], pd.DataFrame, FRAME),
    "column": (lambda p: p["x"], pd.Series, COLUMN),
    "whole numbers": (lambda p: p["n"], pd.Series, COLUMN),
    "times": (lambda p: p["t"], pd.Series, {"pipe": (add_one,)}),
    "groups": (lambda p: p.groupby("s")[["x", "n"]], DataFrameGroupBy, GROUPS),
    "column of groups": (lambda p: p.groupby("s")["n"], SeriesGroupBy, GROUPS),
    "periods": (lambda p: p.resample("ME", on="t")["x"], Resampler, GROUPS),
    "texts": (lambda p: p["s"].str, type(pd.Series(["a"]).str), TEXTS),
    "parts of times": (
        lambda p: p["t"].dt,
        type(pd.Series(pd.to_datetime(["2024-01-01"])).dt),
        TIMES,
    ),
}
# The verbs that print, and one that takes any arguments and ignores them.
NOT_COMPARED = {"info", "rename_axis"}


def list_verbs(asked: Any, like: type) -> list[str]:
    """Return the public verbs that both have."""
    return [
        name
        for name in sorted({*dir(asked)} & {*dir(like)} - NOT_COMPARED)
        if not name.startswith("_") and inspect.isfunction(getattr(like, name, None))
    ]


def read_answer(
    asked: Any, name: str, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[str, str]:
    """Return what a verb comes back with, be it an answer, a step, or a refusal: type and text."""
    try:
        found = getattr(asked, name)(*args, **named)
    except DPError as error:
        return "refusal", f"{type(error).__name__}: {error}"
    finally:
        plt.close("all")
    return type(found).__name__, "" if "Axes" in repr(found) else repr(found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("third", [0, 1, 2])
@pytest.mark.parametrize("who", WHO)
def test_all_defaults_of_pandas_change_nothing(p, who, third):
    make, like, needed = WHO[who]
    answered = 0
    for name in list_verbs(make(p), like)[third::3]:
        given = needed.get(name, ())
        args, named = ((), given) if isinstance(given, dict) else (given, {})
        parameters = list(inspect.signature(getattr(like, name)).parameters.values())[1:]
        defaults = {
            parameter.name: parameter.default
            for parameter in parameters[len(args) :]
            if parameter.default not in (parameter.empty, no_default)
        }
        plain = read_answer(make(p), name, args, named)
        budget = p.budget
        assert read_answer(make(p), name, args, {**defaults, **named}) == plain, name
        assert p.budget == budget, name
        answered += plain[0] != "refusal"
    assert answered >= 3


@pytest.mark.parametrize(
    "ask",
    [
        lambda p: p["x"].nunique(dropna=False),
        lambda p: p["x"].mean(skipna=False),
        lambda p: p["x"].mean(skipna=1),
        lambda p: p.groupby("s")["x"].sum(min_count=3),
        lambda p: p.groupby("s").agg(engine="numba"),
        lambda p: p["t"].dt.as_unit("s", round_ok=None),
    ],
)
def test_any_other_value_is_refused_before_the_debit(p, ask):
    budget = p.budget
    with pytest.raises(BadType):
        ask(p)
    assert p.budget == budget


def test_an_output_may_be_called_like_an_argument_of_pandas(p):
    answer = p.groupby("s").agg(engine=("x", "mean"), epsilon=100)
    assert list(answer.columns) == ["engine"]
