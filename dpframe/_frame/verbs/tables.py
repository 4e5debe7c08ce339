"""Values of a column, pivot tables and crosstabs: each is one release, laid out as pandas lays it
out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Unpack, cast

import pandas as pd

from dpframe import _expr, _validate
from dpframe._answers import answer as _release
from dpframe._answers.foundkeys import read_released_keys
from dpframe._answers.layout import PivotTable
from dpframe._errors import BadType, BadValue, NotOffered
from dpframe._frame.found import Search, key_search, listed
from dpframe._frame.groups import ask_in_groups, check_options, count_values
from dpframe._frame.selection import BoundsLike, ask_question, make_level, mode_of, selection_of
from dpframe._frame.signatures import verb
from dpframe._frame.tracked import Tracked
from dpframe._frame.verbs.agg import Wanted, read_aggregate, read_aggregates
from dpframe._frame.verbs.groupings import groupings, make_levels
from dpframe._frame.verbs.summaries import edges_of
from dpframe._groups.combinations import Sought, TupleBy, with_rest
from dpframe._groups.keys import EVERY, By, KeyBy, combined_index, keys_for, with_options
from dpframe._plans.aggregates import AGGREGATES, Aggregate, Output
from dpframe._plans.plan import Plan
from dpframe._plans.price import Payment, check_payment
from dpframe._questions.question import COUNT, Query, Release
from dpframe._types import Index, Series


@verb
def unique(self: Tracked, column: object, **payment: Unpack[Payment]) -> Index:
    """Find the values of a column that many people have, sorted, to be used as ``keys=``.

    A list of columns gives combinations. Where the keys of a column are declared and no price is
    named, these come back, free and in their order.

    Formal guarantee: declared keys are public. Else (epsilon, delta)-DP for its price. Delta is the
    chance that a value appears that one person alone has (docs/guarantees/keys.md); left out, it is
    a share of what the session keeps for such failures. ``explain`` tells how many people a value needs. Nulls are not values.

    >>> df = pd.DataFrame({"state": ["CA"] * 400 + ["NY"] * 300 + ["XX"]})
    >>> p = df.dp.open(3, delta=1e-6)
    >>> list(p.unique("state", epsilon=0.2))
    ['CA', 'NY']
    """
    columns = [
        self._selection.find_column(c) for c in (column if isinstance(column, list) else [column])
    ]
    if not columns:
        raise BadValue("unique needs at least one column.")
    mode = mode_of(self)
    if len(columns) == 1 and not (payment or mode.shows or mode.answers_later):
        known = self._selection.listed_keys(*columns[0])
        if known is not None:
            return known
    search, price_arguments = key_search(self, columns, payment)

    def answer(release: Release) -> Index:
        """Return the keys that were found, and let the session remember them."""
        found = read_released_keys(release, columns)
        self._session.found_keys.record(
            [expr for expr, _ in columns], self._selection.where, found.keys
        )
        return found.index

    return cast("pd.Index[Any]", self._ask(search, answer, price_arguments))


@verb
def value_counts(
    self: Tracked,
    column: object = EVERY,
    *,
    keys: object = None,
    other: object = None,
    sort: bool = True,
    normalize: bool = False,
    ascending: bool = False,
    dropna: bool | None = None,
    bins: object = None,
    subset: object = None,
    bounds: BoundsLike = None,
    **payment: Unpack[Payment],
) -> Series:
    """Count the rows that have each of the listed values; the largest (noisy) count first, as
    pandas sorts.

    Of several columns, a list of them or all that are selected, how many rows have each
    combination: an answer with a level a column. ``normalize=True`` divides by the sum of these
    counts: the same release, as proportions that sum to 1 (a noisy count below zero makes a
    proportion below zero; without a positive sum they are NaN). ``dropna=False`` counts nulls as a
    value of their own, and ``other="elsewhere"`` all values that are neither listed nor null.
    ``bins=``, edges or how many there are between the bounds of the column, counts numbers by the
    interval they are in, which is closed on the right; the first one is a little wider, so that the
    least value is in it.

    Formal guarantee: epsilon-DP for its price; a row is in one group, so the whole vector has
    sensitivity 1 (2 under replace-one). Sorting looks at released numbers only; ``sort=False``
    keeps the order of the keys.

    >>> df = pd.DataFrame({"state": ["CA", "NY", "CA"]})
    >>> p = df.dp.open(100)
    >>> p.value_counts("state", keys=["NY", "CA", "WA"], epsilon=80)
    state
    CA    2 ± 0
    NY    1 ± 0
    WA    0 ± 0
    Name: count, dtype: int64
    """
    payment = check_payment(payment)
    options = {"sort": sort, "normalize": normalize, "ascending": ascending}
    if column is EVERY:
        column = list(self._selection.columns) if subset is None else subset
    elif subset is not None:
        raise BadType("value_counts takes columns or subset=, and not both.")
    levels: Sequence[By | Sought]
    if bins is not None:
        if isinstance(column, list):
            raise BadType("bins= are of one column: p['x'].value_counts(bins=[...]).")
        levels = [_in_bins(self, column, bins, bounds)]
    elif isinstance(column, list):
        levels = groupings(self, column, keys, None, dropna, other, None)
    else:
        level = make_level(
            self, self._selection.find_column(column), keys, "value_counts", None, dropna
        )
        levels = (level,) if other is None else with_rest((level,), other)
    return cast(
        "pd.Series[Any]", count_values(self, (), levels, options, payment, isinstance(column, list))
    )


def _in_bins(frame: Tracked, column: object, bins: object, bounds: object) -> KeyBy:
    """Return the grouping by intervals that ``value_counts(bins=...)`` counts, as pandas makes
    them.

    They are closed on the right, and the first is a thousandth wider to hold the least value.
    """
    expr, name = selection_of(frame).find_column(column)
    first, *others = edges_of(frame, expr, name, bins, bounds)
    by = _expr.cut(expr, [first - 1e-3, *others], None, True)
    return KeyBy(by, keys_for(list(cast(Any, by).categories), by, None))


# Tables ---------------------------------------------------------------------------------------------------


@verb
def pivot_table(
    self: Tracked,
    values: object = None,
    index: object = None,
    columns: object = None,
    aggfunc: object = "mean",
    fill_value: object = None,
    margins: bool = False,
    dropna: bool | None = None,
    margins_name: str = "All",
    observed: bool | None = None,
    sort: bool | None = None,
    *,
    keys: object = None,
    bounds: BoundsLike = None,
    **payment: Unpack[Payment],
) -> pd.DataFrame:
    """Make a table of aggregates by the keys of some columns, as pandas lays it out, in one
    release.

    Every listed key has its row or column, in the order of the list, so no cell is missing and
    ``fill_value`` has nothing to fill; ``sort=True`` sorts the keys. Of columns whose keys nobody
    listed, half of the price finds those that enough people share, as `unique` does, in sessions
    with delta. Margins are made of what is released, and cost nothing: counts and sums add up, and
    a mean is that of all the rows of its groups.

    Formal guarantee: epsilon-DP for its price, once for the whole table, since a row is in one cell
    of it (docs/guarantees/shapes.md).

    >>> df = pd.DataFrame({"state": ["CA", "NY", "CA"], "smoker": [True, False, False], "age": [30, 41, 50]})
    >>> p = df.dp.open(1e3, bounds={"age": (0, 110)}, keys={"state": ["CA", "NY"]})
    >>> p.pivot_table("age", "state", "smoker", aggfunc="sum", margins=True, epsilon=900)
    smoker   False    True      All
    state
    CA      50 ± 0  30 ± 0   80 ± 0
    NY      41 ± 0   0 ± 0   41 ± 0
    All     91 ± 0  30 ± 0  121 ± 0
    """
    payment = check_payment(payment)
    _validate.flag(margins, "margins")
    check_options(True, observed, None)
    sides = _sides(self, index, columns, keys, sort, dropna, "pivot_table")
    if isinstance(aggfunc, str) and aggfunc == "size":
        if columns is None:  # as in pandas a Series
            return cast(
                pd.DataFrame, ask_in_groups(self, sides[0], (COUNT,), _make_size_series, payment)
            )
        return cast(
            pd.DataFrame, _pivot(self, (COUNT,), [()], sides, margins, None, margins_name, payment)
        )
    plan = _read_pivot(values, aggfunc, columns is not None, sort is not False)
    outs = tuple(self._selection.make_output(w.aggregate, w.column, bounds, w.label) for w in plan)
    labels = [w.label for w in plan]
    return cast(
        pd.DataFrame, _pivot(self, outs, labels, sides, margins, None, margins_name, payment)
    )


def _make_size_series(release: Release, index: Any) -> Series:
    """Return the numbers of rows of all groups as a Series without a name."""
    return _release.series(release, index, None)


@verb
def crosstab(
    self: Tracked,
    index: object,
    columns: object,
    values: object = None,
    rownames: object = None,
    colnames: object = None,
    aggfunc: object = None,
    margins: bool = False,
    margins_name: str = "All",
    dropna: bool | None = None,
    normalize: object = False,
    *,
    keys: object = None,
    bounds: BoundsLike = None,
    **payment: Unpack[Payment],
) -> pd.DataFrame:
    """Count the rows that have each pair of keys, as ``pd.crosstab``; of ``values`` an aggregate,
    if both are given.

    ``index`` and ``columns`` are names of columns, or lists of them. Half of the price finds keys
    that nobody listed, as in `pivot_table`. ``normalize=True`` (or ``"index"``, ``"columns"``)
    divides the released counts by their total (or that of their row, or column): NaN where the
    noisy total is not positive. Margins add up.

    Formal guarantee: epsilon-DP for its price; the whole table of counts has sensitivity 1 (2 under
    replace-one).

    >>> df = pd.DataFrame({"state": ["CA", "NY", "CA"], "smoker": [True, False, False]})
    >>> p = df.dp.open(1000, keys={"state": ["CA", "NY"]})
    >>> p.crosstab("state", "smoker", margins=True, epsilon=900)
    smoker  False   True    All
    state
    CA      1 ± 0  1 ± 0  2 ± 0
    NY      1 ± 0  0 ± 0  1 ± 0
    All     2 ± 0  1 ± 0  3 ± 0
    """
    payment = check_payment(payment)
    _validate.flag(margins, "margins")
    share = _read_normalize(normalize, values is not None)
    if (values is None) != (aggfunc is None):
        raise BadValue(
            "crosstab takes values= and aggfunc= together, or neither for counts of rows."
        )
    sides = _sides(self, index, columns, keys, None, dropna, "crosstab")
    out = COUNT
    if values is not None:
        out = self._selection.make_output(read_aggregate(aggfunc), values, bounds, aggfunc)
    names = _names(rownames, index, "rownames"), _names(colnames, columns, "colnames")
    return cast(
        pd.DataFrame,
        _pivot(self, (out,), [()], sides, margins, share, margins_name, payment, names),
    )


def _sides(
    frame: Tracked,
    index: object,
    columns: object,
    keys: object,
    sort: bool | None,
    dropna: bool | None,
    verb: str,
) -> tuple[tuple[By | Sought, ...], int]:
    """Return the groupings of a pivot table, and how many of them are its rows; others are
    columns."""
    if index is None:
        raise BadValue(
            f"{verb} needs index=, a column or a list of columns whose keys are the rows."
        )
    rows = index if isinstance(index, list) else [index]
    above = columns if isinstance(columns, list) else [] if columns is None else [columns]
    wanted = [*rows, *above]
    if any(isinstance(column, pd.Grouper) for column in wanted):
        levels = groupings(frame, wanted, keys, sort, dropna, None, None)
    else:
        levels = tuple(make_levels(frame, wanted, keys, sort, dropna, verb))
    Search(frame, levels).check()
    return levels, len(rows)


def _find_keys(
    frame: Tracked, levels: tuple[By | Sought, ...], payment: Payment
) -> tuple[tuple[By, ...], Fraction] | Plan:
    """Return the groupings of a pivot table with their keys, and the part of the price that is
    left.

    ``levels`` are the groupings. Keys that nobody listed are found for half of the price. Of
    several columns they are the combinations that enough people share. In explain mode the plan of
    the search is returned.
    """
    groupings_and_part = listed(frame, levels, payment)
    if (
        isinstance(groupings_and_part, Plan)
        or len(levels) == 1
        or not isinstance(groupings_and_part[0][0], TupleBy)
    ):
        return groupings_and_part
    columns = groupings_and_part[0][0].levels
    return tuple(
        KeyBy(level.expr, with_options(level.keys, level.expr, True, None)) for level in columns
    ), groupings_and_part[1]


def _cannot_add_up(aggregate: Aggregate) -> bool:
    """Return whether the total of all groups is not the sum of the groups."""
    return aggregate.counts_distinct or aggregate.counts_people


def _pivot(
    frame: Tracked,
    outs: tuple[Output, ...],
    prefixes: list[Any],
    sides: tuple[tuple[By | Sought, ...], int],
    margins: bool,
    share: str | None,
    margin: str,
    payment: Any,
    names: tuple[object, object] = (None, None),
) -> Any:
    """Ask for the cells of a pivot table in one release, and return the table.

    ``outs`` are the aggregates, and ``prefixes`` their labels above the keys. ``sides`` are the
    groupings, and how many of them are rows. ``margins`` adds totals under the label ``margin``.
    ``share`` is the total that counts are divided by, or None. ``names`` are other names for rows
    and columns.
    """
    if margins and any(_cannot_add_up(AGGREGATES[out.aggregate]) for out in outs):
        raise NotOffered(
            "distinct values of groups do not add up to those of all: leave margins=True out."
        )
    if margins and not isinstance(margin, str):
        raise BadType("margins_name= must be a string.")
    levels, rows_of = sides
    groupings_and_part = _find_keys(frame, levels, payment)
    if isinstance(groupings_and_part, Plan):
        return groupings_and_part
    by, part = groupings_and_part
    index, above = cast("pd.Index[Any]", combined_index(by[:rows_of])), combined_index(by[rows_of:])
    below = margins and share != "columns"
    right = margins and share != "index" and above is not None
    layout = PivotTable(len(index), 1 if above is None else len(above), below, right, share)
    index = index if names[0] is None else index.set_names(names[0])
    if above is not None and names[1] is not None:
        above = above.set_names(names[1])
    rows = _with_margin(index, margin, margins) if below else index
    if right:
        above = _with_margin(above, margin, margins)
    columns = _header(prefixes, above)
    query = Query(outs, selection_of(frame).where, by)
    return ask_question(
        frame, query, lambda r: _release.make_table(r, layout, rows, columns), payment, part
    )


# Labels of a table: which outputs stand above which keys, and where the margins are


def _read_pivot(values: object, aggfunc: object, keyed: bool, sort: bool) -> list[Wanted]:
    """Return the aggregates that a pivot table asks for in pandas' order, each with its labels.

    ``keyed`` tells whether there are keys above the table; without them the outputs need names.
    """
    if isinstance(aggfunc, Mapping):
        if values is not None and set(_as_list(values)) != set(aggfunc):
            raise BadValue("aggfunc= as a dict names the columns itself: leave values= out.")
        lists = any(isinstance(v, list) for v in aggfunc.values())
        wanted = []
        for column in _sort_names(list(aggfunc), sort):
            aggregates = aggfunc[column]
            aggregate_list = read_aggregates(
                aggregates if isinstance(aggregates, list) else [aggregates]
            )
            wanted += [
                Wanted((column, a) if lists else (column,), column, a)
                for a in _sort_names(aggregate_list, lists and sort)
            ]
        if not wanted:
            raise BadValue("pivot_table needs at least one aggregate: aggfunc={'age': 'mean'}.")
        return wanted
    if values is None:
        raise BadType(
            "pivot_table needs values=, the columns to aggregate. For counts of rows write aggfunc='size'."
        )
    columns = _sort_names(_as_list(values), sort and isinstance(values, list))
    if not columns:
        raise BadValue("pivot_table needs at least one column of values.")
    named = isinstance(values, list) or not keyed
    if isinstance(aggfunc, list):
        aggregate_list = read_aggregates(aggfunc)
        return [Wanted((a, c) if named else (a,), c, a) for a in aggregate_list for c in columns]
    aggregate = read_aggregate(aggfunc)
    return [Wanted((c,) if named else (), c, aggregate) for c in columns]


def _as_list(values: object) -> list[Any]:
    return values if isinstance(values, list) else [values]


def _sort_names(names: list[Any], sort: bool) -> list[Any]:
    try:
        return sorted(names) if sort else names
    except TypeError:
        return names


def _read_normalize(value: object, aggregated: bool) -> str | None:
    """Read ``normalize=``: the total that counts are divided by, or None.

    The total is ``"all"``, ``"index"`` or ``"columns"``. ``aggregated`` is true if values are
    aggregated, which have no shares.
    """
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


def _names(argument: object, columns: object, name: str) -> list[Hashable] | None:
    """Return the names that a crosstab gives to its rows or columns, or None for those of the
    columns.

    ``argument`` is ``rownames=`` or ``colnames=``, and ``columns`` are the columns to be named.
    """
    if argument is None:
        return None
    names = argument if isinstance(argument, list) else [argument]
    count = len(columns) if isinstance(columns, list) else 1
    if len(names) != count:
        raise BadValue(f"{name}= needs one name for each of its {count} columns.")
    return names


def _with_margin(index: Any, name: str, margins: bool) -> Index:
    """Return the labels of a table with one more for the totals, as pandas writes it.

    ``name`` is the label of the totals.
    """
    if any(name in index.get_level_values(level) for level in range(index.nlevels)):
        raise BadValue(f"a key is called {name!r} as the margins are: give another margins_name=.")
    if index.nlevels > 1:
        return pd.MultiIndex.from_tuples(
            [*index, (name, *[""] * (index.nlevels - 1))], names=list(index.names)
        )
    return pd.Index([*index, name], name=index.name, tupleize_cols=False)


def _header(prefixes: Sequence[tuple[Hashable, ...]], above: Index | None) -> Index:
    """Return the column labels of a pivot table: those of each output, and below them the keys.

    ``prefixes`` are the labels of the outputs, and ``above`` are the keys, or None without any.
    """
    if above is None:
        if len(prefixes[0]) == 1:
            return pd.Index([prefix[0] for prefix in prefixes], tupleize_cols=False)
        return pd.MultiIndex.from_tuples(list(prefixes))
    if not prefixes[0]:
        return above
    keys = [key if isinstance(key, tuple) else (key,) for key in above]
    labels = [None] * len(prefixes[0]) + list(above.names)
    return pd.MultiIndex.from_tuples(
        [(*prefix, *key) for prefix in prefixes for key in keys], names=labels
    )
