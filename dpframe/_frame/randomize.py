"""Local privacy: the verb `randomize`, and its task. Each row's report is made of that row alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe import _validate
from dpframe._answers import reports as _reports
from dpframe._answers.reports import Kind
from dpframe._errors import BadType, BadValue, Refused
from dpframe._expr import Column, Expr
from dpframe._groups.keys import KeyBy, Keys, Word, describe
from dpframe._groups.question import Task
from dpframe._groups.unit import Unit
from dpframe._plans.choices import pure
from dpframe._plans.forms import Form
from dpframe._plans.plan import Part, Plan
from dpframe._plans.price import Payment, checked, spell_out
from dpframe._statistics.base import Grid
from dpframe._validate import Bounds
from dpframe.accounting._base import Price
from dpframe.accounting.loss import PureDP
from dpframe.engines import _rows
from dpframe.mechanisms.response import MOST, POINTS, Response, points_for, rounded, worst_spread

if TYPE_CHECKING:
    from dpframe._frame.frame import PrivateFrame
    from dpframe._session.session import Release, Session

BITS = 31  # of the grid on which a number is exact before it is rounded at random


@dataclass(frozen=True)
class Randomize(Task):
    """A report for each row, or as many for each person as one may have rows."""

    expr: Expr
    keys: Keys | None
    other: str | None  # the repr of the label for all values that are not listed
    bounds: Bounds | None
    where: Expr | None = None
    verb: ClassVar[str] = "randomize"

    def to_json(self) -> object:
        return {
            "randomize": self.expr.to_json(),
            "keys": None if self.keys is None else self.keys.to_json(),
            "token": None if self.keys is None else self.keys.token,
            "other": self.other,
            "bounds": None if self.bounds is None else [repr(b) for b in self.bounds],
        }

    def __str__(self) -> str:
        if self.bounds is not None:
            return f"randomize({self.expr}, bounds=({self.bounds.lower:g}, {self.bounds.upper:g}))"
        return f"randomize({self.expr} over {self.values} values)"

    @property
    def values(self) -> int:
        """Of a report, for categories."""
        return 0 if self.keys is None else len(self.keys) + (self.other is not None)

    def response(self, each: Fraction) -> Response:
        """The mechanism at a price of ``each`` for one report."""
        if each < _validate.MIN_EPSILON:
            raise BadValue(
                "a report would have an epsilon below 2**-50. Use a larger epsilon=, or a smaller max_rows=."
            )
        return Response(each, points_for(each) if self.keys is None else self.values)

    def plan(self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]) -> Plan:
        if not unit.replaces:
            raise Refused(
                "a report for each row shows how many rows there are, and in this session that is private "
                "(neighbors='add-remove'). If the number of people is public, say so when you open the session: "
                "open(..., neighbors='replace-one')."
            )
        if price.mechanism != "auto":
            raise BadValue("randomize has its own mechanism (randomized response): leave mechanism= out.")
        epsilon = pure(price)
        rows = unit.reach(None)[0]
        one = self.response(epsilon / rows)
        adds_none: Any = one  # the door leaves it to the task
        part = Part("a report a row", adds_none, 1, 1, 1.0)
        if self.bounds is None:
            others = "the other value" if one.k == 2 else f"one of the {one.k - 1} other values"
            why = f"true with probability {one.truth:.4g}, else {others}"
            # The interval covers what values nobody listed add, so it is that of a share of reports: widest near a half.
            share = min(0.5, one.truth)
            deviation = math.sqrt(share * (1 - share)) / one.kept
        else:
            why = (
                f"rounded to {one.k} points without bias, then a uniform one with probability {one.lies:.4g}"
            )
            deviation = math.sqrt(worst_spread(one)) * (self.bounds.upper - self.bounds.lower)
        if unit.people:
            why += f"; each person has {rows} reports of epsilon {float(one.epsilon):.4g}"
        what = "a frequency" if self.bounds is None else "the mean"
        told = f"at most ± {1.96 * deviation:.4g} / sqrt(n) in {what} of n reports"
        if public_rows:
            told = f"at most ± {1.96 * deviation / math.sqrt(public_rows):.4g} in {what} of all {public_rows} reports"
        words = tuple(map(str, declared))
        return Plan(str(self), unit.neighbors, PureDP(epsilon), Fraction(0), (part,), (), 1, why, words, told)

    def forms(self, plan: Plan, unit: Unit, size: int | None) -> tuple[Form, ...]:
        assert size is not None  # the plan has refused sessions where it is private
        response: Any = plan.parts[0].noise
        reports = size * unit.reach(None)[0]
        return Form((1, _reports.words_of(reports, response.k)), "i"), Form((1, 1), "i", reports)

    def run(self, engine: Any, plan: Plan, unit: Unit) -> tuple[NDArray[Any], ...]:
        response: Any = plan.parts[0].noise
        if self.keys is not None:
            entries, blank = _rows.places(engine, KeyBy(self.expr, self.keys)), 0
            if self.other is not None:
                entries = np.where(entries == 0, response.k, entries.astype(np.int64))
                blank = response.k
        else:
            assert self.bounds is not None
            grid, blank = Grid.for_width(self.bounds, BITS), -1
            entries = _rows.steps(engine, self.expr, grid)
        if unit.people:
            entries = _rows.of_people(engine, unit.people, unit.reach(None)[0], entries, blank)
        width = None if self.keys is not None else grid.width
        return _reports.packed(response.release(entries, width), response.k)


class Randomized:
    """Reports of a tracked frame's rows."""

    _session: Session
    _where: Expr | None
    _declared: tuple[Word, ...]

    if TYPE_CHECKING:

        def _ask(self, query: Task, finish: Callable[[Release], Any], payment: Mapping[str, Any]) -> Any: ...
        def _named(self, column: Any) -> tuple[Expr, Hashable]: ...
        def _keys(self, expr: Expr, name: Hashable, given: Any, verb: str) -> Keys: ...
        def _bounds(self, expr: Expr, name: Hashable, given: Any) -> Bounds: ...
        def _with(self, **changes: Any) -> PrivateFrame: ...

    def randomize(
        self,
        column: Any,
        keys: Any = None,
        bounds: Any = None,
        *,
        other: Any = None,
        public_index: bool = False,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]:
        """A report for each row, which somebody who is not trusted may hold: randomized response.

        Of listed values (``keys=``, given or declared) a report is the true one with probability
        ``e**epsilon / (e**epsilon + k - 1)``, else one of the others. A null, where None is not listed, and a value that
        is not listed report a uniform one, or count as ``other=`` where that names one value more. A number within
        ``bounds`` is rounded at random to a few public points and then randomized, so that the mean has no bias.
        ``dpframe.local.estimate`` makes frequencies, counts and means of reports.

        The number of rows has to be public (``neighbors="replace-one"``), and so is their order: shuffle rows that stand
        in an order that tells of the column. Reports are numbered; ``public_index=True`` is your word that the labels of
        the rows are public, and gives them those. With ``unit=`` a price is for all reports of a person: ``max_rows`` of
        them with an equal part of it each. Missing rows are like nulls, further ones are left out, and people stand in an
        order drawn at random.

        Reports are drawn once and kept: the same question at the same price returns the same reports. ``fresh=True`` draws
        anew and pays anew.

        Formal guarantee: epsilon-DP for its price, and each report by itself for its own row
        (docs/guarantees/randomized-response.md).

        >>> df = pd.DataFrame({"smoker": ["no", "yes", "no", "no"]})
        >>> p = df.dp.open(100, neighbors="replace-one")
        >>> p.randomize("smoker", keys=["no", "yes"], epsilon=60).tolist()
        ['no', 'yes', 'no', 'no']
        """
        checked(payment)
        expr, name = self._named(column)
        if self._where is not None or not self._session.data.everyone:
            raise Refused(
                "reports of chosen rows would show which rows they are. Randomize the whole column: df.dp.randomize(...). "
                "Groups can be made of what is public or randomized: dpframe.local.estimate(reports, by=...)."
            )
        _validate.flag(public_index, "public_index")
        if keys is not None and bounds is not None:
            raise BadValue("keys= are for values told apart, and bounds= for a number: give one of them.")
        declared = isinstance(expr, Column) and expr.position in self._session.keys
        words = self._declared
        if expr.kind != "number" or keys is not None or (declared and bounds is None):
            if bounds is not None:
                raise BadValue(
                    f"{name!r} is of kind {expr.kind}: bounds= are for numbers, and keys= for all others."
                )
            task, labels = self._of_values(expr, name, keys, other)
            if keys is not None:
                words += (Word("keys", f"{expr}: {describe(cast(Keys, task.keys).to_json())}", "randomize"),)
        else:
            if other is not None:
                raise BadValue(
                    "other= is a value beside keys=. A number outside its bounds is clipped to them."
                )
            pair = self._bounds(expr, name, bounds)
            number_kind(Fraction(1), pair)
            task, labels = Randomize(expr, None, None, pair), None
            if bounds is not None:
                words += (Word("bounds", f"{expr}: ({pair.lower:g}, {pair.upper:g})", "randomize"),)
        unit = self._session.unit
        if public_index:
            if unit.people:
                raise BadValue("with unit= reports come in an order of their own: leave public_index= out.")
            words += (Word("index", "the labels of the rows", "randomize"),)
        index = self._session.data.index if public_index else None

        def finish(release: Release) -> pd.Series[Any]:
            response: Any = release.plan.parts[0].noise
            null = None if task.keys is None else task.keys.null
            kind = Kind(response, null, task.bounds, bool(unit.people))
            codes = _reports.unpacked(release.raw, kind.response.k)
            shown = kind.points() if labels is None else labels
            view = None if index is None else index.view()
            return _reports.series_of(codes, kind, shown, release.plan, view, name)

        return cast("pd.Series[Any]", self._with(declared=words)._ask(task, finish, payment))

    def _of_values(self, expr: Expr, name: Hashable, keys: Any, other: Any) -> tuple[Randomize, list[Any]]:
        listed = self._keys(expr, name, keys, "randomize")
        labels = labels_of(listed, other)
        return Randomize(expr, listed, None if other is None else repr(other), None), labels


def number_kind(each: Fraction, bounds: Bounds) -> Kind:
    """Reports of a number: the points it is rounded to follow from the epsilon of a report."""
    if len(set(Kind(Response(each, POINTS), bounds=bounds).points())) < POINTS:
        raise BadValue(
            f"these bounds are too narrow: between {bounds.lower:g} and {bounds.upper:g} are too few doubles."
        )
    return Kind(Response(each, points_for(each)), bounds=bounds)


def rounded_places(values: NDArray[np.float64], kind: Kind) -> NDArray[Any]:
    """Numbers as places on the points of their kind; NaN has none."""
    assert kind.bounds is not None
    grid = Grid.for_width(Bounds(*kind.bounds), BITS)
    return rounded(_rows.steps_of(values, grid), grid.width, kind.response.k)


def labels_of(keys: Keys, other: Any) -> list[Any]:
    """The values of a report in order, null as None."""
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


spell_out(Randomized)
