"""Sources: tables that are no pandas frame in memory, handed over in batches of Arrow columns.

*Formal guarantee.* Every scan of a source has the same rows, or its version has changed: what is
fixed when a session opens is compared before each debit and again before anything is released. All
batches have the columns and the types of the schema, whatever a file, a chunk or a partition says
of its own, so that a cell becomes what it becomes whichever batch it is in. Whether two rows are in
one part is a function of the cells that name their people.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.columns import Vector, objects, prepare
from dpframe._errors import BadValue, NotOffered, SessionError
from dpframe._expr import Column
from dpframe._sizes import SIZES
from dpframe.engines.steadiness import Answers, FoundHazard, check_answers

if TYPE_CHECKING:
    from dpframe.engines.sql.databases import Database

_ODD = np.uint64(0x9E3779B97F4A7C15)
_UNKNOWN = object()
_ROW = 160  # bytes that the engine for frames takes for a row of a person, beside its cells
_TEXT = 48  # bytes of a text, about
Task = Callable[[Any], Any]  # of the engine for frames, on some rows


class PeoplePart(NamedTuple):
    """Some of the people, with all of their rows: those of one number among ``of``. Rows of nobody
    are in one too."""

    number: int
    of: int
    people: tuple[Column, ...]


class Counting(NamedTuple):
    """A database, what stands after FROM there, and how many bytes of this process a row of a
    person takes while it counts: none of another process, or where what does not fit goes to
    disk."""

    database: Database
    relation: str
    width: int = 0


class SourceFrame(pd.DataFrame):
    """The columns of a source as an empty frame, which is all that a session sees of it but through
    its engine."""

    _metadata = ["_source"]  # noqa: RUF012  # as pandas has it
    _source: Source

    @property
    def _constructor(self) -> Any:
        return SourceFrame


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table of a database: what `dpframe.sql` returns, for `dpframe.open`. A URL, which may hold
    a password, is not shown."""

    connection: Any = field(repr=False)
    table: str

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotOffered(
            "dpframe.sql names a table, and a session opens it: p = dpframe.open(dpframe.sql(url, 'table'), epsilon=1, "
            "ledger='budget.db', population='people'). Ask that one: p.count()."
        )


class Source(ABC):
    """A table that is read batch by batch, as often as it is asked.

    A new one says how its batches are read, and by what it is known: ``place`` is a text that is
    the same whenever this table is opened, and ``marks`` are what two sources have in common that
    share rows. ``answers`` are what it does about each hazard of `steadiness`. Its line is in
    `SOURCES`.
    """

    answers: ClassVar[Answers]
    marks: frozenset[tuple[str, Hashable]]
    names: list[str]
    place: str
    types: list[Any]
    schema: SourceFrame

    memory: int  # bytes, about, that one pass over its people may take
    counted: int = 0  # the number of rows, where it is public
    declared: tuple[FoundHazard, ...] = ()  # hazards that because= declares
    ordered: bool = True  # every scan has the rows in one order
    held: Any = None  # a connection that was made for it alone
    given: Any = None  # what it was made of
    told: bool = False  # the place says all of what is read

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        check_answers(cls.__name__, getattr(cls, "answers", {}))

    def __init__(self, schema: Any, place: str, marks: Iterable[Hashable]):
        self.place, self.memory = place, SIZES.memory
        self.marks = frozenset(("source", mark) for mark in marks)
        self.names = [str(name) for name in schema.names]
        self.types = [plain_type(field.type) for field in schema]
        twice = next((n for i, n in enumerate(self.names) if n in self.names[:i]), None)
        if twice is not None:
            raise BadValue(f"column names must be unique: {twice!r} stands twice.")
        self.schema = self._schema()
        self._rows: int | None = None
        self._fixed = self.version()

    def _schema(self) -> SourceFrame:
        empty = {i: _column([], t) for i, t in enumerate(self.types)}
        frame = SourceFrame(empty)
        frame.columns = pd.Index(self.names, tupleize_cols=False)
        frame._source = self
        return frame

    @abstractmethod
    def _scan(self, names: list[str]) -> Iterator[Any]:
        """Yield tables or record batches of Arrow with these columns, of all rows.

        There is at least one column.
        """

    @abstractmethod
    def version(self) -> Hashable:
        """Return what changes when the rows do: files with sizes and times, or a snapshot's number."""

    def check(self) -> None:
        """Raise if the source is no longer what it was when it was opened."""
        found: Hashable = _UNKNOWN
        with suppress(Exception):  # what an engine says is its own
            found = self.version()
        if found is _UNKNOWN:
            raise SessionError(
                "this source cannot be reached any more: a file is gone, or a connection is closed, lost, busy with another "
                "query, or in a transaction that has failed, which its rollback() ends. Nothing was charged for what is asked "
                "now; ask again when it is back."
            )
        if found != self._fixed:
            raise SessionError(
                "this source has changed since it was opened: a file or a table was replaced or written to. Open its new state "
                "under a name of its own: dpframe.open(..., version='...')."
            )

    def reads(self, other: Source) -> bool:
        """Return whether another source reads the same table, and this one still reads what it did.

        They were made of one object, of an equal name, or of a plan that says all. An object that
        was changed in place has other columns, or these at other addresses.
        """
        if self.given is None or type(self) is not type(other):
            return False
        named = (
            isinstance(self.given, str | list | tuple | PurePath | NamedTable)
            and self.given == other.given
        )
        same = self.place == other.place if named or self.told else self.given is other.given
        shape = self.names, self.types, self.marks
        with suppress(Exception):
            return (
                same
                and shape == (other.names, other.types, other.marks)
                and self.version() == self._fixed
            )
        return False

    def rows(self) -> int:
        """Return the number of rows."""
        if self._rows is None:
            self._rows = self._count()
        return self._rows

    def _count(self) -> int:
        return sum(batch.num_rows for batch in self._scan(self.names[:1])) if self.names else 0

    def batches(
        self, columns: Sequence[int], part: PeoplePart | None = None
    ) -> Iterator[pd.DataFrame]:
        """Yield frames with the columns at these places, of all rows or of a part.

        Columns are in this order and in the dtypes of the schema.
        """
        wanted = list(
            dict.fromkeys([*columns, *(c.position for c in (part.people if part else ()))])
        )
        pa: Any = import_module("pyarrow")
        seen, size, waiting = 0, 0, []
        for raw in self._scan([self.names[i] for i in wanted]):
            table = cast_batch(
                raw, [self.names[i] for i in wanted], [self.types[i] for i in wanted]
            )
            seen += table.num_rows
            if part is not None and part.of > 1:
                table = table.filter(pa.array(self._within(table, wanted, part)))
            for start in range(0, table.num_rows, SIZES.batch):
                piece = table.slice(start, SIZES.batch)
                waiting.append(piece)
                size += piece.num_rows
                if size >= SIZES.batch:
                    yield self._frame(pa.concat_tables(waiting), columns)
                    size, waiting = 0, []
        if waiting:
            yield self._frame(pa.concat_tables(waiting), columns)
        if seen != self.rows():
            raise ValueError("two scans of one source have not the same rows")

    def _within(self, table: Any, wanted: list[int], part: PeoplePart) -> NDArray[np.bool_]:
        """Return a mask of the rows of a part."""
        vectors = [
            prepare(series_of(table.column(wanted.index(c.position))), c.kind) for c in part.people
        ]
        return np.asarray(assign_lots(vectors, part.of) == part.number)

    def _frame(self, table: Any, columns: Sequence[int]) -> pd.DataFrame:
        frame = pd.DataFrame({i: series_of(table.column(self.names[i])) for i in columns})
        frame.columns = pd.Index([self.names[i] for i in columns], tupleize_cols=False)
        return frame

    def passes(self, columns: Sequence[int]) -> int:
        """Return in how many parts the people are read, so that the rows of a part fit into memory."""
        return self.passes_of(sum(_width(self.types[i]) for i in columns) + _ROW)

    def passes_of(self, width: int) -> int:
        """Return in how many parts the people are read, if a row takes ``width`` bytes."""
        return max(1, math.ceil(self.rows() * width / max(self.memory, 1)))

    def counting(self) -> Counting | None:
        """Return the database that can count these rows; None if they are only read here.

        The schema decides, and no cell does.
        """
        return None

    def each(
        self, task: Task, columns: Sequence[int], people: tuple[Column, ...], key: bytes
    ) -> Iterator[Any] | None:
        """Yield the results of a task for each part, computed where the rows are.

        Return None if the rows are read here.
        """
        return None

    def close(self) -> None:
        """Close the source and forget what it holds."""
        self.given = None
        if self.held is not None:
            self.held.close()


@np.errstate(all="ignore")
def assign_lots(columns: Sequence[Vector], of: int) -> NDArray[np.int64]:
    """Return a number below ``of`` for each row, which the cells that name its person decide."""
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        values = column.values
        if column.categories is not None:
            texts = objects(str(c).encode("utf-8", "surrogatepass") for c in column.categories)
            hashes = pd.util.hash_array(texts, categorize=False)
            words = np.append(hashes, np.uint64(0))[values]  # the code of a null is -1
        elif values.dtype.kind == "f":
            words = (values.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 is 0.0
        elif values.dtype.kind == "M":
            words = values.view(np.uint64)
        else:
            words = values.astype(np.int64 if values.dtype.kind != "u" else np.uint64).view(
                np.uint64
            )
        mixed = (mixed + words) * _ODD
        mixed ^= mixed >> np.uint64(29)
    return (((mixed * _ODD) >> np.uint64(33)) % np.uint64(of)).astype(np.int64)


def plain_type(dtype: Any) -> Any:
    """Return the type in which a column is read.

    Dictionaries are read as what they stand for, and texts of every width as one type.
    """
    pa: Any = import_module("pyarrow")
    types: Any = import_module("pyarrow.types")
    if types.is_dictionary(dtype):
        return plain_type(dtype.value_type)
    text = ("is_string", "is_large_string", "is_string_view")
    if any(hasattr(types, name) and getattr(types, name)(dtype) for name in text):
        return pa.large_string()
    return dtype


def is_text(dtype: Any) -> bool:
    """Return whether a plain type is that of texts."""
    return bool(dtype == import_module("pyarrow").large_string())


def cast_batch(raw: Any, names: list[str], types: list[Any]) -> Any:
    """Return the columns of a batch in the types of the schema.

    A batch may differ only in the width of texts, in dictionaries and in time zones.
    """
    pa: Any = import_module("pyarrow")
    arrays = []
    for name, dtype in zip(names, types, strict=True):
        array = raw.column(name)
        if array.type != dtype:
            if plain_type(array.type) != dtype and not _same_moments(array.type, dtype):
                raise TypeError("a batch has another type than its source")
            array = array.cast(dtype)
        arrays.append(array)
    return pa.table(arrays, names=names)


def _same_moments(one: Any, other: Any) -> bool:
    """Return whether two types are of times in UTC, perhaps shown in different zones.

    A session of a database may change its own zone.
    """
    zones = [getattr(dtype, "tz", None) for dtype in (one, other)]
    return None not in zones and one.unit == other.unit


def _column(chunks: list[Any], dtype: Any) -> pd.Series[Any]:
    pa: Any = import_module("pyarrow")
    return series_of(pa.chunked_array(chunks, type=dtype))


def series_of(column: Any) -> pd.Series[Any]:
    """Return a column of Arrow as a pandas Series."""
    pa: Any = import_module("pyarrow")
    array: Any = pd.arrays.ArrowExtensionArray(column)
    if pa.types.is_large_string(
        column.type
    ):  # with pandas' own strings the engine needs no dictionary
        array = pd.array(column, dtype=pd.StringDtype("pyarrow", na_value=np.nan))
    return pd.Series(array, copy=False)


def stats_of(files: Iterable[str]) -> Hashable:
    """Return what a change of each file changes: size, times and inode. Its owner can put st_mtime
    back, and nobody st_ctime."""
    found = [os.stat(file) for file in files]
    return tuple((s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_dev, s.st_ino) for s in found)


def differ_without_case(names: Iterable[str]) -> bool:
    """Return whether names differ even without their cases.

    Then no database takes one column for another.
    """
    listed = list(names)
    return len({name.casefold() for name in listed}) == len(listed)


def quote_name(name: str) -> str:
    """Return a name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def _width(dtype: Any) -> int:
    try:
        return max(8, int(dtype.bit_width) // 8)
    except ValueError:
        return _TEXT
