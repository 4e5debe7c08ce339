"""argmax and top in groups: the counts are those of pandas, one row moves them as claimed, and only keys come back."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from fractions import Fraction as F
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe
from dpframe import BadType, BadValue, MissingKeys, NotOffered, PrivacyWarning, _expr, audit
from dpframe._groups.unit import Unit
from dpframe._statistics import base as stats_module
from dpframe._statistics.scores import Votes
from dpframe.mechanisms._base import mechanism_from
from dpframe.mechanisms.selection import NoisyTop

KEYS = {"g": ["a", "b"], "d": ["x", "y", "z"]}
RELATIONS = ["add-remove", "replace-one"]


@pytest.fixture
def df() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    g = rng.choice(["a", "b"], 4000)
    shares = {"a": [0.5, 0.3, 0.2], "b": [0.2, 0.3, 0.5]}
    return pd.DataFrame(
        {
            "g": g,
            "d": [rng.choice(["x", "y", "z"], p=shares[one]) for one in g],
            "n": rng.choice([1, 2, 3], 4000, p=[0.2, 0.5, 0.3]),
            "flag": rng.random(4000) < 0.7,
            "age": rng.integers(0, 100, 4000),
            "t": pd.Timestamp("2024-01-05") + pd.to_timedelta(rng.integers(0, 60, 4000), "D"),
            "price": pd.Categorical([Decimal("1.5"), Decimal("2.5")] * 2000),
        }
    )


@pytest.fixture
def p(df: pd.DataFrame) -> Any:
    bounds = {"age": (0, 100), "t": ("2024-01-01", "2024-03-31")}
    return df.copy().dp.open(1000, queries=10, bounds=bounds, keys=KEYS, because="synthetic")


def most(values: pd.Series) -> Any:
    return values.value_counts().index[0]


LINES: dict[str, tuple[str, str]] = {
    "a column": ("p.groupby('g')['d'].argmax()", "df.groupby('g')['d'].agg(most)"),
    "by name": ("p.groupby('g').argmax('d')", "df.groupby('g')['d'].agg(most)"),
    "agg": ("p.groupby('g')['d'].agg('argmax')", "df.groupby('g')['d'].agg(most)"),
    "named": ("p.groupby('g').agg(x=('d', 'argmax'))", "df.groupby('g').agg(x=('d', most))"),
    "NamedAgg": (
        "p.groupby('g').agg(x=pd.NamedAgg('d', 'argmax'))",
        "df.groupby('g').agg(x=('d', most))",
    ),
    "several": (
        "p.groupby('g')[['d', 'flag']].argmax()",
        "df.groupby('g')[['d', 'flag']].agg(most)",
    ),
    "whole numbers": (
        "p.groupby('g')['n'].argmax(keys=[1, 2, 3])",
        "df.groupby('g')['n'].agg(most)",
    ),
    "two columns": (
        "p.groupby(['g', 'flag'])['d'].argmax()",
        "df.groupby(['g', 'flag'])['d'].agg(most)",
    ),
    "flat": (
        "p.groupby('g', as_index=False).agg(x=('d', 'argmax'))",
        "df.groupby('g', as_index=False).agg(x=('d', most))",
    ),
    "periods": (
        "p.resample('QE', on='t')['flag'].argmax()",
        "df.resample('QE', on='t')['flag'].agg(most)",
    ),
    "bands": (
        "p.groupby(p['age'].cut([0, 50, 100]))['d'].argmax()",
        "df.groupby(pd.cut(df['age'], [0, 50, 100]), observed=False)['d'].agg(most)",
    ),
    "of bands": (
        "p.groupby('g').argmax(p['age'].cut([0, 10, 100])).astype(object)",
        "df.assign(age=pd.cut(df['age'], [0, 10, 100])).groupby('g')['age'].agg(most).astype(object)",
    ),
    "of months": (
        "p.groupby('g').argmax(p['t'].dt.to_period('M'))",
        "df.assign(t=df['t'].dt.to_period('M')).groupby('g')['t'].agg(most)",
    ),
    "of quarters, among others": (
        "p.assign(q=p['t'].dt.to_period('Q')).groupby('g').agg(q=('q', 'argmax'), d=('d', 'argmax'))",
        "df.assign(q=df['t'].dt.to_period('Q')).groupby('g').agg(q=('q', most), d=('d', most))",
    ),
    "expression": (
        "p.groupby('g').argmax(p['d'] + '!')",
        "df.assign(d=df['d'] + '!').groupby('g')['d'].agg(most)",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_the_choices_are_the_most_common_values(df: pd.DataFrame, p: Any, name: str) -> None:
    ours, theirs = LINES[name]
    found, wanted = eval(ours, {"p": p, "pd": pd}), eval(theirs, {"df": df, "most": most, "pd": pd})
    if isinstance(wanted, pd.Series):
        pd.testing.assert_series_equal(
            pd.Series(found), wanted, check_dtype=False, check_index_type=False
        )
    else:
        pd.testing.assert_frame_equal(pd.DataFrame(found), wanted, check_dtype=False)
    assert p.budget.fraction == pytest.approx(0.1)  # one price, whatever the number of groups


def test_top_tells_the_order_in_each_group(df: pd.DataFrame, p: Any) -> None:
    found = p.groupby("g")["d"].top(3, epsilon=500)
    wanted = df.groupby("g")["d"].value_counts()
    assert found.index.tolist() == [(g, place) for g in "ab" for place in (1, 2, 3)]
    assert found.tolist() == [d for _, d in wanted.index]
    assert found.name == "d"
    assert p.groupby("g").top("d", 3, epsilon=500).equals(found)  # the same question, recalled
    assert p.groupby("g")["d"].top(k=2, epsilon=200).unstack().loc["a"].tolist() == ["x", "y"]


def test_beside_other_aggregates_they_are_one_release(df: pd.DataFrame, p: Any) -> None:
    table = p.groupby("g").agg(
        most=("d", "argmax"), n=("d", "size"), m=("age", "mean"), epsilon=300
    )
    assert table["most"].tolist() == ["x", "z"]
    assert (table["n"] - df.groupby("g").size()).abs().max() < 3
    assert len(p.ledger) == 1
    ends = table.dp.interval()
    assert ends["most"].isna().all().all()
    assert (ends["n", "lower"] <= table["n"]).all()
    assert table["n"].dp.interval().shape == (2, 2)  # a column that is taken keeps its receipt
    assert pickle.loads(pickle.dumps(table)).dp.cost == table.dp.cost
    nested = p.groupby("g").agg({"d": ["argmax", "count"], "age": ["mean"]}, epsilon=300)
    assert nested["d", "argmax"].tolist() == ["x", "z"]


def test_an_answer_has_a_receipt_without_an_interval(p: Any) -> None:
    answer = p.groupby("g")["d"].argmax(epsilon=5)
    assert answer.dp.cost.epsilon == 5
    assert "argmax(d over 3 keys) by g" in repr(answer.dp.plan)
    with pytest.raises(NotOffered, match="chosen, not measured"):
        answer.dp.interval()
    with pytest.raises(NotOffered, match="not numbers"):
        answer.dp.plot()
    changed = answer.copy()
    changed.iloc[0] = "z"
    with pytest.raises(BadValue, match="have changed"):
        changed.dp.plan  # noqa: B018
    again = json.loads(answer.attrs["dpframe_receipt"])["plan"]["parts"][0]
    assert mechanism_from(again) == answer.dp.plan.parts[0].noise
    near = p.explain.groupby("g")["d"].argmax(within=20)
    assert near.worst_error() == pytest.approx(20, rel=0.01)


def test_a_null_is_a_value_where_it_is_listed() -> None:
    frame = pd.DataFrame({"g": ["a"] * 60, "d": [None, None, "x"] * 20})
    q = frame.dp.open(1000, keys={"g": ["a"]})
    assert q.groupby("g")["d"].argmax(keys=["x", None], epsilon=100).isna().all()
    assert q.groupby("g")["d"].argmax(keys=["x", "y"], epsilon=100).tolist() == ["x"]
    assert q.declarations["value"].str.startswith("'d': ['x', None]").any()


def test_an_empty_group_has_any_of_the_values() -> None:
    frame = pd.DataFrame({"g": ["a"] * 40, "d": ["x"] * 40})
    q = frame.dp.open(1000, queries=60, keys={"g": ["a", "b"], "d": ["x", "y"]})
    found = {q.groupby("g")["d"].argmax(epsilon=15, fresh=True)["b"] for _ in range(40)}
    assert found == {"x", "y"}  # one of them alone once in 2**39


def test_keys_that_nobody_listed_are_found_first(df: pd.DataFrame) -> None:
    q = df.copy().dp.open(1000, delta=1e-6, queries=20, keys={"g": ["a", "b"]}, because="again")
    assert q.groupby("g")["d"].argmax(epsilon=100).tolist() == ["x", "z"]
    assert len(q.ledger) == 2
    assert q.groupby("g")["d"].top(2, epsilon=200).tolist() == ["x", "y", "z", "y"]
    assert len(q.ledger) == 3  # they are known now
    r = df.copy().dp.open(1000, delta=1e-6, queries=20, keys={"d": KEYS["d"]}, because="more")
    assert r.groupby("g")["d"].argmax(epsilon=100).to_dict() == {"a": "x", "b": "z"}
    s = df.copy().dp.open(1000, delta=1e-6, because="none")
    with pytest.raises(MissingKeys, match=r"keys=p.unique\('d'\)"):
        s.groupby("g")["d"].argmax()
    assert s.budget.spent == 0


REFUSED = {
    "p.groupby('g').argmax()": (BadType, r"p.groupby\('k'\)\['x'\].argmax\(\)"),
    "p.groupby('g').top()": (BadType, r"\['x'\].top\(2\)"),
    "p.groupby('g')['d'].top(4)": (BadValue, "more than the 3"),
    "p.groupby('g')['d'].top(0)": (BadValue, "at least 1"),
    "p.groupby('g')['d'].top(1.5)": (BadType, "whole number"),
    "p.groupby('g')[['d', 'flag']].top(1)": (BadType, "one column"),
    "p.groupby('g')['n'].argmax()": (MissingKeys, "needs keys"),
    "p.groupby('g').agg(x=('n', 'argmax'))": (MissingKeys, "needs keys"),
    "p.groupby('g')['d'].argmax(mechanism='laplace')": (BadValue, "noisy-max"),
    "p.agg(x=('d', 'argmax'))": (BadValue, r"p.argmax\('x'\)"),
    "p['d'].agg('argmax')": (BadValue, r"p.argmax\('x'\)"),
    "p.pivot_table(values='d', index='g', aggfunc='argmax')": (BadValue, r"p.argmax\('x'\)"),
    "p.groupby('g')['price'].argmax(keys=[Decimal('1.5'), Decimal('2.5')])": (
        NotOffered,
        "value_counts",
    ),
    "p.groupby('g', as_index=False)['d'].top(1)": (NotOffered, "reset_index"),
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_does_not_fit_is_said_before_anything_is_paid(p: Any, line: str) -> None:
    kind, text = REFUSED[line]
    with pytest.raises(kind, match=text):
        eval(line, {"p": p, "Decimal": Decimal})
    assert p.budget.spent == 0


# The claim ----------------------------------------------------------------------------------------------------------

ROWS = st.tuples(
    st.sampled_from(["a", "b", "c", None]), st.sampled_from(["x", "y", "z", "w", None])
)


def counts(rows: list[Any]) -> np.ndarray[Any, Any]:
    """Values by groups, counted one by one."""
    found = np.zeros((3, 2), dtype=int)
    for g, d in rows:
        if g in KEYS["g"] and d in KEYS["d"]:
            found[KEYS["d"].index(d), KEYS["g"].index(g)] += 1
    return found


def moved(one: Any, two: Any) -> int:
    change = one - two
    return int((change.max(axis=0) - change.min(axis=0)).sum())


@pytest.mark.parametrize("relation", RELATIONS)
def test_one_row_moves_differences_by_no_more_than_the_claim(relation: str) -> None:
    statistic = Votes(_expr.Column(0, "d", "number"), 3)
    claim = statistic.sensitivity(Unit(relation), True).l1
    furthest = 0

    @settings(max_examples=300, deadline=None, database=None, derandomize=True)
    @given(st.lists(ROWS, max_size=6), ROWS, ROWS)
    def check(rows: list[Any], person: Any, other: Any) -> None:
        nonlocal furthest
        rest = [*rows, other] if relation == "replace-one" else rows
        distance = moved(counts([*rows, person]), counts(rest))
        furthest = max(furthest, distance)
        assert distance <= claim

    check()
    assert furthest == claim


def framed(rows: list[Any], ids: list[int] | None = None) -> pd.DataFrame:
    columns: dict[str, Any] = {"g": pd.Series([g for g, _ in rows], dtype="str")}
    columns["d"] = pd.Series([d for _, d in rows], dtype="str")
    return pd.DataFrame(columns | ({} if ids is None else {"id": np.array(ids, dtype="int64")}))


@settings(max_examples=25, deadline=None, database=None, derandomize=True)
@given(st.lists(ROWS, min_size=1, max_size=6), ROWS, st.sampled_from(RELATIONS))
def test_the_engine_counts_so_and_replays_hold(rows: list[Any], person: Any, relation: str) -> None:
    one = framed([*rows, person])
    two = framed([*rows, rows[0]] if relation == "replace-one" else rows)
    report = audit.replay(
        lambda q: (q.groupby("g")["d"].argmax(epsilon=1), q.groupby("g")["d"].top(2, epsilon=1)),
        one,
        two,
        epsilon=10,
        neighbors=relation,
        keys=KEYS,
    )
    assert report.ok
    other = rows[0] if relation == "replace-one" else None
    wanted = moved(counts([*rows, person]), counts([*rows, other] if other else rows))
    choices, counts_of_groups = report.steps[::2], report.steps[1::2]
    assert [step.distance for step in choices] == [wanted, wanted]
    assert max(step.distance for step in counts_of_groups) <= wanted


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("rows", "groups"), [(2, 1), (3, 2), (1, 2)])
def test_a_person_moves_the_rows_of_each_group_that_counts(
    relation: str, rows: int, groups: int
) -> None:
    crowd, crowd_ids = [("a", "x"), ("b", "y")] * 3, [1, 1, 2, 2, 3, 3]
    heavy = [("a", "y")] * 5 + [("b", "x")] * 5
    light = [("a", "x")] * 5 + [("b", "z")] * 5
    rest = light if relation == "replace-one" else []
    report = audit.replay(
        lambda q: q.groupby("g")["d"].argmax(epsilon=1),
        framed([*crowd, *heavy], [*crowd_ids, *[9] * 10]),
        framed([*crowd, *rest], [*crowd_ids, *[9] * len(rest)]),
        epsilon=10,
        neighbors=relation,
        keys=KEYS,
        unit="id",
        max_rows=rows,
        max_groups=groups,
    )
    assert report.ok
    step, counted = report.steps
    assert step.sensitivity == rows * groups * (2 if relation == "replace-one" else 1)
    assert step.distance == step.sensitivity  # no less would do
    assert counted.distance <= counted.sensitivity == step.sensitivity


def test_a_claim_for_one_group_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who is in two groups moves both choices."""
    real = stats_module.Statistic.of_person
    monkeypatch.setattr(
        stats_module.Statistic,
        "of_person",
        lambda self, unit, groups: real(self, unit.with_limits(None, 1), groups),
    )
    report = audit.replay(
        lambda q: q.groupby("g")["d"].argmax(epsilon=1),
        framed([("a", "y"), ("b", "x"), ("a", "x")], [9, 9, 1]),
        framed([("a", "x")], [1]),
        epsilon=11,
        keys=KEYS,
        unit="id",
        max_rows=1,
        max_groups=2,
    )
    assert not report.ok


def test_top_peels_each_group_by_itself() -> None:
    scores = np.array([[[9, 0], [5, 2], [1, 9], [7, 4]]])
    found = NoisyTop(F(50), 4).release(scores)
    assert found.tolist() == [[0, 2], [3, 3], [1, 1], [2, 0]]
    assert NoisyTop(F(50), 2).release(scores[0].T[:1]).tolist() == [[0, 3]]
    ties = np.zeros((1, 3, 500), dtype=np.int64)
    drawn = NoisyTop(F(50), 3).release(ties)
    assert (np.sort(drawn, axis=0) == np.arange(3)[:, None]).all()  # each value once a group
    assert {tuple(column) for column in drawn.T} > {(0, 1, 2), (2, 1, 0)}  # in every order


def test_periods_are_chosen_in_order_and_come_back_as_periods() -> None:
    days = [
        "2024-01-31",
        "2024-02-29",
        "2024-02-01",
        "2024-03-31",
        "2024-03-01",
        "2024-03-05",
        None,
    ]
    zoned = pd.Series(pd.to_datetime(days * 60)).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    df = pd.DataFrame({"g": ["a"] * 420, "t": pd.to_datetime(days * 60), "z": zoned})
    bounds = dict.fromkeys("tz", ("2024-01-01", "2024-04-30"))
    p = df.dp.open(1000, queries=8, bounds=bounds, keys={"g": ["a", "b"]})
    months = p["t"].dt.to_period("M")
    found = p.groupby("g").top(months, 3, epsilon=200)
    assert found.loc["a"].tolist() == [*pd.period_range("2024-01", "2024-03", freq="M")[::-1]]
    assert found.dtype == "period[M]"
    again = pickle.loads(pickle.dumps(found))
    assert again.equals(found)
    assert again.dp.plan == found.dp.plan
    assert p.groupby("g").top(months, 3, epsilon=200).equals(found)  # recalled
    assert p.budget.spent == 200
    weeks = p.groupby("g").argmax(
        p["t"].dt.to_period("W"), epsilon=100
    )  # of another length, and so another question
    assert p.budget.spent == 300
    assert weeks["a"] in set(df["t"].dt.to_period("W").mode())
    local = p.groupby("g").argmax(p["z"].dt.to_period("D"), epsilon=100)
    assert local["a"] in set(df["z"].dt.tz_localize(None).dropna().dt.to_period("D"))
    assert local["b"] in set(pd.period_range("2024-01-01", "2024-04-30"))  # of nobody any of them


def test_months_move_as_other_keys_do() -> None:
    one = pd.DataFrame({"g": ["a", "b"] * 5, "t": pd.to_datetime(["2024-01-05", "2024-02-05"] * 5)})
    for day in ("2024-02-29 23:59:59.999999", None, "2031-01-01"):
        more = pd.concat(
            [one, pd.DataFrame({"g": ["a"], "t": pd.to_datetime([day])})], ignore_index=True
        )
        report = audit.replay(
            lambda q: q.groupby("g").argmax(q["t"].dt.to_period("M")),
            one,
            more,
            epsilon=10,
            bounds={"t": ("2024-01-01", "2024-03-31")},
            keys={"g": ["a", "b"]},
        )
        assert report.ok
        moved = 1 if str(day).startswith("2024") else 0  # what no period has counts for none
        assert [step.distance for step in report.steps] == [moved, moved]


@pytest.mark.parametrize(
    "line",
    [
        "p.groupby('g')['d'].argmax()",
        "p.groupby('g')['d'].top(3)",
        "p.groupby('g').argmax(p['t'].dt.to_period('M'))",
    ],
)
def test_sources_in_parts_choose_alike(df: pd.DataFrame, line: str) -> None:
    polars = pytest.importorskip("polars", reason="frames of polars are read in batches")
    words: dict[str, Any] = {"epsilon": 1000, "queries": 2, "keys": KEYS, "because": "synthetic"}
    words["bounds"], df = {"t": ("2024-01-01", "2024-03-31")}, df.drop(columns="price")
    p = dpframe.open(polars.from_pandas(df), **words)
    assert eval(line, {"p": p}).equals(eval(line, {"p": df.copy().dp.open(**words)}))


def test_a_choice_in_a_group_of_nobody_is_not_called_reliable() -> None:
    frame = pd.DataFrame({"g": ["a"] * 600, "x": ["flu", "flu", "burn"] * 200})
    p = frame.dp.open(10, keys={"g": ["a", "b"], "x": ["burn", "flu"]})
    with pytest.warns(PrivacyWarning):
        answer = p.groupby("g")["x"].argmax(epsilon=1)
    assert answer.dp.reliable.tolist() == [True, False]
    assert repr(answer).splitlines()[2].endswith("?")
    assert "most common values: within 4 rows of the largest count" in repr(answer)
    with pytest.raises(NotOffered, match="most common value is chosen"):
        answer.dp.interval()
