"""Conditionals on arrays: one of two values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpframe import _expr as ex
from dpframe._cells.codec import TICKS, unit_of
from dpframe._cells.columns import (
    LAST,
    NAT,
    Vector,
    as_floats,
    fits,
    narrow,
    objects,
    plain,
)
from dpframe._types import Array

if TYPE_CHECKING:
    from dpframe.engines.expressions import Block


def choose_sides(b: Block, e: ex.If) -> Vector:
    """Return one of two values in each row, by a condition: the first where it is true.

    Whole numbers stay whole if one integer dtype can hold both sides. Otherwise they become
    doubles. ``e`` is the expression, and ``b`` has the rows to evaluate it on.
    """
    hit = b.truth(e.condition)
    sides = [
        None if side.nullable and isinstance(side, ex.Constant) else side for side in (e.x, e.y)
    ]
    if sides[0] is None or sides[1] is None:  # one side is the constant null
        kept = b.vector(e.x if sides[0] is not None else e.y)
        return _set_null(kept, ~hit if sides[0] is not None else hit)
    x, y = (_evaluate_side(b, side, e.kind) for side in (e.x, e.y))
    if x.categories is not None and y.categories is not None:
        size = len(x.categories)
        categories = b.per_category(e, lambda one, two: objects([*one, *two]), x, y)
        moved = np.where(y.values < 0, -1, y.values.astype(np.int64) + size)
        return Vector(
            e.kind, narrow(np.where(hit, x.values, moved), len(categories)), None, categories
        )
    if e.kind in ("time", "duration"):
        return _of_ticks(e, hit, x, y)
    null = None
    if e.kind == "bool":
        values = np.where(hit, x.values, y.values)
    else:
        values, whole = _numbers(e, hit, x, y)
        if not whole:
            return Vector("number", values)
    if x.null is not None or y.null is not None:
        blank = np.zeros(b.n, dtype=bool)
        null = np.where(
            hit, blank if x.null is None else x.null, blank if y.null is None else y.null
        )
    return Vector(e.kind, values, null)


def _evaluate_side(b: Block, side: ex.Expr, kind: ex.Kind) -> Vector:
    """Return the values of one side of a conditional.

    A constant beside labels becomes a label, whatever its type. ``b`` has the rows to evaluate on.
    """
    if kind == "label" and isinstance(side, ex.Constant):
        return Vector("label", np.zeros(b.n, dtype=np.int8), None, objects([plain(side.value)]))
    return b.vector(side)


def _set_null(v: Vector, gone: Array) -> Vector:
    """Return the values with null in the rows of the mask ``gone``."""
    if v.categories is not None:
        return Vector(v.kind, np.where(gone, v.values.dtype.type(-1), v.values), None, v.categories)
    if v.values.dtype.kind in "mM":
        ticks = np.where(gone, NAT, v.values.view(np.int64))
        return Vector(v.kind, ticks.view(v.values.dtype))
    if v.values.dtype.kind == "f":
        return Vector(v.kind, np.where(gone, np.nan, v.values), v.null)
    return Vector(v.kind, v.values, gone if v.null is None else v.null | gone)


def _numbers(e: ex.If, hit: Array, x: Vector, y: Vector) -> tuple[Array, bool]:
    """Return the number that each row takes from ``x`` or ``y``, and whether they are integers.

    They are integers if a dtype holds those of both sides, and else doubles with NaN for null.
    ``hit`` is the mask of rows that take ``x``. ``e`` is the conditional expression.
    """
    constants = [side.value if isinstance(side, ex.Constant) else None for side in (e.x, e.y)]
    one, two = (v.values.view(np.int8) if v.values.dtype == bool else v.values for v in (x, y))
    if all(v.dtype.kind in "iu" for v in (one, two)):
        if constants[0] is not None and fits(constants[0], two.dtype):
            one = one.astype(two.dtype)
        if constants[1] is not None and fits(constants[1], one.dtype):
            two = two.astype(one.dtype)
        if np.result_type(one, two).kind in "iu":
            return np.where(hit, one, two), True
    return np.where(hit, as_floats(x), as_floats(y)), False


def _of_ticks(e: ex.If, hit: Array, x: Vector, y: Vector) -> Vector:
    """Return the chosen times or durations, in the finer resolution of the two sides.

    A time that the finer resolution cannot hold becomes null. ``hit`` is the mask of rows that take
    ``x``. ``e`` is the conditional expression.
    """
    units = [unit_of(v.values) for v in (x, y)]
    unit = max(units, key=lambda u: TICKS[u])
    ticks = [
        scale_ticks(v.values.view(np.int64), TICKS[unit] // TICKS[u])
        for v, u in zip((x, y), units, strict=True)
    ]
    letter = "M" if e.kind == "time" else "m"
    return Vector(e.kind, np.where(hit, *ticks).view(f"{letter}8[{unit}]"))


def scale_ticks(ticks: Array, ratio: int) -> Array:
    """Return integer times in a unit that is ``ratio`` times finer.

    A time that overflows 64 bits in that unit becomes null.
    """
    if ratio == 1:
        return ticks
    most = LAST // ratio
    inside = (ticks >= -most) & (ticks <= most)
    return np.where(inside, np.where(inside, ticks, 0) * ratio, NAT)
