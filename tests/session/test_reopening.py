"""Opening once more: the budget stays what it was, words about the data may change."""

from __future__ import annotations

import inspect

import pandas as pd
import pytest

from dpframe import BadType, BadValue, SessionError
from tests.visits import BOUNDS, KEYS


@pytest.mark.parametrize(
    "terms",
    [
        {"epsilon": 2},
        {"epsilon": 1, "delta": 1e-6},
        {"epsilon": 1, "neighbors": "replace-one"},
        {"epsilon": 1, "accountant": "tight"},
        {"epsilon": 1, "population": "others"},
        {"epsilon": 1, "version": "2027"},
    ],
)
def test_other_terms_are_refused(df, terms):
    df.dp.open(1, bounds={"age": (0, 110)}, keys=KEYS)
    with pytest.raises(SessionError, match="would undo the first"):
        df.dp.open(**{"bounds": {"age": (0, 110)}, "keys": KEYS, **terms})
    assert df.dp.budget.epsilon == 1


def test_other_words_about_the_data_are_taken_and_on_record(df):
    p = df.dp.open(1, bounds={"age": (0, 110)})
    p.count(epsilon=0.25)
    q = df.dp.open(1, bounds={"age": (0, 90)}, keys=KEYS, queries=10)
    assert q._session is p._session
    assert q.budget.spent == 0.25
    assert q.groupby("state").size().dp.cost.epsilon == 0.1
    assert "age, bounds=(0, 90)" in q.explain.mean("age").question
    assert {"'age': (0, 110)", "'age': (0, 90)"} <= set(q.declarations["value"])


def test_words_left_out_stay_and_words_given_are_put_beside_them(df):
    p = df.dp.open(1, bounds=BOUNDS, keys=KEYS, queries=10, n=6)
    q = df.dp.open(bounds={"cost": (0, 500)})
    assert q._session is p._session
    assert "cost, bounds=(0, 500)" in p.explain.mean("cost").question
    assert "age, bounds=(0, 110)" in p.explain.mean("age").question
    assert list(df.dp.open(keys={"age": [1, 2]}).groupby("state").size(epsilon=0.1).index) == [
        "CA",
        "NY",
    ]
    assert (p.budget.queries, p._session.terms.people) == (10, 6)
    assert set(p.declarations["value"]) >= {
        "'cost': (0, 1000)",
        "'cost': (0, 500)",
        "'age': [1, 2]",
    }


def test_omitted_words_stay_for_an_accessor_from_before_the_first_open(df):
    before = df.dp
    p = before.open(1, neighbors="replace-one", queries=10)
    assert before.open(1)._session is p._session
    assert p.budget.queries == 10


def test_limits_alone_keep_bounds_and_budget(df):
    df["id"] = [1, 1, 2, 2, 3, 3]
    p = df.dp.open(epsilon=2, delta=1e-6, unit="id", bounds=BOUNDS)
    df.dp.open(epsilon=2, delta=1e-6, unit="id", max_rows=2)
    df.dp.open(max_groups=1)
    assert (p._session.unit.rows, p._session.unit.groups) == (2, 1)
    assert "age, bounds=(0, 110)" in p.explain.mean("age").question
    assert (p.budget.epsilon, p.budget.delta) == (2, 1e-6)
    for other in (
        {"unit": "age"},
        {"neighbors": "replace-one"},
        {"delta": 1e-5},
        {"reserve": 1e-9},
    ):
        with pytest.raises(SessionError, match="would undo the first"):
            df.dp.open(**other)
    assert (p.budget.epsilon, p.budget.delta) == (2, 1e-6)


def test_limits_need_people_also_when_opened_again(df):
    df.dp.open(1)
    with pytest.raises(BadValue, match="need unit="):
        df.dp.open(max_rows=2)


def test_words_left_out_are_no_second_budget_where_a_reason_is_given(df):
    p = df.dp.open(1, bounds=BOUNDS, because="another population")
    assert df.dp.open(because="another population")._session is p._session
    with pytest.raises(BadType, match="whole budget"):
        df.dp.open(because="a reason of its own")


def test_misspelt_words_are_told(df):
    with pytest.raises(BadType, match=r"max_row=.*Did you mean 'max_rows'"):
        df.dp.open(1, unit="age", max_row=8)
    df.dp.open(1)
    with pytest.raises(BadType, match=r"bound=.*Did you mean 'bounds'"):
        df.dp.open(bound={"age": (0, 1)})


@pytest.mark.parametrize("word", ["epsilon", "delta"])
def test_open_budget_does_not_open_one_with_equal_words_of_another_type(df, word):
    own = {"epsilon": 1, "delta": 0}
    wrong = {**own, word: bool(own[word])}
    df.dp.open(**own)
    with pytest.raises(BadType, match="not the bool"):
        pd.DataFrame({"age": [1]}).dp.open(**wrong)


def test_every_way_to_open_shows_the_same_words(df):
    first = inspect.signature(df.dp.open)
    p = df.dp.open(1)
    derived = df[df["age"] > 30].dp
    elsewhere = pd.DataFrame({"age": [1]})
    elsewhere.attrs["dpframe"] = '{"session": "s", "ledger": "l", "population": "p"}'
    for verb in (p.open, derived.open, elsewhere.dp.open):
        assert inspect.signature(verb) == first
        assert inspect.getdoc(verb)
    assert list(first.parameters)[:3] == ["epsilon", "delta", "unit"]
    for verb in (p.open, derived.open, elsewhere.dp.open):
        with pytest.raises(BadType, match="no argument boundz"):
            verb(boundz={})
        with pytest.raises(BadType, match="at most 2 by position: epsilon, delta"):
            verb(1, 0, None)
        with pytest.raises(BadType, match="epsilon twice"):
            verb(1, epsilon=1)


# By name alone --------------------------------------------------------------------------------------------------------


def people(rows: int = 60) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "pid": [i % 20 for i in range(rows)],
            "rows": range(rows),
            "age": [i % 90 for i in range(rows)],
        }
    )


@pytest.mark.parametrize(
    "terms",
    [
        {"epsilon": 2},
        {"epsilon": 0.3, "delta": 1e-6, "accountant": "zcdp"},
        {"epsilon": 1, "neighbors": "replace-one"},
        {
            "epsilon": 1,
            "delta": 1e-5,
            "reserve": 1e-6,
            "unit": "pid",
            "max_rows": 2,
            "max_groups": 1,
        },
        {"epsilon": 1, "unit": ["pid", "rows"], "max_rows": 2},
        {"epsilon": 1, "unit": "rows", "max_rows": 2},
    ],
)
def test_a_ledger_that_has_the_name_knows_the_budget(terms, tmp_path):
    where = {"ledger": tmp_path / "budget.db", "population": "people"}
    p = people().dp.open(**terms, **where, n=60)
    p.count(epsilon=0.1, max_rows=2) if "unit" in terms else p.count(epsilon=0.1)
    unit, budget = p._session.unit, p.budget
    p.close()
    q = people().dp.open(**where)
    assert (q._session.unit.people, q._session.unit.neighbors) == (unit.people, unit.neighbors)
    assert (q.budget.rule.name, q.budget.rule.limits) == (budget.rule.name, budget.rule.limits)
    assert q.budget.fraction == budget.fraction
    assert q.budget.fraction > 0
    q.close()
    with pytest.raises(SessionError, match="other terms"):  # what is said stands
        people().dp.open(**where, epsilon=3)


def test_a_name_that_is_not_on_record_needs_the_whole_budget(tmp_path):
    where = {"ledger": tmp_path / "budget.db", "population": "people"}
    with pytest.raises(
        BadValue, match=r"there is no ledger .* yet, and a new one needs the whole budget"
    ):
        people().dp.open(**where)
    people().dp.open(1, **where).close()
    with pytest.raises(BadValue, match=r"has no population 'poeple' yet.* Did you mean 'people'"):
        people().dp.open(ledger=where["ledger"], population="poeple")
    with pytest.raises(BadType, match="whole budget"):
        people().dp.open(ledger=where["ledger"])


def test_the_last_version_is_on_record_too(tmp_path):
    where = {"ledger": tmp_path / "budget.db", "population": "people"}
    p = people().dp.open(1, version="2026-11", **where)
    first = p.count(epsilon=0.25, name="n")
    p.close()
    q = people().dp.open(**where)
    assert q.count(name="n") == first
    assert q.budget.spent == 0.25


def test_a_column_called_rows_is_another_unit_than_a_row(tmp_path):
    where = {"ledger": tmp_path / "budget.db", "population": "people"}
    people().dp.open(1, **where).close()
    with pytest.raises(SessionError, match="relation between the same people"):
        people().dp.open(1, unit="rows", **where)


# Questions without a price ------------------------------------------------------------------------------------------------

UNPRICED = {
    "mean": lambda p, **w: p.mean("age", **w),
    "groups": lambda p, **w: p.groupby("pid", keys=[0, 1, 2])["age"].sum(**w),
    "where": lambda p, **w: p.query("age > 3").count(**w),
    "mechanism": lambda p, **w: p.sum("age", mechanism="laplace", **w),
    "median": lambda p, **w: p.median("age", **w),
}


def same(one, two):
    return one.equals(two) if isinstance(one, pd.Series) else one == two


@pytest.fixture
def kept(tmp_path):
    """Where a ledger is in which questions were answered for a tenth of the budget each, the answers, and what was spent."""
    where = {"ledger": tmp_path / "budget.db", "population": "people", "bounds": {"age": (0, 90)}}
    p = people().dp.open(10, **where, queries=10)
    answers = {name: ask(p) for name, ask in UNPRICED.items()}
    spent = p.budget.spent
    p.close()
    return where, answers, spent


def test_answer_for_a_share_is_free_where_no_share_is_stated(kept):
    where, answers, spent = kept
    q = people().dp.open(**where)
    assert q.budget.queries != 10
    for name, ask in UNPRICED.items():
        assert "takes nothing" in repr(ask(q.explain))
        again = ask(q)
        assert same(again, answers[name])
        assert again.dp.plan == answers[name].dp.plan  # at the price it was answered at
        assert same(ask(q), again)
    with q.plan_ahead() as batch:
        place = batch.mean("age")
    assert place.answer == answers["mean"]
    assert q.budget.spent == spent
    derived = q.query("age > 3")
    assert derived.count() == answers["where"]
    assert q.budget.spent == spent


@pytest.mark.parametrize(
    "asked",
    [
        lambda p: p.mean("age", epsilon=0.5),
        lambda p: p.mean("age", within=5, n=60),
        lambda p: p.mean("age", fresh=True),
        lambda p: p.mean("age", bounds=(0, 80)),
        lambda p: p.mean("age", mechanism="laplace"),
        lambda p: p.std("age"),
        lambda p: p.query("age > 4").count(),
    ],
)
def test_another_price_or_another_question_is_paid(kept, asked):
    where, _, spent = kept
    q = people().dp.open(**where)
    asked(q)
    assert q.budget.spent > spent


def test_a_share_whose_size_is_said_is_another_price(kept):
    where, answers, spent = kept
    q = people().dp.open(**where, queries=20)
    assert q.mean("age") != answers["mean"]
    assert q.budget.spent == pytest.approx(spent + 0.5)
    q.close()
    r = people().dp.open(**where)  # of several the largest share, but for one of the usual size
    assert r.mean("age") != answers["mean"]
    assert r.sum("age", mechanism="laplace") == answers["mechanism"]
    assert r.budget.spent == pytest.approx(spent + 0.5)
    s = people().dp.open(**where, queries=10)
    assert s.mean("age") == answers["mean"]


def test_a_price_that_was_named_is_no_share(tmp_path):
    where = {"ledger": tmp_path / "budget.db", "population": "people"}
    p = people().dp.open(1, **where)
    p.count(epsilon=0.25)
    second = p.count()
    assert p.budget.spent == 0.3
    p.close()
    q = people().dp.open(**where)
    assert q.count() == second
    assert q.budget.spent == 0.3
    q.count(epsilon=0.125)
    assert q.budget.spent == 0.425


def test_another_version_is_asked_anew(kept):
    where, _, spent = kept
    q = people(61).dp.open(**where, version="newer")
    q.mean("age")
    assert q.budget.spent == pytest.approx(spent + 0.5)


def test_a_large_number_of_shares_is_looked_for_up_to_a_thousand(tmp_path):
    for queries, free in ((1000, True), (1001, False)):
        where = {"ledger": tmp_path / f"{queries}.db", "population": "people"}
        p = people().dp.open(900, **where, queries=queries)
        p.count()
        spent = p.budget.spent
        p.close()
        q = people().dp.open(**where)
        q.count()
        assert (q.budget.spent == spent) == free
        q.close()
