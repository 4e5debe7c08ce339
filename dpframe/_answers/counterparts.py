"""Counts and sums behind released means: other readings of the same noisy integers, free.

*Formal guarantee.* Post-processing: a count and a sum are read off the integers that were released
for the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from dpframe._errors import NotOffered
from dpframe._plans.aggregates import AGGREGATES, Cell
from dpframe._plans.plan import Plan

ReadingKind = Literal["count", "sum"]
NEEDS = {"count": {"n"}, "sum": {"n", "t1"}}  # the linear maps that each is read off


def read_cell(cell: Cell, kind: ReadingKind) -> Cell | None:
    """Return the output that reads a count or a sum off the noisy integers of another output.

    ``cell`` is that other output, such as a mean. Return None if its integers do not contain the
    count or sum.
    """
    maps = cell.functionals.keys()
    # A number of rows or values has bounds that are not those of the column.
    if not AGGREGATES[cell.aggregate].needs_bounds:
        return None
    if not NEEDS[kind] <= maps or "s1" in maps or (kind == "sum" and cell.origin):
        return None
    if kind == "sum":
        return replace(cell, aggregate="sum", whole=False)
    return replace(cell, aggregate="count", whole=True, duration=False, origin="")


def read_plan(plan: Plan, kind: ReadingKind, cells: Sequence[Cell]) -> tuple[Plan, list[int]]:
    """Return the plan of the counts or sums behind some outputs, such as means.

    With it come the positions of the outputs that have them. Raise if there are none.
    """
    read = [read_cell(cell, kind) for cell in cells]
    places = [i for i, cell in enumerate(read) if cell is not None]
    if not places:
        raise NotOffered(
            f"this answer has no {kind} behind it: means, variances and what is made of them have "
            f"one. Ask for it, p.{'count()' if kind == 'count' else 'sum(column)'}."
        )
    shown = tuple([cell for cell in read if cell is not None])
    return replace(plan, cells=shown, _draft=None), places
