"""Aggregates that are chosen: the candidates with the largest scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpframe._errors import BadValue
from dpframe._groups.keys import BinBy
from dpframe._plans.aggregates import (
    AROUND,
    Aggregate,
    Cell,
    Floats,
    Measured,
    Output,
    ScoreChoice,
    Setting,
    VectorKey,
    find_no_interval,
    refuse_interval,
    register,
)
from dpframe._plans.moments import are_whole
from dpframe._statistics.base import MAGNITUDE_BITS, VALUE_BITS, Grid, Statistic, place_on_grid
from dpframe._statistics.counts import Questions, RowCount, ValueCount
from dpframe._statistics.order import LEAF_CEILING
from dpframe._statistics.scores import Revenue, Scores, Votes
from dpframe._types import Array
from dpframe._validate import Bounds

# What they are read off ---------------------------------------------------------------------------


def _make_scores(vector: VectorKey, outputs: Sequence[Output], setting: Setting) -> Statistic:
    """Return the statistic that a selection is made by: a score for each candidate.

    The scores are the row counts of the groups, or one sum for each of ``outputs``.
    """
    first, exprs = outputs[0], tuple(out.expr for out in outputs if out.expr is not None)
    if first.bounds is not None:
        grid = Grid.for_width(first.bounds, VALUE_BITS)
        whole = grid.exponent > 0 and all(are_whole(e, first.bounds) for e in exprs)
        # The totals of people are scaled, and rounded on the grid.
        if whole and not setting.unit.people:
            grid = Grid(first.bounds, 0)
        return Scores(exprs, grid, first.moves)
    return Questions(exprs) if exprs else RowCount()


def _make_revenue(vector: VectorKey, outputs: Sequence[Output], setting: Setting) -> Statistic:
    """Return the statistic with the revenue that each candidate price would bring.

    The question in ``setting`` groups people's bids into bins between the prices.
    """
    by = setting.query.by[0]
    assert isinstance(by, BinBy)
    prices = by.edges[:-1]
    whole = all(p.is_integer() for p in prices)
    grid = Grid.for_magnitude(Bounds(0.0, prices[-1]), MAGNITUDE_BITS, whole)
    return Revenue(by.expr, tuple(place_on_grid(p, grid.exponent) for p in prices), grid)


def _make_votes(vector: VectorKey, outputs: Sequence[Output], setting: Setting) -> Statistic:
    """Return the statistic that counts the rows of each group by their values, to choose the most
    common ones.

    ``vector`` has the column, and the question in ``setting`` has the groups. More counts than fit
    in memory are refused.
    """
    assert vector.expr is not None
    assert vector.bounds is not None
    votes = Votes(vector.expr, int(vector.bounds.upper) + 1)
    cells = votes.values * setting.query.groups
    if cells > LEAF_CEILING:
        raise BadValue(
            f"that would look at {cells} numbers: {votes.values} keys in {setting.query.groups} "
            "groups. At most "
            f"{LEAF_CEILING} fit: list fewer keys."
        )
    return votes


# How they are read off it -------------------------------------------------------------------------


def _drop_functionals(cell: Cell, out: Output, place: int, statistic: Statistic) -> Cell:
    """Return the cell without weights of sums, because its answer is the position of a
    candidate."""
    return replace(cell, functionals={})


def _mark_round(cell: Cell, out: Output, place: int, statistic: Statistic) -> Cell:
    """Return the cell with the number of the round in which its answer is chosen.

    ``place`` is the position of the output ``out`` among those of the statistic. The count of its
    group is the next vector.
    """
    known = {"place": float(place % out.rounds), AROUND: float(cell.part + 1)}
    return replace(cell, functionals={}, constants={**cell.constants, **known})


def _read_choice(m: Measured) -> Array:
    """Return the positions of the candidates that a selection has chosen.

    ``m`` has the released integers, which are these positions.
    """
    assert m.raw is not None
    choice: Array = m.raw[0]
    return choice


def _read_round(m: Measured) -> Array:
    """Return the position of the value that was chosen in this output's round, for each group.

    ``m`` has the released integers, with a row for each round.
    """
    assert m.raw is not None
    choice: Array = m.raw[int(m.cell.constants["place"])]
    return choice


def _count_voters(votes: Statistic) -> Statistic:
    """Return the number of rows that any of the listed values has, to judge a choice among these."""
    assert isinstance(votes, Votes)
    return ValueCount(votes.expr)


def _bound_voters(m: Measured, level: float) -> Floats:
    """Return a number that the rows of each group reach, with probability ``level`` or more."""
    assert m.around is not None
    assert m.around.raw is not None
    return np.asarray(m.around.raw[0].astype(float) - m.around.noise.quantile(level))


# Entries ------------------------------------------------------------------------------------------

_SCORES, _REVENUE = VectorKey(_make_scores, 0), VectorKey(_make_revenue, 0)

_ARGMAX = Aggregate(
    name="argmax",
    doc="Key that most rows have.",
    vector=lambda out: _SCORES,
    value=_read_choice,
    interval=refuse_interval,
    verbs=("argmax",),
    always_whole=True,
    choice=ScoreChoice("count", of_rows=True),
    adjust=_drop_functionals,
)

register(
    _ARGMAX,
    replace(
        _ARGMAX,
        name="top",
        doc="Keys that most rows have.",
        verbs=("top",),
        choice=ScoreChoice("count", several=True, of_rows=True),
    ),
    replace(
        _ARGMAX,
        name="choose",
        doc="Candidate with the largest utility.",
        verbs=("choose",),
        choice=ScoreChoice("utility", ranged=True),
    ),
    replace(
        _ARGMAX,
        name="revenue",
        doc="Price with the largest revenue.",
        vector=lambda out: _REVENUE,
        verbs=(),
        choice=ScoreChoice("revenue", ranged=True),
    ),
    Aggregate(
        name="most",
        doc="Values that most rows of each group have, one after the other.",
        vector=lambda out: VectorKey(_make_votes, 6, out.expr, out.bounds, out.rounds),
        value=_read_round,
        interval=find_no_interval,
        always_whole=True,
        picks=True,
        keyed=True,
        surroundings=_count_voters,
        least_values=_bound_voters,
        adjust=_mark_round,
        rank_error_text="the count of the choice is within {r:.4g} of the largest of its group",
    ),
)
