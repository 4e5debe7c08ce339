"""The bins of magnitudes: into which power of two each number falls, and how many do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.columns import Vector
from dpframe._statistics.base import LARGEST_POWER, LEAST_POWER, MAGNITUDES, Integers


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
