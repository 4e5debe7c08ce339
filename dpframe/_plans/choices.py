"""What a selection is made with, for its price: which mechanism, at which cost, and why."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from dpframe._errors import BadValue, BudgetError
from dpframe._plans.aggregates import AGGREGATES
from dpframe._plans.sums import Selection
from dpframe.accounting import loss
from dpframe.accounting._additive import root_below
from dpframe.accounting._filter import Price
from dpframe.accounting._tight import largest
from dpframe.mechanisms.response import Response
from dpframe.mechanisms.selection import Exponential, NoisyMax, NoisyTop
from dpframe.mechanisms.threshold import (
    GaussianThreshold,
    LaplaceThreshold,
    TruncatedThreshold,
    TruncatedVector,
)

Selector = (
    NoisyMax
    | NoisyTop
    | Exponential
    | TruncatedThreshold
    | TruncatedVector
    | LaplaceThreshold
    | GaussianThreshold
)
# Reports are no selection, but their receipts are read back in the same place.
SELECTORS: dict[str, Callable[[dict[str, Any]], Any]] = {
    one.name: one.from_json
    for one in (
        *(NoisyMax, NoisyTop, Exponential, Response),
        *(TruncatedThreshold, TruncatedVector, LaplaceThreshold, GaussianThreshold),
    )
}


class Choice(NamedTuple):
    """A mechanism with what it costs."""

    noise: Selector
    loss: loss.Loss
    why: str


def pure(price: Price) -> Fraction:
    if price.epsilon is None:
        raise BudgetError("this price buys no pure mechanism: give epsilon=.")
    return price.epsilon


def choice(aggregate: str, reach: int, candidates: int, rounds: int, price: Price) -> Choice:
    """The selection of one candidate or several, whose scores move by ``reach`` against one another."""
    selection = AGGREGATES[aggregate]
    ranged = isinstance(selection, Selection) and selection.ranged
    own = price.mechanism == "exponential" and ranged
    if price.mechanism != "auto" and not own:
        also = ', or give mechanism="exponential"' if ranged else ""
        raise BadValue(f"a selection has its own mechanism (noisy-max): leave mechanism= out{also}.")
    text = f"{candidates} candidates, one price: only the choice leaves"
    if aggregate == "top":
        epsilon = pure(price)
        return Choice(
            NoisyTop.for_price(reach, epsilon, rounds),
            loss.PureDP(epsilon),
            f"{text}, in {rounds} rounds that share it, never a count",
        )
    if not ranged:
        epsilon = pure(price)
        return Choice(NoisyMax.for_price(reach, epsilon), loss.PureDP(epsilon), f"{text}, never a count")
    if not own and not _ranges_cost_less(price):
        epsilon = pure(price)
        return Choice(
            NoisyMax.for_price(reach, epsilon),
            loss.PureDP(epsilon),
            f"{text}; noisy max expects no less than the exponential mechanism of this epsilon",
        )
    epsilon, why = _ranged(price)
    return Choice(Exponential.for_price(reach, epsilon), loss.Exponential(epsilon), f"{text}; {why}")


def _ranges_cost_less(price: Price) -> bool:
    """Whether a bounded range is counted for less than a pure epsilon."""
    return not price.rho is price.mu_squared is None or (
        price.stake is not None and price.stake.left is not None
    )


def _ranged(price: Price) -> tuple[Fraction, str]:
    """The epsilon of an exponential mechanism. A bounded range of epsilon is epsilon**2 / 8 zCDP."""
    if price.rho is not None:
        epsilon = root_below(8 * price.rho)
        return epsilon, f"a range of epsilon {float(epsilon):.4g} costs what this price does in zCDP"
    epsilon, stake = pure(price), price.stake
    if stake is not None and stake.left is not None and stake.cost is not None:
        # The residue alone pays, and takes less for a range than for any release of this epsilon.
        epsilon = max(epsilon, largest("ranged", stake.left, stake.cost, stake.epsilon) or epsilon)
    if _ranges_cost_less(price):
        return (
            epsilon,
            "the exponential mechanism, whose bounded range most accountants with delta count for less",
        )
    return epsilon, "the exponential mechanism, as asked"


def shortfall(noise: Selector, candidates: int) -> float:
    """With probability 0.95 no choice falls further short of the best that was left, in steps of the scores.

    (ln k + ln 20) / rate for k candidates: for the exponential mechanism theorem 3.11 of Dwork and Roth (2014); for
    noise of which none of k exceeds it but with probability 0.05; and of k in each of several rounds together.
    """
    rounds = getattr(noise, "rounds", 1)
    return float(noise.scale) * math.log(max(candidates, 1) * rounds / 0.05)
