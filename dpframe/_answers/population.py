"""Intervals of a population: the people of the table are a sample of it.

The people are taken for draws from the population, independent and alike, or without putting back.
`dpframe._plans.sampling` has what follows for each kind of answer. The cases where people are not
such draws are refused here. docs/guarantees/population.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dpframe import _validate
from dpframe._answers.table import OF
from dpframe._errors import NotOffered
from dpframe._plans.aggregates import AGGREGATES, Aggregate, Cell, Measured
from dpframe._plans.counts import DISTINCT
from dpframe._plans.plan import Plan, get_noisy_sums, refuse_choices
from dpframe._plans.price import read_public_number
from dpframe._plans.sampling import REST, About, enclose_differences
from dpframe._plans.worth import bound_rank_error
from dpframe._questions.question import find_shown_levels
from dpframe._types import Raw

# The error that an interval speaks of, by its `of=`.
ERRORS = {"noise": "noise only", "population": "noise and sampling"}


@dataclass(frozen=True)
class GroupDifference:
    """The difference of two groups' answers, and the ends of its interval.

    It unpacks as ``estimate, lower, upper``.
    """

    estimate: float
    lower: float
    upper: float
    of: str = "noise"  #: The error that the interval covers: "noise" or "population".
    level: float = 0.95  #: The level of the interval.

    def __iter__(self) -> Iterator[float]:
        return iter((self.estimate, self.lower, self.upper))

    def __repr__(self) -> str:
        """Show the difference with its interval, and the error that this covers."""
        test = "; of='population' for a test" if self.of == "noise" else ""
        return (
            f"{self.estimate:.4g}, {100 * self.level:g} % interval {self.lower:.4g} to "
            f"{self.upper:.4g}, {ERRORS[self.of]}{test}"
        )


def check_coverage(
    of: object,
    n: object,
    plan: Plan,
    raw: Raw,
    cells: Sequence[Cell],
    level: float,
    levels: Iterable[float] = (),
    noun: str = "",
) -> tuple[float, About]:
    """Check the arguments ``of=`` and ``n=`` of an interval against what was released.

    Return the level that is left for the interval, and what it covers. An ``n`` that was released
    is noisy: a tenth of the risk goes to its lower end, and the rest to the interval. ``levels``
    are those of chosen quantiles. ``noun`` is the name of the numbers in messages.
    """
    population = _validate.choice(of, "of", tuple(OF)) == "population"
    if population:
        refuse_if_not_draws(plan, raw, cells, noun)
    chosen = tuple(map(float, levels))
    if n is None or len(chosen) < 2:
        refuse_choices(cells)
    number = read_public_number(n, None)
    find_interval = getattr(n, "interval", None)  # of a released number
    if find_interval is not None:
        level = 1 - 0.9 * (1 - level)
        number = float(find_interval(1 - (1 - level) / 9)[0])  # 0.9 / 9 is the tenth
    return level, About(population, number, chosen)


def refuse_if_not_draws(plan: Plan, raw: Raw, cells: Sequence[Cell], noun: str = "") -> None:
    """Refuse an interval of the population where numbers cannot have one, or rows are not separate
    draws.

    ``noun`` is the name of the numbers in messages.
    """
    kinds = [AGGREGATES[cell.aggregate] for cell in cells]
    if not any(kind.drawn for kind in kinds):
        raise NotOffered(
            f"a {noun or cells[0].aggregate} has no interval of a population: means, shares, "
            "counts and quantiles have one. Without of= its interval is about the noise. A total "
            "is agg(['mean', 'count']), whose parts have intervals."
        )
    counted = all(kind.counts_people for kind in kinds)
    if not counted and not all(limit.one_row for limit in plan.caps):
        raise NotOffered(
            "the people are the sample here, and a person may have several rows, which are not "
            "draws of their own. Take one row a person: max_rows=1 at the question, or "
            "drop_duplicates of the column that unit= names. Or ask about numbers of people, "
            f"{DISTINCT} of that column."
        )
    _refuse_found_groups(plan, raw, kinds)


def _refuse_found_groups(plan: Plan, raw: Raw, kinds: Sequence[Aggregate]) -> None:
    """Refuse intervals of the population for numbers of groups that were found.

    Who was drawn decided that these groups are shown. Means and quantiles in a group have intervals
    if they are asked later.
    """
    counts = any(kind.counts for kind in kinds)
    shown = find_shown_levels(plan, raw, 0.5) is not None
    if shown and not counts:
        raise NotOffered(
            "these groups were found by the noisy counts that their means are read off. Ask the "
            "means by themselves, keys=answer.index: those have intervals of the population."
        )
    declare = "declare its keys from a public list before anything is asked, open(..., keys={...})."
    if shown or (plan.selected is not None and counts):
        column = plan.selected.column if plan.selected is not None else "the column"
        raise NotOffered(
            "these groups were found in the data, and a group that is found has more rows than its "
            "part of the population tells, also where it is asked again. Means and quantiles of "
            "found groups have intervals of the population, asked without counts. For those of "
            f"counts and shares of {column} {declare}"
        )
    if plan.selected is not None and plan.selected.elsewhere:
        raise NotOffered(
            f"groups of {plan.selected.column} were found among other rows than these, perhaps by "
            "the very values that are asked about. Find them without a condition, "
            f"p.unique({plan.selected.column!r}), or {declare}"
        )


def find_rank_error(plan: Plan, cells: Sequence[Cell], level: float) -> float:
    """Return by how many ranks the quantiles of an answer may miss, with this confidence."""
    ranked = [cell for cell in cells if AGGREGATES[cell.aggregate].rank_error_text]
    if not ranked:
        raise NotOffered(
            "only quantiles, and what is one by another name, miss by ranks. Others have interval()."
        )
    return max(bound_rank_error(plan, cell, _validate.level(level)) for cell in ranked)


def compute_difference(
    plan: Plan, raw: Raw, cell: Cell, places: tuple[int, int], level: float, of: object
) -> GroupDifference:
    """Return the difference of two groups' means, or of their shares, with its interval.

    ``places`` are the positions of the groups. ``level`` is the confidence of the interval, and
    ``of`` tells what it covers.
    """
    aggregate, m = AGGREGATES[cell.aggregate], get_noisy_sums(plan, raw, cell)
    _, about = check_coverage(of, None, plan, raw, (cell,), level)
    first, second = (slice(place, place + 1) for place in places)
    if aggregate.draws(m, 1 - level) is None:
        raise NotOffered(
            f"difference takes means or shares, not a {cell.aggregate}. Each of the two has an "
            "interval of its own."
        )
    values = aggregate.value(m)
    estimate = float(values[places[0]] - values[places[1]])
    if not about.population:
        # The noises of two groups are independent.
        low, high = aggregate.interval(m, math.sqrt(level))
        ends = low[first] - high[second], high[first] - low[second]
        return GroupDifference(estimate, float(ends[0][0]), float(ends[1][0]), level=level)
    refuse_shared_groups(plan)
    lower, upper = bound_difference(m, (first, second), 1 - level)
    return GroupDifference(estimate, lower, upper, "population", level)


def bound_difference(m: Measured, groups: tuple[slice, slice], risk: float) -> tuple[float, float]:
    """Return the lower and the upper end of an interval for the difference of two groups' means in
    the population.

    ``m`` has the noisy sums, and ``groups`` are slices with one group each. The interval fails with
    probability ``risk`` at most.
    """
    draws = AGGREGATES[m.cell.aggregate].draws(m, risk / 2)
    assert draws is not None
    low, high = enclose_differences(draws.part(groups[0]), draws.part(groups[1]), risk * REST)
    width = m.cell.upper - m.cell.lower
    return float(low[0]) * width, float(high[0]) * width


def refuse_shared_groups(plan: Plan) -> None:
    """Refuse an answer with groups that are not separate samples: a person may be in several."""
    if not all(limit.one_group for limit in plan.caps):
        raise NotOffered(
            "a person may be in several of these groups, so they are not separate samples. Let "
            "people count in one group: max_rows=1, max_groups=1 at the question."
        )
