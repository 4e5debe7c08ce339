"""One evaluation on numpy: the rows, what is known of them already, and values on scales that compare exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from dpframe import _expr as ex
from dpframe._cells.codec import TICKS, ticks_of, unit_of
from dpframe._cells.columns import Array, Bools, Vector

ColumnOf = Callable[[ex.Column], Vector]
# What an expression makes of the categories of its operands, kept while those stay the same.
Memo = dict[tuple[ex.Expr, str], tuple[tuple[Array, ...], Any]]
# How each kind of node is evaluated.
Nodes = Mapping[type[ex.Expr], Callable[["Block", Any], Vector]]

NAT = np.iinfo(np.int64).min
LAST = np.iinfo(np.int64).max


class Block:
    """One evaluation: the rows, and what has been found for them already."""

    def __init__(self, expr: ex.Expr, column: ColumnOf, rows: slice, memo: Memo | None, nodes: Nodes):
        leaf = next(iter(expr.columns()), None)
        whole = len(column(leaf)) if leaf is not None else max(rows.stop or 0, 0)
        self.n = len(range(*rows.indices(whole)))
        self._column, self._rows = column, rows
        self._nodes = nodes
        self._memo: Memo = {} if memo is None else memo
        self._seen: dict[int, Vector] = {}

    def vector(self, e: ex.Expr) -> Vector:
        found = self._seen.get(id(e))
        if found is None:
            found = self._seen[id(e)] = self._nodes[type(e)](self, e)
        return found

    def leaf(self, e: ex.Column) -> Vector:
        return self._column(e).rows(self._rows)

    def truth(self, e: ex.Expr) -> Bools:
        """May share memory with the column, so it is only to be read."""
        v = self.vector(e)
        return v.values if v.null is None else v.values & ~v.null

    def floats(self, e: ex.Expr) -> Any:
        """float64 with NaN for null; a constant stays a scalar."""
        return np.float64(e.value) if isinstance(e, ex.Constant) else as_floats(self.vector(e))

    def per_category(self, e: ex.Expr, make: Callable[..., Any], *operands: Vector, part: str = "") -> Any:
        """`make` of the operands' categories, remembered for as long as they are the same arrays."""
        categories = tuple(v.categories for v in operands if v.categories is not None)
        kept = self._memo.get((e, part))
        if kept is None or not all(a is b for a, b in zip(kept[0], categories, strict=True)):
            kept = self._memo[e, part] = (categories, make(*categories))
        return kept[1]


def as_floats(v: Vector) -> Array:
    values = v.values.astype(np.float64, copy=v.null is not None)
    if v.null is not None:
        values[v.null] = np.nan
    return values


def bools(values: Any) -> Vector:
    return Vector("bool", values)


def look_up(table: Array, codes: Array) -> Array:
    """A table with one entry per category, and a last one for null, which is what code -1 finds."""
    return table.take(codes, mode="wrap")


# ---- values that compare exactly --------------------------------------------------------------------------


def exact(v: Vector) -> Array:
    """Timestamps as ticks and bools as 0 and 1, so that three kinds compare as integers."""
    if v.kind == "time":
        return v.values.view(np.int64)
    return v.values.view(np.int8) if v.values.dtype == bool else v.values


def in_units(c: ex.Constant, v: Vector) -> Any:
    """The constant as a number on the scale of `exact`."""
    if not isinstance(c.value, pd.Timestamp):
        return c.value
    ticks, unit = ticks_of(c.value)
    return Fraction(ticks * TICKS[unit_of(v.values)], TICKS[unit])


def fits(value: Any, dtype: Any) -> bool:
    """Can the integer dtype hold it? Types and constants decide, so every row gets the same answer."""
    return value is None or (isinstance(value, int) and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max)
