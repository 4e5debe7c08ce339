"""``answer.dp``: what a released Series or table, or what was made of some, knows of itself."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any, cast

import numpy as np
import pandas as pd

from dpframe import _pandas, _validate
from dpframe import plot as _plot
from dpframe._answers.answer import (
    ANSWER,
    column,
    laid_out,
    receipt_of,
    rows_of,
    seal_of,
    seals,
    table,
)
from dpframe._answers.arguments import explain_arguments
from dpframe._answers.counterparts import Kind, read_plan
from dpframe._answers.derived import Answered, Computed, Operators
from dpframe._answers.estimate import limits_of, only, title_of
from dpframe._answers.layout import Across, Column, Columns, Layout
from dpframe._answers.lineage import Kept, Released, deviations_of, ends_of, label_texts, reading
from dpframe._answers.population import Difference, about_of, check_apart, difference_of, ranks_of
from dpframe._answers.table import Shown, Tabled
from dpframe._answers.worth import contents, noise_in
from dpframe._errors import BadType, BadValue, NotOffered
from dpframe._ledger.store import unpack
from dpframe._plans.aggregates import AGGREGATES
from dpframe._plans.plan import Cost, Plan, has_only_choices, refuse_choices
from dpframe._plans.sampling import NOISE, About
from dpframe._plans.worth import Rule
from dpframe._questions.question import Release


class Answer(Operators, Tabled):
    """``answer.dp`` of a released Series or DataFrame, or of what was made of some: its interval,
    its plan, its cost."""

    def __init__(self, answer: pd.Series[Any] | pd.DataFrame, text: str):
        self._answer, self._text = answer, text
        self._taken: int | None = None  # of a table this column is left
        self._moved: Kept | None = None  # where the answer is no longer, or never was, as it came
        origin: Computed | Released | None = None
        with reading(text, "this answer") as receipt:
            if "derived" in receipt:
                origin = Computed(receipt, text)
            else:
                sealed, self._labelled = receipt["seal"], receipt["shape"] == Columns.shape
                self._layout: Layout
                self._layout, self._plan, self._raw, self._part = contents(receipt)
                if isinstance(answer, pd.Series) and self._labelled:
                    own = seals([answer.to_numpy()], [answer.name], answer.index)[0]
                    self._taken = next(
                        (i for i, one in enumerate(receipt.get("each", ())) if one == own), None
                    )
                if self._taken is None and sealed != seal_of(answer, self._labelled):
                    origin = Released(receipt, text)
        if origin is not None:
            self._moved = Kept(origin, answer)
            self._labelled, self._keys = isinstance(answer, pd.DataFrame), self._moved.keys
            self._layout = origin.layout if isinstance(origin, Released) else Columns()
            self._cells = self._moved.cells
            return
        self._order, self._keys = receipt.get("order"), receipt.get("skip", 0)
        alone = self._taken is not None and not self._layout.computed
        self._cells = (self._plan.cells[cast(int, self._taken)],) if alone else self._plan.cells

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the releases that it is made of: one, unless it was computed from
        several."""
        return (self._plan,) if self._moved is None else self._moved.origin.plans

    @property
    def plan(self) -> Plan:
        """What was asked, with which mechanism, scale and price; of the release that it is made of,
        if there is one."""
        return only(self.plans)

    @property
    def cost(self) -> Cost:
        """What this release guarantees by itself: ``epsilon`` and ``delta``. The ledger counts it
        by its accountant.

        Whatever was made of it adds nothing. Refused where it was computed from several releases.
        """
        return self.plan.cost

    @property
    def count(self) -> pd.Series[Any] | pd.DataFrame:
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
    def sum(self) -> pd.Series[Any] | pd.DataFrame:
        """The sum of the values behind each mean, read off the same release at no cost."""
        return self._read_behind("sum")

    def _read_behind(self, kind: Kind) -> pd.Series[Any] | pd.DataFrame:
        """Return the counts or sums behind the answer."""
        self._as_it_came(f".dp.{kind}")
        plan, places = read_plan(self._plan, kind, self._cells)
        raw, order, answer = self._raw, self._order, self._answer
        if order is not None:
            rows = unpack(order)[0][0]
            raw = tuple([part if part.shape[-1] != len(rows) else part[..., rows] for part in raw])
        release = Release(plan, raw, Rule(self._part))
        if isinstance(answer, pd.Series):
            if type(self._layout) is Across:
                return column(release, Across(), answer.index[places], answer.name)
            if len(self._cells) == 1 and not self._layout.computed:
                return column(release, Column(), answer.index, answer.name)
        elif type(self._layout) is Columns:
            return table(release, answer.index, [answer.columns[i] for i in places])
        elif len(places) == len(self._cells) and not self._keys:
            return laid_out(release, self._layout, answer.index, answer.columns)
        raise NotOffered(
            f"the {kind} behind this answer has no place in its shape. Ask the groups without as_index=False, or a table in "
            f"which each number has one: p.groupby('k')['x'].mean().dp.{kind}."
        )

    def interval(
        self, level: float = 0.95, at_once: bool = False, *, of: str = "noise", n: Any = None
    ) -> pd.DataFrame:
        """Columns ``lower`` and ``upper``, a row as the answer has them; for a table, under each
        column's name.

        Each interval covers the noise of its own number with probability ``level``; with
        ``at_once`` all of them do, together (docs/guarantees/accuracy.md#many-answers-at-once).
        With ``of="population"`` they cover what a sample says of a population too, as
        `Estimate.interval` has it: means, shares, counts and quantiles have such intervals, and
        others NaN beside them.

        Choices such as medians have none: NaN beside others. But several levels that were chosen in
        one release bound each other where the number of values is known: ``n``, a public number or
        a released count, of which the lower end is taken; of groups the smallest. A column that is
        taken from a table keeps its interval.
        """
        level = _validate.level(level)
        together = _validate.flag(at_once, "at_once")
        if of == "noise" and n is None:
            refuse_choices(self._cells)
            pairs = self._ends(level, together)
        else:
            pairs = self._about(level, together, of, n)
        index = self._answer.index
        if isinstance(self._answer, pd.DataFrame) and self._labelled:
            shown = self._answer.columns[self._keys :]
            parts = [
                pd.DataFrame({"lower": low, "upper": high}, index=index) for low, high in pairs
            ]
            return _pandas.concat(parts, axis=1, keys=list(shown))
        low, high = pairs[0]
        return pd.DataFrame({"lower": low, "upper": high}, index=index)

    def _about(self, level: float, at_once: bool, of: str, n: Any) -> list[Any]:
        """The ends of intervals that are about more than the noise, or of quantiles that were
        chosen together."""
        self._as_it_came("an interval with of= or n=")
        ranked = all(AGGREGATES[cell.aggregate].promise for cell in self._cells)
        by_level = ranked and self._layout.by_level
        chosen = self._answer.index.get_level_values(-1)[: len(self._cells)] if by_level else ()
        level, about = about_of(
            of, n, self._plan, self._raw, self._cells, level, chosen, self._layout.noun
        )
        if about.population and self._layout.joins:
            check_apart(self._plan)
        return self._ends(level, at_once, about)

    def _as_it_came(self, verb: str) -> None:
        if self._moved is not None:
            raise BadValue(
                f"{verb} reads an answer as it came, and this one was sorted, selected, rounded or computed. Ask the answer that "
                "was released, and change its intervals likewise."
            )

    @property
    def reliable(self) -> pd.Series[bool] | pd.DataFrame:
        """Which numbers are more than noise: booleans in the answer's own shape.

        A number is noise where half its 95 % interval is more than half of the number, or the
        interval is half of what is possible or more: the bounds of a mean, -1 to 1 of a
        correlation. What has bounds and is near zero is compared with a tenth of them instead of
        with itself; what was computed from answers is compared with itself alone. A choice, which
        has no interval, is noise only where it may be off by half of the values of its group, as
        the same release counts them. ``open(reliable=)`` takes another part than a half
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
        flags, answer = self._flags(), self._answer
        if isinstance(answer, pd.Series):
            return pd.Series(~flags[0], index=answer.index, name=answer.name)
        keys = [np.zeros(len(answer), dtype=bool)] * self._keys
        frame = pd.DataFrame(
            dict(enumerate([~flag for flag in (*keys, *flags)])), index=answer.index
        )
        frame.columns = answer.columns
        return frame

    def _flags(self) -> list[Any]:
        """Which numbers are noise, column by column."""
        if self._moved is None:
            values = self._layout.values(self._plan, self._raw)
            flags = noise_in(self._layout, self._plan, self._raw, self._part, values)
            return self._as_shown([self._ordered(flag) for flag in flags])
        return self._moved.flags(self._moved.origin.noise())

    def _ends(self, level: float, at_once: bool, about: About = NOISE) -> list[Any]:
        """The ends of the interval of each column of numbers."""
        if self._moved is not None:
            return self._moved.ends(level, at_once)
        size = self._answer.size - self._keys * len(self._answer)
        pairs = ends_of(self._plan, self._raw, self._layout, level, at_once, size, about)
        sides = ([self._ordered(pair[side]) for pair in pairs] for side in (0, 1))
        shown = (self._layout.zoned(self._plan, columns) for columns in sides)
        return self._as_shown(list(zip(*shown, strict=True)))

    def _ordered(self, column: Any) -> Any:
        moved = self._order is not None and isinstance(column, np.ndarray)
        return column[unpack(self._order)[0][0]] if moved else column

    def _as_shown(self, columns: list[Any]) -> list[Any]:
        return columns if self._taken is None else [columns[self._taken]]

    # What tables and operators need.

    def _shown(self, level: float, at_once: bool, of: str, n: Any) -> Shown:
        if self._moved is not None:
            deviations = self._moved.deviations()
        else:
            known = deviations_of(
                self._plan, self._raw, self._layout, len(self._layout.values(self._plan, self._raw))
            )
            deviations = self._as_shown([self._ordered(one) for one in known])
        measure = str(title_of(self._cells[0])) if len(self.plans) == 1 else "value"
        caption = "; ".join(f"{plan.question} ({plan._alone})" for plan in self.plans)
        plain = of == "noise" and n is None
        ends = self._ends(level, at_once) if plain else self._about(level, at_once, of, n)
        flags, note = self._flags(), limits_of(self.plans)
        return Shown(self._answer, ends, deviations, caption, measure, self._keys, flags, note, of)

    def _kept(self) -> Kept:
        if self._moved is not None:
            return self._moved
        return Kept(Released(json.loads(self._text), self._text), self._answer)

    def _marked(self, answer: Answered, receipt: dict[str, Any], keys: int) -> Answered:
        labels = None if isinstance(answer, pd.Series) else list(answer.columns)
        index: Any = answer.index
        if isinstance(answer, pd.DataFrame) and labels is not None and keys:
            index = pd.MultiIndex.from_arrays(
                [answer.iloc[:, i].array for i in range(keys)], names=labels[:keys]
            )
        text = json.dumps(
            {
                "version": 1,
                **receipt,
                "skip": keys,
                "names": [None if name is None else str(name) for name in index.names],
                "columns": None
                if labels is None
                else [label_texts(label) for label in labels[keys:]],
            },
            separators=(",", ":"),
        )
        answer.attrs[ANSWER] = f'{text[:-1]},"rows":{rows_of(index)}}}'
        return answer

    def _of(self, answer: Any) -> Answer | None:
        text = receipt_of(answer, ANSWER)
        return None if text is None else Answer(answer, text)

    def ranks(self, level: float = 0.95) -> float:
        """By how many ranks each quantile among these may miss with this level: so many values too
        many lie below it at most, and above it. How many values there are it does not depend on."""
        self._as_it_came("ranks()")
        return ranks_of(self._plan, self._cells, level)

    def difference(
        self, first: Hashable, second: Hashable, level: float = 0.95, of: str = "noise"
    ) -> Difference:
        """The first group's mean less the second's, or share, with its interval: ``estimate``,
        ``lower``, ``upper``.

        With ``of="population"`` it covers the sampling error of both groups, as `interval` has it:
        it is shorter than what the two intervals say, since both would have to fail at once
        (docs/guarantees/population.md#differences). The first and the second are labels of a
        Series.
        """
        self._as_it_came("difference()")
        if not isinstance(self._answer, pd.Series) or self._layout.computed or len(self._cells) > 1:
            raise BadType(
                "a difference is one of two rows of a Series: take a column, answer['cost'].dp.difference('a', 'b')."
            )
        labels = cast(Any, self._answer.index).get_indexer_for([first, second])
        if len(labels) != 2 or min(labels) < 0 or labels[0] == labels[1]:
            raise BadValue(
                "first and second are two labels of the answer's index, such as answer.index[0] and answer.index[1]."
            )
        rows = labels if self._order is None else unpack(self._order)[0][0][labels]
        places = int(rows[0]), int(rows[1])
        return difference_of(
            self._plan, self._raw, self._cells[0], places, _validate.level(level), of
        )

    def plot(
        self,
        kind: str | None = None,
        ax: Any = None,
        level: float = 0.95,
        at_once: bool = False,
        **kwargs: Any,
    ) -> Any:
        """The answer with its intervals, as pandas would plot it; takes and returns matplotlib
        axes.

        Bars with error bars for groups, bins to scale for a histogram, a line with a band for times
        and quantiles; or the ``kind`` asked for: ``"bar"``, ``"barh"``, ``"hist"`` or ``"line"``.
        Error bars are `interval` at ``level``, with ``at_once`` for all together; quantiles that
        were chosen have none. Numbers that are noise, as `reliable` says, are hollow: bars are
        hatched, on a line points are rings, and the legend says so. The columns of a table have
        axes each, which come as an array, with ``subplots=True``, or if some are counts and others
        means, say; ``subplots=False`` and ``ax=`` put them into one. ``y=`` names columns to draw.
        Other words go to pandas. It draws what was released and costs nothing.
        """
        if not isinstance(self._answer, pd.Series) and self._answer.shape[1] == 0:
            raise BadValue("this answer has no columns to draw.")
        if not len(self._answer):
            raise BadValue("this answer has no rows to draw.")
        if any(AGGREGATES[cell.aggregate].keyed for cell in self._cells):
            raise NotOffered(
                "the most common values are no numbers to draw. Counts are: p.groupby('k')['x'].value_counts().dp.plot()."
            )
        if any(cell.duration for cell in self._cells):
            raise NotOffered(
                "durations and times are drawn as numbers: ask .dt.total_seconds() / 3600 of the column, which are hours, or "
                "draw (answer / pd.Timedelta('1h')).plot(), without intervals."
            )
        level = _validate.level(level)
        name = self._answer.name if isinstance(self._answer, pd.Series) else None
        return _plot.picture(
            self._answer,
            None if has_only_choices(self._cells) else self.interval(level, at_once),
            ~self.reliable,
            kind=kind,
            ax=ax,
            levels=self._layout.by_level,
            keys=self._keys,
            title=str(title_of(self._cells[0]) if name is None else name),
            options=kwargs,
            apart=isinstance(self._answer, pd.DataFrame)
            and len({c.aggregate for c in self._cells}) > 1,
        )

    def __repr__(self) -> str:
        if len(self.plans) > 1:
            return (
                f"computed from {len(self.plans)} releases; .interval(), .table(), .plot(), .plans"
            )
        return (
            f"the answer to {self.plan.question}, epsilon {self.plan.epsilon:.4g}; .interval(), .table(), .plan, "
            ".plot(), .cost"
        )


explain_arguments(Answer)
