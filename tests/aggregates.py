"""Cases for the tests of every aggregate, computed from the catalogue.

An aggregate that is added to the catalogue gets a case of each kind by its entry: coverage of its
interval, replay, audit and conformance. If its entry names no method of pandas, `TRUTHS` must say
what it is of clipped values. `ELSEWHERE` names the tests of those that are measured another way.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpframe._plans.aggregates import AGGREGATES, list_verbs
from dpframe._validate import Bounds

ROOT = Path(__file__).parent

# What an aggregate is of clipped values, if pandas has no method for it.
TRUTHS: dict[str, Callable[[pd.Series], float]] = {}

# Tests of intervals that need other frames than those of one value a row.
ELSEWHERE = {"tree": "statistical/test_order.py::test_intervals_of_a_tree_cover_the_quantile"}


def measured_names() -> list[str]:
    """Return the aggregates whose answers have intervals."""
    return [name for name, entry in AGGREGATES.items() if entry.measured]


def has_truth(name: str) -> bool:
    """Return whether pandas or `TRUTHS` tells what an aggregate is of clipped values."""
    return bool(AGGREGATES[name].pandas) or name in TRUTHS


def columns_of(name: str) -> tuple[str, ...]:
    """Return the columns that a case asks an aggregate of: none, x, or x and h."""
    entry = AGGREGATES[name]
    return () if entry.counts_rows else ("x", "h") if entry.of_pairs else ("x",)


def truth_of(name: str, clipped: pd.DataFrame, ddof: int = 1) -> float:
    """Return what pandas computes of clipped values, and NaN where it computes nothing."""
    entry, x = AGGREGATES[name], clipped["x"]
    if entry.counts_rows:
        return float(len(clipped))
    if name in TRUTHS:
        return float(TRUTHS[name](x.dropna()))
    words: dict[str, Any] = {"ddof": ddof} if entry.takes_ddof else {}
    if entry.of_pairs:
        both = clipped[["x", "h"]].dropna()
        if len(both) <= ddof:
            return float("nan")
        return float(getattr(both["x"], entry.pandas)(both["h"], **words))
    if entry.degree == 3 and x.nunique() == 1:  # pandas has 0 only for three values and more
        return 0.0 if x.count() > 2 else float("nan")
    if entry.degree and entry.scales is False and x.count() <= (ddof if words else 0):
        return float("nan")
    found = getattr(x, entry.pandas)(**words)
    return float("nan") if pd.isna(found) else float(found)


def words_of(name: str, leaves: dict[str, Any], bounds: Bounds, ddof: int = 1) -> dict[str, Any]:
    """Return the words of the output that asks an aggregate of the columns of a case."""
    entry, columns = AGGREGATES[name], columns_of(name)
    words: dict[str, Any] = {"expr": leaves[columns[0]]} if columns else {}
    if entry.needs_bounds:
        words["bounds"] = bounds
    if entry.takes_ddof:
        words["ddof"] = ddof
    if entry.of_pairs:
        words |= {"other": leaves[columns[1]], "other_bounds": bounds}
    return words


def releases_of_verbs() -> dict[str, Callable[..., Any]]:
    """Return the calls that release each aggregate of one column, of a frame and of groups."""
    found: dict[str, Callable[..., Any]] = {}
    for verb, entry in list_verbs().items():
        if entry.measured and not (entry.counts or entry.of_pairs):
            found[verb] = lambda p, verb=verb, **w: getattr(p, verb)("x", **w)
            found[f"groupby {verb}"] = lambda p, verb=verb, **w: getattr(p.groupby("g"), verb)(
                "x", **w
            )
    for name, entry in AGGREGATES.items():
        if entry.named_in_agg and entry.measured and not entry.verbs:
            found[f"agg {name}"] = lambda p, name=name, **w: p.agg(a=("x", name), **w)
            found[f"groupby agg {name}"] = lambda p, name=name, **w: p.groupby("g").agg(
                a=("x", name), **w
            )
    return found


def is_there(test: str) -> bool:
    """Return whether the file of a test exists and has that test."""
    file, _, name = test.partition("::")
    path = ROOT / file
    return path.exists() and (not name or f"def {name}(" in path.read_text())


def clip(frame: pd.DataFrame, bounds: Bounds) -> pd.DataFrame:
    """Return the columns of a case, clipped to the bounds."""
    columns = [c for c in ("x", "h") if c in frame]
    return frame.assign(**{c: np.clip(frame[c], *bounds) for c in columns})
