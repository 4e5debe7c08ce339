"""``df.dp`` and ``series.dp``: which session a frame belongs to.

The accessor holds nothing. pandas makes a new one at every access.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from html import escape
from inspect import isfunction
from typing import Any, Never, NoReturn, cast

import pandas as pd

from dpframe._answers import reports as _reports
from dpframe._answers.accessor import Answer
from dpframe._answers.marks import AnswerSeries
from dpframe._answers.receipts import ANSWER, ESTIMATE, REPORTS, get_receipt
from dpframe._errors import BadType, BadValue, DPError, LineageError, NoSession, NotOffered
from dpframe._expr import Expr
from dpframe._frame.completion import let_complete
from dpframe._frame.frame import with_arguments_of
from dpframe._frame.selection import AnswerMode
from dpframe._frame.signatures import explain_arguments
from dpframe._frame.surface import PrivateColumn, PrivateFrame
from dpframe._session.data import find_root_positions, read_session_place, session_of, sessions
from dpframe._session.opening import find_or_open_session, open_session
from dpframe._session.session import Session
from dpframe._session.terms import Words
from dpframe._types import Series


class Unopened:
    """``df.dp`` of a frame without a session. It can `open` one, and nothing else."""

    def __init__(self, frame: pd.DataFrame):
        self._frame = frame

    @with_arguments_of(open_session)
    def open(self, words: Words) -> PrivateFrame:
        return frame_of_session(find_or_open_session(self._frame, words))

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse any verb or attribute, since this frame has no session.

        The message tells how to get one, or that an answer was changed after its release.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        if name in ("interval", "plan", "plans", "cost", "plot", "table"):
            raise NoSession(
                f".dp.{name} belongs to an answer as it was released, and this object has no "
                "receipt. If it is an answer, it was changed: take "
                f"answer.dp.{name} before reshaping it (unstack, pd.DataFrame(...))."
                f"{_remind_of_sessions('groupby(...).size()')}"
            )
        if _shares_columns_with_a_session(self._frame):
            raise NoSession(
                f".dp.{name} needs a session, and this frame seems to be made from one that has a "
                f"session. Put .dp first: df.dp.merge(table, on='key').{name}(...). If it is about "
                "other people, it has a budget of its own: .dp.open(epsilon=1, ...)."
            )
        raise NoSession(
            f".dp.{name} needs an open session. Open one with the whole budget, for example "
            "df.dp.open(epsilon=1, bounds={'age': (0, 110)}), and ask then."
            f"{_remind_of_sessions(f'query(...).{name}(...)')}"
        )

    def __getitem__(self, key: object) -> NoReturn:
        self.__getattr__("columns")

    def __repr__(self) -> str:
        return "no dpframe session: open one with df.dp.open(epsilon=..., bounds={...}, keys={...})"


class Unanswerable:
    """``.dp`` of an object that can answer nothing.

    It raises when it is used, and not before: pandas' ``dir`` and completion build accessors.
    """

    def __init__(self, reason: DPError):
        self._reason = reason

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise type(self._reason)(*self._reason.args)

    def __repr__(self) -> str:
        return str(self._reason)


class Elsewhere(Unanswerable):
    """``.dp`` of a frame whose session was in another process, with its budget in a file.

    The session can be opened again.
    """

    def __init__(self, frame: pd.DataFrame, reason: DPError):
        super().__init__(reason)
        self._frame = frame

    @with_arguments_of(open_session)
    def open(self, words: Words) -> PrivateFrame:
        """Open the session again, with the ledger and the population that the frame names."""
        return frame_of_session(find_or_open_session(self._frame, words))


class DerivedFrame(PrivateFrame):
    """``df.dp`` of a frame that pandas made from a session's frame.

    It has the budget and the ledger of the session. Every question is refused.
    """

    def __init__(self, frame: pd.DataFrame, session: Session):
        self._frame = frame
        nothing: Any = _RefusesAll(self)
        super().__init__(session, nothing, nothing)

    def _refuse(self, verb: str = "count") -> NoReturn:
        raise LineageError(self._explain_refusal(verb))

    def _explain_refusal(self, verb: str = "count") -> str:
        """Return the message that refuses a question about this frame.

        ``verb`` is the method that the user called. A frame that was edited after opening has a
        message of its own.
        """
        if self._session.data.root() is self._frame:
            return (
                "this frame was edited after its session was opened, and what was declared was the "
                "frame as it stood. Keep what open() returned to ask about that frame, or make the "
                "change before opening."
            )
        return _derived_message(self._session, verb)

    def _in(self, mode: AnswerMode) -> NoReturn:
        self._refuse()

    @with_arguments_of(open_session)
    def open(self, words: Words) -> PrivateFrame:  # type: ignore[override]  # an ordinary frame
        """Open a second budget for the rows that pandas made, which needs ``because=``.

        ``words`` are the arguments of ``df.dp.open``.
        """
        if words.get("because") is None:
            self._refuse()
        return frame_of_session(find_or_open_session(self._frame, words))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        self._refuse()

    def __dir__(self) -> Iterable[str]:
        return object.__dir__(self)

    def _ipython_key_completions_(self) -> list[Hashable]:
        return []

    def __repr__(self) -> str:
        return f"{self._explain_refusal()}\n{self.budget!r}"

    def _repr_html_(self) -> str:
        return f"<div>{escape(self._explain_refusal())}{self.budget._repr_html_()}</div>"


class _RefusesAll:
    """The selection and the mode of a derived frame: whoever reads them is refused."""

    def __init__(self, frame: DerivedFrame):
        self._of = frame

    def __getattr__(self, name: str) -> NoReturn:
        self._of._refuse()


def _refuse_verb(name: str) -> Callable[..., Never]:
    """Return a method for a derived frame that refuses a verb by its name."""

    def verb(self: DerivedFrame, *args: object, **kwargs: object) -> NoReturn:
        self._refuse(name)

    verb.__name__, verb.__doc__ = name, getattr(PrivateFrame, name).__doc__
    return verb


for _name in dir(PrivateFrame):
    if (
        not _name.startswith("_")
        and _name not in ("open", "close")
        and isfunction(getattr(PrivateFrame, _name))
    ):
        setattr(DerivedFrame, _name, _refuse_verb(_name))


class PandasGroups:
    """``.dp`` of groups that pandas made. It answers nothing, and says how to group with ``.dp``.

    The groups are read only when something is asked of them.
    """

    def __init__(self, groups: Any):
        self._groups = groups

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        self._refuse(f"{name}(...)")

    def __getitem__(self, key: object) -> NoReturn:
        self._refuse("size()")

    def __iter__(self) -> NoReturn:
        self._refuse("size()")

    def __repr__(self) -> str:
        return self._explain_refusal("size()")

    def _refuse(self, verb: str) -> NoReturn:
        raise NotOffered(self._explain_refusal(verb))

    def _explain_refusal(self, verb: str) -> str:
        """Return the message that refuses a question about groups made by pandas.

        ``verb`` is the method that the user called, as text. The message shows the line to write
        with ``.dp``.
        """
        try:
            session = session_of(self._groups.obj.attrs)
        except (NoSession, BadValue) as reason:
            return str(reason)
        line = f"{_show_grouping(self._groups)}.{verb}"
        if session is None:
            return (
                "these groups are of a frame without a session. Open one on the frame, p = "
                f"df.dp.open(epsilon=1), and group that: p.{line}."
            )
        return f"these groups were made by pandas. Put .dp first: df.dp.{line}."


def _show_grouping(groups: Any) -> str:
    """Return the step that makes groups of pandas, as it is written after ``p.``."""
    if isinstance(groups, pd.api.typing.Resampler):
        return "resample(...)"
    keys = getattr(groups, "keys", None)
    listed = keys if isinstance(keys, list) else [keys]
    shown = repr(keys) if all(isinstance(key, str) for key in listed) else "'column'"
    column = f"[{groups.obj.name!r}]" if isinstance(groups.obj, pd.Series) else ""
    return f"groupby({shown}){column}"


def of_frame(
    frame: pd.DataFrame,
) -> PrivateFrame | Unopened | Answer | _reports.Estimated | Unanswerable:
    """Return what ``df.dp`` is: a session's frame, a receipt, or the way to open a session."""
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
        return Elsewhere(frame, reason) if read_session_place(frame.attrs) else Unanswerable(reason)
    if session is None:
        return Unopened(frame)
    places = find_root_positions(frame, session.data.snapshot)
    # Another frame with all columns of the opened one is what pandas returns from a filter that
    # happens to keep every row. Answering it would make the difference between an answer and an
    # error depend on values. So it is refused like any filtered frame.
    if places is None or (
        frame is not session.data.root() and list(frame.columns) == list(session.leaves)
    ):
        return DerivedFrame(frame, session)
    leaves = list(session.leaves.values())
    tracked = frame_of_session(
        session, {name: leaves[i] for name, i in zip(frame.columns, places, strict=True)}
    )
    vars(tracked)["_temporary"] = True
    return tracked


def of_groups(groups: Any) -> Any:
    """Return what ``df.groupby("state").dp`` is: a column of that name, or `PandasGroups`."""
    return groups["dp"] if "dp" in groups.obj else PandasGroups(groups)


def of_series(series: Series) -> PrivateColumn | Answer | _reports.Reports | Unanswerable:
    """Return what ``series.dp`` is: the accessor of an answer, or a tracked column of the opened
    frame.

    Any other Series gets an object that raises when it is used.
    """
    try:
        return _column_or_answer(series)
    except (NoSession, LineageError, BadValue) as reason:
        return Unanswerable(reason)


def _column_or_answer(series: Series) -> PrivateColumn | Answer | _reports.Reports:
    """Return the accessor of an answer or of reports, or the tracked column that a Series is.

    Raise for a Series without receipt and session, or if it is not provably a column of the opened
    frame.
    """
    reported = get_receipt(series, REPORTS)
    if reported is not None:
        return _reports.Reports(series, reported)
    receipt = get_receipt(series, ANSWER)
    if receipt is not None:
        return Answer(series, receipt)
    session = session_of(series.attrs)
    if session is None and isinstance(series, AnswerSeries):
        raise BadValue(
            "pandas computed this from an answer, and left its intervals behind. Put .dp first: "
            "answer.dp.rolling(7).mean(), answer.dp.cumsum(), answer.dp.groupby(level=0).sum()."
        )
    if session is None:
        raise NoSession(
            "this Series has no dpframe session. Open one on its DataFrame: "
            f"df.dp.open(epsilon=...).{_remind_of_sessions('groupby(...).size()')}"
        )
    places = find_root_positions(series.to_frame(), session.data.snapshot)
    if places is None:
        raise LineageError(_derived_message(session, "count"))
    leaf = list(session.leaves.values())[places[0]]
    return PrivateColumn(frame_of_session(session), leaf, series.name)


# Messages -----------------------------------------------------------------------------------------


def _derived_message(session: Session, verb: str) -> str:
    """Return the message that refuses a frame that pandas made, with a line to write instead.

    ``verb`` is the verb that was asked.
    """
    number = next(
        (c for c, e in session.leaves.items() if e.kind == "number" and str(c).isidentifier()), None
    )
    rows = "dropna()" if number is None else f'query("{number} > 0")'
    return (
        "this frame was derived by pandas from the frame of a session, and nothing in it shows "
        f"that each row is still one person's own. Put .dp first: df.dp.{rows}.{verb}(...)."
    )


def _remind_of_sessions(line: str) -> str:
    """Return a sentence about frames that pandas made from a session's, if one is open."""
    if not any(session.data.root() is not None for session in list(sessions.values())):
        return ""
    return f" If pandas made this from a frame that has a session, put .dp first: df.dp.{line}."


def _shares_columns_with_a_session(frame: pd.DataFrame) -> bool:
    """Return whether a frame has most columns of another frame that has a session."""
    for session in list(sessions.values()):
        root, names = session.data.root(), set(session.leaves)
        other = root is not None and root is not frame
        if other and 2 * len(names & set(frame.columns)) > len(names):
            return True
    return False


def frame_of_session(
    session: Session, columns: Mapping[Hashable, Expr] | None = None
) -> PrivateFrame:
    """Make the tracked frame of a session.

    ``columns`` are its columns as expressions by name, or None for those of the opened frame.
    """
    return PrivateFrame._of(session, columns)


def private(frame: pd.DataFrame) -> PrivateFrame:
    """Return ``df.dp`` of a frame with a session, typed: pandas-stubs takes ``df.dp`` for a Series.

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
    """Set ``.dp`` of pandas' frames and Series to the accessors of this module.

    ``import dpframe`` leaves that to whoever first reads ``.dp``, so that it loads little itself.
    """
    for kind, accessor in ((pd.DataFrame, of_frame), (pd.Series, of_series)):
        descriptor: Any = type(vars(kind)["dp"])
        cast(Any, kind).dp = descriptor("dp", accessor)
    let_complete()


for _kind in (Unopened, Elsewhere, DerivedFrame):
    explain_arguments(_kind, object)
