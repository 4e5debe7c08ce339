"""Histograms count as numpy does, between edges that are public."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpframe import BadValue, MissingBounds

BOUNDS = {"age": (0, 110), "cost": (0, 1000)}


@pytest.fixture
def df():
    return pd.DataFrame(
        {
            "age": [31, 47, 66, 80, 12, 55, 70, 41],
            "cost": [120.5, None, 80.25, 900.0, 15.0, 60.0, 30.0, 300.0],
            "state": ["CA", "NY", "CA", "OR", None, "NY", "CA", "CA"],
            "smoker": [True, False, False, True, False, True, False, False],
        }
    )


@pytest.fixture
def p(df):
    return df.dp.open(1000, bounds=BOUNDS)


@pytest.mark.parametrize(
    "bins",
    [
        [0, 50, 110],
        range(0, 111, 10),
        (12, 31, 80),
        np.array([30.5, 66, 80]),
        [-np.inf, 31, np.inf],
        [80, 81],
        [-10.0, 12.0],
        pd.Index([0, 47, 200]),
    ],
    ids=str,
)
def test_histogram_counts_as_numpy_does_over_an_interval_index(df, p, bins):
    answer = p.histogram("age", bins=bins, epsilon=900)
    exact, edges = np.histogram(df["age"], bins=list(bins))
    assert answer.tolist() == exact.tolist()
    assert isinstance(answer.index, pd.IntervalIndex)
    assert answer.index.left.tolist() == edges[:-1].tolist()
    assert answer.index.right.tolist() == edges[1:].tolist()
    assert (answer.index.closed, answer.index.name, answer.name) == ("left", "age", "count")
    assert answer.dtype == np.int64


@pytest.mark.parametrize("number", [1, 4, np.int64(11)])
def test_number_of_bins_divides_the_declared_bounds(df, p, number):
    answer = p.histogram("age", bins=number, epsilon=900)
    exact, edges = np.histogram(df["age"], bins=int(number), range=(0, 110))
    assert answer.tolist() == exact.tolist()
    np.testing.assert_array_equal(answer.index.left, edges[:-1])


def test_histogram_leaves_nulls_and_outsiders_out(df, p):
    answer = p.histogram("cost", bins=[50, 100, 200], epsilon=900)
    assert answer.tolist() == [2, 1]


def test_number_of_bins_needs_bounds(df):
    p = df.dp.open(1)
    with pytest.raises(MissingBounds):
        p.histogram("age", bins=5)
    assert len(p.histogram("age", bins=5, bounds=(0, 100))) == 5


@pytest.mark.parametrize(
    "edges", [np.arange(11) / 10, np.linspace(-1, 2, 31), np.linspace(0.1, 0.7, 7)], ids=len
)
def test_values_next_to_evenly_spaced_edges_are_in_the_bin_of_comparison(edges):
    """A bin guessed by division is one off next to some edges; comparison with the edges decides."""
    values = np.concatenate([edges, np.nextafter(edges, -9), np.nextafter(edges, 9)])
    p = pd.DataFrame({"x": values}).dp.open(1000)
    inside = values[(values >= edges[0]) & (values <= edges[-1])]
    places = np.minimum(np.searchsorted(edges, inside, side="right") - 1, len(edges) - 2)
    expected = np.bincount(places, minlength=len(edges) - 1)
    assert p.histogram("x", bins=edges, epsilon=900).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("bins", "error"),
    [
        (0, ValueError),
        (-3, ValueError),
        (True, TypeError),
        (2.5, TypeError),
        ("auto", ValueError),
        ([], ValueError),
        ([1], ValueError),
        ([1, 1], ValueError),
        ([2, 1], ValueError),
        ([0, float("nan")], ValueError),
        (2**60, ValueError),
        (["0", "1"], TypeError),
        (None, TypeError),
    ],
    ids=str,
)
def test_bad_bins_are_refused_and_charge_nothing(p, bins, error):
    with pytest.raises(error):
        p.histogram("age", bins=bins)
    assert p.budget.spent == 0


@pytest.mark.parametrize(
    ("bounds", "bins"), [((-1e308, 1e308), 4), ((1e16, 1e16 + 2), 10), ((5, 5), 1), ((0, 1), 2**40)]
)
def test_bounds_that_cannot_be_divided_are_refused(p, bounds, bins):
    with pytest.raises(BadValue):
        p.histogram("age", bins=bins, bounds=bounds)
    assert p.budget.spent == 0


@pytest.mark.parametrize("name", [1, True, 1.0], ids=repr)
def test_names_that_are_equal_but_differ_stay_apart(name):
    p = pd.DataFrame({name: [0.5, 1.5]}).dp.open(1)
    answer = p.histogram(name, bins=[0, 1, 2])
    assert repr(answer.index.name) == repr(name)


def test_large_unsigned_numbers_are_in_no_bin_of_negative_ones():
    df = pd.DataFrame({"x": np.array([2**64 - 1] * 50 + [3] * 20, dtype="uint64")})
    answer = df.dp.open(1000).histogram("x", bins=[-10, 0, 10], epsilon=900)
    assert answer.tolist() == [0, 20]
