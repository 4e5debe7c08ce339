"""Many rows at once: numpy, Arrow and compiled kernels let go of Python's lock, so that all
processors work for one question.

*Formal guarantee.* What is found does not depend on the number of threads: each has rows of its
own, and whole numbers are added.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import pairwise
from typing import TypeVar

from dpframe._sizes import SIZES

T = TypeVar("T")
S = TypeVar("S")


def processors() -> int:
    """Return how many threads can run at once."""
    return SIZES.threads or os.cpu_count() or 1


def shares(rows: int, least: int | None = None) -> list[slice]:
    """Return slices that divide the rows among threads, one for each thread that pays.

    ``least`` is the smallest number of rows for which a thread pays; None means the usual one.
    """
    pieces = max(1, min(processors(), rows // (least or SIZES.thread_rows)))
    ends = [rows * i // pieces for i in range(pieces + 1)]
    return [slice(begin, end) for begin, end in pairwise(ends)]


def split_blocks(rows: slice) -> Iterator[slice]:
    """Yield slices that divide a slice of rows into blocks that fit into the processor's cache."""
    for start in range(rows.start, rows.stop, SIZES.block):
        yield slice(start, min(start + SIZES.block, rows.stop))


def side_by_side(task: Callable[[S], T], pieces: Sequence[S]) -> list[T]:
    """Run a task on each piece in threads, and return the results in order.

    The pieces are mostly shares of the rows. Each thread has a copy of this thread's context, so
    that no warning about a value is shown.
    """
    if len(pieces) == 1:
        return [task(pieces[0])]
    with ThreadPoolExecutor(min(len(pieces), processors())) as pool:
        return [
            one.result()
            for one in [pool.submit(copy_context().run, task, piece) for piece in pieces]
        ]
