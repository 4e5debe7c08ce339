"""The door: code that reads cells runs here, and nothing but its result comes out.

*Formal guarantee.* Code that reads cells may raise or warn. The caller then sees a `DataError`. Its
text is a function of the verb alone. It has no cause, no context and no frame of the code that
failed. That the code failed can still depend on the data: this is a net under code that does not
fail because of a cell, and no permission to do so (docs/explain/limits.md).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np

from dpframe._errors import SWITCH, DataError, debugging

P = ParamSpec("P")
T = TypeVar("T")

_reading: ContextVar[bool] = ContextVar("dpframe reads data", default=False)


class HasVerb(Protocol):
    """A question, which knows the verb that asked it."""

    @property
    def verb(self) -> str: ...


class VerbList(tuple[HasVerb, ...]):
    """Questions that are asked together, shown in an error by the names of their verbs.

    An error names all of them: which one failed would be one more answer.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return ", ".join(dict.fromkeys(question.verb for question in self))


def read_private(
    verb: str | VerbList, read: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call ``read(*args, **kwargs)`` on private data, and let no warning, error text or traceback
    escape.

    Return the result. An error becomes a `DataError` with a fixed text; ``verb`` is the name that
    it tells.

    A MemoryError is treated like other errors, since cells can cause it. An interrupt, or another
    exception that is not an `Exception`, keeps its type. It loses the frames that it passed.
    """
    cause: Exception | None = None
    ended: BaseException | None = None
    reading = _reading.set(True)
    try:
        with _ignore_warnings(), np.errstate(all="ignore"):
            return read(*args, **kwargs)
    except Exception as error:
        cause = error if debugging() else None
    except BaseException as stop:
        ended = stop
    finally:
        _reading.reset(reading)
    # Below the handlers, so that the error of the reading code is not the context of this one.
    del args, kwargs, read
    if ended is None:
        raise DataError(describe_failure(verb)) from cause
    try:
        ended.__cause__ = ended.__context__ = None
        raise ended.with_traceback(None)
    finally:
        del ended


def describe_failure(verb: str | VerbList) -> str:
    """Return the fixed text of the error that is raised when a verb fails while it reads data."""
    return (
        f"{verb} failed while it read the data. The cause is hidden, because it could reveal "
        "people's cells. What was charged stays charged. The owner of the data sees the cause with "
        f"the environment variable {SWITCH}=1, which is put on record in the ledger."
    )


# Warnings -----------------------------------------------------------------------------------------


class _MatchWhileReading:
    """The message pattern of a warnings filter: it matches every text while this thread reads.

    `warnings` asks the pattern of a filter for ``match(text)``. A pattern that answers by the
    thread silences one thread, where `warnings.catch_warnings` would silence all of them.
    """

    pattern = "(?!)"  # the regular expression that matches nothing, for code that lists filters

    def match(self, text: str) -> bool:
        """Return whether the warning comes from a thread that reads data."""
        return _reading.get()


_FILTER: Any = ("ignore", _MatchWhileReading(), Warning, None, 0)


# Python 3.14 and later can keep the filters of `catch_warnings` to one thread by itself.
_FILTERS_ARE_PER_THREAD = bool(getattr(sys.flags, "context_aware_warnings", False))


def _ignore_warnings() -> AbstractContextManager[None]:
    """Return a context manager in which this thread, and threads that share its context, do not
    warn.

    A warning raised while private rows are read could show their cells. Other threads of the user
    go on warning: `warnings.catch_warnings` would silence them, too, before Python 3.14. So one
    filter stays in place, which matches only in threads that read (`_MatchWhileReading`).
    """
    if _FILTERS_ARE_PER_THREAD:
        return warnings.catch_warnings(action="ignore")
    filters: Any = warnings.filters
    if not filters or filters[0] is not _FILTER:  # the first filter that matches decides
        with suppress(ValueError):
            filters.remove(_FILTER)
        filters.insert(0, _FILTER)
    return nullcontext()
