"""``import dpframe.dask`` gives dask DataFrames the accessor ``.dp``: `open` opens a session.
Answers are pandas objects."""

from importlib import import_module
from typing import Any

from dpframe._frame.sources import OfTable

__all__: list[str] = []

_extensions: Any = import_module("dask.dataframe.extensions")
_extensions.register_dataframe_accessor("dp")(OfTable)


def __dir__() -> list[str]:
    return list(__all__)
