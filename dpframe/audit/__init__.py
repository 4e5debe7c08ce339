"""Audits: how much privacy a release is *seen* to lose, for whoever holds the data or wrote the
release.

- `epsilon_lower_bound`, `from_draws`: a proven lower bound on the privacy loss of any function,
  with the event that shows it.
- `composition_experiment`: the adaptive game of Dwork, Rothblum and Vadhan (2010), to be played or
  audited.
- `replay`: a session's questions on two neighbouring frames, and how far apart their exact integers
  are.
- `distance`: in how many rows two tables differ, and so whether they are neighbours.
- `max_divergence`, `approximate_max_divergence`, `kl_divergence`, `loss_tail`: of laws that are
  known.

An audit finds a broken release. It cannot show that one is sound: that takes a proof. Nothing here
is private, and nothing is charged: use frames that are made up. `docs/how-to/audit-a-release.md`
has examples, `docs/guarantees/auditing.md` the proofs.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._errors import BadType, BadValue, PrivacyWarning, SessionError, progress
from dpframe._session.data import ATTR, marks, sessions
from dpframe._session.opening import scope
from dpframe.audit import _events
from dpframe.audit._divergences import (
    approximate_max_divergence,
    kl_divergence,
    loss_tail,
    max_divergence,
)
from dpframe.audit._events import Event
from dpframe.audit._reading import AnswerShape, View
from dpframe.audit._replay import Replay, Step, distance, replay
from dpframe.mechanisms import _sampling

__all__ = [
    "Event",
    "Experiment",
    "LowerBound",
    "Replay",
    "Step",
    "View",
    "approximate_max_divergence",
    "composition_experiment",
    "distance",
    "epsilon_lower_bound",
    "from_draws",
    "kl_divergence",
    "loss_tail",
    "max_divergence",
    "replay",
]


def __dir__() -> list[str]:
    return list(__all__)  # completion shows the public names alone


@dataclass(frozen=True)
class LowerBound:
    """The result of an audit: the release is not (e, delta)-private for any e below ``epsilon``,
    with confidence ``level``.

    ``event`` shows it, and ``counts`` says how often it was seen on the draws that tested it:
    (hits, draws) of the frame, then of the neighbour. 0 means that nothing was seen, not that there
    is nothing.
    """

    epsilon: float
    delta: float
    level: float
    event: Event
    counts: tuple[tuple[int, int], tuple[int, int]]

    def _rows(self) -> list[tuple[str, str]]:
        """Return the lines of the printed report, each as a heading and a text."""
        (p, n), (q, m) = self.counts
        return [
            (
                "epsilon",
                f"at least {self.epsilon:.6g}"
                + (f" at delta {self.delta:.3g}" if self.delta else ""),
            ),
            ("confidence", f"{self.level:.9g}"),
            ("event", str(self.event)),
            ("frame", f"{p} of {n} draws"),
            ("neighbour", f"{q} of {m} draws"),
        ]

    def __repr__(self) -> str:
        return "\n".join(f"{name:>12}  {text}" for name, text in self._rows())

    def _repr_html_(self) -> str:
        """Return the result as an HTML table, for notebooks."""
        body = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{escape(text)}</td></tr>"
            for name, text in self._rows()
        )
        return f"<table>{body}</table>"


def epsilon_lower_bound(
    release: Callable[[Any], object],
    frame: object,
    neighbour: object,
    *,
    n: int = 10_000,
    delta: object = 0,
    event: Callable[[Any], bool] | None = None,
    score: Callable[[Any], object] | None = None,
    level: float = 0.95,
) -> LowerBound:
    """Return a lower bound on the privacy loss of ``release`` between two neighbours, which holds
    with confidence ``level``.

    *Formal guarantee.* If ``release`` is (e, delta)-private and ``frame`` and ``neighbour`` are
    neighbours, the answer's ``epsilon`` is above e with probability at most 1 - ``level``, whatever
    the release. The event is chosen on the first half of the draws, and its two probabilities are
    bounded on the second half, each by the exact bound of Clopper and Pearson (1934) at half the
    risk (docs/guarantees/auditing.md). So a bound above what a release claims is evidence that the
    claim is false. For several audits at once, divide 1 - level among them.

    Parameters
    ----------
    release
        A function of a frame. It may return a number, a label, an array, a Series, a DataFrame, or a list or dict of these.
        Tables and dicts are compared label by label; which labels there are, and how many, is a part of the answer. Calls
        have to be independent of one another. A DataFrame is handed over as a deep copy of its own, so that a release may
        open a session on it or on frames made of it: ``lambda df: df.dp.open(1).count(epsilon=1)``. Such a session is
        forgotten after the call.
    frame, neighbour
        Two neighbours, made up for the purpose and as different as neighbours can be. A frame with a session is refused.
    n
        How often each side is drawn. The bound comes close to the truth as n grows; no bound is above ln(n) or so.
    delta
        The delta of the claim.
    event
        A function that says whether an answer is in a set you chose in advance. All draws test it then.
    score
        A function that takes all answers of a side, as a matrix with a row an answer if they are numbers and as a list
        if not (or if answers differ in their labels or length), and returns a number each: only thresholds of these numbers
        are tried. A good one is the likelihood ratio. It is tried on the first answers before the others are drawn.
    level
        The confidence.

    Examples
    --------
    >>> tell = lambda df: int(df["ill"].sum())  # no noise at all
    >>> one, two = pd.DataFrame({"ill": [0, 1]}), pd.DataFrame({"ill": [0, 1, 1]})
    >>> found = epsilon_lower_bound(tell, one, two, n=2000)
    >>> round(found.epsilon, 2), found.counts[0]
    (5.6, (0, 1000))
    """
    draws = _validate.positive_int(n, "n")
    if not callable(release):
        raise BadType("release must be a function of a frame.")
    for side in (frame, neighbour):
        if isinstance(side, pd.DataFrame) and ATTR in side.attrs:
            raise SessionError(
                "this frame has a session: an audit draws far more answers than a budget allows. Audit a frame that is made up."
            )
    with warnings.catch_warnings():
        # Nobody reads the thousands of answers, so nobody is told of each that it is noise.
        warnings.simplefilter("ignore", PrivacyWarning)
        first_draws = [draw_on_copy(release, side) for side in (frame, neighbour)]
        if score is not None:
            _events.check_score(score, *first_draws)
        frame_draws, neighbour_draws = (
            [first_draw, *(draw_on_copy(release, side) for _ in progress(draws - 1, "draws"))]
            for first_draw, side in zip(first_draws, (frame, neighbour), strict=True)
        )
    return from_draws(
        frame_draws, neighbour_draws, delta=delta, event=event, score=score, level=level
    )


def draw_on_copy(release: Callable[[Any], object], side: object) -> Any:
    """Run the release once on a deep copy of the frame, so that calls are independent. Sessions
    opened on the copy are forgotten afterwards."""
    if not isinstance(side, pd.DataFrame):
        return release(side)
    # Pickled, as a copy of pandas' own shares the index: what is opened in one call would be known
    # in the next.
    copy: pd.DataFrame = pickle.loads(pickle.dumps(side, protocol=5))
    columns, rows = marks(copy), copy.index
    with scope() as opened:
        try:
            return release(copy)
        finally:
            for session in opened:
                # Nobody else knows this copy, so nobody can ask its session again, nor that of a
                # frame which is gone. A session on any other frame, which existed before, stays.
                data = session.data
                if columns & data.marks or rows.is_(data.index) or data.root() is None:
                    sessions.pop(session.name, None)


def from_draws(
    one: Any,
    two: Any,
    *,
    delta: object = 0,
    event: Callable[[Any], bool] | None = None,
    score: Callable[[Any], Any] | None = None,
    level: float = 0.95,
) -> LowerBound:
    """Return the `epsilon_lower_bound` of answers drawn before: ``one`` from a frame, ``two`` from
    its neighbour. Each is a list of answers, or an array with a row for each draw.

    *Formal guarantee.* The same, for draws that are independent and, on each side, of one law.

    >>> coins = np.array([[i % 3 == 0] for i in range(9_000)], dtype=float)
    >>> found = from_draws(coins, 1 - coins)
    >>> 0.6 < found.epsilon < 0.7, str(found.event)
    (True, 'answer >= 1')
    """
    d, confidence = float(_validate.delta(delta)), _validate.level(level)
    _events.enough(one, two)
    if score is not None:
        _events.check_score(score, one[0], two[0])
    risk = float(1 - _validate.exact(level, "level"))
    if event is not None:
        if not callable(event):
            raise BadType("event must be a function that says whether an answer is in the set.")
        if isinstance(event, Event):
            tested = _events.prove(event, one, two, d, risk)
        else:
            stated = Event(
                "", ">=", 1.0, score=lambda draws: [float(bool(event(x))) for x in draws]
            )
            tested = _events.prove(stated, one, two, d, risk, both_ways=True)
    else:
        first, second = _events.halves(one), _events.halves(two)
        arrays = all(isinstance(side, np.ndarray) and side.ndim == 2 for side in (one, two))
        # The first half also decides how answers are read: the second has no part in the choice of
        # the event.
        shape = AnswerShape(one.shape[1]) if arrays else AnswerShape.of([*first[0], *second[0]])
        read = shape.read if score is None else lambda draws: _events.read_for_score(draws, shape)
        train = [read(side[0]) for side in (first, second)]
        chosen = _events.find(train[0], train[1], shape, d, score)
        tested = _events.prove(chosen, first[1], second[1], d, risk)
    return LowerBound(tested.epsilon, d, confidence, tested.event, tested.counts)


# The composition experiment -----------------------------------------------------------------------------------------------

Adversary = Callable[[View], tuple[Any, Any, Any]]


@dataclass(frozen=True)
class Experiment:
    """The game of `composition_experiment`. Call it with the bit to play once: it returns the
    adversary's `View`."""

    adversary: Adversary
    mechanisms: Mapping[Any, Callable[[Any], Any]]
    k: int
    neighbors: str | None = None
    unit: Any = None
    _checked: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    def __call__(self, b: int) -> View:
        """Play the experiment once for the secret bit ``b``, and return what the adversary has
        seen."""
        if isinstance(b, bool) or b not in (0, 1):
            raise BadValue(f"b is the bit of the experiment, 0 or 1, not {b!r}.")
        view = View(int.from_bytes(_sampling.random_bytes(8), "little"), ())
        for _ in range(self.k):
            *pair, name = self._move(view)
            self._check(*pair)
            view = View(view.coins, (*view.outputs, draw_on_copy(self.mechanisms[name], pair[b])))
        return view

    def _check(self, one: Any, two: Any) -> None:
        """Refuse two DataFrames that are not neighbours. The last accepted pair is not checked
        again."""
        tables = [isinstance(side, pd.DataFrame) for side in (one, two)]
        if not any(tables) or (
            self._checked and self._checked[0] is one and self._checked[1] is two
        ):
            return
        if not all(tables):
            raise BadType(
                f"the adversary's databases are neighbours: two DataFrames, not {type(one).__name__} and {type(two).__name__}."
            )
        check_neighbours(one, two, self.neighbors, self.unit)
        self._checked[:] = one, two

    def _move(self, view: View) -> tuple[Any, Any, Any]:
        """Return the adversary's next move: two databases and the name of a mechanism. Anything
        else is refused."""
        move = self.adversary(view)
        if not isinstance(move, tuple) or len(move) != 3:
            raise BadType(
                "the adversary returns two neighbouring databases and the name of a mechanism, as a tuple of three."
            )
        if move[2] not in self.mechanisms:
            raise BadValue(
                f"the adversary chose {move[2]!r}, which is not one of the mechanisms {list(self.mechanisms)}."
            )
        return move


def check_neighbours(
    one: pd.DataFrame, two: pd.DataFrame, neighbors: str | None, unit: object
) -> None:
    """Refuse two tables that are not neighbours. ``neighbors`` is the relation to check; None
    allows either. ``unit`` is the column that says whose a row is; None means a row is a person."""
    apart, same_length = distance(one, two), len(one) == len(two)
    if unit is None:
        added, replaced, whose = apart <= 1, apart == 0 or (apart == 2 and same_length), "one row"
    else:
        first, second = (_rows_by_person(side, unit) for side in (one, two))
        gone, new = len(first.keys() - second.keys()), len(second.keys() - first.keys())
        changed = sum(distance(first[who], second[who]) > 0 for who in first.keys() & second.keys())
        of_nobody = distance(*(_rows_of_nobody(side, unit) for side in (one, two)))
        added = not of_nobody and gone + new <= 1 and not changed
        replaced = not of_nobody and (gone, new, changed) in ((0, 0, 0), (0, 0, 1), (1, 1, 0))
        whose = "the rows of one person"
    allowed = {"add-remove": added, "replace-one": replaced, None: added or replaced}
    if not allowed[neighbors]:
        relation = "" if neighbors is None else f" for neighbors={neighbors!r}"
        raise BadValue(
            f"the adversary's two DataFrames are no neighbours{relation}: they are {apart} rows apart, and may differ "
            f"in {whose}. Where a person has several rows, name the column: composition_experiment(..., unit='id')."
        )


def _person_columns(frame: pd.DataFrame, unit: object) -> list[Hashable]:
    return _validate.column_names(
        unit if isinstance(unit, list) else [unit], dict.fromkeys(frame.columns)
    )


def _rows_by_person(frame: pd.DataFrame, unit: object) -> dict[Any, pd.DataFrame]:
    return dict(iter(frame.groupby(_person_columns(frame, unit), observed=True)))


def _rows_of_nobody(frame: pd.DataFrame, unit: object) -> pd.DataFrame:
    return frame[frame[_person_columns(frame, unit)].isna().any(axis=1)]


def composition_experiment(
    adversary: Adversary,
    mechanisms: Mapping[Any, Callable[[Any], object]] | Sequence[Callable[[Any], object]],
    k: int,
    *,
    neighbors: str | None = None,
    unit: object = None,
) -> Experiment:
    """Return the k-fold adaptive composition experiment (Dwork, Rothblum and Vadhan 2010), ready to
    be played.

    In each of k rounds the adversary sees its `View` so far and returns two neighbouring databases
    and the name of a mechanism (a key of ``mechanisms``, or a place in a list). It then sees that
    mechanism's answer on the database number b. A view has the answers, as ``outputs``, and 64
    random bits, as ``coins``, for an adversary that wants to choose at random.

    *Formal guarantee.* If each mechanism is e-private the view is k e-private in the bit b (basic
    composition), so that ``epsilon_lower_bound(experiment, 0, 1)`` is at most k e, with its
    confidence.

    Two DataFrames have to be neighbours, or an error says how far apart they are: in the relation
    ``neighbors=``, or in either where it is left out; with ``unit=``, the column that says whose a
    row is, in the rows of one person. Of databases of other types it is the adversary's word.

    >>> def flip(bit):  # randomized response that lies once in four times
    ...     return bit ^ (_sampling.random_bytes(1)[0] < 64)
    >>> game = composition_experiment(lambda view: (0, 1, "flip"), {"flip": flip}, k=2)
    >>> len(game(0).outputs)
    2
    >>> 1.4 < epsilon_lower_bound(game, 0, 1).epsilon < 2.2  # 2 ln 3 = 2.197
    True
    """
    if isinstance(mechanisms, Mapping):
        named = dict(mechanisms)
    elif isinstance(mechanisms, list | tuple):
        named = dict(enumerate(mechanisms))
    else:
        raise BadType(
            f"mechanisms must be a dict or a list of functions, not {type(mechanisms).__name__}."
        )
    if not callable(adversary) or not named or not all(map(callable, named.values())):
        raise BadType(
            "the adversary and the mechanisms must be functions, and there must be a mechanism."
        )
    if neighbors is not None:
        _validate.choice(neighbors, "neighbors", ("add-remove", "replace-one"))
    return Experiment(adversary, named, _validate.positive_int(k, "k"), neighbors, unit)
