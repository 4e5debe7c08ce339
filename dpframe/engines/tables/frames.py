"""LazyFrames of polars."""

from __future__ import annotations

import glob
import json
import os
import re
import warnings
from collections.abc import Hashable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

from dpframe._errors import BadValue, NotOffered
from dpframe._sizes import SIZES
from dpframe.engines.sources import Source, stats_of
from dpframe.engines.tables.queries import QUOTED, check_steady

# What a plan of polars shows of functions in Python; and of a choice that nobody made.
_CODE = re.compile(
    r"python|\bmap_groups\b|\.(?:reduce|fold|cum_fold|cum_reduce|rolling_map)\(", re.IGNORECASE
)
_PATHS = re.compile(r"\bSCAN \[[^\]\n]*\]")  # names of files, which may have any words
_ANY = re.compile(r"\bUNIQUE\[[^\]]*keep_strategy: Any\] BY Some\b")


class LazySource(Source):
    """A LazyFrame of polars, which is run anew for each scan."""

    words: tuple[str, ...]

    ordered = False

    def __init__(self, lazy: Any):
        pl: Any = import_module("polars")
        self._lazy, plan = lazy, None
        with suppress(Exception):  # of polars, whose texts are its own
            lazy.collect_schema()
            plan = lazy.explain(optimized=False)
        if plan is None:
            raise BadValue(
                "this LazyFrame has no schema: its plan names a column or a file that is not there, and lazy.collect_schema() "
                "says which. Nothing was read."
            )
        shown = QUOTED.sub(" ", _PATHS.sub("SCAN", plan))
        check_steady(shown)
        self._all = list(lazy.collect_schema().names())
        if "PythonDataset" in shown:  # whose plan names no table, and reads what is its newest version
            raise NotOffered(
                "this LazyFrame reads a table of Delta or Iceberg, and its plan does not tell which, nor at what version. Open "
                "the table itself: dpframe.open(deltalake.DeltaTable(path), ...), or the Table that pyiceberg's catalog loads."
            )
        if _ANY.search(shown):
            raise BadValue(
                "unique(..., keep='any') keeps other rows each time that this is read, and a question may read it more than "
                "once. Say which: unique(..., keep='first', maintain_order=True), or 'none'."
            )
        if _CODE.search(shown):
            self.words = (
                "Python code in a LazyFrame: each row it makes is of one person's own rows, and the same each time",
            )
        self._paths = self._scanned(plan)
        self._files = self._listed(self._paths)
        self.told = not (self.words or re.search(r"\bDF \[", plan))
        memory = f" {id(lazy)}" if re.search(r"\bDF \[", plan) else ""
        schema = pl.DataFrame(schema=lazy.collect_schema()).to_arrow().schema
        super().__init__(schema, f"polars {plan}{memory}", self._files or [plan + memory])

    def _scanned(self, plan: str) -> list[str]:
        """The paths that are in its plan, of which a long list is shown in its JSON alone."""
        if "SCAN [" not in plan:
            return []
        found: list[str] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            todo = [json.loads(self._lazy.serialize(format="json"))]
        while todo:
            one = todo.pop()
            if isinstance(one, dict):
                paths = one.get("Paths")
                found += (
                    [p["inner"] if isinstance(p, dict) else p for p in paths]
                    if isinstance(paths, list)
                    else []
                )
            todo += one.values() if isinstance(one, dict) else one if isinstance(one, list) else []
        found = [path.removeprefix("file://") for path in found]
        elsewhere = next((path for path in found if "://" in path), None)
        if elsewhere is not None:
            raise NotOffered(
                f"this LazyFrame reads {elsewhere!r}, which is not on this machine: nothing would tell that it has changed. Open "
                "a pyarrow dataset of it, dpframe.open(dataset, ...), or a copy."
            )
        return found

    @staticmethod
    def _listed(paths: list[str]) -> list[str]:
        """The files that are now where these paths, patterns and folders look."""
        known = {f for path in paths for f in glob.glob(path, recursive=True, include_hidden=True) or [path]}
        folders = [os.path.join(glob.escape(path), "**") for path in known if os.path.isdir(path)]
        known |= {
            file for folder in folders for file in glob.glob(folder, recursive=True, include_hidden=True)
        }
        return sorted(file for file in known if not os.path.isdir(file))

    def _scan(self, names: list[str]) -> Iterator[Any]:
        pl: Any = import_module("polars")
        some = self._lazy.select([pl.nth(self._all.index(name)) for name in names])  # a name may be a pattern
        for frame in some.collect_batches(chunk_size=SIZES.batch, maintain_order=True):
            yield frame.to_arrow()

    def version(self) -> Hashable:
        return self._listed(self._paths) == self._files, stats_of(self._files)
