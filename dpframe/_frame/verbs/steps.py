"""Person-wise steps: each looks at one row at a time, is free, and returns another tracked
frame."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import datetime
from difflib import get_close_matches
from functools import reduce
from typing import Any, cast

import numpy as np
import pandas as pd

from dpframe import _expr, _validate
from dpframe._answers.receipts import ANSWER, get_receipt
from dpframe._errors import BadType, BadValue, NotOffered, Refused
from dpframe._expr import Expr
from dpframe._frame.column import PrivateColumn
from dpframe._frame.columns.lookups import read_pairs
from dpframe._frame.places import assign_item
from dpframe._frame.selection import expression_of, find_caller, selection_of
from dpframe._frame.tracked import (
    Frame,
    Tracked,
    keep_rows_where,
    read_expression_or_text,
    refuse_lost_change,
    with_selection,
)
from dpframe._frame.verbs.looking import schema_of
from dpframe._types import Index


def assign(self: Frame, **columns: object) -> Frame:
    """Add columns: a string expression, a tracked column, ``pd.col``, a constant, or ``lambda p:
    p["x"] / 2``.

    Bounds of a new column follow from those of the old ones. A string is an expression; a single
    word that is no column is a text, as in pandas.

    >>> df = pd.DataFrame({"cost": [120.0, 40.0]})
    >>> p = df.dp.open(1, bounds={"cost": (0, 50_000)})
    >>> p.assign(cost_k="cost / 1000").explain.sum("cost_k").sensitivity
    50.0
    """
    caller, frame = find_caller(), self
    for name, value in columns.items():
        expr, frame = read_expression_or_text(frame, _read_value(frame, name, value), caller)
        frame = with_selection(
            frame, selection_of(frame).replace_columns({**selection_of(frame).columns, name: expr})
        )
    return frame


def _read_value(frame: Tracked, name: str, value: object) -> Any:
    """Return what a new column is set to.

    A text of one word is a column's name or, as in pandas, the text itself.
    """
    if not isinstance(value, str) or not value.isidentifier() or value in ("True", "False"):
        return value
    known = selection_of(frame).columns
    if value in known or get_close_matches(value, map(str, known), n=1):
        raise Refused(
            f"{name}={value!r} is a text in pandas, and may be meant for a column here. Write p.assign({name}=p[{value!r}]) for "
            f"the column, and p.assign({name}=lambda d: {value!r}) for the text."
        )
    return lambda _: value


def rename(
    self: Frame,
    mapper: Mapping[Any, object] | Callable[[Any], object] | None = None,
    *,
    columns: Mapping[Any, object] | Callable[[Any], object] | None = None,
    index: None = None,
    axis: object = None,
    errors: str = "ignore",
    inplace: bool = False,
) -> Frame:
    """Rename columns, by ``columns={"old": "new"}`` or a function of a name.

    Bounds and keys stay with them.

    A mapper without ``axis=1`` is of the labels of rows in pandas, which have none here.
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
    return self._done(self._new(self._selection.replace_columns(renamed)), inplace)


def drop(
    self: Frame,
    labels: object = None,
    *,
    columns: object = None,
    index: None = None,
    axis: object = None,
    errors: str = "raise",
    inplace: bool = False,
) -> Frame:
    """Leave some columns out: ``drop(columns="x")``, ``drop(["x", "y"], axis=1)``.

    Labels without ``axis=1`` are those of rows in pandas, which have none here.
    """
    columns = _of_columns("drop", labels, columns, index, axis)
    if columns is None:
        raise BadType("drop takes columns='name', or a list of names.")
    names = list(columns) if isinstance(columns, list | tuple | pd.Index) else [columns]
    if _validate.choice(errors, "errors", ("raise", "ignore")) == "ignore":
        names = [n for n in names if _is_name(n, self._selection.columns)]
    gone = {_validate.column_name(n, self._selection.columns) for n in names}
    kept = {n: e for n, e in self._selection.columns.items() if n not in gone}
    return self._done(self._new(self._selection.replace_columns(kept)), inplace)


def dropna(
    self: Frame,
    subset: object = None,
    *,
    how: str | None = None,
    thresh: int | None = None,
    axis: object = 0,
    ignore_index: bool = False,
    inplace: bool = False,
) -> Frame:
    """Keep the rows without nulls, in the columns named or in all; with ``how="all"`` those with
    any value, with ``thresh=k`` those with k values.

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
        frame = keep_rows_where(
            frame, _with_values(exprs, _validate.positive_int(thresh, "thresh"))
        )
    elif how == "all" and exprs:
        frame = (
            frame
            if any(not e.nullable for e in exprs)
            else keep_rows_where(frame, _any_value(exprs))
        )
    else:
        for expr in exprs:
            if expr.nullable:
                frame = keep_rows_where(frame, _expr.not_null(expr))
    return self._done(frame, inplace)


def fillna(self: Frame, value: object, *, inplace: bool = False) -> Frame:
    """Put constants in the place of nulls, one for all columns or ``{"column": constant}``."""
    if isinstance(value, pd.Series) and get_receipt(value, ANSWER) is not None:
        # What was released of each column.
        value = {name: one for name, one in value.items() if name in self._selection.columns}
    if isinstance(value, Mapping):
        fills = {_validate.column_name(k, self._selection.columns): v for k, v in value.items()}
    else:
        nullable = {
            name: expr.kind for name, expr in self._selection.columns.items() if expr.nullable
        }
        numbers = [name for name, kind in nullable.items() if kind == "number"]
        if numbers and len(numbers) < len(nullable) and isinstance(value, int | float):
            other = next(name for name, kind in nullable.items() if kind != "number")
            raise BadType(
                f"column {other!r} is of kind {nullable[other]} and cannot hold a number. Name the columns: "
                f"p.fillna({dict.fromkeys(numbers, value)})."
            )
        fills = dict.fromkeys(nullable, value)
    return self._done(_replace_columns(self, fills, lambda column, v: column.fillna(v)), inplace)


def clip(
    self: Frame, lower: float | None = None, upper: float | None = None, *, inplace: bool = False
) -> Frame:
    """Move every number into [lower, upper]; a null stays null."""
    numbers = [n for n, e in self._selection.columns.items() if e.kind == "number"]
    return self._done(
        _replace_columns(self, dict.fromkeys(numbers), lambda column, _: column.clip(lower, upper)),
        inplace,
    )


def astype(self: Frame, dtype: object) -> Frame:
    """Give columns other dtypes (float, int, bool, str), one for all columns or ``{"column":
    dtype}``."""
    wanted = dtype if isinstance(dtype, Mapping) else dict.fromkeys(self._selection.columns, dtype)
    return _replace_columns(self, wanted, lambda column, v: column.astype(v))


def _replace_columns(
    frame: Frame,
    arguments: Mapping[Any, object],
    step: Callable[[PrivateColumn, Any], PrivateColumn],
) -> Frame:
    """Return the frame with some columns replaced by what a function makes of them.

    ``arguments`` has an argument of the function ``step`` for each of these columns, by name.
    """
    changed = {}
    for key, argument in arguments.items():
        name = _validate.column_name(key, selection_of(frame).columns)
        changed[name] = expression_of(
            step(PrivateColumn(frame, selection_of(frame).columns[name], name), argument)
        )
    return with_selection(
        frame, selection_of(frame).replace_columns({**selection_of(frame).columns, **changed})
    )


# Kinds of constants, by the kinds of columns that can hold one: elsewhere it does not occur.
_CONSTANTS: dict[str, tuple[type, ...]] = {
    "number": (int, float, np.integer, np.floating),
    "bool": (bool, np.bool_),
    "text": (str,),
    "label": (str, int, float),
    "time": (datetime,),
}


def replace(
    self: Frame,
    to_replace: Any = None,
    value: Any = ...,
    *,
    inplace: bool = False,
    regex: Any = False,
) -> Frame:
    """Replace some values by others, in every column that can hold them: ``replace("?", None)``,
    ``replace({"F": "female"})``; or by column, ``replace({"sex": {"F": "female"}})`` and
    ``replace({"cost": -1}, None)``.

    >>> df = pd.DataFrame({"sex": ["F", "M", "?"], "cost": [3, 4, -1]})
    >>> p = df.dp.open(1000)
    >>> p.replace("?", None).replace({"cost": -1}, None).dropna().count(epsilon=900) == 2
    True
    """
    columns = self._selection.columns
    by_column = isinstance(to_replace, Mapping) and (
        value is not ...
        or (bool(to_replace) and all(isinstance(v, Mapping) for v in to_replace.values()))
    )
    if by_column:
        pairs = {_validate.column_name(name, columns): old for name, old in to_replace.items()}
        frame = _replace_columns(
            self, pairs, lambda column, old: column.replace(old, value, regex=regex)
        )
        return self._done(frame, inplace)
    listed = read_pairs(to_replace, value)
    chosen = {
        name: {
            old: new
            for old, new in listed.items()
            if old is None or isinstance(old, _CONSTANTS.get(expr.kind, ()))
        }
        for name, expr in columns.items()
    }
    given = {name: pairs for name, pairs in chosen.items() if pairs}
    return self._done(
        _replace_columns(self, given, lambda column, pairs: column.replace(pairs, regex=regex)),
        inplace,
    )


def map_(self: Frame, func: Callable[[Any], object], na_action: object = None) -> Frame:
    """Apply a function of one value to every cell.

    It is called once with a tracked column of each, as `PrivateColumn.map` does.
    """
    if not callable(func):
        raise BadType(
            "map of a frame takes a function of one value. Values for values are p.replace({'a': 'b'})."
        )
    return _replace_columns(
        self, dict.fromkeys(self._selection.columns), lambda column, _: column.map(func, na_action)
    )


map_.__name__ = "map"  # which is a name of Python's here


def cut(
    self: Tracked, column: object, bins: object, *, labels: object = None, right: bool = True
) -> PrivateColumn:
    """Cut a column at given edges, as ``pd.cut``; for ``assign(band=p.cut("age", [0, 18, 65,
    110]))``."""
    return PrivateColumn(self, self._selection.expr(column), column).cut(
        bins, labels=labels, right=right
    )


def isin(self: Frame, values: Mapping[Any, object] | Iterable[object]) -> Frame:
    """Replace each value by whether it is one of ``values``; of a dict, one of those for its
    column."""
    wanted = (
        values if isinstance(values, Mapping) else dict.fromkeys(self._selection.columns, values)
    )
    return _replace_columns(
        self,
        {**dict.fromkeys(self._selection.columns, ()), **wanted},
        lambda column, v: column.isin(v),
    )


def isna(self: Frame) -> Frame:
    """Replace each value by whether it is null, for ``p.isna().sum()`` or ``p.isna().mean()`` in
    one release.

    A row counts in every column, so all of them share the price: select those that matter,
    ``p[["age"]].isna()``.

    >>> df = pd.DataFrame({"age": [30, None, 55], "state": ["CA", "NY", None]})
    >>> p = df.dp.open(1000)
    >>> p.isna().sum(epsilon=900)
    age      1 ± 0
    state    1 ± 0
    dtype: int64
    """
    return self._new(
        self._selection.replace_columns(
            {n: _expr.is_null(e) for n, e in self._selection.columns.items()}
        )
    )


def notna(self: Frame) -> Frame:
    """Replace each value by whether it is not null; see `isna`."""
    return self._new(
        self._selection.replace_columns(
            {n: _expr.not_null(e) for n, e in self._selection.columns.items()}
        )
    )


def sort_index(self: Frame, *args: object, **kwargs: object) -> Frame:
    """Return the frame itself: a private answer does not depend on the order of rows."""
    return self._done(self, kwargs.get("inplace", False))


def keep_frame(self: Frame, *args: object, inplace: bool = False, **words: object) -> Frame:
    """Return the frame itself, for verbs of pandas that have nothing to change here.

    Rows have no labels, and columns are told apart by kind and not by dtype.
    """
    return self._done(self, inplace)


def squeeze(self: Tracked, axis: object = None) -> Any:
    """Return the column of a frame that has one; another frame stays what it is."""
    names = list(self._selection.columns)
    return cast(Any, self)[names[0]] if len(names) == 1 else self


def keys(self: Tracked) -> Index:
    """Return the names of the columns."""
    return pd.Index(list(self._selection.columns), tupleize_cols=False)


def insert(
    self: Tracked, loc: int, column: object, value: object, allow_duplicates: bool = False
) -> None:
    """Insert a new column into this frame itself, at position ``loc``."""
    columns = self._selection.columns
    if _validate.flag(allow_duplicates, "allow_duplicates") or _is_name(column, columns):
        raise BadValue(
            f"there is a column {column!r} already, and two of one name cannot be told apart."
        )
    if (
        isinstance(loc, bool)
        or not isinstance(loc, int | np.integer)
        or not 0 <= loc <= len(columns)
    ):
        raise BadValue(f"loc must be a place from 0 to {len(columns)}.")
    refuse_lost_change(self)
    made = assign_item(self, column, value)
    order = list(columns)
    order.insert(int(loc), column)
    self._become(self._selection.replace_columns({name: made[name] for name in order}))


def pop(self: Tracked, item: object) -> PrivateColumn:
    """Take a column out of this frame, and return it."""
    refuse_lost_change(self)
    name = _validate.column_name(item, self._selection.columns)
    column = PrivateColumn(self._new(self._selection), self._selection.columns[name], name)
    self._become(selection_of(drop(self, columns=name)))
    return column


def get(self: Frame, key: object, default: object = None) -> Any:
    """Return a column, or several of a list, or the default if no column has that name."""
    names = key if isinstance(key, list) else [key]
    if not all(_is_name(name, self._selection.columns) for name in names):
        return default
    return cast(Any, self)[key]


def copy(self: Frame, deep: bool = True) -> Frame:
    """Return the frame as it is now: what is set in one of the two is not set in the other.

    Both are of the same session and budget.
    """
    _validate.flag(deep, "deep")
    return self._copy()


def filter(
    self: Frame,
    items: object = None,
    like: str | None = None,
    regex: str | None = None,
    axis: object = None,
) -> Frame:
    """Keep the columns whose names are listed, contain a text, or match a regular expression."""
    if axis is not None and not _validate.among(axis, (1, "columns")):
        raise Refused(
            "filter is of columns here, since rows have no labels: they are chosen by a condition, p[p['x'] > 1]."
        )
    if sum(given is not None for given in (items, like, regex)) != 1:
        raise BadType("filter takes one of items=, like= and regex=: p.filter(like='cost').")
    columns = self._selection.columns
    if items is not None:
        listed = [_validate.hashable(item, "a name") for item in _list(items, "items")]
        names = [name for name in listed if name in columns]
    elif like is not None:
        names = [name for name in columns if _text(like, "like") in str(name)]
    else:
        try:
            pattern = re.compile(_text(regex, "regex"))
        except (re.error, OverflowError, RecursionError):
            raise BadValue(f"regex={regex!r} is no regular expression.") from None
        names = [name for name in columns if pattern.search(str(name))]
    return self._new(self._selection.choose_columns(names))


def _text(value: object, word: str) -> str:
    if not isinstance(value, str):
        raise BadType(f"{word}= must be a text, not {type(value).__name__}.")
    return value


def select_dtypes(self: Frame, include: Any = None, exclude: Any = None) -> Frame:
    """Keep the columns of some dtypes, as pandas chooses them: ``include="number"``,
    ``exclude=["object"]``."""
    problem = None
    try:
        names = schema_of(self._selection).select_dtypes(include, exclude).columns
    except (TypeError, ValueError, NotImplementedError) as error:
        problem = " ".join(str(error).split())  # of a frame without rows
    if problem is not None:
        raise BadType(
            f"these dtypes cannot be selected: {problem.rstrip('.')}. Write p.select_dtypes(include='number')."
        )
    return self._new(self._selection.choose_columns(names))


def reindex(
    self: Frame,
    labels: object = None,
    *,
    index: None = None,
    columns: object = None,
    axis: object = None,
) -> Frame:
    """Put the columns into another order, or keep some of them: ``reindex(columns=["y", "x"])``."""
    if index is not None or (labels is not None and not _validate.among(axis, (1, "columns"))):
        raise Refused(
            "reindex is of columns here, since rows have no labels: p.reindex(columns=['x', 'y'])."
        )
    given = columns if labels is None else labels
    if given is None:
        raise BadType("reindex takes columns=, a list of names.")
    names = _validate.column_names(_list(given, "columns"), self._selection.columns)
    return self._new(self._selection.choose_columns(names))


def _list(value: object, word: str) -> list[Any]:
    """Return the names that an argument lists, or refuse what is not a list.

    ``word`` is the argument, for messages.
    """
    if not isinstance(value, list | tuple | range | pd.Index | np.ndarray):
        rows = (
            " Rows are chosen by a condition: p[p['x'] > 1], p.query('x > 1')."
            if word == "items"
            else ""
        )
        raise BadType(f"{word}= must be a list of names, not {type(value).__name__}.{rows}")
    return list(value)


def add_prefix(self: Frame, prefix: str, axis: object = None) -> Frame:
    """Put a text before each name of a column."""
    return rename(self, lambda name: f"{prefix}{name}", axis=1 if axis is None else axis)


def add_suffix(self: Frame, suffix: str, axis: object = None) -> Frame:
    """Put a text behind each name of a column."""
    return rename(self, lambda name: f"{name}{suffix}", axis=1 if axis is None else axis)


def set_axis(self: Frame, labels: object, *, axis: object = 0, copy: object = None) -> Frame:
    """Give all columns other names, in their order: ``set_axis(["a", "b"], axis=1)``."""
    if not _validate.among(axis, (1, "columns")):
        raise Refused(
            "rows have no labels here. For the names of columns: p.rename(columns={'x': 'new'})."
        )
    columns = self._selection.columns
    names = [_validate.hashable(label, "a name") for label in _list(labels, "labels")]
    if len(names) != len(columns):
        raise BadValue(f"there are {len(columns)} columns, and {len(names)} names are given.")
    if len(set(names)) < len(names):
        raise BadValue("two columns would have the same name.")
    return self._new(
        self._selection.replace_columns(dict(zip(names, columns.values(), strict=True)))
    )


def set_index(
    self: Frame,
    keys: object,
    *,
    drop: bool = True,
    append: bool = False,
    inplace: bool = False,
    verify_integrity: bool = False,
) -> Frame:
    """Make columns the index: `resample` takes its times from there, and `groupby` finds them by
    name.

    >>> df = pd.DataFrame({"t": pd.to_datetime(["2024-01-05", "2024-03-31"]), "cost": [3, 4]})
    >>> p = df.dp.open(1000, bounds={"t": ("2024-01-01", "2024-03-31"), "cost": (0, 9)})
    >>> p.set_index("t").resample("QE")["cost"].sum(epsilon=900)
    t
    2024-03-31    7 ± 0
    Freq: QE-DEC, Name: cost, dtype: int64
    """
    if _validate.flag(verify_integrity, "verify_integrity"):
        raise Refused(
            "verify_integrity= would tell whether two people have one value. Leave it out."
        )
    columns = self._selection.columns
    names = _validate.column_names(keys if isinstance(keys, list) else [keys], columns)
    before = self._selection.index if _validate.flag(append, "append") else {}
    gone = names if _validate.flag(drop, "drop") else []
    selection = dataclasses.replace(
        self._selection.replace_columns(
            {name: expr for name, expr in columns.items() if name not in gone}
        ),
        index={**before, **{name: columns[name] for name in names}},
    )
    return self._done(self._new(selection), inplace)


def reset_index(
    self: Frame,
    level: object = None,
    *,
    drop: bool = False,
    inplace: bool = False,
    col_level: Hashable = 0,
    col_fill: Hashable = "",
    allow_duplicates: bool = False,
    names: object = None,
) -> Frame:
    """Make the index columns again, before the others; with ``drop=True`` leave it out.

    ``level`` names some columns of the index, or is None for all.
    """
    index, columns = self._selection.index, self._selection.columns
    if not index and drop is True:  # as it is typed after each filter
        return self._done(self, inplace)
    chosen = (
        list(index)
        if level is None
        else _validate.column_names(level if isinstance(level, list) else [level], index)
    )
    if not index and not _validate.flag(drop, "drop"):
        raise Refused(
            "the rows have no labels here: their numbers would tell who stands before whom. Write p.reset_index(drop=True), "
            "which changes nothing."
        )
    if names is not None or allow_duplicates is not False:
        raise NotOffered(
            "reset_index takes neither names= nor allow_duplicates= here: rename the columns, p.rename(columns={})."
        )
    new = {} if drop else {name: index[name] for name in chosen}
    both = [name for name in new if name in columns]
    if both:
        raise BadValue(
            f"there is a column {both[0]!r} already. Write p.reset_index(drop=True), or rename it first."
        )
    selection = dataclasses.replace(
        self._selection.replace_columns({**new, **columns}),
        index={n: e for n, e in index.items() if n not in chosen},
    )
    return self._done(self._new(selection), inplace)


_TARGET = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)")


def eval(self: Frame, expr: str, *, inplace: bool = False) -> Any:
    """Return a column for an expression as text, ``eval("cost / 2")``, or the frame with new
    columns for ``eval("y = cost / 2")``."""
    if not isinstance(expr, str):
        raise BadType(f"an expression is a text such as 'y = x / 2', not {type(expr).__name__}.")
    caller, frame = find_caller(), self
    lines = [line for line in expr.splitlines() if line.strip()]
    if len(lines) == 1 and not _TARGET.match(expr):
        made, frame = read_expression_or_text(frame, expr.strip(), caller)
        if _validate.flag(inplace, "inplace"):
            raise BadValue("inplace= needs a column that is set, as p.eval('y = x / 2') sets one.")
        return PrivateColumn(frame, made, None)
    for line in lines:
        target = _TARGET.match(line)
        if target is None:
            raise BadType("each of several lines sets a column: p.eval('y = x / 2').")
        made, frame = read_expression_or_text(frame, line[target.end() :].strip(), caller)
        frame = with_selection(
            frame,
            selection_of(frame).replace_columns({**selection_of(frame).columns, target[1]: made}),
        )
    return self._done(frame, inplace)


def _of_columns(verb: str, given: object, columns: object, index: object, axis: object) -> Any:
    """Return the columns that `drop` or `rename` is given, by ``columns=`` or with ``axis=1``.

    ``given`` is the first argument. Without ``axis=1`` pandas takes it for labels of rows, so it is
    refused: rows have no labels here. Beside ``columns=`` the axis means nothing.
    """
    if columns is not None and given is None and _validate.among(axis, (0, "index")):
        axis = None
    if index is not None or (axis is not None and not _validate.among(axis, (1, "columns"))):
        raise Refused(
            f"{verb} is of columns here: rows are people and have no labels. Write axis=1 or columns=; rows are chosen by a "
            "condition, p[p['x'] > 1]."
        )
    if given is not None and axis is None and columns is None:
        what = {"drop": "columns='name'", "rename": "columns={'old': 'new'}"}[verb]
        raise Refused(
            f"in pandas {verb} without axis= is of the labels of rows, which have none here. Of columns it is p.{verb}({what}), "
            "or the same with axis=1."
        )
    if given is not None and columns is not None:
        raise BadType(f"{verb} is given columns twice: once in columns= is enough.")
    return given if columns is None else columns


def _is_name(name: object, known: Mapping[Hashable, Expr]) -> bool:
    try:
        return name in known
    except TypeError:
        raise _validate.no_name(name) from None


def _any_value(exprs: list[Expr]) -> Expr:
    return reduce(_expr.logical_or, map(_expr.not_null, exprs))


def _with_values(exprs: list[Expr], least: int) -> Expr:
    """Return true where at least ``least`` cells of a row are not null."""
    present = [_expr.cast(_expr.not_null(e), "int") for e in exprs]
    zero: Expr = _expr.constant(0)
    total = reduce(lambda a, b: _expr.arithmetic("+", a, b), present, zero)
    return _expr.compare(">=", total, _expr.constant(least))
