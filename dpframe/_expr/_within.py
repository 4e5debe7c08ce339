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
from dpframe._expr._nodes import Clip, Not
from dpframe._expr._ranges import Interval, outward
from dpframe._identity import give_tag
from dpframe._types import Arguments, Values

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
    """What is made of the cells of one person: an entry of the catalogue `WITHIN`.

    The fields say from which cells it is made, what is known of the results without looking, and
    who computes them.
    """

    of: tuple[Kind, ...]  # kinds of cells; empty where only rows count, whatever is in them
    kind: Kind | None  # of the results; None for that of the cells
    reach: Reach  # where the results lie
    compute: str  # the method of `dpframe.engines.within.cells.Cells` that computes it
    single: bool = True  # one value for all rows of a person
    picks: bool = False  # the results are cells, and nothing is computed
    ordered: bool = False  # it depends on the order of the person's rows
    adds: bool = False  # doubles are added, so that the order of rows decides the last digits
    integral: bool | None = False  # None: where the cells are
    words: tuple[tuple[str, Any], ...] = ()  # further arguments, with their defaults
    doc: str = ""  # the docstring of the verb; empty where no verb of a column has this name


def _keep_ends(x: Interval, rows: int | None, args: Arguments) -> Interval:
    return x


def _bound_count(x: Interval, rows: int | None, args: Arguments) -> Interval:
    return None if rows is None else (0.0, float(rows))


def _bound_rows_before(x: Interval, rows: int | None, args: Arguments) -> Interval:
    return None if rows is None else (0.0, float(max(rows - 1, 1)))


def _know_nothing(x: Interval, rows: int | None, args: Arguments) -> Interval:
    return None


def _bound_truth(x: Interval, rows: int | None, args: Arguments) -> Interval:
    return 0.0, 1.0


def _bound_sum(x: Interval, rows: int | None, args: Arguments) -> Interval:
    """Return bounds of the sum of a person's values, by the bounds of a value; None if not known.

    ``rows`` is the most rows of a person. No values have the sum 0.
    """
    if x is None or rows is None:
        return None
    return outward(min(Fraction(0), rows * Fraction(x[0])), max(Fraction(0), rows * Fraction(x[1])))


def _bound_variance(x: Interval, rows: int | None, args: Arguments) -> Interval:
    """Return bounds of the variance of a person's values, by the bounds ``x`` of a value.

    The largest is half of the squared width, which two values at the ends have; a quarter with ddof
    0. ``args`` has ddof.
    """
    return (
        None
        if x is None
        else outward(Fraction(0), (Fraction(x[1]) - Fraction(x[0])) ** 2 / (4 - 2 * args[0]))
    )


def _bound_deviation(x: Interval, rows: int | None, args: Arguments) -> Interval:
    """Return bounds of the standard deviation of a person's values, by the bounds ``x`` of a
    value."""
    square = _bound_variance(x, rows, args)
    return None if square is None else (0.0, math.nextafter(math.sqrt(square[1]), math.inf))


def _bound_error(x: Interval, rows: int | None, args: Arguments) -> Interval:
    """Return bounds of the standard error of a person's mean, by the bounds ``x`` of a value.

    The largest is half of the width, which two values at the ends have. With ddof 0 it is less.
    """
    return None if x is None else outward(Fraction(0), (Fraction(x[1]) - Fraction(x[0])) / 2)


def _bound_rank(x: Interval, rows: int | None, args: Arguments) -> Interval:
    _, _, share = args
    return (0.0, 1.0) if share else _bound_count(x, rows, args)


_NUMBERS: tuple[Kind, ...] = ("number", "bool")
_SORTED: tuple[Kind, ...] = ("number", "bool", "time", "duration")
_CELLS: tuple[Kind, ...] = ("number", "bool", "text", "label", "time", "duration")
# All that can be made of one person's rows. A new entry needs a method of
# `dpframe.engines.within.cells.Cells`; its verb follows from the entry.
WITHIN: dict[str, How] = {
    "sum": How(
        _NUMBERS,
        "number",
        _bound_sum,
        compute="compute_sum",
        adds=True,
        integral=None,
        doc="Return the sum of each person's values, 0 for no values.\n\n"
        "Its bounds are ``max_rows`` times those of the column.",
    ),
    "mean": How(
        _NUMBERS,
        "number",
        _keep_ends,
        compute="compute_mean",
        adds=True,
        doc="Return the mean of each person's values, null for no values.",
    ),
    "var": How(
        _NUMBERS,
        "number",
        _bound_variance,
        compute="compute_variance",
        adds=True,
        words=(("ddof", 1),),
        doc="Return the variance of each person's values.\n\n"
        "It is null for one value; with ``ddof=0`` it is 0.",
    ),
    "std": How(
        _NUMBERS,
        "number",
        _bound_deviation,
        compute="compute_deviation",
        adds=True,
        words=(("ddof", 1),),
        doc="Return the standard deviation of each person's values.",
    ),
    "sem": How(
        _NUMBERS,
        "number",
        _bound_error,
        compute="compute_standard_error",
        adds=True,
        words=(("ddof", 1),),
        doc="Return the standard error of the mean of each person's values.",
    ),
    "prod": How(
        _NUMBERS,
        "number",
        _know_nothing,
        compute="compute_product",
        adds=True,
        integral=None,
        doc="Return the product of each person's values, 1 for no values. No bounds follow.",
    ),
    "median": How(
        _NUMBERS,
        "number",
        _keep_ends,
        compute="compute_median",
        doc="Return the median of each person's values.",
    ),
    "quantile": How(
        _NUMBERS,
        "number",
        _keep_ends,
        compute="compute_quantile",
        words=(("q", 0.5),),
        doc="Return a quantile of each person's values, between the two values around it.",
    ),
    "min": How(
        _SORTED,
        None,
        _keep_ends,
        compute="find_least",
        picks=True,
        integral=None,
        doc="Return the least of each person's values. It is exact, since it is the person's own.",
    ),
    "max": How(
        _SORTED,
        None,
        _keep_ends,
        compute="find_greatest",
        picks=True,
        integral=None,
        doc="Return the greatest of each person's values.",
    ),
    "any": How(
        _NUMBERS,
        "bool",
        _bound_truth,
        compute="check_any",
        integral=True,
        doc="Return whether any of a person's values is true.",
    ),
    "all": How(
        _NUMBERS,
        "bool",
        _bound_truth,
        compute="check_all",
        integral=True,
        doc="Return whether all of a person's values are true. Nulls do not count.",
    ),
    "size": How(
        (),
        "number",
        _bound_count,
        compute="count_rows",
        integral=True,
        doc="Return how many rows each person has.",
    ),
    "count": How(
        _CELLS,
        "number",
        _bound_count,
        compute="count_values",
        integral=True,
        doc="Return how many values each person has that are not null.",
    ),
    "nunique": How(
        _CELLS[:-1],
        "number",
        _bound_count,
        compute="count_distinct",
        integral=True,
        doc="Return how many distinct values each person has.",
    ),
    "first": How(
        _CELLS,
        None,
        _keep_ends,
        compute="take_first",
        picks=True,
        ordered=True,
        integral=None,
        doc="Return the first value of each person that is not null, in the order of the rows.",
    ),
    "last": How(
        _CELLS,
        None,
        _keep_ends,
        compute="take_last",
        picks=True,
        ordered=True,
        integral=None,
        doc="Return the last value of each person that is not null.",
    ),
    "nth": How(
        _CELLS,
        None,
        _keep_ends,
        compute="take_nth",
        picks=True,
        ordered=True,
        integral=None,
    ),
    # One value in each row:
    "shift": How(
        _CELLS,
        None,
        _keep_ends,
        compute="shift_cells",
        single=False,
        picks=True,
        ordered=True,
        integral=None,
        words=(("periods", 1),),
        doc="Return the value of the person's row so far before, null where no row is.\n\n"
        "A negative number of ``periods`` looks at rows after it.",
    ),
    "ffill": How(
        _CELLS,
        None,
        _keep_ends,
        compute="fill_forward",
        single=False,
        picks=True,
        ordered=True,
        integral=None,
        doc="Fill nulls with the person's last value before them.",
    ),
    "bfill": How(
        _CELLS,
        None,
        _keep_ends,
        compute="fill_backward",
        single=False,
        picks=True,
        ordered=True,
        integral=None,
        doc="Fill nulls with the person's next value after them.",
    ),
    "cumsum": How(
        _NUMBERS,
        "number",
        _bound_sum,
        compute="accumulate_sum",
        single=False,
        ordered=True,
        integral=None,
        doc="Return the sum of a person's values up to each row.\n\n"
        "A null stays null and adds nothing.",
    ),
    "cumprod": How(
        _NUMBERS,
        "number",
        _know_nothing,
        compute="accumulate_product",
        single=False,
        ordered=True,
        integral=None,
        doc="Return the product of a person's values up to each row.",
    ),
    "cummin": How(
        _NUMBERS,
        "number",
        _keep_ends,
        compute="accumulate_least",
        single=False,
        ordered=True,
        integral=None,
        doc="Return the least of a person's values up to each row.",
    ),
    "cummax": How(
        _NUMBERS,
        "number",
        _keep_ends,
        compute="accumulate_greatest",
        single=False,
        ordered=True,
        integral=None,
        doc="Return the greatest of a person's values up to each row.",
    ),
    "rank": How(
        _SORTED,
        "number",
        _bound_rank,
        compute="rank_cells",
        single=False,
    ),
    "cumcount": How(
        (),
        "number",
        _bound_rows_before,
        compute="count_rows_before",
        single=False,
        ordered=True,
        integral=True,
    ),
    "duplicated": How(
        (),
        "bool",
        _bound_truth,
        compute="mark_duplicates",
        single=False,
        ordered=True,
        integral=True,
    ),
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
    args: Arguments = ()
    rows: int | None = None
    by: tuple[Expr, ...] = ()

    @property
    def kind(self) -> Kind:
        """The kind of the results: that of the cells, or one that the computation decides."""
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
        """The expressions that it is made of: people, cells, filter, sort keys and groups."""
        below: list[Expr] = [*self.people]
        for one in (self.x, self.where):
            if one is not None:
                below.append(one)
        for key in self.order:
            below.append(key.expr)
        return (*below, *self.by)

    def members(self, keys: KeysOf, ends: Lookup) -> Values | None:
        """Return all values that the results can have; None if not known.

        A group-by by this expression has them as its keys. If the results are picked cells, they
        have the values of the cells. ``keys`` returns the group keys of a column, and ``ends`` its
        bounds.
        """
        if self.x is not None and WITHIN[self.how].picks:
            return self.x.members(keys, ends)
        return (False, True) if self.kind == "bool" else None

    def interval(self, lookup: Lookup) -> Interval:
        x = None if self.x is None else self.x.interval(lookup)
        return WITHIN[self.how].reach(x, self.rows, self.args)

    def __post_init__(self) -> None:
        """Compute depth and size from the operands, and refuse an expression that is too deep."""
        below = self.children
        depth, size = 0, 1
        for child in below:
            depth, size = max(depth, child.depth), size + child.size
        object.__setattr__(self, "depth", 1 + depth)
        object.__setattr__(self, "size", size)
        if self.depth > MAX_DEPTH or self.size > MAX_SIZE:
            raise BadExpression(
                "too many steps within a person stand on each other. Take some of them apart: ask "
                "fewer at once, or p.pipe(f)."
            )

    def __str__(self) -> str:
        """Return the computation as pandas would write it, such as ``groupby(person)[x].sum()``."""
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
    args: Arguments = (),
    rows: int | None = None,
    by: Sequence[Expr] = (),
) -> Expr:
    """Return the expression of a computation over each person's rows; refuse cells it cannot take.

    ``how`` is its name, such as "sum", and ``x`` its cells. ``people`` are the columns that name a
    person, ``where`` the filter. ``rows`` is the most rows of a person.
    """
    known = WITHIN[how]
    if x is not None and x.kind not in known.of:
        raise BadType(
            f"{how} of a person's rows needs cells of kind {' or '.join(known.of)}, and {x} is of "
            f"kind {x.kind}."
        )
    return Within(how, x, tuple(people), where, tuple(order), args, rows, tuple(by))


def stem(expr: Expr) -> Expr:
    """Return the expression that picked cells come from.

    For each person's first ``x`` it is ``x``. Any other expression is returned as it is.
    """
    while isinstance(expr, Within) and WITHIN[expr.how].picks and expr.x is not None:
        expr = expr.x
    return expr


def keeps_one_row(where: Expr | None) -> bool:
    """Return whether a condition keeps only the first row of each person.

    That is ``~duplicated()`` for people whom one column names. After such a filter a person has one
    row at most.
    """
    again = where.x if isinstance(where, Not) else None
    if not isinstance(again, Within) or len(again.people) != 1 or again.order:
        return False
    return (again.how, again.args, again.by) == ("duplicated", ("first",), ())


def looks_within(expr: Expr) -> bool:
    """Return whether an expression looks at several rows of a person, at any depth."""
    return isinstance(expr, Within) or any(map(looks_within, expr.children))


def find_limited_by(expr: Expr, rows: int | None) -> Within | None:
    """Return the computation whose bounds follow from the limit ``rows`` on a person's rows.

    Such bounds cut the values of people who have more rows, as those of a sum do. A number that was
    clipped by hand is bounded by that, and a condition by its two values: both return None.
    """
    if expr.kind == "bool" or (isinstance(expr, Clip) and None not in (expr.lower, expr.upper)):
        return None
    if not isinstance(expr, Within):
        found = (find_limited_by(child, rows) for child in expr.children)
        return next((one for one in found if one is not None), None)
    reach = WITHIN[expr.how].reach
    ends = [reach((0.0, 1.0), most, expr.args) for most in (None, 1)]
    if expr.rows == rows and ends[0] is None and ends[1] is not None:
        return expr
    return None if expr.x is None else find_limited_by(expr.x, rows)


def has_one_value(expr: Expr, people: Sequence[Column]) -> bool:
    """Return whether an expression has one value for all rows of a person, whatever the cells are.

    ``people`` are the columns that name a person.
    """
    if isinstance(expr, Within):
        return WITHIN[expr.how].single and not expr.by
    if isinstance(expr, Column):
        return expr in people
    return isinstance(expr, Constant) or all(
        has_one_value(child, people) for child in expr.children
    )
