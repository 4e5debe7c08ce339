"""A program from a seed: two neighbouring frames, the words of ``open``, and lines of steps and questions.

Lines are source text, so that a finding can be read, and lines, steps, rows and columns left out one by one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from tests.fuzz.cells import KINDS, LONG, NAT, Column, Kind

RELATIONS = ("add-remove", "replace-one")
NUMBERS = [k for k in KINDS.values() if k.family == "number"]
PEOPLE = [k for k in KINDS.values() if k.people]
OFTEN = (
    "objects",
    "interval objects",
    "moment objects",
    "number objects",
    "text objects",
    "raw dictionary",
    "string[python]",
)
SHARE = {"number": 7, "bool": 3, "text": 5, "label": 6, "lists": 3, "time": 3, "other": 2}


@dataclass
class Line:
    """Steps, each from the frame ``p`` before to the next, and what is asked of the last."""

    steps: list[str]
    ask: str

    def __str__(self) -> str:
        return "; ".join([*(f"p = {s}" for s in self.steps), self.ask])


@dataclass
class Program:
    """Everything that one run needs; nothing in it depends on which of the two frames it runs on."""

    seed: int
    columns: list[Column]
    terms: dict[str, str]
    bounds: dict[Any, str]
    keys: dict[Any, str]
    lines: list[Line]
    labels: bool = False  # rows have names
    strict: bool = False  # numpy raises where it would warn
    filed: bool = False  # the ledger is a file
    people: list[Hashable] = field(default_factory=list)

    def frame(self, side: int) -> pd.DataFrame:
        """One of the two neighbours, made anew."""
        built = {c.name: c.build(side) for c in self.columns}
        frame = pd.DataFrame(built)
        if self.labels:
            frame.index = pd.Index([f"row {i}" for i in range(len(frame))], dtype="str")
        return frame

    def words(self) -> str:
        """The arguments of ``open`` as text."""
        known = {c.name for c in self.columns}
        more = {}
        for word, listed in (("bounds", self.bounds), ("keys", self.keys)):
            inside = [
                f"{n!r}: {v}"
                for n, v in listed.items()
                if set(n if isinstance(n, tuple) else [n]) <= known
            ]
            if inside:
                more[word] = "{" + ", ".join(inside) + "}"
        if self.people:
            more["unit"] = repr(self.people)
        if self.filed:
            more.update(ledger="LEDGER", population="'people'")
        return ", ".join(f"{w}={v}" for w, v in {**self.terms, **more}.items())

    def __str__(self) -> str:
        shown = [
            f"  {c.name}: {c.kind.name}\n    {_shown(c, 0)}\n    {_shown(c, 1)}"
            for c in self.columns
        ]
        modes = [w for w in ("labels", "strict", "filed") if getattr(self, w)]
        lines = "\n".join(f"  {line}" for line in self.lines)
        return (
            f"seed {self.seed} {' '.join(modes)}\n"
            + "\n".join(shown)
            + f"\n  p = df.dp.open({self.words()})\n{lines}"
        )


def _shown(column: Column, side: int) -> str:
    def one(place: int) -> str:
        cell = column.kind.cells[place]
        try:
            return repr(cell)[:24]
        except Exception:
            return type(cell).__name__

    return "[" + ", ".join(map(one, column.cells[side])) + "]"


def literal(value: Any) -> str:
    """Source text of an argument."""
    if value is None or value is pd.NA or value is pd.NaT:
        return (
            {None: "None"}.get(value, "pd.NA")
            if value is None
            else ("pd.NA" if value is pd.NA else "pd.NaT")
        )
    if isinstance(value, float) and value != value:
        return "nan"
    if isinstance(value, str) and len(value) > 1000:
        return "LONG"
    if isinstance(value, list | tuple):
        inside = ", ".join(map(literal, value))
        return (
            f"[{inside}]"
            if isinstance(value, list)
            else f"({inside}{',' if len(value) == 1 else ''})"
        )
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    return repr(value)


def is_null(cell: Any) -> bool:
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return True
    if isinstance(cell, float | np.floating):
        return bool(cell != cell)
    return isinstance(cell, int) and cell == NAT


class Unfit(Exception):
    """No column is there for what was drawn: draw again."""


@dataclass
class Known:
    """What a generator believes of a column after some steps."""

    family: str
    kind: Kind | None


class Generator:
    """All choices of one seed."""

    def __init__(self, seed: int):
        self.seed = seed
        self.r = random.Random(seed)

    # Small choices -------------------------------------------------------------------------------------------------------

    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def pick(self, items: Sequence[Any]) -> Any:
        return items[int(self.r.random() * len(items))]

    def some(self, items: Sequence[Any], most: int = 3) -> list[Any]:
        return self.r.sample(list(items), min(len(items), 1 + int(self.r.random() * most)))

    def weighted(self, table: dict[Any, float]) -> Any:
        return self.r.choices(list(table), list(table.values()))[0]

    # The program ---------------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        self.relation = self.weighted({"add-remove": 3, "replace-one": 3})
        self.with_people = self.chance(0.5)
        columns = self._columns()
        program = Program(self.seed, columns, {}, {}, {}, [])
        if self.with_people:
            program.people = [c.name for c in columns if c.name in ("id", "who")]
        self.columns = {c.name: Known(c.kind.family, c.kind) for c in columns}
        self.root = dict(self.columns)
        self.people = program.people
        self.bounded, self.listed = program.bounds, program.keys
        self._open(program)
        # Of frames with many rows keys are found: only then is it worth their time.
        self.many = bool(self.delta) and self.epsilon == 1000 and self.chance(0.6)
        self._rows(program, self.pick((12, 30)) if self.many else 1)
        program.strict = self.chance(0.08)
        program.filed = self.chance(0.1)
        program.labels = self.relation == "replace-one" and self.chance(0.2)
        from tests.fuzz.questions import again, line

        program.lines = [line(self) for _ in range(self.pick((3, 4, 6, 8)))]
        if self.chance(0.06):  # other words in between, and the same question again
            program.lines = again(self)
        return program

    def _columns(self) -> list[Column]:
        found = []
        if self.with_people:
            found.append(Column("id", self._id_kind()))
            if self.chance(0.2):
                found.append(Column("who", self._id_kind()))
        families = [self.weighted(SHARE) for _ in range(self.pick((1, 2, 3, 4)))]
        for i, family in enumerate(families):
            kinds = [
                k
                for k in KINDS.values()
                if k.family == family
                for _ in range(4 if k.name in OFTEN else 1)
            ]
            name: Any = (
                f"c{i}"
                if self.chance(0.93)
                else self.pick(("a b", "µ", "size", "count", 7, ("x", "y")))
            )
            if name in [c.name for c in found]:
                name = f"c{i}"
            found.append(Column(name, self.pick(kinds)))
        self.r.shuffle(found)
        return found

    def _id_kind(self) -> Kind:
        return (
            KINDS[self.pick(("int64", "str", "Int64"))] if self.chance(0.35) else self.pick(PEOPLE)
        )

    def _open(self, program: Program) -> None:
        terms = program.terms
        self.epsilon = self.pick((3, 50, 1000, 1000, 1000))
        terms["epsilon"] = str(self.epsilon)
        self.delta = self.weighted({0: 6, 1e-6: 3, 1e-4: 2})
        if self.delta:
            terms["delta"] = repr(self.delta)
        self.accountant = "auto"
        if self.chance(0.2):
            terms["accountant"] = repr(
                self.pick(("pure", "pure", "zcdp", "rdp", "gdp") if self.delta else ("pure",))
            )
        if self.relation != "add-remove" or self.chance(0.1):
            terms["neighbors"] = repr(self.relation)
        if self.with_people:
            if self.chance(0.95):
                terms["max_rows"] = str(self.pick((1, 1, 2, 3, 10)))
            if self.chance(0.9):
                terms["max_groups"] = str(self.pick((1, 2, 5)))
        if self.chance(0.15):
            terms["queries"] = str(self.pick((1, 5, 100)))
        if self.chance(0.15):
            terms["n"] = str(self.pick((10, 1000, 10**6)))
        if self.chance(0.03):
            word, value = self.pick(
                (
                    ("epsilon", "nan"),
                    ("delta", "2"),
                    ("bounds", "{'c0': (5, 1)}"),
                    ("keys", "{'c0': [[]]}"),
                    ("unit", "'nobody'"),
                    ("max_rows", "0"),
                    ("version", "'v1'"),
                    ("reserve", "1e-7"),
                )
            )
            terms[word] = value
        for c in program.columns:
            if c.kind.family in ("number", "bool", "time") and self.chance(0.85):
                program.bounds[c.name] = self.bounds(c.kind)
            if c.kind.family in ("number", "bool", "text", "label", "time") and self.chance(0.35):
                program.keys[c.name] = self.keys(c.kind)

    # Arguments ----------------------------------------------------------------------------------------------------------

    def bounds(self, kind: Kind | None) -> str:
        if kind is not None and self.chance(0.8):
            return literal(self.pick(kind.bounds))
        wild = (
            (0, 1),
            (-10, 10),
            (0.1, 0.7),
            (0, 2**63),
            (-(2**63), 2**64),
            (0, 1e308),
            (-1e308, 1e308),
            (4, 4),
            (0, 1e-200),
            (1, 0),
        )
        return literal(self.pick(wild[: -1 if self.chance(0.9) else None]))

    def cell(self, kind: Kind) -> Any:
        """A value that may be listed: never a marked one."""
        if kind.family == "time" and ("," in kind.name or "tz" in kind.name) and self.chance(0.97):
            offset = "+01:00" if self.chance(0.03) else "Z"
            return self.pick(("2024-01-01T00:00", "2024-01-02T00:00", "2024-02-29T12:00")) + offset
        if kind.keys is not None and self.chance(0.8):
            return self.pick(kind.keys)
        if kind.family == "time":
            return self.pick(
                ("2024-01-01", "2024-02-29", "1677-09-21", "9999-12-31", "2024-03-31 02:30")
            )
        tame, wild = (list(filter(_is_plain, cells)) for cells in (kind.tame, kind.wild))
        return self.pick(tame if tame and self.chance(0.6) else [*tame, *wild] or ["a"])

    def keys(self, kind: Kind | None) -> str:
        if kind is None or self.chance(0.03):
            return self.pick(
                (
                    "['a', 'b', 'c']",
                    "[1, 2, 3]",
                    "[]",
                    "['a', 'a']",
                    "[1, True]",
                    "'ab'",
                    "[None]",
                    "[2**63, 1, 0.5]",
                    "range(5)",
                )
            )
        listed: list[Any] = []
        for _ in range(self.pick((2, 2, 3, 4, 6))):
            cell = self.cell(kind)
            if not any(cell is c or (type(cell) is type(c) and cell == c) for c in listed):
                listed.append(cell)
        if self.chance(0.95):  # most programs shall get past this check
            kept: list[Any] = []
            for c in listed:
                if not any(_equal(c, k) for k in kept):
                    kept.append(c)
            listed = kept
        return literal(listed)

    # Rows -----------------------------------------------------------------------------------------------------------------

    def _rows(self, program: Program, times: int) -> None:
        wildness = self.pick((0.0, 0.1, 0.4)) if times == 1 else 0.5
        size = self.pick((0, 1, 2, 5, 12, 25)) if times == 1 else self.pick((4, 8))

        def place(kind: Kind, wild: float) -> int:
            tame = len(kind.tame)
            return (
                self.r.randrange(len(kind.cells)) if self.chance(wild) else self.r.randrange(tame)
            )

        def draw(wild: float) -> dict[Any, int]:
            return {c.name: place(c.kind, wild) for c in program.columns}

        def safe(row: dict[Any, int]) -> dict[Any, int]:
            """Without a marked cell: marks belong to the one who differs."""
            for c in program.columns:
                unmarked = len(c.kind.tame) + len(c.kind.wild)
                row[c.name] = (
                    row[c.name] if row[c.name] < unmarked else self.r.randrange(len(c.kind.tame))
                )
            return row

        def wilder() -> dict[Any, int]:
            row = draw(0.9)
            for c in program.columns:
                if c.kind.marked and self.chance(0.3):
                    row[c.name] = len(c.kind.cells) - 1 - self.r.randrange(len(c.kind.marked))
            return row

        kinds = {c.name: c.kind for c in program.columns}

        def person(row: dict[Any, int]) -> Any:
            cells = [kinds[n].cells[row[n]] for n in program.people]
            return (
                None
                if any(map(is_null, cells))
                else tuple((c + 0.0 if type(c) is float else c) for c in cells)
            )

        common = [safe(draw(wildness)) for _ in range(size)]
        if times > 1:
            if program.people:  # the same values of other people
                common = [
                    safe({**draw(0.3), **{n: v for n, v in row.items() if n not in program.people}})
                    for row in common
                    for _ in range(times)
                ]
            else:
                common = [dict(row) for row in common for _ in range(times)]
        new: list[dict[Any, int]] = []
        old: list[dict[Any, int]] = []
        if not program.people:
            new = [wilder()]
            old = [safe(draw(wildness))] if self.relation == "replace-one" else []
        else:
            there = {person(row) for row in common}
            for group, wild in ((new, True), (old, False)):
                if group is old and self.relation != "replace-one":
                    continue
                for _ in range(40):
                    first = wilder() if wild else safe(draw(wildness))
                    who = person(first)
                    if who not in there and (
                        who is not None or (wild and self.relation == "add-remove")
                    ):
                        group.append(first)
                        for _ in range(self.pick((0, 0, 1, 3, 6))):
                            again = wilder() if wild else safe(draw(wildness))
                            group.append({**again, **{n: first[n] for n in program.people}})
                        break
            if self.relation == "replace-one" and not (new and old):
                new = [dict(r) for r in old or new]
                old = [dict(r) for r in new]
        sides = [self._mixed(common, old), self._mixed(common, new)]
        if self.relation == "add-remove" and self.chance(0.15):
            sides.reverse()
        if self.relation == "replace-one" and not program.people and self.chance(0.7):  # in place
            at = self.r.randrange(len(common) + 1)
            sides = [[*common[:at], *x, *common[at:]] for x in (old, new)]
        for c in program.columns:
            c.cells = ([row[c.name] for row in sides[0]], [row[c.name] for row in sides[1]])

    def _mixed(self, common: list[Any], own: list[Any]) -> list[Any]:
        rows = list(common)
        for row in own:
            rows.insert(self.r.randrange(len(rows) + 1), row)
        return rows

    # Columns of a tracked frame ----------------------------------------------------------------------------------------

    def column(self, *families: str) -> Any:
        """A column that is there, most of the time one of these families."""
        fitting = [n for n, k in self.columns.items() if k.family in families or not families]
        if fitting and self.chance(0.985):
            return self.pick(fitting)
        if self.chance(0.97):
            raise Unfit
        return self.pick([*self.columns, "nowhere"])

    def kind(self, name: Any) -> Kind | None:
        known = self.columns.get(name)
        return None if known is None else known.kind


def _is_plain(cell: Any) -> bool:
    return any(type(cell) is t for t in (str, int, float, bool, type(None)))


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b) or (is_null(a) and is_null(b))
    except Exception:
        return False


def make(seed: int) -> Program:
    """The program of a seed."""
    return Generator(seed).program()


__all__ = ["LONG", "Callable", "Column", "Generator", "Line", "Program", "literal", "make"]
