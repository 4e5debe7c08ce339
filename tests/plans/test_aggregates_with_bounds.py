"""Every aggregate that is clipped to bounds: without noise its interval holds what pandas computes, with noise its answer."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe._expr import Column
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import AGGREGATES, Measured, Output
from dpframe._questions.question import Query
from dpframe._validate import Bounds
from dpframe.accounting._filter import stated_gaussian
from dpframe.engines.pandas import PandasEngine
from tests.internals import make_plan

BOUNDED = [name for name, one in AGGREGATES.items() if one.needs_bounds and not one.picks]
LEVEL = F(3, 10)


@st.composite
def frames(draw: st.DrawFn) -> tuple[pd.DataFrame, Bounds]:
    """Two columns with nulls, of values on a coarse grid and beyond it, which no finer grid rounds."""
    low, width = draw(
        st.sampled_from([(0, 16), (-8, 16), (-16, 16), (-1, 2), (48, 32), (-(2**40), 2**42)])
    )
    steps = st.one_of(
        st.integers(-4, 20).map(lambda k: low + k * width / 16), st.just(float("nan"))
    )
    cells = draw(st.lists(st.tuples(steps, steps), max_size=12))
    return pd.DataFrame(cells, columns=["x", "y"], dtype=float), Bounds(
        float(low), float(low + width)
    )


def asked(name: str, frame: pd.DataFrame, bounds: Bounds, mechanism: str, ddof: int) -> Any:
    """The plan of one aggregate of a frame, and its integers without noise."""
    x, y = (Column.of(i, c, frame[c].dtype) for i, c in enumerate(frame))
    words: dict[str, Any] = {"ddof": ddof} if AGGREGATES[name].takes_ddof else {}
    if name == "cov":
        words |= {"other": y, "other_bounds": bounds}
    if name == "tree":
        words |= {"level": LEVEL}
    query = Query((Output("answer", name, x, bounds, **words),))
    price = stated_gaussian(F(1), F(1, 10**6))._replace(mechanism=mechanism)
    plan, (statistic,) = make_plan(query, Unit("add-remove"), price)
    return plan, statistic.integers(PandasEngine(frame).reduce(query, set(statistic.primitives)))


def truth(name: str, frame: pd.DataFrame, bounds: Bounds, ddof: int) -> float:
    """What pandas computes of the clipped values; NaN where it computes nothing."""
    clipped = frame.clip(*bounds)
    if name == "cov":
        return (
            float(clipped.dropna().cov(ddof=ddof).loc["x", "y"])
            if len(clipped.dropna()) > ddof
            else np.nan
        )
    x = clipped["x"].dropna()
    if name == "tree":
        return (
            float(np.sort(x)[np.ceil(float(LEVEL) * len(x)).astype(int) - 1]) if len(x) else np.nan
        )
    words = {"ddof": ddof} if AGGREGATES[name].takes_ddof else {}
    return float(getattr(x, name)(**words)) if len(x) > ddof else np.nan


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", BOUNDED)
@settings(max_examples=40, deadline=None)
@given(frames(), st.sampled_from([0, 1]), st.sampled_from([0.01, 0.5, 0.95, 0.999]))
def test_the_interval_of_an_answer_without_noise_holds_it(
    name: str, mechanism: str, drawn: Any, ddof: int, level: float
) -> None:
    frame, bounds = drawn
    plan, exact = asked(name, frame, bounds, mechanism, ddof)
    assert plan.mechanism == mechanism
    noise = plan.parts[0].noise
    entry, measured = AGGREGATES[name], Measured(plan.cells[0], noise, exact)
    (low,), (high,) = entry.interval(measured, level)
    known = truth(name, frame, bounds, ddof)
    slack = 1e-9 * (bounds.upper - bounds.lower + abs(bounds.lower)) ** max(1, entry.degree)
    if not np.isnan(known):
        assert low - slack <= known <= high + slack
    noisy = Measured(plan.cells[0], noise, noise.release(np.repeat(exact, 20, axis=1)))
    low, high = entry.interval(noisy, level)
    answers = entry.value(noisy)
    assert (low <= high).all()
    assert np.isfinite(answers).all()
    if name in ("mean", "tree"):
        assert ((bounds.lower <= low) & (high <= bounds.upper)).all()
        assert ((bounds.lower <= answers) & (answers <= bounds.upper)).all()
