"""Functions of numpy on tracked columns: ``np.log(p["x"])``, ``np.where(p["x"] > 1, "a", "b")``.

numpy asks the arguments of a function whether they have one of their own (its protocols
``__array_ufunc__`` and ``__array_function__``). Here stands which of them look at one row, and what
they are as expressions. Others are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, NotOffered, Refused, with_article
from dpframe._expr import Expr
from dpframe._frame.columns.operators import OPERATOR_UFUNCS
from dpframe._frame.selection import (
    BoundColumn,
    expression_of,
    frame_of_column,
    name_of,
    selection_of,
    with_expression,
)
from dpframe._frame.tracked import read_expression, refuse_use
from dpframe._frame.verbs import summaries
from dpframe._plans.aggregates import list_numpy_names
from dpframe._types import Arguments


def _ask_finite(x: Expr) -> Expr:
    above = _expr.compare(">", x, _expr.constant(-np.inf))
    return _expr.logical_and(above, _expr.compare("<", x, _expr.constant(np.inf)))


# Operators and what is written with them, by the names that numpy's ufuncs have.
_OPERATORS: dict[str, Callable[..., Expr]] = {
    **OPERATOR_UFUNCS,
    "deg2rad": partial(_expr.number_function, "radians"),
    "rad2deg": partial(_expr.number_function, "degrees"),
    "absolute": _expr.absolute,
    "fabs": _expr.absolute,
    "rint": _expr.round_to,
    "square": lambda x: _expr.arithmetic("*", x, x),
    "reciprocal": lambda x: _expr.arithmetic("/", _expr.constant(1.0), x),
    "positive": lambda x: x,
    "isnan": _expr.is_null,
    "isnat": _expr.is_null,
    "isfinite": _ask_finite,
    "isinf": lambda x: _expr.is_in(x, [np.inf, -np.inf]),
}


def _refuse_array(lead: BoundColumn) -> NoReturn:
    """Refuse to make an array of a tracked column, in the names of its frame."""
    refuse_use("__array__", selection_of(frame_of_column(lead)), name_of(lead))


def find_ufunc(label: str) -> Callable[..., Expr] | None:
    """Return what a ufunc of numpy makes of expressions, by its name; None if it is not offered."""
    if f"np.{label}" in _expr.OPS:
        return partial(_expr.number_function, label)
    return _OPERATORS.get(label)


def list_ufuncs() -> list[str]:
    """Return the names of the ufuncs of numpy that are offered."""
    return [*_expr.list_ops("np"), *_OPERATORS]


def apply_ufunc(
    taken: Any, ufunc: Any, method: str, inputs: Arguments, options: dict[str, Any]
) -> Any:
    """Return the column that a ufunc of numpy makes of tracked columns and constants.

    ``taken`` is the tracked column whose frame has the result. Other uses of a ufunc than a plain
    call are refused.
    """
    make = find_ufunc(ufunc.__name__)
    if make is None or method != "__call__" or options:
        _refuse_array(taken)
    return _make_column(inputs, lambda given: make(*given), taken)


def _make_column(values: Iterable[Any], make: Callable[[list[Expr]], Expr], lead: Any) -> Any:
    """Return the column that is made of tracked columns of one frame, and of constants."""
    frame = frame_of_column(lead)
    return with_expression(lead, make([read_expression(frame, _scalar(value)) for value in values]))


def _scalar(value: object) -> Any:
    """Return a tracked column or a constant, which numpy may have put into an array."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value[()]
    if isinstance(value, np.ndarray | pd.Series | pd.Index | pd.DataFrame | list):
        raise Refused(
            f"{with_article(type(value).__name__)} beside a tracked column may hold rows of "
            "people. Take "
            "tracked columns of one frame and "
            "constants; a number about people is a release first: p.mean('x')."
        )
    return value


# ---- functions of other kinds --------------------------------------------------------------------


def _where(lead: object, condition: object, x: object = None, y: object = None) -> Any:
    """Return the column that ``np.where(condition, x, y)`` makes: ``x`` where a condition holds,
    else ``y``.

    ``lead`` is the tracked column that numpy found among the arguments. ``np.where(condition)``
    alone is refused, since it lists rows.
    """
    if x is None and y is None:
        raise Refused(
            "np.where of a condition alone lists rows of people. With two values it chooses: "
            "np.where(p['x'] > 1, 'a', 'b')."
        )
    return _choose(lead, [condition], [x], y)


def _select(lead: object, condlist: Any, choicelist: Any, default: object = 0) -> Any:
    conditions, choices = list(condlist), list(choicelist)
    if len(conditions) != len(choices) or not conditions:
        raise BadType("np.select takes as many conditions as choices, and at least one.")
    return _choose(lead, conditions, choices, default)


def _choose(lead: Any, conditions: list[Any], choices: list[Any], default: object) -> Any:
    """Return the column that has, in each row, the choice of the first condition that holds.

    ``lead`` is the tracked column that numpy found among the arguments. ``default`` stands where no
    condition holds.
    """
    frame = frame_of_column(lead)
    found = _find_side(frame, default)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        found = _expr.choose(
            read_expression(frame, _scalar(condition)), _find_side(frame, choice), found
        )
    return with_expression(lead, found, None)


def _find_side(frame: Any, value: Any) -> Expr:
    """Return a side of a choice: a tracked column, a constant or a null."""
    value = _scalar(value)
    null = value is None or (isinstance(value, float) and np.isnan(value))
    if null:
        return _expr.constant(None, null=True)
    found: Expr = read_expression(frame, value)
    return found


def _clip(lead: Any, a: Any, a_min: Any = None, a_max: Any = None, **ends: Any) -> Any:
    low, high = ends.pop("min", a_min), ends.pop("max", a_max)
    if ends or a is not lead:
        _refuse_array(lead)
    return lead.clip(low, high)


def _ask_release(name: str, **defaults: object) -> Callable[..., Any]:
    """Return a function across rows, which asks a column for a release."""

    def release(lead: Any, a: object, *args: object, **options: object) -> Any:
        """Ask the column ``a`` for the release called ``name``, with the arguments of numpy's
        function.

        ``lead`` is the tracked column that numpy found, and must be ``a`` itself. A given axis,
        dtype or out is refused.
        """
        if a is not lead or any(
            v is not None for k, v in options.items() if k in ("axis", "dtype", "out")
        ):
            _refuse_array(lead)
        given = {k: v for k, v in options.items() if k not in ("axis", "dtype", "out")}
        return getattr(a, name)(*args, **{**defaults, **given})

    return release


def _percentile(lead: Any, a: Any, q: Any, **options: Any) -> Any:
    if a is not lead or options:
        _refuse_array(lead)
    return lead.quantile([one / 100 for one in q] if isinstance(q, list | tuple) else q / 100)


def _histogram(
    lead: Any, a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """Return noisy counts and public edges, as `numpy.histogram` does.

    ``lead`` is the tracked column that numpy found among the arguments, and must be ``a`` itself.
    """
    if a is not lead:
        _refuse_array(lead)
    if weights is not None:
        raise NotOffered("np.histogram of a tracked column has no weights=: each row counts once.")
    if _validate.flag(False if density is None else density, "density"):
        raise NotOffered(
            "np.histogram of a tracked column counts. For a density ask counts, edges = "
            f"np.histogram(p[{_name(a, 'x')}], bins), and then "
            "counts / counts.sum() / np.diff(edges)."
        )
    return summaries.histogram_arrays(frame_of_column(a), a, bins, range)


def _name(column: object, otherwise: str) -> str:
    """Return the name of a tracked column as it is written, or ``otherwise`` if it has no name."""
    named = column if isinstance(column, BoundColumn) else None
    name = None if named is None else name_of(named)
    return repr(otherwise if name is None else name)


def _histogram_of_two(lead: object, x: object, y: object, *args: object, **words: object) -> Any:
    """Refuse ``np.histogram2d``, with the line that counts two columns in bands."""
    bands = f"p[{_name(x, 'x')}].cut({_edges(x)}), p[{_name(y, 'y')}].cut({_edges(y)})"
    raise NotOffered(
        "np.histogram2d of tracked columns is not offered. Count in bands with public edges: "
        f"p.groupby([{bands}]).size().unstack()."
    )


def _edges(column: object) -> list[float]:
    """Return public edges of two bands of a column: its bounds and their middle, if declared."""
    ends = None
    if isinstance(column, BoundColumn):
        ends = expression_of(column).bounds(selection_of(frame_of_column(column)).schema.bounds)
    low, high = (0, 2) if ends is None else ends
    return [low, (low + high) / 2, high]


def _refuse_matrix(function: str, verb: str) -> Callable[..., Any]:
    """Return a function that refuses ``np.cov`` or ``np.corrcoef``, with the line of the verb."""

    def refuse_matrix(lead: object, x: object, y: object = None, *args: object, **o: object) -> Any:
        """Refuse the matrix of two columns, by their names."""
        if y is None:
            raise NotOffered(f"np.{function} of tracked columns takes two of them.")
        names = f"{_name(x, 'x')}, {_name(y, 'y')}"
        raise NotOffered(
            f"np.{function} of tracked columns is not offered. Ask the frame, and then take "
            f".to_numpy() of it: p[[{names}]].{verb}()."
        )

    return refuse_matrix


def _round_column(lead: object, a: Any, decimals: int = 0) -> Any:
    return a.round(decimals)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where,
    "select": _select,
    "clip": _clip,
    "round": _round_column,
    "around": _round_column,
    "isclose": lambda lead, a, b, rtol=1e-5, atol=1e-8: _ask_close(lead, a, b, rtol, atol),
    "fix": lambda lead, x: np.trunc(x),
    **{name: _ask_release(aggregate) for name, aggregate in list_numpy_names().items()},
    "amin": _ask_release("min"),
    "amax": _ask_release("max"),
    "std": _ask_release("std", ddof=0),
    "var": _ask_release("var", ddof=0),
    "quantile": _ask_release("quantile"),
    "percentile": _percentile,
    "unique": _ask_release("unique"),
    "histogram": _histogram,
    "histogram2d": _histogram_of_two,
    "corrcoef": _refuse_matrix("corrcoef", "corr"),
    "cov": _refuse_matrix("cov", "cov"),
}


def _ask_close(lead: object, a: Any, b: Any, rtol: float, atol: float) -> Any:
    return np.less_equal(abs(a - b), atol + rtol * abs(b))


def call_numpy(lead: Any, function: Any, args: Arguments, words: dict[str, Any]) -> Any:
    """Call a function of numpy with tracked columns: an expression, a release, or a refusal.

    ``lead`` is the tracked column that numpy found among the arguments.
    """
    make = _FUNCTIONS.get(function.__name__)
    if make is None:
        _refuse_array(lead)
    try:
        return make(lead, *args, **words)
    except TypeError as error:
        trace = error.__traceback__
        if isinstance(error, BadType) or trace is None or trace.tb_next is not None:
            raise
        raise BadType(
            f"np.{function.__name__} of a tracked column does not take these arguments."
        ) from None
