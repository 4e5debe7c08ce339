"""The verbs that choose: only the choice leaves, never a score, and any number of candidates costs
the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from types import FrameType, SimpleNamespace
from typing import Any, Final, Unpack, cast

import numpy as np
import pandas as pd

from dpframe import _expr, _validate
from dpframe._answers import answer as _release
from dpframe._errors import BadType, BadValue, MissingBounds, with_article
from dpframe._expr import Expr
from dpframe._frame.found import listed
from dpframe._frame.selection import (
    WHOLE,
    BoundColumn,
    ask_question,
    check_condition,
    find_caller,
    frame_of_column,
    make_level,
    mode_of,
    name_of,
    selection_of,
)
from dpframe._frame.signatures import verb
from dpframe._frame.tracked import (
    Tracked,
    read_expression,
    read_expression_or_text,
    refuse_questions,
    use_own_names,
)
from dpframe._groups.keys import By, KeyBy, Word, describe
from dpframe._plans.aggregates import Output
from dpframe._plans.plan import Plan
from dpframe._plans.price import Payment, check_payment
from dpframe._questions.question import Query, Release
from dpframe._validate import Bounds
from dpframe.utilities import Scored, Utility

CANDIDATES: Final = 2**14  # with expressions of their own: each is a pass over the rows
PLACEHOLDER: Final = "candidate"
_ONE_ROW: Final = "return an expression for one row; its sum over rows is the utility: lambda d, c: -(d['x'] - c).abs()."


@verb
def argmax(
    self: Tracked, column: object, *, keys: object = None, **payment: Unpack[Payment]
) -> Any:
    """Choose the value that most rows have, among the listed ones.

    Of several conditions it chooses the one that holds for most rows.

    A list of boolean columns, or conditions by name as `counts` takes them, may overlap: one row
    may say yes to many. Only the choice leaves, so any number of candidates costs the same and the
    noise does not grow with them.

    Formal guarantee: epsilon-DP for its price by report-noisy-max with one-sided geometric noise
    (docs/guarantees/noisy-max.md): a row moves every count by at most 1, and all of them one way
    unless rows are replaced. With one candidate the answer is that one, and is charged all the
    same.

    >>> df = pd.DataFrame({"diagnosis": ["flu", "asthma", "flu"], "fever": [True, False, True]})
    >>> p = df.dp.open(1000)
    >>> p.argmax("diagnosis", keys=["asthma", "flu", "gout"], epsilon=80)
    'flu'
    >>> p.argmax({"fever": "fever", "no flu": "diagnosis != 'flu'"}, epsilon=80)
    'fever'
    """
    check_payment(payment)
    if isinstance(column, list | Mapping):
        if keys is not None:
            raise BadValue(
                "keys= lists the values of one column; of several conditions each is a candidate."
            )
        return _most(self, column, find_caller(), payment)
    level = make_level(self, self._selection.find_column(column), keys, "argmax")
    groups = listed(self, (level,), payment)
    if isinstance(groups, Plan):
        return groups
    by, part = groups
    query = Query((Output("argmax", "argmax"),), self._selection.where, by)
    return self._ask(query, lambda release: _read_choices(release, by[0])[0], payment, part)


@verb
def mode(self: BoundColumn, *, keys: object = None, **payment: Unpack[Payment]) -> Any:
    """Choose the value that most rows have, among the listed ones, as a Series of this one value.

    It asks `PrivateFrame.argmax`, so after it this is free. Where several values are as common
    pandas lists them all, and this has one of them.

    Formal guarantee: as of `argmax`.

    >>> df = pd.DataFrame({"diagnosis": ["flu", "asthma", "flu"]})
    >>> p = df.dp.open(1000, keys={"diagnosis": ["asthma", "flu", "gout"]})
    >>> p["diagnosis"].mode(epsilon=80)[0]
    'flu'
    """
    frame = frame_of_column(self)
    found = argmax(frame, self, keys=keys, **payment)
    if mode_of(frame).shows or mode_of(frame).answers_later:
        return found
    return pd.Series([found], name=name_of(self))


@verb
def top(
    self: Tracked, column: object, k: int, *, keys: object = None, **payment: Unpack[Payment]
) -> list[Any]:
    """Choose the ``k`` most common of the listed values, as a list without counts, the most common
    first.

    Formal guarantee: epsilon-DP for its price, by k rounds of report-noisy-max at epsilon/k, each
    among the values that are left (docs/guarantees/noisy-max.md). The order is as private as the
    choice.

    >>> df = pd.DataFrame({"state": ["CA", "NY", "CA", "CA", "NY", "WA"]})
    >>> p = df.dp.open(1000)
    >>> p.top("state", 2, keys=["WA", "NY", "CA"], epsilon=200)
    ['CA', 'NY']
    """
    check_payment(payment)
    rounds = _validate.positive_int(k, "k")  # before a search for keys that nobody listed is paid
    level = make_level(self, self._selection.find_column(column), keys, "top")
    groups = listed(self, (level,), payment)
    if isinstance(groups, Plan):
        return cast("list[Any]", groups)
    by, part = groups
    if rounds > len(by[0].index):
        raise BadValue(f"k={rounds} is more than the {len(by[0].index)} values that are listed.")
    query = Query((Output("top", "top", rounds=rounds),), self._selection.where, by)
    return cast(
        "list[Any]", self._ask(query, lambda release: _read_choices(release, by[0]), payment, part)
    )


@verb
def choose(
    self: Tracked,
    candidates: object,
    utility: object,
    sensitivity: float | None = None,
    *,
    bounds: object = None,
    because: str | None = None,
    **payment: Unpack[Payment],
) -> Any:
    """Choose one of some public candidates, with a chance that grows with its utility: the
    exponential mechanism.

    The utility is a named one, ``dpframe.utilities.revenue("bid")``, whose sensitivity is proven;
    or an expression for one row, whose sum over the rows is the utility: a string in which
    ``@candidate`` stands for the candidate, a function of the frame and the candidate, or a dict by
    candidate. Each row's value is clipped to ``bounds``, unless bounds follow from declared ones; a
    null counts for nothing. ``sensitivity=`` is your own word that a row moves no utility by more
    than that: it needs ``because=``, and the ledger keeps both.

    Formal guarantee: epsilon-DP for its price, by the exponential mechanism where a session has
    delta, else by noisy max, which is never worse at the same epsilon
    (docs/guarantees/exponential.md). With declared ``sensitivity=`` the guarantee rests on that
    word. The plan states by how much the choice may fall short of the best.

    >>> df = pd.DataFrame({"arrives": [7, 8, 8, 9, 12]})
    >>> p = df.dp.open(1000)
    >>> p.choose(range(6, 13), "(arrives - @candidate).abs() <= 1", epsilon=400)
    8
    """
    check_payment(payment)
    options = _candidates(candidates)
    declared: tuple[Word, ...] = ()
    if isinstance(utility, Utility):
        if sensitivity is not None or bounds is not None or because is not None:
            raise BadValue(
                "a named utility has its own sensitivity: leave sensitivity=, bounds= and because= out."
            )
        scored = utility.describe_question(self._selection, options)
    else:
        _few(options)
        scored, declared = _own_utility(
            self, options, utility, _moves(sensitivity, because), bounds, find_caller()
        )
        if because is not None:
            declared = (
                *declared,
                Word("sensitivity", f"{sensitivity:g}: {because.strip()}", "choose"),
            )
    if not scored.by:  # of bins the session says so itself
        _few(options)
        declared = (*declared, Word("candidates", describe(options), "choose"))
    query = Query(scored.outputs, self._selection.where, scored.by)

    def finish(release: Release) -> Any:
        return options[scored.order[int(_release.values(release, 0)[0])]]

    return self._ask(query, finish, payment, WHOLE, declared)


# How they are put together --------------------------------------------------------------------------------


def _most(frame: Tracked, questions: Any, caller: FrameType, payment: Mapping[str, object]) -> Any:
    """Choose the condition, of several, that holds for most rows.

    ``questions`` are columns, or conditions by name. ``caller`` is the Python frame with the
    variables that @names stand for.
    """
    if not questions:
        raise BadValue("argmax needs at least one condition to choose among.")
    if isinstance(questions, Mapping):
        exprs = {}
        for name, question in questions.items():
            exprs[name], frame = read_expression_or_text(frame, question, caller)
    else:
        named = [(label, expr) for expr, label in map(selection_of(frame).find_column, questions)]
        exprs = dict(named)
        if len(exprs) < len(named):
            raise BadValue("argmax among columns needs each of them once.")
    names = list(exprs)
    outputs = tuple(Output(name, "argmax", check_condition(expr)) for name, expr in exprs.items())
    query = Query(outputs, selection_of(frame).where)
    return ask_question(
        frame, query, lambda release: names[int(_release.values(release, 0)[0])], payment
    )


def _own_utility(
    frame: Tracked,
    candidates: Sequence[object],
    utility: object,
    moves: float | None,
    bounds: object,
    caller: FrameType,
) -> tuple[Scored, tuple[Word, ...]]:
    """Return a user's utility as an output for each candidate, and the declarations it relies on.

    All are clipped to the same bounds. ``moves`` is the declared sensitivity, or None. ``caller``
    is the Python frame with the variables that @names stand for.
    """
    exprs, declared = _expressions(frame, candidates, utility, caller)
    if len(exprs) > 1 and len(set(exprs)) == 1:
        raise BadValue(
            f"this utility says the same of every candidate. Write @{PLACEHOLDER} where the candidate stands."
        )
    pair = _hull(frame, exprs, bounds, moves)
    if bounds is not None:
        declared = (
            *declared,
            Word("bounds", f"the utility: ({pair.lower:g}, {pair.upper:g})", "choose"),
        )
    if any(e.nullable for e in exprs):
        exprs = [_fill_and_clip(e, pair) for e in exprs]
        pair = Bounds(min(pair.lower, 0.0), max(pair.upper, 0.0))
    text = (
        utility if isinstance(utility, str) else f"{exprs[0]}" + (", ..." if len(exprs) > 1 else "")
    )
    outputs = tuple(
        Output(candidate, "choose", expr, pair, moves=moves, said=text)
        for candidate, expr in zip(candidates, exprs, strict=True)
    )
    return Scored(outputs, (), tuple(range(len(candidates)))), declared


def _check_two_arguments(utility: Any, advice: str) -> None:
    """Refuse a function as utility that does not take the frame and a candidate."""
    try:
        taken = signature(utility)
    except (TypeError, ValueError):  # a function that does not tell
        return
    try:
        taken.bind(None, None)
    except TypeError:
        raise BadType(
            f"a utility is a function of the frame and a candidate, and this one takes {taken}: {advice}"
        ) from None


def _expressions(
    frame: Tracked, candidates: Sequence[object], utility: object, caller: Any
) -> tuple[list[Expr], tuple[Word, ...]]:
    """Return the utility of each candidate as an expression, and the declarations they rely on.

    ``utility`` is a text with ``@candidate``, a function, or a dict by candidate. ``caller`` is the
    Python frame with the variables that @names stand for.
    """
    if isinstance(utility, Mapping):
        if len(utility) != len(candidates) or any(c not in utility for c in candidates):
            raise BadValue(
                "a utility by candidate needs an expression for each candidate, and no others."
            )
        utilities = [utility[c] for c in candidates]
    elif callable(utility) and not hasattr(utility, "_expr"):
        advice = use_own_names(_ONE_ROW, selection_of(frame))
        _check_two_arguments(utility, advice)
        row = refuse_questions(frame, advice)
        utilities = [_row_wise(utility(row, c), advice) for c in candidates]
    else:
        utilities = [utility] * len(candidates)
    exprs: list[Expr] = []
    declared: dict[Word, None] = {}
    for candidate, candidate_utility in zip(candidates, utilities, strict=True):
        if isinstance(candidate_utility, str):
            scope = SimpleNamespace(
                f_locals={**caller.f_locals, PLACEHOLDER: candidate}, f_globals=caller.f_globals
            )
            expr, selection = selection_of(frame).parse_text(candidate_utility, scope)
            new_declarations = selection.words[len(selection_of(frame).words) :]
            declared |= {
                word: None
                for word in new_declarations
                if not word.value.startswith(f"{PLACEHOLDER} = ")
            }
        else:
            expr = read_expression(frame, candidate_utility)
        if expr.kind not in ("number", "bool"):
            raise BadType(
                f"the utility of {candidate!r} is of kind {expr.kind}: it must be a number."
            )
        exprs.append(expr)
    return exprs, tuple(declared)


def _hull(
    frame: Tracked, exprs: Sequence[Expr], bounds_argument: object, moves: float | None
) -> Bounds:
    """Return clipping bounds for what one row adds to the utility of any candidate.

    They are given, or follow from declared bounds. Otherwise they follow from ``moves``, the
    declared sensitivity.
    """
    if bounds_argument is not None:
        return _validate.bounds(bounds_argument, "the utility")
    implied = [e.bounds(selection_of(frame).schema.bounds) for e in exprs]
    pairs = [_validate.bounds(pair, "the utility") for pair in implied if pair is not None]
    if len(pairs) == len(exprs):
        return Bounds(min(p.lower for p in pairs), max(p.upper for p in pairs))
    if moves is not None:
        return Bounds(-moves, moves)
    raise MissingBounds(
        "this utility needs public bounds, which none of the declared ones imply: bounds=(lower, upper), the least and "
        "the most that one row may add to the utility of a candidate."
    )


def _row_wise(value: object, advice: str) -> object:
    if isinstance(value, BoundColumn | str) or hasattr(value, "_eval_expression"):
        return value
    raise BadType(f"the utility's function returned {with_article(type(value).__name__)}: {advice}")


def _fill_and_clip(expr: Expr, pair: Bounds) -> Expr:
    """Return the expression clipped to the bounds, with 0 for nulls: they count for nothing."""
    return (
        _expr.fill(expr, False) if expr.kind == "bool" else _expr.fill(_expr.clip(expr, *pair), 0)
    )


def _moves(sensitivity: object, because: object) -> float | None:
    """Check ``sensitivity=`` and ``because=``, which a user declares together.

    Return how much one row moves a utility at most, or None if nothing is declared.
    """
    if (sensitivity is None) != (because is None):
        raise BadValue(
            "sensitivity= is your own word that one row moves no utility by more: give it together with "
            "because='why that is so', which the ledger keeps. Without it bounds=(lower, upper) are enforced by clipping."
        )
    if sensitivity is None:
        return None
    if not isinstance(because, str) or not because.strip():
        raise BadType(
            "because= must be a sentence: why one row moves no utility by more than sensitivity=."
        )
    moves = _validate.real(sensitivity, "sensitivity")
    if moves <= 0:
        raise BadValue(f"sensitivity must be positive, not {sensitivity}.")
    return moves


def _candidates(argument: object) -> list[Any]:
    """Return the public list of candidates as it was typed.

    Refuse anything that could be people's data.
    """
    if isinstance(
        argument, pd.Series | pd.DataFrame | set | frozenset | str | bytes
    ) or not isinstance(argument, list | tuple | range | np.ndarray | pd.Index | Mapping):
        raise BadType(
            "candidates must be a public, ordered list, not "
            f"{with_article(type(argument).__name__)}. Write them out, or list(...) them."
        )
    _validate.length(argument, "candidates")
    listed = [
        c.item() if isinstance(c, np.generic) and c.dtype.kind in "biufU" else c for c in argument
    ]
    if not listed:
        raise BadValue("candidates are empty: nothing would be chosen.")
    try:
        distinct = len(set(listed))
    except TypeError:
        raise BadType("candidates must be hashable.") from None
    if distinct < len(listed):
        raise BadValue("candidates are not distinct (1, 1.0 and True are equal).")
    return listed


def _few(candidates: Sequence[object]) -> None:
    if len(candidates) > CANDIDATES:
        raise BadValue(
            f"{len(candidates)} candidates are more than {CANDIDATES}: each is a pass over the rows."
        )


def _read_choices(release: Release, by: By) -> list[Any]:
    """Return the chosen keys as values of Python, with None for null.

    The release holds their positions in the list of keys.
    """
    keys = cast(KeyBy, by).keys
    chosen = []
    for place in _release.values(release, 0):
        key = keys.index[int(place)]
        chosen.append(
            None if place == keys.null else key.item() if isinstance(key, np.generic) else key
        )
    return chosen
