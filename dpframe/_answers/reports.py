"""Reports of rows by randomized response, and unbiased estimates from them.

Reports are a Series with a receipt. The intervals of estimates hold for the coins of the reports.
Estimates are post-processing, derived in ``docs/guarantees/randomized-response.md``. A receipt goes
with each report and not with all of them together, so a part of the reports keeps it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe import _pandas, _validate
from dpframe import plot as _plot
from dpframe._answers.arguments import explain_arguments
from dpframe._answers.receipts import ESTIMATE, REPORTS, refuse_foreign_receipt
from dpframe._cells.codec import index_of
from dpframe._errors import BadType, BadValue
from dpframe._plans.plan import Cost, Plan
from dpframe._types import Array, Floats, Index, Json, Series
from dpframe.mechanisms.response import Response, worst_spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Integers: TypeAlias = NDArray[np.int64]
ValueEnds: TypeAlias = tuple[Floats, Floats]  # the lower and the upper ends of intervals


@dataclass(frozen=True)
class ReportKind:
    """The subject of reports: public values in order, or the points of a number's grid."""

    response: Response
    null: int | None = None  # the place of null among the values
    bounds: tuple[float, float] | None = None  # those of a number
    people: bool = False  # whether a person has several reports, in an order of their own

    def to_json(self) -> Json:
        ends = None if self.bounds is None else [repr(b) for b in self.bounds]
        return {**self.response.to_json(), "null": self.null, "bounds": ends, "people": self.people}

    @staticmethod
    def from_json(data: Json) -> ReportKind:
        lower, upper = map(float, data["bounds"] or (0, 0))
        pair = (lower, upper) if data["bounds"] else None
        return ReportKind(Response.from_json(data), data["null"], pair, data["people"])

    def points(self) -> list[float]:
        """Return the values that a report of a number can have."""
        assert self.bounds is not None
        (lower, upper), m = self.bounds, self.response.k - 1
        return [
            float(Fraction(lower) + (Fraction(upper) - Fraction(lower)) * i / m)
            for i in range(m + 1)
        ]


def make_reports(
    codes: Array,
    kind: ReportKind,
    labels: Sequence[Hashable],
    plan: Plan | None,
    index: Index | None,
    name: Hashable,
) -> Series:
    """Return randomized reports as a Series of categories, with a receipt.

    ``codes`` are the positions of the reported values among ``labels``, and ``kind`` tells how
    reports were made.

    A mean of raw reports would be biased, and categories have no mean. Null is -1 there, since
    pandas has no category for it.
    """
    if kind.null is not None:
        table = np.arange(kind.response.k)
        table[kind.null :] -= 1
        table[kind.null] = -1
        codes = table[codes]
    proper = [label for i, label in enumerate(labels) if i != kind.null]
    dtype = pd.CategoricalDtype(index_of(proper, None), ordered=kind.bounds is not None)
    if index is None:
        index = pd.RangeIndex(len(codes))
    reports: Series = pd.Series(
        pd.Categorical.from_codes(codes, dtype=dtype), index=index, name=name
    )
    receipt = {
        "version": 1,
        "kind": kind.to_json(),
        "plan": None if plan is None else plan.to_json(),
    }
    reports.attrs[REPORTS] = json.dumps(receipt, separators=(",", ":"))
    return reports


class Reports:
    """``reports.dp`` of what `PrivateFrame.randomize` returned, or of a part of it."""

    def __init__(self, series: Series, text: str):
        """Read the receipt of randomized reports, and check that it still describes the Series.

        ``text`` is the receipt as JSON. A Series with other categories is refused.
        """
        with refuse_foreign_receipt("these reports"):
            receipt = json.loads(text)
            self._kind = ReportKind.from_json(receipt["kind"])
            plan = receipt["plan"]
            self._plan = None if plan is None else Plan.from_json(plan)
        dtype = series.dtype
        wanted = self._kind.response.k - (self._kind.null is not None)
        if not isinstance(dtype, pd.CategoricalDtype) or len(dtype.categories) != wanted:
            raise BadValue(
                "these reports no longer have the categories that they came with, so their receipt "
                "does not describe them. Use them as they came: a part of the rows is fine, other "
                "values are not."
            )
        self._series = series

    @property
    def plan(self) -> Plan:
        """The question, with its mechanism and the price of all reports of a person together."""
        if self._plan is None:
            raise BadType(
                "these reports were collected one by one, so no session has a plan for them."
            )
        return self._plan

    @property
    def cost(self) -> Cost:
        """The guarantee of all reports of one person together."""
        if self._plan is None:
            return Cost(float(self._kind.response.epsilon), 0.0)
        return self._plan.cost

    @property
    def truth(self) -> float:
        """The probability that a report is the true value.

        A number is first rounded to one of the values that a report can have.
        """
        return self._kind.response.truth

    @property
    def _has_several_reports(self) -> bool:
        """True if a person has several reports. Those beyond their rows are blanks."""
        # The price of a person is that of their reports together.
        return (
            self._kind.people
            and self._plan is not None
            and self._plan.cost.epsilon > 1.5 * float(self._kind.response.epsilon)
        )

    def _codes(self) -> Integers:
        """Return the position of each report among the values that a report can have."""
        codes = self._series.cat.codes.to_numpy().astype(np.int64)
        null = self._kind.null
        if null is None:
            if len(codes) and codes.min() < 0:
                raise BadValue(
                    "some of these reports are null, and null is not one of their values. Leave "
                    "such rows out."
                )
            return codes
        return np.where(codes < 0, null, codes + (codes >= null))

    def _labels(self) -> list[Hashable]:
        """Return the values that a report can have, null among them."""
        labels = list(self._series.cat.categories)
        if self._kind.null is not None:
            labels.insert(self._kind.null, None)
        return labels

    def __repr__(self) -> str:
        """Show the chance that a report is true, and the epsilon of each report."""
        one = self._kind.response
        return (
            f"reports that are true with probability {one.truth:.4g}, "
            f"epsilon {float(one.epsilon):.4g} each"
        )


class ReadReports(NamedTuple):
    """Randomized reports in numbers, as estimates are computed from them."""

    kind: ReportKind
    codes: Integers  # the position of each report among the values that a report can have
    labels: list[Hashable]  # these values
    plan: Plan | None
    has_blanks: bool  # whether a person may have more reports than rows
    series: Series


def read_reports(reports: Reports) -> ReadReports:
    """Return what estimates need to know of randomized reports."""
    return ReadReports(
        reports._kind,
        reports._codes(),
        reports._labels(),
        reports._plan,
        reports._has_several_reports,
        reports._series,
    )


explain_arguments(Reports)


# Estimates --------------------------------------------------------------------------------------

_FEW = 100  # reports, below which a sample variance and the normal law do not serve
_LIES = 50  # random reports to expect, below which they do not serve either


def weigh_reports(response: Response) -> Floats:
    """Return the weights that make an unbiased estimate of reports, with a row for each value.

    Their mean is 1 in the row of the true value, and 0 in others. It is 1/k in all rows if the true
    value is not listed.
    """
    found: Floats = (np.eye(response.k) - response.lies / response.k) / response.kept
    return found


def frequencies(response: Response, counts: Integers) -> Floats:
    """Return the estimated share of each value in each group, without bias.

    ``counts`` has a row for each group and a column for each reported value. A group without
    reports has NaN.
    """
    n = counts.sum(axis=1, keepdims=True)
    share = np.divide(counts, n, out=np.full(counts.shape, np.nan), where=n > 0)
    found: Floats = (share - response.lies / response.k) / response.kept
    return found


def frequency_ends(response: Response, counts: Integers, level: float) -> ValueEnds:
    """Return the lower and the upper ends of the intervals of frequencies.

    ``counts`` has a row for each group and a column for each reported value.

    It is Clopper and Pearson's (1934) interval for the mean probability of such a report.
    """
    from scipy.special import betaincinv

    n = np.broadcast_to(counts.sum(axis=1, keepdims=True), counts.shape)
    risk = (1 - level) / 2
    low, high = np.zeros(counts.shape), np.ones(counts.shape)
    some, rest = counts > 0, counts < n
    low[some] = betaincinv(counts[some], (n - counts)[some] + 1.0, risk)
    high[rest] = betaincinv(counts[rest] + 1.0, (n - counts)[rest], 1 - risk)
    ends = ((side - response.lies / response.k) / response.kept for side in (low, high))
    lower, upper = (np.clip(side, 0.0, 1.0) for side in ends)
    return lower, upper


def means(response: Response, counts: Integers) -> Floats:
    """Return the estimated mean of each group, as a share of the way between the bounds, without
    bias.

    ``counts`` has a row for each group and a column for each reported point. A group without
    reports has NaN.
    """
    points = np.arange(response.k) / (response.k - 1)
    n = counts.sum(axis=1)
    share = np.divide(counts @ points, n, out=np.full(len(n), np.nan), where=n > 0)
    found: Floats = (share - response.lies / 2) / response.kept
    return found


def mean_ends(response: Response, counts: Integers, level: float) -> ValueEnds:
    """Return the lower and the upper ends of the intervals of means, as shares of the way between
    the bounds.

    With two points it is that of a frequency. With more it is by the normal law, and for few
    reports by Hoeffding's (1963) bound.
    """
    if response.k == 2:
        low, high = frequency_ends(response, counts, level)
        return low[:, 1], high[:, 1]
    points = np.arange(response.k) / (response.k - 1)
    n = np.maximum(counts.sum(axis=1), 1)
    centre = counts @ points / n
    variance = np.maximum(counts @ points**2 / n - centre**2, 0.0) * n / np.maximum(n - 1, 1)
    hoeffding = np.sqrt(math.log(2 / (1 - level)) / (2 * n))
    half = _normal_reach(level) * np.sqrt(variance / n)
    coins = bernstein(worst_spread(response) * response.kept**2, 1.0, n, level)
    half = np.where(n * response.lies < _LIES, np.maximum(half, coins), half)
    half = np.where(n < _FEW, hoeffding, np.minimum(half, hoeffding)) / response.kept
    found = (centre - response.lies / 2) / response.kept
    empty = counts.sum(axis=1) == 0
    low, high = np.where(empty, 0.0, found - half), np.where(empty, 1.0, found + half)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def bernstein(variance: float, span: float, n: Floats | Integers | int, level: float) -> Floats:
    """Return Bernstein's bound on the error of a mean of n independent numbers.

    The bound holds with probability ``level``. ``variance`` is the most that each may have, and
    ``span`` the distance between its ends. It serves where few reports are random. Then perhaps
    none is seen, so the sample variance says nothing, and the normal law does not hold.
    """
    log = math.log(2 / (1 - level)) / n
    return np.asarray(span * log / 3 + np.sqrt((span * log / 3) ** 2 + 2 * variance * log))


def joint(one: Response, two: Response, counts: Integers) -> Floats:
    """Return the estimated shares of pairs of values of two columns, without bias.

    Each column was randomized by itself, as ``one`` and ``two`` tell. ``counts`` has the reported
    pairs.
    """
    n = counts.sum()
    found: Floats = (
        weigh_reports(one) @ (counts / n if n else counts * np.nan) @ weigh_reports(two).T
    )
    return found


def joint_ends(one: Response, two: Response, counts: Integers, level: float) -> ValueEnds:
    """Return the lower and the upper ends of the intervals of joint shares.

    ``one`` and ``two`` tell how the two columns were randomized, and ``counts`` has the reported
    pairs.

    It is by the normal law, with the variance that is seen in the products of weights.
    """
    n = max(int(counts.sum()), 1)
    first, second = weigh_reports(one), weigh_reports(two)
    mean = joint(one, two, counts)
    square = (first**2) @ (counts / n) @ (second**2).T
    half = _normal_reach(level) * np.sqrt(np.maximum(square - mean**2, 0.0) / max(n - 1, 1))
    # A pair says at least the smallest product of weights, and at most the largest.
    span = float(
        np.ptp([a * b for a in (first.min(), first.max()) for b in (second.min(), second.max())])
    )
    if n < _FEW:
        half = np.full(mean.shape, span * math.sqrt(math.log(2 / (1 - level)) / (2 * n)))
    elif n * min(one.lies, two.lies) < _LIES:
        half = np.maximum(half, bernstein(_bound_pair_variance(one, two), span, n, level))
    mean = np.where(np.isnan(mean), 0.5, mean)
    return np.clip(mean - half, 0.0, 1.0), np.clip(mean + half, 0.0, 1.0)


def _bound_pair_variance(one: Response, two: Response) -> float:
    """Return the largest variance of an estimate from a pair of reports, for any true values.

    ``one`` and ``two`` tell how the two reports were randomized.
    """
    squares = []
    for response in (one, two):
        w, q = weigh_reports(response), response.lies / response.k
        own, other = w[0, 0] ** 2, w[0, 1] ** 2
        # The chances that a value is reported: by rows with it, with another, and with an unlisted
        # one.
        chances = (response.truth, q, 1 / response.k)
        squares.append(
            [(p * own + (1 - p) * other, (p * w[0, 0] + (1 - p) * w[0, 1]) ** 2) for p in chances]
        )
    return float(max(a * b - c * d for a, c in squares[0] for b, d in squares[1]))


def _normal_reach(level: float) -> float:
    """Return the number of deviations that a normal law stays within at this level."""
    from scipy.special import ndtri

    return float(-ndtri((1 - level) / 2))


class ReportEstimates:
    """Estimates with their intervals, from a table of counts and the kinds of the reports.

    ``rows`` is the number of reports that are of a value. The others are blanks: uniform reports,
    in which each value has the share 1/k, and whose mean is the middle of the bounds.
    """

    def __init__(
        self,
        kind: ReportKind,
        counts: Integers,
        by: Response | None = None,
        rows: float | None = None,
    ):
        """Prepare to estimate true counts from counts of randomized reports.

        ``kind`` tells how reports were randomized, and ``counts`` how many there are of each value.
        ``by`` tells how the reports of the groups were randomized, or is None. ``rows`` is the
        number of reports that hold a value, or None if all do.
        """
        self.kind, self.counts, self.by, self.rows = kind, counts, by, rows

    @property
    def _n(self) -> Floats:
        """The number of reports behind each row of the answer."""
        if self.by is not None:
            return np.full(self.counts.size, float(self.counts.sum()))
        n = self.counts.sum(axis=1) if self.rows is None else np.full(1, self.rows)
        return (n if self.kind.bounds else np.repeat(n, self.kind.response.k)).astype(np.float64)

    def values(self) -> dict[str, Floats]:
        """Return the estimates, by the names of their columns."""
        return self._scale(self._share())

    def ends(self, level: float) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Return the lower and the upper ends of the intervals, by the names of their columns.

        ``level`` is the confidence of the intervals.
        """
        one = self.kind.response
        if self.kind.bounds is not None:
            low, high = mean_ends(one, self.counts, level)
        elif self.by is None:
            low, high = frequency_ends(one, self.counts, level)
        else:
            low, high = joint_ends(self.by, one, self.counts, level)
        # The truth lies from 0 to 1, and so do the ends. But an estimate beyond that stays inside
        # its own interval.
        share = self._share()
        lower, upper = (self._remove_blanks(side.ravel()) for side in (low, high))
        if self.rows is not None:
            lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
        return self._scale(np.fmin(lower, share)), self._scale(np.fmax(upper, share))

    def _share(self) -> Floats:
        """Return the estimates as shares: of the rows, or for means of the way between the
        bounds."""
        one = self.kind.response
        if self.kind.bounds is not None:
            return self._remove_blanks(means(one, self.counts))
        found = (
            frequencies(one, self.counts) if self.by is None else joint(self.by, one, self.counts)
        )
        return self._remove_blanks(found.ravel())

    def _remove_blanks(self, share: Floats) -> Floats:
        """Return the share among the reports that hold a value, from that among all reports.

        The other reports are uniform. The step is linear, so it adds no bias.
        """
        if self.rows is None:
            return share
        n = float(self.counts.sum())
        blank = 0.5 if self.kind.bounds is not None else 1 / self.kind.response.k
        return (share * n - (n - self.rows) * blank) / self.rows

    def _scale(self, share: Floats) -> dict[str, Floats]:
        """Return the columns of an estimate: shares and counts, or means and sums.

        They are made of ``share``, which for means is the way between the bounds.
        """
        n = self._n
        if self.kind.bounds is None:
            return {"frequency": share, "count": np.where(n > 0, share * n, 0.0)}
        lower, upper = self.kind.bounds
        mean = lower * (1 - share) + upper * share
        return {"mean": mean, "sum": np.where(n > 0, mean * n, 0.0)}

    def to_json(self) -> Json:
        by = None if self.by is None else self.by.to_json()
        record = {"kind": self.kind.to_json(), "counts": self.counts.tolist(), "by": by}
        return record if self.rows is None else {**record, "rows": self.rows}

    @staticmethod
    def from_json(data: Json) -> ReportEstimates:
        by = None if data["by"] is None else Response.from_json(data["by"])
        counts = np.array(data["counts"], dtype=np.int64)
        return ReportEstimates(ReportKind.from_json(data["kind"]), counts, by, data.get("rows"))


def table(computed: ReportEstimates, index: Index, plan: Plan | None = None) -> pd.DataFrame:
    """Return the estimates as a table with its receipt."""
    answer = pd.DataFrame(computed.values(), index=index)
    written = None if plan is None else plan.to_json()
    receipt = {"seal": _seal(answer), "plan": written, **computed.to_json()}
    answer.attrs[ESTIMATE] = json.dumps(receipt, separators=(",", ":"))
    return answer


def _seal(answer: object) -> str:
    """Return the digest of the labels and the values of estimates; empty for other objects."""
    if not isinstance(answer, pd.DataFrame):
        return ""
    labels: Sequence[Hashable] = [*answer.columns, *answer.index]
    digest = hashlib.blake2b(
        "\x1f".join(map(str, labels)).encode("utf-8", "surrogatepass"), digest_size=16
    )
    for name in answer.columns:
        digest.update(np.asarray(answer[name]).tobytes())
    return digest.hexdigest()


class Estimated:
    """``estimate(reports).dp``: the interval of each number."""

    def __init__(self, answer: pd.DataFrame, text: str):
        """Read the receipt of an estimate from reports, and check that the table was not changed
        since.

        ``text`` is the receipt as JSON.
        """
        with refuse_foreign_receipt("this estimate"):
            receipt = json.loads(text)
            seal, self._computed = receipt["seal"], ReportEstimates.from_json(receipt)
            plan = receipt.get("plan")
            self._plan = None if plan is None else Plan.from_json(plan)
        if seal != _seal(answer):
            raise BadValue(
                "the values or the labels of this estimate have changed, so its receipt no longer "
                "describes it. Ask the estimate as it came: keep it in a variable of its own."
            )
        self._answer = answer

    def interval(self, level: float = 0.95) -> pd.DataFrame:
        """Return columns ``lower`` and ``upper`` under the name of each column of the estimate.

        Each interval covers the number that the rows themselves would have given, with probability
        ``level`` over the coins. It covers the number of a population too, if the rows are a random
        sample of it, since it is made of all the variance that reports can show. An end lies where
        the truth can, unless the estimate itself is beyond: it is unbiased, and so may be negative.
        A value that was not listed counts as 1/k of each, and a null number as the middle of its
        bounds.
        """
        if level is True or level is False:
            raise BadType("level must be a number such as 0.95.")
        low, high = self._computed.ends(_validate.level(level))
        index = self._answer.index
        parts = [
            pd.DataFrame({"lower": low[name], "upper": high[name]}, index=index) for name in low
        ]
        return _pandas.concat(parts, axis=1, keys=list(low))

    @property
    def plan(self) -> Plan:
        """The plan of the reports that it was made of: the estimate itself costs nothing."""
        if self._plan is None:
            raise BadType(
                "these reports were collected one by one, so no session has a plan for them."
            )
        return self._plan

    def plot(
        self,
        kind: str | None = None,
        ax: Axes | None = None,
        level: float = 0.95,
        y: str | None = None,
        **kwargs: object,
    ) -> Any:
        """Draw frequencies, or means, with their intervals; take and return matplotlib axes.

        ``y="count"`` or ``"sum"`` draws those. Other words are those of an answer's ``plot``. It
        costs nothing.
        """
        known = list(self._answer.columns)
        name = known[0] if y is None else _validate.choice(y, "y", known)
        low, high = self._computed.ends(_validate.level(level))
        return _plot.draw_answer(
            self._answer[name],
            _plot.Marks.stack([(low[name], high[name])]),
            kind=kind,
            ax=ax,
            quantiles=False,
            keys=0,
            title=str(name),
            options=kwargs,
        )

    def __repr__(self) -> str:
        return f"an estimate from {int(self._computed.counts.sum())} reports; .interval(), .plot()"


explain_arguments(Estimated)
