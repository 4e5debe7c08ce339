"""Person-wise steps: each looks at one row at a time, is free, and returns another tracked frame."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import reduce
from typing import Any

import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, BadValue, Refused
from dpframe._expr import Expr
from dpframe._frame.column import PrivateColumn
from dpframe._frame.selection import callers_frame
from dpframe._frame.tracked import Frame, Tracked


def assign(self: Frame, **columns: Any) -> Frame:
    """New columns: a string expression, a tracked column, ``pd.col``, a constant, or ``lambda p: p["x"] / 2``.

    Bounds of a new column follow from those of the old ones.

    >>> df = pd.DataFrame({"cost": [120.0, 40.0]})
    >>> p = df.dp.open(1, bounds={"cost": (0, 50_000)})
    >>> p.assign(cost_k="cost / 1000").explain.sum("cost_k").sensitivity
    50.0
    """
    caller, frame = callers_frame(), self
    for name, value in columns.items():
        expr, frame = frame._written(value, caller)
        frame = frame._new(frame._selection.having({**frame._selection.columns, name: expr}))
    return frame


def rename(
    self: Frame,
    mapper: Mapping[Any, Any] | Callable[[Any], Any] | None = None,
    *,
    columns: Mapping[Any, Any] | Callable[[Any], Any] | None = None,
    index: None = None,
    axis: Any = None,
    errors: str = "ignore",
) -> Frame:
    """Other names for columns, as ``columns={"old": "new"}`` or a function of a name; their bounds and keys stay theirs.

    Rows have no names here, so that a mapper alone is of columns, as with ``axis=1`` in pandas.
    """
    columns = _of_columns("rename", mapper, columns, index, axis)
    known = self._selection.columns
    if isinstance(columns, Mapping):
        if _validate.choice(errors, "errors", ("raise", "ignore")) == "raise":
            _validate.column_names(columns, known)
        new = {name: columns.get(name, name) for name in known}
    elif callable(columns):
        new = {name: columns(name) for name in known}
    else:
        raise BadType("rename takes columns={'old': 'new'}.")
    renamed = {_validate.hashable(new[name], "a name"): expr for name, expr in known.items()}
    if len(renamed) < len(known):
        raise BadValue("rename would give two columns the same name.")
    return self._new(self._selection.having(renamed))


def drop(
    self: Frame,
    labels: Any = None,
    *,
    columns: Any = None,
    index: None = None,
    axis: Any = None,
    errors: str = "raise",
) -> Frame:
    """The frame without some columns: ``drop(columns="x")``, ``drop(["x", "y"], axis=1)``.

    Rows have no labels here, so that labels alone are of columns, as with ``axis=1`` in pandas.
    """
    columns = _of_columns("drop", labels, columns, index, axis)
    if columns is None:
        raise BadType("drop takes columns='name', or a list of names.")
    names = list(columns) if isinstance(columns, list | tuple | pd.Index) else [columns]
    if _validate.choice(errors, "errors", ("raise", "ignore")) == "ignore":
        names = [n for n in names if _is_name(n, self._selection.columns)]
    gone = {_validate.column_name(n, self._selection.columns) for n in names}
    kept = {n: e for n, e in self._selection.columns.items() if n not in gone}
    return self._new(self._selection.having(kept))


def dropna(
    self: Frame,
    subset: Any = None,
    *,
    how: str | None = None,
    thresh: int | None = None,
    axis: Any = 0,
    ignore_index: bool = False,
) -> Frame:
    """The rows without nulls, in the columns named or in all; with ``how="all"`` those with any value, with ``thresh=k``
    those with k values.

    >>> df = pd.DataFrame({"a": [1.0, None, None], "b": ["x", "y", None]})
    >>> p = df.dp.open(100)
    >>> p.dropna(how="all").count(epsilon=50) == 2
    True
    """
    if not _validate.among(axis, (0, "index", "rows")):
        raise Refused(
            "dropna drops rows here: whether a column has a null is a fact about people. Write p.drop(columns='name')."
        )
    _validate.flag(ignore_index, "ignore_index")
    if how is not None and thresh is not None:
        raise BadType("dropna takes how= or thresh=, and not both.")
    how = "any" if how is None else _validate.choice(how, "how", ("any", "all"))
    names = list(self._selection.columns) if subset is None else subset
    names = names if isinstance(names, list | tuple | pd.Index) else [names]
    exprs = [self._selection.expr(name) for name in names]
    frame = self
    if thresh is not None:
        return frame._where(_with_values(exprs, _validate.positive_int(thresh, "thresh")))
    if how == "all" and exprs:
        return frame if any(not e.nullable for e in exprs) else frame._where(_any_value(exprs))
    for expr in exprs:
        if expr.nullable:
            frame = frame._where(_expr.not_null(expr))
    return frame


def fillna(self: Frame, value: Any) -> Frame:
    """Constants for nulls, one for all columns or ``{"column": constant}``."""
    if isinstance(value, Mapping):
        fills = {_validate.column_name(k, self._selection.columns): v for k, v in value.items()}
    else:
        fills = dict.fromkeys(self._selection.columns, value)
    return _each(self, fills, lambda column, v: column.fillna(v))


def clip(self: Frame, lower: float | None = None, upper: float | None = None) -> Frame:
    """Every number moved into [lower, upper]; a null stays null."""
    numbers = [n for n, e in self._selection.columns.items() if e.kind == "number"]
    return _each(self, dict.fromkeys(numbers), lambda column, _: column.clip(lower, upper))


def astype(self: Frame, dtype: Any) -> Frame:
    """Other dtypes (float, int, bool, str), one for all columns or ``{"column": dtype}``."""
    wanted = dtype if isinstance(dtype, Mapping) else dict.fromkeys(self._selection.columns, dtype)
    return _each(self, wanted, lambda column, v: column.astype(v))


def _each(
    frame: Frame, arguments: Mapping[Any, Any], step: Callable[[PrivateColumn, Any], PrivateColumn]
) -> Frame:
    changed = {}
    for key, argument in arguments.items():
        name = _validate.column_name(key, frame._selection.columns)
        changed[name] = step(PrivateColumn(frame, frame._selection.columns[name], name), argument)._expr
    return frame._new(frame._selection.having({**frame._selection.columns, **changed}))


def cut(self: Tracked, column: Any, bins: Any, *, labels: Any = None, right: bool = True) -> PrivateColumn:
    """A column cut at given edges, as ``pd.cut``; for ``assign(band=p.cut("age", [0, 18, 65, 110]))``."""
    return PrivateColumn(self, self._selection.expr(column), column).cut(bins, labels=labels, right=right)


def isin(self: Frame, values: Mapping[Any, Any] | Iterable[Any]) -> Frame:
    """Each cell replaced by whether it is one of the values; of a dict, one of those for its column."""
    wanted = values if isinstance(values, Mapping) else dict.fromkeys(self._selection.columns, values)
    return _each(
        self, {**dict.fromkeys(self._selection.columns, ()), **wanted}, lambda column, v: column.isin(v)
    )


def isna(self: Frame) -> Frame:
    """Each cell replaced by whether it is null, so that ``p.isna().sum()`` and ``p.isna().mean()`` are one release.

    A row has a say in every column, so all of them share the price: select those that matter, ``p[["age"]].isna()``.

    >>> df = pd.DataFrame({"age": [30, None, 55], "state": ["CA", "NY", None]})
    >>> p = df.dp.open(1000)
    >>> p.isna().sum(epsilon=900)
    age      1
    state    1
    dtype: int64
    """
    return self._new(
        self._selection.having({n: _expr.is_null(e) for n, e in self._selection.columns.items()})
    )


def notna(self: Frame) -> Frame:
    """Each cell replaced by whether it is not null; see `isna`."""
    return self._new(
        self._selection.having({n: _expr.not_null(e) for n, e in self._selection.columns.items()})
    )


def sort_values(self: Frame, *args: Any, **kwargs: Any) -> Frame:
    """Nothing: a private answer does not depend on the order of rows. Says so in a warning."""
    warnings.warn(
        "sort_values does nothing here: no answer depends on the order of rows. Sort the answer instead.",
        UserWarning,
        stacklevel=2,
    )
    return self


def _of_columns(verb: str, given: Any, columns: Any, index: Any, axis: Any) -> Any:
    """What is said of columns, in whichever word; rows have no labels."""
    if index is not None or (axis is not None and not _validate.among(axis, (1, "columns"))):
        raise Refused(
            f"{verb} is of columns here: rows are people and have no labels. Write axis=1 or columns=; rows are chosen by a "
            "condition, p[p['x'] > 1]."
        )
    if given is not None and columns is not None:
        raise BadType(f"{verb} is given columns twice: once in columns= is enough.")
    return given if columns is None else columns


def _is_name(name: Any, known: Mapping[Hashable, Expr]) -> bool:
    try:
        return name in known
    except TypeError:
        raise BadType(f"a column is given by its name, not by a {type(name).__name__}.") from None


def _any_value(exprs: list[Expr]) -> Expr:
    return reduce(_expr.logical_or, map(_expr.not_null, exprs))


def _with_values(exprs: list[Expr], least: int) -> Expr:
    """Whether so many of some cells of a row are no nulls."""
    found = [_expr.cast(_expr.not_null(e), "int") for e in exprs]
    zero: Expr = _expr.constant(0)
    total = reduce(lambda a, b: _expr.arithmetic("+", a, b), found, zero)
    return _expr.compare(">=", total, _expr.constant(least))
