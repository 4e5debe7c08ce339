"""Running a program on both neighbours, with the same noise, and comparing all that anybody could see but the numbers.

*What must be equal.* Of each line: whether it answers, or which error it raises with which words; warnings; what it shows of
itself; the price and what is left of the budget; the plan; of an answer its type, index, columns, dtypes and length. At the
end the ledger. Keys that were found are by design the answer itself: where they differ, the later lines are not compared.

*What must not be.* An error that is not dpframe's own, and a text with a cell of the one person in whom the frames differ.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpframe import DPError, Plan
from dpframe._answers.accessor import Answer
from dpframe._answers.estimate import FloatEstimate, IntEstimate
from dpframe._frame.surface import PrivateColumn
from dpframe._questions.keysearch import Finding as internal_Finding
from dpframe._questions.keysearch import KeySearch
from dpframe._session.data import sessions
from dpframe.learn import LinearRegression, LogisticRegression
from dpframe.mechanisms import _sampling as mechanisms_sampling_module
from tests import internals
from tests.fuzz.cells import MARKS
from tests.fuzz.names import NAMES
from tests.fuzz.programs import Program

SLOW = 20.0  # seconds; no line of a small frame takes so long


@dataclass(frozen=True)
class Finding:
    """What went wrong, at which line of a program."""

    kind: str  # differs, raw, quotes, slow
    line: int
    what: str

    @property
    def signature(self) -> tuple[str, str]:
        """What a smaller program must show too."""
        return self.kind, self.what.split(":")[0]


# Noise -----------------------------------------------------------------------------------------------------------------------


class Noise:
    """Bytes that follow from a seed and the number of the line, so that both runs of a line draw the same."""

    def __init__(self, seed: int):
        self.seed = seed
        self.line(-1)

    def line(self, number: int) -> None:
        self.random = random.Random(f"{self.seed}|{number}")

    def __call__(self, n: int) -> bytes:
        return self.random.randbytes(n)


@contextmanager
def drawing(noise: Noise) -> Iterator[None]:
    before = mechanisms_sampling_module.random_bytes
    mechanisms_sampling_module.random_bytes = noise
    try:
        yield
    finally:
        mechanisms_sampling_module.random_bytes = before


# One run ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Seen:
    """All that anybody could see of one line, and what was found wrong by itself."""

    facts: dict[str, Any]
    texts: list[str]
    error: BaseException | None = None
    seconds: float = 0.0
    invented: list[Any] = field(default_factory=list)


@dataclass
class Run:
    """One side of a program."""

    lines: list[Seen]
    found: list[Any]  # of each line: the keys that were found until then
    session: Any = None


def run(program: Program, side: int, noise: Noise, folder: Path) -> Run:
    """Open a session on one frame and ask all lines."""
    done = Run([], [])
    searched: list[Any] = []
    searches = {kind: kind.run for kind in (KeySearch, internal_Finding)}

    def listening(self: Any, *args: Any, **words: Any) -> Any:
        raw = searches[type(self)](self, *args, **words)
        searched.append(repr(raw[0].tolist()))
        return raw

    frame = program.frame(side)
    names = {**NAMES, "df": frame}
    names["LEDGER"] = folder / "ledger.db"
    for kind in searches:
        kind.run = listening
    try:
        p = None
        with np.errstate(**({"all": "raise"} if program.strict else {})):
            for number, steps in enumerate(
                [[f"df.dp.open({program.words()})"], *([*i.steps, i.ask] for i in program.lines)]
            ):
                noise.line(number)
                names["p"] = p
                seen, last = _line(steps, names)
                _invented(program, side, steps, last, seen)
                done.lines.append(seen)
                done.found.append(list(searched))
                if number == 0:
                    if seen.error is not None:
                        break
                    p = last
                    done.session = p._session
            if p is not None:
                done.lines.append(_ending(p))
                done.found.append(list(searched))
    finally:
        for kind, own in searches.items():
            kind.run = own
        if done.session is not None and program.filed:
            done.session.close()
    return done


def _invented(program: Program, side: int, steps: list[str], value: Any, seen: Seen) -> None:
    """Texts that were found in a column of texts must stand in it."""
    asked = re.fullmatch(r"p\.unique\('(\w+)'.*\)", steps[-1])
    if asked is None or len(steps) > 1 or not isinstance(value, pd.Index):
        return
    column = next(
        (c for c in program.columns if c.name == asked[1] and c.kind.family == "text"), None
    )
    if column is not None:
        listed = [column.kind.cells[i] for i in column.cells[side]]
        cells = [c.decode(errors="replace") if isinstance(c, bytes) else c for c in listed]
        seen.invented = [label for label in value if label not in cells]


def _line(steps: list[str], names: dict[str, Any]) -> tuple[Seen, Any]:
    seen = Seen({}, [])
    value = None
    started = time.perf_counter()
    root = names["p"]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        internals.deaf_to_noise()
        try:
            for number, text in enumerate(steps):
                seen.facts["step"] = number
                value = eval(text, names)
                names["p"] = value
        except Exception as error:
            seen.error = error
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            seen.error = error
        if seen.error is None:
            try:
                _describe("answer", value, seen)
            except Exception as error:
                seen.error = error
    seen.seconds = time.perf_counter() - started
    for warning in heard:
        text = f"{warning.category.__name__}: {warning.message}"
        seen.facts.setdefault("warnings", []).append(text)
        seen.texts.append(text)
    if seen.error is not None:
        error: BaseException | None = seen.error
        chain = []
        while error is not None and len(chain) < 9:
            chain.append(f"{type(error).__name__}: {_text(error)}")
            error = error.__cause__ or error.__context__
        seen.facts["error"] = chain[0]
        seen.facts["chain"] = chain[1:]
        seen.texts += chain
    if root is not None:
        budget = root.budget
        seen.facts["budget"] = repr((budget.spent, budget.remaining, budget.fraction, str(budget)))
    return seen, value


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder of a name that texts may show: `_undrawn` takes it out of them."""
    root = Path("/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir())
    place = root / f"dpframe-fuzz-{random.SystemRandom().randrange(10**12):012d}"
    place.mkdir()
    try:
        yield place
    finally:
        shutil.rmtree(place)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as second:
        return f"its text raises {type(second).__name__}"


def _undrawn(text: str) -> str:
    """Without names that are drawn at random: in brackets that of what a function made, and the ledger's folder."""
    return re.sub(r"\([0-9a-f]{8}\)|dpframe-fuzz-\d{12}", "(drawn)", text)


def _name_kind(value: Any) -> str:
    """Return the name of an answer's class. Noise decides whether a Series is one that marks numbers."""
    shared = next(
        (kind for kind in (pd.Series, pd.DataFrame) if isinstance(value, kind)), type(value)
    )
    return shared.__name__


def _describe(place: str, value: Any, seen: Seen) -> None:
    """Facts of an answer that are public: all but its numbers."""
    facts = seen.facts
    own = (pd.Series, pd.DataFrame, pd.Index, list, dict)
    told = isinstance(value, own) or type(value).__module__.startswith("dpframe")
    # What was chosen among listed values is of whatever type that one has.
    facts[place] = _name_kind(value) if told else "chosen"
    if isinstance(value, Plan):
        facts[f"{place} plan"] = repr(value)
        seen.texts.append(str(value))
    elif isinstance(value, IntEstimate | FloatEstimate):
        facts[f"{place} plan"] = repr(value.plan)
        seen.texts.append(repr(value.plan))
    elif isinstance(value, pd.Series | pd.DataFrame):
        table_ = value.to_frame() if isinstance(value, pd.Series) else value
        facts[f"{place} index"] = _index(value.index)
        facts[f"{place} columns"] = _index(table_.columns)
        facts[f"{place} dtypes"] = [str(d) for d in table_.dtypes]
        facts[f"{place} name"] = repr(getattr(value, "name", None))
        answer = getattr(value, "dp", None)
        if isinstance(answer, Answer):
            facts[f"{place} plan"] = repr(answer.plan)
            seen.texts.append(repr(answer.plan))
    elif isinstance(value, pd.Index):
        facts[f"{place} index"] = _index(value)
    elif isinstance(value, list):
        facts[f"{place} length"] = len(value)
        for i, one in enumerate(value[:4]):
            if type(one).__module__.startswith(("dpframe", "pandas.core")):
                _describe(f"{place} {i}", one, seen)
    elif isinstance(value, LinearRegression | LogisticRegression):
        facts[f"{place} shape"] = repr(
            (np.shape(value.coef_), np.shape(value.intercept_), sorted(vars(value)))
        )
    elif type(value) is str and "\n" in value:
        facts[f"{place} text"] = value
        seen.texts.append(value)
    elif isinstance(value, PrivateColumn) or hasattr(value, "_session"):
        text = repr(value)
        facts[f"{place} text"] = text
        seen.texts += [text, str(getattr(value, "_repr_html_", str)())]


def _index(index: Any) -> Any:
    """Its labels as a set: counts may stand in their own order."""
    return [
        type(index).__name__,
        str(index.dtype),
        repr(list(index.names)),
        sorted(repr(i) for i in index),
        len(index),
    ]


def _ending(p: Any) -> Seen:
    seen = Seen({}, [])
    ledger = p.ledger.drop(columns=[c for c in p.ledger.columns if c in ("time", "when")])
    seen.facts["ledger"] = ledger.to_csv()
    declared = p.declarations.drop(columns=["time", "when"], errors="ignore").to_csv()
    seen.facts["declarations"] = declared
    seen.facts["text"] = repr(p)
    seen.texts += [
        seen.facts["ledger"],
        seen.facts["declarations"],
        repr(p),
        p._repr_html_(),
        repr(p._session),
    ]
    return seen


# Both ------------------------------------------------------------------------------------------------------------------------


def check(program: Program) -> list[Finding]:
    """What the two runs show. Empty where nothing is wrong."""
    noise = Noise(program.seed)
    before = set(sessions)
    try:
        with drawing(noise), _folder() as mine, _folder() as theirs, _folder() as third:
            one = run(program, 0, noise, mine)
            two = run(program, 1, noise, theirs)
            stale = _stale(program, one, noise, third)
    finally:
        for name in set(sessions) - before:
            sessions.pop(name)
    return [*_wrong(one), *_wrong(two), *_differences(program, one, two), *stale]


def _wrong(done: Run) -> list[Finding]:
    found = []
    for i, seen in enumerate(done.lines):
        if seen.error is not None and not isinstance(seen.error, DPError):
            found.append(
                Finding(
                    "raw",
                    i,
                    f"{type(seen.error).__name__} {_place(seen.error)}: {_text(seen.error)[:300]}",
                )
            )
        for text in seen.texts:
            # Not within a longer number: noise has digits of its own.
            seen_at = (re.search(rf"(?<![\d.]){re.escape(m)}(?!\d{{3}})", text) for m in MARKS)
            quoted = next((one for one in seen_at if one), None)
            if quoted is not None:
                mark, at = quoted[0], quoted.start()
                found.append(Finding("quotes", i, f"{mark}: {text[max(0, at - 150) : at + 60]}"))
                break
        if seen.invented:
            found.append(Finding("invents", i, f"a key that no cell is: {seen.invented!r:.200}"))
        if seen.seconds > SLOW:
            found.append(Finding("slow", i, f"{seen.seconds:.0f} s"))
    return found


def _verb(program: Program, line: int, step: int) -> str:
    """What the step of the line does, as a word."""
    if not 0 < line <= len(program.lines):
        return "open" if not line else "end"
    told = program.lines[line - 1]
    verbs = re.findall(r"\.([a-z_]+)\(", f".{[*told.steps, told.ask][step]}")
    return verbs[-1] if verbs else "?"


def _place(error: BaseException) -> str:
    """The innermost line of the library's own, so that one root is one kind of finding."""
    own = [f for f in traceback.extract_tb(error.__traceback__) if "/dpframe/" in f.filename]
    return f"in {Path(own[-1].filename).name} {own[-1].name}" if own else "outside"


def _stale(program: Program, one: Run, noise: Noise, folder: Path) -> list[Finding]:
    """A plan depends on the words that hold, not on those that held when the same was asked before."""
    lines = program.lines
    if len(lines) < 3 or lines[0] != lines[2] or ".open(" not in lines[1].ask:
        return []
    fresh = run(replace(program, lines=lines[1:3]), 0, noise, folder)
    plans = [
        done.lines[i].facts.get("answer plan") if len(done.lines) > i else None
        for done, i in ((one, 3), (fresh, 2))
    ]
    return (
        []
        if plans[0] == plans[1]
        else [Finding("stale", 3, f"plan: {plans[0]!r:.300} | {plans[1]!r:.300}")]
    )


def _differences(program: Program, one: Run, two: Run) -> list[Finding]:
    for i, (a, b) in enumerate(zip(one.lines, two.lines, strict=False)):
        if one.found[i] != two.found[i]:
            return []  # what was found is the answer, and what is asked next may depend on it
        for fact in {**a.facts, **b.facts}:
            x, y = (_undrawn(repr(r.facts.get(fact))) for r in (a, b))
            if x != y:
                step = min(a.facts.get("step", 0), b.facts.get("step", 0))
                raised = " against ".join(
                    type(r.error).__name__ for r in (a, b) if r.error is not None
                )
                where = _verb(program, i, step) + (raised and f", {raised}")
                told = "; ".join(f"{_text(r.error):.200}" for r in (a, b) if r.error is not None)
                return [
                    Finding(
                        "differs",
                        i,
                        f"{fact} ({where}): {x:.400} | {y:.400}" + (told and f"; {told}"),
                    )
                ]
    if len(one.lines) != len(two.lines):
        return [Finding("differs", 0, "length: of the runs")]
    return []
