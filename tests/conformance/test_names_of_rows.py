"""The names of rows, where a row is a person: all different, drawn anew, and without regard to the place of a row.

A row that joins takes no other row's name with it: without it the names of the others have the law that they had.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpframe.engines.rows import people_labels

ROWS, RUNS = 6, 4000
ACCEPT, REJECT = 1e-6, 1e-9


def p_values(name) -> list[float]:
    """How well the ranks of each place, and of each two neighbouring places, fit those of a fair draw."""
    ranks = np.argsort(np.argsort([name(ROWS) for _ in range(RUNS)], axis=1), axis=1)
    alone = [np.bincount(ranks[:, i], minlength=ROWS) for i in range(ROWS)]
    higher = [(ranks[:, i] < ranks[:, i + 1]).sum() for i in range(ROWS - 1)]
    return [
        *(float(stats.chisquare(counts).pvalue) for counts in alone),
        *(float(stats.chisquare([n, RUNS - n]).pvalue) for n in higher),
    ]


def test_a_name_tells_nothing_of_its_place():
    assert min(p_values(people_labels)) > ACCEPT


@pytest.mark.parametrize(
    "wrong", [np.arange, lambda n: np.roll(np.arange(n), np.random.default_rng().integers(n))]
)
def test_names_that_are_places_are_seen(wrong):
    assert min(p_values(wrong)) < REJECT


@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_names_are_different_and_drawn_anew(size):
    one, two = people_labels(size), people_labels(size)
    assert len(np.unique(one)) == len(one) == size
    assert not size or set(one) != set(two)
    assert (one >= 0).all()
