"""Groups that nobody listed: their keys are found first, for half of the price, and then asked about as if listed."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Hashable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, Unpack, cast

import pandas as pd

from dpframe import _validate
from dpframe._errors import BadType, BadValue, BudgetError, MissingKeys
from dpframe._expr import Expr
from dpframe._groupby import PrivateGroupBy
from dpframe._keysearch import KeySearch
from dpframe._plan import Plan
from dpframe._price import Payment, checked, spell_out
from dpframe._query import KeyBy, Keys, keys_for, with_options
from dpframe._session import Release, Session
from dpframe.engines._keys import key_of

if TYPE_CHECKING:
    from dpframe._batch import Batch
    from dpframe._private import PrivateFrame

Columns = list[tuple[Expr, Hashable]]
_SEARCH_WORDS = ("epsilon", "max_rows", "max_groups")


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
        if isinstance(column, list):
            return cast("pd.Index[Any]", self._search(columns, words, failure, _combinations))

        def one(release: Release, columns: Columns) -> pd.Index[Any]:
            ((expr, name),) = columns
            keys = _found_keys(release, expr, name)
            return pd.Index([], name=name) if keys is None else keys.index

        return cast("pd.Index[Any]", self._search(columns, words, failure, one))

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
        self, expr: Expr, name: Hashable, payment: Mapping[str, Any]
    ) -> tuple[PrivateFrame, Keys] | Plan:
        """The keys of one column, found once; and the frame on which half of a price is left to ask with.

        Explaining, the plan of the search where there has been none.
        """
        if self._batch is not None:
            raise BadValue(
                f"in plan_ahead the keys of {name!r} must be known: find them before, keys=p.unique({name!r})."
            )
        session, half = self._session, self._with(half=True)
        unit = session.limited(cast(Payment, {w: payment.get(w) for w in ("max_rows", "max_groups")}))
        known = session.found.get((expr, self._where, unit.groups))
        if known is None:
            words = {w: payment[w] for w in _SEARCH_WORDS if payment.get(w) is not None}
            known = half._search([(expr, name)], words, None, lambda r, _: _found_keys(r, expr, name))
            if isinstance(known, Plan):
                return known
            if known is None:
                raise MissingKeys(
                    f"no value of {name!r} was found that enough people share: explain.unique({name!r}) tells how many it "
                    "takes. List keys=[...] instead, or pay more."
                )
            session.found[expr, self._where, unit.groups] = known
        return half, known.named(name)

    def _listed_or_found(
        self, expr: Expr, name: Hashable, given: Any, verb: str, payment: Mapping[str, Any]
    ) -> tuple[PrivateFrame, Keys] | Plan:
        """Keys that are given or declared; else those that are found, if the session has delta for it."""
        try:
            return cast("PrivateFrame", self), self._keys(expr, name, given, verb)
        except MissingKeys:
            if not self._searches:
                raise
            return self._found(expr, name, payment)

    @property
    def _searches(self) -> bool:
        return self._session.budget.rule.failure_share(1) > 0


def _found_keys(release: Release, expr: Expr, name: Hashable) -> Keys | None:
    """The keys that were found, in the order of their values; of two that Python holds for equal the first."""
    texts = release.raw[0].tolist()
    if not texts:
        return None
    if expr.kind == "text":  # nothing to check
        return Keys(pd.Index([t[1:] for t in texts], name=name), None)
    return keys_for(list(dict.fromkeys(_key(t, expr) for t in texts)), expr, name)


def _combinations(release: Release, columns: Columns) -> pd.Index[Any]:
    rows = [json.loads(text) for text in release.raw[0].tolist()]
    found = dict.fromkeys(tuple(_key(t, e) for t, (e, _) in zip(row, columns, strict=True)) for row in rows)
    names = [name for _, name in columns]
    if not found:
        return pd.MultiIndex.from_arrays([[] for _ in names], names=names)
    return pd.MultiIndex.from_tuples(list(found), names=names)


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
        levels: list[KeyBy | tuple[Expr, Hashable]],
        options: tuple[bool | None, bool | None],
        selected: tuple[Hashable, ...] | None = None,
        single: bool = False,
        as_index: bool = True,
    ):
        super().__init__(frame, (), selected, single, as_index)
        self._levels = levels
        self._options = options

    def __getitem__(self, key: Any) -> UnlistedGroupBy:
        chosen = super().__getitem__(key)
        return UnlistedGroupBy(
            *(self._frame, self._levels, self._options), chosen._selected, chosen._single, self._as_index
        )

    def _listed(self, payment: Mapping[str, Any]) -> PrivateGroupBy | Plan:
        frame, by = self._frame, []
        for level in self._levels:
            if isinstance(level, KeyBy):
                by.append(level)
                continue
            expr, name = level
            found = self._frame._found(expr, name, payment)
            if isinstance(found, Plan):
                return found
            frame, keys = found
            by.append(KeyBy(expr, with_options(keys, expr, *self._options)))
        return PrivateGroupBy(frame, tuple(by), self._selected, self._single, self._as_index)

    def __len__(self) -> int:
        raise MissingKeys("the keys of these groups are not known before they are found: p.unique(column).")

    def __repr__(self) -> str:
        names = (
            str(one) if isinstance(one, KeyBy) else f"{one[0]} over keys to be found" for one in self._levels
        )
        return f"PrivateGroupBy by {', '.join(names)}"


def _later(name: str) -> Callable[..., Any]:
    verb = getattr(PrivateGroupBy, name)

    @functools.wraps(verb)
    def found_first(self: UnlistedGroupBy, *args: Any, **words: Any) -> Any:
        groups = self._listed({w: words[w] for w in _SEARCH_WORDS if isinstance(words.get(w), int | float)})
        return groups if isinstance(groups, Plan) else getattr(groups, name)(*args, **words)

    found_first.__signature__ = signature(verb)  # type: ignore[attr-defined]  # what help shows
    return found_first


for _name in dir(PrivateGroupBy):
    if not _name.startswith("_") and callable(getattr(PrivateGroupBy, _name)):
        setattr(UnlistedGroupBy, _name, _later(_name))

spell_out(Unlisted)
