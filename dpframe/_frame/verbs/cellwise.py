"""Operators on whole frames: each column by itself, with a constant, with one for each column, or
with a frame of the same columns; and, with ``axis=1``, the columns of one row put together. No row
meets another, and nothing is read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import reduce
from typing import Any, cast

import pandas as pd

from dpframe import _expr, _validate
from dpframe._answers.receipts import ANSWER, get_receipt
from dpframe._errors import BadType, NotOffered, Refused
from dpframe._expr import Expr
from dpframe._frame.column import PrivateColumn
from dpframe._frame.columns.operators import OperatorMethod, find_operator
from dpframe._frame.selection import BoundColumn, expression_of, selection_of
from dpframe._frame.tracked import Frame, Tracked, refuse_questions, with_selection


def operate(
    self: Frame, name: str, others: Sequence[object], swapped: bool = False, beside: bool = False
) -> Frame:
    """Return the frame with an operator applied to each column and its operand.

    ``name`` is the operator, such as "add". With ``swapped`` the columns are its right operands.
    ``others`` holds the other operand: a constant, or one for each column. A tracked frame of the
    same columns is one, too. With ``beside`` it may be one column for all of them.
    """
    columns = self._selection.columns
    if beside and isinstance(others[0], BoundColumn):
        operands: list[Mapping[Hashable, Any]] = [dict.fromkeys(columns, others[0])]
    else:
        operands = [_operands(self, other) for other in others]
    made = {
        label: expression_of(
            PrivateColumn(self, expr, label)._operate(
                name, *(given[label] for given in operands), swapped=swapped
            )
        )
        for label, expr in columns.items()
    }
    return self._new(self._selection.replace_columns(made))


def transform_columns(self: Frame, transform: Callable[[PrivateColumn], PrivateColumn]) -> Frame:
    """Return the frame with each column transformed by itself."""
    columns = self._selection.columns
    made = {
        name: expression_of(transform(PrivateColumn(self, expr, name)))
        for name, expr in columns.items()
    }
    return self._new(self._selection.replace_columns(made))


def _operands(frame: Tracked, other: object) -> Mapping[Hashable, Any]:
    """Return the other operand of an operation on a frame, by column.

    ``other`` is a constant for all columns, one for each column, or a tracked frame of the same
    columns.
    """
    columns = selection_of(frame).columns
    if isinstance(other, BoundColumn):
        raise Refused(
            "pandas matches the labels of such a column's rows with the names of the frame's columns. For an operation in each "
            "row write it column by column: p[['x', 'y']].sub(p['a'], axis=0)."
        )
    if isinstance(other, Tracked):
        if set(selection_of(other).columns) != set(columns):
            raise BadType(
                "an operation of two frames needs the same columns in both: p[['x', 'y']] * p[['x', 'y']]."
            )
        return {
            name: PrivateColumn(other, selection_of(other).columns[name], name) for name in columns
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


def operator_method(name: str) -> OperatorMethod:
    """Return the method of frames that does what an operator does: ``p[["x", "y"]].sub(p["a"],
    axis=0)``.

    ``name`` is the method, such as "add" or "rsub".
    """
    operator, swapped = find_operator(name)

    def method(
        self: Frame,
        other: object,
        axis: object = "columns",
        level: None = None,
        fill_value: None = None,
    ) -> Frame:
        """Apply the operator to each column and another operand.

        With ``axis=0`` the operand is one tracked column for all columns; otherwise it is a
        constant or one for each column. pandas' ``level`` and ``fill_value`` are refused.
        """
        if level is not None or fill_value is not None:
            raise NotOffered(
                f"{name} takes neither level= nor fill_value=: write p.fillna(0) before it."
            )
        if not _validate.among(axis, (0, 1, "index", "columns", "rows")):
            raise BadType(
                "axis= is 0 for a column beside each of these, or 1 for one constant each."
            )
        beside = _validate.among(axis, (0, "index", "rows"))
        return operate(self, operator, [other], swapped, beside)

    method.__name__ = name
    method.__doc__ = (
        f"Apply ``{name}`` to each column and a constant, or one constant for each column.\n\n"
        "With ``axis=0`` the other operand is a column."
    )
    return cast(OperatorMethod, method)


def abs_(self: Frame) -> Frame:
    """Return the numbers without their signs."""
    return transform_columns(self, abs)


def round_(self: Frame, decimals: object = 0) -> Frame:
    """Round numbers to some decimals, half to even; ``{"column": decimals}`` for some of them.

    Others stay as they are.
    """
    columns = self._selection.columns
    chosen = (
        {_validate.column_name(name, columns): places for name, places in decimals.items()}
        if isinstance(decimals, Mapping)
        else dict.fromkeys((n for n, e in columns.items() if e.kind == "number"), decimals)
    )
    made = {name: _expr.round_to(columns[name], places) for name, places in chosen.items()}
    return self._new(self._selection.replace_columns({**columns, **made}))


def where(
    self: Frame, cond: object, other: object = None, *, inplace: bool = False, axis: object = None
) -> Frame:
    """Keep the values where a condition holds, and else take another one: null, a constant, or one
    for each column.

    The condition is a tracked column, for all columns, or a frame of conditions, for each its own.
    """
    return self._done(_choose(self, "where", cond, other), inplace)


def mask(
    self: Frame, cond: object, other: object = None, *, inplace: bool = False, axis: object = None
) -> Frame:
    """Take another value where a condition holds, and else keep the value: `where` with the
    condition negated."""
    return self._done(_choose(self, "mask", cond, other), inplace)


def _choose(frame: Frame, verb: str, cond: object, other: object) -> Frame:
    """Return the frame of `where` or `mask`, in which a condition decides whether a cell stays.

    ``verb`` is the one that was called. ``cond`` is a tracked column, a frame of conditions or a
    function. ``other`` has the cells to take instead.
    """
    columns = selection_of(frame).columns
    if callable(cond) and not isinstance(cond, BoundColumn | Tracked):
        cond = cond(
            refuse_questions(
                frame,
                "a condition is of one row: release such a number first, and use the answer in it.",
            )
        )
    conditions = (
        _operands(frame, cond) if isinstance(cond, Tracked) else dict.fromkeys(columns, cond)
    )
    others = (
        dict.fromkeys(columns, other)
        if other is None or isinstance(other, BoundColumn)
        else _operands(frame, other)
    )
    made = {
        name: expression_of(
            getattr(PrivateColumn(frame, expr, name), verb)(conditions[name], others[name])
        )
        for name, expr in columns.items()
    }
    return with_selection(frame, selection_of(frame).replace_columns(made))


def apply(self: Frame, func: object, axis: object = 0, **words: object) -> Any:
    """Apply a function to each column, or with ``axis=1`` to each row.

    It is given tracked columns, and their own methods and operators say what it does to every cell.
    A name, or a list of names, is asked as in `agg`.

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
        if not isinstance(made, BoundColumn):
            raise BadType(
                "a function of a row is traced: it returns an expression of its columns, such as r['x'] + r['y']. Write "
                "p.assign(total='x + y')."
            )
        return PrivateColumn(self, self._selection.own(made), None)
    return transform(self, func, **words)


def transform(self: Frame, func: object, axis: object = 0, **words: object) -> Frame:
    """Apply a function to each tracked column, and keep the columns that it returns."""
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
        if not isinstance(column, BoundColumn):
            raise BadType(
                "a function of a column returns one, such as c / 2. For a number of each column ask p[['x', 'y']].agg('mean')."
            )
        made[name] = self._selection.own(column)
    return self._new(self._selection.replace_columns(made))


# The columns of one row ---------------------------------------------------------------------------------------


def _numbers(frame: Tracked, names: list[Hashable], verb: str) -> list[Expr]:
    """Return the expressions of columns that are all numbers; refuse other columns.

    ``verb`` is the summary of each row that needs them, for messages.
    """
    exprs = [selection_of(frame).columns[name] for name in names]
    for name, expr in zip(names, exprs, strict=True):
        if expr.kind not in ("number", "bool"):
            raise BadType(
                f"column {name!r} is of kind {expr.kind}: across the columns only numbers have a {verb}. Name them, "
                f"p[['x', 'y']].{verb}(axis=1)."
            )
    if not exprs:
        raise BadType(f"{verb} with axis=1 needs at least one column of numbers.")
    return [_expr.cast(e, "int") if e.kind == "bool" else e for e in exprs]


def _add(exprs: list[Expr]) -> Expr:
    return reduce(lambda a, b: _expr.arithmetic("+", a, b), exprs)


def _total(exprs: list[Expr]) -> Expr:
    """Add up the cells of a row. A null counts for nothing, as in pandas."""
    return _add([_expr.fill(e, 0) for e in exprs])


def _present(exprs: list[Expr]) -> Expr:
    """Count the cells of a row that are not null."""
    return _add([_expr.cast(_expr.not_null(e), "int") for e in exprs])


def _mean(frame: Tracked, exprs: list[Expr]) -> Expr:
    """Return the mean of the values of a row that are not null; null if all are, as in pandas.

    It lies between the least and the greatest bound, which the quotient of a sum and a count does
    not show.
    """
    mean = _expr.arithmetic("/", _total(exprs), _present(exprs))
    column_bounds = [e.bounds(selection_of(frame).schema.bounds) for e in exprs]
    ends = [pair for pair in column_bounds if pair is not None]
    if len(ends) < len(exprs):
        return mean
    return _expr.clip(mean, min(low for low, _ in ends), max(high for _, high in ends))


def _better(a: Expr, b: Expr, op: str) -> Expr:
    """Return the one of two cells that compares so, and the other if one is null."""
    return _expr.choose(_expr.logical_or(_expr.is_null(b), _expr.compare(op, a, b)), a, b)


def _flags(exprs: list[Expr]) -> list[Expr]:
    """Return expressions that are all conditions, as `any` and `all` need them; refuse others."""
    for expr in exprs:
        if expr.kind != "bool":
            raise BadType(
                "any and all across columns are of conditions: (p[['x', 'y']] > 1).any(axis=1)."
            )
    return exprs


def across(self: Tracked, verb: str, numeric_only: bool = False) -> PrivateColumn:
    """Return a column with a summary of each row's cells: ``p[["x", "y"]].sum(axis=1)``.

    ``verb`` is the summary, such as "sum". With ``numeric_only`` other columns than numbers are
    left out.
    """
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
