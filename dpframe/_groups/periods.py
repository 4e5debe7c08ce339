"""Periods of time between public end points: pandas' own bins and labels for the range that was
declared. No data."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.codec import ticks_of
from dpframe._errors import BadType, BadValue, DPError, NotOffered
from dpframe._expr import Expr
from dpframe._groups.keys import GROUP_CEILING, Word, types_of
from dpframe._identity import give_tag
from dpframe._types import Index

TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # per second
Side = Literal["left", "right"]
# Periods that pandas lets end with the last moment of a day.
_WHOLE_DAYS = (
    "BME",
    "ME",
    "W",
    "BQE",
    "BYE",
    "QE",
    "YE",
)


@give_tag("span")
class Span(NamedTuple):
    """First and last possible moment of a time column, both included, as text that pandas reads
    back exactly."""

    first: str
    last: str

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"


def span_of(pair: object, name: object) -> Span:
    """Return the declared bounds of a time column, checked, as its first and last possible moment.

    A last date without a time of day includes that whole day, as in pandas' slices. ``name`` is the
    column, for the error.
    """
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise BadType(f"bounds of {name!r} must be a pair of dates.")
    try:
        lower, upper = (pd.Timestamp(p) for p in pair)
        ordered = bool(lower <= upper)
        upper = _last_moment(upper) if ordered and _is_day(pair[1]) else upper
        exact = not ordered or all(pd.Timestamp(p.isoformat()) == p for p in (lower, upper))
    except (TypeError, ValueError, OverflowError):
        raise BadType(
            f"bounds of {name!r} must be two dates, both with a time zone or neither."
        ) from None
    if not ordered or not exact:
        raise BadValue(f"bounds of {name!r} are reversed or not dates.")
    return Span(lower.isoformat(), upper.isoformat())


def _is_day(bound: object) -> bool:
    if isinstance(bound, str):
        return re.fullmatch(r"\s*\d{4}-?\d{2}-?\d{2}\s*", bound) is not None
    return isinstance(bound, date) and not isinstance(bound, datetime)


def _last_moment(day: pd.Timestamp) -> pd.Timestamp:
    """Return the last moment of a day, in nanoseconds, or in microseconds for years that need
    them."""
    for unit in ("ns", "us"):  # years beyond 2262 have no nanoseconds
        try:
            last: pd.Timestamp = (day + pd.Timedelta(days=1)).as_unit(unit) - pd.Timedelta(
                1, unit=unit
            ).as_unit(unit)
        except (OverflowError, ValueError):
            continue
        return last
    return day


def ends_of(span: Span, zone: str | None) -> tuple[int, int] | None:
    """Return the ends of a declared range of times in nanoseconds since 1970.

    They are in UTC if the column has the time zone ``zone``. Return None if an end is no moment in
    that zone.
    """
    try:
        ends = [ticks_of(end) for end in in_zone(span, zone, "")]
    except DPError:  # which is said where it is asked for
        return None
    low, high = (ticks * (TICKS["ns"] // TICKS[unit]) for ticks, unit in ends)
    return low, high


def in_zone(span: Span, zone: str | None, name: object) -> tuple[pd.Timestamp, pd.Timestamp]:
    """Return the ends of a declared range of times in the time zone of the column.

    ``zone`` is None for a column without one, and ``name`` is for the error. Ends without a zone
    are local times of the column's zone.
    """
    lower, upper = pd.Timestamp(span.first), pd.Timestamp(span.last)
    if lower.tz is not None and zone is None:
        raise BadType(f"the bounds of {name!r} have a time zone, and the column does not.")
    if zone is None:
        return lower, upper
    if lower.tz is not None:
        return lower.tz_convert(zone), upper.tz_convert(zone)
    try:
        return lower.tz_localize(zone), upper.tz_localize(zone)
    except ValueError:
        raise BadValue(
            f"a bound of {name!r} is no moment, or two, in {zone}: write it with its offset."
        ) from None


class Periods:
    """Consecutive periods of time with public edges.

    The edges are in ticks of ``unit``, and ``side`` is where periods are closed. ``lower`` and
    ``upper`` limit the range, and ``index`` has the labels.
    """

    identity: ClassVar[tuple[str, ...]] = (
        "periods",
        "edges",
        "unit",
        "side",
        "lower",
        "upper",
        "index",
    )

    edges: NDArray[np.int64]
    index: pd.DatetimeIndex
    lower: tuple[int, str]
    token: str
    unit: str
    upper: tuple[int, str]

    __slots__ = ("code", "edges", "index", "lower", "side", "token", "unit", "upper")

    def __init__(
        self,
        edges: NDArray[np.int64],
        unit: str,
        side: Side,
        lower: tuple[int, str],
        upper: tuple[int, str],
        index: pd.DatetimeIndex,
    ):
        """Keep consecutive periods of time, and compute the token that identifies them.

        ``edges`` are in ticks of ``unit`` and one more than the periods. ``side`` is where these
        are closed. ``lower`` and ``upper`` are the ends of the range, as ticks with their unit.
        ``index`` has the labels.
        """
        self.edges, self.unit, self.side, self.lower, self.upper, self.index = (
            edges,
            unit,
            side,
            lower,
            upper,
            index,
        )
        self.code: bytes | None = None
        labels = f"{index.dtype}|{index.name!r}|{index.freqstr}".encode() + index.asi8.tobytes()
        text = edges.tobytes() + f"|{unit}|{side}|{lower}|{upper}|".encode() + labels
        self.token = hashlib.blake2b(text, digest_size=16).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Periods) and self.token == other.token

    def __hash__(self) -> int:
        return hash(self.token)


@dataclass(frozen=True, slots=True)
class TimeBy:
    """Grouping by periods of time; rows outside the declared range, and nulls, belong to no
    group."""

    identity: ClassVar[tuple[str, ...]] = ("by_periods", "expr", "freq", "span", "periods")

    expr: Expr
    freq: str
    span: Span
    periods: Periods

    @property
    def token(self) -> str:
        return self.periods.token

    @property
    def index(self) -> Index:
        return self.periods.index

    @property
    def word(self) -> Word:
        return Word(
            "bins", f"{self.expr}: {len(self.index)} of {self.freq} within {self.span}", "groups"
        )

    def __str__(self) -> str:
        return f"{self.expr} in {len(self.index)} periods of {self.freq}"


class Rule(NamedTuple):
    """The arguments about periods of pandas' resample and Grouper, checked."""

    freq: Any
    closed: Side
    label: Side


def rule_of(grouper: Any) -> Rule:
    """Return the frequency and the sides of a ``pd.Grouper`` with freq=, after refusing what is not
    supported."""
    if (
        not (isinstance(grouper.origin, str) and grouper.origin == "start_day")
        or grouper.offset is not None
    ):
        raise NotOffered(
            "origin= and offset= would move the periods off the calendar. They begin at midnight of the first declared "
            "day: declare another first moment, or choose another freq=."
        )
    if grouper.level is not None:
        raise NotOffered(
            "level= groups by an index, which a tracked frame has not. Name a column: key='t'."
        )
    if not grouper.dropna:
        raise NotOffered(
            "null times are in no period: leave dropna=False out, or count them: p['t'].isna()."
        )
    if grouper.freq.n < 1:
        raise BadValue(f"freq={grouper.freq.freqstr!r} does not go forward.")
    return Rule(grouper.freq, grouper.closed, grouper.label)


def grouper_for(
    freq: Any, key: Hashable, closed: Any, label: Any, origin: Any, offset: Any
) -> pd.Grouper:
    """Return a ``pd.Grouper`` of these arguments; an error of pandas becomes an error of
    dpframe."""
    if freq is None or isinstance(freq, bool | int | float):
        raise BadType(
            f"a frequency is a string such as 'ME' or 'D', or an offset of pandas, not {type(freq).__name__}."
        )
    try:
        with warnings.catch_warnings():
            # What pandas would only warn of is refused below, whatever its version.
            warnings.simplefilter("ignore")
            return pd.Grouper(
                key=key, freq=freq, closed=closed, label=label, origin=origin, offset=offset
            )
    except (ValueError, TypeError, AttributeError, NotImplementedError) as error:
        raise BadValue(f"pandas knows no such periods: {error}") from None


def periods_of(rule: Rule, span: Span, zone: str | None, unit: str, name: Hashable) -> Periods:
    """Return the periods that pandas' resample would make of a frame spanning exactly a declared
    range.

    ``rule`` has the frequency and the sides, ``span`` the range, ``zone`` the time zone of the
    column or None. ``unit`` is the unit of its times, and ``name`` its name. Labels, order and freq
    are pandas' own.

    A last period in which no moment of the range lies is left out.
    """
    return _known_periods(rule, span, zone, unit, name, types_of(name))


@lru_cache(maxsize=64)
def _known_periods(
    rule: Rule, span: Span, zone: str | None, unit: str, name: Hashable, types: object
) -> Periods:
    """Compute the periods of `periods_of`, and cache recent ones.

    ``types`` has the types of the name, so that names which Python holds for equal are cached
    apart.
    """
    lower, upper = in_zone(span, zone, name)
    _refuse_too_many(rule, lower, upper)
    try:
        ends = pd.DatetimeIndex([_floor(lower, unit), _floor(upper, unit)], tz=lower.tz).as_unit(
            _unit(unit)
        )
        left, right = (_labels(ends, rule, side) for side in ("left", "right"))
        index = (left if rule.label == "left" else right).rename(name)
        edges, side = _edges(pd.DatetimeIndex(left.append(right[-1:])), rule)
    except (ValueError, TypeError, ArithmeticError, AttributeError, NotImplementedError) as error:
        raise BadValue(
            f"pandas makes no periods of {rule.freq.freqstr!r} in this range: {type(error).__name__}."
        ) from None
    if len(edges) != len(index) + 1 or (np.diff(edges) <= 0).any():
        raise NotOffered(
            f"periods of {rule.freq.freqstr!r} do not follow each other in this range. Choose another freq=."
        )
    ticks, tick_unit = _ticks(upper)
    top = ticks * TICKS[unit] // TICKS[tick_unit]
    # Where the range ends with the last moment of a day, pandas adds a month that begins after it.
    reached = int(np.searchsorted(edges[:-1], top, side="right" if side == "left" else "left"))
    return Periods(edges[: reached + 1], unit, side, _ticks(lower), _ticks(upper), index[:reached])


def _refuse_too_many(rule: Rule, lower: pd.Timestamp, upper: pd.Timestamp) -> None:
    """Refuse a frequency that would divide the range into more periods than fit in memory.

    The number is estimated before pandas is asked to make them.
    """
    (first, first_unit), (last, last_unit) = _ticks(lower), _ticks(upper)
    seconds = last / TICKS[last_unit] - first / TICKS[first_unit]
    # The shortest that pandas has.
    step = 86_400.0 if "hour" not in type(rule.freq).__name__.lower() else 3_600.0
    if isinstance(rule.freq, pd.offsets.Tick):
        step = (
            rule.freq.nanos / 1e9
        )  # of less than a microsecond pandas 3.0 says that it has no seconds
    if seconds / step > GROUP_CEILING:
        raise BadValue(
            f"periods of {rule.freq.freqstr!r} in this range are more than {GROUP_CEILING}. Choose longer ones."
        )


def _labels(ends: pd.DatetimeIndex, rule: Rule, side: Side) -> pd.DatetimeIndex:
    frame: pd.Series[int] = pd.Series([0, 0], index=ends)
    labels: Any = frame.resample(rule.freq, closed=rule.closed, label=side).size().index
    assert isinstance(labels, pd.DatetimeIndex)
    return labels


def _edges(bounds: pd.DatetimeIndex, rule: Rule) -> tuple[NDArray[np.int64], Side]:
    """Return the edges of periods in ticks, and the side on which the periods are closed.

    A month or a week that is closed on the right ends with the last moment of its last day.
    """
    if rule.closed == "left":
        return bounds.asi8, "left"
    if rule.freq.rule_code.split("-")[0] not in _WHOLE_DAYS:
        return bounds.asi8, "right"
    tick = pd.Timedelta(1, unit=bounds.unit).as_unit(bounds.unit)
    last = bounds.tz_localize(None) + pd.Timedelta(days=1).as_unit(bounds.unit) - tick
    return last.tz_localize(
        bounds.tz
    ).asi8 + 1, "left"  # after the last moment: where the next one begins


def _ticks(moment: pd.Timestamp) -> tuple[int, str]:
    plain: Any = (moment if moment.tz is None else moment.tz_convert(None)).asm8
    return int(plain.astype(np.int64)), np.datetime_data(plain.dtype)[0]


def _floor(moment: pd.Timestamp, unit: str) -> pd.Timestamp:
    ticks, tick_unit = _ticks(moment)
    whole = np.datetime64(ticks * TICKS[unit] // TICKS[tick_unit], _unit(unit))
    floored = pd.Timestamp(whole)
    return floored if moment.tz is None else floored.tz_localize("UTC").tz_convert(moment.tz)


def _unit(unit: str) -> Any:
    return unit


def unit_for(dtype: object) -> str:
    """Return the unit in which a column counts time, such as ``"ns"``, from its dtype."""
    if isinstance(dtype, pd.ArrowDtype):
        arrow_unit = getattr(dtype.pyarrow_dtype, "unit", None)
        return arrow_unit if arrow_unit in TICKS else "s"
    unit = getattr(dtype, "unit", None) or (
        np.datetime_data(dtype)[0] if isinstance(dtype, np.dtype) else "us"
    )
    return unit if unit in TICKS else "us"
