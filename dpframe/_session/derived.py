"""Derived sessions: other rows of the same people, under the same budget.

*Formal guarantee.* A derived session releases what its root could release with the steps that led
to it written into the question: the same accountant pays, the same relation holds, and each derived
row belongs to the person whose row it came from, so that what one person adds is bounded at query
time as ever (docs/guarantees/derived.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from dpframe._cells.encoding import digest
from dpframe._errors import BadValue, NotOffered, SessionError, debugging
from dpframe._expr import Column, Cut, Expr, Key, looks_within, stem
from dpframe._groups.keys import ROW_CEILING, Keys, keys_for
from dpframe._groups.periods import Span
from dpframe._groups.premises import Premises
from dpframe._groups.unit import LIMIT, Unit, limits_for
from dpframe._session.data import Data, Origin, leaves_of
from dpframe._session.door import read_private
from dpframe._session.session import DEBUGGED, Session
from dpframe._session.terms import Terms, declarations, record_of
from dpframe._types import Arguments
from dpframe._validate import Bounds
from dpframe.engines.derived import DerivedSource
from dpframe.engines.parts import columns_of
from dpframe.engines.rows import FrameRows, Places, array_of, frame_of
from dpframe.mechanisms import _sampling


@dataclass
class Made:
    """Columns of a derived frame under construction, with their declarations and the person of each
    row."""

    names: list[Hashable] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)
    bounds: dict[int, Bounds] = field(default_factory=dict)
    times: dict[int, Span] = field(default_factory=dict)
    keys: dict[int, Keys] = field(default_factory=dict)
    people: list[int | tuple[Hashable, Any]] = field(
        default_factory=list
    )  # a place, or a column nobody sees
    # The row of the opened frame that each row is, where a row is a person.
    places: Places | None = None
    # A shallow copy of the frame that the arrays are from: while it lives, copy-on-write keeps
    # later edits out of them.
    held: pd.DataFrame | None = None
    # Of rows outside of memory, of which there are none here: what makes them of a batch, and of
    # which of its columns.
    again: Callable[[Any], Made] | None = None
    needed: list[int] = field(default_factory=list)

    def add(self, name: Hashable, array: object) -> int:
        self.names.append(name)
        self.arrays.append(array)
        return len(self.names) - 1

    @property
    def hidden(self) -> list[tuple[Hashable, Any]]:
        """The columns that name people and that nobody sees: they stand behind the others."""
        return [one for one in self.people if not isinstance(one, int)]

    @property
    def everything(self) -> list[Any]:
        """All columns."""
        return [*self.arrays, *(array for _, array in self.hidden)]

    @property
    def leaves(self) -> dict[Hashable, Column]:
        """The columns by their names."""
        frame = frame_of([a[:0] for a in self.arrays], self.names)
        return leaves_of(frame.columns, frame.dtypes)

    def carry(self, session: Session, expr: Expr, place: int, name: Hashable) -> None:
        """Copy what is declared of a column to the new column with the same values.

        ``expr`` is the expression of the values in ``session``. ``place`` is the position of the
        new column, and ``name`` its name. Bounds, times and keys are copied where they still hold.
        """
        own, root = session.terms, stem(expr)
        if isinstance(root, Column):
            if root.position in session.keys:
                self.keys[place] = session.keys[root.position].rename(name)
            times = dict(own.times)
            if root.position in times:
                self.times[place] = times[root.position]
        elif listed := getattr(expr, "categories", None):
            self.keys[place] = keys_for(list(listed), expr, name, ordered=isinstance(expr, Cut))
        pair = expr.bounds(session.bounds) if expr.kind == "number" else None
        if pair is not None:
            self.bounds[place] = Bounds(*pair)


def make_derived_session(
    parent: Session,
    made: Made,
    unit: Unit,
    steps: str,
    premises: Premises,
) -> Session:
    """Make a session on rows that were made from those of ``parent``, under the same budget.

    ``made`` has the new columns and their people. ``unit`` says for how many rows and groups a
    person counts. ``steps`` identifies how the rows were made, and ``premises`` says what is proven
    of them.

    It has no budget of its own, and no name in any frame's attrs.
    """
    base = parent.base
    if made.people:
        premises = premises.set_drawn_names(base.name)
    leaves = made.leaves
    people: list[Column] = []
    behind = len(made.names)
    for one in made.people:
        if isinstance(one, int):
            people.append(leaves[made.names[one]])
        else:
            name, array = one
            people.append(Column.of(behind, name, array.dtype))
            behind += 1
    origin = Origin(base, steps, premises)
    snapshot = frame_of(made.everything)
    source, again = parent.data.source, made.again
    if source is not None and again is not None:
        snapshot = DerivedSource(
            source, made.needed, snapshot, lambda batch: again(batch).everything, premises.whole
        ).schema
    data = Data(
        snapshot,
        list(snapshot.dtypes),
        leaves,
        base.data.version,
        base.data.root,
        origin,
        made.held,
        made.places,
    )
    if data.rows > ROW_CEILING:
        raise SessionError(
            f"more than {ROW_CEILING} rows are not supported: exact sums would not fit."
        )
    terms = Terms(
        parent.terms.account,
        replace(unit, people=tuple(people)),
        parent.terms.queries,
        tuple(sorted(made.bounds.items())),
        tuple(sorted(made.times.items())),
        tuple(sorted(made.keys.items(), key=lambda k: k[0])),
        parent.terms.people if premises.whole else None,
        parent.terms.version,
        shares_said=parent.terms.shares_said,
    )
    return Session(data, terms, parent.accountant)


# From the tracked frame to its rows ---------------------------------------------------------------------------------


class TrackedRows:
    """A tracked frame as rows: its columns, the rows that its condition keeps, and whose they are.

    What reads them is `read_private` by the verb that makes the new ones.
    """

    def __init__(
        self,
        session: Session,
        columns: Mapping[Hashable, Expr],
        where: Expr | None,
        verb: str,
        premises: Premises,
    ):
        """Find the rows that a verb works on: those that the condition ``where`` keeps, in their
        order.

        ``columns`` has the expression of each column by name. ``verb`` is the name of the verb, for
        errors. ``premises`` says what is proven of the rows, and how they are sorted.
        """
        session.check_alive()
        if debugging():
            session.accountant.declare([DEBUGGED])
        self.session, self.columns, self.where, self.verb = session, dict(columns), where, verb
        self.rows, self.premises = FrameRows(session.snapshot), premises
        self.places = read_private(verb, self.rows.kept, where, self.order)
        self.all = where is None

    @property
    def order(self) -> tuple[Key, ...]:
        """The keys that the rows are sorted by."""
        return self.premises.sorts

    @property
    def is_piecewise(self) -> bool:
        """Whether the data is outside of memory, so that new rows are made of one batch of rows at
        a time."""
        return self.session.data.source is not None

    def check_in_memory(self) -> None:
        """Refuse a verb that needs all rows at once if they are not in memory."""
        if self.is_piecewise:
            raise NotOffered(
                f"{self.verb} needs all rows of all people at once, as a frame in memory has them. Of a source outside of memory "
                "make its rows before you open it, where it is kept (a view, a query, a LazyFrame): dpframe.open(...)."
            )

    def check_unit_named(self) -> None:
        """Refuse a verb that may make several rows of one if nothing names the person of each row.

        Rows in memory always pass: their people can be given random names.
        """
        if self.is_piecewise and not self.session.unit.people:
            raise NotOffered(
                f"{self.verb} makes several rows of one, of a source where a row is a person and nothing names it. Open it with "
                "unit=, the column that names a person: dpframe.open(source, unit=...)."
            )

    def repeat_by_batch(self, made: Made, make: Callable[..., Made], *words: object) -> None:
        """Remember how new rows were made, so that they are made again of each batch that is read.

        It is for data outside of memory, and does nothing for rows in memory. ``made`` is the
        result on no rows, and ``make(self, *words)`` makes the rows. ``make`` has to work row by
        row; expressions that look at other rows of a person are refused.
        """
        if self.is_piecewise:
            made_of = [*self.columns.values(), *([] if self.where is None else [self.where])]
            if any(map(looks_within, made_of)):
                self.check_in_memory()  # a batch has not all rows of a person
            made.again = lambda batch: make(self._over(batch), *words)
            made.needed = columns_of(
                (list(self.columns.values()), self.where, self.session.unit.people)
            )

    def _over(self, batch: Any) -> TrackedRows:
        """Return a copy of this source that reads one batch of rows. It is called while data is
        read."""
        other = copy(self)
        other.rows = FrameRows(batch)
        other.places = other.rows.kept(self.where, self.order)
        return other

    def array(self, expr: Expr) -> Any:
        """Return the cells of the kept rows."""
        whole = self.rows.array(expr)
        return whole if self.all and not self.order else whole.take(self.places)

    def people(self) -> list[tuple[Hashable, Any]]:
        """Return the names and values of the columns that name the person of each kept row.

        Where a row is a person, this is one column with the random name of each row.
        """
        unit = self.session.unit
        if unit.people:
            return [(leaf.name, self.array(leaf)) for leaf in unit.people]
        return [("rows", self.session.row_names().take(self.places))]

    def opened_places(self) -> Places | None:
        """Return the position in the opened frame of each kept row.

        Return None if a row is not a person, or if the rows are not in memory.
        """
        data = self.session.data
        if data.source is not None or self.session.unit.people:
            return None
        return self.places if data.places is None else data.places.take(self.places)

    def copy_columns(
        self, source: Places | None, skip: Sequence[Hashable] = (), hidden: bool = True
    ) -> Made:
        """Copy all columns but those in ``skip``, with their bounds and keys, and the people of the
        rows.

        ``source`` has the position of the kept row that each new row repeats; None copies each row
        once. With ``hidden=False`` rows without a unit column keep their positions in the opened
        frame instead of drawn names.
        """
        made = Made()
        seen: dict[Expr, int] = {}
        for name, expr in self.columns.items():
            if name in skip:
                continue
            array = self.array(expr)
            place = made.add(name, array if source is None else array.take(source))
            made.carry(self.session, expr, place, name)
            seen.setdefault(expr, place)
        if hidden or self.session.unit.people:
            unit = self.session.unit.people
            if unit and all(leaf in seen for leaf in unit):
                made.people = [seen[leaf] for leaf in unit]
            else:
                made.people = [
                    (name, array if source is None else array.take(source))
                    for name, array in self.people()
                ]
        elif (places := self.opened_places()) is not None:
            made.places = places if source is None else places.take(source)
        return made

    def steps(self, verb: str, words: Arguments) -> str:
        """Return a digest of all steps up to a verb, which is equal when the same steps are taken
        again.

        ``words`` are the arguments of the verb.
        """
        sorts = (self.order,) if self.order else ()  # what is not sorted has the name that it had
        return digest(
            self.session.data.steps, list(self.columns.items()), self.where, verb, words, *sorts
        )


def unit_for(session: Session, most: int | None, max_rows: object, max_groups: object) -> Unit:
    """Return the unit of protection of a derived frame, with limits on the rows and groups of a
    person.

    Limits named in ``max_rows`` and ``max_groups`` are taken first. Otherwise the session's own
    apply, if the owner chose them. ``most`` is the proven largest number of rows of a person; None
    if nothing is proven.
    """
    rows, groups = limits_for(max_rows, max_groups)
    unit, proven = session.unit, session.premises.max_rows
    chosen = bool(unit.people) and (unit.rows, unit.groups) != (proven, proven)
    if most is not None and most <= LIMIT and not chosen:
        unit = replace(unit, rows=most, groups=most)
    return unit.with_limits(rows, groups)


def no_limits(max_rows: object, max_groups: object) -> None:
    """Refuse ``max_rows=`` and ``max_groups=`` at a verb after which each person still has one
    row."""
    if max_rows is not None or max_groups is not None:
        raise BadValue(
            "max_rows= and max_groups= are not needed: a row is still one person's only one."
        )


def draw_steps() -> str:
    """Return a random name for steps that no public words describe, such as those of the owner's
    code.

    So no earlier answer on record is mistaken for an answer about these rows.
    """
    return _sampling.random_bytes(16).hex()


def made_of(frame: pd.DataFrame) -> Made:
    """Return the columns of a frame that the owner's own code made. Nothing is declared of them."""
    held = frame.copy(deep=False)
    return Made(list(held.columns), [array_of(held, i) for i in range(held.shape[1])], held=held)


def declare_anew(
    made: Made, bounds: object, keys: object, where: str
) -> list[tuple[str, str, str]]:
    """Set the bounds and keys of new columns that the owner declares, and return the entries for
    the ledger.

    ``where`` names the verb at which they were declared.
    """
    leaves = made.leaves
    numbers, times, listed = declarations(leaves, bounds, keys)
    made.bounds, made.times, made.keys = dict(numbers), dict(times), dict(listed)
    return record_of(made.names, numbers, times, listed, where)


def hash_of(frame: pd.DataFrame) -> str:
    """Return a hash of a public table: its column names, dtypes and values.

    It identifies the table in the digest of steps that use it.
    """
    digest = hashlib.blake2b(digest_size=16)
    for i, name in enumerate(frame.columns):
        cells = frame.iloc[:, i]
        if isinstance(cells.dtype, pd.ArrowDtype):
            cells = pd.Series(array_of(frame, i))
        digest.update(f"{name!r}|{cells.dtype}|{len(cells)}".encode("utf-8", "surrogatepass"))
        if cells.dtype == object:
            digest.update(
                "\x1f".join(f"{type(c).__name__}:{c!r}" for c in cells).encode(
                    "utf-8", "surrogatepass"
                )
            )
        else:
            try:
                hashes = pd.util.hash_pandas_object(cells, index=False)
            except (TypeError, NotImplementedError):
                hashes = pd.util.hash_pandas_object(cells.map(repr).astype("str"), index=False)
            digest.update(np.ascontiguousarray(hashes).tobytes())
    return digest.hexdigest()
