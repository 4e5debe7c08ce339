"""What pandas writes with brackets: ``loc``, ``iloc``, and columns that are set in a frame."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, BadValue, DPError, NotOffered, Refused, with_article
from dpframe._expr import Column, Expr
from dpframe._expr._parse import parse
from dpframe._frame.column import PrivateColumn
from dpframe._frame.selection import BoundColumn, check_condition, selection_of
from dpframe._frame.tracked import (
    Tracked,
    is_pandas_col,
    keep_rows_where,
    read_expression,
    refuse_lost_change,
    with_selection,
)
from dpframe._refusals import ADVICE

F = TypeVar("F", bound=Tracked)
C = TypeVar("C", covariant=True)

_EVERYTHING = slice(None)


# Setting columns --------------------------------------------------------------------------------------------------


def assign_item(frame: Tracked, key: object, value: object) -> dict[Hashable, Expr]:
    """Return the columns of a frame after ``frame[key] = value``.

    A text is a constant here, as in pandas.
    """
    columns = selection_of(frame).columns
    if isinstance(key, list | pd.Index):
        names = list(key)
        if len(set(map(_hashable, names))) < len(names):
            raise BadValue("a column is set twice.")
        return {**columns, **dict(zip(names, _several(frame, value, len(names)), strict=True))}
    if isinstance(key, BoundColumn | Tracked | pd.Series | pd.DataFrame | np.ndarray | slice):
        raise Refused(
            "values are set in whole columns, and rows have no labels. For a value where a condition holds build the column: "
            "p.loc[p['x'] > 1, 'x'] = 0."
        )
    return {**columns, _hashable(key): one(frame, value)}


def _hashable(name: object) -> Hashable:
    if callable(name):
        raise BadType("a column is given by its name, not by a function.")
    return _validate.hashable(name, "a name")


def _several(frame: Tracked, value: object, number: int) -> list[Expr]:
    """Return the expressions that several columns are set to."""
    if isinstance(value, Tracked):
        made = [
            PrivateColumn(value, expr, name) for name, expr in selection_of(value).columns.items()
        ]
        values = [selection_of(frame).own(column) for column in made]
    elif isinstance(value, list | tuple):
        values = [one(frame, v) for v in value]
    else:
        values = [one(frame, value)] * number
    if len(values) != number:
        raise BadValue(f"{number} columns are set, and {len(values)} are given.")
    return values


def one(frame: Tracked, value: object) -> Expr:
    """Return the expression that a column is set to: a tracked column, ``pd.col``, a function of
    the frame, or a constant."""
    if isinstance(value, Tracked):
        if len(selection_of(value).columns) != 1:
            raise BadValue(
                "one column is set, and a frame of several is given: take one of them, p['x']."
            )
        ((name, expr),) = selection_of(value).columns.items()
        value = PrivateColumn(value, expr, name)
    if isinstance(value, list | tuple | dict | set):
        raise Refused(
            f"{with_article(type(value).__name__)} would be a value for each row, by its place in "
            "the frame, which is nobody's. Set a "
            "tracked column or a constant: p['name'] = p['x'] / 2."
        )
    if isinstance(value, str):
        check_text(frame, value)
    return read_expression(frame, value)


def check_text(frame: Tracked, text: str) -> None:
    """Refuse a constant text that reads as an expression of columns, which `assign` would take it
    for."""
    try:
        expr = parse(text, selection_of(frame).columns, _unknown).expr
    except (DPError, KeyError):
        return
    if expr.columns() and not isinstance(expr, Column):
        raise Refused(
            f"{text!r} would be a text in every row, as in pandas. For the expression write p = p.assign(name={text!r}), or "
            f"build it of columns, p['name'] = p['x'] / 2; for the text itself p['name'] = lambda d: {text!r}."
        )


def _unknown(name: str) -> object:
    raise KeyError(name)


# loc and iloc -----------------------------------------------------------------------------------------------------


class Located(Generic[F, C]):
    """``.loc`` of a tracked frame: rows by a condition, columns by name."""

    def __init__(self, frame: F):
        self._frame = frame

    def __getitem__(self, key: object) -> Any:
        """Return the rows and columns that ``p.loc[rows, columns]`` names.

        ``key`` is a condition on rows, or a pair of one and names of columns. One name gives a
        column, a list of names a frame.
        """
        rows, columns = _pair(key)
        frame = with_selection(self._frame, selection_of(self._frame))
        if not _is_everything(rows):
            frame = keep_rows_where(frame, self._condition(rows))
        if _is_everything(columns):
            return frame
        names = self._columns(columns)
        if isinstance(names, list):
            return with_selection(frame, selection_of(frame).choose_columns(names))
        return PrivateColumn(frame, selection_of(frame).columns[names], names)

    def __setitem__(self, key: object, value: object) -> None:
        """Set columns in the rows where a condition holds: ``p.loc[p["age"] > 65, "group"] =
        "old"``. In the others a new column is null, as in pandas."""
        frame = self._frame
        refuse_lost_change(frame)
        rows, columns = _pair(key)
        if columns is _EVERYTHING:
            raise Refused("values are set in columns that are named: p.loc[p['x'] > 1, 'x'] = 0.")
        known = selection_of(frame).columns
        new = isinstance(columns, str) and columns not in known
        names = [columns] if new else self._columns(columns)
        names = names if isinstance(names, list) else [names]
        made = assign_item(frame, names, value)
        if not _is_everything(rows):
            condition = self._condition(rows)
            null = _expr.constant(None, null=True)
            chosen = {
                name: _expr.choose(condition, made[name], known.get(name, null)) for name in names
            }
            made = {**made, **chosen}
        frame._become(selection_of(frame).replace_columns(made))

    def _condition(self, rows: object) -> Expr:
        if isinstance(rows, PrivateColumn) or is_pandas_col(rows) or callable(rows):
            return check_condition(read_expression(self._frame, rows))
        raise NotOffered(ADVICE["loc"])

    def _columns(self, columns: object) -> Any:
        """Return the name, or the list of names, that ``loc`` is given for columns.

        ``columns`` is a name, a list of names or of booleans, or a slice from one name to another.
        """
        known = selection_of(self._frame).columns
        if isinstance(columns, slice):
            return _between(columns, list(known))
        if isinstance(columns, list | pd.Index | np.ndarray):
            named = list(columns)
            if named and all(isinstance(n, bool | np.bool_) for n in named):
                if len(named) != len(known):
                    raise BadValue(
                        f"there are {len(known)} columns, and {len(named)} are said to be in or out."
                    )
                return [name for name, chosen in zip(known, named, strict=True) if chosen]
            return _validate.column_names(named, known)
        return _validate.column_name(columns, known)

    def __repr__(self) -> str:
        return "loc[condition], loc[condition, columns], loc[:, columns]"


def _is_everything(rows: object) -> bool:
    return isinstance(rows, slice) and rows == _EVERYTHING


def _pair(key: object) -> tuple[Any, Any]:
    """Return the rows and the columns that stand in the brackets of ``loc`` or ``iloc``.

    Columns that are left out are all columns.
    """
    if not isinstance(key, tuple):
        return key, _EVERYTHING
    if len(key) != 2:
        raise BadType("loc takes a condition on rows, and columns: p.loc[p['x'] > 1, ['x', 'y']].")
    return key


def _between(columns: slice, known: list[Hashable]) -> list[Hashable]:
    """Return the columns from one name to another, both included; with a step, every ``step``-th."""
    first = 0 if columns.start is None else known.index(_validate.column_name(columns.start, known))
    last = (
        len(known) - 1
        if columns.stop is None
        else known.index(_validate.column_name(columns.stop, known))
    )
    return known[first : last + 1 : columns.step]


class Positions(Generic[F, C]):
    """``.iloc`` of a tracked frame: all rows, and columns by their places."""

    def __init__(self, frame: F):
        self._frame = frame

    def __getitem__(self, key: object) -> Any:
        """Return the columns at some positions: ``p.iloc[:, 0]`` or ``p.iloc[:, [0, 2]]``.

        Positions of rows are refused, since rows have no order here.
        """
        rows, places = _pair(key)
        if not _is_everything(rows) or places is _EVERYTHING:
            raise NotOffered(ADVICE["iloc"])
        known = list(selection_of(self._frame).columns)
        try:
            chosen: Any = (
                known[places] if isinstance(places, int | slice) else [known[i] for i in places]
            )
        except (IndexError, TypeError):
            raise BadValue(
                f"columns are taken by their places, which are 0 to {len(known) - 1} here."
            ) from None
        return Located(self._frame)[:, chosen]

    def __repr__(self) -> str:
        return "iloc[:, places of columns]"
