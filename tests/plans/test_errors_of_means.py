"""The error that a plan states of a mean holds wherever the mean lies between its bounds, and is no larger than there."""

from __future__ import annotations

import pandas as pd
import pytest

N = 10_000


def half_width(value: float, epsilon: float) -> float:
    p = pd.DataFrame({"x": [value] * N}).dp.open(10, bounds={"x": (0, 10)})
    low, high = p.mean("x", epsilon=epsilon).interval(0.95)
    return (high - low) / 2


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_stated_error_is_that_of_the_worst_place(epsilon):
    p = pd.DataFrame({"x": [1.0]}).dp.open(10, bounds={"x": (0, 10)})
    stated = p.explain.mean("x", epsilon=epsilon).error(n=N)
    seen = [half_width(value, epsilon) for value in (0.5, 2.5, 5.0, 7.5, 9.5)]
    assert max(seen) <= stated * 1.02
    assert max(seen) >= stated * 0.8
