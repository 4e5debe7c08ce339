"""The same frames, columns and groups as they look to type checkers where their questions become
something else.

No object is of these classes: ``p.explain`` is a `PrivateFrame` in another mode. Its verbs take
what those of `PrivateFrame` take, derived from them here, and return plans; in a batch they return
the places of answers.
"""

# mypy: disable-error-code="override, assignment, misc, empty-body"

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    Unpack,
    cast,
    overload,
)

import pandas as pd

from dpframe._answers.estimate import IntEstimate
from dpframe._frame.column import PrivateColumn
from dpframe._frame.frame import PrivateFrame
from dpframe._frame.groups import PrivateGroupBy
from dpframe._frame.people.groups import PersonGroupBy
from dpframe._frame.places import Located, Positions
from dpframe._frame.typed.answers import A, Grouping, Levels, Named, Pair, Row, Table, Value
from dpframe._frame.verbs.measure import Measures
from dpframe._plans.price import Payment

# Measures of which one kind of answer matters.
AnyMeasures: TypeAlias = Measures[Any, Any, Any, Any, Any, Any, Any, Any, Any]
OfValue: TypeAlias = Measures[Any, Any, Value, Any, Any, Any, Any, Any, Any]
OfLevels: TypeAlias = Measures[Any, Any, Any, Any, Levels, Any, Any, Any, Any]
OfRow: TypeAlias = Measures[Any, Any, Any, Any, Any, Row, Any, Any, Any]
OfTable: TypeAlias = Measures[Any, Any, Any, Any, Any, Any, Any, Table, Any]

P = ParamSpec("P")
C = TypeVar("C")
R = TypeVar("R")


def like(
    verb: Callable[Concatenate[Any, P], Any],
) -> Callable[[Callable[[C], R]], Callable[Concatenate[C, P], R]]:
    """A decorator that gives a method the arguments of a verb, and leaves what it returns."""
    return cast(
        "Callable[[Callable[[C], R]], Callable[Concatenate[C, P], R]]", lambda method: method
    )


class UnansweredColumn(PrivateColumn, Generic[A]):
    """A column of which nothing is answered: ``p.explain["x"].mean()`` is a plan."""

    @like(PrivateColumn.count)
    def count(self) -> A: ...
    @like(PrivateColumn.nunique)
    def nunique(self) -> A: ...
    @like(PrivateColumn.sum)
    def sum(self) -> A: ...
    @like(PrivateColumn.mean)
    def mean(self) -> A: ...
    @like(PrivateColumn.var)
    def var(self) -> A: ...
    @like(PrivateColumn.std)
    def std(self) -> A: ...
    @like(PrivateColumn.sem)
    def sem(self) -> A: ...
    @like(PrivateColumn.skew)
    def skew(self) -> A: ...
    @like(PrivateColumn.quantile)
    def quantile(self) -> A: ...
    @like(PrivateColumn.median)
    def median(self) -> A: ...
    @like(PrivateColumn.min)
    def min(self) -> A: ...
    @like(PrivateColumn.max)
    def max(self) -> A: ...
    @like(PrivateColumn.describe)
    def describe(self) -> A: ...
    @like(PrivateColumn.histogram)
    def histogram(self) -> A: ...
    @like(PrivateColumn.hist)
    def hist(self) -> A: ...
    @like(PrivateColumn.value_counts)
    def value_counts(self) -> A: ...
    @like(PrivateColumn.unique)
    def unique(self) -> A: ...
    @like(PrivateColumn.argmax)
    def argmax(self) -> A: ...
    @like(PrivateColumn.top)
    def top(self) -> A: ...
    @like(PrivateColumn.randomize)
    def randomize(self) -> A: ...
    def agg(self, spec: Any = ..., /, *, bounds: Pair = ..., **outputs: Any) -> A: ...

    aggregate = agg

    @like(PrivateColumn.cov)
    def cov(self) -> A: ...
    @like(PrivateColumn.corr)
    def corr(self) -> A: ...
    def groupby(self, by: Any = ..., **words: Any) -> UnansweredGroups[A]: ...
    def resample(self, rule: Any, **words: Any) -> UnansweredGroups[A]: ...


class Unanswered(PrivateFrame, Generic[A]):
    """A frame of which nothing is answered: ``p.explain.mean("x")`` is a plan. Steps return such a
    frame again."""

    @like(PrivateFrame.hist)
    def hist(self) -> A: ...
    @like(PrivateFrame.boxplot)
    def boxplot(self) -> A: ...
    @like(PrivateFrame.histogram)
    def histogram(self) -> A: ...
    @like(PrivateFrame.counts)
    def counts(self) -> A: ...
    @like(PrivateFrame.cov)
    def cov(self) -> A: ...
    @like(PrivateFrame.corr)
    def corr(self) -> A: ...
    @like(PrivateFrame.argmax)
    def argmax(self) -> A: ...
    @like(PrivateFrame.top)
    def top(self) -> A: ...
    @like(PrivateFrame.choose)
    def choose(self) -> A: ...
    @like(PrivateFrame.unique)
    def unique(self) -> A: ...
    @like(PrivateFrame.value_counts)
    def value_counts(self) -> A: ...
    @like(PrivateFrame.pivot_table)
    def pivot_table(self) -> A: ...
    @like(PrivateFrame.crosstab)
    def crosstab(self) -> A: ...
    @like(PrivateFrame.randomize)
    def randomize(self) -> A: ...
    @like(PrivateFrame.suggest_limits)
    def suggest_limits(self) -> A: ...
    @like(PrivateFrame.over_limits)
    def over_limits(self) -> A: ...
    @like(PrivateFrame.suggest_bounds)
    def suggest_bounds(self) -> A: ...
    @like(PrivateFrame.fit)
    def fit(self) -> A: ...
    def describe(
        self,
        column: Any = ...,
        bounds: Pair = ...,
        *,
        percentiles: Any = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    @like(PrivateFrame.resample)
    def resample(self) -> UnansweredGroups[A]: ...
    def groupby(
        self, by: Any = ..., *, as_index: bool = ..., **words: Unpack[Grouping]
    ) -> UnansweredGroups[A]: ...
    @property
    def loc(self) -> Located[Self, UnansweredColumn[A]]: ...
    @property
    def iloc(self) -> Positions[Self, UnansweredColumn[A]]: ...
    @overload
    def __getitem__(self, key: str) -> UnansweredColumn[A]: ...
    @overload
    def __getitem__(self, key: list[Any] | PrivateColumn) -> Self: ...
    @overload
    def __getitem__(self, key: Hashable) -> UnansweredColumn[A]: ...
    def __getitem__(self, key: Any) -> Any: ...


class Listed(PrivateFrame):
    """``p[["x", "y"]]``: a count is one of each column."""

    @overload
    def count(self, column: Named, **payment: Unpack[Payment]) -> IntEstimate: ...
    @overload
    def count(self, **payment: Unpack[Payment]) -> pd.Series[int]: ...
    def count(self, **payment: Any) -> Any: ...


class OwnRows:
    """What groups have where each is the rows of one person: steps, of which checkers cannot know
    whether there are persons."""

    def shift(self, periods: int = ...) -> Any: ...
    def diff(self, periods: int = ...) -> Any: ...
    def pct_change(self, periods: int = ...) -> Any: ...
    def cumsum(self) -> Any: ...
    def cumprod(self) -> Any: ...
    def cummin(self) -> Any: ...
    def cummax(self) -> Any: ...
    def ffill(self) -> Any: ...
    def bfill(self) -> Any: ...
    @like(PersonGroupBy.rank)
    def rank(self) -> Any: ...
    @like(PersonGroupBy.cumcount)
    def cumcount(self) -> Any: ...
    @like(PersonGroupBy.transform)
    def transform(self) -> Any: ...
    @like(PersonGroupBy.apply)
    def apply(self) -> Any: ...
    @like(PersonGroupBy.head)
    def head(self) -> Any: ...
    @like(PersonGroupBy.tail)
    def tail(self) -> Any: ...
    @like(PersonGroupBy.nth)
    def nth(self) -> Any: ...
    @like(PersonGroupBy.nlargest)
    def nlargest(self) -> Any: ...
    @like(PersonGroupBy.nsmallest)
    def nsmallest(self) -> Any: ...
    @like(PersonGroupBy.filter)
    def filter(self) -> Any: ...
    @like(PersonGroupBy.pipe)
    def pipe(self) -> Any: ...
    def first(self, numeric_only: bool = ...) -> Any: ...
    def last(self, numeric_only: bool = ...) -> Any: ...
    def prod(self, numeric_only: bool = ...) -> Any: ...
    def any(self) -> Any: ...
    def all(self) -> Any: ...


class ColumnGroups(
    PrivateGroupBy[
        "pd.Series[int]",
        "pd.Series[float]",
        "pd.Series[Any]",
        "pd.Series[int]",
        "pd.Series[float]",
        "pd.Series[float]",
        "pd.Series[Any]",
        "pd.Series[float]",
        pd.DataFrame,
    ],
    OwnRows,
):
    """``p.groupby("state")["cost"]``: each answer is a Series."""


class ListedGroups(
    PrivateGroupBy[
        "pd.Series[int]",
        "pd.Series[float]",
        "pd.Series[Any]",
        pd.DataFrame,
        "pd.Series[float]",
        pd.DataFrame,
        pd.DataFrame,
        pd.DataFrame,
        pd.DataFrame,
    ],
    OwnRows,
):
    """``p.groupby("state")[["age", "cost"]]``: a table with a column for each."""


class Groups(
    PrivateGroupBy[
        "pd.Series[int]",
        "pd.Series[float]",
        "pd.Series[Any]",
        pd.DataFrame,
        "pd.Series[float]",
        pd.DataFrame,
        pd.DataFrame,
        pd.DataFrame,
        pd.DataFrame,
    ],
    OwnRows,
):
    """``p.groupby("state")``: a Series of a column that is named, and a table of all."""

    @overload
    def __getitem__(self, key: list[Any]) -> ListedGroups: ...
    @overload
    def __getitem__(self, key: Hashable) -> ColumnGroups: ...
    def __getitem__(self, key: Any) -> Any: ...


class FlatGroups(
    PrivateGroupBy[
        pd.DataFrame,
        pd.DataFrame,
        pd.DataFrame,
        pd.DataFrame,
        pd.DataFrame,
        pd.DataFrame,
        pd.DataFrame,
        pd.DataFrame,
        pd.DataFrame,
    ],
    OwnRows,
):
    """``p.groupby("state", as_index=False)``: the keys are columns of a table."""


class UnansweredGroups(PrivateGroupBy[A, A, A, A, A, A, A, A, A]):
    """Groups of which nothing is answered: ``p.explain.groupby("state").size()`` is a plan."""

    @like(PrivateGroupBy.argmax)
    def argmax(self) -> A: ...
    @like(PrivateGroupBy.top)
    def top(self) -> A: ...
    @like(PrivateGroupBy.value_counts)
    def value_counts(self) -> A: ...
    @like(PrivateGroupBy.describe)
    def describe(self) -> A: ...
    @like(PrivateGroupBy.cov)
    def cov(self) -> A: ...
    @like(PrivateGroupBy.corr)
    def corr(self) -> A: ...
