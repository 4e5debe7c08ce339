"""Sums over a block of rows: values on their grid, products, counts by bucket."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.columns import Vector
from dpframe._statistics.base import (
    LARGEST_POWER,
    LEAST_POWER,
    MAGNITUDES,
    Grid,
    Integers,
    Leaves,
    Magnitudes,
    Powers,
    Primitive,
    Products,
    to_grid,
)

Buckets = NDArray[Any]  # 0: no group; g + 1: group g


def shape_of(p: Primitive, groups: int) -> tuple[int, ...]:
    if isinstance(p, Powers):
        return p.degree + 1, groups
    if isinstance(p, Leaves):
        return p.points, groups
    if isinstance(p, Magnitudes):
        return MAGNITUDES, 1
    return (4, groups) if isinstance(p, Products) else (groups,)


def steps_of(vector: Vector, grid: Grid, mask: NDArray[np.bool_] | None) -> NDArray[np.float64]:
    """The values of the rows that are asked about on their grid, from the lower bound; NaN for nulls."""
    a = np.array(vector.values if mask is None else vector.values[mask], dtype=np.float64)
    to_grid(a, a, grid)
    null = vector.nulls()
    if null is not None:
        a[null if mask is None else null[mask]] = np.nan
    return a


def add_magnitudes(vector: Vector, mask: NDArray[np.bool_] | None, total: Integers) -> None:
    at = magnitude(vector.values, vector.nulls())
    if mask is not None:
        at = at[mask]
    total[:, 0] += np.bincount(at[at >= 0], minlength=len(total))


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
    if buckets.dtype == np.uint8 and len(buckets) >= 2**18:
        # Two neighbours read as one number of 16 bits: half as many to count, and each pair counts for both.
        even = len(buckets) & ~1
        pairs = np.bincount(buckets[:even].view(np.uint16), minlength=2**16).reshape(256, 256)
        counts = pairs.sum(axis=0) + pairs.sum(axis=1)
        for odd in buckets[even:]:
            counts[odd] += 1
        return np.asarray(counts[1 : groups + 1])
    return np.bincount(buckets, minlength=groups + 1)[1:]


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
