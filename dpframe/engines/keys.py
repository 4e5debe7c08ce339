"""Keys that nobody listed: the values of a column as text, numbered in the order of that text's
value; and what expressions make of keys that somebody did.

*Formal guarantee.* The text of a cell is a function of that cell and the dtype. Equal values have
one text, so that a key is released in one form, whichever of the equal cells came first. The order
of two keys' numbers is that of the keys, whatever else is in the frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.codec import form_of
from dpframe._cells.columns import UNMATCHED, Vector, narrow, prepare
from dpframe._cells.texts import key_of, order_of, text_of, texts_of, times
from dpframe._cells.threads import shares, side_by_side, split_blocks
from dpframe._expr import Column, Constant, Expr, If, in_order
from dpframe._statistics.engine import Texts
from dpframe._types import Array, Index, Series
from dpframe.engines.expressions import evaluate
from dpframe.engines.people import Numbers, combine_numbers, ends_within, number_of, number_values

Codes = NDArray[np.int64]
_TEXT = 100  # bytes, about


class KeyCodes(NamedTuple):
    """The key of each row of a column, by a table of its distinct cells.

    ``places`` has the row's place in ``table``, and -1 for a null. ``table`` has the number of the
    key at each place, and -1 where a cell has no key. Its last entry is -1, for nulls. ``texts``
    has the text of each key.
    """

    places: Array
    table: Codes
    texts: Array

    @property
    def codes(self) -> Codes:
        """The number of each row's key; -1 where the row has no key."""
        return np.take(self.table, self.places, mode="wrap")

    @property
    def nbytes(self) -> int:
        """The memory that this takes, about."""
        return self.places.nbytes + self.table.nbytes + _TEXT * len(self.texts)

    def by_place(self, exprs: tuple[Expr, ...]) -> Occurring:
        """Return a grouping by the places of the table, which needs no number of a key for every
        row."""
        buckets = self.places + 1  # a place below the largest of its dtype; of a null -1
        return Occurring(exprs, buckets.view(f"u{buckets.itemsize}"), len(self.table) - 1, [])

    def by_key(self, of_places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return sums by key from sums by place of the table, which has the key's number at each
        place.

        Several places may have one key. Sums at places without a key, -1, are left out.
        """
        found = np.zeros((*of_places.shape[:-1], len(self.texts)), dtype=np.int64)
        has_key = self.table[:-1] >= 0  # the last entry is that of nulls
        keys = self.table[:-1][has_key]
        for sums, own in zip(np.atleast_2d(found), np.atleast_2d(of_places), strict=True):
            np.add.at(sums, keys, own[has_key])
        return found


def number_keys(vector: Vector) -> KeyCodes:
    """Return the number of each cell's key in a column, and the texts of all keys that occur.

    Keys are numbered in the order of their values. It is called to find keys that nobody listed. A
    null has no key, nor does a cell that cannot be one.
    """
    if vector.categories is not None:
        texts = texts_of(vector.categories.tolist())
        proper = {t for t in texts if t is not None}
        ordered = sorted(proper, key=order_of) if vector.kind == "label" else sorted(proper)
        places: dict[str | None, int] = {
            None: -1,
            **dict(zip(ordered, range(len(ordered)), strict=True)),
        }
        return _make_key_codes(vector.values, list(map(places.__getitem__, texts)), ordered)
    values, null = vector.values, vector.nulls()
    if values.dtype.kind == "f":
        values = values.astype(np.float64) + 0.0  # -0.0 is 0.0
    ends = ends_within(values, null, len(values) // 8)
    if ends is not None:
        return _of_range(values, *ends)
    codes, uniques = number_values(values, null)
    order = np.argsort(uniques, kind="stable")
    written: Iterable[str | None] = map(text_of, uniques[order].tolist())
    if vector.kind == "time":
        written = times(uniques[order])
    elif uniques.dtype.kind in "iu":
        written = _whole(uniques[order])
    named = [(place, text) for place, text in zip(order, written, strict=True) if text is not None]
    table = np.full(len(uniques), -1, dtype=np.int64)
    table[[place for place, _ in named]] = np.arange(len(named))
    return _make_key_codes(narrow(codes, len(uniques)), table, [text for _, text in named])


def _of_range(values: Array, low: int, high: int) -> KeyCodes:
    """Return the keys of whole numbers between ``low`` and ``high``, without sorting or searching.

    It is called for a column whose numbers lie in a narrow range.
    """
    size = high - low + 1
    codes = np.empty(len(values), dtype=narrow(np.empty(0, np.int64), size).dtype)
    first = np.array(low % 2**64, dtype=np.uint64).astype(codes.dtype)

    def fill(share: slice) -> NDArray[np.bool_]:
        """Write the codes of a share of the rows, and return which codes occur in it.

        A code is a value less ``low``, the least value of the column.
        """
        there = np.zeros(size, dtype=bool)
        for rows in split_blocks(share):
            own = codes[rows]
            # A difference that a type can hold is in its low bits, whichever way the others
            # overflow.
            np.subtract(values[rows].astype(own.dtype), first, out=own)
            there[own] = True
        return there

    found = np.logical_or.reduce(side_by_side(fill, shares(len(values))))
    places = np.flatnonzero(found)
    table = np.full(size, -1, dtype=np.int64)
    table[places] = np.arange(len(places))
    return _make_key_codes(codes, table, _whole([low + place for place in places.tolist()]))


def _whole(numbers: Iterable[int]) -> list[str]:
    """Return the texts of whole numbers, as `text_of` writes them."""
    return [f"n{number}" for number in numbers]


def _make_key_codes(codes: Array, places: object, texts: list[str]) -> KeyCodes:
    table = np.append(np.asarray(places, dtype=np.int64), -1)
    found = np.array(texts, dtype=object)
    return KeyCodes(codes, table, found)


def images(
    expr: Expr, columns: Sequence[Column], listed: Sequence[Sequence[object]]
) -> tuple[Any, ...]:
    """Return all values that an expression can give for the listed values of its columns, in order.

    ``listed`` has the public keys of each of the ``columns``. The expression is computed for every
    combination of them. The constants in its branches are among the results, too. No frame is read.
    """
    rows = list(product(*listed))
    vectors = {
        c.position: prepare(_series([row[i] for row in rows], c), c.kind)
        for i, c in enumerate(columns)
    }
    found = evaluate(expr, lambda c: vectors[c.position], slice(0, len(rows)))
    if found.categories is not None:
        used = {code for code in found.values.tolist() if code >= 0}
        cells = [found.categories[code] for code in used]
    else:
        null = found.nulls()
        cells = (found.values if null is None else found.values[~null]).tolist()
    made = {
        (type(c), form_of(c)): c for c in (*cells, *_list_constants(expr)) if c is not UNMATCHED
    }
    return in_order(made.values())


def _series(values: list[Any], column: Column) -> Series:
    """Return listed values as a series, in a dtype of the same kind as the column.

    Expressions then treat the values as they treat the cells of that column.
    """
    dtypes: dict[str, Any] = {
        "number": "Int64" if column.integral else "float64",
        "bool": "boolean",
        "text": "str",
    }
    return pd.Series(
        values, dtype=dtypes.get(column.kind, object if column.kind == "label" else None)
    )


def _list_constants(expr: Expr) -> list[Any]:
    """Return the constants that an expression gives whatever its columns hold."""
    if isinstance(expr, If):
        return [*_list_constants(expr.x), *_list_constants(expr.y)]
    return [expr.value] if isinstance(expr, Constant) and expr.value is not None else []


@dataclass(frozen=True, slots=True, eq=False)
class Occurring:
    """Group by the values that occur, before anybody knows which: the bucket of each row, and the
    texts of the values."""

    exprs: tuple[Expr, ...]
    buckets: Array
    size: int
    texts: Texts  # none where nobody's groups are drawn
    token: ClassVar[str] = ""
    word: ClassVar[None] = None

    @property
    def index(self) -> Index:
        """The places of the values: only their number is of use."""
        return pd.RangeIndex(self.size)

    def numbers(self) -> Numbers:
        """Return the number of each combination of values, by which a person's groups are drawn.

        It is a function of the values of the combination, and of nothing else in the frame.
        """
        known: dict[str, int] = {}
        found = np.zeros(len(self.texts), dtype=np.int64)
        for level in range(len(self.exprs)):
            texts = [combination[level] for combination in self.texts]
            for text in {*texts} - known.keys():
                known[text] = number_of(key_of(text))
            more = np.array([known[text] for text in texts], dtype=np.int64)
            found = combine_numbers(found, more) if level else more
        return found

    def to_json(self) -> object:
        raise AssertionError("what occurs is no part of a question")


def combine_keys(columns: list[KeyCodes]) -> tuple[Codes, Texts]:
    """Return the combinations of keys that occur in several columns, numbered in order.

    The first array has the number of each row's combination, -1 where a key is missing. The list
    has the texts of each combination.
    """
    codes = columns[0].codes
    places: list[Codes] = [np.arange(len(columns[0].texts))]
    for one in columns[1:]:
        size = max(1, len(one.texts))
        wide = np.where((codes < 0) | (one.codes < 0), -1, codes * size + one.codes)
        uniques, found = np.unique(wide, return_inverse=True)
        first = int(len(uniques) > 0 and uniques[0] < 0)
        codes, uniques = found - first, uniques[first:]
        outer, inner = uniques // size, uniques % size
        places = [*(p[outer] for p in places), inner]
    return codes, list(
        zip(*(c.texts[p].tolist() for c, p in zip(columns, places, strict=True)), strict=True)
    )
