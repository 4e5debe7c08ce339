"""A place in a batch is its answer when the block has ended, and says what to write before."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, SessionError

USES = {
    "add": lambda n, s: n + 1,
    "add to": lambda n, s: 1 + n,
    "of two": lambda n, s: s / n,
    "subtract from": lambda n, s: [10 - n, 10 / n, 10 // n, 10 % n, 2**n],
    "power": lambda n, s: n**2 + 2 ** (n - n),
    "compare": lambda n, s: [n > 3, n == n, n != 4, n < 5],
    "float": lambda n, s: [
        float(n),
        int(n),
        round(n),
        round(n, 1),
        math.floor(n),
        math.ceil(n),
        math.trunc(n),
    ],
    "unary": lambda n, s: [abs(n), -n, +n],
    "truth": lambda n, s: bool(n),
    "format": lambda n, s: f"{n:.0f} {n} {s}",
    "key": lambda n, s: s["CA"],
    "loc": lambda n, s: s.loc[["CA"]].tolist(),
    "iterate": lambda n, s: list(s),
    "length": lambda n, s: len(s),
    "contains": lambda n, s: "CA" in s,
    "mask": lambda n, s: s[s > 2].tolist(),
    "interval": lambda n, s: [tuple(n.dp.interval()), s.dp.interval().to_numpy().tolist()],
    "after dp": lambda n, s: [(s.dp / n).tolist(), s.dp.cumsum().dp.interval().to_numpy().tolist()],
    "numpy": lambda n, s: [
        np.log(s).tolist(),
        float(np.sqrt(n)),
        np.asarray(s).tolist(),
        float(np.mean(s)),
    ],
    "array on the left": lambda n, s: (np.arange(2) + s).tolist(),
    "series on the left": lambda n, s: (pd.Series([1, 2], index=["CA", "NY"]) + s).tolist(),
    "sum": lambda n, s: s.sum(),
    "shown": lambda n, s: [repr(n), str(s)],
}


@pytest.fixture
def p():
    df = pd.DataFrame({"state": ["CA"] * 5 + ["NY"] * 4})
    return df.dp.open(1000, keys={"state": ["CA", "NY"]}, because="a test")


@pytest.mark.parametrize("use", USES)
def test_a_place_is_used_as_its_answer(p, use):
    with p.plan_ahead() as batch:
        number, series = batch.count(epsilon=100), batch.groupby("state").size(epsilon=100)
    got, wanted = USES[use](number, series), USES[use](number.answer, series.answer)
    assert type(got) is type(wanted)
    if isinstance(wanted, pd.Series):
        pd.testing.assert_series_equal(got, wanted)
    else:
        assert got == wanted


@pytest.mark.parametrize("use", [use for use in USES if use not in ("shown", "format")])
def test_within_the_block_the_error_says_what_to_write(p, use):
    with p.plan_ahead() as batch:
        number, series = batch.count(epsilon=100), batch.groupby("state").size(epsilon=100)
        with pytest.raises(SessionError, match=r"place\.answer"):
            USES[use](number, series)


def test_a_place_can_be_copied_hashed_and_shown_before_it_is_answered(p):
    with p.plan_ahead() as batch:
        number = batch.count(epsilon=100)
        assert number in {number}
        assert repr(copy.copy(number)) == repr(copy.deepcopy(number)) == f"{number}" == repr(number)
        assert not hasattr(number, "_repr_html_")
    assert pickle.loads(pickle.dumps(number)) == number.answer


def test_a_place_as_a_constant_says_what_to_write(p):
    with p.plan_ahead() as batch:
        number = batch.count(epsilon=100)
    assert p.query("state == 'CA'").count(epsilon=100) < number
    with pytest.raises(BadType, match=r"place\.answer"):
        p.assign(n=lambda d: d["state"].isna() + number)
    assert p.assign(n=lambda d: d["state"].isna() + number.answer) is not None
