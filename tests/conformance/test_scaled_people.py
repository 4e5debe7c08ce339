"""Totals of people with more rows than count: scaled to the nearest integer, and back within what any values have."""

from __future__ import annotations

import itertools
from fractions import Fraction as F
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe._sizes import SIZES
from dpframe.engines import limits as _people
from dpframe.engines.people import pairs_of

EXACT = 900.0


def bound(rows: int, limit: int) -> _people.Bound:
    """One person with so many rows, in one group."""
    pairs = pairs_of(np.zeros(rows, dtype=np.int64), None, 1, 1)
    return _people.Bound(pairs, None, limit, 1)


@pytest.mark.parametrize(("rows", "limit"), [(3, 1), (3, 2), (5, 2), (5, 3), (7, 4)])
def test_count_of_values_is_that_of_rows_that_have_one(rows, limit):
    """Public: so many rows of a hundred equal people have a value. Nulls take no room under the limit."""
    for valued in range(rows + 1):
        frame = pd.DataFrame(
            {
                "id": np.repeat(np.arange(100), rows),
                "x": ([1.0] * valued + [None] * (rows - valued)) * 100,
            }
        )
        p = frame.dp.open(1000, unit="id", max_rows=limit)
        assert p.count("x", epsilon=EXACT) == 100 * min(valued, limit)


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize(("rows", "limit"), [(3, 1), (4, 1), (5, 2), (6, 1), (7, 2)])
def test_moments_of_a_person_are_those_of_some_values(rows, limit, width):
    """0 <= s1 <= W s0 and 2 W s1 - W**2 s0 <= s2 <= W s1, for all values there may be."""
    worst = 0
    for cells in itertools.combinations_with_replacement(range(width + 1), rows):
        values = np.array(cells, dtype=float)
        s0, s1, s2 = bound(rows, limit).powers([values], 2, width)[:, 0].tolist()
        assert s0 == limit
        assert 0 <= s1 <= width * s0
        assert 2 * width * s1 - width**2 * s0 <= s2 <= width * s1
        worst = max(worst, abs(F(s2) - F(limit * int((values**2).sum()), rows)))
    assert worst <= width + F(1, 2)  # no further than the rounding of both takes them


@pytest.mark.parametrize(("rows", "limit"), [(3, 1), (4, 2), (5, 2), (6, 4)])
@pytest.mark.parametrize("width", [1, 2, 3, 40])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_powers_of_a_person_sum_to_no_negative_product(degree, width, rows, limit):
    """Of no product a**k * (W - a)**r is the sum negative, nulls or not, so a person reaches no further than their rows."""
    cells = [np.nan, *sorted({0.0, 1.0, width // 2, width - 1, width})]
    for some in itertools.combinations_with_replacement(cells, rows):
        level = bound(rows, limit).powers([np.array(some)], degree, width)[:, 0].tolist()
        assert 0 <= level[0] <= limit
        while level:
            assert level[-1] >= 0, (some, level)
            level = [width * one - more for one, more in itertools.pairwise(level)]


def test_powers_out_of_reach_count_as_their_mean():
    """Two thirds of a step are one step, and four thirds of a square are one: a fourth moment of these is that of no values."""
    for nulls in (0, 2):
        own = np.array([0.0, 0.0, 2.0] + [np.nan] * nulls)
        assert bound(3 + nulls, 1).powers([own], 4, 2)[:, 0].tolist() == [1, 1, 1, 1, 1]
    assert bound(10, 2).powers([np.array([450.0] * 7 + [np.nan] * 3)], 3, 1000)[:, 0].tolist() == [
        2 * 450**k for k in range(4)
    ]


@pytest.mark.parametrize(("rows", "limit"), [(2, 1), (3, 1), (3, 2), (5, 2), (5, 4)])
@pytest.mark.parametrize("width", [1, 5, 1000])
def test_mean_of_a_person_lies_between_their_values_whatever_is_null(rows, limit, width):
    """All sums stay in one ratio to the number of values, which is never rounded: the mean of any set of people lies between
    their values, and a value that is always the same is the mean, to the last step."""
    cells = [np.nan, *sorted({0.0, 1.0, width // 2, width - 1.0, float(width)})]
    for some in itertools.combinations_with_replacement(cells, rows):
        own, there = np.array(some), [x for x in some if x == x]
        n, total, squares = bound(rows, limit).powers([own], 2, width)[:, 0].tolist()
        assert n == min(len(there), limit)
        if there:
            assert n * min(there) <= total <= n * max(there)
            assert abs(F(total, n) - F(int(sum(there)), len(there))) <= F(1, 2 * n)
        if len(set(there)) == 1:
            assert (total, squares) == (n * there[0], n * there[0] ** 2)
        both = bound(rows, limit).products([own], [width - own], width, width)[:, 0].tolist()
        assert both[:2] == [n, total]
        assert both[1] + both[2] - n * width in (
            0,
            1,
        )  # each is rounded to the nearest, halves upwards


@pytest.mark.parametrize(("rows", "limit"), [(3, 1), (4, 1), (4, 3)])
def test_products_of_a_person_are_those_of_some_values(rows, limit):
    """0 <= s <= V n, 0 <= t <= W n and max(0, W s + V t - V W n) <= st <= min(W s, V t), nulls or not."""
    v, w = 3, 2
    cells = [(np.nan, 0.0), *itertools.product((0.0, 1.0, 3.0), (0.0, 2.0))]
    for some in itertools.combinations_with_replacement(cells, rows):
        a, b = np.array(some).T
        n, s, t, st = bound(rows, limit).products([a], [b], v, w)[:, 0].tolist()
        assert 0 <= n <= limit
        assert 0 <= s <= v * n
        assert 0 <= t <= w * n
        assert max(0, w * s + v * t - v * w * n) <= st <= min(w * s, v * t)


def test_sums_of_very_many_rows_of_one_person_are_exact():
    """Beyond 2**53, where a double that is added 1 stays what it was."""
    largest, wide, ones = 2**31 - 1, 2**22 + 2**10, 2**20
    values = np.r_[np.full(wide, float(largest)), np.ones(ones)]
    found = (
        bound(wide + ones, wide + ones).powers(np.array_split(values, 7), 1, largest)[:, 0].tolist()
    )
    assert wide * largest > 2**53
    assert found == [wide + ones, wide * largest + ones]


@pytest.mark.parametrize("size", [1, 3, 7])
def test_sums_over_people_are_the_same_however_many_are_added_up_at_once(size, monkeypatch):
    """Of pairs in a table, where some people are in no group, and of pairs in a list; with nulls, and rows beyond the limit."""
    rng = np.random.default_rng(size)
    rows, people = 200, 41
    person, group = rng.integers(0, people - 1, rows), rng.integers(0, 3, rows)
    values = [
        np.where(rng.random(rows) < 0.2, np.nan, rng.integers(0, 8, rows).astype(float))
        for _ in range(2)
    ]
    table, listed = (pairs_of(person, group, people, groups) for groups in (3, 2**20))
    assert (table.table, listed.table) == (True, False)
    kept = rng.random(len(table.rows)) < 0.7
    assert len(kept) < 3 * people

    def sums(pairs: Any) -> list[list[list[int]]]:
        of_pairs = _people.Bound(pairs, kept, 2, 3)
        found = [
            of_pairs.rows()[None],
            of_pairs.people()[None],
            of_pairs.count(values[0] > 3)[None],
        ]
        found += [
            of_pairs.powers(values[:1], 3, 7),
            of_pairs.products(values[:1], values[1:], 7, 7),
        ]
        return [one.tolist() for one in found]

    whole = sums(listed)
    counted = np.bincount(listed.group[kept], weights=np.minimum(listed.rows[kept], 2), minlength=3)
    assert whole[0] == [counted.tolist()]
    assert sums(table) == whole
    monkeypatch.setattr(SIZES, "people_pairs", size)
    monkeypatch.setattr(SIZES, "people_cached", size)
    assert sums(table) == sums(listed) == whole


def test_sum_of_whole_numbers_keeps_the_parts_that_scaling_leaves():
    """Public: 3 of each person's 10 rows say yes. On whole numbers alone 0.3 of a person would be nobody."""
    frame = pd.DataFrame({"id": np.repeat(np.arange(100), 10)})
    frame["x"] = ([1] * 3 + [0] * 7) * 100
    p = frame.dp.open(1000, unit="id", max_rows=1, bounds={"x": (0, 1)})
    assert abs(p.sum("x", epsilon=EXACT) - 30) < 1


def test_no_pairs_have_sums_of_nothing():
    none = np.empty(0, dtype=np.int64)
    of_pairs = _people.Bound(pairs_of(none, none, 0, 2), None, 1, 2)
    assert of_pairs.rows().tolist() == of_pairs.people().tolist() == [0, 0]
    assert of_pairs.powers([], 2, 5).tolist() == [[0, 0]] * 3
    assert of_pairs.products([], [], 5, 5).tolist() == [[0, 0]] * 4


def test_one_group_of_very_many_is_kept_where_pairs_stand_in_a_list():
    """A thousand groups and two thousand people, more than a table holds: exactly so many groups of each count."""
    people, groups = 2000, 1000
    frame = pd.DataFrame(
        {"id": np.repeat(np.arange(people), 3), "g": (np.arange(3 * people) * 337) % groups}
    )
    p = frame.dp.open(1000, unit="id", max_rows=1, keys={"g": range(groups)})
    for limit in (1, 2, 3):
        found = p.groupby("g").size(epsilon=EXACT / 4, max_groups=limit)
        assert found.sum() == limit * people
