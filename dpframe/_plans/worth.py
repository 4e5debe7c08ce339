"""The rule that tells a number from noise, and what a plan can say of that in advance.

*Formal guarantee.* All of it is a function of a release and of public facts (bounds, a declared
number of people, the part that the owner chose), so it is post-processing: free, and as private as
the release (docs/guarantees/intervals.md#noise-is-flagged).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe._plans.aggregates import AGGREGATES, Cell, Floats, Measured
from dpframe._plans.durations import convert_to_seconds

LEVEL = 0.95  # of the intervals that numbers are judged by
PART = 0.5  # an interval from 0 up has half its width on either side, so what cannot be told from 0 is noise


class Rule(NamedTuple):
    """How numbers are judged, and whether noise is shown: what ``open(reliable=, show=)`` says."""

    part: float = PART
    blank: bool = False


ORDINARY = Rule()


def is_noise(
    values: Any, low: Any, high: Any, unit: Any, width: Any, part: float
) -> NDArray[np.bool_]:
    """Which numbers are noise: half their interval is more than a part of the number, or of
    ``unit`` where that is more; or the interval is at least that part of ``width``, which is how
    far apart possible answers are; or the number is one that cannot be, such as a count below zero,
    and lies outside of its interval.

    What was chosen has no interval, NaN, and is none. A number that is NaN itself, though its
    interval is known, is noise.
    """
    numbers = convert_to_seconds(values)
    if np.asarray(values).dtype.kind == "M":  # no time is near zero
        numbers = np.where(np.isnan(numbers), np.nan, np.inf)
    lower, upper = convert_to_seconds(low), convert_to_seconds(high)
    half = (upper - lower) / 2
    with np.errstate(invalid="ignore"):
        within = (half <= part * np.maximum(np.abs(numbers), unit)) & (
            (2 * half < part * width) | (half == 0)
        )
        beyond = np.maximum(lower - numbers, numbers - upper)
        within &= (beyond <= 1e-9 * np.abs(numbers)) | ~np.isfinite(numbers)  # or it is rounding
    return np.asarray(~within & ~np.isnan(half))


# Before anything is paid ------------------------------------------------------------------------------------------------


def says_nothing(plan: Any, cell: Cell, values: float) -> bool:
    """Whether the plan knows that an output is noise of so many values at most, whatever they
    are."""
    aggregate = AGGREGATES[cell.aggregate]
    if aggregate.selects and not aggregate.of_rows:
        return False
    if aggregate.promise or aggregate.selects:  # so many ranks, or rows, the choice may be off
        return bool(plan._shortfall(cell) >= PART * values)
    tried = _tried(plan, cell, np.array([values]), LEVEL)
    if tried is not None:
        return bool(_noise_of(cell, tried)[0])
    error = aggregate.error(Measured(cell, plan.parts[cell.part].noise), LEVEL, values)
    return error is not None and 2 * error >= aggregate.judging_scale(cell, values)[1]


@dataclass(frozen=True, slots=True, eq=False)
class Imagined(Measured):
    """Sums of values that nobody has, without noise: what an interval is made of, before there is
    an answer."""

    sums: Mapping[str, Floats] = field(default_factory=dict)

    def values(self, combination: dict[str, float]) -> Floats:
        """A weighted sum of functionals, in the shape of the sums."""
        return np.asarray(sum(w * self.sums[name] for name, w in combination.items()))


def _tried(
    plan: Any, cell: Cell, values: Floats, level: float
) -> tuple[Floats, Floats, Floats] | None:
    """The answers and both ends of their intervals if so many values lay this way or that, a row
    for each way and a column for each number of values; None of outputs whose error does not depend
    on that."""
    aggregate = AGGREGATES[cell.aggregate]
    sums = aggregate.imagine_sums(values)
    if not sums:
        return None
    m = Imagined(cell, plan.parts[cell.part].noise, None, sums)
    return aggregate.value(m), *aggregate.interval(m, level)


def _noise_of(cell: Cell, tried: tuple[Floats, Floats, Floats]) -> NDArray[np.bool_]:
    """Whether the answer is noise, however the values lie: for each number of them."""
    return np.asarray(
        is_noise(*tried, *AGGREGATES[cell.aggregate].judging_scale(cell), PART).all(axis=0)
    )


def error_by_spread(plan: Any, cell: Cell, level: float) -> str:
    """The least and the largest error to expect of an output whose error depends on how far apart
    the values lie."""
    unit = " seconds" * cell.duration
    tried = None if plan.n is None else _tried(plan, cell, np.array([float(plan.n)]), level)
    if tried is None:
        return (
            "depends on how far apart the values lie; with n= explain tells the least and the most"
        )
    halves = (tried[2] - tried[1]) / 2
    least, most = f"± {halves.min():.4g}", f"± {halves.max():.4g}"
    if least == most:
        return f"{most}{unit} for {plan.n:g} values, however they lie"
    return f"{least} to {most}{unit} for {plan.n:g} values, by how far apart they lie"


def in_advance(plan: Any) -> str:
    """What a plan knows of the worth of its answer: of how many values it will say nothing; empty
    if it knows nothing of that."""
    most = plan.n if plan.n is not None else plan.most
    if most is not None:
        empty = [cell for cell in plan.cells if says_nothing(plan, cell, most)]
        if not empty:
            return ""
        of = (
            ""
            if len(empty) == len(plan.cells)
            else ", ".join(str(c.name) for c in empty[:6]) + ": "
        )
        return f"{of}this will say nothing: of {most:.12g} values the error is as large as can be"
    names: dict[str, list[str]] = {}
    for cell in plan.cells:
        least = fewest(plan, cell)
        if least is not None and least >= 2:
            names.setdefault(f"{least:.4g}", []).append(str(cell.name))
    alike = [len(each) for each in names.values()] == [len(plan.cells)]
    texts = [
        ("" if alike else ", ".join(each) + ": ") + f"of fewer than {n} values"
        for n, each in names.items()
    ]
    return "; ".join(texts[:6]) + " this will say nothing" if texts else ""


def fewest(plan: Any, cell: Cell) -> float | None:
    """The number of values below which an output says nothing, whatever they are; None if that is
    not known."""
    aggregate = AGGREGATES[cell.aggregate]
    if aggregate.selects and not aggregate.of_rows:
        return None
    if aggregate.promise or aggregate.selects:
        return float(plan._shortfall(cell)) / PART
    if aggregate.imagine_sums(np.ones(1)):
        return _fewest_imagined(plan, cell)
    _, width = aggregate.judging_scale(cell)
    error = aggregate.error(Measured(cell, plan.parts[cell.part].noise), LEVEL, 1e15)
    if error is None or not 0 < width < math.inf:
        return None
    return 2 * error * 1e15 / width


def _fewest_imagined(plan: Any, cell: Cell) -> float | None:
    """What `fewest` returns, by trying numbers of values from 2 to 2**60: first far apart, then
    closer to where noise ends."""
    ends = 1.0, 60.0
    for _ in range(4):
        logs = np.linspace(*ends, 16)
        tried = _tried(plan, cell, 2.0**logs, LEVEL)
        noise = np.zeros(16, dtype=bool) if tried is None else _noise_of(cell, tried)
        first = int(np.argmin(noise))  # that is not noise
        if noise.all() or first == 0:
            return None if ends == (1.0, 60.0) else float(2.0 ** ends[not noise.all()])
        ends = float(logs[first - 1]), float(logs[first])
    return float(2.0 ** ends[0])


def capped(plan: Any) -> str:
    """The limits of a person as an answer tells them: "of at most 32 rows a person"; empty where
    all rows count, or people do."""
    if not plan.caps:
        return ""
    people = bool(plan.cells) and all(
        AGGREGATES[cell.aggregate].counts_people for cell in plan.cells
    )
    return "; ".join(dict.fromkeys(filter(None, [limit.describe(people) for limit in plan.caps])))
