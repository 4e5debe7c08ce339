"""Another table with the same columns does not get the answers of the first one: it is refused until it has a version."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpframe import SessionError
from tests.ledger.people import anew, begun, elsewhere, kinds, opened, people, posix, used

pytestmark = posix
ANOTHER = r"another table with the same columns.*version='\.\.\.'"
UNIT = {"unit": "id", "max_rows": 1, "max_groups": 1, "bounds": {"cost": (0, 1000)}, "keys": None}


def clinic(which):
    """Two hospitals: other people, other numbers of them, the same columns."""
    n, base, first = {"north": (1000, 10.0, 0), "south": (100, 900.0, 5000)}[which]
    return pd.DataFrame({"id": np.arange(n) + first, "cost": base + np.arange(n) % 7})


def mean(path, frame, **terms):
    p = opened(path, frame=frame, epsilon=5, **{**UNIT, **terms})
    answer = p.mean("cost", epsilon=0.5)
    return float(answer), answer.interval(), len(p.ledger)


@pytest.mark.parametrize("unit", ["id", None])
def test_another_table_is_refused_and_pays_under_a_version_of_its_own(path, unit):
    terms = {} if unit else {"unit": None, "max_rows": None, "max_groups": None}
    first, _, debits = elsewhere(lambda: mean(path, clinic("north"), **terms))
    assert debits == 1
    before = kinds(path)
    frame = clinic("south")
    with pytest.raises(SessionError, match=ANOTHER):
        opened(path, frame=frame, epsilon=5, **{**UNIT, **terms})
    assert kinds(path) == before
    assert frame.attrs == {}
    answer, (low, high), debits = elsewhere(lambda: mean(path, frame, version="south", **terms))
    assert debits == 2
    assert abs(answer - first) > 100
    assert high - low < 200
    assert elsewhere(lambda: mean(path, clinic("north"), **terms))[::2] == (first, 2)
    assert elsewhere(lambda: mean(path, clinic("south"), version="south", **terms))[::2] == (
        answer,
        2,
    )


def test_the_same_people_in_another_table_are_another_table(path):
    """The ids are the same: it is not the sketch of people that tells."""
    visits = clinic("north")
    elsewhere(lambda: mean(path, visits))
    with pytest.raises(SessionError, match=ANOTHER):
        mean(path, visits.assign(cost=visits["cost"] + 100))


BASE = people(1000)
SAME = {
    "read once more": anew,
    "other order of rows": lambda d: d.sample(frac=1, random_state=1),
    "another index": lambda d: d.set_index(d.index + 7),
    "a row less": lambda d: d.iloc[1:],
    "a row more": lambda d: pd.concat([d, d.iloc[:1]], ignore_index=True),
    "a tenth edited": lambda d: d.assign(age=d["age"].where(np.arange(len(d)) % 10 > 0, 5.0)),
    "a quarter more rows": lambda d: pd.concat([d, people(250, seed=9)], ignore_index=True),
}
OTHER = {
    "nobody": lambda d: d.iloc[:0],
    "one row": lambda d: d.iloc[:1],
    "a third of the rows": lambda d: d.iloc[:300],
    "three times the rows": lambda d: pd.concat([d, people(2000, seed=9)], ignore_index=True),
    "other cells": lambda d: d.assign(age=d["age"] + 1),
    "other people": lambda d: people(1000, seed=5),
}


@pytest.mark.parametrize("change", SAME)
def test_the_same_table_goes_on_and_its_answers_are_free(path, change):
    first = elsewhere(lambda: int(opened(path, frame=anew(BASE)).count(epsilon=0.1)))
    for _ in range(2):
        p = elsewhere(
            lambda: (
                q := opened(path, frame=SAME[change](anew(BASE))),
                int(q.count(epsilon=0.1)),
                len(q.ledger),
            )[1:]
        )
        assert p == (first, 1)
    assert kinds(path)["table"] == 1


@pytest.mark.parametrize("change", OTHER)
def test_another_state_is_another_table(path, change):
    begun(path, frame=anew(BASE))
    with pytest.raises(SessionError, match=ANOTHER):
        opened(path, frame=OTHER[change](anew(BASE)))
    assert used(opened(path, frame=OTHER[change](anew(BASE)), version="2", because="told")) == 0


def test_a_small_part_of_a_small_table_is_another_table(path):
    """All rows of the part are in both, and what counts are those of the larger one."""
    begun(path, frame=anew(BASE.iloc[:200]))
    with pytest.raises(SessionError, match=ANOTHER):
        opened(path, frame=anew(BASE.iloc[:60]))


def test_a_table_of_people_is_the_same_in_any_order(path):
    first = elsewhere(lambda: mean(path, clinic("north")))
    for order in (clinic("north").iloc[::-1], clinic("north").sample(frac=1, random_state=3)):
        assert elsewhere(lambda frame=order: mean(path, frame)) == first
    assert kinds(path)["table"] == 1


def test_a_table_does_not_get_away_from_the_first_step_by_step(path):
    """Each month has two thirds of the rows of the month before."""
    months = [BASE.iloc[i : i + 300] for i in (0, 100, 200, 300)]
    begun(path, frame=anew(months[0]))
    begun(path, frame=anew(months[1]))
    for month in months[2:]:
        with pytest.raises(SessionError, match=ANOTHER):
            opened(path, frame=anew(month))


FEW = {
    "few rows": pd.DataFrame({"x": [1, 2, 3]}),
    "few different": pd.DataFrame({"x": [1, 2, 3, 4] * 100}),
    "ages": people(290)[["age"]].rename(columns={"age": "x"}).astype("int64"),
    "none": pd.DataFrame({"x": pd.Series([], dtype="int64")}),
}


@pytest.mark.parametrize("name", FEW)
def test_tables_of_few_different_rows_are_the_same_only_row_by_row(path, name):
    def work(frame, **terms):
        p = frame.dp.open(1, ledger=path, population="people", **terms)
        return int(p.count(epsilon=0.1)), len(p.ledger)

    frame = FEW[name]
    first = elsewhere(work, frame.copy())
    assert elsewhere(work, frame.iloc[::-1].reset_index(drop=True)) == first
    for other in (
        pd.concat([frame, FEW["few rows"].iloc[:1]]),
        FEW["few rows"].iloc[:2],
        FEW["few different"].iloc[:-1],
    ):
        with pytest.raises(SessionError, match=ANOTHER):
            work(other.copy())
    assert elsewhere(lambda: work(FEW["few rows"].iloc[:2].copy(), version="2"))[1] == 2


def test_other_columns_and_versions_are_tables_of_their_own(path):
    begun(path, frame=anew(BASE))
    for terms, frame in [
        ({"version": "2"}, people(seed=3)),
        ({"bounds": None, "keys": None}, people(seed=4)[["age", "state"]]),
    ]:
        begun(path, frame=frame, **terms)
        with pytest.raises(SessionError, match=ANOTHER):
            opened(path, frame=frame.assign(age=frame["age"] + 1), **terms)
    assert kinds(path)["table"] == 3
