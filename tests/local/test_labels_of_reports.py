"""Labels of randomized reports are the keys that were listed, also where numpy would make two of them one number."""

from __future__ import annotations

import pandas as pd
import pytest

from dpframe import BadValue
from dpframe.utilities import distance


def test_keys_on_both_sides_of_what_a_double_holds():
    keys = [2.5, 2**63 - 1, 2**63]
    df = pd.DataFrame({"c": pd.Series([2.5, 2**63 - 1, 2**63, 2**63], dtype=object)})
    p = df.dp.open(1000, neighbors="replace-one")
    assert p.randomize("c", keys=keys, epsilon=300).tolist() == [2.5, 2**63 - 1, 2**63, 2**63]


def test_distances_that_no_double_holds_are_refused():
    p = pd.DataFrame({"x": [1.0]}).dp.open(1)
    with pytest.raises(BadValue, match="further apart"):
        p.choose([0, 1], distance("x", bounds=(-1e308, 1e308)), epsilon=0.1)
