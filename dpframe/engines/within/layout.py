"""The rows of a frame put together by person and in order, and the cells of a column in that order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.columns import NAT, Vector, as_floats
from dpframe._cells.texts import order_of, text_of
from dpframe._expr import Expr, Key, Within
from dpframe.engines.people import Codes, coded, text_of_scalar

if TYPE_CHECKING:
    from dpframe.engines.within.kept import Kept

Places = NDArray[np.intp]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
NEVER = -1  # the place of no row


class Layout:
    """The rows of a frame that count, put together by person.

    ``codes`` says whose each row is, and -1 of a row that does not count; ``whose`` the same of all rows, whether or not they
    count: what a person has one value of they all see. With ``by`` the rows of one person and one value are put together.
    """

    rows: int
    whose: NDArray[Any]
    size: int
    codes: NDArray[Any]

    def __init__(
        self, kept: Kept, whose: Codes, asked: Bools | None, by: tuple[Expr, ...], order: tuple[Key, ...]
    ):
        self.rows = len(whose)
        self.whose, self.size = whose, int(whose.max(initial=-1)) + 1
        for expr in by:
            cells = coded(kept.value(expr, self.rows))
            wide = self.whose * (cells.size + 1) + cells.codes + 1
            inner, uniques = pd.factorize(wide)
            self.whose, self.size = np.where(self.whose < 0, NEVER, inner), len(uniques)
        self.codes = self.whose if asked is None else np.where(asked, self.whose, NEVER)
        self._keys = [(kept.value(key.expr, self.rows), key) for key in order]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many rows of each person count."""
        return np.bincount(self.codes[self.codes >= 0], minlength=self.size)

    @cached_property
    def order(self) -> Places:
        """The rows that count: those of one person together, sorted by the keys, and else in the order of the frame."""
        codes, rows = self.codes, None
        if self._keys or (self.rows and int(codes.min()) < 0):
            rows = np.flatnonzero(codes >= 0)
            for vector, key in reversed(self._keys):
                rows = rows[sorted_places(vector, key, rows)]
            codes = codes[rows]
        bits = max(len(codes) - 1, 1).bit_length()
        if bits + max(self.size - 1, 1).bit_length() > 62:
            seats = np.argsort(codes, kind="stable")
        else:  # with its place in the low bits a code sorts much faster than by argsort, and the order stays what it was
            seats = codes << bits
            seats |= np.arange(len(codes))
            seats.sort()
            seats &= (1 << bits) - 1
        return np.asarray(seats if rows is None else rows[seats])

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the rows of each person begin in that order."""
        return np.asarray(np.cumsum(self.counts) - self.counts)

    @cached_property
    def people(self) -> NDArray[np.int64]:
        """Whose each row in that order is."""
        return np.repeat(np.arange(self.size), self.counts)

    @cached_property
    def begins(self) -> NDArray[np.int64]:
        """Where the rows of the same person begin, for each row in that order."""
        return np.repeat(self.starts, self.counts)

    def end(self, last: bool) -> Places:
        """The first or the last row of each person, and where there is none -1."""
        some = np.flatnonzero(self.counts)
        places = np.full(self.size, NEVER, dtype=np.intp)
        if self._keys:
            at = self.starts + self.counts - 1 if last else self.starts
            places[some] = self.order[at[some]]
            return places
        rows = np.flatnonzero(self.codes >= 0)
        if last:
            np.maximum.at(places, self.codes[rows], rows)
            return places
        places[some] = self.rows
        np.minimum.at(places, self.codes[rows], rows)
        return places

    @cached_property
    def within(self) -> NDArray[np.int64]:
        """How many rows of the same person come before each row in that order."""
        return np.arange(len(self.order)) - self.begins


def sorted_places(vector: Vector, key: Key, rows: Places) -> Places:
    """The places of some rows in the order of their cells, as `numpy.argsort` has them; equal cells in the order they had."""
    cells = Vector(
        vector.kind,
        vector.values[rows],
        None if vector.null is None else vector.null[rows],
        vector.categories,
    )
    values, null = cells.values, cells.nulls()
    if cells.categories is not None:  # texts by their characters, and other cells by their value
        known = [_place_of(c) for c in cells.categories]
        ranks = {place: i for i, place in enumerate(sorted(set(known)))}
        values = np.array([*(ranks[place] for place in known), 0], dtype=np.int64).take(values, mode="wrap")
    elif values.dtype.kind in "mM":
        values = values.view(np.int64)
    if key.descending:  # of integers and bools their complement, which does not overflow
        values = -values if values.dtype.kind == "f" else ~values
    places = np.argsort(values, kind="stable")
    if null is None or not null.any():
        return np.asarray(places)
    behind = null[places]
    parts = (places[~behind], places[behind])
    return np.concatenate(parts if key.nulls_last else parts[::-1])


def _place_of(cell: Any) -> tuple[str, Any, str]:
    """What cells of a dictionary are sorted by; those that are not equal differ in it."""
    text = text_of(cell)
    return ("", 0, text_of_scalar(cell)) if text is None else order_of(text)


class Cells:
    """The cells that a `Within` is made of: all of them, and those that are no null in the order of the person's rows."""

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
    def valid(self) -> Bools:
        """Which rows count and have a value."""
        null = self.vector.nulls()
        some = self.layout.codes >= 0
        return some if null is None else some & ~null

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many values each person has."""
        return np.bincount(self.layout.codes[self.valid], minlength=self.layout.size)

    def in_order(self) -> Places:
        """The rows that count and have a value: those of one person together, and in order."""
        order = self.layout.order
        return order if self.valid.all() else order[self.valid[order]]

    def by_value(self, descending: bool = False) -> tuple[Places, NDArray[np.int64]]:
        """The same by the value of the cell, and how many rows each person has there."""
        assert self._e.x is not None
        layout = self._kept.layout(self._e, (Key(self._e.x, descending), *self._e.order))
        order = layout.order
        return order[self.valid[order]], self.counts

    def sums(self, weights: Floats, rows: Places | Bools) -> Floats:
        """The sum of each person, added one by one in the order of the rows: `numpy.bincount` adds as it goes."""
        totals = np.bincount(self.layout.codes[rows], weights=weights, minlength=self.layout.size)
        return totals.astype(np.float64, copy=False)  # of no rows numpy has integers

    # From one value a person, or from places, to a value in each row -----------------------------------------------------

    def spread(self, values: Floats) -> Vector:
        """The number of each person in all of that person's rows; null where the person has no row that counts."""
        table = np.append(np.where(self.layout.counts > 0, values, np.nan), np.nan)
        return Vector("number", table.take(self.layout.whose, mode="wrap"))

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

    def picked_for_all(self, places: Places) -> Vector:
        """The cell at one place a person, in all of that person's rows."""
        return self.picked(np.append(places, NEVER).take(self.layout.whose, mode="wrap"))

    def scattered(self, values: Any, rows: Places) -> Vector:
        """Numbers in some rows, and null in the others."""
        found = np.full(self.layout.rows, np.nan)
        found[rows] = values
        return Vector("number", found)


def tables(
    values: Floats, counts: NDArray[np.int64], blank: float, down: bool = False
) -> Iterator[tuple[Places, Floats, Places]]:
    """Values that are put together by person as tables with a row a person, or where they go ``down`` a column, for people of
    about as many values; so that what is made of a row is made of one person's values.

    The people, their table, and the place of each value, -1 of a blank.
    """
    starts, padded = np.cumsum(counts) - counts, np.append(values, blank)
    widths = np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64)
    widths[counts == 0] = -1
    for width in np.flatnonzero(np.bincount(widths[counts > 0])).tolist():
        some = np.flatnonzero(widths == width)
        seats, first, rows = np.arange(2**width), starts[some, None], counts[some, None]
        if down:
            seats, first, rows = seats[:, None], first.T, rows.T
        at = np.where(seats < rows, first + seats, NEVER)
        yield some, padded.take(at, mode="wrap"), at
