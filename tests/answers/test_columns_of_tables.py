"""Tables in which choices stand beside numbers, and columns that are taken from a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpframe import BadValue, NotOffered

BOUNDS = {"cost": (0, 1000)}


@pytest.fixture
def p():
    df = pd.DataFrame({"cost": [10.0, 20.0, 30.0, 40.0] * 50, "state": ["CA", "NY"] * 100})
    return df.dp.open(100, bounds=BOUNDS, keys={"state": ["CA", "NY"]})


def test_a_median_and_a_count_have_intervals_of_their_own(p):
    table = p.groupby("state").agg(m=("cost", "median"), n=("cost", "size"), epsilon=2)
    found = table.dp.interval()
    for name in ("m", "n"):
        assert table[name].between(found[name, "lower"], found[name, "upper"]).all()
        pd.testing.assert_frame_equal(table[name].dp.interval(), found[name])


def test_the_picture_has_bars_where_there_are_intervals(p):
    table = p.groupby("state").agg(m=("cost", "median"), n=("cost", "size"), epsilon=2)
    m, n = table.dp.plot()  # a panel each, since a count and a median are no one scale
    assert [ax.get_ylabel() for ax in (m, n)] == ["m", "n"]
    drawn = [sum(map(len, ax.containers[0].lines[2][0].get_segments())) for ax in (m, n)]
    assert min(drawn) > 0
    assert table["m"].dp.plot() is not None


def test_a_receipt_of_an_earlier_version_has_no_interval_and_is_not_called_reliable(p):
    answer = p.median("cost", epsilon=2)
    (cell,) = answer.plan.cells
    constants = {k: v for k, v in cell.constants.items() if k not in ("around", "level")}
    plan = replace(
        answer.plan, parts=answer.plan.parts[:1], cells=(replace(cell, constants=constants),)
    )
    old = type(answer)(float(answer), plan, answer._raw[:1])
    assert not old.reliable
    assert (old.lower, old.upper) == (None, None)
    with pytest.raises(NotOffered, match="earlier version"):
        old.interval()


@pytest.mark.parametrize(
    "ask",
    [
        lambda p: p.groupby("state").agg(n=("cost", "size"), m=("cost", "mean"), epsilon=2),
        lambda p: p.groupby("state")[["cost"]].agg(["mean", "count"], epsilon=2),
        lambda p: p.groupby("state", as_index=False).agg(
            n=("cost", "size"), m=("cost", "mean"), epsilon=2
        ),
    ],
)
def test_a_column_keeps_its_interval(p, ask):
    table = ask(p)
    every = table.dp.interval()
    for i, name in enumerate(table.columns[-2:]):
        column = table[name]
        assert np.array_equal(column.dp.interval(), every.iloc[:, 2 * i : 2 * i + 2])
        assert column.dp.plan == table.dp.plan
        with pytest.raises(BadValue, match="have changed"):
            _ = column.pow(2).dp.interval()
        with pytest.raises(BadValue, match="have changed"):
            _ = column.rename("other").dp.interval()


def test_a_column_is_known_by_its_values_and_not_by_its_place(p):
    table = p.groupby("state").agg(n=("cost", "size"), m=("cost", "mean"), epsilon=2)
    every, turned = table.dp.interval(), table[["m", "n"]]
    pd.testing.assert_frame_equal(turned["n"].dp.interval(), every["n"])
    assert not np.allclose(every["n"], every["m"])
