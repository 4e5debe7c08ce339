"""What plans say of their worth before anything is paid: for every aggregate, and true of the answers that come."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from dpframe import PrivacyWarning
from dpframe._plans.aggregates import AGGREGATES

BOUNDS = {"x": (0, 100), "y": (-10, 10)}
# Each verb with a question that it may be asked by, on a frame or a column of it.
ASKED = {
    "mean": lambda p, **w: p.mean("x", **w),
    "sum": lambda p, **w: p.sum("x", **w),
    "count": lambda p, **w: p.count(**w),
    "nunique": lambda p, **w: p.nunique("k", **w),
    "var": lambda p, **w: p.var("x", **w),
    "std": lambda p, **w: p.std("x", **w),
    "sem": lambda p, **w: p.sem("x", **w),
    "skew": lambda p, **w: p.skew("x", **w),
    "median": lambda p, **w: p.median("x", **w),
    "quantile by a tree": lambda p, **w: p.quantile("x", 0.3, method="tree", **w),
    "cov": lambda p, **w: p[["x", "y"]].cov(**w),
    "corr": lambda p, **w: p["x"].corr(p["y"], **w),
    "describe": lambda p, **w: p.describe("x", **w),
    "value_counts": lambda p, **w: p.value_counts("k", normalize=True, **w),
    "histogram": lambda p, **w: p.histogram("x", bins=[0, 50, 100], **w),
    "groups of rows": lambda p, **w: p.groupby("k").size(**w),
    "groups": lambda p, **w: p.groupby("k")["x"].agg(["std", "skew"], **w),
    "argmax": lambda p, **w: p.argmax("k", **w),
    "top": lambda p, **w: p.top("k", 1, **w),
    "argmax of groups": lambda p, **w: p.groupby("k")["k"].argmax(**w),
    "pivot": lambda p, **w: p.pivot_table(values="x", index="k", aggfunc="std", **w),
}
SPREAD = ("std", "sem", "skew")


def opened(size=2000, epsilon=1000, x=None):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "x": rng.uniform(0, 100, size) if x is None else x,
            "y": rng.uniform(-10, 10, size),
            "k": rng.choice(["a", "b"], size),
        }
    )
    return frame.dp.open(epsilon, bounds=BOUNDS, keys={"k": ["a", "b"]})


def row(plan, name):
    return "".join(text for key, text in plan._rows() if key == name)


@pytest.mark.parametrize("verb", ASKED)
def test_every_verb_says_before_it_is_paid_that_so_few_values_say_nothing(verb):
    p = opened()
    few, many = (ASKED[verb](p.explain, epsilon=e, n=n) for e, n in ((0.001, 20), (500, 1e9)))
    assert row(few, "worth").endswith(
        "this will say nothing: of 20 values the error is as large as can be"
    )
    assert row(many, "worth") == ""
    assert p.ledger.empty


@pytest.mark.parametrize(
    "verb",
    ["mean", "var", "std", "sem", "skew", "median", "cov", "describe", "groups", "argmax", "top"],
)
def test_plan_without_n_says_below_which_number_it_says_nothing(verb):
    assert row(ASKED[verb](opened().explain, epsilon=0.01), "worth").endswith(
        "values this will say nothing"
    )


@pytest.mark.parametrize("verb", SPREAD)
def test_plan_warns_below_the_number_that_it_names(verb):
    p = opened()
    fewest = float(
        row(ASKED[verb](p.explain, epsilon=0.1), "worth").split("fewer than ")[1].split()[0]
    )
    says = [
        row(ASKED[verb](p.explain, epsilon=0.1, n=fewest * part), "worth") for part in (0.9, 1.1)
    ]
    assert "say nothing" in says[0]
    assert says[1] == ""


@pytest.mark.parametrize("verb", SPREAD)
@pytest.mark.parametrize("half", ["at both ends", "evenly", "close together"])
def test_an_answer_of_which_the_plan_knew_is_noise(verb, half):
    fewest = int(
        float(row(ASKED[verb](opened().explain, epsilon=0.1), "worth").split("than ")[1].split()[0])
    )
    size = max(int(0.5 * fewest), 2)
    x = {
        "at both ends": np.repeat([0.0, 100.0], [size // 2, size - size // 2]),
        "evenly": np.linspace(0, 100, size),
        "close together": np.linspace(49, 51, size),
    }[half]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        p = opened(size, x=x)
        reliable = [ASKED[verb](p, epsilon=0.1, fresh=True).reliable for _ in range(20)]
    assert sum(reliable) <= 4  # noise may make half as many values look like as many as are needed


@pytest.mark.parametrize("verb", SPREAD)
def test_the_error_that_a_plan_expects_is_that_of_the_answers(verb):
    for spread in (1.0, 30.0, 100.0):
        p = opened(5000, x=np.linspace(50 - spread / 2, 50 + spread / 2, 5000))
        plan = ASKED[verb](p.explain, epsilon=1, n=5000)
        words = row(plan, "error, 95 %").split()
        least, most = float(words[1]), float(words[4])
        halves = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            for _ in range(10):
                low, high = ASKED[verb](p, epsilon=1, fresh=True).interval()
                halves.append((high - low) / 2)
        assert 0.9 * least <= np.median(halves) <= 1.1 * most


def test_an_error_that_depends_on_the_values_is_no_one_number():
    plan = opened().explain.std("x", epsilon=1, n=5000)
    least, most = (float(row(plan, "error, 95 %").split()[i]) for i in (1, 4))
    assert 0 < least < most
    assert plan.error(n=5000) is None


def test_without_n_the_plan_says_what_it_needs():
    text = row(opened().explain.skew("x", epsilon=1), "error, 95 %")
    assert (
        text
        == "depends on how far apart the values lie; with n= explain tells the least and the most"
    )


def test_where_all_errors_are_alike_there_is_one():
    text = row(opened().explain.std("x", epsilon=0.001, n=10), "error, 95 %")
    assert text.endswith("for 10 values, however they lie")
    assert text.count("±") == 1


def test_outputs_are_told_apart():
    plan = opened().explain["x"].agg(["mean", "std"], epsilon=0.01)
    first, second = row(plan, "worth").split("; ")
    assert first.startswith("mean: of fewer than ")
    assert second.startswith("std: of fewer than ")


def test_durations_say_seconds():
    frame = pd.DataFrame({"t": pd.to_timedelta(np.arange(100), "min")})
    p = frame.dp.open(10, bounds={"t": ("0h", "2h")})
    assert " seconds for 1000 values" in row(p.explain.std("t", epsilon=1, n=1000), "error, 95 %")


def test_total_of_few_values_is_marked_as_noise():
    p = opened()
    error = p.explain.sum("x", epsilon=0.1).error()
    assert "say nothing" in row(p.explain.sum("x", epsilon=0.1, n=error / 100 * 0.99), "worth")
    assert row(p.explain.sum("x", epsilon=0.1, n=error / 100 * 1.01), "worth") == ""
    q = pd.DataFrame({"x": [0.0] * 9}).dp.open(1, bounds={"x": (0, 0)})
    assert row(q.explain.sum("x", epsilon=0.1, n=9), "worth") == ""  # it is known


@pytest.mark.parametrize(
    "name", [name for name, kind in AGGREGATES.items() if kind.imagine_sums(np.ones(1))]
)
def test_imagined_values_are_ones_that_there_can_be(name):
    sums = AGGREGATES[name].imagine_sums(np.array([10.0]))
    n, t1, t2 = (sums[key][:, 0] / 10 for key in ("n", "t1", "t2"))
    assert (n == 1).all()
    assert ((t1 > 0) & (t1 < 1)).all()
    var = t2 - t1**2
    assert (var >= -1e-12).all()
    assert (var <= t1 * (1 - t1) + 1e-12).all()
    assert math.isclose(
        var.max(), 0.25
    )  # and half of them at either end, which is as far apart as can be
    if "t3" in sums:  # Hankel matrices of moments of values in [0, 1] have no negative determinant
        t3 = sums["t3"][:, 0] / 10
        assert (t1 * t3 - t2**2 >= -1e-12).all()
        assert ((1 - t1) * (t2 - t3) - (t1 - t2) ** 2 >= -1e-12).all()
