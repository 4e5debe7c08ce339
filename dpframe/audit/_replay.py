"""Two runs of the same questions on two neighbours: the same course, and integers as close as the
plan says.

A `Recorder` is a session made from a raw frame, never from another session: it has a budget of its
own and answers nobody but the function that is replayed. That function gets *noise alone*:
mechanisms add noise to zeros in place of the exact integers, so no answer of a replay depends on
the frame, and the second run gets the outputs of the first. The exact integers are compared and
dropped.
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
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from dpframe._errors import BadType, BadValue, Refused, SessionError
from dpframe._frame.accessor import frame_of_session
from dpframe._frame.frame import PrivateFrame
from dpframe._groups.unit import Unit
from dpframe._plans.plan import Plan
from dpframe._questions.question import Question
from dpframe._session.data import ATTR, Data, sessions
from dpframe._session.door import read_private
from dpframe._session.opening import name_arguments, open_session
from dpframe._session.session import Session
from dpframe._statistics.engine import Engine
from dpframe._types import Array, Json, Raw
from dpframe.engines.fingerprints import hashes_of
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


class _NoiseCall(NamedTuple):
    """One call of a mechanism: its part of the plan, its integers, and its output."""

    part: int
    integers: Array
    output: Array
    keys: tuple[Any, ...] | None = (
        None  # the keys that the integers belong to, where nobody listed them
    )
    reports: bool = False  # entries of rows in their order, or
    per_person: int | None = None  # integers of each person; people come in no order

    def change(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return self._replace(**changes)


@dataclass(frozen=True)
class _Replayed:
    """One question of a replay with its calls, in order."""

    plan: Plan
    unit: Unit
    calls: list[_NoiseCall]


class Recorder(Session):
    """A session on a raw frame that hands questions a recording noise: it keeps the integers, and
    answers are noise alone."""

    def __init__(self, model: Session, frame: pd.DataFrame, key: bytes, tape: list[_Replayed]):
        """Open a session on a frame that records exact integers instead of releasing them.
        ``model`` gives the terms of the session. ``tape`` has the questions of the first run, and
        ``key`` seeds the names of rows."""
        self._drawn, self._draws = key, 0
        super().__init__(
            Data.of(frame, model.data.version), model.terms, model.terms.account.open()
        )
        self._tape = tape
        self.recorded: list[_Replayed] = []
        self.unrecorded: list[str] = []

    def noise_key(self) -> bytes:
        """Draw a key of the hash that decides which groups of a person count: the same in both
        runs, and another at each draw."""
        return self._draw().digest()[:8]

    def _draw(self) -> hashlib.blake2b:
        """Return the hash that decides the next draw of this session. It depends on the draw's
        number and on no cell."""
        self._draws += 1
        return hashlib.blake2b(str(self._draws).encode(), key=self._drawn)

    def refuse_if_not_followed(self) -> None:
        """Refuse verbs that give a function the rows, or that take another frame. A replay could
        not tell what they learn."""
        raise Refused(
            "replay follows query, explode, melt, merge and their like, and no function that is given the rows nor a frame that "
            "is not its own: replay what is asked of that frame itself."
        )

    def draw_row_names(self) -> Array:
        """Return a pseudorandom name for each row, so that a row has the same name in both runs
        wherever it stands.

        Equal rows have different names. Each draw gives other names, as in every session. How often
        names are drawn, and which rows share a draw, is the code of `Session`.
        """
        hashes = pd.Series(_hashes(self.snapshot), dtype="uint64")
        twins = hashes.groupby(hashes).cumcount().to_numpy()
        drawn = self._draw()
        names = []
        for row, twin in zip(hashes.tolist(), twins.tolist(), strict=True):
            name = drawn.copy()
            name.update(f" {row} {twin}".encode())
            names.append(name.digest()[:8])
        return (np.frombuffer(b"".join(names), dtype="<u8") >> np.uint64(1)).astype(np.int64)

    def run_question(self, question: Question, engine: Engine, plan: Plan, unit: Unit) -> Raw:
        """Return the answer's arrays as every session does, and record the question. A question
        that does not draw all noise of its plan is refused."""
        self.recorded.append(_Replayed(plan, unit, []))
        raw = super().run_question(question, engine, plan, unit)
        if {call.part for call in self.recorded[-1].calls} != set(range(len(plan.parts))):
            self.unrecorded.append(str(question))
            raise AssertionError(f"replay cannot listen to {question}")
        return raw

    def _noise(
        self,
        plan: Plan,
        part: int,
        integers: Array,
        *,
        keys: Sequence[object] | None = None,
        width: int | None = None,
    ) -> Array:
        """Return noise alone as the output, and record the exact integers for comparison. The
        second run repeats the outputs of the first, so that only integers can differ."""
        calls, place = self.recorded[-1].calls, len(self.recorded) - 1
        first = (
            self._tape[place].calls
            if place < len(self._tape) and self._tape[place].plan == plan
            else []
        )
        call = _NoiseCall(part, integers.copy(), integers)
        if keys is not None:  # of a threshold: the frame decides which keys there are
            output = self._hidden(plan, part, integers)
            calls.append(call.change(output=output, keys=tuple(keys)))
            return output
        earlier = first[len(calls) : len(calls) + 1]
        matches = earlier and earlier[0].integers.shape == integers.shape
        output = (
            earlier[0].output
            if matches
            else super()._noise(plan, part, np.zeros_like(integers), width=width)
        )
        if plan.parts[part].noise.by_row:
            unit = self.recorded[-1].unit
            per_person = unit.reach(None)[0] if unit.people else None
            call = call.change(reports=True, per_person=per_person)
        calls.append(call.change(output=output))
        return output.copy()

    @staticmethod
    def _hidden(plan: Plan, part: int, integers: Array) -> Array:
        """Return counts far below any threshold, so that a replay shows no keys. They have the
        dtype that real noise would give."""
        wide = integers.dtype == object or plan.parts[part].noise.form(()).kind == "O"
        return np.full(
            integers.shape, -(2**400) if wide else -(2**56), dtype=object if wide else np.int64
        )


# Comparing ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One call of a mechanism in both runs: the distance of its integers, and the sensitivity that
    the plan declares."""

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
    """The result of two runs on neighbouring frames. ``problems`` is empty if nothing is wrong *on
    these frames*.

    For the owner of the frames alone: distances are exact, and nothing here is private.
    """

    steps: tuple[Step, ...]
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    @property
    def table(self) -> pd.DataFrame:
        """Table of the comparison, with a row for each call of a mechanism."""
        names = [f.name for f in fields(Step)]
        return pd.DataFrame(
            [[getattr(step, n) for n in names] for step in self.steps], columns=names
        )

    def _lines(self) -> list[str]:
        """Return the lines of the printed result: each comparison, then each problem."""
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
    ask: Callable[[PrivateFrame], object],
    frame: pd.DataFrame,
    neighbour: pd.DataFrame,
    **terms: object,
) -> Replay:
    """Run ``ask(p)`` on two neighbouring frames with the same outputs of all mechanisms, and
    compare what happened.

    *What it shows.* If ``ok``, then on these two frames: the same plans were priced in the same
    order, with integers of the same shapes; no exact integers were further apart than the
    sensitivity that their plan declares, in the norm that the mechanism goes by (L1 for Laplace
    noise, L2 for Gaussian noise, one score against another for choices); the noise was large enough
    for the price at that sensitivity; and ``ask`` returned the same, so that it learned nothing but
    outputs. By the theorems about the mechanisms the privacy loss between these two is then within
    the price. A broken sensitivity is found without statistics, if the frames are ones that show
    it: take the extremes.

    Answers inside a replay are noise around zero, whatever the frames. Frames with a session are
    refused, and nothing is charged anywhere. The exact distances in the result are not private.

    Parameters
    ----------
    ask
        A function of a `PrivateFrame` that asks whatever it likes; a later question may depend on earlier answers.
    frame, neighbour
        Two frames that differ in one person: who is added or removed, or replaced, as ``neighbors`` and ``unit`` say.
    terms
        The words of ``open``: ``epsilon``, ``unit``, ``bounds``, ... A ledger or an accountant is refused.

    Examples
    --------
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
        raise BadValue(
            "accountant= must be a name here: a replay charges no accountant of anybody's."
        )
    models = [_model(side, terms) for side in (frame, neighbour)]
    if models[0].data.schema != models[1].data.schema:
        raise BadValue(
            "frame and neighbour must have the same columns, of the same dtypes and in the same order."
        )
    if not read_private("replay", _are_neighbours, models[0], models[1]):
        raise BadValue(
            f"frame and neighbour are not neighbours by neighbors={models[0].unit.neighbors!r}: they must differ in one person."
        )
    key = _sampling.random_bytes(8)
    first = Recorder(models[0], models[0].snapshot, key, [])
    second = Recorder(models[1], models[1].snapshot, key, first.recorded)
    ends = [_run(ask, session) for session in (first, second)]
    return Replay(*_compare(first.recorded, second.recorded, ends))


def distance(frame: pd.DataFrame, other: pd.DataFrame) -> int:
    """Return the l1 distance of two tables as histograms: how many rows have to be removed and
    added to make one of the other.

    The histogram form of a table has an entry for each kind of row, the number of such rows; this
    is the sum of what the entries differ by. So the order of rows does not matter, nor do their
    labels. Neighbours of an add-remove session are at most 1 apart; where a row is replaced by
    another they are 2 apart. All missing cells of a column are alike. Columns have to be of the
    same dtypes: ``astype`` makes them so. Nothing here is private.

    >>> one = pd.DataFrame({"label": ["+", "+", "-", "-", "-"]})
    >>> distance(one, one[::-1]), distance(one, one.head(4)), distance(one, one.replace("-", "+"))
    (0, 1, 6)
    """
    for side in (frame, other):
        if not isinstance(side, pd.DataFrame):
            raise BadType(f"distance() takes two DataFrames, not {type(side).__name__}.")
    if list(frame.dtypes.items()) != list(other.dtypes.items()):
        raise BadValue(
            "two tables are compared row by row: they must have the same columns, of the same dtypes and in the same order."
        )
    removed, added = _changes(frame, other)
    return removed + added


def _changes(frame: pd.DataFrame, other: pd.DataFrame) -> tuple[int, int]:
    """Count the rows of the first table that the second does not have, and the reverse."""
    a, b = Counter(_hashes(frame)), Counter(_hashes(other))
    return (a - b).total(), (b - a).total()


def _model(side: pd.DataFrame, terms: Json) -> Session:
    """Return a session with the given ``open`` arguments on a copy of the frame. A frame that has a
    session is refused."""
    if not isinstance(side, pd.DataFrame):
        raise BadType(f"frame and neighbour must be DataFrames, not {type(side).__name__}.")
    if ATTR in side.attrs:
        raise SessionError("this frame has a session. Replay questions on frames that are made up.")
    session = open_session(side.copy(), **name_arguments((), terms))
    sessions.pop(session.name)
    return session


def _are_neighbours(first: Session, second: Session) -> bool:
    """Return whether the frames of two sessions differ in at most one row or person, as their unit
    defines it."""
    unit = first.unit
    if not unit.people:
        changes = sorted(_changes(first.snapshot, second.snapshot))
        return changes in ([0, 0], [1, 1]) if unit.replaces else changes in ([0, 0], [0, 1])
    people = [_people(s.snapshot, unit) for s in (first, second)]
    gone, new = ([i for i in x if i not in y] for x, y in (people, people[::-1]))
    changed = sum(people[0][i] != people[1][i] for i in people[0] if i in people[1])
    if unit.replaces:
        return (len(gone), len(new), changed) in ((0, 0, 0), (0, 0, 1), (1, 1, 0))
    return len(gone) + len(new) <= 1 and not changed


def _hashes(frame: pd.DataFrame) -> list[int]:
    """Return a hash of each row; rows with equal cells have equal hashes."""
    mixed = np.zeros(len(frame), dtype=np.uint64)
    for i in range(frame.shape[1]):
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + hashes_of(frame.iloc[:, i])
    hashes: list[int] = mixed.tolist()
    return hashes


def _people(frame: pd.DataFrame, unit: Unit) -> dict[int, Counter[int]]:
    """Return for each person how often they have each row, with hashes in place of people and rows.
    Rows without a person are left out."""
    ids = frame.iloc[:, [c.position for c in unit.people]]
    named = ids.notna().all(axis=1).to_numpy()
    counts: dict[int, Counter[int]] = {}
    for person, row in zip(_hashes(ids[named]), _hashes(frame[named]), strict=True):
        counts.setdefault(person, Counter())[row] += 1
    return counts


def _run(ask: Callable[[PrivateFrame], object], session: Recorder) -> tuple[Any, Exception | None]:
    """Call the user's function on a recording session, and return its answer and the error it
    raised, or None."""
    answer, raised = None, None
    try:
        answer = ask(frame_of_session(session))
    except Refused:
        raise
    except Exception as error:
        raised = error
    if session.unrecorded:
        raise Refused(
            f"replay cannot listen to {session.unrecorded[0]}: it does not draw its noise by the parts of its plan."
        )
    return answer, raised


def _compare(
    first_run: Sequence[_Replayed],
    second_run: Sequence[_Replayed],
    ends: Sequence[tuple[object, Exception | None]],
) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """Return the comparisons of two recorded runs, call by call, and the list of problems found.

    A call adds noise to exact integers. A comparison tells by how much these moved between the two
    frames, and how much the plan allows. ``ends`` has the answer and the error of each run. An
    error that both runs raise is raised.
    """
    (first_answer, first_error), (second_answer, second_error) = ends
    if first_error is not None and repr(first_error) == repr(second_error):
        raise first_error
    steps, problems = [], []
    for first, second in zip(first_run, second_run, strict=False):
        question = first.plan.question
        if first.plan != second.plan:
            problems.append(
                f"the two frames lead to different plans: {question} and {second.plan.question}"
            )
            break
        if list(map(_shape_of, first.calls)) != list(map(_shape_of, second.calls)):
            problems.append(f"{question}: the shape of what was released depends on the frame")
            break
        for one, other in zip(first.calls, second.calls, strict=True):
            part = first.plan.parts[one.part]
            norm = part.noise.norm
            allowed = norm.choose_distance(part.l1, part.l2_squared)
            moved = norm.distance(measure_move(one, other))
            step = Step(question, part.statistic, part.noise.name, norm.exact, moved, allowed)
            steps.append(step)
            if not step.holds:
                problems.append(
                    f"{step.question}: {step.statistic}: moved by {moved}, and {allowed} is declared ({norm.exact})"
                )
        problems += find_underpriced_noise(first)
    if len(first_run) != len(second_run) and not problems:
        problems.append(
            f"the two frames lead to different numbers of questions, {len(first_run)} and {len(second_run)}"
        )
    if repr(first_error) != repr(second_error):
        problems.append("one frame answers where the other raises, or they raise different errors")
    elif not problems and not _same(first_answer, second_answer):
        problems.append(
            "the function returned different things although all outputs were the same: it has seen data"
        )
    return tuple(steps), tuple(dict.fromkeys(problems))


def _shape_of(call: _NoiseCall) -> tuple[object, ...]:
    """Return what two runs must agree on in a call: which noisy vector of the plan it is, and the
    shape of its integers. The number of found keys may differ."""
    return call.part, call.integers.shape if call.keys is None else (
        *call.integers.shape[:-1],
        "keys",
    )


def measure_move(first: _NoiseCall, second: _NoiseCall) -> Array:
    """Return how far the integers of a call moved between two runs. A key that one run alone has
    counts as 0 in the other."""
    x, y = first.integers.astype(object), second.integers.astype(object)
    if first.per_person is not None:
        people = [
            Counter(map(tuple, side.reshape(-1, first.per_person).tolist())) for side in (x, y)
        ]
        return np.array([max((people[0] - people[1]).total(), (people[1] - people[0]).total())])
    if first.reports:
        return np.asarray(x != y, dtype=object)
    if first.keys is None or second.keys is None:
        return np.asarray(y - x)
    places = {key: i for i, key in enumerate(dict.fromkeys((*first.keys, *second.keys)))}
    moved = np.zeros((*x.shape[:-1], len(places)), dtype=object)
    moved[..., [places[key] for key in second.keys]] += y
    moved[..., [places[key] for key in first.keys]] -= x
    return moved


def find_underpriced_noise(question: _Replayed) -> list[str]:
    """Return a list with the problem of noise that is too small for its price, or an empty list."""
    plan = question.plan
    reports = max(
        (call.per_person or 1 for call in question.calls), default=1
    )  # of a person, each by itself
    moved = [
        (p.noise, p.noise.norm.choose_distance(p.l1, p.l2_squared) * reports) for p in plan.parts
    ]
    if any(distance and not noise.scale for noise, distance in moved):
        return [f"{plan.question}: no noise at all"]
    loss = loss_of(moved)
    epsilon = None if loss is None else loss.epsilon_at(plan.stated_at - plan.loss.failure)
    if epsilon is not None and float(epsilon) > plan.epsilon * _ROUNDING:
        return [
            f"{plan.question}: the noise gives epsilon {float(epsilon):.6g}, and {plan.epsilon:.6g} is charged"
        ]
    return []


def _same(first: object, second: object) -> bool:
    """Return whether the answers of two runs are equal. Objects of a user's own classes count as
    equal."""
    second_value: Any = second
    if isinstance(first, list | tuple):
        return (
            type(first) is type(second)
            and len(first) == len(second)
            and all(map(_same, first, second))
        )
    if isinstance(first, pd.Series | pd.DataFrame):
        return type(first) is type(second) and bool(first.equals(second_value))
    if isinstance(first, Mapping):
        return (
            type(first) is type(second)
            and len(first) == len(second)
            and all(map(_same, first.items(), second.items()))
        )
    if isinstance(first, set | frozenset):
        return type(first) is type(second) and first == second
    if isinstance(first, pd.Index):
        return type(first) is type(second) and bool(first.equals(second_value))
    if isinstance(first, np.ndarray):
        return type(first) is type(second) and np.array_equal(first, second)
    if isinstance(first, _PLAIN):
        return type(first) is type(second) and repr(first) == repr(second)
    return True  # objects of the user's classes: nothing is known of their equality
