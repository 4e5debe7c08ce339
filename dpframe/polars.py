"""``import dpframe.polars`` gives polars frames and lazy frames the accessor ``.dp``: `open` opens a session on them.

Answers are pandas objects. A polars frame is not changed in place, so that ``frame.dp`` stays the session of the rows that it had
when it was opened; another frame made of it is another table.
"""

import polars

from dpframe._frame.sources import OfTable

__all__: list[str] = []

for register in (polars.api.register_dataframe_namespace, polars.api.register_lazyframe_namespace):
    register("dp")(OfTable)


def __dir__() -> list[str]:
    return list(__all__)
