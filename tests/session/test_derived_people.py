"""Whose derived rows are: columns that name a person keep doing so, and private tables are not taken for public ones."""

from __future__ import annotations

import pandas as pd
import pytest

from dpframe import BadValue, Refused

EXACT = 200.0


def visits() -> pd.DataFrame:
    """The lists stand before the column that names a person."""
    return pd.DataFrame(
        {
            "codes": [["flu", "cough"], ["flu"], [], ["burn", "flu", "cough"]],
            "cost": [1.0, 2.0, 3.0, 4.0],
            "id": pd.Series(["ann", "ann", "bob", "eve"], dtype=object),
        }
    )


def opened(**words):
    return visits().dp.open(
        1000, unit="id", max_rows=1, max_groups=1, bounds={"cost": (0, 8)}, **words
    )


def test_exploded_rows_in_front_of_the_unit_belong_to_their_person():
    q = opened().explode("codes")
    assert [q.count(max_rows=rows, epsilon=EXACT) for rows in (1, 2, 9)] == [3, 5, 7]
    assert q.nunique("id", epsilon=EXACT) == 3


def test_the_column_that_names_a_person_cannot_be_exploded():
    with pytest.raises(BadValue, match="names a person"):
        opened().explode("id")


def test_two_frames_that_are_adopted_do_not_answer_for_each_other():
    p = opened()
    both = []
    for rows in (visits().iloc[:2], visits().iloc[1:]):
        other = rows[["id", "cost"]].copy()
        other.attrs = {}
        q = p.adopt(other, because="some of the visits")
        both.append(q.nunique("id", epsilon=EXACT))
    assert both == [1, 3]


def test_a_table_by_people_needs_a_reason():
    table = pd.DataFrame({"id": ["ann", "bob"], "town": ["A", "B"]})
    p = opened()
    with pytest.raises(BadValue, match="names a person"):
        p.merge(table, on="id")
    assert p.merge(table, on="id", because="a public register").count(epsilon=EXACT) == 2
    assert "a public register" in p.declarations["value"].str.cat()


def test_a_copy_of_a_private_frame_is_no_public_table():
    """Its cells are others, and its attrs say whose they are."""
    frame = visits()
    p = frame.dp.open(1, unit="id", max_rows=1)
    with pytest.raises(Refused, match="not public"):
        p.merge(frame[["cost"]].copy(), on="cost")
