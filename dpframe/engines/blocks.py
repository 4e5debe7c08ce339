"""Sums over a block of rows that few questions ask for, or that a kernel adds up: what goes to the
totals of each group.

A bucket is one more than the group of a row, or 0 for none. Every number of a block is a whole
number in a double, and so is every partial sum, as `dpframe.engines.pandas` has it.
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
)

Buckets = NDArray[Any]  # 0: no group; g + 1: group g


def shape_of(p: Primitive, groups: int) -> tuple[int, ...]:
    if isinstance(p, Leaves):
        return p.points, groups
    if isinstance(p, Magnitudes):
        return MAGNITUDES, 1
    return (4, groups) if isinstance(p, Products) else (groups,)


def add_values(values: NDArray[Any], buckets: Buckets, grid: Grid, total: Integers) -> None:
    """What `add_powers` makes of values that `steps_of` has put on a grid, by a kernel that reads
    them once."""
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
    total[0] += np.bincount(places, minlength=total.shape[1] + 1)[1:]
    for row, weights in enumerate((a, b, a * b), start=1):
        sums = np.bincount(places, weights=weights, minlength=total.shape[1] + 1)[1:]
        total[row] += sums.astype(np.int64)


def add_magnitudes(vector: Vector, mask: NDArray[np.bool_] | None, total: Integers) -> None:
    at = magnitude(vector.values, vector.nulls())
    if mask is not None:
        at = at[mask]
    total[:, 0] += np.bincount(at[at >= 0], minlength=len(total))


def magnitude(values: NDArray[Any], null: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """The bin of each number: 0 in the middle, (2**(j-1), 2**j] above and their mirror images
    below; -1 for no value."""
    x = values.astype(np.float64)
    missing = np.isnan(x) if null is None else null | np.isnan(x)
    x[missing] = 0.0
    part, power = np.frexp(np.minimum(np.abs(x), 2.0**LARGEST_POWER))
    power = power - (part == 0.5)
    steps = np.where(np.abs(x) <= 2.0**LEAST_POWER, 0, power - LEAST_POWER)
    places = MAGNITUDES // 2 + np.where(x < 0, -steps, steps)
    places[missing] = -1
    return places.astype(np.int64)
