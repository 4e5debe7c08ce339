"""Steps of calculations that go across the rows of a column: picks, sums and products of rows."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

from dpframe._types import Array, Json, Places

Value: TypeAlias = Any  # a number, or an array of numbers
Kind = Literal["pick", "sum", "product"]


@dataclass(frozen=True, slots=True, eq=False)
class RowStep:
    """New rows made of the rows of one column.

    A pick has a row for each entry of ``order``, and -1 is a missing row. Sums and products have a
    row for each range of positions in ``order``. A row with a negative start is missing. With
    ``alone`` the result is one number, and not a column.
    """

    kind: Kind
    order: Places
    starts: Places
    stops: Places
    size: int  # the number of rows of the column
    alone: bool = False

    @property
    def rows(self) -> int:
        """The number of new rows."""
        return len(self.order) if self.kind == "pick" else len(self.starts)

    @property
    def missing(self) -> Array:
        """Which new rows are missing."""
        return np.asarray((self.order if self.kind == "pick" else self.starts) < 0)

    @property
    def lengths(self) -> Places:
        """The number of rows behind each new row."""
        if self.kind == "pick":
            return (self.order >= 0).astype(np.intp)
        return np.where(self.missing, 0, self.stops - self.starts)

    def list_members(self) -> tuple[Places, Places]:
        """Return the pairs of a new row and an old one that it is made of, as two arrays."""
        if self.kind == "pick":
            rows = np.flatnonzero(self.order >= 0)
            return rows, self.order[rows]
        lengths = self.lengths
        rows = np.repeat(np.arange(len(lengths)), lengths)
        offsets = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return rows, self.order[self.starts[rows] + offsets]

    def as_matrix(self) -> Any:
        """Return the matrix of ones and zeros that makes sums of the rows of a column."""
        rows, members = self.list_members()
        ones = np.ones(len(rows))
        return sparse.csr_array((ones, (rows, members)), shape=(self.rows, self.size))

    def fold(
        self, column: Value, combine: Callable[[Value, Value], Value], empty: float, none: Value
    ) -> Value:
        """Return the new rows, with ``combine`` applied to their members from the first to the
        last.

        ``column`` is an array with a row for each old row. A new row without members is ``empty``,
        and a missing one is ``none``.
        """
        lengths, longest = self.lengths, int(self.lengths.max(initial=0))
        made = np.full((len(lengths), *column.shape[1:]), empty, dtype=column.dtype)
        for place in range(longest):
            rows = np.flatnonzero(lengths > place)
            next_rows = column[self.order[self.starts[rows] + place]]
            made[rows] = combine(made[rows], next_rows) if place else next_rows
        if self.missing.any():
            made = made.astype(np.result_type(made.dtype, np.float64))
            made[self.missing] = none
        return made

    def on_values(self, column: Value) -> Value:
        """Return the new rows of a column of numbers; missing ones are NaN."""
        column = np.broadcast_to(np.asarray(column), (self.size,))
        if self.kind == "pick":
            return take_rows(column, self.order)
        if column.dtype.kind in "iub":
            column = column.astype(np.int64)
        made = self._accumulate(column)
        if made.dtype.kind == "i":  # whole numbers that could wrap around become doubles
            doubles = self._accumulate(column.astype(np.float64))
            made = doubles if np.abs(doubles).max(initial=0.0) >= 2.0**62 else made
        return made[0] if self.alone else made

    def _accumulate(self, column: Array) -> Array:
        """Return the sums or products of rows of a column of numbers."""
        ufunc = np.add if self.kind == "sum" else np.multiply
        running = not self.missing.any() and not self.starts.any()
        if running and np.array_equal(self.stops, np.arange(1, len(self.stops) + 1)):
            return np.asarray(ufunc.accumulate(column[self.order]))
        empty = 0.0 if self.kind == "sum" else 1.0
        return np.asarray(self.fold(column, ufunc, empty, np.nan))

    def on_ends(
        self, ends: tuple[Value, Value], multiply: Callable[[Any, Any], Any]
    ) -> tuple[Value, Value]:
        """Return the new rows of a column of intervals.

        ``multiply`` returns the ends of the products of two columns of intervals.
        """
        pair = [np.broadcast_to(np.asarray(end, dtype=np.float64), (self.size,)) for end in ends]
        if self.kind != "product":
            low, high = (self.on_values(end) for end in pair)
            return low, high

        def combine(one: Array, two: Array) -> Array:
            return np.stack(multiply((one[:, 0], one[:, 1]), (two[:, 0], two[:, 1])), axis=1)

        made = self.fold(np.stack(pair, axis=1), combine, 1.0, np.nan)
        return (made[0, 0], made[0, 1]) if self.alone else (made[:, 0], made[:, 1])

    def to_json(self) -> Json:
        """Return the step as JSON, for a receipt."""
        arrays = {"order": self.order, "starts": self.starts, "stops": self.stops}
        texts = {name: _write_places(array) for name, array in arrays.items()}
        return {"kind": self.kind, "size": self.size, "alone": self.alone, **texts}

    @classmethod
    def from_json(cls, data: Json) -> RowStep:
        """Return the step that `to_json` wrote."""
        order, starts, stops = (_read_places(data[name]) for name in ("order", "starts", "stops"))
        return cls(data["kind"], order, starts, stops, data["size"], data["alone"])


_NONE = np.empty(0, dtype=np.intp)


def pick(rows: Places, size: int) -> RowStep:
    """Return the step that picks rows of a column with ``size`` rows; -1 is a missing row."""
    return RowStep("pick", np.asarray(rows, dtype=np.intp), _NONE, _NONE, size)


def fold_ranges(
    kind: Kind, order: Places, starts: Places, stops: Places, size: int, alone: bool = False
) -> RowStep:
    """Return the step that adds or multiplies ranges of rows, as `RowStep` describes them."""
    parts = [np.asarray(part, dtype=np.intp) for part in (order, starts, stops)]
    return RowStep(kind, parts[0], parts[1], parts[2], size, alone)


def take_rows(column: Array, rows: Places) -> Array:
    """Return some rows of a column, with NaN where a row is missing (-1)."""
    missing = rows < 0
    if not missing.any():
        return np.asarray(column)[rows]
    found = np.full(rows.shape, np.nan)
    found[~missing] = np.asarray(column, dtype=np.float64)[rows[~missing]]
    return found


def _write_places(places: Places) -> str:
    return base64.b64encode(np.ascontiguousarray(places, dtype="<i4").tobytes()).decode()


def _read_places(text: str) -> Places:
    return np.frombuffer(base64.b64decode(text), dtype="<i4").astype(np.intp)
