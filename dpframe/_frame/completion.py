"""Completion in notebooks: IPython looks at what a line holds only where it knows that looking does
nothing. And what it shows for a verb without its parentheses."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from types import MethodType
from typing import Any

from dpframe._answers.accessor import Answer
from dpframe._frame.column import PrivateColumn
from dpframe._frame.columns.parts import CategoryParts, IsoCalendar, TextParts, TimeParts
from dpframe._frame.frame import PrivateFrame
from dpframe._frame.groups import PrivateGroupBy

# Their attributes and brackets are steps: nothing is read, and nothing is paid. What is called is
# not called for completion, since it may be a question.
_FREE = (
    PrivateFrame,
    PrivateColumn,
    PrivateGroupBy,
    TextParts,
    TimeParts,
    CategoryParts,
    IsoCalendar,
    Answer,
)


def let_complete() -> None:
    """Let IPython complete names behind ``p.explain.`` and ``p["x"].str.``, if it is loaded.

    It looks at what is left of the dot only if it knows that looking is free.
    """
    if "IPython" not in sys.modules:
        return
    with suppress(ImportError):  # versions before 8.6 look at everything or at nothing
        evaluation: Any = import_module("IPython.core.guarded_eval")
        policy = getattr(evaluation, "EVALUATION_POLICIES", {}).get("limited")
        for allowed in ("allowed_getattr", "allowed_getitem"):
            allowed_types: set[Any] = getattr(policy, allowed, set())
            allowed_types.update(_FREE)
    with suppress(ImportError):
        # IPython adds the names of the class to those that dir() lists.
        generics: Any = import_module("IPython.utils.generics")
        generics.complete_object.register(PrivateFrame, _list_names)
    shell: Any = getattr(sys.modules["IPython"], "get_ipython", lambda: None)()
    if shell is not None:
        shell.display_formatter.formatters["text/plain"].for_type(MethodType, _show_method)


def _show_method(method: MethodType, printer: Any, cycle: bool) -> None:
    """Show a verb that was not called in one line, and any other method as Python shows it.

    IPython calls it with its pretty printer. ``cycle`` is true within a container of itself.
    """
    owner, name = method.__self__, method.__name__
    if isinstance(owner, PrivateFrame):
        printer.text(f"p.{name} is a method. Write p.{name}(...), or help(p.{name}).")
    elif isinstance(owner, PrivateColumn):
        line = f"p[{owner.name!r}].{name}"
        printer.text(f"{line} is a method. Write {line}(...), or help({line}).")
    elif isinstance(owner, PrivateGroupBy):
        printer.text(f"{name} of groups is a method. Write p.groupby(...).{name}(...).")
    else:
        printer.text(repr(method))


def _list_names(frame: PrivateFrame, words: list[str]) -> list[str]:
    """Return those of some names that `dir` of a tracked frame lists."""
    listed = set(dir(frame))
    return [word for word in words if word in listed]
