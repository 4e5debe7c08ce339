"""What the rows of one person make of each other: `Within`, the node that looks at all of them and
at nobody else's.

*Formal guarantee.* The value in a row is a function of the rows of that row's person alone, in the
order that they have among each other. So a filter or a column made of such nodes changes, when a
person is added or removed, that person's rows only, as one made of single rows does
(docs/guarantees/people.md#verbs-within-a-person). It is offered where columns name a person.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from dpframe._errors import BadExpression, BadType
from dpframe._expr._base import MAX_DEPTH, MAX_SIZE, Column, Constant, Expr, KeysOf, Lookup
from dpframe._expr._kinds import Kind
from dpframe._expr._nodes import Not
from dpframe._expr._ranges import Interval, outward
from dpframe._identity import give_tag

# From where the cells lie, how many of a person's rows count, and further words, to where the
# results lie.
Reach = Callable[[Interval, int | None, tuple[Any, ...]], Interval]


@give_tag("sort_key")
class Key(NamedTuple):
    """What a person's rows are sorted by; rows that are alike in it stay in the order they had."""

    expr: Expr
    descending: bool = False
    nulls_last: bool = True


class How(NamedTuple):
    """What a verb makes of a person's cells, and what is known of its results."""

    of: tuple[Kind, ...]  # none: of the rows, whatever is in them
    kind: Kind | None  # of the results; None: that of the cells
    reach: Reach
    single: bool = True  # one value for all rows of a person
    picks: bool = False  # the results are cells, and nothing is computed
    ordered: bool = False  # it depends on the order of the person's rows
    integral: bool | None = False  # None: where the cells are


def _keep_ends(x: Interval, rows: int | None, args: tuple[Any, ...]) -> Interval:
    return x


def _bound_count(x: Interval, rows: int | None, args: tuple[Any, ...]) -> Interval:
    return None if rows is None else (0.0, float(rows))


def _bound_rows_before(x: Interval, rows: int | None, args: tuple[Any, ...]) -> Interval:
    return None if rows is None else (0.0, float(max(rows - 1, 1)))


def _know_nothing(x: Interval, rows: int | None, args: tuple[Any, ...]) -> Interval:
    return None


def _bound_truth(x: Interval, rows: int | None, args: tuple[Any, ...]) -> Interval:
    return 0.0, 1.0


def _bound_sum(x: Interval, rows: int | None, args: tuple[Any, ...]) -> Interval:
    if x is None or rows is None:
        return None
    return outward(min(Fraction(0), rows * Fraction(x[0])), max(Fraction(0), rows * Fraction(x[1])))


def _bound_variance(x: Interval, rows: int | None, args: tuple[Any, ...]) -> Interval:
    """Return half of the squared width, which two values at the ends have; a quarter with ddof 0."""
    return (
        None
        if x is None
        else outward(Fraction(0), (Fraction(x[1]) - Fraction(x[0])) ** 2 / (4 - 2 * args[0]))
    )


def _bound_deviation(x: Interval, rows: int | None, args: tuple[Any, ...]) -> Interval:
    square = _bound_variance(x, rows, args)
    return None if square is None else (0.0, math.nextafter(math.sqrt(square[1]), math.inf))


def _bound_error(x: Interval, rows: int | None, args: tuple[Any, ...]) -> Interval:
    """Return half of the width, which two values at the ends have. With ddof 0 it is less."""
    return None if x is None else outward(Fraction(0), (Fraction(x[1]) - Fraction(x[0])) / 2)


def _bound_rank(x: Interval, rows: int | None, args: tuple[Any, ...]) -> Interval:
    _, _, share = args
    return (0.0, 1.0) if share else _bound_count(x, rows, args)


_NUMBERS: tuple[Kind, ...] = ("number", "bool")
_SORTED: tuple[Kind, ...] = ("number", "bool", "time", "duration")
_CELLS: tuple[Kind, ...] = ("number", "bool", "text", "label", "time", "duration")
# What there is. A new one has its function in `dpframe.engines.within`, and its verb in
# `dpframe._frame.people.groups`.
WITHIN: dict[str, How] = {
    "sum": How(_NUMBERS, "number", _bound_sum, integral=None),
    "mean": How(_NUMBERS, "number", _keep_ends),
    "var": How(_NUMBERS, "number", _bound_variance),
    "std": How(_NUMBERS, "number", _bound_deviation),
    "sem": How(_NUMBERS, "number", _bound_error),
    "prod": How(_NUMBERS, "number", _know_nothing, integral=None),
    "median": How(_NUMBERS, "number", _keep_ends),
    "quantile": How(_NUMBERS, "number", _keep_ends),
    "min": How(_SORTED, None, _keep_ends, picks=True, integral=None),
    "max": How(_SORTED, None, _keep_ends, picks=True, integral=None),
    "any": How(_NUMBERS, "bool", _bound_truth, integral=True),
    "all": How(_NUMBERS, "bool", _bound_truth, integral=True),
    "size": How((), "number", _bound_count, integral=True),
    "count": How(_CELLS, "number", _bound_count, integral=True),
    "nunique": How(_CELLS[:-1], "number", _bound_count, integral=True),
    "first": How(_CELLS, None, _keep_ends, picks=True, ordered=True, integral=None),
    "last": How(_CELLS, None, _keep_ends, picks=True, ordered=True, integral=None),
    "nth": How(_CELLS, None, _keep_ends, picks=True, ordered=True, integral=None),
    # One value in each row:
    "shift": How(_CELLS, None, _keep_ends, single=False, picks=True, ordered=True, integral=None),
    "ffill": How(_CELLS, None, _keep_ends, single=False, picks=True, ordered=True, integral=None),
    "bfill": How(_CELLS, None, _keep_ends, single=False, picks=True, ordered=True, integral=None),
    "cumsum": How(_NUMBERS, "number", _bound_sum, single=False, ordered=True, integral=None),
    "cumprod": How(_NUMBERS, "number", _know_nothing, single=False, ordered=True, integral=None),
    "cummin": How(_NUMBERS, "number", _keep_ends, single=False, ordered=True, integral=None),
    "cummax": How(_NUMBERS, "number", _keep_ends, single=False, ordered=True, integral=None),
    "rank": How(_SORTED, "number", _bound_rank, single=False),
    "cumcount": How((), "number", _bound_rows_before, single=False, ordered=True, integral=True),
    "duplicated": How((), "bool", _bound_truth, single=False, ordered=True, integral=True),
}


@dataclass(frozen=True, slots=True)
class Within(Expr):
    """What ``how`` makes of the cells ``x`` of a person's rows where a condition holds, sorted by
    ``order``; ``by`` makes groups of them. A value for all of the person's rows is null where none
    of them meets the condition, and another one in rows that do not meet it. ``rows`` is the
    owner's word on how many of a person's rows count, from which bounds follow."""

    identity: ClassVar[tuple[str, ...]] = (
        "within",
        "how",
        "x",
        "people",
        "where",
        "order",
        "args",
        "rows",
        "by",
    )

    how: str
    x: Expr | None
    people: tuple[Column, ...]
    where: Expr | None = None
    order: tuple[Key, ...] = ()
    args: tuple[Any, ...] = ()
    rows: int | None = None
    by: tuple[Expr, ...] = ()

    @property
    def kind(self) -> Kind:
        kind = WITHIN[self.how].kind
        if kind is None:
            assert self.x is not None
            return self.x.kind
        return kind

    @property
    def nullable(self) -> bool:
        return self.how != "duplicated"

    @property
    def integral(self) -> bool:
        whole = WITHIN[self.how].integral
        return self.x is not None and self.x.integral if whole is None else whole

    @property
    def tz(self) -> str | None:
        return self.x.tz if self.x is not None and WITHIN[self.how].picks else None

    @property
    def children(self) -> tuple[Expr, ...]:
        known = (self.x, self.where, *(key.expr for key in self.order), *self.by)
        return (*self.people, *(one for one in known if one is not None))

    def members(self, keys: KeysOf, ends: Lookup) -> tuple[Any, ...] | None:
        if self.x is not None and WITHIN[self.how].picks:
            return self.x.members(keys, ends)
        return (False, True) if self.kind == "bool" else None

    def interval(self, lookup: Lookup) -> Interval:
        x = None if self.x is None else self.x.interval(lookup)
        return WITHIN[self.how].reach(x, self.rows, self.args)

    def __post_init__(self) -> None:
        """Checks the depth and the size as of other expressions, of operands that stand in
        tuples."""
        below = self.children
        object.__setattr__(self, "depth", 1 + max(c.depth for c in below))
        object.__setattr__(self, "size", 1 + sum(c.size for c in below))
        if self.depth > MAX_DEPTH or self.size > MAX_SIZE:
            raise BadExpression(
                "too many steps within a person stand on each other. Take some of them apart: ask "
                "fewer at once, or p.pipe(f)."
            )

    def __str__(self) -> str:
        names = ", ".join(map(str, (*self.people, *self.by)))
        keys = [f"{key.expr} descending" if key.descending else str(key.expr) for key in self.order]
        rows = "" if self.where is None else f"[{self.where}]"
        sorts = f"sort_values({', '.join(keys)})." if keys else ""
        cells = "" if self.x is None else f"[{self.x}]"
        words = ", ".join(map(repr, self.args))
        return f"{rows}{'.' * bool(rows)}{sorts}groupby({names}){cells}.{self.how}({words})"


def within(
    how: str,
    x: Expr | None,
    people: Sequence[Column],
    where: Expr | None = None,
    order: Sequence[Key] = (),
    args: tuple[Any, ...] = (),
    rows: int | None = None,
    by: Sequence[Expr] = (),
) -> Expr:
    """Return the node. Raise if it cannot be made of these cells."""
    known = WITHIN[how]
    if x is not None and x.kind not in known.of:
        raise BadType(
            f"{how} of a person's rows needs cells of kind {' or '.join(known.of)}, and {x} is of "
            f"kind {x.kind}."
        )
    return Within(how, x, tuple(people), where, tuple(order), args, rows, tuple(by))


def stem(expr: Expr) -> Expr:
    """Return the expression that the cells are picked out of."""
    while isinstance(expr, Within) and WITHIN[expr.how].picks and expr.x is not None:
        expr = expr.x
    return expr


def keeps_one_row(where: Expr | None) -> bool:
    """Return whether a condition keeps the first row of each person, whom one column names."""
    again = where.x if isinstance(where, Not) else None
    if not isinstance(again, Within) or len(again.people) != 1 or again.order:
        return False
    return (again.how, again.args, again.by) == ("duplicated", ("first",), ())


def looks_within(expr: Expr) -> bool:
    """Return whether an expression looks at several rows of a person."""
    return isinstance(expr, Within) or any(map(looks_within, expr.children))


def has_one_value(expr: Expr, people: Sequence[Column]) -> bool:
    """Return whether an expression has one value for all rows of a person, by its nodes."""
    if isinstance(expr, Within):
        return WITHIN[expr.how].single and not expr.by
    if isinstance(expr, Column):
        return expr in people
    return isinstance(expr, Constant) or all(
        has_one_value(child, people) for child in expr.children
    )
