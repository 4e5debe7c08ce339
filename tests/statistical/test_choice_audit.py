"""Choices on neighbouring frames, drawn many times: they lose what they cost, and copies with too little noise are caught."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

from dpframe.mechanisms.selection import ExponentialChoice, NoisyMax, NoisyTop
from tests.frame.test_selections import ASKS, frame, heard
from tests.statistical.bounds import loss_bound

DRAWS = 8_000
LOW, HIGH = (-1.0, -3, False, False, "b"), (9.0, 3, True, True, "a")
# Of many rows one joins, or is exchanged for another: where the choice depends on it the most.
PAIRS: dict[str, tuple[str, list[Any], list[Any], dict[str, Any]]] = {
    "argmax": ("add-remove", [], [HIGH], {}),
    "argmax of columns": (
        "replace-one",
        [(0.0, 0, True, False, "a")],
        [(0.0, 0, False, True, "a")],
        {},
    ),
    "top": ("add-remove", [], [HIGH], {}),
    "revenue": ("add-remove", [], [(3.01, 0, True, True, "a")], {}),
    "revenue, whole": ("replace-one", [LOW], [HIGH], {"mechanism": "exponential"}),
    "distance": ("replace-one", [LOW], [HIGH], {"mechanism": "exponential"}),
    "expression, bool": ("add-remove", [], [(1.5, 0, True, True, "a")], {}),
}


def seen(name: str, part: F = F(1)) -> float:
    """The loss that draws show with confidence, at a price of 1, with noise of ``part`` of the scale it should have."""
    neighbors, one, two, words = PAIRS[name]
    sides = []
    for rows in (one, two):
        noise, scores = heard(ASKS[name], frame(rows), neighbors, **words)
        rest = {"rounds": noise.rounds} if isinstance(noise, NoisyTop) else {}
        mechanism = type(noise)(noise.rate / part, **rest)
        array = np.array([scores])
        drawn = [mechanism.release(array)[0] for _ in range(DRAWS)]
        base = len(scores) ** np.arange(len(drawn[0]))
        sides.append((np.array(drawn) @ base)[:, None].astype(float))
    # A feature for each outcome: the bound looks at tails and at single values of every feature.
    return max(loss_bound(*sides), loss_bound(*sides[::-1]))


@pytest.mark.parametrize("name", PAIRS)
def test_choices_lose_no_more_than_they_cost(name):
    assert seen(name) <= 1


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("argmax of columns", F(1, 2)),
        # The losses of the exponential mechanism lie within a range of 1 on both sides of 0, so that half the noise is
        # hardly more than 1 on either side; a quarter is.
        ("revenue, whole", F(1, 4)),
        ("distance", F(1, 4)),
    ],
)
def test_too_little_noise_is_caught(name, part):
    assert seen(name, part) > 1


def test_the_mechanisms_are_all_audited():
    kinds = {type(heard(ASKS[n], frame([HIGH]), p[0], **p[3])[0]) for n, p in PAIRS.items()}
    assert kinds == {NoisyMax, NoisyTop, ExponentialChoice}
