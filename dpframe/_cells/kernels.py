"""What the extra ``fast`` compiles (numba): kernels, and those of single rows, which need less time
than numpy and Arrow do.

*Formal guarantee.* A kernel is an ordinary function, of whole numbers in 64 bits and, where values
are put on a grid, of doubles that go through the operations of `dpframe._statistics.base.to_grid`,
one after the other. What numba makes of it has the same bits. Whether there are kernels is a
question of the installation and of the number of rows, and nothing but time depends on it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._sizes import SIZES

Array = NDArray[Any]

_PATIENCE = 32  # times that a text is compared with others, on average
_SLACK = 2**10  # texts before that is looked at
_ODD = np.uint64(0x9E3779B97F4A7C15)


# Kernels: numba compiles them, each by itself ----------------------------------------------------------------


def number_texts(
    offsets: Array,
    data: Array,
    words: Array,
    valid: Array,
    first: int,
    codes: Array,
    begin: int,
    known: int,
    slots: Array,
    hashes: Array,
    heads: Array,
    sizes: Array,
    places: Array,
) -> tuple[int, int]:
    """Numbers the texts of an Arrow array, whose first one is at the place ``first``, in the order
    in which they occur; -1 for a null. Begins with the code at ``begin``, when so many are
    ``known``, and ends where there is no room for another one; with a number below 0 where texts
    stand in one another's way, as somebody has to make them.

    ``data`` are the bytes of the texts, ``words`` the eight bytes from each of them on, and
    ``valid`` the bits of what is not null, none if all are. Of each number ``places`` tells where
    it stands first; its hash, head and size are kept, too.
    """
    mask, missed = np.uint64(len(slots) - 1), 0
    for i in range(begin, len(codes)):
        row = first + i
        if len(valid) > 0 and (valid[row >> 3] >> (row & 7)) & 1 == 0:
            codes[i] = -1
            continue
        at = offsets[row]
        length = offsets[row + 1] - at
        left = length
        head = np.uint64(0)
        hashed = np.uint64(length) * _ODD
        while left > 0:
            word = np.uint64(0)
            if at < len(words):
                word = words[at]
                if left < 8:
                    word &= (np.uint64(1) << np.uint64(8 * left)) - np.uint64(1)
            else:  # the last bytes of all
                for j in range(min(left, 8)):
                    word |= np.uint64(data[at + j]) << np.uint64(8 * j)
            if left == length:
                head = word
            hashed = (hashed ^ word) * _ODD
            hashed ^= hashed >> np.uint64(32)
            at += 8
            left -= 8
        hashed *= _ODD  # so that the last bytes reach the low bits
        hashed ^= hashed >> np.uint64(32)
        slot = np.int64(hashed & mask)
        code = slots[slot]
        while code >= 0:
            if heads[code] == head and sizes[code] == length:
                if length <= 8:
                    break
                one, other = offsets[row], offsets[places[code]]
                j = 8
                while j < length and data[other + j] == data[one + j]:
                    j += 1
                if j >= length:
                    break
            slot = np.int64(np.uint64(slot + 1) & mask)
            code = slots[slot]
            missed += 1
        if missed > _PATIENCE * (i - begin + _SLACK):
            return -1, known
        if code < 0:
            if known == len(places):
                return i, known
            code = known
            slots[slot] = known
            hashes[known], heads[known], sizes[known], places[known] = hashed, head, length, row
            known += 1
        codes[i] = code
    return len(codes), known


def stand_anew(hashes: Array, known: int, slots: Array) -> None:
    """Puts so many numbers where they belong among other, empty slots."""
    mask = np.uint64(len(slots) - 1)
    for code in range(known):
        slot = np.int64(hashes[code] & mask)
        while slots[slot] >= 0:
            slot = np.int64(np.uint64(slot + 1) & mask)
        slots[slot] = code


def add_steps(
    values: Array,
    buckets: Array,
    lower: float,
    upper: float,
    scale: float,
    low: float,
    total: Array,
) -> None:
    """Adds powers of values on a grid to those of their groups, from the first power on; of a NaN,
    -1 to the number of values. A bucket is one more than a group, or 0."""
    degree = len(total) - 1
    for i in range(len(values)):
        group = np.int64(buckets[i]) - 1
        if group >= 0:
            x = np.float64(values[i])
            if x == x:
                a = np.int64(np.rint(min(max(x, lower), upper) * scale) - low)
                power = a
                for k in range(1, degree + 1):
                    total[k, group] += power
                    power *= a
            else:
                total[0, group] -= 1


def count_buckets(buckets: Array, counts: Array) -> None:
    """Counts how often each bucket is there."""
    for i in range(len(buckets)):
        counts[buckets[i]] += 1


def place_numbers(values: Array, low: int, codes: Array, there: Array) -> None:
    """Puts down how far each whole number is from the lowest, and that somebody is there."""
    for i in range(len(values)):
        code = values[i] - low
        if 0 <= code < len(there):  # as all are that nobody writes to meanwhile
            codes[i] = code
            there[code] = True


def look_up(table: Array, places: Array, found: Array) -> None:
    """Puts down what stands at these places in a table."""
    for i in range(len(places)):
        found[i] = table[places[i]]


# What asks for them ------------------------------------------------------------------------------------------


@cache
def numba() -> Any:
    """The module, or None where it is not installed."""
    try:
        return import_module("numba")
    except ImportError:
        return None


@cache
def kernel(source: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel as numba compiles it when it is first called, or finds it compiled."""
    jit, words = numba().njit, {"nogil": True, "error_model": "numpy"}
    try:
        compiled: Callable[..., Any] = jit(cache=True, **words)(source)
    except RuntimeError:  # there is no place where what is compiled could be kept
        compiled = jit(**words)(source)
    return compiled


def at_hand(rows: int) -> bool:
    """Whether there are kernels of single rows, and these are loaded, or so many rows that it is
    worth while to load them."""
    return (
        rows >= SIZES.kernel_rows
        and ("numba" in sys.modules or rows >= SIZES.kernel_load_rows)
        and _working()
    )


@cache
def _working() -> bool:
    """Whether numba is here, and what it makes of the kernels works: of one text, and of one
    value."""
    if numba() is None or sys.byteorder != "little":
        return False
    total = np.zeros((2, 1), np.int64)
    try:
        text = np.frombuffer(b"a", np.uint8)
        ends, codes = np.array([0, 1]), np.empty(1, np.int64)
        places = numbered(ends, text, np.zeros(0, np.uint8), 0, codes)
        kernel(add_steps)(np.array([2.5]), np.ones(1, np.uint8), 0.0, 9.0, 2.0, 1.0, total)
    except Exception:  # that it cannot compile here, or keep what it has compiled
        return False
    found = None if places is None else places.tolist()
    return [found, codes.tolist(), total.tolist()] == [[0], [0], [[0], [4]]]


def numbered(offsets: Array, data: Array, valid: Array, first: int, codes: Array) -> Array | None:
    """Fills in what `number_texts` makes of the buffers of an Arrow array, and returns where each
    number stands first; None if it has lost patience."""
    words: Array = np.ndarray((max(len(data) - 7, 0),), "<u8", data, strides=(1,))
    room, done, known = SIZES.kernel_texts, 0, 0
    known_by: list[Array] = [
        np.empty(room, dtype) for dtype in (np.uint64, np.uint64, np.int64, np.int64)
    ]
    slots = _empty_slots(room)
    with np.errstate(over="ignore"):  # as Python reads it
        while True:
            texts = offsets, data, words, valid, first, codes
            done, known = kernel(number_texts)(*texts, done, known, slots, *known_by)
            if done < 0:
                return None
            if done == len(codes):
                return known_by[-1][:known]
            room *= 4
            known_by = [np.resize(one, room) for one in known_by]
            slots = _empty_slots(room)
            kernel(stand_anew)(known_by[0], known, slots)


def _empty_slots(room: int) -> Array:
    """Return slots for so many texts: a power of two, as a mask of their number leads from each
    slot to all others."""
    return np.full(1 << (4 * room - 1).bit_length(), -1, np.int32)
