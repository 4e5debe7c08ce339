"""The rule that tells a number from noise, and what a plan can say of that in advance.

*Formal guarantee.* All of it is a function of a release and of public facts (bounds, a declared number of people, the part that
the owner chose), so it is post-processing: free, and as private as the release (docs/guarantees/intervals.md#noise-is-flagged).
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe._plans.aggregates import AGGREGATES, Cell, Measured
from dpframe._plans.durations import in_seconds

LEVEL = 0.95  # of the intervals that numbers are judged by
PART = 0.5  # an interval from 0 up has half its width on either side, so what cannot be told from 0 is noise
_LIMITED = re.compile(  # the texts of `Unit.limits_text`, and of what counts distinct values
    r"a person (?:counts for at most (?P<rows>\d+ rows?)(?: in each of at most )?|counts in at most |adds at most )"
    r"(?:(?P<groups>\d+ groups?)|(?P<values>\d+ values?)(?: over all groups)?)?"
)

# The condition that is met by one row of each person, where one column names them.
_ONE_ROW = re.compile(r" where ~(\[.*\]\.)?groupby\([^,()]+\)\.duplicated\('first'\)$")


class Rule(NamedTuple):
    """How numbers are judged, and whether noise is shown: what ``open(reliable=, show=)`` says."""

    part: float = PART
    blank: bool = False


ORDINARY = Rule()


def is_noise(values: Any, low: Any, high: Any, unit: Any, width: Any, part: float) -> NDArray[np.bool_]:
    """Which numbers are noise: half their interval is more than a part of the number, or of ``unit`` where that is more; or the
    interval is at least that part of ``width``, which is how far apart possible answers are.

    What was chosen has no interval, NaN, and is none. A number that is NaN itself, though its interval is known, is noise.
    """
    numbers = in_seconds(values)
    if np.asarray(values).dtype.kind == "M":  # no time is near zero
        numbers = np.where(np.isnan(numbers), np.nan, np.inf)
    half = (in_seconds(high) - in_seconds(low)) / 2
    with np.errstate(invalid="ignore"):
        within = (half <= part * np.maximum(np.abs(numbers), unit)) & (
            (2 * half < part * width) | (half == 0)
        )
    return np.asarray(~within & ~np.isnan(half))


# Before anything is paid ------------------------------------------------------------------------------------------------


def says_nothing(plan: Any, cell: Cell, values: float) -> bool:
    """Whether the plan knows that an output is noise of so many values at most, whatever they are."""
    aggregate = AGGREGATES[cell.aggregate]
    if aggregate.selects:
        return False
    if aggregate.promise:  # so many values too many below the answer, and above it
        return bool(plan._shortfall(cell) >= PART * values)
    error = aggregate.error(Measured(cell, plan.parts[cell.part].noise), LEVEL, values)
    return error is not None and 2 * error >= aggregate.yard(cell, values)[1]


def in_advance(plan: Any) -> str:
    """What a plan knows of the worth of its answer: of how many values it will say nothing; empty if it knows nothing of that."""
    most = plan.n if plan.n is not None else plan.most
    if most is not None:
        empty = [cell for cell in plan.cells if says_nothing(plan, cell, most)]
        if not empty:
            return ""
        of = "" if len(empty) == len(plan.cells) else ", ".join(str(c.name) for c in empty[:6]) + ": "
        return f"{of}this will say nothing: of {most:.12g} values the error is as large as can be"
    least = [fewest(plan, cell) for cell in plan.cells]
    known = max((n for n in least if n is not None), default=0.0)
    return f"of fewer than {known:.4g} values this will say nothing" if known >= 2 else ""


def fewest(plan: Any, cell: Cell) -> float | None:
    """The number of values below which an output says nothing, whatever they are; None if that is not known."""
    aggregate = AGGREGATES[cell.aggregate]
    if aggregate.selects:
        return None
    if aggregate.promise:
        return float(plan._shortfall(cell)) / PART
    _, width = aggregate.yard(cell)
    error = aggregate.error(Measured(cell, plan.parts[cell.part].noise), LEVEL, 1e15)
    if error is None or not 0 < width < math.inf:
        return None
    return 2 * error * 1e15 / width


def capped(plan: Any) -> str:
    """The limits of a person as an answer tells them: "of at most 32 rows a person"; empty where all rows count, or people do."""
    texts, people = [], all(AGGREGATES[cell.aggregate].counts_people for cell in plan.cells) and plan.cells
    for limit in plan.limits.split("; "):
        found = _LIMITED.fullmatch(limit)
        if found is not None and found["rows"] == "1 row" and _ONE_ROW.search(plan.question):
            continue  # nobody has more
        if found is not None and not (people and found["rows"] and not found["groups"]):
            of = (
                found["groups"]
                if people and found["rows"]
                else found["rows"] or found["groups"] or found["values"]
            )
            scope = (
                f", in at most {found['groups']}" if found["rows"] and found["groups"] and not people else ""
            )
            texts.append(f"of at most {of} a person{scope}")
    return "; ".join(dict.fromkeys(texts))
