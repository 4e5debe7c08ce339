"""Summaries of columns: several aggregates at once, covariances, correlations. Each is one
release."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe import _validate
from dpframe._answers import answer as _release
from dpframe._answers.layout import AnswerLayout, CorrelationTable, OutputGrid
from dpframe._errors import BadType, BadValue, MissingBounds, NotOffered, caution
from dpframe._expr import Expr
from dpframe._frame.columns.seconds import convert_to_seconds
from dpframe._frame.selection import (
    BoundsLike,
    Selection,
    check_condition,
    find_caller,
    selection_of,
)
from dpframe._frame.signatures import verb
from dpframe._frame.tracked import Tracked, read_expression_or_text
from dpframe._frame.verbs.measure import ask_outputs
from dpframe._groups.keys import EVERY, BinBy
from dpframe._plans.aggregates import AGGREGATES, DESCRIBED, Output
from dpframe._plans.durations import make_moment
from dpframe._plans.order import ORDERS, choose_quantile_method, read_levels
from dpframe._plans.price import Payment, check_payment
from dpframe._questions.question import COUNT, Query
from dpframe._types import Index

if TYPE_CHECKING:
    from dpframe._frame.verbs.measure import Measurable


@verb
def describe(
    self: Tracked,
    column: object = EVERY,
    bounds: BoundsLike = None,
    *,
    percentiles: object = None,
    include: object = None,
    exclude: object = None,
    **payment: Unpack[Payment],
) -> Any:
    """Ask for count, mean, standard deviation and quantiles of every number, time and duration
    column with public bounds, in one release.

    A DataFrame as pandas' ``describe``, a column a column; of one column, or of a list of them, if
    named. A column without bounds is left out, unless it is named. ``include`` and ``exclude``
    choose columns by dtype as in pandas. What texts and conditions have is `value_counts`; with
    ``include="all"`` a warning names them. ``min`` and ``max`` are those of the verbs: the 1 % and
    the 99 % quantile. ``agg(["count", "mean", "std"])`` spends the whole price on these three, which
    are then about twice as accurate.

    Formal guarantee: epsilon-DP for its price, which is shared by one vector of moments
    (docs/guarantees/variance.md) and one set of quantiles (docs/guarantees/quantiles.md) a column.

    >>> df = pd.DataFrame({"age": [30.0, 40.0, None] * 500, "name": ["a", "b", "c"] * 500})
    >>> p = df.dp.open(1e3, bounds={"age": (0, 110)})
    >>> p.describe(percentiles=[0.25], epsilon=900).round()
              age
    count  1000.0
    mean     35.0
    std       5.0
    min      30.0
    25%      30.0
    max      40.0
    min is the quantile 0.01, max is the quantile 0.99
    """
    payment = check_payment(payment)
    if column is not EVERY and not isinstance(column, list):  # dtypes choose nothing, as in pandas
        ((name, outs),) = describe_columns(self._selection, [column], percentiles, bounds)
        index = pd.Index([out.name for out in outs])
        return self._ask_for(outs, payment, lambda r, _: _release.across(r, index, name))
    if column is EVERY:
        names = _list_described(self, bounds, include, exclude)
    elif include is not None or exclude is not None:
        raise BadType(
            "include= and exclude= choose columns, and here they are named: leave them out."
        )
    else:
        names = _validate.column_names(column, self._selection.columns)
    summary = describe_columns(self._selection, names, percentiles, bounds)
    cells = [
        ((out.name, name), replace(out, name=(name, out.name)))
        for name, outs in summary
        for out in outs
    ]
    outs = [out for _, out in cells]
    layout = _release.grid(outs, [place for place, _ in cells], whole=False, mixed=True)
    return self._ask_for(outs, payment, layout)


def _list_described(
    frame: Tracked, bounds: object, include: object, exclude: object
) -> list[Hashable]:
    """Return the columns of the table of `describe`, by dtype as in pandas.

    They are numbers, times and durations with public bounds. With ``include="all"`` a warning names
    the line for the others.
    """
    every = isinstance(include, str) and include == "all"
    if every and exclude is not None:
        raise BadValue("exclude= must be left out where include is 'all', as in pandas.")
    described = list_bounded(frame, bounds, ("number", "time", "duration"))
    if every:
        others = [n for n, e in selection_of(frame).columns.items() if e.kind in ("text", "bool")]
        if others:
            apart = ", ".join(f"p[{name!r}].value_counts()" for name in others[:2])
            caution(f"describe has columns of numbers and times. Others are asked apart: {apart}.")
        return described
    if include is None and exclude is None:
        return described
    chosen = selection_of(cast(Any, frame).select_dtypes(include, exclude)).columns
    names = [name for name in described if name in chosen]
    if not names:
        other = next(iter(chosen), None)
        line = "p['x'].value_counts()" if other is None else f"p[{other!r}].value_counts()"
        raise NotOffered(
            "describe has columns of numbers and times with public bounds, and include= and "
            f"exclude= leave none. For the values of another column ask {line}."
        )
    return names


def describe_columns(
    selection: Selection, columns: Sequence[object], percentiles: object, bounds: object
) -> list[tuple[Hashable, list[Output]]]:
    """Return the outputs that `describe` asks of each column: count, mean, std and quantiles.

    They are named as the rows of pandas' table. The first and the last quantile stand near the
    least and the greatest value. ``percentiles`` are the others, or None for those of pandas.
    """
    percentile_list = [0.25, 0.5, 0.75] if percentiles is None else percentiles
    is_empty = isinstance(percentile_list, list | tuple) and not percentile_list
    exact = () if is_empty else read_levels(percentile_list).exact
    inner = sorted(set(exact))
    if len(inner) < len(exact):
        raise BadValue("percentiles= names one twice.")
    labels = _percents(inner)
    levels = [("min", ORDERS["min"]), *zip(labels, inner, strict=True), ("max", ORDERS["max"])]
    how = choose_quantile_method(len(levels), "auto")
    return [
        (
            selection.find_column(column)[1],
            [
                *(
                    selection.output(a, column, bounds, name=a)
                    for a in DESCRIBED
                    if a != "std" or selection.expr(column).kind != "time"  # as in pandas
                ),
                *(
                    selection.order(column, level, bounds, None, name, how)
                    for name, level in levels
                ),
            ],
        )
        for column in columns
    ]


def _percents(levels: Sequence[Fraction]) -> list[str]:
    """Return the names that pandas gives to percentiles."""
    rows = pd.Series([0.0]).describe(percentiles=[float(level) for level in levels]).index
    return list(rows[len(DESCRIBED) + 1 : -1])


def _has_only_flags(selection: Selection, names: Sequence[Hashable]) -> bool:
    """Return whether the columns are conditions, and the table has numbers beside them."""
    numbers = any(expr.kind == "number" for expr in selection.columns.values())
    return numbers and all(selection.columns[name].kind == "bool" for name in names)


def list_bounded(
    frame: Measurable | Tracked, bounds: object, kinds: Sequence[str] = ("number",)
) -> list[Hashable]:
    """Return the columns of these kinds that have public bounds, declared or in ``bounds``."""
    selection = selection_of(frame)
    given = selection.by_column(bounds) if isinstance(bounds, Mapping) else {}
    names = [
        name
        for name, expr in selection.columns.items()
        if expr.kind in kinds and (name in given or _has_bounds(selection, name, expr))
    ]
    if not names or ("number" in kinds and "bool" in kinds and _has_only_flags(selection, names)):
        people = selection.schema.unit.people
        numbers = [n for n, e in selection.columns.items() if e.kind in kinds and e not in people]
        lacking = next((n for n in numbers if selection.columns[n].kind != "bool"), "x")
        raise MissingBounds(
            f"no column of numbers has public bounds: bounds={{{lacking!r}: (lower, upper)}} here, "
            "or open(..., bounds={...}) once."
        )
    return names


def _has_bounds(selection: Selection, name: Hashable, expr: Expr) -> bool:
    """Return whether public bounds of a column are declared, or follow from declared ones."""
    if expr.kind == "number":
        return expr.bounds(selection.schema.bounds) is not None
    try:
        selection.output("mean", name, None)
    except MissingBounds:
        return False
    return True


@verb
def counts(
    self: Tracked,
    questions: Mapping[Any, object],
    **payment: Unpack[Payment],
) -> pd.Series[int]:
    """Count the rows where each of several conditions holds, in one release.

    The answer is a Series by the names of the conditions, which may overlap.

    Formal guarantee: epsilon-DP for its price; k questions have L1 sensitivity k and L2 sensitivity
    sqrt(k).

    >>> df = pd.DataFrame({"age": [30, 41, 85], "smoker": [1, 0, 1]})
    >>> p = df.dp.open(100)
    >>> p.counts({"smokers": "smoker == 1", "old": "age > 80"}, epsilon=80)
    smokers    2 ± 0
    old        1 ± 0
    Name: count, dtype: int64
    """
    if not isinstance(questions, Mapping) or not questions:
        raise BadValue(
            "counts takes questions by name: {'smokers': 'smoker == 1', 'old': 'age > 80'}."
        )
    caller, frame, outputs = find_caller(), self, []
    for name, question in questions.items():
        expr, frame = read_expression_or_text(frame, question, caller)
        outputs.append(Output(name, "true", check_condition(expr)))
    index = pd.Index(list(questions), tupleize_cols=False)
    return cast(
        "pd.Series[int]",
        ask_outputs(frame, outputs, payment, lambda r, _: _release.across(r, index, "count")),
    )


@verb
def histogram(
    self: Tracked,
    column: object,
    bins: object = 10,
    *,
    bounds: BoundsLike = None,
    **payment: Unpack[Payment],
) -> pd.Series[int]:
    """Count the values that lie in each bin, over an IntervalIndex.

    Bins are numpy's: closed on the left, and the last one on both sides (its label cannot show it).
    Values outside all bins and nulls are not counted. A whole number of bins divides the bounds
    evenly. Of times the bins are intervals of time.

    Formal guarantee: epsilon-DP for its price; the whole vector has sensitivity 1 (2 under
    replace-one).

    >>> df = pd.DataFrame({"age": [30, 41, 85]})
    >>> p = df.dp.open(100, bounds={"age": (0, 100)})
    >>> p.histogram("age", bins=2, epsilon=80)
    age
    [0.0, 50.0)      2 ± 0
    [50.0, 100.0)    1 ± 0
    Name: count, dtype: int64
    """
    by, index = list_bins(self, column, bins, bounds)
    query = Query((COUNT,), self._selection.where, (by,))
    return cast(
        "pd.Series[int]",
        self._ask(query, lambda r: _release.series(r, index, "count"), payment),
    )


def list_bins(
    frame: Measurable | Tracked, column: object, bins: object, bounds: object
) -> tuple[BinBy, Index]:
    """Return the grouping of a column by the bins of a histogram, and the labels of its groups.

    The labels of bins of times are intervals of time.
    """
    selection = selection_of(frame)
    expr, name = selection.find_column(column)
    if expr.kind != "time":
        by = bins_of(frame, column, bins, bounds)
        return by, by.index
    seconds, ends, origin = convert_to_seconds(selection, AGGREGATES["mean"], expr, name, bounds)
    first = make_moment(origin.partition(" ")[0], origin)
    if isinstance(bins, Iterable) and not isinstance(bins, str):
        try:
            moments = [pd.Timestamp(cast(Any, edge)) for edge in bins]
        except (ValueError, TypeError):
            raise BadValue(
                f"the edges of {name!r} must be times, such as "
                "bins=pd.date_range('2024-01-01', '2024-12-31', freq='MS')."
            ) from None
        zone = first.tz
        if any((moment.tz is None) != (zone is None) for moment in moments):
            raise BadType(f"the edges of {name!r} must be times with the time zone of the column.")
        numbers: object = [(moment - first).total_seconds() for moment in moments]
    else:
        numbers = bins
    edges = edges_of(frame, seconds, name, numbers, (ends.lower, ends.upper))
    breaks = [first + pd.Timedelta(round(edge * 10**6), "us") for edge in edges]
    index = pd.IntervalIndex.from_breaks(pd.DatetimeIndex(breaks), closed="left", name=name)
    return BinBy(seconds, edges, name), index


def histogram_arrays(
    self: Tracked, column: object, bins: object, bounds: object
) -> tuple[Any, NDArray[np.float64]]:
    """Return the counts and the edges of a histogram as arrays. It asks the same as `histogram`."""
    by = bins_of(self, column, bins, bounds)
    query = Query((COUNT,), self._selection.where, (by,))
    counts = self._ask(query, lambda r: _release.series(r, by.index, "count").to_numpy(), {})
    return counts, np.array(by.edges, dtype=np.float64)


def bins_of(frame: Measurable | Tracked, column: object, bins: object, bounds: object) -> BinBy:
    """Return the grouping of a column of numbers by the bins of a histogram.

    ``bins`` has public edges, or is the number of even bins between ``bounds``.
    """
    expr, name = selection_of(frame).find_column(column)
    if expr.kind not in ("number", "bool"):
        instead = f"p.resample('ME', on={name!r}).size()" if expr.kind == "time" else "value_counts"
        raise BadType(
            f"column {name!r} is of kind {expr.kind}: a histogram needs numbers. Use {instead}."
        )
    return BinBy(expr, edges_of(frame, expr, name, bins, bounds), name)


def edges_of(
    frame: Measurable | Tracked, expr: Expr, name: Hashable, bins: object, bounds: object
) -> tuple[float, ...]:
    """Return the edges of the bins of a histogram.

    ``bins`` has public edges, or is the number of even bins between the bounds of the column.
    """
    if isinstance(bins, str):
        raise BadValue(
            f"bins={bins!r} would look at the data. Give a number of bins or a list of edges."
        )
    if isinstance(bins, int | np.integer):
        number = _validate.positive_int(bins, "bins")
        return _validate.even_edges(
            selection_of(frame).bounds(expr, name, bounds), number, repr(name)
        )
    if isinstance(bins, pd.Series | pd.DataFrame) or not isinstance(bins, Iterable):
        raise BadType("bins must be a number of bins or a list of public edges.")
    return _validate.edges(bins, repr(name))


@verb
def cov(
    self: Tracked,
    min_periods: None = None,
    ddof: int = 1,
    *,
    bounds: BoundsLike = None,
    **payment: Unpack[Payment],
) -> pd.DataFrame:
    """Take the covariances of all columns, in one release; select them first: ``p[["age",
    "cost"]].cov()``.

    Each is over the rows where neither of its two columns is null. The price is shared by all pairs
    and variances.

    Formal guarantee: epsilon-DP for its price; the mixed moments of two columns have the
    sensitivity of one number (docs/guarantees/shapes.md).

    >>> df = pd.DataFrame({"a": [1.0, 2.0, 3.0] * 500, "b": [6.0, 4.0, 2.0] * 500})
    >>> p = df.dp.open(1e3, bounds={"a": (0, 4), "b": (0, 8)})
    >>> p.cov(epsilon=900).round(1)
         a    b
    a  0.7 -1.3
    b -1.3  2.7
    """
    return cast(pd.DataFrame, matrix(self, OutputGrid, min_periods, ddof, bounds, payment))


@verb
def corr(
    self: Tracked,
    method: str = "pearson",
    min_periods: None = None,
    *,
    bounds: BoundsLike = None,
    **payment: Unpack[Payment],
) -> pd.DataFrame:
    """Take the correlations of all columns, in one release: the same one as `cov`, so after it they
    are free.

    The variances in them are those of each column's own non-null values; where columns have nulls,
    write ``p.dropna(subset=[...])`` first to have the same rows in all. Zero divided by a noisy
    variance of zero is NaN.

    Formal guarantee: epsilon-DP for its price (docs/guarantees/shapes.md).
    """
    check_correlation(method, payment)
    return cast(pd.DataFrame, matrix(self, CorrelationTable, min_periods, 1, bounds, payment))


def check_correlation(method: object, payment: Mapping[str, object]) -> None:
    """Refuse correlations of ranks, and a price given by a width.

    Ranks compare people with each other. Nothing public tells how wide the interval of a
    correlation is.
    """
    if payment.get("within") is not None:
        raise BadValue(
            f"within={payment['within']} cannot be promised of a correlation: its interval depends on how far apart the values "
            "are. Give epsilon=. A covariance can, p['x'].cov(p['y'], within=10, n=1000), in units of both columns."
        )
    if not isinstance(method, str) or method not in ("pearson", "kendall", "spearman"):
        raise BadValue(
            "method= is 'pearson'. The correlation of two columns is p['x'].corr(p['y'])."
        )
    if method != "pearson":
        raise NotOffered(
            f"method={method!r} compares the ranks of people with each other. Leave it out: corr has "
            "method='pearson'."
        )


def matrix(
    asking: Measurable,
    kind: Callable[[tuple[tuple[int, ...], ...]], AnswerLayout],
    min_periods: object,
    ddof: int,
    bounds: object,
    payment: Mapping[str, object],
) -> Any:
    """Ask for a square table of all columns by all columns, one below the other for each group.

    ``kind`` is the layout that makes it: `OutputGrid` for covariances, or `CorrelationTable`.
    ``payment`` are the arguments of the price.
    """
    verb = "cov" if kind is OutputGrid else "corr"
    numeric_only = check_payment(payment).get("numeric_only") is True
    names, _ = asking._columns_for(EVERY, "var", numeric_only, verb)
    chosen = selection_of(asking).listed or isinstance(names, tuple)  # a tuple, by groups
    if numeric_only and not chosen:
        bounded = list_bounded(asking, bounds, ("number", "bool"))
        names = [name for name in names if name in bounded]
    outs, cells = pairs_of(selection_of(asking), names, min_periods, ddof, bounds)
    index, layout = pd.Index(list(names), tupleize_cols=False), kind(cells)
    return ask_outputs(
        asking,
        outs,
        payment,
        lambda r, groups: _release.make_table(r, layout, _release.nest_rows(groups, index), index),
    )


def pairs_of(
    selection: Selection, columns: Sequence[object], min_periods: object, ddof: int, bounds: object
) -> tuple[list[Output], tuple[tuple[int, ...], ...]]:
    """Return the outputs that a table of covariances needs, and where each stands in it.

    They are the variance of each column, and its covariance with each later one. In the square
    stand the numbers of the outputs.
    """
    if min_periods is not None and not (isinstance(min_periods, int) and min_periods == 1):
        raise BadType(
            "min_periods= would hide a cell by its exact number of rows. Look at its interval."
        )
    alone = [selection.output("var", column, bounds, ddof=ddof) for column in columns]
    outs: list[Output] = []
    places: dict[tuple[int, int], int] = {}
    for i, first in enumerate(alone):
        for j, second in enumerate(alone[i:], start=i):
            places[i, j] = places[j, i] = len(outs)
            label = f"{first.name}, {second.name}"
            if i == j:
                outs.append(replace(first, name=label))
            else:
                pair = replace(
                    first,
                    name=label,
                    aggregate="cov",
                    other=second.expr,
                    other_bounds=second.bounds,
                )
                outs.append(pair)
    every = range(len(alone))
    return outs, tuple(tuple(places[i, j] for i in every) for j in every)
