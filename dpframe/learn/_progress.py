"""The progress of work that takes over a second, shown by tqdm where that is installed.

It shows the number of steps done, of a public total, and nothing that was computed in them: of work whose number of steps the
data decide, such as passes over a source, there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module

AFTER = 1.0  # seconds; shorter work is silent


def progress(total: int, label: str) -> Iterator[int]:
    """The numbers below ``total``, a public number of steps; a terminal or a notebook shows how many are done.

    >>> sum(progress(4, "steps"))
    6
    """
    steps = range(total)
    with suppress(Exception):  # a bar that cannot be drawn is no reason to stop what is paid for
        # Without a terminal, as in a log, there is nothing to update in place.
        bar = import_module("tqdm.auto").tqdm(steps, desc=label, delay=AFTER, disable=None)
        return iter(bar)
    return iter(steps)
