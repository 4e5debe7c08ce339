"""Reports: what each row says of itself by randomized response. A Series with a receipt that estimates are made from.

A receipt goes with each report and not with all of them together, so a part of the reports keeps it.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._answers.answer import REPORTS
from dpframe._answers.lineage import reading
from dpframe._cells.codec import index_of
from dpframe._errors import BadType, BadValue
from dpframe._plans.plan import Cost, Plan
from dpframe._plans.price import own_errors
from dpframe.mechanisms.response import Response

Codes = NDArray[Any]


@dataclass(frozen=True)
class Kind:
    """What reports are about: public values in order, one of which may be null; or the points of a number's grid."""

    response: Response
    null: int | None = None  # the place of null
    bounds: tuple[float, float] | None = None  # of a number
    people: bool = False  # whether a person has several, which stand in an order of their own

    def to_json(self) -> dict[str, Any]:
        ends = None if self.bounds is None else [repr(b) for b in self.bounds]
        return {**self.response.to_json(), "null": self.null, "bounds": ends, "people": self.people}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Kind:
        lower, upper = map(float, data["bounds"] or (0, 0))
        pair = (lower, upper) if data["bounds"] else None
        return Kind(Response.from_json(data), data["null"], pair, data["people"])

    def points(self) -> list[float]:
        """The values that a report of a number can have."""
        assert self.bounds is not None
        (lower, upper), m = self.bounds, self.response.k - 1
        return [float(Fraction(lower) + (Fraction(upper) - Fraction(lower)) * i / m) for i in range(m + 1)]


def series_of(
    codes: Codes, kind: Kind, labels: Sequence[Any], plan: Plan | None, index: Any, name: Hashable
) -> pd.Series[Any]:
    """Categories, since a mean of raw reports would be biased; null is no category of pandas, and is -1 there."""
    if kind.null is not None:
        table = np.arange(kind.response.k)
        table[kind.null :] -= 1
        table[kind.null] = -1
        codes = table[codes]
    proper = [label for i, label in enumerate(labels) if i != kind.null]
    dtype = pd.CategoricalDtype(index_of(proper, None), ordered=kind.bounds is not None)
    if index is None:
        index = pd.RangeIndex(len(codes))
    reports: pd.Series[Any] = pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), index=index, name=name)
    receipt = {"version": 1, "kind": kind.to_json(), "plan": None if plan is None else plan.to_json()}
    reports.attrs[REPORTS] = json.dumps(receipt, separators=(",", ":"))
    return reports


class Reports:
    """``reports.dp`` of what `PrivateFrame.randomize` returned, or of a part of it."""

    def __init__(self, series: pd.Series[Any], text: str):
        with reading(text, "these reports") as receipt:
            self._kind = Kind.from_json(receipt["kind"])
            plan = receipt["plan"]
            self._plan = None if plan is None else Plan.from_json(plan)
        dtype = series.dtype
        wanted = self._kind.response.k - (self._kind.null is not None)
        if not isinstance(dtype, pd.CategoricalDtype) or len(dtype.categories) != wanted:
            raise BadValue(
                "these reports no longer have the categories that they came with, so their receipt does not describe "
                "them. Use them as they came: a part of the rows is fine, other values are not."
            )
        self._series = series

    @property
    def plan(self) -> Plan:
        """What was asked, with which mechanism and price; the price of all reports together, for each person."""
        if self._plan is None:
            raise BadType("these reports were collected one by one, so no session has a plan for them.")
        return self._plan

    @property
    def cost(self) -> Cost:
        """What all reports of one person guarantee together."""
        if self._plan is None:
            return Cost(float(self._kind.response.epsilon), 0.0)
        return self._plan.cost

    @property
    def truth(self) -> float:
        """The probability that a report is the true value; a number's is rounded to a point first."""
        return self._kind.response.truth

    def _codes(self) -> NDArray[np.int64]:
        codes = self._series.cat.codes.to_numpy().astype(np.int64)
        null = self._kind.null
        if null is None:
            if len(codes) and codes.min() < 0:
                raise BadValue(
                    "some of these reports are null, and null is none of their values. Leave such rows out."
                )
            return codes
        return np.where(codes < 0, null, codes + (codes >= null))

    def _labels(self) -> list[Any]:
        labels = list(self._series.cat.categories)
        if self._kind.null is not None:
            labels.insert(self._kind.null, None)
        return labels

    def __repr__(self) -> str:
        one = self._kind.response
        return (
            f"reports that are true with probability {one.truth:.4g}, epsilon {float(one.epsilon):.4g} each"
        )


own_errors(Reports, object)
