"""What `agg` may be given: a name of an aggregate, a list of them, a dict of either, or named outputs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from dpframe._errors import BadType, BadValue
from dpframe._plans.aggregates import AGGREGATES, ORDERS, level_named, named_in_agg
from dpframe._plans.price import WORDS

Form = Literal["one", "list", "dict", "dict of lists", "named"]


class Wanted(NamedTuple):
    """One output: the name it gets, its column, its aggregate."""

    label: Hashable
    column: Any
    aggregate: str


class Spec(NamedTuple):
    """A spec of ``agg`` in one form, whatever its spelling."""

    form: Form
    wanted: tuple[Wanted, ...]


# Functions that stand for an aggregate, whatever the data: others could look at rows as they are.
_FUNCTIONS: dict[Any, str] = {
    sum: "sum",
    min: "min",
    max: "max",
    np.sum: "sum",
    np.mean: "mean",
    np.median: "median",
    np.min: "min",
    np.max: "max",
}


def aggregate_name(value: Any) -> str:
    """The name of one of the aggregates that have a price; also of a function that means one, such as ``np.mean``."""
    if isinstance(value, Hashable) and not isinstance(value, str):
        value = _FUNCTIONS.get(value, value)
    if not isinstance(value, str):
        raise BadType(
            "an aggregate is a name such as 'mean' or 'q90', or a list of names; not a function, which could see the data."
        )
    kind = AGGREGATES.get(value)
    if (kind is None or not kind.named_in_agg) and level_named(value) is None:
        known = ", ".join((*named_in_agg(), *ORDERS))
        raise BadValue(
            f"no private aggregate {value!r}{_INSTEAD.get(value, '.')} Those there are: {known}, and quantiles such as 'q90'."
        )
    return value


_INSTEAD: dict[str, str] = {
    **dict.fromkeys(("first", "last", "nth", "any", "idxmax", "idxmin"), ": it would be one person's value."),
    "all": ": one person would decide it. Take the mean of the condition, which is the share of rows where it holds.",
    "mode": ": the most common value is p.argmax(column).",
    "unique": ": the values that many people have are p.unique(column).",
    "describe": ": several aggregates are a verb of their own, p.describe().",
}


def aggregate_names(values: Sequence[Any]) -> list[str]:
    """Distinct aggregates, in their order."""
    names = [aggregate_name(v) for v in values]
    if not names:
        raise BadValue("agg needs at least one aggregate: agg(['mean', 'std']).")
    if len(set(names)) < len(names):
        raise BadValue("an aggregate is named twice for one column. Name it once.")
    return names


def spec_of(
    spec: Any, outputs: Mapping[str, Any], columns: Sequence[Hashable] | None, single: bool = False
) -> Spec:
    """What is asked, of the columns that are selected; ``single`` where that is one column and no list."""
    if isinstance(spec, str):
        name = aggregate_name(spec)
        return Spec("one", tuple(Wanted(c, c, name) for c in _selected(columns)))
    if isinstance(spec, list):
        names = aggregate_names(spec)
        return Spec("list", tuple(Wanted((c, n), c, n) for c in _selected(columns) for n in names))
    if spec is not None and not isinstance(spec, Mapping):
        raise BadType(
            "agg takes a name, a list of names, a dict by column, or named outputs: agg(m=('age', 'mean'))."
        )
    if spec and single:
        raise BadType("of one column agg takes a name, a list of names, or agg(m='mean', s='std').")
    if spec and any(isinstance(v, list) for v in spec.values()):
        if outputs:
            raise BadType("lists of aggregates and named outputs make different tables. Ask one of them.")
        pairs = [(c, n) for c, v in spec.items() for n in aggregate_names(v if isinstance(v, list) else [v])]
        return Spec("dict of lists", tuple(Wanted((c, n), c, n) for c, n in pairs))
    wanted = [Wanted(c, c, aggregate_name(n)) for c, n in (spec or {}).items()]
    for label, pair in outputs.items():
        if single and isinstance(pair, str) and columns:
            pair = (columns[0], pair)
        if isinstance(pair, pd.NamedAgg):
            if getattr(pair, "args", ()) or getattr(pair, "kwargs", {}):
                raise BadType(
                    f"{label}=: an aggregate takes no arguments in agg. Ask it as a verb of its own."
                )
            pair = (pair.column, pair.aggfunc)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise BadType(f"{label}= must be a pair such as ('age', 'mean').")
        wanted.append(Wanted(label, pair[0], aggregate_name(pair[1])))
    if not wanted:
        raise BadValue("agg needs at least one output: agg(mean_age=('age', 'mean')).")
    return Spec("named" if outputs else "dict", tuple(wanted))


def _selected(columns: Sequence[Hashable] | None) -> Sequence[Hashable]:
    if columns is None:
        raise BadType(
            "name the columns: ['x'].agg('mean'), [['x', 'y']].agg([...]), or agg({'x': ['mean', 'std']})."
        )
    return columns


def split_words(
    outputs: dict[str, Any], bounds: Any, single: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The price words and the named outputs; of the words only ``n`` and ``name`` may be outputs, as pairs, or of a
    ``single`` column as names of aggregates."""
    payment = {word: outputs[word] for word in WORDS if word in outputs}
    for word in ("n", "name"):
        value = payment.get(word)
        # n= is a number where it is a price word; of one column: agg(avg="mean", name="count").
        aggregate = (
            (single or word == "n")
            and isinstance(value, str)
            and (value in named_in_agg() or level_named(value) is not None)
        )
        if aggregate or isinstance(value, tuple | pd.NamedAgg):
            del payment[word]
    named = {w: value for w, value in outputs.items() if w not in payment}
    for word, value in [*payment.items(), ("bounds", bounds)]:
        if isinstance(value, tuple) and not (word == "bounds" and _is_pair_of_bounds(value)):
            raise BadValue(f"{word}= is a price word of agg and cannot be the name of an output.")
    return payment, named


def _is_pair_of_bounds(value: tuple[Any, ...]) -> bool:
    """Whether it is a pair of numbers, or of durations as texts, and no output: a column and an aggregate."""
    if len(value) != 2 or not isinstance(value[1], str):
        return len(value) == 2
    return value[1] not in AGGREGATES and level_named(value[1]) is None and value[1][:1] in "-+0123456789"
