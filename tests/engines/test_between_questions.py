"""What an engine keeps of one question for the next: no answer depends on what was asked before.

Prices are so high that noise of a count is zero but once in 10**100.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

EXACT = 300.0
GROUPS = list("abcde")


def crowd() -> pd.DataFrame:
    """Four people with a row in each of five groups."""
    return pd.DataFrame(
        {
            "id": np.repeat([1, 2, 3, 4], 5),
            "other": np.tile([1, 2, 3, 4, 5], 4),
            "g": GROUPS * 4,
            "h": ["x", "x", "y", "y", "y"] * 4,
            "v": np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 4),
        }
    )


def opened(max_groups: int = 5, **words):
    terms = {
        "unit": "id",
        "max_rows": 5,
        "max_groups": max_groups,
        "bounds": {"v": (0, 8)},
        **words,
    }
    return crowd().dp.open(1000, keys={"g": GROUPS, "h": ["x", "y"]}, **terms)


def sizes(p, **words):
    return int(p.groupby("g").size(epsilon=EXACT, **words).sum())


@pytest.mark.parametrize("limits", [(4, 1), (1, 4), (4, 2, 1)])
def test_a_limit_of_groups_is_that_of_its_own_question(limits):
    p = opened()
    assert [sizes(p, max_groups=limit) for limit in limits] == [4 * limit for limit in limits]


def test_a_condition_ends_with_its_question():
    p = opened()
    some = p.query("v > 3.5")
    assert [sizes(some), sizes(p), sizes(some, fresh=True)] == [8, 20, 8]
    q = opened()
    assert [sizes(q), sizes(q.query("v > 3.5")), sizes(q, fresh=True)] == [20, 8, 20]


def test_other_groups_are_other_pairs():
    p = opened()
    assert sizes(p) == 20
    assert p.groupby("h").size(epsilon=EXACT).tolist() == [8, 12]
    assert p.count(epsilon=EXACT) == 20


def test_counts_of_all_rows_are_those_of_their_own_groups_and_no_filter():
    terms = {"keys": {"g": GROUPS, "h": ["x", "y"]}, "bounds": {"v": (0, 8)}}
    p = crowd().dp.open(1000, **terms)
    words = {"epsilon": EXACT / 3, "fresh": True}
    asked = [
        lambda: p.groupby("h").size(**words).tolist() == [8, 12],
        lambda: p.groupby(["h", "g"]).size(**words).tolist() == [4, 4, 0, 0, 0, 0, 0, 4, 4, 4],
        lambda: p.query("v > 3.5").groupby("h").size(**words).tolist() == [0, 8],
    ]
    for i in (0, 1, 2, 0, 2, 1, 0):
        assert asked[i](), i


def test_rows_of_a_person_are_limited_by_each_question_alone():
    p = opened()
    assert [p.count(epsilon=EXACT, max_rows=r) for r in (1, 5, 2)] == [4, 20, 8]


def test_statistics_of_all_groups_and_of_one_go_by_their_own_limits():
    """How many groups a person has is about all of them, whatever the question before it kept."""
    p = opened()
    assert sizes(p, max_groups=1) == 4
    assert p.suggest_limits(by="g", epsilon=EXACT)["max_groups"] == 8
    assert sizes(p, max_groups=2) == 8


def test_columns_of_the_same_cells_are_not_taken_for_each_other():
    p = opened()
    by_v = p.histogram("v", bins=[0, 2.5, 8], epsilon=EXACT)
    by_other = p.histogram("other", bins=[0, 1.5, 8], epsilon=EXACT)
    assert by_v.tolist() == [8, 12]
    assert by_other.tolist() == [4, 16]
