"""People drawn by coins: who takes part in a step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms import _sampling

_COIN = 16  # binary digits of a sampling rate


def rate_of(wanted: float) -> int:
    """A probability in units of 2**-16: the nearest one, and no smaller than one unit."""
    return max(1, round(wanted * (1 << _COIN)))


def coins(rate: int, size: int) -> NDArray[Any]:
    """Independent coins, each true with probability rate / 2**16, exactly."""
    drawn = np.frombuffer(_sampling.random_bytes(2 * size), dtype="<u2")
    thrown: NDArray[Any] = drawn < rate
    return thrown
