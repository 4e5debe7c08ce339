"""The logger ``dpframe``: debits and refusals for those who run services, and never a cell."""

from __future__ import annotations

import logging
from typing import NoReturn

import pandas as pd
import pytest

from dpframe import BudgetExceeded


@pytest.fixture
def p():
    frame = pd.DataFrame({"secret": ["Zaphod", "Trillian"], "x": [4711.0, 4712.0]})
    return frame.dp.open(1, bounds={"x": (0, 9000)}, ledger="memory:", population="logged")


def test_debits_and_refusals_are_told_and_no_cell_is(p, caplog):
    caplog.set_level(logging.INFO, "dpframe")
    p.mean("x", epsilon=0.5)
    p.mean("x", epsilon=0.5)  # free: nothing to tell
    with pytest.raises(BudgetExceeded):
        p.query("secret == 'Arthur'").count(epsilon=0.75)
    debit, refusal = caplog.records
    assert (debit.levelname, debit.population, debit.used) == ("INFO", "logged", 0.5)
    assert debit.getMessage() == "debit: mean(x, bounds=(0, 9000)); population 'logged', 50 % used"
    assert refusal.levelname == "WARNING"
    assert refusal.getMessage().startswith("refused: size() where secret == 'Arthur'")
    assert refusal.used == 0.5
    text = caplog.text
    assert not any(cell in text for cell in ("Zaphod", "Trillian", "4711", "4712"))


class Broken(logging.Handler):
    def emit(self, record: logging.LogRecord) -> NoReturn:
        raise RuntimeError("no disk")


def test_a_logger_that_raises_loses_no_answer_and_no_refusal():
    log, handler = logging.getLogger("dpframe"), Broken()
    p = pd.DataFrame({"x": [1.0]}).dp.open(1)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        assert p.count(epsilon=0.5).cost.epsilon == 0.5
        with pytest.raises(BudgetExceeded):
            p.count(epsilon=0.75)
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    assert p.budget.spent == 0.5


def test_nothing_is_printed_where_nobody_has_set_logging_up(p, capsys):
    with pytest.raises(BudgetExceeded):
        p.count(epsilon=2)
    assert capsys.readouterr() == ("", "")
