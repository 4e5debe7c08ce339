"""The rows of a frame put together by person and in order, and the cells of a column in that
order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpframe import _pandas
from dpframe._cells.columns import NAT, Vector, as_floats
from dpframe._cells.texts import order_of, text_of
from dpframe._expr import Expr, Key, Within
from dpframe._sizes import SIZES
from dpframe.engines.people import Codes, count_each, encode_values, text_of_scalar, widen

if TYPE_CHECKING:
    from dpframe.engines.within.kept import Kept

Places = NDArray[np.intp]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
NEVER = -1  # the place of no row


class PerPerson:
    """One value of each person in all of that person's rows, put there when some of them are looked
    at.

    ``table`` has the value of each person, and a last one, of nobody; ``whose`` says whose each row
    is, and -1 of nobody's.
    """

    table: Vector
    whose: Codes

    __slots__ = ("table", "whose")

    def __init__(self, table: Vector, whose: Codes):
        self.table, self.whose = table, whose

    def __len__(self) -> int:
        return len(self.whose)

    @property
    def nbytes(self) -> int:
        """The bytes that it takes."""
        return self.table.nbytes + self.whose.nbytes

    def rows(self, rows: slice) -> Vector:
        """The values in some rows."""
        v, whose = self.table, widen(self.whose[rows])
        null = None if v.null is None else v.null.take(whose, mode="wrap")
        return Vector(v.kind, v.values.take(whose, mode="wrap"), null, v.categories)


class Layout:
    """The rows of a frame that count, put together by person.

    ``codes`` says whose each row is, and -1 of a row that does not count; ``whose`` the same of all
    rows, whether or not they count: what a person has one value of they all see. With ``by`` the
    rows of one person and one value are put together.
    """

    rows: int
    whose: NDArray[Any]
    size: int
    codes: NDArray[Any]

    def __init__(
        self,
        kept: Kept,
        whose: Codes,
        asked: Bools | None,
        by: tuple[Expr, ...],
        order: tuple[Key, ...],
    ):
        self.rows = len(whose)
        self.whose, self.size = whose, int(whose.max(initial=-1)) + 1
        for expr in by:
            cells = encode_values(kept.value(expr, self.rows))
            wide = widen(self.whose) * (cells.size + 1) + cells.codes + 1
            inner, uniques = _pandas.factorize(wide)
            self.whose, self.size = np.where(self.whose < 0, NEVER, inner), len(uniques)
        self.codes = self.whose if asked is None else np.where(asked, self.whose, NEVER)
        self._keys = [(kept.value(key.expr, self.rows), key) for key in order]

    @cached_property
    def every(self) -> bool:
        """Whether all rows count."""
        return int(self.codes.min(initial=0)) >= 0

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many rows of each person count."""
        return count_each(self.codes, self.size, None if self.every else self.codes >= 0)

    @cached_property
    def order(self) -> Places:
        """The rows that count: those of one person together, sorted by the keys, and else in the
        order of the frame."""
        rows = None if self.every else np.flatnonzero(self.codes >= 0)
        for vector, key in reversed(self._keys):
            places = sorted_places(vector, key, rows)
            rows = places if rows is None else rows[places]
        seats = in_order(self.codes if rows is None else self.codes[rows], self.size)
        return seats if rows is None else rows[seats]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the rows of each person begin in that order."""
        return np.asarray(np.cumsum(self.counts) - self.counts)

    @cached_property
    def people(self) -> NDArray[Any]:
        """Whose each row in that order is."""
        return np.repeat(np.arange(self.size, dtype=np.min_scalar_type(self.size)), self.counts)

    def end(self, last: bool, valid: Bools | None = None) -> Places:
        """The first or the last row of each person, of those that are ``valid``, and where there is
        none -1."""
        rows: Places | None = None if valid is None else np.flatnonzero(valid)
        if self._keys:
            rows = self.order if valid is None else self.order[valid[self.order]]
        places = np.full(self.size + 1, NEVER, dtype=np.intp)  # one more, for nobody
        pieces = list(blocks(self.rows if rows is None else len(rows)))
        for at in pieces if last else reversed(pieces):
            some = np.arange(at.start, at.stop) if rows is None else rows[at]
            codes = widen(self.codes[at if rows is None else some])
            turn = slice(None, None, 1 if last else -1)
            places[codes[turn]] = some[
                turn
            ]  # of several rows of a person the one that is written last stays
        return places[:-1]

    @cached_property
    def within(self) -> NDArray[np.int64]:
        """How many rows of the same person come before each row in that order."""
        found = np.arange(len(self.order))
        found -= np.repeat(self.starts, self.counts)
        return found


def blocks(n: int) -> Iterator[slice]:
    """Pieces of so many rows, whose temporary arrays stay in the processor's cache."""
    return (slice(start, min(start + SIZES.block, n)) for start in range(0, n, SIZES.block))


def in_order(codes: Codes, size: int) -> Places:
    """The places of whole numbers from 0 below ``size`` in their order; equal ones in the order
    they had."""
    n = len(codes)
    if all(
        bool((codes[at.start + 1 : at.stop + 1] >= codes[at][: n - 1 - at.start]).all())
        for at in blocks(n)
    ):
        return np.arange(n)  # as they stand
    bits = max(n - 1, 1).bit_length()
    if bits + max(size - 1, 1).bit_length() > 62:
        return np.argsort(codes, kind="stable")
    # With its place in the low bits a code sorts much faster than by argsort.
    seats = np.left_shift(codes, bits, dtype=np.int64)
    for at in blocks(n):
        seats[at] |= np.arange(at.start, at.stop)
    seats.sort()
    seats &= (1 << bits) - 1
    return seats


def sorted_places(vector: Vector, key: Key, rows: Places | None) -> Places:
    """The places of some rows, or of all, in the order of their cells, as `numpy.argsort` has them;
    equal cells in the order they had."""
    values, null = vector.values, vector.nulls()
    if rows is not None:
        values, null = values[rows], None if null is None else null[rows]
    if vector.categories is not None:  # texts by their characters, and other cells by their value
        known = [_place_of(c) for c in vector.categories]
        ranks = {place: i for i, place in enumerate(sorted(set(known)))}
        values = np.array([*(ranks[place] for place in known), 0], dtype=np.int64).take(
            values, mode="wrap"
        )
    elif values.dtype.kind in "mM":
        values = values.view(np.int64)
    if key.descending:  # of integers and bools their complement, which does not overflow
        values = -values if values.dtype.kind == "f" else ~values
    places = _sorted(values)
    if null is None or not null.any():
        return places
    behind = null[places]
    parts = (places[~behind], places[behind])
    return np.concatenate(parts if key.nulls_last else parts[::-1])


def _sorted(values: NDArray[Any]) -> Places:
    """Places of values as a stable `numpy.argsort` has them; of whole numbers of a narrow range
    they are found sooner."""
    if values.dtype.kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high < 2**63 and high - low < 2**40:
            return in_order(values.astype(np.int64, copy=False) - low, high - low + 1)
    return np.argsort(values, kind="stable")


def _place_of(cell: Any) -> tuple[str, Any, str]:
    """What cells of a dictionary are sorted by; those that are not equal differ in it."""
    text = text_of(cell)
    return ("", 0, text_of_scalar(cell)) if text is None else order_of(text)


class Cells:
    """The cells that a `Within` is made of: all of them, and those that are no null in the order of
    the person's rows."""

    layout: Layout

    def __init__(self, kept: Kept, e: Within):
        self._kept, self._e = kept, e
        self.layout = kept.layout(e, e.order)

    @cached_property
    def vector(self) -> Vector:
        """The cells of all rows of the frame."""
        assert self._e.x is not None
        return self._kept.value(self._e.x, self.layout.rows)

    @cached_property
    def floats(self) -> Floats:
        """The same as doubles."""
        found: Floats = as_floats(self.vector)
        return found

    @cached_property
    def valid(self) -> Bools | None:
        """Which rows count and have a value; None if all do."""
        null = self.vector.nulls()
        if null is None or not null.any():
            return None if self.layout.every else self.layout.codes >= 0
        return ~null if self.layout.every else (self.layout.codes >= 0) & ~null

    @property
    def chosen(self) -> Bools | slice:
        """The same as what arrays are indexed by."""
        return slice(None) if self.valid is None else self.valid

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many values each person has."""
        if self.valid is None:
            return self.layout.counts
        return count_each(self.layout.codes, self.layout.size, self.valid)

    def in_order(self) -> Places:
        """The rows that count and have a value: those of one person together, and in order."""
        order = self.layout.order
        return order if self.valid is None else order[self.valid[order]]

    def by_value(self, descending: bool = False) -> tuple[Places, NDArray[np.int64]]:
        """The same by the value of the cell, and how many rows each person has there."""
        assert self._e.x is not None
        order = self._kept.layout(self._e, (Key(self._e.x, descending), *self._e.order)).order
        return order if self.valid is None else order[self.valid[order]], self.counts

    def sums(self, of: Callable[[Places | slice, Codes], Floats]) -> Floats:
        """The sum for each person of what is made ``of`` some rows and their people, added one by
        one in the order of the rows: `numpy.add.at` adds as it goes. Some rows at a time stay in
        the processor's cache."""
        totals = np.zeros(self.layout.size)
        rows = self.in_order() if self._e.order else None
        for at in blocks(self.layout.rows if rows is None else len(rows)):
            if rows is not None:
                some: Places | slice = rows[at]
            else:
                some = at if self.valid is None else at.start + np.flatnonzero(self.valid[at])
            codes = widen(self.layout.codes[some])
            np.add.at(totals, codes, of(some, codes))
        return totals

    # From one value a person, or from places, to a value in each row -----------------------------------------------------

    def spread(self, values: Floats) -> PerPerson:
        """The number of each person in all of that person's rows; null where the person has no row
        that counts."""
        table = np.append(np.where(self.layout.counts > 0, values, np.nan), np.nan)
        return PerPerson(Vector("number", table), self.layout.whose)

    def picked(self, places: Places) -> Vector:
        """The cell at a place for each row; null where there is none."""
        v, none = self.vector, places < 0
        if not len(v.values):
            return v
        values = v.values.take(places, mode="wrap")
        null = None if v.null is None else v.null.take(places, mode="wrap") | none
        if v.categories is not None:
            values[none] = -1
        elif values.dtype.kind in "mM":
            values.view(np.int64)[none] = NAT
        elif values.dtype.kind == "f":
            values[none] = np.nan
        elif null is None and none.any():
            null = none
        return Vector(v.kind, values, null, v.categories)

    def picked_for_all(self, places: Places) -> PerPerson:
        """The cell at one place a person, in all of that person's rows."""
        return PerPerson(self.picked(np.append(places, NEVER)), self.layout.whose)

    def moved(self, pairs: Iterable[tuple[Places, Places]], stay: Bools | None = None) -> Vector:
        """The cells of other rows in some, by pairs of where to and of which row; in those that
        ``stay`` their own, else null."""
        v, n = self.vector, self.layout.rows
        values, null = np.zeros(n, dtype=v.values.dtype), None
        if v.categories is not None:
            values.fill(-1)
        elif values.dtype.kind in "mM":
            values.view(np.int64).fill(NAT)
        elif values.dtype.kind == "f":
            values.fill(np.nan)
        else:
            null = np.ones(n, dtype=bool)
        if v.null is not None:
            null = np.ones(n, dtype=bool)
        if stay is not None:
            np.copyto(values, v.values, where=stay)
            if null is not None:
                null[stay] = False
        for to, of in pairs:
            values[to] = v.values[of]
            if null is not None:
                null[to] = False if v.null is None else v.null[of]
        return Vector(v.kind, values, null, v.categories)

    def scattered(self, values: Any, rows: Places) -> Vector:
        """Numbers in some rows, and null in the others."""
        found = np.full(self.layout.rows, np.nan)
        found[rows] = values
        return Vector("number", found)


def most_first(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The people who have any, those who have most first."""
    some = np.flatnonzero(counts)
    most = int(counts.max(initial=0))
    return some[in_order(most - counts[some], most + 1)]


def tables(
    values: Floats, counts: NDArray[np.int64], blank: float
) -> Iterator[tuple[Places, Floats]]:
    """Values that are put together by person as tables with a row a person, of people of about as
    many values, with blanks behind; so that what is made of a row is made of one person's values.
    The people, and their table."""
    starts, people = np.cumsum(counts) - counts, most_first(counts)
    sizes = counts[people]
    while len(people):
        width = int(sizes[0])
        # No more than half of a table are blanks.
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


def running(operation: Any, values: Floats, layout: Layout) -> Floats:
    """The running result of each person in each row, one row after the other: of many people at
    once, place by place, and of the few who have more rows than they each by themselves. Rows that
    do not count have none."""
    found = np.empty(layout.rows) if layout.every else np.full(layout.rows, np.nan)
    everybody, order = most_first(layout.counts), layout.order
    for first in range(0, len(everybody), SIZES.people_strip):
        people = everybody[first : first + SIZES.people_strip]
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
