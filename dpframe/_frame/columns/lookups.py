"""Values for values: ``map`` by a public dict or Series, and ``replace``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, BadValue, Refused
from dpframe._expr import Expr
from dpframe._frame.verbs.merge import is_private


def looked_up(column: Any, mapping: Any, default: Any, keeps_nulls: bool) -> Expr:
    """The values that a public dict or Series has for those of a column; the default for what it
    does not list."""
    x: Expr = column._expr
    if isinstance(mapping, pd.Series):
        mapping = _listed(column, mapping)
    if default is None and isinstance(mapping, defaultdict) and mapping.default_factory is not None:
        default = mapping.default_factory()
    mapping = dict(mapping)
    if keeps_nulls:
        mapping = {key: value for key, value in mapping.items() if not _null(key)}
    if not mapping and default is not None:
        raise BadType("map needs a public dict that is not empty.")
    found = _expr.map_dict(x, mapping)
    if default is not None:
        found = _expr.choose(_expr.is_in(x, list(mapping)), found, default)
        if keeps_nulls:
            found = _expr.choose(_expr.is_null(x), None, found)
    return found


def _listed(column: Any, series: pd.Series[Any]) -> dict[Any, Any]:
    """A public Series as a dict, by its index."""
    session = column._frame._session
    if is_private(series, session):
        raise Refused(
            "this Series belongs to a private session, so it is not public. Map by a public dict or Series, or merge before "
            "opening."
        )
    if column._expr.columns() & frozenset(session.unit.people):
        raise Refused(
            "the column names a person, and a Series by people is almost always private. If it is public, say why: "
            "p.merge(series.reset_index(), on=..., because='...')."
        )
    if not series.index.is_unique:
        raise BadValue("the index of a Series to map by must have each value once.")
    _validate.length(series, "the Series")
    return dict(zip(series.index.tolist(), series.tolist(), strict=True))


def _null(value: Any) -> bool:
    return (
        value is None
        or value is pd.NA
        or value is pd.NaT
        or (isinstance(value, float) and value != value)
    )


def replaced(column: Any, old: Any, new: Any, regex: Any) -> Expr:
    """The cells, with other values for those that are listed."""
    if regex is not False:
        raise BadType(
            "replace has no regex= here. Parts of a text: p['x'].str.replace('a+', 'b', regex=True)."
        )
    x: Expr = column._expr
    mapping = pairs_of(old, new)
    gone = [key for key, value in mapping.items() if _null(value) and not _null(key)]
    others = {key: value for key, value in mapping.items() if not _null(value)}
    kept = _with_others(column, others) if others else x
    return _expr.choose(_expr.is_in(x, gone), None, kept) if gone else kept


def _with_others(column: Any, mapping: Mapping[Any, Any]) -> Expr:
    """The cells, with other values, of which none is null, for those that are listed."""
    x: Expr = column._expr
    table = _expr.map_dict(x, mapping)
    if covers(column, mapping) and table.kind != x.kind:
        return table  # cells that are none of the declared keys have no value of the new kind
    filled = [value for key, value in mapping.items() if _null(key)]
    if filled and len(mapping) == 1:
        return _expr.fill(x, filled[0])
    try:
        return _expr.choose(_expr.is_in(x, list(mapping)), table, x)
    except BadType as error:
        raise BadType(
            f"{error} Where all values are listed, map has values of any kind: p['x'].map({{'a': 1, 'b': 2}})."
        ) from None


def pairs_of(old: Any, new: Any) -> dict[Any, Any]:
    """What is replaced by what, in the forms that pandas takes."""
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


def covers(column: Any, mapping: Mapping[Any, Any]) -> bool:
    """Whether all values that the column can have, by its declared keys, are listed."""
    keys = column._frame._selection.values(column._expr)
    return keys is not None and all(key in mapping for key in keys)
