"""What each person adds: totals per (person, group), bounded by a function of that person's own rows.

*Formal guarantee.* With limits of R rows and G groups, one person's rows change the sums of each group by what R rows
could, and those of at most G groups, whatever the frame: totals of more than R rows in a group are scaled to R rows and
rounded, and of more than G groups those with the smallest keyed hashes stay. Nothing here looks at another person's
rows, or at the place of a row in the frame (docs/guarantees/people.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.columns import UNMATCHED, Vector, number_text, objects
from dpframe._statistics.base import Integers

Codes = NDArray[np.int64]
GROUP_BITS = 32  # more than there may be groups
_ROOM = 2**22  # cells of a table of people by groups
_PART = 2**19  # pairs that are added up at once
_EXACT_ROWS = 2**21  # so many values below 2**32 add up exactly in doubles


class People(NamedTuple):
    """Who each row belongs to: a code, or -1 for nobody; how many people have a row, and a hash of each.

    Every code below ``size`` is that of a row, so the size is a function of the set of people who are there: neither of the
    range of their numbers, nor of the categories that nobody has.
    """

    codes: Codes
    size: int
    hashes: NDArray[np.uint64]


@np.errstate(all="ignore")  # no NaN may raise, whatever the caller has set
def people_of(columns: Sequence[Vector], key: bytes) -> People:
    """By one column or several. A null in any of them is nobody; equal numbers are one person, of whatever type.

    A cell that is no plain scalar is nobody, too: many people would be one, who is not gone when one of them is.
    """
    codes, hashes = _named(columns[0])
    for column in columns[1:]:
        inner, more = _named(column)
        size = max(1, len(more))
        wide = np.where((codes < 0) | (inner < 0), -1, codes * size + inner)
        codes, pairs = _factorized(wide, wide < 0)
        hashes = _mixed(hashes[pairs // size] * np.uint64(31) + more[pairs % size], key)
    return People(codes, len(hashes), _mixed(hashes, key))


def _named(column: Vector) -> tuple[Codes, NDArray[np.uint64]]:
    """Codes without gaps, and a hash for each."""
    codes, _, hashes = coded(column)
    if column.categories is not None:
        unknown = np.array([c is UNMATCHED for c in column.categories] + [False])
        codes = np.where(unknown.take(column.values, mode="wrap"), -1, codes)
    there = np.zeros(len(hashes) + 1, dtype=bool)  # one more, for -1
    there[codes] = True
    there = there[:-1]
    if there.all():
        return codes, hashes
    without_gaps = np.append(np.cumsum(there) - 1, -1)
    return np.take(without_gaps, codes, mode="wrap"), hashes[there]


def coded(column: Vector) -> tuple[Codes, int, NDArray[np.uint64]]:
    """A code for each cell, -1 for null; how many codes there may be, and a hash for each that its value alone decides."""
    if column.categories is not None:
        return _of_categories(column)
    values = column.values
    if values.dtype.kind in "mM":
        values = values.view(np.int64)
    elif values.dtype.kind == "f":
        values = values.astype(np.float64) + 0.0  # -0.0 is 0.0
    codes, uniques = _ranged(values, column.nulls()) or _factorized(values, column.nulls())
    return codes, len(uniques), pd.util.hash_array(uniques, categorize=False)


def _ranged(values: NDArray[Any], null: NDArray[np.bool_] | None) -> tuple[Codes, NDArray[Any]] | None:
    """Whole numbers of a narrow range are their own codes, some of which no row may have."""
    if values.dtype.kind not in "iu" or not len(values) or (null is not None and null.any()):
        return None
    low, high = int(values.min()), int(values.max())
    if high - low > 2 * len(values) + 2**16:
        return None
    wide = np.uint64 if values.dtype == np.uint64 else np.int64
    codes = (values.astype(wide, copy=False) - wide(low)).astype(np.int64, copy=False)
    uniques = (np.arange(high - low + 1, dtype=wide) + wide(low)).astype(values.dtype)
    return codes, uniques


def _factorized(values: NDArray[Any], null: NDArray[np.bool_] | None = None) -> tuple[Codes, NDArray[Any]]:
    if null is not None and null.any():
        codes = np.full(len(values), -1, dtype=np.int64)
        codes[~null], uniques = pd.factorize(values[~null])
    else:
        codes, uniques = pd.factorize(values)
    return codes.astype(np.int64, copy=False), uniques


def _of_categories(column: Vector) -> tuple[Codes, int, NDArray[np.uint64]]:
    """Codes of a dictionary, in which a number may stand as 1 and as 1.0."""
    assert column.categories is not None
    texts = [text_of_scalar(c) for c in column.categories]
    places = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    to_place = np.array([places[t] for t in texts] or [0], dtype=np.int64)
    codes = np.where(column.values < 0, -1, to_place[column.values])
    cells = objects(
        text.encode("utf-8", "surrogatepass") for text in places
    )  # no text may raise, whatever it holds
    hashes = pd.util.hash_array(cells, categorize=False)
    return codes, len(places), hashes


def text_of_scalar(cell: Any) -> str:
    """Equal for equal scalars of the types that a dictionary may hold, which run no code of their own."""
    if isinstance(cell, bool | int | float | Decimal) and cell == cell:
        return f"number {number_text(cell)}"
    return f"{type(cell).__name__} {cell!s}"


def _mixed(hashes: NDArray[np.uint64], key: bytes) -> NDArray[np.uint64]:
    salt = np.uint64(int.from_bytes(key[:8].ljust(8, b"\1"), "little") | 1)
    with np.errstate(over="ignore"):
        mixed: NDArray[np.uint64] = (hashes ^ (hashes >> np.uint64(29))) * salt
    return mixed ^ (mixed >> np.uint64(32))


class Pairs(NamedTuple):
    """The (person, group) pairs that have rows: the pair of each row, and of each pair its group and its rows."""

    of_row: NDArray[Any]
    places: (
        NDArray[Any] | None
    )  # of the pairs in the arrays that `of_row` counts into; None: one after the other
    size: int
    person: NDArray[Any]
    group: NDArray[Any]
    rows: NDArray[Any]
    table: bool = False  # those arrays have a row a person and a column a group

    @property
    def at(self) -> Any:
        """Where the pairs stand in such an array."""
        return slice(None) if self.places is None else self.places


def pairs_of(person: Codes, group: NDArray[Any] | None, people: int, groups: int) -> Pairs:
    wide = person if group is None else person * groups + group
    size = people * groups
    if size > 4 * len(wide) + 2**16:
        uniques, of_row, rows = _numbered(wide, size)
        person, group = _narrow(uniques // groups), _narrow(uniques % groups)
        return Pairs(of_row, None, len(uniques), person, group, _narrow(rows))
    rows = np.bincount(wide, minlength=size)
    places = np.flatnonzero(rows)
    return Pairs(
        _narrow(wide),
        _narrow(places),
        size,
        _narrow(places // groups),
        _narrow(places % groups),
        _narrow(rows[places]),
        table=True,
    )


def _numbered(wide: Codes, size: int) -> tuple[Codes, NDArray[Any], NDArray[np.int64]]:
    """The numbers below ``size`` that occur, in order; of each row the place of its own among them; and how often each is."""
    bits = max(len(wide) - 1, 1).bit_length()
    if (size - 1).bit_length() + bits > 62:
        uniques, of_row, rows = np.unique(wide, return_inverse=True, return_counts=True)
        return uniques, _narrow(of_row), rows
    # With its row in the low bits a number sorts twice as fast as by argsort, and tells where it came from.
    packed = (wide << bits) | np.arange(len(wide))
    packed.sort()
    rows_in_order = packed & ((1 << bits) - 1)
    packed >>= bits
    first = np.ones(len(packed), dtype=bool)
    np.not_equal(packed[1:], packed[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    of_row = np.empty(len(wide), dtype=np.int32 if len(starts) < 2**31 else np.int64)
    of_row[rows_in_order] = np.cumsum(first) - 1
    return packed[starts], of_row, np.diff(np.append(starts, len(packed)))


def _narrow(codes: NDArray[Any]) -> NDArray[Any]:
    """In little memory, so that more of them can be kept."""
    if not len(codes) or int(codes.max()) >= 2**32:
        return codes
    return codes.astype(np.min_scalar_type(int(codes.max())))


def within_groups(
    pairs: Pairs,
    hashes: NDArray[np.uint64],
    limit: int,
    key: bytes,
    labels: NDArray[np.uint64] | None = None,
) -> NDArray[np.bool_] | None:
    """Which pairs stay when a person may be in so many groups; None if all do. Pairs of one person stand together.

    Groups that nobody listed are numbered by what other people have, so their hashes come as ``labels``; in their numbers
    only the order counts, which is that of the values themselves.
    """
    counts = np.bincount(pairs.person)
    many = counts[pairs.person] > limit
    if not many.any():
        return None
    if pairs.table:
        return _smallest_of_table(
            pairs, _ranks(pairs.person, pairs.group, hashes, key, labels), len(hashes), limit
        )
    chosen = np.flatnonzero(many)
    person = pairs.person[chosen]
    rank = _ranks(person, pairs.group[chosen], hashes, key, labels)
    starts = np.flatnonzero(np.r_[True, person[1:] != person[:-1]])
    lengths = np.diff(np.r_[starts, len(person)])
    keep = np.ones(len(many), dtype=bool)
    width = int(lengths.max())
    step = max(1, _ROOM // width)
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
    person: NDArray[Any],
    group: NDArray[Any],
    hashes: NDArray[np.uint64],
    key: bytes,
    labels: NDArray[np.uint64] | None,
) -> NDArray[np.uint64]:
    """The keyed hashes by which a person's groups are chosen. The low bits are the group itself: no two of a person's are
    equal, so exactly so many are among the smallest."""
    group = group.astype(np.uint64)
    with np.errstate(over="ignore"):
        own = group * np.uint64(0x9E3779B97F4A7C15) if labels is None else labels[group]
        seed = hashes[person] + own
    low = np.uint64(2**GROUP_BITS - 1)
    rank: NDArray[np.uint64] = (_mixed(_mixed(seed, key), key) & ~low) | group
    return rank


def _smallest_of_table(pairs: Pairs, rank: NDArray[np.uint64], people: int, limit: int) -> NDArray[np.bool_]:
    """The same where pairs stand in a table: its rows need not be put together first."""
    groups = pairs.size // people
    keep = np.empty(len(rank), dtype=bool)
    step = max(1, _ROOM // groups)
    for first in range(0, people, step):
        begin, end = np.searchsorted(pairs.person, [first, first + step])
        table = np.full((min(step, people - first), groups), np.iinfo(np.uint64).max)
        own = pairs.person[begin:end] - first
        table[own, pairs.group[begin:end]] = rank[begin:end]
        last = np.partition(table, limit - 1, axis=1)[:, limit - 1]
        keep[begin:end] = rank[begin:end] <= last[own]
    return keep


class Bound:
    """The pairs that count, and what each may add to the sums of its group."""

    def __init__(self, pairs: Pairs, kept: NDArray[np.bool_] | None, limit: int, groups: int):
        self._pairs, self._kept, self._limit, self._groups = pairs, kept, limit, groups
        self._rows = pairs.rows.astype(np.int64, copy=False)

    def rows(self) -> Integers:
        return self._grouped(np.minimum(self._rows, self._limit))

    def people(self) -> Integers:
        return self._grouped(np.ones(len(self._rows), dtype=np.int64))

    def count(self, true: NDArray[np.bool_]) -> Integers:
        """The rows where a condition holds."""
        return self._grouped(self._scaled(self._counted(true)))

    def powers(self, values: NDArray[np.float64], degree: int, width: int) -> Integers:
        """Sums of a**0 .. a**degree of values 0 <= a <= width; NaN is no value.

        Rounding may leave the moments just outside of what any values have, where a person would reach further than
        their rows. Each is moved back so far that no sum of a**k * (W - a)**r is negative: 0 <= s1 <= W s0,
        2 W s1 - W**2 s0 <= s2 <= W s1, and so on. Where no third or higher one is in reach, the person's values count
        as if all of them were their mean (docs/guarantees/people.md).
        """
        valid = values == values
        some = None if valid.all() else valid
        count = self._scaled(self._counted(valid) if some is not None else self._rows)
        moments = [count]
        mixed = [count]  # the sums of a**k * (W - a)**r with k + r the degree so far
        missed = np.zeros(len(count), dtype=bool)
        a = values if some is None else values[valid]
        power = a
        for _ in range(degree):
            # The next power s decides the next mixed sums: they are `without` plus and minus s, in turn.
            without = [np.zeros_like(count)]
            for one in reversed(mixed):
                without.append(width * one - without[-1])
            least = reduce(np.maximum, [-one for one in without[::2]])
            most = reduce(np.minimum, without[1::2])
            s = np.clip(self._scaled(self._summed(power, some)), least, most)
            missed |= least > most
            mixed = [one - s if i % 2 else one + s for i, one in enumerate(without)][::-1]
            moments.append(s)
            power = power * a if len(moments) <= degree else a
        if missed.any():
            mean = moments[1][missed] // count[missed]  # there are values: of none all sums are 0
            for k in range(1, degree + 1):
                moments[k][missed] = count[missed] * mean**k
        return np.stack([self._grouped(m) for m in moments])

    def products(self, a: NDArray[np.float64], b: NDArray[np.float64], width: int, other: int) -> Integers:
        """How many rows have both values, and the sums of a, b and a * b, 0 <= a <= V and 0 <= b <= W.

        Moved back, as powers are, to what any values have: 0 <= s <= V n, 0 <= t <= W n, and
        max(0, W s + V t - V W n) <= st <= min(W s, V t).
        """
        valid = (a == a) & (b == b)
        count = self._scaled(self._counted(valid))
        a, b = a[valid], b[valid]
        first = np.clip(self._scaled(self._summed(a, valid)), 0, width * count)
        second = np.clip(self._scaled(self._summed(b, valid)), 0, other * count)
        least = np.maximum(0, other * first + width * second - width * other * count)
        most = np.minimum(other * first, width * second)
        mixed = np.clip(self._scaled(self._summed(a * b, valid)), least, most)
        return np.stack([self._grouped(m) for m in (count, first, second, mixed)])

    def _counted(self, true: NDArray[np.bool_]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = np.bincount(self._pairs.of_row[true], minlength=self._pairs.size)[
            self._pairs.at
        ]
        return found

    def _summed(self, weights: NDArray[np.float64], valid: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Exact sums per pair of whole numbers below 2**32."""
        pairs = self._pairs
        of_row = pairs.of_row if valid is None else pairs.of_row[valid]
        if len(of_row) <= _EXACT_ROWS or int(self._rows.max(initial=0)) <= _EXACT_ROWS:
            sums: NDArray[np.int64] = np.bincount(of_row, weights=weights, minlength=pairs.size)[
                pairs.at
            ].astype(np.int64)
            return sums
        high = np.floor(weights / 2**16)
        halves = (high, weights - high * 2**16)
        top, rest = (
            np.bincount(of_row, weights=w, minlength=pairs.size)[pairs.at].astype(np.int64) for w in halves
        )
        found: NDArray[np.int64] = top * 2**16 + rest
        return found

    def _scaled(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Totals of more rows than the limit as if there were so many: times limit / rows, to the nearest integer."""
        over = self._rows > self._limit
        if not over.any():
            return totals
        found = totals.copy()
        t, k = totals[over], self._rows[over]
        whole, rest = t // k, t % k  # each product below stays within 63 bits
        found[over] = whole * self._limit + (rest * self._limit + k // 2) // k
        return found

    def _grouped(self, totals: NDArray[np.int64]) -> Integers:
        """Sums over people, per group."""
        group = self._pairs.group
        if self._kept is not None:
            totals, group = totals[self._kept], group[self._kept]
        found = np.zeros(self._groups, dtype=np.int64)
        for start in range(0, len(totals), _PART):
            part, where = totals[start : start + _PART], group[start : start + _PART]
            if int(part.max()) < 2**53 // _PART:
                found += np.bincount(where, weights=part, minlength=self._groups).astype(np.int64)
                continue
            high = part >> 31  # both halves are below 2**32, so that their sums are exact in doubles
            for half, shift in ((high, 31), (part - (high << 31), 0)):
                sums = np.bincount(where, weights=half, minlength=self._groups)
                found += sums.astype(np.int64) << shift
        return found
