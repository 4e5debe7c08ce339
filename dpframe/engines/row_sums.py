"""Sums over rows: where each row is a person, what the rows of each group add up to.

Rows are handled in blocks that stay in the processor's cache. In a block every number is a whole
number in a double: values are below 2**31, and their powers below 2**30. A block has at most 2**21
rows, so each partial sum is below 2**53 and exact in any order. Sums of blocks are added as int64.

A bucket is one more than the group of a row, or 0 for a row of no group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe._cells import threads
from dpframe._cells.codec import Buckets
from dpframe._cells.threads import side_by_side
from dpframe._expr import Expr, looks_within
from dpframe._groups.keys import groups_of
from dpframe._sizes import SIZES
from dpframe._statistics.base import (
    LARGEST_POWER,
    LEAST_POWER,
    MAGNITUDES,
    Bids,
    Integers,
    Leaves,
    Magnitudes,
    Persons,
    Powers,
    Primitive,
    Products,
    Rows,
    Trues,
)
from dpframe._statistics.engine import Scope
from dpframe._types import Array
from dpframe.engines.groups import GroupFinder, count_buckets
from dpframe.engines.reading import Bools, Floats, FrameReader, QuestionReader, put_steps

Sums = dict[Primitive, Integers]


def sum_rows(
    table: FrameReader, finder: GroupFinder, scope: Scope, primitives: set[Primitive]
) -> Sums:
    """Return the sums of each primitive over the rows of each group, where each row is a person.

    A primitive is a sum that was asked for, such as rows or powers of a column. ``scope`` has the
    filter and the groups, and ``finder`` finds the group of each row.
    """
    rows, groups, buckets = table.rows, 1, None
    if scope.by:
        groups, buckets = groups_of(scope.by), finder.find_buckets(scope.by)
    summed = [p for p in primitives if not isinstance(p, Rows | Persons | Bids)]
    sums: Sums = {}
    if summed or scope.where is not None:
        question = RowSums(QuestionReader(table), scope.where, groups, buckets, summed)
        if rows < 2 * SIZES.thread_rows:
            counts, sums = question.sum_share(slice(0, rows))
        else:
            counts, sums = question.sum_in_threads()
    if scope.where is None:  # the rows of each group are known and were not counted
        counts = np.array([rows]) if buckets is None else finder.count_rows(scope.by, buckets)
    for p, total in sums.items():
        if isinstance(p, Powers):
            total[0] += counts  # from which rows without a value were subtracted
    for p in primitives:
        if isinstance(p, Rows | Persons | Bids):
            sums[p] = counts.copy()
    return sums


@dataclass(slots=True)
class RowSums:
    """The sums of one question over rows: what to read, and how to add up a share of the rows."""

    read: QuestionReader
    where: Expr | None
    groups: int
    buckets: Buckets | None
    primitives: Sequence[Primitive]

    def sum_in_threads(self) -> tuple[Integers, Sums]:
        """Return the rows of each group and the sums over all rows, added up by several threads.

        One thread is used if totals are large, and for values within a person, which need all rows
        of the person.
        """
        exprs = [] if self.where is None else [self.where]
        for p in self.primitives:
            exprs += [getattr(p, name) for name in ("expr", "other") if hasattr(p, name)]
        points = max([p.points for p in self.primitives if isinstance(p, Leaves)], default=1)
        if points * self.groups > SIZES.thread_sums or any(map(looks_within, exprs)):
            return self.sum_share(slice(0, self.read.table.rows))
        self.read.read_columns(exprs)
        found = side_by_side(self.sum_share, threads.shares(self.read.table.rows))
        counts = np.sum([one for one, _ in found], axis=0)
        return counts, {p: np.sum([sums[p] for _, sums in found], axis=0) for p in found[0][1]}

    def sum_share(self, share: slice) -> tuple[Integers, Sums]:
        """Return the rows of each group if there is a filter, and the sums, of a share of the rows.

        Powers are summed without their count of rows: only rows without a value are subtracted. The
        caller adds the rows of each group.
        """
        counts = np.zeros(self.groups, np.int64)
        sums: Sums = {}
        for p in self.primitives:
            sums[p] = np.zeros(ADDERS[type(p)].shape(p, self.groups), np.int64)
        step, size = SIZES.block, share.stop - share.start
        if size > step:
            largest = max([total.size for total in sums.values()], default=1)
            step = min(SIZES.sum_block, max(SIZES.block, 4 * largest))
        scratch = np.empty(min(step, size))
        for start in range(share.start, share.stop, step):
            rows, mask = slice(start, min(start + step, share.stop)), None
            buckets = None if self.buckets is None else self.buckets[rows]
            if self.where is not None:
                mask = self.read.select(self.where, rows)
                if buckets is None:
                    counts += np.count_nonzero(mask)
                else:
                    buckets = buckets[mask]
                    counts += count_buckets(buckets, self.groups)
            block = RowBlock(self.read, rows, mask, buckets, self.groups, scratch)
            for p, total in sums.items():
                ADDERS[type(p)].add(p, block, total)
        return counts, sums


@dataclass(slots=True)
class RowBlock:
    """The rows of a block that pass the filter: a mask of them, and the bucket of each."""

    read: QuestionReader
    rows: slice
    mask: Bools | None  # None if all rows pass
    buckets: Buckets | None  # None if there is one group
    groups: int
    scratch: Floats

    def count(self, chosen: Bools) -> Integers | int:
        """Return how many rows of each group are ``chosen``.

        It is a mask of the rows of the block that pass the filter. The result is a single number if
        there is one group.
        """
        if self.buckets is None:
            return int(np.count_nonzero(chosen))
        return count_buckets(self.buckets[chosen], self.groups)


# What a block adds to the total of each primitive ------------------------------------------------


def add_powers(p: Powers, block: RowBlock, total: Integers) -> None:
    """Add the powers of a block's values to the total of each group, from the first power on.

    The caller counts rows into `total[0]`. Here rows without a value are subtracted from it.
    """
    vector, buckets = block.read.evaluate(p.expr, block.rows), block.buckets
    if p.grid is None:
        null = vector.nulls()
        if null is not None:
            total[0] -= block.count(null if block.mask is None else null[block.mask])
        return
    a = put_steps(vector, p.grid, block.mask, block.scratch)
    top = float(a.sum())
    if top != top:  # the sum is NaN if any value is
        missing = np.flatnonzero(np.isnan(a))
        if buckets is None:
            total[0] -= len(missing)
        else:
            total[0] -= count_buckets(buckets[missing], block.groups)
        a[missing] = 0.0  # adds nothing to any power
    power = a
    if buckets is None:
        total[1] += int(top if top == top else a.sum())
        for degree in range(2, len(total)):
            total[degree] += int(power @ a)
            power = power * a if degree + 1 < len(total) else a
        return
    places = buckets.astype(np.intp)
    for degree in range(1, len(total)):
        sums = np.bincount(places, weights=power, minlength=total.shape[1] + 1)[1:]
        total[degree] += sums.astype(np.int64)
        power = power * a if degree + 1 < len(total) else a


def add_trues(p: Trues, block: RowBlock, total: Integers) -> None:
    """Add the rows of a block where a condition holds to the total of each group."""
    true = block.read.select(p.expr, block.rows)
    total += block.count(true if block.mask is None else true[block.mask])


def add_leaves(p: Leaves, block: RowBlock, total: Integers) -> None:
    """Add how many values of a block lie at each point of their grid to the total.

    ``total`` has a row for each point and a column for each group.
    """
    vector, buckets = block.read.evaluate(p.expr, block.rows), block.buckets
    a = put_steps(vector, p.grid, block.mask, block.scratch)
    points, groups = total.shape
    null = np.isnan(a)
    if null.any():
        a, buckets = a[~null], None if buckets is None else buckets[~null]
    places = a.astype(np.intp)
    if buckets is None:
        total[:, 0] += np.bincount(places, minlength=points)
        return
    places *= groups + 1  # one more for the rows of no group
    places += buckets
    counts = np.bincount(places, minlength=points * (groups + 1))
    total += counts.reshape(points, groups + 1)[:, 1:]


def add_products(p: Products, block: RowBlock, total: Integers) -> None:
    """Add the sums that two columns of a block have together to the total of each group.

    They are the rows that have both values, and the sums of a, of b and of a * b.
    """
    one, two = (block.read.evaluate(expr, block.rows) for expr in (p.expr, p.other))
    a = put_steps(one, p.grid, block.mask, block.scratch)
    b = put_steps(two, p.other_grid, block.mask, np.empty(len(block.scratch)))
    valid = ~(np.isnan(a) | np.isnan(b))
    a, b = a[valid], b[valid]
    if block.buckets is None:
        total[:, 0] += np.array([len(a), int(a.sum()), int(b.sum()), int(a @ b)])
        return
    places = block.buckets[valid].astype(np.intp)
    total[0] += np.bincount(places, minlength=total.shape[1] + 1)[1:]
    for row, weights in enumerate((a, b, a * b), start=1):
        sums = np.bincount(places, weights=weights, minlength=total.shape[1] + 1)[1:]
        total[row] += sums.astype(np.int64)


def add_magnitudes(p: Magnitudes, block: RowBlock, total: Integers) -> None:
    """Add how many values of a block have each size to the total.

    `find_magnitude_bins` defines the sizes.
    """
    vector = block.read.evaluate(p.expr, block.rows)
    at = find_magnitude_bins(vector.values, vector.nulls())
    at = at if block.mask is None else at[block.mask]
    total[:, 0] += np.bincount(at[at >= 0], minlength=len(total))


class Adder(NamedTuple):
    """The shape of the sums of a primitive, and a function that adds a block to them."""

    shape: Callable[[Any, int], tuple[int, ...]]  # from the primitive and the number of groups
    add: Callable[[Any, RowBlock, Integers], None]


ADDERS: dict[type, Adder] = {
    Powers: Adder(lambda p, groups: (p.degree + 1, groups), add_powers),
    Trues: Adder(lambda p, groups: (groups,), add_trues),
    Products: Adder(lambda p, groups: (4, groups), add_products),
    Leaves: Adder(lambda p, groups: (p.points, groups), add_leaves),
    Magnitudes: Adder(lambda p, groups: (MAGNITUDES, 1), add_magnitudes),
}


def find_magnitude_bins(values: Array, null: Bools | None) -> NDArray[np.int64]:
    """Return the bin of each number by its size, or -1 for no value.

    Bins are powers of two, so that they tell about how large numbers are. Numbers near 0 are in the
    middle bin. The bins (2**(j-1), 2**j] are above it, and their mirror images below.
    """
    x = values.astype(np.float64)
    missing = np.isnan(x) if null is None else null | np.isnan(x)
    x[missing] = 0.0
    part, power = np.frexp(np.minimum(np.abs(x), 2.0**LARGEST_POWER))
    power = power - (part == 0.5)
    steps = np.where(np.abs(x) <= 2.0**LEAST_POWER, 0, power - LEAST_POWER)
    places = MAGNITUDES // 2 + np.where(x < 0, -steps, steps)
    places[missing] = -1
    return places.astype(np.int64)
