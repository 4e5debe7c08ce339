"""The rows of a frame by person and in order, and what is computed along them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpframe import _pandas
from dpframe._cells.columns import Vector
from dpframe._cells.texts import order_of, text_of
from dpframe._expr import Expr, Key
from dpframe._sizes import SIZES
from dpframe._types import Array
from dpframe.engines.people import Codes, count_each, encode_values, text_of_scalar, widen

if TYPE_CHECKING:
    from dpframe.engines.within.cache import WithinCache

Places = NDArray[np.intp]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
NO_ROW = -1  # stands for a row that does not exist, and for a person of no row


class RowsByPerson:
    """The rows of a frame that count, by person and in order.

    With ``by`` the rows of one person are divided further, by the values of these expressions.
    """

    rows: int  # of the frame
    whose: Array  # the number of each row's person, whether or not the row counts
    size: int  # how many people there are
    codes: Array  # the number of each row's person, -1 where the row does not count

    def __init__(
        self,
        cache: WithinCache,
        whose: Codes,
        asked: Bools | None,
        by: tuple[Expr, ...],
        order: tuple[Key, ...],
    ):
        """Divide the rows of a frame by person, and evaluate the keys that they are sorted by.

        ``whose`` has the number of each row's person, -1 for nobody. ``asked`` is a mask of the
        rows that count; None if all do. ``by`` has expressions that divide the rows of one person
        further. ``order`` has the keys.
        """
        self.rows = len(whose)
        self.whose, self.size = whose, int(whose.max(initial=-1)) + 1
        for expr in by:
            cells = encode_values(cache.evaluate(expr, self.rows))
            wide = widen(self.whose) * (cells.size + 1) + cells.codes + 1
            inner, uniques = _pandas.factorize(wide)
            self.whose, self.size = np.where(self.whose < 0, NO_ROW, inner), len(uniques)
        self.codes = self.whose if asked is None else np.where(asked, self.whose, NO_ROW)
        self._keys = []
        for key in order:
            self._keys.append((cache.evaluate(key.expr, self.rows), key))

    @cached_property
    def all_count(self) -> bool:
        """Whether all rows of the frame count."""
        return int(self.codes.min(initial=0)) >= 0

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The number of rows of each person that count."""
        return count_each(self.codes, self.size, None if self.all_count else self.codes >= 0)

    @cached_property
    def order(self) -> Places:
        """The rows that count, person by person.

        The rows of one person are sorted by the keys, and otherwise stay in the order of the frame.
        """
        rows = None if self.all_count else np.flatnonzero(self.codes >= 0)
        for vector, key in reversed(self._keys):
            places = sort_places(vector, key, rows)
            rows = places if rows is None else rows[places]
        seats = sort_codes(self.codes if rows is None else self.codes[rows], self.size)
        return seats if rows is None else rows[seats]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The place in `order` where the rows of each person begin."""
        return np.asarray(np.cumsum(self.counts) - self.counts)

    @cached_property
    def people(self) -> Array:
        """The number of the person of each row in `order`."""
        return np.repeat(np.arange(self.size, dtype=np.min_scalar_type(self.size)), self.counts)

    def find_end(self, last: bool, valid: Bools | None = None) -> Places:
        """Return the last row of each person if ``last``, else the first.

        Only rows in the mask ``valid`` are looked at; None means all that count. The result is -1
        for a person without such rows.
        """
        rows: Places | None = None if valid is None else np.flatnonzero(valid)
        if self._keys:
            rows = self.order if valid is None else self.order[valid[self.order]]
        places = np.full(self.size + 1, NO_ROW, dtype=np.intp)  # one more, for nobody
        pieces = list(split_rows(self.rows if rows is None else len(rows)))
        for at in pieces if last else reversed(pieces):
            some = np.arange(at.start, at.stop) if rows is None else rows[at]
            codes = widen(self.codes[at if rows is None else some])
            turn = slice(None, None, 1 if last else -1)
            # Where a person has several rows, the one that is written last stays.
            places[codes[turn]] = some[turn]
        return places[:-1]

    @cached_property
    def rows_before(self) -> NDArray[np.int64]:
        """The number of rows of the same person before each row in `order`."""
        found = np.arange(len(self.order))
        found -= np.repeat(self.starts, self.counts)
        return found


def split_rows(n: int) -> Iterator[slice]:
    """Split ``n`` rows into blocks whose temporary arrays stay in the processor's cache."""
    for start in range(0, n, SIZES.block):
        yield slice(start, min(start + SIZES.block, n))


def sort_codes(codes: Codes, size: int) -> Places:
    """Return the places of codes in ascending order, as a stable `numpy.argsort` does.

    The codes are whole numbers from 0 to below ``size``.
    """
    n = len(codes)
    if all(
        bool((codes[at.start + 1 : at.stop + 1] >= codes[at][: n - 1 - at.start]).all())
        for at in split_rows(n)
    ):
        return np.arange(n)  # they are sorted already
    bits = max(n - 1, 1).bit_length()
    if bits + max(size - 1, 1).bit_length() > 62:
        return np.argsort(codes, kind="stable")
    # A code with its place in the low bits sorts much faster than by argsort.
    seats = np.left_shift(codes, bits, dtype=np.int64)
    for at in split_rows(n):
        seats[at] |= np.arange(at.start, at.stop)
    seats.sort()
    seats &= (1 << bits) - 1
    return seats


def sort_places(vector: Vector, key: Key, rows: Places | None) -> Places:
    """Return the places of some rows, or of all, sorted by their cells.

    ``key`` says whether the order is descending, and whether nulls come last. The sort is stable,
    as `numpy.argsort` with ``kind="stable"``.
    """
    values, null = vector.values, vector.nulls()
    if rows is not None:
        values, null = values[rows], None if null is None else null[rows]
    if vector.categories is not None:
        keys = [_find_sort_key(c) for c in vector.categories]
        ranks = {key: i for i, key in enumerate(sorted(set(keys)))}
        values = np.array([*(ranks[key] for key in keys), 0], dtype=np.int64).take(
            values, mode="wrap"
        )
    elif values.dtype.kind in "mM":
        values = values.view(np.int64)
    if key.descending:  # the complement of integers and bools does not overflow
        values = -values if values.dtype.kind == "f" else ~values
    places = _sort_values(values)
    if null is None or not null.any():
        return places
    behind = null[places]
    parts = (places[~behind], places[behind])
    return np.concatenate(parts if key.nulls_last else parts[::-1])


def _sort_values(values: Array) -> Places:
    """Return the order in which values ascend, as a stable `numpy.argsort` does.

    Whole numbers of a narrow range are sorted faster.
    """
    if values.dtype.kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high < 2**63 and high - low < 2**40:
            return sort_codes(values.astype(np.int64, copy=False) - low, high - low + 1)
    return np.argsort(values, kind="stable")


def _find_sort_key(cell: object) -> tuple[str, Any, str]:
    """Return what a cell of a dictionary column is sorted by; unequal cells have unequal keys."""
    text = text_of(cell)
    return ("", 0, text_of_scalar(cell)) if text is None else order_of(text)


def order_by_count(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of the people who have any rows, those with most rows first.

    ``counts`` has the rows of each person.
    """
    some = np.flatnonzero(counts)
    most = int(counts.max(initial=0))
    return some[sort_codes(most - counts[some], most + 1)]


def pad_tables(
    values: Floats, counts: NDArray[np.int64], blank: float
) -> Iterator[tuple[Places, Floats]]:
    """Yield some people at a time, as their numbers, with a table of their values.

    The table has a row for each person. ``values`` stand person by person, and ``counts`` says how
    many each person has. Rows that are too short end with ``blank``. People with about as many
    values share a table.
    """
    starts, people = np.cumsum(counts) - counts, order_by_count(counts)
    sizes = counts[people]
    while len(people):
        width = int(sizes[0])
        # At most half of a table is padding.
        least = width if width <= SIZES.person_values else max(width // 2, SIZES.person_values)
        step = max(1, SIZES.block // width)
        n = int(np.searchsorted(-sizes, -least, side="right"))
        for first in range(0, n, step):
            some = people[first : min(first + step, n)]
            own = np.arange(width)
            table = values.take(starts[some, None] + own, mode="clip")
            if least < width:
                table[own >= counts[some, None]] = blank
            yield some, table
        people, sizes = people[n:], sizes[n:]


def accumulate(operation: np.ufunc, values: Floats, layout: RowsByPerson) -> Floats:
    """Return in each row what an operation makes of the person's values up to that row.

    The operation is a function such as `numpy.add`. Values are taken one after the other, in the
    order of ``layout``. Many people are handled at once: first the first row of each, then the
    second, and so on. When few people have rows left, they are handled one by one. Rows that do not
    count are NaN.
    """
    found = np.empty(layout.rows) if layout.all_count else np.full(layout.rows, np.nan)
    everybody, order = order_by_count(layout.counts), layout.order
    for first in range(0, len(everybody), SIZES.people_strip):
        people = everybody[first : first + SIZES.people_strip]
        # People with most rows come first. Counts are negated, so that they ascend for the search.
        starts, left = layout.starts[people], -layout.counts[people]
        total, place, many = np.empty(0), 0, len(people)
        while many > SIZES.people_few:
            rows = order[starts[:many] + place]
            total = operation(total[:many], values[rows]) if place else values[rows]
            found[rows] = total
            place += 1
            many = int(np.searchsorted(left, -place))
        for person in range(many):
            rows = order[starts[person] + place : starts[person] - left[person]]
            own = values[rows]
            if place:
                own[0] = operation(total[person], own[0])
            found[rows] = operation.accumulate(own)
    return found
