"""Answers: numbers and pandas objects that know their plan, their interval and their receipt.

A grouped answer is a plain Series or DataFrame. Its receipt is one JSON text in ``attrs``, with the plan, the noisy integers and
where each number stands (`dpframe._answers.layout`). The seal of a receipt is a digest of values, dtypes and labels: after any
change of those the receipt no longer describes the answer, and is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NoReturn, cast

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe import plot as _plot
from dpframe._answers.layout import Across, Column, Columns, Correlations, Layout, Levels, Pivot, layout_from
from dpframe._answers.population import Difference, about_of, check_apart, difference_of, ranks_of
from dpframe._errors import BadType, BadValue
from dpframe._ledger.store import pack, receipt_text, unpack
from dpframe._plans.aggregates import AGGREGATES
from dpframe._plans.plan import Cost, Plan, all_choices
from dpframe._plans.price import own_errors
from dpframe._questions.question import Release, interval_of, numbers

# Numbers -----------------------------------------------------------------------------------------------------


class Estimate:
    """What `IntEstimate` and `FloatEstimate` share: a released number, its plan and its interval.

    Arithmetic gives plain numbers: ``answer / 1000`` is a float that has no interval any more. So does what writes it down,
    ``str``, ``format``, ``print``, csv and JSON; its ``repr`` alone shows how wide its interval is.
    """

    _plan: Plan
    _raw: tuple[Any, ...]

    @property
    def plan(self) -> Plan:
        """What was asked, with which mechanism, scale and price."""
        return self._plan

    @property
    def cost(self) -> Cost:
        """What this release guarantees by itself: ``epsilon`` and ``delta``. The ledger counts it by its accountant."""
        return self._plan.cost

    def interval(self, level: float = 0.95, of: str = "noise", n: Any = None) -> tuple[float, float]:
        """Where the answer without noise lies with probability ``level``.

        It covers the noise: not the clipping to the bounds, and not what a sample says about a population. With
        ``of="population"`` it covers that too: where the mean, share, number or quantile of those lies whom the people of the
        table were drawn from, independently and alike (docs/guarantees/population.md); a number is that to expect in such a
        table. For ``n`` see `Answer.interval`.
        """
        cells = self._plan.cells[:1]
        level, about = about_of(of, n, self._plan, self._raw, cells, _validate.level(level))
        low, high = interval_of(self._plan, self._raw, 0, level, about)
        return float(low[0]) + 0.0, float(high[0]) + 0.0  # no negative zero

    def ranks(self, level: float = 0.95) -> float:
        """By how many ranks a quantile may miss with this level: so many values too many lie below it at most, and above it."""
        return ranks_of(self._plan, self._plan.cells[:1], level)

    @property
    def dp(self) -> Estimate:
        """The number itself, so that ``answer.dp.interval()`` reads the same for numbers and for tables."""
        return self

    def plot(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: one number is no picture."""
        raise BadType(
            "one number is no picture: print it, or its .interval(). Series and DataFrames have .dp.plot()."
        )

    def __repr__(self) -> str:
        if self._plan.selects:
            return f"{float(cast(Any, self)):.12g}"
        low, high = self.interval()
        value, half = float(cast(Any, self)), (high - low) / 2
        if max(abs(value), half) >= 1e15:
            return f"{value:.6g} ± {half:.3g}"
        # Two digits of the half-width, and as many of the value; whole numbers stay whole.
        fine = half > 0 and not self._plan.cells[0].whole
        digits = max(0, 1 - math.floor(math.log10(half))) if fine else 0
        return f"{value:.{digits}f} ± {half:.{digits}f}"

    def _repr_html_(self) -> str:
        if self._plan.selects:
            return f"<b>{self!r}</b> <small>chosen; {self._plan._alone}</small>"
        low, high = self.interval()
        return f"<b>{self!r}</b> <small>95 % interval {low:.6g} to {high:.6g}; {self._plan._alone}</small>"


class IntEstimate(Estimate, int):
    """A whole number that was released. It may be negative: noise is as likely below as above."""

    __str__ = int.__repr__

    def __new__(cls, value: int, plan: Plan, raw: tuple[Any, ...]) -> IntEstimate:
        self = int.__new__(cls, value)
        self._plan, self._raw = plan, raw
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return IntEstimate, (int(self), self._plan, self._raw)


class FloatEstimate(Estimate, float):
    """A number that was released."""

    __str__ = float.__repr__

    def __new__(cls, value: float, plan: Plan, raw: tuple[Any, ...]) -> FloatEstimate:
        self = float.__new__(cls, value)
        self._plan, self._raw = plan, raw
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FloatEstimate, (float(self), self._plan, self._raw)


class Correlation(FloatEstimate):
    """The correlation of two columns, which is made of a release of their variances and their covariance."""

    table = Correlations(((0, 1), (1, 2)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Correlation, (float(self), self._plan, self._raw)

    def interval(self, level: float = 0.95, of: str = "noise", n: Any = None) -> tuple[float, float]:
        level, about = about_of(of, n, self._plan, self._raw, self._plan.cells, _validate.level(level))
        low, high = self.table.interval(self._plan, self._raw, level, about)[0]
        return float(low[1]), float(high[1])


def correlation(release: Release) -> Correlation:
    """The answer to a question of the variances of two columns with their covariance between them."""
    value = Correlation.table.values(release.plan, release.raw)[0][1]
    return Correlation(float(value), release.plan, release.raw)


def scalar(release: Release) -> Estimate:
    """The answer to a question without groups."""
    value = numbers(release.plan, release.raw, 0)[0]
    if release.plan.cells[0].whole:
        return IntEstimate(int(value), release.plan, release.raw)
    return FloatEstimate(float(value), release.plan, release.raw)


# Receipts ----------------------------------------------------------------------------------------------------

ANSWER = "dpframe_receipt"  # the key in `attrs` of what a session answered,
REPORTS = "dpframe_reports"  # of reports of rows,
ESTIMATE = "dpframe_estimate"  # and of estimates from them


def receipt_of(answer: Any, kind: str) -> str | None:
    """The text of an answer's receipt; None if it has none of this kind."""
    text = answer.attrs.get(kind)
    return text if isinstance(text, str) else None


@contextmanager
def reading(text: str, whose: str) -> Iterator[Any]:
    """A receipt's JSON, to be taken apart: whatever is not as dpframe writes it is one refusal."""
    try:
        yield json.loads(text)
    except (ValueError, KeyError, TypeError):
        raise BadValue(f"the receipt of {whose} is not one that dpframe wrote.") from None


def receipt(
    release: Release,
    layout: Layout,
    arrays: Sequence[Any],
    labels: Sequence[Hashable] | None,
    index: pd.Index[Any],
    order: Any = None,
    skip: int = 0,
) -> str:
    """The receipt of an answer with these columns, or of a Series, which has no ``labels``.

    The columns of a table are sealed one by one too, so that each can be taken alone; the first ``skip`` of them are keys.
    ``order`` is how the rows were rearranged after they were laid out.
    """
    whole, each = seals(arrays, labels or (), index)
    extra: dict[str, Any] = {"seal": whole}
    if layout.computed:
        extra |= {"layout": layout.to_json(), "skip": skip}
    if labels is not None and (len(labels) or layout.computed):
        extra["each"] = each[skip:]
    shape = "laid out series" if layout.computed and labels is None else layout.shape
    places = None if order is None else pack([order[None, :]])
    return receipt_text(release.plan, release.raw, shape=shape, order=places, **extra)


# Answers over the same keys share one index object; held here, so that its id stays its own.
_digests: OrderedDict[int, tuple[pd.Index[Any], bytes]] = OrderedDict()
_DTYPES = {
    np.dtype(kind): np.dtype(kind).name for kind in (np.int64, np.float64)
}  # numpy is slow to write a dtype


def seals(arrays: Sequence[Any], labels: Sequence[Hashable], index: pd.Index[Any]) -> tuple[str, list[str]]:
    """Digests of values, dtypes and labels, so that a receipt goes with one answer only: that of all columns, and those of
    each column with its own label."""
    known = _digests.get(id(index))
    if known is None or known[0] is not index:
        digest = hashlib.blake2b(digest_size=16)
        if isinstance(index, pd.IntervalIndex):
            digest.update(
                index.left.to_numpy().tobytes() + index.right.to_numpy().tobytes() + index.closed.encode()
            )
        elif isinstance(index.dtype, np.dtype) and index.dtype.kind in "iufb":
            digest.update(index.to_numpy().tobytes())
        else:
            digest.update("\x1f".join(map(str, index.to_numpy())).encode())
        _digests[id(index)] = known = index, digest.digest()
        while len(_digests) > 32:
            _digests.popitem(last=False)
    names = "\x1f".join(map(repr, index.names)).encode()  # an index can be renamed in place
    start = hashlib.blake2b(known[1] + names, digest_size=16)
    whole, each = start.copy(), []
    for place, array in enumerate(arrays):
        cells = array.tobytes() if array.dtype != object else "\x1f".join(map(str, array)).encode()
        written = (_DTYPES.get(array.dtype) or str(array.dtype)).encode() + cells
        whole.update(written)
        if labels:
            one = start.copy()
            one.update(written + str(labels[place]).encode())
            each.append(one.hexdigest())
    whole.update("\x1f".join(map(str, labels)).encode())
    return whole.hexdigest(), each


def seal_of(answer: pd.Series[Any] | pd.DataFrame, labelled: bool) -> str:
    """The seal an answer would have. A Series may be renamed, or become the one column of a frame."""
    frame = answer.to_frame() if isinstance(answer, pd.Series) else answer
    arrays = [frame.iloc[:, i].to_numpy() for i in range(frame.shape[1])]
    return seals(arrays, list(frame.columns) if labelled else [], answer.index)[0]


# Series and tables -------------------------------------------------------------------------------------------


def values(release: Release, cell: int) -> Any:
    """The numbers of one output, an entry a group."""
    return numbers(release.plan, release.raw, cell)


# Every answer gets a view of the index: its names are the user's to change, and the session's own must not follow.


def column(
    release: Release, layout: Layout, index: pd.Index[Any], name: Hashable, order: Any = None
) -> pd.Series[Any]:
    """The one column of a layout as a Series; ``order`` rearranges the rows."""
    data = layout.values(release.plan, release.raw)[0]
    data = data if data.dtype != object else data.astype(np.float64)  # noise beyond 63 bits, as in a table
    if order is not None:
        data, index = data[order], index[order]
    answer: pd.Series[Any] = pd.Series(data, index=index.view(), name=name)
    answer.attrs[ANSWER] = receipt(release, layout, [data], None, index, order)
    return answer


def series(release: Release, index: pd.Index[Any], name: Hashable, order: Any = None) -> pd.Series[Any]:
    """One output, a row a group; ``order`` rearranges the rows."""
    return column(release, Column(), index, name, order)


def across(release: Release, index: pd.Index[Any], name: Hashable = None) -> pd.Series[Any]:
    """Several outputs without groups: a row an output."""
    return column(release, Across(), index, name)


def proportions(
    release: Release, layout: Layout, index: pd.Index[Any], name: Hashable, order: Any = None
) -> pd.Series[Any]:
    """Counts divided by their total, a row a group."""
    return column(release, layout, index, name, order)


def levels(
    release: Release, index: pd.Index[Any] | None, given: Sequence[float], name: Hashable
) -> pd.Series[Any]:
    """Several quantiles of one column: a row a level, within each group if there are groups."""
    return column(release, Levels(), below(index, pd.Index(given, dtype=np.float64)), name)


def below(index: pd.Index[Any] | None, rows: pd.Index[Any]) -> pd.Index[Any]:
    """Some rows within each group, if there are groups: a level more."""
    if isinstance(index, pd.MultiIndex):
        # Combinations may be listed ones, so these are their rows and not a product.
        parts = [index.get_level_values(i).repeat(len(rows)) for i in range(index.nlevels)]
        return pd.MultiIndex.from_arrays(
            [*parts, pd.Index(np.tile(rows, len(index)))], names=[*index.names, rows.name]
        )
    return rows if index is None else pd.MultiIndex.from_product([index, rows])


@lru_cache(maxsize=256)
def _named(labels: tuple[str, ...]) -> pd.Index[Any]:
    """Texts as the columns of a table, which pandas takes longer to make than the rest of it."""
    return pd.Index(labels)


def table(release: Release, index: pd.Index[Any], columns: Sequence[Hashable]) -> pd.DataFrame:
    """Several outputs of several groups."""
    found = [numbers(release.plan, release.raw, i) for i in range(len(release.plan.cells))]
    # Python integers appear only at prices so small that noise leaves 63 bits; as doubles they are still noise.
    data = [column if column.dtype != object else column.astype(np.float64) for column in found]
    answer = pd.DataFrame(
        dict(enumerate(data)), index=index.view(), copy=False
    )  # nobody else has these arrays
    if all(type(label) is str for label in columns):  # 1 and True would be one entry
        answer.columns = _named(cast("tuple[str, ...]", tuple(columns))).view()
    else:  # as pandas makes them of a dict
        alike = len(set(columns)) < len(columns)
        answer.columns = (
            pd.Index(list(columns)) if alike else pd.DataFrame(dict.fromkeys(columns, ())).columns
        )
    answer.attrs[ANSWER] = receipt(release, Columns(), data, columns, index)
    return answer


def laid_out(
    release: Release,
    layout: Layout,
    index: pd.Index[Any],
    columns: pd.Index[Any],
    whole: bool = True,
) -> pd.DataFrame:
    """A table in which outputs and groups stand as a layout says; without ``whole`` counts are floats too."""
    data = layout.values(release.plan, release.raw)
    data = [_plain(column) if whole else column.astype(np.float64) for column in data]
    answer = pd.DataFrame(dict(enumerate(data)), index=index.view())
    answer.columns = columns.view()
    answer.attrs[ANSWER] = receipt(release, layout, data, list(answer.columns), index)
    return answer


def by_levels(
    release: Release, index: pd.Index[Any], columns: pd.Index[Any], whole: bool = True
) -> pd.DataFrame:
    """Several outputs of several groups, whose names may be pairs: levels of the columns."""
    return laid_out(release, Pivot(len(index)), index, columns, whole)


def flat(
    release: Release, index: pd.Index[Any], columns: Sequence[Hashable], levels: Sequence[Hashable]
) -> pd.DataFrame:
    """Several outputs of several groups, whose keys are columns: ``as_index=False``."""
    answer = table(release, index, columns)
    answer.columns = columns_of(columns)
    answer.attrs.clear()
    answer = answer.reset_index(names=list(levels))
    data = [answer.iloc[:, i].to_numpy() for i in range(answer.shape[1])]
    labels, skip = list(answer.columns), len(levels)
    answer.attrs[ANSWER] = receipt(release, Pivot(len(index)), data, labels, answer.index, skip=skip)
    return answer


def columns_of(labels: Sequence[Hashable]) -> pd.Index[Any]:
    """Labels as pandas would have them: pairs are levels."""
    pairs = [label for label in labels if isinstance(label, tuple)]
    if pairs and len(pairs) == len(labels):
        return pd.MultiIndex.from_tuples(pairs)
    return pd.Index(list(labels), tupleize_cols=False)


def _plain(data: Any) -> Any:
    """Python integers as int64 where they fit, as doubles where noise is wider than that."""
    if data.dtype != object:
        return data
    return data.astype(np.int64 if all(abs(int(x)) < 2**63 for x in data) else np.float64)


class Answer:
    """``answer.dp`` of a released Series or DataFrame: its interval, its plan, its cost."""

    def __init__(self, answer: pd.Series[Any] | pd.DataFrame, text: str):
        with reading(text, "this answer") as receipt:
            sealed, self._labelled = receipt["seal"], receipt["shape"] == Columns.shape
            self._layout = layout_from(receipt)
        self._taken: int | None = None  # of a table this column is left
        if isinstance(answer, pd.Series) and self._labelled:
            own, each = seals([answer.to_numpy()], [answer.name], answer.index)[0], receipt.get("each", ())
            self._taken = next((i for i, one in enumerate(each) if one == own), None)
        if self._taken is None and sealed != seal_of(answer, self._labelled):
            raise BadValue(
                "the values or the labels of this answer have changed since it was released, so its receipt no "
                "longer describes it. Ask the answer as it came: keep it in a variable of its own."
            )
        self._answer = answer
        self._order, self._keys = receipt.get("order"), receipt.get("skip", 0)
        self._plan = Plan.from_json(receipt["plan"])
        self._raw = tuple(unpack(receipt["raw"]))
        alone = self._taken is not None and not self._layout.computed
        self._cells = (self._plan.cells[cast(int, self._taken)],) if alone else self._plan.cells

    @property
    def plan(self) -> Plan:
        """What was asked, with which mechanism, scale and price."""
        return self._plan

    @property
    def cost(self) -> Cost:
        """What this release guarantees by itself: ``epsilon`` and ``delta``. The ledger counts it by its accountant."""
        return self._plan.cost

    def interval(
        self, level: float = 0.95, at_once: bool = False, of: str = "noise", n: Any = None
    ) -> pd.DataFrame:
        """Columns ``lower`` and ``upper``, a row as the answer has them; for a table, under each column's name.

        Each interval covers the noise of its own number with probability ``level``; with ``at_once`` all of them do, together
        (docs/guarantees/accuracy.md#many-answers-at-once). With ``of="population"`` they cover what a sample says of a population
        too, as `Estimate.interval` has it: means, shares, counts and quantiles have such intervals, and others NaN beside them.

        Choices such as medians have none: NaN beside others. But several levels that were chosen in one release bound each other
        where the number of values is known: ``n``, a public number or a released count, of which the lower end is taken; of
        groups the smallest. A column that is taken from a table keeps its interval.
        """
        chosen = self._answer.index.get_level_values(-1)[: len(self._cells)] if self._layout.by_level else ()
        level = _validate.level(level)
        level, about = about_of(of, n, self._plan, self._raw, self._cells, level, chosen)
        if about.population and self._layout.joins:
            check_apart(self._plan)
        if _validate.flag(at_once, "at_once"):
            # Margins and proportions are numbers beyond those of the groups, so there it is the union bound over what is shown.
            many = 1 - (1 - level) / max(self._answer.size, 1)
            joint = self._layout.computed or about.population
            level = min(many, 1 - 2.0**-53) if joint else self._plan.level_each(level)
        pairs = self._layout.interval(self._plan, self._raw, level, about)
        index = self._answer.index
        if self._labelled and self._taken is None:
            shown = cast(pd.DataFrame, self._answer).columns[self._keys :]
            parts = [pd.DataFrame({"lower": low, "upper": high}, index=index) for low, high in pairs]
            return pd.concat(parts, axis=1, keys=list(shown))
        low, high = pairs[self._taken or 0]
        if self._order is not None:
            low, high = (side[unpack(self._order)[0][0]] for side in (low, high))
        return pd.DataFrame({"lower": low, "upper": high}, index=index)

    def ranks(self, level: float = 0.95) -> float:
        """By how many ranks each quantile among these may miss with this level: so many values too many lie below it at most, and
        above it. How many values there are it does not depend on."""
        return ranks_of(self._plan, self._cells, level)

    def difference(
        self, first: Hashable, second: Hashable, level: float = 0.95, of: str = "noise"
    ) -> Difference:
        """The first group's mean less the second's, or share, with its interval: ``estimate``, ``lower``, ``upper``.

        With ``of="population"`` it covers the sampling error of both groups, as `interval` has it: it is shorter than what
        the two intervals say, since both would have to fail at once (docs/guarantees/population.md#differences). The first and
        the second are labels of a Series.
        """
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
        return difference_of(self._plan, self._raw, self._cells[0], places, _validate.level(level), of)

    def plot(
        self,
        kind: str | None = None,
        ax: Any = None,
        level: float = 0.95,
        at_once: bool = False,
        **kwargs: Any,
    ) -> Any:
        """The answer with its intervals, as pandas would plot it; takes and returns matplotlib axes.

        Bars with error bars for groups, bins to scale for a histogram, a line with a band for times and quantiles; or the
        ``kind`` asked for: ``"bar"``, ``"barh"``, ``"hist"`` or ``"line"``. Error bars are `interval` at ``level``, with
        ``at_once`` for all together; quantiles that were chosen have none. The columns of a table have axes each, which come as
        an array, with ``subplots=True``, or if some are counts and others means, say; ``subplots=False`` and ``ax=`` put them
        into one. ``y=`` names columns to draw. Other words go to pandas. It draws what was released and costs nothing.
        """
        if not isinstance(self._answer, pd.Series) and self._answer.shape[1] == 0:
            raise BadValue("this answer has no columns to draw.")
        level = _validate.level(level)
        name = self._answer.name if isinstance(self._answer, pd.Series) else None
        return _plot.picture(
            self._answer,
            None if all_choices(self._cells) else self.interval(level, at_once),
            kind=kind,
            ax=ax,
            levels=self._layout.by_level,
            keys=self._keys,
            title=str(_title(self._plan.cells[0]) if name is None else name),
            options=kwargs,
            apart=isinstance(self._answer, pd.DataFrame) and len({c.aggregate for c in self._plan.cells}) > 1,
        )

    def __repr__(self) -> str:
        return f"the answer to {self._plan.question}, epsilon {self._plan.epsilon:.4g}; .interval(), .plan, .plot(), .cost"


def _title(cell: Any) -> str:
    """The title of an answer without a name."""
    unnamed = AGGREGATES[cell.aggregate].counts_rows and cell.name == cell.aggregate
    return "rows" if unnamed else str(cell.name)


for _kind in (Estimate, Answer):
    own_errors(_kind, object)
