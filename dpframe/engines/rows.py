"""Rows made of other rows: columns as arrays, rows that are kept, multiplied or matched with a
public table.

This is the owner's preparation of a frame, on the owner's side of the door: nothing here is shown
to anybody, and nothing raises because of a cell. What a derived row holds depends on the one row
that it comes from and on public tables alone (docs/guarantees/derived.md), and the dtype of a
derived column on dtypes alone.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.codec import Finder, finder_of_forms, forms_of
from dpframe._cells.columns import Vector, objects, plain, prepare
from dpframe._errors import BadType
from dpframe._expr import NO_KEYS, Column, Expr, Key, Within
from dpframe._types import Array, Floats
from dpframe.engines.expressions import Readable, evaluate, predicate
from dpframe.engines.people import people_of
from dpframe.engines.within.cache import WithinCache
from dpframe.engines.within.rows import sort_places
from dpframe.mechanisms import _sampling

Places = NDArray[np.intp]
NOTHING: Any = None  # in a column of objects
_LISTS = set(map(id, (list, tuple, set, frozenset)))
_TEXTUAL = ("text", "label")
_SURROGATE = re.compile("[\ud800-\udfff]")


class FrameRows:
    """A snapshot read by expressions, each column normalised once."""

    def __init__(self, frame: pd.DataFrame):
        """Hold a frame that expressions read, whose columns are prepared when one is first read."""
        self._frame = frame
        self._vectors: dict[int, Vector] = {}
        self._within = WithinCache(
            self.column, lambda people: people_of(list(map(self.column, people)), b"").codes
        )

    def __len__(self) -> int:
        return len(self._frame)

    @overload
    def column(self, leaf: Column) -> Vector: ...
    @overload
    def column(self, leaf: Column | Within) -> Readable: ...
    def column(self, leaf: Column | Within) -> Readable:
        """Return the cells of a column in all rows, prepared once.

        ``leaf`` may also be a computation over each person's rows; then its results are returned.
        """
        if isinstance(leaf, Within):
            return self._within.compute(leaf)
        if leaf.position not in self._vectors:
            self._vectors[leaf.position] = prepare(self._frame.iloc[:, leaf.position], leaf.kind)
        return self._vectors[leaf.position]

    def vector(self, expr: Expr) -> Vector:
        return evaluate(expr, self.column, slice(0, len(self)))

    def kept(self, where: Expr | None, order: Sequence[Key] = ()) -> Places:
        """Return the places of the rows where a condition holds, sorted by the keys in ``order``.

        Without a condition all rows are kept. Rows with equal keys stay in the order of the frame.
        """
        with np.errstate(all="ignore"):
            every = slice(0, len(self))
            places = np.arange(len(self))
            if where is not None:
                places = np.flatnonzero(predicate(where, self.column, every))
            for key in reversed(order):
                places = places[sort_places(self.vector(key.expr), key, places)]
        return places

    def array(self, expr: Expr) -> Any:
        """Return the values of an expression as an array that a new column can hold.

        A column gives its cells as they are. For other expressions the dtypes of their columns
        decide the dtype, never a value.
        """
        if isinstance(expr, Column):
            return array_of(self._frame, expr.position)
        v = self.vector(expr)
        if v.categories is not None:
            return _of_categories(v)
        if v.kind == "time":
            times = pd.DatetimeIndex(v.values)
            return (
                times.array
                if expr.tz is None
                else times.tz_localize("UTC").tz_convert(expr.tz).array
            )
        if v.kind == "duration":
            return pd.TimedeltaIndex(v.values).array
        if v.kind == "other":
            return objects([NOTHING] * len(v))
        if v.values.dtype.kind == "f":
            values = v.values.astype(np.float64)
            if v.null is not None:
                values[v.null] = np.nan
            return values
        if not expr.nullable and v.null is None:
            return np.array(v.values)
        null = np.zeros(len(v), dtype=bool) if v.null is None else np.array(v.null)
        masked: Any = pd.arrays.BooleanArray if v.kind == "bool" else pd.arrays.IntegerArray
        return masked(np.array(v.values), null)


def array_of(frame: pd.DataFrame, position: int) -> Any:
    """Return the cells of a column as they are, in a dtype whose rows can be taken.

    Arrow cannot take rows of views, so views become plain texts and bytes.
    """
    series = frame.iloc[:, position]
    if not isinstance(series.dtype, pd.ArrowDtype):
        return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.array
    array: Any = series.array
    arrow = series.dtype.pyarrow_dtype
    kept = _without_views(arrow)
    return array if kept == arrow else type(array)(array.__arrow_array__().cast(kept))


def rows_of(frame: pd.DataFrame, places: Places) -> pd.DataFrame:
    """Return the rows of a frame at some places, in the dtypes of the frame.

    pandas itself takes no rows of numbers in a foreign byte order.
    """
    arrays = [array_of(frame, i).take(places) for i in range(frame.shape[1])]
    return frame_of(arrays, list(frame.columns), frame.index.take(places))


def _without_views(dtype: Any) -> Any:
    """Return an Arrow dtype with plain texts and bytes in place of views, at any depth.

    It is called before rows are taken, since Arrow cannot take rows of views.
    """
    pa: Any = import_module("pyarrow")
    for view, plain_type in (("string_view", pa.large_string), ("binary_view", pa.large_binary)):
        if str(dtype) == view:
            return plain_type()
    lists = ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list))
    for known, make in lists:
        if known(dtype):
            return make(dtype.value_field.with_type(_without_views(dtype.value_type)))
    if pa.types.is_struct(dtype):
        return pa.struct(
            [
                dtype.field(i).with_type(_without_views(dtype.field(i).type))
                for i in range(dtype.num_fields)
            ]
        )
    return dtype


def _of_categories(v: Vector) -> Array | pd.api.extensions.ExtensionArray:
    """Return the cells of a column with a dictionary, as an array of strings or of objects.

    ``v`` has a code for each cell, -1 for a null.
    """
    assert v.categories is not None
    text = v.kind == "text"
    known = [_text(c) if text else c for c in v.categories]
    cells = objects([*known, NOTHING]).take(v.values, mode="wrap")  # the code of a null is -1
    return pd.array(cells, dtype="str") if text else cells


def _text(cell: object) -> Any:
    """Return a text as it is; None for any other cell, and for a text with half of a character.

    No column of texts can hold half of a surrogate pair.
    """
    if type(cell) is not str:
        return NOTHING
    return cell if cell.isascii() or not _SURROGATE.search(cell) else NOTHING


def frame_of(
    arrays: Sequence[Any], names: Sequence[Hashable] | None = None, index: Any = None
) -> pd.DataFrame:
    """Return a frame with these arrays as its columns, in the dtypes they have.

    Without ``names`` the columns are numbered. pandas' constructor would look at the cells.
    """
    columns = {
        i: pd.Series(a, dtype=a.dtype, index=index, copy=False) for i, a in enumerate(arrays)
    }
    frame = pd.DataFrame(columns, index=index, copy=False)
    if names is not None:
        frame.columns = pd.Index(list(names), tupleize_cols=False)
    return frame


def people_labels(size: int) -> NDArray[np.int64]:
    """Return different random numbers that name people, one for each of ``size`` rows.

    All such lists are equally likely. Without one row the others' names are as likely as they were.
    Numbers of rows would change with the rows before them.
    """
    while True:
        words = np.frombuffer(_sampling.random_bytes(8 * size), dtype="<u8")
        names = (words >> np.uint64(1)).astype(np.int64)
        ranked = np.sort(names)
        if not (ranked[1:] == ranked[:-1]).any():
            return names


# Explode and melt -----------------------------------------------------------------------------------------------


class Multiplied(NamedTuple):
    """The row that each new one comes from, and the new column."""

    source: Places
    array: Any


def explode_lists(array: Any, dtype: str | None) -> Multiplied:
    """Return the elements of lists, each in a row of its own, with the row it comes from.

    ``dtype`` is "float" or "str" for elements of one type; with None they stay objects. An empty
    list and a null have one row with a null. Other cells have one row.
    """
    if isinstance(array.dtype, pd.ArrowDtype):
        return _exploded_arrow(array)
    cells = list(array)
    counts, found = np.empty(len(cells), dtype=np.intp), []
    for i, cell in enumerate(cells):
        items = _items(cell)
        counts[i] = len(items)
        found += items
    source = np.repeat(np.arange(len(cells)), counts)
    if dtype == "float":
        return Multiplied(source, np.array([_number(c) for c in found], dtype=np.float64))
    if dtype == "str":
        texts = objects(map(_text, found))
        return Multiplied(source, pd.array(texts, dtype="str"))
    return Multiplied(source, objects(found))


def _exploded_arrow(array: Any) -> Multiplied:
    """Return the elements of Arrow's own lists, each with the row that it comes from."""
    pa: Any = import_module("pyarrow")
    pc: Any = import_module("pyarrow.compute")
    lists = array.__arrow_array__().combine_chunks()
    lengths = (
        pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.intp)
    )
    counts = np.maximum(lengths, 1)
    source = np.repeat(np.arange(len(lengths)), counts)
    inside = np.repeat(lengths > 0, counts)
    places = np.where(inside, np.cumsum(inside) - 1, 0)
    cells = pc.list_flatten(lists).take(pa.array(places, mask=~inside))
    return Multiplied(source, pd.array(cells, dtype=pd.ArrowDtype(lists.type.value_type)))


def _items(cell: Any) -> list[Any]:
    """Return the items of a list, or the cell itself as the only item.

    An empty list has a null as its item. The exact type decides, so that no other class's code
    runs.
    """
    if id(type(cell)) in _LISTS or (type(cell) is np.ndarray and cell.ndim == 1):
        return list(cell) or [NOTHING]
    return [cell]


def _number(cell: object) -> float:
    """Return a cell as a double, NaN if it is no number.

    A number too large for a double is infinite.
    """
    value = plain(cell)
    if type(value) not in (int, float, bool):
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def joined(arrays: Sequence[Any]) -> Any:
    """Return the cells of several arrays, one array after the other.

    Arrays of one dtype keep it; others become an array of objects.
    """
    first = arrays[0]
    if all(a.dtype == first.dtype for a in arrays) and not isinstance(first, np.ndarray):
        return type(first)._concat_same_type(list(arrays))
    if all(isinstance(a, np.ndarray) and a.dtype == first.dtype for a in arrays):
        return np.concatenate(arrays)
    return objects(cell for a in arrays for cell in a)


@np.errstate(all="ignore")
def numbers(rows: FrameRows, exprs: Sequence[Expr]) -> list[Floats]:
    """Return the values of several expressions as arrays of doubles, NaN for a null."""
    numbers = []
    for expr in exprs:
        v = rows.vector(expr)
        values = np.array(v.values, dtype=np.float64)
        if v.null is not None:
            values[v.null] = np.nan
        numbers.append(values)
    return numbers


# Merge ----------------------------------------------------------------------------------------------------------


class Matched(NamedTuple):
    """The rows of a merge, as two arrays with an entry for each row of the result.

    The entries are indices of rows on the left and on the right; -1 is no row.
    """

    left: Places
    right: Places


class PublicTable:
    """A public table by its key columns: how often a key may match is public too."""

    most: int

    def __init__(
        self, frame: pd.DataFrame, names: Sequence[Hashable], lefts: Mapping[Hashable, Expr]
    ):
        """Index a public table by its key columns, so that rows of a frame can be matched with it.

        ``names`` are the key columns of the table. ``lefts`` has, in the same order, the name and
        the expression of each column on the left. It raises `BadType` if two columns can never
        match.
        """
        # Where a cell is found, among how many, and in which column.
        self._levels: list[tuple[Finder, int, Expr]] = []
        self._steps: list[NDArray[np.int64]] = []
        rows = FrameRows(frame)
        listed: list[Hashable] = list(frame.columns)
        codes = np.zeros(len(frame), dtype=np.int64)
        for name, (left_name, left) in zip(names, lefts.items(), strict=True):
            place = listed.index(name)
            leaf = Column.of(place, name, frame.dtypes.iloc[place])
            _check_kinds(left_name, left, name, leaf)
            vector = rows.vector(leaf)
            forms = {form: i for i, form in enumerate(forms_of(vector), start=1)}
            find = finder_of_forms(forms)
            self._levels.append((find, len(forms), left))
            wide = _wide(codes, find(vector), len(forms))
            known = np.unique(wide[wide >= 0])
            self._steps.append(known)
            codes = _among(wide, known)
        kept = np.flatnonzero(codes >= 0)
        self._order = kept[np.argsort(codes[kept], kind="stable")]
        size = len(self._steps[-1])
        self._counts = np.bincount(codes[kept], minlength=size)
        self._starts = np.cumsum(self._counts) - self._counts
        self.most_matches: int = int(self._counts.max(initial=0))

    def match(self, rows: FrameRows, kept: Places, keep_all: bool) -> Matched:
        """Return the pairs of a row on the left and a row of this table that have equal keys.

        ``rows`` is the frame on the left. ``kept`` has the indices of its rows that are matched,
        and the left side of the result has indices in ``kept``. With ``keep_all`` a row without a
        match stays, and has -1 on the right. A null has no match.

        The keys of a row are folded into one code, column by column; -1 is a code that the table
        does not have. The rows of the table are sorted by code, so those of one code stand together
        in `_order`.
        """
        codes = np.zeros(len(rows), dtype=np.int64)
        for (find, size, expr), known in zip(self._levels, self._steps, strict=True):
            codes = _among(_wide(codes, find(rows.vector(expr)), size), known)
        codes = codes[kept]
        matched = codes >= 0
        counts = np.zeros(len(codes), dtype=np.intp)
        counts[matched] = self._counts[codes[matched]]
        repeats = np.maximum(counts, 1) if keep_all else counts
        left = np.repeat(np.arange(len(codes)), repeats)
        offset = np.arange(len(left)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        right = np.full(len(left), -1, dtype=np.intp)
        some = matched[left]
        right[some] = self._order[self._starts[codes[left[some]]] + offset[some]]
        return Matched(left, right)


def match_rows(left: pd.DataFrame, right: pd.DataFrame, how: str) -> Matched:
    """Return the pairs of a row in each of two tables that have the same keys.

    ``how`` is "inner", "left", "right" or "outer", as in `pandas.merge`. Rows without a match that
    ``how`` keeps have -1 on the other side. Rows stay in their order: that of the left table, or of
    the right one if ``how`` is "right".
    """
    columns = [Column.of(i, i, left.dtypes[i]) for i in range(left.shape[1])]
    table = PublicTable(right, list(right.columns), dict(enumerate(columns)))
    rows = FrameRows(left)
    found = table.match(rows, np.arange(len(rows)), how in ("left", "outer"))
    if how in ("inner", "left"):
        return found
    alone = np.ones(len(right), dtype=bool)
    alone[found.right[found.right >= 0]] = False
    more = np.flatnonzero(alone)
    ours = np.concatenate([found.left, np.full(len(more), -1, dtype=np.intp)])
    theirs = np.concatenate([found.right, more])
    if how == "right":
        order = np.argsort(theirs, kind="stable")
        ours, theirs = ours[order], theirs[order]
    return Matched(ours, theirs)


def _check_kinds(left_name: Hashable, left: Expr, name: Hashable, right: Column) -> None:
    """Refuse to match two columns whose kinds, such as numbers and texts, can never be equal.

    ``left`` is what is matched, and ``right`` the column of the public table. Times must both have
    a zone, or neither.
    """
    alike = left.kind == right.kind or (left.kind in _TEXTUAL and right.kind in _TEXTUAL)
    if left.kind in NO_KEYS or not alike:
        raise BadType(
            f"merge: {left_name!r} is of kind {left.kind}, and {name!r} of the public table of kind {right.kind}. Give the "
            "table the dtype of the column."
        )
    if (left.tz is None) != (right.tz is None):
        raise BadType(
            f"merge: {left_name!r} and {name!r} of the public table must both have a time zone, or neither."
        )


def _wide(codes: NDArray[np.int64], buckets: Array, size: int) -> NDArray[np.int64]:
    places = buckets.astype(np.int64) - 1
    return np.where((codes < 0) | (places < 0), -1, codes * size + places)


def _among(wide: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    if not len(known):
        return np.full(len(wide), -1)
    places = np.minimum(np.searchsorted(known, wide), len(known) - 1)
    return np.where((wide >= 0) & (known[places] == wide), places, -1)


def with_room_for_nulls(array: Any) -> Any:
    """Return a column in a dtype that can hold nulls, even if none is needed.

    It is called for columns of a merge. A dtype without nulls would tell that everybody has a
    match.
    """
    if isinstance(array.dtype, pd.SparseDtype):
        array = np.asarray(array)
    if isinstance(array, np.ndarray):
        if array.dtype.kind in "iub":
            return pd.array(array)
        return array if array.dtype.kind in "fMmO" else objects(array)
    kept = (pd.StringDtype, pd.CategoricalDtype, pd.DatetimeTZDtype, pd.ArrowDtype)
    masked = isinstance(
        array, pd.arrays.IntegerArray | pd.arrays.FloatingArray | pd.arrays.BooleanArray
    )
    return array if masked or isinstance(array.dtype, kept) else objects(array)


def take_cells(array: Any, places: Places) -> Array | pd.api.extensions.ExtensionArray:
    """Return the cells of an array at some places, null where a place is -1."""
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return pd.api.extensions.take(array, places, allow_fill=True)
