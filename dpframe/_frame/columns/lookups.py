"""Replacements of values: ``map`` by a public dict or Series, and ``replace``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, BadValue, Refused
from dpframe._expr import Expr
from dpframe._frame.selection import (
    BoundColumn,
    expression_of,
    frame_of_column,
    selection_of,
    session_of_frame,
)
from dpframe._frame.verbs.merge import is_private
from dpframe._types import Series


def look_up(column: BoundColumn, mapping: Any, default: Any, keeps_nulls: bool) -> Expr:
    """Return the expression of ``map``: what a public dict or Series has for each value of a
    column.

    Values that it does not list become the ``default``. With ``keeps_nulls`` nulls stay nulls.
    """
    x = expression_of(column)
    if isinstance(mapping, pd.Series):
        mapping = _read_series(column, mapping)
    if default is None and isinstance(mapping, defaultdict) and mapping.default_factory is not None:
        default = mapping.default_factory()
    mapping = dict(mapping)
    if keeps_nulls:
        mapping = {key: value for key, value in mapping.items() if not _is_null(key)}
    if not mapping and default is not None:
        raise BadType("map needs a public dict that is not empty.")
    found = _expr.map_dict(x, mapping)
    if default is not None:
        found = _expr.choose(_expr.is_in(x, list(mapping)), found, default)
        if keeps_nulls:
            found = _expr.choose(_expr.is_null(x), None, found)
    return found


def _read_series(column: BoundColumn, series: Series) -> dict[Any, Any]:
    """Return a public Series as a dict by its index; one about people is refused."""
    session = session_of_frame(frame_of_column(column))
    if is_private(series, session):
        raise Refused(
            "this Series belongs to a private session, so it is not public. Map by a public dict "
            "or Series, or merge before opening."
        )
    if expression_of(column).columns() & frozenset(session.unit.people):
        raise Refused(
            "the column names a person, and a Series by people is almost always private. If it is "
            "public, say why: p.merge(series.reset_index(), on=..., because='...')."
        )
    if not series.index.is_unique:
        raise BadValue("the index of a Series to map by must have each value once.")
    _validate.length(series, "the Series")
    return dict(zip(series.index.tolist(), series.tolist(), strict=True))


def _is_null(value: object) -> bool:
    """Return whether a public value is None, NaN, NA or NaT."""
    return (
        value is None
        or value is pd.NA
        or value is pd.NaT
        or (isinstance(value, float) and value != value)
    )


def replace_values(column: BoundColumn, old: object, new: object, regex: object) -> Expr:
    """Return the expression of ``replace``: a column with some values replaced by others.

    ``old`` and ``new`` are as in pandas, and ``regex`` is refused.
    """
    if regex is not False:
        raise BadType(
            "replace has no regex= here. Parts of a text: "
            "p['x'].str.replace('a+', 'b', regex=True)."
        )
    x = expression_of(column)
    mapping = read_pairs(old, new)
    gone = [key for key, value in mapping.items() if _is_null(value) and not _is_null(key)]
    others = {key: value for key, value in mapping.items() if not _is_null(value)}
    kept = _replace_by_values(column, others) if others else x
    return _expr.choose(_expr.is_in(x, gone), None, kept) if gone else kept


def _replace_by_values(column: BoundColumn, mapping: Mapping[Any, object]) -> Expr:
    """Return a column with some values replaced by others that are not null.

    ``mapping`` has the new values by the old ones.
    """
    x = expression_of(column)
    table = _expr.map_dict(x, mapping)
    if _lists_all(column, mapping) and table.kind != x.kind:
        return table  # other cells than the declared keys have no value of the new kind
    filled = [value for key, value in mapping.items() if _is_null(key)]
    if filled and len(mapping) == 1:
        return _expr.fill(x, filled[0])
    try:
        return _expr.choose(_expr.is_in(x, list(mapping)), table, x)
    except BadType as error:
        raise BadType(
            f"{error} Where all values are listed, map has values of any kind: "
            "p['x'].map({'a': 1, 'b': 2})."
        ) from None


def read_pairs(old: object, new: object) -> dict[Any, Any]:
    """Return the old values with the new ones, from the arguments that pandas' replace takes."""
    if isinstance(old, Mapping) and new is ...:
        if any(isinstance(v, Mapping) for v in old.values()):
            raise BadType("replace of one column takes a flat dict: p['x'].replace({'a': 'b'}).")
        return dict(old)
    if isinstance(old, pd.Series | Mapping) or old is None or new is ...:
        raise BadType(
            "replace takes a public dict, or a value and another: p['x'].replace({'a': 'b'})."
        )
    olds = _expr.listed(old, "replace") if isinstance(old, _expr.COLLECTIONS) else [old]
    news = _expr.listed(new, "replace") if isinstance(new, _expr.COLLECTIONS) else [new] * len(olds)
    if len(olds) != len(news):
        raise BadValue(f"replace is given {len(olds)} values and {len(news)} others.")
    for value in olds:
        _validate.hashable(value, "a value to replace")
    return dict(zip(olds, news, strict=True))


def _lists_all(column: BoundColumn, mapping: Mapping[Any, object]) -> bool:
    """Return whether the mapping lists all values that the column can have, by declared keys."""
    keys = selection_of(frame_of_column(column)).values(expression_of(column))
    return keys is not None and all(key in mapping for key in keys)
