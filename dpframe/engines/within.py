"""What the rows of one person make of each other, on numpy: every `Within` of one frame, each worked out once and kept.

*Formal guarantee.* The value in a row is a function of the rows of its person, in the order that they have among each other, to
the last bit; no cell makes this raise. Rows are put together by person, and what is computed from doubles is added in the order
of the person's own rows. pandas' own group-by is no such function: it adds in another order where the labels of all rows happen
to be sorted, so that a neighbour's row can change somebody's last digit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.columns import NAT, Vector, as_floats
from dpframe._cells.texts import order_of, text_of
from dpframe._expr import WITHIN, Expr, Key, Within
from dpframe.engines.expressions import ColumnOf, evaluate, predicate
from dpframe.engines.people import Codes, coded, text_of_scalar

Places = NDArray[np.intp]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_NEVER = -1  # the place of no row


class Kept:
    """The values of `Within` on the rows of one frame, kept as long as there is room, the oldest first to go."""

    def __init__(
        self, column: ColumnOf, whose: Callable[[Any], Codes], room: Callable[[], float] = lambda: np.inf
    ):
        self._column, self._whose, self._room = column, whose, room
        self._vectors: OrderedDict[Within, Vector] = OrderedDict()
        self._layouts: OrderedDict[Any, Layout] = OrderedDict()

    def vector(self, e: Within) -> Vector:
        """The value in each row of the frame."""
        known = self._vectors.get(e)
        if known is not None:
            self._vectors.move_to_end(e)
            return known
        with np.errstate(all="ignore"):  # no value may raise or warn
            vector = MAKE[e.how](Cells(self, e), e)
        self._vectors[e] = vector
        while len(self._vectors) > 1 and sum(map(_size, self._vectors.values())) > self._room():
            self._vectors.popitem(last=False)
        return vector

    def value(self, expr: Expr, rows: int) -> Vector:
        """The value of another expression in each row."""
        return evaluate(expr, self._column, slice(0, rows))

    def layout(self, e: Within, order: tuple[Key, ...]) -> Layout:
        """The rows that count, by person and in order; the last few are kept, since verbs come in company."""
        known = (e.people, e.where, e.by, order)
        layout = self._layouts.pop(known, None)
        if layout is None:
            whose = self._whose(e.people)
            asked = None if e.where is None else predicate(e.where, self._column, slice(0, len(whose)))
            layout = Layout(self, whose, asked, e.by, order)
        self._layouts[known] = layout
        while len(self._layouts) > 2:
            self._layouts.popitem(last=False)
        return layout

    def clear(self) -> None:
        """Lets go of everything."""
        self._vectors.clear()
        self._layouts.clear()


def _size(vector: Vector) -> int:
    return vector.values.nbytes + (0 if vector.null is None else vector.null.nbytes)


class Layout:
    """The rows of a frame that count, put together by person.

    ``codes`` says whose each row is, and -1 of a row that does not count; ``whose`` the same of all rows, whether or not they
    count: what a person has one value of they all see. With ``by`` the rows of one person and one value are put together.
    """

    def __init__(
        self, kept: Kept, whose: Codes, asked: Bools | None, by: tuple[Expr, ...], order: tuple[Key, ...]
    ):
        self.rows = len(whose)
        self.whose, self.size = whose, int(whose.max(initial=-1)) + 1
        for expr in by:
            cells = coded(kept.value(expr, self.rows))
            wide = self.whose * (cells.size + 1) + cells.codes + 1
            inner, uniques = pd.factorize(wide)
            self.whose, self.size = np.where(self.whose < 0, _NEVER, inner), len(uniques)
        self.codes = self.whose if asked is None else np.where(asked, self.whose, _NEVER)
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
        places = np.full(self.size, _NEVER, dtype=np.intp)
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
    elif values.dtype.kind == "M":
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
        return np.bincount(self.layout.codes[rows], weights=weights, minlength=self.layout.size)

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
        elif values.dtype.kind == "M":
            values.view(np.int64)[none] = NAT
        elif values.dtype.kind == "f":
            values[none] = np.nan
        elif null is None and none.any():
            null = none
        return Vector(v.kind, values, null, v.categories)

    def picked_for_all(self, places: Places) -> Vector:
        """The cell at one place a person, in all of that person's rows."""
        return self.picked(np.append(places, _NEVER).take(self.layout.whose, mode="wrap"))

    def scattered(self, values: Any, rows: Places) -> Vector:
        """Numbers in some rows, and null in the others."""
        found = np.full(self.layout.rows, np.nan)
        found[rows] = values
        return Vector("number", found)


# One value of a person ----------------------------------------------------------------------------------------------------


def _sum(c: Cells, e: Within) -> Vector:
    rows = c.in_order() if e.order else c.valid
    return c.spread(c.sums(c.floats[rows], rows))


def _moments(c: Cells, e: Within, ddof: int) -> tuple[Floats, Floats]:
    """The mean of each person, and the variance about it."""
    rows = c.in_order() if e.order else c.valid
    values = c.floats[rows]
    mean = c.sums(values, rows) / np.where(c.counts > 0, c.counts, np.nan)
    off = values - mean.take(c.layout.codes[rows])
    return mean, c.sums(off * off, rows) / np.where(c.counts > ddof, c.counts - ddof, np.nan)


def _mean(c: Cells, e: Within) -> Vector:
    rows = c.in_order() if e.order else c.valid
    return c.spread(c.sums(c.floats[rows], rows) / np.where(c.counts > 0, c.counts, np.nan))


def _var(c: Cells, e: Within) -> Vector:
    return c.spread(_moments(c, e, e.args[0])[1])


def _std(c: Cells, e: Within) -> Vector:
    return c.spread(np.sqrt(_moments(c, e, e.args[0])[1]))


def _sem(c: Cells, e: Within) -> Vector:
    return c.spread(np.sqrt(_moments(c, e, e.args[0])[1]) / np.sqrt(c.counts))


def _extreme(c: Cells, e: Within) -> Vector:
    """The least or greatest value, in the dtype of the cells."""
    rows, pick = c.in_order(), {"min": np.minimum, "max": np.maximum}[e.how]
    values = c.vector.values
    cells = values.view(np.int64) if values.dtype.kind == "M" else values
    some = np.flatnonzero(c.counts)
    starts = (np.cumsum(c.counts) - c.counts)[some]
    per = np.zeros(c.layout.size + 1, dtype=cells.dtype)
    null = np.ones(c.layout.size + 1, dtype=bool)
    if len(rows):
        per[some], null[some] = pick.reduceat(cells[rows], starts), False
    found, none = per.take(c.layout.whose, mode="wrap"), null.take(c.layout.whose, mode="wrap")
    if values.dtype.kind == "M":
        return Vector("time", np.where(none, NAT, found).view(values.dtype))
    if values.dtype.kind == "f":
        return Vector("number", np.where(none, found.dtype.type(np.nan), found))
    return Vector(c.vector.kind, found, none if none.any() else None)


def _quantile(c: Cells, e: Within) -> Vector:
    """The value at a place between two others, as pandas has it by default."""
    level = 0.5 if e.how == "median" else float(e.args[0])
    found = np.full(c.layout.size, np.nan)
    for some, table, _ in _tables(c.floats[c.in_order()], c.counts, np.inf):
        table.sort(axis=1)
        counts, rows = c.counts[some], np.arange(len(some))
        place = level * (counts - 1)
        low = np.floor(place).astype(np.int64)
        part, below = place - low, table[rows, low]
        above = table[rows, np.minimum(low + 1, counts - 1)]
        found[some] = np.where(part > 0, below + (above - below) * part, below)
    return c.spread(found)


def _truth(c: Cells, e: Within) -> Vector:
    """Whether any, or each, of the values is true; nulls count for nothing, and of no values each is."""
    true = c.sums((c.floats[c.valid] != 0).astype(np.float64), c.valid)
    found = c.spread(true > 0 if e.how == "any" else true == c.counts)
    return Vector("bool", found.values == 1, found.nulls())


def _size_of(c: Cells, e: Within) -> Vector:
    return c.spread(c.layout.counts.astype(np.float64))


def _count(c: Cells, e: Within) -> Vector:
    return c.spread(c.counts.astype(np.float64))


def _nunique(c: Cells, e: Within) -> Vector:
    cells = coded(c.vector)
    wide = c.layout.codes[c.valid] * max(cells.size, 1) + cells.codes[c.valid]
    wide.sort()
    new = np.ones(len(wide), dtype=bool)
    np.not_equal(wide[1:], wide[:-1], out=new[1:])
    people = wide[new] // max(cells.size, 1)
    return c.spread(np.bincount(people, minlength=c.layout.size).astype(np.float64))


def _end(c: Cells, e: Within) -> Vector:
    """The first or the last cell that is no null."""
    rows, places = c.in_order(), np.full(c.layout.size, _NEVER, dtype=np.intp)
    some = np.flatnonzero(c.counts)
    ends = np.cumsum(c.counts)
    at = ends - c.counts if e.how == "first" else ends - 1
    places[some] = rows[at[some]]
    return c.picked_for_all(places)


# A value of each row ------------------------------------------------------------------------------------------------------


def _shift(c: Cells, e: Within) -> Vector:
    """The cell so many rows before."""
    layout, (steps,) = c.layout, e.args
    n = len(layout.order)
    to, of = (
        (slice(steps, n), slice(0, max(n - steps, 0)))
        if steps >= 0
        else (slice(0, n + steps), slice(-steps, n))
    )
    places = np.full(layout.rows, _NEVER, dtype=np.intp)
    if abs(steps) < n:
        same = layout.people[to] == layout.people[of]
        places[layout.order[to]] = np.where(same, layout.order[of], _NEVER)
    return c.picked(places)


def _filled(c: Cells, e: Within) -> Vector:
    """The last cell that is no null up to a row, or the next one from it on."""
    layout = c.layout
    valid, seats = c.valid[layout.order], np.arange(len(layout.order))
    if e.how == "ffill":
        at = np.maximum.accumulate(np.where(valid, seats, _NEVER))
        inside = at >= layout.begins
    else:
        last = len(seats)
        at = np.minimum.accumulate(np.where(valid, seats, last)[::-1])[::-1]
        inside = at < layout.begins + np.repeat(layout.counts, layout.counts)
    places = np.full(layout.rows, _NEVER, dtype=np.intp)
    places[layout.order[inside]] = layout.order[at[inside]]
    return c.picked(places)


def _cumulated(c: Cells, e: Within) -> Vector:
    """The values up to each row put together; a null stays one, and what is put together goes on after it."""
    operation, blank = _ACCUMULATE[e.how]
    layout = c.layout
    values = np.where(c.valid, c.floats, blank)[layout.order]
    found = _accumulated(operation, values, layout)
    found[~c.valid[layout.order]] = np.nan
    return c.scattered(found, layout.order)


def _product(c: Cells, e: Within) -> Vector:
    layout = c.layout
    through = _accumulated(np.multiply, np.where(c.valid, c.floats, 1.0)[layout.order], layout)
    found, some = np.full(layout.size, np.nan), np.flatnonzero(layout.counts)
    found[some] = through[(layout.starts + layout.counts - 1)[some]]
    return c.spread(found)


_ACCUMULATE: dict[str, tuple[Any, float]] = {
    "cumsum": (np.add, 0.0),
    "cumprod": (np.multiply, 1.0),
    "cummin": (np.minimum, np.inf),
    "cummax": (np.maximum, -np.inf),
}


def _accumulated(operation: Any, values: Floats, layout: Layout) -> Floats:
    """The running result of each person, one row after the other."""
    found = np.empty(len(values))
    for _, table, at in _tables(values, layout.counts, 0.0):
        inside = at >= 0
        found[at[inside]] = operation.accumulate(table, axis=1)[inside]
    return found


def _tables(
    values: Floats, counts: NDArray[np.int64], blank: float
) -> Iterator[tuple[Places, Floats, Places]]:
    """Values that are put together by person as tables with a row a person, for people of about as many values; so that what is
    made of a row is made of one person's values. The people, their table, and the place of each value, -1 of a blank."""
    starts = np.cumsum(counts) - counts
    widths = np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64)
    widths[counts == 0] = -1
    for width in np.unique(widths[counts > 0]).tolist():
        some = np.flatnonzero(widths == width)
        seats = np.arange(2**width)
        at = starts[some, None] + seats
        at[seats >= counts[some, None]] = _NEVER
        table = values.take(at, mode="wrap")
        table[at < 0] = blank
        yield some, table, at


def _cumcount(c: Cells, e: Within) -> Vector:
    """How many rows come before each, or after it."""
    layout, (ascending,) = c.layout, e.args
    behind = np.repeat(layout.counts, layout.counts) - 1 - layout.within
    return c.scattered(layout.within if ascending else behind, layout.order)


def _rank(c: Cells, e: Within) -> Vector:
    """The rank of each value, of equal ones the mean rank, the least, the greatest, or one number for all of them."""
    method, ascending, share = e.args
    rows, counts = c.by_value(not ascending)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    seats = np.arange(len(rows))
    values = c.vector.values[rows]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (values[1:] != values[:-1]) | (starts[1:] != starts[:-1])
    runs = np.cumsum(new) - 1  # equal values of one person are one run
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(rows)) - 1
    place = {
        "min": lambda: first[runs] - starts + 1,
        "max": lambda: last[runs] - starts + 1,
        "average": lambda: (first[runs] + last[runs]) / 2 - starts + 1,
        "first": lambda: seats - starts + 1,
        "dense": lambda: runs - runs[starts] + 1,
    }
    found = place[method]().astype(np.float64)
    if share:
        most = np.repeat(counts, counts).astype(np.float64)
        if method == "dense":
            most = found[np.minimum(starts + np.repeat(counts, counts) - 1, max(len(rows) - 1, 0))]
        found = found / most
    return c.scattered(found, rows)


def _duplicated(c: Cells, e: Within) -> Vector:
    """Whether a row is not the one that stays of its person's; of rows that do not count it is."""
    layout, (keep,) = c.layout, e.args
    again = np.ones(layout.rows, dtype=bool)
    places = layout.end(keep == "last")
    again[places[layout.counts == 1 if keep is False else layout.counts > 0]] = False
    return Vector("bool", again)


MAKE: Mapping[str, Callable[[Cells, Within], Vector]] = {
    "sum": _sum,
    "mean": _mean,
    "var": _var,
    "std": _std,
    "sem": _sem,
    "prod": _product,
    "median": _quantile,
    "quantile": _quantile,
    "min": _extreme,
    "max": _extreme,
    "any": _truth,
    "all": _truth,
    "size": _size_of,
    "count": _count,
    "nunique": _nunique,
    "first": _end,
    "last": _end,
    "shift": _shift,
    "ffill": _filled,
    "bfill": _filled,
    "cumsum": _cumulated,
    "cumprod": _cumulated,
    "cummin": _cumulated,
    "cummax": _cumulated,
    "rank": _rank,
    "cumcount": _cumcount,
    "duplicated": _duplicated,
}
assert set(MAKE) == set(WITHIN)
