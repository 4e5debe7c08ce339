"""`dpframe.calibrate`: what it refuses, and how many queries a budget allows."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction

import pytest

from dpframe import BadType, BadValue, local
from dpframe import calibrate as c
from dpframe.accounting import ACCOUNTANTS, Gaussian, Laplace, PureDP, make_filter
from dpframe.accounting._filter import Charge, Limits

# Arguments -------------------------------------------------------------------------------------------------------

GOOD = {
    "epsilon": 1,
    "delta": 1e-6,
    "sigma": 1,
    "scale": 1,
    "reach": 5,
    "shortfall": 5,
    "within": 5,
    "alpha": 0.1,
    "candidates": 3,
    "dimension": 3,
    "n": 1000,
    "each": PureDP(0.1),
    "effects": [1, 2],
}
BAD = (
    {
        "epsilon": [-1, math.nan, math.inf],
        "delta": [-0.1, 1, math.nan],
        "sigma": [0, -1, math.inf, math.nan, 1e-300],
        "scale": [0, -1, math.inf, math.nan, 1e-300],
        "reach": [-1, math.inf, math.nan],
        "shortfall": [-1, math.inf, math.nan],
        "weights": ["exact"],
        "sensitivity": [0, -2, math.inf, 10**400, 1e300],
        "within": [0, -1, math.nan],
        "alpha": [0, 1, -0.1, math.nan],
        "level": [0, 1, 95, math.nan],
        "method": ["exact"],
        "mechanism": ["exponential"],
        "accountant": ["best"],
        "reserve": [-0.1, 1, math.nan],
    }
    | {
        name: [0, -1, 2**53 + 1]
        for name in ("answers", "candidates", "queries", "dimension", "steps", "n")
    }
    | {"length": [0, -1, math.inf, math.nan]}
)


def tried(name, parameter, value):
    """Call it with this value, and with good ones where there is no default."""
    known = inspect.signature(getattr(c, name)).parameters
    needed = {p: GOOD[p] for p in known if known[p].default is inspect.Parameter.empty}
    return getattr(c, name)(**{**needed, parameter: value})


PLACES = [(name, p) for name in c.__all__ for p in inspect.signature(getattr(c, name)).parameters]


@pytest.mark.parametrize(("name", "parameter"), PLACES)
def test_bad_arguments_are_refused(name, parameter):
    for value in BAD.get(parameter, []):
        with pytest.raises(BadValue):
            tried(name, parameter, value)
    many = 3 if parameter == "effects" else [1]
    bad = [
        None,
        many,
        3 if parameter in ("method", "mechanism", "accountant", "weights") else "one",
    ]
    for value in bad[
        parameter in ("accountant", "reserve") :
    ]:  # without one, the session's own is meant
        with pytest.raises(BadType):
            tried(name, parameter, value)


def test_messages_say_what_is_wrong():
    for call, words in [
        (lambda: c.gaussian_sigma(1, 0), "no Gaussian noise is purely private"),
        (lambda: c.mean_n(0.1, 1, mechanism="gaussian"), "positive delta"),
        (lambda: c.mean_n(0.1, 1, mechanism="advanced"), "positive delta"),
        (lambda: c.laplace_epsilon(1e-3), "epsilon above 1024"),
        (lambda: c.mean_n(1e-12, 1e-9), "more than 2\\*\\*53 people"),
        (lambda: c.randomized_response_n(1e-300, 2.0**-50), "more than 2\\*\\*53 people"),
        (
            lambda: c.sgd_n(1e-300, 1, 1e-6, dimension=2, method="notes"),
            "more than 2\\*\\*53 people",
        ),
        (
            lambda: c.sgd_n(1e-9, 1e-9, 1e-12, dimension=2, steps=2**40),
            "more than 2\\*\\*53 people",
        ),
        (lambda: c.sgd_n(1e-6, 1, 1e-6, dimension=2), "more steps"),
    ]:
        with pytest.raises(BadValue, match=words):
            call()


@pytest.mark.parametrize("level", [1e-300, 1e-17, 1 - 2.0**-53])
@pytest.mark.parametrize("epsilon", [2.0**-50, 1, 1024])
def test_the_ends_of_the_ranges_are_answered(epsilon, level):
    assert c.laplace_within(epsilon, level=level, answers=2**53) > 0
    assert c.exponential_within(epsilon, 1, level=level) >= 0
    assert c.laplace_epsilon(50, level=level) > 0
    if epsilon >= 1:
        assert c.mean_n(0.5, epsilon, delta=1e-270, level=level, queries=3, population=True) >= 1
        assert c.randomized_response_n(0.999, epsilon, level=level) >= 1


# Queries of a budget -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "delta", "level"), [(0.07, 0.25, 0.75), (0.013, 0.3, 0.9), (0.4, 0.49, 0.6)]
)
def test_sample_size_of_the_notes_is_the_least_that_is_enough(alpha, delta, level):
    n = local.sample_size(alpha, delta=delta, method="notes", level=level)
    enough = (
        1 / (Fraction(str(delta)) * Fraction(str(alpha))) ** 2 / (4 * (1 - Fraction(str(level))))
    )
    assert n - 1 < enough <= n


@pytest.mark.parametrize(
    "accountant", [name for name, kind in ACCOUNTANTS.items() if not kind.batches]
)
@pytest.mark.parametrize("each", [PureDP(0.05), Laplace(0.1), Gaussian(20)], ids=str)
def test_so_many_queries_fit_one_after_the_other(accountant, each):
    delta, reserve = Fraction(1, 10**6), Fraction(1, 10**7)
    found = c.queries(2, each, delta=1e-6, accountant=accountant, reserve=1e-7)
    rule = make_filter(accountant, Limits(Fraction(2), delta, reserve))
    state = rule.start()
    for _ in range(found):
        state = rule.after(state, Charge(((each, 1),), rule.delta_limit / found))
        assert state is not None
    assert (
        rule.after(state, Charge(((each, max(2, found // 100)),), rule.delta_limit / found)) is None
    )


def test_a_plain_sum_counts_exactly():
    assert c.queries(1, PureDP(0.1)) == 10
    assert c.queries(0.3, PureDP(0.1)) == 3
    assert c.queries(0.1, PureDP(0.2)) == 0
    assert c.queries(1, Gaussian(5)) == 0


def test_a_batch_declared_in_advance_has_the_most():
    counts = {
        name: c.queries(1, PureDP(0.02), delta=1e-6, accountant=name, reserve=0)
        for name in ACCOUNTANTS
    }
    assert counts["pld"] == max(counts.values()) == 142
