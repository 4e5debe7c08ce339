"""Keys that were found, read from their texts.

*Formal guarantee.* Post-processing of released texts. The debit is made by then, so every text can
be read, and has a place in an index: `_cells.texts.text_of` writes no other.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.texts import keys_of
from dpframe._errors import caution
from dpframe._expr import Expr
from dpframe._groups.combinations import Tuples
from dpframe._groups.keys import Keys
from dpframe._questions.question import Release
from dpframe._types import Array, Index

K = TypeVar("K", bound=Hashable)
KeyColumns: TypeAlias = list[tuple[Expr, Hashable]]


@dataclass(frozen=True, slots=True)
class KeysInRelease:
    """Keys that were found, or combinations of several columns', and their places in the release.

    Python takes some keys for equal, such as 1 and True: the first one stays.
    """

    keys: Keys | Tuples | None  # None if nothing was found
    places: NDArray[np.int64]
    index: Index


def read_keys(texts: Array, columns: KeyColumns) -> KeysInRelease:
    """Return the keys that a release found, in the order of their values.

    ``texts`` are the keys as they were released. ``columns`` are the expressions and names of the
    columns they are of.
    """
    if not len(texts):
        return KeysInRelease(
            None, np.array([], dtype=np.int64), make_empty_index([name for _, name in columns])
        )
    if len(columns) == 1:
        ((expr, name),) = columns
        first = _find_firsts(_parse_keys(texts.tolist(), expr))
        keys = Keys(_make_index(list(first), expr, name), None)
        return KeysInRelease(keys, np.array(list(first.values())), keys.index)
    rows = [json.loads(text) for text in texts.tolist()]
    levels = [_parse_keys([row[i] for row in rows], expr) for i, (expr, _) in enumerate(columns)]
    combinations = _find_firsts(list(zip(*levels, strict=True)))
    parts, places = [], []
    for i, (expr, name) in enumerate(columns):
        own = {key: j for j, key in enumerate(dict.fromkeys(row[i] for row in combinations))}
        parts.append(Keys(_make_index(list(own), expr, name), None))
        places.append([own[row[i]] for row in combinations])
    tuples = Tuples(parts, np.array(places, dtype=np.int64).T.copy())
    return KeysInRelease(tuples, np.array(list(combinations.values())), tuples.index)


def read_released_keys(release: Release, columns: KeyColumns) -> KeysInRelease:
    """Return the keys of a release that has them first; warn if nothing was found just now."""
    found = read_keys(release.raw[0], columns)
    if release.fresh and found.keys is None:
        names = ", ".join(repr(name) for _, name in columns)
        caution(
            f"no value of {names} was found that enough people share: explain tells how many it "
            "takes. A larger epsilon finds rarer ones, and each listed value, keys=[...], has an "
            "answer."
        )
    return found


def make_empty_index(names: Sequence[Hashable]) -> Index:
    """Return an index without rows, with these names."""
    if len(names) == 1:
        return pd.Index([], name=names[0])
    return pd.MultiIndex.from_arrays([[] for _ in names], names=list(names))


def _find_firsts(keys: Sequence[K]) -> dict[K, int]:
    """Return the position of each key in a list, of equal keys that of the first."""
    first: dict[K, int] = dict(zip(keys, range(len(keys)), strict=True))
    if len(first) == len(keys):  # as a rule
        return first
    first = {}
    for i, key in enumerate(keys):
        first.setdefault(key, i)
    return first


def _parse_keys(texts: Sequence[str], expr: Expr) -> list[Any]:
    """Return the keys of a column from the texts in which they were released.

    ``expr`` is the column, which decides their type.
    """
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


def _make_index(keys: list[Any], expr: Expr, name: Hashable) -> Index:
    """Return an index of keys, of the dtype that pandas gives such values.

    Labels have the dtype of what they are. Objects stand where no dtype of pandas holds them all:
    intervals that are closed on different sides, or times of several zones.
    """
    if expr.kind == "time":
        return pd.DatetimeIndex(keys, name=name)
    if all(type(k) is pd.Interval for k in keys) and len({k.closed for k in keys}) == 1:
        return pd.IntervalIndex(keys, name=name)
    if all(type(k) is pd.Timestamp for k in keys) and len({k.tz for k in keys}) == 1:
        return pd.DatetimeIndex(keys, name=name)
    kinds = {*map(type, keys)}
    if len(kinds) == 1 and not kinds & {pd.Interval, pd.Timestamp}:
        plain: Index = pd.Index(keys, name=name, tupleize_cols=False)
        return plain
    cells = np.empty(len(keys), dtype=object)
    cells[:] = keys
    mixed: Index = pd.Index(cells, name=name, dtype=object)
    return mixed
