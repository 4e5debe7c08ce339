"""A case: a table, the words of ``open`` and lines of questions. What is asked must be the same wherever its rows stand.

*Of neighbours.* The integers that reach the door move by what the plan declares at most, and nothing else differs: answers with
noise alone, errors with their words, warnings, plans.
*Of one table.* The integers are equal, bit by bit: again, at every place of a row, in every order that leaves each person's own,
in every world of sizes, threads and kernels, and in every engine that answers.
"""

from __future__ import annotations

import random
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpframe
from dpframe import DataError, DPError
from tests.fuzz.compare import Finding
from tests.fuzz.seams import engines, frames, worlds
from tests.fuzz.seams.door import Call, Door, listening
from tests.fuzz.seams.engines import ENGINES
from tests.fuzz.seams.examples import NAMES, OWN, WORDS, Generator, Line
from tests.fuzz.seams.frames import Table
from tests.fuzz.seams.worlds import USUAL, World
from tests.internals import sessions


@dataclass(frozen=True)
class Case:
    """All that a run needs beside the place of the rows, the world and the engine."""

    seed: int
    table: Table
    terms: tuple[tuple[str, Any], ...]
    lines: tuple[Line, ...]
    looks: tuple[
        tuple[int, tuple[int, ...], World, str, bool], ...
    ]  # side, places, world, engine, other order

    @property
    def words(self) -> dict[str, Any]:
        return dict(self.terms)

    @property
    def people(self) -> bool:
        return "unit" in self.words

    def __str__(self) -> str:
        table = self.table
        rows = [f"  others {frames.frame_of(table.others, table.columns, self.people).to_dict('list')}"]
        for name, some in (("own", table.own), ("instead", table.instead)):
            if some is not None:
                rows.append(f"  {name} {frames.frame_of(some, table.columns, self.people).to_dict('list')}")
        words = ", ".join(f"{w}={v!r}" for w, v in self.terms)
        lines = "\n".join(f"  {line}" for line in self.lines)
        looks = "\n".join(
            f"  side {s} at {p} in {e}{' in another order' * o}: {w}" for s, p, w, e, o in self.looks
        )
        return (
            f"seed {self.seed}\n" + "\n".join(rows) + f"\n  p = dpframe.open(df, {words})\n{lines}\n{looks}"
        )


# Drawing -----------------------------------------------------------------------------------------------------------------


def open_words(r: random.Random, people: bool, replaces: bool, columns: Sequence[str]) -> dict[str, Any]:
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


def make(seed: int, only: Sequence[str] = (), kernels: tuple[str, ...] = worlds.KERNELS) -> Case:
    """The case of a seed."""
    r = random.Random(f"seams {seed}")
    about = WORDS[seed * 7919 % len(WORDS)]  # so that seeds in a row are about words of all kinds
    people, replaces = r.random() < 0.5 or about[0] in ("order", *OWN), r.random() < 0.4
    chosen = _engines(r, only, 0.9 if about[0] == "order" else 0.3)
    columns = tuple(c for c in engines.ALL if all(c in ENGINES[e].columns for e in chosen))
    words = open_words(r, people, replaces, columns)
    table = frames.draw(r, columns, people, replaces)
    lines = _lines(r, words, columns, people, replaces, about, chosen[-1])
    looks = []
    rows = len(table.others)
    for engine in chosen:
        for _ in range(2 if engine == "pandas" else 1):
            world = worlds.draw(r, kernels)
            edges = worlds.edges(world, rows)
            for _ in range(2):
                spots = tuple(sorted(r.choice(edges) for _ in range(r.choice((1, 1, 2)))))
                looks.append((r.randrange(2), spots, world, engine, r.random() < 0.2))
    return Case(seed, table, tuple(words.items()), tuple(lines), tuple(looks))


def _engines(r: random.Random, only: Sequence[str], share: float) -> list[str]:
    if only:
        return ["pandas", *(e for e in only if e != "pandas" and ENGINES[e].installed)]
    others = [e for e in ENGINES if e != "pandas" and ENGINES[e].installed]
    weights = [ENGINES[e].share for e in others]
    return ["pandas", *(r.choices(others, weights, k=1) if others and r.random() < share else [])]


def _lines(
    r: random.Random,
    words: dict[str, Any],
    columns: Sequence[str],
    people: bool,
    replaces: bool,
    about: tuple[str, str],
    engine: str,
) -> list[Line]:
    frame = frames.frame_of(
        [(i, *(frames.CELLS[c][i % 2] for c in columns)) for i in range(4)], columns, people
    )
    before = set(sessions)
    # Lines that a source is asked too are made of what a source answers.
    table = frame if engine == "pandas" else ENGINES["arrow"].build(frame, Path(), r)
    root = dpframe.open(table, **words)
    limits = ", max_rows=64, max_groups=64"
    if people:
        limits = r.choice((", max_rows=1, max_groups=1", ", max_rows=3, max_groups=2", limits))
    NAMES["model"] = frame
    generator = Generator(r, root, people, "delta" in words, replaces, limits)
    try:
        with listening(0), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [generator.about(*about), *(generator.line() for _ in range(r.choice((1, 2, 4))))]
    finally:
        for name in set(sessions) - before:
            sessions.pop(name)


# Running -----------------------------------------------------------------------------------------------------------------


@dataclass
class Answer:
    """All that anybody could see of a line, and the integers that they could not."""

    facts: dict[str, Any]
    calls: list[Call]
    error: BaseException | None = None

    @property
    def refused(self) -> bool:
        return isinstance(self.error, DPError) and not isinstance(self.error, DataError)


def run(
    case: Case,
    side: int,
    places: Sequence[int],
    world: World = USUAL,
    engine: str = "pandas",
    other_order: bool = False,
) -> list[Answer]:
    """Ask all lines of one neighbour."""
    r = random.Random(f"{case.seed} {engine} {places}")
    rows = case.table.rows(side, places)
    if other_order:
        rows = frames.interleaved(r, rows)
    frame = frames.frame_of(rows, case.table.columns, case.people)
    before = set(sessions)
    answers: list[Answer] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        worlds.living(world),
        listening(case.seed) as door,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        door.line = 99
        table = ENGINES[engine].build(frame, Path(folder), r)
        names = {**NAMES, "df": frame}
        root = dpframe.open(table, **case.words)
        source = root._session.data.source
        if source is not None and "memory" in dict(world.sizes):
            source.memory = dict(world.sizes)["memory"]
        try:
            for number, line in enumerate(case.lines):
                answers.append(_asked(line, root, names, door, number))
        finally:
            root.close()
            for name in set(sessions) - before:
                sessions.pop(name)
    return answers


def _asked(line: Line, root: Any, names: dict[str, Any], door: Door, number: int) -> Answer:
    door.line, door.calls = number, []
    door.noise.line(number * 1000)
    found = Answer({}, door.calls)
    p: Any = root
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            for step in line.steps:
                p = eval(step, {**names, "p": p})
                found.facts["columns"] = repr(getattr(getattr(p, "_selection", None), "columns", None))
            value = eval(line.ask, {**names, "p": p})
            found.facts["answer"] = _shown(value)
        except Exception as error:
            found.error = error
            found.facts["error"] = f"{type(error).__name__}: {error}"
    found.facts["warnings"] = sorted({f"{w.category.__name__}: {w.message}" for w in heard})
    found.facts["plans"] = [call.plan for call in door.calls]  # their texts take long
    return found


def _shown(value: Any) -> str:
    """An answer to the last bit, with its labels and dtypes; of what has no text of its own, its type."""
    if isinstance(value, pd.Series | pd.DataFrame):
        table = value.to_frame() if isinstance(value, pd.Series) else value
        return repr((table.to_dict("list"), list(table.index), table.index.names, [*map(str, table.dtypes)]))
    if isinstance(value, pd.Index):
        return repr((list(value), str(value.dtype), value.names))
    if isinstance(value, list | tuple):
        return repr([_shown(one) for one in value])
    if isinstance(value, int | float):  # an estimate has a text that takes long
        return int.__repr__(value) if isinstance(value, int) else float.__repr__(value)
    return repr(value) if isinstance(value, str | np.generic) else type(value).__name__


# Comparing ---------------------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What a campaign has asked."""

    questions: int = 0
    runs: int = 0
    answered: int = 0
    refused: int = 0
    engines: Counter[str] = field(default_factory=Counter)
    places: int = 0
    worlds: set[World] = field(default_factory=set)
    parts: Counter[str] = field(default_factory=Counter)  # statistics that were compared


def check(case: Case, tally: Tally | None = None) -> list[Finding]:
    """What is wrong in this case. Empty where nothing is."""
    tally = Tally() if tally is None else tally
    tally.questions += len(case.lines)
    middle = (len(case.table.others) // 2,)
    sides = [run(case, side, middle) for side in (0, 1)]
    tally.runs += 2
    found = []
    for number, (one, two) in enumerate(zip(*sides, strict=True)):
        tally.answered += one.error is None
        tally.refused += one.refused
        tally.parts.update(call.part.statistic for call in one.calls)
        found += [*_neighbours(number, one, two), *_failed(number, one), *_failed(number, two)]
    again = run(case, 0, middle)
    found += _different(sides[0], again, "repeated", "again")
    memory: dict[int, list[Answer]] = {}
    for side, places, world, engine, other_order in case.looks:
        tally.runs += 1
        tally.places += 1
        tally.worlds.add(world)
        tally.engines[engine] += len(case.lines)
        others = [line for line in case.lines if engine == "pandas" or "df" not in str(line)]
        kept = [i for i, line in enumerate(case.lines) if line in others]
        if not kept:
            continue
        answers = run(replace(case, lines=tuple(others)), side, places, world, engine, other_order)
        known = [sides[side][i] for i in kept]
        if engine != "pandas":
            if side not in memory:
                memory[side] = run(case, side, middle, engine="arrow frame")
                tally.runs += 1
            known = [memory[side][i] for i in kept]
            found += _engine(known, answers, kept, f"{engine} at {places}, {world}")
        else:
            order = "order" if other_order else "place"
            found += _different(known, answers, order, f"side {side} at {places}, {world}", kept)
    return list({f.signature: f for f in found}.values())


def _failed(number: int, one: Answer) -> list[Finding]:
    """A question that fails behind the door, or with an error that is no one of the package's."""
    if isinstance(one.error, DataError):
        return [Finding("fails", number, f"{one.error}")]
    if one.error is not None and not isinstance(one.error, DPError):
        return [Finding("raw", number, f"{type(one.error).__name__}: {one.error}")]
    return []


def _neighbours(number: int, one: Answer, two: Answer) -> list[Finding]:
    found = [
        Finding("differs", number, f"{fact}: {one.facts.get(fact)!r:.300} | {two.facts.get(fact)!r:.300}")
        for fact in {**one.facts, **two.facts}
        if one.facts.get(fact) != two.facts.get(fact)
    ]
    if found:
        return found[:1]
    if len(one.calls) != len(two.calls):
        return [Finding("differs", number, f"calls: {len(one.calls)} | {len(two.calls)}")]
    for a, b in zip(one.calls, two.calls, strict=True):
        if a.integers.shape != b.integers.shape and a.keys is None and not a.part.noise.by_row:
            found.append(Finding("differs", number, f"shape: {a.integers.shape} | {b.integers.shape}"))
            continue
        moved, part = a.moved(b), a.part
        norm = part.noise.norm
        distance = norm.distance(np.array(moved, dtype=object)) if moved else 0
        allowed = norm.declared(part.l1, part.l2_squared)
        if distance > allowed:
            what = f"{part.statistic} ({norm.exact}): moved by {distance} of {allowed}"
            found.append(Finding("sensitivity", number, what))
        adds = norm.name in ("l1", "l2") and not part.noise.by_row
        l1, l2 = sum(map(abs, moved)), sum(m * m for m in moved)
        if adds and not found and (l1 > part.l1 or l2 > part.l2_squared):
            what = f"{part.statistic}: moved by {l1} and {l2} of {part.l1} and {part.l2_squared}"
            found.append(Finding("declared", number, what))
    return found


def _different(
    known: list[Answer],
    answers: list[Answer],
    kind: str,
    where: str,
    kept: Sequence[int] | None = None,
) -> list[Finding]:
    """What is not equal, bit by bit, of the same rows."""
    for number, (a, b) in enumerate(zip(known, answers, strict=True)):
        line = number if kept is None else kept[number]
        for fact in {**a.facts, **b.facts}:
            if a.facts.get(fact) != b.facts.get(fact):
                what = f"{fact}: {where}: {a.facts.get(fact)!r:.300} | {b.facts.get(fact)!r:.300}"
                return [Finding(kind, line, what)]
        for x, y in zip(a.calls, b.calls, strict=True):
            if x.known() != y.known():
                what = f"integers of {x.part.statistic}: {where}: {_first(x.known(), y.known())}"
                return [Finding(kind, line, what)]
    return []


def _engine(known: list[Answer], answers: list[Answer], kept: Sequence[int], where: str) -> list[Finding]:
    """What an engine answers otherwise than pandas; what it refuses before a debit is its own."""
    found = []
    for line, a, b in zip(kept, known, answers, strict=True):
        if b.refused or a.refused:
            continue
        found += _failed(line, b)
        if a.error is not None or b.error is not None:
            continue
        for x, y in zip(a.calls, b.calls, strict=False):
            sensitivities = [(c.part.statistic, c.part.l1, c.part.l2_squared) for c in (x, y)]
            if sensitivities[0] != sensitivities[1]:
                break  # a column that cannot be null there has another plan
            if x.known() != y.known():
                what = f"integers of {x.part.statistic}: {where}: {_first(x.known(), y.known())}"
                found.append(Finding("engine", line, what))
                break
    return found


def _first(a: Any, b: Any) -> str:
    return f"{a!r:.200} | {b!r:.200}"


# Making smaller ---------------------------------------------------------------------------------------------------------------


def shrink(case: Case, finding: Finding, tries: int = 150) -> Case:
    """A smaller case that shows the same: without lines, looks, steps and rows, one by one."""

    def shows(candidate: Case) -> bool:
        try:
            return any(f.signature[0] == finding.kind for f in check(candidate))
        except Exception:
            return False

    best = replace(case, lines=(case.lines[finding.line],)) if finding.line < len(case.lines) else case
    best = best if shows(best) else case
    again = True
    while again and tries > 0:
        again = False
        for candidate in _smaller(best):
            tries -= 1
            if tries <= 0:
                break
            if shows(candidate):
                best, again = candidate, True
                break
    return best


def _smaller(case: Case) -> list[Case]:
    looks, table = case.looks, case.table
    found = [replace(case, looks=looks[:i] + looks[i + 1 :]) for i in range(len(looks))]
    for i, line in enumerate(case.lines):
        for j in range(len(line.steps)):
            some = Line(line.steps[:j] + line.steps[j + 1 :], line.ask)
            found.append(replace(case, lines=(*case.lines[:i], some, *case.lines[i + 1 :])))
    half = len(table.others) // 2
    if half > 2:
        found += [
            replace(case, table=replace(table, others=some))
            for some in (table.others[:half], table.others[half:])
        ]
    found += [replace(case, table=table.without(i)) for i in range(len(table.others))]
    if len(table.own) > 1:
        found += [
            replace(case, table=replace(table, own=table.own[:i] + table.own[i + 1 :]))
            for i in range(len(table.own))
        ]
    if len(looks) == 1:  # and as few sizes as will do
        side, places, world, engine, order = looks[0]
        for i in range(len(world.sizes)):
            less = replace(world, sizes=world.sizes[:i] + world.sizes[i + 1 :])
            found.append(replace(case, looks=((side, places, less, engine, order),)))
    return found
