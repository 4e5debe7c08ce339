"""Privacy audit of keys that are found: what one person's own keys do to the answer, and broken copies that are caught.

The claim is H(t) <= failure + the curve of the noise: of any event, one frame's probability exceeds e**epsilon times the
other's by the failure at most. Large failures (0.05) make that visible in a few thousand draws.
"""

from __future__ import annotations

import math
from fractions import Fraction as F
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special

from dpframe._expr import Column
from dpframe._groups.unit import Unit
from dpframe._questions.keysearch import KeySearch
from dpframe._statistics.base import Persons
from dpframe.accounting._filter import Price
from dpframe.engines import person_sums as person_sums_module
from dpframe.engines.pandas import PandasEngine
from dpframe.mechanisms.threshold import TruncatedThreshold
from tests.internals import make_plan

EPSILON, FAILURE = F(1), F(1, 20)
CROWD = [(i, g) for i in range(9) for g in "ab" for _ in range(3)]
PAIRS = {
    "own keys": [(99, g) for g in "xyzw" for _ in range(4)],
    "shared keys": [(99, g) for g in "ab" for _ in range(40)],
    "one of each": [(99, g) for g in "ax"],
}


def frame_of(rows: list[tuple[int, str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["id", "g"]).astype({"g": "str"})


def drawn(
    rows: list[tuple[int, str]], unit: Unit, n: int, change: Any
) -> tuple[np.ndarray, list[str]]:
    """Whether each key is kept, a row a draw; the keys."""
    frame = frame_of(rows)
    plan = make_plan(
        KeySearch((Column.of(1, "g", frame["g"].dtype),), FAILURE, True), unit, Price(EPSILON)
    ).plan
    noise = change(plan.parts[0].noise)
    texts, sums = PandasEngine(frame, b"12345678").occurring(
        (Column.of(1, "g", frame["g"].dtype),), None, unit
    )
    return noise.shows(noise.release(np.tile(sums[Persons()], (1, n, 1)))), [t for (t,) in texts]


def excess(
    pair: str,
    n: int,
    relation: str = "add-remove",
    change: Any = lambda one: one,
    rows: bool = False,
) -> float:
    """A lower bound, at 0.9999, of sup P[S] - e**epsilon Q[S] over a few events, in both directions."""
    unit = (
        Unit(relation)
        if rows
        else Unit(relation, (Column.of(0, "id", np.dtype("int64")),), None, 2)
    )
    with_them = drawn(CROWD + PAIRS[pair], unit, n, change)
    without = drawn(
        CROWD if relation == "add-remove" else [*CROWD, (77, "u"), (77, "v")], unit, n, change
    )
    worst = -math.inf
    for (one, keys), (two, others) in ((with_them, without), (without, with_them)):
        own = [i for i, k in enumerate(keys) if k not in others]
        shared = [(keys.index(k), others.index(k)) for k in keys if k in others]
        shows = one[:, own].any(axis=1)
        events = [(shows, np.zeros(n, dtype=bool))] if own else []
        for i, j in shared:
            events += [(one[:, i] | shows, two[:, j]), (~one[:, i] | shows, ~two[:, j])]
        both = [
            one[:, [i for i, _ in shared]].all(axis=1) | shows,
            two[:, [j for _, j in shared]].all(axis=1),
        ]
        for first, second in [*events, (both[0], both[1])]:
            seen, other = int(first.sum()), int(second.sum())  # Clopper and Pearson, each at 1e-5
            low = special.betaincinv(seen, n - seen + 1, 1e-5) if seen else 0.0
            high = special.betaincinv(other + 1, n - other, 1 - 1e-5) if other < n else 1.0
            worst = max(worst, float(low - math.exp(EPSILON) * high))
    return worst


@pytest.fixture
def size(full):
    return 200_000 if full else 20_000


@pytest.mark.scaled
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("pair", PAIRS)
def test_keys_show_no_more_than_they_cost(pair, relation, size):
    assert excess(pair, size, relation) <= FAILURE


@pytest.mark.scaled
def test_the_audit_sees_most_of_the_failure(size):
    assert excess("own keys", size) >= 0.5 * FAILURE


def lower(one: Any) -> Any:
    return TruncatedThreshold(one.rate, one.cut - 1)


@pytest.mark.scaled
def test_a_threshold_off_by_one_is_caught(size):
    assert excess("own keys", size, change=lower) > FAILURE


@pytest.mark.scaled
def test_half_the_noise_is_caught(size):
    assert (
        excess("own keys", size, change=lambda one: TruncatedThreshold(4 * one.rate, one.cut - 4))
        > FAILURE
    )


@pytest.mark.scaled
def test_rows_taken_for_people_are_caught(size):
    assert excess("own keys", size, rows=True) > FAILURE


@pytest.mark.scaled
def test_more_keys_than_promised_are_caught(size, monkeypatch):
    monkeypatch.setattr(person_sums_module, "within_groups", lambda *_: None)
    assert excess("own keys", size) > FAILURE
