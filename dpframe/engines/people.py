"""Who each row belongs to, the pairs of a person and a group that have rows, and the hash that
chooses among them.

*Formal guarantee.* Whether two rows are one person's is a function of the cells that name them, and
so is the number of a person. The hash of a person and a group is a function of their numbers and
the key.

*The hash.* Which of a person's groups count, and which of their values, is drawn by arithmetic
modulo the prime P = 2**31 - 1 that every engine has, in 64-bit integers and without overflow, so
that all draw alike, whatever the order of the rows, and in however many parts they are read. It is
no cryptography and need not be: docs/guarantees/people.md holds for any fixed function of the
person, the group and the key. The key, whose constants come from a keyed BLAKE2b, makes the draw
fair, and keeps it out of anybody's hands.

====================================
================================================================================= a cell
its number ====================================
================================================================================= whole numbers,
doubles, decimals      numerator times the inverse of the denominator, modulo P: equal numbers have
one,
                                      whatever dtype holds them. ``True`` is 1; infinities have one
                                      each
texts                                 the first 15 hexadecimal digits of the MD5 of their UTF-8, modulo P
moments                               their nanoseconds since 1970, modulo P, whatever their unit
intervals                             the number of their text
several columns                       x * 1588635695 + y modulo P of the number x of those before and y of the next
====================================  =================================================================================

A null and a cell that is no plain scalar is nobody and has none. Two people of one number draw
alike, which harms nobody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe import _pandas
from dpframe._cells.codec import TICKS, ticks_of, unit_of
from dpframe._cells.columns import UNMATCHED, Vector, number_text, objects
from dpframe._cells.threads import shares, side_by_side
from dpframe._sizes import SIZES
from dpframe._types import Array

Codes = NDArray[
    np.signedinteger[Any]
]  # of people: whole numbers in 64 bits, or in 32 where these are enough
Numbers = NDArray[np.int64]  # below P
PRIME = 2**31 - 1
FOLD = 1_588_635_695  # a primitive root of P
_INFINITE = 314_159


# The numbers of cells ----------------------------------------------------------------------------------------


def number_of(cell: object) -> int:
    """Return the number of a plain scalar modulo the prime P = 2**31 - 1.

    Draws know a person or a group by it. Equal scalars have equal numbers. The docstring of this
    module has the rules for each type.
    """
    if isinstance(cell, str):
        return _of_text(cell)
    if isinstance(cell, bool | int):
        return cell % PRIME
    if isinstance(cell, float):
        return int(_number_doubles(np.array([cell]))[0])
    if isinstance(cell, Decimal):
        return _number_decimal(cell)
    if isinstance(cell, pd.Timestamp):
        ticks, unit = ticks_of(cell)
        return ticks * (TICKS["ns"] // TICKS[unit]) % PRIME
    return _of_text(text_of_scalar(cell))


def numbers_of(values: Array) -> Numbers:
    """Return the number modulo the prime P of each value in an array.

    The array has numbers, times or plain scalars, numbered as `number_of` does.
    """
    kind = values.dtype.kind
    if kind == "O":
        return np.array([number_of(cell) for cell in values.tolist()], dtype=np.int64)
    if kind == "f":
        return _number_doubles(values.astype(np.float64))
    if kind == "M":
        return reduce_modulo(
            _whole(values.view(np.int64)) * (TICKS["ns"] // TICKS[unit_of(values)] % PRIME)
        )
    return _whole(values)


def _whole(values: Array) -> Numbers:
    """Return integers and bools modulo the prime P, as integers of 64 bits."""
    if values.dtype.kind == "b" or (values.dtype.itemsize < 4 and values.dtype.kind == "u"):
        return values.astype(np.int64)
    if values.dtype == np.uint64:
        return (values % np.uint64(PRIME)).astype(np.int64)
    wide = values.astype(np.int64)
    if len(wide) and wide.min() >= 0 and wide.max() < PRIME:
        return wide
    return wide % PRIME


def _number_doubles(values: NDArray[np.float64]) -> Numbers:
    """Return m * 2**e modulo the prime P = 2**31 - 1 for each double m * 2**e.

    There are 31 powers of two modulo P, and half of one is 2**30.
    """
    infinite = np.isinf(values)
    part, power = np.frexp(np.where(infinite, 0.0, values))
    whole = (part * 2.0**53).astype(np.int64) % PRIME
    found = reduce_modulo(whole << (power.astype(np.int64) - 53) % 31)
    found[infinite] = np.where(values[infinite] > 0, _INFINITE, PRIME - _INFINITE)
    return found


def _number_decimal(cell: Decimal) -> int:
    """Return the number by which draws know a Decimal: its digits times a power of ten, modulo P.

    P is the prime 2**31 - 1. Infinities and NaN have a fixed number by their sign.
    """
    sign, digits, exponent = cell.as_tuple()
    if not isinstance(exponent, int):
        return PRIME - _INFINITE if sign else _INFINITE
    found = 0
    for digit in digits:  # of which there may be too many for one integer to be read from them
        found = (found * 10 + digit) % PRIME
    return (-found if sign else found) * pow(10, exponent, PRIME) % PRIME


def bytes_of_text(text: str) -> bytes:
    """Return the UTF-8 bytes of a text.

    If it was read from bytes that are not UTF-8, return those.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _of_text(text: str) -> int:
    """Return the number of a text: the first 60 bits of the MD5 of its bytes, modulo P."""
    digest = hashlib.md5(bytes_of_text(text), usedforsecurity=False).digest()
    return (int.from_bytes(digest[:8], "big") >> 4) % PRIME


def combine_numbers(numbers: Numbers, more: Numbers) -> Numbers:
    """Return the number of two things together, such as a person's values in two columns.

    ``numbers`` and ``more`` are theirs, modulo the prime P.
    """
    return reduce_modulo(numbers * FOLD + more)


def reduce_modulo(values: NDArray[np.int64]) -> Numbers:
    """Reduce integers from 0 to 2**63 - 1 modulo the prime P = 2**31 - 1, in place."""
    for start in range(0, len(values), SIZES.hash_block):
        part = values[start : start + SIZES.hash_block]
        _reduce_once(part)
        _reduce_once(part)
        part += (part + 1) >> 31  # what is P or a little more
        part &= PRIME
    return values


def _reduce_once(values: NDArray[np.int64]) -> Numbers:
    """Replace integers in place by smaller ones that are equal modulo P, since 2**31 is 1.

    Applied twice to integers below 2**63, it leaves at most P + 2.
    """
    high = values >> 31
    values &= PRIME
    values += high
    return values


class Draw:
    """The hash of a person and a group: which of a person's groups, and of their values, count.

    Both numbers, x of the person and y of the group, go through two rounds. The first makes a
    factor m and an addend c of the group: ``t = (y a + b)(y a + b + d) mod P``, m = 1 + t mod (P -
    1), and c likewise from other constants. The hash is ``u (u + e) mod P`` of ``u = (x m + c) mod
    P``. The constants are the key's.

    >>> draw = Draw(b"12345678")
    >>> draw.ranks(np.array([7, 7, 8]), np.array([0, 1, 0])).tolist() == [
    ...     draw.rank(7, 0), draw.rank(7, 1), draw.rank(8, 0)
    ... ]
    True
    """

    constants: tuple[int, ...]

    __slots__ = ("constants",)

    def __init__(self, key: bytes):
        """Derive the seven constants of the hash from a key."""
        words = (
            hashlib.blake2b(bytes([i]), key=key[:64], digest_size=16).digest() for i in range(7)
        )
        self.constants = tuple(1 + int.from_bytes(word, "big") % (PRIME - 1) for word in words)

    @property
    def last(self) -> int:
        """The constant e of the last round, which is the same for all groups."""
        return self.constants[6]

    def find_coefficients(self, groups: Numbers) -> tuple[Numbers, Numbers]:
        """Return a factor m and an addend c of each group. The hash of a person with the number x
        starts with x m + c.

        ``groups`` has the number of each group. m and c are hashes of it, from 1 to P - 1. Of the
        seven constants of the key, three make m and the next three make c.
        """

        def hash_group(constants: tuple[int, ...]) -> Numbers:
            return self._round(groups, *constants) % (PRIME - 1) + 1

        return hash_group(self.constants[:3]), hash_group(self.constants[3:6])

    @staticmethod
    def _round(numbers: Numbers, a: int, b: int, d: int) -> Numbers:
        """Return one round of the hash, (n a + b)(n a + b + d) modulo P, for each number n."""
        u = reduce_modulo(numbers * a + b)
        return reduce_modulo(u * reduce_modulo(u + d))

    def ranks(self, people: Numbers, groups: Numbers) -> Numbers:
        """Return the hash of each person and group, given the number of each."""
        return self.hash_with(people, *self.find_coefficients(groups))

    def hash_with(self, people: Numbers, m: Numbers, c: Numbers) -> Numbers:
        """Return the hash of each person with one group.

        ``people`` has the number x of each person. ``m`` is the factor of the person's group, and
        ``c`` its addend. The hash is u (u + e) modulo P, with u = x m + c and the constant e of the
        key.
        """
        u = people * m
        u += c
        _reduce_once(_reduce_once(u))
        v = _reduce_once(
            u + self.last
        )  # both are at most P + 2 now, and their product is below 2**63
        v *= u
        return reduce_modulo(v)

    def rank(self, person: int, group: int) -> int:
        """Return the hash of one person and group in plain Python, which defines it."""
        a, b, d, f, g, h, e = self.constants
        t, s = group * a + b, group * f + g
        m, c = (1 + one % PRIME % (PRIME - 1) for one in (t * (t + d), s * (s + h)))
        u = person * m + c
        return u * (u + e) % PRIME


# Who each row belongs to -------------------------------------------------------------------------------------


class People:
    """Who each row belongs to: a code, or -1 for nobody; how many people have a row, and what is
    known of each.

    Every code below ``size`` is that of a row, so the size is a function of the set of people who
    are there: neither of the range of their numbers, nor of the categories that nobody has. Codes
    may be of 32 bits. They are `widen` where they are multiplied, and where they are indices,
    which numpy would widen more slowly.
    """

    codes: Codes
    size: int

    def __init__(self, codes: Codes, size: int, columns: list[tuple[Coded, Codes]], key: bytes):
        """Hold who each row belongs to.

        ``codes`` has the number of each row's person below ``size``, -1 for nobody. ``columns`` has
        the cells that name people, and for each person the place of theirs. ``key`` seeds the
        hashes.
        """
        self.codes, self.size = codes, size
        # The values of each column, and for each person the place of theirs.
        self._columns, self._key = columns, key
        self._numbers = np.zeros(size, dtype=np.int64)
        self._numbered = np.zeros(size, dtype=bool)

    def numbers(self, some: Codes) -> Numbers:
        """Return an array with the number of each person, by which groups and values are drawn.

        Only the entries of the people in ``some`` are right.
        """
        new = some[~self._numbered[some]]
        if len(new):
            first, *rest = (
                numbers_of(column.values[places[new]]) for column, places in self._columns
            )
            for more in rest:
                first = combine_numbers(first, more)
            self._numbers[new] = first
            self._numbered[new] = True
        return self._numbers

    def numbers_beyond(self, rows: int) -> Numbers:
        """Return the numbers of people, right at least for those who have more than ``rows`` rows.

        Others are left out if the numbers of texts would take time, or those of many people memory.
        """
        some = np.arange(self.size)
        if any(column.values.dtype == object for column, _ in self._columns) or 4 * self.size > len(
            self.codes
        ):
            own = self.codes if self.codes.min(initial=0) >= 0 else self.codes[self.codes >= 0]
            some = np.flatnonzero(np.bincount(own, minlength=self.size) > rows)
        return self.numbers(some)

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """A hash of 64 bits for each person.

        It tells people of one frame from those of another of the same dtypes.
        """
        first, *rest = (column.hashes()[places] for column, places in self._columns)
        with np.errstate(over="ignore"):
            for more in rest:
                first = _mix_with_key(first * np.uint64(31) + more, self._key)
        return _mix_with_key(first, self._key)


@np.errstate(all="ignore")  # no NaN may raise, whatever the caller has set
def people_of(columns: Sequence[Vector], key: bytes) -> People:
    """Return the people that the cells of one or several columns name.

    ``columns`` have the cells, and ``key`` seeds the hashes of people. A null in any column is
    nobody. So is a cell that is no plain scalar: it would make one person of many. Equal numbers
    are one person, whatever their type.
    """
    codes, column, places = _code_column(columns[0])
    known, people = [(column, places)], len(places)
    for vector in columns[1:]:
        inner, column, places = _code_column(vector)
        size = max(1, len(places))
        wide = np.where((codes < 0) | (inner < 0), -1, widen(codes) * size + inner)
        codes, pairs = number_values(wide, wide < 0)
        known = [(one, at[pairs // size]) for one, at in known] + [(column, places[pairs % size])]
        people = len(pairs)
    return People(codes, people, known, key)


def _code_column(vector: Vector) -> tuple[Codes, Coded, Codes]:
    """Return a code of each cell in a column that names people, its possible values, and for each
    code the index of its value among them.

    Codes are whole numbers from 0 on without gaps. The code of a null is -1, and so is that of a
    cell that is no plain scalar.
    """
    column = encode_values(vector)
    codes = column.codes
    if vector.categories is not None:
        unknown = np.array([c is UNMATCHED for c in vector.categories] + [False])
        codes = np.where(unknown.take(vector.values, mode="wrap"), -1, codes)
    there = np.zeros(column.size + 1, dtype=bool)  # one more, for -1
    there[codes] = True
    there = there[:-1]
    if there.all():
        return codes, column, np.arange(column.size)
    places = np.flatnonzero(there)
    without_gaps = np.full(column.size + 1, -1, dtype=np.int32 if len(places) < 2**31 else np.int64)
    without_gaps[places] = np.arange(len(places))
    found = np.empty(len(codes), dtype=without_gaps.dtype)
    for start in range(0, len(codes), SIZES.block):
        rows = slice(start, start + SIZES.block)
        np.take(without_gaps, codes[rows], mode="wrap", out=found[rows])
    return found, column, places


def widen(codes: Codes) -> NDArray[np.int64]:
    """Return codes in 64 bits."""
    return codes.astype(np.int64, copy=False)


def count_each(codes: Codes, size: int, some: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Return how often each whole number below ``size`` occurs among codes.

    ``some`` is a mask of the rows to count; None is all rows. No other array as long as the rows is
    made.
    """
    found = np.zeros(size, dtype=np.int64)
    for start in range(0, len(codes), SIZES.block):
        rows = slice(start, start + SIZES.block)
        np.add.at(found, widen(codes[rows] if some is None else codes[rows][some[rows]]), 1)
    return found


class Coded(NamedTuple):
    """A code for each cell, -1 for null, and the values that may be: numbers, ticks, or of a
    dictionary what is in it."""

    codes: Codes
    values: Array

    @property
    def size(self) -> int:
        """How many codes there may be."""
        return len(self.values)

    def hashes(self) -> NDArray[np.uint64]:
        """Return a hash of 64 bits for each of the values, which dtype and value alone decide."""
        values = self.values
        if values.dtype == object:  # no text may raise, whatever it holds
            values = objects(text_of_scalar(c).encode("utf-8", "surrogatepass") for c in values)
        return pd.util.hash_array(
            values.view(np.int64) if values.dtype.kind == "M" else values, categorize=False
        )


def encode_values(column: Vector) -> Coded:
    """Return a code for each cell of a column, and the values that the codes stand for.

    The code of a null is -1. Equal numbers have one code.
    """
    if column.categories is not None:
        return _of_categories(column)
    values = column.values
    if values.dtype.kind in "mM":
        values = values.view(np.int64)
    elif values.dtype.kind == "f":
        values = values.astype(np.float64) + 0.0  # -0.0 is 0.0
    codes, uniques = encode_range(values, column.nulls(), 2 * len(values)) or number_values(
        values, column.nulls()
    )
    return Coded(
        codes, uniques.view(column.values.dtype) if column.values.dtype.kind == "M" else uniques
    )


def encode_range(
    values: Array, null: NDArray[np.bool_] | None, most: int
) -> tuple[Codes, Array] | None:
    """Return codes for whole numbers in a narrow range, and the value of each code, from the least
    number to the largest.

    A code is the distance from the least number, so some codes may have no row. The result is None
    if a value is null or no whole number, or if they are much more than ``most`` apart.
    """
    ends = ends_within(values, null, most)
    if ends is None:
        return None
    low, high = ends
    wide = np.uint64 if values.dtype == np.uint64 else np.int64
    whole = values.astype(wide, copy=False)
    # Numbers from 0 on are the column itself.
    codes = (whole - wide(low) if low else whole).astype(np.int64, copy=False)
    uniques = np.arange(high - low + 1, dtype=wide)
    uniques += wide(low)
    return codes, uniques.astype(values.dtype, copy=False)


def ends_within(values: Array, null: NDArray[np.bool_] | None, most: int) -> tuple[int, int] | None:
    """Return the least and the largest of whole numbers that lie in a narrow range.

    Return None if one is null or no whole number, or if they are much more than ``most`` apart.
    """
    if values.dtype.kind not in "iu" or not len(values) or (null is not None and null.any()):
        return None
    ends = side_by_side(lambda rows: (values[rows].min(), values[rows].max()), shares(len(values)))
    low, high = min(int(low) for low, _ in ends), max(int(high) for _, high in ends)
    return (low, high) if high - low <= most + SIZES.table_spare else None


def number_values(values: Array, null: NDArray[np.bool_] | None = None) -> tuple[Codes, Array]:
    """Return a code for each value, -1 for null, and the distinct values.

    They are numbered in order of occurrence. ``null`` is a mask of the nulls; None if there is
    none.
    """
    if null is not None and null.any():
        codes = np.full(len(values), -1, dtype=np.int64)
        codes[~null], uniques = _pandas.factorize(values[~null])
    else:
        codes, uniques = _pandas.factorize(values)
    return codes.astype(np.int64, copy=False), uniques


def _of_categories(column: Vector) -> Coded:
    """Return a code for each cell of a column with a dictionary of categories, and the distinct
    values.

    A dictionary may have one number as 1 and as 1.0, which get one code here. ``table`` maps a
    cell's index in the dictionary to its code.
    """
    assert column.categories is not None
    places: dict[str, int] = {}
    to_place = [places.setdefault(text_of_scalar(c), i) for i, c in enumerate(column.categories)]
    known = np.array(list(places.values()), dtype=np.int64)  # of equal ones the first
    compact = np.zeros(len(to_place) or 1, dtype=np.int64)
    compact[known] = np.arange(len(known))
    # The last one is for null, which is what -1 finds.
    table = np.append(compact[np.array(to_place or [0])], -1)
    return Coded(table.take(column.values, mode="wrap"), column.categories[known])


def text_of_scalar(cell: object) -> str:
    """Return a text of a scalar that a dictionary may hold, the same for equal scalars."""
    if isinstance(cell, bool | int | float | Decimal) and cell == cell:
        return f"number {number_text(cell)}"
    return f"{type(cell).__name__} {cell!s}"


def _mix_with_key(hashes: NDArray[np.uint64], key: bytes) -> NDArray[np.uint64]:
    """Return hashes whose bits are mixed with a key, so that nobody without it can compute them."""
    salt = np.uint64(int.from_bytes(key[:8].ljust(8, b"\1"), "little") | 1)
    with np.errstate(over="ignore"):
        mixed: NDArray[np.uint64] = (hashes ^ (hashes >> np.uint64(29))) * salt
    return mixed ^ (mixed >> np.uint64(32))


class Pairs(NamedTuple):
    """The (person, group) pairs that have rows: the pair of each row, and of each pair its group
    and its rows."""

    of_row: Array
    # Where each pair stands in the arrays that `of_row` counts into; None: one after the other.
    places: Array | None
    size: int
    person: Array
    group: Array
    rows: Array
    table: bool = False  # those arrays have a row a person and a column a group

    @property
    def at(self) -> slice | Array:
        """Where the pairs stand in such an array."""
        return slice(None) if self.places is None else self.places


def pairs_of(person: Codes, group: Array | None, people: int, groups: int) -> Pairs:
    """Return the pairs of a person and a group that have rows, and the pair of each row.

    ``person`` and ``group`` have a number for each row, below ``people`` and ``groups``. If
    ``group`` is None, all rows are one group. A pair's number is person * groups + group. If most
    of these numbers have no row, the pairs that have one are numbered anew.
    """
    wide: Codes = person if group is None else widen(person) * groups + group
    size = people * groups
    if size > 4 * len(wide) + SIZES.table_spare:
        uniques, of_row, rows = _number_occurring(widen(wide), size)
        person, group = _narrow(uniques // groups), _narrow(uniques % groups)
        return Pairs(of_row, None, len(uniques), person, group, _narrow(rows))
    rows = count_each(wide, size)
    places = np.flatnonzero(rows)
    if group is None:  # each person is a pair
        own = _narrow(places)
        return Pairs(
            wide, own, size, own, np.zeros(len(own), np.uint8), _narrow(rows[places]), table=True
        )
    return Pairs(
        _narrow(wide),
        _narrow(places),
        size,
        _narrow(places // groups),
        _narrow(places % groups),
        _narrow(rows[places]),
        table=True,
    )


def _number_occurring(wide: Codes, size: int) -> tuple[Codes, Array, NDArray[np.int64]]:
    """Return the distinct numbers of all rows in order, the index of each row's number among them,
    and how often each occurs.

    ``wide`` has a number for each row, below ``size``.
    """
    bits = max(len(wide) - 1, 1).bit_length()
    if (size - 1).bit_length() + bits > 62:
        uniques, of_row, rows = np.unique(wide, return_inverse=True, return_counts=True)
        return uniques, _narrow(of_row), rows
    # With its row in the low bits a number sorts twice as fast as by argsort, and tells where it
    # came from.
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


def _narrow(codes: Array) -> Array:
    """Return the numbers in as little memory as they take, so that more of them can be kept."""
    if not len(codes) or int(codes.max()) >= 2**32:
        return codes
    return codes.astype(np.min_scalar_type(int(codes.max())))
