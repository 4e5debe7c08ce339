"""The way from a question and a price to a plan: which statistics it is released as, and which noise each of them gets.

Each aggregate says which vector it is read off (`Aggregate.vector_of`); outputs with equal vectors share one statistic, and so
the reach of one person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpframe._errors import BadValue, BudgetError
from dpframe._groups.keys import Word
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import AGGREGATES, Aggregate, Cell, Output, Outputs, Setting, Vector
from dpframe._plans.plan import Part, Plan
from dpframe._plans.sums import OfColumn, OfRows
from dpframe._statistics.base import Sensitivity, Statistic
from dpframe.accounting._filter import Price
from dpframe.accounting.loss import PureDP
from dpframe.mechanisms._base import AUTO, MECHANISMS, NO_EPSILON, Noise, Offer, pure
from dpframe.mechanisms.noise import Laplace
from dpframe.mechanisms.selection import Exponential, NoisyMax, NoisyTop, ranges_cost_less


def arrange(query: Outputs, unit: Unit, public_rows: int | None) -> list[tuple[Statistic, list[int]]]:
    """The statistics of one release, and the outputs that each serves.

    A column's count, sum and moments come from one vector whose sensitivity is that of a single number, and so
    do the rows of the group where the column may be null. ``docs/guarantees/statistics.md`` shows why that
    beats splitting the price, and when one of the other forms is better still.
    """
    vectors = [AGGREGATES[out.aggregate].vector_of(out) for out in query.outputs]
    served: dict[Vector, list[int]] = {}
    for i, vector in enumerate(vectors):
        served.setdefault(vector.among(vectors), []).append(i)
    ordered = sorted(served, key=lambda vector: vector.place)
    counts_rows = OfRows() in served and isinstance(ordered[0], OfColumn)
    if counts_rows:  # the first column has room for them
        served[ordered[0]] += served.pop(OfRows())
        ordered.remove(OfRows())
    return [
        (
            vector.statistic(
                [query.outputs[i] for i in served[vector]],
                Setting(query, unit, public_rows, counts_rows and vector is ordered[0]),
            ),
            served[vector],
        )
        for vector in ordered
    ]


def cells_of(outputs: Sequence[Output], part: int, statistic: Statistic) -> list[Cell]:
    """The outputs that one statistic serves, as the plan knows them; of a choice the first stands for all."""
    kinds = [AGGREGATES[out.aggregate] for out in outputs]
    shown = 1 if kinds[0].selects else len(kinds)
    return [kinds[i].cell(outputs[i], part, statistic, i) for i in range(shown)]


def make_plan(
    query: Outputs, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]
) -> Plan:
    """The plan of outputs at a price: pure, and the only place where their price becomes a scale."""
    arranged = arrange(query, unit, public_rows)
    statistics = tuple(s for s, _ in arranged)
    outputs, candidates, share = query.outputs, query.groups, len(statistics)
    groups = candidates if query.by else None
    kinds = [AGGREGATES[outputs[serves[0]].aggregate] for _, serves in arranged]
    first = AGGREGATES[outputs[0].aggregate]
    if first.selects:
        candidates = len(outputs) if groups is None else groups
        reaches = [s.reach_of_person(unit, groups) for s in statistics]
        sensitivities = [Sensitivity(r, r * r) for r in reaches]
        bought = choice(first, reaches[0], candidates, outputs[0].rounds, price)
    else:
        sensitivities = [s.of_person(unit, groups) for s in statistics]
        picks = [kind.picks for kind in kinds]
        bought = picked(sensitivities, picks, price) if any(picks) else noise_for(sensitivities, price)
    why = bought.why
    if share > 1:
        why += f"; the price is shared by {share} statistics"
    if unit.people:
        why += _limits(statistics, unit, groups is not None)
    parts = tuple(
        Part(s.description, noise, l1, l2_squared, s.step)
        for s, noise, (l1, l2_squared) in zip(statistics, bought.noises, sensitivities, strict=True)
    )
    cells: dict[int, Cell] = {}
    for part, (statistic, serves) in enumerate(arranged):
        cells.update(zip(serves, cells_of([outputs[i] for i in serves], part, statistic), strict=False))
    return Plan(
        str(query),
        unit.neighbors,
        bought.loss,
        bought.stated_at,
        parts,
        tuple(cells[i] for i in sorted(cells)),
        candidates,
        why,
        tuple(map(str, declared)),
        _statistics=statistics,
    )


def noted(plan: Plan, price: Price) -> Plan:
    """The plan, which says how much and why where a question gets less than the epsilon that was asked for."""
    stake, loss = price.stake, plan.loss
    if stake is None or (not stake.scaled if loss.epsilon is None else loss.epsilon >= stake.epsilon):
        return plan
    part = f"the part {float(stake.part):.3g} of the budget"
    if loss.epsilon is None:
        return replace(plan, why=f"{plan.why}; noise for {part}")
    gone = (
        "" if stake.cost is None else "; after Gaussian noise there is no plain sum that could pay it whole"
    )
    note = f"epsilon {float(loss.epsilon):.4g} of the {float(stake.epsilon):.4g} asked for, which takes {part}{gone}"
    return replace(plan, why=f"{plan.why}; {note}")


def _limits(statistics: Sequence[Statistic], unit: Unit, grouped: bool) -> str:
    """What a person with many rows counts for, in words."""
    texts = dict.fromkeys(s.told(unit, grouped) for s in statistics if not s.once)
    return "".join(texts) if texts else "; a person counts once"


def noise_for(sensitivities: Sequence[Sensitivity], price: Price) -> Offer:
    """Noise for vectors that share a price, with its loss: of the kind that was asked for, or of the one whose intervals are
    narrowest among those that the price buys."""
    distances = [(s.l1, s.l2_squared) for s in sensitivities]
    asked: Any = MECHANISMS.get(price.mechanism)
    if asked is not None:
        if not asked.measures:
            raise BadValue(
                f'mechanism="{price.mechanism}" makes choices: this question measures, so leave it out.'
            )
        found: Offer | None = asked.offer(distances, price)
        if found is None:
            raise BudgetError(asked.refusal(price))
        return found._replace(why=f"{asked.name.capitalize()}, as asked")
    kinds: list[Any] = [kind for kind in MECHANISMS.values() if kind.automatic]
    offers: list[tuple[type[Noise], Offer]] = [
        (kind, offer) for kind in kinds if (offer := kind.offer(distances, price)) is not None
    ]
    if not offers:
        raise BudgetError(NO_EPSILON)
    (first, one), *others = offers
    if not others:
        return one._replace(why=_only(first, price))
    titles, widths = zip(*((k.name.capitalize(), o.noises[0].quantile(0.95)) for k, o in offers), strict=True)
    best = min(range(1, len(offers)), key=widths.__getitem__)
    ratio = widths[best] / max(widths[0], 1)
    if ratio < 1:
        why = f"{titles[best]} intervals are {ratio:.3g} times as wide as {titles[0]} ones at this price"
        return offers[best][1]._replace(why=why)
    why = f"{titles[0]}: {titles[best]} intervals would be {ratio:.3g} times as wide at this price"
    return one._replace(why=why)


def _only(kind: type[Noise], price: Price) -> str:
    """Why a price buys no other kind."""
    title = kind.name.capitalize()
    if kind.needs_delta:
        return title
    waits = price.stake is not None and price.stake.waits
    return f"{title}: Gaussian noise has to wait until more is spent" if waits else "pure epsilon"


def picked(sensitivities: Sequence[Sensitivity], picks: Sequence[bool], price: Price) -> Offer:
    """Noise for vectors that share a price, of which some are points to choose from: their sensitivity is about differences of
    scores."""
    if price.mechanism != AUTO:
        raise BadValue("a selection has its own mechanism (noisy-max): leave mechanism= out.")
    e = pure(price) / len(picks)
    noises = [
        NoisyMax.for_price(s.l1, e) if one else Laplace.for_price(s.l1, e)
        for s, one in zip(sensitivities, picks, strict=True)
    ]
    why = "points of a grid, one price: only the choice leaves, never a count"
    if not all(picks):
        why = "a choice by noisy max, and pure epsilon for the rest"
    return Offer(noises, PureDP(pure(price)), why=why)


def choice(one: Aggregate, reach: int, candidates: int, rounds: int, price: Price) -> Offer:
    """The selection of one candidate or several, whose scores move by ``reach`` against one another, with its loss."""
    ranged = one.ranged
    asked: Any = MECHANISMS.get(price.mechanism)
    own = asked is not None and asked.chooses and ranged
    if price.mechanism != AUTO and not own:
        also = ', or give mechanism="exponential"' if ranged else ""
        raise BadValue(f"a selection has its own mechanism (noisy-max): leave mechanism= out{also}.")
    text = f"{candidates} candidates, one price: only the choice leaves"
    if one.several:
        epsilon = pure(price)
        why = f"{text}, in {rounds} rounds that share it, never a count"
        return Offer([NoisyTop.for_price(reach, epsilon, rounds)], PureDP(epsilon), why=why)
    if not ranged:
        return NoisyMax.offer(reach, price)._replace(why=f"{text}, never a count")
    if not own and not ranges_cost_less(price):
        why = f"{text}; noisy max expects no less than the exponential mechanism of this epsilon"
        return NoisyMax.offer(reach, price)._replace(why=why)
    chosen: Offer = (asked or Exponential).offer(reach, price)
    return chosen._replace(why=f"{text}; {chosen.why}")
