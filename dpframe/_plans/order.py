"""Order statistics: quantiles that are chosen, and those read off a noisy distribution."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe import _validate
from dpframe._errors import BadType, BadValue
from dpframe._expr import Expr
from dpframe._plans import sampling
from dpframe._plans.aggregates import (
    Aggregate,
    Cell,
    Floats,
    Interval,
    Measured,
    Output,
    Setting,
    Vector,
    aggregation,
)
from dpframe._plans.sampling import About
from dpframe._statistics.base import Reading, Statistic
from dpframe._statistics.order import (
    Ranks,
    Tree,
    deviations,
    enclose,
    estimated,
    level_sizes,
    read_off,
)
from dpframe._validate import Bounds

# Levels, as they are asked for ---------------------------------------------------------------------------


class Levels(NamedTuple):
    """``q=`` as it was typed, exactly, and whether it was a list."""

    exact: tuple[Fraction, ...]
    typed: tuple[float, ...]
    several: bool


_MOST_LEVELS = 2**14  # each is an output of its own, and answers are points of a grid of some 4096


def levels_of(q: Any) -> Levels:
    """One level or a list of them, each within [0, 1]."""
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
    return Levels(exact, tuple(map(float, exact)), several)


# Order statistics by name, as levels of a quantile. A least or greatest value is one person's, so
# these are near them.
ORDERS = {"median": Fraction(1, 2), "min": Fraction(1, 100), "max": Fraction(99, 100)}
_PERCENT = re.compile(r"q(\d\d?(?:\.\d{1,4})?|100)", re.ASCII)


def level_named(name: str) -> Fraction | None:
    """The level of an order statistic that `agg` may name: ``"median"``, ``"max"``, ``"quantile"``
    (as pandas has it, 0.5), or ``"q90"`` for 90 percent. None for another name."""
    if name == "quantile":
        return ORDERS["median"]
    percent = _PERCENT.fullmatch(name)
    return ORDERS.get(name) if percent is None else Fraction(percent[1]) / 100


_MOST_CHOSEN = 8  # levels; beyond them a tree has the smaller error (docs/guarantees/quantiles.md)


def how_for(levels: int, method: Any) -> str:
    """The aggregate that answers: "quantile", a choice, or "tree", a reading of the whole
    distribution."""
    method = _validate.choice(method, "method", ("auto", "choose", "tree"))
    if method == "auto":
        method = "tree" if levels > _MOST_CHOSEN else "choose"
    return "tree" if method == "tree" else "quantile"


# Vectors and aggregates ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfPoints(Vector):
    """The number of values on each point of a grid."""

    place = 6

    expr: Expr
    bounds: Bounds
    resolution: float | None


class OfRanks(OfPoints):
    """Every point by its ranks, from which quantiles are chosen."""

    __slots__ = ()

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        levels: list[Fraction] = [out.level for out in outputs if out.level is not None]
        return Ranks.of(self.expr, self.bounds, self.resolution, levels, setting.query.groups)


class OfTree(OfPoints):
    """A noisy distribution, off which quantiles are read."""

    __slots__ = ()

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        return Tree.of(self.expr, self.bounds, self.resolution, setting.query.groups)


@aggregation("quantile")
class Quantile(Aggregate):
    """The points that were chosen, in the order of their levels: sorted, which is
    post-processing."""

    needs_bounds = True
    of_durations = True
    of_times = True
    drawn = True
    picks = True
    promise = "at most {r:.4g} values too many lie below the answer, and above it"

    def vector_of(self, out: Output) -> Vector:
        return OfRanks(*out.clipped[0], out.resolution)

    def cell(
        self, out: Output, part: int, place: int, statistic: Statistic, reading: Reading
    ) -> Cell:
        assert isinstance(statistic, Ranks)
        assert out.level is not None
        cell = super().cell(out, part, place, statistic, reading)
        return replace(
            cell, constants={**cell.constants, "place": float(statistic.levels.index(out.level))}
        )

    def value(self, m: Measured) -> NDArray[Any]:
        assert m.raw is not None
        return _points(m.cell, np.sort(m.raw, axis=0)[int(m.cell.constants["place"])])

    def interval(self, m: Measured, level: float) -> Interval:
        assert m.raw is not None
        nothing = np.full(m.raw.shape[-1], np.nan)  # chosen, not measured
        return nothing, nothing

    def between(
        self, m: Measured, chosen: Sequence[float], ranks: float, level: float, about: About
    ) -> Interval:
        """The interval of a quantile by the other levels that were ``chosen`` with it, none of
        which misses by more ``ranks``.

        At a point v of level q' at least q' n - ranks values lie up to it. If these are more than
        lie below the quantile of level q, that is up to v; and likewise from below. Where no level
        is so far off on one side, that end is the bound; NaN where none is.
        """
        assert m.raw is not None
        own, n = chosen[int(m.cell.constants["place"])], about.n
        if n is None:
            return self.interval(m, level)
        spare = (
            1.0
            if not about.population
            else 1.0 + float(sampling.deviations_of_share(np.array([n]), own, (1 - level) / 2)[0])
        )
        points, groups = np.sort(m.raw, axis=0), m.raw.shape[-1]
        above = [i for i, q in enumerate(chosen) if (q - own) * n >= ranks + spare]
        below = [i for i, q in enumerate(chosen) if (own - q) * n >= ranks + spare]
        if not above and not below:
            return self.interval(m, level)
        low = _points(m.cell, points[below[-1]]) if below else np.full(groups, m.cell.lower)
        return low, _points(m.cell, points[above[0]]) if above else np.full(groups, m.cell.upper)

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None


@aggregation("tree")
class TreeQuantile(Aggregate):
    """Read off an estimate of the whole distribution, which is monotone, so that levels come back
    in order."""

    needs_bounds = True
    of_durations = True
    of_times = True
    drawn = True
    promise = "within ± {r:.4g} ranks"

    def vector_of(self, out: Output) -> Vector:
        return OfTree(*out.clipped[0], out.resolution)

    def cell(
        self, out: Output, part: int, place: int, statistic: Statistic, reading: Reading
    ) -> Cell:
        assert out.level is not None
        cell = super().cell(out, part, place, statistic, reading)
        return replace(cell, constants={**cell.constants, "level": float(out.level)})

    def value(self, m: Measured) -> NDArray[Any]:
        assert m.raw is not None
        c = m.cell.constants
        return _points(m.cell, read_off(estimated(m.raw, int(c["points"])), c["level"]))

    def interval(self, m: Measured, level: float) -> Interval:
        assert m.raw is not None
        c = m.cell.constants
        cumulative = estimated(m.raw, int(c["points"]))
        low, high = enclose(
            cumulative, c["level"], m.noise.reach(level, len(m.raw)) * m.noise.deviation
        )
        return _points(m.cell, low), _points(m.cell, high)

    def population(self, m: Measured, level: float) -> Interval:
        """The points that no way to divide the risk excludes, between the noise and how many draws
        lie below the quantile."""
        assert m.raw is not None
        risk, c, terms = 1 - level, m.cell.constants, len(m.raw)
        cumulative = estimated(m.raw, int(c["points"]))
        of_all = deviations(int(c["points"]), 0.0)[-1] * m.noise.deviation
        most = cumulative[-1] + of_all * m.noise.reach(1 - risk * sampling.ON_NUMBER, terms)
        low, high = np.zeros(len(most), dtype=np.intp), np.full(len(most), int(c["points"]) - 1)
        for share in sampling.SPLITS:
            each = risk * (1 - sampling.ON_NUMBER)
            spare = sampling.deviations_of_share(most, c["level"], each * (1 - share))
            reach = m.noise.reach(1 - each * share, terms) * m.noise.deviation
            ends = enclose(cumulative, c["level"], reach, spare)
            low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
        return _points(m.cell, low), _points(m.cell, high)

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None  # in values; in ranks it is known

    def yard(self, cell: Cell, n: float = math.inf) -> tuple[float, float]:
        return (cell.upper - cell.lower) / 10, cell.upper - cell.lower

    def ranks(self, m: Measured, level: float = 0.95) -> float:
        c = m.cell.constants
        worst = deviations(int(c["points"]), c["level"]).max()
        return (
            float(worst)
            * m.noise.reach(level, sum(level_sizes(int(c["points"]))))
            * m.noise.deviation
        )


def _points(cell: Cell, places: NDArray[Any]) -> Floats:
    """Points of a grid in data units."""
    with np.errstate(over="ignore"):
        points = np.ldexp(
            cell.constants["low"] + places.astype(float), -int(cell.constants["exponent"])
        )
    return np.asarray(np.clip(points, cell.lower, cell.upper) + 0.0)
