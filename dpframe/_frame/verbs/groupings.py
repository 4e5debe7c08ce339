"""What ``groupby`` and ``resample`` group by: columns, listed combinations, the rest, and periods
of time. No data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pandas as pd

from dpframe import _validate
from dpframe._errors import BadType, BadValue, MissingBounds, NotOffered
from dpframe._expr import Column, same_moment, stem
from dpframe._frame.groups import PrivateGroupBy, check_options
from dpframe._frame.selection import BoundColumn, Selection, make_level, selection_of
from dpframe._frame.tracked import Tracked
from dpframe._groups.combinations import Sought, TupleBy, Tuples, lists_tuples, with_rest
from dpframe._groups.keys import GROUP_CEILING, By, KeyBy, groups_of, keys_of
from dpframe._groups.periods import (
    Rule,
    Span,
    TimeBy,
    grouper_for,
    in_zone,
    periods_of,
    rule_of,
    span_of,
    unit_for,
)


def resample(
    self: Tracked,
    rule: object,
    closed: object = None,
    label: object = None,
    *,
    on: object = None,
    bounds: object = None,
    level: None = None,
    origin: object = "start_day",
    offset: None = None,
    group_keys: bool = True,
) -> PrivateGroupBy:
    """Group by periods of a time column: ``p.resample("ME", on="admitted")["cost"].mean()``.

    The same as ``groupby(pd.Grouper(key="admitted", freq="ME"))``: periods, labels, closed sides
    and the freq of the index are pandas' for a frame that spans exactly the range declared for the
    column, by ``open(bounds={"admitted": ("2024-01-01", "2024-12-31")})`` or ``bounds=`` here. Rows
    outside that range and nulls are in no period (times are not clipped). Every period comes back,
    also one in which nothing happened.

    Formal guarantee of each release: as of `groupby`, since a row is in one period, by its own time
    and public edges. The range never comes from the data.

    >>> df = pd.DataFrame({"t": pd.to_datetime(["2024-01-05", "2024-03-31"]), "cost": [3, 4]})
    >>> p = df.dp.open(1000, bounds={"t": ("2024-01-01", "2024-03-31")})
    >>> p.resample("ME", on="t").size(epsilon=900)
    t
    2024-01-31    1 ± 0
    2024-02-29    0 ± 0
    2024-03-31    1 ± 0
    Freq: ME, dtype: int64
    """
    check_options(group_keys, None, level)
    on = _index_of(self) if on is None else on
    grouper = grouper_for(rule, "t", closed, label, origin, offset)
    selection = self._selection.change(
        by=(_periods(self._selection, on, rule_of(grouper), bounds),)
    )
    return PrivateGroupBy(self._session, selection, self._mode)


def _find_levels(frame: Tracked, level: Any) -> list[BoundColumn]:
    """Return the columns of the index that ``level=`` of `groupby` names, by name or by number."""
    index = selection_of(frame).index
    names = list(index)
    found = []
    for one in level if isinstance(level, list) else [level]:
        place = isinstance(one, int) and not isinstance(one, bool) and one not in names
        if place and not -len(names) <= one < len(names):
            raise BadValue(f"the index has {len(names)} levels, and there is no level {one}.")
        name = names[one] if place else _validate.column_name(one, index)
        found.append(BoundColumn(frame, index[name], name))
    return found


def _index_of(frame: Tracked) -> BoundColumn:
    """Return the column that `set_index` has made the index, for `resample` without ``on=``."""
    index = selection_of(frame).index
    if len(index) != 1:
        raise BadType(
            "resample needs a column of times, p.resample('ME', on='t'), or one that is the index: "
            "p.set_index('t').resample('ME')."
        )
    ((name, expr),) = index.items()
    return BoundColumn(frame, expr, name)


def groupby(
    self: Tracked,
    by: object = None,
    *,
    keys: object = None,
    other: object = None,
    bounds: object = None,
    as_index: bool = True,
    sort: bool | None = None,
    group_keys: bool = True,
    observed: bool | None = None,
    dropna: bool | None = None,
    level: object = None,
) -> PrivateGroupBy:
    """Group by one column or several.

    ``keys`` lists the groups that may appear; all of them come back.

    For several columns ``keys`` is a dict by column (or a list of lists), and the groups are all
    combinations; or a list of tuples with a key for each column (or a ``pd.MultiIndex``), and the
    groups are exactly these. Columns with declared keys, cut columns and bools need none. They
    stand in the order of the list; ``sort=True`` sorts them. ``dropna=False`` makes a group of the
    nulls, as a null on the list does.

    ``other="elsewhere"`` adds one last group for rows whose key is not null and not listed (with
    several columns a dict by column); a person with many rows is bounded after these keys have
    become one. A ``pd.Grouper(key="t", freq="ME")`` makes periods, as `resample` does, between the
    declared bounds of the column or ``bounds=``.

    In a session with delta columns may be left unlisted: their keys are those that enough people
    share, found and measured in one release for the whole price (docs/guarantees/keys.md); where a
    choice is asked for, half of the price finds them first. The session then knows them, and later
    questions are ordinary ones.

    ``level=`` names levels of the index, where `set_index` has made one.

    By the column that ``unit=`` names these are each person's own rows, and their verbs are steps,
    free (`dpframe._frame.people.groups.PersonGroupBy`).

    Formal guarantee of each release: a row is in one group, by its own cells and public lists, so
    groups of every kind have the sensitivities of docs/guarantees/statistics.md.

    >>> df = pd.DataFrame({"state": ["CA", "NY", "TX"], "sex": ["F", "M", "F"]})
    >>> p = df.dp.open(1000)
    >>> p.groupby(["state", "sex"], keys=[("NY", "M"), ("CA", "F")]).size(epsilon=80)
    state  sex
    NY     M      1 ± 0
    CA     F      1 ± 0
    dtype: int64
    >>> p.groupby("state", keys=["CA"], other="elsewhere").size(epsilon=80)
    state
    CA           1 ± 0
    elsewhere    2 ± 0
    dtype: int64
    """
    if level is not None and self._selection.index:
        by, level = _find_levels(self, level), None
    check_options(group_keys, observed, level, as_index)
    if by is None:
        raise BadType("groupby needs by=, a column or a list of them.")
    if self._session.unit.people and keys is None and other is None and bounds is None:
        person_groups = self._own_groups(by, as_index)
        if person_groups is not None:
            # Another class, which has the same verbs as steps.
            return cast(PrivateGroupBy, person_groups)
    selection = self._selection.change(by=groupings(self, by, keys, sort, dropna, other, bounds))
    return PrivateGroupBy(self._session, selection, self._mode, as_index=as_index)


def make_levels(
    frame: Tracked,
    by: object,
    keys: object,
    sort: bool | None,
    dropna: bool | None,
    verb: str = "groupby",
) -> list[KeyBy | Sought]:
    """Return a grouping for each column of ``by``, with its keys.

    Keys are given, declared, or follow from the expression. Those of other columns are still to be
    found in the data. ``sort`` and ``dropna`` are as in pandas, and ``verb`` is named in messages.
    """
    names = by if isinstance(by, list) else [by]
    keys = selection_of(frame).by_column(keys) if isinstance(keys, Mapping) else keys
    if not names:
        raise BadValue(f"{verb} needs at least one column.")
    if callable(by) and not isinstance(by, BoundColumn):
        raise BadType(f"{verb} takes column names, not a function: a function could see the data.")
    if len(names) > 1 and lists_tuples(keys, len(names)):
        raise NotOffered(
            f"{verb} takes keys= column by column here. Combinations are for groupby, then unstack()."
        )
    levels: list[KeyBy | Sought] = []
    for i, name in enumerate(names):
        column = selection_of(frame).level(name)
        keys_listed = None if keys is None else keys_of(keys, i, column[1], len(names))
        levels.append(make_level(frame, column, keys_listed, verb, sort, dropna))
    groups = math.prod(len(level.keys) for level in levels if isinstance(level, KeyBy))
    if groups > GROUP_CEILING:
        raise BadValue(
            f"{groups} combinations of keys are more than {GROUP_CEILING}. Group by fewer columns."
        )
    return levels


def groupings(
    frame: Tracked,
    by: object,
    keys: object,
    sort: bool | None,
    dropna: bool | None,
    other: object,
    bounds: object,
) -> tuple[By | Sought, ...]:
    """Return the groupings of `groupby`: one for each column, or one for listed combinations of
    all.

    ``keys`` lists keys by column, or combinations. ``other`` names a group for all other keys.
    ``bounds`` are the first and the last moment of periods of time.
    """
    rules: dict[int, Rule] = {}
    if any(isinstance(column, pd.Grouper) for column in (by if isinstance(by, list) else [by])):
        by, rules = _without_groupers(by)
    names = by if isinstance(by, list) else [by]
    if bounds is not None and not rules:
        raise BadType(
            "bounds= of groupby are the first and last moment of a pd.Grouper. Those of values go to the verb: "
            "groupby('state')['cost'].mean(bounds=(0, 100))."
        )
    if rules:
        return _with_periods(frame, names, rules, keys, sort, dropna, other, bounds)
    tuples = _tuples(selection_of(frame), names, keys) if len(names) > 1 else None
    if tuples is None:
        levels = make_levels(frame, by, keys, sort, dropna)
        return tuple(levels) if other is None else with_rest(levels, other)
    if other is not None:
        raise NotOffered(
            "other= goes with a list of keys for one column: leave it out where combinations are listed."
        )
    exprs = [selection_of(frame).level(name)[0] for name in names]
    return (TupleBy.of(exprs, tuples.with_options(exprs, sort, dropna)),)


def _tuples(selection: Selection, names: Sequence[object], keys: object) -> Tuples | None:
    """Return the listed combinations, given or declared, or None if keys are listed column by
    column."""
    if lists_tuples(keys, len(names)):
        columns = [selection.level(name) for name in names]
        return Tuples.of(keys, [e for e, _ in columns], [n for _, n in columns])
    if keys is not None or not selection.schema.tuples:
        return None
    columns = [selection.level(name) for name in names]
    places = [e.position if isinstance(e, Column) else -1 for e, _ in columns]
    for declared, tuples in selection.schema.tuples.items():
        if sorted(declared) == sorted(places):
            return tuples.in_order([declared.index(i) for i in places]).rename(
                [n for _, n in columns]
            )
    return None


def _with_periods(
    frame: Tracked,
    names: Sequence[object],
    rules: Mapping[int, Rule],
    keys: object,
    sort: bool | None,
    dropna: bool | None,
    other: object,
    bounds: object,
) -> tuple[By | Sought, ...]:
    """Return the groupings of several columns, some of them by periods of time.

    ``rules`` has the rule of the periods, by the position of its column in ``names``. The other
    columns have keys.
    """
    rest = [name for i, name in enumerate(names) if i not in rules]
    if not rest and (keys is not None or other is not None):
        raise BadType(
            "periods have no keys: their range is declared by bounds=. Leave keys= and other= out."
        )
    if lists_tuples(keys, len(names)):
        raise NotOffered(
            "combinations cannot list periods. Give keys= by column: keys={'state': ['CA', 'NY']}."
        )
    keyed = make_levels(frame, list(rest), keys, sort, dropna) if rest else []
    levels = iter(keyed if other is None else with_rest(keyed, other))
    combined = tuple(
        _periods(selection_of(frame), name, rules[i], bounds) if i in rules else next(levels)
        for i, name in enumerate(names)
    )
    if groups_of(level for level in combined if not isinstance(level, Sought)) > GROUP_CEILING:
        raise BadValue(
            f"there are more than {GROUP_CEILING} combinations of periods and keys. Group by fewer."
        )
    return combined


def _periods(selection: Selection, column: object, rule: Rule, bounds: object) -> TimeBy:
    """Return the grouping of a time column by periods, between its public first and last moment."""
    expr, name = selection.level(column)
    if expr.kind != "time":
        raise BadType(
            f"column {name!r} is of kind {expr.kind}: periods need times. Numbers have p[{name!r}].cut([...])."
        )
    root = stem(same_moment(expr))
    place = root.position if isinstance(root, Column) else None
    if isinstance(bounds, Mapping):
        bounds = selection.by_column(bounds).get(name)
    span = (
        span_of(bounds, name)
        if bounds is not None
        else selection.schema.times.get(-1 if place is None else place)
    )
    # A declared bound without a zone is wall time in that of its column.
    if bounds is None and span is not None and root.tz != expr.tz:
        span = Span(*(moment.isoformat() for moment in in_zone(span, root.tz, name)))
    if span is None:
        raise MissingBounds(
            f"{name!r} needs a public first and last moment: open(..., bounds={{{name!r}: ('2024-01-01', '2024-12-31')}}) once, "
            "or bounds=(first, last) of resample and groupby, .resample('ME', bounds=('2024-01-01', '2024-12-31')). They are "
            "never taken from the data."
        )
    unit = "us" if place is None else unit_for(selection.schema.dtypes[place])
    return TimeBy(expr, rule.freq.freqstr, span, periods_of(rule, span, expr.tz, unit, name))


def _without_groupers(by: object) -> tuple[Any, dict[int, Rule]]:
    """Replace each ``pd.Grouper`` by the column it names.

    Return the columns, and the rules of periods of time by the position of their column.
    """
    names, rules = list(by) if isinstance(by, list) else [by], {}
    for i, grouper in enumerate(names):
        if not isinstance(grouper, pd.Grouper):
            continue
        if grouper.key is None:
            raise BadType("a pd.Grouper here names a column: pd.Grouper(key='t', freq='ME').")
        names[i] = grouper.key
        if grouper.freq is not None:
            rules[i] = rule_of(grouper)
        elif grouper.level is not None or not grouper.sort or not grouper.dropna:
            raise NotOffered(
                "of a pd.Grouper without freq= only key= is read: give sort= and dropna= to groupby."
            )
    return names if isinstance(by, list) else names[0], rules
