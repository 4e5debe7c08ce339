"""Groups of a tracked frame: one vector release for all of them, in pandas' shapes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, NoReturn, Self, Unpack, cast

import numpy as np
import pandas as pd

from dpframe import _pandas, _validate
from dpframe._answers import answer as _release
from dpframe._answers.layout import (
    AnswerLayout,
    CorrelationTable,
    OutputGrid,
    PivotTable,
    ShareColumn,
)
from dpframe._errors import (
    BadType,
    BadValue,
    MissingKeys,
    NotOffered,
    did_you_mean,
    find_close_name,
)
from dpframe._frame.columns import votes
from dpframe._frame.found import Search
from dpframe._frame.selection import (
    WHOLE,
    AnswerMode,
    Askable,
    Finish,
    Selection,
    ask_question,
    make_level,
    selection_of,
)
from dpframe._frame.signatures import verb
from dpframe._frame.tracked import use_own_names
from dpframe._frame.verbs.agg import read_spec
from dpframe._frame.verbs.measure import Measurable
from dpframe._frame.verbs.summaries import (
    check_correlation,
    describe_columns,
    list_bins,
    list_bounded,
    matrix,
)
from dpframe._groups.combinations import Sought, TupleBy
from dpframe._groups.keys import EVERY, By, combined_index, groups_of, keys_of
from dpframe._plans.aggregates import Output, list_agg_names
from dpframe._plans.price import Payment, check_payment
from dpframe._questions.question import COUNT, SIZE, Query, Release
from dpframe._refusals import ADVICE, OWN_ROWS, refuse
from dpframe._session.session import Session
from dpframe._types import Index, Series


class PrivateGroupBy(Measurable):
    """``p.groupby("state")``: all declared groups come back, empty ones too, in the declared order.

    Formal guarantee of each release: epsilon-DP for its price, once for all groups together, since
    a row is in one of them (docs/guarantees/statistics.md).

    >>> df = pd.DataFrame({"state": ["CA", "NY", "CA"], "age": [30, 41, 50]})
    >>> p = df.dp.open(1e3, bounds={"age": (0, 110)}, keys={"state": ["CA", "NY"]})
    >>> p.groupby("state")["age"].mean(epsilon=900).round()
    state
    CA    40.0
    NY    41.0
    Name: age, dtype: float64
    """

    def __init__(
        self,
        session: Session,
        selection: Selection,
        mode: AnswerMode,
        selected: tuple[Hashable, ...] | None = None,
        single: bool = False,
        as_index: bool = True,
    ):
        """Make the groups of a selection, before anything is asked.

        ``mode`` decides whether a question is answered or explained. ``selected`` names the columns
        that are measured, or is None for all. ``single`` is true if one column was selected by its
        name alone. ``as_index`` is as in pandas.
        """
        super().__init__(session, selection, mode)
        self._chosen = selected
        self._single = single
        self._as_index = as_index
        if any(
            isinstance(level, Sought) for level in selection.by
        ):  # their keys are still to be found
            Search(self, selection.by).check()

    def __getitem__(self, key: object) -> Self:
        """Return the same groups with one column, or a list of columns, to be measured."""
        names = key if isinstance(key, list) else [key]
        chosen = tuple(_validate.column_names(names, self._selection.columns))
        single = not isinstance(key, list)
        return type(self)(
            self._session, self._selection, self._mode, chosen, single, self._as_index
        )

    def _of(self, selection: Selection) -> Self:
        """Return the same columns of the groups of another selection."""
        return type(self)(
            self._session, selection, self._mode, self._chosen, self._single, self._as_index
        )

    @property
    def _keyed(self) -> list[Hashable]:
        """The names of the levels that the index of an answer has."""
        return [
            name
            for level in self._selection.by
            for name in ([level.name] if isinstance(level, Sought) else level.index.names)
        ]

    # What differs from a frame ----------------------------------------------------------------------------------

    def _columns_for(
        self, column: object, aggregate: str, numeric_only: bool, verb: str | None = None
    ) -> tuple[Sequence[Any], bool]:
        """Return the columns that a verb measures, and whether the answer is of a single column.

        These are ``column`` if it is named, else the selected columns, else all but the group keys.
        """
        if column is not None and column is not EVERY:
            return (column,), True
        if self._chosen is not None:
            return self._chosen, self._single
        names, single = super()._columns_for(EVERY, aggregate, numeric_only, verb)
        return [name for name in names if name not in self._keyed], single

    def _flat(self, labels: Sequence[Hashable]) -> Finish:
        """Return a function that lays out an answer with the group keys as columns:
        ``as_index=False``.

        ``labels`` are the names of the other columns.
        """
        names = self._keyed
        if None in names:
            raise BadValue(
                "as_index=False makes columns of the groupings, and one of them has no name."
            )
        both = [name for name in names if name in labels]
        if both:
            raise BadValue(
                f"as_index=False would make two columns {both[0]!r}. Give the output another name."
            )
        return lambda r, index: _release.flat(r, index, labels, list(index.names))

    def _ask_for(
        self,
        outputs: Sequence[Output],
        payment: Mapping[str, object],
        layout: Finish | None = None,
        single: bool = False,
        choices: bool = False,
        part: Fraction = WHOLE,
    ) -> Any:
        """Ask a question with these outputs about each group, and return its answer.

        ``layout`` makes the answer from the release and the index of the groups. Without it a
        ``single`` output is a Series, and several are a table. With ``choices`` group keys never
        become columns. ``part`` is the share of the price that the question gets.
        """
        labels = [out.name for out in outputs]
        if layout is None and not self._as_index and not choices:
            layout = self._flat(labels)
        elif layout is None and single:
            layout = partial(_release.series, name=labels[0])
        elif (
            layout is None
            and not choices
            and labels
            and all(isinstance(label, tuple) for label in labels)
        ):
            layout = partial(_release.by_levels, columns=_release.make_columns(labels))
        elif layout is None:
            layout = partial(_release.table, columns=labels)
        keys = [out.keys for out in outputs]
        if any(keys):
            places = layout

            def layout(release: Any, index: Any) -> Any:
                return _release.with_keys(places(release, index), keys)

        return ask_in_groups(self, self._selection.by, tuple(outputs), layout, payment, part)

    def _aggregate(
        self, spec: object, named: Mapping[str, object], bounds: object, payment: dict[str, Any]
    ) -> Any:
        """Ask for the aggregates that `agg` was given, for each group and in one release.

        ``spec`` and ``named`` are the arguments of `agg`, and ``payment`` are those of its price.
        """
        read = read_spec(spec, named, self._chosen, self._single, ("argmax",))
        if read.form == "one" and read.wanted and read.wanted[0].aggregate == "size":
            return self.size(**cast(Any, payment))
        plain = self._single and read.form == "list"
        labels = [w.aggregate if plain else w.label for w in read.wanted]
        outs = [
            votes.wanted(self._selection, w.column, label)
            if w.aggregate == "argmax"
            else self._selection.make_output(w.aggregate, w.column, bounds, label)
            for w, label in zip(read.wanted, labels, strict=True)
        ]
        return self._ask_for(outs, payment, single=self._single and read.form == "one")

    # Verbs ----------------------------------------------------------------------------------------------------

    @property
    def explain(self) -> Self:
        """The same groups, whose verbs return their plan, free; see `PrivateFrame.explain`."""
        words = self._chosen, self._single, self._as_index
        return type(self)(self._session, self._selection, self._mode.explaining(), *words)

    @verb
    def size(self, **payment: Unpack[Payment]) -> Any:
        """Count the rows of each group, nulls included: an unnamed Series, as in pandas."""
        name = cast(Any, self._chosen)[0] if self._single else None
        return self._rows(name, payment)

    def _rows(self, name: Hashable, payment: Mapping[str, object]) -> Any:
        # pandas names the column of sizes, whatever is selected
        label = name if self._as_index or name == "count" else "size"
        layout = partial(_release.series, name=label) if self._as_index else self._flat([label])
        return self._ask_for([SIZE], payment, layout)

    @verb
    def value_counts(
        self,
        column: object = None,
        *,
        keys: object = None,
        sort: bool = True,
        normalize: bool = False,
        ascending: bool = False,
        dropna: bool | None = None,
        **payment: Unpack[Payment],
    ) -> Series:
        """Count the rows of each group that have each value of a column, or each combination of
        values of several.

        The largest count of a group comes first; ``normalize=True`` divides by the sum of the
        counts of the group.

        Formal guarantee: epsilon-DP for its price, once for all groups and values together, since a
        row is in one of them.

        >>> df = pd.DataFrame({"state": ["CA", "NY", "CA"], "sick": [True, False, True]})
        >>> p = df.dp.open(1000, keys={"state": ["CA", "NY"]})
        >>> p.groupby("state")["sick"].value_counts(epsilon=900)
        state  sick
        CA     True     2 ± 0
               False    0 ± 0
        NY     False    1 ± 0
               True     0 ± 0
        Name: count, dtype: int64
        """
        names = self._chosen if column is None else [column]
        if names is None:
            raise BadType("name the column: groupby('k')['x'].value_counts().")
        if not self._as_index:
            raise NotOffered(
                "value_counts has its groups as index: leave as_index=False out, and reset_index() the answer."
            )
        if any(isinstance(level, TupleBy) for level in self._selection.by):
            raise NotOffered(
                "of groups that are listed combinations there are no counts of values: list their keys column by column."
            )
        given = (
            {names[0]: keys}
            if keys is not None and not isinstance(keys, Mapping) and len(names) == 1
            else keys
        )
        levels = [
            make_level(
                self,
                self._selection.level(name),
                keys_of(given, i, name, len(names)),
                "value_counts",
                None,
                dropna,
            )
            for i, name in enumerate(names)
        ]
        options = {"sort": sort, "normalize": normalize, "ascending": ascending}
        return cast(
            "pd.Series[Any]",
            count_values(self, self._selection.by, levels, options, check_payment(payment)),
        )

    @verb
    def histogram(
        self,
        column: object = None,
        bins: object = 10,
        *,
        bounds: object = None,
        **payment: Unpack[Payment],
    ) -> Series:
        """Count the values of a column that lie in each bin, in each group; see
        `PrivateFrame.histogram`.

        Of a selected column the first argument is ``bins``.

        Formal guarantee: epsilon-DP for its price, once for all groups and bins together, since a
        row is in one of them.

        >>> df = pd.DataFrame({"state": ["CA", "NY", "CA"], "age": [30, 41, 85]})
        >>> p = df.dp.open(1000, bounds={"age": (0, 100)}, keys={"state": ["CA", "NY"]})
        >>> p.groupby("state")["age"].histogram(2, epsilon=900)
        state  age
        CA     [0.0, 50.0)      1 ± 0
               [50.0, 100.0)    1 ± 0
        NY     [0.0, 50.0)      1 ± 0
               [50.0, 100.0)    0 ± 0
        Name: count, dtype: int64
        """
        if column is not None and self._single and not self._is_column(column):
            column, bins = None, column
        names = self._chosen if column is None else (column,)
        if names is None or len(names) != 1:
            raise BadType("histogram in groups is of one column: p.groupby('k')['x'].histogram().")
        if not self._as_index:
            raise NotOffered(
                "histogram has its groups as index: leave as_index=False out, and reset_index() the answer."
            )
        by, labels = list_bins(self, names[0], bins, bounds)

        def layout(release: Release, index: Index) -> Series:
            """Lay the counts out by group and bin, with the labels of the bins."""
            groups = cast(pd.MultiIndex, index).droplevel([-1])[:: len(labels)]
            return _release.series(release, _release.nest_rows(groups, labels), "count")

        levels = (*self._selection.by, by)
        return cast("pd.Series[Any]", ask_in_groups(self, levels, (COUNT,), layout, payment))

    @verb
    def describe(
        self, *, percentiles: object = None, bounds: object = None, **payment: Unpack[Payment]
    ) -> pd.DataFrame:
        """Ask for count, mean, standard deviation and quantiles of the selected columns in each
        group, at one price; of all with public bounds if none are selected.

        Formal guarantee: epsilon-DP for its price; see `PrivateFrame.describe`.
        """
        payment = check_payment(payment)
        names = self._chosen
        if names is None:
            bounded = list_bounded(self, bounds, ("number", "time", "duration"))
            names = tuple([name for name in bounded if name not in self._keyed])
        if not names:
            raise BadType("name the columns: ['x'].describe() or [['x', 'y']].describe().")
        summary = describe_columns(self._selection, names, percentiles, bounds)
        outs = [
            out if self._single else replace(out, name=(name, out.name))
            for name, outs in summary
            for out in outs
        ]
        columns = _release.make_columns([out.name for out in outs])
        if not self._as_index:
            raise NotOffered(
                "describe has its groups as index: leave as_index=False out, and reset_index() the answer."
            )
        layout = partial(_release.by_levels, columns=columns, whole=False)
        return cast(pd.DataFrame, self._ask_for(outs, payment, layout))

    @verb
    def cov(
        self,
        min_periods: None = None,
        ddof: int = 1,
        *,
        bounds: object = None,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame:
        """Take the covariances of the selected columns in each group, one table below the other;
        see `PrivateFrame.cov`."""
        return cast(pd.DataFrame, matrix(self, OutputGrid, min_periods, ddof, bounds, payment))

    @verb
    def corr(
        self,
        method: str = "pearson",
        min_periods: None = None,
        *,
        bounds: object = None,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame:
        """Take the correlations of the selected columns in each group, one table below the other;
        see `PrivateFrame.corr`."""
        check_correlation(method, payment)
        return cast(pd.DataFrame, matrix(self, CorrelationTable, min_periods, 1, bounds, payment))

    @verb
    def count(
        self,
        column: object = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """Count the non-null values of a column in each group; without a column those of every
        column, as in pandas.

        Each column is a vector of its own, and they share the price. How many rows a group has
        is `size`.
        """
        if (
            column is None
            and self._chosen is None
            and set(self._selection.columns) <= set(self._keyed)
        ):
            raise BadValue(
                "count() counts the non-null values of the other columns, and there are none. Rows are counted by "
                "p.groupby(...).size()."
            )
        return self._measure("count", column, None, 1, payment)

    def _refusal(self, text: str) -> NotOffered:
        """Return the error about a verb that groups do not have, in the names of the frame."""
        asked = self._chosen[0] if self._single and self._chosen else None
        return NotOffered(use_own_names(text, self._selection, asked))

    def _find_unknown(self, name: str) -> PrivateGroupBy:
        """Return these groups with the column of this name, or refuse a verb that groups do not
        have."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._selection.columns:
            return self[name]
        if name in OWN_ROWS:
            within = f"p.groupby('patient_id'){OWN_ROWS[name]}."
            if not self._session.unit.people:
                within = "here a row is one; where a column says whose a row is, open(unit='patient_id') and group by it."
            raise self._refusal(
                f"{name} looks at several rows of a group, which are those of different people. It is offered within a "
                f"person: {within}"
            )
        known = [verb for verb in dir(type(self)) if not verb.startswith("_")]
        close = find_close_name(name, known)
        advice = _ADVICE.get(name) or ADVICE.get(
            name,
            f"groups have no private {name!r}.{did_you_mean(name, known) if close else ''} They have "
            f"{', '.join(list_agg_names())}, quantile, describe, value_counts, argmax, top, cov, corr and agg.",
        )
        raise self._refusal(advice)

    def __iter__(self) -> Any:
        raise self._refusal(
            "groups are not handed out one by one: they are rows of people. Ask for a release of "
            "all groups, "
            f"p.groupby('k')['x'].mean(), or choose the rows of each by a condition: {self._loop}."
        )

    @property
    def _loop(self) -> str:
        """The line that chooses the rows of each group, as a user writes it."""
        plain = {expr: name for name, expr in self._selection.columns.items()}
        conditions, loops = [], []
        for letter, level in zip("stuvw", self._selection.by, strict=False):
            expr = getattr(level, "expr", None)
            if isinstance(level, Sought) or expr not in plain or len(level.index) > _FEW_KEYS:
                return "[p[p['k'] == s] for s in keys]"
            keys = [key for key in level.index.tolist() if key == key and key is not None]
            conditions.append(f"p[{plain[expr]!r}] == {letter}")
            loops.append(f"for {letter} in {keys!r}")
        both = conditions[0] if len(conditions) == 1 else " & ".join(f"({c})" for c in conditions)
        return f"[p[{both}] {' '.join(loops)}]"

    def __reduce__(self) -> NoReturn:
        refuse("pickle")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self  # nothing in it changes

    def __len__(self) -> int:
        """Return the number of groups, which follows from the listed keys.

        Raise if the keys are still to be found.
        """
        if any(isinstance(level, Sought) for level in self._selection.by):
            raise MissingKeys(
                "the keys of these groups are not known before they are found: p.unique(column)."
            )
        return len(
            cast("pd.Index[Any]", combined_index(cast("tuple[By, ...]", self._selection.by)))
        )

    def __repr__(self) -> str:
        return f"PrivateGroupBy by {', '.join(map(str, self._selection.by))}"


def ask_in_groups(
    asking: Askable,
    by: tuple[By | Sought, ...],
    outputs: tuple[Output, ...],
    layout: Finish,
    payment: Mapping[str, object],
    part: Fraction = WHOLE,
) -> Any:
    """Ask for some aggregates of some groups, or of all rows if ``by`` is empty.

    ``layout`` makes the answer from the release and the index of the groups. ``part`` is the share
    of the price that the question gets.
    """
    if any(isinstance(level, Sought) for level in by):
        return Search(asking, by).ask(outputs, layout, payment)
    levels = cast("tuple[By, ...]", by)
    query = Query(outputs, selection_of(asking).where, levels)
    return ask_question(
        asking, query, lambda release: layout(release, combined_index(levels)), payment, part
    )


def count_values(
    asking: Askable,
    groups: tuple[By | Sought, ...],
    levels: Sequence[By | Sought],
    options: Mapping[str, object],
    payment: Mapping[str, object],
    layered: bool = False,
) -> Any:
    """Count the rows that have each of some values, in each of some groups or in all.

    This is the answer of `value_counts`. ``levels`` are the columns whose values are counted, and
    ``groups`` the other groupings, or empty. The ``options`` sort, ascending and normalize look at
    released numbers only. ``layered`` gives the answer a MultiIndex even for one column.
    """
    for word, flag in options.items():
        _validate.flag(flag, word)
    by = (*groups, *levels)
    if groups and options["normalize"] and any(isinstance(level, Sought) for level in by):
        raise NotOffered(
            "normalize=True in groups needs their keys and those of the column: list keys=[...], or divide the counts."
        )

    def layout(release: Release, index: Index) -> Series:
        """Lay the noisy counts out as a Series, sorted and normalized as the user asked.

        ``index`` has the groups and the values that were counted.
        """
        counts, order = _release.values(release, 0), None
        index = pd.MultiIndex.from_arrays([index]) if layered and index.nlevels == 1 else index
        if options["sort"]:
            ranks = counts if options["ascending"] else -counts
            order = np.argsort(ranks, kind="stable")
            if groups:  # largest first in each group, and groups as they stand
                of_groups = cast(pd.MultiIndex, index).droplevel([*range(-len(levels), 0)])
                order = order[np.argsort(_pandas.factorize(of_groups)[0][order], kind="stable")]
        if not options["normalize"]:
            return _release.series(release, index, "count", order)
        shares: AnswerLayout = PivotTable(len(index), normalize="all")
        if groups:
            many = groups_of(cast("tuple[By, ...]", groups))
            shares = ShareColumn(PivotTable(many, len(index) // many, normalize="index"))
        return _release.proportions(release, shares, index, "proportion", order)

    return ask_in_groups(asking, by, (COUNT,), layout, payment)


def check_options(
    group_keys: object, observed: object, level: object, as_index: object = True
) -> None:
    """Check the arguments of pandas' groupby that change nothing here; refuse ``level=``."""
    for word, value in (("as_index", as_index), ("group_keys", group_keys)):
        if value is not True:
            _validate.flag(value, word)
    if level is not None:
        raise NotOffered(
            "level= groups by an index, which a tracked frame has not. Group by columns."
        )
    if observed is not None:
        _validate.flag(observed, "observed")  # which listed keys occur is not told: all come back


_FEW_KEYS = 20  # that a message lists
# What is said of groups in other words than of frames.
_ADVICE = {
    "apply": "a function could look across the people of a group. Name what it computes: p.groupby('k').agg(m=('x', 'mean'), "
    "n=('x', 'size')), or p.groupby('k')['x'].agg(['min', 'max']); and steps of one row before it: "
    "p.assign(y='x / 2').groupby('k')['y'].mean().",
    "pipe": "a function could look across the people of a group. Ask in its place: p.groupby('k').agg(m=('x', 'mean')).",
    "dp": "these groups are tracked already: leave .dp out, p.groupby('k').size().",
}
