"""The verbs that cost: each builds a query and ends in `Releases._ask`, which pays before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._answers import answer as _release
from dpframe._answers.estimate import IntEstimate
from dpframe._errors import BadType, BadValue, MissingBounds
from dpframe._expr import Column, Cut, Expr
from dpframe._frame.column import PrivateColumn, predicate_of
from dpframe._frame.rewrite import callers_frame
from dpframe._groups.keys import EVERY, BinBy, Keys, Word, keys_for, need_keys
from dpframe._plans.aggregates import AGGREGATES, CHOSEN, ORDERS
from dpframe._plans.output import Output
from dpframe._plans.price import Payment, checked, known_n, spell_out
from dpframe._questions.query import Query
from dpframe._questions.question import Question, Release
from dpframe._session.batch import Batch, Rowwise
from dpframe._session.session import Asked, Session
from dpframe._validate import Bounds
from dpframe.accounting._filter import Price

if TYPE_CHECKING:
    from dpframe._frame.frame import PrivateFrame


PRICED = ("epsilon", "delta", "within", "n", "mechanism")  # the words that make a price


class Releases:
    """What a tracked frame can be asked."""

    _session: Session
    _columns: dict[Hashable, Expr]
    _where: Expr | None
    _declared: tuple[Word, ...]
    _explaining: bool
    _batch: Batch | None
    _half: bool

    if TYPE_CHECKING:

        def _usable(self) -> None: ...
        def _expr_of(self, name: Any) -> Expr: ...
        def _resolve(self, value: Any) -> Expr: ...
        def _parsed(self, text: str, caller: Any) -> tuple[Expr, PrivateFrame]: ...

    def _ask(self, query: Question, finish: Callable[[Release], Any], payment: Mapping[str, Any]) -> Any:
        """Every release ends here: a price, then the plan alone, a place in a batch, or the session's door."""
        self._usable()
        with np.errstate(all="ignore"):  # what a caller has set for numpy decides nothing about an answer
            return self._priced(replace(query, finish=finish), payment)

    def _priced(self, query: Question, payment: Mapping[str, Any]) -> Any:
        if isinstance(self._batch, Rowwise):
            self._batch.refuse()
        words = checked(payment)
        if not query.outputs and isinstance(query, Query):
            raise BadValue("no columns are selected, so nothing is asked.")
        session = self._session
        session.check_alive()
        assumed = None
        if self._explaining and words.get("within") is None and words.get("n") is not None:
            # From a number of people to an accuracy: the price does not depend on it, what is shown does.
            assumed, words = known_n(words["n"], None), {**words, "n": None}
        asked = self._asked(query, words)
        if self._explaining:
            return replace(session.plan(asked), n=assumed)
        if self._batch is not None:
            return self._batch.add(asked)
        return asked.question.answer(session.ask([asked])[0])

    def _asked(self, query: Question, words: Payment) -> Asked:
        """The question with its price."""
        session = self._session
        part = Fraction(1, 2) if self._half and words.get("within") is None else Fraction(1)
        ahead = None if self._batch is None else self._batch.ahead()

        def at(epsilon: Fraction) -> Price:
            """What it would buy at this epsilon."""
            named = {**words, "epsilon": epsilon, "within": None, "n": None}
            return session.price(query, cast("Payment", named), part, ahead)

        price = session.price(query, words, part, ahead)
        typed: tuple[Any, ...] = tuple(words.get(word) for word in PRICED)
        paid = "|".join(map(str, typed))
        if part != 1:
            paid, typed = f"half|{paid}", ("half", *typed)
        unit, name, fresh = session.limited(words), words.get("name"), bool(words.get("fresh"))
        return Asked(query, price, self._declared, unit, paid, typed, name, fresh, at)

    def _answered(self, query: Question, payment: Mapping[str, Any]) -> bool:
        """Whether it was asked before in the same words, so that it is free."""
        return self._session.answered(self._asked(query, checked(payment)))

    def _bounds(self, expr: Expr, name: Hashable, given: Any) -> Bounds:
        """The verb's own bounds, or those that follow from the declared ones."""
        if expr.kind not in ("number", "bool"):
            raise BadType(
                f"column {name!r} is of kind {expr.kind}: only numbers have sums and means. "
                "For its values use value_counts or argmax; of a date take a part first, such as t.dt.month."
            )
        if isinstance(given, Mapping):
            given = self._by_column(given).get(name)
        if given is not None:
            return _validate.bounds(given, repr(name))
        known = expr.bounds(self._session.bounds)
        if known is None:
            lacking = sorted(str(c) for c in expr.columns() if c.position not in self._session.bounds)
            what = f" (none follow from what is declared about {', '.join(lacking)})" if lacking else ""
            raise MissingBounds(
                f"{name!r} needs public bounds{what}: bounds=(lower, upper) here, or open(..., bounds={{...}}) once. "
                "They are never inferred from the data; say what the values can be, not what they are."
            )
        return _validate.bounds(known, repr(name))

    def _by_column(self, given: Mapping[Any, Any]) -> dict[Hashable, Any]:
        known = [*self._columns, *self._session.leaves]
        return {_validate.column_name(name, known): value for name, value in given.items()}

    def _keys(self, expr: Expr, name: Hashable, given: Any, verb: str) -> Keys:
        """The verb's own keys, the declared ones of a root column, or those an expression brings along."""
        if given is not None:
            return keys_for(given, expr, name)
        declared = self._session.keys.get(expr.position) if isinstance(expr, Column) else None
        if declared is not None:
            return declared.named(name)
        own = (False, True) if expr.kind == "bool" else getattr(expr, "categories", None)
        if not own:
            raise need_keys(name if isinstance(expr, Column) else str(expr), verb)
        return keys_for(list(own), expr, name, ordered=isinstance(expr, Cut))

    def _named(self, column: Any) -> tuple[Expr, Hashable]:
        if isinstance(column, pd.Grouper):
            raise BadType("a pd.Grouper is for groupby and pivot_table; here name a column.")
        expr = self._expr_of(column)
        return expr, column._name if isinstance(column, PrivateColumn) else column

    def _output(
        self, aggregate: str, column: Any, bounds: Any, name: Hashable = None, ddof: int = 1
    ) -> Output:
        if aggregate == "nunique":
            return self._distinct(column, name)
        expr, label = self._named(column)
        one = AGGREGATES[aggregate]
        pair = self._bounds(expr, label, bounds) if one.needs_bounds else None
        if one.degree == 2 and pair and pair.upper - pair.lower > 2.0**500:
            raise BadValue(f"bounds of {label!r} are too wide for a {aggregate}: squares must be doubles.")
        if isinstance(ddof, bool) or not isinstance(ddof, int | np.integer) or ddof not in (0, 1):
            raise BadValue("ddof must be 0 or 1.")
        return Output(label if name is None else name, aggregate, expr, pair, ddof if one.takes_ddof else 1)

    def _wanted(self, column: Any, aggregate: str, bounds: Any, label: Hashable) -> Output:
        """An output of `agg`."""
        if aggregate == "size":
            self._expr_of(column)
            return Output(label, "size")
        if aggregate in CHOSEN:
            return cast("PrivateFrame", self)._order(column, ORDERS[aggregate], bounds, None, name=label)
        return self._output(aggregate, column, bounds, name=label)

    def _numbers(self) -> list[Hashable]:
        """The columns that pandas would call numeric."""
        return [name for name, expr in self._columns.items() if expr.kind in ("number", "bool")]

    def count(
        self,
        column: Any = EVERY,
        **payment: Unpack[Payment],
    ) -> IntEstimate:
        """How many rows; of a column, how many non-null values. (pandas counts every column: name one.)

        Formal guarantee: epsilon-DP for its price; sensitivity 1 (docs/guarantees/statistics.md). The answer is
        a whole number, and may be negative when few rows meet much noise.

        >>> df = pd.DataFrame({"age": [30, 41, 55]})
        >>> p = df.dp.open(100)
        >>> type(p.count(epsilon=50)).__name__, p.count(epsilon=50) == 3
        ('IntEstimate', True)
        """
        if isinstance(column, float) and column not in self._columns:
            raise BadType(f"count takes the name of a column. A price is a keyword: count(epsilon={column}).")
        out = Output("rows", "size") if column is EVERY else self._output("count", column, None)
        query = Query((out,), self._where)
        return cast(IntEstimate, self._ask(query, _release.scalar, payment))

    def nunique(self, column: Any = EVERY, **payment: Unpack[Payment]) -> Any:
        """How many distinct non-null values; of the column that ``unit=`` names, how many people. None named: every column.

        In a session with ``unit=`` a person adds at most ``max_groups`` values, chosen by a keyed hash of their own, so a
        value that only such people have may be missing. Equal cells are one value: 0.0 and -0.0, 1 and 1.0, a category and
        its text. Cells that are no plain scalar are one value together.

        Formal guarantee: epsilon-DP for its price; sensitivity 1, or ``max_groups`` with ``unit=``, for both relations
        (docs/guarantees/statistics.md). Which values there are stays private.

        >>> df = pd.DataFrame({"id": [1, 1, 2], "town": ["Rome", "Pisa", "Rome"]})
        >>> p = df.dp.open(1000, unit="id", max_groups=2)
        >>> p.nunique("id", epsilon=300) == 2, p.nunique("town", epsilon=300) == 2
        (True, True)
        """
        if column is EVERY:
            return self._measure("nunique", EVERY, None, 1, payment)
        query = Query((self._distinct(column),), self._where)
        return cast(IntEstimate, self._ask(query, _release.scalar, payment))

    def _distinct(self, column: Any, label: Hashable = None) -> Output:
        expr, name = self._named(column)
        if expr.kind == "other":
            raise BadType(f"column {name!r} has a dtype whose values cannot be told apart.")
        name = name if label is None else label
        if (expr,) == self._session.unit.people:
            return Output(name, "people")
        return Output(name, "nunique", expr)

    def counts(
        self,
        questions: Mapping[Any, Any],
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]:
        """Several yes-no questions about rows, which may overlap, in one release: a Series by their names.

        Formal guarantee: epsilon-DP for its price; k questions have L1 sensitivity k and L2 sensitivity sqrt(k).

        >>> df = pd.DataFrame({"age": [30, 41, 85], "smoker": [1, 0, 1]})
        >>> p = df.dp.open(100)
        >>> p.counts({"smokers": "smoker == 1", "old": "age > 80"}, epsilon=80)
        smokers    2
        old        1
        Name: count, dtype: int64
        """
        if not isinstance(questions, Mapping) or not questions:
            raise BadValue("counts takes questions by name: {'smokers': 'smoker == 1', 'old': 'age > 80'}.")
        caller, frame, outputs = callers_frame(), cast("PrivateFrame", self), []
        for name, question in questions.items():
            if isinstance(question, str):
                expr, frame = frame._parsed(question, caller)
            else:
                expr = frame._resolve(question)
            outputs.append(Output(name, "true", predicate_of(expr)))
        index = pd.Index(list(questions), tupleize_cols=False)
        query = Query(tuple(outputs), self._where)
        return cast(
            "pd.Series[Any]",
            frame._ask(query, lambda r: _release.across(r, index, "count"), payment),
        )

    def _measure(
        self,
        aggregate: str,
        column: Any,
        bounds: Any,
        ddof: int,
        payment: Mapping[str, Any],
    ) -> Any:
        """One column: an estimate. None named: every column of this frame, in one release."""
        if column is not EVERY:
            out = self._output(aggregate, column, bounds, ddof=ddof)
            return self._ask(Query((out,), self._where), _release.scalar, payment)
        names = self._numbers() if payment.get("numeric_only") is True else list(self._columns)
        outs = tuple(self._output(aggregate, name, bounds, ddof=ddof) for name in names)
        index = pd.Index(names, tupleize_cols=False)
        return self._ask(Query(outs, self._where), lambda r: _release.across(r, index), payment)

    def sum(
        self,
        column: Any = EVERY,
        bounds: Any = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """The sum of a column's values, each clipped to its bounds; of every column if none is named.

        Formal guarantee: epsilon-DP for its price; sensitivity max(abs(lower), abs(upper)), or upper - lower where
        rows are replaced and always count (docs/guarantees/statistics.md). Nulls count for nothing.

        >>> df = pd.DataFrame({"visits": [1, 2, 30]})
        >>> p = df.dp.open(1000)
        >>> p.sum("visits", bounds=(0, 10), epsilon=900) == 13
        True
        """
        return self._measure("sum", column, bounds, 1, payment)

    def mean(
        self,
        column: Any = EVERY,
        bounds: Any = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """The mean of a column's values, each clipped to its bounds; of every column if none is named.

        One release of the distances to both bounds, whose sum tells the count: half the variance of splitting the
        price between a sum and a count (docs/guarantees/mean.md). The answer lies within the bounds, whatever the
        noise. Nulls count for nothing, as in pandas. Under replace-one a column that cannot be null is divided by
        the public number of rows; ``fillna`` with a constant makes it such a column.

        Formal guarantee: epsilon-DP for its price.

        >>> df = pd.DataFrame({"age": [30.0, None, 50.0]})
        >>> p = df.dp.open(1e3, bounds={"age": (0, 110)})
        >>> round(p.mean("age", epsilon=900))
        40
        """
        return self._measure("mean", column, bounds, 1, payment)

    def var(
        self,
        column: Any = EVERY,
        bounds: Any = None,
        *,
        ddof: int = 1,
        **payment: Unpack[Payment],
    ) -> Any:
        """The variance of a column's clipped values; of every column if none is named.

        One release of three sums that share the sensitivity of one (docs/guarantees/variance.md).

        Formal guarantee: epsilon-DP for its price.
        """
        return self._measure("var", column, bounds, ddof, payment)

    def std(
        self,
        column: Any = EVERY,
        bounds: Any = None,
        *,
        ddof: int = 1,
        **payment: Unpack[Payment],
    ) -> Any:
        """The standard deviation of a column's clipped values; of every column if none is named.

        Formal guarantee: epsilon-DP for its price; the root of `var`, which is post-processing.
        """
        return self._measure("std", column, bounds, ddof, payment)

    def histogram(
        self,
        column: Any,
        bins: Any = 10,
        *,
        bounds: Any = None,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]:
        """How many values lie in each bin, over an IntervalIndex.

        Bins are numpy's: closed on the left, and the last one on both sides (its label cannot show it). Values
        outside all bins and nulls are not counted. A whole number of bins divides the bounds evenly.

        Formal guarantee: epsilon-DP for its price; the whole vector has sensitivity 1 (2 under replace-one).

        >>> df = pd.DataFrame({"age": [30, 41, 85]})
        >>> p = df.dp.open(100, bounds={"age": (0, 100)})
        >>> p.histogram("age", bins=2, epsilon=80)
        age
        [0.0, 50.0)      2
        [50.0, 100.0)    1
        Name: count, dtype: int64
        """
        expr, name = self._named(column)
        if expr.kind not in ("number", "bool"):
            instead = f"p.resample('ME', on={name!r}).size()" if expr.kind == "time" else "value_counts"
            raise BadType(
                f"column {name!r} is of kind {expr.kind}: a histogram needs numbers. Use {instead}."
            )
        by = BinBy(expr, self._edges(expr, name, bins, bounds), name)
        query = Query((Output("count", "size"),), self._where, (by,))
        return cast(
            "pd.Series[Any]",
            self._ask(query, lambda r: _release.series(r, by.index, "count"), payment),
        )

    def _edges(self, expr: Expr, name: Hashable, bins: Any, bounds: Any) -> tuple[float, ...]:
        if isinstance(bins, str):
            raise BadValue(f"bins={bins!r} would look at the data. Give a number of bins or a list of edges.")
        if isinstance(bins, int | np.integer):
            number = _validate.positive_int(bins, "bins")
            return _validate.even_edges(self._bounds(expr, name, bounds), number, repr(name))
        if isinstance(bins, pd.Series | pd.DataFrame) or not isinstance(bins, Iterable):
            raise BadType("bins must be a number of bins or a list of public edges.")
        return _validate.edges(bins, repr(name))


spell_out(Releases)
