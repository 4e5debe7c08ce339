"""Private joins: two tables of the same people are merged, person by person.

*Formal guarantee.* It holds if one person has one name in both tables, and nobody else has it; the
scope of the names is checked. A row of the result is made of rows of one person on either side, and
is that person's. At most ``max_rows`` rows of each person are taken on either side, the first ones
in the person's own order. So frames that differ in one person's rows, in both tables at once, still
do after the join. One person has at most the product of the two limits there
(docs/guarantees/derived.md#private-joins).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dpframe import _expr
from dpframe._errors import BadType, BadValue, NotOffered, Refused
from dpframe._expr import Column, Expr, Key, within
from dpframe._frame.people.within import keys_of_cells
from dpframe._frame.selection import selection_of, session_of_frame
from dpframe._frame.tracked import Frame, Tracked, person_of, with_selection
from dpframe._frame.verbs.merge import merged_names
from dpframe._frame.verbs.reshape import derived_frame, names_of, source_of
from dpframe._groups.keys import Word, describe
from dpframe._groups.premises import least_of
from dpframe._groups.unit import LIMIT, limits_for
from dpframe._session.derived import Made, TrackedRows, make_derived_session
from dpframe._session.door import read_private
from dpframe.engines.rows import frame_of, joined, match_rows, take_cells, with_room_for_nulls

_HOW = ("inner", "left", "right", "outer")
_UNNAMED: Any = object()  # the name of a key that no column has; it equals no other name
_TEXTUAL = ("text", "label")


class Side(NamedTuple):
    """One of the two tables: its rows within the limit of a person, and the keys that it is matched
    by."""

    source: TrackedRows
    keys: list[Expr]
    names: list[Hashable]  # of the keys; `_UNNAMED` for a name that was drawn
    limit: int  # how many rows of a person are taken


def merge_people(
    self: Frame,
    right: Tracked,
    how: object,
    on: object,
    left_on: object,
    right_on: object,
    suffixes: object,
    max_rows: object,
    max_groups: object,
) -> Frame:
    """Merge two tables of the same people, by the person and by equal values of the other keys.

    ``how``, ``on`` and ``suffixes`` are as in pandas. ``max_rows`` and ``max_groups`` are the
    contribution limits of the result.
    """
    if not isinstance(how, str) or how not in _HOW:
        raise Refused(
            f"how={how!r} is not offered for two tables of people. Use one of "
            f"{', '.join(map(repr, _HOW))}."
        )
    _check_people(self, right)
    rows, groups = limits_for(max_rows, max_groups)
    pairs = _pair_keys(self, right, on, left_on, right_on)
    left, other = (
        _limit_side(self, [ours for ours, _ in pairs]),
        _limit_side(right, [theirs for _, theirs in pairs]),
    )
    _check_kinds(left, other)
    once = [(a, b) for a, b in pairs if a == b]
    names, theirs = merged_names(
        list(left.source.columns), list(other.source.columns), once, suffixes
    )
    # With keys beside the person, rows of both sides may lack a match, and outer keeps them all.
    alone = how == "outer" and len(left.keys) > len(self._session.unit.people)
    most = max(left.limit * other.limit, (left.limit + other.limit) * alone)
    if most > LIMIT:
        raise BadValue(
            f"{left.limit} rows of a person on one side and {other.limit} on the other make more "
            f"than 2**20: nobody would be protected. {_advise_fewer_rows(self)}"
        )
    made = read_private("merge", _join_rows, left, other, names, theirs, how)
    unit = self._session.unit
    both = [one.source.session.unit.groups or one.limit for one in (left, other)]
    unit = replace(unit, rows=most, groups=min(both[0] * both[1], most)).with_limits(rows, groups)
    words = how, pairs, list(names.items()), list(theirs.items()), _identify(other.source)
    steps = left.source.steps("merge of people", words)
    session = make_derived_session(
        self._session, made, unit, steps, left.source.premises.join(other.source.premises, most)
    )
    told = f"merge(how={how!r}) of two tables of the same people, at most {left.limit} and {other.limit} rows of each"
    frame = derived_frame(
        self, session, Word("rows", told, f"merge on {describe(_list_merge_keys(self, pairs))}")
    )
    words_of_both = selection_of(frame).add_declarations(selection_of(right).words)
    return with_selection(frame, words_of_both)


def _has_drawn_names(frame: Tracked) -> bool:
    """Return whether the names of people were drawn for the rows of the opened frame. No column has
    them."""
    return selection_of(frame).premises.names.kind == "drawn"


def _advise_fewer_rows(frame: Tracked) -> str:
    """Advise how a person gets fewer rows."""
    if _has_drawn_names(frame):
        return "Take fewer of each: write max_rows=3 in the explode, melt, pipe or adopt that made several rows of one."
    return f"Take fewer of each: p.groupby({person_of(selection_of(frame))}).head(3)."


def _list_merge_keys(frame: Tracked, pairs: list[tuple[Hashable, Hashable]]) -> list[Hashable]:
    """Return the keys as a record has them: the person first, where no column names one."""
    return [*(["rows"] if _has_drawn_names(frame) else []), *(ours for ours, _ in pairs)]


def _check_people(left: Tracked, right: Tracked) -> None:
    """Refuse tables that may be of different people, or whose rows are not in memory."""
    sides = (left, right)
    names = [selection_of(side).premises.names for side in sides]
    declared = [side for side, name in zip(sides, names, strict=True) if name.kind == "columns"]
    person = person_of(declared[0]._selection) if declared else "'patient_id'"
    if "rows" in [name.kind for name in names]:
        raise Refused(
            "two private frames are merged person by person, and here a row is a person: a row of "
            "the result would be two people's. Where columns say whose the rows are, open both "
            f"with them: open(unit={person})."
        )
    kept = [session_of_frame(frame).data.source is not None for frame in (left, right)]
    if any(kept):  # refused first, since one budget for both would not help
        columns = ", ".join(str(leaf.name) for leaf in session_of_frame(left).unit.people)
        raise NotOffered(
            "merge of two tables of people needs all of their rows at once, as frames in memory "
            f"have them, and {'both are' if all(kept) else 'one is'} kept elsewhere. Join them "
            "there, and open the result with the same ledger= and population=, which is one "
            f"budget: dpframe.open(visits.join(people, on={person}), unit={person}, ...) of frames "
            "of polars; of a database a view or relation, SELECT * FROM visits JOIN people USING "
            f"({columns}), with because='a join by the person'. Or read both into memory."
        )
    if session_of_frame(left).accountant != session_of_frame(right).accountant:
        other = person_of(selection_of(right)) if names[1].kind == "columns" else person
        raise Refused(
            "these two frames have budgets of their own, and nothing says that their people are "
            "the same. Open one with the budget of the other: "
            f"other.dp.open(accountant=p.accountant, unit={other})."
        )
    if not names[0].match(names[1]):
        raise Refused(
            "these two frames come from two opened frames, and without unit= a row of each is a "
            "person: nothing says which rows are one person's. Open both with the column that "
            f"names the person: open(unit={person}). Or derive both from one opened frame."
        )
    source_of(right, "merge")  # refuses what makes no rows


# Keys -----------------------------------------------------------------------------------------


def _list_columns(frame: Tracked) -> dict[Hashable, Expr]:
    """Return the columns that a table can be matched by.

    Columns that name the person are among them, even if they are the index.
    """
    return {**{leaf.name: leaf for leaf in _people_of(frame)}, **selection_of(frame).columns}


def _pair_keys(
    left: Tracked, right: Tracked, on: object, left_on: object, right_on: object
) -> list[tuple[Hashable, Hashable]]:
    """Return pairs of key columns, by their names on the left and on the right.

    ``on``, ``left_on`` and ``right_on`` are as in `pandas.merge`. Without them the columns that
    both sides have are the keys. The columns that name the person must be among them.
    """
    ours, theirs = _list_columns(left), _list_columns(right)
    if on is not None and (left_on is not None or right_on is not None):
        raise BadValue("give on=, or left_on= and right_on=, not both.")
    if (left_on is None) != (right_on is None):
        raise BadValue("left_on= and right_on= belong together.")
    if on is None and left_on is None:
        visible = selection_of(left).columns, selection_of(right).columns
        people = [leaf.name for leaf in _people_of(left)]
        on = [n for n in ours if n in theirs and (all(n in v for v in visible) or n in people)]
    lefts, rights = (
        names_of(on if left_on is None else left_on, ours),
        names_of(on if right_on is None else right_on, theirs),
    )
    if len(lefts) != len(rights) or not (lefts or _has_drawn_names(left)):
        raise BadValue("left_on= and right_on= must name as many columns.")
    pairs = list(zip(lefts, rights, strict=True))
    exprs = [(ours[a], theirs[b]) for a, b in pairs]
    for one, other in zip(_people_of(left), _people_of(right), strict=True):
        if (one, other) not in exprs:
            raise Refused(
                "two tables of people are merged by the person, so that each row of the result is "
                f"one person's: on= must name {one.name!r}. What else it names is matched within a "
                "person."
            )
    return pairs


def _people_of(frame: Tracked) -> list[Column]:
    """Return the columns that name a person, as far as they can be typed."""
    return [] if _has_drawn_names(frame) else list(session_of_frame(frame).unit.people)


def _check_kinds(left: Side, right: Side) -> None:
    """Refuse a merge in which a key has values of different types on the two sides."""
    for name, a, b in zip(left.names, left.keys, right.keys, strict=True):
        alike = a.kind == b.kind or (a.kind in _TEXTUAL and b.kind in _TEXTUAL)
        if not alike or a.kind == "other" or (a.tz is None) != (b.tz is None):
            raise BadType(
                f"merge: {name!r} is of kind {a.kind} on one side and of kind {b.kind} on the "
                "other. Give both one dtype."
            )


# Rows -----------------------------------------------------------------------------------------


def _limit_side(frame: Tracked, names: list[Hashable]) -> Side:
    """Return one side of a merge: its rows, its keys, and the limit of rows of a person.

    ``names`` are the columns that it is matched by. If a person may have more rows, the first ones
    count.
    """
    selection, session = selection_of(frame), session_of_frame(frame)
    premises = selection.premises
    most = least_of(premises.max_rows, session.unit.rows)
    if most is None:
        raise BadValue(
            "a person may have many rows here, and for a merge max_rows= of both tables must be "
            "known: at open(...), or at the verb that made several rows of one. "
            f"{_advise_fewer_rows(frame)}"
        )
    where = selection.where
    if premises.max_rows is None or premises.max_rows > most:
        order = premises.sorts if premises.order == "own" else _sort_by_all(frame)
        place = within("cumcount", None, session.unit.people, where, order, (True,))
        where = _expr.compare("<", place, _expr.constant(most))
    source = TrackedRows(session, selection.columns, where, "merge", premises)
    source.check_in_memory()
    columns = _list_columns(frame)
    drawn = session.unit.people if _has_drawn_names(frame) else ()
    keys = [*drawn, *(columns[name] for name in names)]
    return Side(source, keys, [*[_UNNAMED for _ in drawn], *names], most)


def _sort_by_all(frame: Tracked) -> Sequence[Key]:
    """Return keys to sort a frame by, which tell all rows apart but equal ones.

    They are for rows whose order may depend on other people.
    """
    leaves = session_of_frame(frame).leaves.values()
    odd = [e for e in leaves if e.kind not in ("number", "bool", "text", "time")]
    if odd:
        raise Refused(
            "the order of rows that pipe or adopt made may depend on other people, and two rows "
            "that differ only in what is not a number, text or time look the same: "
            f"{odd[0]} ({odd[0].kind}). Drop that column there, or give it a dtype."
        )
    return [key for e in leaves for key in keys_of_cells(e)]


def _identify(source: TrackedRows) -> tuple[object, ...]:
    """Return what identifies the other table: its columns, steps and version.

    Without a ledger file it is also the session itself.
    """
    session = source.session
    own = session.base.name if session.accountant.place is None else ""
    return own, session.data.schema, list(source.columns.items()), source.where, source.order


def _join_rows(
    left: Side,
    right: Side,
    names: dict[Hashable, Hashable],
    theirs: dict[Hashable, Hashable],
    how: str,
) -> Made:
    """Make the columns of the merged rows, and the person of each row.

    It reads private rows, so only `read_private` calls it. ``names`` and ``theirs`` have the new
    names of the left and of the right columns, by the old ones. ``how`` is as in `pandas.merge`. A
    key with one name on both sides becomes one column.
    """
    sides = (left, right)
    ours, others = (frame_of([side.source.array(key) for key in side.keys]) for side in sides)
    rows = match_rows(ours, others, how)
    coalesced = {
        a: i for i, (a, b) in enumerate(zip(left.names, right.names, strict=True)) if a == b
    }
    made = Made()

    def key(i: int) -> Any:
        """Return a key of the rows, from the side that has one."""
        arrays = [side.source.array(side.keys[i]) for side in sides]
        if how in ("inner", "left"):
            return arrays[0].take(rows.left)
        if how == "right":
            return arrays[1].take(rows.right)
        return joined(arrays).take(np.where(rows.left >= 0, rows.left, len(arrays[0]) + rows.right))

    places: dict[int, int] = {}
    for side, new, at, open_to in (
        (left, names, rows.left, ("right", "outer")),
        (right, theirs, rows.right, ("left", "outer")),
    ):
        for name, expr in side.source.columns.items():
            if name not in new:
                continue
            if side is left and name in coalesced:
                array = key(coalesced[name])
            else:
                array = side.source.array(expr)
                array = (
                    take_cells(with_room_for_nulls(array), at) if how in open_to else array.take(at)
                )
            place = made.add(new[name], array)
            made.carry(side.source.session, expr, place, new[name])
            if side is left and name in coalesced:
                places[coalesced[name]] = place
    for leaf in left.source.session.unit.people:
        i = left.keys.index(leaf)
        made.people.append(places[i] if i in places else (leaf.name, key(i)))
    return made
