"""``import dpframe.polars`` gives polars frames and lazy frames the accessor ``.dp``: `open` opens
a session on them.

Answers are pandas objects. A polars frame is not changed in place, so that ``frame.dp`` stays the
session of the rows that it had when it was opened; another frame made of it is another table.
"""

from importlib import import_module
from typing import Any

from dpframe._frame.sources import OfTable

__all__: list[str] = []

_api: Any = import_module("polars").api
for _register in (_api.register_dataframe_namespace, _api.register_lazyframe_namespace):
    _register("dp")(OfTable)


def __dir__() -> list[str]:
    return list(__all__)
