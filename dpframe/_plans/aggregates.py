"""What an aggregation is: which vector of integers it is read off, how it finishes, and the interval of its noise.

Each kind enters itself in `AGGREGATES` by name, where it is defined: counts, sums and choices in `sums`, moments in `moments`,
order statistics in `order`. Everything after the release works on noisy numbers, so it is post-processing: it may look at them
as it likes. The intervals are derived in docs/guarantees/intervals.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from dpframe._groups.unit import Unit
from dpframe._plans.measured import Cell, Interval, Measured
from dpframe._plans.output import Output, Outputs
from dpframe._statistics.base import Statistic


class Setting(NamedTuple):
    """What decides the form of a vector beside the outputs that are read off it."""

    query: Outputs
    unit: Unit
    public_rows: int | None  # the number of rows, where it is public
    rows: bool = False  # whether the rows of each group are read off the same vector


class Vector(ABC):
    """What outputs share that are read off one vector of integers: equal ones are one statistic, which is noised once."""

    __slots__ = ()
    place: ClassVar[int]  # vectors are released in this order, and by first mention within a place

    def among(self, others: Collection[Vector]) -> Vector:
        """The vector it is read off where these others are released beside it."""
        return self

    @abstractmethod
    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        """The integers, with their sensitivity, for the outputs that share them."""


class Aggregate(ABC):
    """An entry: what it needs, and its finish."""

    degree: ClassVar[int] = 0  # the highest moment it is made of
    needs_bounds: ClassVar[bool] = False  # public ones, of the column
    takes_ddof: ClassVar[bool] = False
    named_in_agg: ClassVar[bool] = False  # others are verbs of their own
    # Whether the release that finds the groups may answer it: sums over rows, of which people's parts are bounded alike.
    found_at_once: ClassVar[bool] = False
    least_shown: ClassVar[float | None] = None  # the least it can be of a group that a threshold has shown
    selects: ClassVar[bool] = False  # whether the whole release is one choice
    picks: ClassVar[bool] = False  # whether it is chosen among points instead of measured
    always_whole: ClassVar[bool] = False  # whether answers are whole numbers, whatever the data
    promise: ClassVar[str] = (
        ""  # what holds with probability 0.95, where the error is not one of the answer itself
    )

    @abstractmethod
    def vector_of(self, out: Output) -> Vector:
        """What an output shares with those that are read off the same integers."""

    def alone(self, out: Output, setting: Setting) -> Statistic | None:
        """A statistic with less noise than the shared one, for a column of which nothing else is asked; None without one."""
        return None

    def cell(self, out: Output, part: int, statistic: Statistic, place: int) -> Cell:
        """An output as the plan knows it, the ``place``-th that the statistic serves: the linear maps and public numbers that
        it is made of, where 0 and 1 lie in data units, and whether answers are whole whatever the data."""
        ends, maps = out.bounds or (0.0, 1.0), statistic.functionals()
        return Cell(
            out.name, out.aggregate, part, *ends, out.ddof, self.always_whole, maps, statistic.constants()
        )

    @abstractmethod
    def value(self, m: Measured) -> NDArray[Any]:
        """One answer a group."""

    @abstractmethod
    def interval(self, m: Measured, level: float) -> Interval:
        """Where the answer without noise lies with probability ``level``."""

    @abstractmethod
    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        """Half the width of the interval to expect; None where it depends on an unknown number of values."""

    def ranks(self, m: Measured) -> float:
        """The number in the promise of an entry with noise."""
        raise AssertionError("only an error in ranks is known in advance")


AGGREGATES: dict[str, Aggregate] = {}  # by name, each entered where it is defined


def aggregation(*names: str) -> Callable[[type[Any]], type[Any]]:
    """A decorator of a kind of aggregate: enters one of it under these names."""

    def entered(kind: type[Any]) -> type[Any]:
        AGGREGATES.update(dict.fromkeys(names, kind()))
        return kind

    return entered


def named_in_agg() -> tuple[str, ...]:
    """The measured aggregates that `agg` may name."""
    return tuple(name for name, one in AGGREGATES.items() if one.named_in_agg)


DESCRIBED = ("count", "mean", "std")  # the rows of `describe`, in pandas' order
CHOSEN = ("median",)  # those that `agg` may name too, and that leave no number but a choice
# Order statistics by name, as levels of a quantile. A least or greatest value is one person's, so these are near them.
ORDERS = {"median": Fraction(1, 2), "min": Fraction(1, 100), "max": Fraction(99, 100)}
