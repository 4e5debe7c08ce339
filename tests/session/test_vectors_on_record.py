"""A question that shares vectors with an earlier one pays for the others only."""

import itertools

import numpy as np
import pandas as pd
import pytest

import dpframe


def make_frame(rows=400):
    draw = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "age": draw.integers(0, 110, rows),
            "cost": draw.random(rows) * 100,
            "state": draw.choice(["CA", "NY"], rows),
            "sex": draw.choice(["F", "M"], rows),
        }
    )


TERMS = {
    "bounds": {"age": (0, 110), "cost": (0, 100)},
    "keys": {"state": ["CA", "NY"], "sex": ["F", "M"]},
}
pytestmark = pytest.mark.filterwarnings("ignore::dpframe.PrivacyWarning")


def test_output_that_is_added_pays_for_its_own_vector():
    p = make_frame().dp.open(10, **TERMS)
    first = p.agg(c=("cost", "mean"), epsilon=0.2)
    both = p.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.2)
    assert p.budget.spent == pytest.approx(0.3)  # half of the second price
    assert both.loc["c", "cost"] == first.loc["c", "cost"]
    assert both.dp.plan.epsilon == pytest.approx(0.3)  # of both vectors together
    assert p.ledger["question"].tolist() == [
        "mean(cost, bounds=(0, 100))",
        "mean(age, bounds=(0, 110))",
    ]


def test_noise_of_an_added_vector_is_that_of_the_whole_question():
    p, q = (make_frame().dp.open(10, 1e-6, **TERMS) for _ in range(2))
    p.agg(c=("cost", "mean"), epsilon=0.2)
    extended = p.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.2)
    at_once = q.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.2)
    assert extended.dp.plan.parts[1] == at_once.dp.plan.parts[1]
    assert extended.dp.plan.parts[0].noise.deviation < at_once.dp.plan.parts[0].noise.deviation


def test_explain_says_what_an_added_output_pays_for():
    p = make_frame().dp.open(10, **TERMS)
    p.agg(c=("cost", "mean"), epsilon=0.2)
    plan = p.explain.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.2)
    assert "pays for mean(age, bounds=(0, 110)) only, since the rest is on record" in plan.budget
    p.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.2)
    assert (
        "takes nothing" in p.explain.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.2).budget
    )


def test_outputs_that_share_a_vector_on_record_are_free():
    p = make_frame().dp.open(10, **TERMS)
    mean = p.groupby("state")["cost"].mean(epsilon=0.5)
    more = p.groupby("state").agg(m=("cost", "mean"), s=("cost", "sum"), epsilon=0.5)
    assert p.budget.spent == 0.5
    assert more["m"].tolist() == mean.tolist()


def test_vectors_that_were_asked_apart_are_free_together():
    p = make_frame().dp.open(10, **TERMS)
    p.groupby(["state", "sex"]).agg(c=("cost", "mean"), epsilon=0.2)
    p.groupby(["sex", "state"]).agg(a=("age", "mean"), epsilon=0.2)
    both = p.groupby(["state", "sex"]).agg(a=("age", "mean"), c=("cost", "mean"), epsilon=0.2)
    assert p.budget.spent == 0.4
    assert (
        "on record"
        in p.explain.groupby(["state", "sex"])
        .agg(c=("cost", "mean"), s=("age", "sum"), epsilon=0.2)
        .budget
        or p.budget.spent == 0.4
    )
    again = p.groupby(["sex", "state"]).agg(a=("age", "mean"), epsilon=0.2)
    assert again["a"].to_dict() == both["a"].swaplevel().to_dict()


def test_vector_with_wider_noise_is_not_used_again():
    p = make_frame().dp.open(10, **TERMS)
    p.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.2)
    p.agg(c=("cost", "mean"), epsilon=0.2)  # alone it has the whole price, and half of the noise
    assert p.budget.spent == 0.4
    q = make_frame().dp.open(10, **TERMS)
    q.agg(c=("cost", "mean"), a=("age", "mean"), s=("sex", "nunique"), epsilon=0.3)
    q.agg(
        c=("cost", "mean"), a=("age", "mean"), epsilon=0.3
    )  # two vectors share what three have shared
    assert q.budget.spent == pytest.approx(0.6)


@pytest.mark.parametrize(
    "other",
    [
        lambda p: p.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.3),
        lambda p: p.query("age > 30").agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.2),
        lambda p: p.agg(
            c=("cost", "mean"), a=("age", "mean"), bounds={"cost": (0, 50)}, epsilon=0.2
        ),
        lambda p: p.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.2, fresh=True),
        lambda p: p.groupby("state").agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.2),
    ],
)
def test_vectors_of_other_rows_prices_and_bounds_are_paid(other):
    p = make_frame().dp.open(10, **TERMS)
    p.agg(c=("cost", "mean"), epsilon=0.2)
    before = p.budget.spent
    other(p)
    price = 0.3 if p.ledger["epsilon"].iloc[-1] > 0.25 else 0.2
    assert p.budget.spent - before == pytest.approx(price)


def test_vectors_on_record_are_used_after_a_restart(tmp_path):
    place = str(tmp_path / "ledger.db")

    def open_frame():
        return make_frame().dp.open(10, 1e-6, ledger=place, population="people", **TERMS)

    p = open_frame()
    first = p.groupby(["state", "sex"]).agg(c=("cost", "mean"), epsilon=0.2)
    p.close()
    q = open_frame()
    both = q.groupby(["sex", "state"]).agg(a=("age", "mean"), c=("cost", "mean"), epsilon=0.2)
    assert len(q.ledger) == 2
    assert both["c"].swaplevel().to_dict() == first["c"].to_dict()
    spent = q.budget.fraction
    q.close()
    r = open_frame()
    again = r.groupby(["state", "sex"]).agg(x=("cost", "mean"), y=("age", "mean"), epsilon=0.2)
    assert r.budget.fraction == spent
    assert again["y"].to_dict() == both["a"].swaplevel().to_dict()


def test_batch_pays_for_what_is_new():
    p = make_frame().dp.open(10, **TERMS)
    p.agg(c=("cost", "mean"), epsilon=0.2)
    with p.plan_ahead() as batch:
        both = batch.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.2)
        once_more = batch.agg(y=("age", "mean"), x=("cost", "mean"), epsilon=0.2)
        count = batch.count(epsilon=0.1)
    assert p.budget.spent == pytest.approx(0.4)
    assert both.answer.loc["a", "age"] == once_more.answer.loc["y", "age"]
    assert isinstance(count.answer, int)


def test_refused_extension_leaves_the_budget_as_it_was():
    p = make_frame().dp.open(0.25, **TERMS)
    p.agg(c=("cost", "mean"), epsilon=0.2)
    with pytest.raises(Exception, match="budget"):
        p.agg(
            c=("cost", "mean"),
            a=("age", "mean"),
            s=("age", "size"),
            d=("sex", "nunique"),
            epsilon=0.2,
        )
    assert p.budget.spent == 0.2


@pytest.mark.filterwarnings(
    "error::dpframe.PrivacyWarning", "ignore:second budget on a table opened before"
)
def test_noise_that_was_bought_beside_the_record_is_warned_of():
    p = make_frame().dp.open(10, **TERMS)
    with pytest.warns(dpframe.PrivacyWarning, match="noise"):
        p.agg(c=("cost", "mean"), epsilon=1e-3)
    p._session.base.noise_warning.was_given = False  # as in another session of the ledger
    with pytest.warns(dpframe.PrivacyWarning, match="noise"):
        p.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=1e-3)
    p.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=1e-3)  # from the record, and said before


def test_name_of_an_extended_answer_is_in_the_ledger():
    p = make_frame().dp.open(10, **TERMS)
    p.agg(c=("cost", "mean"), epsilon=0.2)
    p.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.2, name="both")
    assert p.ledger["name"].fillna("").tolist() == ["", "both"]
    assert p.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.1, name="both").shape == (2, 2)
    assert p.budget.spent == pytest.approx(0.3)


def test_extension_that_was_interrupted_is_free_and_explained_so(monkeypatch):
    p = make_frame().dp.open(10, **TERMS)
    p.agg(c=("cost", "mean"), epsilon=0.2)
    kind = type(p._session)
    with monkeypatch.context() as patch:
        patch.setattr(kind, "_assemble", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            p.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.2)
    assert p.budget.spent == pytest.approx(0.3)
    plan = p.explain.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.2)
    assert "takes nothing" in plan.budget
    p.agg(c=("cost", "mean"), a=("age", "mean"), epsilon=0.2)
    assert p.budget.spent == pytest.approx(0.3)


def test_kind_of_noise_does_not_depend_on_the_order_of_outputs():
    outputs = {
        "m": ("cost", "mean"),
        "n": ("cost", "count"),
        "s": ("cost", "size"),
        "a": ("age", "mean"),
    }
    kinds = set()
    for order in itertools.permutations(outputs):
        p = make_frame().dp.open(1000, 1e-3, **TERMS)
        plan = p.explain.groupby("state").agg(**{name: outputs[name] for name in order}, epsilon=4)
        kinds.add(plan.mechanism)
    assert len(kinds) == 1


# Counts and sums behind means ----------------------------------------------------------------------------------------


def test_count_and_sum_behind_a_mean_are_free():
    p = make_frame().dp.open(10, **TERMS)
    mean = p.mean("cost", epsilon=5)
    spent = p.budget.spent
    count, total = mean.dp.count, mean.dp.total
    assert p.budget.spent == spent
    assert isinstance(count, int)
    assert float(total) / count == pytest.approx(float(mean), abs=1)
    low, high = count.interval(0.9999999)
    assert low <= 400 <= high


def test_counts_behind_groups_have_their_shape_and_intervals():
    p = make_frame().dp.open(10, **TERMS)
    table = p.groupby("state").agg(
        c=("cost", "mean"), a=("age", "std"), u=("sex", "nunique"), epsilon=6
    )
    counts = table.dp.count
    assert counts.columns.tolist() == ["c", "a"]
    assert counts.index.equals(table.index)
    assert counts.dp.interval().shape == (2, 4)
    assert table["c"].dp.count.tolist() == counts["c"].tolist()
    assert table["c"].dp.total.name == "c"


def test_count_beside_a_mean_has_no_sum_behind_it():
    p = make_frame().dp.open(500, **TERMS)
    table = p.groupby("state").agg(m=("age", "mean"), n=("age", "count"), epsilon=100)
    assert table.dp.total.columns.tolist() == ["m"]
    assert table.dp.count.columns.tolist() == ["m"]
    described = p["age"].describe(epsilon=100)
    assert "count" not in described.dp.total.index
    assert abs(described.dp.total["mean"] - make_frame()["age"].sum()) < 100


def test_count_behind_a_median_is_refused_with_the_line_to_write():
    p = make_frame().dp.open(10, **TERMS)
    with pytest.raises(Exception, match="no count behind it"):
        _ = p.median("cost", epsilon=5).dp.count
    with pytest.raises(Exception, match="no count behind it"):
        _ = p.groupby("state")["cost"].median(epsilon=5).dp.count
