"""Hashes of cells, for what is checked on the owner's side: whether a function works person by
person, whether two frames hold the same people; and the sketches that a ledger knows people and
tables again by.

*Formal guarantee.* The hash of a cell is a function of that cell and its dtype. Equal cells hash
alike, and nulls of all kinds. No cell makes this raise, and no code that belongs to a cell runs:
what is in an object is read where its exact type is one of Python's, numpy's or pandas' own. Other
objects are told from those, and not from each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import time, timedelta
from importlib import import_module
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.columns import UNMATCHED, Vector, objects, plain, prepare
from dpframe._expr import NO_KEYS, kind_of
from dpframe._statistics.engine import Sketches
from dpframe._types import Array, Series
from dpframe.engines.people import encode_values, text_of_scalar
from dpframe.engines.rows import rows_of

Hashes = NDArray[np.uint64]
_NULL = np.uint64(2**64 - 1)
_ODD, _STEP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_NODES = 100_000  # that are read of one cell


@np.errstate(all="ignore")
def hashes_of(column: Series) -> Hashes:
    """Return a hash of 64 bits for each cell of a column.

    Equal cells have equal hashes, and so have all nulls. The owner's checks compare frames by these
    hashes.
    """
    kind = kind_of(column.dtype)
    if kind in NO_KEYS:
        return _others(column.array)
    vector = prepare(column, kind)
    if kind == "text":
        assert vector.categories is not None
        texts = objects(str(c).encode("utf-8", "surrogatepass") for c in vector.categories)
        return np.append(pd.util.hash_array(texts, categorize=False), _NULL)[vector.values]
    known = encode_values(vector)
    found = np.append(known.hashes(), _NULL)[known.codes]
    for i, text in find_unmatched(column, vector):
        found[i] = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    return found


def find_unmatched(column: Series, vector: Vector) -> Iterator[tuple[int, bytes]]:
    """Yield the row of each cell that is no plain scalar, with bytes that identify the cell.

    Such cells are lists, bytes and the like. ``vector`` has the prepared cells of the same column.
    """
    if vector.categories is None or not any(c is UNMATCHED for c in vector.categories):
        return
    unknown = np.array([c is UNMATCHED for c in vector.categories] + [False])
    places = np.flatnonzero(unknown.take(vector.values, mode="wrap"))
    if isinstance(column.array, pd.Categorical):
        known = [write_cell(c) for c in np.asarray(column.array.categories, dtype=object)]
        yield from ((int(i), known[vector.values[i]]) for i in places)
    else:
        cells = np.asarray(column.array, dtype=object)
        yield from ((int(i), write_cell(cells[i])) for i in places)


def _others(array: Any) -> Hashes:
    """Return a hash of each cell of a column whose cells cannot be keys.

    Such cells are durations, lists and the like. The memory of the array decides the hash. Cells of
    a dtype that is not known all have the hash 0.
    """
    if isinstance(array.dtype, pd.ArrowDtype):
        arrow = array.__arrow_array__()
        chunks = [
            _arrow(chunk) for chunk in (arrow.chunks if hasattr(arrow, "chunks") else [arrow])
        ]
        return np.concatenate([np.zeros(0, dtype=np.uint64), *chunks])
    if isinstance(array, pd.arrays.IntervalArray):
        ends = [hashes_of(pd.Series(side, dtype=side.dtype)) for side in (array.left, array.right)]
        return _mix_bits(ends[0] * _ODD + ends[1])
    inner = getattr(array, "_ndarray", None)
    values = inner if isinstance(inner, np.ndarray) else np.zeros(len(array), dtype=np.int8)
    if values.dtype.kind in "mM" or values.dtype == np.int64:
        return _hash_words(values.astype(values.dtype.newbyteorder("=")).view(np.int64))
    if values.dtype.kind == "c":
        parts = values.astype(np.complex128)
        found = _mix_bits(_hash_words(parts.real + 0.0) * _ODD + _hash_words(parts.imag + 0.0))
        found[np.isnan(parts)] = _NULL
        return found
    return np.zeros(len(values), dtype=np.uint64)


def _hash_words(values: Array) -> Hashes:
    return _mix_bits(np.ascontiguousarray(values).view(np.uint64) + _STEP)


def _mix_bits(hashes: Hashes) -> Hashes:
    mixed = (hashes ^ (hashes >> np.uint64(29))) * _ODD
    return mixed ^ (mixed >> np.uint64(32))


# ---- Arrow ------------------------------------------------------------------------------------------------


def _arrow(array: Any) -> Hashes:
    """Return a hash of each cell of an Arrow array, from its buffers and its child arrays.

    Arrow makes no Python object of every cell that it holds.
    """
    types: Any = import_module("pyarrow.types")
    if hasattr(array, "storage"):
        array = array.storage
    null: NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    read = next(
        (read for names, read in _READ if any(getattr(types, n)(array.type) for n in names)), _blank
    )
    hashes = read(array)
    hashes[null] = _NULL
    return hashes


def _blank(array: Any) -> Hashes:
    return np.zeros(len(array), dtype=np.uint64)


def _dictionary(array: Any) -> Hashes:
    codes = array.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.intp)
    hashes = _arrow(array.dictionary)
    return hashes[codes] if len(hashes) else _blank(array)


def _bytes(array: Any) -> Hashes:
    """Return a hash of each cell of an Arrow array of texts or bytes.

    Each different cell is hashed once.
    """
    pa: Any = import_module("pyarrow")
    encoded = array.cast(pa.large_binary()).dictionary_encode()
    codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.intp)
    known = pd.util.hash_array(objects(encoded.dictionary.to_pylist()), categorize=False)
    return known[codes] if len(known) else _blank(array)


def _lists(array: Any) -> Hashes:
    """Return a hash of each list in an Arrow array of lists, from its items in their order."""
    pc: Any = import_module("pyarrow.compute")
    owner = pc.list_parent_indices(array).to_numpy(zero_copy_only=False)
    return _in_order(owner, _arrow(pc.list_flatten(array)), len(array))


def _maps(array: Any) -> Hashes:
    """Return a hash of each map in an Arrow array of maps, from its pairs in their order."""
    offsets = array.offsets.to_numpy().astype(np.intp)
    counts = np.diff(offsets)
    inside = np.arange(counts.sum()) + np.repeat(
        offsets[:-1] - (np.cumsum(counts) - counts), counts
    )
    pairs = _mix_bits(_arrow(array.keys) * _ODD + _arrow(array.items))
    return _in_order(np.repeat(np.arange(len(array)), counts), pairs[inside], len(array))


def _in_order(owner: Array, items: Hashes, size: int) -> Hashes:
    """Return a hash for each owner, such as a list, from the hashes of its items in their order.

    ``owner`` has the number of each item's owner, ``items`` the hash of each item. ``size`` is the
    number of owners.
    """
    counts = np.bincount(owner, minlength=size)
    nth = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = counts.astype(np.uint64)
    np.add.at(found, owner, _mix_bits(items + (nth + 1).astype(np.uint64) * _STEP))
    return _mix_bits(found)


def _structs(array: Any) -> Hashes:
    """Return a hash of each struct in an Arrow array, from the hashes of its fields."""
    hashes = _blank(array)
    for field in array.flatten():
        hashes = _mix_bits(hashes * _ODD + _arrow(field))
    return hashes


def _hash_fixed(array: Any) -> Hashes:
    """Return a hash of each cell of an Arrow array whose cells have one width in memory."""
    width, data = array.type.bit_width // 8, array.buffers()[1]
    if data is None or not width:
        return _blank(array)
    raw = np.frombuffer(data, dtype=np.uint8)[
        array.offset * width : (array.offset + len(array)) * width
    ]
    words = np.zeros((len(array), -(-width // 8) * 8), dtype=np.uint8)
    words[:, :width] = raw.reshape(len(array), width)
    hashes = _blank(array)
    for word in words.view(np.uint64).T:
        hashes = _mix_bits(hashes * _ODD + word + _STEP)
    return hashes


def _floats(array: Any) -> Hashes:
    """Return a hash of each double in an Arrow array, where NaN counts as null."""
    values = array.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
    hashes = _hash_words(values)
    hashes[np.isnan(values)] = _NULL
    return hashes


def _truths(array: Any) -> Hashes:
    return _hash_words(array.fill_null(False).to_numpy(zero_copy_only=False).astype(np.int64))


_READ: list[tuple[tuple[str, ...], Callable[[Any], Hashes]]] = [
    (("is_dictionary",), _dictionary),
    (("is_string", "is_large_string", "is_string_view", "is_binary", "is_large_binary"), _bytes),
    (("is_binary_view", "is_fixed_size_binary"), _bytes),
    (("is_map",), _maps),
    (("is_list", "is_large_list", "is_fixed_size_list"), _lists),
    (("is_struct",), _structs),
    (("is_boolean",), _truths),
    (("is_floating",), _floats),
    (("is_integer", "is_temporal", "is_decimal", "is_interval"), _hash_fixed),
]


# ---- objects ----------------------------------------------------------------------------------------------


def write_cell(cell: object) -> bytes:
    """Return bytes that identify a cell of any type, equal for equal cells of one type.

    They are what is hashed of a cell that is no plain scalar. All objects with unknown code have
    the same bytes.
    """
    return b"".join(_parts(cell, [_NODES], 0))


def _parts(cell: object, left: list[int], depth: int) -> Iterable[bytes]:
    """Yield the bytes that identify a cell: those of a scalar, or of all items in a container.

    ``left`` is a list with one number, which all calls for a cell count down: how many objects may
    still be read of it. ``depth`` is the
    number of containers around it. Beyond these limits it yields "...".
    """
    left[0] -= 1
    if left[0] < 0 or depth > 50:
        yield b"..."
        return
    value = plain(cell)
    if value is None:
        yield b"null;"
        return
    if value is not UNMATCHED:
        yield _with_size(text_of_scalar(value).encode("utf-8", "surrogatepass"))
        return
    read = _TEXTS.get(id(type(cell)))
    if read is not None:
        yield _with_size(read(cell))
        return
    kind, parts = _inside(cell)
    yield kind
    if kind in (b"set", b"dict"):  # whose order is nobody's
        yield from sorted(
            b"".join(p for one in part for p in _parts(one, left, depth + 1)) for part in parts
        )
    else:
        for part in parts:
            yield from _parts(part, left, depth + 1)
    yield b";"


def _inside(cell: Any) -> tuple[bytes, Any]:
    """Return what kind of container a cell is, and its items, judged by its exact type.

    A cell of any other type is ``?`` without items, so that no foreign code runs.
    """
    kind = id(type(cell))
    if kind in (id(list), id(tuple)):
        return b"list", cell
    if kind in (id(set), id(frozenset)):
        return b"set", ((one,) for one in cell)
    if kind == id(dict):
        return b"dict", cell.items()
    if kind == id(np.ndarray) and not cell.dtype.hasobject:
        return b"array", (cell.dtype.str, cell.shape, np.ascontiguousarray(cell).tobytes())
    if kind == id(np.ndarray) and cell.dtype == object:
        return b"array", (cell.shape, cell.ravel().tolist())
    if kind == id(pd.Interval):
        return b"interval", (cell.left, cell.right, cell.closed)
    return b"?", ()


def _with_size(text: bytes) -> bytes:
    return b"%d:%s" % (len(text), text)


def _of_int(cell: int) -> bytes:
    return cell.to_bytes(cell.bit_length() // 8 + 1, "little", signed=True)


def _of_ticks(cell: Any) -> bytes:
    ticks = cell.asm8 if type(cell) is pd.Timedelta else cell
    return f"{ticks.dtype.str} {ticks.astype(np.int64)}".encode()


_TEXTS: dict[int, Callable[[Any], bytes]] = {
    id(bytes): bytes,
    id(bytearray): bytes,
    id(np.bytes_): bytes,
    id(int): _of_int,
    id(complex): lambda c: repr(c).encode(),
    id(np.complex64): lambda c: repr(complex(c)).encode(),
    id(np.complex128): lambda c: repr(complex(c)).encode(),
    id(np.timedelta64): _of_ticks,
    id(pd.Timedelta): _of_ticks,
    id(timedelta): lambda c: f"{c.days} {c.seconds} {c.microseconds}".encode(),
    id(time): lambda c: c.replace(tzinfo=None).isoformat().encode(),
    id(UUID): lambda c: c.bytes,
    id(pd.Period): lambda c: f"{c.ordinal} {c.freqstr}".encode(),
    id(range): lambda c: repr(c).encode(),
}


# ---- sketches ---------------------------------------------------------------------------------------------
#
# The 256 smallest of the keyed hashes of all rows (Broder 1997): of two frames they tell, about, how large a part of the rows
# they share. They are made on the owner's side, stay in the ledger, and are no dictionary of people without its key.

SIZE = 256
ENOUGH = 16  # fewer different rows identify nobody
DIFFERENT = 0.9  # of the rows of a table that is known by a sketch


@np.errstate(all="ignore")
def sketches(frame: pd.DataFrame, unit: Sequence[int], secret: bytes) -> Sketches:
    """Return the digests by which a ledger knows the people and the table of a frame again.

    The columns at the positions in ``unit`` name the people; without any, a row is a person.
    ``secret`` keys all hashes. A table is known by its rows. If there are more people than a sketch
    has, those of the people in the sketch are used.
    """
    if not unit:
        cells = _plain(frame)
        return Sketches(sketch_of(cells, secret), known_by(_hash_with_key(cells, secret), secret))
    people = _hashes(frame.iloc[:, list(unit)], secret)
    some = np.isin(people, _smallest(people, secret))
    return Sketches(
        _sketch(people, secret),
        known_by(_hashes(rows_of(frame, np.flatnonzero(some)), secret), secret),
    )


@np.errstate(all="ignore")
def sample_sketch(frame: pd.DataFrame, secret: bytes) -> list[str]:
    """Return the texts by which a process knows a table again, of some of its rows alone.

    The rows stand at even distances, so that two tables of one length are compared in the same
    places. ``secret`` keys the hashes.
    """
    places = np.linspace(0, len(frame) - 1, min(SIZE, len(frame))).astype(np.intp)
    return known_by(_hashes(rows_of(frame, places), secret), secret)


class Sketching:
    """The sketch of rows that come batch by batch: of the smallest hashes so far, with how many
    rows have each."""

    def __init__(self, secret: bytes):
        self._secret = secret
        self.smallest: Array = np.zeros(0, dtype=np.uint64)
        self._rows: Array = np.zeros(0, dtype=np.int64)
        self._sums = [0, 0, 0]

    def hashes(self, frame: pd.DataFrame) -> Array:
        """Return a keyed hash of each row."""
        return _hashes(frame, self._secret)

    def add(self, rows: Array) -> None:
        """Add the hashes of some more rows to the sketch.

        Only the smallest hashes are kept, with how many rows have each.
        """
        with np.errstate(all="ignore"):
            sums = [len(rows), int(_mix_bits(rows).sum()), int(_mix_bits(rows ^ _STEP).sum())]
        self._sums = [(a + b) % 2**64 for a, b in zip(self._sums, sums, strict=True)]
        order = _order_by_secret(rows, self._secret)
        if len(self.smallest) == SIZE:
            rows = rows[order <= _order_by_secret(self.smallest, self._secret).max()]
        some, counts = np.unique(rows, return_counts=True)
        both = np.concatenate([self.smallest, some])
        found, places = np.unique(both, return_inverse=True)
        many = np.zeros(len(found), dtype=np.int64)
        np.add.at(many, places, np.concatenate([self._rows, counts]))
        kept = np.argsort(_order_by_secret(found, self._secret), kind="stable")[:SIZE]
        self.smallest, self._rows = found[kept], many[kept]

    def sketch(self) -> list[str]:
        """Return the sorted digests of the smallest hashes; an empty list if too few rows
        differ."""
        return _sketch(self.smallest, self._secret)

    def known_by(self) -> list[str]:
        """Return the texts by which a ledger knows the table of the added rows again.

        They are as those of the function `known_by`. The rows of the smallest hashes tell whether
        nearly all rows differ. If they do not, sums of hashes identify the table, in any order of
        rows.
        """
        different = len(self.smallest)
        if different >= max(ENOUGH, DIFFERENT * int(self._rows.sum())):
            return self.sketch()
        text = repr(self._sums).encode()
        return [hashlib.blake2b(text, key=self._secret, digest_size=16).hexdigest()]


def known_by(rows: Array, secret: bytes) -> list[str]:
    """Return the texts by which a ledger knows a table again, in whatever order its rows are.

    ``rows`` has a keyed hash of each row. The texts are the sketch of the rows if nearly all rows
    differ, and a digest of all rows otherwise. A sketch does not tell how often rows occur. If
    nearly all differ, two tables have few of them in common by chance.
    """
    if len(np.unique(rows)) >= max(ENOUGH, DIFFERENT * len(rows)):
        return _sketch(rows, secret)
    return [hashlib.blake2b(np.sort(rows).tobytes(), key=secret, digest_size=16).hexdigest()]


def sketch_of(frame: pd.DataFrame, secret: bytes) -> list[str]:
    """Return the sketch of a frame, by pandas' own hashes; empty if too few rows differ."""
    rows = _hash_with_key(frame, secret)
    return [] if len(np.unique(rows)) < len(rows) // 4 else _sketch(rows, secret)


def _sketch(rows: Array, secret: bytes) -> list[str]:
    """Return the sorted digests of the smallest row hashes; an empty list if too few hashes differ.

    ``rows`` has a hash of each row, and ``secret`` is the key of the digests.
    """
    smallest = _smallest(rows, secret)
    if len(smallest) < ENOUGH:
        return []
    keyed, digests = hashlib.blake2b(key=secret, digest_size=8), []
    for row in smallest:
        digest = keyed.copy()
        digest.update(row.tobytes())
        digests.append(digest.hexdigest())
    return sorted(digests)


def _smallest(rows: Array, secret: bytes) -> Array:
    """Return the 256 hashes that come first among the different ones, in an order by the secret.

    They are the sketch of a table. The secret decides their order, since pandas hashes numbers
    without a key.
    """
    rows = np.unique(rows)
    return rows[np.argsort(_order_by_secret(rows, secret), kind="stable")[:SIZE]]


@np.errstate(all="ignore")
def _order_by_secret(rows: Array, secret: bytes) -> Array:
    """Return a number for each hash, by which hashes are sorted.

    ``secret`` decides the order, so that nobody without it can tell which hashes come first.
    """
    salt = np.uint64(
        int.from_bytes(hashlib.blake2b(secret, digest_size=8, person=b"order").digest(), "little")
        | 1
    )
    mixed: Array = (rows ^ (rows >> np.uint64(31))) * salt
    mixed ^= mixed >> np.uint64(29)
    return mixed


def _hashes(frame: pd.DataFrame, secret: bytes) -> Array:
    """Return a keyed hash of each row."""
    return _hash_with_key(_plain(frame), secret)


def _hash_with_key(frame: pd.DataFrame, secret: bytes) -> Array:
    """Return pandas' hash of each row of a frame, keyed with a secret.

    The result is empty if the frame has no rows or no columns.
    """
    if not len(frame) or not frame.shape[1]:
        return np.zeros(0, dtype=np.uint64)
    key = hashlib.blake2b(secret, digest_size=8).hexdigest()
    hashes: Array = pd.util.hash_pandas_object(frame, index=False, hash_key=key).to_numpy()
    return hashes


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose cells pandas can hash, with equal values alike.

    Columns are numbered from 0, since names do not matter. No code of a cell runs.
    """
    return pd.DataFrame({i: _cells(frame.iloc[:, i]) for i in range(frame.shape[1])})


def _cells(column: Series) -> Any:
    """Return the cells of a column as numbers, hashes or texts that pandas can hash.

    Equal cells become equal values, and NaN stands for a null number.
    """
    kind = kind_of(column.dtype)
    if kind == "time" or kind in NO_KEYS:
        return hashes_of(column)
    vector = prepare(column, kind)
    if vector.categories is None:
        null, values = vector.nulls(), vector.values.astype(np.float64) + 0.0
        if null is not None:
            values[null] = np.nan
        return values
    texts = objects([*map(_text, vector.categories), None]).take(vector.values, mode="wrap")
    for i, text in find_unmatched(column, vector):
        texts[i] = text.hex()
    return pd.array(texts, dtype="str")


def _text(value: object) -> str:
    if type(value) is str:
        return value.encode("utf-8", "backslashreplace").decode()  # half a character has no bytes
    return str(value) if type(value) in (bool, int, float) else text_of_scalar(value)
