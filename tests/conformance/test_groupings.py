"""Groups by listed combinations, with the rest of the keys, and by periods: counted as the definition says, and one
person moves them no further than is claimed, whichever grouping it is. Broken copies are caught.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe._expr import Column
from dpframe._groups import periods as _times
from dpframe._groups.combinations import RestBy, TupleBy, Tuples
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._groups.periods import TimeBy
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import Output
from dpframe._plans.plan import arrange
from dpframe._questions.question import Query
from dpframe._sizes import SIZES
from dpframe._validate import Bounds
from dpframe.engines import groups as engines_groups_module
from dpframe.engines.pandas import PandasEngine
from tests.conformance.frames import within

KEY = b"12345678"
STATES, SEXES = ["a", "b", "c", "d", None], ["f", "m", None]
PAIRS = [("b", "m"), ("a", "f"), ("d", None)]
FIRST = pd.Timestamp("2024-01-01")
SPAN = _times.span_of(("2024-01-15", "2024-04-30"), "t")
MONTHS = pd.date_range("2024-01-31", periods=4, freq="ME")
BOUNDS = Bounds(-3.0, 5.0)
AGGREGATES = ["size", "people", "sum", "mean", "nunique"]
GROUPINGS = ["tuples", "rest", "periods", "periods and rest"]

rows_of_one = st.lists(
    st.tuples(
        st.sampled_from(STATES),
        st.sampled_from(SEXES),
        st.none() | st.integers(0, 150),
        st.integers(-5, 7),
    ),
    min_size=1,
    max_size=12,
)


def frame_of(people: list[tuple[int, list[Any]]], order: int = 0) -> pd.DataFrame:
    rows = [(i, *row) for i, own in people for row in own]
    rows = [rows[i] for i in np.random.default_rng(order).permutation(len(rows))]
    frame = pd.DataFrame(rows, columns=["id", "state", "sex", "t", "x"])
    frame["t"] = FIRST + pd.to_timedelta(frame["t"].astype(float), "D")
    return frame.astype(
        {"id": "int64", "state": "str", "sex": "category", "t": "datetime64[us]", "x": float}
    )


def leaves_of(frame: pd.DataFrame) -> dict[str, Column]:
    return {c: Column.of(i, c, frame.dtypes.iloc[i]) for i, c in enumerate(frame.columns)}


def by_of(name: str, leaves: dict[str, Column]) -> tuple[Any, ...]:
    state, sex, t = leaves["state"], leaves["sex"], leaves["t"]
    rest = RestBy(KeyBy(state, keys_for(["b", "a"], state, "state")), "else")
    rule = _times.rule_of(pd.Grouper(key="t", freq="ME"))
    periods = TimeBy(t, "ME", SPAN, _times.periods_of(rule, SPAN, None, "us", "t"))
    both = TupleBy.of([state, sex], Tuples.of(PAIRS, [state, sex], ["state", "sex"]))
    return {
        "tuples": (both,),
        "rest": (rest,),
        "periods": (periods,),
        "periods and rest": (periods, rest),
    }[name]


def group_of(name: str, row: tuple[Any, ...]) -> int | None:
    """By hand: the place of a row's group."""
    state, sex, day, _ = row
    rest = None if state is None else {"b": 0, "a": 1}.get(state, 2)
    if name == "rest":
        return rest
    if name == "tuples":
        return PAIRS.index((state, sex)) if (state, sex) in PAIRS else None
    moment = None if day is None else FIRST + pd.Timedelta(days=day)
    inside = moment is not None and pd.Timestamp("2024-01-15") <= moment < pd.Timestamp(
        "2024-05-01"
    )
    month = moment.month - 1 if inside and moment is not None else None
    if name == "periods" or month is None:
        return month
    return None if rest is None else 3 * month + rest


def asked(aggregate: str, name: str, leaves: dict[str, Column]) -> Query:
    expr = {"size": None, "people": leaves["id"]}.get(aggregate, leaves["x"])
    pair = BOUNDS if aggregate in ("sum", "mean") else None
    return Query((Output("n", aggregate, expr, pair),), None, by_of(name, leaves))


def integers(
    aggregate: str, name: str, frame: pd.DataFrame, unit: Unit
) -> tuple[Any, list[list[int]]]:
    query = asked(aggregate, name, leaves_of(frame))
    ((statistic, _),) = arrange(query, unit, None)
    found = PandasEngine(frame, KEY).reduce(query, set(statistic.primitives), unit)
    return statistic.of_person(unit, query.groups), statistic.integers(found).tolist()


@pytest.mark.parametrize("name", GROUPINGS)
@settings(max_examples=20, deadline=None)
@given(rows=rows_of_one, block=st.sampled_from([3, 2**16]))
def test_every_row_is_in_the_group_that_the_definition_says(name, rows, block):
    frame = frame_of([(i, [row]) for i, row in enumerate(rows)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SIZES, "block", block)
        buckets = PandasEngine(frame).groups.find_buckets(by_of(name, leaves_of(frame)))
    assert buckets is not None
    assert buckets.tolist() == [
        1 + place if (place := group_of(name, rows[i])) is not None else 0 for i in frame["id"]
    ]


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", GROUPINGS)
@settings(max_examples=20, deadline=None)
@given(
    others=st.lists(rows_of_one, max_size=3), first=rows_of_one, second=rows_of_one,
    aggregate=st.sampled_from(AGGREGATES), limits=st.tuples(st.integers(1, 3), st.integers(1, 4)), rows=st.booleans(),
)  # fmt: skip
def test_one_person_moves_them_no_further_than_claimed(
    name, relation, others, first, second, aggregate, limits, rows
):
    if rows and aggregate != "people":  # a row a person
        unit, first, second = Unit(relation), first[:1], second[:1]
    else:
        unit = Unit(relation, (Column.of(0, "id", np.dtype("int64")),), *limits)
    crowd = list(enumerate(others))
    claim, one = integers(aggregate, name, frame_of([(99, first), *crowd], 1), unit)
    _, two = integers(
        aggregate, name, frame_of([*crowd, (77, second)] if unit.replaces else crowd, 2), unit
    )
    assert within(claim, one, two)


def test_frames_without_rows_have_empty_groups():
    for name in GROUPINGS:
        for aggregate in AGGREGATES:
            unit = Unit("add-remove", (Column.of(0, "id", np.dtype("int64")),), 2, 2)
            _, found = integers(aggregate, name, frame_of([]), unit)
            assert not np.any(found)


def test_keys_that_have_become_one_are_one_group_of_a_person():
    own = [(s, "f", 20, 1) for s in "cd" for _ in range(2)] + [("a", "f", 20, 1), ("b", "f", 20, 1)]
    unit = Unit("add-remove", (Column.of(0, "id", np.dtype("int64")),), 2, 3)
    claim, one = integers("size", "rest", frame_of([(1, own)]), unit)
    assert one == [[1, 1, 2]]  # four rows of the rest, of which two count
    assert within(claim, one, [[0, 0, 0]])


def rest_with_nulls(listed: Any, null: Any, groups: int) -> Any:
    return np.where(listed == 0, groups, listed)


def tuples_by_first_column(levels: Any, tuples: Any) -> Any:
    return np.where(levels[0] <= len(tuples), levels[0], 0)


@pytest.mark.parametrize(
    ("name", "function", "broken"),
    [
        ("rest", "rest_buckets", rest_with_nulls),
        ("tuples", "tuple_buckets", tuples_by_first_column),
    ],
)
def test_broken_groups_are_not_the_definition(name, function, broken, monkeypatch):
    rows = [(state, sex, 20, 1) for state in STATES for sex in SEXES]
    frame = frame_of([(i, [row]) for i, row in enumerate(rows)])

    def wrong() -> bool:
        buckets = PandasEngine(frame).groups.find_buckets(by_of(name, leaves_of(frame)))
        assert buckets is not None
        return buckets.tolist() != [
            1 + g if (g := group_of(name, rows[i])) is not None else 0 for i in frame["id"]
        ]

    assert not wrong()
    monkeypatch.setattr(engines_groups_module, function, broken)
    assert wrong()
