"""The rows that a model learns from, on one public integer grid: each row a function of its own
cells.

Features are clipped to public bounds and scaled by them to [-1, 1], in steps of 2**-15, with an
intercept of 1 in front. A row whose features have a larger L2 norm than ``norm`` is scaled back;
the norm is checked on the integers. A row with a null in a feature or in the target does not count,
nor one with another label than the two classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.columns import Vector
from dpframe._expr import Expr
from dpframe._groups.keys import Keys
from dpframe._groups.unit import Unit
from dpframe._statistics.engine import Engine
from dpframe._validate import Bounds

Floats = NDArray[np.float64]
UNIT = 2**15  # steps from 0 to 1
WEIGHT_BITS = 40


class Scaling(NamedTuple):
    """Public numbers that take [lower, upper] to [-1, 1]."""

    middle: float
    half: float

    @staticmethod
    def of(bounds: Bounds) -> Scaling:
        return Scaling(bounds.lower / 2 + bounds.upper / 2, bounds.upper / 2 - bounds.lower / 2)


def scale_to_units(vector: Vector, bounds: Bounds) -> Floats:
    """Return a column's values, clipped and scaled to whole numbers from -UNIT to UNIT; NaN for
    nulls. A column that its bounds make constant is 0."""
    middle, half = Scaling.of(bounds)
    with np.errstate(all="ignore"):
        centred = (
            np.clip(np.array(vector.values, dtype=np.float64), bounds.lower, bounds.upper) - middle
        )
        centred = centred / half * UNIT if half > 0 else centred * 0.0
        centred = np.clip(np.rint(centred), -UNIT, UNIT)
    null = vector.nulls()
    if null is not None:
        centred[null] = np.nan
    return centred + 0.0


def shrunk(rows: Floats, limit: int) -> Floats:
    """Return rows of whole numbers, shrunk so that each has a squared norm of at most ``limit``.
    The comparison is exact, so that the sensitivity is."""
    squares = (rows * rows).sum(axis=1)  # whole numbers below 2**53: exact
    over = squares > limit
    if over.any():
        factor = np.sqrt(limit / squares[over]) * (1 - 2.0**-40)
        rows[over] = np.trunc(rows[over] * factor[:, None])
        # Each entry has shrunk by at least the factor, so this finds nothing; the proof rests on it
        # all the same.
        rows[(rows * rows).sum(axis=1) > limit] = 0.0
    return rows


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a model: a number with bounds, or one of two classes."""

    identity: ClassVar[tuple[str, ...]] = ("target", "expr", "bounds", "classes")

    expr: Expr
    bounds: Bounds | None
    classes: Keys | None

    def values(self, vector: Vector) -> Floats:
        """Return the target of each row, from -UNIT to UNIT; NaN where it is null or no listed
        class."""
        if self.classes is None:
            assert self.bounds is not None
            return scale_to_units(vector, self.bounds)
        place = self.classes.finder()(vector).astype(np.int64)
        return np.array([np.nan, -UNIT, UNIT])[place]


class DesignRows(NamedTuple):
    """The rows ``x``, with the intercept in the first column, and ``y``, in whole steps; and the
    person of each, from 0 on."""

    x: Floats
    y: Floats
    people: NDArray[np.int64] | None

    def counts(self) -> NDArray[np.int64]:
        """Return the number of rows that the person of each row has."""
        assert self.people is not None
        counts: NDArray[np.int64] = np.bincount(self.people)[self.people]
        return counts

    def weights(self, limit: int) -> Floats | None:
        """Return a weight for each row, so that each person's weights add up to ``limit`` at most.

        A weight is 1, or limit / rows for a person with more rows, rounded down to WEIGHT_BITS
        bits. Return None if each row is a person.
        """
        if self.people is None:
            return None
        k = self.counts()
        over = np.maximum(k, limit)
        shares: Floats = (
            limit * 2**WEIGHT_BITS // over
        ) / 2.0**WEIGHT_BITS  # limits are at most 2**20
        return shares


@dataclass(frozen=True)
class Design:
    """The choice of rows, features and target, and the largest norm of a row's features."""

    identity: ClassVar[tuple[str, ...]] = ("design", "where", "features", "target", "norm")

    where: Expr | None
    features: tuple[tuple[Expr, Bounds], ...]
    target: Target
    norm: float | None

    @property
    def parameters(self) -> int:
        return len(self.features) + 1

    @cached_property
    def features_squared(self) -> int:
        """Largest squared norm of a row's features, in whole steps of 1 / UNIT."""
        widest = len(self.features) * UNIT**2
        return (
            widest if self.norm is None else max(1, min(widest, math.floor(self.norm**2 * UNIT**2)))
        )

    @property
    def squared(self) -> int:
        """The largest squared norm of a row with its intercept, in steps."""
        return self.features_squared + UNIT**2

    @cached_property
    def length(self) -> float:
        """The largest norm of a scaled row with its intercept, rounded up."""
        return math.sqrt(self.squared) / UNIT * (1 + 1e-12)

    def read(self, engine: Engine, unit: Unit) -> DesignRows:
        """Return the rows to fit a model to, as exact private numbers.

        Features and target are scaled to whole numbers from -UNIT to UNIT, and rows are shrunk to
        the largest norm. Rows with nulls, outside of the filter, or without a person are left out.
        The engine yields the rows slice by slice.
        """
        exprs = [e for e, _ in self.features] + [self.target.expr]
        x, y = np.empty((0, self.parameters)), np.empty(0)
        owners: list[NDArray[np.int64]] = []
        done = 0
        for piece in engine.slices(exprs, self.where, unit):
            if not done and not len(x):
                x, y = np.empty((piece.total, self.parameters)), np.empty(piece.total)
            target = self.target.values(piece.vectors[-1])
            counted = ~np.isnan(target)
            block = x[
                done : done + len(target)
            ]  # rows that do not count are written over by the next
            block[:, 0] = UNIT
            for j, (_, bounds) in enumerate(self.features, start=1):
                column = scale_to_units(piece.vectors[j - 1], bounds)
                counted &= column == column
                block[:, j] = column
            if piece.mask is not None:
                counted &= piece.mask
            if piece.people is not None:
                counted &= piece.people >= 0
                owners.append(piece.people[counted])
            if not counted.all():
                target = target[counted]
                block[: len(target)] = block[counted]
            if self.norm is not None:
                block[: len(target), 1:] = shrunk(
                    block[: len(target), 1:].copy(), self.features_squared
                )
            y[done : done + len(target)] = target
            done += len(target)
        people = None
        if unit.people:
            owned = np.concatenate(owners) if owners else np.empty(0, dtype=np.int64)
            people = np.unique(owned, return_inverse=True)[1].astype(np.int64)
        return DesignRows(x[:done], y[:done], people)
