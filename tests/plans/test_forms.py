"""What leaves the door is of the shape and kind that its question declared before it read; broken twins do not leave."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpframe  # noqa: F401  (registers .dp)
from dpframe import DataError
from dpframe._frame.randomize import Randomize
from dpframe._questions import entries as engines_rows_module
from dpframe._questions.question import Question
from dpframe._session import session as session_module
from dpframe._session.session import Session
from dpframe._statistics.base import Statistic
from dpframe.engines.pandas import PandasEngine
from dpframe.learn import LinearRegression, LogisticRegression
from dpframe.learn._statistics import Statistics
from dpframe.mechanisms._base import Form, check
from dpframe.mechanisms.noise import GaussianNoise, LaplaceNoise
from dpframe.utilities import distance, revenue
from tests.internals import fits

STATES = ["CA", "NY", "TX"]
ASK = {
    "count": lambda p: p.count(),
    "count of a column": lambda p: p.count("x"),
    "sum": lambda p: p.sum("x"),
    "mean": lambda p: p.mean("x"),
    "std": lambda p: p.std("x"),
    "cov": lambda p: p[["x", "y"]].cov(),
    "nunique": lambda p: p.nunique("s"),
    "counts": lambda p: p.counts({"a": "x > 1", "b": "y > 1"}),
    "groups": lambda p: p.groupby("s", keys=STATES).agg(n=("x", "size"), m=("x", "mean")),
    "combinations": lambda p: p.groupby(["s", "b"], keys={"s": STATES}).size(),
    "other": lambda p: p.groupby("s", keys=["CA"], other="else").size(),
    "histogram": lambda p: p.histogram("x", bins=5),
    "argmax": lambda p: p.argmax("s", keys=STATES),
    "top": lambda p: p.top("s", 2, keys=STATES),
    "argmax in groups": lambda p: p.groupby("b").argmax("s", keys=STATES),
    "top in groups": lambda p: p.groupby("b").top("s", 2, keys=STATES),
    "choose": lambda p: p.choose([1, 2, 3], distance("x")),
    "revenue": lambda p: p.choose([1, 2, 3], revenue("x")),
    "exponential": lambda p: p.choose([1, 2, 3], distance("x"), mechanism="exponential"),
    "median": lambda p: p.median("x"),
    "quantiles of groups": lambda p: p.groupby("s", keys=STATES)["x"].quantile([0.1, 0.5]),
    "tree": lambda p: p.quantile("x", [0.5], method="tree"),
    "bounds": lambda p: p.suggest_bounds("x"),
    "wide noise": lambda p: p.mean("x", epsilon=2**-45),
    "randomize": lambda p: p.randomize("s", keys=STATES),
    "two values": lambda p: p.randomize("b"),
    "a number": lambda p: p.randomize("x", epsilon=0.1),
    "unique": lambda p: p.unique("s"),
    "fit": lambda p: p.fit(LinearRegression(l2=1), X=["x"], y="y"),
    "objective": lambda p: p.fit(LogisticRegression(method="objective"), X=["x"], y="b"),
    "output": lambda p: p.fit(LogisticRegression(method="output", l2=1), X=["x"], y="b"),
    "gradient": lambda p: p.fit(LogisticRegression(method="gradient"), X=["x"], y="b"),
}
PEOPLE = {
    **ASK,
    "limits": lambda p: p.suggest_limits("s", keys=STATES),
    "people": lambda p: p.nunique("id"),
}


def frame(n, seed=0):
    draw = np.random.default_rng(seed)
    columns = {
        "id": draw.permutation(np.arange(n) * 1000),
        "x": draw.uniform(0, 10, n),
        "y": draw.uniform(0, 10, n),
        "s": pd.Series(draw.choice([*STATES, "WY"], n), dtype="str"),
        "b": draw.integers(0, 2, n).astype(bool),
    }
    return pd.DataFrame(columns)


def opened(df, unit=None, **terms):
    words = {"unit": "id", "max_rows": 2, "max_groups": 2} if unit else {}
    return df.dp.open(
        100,
        1e-6,
        neighbors="replace-one",
        queries=100,
        bounds={"x": (0, 10), "y": (0, 10)},
        **words,
        **terms,
    )


FRAMES = {
    "many": lambda: frame(300),
    "nobody": lambda: frame(0),
    "one": lambda: frame(1),
    "all null": lambda: frame(64).assign(x=np.nan, y=np.nan, s=pd.Series([None] * 64, dtype="str")),
}


@pytest.mark.parametrize("unit", [None, "id"])
@pytest.mark.parametrize("name", FRAMES)
def test_every_question_returns_what_it_declares(monkeypatch, name, unit):
    df = FRAMES[name]().astype({"id": str})  # people by text
    p, seen = opened(df, unit), []
    check = session_module.check
    monkeypatch.setattr(
        session_module, "check", lambda forms, raw: (seen.append((forms, raw)), check(forms, raw))
    )
    for kind, ask in (PEOPLE if unit else ASK).items():
        before = len(seen)
        ask(p)
        assert len(seen) > before, kind
    for forms, raw in seen:
        assert all(fits(f, a) for f, a in zip(forms, raw, strict=True))


def declared(df, unit, monkeypatch):
    forms = []
    with monkeypatch.context() as patch:
        patch.setattr(session_module, "check", lambda found, raw: forms.append(found))
        p = opened(df, unit)
        for ask in (PEOPLE if unit else ASK).values():
            ask(p)
    return forms


@pytest.mark.parametrize("unit", [None, "id"])
def test_what_is_declared_is_the_same_for_all_cells(monkeypatch, unit):
    one, two = (
        frame(64).assign(id=[f"a{i}" for i in range(64)]),
        frame(64, seed=1).assign(id=[f"b{i}" for i in range(64)]),
    )
    two["s"] = pd.Series(["CA"] * 64, dtype="str")
    assert declared(one, unit, monkeypatch) == declared(two, unit, monkeypatch)


# Broken twins -------------------------------------------------------------------------------------------------

BROKEN = {
    "a column more": lambda a: np.concatenate([a, a[:, :1]], axis=1),
    "a row less": lambda a: a[:-1],
    "flat": lambda a: a.ravel(),
    "doubles": lambda a: a.astype(np.float64),
    "Python's integers": lambda a: a.astype(object),
    "32 bits": lambda a: a.astype(np.int32),
    "a list": lambda a: a.tolist(),
    "no array": lambda a: None,
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize(
    "kind", ["count", "groups", "argmax", "median", "tree", "randomize", "fit"]
)
def test_a_twin_that_returns_something_else_is_stopped_and_stays_charged(monkeypatch, kind, how):
    read = Session.run_question

    returned = []

    def twin(self, *words):
        first, *rest = read(self, *words)
        returned.append((BROKEN[how](first), *rest))
        return returned[-1]

    p = opened(frame(64))
    monkeypatch.setattr(Session, "run_question", twin)
    with pytest.raises(DataError):
        ASK[kind](p)
    assert (len(returned), len(p.ledger)) == (1, 1)
    monkeypatch.undo()
    ASK[kind](p)
    assert len(p.ledger) == 2


@pytest.mark.parametrize("made", [lambda raw: raw[:-1], lambda raw: (*raw, raw[0]), lambda raw: ()])
def test_more_arrays_or_fewer_are_stopped(monkeypatch, made):
    read = Session.run_question
    monkeypatch.setattr(Session, "run_question", lambda self, *words: made(read(self, *words)))
    p = opened(frame(64))
    with pytest.raises(DataError):
        p.randomize("s", keys=STATES)
    assert len(p.ledger) == 1


def test_a_statistic_that_counts_one_group_too_many_is_stopped(monkeypatch):
    reduce = PandasEngine.reduce

    def twin(self, *words):
        return {p: np.append(a, a[..., :1], axis=-1) for p, a in reduce(self, *words).items()}

    monkeypatch.setattr(PandasEngine, "reduce", twin)
    for kind in ("count", "mean", "groups", "median", "tree", "nunique", "histogram"):
        with pytest.raises(DataError):
            ASK[kind](opened(frame(64)))


def by_the_range_of_ids(engine, columns, limit, entries, blank):
    """Reports from the least id to the largest, as whole-number ids once were counted."""
    ids = engine.table.frame.iloc[:, columns[0].position]
    return np.full((int(ids.max() - ids.min()) + 1) * limit, blank, dtype=entries.dtype)


def test_reports_by_the_range_of_ids_do_not_leave(monkeypatch):
    monkeypatch.setattr(engines_rows_module, "take_rows_of_people", by_the_range_of_ids)
    p = opened(frame(64), "id")
    for ask in ("randomize", "two values", "a number"):
        with pytest.raises(DataError):
            ASK[ask](p)
    assert len(p.ledger) == 3


@pytest.mark.parametrize("more", [-1, 1, 63, 64, 6400])
@pytest.mark.parametrize("kind", ["randomize", "two values", "a number"])
def test_one_report_more_or_less_does_not_leave(monkeypatch, kind, more):
    """Also where the packed words are as many."""
    pack = Randomize.run

    def twin(self, *words):
        words, size = pack(self, *words)
        return words, size + more

    monkeypatch.setattr(Randomize, "run", twin)
    with pytest.raises(DataError):
        ASK[kind](opened(frame(128)))


def test_a_fit_with_a_coefficient_too_many_does_not_leave(monkeypatch):
    own = Statistics.run

    def twin(self, data, plan, unit, noise):
        return own(self, data, plan, unit, lambda part, v: noise(part, np.vstack([v, v[:1]])))

    monkeypatch.setattr(Statistics, "run", twin)
    with pytest.raises(DataError):
        ASK["fit"](opened(frame(64)))


# Forms --------------------------------------------------------------------------------------------------------


def test_each_kind_of_question_has_a_declaration():
    assert "forms" in Question.__abstractmethods__
    for kind in Statistic.__subclasses__():
        for one in (kind, *kind.__subclasses__()):
            shape = one.shape.__qualname__.split(".")[0]
            assert shape in {c.__name__ for c in one.__mro__}


def test_lengths_that_are_answers_are_one_length():
    forms = Form((None,), "U"), Form((2, None), "i")
    keys = np.array(["a", "b", "c"], dtype=object)
    check(forms, (keys, np.zeros((2, 3), dtype=np.int64)))
    for shape in ((2, 2), (2, 4), (3, 3)):
        with pytest.raises(AssertionError):
            check(forms, (keys, np.zeros(shape, dtype=np.int64)))


@pytest.mark.parametrize(("kind", "edge"), [(LaplaceNoise, 2**48), (GaussianNoise, 2**88)])
def test_the_kind_that_follows_from_a_scale_is_the_one_that_is_drawn(kind, edge):
    third = Fraction(1, 3)
    scales = [edge * part for part in (third, 1 - third / edge, 1, 1 + third / edge, 3, edge)]
    scales += [Fraction(edge, 2**k) for k in (1, 24, 25, 47, 48, 60)]
    kinds = {kind(Fraction(scale)).form((1, 9)).kind for scale in scales}
    assert kinds == {"i", "O"}
    for scale in scales:
        noise = kind(Fraction(scale))
        assert {noise.draw(size).dtype.kind for size in (0, 1, 30)} == {noise.form((1, 9)).kind}


def test_the_kind_of_noise_follows_from_its_scale():
    for noise in (LaplaceNoise(2), LaplaceNoise(2**70), GaussianNoise(4), GaussianNoise(2**140)):
        for size in (0, 1, 50):
            drawn = noise.release(np.zeros((1, size), dtype=np.int64))
            assert fits(noise.form((1, size)), drawn)
    assert [n.form((1,)).kind for n in (LaplaceNoise(2), LaplaceNoise(2**70))] == ["i", "O"]


def test_a_form_is_exact_but_for_lengths_that_are_answers():
    texts = np.array(["a", "b"], dtype=object)
    assert fits(Form((None,), "U"), texts)
    assert not fits(Form((None,), "U"), np.array([1, 2]))
    assert not fits(Form((None,), "U"), np.array(["a", 2], dtype=object))
    assert not fits(Form((None, 1), "U"), texts)
    assert fits(Form((1, 1), "i", 3), np.array([[3]]))
    assert not fits(Form((1, 1), "i", 3), np.array([[4]]))
    assert not fits(Form((1, 1), "i", 1), np.array([[True]]))
