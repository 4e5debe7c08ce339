"""The verbs that measure columns, of frames and of groups alike: a frame is groups by nothing.

What they leave to the kinds of `Measures` is which columns are meant where none is named, and how
the answer is laid out.
"""

# mypy: disable-error-code="misc"
# The first overload of each verb is for a kind of frame: checkers find it by its ``self``, which mypy wants wider.

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, Unpack, overload

import numpy as np
import pandas as pd

from dpframe._answers import answer as _release
from dpframe._answers.estimate import scalar
from dpframe._errors import BadType, BadValue, UnknownColumn, did_you_mean, unknown_column
from dpframe._frame.columns import order
from dpframe._frame.selection import Asking, Finish
from dpframe._frame.signatures import verb
from dpframe._frame.spelling import sideways
from dpframe._frame.typed.answers import (
    A,
    Counted,
    Levels,
    Moments,
    Named,
    Number,
    Outputs,
    Pair,
    Row,
    Table,
    Value,
    Values,
    Whole,
    Words,
)
from dpframe._groups.keys import EVERY
from dpframe._plans.aggregates import AGGREGATES, Output, named_in_agg
from dpframe._plans.order import ORDERS, level_named
from dpframe._plans.price import WORDS, Payment, checked
from dpframe._questions.question import ROWS, Query

if TYPE_CHECKING:
    from dpframe._frame.column import PrivateColumn
    from dpframe._frame.typed.frames import Unanswered


class Measures(Asking, Generic[Whole, Number, Value, Counted, Levels, Row, Values, Table, Outputs]):
    """What has columns that can be measured: a tracked frame, or its groups."""

    _single = False  # whether one column is selected, whose answers stand alone

    # A frame is groups by nothing. Groups have other columns in mind where none is named, and lay
    # answers out by their keys.

    @property
    def _keyed(self) -> Sequence[Hashable]:
        """The columns that are keys, which are not measured where all are."""
        return ()

    def _columns_for(
        self, column: Any, verb: str, numeric_only: bool
    ) -> tuple[Sequence[Any], bool]:
        """The columns that a verb measures, and whether the answer is that of a single one."""
        if column is not EVERY:
            return (column,), True
        if numeric_only:
            return self._selection.numbers, False
        names, numbers = list(self._selection.columns), self._selection.numbers
        one = AGGREGATES[verb]
        also = [
            kind for kind, has in (("duration", one.of_durations), ("time", one.of_times)) if has
        ]
        numbers += [n for n, e in self._selection.columns.items() if e.kind in also]
        if AGGREGATES[verb].needs_bounds and len(numbers) < len(names):
            not_numeric = next(
                (name for name in names if name not in numbers and name not in self._keyed), None
            )
            if not_numeric is not None:
                receiver = "p.groupby(...)" if self._keyed else "p"
                raise BadType(
                    f"column {not_numeric!r} is of kind {self._selection.columns[not_numeric].kind}: only numbers have a {verb}. "
                    f"Name the columns, {receiver}[['x', 'y']].{verb}(), or take all that are numbers: {verb}(numeric_only=True)."
                )
        return names, False

    def _is_column(self, name: Any) -> bool:
        return isinstance(name, Hashable) and name in self._selection.columns

    def _ask_for(
        self,
        outputs: Sequence[Output],
        payment: Mapping[str, Any],
        layout: Finish | None = None,
        single: bool = False,
        choices: bool = False,
    ) -> Any:
        """The answer to a question with these outputs: laid out as is said, or else a ``single``
        one alone and several side by side; ``choices`` have no groups as columns."""
        query = Query(tuple(outputs), self._selection.where)
        if layout is not None:
            return self._ask(query, lambda release: layout(release, None), payment)
        if single:
            return self._ask(query, scalar, payment)
        index = pd.Index([out.name for out in outputs], tupleize_cols=False)
        return self._ask(query, lambda release: _release.across(release, index), payment)

    def _aggregated(
        self, spec: Any, named: Mapping[str, Any], bounds: Any, payment: dict[str, Any]
    ) -> Any:
        """The answer of `agg`."""
        form, wanted = spec_of(spec, named, list(self._selection.columns))
        outs = [self._selection.wanted(w.aggregate, w.column, bounds, w.label) for w in wanted]
        if form not in ("named", "list", "dict of lists"):
            return self._ask_for(outs, payment)
        places = [
            (w.label if form == "named" else w.aggregate, self._selection.named(w.column)[1])
            for w in wanted
        ]
        return self._ask_for(outs, payment, _release.grid(outs, places))

    def _measure(
        self, aggregate: str, column: Any, bounds: Any, ddof: int, payment: Mapping[str, Any]
    ) -> Any:
        if isinstance(column, int | float) and column not in self._selection.columns:
            message = unknown_column(column, self._selection.columns)
            raise UnknownColumn(
                f"{message} What {aggregate} takes by position is a column, then bounds; others are keywords, such as "
                "epsilon=0.1."
            )
        if "axis" in payment and column is EVERY and bounds is None and sideways(payment):
            return self._across(aggregate, payment)
        names, single = self._columns_for(column, aggregate, payment.get("numeric_only") is True)
        outs = [self._selection.output(aggregate, name, bounds, ddof=ddof) for name in names]
        return self._ask_for(outs, payment, single=single)

    def _across(self, aggregate: str, payment: Mapping[str, Any]) -> Any:
        """A column of what the cells of each row come to; groups have none, and ``axis=`` is
        refused."""
        return checked(payment)

    # Sums and moments -----------------------------------------------------------------------------------------

    @overload
    def count(self: Unanswered[A], column: Named = ..., **payment: Unpack[Payment]) -> A: ...
    @overload
    def count(self, column: Named, **payment: Unpack[Payment]) -> Whole: ...
    @overload
    def count(self, **payment: Unpack[Payment]) -> Counted: ...
    @overload
    def count(self, *, axis: Literal[1, "columns"], numeric_only: bool = ...) -> PrivateColumn: ...
    @verb
    def count(self, column: Any = EVERY, **payment: Any) -> Any:
        """How many rows; of a column, how many non-null values, and so of each column of a list:
        ``p[["x", "y"]].count()``.

        Formal guarantee: epsilon-DP for its price; sensitivity 1 (docs/guarantees/statistics.md).
        The answer is a whole number, and may be negative when few rows meet much noise.

        >>> df = pd.DataFrame({"age": [30, 41, 55]})
        >>> p = df.dp.open(100)
        >>> type(p.count(epsilon=50)).__name__, p.count(epsilon=50) == 3
        ('IntEstimate', True)
        """
        if isinstance(column, float) and column not in self._selection.columns:
            raise BadType(
                f"count takes the name of a column. A price is a keyword: count(epsilon={column})."
            )
        if "axis" in payment and column is EVERY and sideways(payment):
            return self._across("count", payment)
        if column is EVERY and self._selection.listed:
            outs = [self._selection.output("count", name, None) for name in self._selection.columns]
            return self._ask_for(outs, payment)
        out = ROWS if column is EVERY else self._selection.output("count", column, None)
        return self._ask_for([out], payment, single=True)

    @overload
    def nunique(self: Unanswered[A], column: Named = ..., **words: Unpack[Words]) -> A: ...
    @overload
    def nunique(self, column: Named, **words: Unpack[Words]) -> Whole: ...
    @overload
    def nunique(self, **words: Unpack[Words]) -> Values: ...
    @verb
    def nunique(self, column: Any = EVERY, **payment: Any) -> Any:
        """How many distinct non-null values; of the column that ``unit=`` names, how many people.
        None named: every column.

        In a session with ``unit=`` a person adds at most ``max_groups`` values, chosen by a keyed
        hash of their own, so a value that only such people have may be missing. Equal cells are one
        value: 0.0 and -0.0, 1 and 1.0, a category and its text. Cells that are no plain scalar are
        one value together.

        Formal guarantee: epsilon-DP for its price; sensitivity 1, or ``max_groups`` with ``unit=``,
        for both relations (docs/guarantees/statistics.md). Which values there are stays private.

        >>> df = pd.DataFrame({"id": [1, 1, 2], "town": ["Rome", "Pisa", "Rome"]})
        >>> p = df.dp.open(1000, unit="id", max_groups=2)
        >>> p.nunique("id", epsilon=300) == 2, p.nunique("town", epsilon=300) == 2
        (True, True)
        """
        return self._measure("nunique", column, None, 1, payment)

    @overload
    def sum(
        self: Unanswered[A], column: Named = ..., bounds: Pair = ..., **words: Unpack[Words]
    ) -> A: ...
    @overload
    def sum(self, column: Named, bounds: Pair = ..., **words: Unpack[Words]) -> Value: ...
    @overload
    def sum(self, *, bounds: Pair = ..., **words: Unpack[Words]) -> Values: ...
    @overload
    def sum(self, *, axis: Literal[1, "columns"], numeric_only: bool = ...) -> PrivateColumn: ...
    @verb
    def sum(self, column: Any = EVERY, bounds: Any = None, **payment: Any) -> Any:
        """The sum of a column's values, each clipped to its bounds; of every column if none is
        named.

        Formal guarantee: epsilon-DP for its price; sensitivity max(abs(lower), abs(upper)), or
        upper - lower where rows are replaced and always count (docs/guarantees/statistics.md).
        Nulls count for nothing.

        >>> df = pd.DataFrame({"visits": [1, 2, 30]})
        >>> p = df.dp.open(1000)
        >>> p.sum("visits", bounds=(0, 10), epsilon=900) == 13
        True
        """
        return self._measure("sum", column, bounds, 1, payment)

    @overload
    def mean(
        self: Unanswered[A], column: Named = ..., bounds: Pair = ..., **words: Unpack[Words]
    ) -> A: ...
    @overload
    def mean(self, column: Named, bounds: Pair = ..., **words: Unpack[Words]) -> Number: ...
    @overload
    def mean(self, *, bounds: Pair = ..., **words: Unpack[Words]) -> Row: ...
    @overload
    def mean(self, *, axis: Literal[1, "columns"], numeric_only: bool = ...) -> PrivateColumn: ...
    @verb
    def mean(self, column: Any = EVERY, bounds: Any = None, **payment: Any) -> Any:
        """The mean of a column's values, each clipped to its bounds; of every column if none is
        named.

        One release of the distances to both bounds, whose sum tells the count: half the variance of
        splitting the price between a sum and a count (docs/guarantees/mean.md). The answer lies
        within the bounds, whatever the noise. Nulls count for nothing, as in pandas. Under
        replace-one a column that cannot be null is divided by the public number of rows; ``fillna``
        with a constant makes it such a column.

        Formal guarantee: epsilon-DP for its price.

        >>> df = pd.DataFrame({"age": [30.0, None, 50.0]})
        >>> p = df.dp.open(1e3, bounds={"age": (0, 110)})
        >>> print(round(p.mean("age", epsilon=900)))
        40
        """
        return self._measure("mean", column, bounds, 1, payment)

    @overload
    def var(
        self: Unanswered[A], column: Named = ..., bounds: Pair = ..., **words: Unpack[Moments]
    ) -> A: ...
    @overload
    def var(self, column: Named, bounds: Pair = ..., **words: Unpack[Moments]) -> Number: ...
    @overload
    def var(self, *, bounds: Pair = ..., **words: Unpack[Moments]) -> Row: ...
    @verb
    def var(self, column: Any = EVERY, bounds: Any = None, *, ddof: int = 1, **payment: Any) -> Any:
        """The variance of a column's clipped values; of every column if none is named.

        One release of three sums that share the sensitivity of one (docs/guarantees/variance.md).

        Formal guarantee: epsilon-DP for its price.
        """
        return self._measure("var", column, bounds, ddof, payment)

    @overload
    def std(
        self: Unanswered[A], column: Named = ..., bounds: Pair = ..., **words: Unpack[Moments]
    ) -> A: ...
    @overload
    def std(self, column: Named, bounds: Pair = ..., **words: Unpack[Moments]) -> Number: ...
    @overload
    def std(self, *, bounds: Pair = ..., **words: Unpack[Moments]) -> Row: ...
    @verb
    def std(self, column: Any = EVERY, bounds: Any = None, *, ddof: int = 1, **payment: Any) -> Any:
        """The standard deviation of a column's clipped values; of every column if none is named.

        Formal guarantee: epsilon-DP for its price; the root of `var`, which is post-processing.
        """
        return self._measure("std", column, bounds, ddof, payment)

    @overload
    def sem(
        self: Unanswered[A], column: Named = ..., bounds: Pair = ..., **words: Unpack[Moments]
    ) -> A: ...
    @overload
    def sem(self, column: Named, bounds: Pair = ..., **words: Unpack[Moments]) -> Number: ...
    @overload
    def sem(self, *, bounds: Pair = ..., **words: Unpack[Moments]) -> Row: ...
    @verb
    def sem(self, column: Any = EVERY, bounds: Any = None, *, ddof: int = 1, **payment: Any) -> Any:
        """The standard error of the mean of a column's clipped values; of every column if none is
        named.

        It tells how far the mean of such a sample is from that of all whom it stands for, and
        nothing of the noise: that is what the interval of `mean` is about. Where pandas has NaN, of
        no value or one, there is a number all the same, with a wide interval.

        Formal guarantee: epsilon-DP for its price; `std` over the root of the number of values, all
        from one release of three sums that share the sensitivity of one
        (docs/guarantees/variance.md).

        >>> df = pd.DataFrame({"age": [30, 41, 55, 78] * 25})
        >>> p = df.dp.open(1000, bounds={"age": (0, 100)})
        >>> print(round(p.sem("age", epsilon=900), 1), round(float(df["age"].sem()), 1))
        1.8 1.8
        """
        return self._measure("sem", column, bounds, ddof, payment)

    @overload
    def skew(
        self: Unanswered[A], column: Named = ..., bounds: Pair = ..., **words: Unpack[Words]
    ) -> A: ...
    @overload
    def skew(self, column: Named, bounds: Pair = ..., **words: Unpack[Words]) -> Number: ...
    @overload
    def skew(self, *, bounds: Pair = ..., **words: Unpack[Words]) -> Row: ...
    @verb
    def skew(self, column: Any = EVERY, bounds: Any = None, **payment: Any) -> Any:
        """The skewness of a column's clipped values, with pandas' correction; of every column if
        none is named.

        Cubes need many values or narrow bounds: look at the interval. Where pandas has NaN, of
        equal values or fewer than three, there is a number all the same, with a wide interval.

        Formal guarantee: epsilon-DP for its price; one release of four sums that share the
        sensitivity of one (docs/guarantees/variance.md#skewness-cubes-beside-the-squares).

        >>> df = pd.DataFrame({"cost": [10, 20, 30, 90] * 250})
        >>> p = df.dp.open(1000, bounds={"cost": (0, 100)})
        >>> print(round(p.skew("cost", epsilon=900), 1), round(float(df["cost"].skew()), 1))
        1.0 1.0
        """
        return self._measure("skew", column, bounds, 1, payment)

    @overload
    def agg(
        self: Unanswered[A], spec: Any = ..., /, *, bounds: Pair = ..., **outputs: Any
    ) -> A: ...
    @overload
    def agg(self, spec: str, /, *, bounds: Pair = ..., **payment: Unpack[Payment]) -> Values: ...
    @overload
    def agg(
        self, spec: list[str], /, *, bounds: Pair = ..., **payment: Unpack[Payment]
    ) -> Outputs: ...
    @overload
    def agg(
        self, spec: Mapping[Any, str], /, *, bounds: Pair = ..., **payment: Unpack[Payment]
    ) -> Values: ...
    @overload
    def agg(
        self, spec: Mapping[Any, Any] | None = ..., /, *, bounds: Pair = ..., **outputs: Any
    ) -> Outputs: ...
    @verb
    def agg(self, spec: Any = None, /, *, bounds: Any = None, **outputs: Any) -> Any:
        """Several aggregates of several columns in one release, in the shape pandas gives.

        ``agg("mean")`` and ``agg({"age": "mean"})`` are Series, ``agg(["mean", "std"])``,
        ``agg({"age": ["mean"]})`` and ``agg(n=("age", "size"))`` tables with a row an aggregate or
        an output, and NaN where nothing was asked. The price words are those of `mean`. Aggregates
        of one column share one vector.

        Formal guarantee: epsilon-DP for its price; columns share it.

        >>> df = pd.DataFrame({"age": [30, 40], "cost": [5.0, 7.0]})
        >>> p = df.dp.open(1e3, bounds={"age": (0, 110), "cost": (0, 10)})
        >>> p.agg({"age": "mean", "cost": ["mean", "sum"]}, epsilon=900).round()
               age  cost
        mean  35.0   6.0
        sum    NaN  12.0
        """
        # Where ``func`` is a pair or a pd.NamedAgg it is the name of an output.
        if spec is None and not isinstance(outputs.get("func"), tuple):
            spec = outputs.pop("func", None)
        payment, named = split_words(outputs, bounds, self._single)
        return self._aggregated(spec, named, bounds, payment)

    aggregate = agg

    # Order: each is a function of `_frame.columns.order` --------------------------------------------------------------------

    quantile: Final = order.quantile
    median: Final = order.median
    min: Final = order.min
    max: Final = order.max


# What `agg` may be given: a name, a list of them, a dict of either, or named outputs ----------------------------

Form = Literal["one", "list", "dict", "dict of lists", "named"]


class Wanted(NamedTuple):
    """One output: the name it gets, its column, its aggregate."""

    label: Hashable
    column: Any
    aggregate: str


class Spec(NamedTuple):
    """A spec of ``agg`` in one form, whatever its spelling."""

    form: Form
    wanted: tuple[Wanted, ...]


# Functions that stand for an aggregate, whatever the data: others could look at rows as they are.
_FUNCTIONS: dict[Any, str] = {
    sum: "sum",
    min: "min",
    max: "max",
    np.sum: "sum",
    np.mean: "mean",
    np.median: "median",
    np.min: "min",
    np.max: "max",
}


def aggregate_name(value: Any, also: Sequence[str] = ()) -> str:
    """The name of one of the aggregates that have a price, or ``also`` of others; or of a function
    that means one, such as ``np.mean``."""
    if callable(value):
        value = next((name for function, name in _FUNCTIONS.items() if function is value), value)
    if not isinstance(value, str):
        raise BadType(
            "an aggregate is a name such as 'mean' or 'q90', or a list of names; not a function, which could see the data. "
            "What it makes of one row goes before, p.assign(y='x / 2').groupby('k')['y'].mean(), and several names into a list, "
            "p.groupby('k')['x'].agg(['min', 'max'])."
        )
    kind = AGGREGATES.get(value)
    if (kind is None or not kind.named_in_agg) and level_named(value) is None and value not in also:
        names = [*named_in_agg(), *ORDERS, *also]
        close = did_you_mean(value, names) if get_close_matches(value, names, n=1) else ""
        raise BadValue(
            f"no private aggregate {value!r}{_INSTEAD.get(value, '.' + close)} Those there are: {', '.join(names)}, and "
            "quantiles such as 'q90'."
        )
    return value


_INSTEAD: dict[str, str] = {
    **dict.fromkeys(
        ("first", "last", "nth", "any", "idxmax", "idxmin"), ": it would be one person's value."
    ),
    "all": ": one person would decide it. Take the mean of the condition, which is the share of rows where it holds.",
    "mode": ": the most common value is p.argmax('x'), and that of each group p.groupby('k')['x'].argmax().",
    "argmax": ": the most common value is a verb of its own, p.argmax('x').",
    "unique": ": the values that many people have are p.unique(column).",
    "describe": ": several aggregates are a verb of their own, p.describe().",
}


def aggregate_names(values: Sequence[Any], also: Sequence[str] = ()) -> list[str]:
    """Distinct aggregates, in their order."""
    names = [aggregate_name(v, also) for v in values]
    if not names:
        raise BadValue("agg needs at least one aggregate: agg(['mean', 'std']).")
    if len(set(names)) < len(names):
        raise BadValue("an aggregate is named twice for one column. Name it once.")
    return names


def spec_of(
    spec: Any,
    outputs: Mapping[str, Any],
    columns: Sequence[Hashable] | None,
    single: bool = False,
    also: Sequence[str] = (),
) -> Spec:
    """What is asked, of the columns that are selected; ``single`` where that is one column and no
    list. ``also`` are aggregates that only groups have."""
    if isinstance(spec, str) or callable(spec):
        name = aggregate_name(spec, also)
        return Spec("one", tuple(Wanted(c, c, name) for c in _selected(columns)))
    if isinstance(spec, list):
        names = aggregate_names(spec, also)
        return Spec("list", tuple(Wanted((c, n), c, n) for c in _selected(columns) for n in names))
    if spec is not None and not isinstance(spec, Mapping):
        raise BadType(
            "agg takes a name, a list of names, a dict by column, or named outputs: agg(m=('age', 'mean'))."
        )
    if spec and single:
        raise BadType("of one column agg takes a name, a list of names, or agg(m='mean', s='std').")
    if spec and any(isinstance(v, list) for v in spec.values()):
        if outputs:
            raise BadType(
                "lists of aggregates and named outputs make different tables. Ask one of them."
            )
        pairs = [
            (c, n)
            for c, v in spec.items()
            for n in aggregate_names(v if isinstance(v, list) else [v], also)
        ]
        return Spec("dict of lists", tuple(Wanted((c, n), c, n) for c, n in pairs))
    wanted = [Wanted(c, c, aggregate_name(n, also)) for c, n in (spec or {}).items()]
    for label, pair in outputs.items():
        if single and isinstance(pair, str) and columns:
            pair = (columns[0], pair)
        if isinstance(pair, pd.NamedAgg):
            if getattr(pair, "args", ()) or getattr(pair, "kwargs", {}):
                raise BadType(
                    f"{label}=: an aggregate takes no arguments in agg. Ask it as a verb of its own."
                )
            pair = (pair.column, pair.aggfunc)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise BadType(f"{label}= must be a pair such as ('age', 'mean').")
        wanted.append(Wanted(label, pair[0], aggregate_name(pair[1], also)))
    if not wanted:
        raise BadValue("agg needs at least one output: agg(mean_age=('age', 'mean')).")
    return Spec("named" if outputs else "dict", tuple(wanted))


def _selected(columns: Sequence[Hashable] | None) -> Sequence[Hashable]:
    if columns is None:
        raise BadType(
            "name the columns: ['x'].agg('mean'), [['x', 'y']].agg([...]), or agg({'x': ['mean', 'std']})."
        )
    return columns


def split_words(
    outputs: dict[str, Any], bounds: Any, single: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The price words and the named outputs; of the words only ``n`` and ``name`` may be outputs,
    as pairs, or of a ``single`` column as names of aggregates."""
    payment = {word: outputs[word] for word in WORDS if word in outputs}
    for word in ("n", "name"):
        value = payment.get(word)
        # n= is a number where it is a price word; of one column: agg(avg="mean", name="count").
        aggregate = (
            (single or word == "n")
            and isinstance(value, str)
            and (value in named_in_agg() or level_named(value) is not None)
        )
        if aggregate or isinstance(value, tuple | pd.NamedAgg):
            del payment[word]
    named = {w: value for w, value in outputs.items() if w not in payment}
    for word, value in [*payment.items(), ("bounds", bounds)]:
        if isinstance(value, tuple) and not (word == "bounds" and _is_pair_of_bounds(value)):
            raise BadValue(f"{word}= is a price word of agg and cannot be the name of an output.")
    return payment, named


def _is_pair_of_bounds(value: tuple[Any, ...]) -> bool:
    """Whether it is a pair of numbers, or of durations as texts, and no output: a column and an
    aggregate."""
    if len(value) != 2 or not isinstance(value[1], str):
        return len(value) == 2
    return (
        value[1] not in AGGREGATES
        and level_named(value[1]) is None
        and value[1][:1] in "-+0123456789"
    )
