"""Bisection ends on the safe side: what it returns was seen to hold, and its neighbour fails."""

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.accounting import _search as search_module
from dpframe.accounting._search import first_where, last_where

positive = st.floats(5e-324, 1e300)
WHOLE = search_module.whole_halfway


@given(turn=positive, size=positive)
def test_the_last_double_holds_and_the_next_one_fails(turn, size):
    high = max(turn, size)
    found = last_where(lambda x: x < turn, 0.0, high)
    assert found < turn <= math.nextafter(found, math.inf)


@given(turn=positive, size=positive)
def test_the_first_double_holds_and_the_one_before_fails(turn, size):
    found = first_where(lambda x: x >= turn, 0.0, max(turn, size))
    assert math.nextafter(found, 0.0) < turn <= found


@given(turn=st.integers(1, 10**30), more=st.integers(0, 10**30))
def test_the_last_whole_number_holds_and_the_next_one_fails(turn, more):
    found = last_where(lambda n: n < turn, 0, turn + more, middle=WHOLE)
    assert found == turn - 1


@given(turn=st.fractions(0, 1), rounds=st.integers(1, 60))
def test_fractions_are_as_close_as_the_rounds_allow(turn, rounds):
    found = last_where(lambda x: x <= turn, Fraction(0), Fraction(2), rounds=rounds)
    assert found <= turn < found + Fraction(2, 2**rounds)
    found = first_where(lambda x: x >= turn, Fraction(-1), Fraction(2), rounds=rounds)
    assert found - Fraction(3, 2**rounds) < turn <= found


@given(turn=st.floats(1e-150, 1e150))
def test_numbers_of_unknown_size_have_all_their_digits(turn):
    found = last_where(lambda x: x <= turn, 1e-153, 1e153, middle=search_module.ratio_halfway)
    assert found <= turn
    assert found == pytest.approx(turn, rel=1e-15)


@given(turn=st.fractions(Fraction(1, 100), 1))
def test_fractions_may_be_rounded_to_doubles_on_the_way(turn):
    found = first_where(
        lambda x: x >= turn,
        Fraction(0),
        Fraction(3, 2),
        middle=search_module.float_halfway,
        close=lambda a, b: False,
    )
    assert found >= turn
    assert float(found) == found == pytest.approx(float(turn), rel=1e-15)


@given(turn=st.floats(0.1, 1e9), seed=st.integers(0, 2**32))
def test_search_returns_what_holds_for_statements_that_are_not_monotone(turn, seed):
    noise, seen = random.Random(seed), {0.0}

    def holds(x):
        if x < turn * noise.uniform(0.9, 1.1):
            seen.add(x)
            return True
        return False

    assert last_where(holds, 0.0, 2e9) in seen


def test_neither_end_is_asked():
    """They are known; the far one only where a middle rounds to it."""
    asked = []
    last_where(lambda n: asked.append(n) or n < 7, 0, 20, middle=WHOLE)
    first_where(lambda x: asked.append(x) or x >= 0.75, 0.5, 1.0, rounds=30)
    assert not {0, 20, 0.5, 1.0} & set(asked)


def test_it_stops_when_the_ends_are_close():
    asked = []
    found = last_where(
        lambda x: asked.append(x) or x < 0.3, 0.0, 1.0, close=lambda low, high: high - low <= 0.25
    )
    assert (found, asked) == (0.25, [0.5, 0.25])
