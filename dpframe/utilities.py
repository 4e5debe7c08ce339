"""Named utilities for `choose`: the worth of a candidate, with a bound on what one person changes.

The proofs are in docs/guarantees/exponential.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from dpframe import _expr, _validate
from dpframe._errors import BadType, BadValue
from dpframe._groups.keys import BinBy, By
from dpframe._plans.aggregates import Output

__all__ = ["Utility", "distance", "revenue"]


def __dir__() -> list[str]:
    return list(__all__)  # completion shows the public names alone


class UtilityColumns(Protocol):
    """A tracked frame as a utility sees it: its columns, and the declarations about them."""

    def find_column(self, column: object) -> tuple[_expr.Expr, Hashable]:
        """Return the expression of a column, and its name."""

    def bounds(self, expr: _expr.Expr, name: Hashable, given: object) -> _validate.Bounds:
        """Return the bounds that are given, or else those that are declared for the column."""


class Scored(NamedTuple):
    """A utility as a question.

    ``order`` has the places of the candidates, in the order of the groups or outputs.
    """

    outputs: tuple[Output, ...]
    by: tuple[By, ...]
    order: tuple[int, ...]


class Utility(ABC):
    """A utility whose sensitivity is a theorem: `choose` takes it as it is."""

    @abstractmethod
    def describe_question(self, frame: UtilityColumns, candidates: Sequence[object]) -> Scored:
        """Return the question that this utility makes of a frame and public candidates."""


@dataclass(frozen=True)
class _Revenue(Utility):
    """The revenue at a price, for bids in a column."""

    column: Any

    def describe_question(self, frame: UtilityColumns, candidates: Sequence[object]) -> Scored:
        """Return the question for the candidate price with the largest revenue; ``candidates`` are
        the prices."""
        expr, name = _read_numbers(frame, self.column, "revenue")
        prices = [_validate.real(c, "a price") for c in candidates]
        if min(prices) < 0 or max(prices) == 0 or max(prices) > 2.0**500:
            raise BadValue(
                "prices must be at least 0, one of them above, and none beyond 2**500: the "
                "utility of a price is its revenue."
            )
        if max(prices) < _validate.MIN_WIDTH:
            raise BadValue("the largest price is below 2**-900. Rescale the column.")
        order = tuple(sorted(range(len(prices)), key=prices.__getitem__))
        edges = (*(prices[i] for i in order), math.inf)
        if len(set(edges)) < len(edges):
            raise BadValue("prices must be different doubles.")
        return Scored((Output("choice", "revenue"),), (BinBy(expr, edges, name),), order)


@dataclass(frozen=True)
class _Distance(Utility):
    """The nearness of a place to the values of a column."""

    column: Any
    bounds: Any

    def describe_question(self, frame: UtilityColumns, candidates: Sequence[object]) -> Scored:
        """Return the question for the candidate point that is nearest to everybody's values."""
        expr, name = _read_numbers(frame, self.column, "distance")
        pair = frame.bounds(expr, name, self.bounds)
        if math.isinf(pair.upper - pair.lower):
            raise BadValue(
                f"the bounds of {name!r} are further apart than any double. Rescale the column."
            )
        places = [_validate.real(c, "a candidate") for c in candidates]
        if not all(pair.lower <= place <= pair.upper for place in places):
            raise BadValue(
                f"candidates must lie within the bounds ({pair.lower:g}, {pair.upper:g})."
            )
        clipped = _expr.clip(_expr.cast(expr, float), *pair)
        return Scored(
            tuple(
                Output(
                    candidate,
                    "choose",
                    _expr.fill(
                        _expr.negate(
                            _expr.absolute(_expr.arithmetic("-", clipped, _expr.constant(place)))
                        ),
                        0,
                    ),
                    _validate.Bounds(pair.lower - pair.upper, 0.0),
                    said=f"distance({name})",
                )
                for candidate, place in zip(candidates, places, strict=True)
            ),
            (),
            tuple(range(len(candidates))),
        )


def _read_numbers(
    frame: UtilityColumns, column: object, utility: str
) -> tuple[_expr.Expr, Hashable]:
    """Return the expression and the name of a numeric column, and refuse other columns. ``utility``
    is for errors."""
    expr, name = frame.find_column(column)
    if expr.kind not in ("number", "bool"):
        raise BadType(f"column {name!r} is of kind {expr.kind}: {utility} needs numbers.")
    return expr, name


def revenue(column: object) -> Utility:
    """Return the utility of a price for `choose`: the price times the number of bids that reach it.

    This is the utility of digital goods. The bids are the values of the column.

    Formal guarantee: a row moves the revenue at one price against that at another by at most the
    largest price, added, removed or replaced. Nulls are no bids. Prices count as multiples of the
    largest times about 2**-30; whole ones below 2**30 are exact. One pass over the rows serves any
    number of prices.

    >>> import pandas as pd
    >>> df = pd.DataFrame({"bid": [1.0, 1.0, 1.0, 3.01]})
    >>> p = df.dp.open(1000)
    >>> p.choose([1, 3.01, 3.02], revenue("bid"), epsilon=900)
    1
    """
    return _Revenue(column)


def distance(column: object, bounds: object = None) -> Utility:
    """Return the utility of a point for `choose`: how near it is to everybody's values.

    It is minus the sum of its distances from the values of the column, clipped to bounds.

    Formal guarantee: a row moves the utility of one candidate against that of another by at most
    upper - lower, twice that where rows are replaced. Nulls count for nothing. Every candidate is
    one more pass over the rows.

    >>> import pandas as pd
    >>> df = pd.DataFrame({"km": [1.0, 2.0, 9.0]})
    >>> p = df.dp.open(1000)
    >>> p.choose([0, 2, 5, 9], distance("km", bounds=(0, 10)), epsilon=900)
    2
    """
    return _Distance(column, bounds)
