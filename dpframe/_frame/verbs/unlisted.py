"""Groups that nobody listed: found and measured in one release; or found first where nothing is measured, but chosen."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, cast

import pandas as pd

from dpframe import _validate
from dpframe._answers.foundkeys import Columns, empty_index, found_keys
from dpframe._encoding import encode
from dpframe._errors import BadType, BadValue, BudgetError, MissingKeys
from dpframe._expr import Expr
from dpframe._frame.groupby import PrivateGroupBy
from dpframe._groups.combinations import Sought, TupleBy, Tuples
from dpframe._groups.keys import By, KeyBy, Keys
from dpframe._plans.output import Output
from dpframe._plans.plan import Plan
from dpframe._plans.price import Payment, checked, spell_out
from dpframe._questions.keysearch import Finding, KeySearch, measured_at_once
from dpframe._questions.question import Release
from dpframe._session.session import Session
from dpframe.mechanisms.threshold import THRESHOLDS

if TYPE_CHECKING:
    from dpframe._frame.frame import PrivateFrame
    from dpframe._session.batch import Batch

_SEARCH_WORDS = ("epsilon", "max_rows", "max_groups")
_SHARE = "a share"
_NO_DELTA = (
    "finding keys that nobody listed takes some delta, and this session keeps none for it, or has none left: list keys=[...], "
    "or open it with delta > 0."
)


class Unlisted:
    """What a tracked frame can be asked about values that nobody listed."""

    _session: Session
    _where: Expr | None
    _explaining: bool
    _batch: Batch | None

    if TYPE_CHECKING:

        def _ask(self, query: Any, finish: Callable[[Release], Any], payment: Mapping[str, Any]) -> Any: ...
        def _answered(self, query: Any, payment: Mapping[str, Any]) -> bool: ...
        def _named(self, column: Any) -> tuple[Expr, Hashable]: ...
        def _keys(self, expr: Expr, name: Hashable, given: Any, verb: str) -> Keys: ...
        def _with(self, **changes: Any) -> PrivateFrame: ...

    def unique(self, column: Any, **payment: Unpack[Payment]) -> pd.Index[Any]:
        """The values of a column that many people have, sorted, to be used as ``keys=``. Of a list of columns: combinations.

        Formal guarantee: (epsilon, delta)-DP for its price, of which delta is the chance that a value shows which one person
        alone has (docs/guarantees/keys.md); left out, it is a share of what the session keeps for such failures. ``explain``
        tells how many people a value needs. Nulls are no value.

        >>> df = pd.DataFrame({"state": ["CA"] * 400 + ["NY"] * 300 + ["XX"]})
        >>> p = df.dp.open(3, delta=1e-6)
        >>> list(p.unique("state", epsilon=0.2))
        ['CA', 'NY']
        """
        columns = [self._named(c) for c in (column if isinstance(column, list) else [column])]
        if not columns:
            raise BadValue("unique needs at least one column.")
        self._findable(columns)
        words = dict(checked(payment))
        given, rule = words.pop("delta", None), self._session.budget.rule
        failure = (
            rule.failure_share(self._session.budget.queries) if given is None else _validate.delta(given)
        )
        if not failure:
            raise BudgetError(_NO_DELTA)
        exprs = tuple(e for e, _ in columns)
        task = KeySearch(exprs, failure, not rule.pairs, self._where)
        return cast("pd.Index[Any]", self._ask(task, lambda r: found_keys(r.raw[0], columns).index, words))

    def _findable(self, columns: Columns) -> None:
        """Refuses columns whose values no search can find, before anything is charged."""
        for expr, name in columns:
            if expr.kind == "other":
                raise BadType(f"column {name!r} has a dtype that cannot be grouped by.")
        people = self._session.unit.people
        if people and set(people) <= {expr for expr, _ in columns}:
            names = [repr(name) for expr, name in columns if expr in people]
            count = f" p.nunique({names[0]}) tells how many people there are," if len(names) == 1 else ""
            raise BadValue(
                f"{' and '.join(names)} name{'s' if len(names) == 1 else ''} the person here: no value is shared by many, so "
                f"none can be found, at any price.{count} p.suggest_limits(...) how many rows and groups a person has."
            )

    def _failure(self, key: Any, payment: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
        """The failure of a question that finds keys, and that of one without Gaussian noise: as its part of epsilon, once and for
        all, so that a repeat has the same plan."""
        budget, failures = self._session.budget, self._session.failures
        epsilon = payment.get("epsilon")
        exact = budget.rule.limits.epsilon / budget.queries if epsilon is None else _validate.epsilon(epsilon)
        found = None if payment.get("fresh") else failures.get((key, exact))
        if found is None:
            rule, state = budget.rule, budget.state
            found = rule.failure_for(exact, state), rule.failure_for(exact, state, pure=True)
        if not self._explaining:
            failures[key, exact] = found
        if not any(found):
            raise BudgetError(_NO_DELTA)
        return found

    def _found(
        self, columns: Columns, payment: Mapping[str, Any]
    ) -> tuple[PrivateFrame, Keys | Tuples] | Plan:
        """The keys of a column, or combinations of several, found once; and the frame on which half of a price is left to
        ask with. Explaining, the plan of the search where there has been none.
        """
        self._findable(columns)
        names = ", ".join(repr(name) for _, name in columns)
        self._not_in_batch(names)
        session, half = self._session, self._with(half=True)
        question = self._sought(columns, payment)
        known = session.found.get(question)
        if known is None:
            words = {w: payment[w] for w in _SEARCH_WORDS if payment.get(w) is not None}
            if payment.get("mechanism") in {kind.name for kind in THRESHOLDS}:
                words["mechanism"] = payment["mechanism"]
            exprs = tuple(e for e, _ in columns)
            failure, _ = self._failure((exprs, self._where), payment)
            task = KeySearch(exprs, failure, not session.budget.rule.pairs, self._where, _SHARE)
            found = half._ask(task, lambda release: found_keys(release.raw[0], columns), words)
            if isinstance(found, Plan):
                return found
            known = found.keys
            if known is None:
                raise MissingKeys(
                    f"no value of {names} was found that enough people share: explain.unique(...) tells how many it takes. "
                    "List keys=[...] instead, or pay more."
                )
            session.found[question] = known
        if isinstance(known, Keys):
            return half, known.named(columns[0][1])
        return half, known.named([name for _, name in columns])

    def _sought(self, columns: Columns, payment: Mapping[str, Any]) -> bytes:
        """What is looked for: the same columns of the same rows, and as many of a person's keys."""
        unit = self._session.limited(cast(Payment, {w: payment.get(w) for w in ("max_rows", "max_groups")}))
        return encode((tuple(e for e, _ in columns), self._where, unit.groups))

    def _not_in_batch(self, names: str) -> None:
        if self._batch is not None:
            raise BadValue(
                f"in plan_ahead the keys of {names} must be known: find them before, keys=p.unique(...)."
            )

    def _measured(
        self, columns: Columns, outputs: tuple[Output, ...], payment: Mapping[str, Any]
    ) -> Plan | Measured | By:
        """The groups of some columns that enough people share, with their answers, in one release for the whole price.

        Where they are known already, and this was not asked before, the grouping by them: then it is an ordinary question.
        """
        self._findable(columns)
        self._not_in_batch(", ".join(repr(name) for _, name in columns))
        words = dict(payment)
        given = words.pop("delta", None)
        exprs, session = tuple(e for e, _ in columns), self._session
        # Counts of rows are one question, whatever verb has them.
        asked = tuple(replace(out, name="size") if out.aggregate == "size" else out for out in outputs)
        asked = asked if len(asked) == 1 else outputs
        if given is None:
            failure, alone = self._failure((exprs, asked, self._where), words)
        else:
            failure = alone = _validate.delta(given)
        if not alone:
            raise BudgetError(_NO_DELTA)
        stated = _SHARE if given is None else ""
        task = Finding(exprs, asked, failure, not session.budget.rule.pairs, self._where, stated, alone)
        question = self._sought(columns, words)
        known = session.found.get(question)
        if known is not None and not self._answered(task, words):
            if isinstance(known, Keys):
                return KeyBy(exprs[0], known.named(columns[0][1]))
            return TupleBy.of(exprs, known.named([name for _, name in columns]))

        def read(release: Release) -> Measured:
            found = found_keys(release.raw[0], columns)
            if found.keys is not None:
                session.found.setdefault(question, found.keys)
            raw = tuple(part[:, found.places] for part in release.raw[1:])
            return Measured(Release(replace(release.plan, groups=len(found.places)), raw), found.index)

        return cast("Plan | Measured", self._ask(task, read, words))

    def _listed_or_found(
        self, expr: Expr, name: Hashable, given: Any, verb: str, payment: Mapping[str, Any]
    ) -> tuple[PrivateFrame, Keys] | Plan:
        """Keys that are given or declared; else those that are found, if the session has delta for it."""
        try:
            return cast("PrivateFrame", self), self._keys(expr, name, given, verb)
        except MissingKeys:
            if not self._searches:
                raise
            return cast("tuple[PrivateFrame, Keys] | Plan", self._found([(expr, name)], payment))

    def _unlisted(self, expr: Expr, name: Hashable, given: Any) -> bool:
        """Whether keys of a column are to be found: nobody listed any, and the session has delta for it."""
        try:
            self._keys(expr, name, given, "value_counts")
        except MissingKeys:
            return self._searches
        return False

    @property
    def _searches(self) -> bool:
        return self._session.budget.rule.failure_share(1) > 0


@dataclass(frozen=True, slots=True)
class Measured:
    """A release of groups that were found with it."""

    release: Release
    index: pd.Index[Any]


class _Wanted(NamedTuple):
    outputs: tuple[Output, ...]
    payment: Mapping[str, Any]


class _Asking(PrivateGroupBy):
    """Groups that are not known yet: a verb asked of them tells what it would ask, and its arguments are checked, for free."""

    def __init__(self, of: UnlistedGroupBy):
        super().__init__(of._frame, (), of._selected, of._single, of._as_index)
        self._names = [
            level.name if isinstance(level, Sought) else name
            for level in of._levels
            for name in ([None] if isinstance(level, Sought) else level.index.names)
        ]

    def _index(self) -> pd.Index[Any]:
        return empty_index(self._names)

    def _ask(self, outputs: list[Output], finish: Any, payment: Mapping[str, Any]) -> Any:
        return _Wanted(tuple(outputs), checked(payment))


class _Told(PrivateGroupBy):
    """Groups that were found and measured: a verb asked of them lays the answer out."""

    def __init__(self, of: UnlistedGroupBy, measured: Measured):
        super().__init__(of._frame, (), of._selected, of._single, of._as_index)
        self._measured_already = measured

    def _index(self) -> pd.Index[Any]:
        return self._measured_already.index

    def _ask(self, outputs: list[Output], finish: Any, payment: Mapping[str, Any]) -> Any:
        return finish(self._measured_already.release)


class UnlistedGroupBy(PrivateGroupBy):
    """Groups by columns whose keys are not listed: one release finds them and answers.

    Where nothing is measured, but chosen (medians and other quantiles), or other columns are listed beside, half of the
    price finds the keys and half asks. The keys that were found are kept for later questions about these columns.
    """

    def __init__(
        self,
        frame: PrivateFrame,
        levels: tuple[By | Sought, ...],
        selected: tuple[Hashable, ...] | None = None,
        single: bool = False,
        as_index: bool = True,
    ):
        super().__init__(frame, (), selected, single, as_index)
        self._levels = levels
        frame._findable(self._columns)
        if len(self._columns) > 1:
            self._all_or_one()

    def __getitem__(self, key: Any) -> UnlistedGroupBy:
        chosen = super().__getitem__(key)
        return UnlistedGroupBy(self._frame, self._levels, chosen._selected, chosen._single, self._as_index)

    @property
    def _columns(self) -> Columns:
        return [(one.expr, one.name) for one in self._levels if isinstance(one, Sought)]

    def _all_or_one(self) -> None:
        sought = [one for one in self._levels if isinstance(one, Sought)]
        if len(sought) < len(self._levels) or any(one.label is not None for one in sought):
            raise MissingKeys(
                "of several columns either all are listed, or one is not, or none is (and without other=): list keys={...} "
                f"for all but one of {', '.join(repr(one.name) for one in sought)}."
            )
        if any(one.dropna is False for one in sought):
            raise BadValue(
                "dropna=False adds no group to combinations that are found: fillna(...) a value of its own."
            )

    @property
    def _at_once(self) -> bool:
        """Whether the groups are just those that are found."""
        levels = self._levels
        return all(isinstance(o, Sought) and o.label is None and o.dropna is not False for o in levels)

    def _answer(self, verb: str, args: tuple[Any, ...], words: Mapping[str, Any]) -> Any:
        wanted = getattr(_Asking(self), verb)(*args, **words)
        if not isinstance(wanted, _Wanted):
            return wanted
        frame, by = self._frame, cast("tuple[By, ...]", ())
        if self._at_once and measured_at_once(wanted.outputs):
            found = frame._measured(self._columns, wanted.outputs, wanted.payment)
            if isinstance(found, Plan):
                return found
            if isinstance(found, Measured):
                return getattr(_Told(self, found), verb)(*args, **words)
            by = (found,)
        else:
            listed = frame._found(self._columns, wanted.payment)
            if isinstance(listed, Plan):
                return listed
            frame, by = listed[0], self._by_found(listed[1])
        groups = PrivateGroupBy(frame, by, self._selected, self._single, self._as_index)
        return getattr(groups, verb)(*args, **words)

    def _by_found(self, keys: Keys | Tuples) -> tuple[By, ...]:
        if isinstance(keys, Tuples):
            return (TupleBy.of([e for e, _ in self._columns], keys),)
        return tuple(one.listed(keys) if isinstance(one, Sought) else one for one in self._levels)

    def __len__(self) -> int:
        raise MissingKeys("the keys of these groups are not known before they are found: p.unique(column).")

    def __repr__(self) -> str:
        return f"PrivateGroupBy by {', '.join(map(str, self._levels))}"


def _later(name: str) -> Callable[..., Any]:
    verb = getattr(PrivateGroupBy, name)

    @functools.wraps(verb)
    def found_first(self: UnlistedGroupBy, *args: Any, **words: Any) -> Any:
        return self._answer(name, args, words)

    found_first.__signature__ = signature(verb)  # type: ignore[attr-defined]  # what help shows
    return found_first


for _name in dir(PrivateGroupBy):
    if not _name.startswith("_") and callable(getattr(PrivateGroupBy, _name)):
        setattr(UnlistedGroupBy, _name, _later(_name))

spell_out(Unlisted)
