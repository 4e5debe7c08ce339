"""The cells of one `Within`, and what is computed from them: one value of each person, or a value
of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.columns import NAT, Vector, as_floats
from dpframe._expr import WITHIN, Key, Within
from dpframe._types import Array
from dpframe.engines.people import Codes, count_each, encode_values, widen
from dpframe.engines.within.rows import (
    NO_ROW,
    Bools,
    Floats,
    Places,
    RowsByPerson,
    accumulate,
    pad_tables,
    split_rows,
)

if TYPE_CHECKING:
    from dpframe.engines.within.cache import WithinCache


class PerPerson:
    """One value of each person, in all of that person's rows.

    The values are put into rows only when some of the rows are read. ``table`` has the value of
    each person, and last a value for rows of nobody. ``whose`` is the number of each row's person,
    -1 for nobody.
    """

    __slots__ = ("table", "whose")

    def __init__(self, table: Vector, whose: Codes):
        self.table: Vector = table
        self.whose: Codes = whose

    def __len__(self) -> int:
        return len(self.whose)

    @property
    def nbytes(self) -> int:
        """The bytes of memory that it takes."""
        return self.table.nbytes + self.whose.nbytes

    def rows(self, rows: slice) -> Vector:
        """Return the value of each row's person, in a slice of the rows."""
        v, whose = self.table, widen(self.whose[rows])
        null = None if v.null is None else v.null.take(whose, mode="wrap")
        return Vector(v.kind, v.values.take(whose, mode="wrap"), null, v.categories)


class Cells:
    """The cells that a `Within` is made of, and a method for each entry of `WITHIN`.

    A method that computes one value of each person returns `PerPerson`. One that computes a value
    of each row returns a `Vector`.
    """

    def __init__(self, cache: WithinCache, e: Within):
        self._cache, self._e = cache, e
        self.layout: RowsByPerson = cache.arrange(e, e.order)

    @cached_property
    def vector(self) -> Vector:
        """The cells of all rows of the frame."""
        assert self._e.x is not None
        return self._cache.evaluate(self._e.x, self.layout.rows)

    @cached_property
    def floats(self) -> Floats:
        """The cells of all rows as doubles."""
        found: Floats = as_floats(self.vector)
        return found

    @cached_property
    def valid(self) -> Bools | None:
        """The rows that count and have a value; None if all do."""
        null = self.vector.nulls()
        if null is None or not null.any():
            return None if self.layout.all_count else self.layout.codes >= 0
        return ~null if self.layout.all_count else (self.layout.codes >= 0) & ~null

    @property
    def chosen(self) -> Bools | slice:
        """An index of the rows that count and have a value."""
        return slice(None) if self.valid is None else self.valid

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The number of values of each person."""
        if self.valid is None:
            return self.layout.counts
        return count_each(self.layout.codes, self.layout.size, self.valid)

    def _sort_rows(self) -> Places:
        """Return the rows that count and have a value, by person and in the asked order."""
        order = self.layout.order
        return order if self.valid is None else order[self.valid[order]]

    def _sort_rows_by_value(self, descending: bool) -> Places:
        """Return the rows that count and have a value, sorted by person, then by value."""
        assert self._e.x is not None
        order = self._cache.arrange(self._e, (Key(self._e.x, descending), *self._e.order)).order
        return order if self.valid is None else order[self.valid[order]]

    def _add(self, values: Floats | Bools, about: Floats | None = None) -> Floats:
        """Return the sum of each person's values, or of their squared distances from ``about``.

        ``values`` has a number for each row, and ``about`` one for each person. Only rows that
        count and have a value are added, one after the other, in the order that the question asks.
        Sums of doubles depend on that order.
        """
        totals = np.zeros(self.layout.size)
        rows = self._sort_rows() if self._e.order else None
        for at in split_rows(self.layout.rows if rows is None else len(rows)):
            if rows is not None:
                some: Places | slice = rows[at]
            else:
                some = at if self.valid is None else at.start + np.flatnonzero(self.valid[at])
            codes = widen(self.layout.codes[some])
            own = values[some].astype(np.float64, copy=False)
            if about is not None:
                own = own - about.take(codes)
                own *= own
            np.add.at(totals, codes, own)
        return totals

    # From one value a person, or from places, to a value in each row -----------------------------

    def _spread(self, values: Floats) -> PerPerson:
        """Return one number of each person in all of that person's rows.

        ``values`` has the number of each person. It is null for a person without rows that count.
        """
        table = np.append(np.where(self.layout.counts > 0, values, np.nan), np.nan)
        return PerPerson(Vector("number", table), self.layout.whose)

    def _pick(self, places: Places) -> Vector:
        """Return the cells of some rows, null where a place is -1."""
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

    def _pick_for_people(self, places: Places) -> PerPerson:
        """Return one cell of each person, in all of that person's rows.

        ``places`` has the row of the cell for each person, -1 for null.
        """
        return PerPerson(self._pick(np.append(places, NO_ROW)), self.layout.whose)

    def _move(self, pairs: Iterable[tuple[Places, Places]], stay: Bools | None = None) -> Vector:
        """Return a column whose cells were moved between rows, null in rows that got none.

        ``pairs`` has the rows to move to and the rows to take from. Rows that ``stay`` have their
        own cells.
        """
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
        for to, source in pairs:
            values[to] = v.values[source]
            if null is not None:
                null[to] = False if v.null is None else v.null[source]
        return Vector(v.kind, values, null, v.categories)

    def _scatter(self, values: Array, rows: Places) -> Vector:
        """Return a column with these numbers in some rows, null in the others."""
        found = np.full(self.layout.rows, np.nan)
        found[rows] = values
        return Vector("number", found)

    # One value of each person --------------------------------------------------------------------

    def compute_sum(self) -> PerPerson:
        """Return the sum of each person's values."""
        return self._spread(self._add(self.floats))

    def compute_mean(self) -> PerPerson:
        """Return the mean of each person's values."""
        return self._spread(self._add(self.floats) / np.where(self.counts > 0, self.counts, np.nan))

    def _variances(self, ddof: int) -> Floats:
        """Return the variance of each person's values about their mean, NaN for too few values.

        ``ddof`` is subtracted from the number of values that is divided by.
        """
        counts = self.counts
        means = self._add(self.floats) / np.where(counts > 0, counts, np.nan)
        return self._add(self.floats, means) / np.where(counts > ddof, counts - ddof, np.nan)

    def compute_variance(self, ddof: int) -> PerPerson:
        """Return the variance of each person's values; ``ddof`` is subtracted from their number."""
        return self._spread(self._variances(ddof))

    def compute_deviation(self, ddof: int) -> PerPerson:
        """Return the standard deviation of each person's values.

        ``ddof`` is subtracted from the number of values in the variance.
        """
        return self._spread(np.sqrt(self._variances(ddof)))

    def compute_standard_error(self, ddof: int) -> PerPerson:
        """Return the standard error of the mean of each person's values.

        ``ddof`` is subtracted from the number of values in the variance.
        """
        return self._spread(np.sqrt(self._variances(ddof)) / np.sqrt(self.counts))

    def compute_product(self) -> PerPerson:
        """Return the product of each person's values, multiplied in the order of the rows."""
        layout = self.layout
        values = self.floats if self.valid is None else np.where(self.valid, self.floats, 1.0)
        through = accumulate(np.multiply, values, layout)
        found, some = np.full(layout.size, np.nan), np.flatnonzero(layout.counts)
        found[some] = through[layout.order[(layout.starts + layout.counts - 1)[some]]]
        return self._spread(found)

    def compute_median(self) -> PerPerson:
        """Return the middle of each person's values."""
        return self.compute_quantile(0.5)

    def compute_quantile(self, level: float) -> PerPerson:
        """Return a quantile of each person's values, interpolated as pandas does by default.

        ``level`` is between 0 and 1; 0.5 is the middle.
        """
        found = np.full(self.layout.size, np.nan)
        for some, table in pad_tables(self.floats[self._sort_rows()], self.counts, np.inf):
            table.sort(axis=1)
            counts, rows = self.counts[some], np.arange(len(some))
            place = float(level) * (counts - 1)
            low = np.floor(place).astype(np.int64)
            part, below = place - low, table[rows, low]
            above = table[rows, np.minimum(low + 1, counts - 1)]
            found[some] = np.where(part > 0, below + (above - below) * part, below)
        return self._spread(found + 0.0)  # equal zeros of either sign may stand at a place

    def find_least(self) -> PerPerson:
        """Return the least of each person's values."""
        return self._find_extreme(np.minimum)

    def find_greatest(self) -> PerPerson:
        """Return the greatest of each person's values."""
        return self._find_extreme(np.maximum)

    def _find_extreme(self, operation: np.ufunc) -> PerPerson:
        """Return the least or the greatest of each person's values, in the dtype of the cells.

        ``operation`` is `numpy.minimum` or `numpy.maximum`.
        """
        values = self.vector.values
        cells = values.view(np.int64) if values.dtype.kind in "mM" else values
        neutral = _find_bound(cells.dtype, upper=operation is np.minimum)
        found = np.full(self.layout.size + 1, neutral, dtype=cells.dtype)
        operation.at(found, widen(self.layout.codes[self.chosen]), cells[self.chosen])
        null, mask = np.append(self.counts == 0, True), None
        if values.dtype.kind in "mM":
            found[null] = NAT
        elif values.dtype.kind == "f":
            found += found.dtype.type(0)  # numpy takes the first of zeros of both signs
            found[null] = np.nan
        else:
            mask = null
        table = Vector(self.vector.kind, found.view(values.dtype), mask)
        return PerPerson(table, self.layout.whose)

    def check_any(self) -> PerPerson:
        """Return whether any of a person's values is true."""
        return self._spread_truth(self._add(self.floats != 0) > 0)

    def check_all(self) -> PerPerson:
        """Return whether all of a person's values are true. Nulls do not count."""
        return self._spread_truth(self._add(self.floats != 0) == self.counts)

    def _spread_truth(self, truth: Bools) -> PerPerson:
        """Return the truth value of each person in all of that person's rows, null without rows
        that count."""
        null = np.append(self.layout.counts == 0, True)
        return PerPerson(Vector("bool", np.append(truth, False), null), self.layout.whose)

    def count_rows(self) -> PerPerson:
        """Return the number of rows of each person."""
        return self._spread(self.layout.counts.astype(np.float64))

    def count_values(self) -> PerPerson:
        """Return the number of values of each person that are not null."""
        return self._spread(self.counts.astype(np.float64))

    def count_distinct(self) -> PerPerson:
        """Return how many distinct values each person has, in all of that person's rows.

        A small table of people and values marks which pairs occur. If it would be large, the pairs
        are sorted instead, and each new one counts.
        """
        cells, people = encode_values(self.vector), widen(self.layout.codes[self.chosen])
        size, values = max(cells.size, 1), cells.codes[self.chosen]
        if self.layout.size * size <= 2 * len(people):  # a table of people and values is small
            table = np.zeros((size, self.layout.size), dtype=bool)
            for some in split_rows(len(people)):
                table[values[some], people[some]] = True
            return self._spread(table.sum(axis=0).astype(np.float64))
        wide = people * size
        wide += values
        wide.sort()
        new = np.ones(len(wide), dtype=bool)
        np.not_equal(wide[1:], wide[:-1], out=new[1:])
        found = np.bincount(wide[new] // size, minlength=self.layout.size)
        return self._spread(found.astype(np.float64))

    def take_first(self) -> PerPerson:
        """Return the first cell of each person that is not null."""
        return self._pick_for_people(self.layout.find_end(False, self.valid))

    def take_last(self) -> PerPerson:
        """Return the last cell of each person that is not null."""
        return self._pick_for_people(self.layout.find_end(True, self.valid))

    def take_nth(self, n: int) -> PerPerson:
        """Return the cell of each person's row ``n``, counted from 0.

        It is null for a person without such a row. A negative place counts from the end.
        """
        layout = self.layout
        at = np.full(layout.size, n) if n >= 0 else layout.counts + n
        places, inside = (
            np.full(layout.size, NO_ROW, dtype=np.intp),
            (at >= 0) & (at < layout.counts),
        )
        places[inside] = layout.order[(layout.starts + at)[inside]]
        return self._pick_for_people(places)

    # A value of each row -------------------------------------------------------------------------

    def shift_cells(self, periods: int) -> Vector:
        """Return in each row the cell of the person's row that is ``periods`` rows before it.

        It is null where the person has no such row. A negative number looks at rows after it.
        """
        layout = self.layout
        n = len(layout.order)
        to, source = slice(periods, n), slice(0, max(n - periods, 0))
        if periods < 0:
            to, source = slice(0, n + periods), slice(-periods, n)

        def pairs() -> Iterator[tuple[Places, Places]]:
            """Yield the rows to move cells to and the rows to take them from, block by block."""
            rows, before = layout.order[to], layout.order[source]
            mine, theirs = layout.people[to], layout.people[source]
            for at in split_rows(max(n - abs(periods), 0)):
                same = mine[at] == theirs[at]
                some = np.flatnonzero(same)
                yield rows[at][some], before[at][some]

        return self._move(pairs())

    def fill_forward(self) -> Vector:
        """Return the column with each null filled with the person's last value before it."""
        return self._fill(True)

    def fill_backward(self) -> Vector:
        """Return the column with each null filled with the person's next value after it."""
        return self._fill(False)

    def _fill(self, forward: bool) -> Vector:
        """Return the column with each null filled with the person's nearest value before it, or
        after it if not ``forward``."""
        layout = self.layout
        if self.valid is None:
            return self.vector  # there is no null to fill
        n, valid, nearest = len(layout.order), self.valid, NO_ROW

        def pairs() -> Iterator[tuple[Places, Places]]:
            """Yield the rows with a null and the rows that fill them, block by block."""
            nonlocal nearest
            pieces = list(split_rows(n))
            for piece in pieces if forward else reversed(pieces):
                rows = layout.order[piece][:: 1 if forward else -1]
                full = valid.take(rows)
                gaps = np.flatnonzero(~full)
                # The k-th entry is the k-th row with a value. The entry at 0 is the last one of
                # the piece before.
                known = np.append(nearest, rows[np.flatnonzero(full)])
                to, source = rows[gaps], known[np.cumsum(full)[gaps]]
                nearest = known[-1]
                inside = (source >= 0) & (layout.codes[source] == layout.codes[to])
                yield to[inside], source[inside]

        return self._move(pairs(), stay=valid)

    def accumulate_sum(self) -> Vector:
        """Return the sum of the person's values up to each row."""
        return self._accumulate(np.add, 0.0)

    def accumulate_product(self) -> Vector:
        """Return the product of the person's values up to each row."""
        return self._accumulate(np.multiply, 1.0)

    def accumulate_least(self) -> Vector:
        """Return the least of the person's values up to each row."""
        return self._accumulate(np.minimum, np.inf)

    def accumulate_greatest(self) -> Vector:
        """Return the greatest of the person's values up to each row."""
        return self._accumulate(np.maximum, -np.inf)

    def _accumulate(self, operation: np.ufunc, neutral: float) -> Vector:
        """Return in each row what an operation makes of the person's values up to it.

        ``operation`` is a function such as `numpy.add`. A null stays null, and the rows after it go
        on without it: ``neutral`` stands in its place.
        """
        values = self.floats if self.valid is None else np.where(self.valid, self.floats, neutral)
        found = accumulate(operation, values, self.layout)
        if self.valid is not None:
            found[~self.valid] = np.nan
        if operation in (np.minimum, np.maximum):
            found += 0.0  # numpy takes either of zeros of both signs
        return Vector("number", found)

    def count_rows_before(self, ascending: bool) -> Vector:
        """Return how many of the person's rows come before each row.

        If not ``ascending``, it is how many come after it.
        """
        layout = self.layout
        after = np.repeat(layout.counts, layout.counts) - 1 - layout.rows_before
        return self._scatter(layout.rows_before if ascending else after, layout.order)

    def rank_cells(self, method: str, ascending: bool, share: bool) -> Vector:
        """Return the rank of each value among the person's own values, from 1 on.

        ``method`` says which rank equal values have, as in pandas. With ``share`` the rank is
        divided by the last one.
        """
        rows, counts = self._sort_rows_by_value(not ascending), self.counts
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        seats = np.arange(len(rows))
        values = self.vector.values[rows]
        new = np.ones(len(rows), dtype=bool)
        new[1:] = (values[1:] != values[:-1]) | (starts[1:] != starts[:-1])
        runs = np.cumsum(new) - 1  # equal values of one person are one run
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(rows)) - 1
        place: dict[str, Callable[[], Any]] = {
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
                ends = starts + np.repeat(counts, counts) - 1
                most = found[np.minimum(ends, max(len(rows) - 1, 0))]
            found = found / most
        return self._scatter(found, rows)

    def mark_duplicates(self, keep: str | bool) -> Vector:
        """Return True in all rows of a person but the one to ``keep``, "first" or "last".

        It is True in rows that do not count. With ``keep=False`` only a row without others of the
        person is False.
        """
        layout = self.layout
        again = np.ones(layout.rows, dtype=bool)
        places = layout.find_end(keep == "last")
        again[places[layout.counts == 1 if keep is False else places >= 0]] = False
        return Vector("bool", again)


def _find_bound(dtype: np.dtype[Any], upper: bool) -> bool | int | float:
    """Return the greatest value that a dtype can hold if ``upper``, else the least one."""
    if dtype.kind == "b":
        return upper
    if dtype.kind == "f":
        return np.inf if upper else -np.inf
    return np.iinfo(dtype).max if upper else np.iinfo(dtype).min


assert all(hasattr(Cells, how.compute) for how in WITHIN.values())
