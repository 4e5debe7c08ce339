"""Drawing a case: a table, the words of ``open``, lines of questions, and the looks that are taken at each table."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

import dpframe
from dpframe._session.data import sessions
from dpframe._session.session import Session
from tests.fuzz.seams import engines, frames, worlds
from tests.fuzz.seams.door import listening
from tests.fuzz.seams.engines import ENGINES
from tests.fuzz.seams.examples import NAMES, OWN, WORDS, Generator, Line, Planned
from tests.fuzz.seams.frames import Table
from tests.fuzz.seams.worlds import USUAL, World


class Look(NamedTuple):
    """One more time that lines are asked: of which neighbour, with its rows where, in which world and engine."""

    side: int
    places: tuple[int, ...]
    world: World = USUAL
    engine: str = "pandas"
    other_order: bool = False
    whole: bool = True


@dataclass(frozen=True)
class Case:
    """All that a run needs beside the place of the rows, the world and the engine."""

    seed: int
    table: Table
    terms: tuple[tuple[str, Any], ...]
    lines: tuple[Line, ...]
    looks: tuple[Look, ...]
    whole: bool = True  # the other neighbour is asked whole
    again: bool = True  # the first is asked once more
    pairs: tuple[tuple[Line, Line], ...] = ()  # lines that are one release
    more: tuple[
        tuple[Table, Look], ...
    ] = ()  # the same rows with other cells, and one look at each
    exact: bool = False  # answers from the record are compared with the exact integers

    @property
    def words(self) -> dict[str, Any]:
        return dict(self.terms)

    @property
    def people(self) -> bool:
        return "unit" in self.words

    def __str__(self) -> str:
        table = self.table
        rows = [
            f"  others {frames.frame_of(table.others, table.columns, self.people).to_dict('list')}"
        ]
        for name, some in (("own", table.own), ("instead", table.instead)):
            if some is not None:
                rows.append(
                    f"  {name} {frames.frame_of(some, table.columns, self.people).to_dict('list')}"
                )
        words = ", ".join(f"{w}={v!r}" for w, v in self.terms)
        lines = "\n".join(f"  {line}" for line in self.lines)
        looks = "\n".join(
            f"  side {k.side} at {k.places} in {k.engine}{' in another order' * k.other_order}"
            f"{', whole' * k.whole}: {k.world}"
            for k in self.looks
        )
        lines += "".join(f"\n  one release: {one} | {other}" for one, other in self.pairs)
        return (
            f"seed {self.seed}\n"
            + "\n".join(rows)
            + f"\n  p = dpframe.open(df, {words})\n{lines}\n{looks}"
        )


# Drawing -----------------------------------------------------------------------------------------------------------------


def open_words(
    r: random.Random, people: bool, replaces: bool, columns: Sequence[str]
) -> dict[str, Any]:
    words: dict[str, Any] = {"epsilon": 1000, "because": "made up"}
    words["bounds"] = {n: b for n, b in frames.BOUNDS.items() if n in columns}
    words["keys"] = {n: list(k) for n, k in frames.KEYS.items() if n in columns}
    if r.random() < 0.4:
        words["delta"] = 1e-4
    if replaces:
        words["neighbors"] = "replace-one"
    if people:
        words["unit"] = "id"
        words["max_rows"] = r.choice((1, 2, 3, 8))
        words["max_groups"] = r.choice((1, 2, 5))
    return words


LINES, ABOUT = 12, 6  # lines of a case, and those of them that are about the words whose turn it is
TABLES = 6  # that they are asked of
FOR_ENGINES = 8  # lines of a case that another engine is asked too
SHARES = {"whole": 0.25, "look": 0.1, "again": 0.1, "engine": 0.5, "order": 0.25, "exact": 0.5}
WORDS_OF_ROWS = tuple(word for word in WORDS if word[0] not in ("order", *OWN))


def make(seed: int, only: Sequence[str] = (), kernels: tuple[str, ...] = worlds.KERNELS) -> Case:
    """The case of a seed."""
    r = random.Random(f"seams {seed}")
    people, replaces = r.random() < 0.55, r.random() < 0.4
    words_of = WORDS if people else WORDS_OF_ROWS
    # Seeds in a row are about words of all kinds.
    about = [words_of[(seed * ABOUT + i) * 7919 % len(words_of)] for i in range(ABOUT)]
    chosen = _engines(r, only, SHARES["engine"])
    columns = tuple(c for c in engines.ALL if all(c in ENGINES[e].columns for e in chosen))
    terms = open_words(r, people, replaces, columns)
    table = frames.draw(r, columns, people, replaces)
    if any("sqlite" in engine for engine in chosen):
        table = table.unsigned()  # SQLite keeps whole numbers in a column of doubles as integers
    exact = r.random() < SHARES["exact"]
    pairs = LINES // 2 if exact else 0
    lines, pairs_drawn = _lines(r, terms, columns, people, replaces, about, chosen[-1], pairs)
    rows = len(table.others)
    looks = [
        _look(r, rows, kernels, engine)
        for engine in chosen
        for _ in range(2 if engine == "pandas" else 1)
    ]
    whole, again = (r.random() < SHARES[name] for name in ("whole", "again"))
    more = tuple((frames.other_cells(r, table), _look(r, rows, kernels)) for _ in range(TABLES - 1))
    return Case(
        seed,
        table,
        tuple(terms.items()),
        tuple(lines),
        tuple(looks),
        whole,
        again,
        tuple(pairs_drawn),
        more,
        exact,
    )


def _look(r: random.Random, rows: int, kernels: tuple[str, ...], engine: str = "pandas") -> Look:
    world = worlds.draw(r, kernels)
    edges = worlds.edges(world, rows)
    places = tuple(sorted(r.choice(edges) for _ in range(r.choice((1, 1, 2)))))
    order = r.random() < SHARES["order"]
    return Look(r.randrange(2), places, world, engine, order, r.random() < SHARES["look"])


def _engines(r: random.Random, only: Sequence[str], share: float) -> list[str]:
    if only:
        return ["pandas", *(e for e in only if e != "pandas" and ENGINES[e].installed)]
    others = [e for e in ENGINES if e != "pandas" and ENGINES[e].installed]
    weights = [ENGINES[e].share for e in others]
    return ["pandas", *(r.choices(others, weights, k=1) if others and r.random() < share else [])]


MODELS: dict[str, tuple[Any, pd.DataFrame]] = {}


def _model(
    terms: dict[str, Any], columns: Sequence[str], people: bool, source: bool
) -> tuple[Any, pd.DataFrame]:
    """A frame of made-up rows that is opened with these words, once for all cases."""
    key = repr((terms, columns, people, source))
    if key not in MODELS:
        cells = [(i, *(frames.CELLS[c][i % 2] for c in columns)) for i in range(4)]
        frame = frames.frame_of(cells, columns, people)
        # Lines that a source is asked too are made of what a source answers.
        table = ENGINES["arrow"].build(frame, Path(), random.Random(0)) if source else frame
        MODELS[key] = dpframe.open(table, **terms), frame
    return MODELS[key]


def _lines(
    r: random.Random,
    terms: dict[str, Any],
    columns: tuple[str, ...],
    people: bool,
    replaces: bool,
    about: Sequence[tuple[str, str]],
    engine: str,
    pairs: int,
) -> tuple[list[Line], list[tuple[Line, Line]]]:
    root, frame = _model(terms, columns, people, engine != "pandas")
    limits = ", max_rows=64, max_groups=64"
    if people or engine == "pandas":  # elsewhere the names of rows that are people are drawn
        limits = r.choice((", max_rows=1, max_groups=1", ", max_rows=3, max_groups=2", limits))
    NAMES["model"] = frame
    generator = Generator(r, root, people, "delta" in terms, replaces, limits)
    before = set(sessions)
    with planning(), listening(0), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [generator.about(*word) for word in about]
        lines += [generator.line() for _ in range(LINES - len(about))]
        drawn = [generator.pair() for _ in range(pairs)]
    for name in set(sessions) - before:
        sessions.pop(name)
    return lines, drawn


@contextmanager
def planning() -> Iterator[None]:
    """Questions are planned, and no more: the generator learns which are refused."""
    own = Session._debit

    def debit(self: Any, *args: Any) -> None:
        raise Planned

    Session._debit = debit
    try:
        yield
    finally:
        Session._debit = own
