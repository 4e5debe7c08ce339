"""Aggregates that count: rows, values, people, distinct values, and answers to questions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpframe._groups.unit import LIMIT
from dpframe._plans import sampling
from dpframe._plans.aggregates import (
    Aggregate,
    Cell,
    Interval,
    Measured,
    Output,
    Setting,
    VectorKey,
    enclose_sum,
    expect_sum_error,
    find_sum_deviation,
    measure_sum,
    register,
)
from dpframe._plans.moments import column_vector
from dpframe._statistics.base import Statistic
from dpframe._statistics.counts import (
    DistinctCount,
    PeopleAround,
    PeopleBy,
    PersonCount,
    Questions,
    RowCount,
)

# What they are read off ---------------------------------------------------------------------------


DISTINCT = "nunique"  # the name that pandas has for a count of distinct values


def make_row_count(vector: VectorKey, outputs: Sequence[Output], setting: Setting) -> Statistic:
    """Return the statistic that counts the rows of each group."""
    return RowCount()


def _make_person_count(vector: VectorKey, outputs: Sequence[Output], setting: Setting) -> Statistic:
    """Return the statistic that counts the people of each group."""
    return PersonCount()


def _make_distinct_count(
    vector: VectorKey, outputs: Sequence[Output], setting: Setting
) -> Statistic:
    """Return the statistic that counts the distinct values of a column in each group.

    ``vector`` has the column. All functions of the catalogue that make statistics have the same
    parameters.
    """
    assert vector.expr is not None
    return DistinctCount(vector.expr)


def _make_questions(vector: VectorKey, outputs: Sequence[Output], setting: Setting) -> Statistic:
    """Return the statistic that counts the rows where each of several conditions holds."""
    return Questions(tuple(out.expr for out in outputs if out.expr is not None))


def _make_row_numbers(vector: VectorKey, outputs: Sequence[Output], setting: Setting) -> Statistic:
    """Return the statistic that counts people by ranges of their number of rows."""
    return PeopleBy("rows", LIMIT.bit_length())


def _make_group_numbers(
    vector: VectorKey, outputs: Sequence[Output], setting: Setting
) -> Statistic:
    """Return the statistic that counts people by ranges of their number of groups."""
    return PeopleBy("groups", (setting.query.groups - 1).bit_length() + 1)


def _make_magnitudes(vector: VectorKey, outputs: Sequence[Output], setting: Setting) -> Statistic:
    """Return the statistic that counts people by ranges of the magnitude of a value."""
    assert vector.expr is not None
    return PeopleAround(vector.expr)


ROWS = VectorKey(make_row_count, 2)
_PEOPLE = VectorKey(_make_person_count, 3)
_QUESTIONS = VectorKey(_make_questions, 5)


def _read_values(out: Output) -> VectorKey:
    """Return the key of a column without bounds, or of the rows if no column is named."""
    return ROWS if out.expr is None else column_vector(out.expr)


def _read_distinct_values(out: Output) -> VectorKey:
    """Return the key of the distinct values of a column, or of the rows if no column is named."""
    return ROWS if out.expr is None else VectorKey(_make_distinct_count, 4, out.expr)


# How they are read off it -------------------------------------------------------------------------


def _count_size(cell: Cell) -> dict[str, float]:
    """Return the sum that counts rows, or people, and else values."""
    return {"size" if "size" in cell.functionals else "n": 1.0}


def _count_values(cell: Cell) -> dict[str, float]:
    """Return the sum that counts values, and rows if no column is named."""
    return {"n" if "n" in cell.functionals else "size": 1.0}


def _read_answer(cell: Cell) -> dict[str, float]:
    """Return the one sum that a cell has."""
    return {next(iter(cell.functionals)): 1.0}


def _keep_size(cell: Cell, out: Output, place: int, statistic: Statistic) -> Cell:
    """Return the cell with the row count alone, if its statistic is of another column.

    The number of values of that column would leave out its nulls.
    """
    if getattr(statistic, "expr", out.expr) == out.expr:
        return cell
    return replace(cell, functionals={"size": cell.functionals.get("size", cell.functionals["n"])})


def _keep_answer(cell: Cell, out: Output, place: int, statistic: Statistic) -> Cell:
    """Return the cell with the count of its own condition, out of several in one statistic.

    ``place`` is the position of the output among those of the statistic.
    """
    name = f"true{place}"
    return replace(cell, functionals={name: cell.functionals[name]})


def _judge_count(cell: Cell, n: float = math.inf) -> tuple[float, float]:
    """Return the scales by which a count is judged as noise: no least size, and twice the largest
    count.

    ``n`` is the largest count. Noise is then as large as the count itself.
    """
    return 0.0, 2 * n


def _enclose_expected_count(m: Measured, level: float) -> Interval:
    """Return the interval of the number to expect in another table drawn from the same population.

    ``level`` is the confidence.
    """
    return sampling.enclose_expected_count(lambda each: enclose_sum(m, each), level)


# Entries ------------------------------------------------------------------------------------------

_COUNT: dict[str, Any] = {
    "value": measure_sum,
    "interval": enclose_sum,
    "error": expect_sum_error,
    "deviation": find_sum_deviation,
    "judging_scale": _judge_count,
    "adjust": _keep_size,
    "combination": _count_size,
    "always_whole": True,
    "ratio": False,
}
_DRAWN_COUNT: dict[str, Any] = {**_COUNT, "drawn": True, "population": _enclose_expected_count}

register(
    Aggregate(
        name="size",
        doc="Number of rows.",
        vector=lambda out: ROWS,
        verbs=("size",),
        pandas="size",
        named_in_agg=True,
        found_at_once=True,
        counts="rows",
        least_shown=1.0,  # the key of nobody is never shown
        **_DRAWN_COUNT,
    ),
    Aggregate(
        name="count",
        doc="Number of values that are not null.",
        vector=_read_values,
        verbs=("count",),
        pandas="count",
        named_in_agg=True,
        found_at_once=True,
        counts="values",
        least_shown=0.0,
        **{**_DRAWN_COUNT, "combination": _count_values},
    ),
    Aggregate(
        name="people",
        doc="Number of people.",
        vector=lambda out: _PEOPLE,
        found_at_once=True,
        counts="people",
        least_shown=1.0,  # the key of nobody is never shown
        **_DRAWN_COUNT,
    ),
    Aggregate(
        name=DISTINCT,
        doc="Number of distinct values that are not null.",
        vector=_read_distinct_values,
        verbs=(DISTINCT,),
        pandas=DISTINCT,
        named_in_agg=True,
        counts="distinct values",
        **_COUNT,
    ),
    Aggregate(
        name="true",
        doc="Number of rows where one of several conditions holds.",
        vector=lambda out: _QUESTIONS,
        counts="answers",
        **{**_DRAWN_COUNT, "adjust": _keep_answer, "combination": _read_answer},
    ),
    Aggregate(
        name="people by rows",
        doc="Number of people in each range of numbers of rows.",
        vector=lambda out: VectorKey(_make_row_numbers, 7, out.expr, detail=out),
        counts="people in bins",
        **_DRAWN_COUNT,
    ),
    Aggregate(
        name="people by groups",
        doc="Number of people in each range of numbers of groups.",
        vector=lambda out: VectorKey(_make_group_numbers, 7, out.expr, detail=out),
        counts="people in bins",
        **_DRAWN_COUNT,
    ),
    Aggregate(
        name="people by magnitude",
        doc="Number of people in each range of magnitudes of a value.",
        vector=lambda out: VectorKey(_make_magnitudes, 7, out.expr, detail=out),
        counts="people in bins",
        **_DRAWN_COUNT,
    ),
)
