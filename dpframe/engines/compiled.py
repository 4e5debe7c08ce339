"""Kernels of people, which the extra ``fast`` compiles: the integers of the engine for frames,
sooner and in less memory.

*Formal guarantee.* As in `dpframe._cells.kernels`, and of whole numbers alone. The integers are the
ones that `dpframe.engines.limits` defines, in whatever order the rows stand and in however many
threads they are read: each part of the people is added up by itself, and integers are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe._cells import kernels
from dpframe._cells.codec import Buckets
from dpframe._cells.threads import shares, side_by_side
from dpframe._expr import Expr
from dpframe._sizes import SIZES
from dpframe._statistics.base import Grid, Integers, Persons, Powers, Primitive, Rows, Trues
from dpframe._statistics.engine import Scope
from dpframe.engines.expressions import ColumnOf, predicate
from dpframe.engines.keys import Occurring
from dpframe.engines.people import PRIME, Draw, Numbers, People, widened

WIDEST = 2**31 - 2  # of a grid, whose values are kept in 32 bits
HIGHEST = 2  # power that is summed here
_GROUP_BITS = 32
_BEST = 32  # so many smallest ranks are kept in order; of more all are sorted

Array = NDArray[Any]


# Kernels: numba compiles them, each by itself ----------------------------------------------------------------


def count_parts(codes: Array, size: int, shift: int, counts: Array) -> None:
    """Counts the rows of each part of so many people. A code below 0 is nobody's, and so is one
    that somebody has put there since the people were numbered: codes may be the column itself, and
    nothing is written where no room was made for it."""
    for i in range(len(codes)):
        if 0 <= codes[i] < size:
            counts[codes[i] >> shift] += 1


def place_rows(
    codes: Array,
    size: int,
    buckets: Array,
    values: Array,
    shift: int,
    following: Array,
    placed: Array,
) -> None:
    """Puts rows behind those that their part has already, but for those of nobody and of no group:
    who of the part, in which group, and the values, whole numbers, or -1 for NaN, which is none."""
    low = (1 << shift) - 1
    for i in range(len(codes)):
        code = codes[i]
        if 0 <= code < size and buckets[i] > 0 and following[code >> shift] < len(placed):
            part = code >> shift
            j = following[part]
            following[part] = j + 1
            placed[j, 0] = code & low
            placed[j, 1] = buckets[i] - 1
            for v in range(len(values)):
                x = values[v, i]
                placed[j, 2 + v] = np.int32(x) if x == x else np.int32(-1)


def add_people(
    first: int,
    last: int,
    shift: int,
    begins: Array,
    ends: Array,
    placed: Array,
    degrees: Array,
    widths: Array,
    limit: int,
    most: int,
    numbers: Array,
    m: Array,
    c: Array,
    e: int,
    rows: Array,
    people: Array,
    sums: Array,
) -> None:
    """Adds what the people of some parts count for: to ``rows`` and ``people`` of each group, and
    to ``sums`` the powers of each of the values. A person's rows are brought together, and then
    each person is on their own."""
    groups, kinds, size = len(rows), len(degrees), 1 << shift
    longest = 0
    for part in range(first, last):
        longest = max(longest, (ends[:, part] - begins[:, part]).sum())
    order, start, following = (
        np.empty(longest, np.int32),
        np.empty(size + 1, np.int64),
        np.empty(size, np.int64),
    )
    k, seen, rank = (
        np.zeros(groups, np.int64),
        np.empty(groups + 1, np.int64),
        np.empty(groups, np.int64),
    )
    count, total = np.zeros((kinds, groups), np.int64), np.zeros((kinds, groups), np.int64)
    square, best = np.zeros((kinds, groups), np.int64), np.empty(_BEST + 1, np.int64)
    for part in range(first, last):
        start[:] = 0
        for t in range(len(begins)):
            for j in range(begins[t, part], ends[t, part]):
                start[placed[j, 0] + 1] += 1
        for u in range(size):
            start[u + 1] += start[u]
            following[u] = start[u]
        for t in range(len(begins)):
            for j in range(begins[t, part], ends[t, part]):
                order[following[placed[j, 0]]] = j
                following[placed[j, 0]] += 1
        for u in range(size):
            own = 0
            for q in range(start[u], start[u + 1]):
                j = order[q]
                g = placed[j, 1]
                seen[own] = g
                own += 1 if k[g] == 0 else 0  # without a branch, which nothing could foresee
                k[g] += 1
                for v in range(kinds):
                    a = np.int64(placed[j, 2 + v])
                    if a >= 0:
                        count[v, g] += 1
                        total[v, g] += a
                        if degrees[v] >= 2:
                            square[v, g] += a * a
            bar = np.int64(2**62)
            if own > most:
                x, kept = numbers[(part << shift) + u], 0
                for i in range(own):
                    g = seen[i]
                    # As `Draw.with_multipliers` has it: 2**31 is 1 modulo P, so the high bits are
                    # added to the low ones.
                    w = x * m[g] + c[g]
                    w = (w & PRIME) + (w >> 31)
                    w = (w & PRIME) + (w >> 31)
                    y = w + e
                    y = (y & PRIME) + (y >> 31)
                    y *= w  # both are at most P + 2
                    y = (y & PRIME) + (y >> 31)
                    y = (y & PRIME) + (y >> 31)
                    y = (y + ((y + 1) >> 31)) & PRIME
                    rank[i] = (y << _GROUP_BITS) + g
                    if most <= _BEST and (kept < most or rank[i] < best[kept - 1]):
                        at = min(kept, most - 1)
                        while at > 0 and best[at - 1] > rank[i]:
                            best[at] = best[at - 1]
                            at -= 1
                        best[at] = rank[i]
                        kept = min(kept + 1, most)
                bar = best[most - 1] if most <= _BEST else np.sort(rank[:own])[most - 1]
            for i in range(own):
                g = seen[i]
                if own <= most or rank[i] <= bar:
                    rows[g] += min(k[g], limit)
                    people[g] += 1
                    for v in range(kinds):
                        s0, s1, s2 = count[v, g], total[v, g], square[v, g]
                        if s0 > limit:  # as if there were so many values, to the nearest integer
                            s1 = s1 // s0 * limit + (s1 % s0 * limit + s0 // 2) // s0
                            s2 = s2 // s0 * limit + (s2 % s0 * limit + s0 // 2) // s0
                            s0 = limit
                        sums[v, 0, g] += s0
                        if degrees[v] >= 1:
                            sums[v, 1, g] += s1
                        if degrees[v] >= 2:  # moved back to what any values have
                            w = widths[v]
                            sums[v, 2, g] += min(max(s2, 2 * w * s1 - w * w * s0, 0), w * s1)
                k[g] = 0
                for v in range(kinds):
                    count[v, g], total[v, g], square[v, g] = 0, 0, 0


# What asks for them ------------------------------------------------------------------------------------------


def available(rows: int) -> bool:
    """Whether there are kernels, and so many rows that it is worth while to load them."""
    return rows >= SIZES.kernel_rows and _working()


@cache
def _working() -> bool:
    """Whether numba is here and what it makes of the kernels works: of a person who has one row."""
    if kernels.numba() is None:
        return False
    one = People(np.zeros(1, np.int64), 1, [], b"")
    zero = Summed(lambda rows, values: values.fill(0.0), HIGHEST, 1)
    try:
        rows, people, sums = _sums(
            one, lambda rows: np.ones(1, np.int32), 1, [zero], 1, 1, Draw(b""), np.arange(1)
        )
    except Exception:  # that it cannot compile here, or keep what it has compiled
        return False
    return [rows.tolist(), people.tolist(), sums[0].tolist()] == [[1], [1], [[1], [0], [0]]]


class Reader(NamedTuple):
    """How rows are read: root columns, values of some rows on a grid, and what expressions made of
    whole dictionaries."""

    column: ColumnOf
    put: Callable[[Expr, Grid | None, slice, Array], object]  # into an array, NaN for a null
    memo: dict[Any, Any]


class Summed(NamedTuple):
    """Values whose powers are summed up to a degree: whole numbers up to a width, NaN for none, put
    into an array."""

    put: Callable[[slice, Array], object]
    degree: int
    width: int


def totals(
    scope: Scope,
    primitives: set[Primitive],
    people: People,
    buckets: Buckets | None,
    limit: int,
    most: int,
    key: bytes,
    read: Reader,
) -> dict[Primitive, Integers]:
    """Those of the sums over people that there are kernels for: what `dpframe.engines.limits.Bound`
    makes of them."""
    where, groups = scope.where, scope.groups
    wanted = {p: one for p in primitives if (one := _summed(p, read)) is not None}
    counts = {p for p in primitives if isinstance(p, Rows | Persons)}
    if groups > len(people.codes) or not (wanted or counts):
        return {}
    conditions = [] if where is None else [where]
    exprs = [*conditions, *(p.expr for p in wanted if isinstance(p, Trues | Powers))]
    for leaf in {leaf for e in exprs for leaf in e.columns()}:
        read.column(leaf)  # once, before there are threads

    def some(rows: slice) -> Array:
        found = np.ones(rows.stop - rows.start, np.int32)
        if buckets is not None:
            found[:] = buckets[rows]
        for condition in conditions:
            found[~predicate(condition, read.column, rows, read.memo)] = 0
        return found

    by = scope.by[0] if scope.by else None
    places = by.numbers() if isinstance(by, Occurring) else np.arange(groups)
    asked = list(wanted.values())
    rows, persons, sums = _sums(people, some, groups, asked, limit, most, Draw(key), places)
    found: dict[Primitive, Integers] = {p: rows if isinstance(p, Rows) else persons for p in counts}
    for p, powers in zip(wanted, sums, strict=True):
        found[p] = powers[0] if isinstance(p, Trues) else powers
    return found


def _summed(p: Primitive, read: Reader) -> Summed | None:
    """What is added up of a primitive; None where there is no kernel for it."""
    if isinstance(p, Trues):
        condition = p.expr

        def put(rows: slice, values: Array) -> None:
            values[:] = np.where(predicate(condition, read.column, rows, read.memo), 0.0, np.nan)

        return Summed(put, 0, 0)
    if not isinstance(p, Powers) or p.degree > HIGHEST:
        return None
    width = 0 if p.grid is None else p.grid.width
    return Summed(partial(read.put, p.expr, p.grid), p.degree, width) if width <= WIDEST else None


def _blocks(share: slice) -> Iterator[slice]:
    starts = range(share.start, share.stop, SIZES.block)
    return (slice(start, min(start + SIZES.block, share.stop)) for start in starts)


def _sums(
    people: People,
    buckets: Callable[[slice], Array],
    groups: int,
    wanted: Sequence[Summed],
    limit: int,
    most: int,
    draw: Draw,
    places: Numbers,
) -> tuple[Integers, Integers, list[Integers]]:
    """The rows and the people that count in each group, and the sums of the powers of each of the
    values.

    ``buckets`` has one more than the group of each of some rows, or 0; ``places`` the numbers by
    which groups are drawn.
    """
    codes = people.codes
    n, size = len(codes), max(people.size, 1)
    parts = min(SIZES.people_parts, max(1, n // SIZES.people_rows))
    shift = max(0, (size - 1).bit_length() - (parts - 1).bit_length())
    parts = ((size - 1) >> shift) + 1
    pieces = shares(n, SIZES.people_thread_rows)
    counts = np.zeros((len(pieces), parts), np.int64)
    each = list(enumerate(pieces))

    def count(one: tuple[int, slice]) -> None:
        for some in _blocks(one[1]):
            kernels.kernel(count_parts)(widened(codes[some]), size, shift, counts[one[0]])

    side_by_side(count, each)
    ends = np.cumsum(counts.T.ravel()).reshape(parts, len(pieces)).T
    begins = np.ascontiguousarray(ends - counts)
    following = begins.copy()
    # Before there is a copy of the rows: it counts those of each person.
    x = people.numbers_beyond(most) if most < groups else np.zeros(0, np.int64)
    placed = np.empty((int(counts.sum()), 2 + len(wanted)), np.int32)

    def place(one: tuple[int, slice]) -> None:
        values = np.empty((len(wanted), SIZES.block))
        for some in _blocks(one[1]):
            for summed, room in zip(wanted, values, strict=True):
                summed.put(some, room[: some.stop - some.start])
            kernels.kernel(place_rows)(
                widened(codes[some]), size, buckets(some), values, shift, following[one[0]], placed
            )

    side_by_side(place, each)
    m, c = draw.multipliers(places)
    cuts = np.unique(np.linspace(0, parts, 4 * len(pieces) + 1).astype(np.int64)).tolist()
    degrees = np.array([one.degree for one in wanted], np.int64)
    widths = np.array([one.width for one in wanted], np.int64)
    there = begins, following, placed, degrees, widths
    drawn = limit, most, x, m, c, draw.last

    def add(ends: tuple[int, int]) -> tuple[Integers, Integers, Integers]:
        rows, persons = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
        sums = np.zeros((len(wanted), HIGHEST + 1, groups), np.int64)
        kernels.kernel(add_people)(*ends, shift, *there, *drawn, rows, persons, sums)
        return rows, persons, sums

    found = side_by_side(add, list(pairwise(cuts)))
    rows, persons, sums = (np.sum(one, axis=0) for one in zip(*found, strict=True))
    return rows, persons, [sums[i, : one.degree + 1] for i, one in enumerate(wanted)]
