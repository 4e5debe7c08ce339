"""Functions of numbers on numpy: arithmetic, logarithms and their like, the smaller of two, limits.

*Formal guarantee.* The value of a row is a function of that row, whatever rows stand beside it and
wherever it stands. numpy may choose its code by the place of a row: most rows go through vector
instructions, the last few through a plain loop, and an array of one row may go another way than a
longer one. Nothing here is left to that choice:

- ``+ - * /``, the square root, rounding and comparisons have one result by IEEE 754, whatever code
  computes them;
- of two zeros of both signs numpy may return either as the smaller or the larger one, so the
  catalogue sets the sign of a zero; its functions that leave a NaN out are given none, since beside
  one that signals numpy may return a number or a NaN;
- every other function is computed by `compute_alike`, whose calls have one length and one layout,
  so that no row is among the last few.

The premise that is left: one vector instruction does the same to each of its numbers, and a
function that branches on several numbers gives each the value that it has among others. The bits of
a NaN may differ, and nothing reads them: a NaN is a null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dpframe import _expr as ex
from dpframe._cells.columns import Vector, as_floats, fits
from dpframe._types import Array

if TYPE_CHECKING:
    from dpframe.engines.expressions import Block

LENGTH = 2**10  # numbers in each call of `compute_alike`: a multiple of every vector
_ALIGNED = 64  # bytes: the widest vector


def compute_alike(f: Callable[..., Any], *operands: Any) -> Array:
    """Return what a numpy function makes of each row, in calls of one length and memory layout.

    numpy may compute the last rows of an array in another way. Blocks that are padded with 1.0 give
    a row the same bits everywhere. A constant operand stays a scalar.
    """
    n = next(len(x) for x in operands if np.ndim(x))
    rooms = [_allocate_room() if np.ndim(x) else x for x in operands]
    made, found = _allocate_room(), np.empty(n)
    for start in range(0, n, LENGTH):
        size = min(LENGTH, n - start)
        for room, x in zip(rooms, operands, strict=True):
            if np.ndim(x):
                room[:size] = x[start : start + size]
                room[size:] = 1.0
        f(*rooms, out=made)
        found[start : start + size] = made[:size]
    return found


def _allocate_room() -> Array:
    """Return an uninitialized array for one call of `compute_alike`, aligned for vector
    instructions."""
    room = np.empty(8 * LENGTH + _ALIGNED, dtype=np.uint8)
    begin = -room.ctypes.data % _ALIGNED
    return room[begin : begin + 8 * LENGTH].view(np.float64)


# ---- arithmetic ----------------------------------------------------------------------------------

_EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
_COMPUTED: dict[str, Callable[..., Any]] = {"//": np.floor_divide, "%": np.mod, "**": np.power}


def compute_arithmetic(b: Block, e: ex.Arithmetic) -> Vector:
    """Return two numbers of each row joined by an arithmetic operator, as doubles.

    The result of a null is null, also for ``1 ** null``. ``e`` is the expression, and ``b`` has the
    rows to evaluate it on.
    """
    x, y = b.floats(e.left), b.floats(e.right)
    constant = np.ndim(x) == np.ndim(y) == 0
    if constant:
        x = np.full(b.n, x)
    found = _EXACT[e.op](x, y) if e.op in _EXACT else compute_alike(_COMPUTED[e.op], x, y)
    if e.op == "**":  # numpy returns 1 for 1**NaN and NaN**0
        found = np.where(np.isnan(x) | np.isnan(y), np.nan, found)
    return Vector("number", found)


def compute_unary(b: Block, e: ex.Unary) -> Vector:
    x = as_floats(b.vector(e.x))
    return Vector("number", np.negative(x) if e.op == "-" else np.abs(x))


def round_numbers(b: Block, e: ex.Round) -> Vector:
    return Vector("number", np.round(as_floats(b.vector(e.x)), e.digits))


def clip(b: Block, e: ex.Clip) -> Vector:
    """Return numbers moved between two bounds; a missing bound does not clip.

    Integers stay integers if the bounds fit their dtype. A zero that equals a bound keeps its sign.
    ``e`` is the expression, and ``b`` has the rows to evaluate it on.
    """
    v = b.vector(e.x)
    ends = [None if c is None else c.value for c in (e.lower, e.upper)]
    if v.values.dtype.kind in "iu" and all(fits(c, v.values.dtype) for c in ends):
        return Vector("number", np.clip(v.values, *ends), v.null)
    x = as_floats(v)
    low, high = (None if c is None else np.float64(c) for c in ends)
    found: Array = np.clip(x, low, high)
    if 0 in ends:
        np.copyto(found, x, where=x == 0)  # a zero that equals a bound keeps its sign
    return Vector("number", found)


# ---- functions of the catalogue ------------------------------------------------------------------


def call_numbers(b: Block, e: ex.Call) -> Vector:
    """Return what a function of the catalogue `dpframe._expr.OPS` makes of one or two numbers in
    each row.

    Null in an operand gives null. ``e`` is the expression, and ``b`` has the rows to evaluate it
    on.
    """
    f = ex.OPS[e.op].value
    assert f is not None
    columns = [as_floats(b.vector(x)) for x in e.operands]
    if not isinstance(f, np.ufunc):  # IEEE 754 fixes the results of such functions
        return Vector("number", f(*columns))
    found = compute_alike(f, *columns)
    if len(columns) == 2:  # numpy may return a number for a NaN beside an infinity
        found = np.where(np.isnan(columns[0]) | np.isnan(columns[1]), np.nan, found)
    return Vector("number", found)
