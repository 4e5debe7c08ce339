"""Operators on whole frames: each column by itself, with a constant, with one for each column, or with a frame of the same
columns; and, with ``axis=1``, the columns of one row put together. No row meets another, and nothing is read."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping
from functools import reduce
from typing import Any

import pandas as pd

from dpframe import _expr, _validate
from dpframe._answers.answer import ANSWER, receipt_of
from dpframe._errors import BadType, NotOffered, Refused
from dpframe._expr import Expr
from dpframe._frame.column import PrivateColumn
from dpframe._frame.selection import Taken
from dpframe._frame.tracked import Frame, Tracked

Operator = Callable[[Any, Any], Any]


def each(self: Frame, operate: Operator, other: Any) -> Frame:
    """The frame with each column of which an operator makes another one.

    ``other`` is a constant, one for each column (a dict, or a Series that was released), or a tracked frame of the same columns.
    """
    columns = self._selection.columns
    operands = _operands(self, other)
    made = {name: operate(PrivateColumn(self, expr, name), operands[name]) for name, expr in columns.items()}
    strange = next((one for one in made.values() if not isinstance(one, PrivateColumn)), None)
    if strange is not None:  # a text on the left of % formats what is on its right
        raise BadType(
            "this operation is none of columns: it would make a text. Give a number, p[['x', 'y']] % 2."
        )
    return self._new(self._selection.having({name: one._expr for name, one in made.items()}))


def alone(self: Frame, operate: Callable[[Any], Any]) -> Frame:
    """The frame with each column of which an operator of one operand makes another one."""
    return each(self, lambda column, _: operate(column), 0)


def _operands(frame: Tracked, other: Any) -> Mapping[Hashable, Any]:
    """What stands beside each column."""
    columns = frame._selection.columns
    if isinstance(other, Taken):
        raise Refused(
            "pandas matches the labels of such a column's rows with the names of the frame's columns. For an operation in each "
            "row write it column by column: p[['x', 'y']].sub(p['a'], axis=0)."
        )
    if isinstance(other, Tracked):
        if set(other._selection.columns) != set(columns):
            raise BadType(
                "an operation of two frames needs the same columns in both: p[['x', 'y']] * p[['x', 'y']]."
            )
        return {name: PrivateColumn(other, other._selection.columns[name], name) for name in columns}
    if isinstance(other, pd.Series) and receipt_of(other, ANSWER) is not None:
        other = other.to_dict()
    if isinstance(other, Mapping):
        given = {_validate.column_name(name, columns): value for name, value in other.items()}
        if len(given) < len(columns):
            raise BadType(
                "such an operation needs one number for each column: p[['x', 'y']] / {'x': 1, 'y': 2}."
            )
        return given
    return dict.fromkeys(columns, other)


def method(name: str, operate: Operator, swapped: bool = False) -> Any:
    """The method that pandas has beside an operator: ``p[["x", "y"]].sub(p["a"], axis=0)``."""

    def verb(
        self: Tracked, other: Any, axis: Any = "columns", level: None = None, fill_value: None = None
    ) -> Any:
        if level is not None or fill_value is not None:
            raise NotOffered(f"{name} takes neither level= nor fill_value=: write p.fillna(0) before it.")
        if not _validate.among(axis, (0, 1, "index", "columns", "rows")):
            raise BadType("axis= is 0 for a column beside each of these, or 1 for one constant each.")
        both: Operator = (lambda a, b: operate(b, a)) if swapped else operate
        if _validate.among(axis, (0, "index", "rows")) and isinstance(other, Taken):
            column = PrivateColumn(self, self._selection.own(other), other._name)
            return each(self, lambda one, _: both(one, column), 0)
        return each(self, both, other)

    verb.__name__ = name
    verb.__doc__ = (
        f"The frame with ``{name}`` of each column and a constant, one for each, or with ``axis=0`` a column."
    )
    return verb


_ARITHMETIC: dict[str, Operator] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
}
_COMPARISONS: dict[str, Operator] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
_NAMES = {"div": "truediv", "divide": "truediv", "subtract": "sub", "multiply": "mul"}


def _operated(operate: Operator, swapped: bool = False) -> Any:
    if swapped:
        return lambda self, other: each(self, lambda a, b: operate(b, a), other)
    return lambda self, other: each(self, operate, other)


# What a tracked frame has: pandas' operators by Python's names of them, and pandas' methods.
OPERATORS: dict[str, Any] = {
    **{f"__{name}__": _operated(one) for name, one in {**_ARITHMETIC, **_COMPARISONS}.items()},
    **{f"__r{name}__": _operated(one, True) for name, one in _ARITHMETIC.items()},
    **{f"__{name}__": _operated(getattr(operator, f"{name}_")) for name in ("and", "or")},
    **{f"__r{name}__": _operated(getattr(operator, f"{name}_"), True) for name in ("and", "or")},
    **{f"__{one.__name__}__": lambda self, one=one: alone(self, one) for one in (operator.neg, operator.pos)},
    "__invert__": lambda self: alone(self, operator.invert),
    "__abs__": lambda self: alone(self, abs),
    "__round__": lambda self, decimals=0: alone(self, lambda column: column.round(decimals)),
}
METHODS: dict[str, Any] = {
    **{name: method(name, one) for name, one in {**_ARITHMETIC, **_COMPARISONS}.items()},
    **{f"r{name}": method(f"r{name}", one, True) for name, one in _ARITHMETIC.items()},
    **{name: method(name, _ARITHMETIC[own]) for name, own in _NAMES.items()},
    "rdiv": method("rdiv", operator.truediv, True),
}


def abs_(self: Frame) -> Frame:
    """The numbers without their signs."""
    return alone(self, abs)


def round_(self: Frame, decimals: Any = 0) -> Frame:
    """Numbers rounded to some decimals, half to even; ``{"column": decimals}`` for some of them. Others stay as they are."""
    columns = self._selection.columns
    chosen = (
        {_validate.column_name(name, columns): places for name, places in decimals.items()}
        if isinstance(decimals, Mapping)
        else dict.fromkeys((n for n, e in columns.items() if e.kind == "number"), decimals)
    )
    made = {name: _expr.round_to(columns[name], places) for name, places in chosen.items()}
    return self._new(self._selection.having({**columns, **made}))


# The columns of one row ---------------------------------------------------------------------------------------


def _numbers(frame: Tracked, names: list[Hashable], verb: str) -> list[Expr]:
    exprs = [frame._selection.columns[name] for name in names]
    for name, expr in zip(names, exprs, strict=True):
        if expr.kind not in ("number", "bool"):
            raise BadType(
                f"column {name!r} is of kind {expr.kind}: across the columns only numbers have a {verb}. Name them, "
                f"p[['x', 'y']].{verb}(axis=1)."
            )
    if not exprs:
        raise BadType(f"{verb} with axis=1 needs at least one column of numbers.")
    return [_expr.cast(e, "int") if e.kind == "bool" else e for e in exprs]


def _added(exprs: list[Expr]) -> Expr:
    return reduce(lambda a, b: _expr.arithmetic("+", a, b), exprs)


def _total(exprs: list[Expr]) -> Expr:
    """The sum of the cells of a row; a null counts for nothing, as in pandas."""
    return _added([_expr.fill(e, 0) for e in exprs])


def _present(exprs: list[Expr]) -> Expr:
    """How many cells of a row are no nulls."""
    return _added([_expr.cast(_expr.not_null(e), "int") for e in exprs])


def _mean(frame: Tracked, exprs: list[Expr]) -> Expr:
    """The mean of the cells of a row that are no nulls, null where all are: as in pandas. It lies between the least and the
    greatest bound, which the quotient of a sum and a count does not show."""
    mean = _expr.arithmetic("/", _total(exprs), _present(exprs))
    known = [e.bounds(frame._selection.schema.bounds) for e in exprs]
    ends = [pair for pair in known if pair is not None]
    if len(ends) < len(exprs):
        return mean
    return _expr.clip(mean, min(low for low, _ in ends), max(high for _, high in ends))


def _flags(exprs: list[Expr]) -> list[Expr]:
    for expr in exprs:
        if expr.kind != "bool":
            raise BadType("any and all across columns are of conditions: (p[['x', 'y']] > 1).any(axis=1).")
    return exprs


def across(self: Tracked, verb: str, numeric_only: bool = False) -> PrivateColumn:
    """A column of what the cells of each row come to: ``p[["x", "y"]].sum(axis=1)``."""
    columns = self._selection.columns
    names = self._selection.numbers if numeric_only else list(columns)
    everything = [columns[name] for name in names]
    if verb == "count":
        expr = _present(everything)
    elif verb == "any":
        expr = reduce(_expr.logical_or, _flags(everything))
    elif verb == "all":
        expr = reduce(_expr.logical_and, _flags(everything))
    elif verb == "sum":
        expr = _total(_numbers(self, names, verb))
    elif verb == "mean":
        expr = _mean(self, _numbers(self, names, verb))
    else:
        raise NotOffered(
            f"{verb} across the columns of a row is not offered. Those that are: sum, mean, count, any and all; or write an "
            "expression: p.assign(total='a + b')."
        )
    return PrivateColumn(self, expr, None)
