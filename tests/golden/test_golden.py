"""What was answered is found again for nothing, word for word, and its receipts stay readable."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pandas as pd
import pytest

import dpframe
from dpframe._cells import encoding as encoding_module
from tests.golden.lines import SESSIONS, lines, refused
from tests.golden.make import asked, opened, planned, refusal, shown

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.iterdir() if (path / "ledger.db").exists())
FRESH = "fresh=True"


def golden(version: str, session: str) -> dict:
    return json.loads((HERE / version / "answers.json").read_text())[session]


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory):
    """A copy of each version's ledger: what is asked is added to it."""
    folder = tmp_path_factory.mktemp("ledgers")
    return {v: Path(shutil.copytree(HERE / v, folder / v)) / "ledger.db" for v in VERSIONS}


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_answered_is_found_again_for_nothing(version, session, ledgers):
    p, known = opened(session, ledgers[version]), golden(version, session)
    for line in lines(session):
        if FRESH in line or line not in known:
            continue
        before = len(p.ledger)
        answer = asked(p, line)
        assert len(p.ledger) == before, line
        if not isinstance(answer, dpframe.Plan):
            assert shown(answer) == known[line], line


@pytest.mark.parametrize("version", VERSIONS)
def test_golden_question_is_paid_again_when_its_encoding_changes(version, tmp_path, monkeypatch):
    """The twin of the test above, of an encoding with another head."""
    head = encoding_module._head
    monkeypatch.setattr(encoding_module, "_head", lambda tag, parts: head(tag, parts + 1))
    monkeypatch.setattr(encoding_module, "_records", {})
    path = Path(shutil.copytree(HERE / version, tmp_path / version)) / "ledger.db"
    p = opened("rows", path)
    before = len(p.ledger)
    asked(p, "p.count(epsilon=0.5)")
    assert len(p.ledger) == before + 1


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("version", VERSIONS)
def test_refusals_say_what_they_said(version, session, ledgers):
    p, known = opened(session, ledgers[version]), golden(version, session)
    for line in refused():
        assert refusal(asked(p, line)) == known[line], line


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("version", VERSIONS)
def test_plans_are_what_they_were(version, session):
    known = json.loads((HERE / version / "plans.json").read_text())[session]
    assert planned(session) == known


@pytest.mark.parametrize("version", VERSIONS)
def test_receipts_of_an_earlier_version_are_readable(version):
    receipts = pickle.loads((HERE / version / "receipts.pickle").read_bytes())
    known = golden(version, "people")
    assert len(receipts) > 80
    for line, answer in receipts.items():
        assert shown(answer) == known[line], line
        if isinstance(answer, pd.Series | pd.DataFrame) and "dpframe" in str(answer.attrs):
            assert answer.dp.plan.question


def test_there_are_hundreds_of_golden_questions():
    assert sum(len(lines(session)) for session in SESSIONS) >= 350
