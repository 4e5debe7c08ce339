"""Functions that put expressions together: they see a frame that can be asked nothing."""

from __future__ import annotations

import pandas as pd
import pytest

from dpframe import BadType, Refused
from dpframe.utilities import distance


@pytest.fixture
def p():
    df = pd.DataFrame({"cost": [10.0, 20.0, 30.0, 40.0] * 50, "age": [31, 47, 66, 80] * 50})
    return df.dp.open(100, bounds={"cost": (0, 100), "age": (0, 110)})


UTILITIES = [
    lambda d, r: -(d["cost"] - r).abs().sum(),
    lambda d, r: d["cost"].mean(epsilon=1) - r,
    lambda d, r: d["cost"] - d.count(),
    lambda d, r: d.explain.count(),
]


@pytest.mark.parametrize("utility", UTILITIES)
def test_a_utility_that_asks_a_release_is_refused_and_free(p, utility):
    with pytest.raises(
        Refused, match="return an expression for one row; its sum over rows is the utility"
    ):
        p.choose([10, 20], utility, epsilon=1)
    with pytest.raises(Refused, match="return an expression for one row"):
        p.explain.choose([10, 20], utility, epsilon=1)
    assert p.budget.spent == 0
    assert p.ledger.empty


@pytest.mark.parametrize("result", [None, 3, [1], {"a": 1}])
def test_a_utility_that_returns_no_column_is_refused(p, result):
    with pytest.raises(
        BadType, match="return an expression for one row; its sum over rows is the utility"
    ):
        p.choose([10, 20], lambda d, r: result, epsilon=1)
    assert p.budget.spent == 0


def test_functions_of_a_frame_ask_nothing(p):
    for step in (
        lambda: p.assign(x=lambda d: d["cost"] - d["cost"].mean()),
        lambda: p[lambda d: d.count() > 1],
    ):
        with pytest.raises(Refused, match="release such a number first"):
            step()
    assert p.budget.spent == 0
    assert p.assign(x=lambda d: d["cost"] / 2).mean("x", epsilon=50) == pytest.approx(12.5, abs=1)


def test_expressions_of_one_row_still_choose(p):
    nearest = p.choose([0, 25, 90], lambda d, r: -(d["cost"] - r).abs(), epsilon=50)
    assert nearest == p.choose([0, 25, 90], "-(cost - @candidate).abs()", epsilon=50) == 25


def test_questions_of_many_candidates_are_short(p):
    texts = {
        "choose 1 of 16 by distance(cost), bounds=(-100, 0)": distance("cost"),
        "choose 1 of 16 by -(cost - @candidate).abs(), bounds=(-100, 0)": "-(cost - @candidate).abs()",
        "choose 1 of 16 by cost > 0, ..., bounds=(0, 1)": lambda d, r: d["cost"] > r,
    }
    for text, utility in texts.items():
        assert (
            p.query("age > 40").explain.choose(range(16), utility).question
            == f"{text} where age > 40"
        )


@pytest.mark.parametrize("method", ["rsub", "rdiv"])
def test_reversed_methods_ask_the_same_question_as_the_operator(method):
    """The name of a column is a part of the question, so the second line is free."""
    df = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 5.0]})
    p = df.dp.open(10, bounds={"x": (1, 5), "y": (0, 5)})
    written = p["y"] - p["x"] if method == "rsub" else p["y"] / p["x"]
    first = written.sum(bounds=(-5, 5), epsilon=1)
    again = getattr(p["x"], method)(p["y"]).sum(bounds=(-5, 5), epsilon=1)
    assert (again, p.budget.spent) == (first, 1)
    assert [cell.name for cell in again.plan.cells] == ["y"]
