"""Ledgers of the first format stay readable: what was paid for is free, and what could be another question's is not served."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import pytest

from dpframe import BadValue
from tests.ledger.first_format import QUESTIONS, long_merge, opened, regions
from tests.ledger.people import elsewhere, posix

pytestmark = posix
DATA = Path(__file__).parents[1] / "data"
RECORDED = json.loads((DATA / "ledger_of_the_first_format.json").read_text())


@pytest.fixture
def old(tmp_path):
    """The file as the dpframe of then left it."""
    return shutil.copy(DATA / "ledger_of_the_first_format.db", tmp_path / "budget.db")


def all_of_them(path, **words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p = opened(path)
        answers = {name: ask(p) for name, ask in QUESTIONS.items()}
    return json.loads(json.dumps(answers)), len(p.ledger)


def test_every_question_that_was_paid_for_is_free_and_has_its_answer(old):
    for _ in range(2):
        assert elsewhere(all_of_them, old) == (RECORDED["answers"], RECORDED["debits"])


@pytest.mark.parametrize("column", ["home", "work"])
def test_a_question_whose_label_was_cut_is_asked_anew(old, column):
    """Both merges had one label, under which the answer of the first is on record."""
    p = opened(old)
    q = long_merge(p, column)
    answer = q.count(epsilon=1)
    assert len(p.ledger) == RECORDED["debits"] + 1
    assert abs(answer - (400 if column == "home" else 0)) < 100
    assert elsewhere(lambda: int(long_merge(opened(old), column).count(epsilon=1))) == answer
    assert long_merge(p, column).explode("codes").count(epsilon=1) is not None
    assert len(p.ledger) == RECORDED["debits"] + 2


def test_names_of_then_belong_to_their_questions_still(old):
    p = opened(old)
    assert float(p.mean("age", name="age", epsilon=3)) == RECORDED["answers"]["named"]
    with pytest.raises(BadValue, match="was given to another question"):
        p.sum("age", name="age")
    with pytest.raises(BadValue, match="was given to another question"):
        regions(p).sum("age", name="mine", bounds=(0, 110))
    assert int(p.count("age", name="mine", epsilon=1)) is not None  # names belong to frames
    assert len(p.ledger) == RECORDED["debits"] + 1


def test_a_fresh_answer_takes_the_place_of_the_recorded_one(old):
    def work(**words):
        p = opened(old)
        return int(p.count(epsilon=1, **words)), len(p.ledger)

    new = elsewhere(lambda: work(fresh=True))
    assert new[1] == RECORDED["debits"] + 1
    assert elsewhere(work) == new
