"""``.dp``: which session a frame belongs to. The accessor holds nothing; pandas makes a new one at
every access."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from html import escape
from typing import Any, NoReturn, cast

import pandas as pd

from dpframe._answers import reports as _reports
from dpframe._answers.accessor import Answer
from dpframe._answers.receipts import ANSWER, ESTIMATE, REPORTS, get_receipt
from dpframe._errors import BadType, BadValue, DPError, LineageError, NoSession, NotOffered
from dpframe._expr._parts import DATE_NAMES, DATES, TEXT
from dpframe._frame import rewrite as _rewrite
from dpframe._frame.column import PrivateColumn
from dpframe._frame.frame import PrivateFrame
from dpframe._frame.groups import PrivateGroupBy
from dpframe._frame.people.groups import PersonGroupBy
from dpframe._frame.selection import Ask
from dpframe._frame.typed.notebooks import let_complete
from dpframe._plans.price import own_errors
from dpframe._refusals import ADVICE
from dpframe._session import session as _session
from dpframe._session.data import elsewhere, root_positions, session_of, sessions
from dpframe._session.opening import open_session, opened, with_words_of
from dpframe._session.terms import Words


class Unopened:
    """``df.dp`` of a frame without a session: `open` is all it can do."""

    def __init__(self, frame: pd.DataFrame):
        self._frame = frame

    @with_words_of(open_session)
    def open(self, words: Words) -> PrivateFrame:
        return PrivateFrame._of(opened(self._frame, words))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in ("interval", "plan", "plans", "cost", "plot", "table"):
            raise NoSession(
                f".dp.{name} belongs to an answer as it was released, and this object has no receipt: if it is an answer, "
                f"this answer was changed. Take answer.dp.{name} before reshaping it (unstack, pd.DataFrame(...))."
                f"{_private_spelling()}"
            )
        spelling = _private_spelling() or _of_its_names(self._frame)
        if spelling:
            raise NoSession(
                f".dp.{name} needs a session, and this frame seems to be made of one that has one.{spelling}"
            )
        raise NoSession(
            f".dp.{name} needs an open session. Open one with the whole budget, for example "
            "df.dp.open(epsilon=1, bounds={'age': (0, 110)}), and ask then."
        )

    def __getitem__(self, key: Any) -> NoReturn:
        self.__getattr__("columns")

    def __repr__(self) -> str:
        return "no dpframe session: open one with df.dp.open(epsilon=..., bounds={...}, keys={...})"


class Unanswerable:
    """``.dp`` of what can answer nothing. It says why when used: pandas' ``dir`` and completion
    build accessors."""

    def __init__(self, reason: DPError):
        self._reason = reason

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise type(self._reason)(*self._reason.args)

    def __repr__(self) -> str:
        return str(self._reason)


class Elsewhere(Unanswerable):
    """``.dp`` of a frame whose session was in another process, and its budget in a file: it can be
    opened again."""

    def __init__(self, frame: pd.DataFrame, reason: DPError):
        super().__init__(reason)
        self._frame = frame

    @with_words_of(open_session)
    def open(self, words: Words) -> PrivateFrame:
        """Opens the session again, as ``open`` of a new frame does; with the ledger and the
        population that the frame names."""
        return PrivateFrame._of(opened(self._frame, words))


def of_frame(
    frame: pd.DataFrame,
) -> PrivateFrame | Unopened | Answer | _reports.Estimated | Unanswerable:
    """What ``df.dp`` is: a session's frame, a receipt, or the door to open a session."""
    if not frame.attrs:
        return Unopened(frame)
    try:
        estimated = get_receipt(frame, ESTIMATE)
        if estimated is not None:
            return _reports.Estimated(frame, estimated)
        receipt = get_receipt(frame, ANSWER)
        if receipt is not None:
            return Answer(frame, receipt)
        session = session_of(frame.attrs)
    except (NoSession, BadValue) as reason:
        return Elsewhere(frame, reason) if elsewhere(frame.attrs) else Unanswerable(reason)
    if session is None:
        return Unopened(frame)
    places = root_positions(frame, session.data.snapshot)
    # Another frame with the very columns of the one that was opened is what pandas returns from a
    # filter that happens to keep every row. To answer it would make the difference between an
    # answer and an error a matter of values, so it is refused like any filtered frame.
    if places is None or (
        frame is not session.data.root() and list(frame.columns) == list(session.leaves)
    ):
        return _Derived(frame, session)
    leaves = list(session.leaves.values())
    opened = PrivateFrame._of(
        session, {name: leaves[i] for name, i in zip(frame.columns, places, strict=True)}
    )
    vars(opened)["_fleeting"] = True
    return opened


class Grouped:
    """``.dp`` of groups that pandas made: it answers nothing, and says which line groups a tracked
    frame.

    The line is written where it is asked, so that what is asked of the groups is in it.
    """

    def __init__(self, groups: Any):
        self._groups = groups

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotOffered(self._said())

    def __getitem__(self, key: Any) -> NoReturn:
        raise NotOffered(self._said())

    def __iter__(self) -> NoReturn:
        raise NotOffered(self._said())

    def _said(self) -> str:
        frame = self._groups.obj
        try:
            session = session_of(frame.attrs)
        except (NoSession, BadValue) as reason:
            return str(reason)
        if session is None:
            return (
                "these groups are of a frame without a session. Open one on the frame, p = df.dp.open(epsilon=1), and group "
                f"that: {_regrouped('p', self._groups)}."
            )
        advice, name = _rewrite.callers_line(_offers(session), session.data.root())
        line = advice.line or _regrouped(f"{name}.dp", self._groups)
        return f"these groups were made by pandas, from rows as they are. Write .dp before them: {line}"

    def __repr__(self) -> str:
        return self._said()


def _regrouped(frame: str, groups: Any) -> str:
    """The start of a line that groups a tracked frame as pandas' groups are."""
    keys = getattr(groups, "keys", None)
    listed = keys if isinstance(keys, list) else [keys]
    known = all(isinstance(key, str) for key in listed)
    return f"{frame}.groupby({keys!r}).size()" if known else f"{frame}.groupby('column').size()"


def of_groups(groups: Any) -> Any:
    """What ``df.groupby("state").dp`` is: a column of that name, or what says how to write it."""
    return groups["dp"] if "dp" in groups.obj else Grouped(groups)


def of_series(series: pd.Series[Any]) -> PrivateColumn | Answer | _reports.Reports | Unanswerable:
    """What ``series.dp`` is: a receipt, or a column that is provably the root's."""
    try:
        return _column_or_answer(series)
    except (NoSession, LineageError, BadValue) as reason:
        return Unanswerable(reason)


def _column_or_answer(series: pd.Series[Any]) -> PrivateColumn | Answer | _reports.Reports:
    reported = get_receipt(series, REPORTS)
    if reported is not None:
        return _reports.Reports(series, reported)
    receipt = get_receipt(series, ANSWER)
    if receipt is not None:
        return Answer(series, receipt)
    session = session_of(series.attrs)
    if session is None:
        raise NoSession(
            f"this Series was made by pandas of a frame that has a session.{spelling}"
            if (spelling := _private_spelling())
            else "this Series has no dpframe session. Open one on its DataFrame: df.dp.open(epsilon=...)."
        )
    places = root_positions(series.to_frame(), session.data.snapshot)
    if places is None:
        raise LineageError(_derived_message(session))
    leaf = list(session.leaves.values())[places[0]]
    return PrivateColumn(PrivateFrame._of(session), leaf, series.name)


class _Derived(PrivateFrame):
    """``df.dp`` of a frame that pandas made from a session's: it finds budget and ledger, and
    answers nothing."""

    def __init__(self, frame: pd.DataFrame, session: _session.Session):
        self._frame = frame
        nothing: Any = _Nothing(self)
        super().__init__(session, nothing, nothing)

    @property
    def _reason(self) -> str:
        return (
            _edited_message()
            if self._session.data.root() is self._frame
            else _derived_message(self._session)
        )

    def _in(self, mode: Ask) -> NoReturn:
        raise LineageError(self._reason)

    @with_words_of(open_session)
    def open(self, words: Words) -> PrivateFrame:
        """A second budget for the rows that pandas made: it needs ``because=``."""
        if words.get("because") is None:
            raise LineageError(self._reason)
        return PrivateFrame._of(opened(self._frame, words))

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
    """What can be asked of a derived frame: whatever looks for it, by whichever verb, is
    refused."""

    def __init__(self, frame: _Derived):
        self._of = frame

    def __getattr__(self, name: str) -> NoReturn:
        raise LineageError(self._of._reason)


def _derived_message(session: _session.Session) -> str:
    return (
        "this frame was derived by pandas from the frame of a session, and nothing in it shows that each row is "
        f"still one person's own. Write the steps after .dp{_how(session)}"
    )


def _private_spelling() -> str:
    """What to write where the line that asks is about a frame of an open session, which pandas has
    left no trace of."""
    for session in list(sessions.values()):
        root = session.data.root()
        if root is not None and (
            _rewrite.callers_line(_offers(session), root)[0] != _rewrite.Advice()
        ):
            return f" Write the steps after .dp{_how(session)}"
    return ""


def _of_its_names(frame: pd.DataFrame) -> str:
    """What to write for a frame with columns of one that has a session, which some earlier line has
    made of it."""
    for session in list(sessions.values()):
        root, names = session.data.root(), set(session.leaves)
        if (
            root is not None
            and root is not frame
            and 2 * len(names & set(frame.columns)) > len(names)
        ):
            _, name = _rewrite.callers_line(_offers(session), root)
            return (
                f" Write the steps after .dp, such as {name}.dp.merge(table, on='key'), or .pivot_table(...), .groupby(...) and "
                "what it asks. (If it is about other people, it has a budget of its own: .dp.open(epsilon=1, ...).)"
            )
    return ""


def _offers(session: _session.Session) -> _rewrite.Offers:
    """What a rewritten line may use."""
    return _rewrite.Offers(
        session.leaves,
        frame=_offered(PrivateFrame) - (set() if session.unit.people else _rewrite.OF_PEOPLE),
        column=_offered(PrivateColumn),
        groups=_offered(PrivateGroupBy),
        text=TEXT,
        date={*DATES, *DATE_NAMES},
        people=_offered(PersonGroupBy),
        unit=[leaf.name for leaf in session.unit.people],
    )


def _how(session: _session.Session) -> str:
    """The line that asks with ``.dp`` on its left; or why there is none, and what can be asked in
    its place."""
    advice, name = _rewrite.callers_line(_offers(session), session.data.root())
    if advice.line:
        return f": {advice.line}"
    columns = session.leaves
    number = next(
        (c for c, e in columns.items() if e.kind == "number" and str(c).isidentifier()), None
    )
    condition = f"{name}.dp.dropna()" if number is None else f'{name}.dp.query("{number} > 0")'
    asked = advice.ending and _rewrite.works(f"{condition}{advice.ending}", name, advice.scope)
    example = f"{condition}{advice.ending}" if asked else f"{condition}.count()"
    step = (
        f". There is no .{advice.step} before a question: {_reason(advice.step, name)}"
        if advice.step
        else ""
    )
    return f", such as {example}{step}"


def _reason(step: str, name: str) -> str:
    """Why a step of pandas has no place before a question."""
    if step in _rewrite.LOOKS:
        return f"it would be about some rows. For made-up rows to look at: {name}.dp.head()."
    return ADVICE.get(step, "it has no private counterpart.")


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


def register() -> None:
    """Has pandas make ``.dp`` here from now on. `import dpframe` leaves that to whoever first reads
    it, to load little itself."""
    for frames, made in ((pd.DataFrame, of_frame), (pd.Series, of_series)):
        accessor: Any = type(vars(frames)["dp"])
        cast(Any, frames).dp = accessor("dp", made)
    let_complete()


for _kind in (Unopened, Elsewhere, _Derived):
    own_errors(_kind, object)
