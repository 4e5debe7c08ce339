"""What is measured of durations and of times: their seconds, between public bounds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from dpframe import _expr, _validate
from dpframe._answers.estimate import DurationEstimate, TimeEstimate
from dpframe._errors import BadType, BadValue, MissingBounds
from dpframe._expr import Expr
from dpframe._groups.periods import ends_of, in_zone, span_of
from dpframe._plans.aggregates import Aggregate
from dpframe._plans.durations import format_origin
from dpframe._validate import Bounds

# The estimates are what answers of these columns are.
__all__ = ["DurationEstimate", "Seconds", "TimeEstimate", "in_seconds"]


# Between these every zone has a wall time that Python can write, whichever way its clocks go.
_FIRST, _LAST = pd.Timestamp("0001-01-02", tz="UTC"), pd.Timestamp("9999-12-30", tz="UTC")
# Nanoseconds have 64 bits, for moments since 1970 and for durations: 292 years.
_NANOSECONDS = 2**63 - 1


class Seconds(NamedTuple):
    """Numbers of seconds with their bounds, and the moment that those of a time are counted from;
    empty of a duration."""

    expr: Expr
    bounds: Bounds
    origin: str = ""


def in_seconds(selection: Any, one: Aggregate, expr: Expr, name: Hashable, given: Any) -> Seconds:
    """The seconds of a duration, or of a time since the first moment that it can be, with the
    bounds that a verb is given, or those that follow from the declared ones."""
    if isinstance(given, Mapping):
        given = selection.by_column(given).get(name)
    origin = ""
    if expr.kind == "time":
        expr, given, origin = _since_first(selection, one, expr, name, given)
    if given is not None:
        low, high = _validate.durations(given, repr(name))
        pair: tuple[float, float] = low / 10**9, high / 10**9
    else:
        known = _expr.seconds_between(expr, selection.ends)
        if known is None:
            raise MissingBounds(
                f"{name!r} needs public bounds, which are durations: bounds=('0D', '30D') here, or those of its times, "
                "open(..., bounds={'t': ('2025-01-01', '2025-12-31')}), once. They are never inferred from the data."
            )
        pair = known
    return Seconds(_expr.call("dt.total_seconds", expr), _validate.bounds(pair, repr(name)), origin)


def _since_first(
    selection: Any, one: Aggregate, expr: Expr, name: Hashable, given: Any
) -> tuple[Expr, Any, str]:
    """How long after the first moment that it can be a time is, with its bounds if they are given,
    and that moment."""
    if not one.of_times:
        selection.bounds(expr, name, None)  # says what there is
    ends = expr.interval(selection.ends) if given is None else _ends(given, name, expr.tz)
    if ends is None:
        raise MissingBounds(
            f"{name!r} needs a public first and last moment: bounds=('2024-01-01', '2024-12-31') here, or open(..., "
            f"bounds={{{name!r}: ('2024-01-01', '2024-12-31')}}) once. They are never taken from the data."
        )
    _check_nanoseconds(selection, expr, name, *ends)
    zone = None if expr.tz is None else "UTC"
    first, last = (pd.Timestamp(int(end) // 1000, unit="us", tz=zone) for end in ends)
    if zone is not None and not (_FIRST <= first <= last <= _LAST):
        raise BadValue(
            f"{name!r} may be anything from {first} to {last}, and moments are shown in {expr.tz} from {_FIRST.date()} to "
            f"{_LAST.date()}. Say what they can be: bounds=('1900-01-01', '2100-12-31')."
        )
    since = _expr.operate_on_times("-", expr, _expr.constant(first))
    plain = first.tz_localize(None)
    return (
        since,
        None if given is None else (pd.Timedelta(0), last - first),
        format_origin(plain, expr.tz),
    )


def _check_nanoseconds(
    selection: Any, expr: Expr, name: Hashable, first: float, last: float
) -> None:
    """Refuses bounds of times in nanoseconds that are so far apart that some differences have no
    place there: those times would be null, and an answer would be of the others alone. Which unit a
    column has is a matter of its dtype, which is public."""
    dtypes = selection.schema.dtypes
    fine = any(
        "[ns" in str(dtypes[leaf.position]) for leaf in expr.columns() if leaf.kind == "time"
    )
    if fine and (first < -_NANOSECONDS or min(last, _NANOSECONDS) - first > _NANOSECONDS):
        raise BadValue(
            f"{name!r} is in nanoseconds, which reach from 1677 to 2262, and 292 years from one moment to another; its bounds "
            "are further apart. Say what the times can be, bounds=('1970-01-01', '2100-12-31'), or open the frame with "
            f"df.astype({{{name!r}: 'datetime64[us{'' if expr.tz is None else f', {expr.tz}'}]'}})."
        )


def _ends(given: Any, name: Hashable, zone: str | None) -> tuple[int, int] | None:
    """The ends of given bounds in nanoseconds, in UTC where the column has a zone. As in pandas,
    text is read in that zone, and a Timestamp brings its own."""
    span = span_of(given, name)
    naive = [
        pd.Timestamp(end)
        for end in given
        if not isinstance(end, str) and pd.Timestamp(end).tz is None
    ]
    if zone is not None and naive:
        line = ", ".join(f"pd.Timestamp({str(pd.Timestamp(end))!r}, tz={zone!r})" for end in given)
        raise BadType(
            f"{name!r} has the time zone {zone}, and these bounds have none. Write bounds=({line}), or both as text, which is "
            "read in that zone."
        )
    in_zone(span, zone, name)  # says what is wrong with them
    return ends_of(span, zone)
