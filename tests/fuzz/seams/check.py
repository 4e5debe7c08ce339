"""A case: a table, the words of ``open`` and lines of questions. What is asked must be the same wherever its rows stand.

*Of neighbours.* The integers that reach the door move by what the plan declares at most, and nothing else differs: answers with
noise alone, errors with their words, warnings, plans.
*Of one table.* The integers are equal, bit by bit: again, at every place of a row, in every order that leaves each person's own,
in every world of sizes, threads and kernels, and in every engine that answers.
*Of one release.* What is answered from the record has the integers that its question makes of the rows, and what is a release in
other words is free.

The first neighbour is asked whole. A share of the other looks is, too (`cases.Case.whole`, `cases.Look.whole`); else the data is
read again for equal questions, and the integers are compared (`tests.fuzz.seams.door`).
"""

from __future__ import annotations

import random
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpframe
from dpframe import DataError, DPError
from dpframe._session.data import sessions
from tests.fuzz.compare import Finding
from tests.fuzz.seams import frames, worlds
from tests.fuzz.seams.cases import FOR_ENGINES, Case, Look
from tests.fuzz.seams.door import (
    Call,
    Door,
    Enough,
    OtherQuestions,
    PricedQuestion,
    adds,
    listening,
)
from tests.fuzz.seams.engines import ENGINES
from tests.fuzz.seams.examples import NAMES, Line
from tests.fuzz.seams.worlds import USUAL, World

# Running -----------------------------------------------------------------------------------------------------------------


@dataclass
class Answer:
    """All that anybody could see of a line, and the integers that they could not."""

    facts: dict[str, Any]
    calls: list[Call]
    error: BaseException | None = None
    asked: list[PricedQuestion] = field(default_factory=list)
    whole: bool = True  # and not only read for the questions of the first time

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
    first: Sequence[Answer] | None = None,
) -> list[Answer]:
    """Ask all lines of one neighbour; read for the questions of the first time, where their answers are given."""
    with opened(case, side, places, world, engine, other_order) as (root, names, door):
        answers = []
        for number, line in enumerate(case.lines):
            answer = (
                None if first is None else _read(line, root, names, door, number, first[number])
            )
            answers.append(answer or _asked(line, root, names, door, number))
        return answers


@contextmanager
def opened(
    case: Case, side: int, places: Sequence[int], world: World, engine: str, other_order: bool
) -> Iterator[tuple[Any, dict[str, Any], Door]]:
    """The rows of one neighbour, opened, with what lines may name."""
    r = random.Random(f"{case.seed} {engine} {places}")
    rows = case.table.rows(side, places)
    if other_order:
        rows = frames.interleaved(r, rows)
    frame = frames.frame_of(rows, case.table.columns, case.people)
    before = set(sessions)
    in_memory = engine in ("pandas", "arrow frame", "arrow")
    with (
        nullcontext("") if in_memory else tempfile.TemporaryDirectory() as folder,
        worlds.living(world),
        listening(case.seed) as door,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        door.line = 99
        table = ENGINES[engine].build(frame, Path(folder), r)
        root = dpframe.open(table, **case.words)
        source = root._session.data.source
        if source is not None and "memory" in dict(world.sizes):
            source.memory = dict(world.sizes)["memory"]
        try:
            yield root, {**NAMES, "df": frame}, door
        finally:
            root.close()
            for name in set(sessions) - before:
                sessions.pop(name)


def _asked(line: Line, root: Any, names: dict[str, Any], door: Door, number: int) -> Answer:
    door.begin(number)
    found = Answer({}, door.calls, asked=door.asked)
    p: Any = root
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            for step in line.steps:
                p = eval(step, {**names, "p": p})
                found.facts["columns"] = repr(
                    getattr(getattr(p, "_selection", None), "columns", None)
                )
            value = eval(line.ask, {**names, "p": p})
            found.facts["answer"] = _shown(value)
        except Exception as error:
            found.error = error
            found.facts["error"] = f"{type(error).__name__}: {error}"
    found.facts["warnings"] = sorted({f"{w.category.__name__}: {w.message}" for w in heard})
    found.facts["plans"] = [call.plan for call in door.calls]  # their texts take long
    return found


def _read(
    line: Line, root: Any, names: dict[str, Any], door: Door, number: int, first: Answer
) -> Answer | None:
    """The integers of a line, read for the questions and plans of the first time. None where these are others, or where anything
    fails: then the line is asked whole."""
    if first.error is not None or not first.asked:
        return None
    door.begin(number)
    door.tape, door.outputs = first.asked, first.calls
    p: Any = root
    try:
        for step in line.steps:
            p = eval(step, {**names, "p": p})
        eval(line.ask, {**names, "p": p})
    except Enough:
        return Answer(first.facts, door.calls, whole=False)
    except (Exception, OtherQuestions):
        return None
    return None


def _shown(value: Any) -> str:
    """An answer to the last bit, with its labels and dtypes; of what has no text of its own, its type."""
    if isinstance(value, pd.Series | pd.DataFrame):
        table = value.to_frame() if isinstance(value, pd.Series) else value
        return repr(
            (table.to_dict("list"), list(table.index), table.index.names, [*map(str, table.dtypes)])
        )
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
    kinds: Counter[str] = field(default_factory=Counter)  # questions by what was compared
    rows: Counter[int] = field(default_factory=Counter)  # cases by their rows
    threads: Counter[int] = field(default_factory=Counter)
    kernels: Counter[str] = field(default_factory=Counter)

    def looked(self, look: Look, questions: int) -> None:
        self.runs += 1
        self.places += 1
        self.worlds.add(look.world)
        self.engines[look.engine] += questions
        self.kernels[look.world.kernels] += questions
        self.threads[dict(look.world.sizes).get("threads", 0)] += questions
        kind = "engine" if look.engine != "pandas" else "order" if look.other_order else "place"
        self.kinds[kind] += questions
        self.kinds["looks, whole"] += questions * look.whole


def check(case: Case, tally: Tally | None = None) -> list[Finding]:
    """What is wrong in this case. Empty where nothing is."""
    tally = Tally() if tally is None else tally
    tally.questions += len(case.lines)
    tally.rows[len(case.table.others)] += 1
    middle = (len(case.table.others) // 2,)
    one = run(case, 0, middle)
    two = run(case, 1, middle, first=None if case.whole else one)
    sides = [one, two]
    tally.runs += 2
    tally.kinds["neighbours"] += len(case.lines)
    tally.kinds["neighbours, whole"] += len(case.lines) * case.whole
    found = []
    for number, (one, two) in enumerate(zip(*sides, strict=True)):
        tally.answered += one.error is None
        tally.refused += one.refused
        tally.parts.update(call.part.statistic for call in one.calls)
        found += [*_neighbours(number, one, two), *_failed(number, one), *_failed(number, two)]
    if case.again:
        again = run(case, 0, middle)
        found += _different(sides[0], again, "repeated", "again")
        tally.kinds["again"] += len(case.lines)
        tally.runs += 1
    if case.exact:
        found += recorded(case, middle, tally)
        tally.runs += 1
    for table, look in case.more:
        other = replace(case, table=table)
        found += _of_other_cells(other, look, sides[0], middle, tally)
    memory: dict[tuple[int, ...], list[Answer]] = {}  # by the side and the lines
    for look in case.looks:
        side, places, world, engine, other_order, whole = look
        kept = list(range(len(case.lines)))
        if engine != "pandas":
            kept = [i for i in kept if "df" not in str(case.lines[i])]
            some = random.Random(f"{case.seed} {engine}").sample(kept, min(FOR_ENGINES, len(kept)))
            kept = sorted(some)
        if not kept:
            continue
        tally.looked(look, len(kept))
        lines = replace(case, lines=tuple(case.lines[i] for i in kept))
        known = [sides[side][i] for i in kept]
        # Answers have words of their own, so that lines are read for questions that were asked whole.
        first = [sides[0][i] for i in kept]
        if engine != "pandas":
            key = (side, *kept)
            if key not in memory:
                memory[key] = run(lines, side, middle, engine="arrow frame")
                tally.runs += 1
            first = known = memory[key]
        given = None if whole else first
        answers = run(lines, side, places, world, engine, other_order, given)
        if engine != "pandas":
            found += _engine(known, answers, kept, f"{engine} at {places}, {world}")
        else:
            order = "order" if other_order else "place"
            found += _different(known, answers, order, f"side {side} at {places}, {world}", kept)
    return list({f.signature: f for f in found}.values())


def _of_other_cells(
    case: Case, look: Look, first: list[Answer], middle: tuple[int, ...], tally: Tally
) -> list[Finding]:
    """What is wrong where the same questions are read of other cells: of two neighbours, and of one of them once more."""
    sides = [run(case, side, middle, first=first) for side in (0, 1)]
    tally.questions += len(case.lines)
    tally.kinds["neighbours"] += len(case.lines)
    tally.runs += 2
    found = []
    for number, (one, two) in enumerate(zip(*sides, strict=True)):
        found += [*_neighbours(number, one, two), *_failed(number, one), *_failed(number, two)]
    side, places, world, engine, other_order, whole = look
    tally.looked(look, len(case.lines))
    answers = run(case, side, places, world, engine, other_order, None if whole else first)
    order = "order" if other_order else "place"
    return found + _different(sides[side], answers, order, f"side {side} at {places}, {world}")


def recorded(case: Case, places: Sequence[int], tally: Tally) -> list[Finding]:
    """What is answered from the record, and has other integers than its question makes of the rows; or a release in other words
    that is paid for again."""
    found: list[Finding] = []
    lines: list[tuple[int, Line, Line | None]] = [
        (number, line, None) for number, line in enumerate(case.lines)
    ]
    for one, other in case.pairs:
        lines += [(len(case.lines), one, None), (len(case.lines), other, one)]
    failed: set[str] = set()
    if case.people:
        case = replace(case, terms=tuple({**case.words, "max_groups": frames.MOST_GROUPS}.items()))
    with opened(case, 0, places, USUAL, "pandas", False) as (root, names, door):
        door.exact = True
        for number, line, same in lines:
            where = f"{line}" if same is None else f"{line} after {same}"
            answer = _asked(line, root, names, door, 0)
            if answer.error is not None:
                failed.add(str(line))
                if same is not None and str(same) not in failed:
                    found.append(
                        Finding("words", number, f"fails: {where}: {answer.facts['error']}")
                    )
                continue
            if same is not None and str(same) not in failed:
                tally.kinds["in other words"] += 1
                if any(asked.runs for asked in door.asked):
                    found.append(Finding("words", number, f"paid again: {where}"))
            for asked in list(door.asked):
                for place, release in enumerate(asked.releases or ()):
                    if not release.fresh:
                        tally.kinds["from the record"] += 1
                        what = _other_integers(asked, place, release)
                        found += [Finding("record", number, f"{what}: {where}")] if what else []
    return found


def _other_integers(asked: PricedQuestion, place: int, release: Any) -> str | None:
    """Where integers from the record are not those that the question makes of the rows."""
    session, question, plan = asked.session, asked.questions[place], release.plan
    unit = asked.units[place]
    if unit.people and (unit.groups or 0) < frames.MOST_GROUPS:
        return None  # each time that the data is read, a person's groups are drawn anew
    engine = session.data.engine(session.base.noise_key)
    with np.errstate(all="ignore"):
        raw = session.base.run_question(question, engine, plan, unit)
    if len(raw) != len(plan.parts) or len(release.raw) != len(raw):
        return None  # keys that were found, whose counts are noise alone
    for part, one, other in zip(plan.parts, release.raw, raw, strict=True):
        if adds(part) and not (one.shape == other.shape and bool(np.array_equal(one, other))):
            return f"{part.statistic}: {_first(one.tolist(), other.tolist())}"
    return None


def _failed(number: int, one: Answer) -> list[Finding]:
    """A question that fails behind the door, or with an error that is no one of the package's."""
    if isinstance(one.error, DataError):
        return [Finding("fails", number, f"{one.error}")]
    if one.error is not None and not isinstance(one.error, DPError):
        return [Finding("raw", number, f"{type(one.error).__name__}: {one.error}")]
    return []


def _neighbours(number: int, one: Answer, two: Answer) -> list[Finding]:
    found = [
        Finding(
            "differs",
            number,
            f"{fact}: {one.facts.get(fact)!r:.300} | {two.facts.get(fact)!r:.300}",
        )
        for fact in {**one.facts, **two.facts}
        if one.facts.get(fact) != two.facts.get(fact)
    ]
    if found:
        return found[:1]
    if len(one.calls) != len(two.calls):
        return [Finding("differs", number, f"calls: {len(one.calls)} | {len(two.calls)}")]
    for a, b in zip(one.calls, two.calls, strict=True):
        if a.integers.shape != b.integers.shape and a.keys is None and not a.part.noise.by_row:
            found.append(
                Finding("differs", number, f"shape: {a.integers.shape} | {b.integers.shape}")
            )
            continue
        moved, part = a.moved(b), a.part
        norm = part.noise.norm
        distance = norm.distance(np.array(moved, dtype=object)) if moved else 0
        allowed = norm.choose_distance(part.l1, part.l2_squared)
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
        if len(a.calls) != len(b.calls):
            if all(asked.runs for asked in (*a.asked, *b.asked)):  # and nothing is from the record
                return [Finding(kind, line, f"calls: {where}: {len(a.calls)} | {len(b.calls)}")]
            continue
        for x, y in zip(a.calls, b.calls, strict=True):
            if not x.equals(y):
                what = f"integers of {x.part.statistic}: {where}: {_first(x.known(), y.known())}"
                return [Finding(kind, line, what)]
    return []


def _engine(
    known: list[Answer], answers: list[Answer], kept: Sequence[int], where: str
) -> list[Finding]:
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
            if not x.equals(y):
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

    best = (
        replace(case, lines=(case.lines[finding.line],)) if finding.line < len(case.lines) else case
    )
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
    found = [
        replace(case, lines=case.lines[:i] + case.lines[i + 1 :])
        for i in range(len(case.lines))
        if len(case.lines) > 1
    ]
    found += [replace(case, more=())] if case.more else []
    found += [replace(case, table=one, looks=(look,), more=()) for one, look in case.more]
    found += [
        replace(case, pairs=case.pairs[:i] + case.pairs[i + 1 :]) for i in range(len(case.pairs))
    ]
    found += [replace(case, again=False)] if case.again else []
    found += [replace(case, exact=False)] if case.exact else []
    found += [replace(case, looks=looks[:i] + looks[i + 1 :]) for i in range(len(looks))]
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
        world = looks[0].world
        for i in range(len(world.sizes)):
            less = replace(world, sizes=world.sizes[:i] + world.sizes[i + 1 :])
            found.append(replace(case, looks=(looks[0]._replace(world=less),)))
    return found
