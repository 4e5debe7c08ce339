"""Frames whose rows are few and odd, and the one row or person that is moved through them."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd


def _bits(word: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", word))[0])


SPECIAL = (
    *(0.0, -0.0, float("nan"), _bits(0xFFF8000000000001), _bits(0x7FF8DEADBEEF0001), float("inf"), -float("inf")),
    *(5e-324, -5e-324, 1e-310, 1.7976931348623157e308, -1.7976931348623157e308, 2.0**53 + 2, 0.1),
)  # fmt: skip
TAME = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, -1.0)
WHOLE = (0, 1, 2, 3, -1, 7, 2**31, -(2**53) - 1)
TEXTS = (
    "a",
    "b",
    "c",
    "ab",
    "ba",
    "",
    None,
    "aXb",
    "a a",
    "1.5",
    "2024-01-03",
    "é",
    "bb",
    "A",
    "aba",
)
GROUPS = ("a", "b", "c", "d", None)
KINDS = ("u", "v", None)
DAYS = (
    *(f"2024-01-{day:02}T{hour:02}:00" for day, hour in ((1, 0), (2, 12), (5, 23), (31, 1))),
    None,
)
LISTS = (("a",), ("a", "b"), (), None, ("c", None, "a"), ("b", "b"))

# The columns of every frame, in order: what each may hold.
CELLS: dict[str, tuple[Any, ...]] = {
    "x": (*TAME, *SPECIAL),
    "y": WHOLE,
    "z": (0.0, 0.25, 1.0, None, 2.0, 3.0),
    "s": TEXTS,
    "g": GROUPS,
    "b": (True, False, None),
    "t": DAYS,
    "k": KINDS,
    "l": LISTS,
}
DTYPES = {
    "x": "float64",
    "y": "int64",
    "z": "Float64",
    "s": "str",
    "g": "str",
    "b": "boolean",
    "t": "datetime64[us]",
}
BOUNDS = {"x": (-2, 5), "y": (-3, 9), "z": (0, 2), "t": ("2024-01-01", "2024-03-01")}
KEYS = {"g": ["a", "b", "c"], "k": ["u", "v"]}

MOST_GROUPS = 64  # more than any frame has

Row = tuple[Any, ...]  # the person, and a cell of each column


@dataclass(frozen=True)
class Table:
    """The rows of others, and those of the one who comes or goes, each with its place among these."""

    columns: tuple[str, ...]
    others: tuple[Row, ...]
    own: tuple[Row, ...]
    instead: tuple[Row, ...] | None  # of a neighbour where one is replaced

    def rows(self, side: int, places: Sequence[int]) -> list[Row]:
        """The rows of one of the two neighbours. The rows of the one stand before these places among the others', in order."""
        mine = self.own if not side else (self.instead or ())
        rows, spots = [], sorted(places)
        for at in range(len(self.others) + 1):
            # With fewer places than rows, the last one takes those that are left.
            for i, row in enumerate(mine):
                if spots[min(i, len(spots) - 1)] == at:
                    rows.append(row)
            if at < len(self.others):
                rows.append(self.others[at])
        return rows

    def without(self, at: int) -> Table:
        """The same without one row of the others."""
        return replace(self, others=self.others[:at] + self.others[at + 1 :])

    def unsigned(self) -> Table:
        """The same without signs of zeros."""
        others, own, instead = (
            None if rows is None else tuple(map(_unsigned, rows))
            for rows in (self.others, self.own, self.instead)
        )
        return replace(self, others=others, own=own, instead=instead)


def _unsigned(row: Row) -> Row:
    return tuple(0.0 if isinstance(cell, float) and cell == 0 else cell for cell in row)


def frame_of(rows: Sequence[Row], columns: Sequence[str], people: bool) -> pd.DataFrame:
    """The frame of such rows."""
    cells = list(zip(*rows, strict=True)) if rows else [()] * (1 + len(columns))
    found: dict[str, Any] = {}
    if people:
        found["id"] = pd.array(list(cells[0]), dtype="Int64")
    for name, column in zip(columns, cells[1:], strict=True):
        if name in DTYPES:
            found[name] = pd.Series(list(column), dtype=DTYPES[name])
        elif name == "k":
            found[name] = pd.Series(pd.Categorical(list(column), categories=["u", "v", "never"]))
        else:
            lists = np.empty(len(column), dtype=object)
            for i, cell in enumerate(column):
                lists[i] = None if cell is None else list(cell)
            found[name] = pd.Series(lists, dtype=object)
    return pd.DataFrame(found)


def _palettes(r: random.Random, columns: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """A few cells of each column."""
    palettes = {}
    for name in columns:
        cells = CELLS[name]
        some = r.choice((1, 2, 3, len(cells)))
        palettes[name] = tuple(r.sample(cells, min(some, len(cells))))
        if name == "x" and r.random() < 0.3:
            palettes[name] = r.choice(((0.0, -0.0), (0.0,), (-0.0,), (float("nan"), 0.0, -0.0)))
    return palettes


def other_cells(r: random.Random, table: Table) -> Table:
    """As many rows of the same people, with other cells: whatever is public of the table is the same."""
    palettes = _palettes(r, table.columns)

    def drawn(rows: tuple[Row, ...] | None, wild: float) -> tuple[Row, ...] | None:
        if rows is None:
            return None
        cells = [
            [
                r.choice(CELLS[name] if r.random() < wild else palettes[name])
                for name in table.columns
            ]
            for _ in rows
        ]
        return tuple((row[0], *some) for row, some in zip(rows, cells, strict=True))

    return replace(
        table,
        others=drawn(table.others, 0),
        own=drawn(table.own, 0.3),
        instead=drawn(table.instead, 0.3),
    )


SIZES = (0, 1, 2, 3, 5, 6, 8, 9, 13, 17, 20, 33, 40)


def draw(
    r: random.Random, columns: Sequence[str], people: bool, replaces: bool, most: int = 130
) -> Table:
    """Some table: often with few different cells, and now and then with many rows."""
    palettes = _palettes(r, columns)
    size = r.choice(SIZES) if r.random() < 0.97 else r.randint(41, most)
    crowd = max(1, r.choice((size, size // 2, size // 3, 2)))

    def row(who: Any, wild: float = 0.0) -> Row:
        cells = (r.choice(CELLS[name] if r.random() < wild else palettes[name]) for name in columns)
        return (who, *cells)

    others = [row(pd.NA if r.random() < 0.05 else r.randint(1, crowd)) for _ in range(size)]
    if not people:
        own = [row(1, 0.3)]
        instead = [row(1, 0.3)] if replaces else None
    else:
        own = [row(0, 0.3) for _ in range(r.choice((1, 1, 2, 3, 6)))]
        who = r.choice((0, crowd + 1))
        instead = [row(who, 0.3) for _ in range(r.choice((1, 2, 5)))] if replaces else None
    return Table(
        tuple(columns), tuple(others), tuple(own), None if instead is None else tuple(instead)
    )


def interleaved(r: random.Random, rows: Sequence[Row]) -> list[Row]:
    """The rows in another order, but those of each person in their own."""
    order = list(range(len(rows)))
    r.shuffle(order)
    queues: dict[Any, list[Row]] = {}
    for one in rows:
        queues.setdefault(repr(one[0]), []).append(one)
    for queue in queues.values():
        queue.reverse()
    return [queues[repr(rows[i][0])].pop() for i in order]
