"""The kinds of answers that measures give, which differ between frames and groups, and what their
arguments may be."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar

from dpframe._plans.price import Payment

if TYPE_CHECKING:
    from dpframe._frame.selection import Taken

A = TypeVar("A", covariant=True)  # what becomes of any question: a plan, or a place in a batch

Whole = TypeVar("Whole", covariant=True)  # how many: a whole number, or one for each group
Number = TypeVar("Number", covariant=True)  # a mean and its like
Value = TypeVar("Value", covariant=True)  # a number that is whole where the column is
Counted = TypeVar("Counted", covariant=True)  # how many, where no column is named
Levels = TypeVar("Levels", covariant=True)  # quantiles of one column at several levels
Row = TypeVar("Row", covariant=True)  # a mean and its like, of each column
Values = TypeVar("Values", covariant=True)  # numbers of each column, whole or not
Table = TypeVar("Table", covariant=True)  # quantiles of each column at several levels
Outputs = TypeVar("Outputs", covariant=True)  # several aggregates of several columns

Named: TypeAlias = "Hashable | Taken"  # a column, by its name or as it was taken; no list
Pair: TypeAlias = (
    "Sequence[float] | Mapping[Any, Sequence[float]] | None"  # bounds of a column, or by column
)
Shares: TypeAlias = "Sequence[float]"


class Words(Payment, total=False):
    """The words of a price, and the one by which a verb takes all columns that are numbers."""

    numeric_only: bool


class Moments(Words, total=False):
    """The words of variances and their kin."""

    ddof: int


class Points(Words, total=False):
    """The words of quantiles."""

    resolution: float | None


class Extremes(Points, total=False):
    """The words of what is near the least and the greatest value."""

    q: float


class Quantiles(Points, total=False):
    """The words of quantiles at any levels."""

    method: str


class Grouping(TypedDict, total=False):
    """The words of `groupby`, but for the one that decides what its answers look like."""

    keys: Any
    other: Any
    bounds: Any
    sort: bool | None
    group_keys: bool
    observed: bool | None
    dropna: bool | None
    level: Any
