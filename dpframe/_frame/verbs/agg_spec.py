"""What ``agg`` may be given: a name, a list of them, a dict of either, or named outputs. Pure; knows no frame."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import pandas as pd

from dpframe._errors import BadType, BadValue
from dpframe._plans.aggregates import AGGREGATES, CHOSEN, named_in_agg
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


def aggregate_name(value: Any) -> str:
    """One of the aggregates that have a price, by name."""
    if not isinstance(value, str):
        raise BadType(
            "an aggregate is a name such as 'mean', or a list of names; not a function, which could see the data."
        )
    one = AGGREGATES.get(value)
    if value not in CHOSEN and (one is None or not one.named_in_agg):
        known = ", ".join((*named_in_agg(), *CHOSEN))
        raise BadValue(f"no private aggregate {value!r}. Those there are: {known}.")
    return value


def aggregate_names(values: Sequence[Any]) -> list[str]:
    """Distinct aggregates, in their order."""
    names = [aggregate_name(v) for v in values]
    if not names:
        raise BadValue("agg needs at least one aggregate: agg(['mean', 'std']).")
    if len(set(names)) < len(names):
        raise BadValue("an aggregate is named twice for one column. Name it once.")
    return names


def read(
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
        aggregate = (single or word == "n") and isinstance(value, str) and value in (*named_in_agg(), *CHOSEN)
        if aggregate or isinstance(value, tuple | pd.NamedAgg):
            del payment[word]
    named = {w: value for w, value in outputs.items() if w not in payment}
    for word, value in [*payment.items(), ("bounds", bounds)]:
        if isinstance(value, tuple) and not (word == "bounds" and _is_pair_of_numbers(value)):
            raise BadValue(f"{word}= is a price word of agg and cannot be the name of an output.")
    return payment, named


def _is_pair_of_numbers(value: tuple[Any, ...]) -> bool:
    return len(value) == 2 and not isinstance(value[1], str)
