"""Verbs within a person: what the rows of one person make of each other, in a session whose
``unit=`` names people.

*Formal guarantee.* Each is a step and free: a person's rows are that person's own, so that frames
which differ in one person's rows still do, whatever is made of them
(docs/guarantees/people.md#verbs-within-a-person). Nothing here reads a cell.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, BadValue, NotOffered, Refused
from dpframe._expr import WITHIN, Expr, Key, within
from dpframe._frame.column import PrivateColumn
from dpframe._frame.tracked import Frame, Tracked, advised
from dpframe._groups.premises import least_of

# Those whose sum of doubles depends on the order of the rows: where that is nobody's, they are
# added by their value.
_ADDING = ("sum", "mean", "var", "std", "sem", "prod")

# The node that a verb makes, given what it is asked of ------------------------------------------------------------------------


def made(
    frame: Tracked, how: str, x: Expr | None, args: tuple[Any, ...] = (), by: Sequence[Expr] = ()
) -> Expr:
    """What ``how`` makes of a person's cells, of the rows that the frame is about and in the order
    it has."""
    selection, unit = frame._selection, frame._session.unit
    order: tuple[Key, ...] = ()
    if WITHIN[how].ordered or args[:1] == ("first",):
        order = _own_order(frame, how)
    elif how in _ADDING and selection.premises.order != "own" and x is not None:
        order = (Key(x),)
    rows = least_of(unit.rows, selection.premises.most)
    return within(how, x, unit.people, selection.where, order, args, rows, by)


def _own_order(frame: Tracked, how: str) -> tuple[Key, ...]:
    """What the rows are sorted by, so far that the order of a person's rows is the person's own."""
    premises = frame._selection.premises
    if premises.order == "own":
        return premises.sorts
    if premises.order == "others":
        raise Refused(
            advised(
                f"{how} goes by the order of a person's rows, and in what pipe or adopt made it may depend on other people. "
                "Take this step before, p.sort_values('t').groupby('patient_id').head(1), or inside of the function.",
                frame._selection,
            )
        )
    if not premises.sorts:
        by = "t" if any(e.kind == "time" for e in frame._selection.columns.values()) else "x"
        step = (
            "drop_duplicates('patient_id')"
            if how == "duplicated"
            else "groupby('patient_id').head(1)"
        )
        raise Refused(
            advised(
                f"{how} goes by the order of a person's rows, and these come in no fixed one: a source outside of memory is "
                "read piece by piece, and so are rows made of it. Sort them right before this step, such as "
                f"p.sort_values({by!r}).{step}.",
                frame._selection,
            )
        )
    # Rows that are alike in all columns are one another's equals; all others have an order of their
    # own now.
    leaves = frame._session.leaves.values()
    return (
        *premises.sorts,
        *(
            key
            for e in leaves
            for key in keys_of_cells(e if e.kind != "other" else _expr.is_null(e))
        ),
    )


def keys_of_cells(x: Expr) -> list[Key]:
    """What rows are sorted by so that those are alike whose cells are. Zeros of both signs are
    equal, and what is divided by them is not: of doubles their inverses decide."""
    if x.kind != "number" or x.integral:
        return [Key(x)]
    return [Key(x), Key(_expr.operate("/", _expr.constant(1.0), x))]


def one_row(frame: Frame, columns: Mapping[Hashable, Expr]) -> Frame:
    """A row for each person who has any, with columns that have one value a person."""
    selection = frame._selection
    people = frame._session.unit.people
    again = within("duplicated", None, people, selection.where, (), ("first",))
    index = {leaf.name: leaf for leaf in people if leaf not in columns.values()}
    return frame._new(
        replace(
            selection,
            columns=dict(columns),
            where=_expr.logical_not(again),
            premises=selection.premises.of_one_row(),
            index=index,
        )
    )


def rows_where(frame: Frame, condition: Expr, most: int | None) -> Frame:
    """The rows where a condition holds that only rows of the frame meet."""
    return frame._new(frame._selection.keep_rows(condition, most))


# Verbs of a frame -------------------------------------------------------------------------------------------------------------


def sort_values(
    self: Frame,
    by: Any = None,
    *,
    ascending: Any = True,
    na_position: str = "last",
    **words: Any,
) -> Frame:
    """The rows of each person in another order, for verbs within a person:
    ``p.sort_values("t").groupby("id").first()``.

    No answer depends on the order of rows, and where a row is a person nothing does: that is said
    in a warning. Rows of a person that are alike in the columns named keep the order they had.
    """
    if not _names_people(self):
        warnings.warn(
            "sort_values does nothing here: no answer depends on the order of rows. Sort the answer instead.",
            UserWarning,
            stacklevel=3,
        )
        return self
    idle = {
        "axis": (0, "index"),
        "inplace": (False,),
        "kind": ("quicksort", "mergesort", "heapsort", "stable"),
    }
    for word, value in words.items():
        if word == "key" and value is not None:
            raise NotOffered(
                "sort_values has no key= here. Assign a column, and sort by that: p.assign(k='x.abs()')."
            )
        if word not in (*idle, "key", "ignore_index") or (
            word in idle and not _validate.among(value, idle[word])
        ):
            raise BadType(f"sort_values has no {word}={value!r} here.")
    if by is None:
        raise BadType("sort_values needs the columns to sort by: p.sort_values('t').")
    names = by if isinstance(by, list) else [by]
    ways = ascending if isinstance(ascending, list) else [ascending] * len(names)
    if len(ways) != len(names):
        raise BadValue("ascending= must have as many entries as there are columns.")
    last = _validate.choice(na_position, "na_position", ("first", "last")) == "last"
    keys = []
    for name, way in zip(names, ways, strict=True):
        expr, label = self._selection.find_column(name)
        if expr.kind == "other":
            raise BadType(f"column {label!r} has a dtype that has no order.")
        keys.append(Key(expr, not _validate.flag(way, "ascending"), last))
    return sorted_by(self, keys)


def sorted_by(frame: Frame, keys: Sequence[Key]) -> Frame:
    """The frame with its rows sorted; what they were sorted by before decides where the keys do
    not."""
    selection = frame._selection
    return frame._new(selection.change(premises=selection.premises.sort_by(keys)))


def _names_people(frame: Tracked) -> bool:
    """Whether columns say whose a row is: of rows that were made of people's only ones, random
    names that nobody sees do."""
    people = set(frame._session.unit.people)
    return bool(people) and people <= {*frame._session.leaves.values()}


def duplicated(self: Tracked, subset: Any = None, keep: Any = "first") -> PrivateColumn:
    """Whether a row of a person is like another one of the same person before it, in the columns of
    ``subset``, which name the person and whatever else; a column of each row."""
    expr, _ = _again(self, subset, keep, "duplicated")
    return PrivateColumn(self, expr, None)


def drop_duplicates(
    self: Frame, subset: Any = None, *, keep: Any = "first", ignore_index: bool = False
) -> Frame:
    """One row of each person, the first or the last in the order they have; with more columns one
    of each value a person has.

    Formal guarantee: a step within each person's rows, as `groupby` of the unit. ``keep=False``
    keeps the rows that are alone.

    >>> visits = pd.DataFrame({"id": [1, 1, 2], "t": [3, 1, 2], "cost": [10.0, 30.0, 6.0]})
    >>> p = visits.dp.open(1000, unit="id", max_rows=2, max_groups=1, bounds={"cost": (0, 100)})
    >>> first = p.sort_values("t").drop_duplicates("id")
    >>> print(round(first.mean("cost", epsilon=900)))
    18
    """
    _validate.flag(ignore_index, "ignore_index")
    expr, alone = _again(self, subset, keep, "drop_duplicates")
    return rows_where(self, _expr.logical_not(expr), 1 if alone else None)


def _again(frame: Tracked, subset: Any, keep: Any, verb: str) -> tuple[Expr, bool]:
    """Whether a row is another one of its kind, and whether its kind is the person alone."""
    people = frame._session.unit.people
    if not _names_people(frame):
        raise Refused(
            f"{verb} compares people with each other here, where a row is a person: one person's row could change another's. "
            "Where a column says whose a row is, open with it, open(unit='patient_id'), and name it first."
        )
    if keep is not False:
        keep = _validate.choice(keep, "keep", ("first", "last"))
    columns = frame._selection.columns
    names = (
        list(columns)
        if subset is None
        else list(subset)
        if isinstance(subset, list | tuple | pd.Index)
        else [subset]
    )
    exprs = [frame._selection.find_column(name)[0] for name in names]
    missing = [leaf for leaf in people if leaf not in exprs]
    if missing:
        raise Refused(
            f"{verb} compares rows of one person only. Name the person too: p.{verb}({[missing[0].name, *names]!r})."
        )
    by = [e for e in exprs if e not in people]
    odd = next((e for e in by if e.kind == "other"), None)
    if odd is not None:
        raise BadType(f"{odd} has a dtype whose values cannot be told apart.")
    return made(frame, "duplicated", None, (keep,), by), not by
