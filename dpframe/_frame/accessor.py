"""``.dp``: which session a frame belongs to. The accessor holds nothing; pandas makes a new one at every access."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from html import escape
from inspect import signature
from typing import Any, NoReturn

import pandas as pd

from dpframe._answers import answer as _release
from dpframe._answers import reports as _reports
from dpframe._answers import unbiased as _unbiased
from dpframe._errors import BadType, BadValue, DPError, LineageError, NoSession
from dpframe._expr import DATE_NAMES, DATES, TEXT
from dpframe._frame import rewrite as _rewrite
from dpframe._frame.column import PrivateColumn
from dpframe._frame.frame import PrivateFrame
from dpframe._frame.groups import PrivateGroupBy
from dpframe._groups.unit import Neighbors
from dpframe._ledger.accountant import Accountant
from dpframe._refusals import ADVICE, own_errors
from dpframe._session import opening as _opening
from dpframe._session import registry as _registry
from dpframe._session import session as _session


class Unopened:
    """``df.dp`` of a frame without a session: `open` is all it can do."""

    def __init__(self, frame: pd.DataFrame):
        self._frame = frame

    def open(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        unit: Any = None,
        max_rows: int | None = None,
        max_groups: int | None = None,
        neighbors: Neighbors = "add-remove",
        bounds: Mapping[Any, tuple[float, float]] | None = None,
        keys: Mapping[Any, Any] | None = None,
        queries: int = 20,
        accountant: str | Accountant | None = None,
        reserve: float | None = None,
        ledger: str | os.PathLike[str] | None = None,
        population: str | None = None,
        version: str | None = None,
        n: int | None = None,
        because: str | None = None,
        **others: Any,
    ) -> PrivateFrame:
        """Open the budgeted session of this frame; the same words again return the session that is there.

        Opened again, a word that is left out stays as it is. The budget and ``unit`` never change; new bounds and keys,
        column by column, limits, ``queries`` and ``n`` are taken: ``df.dp.open(bounds={"cost": (0, 500)})``.

        Formal guarantee: everything released through the session is together (epsilon, delta)-differentially
        private in one row, or in all rows of one person where ``unit`` names them, under the neighbouring relation, given
        that what you declare here is public.

        Without a ledger file the budget lives in this process and ends with it.

        Parameters
        ----------
        epsilon, delta
            The whole budget. With ``delta=0`` the guarantee is pure.
        unit, max_rows, max_groups
            The column, or columns, that name a person who may have many rows, and for how many rows (of a group) and groups
            one person may count. A question may have limits of its own. Without ``unit`` a row is a person.
        neighbors
            ``"add-remove"``: a neighbour has one row more or less. ``"replace-one"``: it differs in one row, and
            the number of rows is public.
        bounds
            Public facts: ``{"age": (0, 110)}``. Values outside are clipped. Never take them from the data. Of a time column
            the first and the last moment, ``("2024-01-01", "2024-12-31")``: rows outside are in no period of `resample`.
        keys
            Public facts: ``{"state": ["CA", "NY"]}``, the groups that may appear, in the order of the answers; of several
            columns together ``{("state", "sex"): [("CA", "F"), ("NY", "M")]}``.
        queries
            A question without a price takes one such share of the budget.
        accountant, reserve
            The rule that adds losses and its part of delta (see `dpframe.Accountant`); or an Accountant that other frames
            share, which brings the budget along.
        ledger, population
            A file that keeps the ledger, and the name of these people in it: the same words in another process, or tomorrow,
            go on with the same budget. Answers on record are free.
        version
            The name of this state of the data. What was answered for another version is not repeated for this one.
        n
            Public: how many people there are. ``within=`` uses it, and a delta that is too large for it is warned of.
        because
            Declares why a second budget on the same rows is right; written in the ledger.

        Examples
        --------
        >>> df = pd.DataFrame({"age": [30, 41, 55], "state": ["CA", "NY", "CA"]})
        >>> p = df.dp.open(1, bounds={"age": (0, 110)}, keys={"state": ["CA", "NY"]})
        >>> p.budget.remaining
        1.0
        """
        terms = {
            name: value
            for name, value in locals().items()
            if name not in ("self", "epsilon", "delta", "others")
        }
        return PrivateFrame._of(_opening.open_session(self._frame, epsilon, delta, **terms, **others))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in ("interval", "plan", "cost", "plot"):
            raise NoSession(
                f".dp.{name} belongs to an answer as it was released, and this object has no receipt: if it is an answer, "
                f"this answer was changed. Take answer.dp.{name} before reshaping it (unstack, pd.DataFrame(...))."
            )
        raise NoSession(
            f".dp.{name} needs an open session. Open one with the whole budget, for example "
            "df.dp.open(epsilon=1, bounds={'age': (0, 110)}), and ask then."
        )

    def __repr__(self) -> str:
        return "no dpframe session: open one with df.dp.open(epsilon=..., bounds={...}, keys={...})"


# Words that nobody knows are taken only to be refused with the nearest one.
_opens: Any = Unopened.open
_words = signature(_opens)
_opens.__signature__ = _words.replace(parameters=[p for n, p in _words.parameters.items() if n != "others"])
del _opens, _words


class Unanswerable:
    """``.dp`` of what can answer nothing. It says why when used: pandas' ``dir`` and completion build accessors."""

    def __init__(self, reason: DPError):
        self._reason = reason

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise type(self._reason)(*self._reason.args)

    def __repr__(self) -> str:
        return str(self._reason)


class Elsewhere(Unanswerable):
    """``.dp`` of a frame whose session was in another process, and its budget in a file: it can be opened again."""

    def __init__(self, frame: pd.DataFrame, reason: DPError):
        super().__init__(reason)
        self._frame = frame

    def open(self, epsilon: float | None = None, delta: float | None = None, **terms: Any) -> PrivateFrame:
        """As ``open`` of a new frame; with the ledger and the population that the frame names."""
        return PrivateFrame._of(_opening.open_session(self._frame, epsilon, delta, **terms))


def of_frame(
    frame: pd.DataFrame,
) -> PrivateFrame | Unopened | _release.Answer | _unbiased.Estimated | Unanswerable:
    """What ``df.dp`` is: a session's frame, a receipt, or the door to open a session."""
    try:
        estimated = _unbiased.receipt_of(frame)
        if estimated is not None:
            return _unbiased.Estimated(frame, estimated)
        receipt = _release.receipt_of(frame)
        if receipt is not None:
            return _release.Answer(frame, receipt)
        session = _registry.find(frame.attrs)
    except (NoSession, BadValue) as reason:
        return Elsewhere(frame, reason) if _registry.elsewhere(frame.attrs) else Unanswerable(reason)
    if session is None:
        return Unopened(frame)
    places = _registry.positions(frame, session)
    if places is None or _could_be_filtered(frame, session):
        return _Derived(frame, session)
    leaves = list(session.leaves.values())
    return PrivateFrame._of(session, {name: leaves[i] for name, i in zip(frame.columns, places, strict=True)})


def _could_be_filtered(frame: pd.DataFrame, session: _session.Session) -> bool:
    """Whether this is another frame with the very columns of the one that was opened.

    pandas returns such a frame from a filter that happens to keep every row. To answer it would make the
    difference between an answer and an error a matter of values, so it is refused like any filtered frame.
    """
    return frame is not session.root() and list(frame.columns) == list(session.leaves)


def of_series(series: pd.Series[Any]) -> PrivateColumn | _release.Answer | _reports.Reports | Unanswerable:
    """What ``series.dp`` is: a receipt, or a column that is provably the root's."""
    try:
        return _column_or_answer(series)
    except (NoSession, LineageError, BadValue) as reason:
        return Unanswerable(reason)


def _column_or_answer(series: pd.Series[Any]) -> PrivateColumn | _release.Answer | _reports.Reports:
    reported = _reports.receipt_of(series)
    if reported is not None:
        return _reports.Reports(series, reported)
    receipt = _release.receipt_of(series)
    if receipt is not None:
        return _release.Answer(series, receipt)
    session = _registry.find(series.attrs)
    if session is None:
        raise NoSession(
            "this Series has no dpframe session. Open one on its DataFrame: df.dp.open(epsilon=...)."
        )
    places = _registry.positions(series.to_frame(), session)
    if places is None:
        raise LineageError(_derived_message(session))
    leaf = list(session.leaves.values())[places[0]]
    return PrivateColumn(PrivateFrame._of(session), leaf, series.name)


class _Derived(PrivateFrame):
    """``df.dp`` of a frame that pandas made from a session's: it finds budget and ledger, and answers nothing."""

    def __init__(self, frame: pd.DataFrame, session: _session.Session):
        self._frame = frame
        nothing: Any = _Nothing(self)
        super().__init__(session, nothing, nothing)

    @property
    def _reason(self) -> str:
        return _edited_message() if self._session.root() is self._frame else _derived_message(self._session)

    def open(self, epsilon: float | None = None, delta: float | None = None, **terms: Any) -> PrivateFrame:
        if terms.get("because") is None:
            raise LineageError(self._reason)
        return PrivateFrame._of(_opening.open_session(self._frame, epsilon, delta, **terms))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise LineageError(self._reason)

    def __dir__(self) -> Iterable[str]:
        return object.__dir__(self)

    def _ipython_key_completions_(self) -> list[Hashable]:
        return []

    def __repr__(self) -> str:
        return f"{self._reason}\n{self.budget!r}"

    def _repr_html_(self) -> str:
        return f"<div>{escape(self._reason)}{self.budget._repr_html_()}</div>"


class _Nothing:
    """What can be asked of a derived frame: whatever looks for it, by whichever verb, is refused."""

    def __init__(self, frame: _Derived):
        self._of = frame

    def __getattr__(self, name: str) -> NoReturn:
        raise LineageError(self._of._reason)


def _derived_message(session: _session.Session) -> str:
    root, columns = session.root(), session.leaves
    offers = _rewrite.Offers(
        columns,
        frame=_offered(PrivateFrame),
        column=_offered(PrivateColumn),
        groups=_offered(PrivateGroupBy),
        text=TEXT,
        date={*DATES, *DATE_NAMES},
    )
    advice, name = _rewrite.callers_line(offers, root)
    number = next((c for c, e in columns.items() if e.kind == "number" and str(c).isidentifier()), None)
    example = f"{name}.dp.dropna().count()" if number is None else f'{name}.dp.query("{number} > 0").count()'
    how = f": {advice.line}" if advice.line else f", such as {example}"
    if advice.step is not None:
        how += f". There is no .{advice.step}: {ADVICE.get(advice.step, 'it has no private counterpart.')}"
    return (
        "this frame was derived by pandas from the frame of a session, and nothing in it shows that each row is "
        f"still one person's own. Write the steps after .dp{how}"
    )


def _offered(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def _edited_message() -> str:
    return (
        "this frame was edited after its session was opened, and what was declared was the frame as it stood. Keep "
        "what open() returned to ask about that frame, or make the change before opening."
    )


def private(frame: pd.DataFrame) -> PrivateFrame:
    """``df.dp`` of a frame with a session, typed: pandas-stubs takes ``df.dp`` for a Series.

    >>> df = pd.DataFrame({"age": [30, 41]})
    >>> opened = df.dp.open(1)
    >>> private(df).budget.epsilon
    1.0
    """
    if not isinstance(frame, pd.DataFrame):
        raise BadType(f"private() takes a DataFrame, not {type(frame).__name__}.")
    found = of_frame(frame)
    if isinstance(found, Unanswerable):
        raise found._reason
    if not isinstance(found, PrivateFrame):
        raise NoSession("this frame has no session. Open one: df.dp.open(epsilon=...).")
    return found


for _kind in (Unopened, Elsewhere, _Derived):
    own_errors(_kind, object)
