"""Groups that nobody listed: their keys are found first, for half of the price, and then asked about as if listed."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Hashable, Mapping
from decimal import Decimal
from fractions import Fraction
from inspect import signature
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._encoding import encode
from dpframe._errors import BadType, BadValue, BudgetError, MissingKeys
from dpframe._expr import Expr
from dpframe._groupby import PrivateGroupBy
from dpframe._keysearch import KeySearch
from dpframe._plan import Plan
from dpframe._price import Payment, checked, spell_out
from dpframe._query import By, Keys, keys_for
from dpframe._session import Release, Session
from dpframe._tuples import Sought, TupleBy, Tuples
from dpframe.engines._keys import key_of

if TYPE_CHECKING:
    from dpframe._batch import Batch
    from dpframe._private import PrivateFrame

Columns = list[tuple[Expr, Hashable]]
_SEARCH_WORDS = ("epsilon", "max_rows", "max_groups")
_NUMBERS = int | float | Fraction | Decimal | np.number


class Unlisted:
    """What a tracked frame can be asked about values that nobody listed."""

    _session: Session
    _where: Expr | None
    _explaining: bool
    _batch: Batch | None

    if TYPE_CHECKING:

        def _ask(self, query: Any, finish: Callable[[Release], Any], payment: Mapping[str, Any]) -> Any: ...
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
        words = dict(checked(payment))
        given = words.pop("delta", None)
        failure = _validate.delta(given) if given is not None else None
        read = _keys_of if len(columns) == 1 else _tuples_of
        index = self._search(columns, words, failure, lambda r, _: _shown(read(r, columns), columns))
        return cast("pd.Index[Any]", index)

    def _search(
        self,
        columns: Columns,
        payment: Mapping[str, Any],
        failure: Any,
        read: Callable[[Release, Columns], Any],
    ) -> Any:
        for expr, name in columns:
            if expr.kind == "other":
                raise BadType(f"column {name!r} has a dtype that cannot be grouped by.")
        budget = self._session.budget
        share = budget.rule.failure_share(budget.queries) if failure is None else failure
        if not share:
            raise BudgetError(
                "finding keys that nobody listed takes some delta, and this session keeps none for it: list keys=[...], or "
                "open it with delta > 0."
            )
        task = KeySearch(tuple(e for e, _ in columns), share, not budget.rule.pairs, self._where)
        return self._ask(task, lambda release: read(release, columns), payment)

    def _found(
        self, columns: Columns, payment: Mapping[str, Any]
    ) -> tuple[PrivateFrame, Keys | Tuples] | Plan:
        """The keys of a column, or combinations of several, found once; and the frame on which half of a price is left to
        ask with. Explaining, the plan of the search where there has been none.
        """
        names = ", ".join(repr(name) for _, name in columns)
        if self._batch is not None:
            raise BadValue(
                f"in plan_ahead the keys of {names} must be known: find them before, keys=p.unique(...)."
            )
        session, half = self._session, self._with(half=True)
        unit = session.limited(cast(Payment, {w: payment.get(w) for w in ("max_rows", "max_groups")}))
        question = encode((tuple(e for e, _ in columns), self._where, unit.groups))
        known = session.found.get(question)
        if known is None:
            words = {w: payment[w] for w in _SEARCH_WORDS if payment.get(w) is not None}
            if payment.get("mechanism") in ("laplace", "gaussian"):
                words["mechanism"] = payment["mechanism"]
            known = half._search(columns, words, None, _keys_of if len(columns) == 1 else _tuples_of)
            if isinstance(known, Plan):
                return known
            if known is None:
                raise MissingKeys(
                    f"no value of {names} was found that enough people share: explain.unique(...) tells how many it takes. "
                    "List keys=[...] instead, or pay more."
                )
            session.found[question] = known
        if isinstance(known, Keys):
            return half, known.named(columns[0][1])
        return half, known.named([name for _, name in columns])

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

    @property
    def _searches(self) -> bool:
        return self._session.budget.rule.failure_share(1) > 0


def _keys_of(release: Release, columns: Columns) -> Keys | None:
    """The keys that were found, in the order of their values; of two that Python holds for equal the first."""
    ((expr, name),) = columns
    texts = release.raw[0].tolist()
    if not texts:
        return None
    if expr.kind == "text":  # nothing to check
        return Keys(pd.Index([t[1:] for t in texts], name=name), None)
    if expr.kind == "number" and expr.integral:
        numbers = [int(t[1:]) for t in texts]
        if max(map(abs, numbers)) < 2**63:
            return keys_for(np.array(numbers), expr, name)
    return keys_for(list(dict.fromkeys(_key(t, expr) for t in texts)), expr, name)


def _tuples_of(release: Release, columns: Columns) -> Tuples | None:
    rows = [json.loads(text) for text in release.raw[0].tolist()]
    found = dict.fromkeys(tuple(_key(t, e) for t, (e, _) in zip(row, columns, strict=True)) for row in rows)
    return Tuples.of(list(found), [e for e, _ in columns], [n for _, n in columns]) if found else None


def _shown(known: Keys | Tuples | None, columns: Columns) -> pd.Index[Any]:
    names = [name for _, name in columns]
    if known is not None:
        return known.index
    empty: list[Any] = [[] for _ in names]
    return pd.MultiIndex.from_arrays(empty, names=names) if len(names) > 1 else pd.Index([], name=names[0])


def _key(text: str, expr: Expr) -> Any:
    key = key_of(text, getattr(expr, "tz", None))
    return float(key) if expr.kind == "number" and not expr.integral else key


class UnlistedGroupBy(PrivateGroupBy):
    """Groups by a column whose keys are not listed. Half of a question's price finds them, once; half asks.

    The keys that are found are kept for later questions about this column, which pay their own half only.
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

    def __getitem__(self, key: Any) -> UnlistedGroupBy:
        chosen = super().__getitem__(key)
        return UnlistedGroupBy(self._frame, self._levels, chosen._selected, chosen._single, self._as_index)

    def _listed(self, payment: Mapping[str, Any]) -> PrivateGroupBy | Plan:
        frame, by = self._frame, []
        sought = [one for one in self._levels if isinstance(one, Sought)]
        if len(sought) > 1:
            return self._combined(sought, payment)
        for level in self._levels:
            if not isinstance(level, Sought):
                by.append(level)
                continue
            found = self._frame._found([(level.expr, level.name)], payment)
            if isinstance(found, Plan):
                return found
            frame = found[0]
            by.append(level.listed(cast(Keys, found[1])))
        return PrivateGroupBy(frame, tuple(by), self._selected, self._single, self._as_index)

    def _combined(self, sought: list[Sought], payment: Mapping[str, Any]) -> PrivateGroupBy | Plan:
        """Several columns: the combinations that many share, which are fewer than all there could be."""
        if len(sought) < len(self._levels) or any(one.label is not None for one in sought):
            raise MissingKeys(
                "of several columns either all are listed, or one is not, or none is (and without other=): list keys={...} "
                f"for all but one of {', '.join(repr(one.name) for one in sought)}."
            )
        found = self._frame._found([(one.expr, one.name) for one in sought], payment)
        if isinstance(found, Plan):
            return found
        exprs = [one.expr for one in sought]
        tuples = cast(Tuples, found[1]).with_options(exprs, sought[0].sort, sought[0].dropna)
        by = TupleBy.of(exprs, tuples)
        return PrivateGroupBy(found[0], (by,), self._selected, self._single, self._as_index)

    def __len__(self) -> int:
        raise MissingKeys("the keys of these groups are not known before they are found: p.unique(column).")

    def __repr__(self) -> str:
        return f"PrivateGroupBy by {', '.join(map(str, self._levels))}"


def _later(name: str) -> Callable[..., Any]:
    verb = getattr(PrivateGroupBy, name)

    @functools.wraps(verb)
    def found_first(self: UnlistedGroupBy, *args: Any, **words: Any) -> Any:
        # An output of agg may be named like a price word: then it is a pair or a text, and never a number.
        price = {w: words[w] for w in _SEARCH_WORDS if isinstance(words.get(w), _NUMBERS)}
        groups = self._listed({**price, "mechanism": words.get("mechanism")})
        return groups if isinstance(groups, Plan) else getattr(groups, name)(*args, **words)

    found_first.__signature__ = signature(verb)  # type: ignore[attr-defined]  # what help shows
    return found_first


for _name in dir(PrivateGroupBy):
    if not _name.startswith("_") and callable(getattr(PrivateGroupBy, _name)):
        setattr(UnlistedGroupBy, _name, _later(_name))

spell_out(Unlisted)
