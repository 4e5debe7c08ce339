"""Events in which two sets of draws differ, and the losses that their frequencies prove
(docs/guarantees/auditing.md)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe._errors import BadType, BadValue
from dpframe._types import Array
from dpframe.audit._reading import THERE, AnswerShape, unhashable

Floats = NDArray[np.float64]
Score = Callable[[Any], Any]
_COMPONENTS = 24  # numbers of an answer that are put together with others
_COLUMNS = 512  # numbers of an answer that are tried alone
_LAST = "last binary digit of "
_ZERO = 99.0  # stands for the last binary digit of 0
_CHOOSING = 1e-3  # the risk at which candidates are compared; no claim rests on it
_CAUTION = 1e-9  # relative, far above the error of scipy's inverse of the incomplete beta function


# Events --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """A set of answers: those whose ``what`` stands in a relation to a threshold, or a set of
    labels.

    Call it with an answer to learn whether it is in the set; give it as ``event=`` to test it on
    new draws.
    """

    what: str
    relation: str
    threshold: float
    labels: tuple[Any, ...] = ()
    of_neighbour: bool = False  # whether it is the neighbour that makes it likely
    shape: AnswerShape | None = field(default=None, repr=False, compare=False)
    score: Score | None = field(default=None, repr=False, compare=False)
    given: bool = field(
        default=False, repr=False, compare=False
    )  # whether the score is the caller's own

    def __call__(self, answer: object) -> bool:
        return bool(self.hits([answer])[0])

    def hits(self, draws: object) -> NDArray[np.bool_]:
        """Return a mask of the draws that are in the event. ``draws`` are answers of one side of an
        audit."""
        assert self.score is not None
        read = (
            draws
            if self.shape is None
            else read_for_score(draws, self.shape)
            if self.given
            else self.shape.read(draws)
        )
        with np.errstate(all="ignore"):
            values = _clean(self.score(read))
        if self.relation == ">=":
            return values >= self.threshold
        return values <= self.threshold if self.relation == "<=" else values == self.threshold

    def __str__(self) -> str:
        """Return the event in words, such as ``answer >= 3``."""
        if not self.what:
            return "the event that was given"
        if self.labels:
            labels_text = ", ".join(map(repr, self.labels[:8])) + (
                ", ..." if len(self.labels) > 8 else ""
            )
            return (
                f"answer in {{{labels_text}}}"
                if len(self.labels) > 1
                else f"answer == {labels_text}"
            )
        if self.what.endswith(THERE):
            is_there = self.threshold == 1 if self.relation == "==" else self.relation == ">="
            return self.what if is_there else self.what.removesuffix(THERE) + " is not there"
        if self.what.startswith(_LAST):
            return self._of_the_last_digit()
        return f"{self.what} {self.relation} {self.threshold:.6g}"

    def _of_the_last_digit(self) -> str:
        if self.threshold >= _ZERO:
            return f"{self.what.removeprefix(_LAST)} is {'anything' if self.relation == '<=' else '0 or no number'}"
        more = {"<=": " or less", ">=": " or more (or no such number)", "==": ""}[self.relation]
        return f"{self.what} is worth 2**{self.threshold:.0f}{more}"


def _clean(values: object) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    # An answer that is no number is an answer like any other.
    return np.where(np.isnan(numbers), np.inf, numbers)


def low_bit(values: Any) -> Floats:
    """Return the exponent of the last binary digit of each number: 0 for odd integers, negative for
    fractions. Audits try it, since sloppy noise leaks through last digits."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    digits = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    last = digits & -digits
    return np.where(digits == 0, _ZERO, exponent - 53 + np.log2(np.maximum(last, 1)))


def _last_bit(i: int) -> Score:
    return lambda draws: low_bit(draws[:, i])


def _difference(a: int, b: int) -> Score:
    return lambda draws: draws[:, a].astype(np.float64) - draws[:, b].astype(np.float64)


def _column(i: int) -> Score:
    return lambda draws: draws[:, i].astype(np.float64)


def _scores(
    names: list[str], frame_draws: object, neighbour_draws: object
) -> list[tuple[str, Score]]:
    """Return the functions of an answer whose thresholds an audit tries as events, each with its
    name.

    They are the numbers of an answer, named by ``names``; the last bits of some; their sum; the
    differences of neighbouring ones; and a likelihood ratio that is fitted to these draws.
    """
    size = len(names)
    scores: list[tuple[str, Score]] = [(names[i], _column(i)) for i in range(min(size, _COLUMNS))]
    # Lengths, labels and whether something is there have no digits to look at, and no sum.
    components = [
        i for i, name in enumerate(names) if name.startswith("answer") and not name.endswith(THERE)
    ]
    components = components[:_COMPONENTS]
    for i in components[:6]:
        scores.append((_LAST + names[i], _last_bit(i)))
    if size > 1:
        scores.append(
            ("sum of the answer", lambda d: np.nansum(d[:, components].astype(np.float64), axis=1))
        )
        for a, b in itertools.pairwise(components):
            scores.append((f"{names[a]} - {names[b]}", _difference(a, b)))
        scores.append(
            (
                "fitted likelihood ratio of the answer",
                fit_likelihood_ratio(frame_draws, neighbour_draws),
            )
        )
    return scores


def fit_likelihood_ratio(frame_draws: Any, neighbour_draws: Any) -> Score:
    """Return a function that scores answers by how much more likely they are for the frame than for
    its neighbour.

    The score is a log-likelihood ratio. Histograms of the draws estimate it for each number of an
    answer, as if numbers were independent, and the ratios are added. A ratio that chance may
    explain counts as 0.
    """
    tables = []
    for i in range(min(frame_draws.shape[1], _COMPONENTS)):
        a, b = (_clean(side[:, i]) for side in (frame_draws, neighbour_draws))
        edges = np.unique(
            np.quantile(np.concatenate([a, b]), np.linspace(0, 1, 25)[1:-1], method="nearest")
        )
        frame_counts, neighbour_counts = (
            np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) + 0.5 for x in (a, b)
        )
        ratio = np.log(frame_counts / len(a)) - np.log(neighbour_counts / len(b))
        clear = np.abs(ratio) > 2 * np.sqrt(1 / frame_counts + 1 / neighbour_counts)
        tables.append((edges, np.where(clear, ratio, 0.0)))

    def score(draws: Any) -> Any:
        parts = [
            table[np.searchsorted(e, _clean(draws[:, i]))] for i, (e, table) in enumerate(tables)
        ]
        return np.round(np.sum(parts, axis=0), 9)

    return score


def rank_labels(frame_labels: list[Any], neighbour_labels: list[Any]) -> tuple[list[Any], Score]:
    """Return all labels sorted by how much more often the frame gave them than its neighbour did.
    The second result is a function from labels to their ranks, NaN for unseen ones."""
    counts: dict[Any, list[float]] = {}
    try:
        for side, labels in enumerate((frame_labels, neighbour_labels)):
            for label in labels:
                counts.setdefault(label, [0.5, 0.5])[side] += 1
    except TypeError:
        raise unhashable() from None
    order = sorted(counts, key=lambda x: (counts[x][0] / counts[x][1], repr(x)))
    place = {label: i for i, label in enumerate(order)}
    return order, lambda labels: [place.get(label, math.nan) for label in labels]


# Finding and testing -----------------------------------------------------------------------------------------------------


class TestedEvent(NamedTuple):
    """An event, how often it was seen, and the loss that this proves."""

    event: Event
    counts: tuple[tuple[int, int], tuple[int, int]]
    epsilon: float


def find(
    frame_draws: Any, neighbour_draws: Any, shape: AnswerShape, delta: float, score: Score | None
) -> Event:
    """Return the event that shows the largest privacy loss on these draws, in either direction.

    An event is a statement about an answer, such as "its score is at least 3". The draws are
    answers for the frame and for its neighbour, and ``shape`` tells how they are read. Each of many
    thresholds is tried for each score, with the relations >=, <= and ==. ``delta`` is that of the
    claimed guarantee. ``score`` is a user's function of answers; without one, many functions are
    tried. Labels are ranked, so that an event is a set of labels.
    """
    labels: list[Any] = []
    if score is not None:
        candidates = [("score", score)]
    elif shape.numbers is None:
        labels, ranks = rank_labels(frame_draws, neighbour_draws)
        candidates = [("label", ranks)]
    else:
        candidates = _scores(shape.names(), frame_draws, neighbour_draws)
    best, event = (
        -math.inf,
        Event(
            candidates[0][0], ">=", -math.inf, (), False, shape, candidates[0][1], score is not None
        ),
    )
    with np.errstate(all="ignore"):
        for name, number in candidates:
            a, b = _clean(number(frame_draws)), _clean(number(neighbour_draws))
            both = np.concatenate([a, b])
            grid = np.linspace(0, 1, 41)
            thresholds = np.unique(both[np.isfinite(both)]) if labels else both
            if not labels or len(thresholds) > 2000:
                thresholds = np.unique(np.quantile(thresholds, grid, method="nearest"))
            for relation, p, q in zip(
                (">=", "<=", "=="), hits(a, thresholds), hits(b, thresholds), strict=True
            ):
                for swapped in (False, True):
                    losses = (
                        loss(q, len(b), p, len(a), delta, _CHOOSING)
                        if swapped
                        else loss(p, len(a), q, len(b), delta, _CHOOSING)
                    )
                    top = int(np.argmax(losses))
                    if losses[top] > best:
                        best = float(losses[top])
                        event = Event(
                            name,
                            relation,
                            float(thresholds[top]),
                            (),
                            swapped,
                            shape,
                            number,
                            score is not None,
                        )
    if labels and math.isfinite(event.threshold):
        rank = int(event.threshold)
        chosen = (
            labels[rank : rank + 1]
            if event.relation == "=="
            else labels[rank:]
            if event.relation == ">="
            else labels[: rank + 1]
        )
        inside = frozenset(chosen)

        def within(read: Any) -> list[float]:
            return [float(label in inside) for label in read]

        return Event("label", ">=", 1.0, tuple(chosen), event.of_neighbour, shape, within)
    return event


def prove(
    event: Event,
    frame_draws: Any,
    neighbour_draws: Any,
    delta: float,
    risk: float,
    both_ways: bool = False,
) -> TestedEvent:
    """Return the privacy loss that these draws prove for an event, except with probability
    ``risk``. The draws must have had no part in choosing the event. ``both_ways`` tries both
    directions at half the risk each."""
    counts = [(int(event.hits(side).sum()), len(side)) for side in (frame_draws, neighbour_draws)]
    ways = [event.of_neighbour] if not both_ways else [False, True]
    proven = []
    for swapped in ways:
        (p, n), (q, m) = counts[::-1] if swapped else counts
        proven.append(float(loss(np.array([p]), n, np.array([q]), m, delta, risk / len(ways))[0]))
    return TestedEvent(event, (counts[0], counts[1]), max(0.0, *proven))


def hits(values: Floats, thresholds: Array) -> tuple[Array, Array, Array]:
    """Return the numbers of values at least, at most, and exactly at each threshold."""
    values = np.sort(values)
    below, up_to = (np.searchsorted(values, thresholds, side=side) for side in ("left", "right"))
    return len(values) - below, up_to, up_to - below


def loss(p: object, n: int, q: object, m: int, delta: float, risk: float) -> Floats:
    """Return ln((P - delta) / Q) with P and Q replaced by their Clopper-Pearson bounds, at half the
    risk each."""
    low, high = at_least(p, n, risk / 2), at_most(q, m, risk / 2)
    return np.where(low > delta, np.log(np.maximum(low - delta, 1e-300) / high), -np.inf)


def at_least(successes: object, n: int, risk: float) -> Floats:
    """Return a lower bound on a probability from its successes in n trials (Clopper and Pearson
    1934). It fails with probability ``risk`` at most."""
    from scipy.special import betaincinv

    k = np.asarray(successes)
    return np.where(k > 0, betaincinv(np.maximum(k, 1), n - k + 1, risk), 0.0) * (1 - _CAUTION)


def at_most(successes: object, n: int, risk: float) -> Floats:
    """Return an upper bound on a probability from its successes in n trials (Clopper and Pearson
    1934). It fails with probability ``risk`` at most."""
    from scipy.special import betainccinv

    k = np.asarray(successes)
    bounds = np.where(k < n, betainccinv(k + 1, np.maximum(n - k, 1), risk), 1.0)
    return np.minimum(bounds * (1 + _CAUTION), 1.0)


def read_for_score(draws: Any, shape: AnswerShape) -> Floats | list[Any]:
    """Return the draws as a caller's score gets them: a matrix if answers are rows of the same
    numbers, else a list."""
    return shape.read(draws) if shape.numbers is None or shape.regular else list(draws)


def check_score(score: object, frame_answer: object, neighbour_answer: object) -> None:
    """Refuse a user's score function that fails on the first answers, before thousands are drawn.
    It must take many answers and return a number for each."""
    if not callable(score):
        raise BadType(
            "score must be a function that takes all answers of a side and returns a number each."
        )
    shape = AnswerShape.of([frame_answer, neighbour_answer])
    for answers in (
        [frame_answer, neighbour_answer],
        [frame_answer, neighbour_answer, frame_answer],
    ):
        hint = (
            f"score= takes all answers of a side at once, {describe_draws(answers, shape)}, and returns a number each; "
            f"of {len(answers)} answers it"
        )
        try:
            with np.errstate(all="ignore"):
                scores = np.asarray(score(read_for_score(answers, shape)))
        except Exception as error:
            raise BadType(f"{hint} raised {type(error).__name__}: {error}") from error
        if scores.shape != (len(answers),) or scores.dtype.kind not in "biuf":
            raise BadType(
                f"{hint} returned something of shape {scores.shape} and dtype {scores.dtype}."
            )


def describe_draws(answers: list[Any], shape: AnswerShape) -> str:
    """Return a text that says how a score function gets the draws: as a list, or as a matrix."""
    read = read_for_score(answers, shape)
    return (
        "as a list"
        if isinstance(read, list)
        else f"as a matrix with a row each and {read.shape[1]} columns"
    )


def halves(draws: Any) -> tuple[Any, Any]:
    return draws[: len(draws) // 2], draws[len(draws) // 2 :]


def enough(frame_draws: Any, neighbour_draws: Any) -> None:
    if min(len(frame_draws), len(neighbour_draws)) < 2:
        raise BadValue(
            "an audit needs at least two draws of each side: one half finds the event, the other tests it."
        )
