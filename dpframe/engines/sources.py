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
from dpframe._types import Series
from dpframe.engines.steadiness import Answers, FoundHazard, check_answers

if TYPE_CHECKING:
    from dpframe.engines.sql.databases import Database

_ODD = np.uint64(0x9E3779B97F4A7C15)
_UNKNOWN = object()
_ROW = 160  # bytes that the engine for frames takes for a row of a person, beside its cells
_TEXT = 48  # bytes of a text, about
ArrowTables = Iterator[Any]  # tables or record batches of pyarrow, which has no types
Task = Callable[[Any], Any]  # a function of an engine that holds some rows


class PeoplePart(NamedTuple):
    """Share of the people with all of their rows, so that a large table is read in several passes.

    ``number`` is that of the share, from 0 to ``parts`` - 1. ``people`` are the columns that name a
    person. Rows of nobody are in a share too.
    """

    number: int
    parts: int
    people: tuple[Column, ...]


class Counting(NamedTuple):
    """Database that can compute sums over a source itself.

    ``relation`` is the text that stands after FROM. ``width`` is how many bytes of this process a
    row of a person takes meanwhile. It is 0 for another process, or where the database uses its
    disk.
    """

    database: Database
    relation: str
    width: int = 0


class SourceFrame(pd.DataFrame):
    """Columns of a source as an empty frame.

    A session sees nothing else of a source, but through its engine.
    """

    _metadata = ["_source"]  # noqa: RUF012  # as pandas has it
    _source: Source

    @property
    def _constructor(self) -> Any:
        return SourceFrame


def data_source_of(frame: SourceFrame) -> Source:
    """Return the data source that an empty frame of its columns was made from."""
    return frame._source


@dataclass(frozen=True, slots=True)
class NamedTable:
    """Table of a database: what `dpframe.sql` returns, for `dpframe.open`.

    ``connection`` is a connection or a URL. A URL may hold a password, so it is not shown.
    """

    connection: Any = field(repr=False)
    table: str

    def __getattr__(self, name: str) -> Any:
        """Refuse methods that a session has, and show how to open one.

        Python calls it for every name that this object lacks.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotOffered(
            "dpframe.sql names a table, and a session opens it: p = dpframe.open(dpframe.sql(url, 'table'), epsilon=1, "
            "ledger='budget.db', population='people'). Ask that one: p.count()."
        )


class Source(ABC):
    """Table that is read batch by batch, as often as needed, instead of held as a pandas frame.

    A subclass implements `_scan`, which reads the rows, and `version`, which changes when they do.
    It calls ``__init__`` with ``place``, a text that is the same whenever this table is opened.
    ``marks`` name what it reads; two sources that share rows have one in common.

    ``answers`` say what it does about each hazard of `steadiness`. Its module registers it in the
    catalogue of `dpframe.engines.tables`.
    """

    answers: ClassVar[Answers]
    marks: frozenset[tuple[str, Hashable]]
    names: list[str]
    place: str
    types: list[Any]
    schema: SourceFrame

    memory: int  # bytes, about, that one share of the people may take
    public_row_count: int = 0  # the number of rows, where it is public
    declared: tuple[FoundHazard, ...] = ()  # hazards that because= declares
    ordered: bool = True  # every scan has the rows in one order
    held: Any = None  # a connection that was made for it alone
    given: Any = None  # the object or name that it was opened from
    place_tells_all: bool = False  # equal places read the same rows

    def __init_subclass__(cls, **words: object) -> None:
        super().__init_subclass__(**words)
        check_answers(cls.__name__, getattr(cls, "answers", {}))

    def __init__(self, schema: Any, place: str, marks: Iterable[Hashable]):
        """Keep the columns of a source, and remember its present version.

        ``schema`` is a schema of Arrow. ``place`` is a text that is the same whenever this table is
        opened. ``marks`` name what it reads, such as its files: two sources that share rows have
        one in common. Two columns of one name are refused.
        """
        self.place, self.memory = place, SIZES.memory
        self.marks = frozenset(("source", mark) for mark in marks)
        self.names = [str(name) for name in schema.names]
        self.types = [plain_type(field.type) for field in schema]
        twice = next((n for i, n in enumerate(self.names) if n in self.names[:i]), None)
        if twice is not None:
            raise BadValue(f"column names must be unique: {twice!r} stands twice.")
        self.schema = self._schema()
        self._rows: int | None = None
        self._version_at_opening = self.version()

    def _schema(self) -> SourceFrame:
        """Return the columns of the source as a frame without rows, for the session."""
        empty = {i: _column([], t) for i, t in enumerate(self.types)}
        frame = SourceFrame(empty)
        frame.columns = pd.Index(self.names, tupleize_cols=False)
        frame._source = self
        return frame

    @abstractmethod
    def _scan(self, names: list[str]) -> ArrowTables:
        """Yield the rows as tables or record batches of Arrow, with the columns ``names``.

        There is at least one column.
        """

    @abstractmethod
    def version(self) -> Hashable:
        """Return a value that changes when the rows do.

        Examples are sizes and times of files, or the number of a snapshot.
        """

    def check(self) -> None:
        """Refuse to go on if the source has changed since it was opened, or cannot be reached.

        A session calls this before each debit, and again before it releases an answer.
        """
        found: Hashable = _UNKNOWN
        with suppress(Exception):  # the error of a database is not shown
            found = self.version()
        if found is _UNKNOWN:
            raise SessionError(
                "this source cannot be reached any more: a file is gone, or a connection is closed, lost, busy with another "
                "query, or in a transaction that has failed, which its rollback() ends. Nothing was charged for what is asked "
                "now; ask again when it is back."
            )
        if found != self._version_at_opening:
            raise SessionError(
                "this source has changed since it was opened: a file or a table was replaced or written to. Open its new state "
                "under a name of its own: dpframe.open(..., version='...')."
            )

    def reads(self, other: Source) -> bool:
        """Return whether another source reads the same table, and this one still reads what it did.

        Both must be made of one object, an equal name, or a plan that tells all it reads. An object
        that was changed in place has other columns, or has them at other addresses.
        """
        if self.given is None or type(self) is not type(other):
            return False
        named = (
            isinstance(self.given, str | list | tuple | PurePath | NamedTable)
            and self.given == other.given
        )
        # An equal name is enough, or an equal place if that says all. Else it must be one object.
        same = (
            self.place == other.place
            if named or self.place_tells_all
            else self.given is other.given
        )
        shape = self.names, self.types, self.marks
        with suppress(Exception):
            return (
                same
                and shape == (other.names, other.types, other.marks)
                and self.version() == self._version_at_opening
            )
        return False

    def rows(self) -> int:
        """Return the number of rows, which is counted once."""
        if self._rows is None:
            self._rows = self._count()
        return self._rows

    def _count(self) -> int:
        return sum(batch.num_rows for batch in self._scan(self.names[:1])) if self.names else 0

    def batches(
        self, columns: Sequence[int], part: PeoplePart | None = None
    ) -> Iterator[pd.DataFrame]:
        """Yield frames of a limited number of rows, with the columns at these positions.

        All rows are read, or those of a share of the people if ``part`` is given. The columns are
        in this order, in the dtypes of the schema. Two scans with different numbers of rows are an
        error.
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
            if part is not None and part.parts > 1:
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
        """Return a mask of the rows of an Arrow table that belong to a share of the people.

        ``wanted`` are the positions in the source of the table's columns.
        """
        vectors = [
            prepare(series_of(table.column(wanted.index(c.position))), c.kind) for c in part.people
        ]
        return np.asarray(assign_lots(vectors, part.parts) == part.number)

    def _frame(self, table: Any, columns: Sequence[int]) -> pd.DataFrame:
        frame = pd.DataFrame({i: series_of(table.column(self.names[i])) for i in columns})
        frame.columns = pd.Index([self.names[i] for i in columns], tupleize_cols=False)
        return frame

    def passes(self, columns: Sequence[int]) -> int:
        """Return into how many shares people are split so that the rows of one share fit into
        memory.

        ``columns`` are the positions of the columns that are read.
        """
        return self.passes_of(sum(_width(self.types[i]) for i in columns) + _ROW)

    def passes_of(self, width: int) -> int:
        """Return into how many shares people are split if a row takes ``width`` bytes."""
        return max(1, math.ceil(self.rows() * width / max(self.memory, 1)))

    def counting(self) -> Counting | None:
        """Return the database that can compute sums over these rows; None if rows are only read.

        The schema decides that, and no cell does.
        """
        return None

    def each(
        self, task: Task, columns: Sequence[int], people: tuple[Column, ...], key: bytes
    ) -> Iterator[Any] | None:
        """Yield the results of a task for parts of the rows, computed where the rows are.

        Clusters implement this. None means that the rows are read here.

        ``task`` takes an engine for pandas frames, and ``columns`` are the positions that it reads.
        ``key`` seeds the hash of contribution limits. With ``people`` all rows of a person are in
        one part.
        """
        return None

    def close(self) -> None:
        """Close a connection that was made for this source, and forget the table."""
        self.given = None
        if self.held is not None:
            self.held.close()


@np.errstate(all="ignore")
def assign_lots(columns: Sequence[Vector], of: int) -> NDArray[np.int64]:
    """Return for each row the number of the share that its person is in, from 0 to ``parts`` - 1.

    ``columns`` are the cells that name the person. Rows of one person get the same number, in
    whatever batch they are.
    """
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
    """Return the type of Arrow in which a column is read.

    A dictionary is read as the values it stands for. Texts of every width are read as large
    strings.
    """
    pa: Any = import_module("pyarrow")
    types: Any = import_module("pyarrow.types")
    if types.is_dictionary(dtype):
        return plain_type(dtype.value_type)
    text = ("is_string", "is_large_string", "is_string_view")
    if any(hasattr(types, name) and getattr(types, name)(dtype) for name in text):
        return pa.large_string()
    return dtype


def is_text(dtype: object) -> bool:
    """Return whether a plain type is that of texts."""
    return bool(dtype == import_module("pyarrow").large_string())


def cast_batch(raw: Any, names: list[str], types: list[Any]) -> Any:
    """Return the columns ``names`` of a batch in the types of the schema, as an Arrow table.

    A batch may differ in the width of texts, in dictionaries and in time zones. Any other
    difference is an error.
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
    """Return whether two types of Arrow are both times with a zone, in the same unit.

    Such times are in UTC and only shown in a zone, which a session of a database may change. A
    batch of one type may then be read as the other.
    """
    zones = [getattr(dtype, "tz", None) for dtype in (one, other)]
    return None not in zones and one.unit == other.unit


def _column(chunks: list[Any], dtype: object) -> Series:
    """Return chunks of Arrow of one type as a pandas Series."""
    pa: Any = import_module("pyarrow")
    return series_of(pa.chunked_array(chunks, type=dtype))


def series_of(column: Any) -> Series:
    """Return a column of Arrow as a pandas Series, without a copy where possible."""
    pa: Any = import_module("pyarrow")
    array: Any = pd.arrays.ArrowExtensionArray(column)
    if pa.types.is_large_string(
        column.type
    ):  # the engine reads pandas' own strings without a dictionary
        array = pd.array(column, dtype=pd.StringDtype("pyarrow", na_value=np.nan))
    return pd.Series(array, copy=False)


def stats_of(files: Iterable[str]) -> Hashable:
    """Return size, times and inode of each file, to be compared later.

    A change of a file changes them. Its owner can put st_mtime back, but nobody can put st_ctime
    back.
    """
    found = [os.stat(file) for file in files]
    return tuple((s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_dev, s.st_ino) for s in found)


def differ_without_case(names: Iterable[str]) -> bool:
    """Return whether all names differ even if upper and lower case count as equal.

    Only then can no database confuse two columns.
    """
    listed = list(names)
    return len({name.casefold() for name in listed}) == len(listed)


def quote_name(name: str) -> str:
    """Return a name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def _width(dtype: Any) -> int:
    """Return about how many bytes a cell of an Arrow type takes in memory."""
    try:
        return max(8, int(dtype.bit_width) // 8)
    except ValueError:
        return _TEXT
