"""The catalogue of verbs within a person: what each makes of a column, from the rows of one person.

*Formal guarantee.* What a verb makes is an expression whose nodes are row-wise or `Within`
(docs/guarantees/people.md#verbs-within-a-person). Nothing here reads a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpframe import _expr, _validate
from dpframe._errors import BadType, BadValue, Refused
from dpframe._expr import WITHIN, Expr, Key, within
from dpframe._frame.selection import Selection
from dpframe._frame.tracked import use_own_names
from dpframe._groups.premises import least_of
from dpframe._types import Arguments


def build_within(
    selection: Selection,
    how: str,
    x: Expr | None,
    args: Arguments = (),
    by: Sequence[Expr] = (),
) -> Expr:
    """Return an expression that is computed from all rows of a person, such as their sum.

    ``how`` is its name in the catalogue `WITHIN`, and ``args`` are its arguments. ``x`` is the
    column, or None for what looks at rows alone. ``by`` divides the rows of a person into groups.
    """
    unit, known = selection.schema.unit, WITHIN[how]
    order: tuple[Key, ...] = ()
    if known.ordered or args[:1] == ("first",):
        order = _find_own_order(selection, how)
    elif known.adds and selection.premises.order != "own" and x is not None:
        order = (Key(x),)  # in another order the last digits could depend on other people
    rows = least_of(unit.rows, selection.premises.max_rows)
    return within(how, x, unit.people, selection.where, order, args, rows, by)


def _find_own_order(selection: Selection, how: str) -> tuple[Key, ...]:
    """Return keys to sort a person's rows by, so that their order does not depend on other people.

    ``how`` is the verb that needs the order, for messages. Raise if there is no such order.
    """
    premises = selection.premises
    if premises.order == "own":
        return premises.sorts
    if premises.order == "others":
        raise Refused(
            use_own_names(
                f"{how} goes by the order of a person's rows, and in what pipe or adopt made it "
                "may depend on other people. Take this step before, "
                "p.sort_values('t').groupby('patient_id').head(1), or inside of the function.",
                selection,
            )
        )
    if not premises.sorts:
        by = "t" if any(e.kind == "time" for e in selection.columns.values()) else "x"
        step = (
            "drop_duplicates('patient_id')"
            if how == "duplicated"
            else "groupby('patient_id').head(1)"
        )
        raise Refused(
            use_own_names(
                f"{how} goes by the order of a person's rows, and these come in no fixed one: a "
                "source outside of memory is read piece by piece, and so are rows made of it. Sort "
                f"them right before this step, such as p.sort_values({by!r}).{step}.",
                selection,
            )
        )
    # All cells together decide between rows that the keys do not tell apart. Rows that are equal
    # in all cells may stand in any order.
    keys = list(premises.sorts)
    for leaf in selection.schema.leaves.values():
        keys += keys_of_cells(_expr.is_null(leaf) if leaf.kind == "other" else leaf)
    return tuple(keys)


def keys_of_cells(x: Expr) -> list[Key]:
    """Return keys to sort a column ``x`` by, which tell all of its values apart.

    Zeros of both signs are equal, but quotients by them are not, so doubles are sorted by their
    inverses too.
    """
    if x.kind != "number" or x.integral:
        return [Key(x)]
    return [Key(x), Key(_expr.operate("/", _expr.constant(1.0), x))]


# Verbs that are made of several entries ---------------------------------------------------------


def build_difference(selection: Selection, x: Expr, periods: int) -> Expr:
    """Return the value minus that of the person's row so far before; of times a duration."""
    return _expr.operate("-", x, build_within(selection, "shift", x, (periods,)))


def build_change(selection: Selection, x: Expr, periods: int) -> Expr:
    """Return the relative change from the value of the person's row so far before."""
    part = _expr.operate("/", x, build_within(selection, "shift", x, (periods,)))
    return _expr.operate("-", part, _expr.constant(1))


def build_skewness(selection: Selection, x: Expr) -> Expr:
    """Return the skewness of a person's values of column ``x``, with pandas' correction.

    It is null for fewer than three values, and 0 for equal ones.
    """
    away = _expr.operate("-", x, build_within(selection, "mean", x))
    squares, cubes = (
        build_within(selection, "sum", _expr.operate("**", away, _expr.constant(k))) for k in (2, 3)
    )
    n = build_within(selection, "count", x)
    root = _expr.operate("**", _expr.operate("-", n, _expr.constant(1)), _expr.constant(0.5))
    part = _expr.operate("/", _expr.operate("*", n, root), _expr.operate("-", n, _expr.constant(2)))
    shape = _expr.operate("/", cubes, _expr.operate("**", squares, _expr.constant(1.5)))
    level = _expr.choose(
        _expr.compare("==", squares, _expr.constant(0)), 0.0, _expr.operate("*", part, shape)
    )
    return _expr.choose(_expr.compare(">=", n, _expr.constant(3)), level, None)


# Arguments --------------------------------------------------------------------------------------


def check_ddof(value: object) -> int:
    """Return the ``ddof=`` of a verb within a person, if it is 0 or 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value not in (0, 1):
        raise BadValue("ddof must be 0 or 1.")
    return int(value)


def check_integer(value: object, name: str) -> int:
    """Return a whole number below 2**31 in size, or refuse the value of this argument."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or abs(int(value)) >= 2**31
    ):
        raise BadType(f"{name} must be a whole number, not {value!r}.")
    return int(value)


# The catalogue ----------------------------------------------------------------------------------


class PersonVerb(NamedTuple):
    """A verb of a column within a person, by its name in pandas."""

    name: str
    doc: str
    build: Callable[..., Expr]  # of a selection, the column and the further argument
    of: str  # the entry of `WITHIN` whose kinds of columns it takes
    word: str | None = None  # the name of its further argument
    default: Any = None
    single: bool = True  # it makes one value for each person, not one for each row
    counts: bool = False  # a count or a truth value, which has no numeric_only= in pandas


CHECKS: dict[str, Callable[[Any], Any]] = {
    "ddof": check_ddof,
    "q": _validate.level,
    "periods": partial(check_integer, name="periods"),
}


def _list_verbs() -> dict[str, PersonVerb]:
    """Return the verbs of a column: entries of `WITHIN`, and those made of several entries."""

    def build_entry(selection: Selection, x: Expr, *args: object, how: str) -> Expr:
        return build_within(selection, how, x, args)

    verbs = []
    for name, how in WITHIN.items():
        if how.doc and how.of:
            word, default = how.words[0] if how.words else (None, None)
            counts = how.single and how.integral is True
            build = partial(build_entry, how=name)
            verbs.append(PersonVerb(name, how.doc, build, name, word, default, how.single, counts))
    verbs += [
        PersonVerb(
            "skew",
            "Return the skewness of each person's values, null for fewer than three.\n\n"
            "No bounds follow: ``.clip(-3, 3)`` gives some.",
            build_skewness,
            "std",
        ),
        PersonVerb(
            "diff",
            "Return the value minus that of the person's row so far before.\n\n"
            "The difference of two times is a duration.",
            build_difference,
            "shift",
            "periods",
            1,
            single=False,
        ),
        PersonVerb(
            "pct_change",
            "Return the relative change from the value of the person's row so far before.",
            build_change,
            "shift",
            "periods",
            1,
            single=False,
        ),
    ]
    return {verb.name: verb for verb in verbs}


VERBS = _list_verbs()
# The aggregates that `agg` takes by name, with their arguments where none are given.
AGGREGATES: dict[str, tuple[Any, ...]] = {
    name: tuple(default for _, default in how.words)
    for name, how in WITHIN.items()
    if how.single and how.doc
}
# The verbs with a value for each row that `transform` takes by name.
ROW_VERBS = (*(name for name, verb in VERBS.items() if not verb.single), "rank")
