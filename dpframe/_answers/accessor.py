"""``answer.dp``: the plan, the intervals and the cost of a released Series or table."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from dpframe import _pandas, _validate
from dpframe import plot as _plot
from dpframe._answers.answer import column, make_table, table
from dpframe._answers.arguments import explain_arguments
from dpframe._answers.arithmetic import RELEASED
from dpframe._answers.computed import ComputedTable, UnchangedAnswer, match_answer, read_answer
from dpframe._answers.counterparts import ReadingKind, read_plan
from dpframe._answers.estimate import describe_plans, get_only_plan, list_limits, make_title
from dpframe._answers.layout import OutputColumns, OutputRows, OutputSeries
from dpframe._answers.matching import CHANGED, MatchedAnswer
from dpframe._answers.population import (
    ERRORS,
    GroupDifference,
    check_coverage,
    compute_difference,
    find_rank_error,
    refuse_shared_groups,
)
from dpframe._answers.receipts import LINE, get_receipt
from dpframe._answers.selection import AnswerSelection
from dpframe._answers.table import ShownAnswer, Tabular
from dpframe._answers.table_verbs import TableVerbs
from dpframe._errors import BadType, BadValue, NotOffered
from dpframe._plans.aggregates import AGGREGATES
from dpframe._plans.plan import Cost, Plan, has_no_intervals, refuse_choices
from dpframe._plans.worth import NoiseRule
from dpframe._questions.question import Release
from dpframe._types import Ends, PandasAnswer

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Answer(AnswerSelection, TableVerbs, Tabular):
    """``answer.dp`` of a released Series or DataFrame, or of one that was made of answers."""

    def __init__(self, answer: PandasAnswer, text: str):
        """Read the receipt ``text`` of an answer; refuse an answer with changed numbers."""
        self._answer, self._text = answer, text
        try:
            self._numbers = read_answer(answer, text)
        except BadValue as reason:
            line = get_receipt(answer, LINE)
            if line is None or reason.args != (CHANGED,):
                raise
            raise BadValue(
                "pandas computed this from an answer, and does not know whether the other operand "
                f"has noise: write {line}, which keeps intervals."
            ) from None

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the releases that it is made of: one, unless it was computed from
        several."""
        return self._numbers.plans

    @property
    def plan(self) -> Plan:
        """The question, with its mechanism, scale and price; refused if there are several."""
        return get_only_plan(self.plans)

    @property
    def cost(self) -> Cost:
        """The guarantee of this release by itself: ``epsilon`` and ``delta``.

        The ledger counts it by its accountant. Whatever is made of the answer adds nothing. It is
        refused if the answer was computed from several releases.
        """
        return self.plan.cost

    @property
    def count(self) -> PandasAnswer:
        """The number of values behind each mean, variance or sum of moments, read off the same
        release at no cost.

        >>> df = pd.DataFrame({"age": [30.0, 41.0] * 500, "state": ["CA", "NY"] * 500})
        >>> p = df.dp.open(100, bounds={"age": (0, 110)}, keys={"state": ["CA", "NY"]})
        >>> ages = p.groupby("state")["age"].mean(epsilon=50)
        >>> ages.dp.count.to_dict(), p.budget.spent
        ({'CA': 500, 'NY': 500}, 50.0)
        """
        return self._read_behind("count")

    @property
    def total(self) -> PandasAnswer:
        """The sum of the values behind each mean, read off the same release at no cost."""
        return self._read_behind("sum")

    def _read_behind(self, kind: ReadingKind) -> PandasAnswer:
        """Return the number of values, or their sum, behind each number of the answer.

        They are read off the integers of the same release, so they are free. Refuse an answer in
        which they have no place.
        """
        verb = "total" if kind == "sum" else kind
        numbers, answer = self._get_unchanged_answer(f".dp.{verb}"), self._answer
        released, cells = numbers.released, numbers.cells
        plan, places = read_plan(released.plan, kind, cells)
        raw, order, layout = released.raw, released.order, released.layout
        if order is not None:
            raw = tuple([p if p.shape[-1] != len(order) else p[..., order] for p in raw])
        release = Release(plan, raw, NoiseRule(released.part))
        if isinstance(answer, pd.Series):
            if type(layout) is OutputRows:
                return column(release, OutputRows(), answer.index[places], answer.name)
            if len(cells) == 1 and not layout.computed:
                return column(release, OutputSeries(), answer.index, answer.name)
        elif type(layout) is OutputColumns:
            return table(release, answer.index, [answer.columns[i] for i in places])
        elif len(places) == len(cells) and not numbers.keys:
            return make_table(release, layout, answer.index, answer.columns)
        raise NotOffered(
            f"the {kind} behind this answer has no place in its shape. Ask the groups without "
            "as_index=False, or a table in which each number has one: "
            f"p.groupby('k')['x'].mean().dp.{verb}."
        )

    def interval(
        self, level: float = 0.95, at_once: bool = False, *, of: str = "noise", n: object = None
    ) -> pd.DataFrame:
        """Return columns ``lower`` and ``upper``, with the rows of the answer.

        A table has them under the name of each of its columns. Each interval covers the noise of
        its own number with probability ``level``. With ``at_once`` all of them do, together
        (docs/guarantees/accuracy.md#many-answers-at-once). With ``of="population"`` they cover what
        a sample says of a population too, as `Estimate.interval` has it. Means, shares, counts and
        quantiles have such intervals, and others NaN.

        Those of chosen quantiles are read off the counts around them. Several levels that were
        chosen in one release also bound each other where the number of values is known. Give ``n``,
        a public number or a released count, whose lower end is taken; for groups give the smallest.
        A column that is taken from a table keeps its interval.
        """
        level = _validate.level(level)
        pairs = self._find_ends(level, _validate.flag(at_once, "at_once"), of, n)
        answer, numbers = self._answer, self._numbers
        columns = pd.Index(["lower", "upper"], name=ERRORS[of])
        parts = [
            pd.DataFrame(dict(zip(columns, ends, strict=True)), index=answer.index).set_axis(
                columns, axis=1
            )
            for ends in pairs
        ]
        if isinstance(answer, pd.DataFrame) and numbers.labelled:
            return _pandas.concat(parts, axis=1, keys=list(answer.columns[numbers.keys :]))
        return parts[0]

    def _find_ends(self, level: float, at_once: bool, of: str, n: object) -> list[Ends]:
        """Return the ends of the intervals of each column of numbers.

        The arguments are those of `interval`. Intervals with ``of=`` or ``n=`` need the answer as
        it was released.
        """
        numbers = self._numbers
        if of == "noise" and n is None:
            refuse_choices(numbers.cells)
            return numbers.ends(level, at_once)
        numbers = self._get_unchanged_answer("an interval with of= or n=")
        released, cells = numbers.released, numbers.cells
        layout = released.layout
        chosen = all(AGGREGATES[cell.aggregate].rank_error_text for cell in cells)
        quantiles = (
            self._answer.index.get_level_values(-1)[: len(cells)]
            if chosen and layout.by_level
            else ()
        )
        level, about = check_coverage(
            of, n, released.plan, released.raw, cells, level, quantiles, layout.noun
        )
        if about.population and layout.joins:
            refuse_shared_groups(released.plan)
        return numbers.ends(level, at_once, about)

    def _get_unchanged_answer(self, verb: str) -> UnchangedAnswer:
        """Return the numbers of an answer that is still as it was released; refuse another.

        ``verb`` is named in the message.
        """
        if isinstance(self._numbers, UnchangedAnswer):
            return self._numbers
        raise BadValue(
            f"{verb} reads an answer as it was released, and this one was sorted, selected or "
            "computed. Ask the answer that was released, and change its intervals likewise."
        )

    @property
    def reliable(self) -> pd.Series[bool] | pd.DataFrame:
        """Flags that tell which numbers are more than noise, in the answer's own shape.

        A number is noise where half its 95 % interval is more than half of the number. It is noise
        too where the interval is half of what is possible or more: the bounds of a mean, -1 to 1
        for a correlation. A number with bounds that is near zero is compared with a tenth of them,
        or with a hundredth where they have one sign.
        A number that was computed from answers is compared with itself alone. A quantile that was
        chosen is noise too where it may be off by half of the values of its group, as the same
        release counts them. ``open(reliable=)`` takes another part than a half
        (docs/guarantees/intervals.md#noise-is-flagged).

        >>> df = pd.DataFrame({"age": [30.0, 41.0] * 500, "state": ["CA"] * 1000})
        >>> p = df.dp.open(10, bounds={"age": (0, 110)}, keys={"state": ["CA", "NY"]}, show="nan")
        >>> ages = p.groupby("state")["age"].mean(epsilon=5)
        >>> ages.dp.reliable
        state
        CA     True
        NY    False
        Name: age, dtype: bool
        >>> ages.isna().tolist()
        [False, True]
        """
        noise, answer = self._numbers.noise, self._answer
        if isinstance(answer, pd.Series):
            return pd.Series(~noise[0], index=answer.index, name=answer.name)
        keys = [np.zeros(len(answer), dtype=bool)] * self._numbers.keys
        flags = dict(enumerate([~flag for flag in (*keys, *noise)]))
        frame = pd.DataFrame(flags, index=answer.index)
        frame.columns = answer.columns
        return frame

    def _show(self, level: float, at_once: bool, of: str, n: object) -> ShownAnswer:
        """Return the content of the table that `table` makes of the answer.

        The arguments are those of `interval`. Chosen values have NaN for ends.
        """
        numbers = self._numbers
        plain = of == "noise" and n is None
        return ShownAnswer(
            self._answer,
            numbers.ends(level, at_once) if plain else self._find_ends(level, at_once, of, n),
            numbers.deviations(),
            describe_plans(self.plans),
            str(make_title(numbers.cells[0])) if len(self.plans) == 1 else "value",
            numbers.keys,
            numbers.noise,
            list_limits(self.plans),
            of,
        )

    @property
    def rule(self) -> str:
        """The rule that the intervals follow, in words; of several columns each rule once."""
        source = self._numbers.source if isinstance(self._numbers, MatchedAnswer) else None
        return "; ".join(source.rules) if isinstance(source, ComputedTable) else RELEASED

    @property
    def _pandas(self) -> PandasAnswer:
        return self._answer

    def _match(self) -> MatchedAnswer:
        """Return which released number each cell is."""
        if isinstance(self._numbers, MatchedAnswer):
            return self._numbers
        return match_answer(self._answer, self._text)

    def ranks(self, level: float = 0.95) -> float:
        """Return by how many ranks each quantile among these may miss with this level.

        At most this number of values too many lie below it, and above it. It does not depend on the
        number of values.
        """
        numbers = self._get_unchanged_answer("ranks()")
        return find_rank_error(numbers.released.plan, numbers.cells, level)

    def difference(
        self, first: Hashable, second: Hashable, level: float = 0.95, of: str = "noise"
    ) -> GroupDifference:
        """Return the difference of two groups' means or shares, the first less the second, with its
        interval.

        ``level`` is the confidence of the interval.

        The result has ``estimate``, ``lower`` and ``upper``, and says which error the interval
        covers: the noise alone unless ``of`` says otherwise. That is no test. The first and the second are labels of
        a Series. With ``of="population"`` it covers the sampling error of both groups, as
        `interval` has it. It is shorter than what the two intervals say, since both would have to
        fail at once (docs/guarantees/population.md#differences).
        """
        numbers = self._get_unchanged_answer("difference()")
        released, cells, index = numbers.released, numbers.cells, self._answer.index
        if not isinstance(self._answer, pd.Series) or released.layout.computed or len(cells) > 1:
            raise BadType(
                "difference compares two rows of a Series: take a column, "
                "answer['cost'].dp.difference('a', 'b')."
            )
        rows = cast(Any, index).get_indexer_for([first, second])
        if len(rows) != 2 or min(rows) < 0 or rows[0] == rows[1]:
            raise BadValue(
                "first and second are two labels of the answer's index, such as answer.index[0] "
                "and answer.index[1]."
            )
        if released.order is not None:
            rows = released.order[rows]
        places = int(rows[0]), int(rows[1])
        return compute_difference(
            released.plan, released.raw, cells[0], places, _validate.level(level), of
        )

    def plot(
        self,
        kind: str | None = None,
        ax: Axes | None = None,
        level: float = 0.95,
        at_once: bool = False,
        **kwargs: object,
    ) -> Any:
        """Draw the answer with its intervals, as pandas would; take and return matplotlib axes.

        Groups are bars with error bars, a histogram has bins to scale, and times and quantiles are
        a line with a band; or the ``kind`` asked for: ``"bar"``, ``"barh"``, ``"hist"`` or
        ``"line"``. Error bars are `interval` at ``level``, with ``at_once`` for all together.
        Numbers that are noise, as `reliable` says,
        are hollow: bars are hatched, on a line points are rings, and the legend says so. What limits
        and clips have left out stands above. The
        columns of a table have axes each, which come as an array, with ``subplots=True``, or if
        some are counts and others means, say; ``subplots=False`` and ``ax=`` put them into one.
        ``y=`` names columns to draw. Other words go to pandas. It draws what was released and costs
        nothing.
        """
        answer, numbers = self._answer, self._numbers
        cells = numbers.cells
        if isinstance(answer, pd.DataFrame) and answer.shape[1] == 0:
            raise BadValue("this answer has no columns to draw.")
        if not len(answer):
            raise BadValue("this answer has no rows to draw.")
        if any(AGGREGATES[cell.aggregate].keyed for cell in cells):
            raise NotOffered(
                "the most common values are not numbers to draw. Counts are: "
                "p.groupby('k')['x'].value_counts().dp.plot()."
            )
        if any(cell.duration for cell in cells):
            raise NotOffered(
                "durations and times are drawn as numbers: ask .dt.total_seconds() / 3600 of the "
                "column, which are hours, or draw (answer / pd.Timedelta('1h')).plot(), without "
                "intervals."
            )
        level = _validate.level(level)
        together = _validate.flag(at_once, "at_once")
        name = answer.name if isinstance(answer, pd.Series) else None
        ends = [] if has_no_intervals(cells) else numbers.ends(level, together)
        drawn = _plot.draw_answer(
            answer,
            _plot.Marks.stack(ends, numbers.noise),
            kind=kind,
            ax=ax,
            quantiles=numbers.by_level,
            keys=numbers.keys,
            title=self._find_title(name),
            options=kwargs,
            apart=isinstance(answer, pd.DataFrame) and len({c.aggregate for c in cells}) > 1,
        )
        _plot.add_caption(drawn, list_limits(self.plans))
        return drawn

    def _find_title(self, name: Hashable) -> str:
        """Return what an axis with the numbers is called: their name, or what was released.

        ``name`` is that of a Series. Computed numbers without a name have none.
        """
        if name is not None:
            return str(name)
        computed = isinstance(getattr(self._numbers, "source", None), ComputedTable)
        return "" if computed else str(make_title(self._numbers.cells[0]))

    def __repr__(self) -> str:
        """Show what was asked, its price, and the methods that explain the answer."""
        if len(self.plans) > 1:
            return (
                f"computed from {len(self.plans)} releases; .interval(), .table(), .plot(), .plans"
            )
        return (
            f"the answer to {self.plan.question}, epsilon {self.plan.epsilon:.4g}; .interval(), "
            ".table(), .plan, .plot(), .cost"
        )


explain_arguments(Answer)
