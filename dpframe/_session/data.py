"""The rows that a session asks about: as they stood, by what they are known again, and which
session a frame belongs to.

Whether a frame's columns are the very columns of another is seen by their buffers; no value is
compared. Data keeps a shallow copy of its frame. Copy-on-write makes pandas copy a buffer before
writing to it, so while that copy lives, a column with the same buffer and the same index object
holds the same people's values in the same rows, and an edited or derived column has another buffer.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.encoding import digest
from dpframe._errors import BadValue, NoSession
from dpframe._expr import Column
from dpframe._groups.premises import Premises, premises_of_root
from dpframe._ledger import place_of
from dpframe._statistics.engine import Engine
from dpframe._types import Index
from dpframe.engines import engine_for
from dpframe.engines.sources import SourceFrame, data_source_of

if TYPE_CHECKING:
    from dpframe.engines.sources import Source

if TYPE_CHECKING:
    from dpframe._session.session import Session

Mark = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """Record of how derived rows were made from those of an opened session."""

    base: Session  # of the frame that was opened
    steps: str  # a name of what was done to get there
    premises: Premises


class Data:
    """Snapshot of the rows that a session asks about, opened or derived, and what is known of them.

    The snapshot of derived rows may have more columns than ``leaves``: those that name people and
    that nobody sees.
    """

    snapshot: pd.DataFrame
    steps: str
    source: Source | None
    rows: int
    marks: frozenset[Any]
    index: Index

    def __init__(
        self,
        snapshot: pd.DataFrame,
        dtypes: list[Any],
        leaves: dict[Hashable, Column],
        version: str | None,
        root: Callable[[], pd.DataFrame | None],
        origin: Origin | None = None,
        held: pd.DataFrame | None = None,
        places: NDArray[np.intp] | None = None,
    ):
        """Keep a snapshot of rows, and the marks by which they are recognized later.

        ``leaves`` has the visible columns by name, and ``root`` returns the opened frame while it
        lives. ``origin`` says how derived rows were made; it is None for the frame that was opened.
        ``held`` keeps another frame alive that the snapshot shares its buffers with. ``places`` has
        the row of the opened frame that each derived row is, where a row is a person.
        """
        self.snapshot = snapshot
        self.dtypes = dtypes
        self.leaves = leaves
        self.version = version
        self.root = root  # the frame that was opened, while it lives
        self.origin = origin
        # What was done to get to derived rows; nothing for the frame that was opened.
        self.steps = "" if origin is None else origin.steps
        self.held = held  # what the snapshot shares its buffers with, where that is another frame
        # Of derived rows that are people: the row of the opened frame that each is.
        self.places = places
        # Of a source outside of memory the snapshot is its columns alone, and the number of rows is
        # known where it is public.
        self.source = data_source_of(snapshot) if isinstance(snapshot, SourceFrame) else None
        self.rows = len(snapshot) if self.source is None else self.source.public_row_count
        self.marks = marks(snapshot) if self.source is None else self.source.marks
        # The same object means the same rows, also when the session is closed.
        self.index = snapshot.index
        self.reader: Engine | None = None  # the engine, once something is read

    @classmethod
    def of(cls, frame: pd.DataFrame, version: str | None) -> Data:
        """Make the snapshot of a frame as it stands, when a session opens it.

        It shares the frame's buffers, and copy-on-write keeps later edits out of it. ``version`` is
        the declared version of the data.
        """
        dtypes = list(frame.dtypes)
        return cls(
            frame.copy(deep=False),
            dtypes,
            leaves_of(frame.columns, dtypes),
            version,
            weakref.ref(frame),
        )

    def premises(self, named: bool) -> Premises:
        """Return what is proven of these rows, such as how many each person has at most.

        ``named`` tells whether columns of the opened frame name a person.
        """
        if self.origin is not None:
            return self.origin.premises
        return premises_of_root(named, self.source is None or self.source.ordered)

    @cached_property
    def schema(self) -> str:
        """Digest of the columns, the version and the steps, which makes the same question of other
        data another question."""
        columns = list(zip(self.leaves, self.dtypes, strict=False))
        if self.origin is None:
            return digest("columns", columns, self.version)
        return digest("derived", self.origin.base.data.schema, self.origin.steps, columns)

    def shares(self, other: Data) -> bool:
        """Return whether two snapshots have a column buffer in common, or the very same index
        object.

        It finds a second budget on the same people without comparing any value.
        """
        return not other.marks.isdisjoint(self.marks) or bool(
            self.rows and other.index.is_(self.index)
        )

    def engine(self, key: Callable[[], bytes]) -> Engine:
        """Return the engine that reads the snapshot. ``key`` draws the key of its hashes."""
        if self.reader is None:
            self.reader = engine_for(self.snapshot, key())
        return self.reader

    def forget(self) -> None:
        """Release the snapshot, the engine and the source when the session is closed.

        The marks stay, so that the same data is still recognized.
        """
        if self.source is not None:
            self.source.close()
        if self.reader is not None:
            self.reader.close()
        self.snapshot, self.held, self.reader, self.places = (
            self.snapshot.iloc[:0],
            None,
            None,
            None,
        )


def leaves_of(names: Index, dtypes: Iterable[object]) -> dict[Hashable, Column]:
    """Return the columns of a frame by name, each with the facts that its dtype tells.

    ``names`` and ``dtypes`` are those of the frame, in order. A name that is there twice is
    refused.
    """
    labels = names.tolist()
    leaves = {
        name: Column.of(i, name, dtype)
        for i, (name, dtype) in enumerate(zip(labels, dtypes, strict=True))
    }
    only_texts = {*map(type, labels)} == {str}  # other labels, such as nulls, pandas compares
    if len(leaves) < len(labels) or not (only_texts or names.is_unique):
        raise BadValue(f"duplicate column name {names[names.duplicated()][0]!r}.")
    return leaves


def mark(array: Any) -> Mark | None:
    """Return a value that is equal for two arrays if one is a view of all of the other.

    It is made of memory addresses and layout, and no value of the array is compared. Return None
    for an array whose memory cannot be found.
    """
    if isinstance(array, np.ndarray):
        return (array.__array_interface__["data"][0], array.strides, array.dtype.str, array.shape)
    arrow = getattr(array, "_pa_array", None)
    if arrow is not None:
        # Where its cells are: two wrappers of the same memory are one column.
        found: list[Any] = []
        anywhere = False
        for chunk in arrow.chunks:
            buffers = [b.address if b is not None and b.size else None for b in chunk.buffers()]
            anywhere |= any(buffers)
            found += [chunk.offset, len(chunk), *buffers]
        # A column of nulls, and one without rows, may have no memory: a view has the very array.
        return ("arrow", tuple(found) if anywhere else id(arrow), str(array.dtype))
    if isinstance(array, pd.Categorical):
        return "category", id(array.categories), mark(array.codes)
    data, null = getattr(array, "_data", None), getattr(array, "_mask", None)
    if isinstance(data, np.ndarray) and isinstance(null, np.ndarray):
        return "masked", mark(data), mark(null)
    inner = getattr(array, "_ndarray", None)
    if isinstance(inner, np.ndarray):
        return str(array.dtype), mark(inner)
    if isinstance(array, pd.arrays.IntervalArray):
        ends = [mark(getattr(array, side)) for side in ("_left", "_right")]
        return None if None in ends else ("interval", str(array.dtype), *ends)
    values = getattr(array, "sp_values", None)
    if isinstance(values, np.ndarray):
        return "sparse", id(array.sp_index), str(array.dtype), mark(values)
    return None


def _marks(frame: pd.DataFrame) -> list[Mark | None]:
    """Return the mark of each column of a frame, in order; None for a column without one."""
    # The manager hands out the array itself in half a microsecond; iloc takes fifteen to wrap the
    # same.
    fast = getattr(getattr(frame, "_mgr", None), "iget_values", None)
    if fast is not None:
        return [mark(fast(i)) for i in range(frame.shape[1])]
    arrays = (frame.iloc[:, i].array for i in range(frame.shape[1]))
    return [mark(getattr(array, "_ndarray", array)) for array in arrays]


def find_root_positions(frame: pd.DataFrame, root: pd.DataFrame) -> list[int] | None:
    """Return the position in ``root`` of each column of ``frame``, recognized by shared memory.

    ``root`` is the frame that was opened. Return None if the index is another one, or if a column
    is not found there.
    """
    if not frame.index.is_(root.index):
        return None
    known = _marks(root)
    found: list[int] = []
    for i, own in enumerate(_marks(frame)):
        if own is None:
            return None
        if i < len(known) and known[i] == own and frame.columns[i] == root.columns[i]:
            found.append(i)
            continue
        places_of = [j for j, k in enumerate(known) if k == own]
        if not places_of:
            return None
        named = [j for j in places_of if root.columns[j] == frame.columns[i]]
        # Without rows columns of one dtype may have one address: then a name tells, and else the
        # place, which a rename keeps.
        found.append((named or [j for j in places_of if j == i] or places_of)[0])
    return found


def marks(frame: pd.DataFrame) -> frozenset[Mark]:
    """Return the marks of all columns that have one. They hold for as long as the frame is kept.

    Without rows there is nothing to share.
    """
    return frozenset(m for m in _marks(frame) if m is not None) if len(frame) else frozenset()


# Which session a frame belongs to, by the name that it carries in its attrs ------------------------------------

ATTR = "dpframe"

# Sessions live here, because an accessor is built anew at every access and attrs are copied.
sessions: dict[str, Session] = {}
closed: list[Session] = []  # without their data


def session_of(attrs: Mapping[Hashable, object]) -> Session | None:
    """Return the open session that a frame names in its attrs; None if it names no session.

    A name that is not open in this process is refused, with advice on how to go on.
    """
    name = attrs.get(ATTR)
    if name is None:
        return None
    session = sessions.get(name) if isinstance(name, str) else None
    if session is None:
        place = read_session_place(attrs)
        if place is not None:
            ledger, population = place
            raise NoSession(
                "this frame names a dpframe session of another process. Its budget is in a file: open it again with the terms "
                f"it had, df.dp.open(..., ledger={ledger!r}, population={population!r})."
            )
        raise NoSession(
            "this frame names a dpframe session that is not in this process: it was closed, or it ended with the "
            "process that opened it. Its budget is gone. If the data has never been asked, remove the name "
            "(del df.attrs['dpframe']) and open a session."
        )
    return session


def names_same_budget(
    attrs: Mapping[Hashable, object], file: str | None, population: object
) -> bool:
    """Return whether the session that a frame names had this ledger and population, in any process."""
    place = read_session_place(attrs)
    return place is not None and (place_of(place[0]), place[1]) == (file, population)


def read_session_place(attrs: Mapping[Hashable, Any]) -> tuple[str, str] | None:
    """Return the ledger file and the population that a frame's attrs name for its session.

    Return None if the attrs name no session, or one without a ledger file.
    """
    try:
        place = json.loads(attrs[ATTR])
        return str(place["ledger"]), str(place["population"])
    except (KeyError, TypeError, ValueError):
        return None
