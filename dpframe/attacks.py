"""Attacks on releases that look harmless: why noise is needed, and why it has to be enough.

They take what an attacker has (a public register, published rows, answers to questions) and return
what the attacker learns. None of them knows dpframe: the same function is run on exact answers and
on private ones. Notebook 08 and docs/explain/why.md run them all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpframe import _validate
from dpframe._errors import BadType, BadValue

__all__ = [
    "Difference",
    "Participation",
    "a_few_rows",
    "alone",
    "best_guess",
    "difference",
    "link",
    "participation",
    "reconstruct",
]


def __dir__() -> list[str]:
    return list(__all__)  # completion shows the public names alone


LARGE = (
    400_000  # cells of the question matrix beyond which a linear program takes more than seconds
)


# Tables without names -------------------------------------------------------------------------------------------------


def alone(frame: pd.DataFrame, on: Sequence[str]) -> pd.Series[bool]:
    """Return a mask of the rows that share their values in these columns with no other row. ``on``
    names the columns.

    >>> alone(pd.DataFrame({"zip": ["1", "1", "2"], "sex": ["F", "F", "F"]}), ["zip", "sex"]).tolist()
    [False, False, True]
    """
    return ~frame.duplicated(_columns(frame, on), keep=False)


def link(published: pd.DataFrame, register: pd.DataFrame, on: Sequence[str]) -> pd.DataFrame:
    """Return the published rows that fit exactly one person of the register, with what the register
    adds. This is the linkage attack.

    A row of the answer is a claim, not a proof: the person that fits may be missing from the
    register, and somebody else have the same values. Compare it with the truth to see how often it
    is right (nearly always, where the columns are fine).

    >>> voters = pd.DataFrame({"name": ["A. Reed", "C. Diaz"], "born": [1950, 1961], "zip": ["02138", "02139"]})
    >>> patients = pd.DataFrame({"born": [1961, 1970], "zip": ["02139", "02139"], "diagnosis": ["stroke", "flu"]})
    >>> link(patients, voters, on=["born", "zip"])
       born    zip diagnosis     name
    0  1961  02139    stroke  C. Diaz
    """
    columns = _columns(published, on)
    unique = register[alone(register, on)].dropna(subset=columns)  # an unknown value fits nobody
    fresh = [c for c in register.columns if c in columns or c not in published.columns]
    return published.merge(unique[fresh], on=columns, how="inner")


# Counts ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """Two counts that differ by one person, and what they tell about that person."""

    everyone: float
    others: float

    @property
    def found(self) -> float:
        """The answer: 1 if the person has it and 0 if not, where the counts are exact."""
        return self.everyone - self.others


def difference(ask: Callable[[str], float], secret: str, person: str) -> Difference:
    """Count who has a secret, with and without one person: the differencing attack.

    Each count is about many people and looks harmless. ``ask`` answers a condition with a count;
    ``person`` is a condition that holds for one row.

    >>> df = pd.DataFrame({"born": [1950, 1961, 1961], "ill": [True, False, True]})
    >>> difference(lambda condition: len(df.query(condition)), secret="ill", person="born == 1950")
    Difference(everyone=2, others=1)
    """
    for condition, name in ((secret, "secret"), (person, "person")):
        if not isinstance(condition, str):
            raise BadType(f"{name} is a condition as a string, not {type(condition).__name__}.")
    return Difference(ask(f"({secret})"), ask(f"({secret}) and not ({person})"))


def reconstruct(
    subsets: ArrayLike, answers: ArrayLike, method: Literal["auto", "lp", "least squares"] = "auto"
) -> NDArray[np.bool_]:
    """Return a guess of everybody's secret bit from noisy counts over sets of people. This is the
    reconstruction attack (Dinur and Nissim 2003).

    ``subsets`` has a row a question and a column a person, and says who is asked about; ``answers``
    are the noisy numbers of those who have the secret (``subsets @ secret.astype(int)`` plus noise:
    of two arrays of bools ``@`` would be "or", and such answers are refused). The attack looks for
    fractions of people between 0 and 1 that agree best with the answers, and rounds them. With
    random subsets and noise well below sqrt(n) nearly all bits come out right; that is a theorem of
    the paper about any mechanism, and no property of this code.

    ``"lp"`` is the linear program of the paper, for the least largest error: best where noise has a
    limit. ``"least squares"`` is better where noise has long tails, and takes millions of cells.
    ``"auto"`` takes the linear program while that is a matter of seconds.

    >>> from dpframe.datasets import subsets
    >>> secret = np.array([1, 0, 0, 1, 1, 0, 1, 0], dtype=bool)
    >>> asked = subsets(8, 40)
    >>> bool((reconstruct(asked, asked @ secret.astype(int)) == secret).all())
    True
    """
    chosen, counts = np.asarray(subsets), np.asarray(answers, dtype=np.float64)
    if chosen.ndim != 2 or counts.shape != chosen.shape[:1]:
        raise BadValue(
            "subsets must be a matrix with a row for each answer and a column for each person, not of shape "
            f"{chosen.shape} for {counts.shape}."
        )
    if np.asarray(answers).dtype == bool:
        raise BadType(
            "answers are counts, and these are True or False: numpy's asked @ secret of two arrays of bools says whether "
            "anybody has it, not how many. Write asked @ secret.astype(int)."
        )
    if not np.isfinite(counts).all():
        raise BadValue("answers must be finite numbers.")
    if _validate.choice(method, "method", ("auto", "lp", "least squares")) == "auto":
        method = "lp" if chosen.size <= LARGE else "least squares"
    matrix = chosen.astype(np.float64)
    solution = (
        _program(matrix, counts)
        if method == "lp"
        else np.linalg.lstsq(matrix, counts, rcond=None)[0]
    )
    return np.asarray(solution > 0.5)


def _program(subsets: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return fractions x in [0, 1] with the least t such that every |subsets @ x - counts| is at
    most t. A linear program finds them, one fraction for each person."""
    from scipy.optimize import linprog

    people = subsets.shape[1]
    slack = np.ones((len(counts), 1))
    solved = linprog(
        np.append(np.zeros(people), 1.0),
        A_ub=np.block([[subsets, -slack], [-subsets, -slack]]),
        b_ub=np.concatenate([counts, -counts]),
        bounds=[(0, 1)] * people + [(0, None)],
        method="highs",
    )
    if solved.x is None:
        # There is a solution whatever was told: answers that are no numbers are turned away before.
        raise BadValue(f"the linear program was not solved: {solved.message}")
    return np.asarray(solved.x[:people])


# Promises, and false promises ------------------------------------------------------------------------------------------


def a_few_rows(frame: pd.DataFrame, rows: int, seed: int = 0) -> pd.DataFrame:
    """Return a few rows drawn at random, as if they could just be published. This mechanism is not
    private, and is for `link` to attack.

    It is (0, rows/n)-private, which shows what a delta of that size allows: with that chance
    everything about a person is published, and what is published could not have been without that
    person, so no epsilon bounds it.

    >>> a_few_rows(pd.DataFrame({"x": [1, 2, 3]}), 2).shape
    (2, 1)
    """
    return frame.sample(min(_validate.positive_int(rows, "rows"), len(frame)), random_state=seed)


@dataclass(frozen=True)
class Participation:
    """The same release with a person and without; what both teach about that person is the reader's
    arithmetic."""

    taking_part: Any
    staying_out: Any


def participation(
    release: Callable[[pd.DataFrame], object], frame: pd.DataFrame, person: object
) -> Participation:
    """Return what a release says on the frame, and on the frame without one row. ``person`` is the
    label of that row.

    If both teach the same about the person, the release did not use the person's row to teach it:
    the harm, if there is one, comes of the truth about people like them. Nothing that is useful can
    prevent that, and differential privacy does not promise it (Dwork, McSherry, Nissim and Smith
    2006 have the definition for what can be promised instead).

    >>> df = pd.DataFrame({"smoker": [True, True, False], "ill": [True, False, False]})
    >>> participation(lambda study: float(study.loc[study["smoker"], "ill"].mean()), df, person=2)
    Participation(taking_part=0.5, staying_out=0.5)
    """
    if not frame.index.is_unique or person not in frame.index:
        raise BadValue("person must be the label of one row of the frame.")
    return Participation(release(frame), release(frame.drop(index=person)))


def best_guess(epsilon: float) -> float:
    """Return the probability with which the best attacker guesses a fair bit after an
    epsilon-private release: e^eps / (1 + e^eps).

    It bounds every attack on one row that is replaced by its opposite, whatever else the attacker
    knows; where a release is private in rows that are added or removed, turning a bit takes two of
    those, and so twice the epsilon.

    >>> [round(best_guess(e), 2) for e in (0, 0.1, 1, 10)]
    [0.5, 0.52, 0.73, 1.0]
    """
    value = _validate.real(epsilon, "epsilon")
    if value < 0:
        raise BadValue(f"epsilon must not be negative, and {value:g} is.")
    return float(1 / (1 + np.exp(-value)))


def _columns(frame: pd.DataFrame, on: Sequence[str]) -> list[Hashable]:
    if isinstance(on, str) or not list(on):
        raise BadValue("on= must be a list of at least one column that both tables have.")
    return _validate.column_names(on, list(frame.columns))
