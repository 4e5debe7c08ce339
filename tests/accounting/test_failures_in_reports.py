"""What fails outright comes out of delta before the rest of it is converted."""

from __future__ import annotations

from fractions import Fraction as F

import pytest

from dpframe.accounting import ACCOUNTANTS, DiscreteGaussian
from dpframe.accounting.loss import FailingGaussian

PARTS = ((F(30), F(1)),)
DELTA, FAILURE = F(1, 10**6), F(9, 10**7)


@pytest.mark.parametrize("uses", [1, 3])
@pytest.mark.parametrize(
    "name", ["gdp", "rdp", "tight", "zcdp"]
)  # the others divide delta otherwise
def test_a_report_has_what_failures_leave_of_delta(name, uses):
    report = ACCOUNTANTS[name].report
    failing = FailingGaussian(PARTS, FAILURE / uses)
    gaussian = DiscreteGaussian(parts=PARTS)
    found = report([(failing, uses)], DELTA)
    assert found == pytest.approx(report([(gaussian, uses)], DELTA - FAILURE))
    assert found > report([(gaussian, uses)], DELTA) * 1.05
    assert report([(failing, uses)], FAILURE) == float("inf")
