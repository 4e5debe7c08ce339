"""Arithmetic with released numbers: it stays arithmetic, and what comes of it has an interval or says why not."""

from __future__ import annotations

import copy
import csv
import decimal
import fractions
import io
import json
import math
import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe
from dpframe import BadType
from dpframe._answers.arithmetic import OPERATIONS, start_from_leaf, start_from_number


@pytest.fixture
def p():
    frame = pd.DataFrame({"age": np.arange(1000) % 90.0, "s": ["a", "b"] * 500})
    return frame.dp.open(1000, bounds={"age": (0, 110)}, keys={"s": ["a", "b"]})


# Numbers ------------------------------------------------------------------------------------------------------


def test_a_shift_and_a_scale_move_the_interval_with_the_number(p):
    n = p.count(epsilon=0.5)
    low, high = n.interval(0.9)
    for made, ends in (
        (n * 3, (low * 3, high * 3)),
        (3 * n, (low * 3, high * 3)),
        (n / 1000, (low / 1000, high / 1000)),
        (n + 7, (low + 7, high + 7)),
        (7 - n, (7 - high, 7 - low)),
        (-n, (-high, -low)),
        (n * -2, (-2 * high, -2 * low)),
        (abs(-n), (low, high)),
        (1000 / n, (1000 / high, 1000 / low)),
        (n - 0.5, (low - 0.5, high - 0.5)),
    ):
        assert made.interval(0.9) == ends
        assert isinstance(made, dpframe.Estimate)
        assert (made.plan, made.cost, made.plans) == (n.plan, n.cost, (n.plan,))
    assert (n * 2).std_error == n.std_error * 2
    assert (5 - n / 4).std_error == pytest.approx(n.std_error / 4)
    assert (n / n).std_error is (n * n).std_error is (1 / n).std_error is round(n).std_error is None


@pytest.mark.parametrize(
    "rounded", [lambda x: x, round, lambda x: round(x, 1), lambda x: round(x, -1)]
)
def test_what_was_rounded_is_written_and_shown_as_any_other(p, rounded):
    for x in (p.count(epsilon=0.5), p.mean("age", epsilon=0.5), p.count(epsilon=0.5) / 3):
        made = rounded(x)
        assert isinstance(made, dpframe.Estimate)
        plain = (int if isinstance(made, int) else float)(made)
        for written in (str(made), f"{made}", json.dumps(made)):
            assert written == repr(plain)
        assert " ± " in repr(made)
        assert pickle.loads(pickle.dumps(made)).interval() == made.interval()


def test_a_whole_number_does_not_look_certain_where_it_is_not(p):
    share = (p["s"] == "a").mean(epsilon=5)
    low, high = round(share).interval()
    assert (low, high) == (0.0, 1.0)
    assert repr(round(share)).split(",")[0] in ("0 ± 1", "1 ± 1")
    assert repr(p.count(epsilon=900)).endswith(" ± 0")


def test_standard_errors_are_those_of_counts_and_sums(p):
    n = p.count(epsilon=0.5)
    assert n.std_error == pytest.approx(float(n.plan.parts[0].noise.deviation))
    assert p.sum("age", epsilon=0.5).std_error > 100
    mean = p.mean("age", epsilon=0.5)
    low, high = mean.interval()
    assert 3 < (high - low) / mean.std_error < 5
    assert p.median("age").std_error is p.std("age").std_error is None
    assert p[p["age"] > 99].mean("age", epsilon=0.5).std_error is None
    by = p.groupby("s")["age"].mean(epsilon=0.5)
    ends = by.dp.interval()
    assert (
        ((ends["upper"] - ends["lower"]) / by.dp.table()["std_error"].to_numpy())
        .between(3, 5)
        .all()
    )
    total = p.sum("age")
    assert (total + n).std_error == pytest.approx(math.hypot(total.std_error, n.std_error))
    assert (total * n).std_error is None
    assert (n.lower, n.upper) == n.interval()


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("/", lambda a, b: a / b),
        ("*", lambda a, b: a * b),
        ("+", lambda a, b: a + b),
        ("-", lambda a, b: a - b),
    ],
)
def test_two_releases_are_narrower_together_than_at_their_corners(p, name, make):
    total, n = p.sum("age", epsilon=1), p.count(epsilon=1)
    made = make(total, n)
    corners = [make(x, y) for x in total.interval(0.95) for y in n.interval(0.95)]
    low, high = made.interval(0.9)
    assert min(corners) < low < made < high < max(corners)
    alone = [make(x, int(n)) for x in total.interval(0.9)]
    assert low <= min(alone) < max(alone) <= high
    assert made == make(float(total), int(n))
    assert made.plans == (total.plan, n.plan)
    for ask in (lambda: made.plan, lambda: made.cost):
        with pytest.raises(BadType, match=r"2 releases.*\.plans"):
            ask()


def test_two_numbers_take_half_the_risk_each_where_no_law_is_known():
    class Leaf:
        levels: ClassVar = []

        def number(self):
            return 1.0

        def ends(self, level):
            self.levels.append(level)
            return 0.0, 2.0

        def is_same(self, other):
            return self is other

    both = start_from_leaf(Leaf()).append("+", start_from_leaf(Leaf()))
    assert both._enclose_by_parts(0.9) == (0.0, 4.0)
    assert Leaf.levels == pytest.approx([0.95, 0.95])


def test_one_number_twice_is_one_number(p):
    n, k = p.count(epsilon=1), p.count(epsilon=1, fresh=True)
    low, high = n.interval(0.9)
    assert (n + n).interval(0.9) == (2 * low, 2 * high)
    assert (n + n).std_error == 2 * n.std_error
    assert np.diff(n.interval(0.9)) < np.diff((n + k).interval(0.9))
    assert np.diff((n + k).interval(0.9)) < np.diff((n + n).interval(0.9))
    assert ((n + k) - k).interval(0.9) == n.interval(0.9)
    assert ((n + k) - (n + k)).plans == (n.plan, k.plan) or n.plan == k.plan


def test_a_divisor_that_may_be_zero_leaves_no_ends(p):
    near = p.count(epsilon=1) - 1000 + 0.5
    made = p.count(epsilon=1, fresh=True) / near
    assert made.interval() == (-math.inf, math.inf)
    assert math.isfinite(made)
    assert "inf" in repr(made)
    with pytest.raises(ZeroDivisionError):
        1 / (near - near)
    assert (made * 0).interval() == (0, 0)
    assert (made - made).interval() == (-math.inf, math.inf)


def test_rounding_holds_what_was_there_and_what_it_rounds_to(p):
    m = p.mean("age", epsilon=0.5)
    (low, high), (lower, upper) = m.interval(), round(m, 1).interval()
    assert round(m, 1) == round(float(m), 1)
    assert low - 0.1 < lower <= low < high <= upper < high + 0.1
    assert lower <= round(m, 1) <= upper
    assert isinstance(round(m), int)
    assert round(p.count(), -1).interval()[0] % 10 == 0


def test_what_is_made_of_choices_has_an_interval_and_no_standard_error(p):
    middle = p.median("age", epsilon=10)
    low, high = middle.interval()
    assert (middle * 2).interval() == (2 * low, 2 * high)
    for made in (middle * 2, middle + p.count(), p.mean("age") / middle):
        assert made.lower <= made <= made.upper
        assert made.std_error is None
        assert "±" in repr(made)


# As plain numbers ---------------------------------------------------------------------------------------------


def test_what_is_made_is_written_as_a_plain_number(p):
    n, m = p.count(epsilon=1), p.mean("age", epsilon=1)
    for made in (n * 2, m * 2, n / m, n, m):
        plain = int(made) if isinstance(made, int) else float(made)
        out = io.StringIO()
        csv.writer(out).writerow([made])
        assert out.getvalue().strip() == str(made) == f"{made}" == json.dumps(made) == repr(plain)
        for width in (">10", "<30", "012.3f", ",", "+.2e"):
            assert format(made, width) == format(plain, width)
        assert hash(made) == hash(plain)
        assert made == plain
        assert fractions.Fraction(made) == fractions.Fraction(plain)
        assert decimal.Decimal(made) == decimal.Decimal(plain)
        assert (made < plain, made <= plain, made != plain) == (False, True, False)
        assert sorted([made, plain - 1]) == [plain - 1, plain]


@pytest.mark.parametrize(
    "twin", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_what_is_made_survives_pickle_and_copy(p, twin):
    for made in (p.count() * 2, p.mean("age") / p.count(), round(p.mean("age"), 2)):
        assert (twin(made), type(twin(made))) == (made, type(made))
        assert twin(made).interval(0.8) == made.interval(0.8)
        assert twin(made).plans == made.plans


def test_numpy_scalars_keep_the_interval_on_either_side(p):
    m, n = p.mean("age", epsilon=1), p.count(epsilon=1)
    for made, same in (
        (np.float64(2) * m, 2 * m),
        (m * np.float64(2), 2 * m),
        (np.int64(2) + n, 2 + n),
        (n - np.int64(2), n - 2),
        (np.float64(1) / n, 1 / n),
        (np.float64(0.25) * n, n * 0.25),
        (np.multiply(m, 3), m * 3),
        (np.negative(n), -n),
        (np.float32(0.5) * n, n * 0.5),
    ):
        assert (made, made.interval(), type(made)) == (same, same.interval(), type(same))


def test_arrays_and_series_take_a_plain_number(p):
    m = p.mean("age", epsilon=1)
    plain = float(m)
    for made, same in (
        (np.array([1.0, 2.0]) * m, np.array([1.0, 2.0]) * plain),
        (m / np.array([1.0, 2.0]), plain / np.array([1.0, 2.0])),
        (np.sqrt(m), np.sqrt(plain)),
        (np.array([m, 1.0]), np.array([plain, 1.0])),
        (pd.Series([1.0, 2.0]) / m, pd.Series([1.0, 2.0]) / plain),
        (m - pd.Series([1.0, 2.0]), plain - pd.Series([1.0, 2.0])),
        (pd.Series([1.0, 200.0]) > m, pd.Series([False, True])),
        (np.maximum(m, 0), np.float64(plain)),
    ):
        assert type(made) is type(same)
        assert (np.asarray(made) == np.asarray(same)).all()
    assert type(m**2) is type(m // 2) is type(m % 2) is float
    assert type(m + 1j) is complex
    assert type(0.5 * p.count(epsilon=1)) is float  # Python asks the float alone
    assert type(fractions.Fraction(1, 2) * p.count(epsilon=1)) is fractions.Fraction
    assert np.isfinite(np.add.reduce([m, m]))


def test_a_loop_ends_in_a_plain_number(p):
    x, turns = p.mean("age", epsilon=1), 0
    while isinstance(x, dpframe.Estimate):
        x, turns = x * 1.001, turns + 1
    assert type(x) is float
    assert 100 < turns < 1000
    assert sum([p.count(epsilon=1, fresh=True) for _ in range(50)]).interval()[0] < 50_000


def test_a_number_that_was_made_can_stand_in_the_next_question(p):
    half = p.mean("age", epsilon=100) / 2
    for q in (
        p.query("age > @half"),
        p[p["age"] > half],
        p.assign(x=p["age"] - half).query("x > 0"),
    ):
        assert 600 < q.count(epsilon=100) < 800
    assert 0 < p.mean("age", bounds=(0, half), epsilon=50) < half


# Enclosure ----------------------------------------------------------------------------------------------------

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


class Within:
    """A number that is known to lie between two ends."""

    def __init__(self, number, other):
        self._value, self.sides = number, sorted([number, other])

    def number(self):
        return self._value

    def ends(self, level, at_once=False):
        return tuple(self.sides)

    def is_same(self, other):
        return self is other


@given(
    *(st.tuples(NUMBERS, NUMBERS),) * 3,
    st.lists(
        st.tuples(st.sampled_from([*OPERATIONS, "round"]), st.integers(0, 2), NUMBERS | st.none()),
        max_size=6,
    ),
)
def test_intervals_enclose_whatever_is_computed(a, b, c, steps):
    """To the last bit: of the numbers as they are, the same steps in doubles end within the ends."""
    leaves = [Within(*pair) for pair in (a, b, c)]
    made = start_from_leaf(leaves[0])
    for step, place, number in steps:
        other = start_from_leaf(leaves[place]) if number is None else start_from_number(number)
        two = step in OPERATIONS and OPERATIONS[step].operands == 2
        made = made.round(place) if step == "round" else made.append(step, other if two else None)
    try:
        value = made.value()
    except ZeroDivisionError:
        return
    low, high = made.enclose([leaf.ends(0.9) for leaf in made.leaves])
    if math.isfinite(value):
        assert low <= value <= high


def test_what_no_double_holds_is_a_plain_number():
    n = pd.DataFrame({"x": [1.0] * 50}).dp.open(1, because="an example").count(epsilon=0.5)
    for plain in (n + 2**60, n + (2**60 + 1) - 2**60, n + 10**400, n * 2**60):
        assert type(plain) is int
    assert type(round(n / 3, 400)) is float
    assert type(n + 2**40) is not int
