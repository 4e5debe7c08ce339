"""Every accountant against the reference values: none is below the truth."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpframe.accounting import (
    ACCOUNTANTS,
    epsilon,
    from_json,
)

F = Fraction

# References --------------------------------------------------------------------------------------------------------

CASES = json.loads((Path(__file__).parent / "reference.json").read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("name", [name for name in ACCOUNTANTS if name != "tight"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_no_accountant_reports_less_than_the_truth(case: dict[str, Any], name: str) -> None:
    found = epsilon(from_json(case["events"]), case["delta"], name)
    assert found >= float(case["epsilon_lower"]) * (1 - 1e-9)
    if name == "pld" and case["events"][0]["type"] != "discrete_gaussian":
        assert found <= float(case["epsilon_tight"]) * (1 + 1e-3)


@pytest.mark.scaled
def test_nor_does_tight(full: bool) -> None:
    """A residue of Laplace noise or of a choice takes milliseconds, and a report has hundreds: fewer unless -m slow."""
    slow_kinds = {"laplace", "exponential"}
    tried = 0
    for case in CASES:
        if full or (
            not slow_kinds & {e["type"] for e in case["events"]}
            and case["events"][0]["count"] < 1000
        ):
            found = epsilon(from_json(case["events"]), case["delta"], "tight")
            assert found >= float(case["epsilon_lower"]) * (1 - 1e-9), case["id"]
            tried += 1
    assert tried > 15
