"""Exact sums over a pandas frame: primitives in, integers out. Knows nothing of prices or noise.

Rows are handled in blocks that stay in the processor's cache. Within a block every number is a whole number
below 2**31 (values) or 2**30 (squares) in a double, and a block has at most 2**21 rows, so each partial sum
stays within 2**53 and is exact in any order; across blocks they are added as int64.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._expr import Column, Expr
from dpframe._query import By, KeyBy, Query
from dpframe._stats import Grid, Integers, Powers, Primitive, Rows, Trues
from dpframe.engines._buckets import bin_buckets, key_buckets
from dpframe.engines._columns import Vector, prepare
from dpframe.engines._evaluate import evaluate, predicate

_BLOCK = 2**16
_LARGEST_BLOCK = 2**21

Buckets = NDArray[Any]  # 0: no group; g + 1: group g


class _Block(NamedTuple):
    """Some rows: which of them are asked about, their buckets, and room to work in."""

    rows: slice
    mask: NDArray[np.bool_] | None
    buckets: NDArray[np.intp] | None
    size: int  # rows that are asked about
    counts: NDArray[np.int64]  # the same by bucket


class PandasEngine:
    """Reads one frame, which nobody else may write to: the snapshot that a session keeps."""

    def __init__(self, frame: pd.DataFrame):
        self._frame = frame
        self._columns: dict[int, Vector] = {}
        self._buckets: OrderedDict[By, Buckets] = OrderedDict()
        self._room = int(frame.memory_usage(index=True, deep=False).sum()) + 2**16

    def column(self, leaf: Column) -> Vector:
        """A root column as numpy arrays, normalised once."""
        vector = self._columns.get(leaf.position)
        if vector is None:
            vector = prepare(self._frame.iloc[:, leaf.position], leaf.kind)
            self._columns[leaf.position] = vector
        return vector

    def reduce(self, query: Query, primitives: set[Primitive]) -> dict[Primitive, Integers]:
        """The primitive sums of each group, as int64."""
        groups = query.groups
        totals: dict[Primitive, Integers] = {}
        for p in primitives:
            shape = (p.degree + 1, groups) if isinstance(p, Powers) else (groups,)
            totals[p] = np.zeros(shape, dtype=np.int64)
        scratch = np.empty(self._block_rows(groups))
        for block in self._blocks(query, groups):
            for p, total in totals.items():
                if isinstance(p, Rows):
                    total += block.counts
                elif isinstance(p, Trues):
                    total += self._trues(p.expr, block, groups)
                else:
                    self._add_powers(p, block, total, scratch)
        return totals

    def _block_rows(self, groups: int) -> int:
        return min(_LARGEST_BLOCK, max(_BLOCK, 4 * groups))

    def _blocks(self, query: Query, groups: int) -> Iterator[_Block]:
        n, step = len(self._frame), self._block_rows(groups)
        buckets = self._grouping(query.by)
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            mask = None if query.where is None else predicate(query.where, self.column, rows)
            size = rows.stop - rows.start if mask is None else int(np.count_nonzero(mask))
            if buckets is None:
                yield _Block(rows, mask, None, size, np.array([size]))
                continue
            some = buckets[rows] if mask is None else buckets[rows][mask]
            wide = some.astype(np.intp)
            yield _Block(rows, mask, wide, size, np.bincount(wide, minlength=groups + 1)[1:])

    def _trues(self, expr: Expr, block: _Block, groups: int) -> Integers:
        true = predicate(expr, self.column, block.rows)
        if block.mask is not None:
            true = true[block.mask]
        if block.buckets is None:
            return np.array([np.count_nonzero(true)])
        return np.bincount(block.buckets[true], minlength=groups + 1)[1:]

    def _add_powers(self, p: Powers, block: _Block, total: Integers, scratch: NDArray[np.float64]) -> None:
        vector = evaluate(p.expr, self.column, block.rows)
        if p.grid is None:
            self._add_count(vector, block, total)
            return
        values, null = vector.values, vector.null
        if block.mask is not None:
            values = values[block.mask]
            null = null[block.mask] if null is not None else None
        a = scratch[: len(values)]
        np.copyto(a, values, casting="unsafe")
        _to_grid(a, p.grid)
        top = float(a.sum())
        buckets, counts = block.buckets, block.counts
        if null is not None or top != top:  # a NaN anywhere makes the sum one
            valid = ~np.isnan(a) if null is None else ~(null | np.isnan(a))
            a = a[valid]
            if buckets is not None:
                buckets = buckets[valid]
                counts = np.bincount(buckets, minlength=total.shape[1] + 1)[1:]
            else:
                counts, top = np.array([len(a)]), float(a.sum())
        total[0] += counts
        if buckets is None:
            total[1] += int(top)
            if p.degree > 1:
                total[2] += int(a @ a)
            return
        for power in range(1, p.degree + 1):
            if power > 1:
                a = a * a
            sums = np.bincount(buckets, weights=a, minlength=total.shape[1] + 1)[1:]
            total[power] += sums.astype(np.int64)

    def _add_count(self, vector: Vector, block: _Block, total: Integers) -> None:
        null = vector.nulls()
        if null is None:
            total[0] += block.counts
            return
        valid = ~null if block.mask is None else ~null[block.mask]
        if block.buckets is None:
            total[0] += int(np.count_nonzero(valid))
        else:
            total[0] += np.bincount(block.buckets[valid], minlength=total.shape[1] + 1)[1:]

    # Groups -------------------------------------------------------------------------------------------------

    def _grouping(self, by: tuple[By, ...]) -> Buckets | None:
        """The bucket of each row: 0, or 1 + its place among all combinations of the groups."""
        if not by:
            return None
        combined = self._level(by[0])
        for level in by[1:]:
            inner, size = self._level(level), len(level.index)
            wide = (combined.astype(np.int64) - 1) * size + inner
            combined = np.where((combined == 0) | (inner == 0), 0, wide)
        return combined

    def _level(self, by: By) -> Buckets:
        known = self._buckets.get(by)
        if known is not None:
            self._buckets.move_to_end(by)
            return known
        found = self._find(by)
        self._buckets[by] = found
        # Never more than the frame's own size, the oldest first.
        while len(self._buckets) > 1 and sum(b.nbytes for b in self._buckets.values()) > self._room:
            self._buckets.popitem(last=False)
        return found

    def _find(self, by: By) -> Buckets:
        one: Callable[[Vector], Buckets] = (
            key_buckets(by.keys, by.expr) if isinstance(by, KeyBy) else bin_buckets(by.edges)
        )
        n = len(self._frame)
        small = np.min_scalar_type(len(by.index))
        found = np.empty(n, dtype=small if small != np.uint64 else np.int64)
        for start in range(0, n, _LARGEST_BLOCK):
            rows = slice(start, min(start + _LARGEST_BLOCK, n))
            found[rows] = one(evaluate(by.expr, self.column, rows))
        return found


def _to_grid(a: NDArray[np.float64], grid: Grid) -> None:
    """In place: clip, scale by a power of two, round, and count from the lower bound. NaN stays NaN."""
    lower, upper = grid.bounds
    np.maximum(a, lower, out=a)
    np.minimum(a, upper, out=a)
    if grid.exponent:
        a *= 2.0**grid.exponent
    np.rint(a, out=a)
    if grid.low:
        a -= float(grid.low)
