"""The texts of keys that nobody listed: from a cell to its text, and back.

*Formal guarantee.* The text of a cell is a function of that cell and the dtype. Equal values have
one text, so that a key is released in one form, whichever of the equal cells came first.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from decimal import Context, Decimal
from fractions import Fraction
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from dpframe._cells.columns import UNMATCHED
from dpframe._types import Array

_LARGEST = 2**1000  # of a number that may be a key


def texts_of(cells: list[Any]) -> list[str | None]:
    """Return the text that each cell is written as when it is a key; None for what cannot be a key.

    The result is that of `text_of` for each cell, and sooner if all cells are strings.
    """
    if {*map(type, cells)} <= {str}:
        try:
            "".join(cells).encode()
        except UnicodeEncodeError:
            return [text_of(c) for c in cells]
        return list(map("s".__add__, cells))
    return [text_of(c) for c in cells]


def text_of(cell: object) -> str | None:
    """Return the text that a cell is written as when it is a key; None if it cannot be a key.

    `key_of` reads it back as an equal key. It never raises.
    """
    if cell is None or cell is UNMATCHED:
        return None
    if isinstance(cell, str):
        try:
            cell.encode()
        except UnicodeEncodeError:
            return None  # no key may be half of a character
        return f"s{cell}"
    if isinstance(cell, bool):
        return f"b{int(cell)}"
    if isinstance(cell, int | float | Decimal):
        return _number(cell)
    if isinstance(cell, pd.Timestamp):
        return _moment(cell)
    if isinstance(cell, pd.Interval):
        return _interval(cell)
    return f"p{cell.freqstr} {cell.ordinal}" if isinstance(cell, pd.Period) else None


def _moment(cell: pd.Timestamp) -> str | None:
    """Return the text of a time that is a key; None if it cannot be read back.

    Its year must have four digits, and its zone a distance from UTC in whole minutes.
    """
    if not 1 <= cell.year <= 9999:
        return None
    text = cell.isoformat()
    try:
        same = bool(pd.Timestamp(text) == cell)
    except (ValueError, OverflowError):
        return None
    return f"m{text}" if same else None


def _interval(cell: Any) -> str | None:
    """Return the text of an interval between doubles that is a key; None for other intervals."""
    ends = []
    for end in (cell.left, cell.right):
        if (
            not isinstance(end, int | float)
            or isinstance(end, bool)
            or abs(end) > _LARGEST
            or float(end) != end
        ):
            return None
        ends.append(float(end) + 0.0)  # -0.0 is 0.0
    return f"i{cell.closed} {ends[0]!r} {ends[1]!r}"


def _number(cell: Any) -> str | None:
    """Return the text of a number that is a key; None if it is not finite or too large.

    Equal numbers have one text, whatever their type.
    """
    if isinstance(cell, Decimal):
        # The arithmetic of Decimal raises where its exponents end, and takes long before that.
        digits, exponent = cell.as_tuple()[1:]
        if (
            not isinstance(exponent, int)
            or not -1200 < exponent <= cell.adjusted() < 400
            or len(digits) > 1200
        ):
            return "n0" if cell.is_finite() and not cell else None
    if cell != cell or not abs(cell) < _LARGEST:
        return None
    if type(cell) is int:
        return f"n{cell}"
    exact = Fraction(cell)
    if exact.denominator == 1:
        return f"n{exact.numerator}"
    if Fraction(float(cell)) == exact:
        return f"n{float(cell)!r}"
    return (
        f"d{cell.normalize(Context(prec=len(cell.as_tuple().digits)))}"  # without zeros at the end
    )


def keys_of(texts: Sequence[str], tz: object = None) -> list[Any]:
    """Return the key that each text stands for, as `key_of` does; times are in the zone ``tz``.

    Whole numbers are read at once.
    """
    if {*map(itemgetter(0), texts)} == {"n"}:
        with suppress(ValueError):  # some are none
            return [int(text[1:]) for text in texts]
    return [key_of(text, tz) for text in texts]


def key_of(text: str, tz: Any = None) -> Any:
    """Return the key that a text written by `text_of` or `times` stands for.

    The first character says what it is. Times without a zone in their text are put into the zone
    ``tz``.
    """
    kind, rest = text[0], text[1:]
    if kind == "s":
        return rest
    if kind == "b":
        return rest == "1"
    if kind == "n":
        if rest.lstrip("-").isdigit():
            return int(rest)
        return float(rest)
    if kind == "d":
        return Decimal(rest)
    if kind == "t":
        tick, unit = rest.split()
        stamp = pd.Timestamp(np.datetime64(int(tick), unit))  # type: ignore[call-overload]  # a unit of the column
        return stamp if tz is None else stamp.tz_localize("UTC").tz_convert(tz)
    if kind == "m":
        return pd.Timestamp(rest)
    if kind == "p":
        freq, ordinal = rest.split()
        return pd.Period(ordinal=int(ordinal), freq=freq)
    closed, left, right = rest.split()
    return pd.Interval(float(left), float(right), closed)  # type: ignore[arg-type]  # as it was written


def times(uniques: Array) -> list[str | None]:
    """Return the text of each time that is a key: its ticks with their unit.

    A time is None outside of the years 1 to 9999, and within two days of the last ticks of the
    unit. In some zone it could not be read back.
    """
    unit = np.datetime_data(uniques.dtype)[0]
    day = int(np.timedelta64(1, "D") / np.timedelta64(1, unit))  # type: ignore[call-overload]  # a unit of the column
    first, last = -719_161 * day, 2_932_895 * day  # 0001-01-02 and 9999-12-30
    ends = 2**63 - 2 * day
    return [
        f"t{tick} {unit}" if max(first, -ends) <= tick <= min(last, ends) else None
        for tick in uniques.astype(np.int64).tolist()
    ]


def order_of(text: str) -> tuple[str, Any, str]:
    """Return what the text of a key is sorted by: numbers by value, all others by text."""
    if text[0] == "p":
        return "p", int(text.split()[1]), text
    return ("n", Fraction(text[1:]), text) if text[0] in "nd" else (text[0], 0, text)
