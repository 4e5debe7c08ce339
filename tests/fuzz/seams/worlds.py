"""Sizes, threads and kernels: what no answer may depend on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib.util import find_spec

import pytest

from dpframe._cells import threads as threads_module
from dpframe._sizes import SIZES, set_sizes
from dpframe.engines import compiled as compiled_module
from tests.engines.python_kernels import load_python_kernels

FEW = (1, 2, 3, 4, 5, 7, 8, 9, 16, 33)
# Where a size has other values that change the way of code: none at all, or a few bytes.
OTHER: dict[str, tuple[int, ...]] = {
    "threads": (1, 2, 3, 4, 5, 6, 7, 8),
    "memory": (4000, 10_000, 2**30),
    "statement": (300, 1000, 60_000),
    "statement_bins": (1, 3, 256),
    "listed_compared": (0, 1, 4),
    "listed_bisected": (0, 2, 128),
    "encoded_values": (0, 2, 12, 100),
    "table_spare": (0, 1, 4, 2**16),
    "thread_sums": (0, 1, 2**18),
}
# Sums of doubles in other blocks have other last bits, which is no promise: a fit adds noise to an answer that it bounds. And
# noise that is drawn in other blocks is other noise, of the same law.
FREE = (
    "solver_terms",
    "solver_rows",
    "solver_sample",
    "coins",
    "draws",
    "draws_few",
    "tries",
    "tries_few",
    "reports",
)
KERNELS = ("none", "python", "numba")


@dataclass(frozen=True)
class World:
    """Sizes by name, and which kernels there are."""

    sizes: tuple[tuple[str, int], ...] = ()
    kernels: str = "none"

    def __str__(self) -> str:
        words = " ".join(f"{name}={size}" for name, size in self.sizes)
        return f"kernels={self.kernels} {words}".strip()


USUAL = World()


def draw(r: random.Random, kernels: tuple[str, ...] = KERNELS) -> World:
    """Some world: most sizes a few rows."""
    names = [f.name for f in fields(SIZES) if f.name not in FREE]
    kept = r.random() < 0.3
    sizes = {
        name: r.choice(OTHER.get(name, FEW))
        for name in names
        if not (kept and r.random() < 0.5) and name != "kernel_rows"
    }
    sizes.setdefault("threads", r.randint(1, 8))
    chosen = r.choice(tuple(k for k in kernels if k != "numba" or find_spec("numba")))
    sizes["kernel_rows"] = 2**60 if chosen == "none" else r.choice((1, 3))
    return World(tuple(sorted(sizes.items())), chosen)


POOL = ThreadPoolExecutor(128)  # tasks of tasks wait here, too


class Pool:
    """Threads that are there already, in place of new ones for each question. How many run at once is for the tasks to say."""

    def __init__(self, threads: int):
        self.threads = threads

    def __enter__(self) -> ThreadPoolExecutor:
        return POOL

    def __exit__(self, *stopped: object) -> None:
        """Nothing is left to wait for: whoever gave the tasks has asked for their results."""


@contextmanager
def living(world: World) -> Iterator[None]:
    """Every size as it is there."""
    with set_sizes(**dict(world.sizes)), pytest.MonkeyPatch.context() as patch:
        if world.kernels == "python":
            patch.setattr(compiled_module, "load_kernels", load_python_kernels)
            patch.setattr(compiled_module, "kernels_work", lambda: True)
        patch.setattr(threads_module, "ThreadPoolExecutor", Pool)
        yield


def edges(world: World, rows: int) -> list[int]:
    """Places at the edges of blocks, batches and threads of so many rows."""
    known = dict(world.sizes)
    steps = {
        known.get(name, 0)
        for name in ("block", "sum_block", "batch", "key_block", "hash_block", "people_rows")
    }
    found = {0, rows}
    for step in steps:
        if 0 < step <= rows:
            found |= {at + by for at in range(0, rows + 1, step) for by in (-1, 0, 1)}
    threads = known.get("threads", 1)
    found |= {rows * i // threads + by for i in range(threads + 1) for by in (-1, 0, 1)}
    return sorted(at for at in found if 0 <= at <= rows)
