"""Privacy without a trusted party: reports that each person makes alone, and estimates from many of
them.

*Reports:* ``df["smoker"].dp.randomize(epsilon=1, keys=[...])`` for a table that is here; `answer`
for one person, whose value never leaves them; `reports` puts such answers together. *Estimates:*
`estimate`. *How many people:* `sample_size`. *The notes' delta:* `epsilon_of`, `delta_of`,
`truth_of`.

The proofs are in ``docs/guarantees/randomized-response.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from dpframe import _pandas, _validate, calibrate
from dpframe._answers import reports as _reports
from dpframe._answers.receipts import REPORTS, get_receipt
from dpframe._answers.reports import ReadReports, ReportKind, Reports, read_reports
from dpframe._cells.columns import objects, prepare
from dpframe._errors import BadType, BadValue
from dpframe._expr import Column
from dpframe._frame.randomize import labels_of, number_kind, rounded_places
from dpframe._groups.keys import Keys, keys_for
from dpframe._session.data import ATTR as SESSION
from dpframe._types import Index, Series
from dpframe.accounting import _search
from dpframe.mechanisms._sampling import exp_interval
from dpframe.mechanisms.response import Response

__all__ = ["answer", "delta_of", "epsilon_of", "estimate", "reports", "sample_size", "truth_of"]


def __dir__() -> list[str]:
    return list(__all__)  # completion shows the public names alone


Real = float | Fraction | Decimal
_BITS = 2048  # enough to tell exp(-epsilon) from what doubles can hold of it


# The two parametrisations -----------------------------------------------------------------------------------


def epsilon_of(delta: Real) -> float:
    """Return the epsilon of randomized response in which the truth is told with probability 1/2 +
    delta, rounded up.

    *Formal guarantee.* The answer is epsilon-private for ``epsilon = ln((1/2 + delta) / (1/2 -
    delta))``, and for none below; the notes call it O(delta), since it is 4 delta to first order.

    >>> epsilon_of(0.25)
    1.0986122886681098
    """
    odds = _odds(delta)
    if not _covers(float(_validate.MAX_EPSILON), odds):
        raise BadValue(f"delta={delta} would be an epsilon above 1024, where nobody is protected.")
    return _search.first_where(
        lambda epsilon: _covers(epsilon, odds), 0.0, float(_validate.MAX_EPSILON)
    )


def _odds(delta: Real) -> Fraction:
    """Return the odds of a false answer against a true one, where the truth is told with
    probability 1/2 + delta."""
    d = _validate.exact(delta, "delta")
    if not 0 < d < Fraction(1, 2):
        raise BadValue(
            f"delta must lie strictly between 0 and 1/2, not {delta}: the truth is told with 1/2 + delta."
        )
    return (Fraction(1, 2) - d) / (Fraction(1, 2) + d)


def _covers(epsilon: float, odds: Fraction) -> bool:
    """Return whether exp(-epsilon) <= odds for certain, so that an answer with these odds is
    epsilon-private. The epsilon is the decimal that the double shows, as a price would be."""
    e = _validate.exact(epsilon, "epsilon")
    return (
        exp_interval(e.numerator, e.denominator, _BITS)[1] * odds.denominator
        <= odds.numerator << _BITS
    )


def delta_of(epsilon: Real) -> float:
    """Return how far from a fair coin an epsilon-private yes or no may be. The truth is told with
    probability 1/2 plus this delta, rounded down.

    *Formal guarantee.* ``delta = tanh(epsilon / 2) / 2``, so that an answer that is true with 1/2 +
    delta is epsilon-private.

    >>> delta_of(1)
    0.23105857863000487
    """
    exact = _validate.epsilon(epsilon)
    top = exp_interval(exact.numerator, exact.denominator, _BITS)[1]

    def fits(d: float) -> bool:
        if d >= 0.5:
            return False
        odds = _odds(d)
        return top * odds.denominator <= odds.numerator << _BITS

    return _search.last_where(fits, 0.0, 0.5)


def truth_of(epsilon: Real, k: int = 2) -> float:
    """Return the probability of a true answer in randomized response among k values: ``e**epsilon /
    (e**epsilon + k - 1)``, rounded down.

    >>> truth_of(1), truth_of(1, k=10)
    (0.7310585786300048, 0.23196931668407392)
    """
    exact, values = _validate.epsilon(epsilon), _validate.positive_int(k, "k")
    if values < 2:
        raise BadValue("k must be at least 2: one value alone would say nothing.")
    false = Fraction(Response(exact, values).interval(values - 1, _BITS)[1], 1 << _BITS)
    truth = float(1 - false)
    while _validate.exact(truth, "truth") > 1 - false:
        truth = math.nextafter(truth, 0.0)
    return truth


def sample_size(
    alpha: Real,
    epsilon: Real | None = None,
    *,
    delta: Real | None = None,
    method: str = "bound",
    level: Real = 0.95,
) -> int:
    """Return the number of people to ask by randomized response for a given accuracy. The estimated
    share of yes is then within ``alpha`` with probability ``level``.

    ``method="bound"`` and ``"normal"`` are `dpframe.calibrate.randomized_response_n`, of
    ``epsilon`` or of the epsilon of ``delta``. ``"notes"`` is their n >= 1 / (delta alpha)**2, for
    a level of 3/4; for another level it is that over 4 (1 - level), by the same inequality of
    Chebyshev.

    >>> sample_size(0.05, 1), sample_size(0.05, delta=0.25, method="notes", level=0.75)
    (2795, 6400)
    """
    if (epsilon is None) == (delta is None):
        raise BadValue(
            "give either epsilon= or delta=: each follows from the other (epsilon_of, delta_of)."
        )
    if _validate.choice(method, "method", ("bound", "normal", "notes")) != "notes":
        price = epsilon if delta is None else epsilon_of(delta)
        assert price is not None
        return calibrate.randomized_response_n(alpha, price, method=method, level=level)
    d = _validate.exact(delta if epsilon is None else delta_of(epsilon), "delta")
    _odds(d)
    a, beta = _validate.exact(alpha, "alpha"), 1 - _validate.exact(level, "level")
    if not 0 < a < 1 or not 0 < beta < 1:
        raise BadValue("alpha and level must lie strictly between 0 and 1.")
    return math.ceil(1 / (d * a) ** 2 / (4 * beta))


# One person -------------------------------------------------------------------------------------------------


def answer(
    value: object,
    *,
    epsilon: Real,
    keys: object = None,
    bounds: object = None,
    other: object = None,
) -> Any:
    """Return the randomized answer of one person who trusts nobody. It is one of the listed
    ``keys``, or a point between the ``bounds``.

    It is for the device of that person: no budget counts it, and each call tells as much again. A
    value that is not listed says a uniform one, or is ``other=``; None or NaN is a uniform point.

    *Formal guarantee.* Each call is epsilon-private in ``value``
    (docs/guarantees/randomized-response.md).

    >>> answer("yes", keys=["no", "yes"], epsilon=50)
    'yes'
    """
    kind, labels, listed = _kind_of(epsilon, keys, bounds, other)
    k = kind.response.k
    if listed is None:
        if isinstance(value, bool | np.bool_) or not isinstance(
            value, int | float | np.number | None
        ):
            raise BadType(f"a number is expected, not {type(value).__name__}.")
        assert kind.bounds is not None
        # Clipped before it is a double, so that no whole number is too long for one.
        lower, upper = kind.bounds
        number = (
            math.nan if value is None or value != value else float(min(max(value, lower), upper))
        )
        places = rounded_places(np.array([number]), kind)
    else:
        vector = prepare(pd.Series(objects([value])), "label")
        places = np.asarray(listed.finder()(vector))
        if other is not None:
            places = np.where(places == 0, k, places.astype(np.int64))
    return labels[int(kind.response.respond(places)[0])]


def reports(
    answers: Iterable[Any],
    *,
    epsilon: Real,
    keys: Any = None,
    bounds: Any = None,
    other: Any = None,
) -> Series:
    """Return the answers of many people as a Series of reports that `estimate` takes. Each answer
    was made by `answer` with the same arguments.

    >>> reports(["no", "yes", "no"], keys=["no", "yes"], epsilon=1).dp
    reports that are true with probability 0.7311, epsilon 1 each
    """
    if isinstance(answers, str | bytes):
        raise BadType("answers must be a list of them.")
    kind, labels, _ = _kind_of(epsilon, keys, bounds, other)
    places = {label: i for i, label in enumerate(labels)}
    index = answers.index if isinstance(answers, pd.Series) else None
    codes = []
    for cell in answers:
        value = (
            None
            if kind.null is not None and pd.api.types.is_scalar(cell) and _pandas.isna(cell)
            else cell
        )
        try:
            codes.append(places[value])
        except (KeyError, TypeError):
            raise BadValue(
                "one of these answers is not among the values that an answer can have."
            ) from None
    name = answers.name if isinstance(answers, pd.Series) else None
    return _reports.make_reports(np.array(codes, dtype=np.int64), kind, labels, None, index, name)


def _kind_of(
    epsilon: object, keys: object, bounds: object, other: object
) -> tuple[ReportKind, list[Any], Keys | None]:
    """Return what the arguments of a randomized answer mean: the kind of reports, the labels of
    answers, and the listed keys. The keys are None for numbers. Arguments that do not fit are
    refused."""
    price = _validate.epsilon(epsilon)
    if (keys is None) == (bounds is None):
        raise BadValue(
            "give keys=[...], the values of an answer, or bounds=(lower, upper) of a number."
        )
    if keys is None:
        if other is not None:
            raise BadValue(
                "other= is a value beside keys=. A number outside its bounds is clipped to them."
            )
        kind = number_kind(price, _validate.bounds(bounds, "the value"))
        return kind, kind.points(), None
    listed = keys_for(keys, Column(kind="label"), "the value")
    labels = labels_of(listed, other)
    return ReportKind(Response(price, len(labels)), listed.null), labels, listed


# Estimates --------------------------------------------------------------------------------------------------


def estimate(
    reports: Series, by: Series | None = None, *, rows: float | None = None
) -> pd.DataFrame:
    """Return an unbiased estimate from many randomized reports. It has the frequency and the count
    of each value, or the mean and the sum of a number.

    ``by`` makes groups. A public Series with the same index gives an estimate for each of its
    values. Another Series of reports gives the share of all rows that have each pair of values
    (categories only). Every number is unbiased over the coins, so that a frequency may lie below 0
    or above 1. ``estimate(...).dp.interval(0.95)`` has the intervals, ``estimate(...).dp.plot()``
    draws them.

    A part of the reports may be estimated by itself if it is chosen by other facts, which are
    public (a region, a date). Never choose by the reports: ``estimate(r[r != "mid"])`` is wrong,
    since what was said depends on the coins, and no value can show that it was done.

    ``rows`` is how many of the reports are of a value, where some are blank. With ``unit=`` and
    ``max_rows`` above 1 a person who has fewer rows makes blanks, and so does a null that is not
    listed. A blank counts as 1/k of each value, and as the middle of the bounds, unless ``rows``
    takes it out. Give the public number, ``len(reports)`` where there are no blanks, or a release
    such as ``p.count("x")``; the interval does not cover the noise of a release.

    *Formal guarantee.* It reads the reports and nothing else, so it costs nothing.

    >>> df = pd.DataFrame({"smoker": ["no", "yes", "no", "no"] * 50})
    >>> p = df.dp.open(100, neighbors="replace-one")
    >>> estimate(p.randomize("smoker", keys=["no", "yes"], epsilon=60)).round(3)
            frequency  count
    smoker
    no           0.75  150.0
    yes          0.25   50.0
    """
    read = _read(reports, "reports")
    kind, codes, k = read.kind, read.codes, read.kind.response.k
    labels = pd.Index(read.labels, name=reports.name, tupleize_cols=False)
    if rows is not None and by is not None:
        raise BadValue("rows= is of all reports together: estimate them without by=.")
    known = None if rows is None else _validate.real(rows, "rows")
    if known is not None and known <= 0:
        raise BadValue(
            f"rows= must be positive: how many of the reports are of a value, not {rows}."
        )
    if by is None:
        if rows is None and read.has_blanks:
            raise BadValue(
                "with unit= and max_rows above 1 a person who has fewer rows makes blank reports, which are no values. Say how "
                "many reports are of a value: estimate(reports, rows=p.count('x')), or rows=len(reports) where there are no "
                "blanks."
            )
        counts = np.bincount(codes, minlength=k).reshape(1, k)
        numbers: list[Any] = ["number" if reports.name is None else reports.name]
        index = pd.Index(numbers, tupleize_cols=False) if kind.bounds else labels
        return _reports.table(_reports.ReportEstimates(kind, counts, None, known), index, read.plan)
    if not isinstance(by, pd.Series):
        raise BadType(
            f"by= must be a Series with the index of the reports, not {type(by).__name__}."
        )
    if kind.people or (get_receipt(by, REPORTS) and _read(by, "by").kind.people):
        raise BadValue(
            "reports of people stand in an order of their own, so nothing else can be put beside them."
        )
    if not reports.index.equals(by.index):
        raise BadValue(
            "by= must have the index of the reports, in the same order. Reports are numbered from 0: use "
            "by.reset_index(drop=True) if its rows are in the order of the table."
        )
    if get_receipt(by, REPORTS) is not None:
        return _pairs(read, _read(by, "by"), labels, by)
    if by.attrs.get(SESSION) is not None:
        raise BadType(
            "by= is a column of a private frame. Groups must be public, or randomized too: p.randomize(...)."
        )
    group, uniques = _pandas.factorize(by, sort=True)
    in_group = group >= 0
    cells = np.bincount(group[in_group] * k + codes[in_group], minlength=len(uniques) * k)
    counts = cells.reshape(len(uniques), k)
    index = pd.Index(uniques, name=by.name)
    if kind.bounds is None:
        index = pd.MultiIndex.from_product([index, labels], names=[by.name, reports.name])
    return _reports.table(_reports.ReportEstimates(kind, counts), index, read.plan)


def _pairs(reports: ReadReports, other: ReadReports, labels: Index, by: Series) -> pd.DataFrame:
    """Return the estimated number of people with each pair of answers, from two randomized columns.
    ``labels`` are the values of the first, and ``by`` is the Series of the second."""
    kind, outer = reports.kind, other.kind
    if kind.bounds is not None or outer.bounds is not None:
        raise BadValue(
            "a mean within randomized groups is a ratio, which nothing estimates without bias. Cut the numbers into bins "
            "and randomize those: p.randomize(p['age'].cut([0, 40, 110]))."
        )
    if get_receipt(reports.series, REPORTS) == get_receipt(by, REPORTS) and reports.series.equals(
        by
    ):
        raise BadValue(
            "by= is these very reports. A table of pairs is for two columns that were randomized apart, each with coins "
            "of its own."
        )
    k = kind.response.k
    cells = np.bincount(other.codes * k + reports.codes, minlength=outer.response.k * k)
    index = pd.MultiIndex.from_product(
        [pd.Index(other.labels, tupleize_cols=False), labels], names=[by.name, labels.name]
    )
    return _reports.table(
        _reports.ReportEstimates(kind, cells.reshape(-1, k), outer.response), index, reports.plan
    )


def _read(series: object, argument: str) -> ReadReports:
    """Return the reports that a Series holds, read by the receipt attached to it. A Series without
    one is refused."""
    if not isinstance(series, pd.Series):
        raise BadType(f"{argument} must be a Series of reports, not {type(series).__name__}.")
    text = get_receipt(series, REPORTS)
    if text is None:
        raise BadValue(
            f"{argument} has no receipt: take what randomize(...) returned, or put answers together with "
            "dpframe.local.reports(answers, keys=[...], epsilon=...)."
        )
    return read_reports(Reports(series, text))
