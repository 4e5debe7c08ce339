"""A release is identified by the integers that leave the door, and not by the words that asked for them."""

import random
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from dpframe._groups.forms import form_of_grouping
from dpframe._questions.identity import rearrange
from dpframe.engines import engine_for

STATES, SEXES = ["CA", "NY", "TX"], ["F", "M"]


def make_frame(rows=300, seed=3):
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": draw.integers(0, 110, rows),
            "cost": np.where(draw.random(rows) < 0.1, np.nan, draw.random(rows) * 100),
            "state": draw.choice(STATES, rows),
            "sex": draw.choice(SEXES, rows),
            "person": draw.integers(0, 80, rows),
        }
    )


TERMS = {
    "bounds": {"age": (0, 110), "cost": (0, 100)},
    "keys": {"state": STATES, "sex": SEXES},
}

# Lines that need the same noisy integers: the second is free, and says the same.
PAIRS = {
    "names of outputs": (
        lambda p: p.agg(m=("cost", "mean")),
        lambda p: p.agg(mean_cost=("cost", "mean")),
        lambda a: a.loc["m", "cost"],
        lambda a: a.loc["mean_cost", "cost"],
    ),
    "a verb and agg": (
        lambda p: p.mean("cost"),
        lambda p: p.agg(m=("cost", "mean")),
        float,
        lambda a: a.loc["m", "cost"],
    ),
    "order of outputs": (
        lambda p: p["cost"].agg(["mean", "count"]),
        lambda p: p["cost"].agg(["count", "mean"]),
        lambda a: a.to_dict(),
        lambda a: a.to_dict(),
    ),
    "order of columns": (
        lambda p: p.groupby("state").agg(a=("age", "mean"), c=("cost", "mean")),
        lambda p: p.groupby("state").agg(c=("cost", "mean"), a=("age", "mean")),
        lambda a: a[["a", "c"]].to_dict(),
        lambda a: a[["a", "c"]].to_dict(),
    ),
    "order of columns beside sizes": (
        lambda p: p.groupby("state").agg(a=("age", "mean"), c=("cost", "mean"), n=("age", "size")),
        lambda p: p.groupby("state").agg(c=("cost", "mean"), n=("cost", "size"), a=("age", "mean")),
        lambda a: a[["a", "c", "n"]].to_dict(),
        lambda a: a[["a", "c", "n"]].to_dict(),
    ),
    "size and value_counts": (
        lambda p: p.groupby("state").size(),
        lambda p: p["state"].value_counts(),
        lambda a: a.to_dict(),
        lambda a: a.to_dict(),
    ),
    "crosstab and size": (
        lambda p: p.crosstab("state", "sex"),
        lambda p: p.groupby(["sex", "state"]).size(),
        lambda a: a.stack().to_dict(),
        lambda a: a.unstack("sex").stack().to_dict(),
    ),
    "groupings in either order": (
        lambda p: p.groupby(["state", "sex"])["cost"].mean(),
        lambda p: p.groupby(["sex", "state"])["cost"].mean(),
        lambda a: a.to_dict(),
        lambda a: a.swaplevel().to_dict(),
    ),
    "pivot_table of sizes": (
        lambda p: p.groupby(["state", "sex"]).size(),
        lambda p: p.pivot_table(index="sex", columns="state", aggfunc="size"),
        lambda a: a.to_dict(),
        lambda a: a.T.stack().to_dict(),
    ),
    "pivot_table of means": (
        lambda p: p.groupby("state")["cost"].mean(),
        lambda p: p.pivot_table("cost", "state"),
        lambda a: a.to_dict(),
        lambda a: a["cost"].to_dict(),
    ),
    "order of keys": (
        lambda p: p.groupby("state", keys=["CA", "NY", "TX"])["cost"].sum(),
        lambda p: p.groupby("state", keys=["TX", "CA", "NY"])["cost"].sum(),
        lambda a: a.to_dict(),
        lambda a: a.to_dict(),
    ),
    "histogram and cut": (
        lambda p: p.histogram("age", bins=[0, 20, 65, 110]),
        lambda p: p.groupby(p["age"].cut([-1, 19, 64, 110])).size(),
        lambda a: a.tolist(),
        lambda a: a.tolist(),
    ),
    "order of conditions": (
        lambda p: p[(p["age"] > 65) & (p["state"] == "CA")].count(),
        lambda p: p.query("state == 'CA'").query("65.0 < age").count(),
        int,
        int,
    ),
    "choice among keys in another order": (
        lambda p: p.argmax("state", keys=["CA", "NY", "TX"]),
        lambda p: p.argmax("state", keys=["TX", "CA", "NY"]),
        str,
        str,
    ),
    "ddof": (
        lambda p: p.var("cost", ddof=0),
        lambda p: p.var("cost"),
        lambda a: (a.dp.count, a.dp.total),
        lambda a: (a.dp.count, a.dp.total),
    ),
    "labels of groups": (
        lambda p: p.groupby("state").size(),
        lambda p: p.rename(columns={"state": "where"}).groupby("where").size(),
        lambda a: a.to_dict(),
        lambda a: a.to_dict(),
    ),
}
# The same, where a row is a person: with unit= the sum of a condition is scaled before it is rounded.
OF_ROWS = {
    "sum of a condition": (
        lambda p: (p["age"] > 65).sum(),
        lambda p: p[p["age"] > 65].count(),
        int,
        int,
    ),
    "one question of several": (
        lambda p: p.counts({"old": "age > 65"}),
        lambda p: p.query("age > 65").count(),
        lambda a: int(a.iloc[0]),
        int,
    ),
    "count of values": (
        lambda p: p["cost"].count(),
        lambda p: p[p["cost"].notna()].count(),
        int,
        int,
    ),
}


def check_pair(open_frame, pair):
    first, second, read_first, read_second = pair
    p = open_frame()
    one = first(p)
    spent = p.budget.fraction
    other = second(p)
    assert p.budget.fraction == spent > 0
    assert len(p.ledger) == 1
    assert read_first(one) == read_second(other)
    # Asked in the other order, the other line pays, and the price is the same.
    q = open_frame()
    other = second(q)
    assert q.budget.fraction == spent
    one = first(q)
    assert q.budget.fraction == spent
    assert read_first(one) == read_second(other)


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("name", [*PAIRS, *OF_ROWS])
def test_release_in_other_words_is_free_and_says_the_same(name, delta):
    check_pair(lambda: make_frame().dp.open(10, delta, **TERMS), {**PAIRS, **OF_ROWS}[name])


@pytest.mark.parametrize("name", [*PAIRS, "one question of several", "count of values"])
def test_release_of_people_in_other_words_is_free_and_says_the_same(name):
    terms = {**TERMS, "unit": "person", "max_rows": 3, "max_groups": 2}
    check_pair(lambda: make_frame().dp.open(10, 1e-6, **terms), {**PAIRS, **OF_ROWS}[name])


@pytest.mark.parametrize("name", [*PAIRS, *OF_ROWS])
def test_release_under_replace_one_in_other_words_is_free(name):
    check_pair(
        lambda: make_frame().dp.open(10, neighbors="replace-one", **TERMS),
        {**PAIRS, **OF_ROWS}[name],
    )


@pytest.mark.parametrize("name", [*PAIRS, *OF_ROWS])
def test_release_on_record_is_free_in_other_words_after_a_restart(name, tmp_path):
    first, second, read_first, read_second = {**PAIRS, **OF_ROWS}[name]
    place = str(tmp_path / "ledger.db")
    p = make_frame().dp.open(10, 1e-6, ledger=place, population="people", **TERMS)
    one = first(p)
    spent = p.budget.fraction
    p.close()
    q = make_frame().dp.open(10, 1e-6, ledger=place, population="people", **TERMS)
    other = second(q)
    assert q.budget.fraction == spent > 0
    assert read_first(one) == read_second(other)
    if hasattr(other, "dp") and name != "choice among keys in another order":
        assert other.dp.plan.question  # its receipt goes with its own words


@pytest.mark.parametrize("name", [*PAIRS, *OF_ROWS])
def test_interval_of_a_release_in_other_words_is_its_own(name):
    first, second, *_ = {**PAIRS, **OF_ROWS}[name]
    p = make_frame().dp.open(10, **TERMS)
    one, other = first(p), second(p)
    if not hasattr(one, "dp"):
        return
    q = make_frame().dp.open(10, **TERMS)
    alone = second(q)
    assert type(alone) is type(other)
    assert alone.dp.plan.parts == other.dp.plan.parts
    assert [cell.functionals for cell in alone.dp.plan.cells] == [
        cell.functionals for cell in other.dp.plan.cells
    ]
    assert alone.dp.plan.question == other.dp.plan.question


# Equal identity, equal integers ------------------------------------------------------------------------------------


def make_question(p, draw, explain):
    """Ask a random line about groups in random words, or explain it."""
    keys = {"state": draw.sample(STATES, draw.choice([2, 3])), "sex": draw.sample(SEXES, 2)}
    by = draw.choice([["state"], ["sex"], ["state", "sex"], ["sex", "state"]])
    conditions = draw.sample(
        ["age > 30", "30.0 < age", "state == 'CA'", "cost < 50", "50 > cost"],
        draw.choice([0, 1, 2]),
    )
    outputs = draw.sample(
        [("age", "mean"), ("cost", "mean"), ("cost", "count"), ("age", "sum"), ("cost", "size")], 2
    )
    for condition in conditions:
        p = p.query(condition)
    groups = (p.explain if explain else p).groupby(by, keys=keys)
    return groups.agg(**{f"o{i}": out for i, out in enumerate(outputs)})


@pytest.mark.filterwarnings("ignore::dpframe.PrivacyWarning")
@pytest.mark.parametrize("unit", [None, "person"])
@pytest.mark.parametrize("seed", range(3))
def test_questions_of_one_identity_have_the_same_integers(unit, seed, monkeypatch):
    frame, asked = make_frame(), []
    terms = {} if unit is None else {"unit": unit, "max_rows": 2, "max_groups": 6}
    p = frame.dp.open(1000, **TERMS, **terms)
    make_plan = type(p._session).plan

    def listen(session, one):
        plan = make_plan(session, one)
        asked.append((one.question, one.unit, plan))
        return plan

    monkeypatch.setattr(type(p._session), "plan", listen)
    draw = random.Random(seed)
    for _ in range(250):
        make_question(p, draw, explain=True)
    engine = engine_for(frame, b"12345678")
    by_code = {}
    for question, person, plan in asked:
        integers = question.run(engine, plan, person, lambda part, exact, **words: exact)
        identity = question.identify(person, None)
        by_code.setdefault(identity.code, []).append((identity, integers))
    several = [group for group in by_code.values() if len(group) > 1]
    assert len(several) > 30
    moved = 0
    for group in several:
        for (recorded, integers), (wanted, own) in pairwise(group):
            found = rearrange(integers, recorded, wanted)
            assert all(map(np.array_equal, found, own))
            moved += recorded.vectors != wanted.vectors or not all(
                map(np.array_equal, integers, own)
            )
    assert moved > 20


GROUPINGS_APART = [
    (
        lambda p: p.groupby("state", keys=["CA", "NY"]),
        lambda p: p.groupby("state", keys=["CA", "TX"]),
    ),
    (lambda p: p.groupby("age", keys=[1, 2]), lambda p: p.groupby("age", keys=[1, 2, 3])),
    (lambda p: p.groupby("cost", keys=[1.0, None]), lambda p: p.groupby("cost", keys=[1.0])),
]


@pytest.mark.parametrize(("one", "other"), GROUPINGS_APART)
def test_groupings_with_other_keys_have_other_codes(one, other):
    p = make_frame().dp.open(10)
    first, second = (form_of_grouping(groups(p)._selection.by[0]).code for groups in (one, other))
    assert first != second


@pytest.mark.filterwarnings("ignore::dpframe.PrivacyWarning")
def test_limits_of_a_person_are_part_of_a_release():
    p = make_frame().dp.open(10, unit="person", max_rows=3, max_groups=2, **TERMS)
    p.groupby("state").size(epsilon=0.1)
    p.groupby("state").size(epsilon=0.1, max_rows=2)
    p.groupby("state").size(epsilon=0.1, max_groups=1)
    assert p.budget.spent == pytest.approx(0.3)


@pytest.mark.filterwarnings("ignore::dpframe.PrivacyWarning")
def test_sum_of_a_condition_of_people_is_no_count_of_rows():
    p = make_frame().dp.open(10, unit="person", max_rows=1, **TERMS)
    (p["age"] > 65).sum(epsilon=0.1)
    p[p["age"] > 65].count(epsilon=0.1)
    assert p.budget.spent == pytest.approx(0.2)


@pytest.mark.filterwarnings("ignore::dpframe.PrivacyWarning")
def test_counts_in_groups_of_people_are_no_counts_of_rows():
    """A person counts in some of the groups with rows, or in some of those with values."""
    p = make_frame().dp.open(10, unit="person", max_rows=1, max_groups=1, **TERMS)
    p.groupby("state")["cost"].count(epsilon=0.1)
    p[p["cost"].notna()].groupby("state").size(epsilon=0.1)
    assert p.budget.spent == pytest.approx(0.2)


@pytest.mark.filterwarnings("ignore::dpframe.PrivacyWarning")
def test_groups_found_by_other_columns_are_another_release():
    p = make_frame(3000).dp.open(10, 1e-4, bounds=TERMS["bounds"])
    p.groupby("state").size(epsilon=1)
    p.groupby("sex").size(epsilon=1)
    assert len(p.ledger) == 2


@pytest.mark.filterwarnings("ignore::dpframe.PrivacyWarning")
def test_found_groups_in_other_words_are_one_release():
    p = make_frame(3000).dp.open(10, 1e-4, bounds=TERMS["bounds"])
    one = p.groupby("state").agg(m=("cost", "mean"), n=("age", "mean"), epsilon=1)
    other = p.groupby("state").agg(x=("age", "mean"), y=("cost", "mean"), epsilon=1)
    assert len(p.ledger) == 1
    assert one["m"].to_dict() == other["y"].to_dict()
    assert one["n"].to_dict() == other["x"].to_dict()


def test_frame_with_another_public_number_of_rows_has_a_release_of_its_own(tmp_path):
    place = str(tmp_path / "ledger.db")
    terms = {
        **TERMS,
        "neighbors": "replace-one",
        "ledger": place,
        "population": "people",
        "because": "a test",
    }
    make_frame(300).dp.open(10, **terms).mean("age", epsilon=0.1)
    p = make_frame(300).iloc[:299].dp.open(10, **terms)
    p.mean("age", epsilon=0.1)
    assert len(p.ledger) == 2
