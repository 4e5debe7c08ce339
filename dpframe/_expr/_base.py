"""The base of every expression, and its two leaves: a column and a constant."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd

from dpframe._errors import BadExpression
from dpframe._expr._kinds import Kind, facts_of, known_facts
from dpframe._expr._ranges import Interval, outward
from dpframe._types import Values

# What is known about a column's values; None when nothing is.
Lookup = Callable[["Column"], Interval]

# The keys that are declared of a column; None when none are.
KeysOf = Callable[["Column"], "tuple[Any, ...] | None"]

# A tree may share branches (x + x of x + x), so its size is bounded as well as its depth.
MAX_DEPTH = 100
MAX_SIZE = 20_000
# No integer dtype reaches beyond this, so integer columns are finite even when no bounds are
# declared.
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
INTEGERS = (-(2.0**64), 2.0**64)
FEW: Final = 64  # values that a whole number may have by its bounds, for all of them to be groups


class Encoded:
    """A frozen value that questions are made of, with room for its encoding (`_cells.encoding`),
    once it was made.

    That room is not a field, so it is not compared, copied or pickled.
    """

    __slots__ = ("encoded",)
    identity: ClassVar[tuple[str, ...]]  # the tag of the class, and its fields in a fixed order


@dataclass(frozen=True, slots=True)
class Expr(Encoded):
    """A function of one row. A predicate that is never null, unless the class says otherwise."""

    depth: int = field(init=False, compare=False, repr=False, default=1)
    size: int = field(init=False, compare=False, repr=False, default=1)

    def __post_init__(self) -> None:
        """Compute depth and size from the operands, and refuse an expression that is too deep."""
        made_of: tuple[str, ...] = self.__match_args__
        depth, size = 0, 1
        for name in made_of:
            if isinstance(below := getattr(self, name), Expr):
                depth, size = max(depth, below.depth), size + below.size
        object.__setattr__(self, "depth", 1 + depth)
        object.__setattr__(self, "size", size)
        if depth >= MAX_DEPTH or size > MAX_SIZE:
            raise BadExpression(
                "the expression is nested too deeply. Split it into several columns or filters."
            )

    @property
    def kind(self) -> Kind:
        return "bool"

    @property
    def nullable(self) -> bool:
        """Whether the value can be null, as far as dtypes and constants tell."""
        return False

    @property
    def integral(self) -> bool:
        """Whether every finite value is provably an integer."""
        return self.kind == "bool"

    @property
    def tz(self) -> str | None:
        """The time zone of a time expression; None is naive."""
        return None

    @property
    def children(self) -> tuple[Expr, ...]:
        """The expressions that this one is made of."""
        made_of: tuple[str, ...] = self.__match_args__
        operands = [getattr(self, name) for name in made_of]
        return tuple([c for c in operands if isinstance(c, Expr)])

    def columns(self) -> frozenset[Column]:
        return frozenset[Column]().union(*(c.columns() for c in self.children))

    def interval(self, lookup: Lookup) -> Interval:
        """Return a closed interval that holds every value of the expression; None if not known.

        ``lookup`` returns such an interval for a column. Intervals of times and durations are in
        whole nanoseconds. Times count from 1970, in UTC, or without a zone in their own time.
        """
        return (0.0, 1.0) if self.kind == "bool" else None

    def bounds(self, declared: Mapping[int, tuple[float, float]]) -> Interval:
        """Return a closed interval that holds every number; None if there is no such interval.

        ``declared`` has the clipping bounds of columns, by position.
        """
        if self.kind not in ("number", "bool"):
            return None
        return self.interval(lambda column: declared.get(column.position))

    def unbounded(self, declared: Mapping[int, tuple[float, float]]) -> Expr | None:
        """Return the innermost number that has no bounds, although its operands have some.

        A message tells with it where bounds are lost in the expression. ``declared`` has the
        clipping bounds of columns, by position. The result is None if nothing lost its bounds.
        """
        if self.kind not in ("number", "bool") or self.bounds(declared) is not None:
            return None
        for child in self.children:
            within = child.unbounded(declared)
            if within is not None:
                return within
        known = [
            c.bounds(declared) is not None for c in self.children if c.kind in ("number", "bool")
        ]
        return self if known and all(known) else None

    def members(self, keys: KeysOf, ends: Lookup) -> Values | None:
        """Return all values there can be, without null, in the order of groups; None if not known.

        A group-by by this expression has them as its keys. They follow from what is declared of the
        columns: ``keys`` returns a column's group keys, and ``ends`` its bounds. Too many values
        are None as well. Whole numbers are few between bounds that are close.
        """
        if self.kind == "bool":
            return (False, True)
        between = self.interval(ends) if self.kind == "number" and self.integral else None
        if between is None or not between[1] - between[0] < FEW:
            return None
        return tuple(range(math.ceil(between[0]), math.floor(between[1]) + 1))

    @property
    def finite(self) -> bool:
        """Whether the value is provably neither infinite nor NaN, whatever the columns hold."""
        return (
            not self.nullable
            and self.interval(lambda c: INTEGERS if c.integral else None) is not None
        )


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """A root column. Its position identifies it: names change, and 1, 1.0 and True are one name to
    a dict."""

    identity: ClassVar[tuple[str, ...]] = (
        "column",
        "position",
        "name",
        "kind",
        "nullable",
        "integral",
        "tz",
    )

    position: int = 0
    name: Hashable = None
    kind: Kind = "other"
    nullable: bool = True
    integral: bool = False
    tz: str | None = None

    @classmethod
    def of(cls, position: int, name: Hashable, dtype: object) -> Column:
        """Return the column with everything that its dtype tells."""
        # Other dtypes may hold cells of the frame (categories), so they are not kept.
        common = isinstance(dtype, np.dtype | pd.StringDtype)
        return cls(position, name, *(known_facts if common else facts_of)(dtype))

    def __post_init__(self) -> None:
        """Keep the depth and the size of a leaf, which are one."""

    def columns(self) -> frozenset[Column]:
        return frozenset({self})

    def interval(self, lookup: Lookup) -> Interval:
        if self.kind == "bool":
            return (0.0, 1.0)
        return lookup(self) if self.kind in ("number", "time", "duration") else None

    def bounds(self, declared: Mapping[int, tuple[float, float]]) -> Interval:
        if self.kind == "bool":
            return (0.0, 1.0)
        return declared.get(self.position) if self.kind == "number" else None

    def members(self, keys: KeysOf, ends: Lookup) -> Values | None:
        """Return all values that the cells of the column can have; None if not known.

        A group-by by the column has them as its keys. They are its declared group keys, or the
        whole numbers between its ``ends`` if these are few.
        """
        return (
            Expr.members(self, keys, ends)
            if self.kind == "bool"
            else keys(self) or Expr.members(self, keys, ends)
        )

    def __str__(self) -> str:
        name = str(self.name)
        return name if name.isidentifier() else f"`{name}`"


@dataclass(frozen=True, slots=True)
class Constant(Expr):
    """A public literal. 1, 1.0, True and -0.0 differ, because the tag says the type."""

    identity: ClassVar[tuple[str, ...]] = ("constant", "value")

    value: Any = field(compare=False, default=None)
    tag: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "tag", f"{type(self.value).__name__}:{self.value!r}")

    @property
    def kind(self) -> Kind:
        """The kind of the value, such as "number" or "text", from its type."""
        value = self.value
        if isinstance(value, bool):
            return "bool"
        if isinstance(value, int | float):
            return "number"
        if isinstance(value, str):
            return "text"
        if isinstance(value, pd.Timestamp):
            return "time"
        if isinstance(value, pd.Timedelta):
            return "duration"
        return "label" if isinstance(value, pd.Interval) else "other"

    @property
    def nullable(self) -> bool:
        return self.value is None

    @property
    def integral(self) -> bool:
        return isinstance(self.value, int) or (
            isinstance(self.value, float) and self.value.is_integer()
        )

    @property
    def tz(self) -> str | None:
        zone = self.value.tz if isinstance(self.value, pd.Timestamp) else None
        return None if zone is None else str(zone)

    def interval(self, lookup: Lookup) -> Interval:
        if self.kind in ("number", "bool") and math.isfinite(self.value):
            return outward(Fraction(self.value), Fraction(self.value))
        return enclose_ticks(self.value) if self.kind in ("time", "duration") else None

    def __str__(self) -> str:
        shown = isinstance(self.value, pd.Timestamp | pd.Timedelta)
        return repr(str(self.value)) if shown else repr(self.value)


def enclose_ticks(value: Any) -> tuple[int, int]:
    """Return a moment or a duration in nanoseconds, twice: as both ends of an interval."""
    stamp: Any = (value if getattr(value, "tz", None) is None else value.tz_convert(None)).asm8
    ticks = int(stamp.astype(np.int64)) * (10**9 // PER_SECOND[np.datetime_data(stamp.dtype)[0]])
    return ticks, ticks


def as_double(value: Constant) -> float:
    return float(value.value)
