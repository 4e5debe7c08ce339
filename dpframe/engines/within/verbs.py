"""What each verb makes of a person's cells: one value of the person, or a value of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dpframe._cells.columns import NAT, Vector
from dpframe._expr import WITHIN, Within
from dpframe.engines.people import Codes, encode_values, widen
from dpframe.engines.within.layout import (
    NEVER,
    Cells,
    Floats,
    PerPerson,
    Places,
    blocks,
    running,
    tables,
)

# One value of a person ----------------------------------------------------------------------------------------------------


def _sum(c: Cells, e: Within) -> PerPerson:
    return c.spread(_totals(c))


def _totals(c: Cells) -> Floats:
    return c.sums(lambda rows, codes: c.floats[rows])


def _means(c: Cells) -> Floats:
    return _totals(c) / np.where(c.counts > 0, c.counts, np.nan)


def _mean(c: Cells, e: Within) -> PerPerson:
    return c.spread(_means(c))


def _variances(c: Cells, ddof: int) -> Floats:
    """The variance of each person about the mean."""
    mean = _means(c)

    def squares(rows: Places | slice, codes: Codes) -> Floats:
        off = c.floats[rows] - mean.take(codes)
        off *= off
        return off

    return c.sums(squares) / np.where(c.counts > ddof, c.counts - ddof, np.nan)


def _var(c: Cells, e: Within) -> PerPerson:
    return c.spread(_variances(c, e.args[0]))


def _std(c: Cells, e: Within) -> PerPerson:
    return c.spread(np.sqrt(_variances(c, e.args[0])))


def _sem(c: Cells, e: Within) -> PerPerson:
    return c.spread(np.sqrt(_variances(c, e.args[0])) / np.sqrt(c.counts))


def _extreme(c: Cells, e: Within) -> PerPerson:
    """The least or greatest value, in the dtype of the cells."""
    values = c.vector.values
    cells = values.view(np.int64) if values.dtype.kind in "mM" else values
    per = np.full(c.layout.size + 1, _end_of(cells.dtype, e.how == "min"), dtype=cells.dtype)
    {"min": np.minimum, "max": np.maximum}[e.how].at(
        per, widen(c.layout.codes[c.chosen]), cells[c.chosen]
    )
    null, mask = np.append(c.counts == 0, True), None
    if values.dtype.kind in "mM":
        per[null] = NAT
    elif values.dtype.kind == "f":
        per += per.dtype.type(0)  # of zeros of both signs numpy takes the one that it meets first
        per[null] = np.nan
    else:
        mask = null
    return PerPerson(Vector(c.vector.kind, per.view(values.dtype), mask), c.layout.whose)


def _end_of(dtype: np.dtype[Any], upper: bool) -> Any:
    """What no value of a dtype is beyond."""
    if dtype.kind == "b":
        return upper
    if dtype.kind == "f":
        return np.inf if upper else -np.inf
    return np.iinfo(dtype).max if upper else np.iinfo(dtype).min


def _quantile(c: Cells, e: Within) -> PerPerson:
    """The value at a place between two others, as pandas has it by default."""
    level = 0.5 if e.how == "median" else float(e.args[0])
    found = np.full(c.layout.size, np.nan)
    for some, table in tables(c.floats[c.in_order()], c.counts, np.inf):
        table.sort(axis=1)
        counts, rows = c.counts[some], np.arange(len(some))
        place = level * (counts - 1)
        low = np.floor(place).astype(np.int64)
        part, below = place - low, table[rows, low]
        above = table[rows, np.minimum(low + 1, counts - 1)]
        found[some] = np.where(part > 0, below + (above - below) * part, below)
    return c.spread(found + 0.0)  # of equal zeros of both signs either may stand at a place


def _truth(c: Cells, e: Within) -> PerPerson:
    """Whether any, or each, of the values is true; nulls count for nothing, and of no values each
    is."""
    true = c.sums(lambda rows, codes: (c.floats[rows] != 0).astype(np.float64))
    found = np.append(true > 0 if e.how == "any" else true == c.counts, False)
    return PerPerson(Vector("bool", found, np.append(c.layout.counts == 0, True)), c.layout.whose)


def _size_of(c: Cells, e: Within) -> PerPerson:
    return c.spread(c.layout.counts.astype(np.float64))


def _count(c: Cells, e: Within) -> PerPerson:
    return c.spread(c.counts.astype(np.float64))


def _nunique(c: Cells, e: Within) -> PerPerson:
    cells, people = encode_values(c.vector), widen(c.layout.codes[c.chosen])
    size, values = max(cells.size, 1), cells.codes[c.chosen]
    if c.layout.size * size <= 2 * len(people):  # a table of who has which is small
        table = np.zeros((size, c.layout.size), dtype=bool)
        for at in blocks(len(people)):
            table[values[at], people[at]] = True
        return c.spread(table.sum(axis=0).astype(np.float64))
    wide = people * size
    wide += values
    wide.sort()
    new = np.ones(len(wide), dtype=bool)
    np.not_equal(wide[1:], wide[:-1], out=new[1:])
    found = np.bincount(wide[new] // size, minlength=c.layout.size)
    return c.spread(found.astype(np.float64))


def _end(c: Cells, e: Within) -> PerPerson:
    """The first or the last cell that is no null."""
    return c.picked_for_all(c.layout.end(e.how == "last", c.valid))


def _nth(c: Cells, e: Within) -> PerPerson:
    """The cell at a place, from the end where it is negative; null where a person has fewer
    rows."""
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

    def pairs() -> Iterator[tuple[Places, Places]]:
        rows, before, mine, theirs = (
            layout.order[to],
            layout.order[of],
            layout.people[to],
            layout.people[of],
        )
        for at in blocks(max(n - abs(steps), 0)):
            same = mine[at] == theirs[at]
            some = np.flatnonzero(same)
            yield rows[at][some], before[at][some]

    return c.moved(pairs())


def _filled(c: Cells, e: Within) -> Vector:
    """The last cell that is no null up to a row, or the next one from it on."""
    layout, down = c.layout, e.how == "ffill"
    if c.valid is None:
        return c.vector  # nothing is to be filled
    n, valid, nearest = len(layout.order), c.valid, NEVER

    def pairs() -> Iterator[tuple[Places, Places]]:
        nonlocal nearest
        pieces = list(blocks(n))
        for piece in pieces if down else reversed(pieces):
            rows = layout.order[piece][:: 1 if down else -1]
            full = valid.take(rows)
            gaps = np.flatnonzero(~full)
            # As many values as there are so far, so many places on is the last of them; at 0 the
            # one of the piece before.
            known = np.append(nearest, rows[np.flatnonzero(full)])
            to, of = rows[gaps], known[np.cumsum(full)[gaps]]
            nearest = known[-1]
            inside = (of >= 0) & (layout.codes[of] == layout.codes[to])
            yield to[inside], of[inside]

    return c.moved(pairs(), stay=valid)


def _cumulated(c: Cells, e: Within) -> Vector:
    """The values up to each row put together; a null stays one, and what is put together goes on
    after it."""
    operation, blank = _ACCUMULATE[e.how]
    values = c.floats if c.valid is None else np.where(c.valid, c.floats, blank)
    found = running(operation, values, c.layout)
    if c.valid is not None:
        found[~c.valid] = np.nan
    if operation in (np.minimum, np.maximum):
        found += 0.0  # of zeros of both signs numpy takes either
    return Vector("number", found)


def _product(c: Cells, e: Within) -> PerPerson:
    layout = c.layout
    through = running(
        np.multiply, c.floats if c.valid is None else np.where(c.valid, c.floats, 1.0), layout
    )
    found, some = np.full(layout.size, np.nan), np.flatnonzero(layout.counts)
    found[some] = through[layout.order[(layout.starts + layout.counts - 1)[some]]]
    return c.spread(found)


_ACCUMULATE: dict[str, tuple[Any, float]] = {
    "cumsum": (np.add, 0.0),
    "cumprod": (np.multiply, 1.0),
    "cummin": (np.minimum, np.inf),
    "cummax": (np.maximum, -np.inf),
}


def _cumcount(c: Cells, e: Within) -> Vector:
    """How many rows come before each, or after it."""
    layout, (ascending,) = c.layout, e.args
    behind = np.repeat(layout.counts, layout.counts) - 1 - layout.within
    return c.scattered(layout.within if ascending else behind, layout.order)


def _rank(c: Cells, e: Within) -> Vector:
    """The rank of each value, of equal ones the mean rank, the least, the greatest, or one number
    for all of them."""
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
    again[places[layout.counts == 1 if keep is False else places >= 0]] = False
    return Vector("bool", again)


MAKE: Mapping[str, Callable[[Cells, Within], Vector | PerPerson]] = {
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
