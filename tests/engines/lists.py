"""An engine in plain Python: rows are lists, numbers are rational, and every sum is its definition, written out.

It reads what these tests ask for and refuses the rest. Whose groups count, and which of a person's values, it decides by a hash
of its own, so that other engines agree with it where nobody reaches a limit.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction as F
from typing import Any

import numpy as np
import pandas as pd

from dpframe import NotOffered
from dpframe import _expr as ex
from dpframe._cells.columns import plain, prepare
from dpframe._cells.texts import order_of, text_of
from dpframe._expr import Column
from dpframe._groups.keys import BinBy, KeyBy
from dpframe._groups.unit import Unit
from dpframe._statistics.base import (
    MAGNITUDES,
    Bids,
    Distincts,
    Leaves,
    Magnitudes,
    Persons,
    Powers,
    Products,
    Rows,
    Spread,
    Trues,
)
from dpframe._statistics.engine import RowSlice, Sketches

COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
Row = list[Any]


class ListEngine:
    """Reads a frame into lists, once."""

    def __init__(self, frame: pd.DataFrame, key: bytes = b""):
        cells = [[plain(c) for c in frame.iloc[:, i].tolist()] for i in range(frame.shape[1])]
        self._rows: list[Row] = [list(row) for row in zip(*cells, strict=True)]
        self._frame, self._key = frame, key

    def __len__(self) -> int:
        return len(self._rows)

    def reduce(self, scope: Any, primitives: Any, unit: Unit) -> dict[Any, Any]:
        return {
            p: self._sums(p, scope.where, self._places(scope), scope.groups, unit)
            for p in primitives
        }

    def occurring(
        self, by: Any, where: Any, unit: Unit, primitives: Any = frozenset()
    ) -> tuple[Any, Any]:
        written = [tuple(text_of(value(e, row)) for e in by) for row in self._rows]
        known = {t for t in written if None not in t}
        texts = sorted(known, key=lambda t: [order_of(one) for one in t])
        at = {text: i for i, text in enumerate(texts)}
        places = [at.get(text) for text in written]
        sums = {
            p: self._sums(p, where, places, len(texts), unit, texts)
            for p in {*primitives, Persons()}
        }
        some = np.flatnonzero(sums[Persons()])
        return [texts[i] for i in some], {p: found[..., some] for p, found in sums.items()}

    def slices(self, exprs: Sequence[Any], where: Any, unit: Unit) -> Iterator[RowSlice]:
        mask = (
            None
            if where is None
            else np.array([value(where, row) is True for row in self._rows], dtype=bool)
        )
        people = None
        if unit.people:
            codes: dict[Any, int] = {}
            people = np.array(
                [
                    -1 if (who := person(row, unit)) is None else codes.setdefault(who, len(codes))
                    for row in self._rows
                ],
                dtype=np.int64,
            )
        for e in exprs:
            if not isinstance(e, Column):
                raise NotOffered("slices of columns alone.")
        vectors = [prepare(self._frame.iloc[:, e.position], e.kind) for e in exprs]
        yield RowSlice(vectors, mask, people, len(self))

    def people(self, unit: Unit) -> int:
        return len({person(row, unit) for row in self._rows} - {None})

    def sketches(self, unit: Unit, secret: bytes) -> Sketches:
        def keyed(things: Any) -> list[str]:
            return sorted(
                {
                    hashlib.blake2b(repr(t).encode(), key=secret, digest_size=8).hexdigest()
                    for t in things
                }
            )[:256]

        table = keyed(self._rows)
        people = keyed(person(row, unit) for row in self._rows) if unit.people else table
        return Sketches(people if len(people) >= 16 else [], table)

    def close(self) -> None:
        self._rows, self._frame = [], self._frame.iloc[:0]

    # Groups and people --------------------------------------------------------------------------------------

    def _places(self, scope: Any) -> list[int | None]:
        """The group of each row; None for no group."""
        found: list[int | None] = [0] * len(self._rows)
        for by in scope.by:
            find, size = finder(by), len(by.index)
            for i, row in enumerate(self._rows):
                inner, outer = find(value(by.expr, row)), found[i]
                found[i] = None if outer is None or inner is None else outer * size + inner
        return found

    def _sums(
        self,
        p: Any,
        where: Any,
        places: list[int | None],
        groups: int,
        unit: Unit,
        labels: Any = None,
    ) -> Any:
        """One primitive of rows in these groups."""
        asked = [
            i for i, row in enumerate(self._rows) if where is None or value(where, row) is True
        ]
        if isinstance(p, Bids | Magnitudes):
            return self._one_group(p, asked, places, groups, unit)
        asked = [i for i in asked if places[i] is not None]
        if isinstance(p, Distincts):
            return self._distinct(p, asked, places, groups, unit)
        if not unit.people:
            pairs = {(i, places[i]): [self._rows[i]] for i in asked}
            return total(
                ((g, rows, None) for (_, g), rows in pairs.items()), p, groups, 1, self._coin
            )
        limit, most = unit.with_limits(unit.rows or 1, unit.groups or 1).reach(groups)
        own: dict[Any, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for i in asked:
            who = person(self._rows[i], unit)
            if who is not None:
                own[who][places[i]].append(self._rows[i])  # type: ignore[index]
        if isinstance(p, Spread):
            found = np.zeros((p.bins, 1), dtype=np.int64)
            for mine in own.values():
                size = len(mine) if p.of == "groups" else max(map(len, mine.values()))
                found[min((size - 1).bit_length(), p.bins - 1), 0] += 1
            return found
        kept = []
        for who, mine in own.items():
            ranked = sorted(
                mine, key=lambda g, who=who: self._coin(who, g if labels is None else labels[g])
            )
            kept += [(g, mine[g], who) for g in ranked[:most]]
        return total(kept, p, groups, limit, self._coin)

    def _one_group(
        self, p: Any, asked: list[int], places: list[int | None], groups: int, unit: Unit
    ) -> Any:
        """Bids and magnitudes: bins that are no groups."""
        bins = MAGNITUDES if isinstance(p, Magnitudes) else groups
        own: dict[Any, list[int]] = defaultdict(list)
        for i in asked:
            x, who = value(p.expr, self._rows[i]), person(self._rows[i], unit) if unit.people else i
            if x is None or who is None:
                continue
            if isinstance(p, Magnitudes):
                own[who].append(magnitude(x))
            elif unit.people or places[i] is not None:
                # A bid that reaches no price is one all the same.
                own[who].append(-1 if places[i] is None else places[i])  # type: ignore[arg-type]
        found = np.zeros(bins, dtype=np.int64)
        for who, values in own.items():
            if isinstance(p, Magnitudes):
                values = sorted(values)[self._coin(who) % len(values) :][:1]
            elif unit.people:
                values = middles(
                    sorted(values),
                    unit.with_limits(unit.rows or 1, 1).reach(None)[0],
                    self._coin(who),
                )
            for at in values:
                if at >= 0:
                    found[at] += 1
        return found[:, None] if isinstance(p, Magnitudes) else found

    def _distinct(
        self, p: Any, asked: list[int], places: list[int | None], groups: int, unit: Unit
    ) -> Any:
        named: dict[Any, set[Any]] = defaultdict(set)
        for i in asked:
            x, who = value(p.expr, self._rows[i]), person(self._rows[i], unit) if unit.people else i
            if x is not None and who is not None:
                named[who].add((places[i], x))
        most = unit.groups or 0 if unit.people else 1
        pairs = {
            pair
            for who, mine in named.items()
            for pair in sorted(mine, key=lambda m, w=who: self._coin(w, m))[:most]
        }
        found = np.zeros(groups, dtype=np.int64)
        for g, _ in pairs:
            found[g] += 1
        return found

    def _coin(self, *things: Any) -> int:
        return int.from_bytes(
            hashlib.blake2b(repr(things).encode(), key=self._key, digest_size=8).digest(), "big"
        )


def value(e: Any, row: Row) -> Any:
    """The value of an expression in a row; None for null."""
    if isinstance(e, Column):
        return row[e.position]
    if isinstance(e, ex.Constant):
        return e.value
    if isinstance(e, ex.Compare):
        left, right = value(e.left, row), value(e.right, row)
        return e.op == "!=" if left is None or right is None else bool(COMPARE[e.op](left, right))
    if isinstance(e, ex.And):
        return value(e.left, row) is True and value(e.right, row) is True
    if isinstance(e, ex.Or):
        return value(e.left, row) is True or value(e.right, row) is True
    if isinstance(e, ex.Not):
        return value(e.x, row) is not True
    if isinstance(e, ex.IsNull):
        return value(e.x, row) is None
    if isinstance(e, ex.Arithmetic) and e.op in ARITHMETIC:
        left, right = value(e.left, row), value(e.right, row)
        found = (
            None if left is None or right is None else ARITHMETIC[e.op](float(left), float(right))
        )
        return None if found is None or math.isnan(found) else found
    raise NotOffered(f"{type(e).__name__} is not read from lists.")


def finder(by: Any) -> Callable[[Any], int | None]:
    """The place of a value among the groups."""
    if isinstance(by, KeyBy):
        listed = [None if i == by.keys.null else k for i, k in enumerate(by.keys.index.tolist())]
        return lambda x: next(
            (i for i, k in enumerate(listed) if (x is None) == (k is None) and x == k), None
        )
    if isinstance(by, BinBy):
        edges = by.edges

        def bin_of(x: Any) -> int | None:
            if x is None or not edges[0] <= x <= edges[-1]:
                return None
            return len(edges) - 2 if x == edges[-1] else sum(e <= x for e in edges) - 1

        return bin_of
    raise NotOffered(f"{type(by).__name__} is not grouped by in lists.")


def person(row: Row, unit: Unit) -> Any:
    cells = tuple(row[c.position] for c in unit.people)
    return None if None in cells else cells


def step(x: Any, grid: Any) -> int:
    """The place of a value on its grid, from the lower bound."""
    lower, upper = grid.bounds
    clipped = F(min(max(float(x), lower), upper))
    return round(clipped * F(2) ** grid.exponent) - round(F(lower) * F(2) ** grid.exponent)


def total(pairs: Any, p: Any, groups: int, limit: int, coin: Callable[..., int]) -> Any:
    """The sums of all pairs of a person and a group that count, each by its own rows."""
    if isinstance(p, Leaves):
        found = np.zeros((p.points, groups), dtype=np.int64)
        for g, rows, who in pairs:
            at = sorted(step(x, p.grid) for row in rows if (x := value(p.expr, row)) is not None)
            for a in middles(at, limit, coin(who, g)) if who is not None else at:
                found[a, g] += 1
        return found
    shape = p.degree + 1 if isinstance(p, Powers) else 4 if isinstance(p, Products) else 1
    sums = [[0] * groups for _ in range(shape)]
    for g, rows, _ in pairs:
        for i, part in enumerate(bounded(p, rows, limit)):
            sums[i][g] += part
    found = np.array(sums, dtype=np.int64)
    return found if isinstance(p, Powers | Products) else found[0]


def bounded(p: Any, rows: list[Row], limit: int) -> list[int]:
    """What the rows of one person add to the sums of one group."""

    def scaled(t: int, values: list[Any]) -> int:
        c = len(values)
        return t if c <= limit else math.floor(F(t * limit, c) + F(1, 2))

    if isinstance(p, Rows):
        return [min(len(rows), limit)]
    if isinstance(p, Persons):
        return [1]
    if isinstance(p, Trues):
        return [min(sum(value(p.expr, row) is True for row in rows), limit)]
    values = [value(p.expr, row) for row in rows]
    if isinstance(p, Powers):
        there = [x for x in values if x is not None]
        n = min(len(there), limit)
        if p.grid is None:
            return [n]
        a, w = [step(x, p.grid) for x in there], p.grid.width
        one = scaled(sum(a), a)
        two = min(max(scaled(sum(x * x for x in a), a), 0, 2 * w * one - w * w * n), w * one)
        return [n, one, two][: p.degree + 1]
    assert isinstance(p, Products)
    both = [
        (x, y)
        for x, row in zip(values, rows, strict=True)
        if x is not None and (y := value(p.other, row)) is not None
    ]
    a, b = [step(x, p.grid) for x, _ in both], [step(y, p.other_grid) for _, y in both]
    v, w, n = p.grid.width, p.other_grid.width, min(len(both), limit)
    one, two = scaled(sum(a), a), scaled(sum(b), b)
    mixed = scaled(sum(x * y for x, y in zip(a, b, strict=True)), a)
    return [n, one, two, min(max(mixed, 0, w * one + v * two - v * w * n), w * one, v * two)]


def middles(values: list[int], limit: int, coin: int) -> list[int]:
    """The middle of each of so many equal parts of values in order; between two of them by turns, a coin says which is first."""
    k = len(values)
    if k <= limit:
        return values
    ranks = [divmod((2 * j + 1) * k, 2 * limit) for j in range(limit)]
    return [values[rank - (not rest and (j + coin) % 2)] for j, (rank, rest) in enumerate(ranks)]


def magnitude(x: Any) -> int:
    """0 in the middle of the bins; (2**(j-1), 2**j] above it, and mirror images below."""
    least, most, middle = -20, 40, MAGNITUDES // 2
    size = abs(float(x))
    steps = next((j - least for j in range(least, most) if size <= 2.0**j), most - least)
    return middle + (steps if x >= 0 else -steps)
