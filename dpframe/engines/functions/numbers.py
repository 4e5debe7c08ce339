"""Functions of numbers on numpy: arithmetic, logarithms and their like, the smaller of two, limits.

*Formal guarantee.* The value of a row is a function of that row, whatever rows stand beside it and
wherever it stands. numpy may choose its code by the place of a row: most rows go through vector
instructions, the last few through a plain loop, and an array of one row may go another way than a
longer one. Nothing here is left to that choice:

- ``+ - * /``, the square root, rounding and comparisons have one result by IEEE 754, whatever code
  computes them;
- of two zeros of both signs numpy may return either as the smaller or the larger one, so the sign
  of a zero is set here; the functions that leave a NaN out are given none, since beside one that
  signals numpy may return a number or a NaN;
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
from dpframe._cells.columns import Array, Vector, as_floats, fits

if TYPE_CHECKING:
    from dpframe.engines.expressions import Block

LENGTH = 2**10  # numbers in each call of `compute_alike`: a multiple of every vector
_ALIGNED = 64  # bytes: the widest vector


def compute_alike(f: Callable[..., Any], *operands: Any) -> Array:
    """Apply a function to each row, in calls of one length and one memory layout. A constant stays
    a scalar."""
    n = next(len(x) for x in operands if np.ndim(x))
    rooms = [_allocate_aligned() if np.ndim(x) else x for x in operands]
    made, found = _allocate_aligned(), np.empty(n)
    for start in range(0, n, LENGTH):
        size = min(LENGTH, n - start)
        for room, x in zip(rooms, operands, strict=True):
            if np.ndim(x):
                room[:size] = x[start : start + size]
                room[size:] = 1.0
        f(*rooms, out=made)
        found[start : start + size] = made[:size]
    return found


def _allocate_aligned() -> Array:
    """Return room for the numbers of one call, aligned as vectors are."""
    room = np.empty(8 * LENGTH + _ALIGNED, dtype=np.uint8)
    begin = -room.ctypes.data % _ALIGNED
    return room[begin : begin + 8 * LENGTH].view(np.float64)


# ---- arithmetic -------------------------------------------------------------------------------------------

_EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
_COMPUTED: dict[str, Callable[..., Any]] = {"//": np.floor_divide, "%": np.mod, "**": np.power}


def compute_arithmetic(b: Block, e: ex.Arithmetic) -> Vector:
    """Return a number of each row, computed from two by an arithmetic operator."""
    x, y = b.floats(e.left), b.floats(e.right)
    constant = np.ndim(x) == np.ndim(y) == 0
    if constant:
        x = np.full(b.n, x)
    found = _EXACT[e.op](x, y) if e.op in _EXACT else compute_alike(_COMPUTED[e.op], x, y)
    if e.op == "**":  # numpy holds 1**NaN and NaN**0 for 1
        found = np.where(np.isnan(x) | np.isnan(y), np.nan, found)
    return Vector("number", found)


def compute_unary(b: Block, e: ex.Unary) -> Vector:
    x = as_floats(b.vector(e.x))
    return Vector("number", np.negative(x) if e.op == "-" else np.abs(x))


def round_numbers(b: Block, e: ex.Round) -> Vector:
    return Vector("number", np.round(as_floats(b.vector(e.x)), e.digits))


def clip(b: Block, e: ex.Clip) -> Vector:
    """Move numbers between limits. A zero that equals a limit keeps its sign."""
    v = b.vector(e.x)
    ends = [None if c is None else c.value for c in (e.lower, e.upper)]
    if v.values.dtype.kind in "iu" and all(fits(c, v.values.dtype) for c in ends):
        return Vector("number", np.clip(v.values, *ends), v.null)
    x = as_floats(v)
    low, high = (None if c is None else np.float64(c) for c in ends)
    found: Array = np.clip(x, low, high)
    if 0 in ends:
        np.copyto(found, x, where=x == 0)  # a zero is within limits that are zero
    return Vector("number", found)


# ---- functions by the names of numpy ----------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[..., Any]] = {op: getattr(np, op) for op in ex.FUNCTIONS}


def function(b: Block, e: ex.Function) -> Vector:
    """Return a function of numpy of one number."""
    return Vector("number", compute_alike(_FUNCTIONS[e.op], as_floats(b.vector(e.x))))


def pairwise(b: Block, e: ex.Pairwise) -> Vector:
    """Return a function of two numbers of a row. A constant is written out for each row."""
    x, y = (as_floats(b.vector(side)) for side in (e.left, e.right))
    return Vector("number", _PAIRS[e.op](x, y))


def _minimum(x: Array, y: Array) -> Array:
    """Return the smaller number, of zeros the negative one; NaN beside a NaN."""
    found = np.minimum(x, y)
    zeros = np.flatnonzero(found == 0)  # both numbers are zero there, or the other one is larger
    if len(zeros):
        negative = np.signbit(x[zeros]) | np.signbit(y[zeros])
        found[zeros] = np.where(negative, -0.0, 0.0)
    return found


def _maximum(x: Array, y: Array) -> Array:
    """Return the larger number, of zeros the positive one; NaN beside a NaN."""
    found = np.maximum(x, y)
    zeros = np.flatnonzero(found == 0)  # both numbers are zero there, or the other one is smaller
    if len(zeros):
        negative = np.signbit(x[zeros]) & np.signbit(y[zeros])
        found[zeros] = np.where(negative, -0.0, 0.0)
    return found


def _without_nulls(f: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """Return the function that takes the other side of a NaN."""

    def compute(x: Array, y: Array) -> Array:
        no_x, no_y = np.isnan(x), np.isnan(y)
        if no_x.any() or no_y.any():
            x, y = np.where(no_x, y, x), np.where(no_y, x, y)
        return f(x, y)

    return compute


def _hypotenuse(x: Array, y: Array) -> Array:
    """Return the length of the hypotenuse. Beside a NaN it is NaN, where numpy has infinity beside
    an infinity."""
    return np.where(np.isnan(x) | np.isnan(y), np.nan, compute_alike(np.hypot, x, y))


_PAIRS: dict[str, Callable[[Array, Array], Array]] = {
    "minimum": _minimum,
    "maximum": _maximum,
    "fmin": _without_nulls(_minimum),
    "fmax": _without_nulls(_maximum),
    "hypot": _hypotenuse,
    "arctan2": lambda x, y: compute_alike(np.arctan2, x, y),
}
