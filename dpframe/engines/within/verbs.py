"""What each verb makes of a person's cells: one value of the person, or a value of each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpframe._cells.columns import NAT, Vector
from dpframe._expr import WITHIN, Within
from dpframe.engines.people import coded
from dpframe.engines.within.layout import NEVER, Cells, Floats, Layout, tables

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
    cells = values.view(np.int64) if values.dtype.kind in "mM" else values
    some = np.flatnonzero(c.counts)
    starts = (np.cumsum(c.counts) - c.counts)[some]
    per = np.zeros(c.layout.size + 1, dtype=cells.dtype)
    null = np.ones(c.layout.size + 1, dtype=bool)
    if len(rows):
        per[some], null[some] = pick.reduceat(cells[rows], starts), False
    found, none = per.take(c.layout.whose, mode="wrap"), null.take(c.layout.whose, mode="wrap")
    if values.dtype.kind in "mM":
        return Vector(c.vector.kind, np.where(none, NAT, found).view(values.dtype))
    if values.dtype.kind == "f":  # of zeros of both signs numpy takes the one that it meets first
        return Vector("number", np.where(none, found.dtype.type(np.nan), found + found.dtype.type(0)))
    return Vector(c.vector.kind, found, none if none.any() else None)


def _quantile(c: Cells, e: Within) -> Vector:
    """The value at a place between two others, as pandas has it by default."""
    level = 0.5 if e.how == "median" else float(e.args[0])
    found = np.full(c.layout.size, np.nan)
    for some, table, _ in tables(c.floats[c.in_order()], c.counts, np.inf):
        table.sort(axis=1)
        counts, rows = c.counts[some], np.arange(len(some))
        place = level * (counts - 1)
        low = np.floor(place).astype(np.int64)
        part, below = place - low, table[rows, low]
        above = table[rows, np.minimum(low + 1, counts - 1)]
        found[some] = np.where(part > 0, below + (above - below) * part, below)
    return c.spread(found + 0.0)  # of equal zeros of both signs either may stand at a place


def _truth(c: Cells, e: Within) -> Vector:
    """Whether any, or each, of the values is true; nulls count for nothing, and of no values each is."""
    true = c.sums((c.floats[c.valid] != 0).astype(np.float64), c.valid)
    found = c.spread(np.asarray(true > 0 if e.how == "any" else true == c.counts, dtype=np.float64))
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
    rows, places = c.in_order(), np.full(c.layout.size, NEVER, dtype=np.intp)
    some = np.flatnonzero(c.counts)
    ends = np.cumsum(c.counts)
    at = ends - c.counts if e.how == "first" else ends - 1
    places[some] = rows[at[some]]
    return c.picked_for_all(places)


def _nth(c: Cells, e: Within) -> Vector:
    """The cell at a place, from the end where it is negative; null where a person has fewer rows."""
    layout, (place,) = c.layout, e.args
    at = np.full(layout.size, place) if place >= 0 else layout.counts + place
    places, inside = np.full(layout.size, NEVER, dtype=np.intp), (at >= 0) & (at < layout.counts)
    places[inside] = layout.order[(layout.starts + at)[inside]]
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
    places = np.full(layout.rows, NEVER, dtype=np.intp)
    if abs(steps) < n:
        same = layout.people[to] == layout.people[of]
        places[layout.order[to]] = np.where(same, layout.order[of], NEVER)
    return c.picked(places)


def _filled(c: Cells, e: Within) -> Vector:
    """The last cell that is no null up to a row, or the next one from it on."""
    layout = c.layout
    valid, seats = c.valid[layout.order], np.arange(len(layout.order))
    if e.how == "ffill":
        at = np.maximum.accumulate(np.where(valid, seats, NEVER))
        inside = at >= layout.begins
    else:
        last = len(seats)
        at = np.minimum.accumulate(np.where(valid, seats, last)[::-1])[::-1]
        inside = at < layout.begins + np.repeat(layout.counts, layout.counts)
    places = np.full(layout.rows, NEVER, dtype=np.intp)
    places[layout.order[inside]] = layout.order[at[inside]]
    return c.picked(places)


def _cumulated(c: Cells, e: Within) -> Vector:
    """The values up to each row put together; a null stays one, and what is put together goes on after it."""
    operation, blank = _ACCUMULATE[e.how]
    layout = c.layout
    full = len(c.in_order()) == len(layout.order)
    values = (c.floats if full else np.where(c.valid, c.floats, blank))[layout.order]
    found = _accumulated(operation, values, layout)
    if not full:
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
    """The running result of each person, one row after the other: those of many people at once, place by place."""
    found = np.empty(len(values) + 1)  # one more, for blanks
    for _, table, at in tables(values, layout.counts, 0.0, down=True):
        operation.accumulate(table, axis=0, out=table)
        found[at] = table
    return found[:-1]


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
    "nth": _nth,
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
