"""The walk of a question: which files and functions of the package it visits.

    python -m tests.walk          # how many, for each walk
    python -m tests.walk mean     # the functions of one walk, in the order of their first visit, indented by depth

What is imported or cached once is warmed up before, with a table and questions of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import dpframe
from dpframe.datasets import BOUNDS, KEYS, visits
from tests.internals import forget_drafts

PACKAGE = str(Path(dpframe.__file__).parent) + "/"
INSIDE = ("<genexpr>", "<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<module>")


class Visit(NamedTuple):
    file: str
    function: str
    line: int
    depth: int


def visits_of(call: Callable[[], Any], root: str = PACKAGE) -> dict[tuple[str, str], Visit]:
    """The first visit of each function below a folder while something is called; functions without a name are their owner's."""
    seen: dict[tuple[str, str], Visit] = {}

    def counts(frame: FrameType) -> bool:
        return frame.f_code.co_filename.startswith(root) and not frame.f_code.co_qualname.endswith(
            INSIDE
        )

    def depth(frame: FrameType) -> int:
        n, above = 0, frame.f_back
        while above is not None:
            n += counts(above)
            above = above.f_back
        return n

    def trace(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and counts(frame):
            key = (code.co_filename[len(root) :], code.co_qualname)
            if key not in seen:
                seen[key] = Visit(*key, code.co_firstlineno, depth(frame))

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return seen


def walks() -> dict[str, Callable[[], Any]]:
    """What is measured, on tables of their own."""
    words: dict[str, Any] = {"epsilon": 3, "delta": 1e-6, "bounds": BOUNDS, "keys": KEYS}
    warm = visits(50)
    warm.dp.open(**words)
    warm.dp.query("age >= 60").groupby("state").agg(n=("age", "size"), m=("cost", "mean"))
    warm.dp.median("cost")
    warm.dp.unique("diagnosis")
    warm.dp.count()
    unopened, grouped, asked = (
        visits(2000),
        visits(250_000),
        visits(3000),
    )  # the second's groups are no noise
    grouped.dp.open(**words)
    p = asked.dp.open(**words)
    p.count()
    forget_drafts()
    return {
        "open": lambda: unopened.dp.open(**words),
        "mean": lambda: p.mean("cost"),
        "agg": lambda: (
            grouped.dp.query("age >= 65")
            .groupby("state")
            .agg(n=("age", "size"), m=("cost", "mean"))
        ),
    }


def main() -> None:
    for name, call in walks().items():
        seen = visits_of(call).values()
        if name in sys.argv[1:]:
            print(*("  " * v.depth + f"{v.file}:{v.line} {v.function}" for v in seen), sep="\n")
        elif len(sys.argv) == 1:
            print(name, len({v.file for v in seen}), len(seen))


if __name__ == "__main__":
    main()
