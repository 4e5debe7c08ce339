"""LazyFrames of polars."""

from __future__ import annotations

import glob
import os
from collections.abc import Hashable
from contextlib import suppress
from importlib import import_module
from typing import Any, ClassVar

from dpframe._errors import BadValue, NotOffered
from dpframe._sizes import SIZES
from dpframe.engines.sources import ArrowTables, Source, stats_of
from dpframe.engines.steadiness import Answers, FoundHazard, HazardAnswer, judge
from dpframe.engines.tables import polars_plans as plans
from dpframe.engines.tables.arrow import (
    ParquetSource,
    TableSource,
    files_of,
    write_example_files,
)
from dpframe.engines.tables.kinds import TableKind, register_kind
from dpframe.engines.tables.queries import check_sql, find_across, find_sums


class LazySource(Source):
    """Source of a LazyFrame of polars, which is run anew for each scan."""

    answers: ClassVar[Answers] = {
        **dict.fromkeys(("chance", "first", "sums", "elsewhere"), HazardAnswer.REFUSED),
        **dict.fromkeys(("clock", "transaction", "meaning"), HazardAnswer.ABSENT),
        **dict.fromkeys(("code", "across"), HazardAnswer.DECLARED),
        **dict.fromkeys(("writes", "in place"), HazardAnswer.WATCHED),
    }
    ordered = False

    def __init__(self, lazy: Any):
        """Keep a LazyFrame, and find the hazards and the files of its plan.

        A plan that may return other rows each time is refused. So is a file on another machine.
        """
        pl: Any = import_module("polars")
        self._lazy, text = lazy, None
        with suppress(Exception):  # the error of polars is not shown
            lazy.collect_schema()
            text = lazy.explain(optimized=False)
        if text is None:
            raise BadValue(
                "this LazyFrame has no schema: its plan names a column or a file that is not there, and lazy.collect_schema() "
                "says which. Nothing was read."
            )
        plan = plans.plan_of(lazy)
        self._all = list(lazy.collect_schema().names())
        if plans.reads_lake(plan):  # its plan names no table and no version
            raise NotOffered(
                "this LazyFrame reads a table of Delta or Iceberg, and its plan does not tell which, nor at what version. Open "
                "the table itself: dpframe.open(deltalake.DeltaTable(path), ...), or the Table that pyiceberg's catalog loads."
            )
        found = list(plans.hazards_in(plan))
        for query in plans.queries_in(plan):
            check_sql(query)
            found += [*find_sums(query), *find_across(query)]
        self.declared: tuple[FoundHazard, ...] = judge(self.answers, found)
        self._paths = self._find_paths(plan)
        self._files = self._list_files(self._paths)
        in_memory = plans.holds_rows(plan)
        self.place_tells_all: bool = not (self.declared or in_memory)
        memory = f" {id(lazy)}" if in_memory else ""
        schema = pl.DataFrame(schema=lazy.collect_schema()).to_arrow().schema
        super().__init__(schema, f"polars {text}{memory}", self._files or [text + memory])
        self._parquet_source = self._read_here(plan)

    def _read_here(self, plan: object) -> ParquetSource | None:
        """Return a source that reads the Parquet files of a plan itself; None if the plan does
        more.

        polars would raise at a text that is not UTF-8, which would tell of a cell.
        """
        pl: Any = import_module("polars")
        with suppress(Exception):
            files = ParquetSource(files_of(self._files))
            alike = (files.names, files.types) == (self.names, self.types)
            if alike and plans.plan_of(pl.scan_parquet(self._paths)) == plan:
                return files
        return None

    @staticmethod
    def _find_paths(plan: object) -> list[str]:
        """Return all paths in a plan; refuse one on another machine."""
        found = plans.paths_in(plan)
        elsewhere = next((path for path in found if "://" in path), None)
        if elsewhere is not None:
            raise NotOffered(
                f"this LazyFrame reads {elsewhere!r}, which is not on this machine: nothing would tell that it has changed. Open "
                "a pyarrow dataset of it, dpframe.open(dataset, ...), or a copy."
            )
        return found

    @staticmethod
    def _list_files(paths: list[str]) -> list[str]:
        """Return the files that are at these paths, patterns and folders now, sorted."""
        known = {
            f
            for path in paths
            for f in glob.glob(path, recursive=True, include_hidden=True) or [path]
        }
        folders = [os.path.join(glob.escape(path), "**") for path in known if os.path.isdir(path)]
        known |= {
            file
            for folder in folders
            for file in glob.glob(folder, recursive=True, include_hidden=True)
        }
        return sorted(file for file in known if not os.path.isdir(file))

    def _scan(self, names: list[str]) -> ArrowTables:
        """Yield tables of Arrow with the columns ``names``, run by polars or read from Parquet
        files."""
        if self._parquet_source is not None:
            yield from self._parquet_source._scan(names)
            return
        pl: Any = import_module("polars")
        some = self._lazy.select(
            [pl.nth(self._all.index(name)) for name in names]
        )  # a name may be a pattern
        for frame in some.collect_batches(chunk_size=SIZES.batch, maintain_order=True):
            yield frame.to_arrow()

    def version(self) -> Hashable:
        return self._list_files(self._paths) == self._files, stats_of(self._files)


# The entries of the catalogue --------------------------------------------------------------------

register_kind(
    TableKind(
        title="polars DataFrame",
        words="a polars DataFrame",
        types=("polars.DataFrame",),
        read=lambda frame: TableSource(frame.to_arrow()),
        source=TableSource,
        requires=("polars", "pyarrow"),
        extra="polars",
        example=lambda table, folder: import_module("polars").from_arrow(table),
    )
)
register_kind(
    TableKind(
        title="polars LazyFrame",
        words="a polars LazyFrame",
        types=("polars.LazyFrame",),
        read=LazySource,
        source=LazySource,
        requires=("polars", "pyarrow"),
        extra="polars",
        example=lambda table, folder: import_module("polars").scan_parquet(
            write_example_files(table, folder)
        ),
    )
)
