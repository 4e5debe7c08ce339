"""Values for values in a whole frame: in the columns that can hold them, by column, and null for some."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, Refused

DF = pd.DataFrame(
    {
        "sex": ["F", "M", "?", None],
        "cost": [3, 4, -1, 8],
        "ill": [True, False, True, True],
        "x": [1.5, np.nan, -1, 2],
    }
)


@pytest.fixture
def p():
    frame = pd.DataFrame({name: DF[name].to_list() for name in DF})
    return frame.dp.open(
        1000, queries=200, bounds={"cost": (-1, 9), "x": (-1, 9)}, keys={"sex": ["F", "M"]}
    )


REPLACED = {
    "a text by null": (("?", None), {}),
    "a number by null": ((-1, np.nan), {}),
    "some by others": (({"F": "female", "?": "unknown"},), {}),
    "lists": ((["F", "?"], "other"), {}),
    "by column": (({"sex": {"F": "f"}, "cost": {-1: 0}},), {}),
    "a value of some columns": (({"cost": -1, "x": -1}, 0), {}),
    "null by a value": ((np.nan, 5), {"only": ["x"]}),
    "null and others": (({"?": None, "F": "f"},), {}),
    "what does not occur": (("nobody", "somebody"), {}),
}


@pytest.mark.parametrize("name", REPLACED)
def test_it_is_that_of_pandas(p, name):
    args, options = REPLACED[name]
    columns = options.get("only", list(DF))
    exact = DF[columns].replace(*args)
    made = p[columns].replace(*args)
    assert (made.isna().sum(epsilon=100) == exact.isna().sum()).all()
    for column in columns:
        if column == "sex":
            values = [v for v in exact["sex"].unique() if isinstance(v, str)]
            counts = made["sex"].value_counts(keys=values, epsilon=100)
            assert counts.to_dict() == exact["sex"].value_counts().to_dict()
        else:
            assert (
                abs(made[column].sum((-1, 9), epsilon=100) - exact[column].astype(float).sum())
                < 0.5
            )


def test_groups_with_all_declared_keys_listed_keep_the_others(p):
    made = p["sex"].replace({"F": "female", "M": "male"})
    assert made.value_counts(epsilon=300).to_dict() == {"female": 1, "male": 1}
    assert (
        made.isna().sum(epsilon=300)
        == DF["sex"].replace({"F": "female", "M": "male"}).isna().sum()
        == 1
    )


def test_a_function_of_one_value_is_that_of_every_cell(p):
    made = p[["cost", "x"]].map(lambda v: v * 2 + 1)
    assert abs(made["cost"].sum(epsilon=300) - (DF["cost"] * 2 + 1).sum()) < 0.5
    assert made["x"]._expr.bounds(p._session.bounds) == (-1, 19)


def test_it_is_a_step_that_may_be_in_place_and_reads_nothing(p):
    assert p.replace("?", None, inplace=True) is None
    assert "isin" in str(p["sex"]._expr)
    for ask in (
        lambda: p.replace({"sex": {"F": 1}}),
        lambda: p.replace(3),
        lambda: p.replace("a", "b", regex=True),
        lambda: p.map("upper"),
        lambda: p[["cost"]].map(lambda v: print(v) or v),
    ):
        with pytest.raises((BadType, Refused)):
            ask()
    assert p.ledger.empty
