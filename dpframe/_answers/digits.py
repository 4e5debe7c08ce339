"""The digits of a number that its noise leaves: two of half the width of its interval.

One rule serves single numbers, the cells of answers and tidy tables.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from dpframe._plans.durations import count_decimals, format_moment, halve_interval

_LOPSIDED = 1.5  # times half of the interval, from which on its farther end is shown
_MOMENT = pd.Timedelta | pd.Timestamp


def count_digits(half: float) -> int:
    """Return how many decimals show two digits of half the width of an interval."""
    return max(0, min(300, 1 - math.floor(math.log10(half)))) if half > 0 else 0


def split_interval(value: Any, low: Any, high: Any, whole: bool = False) -> tuple[str, str]:
    """Return a number, and how far its interval reaches, as texts: ``41.20`` and ``0.50``.

    That is half of the width of the interval, or the distance to its farther end where the number
    is far from the middle.

    ``low`` and ``high`` are the ends of the interval. A ``whole`` number has no decimals, and its
    half width is rounded up. Durations and times have the decimals of their seconds.
    """
    if isinstance(low, _MOMENT):
        decimals = count_decimals(low, high)
        width = format_moment(halve_interval(low, high), decimals)
        return format_moment(value, decimals), width
    value, half = float(value), float(high - low) / 2
    farther = max(high - value, value - low)
    if farther > _LOPSIDED * half:
        half = float(farther)
    if abs(value) >= 1e15 or half >= 1e15:
        return f"{value:.6g}", f"{half:.3g}"
    if whole or (value.is_integer() and float(low).is_integer() and float(high).is_integer()):
        return f"{value:.0f}", f"{math.ceil(half - 1e-9)}"  # 1 ± 0.5 would be written as 1 ± 0
    if half == 0:
        return f"{value:.12g}", "0"
    digits = count_digits(half)
    return f"{value + 0.0:.{digits}f}", f"{half:.{digits}f}"


def align_texts(texts: list[str], pad: str, point: str) -> list[str]:
    """Return numbers as texts of one width, with their decimal points below each other.

    ``pad`` is as wide as a digit, and ``point`` as wide as a decimal point.
    """
    parts = [text.partition(".") for text in texts]
    before = max(len(whole) for whole, _, _ in parts)
    after = max(len(decimals) for _, _, decimals in parts)
    dotted = any(dot for _, dot, _ in parts)
    return [
        pad * (before - len(whole))
        + whole
        + (dot or point * dotted)
        + decimals
        + pad * (after - len(decimals))
        for whole, dot, decimals in parts
    ]
