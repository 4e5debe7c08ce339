"""What each person adds: totals per (person, group), bounded by a function of that person's own
rows.

*Formal guarantee.* With limits of R rows and G groups, one person's rows change the sums of each
group by what R rows could, and those of at most G groups, whatever the frame: totals of more than R
values in a group are scaled to R values and rounded, and of more than G groups those with the
smallest keyed hashes stay. Nothing here looks at another person's rows, or at the place of a row in
the frame (docs/guarantees/people.md).

Only rows that have a value count for the limit of a sum. So the number of values is min(c, R),
which is never rounded, and the mean of one person lies between their least value and their
greatest.

Where no total can be scaled, some of a person's own values stand for all of them: for quantiles,
bids and magnitudes. Of each person and group at most R values count. Which ones is a function of
the multiset of that person's values in that group: in their order the middle of each of R equal
parts, or all where there are at most R. A middle between two values is one or the other by the
person's keyed hash. Where magnitudes are looked for, one value counts, at the rank that the hash
draws.

Of distinct values a person may name so many and no more: those (group, value) pairs with the
smallest keyed hashes. Values go by their hashes and never by the number they get in the frame,
which other people's rows decide; where two hashes are equal at the limit, neither is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe import _pandas
from dpframe._cells.codec import Buckets
from dpframe._cells.columns import Vector
from dpframe._sizes import SIZES
from dpframe._statistics.base import Integers
from dpframe._types import Array
from dpframe.engines.people import (
    Codes,
    Draw,
    Numbers,
    Pairs,
    People,
    combine_numbers,
    encode_values,
    numbers_of,
    widen,
)

Places = NDArray[np.int64]
GROUP_BITS = 32  # more than there may be groups


# The groups of a person ------------------------------------------------------------------------------------


def within_groups(
    pairs: Pairs,
    people: People,
    limit: int,
    key: bytes,
    labels: Callable[[], Numbers] | None = None,
) -> NDArray[np.bool_] | None:
    """Return which (person, group) pairs count when a person may be in at most ``limit`` groups.

    The result is a mask of the pairs; None if all count. Pairs of one person stand together. Among
    a person's groups the ``limit`` with the smallest hashes count, and ``key`` seeds the hashes.

    A hash is made of a number of the person and a number of the group. For a listed group that is
    its place in the list. The places of groups that nobody listed depend on other people's values,
    so for them ``labels()`` returns numbers that depend on the group's own values alone.
    """
    counts = np.bincount(pairs.person)
    over = np.flatnonzero(counts > limit)
    if not len(over):
        return None
    numbers, places = people.numbers(over), None if labels is None else labels()
    if pairs.table:
        rank = _ranks(pairs.person, pairs.group, numbers, key, places)
        return _choose_in_table(pairs, rank, people.size, limit)
    many = counts[pairs.person] > limit
    chosen = np.flatnonzero(many)
    person = pairs.person[chosen]
    rank = _ranks(person, pairs.group[chosen], numbers, key, places)
    starts = np.flatnonzero(np.r_[True, person[1:] != person[:-1]])
    lengths = np.diff(np.r_[starts, len(person)])
    keep = np.ones(len(many), dtype=bool)
    # A table with a row for each person who has too many groups, some people at a time.
    width = int(lengths.max())
    step = max(1, SIZES.people_cells // width)
    for first in range(0, len(starts), step):
        some = lengths[first : first + step]
        begin, end = int(starts[first]), int(starts[first] + some.sum())
        row = np.repeat(np.arange(len(some)), some)
        column = np.arange(end - begin) - np.repeat(starts[first : first + step] - begin, some)
        table = np.full((len(some), width), np.iinfo(np.uint64).max)
        table[row, column] = rank[begin:end]
        last = np.partition(table, limit - 1, axis=1)[:, limit - 1]
        keep[chosen[begin:end]] = rank[begin:end] <= last[row]
    return keep


def _ranks(
    person: Array, group: Array, numbers: Numbers, key: bytes, places: Numbers | None
) -> NDArray[np.uint64]:
    """Return the rank of each (person, group) pair, by which a person's groups are chosen.

    ``numbers`` has the number of each person, and ``key`` seeds the hashes. ``places`` has the
    number of each group; None if a group's place is its number. A rank is the hash, with the group
    in its low bits. So no two ranks of a person are equal, and exactly as many as wanted are among
    the smallest.
    """
    rank = np.empty(len(person), dtype=np.uint64)
    draw = Draw(key)
    size = int(group.max(initial=0)) + 1
    m, c = draw.find_coefficients(np.arange(size) if places is None else places[:size])
    for start in range(0, len(person), SIZES.people_drawn):
        rows = slice(start, start + SIZES.people_drawn)
        some = group[rows]
        found = draw.hash_with(numbers.take(person[rows]), m.take(some), c.take(some))
        found <<= GROUP_BITS
        found |= some
        rank[rows] = found.view(np.uint64)
    return rank


def _choose_in_table(
    pairs: Pairs, rank: NDArray[np.uint64], people: int, limit: int
) -> NDArray[np.bool_]:
    """Return a mask of the (person, group) pairs that count: of each person the ``limit`` pairs
    with the smallest ranks.

    ``rank`` has the rank of each pair. The ranks are put into a table with a row for each of the
    ``people`` and a column for each group, some people at a time.
    """
    groups = pairs.size // people
    keep = np.empty(len(rank), dtype=bool)
    step = max(1, SIZES.people_cells // groups)
    for first in range(0, people, step):
        begin, end = np.searchsorted(pairs.person, [first, first + step])
        table = np.full((min(step, people - first), groups), np.iinfo(np.uint64).max)
        own = pairs.person[begin:end] - first
        table[own, pairs.group[begin:end]] = rank[begin:end]
        last = np.partition(table, limit - 1, axis=1)[:, limit - 1]
        keep[begin:end] = rank[begin:end] <= last[own]
    return keep


# Totals ----------------------------------------------------------------------------------------------------


class Bound:
    """The pairs that count, and what each may add to the sums of its group."""

    def __init__(self, pairs: Pairs, kept: NDArray[np.bool_] | None, limit: int, groups: int):
        """Hold the (person, group) pairs that have rows, with the contribution limits.

        ``kept`` is a mask of the pairs that count; None if all do. ``limit`` is the most rows of a
        person that count in a group. ``groups`` is the number of groups.
        """
        self._pairs, self._kept_pairs, self._limit, self._groups = pairs, kept, limit, groups

    def rows(self) -> Integers:
        """Return the rows of each group, where a person counts with at most the limit of rows."""
        return np.asarray(
            self._add_over_people(lambda places, rows: [np.minimum(rows, self._limit)])[0]
        )

    def people(self) -> Integers:
        """Return how many people count in each group."""
        return np.asarray(
            self._add_over_people(lambda places, rows: [np.ones(len(rows), dtype=np.int64)])[0]
        )

    def count(self, true: NDArray[np.bool_]) -> Integers:
        """Return the rows of each group where a condition holds, within the contribution limits.

        ``true`` has the answer of the condition for each row.
        """
        counts = np.bincount(self._pairs.of_row[true], minlength=self._pairs.size)
        return np.asarray(
            self._add_over_people(lambda places, rows: [np.minimum(counts[places], self._limit)])[0]
        )

    def powers(self, values: Iterable[NDArray[np.float64]], degree: int, width: int) -> Integers:
        """Return the sums of a**0 .. a**degree of values 0 <= a <= width, by group: an array with a
        row for each power.

        Each person counts within the contribution limits: the sums of more values than the limit
        are scaled down. Values come in blocks of any size, row by row; NaN is no value.

        Rounding may leave a person's sums just outside of what any values can have. Then the person
        would move the release by more than their rows may. So each sum is moved back until no sum
        of a**k * (W - a)**r is negative, where W is the width. That is 0 <= s1 <= W s0, where it is
        already, 2 W s1 - W**2 s0 <= s2 <= W s1, and so on. If no higher sum can satisfy this, the
        person's values count as if all were their mean (docs/guarantees/people.md).
        """
        missing, *sums = (np.zeros(self._pairs.size, dtype=np.int64) for _ in range(degree + 1))
        full = True
        for a, pair in self._blocks(values):
            null = a != a
            if null.any():
                full = False
                np.add.at(missing, pair[null], 1)
                a = np.where(null, 0.0, a)  # which adds nothing to any power
            power = a
            for k, total in enumerate(sums):
                power = power * a if k else a
                np.add.at(total, pair, power.astype(np.int64))

        def bound_powers(places: Any, rows: Places) -> list[Places]:
            """Return the bounded sums of powers of some (person, group) pairs, from the power 0 on.

            ``places`` are the indices of these pairs in the totals, and ``rows`` the number of rows
            of each pair.
            """
            values = rows if full else rows - missing[places]
            count = np.minimum(values, self._limit)
            moments = [count]
            mixed = [count]  # the sums of a**k * (W - a)**r with k + r the degree so far
            missed = np.zeros(len(count), dtype=bool)
            for total in sums:
                # The next power s decides the next mixed sums: they are `without` plus and minus s,
                # in turn.
                without = [np.zeros_like(count)]
                for one in reversed(mixed):
                    without.append(width * one - without[-1])
                least = reduce(np.maximum, [-one for one in without[::2]])
                most = reduce(np.minimum, without[1::2])
                s = np.clip(self._scale_totals(total[places], values), least, most)
                missed |= least > most
                mixed = [one - s if i % 2 else one + s for i, one in enumerate(without)][::-1]
                moments.append(s)
            if missed.any():
                mean = (
                    moments[1][missed] // count[missed]
                )  # there are values: of none all sums are 0
                for k in range(1, degree + 1):
                    moments[k][missed] = count[missed] * mean**k
            return moments

        return self._add_over_people(bound_powers)

    def products(
        self,
        a: Iterable[NDArray[np.float64]],
        b: Iterable[NDArray[np.float64]],
        width: int,
        other: int,
    ) -> Integers:
        """Return the rows with both values, and the sums of a, of b and of a * b, by group.

        Each person counts within the contribution limits. Values are 0 <= a <= V and 0 <= b <= W,
        where V is ``width`` and W is ``other``. The last sum is moved back to what any values can
        have, as powers are: max(0, W s + V t - V W n) <= st <= min(W s, V t).
        """
        both, *sums = totals = np.zeros((4, self._pairs.size), dtype=np.int64)
        for (one, pair), two in zip(self._blocks(a), b, strict=True):
            valid = (one == one) & (two == two)
            x, y, own = one[valid], two[valid], pair[valid]
            for total, values in zip(totals, (np.ones(len(own)), x, y, x * y), strict=True):
                np.add.at(total, own, values.astype(np.int64))

        def bound_products(places: Any, rows: Places) -> list[Places]:
            """Return the bounded count and sums of a, b and a * b of some (person, group) pairs.

            ``places`` are the indices of these pairs in the totals.
            """
            own = both[places]
            count = np.minimum(own, self._limit)
            first, second, mixed = (self._scale_totals(total[places], own) for total in sums)
            least = np.maximum(0, other * first + width * second - width * other * count)
            mixed = np.clip(mixed, least, np.minimum(other * first, width * second))
            return [count, first, second, mixed]

        return self._add_over_people(bound_products)

    def _add_over_people(self, count_pairs: Callable[[Any, Places], list[Places]]) -> Integers:
        """Return sums over people, by group, of what each (person, group) pair counts for: an array
        with a row for each kind of sum.

        ``count_pairs(places, rows)`` returns what some pairs count for, an array for each kind. It
        gets their indices in arrays that have an entry for each pair, and their numbers of rows. As
        many pairs are handled at a time as fit into the processor's cache.
        """
        pairs, n = self._pairs, len(self._pairs.rows)
        found = np.zeros(1, dtype=np.int64)
        step = min(SIZES.people_pairs, max(SIZES.people_cached, 4 * self._groups))
        for start in range(0, max(n, 1), step):
            some = slice(start, min(start + step, n))
            rows = pairs.rows[some].astype(np.int64, copy=False)
            places = some if pairs.places is None else pairs.places[some]
            counted = count_pairs(places, rows)
            found = found + np.stack([self._sum_by_group(one, some) for one in counted])
        return found

    def _blocks(
        self, values: Iterable[NDArray[np.float64]]
    ) -> Iterator[tuple[NDArray[np.float64], Array]]:
        """Yield each block of values, with the number of each row's (person, group) pair."""
        first = 0
        for block in values:
            yield block, self._pairs.of_row[first : first + len(block)]
            first += len(block)

    def _scale_totals(self, totals: Places, counts: Places) -> Places:
        """Return totals within the limit on a person's values in a group.

        ``counts`` has the number of values behind each total. A total of more values than the limit
        is scaled by limit / count, to the nearest integer.
        """
        over = counts > self._limit
        if not over.any():
            return totals
        found = totals.copy()
        t, c = totals[over], counts[over]
        whole, rest = t // c, t % c  # each product below stays within 63 bits
        found[over] = whole * self._limit + (rest * self._limit + c // 2) // c
        return found

    def _sum_by_group(self, totals: Places, some: slice) -> Integers:
        """Return the sum of totals in each group, over some (person, group) pairs.

        ``some`` is the slice of these pairs. Only pairs that count are added.
        """
        group = self._pairs.group[some]
        if self._kept_pairs is not None:
            kept = self._kept_pairs[some]
            totals, group = totals[kept], group[kept]
        if self._groups == 1:
            return np.asarray([totals.sum()], dtype=np.int64)
        if int(totals.max(initial=0)) < 2**53 // SIZES.people_pairs:
            return np.bincount(group, weights=totals, minlength=self._groups).astype(np.int64)
        found = np.zeros(self._groups, dtype=np.int64)
        high = totals >> 31  # both halves are below 2**32, so that their sums are exact in doubles
        for half, shift in ((high, 31), (totals - (high << 31), 0)):
            sums = np.bincount(group, weights=half, minlength=self._groups)
            found += sums.astype(np.int64) << shift
        return found


# Single values ---------------------------------------------------------------------------------------------


def count_at_points(
    pairs: Pairs,
    kept: NDArray[np.bool_] | None,
    people: People,
    limit: int,
    groups: int,
    places: Places,
    points: int,
    key: bytes,
    drawn: bool = False,
) -> Integers:
    """Count the values at each point of a grid, by group, within the contribution limits.

    ``places`` has the point of each row's value, below 0 for no value. ``kept`` is a mask of the
    (person, group) pairs that count; None if all do. Of each pair at most ``limit`` values count,
    evenly spread over their order. With ``drawn``, one value of each pair counts, which a hash
    draws. ``people`` has the number of each person for the hash, and ``key`` seeds it. The result
    has a row for each of the ``points`` and a column for each group.
    """
    some = places >= 0
    if kept is not None:
        stays = np.zeros(pairs.size, dtype=bool)
        stays[pairs.at] = kept
        some &= stays[pairs.of_row]
    pair, at = pairs.of_row[some], places[some]  # of each value: its pair and its point
    counts = np.bincount(pair, minlength=pairs.size)
    many = counts > limit
    if many.any():
        over = many[pair]
        chosen = np.flatnonzero(many)
        # Pair and point in one number, which sorts faster than two: fewer than 2**30 pairs have two
        # values or more.
        wide = (np.cumsum(many) - 1)[pair[over]] * points + at[over]
        wide.sort()
        place = np.zeros(pairs.size, dtype=np.int64)
        place[pairs.at] = np.arange(len(pairs.person))
        person, group = pairs.person[place[chosen]], pairs.group[place[chosen]]
        coin = Draw(key).ranks(people.numbers(person)[person], group.astype(np.int64))
        own = counts[chosen]
        starts = np.cumsum(own) - own  # where the sorted values of each such pair begin
        picked = wide[starts + coin % own if drawn else _middles(own, limit, coin)]
        pair = np.concatenate([pair[~over], chosen[picked // points]])
        at = np.concatenate([at[~over], picked % points])
    if groups > 1:
        group = np.zeros(pairs.size, dtype=np.int64)
        group[pairs.at] = pairs.group
        at = at * groups + group[pair]
    return np.bincount(at, minlength=points * groups).reshape(points, groups)


def _middles(counts: Places, limit: int, coins: Places) -> Places:
    """Return the places of the values that count for pairs with too many: `limit` of each pair,
    evenly spread.

    The sorted values of all pairs stand one after the other, and ``counts`` has their number for
    each pair. They are divided into `limit` equal parts, and the middle of each part is taken. A
    middle between two values is the upper one and the lower one by turns. The pair's coin says
    which comes first, since always the upper one would shift every quantile.
    """
    starts = np.cumsum(counts) - counts
    turns = np.arange(limit)
    ranks, rest = np.divmod((2 * turns + 1) * counts[:, None], 2 * limit)
    ranks -= (rest == 0) & ((turns + coins[:, None]) % 2 == 1)
    return np.asarray((starts[:, None] + ranks).ravel())


def count_people_by_size(pairs: Pairs, of: str, bins: int) -> Integers:
    """Count people by the size of their contribution, in bins that double: up to 1, 2, 4 and so on.

    With ``of="groups"`` the size is the number of a person's groups. Otherwise it is the number of
    rows in the person's largest group. The last of the ``bins`` has all larger sizes. The result is
    an array with a row for each bin and one column.
    """
    starts = np.flatnonzero(np.r_[True, pairs.person[1:] != pairs.person[:-1]])[: len(pairs.person)]
    if of == "groups":
        sizes = np.diff(np.r_[starts, len(pairs.person)])
    else:
        sizes = np.maximum.reduceat(pairs.rows, starts) if len(starts) else pairs.rows
    places = np.searchsorted(2 ** np.arange(bins - 1), sizes)  # whatever is more goes into the last
    return np.bincount(places, minlength=bins)[:, None]


# Distinct values -------------------------------------------------------------------------------------------


def list_distinct_pairs(
    values: Vector,
    asked: NDArray[np.bool_] | None,
    buckets: Buckets | None,
    people: People | None,
    limit: int,
    key: bytes,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct (group, value) pairs that count: the group of each, and the index of a
    row with its value.

    ``asked`` is a mask of the rows that pass the filter; None if all do. ``buckets`` has one more
    than the group of each row, 0 for no group; None is one group. Without ``people`` all pairs
    count. With them each person contributes at most ``limit`` pairs, those with the smallest
    hashes, and pairs of nobody do not count. ``key`` seeds the hashes.
    """
    codes, known = encode_values(values)
    size = len(known)
    asked = codes >= 0 if asked is None else asked & (codes >= 0)
    if buckets is not None:
        asked &= buckets > 0
    if people is not None:
        asked &= people.codes >= 0
    wide = codes[asked]
    if buckets is not None:  # fewer than 2**26 groups and 2**31 values
        wide += (buckets[asked].astype(np.int64) - 1) * size
    own, pairs = _pandas.factorize(wide)
    if people is not None:
        both = _pandas.unique(widen(people.codes[asked]) * max(1, len(pairs)) + own)
        person, own = both // max(1, len(pairs)), both % max(1, len(pairs))
        group, value = pairs[own] // max(1, size), pairs[own] % max(1, size)
        numbers = people.numbers(np.unique(person))[person]
        named, at = np.unique(value, return_inverse=True)
        seed = combine_numbers(numbers, numbers_of(known[named])[at])
        kept = smallest(person, Draw(key).ranks(seed, group), limit)
        pairs = _pandas.unique(pairs[own[kept]])
    rows = np.empty(size, dtype=np.int64)
    rows[codes[codes >= 0]] = np.flatnonzero(codes >= 0)
    return pairs // max(1, size), rows[pairs % max(1, size)]


def smallest(person: Codes, rank: Array, limit: int) -> NDArray[np.bool_]:
    """Return a mask of the entries whose ranks are among the ``limit`` smallest of their person.

    ``person`` and ``rank`` have the person and the rank of each entry. Of a person with more
    entries, those below the next larger rank are kept. So with equal ranks there may be fewer.
    """
    kept = np.ones(len(person), dtype=bool)
    many = np.bincount(person)[person] > limit if len(person) else kept
    chosen = np.flatnonzero(many)
    if not len(chosen):
        return kept
    order = chosen[np.lexsort((rank[chosen], person[chosen]))]
    first = np.flatnonzero(np.r_[True, person[order][1:] != person[order][:-1]])
    lengths = np.diff(np.r_[first, len(order)])
    bar = np.repeat(rank[order][first + limit], lengths)
    kept[order] = rank[order] < bar
    return kept
