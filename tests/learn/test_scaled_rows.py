"""People with more rows than count in a fit: many equal rows are worth as many as the limit, and no more."""

from __future__ import annotations

import numpy as np
import pytest

from dpframe.learn._statistics import Statistics
from tests.learn.test_proofs import CORNERS, HUBER, design, units, unnoised


def limited():
    """The session whose people count for two rows."""
    return next(unit for unit, rows, neighbors in units() if rows > 1 and neighbors == "add-remove")


@pytest.mark.parametrize("rows", [2, 3, 4, 9, 50])
@pytest.mark.parametrize("corner", CORNERS[:4], ids=str)
def test_sums_of_products_of_equal_rows_are_those_of_so_many(corner, rows):
    fit = Statistics(design("number"), HUBER, None)
    ((_, many),) = unnoised(fit, [(*corner, 1)] * rows, limited())
    ((_, two),) = unnoised(fit, [(*corner, 1)] * 2, limited())
    assert np.abs(many - two).max() <= 1e-3 * np.abs(two).max()
