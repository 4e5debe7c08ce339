"""A progress line for long work, in terminals and notebooks and nowhere else.

It shows the number of steps done, of a public total, and nothing that was computed in them.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from types import TracebackType
from typing import Any

EVERY = 0.1  # seconds between two pictures of the bar


class progress:  # used like a function: with progress(100, "epochs") as bar: bar.step()
    """The progress of a loop of ``total`` steps. The total and the steps done are shown, so both must be public."""

    def __init__(self, total: int, label: str):
        self.total, self.label, self.done = total, label, 0
        self._shown_at = -EVERY
        self._handle: Any = None

    def __enter__(self) -> progress:
        # A notebook's own output is updated in place, so that it leaves one line and no stream of them.
        ipython = sys.modules.get("IPython")
        self._notebook = hasattr(ipython and ipython.get_ipython(), "kernel")
        self._terminal = not self._notebook and sys.stderr.isatty()
        return self

    def step(self, n: int = 1) -> None:
        """Counts ``n`` more steps as done."""
        self.done = min(self.done + n, self.total)
        now = time.monotonic()
        if (self._notebook or self._terminal) and (now - self._shown_at >= EVERY or self.done == self.total):
            self._shown_at = now
            self._show(str(self))

    def __str__(self) -> str:
        full = 20 * self.done // max(self.total, 1)
        return f"{self.label} {'█' * full}{'░' * (20 - full)} {self.done}/{self.total}"

    def _show(self, text: str) -> None:
        if self._terminal:
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()
        elif self._handle is None:
            self._handle = import_module("IPython.display").display(
                {"text/plain": text}, raw=True, display_id=True
            )
        else:
            self._handle.update({"text/plain": text}, raw=True)

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        if self._terminal and self._shown_at >= 0:
            sys.stderr.write("\n")
