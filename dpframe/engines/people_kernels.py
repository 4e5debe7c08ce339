"""Kernels for sums over people, which numba compiles: loops over rows, person after person.

*Formal guarantee.* A kernel is an ordinary function of whole numbers in 64 bits. What numba makes of
it has the same bits, and so has Python without numba.

Rows are first sorted by parts of the people, so that a part fits into the processor's cache. Then
each person's rows are brought together, and each person is added up alone.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from dpframe._types import Array
from dpframe.engines.people import PRIME

GROUP_BITS = 32
FEW_RANKS = 32  # a limit up to which the smallest ranks are kept in order; beyond, all are sorted
NO_BAR = 2**62  # above every rank


def kernel(source: Callable[..., object]) -> Callable[..., Any]:
    """Return a function that numba compiles at its first call, or as it is without numba."""
    try:
        compile_lazily: Any = import_module("numba").njit
    except ImportError:
        return source
    # Kernels that call each other are inlined, since handing arrays over takes as long as they do.
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "inline": "always"}
    try:
        compiled: Callable[..., Any] = compile_lazily(cache=True, **options)(source)
    except RuntimeError:  # there is no folder for what is compiled
        compiled = compile_lazily(**options)(source)
    return compiled


class PlacedRows(NamedTuple):
    """Rows sorted by parts of the people, as several threads have placed them.

    The rows that thread t placed in a part are ``cells[begins[t, part] : ends[t, part]]``. A row of
    ``cells`` has the person's place in the part, the group, and the values; -1 for no value.
    """

    begins: Array
    ends: Array
    cells: Array


class GroupChoice(NamedTuple):
    """The draw of the groups in which a person counts: at most ``max_groups``, with the smallest
    ranks.

    The rank of a person with the number x in a group is the hash u (u + e) modulo P, with u = x m +
    c (`dpframe.engines.people.Draw`). ``numbers`` has x of each person, ``factors`` and ``addends``
    have m and c of each group, and ``last_constant`` is e.
    """

    max_groups: int
    numbers: Array
    factors: Array
    addends: Array
    last_constant: int


class PowerSums(NamedTuple):
    """The powers to be summed of each kind of values: the highest one, and the largest value."""

    degrees: Array
    widths: Array


class OwnSums(NamedTuple):
    """The sums of one person, by group; and the person's groups, in the order they occur."""

    rows: Array
    values: Array  # their number, by kind and group
    total: Array
    square: Array
    groups: Array
    ranks: Array  # of these groups


class GroupSums(NamedTuple):
    """The sums over people of each group."""

    rows: Array
    people: Array
    powers: Array  # by kind, power and group


@kernel
def count_parts(codes: Array, size: int, shift: int, counts: Array) -> None:
    """Add the rows of each part of the people to ``counts``.

    A part has the people whose codes are equal without their ``shift`` low bits. A code outside of
    0 to `size` is nobody's. Codes may be the column itself, which somebody may have written to
    since people were numbered.
    """
    for i in range(len(codes)):
        if 0 <= codes[i] < size:
            counts[codes[i] >> shift] += 1


@kernel
def place_rows(
    codes: Array,
    size: int,
    buckets: Array,
    values: Array,
    shift: int,
    following: Array,
    cells: Array,
) -> None:
    """Write rows into ``cells`` at the places of their part of the people.

    A part has the people whose codes are equal without their ``shift`` low bits. ``following`` has
    the next free place of each part. ``buckets`` has one more than the group of each row. Rows of
    nobody and of no group are left out.
    """
    low = (1 << shift) - 1
    for i in range(len(codes)):
        code = codes[i]
        if 0 <= code < size and buckets[i] > 0 and following[code >> shift] < len(cells):
            part = code >> shift
            j = following[part]
            following[part] = j + 1
            cells[j, 0] = code & low
            cells[j, 1] = buckets[i] - 1
            for v in range(len(values)):
                x = values[v, i]
                cells[j, 2 + v] = np.int32(x) if x == x else np.int32(-1)


@kernel
def order_rows(placed: PlacedRows, part: int, order: Array, start: Array, following: Array) -> None:
    """Bring the rows of each person in one part of the people together.

    It is called before the rows of each person are added up. The rows of person u become
    ``order[start[u] : start[u + 1]]``. ``following`` is room that it works in.
    """
    start[:] = 0
    for t in range(len(placed.begins)):
        for j in range(placed.begins[t, part], placed.ends[t, part]):
            start[placed.cells[j, 0] + 1] += 1
    for u in range(len(following)):
        start[u + 1] += start[u]
        following[u] = start[u]
    for t in range(len(placed.begins)):
        for j in range(placed.begins[t, part], placed.ends[t, part]):
            order[following[placed.cells[j, 0]]] = j
            following[placed.cells[j, 0]] += 1


@kernel
def add_rows(cells: Array, rows: Array, degrees: Array, own: OwnSums) -> int:
    """Add up the rows of one person by group, and return the number of their groups.

    ``rows`` has the places of these rows in ``cells``. ``degrees`` has the highest power of each
    kind of values. The sums go into ``own``.
    """
    found = 0
    for q in range(len(rows)):
        j = rows[q]
        g = cells[j, 1]
        own.groups[found] = g
        found += 1 if own.rows[g] == 0 else 0  # no branch, which a processor could not predict
        own.rows[g] += 1
        for v in range(len(degrees)):
            a = np.int64(cells[j, 2 + v])
            if a >= 0:
                own.values[v, g] += 1
                own.total[v, g] += a
                if degrees[v] >= 2:
                    own.square[v, g] += a * a
    return found


@kernel
def find_bar(choice: GroupChoice, person: int, found: int, own: OwnSums, best: Array) -> int:
    """Rank the groups of a person who has too many, and return the largest rank that still counts.

    ``found`` is the number of the person's groups, and ``own`` has their numbers. A rank is a hash
    with the group in its low bits. If few groups count, the smallest ranks are kept sorted in
    ``best``; else all ranks are sorted.
    """
    x, most, kept = choice.numbers[person], choice.max_groups, 0
    for i in range(found):
        g = own.groups[i]
        # The hash u (u + e) modulo P = 2**31 - 1, with w for u. 2**31 is 1 modulo P, so high bits
        # are added to low ones.
        w = x * choice.factors[g] + choice.addends[g]
        w = (w & PRIME) + (w >> 31)
        w = (w & PRIME) + (w >> 31)
        y = w + choice.last_constant
        y = (y & PRIME) + (y >> 31)
        y *= w  # both are at most P + 2
        y = (y & PRIME) + (y >> 31)
        y = (y & PRIME) + (y >> 31)
        y = (y + ((y + 1) >> 31)) & PRIME
        rank = (y << GROUP_BITS) + g
        own.ranks[i] = rank
        if most <= FEW_RANKS and (kept < most or rank < best[kept - 1]):
            at = min(kept, most - 1)
            while at > 0 and best[at - 1] > rank:
                best[at] = best[at - 1]
                at -= 1
            best[at] = rank
            kept = min(kept + 1, most)
    bar: int = best[most - 1] if most <= FEW_RANKS else np.sort(own.ranks[:found])[most - 1]
    return bar


@kernel
def add_person(
    own: OwnSums, found: int, bar: int, limit: int, powers: PowerSums, sums: GroupSums
) -> None:
    """Add what one person counts for to the sums of their groups, and clear the person's own sums.

    ``found`` is the number of the person's groups, which are in ``own``. A group counts if its rank
    is at most ``bar``, and with at most ``limit`` rows. If a person has more values than that in a
    group, their sums are multiplied by limit / number of values and rounded.

    In the body s0 is the person's number of values in a group, s1 their sum, and s2 the sum of
    their squares, on a grid from 0 to w.
    """
    kinds = len(powers.degrees)
    for i in range(found):
        g = own.groups[i]
        if bar == NO_BAR or own.ranks[i] <= bar:
            sums.rows[g] += min(own.rows[g], limit)
            sums.people[g] += 1
            for v in range(kinds):
                s0, s1, s2 = own.values[v, g], own.total[v, g], own.square[v, g]
                if s0 > limit:  # scaled to `limit` values, to the nearest integer
                    s1 = s1 // s0 * limit + (s1 % s0 * limit + s0 // 2) // s0
                    s2 = s2 // s0 * limit + (s2 % s0 * limit + s0 // 2) // s0
                    s0 = limit
                sums.powers[v, 0, g] += s0
                if powers.degrees[v] >= 1:
                    sums.powers[v, 1, g] += s1
                if powers.degrees[v] >= 2:
                    # Rounding may leave a sum of squares that no s0 values from 0 to w with the sum
                    # s1 have. It is moved to the nearest that some do.
                    w = powers.widths[v]
                    sums.powers[v, 2, g] += min(max(s2, 2 * w * s1 - w * w * s0, 0), w * s1)
        own.rows[g] = 0
        for v in range(kinds):
            own.values[v, g], own.total[v, g], own.square[v, g] = 0, 0, 0


@kernel
def add_people(
    first: int,
    last: int,
    shift: int,
    placed: PlacedRows,
    powers: PowerSums,
    choice: GroupChoice,
    limit: int,
    sums: GroupSums,
) -> None:
    """Add what people count for to the sums of each group, for some parts of the people.

    These are the parts from ``first`` to before ``last``. A part has the people whose codes are
    equal without their ``shift`` low bits. ``placed`` has their rows. A person counts with at most
    ``limit`` rows in a group, and in the groups of ``choice``.
    """
    groups, kinds, size = len(sums.rows), len(powers.degrees), 1 << shift
    longest = 0
    for part in range(first, last):
        longest = max(longest, (placed.ends[:, part] - placed.begins[:, part]).sum())
    order, start = np.empty(longest, np.int32), np.empty(size + 1, np.int64)
    following, best = np.empty(size, np.int64), np.empty(FEW_RANKS + 1, np.int64)
    own = OwnSums(
        np.zeros(groups, np.int64),
        np.zeros((kinds, groups), np.int64),
        np.zeros((kinds, groups), np.int64),
        np.zeros((kinds, groups), np.int64),
        np.empty(groups + 1, np.int64),
        np.empty(groups, np.int64),
    )
    for part in range(first, last):
        order_rows(placed, part, order, start, following)
        for u in range(size):
            found = add_rows(placed.cells, order[start[u] : start[u + 1]], powers.degrees, own)
            bar = NO_BAR
            if found > choice.max_groups:
                bar = find_bar(choice, (part << shift) + u, found, own, best)
            add_person(own, found, bar, limit, powers, sums)
