"""Two runs of the same questions on two neighbours: the same course, and integers as close as the plan says.

A `Recorder` is a session of its own, made from a raw frame, never from a session: it has its own budget and answers nobody
but the function that is being replayed. That function gets *noise alone*: mechanisms are given zeros in place of the exact
integers, so no answer of a replay depends on the frame, and a second run is given the very outputs of the first. The exact
integers are compared and dropped.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from html import escape
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpframe._errors import BadType, BadValue, Refused, SessionError
from dpframe._frame.frame import PrivateFrame
from dpframe._groups.unit import Unit
from dpframe._plans.plan import Plan
from dpframe._questions.question import Array, Question
from dpframe._session.data import ATTR, Data, sessions
from dpframe._session.opening import open_session, said
from dpframe._session.session import Session, sealed
from dpframe._statistics.engine import Engine
from dpframe.engines.fingerprints import hashes_of
from dpframe.engines.rows import Places
from dpframe.mechanisms import _sampling
from dpframe.mechanisms._base import loss_of

_PLAIN = (
    int,
    float,
    complex,
    str,
    bytes,
    np.generic,
    Fraction,
    Decimal,
    date,
    time,
    timedelta,
    range,
    slice,
    type(None),
)
_ROUNDING = 1 + 1e-9  # of an epsilon that is worked out a second time, in doubles


# Recording ----------------------------------------------------------------------------------------------------------------


class _Heard(NamedTuple):
    """One call of a mechanism: which part of the plan, what it was given, and what it put out."""

    part: int
    integers: Array
    output: Array
    keys: tuple[Any, ...] | None = None  # of keys that were found: whose integers they are
    reports: bool = False  # entries of rows in their order, or
    each: int | None = None  # so many of each person, and people in no order


@dataclass(frozen=True)
class _Asked:
    """One question with its calls, in their order."""

    plan: Plan
    unit: Unit
    calls: list[_Heard]


class Recorder(Session):
    """A session for the owner of a raw frame, which hands questions another noise: it remembers, and answers noise alone."""

    def __init__(self, model: Session, frame: pd.DataFrame, key: bytes, tape: list[_Asked]):
        self._drawn = key
        super().__init__(Data.of(frame, model.data.version), model.terms, model.terms.account.open())
        self._tape = tape
        self.heard: list[_Asked] = []
        self.unheard: list[str] = []

    def _key(self) -> bytes:
        """Whose groups count is decided by a keyed hash: the same one in both runs, and in the frames that are derived."""
        return self._drawn

    def check_followed(self) -> None:
        """What is given the rows, or another frame, would learn more from a replay than noise."""
        raise Refused(
            "replay follows query, explode, melt, merge and their like, and no function that is given the rows nor a frame that "
            "is not its own: replay what is asked of that frame itself."
        )

    def names_of_rows(self, frame: pd.DataFrame, places: Places) -> Array:
        """The same name for the same row in both runs, wherever it stands; of equal rows each has its own."""
        hashes = pd.Series(_hashes(frame), dtype="uint64")
        twins = hashes.groupby(hashes).cumcount().to_numpy()
        names = [
            hashlib.blake2b(f"{row} {i}".encode(), key=self._drawn, digest_size=8).digest()
            for row, i in zip(hashes.tolist(), twins.tolist(), strict=True)
        ]
        return (np.frombuffer(b"".join(names), dtype="<u8") >> np.uint64(1)).astype(np.int64)[places]

    def _run_question(self, question: Question, engine: Engine, plan: Plan, unit: Unit) -> tuple[Any, ...]:
        """Runs it as every session does. One that leaves noise out which is in its plan is not answered: `_run` says so."""
        self.heard.append(_Asked(plan, unit, []))
        raw = super()._run_question(question, engine, plan, unit)
        if {call.part for call in self.heard[-1].calls} != set(range(len(plan.parts))):
            self.unheard.append(str(question))
            raise AssertionError(f"replay cannot listen to {question}")
        return raw

    def _noise(
        self,
        plan: Plan,
        part: int,
        integers: Array,
        *,
        keys: Sequence[Any] | None = None,
        width: int | None = None,
    ) -> Array:
        """Noise alone: what was answered in the first run, or what comes of zeros. The integers that it is to be added to are
        kept from the answer, and compared."""
        calls, place = self.heard[-1].calls, len(self.heard) - 1
        first = self._tape[place].calls if place < len(self._tape) and self._tape[place].plan == plan else []
        heard = _Heard(part, integers.copy(), integers)
        if keys is not None:  # whose integers a threshold is given; which keys there are is the frame's
            output = self._hidden(plan, part, integers)
            calls.append(heard._replace(output=output, keys=tuple(keys)))
            return output
        known = first[len(calls) : len(calls) + 1]
        same = known and known[0].integers.shape == integers.shape
        output = known[0].output if same else super()._noise(plan, part, np.zeros_like(integers), width=width)
        if plan.parts[part].noise.by_row:
            unit = self.heard[-1].unit
            each = unit.reach(None)[0] if unit.people else None
            heard = heard._replace(reports=True, each=each)
        calls.append(heard._replace(output=output))
        return output.copy()

    @staticmethod
    def _hidden(plan: Plan, part: int, integers: Array) -> Array:
        """Counts that show none of the keys: far below any threshold, and of the kind that the noise makes."""
        wide = integers.dtype == object or plan.parts[part].noise.form(()).kind == "O"
        return np.full(integers.shape, -(2**400) if wide else -(2**56), dtype=object if wide else np.int64)


# Comparing ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One call of a mechanism in both runs: how far apart its integers were, and how far the plan says they may be."""

    question: str
    statistic: str
    mechanism: str
    norm: str
    distance: int
    sensitivity: int

    @property
    def holds(self) -> bool:
        """Whether the distance is within the declared sensitivity."""
        return self.distance <= self.sensitivity


@dataclass(frozen=True)
class Replay:
    """What two runs on neighbouring frames showed. ``problems`` is empty where nothing is wrong *on these frames*.

    For the owner of the frames alone: distances are exact, and nothing here is private.
    """

    steps: tuple[Step, ...]
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.problems

    @property
    def table(self) -> pd.DataFrame:
        """A row a step."""
        names = [f.name for f in fields(Step)]
        return pd.DataFrame([[getattr(step, n) for n in names] for step in self.steps], columns=names)

    def _lines(self) -> list[str]:
        lines = [
            f"{s.question}: {s.statistic}: moved by {s.distance} of {s.sensitivity} ({s.norm})"
            for s in self.steps
        ]
        return [*lines, *(f"PROBLEM: {text}" for text in self.problems)] or ["nothing was asked"]

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in self._lines()) + "</ul>"


def replay(
    ask: Callable[[PrivateFrame], Any], frame: pd.DataFrame, neighbour: pd.DataFrame, **terms: Any
) -> Replay:
    """Run ``ask(p)`` on two neighbouring frames with the same outputs of all mechanisms, and compare what happened.

    *What it shows.* If ``ok``, then on these two frames: the same plans were priced in the same order, with integers of the
    same shapes; no exact integers were further apart than the sensitivity that their plan declares, in the norm that the
    mechanism goes by (L1 for Laplace noise, L2 for Gaussian noise, one score against another for choices); the noise was large
    enough for the price at that sensitivity; and ``ask`` returned the same, so that it learned nothing but outputs. By the
    theorems about the mechanisms the privacy loss between these two is then within the price. A broken sensitivity is found
    without statistics, if the frames are ones that show it: take the extremes.

    Answers inside a replay are noise around zero, whatever the frames. Frames with a session are refused, and nothing is charged
    anywhere. The exact distances in the result are not private.

    Parameters
    ----------
    ask
        A function of a `PrivateFrame` that asks whatever it likes; a later question may depend on earlier answers.
    frame, neighbour
        Two frames that differ in one person: who is added or removed, or replaced, as ``neighbors`` and ``unit`` say.
    terms
        The words of ``open``: ``epsilon``, ``unit``, ``bounds``, ... A ledger or an accountant is refused.

    >>> one = pd.DataFrame({"age": [30, 41]})
    >>> two = pd.DataFrame({"age": [30, 41, 110]})
    >>> replay(lambda p: (p.count(), p.sum("age")), one, two, epsilon=1, bounds={"age": (0, 110)})
    size(): rows: moved by 1 of 1 (L1)
    sum(age, bounds=(0, 110)): sum of age: moved by 110 of 110 (L1)
    """
    if not callable(ask):
        raise BadType("ask must be a function of a PrivateFrame, such as lambda p: p.count().")
    for word in ("ledger", "population", "because"):
        if terms.get(word) is not None:
            raise BadValue(
                f"{word}= is refused here: a replay keeps no ledger and has no budget of anybody's."
            )
    if terms.get("accountant") is not None and not isinstance(terms["accountant"], str):
        raise BadValue("accountant= must be a name here: a replay charges no accountant of anybody's.")
    models = [_model(side, terms) for side in (frame, neighbour)]
    if models[0].data.schema != models[1].data.schema:
        raise BadValue(
            "frame and neighbour must have the same columns, of the same dtypes and in the same order."
        )
    if not sealed("replay", _are_neighbours, models[0], models[1]):
        raise BadValue(
            f"frame and neighbour are not neighbours by neighbors={models[0].unit.neighbors!r}: they must differ in one person."
        )
    key = _sampling.random_bytes(8)
    first = Recorder(models[0], models[0].snapshot, key, [])
    second = Recorder(models[1], models[1].snapshot, key, first.heard)
    ends = [_run(ask, session) for session in (first, second)]
    return Replay(*_compare(first.heard, second.heard, ends))


def _model(side: Any, terms: dict[str, Any]) -> Session:
    """A session with these terms on a copy of the frame, which nobody else knows."""
    if not isinstance(side, pd.DataFrame):
        raise BadType(f"frame and neighbour must be DataFrames, not {type(side).__name__}.")
    if ATTR in side.attrs:
        raise SessionError("this frame has a session. Replay questions on frames that are made up.")
    session = open_session(side.copy(), **said((), terms))
    sessions.pop(session.name)
    return session


def _are_neighbours(one: Session, two: Session) -> bool:
    unit = one.unit
    if not unit.people:
        a, b = (Counter(_hashes(s.snapshot)) for s in (one, two))
        changes = sorted([(a - b).total(), (b - a).total()])
        return changes in ([0, 0], [1, 1]) if unit.replaces else changes in ([0, 0], [0, 1])
    people = [_people(s.snapshot, unit) for s in (one, two)]
    gone, new = ([i for i in x if i not in y] for x, y in (people, people[::-1]))
    changed = sum(people[0][i] != people[1][i] for i in people[0] if i in people[1])
    if unit.replaces:
        return (len(gone), len(new), changed) in ((0, 0, 0), (0, 0, 1), (1, 1, 0))
    return len(gone) + len(new) <= 1 and not changed


def _hashes(frame: pd.DataFrame) -> list[int]:
    """A hash of each row, alike for alike cells, whatever these are."""
    mixed = np.zeros(len(frame), dtype=np.uint64)
    for i in range(frame.shape[1]):
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + hashes_of(frame.iloc[:, i])
    hashes: list[int] = mixed.tolist()
    return hashes


def _people(frame: pd.DataFrame, unit: Unit) -> dict[int, Counter[int]]:
    ids = frame.iloc[:, [c.position for c in unit.people]]
    known = ids.notna().all(axis=1).to_numpy()
    counts: dict[int, Counter[int]] = {}
    for person, row in zip(_hashes(ids[known]), _hashes(frame[known]), strict=True):
        counts.setdefault(person, Counter())[row] += 1
    return counts


def _run(ask: Callable[[PrivateFrame], Any], session: Recorder) -> tuple[Any, Exception | None]:
    answer, raised = None, None
    try:
        answer = ask(PrivateFrame._of(session))
    except Refused:
        raise
    except Exception as error:
        raised = error
    if session.unheard:
        raise Refused(
            f"replay cannot listen to {session.unheard[0]}: it does not draw its noise by the parts of its plan."
        )
    return answer, raised


def _compare(
    one: Sequence[_Asked], two: Sequence[_Asked], ends: Sequence[tuple[Any, Exception | None]]
) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    (answer, error), (other, second) = ends
    if error is not None and repr(error) == repr(second):
        raise error
    steps, problems = [], []
    for a, b in zip(one, two, strict=False):
        if a.plan != b.plan:
            problems.append(
                f"the two frames lead to different plans: {a.plan.question} and {b.plan.question}"
            )
            break
        if list(map(_shape_heard, a.calls)) != list(map(_shape_heard, b.calls)):
            problems.append(f"{a.plan.question}: the shape of what was released depends on the frame")
            break
        for x, y in zip(a.calls, b.calls, strict=True):
            part = a.plan.parts[x.part]
            norm = part.noise.norm
            allowed, moved = norm.declared(part.l1, part.l2_squared), norm.distance(_moved(x, y))
            step = Step(a.plan.question, part.statistic, part.noise.name, norm.exact, moved, allowed)
            steps.append(step)
            if not step.holds:
                problems.append(
                    f"{step.question}: {step.statistic}: moved by {moved}, and {allowed} is declared ({norm.exact})"
                )
        problems += _underpriced(a)
    if len(one) != len(two) and not problems:
        problems.append(f"the two frames lead to different numbers of questions, {len(one)} and {len(two)}")
    if repr(error) != repr(second):
        problems.append("one frame answers where the other raises, or they raise different errors")
    elif not problems and not _same(answer, other):
        problems.append(
            "the function returned different things although all outputs were the same: it has seen data"
        )
    return tuple(steps), tuple(dict.fromkeys(problems))


def _shape_heard(call: _Heard) -> tuple[Any, ...]:
    """What must be the same in both runs: of keys that are found their number is not."""
    return call.part, call.integers.shape if call.keys is None else (*call.integers.shape[:-1], "keys")


def _moved(one: _Heard, two: _Heard) -> Array:
    """The difference of the integers of two calls; a key that only one has counts for nothing in the other."""
    x, y = one.integers.astype(object), two.integers.astype(object)
    if one.each is not None:
        people = [Counter(map(tuple, side.reshape(-1, one.each).tolist())) for side in (x, y)]
        return np.array([max((people[0] - people[1]).total(), (people[1] - people[0]).total())])
    if one.reports:
        return np.asarray(x != y, dtype=object)
    if one.keys is None or two.keys is None:
        return np.asarray(y - x)
    places = {key: i for i, key in enumerate(dict.fromkeys((*one.keys, *two.keys)))}
    moved = np.zeros((*x.shape[:-1], len(places)), dtype=object)
    moved[..., [places[key] for key in two.keys]] += y
    moved[..., [places[key] for key in one.keys]] -= x
    return moved


def _underpriced(asked: _Asked) -> list[str]:
    """Whether the noise is too small for the price at the sensitivity that is declared."""
    plan = asked.plan
    reports = max((call.each or 1 for call in asked.calls), default=1)  # of a person, each by itself
    moved = [(p.noise, p.noise.norm.declared(p.l1, p.l2_squared) * reports) for p in plan.parts]
    if any(distance and not noise.scale for noise, distance in moved):
        return [f"{plan.question}: no noise at all"]
    loss = loss_of(moved)
    epsilon = None if loss is None else loss.epsilon_at(plan.stated_at - plan.loss.failure)
    if epsilon is not None and float(epsilon) > plan.epsilon * _ROUNDING:
        return [
            f"{plan.question}: the noise gives epsilon {float(epsilon):.6g}, and {plan.epsilon:.6g} is charged"
        ]
    return []


def _same(one: Any, two: Any) -> bool:
    other: Any = two
    if isinstance(one, list | tuple):
        return type(one) is type(two) and len(one) == len(two) and all(map(_same, one, two))
    if isinstance(one, pd.Series | pd.DataFrame):
        return type(one) is type(two) and bool(one.equals(other))
    if isinstance(one, Mapping):
        return type(one) is type(two) and len(one) == len(two) and all(map(_same, one.items(), two.items()))
    if isinstance(one, set | frozenset):
        return type(one) is type(two) and one == two
    if isinstance(one, pd.Index):
        return type(one) is type(two) and bool(one.equals(other))
    if isinstance(one, np.ndarray):
        return type(one) is type(two) and np.array_equal(one, two)
    if isinstance(one, _PLAIN):
        return type(one) is type(two) and repr(one) == repr(two)
    return True  # objects of the function's own: nothing is known of their equality
