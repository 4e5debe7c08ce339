"""What ``groupby`` and ``resample`` group by: columns, listed combinations, the rest, and periods of time. No data."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

from dpframe._errors import BadType, BadValue, MissingBounds, NotOffered
from dpframe._expr import Column, Expr
from dpframe._frame.groupby import PrivateGroupBy, check_options
from dpframe._frame.verbs.summaries import Summaries
from dpframe._groups.combinations import Sought, TupleBy, Tuples, lists_tuples, with_rest
from dpframe._groups.keys import GROUP_CEILING, By, KeyBy
from dpframe._groups.periods import Rule, TimeBy, grouper_for, periods_of, rule_of, span_of, unit_for

if TYPE_CHECKING:
    from dpframe._frame.frame import PrivateFrame


class Groupings(Summaries):
    """The groupings of a tracked frame."""

    if TYPE_CHECKING:

        def _levels(
            self, by: Any, keys: Any, sort: bool | None, dropna: bool | None, verb: str = "groupby"
        ) -> list[KeyBy | Sought]: ...

    def resample(
        self,
        rule: Any,
        closed: Any = None,
        label: Any = None,
        *,
        on: Any = None,
        bounds: Any = None,
        level: None = None,
        origin: Any = "start_day",
        offset: None = None,
        group_keys: bool = True,
    ) -> PrivateGroupBy:
        """Groups by periods of a time column: ``p.resample("ME", on="admitted")["cost"].mean()``.

        The same as ``groupby(pd.Grouper(key="admitted", freq="ME"))``: periods, labels, closed sides and the freq of the
        index are pandas' for a frame that spans exactly the range declared for the column, by ``open(bounds={"admitted":
        ("2024-01-01", "2024-12-31")})`` or ``bounds=`` here. Rows outside that range and nulls are in no period (times
        are not clipped). Every period comes back, also one in which nothing happened.

        Formal guarantee of each release: as of `groupby`, since a row is in one period, by its own time and public
        edges. The range never comes from the data.

        >>> df = pd.DataFrame({"t": pd.to_datetime(["2024-01-05", "2024-03-31"]), "cost": [3, 4]})
        >>> p = df.dp.open(1000, bounds={"t": ("2024-01-01", "2024-03-31")})
        >>> p.resample("ME", on="t").size(epsilon=900)
        t
        2024-01-31    1
        2024-02-29    0
        2024-03-31    1
        Freq: ME, dtype: int64
        """
        check_options(group_keys, None, level)
        if on is None:
            raise BadType(
                "resample needs on=, a column of times: a tracked frame has no index. resample('ME', on='t')."
            )
        grouper = grouper_for(rule, "t", closed, label, origin, offset)
        return PrivateGroupBy(cast("PrivateFrame", self), (self._periods(on, rule_of(grouper), bounds),))

    def _groups(
        self, by: Any, keys: Any, sort: bool | None, dropna: bool | None, other: Any, bounds: Any
    ) -> tuple[By | Sought, ...]:
        """One grouping a column, or one for listed combinations of them all."""
        by, rules = _without_groupers(by)
        names = by if isinstance(by, list) else [by]
        if bounds is not None and not rules:
            raise BadType(
                "bounds= of groupby are the first and last moment of a pd.Grouper. Those of values go to the verb: "
                "groupby('state')['cost'].mean(bounds=(0, 100))."
            )
        if rules:
            return self._with_periods(names, rules, keys, sort, dropna, other, bounds)
        tuples = self._tuples(names, keys)
        if tuples is None:
            return with_rest(self._levels(by, keys, sort, dropna), other)
        if other is not None:
            raise NotOffered(
                "other= goes with a list of keys for one column: leave it out where combinations are listed."
            )
        exprs = [self._column(name)[0] for name in names]
        return (TupleBy.of(exprs, tuples.with_options(exprs, sort, dropna)),)

    def _column(self, column: Any) -> tuple[Expr, Hashable]:
        expr, name = self._named(column)
        if name is not None and name in self._session.snapshot.index.names:
            raise BadValue(
                f"{name!r} is both a column and an index level, which pandas calls ambiguous. Rename one."
            )
        return expr, name

    def _tuples(self, names: Sequence[Any], keys: Any) -> Tuples | None:
        """The listed combinations, given or declared; None where keys are listed column by column."""
        if lists_tuples(keys, len(names)):
            columns = [self._column(name) for name in names]
            return Tuples.of(keys, [e for e, _ in columns], [n for _, n in columns])
        if keys is not None or len(names) < 2 or not self._session.tuples:
            return None
        columns = [self._column(name) for name in names]
        places = [e.position if isinstance(e, Column) else -1 for e, _ in columns]
        for declared, tuples in self._session.tuples.items():
            if sorted(declared) == sorted(places):
                return tuples.in_order([declared.index(i) for i in places]).named([n for _, n in columns])
        return None

    def _with_periods(
        self,
        names: Sequence[Any],
        rules: Mapping[int, Rule],
        keys: Any,
        sort: bool | None,
        dropna: bool | None,
        other: Any,
        bounds: Any,
    ) -> tuple[By | Sought, ...]:
        rest = [name for i, name in enumerate(names) if i not in rules]
        if not rest and (keys is not None or other is not None):
            raise BadType(
                "periods have no keys: their range is declared by bounds=. Leave keys= and other= out."
            )
        if lists_tuples(keys, len(names)):
            raise NotOffered(
                "combinations cannot list periods. Give keys= by column: keys={'state': ['CA', 'NY']}."
            )
        listed = with_rest(self._levels(list(rest), keys, sort, dropna), other) if rest else ()
        levels = iter(listed)
        found = tuple(
            self._periods(name, rules[i], bounds) if i in rules else next(levels)
            for i, name in enumerate(names)
        )
        if math.prod(len(level.index) for level in found if not isinstance(level, Sought)) > GROUP_CEILING:
            raise BadValue(
                f"there are more than {GROUP_CEILING} combinations of periods and keys. Group by fewer."
            )
        return found

    def _periods(self, column: Any, rule: Rule, bounds: Any) -> TimeBy:
        expr, name = self._column(column)
        if expr.kind != "time":
            raise BadType(
                f"column {name!r} is of kind {expr.kind}: periods need times. Numbers have p[{name!r}].cut([...])."
            )
        place = expr.position if isinstance(expr, Column) else None
        if isinstance(bounds, Mapping):
            bounds = self._by_column(bounds).get(name)
        span = (
            span_of(bounds, name)
            if bounds is not None
            else self._session.times.get(-1 if place is None else place)
        )
        if span is None:
            raise MissingBounds(
                f"{name!r} needs a public first and last moment: open(..., bounds={{{name!r}: ('2024-01-01', "
                "'2024-12-31')}) once, or bounds=(first, last) here. They are never taken from the data."
            )
        unit = "us" if place is None else unit_for(self._session.snapshot.dtypes.iloc[place])
        return TimeBy(expr, rule.freq.freqstr, span, periods_of(rule, span, expr.tz, unit, name))


def _without_groupers(by: Any) -> tuple[Any, dict[int, Rule]]:
    """The columns, and the rules of those that a ``pd.Grouper`` names with freq=."""
    names, rules = list(by) if isinstance(by, list) else [by], {}
    for i, one in enumerate(names):
        if not isinstance(one, pd.Grouper):
            continue
        if one.key is None:
            raise BadType("a pd.Grouper here names a column: pd.Grouper(key='t', freq='ME').")
        names[i] = one.key
        if one.freq is not None:
            rules[i] = rule_of(one)
        elif one.level is not None or not one.sort or not one.dropna:
            raise NotOffered(
                "of a pd.Grouper without freq= only key= is read: give sort= and dropna= to groupby."
            )
    return names if isinstance(by, list) else names[0], rules
