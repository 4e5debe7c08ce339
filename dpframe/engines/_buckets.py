"""Which group a row belongs to: a function of its own value and of the public list of groups."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.codec import Buckets, Finder, finder, looked_up
from dpframe._cells.columns import Vector
from dpframe._groups.keys import Keys

_TABLE = 2**20  # whole numbers within a range of this size are looked up directly
_PIECE = 2**18  # rows that one thread matches at a time


def key_buckets(keys: Keys) -> Finder:
    """From cells to 1 + the place of the key they equal, or 0."""
    return finder((None if i == keys.null else k, i + 1) for i, k in enumerate(keys.index.tolist()))


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


def bin_buckets(edges: tuple[float, ...]) -> Finder:
    """From numbers to 1 + the bin they fall in: left-closed, the last one closed; 0 outside and for nulls."""
    breaks = np.asarray(edges, dtype=np.float64)
    table = _bin_table(breaks)
    regular = _is_regular(breaks)

    def buckets(vector: Vector) -> Buckets:
        values = vector.values.view(np.int8) if vector.values.dtype == bool else vector.values
        if values.dtype.kind in "iu" and table is not None:
            found = looked_up(values, int(np.ceil(breaks[0])), table)
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
