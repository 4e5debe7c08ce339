"""Groups of a tracked frame: one vector release for all of them, in pandas' shapes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Unpack, cast

import pandas as pd
from pandas.api.typing import DataFrameGroupBy

from dpframe import _validate
from dpframe._answers import answer as _release
from dpframe._answers.layout import Pivot
from dpframe._errors import BadType, BadValue, NotOffered
from dpframe._frame.verbs import agg_spec as _specs
from dpframe._frame.verbs.agg_spec import Spec, split_words
from dpframe._frame.verbs.order import GroupOrders
from dpframe._groups.keys import By, combined_index
from dpframe._plans.aggregates import DESCRIBED, ORDERS, named_in_agg
from dpframe._plans.output import Output
from dpframe._plans.price import Payment, checked, spell_out
from dpframe._questions.query import Query
from dpframe._questions.question import Release
from dpframe._refusals import ADVICE, own_errors

if TYPE_CHECKING:
    from dpframe._frame.frame import PrivateFrame


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
        as_index: bool = True,
    ):
        self._frame = frame
        self._by = by
        self._selected = selected
        self._single = single
        self._as_index = as_index

    def __getitem__(self, key: Any) -> PrivateGroupBy:
        names = key if isinstance(key, list) else [key]
        chosen = tuple(_validate.column_names(names, self._frame._columns))
        return PrivateGroupBy(self._frame, self._by, chosen, not isinstance(key, list), self._as_index)

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
        outs = [Output("size", "size")]
        if not self._as_index:  # pandas names the column of sizes, whatever is selected
            return self._ask(outs, self._flat(["size" if name != "count" else name]), payment)
        return self._ask(outs, lambda r: _release.series(r, index, name), payment)

    def nunique(self, column: Any = None, **payment: Unpack[Payment]) -> Any:
        """How many distinct non-null values the column has in each group; of the column that ``unit=`` names, how many people.

        In a session with ``unit=`` a person adds at most ``max_groups`` pairs of a group and a value, in all groups
        together; or is counted in at most ``max_groups`` groups. See `PrivateFrame.nunique`.
        """
        return self._measure("nunique", column, None, 1, payment)

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
            if not self._as_index:
                return self._ask([out], self._flat([out.name]), payment)
            return self._ask([out], lambda r: _release.series(r, index, out.name), payment)
        names = self._selected
        if names is None and payment.get("numeric_only") is True:
            names = tuple(n for n in self._frame._numbers() if n not in index.names)
        if names is None:
            raise BadType(
                f"name the columns: .{aggregate}('x'), ['x'].{aggregate}() or [['x', 'y']].{aggregate}()."
            )
        outs = [self._frame._output(aggregate, n, bounds, ddof=ddof) for n in names]
        return self._table(outs, index, payment)

    def agg(
        self,
        spec: Any = None,
        /,
        *,
        bounds: Any = None,
        **outputs: Any,
    ) -> Any:
        """Several aggregates in one release with one price: ``agg(n=("age", "size"), m=("age", "mean"))``.

        Also ``agg({"age": ["mean", "std"], "cost": "sum"})``, and of selected columns ``["age"].agg(["mean", "std"])``,
        each in pandas' shape. Aggregates of one column share one vector, so a mean is as accurate beside a count and a
        sum as alone. The price words are those of `mean`; of them only ``n`` and ``name`` may also be outputs, when
        they are pairs, or of one column aggregates: ``["age"].agg(avg="mean", n="count")``.
        """
        payment, outputs = split_words(outputs, bounds, self._single)
        read = _specs.read(spec, outputs, self._selected, self._single)
        if read.form == "one":
            if read.wanted and read.wanted[0].aggregate == "size":
                return self.size(**cast(Any, payment))
            return self._measure(str(spec), None, bounds, 1, payment)
        index = self._index()
        outs = [
            self._frame._wanted(w.column, w.aggregate, bounds, w.aggregate if self._plain(read) else w.label)
            for w in read.wanted
        ]
        return self._table(outs, index, payment)

    aggregate = agg

    def _plain(self, read: Spec) -> bool:
        return self._single and read.form == "list"

    def _table(self, outs: list[Output], index: pd.Index[Any], payment: Mapping[str, Any]) -> Any:
        labels = [out.name for out in outs]
        if not self._as_index:
            return self._ask(outs, self._flat(labels), payment)
        if labels and all(isinstance(label, tuple) for label in labels):
            columns, layout = _release.columns_of(labels), Pivot(len(index))
            return self._ask(outs, lambda r: _release.laid_out(r, layout, index, columns), payment)
        return self._ask(outs, lambda r: _release.table(r, index, labels), payment)

    def _flat(self, labels: list[Hashable]) -> Callable[[Release], pd.DataFrame]:
        index = self._index()
        if None in index.names:
            raise BadValue("as_index=False makes columns of the groupings, and one of them has no name.")
        both = [name for name in index.names if name in labels]
        if both:
            raise BadValue(
                f"as_index=False would make two columns {both[0]!r}. Give the output another name."
            )
        return lambda r: _release.flat(r, index, labels, list(index.names))

    def describe(self, *, bounds: Any = None, **payment: Unpack[Payment]) -> pd.DataFrame:
        """Count, mean and standard deviation of the selected columns in each group, at one price.

        Formal guarantee: epsilon-DP for its price; one vector a column, as `std` alone has it.
        """
        if self._selected is None:
            raise BadType("name the columns: ['x'].describe() or [['x', 'y']].describe().")
        payment = checked(payment)
        spec = _specs.read(list(DESCRIBED), {}, self._selected)
        outs = [
            self._frame._output(w.aggregate, w.column, bounds, w.aggregate if self._single else w.label)
            for w in spec.wanted
        ]
        index, columns = self._index(), _release.columns_of([out.name for out in outs])
        layout = Pivot(len(index))
        if not self._as_index:
            raise NotOffered(
                "describe has its groups as index: leave as_index=False out, and reset_index() the answer."
            )

        def finish(release: Release) -> pd.DataFrame:
            return _release.laid_out(release, layout, index, columns, whole=False)

        return cast(pd.DataFrame, self._ask(outs, finish, payment))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._frame._columns:
            return self[name]
        raise NotOffered(
            ADVICE.get(
                name,
                f"groups have no private {name!r}. They have {', '.join((*named_in_agg(), *ORDERS))}, quantile and agg.",
            )
        )

    def __iter__(self) -> Any:
        raise NotOffered(ADVICE["iteration"])

    def __len__(self) -> int:
        return len(self._index())

    def __repr__(self) -> str:
        return f"PrivateGroupBy by {', '.join(map(str, self._by))}"


def check_options(group_keys: Any, observed: Any, level: Any) -> None:
    """The words of pandas' groupby that change nothing here, or cannot be had."""
    _validate.flag(group_keys, "group_keys")
    if level is not None:
        raise NotOffered("level= groups by an index, which a tracked frame has not. Group by columns.")
    if observed is not None and _validate.flag(observed, "observed"):
        raise BadValue(
            "observed=True would tell which keys occur. All listed groups come back: leave it out, or False."
        )


spell_out(PrivateGroupBy)
own_errors(PrivateGroupBy, DataFrameGroupBy)
