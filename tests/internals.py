"""Every private name that a test uses, in one place: when a module moves, this file moves with it and no test does."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, NamedTuple

from dpframe._errors import PrivacyWarning
from dpframe._expr._parse import _ACROSS
from dpframe._frame.columns.numpy import _FUNCTIONS as NUMPY_FUNCTIONS
from dpframe._frame.columns.traced import _KNOWN as TRACED
from dpframe._groups.unit import Unit
from dpframe._plans import plan as plan_module
from dpframe._plans.aggregates import list_agg_names
from dpframe._plans.plan import Plan, note_reduced_epsilon
from dpframe._plans.price import _rank_cost as cost_of_price
from dpframe._questions.question import Question
from dpframe._session import recognition
from dpframe._session.session import Session
from dpframe._statistics.base import Statistic
from dpframe.accounting._filter import Price
from dpframe.engines.expressions import _NODES as NODES
from dpframe.mechanisms._base import Form, check
from dpframe.mechanisms.selection import _uniform
from dpframe.mechanisms.threshold import Threshold

NAMED = list_agg_names()
ACROSS = sorted(_ACROSS)


class Planned(NamedTuple):
    """A plan, and the statistics that it measures."""

    plan: Plan
    statistics: tuple[Statistic, ...]


def make_plan(
    question: Question,
    unit: Unit,
    price: Price,
    public_rows: int | None = None,
    declared: tuple[Any, ...] = (),
) -> Planned:
    """The plan of a question at a price, as a session makes it."""
    plan = note_reduced_epsilon(question.plan(unit, price, public_rows, declared), price)
    return Planned(plan, () if plan._draft is None else plan._draft.statistics)


def noise_of(plan: Plan) -> Any:
    """The noise that a session hands to a question."""
    return partial(Session._noise, object.__new__(Session), plan)


def fits(form: Form, array: Any) -> bool:
    """Whether an array is what a form declares, as the door checks it."""
    try:
        check([form], [array])
    except AssertionError:
        return False
    return True


levels = Threshold.levels


def forget_drafts() -> None:
    """Has plans made anew of questions that were asked before."""
    plan_module._DRAFTS.clear()


__all__ = [
    "ACROSS",
    "NAMED",
    "NODES",
    "NOISE",
    "NUMPY_FUNCTIONS",
    "QUIET",
    "TRACED",
    "Planned",
    "_uniform",
    "cost_of_price",
    "deaf_to_noise",
    "fits",
    "forget_drafts",
    "forget_tables",
    "levels",
    "make_plan",
    "noise_of",
]

# What answers say of numbers that are noise, which follows from what was released; `tests/answers/test_worth.py` listens to it.
# And what is said of a table that was opened before, as tests do; `tests/session/test_recognition.py` listens to that.
NOISE = (
    "this number is noise|numbers of this answer that|this will say nothing|no value of .* was found"
    "|second budget on a table opened before"
)

# The same as PYTHONWARNINGS, for programs that ask small questions and must print nothing else.
QUIET = (
    "ignore:this number is noise,ignore:numbers of this answer that,"
    "ignore:second budget on a table opened before"
)


def deaf_to_noise() -> None:
    """Adds a filter for the warning of a number that is noise, after those that hear everything."""
    warnings.filterwarnings("ignore", NOISE, PrivacyWarning)


def forget_tables() -> None:
    """Forget which tables were opened in this process, as at its start."""
    recognition._opened.clear()
