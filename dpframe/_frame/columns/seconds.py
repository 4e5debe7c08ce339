"""Durations and times as numbers of seconds, between public bounds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from dpframe import _expr, _validate
from dpframe._answers.estimate import DurationEstimate, TimeEstimate
from dpframe._errors import BadType, BadValue, MissingBounds
from dpframe._expr import Expr
from dpframe._groups.periods import ends_of, in_zone, span_of
from dpframe._plans.aggregates import Aggregate
from dpframe._plans.durations import format_origin
from dpframe._validate import Bounds

if TYPE_CHECKING:
    from dpframe._frame.selection import Selection

# Answers about these columns are the two estimates.
__all__ = ["DurationEstimate", "Seconds", "TimeEstimate", "convert_to_seconds"]


# Between these moments every zone has a wall time that Python can write.
_FIRST, _LAST = pd.Timestamp("0001-01-02", tz="UTC"), pd.Timestamp("9999-12-30", tz="UTC")
# The longest duration in nanoseconds, and the last moment since 1970: 292 years in 64 bits.
_NANOSECONDS = 2**63 - 1


class Seconds(NamedTuple):
    """A column as numbers of seconds, with their bounds.

    ``origin`` is the moment that seconds of a time count from, and empty for a duration.
    """

    expr: Expr
    bounds: Bounds
    origin: str = ""


def convert_to_seconds(
    selection: Selection, one: Aggregate, expr: Expr, name: Hashable, given: object
) -> Seconds:
    """Return a duration, or a time since its first possible moment, in seconds.

    ``one`` is the aggregate that is asked. ``expr`` is the column, and ``name`` its name.

    The bounds are those ``given`` to the verb, or follow from the declared ones.
    """
    if isinstance(given, Mapping):
        given = selection.by_column(given).get(name)
    origin = ""
    if expr.kind == "time":
        expr, given, origin = _measure_from_first(selection, one, expr, name, given)
    if given is not None:
        low, high = _validate.durations(given, repr(name))
        pair: tuple[float, float] = low / 10**9, high / 10**9
    else:
        known = _expr.seconds_between(expr, selection.ends)
        if known is None:
            raise MissingBounds(
                f"{name!r} needs public bounds, which are durations: bounds=('0D', '30D') here, or "
                "those of its times, open(..., bounds={'t': ('2025-01-01', '2025-12-31')}), once. "
                "They are never inferred from the data."
            )
        pair = known
    return Seconds(_expr.call("dt.total_seconds", expr), _validate.bounds(pair, repr(name)), origin)


def _measure_from_first(
    selection: Selection, one: Aggregate, expr: Expr, name: Hashable, given: object
) -> tuple[Expr, Any, str]:
    """Return a time as the duration since its first possible moment, and that moment.

    ``one`` is the aggregate that is asked. ``given`` are the bounds of the verb, which come back as
    durations. It is None for the declared ones.
    """
    if not one.of_times:
        selection.bounds(expr, name, None)  # raises, and names the verbs that times have
    ends = expr.interval(selection.ends) if given is None else _read_ends(given, name, expr.tz)
    if ends is None:
        raise MissingBounds(
            f"{name!r} needs a public first and last moment: bounds=('2024-01-01', '2024-12-31') "
            f"here, or open(..., bounds={{{name!r}: ('2024-01-01', '2024-12-31')}}) once. They are "
            "never taken from the data."
        )
    _check_nanoseconds(selection, expr, name, *ends)
    zone = None if expr.tz is None else "UTC"
    first, last = (pd.Timestamp(int(end) // 1000, unit="us", tz=zone) for end in ends)
    if zone is not None and not (_FIRST <= first <= last <= _LAST):
        raise BadValue(
            f"{name!r} may be anything from {first} to {last}, and moments are shown in {expr.tz} "
            f"from {_FIRST.date()} to {_LAST.date()}. Say what they can be: "
            "bounds=('1900-01-01', '2100-12-31')."
        )
    since = _expr.operate_on_times("-", expr, _expr.constant(first))
    plain = first.tz_localize(None)
    return (
        since,
        None if given is None else (pd.Timedelta(0), last - first),
        format_origin(plain, expr.tz),
    )


def _check_nanoseconds(
    selection: Selection, expr: Expr, name: Hashable, first: float, last: float
) -> None:
    """Refuse bounds of times in nanoseconds whose differences do not fit into 64 bits.

    Such differences would be null, and an answer would leave these times out. The unit of a column
    is part of its dtype, which is public.
    """
    dtypes = selection.schema.dtypes
    fine = any(
        "[ns" in str(dtypes[leaf.position]) for leaf in expr.columns() if leaf.kind == "time"
    )
    if fine and (first < -_NANOSECONDS or min(last, _NANOSECONDS) - first > _NANOSECONDS):
        raise BadValue(
            f"{name!r} is in nanoseconds, which reach from 1677 to 2262, and 292 years from one "
            "moment to another; its bounds are further apart. Say what the times can be, "
            "bounds=('1970-01-01', '2100-12-31'), or open the frame with "
            f"df.astype({{{name!r}: 'datetime64[us{'' if expr.tz is None else f', {expr.tz}'}]'}})."
        )


def _read_ends(given: Any, name: Hashable, zone: str | None) -> tuple[int, int] | None:
    """Return the ends of given bounds in nanoseconds, in UTC where the column has a zone.

    As in pandas, text is read in that zone, and a Timestamp brings its own.
    """
    span = span_of(given, name)
    naive = [
        pd.Timestamp(end)
        for end in given
        if not isinstance(end, str) and pd.Timestamp(end).tz is None
    ]
    if zone is not None and naive:
        line = ", ".join(f"pd.Timestamp({str(pd.Timestamp(end))!r}, tz={zone!r})" for end in given)
        raise BadType(
            f"{name!r} has the time zone {zone}, and these bounds have none. Write "
            f"bounds=({line}), or both as text, which is read in that zone."
        )
    in_zone(span, zone, name)  # raises if they do not fit the zone
    return ends_of(span, zone)
