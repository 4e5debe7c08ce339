"""What a hostile review of derived frames, reports and replays found; each test fails without its fix."""

from __future__ import annotations

import gc
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest

import dpframe  # noqa: F401  (registers .dp)
from dpframe import LineageError, Refused, audit
from dpframe._answers import reports as _unbiased
from dpframe.mechanisms.response import Response, points_for, round_to_points

ONE = {"max_rows": 1, "max_groups": 1}
STATES = pd.DataFrame({"state": ["CA", "NY"], "coast": ["west", "east"]})


def people(size=40):
    n = np.arange(size)
    return pd.DataFrame(
        {
            "id": n // 2,
            "age": 20.0 + n % 50,
            "state": np.where(n % 2, "CA", "NY"),
            "ill": np.where(n % 3, "no", "yes"),
            "codes": [["a"] * (i % 3) for i in n],
        }
    )


CHOSEN = {
    "filter, merge": lambda p: p.query("age > 30").merge(STATES, on="state", how="left"),
    "inner merge": lambda p: p.merge(STATES[:1], on="state"),
    "filter, explode": lambda p: p.query("age > 30").explode("codes", **ONE),
    "filter, melt": lambda p: p.query("age > 30").melt(["id", "ill"], ["age"]),
    "filter, melt, explode": lambda p: (
        p.query("age > 30").explode("codes", **ONE).melt(["id", "ill"], ["age"])
    ),
    "pipe": lambda p: p.pipe(lambda d: d[d["age"] > 30], **ONE),
    "pipe in another order": lambda p: p.pipe(lambda d: d.sort_values("age"), **ONE),
    "adopt": lambda p: p.adopt(people()[20:], because="a test", **ONE),
}


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("step", CHOSEN)
def test_reports_do_not_show_how_many_people_a_step_keeps(step, unit):
    """The number of reports is exact, and so is whose rows come first."""
    p = people().dp.open(
        50, neighbors="replace-one", **({"unit": "id", "max_rows": 2} if unit else {})
    )
    with pytest.raises(Refused):
        CHOSEN[step](p).randomize("ill", ["no", "yes"], epsilon=1)
    assert p.budget.spent == 0


def test_reports_of_all_people_may_be_derived():
    p = people().dp.open(500, neighbors="replace-one")
    for q in (
        p.merge(STATES, on="state", how="left"),
        p.explode("codes", **ONE),
        p.melt("ill", ["age"]),
        p.melt(["ill", "state"], ["age"]).merge(STATES, on="state", how="left"),
    ):
        assert len(q.randomize("ill", ["no", "yes"], epsilon=1)) == 40


def test_replay_lets_nobody_ask_the_true_door():
    """A frame of the owner's would have been answered from the data, without being compared."""
    one, two = (people(n).drop(columns="codes") for n in (3, 4))
    answers = []
    with pytest.raises(Refused, match="replay follows"):
        audit.replay(
            lambda p: answers.append(p.adopt(people(3), because="x", **ONE).count(epsilon=500)),
            one,
            two,
            epsilon=1000,
        )
    with pytest.raises(Refused):
        audit.replay(
            lambda p: answers.append(p.open(1000).count(epsilon=500)), one, two, epsilon=1000
        )
    assert not answers


@pytest.mark.parametrize(
    "wrap",
    [lambda n: {"n": n}, lambda n: {n}, lambda n: pd.Index([n]), Fraction, lambda n: [{"n": [n]}]],
)
def test_replay_looks_into_what_is_returned(wrap):
    one, two = (people(n).drop(columns="codes") for n in (3, 4))
    found = audit.replay(lambda p: wrap(len(p._session.snapshot)), one, two, epsilon=1)
    assert not found.ok
    assert audit.replay(lambda p: wrap(7), one, two, epsilon=1).ok


def test_half_a_surrogate_pair_raises_nothing():
    """An error would quote the cell, and happen for some data only."""
    schemas = []
    for cell in ("fine", "\ud800"):
        df = pd.DataFrame(
            {
                "x": [1.0, 2.0],
                "name": pd.Series(["a", cell], dtype=object),
                "codes": [["a"], [cell]],
            }
        )
        p = df.dp.open(900)
        texts = p.explode("codes", dtype="str", **ONE)
        q = p.assign(low=p["name"].str.lower()).melt("low", ["x"])
        schemas.append(
            [texts._session.snapshot.dtypes.tolist(), q._session.snapshot.dtypes.tolist()]
        )
        assert texts.groupby("codes", keys=["a"]).size(epsilon=300)["a"] == 1
    assert schemas[0] == schemas[1]


@pytest.mark.parametrize(
    "looks",
    [
        lambda d: d[d.groupby("state")["age"].transform("size") >= 8],
        lambda d: d.assign(age=d["age"] * (len(d) > 50)),
        lambda d: d.head(60) if len(d) > 60 else d.assign(age=0.0),
    ],
)
def test_what_goes_by_the_number_of_people_is_seen_on_a_few(looks):
    p = people(400).drop(columns=["codes", "id"]).dp.open(1)
    with pytest.raises(Refused, match="person by person"):
        p.pipe(looks, **ONE)


def test_private_frames_are_seen_behind_arguments_and_functions():
    df = people().drop(columns="codes")
    p = df.dp.open(1)

    def less(d, other):
        return d.assign(age=d["age"] - other["age"].mean())

    def helper(d):
        return less(d, df)

    class Step:
        def __init__(self, other):
            self.other = other

        def __call__(self, d):
            return less(d, self.other)

        def run(self, d):
            return less(d, self.other)

    for function, *arguments in (
        (partial(less, other=df),),
        (lambda d: helper(d),),
        (lambda d, others: less(d, others[0]), [df]),
        (Step(df),),
        (Step(df).run,),
        ((less, "d"), {"other": df}),
    ):
        with pytest.raises(Refused, match="outside"):
            p.pipe(function, *arguments, **ONE)
    assert p.pipe(partial(lambda d, by: d.assign(age=d["age"] + by), by=1), **ONE) is not None


def test_pipe_gives_lists_of_its_own():
    p = people(6).dp.open(1)

    def adds(d):
        for cell in d["codes"]:
            cell.append(float(d["age"].sum()))
        return d

    before = p._session.snapshot["codes"].map(list).tolist()
    with pytest.raises(Refused):
        p.pipe(adds, **ONE)
    assert p._session.snapshot["codes"].tolist() == before


def test_an_adopted_frame_gets_no_budget_of_its_own():
    p = people().dp.open(1)
    other = people().drop(columns="codes")
    q = p.adopt(other, because="a test", **ONE)
    del q
    gc.collect()
    with pytest.raises(LineageError):
        other.dp.open(1)
    assert p.adopt(other, because="again", **ONE) is not None


@pytest.mark.parametrize(("epsilon", "n"), [(10, 100), (8, 100), (6, 100), (12, 1000), (20, 1000)])
def test_the_mean_of_equal_numbers_is_covered(epsilon, n):
    """With few lies, reports may show no variance at all, and the interval of the normal law is a point beside the mean."""
    k = points_for(Fraction(epsilon))
    response, t = Response(Fraction(epsilon), k), (k // 4) / (k - 1)
    steps = np.full(n, round(t * 2**31))
    covered = 0
    for _ in range(200):
        counts = np.bincount(
            response.respond(round_to_points(steps, 2**31, k)), minlength=k
        ).reshape(1, -1)
        low, high = _unbiased.mean_ends(response, counts, 0.95)
        covered += bool(low[0] <= t <= high[0])
    assert covered >= 180


def test_pairs_that_nobody_has_are_covered():
    response = Response(Fraction(5), 5)
    x = np.repeat([1, 2, 1], [100, 5, 5])
    y = np.repeat([1, 2, 2], [100, 5, 5])
    covered = 0
    for _ in range(100):
        codes = response.respond(y).astype(int) * 5 + response.respond(x)
        low, high = _unbiased.joint_ends(
            response, response, np.bincount(codes, minlength=25).reshape(5, 5), 0.95
        )
        covered += bool(low[4, 4] <= 0 <= high[4, 4])
    assert covered >= 90
