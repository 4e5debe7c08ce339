"""Tables of Delta and Iceberg: files by a version, which is fixed when they are opened and is read
ever after.

What is written to such a table later is another version, and is not seen here.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

from dpframe._errors import BadType, BadValue
from dpframe.engines.sources import ArrowTables, Source, stats_of
from dpframe.engines.steadiness import NO_QUERY, Answers, HazardAnswer
from dpframe.engines.tables.arrow import scan_dataset
from dpframe.engines.tables.kinds import TableKind, register_kind

_ANSWERS = NO_QUERY | {
    "writes": HazardAnswer.WATCHED,
    "in place": HazardAnswer.WATCHED,
    "elsewhere": HazardAnswer.WATCHED,
}


def _place(uri: str) -> str:
    """Return the name by which a file is known, however it was opened: a real path, or a URI."""
    return (
        os.path.realpath(unquote(uri.removeprefix("file://")))
        if uri.startswith(("file:", "/"))
        else uri
    )


def _local_times(files: Iterable[str]) -> Hashable:
    """Return sizes, times and inodes of those files that are on this machine."""
    return stats_of(file for file in files if os.path.isfile(file))


class DeltaSource(Source):
    """Source of a DeltaTable of deltalake, at the version that it has when it is opened."""

    answers: ClassVar[Answers] = _ANSWERS

    def __init__(self, table: Any):
        """Fix the present version of a Delta table, and list its files.

        A table that deltalake cannot read as a dataset is refused.
        """
        self._dataset: Any = None
        with suppress(Exception):  # the error names files, and is not shown
            self._dataset = table.to_pyarrow_dataset()
        if self._dataset is None:
            raise BadType(
                "deltalake does not read this table: it may have deletion vectors, or another feature that its reader does not "
                "know. Write the rows to Parquet files, or to a Delta table without them, and open those."
            )
        self._files: list[str] = sorted(self._dataset.files)
        root, uri = _place(table.table_uri), f"delta {table.table_uri} version {table.version()}"
        self._names = [os.path.join(root, unquote(f)) for f in self._files]
        super().__init__(self._dataset.schema, uri, self._names)

    def _scan(self, names: list[str]) -> ArrowTables:
        yield from scan_dataset(self._dataset, names)

    def version(self) -> Hashable:
        """Return the sizes and times of the files of this version; raise if one is gone.

        The vacuum command of Delta may remove them.
        """
        found = self._dataset.filesystem.get_file_info(self._files)
        sizes = tuple((f.size, f.mtime_ns) for f in found)
        if any(size is None for size, _ in sizes):
            raise FileNotFoundError("a file of this version is gone")
        return sizes, _local_times(self._names)


class IcebergSource(Source):
    """Source of a Table of pyiceberg, at the snapshot that it has when it is opened."""

    answers: ClassVar[Answers] = _ANSWERS

    ordered = False

    def __init__(self, table: Any):
        """Fix the present snapshot of an Iceberg table, and list its files.

        A table without a snapshot, or with a dot in the name of a column, is refused.
        """
        snapshot = table.current_snapshot()
        if snapshot is None:
            raise BadValue(
                "this Iceberg table has no snapshot, since nothing was written to it. Open it when it has rows."
            )
        nested = next((n for n in table.schema().as_arrow().names if "." in n), None)
        if nested is not None:
            raise BadType(
                f"column {nested!r} has a dot in its name, by which Iceberg means a part of a column. Rename it."
            )
        self._table, self._snapshot = table, snapshot.snapshot_id
        self._files = sorted(task.file.file_path for task in self._scanning(("*",)).plan_files())
        place = f"iceberg {table.metadata.table_uuid} snapshot {self._snapshot}"
        schema = self._scanning(("*",)).to_arrow_batch_reader().schema
        super().__init__(schema, place, map(_place, self._files))

    def _scanning(self, names: tuple[str, ...]) -> Any:
        return self._table.scan(snapshot_id=self._snapshot, selected_fields=names)

    def _scan(self, names: list[str]) -> ArrowTables:
        pa: Any = import_module("pyarrow")
        for batch in self._scanning(tuple(names)).to_arrow_batch_reader():
            yield pa.table(batch.columns, names=batch.schema.names)

    def version(self) -> Hashable:
        """Return the names, sizes and times of the files of this snapshot, which expiry may
        remove."""
        listed = sorted(task.file.file_path for task in self._scanning(("*",)).plan_files())
        sizes = tuple((file, len(self._table.io.new_input(file))) for file in listed)
        return sizes, _local_times(map(_place, listed))


# The entries of the catalogue --------------------------------------------------------------------


def _make_example_delta(table: Any, folder: Path) -> Any:
    """Write an Arrow table to a Delta table in three appends, for the conformance tests."""
    lake: Any = import_module("deltalake")
    size = -(-table.num_rows // 3)
    for i in range(3):
        lake.write_deltalake(str(folder / "t"), table.slice(i * size, size), mode="append")
    return lake.DeltaTable(str(folder / "t"))


def _make_example_iceberg(table: Any, folder: Path) -> Any:
    """Write an Arrow table to an Iceberg table in three appends, for the conformance tests."""
    catalogs: Any = import_module("pyiceberg.catalog")
    catalog = catalogs.load_catalog(
        "example", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}"
    )
    catalog.create_namespace("n")
    made = catalog.create_table("n.t", schema=table.schema)
    size = -(-table.num_rows // 3)
    for i in range(3):
        made.append(table.slice(i * size, size))
    return made


register_kind(
    TableKind(
        title="Delta table",
        words="a deltalake table, at its present version",
        types=("deltalake.DeltaTable",),
        read=DeltaSource,
        source=DeltaSource,
        requires=("deltalake", "pyarrow"),
        extra="lake",
        example=_make_example_delta,
    )
)
register_kind(
    TableKind(
        title="Iceberg table",
        words="a pyiceberg table, at its present snapshot",
        types=("pyiceberg.Table",),
        read=IcebergSource,
        source=IcebergSource,
        requires=("pyiceberg", "pyarrow"),
        extra="lake",
        example=_make_example_iceberg,
    )
)
