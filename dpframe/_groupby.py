"""Groups of a tracked frame: one vector release for all of them, in pandas' shapes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Unpack, cast

import pandas as pd

from dpframe import _release, _validate
from dpframe._aggregates import CHOSEN, NAMED, ORDERS
from dpframe._errors import BadType, BadValue, NotOffered
from dpframe._order import GroupOrders
from dpframe._price import WORDS, Payment, spell_out
from dpframe._query import By, Output, Query, combined_index
from dpframe._refusals import ADVICE

if TYPE_CHECKING:
    from dpframe._private import PrivateFrame


class PrivateGroupBy(GroupOrders):
    """``p.groupby("state")``: all declared groups come back, empty ones too, in the declared order.

    Formal guarantee of each release: epsilon-DP for its price, once for all groups together, since a row is in
    one of them (docs/guarantees/statistics.md).
    """

    def __init__(
        self,
        frame: PrivateFrame,
        by: tuple[By, ...],
        selected: tuple[Hashable, ...] | None = None,
        single: bool = False,
    ):
        self._frame = frame
        self._by = by
        self._selected = selected
        self._single = single

    def __getitem__(self, key: Any) -> PrivateGroupBy:
        names = key if isinstance(key, list) else [key]
        chosen = tuple(_validate.column_names(names, self._frame._columns))
        return PrivateGroupBy(self._frame, self._by, chosen, not isinstance(key, list))

    def _index(self) -> pd.Index[Any]:
        return cast("pd.Index[Any]", combined_index(self._by))

    def _ask(self, outputs: list[Output], finish: Any, payment: Mapping[str, Any]) -> Any:
        frame = self._frame
        return frame._ask(Query(tuple(outputs), frame._where, self._by), finish, payment)

    def size(
        self,
        **payment: Unpack[Payment],
    ) -> pd.Series[int]:
        """How many rows each group has, nulls included: an unnamed Series, as in pandas."""
        name = cast(Any, self._selected)[0] if self._single else None
        return cast("pd.Series[int]", self._rows(name, payment))

    def _rows(self, name: Hashable, payment: Mapping[str, Any]) -> Any:
        index = self._index()
        return self._ask([Output("size", "size")], lambda r: _release.series(r, index, name), payment)

    def count(
        self,
        column: Any = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """How many non-null values of the column each group has; without a column how many rows.

        (pandas counts every column: name one, or select several with ``[[...]]``.)
        """
        if column is None and self._selected is None:
            return self._rows("count", payment)
        return self._measure("count", column, None, 1, payment)

    def sum(
        self,
        column: Any = None,
        bounds: Any = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """Sums of clipped values; see `PrivateFrame.sum`."""
        return self._measure("sum", column, bounds, 1, payment)

    def mean(
        self,
        column: Any = None,
        bounds: Any = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """Means of clipped values; within the bounds also for an empty group, whose interval is then wide.

        >>> df = pd.DataFrame({"state": ["CA", "NY", "CA"], "age": [30, 41, 50]})
        >>> p = df.dp.open(1e3, bounds={"age": (0, 110)}, keys={"state": ["CA", "NY"]})
        >>> p.groupby("state")["age"].mean(epsilon=900).round()
        state
        CA    40.0
        NY    41.0
        Name: age, dtype: float64
        """
        return self._measure("mean", column, bounds, 1, payment)

    def var(
        self,
        column: Any = None,
        bounds: Any = None,
        *,
        ddof: int = 1,
        **payment: Unpack[Payment],
    ) -> Any:
        """Variances of clipped values; see `PrivateFrame.var`."""
        return self._measure("var", column, bounds, ddof, payment)

    def std(
        self,
        column: Any = None,
        bounds: Any = None,
        *,
        ddof: int = 1,
        **payment: Unpack[Payment],
    ) -> Any:
        """Standard deviations of clipped values; see `PrivateFrame.std`."""
        return self._measure("std", column, bounds, ddof, payment)

    def _measure(
        self, aggregate: str, column: Any, bounds: Any, ddof: int, payment: Mapping[str, Any]
    ) -> Any:
        index = self._index()
        if column is not None or self._single:
            name = cast(Any, self._selected)[0] if column is None else column
            out = self._frame._output(aggregate, name, bounds, ddof=ddof)
            return self._ask([out], lambda r: _release.series(r, index, out.name), payment)
        names = self._selected
        if names is None:
            raise BadType(
                f"name the columns: .{aggregate}('x'), ['x'].{aggregate}() or [['x', 'y']].{aggregate}()."
            )
        outs = [self._frame._output(aggregate, n, bounds, ddof=ddof) for n in names]
        return self._ask(outs, lambda r: _release.table(r, index, list(names)), payment)

    def agg(
        self,
        spec: Mapping[Any, str] | None = None,
        /,
        *,
        bounds: Mapping[Any, Any] | None = None,
        **outputs: Any,
    ) -> Any:
        """Several aggregates in one release with one price: ``agg(n=("age", "size"), m=("age", "mean"))``.

        Aggregates of one column share one vector, so a mean is as accurate beside a count and a sum as alone. The price
        words are those of `mean`; of them only ``n`` and ``name`` may also be outputs, when they are pairs.
        """
        payment = {
            word: outputs.pop(word) for word in WORDS if word in outputs and not _is_output(word, outputs)
        }
        if spec is not None:
            if not isinstance(spec, Mapping):
                raise BadType("agg takes named outputs: agg(mean_age=('age', 'mean'), n=('age', 'size')).")
            outputs = {**{name: (name, aggregate) for name, aggregate in spec.items()}, **outputs}
        taken = [word for word, value in [*payment.items(), ("bounds", bounds)] if isinstance(value, tuple)]
        if taken:
            raise BadValue(f"{taken[0]}= is a price word of agg and cannot be the name of an output.")
        if not outputs:
            raise BadValue("agg needs at least one output: agg(mean_age=('age', 'mean')).")
        asked = [self._named(name, pair, bounds) for name, pair in outputs.items()]
        index, names = self._index(), list(outputs)
        return self._ask(asked, lambda r: _release.table(r, index, names), payment)

    def _named(self, name: Hashable, pair: Any, bounds: Any) -> Output:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise BadType(f"{name}= must be a pair such as ('age', 'mean').")
        column, aggregate = pair
        if not isinstance(aggregate, str):
            raise BadType(
                "an aggregate is one name such as 'mean', not a list, and not a function, which could see the data."
            )
        if aggregate not in (*NAMED, *CHOSEN):
            raise BadValue(
                f"no private aggregate {aggregate!r}. Those there are: {', '.join((*NAMED, *CHOSEN))}."
            )
        if aggregate == "size":
            self._frame._expr_of(column)
            return Output(name, "size")
        if aggregate in CHOSEN:
            return self._frame._order(column, ORDERS[aggregate], bounds, None, name=name)
        return self._frame._output(aggregate, column, bounds, name=name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._frame._columns:
            return self[name]
        raise NotOffered(
            ADVICE.get(
                name,
                f"groups have no private {name!r}. They have {', '.join((*NAMED, *ORDERS))}, quantile and agg.",
            )
        )

    def __iter__(self) -> Any:
        raise NotOffered(ADVICE["iteration"])

    def __len__(self) -> int:
        return len(self._index())

    def __repr__(self) -> str:
        return f"PrivateGroupBy by {', '.join(map(str, self._by))}"


def _is_output(word: str, given: Mapping[str, Any]) -> bool:
    return word in ("n", "name") and isinstance(given[word], tuple)


spell_out(PrivateGroupBy)
