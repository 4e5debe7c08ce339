"""How much the arrangements are worth: errors at equal epsilon, by many releases of the same integers.

The baseline is half-and-half in its best form: half the price for a Laplace sum measured from the middle of the
bounds, half for a Laplace count. Twins that must fail: half-and-half against itself, and Gaussian noise for one
question.
"""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe._expr import Column
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import AGGREGATES, Measured, Output
from dpframe._questions.question import Query
from dpframe._validate import Bounds
from dpframe.accounting._filter import Price, stated_gaussian
from dpframe.engines.pandas import PandasEngine
from dpframe.mechanisms.noise import LaplaceNoise
from tests.internals import make_plan

BOUNDS = Bounds(-10.0, 30.0)
ROWS = 2_000
WIDTH = BOUNDS.upper - BOUNDS.lower
DRAWS = 40_000  # the error of an RMSE is then below half a percent
UNITS = {"add-remove": Unit("add-remove"), "replace-one": Unit("replace-one")}
PLACES = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]


def people(at: float) -> pd.DataFrame:
    """Values around a place between the bounds, none beyond them; all of one group."""
    spread = min(at, 1 - at) * np.linspace(-1, 1, ROWS)
    x = pd.Series(BOUNDS.lower + WIDTH * (at + spread))
    x.iloc[::100] = np.nan
    return pd.DataFrame({"x": x, "g": np.zeros(ROWS, dtype="int64")})


def leaf(frame: pd.DataFrame, name: str) -> Column:
    place = list(frame).index(name)
    return Column.of(place, name, frame.dtypes.iloc[place])


def rmse_of_mean(frame: pd.DataFrame, unit: Unit, epsilon: F, grouped: bool) -> float:
    """Of the mean as it is planned, on what the engine makes of the frame."""
    x = leaf(frame, "x")
    by = (KeyBy(leaf(frame, "g"), keys_for([0, 1], leaf(frame, "g"), "g")),) if grouped else ()
    query = Query((Output("x", "mean", x, BOUNDS),), None, by)
    plan, (statistic,) = make_plan(query, unit, Price(epsilon, mechanism="laplace"))
    exact = statistic.integers(PandasEngine(frame).reduce(query, set(statistic.primitives)))
    raw = plan.parts[0].noise.release(np.repeat(exact[:, [0]], DRAWS, axis=1))
    answers = AGGREGATES["mean"].value(Measured(plan.cells[0], plan.parts[0].noise, raw))
    return root_mean_square(answers - frame["x"].mean())


def rmse_of_halves(frame: pd.DataFrame, unit: Unit, epsilon: F, grouped: bool) -> float:
    """Half the price on a sum from the middle of the bounds, half on a count, on a grid as fine as the other."""
    middle, step = (BOUNDS.lower + BOUNDS.upper) / 2, WIDTH / 2**20
    reach = 2**19  # from the middle to a bound
    total = round(float((frame["x"] - middle).sum() / step))
    count = int(frame["x"].count())
    times = 2 if unit.replaces else 1
    sums = LaplaceNoise.for_price(times * reach, epsilon / 2).release(np.full(DRAWS, total))
    counts = LaplaceNoise.for_price(2 if unit.replaces and grouped else 1, epsilon / 2).release(
        np.full(DRAWS, count)
    )
    answers = middle + sums * step / np.maximum(counts, 1)
    return root_mean_square(np.clip(answers, *BOUNDS) - frame["x"].mean())


def root_mean_square(errors: Any) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


@pytest.mark.parametrize("grouped", [False, True], ids=["ungrouped", "grouped"])
@pytest.mark.parametrize("relation", UNITS)
@pytest.mark.parametrize("at", PLACES)
def test_the_mean_beats_half_and_half(at, relation, grouped):
    """At most 0.75 of its error in the middle of the bounds, and nowhere worse."""
    frame, unit, epsilon = people(at), UNITS[relation], F(1, 2)
    ours, halves = (f(frame, unit, epsilon, grouped) for f in (rmse_of_mean, rmse_of_halves))
    assert ours <= (0.75 if at == 0.5 else 1.0) * halves


def test_half_and_half_does_not_beat_itself():
    """The twin: the comparison does not pass whatever is compared."""
    frame = people(0.5)
    ours, halves = (rmse_of_halves(frame, UNITS["add-remove"], F(1, 2), False) for _ in range(2))
    assert ours > 0.75 * halves


def questions(k: int, mechanism: str, epsilon: F) -> Any:
    """The plan of k overlapping questions, and the error of one of its answers over many releases."""
    frame = people(0.5)
    flag = Column.of(0, "x", np.dtype(bool))
    outputs = tuple(Output(i, "true", flag) for i in range(k))
    price = stated_gaussian(epsilon, F(1, 10**6))._replace(mechanism=mechanism)
    plan, (statistic,) = make_plan(Query(outputs), UNITS["add-remove"], price)
    frame = pd.DataFrame({"x": frame["x"] > 0})
    exact = statistic.integers(
        PandasEngine(frame).reduce(Query(outputs), set(statistic.primitives))
    )
    raw = plan.parts[0].noise.release(np.repeat(exact, 2_000, axis=1))
    return plan, root_mean_square(raw - exact)


@pytest.mark.parametrize("epsilon", [F(1, 4), F(1), F(4)], ids=str)
def test_gaussian_noise_beats_laplace_for_64_overlapping_questions(epsilon):
    errors = {m: questions(64, m, epsilon) for m in ("laplace", "gaussian", "auto")}
    assert errors["gaussian"][1] < 0.75 * errors["laplace"][1]
    assert errors["gaussian"][0].error()[0] < errors["laplace"][0].error()[0]
    assert errors["auto"][0].mechanism == "gaussian"


def test_laplace_noise_beats_gaussian_for_one_question():
    """The twin: at delta = 1e-6 the Gaussian mechanism has to earn its place."""
    errors = {m: questions(1, m, F(1)) for m in ("laplace", "gaussian", "auto")}
    assert errors["laplace"][1] < 0.75 * errors["gaussian"][1]
    assert errors["auto"][0].mechanism == "laplace"
