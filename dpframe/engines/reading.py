"""One frame as plain arrays: its columns, its people, and the values of expressions on its rows.

*Formal guarantee.* A value is a function of the cells of its own row, and of the other rows of the
same person where an expression says so. Nothing here adds anything up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.columns import Vector, prepare
from dpframe._cells.threads import split_blocks
from dpframe._expr import Column, Expr, Within
from dpframe._sizes import SIZES
from dpframe._statistics.base import Grid, to_grid
from dpframe.engines.expressions import Readable, evaluate, predicate
from dpframe.engines.people import People, people_of
from dpframe.engines.within.cache import WithinCache
from dpframe.engines.within.cells import PerPerson

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
LEAST_ROOM = 2**16  # bytes that may be kept of the smallest frame


@dataclass
class FrameReader:
    """The columns and the people of one frame, each read once and kept for later questions."""

    frame: pd.DataFrame
    key: bytes  # of the hashes by which a person's groups are chosen
    rows: int
    within: WithinCache | None = None  # values within a person, once some are asked for
    _columns: dict[int, Vector] = field(default_factory=dict)
    _people: dict[tuple[int, ...], People] = field(default_factory=dict)

    @cached_property
    def room(self) -> int:
        """The bytes that each cache may keep for the next question: about those of the frame."""
        return int(self.frame.memory_usage(index=True, deep=False).sum()) + LEAST_ROOM

    @overload
    def column(self, leaf: Column) -> Vector: ...
    @overload
    def column(self, leaf: Column | Within, rows: slice) -> Vector: ...
    @overload
    def column(self, leaf: Column | Within) -> Readable: ...
    def column(self, leaf: Column | Within, rows: slice | None = None) -> Readable:
        """Return the cells of a column in some rows or in all, read once and kept.

        ``leaf`` may also be a computation over each person's rows; then its results are returned.
        ``rows`` of None means all rows.
        """
        if isinstance(leaf, Within):
            within = self._find_within(leaf)
            return within if rows is None else within.rows(rows)
        if leaf.position not in self._columns:
            self._columns[leaf.position] = prepare(self.frame.iloc[:, leaf.position], leaf.kind)
        vector = self._columns[leaf.position]
        if rows is None or rows.stop - rows.start == len(vector.values):
            return vector
        return vector.rows(rows)

    def _find_within(self, leaf: Within) -> Vector | PerPerson:
        """Return the results of a computation over each person's rows, for each row of the frame.

        They are computed, or come from the cache.
        """
        if self.within is None:
            self.within = WithinCache(
                self.column, lambda people: self.find_people(people).codes, lambda: self.room
            )
        return self.within.compute(leaf)

    def find_people(self, columns: tuple[Column, ...]) -> People:
        """Return who each row belongs to, named by the cells of some columns.

        The people of the last columns are kept for the next question.
        """
        places = tuple(c.position for c in columns)
        if places not in self._people:
            self._people = {places: people_of([self.column(c) for c in columns], self.key)}
        return self._people[places]

    def find_strings(self, expr: Expr) -> Any:
        """Return the Arrow array of a column of strings, or None.

        It is None for any other expression, and for a column that was prepared already.
        """
        if not isinstance(expr, Column) or expr.kind != "text" or expr.position in self._columns:
            return None
        array = self.frame.iloc[:, expr.position].array
        if not isinstance(array.dtype, pd.StringDtype) or array.dtype.storage != "pyarrow":
            return None
        return array.__arrow_array__()

    def blocks(self, rows: slice | None = None) -> Iterator[slice]:
        """Return blocks of some rows, or of all rows of the frame."""
        return split_blocks(slice(0, self.rows) if rows is None else rows)

    def close(self) -> None:
        """Forget the frame, and everything that was read from it."""
        self.frame, self.rows = self.frame.iloc[:0], 0
        self._columns.clear()
        self._people.clear()
        if self.within is not None:
            self.within.clear()


@dataclass(slots=True)
class QuestionReader:
    """The values of expressions in one frame, for one question.

    What an expression makes of a whole dictionary of texts is kept until the question is answered.
    """

    table: FrameReader
    _memo: dict[Any, Any] = field(default_factory=dict)

    def evaluate(self, expr: Expr, rows: slice) -> Vector:
        """Return the value of an expression in each row of a slice."""
        if isinstance(expr, Column):  # the most frequent case: nothing to compute
            return self.table.column(expr, rows)
        return evaluate(expr, self.table.column, rows, self._memo)

    def evaluate_all(self, expr: Expr) -> Vector:
        """Return the value of an expression in each row of the frame."""
        return self.evaluate(expr, slice(0, self.table.rows))

    def select(self, condition: Expr, rows: slice) -> Bools:
        """Return a mask of the rows in a slice where a condition holds."""
        return predicate(condition, self.table.column, rows, self._memo)

    def select_all(self, condition: Expr) -> Bools:
        """Return a mask of all rows of the frame, True where a condition holds."""
        mask = np.empty(self.table.rows, dtype=bool)
        for rows in self.table.blocks():
            mask[rows] = self.select(condition, rows)
        return mask

    def find_nulls(self, expr: Expr) -> Bools:
        """Return a mask of all rows of the frame, True where an expression is null."""
        strings = self.table.find_strings(expr)
        if strings is not None:
            return np.asarray(strings.is_null())
        null = np.zeros(self.table.rows, dtype=bool)
        for rows in self.table.blocks():
            some = self.evaluate(expr, rows).nulls()
            null[rows] = False if some is None else some
        return null

    def read_columns(self, exprs: list[Expr]) -> None:
        """Read every column of some expressions now, before several threads use them at once."""
        for leaf in {leaf for expr in exprs for leaf in expr.columns()}:
            self.table.column(leaf)

    def put_steps(
        self, expr: Expr, grid: Grid | None, rows: slice, scratch: Floats, mask: Bools | None = None
    ) -> Floats:
        """Return the values of an expression as steps of a grid above its lower bound.

        They are those of the rows in a slice, written to the start of `scratch`. With a ``mask``
        only its rows are returned. A null is NaN. Without a grid each value is 0, so that only
        nulls differ.
        """
        vector = self.evaluate(expr, rows)
        if grid is not None:
            return put_steps(vector, grid, mask, scratch)
        null = vector.nulls()
        values = scratch[: len(vector)]
        values[:] = 0.0 if null is None else np.where(null, np.nan, 0.0)
        return values if mask is None else values[mask]

    def steps_by_block(self, expr: Expr, grid: Grid | None, mask: Bools | None) -> Iterator[Floats]:
        """Yield the values of all rows in a mask, block by block, as steps of a grid.

        Each block overwrites the array of the block before. A null is NaN.
        """
        scratch = np.empty(min(self.table.rows, SIZES.block))
        for rows in self.table.blocks():
            yield self.put_steps(expr, grid, rows, scratch, None if mask is None else mask[rows])


def put_steps(vector: Vector, grid: Grid, mask: Bools | None, scratch: Floats) -> Floats:
    """Return cells as steps of a grid above its lower bound, written to the start of `scratch`.

    A null is NaN. With a mask only its rows are returned.
    """
    values, null = vector.values, vector.null
    if mask is not None:
        values, null = values[mask], null if null is None else null[mask]
    a = scratch[: len(values)]
    if values.dtype != np.float64:
        np.copyto(a, values, casting="unsafe")
        values = a
    to_grid(values, a, grid)
    if null is not None:
        a[null] = np.nan
    return a
