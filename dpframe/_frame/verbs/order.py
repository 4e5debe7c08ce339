"""The verbs of order: quantiles, medians, and what lies near the least and the greatest value."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._answers import answer as _release
from dpframe._errors import BadType, BadValue
from dpframe._expr import Expr
from dpframe._groups.keys import EVERY
from dpframe._plans.aggregates import ORDERS
from dpframe._plans.output import Output
from dpframe._plans.price import Payment, checked, spell_out
from dpframe._questions.query import Query
from dpframe._validate import Bounds

if TYPE_CHECKING:
    from dpframe._frame.frame import PrivateFrame
    from dpframe._questions.question import Release


class Levels(NamedTuple):
    """``q=`` as it was typed, exactly, and whether it was a list."""

    exact: tuple[Fraction, ...]
    typed: tuple[float, ...]
    several: bool


_MOST_LEVELS = 2**14  # each is an output of its own, and answers are points of a grid of some 4096


def levels_of(q: Any, payment: Mapping[str, Any]) -> Levels:
    """One level or a list of them, each within [0, 1]."""
    if "candidates" in payment:
        raise BadValue("quantiles take no candidates=: bounds= are enough, and resolution= says how fine.")
    checked(payment)
    if isinstance(q, str | bytes | Mapping | set | frozenset | pd.Series | pd.DataFrame):
        raise BadType(f"q must be a number in [0, 1] or a list of them, not {type(q).__name__}.")
    several = isinstance(q, Iterable) and (not isinstance(q, np.ndarray) or q.ndim > 0)
    if several:
        _validate.length(q, "q", _MOST_LEVELS)
    given = list(q) if several else [q]
    if not given:
        raise BadValue("q is an empty list, so nothing is asked.")
    exact = tuple(_validate.exact(one, "q") for one in given)
    for one, level in zip(given, exact, strict=True):
        if not 0 <= level <= 1:
            raise BadValue(f"q must lie in [0, 1], not {one}.")
    return Levels(exact, tuple(map(float, exact)), several)


_MOST_CHOSEN = 8  # levels; beyond them a tree has the smaller error (docs/guarantees/quantiles.md)


def how_for(levels: int, method: Any) -> str:
    """Which aggregate answers: a choice, or a reading of the whole distribution."""
    method = _validate.choice(method, "method", ("auto", "choose", "tree"))
    if method == "auto":
        method = "tree" if levels > _MOST_CHOSEN else "choose"
    return "tree" if method == "tree" else "quantile"


def resolution_of(given: Any) -> float | None:
    if given is None:
        return None
    fine = _validate.real(given, "resolution")
    if fine <= 0:
        raise BadValue(f"resolution= must be positive, not {given}.")
    return fine


class Orders:
    """Order statistics of a tracked frame."""

    _columns: dict[Hashable, Expr]
    _where: Expr | None

    if TYPE_CHECKING:

        def _ask(self, query: Query, finish: Callable[[Release], Any], payment: Mapping[str, Any]) -> Any: ...
        def _named(self, column: Any) -> tuple[Expr, Hashable]: ...
        def _bounds(self, expr: Expr, name: Hashable, given: Any) -> Bounds: ...

    def _order(
        self,
        column: Any,
        level: Fraction,
        bounds: Any,
        resolution: Any,
        name: Hashable = None,
        how: str = "quantile",
    ) -> Output:
        expr, label = self._named(column)
        pair = self._bounds(expr, label, bounds)
        label = label if name is None else name
        return Output(label, how, expr, pair, level=level, resolution=resolution_of(resolution))

    def quantile(
        self,
        column: Any = EVERY,
        q: Any = 0.5,
        bounds: Any = None,
        *,
        resolution: float | None = None,
        method: str = "auto",
        **payment: Unpack[Payment],
    ) -> Any:
        """The value below which a share ``q`` of a column's values lies; for a list of shares a Series by them.

        The answer is a point of a public grid between the bounds, on which values are clipped and rounded: whole numbers
        where the column has them and they are fewer than 4096, else at most 4096 points a power of two apart, or
        ``resolution`` apart (rounded down to a power of two). No candidates are needed, and nulls count for nothing.
        ``explain`` tells by how many ranks the answer may miss, and ``within=`` is a number of ranks. Several levels are
        one release with one price, and come back in order.

        ``method="choose"`` picks a point for each level, which share the price evenly; only the choices leave, so no
        interval comes with them. ``"tree"`` releases the whole distribution: its error does not grow with the number of
        levels, and its answers have intervals. ``"auto"`` chooses for up to eight levels.

        Formal guarantee: epsilon-DP for its price, by report-noisy-max over the points, or by noise on a tree of counts
        (docs/guarantees/quantiles.md).

        >>> df = pd.DataFrame({"age": [20] * 50 + [30] * 100 + [70] * 50})
        >>> p = df.dp.open(100, bounds={"age": (0, 110)})
        >>> p.quantile("age", [0.1, 0.5, 0.9], epsilon=80)
        0.1    20.0
        0.5    30.0
        0.9    70.0
        Name: age, dtype: float64
        """
        levels = levels_of(q, payment)
        how = how_for(len(levels.exact), method)
        if levels.several:
            if column is EVERY:
                raise BadType("several quantiles are of one column: p.quantile('x', [0.25, 0.75]).")
            outs = tuple(self._order(column, level, bounds, resolution, how=how) for level in levels.exact)
            label = outs[0].name
            named = tuple(_at(out, q) for out, q in zip(outs, levels.typed, strict=True))
            query = Query(named, self._where)
            return self._ask(query, lambda r: _release.levels(r, None, levels.typed, label), payment)
        return self._one_level(column, levels.exact[0], bounds, resolution, payment, how)

    def _one_level(
        self,
        column: Any,
        level: Fraction,
        bounds: Any,
        resolution: Any,
        payment: Mapping[str, Any],
        how: str = "quantile",
    ) -> Any:
        if column is not EVERY:
            out = self._order(column, level, bounds, resolution, how=how)
            return self._ask(Query((out,), self._where), _release.scalar, payment)
        outs = tuple(self._order(name, level, bounds, resolution, how=how) for name in self._columns)
        index = pd.Index(list(self._columns), tupleize_cols=False)
        return self._ask(Query(outs, self._where), lambda r: _release.across(r, index), payment)

    def median(
        self,
        column: Any = EVERY,
        bounds: Any = None,
        *,
        resolution: float | None = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """A value with half of the column's values on either side: ``quantile`` at 0.5, and the same question.

        Between two middle values any point may be chosen, where pandas takes their mean.

        Formal guarantee: epsilon-DP for its price; see `quantile`.

        >>> df = pd.DataFrame({"age": [20, None, 30, 30, 31, 90] * 20})
        >>> p = df.dp.open(100, bounds={"age": (0, 110)})
        >>> p.median("age", epsilon=80, resolution=1)
        30
        """
        levels_of(0.5, payment)
        return self._one_level(column, ORDERS["median"], bounds, resolution, payment)

    def min(
        self,
        column: Any = EVERY,
        bounds: Any = None,
        *,
        q: Any = 0.01,
        resolution: float | None = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """Near the least value: the 1 % quantile, or that of another small ``q``.

        The least value itself is one person's, and no private answer can be near it whatever the data.

        Formal guarantee: epsilon-DP for its price; see `quantile`.
        """
        return self._one_level(column, _single(q, payment), bounds, resolution, payment)

    def max(
        self,
        column: Any = EVERY,
        bounds: Any = None,
        *,
        q: Any = 0.99,
        resolution: float | None = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """Near the greatest value: the 99 % quantile, or that of another large ``q``.

        The greatest value itself is one person's, and no private answer can be near it whatever the data.

        Formal guarantee: epsilon-DP for its price; see `quantile`.
        """
        return self._one_level(column, _single(q, payment), bounds, resolution, payment)


class GroupOrders:
    """Order statistics of groups: one choice a group, and one price for all of them, since a row is in one."""

    _frame: PrivateFrame
    _selected: tuple[Hashable, ...] | None
    _single: bool

    if TYPE_CHECKING:

        def _index(self) -> pd.Index[Any]: ...
        def _ask(self, outputs: list[Output], finish: Any, payment: Mapping[str, Any]) -> Any: ...

    def quantile(
        self,
        column: Any = None,
        q: Any = 0.5,
        bounds: Any = None,
        *,
        resolution: float | None = None,
        method: str = "auto",
        **payment: Unpack[Payment],
    ) -> Any:
        """Quantiles of each group; see `PrivateFrame.quantile`. Of a selected column the first argument is ``q``.

        An empty group answers some point between the bounds.

        >>> df = pd.DataFrame({"state": ["CA", "NY"] * 100, "age": [30, 40] * 100})
        >>> p = df.dp.open(100, bounds={"age": (0, 110)}, keys={"state": ["NY", "CA"]})
        >>> p.groupby("state")["age"].quantile([0.25, 0.75], epsilon=80)
        state
        NY     0.25    40.0
               0.75    40.0
        CA     0.25    30.0
               0.75    30.0
        Name: age, dtype: float64
        """
        if self._selected is not None and column is not None and not isinstance(column, str):
            # ["age"].quantile(0.9, (0, 110)): as in pandas, and the bounds where the other verbs have them.
            column, q, bounds = None, column, bounds if isinstance(q, float) and q == 0.5 else q
        levels = levels_of(q, payment)
        how = how_for(len(levels.exact), method)
        if not levels.several:
            return self._at_level(column, levels.exact[0], bounds, resolution, payment, how)
        if column is None and not self._single:
            raise BadType("several quantiles are of one column: groupby('k')['x'].quantile([0.25, 0.75]).")
        name = self._selected[0] if column is None and self._selected else column
        outs = [self._frame._order(name, level, bounds, resolution, how=how) for level in levels.exact]
        index, label = self._index(), outs[0].name
        named = [_at(out, q) for out, q in zip(outs, levels.typed, strict=True)]
        return self._ask(named, lambda r: _release.levels(r, index, levels.typed, label), payment)

    def median(
        self,
        column: Any = None,
        bounds: Any = None,
        *,
        resolution: float | None = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """Medians of each group; see `PrivateFrame.median`."""
        levels_of(0.5, payment)
        return self._at_level(column, ORDERS["median"], bounds, resolution, payment)

    def min(
        self,
        column: Any = None,
        bounds: Any = None,
        *,
        q: Any = 0.01,
        resolution: float | None = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """Near the least value of each group; see `PrivateFrame.min`."""
        return self._at_level(column, _single(q, payment), bounds, resolution, payment)

    def max(
        self,
        column: Any = None,
        bounds: Any = None,
        *,
        q: Any = 0.99,
        resolution: float | None = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """Near the greatest value of each group; see `PrivateFrame.max`."""
        return self._at_level(column, _single(q, payment), bounds, resolution, payment)

    def _at_level(
        self,
        column: Any,
        level: Fraction,
        bounds: Any,
        resolution: Any,
        payment: Mapping[str, Any],
        how: str = "quantile",
    ) -> Any:
        names = self._selected if column is None else (column,)
        if names is None:
            raise BadType("name the columns: groupby('k')['x'].median(), or [['x', 'y']].median().")
        outs = [self._frame._order(name, level, bounds, resolution, how=how) for name in names]
        index = self._index()
        if column is not None or self._single:
            return self._ask(outs, lambda r: _release.series(r, index, outs[0].name), payment)
        return self._ask(outs, lambda r: _release.table(r, index, list(names)), payment)


def _single(q: Any, payment: Mapping[str, Any]) -> Fraction:
    levels = levels_of(q, payment)
    if levels.several:
        raise BadType("q= is one number here. For several levels ask quantile.")
    return levels.exact[0]


def _at(out: Output, q: float) -> Output:
    """Cells of one column are told apart by their level."""
    return replace(out, name=q)


spell_out(Orders)
spell_out(GroupOrders)
