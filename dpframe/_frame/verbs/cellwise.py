"""Operators on whole frames: each column by itself, with a constant, with one for each column, or
with a frame of the same columns; and, with ``axis=1``, the columns of one row put together. No row
meets another, and nothing is read."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping
from functools import reduce
from typing import Any, cast

import pandas as pd

from dpframe import _expr, _validate
from dpframe._answers.receipts import ANSWER, get_receipt
from dpframe._errors import BadType, NotOffered, Refused
from dpframe._expr import Expr
from dpframe._frame.column import PrivateColumn
from dpframe._frame.selection import Taken
from dpframe._frame.tracked import Frame, Tracked

Operator = Callable[[Any, Any], Any]


def each(self: Frame, operate: Operator, other: Any) -> Frame:
    """The frame with an operator applied to each column and its operand.

    ``other`` is a constant, one for each column (a dict, or a Series that was released), or a
    tracked frame of the same columns.
    """
    columns = self._selection.columns
    operands = _operands(self, other)
    made = {
        name: operate(PrivateColumn(self, expr, name), operands[name])
        for name, expr in columns.items()
    }
    strange = next(
        (column for column in made.values() if not isinstance(column, PrivateColumn)), None
    )
    if strange is not None:  # a text on the left of % formats what is on its right
        raise BadType(
            "this operation is none of columns: it would make a text. Give a number, p[['x', 'y']] % 2."
        )
    return self._new(self._selection.having({name: column._expr for name, column in made.items()}))


def alone(self: Frame, operate: Callable[[Any], Any]) -> Frame:
    """The frame with an operator of one operand applied to each column."""
    return each(self, lambda column, _: operate(column), 0)


def _operands(frame: Tracked, other: Any) -> Mapping[Hashable, Any]:
    """The other operand for each column."""
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
        return {
            name: PrivateColumn(other, other._selection.columns[name], name) for name in columns
        }
    if isinstance(other, pd.Series) and get_receipt(other, ANSWER) is not None:
        other = other.to_dict()
    if isinstance(other, Mapping):
        operands = {_validate.column_name(name, columns): value for name, value in other.items()}
        if len(operands) < len(columns):
            raise BadType(
                "such an operation needs one number for each column: p[['x', 'y']] / {'x': 1, 'y': 2}."
            )
        return operands
    return dict.fromkeys(columns, other)


def method(name: str, operate: Operator, swapped: bool = False) -> Any:
    """The method that pandas has beside an operator: ``p[["x", "y"]].sub(p["a"], axis=0)``."""

    def verb(
        self: Tracked,
        other: Any,
        axis: Any = "columns",
        level: None = None,
        fill_value: None = None,
    ) -> Any:
        if level is not None or fill_value is not None:
            raise NotOffered(
                f"{name} takes neither level= nor fill_value=: write p.fillna(0) before it."
            )
        if not _validate.among(axis, (0, 1, "index", "columns", "rows")):
            raise BadType(
                "axis= is 0 for a column beside each of these, or 1 for one constant each."
            )
        both: Operator = (lambda a, b: operate(b, a)) if swapped else operate
        if _validate.among(axis, (0, "index", "rows")) and isinstance(other, Taken):
            column = PrivateColumn(self, self._selection.own(other), other._name)
            return each(self, lambda left, _: both(left, column), 0)
        return each(self, both, other)

    verb.__name__ = name
    verb.__doc__ = f"The frame with ``{name}`` of each column and a constant, one for each, or with ``axis=0`` a column."
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


def _operated(operate: Operator, swapped: bool = False) -> Any:
    if swapped:
        return lambda self, other: each(self, lambda a, b: operate(b, a), other)
    return lambda self, other: each(self, operate, other)


# pandas' operators, by Python's names of them, and the methods that pandas has beside them.
OPERATORS: dict[str, Any] = {
    **{
        f"__{name}__": _operated(operate)
        for name, operate in {**_ARITHMETIC, **_COMPARISONS}.items()
    },
    **{f"__r{name}__": _operated(operate, True) for name, operate in _ARITHMETIC.items()},
    **{f"__{name}__": _operated(getattr(operator, f"{name}_")) for name in ("and", "or")},
    **{f"__r{name}__": _operated(getattr(operator, f"{name}_"), True) for name in ("and", "or")},
    "__neg__": lambda self: alone(self, operator.neg),
    "__pos__": lambda self: alone(self, operator.pos),
    "__invert__": lambda self: alone(self, operator.invert),
    "__abs__": lambda self: alone(self, abs),
    "__round__": lambda self, decimals=0: alone(self, lambda column: column.round(decimals)),
}
METHODS: dict[str, Any] = {
    **{name: method(name, operate) for name, operate in {**_ARITHMETIC, **_COMPARISONS}.items()},
    "div": method("div", operator.truediv),
    **{
        f"r{name}": method(f"r{name}", operate, True)
        for name, operate in (("sub", operator.sub), ("div", operator.truediv))
    },
}


def abs_(self: Frame) -> Frame:
    """The numbers without their signs."""
    return alone(self, abs)


def round_(self: Frame, decimals: Any = 0) -> Frame:
    """Numbers rounded to some decimals, half to even; ``{"column": decimals}`` for some of them.
    Others stay as they are."""
    columns = self._selection.columns
    chosen = (
        {_validate.column_name(name, columns): places for name, places in decimals.items()}
        if isinstance(decimals, Mapping)
        else dict.fromkeys((n for n, e in columns.items() if e.kind == "number"), decimals)
    )
    made = {name: _expr.round_to(columns[name], places) for name, places in chosen.items()}
    return self._new(self._selection.having({**columns, **made}))


def where(
    self: Frame, cond: Any, other: Any = None, *, inplace: bool = False, axis: Any = None
) -> Frame:
    """The cells where a condition holds, and else another value: null, a constant, or one for each
    column.

    The condition is a tracked column, for all columns, or a frame of conditions, for each its own.
    """
    return self._done(_chosen(self, "where", cond, other), inplace)


def mask(
    self: Frame, cond: Any, other: Any = None, *, inplace: bool = False, axis: Any = None
) -> Frame:
    """Another value where a condition holds, and else the cells: `where` with the condition turned
    round."""
    return self._done(_chosen(self, "mask", cond, other), inplace)


def _chosen(frame: Frame, verb: str, cond: Any, other: Any) -> Frame:
    columns = frame._selection.columns
    if callable(cond) and not isinstance(cond, Taken | Tracked):
        cond = cond(
            frame._rowwise(
                "a condition is of one row: release such a number first, and use the answer in it."
            )
        )
    conditions = (
        _operands(frame, cond) if isinstance(cond, Tracked) else dict.fromkeys(columns, cond)
    )
    others = (
        dict.fromkeys(columns, other)
        if other is None or isinstance(other, Taken)
        else _operands(frame, other)
    )
    made = {
        name: getattr(PrivateColumn(frame, expr, name), verb)(conditions[name], others[name])._expr
        for name, expr in columns.items()
    }
    return frame._new(frame._selection.having(made))


def apply(self: Frame, func: Any, axis: Any = 0, **words: Any) -> Any:
    """What a function makes of each column, or with ``axis=1`` of each row: it is given tracked
    columns, and calls of their own methods and operators are what it does to every cell. A name, or
    a list of names, is asked as in `agg`.

    >>> df = pd.DataFrame({"cost": [10.0, 30.0], "days": [1, 3]})
    >>> p = df.dp.open(1000, bounds={"cost": (0, 100), "days": (1, 10)})
    >>> print(round(p.apply(lambda r: r["cost"] / r["days"], axis=1).mean(epsilon=900)))
    10
    """
    if isinstance(func, str | list | Mapping):
        return cast(Any, self).agg(func, axis=axis, **words)
    if not callable(func):
        raise BadType(
            f"apply takes a function of a column, or the name of an aggregate, not {type(func).__name__}."
        )
    if not _validate.among(axis, (0, 1, "index", "columns")):
        raise BadType("axis= is 0 for a function of each column, or 1 for one of each row.")
    for word, idle in (
        ("raw", False),
        ("result_type", None),
        ("args", ()),
        ("by_row", "compat"),
        ("engine", "python"),
    ):
        if words.pop(word, idle) not in (idle, None):
            raise BadType(
                f"{word}= is refused here: the function is given tracked columns, and called once."
            )
    rows = self._rowwise(
        "a function that is applied is of the cells of one row: release such a number first, and use the answer in it."
    )
    if _validate.among(axis, (1, "columns")):
        made = func(rows, **words)
        if not isinstance(made, Taken):
            raise BadType(
                "a function of a row is traced: it returns an expression of its columns, such as r['x'] + r['y']. Write "
                "p.assign(total='x + y')."
            )
        return PrivateColumn(self, self._selection.own(made), None)
    return transform(self, func, **words)


def transform(self: Frame, func: Any, axis: Any = 0, **words: Any) -> Frame:
    """Each column as a function makes it, which is given the tracked column."""
    if not callable(func) or not _validate.among(axis, (0, "index")):
        raise BadType(
            "transform takes a function of each column: p[['x', 'y']].transform(lambda c: c / 2)."
        )
    rows = self._rowwise(
        "a function of a column asks nothing: release such a number first, and use the answer in it."
    )
    made = {}
    for name, expr in self._selection.columns.items():
        column = func(PrivateColumn(rows, expr, name), **words)
        if not isinstance(column, Taken):
            raise BadType(
                "a function of a column returns one, such as c / 2. For a number of each column ask p[['x', 'y']].agg('mean')."
            )
        made[name] = self._selection.own(column)
    return self._new(self._selection.having(made))


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
    """The number of cells of a row that are no nulls."""
    return _added([_expr.cast(_expr.not_null(e), "int") for e in exprs])


def _mean(frame: Tracked, exprs: list[Expr]) -> Expr:
    """The mean of the cells of a row that are no nulls, null where all are: as in pandas. It lies
    between the least and the greatest bound, which the quotient of a sum and a count does not
    show."""
    mean = _expr.arithmetic("/", _total(exprs), _present(exprs))
    column_bounds = [e.bounds(frame._selection.schema.bounds) for e in exprs]
    ends = [pair for pair in column_bounds if pair is not None]
    if len(ends) < len(exprs):
        return mean
    return _expr.clip(mean, min(low for low, _ in ends), max(high for _, high in ends))


def _better(a: Expr, b: Expr, op: str) -> Expr:
    """The one of two cells that compares so; the other where one is null."""
    return _expr.choose(_expr.logical_or(_expr.is_null(b), _expr.compare(op, a, b)), a, b)


def _flags(exprs: list[Expr]) -> list[Expr]:
    for expr in exprs:
        if expr.kind != "bool":
            raise BadType(
                "any and all across columns are of conditions: (p[['x', 'y']] > 1).any(axis=1)."
            )
    return exprs


def across(self: Tracked, verb: str, numeric_only: bool = False) -> PrivateColumn:
    """The column of a summary of each row's cells: ``p[["x", "y"]].sum(axis=1)``."""
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
    elif verb in ("min", "max"):
        better = "<=" if verb == "min" else ">="
        expr = reduce(lambda a, b: _better(a, b, better), _numbers(self, names, verb))
    elif verb == "mean":
        expr = _mean(self, _numbers(self, names, verb))
    else:
        raise NotOffered(
            f"{verb} across the columns of a row is not offered. Those that are: sum, mean, min, max, count, any, all; or write "
            "an expression: p.assign(total='a + b')."
        )
    return PrivateColumn(self, expr, None)
