"""What is measured of durations and of times: their seconds, between public bounds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from dpframe import _expr, _validate
from dpframe._answers.estimate import DurationEstimate, TimeEstimate
from dpframe._errors import BadType, MissingBounds
from dpframe._expr import Expr
from dpframe._groups.periods import ends_of, span_of
from dpframe._plans.aggregates import Aggregate
from dpframe._validate import Bounds

__all__ = [
    "DurationEstimate",
    "Seconds",
    "TimeEstimate",
    "in_seconds",
]  # the first two are what answers become


class Seconds(NamedTuple):
    """Numbers of seconds with their bounds, and the moment that those of a time are counted from; empty of a duration."""

    expr: Expr
    bounds: Bounds
    origin: str = ""


def in_seconds(selection: Any, one: Aggregate, expr: Expr, name: Hashable, given: Any) -> Seconds:
    """The seconds of a duration, or of a time since the first moment that it can be, with the bounds that a verb is given, or
    those that follow from the declared ones."""
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
    return Seconds(_expr.duration_part(expr, "total_seconds"), _validate.bounds(pair, repr(name)), origin)


def _since_first(
    selection: Any, one: Aggregate, expr: Expr, name: Hashable, given: Any
) -> tuple[Expr, Any, str]:
    """How long after the first moment that it can be a time is, with its bounds if they are given, and that moment."""
    if not one.of_times:
        selection.bounds(expr, name, None)  # says what there is
    if expr.tz is not None:
        raise BadType(
            f"{name!r} has a time zone, and means and quantiles are of wall times: p[...].dt.tz_localize(None) takes it away."
        )
    ends = expr.interval(selection.ends) if given is None else ends_of(span_of(given, name), None)
    if ends is None:
        raise MissingBounds(
            f"{name!r} needs a public first and last moment: bounds=('2024-01-01', '2024-12-31') here, or open(..., "
            f"bounds={{{name!r}: ('2024-01-01', '2024-12-31')}}) once. They are never taken from the data."
        )
    first, last = (pd.Timestamp(int(end) // 1000, unit="us") for end in ends)
    since = _expr.elapsed("-", expr, _expr.constant(first))
    return since, None if given is None else (pd.Timedelta(0), last - first), first.isoformat()
