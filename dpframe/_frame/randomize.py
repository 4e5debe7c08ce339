"""Local privacy: the verb `randomize`. Each row's report is made of that row alone."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any, Unpack, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe import _validate
from dpframe._answers import reports as _reports
from dpframe._answers.reports import ReportKind
from dpframe._errors import BadType, BadValue, NotOffered, Refused
from dpframe._expr import Column, Expr
from dpframe._frame.selection import WHOLE, selection_of
from dpframe._frame.signatures import verb
from dpframe._frame.tracked import Tracked
from dpframe._groups.keys import Keys, Word, describe
from dpframe._plans.price import Payment, check_payment
from dpframe._questions import entries as _rows
from dpframe._questions.question import Release
from dpframe._questions.reports import BITS, Randomize, unpack_reports
from dpframe._statistics.base import Grid
from dpframe._types import Array, Series
from dpframe._validate import Bounds
from dpframe.mechanisms.response import MOST, POINTS, Response, points_for, round_to_points


@verb
def randomize(
    self: Tracked,
    column: object,
    keys: object = None,
    bounds: object = None,
    *,
    other: object = None,
    public_index: bool = False,
    **payment: Unpack[Payment],
) -> Series:
    """Return a randomized report for each row, which somebody who is not trusted may hold:
    randomized response.

    Of listed values (``keys=``, given or declared) a report is the true one with probability
    ``e**epsilon / (e**epsilon + k - 1)``, else one of the others. A null, where None is not listed,
    and a value that is not listed report a uniform one, or count as ``other=`` where that names one
    value more. A number within ``bounds`` is rounded at random to a few public points and then
    randomized, so that the mean has no bias. ``dpframe.local.estimate`` makes frequencies, counts
    and means of reports.

    The number of rows has to be public (``neighbors="replace-one"``), and so is their order:
    shuffle rows that stand in an order that tells of the column. Reports are numbered;
    ``public_index=True`` is your word that the labels of the rows are public, and gives them those.
    With ``unit=`` a price is for all reports of a person: ``max_rows`` of them with an equal part
    of it each. Missing rows are like nulls, further ones are left out, and people stand in an order
    drawn at random.

    Reports are drawn once and kept: the same question at the same price returns the same reports.
    ``fresh=True`` draws anew and pays anew.

    Formal guarantee: epsilon-DP for its price, and each report by itself for its own row
    (docs/guarantees/randomized-response.md).

    >>> df = pd.DataFrame({"smoker": ["no", "yes", "no", "no"]})
    >>> p = df.dp.open(100, neighbors="replace-one")
    >>> p.randomize("smoker", keys=["no", "yes"], epsilon=60).tolist()
    ['no', 'yes', 'no', 'no']
    """
    check_payment(payment)
    expr, name = self._selection.find_column(column)
    premises = self._selection.premises
    if not premises.everyone:
        raise Refused(
            "reports of chosen rows would show which rows they are. Randomize the whole column: df.dp.randomize(...). "
            "Groups can be made of what is public or randomized: dpframe.local.estimate(reports, by=...)."
        )
    if premises.order != "own":
        raise NotOffered(
            "reports stand in the order of the rows, and this source gives them in no fixed one. Write its rows to Parquet files "
            "in an order that is public, and open those."
        )
    _validate.flag(public_index, "public_index")
    if keys is not None and bounds is not None:
        raise BadValue(
            "keys= are for values told apart, and bounds= for a number: give one of them."
        )
    declared = isinstance(expr, Column) and expr.position in self._session.keys
    words: tuple[Word, ...] = ()
    if expr.kind != "number" or keys is not None or (declared and bounds is None):
        if bounds is not None:
            raise BadValue(
                f"{name!r} is of kind {expr.kind}: bounds= are for numbers, and keys= for all others."
            )
        task, labels = _of_values(self, expr, name, keys, other)
        if keys is not None:
            words += (
                Word("keys", f"{expr}: {describe(cast(Keys, task.keys).to_json())}", "randomize"),
            )
    else:
        if other is not None:
            raise BadValue(
                "other= is a value beside keys=. A number outside its bounds is clipped to them."
            )
        pair = self._selection.bounds(expr, name, bounds)
        number_kind(Fraction(1), pair)
        task, labels = Randomize(expr, None, None, pair), None
        if bounds is not None:
            words += (Word("bounds", f"{expr}: ({pair.lower:g}, {pair.upper:g})", "randomize"),)
    unit = self._session.unit
    if public_index:
        if unit.people:
            raise BadValue(
                "with unit= reports come in an order of their own: leave public_index= out."
            )
        if self._session.data.source is not None:
            raise BadValue(
                "rows of a source outside of memory have no labels: leave public_index= out."
            )
        words += (Word("index", "the labels of the rows", "randomize"),)
    index = self._session.data.index if public_index else None

    def finish(release: Release) -> Series:
        """Make the Series of randomized reports that the user gets, with its receipt."""
        response: Any = release.plan.parts[0].noise
        null = None if task.keys is None else task.keys.null
        kind = ReportKind(response, null, task.bounds, bool(unit.people))
        codes = unpack_reports(release.raw, kind.response.k)
        shown = kind.points() if labels is None else labels
        view = None if index is None else index.view()
        return _reports.make_reports(codes, kind, shown, release.plan, view, name)

    return cast("pd.Series[Any]", self._ask(task, finish, payment, WHOLE, words))


def _of_values(
    frame: Tracked, expr: Expr, name: Hashable, keys: object, other: object
) -> tuple[Randomize, list[Any]]:
    """Return the question that randomizes listed values, and the values that a report can have.

    ``expr`` is the column, ``name`` its name and ``keys`` the listed values. ``other`` names one
    more value for all that are not listed, or is None.
    """
    listed = selection_of(frame).keys(expr, name, keys, "randomize")
    labels = labels_of(listed, other)
    return Randomize(expr, listed, None if other is None else repr(other), None), labels


def number_kind(each: Fraction, bounds: Bounds) -> ReportKind:
    """Return how reports of a number are made, and refuse bounds that are too narrow.

    The number is rounded to one of a few values between the bounds. How many there are follows from
    ``each``, the epsilon of one report.
    """
    if len(set(ReportKind(Response(each, POINTS), bounds=bounds).points())) < POINTS:
        raise BadValue(
            f"these bounds are too narrow: between {bounds.lower:g} and {bounds.upper:g} are too few doubles."
        )
    return ReportKind(Response(each, points_for(each)), bounds=bounds)


def rounded_places(values: NDArray[np.float64], kind: ReportKind) -> Array:
    """Round numbers at random to the values that a report can have, and return the positions of
    these.

    ``kind`` tells which values these are. NaN has no position.
    """
    assert kind.bounds is not None
    grid = Grid.for_width(Bounds(*kind.bounds), BITS)
    return round_to_points(_rows.count_steps(values, grid), grid.width, kind.response.k)


def labels_of(keys: Keys, other: object) -> list[object]:
    """Return the values that a report can have, in order and with None for null.

    ``keys`` are the listed values. ``other`` names one value more, or is None.
    """
    labels = [None if i == keys.null else key for i, key in enumerate(keys.index)]
    if other is not None:
        if not isinstance(other, str | bool | int | float) or other != other:
            raise BadType("other= is the name of one value more, such as other='other'.")
        if other in labels:
            raise BadValue(f"other={other!r} is one of the keys already.")
        labels.append(other)
    if len(labels) < 2:
        raise BadValue(
            "there is one value only, so a report would say nothing: list at least two, or name other=."
        )
    if len(labels) > MOST:
        raise BadValue(
            f"{len(labels)} values are more than {MOST}: nothing could be estimated. List fewer, and other=."
        )
    return labels
