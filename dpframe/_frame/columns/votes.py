"""The verbs of groups that choose the values that most rows of each have: only the choices leave,
one price for all groups."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Unpack, cast

import pandas as pd

from dpframe import _expr, _validate
from dpframe._answers import answer as _release
from dpframe._errors import BadType, BadValue, MissingKeys, NotOffered
from dpframe._frame.found import Search
from dpframe._frame.selection import (
    HALF,
    WHOLE,
    Askable,
    Selection,
    make_level,
    mode_of,
    selection_of,
    session_of_frame,
)
from dpframe._frame.signatures import verb
from dpframe._frame.verbs.measure import ask_outputs
from dpframe._groups.combinations import Sought
from dpframe._groups.keys import KeyBy, Keys, Word, describe, keys_of
from dpframe._plans.aggregates import Output
from dpframe._plans.plan import Plan
from dpframe._plans.price import Payment, check_payment
from dpframe._validate import Bounds

Listed = list[tuple[Hashable, Keys]]  # the names of columns, with their keys


@verb
def argmax(
    self: Any, column: object = None, *, keys: object = None, **payment: Unpack[Payment]
) -> Any:
    """Choose the listed value that most rows of each group have.

    The answer is a Series with a value for each group.

    Also ``["x"].argmax()``, and beside others ``agg(n=("x", "size"), most=("x", "argmax"))``. Only
    the choices leave. A group without rows has any of the values.

    Formal guarantee: epsilon-DP for its price, once for all groups together, by report-noisy-max in
    each: what one row moves in all of them is what it moves in one
    (docs/guarantees/noisy-max.md#in-groups).

    >>> df = pd.DataFrame({"state": ["CA", "NY", "CA"] * 20, "ill": ["flu", "burn", "flu"] * 20})
    >>> p = df.dp.open(1000, keys={"state": ["CA", "NY"], "ill": ["burn", "flu"]})
    >>> p.groupby("state")["ill"].argmax(epsilon=80)
    state
    CA     flu
    NY    burn
    Name: ill, dtype: str
    """
    names, single = _columns(self, column, "argmax")
    found = _keys(self, names, keys, "argmax", check_payment(payment))
    if isinstance(found, Plan):
        return found
    levels, part = found
    outs = [
        voted(self._selection, name, k, label)[0]
        for name, (label, k) in zip(names, levels, strict=True)
    ]
    return ask_outputs(_declare_keys(self, levels), outs, payment, single=single, part=part)


@verb
def top(
    self: Any, column: Any = None, k: Any = None, *, keys: object = None, **payment: Unpack[Payment]
) -> Any:
    """Choose the ``k`` values that most rows of each group have, the most common first.

    The answer is a Series with a row for each group and rank, from 1 on.

    Formal guarantee: epsilon-DP for its price, by k rounds of report-noisy-max in each group, each
    at epsilon/k among the values that are left there (docs/guarantees/noisy-max.md#in-groups).

    >>> df = pd.DataFrame({"state": ["CA"] * 60, "ill": ["flu", "burn", "flu", "flu", "burn", "cold"] * 10})
    >>> p = df.dp.open(1000, keys={"state": ["CA"], "ill": ["burn", "cold", "flu"]})
    >>> p.groupby("state")["ill"].top(2, epsilon=400)
    state
    CA     1     flu
           2    burn
    Name: ill, dtype: str
    """
    if k is None and column is not None and self._chosen is not None:
        column, k = None, column
    names, single = _columns(self, column, "top")
    if not single:
        raise BadType("top is of one column: p.groupby('k')['x'].top(2).")
    if not self._as_index:
        raise NotOffered(
            "top has its groups as index: leave as_index=False out, and reset_index() the answer."
        )
    rounds = _validate.positive_int(k, "k")  # before a search for keys that nobody listed is paid
    found = _keys(self, names, keys, "top", check_payment(payment))
    if isinstance(found, Plan):
        return found
    levels, part = found
    ((label, listed),) = levels
    if rounds > len(listed):
        raise BadValue(f"k={rounds} is more than the {len(listed)} values that are listed.")
    outs = voted(self._selection, names[0], listed, label, range(1, rounds + 1))
    places = pd.RangeIndex(1, rounds + 1)
    return ask_outputs(
        _declare_keys(self, levels),
        outs,
        payment,
        lambda r, index: _release.rank_choices(r, index, places, label),
        part=part,
    )


def voted(
    selection: Selection,
    column: object,
    keys: Keys,
    label: Hashable,
    names: Sequence[Hashable] | None = None,
) -> list[Output]:
    """Return the outputs that choose the most common of the listed values of a column in each
    group.

    ``keys`` lists the values, and ``label`` names the output. With ``names`` several values are
    chosen in rounds, one for each name.
    """
    expr, name = selection.find_column(column)
    listed = (None if i == keys.null else k for i, k in enumerate(keys.index.tolist()))
    try:  # a period is no constant that a user writes into an expression, and a key all the same
        known = (_expr.Constant(key) if isinstance(key, pd.Period) else key for key in listed)
        place = _expr.map_dict(expr, {key: i for i, key in enumerate(known)})
    except BadType:
        raise NotOffered(
            f"the keys of {name!r} are of a kind that is counted, and not chosen among, in groups: "
            "p.groupby('k')['x'].value_counts()."
        ) from None
    ends = Bounds(0.0, float(len(keys) - 1))
    labels = (label,) if names is None else tuple(names)
    return [Output(one, "most", place, ends, rounds=len(labels), keys=keys) for one in labels]


def wanted(selection: Selection, column: object, label: Hashable) -> Output:
    """Return the output of `agg` named ``"argmax"``, for a column whose keys are known."""
    return voted(
        selection, column, selection.keys(*selection.find_column(column), None, "argmax"), label
    )[0]


def _columns(groups: Any, column: Any, verb: str) -> tuple[Sequence[Any], bool]:
    """Return the columns that `argmax` or `top` chooses values of, and whether it is a single one.

    ``column`` is the argument of the verb, or None for the selected columns.
    """
    chosen, single = groups._chosen, groups._single
    if column is None and chosen is None:
        raise BadType(f"name the column: p.groupby('k')['x'].{verb}({2 if verb == 'top' else ''}).")
    return (chosen, single) if column is None else ((column,), True)


def _keys(
    groups: Any, names: Sequence[Any], given: Any, verb: str, payment: Payment
) -> tuple[Listed, Fraction] | Plan:
    """Return the columns with their keys, and the part of the price that is left for the choice.

    ``given`` are the keys that the verb was given, or None. Unknown keys are found first, at half
    of the price. While explaining, the plan of that search is returned instead.
    """
    found: Listed = []
    for i, name in enumerate(names):
        own_keys = (
            None
            if given is None
            else keys_of(given, i, selection_of(groups).find_column(name)[1], len(names))
        )
        level = make_level(groups, selection_of(groups).level(name), own_keys, verb)
        if isinstance(level, KeyBy):
            found.append((selection_of(groups).find_column(name)[1], level.keys))
            continue
        if len(names) > 1 or any(isinstance(one, Sought) for one in selection_of(groups).by):
            raise MissingKeys(
                f"the keys of {level.name!r} are not known, and nor are others here. Find them first, for a price of their own: "
                f"keys=p.unique({level.name!r})."
            )
        asking = Askable(
            session_of_frame(groups), replace(selection_of(groups), by=()), mode_of(groups)
        )
        searched = Search(asking, (level,)).keys(payment)
        if isinstance(searched, Plan):
            return searched
        return [(level.name, cast(KeyBy, searched[0]).keys)], HALF
    return found, WHOLE


def _declare_keys(groups: Any, levels: Listed) -> Any:
    """Return the groups with a declaration of the keys that only this question lists.

    ``levels`` are the columns with their keys. The ledger keeps the declaration.
    """
    session = session_of_frame(groups)
    known = {
        keys.token
        for keys in (*(k for _, k in session.terms.keys), *session.keys_by_question.values())
    }
    words = [
        Word("keys", f"{label!r}: {describe(keys.to_json())}", "groups")
        for label, keys in levels
        if keys.token not in known
    ]
    return groups._of(selection_of(groups).add_declarations(tuple(words)))
