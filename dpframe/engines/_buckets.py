"""Which group a row belongs to: a function of its own value and of the public list of groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._expr import Expr
from dpframe._query import Keys
from dpframe.engines._columns import Vector

Buckets = NDArray[Any]
_TABLE = 2**20  # integer keys within a range of this size are looked up directly


def key_buckets(keys: Keys, expr: Expr) -> Callable[[Vector], Buckets]:
    """From the values of ``expr`` to 1 + the place of the key they equal, or 0."""
    null = 0 if keys.null is None else keys.null + 1
    if expr.kind in ("text", "label"):
        return _by_category(keys, null)
    find = {"bool": _by_truth, "time": _by_time, "number": _by_number}[expr.kind]

    def buckets(vector: Vector) -> Buckets:
        found, missing = find(vector, keys), vector.nulls()
        return found if missing is None else np.where(missing, null, found)

    return buckets


def _by_category(keys: Keys, null: int) -> Callable[[Vector], Buckets]:
    places = {_tagged(k): i + 1 for i, k in enumerate(keys.index) if i != keys.null}
    tables: dict[int, tuple[Any, Buckets]] = {}  # by dictionary, held so that its id stays its own

    def buckets(vector: Vector) -> Buckets:
        categories = vector.categories
        assert categories is not None
        if id(categories) not in tables:
            table = np.zeros(len(categories) + 1, dtype=np.min_scalar_type(len(keys) + 1))
            table[:-1] = [places.get(_tagged(c), 0) for c in categories]
            table[-1] = null  # code -1 is null
            tables[id(categories)] = categories, table
        return tables[id(categories)][1][vector.values]

    return buckets


def _tagged(value: Any) -> object:
    # Python holds 1 and True for equal; a key of one kind never means a value of the other.
    return (type(value), value) if isinstance(value, bool | np.bool_) else value


def _by_truth(vector: Vector, keys: Keys) -> Buckets:
    table = np.zeros(2, dtype=np.int64)
    for i, key in enumerate(keys.index):
        if i != keys.null:
            table[int(bool(key))] = i + 1
    return table[vector.values.astype(np.int8)]


def _by_time(vector: Vector, keys: Keys) -> Buckets:
    index = pd.DatetimeIndex(keys.index)  # compared in UTC, as the engine keeps times
    wanted = index.tz_convert("UTC").tz_localize(None) if index.tz is not None else index
    return np.asarray(wanted.get_indexer(pd.DatetimeIndex(vector.values))) + 1


def _by_number(vector: Vector, keys: Keys) -> Buckets:
    values = vector.values
    wanted = np.array([k for i, k in enumerate(keys.index) if i != keys.null])
    places = np.array([i for i in range(len(keys)) if i != keys.null]) + 1
    if values.dtype.kind in "iub" and wanted.dtype.kind in "iu":
        return _by_integer(values, wanted, places)
    order = np.argsort(wanted)
    ranked = wanted[order].astype(np.float64) if values.dtype.kind == "f" else wanted[order]
    at = np.minimum(np.searchsorted(ranked, values), len(ranked) - 1)
    return np.where(ranked[at] == values, places[order][at], 0)


def _by_integer(values: NDArray[Any], wanted: NDArray[Any], places: NDArray[Any]) -> Buckets:
    low, high = int(wanted.min()), int(wanted.max())
    info = np.iinfo(values.dtype) if values.dtype != bool else np.iinfo(np.uint8)
    if low < info.min or high > info.max:  # keys that this dtype cannot hold match nothing
        fits = np.array([info.min <= int(w) <= info.max for w in wanted])
        if not fits.any():
            return np.zeros(len(values), dtype=np.int64)
        return _by_integer(values, wanted[fits], places[fits])
    if high - low < _TABLE:
        table = np.zeros(high - low + 3, dtype=np.int64)
        table[[int(w) - low + 1 for w in wanted]] = places
        inside = (values >= low) & (values <= high)
        # Differences are taken only where they cannot wrap.
        offset = np.where(inside, values, values.dtype.type(low)) - values.dtype.type(low)
        return np.where(inside, table[offset.astype(np.int64) + 1], 0)
    typed = wanted.astype(values.dtype)
    order = np.argsort(typed)
    ranked = typed[order]
    at = np.minimum(np.searchsorted(ranked, values), len(ranked) - 1)
    return np.where(ranked[at] == values, places[order][at], 0)


def bin_buckets(edges: tuple[float, ...]) -> Callable[[Vector], Buckets]:
    """From numbers to 1 + the bin they fall in: left-closed, the last one closed; 0 outside and for nulls."""
    breaks = np.asarray(edges, dtype=np.float64)
    bins = len(breaks) - 1

    def buckets(vector: Vector) -> Buckets:
        values = vector.values
        found: Any = _whole_bins(values, breaks) if values.dtype.kind in "iub" else None
        if found is None:
            numbers = values.astype(np.float64, copy=False)
            found = _regular_bins(numbers, breaks)
            if found is None:
                found = np.searchsorted(breaks, numbers, side="right")
            found = np.where(numbers == breaks[-1], bins, found)
            found = np.where(found > bins, 0, found)
        missing = vector.nulls()
        return found if missing is None else np.where(missing, 0, found)

    return buckets


def _whole_bins(values: NDArray[Any], breaks: NDArray[np.float64]) -> Buckets | None:
    """Whole numbers in finite bins not too wide: a table with an entry for each number."""
    low, high = breaks[0], breaks[-1]
    if (
        not (np.isfinite(low) and np.isfinite(high))
        or high - low >= _TABLE
        or max(abs(low), abs(high)) > 2**52
    ):
        return None
    first, last = int(np.ceil(low)), int(np.floor(high))
    numbers = np.arange(first, last + 1, dtype=np.float64)
    table = np.searchsorted(breaks, numbers, side="right")
    table[numbers == high] = len(breaks) - 1
    found = np.zeros(last - first + 3, dtype=np.min_scalar_type(len(breaks)))
    found[1:-1] = table
    if values.dtype == bool:
        values = values.view(np.uint8)
    info = np.iinfo(values.dtype)
    floor, ceiling = max(first - 1, info.min), min(last + 1, info.max)
    places: Buckets = found[np.clip(values, floor, ceiling).astype(np.int64) - (first - 1)]
    return places


def _regular_bins(values: NDArray[np.float64], breaks: NDArray[np.float64]) -> Buckets | None:
    """Evenly spaced edges: a guess by division, then corrected against the edges themselves."""
    widths = np.diff(breaks)
    width = (breaks[-1] - breaks[0]) / len(widths)
    if not np.isfinite(width) or width <= 0 or np.abs(widths - width).max() > width * 1e-6:
        return None
    bins = len(widths)
    with np.errstate(invalid="ignore", over="ignore"):
        position = np.clip((values - breaks[0]) * (1 / width), -1.0, bins + 0.0)
    guess = np.nan_to_num(np.floor(position), nan=-1.0, copy=False).astype(np.intp)
    padded = np.concatenate([[-np.inf], breaks, [np.inf]])
    guess -= values < padded[guess + 1]
    guess += values >= padded[np.minimum(guess + 2, bins + 2)]
    return np.where((guess >= 0) & (guess <= bins), guess + 1, 0)
