"""Normal forms of groupings: equal codes mean equal groups, in the order that the forms tell."""

import random
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from dpframe._groups.forms import form_of_groups
from dpframe._groups.unit import Unit
from dpframe._statistics import base as stats_module
from dpframe._statistics.engine import Scope
from dpframe.engines import engine_for

CELLS = {
    "n": pd.array([0, 1, 5, -5, 10, 20, 9, 19, None, 2**53, -(2**62), 11], dtype="Int64"),
    "x": [0.0, -0.0, 5.0, np.nan, np.inf, -np.inf, 10.0, 20.0, 9.999, 10.5, 20.5, -5.0],
    "s": ["a", "b", None, "", "A", "a", "5", "é", "b", "a", "c", "c"],
    "t": ["u", "v", "u", "v", "u", "v", "u", "v", "u", "v", None, "u"],
}
ENDS = [-6, -5, -1, 0, 1, 4, 5, 9, 10, 11, 19, 20, 21, 2**53]


def make_grouping(p, draw):
    """A random grouping, in random words."""
    kind = draw.choice(["bins", "cut", "keys", "rest", "pairs", "two"])
    column = draw.choice(["n", "x"])
    edges = sorted(draw.sample(ENDS, draw.choice([2, 3])))
    if kind == "bins":
        return p.explain.histogram(column, bins=edges)
    if kind == "cut":
        return p.explain.groupby(p[column].cut(edges, right=draw.random() < 0.5)).size()
    if kind == "keys":
        return p.explain.groupby(
            "s", keys=draw.sample(["a", "b", None], draw.choice([2, 3]))
        ).size()
    if kind == "rest":
        return p.explain.groupby("s", keys=draw.sample(["a", "b"], 2), other="others").size()
    if kind == "pairs":
        names = draw.sample(["s", "t"], 2)
        pairs = draw.sample([("a", "u"), ("b", "v"), ("c", "u")], draw.choice([2, 3]))
        keys = pairs if names == ["s", "t"] else [pair[::-1] for pair in pairs]
        return p.explain.groupby(names, keys=keys).size()
    keys = {"s": draw.sample(["a", "b"], 2), "t": draw.sample(["u", "v"], 2)}
    return p.explain.groupby(draw.sample(["s", "t"], 2), keys=keys).size()


@pytest.mark.parametrize("seed", range(4))
def test_groupings_of_one_code_have_the_same_groups(seed, monkeypatch):
    frame, asked = pd.DataFrame(CELLS), []
    p = frame.dp.open(1000)
    make_plan = type(p._session).plan

    def listen(session, one):
        asked.append(one.question.by)
        return make_plan(session, one)

    monkeypatch.setattr(type(p._session), "plan", listen)
    draw = random.Random(seed)
    for _ in range(400):
        make_grouping(p, draw)
    engine = engine_for(frame, b"12345678")
    by_code = {}
    for by in asked:
        form = form_of_groups(by)
        counts = engine.reduce(Scope(None, by), {stats_module.Rows()}, Unit())[stats_module.Rows()]
        shared = counts if form.places is None else counts[form.places]
        by_code.setdefault(form.code, []).append((by, shared.tolist()))
    several = [group for group in by_code.values() if len({str(by) for by, _ in group}) > 1]
    assert len(several) > 10
    for group in several:
        for (one, first), (other, second) in pairwise(group):
            assert first == second, (one, other)


def read_grouping(ask):
    """The groupings of the question that a line asks."""
    found = []
    p = pd.DataFrame(CELLS).dp.open(1000)
    session = p._session
    session.plan = lambda one: found.append(one.question.by)
    with suppress(TypeError, AttributeError):  # there is no plan to show
        ask(p.explain)
    return found[0]


APART = {
    "last bin of fractions": (
        lambda p: p.histogram("x", bins=[0, 10, 20]),
        lambda p: p.groupby(p["x"].cut([0, 10, 20], right=False)).size(),
    ),
    "sides of intervals": (
        lambda p: p.groupby(p["n"].cut([0, 10, 20], right=False)).size(),
        lambda p: p.groupby(p["n"].cut([0, 10, 20], right=True)).size(),
    ),
    "keys and the rest": (
        lambda p: p.groupby("s", keys=["a", "b"]).size(),
        lambda p: p.groupby("s", keys=["a", "b"], other="c").size(),
    ),
    "columns": (
        lambda p: p.groupby("s", keys=["a", "b"]).size(),
        lambda p: p.groupby("t", keys=["a", "b"]).size(),
    ),
    "combinations": (
        lambda p: p.groupby(["s", "t"], keys=[("a", "u"), ("b", "v")]).size(),
        lambda p: p.groupby(["s", "t"], keys=[("a", "v"), ("b", "u")]).size(),
    ),
}


@pytest.mark.parametrize("name", APART)
def test_groupings_that_differ_have_other_codes(name):
    one, other = (form_of_groups(read_grouping(ask)) for ask in APART[name])
    assert one.code != other.code
