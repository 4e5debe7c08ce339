"""What type checkers know of the surface: tracked frames, columns and groups, and their verbs.

Written by ``python -m tests.typing.stubs``: change the verbs, and run it again. The classes that
`surface` does not have are those that it does have in another mode, or of another kind.
"""

# mypy: disable-error-code="override, assignment, misc, overload-overlap"

import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar, Unpack, overload

import pandas as pd
from pandas.api.typing import Expression

from dpframe._answers.estimate import FloatEstimate, IntEstimate
from dpframe._frame import column, frame, groups, places
from dpframe._frame.frame import Model
from dpframe._frame.selection import BoundColumn, BoundsLike, ColumnLike, QuantileLevels
from dpframe._frame.suggestions import SuggestedBounds, SuggestedLimits
from dpframe._plans.plan import Plan
from dpframe._plans.price import Payment
from dpframe._session.batch import Batch
from dpframe._session.planned import Planned
from dpframe._types import Index, Series

A = TypeVar("A", covariant=True)  # what becomes of any question: a plan, or a place in a batch
F = TypeVar("F", bound=frame.PrivateFrame)
C = TypeVar("C", covariant=True)

class Located(places.Located[F, C]):
    """``.loc`` of a tracked frame."""

    @overload
    def __getitem__(self, key: tuple[Any, list[Any] | slice]) -> F: ...
    @overload
    def __getitem__(self, key: tuple[Any, Hashable]) -> C: ...
    @overload
    def __getitem__(self, key: Any) -> F: ...

class Positions(places.Positions[F, C]):
    """``.iloc`` of a tracked frame."""

    @overload
    def __getitem__(self, key: tuple[slice, int]) -> C: ...
    @overload
    def __getitem__(self, key: tuple[slice, list[int] | slice]) -> F: ...

class PrivateColumn(column.PrivateColumn):
    """``p["x"]``: comparisons and arithmetic make other columns; `mean` and its like are releases"""
    def dropna(self, *, axis: object = ..., how: None = ..., ignore_index: bool = ...) -> Self: ...
    def rename(self, index: Hashable = ..., *, axis: object = ...) -> Self: ...
    def copy(self, deep: bool = ...) -> Self: ...
    def squeeze(self, axis: object = ...) -> Self: ...
    def sort_values(self, **words: object) -> Self: ...
    def sort_index(self, **words: object) -> Self: ...
    def infer_objects(self, deep: bool = ...) -> Self: ...
    def reset_index(self, level: None = ..., *, drop: bool = ..., name: object = ...) -> Self: ...
    def to_frame(self, name: Hashable = ...) -> PrivateFrame: ...
    def head(self, n: int = ...) -> Series: ...
    def tail(self, n: int = ...) -> Series: ...
    def sample(
        self,
        n: int | None = ...,
        frac: float | None = ...,
        replace: bool = ...,
        weights: None = ...,
        random_state: object = ...,
        axis: object = ...,
        ignore_index: bool = ...,
    ) -> Series: ...
    def pipe(self, func: Any, *args: object, **words: object) -> Any: ...
    def mode(self, *, keys: object = ..., **payment: Unpack[Payment]) -> Any: ...
    def count(self, **payment: Unpack[Payment]) -> IntEstimate: ...
    def nunique(self, **payment: Unpack[Payment]) -> IntEstimate: ...
    def sum(
        self, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> IntEstimate | FloatEstimate: ...
    def mean(self, bounds: BoundsLike = ..., **payment: Unpack[Payment]) -> FloatEstimate: ...
    def var(
        self, bounds: BoundsLike = ..., *, ddof: int = ..., **payment: Unpack[Payment]
    ) -> FloatEstimate: ...
    def std(
        self, bounds: BoundsLike = ..., *, ddof: int = ..., **payment: Unpack[Payment]
    ) -> FloatEstimate: ...
    def sem(
        self, bounds: BoundsLike = ..., *, ddof: int = ..., **payment: Unpack[Payment]
    ) -> FloatEstimate: ...
    def skew(self, bounds: BoundsLike = ..., **payment: Unpack[Payment]) -> FloatEstimate: ...
    def median(
        self,
        bounds: BoundsLike = ...,
        *,
        resolution: float | None = ...,
        **payment: Unpack[Payment],
    ) -> IntEstimate | FloatEstimate: ...
    def min(
        self,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        **payment: Unpack[Payment],
    ) -> IntEstimate | FloatEstimate: ...
    def max(
        self,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        **payment: Unpack[Payment],
    ) -> IntEstimate | FloatEstimate: ...
    def describe(
        self,
        bounds: BoundsLike = ...,
        *,
        percentiles: object = ...,
        include: object = ...,
        exclude: object = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    def histogram(
        self, bins: object = ..., *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.Series[int]: ...
    def hist(
        self,
        *,
        by: object = ...,
        bins: object = ...,
        density: bool = ...,
        ax: object = ...,
        figsize: object = ...,
        title: str | None = ...,
        color: object = ...,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> Any: ...
    def value_counts(
        self,
        *,
        keys: object = ...,
        other: object = ...,
        sort: bool = ...,
        normalize: bool = ...,
        ascending: bool = ...,
        dropna: bool | None = ...,
        bins: object = ...,
        subset: object = ...,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    def unique(self, **payment: Unpack[Payment]) -> pd.Index[Any]: ...
    def argmax(self, *, keys: object = ..., **payment: Unpack[Payment]) -> Any: ...
    def top(self, k: int, *, keys: object = ..., **payment: Unpack[Payment]) -> list[Any]: ...
    def clipped(self, bounds: BoundsLike = ..., **payment: Unpack[Payment]) -> pd.Series[float]: ...
    def randomize(
        self,
        keys: object = ...,
        bounds: object = ...,
        *,
        other: object = ...,
        public_index: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def quantile(
        self,
        q: float = ...,
        bounds: BoundsLike = ...,
        *,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> IntEstimate | FloatEstimate: ...
    @overload
    def quantile(
        self,
        q: QuantileLevels,
        bounds: BoundsLike = ...,
        *,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def agg(
        self, spec: str, /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> IntEstimate | FloatEstimate: ...
    @overload
    def agg(
        self, spec: list[str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.Series[Any]: ...
    @overload
    def agg(
        self, spec: None = ..., /, *, bounds: BoundsLike = ..., **outputs: Any
    ) -> pd.Series[Any]: ...
    @overload
    def aggregate(
        self, spec: str, /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> IntEstimate | FloatEstimate: ...
    @overload
    def aggregate(
        self, spec: list[str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.Series[Any]: ...
    @overload
    def aggregate(
        self, spec: None = ..., /, *, bounds: BoundsLike = ..., **outputs: Any
    ) -> pd.Series[Any]: ...
    def groupby(self, by: object = ..., **words: object) -> ColumnGroups: ...
    def resample(self, rule: object, **words: object) -> ColumnGroups: ...

class ExplainedColumn(PrivateColumn, Generic[A]):
    """A column that answers nothing: ``p.explain['x'].mean()`` is a plan."""
    def agg(self, spec: object = ..., /, *, bounds: object = ..., **outputs: object) -> A: ...
    def aggregate(self, spec: object = ..., /, *, bounds: object = ..., **outputs: object) -> A: ...
    def argmax(self, *, keys: object = ..., **payment: Unpack[Payment]) -> A: ...
    def clipped(self, bounds: BoundsLike = ..., **payment: Unpack[Payment]) -> A: ...
    def corr(
        self,
        other: PrivateColumn,
        method: object = ...,
        min_periods: None = ...,
        *,
        bounds: object = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def count(self, **payment: Unpack[Payment]) -> A: ...
    def cov(
        self,
        other: PrivateColumn,
        min_periods: None = ...,
        ddof: int = ...,
        *,
        bounds: object = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def describe(
        self,
        bounds: BoundsLike = ...,
        *,
        percentiles: object = ...,
        include: object = ...,
        exclude: object = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def hist(
        self,
        *,
        by: object = ...,
        bins: object = ...,
        density: bool = ...,
        ax: object = ...,
        figsize: object = ...,
        title: str | None = ...,
        color: object = ...,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def histogram(
        self, bins: object = ..., *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> A: ...
    def max(
        self,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def mean(self, bounds: BoundsLike = ..., **payment: Unpack[Payment]) -> A: ...
    def median(
        self,
        bounds: BoundsLike = ...,
        *,
        resolution: float | None = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def min(
        self,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def mode(self, *, keys: object = ..., **payment: Unpack[Payment]) -> A: ...
    def nunique(self, **payment: Unpack[Payment]) -> A: ...
    def quantile(
        self,
        q: Any = ...,
        bounds: BoundsLike = ...,
        *,
        resolution: float | None = ...,
        method: str = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def randomize(
        self,
        keys: object = ...,
        bounds: object = ...,
        *,
        other: object = ...,
        public_index: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def sem(
        self, bounds: BoundsLike = ..., *, ddof: int = ..., **payment: Unpack[Payment]
    ) -> A: ...
    def skew(self, bounds: BoundsLike = ..., **payment: Unpack[Payment]) -> A: ...
    def std(
        self, bounds: BoundsLike = ..., *, ddof: int = ..., **payment: Unpack[Payment]
    ) -> A: ...
    def sum(self, bounds: BoundsLike = ..., **payment: Unpack[Payment]) -> A: ...
    def top(self, k: int, *, keys: object = ..., **payment: Unpack[Payment]) -> A: ...
    def unique(self, **payment: Unpack[Payment]) -> A: ...
    def value_counts(
        self,
        *,
        keys: object = ...,
        other: object = ...,
        sort: bool = ...,
        normalize: bool = ...,
        ascending: bool = ...,
        dropna: bool | None = ...,
        bins: object = ...,
        subset: object = ...,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def var(
        self, bounds: BoundsLike = ..., *, ddof: int = ..., **payment: Unpack[Payment]
    ) -> A: ...
    def groupby(self, by: object = ..., **words: object) -> ExplainedGroups[A]: ...
    def resample(self, rule: object, **words: object) -> ExplainedGroups[A]: ...

class PrivateFrame(frame.PrivateFrame):
    """A frame in a budgeted session: ``df.dp`` after ``df.dp.open(...)``."""
    def assign(self, **columns: object) -> Self: ...
    def rename(
        self,
        mapper: Mapping[Any, object] | Callable[[Any], object] | None = ...,
        *,
        columns: Mapping[Any, object] | Callable[[Any], object] | None = ...,
        index: None = ...,
        axis: object = ...,
        errors: str = ...,
        inplace: bool = ...,
    ) -> Self: ...
    def drop(
        self,
        labels: object = ...,
        *,
        columns: object = ...,
        index: None = ...,
        axis: object = ...,
        errors: str = ...,
        inplace: bool = ...,
    ) -> Self: ...
    def dropna(
        self,
        subset: object = ...,
        *,
        how: str | None = ...,
        thresh: int | None = ...,
        axis: object = ...,
        ignore_index: bool = ...,
        inplace: bool = ...,
    ) -> Self: ...
    def fillna(self, value: object, *, inplace: bool = ...) -> Self: ...
    def clip(
        self, lower: float | None = ..., upper: float | None = ..., *, inplace: bool = ...
    ) -> Self: ...
    def astype(self, dtype: object) -> Self: ...
    def isin(self, values: Mapping[Any, object] | Iterable[object]) -> Self: ...
    def replace(
        self, to_replace: Any = ..., value: Any = ..., *, inplace: bool = ..., regex: Any = ...
    ) -> Self: ...
    def map(self, func: Callable[[Any], object], na_action: object = ...) -> Self: ...
    def isna(self) -> Self: ...
    def isnull(self) -> Self: ...
    def notna(self) -> Self: ...
    def notnull(self) -> Self: ...
    def cut(
        self, column: object, bins: object, *, labels: object = ..., right: bool = ...
    ) -> PrivateColumn: ...
    def sort_values(
        self, by: object = ..., *, ascending: object = ..., na_position: str = ..., **words: object
    ) -> Self: ...
    def duplicated(self, subset: object = ..., keep: object = ...) -> PrivateColumn: ...
    def drop_duplicates(
        self, subset: object = ..., *, keep: object = ..., ignore_index: bool = ...
    ) -> Self: ...
    def card(
        self, path: str | os.PathLike[str] | None = ..., *, format: str | None = ...
    ) -> str: ...
    def report(
        self, path: str | os.PathLike[str], answers: object = ..., *, title: str = ...
    ) -> Path: ...
    def sort_index(self, *args: object, **kwargs: object) -> PrivateFrame: ...
    def insert(
        self, loc: int, column: object, value: object, allow_duplicates: bool = ...
    ) -> None: ...
    def pop(self, item: object) -> PrivateColumn: ...
    def get(self, key: object, default: object = ...) -> Any: ...
    def copy(self, deep: bool = ...) -> Self: ...
    def filter(
        self,
        items: object = ...,
        like: str | None = ...,
        regex: str | None = ...,
        axis: object = ...,
    ) -> Self: ...
    def select_dtypes(self, include: Any = ..., exclude: Any = ...) -> Self: ...
    def reindex(
        self, labels: object = ..., *, index: None = ..., columns: object = ..., axis: object = ...
    ) -> Self: ...
    def add_prefix(self, prefix: str, axis: object = ...) -> Self: ...
    def add_suffix(self, suffix: str, axis: object = ...) -> Self: ...
    def set_axis(self, labels: object, *, axis: object = ..., copy: object = ...) -> Self: ...
    def set_index(
        self,
        keys: object,
        *,
        drop: bool = ...,
        append: bool = ...,
        inplace: bool = ...,
        verify_integrity: bool = ...,
    ) -> Self: ...
    def reset_index(
        self,
        level: object = ...,
        *,
        drop: bool = ...,
        inplace: bool = ...,
        col_level: Hashable = ...,
        col_fill: Hashable = ...,
        allow_duplicates: bool = ...,
        names: object = ...,
    ) -> Self: ...
    def eval(self, expr: str, *, inplace: bool = ...) -> Any: ...
    def rename_axis(self, *args: object, inplace: bool = ..., **words: object) -> PrivateFrame: ...
    def convert_dtypes(
        self, *args: object, inplace: bool = ..., **words: object
    ) -> PrivateFrame: ...
    def infer_objects(
        self, *args: object, inplace: bool = ..., **words: object
    ) -> PrivateFrame: ...
    def squeeze(self, axis: object = ...) -> Any: ...
    def keys(self) -> Index: ...
    def join(
        self,
        other: object,
        on: object = ...,
        how: str = ...,
        lsuffix: str = ...,
        rsuffix: str = ...,
        sort: bool = ...,
        validate: object = ...,
        *,
        max_rows: int | None = ...,
        max_groups: int | None = ...,
        because: str | None = ...,
    ) -> Self: ...
    def where(
        self, cond: object, other: object = ..., *, inplace: bool = ..., axis: object = ...
    ) -> Self: ...
    def mask(
        self, cond: object, other: object = ..., *, inplace: bool = ..., axis: object = ...
    ) -> Self: ...
    def apply(self, func: object, axis: object = ..., **words: object) -> Any: ...
    def transform(self, func: object, axis: object = ..., **words: object) -> Self: ...
    def abs(self) -> Self: ...
    def round(self, decimals: object = ...) -> Self: ...
    def head(self, n: int = ...) -> pd.DataFrame: ...
    def tail(self, n: int = ...) -> pd.DataFrame: ...
    def sample(
        self,
        n: int | None = ...,
        frac: float | None = ...,
        replace: bool = ...,
        weights: None = ...,
        random_state: object = ...,
        axis: object = ...,
        ignore_index: bool = ...,
    ) -> pd.DataFrame: ...
    def info(
        self,
        verbose: bool | None = ...,
        buf: object = ...,
        max_cols: int | None = ...,
        memory_usage: object = ...,
        show_counts: bool | None = ...,
    ) -> None: ...
    def explode(
        self,
        column: object,
        ignore_index: bool = ...,
        *,
        dtype: str | None = ...,
        max_rows: int | None = ...,
        max_groups: int | None = ...,
    ) -> Self: ...
    def melt(
        self,
        id_vars: object = ...,
        value_vars: object = ...,
        var_name: Hashable = ...,
        value_name: Hashable = ...,
        ignore_index: bool = ...,
        *,
        max_rows: int | None = ...,
        max_groups: int | None = ...,
    ) -> Self: ...
    def merge(
        self,
        right: pd.DataFrame,
        how: str = ...,
        on: object = ...,
        left_on: object = ...,
        right_on: object = ...,
        left_index: bool = ...,
        right_index: bool = ...,
        sort: bool = ...,
        suffixes: tuple[str | None, str | None] = ...,
        copy: object = ...,
        indicator: object = ...,
        validate: object = ...,
        *,
        max_rows: int | None = ...,
        max_groups: int | None = ...,
        because: str | None = ...,
    ) -> Self: ...
    def pipe(
        self,
        func: object,
        *args: object,
        bounds: Mapping[Any, tuple[float, float]] | None = ...,
        keys: Mapping[Any, object] | None = ...,
        max_rows: int | None = ...,
        max_groups: int | None = ...,
        **kwargs: object,
    ) -> PrivateFrame: ...
    def adopt(
        self,
        other: pd.DataFrame,
        *,
        because: str | None = ...,
        bounds: Mapping[Any, tuple[float, float]] | None = ...,
        keys: Mapping[Any, object] | None = ...,
        max_rows: int | None = ...,
        max_groups: int | None = ...,
    ) -> Self: ...
    @overload
    def count(self, column: ColumnLike, **payment: Unpack[Payment]) -> IntEstimate: ...
    @overload
    def count(self, **payment: Unpack[Payment]) -> IntEstimate: ...
    @overload
    def count(self, *, axis: Literal[1, "columns"], numeric_only: bool = ...) -> PrivateColumn: ...
    @overload
    def nunique(
        self, column: ColumnLike, *, numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> IntEstimate: ...
    @overload
    def nunique(
        self, *, numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.Series[Any]: ...
    @overload
    def sum(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> IntEstimate | FloatEstimate: ...
    @overload
    def sum(
        self, *, bounds: BoundsLike = ..., numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.Series[Any]: ...
    @overload
    def sum(self, *, axis: Literal[1, "columns"], numeric_only: bool = ...) -> PrivateColumn: ...
    @overload
    def mean(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> FloatEstimate: ...
    @overload
    def mean(
        self, *, bounds: BoundsLike = ..., numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.Series[float]: ...
    @overload
    def mean(self, *, axis: Literal[1, "columns"], numeric_only: bool = ...) -> PrivateColumn: ...
    @overload
    def var(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> FloatEstimate: ...
    @overload
    def var(
        self,
        *,
        bounds: BoundsLike = ...,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def std(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> FloatEstimate: ...
    @overload
    def std(
        self,
        *,
        bounds: BoundsLike = ...,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def sem(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> FloatEstimate: ...
    @overload
    def sem(
        self,
        *,
        bounds: BoundsLike = ...,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def skew(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> FloatEstimate: ...
    @overload
    def skew(
        self, *, bounds: BoundsLike = ..., numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.Series[float]: ...
    @overload
    def median(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> IntEstimate | FloatEstimate: ...
    @overload
    def median(
        self,
        *,
        bounds: BoundsLike = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def min(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> IntEstimate | FloatEstimate: ...
    @overload
    def min(
        self,
        *,
        bounds: BoundsLike = ...,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def min(self, *, axis: Literal[1, "columns"], numeric_only: bool = ...) -> PrivateColumn: ...
    @overload
    def max(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> IntEstimate | FloatEstimate: ...
    @overload
    def max(
        self,
        *,
        bounds: BoundsLike = ...,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def max(self, *, axis: Literal[1, "columns"], numeric_only: bool = ...) -> PrivateColumn: ...
    @overload
    def quantile(
        self,
        column: float,
        *,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def quantile(
        self,
        column: QuantileLevels,
        *,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        column: ColumnLike,
        q: float = ...,
        bounds: BoundsLike = ...,
        *,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> IntEstimate | FloatEstimate: ...
    @overload
    def quantile(
        self,
        column: ColumnLike,
        q: QuantileLevels,
        bounds: BoundsLike = ...,
        *,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def quantile(
        self,
        *,
        q: QuantileLevels,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        *,
        q: float = ...,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def agg(
        self, spec: str, /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.Series[Any]: ...
    @overload
    def agg(
        self, spec: list[str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, spec: Mapping[Any, str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.Series[Any]: ...
    @overload
    def agg(
        self, spec: Mapping[Any, Any] | None = ..., /, *, bounds: BoundsLike = ..., **outputs: Any
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: str, /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.Series[Any]: ...
    @overload
    def aggregate(
        self, spec: list[str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: Mapping[Any, str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.Series[Any]: ...
    @overload
    def aggregate(
        self, spec: Mapping[Any, Any] | None = ..., /, *, bounds: BoundsLike = ..., **outputs: Any
    ) -> pd.DataFrame: ...
    def unique(self, column: object, **payment: Unpack[Payment]) -> Index: ...
    def value_counts(
        self,
        column: object = ...,
        *,
        keys: object = ...,
        other: object = ...,
        sort: bool = ...,
        normalize: bool = ...,
        ascending: bool = ...,
        dropna: bool | None = ...,
        bins: object = ...,
        subset: object = ...,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> Series: ...
    def pivot_table(
        self,
        values: object = ...,
        index: object = ...,
        columns: object = ...,
        aggfunc: object = ...,
        fill_value: object = ...,
        margins: bool = ...,
        dropna: bool | None = ...,
        margins_name: str = ...,
        observed: bool | None = ...,
        sort: bool | None = ...,
        *,
        keys: object = ...,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    def crosstab(
        self,
        index: object,
        columns: object,
        values: object = ...,
        rownames: object = ...,
        colnames: object = ...,
        aggfunc: object = ...,
        margins: bool = ...,
        margins_name: str = ...,
        dropna: bool | None = ...,
        normalize: object = ...,
        *,
        keys: object = ...,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    def counts(
        self, questions: Mapping[Any, object], **payment: Unpack[Payment]
    ) -> pd.Series[int]: ...
    def histogram(
        self,
        column: object,
        bins: object = ...,
        *,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[int]: ...
    def hist(
        self,
        column: object = ...,
        *,
        by: object = ...,
        bins: object = ...,
        density: bool = ...,
        ax: object = ...,
        figsize: object = ...,
        title: str | None = ...,
        color: object = ...,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> Any: ...
    def boxplot(
        self,
        column: object = ...,
        by: object = ...,
        *,
        ax: object = ...,
        figsize: object = ...,
        title: str | None = ...,
        rot: float = ...,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> Any: ...
    def cov(
        self,
        min_periods: None = ...,
        ddof: int = ...,
        *,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    def corr(
        self,
        method: str = ...,
        min_periods: None = ...,
        *,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    def argmax(self, column: object, *, keys: object = ..., **payment: Unpack[Payment]) -> Any: ...
    def top(
        self, column: object, k: int, *, keys: object = ..., **payment: Unpack[Payment]
    ) -> list[Any]: ...
    def choose(
        self,
        candidates: object,
        utility: object,
        sensitivity: float | None = ...,
        *,
        bounds: object = ...,
        because: str | None = ...,
        **payment: Unpack[Payment],
    ) -> Any: ...
    def suggest_limits(
        self,
        by: object = ...,
        *,
        keys: object = ...,
        share: float = ...,
        **payment: Unpack[Payment],
    ) -> SuggestedLimits: ...
    def over_limits(
        self, by: object = ..., **payment: Unpack[Payment]
    ) -> pd.Series[int] | pd.DataFrame: ...
    def clipped(
        self, column: object, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.Series[float] | pd.DataFrame: ...
    def suggest_bounds(self, column: object, **payment: Unpack[Payment]) -> SuggestedBounds: ...
    def randomize(
        self,
        column: object,
        keys: object = ...,
        bounds: object = ...,
        *,
        other: object = ...,
        public_index: bool = ...,
        **payment: Unpack[Payment],
    ) -> Series: ...
    @overload
    def describe(
        self,
        column: str,
        bounds: BoundsLike = ...,
        *,
        percentiles: Any = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def describe(
        self,
        column: list[Any] = ...,
        bounds: BoundsLike = ...,
        *,
        percentiles: Any = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def describe(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        percentiles: Any = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def groupby(
        self,
        by: Any = ...,
        *,
        keys: Any = ...,
        other: Any = ...,
        bounds: Any = ...,
        as_index: Literal[False],
        sort: bool | None = ...,
        group_keys: bool = ...,
        observed: bool | None = ...,
        dropna: bool | None = ...,
        level: Any = ...,
    ) -> FlatGroups: ...
    @overload
    def groupby(
        self,
        by: Any = ...,
        *,
        keys: Any = ...,
        other: Any = ...,
        bounds: Any = ...,
        as_index: Literal[True] = ...,
        sort: bool | None = ...,
        group_keys: bool = ...,
        observed: bool | None = ...,
        dropna: bool | None = ...,
        level: Any = ...,
    ) -> Groups: ...
    def resample(
        self,
        rule: object,
        closed: object = ...,
        label: object = ...,
        *,
        on: object = ...,
        bounds: object = ...,
        level: None = ...,
        origin: object = ...,
        offset: None = ...,
        group_keys: bool = ...,
    ) -> Groups: ...
    def any(
        self, axis: object = ..., bool_only: bool = ..., skipna: bool = ...
    ) -> PrivateColumn: ...
    def all(
        self, axis: object = ..., bool_only: bool = ..., skipna: bool = ...
    ) -> PrivateColumn: ...
    @overload
    def __getitem__(self, key: str) -> PrivateColumn: ...
    @overload
    def __getitem__(self, key: list[Any]) -> Listed: ...
    @overload
    def __getitem__(self, key: BoundColumn | Expression | Callable[[Any], BoundColumn]) -> Self: ...
    @overload
    def __getitem__(self, key: Hashable) -> PrivateColumn: ...
    @property
    def loc(self) -> Located[Self, PrivateColumn]: ...
    @property
    def iloc(self) -> Positions[Self, PrivateColumn]: ...
    def plan_ahead(self) -> Batch[ExplainedFrame[Planned]]: ...
    @property
    def explain(self) -> ExplainedFrame[Plan]: ...

class Listed(PrivateFrame):
    """``p[["x", "y"]]``: a count is one of each."""
    @overload
    def count(self, column: ColumnLike, **payment: Unpack[Payment]) -> IntEstimate: ...
    @overload
    def count(self, **payment: Unpack[Payment]) -> pd.Series[int]: ...

class ExplainedFrame(PrivateFrame, Generic[A]):
    """A frame that answers nothing: ``p.explain.mean('x')`` is a plan."""
    def argmax(self, column: object, *, keys: object = ..., **payment: Unpack[Payment]) -> A: ...
    def boxplot(
        self,
        column: object = ...,
        by: object = ...,
        *,
        ax: object = ...,
        figsize: object = ...,
        title: str | None = ...,
        rot: float = ...,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def choose(
        self,
        candidates: object,
        utility: object,
        sensitivity: float | None = ...,
        *,
        bounds: object = ...,
        because: str | None = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def clipped(
        self, column: object, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> A: ...
    def corr(
        self,
        method: str = ...,
        min_periods: None = ...,
        *,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def counts(self, questions: Mapping[Any, object], **payment: Unpack[Payment]) -> A: ...
    def cov(
        self,
        min_periods: None = ...,
        ddof: int = ...,
        *,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def crosstab(
        self,
        index: object,
        columns: object,
        values: object = ...,
        rownames: object = ...,
        colnames: object = ...,
        aggfunc: object = ...,
        margins: bool = ...,
        margins_name: str = ...,
        dropna: bool | None = ...,
        normalize: object = ...,
        *,
        keys: object = ...,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def describe(
        self,
        column: object = ...,
        bounds: BoundsLike = ...,
        *,
        percentiles: object = ...,
        include: object = ...,
        exclude: object = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def fit(
        self,
        model: Model,
        X: object = ...,
        y: object = ...,
        *,
        bounds: Mapping[Any, object] | None = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def hist(
        self,
        column: object = ...,
        *,
        by: object = ...,
        bins: object = ...,
        density: bool = ...,
        ax: object = ...,
        figsize: object = ...,
        title: str | None = ...,
        color: object = ...,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def histogram(
        self,
        column: object,
        bins: object = ...,
        *,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def over_limits(self, by: object = ..., **payment: Unpack[Payment]) -> A: ...
    def pivot_table(
        self,
        values: object = ...,
        index: object = ...,
        columns: object = ...,
        aggfunc: object = ...,
        fill_value: object = ...,
        margins: bool = ...,
        dropna: bool | None = ...,
        margins_name: str = ...,
        observed: bool | None = ...,
        sort: bool | None = ...,
        *,
        keys: object = ...,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def randomize(
        self,
        column: object,
        keys: object = ...,
        bounds: object = ...,
        *,
        other: object = ...,
        public_index: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def suggest_bounds(self, column: object, **payment: Unpack[Payment]) -> A: ...
    def suggest_limits(
        self,
        by: object = ...,
        *,
        keys: object = ...,
        share: float = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def top(
        self, column: object, k: int, *, keys: object = ..., **payment: Unpack[Payment]
    ) -> A: ...
    def unique(self, column: object, **payment: Unpack[Payment]) -> A: ...
    def value_counts(
        self,
        column: object = ...,
        *,
        keys: object = ...,
        other: object = ...,
        sort: bool = ...,
        normalize: bool = ...,
        ascending: bool = ...,
        dropna: bool | None = ...,
        bins: object = ...,
        subset: object = ...,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def count(self, column: ColumnLike = ..., **payment: Unpack[Payment]) -> A: ...
    def nunique(
        self, column: ColumnLike = ..., *, numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> A: ...
    def sum(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def mean(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def var(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def std(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def sem(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def skew(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def median(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def min(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def max(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def quantile(
        self,
        column: ColumnLike | QuantileLevels = ...,
        q: float | QuantileLevels = ...,
        bounds: BoundsLike = ...,
        *,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def agg(self, spec: Any = ..., /, *, bounds: BoundsLike = ..., **outputs: Any) -> A: ...
    def aggregate(self, spec: Any = ..., /, *, bounds: BoundsLike = ..., **outputs: Any) -> A: ...
    def resample(
        self,
        rule: object,
        closed: object = ...,
        label: object = ...,
        *,
        on: object = ...,
        bounds: object = ...,
        level: None = ...,
        origin: object = ...,
        offset: None = ...,
        group_keys: bool = ...,
    ) -> ExplainedGroups[A]: ...
    def groupby(
        self,
        by: Any = ...,
        *,
        keys: Any = ...,
        other: Any = ...,
        bounds: Any = ...,
        as_index: bool = ...,
        sort: bool | None = ...,
        group_keys: bool = ...,
        observed: bool | None = ...,
        dropna: bool | None = ...,
        level: Any = ...,
    ) -> ExplainedGroups[A]: ...
    @overload
    def __getitem__(self, key: str) -> ExplainedColumn[A]: ...
    @overload
    def __getitem__(self, key: list[Any]) -> Self: ...
    @overload
    def __getitem__(self, key: BoundColumn | Expression | Callable[[Any], BoundColumn]) -> Self: ...
    @overload
    def __getitem__(self, key: Hashable) -> ExplainedColumn[A]: ...
    @property
    def loc(self) -> Located[Self, ExplainedColumn[A]]: ...
    @property
    def iloc(self) -> Positions[Self, ExplainedColumn[A]]: ...

class PrivateGroupBy(groups.PrivateGroupBy):
    """``p.groupby("state")``: all declared groups come back, empty ones too, in the declared order."""
    def argmax(
        self, column: object = ..., *, keys: object = ..., **payment: Unpack[Payment]
    ) -> Self: ...
    def top(
        self, column: Any = ..., k: Any = ..., *, keys: object = ..., **payment: Unpack[Payment]
    ) -> Self: ...
    @property
    def explain(self) -> ExplainedGroups[Plan]: ...

class OwnRows:
    """The verbs of groups that are the rows of one person each. Checkers cannot know which are."""
    def all(self) -> Any: ...
    def any(self) -> Any: ...
    def apply(self, func: object) -> Any: ...
    def bfill(self) -> Any: ...
    def cumcount(self, ascending: bool = ...) -> Any: ...
    def cummax(self) -> Any: ...
    def cummin(self) -> Any: ...
    def cumprod(self) -> Any: ...
    def cumsum(self) -> Any: ...
    def diff(self, periods: int = ...) -> Any: ...
    def expanding(self, min_periods: int = ...) -> Any: ...
    def ffill(self) -> Any: ...
    def filter(self, func: object) -> Any: ...
    def first(self, numeric_only: bool = ...) -> Any: ...
    def head(self, n: int = ...) -> Any: ...
    def last(self, numeric_only: bool = ...) -> Any: ...
    def nlargest(self, n: int = ...) -> Any: ...
    def nsmallest(self, n: int = ...) -> Any: ...
    def nth(self, n: int) -> Any: ...
    def pct_change(self, periods: int = ...) -> Any: ...
    def pipe(self, func: Callable[..., object], *args: object, **kwargs: object) -> Any: ...
    def prod(self, numeric_only: bool = ...) -> Any: ...
    def rank(
        self, method: str = ..., ascending: bool = ..., na_option: str = ..., pct: bool = ...
    ) -> Any: ...
    def rolling(self, window: int, min_periods: int | None = ..., **words: object) -> Any: ...
    def shift(self, periods: int = ...) -> Any: ...
    def tail(self, n: int = ...) -> Any: ...
    def transform(self, func: object) -> Any: ...

class ColumnGroups(PrivateGroupBy, OwnRows):
    """``p.groupby('k')['x']``: each answer is a Series."""
    @overload
    def count(self, column: ColumnLike, **payment: Unpack[Payment]) -> pd.Series[int]: ...
    @overload
    def count(self, **payment: Unpack[Payment]) -> pd.Series[int]: ...
    @overload
    def nunique(
        self, column: ColumnLike, *, numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.Series[int]: ...
    @overload
    def nunique(
        self, *, numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.Series[Any]: ...
    @overload
    def sum(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def sum(
        self, *, bounds: BoundsLike = ..., numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.Series[Any]: ...
    @overload
    def mean(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def mean(
        self, *, bounds: BoundsLike = ..., numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.Series[float]: ...
    @overload
    def var(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def var(
        self,
        *,
        bounds: BoundsLike = ...,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def std(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def std(
        self,
        *,
        bounds: BoundsLike = ...,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def sem(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def sem(
        self,
        *,
        bounds: BoundsLike = ...,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def skew(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def skew(
        self, *, bounds: BoundsLike = ..., numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.Series[float]: ...
    @overload
    def median(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def median(
        self,
        *,
        bounds: BoundsLike = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def min(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def min(
        self,
        *,
        bounds: BoundsLike = ...,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def max(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def max(
        self,
        *,
        bounds: BoundsLike = ...,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def quantile(
        self,
        column: float,
        *,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def quantile(
        self,
        column: QuantileLevels,
        *,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def quantile(
        self,
        column: ColumnLike,
        q: float = ...,
        bounds: BoundsLike = ...,
        *,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def quantile(
        self,
        column: ColumnLike,
        q: QuantileLevels,
        bounds: BoundsLike = ...,
        *,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def quantile(
        self,
        *,
        q: QuantileLevels,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def quantile(
        self,
        *,
        q: float = ...,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def agg(
        self, spec: str, /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.Series[Any]: ...
    @overload
    def agg(
        self, spec: list[str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, spec: Mapping[Any, str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.Series[Any]: ...
    @overload
    def agg(
        self, spec: Mapping[Any, Any] | None = ..., /, *, bounds: BoundsLike = ..., **outputs: Any
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: str, /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.Series[Any]: ...
    @overload
    def aggregate(
        self, spec: list[str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: Mapping[Any, str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.Series[Any]: ...
    @overload
    def aggregate(
        self, spec: Mapping[Any, Any] | None = ..., /, *, bounds: BoundsLike = ..., **outputs: Any
    ) -> pd.DataFrame: ...
    def size(self, **payment: Unpack[Payment]) -> pd.Series[int]: ...

class ListedGroups(PrivateGroupBy, OwnRows):
    """``p.groupby('k')[['x', 'y']]``: a table."""
    @overload
    def count(self, column: ColumnLike, **payment: Unpack[Payment]) -> pd.Series[int]: ...
    @overload
    def count(self, **payment: Unpack[Payment]) -> pd.DataFrame: ...
    @overload
    def nunique(
        self, column: ColumnLike, *, numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.Series[int]: ...
    @overload
    def nunique(self, *, numeric_only: bool = ..., **payment: Unpack[Payment]) -> pd.DataFrame: ...
    @overload
    def sum(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def sum(
        self, *, bounds: BoundsLike = ..., numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def mean(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def mean(
        self, *, bounds: BoundsLike = ..., numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def var(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def var(
        self,
        *,
        bounds: BoundsLike = ...,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def std(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def std(
        self,
        *,
        bounds: BoundsLike = ...,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def sem(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def sem(
        self,
        *,
        bounds: BoundsLike = ...,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def skew(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def skew(
        self, *, bounds: BoundsLike = ..., numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def median(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def median(
        self,
        *,
        bounds: BoundsLike = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def min(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def min(
        self,
        *,
        bounds: BoundsLike = ...,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def max(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def max(
        self,
        *,
        bounds: BoundsLike = ...,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        column: float,
        *,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        column: QuantileLevels,
        *,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        column: ColumnLike,
        q: float = ...,
        bounds: BoundsLike = ...,
        *,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def quantile(
        self,
        column: ColumnLike,
        q: QuantileLevels,
        bounds: BoundsLike = ...,
        *,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def quantile(
        self,
        *,
        q: QuantileLevels,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        *,
        q: float = ...,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, spec: str, /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, spec: list[str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, spec: Mapping[Any, str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, spec: Mapping[Any, Any] | None = ..., /, *, bounds: BoundsLike = ..., **outputs: Any
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: str, /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: list[str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: Mapping[Any, str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: Mapping[Any, Any] | None = ..., /, *, bounds: BoundsLike = ..., **outputs: Any
    ) -> pd.DataFrame: ...
    def size(self, **payment: Unpack[Payment]) -> pd.Series[int]: ...

class Groups(PrivateGroupBy, OwnRows):
    """``p.groupby('k')``: a Series of a column, and a table of all."""
    @overload
    def count(self, column: ColumnLike, **payment: Unpack[Payment]) -> pd.Series[int]: ...
    @overload
    def count(self, **payment: Unpack[Payment]) -> pd.DataFrame: ...
    @overload
    def nunique(
        self, column: ColumnLike, *, numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.Series[int]: ...
    @overload
    def nunique(self, *, numeric_only: bool = ..., **payment: Unpack[Payment]) -> pd.DataFrame: ...
    @overload
    def sum(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def sum(
        self, *, bounds: BoundsLike = ..., numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def mean(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def mean(
        self, *, bounds: BoundsLike = ..., numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def var(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def var(
        self,
        *,
        bounds: BoundsLike = ...,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def std(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def std(
        self,
        *,
        bounds: BoundsLike = ...,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def sem(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def sem(
        self,
        *,
        bounds: BoundsLike = ...,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def skew(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def skew(
        self, *, bounds: BoundsLike = ..., numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def median(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def median(
        self,
        *,
        bounds: BoundsLike = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def min(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def min(
        self,
        *,
        bounds: BoundsLike = ...,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def max(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def max(
        self,
        *,
        bounds: BoundsLike = ...,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        column: float,
        *,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        column: QuantileLevels,
        *,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        column: ColumnLike,
        q: float = ...,
        bounds: BoundsLike = ...,
        *,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]: ...
    @overload
    def quantile(
        self,
        column: ColumnLike,
        q: QuantileLevels,
        bounds: BoundsLike = ...,
        *,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.Series[float]: ...
    @overload
    def quantile(
        self,
        *,
        q: QuantileLevels,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        *,
        q: float = ...,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, spec: str, /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, spec: list[str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, spec: Mapping[Any, str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, spec: Mapping[Any, Any] | None = ..., /, *, bounds: BoundsLike = ..., **outputs: Any
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: str, /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: list[str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: Mapping[Any, str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: Mapping[Any, Any] | None = ..., /, *, bounds: BoundsLike = ..., **outputs: Any
    ) -> pd.DataFrame: ...
    def size(self, **payment: Unpack[Payment]) -> pd.Series[int]: ...
    @overload
    def __getitem__(self, key: list[Any]) -> ListedGroups: ...
    @overload
    def __getitem__(self, key: Hashable) -> ColumnGroups: ...

class FlatGroups(PrivateGroupBy, OwnRows):
    """``p.groupby('k', as_index=False)``: the keys are columns."""
    @overload
    def count(self, column: ColumnLike, **payment: Unpack[Payment]) -> pd.DataFrame: ...
    @overload
    def count(self, **payment: Unpack[Payment]) -> pd.DataFrame: ...
    @overload
    def nunique(
        self, column: ColumnLike, *, numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def nunique(self, *, numeric_only: bool = ..., **payment: Unpack[Payment]) -> pd.DataFrame: ...
    @overload
    def sum(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def sum(
        self, *, bounds: BoundsLike = ..., numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def mean(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def mean(
        self, *, bounds: BoundsLike = ..., numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def var(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def var(
        self,
        *,
        bounds: BoundsLike = ...,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def std(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def std(
        self,
        *,
        bounds: BoundsLike = ...,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def sem(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def sem(
        self,
        *,
        bounds: BoundsLike = ...,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def skew(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def skew(
        self, *, bounds: BoundsLike = ..., numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def median(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def median(
        self,
        *,
        bounds: BoundsLike = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def min(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def min(
        self,
        *,
        bounds: BoundsLike = ...,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def max(
        self,
        column: ColumnLike,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def max(
        self,
        *,
        bounds: BoundsLike = ...,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        column: float,
        *,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        column: QuantileLevels,
        *,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        column: ColumnLike,
        q: float = ...,
        bounds: BoundsLike = ...,
        *,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        column: ColumnLike,
        q: QuantileLevels,
        bounds: BoundsLike = ...,
        *,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        *,
        q: QuantileLevels,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def quantile(
        self,
        *,
        q: float = ...,
        bounds: BoundsLike = ...,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, spec: str, /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, spec: list[str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, spec: Mapping[Any, str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def agg(
        self, spec: Mapping[Any, Any] | None = ..., /, *, bounds: BoundsLike = ..., **outputs: Any
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: str, /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: list[str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: Mapping[Any, str], /, *, bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> pd.DataFrame: ...
    @overload
    def aggregate(
        self, spec: Mapping[Any, Any] | None = ..., /, *, bounds: BoundsLike = ..., **outputs: Any
    ) -> pd.DataFrame: ...
    def size(self, **payment: Unpack[Payment]) -> pd.DataFrame: ...

class ExplainedGroups(PrivateGroupBy, Generic[A]):
    """Groups that answer nothing: ``p.explain.groupby('k').size()`` is a plan."""
    def argmax(
        self, column: object = ..., *, keys: object = ..., **payment: Unpack[Payment]
    ) -> A: ...
    def clipped(
        self, column: object = ..., bounds: BoundsLike = ..., **payment: Unpack[Payment]
    ) -> A: ...
    def corr(
        self,
        method: str = ...,
        min_periods: None = ...,
        *,
        bounds: object = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def cov(
        self,
        min_periods: None = ...,
        ddof: int = ...,
        *,
        bounds: object = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def describe(
        self, *, percentiles: object = ..., bounds: object = ..., **payment: Unpack[Payment]
    ) -> A: ...
    def hist(
        self,
        column: object = ...,
        *,
        bins: object = ...,
        density: bool = ...,
        ax: object = ...,
        figsize: object = ...,
        title: str | None = ...,
        color: object = ...,
        bounds: BoundsLike = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def histogram(
        self,
        column: object = ...,
        bins: object = ...,
        *,
        bounds: object = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def size(self, **payment: Unpack[Payment]) -> A: ...
    def top(
        self, column: Any = ..., k: Any = ..., *, keys: object = ..., **payment: Unpack[Payment]
    ) -> A: ...
    def value_counts(
        self,
        column: object = ...,
        *,
        keys: object = ...,
        sort: bool = ...,
        normalize: bool = ...,
        ascending: bool = ...,
        dropna: bool | None = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def count(self, column: ColumnLike = ..., **payment: Unpack[Payment]) -> A: ...
    def nunique(
        self, column: ColumnLike = ..., *, numeric_only: bool = ..., **payment: Unpack[Payment]
    ) -> A: ...
    def sum(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def mean(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def var(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def std(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def sem(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        ddof: int = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def skew(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def median(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def min(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def max(
        self,
        column: ColumnLike = ...,
        bounds: BoundsLike = ...,
        *,
        q: object = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def quantile(
        self,
        column: ColumnLike | QuantileLevels = ...,
        q: float | QuantileLevels = ...,
        bounds: BoundsLike = ...,
        *,
        method: str = ...,
        resolution: float | None = ...,
        numeric_only: bool = ...,
        **payment: Unpack[Payment],
    ) -> A: ...
    def agg(self, spec: Any = ..., /, *, bounds: BoundsLike = ..., **outputs: Any) -> A: ...
    def aggregate(self, spec: Any = ..., /, *, bounds: BoundsLike = ..., **outputs: Any) -> A: ...
