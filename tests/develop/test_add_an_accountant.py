"""The page adds an accountant in one file, and one without a theorem on a page does not pass."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import dpframe
from dpframe import accounting
from tests.accounting.contract import FilterContract
from tests.develop.toys import PAGES, module_added, source_of

LISTS = ("guarantees/accounting.md", "how-to/choose-an-accountant.md")


@pytest.fixture
def cents(tmp_path: Path):
    """The rule of the page, in a file beside those of the package."""
    rules = accounting.ACCOUNTANTS
    with module_added(
        accounting, "cents", source_of("add-an-accountant.md", "@register"), tmp_path
    ):
        yield rules["cents"]
    rules.pop("cents", None)


def unlisted(page: str) -> list[str]:
    """Return the rules that a page does not name."""
    text = (PAGES.parent / page).read_text("utf-8")
    return [name for name in accounting.ACCOUNTANTS if f'"{name}"' not in text]


def test_accountant_needs_one_file_to_guard_a_session(cents):
    p = pd.DataFrame({"x": [1, 2]}).dp.open(1, accountant="cents")
    p.count(epsilon=0.104)
    assert p.budget.fraction == pytest.approx(0.1)  # what the price buys is rounded down
    assert "cents" in p.budget.report("cents").index


def test_accountant_is_listed_in_messages_and_reports_without_another_line(cents):
    with pytest.raises(dpframe.BadValue, match="'cents'"):
        pd.DataFrame({"x": [1, 2]}).dp.open(1, accountant="nothing")
    found = accounting.compare([(accounting.PureDP(Fraction(104, 1000)), 5)], delta=1e-6)
    assert list(found)[-1] == "cents"
    assert found["cents"] == pytest.approx(0.55)


def test_accountant_keeps_the_contract(cents):
    class Contract(FilterContract):
        kind = cents

    for name in dir(Contract):
        if name.startswith("test_"):
            getattr(Contract(), name)()


def test_accountant_of_a_name_that_is_taken_is_refused(cents):
    from dpframe.accounting._filter import register as register_rule

    with pytest.raises(ValueError, match="two accountants have the name 'cents'"):
        register_rule(type("Other", (), {"name": "cents"}))
    assert accounting.ACCOUNTANTS["cents"] is cents


@pytest.mark.parametrize("page", LISTS)
def test_every_accountant_stands_on_the_pages_that_list_them(page):
    assert unlisted(page) == []


@pytest.mark.parametrize("page", LISTS)
def test_accountant_that_no_page_names_is_noticed(page, cents):
    assert unlisted(page) == ["cents"]


def test_accountants_stand_in_the_order_of_reports():
    assert list(accounting.ACCOUNTANTS) == [
        *("pure", "advanced", "advanced-squared", "zcdp", "rdp", "gdp", "tight", "pld")
    ]
