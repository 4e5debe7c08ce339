"""Order statistics: quantiles that are chosen, and those read off a noisy distribution."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._errors import BadType, BadValue
from dpframe._plans import sampling
from dpframe._plans.aggregates import (
    AGGREGATES,
    AROUND,
    Aggregate,
    Cell,
    Floats,
    Interval,
    Measured,
    Output,
    Setting,
    VectorKey,
    find_no_interval,
    judge_within_bounds,
    register,
)
from dpframe._plans.sampling import About
from dpframe._statistics.base import Statistic
from dpframe._statistics.order import (
    Ranks,
    Surroundings,
    Tree,
    deviations,
    enclose,
    estimate_distribution,
    list_level_sizes,
    place_edges,
    read_quantile,
)
from dpframe._types import Array

# QuantileLevels, as they are asked for ------------------------------------------------------------


class QuantileLevels(NamedTuple):
    """Levels of the quantiles that ``q=`` names, exactly and as doubles."""

    exact: tuple[Fraction, ...]
    typed: tuple[float, ...]
    # True if ``q=`` was a list.
    several: bool


# Each level is an output of its own, and answers are points of a grid of about 4096.
_MOST_LEVELS = 2**14


def read_levels(q: Any) -> QuantileLevels:
    """Return the quantile levels that ``q=`` names, after checking that each lies within [0, 1].

    ``q`` is a number or a list of them.
    """
    if isinstance(q, str | bytes | Mapping | set | frozenset | pd.Series | pd.DataFrame):
        raise BadType(f"q must be a number in [0, 1] or a list of them, not {type(q).__name__}.")
    several = isinstance(q, Iterable) and (not isinstance(q, np.ndarray) or q.ndim > 0)
    if several:
        _validate.length(q, "q", _MOST_LEVELS)
    shares = list(q) if several else [q]
    if not shares:
        raise BadValue("q is an empty list, so nothing is asked.")
    exact = tuple(_validate.exact(share, "q") for share in shares)
    for share, level in zip(shares, exact, strict=True):
        if not 0 <= level <= 1:
            raise BadValue(f"q must lie in [0, 1], not {share}.")
    return QuantileLevels(exact, tuple(map(float, exact)), several)


_PERCENT = re.compile(r"q(\d\d?(?:\.\d{1,4})?|100)", re.ASCII)


def find_level(name: str) -> Fraction | None:
    """Return the quantile level that a name in `agg` stands for, or None for another name.

    ``"q90"`` is 90 percent, and ``"quantile"`` is 0.5, as in pandas. Others are in the catalogue.
    """
    entry = AGGREGATES.get(name)
    if entry is not None:
        return entry.level
    percent = _PERCENT.fullmatch(name)
    return None if percent is None else Fraction(percent[1]) / 100


# Beyond this number of levels a tree has the smaller error (docs/guarantees/quantiles.md).
_MOST_CHOSEN = 8


def choose_quantile_method(levels: int, method: object) -> str:
    """Return the name of the aggregate that answers quantiles: "quantile" or "tree".

    The first chooses each quantile, and the second measures a whole distribution. ``levels`` is the
    number of quantiles, which decides if ``method`` is "auto".
    """
    method = _validate.choice(method, "method", ("auto", "choose", "tree"))
    if method == "auto":
        method = "tree" if levels > _MOST_CHOSEN else "choose"
    return "tree" if method == "tree" else "quantile"


# What they are read off ---------------------------------------------------------------------------


def _make_ranks(vector: VectorKey, outputs: Sequence[Output], setting: Setting) -> Statistic:
    """Return the statistic that scores every grid point by its rank, from which quantiles are
    chosen.

    ``vector`` has the column, its bounds and the resolution of the grid. ``outputs`` have the
    levels, and the question in ``setting`` has the groups.
    """
    assert vector.expr is not None
    assert vector.bounds is not None
    levels: list[Fraction] = [out.level for out in outputs if out.level is not None]
    resolution: Any = vector.detail
    return Ranks.of(vector.expr, vector.bounds, resolution, levels, setting.query.groups)


def _make_tree(vector: VectorKey, outputs: Sequence[Output], setting: Setting) -> Statistic:
    """Return the statistic that counts values in a tree over a grid, from which all quantiles are
    read.

    ``vector`` has the column, its bounds and the resolution of the grid. The question in
    ``setting`` has the groups.
    """
    assert vector.expr is not None
    assert vector.bounds is not None
    resolution: Any = vector.detail
    return Tree.of(vector.expr, vector.bounds, resolution, setting.query.groups)


# Quantiles that are chosen ------------------------------------------------------------------------


def _mark_level(cell: Cell, out: Output, place: int, statistic: Statistic) -> Cell:
    """Return the cell with its quantile level, and its position among those of the release.

    ``out`` is the output with the level, and ``statistic`` has all levels of the release. What is
    counted around the choices is the next vector.
    """
    assert isinstance(statistic, Ranks)
    assert out.level is not None
    known = {
        "place": float(statistic.levels.index(out.level)),
        "level": float(out.level),
        AROUND: float(cell.part + 1),
    }
    return replace(cell, constants={**cell.constants, **known})


def _choose_quantile(m: Measured) -> Array:
    """Return the chosen quantile of this output for each group.

    ``m`` has the points that were chosen, a row for each level. They are sorted by level first,
    which is post-processing.
    """
    assert m.raw is not None
    return _find_points(m.cell, np.sort(m.raw, axis=0)[int(m.cell.constants["place"])])


def _enclose_choice(m: Measured, level: float) -> Interval:
    """Return the interval of a chosen quantile for each group, from the counts around the choices.

    ``m`` has the choices and these counts, and ``level`` is the confidence. The noise in the counts
    is covered. Both ends are NaN where nothing was counted.
    """
    if m.around is None or m.around.raw is None:
        return find_no_interval(m, level)
    return _find_ends(m, _enclose_by_counts(m, level))


def _enclose_population_choice(m: Measured, level: float) -> Interval:
    """Return the interval of the quantile in the population that the people were drawn from.

    ``m`` has the choices and the counts around them, and ``level`` is the confidence. The risk may
    be divided in any way between the noise and the draws, as for a tree.
    """
    if m.around is None or m.around.raw is None:
        return find_no_interval(m, level)
    risk, c = 1 - level, m.cell.constants
    most = bound_count_around(m, 1 - risk * sampling.ON_NUMBER)[1]
    low, high = np.zeros(len(most)), np.full(len(most), c["points"] - 1)
    for share in sampling.SPLITS:
        each = risk * (1 - sampling.ON_NUMBER)
        spare = sampling.bound_share_deviation(most, c["level"], each * (1 - share))
        ends = _enclose_by_counts(m, 1 - each * share, spare)
        low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
    return _find_ends(m, (low, high))


def _enclose_by_counts(
    m: Measured, level: float, spare: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """Return the lowest and the highest point of the grid that could be the quantile.

    ``m`` has noisy counts between edges around the choices. ``level`` is the confidence, and
    ``spare`` is by how many ranks of each group the quantile itself may be off.

    An edge is above the quantile if more than the share q of the values lie below the edge. From
    either end of the grid the edges are passed as long as noise cannot explain on which side they
    lie (docs/guarantees/quantiles.md#the-interval-of-a-choice).
    """
    around, c = m.around, m.cell.constants
    assert around is not None
    assert around.raw is not None
    edges, q = _list_edges(m), c["level"]
    below, terms = _add_up_around(m, edges)
    excess = below - q * below[-1:]
    variances = (1 - q) ** 2 * terms + q**2 * (terms[-1:] - terms)
    deviations_of_excess = np.sqrt(variances) * around.noise.deviation
    slack = around.noise.reach(level, len(around.raw)) * deviations_of_excess + spare
    # No quantile lies below the first edge, and none above the last one.
    passed = (excess < -slack) | (edges == 0)
    stop = np.where(passed.all(axis=0), len(passed), passed.argmin(axis=0))
    groups = np.arange(edges.shape[1])
    low = edges[stop - 1, groups]
    passed = ((excess > slack) | (edges == int(c["points"])))[::-1]
    stop = np.where(passed.all(axis=0), len(passed), passed.argmin(axis=0))
    high = edges[::-1][stop - 1, groups] - 1
    return low.astype(float), np.maximum(low, high).astype(float)


def _list_edges(m: Measured) -> Array:
    """Return the edges between which the values around the choices were counted."""
    assert m.raw is not None
    return place_edges(m.raw, int(m.cell.constants["points"]))


def _add_up_around(m: Measured, edges: Array) -> tuple[Floats, Floats]:
    """Return the noisy number of values below each edge, and how many noises are in it.

    Between two equal edges lies nothing, so their count is known to be zero and is left out.
    """
    assert m.around is not None
    assert m.around.raw is not None
    apart = np.diff(edges, axis=0) > 0
    counts = np.where(apart, m.around.raw.astype(float), 0.0)
    nothing = np.zeros((1, edges.shape[1]))
    below = np.concatenate([nothing, np.cumsum(counts, axis=0)])
    return below, np.concatenate([nothing, np.cumsum(apart, axis=0)])


def bound_count_around(m: Measured, level: float) -> tuple[Floats, Floats]:
    """Return the ends of an interval for the number of values of each group, from the counts around
    a choice."""
    assert m.around is not None
    assert m.around.raw is not None
    below, terms = _add_up_around(m, _list_edges(m))
    reach = m.around.noise.reach(level, len(m.around.raw)) * m.around.noise.deviation
    half = reach * np.sqrt(terms[-1])
    return below[-1] - half, below[-1] + half


def _bound_values(m: Measured, level: float) -> Floats:
    """Return a number that the values of each group reach, with probability ``level`` or more."""
    return bound_count_around(m, level)[0]


def _find_ends(m: Measured, places: tuple[Floats, Floats]) -> Interval:
    """Return the ends of intervals in data units, from their places on the grid.

    They enclose the answer, which may have been put in order with other levels.
    """
    answers = _choose_quantile(m)
    low, high = (_find_points(m.cell, side) for side in places)
    return np.minimum(low, answers), np.maximum(high, answers)


def enclose_by_other_levels(
    m: Measured, chosen: Sequence[float], ranks: float, level: float, about: About
) -> Interval:
    """Return the interval of a chosen quantile, from the other quantiles of the same release.

    ``chosen`` has the levels of all quantiles in the release. No choice misses its rank by more
    than ``ranks``. ``level`` is the confidence. ``about`` has the number of values n, and whether
    the population is meant.

    A quantile of a higher level, by 2 ranks or so, is certainly above the true one, and one of a
    lower level below it. The nearest such quantiles are the ends. Without one on a side, that end
    is the bound of the column. Without one on either side, or if n is not known, both ends are NaN.
    """
    assert m.raw is not None
    own, n = chosen[int(m.cell.constants["place"])], about.n
    if n is None:
        return find_no_interval(m, level)
    spare = (
        1.0
        if not about.population
        else 1.0 + float(sampling.bound_share_deviation(np.array([n]), own, (1 - level) / 2)[0])
    )
    points, groups = np.sort(m.raw, axis=0), m.raw.shape[-1]
    above = [i for i, q in enumerate(chosen) if (q - own) * n >= ranks + spare]
    below = [i for i, q in enumerate(chosen) if (own - q) * n >= ranks + spare]
    if not above and not below:
        return find_no_interval(m, level)
    low = _find_points(m.cell, points[below[-1]]) if below else np.full(groups, m.cell.lower)
    if not above:
        return low, np.full(groups, m.cell.upper)
    return low, _find_points(m.cell, points[above[0]])


# Quantiles of a noisy distribution ----------------------------------------------------------------


def _note_level(cell: Cell, out: Output, place: int, statistic: Statistic) -> Cell:
    """Return the cell with the level of its quantile."""
    assert out.level is not None
    return replace(cell, constants={**cell.constants, "level": float(out.level)})


def _measure_quantile(m: Measured) -> Array:
    """Return the quantile of each group from the estimated distribution.

    ``m`` has the noisy counts of the tree. A higher level never gives a lower value.
    """
    assert m.raw is not None
    c = m.cell.constants
    return _find_points(
        m.cell, read_quantile(estimate_distribution(m.raw, int(c["points"])), c["level"])
    )


def _enclose_quantile(m: Measured, level: float) -> Interval:
    """Return the interval of the quantile of each group: its lower and its upper ends.

    ``m`` has the noisy counts of the tree, and ``level`` is the confidence. The noise in the
    distribution is covered.
    """
    assert m.raw is not None
    c = m.cell.constants
    cumulative = estimate_distribution(m.raw, int(c["points"]))
    low, high = enclose(
        cumulative, c["level"], m.noise.reach(level, len(m.raw)) * m.noise.deviation
    )
    return _find_points(m.cell, low), _find_points(m.cell, high)


def _enclose_population_quantile(m: Measured, level: float) -> Interval:
    """Return the interval of the quantile in the population that the people were drawn from.

    ``m`` has the noisy counts of the tree, and ``level`` is the confidence.

    A part of the risk is spent on the number of values (``most`` is the largest). The rest is
    divided between the noise and the number of draws below the quantile. There is an interval for
    each of several divisions, and the result is where all of them overlap.
    """
    assert m.raw is not None
    risk, c, terms = 1 - level, m.cell.constants, len(m.raw)
    cumulative = estimate_distribution(m.raw, int(c["points"]))
    of_all = deviations(int(c["points"]), 0.0)[-1] * m.noise.deviation
    most = cumulative[-1] + of_all * m.noise.reach(1 - risk * sampling.ON_NUMBER, terms)
    low, high = np.zeros(len(most), dtype=np.intp), np.full(len(most), int(c["points"]) - 1)
    for share in sampling.SPLITS:
        each = risk * (1 - sampling.ON_NUMBER)
        spare = sampling.bound_share_deviation(most, c["level"], each * (1 - share))
        reach = m.noise.reach(1 - each * share, terms) * m.noise.deviation
        ends = enclose(cumulative, c["level"], reach, spare)
        low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
    return _find_points(m.cell, low), _find_points(m.cell, high)


def _expect_rank_error(m: Measured, level: float = 0.95) -> float:
    """Return by how many ranks a quantile read off a noisy distribution may miss.

    ``m`` has the noise and the grid, and ``level`` is the confidence.
    """
    c = m.cell.constants
    # At the worst point, for noisy counts of deviation 1. The counts are nodes of a tree, and all
    # of its nodes are in the release.
    worst = deviations(int(c["points"]), c["level"]).max()
    return (
        float(worst)
        * m.noise.reach(level, sum(list_level_sizes(int(c["points"]))))
        * m.noise.deviation
    )


def _find_points(cell: Cell, places: Array) -> Floats:
    """Return the values in data units of positions on the grid of a quantile.

    ``cell`` has the grid, and ``places`` has the positions.
    """
    with np.errstate(over="ignore"):
        points = np.ldexp(
            cell.constants["low"] + places.astype(float), -int(cell.constants["exponent"])
        )
    return np.asarray(np.clip(points, cell.lower, cell.upper) + 0.0)


# Entries ------------------------------------------------------------------------------------------

_QUANTILE = Aggregate(
    name="quantile",
    doc="Quantiles of clipped values.",
    vector=lambda out: VectorKey(_make_ranks, 6, out.expr, out.bounds, out.resolution),
    value=_choose_quantile,
    interval=_enclose_choice,
    verbs=("quantile",),
    pandas="quantile",
    level=Fraction(1, 2),
    needs_bounds=True,
    of_durations=True,
    of_times=True,
    picks=True,
    surroundings=Surroundings.of,
    least_values=_bound_values,
    adjust=_mark_level,
    rank_error_text="at most {r:.4g} values too many lie below the answer, and above it",
    judging_scale=judge_within_bounds,
    drawn=True,
    population=_enclose_population_choice,
)

register(
    _QUANTILE,
    Aggregate(
        name="tree",
        doc="Quantiles of a noisy distribution of clipped values.",
        vector=lambda out: VectorKey(_make_tree, 6, out.expr, out.bounds, out.resolution),
        value=_measure_quantile,
        interval=_enclose_quantile,
        pandas="quantile",
        needs_bounds=True,
        of_durations=True,
        of_times=True,
        adjust=_note_level,
        rank_error_text="within ± {r:.4g} ranks",
        ranks=_expect_rank_error,
        judging_scale=judge_within_bounds,
        drawn=True,
        population=_enclose_population_quantile,
    ),
)


def _name_level(
    name: str, level: Fraction, doc: str, *functions: Callable[..., object]
) -> Aggregate:
    """Return the catalogue entry of a quantile with a name of its own, such as the median.

    ``level`` is its level, ``doc`` its description, and ``functions`` are those of Python and numpy
    that stand for it in `agg`.
    """
    return replace(
        _QUANTILE,
        name=name,
        doc=doc,
        verbs=(name,),
        pandas=name,
        named_in_agg=True,
        functions=functions,
        level=level,
    )


# The least and the greatest value belong to one person, so these are quantiles near them.
register(
    _name_level("median", Fraction(1, 2), "Median of clipped values.", np.median),
    _name_level("min", Fraction(1, 100), "Quantile of level 0.01, near the least.", min, np.min),
    _name_level(
        "max", Fraction(99, 100), "Quantile of level 0.99, near the greatest.", max, np.max
    ),
)

# The levels that have names of their own.
ORDERS = {
    name: entry.level
    for name, entry in AGGREGATES.items()
    if entry.level is not None and entry.named_in_agg
}
