"""Sums over a block of rows: what is added to the totals of each group.

A bucket is one more than the group of a row, or 0 for none. Every number of a block is a whole number in a double, and so is
every partial sum (`dpframe.engines.pandas`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._cells import kernels
from dpframe._cells.columns import Vector
from dpframe._statistics.base import (
    LARGEST_POWER,
    LEAST_POWER,
    MAGNITUDES,
    Grid,
    Integers,
    Leaves,
    Magnitudes,
    Primitive,
    Products,
    to_grid,
)

BLOCK = 2**16
Buckets = NDArray[Any]  # 0: no group; g + 1: group g


def shape_of(p: Primitive, groups: int) -> tuple[int, ...]:
    if isinstance(p, Leaves):
        return p.points, groups
    if isinstance(p, Magnitudes):
        return MAGNITUDES, 1
    return (4, groups) if isinstance(p, Products) else (groups,)


def steps_of(
    vector: Vector, grid: Grid, mask: NDArray[np.bool_] | None, scratch: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The values of the rows that are asked about on their grid, from the lower bound, in `scratch`; NaN for nulls."""
    values, null = vector.values, vector.null
    if mask is not None:
        values, null = values[mask], null if null is None else null[mask]
    a = scratch[: len(values)]
    if values.dtype != np.float64:
        np.copyto(a, values, casting="unsafe")
        values = a
    to_grid(values, a, grid)
    if null is not None:
        a[null] = np.nan
    return a


def add_powers(a: NDArray[np.float64], buckets: Buckets | None, total: Integers) -> None:
    """Adds the powers of `a`; how many rows there are is added by the caller, and those of no value are left out here."""
    top = float(a.sum())
    if top != top:  # a NaN anywhere makes the sum one
        (missing,) = np.isnan(a).nonzero()
        total[0] -= len(missing) if buckets is None else tally(buckets[missing], total.shape[1])
        a[missing] = 0.0  # which adds nothing to any power
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


def add_values(values: NDArray[Any], buckets: Buckets, grid: Grid, total: Integers) -> None:
    """What `add_powers` makes of values that `steps_of` has put on a grid, by a kernel that reads them once."""
    if values.dtype.kind == "i":
        values = values.astype(np.int64, copy=False)
    elif values.dtype != np.float64:
        values = values.astype(np.float64)
    (lower, upper), scale = grid.bounds, 2.0**grid.exponent
    kernels.kernel(kernels.add_steps)(values, buckets, lower, upper, scale, float(grid.low), total)


def add_leaves(a: NDArray[np.float64], buckets: Buckets | None, total: Integers) -> None:
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


def add_products(
    a: NDArray[np.float64], b: NDArray[np.float64], buckets: Buckets | None, total: Integers
) -> None:
    valid = ~(np.isnan(a) | np.isnan(b))
    a, b = a[valid], b[valid]
    if buckets is None:
        total[:, 0] += np.array([len(a), int(a.sum()), int(b.sum()), int(a @ b)])
        return
    places = buckets[valid].astype(np.intp)
    total[0] += tally(places, total.shape[1])
    for row, weights in enumerate((a, b, a * b), start=1):
        sums = np.bincount(places, weights=weights, minlength=total.shape[1] + 1)[1:]
        total[row] += sums.astype(np.int64)


def tally(buckets: Buckets, groups: int) -> Integers:
    """How many rows are in each bucket but the first."""
    if kernels.at_hand(len(buckets)):
        found = np.zeros(groups + 1, dtype=np.int64)
        kernels.kernel(kernels.count_buckets)(buckets, found)
        return found[1:]
    if buckets.dtype == np.uint8 and len(buckets) >= 2**18:
        # Two neighbours read as one number of 16 bits: half as many to count, and each pair counts for both.
        even, pairs = len(buckets) & ~1, np.zeros(2**16, dtype=np.int64)
        for start in range(0, even, BLOCK):
            some = buckets[start : min(start + BLOCK, even)].view(np.uint16)
            np.add.at(pairs, some.astype(np.intp), 1)
        counts = pairs.reshape(256, 256).sum(axis=0) + pairs.reshape(256, 256).sum(axis=1)
        for odd in buckets[even:]:
            counts[odd] += 1
        return np.asarray(counts[1 : groups + 1])
    return np.bincount(buckets, minlength=groups + 1)[1:]


def add_magnitudes(vector: Vector, mask: NDArray[np.bool_] | None, total: Integers) -> None:
    at = magnitude(vector.values, vector.nulls())
    if mask is not None:
        at = at[mask]
    total[:, 0] += np.bincount(at[at >= 0], minlength=len(total))


def magnitude(values: NDArray[Any], null: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """The bin of each number: 0 in the middle, (2**(j-1), 2**j] above and their mirror images below; -1 for no value."""
    x = values.astype(np.float64)
    missing = np.isnan(x) if null is None else null | np.isnan(x)
    x[missing] = 0.0
    part, power = np.frexp(np.minimum(np.abs(x), 2.0**LARGEST_POWER))
    power = power - (part == 0.5)
    steps = np.where(np.abs(x) <= 2.0**LEAST_POWER, 0, power - LEAST_POWER)
    places = MAGNITUDES // 2 + np.where(x < 0, -steps, steps)
    places[missing] = -1
    return places.astype(np.int64)
