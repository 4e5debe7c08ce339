"""Engines: exact sums over data. They know nothing of prices, noise or ledgers; this is the one
place where one is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from dpframe._errors import BadType
from dpframe._statistics.engine import Engine
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.parts import PartsEngine
from dpframe.engines.sources import SourceFrame, data_source_of
from dpframe.engines.sql import SqlEngine


def _of_source(frame: SourceFrame, key: bytes) -> Engine:
    """Return the engine that answers questions about the rows of a data source.

    If the source has a database that counts its rows, the engine asks it by SQL. Otherwise the rows
    are read part by part. ``key`` seeds the hashes that choose in which groups a person counts.
    """
    source = data_source_of(frame)
    parts, counting = PartsEngine(source, key), source.counting()
    if counting is None:
        return parts
    database, relation, width = counting
    return SqlEngine(
        database, relation, source.schema, key, parts, passes=lambda: source.passes_of(width)
    )


# From the type of a table to what makes its engine, given the table and the key that decides whose
# groups count.
ENGINES: dict[type, Callable[[Any, bytes], Engine]] = {
    pd.DataFrame: PandasEngine,
    SourceFrame: _of_source,
}


def engine_for(table: object, key: bytes) -> Engine:
    """Return the engine that reads a table, by the table's type or its nearest base class.

    ``key`` seeds the hashes that choose in which groups a person counts. It raises `BadType` if no
    engine reads such a table.
    """
    for kind in type(table).__mro__:
        if kind in ENGINES:
            return ENGINES[kind](table, key)
    raise BadType(f"no engine reads a {type(table).__name__}.")
