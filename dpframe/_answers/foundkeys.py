"""Keys that were found, from their texts: whatever was found, there is an index of it and never an
error.

*Formal guarantee.* Post-processing of released texts. The debit is made by then, so a text that is
a key's must be one that can be read: `_cells.texts.text_of` writes no other.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.texts import keys_of
from dpframe._errors import caution
from dpframe._expr import Expr
from dpframe._groups.combinations import Tuples
from dpframe._groups.keys import Keys
from dpframe._questions.question import Release

Columns = list[tuple[Expr, Hashable]]


@dataclass(frozen=True, slots=True)
class Found:
    """Keys, or combinations of several columns', and at which places of the release they stood: of
    two that Python holds for equal, such as 1 and True, the first one stays. None where there are
    none."""

    keys: Keys | Tuples | None
    places: NDArray[np.int64]
    index: pd.Index[Any]


def found_keys(texts: NDArray[Any], columns: Columns) -> Found:
    """The keys that were found, in the order of their values."""
    if not len(texts):
        return Found(None, np.array([], dtype=np.int64), empty_index([name for _, name in columns]))
    if len(columns) == 1:
        ((expr, name),) = columns
        first = _firsts(_keys(texts.tolist(), expr))
        keys = Keys(_index(list(first), expr, name), None)
        return Found(keys, np.array(list(first.values())), keys.index)
    rows = [json.loads(text) for text in texts.tolist()]
    levels = [_keys([row[i] for row in rows], expr) for i, (expr, _) in enumerate(columns)]
    combinations = _firsts(list(zip(*levels, strict=True)))
    parts, places = [], []
    for i, (expr, name) in enumerate(columns):
        own = {key: j for j, key in enumerate(dict.fromkeys(row[i] for row in combinations))}
        parts.append(Keys(_index(list(own), expr, name), None))
        places.append([own[row[i]] for row in combinations])
    tuples = Tuples(parts, np.array(places, dtype=np.int64).T.copy())
    return Found(tuples, np.array(list(combinations.values())), tuples.index)


def keys_in(release: Release, columns: Columns) -> Found:
    """The keys of a release that has them first. Where none were found just now there is a
    warning."""
    found = found_keys(release.raw[0], columns)
    if release.fresh and found.keys is None:
        names = ", ".join(repr(name) for _, name in columns)
        caution(
            f"no value of {names} was found that enough people share: explain tells how many it takes. A larger epsilon finds "
            "rarer ones, and of listed ones, keys=[...], each has an answer."
        )
    return found


def empty_index(names: Sequence[Hashable]) -> pd.Index[Any]:
    if len(names) == 1:
        return pd.Index([], name=names[0])
    return pd.MultiIndex.from_arrays([[] for _ in names], names=list(names))


def _firsts(keys: Sequence[Any]) -> dict[Any, int]:
    first: dict[Any, int] = dict(zip(keys, range(len(keys)), strict=True))
    if len(first) == len(keys):  # as a rule
        return first
    first = {}
    for i, key in enumerate(keys):
        first.setdefault(key, i)
    return first


def _keys(texts: Sequence[str], expr: Expr) -> list[Any]:
    if expr.kind == "text":  # nothing to look at
        return [t[1:] for t in texts]
    zone = getattr(expr, "tz", None)
    found = keys_of(texts, zone)
    listed = getattr(expr, "categories", ())
    if listed and all(type(key) is pd.Interval for key in listed):
        # As pandas has them: whole ends of whole edges.
        own = {key: key for key in listed}
        return [own.get(key, key) for key in found]
    return list(map(float, found)) if expr.kind == "number" and not expr.integral else found


def _index(keys: list[Any], expr: Expr, name: Hashable) -> pd.Index[Any]:
    """An index of the dtype that the column's kind has; of labels, that of what they are, and of
    objects where pandas has none that holds them all: intervals closed on different sides, times of
    several zones."""
    if expr.kind == "time":
        return pd.DatetimeIndex(keys, name=name)
    if all(type(k) is pd.Interval for k in keys) and len({k.closed for k in keys}) == 1:
        return pd.IntervalIndex(keys, name=name)
    if all(type(k) is pd.Timestamp for k in keys) and len({k.tz for k in keys}) == 1:
        return pd.DatetimeIndex(keys, name=name)
    kinds = {*map(type, keys)}
    if len(kinds) == 1 and not kinds & {pd.Interval, pd.Timestamp}:
        plain: pd.Index[Any] = pd.Index(keys, name=name, tupleize_cols=False)
        return plain
    cells = np.empty(len(keys), dtype=object)
    cells[:] = keys
    mixed: pd.Index[Any] = pd.Index(cells, name=name, dtype=object)
    return mixed
