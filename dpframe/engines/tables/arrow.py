"""Parquet files, and what Arrow has: tables in memory, and datasets of files anywhere."""

from __future__ import annotations

import glob
import os
from collections.abc import Hashable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from dpframe._errors import BadType, BadValue, NotOffered
from dpframe._sizes import SIZES
from dpframe.engines.sources import ArrowTables, Counting, Source, is_text, plain_type, stats_of
from dpframe.engines.steadiness import NO_QUERY, Answers, HazardAnswer
from dpframe.engines.tables.kinds import TableKind, register_kind
from dpframe.engines.tables.parquet import (
    VIEW,
    WIDTH,
    FilesDatabase,
    connect_to_files,
    plain_columns,
)


class ParquetSource(Source):
    """Source of Parquet files on this machine, whose list is fixed when they are opened."""

    answers: ClassVar[Answers] = NO_QUERY | {
        "writes": HazardAnswer.WATCHED,
        "in place": HazardAnswer.WATCHED,
        "elsewhere": HazardAnswer.REFUSED,
    }
    _database: FilesDatabase | None = None

    def __init__(self, files: list[str]):
        """Read the schemas of the files, and refuse files that differ in columns or types."""
        pq: Any = import_module("pyarrow.parquet")
        self.files = files
        schemas, rows, metas = [], 0, []
        for file in files:
            try:
                meta = pq.read_metadata(file)
                schemas.append(meta.schema.to_arrow_schema())
                rows += meta.num_rows
                metas.append(meta)
            except Exception:
                meta = None
            if meta is None:
                raise BadValue(
                    f"{file!r} cannot be read: it is no Parquet file, or a part of one. A table of SQLite or duckdb is "
                    "dpframe.sql('sqlite:///FILE', 'table'), and a CSV file a relation: dpframe.open(duckdb.read_csv(file), ...)."
                )
        _check_alike(files, schemas)
        # Arrow checks the texts of a dictionary as it reads one, and raises at one that is not
        # UTF-8.
        self._dictionaries = {f.name for f in schemas[0] if is_dictionary_of_texts(f.type)}
        super().__init__(schemas[0], "parquet " + "\n".join(files), files)
        self._rows, self._plain_columns = rows, plain_columns(metas)

    def counting(self) -> Counting | None:
        """Return a duckdb in memory that computes sums over the files; None if duckdb is not
        installed."""
        self._database = connect_to_files(self.files, self._plain_columns, self.names, self.memory)
        return None if self._database is None else Counting(self._database, VIEW, WIDTH)

    def close(self) -> None:
        if self._database is not None:
            self._database.close()

    def _scan(self, names: list[str]) -> ArrowTables:
        """Yield tables of Arrow with the columns ``names``, file by file.

        Dictionaries of texts are read as plain texts, since Arrow raises at a dictionary's text
        that is not UTF-8.
        """
        pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
        texts = [n for n in names if n in self._dictionaries]
        others = [n for n in names if n not in self._dictionaries]
        for name in self.files:
            pieces = [_pieces(pq.ParquetFile(name, pre_buffer=False), others)] if others else []
            if texts:
                plain = pq.ParquetFile(name, pre_buffer=False, metadata=_without_dictionaries(name))
                pieces.append(_pieces(plain, texts))
            for some in zip(*pieces, strict=True):
                if len(some) == 1:
                    yield some[0]
                else:
                    columns = {n: piece.column(n) for piece in some for n in piece.schema.names}
                    yield pa.table([columns[n] for n in names], names=names)

    def version(self) -> Hashable:
        return stats_of(self.files)


def is_dictionary_of_texts(dtype: object) -> bool:
    """Return whether an Arrow type is a dictionary of texts."""
    types: Any = import_module("pyarrow.types")
    return bool(types.is_dictionary(dtype) and is_text(plain_type(dtype)))


def _pieces(file: Any, names: list[str]) -> ArrowTables:
    """Yield the columns ``names`` of a Parquet file, one row group at a time.

    A reader that reads ahead would hold many row groups. Only very large ones are cut, which costs
    some time.
    """
    with file:
        for i in range(file.num_row_groups):
            if file.metadata.row_group(i).num_rows <= 8 * SIZES.batch:
                yield file.read_row_group(i, columns=names)
            else:
                yield from file.iter_batches(SIZES.batch, row_groups=[i], columns=names)


def _without_dictionaries(name: str) -> Any:
    """Return the metadata of a Parquet file without Arrow's note that texts were dictionaries.

    ``name`` is the path. A reader with this metadata reads the columns as plain texts.
    """
    pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
    found = pq.read_metadata(name)
    schema = found.schema.to_arrow_schema()
    for i, one in enumerate(schema):
        if is_dictionary_of_texts(one.type):
            schema = schema.set(i, one.with_type(pa.string()))
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema, store_schema=False).close()
    made = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    made.append_row_groups(found)
    return made


def scan_dataset(dataset: Any, names: list[str]) -> ArrowTables:
    """Yield the columns ``names`` of an Arrow dataset in batches.

    Few batches are in memory at a time.
    """
    yield from dataset.to_batches(
        columns=names, batch_size=max(1, SIZES.batch // 4), batch_readahead=4, fragment_readahead=1
    )


def _check_alike(files: list[str], schemas: list[Any]) -> None:
    """Refuse files whose columns or types differ from those of the first file.

    ``schemas`` are the schemas of the files, which are public.
    """
    first = schemas[0]
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        if schema.names != first.names:
            odd = sorted({*schema.names} ^ {*first.names})
            what = (
                f"the same columns: {', '.join(odd[:5])}"
                if odd
                else "their columns in the same order"
            )
            raise BadValue(
                f"{files[0]!r} and {file!r} have not {what}. Write the files alike, or open a query that reads them by name: "
                "duckdb.sql(\"FROM read_parquet('folder/*.parquet', union_by_name = true)\")."
            )
        for name in first.names:
            one, other = first.field(name).type, schema.field(name).type
            if one != other:
                raise BadValue(
                    f"column {name!r} is {one} in {files[0]!r} and {other} in {file!r}. Write the files with one type."
                )


def files_of(paths: Sequence[str]) -> list[str]:
    """Return the files that patterns, folders and names stand for, or refuse one that finds no
    file.

    The result has real paths, sorted and without repetition. A folder stands for the Parquet files
    in it.
    """
    found: list[str] = []
    for path in paths:
        path = os.path.expanduser(path)
        if "://" in path:
            raise NotOffered(
                f"{path!r} is not on this machine as a file. A table of a database is dpframe.sql(url, 'table'); of others "
                "open a pyarrow dataset or a duckdb relation."
            )
        if os.path.isdir(path):
            path = os.path.join(glob.escape(path), "**", "*.parquet")
        some = (
            [path]
            if os.path.isfile(path)
            else [f for f in glob.glob(path, recursive=True) if os.path.isfile(f)]
        )
        if not some:
            raise BadValue(f"no file is at {path!r}.")
        found += some
    return sorted({os.path.realpath(file) for file in found})


class TableSource(Source):
    """Source of a table of Arrow in memory."""

    answers: ClassVar[Answers] = NO_QUERY | {
        "writes": HazardAnswer.ABSENT,
        # Others may write to buffers, and to files that are mapped into memory.
        "in place": HazardAnswer.UNSEEN,
        "elsewhere": HazardAnswer.ABSENT,
    }

    def __init__(self, table: Any):
        self._table: Any = table
        super().__init__(table.schema, f"memory {id(table)}", _addresses(table))
        self._rows = table.num_rows

    def _scan(self, names: list[str]) -> ArrowTables:
        yield from self._table.select(names).to_batches()

    def version(self) -> Hashable:
        return None  # Arrow's tables do not change

    def close(self) -> None:
        self._table = self._table.slice(0, 0)
        vars(self).pop("schema", None)  # with the addresses of its columns nothing is known again


def _addresses(table: Any) -> list[Hashable]:
    """Return the memory addresses of the columns of an Arrow table.

    Two tables that share rows have an address in common, which a ledger can recognize.
    """
    found: list[Hashable] = []
    for column in table.columns:
        for chunk in column.chunks:
            buffers = [b.address for b in chunk.buffers() if b is not None and b.size]
            found += [("memory", buffers[-1], chunk.offset)] if buffers and len(chunk) else []
    return found


class DatasetSource(Source):
    """Source of a dataset of Arrow, whose files are fixed when it is opened."""

    answers: ClassVar[Answers] = NO_QUERY | {
        "writes": HazardAnswer.WATCHED,
        "in place": HazardAnswer.WATCHED,
        "elsewhere": HazardAnswer.WATCHED,
    }

    def __init__(self, dataset: Any):
        """Keep a dataset and the list of its files.

        A dataset without files is refused. So is a column whose reader would raise at a text that
        is not UTF-8.
        """
        self._dataset = dataset
        self._files: list[str] = sorted(getattr(dataset, "files", []))
        if not self._files:
            raise BadType(
                f"a {type(dataset).__name__} has no files that could be known again. Open its table: dpframe.open("
                "dataset.to_table(), ...)."
            )
        odd = next(
            (
                f
                for f in dataset.schema
                if is_dictionary_of_texts(f.type) and _is_read_checked(dataset, f.type)
            ),
            None,
        )
        if odd is not None:
            raise BadType(
                f"column {odd.name!r} of this dataset is {odd.type}, whose texts Arrow checks as it reads them: one that is not "
                "UTF-8 would be an error. Open the files by their names, dpframe.open('folder/*.parquet', ...), or write the "
                "column as plain texts."
            )
        self._local = type(dataset.filesystem).__name__ == "LocalFileSystem"
        names = [os.path.realpath(f) for f in self._files] if self._local else self._files
        kind = type(dataset.filesystem).__name__
        super().__init__(dataset.schema, f"dataset {kind} " + "\n".join(names), names)

    def _scan(self, names: list[str]) -> ArrowTables:
        yield from scan_dataset(self._dataset, names)

    def version(self) -> Hashable:
        if self._local:
            return stats_of(self._files)
        found = self._dataset.filesystem.get_file_info(self._files)
        return tuple((f.size, f.mtime_ns) for f in found)


def _is_read_checked(dataset: Any, dtype: Any) -> bool:
    """Return whether Arrow raises at a text that is not UTF-8 when it reads a dictionary of this
    type.

    It converts a dictionary in Parquet if its index is not of 32 bits, and checks its texts then.
    """
    return (
        getattr(dataset.format, "default_extname", "") == "parquet"
        and dtype.index_type.bit_width != 32
    )


def read_files(paths: Any) -> Source:
    """Return the source of Parquet files, given by one name, pattern or folder, or by a list."""
    listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not listed or not all(isinstance(p, str | os.PathLike) for p in listed):
        raise BadType("a list of files is a list of their names.")
    return ParquetSource(files_of([os.fspath(p) for p in listed]))


# The entries of the catalogue --------------------------------------------------------------------


def write_example_files(table: Any, folder: Path) -> str:
    """Write the rows of an Arrow table to three Parquet files, and return a pattern of their names.

    The conformance tests use it. Row groups are small, so that several are read.
    """
    pq: Any = import_module("pyarrow.parquet")
    size = -(-table.num_rows // 3)
    for i in range(3):
        pq.write_table(table.slice(i * size, size), folder / f"{i}.parquet", row_group_size=4)
    return str(folder / "*.parquet")


def _make_example_dataset(table: object, folder: Path) -> Any:
    write_example_files(table, folder)
    return import_module("pyarrow.dataset").dataset(str(folder))


register_kind(
    TableKind(
        title="Parquet files",
        words="a name or a pattern of Parquet files, or a list of names",
        types=("builtins.str", "builtins.list", "pathlib.Path", "pathlib.PurePath"),
        read=read_files,
        source=ParquetSource,
        requires=("pyarrow",),
        extra="duckdb",
        example=write_example_files,
    )
)
register_kind(
    TableKind(
        title="pyarrow table",
        words="a pyarrow table",
        types=("pyarrow.Table",),
        read=TableSource,
        source=TableSource,
        requires=("pyarrow",),
        extra="duckdb",
        example=lambda table, folder: table,
    )
)
register_kind(
    TableKind(
        title="pyarrow dataset",
        words="a pyarrow dataset",
        types=("pyarrow.Dataset",),
        read=DatasetSource,
        source=DatasetSource,
        requires=("pyarrow",),
        extra="duckdb",
        example=_make_example_dataset,
    )
)
