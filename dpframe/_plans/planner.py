"""From a question and a price to a plan: which noise each statistic gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpframe._errors import BadValue, BudgetError
from dpframe._groups.keys import Word
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import AGGREGATES
from dpframe._plans.arrange import arrange, cells_of
from dpframe._plans.choices import Selector, choice, pure
from dpframe._plans.measured import Cell
from dpframe._plans.output import Outputs
from dpframe._plans.plan import Part, Plan
from dpframe._statistics.base import Sensitivity, Statistic
from dpframe.accounting._base import Price
from dpframe.accounting.loss import DiscreteGaussian, Loss, PureDP
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.laplace import Laplace
from dpframe.mechanisms.noisy_max import NoisyMax


def make_plan(
    query: Outputs, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]
) -> Plan:
    """The plan of outputs at a price: pure, and the only place where their price becomes a scale."""
    arranged = arrange(query, unit, public_rows)
    statistics = [s for s, _ in arranged]
    grouped = bool(query.by)
    first = query.outputs[0]
    selects = AGGREGATES[first.aggregate].selects
    candidates = (query.groups if query.by else len(query.outputs)) if selects else query.groups
    share = len(statistics)
    noises: list[Laplace | Gaussian | Selector]
    picks = [AGGREGATES[query.outputs[serves[0]].aggregate].picks for _, serves in arranged]
    stated_at = Fraction(0)
    if selects:
        reaches = [s.reach_of_person(unit, query.groups if grouped else None) for s in statistics]
        sensitivities = [Sensitivity(r, r * r) for r in reaches]
        chosen = choice(first.aggregate, sensitivities[0].l1, candidates, first.rounds, price)
        noises, why = [chosen.noise], chosen.why
    elif any(picks):
        if price.mechanism != "auto":
            raise BadValue("a selection has its own mechanism (noisy-max): leave mechanism= out.")
        # The sensitivity of ranks is about differences of scores; several statistics share the price.
        sensitivities = [s.of_person(unit, query.groups if grouped else None) for s in statistics]
        e = pure(price) / share
        noises = [
            NoisyMax.for_price(s.l1, e) if one else Laplace.for_price(s.l1, e)
            for s, one in zip(sensitivities, picks, strict=True)
        ]
        why = "points of a grid, one price: only the choice leaves, never a count"
        if not all(picks):
            why = "a choice by noisy max, and pure epsilon for the rest"
    else:
        sensitivities = [s.of_person(unit, query.groups if grouped else None) for s in statistics]
        noises, why = _noises(sensitivities, price)
    gaussians = [
        (n.variance, Fraction(s.l2_squared))
        for n, s in zip(noises, sensitivities, strict=True)
        if isinstance(n, Gaussian)
    ]
    # A statistic that nobody can move has no cost, and no loss has a sensitivity of 0.
    moved = [(v, d) for v, d in gaussians if d]
    pure_or_gaussian = DiscreteGaussian(parts=moved) if moved else None
    loss: Loss = chosen.loss if selects else pure_or_gaussian or PureDP(pure(price))
    if moved:
        stated_at = price.delta
    if share > 1:
        why += f"; the price is shared by {share} statistics"
    parts = tuple(
        Part(s.description, noise, sens.l1, sens.l2_squared, s.step)
        for s, noise, sens in zip(statistics, noises, sensitivities, strict=True)
    )
    cells: list[Cell | None] = [None] * len(query.outputs)
    for part, (statistic, serves) in enumerate(arranged):
        found = cells_of([query.outputs[i] for i in serves], part, statistic)
        for i, cell in zip(serves, found, strict=False):
            cells[i] = cell
    return Plan(
        str(query),
        unit.neighbors,
        loss,
        stated_at,
        parts,
        tuple(c for c in cells if c is not None),
        candidates,
        why + _told(statistics, unit, grouped),
        tuple(map(str, declared)),
        statistics=tuple(statistics),
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


def _told(statistics: Sequence[Statistic], unit: Unit, grouped: bool) -> str:
    """What a person counts for, in words."""
    if all(s.once for s in statistics):
        return "; a person counts once" if unit.people else ""
    return "".join(dict.fromkeys(s.told(unit, grouped) for s in statistics if not s.once))


def _noises(sensitivities: Sequence[Sensitivity], price: Price) -> tuple[list[Any], str]:
    """Laplace or Gaussian, whichever has the narrower interval of those that the price buys, and why."""
    if price.mechanism == "exponential":
        raise BadValue('mechanism="exponential" makes choices: this question measures, so leave it out.')
    share = len(sensitivities)
    laplace = [Laplace.for_price(s.l1 * share, pure(price)) for s in sensitivities] if price.epsilon else None
    gaussian = (
        [_gaussian(s.l2_squared * share, price) for s in sensitivities] if _buys_gaussian(price) else None
    )
    if price.mechanism == "laplace" or gaussian is None:
        if price.mechanism == "gaussian":
            if price.stake is not None and price.stake.waits:
                raise BudgetError(
                    "mechanism='gaussian' has to wait: large releases with other noise took more than their part of what "
                    "counts Gaussian noise, and the plain sum that paid them cannot count it. Leave mechanism= out, or ask "
                    "for a larger epsilon."
                )
            if price.stake is not None and price.stake.left is None:
                raise BudgetError(
                    "this budget has no room for Gaussian noise any more: a release that was too large to be counted together "
                    "with many small ones was paid from the plain sum of epsilons, which counts no Gaussian noise. Ask without "
                    "mechanism='gaussian', and fit models by a method whose noise is not Gaussian, such as 'output'."
                )
            raise BudgetError(
                "mechanism='gaussian' needs a price that buys one: delta= beside epsilon=, or a session with delta > 0 "
                "whose accountant still has room for it."
            )
        if laplace is None:
            raise BudgetError("this price buys no pure mechanism: give epsilon=.")
        if price.mechanism == "laplace":
            return laplace, "Laplace, as asked"
        waits = price.stake is not None and price.stake.waits
        return laplace, "Laplace: Gaussian noise has to wait until more is spent" if waits else "pure epsilon"
    if price.mechanism == "gaussian" or laplace is None:
        return gaussian, "Gaussian, as asked" if price.mechanism == "gaussian" else "Gaussian"
    ratio = gaussian[0].quantile(0.95) / max(laplace[0].quantile(0.95), 1)
    if ratio < 1:
        return gaussian, f"Gaussian intervals are {ratio:.3g} times as wide as Laplace ones at this price"
    return laplace, f"Laplace: Gaussian intervals would be {ratio:.3g} times as wide at this price"


def _buys_gaussian(price: Price) -> bool:
    return price.rho is not None or price.mu_squared is not None


def _gaussian(l2_squared: int, price: Price) -> Gaussian:
    if price.rho is not None:
        return Gaussian.for_rho(l2_squared, price.rho)
    assert price.mu_squared is not None
    return Gaussian.for_mu(l2_squared, price.mu_squared)
