"""The same people under another name in one ledger: the sketch sees them, and says how to attach to their budget."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dpframe import SessionError
from dpframe._ledger.sqlite import FileStore
from tests.ledger.people import anew, begun, elsewhere, kinds, opened, people, posix, used

pytestmark = posix

SAME = {
    "the same cells": lambda d: d,
    "other order": lambda d: d.sample(frac=1, random_state=1),
    "half the rows": lambda d: d.sample(frac=0.5, random_state=1),
    "twice the rows": lambda d: pd.concat([d, people(1200, seed=9)], ignore_index=True),
    "other column names": lambda d: d.rename(columns=str.upper),
    "whole numbers as int": lambda d: d.astype({"age": "int64"}),
    "text as category": lambda d: d.astype({"state": "category"}),
    "another index": lambda d: d.set_index(d.index + 7),
}
# The sketch is of whole rows, cell by cell in the order of the columns: limits, which the docs state.
UNSEEN = {
    "a column more": lambda d: d.assign(constant=1),
    "a column less": lambda d: d[["age", "cost"]],
    "other order of columns": lambda d: d[["cost", "age", "state"]],
    "every row edited": lambda d: d.assign(age=d["age"] + 1),
    "a twentieth of the rows": lambda d: d.sample(frac=0.05, random_state=1),
}


@pytest.mark.parametrize("changed", SAME)
def test_second_budget_on_the_same_people_is_refused_with_advice(path, changed):
    begun(path, "first", people(1200))
    before = kinds(path, "second")
    frame = anew(SAME[changed](people(1200)))
    with pytest.raises(
        SessionError, match=r"people of population 'first' .* population='first'"
    ) as caught:
        frame.dp.open(1, ledger=path, population="second")
    assert "because=" in str(caught.value)
    assert kinds(path, "second") == before == {}
    assert frame.attrs == {}


@pytest.mark.parametrize("changed", UNSEEN)
def test_what_the_sketch_does_not_see(path, changed):
    begun(path, "first", people(6000))
    assert (
        anew(UNSEEN[changed](people(6000)))
        .dp.open(1, ledger=path, population="second")
        .budget.spent
        == 0
    )


def test_other_people_are_other_people(path):
    for seed in range(6):
        opened(path, f"people {seed}", people(seed=seed))
    assert len(FileStore(path).populations()) == 6


@pytest.mark.parametrize(
    "frame", [people(10), pd.DataFrame({"x": [1, 2, 3, 4] * 100})], ids=["few", "alike"]
)
def test_too_few_different_rows_identify_nobody(path, frame):
    begun(path, "first", frame, bounds=None, keys=None)
    assert anew(frame).dp.open(1, ledger=path, population="second").budget.spent == 0


def test_owner_overrides_and_the_ledger_keeps_the_reason(path):
    begun(path, "first", spent=1)
    why = "the committee agreed on 12 May"
    p = opened(path, "second", because=why)
    assert used(p) == 0
    row = p.declarations.iloc[-1]
    assert (row["what"], row["value"]) == ("second budget", why)
    assert opened(path, "first", version="2").budget.remaining == 0


def test_population_that_gave_a_reason_opens_again_with_it(path):
    begun(path, "first")
    for _ in range(2):
        assert elsewhere(lambda: used(opened(path, "second", because="agreed"))) == 0
    assert kinds(path, "second")["sketch"] == 1
    with pytest.raises(SessionError, match="'first'"):
        opened(path, "third")


def test_ledger_file_holds_no_cell(path):
    frame = people().assign(secret=[f"cell-{i}-of-somebody" for i in range(300)])
    p = opened(path, frame=frame)
    p.count(epsilon=0.5)
    p.groupby("state").size(epsilon=0.5)
    content = Path(path).read_bytes()
    assert b"of-somebody" not in content
    assert b"age" in content
