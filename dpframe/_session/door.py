"""The door: what is done behind it ends in a result, or in one error that says nothing of the data.

*Formal guarantee.* Whatever code that reads cells raises, and whatever it warns of, the caller sees a `DataError` whose text is a
function of the verb alone, without a cause, a context or a frame of the code that failed. That it failed can still depend on the
data: this is a net under code that does not fail because of a cell, and no leave to do so (docs/explain/limits.md).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

import numpy as np

from dpframe._errors import DataError

P = ParamSpec("P")
T = TypeVar("T")
SWITCH = "DPFRAME_DEBUG"
DEBUGGED = ("debug", "errors show their cause, which may quote cells", SWITCH)  # what the ledger keeps of it
_behind: ContextVar[bool] = ContextVar("behind the door", default=False)


def debugging() -> bool:
    """Whether the owner has set the environment variable that shows causes. Every session that is asked puts it on record."""
    return os.environ.get(SWITCH, "") not in ("", "0")


class _Here(type):
    """Every category is one of `Unheard` behind the door, and none is elsewhere: a filter for one thread of one process."""

    def __subclasscheck__(cls, category: type) -> bool:
        return _behind.get()


class Unheard(Warning, metaclass=_Here):
    """The category of the one filter that is set. `warnings.catch_warnings` would change the filters of other threads."""


def sealed(verb: str, read: Callable[P, T], /, *args: P.args, **words: P.kwargs) -> T:
    """What ``read(*args, **words)`` returns, of which nothing else comes out.

    A MemoryError is an error like any other, since cells can cause it. An interrupt, or another exception that is no `Exception`,
    stays what it is, without the frames that it passed.
    """
    cause: Exception | None = None
    ended: BaseException | None = None
    before = _behind.set(True)
    try:
        if (
            not warnings.filters or warnings.filters[0][2] is not Unheard
        ):  # somebody has put another one in front
            warnings.simplefilter("ignore", Unheard)
        with np.errstate(all="ignore"):
            return read(*args, **words)
    except Exception as error:
        cause = error if debugging() else None
    except BaseException as stop:
        ended = stop
    finally:
        _behind.reset(before)
    # Below the handlers, so that what was raised is no context of what is raised here.
    del args, words, read
    if ended is None:
        raise DataError(told(verb)) from cause
    try:
        ended.__cause__ = ended.__context__ = None
        raise ended.with_traceback(None)
    finally:
        del ended


def told(verb: str) -> str:
    return (
        f"{verb} failed while it read the data. Why is not told, since it may depend on people's cells; what was charged for it "
        f"stays charged. The owner of the data sees the cause with the environment variable {SWITCH}=1, which the ledger keeps."
    )
