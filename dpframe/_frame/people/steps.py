"""Steps of a frame within a person, in a session whose ``unit=`` names people: the order of rows,
and which rows of a person stay.

*Formal guarantee.* Each is a step and free: a person's rows are that person's own, so that frames
which differ in one person's rows still do after it
(docs/guarantees/people.md#verbs-within-a-person). Nothing here reads a cell.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, BadValue, NotOffered, Refused
from dpframe._expr import Expr, Key, within
from dpframe._frame.column import PrivateColumn
from dpframe._frame.people.within import build_within
from dpframe._frame.selection import selection_of
from dpframe._frame.tracked import Frame, Tracked, with_selection


def keep_one_row(frame: Frame, columns: Mapping[Hashable, Expr]) -> Frame:
    """Return a frame with a row for each person, with columns that have one value a person.

    The columns that name the person are its index.
    """
    selection = selection_of(frame)
    people = selection.schema.unit.people
    again = within("duplicated", None, people, selection.where, (), ("first",))
    named = columns.values()
    index: dict[Hashable, Expr] = {}
    for leaf in people:
        if leaf not in named:
            index[leaf.name] = leaf
    return with_selection(
        frame,
        replace(
            selection,
            columns=dict(columns),
            where=_expr.logical_not(again),
            premises=selection.premises.of_one_row(),
            index=index,
        ),
    )


def keep_rows(frame: Frame, condition: Expr, most: int | None) -> Frame:
    """Return the rows where a condition holds, at most ``most`` of a person.

    Only rows of the frame meet the condition.
    """
    return with_selection(frame, selection_of(frame).keep_rows(condition, most))


# Verbs of a frame -----------------------------------------------------------------------------


def sort_values(
    self: Frame,
    by: object = None,
    *,
    ascending: object = True,
    na_position: str = "last",
    **words: object,
) -> Frame:
    """Sort the rows of each person, for verbs within a person:
    ``p.sort_values("t").groupby("id").first()``.

    No other answer depends on the order of rows. Where a row is a person, a warning says so. Rows
    of a person that are equal in the named columns keep the order they had.
    """
    if not _has_named_people(self):
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
    return sort_rows(self, keys)


def sort_rows(frame: Frame, keys: Sequence[Key]) -> Frame:
    """Return the frame with its rows sorted.

    The order that they had before decides between rows that are equal in the keys.
    """
    selection = selection_of(frame)
    return with_selection(frame, selection.change(premises=selection.premises.sort_by(keys)))


def _has_named_people(frame: Tracked) -> bool:
    """Return whether columns name the person of each row.

    In rows that were made of single rows, people have hidden random names instead.
    """
    schema = selection_of(frame).schema
    people = set(schema.unit.people)
    return bool(people) and people <= {*schema.leaves.values()}


def duplicated(self: Tracked, subset: object = None, keep: object = "first") -> PrivateColumn:
    """Mark rows that are equal to an earlier row of the same person, in the columns of ``subset``.

    The subset must name the person.
    """
    expr, _ = _mark_duplicates(self, subset, keep, "duplicated")
    return PrivateColumn(self, expr, None)


def drop_duplicates(
    self: Frame, subset: object = None, *, keep: object = "first", ignore_index: bool = False
) -> Frame:
    """Keep one row of each person, the first or the last in the order of the rows.

    With more columns in ``subset``, one row of each of their values is kept.

    Formal guarantee: a step within each person's rows, as `groupby` of the unit. ``keep=False``
    keeps the rows that are alone.

    >>> visits = pd.DataFrame({"id": [1, 1, 2], "t": [3, 1, 2], "cost": [10.0, 30.0, 6.0]})
    >>> p = visits.dp.open(1000, unit="id", max_rows=2, max_groups=1, bounds={"cost": (0, 100)})
    >>> first = p.sort_values("t").drop_duplicates("id")
    >>> print(round(first.mean("cost", epsilon=900)))
    18
    """
    _validate.flag(ignore_index, "ignore_index")
    expr, alone = _mark_duplicates(self, subset, keep, "drop_duplicates")
    return keep_rows(self, _expr.logical_not(expr), 1 if alone else None)


def _mark_duplicates(frame: Tracked, subset: object, keep: object, verb: str) -> tuple[Expr, bool]:
    """Return a condition that duplicate rows meet, and whether only the person was compared."""
    selection = selection_of(frame)
    people = selection.schema.unit.people
    if not _has_named_people(frame):
        raise Refused(
            f"{verb} compares people with each other here, where a row is a person: one person's "
            "row could change another's. Where a column says whose a row is, open with it, "
            "open(unit='patient_id'), and name it first."
        )
    if keep is not False:
        keep = _validate.choice(keep, "keep", ("first", "last"))
    columns = selection.columns
    names = (
        list(columns)
        if subset is None
        else list(subset)
        if isinstance(subset, list | tuple | pd.Index)
        else [subset]
    )
    exprs = [selection.find_column(name)[0] for name in names]
    missing = [leaf for leaf in people if leaf not in exprs]
    if missing:
        raise Refused(
            f"{verb} compares rows of one person only. Name the person too: "
            f"p.{verb}({[missing[0].name, *names]!r})."
        )
    by = [e for e in exprs if e not in people]
    odd = next((e for e in by if e.kind == "other"), None)
    if odd is not None:
        raise BadType(f"{odd} has a dtype whose values cannot be told apart.")
    return build_within(selection, "duplicated", None, (keep,), by), not by
