"""One pandas column as plain numpy arrays: one null rule, dictionaries for everything that is no
number.

*Formal guarantee.* The result for a cell depends on that cell and the dtype alone. No cell makes
this raise, and no code that belongs to a cell (its ``__eq__``, ``__hash__``, ``__str__``) runs
unguarded: cells of object columns are told apart by their exact type, and a type that is not listed
here is `UNMATCHED`.

None, NaN, NA, NaT and Arrow's null are one thing. Numbers that are equal may stand in a dictionary
twice, as 1 and as 1.0, since merging them would show which of the two came first in the frame;
comparisons treat them as equal.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from dpframe import _pandas
from dpframe._cells.threads import shares, side_by_side, split_blocks
from dpframe._expr import Kind
from dpframe._sizes import SIZES
from dpframe._types import Array, Series

Bools = np.ndarray[Any, np.dtype[np.bool_]]

NAT = np.iinfo(np.int64).min  # the ticks of a time that is null
LAST = np.iinfo(np.int64).max  # and of the last one


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """The cells of a column as plain arrays, all of one kind.

    `values` holds numbers or bools in their native dtype, datetime64 for times (UTC for zoned
    ones), timedelta64 for durations, and codes into `categories` for text and labels. Nulls are the
    rows of `null`, and NaN, NaT and code -1.
    """

    kind: Kind
    values: Array
    null: Bools | None = None
    categories: Array | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """The bytes of its cells, without those of what is in a dictionary."""
        return self.values.nbytes + (0 if self.null is None else self.null.nbytes)

    def rows(self, rows: slice) -> Vector:
        """Return the cells of some rows, without a copy."""
        if rows.start == 0 and rows.stop == len(self.values) and rows.step is None:
            return self
        null = None if self.null is None else self.null[rows]
        return Vector(self.kind, self.values[rows], null, self.categories)

    def nulls(self) -> Bools | None:
        """Return a mask of the nulls, however they are stored; None if there can be no null."""
        if self.categories is not None:
            return self.values < 0
        if self.values.dtype.kind in "mM":
            return np.isnat(self.values)
        if self.values.dtype.kind == "f":
            nan = np.isnan(self.values)
            return nan if self.null is None else nan | self.null
        return self.null


class _Unmatched:
    """The one category of all cells that are no plain scalar: it equals nothing, itself
    included."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<unmatched>"

    def __reduce__(self) -> str:
        return "UNMATCHED"


UNMATCHED = _Unmatched()


@np.errstate(all="ignore")  # nor may what a caller has set make a NaN raise
def prepare(series: Series, kind: Kind) -> Vector:
    """Return the cells of a column as plain arrays, without a copy where its memory allows.

    ``kind`` says what the cells are, such as "number" or "text". `Vector` describes the arrays.
    """
    dtype: Any = series.dtype
    if isinstance(dtype, np.dtype) and kind == "number" and dtype.isnative and dtype.itemsize <= 8:
        return Vector(kind, series.to_numpy())
    cells: Any = series.to_numpy() if isinstance(dtype, np.dtype) else series.array
    if isinstance(dtype, pd.SparseDtype):
        return _sparse(cells, kind)
    if isinstance(dtype, pd.CategoricalDtype):
        return _categorical(cells, kind)
    arrow = None
    if isinstance(dtype, pd.ArrowDtype):
        arrow = cells.__arrow_array__()
        if kind == "text" and hasattr(arrow.type, "value_type"):
            return _text_vector(*_encode_bytes(arrow))
        if kind == "label":
            arrow = arrow.cast(arrow.type.value_type)  # a dictionary is read as what it stands for
            cells = np.array(arrow.to_pylist(), dtype=object)
    return _PREPARE[kind](cells, arrow)


def _sparse(cells: Any, kind: Kind) -> Vector:
    """Return the cells of a sparse column as a dense array of the dtype it names.

    ``kind`` says what the cells are, such as "number". numpy's own conversion makes doubles of
    cells where it finds a gap.
    """
    fill, places, n = cells.fill_value, cells.sp_index.indices, len(cells)
    gap = bool(_pandas.isna(fill))
    values = (
        np.zeros(n, dtype=cells.dtype.subtype)
        if gap
        else np.full(n, fill, dtype=cells.dtype.subtype)
    )
    values[places] = cells.sp_values
    dense = _PREPARE[kind](values, None)
    if not gap or dense.categories is not None:
        return dense
    null = np.ones(n, dtype=bool)
    null[places] = False
    return Vector(dense.kind, dense.values, null if dense.null is None else null | dense.null)


# ---- numbers, bools, times --------------------------------------------------------------------------------


def _number(cells: Array, arrow: Any) -> Vector:
    """Return the cells of a column of numbers as plain arrays.

    ``cells`` is pandas' or numpy's array. ``arrow`` is the Arrow array below it, else None.
    """
    if arrow is not None:
        pa: Any = import_module("pyarrow")
        if pa.types.is_decimal(arrow.type):
            arrow = arrow.cast(pa.float64(), safe=False)
        if pa.types.is_integer(arrow.type):
            return Vector("number", *_fill_nulls(arrow, 0))
        return Vector("number", _native(arrow.to_numpy()))
    if isinstance(cells, np.ndarray):
        return Vector("number", _native(cells))
    return Vector("number", *_split_mask(cells, 0))


def _bool(cells: Array, arrow: object) -> Vector:
    """Return the cells of a column of bools as plain arrays.

    ``cells`` is pandas' or numpy's array. ``arrow`` is the Arrow array below it, else None.
    """
    values, null = _split_mask(cells, False) if arrow is None else _fill_nulls(arrow, False)
    # A bool made of foreign bytes may hold others than 0 and 1, which numpy's functions read
    # differently.
    return Vector("bool", values.view(np.uint8) != 0, null)


def _split_mask(cells: Any, blank: Any) -> tuple[Array, Bools | None]:
    """Return the values of a numpy or nullable array, and a mask of its nulls, None without any.

    `blank` stands in place of a null where the dtype has no NaN.
    """
    if isinstance(cells, np.ndarray):
        return _native(cells), None
    target = cells.dtype.numpy_dtype
    null: Bools = np.asarray(cells.isna())
    if not null.any():
        return np.asarray(cells.to_numpy(dtype=target)), None
    if np.dtype(target).kind == "f":
        return np.asarray(cells.to_numpy(dtype=target, na_value=np.nan)), None
    return np.asarray(cells.to_numpy(dtype=target, na_value=blank)), null


def _native(values: Array) -> Array:
    """Return an array in native byte order, and floats wider than a double as doubles."""
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        with np.errstate(all="ignore"):
            return values.astype(np.float64)
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def _fill_nulls(arrow: Any, blank: Any) -> tuple[Array, Bools | None]:
    """Return the values of an Arrow array with ``blank`` for nulls, and a mask of the nulls.

    The mask is None if there are no nulls.
    """
    if arrow.null_count == 0:
        return arrow.to_numpy(), None
    return arrow.fill_null(blank).to_numpy(), arrow.is_null().to_numpy()


def _time(cells: Any, arrow: Any) -> Vector:
    """Return the cells of a column of times as datetime64, in UTC for zoned ones.

    ``cells`` is pandas' or numpy's array. ``arrow`` is the Arrow array below it, else None.
    """
    if arrow is not None:
        pa: Any = import_module("pyarrow")
        if pa.types.is_date32(arrow.type):
            days, null = _fill_nulls(arrow.cast(pa.int32()), 0)
            moments = days.astype(np.int64) * 86_400
            if null is not None:
                moments[null] = NAT
            return Vector("time", moments.view("M8[s]"))
        unit = "ms" if pa.types.is_date64(arrow.type) else arrow.type.unit
        ticks, _ = _fill_nulls(arrow.cast(pa.int64()), NAT)
        return Vector("time", ticks.view(f"M8[{unit}]"))
    if getattr(cells, "tz", None) is not None:
        cells = cells.tz_convert(None)
    values = np.asarray(cells)
    return Vector(
        "time", values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
    )


def _duration_cells(cells: Array, arrow: Any) -> Vector:
    """Return the cells of a column of durations as timedelta64.

    ``cells`` is pandas' or numpy's array. ``arrow`` is the Arrow array below it, else None.
    """
    if arrow is not None:
        pa: Any = import_module("pyarrow")
        ticks, _ = _fill_nulls(arrow.cast(pa.int64()), NAT)
        return Vector("duration", ticks.view(f"m8[{arrow.type.unit}]"))
    values = np.asarray(cells)
    return Vector(
        "duration",
        values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("=")),
    )


def _other(cells: Any, arrow: object) -> Vector:
    null: Bools = np.asarray(_pandas.isna(cells), dtype=bool)
    return Vector("other", np.zeros(len(null), dtype=np.int8), null)


# ---- dictionaries -----------------------------------------------------------------------------------------


def _text(cells: Any, arrow: Any) -> Vector:
    """Return the cells of a column of texts as codes and a dictionary of the distinct texts.

    ``cells`` is pandas' or numpy's array. ``arrow`` is the Arrow array below it, else None.
    """
    if not isinstance(cells.dtype, pd.StringDtype) and arrow is None:
        return _label(np.asarray(cells, dtype=object), None, kind="text")
    if getattr(cells.dtype, "storage", None) == "python":
        # By its dtype these are strings and NaN. This takes half the time of the array's own way.
        cells = np.asarray(cells, dtype=object)
    try:
        if len(cells) >= SIZES.thread_texts and getattr(cells.dtype, "storage", None) == "pyarrow":
            arrow = cells.__arrow_array__()
            if has_repeats(arrow):
                return _text_vector(*_encode_in_shares(arrow))
        codes, uniques = _pandas.factorize(cells)
        texts = np.asarray(uniques, dtype=object)
    except Exception:  # Arrow does not check what it is given: some cell is no UTF-8
        codes, texts = _encode_bytes(cells.__arrow_array__())
    return _text_vector(codes, texts)


def _text_vector(codes: Array, texts: Array) -> Vector:
    return Vector("text", narrow(codes, len(texts)), None, texts)


def has_repeats(arrow: Any) -> bool:
    """Return whether many texts of a sample of an Arrow array occur more than once.

    If they do, each thread numbers the texts in a share of the rows.
    """
    pa: Any = import_module("pyarrow")
    sample = arrow.take(
        pa.array(np.linspace(0, len(arrow) - 1, SIZES.text_sample).astype(np.int64))
    )
    return len(sample.unique()) < 0.95 * SIZES.text_sample


def _encode_in_shares(arrow: Any) -> tuple[Array, Array]:
    """Return a code for each text of an Arrow array, and the texts, computed by several threads.

    Each thread numbers the texts of a share of the rows, from 0 on. Then the texts of all shares
    are numbered together, in the order in which they occur, and each share's codes are translated.
    """
    pa: Any = import_module("pyarrow")

    def encode(share: slice) -> list[Any]:
        some = arrow.slice(share.start, share.stop - share.start)
        encoded = some.dictionary_encode()
        return list(encoded.chunks) if hasattr(encoded, "chunks") else [encoded]

    found = side_by_side(encode, shares(len(arrow), max(1, SIZES.thread_texts // 2)))
    pieces = [chunk for chunks in found for chunk in chunks]
    known = pa.concat_arrays([one.dictionary for one in pieces]).dictionary_encode()
    texts = objects(known.dictionary.to_pylist())
    codes = np.empty(len(arrow), dtype=narrow(np.empty(0, np.int64), len(texts)).dtype)
    places, begin, first = np.asarray(known.indices).astype(codes.dtype), 0, 0
    translated = []
    for one in pieces:
        end, last = begin + len(one), first + len(one.dictionary)
        table = np.append(places[first:last], codes.dtype.type(-1))
        translated.append((one.indices, table, codes[begin:end]))
        begin, first = end, last
    side_by_side(_translate, translated)
    return codes, texts


def _translate(piece: tuple[Any, Array, Array]) -> None:
    """Write the codes of one share of the rows.

    ``piece`` has the share's own indices, a table from these to codes, and the array to write to.
    The last entry of the table is the code of a null.
    """
    indices, table, codes = piece
    own = np.asarray(indices.fill_null(len(table) - 1) if indices.null_count else indices)
    for rows in split_blocks(slice(0, len(codes))):
        np.take(table, own[rows], out=codes[rows], mode="clip")


def _encode_bytes(arrow: object) -> tuple[Array, Array]:
    """Return a code for each text of an Arrow array, and the texts, read from their bytes.

    It is called where some bytes may be no UTF-8. Those become halves of characters, which equal no
    key.
    """
    pa: Any = import_module("pyarrow")
    chunks = [_bytes_of(chunk) for chunk in (arrow.chunks if hasattr(arrow, "chunks") else [arrow])]
    encoded = pa.chunked_array(chunks, type=pa.large_binary()).combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, objects(
        c.decode("utf-8", "surrogateescape") for c in encoded.dictionary.to_pylist()
    )


def _bytes_of(arrow: Any) -> Any:
    """Return an Arrow array of texts as an array of bytes, without decoding them.

    Arrow's dictionaries become the texts that they stand for.
    """
    pa: Any = import_module("pyarrow")
    if hasattr(arrow.type, "value_type"):
        return _bytes_of(arrow.dictionary).take(arrow.indices)
    return arrow.cast(pa.large_binary())


def _label(cells: Array, arrow: object, kind: Kind = "label") -> Vector:
    """Return the cells of a column of objects as codes and a dictionary of plain scalars.

    ``arrow`` is not used. The code of a null is -1.
    """
    values: Array = np.asarray(cells, dtype=object)
    types = set(
        map(id, map(type, values.tolist()))
    )  # ids, since even a type can bring its own __hash__
    if types <= _HASHABLE and len(types & _NUMBERS) <= 1:
        codes, uniques = _pandas.factorize(values)
        categories = objects(plain(v) for v in uniques)
    else:
        codes, categories = _one_by_one(values)
    return Vector(kind, narrow(codes, len(categories)), None, categories)


def _one_by_one(values: Array) -> tuple[Array, Array]:
    """Return a code for each object, -1 for null, and the distinct plain scalars.

    Scalars are numbered in order of occurrence. It is called for objects of types that pandas would
    confuse. 1, 1.0 and True have codes of their own.
    """
    codes = np.empty(len(values), dtype=np.int64)
    index: dict[Any, int] = {}
    cells: list[Any] = []
    for i, cell in enumerate(values):
        value = plain(cell)
        if value is None:
            codes[i] = -1
            continue
        key = (type(value), str(value) if type(value) is Decimal else value)
        code = index.setdefault(key, len(cells))
        if code == len(cells):
            cells.append(value)
        codes[i] = code
    return codes, objects(cells)


def _categorical(cells: Any, kind: Kind) -> Vector:
    """Return the cells of a categorical column as its codes and a dictionary of plain scalars.

    Two categories may become the same plain value.
    """
    codes: Array = np.asarray(cells.codes)
    return Vector(
        kind, codes, None, objects(map(plain, np.asarray(cells.categories, dtype=object)))
    )


def objects(values: Iterable[object]) -> Array:
    """Return a flat object array of values, even of those that numpy would unpack or convert."""
    cells = list(values)
    return np.fromiter(cells, dtype=object, count=len(cells))


def narrow(codes: Array, count: int) -> Array:
    """Return codes in the smallest signed integer dtype that holds them, to save memory.

    There are `count` different codes, and -1 for null.
    """
    for dtype in (np.int8, np.int16, np.int32):
        if count < np.iinfo(dtype).max:
            return codes.astype(dtype, copy=False)
    return codes.astype(np.int64, copy=False)


def as_floats(v: Vector) -> Array:
    """Return the cells of a column of numbers or bools as doubles, with NaN for null."""
    values = v.values.astype(np.float64, copy=v.null is not None)
    if v.null is not None:
        values[v.null] = np.nan
    return values


def look_up(table: Array, codes: Array) -> Array:
    """Return the entries of a table with one entry per category, and a last one for null."""
    return table.take(codes, mode="wrap")


def fits(value: Any, dtype: np.dtype[Any] | None) -> bool:
    """Return whether an integer dtype can hold a constant; None always fits.

    Types and constants decide, so every row gets the same answer.
    """
    return value is None or (
        isinstance(value, int) and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
    )


# ---- cells of object columns ------------------------------------------------------------------------------


def plain(cell: object) -> Any:
    """Return a cell of an object column as a plain scalar; None if it is null.

    If its type is not known it is `UNMATCHED`, which equals nothing.
    """
    convert = _PLAIN.get(id(type(cell)))
    return UNMATCHED if convert is None else convert(cell)


def _same(cell: object) -> Any:
    return cell


def _null(cell: object) -> None:
    return None


def _int(cell: Any) -> int | _Unmatched:
    """Return a whole number of an object column as Python's own.

    If it is too long to be printed it is `UNMATCHED`, which equals nothing.
    """
    value = int(cell)
    return (
        value if value.bit_length() <= 2_000 else UNMATCHED
    )  # Python may refuse to print longer ones


def _float(cell: Any) -> float | None:
    with np.errstate(all="ignore"):
        value = float(cell)
    return None if value != value else value + 0.0  # -0.0 equals 0.0, so it must print alike


def _decimal(cell: Any) -> Any:
    return None if cell.is_nan() else cell


def number_text(cell: int | float | Decimal) -> str:
    """Return a text of a number that all equal numbers share, whatever their type.

    No exponent makes it long, slow, or raise.
    """
    if isinstance(cell, Decimal):
        sign, digits, exponent = cell.as_tuple()
        if not isinstance(exponent, int):  # infinite
            return "-inf" if sign else "inf"
        written = "".join(map(str, digits)).rstrip("0").lstrip("0")
        if not written:
            return "0"
        exponent += len(digits) - len("".join(map(str, digits)).rstrip("0"))
        if exponent >= 0 and exponent + len(written) <= 700:
            return f"{'-' * sign}{written}{'0' * exponent}"
        near = float(cell)
        if math.isfinite(near) and Decimal(near) == cell:
            return repr(near)
        return f"{'-' * sign}{written}e{exponent}"
    if isinstance(cell, float) and math.isinf(cell):
        return repr(cell)
    whole = int(cell)
    return str(whole) if whole == cell else repr(float(cell))


def _complex(cell: Any) -> _Unmatched | None:
    return None if cell.real != cell.real or cell.imag != cell.imag else UNMATCHED


def _moment(cell: Any) -> Any:
    """Return a date or a time of an object column as a Timestamp, in UTC if it has a zone.

    It is None for NaT, and `UNMATCHED` if the zone's code fails. The zone's own code runs here,
    guarded, and never again.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value: Any = pd.Timestamp(cell)
            if value is pd.NaT:
                return None
            value = value if value.tz is None else value.tz_convert("UTC")
            hash(value)
    except Exception:
        return UNMATCHED
    return value


def _duration(cell: Any) -> _Unmatched | None:
    return None if np.isnat(cell) else UNMATCHED


def _interval(cell: Any) -> Any:
    """Return an interval of an object column with doubles as its ends.

    If its ends are not numbers it is `UNMATCHED`, which equals nothing.
    """
    ends = (plain(cell.left), plain(cell.right))
    if any(type(e) not in (int, float) for e in ends):
        return UNMATCHED
    try:
        return pd.Interval(float(ends[0]), float(ends[1]), cell.closed)
    except (OverflowError, ValueError):
        return UNMATCHED


_INTEGERS = tuple({np.dtype(c).type for c in "bhilqBHILQ"})
_CONVERT: dict[Callable[[Any], Any], tuple[type, ...]] = {
    _same: (str, bool),
    _null: (type(None), type(pd.NA), type(pd.NaT)),
    _int: (int, *_INTEGERS),
    _moment: (date, datetime, pd.Timestamp, np.datetime64),
    _float: (float, np.float16, np.float32, np.float64, np.longdouble),
    bool: (np.bool_,),
    str: (np.str_,),
    _decimal: (Decimal,),
    _complex: (complex, np.complex64, np.complex128, np.clongdouble),
    _duration: (np.timedelta64,),
    _interval: (pd.Interval,),
}
# Every type here lives as long as the process, so its id is its own.
_PLAIN: dict[int, Callable[[Any], Any]] = {
    id(t): convert for convert, types in _CONVERT.items() for t in types
}
_HASHABLE = set(map(id, (str, bool, int, float, *_CONVERT[_null])))
# factorize takes 1, 1.0 and True for one value
_NUMBERS = set(map(id, (bool, int, float)))

_PREPARE: dict[Kind, Callable[[Any, Any], Vector]] = {
    "number": _number,
    "bool": _bool,
    "text": _text,
    "label": _label,
    "time": _time,
    "duration": _duration_cells,
    "other": _other,
}
