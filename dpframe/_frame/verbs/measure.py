"""The verbs that measure columns, of frames and of groups alike: a frame is groups by nothing.

What they leave to the kinds of `Measures` is which columns are meant where none is named, and how the answer is laid out.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Unpack, cast

import numpy as np
import pandas as pd

from dpframe._answers import answer as _release
from dpframe._answers.estimate import IntEstimate, scalar
from dpframe._answers.grids import grid
from dpframe._errors import BadType, BadValue, UnknownColumn, unknown_column
from dpframe._frame.selection import Asking, Finish
from dpframe._frame.spelling import priced, sideways
from dpframe._groups.keys import EVERY
from dpframe._plans.aggregates import AGGREGATES, ORDERS, Output, level_named, named_in_agg
from dpframe._plans.order import Levels, how_for, levels_of
from dpframe._plans.price import WORDS, Payment, checked
from dpframe._questions.question import Query


class Measures(Asking):
    """What has columns that can be measured: a tracked frame, or its groups."""

    _single = False  # whether one column is selected, whose answers stand alone

    # A frame is groups by nothing. Groups have other columns in mind where none is named, and lay answers out by their keys.

    @property
    def _keyed(self) -> Sequence[Hashable]:
        """The columns that are keys, which are not measured where all are."""
        return ()

    def _columns_for(self, column: Any, verb: str, numeric_only: bool) -> tuple[Sequence[Any], bool]:
        """The columns that a verb measures, and whether the answer is that of a single one."""
        if column is not EVERY:
            return (column,), True
        if numeric_only:
            return self._selection.numbers, False
        names, numbers = list(self._selection.columns), self._selection.numbers
        one = AGGREGATES[verb]
        also = [kind for kind, has in (("duration", one.of_durations), ("time", one.of_times)) if has]
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
        """The answer to a question with these outputs: laid out as is said, or else a ``single`` one alone and several side by
        side; ``choices`` have no groups as columns."""
        query = Query(tuple(outputs), self._selection.where)
        if layout is not None:
            return self._ask(query, lambda release: layout(release, None), payment)
        if single:
            return self._ask(query, scalar, payment)
        index = pd.Index([out.name for out in outputs], tupleize_cols=False)
        return self._ask(query, lambda release: _release.across(release, index), payment)

    def _aggregated(self, spec: Any, named: Mapping[str, Any], bounds: Any, payment: dict[str, Any]) -> Any:
        """The answer of `agg`."""
        form, wanted = spec_of(spec, named, list(self._selection.columns))
        outs = [self._selection.wanted(w.aggregate, w.column, bounds, w.label) for w in wanted]
        if form not in ("named", "list", "dict of lists"):
            return self._ask_for(outs, payment)
        places = [
            (w.label if form == "named" else w.aggregate, self._selection.named(w.column)[1]) for w in wanted
        ]
        return self._ask_for(outs, payment, grid(outs, places))

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
        """A column of what the cells of each row come to; groups have none, and ``axis=`` is refused."""
        return checked(payment)

    # Sums and moments -----------------------------------------------------------------------------------------

    @priced
    def count(
        self,
        column: Any = EVERY,
        **payment: Unpack[Payment],
    ) -> IntEstimate:
        """How many rows; of a column, how many non-null values, and so of each column of a list: ``p[["x", "y"]].count()``.

        Formal guarantee: epsilon-DP for its price; sensitivity 1 (docs/guarantees/statistics.md). The answer is
        a whole number, and may be negative when few rows meet much noise.

        >>> df = pd.DataFrame({"age": [30, 41, 55]})
        >>> p = df.dp.open(100)
        >>> type(p.count(epsilon=50)).__name__, p.count(epsilon=50) == 3
        ('IntEstimate', True)
        """
        if isinstance(column, float) and column not in self._selection.columns:
            raise BadType(f"count takes the name of a column. A price is a keyword: count(epsilon={column}).")
        if "axis" in payment and column is EVERY and sideways(payment):
            return cast(IntEstimate, self._across("count", payment))
        if column is EVERY and self._selection.listed:
            outs = [self._selection.output("count", name, None) for name in self._selection.columns]
            return cast(IntEstimate, self._ask_for(outs, payment))
        out = Output("rows", "size") if column is EVERY else self._selection.output("count", column, None)
        return cast(IntEstimate, self._ask_for([out], payment, single=True))

    @priced
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
        return self._measure("nunique", column, None, 1, payment)

    @priced
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

    @priced
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
        >>> print(round(p.mean("age", epsilon=900)))
        40
        """
        return self._measure("mean", column, bounds, 1, payment)

    @priced
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

    @priced
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

    @priced
    def sem(
        self,
        column: Any = EVERY,
        bounds: Any = None,
        *,
        ddof: int = 1,
        **payment: Unpack[Payment],
    ) -> Any:
        """The standard error of the mean of a column's clipped values; of every column if none is named.

        It tells how far the mean of such a sample is from that of all whom it stands for, and nothing of the noise: that is
        what the interval of `mean` is about. Where pandas has NaN, of no value or one, there is a number all the same, with a
        wide interval.

        Formal guarantee: epsilon-DP for its price; `std` over the root of the number of values, all from one release of
        three sums that share the sensitivity of one (docs/guarantees/variance.md).

        >>> df = pd.DataFrame({"age": [30, 41, 55, 78] * 25})
        >>> p = df.dp.open(1000, bounds={"age": (0, 100)})
        >>> print(round(p.sem("age", epsilon=900), 1), round(float(df["age"].sem()), 1))
        1.8 1.8
        """
        return self._measure("sem", column, bounds, ddof, payment)

    @priced
    def skew(self, column: Any = EVERY, bounds: Any = None, **payment: Unpack[Payment]) -> Any:
        """The skewness of a column's clipped values, with pandas' correction; of every column if none is named.

        Cubes need many values or narrow bounds: look at the interval. Where pandas has NaN, of equal values or fewer than
        three, there is a number all the same, with a wide interval.

        Formal guarantee: epsilon-DP for its price; one release of four sums that share the sensitivity of one
        (docs/guarantees/variance.md#skewness-cubes-beside-the-squares).

        >>> df = pd.DataFrame({"cost": [10, 20, 30, 90] * 250})
        >>> p = df.dp.open(1000, bounds={"cost": (0, 100)})
        >>> print(round(p.skew("cost", epsilon=900), 1), round(float(df["cost"].skew()), 1))
        1.0 1.0
        """
        return self._measure("skew", column, bounds, 1, payment)

    @priced
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
        if spec is None and not isinstance(
            outputs.get("func"), tuple
        ):  # a pair, and a pd.NamedAgg, is an output
            spec = outputs.pop("func", None)
        payment, named = split_words(outputs, bounds, self._single)
        return self._aggregated(spec, named, bounds, payment)

    aggregate = agg

    # Order ----------------------------------------------------------------------------------------------------

    @priced
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
        if isinstance(column, float | int | list | np.ndarray) and not self._is_column(column):
            # As pandas has it: levels first. What comes second then are bounds, as the other verbs take them there.
            column, q, bounds = EVERY, column, bounds if isinstance(q, float) and q == 0.5 else q
        levels = _levels(q, payment)
        how = how_for(len(levels.exact), method)
        return self._at(levels, column, bounds, resolution, payment, how)

    @priced
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
        return self._at(_levels(0.5, payment), column, bounds, resolution, payment)

    @priced
    def min(
        self,
        column: Any = EVERY,
        bounds: Any = None,
        *,
        q: Any = 0.01,
        resolution: float | None = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """A value near the least: the 1 % quantile, or that of another small ``q``.

        The least value itself is one person's, and no private answer can be near it whatever the data.

        Formal guarantee: epsilon-DP for its price; see `quantile`.
        """
        return self._extreme("min", column, q, bounds, resolution, payment)

    @priced
    def max(
        self,
        column: Any = EVERY,
        bounds: Any = None,
        *,
        q: Any = 0.99,
        resolution: float | None = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """A value near the greatest: the 99 % quantile, or that of another large ``q``.

        The greatest value itself is one person's, and no private answer can be near it whatever the data.

        Formal guarantee: epsilon-DP for its price; see `quantile`.
        """
        return self._extreme("max", column, q, bounds, resolution, payment)

    def _extreme(
        self, verb: str, column: Any, q: Any, bounds: Any, resolution: Any, payment: Mapping[str, Any]
    ) -> Any:
        if "axis" in payment and column is EVERY and sideways(payment):
            return self._across(verb, payment)
        return self._at(_levels(q, payment, one=True), column, bounds, resolution, payment)

    def _at(
        self, levels: Levels, column: Any, bounds: Any, resolution: Any, payment: Any, how: str = "quantile"
    ) -> Any:
        names, single = self._columns_for(column, "quantile", payment.get("numeric_only") is True)
        order = self._selection.order
        if not levels.several:
            outs = [order(name, levels.exact[0], bounds, resolution, how=how) for name in names]
            return self._ask_for(outs, payment, single=single, choices=True)
        many = [(name, *level) for name in names for level in zip(levels.typed, levels.exact, strict=True)]
        cells = [order(name, level, bounds, resolution, at, how) for name, at, level in many]
        if not single:
            return self._ask_for(cells, payment, grid(cells, [(at, name) for name, at, _ in many]))
        label = self._selection.named(names[0])[1]
        return self._ask_for(cells, payment, lambda r, index: _release.levels(r, index, levels.typed, label))


def _levels(q: Any, payment: Mapping[str, Any], one: bool = False) -> Levels:
    """``q=`` of a verb, whose other words are looked at first; of some verbs it is one level."""
    if "candidates" in payment:
        raise BadValue("quantiles take no candidates=: bounds= are enough, and resolution= says how fine.")
    checked(payment)
    levels = levels_of(q)
    if one and levels.several:
        raise BadType("q= is one number here. For several levels ask quantile.")
    return levels


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
    """The name of one of the aggregates that have a price, or ``also`` of others; or of a function that means one, such as
    ``np.mean``."""
    if isinstance(value, Hashable) and not isinstance(value, str):
        value = _FUNCTIONS.get(value, value)
    if not isinstance(value, str):
        raise BadType(
            "an aggregate is a name such as 'mean' or 'q90', or a list of names; not a function, which could see the data. "
            "What it makes of one row goes before, p.assign(y='x / 2').groupby('k')['y'].mean(), and several names into a list, "
            "p.groupby('k')['x'].agg(['min', 'max'])."
        )
    kind = AGGREGATES.get(value)
    if (kind is None or not kind.named_in_agg) and level_named(value) is None and value not in also:
        known = ", ".join((*named_in_agg(), *ORDERS, *also))
        raise BadValue(
            f"no private aggregate {value!r}{_INSTEAD.get(value, '.')} Those there are: {known}, and quantiles such as 'q90'."
        )
    return value


_INSTEAD: dict[str, str] = {
    **dict.fromkeys(("first", "last", "nth", "any", "idxmax", "idxmin"), ": it would be one person's value."),
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
    """What is asked, of the columns that are selected; ``single`` where that is one column and no list. ``also`` are aggregates
    that only groups have."""
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
            raise BadType("lists of aggregates and named outputs make different tables. Ask one of them.")
        pairs = [
            (c, n) for c, v in spec.items() for n in aggregate_names(v if isinstance(v, list) else [v], also)
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
    """The price words and the named outputs; of the words only ``n`` and ``name`` may be outputs, as pairs, or of a
    ``single`` column as names of aggregates."""
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
    """Whether it is a pair of numbers, or of durations as texts, and no output: a column and an aggregate."""
    if len(value) != 2 or not isinstance(value[1], str):
        return len(value) == 2
    return value[1] not in AGGREGATES and level_named(value[1]) is None and value[1][:1] in "-+0123456789"
