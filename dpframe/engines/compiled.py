"""Sums over people by compiled kernels, with the extra ``fast``: sooner and in less memory.

*Formal guarantee.* The integers are those that `dpframe.engines.limits` defines, in whatever order
the rows stand and in however many threads they are read. Each part of the people is added up by
itself, and integers are added. Whether kernels are used depends on the installation and on the
number of rows, and only time depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

from dpframe._cells.codec import Buckets
from dpframe._cells.threads import shares, side_by_side, split_blocks
from dpframe._expr import Expr
from dpframe._sizes import SIZES
from dpframe._statistics.base import Integers, Persons, Powers, Primitive, Rows, Trues
from dpframe._statistics.engine import Scope
from dpframe._types import Array
from dpframe.engines.keys import Occurring
from dpframe.engines.people import Draw, Numbers, People, widen
from dpframe.engines.reading import QuestionReader

WIDEST = 2**31 - 2  # of a grid: values are kept in 32 bits
HIGHEST = 2  # power that the kernels sum

# From some rows to the numbers of their groups, one more than the group or 0, and to their values.
ReadBuckets = Callable[[slice], Array]
PutValues = Callable[[slice, Array], object]  # into an array, NaN for a null


def available(rows: int) -> bool:
    """Return whether the compiled kernels work and pay for a table with this number of rows."""
    return rows >= SIZES.kernel_rows and kernels_work()


@cache
def load_kernels() -> ModuleType:
    """Return the module of kernels. It imports numba, which takes a while."""
    return import_module("dpframe.engines.people_kernels")


@cache
def kernels_work() -> bool:
    """Return whether numba is installed and compiles the kernels correctly.

    They are tried on one row of one person. The answer is kept for later calls.
    """
    if find_spec("numba") is None:
        return False
    one = People(np.zeros(1, np.int64), 1, [], b"")
    zero = SummedValues(lambda rows, values: values.fill(0.0), HIGHEST, 1)
    try:
        read = SortedRows(one, lambda rows: np.ones(1, np.int32), [zero])
        rows, people, powers = read.sum(1, 1, 1, Draw(b""), np.arange(1))
    except Exception:  # numba cannot compile here, or cannot keep what it compiled
        return False
    return [rows.tolist(), people.tolist(), powers[0].tolist()] == [[1], [1], [[1], [0], [0]]]


def sum_people(
    read: QuestionReader,
    scope: Scope,
    primitives: set[Primitive],
    people: People,
    buckets: Buckets | None,
    limit: int,
    most: int,
) -> dict[Primitive, Integers]:
    """Return the sums over people that the compiled kernels can compute, by primitive.

    A primitive is a sum that was asked for, such as a number of rows or powers of a column. Those
    that are missing from the result need the slower sums of `dpframe.engines.person_sums`.
    ``people`` has the person of each row. ``buckets`` has one more than the group of each row, 0
    for no group; None is one group of all rows. A person counts with at most ``limit`` rows in a
    group, and in at most ``most`` groups.
    """
    groups = scope.groups
    values = {p: one for p in primitives if (one := find_values(p, read)) is not None}
    counts = {p for p in primitives if isinstance(p, Rows | Persons)}
    if groups > len(people.codes) or not (values or counts):
        return {}
    conditions = [] if scope.where is None else [scope.where]
    read.read_columns([*conditions, *(p.expr for p in values if isinstance(p, Trues | Powers))])
    by = scope.by[0] if scope.by else None
    places = by.numbers() if isinstance(by, Occurring) else np.arange(groups)
    by_person = SortedRows(people, bucket_reader(read, buckets, conditions), [*values.values()])
    rows, persons, powers = by_person.sum(groups, limit, most, Draw(read.table.key), places)
    found: dict[Primitive, Integers] = {p: rows if isinstance(p, Rows) else persons for p in counts}
    for p, sums in zip(values, powers, strict=True):
        found[p] = sums[0] if isinstance(p, Trues) else sums
    return found


def bucket_reader(
    read: QuestionReader, buckets: Buckets | None, conditions: list[Expr]
) -> ReadBuckets:
    """Return a function that reads one more than the group of each row in a slice.

    It reads 0 for a row of no group, and for a row where one of the ``conditions`` does not hold.
    ``buckets`` has one more than the group of every row; None is one group of all rows.
    """

    def read_buckets(rows: slice) -> Array:
        """Return one more than the group of each row, 0 where a condition does not hold."""
        found = np.ones(rows.stop - rows.start, np.int32)
        if buckets is not None:
            found[:] = buckets[rows]
        for condition in conditions:
            found[~read.select(condition, rows)] = 0
        return found

    return read_buckets


@dataclass(frozen=True, slots=True)
class SummedValues:
    """Values and the highest power to sum: whole numbers up to a width, NaN for a null."""

    put: PutValues
    degree: int
    width: int


def find_values(p: Primitive, read: QuestionReader) -> SummedValues | None:
    """Return the values that a primitive adds up; None if the kernels cannot sum it.

    A primitive is a sum that was asked for. The kernels count where a condition holds, and sum
    powers of numbers up to the second.
    """
    if isinstance(p, Trues):
        condition = p.expr

        def put_truth(rows: slice, values: Array) -> None:
            values[:] = np.where(read.select(condition, rows), 0.0, np.nan)

        return SummedValues(put_truth, 0, 0)
    if not isinstance(p, Powers) or p.degree > HIGHEST:
        return None
    expr, grid = p.expr, p.grid

    def put(rows: slice, values: Array) -> None:
        read.put_steps(expr, grid, rows, values)

    width = 0 if grid is None else grid.width
    return SummedValues(put, p.degree, width) if width <= WIDEST else None


class SortedRows:
    """The rows of one question, which are sorted by parts of the people and then added up."""

    def __init__(self, people: People, buckets: ReadBuckets, values: list[SummedValues]):
        """Prepare to sort the rows of one question by parts of the people.

        A part has the people whose numbers begin alike, few enough for the processor's cache.
        ``buckets`` reads one more than the group of each row, and ``values`` lists what is summed.
        Each thread gets a share of the rows.
        """
        self._people, self._buckets, self._values = people, buckets, values
        size = max(people.size, 1)
        parts = min(SIZES.people_parts, max(1, len(people.codes) // SIZES.people_rows))
        self._shift = max(0, (size - 1).bit_length() - (parts - 1).bit_length())
        self._parts = ((size - 1) >> self._shift) + 1
        self._threads = list(enumerate(shares(len(people.codes), SIZES.people_thread_rows)))

    def sum(
        self, groups: int, limit: int, most: int, draw: Draw, places: Numbers
    ) -> tuple[Integers, Integers, list[Integers]]:
        """Return the rows of each group, its people, and the sums of powers for each of the values.

        A person counts with at most ``limit`` rows in a group, and in at most ``most`` groups.
        ``draw`` chooses these groups, and ``places`` has the numbers by which groups are drawn.
        """
        kernels = load_kernels()
        counts = self._count_parts()
        # The numbers are found before rows are copied, since that counts the rows of each person.
        numbers = self._people.numbers_beyond(most) if most < groups else np.zeros(0, np.int64)
        placed = self._place_rows(counts)
        choice = kernels.GroupChoice(most, numbers, *draw.find_coefficients(places), draw.last)
        kinds, values = len(self._values), self._values
        powers = kernels.PowerSums(
            np.array([one.degree for one in values], np.int64),
            np.array([one.width for one in values], np.int64),
        )

        def add(ends: tuple[int, int]) -> Any:
            """Return the sums of each group over some parts of the people.

            ``ends`` are the first part and the one after the last.
            """
            sums = kernels.GroupSums(
                np.zeros(groups, np.int64),
                np.zeros(groups, np.int64),
                np.zeros((kinds, HIGHEST + 1, groups), np.int64),
            )
            kernels.add_people(*ends, self._shift, placed, powers, choice, limit, sums)
            return sums

        cuts = np.linspace(0, self._parts, 4 * len(self._threads) + 1).astype(np.int64)
        found = side_by_side(add, list(pairwise(np.unique(cuts).tolist())))
        rows, people, sums = (np.sum(one, axis=0) for one in zip(*found, strict=True))
        return rows, people, [sums[i, : one.degree + 1] for i, one in enumerate(values)]

    def _count_parts(self) -> Array:
        """Return how many rows each thread's share has in each part of the people.

        The result has a row for each thread and a column for each part.
        """
        counts = np.zeros((len(self._threads), self._parts), np.int64)
        codes, count = self._people.codes, load_kernels().count_parts

        def count_share(one: tuple[int, slice]) -> None:
            for rows in split_blocks(one[1]):
                count(widen(codes[rows]), max(self._people.size, 1), self._shift, counts[one[0]])

        side_by_side(count_share, self._threads)
        return counts

    def _place_rows(self, counts: Array) -> Any:
        """Return the rows of the question sorted by parts of the people.

        ``counts`` has the rows of each thread in each part, so that threads write to places of
        their own.
        """
        kernels, codes = load_kernels(), self._people.codes
        ends = np.cumsum(counts.T.ravel()).reshape(self._parts, len(counts)).T
        begins = np.ascontiguousarray(ends - counts)
        following = begins.copy()
        cells = np.empty((int(counts.sum()), 2 + len(self._values)), np.int32)

        def place_share(one: tuple[int, slice]) -> None:
            """Write the rows of one thread's share to their places in the sorted ``cells``.

            ``one`` has the number of the thread and its rows. ``following`` has the next free
            place of each part of the people, for each thread.
            """
            values = np.empty((len(self._values), SIZES.block))
            for rows in split_blocks(one[1]):
                for summed, room in zip(self._values, values, strict=True):
                    summed.put(rows, room[: rows.stop - rows.start])
                own, size = widen(codes[rows]), max(self._people.size, 1)
                buckets = self._buckets(rows)
                kernels.place_rows(
                    own, size, buckets, values, self._shift, following[one[0]], cells
                )

        side_by_side(place_share, self._threads)
        return kernels.PlacedRows(begins, following, cells)
