"""Rows that pandas made: by a function that is checked, or by declaration."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe import _pandas
from dpframe._errors import (
    BadType,
    BadValue,
    LineageError,
    NoSession,
    NotOffered,
    Refused,
    SessionError,
)
from dpframe._expr import Column, Expr
from dpframe._frame.column import PrivateColumn
from dpframe._frame.selection import (
    expression_of,
    frame_of_column,
    name_of,
    selection_of,
    session_of_frame,
)
from dpframe._frame.tracked import Frame, Tracked, refuse_questions, with_selection
from dpframe._frame.verbs.merge import is_private
from dpframe._frame.verbs.reshape import derived_frame, source_of
from dpframe._groups.keys import Word, describe
from dpframe._groups.unit import limits_for
from dpframe._session import personwise as _personwise
from dpframe._session.data import ATTR, marks, session_of, sessions
from dpframe._session.derived import (
    TrackedRows,
    declare_anew,
    draw_steps,
    made_of,
    make_derived_session,
    unit_for,
)
from dpframe._session.door import read_private
from dpframe._session.session import Session
from dpframe._types import Arguments, Array
from dpframe.engines.people import people_of
from dpframe.engines.rows import frame_of, rows_of


def pipe(
    self: Frame,
    func: object,
    *args: object,
    bounds: Mapping[Any, tuple[float, float]] | None = None,
    keys: Mapping[Any, object] | None = None,
    max_rows: int | None = None,
    max_groups: int | None = None,
    **kwargs: object,
) -> Frame:
    """Apply a function of yours to the rows, if it works person by person: ``func(frame, *args,
    **kwargs)``.

    Formal guarantee: as for `explode`, *given that the rows it makes of some people do not depend
    on the others*. That is checked on random halves of the people, on nobody, and on another order
    of rows, which is a lint and no proof; it is written in the ledger as such. What is refused
    tells the owner something about the data: keep it to yourself.

    A function that takes steps of single rows alone (conditions, new columns) is given the tracked
    frame itself, and nothing is read: it may as well be written without `pipe`. Bounds and keys
    follow then, and a batch takes it too. Every other function, and each one beside ``bounds=``,
    ``keys=`` or limits, is given rows:

    The function gets a pandas frame of some people, several times, and returns one with the columns
    that ``unit=`` named (or with them as index). In a session without ``unit=`` the index names the
    person of each row, and must be kept; a person may then have several rows, so that limits are
    needed: ``max_rows=1, max_groups=1`` if there is one. Bounds and keys are declared anew. Each
    call is a frame of its own: nothing that was answered before is repeated for it.

    >>> visits = pd.DataFrame({"id": [1, 1, 2], "cost": [10.0, 30.0, 6.0]})
    >>> p = visits.dp.open(1000, unit="id", max_rows=1, max_groups=1)
    >>> total = p.pipe(lambda d: d.groupby("id").agg(total=("cost", "sum")), bounds={"total": (0, 100)})
    >>> print(round(total.mean("total", epsilon=900), 0))
    23.0
    """
    self._session.base.refuse_if_not_followed()
    call, name = _bind_function(func, args, kwargs)
    self._session.check_alive()
    limits_for(max_rows, max_groups)
    base = self._session.base
    seen = _personwise.find_private_frame(
        func, [*args, *kwargs.values()], lambda value: is_private(value, base)
    )
    if seen is not None:
        raise Refused(
            f"{name} uses a private frame from outside ({seen}), which holds all people whichever it is given. Use the frame "
            "that it gets."
        )
    traced = _trace(self, call) if (bounds, keys, max_rows, max_groups) == (None,) * 4 else None
    if traced is not None:
        return cast(Frame, traced)
    source = source_of(self, "pipe")
    source.check_in_memory()
    unit = self._session.unit
    hidden = not base.unit.people  # a row of the frame that was opened is a person
    visible = [] if hidden else _unit_names(self._selection.columns, unit.people)
    frame, codes = read_private("pipe", _of_people, source, hidden)
    result = _personwise.Check(call, name, frame, visible, codes, self._session.name).result()
    made = made_of(result)
    declared = declare_anew(made, bounds, keys, "pipe")
    if hidden:
        made.people = [("rows", np.asarray(result.index.to_numpy(), dtype=np.int64))]
    else:
        made.people = _places_of_unit(made.names, visible)
    steps = draw_steps()
    session = make_derived_session(
        source.session,
        made,
        unit_for(source.session, None, max_rows, max_groups),
        steps,
        source.premises.of_foreign_rows(),
    )
    record = f"{name}: person by person on {_personwise.SPLITS} splits of the people, which is no proof ({steps[:8]})"
    return derived_frame(self, session, Word("pipe", record, "pipe"), declared)


def adopt(
    self: Frame,
    other: pd.DataFrame,
    *,
    because: str | None = None,
    bounds: Mapping[Any, tuple[float, float]] | None = None,
    keys: Mapping[Any, object] | None = None,
    max_rows: int | None = None,
    max_groups: int | None = None,
) -> Frame:
    """Take over another frame of the same people, whose rows you declare to have been made person
    by person.

    Formal guarantee: as for `explode`, *given that your declaration is true*: that no row of
    ``other`` depends on more than one person of the frame that was opened, the one that its unit
    columns (or, without ``unit=``, its index label) name. ``because`` says why, and is written in
    the ledger. Nothing is checked but names, dtypes and, without ``unit=``, that its labels are
    those of the frame that was opened.

    Bounds and keys are declared anew. Each call is a frame of its own: nothing that was answered
    before is repeated for it.

    >>> visits = pd.DataFrame({"id": [1, 1, 2], "cost": [10.0, 30.0, 6.0]})
    >>> p = visits.dp.open(1000, unit="id", max_rows=1, max_groups=1)
    >>> worst = visits.groupby("id", as_index=False)["cost"].max()
    >>> q = p.adopt(worst, because="the dearest visit of each patient", bounds={"cost": (0, 100)})
    >>> print(round(q.mean("cost", epsilon=900), 0))
    18.0
    """
    self._session.base.refuse_if_not_followed()
    if self._mode.answers_later:
        raise SessionError(
            "a batch asks one frame: adopt first, and then with p.plan_ahead() as batch: ..."
        )
    base = self._session.base
    base.check_alive()
    if base.data.source is not None:
        raise NotOffered(
            "a session on a source outside of memory adopts no frame. Open the other one by itself, with the same budget: "
            "dpframe.open(other, accountant=p.accountant, ...)."
        )
    if not (isinstance(because, str) and because.strip()):
        raise BadType(
            "adopt needs because='...', a sentence that says why each row of this frame is one person's own work: it is "
            "written in the ledger as your declaration."
        )
    if not isinstance(other, pd.DataFrame):
        raise BadType(f"adopt takes a DataFrame, not {type(other).__name__}.")
    limits_for(max_rows, max_groups)
    _check_owner(other, base)
    unit = base.unit
    frame = _personwise.normalize_result(other, [leaf.name for leaf in unit.people])
    made = made_of(frame)
    if unit.people:
        for leaf in unit.people:
            if leaf.name not in made.names:
                raise BadValue(_personwise.explain_missing_unit(leaf.name))
            place = made.names.index(leaf.name)
            kind = Column.of(place, leaf.name, made.arrays[place].dtype).kind
            if kind != leaf.kind and {kind, leaf.kind} != {"text", "label"}:
                raise BadType(
                    f"the unit column {leaf.name!r} is of kind {leaf.kind}, and here of kind {kind}."
                )
        made.people = _places_of_unit(made.names, [leaf.name for leaf in unit.people])
    else:
        made.people = [("rows", _labels_of(frame, base))]
    declared = declare_anew(made, bounds, keys, "adopt")
    steps = draw_steps()
    unit = unit_for(base, None, max_rows, max_groups)
    session = make_derived_session(base, made, unit, steps, base.premises.of_foreign_rows())
    other.attrs[ATTR] = base.name  # these are the same people: no second budget is opened on them
    return derived_frame(
        self,
        session,
        Word("adopt", f"{because} (columns {describe(made.names)}, {steps[:8]})", "adopt"),
        declared,
    )


def _trace(frame: Frame, call: Callable[[Any], object]) -> Any:
    """Return what a function makes of the tracked frame itself, if it only takes steps of single
    rows.

    Return None if it does more. Then it is a function of rows, and is given rows. ``call`` is the
    function of the frame.
    """
    try:
        made = call(
            refuse_questions(
                frame, "a function of rows asks nothing: it is given the rows themselves then."
            )
        )
    except Exception:  # it asks, or needs what a tracked frame has not: it is a function of rows
        return None
    if isinstance(made, Tracked) and session_of_frame(made) is session_of_frame(frame):
        return with_selection(frame, selection_of(made))
    if isinstance(made, PrivateColumn) and session_of_frame(
        frame_of_column(made)
    ) is session_of_frame(frame):
        return PrivateColumn(
            with_selection(frame, selection_of(frame_of_column(made))),
            expression_of(made),
            name_of(made),
        )
    return None


def _of_people(source: TrackedRows, hidden: bool) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Read the rows of all people, and number the person of each row from 0.

    It reads private data, so only `read_private` calls it. If ``hidden``, the index has random
    names of the people.
    """
    arrays = [source.array(e) for e in source.columns.values()]
    if hidden:
        codes = source.people()[0][1]
        frame = frame_of(arrays, list(source.columns), pd.Index(codes))
    else:
        leaves = source.session.unit.people
        frame = frame_of(arrays, list(source.columns))
        codes = people_of([source.rows.column(leaf) for leaf in leaves], b"").codes[source.places]
        frame, codes = rows_of(frame, np.flatnonzero(codes >= 0)), codes[codes >= 0]
    return frame, np.asarray(_pandas.factorize(codes)[0], dtype=np.int64)  # without gaps


def _bind_function(
    func: object, args: Arguments, kwargs: dict[str, Any]
) -> tuple[Callable[[pd.DataFrame], Any], str]:
    """Return a function of the frame alone, and the name of the function that the user gave.

    As in pandas, ``func`` may be a pair of a function and its argument that takes the frame.
    """
    if (
        isinstance(func, tuple)
        and len(func) == 2
        and callable(func[0])
        and isinstance(func[1], str)
    ):
        inner, word = func
        if word in kwargs:
            raise BadValue(f"{word!r} is both the argument for the frame and a keyword.")
        return lambda frame: inner(*args, **{**kwargs, word: frame}), _personwise.name_of(inner)
    if not callable(func) or isinstance(func, Tracked):
        raise BadType(f"pipe takes a function of a DataFrame, not {type(func).__name__}.")
    return lambda frame: func(frame, *args, **kwargs), _personwise.name_of(func)


def _unit_names(columns: Mapping[Hashable, Expr], people: Sequence[Column]) -> list[Hashable]:
    """Return the names, in a tracked frame, of the columns that name a person; refuse if one is
    missing.

    ``columns`` are those of the frame, and ``people`` the unit of the session.
    """
    names = []
    for leaf in people:
        name = next((n for n, e in columns.items() if e == leaf), None)
        if not any(e == leaf for e in columns.values()):
            raise BadValue(_personwise.explain_missing_unit(leaf.name))
        names.append(name)
    return names


def _places_of_unit(
    names: Sequence[Hashable], unit: Sequence[Hashable]
) -> list[int | tuple[Hashable, Any]]:
    """Return the positions of the columns that name a person, or refuse a frame without them.

    ``names`` are all columns of the frame, and ``unit`` those that name a person.
    """
    for name in unit:
        if name not in names:
            raise BadValue(_personwise.explain_missing_unit(name))
    return [list(names).index(name) for name in unit]


def _check_owner(other: pd.DataFrame, base: Session) -> None:
    """Refuse a frame that has a session of its own, or shares data with one."""
    owner: Session | None = None
    try:
        owner = session_of(other.attrs)
        is_ours = True
    except NoSession:
        is_ours = other.attrs.get(ATTR) == base.name
    own_marks = marks(other)
    shared = [
        s
        for s in sessions.values()
        if s is not base and s.accountant != base.accountant and own_marks & s.data.marks
    ]
    if not is_ours or (owner is not None and owner is not base) or shared:
        raise LineageError(
            "this frame has a session of its own, or is made of one that has: ask it there. Sessions of the same people share a "
            "budget by open(accountant=...)."
        )


def _labels_of(frame: pd.DataFrame, base: Session) -> Array:
    """Return the hidden name of each row's person, by the index labels of the opened frame.

    Refuse labels that the opened frame does not have, or has twice.
    """
    index, places, failed = base.snapshot.index, None, False
    if not index.is_unique:
        raise LineageError(
            "without unit= the index says whose row each is, and that of the frame that was opened has a label twice. Open with "
            "unit=, the column that names a person."
        )
    try:
        places = index.get_indexer(frame.index)
    except Exception:
        failed = True
    if failed or places is None or bool((places < 0).any()):
        raise LineageError(
            "without unit= the index says whose row each is, and this frame has labels that the one that was opened has "
            "not. Keep the index, or open with unit=, the column that names a person."
        )
    return base.row_names().take(places)
