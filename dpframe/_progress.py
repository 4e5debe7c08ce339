"""A bar for long work, on stderr, where somebody looks: a terminal or a notebook. How long a loop is, is public."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

_WIDTH = 30
_PATIENCE = 1.0  # seconds until it shows


def watched(stream: TextIO) -> bool:
    """Whether somebody looks: a terminal, or a notebook's stream."""
    return stream.isatty() or type(stream).__module__.startswith("ipykernel")


def progress(steps: Sequence[Any], what: str) -> Iterator[Any]:
    """The steps, with a bar of how many are done once a second has gone by."""
    stream, begun, shown = sys.stderr, time.monotonic(), 0.0
    if stream is None or not watched(stream):
        yield from steps
        return
    for i, step in enumerate(steps):
        now = time.monotonic()
        if now - begun > _PATIENCE and now - shown > 0.2:
            shown = now
            done = _WIDTH * i // len(steps)
            stream.write(f"\r{what} [{'#' * done}{'.' * (_WIDTH - done)}] {i}/{len(steps)}")
            stream.flush()
        yield step
    if shown:
        stream.write(f"\r{what} [{'#' * _WIDTH}] {len(steps)}/{len(steps)}\n")
        stream.flush()
