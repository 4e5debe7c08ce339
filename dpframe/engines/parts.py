"""Exact sums over a source: its batches one after the other by the engine for frames, and their
integers added.

*Formal guarantee.* The integers are those of the whole table in one frame, in whatever batches,
order or number of passes it is read. All primitives but distinct values are sums over parts: over
any, where a row is a person, and over parts of whole people where columns name them. Of distinct
values the sets are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe import _pandas
from dpframe._cells.columns import Vector, objects
from dpframe._errors import DataError
from dpframe._expr import Column, Expr
from dpframe._groups.keys import ROW_CEILING
from dpframe._groups.unit import Unit
from dpframe._sizes import SIZES
from dpframe._statistics.base import Distincts, Integers, Persons, Primitive
from dpframe._statistics.engine import PEOPLE, RowSlice, Scope, Sketches, Texts
from dpframe._types import Series
from dpframe.engines.fingerprints import Sketching
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.people import text_of_scalar
from dpframe.engines.sources import PeoplePart, Source, Task

_PAIR = 100  # bytes that a pair of a group and a value takes while sets are joined


class PartsEngine:
    """Engine for a source that is too large to be held as a frame.

    It runs the engine for pandas frames on parts of the rows, and adds the integers. With people a
    part has all rows of a share of them.
    """

    def __init__(self, source: Source, key: bytes = b""):
        self._source, self._key = source, key

    def __len__(self) -> int:
        """Return the number of rows; refuse more than exact sums allow for."""
        rows = self._source.rows()
        if rows > ROW_CEILING:
            raise DataError(
                f"more than {ROW_CEILING} rows are not supported: exact sums would not fit."
            )
        return rows

    def reduce(
        self, scope: Scope, primitives: set[Primitive], unit: Unit
    ) -> dict[Primitive, Integers]:
        """Return the integer sums that a question needs, by primitive and group.

        The sums of all parts of the table are added. ``scope`` has the condition and the grouping,
        and ``unit`` the columns and limits of a person.
        """
        sums = {p for p in primitives if p.additive}
        found: dict[Primitive, Integers] = {
            p: self._distinct(p, scope, unit) for p in primitives if isinstance(p, Distincts)
        }
        if not sums:
            return found
        totals: dict[Primitive, Integers] = {}
        for one in self._each(_Reduce(scope, frozenset(sums), unit), (scope, *sums), unit):
            totals = {p: totals[p] + a for p, a in one.items()} if totals else one
        return found | totals

    def occurring(
        self,
        by: Sequence[Expr],
        where: Expr | None,
        unit: Unit,
        primitives: frozenset[Primitive] | set[Primitive] = PEOPLE,
    ) -> tuple[Texts, dict[Primitive, Integers]]:
        """Return the group keys that occur in the data, as texts, and the sums of each key.

        Only keys for which some person counts are returned. They are in the order that one frame of
        all rows gives.

        ``by`` are the grouping expressions, and ``where`` is the condition on rows.
        """
        asked = {*primitives, Persons()}
        places: dict[tuple[str, ...], int] = {}
        found: list[tuple[NDArray[np.int64], dict[Primitive, Integers]]] = []
        task = _Occurring(tuple(by), where, unit, frozenset(asked))
        for texts, sums in self._each(task, (tuple(by), where, *asked), unit):
            at = np.array([places.setdefault(text, len(places)) for text in texts], dtype=np.int64)
            found.append((at, {p: sums[p] for p in asked}))
        order = sorted(places, key=lambda texts: tuple(map(place_of_text, texts)))
        rank = np.empty(len(order), dtype=np.int64)
        rank[[places[text] for text in order]] = np.arange(len(order))
        totals = {
            p: np.zeros((*a.shape[:-1], len(order)), dtype=np.int64) for p, a in found[0][1].items()
        }
        for at, sums in found:
            for p, total in totals.items():
                total[..., rank[at]] += sums[p]
        return order, totals

    def slices(self, exprs: Sequence[Expr], where: Expr | None, unit: Unit) -> Iterator[RowSlice]:
        """Yield all rows in slices, for methods that need rows and not sums.

        Only the columns that are needed are loaded into memory.
        """
        columns = columns_of((tuple(exprs), where, unit.people))
        yield from self._frame(columns, None).slices(exprs, where, unit)

    def people(self, unit: Unit) -> int:
        """Return the number of people who have a row."""
        return sum(self._each(_People(unit), (), unit))

    def sketches(self, unit: Unit, secret: bytes) -> Sketches:
        """Return the sketches by which a ledger recognizes these people and this table.

        They are made of the smallest keyed hashes over all batches. ``secret`` is the key of the
        hashes.
        """
        places = [c.position for c in unit.people]
        everything = list(range(len(self._source.names)))
        people, table = Sketching(secret), Sketching(secret)
        for frame in self._source.batches(places or everything):
            people.add(people.hashes(frame))
        if not unit.people:
            return Sketches(people.sketch(), people.known_by())
        for frame in self._source.batches(everything):
            some = np.isin(people.hashes(frame.iloc[:, places]), people.smallest)
            table.add(table.hashes(frame[some]))
        return Sketches(people.sketch(), table.known_by())

    def close(self) -> None:
        """Close the source."""
        self._source.close()

    # Parts ------------------------------------------------------------------------------------------------------

    def _each(self, task: Task, question: object, unit: Unit) -> Iterator[Any]:
        """Yield the results of a task for each part of the table.

        The task runs where the rows are, if the source can do that, and here otherwise. It runs
        once on no rows for an empty table.

        ``question`` is any structure of expressions; its columns are read.
        """
        columns = columns_of((question, unit.people))
        elsewhere = self._source.each(task, columns, unit.people, self._key) if columns else None
        if elsewhere is None:
            yield from map(task, self._parts(question, unit))
        elif len(self):
            yield from elsewhere
        else:
            yield task(self._empty())

    def _parts(self, question: object, unit: Unit) -> Iterator[PandasEngine]:
        """Yield an engine for each part of the table, with the columns that a question needs.

        There is at least one engine, even of no rows.
        """
        columns = columns_of((question, unit.people))
        if not columns:  # only the number of rows is needed
            yield self._engine({}, len(self))
        elif unit.people:
            passes = self._source.passes(columns)
            for i in range(passes):
                yield self._frame(columns, PeoplePart(i, passes, unit.people))
        elif not len(self):
            yield self._empty()
        else:
            for frame in self._source.batches(columns):
                yield self._engine(_by_place(columns, frame), len(frame))

    def _frame(self, columns: Sequence[int], part: PeoplePart | None) -> PandasEngine:
        """Return one engine of all rows, or of a share of the people."""
        if not columns:
            return self._engine({}, len(self))
        frames = list(self._source.batches(columns, part))
        if not frames:
            return self._empty()
        whole = _pandas.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
        del frames
        return self._engine(_by_place(columns, whole), len(whole))

    def _empty(self) -> PandasEngine:
        """Return an engine of no rows, with all columns of the source."""
        schema = self._source.schema
        return self._engine({i: schema.iloc[:, i] for i in range(schema.shape[1])}, 0)

    def _engine(self, columns: dict[int, Series], rows: int) -> PandasEngine:
        return engine_of(columns, rows, self._key)

    # Distinct values --------------------------------------------------------------------------------------------

    def _distinct(self, p: Distincts, scope: Scope, unit: Unit) -> Integers:
        """Return the number of distinct values of each group.

        The values of all parts are joined into sets. If these exceed the memory, values are split
        into twice the shares, by hash, and counted share by share.
        """
        shares = 1
        while True:
            found = np.zeros(scope.groups, dtype=np.int64)
            for share in range(shares):
                known = self._values(p, scope, unit, share, shares)
                if known is None:
                    break
                found += np.bincount(known["group"].to_numpy(), minlength=scope.groups)
            else:
                return found
            shares *= 2  # too many values: count smaller shares

    def _values(
        self, p: Distincts, scope: Scope, unit: Unit, share: int, shares: int
    ) -> pd.DataFrame | None:
        """Return the distinct pairs of a group and a value, a row each; None if they exceed the
        memory.

        ``p`` has the expression of the values. Only values whose hash is in share number ``share``
        of ``shares`` are returned. None tells the caller to try more shares.
        """
        most = max(self._source.memory // _PAIR, SIZES.set_pairs)
        known = pd.DataFrame(
            {"group": np.zeros(0, np.int64), "kind": np.zeros(0, np.int8), "value": []}
        )
        for cells in self._each(_Distinct(p.expr, scope, unit), (p, scope), unit):
            one = pd.DataFrame(cells)
            if shares > 1:
                hashes = pd.util.hash_array(one["value"].to_numpy(), categorize=False)
                one = one[(hashes >> np.uint64(20)) % np.uint64(shares) == share]
            known = (
                one
                if not len(known)
                else _pandas.concat([known, one], ignore_index=True).drop_duplicates()
            )
            if len(known) > most and shares < SIZES.set_shares:
                return None
        return known


# What is made of a part: values that can be sent to where it is -----------------------------------------------------------


@dataclass(frozen=True)
class _Reduce:
    scope: Scope
    primitives: frozenset[Primitive]
    unit: Unit

    def __call__(self, part: PandasEngine) -> dict[Primitive, Integers]:
        return part.reduce(self.scope, set(self.primitives), self.unit)


@dataclass(frozen=True)
class _Occurring:
    by: tuple[Expr, ...]
    where: Expr | None
    unit: Unit
    primitives: frozenset[Primitive]

    def __call__(self, part: PandasEngine) -> tuple[Texts, dict[Primitive, Integers]]:
        return part.occurring(self.by, self.where, self.unit, self.primitives)


@dataclass(frozen=True)
class _People:
    unit: Unit

    def __call__(self, part: PandasEngine) -> int:
        return part.people(self.unit)


@dataclass(frozen=True)
class _Distinct:
    expr: Expr
    scope: Scope
    unit: Unit

    def __call__(self, part: PandasEngine) -> dict[str, Any]:
        groups, rows, values = part.find_distinct(self.expr, self.scope, self.unit)
        return {"group": groups, **_cells(values, rows)}


def engine_of(columns: dict[int, Series], rows: int, key: bytes) -> PandasEngine:
    """Return an engine for pandas frames over some columns, by their positions in the whole table.

    ``rows`` is their length, and ``key`` seeds the hash of contribution limits.
    """
    return PandasEngine(cast("pd.DataFrame", SelectedColumns(columns, rows)), key)


class SelectedColumns:
    """Some columns of a frame, at the positions that they have among all columns.

    It stands for the whole frame where only these columns were read.
    """

    def __init__(self, columns: dict[int, Series], rows: int):
        self._columns, self._rows = columns, rows

    def __len__(self) -> int:
        return self._rows

    @property
    def iloc(self) -> SelectedColumns:
        """Object itself, whose index is all rows of the column at a position, or no rows."""
        return self

    def __getitem__(self, key: object) -> Any:
        if isinstance(key, tuple):
            return self._columns[key[1]]
        return SelectedColumns({}, 0)

    def memory_usage(self, index: bool, deep: bool) -> NDArray[np.int64]:
        """Return the bytes of each column."""
        return np.array([c.nbytes for c in self._columns.values()] or [0])


def _by_place(columns: Sequence[int], frame: pd.DataFrame) -> dict[int, Series]:
    return {place: frame.iloc[:, i] for i, place in enumerate(columns)}


def columns_of(thing: object) -> list[int]:
    """Return the sorted positions of all columns that occur in a structure of expressions."""
    return sorted({c.position for c in _columns(thing)})


def _columns(thing: object) -> Iterator[Column]:
    """Yield the columns in an expression, in a tuple or list, or in the fields of a dataclass."""
    if isinstance(thing, Expr):
        yield from thing.columns()
    elif isinstance(thing, tuple | list):
        for one in thing:
            yield from _columns(one)
    elif is_dataclass(thing):
        for field in fields(thing):
            yield from _columns(getattr(thing, field.name))


def place_of_text(text: str) -> int | float | str:
    """Return the value by which a group key in text form is sorted.

    The first letter tells its type: n for numbers, t for times, p for periods. Other keys are
    sorted as texts.
    """
    kind, rest = text[0], text[1:]
    if kind == "n":
        return int(rest) if rest.lstrip("-").isdigit() else float(rest)
    if kind == "p":
        return int(rest.split()[1])
    return int(rest.split()[0]) if kind == "t" else text


def _cells(values: Vector, rows: NDArray[np.int64]) -> dict[str, Any]:
    """Return the values in some rows in a form that is the same in every batch.

    Values of different batches can then be compared. Equal numbers are one value, as integers or as
    doubles.

    ``kind`` tells values apart that have the same bits: integers, doubles and large unsigned
    integers.
    """
    cells = values.values[rows]
    if values.categories is not None:
        texts = objects(
            text_of_scalar(c).encode("utf-8", "surrogatepass") for c in values.categories
        )
        return {
            "kind": 0,
            "value": pd.Series(texts[cells], dtype=object),
        }  # so that pandas infers no type
    if cells.dtype.kind != "f":
        large = cells > np.uint64(2**63 - 1) if cells.dtype == np.uint64 else False
        return {"kind": np.where(large, np.int8(2), np.int8(0)), "value": cells.astype(np.int64)}
    cells = cells.astype(np.float64)
    whole = (np.abs(cells) < 2.0**63) & (np.trunc(cells) == cells)
    value = cells.view(np.int64).copy()
    value[whole] = cells[whole].astype(np.int64)
    return {"kind": np.where(whole, np.int8(0), np.int8(1)), "value": value}
