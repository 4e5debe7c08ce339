"""Conditionals: one of two values of a row, as ``where``, ``mask``, ``np.where`` and ``x if c else
y`` have it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

from dpframe._errors import BadType
from dpframe._expr._base import Constant, Expr, KeysOf, Lookup
from dpframe._expr._build import (
    CALLS,
    METHODS,
    _boolean,
    _length,
    _moment,
    constant,
    describe,
    logical_or,
)
from dpframe._expr._kinds import Kind
from dpframe._expr._ranges import Interval, union
from dpframe._types import Values

_NUMBERS = frozenset[Kind](("number", "bool"))
_TEXTS = frozenset[Kind](("text", "label"))


@dataclass(frozen=True, slots=True)
class If(Expr):
    """``x`` where the condition is true, ``y`` where it is false or null. Numbers and bools
    together are numbers, texts and labels together labels. Numbers are whole where both sides are;
    else they are doubles."""

    identity: ClassVar[tuple[str, ...]] = ("if", "condition", "x", "y")

    condition: Expr
    x: Expr
    y: Expr

    @property
    def _sides(self) -> tuple[Expr, ...]:
        """The values, without a null that is written down."""
        return tuple([side for side in (self.x, self.y) if not _is_null(side)])

    @property
    def kind(self) -> Kind:
        kinds = {side.kind for side in self._sides}
        return next(iter(kinds)) if len(kinds) == 1 else "number" if kinds <= _NUMBERS else "label"

    @property
    def nullable(self) -> bool:
        # Times of two resolutions meet at the finer one, in which the other may have no place.
        return self.x.nullable or self.y.nullable or self.kind in ("time", "duration")

    @property
    def integral(self) -> bool:
        return all(side.integral for side in self._sides)

    @property
    def tz(self) -> str | None:
        return self._sides[0].tz

    def interval(self, lookup: Lookup) -> Interval:
        return reduce(union, [side.interval(lookup) for side in self._sides])

    def members(self, keys: KeysOf, ends: Lookup) -> Values | None:
        """Return all values that the two sides can have; None if not known.

        A group-by by this expression has them as its keys, sorted if they have an order. ``keys``
        returns the group keys of a column, and ``ends`` its bounds.
        """
        listed = [
            (side.value,) if isinstance(side, Constant) else side.members(keys, ends)
            for side in self._sides
        ]
        known = [v for v in listed if v is not None]
        if len(known) < len(listed):
            return None
        members = {(type(v), v): v for side in known for v in side}
        return in_order(members.values())

    def __str__(self) -> str:
        return f"({self.x} if {self.condition} else {self.y})"


def in_order(values: Any) -> Values:
    """Return public values as pandas sorts the labels of groups.

    Values that have no order stay as they are listed.
    """
    listed = tuple(values)
    try:
        return tuple(sorted(listed))
    except TypeError:
        return listed


def _is_null(x: Expr) -> bool:
    return isinstance(x, Constant) and x.value is None


def _as_expr(value: object) -> Expr:
    return value if isinstance(value, Expr) else constant(value, null=True)


def choose(condition: Expr, x: object, y: object) -> Expr:
    """Return the expression ``x if condition else y``; refuse sides that do not go together.

    A null may be written for either side.
    """
    _boolean(condition, "a choice")
    first, second = _as_expr(x), _as_expr(y)
    if isinstance(first, Constant) and not isinstance(second, Constant):
        first = _of_kind(first, second)
    elif isinstance(second, Constant) and not isinstance(first, Constant):
        second = _of_kind(second, first)
    kinds = {side.kind for side in (first, second) if not _is_null(side)}
    if not kinds or "other" in kinds:
        shown = first if first.kind == "other" else second
        raise BadType(
            f"a choice needs values, and {describe(shown)} has none that can be told apart."
        )
    labelled = "label" in kinds and any(isinstance(side, Constant) for side in (first, second))
    if not (len(kinds) == 1 or kinds <= _NUMBERS or kinds <= _TEXTS or labelled):
        raise BadType(
            f"a choice between {describe(first)} and {describe(second)} has no one kind. Write "
            "both as numbers, or both as "
            "texts in quotes."
        )
    if kinds == {"time"} and len({side.tz for side in (first, second) if not _is_null(side)}) > 1:
        raise BadType(
            f"a choice between times of two zones ({first.tz} and {second.tz}) has none. Use one "
            "zone."
        )
    if (
        isinstance(first, Constant)
        and first.value is True
        and second.kind == "bool"
        and not second.nullable
    ):
        return logical_or(condition, second)  # which is what `in (1, 2)` comes to, value by value
    return If(condition, first, second)


def _of_kind(c: Constant, x: Expr) -> Constant:
    """Return a constant as the other side of a choice has its values.

    ``x`` is that side. Dates and durations may be given as texts.
    """
    if x.kind == "duration":
        return _length(c)
    return _moment(c, x) if x.kind == "time" and c.kind in ("text", "time") else c


def where(x: Expr, cond: object, other: object = None) -> Expr:
    """Return ``x.where(cond, other)``: the other where the condition does not hold."""
    return choose(_as_expr(cond), x, other)


def mask(x: Expr, cond: object, other: object = None) -> Expr:
    """Return ``x.mask(cond, other)``: the other where the condition holds."""
    return choose(_as_expr(cond), other, x)


METHODS.update(where=where, mask=mask)
CALLS.update(where=choose)
