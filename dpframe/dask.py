"""``import dpframe.dask`` gives dask DataFrames the accessor ``.dp``: `open` opens a session. Answers are pandas objects."""

from dask.dataframe.extensions import register_dataframe_accessor

from dpframe._frame.sources import OfTable

__all__: list[str] = []

register_dataframe_accessor("dp")(OfTable)


def __dir__() -> list[str]:
    return list(__all__)
