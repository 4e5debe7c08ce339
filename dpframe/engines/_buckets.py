"""Which group a row belongs to: a function of its own value and of the public list of groups."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._expr import Expr
from dpframe._query import Keys
from dpframe.engines._block import TICKS, ticks_of, unit_of
from dpframe.engines._columns import Vector

Buckets = NDArray[Any]
Finder = Callable[[Vector], Buckets]
_TABLE = 2**20  # whole numbers within a range of this size are looked up directly
_PIECE = 2**18  # rows that one thread matches at a time
_INT64 = np.iinfo(np.int64)
_TRUTHS = {bool, np.bool_}


def key_buckets(keys: Keys, expr: Expr) -> Finder:
    """From the values of ``expr`` to 1 + the place of the key they equal, or 0."""
    null = 0 if keys.null is None else keys.null + 1
    if expr.kind in ("text", "label"):
        return _by_category(keys, null)
    find = {"bool": _by_truth, "time": _by_time, "number": _by_number}[expr.kind](keys)

    def buckets(vector: Vector) -> Buckets:
        found, missing = find(vector), vector.nulls()
        return found if missing is None else np.where(missing, null, found)

    return buckets


def arrow_buckets(keys: Keys, strings: Any) -> Buckets:
    """The same for a whole Arrow array of strings: each is looked up among the keys, pieces side by side.

    Looking keys up takes two thirds of the time of numbering all values first, and Arrow lets go of Python's lock.
    """
    pa: Any = import_module("pyarrow")
    pc: Any = import_module("pyarrow.compute")
    proper = [k for i, k in enumerate(keys.index) if i != keys.null]
    places = np.array([i + 1 for i in range(len(keys)) if i != keys.null] + [0])
    null = 0 if keys.null is None else keys.null + 1
    wanted = pa.array(proper, type=strings.type)
    found = np.empty(len(strings), dtype=np.min_scalar_type(len(keys)))
    table = places.astype(found.dtype)

    def match(start: int) -> None:
        piece = strings.slice(start, _PIECE)
        at = pc.fill_null(pc.index_in(piece, value_set=wanted), len(proper))
        np.take(table, _numpy(at), out=found[start : start + len(piece)], mode="clip")
        if null and piece.null_count:
            found[start : start + len(piece)][_numpy(piece.is_null())] = null

    if len(strings) <= _PIECE:
        match(0)
        return found
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(match, range(0, len(strings), _PIECE)))
    return found


def _numpy(chunks: Any) -> NDArray[Any]:
    return np.asarray(
        chunks.to_numpy() if hasattr(chunks, "chunks") else chunks.to_numpy(zero_copy_only=False)
    )


def _by_category(keys: Keys, null: int) -> Finder:
    places = {_tagged(k): i + 1 for i, k in enumerate(keys.index.tolist()) if i != keys.null}
    tables: dict[int, tuple[Any, Buckets]] = {}  # by dictionary, held so that its id stays its own

    def buckets(vector: Vector) -> Buckets:
        categories = vector.categories
        assert categories is not None
        if id(categories) not in tables:
            table = np.zeros(len(categories) + 1, dtype=np.min_scalar_type(len(keys) + 1))
            table[:-1] = [places.get(_tagged(c), 0) for c in categories.tolist()]
            table[-1] = null  # code -1 is null
            tables[id(categories)] = categories, table
        return np.take(tables[id(categories)][1], vector.values, mode="wrap")

    return buckets


def _tagged(value: Any) -> object:
    # Python holds 1 and True for equal; a key of one kind never means a value of the other.
    return (type(value), value) if type(value) in _TRUTHS else value


def _by_truth(keys: Keys) -> Finder:
    table = np.zeros(2, dtype=np.int64)
    for i, key in enumerate(keys.index):
        if i != keys.null:
            table[int(bool(key))] = i + 1
    return lambda vector: table[vector.values.view(np.int8)]


def _by_time(keys: Keys) -> Finder:
    """By exact ticks: a key between two ticks of the column, or beyond them, equals nothing."""
    stamps = [(i + 1, *ticks_of(key)) for i, key in enumerate(keys.index) if i != keys.null]

    def find(vector: Vector) -> Buckets:
        per_second = TICKS[unit_of(vector.values)]
        exact = [(place, Fraction(ticks * per_second, TICKS[unit])) for place, ticks, unit in stamps]
        whole = [(place, int(t)) for place, t in exact if t.denominator == 1 and abs(t) <= _INT64.max]
        if not whole:
            return np.zeros(len(vector), dtype=np.int64)
        places, wanted = (np.array(column, dtype=np.int64) for column in zip(*whole, strict=True))
        return _searched(vector.values.view(np.int64), wanted, places)

    return find


def _by_number(keys: Keys) -> Finder:
    wanted = np.array([k for i, k in enumerate(keys.index) if i != keys.null])
    places = np.array([i for i in range(len(keys)) if i != keys.null], dtype=np.int64) + 1
    if not len(wanted):
        return lambda vector: np.zeros(len(vector), dtype=np.int64)
    whole = wanted.dtype.kind in "iu" and int(wanted.max()) - int(wanted.min()) < _TABLE
    small = whole and int(wanted.min()) > -(2**62) and int(wanted.max()) < 2**62
    table = _table_of(wanted, places) if small else None

    def find(vector: Vector) -> Buckets:
        values = vector.values
        if values.dtype.kind in "iu" and table is not None:
            return _looked_up(values, int(wanted.min()), table)
        return _searched(values, wanted, places)

    return find


def _table_of(wanted: NDArray[Any], places: NDArray[Any]) -> Buckets:
    """Places by number, with a 0 before the first and after the last."""
    low = int(wanted.min())
    table = np.zeros(int(wanted.max()) - low + 3, dtype=np.min_scalar_type(int(places.max())))
    table[wanted.astype(np.int64) - low + 1] = places
    return table


def _looked_up(values: NDArray[Any], first: int, table: Buckets) -> Buckets:
    """``table[1 + value - first]``, and the zeros at its ends for values beyond them.

    A difference that wraps lands far outside the table, whose range is below 2**20, so it finds an end too.
    """
    if values.dtype == np.uint64:  # the upper half must not turn negative
        values = np.minimum(values, np.uint64(_INT64.max))
    offset = np.subtract(values, first - 1, dtype=np.int64, casting="unsafe")
    return np.asarray(np.take(table, offset, mode="clip"))


def _searched(values: NDArray[Any], wanted: NDArray[Any], places: NDArray[Any]) -> Buckets:
    """By bisection among the sorted keys, without a conversion that would make different numbers equal."""
    if values.dtype.kind in "iu":
        info = np.iinfo(values.dtype)
        fits = [float(w).is_integer() and info.min <= int(w) <= info.max for w in wanted.tolist()]
        if not any(fits):
            return np.zeros(len(values), dtype=np.int64)
        typed = np.array(
            [int(w) for w, fit in zip(wanted.tolist(), fits, strict=True) if fit], dtype=values.dtype
        )
        places = places[fits]
    else:
        typed = wanted.astype(np.float64)
        values = values.astype(np.float64, copy=False)
    order = np.argsort(typed)
    ranked = typed[order]
    at = np.minimum(np.searchsorted(ranked, values), len(ranked) - 1)
    return np.where(ranked[at] == values, places[order][at], 0)


def bin_buckets(edges: tuple[float, ...]) -> Finder:
    """From numbers to 1 + the bin they fall in: left-closed, the last one closed; 0 outside and for nulls."""
    breaks = np.asarray(edges, dtype=np.float64)
    table = _bin_table(breaks)
    regular = _is_regular(breaks)

    def buckets(vector: Vector) -> Buckets:
        values = vector.values.view(np.int8) if vector.values.dtype == bool else vector.values
        if values.dtype.kind in "iu" and table is not None:
            found = _looked_up(values, int(np.ceil(breaks[0])), table)
        else:
            found = _numbers_in_bins(values.astype(np.float64, copy=False), breaks, regular)
        missing = vector.null
        return found if missing is None else np.where(missing, 0, found)

    return buckets


def _bin_table(breaks: NDArray[np.float64]) -> Buckets | None:
    """Bins by whole number, where there are not too many between the edges."""
    low, high = breaks[0], breaks[-1]
    if (
        not (np.isfinite(low) and np.isfinite(high))
        or max(abs(low), abs(high)) > 2**52
        or high - low >= _TABLE
    ):
        return None
    numbers = np.arange(np.ceil(low), np.floor(high) + 1)
    table = np.zeros(len(numbers) + 2, dtype=np.min_scalar_type(len(breaks)))
    table[1:-1] = _numbers_in_bins(numbers, breaks, False)
    return table


def _is_regular(breaks: NDArray[np.float64]) -> bool:
    widths = np.diff(breaks)
    width = (breaks[-1] - breaks[0]) / len(widths)
    return bool(np.isfinite(width) and width > 0 and np.abs(widths - width).max() <= width * 1e-6)


def _numbers_in_bins(values: NDArray[np.float64], breaks: NDArray[np.float64], regular: bool) -> Buckets:
    bins = len(breaks) - 1
    found: Buckets
    if regular:
        found = _by_division(values, breaks)
    else:
        found = np.asarray(np.searchsorted(breaks, values, side="right"))  # NaN sorts after everything
        found[found > bins] = 0
    found[values == breaks[-1]] = bins
    return found


def _by_division(values: NDArray[np.float64], breaks: NDArray[np.float64]) -> Buckets:
    """Evenly spaced edges: a guess by division, then corrected against the edges themselves."""
    bins = len(breaks) - 1
    with np.errstate(invalid="ignore", over="ignore"):
        position = values - breaks[0]
        position *= bins / (breaks[-1] - breaks[0])
        np.floor(position, out=position)
        np.clip(position, -1.0, bins, out=position)
        np.nan_to_num(position, copy=False, nan=-1.0)
    guess = position.astype(np.intp)
    guess += 1
    padded = np.concatenate([[-np.inf], breaks, [np.inf, np.inf]])
    guess -= values < padded[guess]
    guess += values >= padded[guess + 1]
    guess[guess > bins] = 0
    return np.asarray(guess)
