"""The sketch by which a ledger of the first format knows people again prints cells: so only those whose code is Python's."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd

from tests.internals import former_sketch

SECRET = b"0" * 32


class Told:
    """A cell that tells when its code runs."""

    ran: ClassVar[list[str]] = []

    def __str__(self):
        self.ran.append("str")
        return "x"

    __repr__ = __str__


def test_no_code_of_a_cell_runs():
    cells = pd.Series([Told() for _ in range(40)], dtype=object)
    assert former_sketch(pd.DataFrame({"x": np.arange(40), "y": cells}), SECRET) is None
    assert Told.ran == []


def test_plain_objects_have_one():
    frame = pd.DataFrame({"x": pd.Series([*range(20), *map(str, range(20))], dtype=object)})
    assert former_sketch(frame, SECRET)
