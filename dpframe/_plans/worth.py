"""The rule that tells a number from noise: of a released number, and in advance of a release.

*Formal guarantee.* All of it is a function of a release and of public facts: bounds, a declared
number of people, and the part that the owner chose. So it is post-processing: free, and as private
as the release (docs/guarantees/intervals.md#noise-is-flagged).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import mul
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpframe._errors import caution
from dpframe._plans.aggregates import AGGREGATES, Cell, Floats, Measured, read_noisy
from dpframe._plans.durations import convert_to_seconds

if TYPE_CHECKING:
    from dpframe._plans.plan import Plan

Bools = NDArray[np.bool_]

LEVEL = 0.95  # the level of the intervals that numbers are judged by
PART = 0.5  # an interval from 0 up has half its width on either side: it cannot be told from 0
MARK = "?"  # stands beside a number that is noise


class NoiseRule(NamedTuple):
    """Rule of a session for when an answer counts as noise, from ``open(reliable=, show=)``.

    ``part`` is the part of a number that half its interval may be. ``blank`` leaves noise out.
    """

    part: float = PART
    blank: bool = False


ORDINARY = NoiseRule()


# Released numbers -------------------------------------------------------------------------------


def is_noise(
    values: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    unit: ArrayLike,
    width: ArrayLike,
    part: float,
) -> Bools:
    """Return a mask of the numbers that are noise, given the ends ``low`` and ``high`` of their
    intervals.

    A number is noise in three cases. Half its interval is more than ``part`` of the number, or of
    ``unit`` where that is more: below it numbers are as good as zero. The interval is at least
    ``part`` of ``width``, the distance between possible answers. The number lies outside of its
    interval, as a count below zero does.

    A choice has no interval: its ends are NaN, and it is not noise. A number that is NaN although
    its interval is known is noise.
    """
    numbers = convert_to_seconds(values)
    if np.asarray(values).dtype.kind == "M":  # no time is near zero
        numbers = np.where(np.isnan(numbers), np.nan, np.inf)
    lower, upper = convert_to_seconds(low), convert_to_seconds(high)
    half = (upper - lower) / 2
    with np.errstate(invalid="ignore"):
        within = (half <= part * np.maximum(np.abs(numbers), unit)) & (
            (2 * half < part * np.asarray(width)) | (half == 0)
        )
        beyond = np.maximum(lower - numbers, numbers - upper)
        # What lies beyond by less than this is an error of rounding.
        within &= (beyond <= 1e-9 * np.abs(numbers)) | ~np.isfinite(numbers)
    return np.asarray(~within & ~np.isnan(half))


def is_vague_choice(plan: Plan, raw: Sequence[NDArray[np.int64]], part: float) -> list[Bools]:
    """Return, for each output, the groups in which a chosen value, such as a quantile, says nothing.

    ``raw`` has the noisy integers of each part of the plan. A choice says nothing if it may be off
    by the share ``part`` of the values of the group. Their number is the count in the same release,
    or else what the counts around the choice show for sure. It is at most the number of values that
    there can be. Where nothing is known of it, a choice says nothing.
    """
    groups = int(np.shape(raw[0])[-1])
    most = np.full(groups, math.inf if plan.most is None else plan.most)
    counting = next((c for c in plan.cells if {"n", "size"} & c.functionals.keys()), None)
    counted = None
    if counting is not None:
        name = "n" if "n" in counting.functionals else "size"
        noisy = Measured(counting, plan.parts[counting.part].noise, raw[counting.part])
        counted = noisy.values({name: 1.0}).astype(float)
    flags = []
    for cell in plan.cells:
        aggregate = AGGREGATES[cell.aggregate]
        if not aggregate.picks:
            flags.append(np.zeros(groups, dtype=bool))
            continue
        values = most if counted is None else np.minimum(most, counted)
        around = read_noisy(plan.parts, raw, cell)
        if counted is None and aggregate.least_values is not None and around.around is not None:
            values = np.minimum(most, aggregate.least_values(around, LEVEL))
        flags.append((find_choice_error(plan, cell) >= part * values) | np.isinf(values))
    return flags


def judge_at_sight(
    plan: Plan,
    raw: Sequence[Sequence[float] | NDArray[np.int64]],
    values: Sequence[float | Floats],
    part: float,
) -> bool | None:
    """Return whether all numbers of a release are reliable, by a quick test without intervals.

    ``raw`` has the noisy integers of each part of the plan. ``values`` has a number for each
    output, or an array with one for each group. ``part`` is the share of a number that half its
    interval may be.

    False means that some are noise for sure, beyond single totals near zero. None means that only
    the intervals tell. Half the interval of a total is between that of one of the integers behind
    it and the sum of all of theirs. Half the interval of a ratio is between 0.7 and 1.3 times that
    of its count, as a part of the count, if the count is more than 1 / 0.3 times its noise. The
    numbers 0.3, 0.7 and 1.3 in the body follow from that.
    """
    sure, noisy, near_zero = True, False, 0
    for cell, value in zip(plan.cells, values, strict=True):
        number = cast(Floats, value)  # a single number has the same operators
        ratio, maps = AGGREGATES[cell.aggregate].ratio, cell.functionals
        noise = plan.parts[cell.part].noise
        weights = maps.get("n") if ratio else maps.get("total") or maps.get("size") or maps.get("n")
        if ratio is None or cell.duration or cell.constants or not noise.named:
            return None
        if not weights or not weights[0]:
            return None
        half = noise.quantile(LEVEL) * weights[0]
        if not ratio:
            half *= 1.0 if "total" in maps else max(abs(cell.lower), abs(cell.upper))
            good = abs(number) >= half * len(weights) / part
            if good is not True and not np.all(good):
                sure = False
                near_zero += int(np.count_nonzero(half > part * abs(number)))
            continue
        count = sum(map(mul, weights, raw[cell.part]))
        unit, width = AGGREGATES[cell.aggregate].judging_scale(cell)
        # Even a ratio near zero is reliable with this count: it is compared with the unit.
        large = count >= half * max(1.3 * width / (unit * part) if width else 0.0, 1 / 0.3)
        if large is True or np.all(large):
            continue
        limit = part * count * np.maximum(abs(number), unit) / width if width else np.inf
        if not np.all((count >= half / 0.3) & (1.3 * half <= limit)):
            sure = False
            noisy |= bool(np.any(0.7 * half > np.maximum(limit, 0.0)))
    if sure:
        return True
    return False if noisy or 2 * near_zero > sum(map(np.size, values)) else None


@dataclass(slots=True)
class NoiseWarning:
    """The warning of a session that answers are noise: it is given once."""

    was_given: bool = False

    def give(self, rule: NoiseRule, single: bool = False) -> None:
        """Warn that a ``single`` number is noise, or that numbers of a table are."""
        if self.was_given:
            return
        self.was_given = True
        shown = "are NaN" if rule.blank else f"are marked {MARK}"
        problem = "this number" if single else f"numbers of this answer that {shown}"
        verb = "is" if single else "are"
        help_ = "a larger epsilon, larger groups or narrower bounds help"
        caution(f"{problem} {verb} noise; {help_}.")


# Before anything is paid ------------------------------------------------------------------------


def says_nothing(plan: Plan, cell: Cell, values: float) -> bool:
    """Return whether an output is sure to be noise, so that the question says nothing.

    ``values`` is the largest number of values that the output can have.
    """
    aggregate = AGGREGATES[cell.aggregate]
    if aggregate.selects and not aggregate.of_rows:
        return False
    if (
        aggregate.rank_error_text or aggregate.selects
    ):  # the choice may be off by this number of values
        return bool(find_choice_error(plan, cell) >= PART * values)
    tried = _try_values(plan, cell, np.array([values]), LEVEL)
    if tried is not None:
        return bool(_is_always_noise(cell, tried)[0])
    error = aggregate.error(Measured(cell, plan.parts[cell.part].noise), LEVEL, values)
    return error is not None and 2 * error >= aggregate.judging_scale(cell, values)[1]


@dataclass(frozen=True, slots=True, eq=False)
class ImaginedSums(Measured):
    """Sums of imagined values, without noise: an interval can be computed from them in advance."""

    sums: Mapping[str, Floats] = field(default_factory=dict)

    def values(self, combination: dict[str, float]) -> Floats:
        """Return a weighted sum of functionals, in the shape of the sums."""
        return np.asarray(sum(w * self.sums[name] for name, w in combination.items()))


Trial = tuple[Floats, Floats, Floats]


def _try_values(plan: Plan, cell: Cell, values: Floats, level: float) -> Trial | None:
    """Return the answers and both ends of their intervals for imagined values, to tell the error in
    advance.

    ``values`` has the numbers of values to imagine, and ``level`` is the confidence.

    There is a row for each way in which the values may lie, and a column for each number of
    values. Return None if the error of the output does not depend on how they lie.
    """
    aggregate = AGGREGATES[cell.aggregate]
    sums = aggregate.imagine_sums(values)
    if not sums:
        return None
    imagined = ImaginedSums(cell, plan.parts[cell.part].noise, sums=sums)
    return aggregate.value(imagined), *aggregate.interval(imagined, level)


def _is_always_noise(cell: Cell, tried: Trial) -> Bools:
    """Return, for each number of values that was tried, whether the answer is noise however the
    values lie."""
    return np.asarray(
        is_noise(*tried, *AGGREGATES[cell.aggregate].judging_scale(cell), PART).all(axis=0)
    )


def describe_error_by_spread(plan: Plan, cell: Cell, level: float) -> str:
    """Return a text with the least and the largest error of an output that depends on how the
    values lie.

    ``level`` is the confidence.
    """
    unit = " seconds" * cell.duration
    tried = None if plan.n is None else _try_values(plan, cell, np.array([float(plan.n)]), level)
    if tried is None:
        return (
            "depends on how far apart the values lie; with n= explain tells the least and the most"
        )
    halves = (tried[2] - tried[1]) / 2
    least, most = f"± {halves.min():.4g}", f"± {halves.max():.4g}"
    if least == most:
        return f"{most}{unit} for {plan.n:g} values, however they lie"
    return f"{least} to {most}{unit} for {plan.n:g} values, by how far apart they lie"


def describe_worth_in_advance(plan: Plan) -> str:
    """Return a text that tells for how many values the answer would be noise; empty if that is not
    known."""
    most = plan.n if plan.n is not None else plan.most
    if most is not None:
        empty = [cell for cell in plan.cells if says_nothing(plan, cell, most)]
        if not empty:
            return ""
        all_empty = len(empty) == len(plan.cells)
        names = "" if all_empty else ", ".join(str(c.name) for c in empty[:6]) + ": "
        return (
            f"{names}this will say nothing: of {most:.12g} values the error is as large as can be"
        )
    names_by_number: dict[str, list[str]] = {}
    for cell in plan.cells:
        least = find_fewest_values(plan, cell)
        if least is not None and least >= 2:
            names_by_number.setdefault(f"{least:.4g}", []).append(str(cell.name))
    alike = [len(each) for each in names_by_number.values()] == [len(plan.cells)]
    texts = [
        ("" if alike else ", ".join(each) + ": ") + f"of fewer than {n} values"
        for n, each in names_by_number.items()
    ]
    return "; ".join(texts[:6]) + " this will say nothing" if texts else ""


def find_fewest_values(plan: Plan, cell: Cell) -> float | None:
    """Return the number of values below which an output is noise however they lie; None if it is
    not known."""
    aggregate = AGGREGATES[cell.aggregate]
    if aggregate.selects and not aggregate.of_rows:
        return None
    if aggregate.rank_error_text or aggregate.selects:
        return float(find_choice_error(plan, cell)) / PART
    if aggregate.imagine_sums(np.ones(1)):
        return _search_fewest_values(plan, cell)
    _, width = aggregate.judging_scale(cell)
    error = aggregate.error(Measured(cell, plan.parts[cell.part].noise), LEVEL, 1e15)
    if error is None or not 0 < width < math.inf:
        return None
    return 2 * error * 1e15 / width


def _search_fewest_values(plan: Plan, cell: Cell) -> float | None:
    """Search the number of values below which an output is noise, from 2 to 2**60, or return None.

    The first trial is coarse. Each of the next ones looks closer at the place where noise ends.
    """
    ends = 1.0, 60.0
    for _ in range(4):
        logs = np.linspace(*ends, 16)
        tried = _try_values(plan, cell, 2.0**logs, LEVEL)
        noise = np.zeros(16, dtype=bool) if tried is None else _is_always_noise(cell, tried)
        first = int(np.argmin(noise))  # the first one that is not noise
        if noise.all() or first == 0:
            return None if ends == (1.0, 60.0) else float(2.0 ** ends[not noise.all()])
        ends = float(logs[first - 1]), float(logs[first])
    return float(2.0 ** ends[0])


# What is said of all numbers of a plan ----------------------------------------------------------


def find_largest_miss(plan: Plan) -> float:
    """Return by how many ranks the chosen answers of a plan may miss; 0 if nothing is chosen."""
    choices = [cell for cell in plan.cells if AGGREGATES[cell.aggregate].picks]
    return max((find_choice_error(plan, cell) for cell in choices), default=0.0)


def describe_choice_error(plan: Plan) -> str:
    """Return a line that tells by how many ranks chosen answers, such as medians, may miss.

    It is empty below one rank.
    """
    miss = find_largest_miss(plan)
    if miss < 1:
        return ""
    keyed = any(AGGREGATES[cell.aggregate].keyed for cell in plan.cells)
    off = f"within {math.ceil(miss):,} rows of the largest count" if keyed else ""
    what = "most common values" if keyed else "quantiles"
    few = f"{'groups' if plan.groups > 1 else 'answers'} under {math.ceil(miss / PART):,} rows"
    return f"{what}: {off or f'off by at most {math.ceil(miss):,} ranks'}; {few} are noise"


def describe_extremes(plan: Plan) -> str:
    """Return a note on a least or a greatest value, which is the quantile near it; else empty."""
    levels = {cell.constants.get("level") for cell in plan.cells}
    named = {name: float(AGGREGATES[name].level or 0) for name in ("min", "max")}
    texts = [f"{name} is the quantile {level}" for name, level in named.items() if level in levels]
    return ", ".join(texts)


def describe_rare_groups(plan: Plan) -> str:
    """Return a note for groups that the release itself has found; empty for listed ones."""
    found = any(part.noise.finds_keys for part in plan.parts)
    return "rare groups are left out; .dp.plan tells how rare" if found else ""


def describe_limits(plan: Plan) -> str:
    """Return the contribution limits and the clips as text beside an answer.

    Such as "of at most 32 rows a person" and "sizes cut at 12 rows a person". It is empty where all
    rows count, or people do, and no value is cut beyond what was declared.
    """
    if not plan.caps and not plan.clips:
        return ""
    texts = [limit.describe(_counts_people(plan)) for limit in plan.caps]
    texts += [clip.describe() for clip in plan.clips]
    return "; ".join(dict.fromkeys(filter(None, texts)))


def describe_left_out(plan: Plan) -> str:
    """Return what the limits and clips of a plan leave out, and the lines that tell how much.

    It is empty where they leave out nothing.
    """
    people = _counts_people(plan)
    texts = [limit.describe_left_out(people, plan.groups) for limit in plan.caps]
    lines = ["over_limits" for text in texts if text]
    for clip in plan.clips:
        texts.append(clip.describe())
        lines.append("clipped")
    verbs = list(dict.fromkeys(f"p.{line}()" for line in lines))
    tell = "tells" if len(verbs) == 1 else "tell"
    found = "; ".join(dict.fromkeys(filter(None, texts)))
    return f"{found}. {' and '.join(verbs)} {tell} how much" if found else ""


def _counts_people(plan: Plan) -> bool:
    """Return whether all outputs of a plan count people, rather than their rows."""
    return bool(plan.cells) and all(AGGREGATES[cell.aggregate].counts_people for cell in plan.cells)


def find_choice_error(plan: Plan, cell: Cell) -> float:
    """Return how far an answer that is chosen may miss at 95 %.

    For a selection it is in scores, and for a quantile in ranks.
    """
    selects = AGGREGATES[cell.aggregate].selects
    return plan.selection_error() if selects else bound_rank_error(plan, cell)


def bound_rank_error(plan: Plan, cell: Cell, level: float = 0.95) -> float:
    """Return by how many ranks a quantile may miss. ``level`` is the confidence.

    At most this number of values too many lie below it, and above it.
    """
    aggregate, part = AGGREGATES[cell.aggregate], plan.parts[cell.part]
    if not aggregate.picks:
        return aggregate.ranks(Measured(cell, part.noise), level)
    return part.scale * float(part.noise.shortfall(cell.constants["points"], 1 - level))
