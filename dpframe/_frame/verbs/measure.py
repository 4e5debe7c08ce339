"""The verbs that measure columns, of frames and of groups alike: a frame is groups by nothing.

`MEASURES` is the table of them. The kinds of `Measurable` say which columns are meant if none is
named, and how the answer is laid out.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, cast

import pandas as pd

from dpframe import _validate
from dpframe._answers import answer as _release
from dpframe._answers.estimate import scalar
from dpframe._errors import BadType, UnknownColumn, unknown_column
from dpframe._expr import IsNull
from dpframe._frame.selection import Askable, BoundsLike, Finish, mode_of
from dpframe._frame.signatures import verb
from dpframe._frame.verbs.agg import read_spec
from dpframe._groups.keys import EVERY
from dpframe._plans.aggregates import AGGREGATES, Output
from dpframe._plans.price import Payment, check_payment
from dpframe._questions.question import ROWS, Query

if TYPE_CHECKING:
    from types import FunctionType


_ZERO_OF_FALSE: dict[str, float] = {"sum": 0, "mean": 0.0}  # of a condition that never holds


def _is_never_true(output: Output) -> bool:
    """Return whether an output is of a condition that no row meets, by the dtype of its column."""
    return isinstance(output.expr, IsNull) and not output.expr.x.nullable


def _answer_zero(aggregate: str, payment: Mapping[str, object]) -> float:
    """Return the public answer about a condition that never holds; a wrong price is refused."""
    epsilon = check_payment(payment).get("epsilon")
    if epsilon is not None:
        _validate.epsilon(epsilon)
    return _ZERO_OF_FALSE[aggregate]


class MeasureKeywords(Payment, total=False):
    """The keyword arguments of a verb that measures columns, beside its own."""

    numeric_only: bool
    axis: Any


class Measurable(Askable):
    """A tracked frame, or groups of one: it has columns that can be measured."""

    _single = False  # True if one column is selected. Its answers stand alone.

    # A frame is groups by nothing. Groups mean other columns if none is named, and lay answers out
    # by their keys.

    @property
    def _keyed(self) -> Sequence[Hashable]:
        """The columns that are keys. They are left out if all columns are measured."""
        return ()

    def _columns_for(
        self, column: object, aggregate: str, numeric_only: bool, verb: str | None = None
    ) -> tuple[Sequence[Any], bool]:
        """Return the columns that a verb measures, and whether the answer is of a single column.

        ``column`` is the one that was named, or EVERY. Of all columns, those that have no such
        ``aggregate`` are refused, or left out with ``numeric_only``. ``verb`` is what a user wrote,
        if that is not the aggregate.
        """
        if column is not EVERY:
            return (column,), True
        if numeric_only:
            return self._selection.numbers, False
        columns, entry = self._selection.columns, AGGREGATES[aggregate]
        kinds = {"number", "bool"}
        kinds |= {"duration"} if entry.of_durations else set()
        kinds |= {"time"} if entry.of_times else set()
        others = [
            name for name, e in columns.items() if e.kind not in kinds and name not in self._keyed
        ]
        if entry.needs_bounds and others:
            receiver, verb = "p.groupby(...)" if self._keyed else "p", verb or aggregate
            raise BadType(
                f"column {others[0]!r} is of kind {columns[others[0]].kind}: only numbers have a "
                f"{verb}. Name the columns, {receiver}[{self._two_numbers}].{verb}(), or take all "
                f"that are numbers: {verb}(numeric_only=True)."
            )
        return list(columns), False

    @property
    def _two_numbers(self) -> list[Hashable]:
        """Two columns of numbers for a message, or fewer; those with bounds come first."""
        selection = self._selection
        people = selection.schema.unit.people
        columns, bounds = selection.columns, selection.schema.bounds
        numbers = [n for n in selection.numbers if columns[n] not in people]
        numbers.sort(key=lambda n: (columns[n].kind == "bool", columns[n].bounds(bounds) is None))
        return numbers[:2] or ["x", "y"]

    def _is_column(self, name: object) -> bool:
        return isinstance(name, Hashable) and name in self._selection.columns

    def _ask_for(
        self,
        outputs: Sequence[Output],
        payment: Mapping[str, object],
        layout: Finish | None = None,
        single: bool = False,
        choices: bool = False,
    ) -> Any:
        """Ask a question with these outputs, and return its answer.

        ``layout`` makes the answer from the release. Without it a ``single`` output is a number,
        and several are a Series. ``choices`` makes a difference to groups alone.
        """
        query = Query(tuple(outputs), self._selection.where)
        if layout is not None:
            return self._ask(query, lambda release: layout(release, None), payment)
        if single:
            return self._ask(query, scalar, payment)
        index = pd.Index([out.name for out in outputs], tupleize_cols=False)
        return self._ask(query, lambda release: _release.across(release, index), payment)

    def _aggregate(
        self, spec: object, named: Mapping[str, object], bounds: BoundsLike, payment: dict[str, Any]
    ) -> Any:
        """Ask for the aggregates that `agg` was given, in one release.

        ``spec`` and ``named`` are the arguments of `agg`, and ``payment`` are those of its price.
        """
        form, wanted = read_spec(spec, named, list(self._selection.columns))
        outs = [self._selection.make_output(w.aggregate, w.column, bounds, w.label) for w in wanted]
        if form not in ("named", "list", "dict of lists"):
            return self._ask_for(outs, payment)
        places = [
            (w.label if form == "named" else w.aggregate, self._selection.find_column(w.column)[1])
            for w in wanted
        ]
        return self._ask_for(outs, payment, _release.grid(outs, places))

    def _measure(
        self,
        aggregate: str,
        column: object,
        bounds: BoundsLike,
        ddof: int,
        payment: Mapping[str, object],
    ) -> Any:
        """Ask for an aggregate of one column, or of every column if none is named.

        ``aggregate`` is its name, such as "mean". ``ddof`` is that of a variance. ``payment`` are
        the arguments of the price.
        """
        if isinstance(column, int | float) and column not in self._selection.columns:
            message = unknown_column(column, self._selection.columns)
            raise UnknownColumn(
                f"{message} {aggregate} takes a column and bounds by position. All other arguments "
                "are keywords, such as epsilon=0.1."
            )
        if "axis" in payment and bounds is None and is_across(column, payment):
            return self._across(aggregate, payment)
        if column is not EVERY and column is not None:
            out = self._selection.output(aggregate, column, bounds, ddof=ddof)
            counts_nulls = isinstance(out.expr, IsNull) and aggregate in _ZERO_OF_FALSE
            if counts_nulls and self._are_public([out]):
                return _answer_zero(aggregate, payment)
            return self._ask_for([out], payment, single=True)
        names, single = self._columns_for(column, aggregate, payment.get("numeric_only") is True)
        outs = [self._selection.output(aggregate, name, bounds, ddof=ddof) for name in names]
        if (
            aggregate in _ZERO_OF_FALSE
            and not self._selection.by
            and any(map(_is_never_true, outs))
        ):
            return self._ask_beside_zeros(aggregate, outs, payment)
        return self._ask_for(outs, payment, single=single)

    def _are_public(self, outputs: Sequence[Output]) -> bool:
        """Return whether the answer follows from dtypes: nulls of columns that have none.

        A plan and a place in a batch are still those of a question.
        """
        mode = mode_of(self)
        plain = not (self._selection.by or mode.shows or mode.answers_later)
        return plain and all(map(_is_never_true, outputs))

    def _ask_beside_zeros(
        self, aggregate: str, outputs: Sequence[Output], payment: Mapping[str, object]
    ) -> Any:
        """Ask for the outputs that may be something else than 0, and put zeros beside them.

        So the null cells of columns that have none are free.
        """
        index = pd.Index([out.name for out in outputs], tupleize_cols=False)
        if self._are_public(outputs):
            return pd.Series(_answer_zero(aggregate, payment), index=index)
        asked = [out for out in outputs if not _is_never_true(out)] or list(outputs)
        places = [asked.index(out) if out in asked else -1 for out in outputs]
        return self._ask_for(
            asked, payment, lambda release, _: _release.across_with_zeros(release, places, index)
        )

    def _across(self, aggregate: str, payment: Mapping[str, object]) -> Any:
        """Return the column of what the cells of each row come to. Groups refuse ``axis=``."""
        return check_payment(payment)


def is_across(column: object, payment: Mapping[str, object]) -> bool:
    """Return whether pandas' ``axis=`` puts the columns of one row together."""
    return column is EVERY and _validate.among(payment["axis"], (1, "columns"))


# The table --------------------------------------------------------------------------------------


class MeasureVerb(NamedTuple):
    """The verb of an aggregate, by its docstrings and the kind of its answers."""

    # "whole" for a whole number, "number" for any, "value" if it is whole where the column is.
    answer: str
    frame: str  # the docstring for frames
    groups: str  # the docstring for groups


MEASURES: dict[str, MeasureVerb] = {
    "nunique": MeasureVerb(
        "whole",
        """Count the distinct non-null values of a column, or of every column if none is named.

        Of the column that ``unit=`` names, this counts people. In a session with ``unit=`` a person
        adds at most ``max_groups`` values, chosen by a keyed hash of their own. A value that only
        people with more values have may therefore be missing. Equal cells are one value: 0.0 and
        -0.0, 1 and 1.0, a category and its text. All cells that are not plain scalars are one value
        together.

        Formal guarantee: epsilon-DP for its price; sensitivity 1, or ``max_groups`` with ``unit=``,
        for both relations (docs/guarantees/statistics.md). Which values there are stays private.

        >>> df = pd.DataFrame({"id": [1, 1, 2], "town": ["Rome", "Pisa", "Rome"]})
        >>> p = df.dp.open(1000, unit="id", max_groups=2)
        >>> p.nunique("id", epsilon=300) == 2, p.nunique("town", epsilon=300) == 2
        (True, True)
        """,
        """Count the distinct non-null values of the column in each group.

        Of the column of ``unit=``, this counts people. In a session with ``unit=`` a person adds at
        most ``max_groups`` pairs of a group and a value, in all groups together; or is counted in
        at most ``max_groups`` groups. See `PrivateFrame.nunique`.
        """,
    ),
    "sum": MeasureVerb(
        "value",
        """Add up a column's values, each clipped to its bounds; of every column if none is named.

        Formal guarantee: epsilon-DP for its price; sensitivity max(abs(lower), abs(upper)), or
        upper - lower where rows are replaced and always count (docs/guarantees/statistics.md).
        Nulls count for nothing.

        >>> df = pd.DataFrame({"visits": [1, 2, 30]})
        >>> p = df.dp.open(1000)
        >>> p.sum("visits", bounds=(0, 10), epsilon=900) == 13
        True
        """,
        "Add up the clipped values of each group; see `PrivateFrame.sum`.",
    ),
    "mean": MeasureVerb(
        "number",
        """Take the mean of a column's clipped values; of every column if none is named.

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
        """,
        """Take the mean of the clipped values of each group; see `PrivateFrame.mean`.

        An empty group also has a mean within the bounds. Its interval is wide.

        >>> df = pd.DataFrame({"state": ["CA", "NY", "CA"], "age": [30.0, 41.0, 50.0]})
        >>> p = df.dp.open(1e3, bounds={"age": (0, 110)}, keys={"state": ["NY", "CA"]})
        >>> p.groupby("state").mean("age", epsilon=900).round()
        state
        NY    41.0
        CA    40.0
        Name: age, dtype: float64
        """,
    ),
    "var": MeasureVerb(
        "number",
        """Take the variance of a column's clipped values; of every column if none is named.

        One release of three sums that share the sensitivity of one (docs/guarantees/variance.md).

        Formal guarantee: epsilon-DP for its price.
        """,
        "Take the variance of the clipped values of each group; see `PrivateFrame.var`.",
    ),
    "std": MeasureVerb(
        "number",
        """Take the standard deviation of a column's clipped values; of every column if none is named.

        Formal guarantee: epsilon-DP for its price; the root of `var`, which is post-processing.
        """,
        "Take the standard deviation of the clipped values of each group; see `PrivateFrame.std`.",
    ),
    "sem": MeasureVerb(
        "number",
        """Take the standard error of the mean of a column's clipped values; of every column if none
        is named.

        It is the sampling error: how far the mean of such a sample is from that of the population.
        It says nothing of the noise; the interval of `mean` does. Of no value or one, where pandas
        has NaN, the answer is a number with a wide interval.

        Formal guarantee: epsilon-DP for its price; `std` over the root of the number of values, all
        from one release of three sums that share the sensitivity of one
        (docs/guarantees/variance.md).

        >>> df = pd.DataFrame({"age": [30, 41, 55, 78] * 25})
        >>> p = df.dp.open(1000, bounds={"age": (0, 100)})
        >>> print(round(p.sem("age", epsilon=900), 1), round(float(df["age"].sem()), 1))
        1.8 1.8
        """,
        """Take the standard error of the mean of the clipped values of each group.

        See `PrivateFrame.sem`. Of an empty group, or of one value, where pandas has NaN, the answer
        is a number with a wide interval.
        """,
    ),
    "skew": MeasureVerb(
        "number",
        """Take the skewness of a column's clipped values, with pandas' correction; of every column
        if none is named.

        Cubes need many values or narrow bounds: look at the interval. Of equal values or fewer than
        three, where pandas has NaN, the answer is a number with a wide interval.

        Formal guarantee: epsilon-DP for its price; one release of four sums that share the
        sensitivity of one (docs/guarantees/variance.md#skewness-cubes-beside-the-squares).

        >>> df = pd.DataFrame({"cost": [10, 20, 30, 90] * 250})
        >>> p = df.dp.open(1000, bounds={"cost": (0, 100)})
        >>> print(round(p.skew("cost", epsilon=900), 1), round(float(df["cost"].skew()), 1))
        1.0 1.0
        """,
        "Take the skewness of the clipped values of each group; see `PrivateFrame.skew`.",
    ),
}


def measure_verb(name: str) -> FunctionType:
    """Return the method that asks for an aggregate, such as ``mean``.

    It takes ``bounds`` and ``ddof`` only if the aggregate needs them.
    """
    entry = AGGREGATES[name]
    function: object

    if entry.takes_ddof:

        def function(
            self: Measurable,
            column: object = EVERY,
            bounds: BoundsLike = None,
            *,
            ddof: int = 1,
            **payment: Unpack[MeasureKeywords],
        ) -> Any:
            """Ask for this aggregate of a column, or of every column.

            Values are clipped to ``bounds``, and ``ddof`` is subtracted from the number of values.
            The other keyword arguments are those of the price.
            """
            return self._measure(name, column, bounds, ddof, payment)

    elif entry.needs_bounds:

        def function(
            self: Measurable,
            column: object = EVERY,
            bounds: BoundsLike = None,
            **payment: Unpack[MeasureKeywords],
        ) -> Any:
            """Ask for this aggregate of a column, or of every column.

            Values are clipped to ``bounds``. The other keyword arguments are those of the price.
            """
            return self._measure(name, column, bounds, 1, payment)

    else:

        def function(
            self: Measurable, column: object = EVERY, **payment: Unpack[MeasureKeywords]
        ) -> Any:
            return self._measure(name, column, None, 1, payment)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = MEASURES[name].frame
    return cast("FunctionType", verb(function))


@verb
def count(self: Measurable, column: object = EVERY, **payment: Unpack[MeasureKeywords]) -> Any:
    """Count the rows; of a column, or of each column of a list, count the non-null values.

    Formal guarantee: epsilon-DP for its price; sensitivity 1 (docs/guarantees/statistics.md). The
    answer is a whole number, and may be negative when few rows meet much noise.

    >>> df = pd.DataFrame({"age": [30, 41, 55]})
    >>> p = df.dp.open(100)
    >>> type(p.count(epsilon=50)).__name__, p.count(epsilon=50) == 3
    ('IntEstimate', True)
    """
    if isinstance(column, float) and column not in self._selection.columns:
        raise BadType(
            f"count takes the name of a column. A price is a keyword: count(epsilon={column})."
        )
    if "axis" in payment and is_across(column, payment):
        return self._across("count", payment)
    if column is EVERY and self._selection.listed:
        outs = [self._selection.output("count", name, None) for name in self._selection.columns]
        return self._ask_for(outs, payment)
    out = ROWS if column is EVERY else self._selection.output("count", column, None)
    return self._ask_for([out], payment, single=True)


def ask_outputs(
    asking: Any,
    outputs: Sequence[Output],
    payment: Mapping[str, Any],
    layout: Finish | None = None,
    **how: Any,
) -> Any:
    """Ask a frame or its groups a question with these outputs, and return the answer.

    ``payment`` are the arguments of the price. ``layout`` makes the answer from the release;
    without it the outputs are a number, a Series or a table. ``how`` are the other arguments of
    `_ask_for`.
    """
    return asking._ask_for(outputs, payment, layout, **how)
