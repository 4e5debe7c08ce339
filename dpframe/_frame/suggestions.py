"""The verbs that suggest limits and bounds: one release of counts of people, and a public rule that
reads it."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, BadValue
from dpframe._expr._within import within
from dpframe._frame.people.steps import keep_one_row
from dpframe._frame.people.within import build_within
from dpframe._frame.selection import selection_of
from dpframe._frame.signatures import verb
from dpframe._frame.tracked import Tracked, keep_rows_where
from dpframe._frame.verbs.groupings import make_levels
from dpframe._groups.combinations import Sought
from dpframe._groups.keys import KeyBy, need_keys
from dpframe._groups.unit import LIMIT, limits_for
from dpframe._plans.aggregates import Output
from dpframe._plans.counts import DISTINCT
from dpframe._plans.plan import Cost, Plan
from dpframe._plans.price import Payment, check_payment
from dpframe._questions.question import Query, Release
from dpframe._statistics.base import LARGEST_POWER, LEAST_POWER, MAGNITUDES, Integers
from dpframe._types import Series
from dpframe._validate import Bounds
from dpframe.mechanisms._base import Noise

if TYPE_CHECKING:
    from dpframe._frame.selection import BoundsLike
    from dpframe._frame.verbs.measure import Measurable

ROW_BINS = LIMIT.bit_length()  # 1, 2, 3 to 4, ..., up to the largest limit there is
RISK = 0.05  # that noise raises a limit
FALSE_BIN = 0.01  # that any bin without people looks as if it had some
NOT_FOUND = (0.0, 1.0)
_CLIPPED = Fraction(1, 10)  # the part of a share that `clipped` takes if no price is given


class Suggested:
    """A suggestion with the plan that was paid for, and the noisy counts it was read from."""

    _plan: Plan
    _table: pd.DataFrame

    @property
    def plan(self) -> Plan:
        """What was asked, with which mechanism, scale and price."""
        return self._plan

    @property
    def cost(self) -> Cost:
        """What this release guarantees by itself: ``epsilon`` and ``delta``. The ledger counts it
        by its accountant."""
        return self._plan.cost

    @property
    def table(self) -> pd.DataFrame:
        """The noisy counts of people that were released. They may be negative."""
        return self._table.copy()

    @abstractmethod
    def _describe(self) -> str:
        """Return the suggestion in words."""

    def _rows_to_show(self) -> pd.DataFrame:
        return self._table

    def __repr__(self) -> str:
        return f"{self._describe()}\n{self._rows_to_show().to_string()}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self._describe())}</p>{self._rows_to_show().to_html()}"


class SuggestedLimits(Suggested, Mapping[str, int]):
    """``max_rows`` and perhaps ``max_groups``: ``p.mean("x", **limits)``, or words of ``open``."""

    def __init__(self, limits: Mapping[str, int], share: float, table: pd.DataFrame, plan: Plan):
        self._limits, self._share, self._table, self._plan = dict(limits), share, table, plan

    def __getitem__(self, word: str) -> int:
        return self._limits[word]

    def __iter__(self) -> Iterator[str]:
        return iter(self._limits)

    def __len__(self) -> int:
        return len(self._limits)

    def _describe(self) -> str:
        """Return a sentence that shows the suggested limits and how sure they are."""
        words = ", ".join(f"{word}={limit}" for word, limit in self._limits.items())
        errors = self._plan.error()
        half = max(errors.values()) if isinstance(errors, dict) else errors
        return (
            f"{words}: the least powers of two of which these counts of people (± {half:.4g}) do not show that more than "
            f"{1 - self._share:.3g} of them exceed it."
        )


class SuggestedBounds(Suggested, tuple[float, float]):
    """``(lower, upper)``, to be given as ``bounds=``."""

    found: bool

    def __new__(
        cls, pair: tuple[float, float], found: bool, table: pd.DataFrame, plan: Plan
    ) -> SuggestedBounds:
        """Make the pair of suggested bounds.

        ``found`` is false if no magnitude had enough people. ``table`` has the noisy number of
        people of each magnitude, and ``plan`` the price.
        """
        self = tuple.__new__(cls, pair)
        self.found, self._table, self._plan = found, table, plan
        return self

    def _rows_to_show(self) -> pd.DataFrame:
        within = (self._table["lower"] >= self[0]) & (self._table["upper"] <= self[1]) & self.found
        return self._table[within].reset_index(drop=True)

    def __getnewargs__(self) -> tuple[object, ...]:
        return tuple(self), self.found, self._table, self._plan

    def _describe(self) -> str:
        """Return a sentence that shows the suggested bounds, or says that they mean nothing."""
        half = self._plan.error()
        if not self.found:
            return (
                f"({self[0]:g}, {self[1]:g}) stands for nothing: no magnitude has more people than noise of this price "
                f"(± {half:.4g}) may seem to have. Pay more, or say what the values can be."
            )
        return f"({self[0]:g}, {self[1]:g}): the outermost magnitudes that have people, each count ± {half:.4g}."


@verb
def suggest_limits(
    self: Tracked,
    by: object = None,
    *,
    keys: object = None,
    share: float = 0.95,
    **payment: Unpack[Payment],
) -> SuggestedLimits:
    """Suggest ``max_rows`` for a session opened with ``unit=``, and ``max_groups`` for groups
    ``by`` some columns.

    Released are noisy counts of people by how many rows they have (with ``by`` in the group where
    they have the most), in bins 1, 2, 3 to 4, 5 to 8 and so on, and with ``by`` also by how many
    groups they are in; the two share the price. Read off is the least limit of which these counts
    do not show, with 95 % confidence, that more than 1 - ``share`` of the people exceed it. So
    noise alone raises no limit but with probability 0.05, and without people each is 1. Another
    ``share`` of the same release is free.

    Limits without ``by`` fit totals, and limits with ``by`` fit these groups; a session that asks
    both gives its questions their own, ``p.count(**of_totals)`` and
    ``p.groupby("month").size(**of_months)``. `over_limits` counts those who are beyond some limits.

    Formal guarantee: epsilon-DP for its price: a person is in one bin of each
    (docs/guarantees/people.md), so no limits are needed. What comes back, its table too, may be
    shown to anyone.

    >>> df = pd.DataFrame({"id": [i // 3 for i in range(3000)], "x": 1.0})
    >>> p = df.dp.open(10, unit="id", bounds={"x": (0, 1)})
    >>> limits = p.suggest_limits(epsilon=1)
    >>> dict(limits)
    {'max_rows': 4}
    >>> p.mean("x", epsilon=5, **limits) > 0.9
    True
    """
    words = check_payment(payment)
    if not self._session.unit.people:
        raise BadValue(
            "suggest_limits is for sessions with unit=: here a row is a person, and counts once."
        )
    if words.get("max_rows") is not None or words.get("max_groups") is not None:
        raise BadValue("suggest_limits finds max_rows= and max_groups=, and takes neither.")
    least = _validate.exact(share, "share")
    if not 0 < least < 1:
        raise BadValue(f"share= of the people must lie between 0 and 1, not {share}.")
    if by is None and keys is not None:
        raise BadValue("keys= are the groups of by=, which is not given.")
    levels: tuple[KeyBy, ...] = ()
    if by is not None:
        listed = make_levels(self, by, keys, None, None, "suggest_limits")
        sought = [level.name for level in listed if isinstance(level, Sought)]
        if sought:
            raise need_keys(sought[0], "suggest_limits")
        levels = cast("tuple[KeyBy, ...]", tuple(listed))
    outputs = [Output("max_rows", "people by rows")]
    if levels:
        outputs.append(Output("max_groups", "people by groups"))

    def finish(release: Release) -> SuggestedLimits:
        """Return the suggested limits, read from the noisy counts of people.

        That is post-processing. A limit is the least that does not cut off more than the part 1 -
        ``least`` of the people, as far as the noise allows to tell.
        """
        limits, columns = {}, {}
        for cell in release.plan.cells:
            counts = release.raw[cell.part][:, 0]
            limits[cell.name] = limit_of(counts, _noise(release, cell.part), float(least))
            columns["people by " + cell.name.removeprefix("max_")] = _people(counts, _ends(counts))
        table = pd.DataFrame(columns).rename_axis("up to")
        return SuggestedLimits(limits, float(least), table, release.plan)

    return cast(
        SuggestedLimits,
        self._ask(Query(tuple(outputs), self._selection.where, levels), finish, payment),
    )


@verb
def over_limits(
    self: Tracked, by: object = None, **payment: Unpack[Payment]
) -> pd.Series[int] | pd.DataFrame:
    """Count the people with more rows than ``max_rows``, so that totals leave some of these out.

    The answer has a count of those who have not (False) and of those who have (True). With ``by``
    it counts those who have more rows in some group, against those who are in more groups than
    ``max_groups``.

    The limits are those of the session, or others that are given: ``p.over_limits(max_rows=64)``.
    Nulls are in no group.

    Formal guarantee: epsilon-DP for its price, which is that of a count: a person is in one cell,
    whatever their rows, and margins are sums of cells (docs/guarantees/people.md).

    >>> df = pd.DataFrame({"id": [1] * 40 + [2, 3], "x": 1.0})
    >>> p = df.dp.open(100, unit="id", max_rows=4, bounds={"x": (0, 1)})
    >>> p.over_limits(epsilon=50)
    more than 4 rows
    False    2 ± 0
    True     1 ± 0
    dtype: int64
    """
    words, session = dict(check_payment(payment)), self._session
    if not session.unit.people:
        raise BadValue(
            "over_limits is for sessions with unit=: here a row is a person, and counts once."
        )
    unit = session.unit.with_limits(
        *limits_for(words.pop("max_rows", None), words.pop("max_groups", None))
    )
    names = [] if by is None else by if isinstance(by, list) else [by]
    exprs = [self._selection.level(name)[0] for name in names]
    if unit.rows is None or (exprs and unit.groups is None):
        missing = "max_rows=" if unit.rows is None else "max_groups="
        raise BadValue(f"over which limit is not known: give {missing}, here or once at open(...).")
    frame = self
    for expr in exprs:
        frame = (
            keep_rows_where(frame, _expr.logical_not(_expr.is_null(expr)))
            if expr.nullable
            else frame
        )
    people, where = unit.people, selection_of(frame).where
    rows = _expr.compare(
        ">", within("size", None, people, where, by=exprs), _expr.constant(unit.rows)
    )
    answers = [False, True]
    if not exprs:
        person: Any = keep_one_row(frame, {f"more than {unit.rows} rows": rows})
        return cast(
            "pd.Series[int]",
            person.groupby(*selection_of(person).columns, keys=answers).size(**words),
        )
    first = within(DISTINCT, exprs[0], people, where)
    if len(exprs) > 1:
        again = build_within(selection_of(frame), "duplicated", None, ("first",), exprs)
        first = within("sum", _expr.logical_not(again), people, where)
    label = f"more than {unit.rows} rows in a group"
    many = f"in more than {unit.groups} groups"
    each: Any = keep_one_row(
        frame,
        {
            label: within("any", rows, people, where),
            many: _expr.compare(">", first, _expr.constant(unit.groups)),
        },
    )
    keys = {label: answers, many: answers}
    return cast(pd.DataFrame, each.crosstab(label, many, margins=True, keys=keys, **words))


@verb
def clipped(
    self: Measurable, column: object, bounds: BoundsLike = None, **payment: Unpack[Payment]
) -> pd.Series[float] | pd.DataFrame:
    """Estimate which share of a column's values its bounds clip: those ``below`` and ``above``
    them.

    Means, sums and the like move such values to the nearest bound, so a large share means that
    their answers are off by more than the noise. The bounds are those of `mean`: declared ones, or
    others that are given. Nulls are no values. The price is a tenth of a share if none is given.

    Formal guarantee: epsilon-DP for its price: two means of conditions, which share it
    (docs/guarantees/mean.md). A person counts for as many rows as in `mean`.

    >>> df = pd.DataFrame({"cost": [50.0, 150.0, 950.0, 150.0] * 250})
    >>> p = df.dp.open(100, bounds={"cost": (0, 200)})
    >>> p.clipped("cost", epsilon=50).round(2)
    below    0.00
    above    0.25
    dtype: float64
    """
    words = dict(check_payment(payment))
    names, _ = self._columns_for(column, "mean", False)
    if len(names) != 1:
        own = [n for n in names if self._selection.expr(n) not in self._session.unit.people]
        raise BadValue(f"clipped takes one column: clipped({(own or list(names))[0]!r}).")
    whole = self._selection.output("mean", names[0], bounds)
    expr, pair = whole.expr, whole.bounds
    assert expr is not None
    assert pair is not None
    outs = []
    for name, sign, bound in (("below", "<", pair.lower), ("above", ">", pair.upper)):
        beyond = _expr.compare(sign, expr, _expr.constant(bound))
        if expr.nullable:
            beyond = _expr.choose(_expr.is_null(expr), None, beyond)
        outs.append(Output(name, "mean", beyond, Bounds(0.0, 1.0)))
    if all(words.get(word) is None for word in ("epsilon", "delta", "within")):
        words["epsilon"] = float(_CLIPPED * self._session.accountant.limits.epsilon) / (
            self._session.terms.queries
        )
    return cast("pd.Series[float]", self._ask_for(outs, words))


@verb
def suggest_bounds(self: Tracked, column: object, **payment: Unpack[Payment]) -> SuggestedBounds:
    """Suggest ``(lower, upper)`` for a column, from one value of each person, drawn from their own.

    Released are noisy counts of people on a fixed grid of magnitudes: zero, and powers of two from
    2**-20 to 2**40 of either sign. The bounds enclose all magnitudes with more people than noise
    alone would show anywhere, but with probability 0.01. Magnitudes that few people have are left
    out, and values beyond the bounds are clipped to them. Where nothing stands out ``found`` is
    False, and (0, 1) is returned.

    Formal guarantee: epsilon-DP for its price: a person is in one bin, whatever their rows, and no
    limits are needed (docs/guarantees/people.md). Bounds found like this are a released fact, no
    declaration.

    >>> df = pd.DataFrame({"age": [20, 45, 90] * 100})
    >>> p = df.dp.open(10)
    >>> pair = p.suggest_bounds("age", epsilon=1)
    >>> tuple(pair)
    (16.0, 128.0)
    >>> 40 < p.mean("age", bounds=pair, epsilon=5) < 60
    True
    """
    check_payment(payment)
    expr, name = self._selection.find_column(column)
    if expr.kind not in ("number", "bool"):
        raise BadType(
            f"column {name!r} is of kind {expr.kind}: bounds are found of numbers only."
            + (
                " Those of times, the first and the last moment, are yours to declare: open(..., bounds={...})."
                if expr.kind == "time"
                else ""
            )
        )
    session = self._session

    def finish(release: Release) -> SuggestedBounds:
        """Read the suggested bounds from the noisy counts of people, which is post-processing.

        The session remembers the bounds that were found.
        """
        counts = release.raw[0][:, 0]
        pair = bounds_of(counts, _noise(release, 0))
        if pair is not None:
            session.released_bounds.add((expr, pair))
        ends = [_interval(place) for place in range(MAGNITUDES)]
        table = pd.DataFrame(ends, columns=["lower", "upper"]).assign(people=_people(counts))
        return SuggestedBounds(pair or NOT_FOUND, pair is not None, table, release.plan)

    query = Query((Output(name, "people by magnitude", expr),), self._selection.where)
    return cast(SuggestedBounds, self._ask(query, finish, payment))


def _noise(release: Release, part: int) -> Noise:
    return cast(Noise, release.plan.parts[part].noise)


def _people(counts: Integers, index: list[int] | None = None) -> Series:
    """Return noisy counts of people as a column of a table, labelled by ``index``.

    They are whole numbers, or doubles where noise is wider than 63 bits. The dtype has nulls, for a
    column shorter than the other.
    """
    wide = counts.dtype == object
    return pd.Series(
        counts.astype(float) if wide else counts, index, dtype="Float64" if wide else "Int64"
    )


def _ends(counts: Integers) -> list[int]:
    return [2**i for i in range(len(counts))]


def limit_of(counts: Integers, noise: Noise, share: float) -> int:
    """Return the suggested limit: a power of two that at most 1 - ``share`` of the people seem to
    exceed.

    It is the least one where the noisy counts do not show that more people exceed it. ``counts``
    has the people by powers of two, with ``noise`` in each count.

    For each j, consider ``share`` times the counts above j, less ``1 - share`` times the others.
    The spread of its noise is known. At the true limit it is at most 0 without noise, so with
    probability 1 - RISK no larger limit is returned.
    """
    people = counts.astype(float)
    for j in range(len(people) - 1):
        weights = np.where(np.arange(len(people)) > j, share, share - 1)
        slack = noise.reach(1 - 2 * RISK, len(weights)) * noise.deviation * math.hypot(*weights)
        if weights @ people <= slack:
            return int(2**j)
    return int(2 ** (len(people) - 1))  # the last bin has all that have more


def bounds_of(counts: Integers, noise: Noise) -> tuple[float, float] | None:
    """Return the ends of the outermost magnitudes that have people, or None without any.

    A magnitude has people if its noisy number is above what noise alone reaches anywhere, but with
    probability FALSE_BIN.
    """
    level = noise.quantile(1 - 2 * FALSE_BIN / MAGNITUDES)
    places = np.flatnonzero(counts.astype(float) > level)
    if not len(places):
        return None
    return _interval(int(places[0]))[0], _interval(int(places[-1]))[1]


def _interval(place: int) -> tuple[float, float]:
    """Return the lower and the upper end of a magnitude, such as 16 and 32.

    ``place`` counts magnitudes from the most negative. The middle one is zero, a single point.
    """
    steps = place - MAGNITUDES // 2
    if not steps:
        return 0.0, 0.0
    power = LEAST_POWER + abs(steps)
    assert power <= LARGEST_POWER
    low, high = math.ldexp(1.0, power - 1), math.ldexp(1.0, power)
    return (low, high) if steps > 0 else (-high, -low)
