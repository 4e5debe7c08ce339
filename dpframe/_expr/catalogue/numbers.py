"""Functions of numbers, by the names that numpy has for them, in float64.

A null stays null. Where a function has no value the result is null, and where it overflows it is
infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dpframe._errors import BadValue
from dpframe._expr._base import Expr, Lookup
from dpframe._expr._build import CALLS, constant
from dpframe._expr._ranges import Interval, outward, union
from dpframe._expr.catalogue.ops import OPS, Call, Op, call, call_function, list_ops, register

_Pair = tuple[float, float]
_ULPS = 8  # further than numpy's own functions, and Python's, are from the exact value


# ---- bounds --------------------------------------------------------------------------------------


def _of_ends(travel: Callable[..., Interval]) -> Callable[[Call, Lookup], Interval]:
    """Return a function that computes bounds of a call from the bounds of its operands.

    ``travel`` takes the bounds of each operand and returns those of the result. The bounds are None
    if those of one operand are not known.
    """

    def interval(e: Call, lookup: Lookup) -> Interval:
        """Return bounds of a call; None if one operand has no bounds.

        ``e`` is the call, and ``lookup`` returns the bounds of a column.
        """
        ends = [x.interval(lookup) for x in e.operands]
        return None if None in ends else travel(*ends)

    return interval


def _monotone(
    f: Callable[[float], float],
    least: float = -math.inf,
    most: float = math.inf,
    floor: float = -math.inf,
) -> Callable[[_Pair], Interval]:
    """Return a function that computes bounds of ``f(x)`` from bounds of ``x``.

    ``f`` only rises, or only falls. It has values for x between `least` and `most`, and none below
    the `floor`. There are no bounds if an end is infinite.
    """

    def travel(ends: _Pair) -> Interval:
        """Return bounds of ``f(x)`` for numbers x between two ends; None if one is infinite.

        ``f`` is monotone, so its values at the ends are the bounds. They are moved outwards by a
        few doubles, since ``f`` may be rounded.
        """
        low, high = max(ends[0], least), min(ends[1], most)
        if low > high:
            return None
        try:
            a, b = sorted((f(low), f(high)))
            found = outward(Fraction(a), Fraction(b), ulps=_ULPS)
        except (OverflowError, ValueError):  # an end is infinite, or beyond doubles
            return None
        return found and (max(found[0], floor), max(found[1], floor))

    return travel


def _exact(f: Callable[[float], Any]) -> Callable[[_Pair], Interval]:
    return lambda ends: (float(f(ends[0])), float(f(ends[1])))


def _lie_within(low: float, high: float) -> Callable[..., Interval]:
    return lambda *_: (low, high)


def _sign(x: float) -> float:
    return float((x > 0) - (x < 0))


def _bound_smaller(a: _Pair, b: _Pair) -> Interval:
    return (min(a[0], b[0]), min(a[1], b[1]))


def _bound_larger(a: _Pair, b: _Pair) -> Interval:
    return (max(a[0], b[0]), max(a[1], b[1]))


def _bound_hypotenuse(a: _Pair, b: _Pair) -> Interval:
    """Return bounds of the hypotenuse of a triangle, from the bounds of both legs.

    The result is None if it may be infinite.
    """
    low = math.hypot(*(0.0 if x[0] <= 0 <= x[1] else min(map(abs, x)) for x in (a, b)))
    high = math.hypot(*(max(map(abs, x)) for x in (a, b)))
    found = outward(Fraction(low), Fraction(high), ulps=_ULPS) if math.isfinite(high) else None
    return found and (max(found[0], 0.0), found[1])


# ---- values --------------------------------------------------------------------------------------


def _minimum(x: Any, y: Any) -> Any:
    """Return the smaller of each two numbers, of zeros the negative one; NaN beside a NaN.

    numpy may return either of two zeros, by the place of the row.
    """
    found = np.minimum(x, y)
    zeros = np.flatnonzero(found == 0)  # both numbers are zero there, or the other one is larger
    if len(zeros):
        negative = np.signbit(x[zeros]) | np.signbit(y[zeros])
        found[zeros] = np.where(negative, -0.0, 0.0)
    return found


def _maximum(x: Any, y: Any) -> Any:
    """Return the larger of each two numbers, of zeros the positive one; NaN beside a NaN."""
    found = np.maximum(x, y)
    zeros = np.flatnonzero(found == 0)  # both numbers are zero there, or the other one is smaller
    if len(zeros):
        negative = np.signbit(x[zeros]) & np.signbit(y[zeros])
        found[zeros] = np.where(negative, -0.0, 0.0)
    return found


def _skip_nulls(f: Callable[[Any, Any], object]) -> Callable[[Any, Any], Any]:
    """Return a function of two arrays that takes the other number in place of a NaN.

    ``f`` computes the result of two numbers.
    """

    def value(x: Any, y: Any) -> Any:
        """Return the results of ``f``, where the other number stands in place of a NaN."""
        no_x, no_y = np.isnan(x), np.isnan(y)
        if no_x.any() or no_y.any():
            x, y = np.where(no_x, y, x), np.where(no_y, x, y)
        return f(x, y)

    return value


# ---- entries -------------------------------------------------------------------------------------


def _is_null_with_one(e: Call) -> bool:
    return any(x.nullable for x in e.operands)


def _is_null_with_all(e: Call) -> bool:
    return all(x.nullable for x in e.operands)


def _keep_integers(e: Call) -> bool:
    return all(x.integral for x in e.operands)


def _build_rounding(name: str) -> Callable[[Expr], Expr]:
    """Return a function that builds the expression of a rounding, such as ``floor(x)``.

    A whole number stays the expression that it is. ``name`` is the catalogue's name of it, such as
    "np.floor".
    """

    def build(x: Expr) -> Expr:
        """Return the rounded number, or a whole number as it is."""
        return x if x.integral and x.kind == "number" else call(name, x)

    return build


def _build_pair(name: str) -> Callable[[Expr, object], Expr]:
    """Return a function that builds the expression of a function of two numbers.

    ``name`` is the catalogue's name of it, such as "np.hypot". The second number may be a constant.
    """

    def build(x1: Expr, x2: object) -> Expr:
        """Return the call with two numbers; the second may be a constant."""
        return call(name, x1, x2 if isinstance(x2, Expr) else constant(x2))

    return build


number_op: Callable[..., Op] = partial(
    Op,
    kind="number",
    of=("number", "bool"),
    nulls=_is_null_with_one,
    whole=lambda e: False,
    identity=("function", "name", "x"),
)
pair_op: Callable[..., Op] = partial(number_op, identity=("pairwise", "name", "x", "y"))

# Functions that have a value for each number.
register(
    *[
        number_op(
            name=f"np.{name}",
            value=getattr(np, name),
            interval=_of_ends(travel),
            doc=doc,
            examples=examples,
        )
        for name, travel, doc, examples in [
            (
                "exp",
                _monotone(math.exp, floor=0.0),
                "Return e to the power of the number.",
                [(0.0, 1.0), (1000.0, math.inf)],
            ),
            (
                "exp2",
                _monotone(math.exp2, floor=0.0),
                "Return 2 to the power of the number.",
                [(3.0, 8.0)],
            ),
            (
                "expm1",
                _monotone(math.expm1, floor=-1.0),
                "Return e to the power of the number, minus 1.",
                [(0.0, 0.0)],
            ),
            ("cbrt", _monotone(math.cbrt), "Return the cube root.", [(0.0, 0.0), (-1.0, -1.0)]),
            (
                "arctan",
                _monotone(math.atan),
                "Return the angle that has this tangent.",
                [(0.0, 0.0)],
            ),
            ("sinh", _monotone(math.sinh), "Return the hyperbolic sine.", [(0.0, 0.0)]),
            ("tanh", _monotone(math.tanh), "Return the hyperbolic tangent.", [(0.0, 0.0)]),
            (
                "arcsinh",
                _monotone(math.asinh),
                "Return the number that has this hyperbolic sine.",
                [(0.0, 0.0)],
            ),
            ("degrees", _monotone(math.degrees), "Return an angle in degrees.", [(math.pi, 180.0)]),
            ("radians", _monotone(math.radians), "Return an angle in radians.", [(180.0, math.pi)]),
        ]
    ]
)
# Functions that have none for some numbers.
register(
    *[
        number_op(
            name=f"np.{name}",
            value=getattr(np, name),
            interval=_of_ends(travel),
            nulls=lambda e: True,
            doc=doc,
            examples=examples,
        )
        for name, travel, doc, examples in [
            (
                "log",
                _monotone(math.log, least=0),
                "Return the natural logarithm.",
                [(1.0, 0.0), (-1.0, None), (0.0, -math.inf)],
            ),
            (
                "log2",
                _monotone(math.log2, least=0),
                "Return the logarithm to base 2.",
                [(8.0, 3.0), (-1.0, None)],
            ),
            (
                "log10",
                _monotone(math.log10, least=0),
                "Return the logarithm to base 10.",
                [(1.0, 0.0), (-1.0, None)],
            ),
            (
                "log1p",
                _monotone(math.log1p, least=-1),
                "Return the natural logarithm of the number plus 1.",
                [(0.0, 0.0), (-2.0, None)],
            ),
            ("sin", _lie_within(-1.0, 1.0), "Return the sine.", [(0.0, 0.0), (math.inf, None)]),
            ("cos", _lie_within(-1.0, 1.0), "Return the cosine.", [(0.0, 1.0), (math.inf, None)]),
            ("tan", lambda _: None, "Return the tangent.", [(0.0, 0.0), (math.inf, None)]),
            (
                "arcsin",
                _monotone(math.asin, -1, 1),
                "Return the angle that has this sine.",
                [(0.0, 0.0), (2.0, None)],
            ),
            (
                "arccos",
                _monotone(math.acos, -1, 1),
                "Return the angle that has this cosine.",
                [(1.0, 0.0), (2.0, None)],
            ),
        ]
    ]
)
register(
    *[
        number_op(
            name=f"np.{name}",
            value=getattr(np, name),
            interval=_of_ends(travel),
            whole=lambda e: True,
            build=_build_rounding(f"np.{name}"),
            doc=doc,
            examples=examples,
            sql=sql,
        )
        for name, travel, doc, examples, sql in [
            (
                "floor",
                _exact(math.floor),
                "Return the largest whole number that is not larger.",
                [(1.5, 1.0), (-1.5, -2.0)],
                {"duckdb": "FLOOR({x})", "postgresql": "FLOOR({x})"},
            ),
            (
                "ceil",
                _exact(math.ceil),
                "Return the smallest whole number that is not smaller.",
                [(1.5, 2.0), (-1.5, -1.0)],
                {"duckdb": "CEIL({x})", "postgresql": "CEIL({x})"},
            ),
            (
                "trunc",
                _exact(math.trunc),
                "Return the number without what stands behind its point.",
                [(1.5, 1.0), (-1.5, -1.0)],
                {"duckdb": "TRUNC({x})", "postgresql": "TRUNC({x})"},
            ),
        ]
    ]
)
register(
    number_op(
        name="np.sign",
        value=np.sign,
        interval=_of_ends(_exact(_sign)),
        whole=lambda e: True,
        doc="Return 1 of a positive number, -1 of a negative one, and a zero as it is.",
        examples=[(2.0, 1.0), (-2.0, -1.0), (0.0, 0.0)],
        sql="(CASE WHEN {x} > 0 THEN 1e0 WHEN {x} < 0 THEN -1e0 WHEN {x} = 0 THEN 0e0 END)",
    ),
    number_op(
        name="np.sqrt",
        value=np.sqrt,
        interval=_of_ends(_monotone(math.sqrt, least=0, floor=0.0)),
        nulls=lambda e: True,
        doc="Return the square root.",
        examples=[(4.0, 2.0), (-1.0, None)],
        sql={
            "duckdb": "(CASE WHEN {x} >= 0 THEN SQRT({x}) END)",
            "postgresql": "(CASE WHEN {x} >= 0 THEN SQRT({x}) END)",
            "spark": "(CASE WHEN {x} >= 0 THEN SQRT({x}) END)",
        },
    ),
)
# Functions of two numbers.
register(
    *[
        pair_op(
            name=f"np.{name}",
            value=value,
            interval=_of_ends(travel),
            nulls=nulls,
            whole=_keep_integers,
            build=_build_pair(f"np.{name}"),
            doc=doc,
            examples=examples,
        )
        for name, value, travel, nulls, doc, examples in [
            (
                "minimum",
                _minimum,
                _bound_smaller,
                _is_null_with_one,
                "Return the smaller of two numbers; null with one of them.",
                [(1.0, 2.0, 1.0), (None, 1.0, None)],
            ),
            (
                "maximum",
                _maximum,
                _bound_larger,
                _is_null_with_one,
                "Return the larger of two numbers; null with one of them.",
                [(1.0, 2.0, 2.0), (None, 1.0, None)],
            ),
            (
                "fmin",
                _skip_nulls(_minimum),
                union,
                _is_null_with_all,
                "Return the smaller of two numbers; of a null the other one.",
                [(1.0, 2.0, 1.0), (None, 1.0, 1.0)],
            ),
            (
                "fmax",
                _skip_nulls(_maximum),
                union,
                _is_null_with_all,
                "Return the larger of two numbers; of a null the other one.",
                [(1.0, 2.0, 2.0), (None, 1.0, 1.0)],
            ),
        ]
    ]
)
register(
    pair_op(
        name="np.hypot",
        value=np.hypot,
        interval=_of_ends(_bound_hypotenuse),
        build=_build_pair("np.hypot"),
        doc="Return the hypotenuse of a triangle with these legs.",
        examples=[(3.0, 4.0, 5.0), (None, 1.0, None)],
    ),
    pair_op(
        name="np.arctan2",
        value=np.arctan2,
        build=_build_pair("np.arctan2"),
        interval=_of_ends(lambda a, b: outward(Fraction(-math.pi), Fraction(math.pi), ulps=_ULPS)),
        doc="Return the angle of a point, by its y and its x.",
        examples=[(0.0, 1.0, 0.0), (None, 1.0, None)],
    ),
)


def number_function(label: str, *operands: Any) -> Expr:
    """Return the expression of ``np.label(x)``, such as the logarithm of a column.

    It refuses a function that the catalogue does not have.
    """
    name = f"np.{label}"
    if name not in OPS:
        raise BadValue(f"{label} is not offered. Functions are {', '.join(list_ops('np'))}.")
    return call_function(name, *operands)


def find_function(label: str) -> Callable[..., Expr] | None:
    """Return what builds the expression of a function by its name, as ``log`` in ``log(x)``.

    It is called for expressions in strings. The result is None if there is no such function.
    """
    if label in CALLS:
        return CALLS[label]
    name = next((name for name in (label, f"np.{label}") if name in OPS), None)
    if name is None:
        return None
    return OPS[name].build or (lambda x: call(name, x))
