"""Estimates and receipts: an answer knows its plan and its interval for as long as it is the answer that was given."""

from __future__ import annotations

import copy
import csv
import io
import json
import math
import pickle
import re

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadValue
from dpframe._answers.estimate import FloatEstimate, IntEstimate

STATES = ["NY", "CA", "WA"]
SECRET = "a-cell-that-nobody-may-see"


@pytest.fixture
def df():
    return pd.DataFrame(
        {
            "age": [31, 47, 66, 80, 12, 55, 70, 41],
            "cost": [120.5, None, 80.25, 900.0, 15.0, 60.0, 30.0, 123456.789],
            "state": ["CA", "NY", "CA", SECRET, None, "NY", "CA", "CA"],
        }
    )


@pytest.fixture
def p(df):
    return df.dp.open(100, bounds={"age": (0, 110), "cost": (0, 1000)}, keys={"state": STATES})


ANSWERS = {
    "series": lambda p: p.groupby("state")["cost"].mean(),
    "sizes": lambda p: p.groupby("state").size(),
    "table": lambda p: p.groupby("state").agg(n=("age", "size"), m=("cost", "mean")),
    "counts": lambda p: p.counts({"a": "age > 50", "b": "age > 20"}),
    "means": lambda p: p[["age", "cost"]].mean(),
    "histogram": lambda p: p.histogram("age", bins=[0, 50, 110]),
    "value_counts": lambda p: p.value_counts("state"),
    "two columns": lambda p: p.assign(old="age > 50").groupby(["state", "old"]).size(),
}


# Estimates ----------------------------------------------------------------------------------------------------


def test_scalar_is_a_number_with_plan_cost_and_interval(p):
    answer = p.mean("age", epsilon=0.5)
    assert isinstance(answer, FloatEstimate)
    assert isinstance(answer, float)
    assert isinstance(answer, dpframe.Estimate)
    assert answer.cost.epsilon == answer.plan.loss.epsilon == 0.5
    low, high = answer.interval()
    assert low <= answer <= high
    wide = answer.interval(0.999)
    assert wide[0] <= low
    assert high <= wide[1]
    assert isinstance(p.count(), IntEstimate)
    assert isinstance(p.sum("age"), IntEstimate)
    assert isinstance(p.sum("cost"), FloatEstimate)


def test_arithmetic_gives_numbers(p):
    answer = p.count(epsilon=50)
    for made, kind in ((answer + 1, int), (answer / 1000, float), (p.mean("age") * 2, float)):
        assert isinstance(made, kind)
        assert isinstance(made, dpframe.Estimate)
    assert type(answer**2) is type(answer // 1) is int
    assert answer == 8
    assert hash(answer) == hash(8)
    assert list(range(10))[answer] == 8


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, float("nan")])
def test_level_of_an_interval_lies_between_0_and_1(p, level):
    for ask in (p.count(), p.groupby("state").size().dp):
        with pytest.raises(ValueError, match="level"):
            ask.interval(level)
    with pytest.raises(TypeError):
        p.count().interval("95%")


def test_repr_is_short_and_formats_as_a_number(p):
    answer = p.mean("age", epsilon=5)
    assert re.fullmatch(r"-?\d+(\.\d+)? ± \d+(\.\d+)?", repr(answer))
    assert f"{answer:.1f}" == f"{float(answer):.1f}"
    assert repr(p.count(epsilon=60)) == "8 ± 0"
    assert json.dumps({"n": p.count(epsilon=60)}) == '{"n": 8}'
    assert "95 % interval" in answer._repr_html_()


def test_what_is_written_down_is_a_plain_number(p):
    """csv takes the str of a value, and print and format do."""
    whole, real = p.count(epsilon=60), p.mean("age", epsilon=5)
    out = io.StringIO()
    csv.writer(out).writerow([whole, real])
    assert out.getvalue() == f"8,{float(real)!r}\r\n"
    assert (str(whole), f"{whole}", f"{whole:>4}", "%s" % whole) == ("8", "8", "   8", "8")  # noqa: UP031
    assert float(str(real)) == float(f"{real}") == json.loads(json.dumps(real)) == real
    table = pd.DataFrame({"n": pd.Series([whole, real], dtype=object)})
    assert table.to_csv(index=False) == f"n\n8\n{float(real)!r}\n"
    chosen = p.median("age", epsilon=5)
    assert str(chosen) == repr(float(chosen))


def test_repr_of_a_hopeless_estimate_is_short_too():
    p = pd.DataFrame({"x": [1.0]}).dp.open(1)
    for answer in (
        p.sum("x", bounds=(0, 1e300), epsilon=1e-6),
        p.mean("x", bounds=(-1e300, 1e300), epsilon=1e-6),
        p.count(epsilon=2**-40),
        p.var("x", bounds=(0, 1e-200), epsilon=1e-6),
    ):
        assert len(repr(answer)) < 60
        assert all(math.isfinite(end) for end in answer.interval())


@pytest.mark.parametrize("make", [pickle.dumps, copy.deepcopy, copy.copy])
def test_estimate_survives_pickle_and_copy_without_raw_data(p, make):
    for answer in (p.mean("cost"), p.count()):
        made = make(answer)
        twin = pickle.loads(made) if isinstance(made, bytes) else made
        assert (twin, type(twin), twin.plan) == (answer, type(answer), answer.plan)
        assert twin.interval(0.9) == answer.interval(0.9)
        if isinstance(made, bytes):
            assert SECRET.encode() not in made
            assert np.float64(123456.789).tobytes() not in made


def test_estimate_in_pandas_is_a_plain_number(p):
    series = pd.Series([p.mean("age"), p.mean("cost")])
    assert series.dtype == float
    assert isinstance(series.sum(), float)


def test_released_number_can_stand_in_the_next_question(p):
    middle = p.mean("age", epsilon=20)
    n = p.count(epsilon=20)
    for q in (
        p.query("age > @middle and age > @n"),
        p[(p["age"] > middle) & (p["age"] > n)],
        p[p["age"].between(middle, 200)],
    ):
        assert 0 <= q.count(epsilon=15) <= 8


# Receipts -----------------------------------------------------------------------------------------------------


def test_receipt_is_a_plain_dict_of_one_text(p):
    answer, again = p.groupby("state").size(), p.groupby("state").size()
    assert type(answer.attrs) is dict
    assert json.loads(answer.attrs["dpframe_receipt"])["seal"]
    assert answer.attrs == again.attrs


@pytest.mark.parametrize("ask", [*ANSWERS, "groups that are found"])
def test_a_receipt_says_the_same_whenever_it_is_written(p, ask):
    """Whatever is done to an answer, and to what its plan is made of, before somebody looks at the receipt."""
    if ask not in ANSWERS:
        frame = pd.DataFrame(
            {"state": ["a", "b", "a"] * 300, "age": 1.0, "cost": [1.0, 2.0, 3.0] * 300}
        )
        p = frame.dp.open(100, 1e-6, bounds={"cost": (0, 9)})
    ask = ANSWERS.get(ask, ANSWERS["table"])
    answer = ask(p)
    (_, record), *_ = p._session.answers.values()
    release = record.release
    before = [(dict(cell.functionals), dict(cell.constants)) for cell in release.plan.cells]
    if isinstance(answer, pd.DataFrame):
        answer.iloc[:, 0] = -77
        answer.columns = ["other", "names"]
    else:
        answer.iloc[:] = -77
        answer.name = "another"
    answer.index.names = ["other"] * answer.index.nlevels
    for cell in release.plan.cells:
        cell.functionals.clear()
        cell.constants["n"] = 3.0
    late = json.loads(answer.attrs["dpframe_receipt"])
    assert [(row[7], row[8]) for row in late["plan"]["cells"]] == [
        ({name: list(weights) for name, weights in maps.items()}, constants)
        for maps, constants in before
    ]
    for cell, (maps, constants) in zip(release.plan.cells, before, strict=True):
        cell.functionals.update(maps)
        cell.constants.clear()
        cell.constants.update(constants)
    again = ask(p)
    assert json.loads(again.attrs["dpframe_receipt"]) == late


@pytest.mark.parametrize("ask", ANSWERS)
def test_answer_knows_its_plan_cost_and_intervals(p, ask):
    answer = ANSWERS[ask](p)
    assert answer.dp.plan == ANSWERS[ask](p.explain)
    assert answer.dp.cost.epsilon == 5
    interval = answer.dp.interval(0.9)
    pd.testing.assert_index_equal(interval.index, answer.index)
    somebody = np.array([key != "WA" for key in answer.index])  # the mean of nobody is a convention
    if isinstance(answer, pd.DataFrame):
        assert list(interval.columns) == [(c, side) for c in answer for side in ("lower", "upper")]
        for column in answer:
            assert (interval[column]["lower"] <= answer[column])[somebody].all()
            assert (answer[column] <= interval[column]["upper"])[somebody].all()
    else:
        assert list(interval.columns) == ["lower", "upper"]
        assert ((interval["lower"] <= answer) & (answer <= interval["upper"]))[somebody].all()
    assert "epsilon 5" in repr(answer.dp)


@pytest.mark.parametrize("ask", ANSWERS)
def test_receipt_is_one_json_string_in_attrs_without_raw_data(p, ask):
    answer = ANSWERS[ask](p)
    assert list(answer.attrs) == ["dpframe_receipt"]
    text = answer.attrs["dpframe_receipt"]
    assert type(text) is str
    assert {"plan", "raw", "seal"} <= set(json.loads(text))
    assert SECRET not in text
    assert "123456" not in text


CHANGES = {
    "values": lambda a: a**2,
    "one value": lambda a: (
        (a.isetitem(0, a.iloc[:, 0] + [1, 0, 0]) or a)
        if isinstance(a, pd.DataFrame)
        else a.mask(np.arange(len(a)) == 0, 99)
    ),
    "rounded up": lambda a: a.pow(2),
    "more": lambda a: pd.concat([a, a]).pipe(lambda b: (b.attrs.update(a.attrs), b)[1]),
    "index": lambda a: a.set_axis(range(len(a))),
    "comparison": lambda a: a > 3,
    "another column": lambda a: (
        a.to_frame("x").assign(y=7) if isinstance(a, pd.Series) else a.assign(y=7)
    ),
}


@pytest.mark.parametrize("ask", ANSWERS)
@pytest.mark.parametrize("change", CHANGES)
def test_receipt_is_refused_after_a_change(p, ask, change):
    answer = CHANGES[change](ANSWERS[ask](p))
    assert "dpframe_receipt" in answer.attrs
    for use in (lambda: answer.dp.interval(), lambda: answer.dp.plan, lambda: answer.dp.cost):
        with pytest.raises(BadValue, match="have changed since it was released"):
            use()


def test_receipt_is_refused_after_columns_trade_places(p):
    table = ANSWERS["table"](p)
    for changed in (
        table.set_axis(["m", "n"], axis=1),
        table.assign(n=table["m"]),
        table["m"].pow(2),
        table["m"].rename("n"),
    ):
        with pytest.raises(BadValue):
            changed.dp.interval()


def test_an_unnamed_answer_keeps_its_receipt_as_a_named_column_in_a_file(p, tmp_path):
    answer = p.groupby("state").size()
    answer.to_frame("n").to_parquet(tmp_path / "answer.parquet")
    back = pd.read_parquet(tmp_path / "answer.parquet")
    assert back.dp.interval().equals(answer.dp.interval())
    assert answer.rename("n").dp.cost == answer.dp.cost


@pytest.mark.parametrize("ask", ANSWERS)
def test_receipt_survives_copies_pickle_and_equal_values(p, ask):
    answer = ANSWERS[ask](p)
    for twin in (
        answer.copy(),
        answer.copy(deep=False),
        copy.deepcopy(answer),
        pickle.loads(pickle.dumps(answer)),
        answer + 0,
        answer.iloc[:],
    ):
        pd.testing.assert_frame_equal(twin.dp.interval(), answer.dp.interval())
        assert twin.dp.plan == answer.dp.plan


@pytest.mark.parametrize(
    "ask", ["table", "series", "sizes", "means", "counts", "value_counts", "two columns"]
)
def test_receipt_survives_parquet(p, ask, tmp_path):
    answer = ANSWERS[ask](p)
    frame = answer if isinstance(answer, pd.DataFrame) else answer.to_frame("x")
    frame.attrs = dict(answer.attrs)
    frame.to_parquet(tmp_path / "answer.parquet")
    back = pd.read_parquet(tmp_path / "answer.parquet")
    assert back.attrs == answer.attrs
    if isinstance(answer, pd.DataFrame):
        pd.testing.assert_frame_equal(back.dp.interval(), answer.dp.interval())


def test_receipt_of_one_answer_does_not_fit_another(p):
    a, b = p.groupby("state").size(), p.groupby("state").size(epsilon=1e-6)
    b.attrs = dict(a.attrs)
    with pytest.raises(BadValue):
        b.dp.interval()


@pytest.mark.parametrize("text", ["garbage", "{}", "[]", "7", '{"seal": "0"}'])
def test_receipt_that_dpframe_did_not_write_is_refused_at_use(p, text):
    answer = p.groupby("state").size()
    answer.attrs["dpframe_receipt"] = text
    assert "dp" in dir(answer)
    with pytest.raises(BadValue, match=r"receipt"):
        answer.dp.interval()


def test_a_receipt_is_of_one_dtype(p):
    """Bytes alone do not say what they stand for: the same ones in another dtype are another answer."""
    answer = p.groupby("state").size(epsilon=60)
    other = pd.Series(answer.to_numpy().view("float64"), index=answer.index)
    other.attrs = dict(answer.attrs)
    assert other.to_numpy().tobytes() == answer.to_numpy().tobytes()
    assert answer.astype("uint64").dp.interval().equals(answer.dp.interval())
    with pytest.raises(BadValue):
        other.dp.interval(0.95)


def test_receipt_outlives_the_session(df):
    p = df.dp.open(1, keys={"state": STATES})
    answer = p.groupby("state").size()
    p.close()
    assert len(answer.dp.interval()) == 3


def test_answer_alone_opens_no_budget_of_its_own(p):
    answer = ANSWERS["table"](p)
    assert not hasattr(answer.dp, "open")


def test_value_counts_keeps_intervals_in_its_own_order(p):
    counts = p.value_counts("state", epsilon=60)
    interval = counts.dp.interval()
    assert interval["lower"].tolist() == counts.tolist() == [4, 2, 0]
