"""Parquet files that duckdb counts: by a connection of its own, which knows these files and nothing
else.

*Formal guarantee.* Which files and which columns are counted there is a function of what stands at
the end of each file (its columns, their types, who wrote it and how it is packed), and of no cell.
A column of texts is, where its writer lets no text through that is not UTF-8: duckdb ends with an
error at the first one that is not, and there being an error would tell of a cell.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from dpframe.engines.sources import differ_without_case, quote_name
from dpframe.engines.sql.databases import DuckDatabase

VIEW = "dpframe_files"
WIDTH = 100  # bytes, about, that duckdb takes for a row of a person
_LEAST = 2**28  # bytes that duckdb needs at least
# How the name of a writer begins whose texts are UTF-8.
_WRITERS = ("parquet-cpp-arrow", "polars", "duckdb", "parquet-rs")
_PACKED = {"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"}
# By the physical type of a column, and what the file says that it stands for.
_PLAIN = {
    **dict.fromkeys(
        (("INT32", "NONE"), ("INT64", "NONE"), ("INT32", "INT"), ("INT64", "INT")), "number"
    ),
    **dict.fromkeys((("FLOAT", "NONE"), ("DOUBLE", "NONE"), ("BOOLEAN", "NONE")), "number"),
    ("BYTE_ARRAY", "STRING"): "text",
}


class FilesDatabase(DuckDatabase):
    """Connection to a duckdb in memory that sees some Parquet files, and nothing else.

    What does not fit into memory goes to a temporary folder, which is removed with the connection.
    """

    def __init__(self, files: Sequence[str], columns: Sequence[str], memory: int):
        """Open a duckdb with a view of these columns of the files.

        ``memory`` is the number of bytes that duckdb may use.
        """
        duckdb: Any = import_module("duckdb")
        folder = tempfile.mkdtemp(prefix="dpframe-")  # readable by this user alone
        self._folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        settings = {
            "memory_limit": f"{max(memory, _LEAST)}B",
            "temp_directory": folder,
            "preserve_insertion_order": "false",
            "enable_external_file_cache": "false",
            "autoload_known_extensions": "false",
            "autoinstall_known_extensions": "false",
            "python_enable_replacements": "false",
        }
        connection = duckdb.connect(":memory:", config=settings)
        super().__init__(connection)
        names = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        read = f"read_parquet([{names}], hive_partitioning = false, union_by_name = false)"
        connection.execute(
            f"CREATE VIEW {VIEW} AS SELECT {', '.join(map(quote_name, columns))} FROM {read}"
        )

    def close(self) -> None:
        """Free its memory and remove its folder."""
        self._connection.close()
        self._folder()


def connect_to_files(
    files: Sequence[str], columns: Sequence[str], names: Sequence[str], memory: int
) -> FilesDatabase | None:
    """Return a duckdb that computes sums over these columns of files; None if there can be none.

    It needs duckdb, file names without pattern characters, and columns. ``names`` are all columns,
    which must differ even without their case.
    """
    odd = any(
        char in file for file in files for char in "*?[]{}"
    )  # duckdb would take the name for a pattern
    if find_spec("duckdb") is None or not columns or odd or not differ_without_case(names):
        return None
    with suppress(Exception):  # another version, or no folder to write to
        return FilesDatabase(files, columns, memory)
    return None


def plain_columns(metas: Sequence[Any]) -> list[str]:
    """Return the names of the columns that duckdb reads exactly as Arrow does.

    ``metas`` are the metadata of the files. A column must have one plain type in all of them and a
    known compression.
    """
    first = metas[0]
    if not all(meta.schema.equals(first.schema) for meta in metas[1:]):
        return []
    texts = all(str(meta.created_by).casefold().startswith(_WRITERS) for meta in metas)
    packed = {
        meta.row_group(i).column(j).compression
        for meta in metas
        for i in range(meta.num_row_groups)
        for j in range(meta.num_columns)
    }
    if not packed <= _PACKED:
        return []
    found = []
    for i in range(len(first.schema)):
        column = first.schema.column(i)
        kind = _PLAIN.get((column.physical_type, column.logical_type.type))
        flat = column.path == column.name and column.max_repetition_level == 0
        if flat and (kind == "number" or (kind == "text" and texts)):
            found.append(column.name)
    return found
