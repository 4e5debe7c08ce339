"""What an earlier version answered is found again for nothing, word for word, and its receipts stay readable."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pandas as pd
import pytest

import dpframe
from tests.golden.lines import CHANGED, INTERVALS, SESSIONS, lines, refused
from tests.golden.make import asked, opened, planned, refusal, shown, written

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.iterdir() if (path / "ledger.db").exists())
FRESH = "fresh=True"


def alike(version: str, one: dict, other: dict) -> bool:
    """The same answer; and the same interval, where these were not proved anew since."""
    left = {"interval"} if version in INTERVALS else set()
    return all(one[k] == other[k] for k in {*one, *other} - left)


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
    paid = []
    for line in lines(session):
        if FRESH in line or line not in known:
            continue
        before = len(p.ledger)
        answer = asked(p, line)
        if len(p.ledger) > before:
            paid.append(line)
        elif not isinstance(answer, dpframe.Plan):
            assert alike(version, shown(answer), known[line]), line
    assert set(paid) <= set(CHANGED.get(version, {}))


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("version", VERSIONS)
def test_refusals_say_what_they_said(version, session, ledgers):
    p, known = opened(session, ledgers[version]), golden(version, session)
    said = {line: refusal(asked(p, line)) for line in refused()}
    assert {line for line in said if said[line] != known[line]} <= set(CHANGED.get(version, {}))


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("version", [v for v in VERSIONS if (HERE / v / "plans.json").exists()])
def test_plans_are_what_they_were(version, session):
    known = json.loads((HERE / version / "plans.json").read_text())[session]
    made = planned(session)
    assert {line for line in known if made[line] != known[line]} <= set(CHANGED.get(version, {}))


def test_what_is_said_to_have_changed_has_changed(ledgers):
    """A reason for a line that is as it was would hide the next change of it."""
    for version, lines_of in CHANGED.items():
        p, known = opened("people", ledgers[version]), golden(version, "people")
        for line in lines_of:
            before = len(p.ledger)
            answer = asked(p, line)
            now = written(answer) if isinstance(answer, Exception) else shown(answer)
            assert len(p.ledger) > before or now != known[line], line


@pytest.mark.parametrize("version", VERSIONS)
def test_receipts_of_an_earlier_version_are_readable(version):
    receipts = pickle.loads((HERE / version / "receipts.pickle").read_bytes())
    known = golden(version, "people")
    assert len(receipts) > 80
    for line, answer in receipts.items():
        assert alike(version, shown(answer), known[line]), line
        if isinstance(answer, pd.Series | pd.DataFrame) and "dpframe" in str(answer.attrs):
            assert answer.dp.plan.question


def test_there_are_hundreds_of_golden_questions():
    assert sum(len(lines(session)) for session in SESSIONS) >= 350
