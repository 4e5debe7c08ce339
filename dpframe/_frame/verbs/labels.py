"""The labels of a pivot table: which outputs stand above which keys, and where the margins are. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from dpframe._errors import BadType, BadValue
from dpframe._frame.verbs.agg_spec import Wanted, aggregate_name, aggregate_names
from dpframe._groups.keys import By


def wanted(values: Any, aggfunc: Any, keyed: bool, sort: bool) -> list[Wanted]:
    """The outputs in pandas' order, each labelled with what stands above its keys.

    ``keyed`` tells whether there are keys above the table; without them the outputs need names.
    """
    if isinstance(aggfunc, Mapping):
        if values is not None and set(_listed(values)) != set(aggfunc):
            raise BadValue("aggfunc= as a dict names the columns itself: leave values= out.")
        lists = any(isinstance(v, list) for v in aggfunc.values())
        found = []
        for column in _sorted(list(aggfunc), sort):
            given = aggfunc[column]
            many = aggregate_names(given if isinstance(given, list) else [given])
            found += [
                Wanted((column, a) if lists else (column,), column, a) for a in _sorted(many, lists and sort)
            ]
        if not found:
            raise BadValue("pivot_table needs at least one aggregate: aggfunc={'age': 'mean'}.")
        return found
    if values is None:
        raise BadType(
            "pivot_table needs values=, the columns to aggregate. For counts of rows write crosstab."
        )
    columns = _sorted(_listed(values), sort and isinstance(values, list))
    if not columns:
        raise BadValue("pivot_table needs at least one column of values.")
    named = isinstance(values, list) or not keyed
    if isinstance(aggfunc, list):
        many = aggregate_names(aggfunc)
        return [Wanted((a, c) if named else (a,), c, a) for a in many for c in columns]
    one = aggregate_name(aggfunc)
    return [Wanted((c,) if named else (), c, one) for c in columns]


def _listed(values: Any) -> list[Any]:
    return values if isinstance(values, list) else [values]


def _sorted(names: list[Any], sort: bool) -> list[Any]:
    try:
        return sorted(names) if sort else names
    except TypeError:
        return names


def normalize(value: Any, aggregated: bool) -> str | None:
    """What counts are divided by: ``"all"``, ``"index"``, ``"columns"``, or nothing."""
    # By type first: 0 is False to a dict, but to pandas it is the rows.
    if value is False:
        return None
    if value is True or (isinstance(value, str) and value == "all"):
        meaning = "all"
    elif isinstance(value, str) and value in ("index", "columns"):
        meaning = value
    elif type(value) is int and value in (0, 1):
        meaning = ("index", "columns")[value]
    else:
        raise BadValue("normalize= must be True, False, 'all', 'index' or 'columns'.")
    if aggregated:
        raise BadValue("normalize= divides counts: leave values= and aggfunc= out.")
    return meaning


def names(given: Any, levels: Sequence[By], word: str) -> list[Hashable] | None:
    """The names of the levels, if others than those of their columns are given."""
    if given is None:
        return None
    listed = given if isinstance(given, list) else [given]
    if len(listed) != len(levels):
        raise BadValue(f"{word}= needs one name for each of its {len(levels)} columns.")
    return listed


def with_margin(index: Any, name: Any, margins: bool) -> pd.Index[Any]:
    """The keys with one more for their total, as pandas writes it."""
    if not isinstance(name, str):
        raise BadType("margins_name= must be a string.")
    if any(name in index.get_level_values(level) for level in range(index.nlevels)):
        raise BadValue(f"a key is called {name!r} as the margins are: give another margins_name=.")
    if index.nlevels > 1:
        return pd.MultiIndex.from_tuples(
            [*index, (name, *[""] * (index.nlevels - 1))], names=list(index.names)
        )
    return pd.Index([*index, name], name=index.name, tupleize_cols=False)


def header(prefixes: Sequence[tuple[Hashable, ...]], above: pd.Index[Any] | None) -> pd.Index[Any]:
    """The columns of the table: for each output its labels, and below them the keys."""
    if above is None:
        if len(prefixes[0]) == 1:
            return pd.Index([prefix[0] for prefix in prefixes], tupleize_cols=False)
        return pd.MultiIndex.from_tuples(list(prefixes))
    if not prefixes[0]:
        return above
    keys = [key if isinstance(key, tuple) else (key,) for key in above]
    labels = [None] * len(prefixes[0]) + list(above.names)
    return pd.MultiIndex.from_tuples([(*prefix, *key) for prefix in prefixes for key in keys], names=labels)
