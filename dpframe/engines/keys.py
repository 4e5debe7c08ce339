"""Keys that nobody listed: the values of a column as text, numbered in the order of that text's value.

*Formal guarantee.* The text of a cell is a function of that cell and the dtype. Equal values have one text, so that a key is
released in one form, whichever of the equal cells came first. The order of two keys' numbers is that of the keys, whatever
else is in the frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.columns import UNMATCHED, Vector
from dpframe._expr import Expr

Codes = NDArray[np.int64]
Texts = list[tuple[str, ...]]
_LARGEST = 2**1000  # of a number that may be a key


class Coded(NamedTuple):
    """Of each row a place in a table that has the number of its key, or -1 there; of each key its text, and a hash of it."""

    places: NDArray[Any]
    table: Codes
    texts: NDArray[Any]
    hashes: NDArray[np.uint64]

    @property
    def codes(self) -> Codes:
        """The number of each row's key; -1 where it has none."""
        return np.take(self.table, self.places, mode="wrap")

    def counts(self) -> NDArray[np.int64]:
        """How many rows have each key, without a number for every row."""
        of_place = np.bincount(self.places + 1, minlength=len(self.table))[1:]  # place -1 is a null
        counts = np.zeros(len(self.texts), dtype=np.int64)
        proper = self.table[:-1] >= 0
        np.add.at(counts, self.table[:-1][proper], of_place[proper])
        return counts


def coded(vector: Vector) -> Coded:
    """A null, and a cell that cannot be a key, has none."""
    if vector.categories is not None:
        texts = _texts(vector.categories.tolist())
        proper = {t for t in texts if t is not None}
        ordered = sorted(proper, key=_order) if vector.kind == "label" else sorted(proper)
        places = {t: i for i, t in enumerate(ordered)}
        return _numbered(vector.values, [-1 if t is None else places[t] for t in texts], ordered)
    values, null = vector.values, vector.nulls()
    if values.dtype.kind == "f":
        values = values.astype(np.float64) + 0.0  # -0.0 is 0.0
    if null is None:
        codes, uniques = pd.factorize(values)
    else:
        codes = np.full(len(values), -1, dtype=np.int64)
        codes[~null], uniques = pd.factorize(values[~null])
    order = np.argsort(uniques, kind="stable")
    written = _times(uniques[order]) if vector.kind == "time" else map(text_of, uniques[order].tolist())
    named = [(place, text) for place, text in zip(order, written, strict=True) if text is not None]
    table = np.full(len(uniques), -1, dtype=np.int64)
    table[[place for place, _ in named]] = np.arange(len(named))
    return _numbered(codes, table, [text for _, text in named])


def _texts(cells: list[Any]) -> list[str | None]:
    if all(type(c) is str for c in cells):
        try:
            "".join(cells).encode()
        except UnicodeEncodeError:
            return [text_of(c) for c in cells]
        return [f"s{c}" for c in cells]
    return [text_of(c) for c in cells]


def _times(uniques: NDArray[Any]) -> list[str | None]:
    """Ticks with their unit. None outside of the years 1 to 9999, and within two days of where the ticks of the unit end: in
    some zone such a time cannot be read back."""
    unit = np.datetime_data(uniques.dtype)[0]
    day = int(np.timedelta64(1, "D") / np.timedelta64(1, unit))  # type: ignore[call-overload]  # a unit of the column
    first, last = -719_161 * day, 2_932_895 * day  # 0001-01-02 and 9999-12-30
    ends = 2**63 - 2 * day
    return [
        f"t{tick} {unit}" if max(first, -ends) <= tick <= min(last, ends) else None
        for tick in uniques.astype(np.int64).tolist()
    ]


def _numbered(codes: NDArray[Any], places: Any, texts: list[str]) -> Coded:
    table = np.append(np.asarray(places, dtype=np.int64), -1)
    found = np.array(texts, dtype=object)
    return Coded(codes, table, found, pd.util.hash_array(found, categorize=False))


def _order(text: str) -> tuple[str, Any, str]:
    """Numbers by their value, all else by its text."""
    return ("n", Fraction(text[1:]), text) if text[0] in "nd" else (text[0], 0, text)


def text_of(cell: Any) -> str | None:
    """What `key_of` reads back as an equal key; None of what cannot be a key. Never an error."""
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
    return None


def _moment(cell: Any) -> str | None:
    """A time of a year with four digits, in a zone whose distance from UTC has no seconds: no other can be read back."""
    if not 1 <= cell.year <= 9999:
        return None
    text = cell.isoformat()
    try:
        same = bool(pd.Timestamp(text) == cell)
    except (ValueError, OverflowError):
        return None
    return f"m{text}" if same else None


def _interval(cell: Any) -> str | None:
    """Between doubles: whole numbers that are none, and times, have no text."""
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
    if isinstance(
        cell, Decimal
    ):  # whose own arithmetic raises where its exponents end, and takes long before that
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
    return f"d{cell.normalize(Context(prec=len(cell.as_tuple().digits)))}"  # without zeros at the end


def key_of(text: str, tz: Any = None) -> Any:
    """The key that a text stands for; times are in this zone."""
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
    closed, left, right = rest.split()
    return pd.Interval(float(left), float(right), closed)  # type: ignore[arg-type]  # as it was written


@dataclass(frozen=True, slots=True, eq=False)
class Occurring:
    """Group by the values that occur, before anybody knows which: the bucket of each row, and a hash of each value."""

    exprs: tuple[Expr, ...]
    buckets: Codes
    hashes: NDArray[np.uint64]
    token: ClassVar[str] = ""
    word: ClassVar[None] = None

    @property
    def index(self) -> pd.Index[Any]:
        """The places of the values: only their number is of use."""
        return pd.RangeIndex(len(self.hashes))

    def to_json(self) -> object:
        raise AssertionError("what occurs is no part of a question")


def together(columns: list[Coded]) -> tuple[Codes, Texts, NDArray[np.uint64]]:
    """The combinations that occur: numbered in the order of their parts, each with its texts and a hash."""
    codes, hashes = columns[0].codes, columns[0].hashes
    places: list[Codes] = [np.arange(len(columns[0].texts))]
    for one in columns[1:]:
        size = max(1, len(one.texts))
        wide = np.where((codes < 0) | (one.codes < 0), -1, codes * size + one.codes)
        uniques, found = np.unique(wide, return_inverse=True)
        first = int(len(uniques) > 0 and uniques[0] < 0)
        codes, uniques = found - first, uniques[first:]
        outer, inner = uniques // size, uniques % size
        with np.errstate(over="ignore"):
            hashes = hashes[outer] * np.uint64(0x9E3779B97F4A7C15) + one.hashes[inner]
        places = [*(p[outer] for p in places), inner]
    texts = list(zip(*(c.texts[p].tolist() for c, p in zip(columns, places, strict=True)), strict=True))
    return codes, texts, hashes
