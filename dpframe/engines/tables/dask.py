"""DataFrames of dask."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from dpframe._errors import BadType
from dpframe.engines.sources import Source


class DaskSource(Source):
    """A DataFrame of dask, of which one partition after the other is computed."""

    def __init__(self, frame: Any):
        pa: Any = import_module("pyarrow")
        self._frame_of_dask, meta = frame, frame._meta
        for name, dtype in meta.dtypes.items():
            unknown = isinstance(dtype, pd.CategoricalDtype) and "__UNKNOWN_CATEGORIES__" in dtype.categories
            if not isinstance(name, str) or dtype == np.dtype(object) or unknown:
                raise BadType(
                    f"column {name!r} of this dask frame is of dtype {dtype}, whose cells may be anything. Give it one before "
                    f"you open it: frame.astype({{{name!r}: 'string[pyarrow]'}}); columns are named by texts."
                )
        self._arrow = pa.Schema.from_pandas(meta, preserve_index=False)
        super().__init__(self._arrow, f"dask {frame._name}", [("dask", frame._name)])

    def _scan(self, names: list[str]) -> Iterator[Any]:
        pa: Any = import_module("pyarrow")
        some = self._frame_of_dask[names]
        schema, dtypes = pa.schema([self._arrow.field(n) for n in names]), list(some._meta.dtypes)
        for i in range(some.npartitions):
            part = some.partitions[i].compute()
            if list(part.dtypes) != dtypes:
                raise TypeError("a partition has other dtypes than its frame")
            yield pa.Table.from_pandas(part, schema=schema, preserve_index=False)

    def version(self) -> Hashable:
        return None  # a graph: what it reads is in nobody's sight but its own
