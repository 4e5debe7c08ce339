"""Whether a frame's columns are the very columns of another, by their buffers. No value is compared.

A session keeps a shallow copy of its frame. Copy-on-write makes pandas copy a buffer before writing to it, so
while that copy lives, a column with the same buffer and the same index object holds the same people's values
in the same rows, and an edited or derived column has another buffer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

Mark = tuple[Any, ...]


def mark(array: Any) -> Mark | None:
    """What two arrays share when one is a view of all of the other; None where that cannot be told."""
    if isinstance(array, np.ndarray):
        return (array.__array_interface__["data"][0], array.strides, array.dtype.str, array.shape)
    arrow = getattr(array, "_pa_array", None)
    if arrow is not None:
        found = _arrow_buffers(arrow)
        # A column of nulls, and one without rows, may have no memory: a view has the very array.
        return ("arrow", found or id(arrow), str(array.dtype))
    if isinstance(array, pd.Categorical):
        return _joined(("category", id(array.categories)), array.codes)
    data, null = getattr(array, "_data", None), getattr(array, "_mask", None)
    if isinstance(data, np.ndarray) and isinstance(null, np.ndarray):
        return _joined(("masked",), data, null)
    inner = getattr(array, "_ndarray", None)
    if isinstance(inner, np.ndarray):
        return _joined((str(array.dtype),), inner)
    if isinstance(array, pd.arrays.IntervalArray):
        ends = [mark(getattr(array, side)) for side in ("_left", "_right")]
        return None if None in ends else ("interval", str(array.dtype), *ends)
    values = getattr(array, "sp_values", None)
    if isinstance(values, np.ndarray):
        return _joined(("sparse", id(array.sp_index), str(array.dtype)), values)
    return None


def _arrow_buffers(chunked: Any) -> tuple[Any, ...]:
    """Where the cells of an Arrow array are: two wrappers of the same memory are one column."""
    found: list[Any] = []
    anywhere = False
    for chunk in chunked.chunks:
        buffers = [b.address if b is not None and b.size else None for b in chunk.buffers()]
        anywhere |= any(buffers)
        found += [chunk.offset, len(chunk), *buffers]
    return tuple(found) if anywhere else ()


def _joined(head: Mark, *arrays: np.ndarray[Any, Any]) -> Mark | None:
    marks = [mark(a) for a in arrays]
    return None if None in marks else head + tuple(marks)


def _marks(frame: pd.DataFrame) -> list[Mark | None]:
    return [mark(_array(frame, i)) for i in range(frame.shape[1])]


def _array(frame: pd.DataFrame, i: int) -> Any:
    # The manager hands out the array itself in half a microsecond; iloc takes fifteen to wrap the same.
    manager = getattr(frame, "_mgr", None)
    if manager is not None and hasattr(manager, "iget_values"):
        return manager.iget_values(i)
    array = frame.iloc[:, i].array
    return getattr(array, "_ndarray", array)


def root_positions(frame: pd.DataFrame, root: pd.DataFrame) -> list[int] | None:
    """For each column of ``frame`` the place of the column of ``root`` that it is; None where one is not."""
    if not frame.index.is_(root.index):
        return None
    known = _marks(root)
    found: list[int] = []
    for i, own in enumerate(_marks(frame)):
        if own is None:
            return None
        if i < len(known) and known[i] == own and frame.columns[i] == root.columns[i]:
            found.append(i)
            continue
        places_of = [j for j, k in enumerate(known) if k == own]
        if not places_of:
            return None
        named = [j for j in places_of if root.columns[j] == frame.columns[i]]
        # Without rows columns of one dtype may have one address: then a name tells, and else the place, which a rename keeps.
        found.append((named or [j for j in places_of if j == i] or places_of)[0])
    return found


def marks(frame: pd.DataFrame) -> frozenset[Mark]:
    """Of all columns that have one. They hold for as long as the frame is kept. Without rows there is nothing to share."""
    return frozenset(m for m in _marks(frame) if m is not None) if len(frame) else frozenset()
