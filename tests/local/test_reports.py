"""Reports of rows: what they are, what they cost, when they are refused; and what the receipts of estimates say."""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue, BudgetExceeded, MissingBounds, MissingKeys, Refused, local
from dpframe._questions.reports import pack_reports, unpack_reports
from dpframe.mechanisms import _sampling
from dpframe.mechanisms._sampling import exp_interval

TRUE = 60  # an epsilon at which no report of these tests is false


def opened(frame, epsilon=1000, **terms):
    return frame.dp.open(epsilon, **{"neighbors": "replace-one", **terms})


COLUMNS = {
    "bool": (pd.Series([True, False, True]), None, [True, False, True]),
    "boolean": (
        pd.Series([True, False, None], dtype="boolean"),
        [True, False, None],
        [True, False, None],
    ),
    "int": (pd.Series([2, 7, 2]), [7, 2], [2, 7, 2]),
    "float": (pd.Series([0.5, math.nan, 2.0]), [2, 0.5, None], [0.5, None, 2]),
    "str": (pd.Series(["a", None, "b"]), ["b", "a", None], ["a", None, "b"]),
    "category": (pd.Series(["a", "b", "a"], dtype="category"), ["b", "a"], ["a", "b", "a"]),
    "arrow": (
        pd.Series(["a", None, "b"], dtype="string[pyarrow]"),
        ["b", None, "a"],
        ["a", None, "b"],
    ),
    "arrow int": (pd.Series([1, 2, None], dtype="int64[pyarrow]"), [1, 2, None], [1, 2, None]),
    "object": (pd.Series(["a", 1, None], dtype=object), ["a", 1, None], ["a", 1, None]),
    "time": (
        pd.to_datetime(pd.Series(["2020-01-01", "2021-01-01"] * 2)),
        ["2020-01-01", "2021-01-01"],
        None,
    ),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_each_dtype_reports_its_values(name):
    column, keys, expected = COLUMNS[name]
    reports = opened(pd.DataFrame({"x": column})).randomize("x", keys, epsilon=TRUE)
    if expected is None:
        assert reports.tolist() == column.tolist()
    else:
        assert [None if pd.isna(v) else v for v in reports] == expected
    assert isinstance(reports.dtype, pd.CategoricalDtype)
    assert reports.name == "x"


def test_the_three_ways_to_ask_are_one_question():
    df = pd.DataFrame({"x": ["a", "b"] * 500})
    p = opened(df, 1)
    first = df["x"].dp.randomize(keys=["a", "b"], epsilon=0.5)
    for again in (
        p["x"].randomize(["a", "b"], epsilon=0.5),
        p.randomize("x", ["a", "b"], epsilon=0.5),
    ):
        pd.testing.assert_series_equal(again, first)
    assert p.budget.spent == 0.5
    assert not p.randomize("x", ["a", "b"], epsilon=0.5, fresh=True).equals(first)
    assert p.budget.spent == 1
    with pytest.raises(BudgetExceeded):
        p.randomize("x", ["a", "b"], epsilon=0.25)


def test_a_ledger_file_returns_the_same_reports_after_a_restart(tmp_path):
    rng = np.random.default_rng(4)
    frame = {"x": rng.integers(0, 5, 1000), "y": rng.random(1000)}
    terms = {"ledger": str(tmp_path / "b.db"), "population": "people", "bounds": {"y": (0, 1)}}
    found = []
    for _ in range(2):
        p = opened(pd.DataFrame(frame), 2, **terms)
        found.append((p.randomize("x", range(5), epsilon=1), p.randomize("y", epsilon=1)))
        p.close()
    for one, two in zip(*found, strict=True):
        pd.testing.assert_series_equal(one, two)
        assert one.attrs == two.attrs


@pytest.mark.parametrize("k", [2, 3, 4, 5, 16, 17, 256, 257, 2**16])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
def test_packed_reports_come_back(k, n):
    codes = np.random.default_rng(n).integers(0, k, n)
    raw = pack_reports(codes, k)
    assert raw[0].dtype == np.int64
    assert unpack_reports(raw, k).tolist() == codes.tolist()


def test_values_that_are_not_listed_are_uniform_or_other():
    df = pd.DataFrame({"x": ["a", "zebra", None] * 4000})
    p = opened(df)
    reports = p.randomize("x", ["a", "b"], epsilon=TRUE)
    assert (reports[0::3] == "a").all()
    for part in (reports[1::3], reports[2::3]):
        assert abs((part == "a").mean() - 0.5) < 0.05
    named = p.randomize("x", ["a", "b"], other="else", epsilon=TRUE)
    assert named.tolist() == ["a", "else", "else"] * 4000
    listed = p.randomize("x", ["a", None], other="else", epsilon=TRUE)
    assert listed[:2].tolist() == ["a", "else"]
    assert listed[2::3].isna().all()


def test_numbers_are_clipped_and_nulls_are_in_the_middle():
    df = pd.DataFrame({"x": [-math.inf, 1e300, math.nan, 5.0] * 3000})
    reports = opened(df).randomize("x", bounds=(0, 10), epsilon=TRUE)
    assert (reports[0::4] == 0.0).all()
    assert (reports[1::4] == 10.0).all()
    assert abs(reports[2::4].astype(float).mean() - 5) < 0.3
    assert local.estimate(reports)["mean"].iloc[0] == pytest.approx(5, abs=0.1)


def test_the_receipt_and_the_plan_say_the_price():
    df = pd.DataFrame({"x": [True, False] * 50})
    p = opened(df)
    plan = p.explain["x"].randomize(epsilon=2)
    assert "at most ± 0.1287 in a frequency of all 100 reports" in repr(plan)
    assert p.budget.spent == 0
    assert plan.error() is None
    reports = p["x"].randomize(epsilon=2)
    assert reports.dp.plan == plan
    assert reports.dp.cost == (2.0, 0.0)
    assert reports.dp.truth == pytest.approx(1 / (1 + math.exp(-2)))
    assert p.ledger["mechanism"].tolist() == ["randomized-response"]
    assert reports[:10].dp.cost == (2.0, 0.0)  # each report by itself


def test_words_are_declared():
    p = opened(pd.DataFrame({"x": ["a"], "y": [1.0]}, index=["Ada"]))
    p.randomize("x", ["a", "b"], epsilon=1)
    p.randomize("y", bounds=(0, 5), epsilon=1)
    assert p.randomize("x", ["a", "b"], epsilon=1).index.tolist() == [0]
    assert p.randomize("x", ["a", "b"], epsilon=1, public_index=True).index.tolist() == ["Ada"]
    p.randomize("y", bounds=(0, 5), epsilon=2, public_index=True)
    assert set(p.declarations["what"]) == {"keys", "bounds", "index"}


def test_rows_that_are_added_or_chosen_cannot_report():
    df = pd.DataFrame({"x": ["a", "b"], "y": [1, 2]})
    p = df.dp.open(1)
    with pytest.raises(Refused, match="replace-one"):
        p.randomize("x", ["a", "b"])
    assert p.budget.spent == 0
    q = opened(pd.DataFrame({"x": ["a", "b"], "y": [1, 2]}))
    with pytest.raises(Refused, match="which rows"):
        q.query("y > 1").randomize("x", ["a", "b"])
    assert q.assign(z="y > 1").randomize("z", epsilon=TRUE).tolist() == [False, True]
    bands = q["y"].cut([0, 1, 2], labels=["low", "high"])
    assert bands.randomize(epsilon=TRUE).tolist() == ["low", "high"]


WRONG = {
    "epsilon 0": ({"keys": ["a", "b"], "epsilon": 0}, BadValue),
    "epsilon nan": ({"keys": ["a", "b"], "epsilon": math.nan}, BadValue),
    "one value": ({"keys": ["a"]}, BadValue),
    "no values": ({"keys": []}, BadValue),
    "twice": ({"keys": ["a", "a"]}, BadValue),
    "null twice": ({"keys": [None, math.nan, "a"]}, BadValue),
    "another kind": ({"keys": [1, 2]}, BadType),
    "unhashable": ({"keys": [["a"], ["b"]]}, BadType),
    "a set": ({"keys": {"a", "b"}}, BadType),
    "no keys": ({}, MissingKeys),
    "bounds of text": ({"bounds": (0, 1)}, BadValue),
    "both": ({"keys": ["a", "b"], "bounds": (0, 1)}, BadValue),
    "other is listed": ({"keys": ["a", "b"], "other": "a"}, BadValue),
    "other is a list": ({"keys": ["a", "b"], "other": ["c"]}, BadType),
    "mechanism": ({"keys": ["a", "b"], "mechanism": "laplace"}, BadValue),
    "public_index": ({"keys": ["a", "b"], "public_index": 1}, BadType),
    "within": ({"keys": ["a", "b"], "within": 0.1}, BadValue),
    "a typo": ({"keys": ["a", "b"], "epsilno": 1}, BadType),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_words_charge_nothing_and_say_the_same_of_all_data(name):
    options, error = WRONG[name]
    texts = []
    for cells in (["Secret-1", None], [], ["a", "b", "a"]):
        p = opened(pd.DataFrame({"x": pd.Series(cells, dtype="str")}), 1)
        with pytest.raises(error) as caught:
            p.randomize("x", **options)
        texts.append(str(caught.value))
        assert p.budget.spent == 0
    assert len(set(texts)) == 1
    assert "Secret" not in texts[0]


def test_numbers_need_bounds_that_leave_room():
    p = opened(pd.DataFrame({"x": [1.0, 2.0]}))
    with pytest.raises(MissingBounds):
        p.randomize("x")
    for pair in ((1, 1), (1, 1 + 2**-52)):
        with pytest.raises(BadValue, match="narrow"):
            p.randomize("x", bounds=pair)
    with pytest.raises(BadValue, match="other"):
        p.randomize("x", bounds=(0, 1), other="x")


def test_an_empty_frame_has_no_reports():
    p = opened(pd.DataFrame({"x": pd.Series([], dtype="str"), "y": pd.Series([], dtype=float)}))
    reports = p.randomize("x", ["a", "b"], epsilon=1)
    assert len(reports) == 0
    table = local.estimate(reports)
    assert table["frequency"].isna().all()
    assert table.dp.interval().loc["a", "frequency"].tolist() == [0, 1]
    assert math.isnan(local.estimate(p.randomize("y", bounds=(0, 4), epsilon=3))["mean"].iloc[0])


@pytest.mark.parametrize("people", [False, True])
def test_another_row_changes_its_own_reports_alone(monkeypatch, people):
    """With the same coins on both sides, as in a proof; and a person who has a row more has as many reports as before."""
    rows = [(i // 2, "abc"[i % 3], i % 50) for i in range(200)]
    moved = [row for row in rows if row[0] != 60] + [(60, "b", 49), (60, "c", 1), (60, "a", 7)]
    replaced = [*rows[:120], (60, "c", 49), *rows[121:]]
    heard = []
    for some in (rows, moved if people else replaced):
        rng = np.random.default_rng(3)
        monkeypatch.setattr(_sampling, "random_bytes", rng.bytes)
        terms = {"unit": "id", "max_rows": 2} if people else {}
        p = opened(pd.DataFrame(some, columns=["id", "x", "y"]), bounds={"y": (0, 50)}, **terms)
        asked = {"keys": ["a", "b", "c"], "epsilon": 3}
        heard.append([p.randomize("x", **asked), p.randomize("y", epsilon=1)])
    if people:  # who stands elsewhere in the neighbour, and so in the drawn order too
        assert [len(h) for side in heard for h in side] == [200] * 4
        return
    for one, two in zip(*heard, strict=True):
        assert set(np.flatnonzero(one.to_numpy() != two.to_numpy())) <= {120}


# People with many rows --------------------------------------------------------------------------------------


def test_each_person_has_as_many_reports():
    """Missing rows are like nulls, further ones are left out: how many there are tells nothing of anybody."""
    rows = [(1, "a"), (2, "b"), (1, "a"), (1, "b"), (None, "a"), (3, "b")]
    df = pd.DataFrame(rows, columns=["id", "x"])
    p = opened(df, unit="id", max_rows=2)
    reports = p.randomize("x", ["a", "b"], other="none", epsilon=2 * TRUE)
    people = sorted(map(tuple, reports.to_numpy().reshape(3, 2).tolist()))
    assert people == [("a", "a"), ("b", "none"), ("b", "none")]
    assert reports.dp.cost == (2 * TRUE, 0)
    assert reports.dp._kind.response.epsilon == TRUE
    one = p.randomize("x", ["a", "b"], epsilon=TRUE, max_rows=1)
    assert len(one) == 3
    with pytest.raises(BadValue, match="order of their own"):
        local.estimate(reports, by=reports)


def test_people_stand_in_an_order_that_is_drawn():
    df = pd.DataFrame({"id": range(40), "x": [True] * 20 + [False] * 20})
    p = opened(df, unit="id", max_rows=1)
    firsts = {tuple(p.randomize("x", epsilon=TRUE, fresh=True)) for _ in range(3)}
    assert len(firsts) == 3
    assert all(sum(f) == 20 for f in firsts)


def test_a_person_with_many_rows_needs_a_limit():
    p = opened(pd.DataFrame({"id": [1, 1], "x": [True, False]}), unit="id")
    with pytest.raises(BadValue, match="max_rows="):
        p.randomize("x", epsilon=1)
    with pytest.raises(BadValue, match="order of their own"):
        p.randomize("x", epsilon=1, max_rows=1, public_index=True)


# One person, and the collector ------------------------------------------------------------------------------


def test_answers_of_single_people_make_reports():
    truth = ["yes", "no", "perhaps", None]
    said = [local.answer(t, keys=["no", "yes"], other="?", epsilon=TRUE) for t in truth]
    assert said == ["yes", "no", "?", "?"]
    reports = local.reports(said, keys=["no", "yes"], other="?", epsilon=TRUE)
    assert local.estimate(reports)["count"].round().tolist() == [1, 1, 2]
    assert reports.dp.cost == (TRUE, 0)
    with pytest.raises(BadType, match="one by one"):
        _ = reports.dp.plan
    numbers = [local.answer(x, bounds=(0, 4), epsilon=TRUE) for x in (0, 10**400, 2, 4.0)]
    assert local.estimate(local.reports(numbers, bounds=(0, 4), epsilon=TRUE))["sum"].iloc[
        0
    ] == pytest.approx(10, 0.05)
    nulls = local.reports([None, "a"], keys=["a", None], epsilon=TRUE)
    assert local.estimate(nulls)["count"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda: local.answer(1, epsilon=1), BadValue),
        (lambda: local.answer(1, keys=[1, 2], bounds=(0, 1), epsilon=1), BadValue),
        (lambda: local.answer("x", bounds=(0, 1), epsilon=1), BadType),
        (lambda: local.answer(True, bounds=(0, 1), epsilon=1), BadType),
        (lambda: local.answer("a", keys=["a"], epsilon=1), BadValue),
        (lambda: local.answer("a", keys=["a", "b"], epsilon=0), BadValue),
        (lambda: local.reports("ab", keys=["a", "b"], epsilon=1), BadType),
        (lambda: local.reports(["a", "c"], keys=["a", "b"], epsilon=1), BadValue),
        (lambda: local.reports([["a"]], keys=["a", "b"], epsilon=1), BadValue),
        (lambda: local.estimate([1, 2]), BadType),
        (lambda: local.estimate(pd.Series(["a"])), BadValue),
        (lambda: local.sample_size(0.1), BadValue),
        (lambda: local.sample_size(0.1, 1, delta=0.1), BadValue),
        (lambda: local.sample_size(1.5, 1, method="notes"), BadValue),
        (lambda: local.epsilon_of(0.5), BadValue),
        (lambda: local.epsilon_of(0), BadValue),
        (lambda: local.epsilon_of(F(1, 2) - F(1, 10**600)), BadValue),
        (lambda: local.delta_of(0), BadValue),
        (lambda: local.truth_of(1, 1), BadValue),
    ],
)
def test_wrong_words_of_local(wrong, error):
    with pytest.raises(error):
        wrong()


# Receipts ---------------------------------------------------------------------------------------------------


def test_receipts_travel_and_are_bound():
    reports = local.reports(["a", "b"] * 50, keys=["a", "b"], epsilon=2)
    assert pd.concat([reports[:30], reports[30:]]).dp.truth == reports.dp.truth
    table = local.estimate(reports)
    low, high = table.dp.interval(0.9).loc["a", "frequency"]
    assert low < table.loc["a", "frequency"] < high
    changed = table.copy()
    changed.iloc[0, 0] = 0.25
    with pytest.raises(BadValue, match="have changed"):
        changed.dp.interval()
    assert table.round(1).dp is not None
    renamed = reports.cat.add_categories("c")
    renamed.attrs = reports.attrs
    with pytest.raises(BadValue, match="categories"):
        renamed.dp.truth  # noqa: B018  (looking it up is the test)
    with pytest.raises(BadValue, match="null"):
        local.estimate(reports.where(reports != "a"))
    with pytest.raises(BadType):
        table.dp.interval(True)


def test_groups_are_public_or_randomized():
    df = pd.DataFrame({"x": ["a", "b"] * 200, "y": [True] * 300 + [False] * 100, "n": [1.0] * 400})
    p = opened(df, bounds={"n": (0, 2)})
    x, y = p.randomize("x", ["a", "b"], epsilon=TRUE), p.randomize("y", epsilon=TRUE)
    with pytest.raises(BadType, match="private frame"):
        local.estimate(x, by=df["y"])
    by = pd.Series(["u"] * 100 + ["v"] * 300, name="ward")
    grouped = local.estimate(x, by=by)
    assert grouped.index.names == ["ward", "x"]
    assert grouped["count"].round(6).tolist() == [50, 50, 150, 150]
    pairs = local.estimate(x, by=y)
    assert pairs.loc[(True, "a"), "count"] == pytest.approx(150)
    assert pairs["frequency"].sum() == pytest.approx(1)
    assert pairs.dp.interval().shape == (4, 4)
    means = local.estimate(p.randomize("n", epsilon=TRUE), by=by)
    assert means.index.tolist() == ["u", "v"]
    assert means["mean"].tolist() == pytest.approx([1, 1], abs=0.1)
    with pytest.raises(BadValue, match="ratio"):
        local.estimate(p.randomize("n", epsilon=TRUE), by=y)
    with pytest.raises(BadValue, match="index"):
        local.estimate(x, by=by[::-1])
    with pytest.raises(BadType, match="Series"):
        local.estimate(x, by=["u"] * 400)


# The two parametrisations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "delta", [F(1, 10**12), F(1, 100), F(1, 4), F(2, 5), F(1, 2) - F(1, 10**20)]
)
def test_epsilon_of_delta_is_rounded_up(delta):
    odds = (F(1, 2) - delta) / (F(1, 2) + delta)
    found = local.epsilon_of(delta)
    high = F(exp_interval(*F(repr(found)).as_integer_ratio(), 400)[1], 2**400)
    assert high <= odds  # exp(-found) is at most the odds: the answer is found-private
    before = F(repr(math.nextafter(found, 0)))
    assert exp_interval(*before.as_integer_ratio(), 400)[0] > odds * 2**400 - 2
    assert local.delta_of(found) >= float(delta) * (1 - 1e-15)


@pytest.mark.parametrize("epsilon", [2.0**-50, 0.1, 1, 3.5, 30])
def test_delta_and_truth_are_rounded_down(epsilon):
    exact = F(repr(float(epsilon)))
    q = F(exp_interval(*exact.as_integer_ratio(), 400)[1], 2**400)  # at least exp(-epsilon)
    d = F(repr(local.delta_of(epsilon)))
    assert (F(1, 2) - d) / (F(1, 2) + d) >= q
    assert F(repr(local.truth_of(epsilon))) <= 1 / (1 + q) + F(1, 2**390)
    assert float(d) == pytest.approx(math.tanh(epsilon / 2) / 2)
    assert local.epsilon_of(d) <= epsilon
    assert local.truth_of(epsilon, 5) == pytest.approx(1 / (1 + 4 * math.exp(-epsilon)))


def test_sample_sizes_are_those_of_the_notes():
    assert (
        local.sample_size(0.05, delta=0.25, method="notes", level=0.75) == 6400
    )  # 1 / (delta alpha)**2
    assert local.sample_size(0.05, 1) == dpframe.calibrate.randomized_response_n(0.05, 1)
    assert local.sample_size(0.05, delta=0.25) == dpframe.calibrate.randomized_response_n(
        0.05, math.log(3)
    )
    assert local.sample_size(0.1, 0.5, method="normal") < local.sample_size(0.1, 0.5)
