"""Estimates mean what their page says: of every aggregate, under limits, with nulls, on every kind of engine.

Random people have up to eight rows, some without a value. The integers of each aggregate of the registry are read off without
noise. Where no limit binds they are those of pandas; where one does they are the mean in which nobody weighs more than the limit,
which lies between the least and the greatest value. An aggregate that has no oracle here fails. The twin that must fail is a
number of values that is rounded apart from their sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction as F
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe import _expr as ex
from dpframe._expr import Column, constant
from dpframe._groups.keys import BinBy, KeyBy, keys_for
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import AGGREGATES, Measured, Output
from dpframe._plans.order import ORDERS
from dpframe._plans.plan import make_draft
from dpframe._questions.question import Query
from dpframe._validate import Bounds
from dpframe.engines import person_sums as person_sums_module
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.parts import PartsEngine
from dpframe.engines.sql import SqlEngine
from tests import aggregates
from tests.engines.test_compiled import of_all_sizes
from tests.engines.test_parts import cut
from tests.engines.test_sql import engine_in
from tests.engines.written import in_sqlite
from tests.statistical.test_population_of_people import CountedApart

KEY, GROUPS, BOUNDS = b"12345678", ["a", "b"], Bounds(0.0, 8.0)
MANY = 50  # rows, more than anybody has
ENGINES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda df: PandasEngine(df, KEY),
    "parts": lambda df: PartsEngine(cut(df, 900, seed=len(df)), KEY),
    "sqlite": lambda df: engine_in(in_sqlite, df, KEY, SqlEngine),
}

cell = st.none() | st.integers(0, 8)
row = st.tuples(cell, cell, st.sampled_from([*GROUPS, "other", None]), st.booleans())
crowd = st.lists(st.lists(row, min_size=1, max_size=8), min_size=1, max_size=6)


def frame_of(people: list[list[Any]]) -> pd.DataFrame:
    rows = [(i, *one) for i, own in enumerate(people) for one in own]
    df = pd.DataFrame(rows, columns=["id", "x", "y", "g", "flag"])
    df = df.astype({"id": "int64", "x": float, "y": float, "g": "str", "flag": bool})
    return df.sample(frac=1, random_state=len(df)).reset_index(drop=True)


def leaves_of(df: pd.DataFrame) -> dict[str, Column]:
    return {name: Column.of(i, name, df.dtypes.iloc[i]) for i, name in enumerate(df.columns)}


# What is asked of each aggregate ------------------------------------------------------------------------------------------

Weighted = list[tuple[float, float]]  # values and their weights


@dataclass
class Pair:
    """The rows of one person in one group, and what they count for under a limit."""

    rows: pd.DataFrame
    limit: int

    def of(self, column: str) -> Weighted:
        """The values of a column, each with the weight that leaves their person no more than the limit."""
        values = self.rows[column].dropna()
        return [(x, float(F(min(len(values), self.limit), len(values)))) for x in values]

    def both(self) -> list[tuple[float, float, float]]:
        rows = self.rows.dropna(subset=["x", "y"])
        w = min(len(rows), self.limit) / max(len(rows), 1)
        return [(x, y, w) for x, y in zip(rows["x"], rows["y"], strict=True)]


def number(pairs: list[Pair], column: str) -> float:
    return sum(w for p in pairs for _, w in p.of(column))


def mean(pairs: list[Pair]) -> float | None:
    n = number(pairs, "x")
    return sum(x * w for p in pairs for x, w in p.of("x")) / n if n else None


def moment(pairs: list[Pair], degree: int) -> float:
    about = mean(pairs)
    assert about is not None
    return sum((x - about) ** degree * w for p in pairs for x, w in p.of("x")) / number(pairs, "x")


def var(pairs: list[Pair]) -> float | None:
    n = number(pairs, "x")
    return moment(pairs, 2) * n / (n - 1) if n >= 2 else None


def skew(pairs: list[Pair]) -> float | None:
    n = number(pairs, "x")
    if n < 3 or moment(pairs, 2) < 2:  # of values that lie close together rounding is all there is
        return None
    found = moment(pairs, 3) / moment(pairs, 2) ** 1.5 * math.sqrt(n * (n - 1)) / (n - 2)
    return float(np.clip(found, -math.sqrt(n), math.sqrt(n)))


def cov(pairs: list[Pair]) -> float | None:
    rows = [one for p in pairs for one in p.both()]
    n = sum(w for *_, w in rows)
    if n < 2:
        return None
    a, b = (sum(one[i] * one[2] for one in rows) / n for i in (0, 1))
    return sum((x - a) * (y - b) * w for x, y, w in rows) / n * n / (n - 1)


def root(of: Callable[[list[Pair]], float | None]) -> Callable[[list[Pair]], float | None]:
    return lambda pairs: None if (found := of(pairs)) is None else math.sqrt(found)


def sem(pairs: list[Pair]) -> float | None:
    found = var(pairs)
    return None if found is None else math.sqrt(found / number(pairs, "x"))


@dataclass
class Oracle:
    """An aggregate as this file asks it: the words of its output, what it is, and what pandas has where no limit binds."""

    value: Callable[[list[Pair]], float | None]
    words: Callable[[dict[str, Column]], dict[str, Any]]
    pandas: Callable[[pd.DataFrame], float] | None = None
    error: float = 1e-6  # of grids, of which that of cubes has a thousand steps
    between: bool = False  # whether it lies between the least value and the greatest


def of_x(**more: Any) -> Callable[[dict[str, Column]], dict[str, Any]]:
    return lambda leaves: {"expr": leaves["x"], "bounds": BOUNDS, **more}


def of_pairs(leaves: dict[str, Column]) -> dict[str, Any]:
    return {**of_x()(leaves), "other": leaves["y"], "other_bounds": BOUNDS}


ORACLES: dict[str, Oracle] = {
    "size": Oracle(
        lambda ps: float(sum(min(len(p.rows), p.limit) for p in ps)),
        lambda leaves: {},
        lambda df: float(len(df)),
    ),
    "count": Oracle(
        lambda ps: number(ps, "x"),
        lambda leaves: {"expr": leaves["x"]},
        lambda df: float(df["x"].count()),
    ),
    "true": Oracle(
        lambda ps: float(sum(min(int(p.rows["flag"].sum()), p.limit) for p in ps)),
        lambda leaves: {"expr": leaves["flag"]},
        lambda df: float(df["flag"].sum()),
    ),
    "people": Oracle(
        lambda ps: float(len(ps)),
        lambda leaves: {"expr": leaves["id"]},
        lambda df: float(df["id"].nunique()),
    ),
    "nunique": Oracle(  # a person may name more values here than there are
        lambda ps: float(pd.concat([p.rows["x"] for p in ps]).nunique()) if ps else 0.0,
        lambda leaves: {"expr": leaves["x"]},
        lambda df: float(df["x"].nunique()),
    ),
    "sum": Oracle(
        lambda ps: sum(x * w for p in ps for x, w in p.of("x")),
        of_x(),
        lambda df: float(df["x"].sum()),
        1e-5,
    ),
    "mean": Oracle(mean, of_x(), lambda df: df["x"].mean(), 1e-6, between=True),
    "var": Oracle(var, of_x(), lambda df: df["x"].var(), 2e-2),
    "std": Oracle(root(var), of_x(), lambda df: df["x"].std(), 2e-2),
    "sem": Oracle(sem, of_x(), lambda df: df["x"].sem(), 2e-2),
    "skew": Oracle(skew, of_x(), lambda df: df["x"].skew(), 0.15),
    "cov": Oracle(cov, of_pairs, lambda df: df["x"].cov(df["y"]), 2e-2),
}


def from_pandas(name: str) -> Oracle:
    """Return an oracle that only tells what an aggregate is where no limit binds."""

    def value(pairs: list[Pair]) -> float | None:
        if not pairs or any(len(p.rows) > p.limit for p in pairs):
            return None
        rows = pd.concat([p.rows for p in pairs]).rename(columns={"y": "h"})
        found = aggregates.truth_of(name, rows)
        return None if np.isnan(found) else found

    def words(leaves: dict[str, Column]) -> dict[str, Any]:
        return aggregates.words_of(name, {**leaves, "h": leaves["y"]}, BOUNDS)

    return Oracle(value, words, error=1e-6 if AGGREGATES[name].degree < 2 else 0.15)


# Values that stand for all of a person: not weighted, so only what they are where no limit binds, and between which values.
REPRESENTED = {
    "tree": of_x(level=F(1, 2), resolution=1.0),
    "quantile": of_x(level=F(1, 2), resolution=1.0),
}
# Choices, whose integers are scores, and people in bins: without a limit that binds, as if each row were a person.
SCORES: dict[str, Callable[[dict[str, Column]], dict[str, Any]]] = {
    "most": lambda leaves: {"expr": ex.Clip(leaves["x"], None, constant(8)), "bounds": BOUNDS},
    "argmax": lambda leaves: {},
    "top": lambda leaves: {"rounds": 1},
    "choose": of_x(),
    "revenue": lambda leaves: {"expr": leaves["x"], "bounds": BOUNDS},
}
ONCE = {
    "people by rows",
    "people by groups",
    "people by magnitude",
}  # tests/conformance/test_representatives.py

# An aggregate without an oracle here has that of its method of pandas.
KNOWN = {*ORACLES, *REPRESENTED, *SCORES, *ONCE, *ORDERS}
ORACLES |= {
    name: from_pandas(name)
    for name in AGGREGATES
    if name not in KNOWN and aggregates.has_truth(name)
}


def question(name: str, df: pd.DataFrame, words: dict[str, Any]) -> tuple[Query, Unit]:
    leaves = leaves_of(df)
    by: tuple[Any, ...] = (KeyBy(leaves["g"], keys_for(GROUPS, leaves["g"], "g")),)
    if name == "revenue":
        by = (BinBy(leaves["x"], (0.0, 2.0, 5.0, math.inf), "x"),)
    return Query((Output(name, name, **words),), None, by), Unit("add-remove", (leaves["id"],))


def raw_of(query: Query, df: pd.DataFrame, unit: Unit, engine: str = "pandas") -> list[Any]:
    draft = make_draft(query, unit, None)
    found = ENGINES[engine](df).reduce(query, set(draft.primitives), unit)
    raw: list[Any] = []
    for statistic in draft.statistics:
        follows = statistic.follows
        raw.append(statistic.integers_after(found, raw) if follows else statistic.integers(found))
    return raw


class NoNoise:
    deviation = 0.0


def estimates(name: str, df: pd.DataFrame, limit: int, engine: str) -> list[float]:
    """The answers of each group without noise."""
    query, unit = question(name, df, ORACLES[name].words(leaves_of(df)))
    unit = unit.with_limits(limit, 10 * MANY)
    (cell_,) = make_draft(query, unit, None).cells
    measured = Measured(cell_, NoNoise(), raw_of(query, df, unit, engine)[cell_.part])  # type: ignore[arg-type]
    return [float(v) for v in AGGREGATES[name].value(measured)]


def pairs_in(df: pd.DataFrame, group: str, limit: int) -> list[Pair]:
    return [Pair(rows, limit) for _, rows in df[df["g"] == group].groupby("id")]


def check(name: str, people: list[list[Any]], limit: int, engine: str) -> None:
    df, oracle = frame_of(people), ORACLES[name]
    found = estimates(name, df, limit, engine)
    for group, value in zip(GROUPS, found, strict=True):
        pairs = pairs_in(df, group, limit)
        expected = oracle.value(pairs)
        if expected is None:  # of no values an answer is a convention
            continue
        assert abs(value - expected) <= oracle.error * max(1.0, abs(expected)), (
            group,
            value,
            expected,
        )
        values = df.loc[df["g"] == group, "x"].dropna()
        if oracle.between:
            assert values.min() <= value <= values.max()
        if limit == MANY and oracle.pandas is not None:
            assert abs(oracle.pandas(df[df["g"] == group]) - expected) <= 1e-9 * max(
                1.0, abs(expected)
            )


def test_every_aggregate_has_an_oracle():
    # The outputs of a named level, such as a median, are quantiles.
    assert {*ORACLES, *REPRESENTED, *SCORES, *ONCE} == set(AGGREGATES) - set(ORDERS)


@pytest.mark.parametrize("name", ["mean", "std", "nunique", "cov"])
def test_oracles_from_pandas_agree_with_those_by_hand(name):
    people = [[(4, 4, "a", True), (1, 7, "a", True)], [(8, 8, "a", True), (None, 1, "a", False)]]
    pairs = pairs_in(frame_of(people), "a", MANY)
    assert from_pandas(name).value(pairs) == pytest.approx(ORACLES[name].value(pairs))
    assert from_pandas(name).value(pairs_in(frame_of(people), "a", 1)) is None


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ORACLES)
@settings(max_examples=15, deadline=None)
@given(people=crowd, limit=st.sampled_from([1, 1, 2, 3, 5, MANY]))
def test_estimates_are_means_with_weights_within_the_limit(name, engine, people, limit):
    check(name, people, limit, engine)


@pytest.mark.parametrize("name", ["size", "count", "sum", "mean", "var", "true"])
@settings(max_examples=30, deadline=None)
@given(people=crowd, limit=st.sampled_from([1, 2, MANY]))
def test_kernels_make_the_same_estimates(name, people, limit):
    with pytest.MonkeyPatch.context() as patch:
        of_all_sizes(patch, "python")
        check(name, people, limit, "pandas")


@pytest.mark.parametrize("name", [*REPRESENTED, *SCORES])
@settings(max_examples=30, deadline=None)
@given(people=crowd)
def test_values_and_scores_are_those_of_rows_where_no_limit_binds(name, people):
    df = frame_of(people)
    words = {**REPRESENTED, **SCORES}[name](leaves_of(df))
    if name == "choose":
        df["x"] = df["x"].fillna(0.0)
    query, unit = question(name, df, words)
    of_people = raw_of(query, df, unit.with_limits(MANY, 10 * MANY))
    of_rows = raw_of(query, df, Unit())
    assert [a.tolist() for a in of_people] == [a.tolist() for a in of_rows]


@settings(max_examples=60, deadline=None)
@given(people=crowd, limit=st.integers(1, 4))
def test_quantiles_lie_between_the_values_of_the_people(people, limit):
    df = frame_of(people)
    query, unit = question("tree", df, REPRESENTED["tree"](leaves_of(df)))
    unit = unit.with_limits(limit, 10 * MANY)
    (cell_,) = make_draft(query, unit, None).cells
    measured = Measured(cell_, NoNoise(), raw_of(query, df, unit)[cell_.part])  # type: ignore[arg-type]
    for group, value in zip(GROUPS, AGGREGATES["tree"].value(measured), strict=True):
        values = df.loc[df["g"] == group, "x"].dropna()
        if len(values):
            assert values.min() <= value <= values.max()


@pytest.mark.parametrize("name", ["mean", "sum", "count", "var"])
def test_a_number_of_values_that_is_rounded_apart_is_seen(name, monkeypatch):
    people = [
        [(4, 4, "a", True), (None, None, "a", True)],
        [(8, 8, "a", True), (None, 1, "a", False)],
    ] * 2
    check(name, people, 1, "pandas")
    monkeypatch.setattr(person_sums_module, "Bound", CountedApart)
    people = [[*own, (None, None, "a", True)] if i % 2 else own for i, own in enumerate(people)]
    with pytest.raises(AssertionError):
        check(name, people, 1, "pandas")
