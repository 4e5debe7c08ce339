"""Every error dpframe raises on purpose.

::

    DPError ├── NoSession          RuntimeError    the frame has no open session ├── SessionError
    ValueError      a second budget, a closed or forked session, an edited root │   └── LineageError
    a frame that pandas derived: the rows may no longer be people's own ├── BudgetError
    RuntimeError    the budget has no room of that kind │   └── BudgetExceeded
    requested, spent, remaining, difference, what would fit ├── LedgerError        RuntimeError    a
    ledger file that is damaged, locked away, or not dpframe's ├── DataError          RuntimeError
    reading the data failed; the cause is hidden ├── Refused            TypeError       it would hand
    out rows, or it has no price rule │   └── NotOffered     AttributeError  a pandas method that
    has no private counterpart here ├── UnknownColumn      KeyError        no such column; did you
    mean ... ├── BadType            TypeError       an argument of the wrong type, a column of the
    wrong dtype │   └── MissingBounds                  no public bounds, and none can be derived └──
    BadValue           ValueError      an argument out of range
        ├── MissingKeys                    no public list of groups
        └── BadExpression                  a query string outside the row-wise language

Each is also a built-in error, so ``except ValueError`` works as in pandas. A message depends on
arguments, column names and dtypes only: never on a cell, a null or the number of rows. It says what
is wrong, what was given, and what to do.
"""

from __future__ import annotations

import linecache
import os
import sys
import traceback
import warnings
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from difflib import get_close_matches
from importlib import import_module
from types import FrameType

_TRIED = 5  # names that look alike, to find one that is close enough
_FIRST_LETTERS = 3  # that stand for a name
SWITCH = "DPFRAME_DEBUG"  # of those who own the data: causes and ways through the package may quote cells


def debugging() -> bool:
    """Return whether the environment variable is set that shows the causes of errors, which may
    reveal data.

    Every session that is asked puts it on record.
    """
    return os.environ.get(SWITCH, "") not in ("", "0")


class DPError(Exception):
    """The root of the tree above."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that a notebook shows for this error: the user's own line, and the
        message.

        IPython asks an error for it; the way through the package is for those who set
        ``DPFRAME_DEBUG=1``.
        """
        if debugging():
            return traceback.format_exception(self)
        entries = [
            (entry, line)
            for entry, line in traceback.walk_tb(self.__traceback__)
            if not _inside(entry)
        ]
        place = ""
        if entries:
            entry, line = entries[-1]
            name = entry.f_code.co_filename
            text = linecache.getline(name, line).strip()
            place = f"{_cell(name)}, line {line}{f': {text}' if text else ''}"
        return [*([place, ""] if place else []), f"{type(self).__name__}: {self}"]


def _inside(entry: FrameType) -> bool:
    """Return whether a stack frame belongs to this package, or to a library that calls it for the
    user. Short tracebacks leave it out."""
    return str(entry.f_globals.get("__name__", "")).partition(".")[0] in (
        "dpframe",
        "pandas",
        "numpy",
        "IPython",
    )


def _cell(file: str) -> str:
    """Return the name of a source file as a notebook shows it, such as ``Cell In[3]``."""
    with suppress(Exception):  # without a shell
        kind, name = sys.modules["IPython"].get_ipython().compile.format_code_name(file)
        return f"{kind} {name}"
    return f"File {file}"


class NoSession(DPError, RuntimeError):
    """The frame has no open session."""


class SessionError(DPError, ValueError):
    """The session cannot be opened or used like this."""


class LineageError(SessionError):
    """The frame was derived by pandas, so its rows are not provably one person's each."""


class BudgetError(DPError, RuntimeError):
    """The budget has no room of that kind."""


class BudgetExceeded(BudgetError):
    """The price does not fit what is left; nothing was charged."""


class LedgerError(DPError, RuntimeError):
    """The ledger file cannot be trusted or written, so nothing is charged and nothing is
    answered."""


class DataError(DPError, RuntimeError):
    """Reading the data failed. The cause is hidden, because it could reveal cells.

    What was charged stays charged.
    """


class Refused(DPError, TypeError):
    """It would hand out rows, or it looks across people without a price."""


class NotOffered(Refused, AttributeError):
    """A pandas method without a private counterpart."""


class UnknownColumn(DPError, KeyError):
    """A column that there is not."""

    def __str__(self) -> str:  # KeyError would show the repr of the message
        return str(self.args[0])


class BadType(DPError, TypeError):
    """An argument of the wrong type, or a column of the wrong dtype."""


class MissingBounds(BadType):
    """A column without bounds: no public ones were given or declared, and none follow from the
    expression."""


class BadValue(DPError, ValueError):
    """An argument out of range."""


class MissingKeys(BadValue):
    """A grouping without keys: no public list of groups was given or declared."""


class BadExpression(BadValue):
    """A query string outside the row-wise language."""


class PrivacyWarning(UserWarning):
    """Allowed, and probably not what you want. It comes before anything is charged where it
    concerns a charge. That a number turned out to be noise it says after the debit, once: the
    answer is kept, and is free when it is asked again."""


def _list_errors(root: type[BaseException]) -> Iterator[type[BaseException]]:
    """Yield a class of errors and all that are below it."""
    yield root
    for below in root.__subclasses__():
        yield from _list_errors(below)


# A traceback names the module that a user imports them from.
for _error in (*_list_errors(DPError), PrivacyWarning):
    _error.__module__ = "dpframe"


_held: ContextVar[list[str] | None] = ContextVar("held warnings", default=None)


@contextmanager
def warnings_after() -> Iterator[None]:
    """Hold the privacy warnings of a ``with`` block until it has ended. A warning that is turned
    into an error then leaves nothing half done."""
    held: list[str] = []
    token = _held.set(held)
    try:
        yield
    finally:
        _held.reset(token)
    for message in held:
        caution(message)


def caution(message: str) -> None:
    """Issue a privacy warning that points at the user's own line, wherever in the package it came
    up."""
    held = _held.get()
    if held is not None:
        held.append(message)
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("dpframe."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, PrivacyWarning, stacklevel=level)


def with_article(word: str) -> str:
    """Return a word with its article, for a message.

    >>> with_article("int"), with_article("Series")
    ('an int', 'a Series')
    """
    return f"{'an' if word[:1].lower() in 'aeio' or word == 'ndarray' else 'a'} {word}"


def find_close_name(name: object, known: Iterable[Hashable]) -> str | None:
    """Return the known name that was probably meant, whatever its case; None if none is close.

    The first letters of one name alone stand for it.

    >>> find_close_name("Agee", ["age", "cost"]), find_close_name("report", ["plot", "pop"])
    ('age', None)
    >>> find_close_name("eps", ["epsilon", "delta"])
    'epsilon'
    """
    typed = str(name).lower()
    lowered = {str(one).lower(): str(one) for one in known}
    for close in get_close_matches(typed, lowered, n=_TRIED):
        if _count_edits(typed, close) <= max(1, len(typed) // 3):
            return lowered[close]
    begun = [one for one in lowered if one.startswith(typed)]
    return lowered[begun[0]] if len(begun) == 1 and len(typed) >= _FIRST_LETTERS else None


def _count_edits(first: str, second: str) -> int:
    """Return how many letters have to be put in, left out, changed or swapped with the next one.

    >>> _count_edits("aeg", "age"), _count_edits("report", "plot")
    (1, 4)
    """
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        above, row, older = row, [i], before
        for j, other in enumerate(second, 1):
            edits = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == other:
                edits = min(edits, older[j - 2] + 1)
            row.append(edits)
        before = above
    return row[-1]


def did_you_mean(name: Hashable, known: Iterable[Hashable], what: str = "Columns") -> str:
    """Return the end of an error message: ``Did you mean 'age'?``, or a list of the ``known``
    names. ``what`` introduces that list. Column names are public."""
    names = [str(k) for k in known]
    close = find_close_name(name, names)
    if close is not None:
        return f" Did you mean {close!r}?"
    shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
    return f" {what}: {shown}." if names else " The frame has no columns."


def unknown_column(name: Hashable, known: Iterable[Hashable]) -> UnknownColumn:
    return UnknownColumn(f"no column {name!r}.{did_you_mean(name, known)}")


def progress(total: int, label: str) -> Iterator[int]:
    """Yield the numbers below ``total``, with a progress bar in a terminal or a notebook. The bar
    needs tqdm, and appears after a second. ``total`` must be public, since the bar shows it.

    >>> sum(progress(4, "steps"))
    6
    """
    steps = range(total)
    with suppress(Exception):  # a bar that cannot be drawn is no reason to stop what is paid for
        # Without a terminal, as in a log, there is nothing to update in place.
        bar = import_module("tqdm.auto").tqdm(steps, desc=label, delay=1.0, disable=None)
        return iter(bar)
    return iter(steps)
