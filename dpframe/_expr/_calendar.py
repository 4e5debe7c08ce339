"""What the declared ends of times tell: the days, and the years, that lie between them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpframe._types import Values

DAY = 86_400 * 10**9  # in nanoseconds
_MOST_DAYS = 4_000  # that are listed as keys


def local_ends(ends: tuple[float, float], zone: str | None) -> tuple[float, float] | None:
    """Return the earliest and the latest wall time that any moment between two ends can show.

    All times are in nanoseconds since 1970. Without a ``zone`` the ends are wall times already. The
    result is None beyond the times that pandas has.
    """
    if zone is None:
        return ends
    try:
        low = [_offset(end, zone) for end in (ends[0], ends[0] + DAY)]
        high = [_offset(end, zone) for end in (ends[1], ends[1] - DAY)]
    except (ValueError, OverflowError):
        return None
    # A clock that is put back shows earlier times after later ones, and does so at most once a day.
    return ends[0] + min(low), ends[1] + max(high)


def _offset(moment: float, zone: str) -> int:
    """Return how far a zone is ahead of UTC at a moment, both in nanoseconds."""
    offset = pd.Timestamp(int(moment), tz="UTC").tz_convert(zone).utcoffset()
    return (
        round((pd.Timedelta(0) if offset is None else pd.Timedelta(offset)).total_seconds()) * 10**9
    )


def list_days(ends: tuple[float, float], zone: str | None) -> pd.DatetimeIndex | None:
    """Return the days between two moments, as midnights in wall time; None if they are too many.

    ``ends`` are in nanoseconds since 1970.
    """
    local = local_ends(ends, zone)
    if local is None or local[1] - local[0] > _MOST_DAYS * DAY:
        return None
    try:
        first, last = (pd.Timestamp(int(end)) for end in local)
    except (ValueError, OverflowError):
        return None
    return pd.date_range(first.normalize(), last.normalize(), freq="D")


def list_days_in_zone(ends: tuple[float, float], zone: str | None) -> Values | None:
    """Return the days between two moments, each as the first moment of the day in a zone.

    ``ends`` are in nanoseconds since 1970. The result is None if there are too many days.
    """
    days = list_days(ends, zone)
    if days is None or zone is None:
        return None if days is None else tuple(days)
    first = np.ones(len(days), dtype=bool)
    return tuple(days.tz_localize(zone, ambiguous=first, nonexistent="shift_forward"))


def find_years(ends: tuple[float, float], zone: str | None) -> tuple[int, int] | None:
    """Return the first and the last year between two moments, in wall time; None if not known.

    ``ends`` are in nanoseconds since 1970.
    """
    local = local_ends(ends, zone)
    try:
        return (
            None
            if local is None
            else (pd.Timestamp(int(local[0])).year, pd.Timestamp(int(local[1])).year)
        )
    except (ValueError, OverflowError):
        return None
