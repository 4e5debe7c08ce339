"""Durations: measured as seconds, and shown as durations. Post-processing of noisy numbers, by public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._errors import BadType

_LAST = 2**63 - 2**10  # a double, within what a Timedelta holds
_UNITS: dict[str, int] = {"ns": 10**9, "us": 10**6}  # the finest first
_FINE = 4.0  # seconds, of which 2**31 rows together are still whole nanoseconds


def unit_of(lower: float, upper: float) -> str:
    """The unit in which numbers of seconds between these bounds, and their sums, are shown: microseconds, or nanoseconds where
    nobody has more than some seconds."""
    return "ns" if max(abs(lower), abs(upper)) < _FINE else "us"


def shown(
    seconds: NDArray[Any], lower: float, upper: float, towards: Literal["nearest", "down", "up"] = "nearest"
) -> NDArray[Any]:
    """Numbers of seconds as durations; those beyond what a Timedelta holds (292,471 years, or 292 in nanoseconds) as the last
    that it holds, and NaN as NaT. Ends of intervals are rounded outwards."""
    unit = unit_of(lower, upper)
    rounded = {"nearest": np.rint, "down": np.floor, "up": np.ceil}[towards]
    with np.errstate(all="ignore"):
        ticks = rounded(np.asarray(seconds, dtype=np.float64) * _UNITS[unit])
        whole = np.clip(np.nan_to_num(ticks, nan=0.0), -_LAST, _LAST).astype(np.int64)
    found: NDArray[Any] = whole.astype(f"timedelta64[{unit}]")
    found[np.isnan(ticks)] = np.timedelta64("NaT")
    return found


def in_seconds(column: Any) -> NDArray[np.float64]:
    """The numbers of a column, of durations those of seconds: what bounds and noise are in."""
    array = np.asarray(column)
    if array.dtype.kind == "m":
        seconds: NDArray[np.float64] = array / np.timedelta64(1, "s")
        return seconds
    if array.dtype == object:  # durations beside numbers
        flat = [v.total_seconds() if isinstance(v, pd.Timedelta) else v for v in array.ravel()]
        return np.array([np.nan if v is pd.NaT or v is None else v for v in flat], dtype=float).reshape(
            array.shape
        )
    return array.astype(float)


def check_alike(outputs: Sequence[Any]) -> None:
    """Refuses durations in one column with numbers, which a table has side by side."""
    if len({out.duration for out in outputs}) > 1:
        names = [repr(out.name) for out in outputs if out.duration]
        raise BadType(
            f"{names[0]} is a duration, and would stand in one column with numbers. Ask the two apart, or make it a number: "
            "p[...].dt.total_seconds()."
        )


def together(columns: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Columns whose cells are to stand one below the other: durations in the coarsest of their units, in which none is too long;
    beside numbers all are objects, as in pandas."""
    durations = [column.dtype.kind == "m" for column in columns]
    if not all(durations) and any(durations):
        return [
            np.array([pd.Timedelta(v) for v in column] + [None], dtype=object)[:-1]
            if is_duration
            else column.astype(object)
            for column, is_duration in zip(columns, durations, strict=True)
        ]
    kinds = {str(column.dtype) for column in columns if column.dtype.kind == "m"}
    return list(columns) if len(kinds) < 2 else [column.astype("timedelta64[us]") for column in columns]
