"""A pandas frame as the evaluator sees it, for every test of the evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from dpframe._cells.columns import Vector, prepare
from dpframe._expr import Column, Expr
from dpframe._expr._parse import parse
from dpframe.engines.expressions import evaluate, predicate
from dpframe.engines.pandas import PandasEngine


class Frame:
    """A pandas frame as the evaluator sees it."""

    def __init__(self, frame: pd.DataFrame):
        self.frame = frame
        self.columns = {
            k: Column.of(i, k, frame.dtypes.iloc[i]) for i, k in enumerate(frame.columns)
        }
        self.vectors = {c.position: prepare(frame[k], c.kind) for k, c in self.columns.items()}

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def expr(self, text: str) -> Expr:
        return parse(text, self.columns, {}.__getitem__).expr

    def leaf(self, e: Any) -> Vector:
        """A column, or what an engine makes of the rows of one person."""
        return (
            self.vectors[e.position]
            if isinstance(e, Column)
            else PandasEngine(self.frame).table.column(e)
        )

    def vector(self, e: Expr, rows: slice | None = None) -> Vector:
        return evaluate(e, self.leaf, rows or slice(0, len(self.frame)))

    def cells(self, e: Expr | str, rows: slice | None = None) -> list[Any]:
        return unpack(self.vector(self.expr(e) if isinstance(e, str) else e, rows))

    def mask(self, e: Expr | str) -> list[bool]:
        condition = self.expr(e) if isinstance(e, str) else e
        rows = slice(0, len(self.frame))
        found = predicate(condition, self.leaf, rows)
        assert found.dtype == bool
        return found.tolist()


def unpack(v: Vector) -> list[Any]:
    values = (
        v.values.tolist()
        if v.categories is None
        else [v.categories[c] if c >= 0 else None for c in v.values]
    )
    if v.values.dtype.kind in "mM":
        values = list(v.values)
    null = v.nulls()
    return values if null is None else [None if n else x for x, n in zip(values, null, strict=True)]


@pytest.fixture(scope="session")
def framed() -> type[Frame]:
    """What a test calls to evaluate on a frame."""
    return Frame


@pytest.fixture(scope="session")
def column() -> Callable[..., Frame]:
    """The same for a frame of one column, x."""

    def make(values: Any, dtype: Any = None) -> Frame:
        return Frame(pd.DataFrame({"x": pd.Series(values, dtype=dtype)}))

    return make


@pytest.fixture(scope="session", name="unpack")
def unpack_fixture() -> Callable[[Vector], list[Any]]:
    """The cells of a vector, with None for null."""
    return unpack
