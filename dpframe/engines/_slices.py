"""Rows for questions that are no sums: slices of them, as a question sees them behind the door."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.columns import Vector
from dpframe._expr import Expr
from dpframe._groups.unit import Unit
from dpframe.engines.expressions import evaluate, predicate
from dpframe.engines.pandas import PandasEngine


class RowSlice(NamedTuple):
    """Some rows: vectors, which are asked about, codes of people (-1: nobody), and how many rows the frame has."""

    vectors: list[Vector]
    mask: NDArray[np.bool_] | None
    people: NDArray[np.int64] | None
    total: int


def row_slices(
    engine: PandasEngine, exprs: Sequence[Expr], where: Expr | None, unit: Unit
) -> Iterator[RowSlice]:
    """Each slice in turn; what is made of whole dictionaries is made once."""
    memo: dict[Any, Any] = {}
    people = engine._whose(unit.people).codes if unit.people else None
    for rows in engine._slices():
        mask = None if where is None else predicate(where, engine.column, rows, memo)
        vectors = [evaluate(e, engine.column, rows, memo) for e in exprs]
        yield RowSlice(vectors, mask, None if people is None else people[rows], len(engine._frame))
