"""DataFrames of dask: its scheduler counts the partitions, and hands over sums.

With people a partition is cut by the numbers of its people, and the pieces of one number are
counted together: in as many passes as the memory makes needed, each of them in so many lots that
there is work for a cluster. What dask computes again, since a worker is lost, is one task, and has
one result.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from dpframe._cells.columns import prepare
from dpframe._errors import BadType
from dpframe._expr import Column
from dpframe._types import Series
from dpframe.engines.people import bytes_of_text
from dpframe.engines.sources import ArrowTables, Source, Task, assign_lots, cast_batch, series_of
from dpframe.engines.steadiness import Answers, FoundHazard, HazardAnswer
from dpframe.engines.tables.kinds import TableKind, register_kind

_LOTS = 32  # most shares in one pass, each of which takes a piece of every partition


class DaskSource(Source):
    """Source of a DataFrame of dask, which the user's own scheduler computes."""

    answers: ClassVar[Answers] = {
        **dict.fromkeys(
            ("chance", "clock", "first", "sums", "code", "across", "meaning"), HazardAnswer.DECLARED
        ),
        **dict.fromkeys(("transaction", "writes", "in place", "elsewhere"), HazardAnswer.UNSEEN),
    }

    def __init__(self, frame: Any):
        """Keep a DataFrame of dask, and check that its columns and workers can be used.

        Columns without a definite dtype are refused. Such a frame needs ``because=``, since its
        graph is code that dpframe does not see.
        """
        pa: Any = import_module("pyarrow")
        self._frame_of_dask, meta = frame, frame._meta
        for name, dtype in meta.dtypes.items():
            unknown = (
                isinstance(dtype, pd.CategoricalDtype)
                and "__UNKNOWN_CATEGORIES__" in dtype.categories
            )
            if not isinstance(name, str) or dtype == np.dtype(object) or unknown:
                raise BadType(
                    f"column {name!r} of this dask frame is of dtype {dtype}, whose cells may be anything. Give it one before "
                    f"you open it: frame.astype({{{name!r}: 'string[pyarrow]'}}); columns are named by texts."
                )
        _check_conversions(frame)
        self.declared: tuple[FoundHazard, ...] = (FoundHazard("code", "a graph of dask"),)
        self._arrow = pa.Schema.from_pandas(meta, preserve_index=False)
        _check_workers()
        super().__init__(self._arrow, f"dask {frame._name}", [("dask", frame._name)])

    def version(self) -> Hashable:
        return None  # what a graph reads cannot be seen

    def _shape(self, names: list[str]) -> _Shape:
        """Return the schema that every partition with the columns ``names`` must have."""
        schema = import_module("pyarrow").schema([self._arrow.field(n) for n in names])
        types = [self.types[self.names.index(n)] for n in names]
        return _Shape(names, schema, types, list(self._frame_of_dask._meta[names].dtypes))

    def _scan(self, names: list[str]) -> ArrowTables:
        """Yield the partitions as tables of Arrow, computed one after the other."""
        some, shape = self._frame_of_dask[names], self._shape(names)
        for i in range(some.npartitions):
            yield shape.table(some.partitions[i].compute())

    def _count(self) -> int:
        """Return the number of rows, which the workers count by partition."""
        return sum(
            _compute_all(
                [_task(len)(piece) for piece in self._frame_of_dask[self.names[:1]].to_delayed()]
            )
        )

    def each(
        self, task: Task, columns: Sequence[int], people: tuple[Column, ...], key: bytes
    ) -> Iterator[Any]:
        """Yield the results of a task that the workers run, for each partition or share of the
        people.

        ``task`` takes an engine for pandas frames, and ``columns`` are the positions that it reads.
        ``key`` seeds the hash of contribution limits.

        With ``people``, all rows of a person have to be read together. So partitions are cut into
        shares of the people first (``lots``), in as many passes as memory needs.
        """
        wanted = list(dict.fromkeys([*columns, *(c.position for c in people)]))
        names = [self.names[i] for i in wanted]
        pieces, shape = self._frame_of_dask[names].to_delayed(), self._shape(names)
        places = [wanted.index(i) for i in columns]
        counted = _task(partial(_count_lot, task, dict(zip(columns, places, strict=True)), key))
        if not people:
            read = _task(partial(_whole, shape))
            self._check_whole(found := _compute_all([counted([read(piece)]) for piece in pieces]))
            yield from (made for _, made in found)
            return
        own = [(wanted.index(c.position), c.kind) for c in people]
        passes, lots = self.passes(columns), min(len(pieces), _LOTS)
        for number in range(passes):
            cut = _task(partial(_cut_partition, shape, own, number, passes, lots), nout=lots + 1)
            parts = [cut(piece) for piece in pieces]
            counts = [counted([part[i + 1] for part in parts]) for i in range(lots)]
            found = _compute_all([*(part[0] for part in parts), *counts])
            self._check_whole([(size, None) for size in found[: len(parts)]])
            yield from (made for _, made in found[len(parts) :])

    def _check_whole(self, found: list[tuple[int, Any]]) -> None:
        """Refuse results of a scan that saw another number of rows.

        ``found`` has that number as the first entry of each pair.
        """
        if sum(size for size, _ in found) != self.rows():
            raise ValueError("two scans of one source have not the same rows")


def _task(function: Any, nout: int | None = None) -> Any:
    """Return a function as a task of dask, which is run when it is computed.

    ``nout`` is the number of its results; None is a single one.
    """
    return import_module("dask").delayed(function, pure=False, nout=nout, traverse=False)


def _compute_all(tasks: list[Any]) -> list[Any]:
    return list(import_module("dask").compute(*tasks))


def _check_conversions(frame: Any) -> None:
    """Refuse a dask frame whose texts dask would convert from Python's to Arrow's.

    The conversion raises at a text with half a character, which would tell of a cell.
    """
    for node in frame.expr.find_operations(
        import_module("dask.dataframe.dask_expr.io.io").FromPandas
    ):
        dtypes = node.frame._data.dtypes if node.operand("pyarrow_strings_enabled") else {}
        for name, dtype in dtypes.items():
            if dtype == np.dtype(object) or getattr(dtype, "storage", "pyarrow") == "python":
                raise BadType(
                    f"column {name!r} of the pandas frame behind this dask frame is of dtype {dtype!r}, whose texts dask "
                    "converts when it computes, and a text that Arrow cannot hold ends that. Convert them first: "
                    f"dd.from_pandas(df.astype({{{name!r}: 'string[pyarrow]'}}), ...)."
                )


def _check_workers() -> None:
    """Run a small task on the cluster, and refuse workers that cannot run dpframe.

    This is done before anything is charged.
    """
    with suppress(Exception):
        if _compute_all([_task(_ready)()]) == [True]:
            return
    raise BadType(
        "the workers of this dask cluster cannot run dpframe. They need the Python and the packages of this one, dpframe and "
        "pyarrow among them."
    )


# What runs on workers: functions of plain values, which bring no session along --------------------------------------------


class _Shape(NamedTuple):
    """Columns of every partition with their types, which is sent to the workers."""

    names: list[str]
    schema: Any
    types: list[Any]
    dtypes: list[Any]

    def table(self, partition: Any) -> Any:
        """Return the rows of a partition as a table of Arrow; other dtypes than expected are an
        error."""
        pa: Any = import_module("pyarrow")
        if list(partition.dtypes) != self.dtypes:
            raise TypeError("a partition has other dtypes than its frame")
        texts = {
            i for i, dtype in enumerate(self.dtypes) if getattr(dtype, "storage", "") == "python"
        }
        if not texts:
            return pa.Table.from_pandas(partition, schema=self.schema, preserve_index=False)
        arrays = [
            _encode_texts(partition.iloc[:, i])
            if i in texts
            else pa.Array.from_pandas(partition.iloc[:, i], type=field.type)
            for i, field in enumerate(self.schema)
        ]
        return pa.table(arrays, names=self.names)


def _encode_texts(column: Any) -> Any:
    """Return a column of Python texts as an array of Arrow, by their bytes.

    A text with half a character has no UTF-8. It is kept as a value like any other.
    """
    pa: Any = import_module("pyarrow")
    cells = [None if cell is pd.NA else bytes_of_text(cell) for cell in column.array]
    return pa.array(cells, pa.large_binary()).view(pa.large_string())


def _ready() -> bool:
    import_module("pyarrow")
    return True


def _whole(shape: _Shape, partition: Any) -> Any:
    """Return all rows of a partition as a table of Arrow, in the types of the source."""
    return cast_batch(shape.table(partition), shape.names, shape.types)


def _cut_partition(
    shape: _Shape, at: list[tuple[int, Any]], number: int, passes: int, of: int, partition: Any
) -> tuple[Any, ...]:
    """Return the number of rows of a partition, then its rows in each share of the people.

    ``at`` has the positions and kinds of the columns that name a person. People are split into
    ``passes`` times ``of`` shares. The ``of`` shares of pass ``number`` are returned.
    """
    pa: Any = import_module("pyarrow")
    table = _whole(shape, partition)
    lot = assign_lots([prepare(series_of(table.column(i)), kind) for i, kind in at], passes * of)
    return table.num_rows, *(table.filter(pa.array(lot == number * of + i)) for i in range(of))


def _count_lot(
    task: Task, columns: dict[int, int], key: bytes, tables: list[Any]
) -> tuple[int, Any]:
    """Return the number of rows in some tables, and the result of a task on all of them.

    ``columns`` maps each position in the source to one in the tables. ``key`` seeds the hash of
    contribution limits.
    """
    pa: Any = import_module("pyarrow")
    parts: Any = import_module("dpframe.engines.parts")
    table = pa.concat_tables(tables)
    some: dict[int, Series] = {place: series_of(table.column(i)) for place, i in columns.items()}
    return table.num_rows, task(parts.engine_of(some, table.num_rows, key))


# The entry of the catalogue ----------------------------------------------------------------------


def _make_example(table: Any, folder: Path) -> Any:
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return import_module("dask.dataframe").from_pandas(frame, npartitions=3)


register_kind(
    TableKind(
        title="dask DataFrame",
        words="a dask DataFrame",
        types=("dask.DataFrame",),
        read=DaskSource,
        source=DaskSource,
        requires=("dask.dataframe", "pyarrow"),
        extra="dask",
        example=_make_example,
    )
)
