"""Summaries of columns: several aggregates at once, covariances, correlations. Each is one release."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Unpack, cast

import pandas as pd

from dpframe import _validate
from dpframe._answers import answer as _release
from dpframe._answers.layout import Correlations, Grid, Layout
from dpframe._errors import BadType, MissingBounds, NotOffered
from dpframe._frame.column import PrivateColumn
from dpframe._frame.verbs import agg_spec as _specs
from dpframe._frame.verbs.releases import Releases
from dpframe._groups.keys import EVERY
from dpframe._plans.aggregates import DESCRIBED
from dpframe._plans.output import Output
from dpframe._plans.price import Payment, checked, spell_out
from dpframe._questions.query import Query


class Summaries(Releases):
    """What pandas calls by other names than one number a column."""

    # Summaries ------------------------------------------------------------------------------------------------

    def describe(
        self,
        column: Any = EVERY,
        bounds: Any = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """Count, mean and standard deviation of every number column with public bounds, in one release.

        A DataFrame as pandas' ``describe``, a column a column; of one column, or of a list of them, if named. A column
        without bounds is left out, unless it is named. What pandas shows below, quantiles and extremes, is not in it.

        Formal guarantee: epsilon-DP for its price; one vector a column (docs/guarantees/variance.md), which share it.

        >>> df = pd.DataFrame({"age": [30.0, 40.0, None] * 500, "name": ["a", "b", "c"] * 500})
        >>> p = df.dp.open(1e3, bounds={"age": (0, 110)})
        >>> p.describe(epsilon=900).round()
                  age
        count  1000.0
        mean     35.0
        std       5.0
        """
        payment = checked(payment)
        if column is not EVERY and not isinstance(column, list):
            name = self._named(column)[1]
            outs = tuple(self._output(a, column, bounds, name=a) for a in DESCRIBED)
            index = pd.Index(DESCRIBED)
            query = Query(outs, self._where)
            return self._ask(query, lambda r: _release.across(r, index, name), payment)
        names = self._described(bounds) if column is EVERY else column
        spec = _specs.read(list(DESCRIBED), {}, _validate.column_names(names, self._columns))
        return self._grid(spec.wanted, bounds, payment, whole=False)

    def _described(self, bounds: Any) -> list[Hashable]:
        given = self._by_column(bounds) if isinstance(bounds, Mapping) else {}
        names = [
            name
            for name, expr in self._columns.items()
            if expr.kind == "number" and (name in given or expr.bounds(self._session.bounds) is not None)
        ]
        if not names:
            raise MissingBounds(
                "no column of numbers has public bounds: bounds={'age': (0, 110)} here, or open(..., bounds={...}) once."
            )
        return names

    def agg(
        self,
        spec: Any = None,
        /,
        *,
        bounds: Any = None,
        **outputs: Any,
    ) -> Any:
        """Several aggregates of several columns in one release, in the shape pandas gives.

        ``agg("mean")`` and ``agg({"age": "mean"})`` are Series, ``agg(["mean", "std"])``, ``agg({"age": ["mean"]})``
        and ``agg(n=("age", "size"))`` tables with a row an aggregate or an output, and NaN where nothing was asked.
        The price words are those of `mean`. Aggregates of one column share one vector.

        Formal guarantee: epsilon-DP for its price; columns share it.

        >>> df = pd.DataFrame({"age": [30, 40], "cost": [5.0, 7.0]})
        >>> p = df.dp.open(1e3, bounds={"age": (0, 110), "cost": (0, 10)})
        >>> p.agg({"age": "mean", "cost": ["mean", "sum"]}, epsilon=900).round()
               age  cost
        mean  35.0   6.0
        sum    NaN  12.0
        """
        payment, outputs = _specs.split_words(outputs, bounds)
        form, wanted = _specs.read(spec, outputs, list(self._columns))
        if form == "named":
            return self._grid(wanted, bounds, payment, named=True)
        if form in ("list", "dict of lists"):
            return self._grid(wanted, bounds, payment)
        outs = tuple(self._wanted(w.column, w.aggregate, bounds, w.label) for w in wanted)
        index = pd.Index([w.label for w in wanted], tupleize_cols=False)
        return self._ask(Query(outs, self._where), lambda r: _release.across(r, index), payment)

    aggregate = agg

    def _agg_column(self, column: PrivateColumn, spec: Any, bounds: Any, outputs: dict[str, Any]) -> Any:
        """``p["age"].agg(...)``: a number, or a Series with a row an aggregate."""
        payment, outputs = _specs.split_words(outputs, bounds)
        form, wanted = _specs.read(spec, outputs, [column.name], single=True)
        labels = [w.aggregate if form == "list" else w.label for w in wanted]
        outs = tuple(
            self._wanted(column, w.aggregate, bounds, n) for w, n in zip(wanted, labels, strict=True)
        )
        query = Query(outs, self._where)
        if form == "one":
            return self._ask(query, _release.scalar, payment)
        index = pd.Index(labels, tupleize_cols=False)
        return self._ask(query, lambda r: _release.across(r, index, column.name), payment)

    def _grid(
        self,
        wanted: tuple[_specs.Wanted, ...],
        bounds: Any,
        payment: Any,
        named: bool = False,
        whole: bool = True,
    ) -> Any:
        """A row an aggregate or a named output, a column a column, in the order in which they first appear."""
        labels = [self._named(w.column)[1] for w in wanted]
        outs = tuple(self._wanted(w.column, w.aggregate, bounds, w.label) for w in wanted)
        rows = list(dict.fromkeys(w.label if named else w.aggregate for w in wanted))
        columns = list(dict.fromkeys(labels))
        places = {
            (w.label if named else w.aggregate, c): i
            for i, (w, c) in enumerate(zip(wanted, labels, strict=True))
        }
        layout = Grid(tuple(tuple(places.get((row, c), -1) for c in columns) for row in rows))
        index, across = pd.Index(rows, tupleize_cols=False), pd.Index(columns, tupleize_cols=False)
        return self._ask(
            Query(outs, self._where), lambda r: _release.laid_out(r, layout, index, across, whole), payment
        )

    def cov(
        self, min_periods: None = None, ddof: int = 1, *, bounds: Any = None, **payment: Unpack[Payment]
    ) -> pd.DataFrame:
        """The covariances of all columns, in one release; select them first: ``p[["age", "cost"]].cov()``.

        Each is over the rows where neither of its two columns is null. The price is shared by all pairs and variances.

        Formal guarantee: epsilon-DP for its price; the mixed moments of two columns have the sensitivity of one number
        (docs/guarantees/shapes.md).

        >>> df = pd.DataFrame({"a": [1.0, 2.0, 3.0] * 500, "b": [6.0, 4.0, 2.0] * 500})
        >>> p = df.dp.open(1e3, bounds={"a": (0, 4), "b": (0, 8)})
        >>> p.cov(epsilon=900).round(1)
             a    b
        a  0.7 -1.3
        b -1.3  2.7
        """
        names, cells, outs = self._matrix(min_periods, ddof, bounds, checked(payment))
        return self._square(outs, Grid(cells), names, payment)

    def corr(
        self,
        method: str = "pearson",
        min_periods: None = None,
        *,
        bounds: Any = None,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame:
        """The correlations of all columns, in one release: the same one as `cov`, so after it they are free.

        The variances in them are those of each column's own non-null values; where columns have nulls, write
        ``p.dropna(subset=[...])`` first to have the same rows in all. Zero divided by a noisy variance of zero is NaN.

        Formal guarantee: epsilon-DP for its price (docs/guarantees/shapes.md).
        """
        if not isinstance(method, str) or method != "pearson":
            raise NotOffered(
                "correlations of ranks compare people with each other. There is method='pearson'."
            )
        names, cells, outs = self._matrix(min_periods, 1, bounds, checked(payment))
        return self._square(outs, Correlations(cells), names, payment)

    def _matrix(
        self, min_periods: Any, ddof: int, bounds: Any, payment: Mapping[str, Any]
    ) -> tuple[list[Hashable], tuple[tuple[int, ...], ...], tuple[Output, ...]]:
        """Variances and covariances of each column with those after it, and where they stand in the square."""
        if min_periods is not None and not (isinstance(min_periods, int) and min_periods == 1):
            raise BadType("min_periods= would hide a cell by its exact number of rows. Look at its interval.")
        names = self._numbers() if payment.get("numeric_only") is True else list(self._columns)
        outs: list[Output] = []
        places: dict[tuple[Hashable, Hashable], int] = {}
        for i, one in enumerate(names):
            first = self._output("var", one, bounds, ddof=ddof)
            for two in names[i:]:
                second = self._output("var", two, bounds, ddof=ddof)
                places[one, two] = places[two, one] = len(outs)
                label = f"{one}, {two}"
                outs.append(
                    Output(label, "var", first.expr, first.bounds, ddof)
                    if one == two
                    else Output(
                        label,
                        "cov",
                        first.expr,
                        first.bounds,
                        ddof,
                        other=second.expr,
                        other_bounds=second.bounds,
                    )
                )
        return names, tuple(tuple(places[a, b] for a in names) for b in names), tuple(outs)

    def _square(
        self, outs: tuple[Output, ...], layout: Layout, names: list[Hashable], payment: Mapping[str, Any]
    ) -> pd.DataFrame:
        index = pd.Index(names, tupleize_cols=False)
        query = Query(outs, self._where)
        return cast(
            pd.DataFrame, self._ask(query, lambda r: _release.laid_out(r, layout, index, index), payment)
        )


spell_out(Summaries)
