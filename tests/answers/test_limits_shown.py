"""Limits and clips: what has shaped a number is said beside it, and before it is paid where public facts tell."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe._groups.calendar import is_calendar
from dpframe._groups.keys import Keys
from dpframe._plans.plan import Plan
from dpframe._plans.worth import describe_limits

MONTHS = range(1, 13)
E = {"epsilon": 20}


def visits(people: int = 600, rows: int = 6000) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    days = pd.to_timedelta(rng.integers(0, 365, rows), unit="D")
    return pd.DataFrame(
        {
            "id": rng.integers(0, people, rows),
            "cost": rng.gamma(2, 1000, rows),
            "month": rng.integers(1, 13, rows),
            "date": pd.Timestamp("2025-01-01") + days,
            "state": rng.choice(["CA", "NY", "TX", "WA"], rows),
        }
    )


@pytest.fixture
def p():
    return visits().dp.open(
        1000,
        unit="id",
        max_rows=4,
        max_groups=3,
        bounds={"cost": (0, 5000), "date": ("2025-01-01", "2025-12-31")},
        keys={"month": MONTHS, "state": ["CA", "NY", "TX", "WA"]},
    )


def cautions(ask) -> list[str]:
    """The warnings of a question about limits of groups."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ask()
    return [str(one.message) for one in found if "counts in at most" in str(one.message)]


# Beside the answer ------------------------------------------------------------------------------


def test_sizes_of_people_say_where_they_are_cut(p):
    sizes = p.groupby("id").size().mean(**E)
    assert sizes < visits().groupby("id").size().mean() / 2  # what the note is about
    assert repr(sizes).endswith(", sizes cut at 4 rows a person")
    assert repr(2 * sizes).endswith(", sizes cut at 4 rows a person")
    assert "counts cut at 4 a person" in repr(p.groupby("id")["state"].nunique().mean(**E))


def test_bounds_of_sums_of_people_are_said(p):
    total = p.groupby("id")["cost"].sum()
    assert repr(total.mean(bounds=(0, 2000), **E)).endswith(", values clipped to 0 to 2,000")
    assert repr(total.mean(**E)).endswith(", values clipped to 0 to 20,000")


@pytest.mark.parametrize(
    "ask",
    [
        lambda p: p.groupby("id")["cost"].max().mean(**E),
        lambda p: p.groupby("id")["cost"].mean().mean(**E),
        lambda p: (p.groupby("id").size() > 3).mean(**E),
        lambda p: p.groupby("id").size().clip(0, 9).mean(**E),
        lambda p: p.groupby("id").head(2).groupby("id").size().mean(**E),
    ],
    ids=["max", "mean", "condition", "clip by hand", "at most two rows"],
)
def test_numbers_that_nothing_cuts_say_nothing(p, ask):
    assert repr(ask(p)).count(",") == 0


def test_bounds_narrower_than_declared_are_said_and_wider_ones_are_not(p):
    assert "values clipped to 0 to 1,000" in repr(p.mean("cost", bounds=(0, 1000), **E))
    assert "clipped" not in repr(p.mean("cost", bounds=(0, 9000), **E))
    assert "clipped" not in repr(p.mean("cost", **E))
    q = visits().dp.open(100)  # here the bounds of the question are the declaration
    assert "clipped" not in repr(q.mean("cost", bounds=(0, 1000), **E))
    at = {"bounds": ("2025-02-01", "2025-10-10"), **E}
    assert "clipped to narrower bounds than declared" in repr(p["date"].mean(**at))


def test_several_columns_say_which_of_them_are_cut(p):
    each = p.groupby("id").agg(visits=("cost", "size"), total=("cost", "sum"), most=("cost", "max"))
    note = "visits: sizes cut at 4 rows a person; total: values clipped to 0 to 20,000"
    assert repr(each.mean(**E)).splitlines()[-1] == note
    assert repr(each[["visits", "most"]].mean(**E)).splitlines()[-1] == note.partition(";")[0]


def test_the_note_survives_where_the_class_does(p):
    answer = p.groupby(["state", "month"])["cost"].mean(
        bounds=(0, 1000), epsilon=200, max_groups=12
    )
    note = "values clipped to 0 to 1,000"
    for shown in (answer, answer.head(3), answer.to_frame(), answer.iloc[::-1]):
        assert note in repr(shown).splitlines()[-1]
    assert note in answer.to_frame()._repr_html_()
    assert answer.dp.table()["flags"].str.contains(note).all()
    assert note in repr(pickle.loads(pickle.dumps(answer)))


def test_pictures_say_what_was_left_out(p):
    pytest.importorskip("matplotlib").use("Agg")
    answer = p.groupby("state")["cost"].mean(bounds=(0, 1000), epsilon=200, max_groups=4)
    caption = "of at most 4 rows a person, in at most 4 groups; values clipped to 0 to 1,000"
    axes = answer.dp.plot(title="Costs")
    assert axes.get_title(loc="right").replace("\n", " ") == caption
    assert axes.get_title() == "Costs\n"
    plain = visits().dp.open(50, keys={"state": ["CA", "NY"]}).groupby("state").size(epsilon=9)
    assert plain.dp.plot(title="Visits").get_title(loc="right") == ""


def test_the_note_is_in_the_receipt_and_in_the_plan(p, tmp_path):
    answer = p.groupby("id").size().mean(**E)
    plan = Plan.from_json(answer.plan.to_json())
    assert describe_limits(plan) == describe_limits(answer.plan) == "sizes cut at 4 rows a person"
    table = p.groupby("month")["cost"].mean(bounds=(0, 1000), max_groups=12, **E)
    assert '"clips":[[[],0.0,1000.0,"",false]]' in table.attrs["dpframe_receipt"]


def test_an_answer_from_a_ledger_says_it_too(tmp_path):
    file = tmp_path / "ledger.db"
    for _ in range(2):
        words = {"unit": "id", "max_rows": 4, "ledger": file, "population": "visitors"}
        p = visits().dp.open(1000, bounds={"cost": (0, 5000)}, **words)
        assert "sizes cut at 4 rows" in repr(p.groupby("id").size().mean(**E))
        assert p.budget.spent == 20
        p.close()


def test_explain_has_a_line_about_what_is_left_out(p):
    text = repr(p.explain.groupby("month")["cost"].mean(bounds=(0, 1000), epsilon=1))
    (line,) = (one for one in text.splitlines() if one.strip().startswith("left out"))
    assert line.split("left out  ")[1] == (
        "rows beyond 4 of a person in a group, groups beyond 3 of 12 that a person is in; "
        "values clipped to 0 to 1,000. p.over_limits() and p.clipped() tell how much"
    )
    for plan in (
        p.explain.groupby("id")["cost"].max().mean(epsilon=1),
        p.explain.nunique("id", epsilon=1),
        visits().dp.open(1).explain.mean("cost", bounds=(0, 9), epsilon=0.1),
    ):
        assert "left out" not in repr(plan)


# Before the debit -------------------------------------------------------------------------------


def test_more_months_than_groups_are_warned_of_once_before_the_debit(p):
    expected = (
        "a person counts in at most 3 of 12 groups by month, and rows in others are left out. "
        "How many: p.over_limits('month')"
    )
    assert cautions(lambda: p.explain.groupby("month").size(epsilon=1)) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dpframe.PrivacyWarning, match="in at most 3 of 12"):
            p.groupby("month").size(epsilon=300)
    assert p.budget.spent == 0
    q = visits().dp.open(
        1000, unit="id", max_rows=4, max_groups=3, keys={"month": MONTHS}, bounds={"cost": (0, 9)}
    )
    assert cautions(lambda: q.groupby("month").size(epsilon=300)) == [expected]
    assert cautions(lambda: q.groupby("month")["cost"].mean(epsilon=300)) == []
    assert cautions(lambda: q[q["cost"] > 5].groupby("month").size(epsilon=300)) == []


def test_a_frame_shows_after_opening_which_months_are_left_out(p):
    hint = "p.over_limits('month')"
    assert repr(p).splitlines()[-1].endswith(hint)
    assert "in at most 3 of 12 groups by month" in p._repr_html_()
    assert p.budget.spent == 0
    for words in ({"max_groups": 12}, {"max_groups": 3, "keys": {"state": ["CA", "NY"]}}, {}):
        words = {"keys": {"month": MONTHS}, **words}
        q = visits().dp.open(1, unit="id", max_rows=4, **words)
        assert "counts in at most" not in repr(q)


@pytest.mark.parametrize(
    ("ask", "line"),
    [
        (lambda p: p.resample("ME", on="date").size(**E), "p['date'].dt.to_period('M')"),
        (lambda p: p.resample("W", on="date").size(**E), "p['date'].dt.to_period('W')"),
        (lambda p: p.resample("2W", on="date").size(**E), "..."),
        (lambda p: p.groupby(p["date"].dt.month).size(**E), "p['date'].dt.month"),
        (lambda p: p.groupby(p["date"].dt.day_name()).size(**E), "p['date'].dt.day_name()"),
        (lambda p: p.groupby(["state", "month"]).size(**E), "['state', 'month']"),
        (lambda p: p.groupby("month")["id"].nunique(**E), "'month'"),
        (lambda p: p.crosstab("state", "month", **E), "['state', 'month']"),
    ],
)
def test_groupings_by_time_are_warned_of_and_name_a_line_that_runs(p, ask, line):
    (text,) = cautions(lambda: ask(p))
    assert f"p.over_limits({line})" in text
    assert len(text) <= 120
    if line != "...":
        assert p.over_limits(eval(line), **E).loc["All", True] > 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda p: p.groupby("state").size(**E),
        lambda p: p.groupby("month").size(max_groups=12, **E),
        lambda p: p.drop_duplicates("id").groupby("month").size(**E),
        lambda p: (
            p.assign(first=p.groupby("id")["date"].transform("min").dt.to_period("M"))
            .groupby("first")
            .size(**E)
        ),
        lambda p: p.groupby(
            (p["date"] - pd.Timestamp("2025-01-01")).dt.days.cut([0, 99, 199, 299, 400])
        ).size(**E),
        lambda p: visits().dp.open(9).groupby("month", keys=MONTHS).size(epsilon=5),
    ],
    ids=["states", "all months count", "a row a person", "first month", "durations", "rows"],
)
def test_groups_that_people_need_not_be_in_many_of_are_not_warned_of(p, ask):
    assert cautions(lambda: ask(p)) == []


def test_long_names_leave_the_warning_short():
    name = "the month in which the visit was billed to the insurer of the patient"
    frame = visits().rename(columns={"month": name})
    p = frame.dp.open(100, unit="id", max_rows=4, max_groups=3, keys={name: MONTHS})
    (text,) = cautions(lambda: p.groupby(name).size(**E))
    assert len(text) <= 120
    assert "p.over_limits(" in text


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (list(MONTHS), True),
        (list(range(7)), False),  # perhaps grades
        ([2023, 2024, 2025], True),
        (["2025-01", "2025-02"], True),
        (["Mon", "Tue", "Wed"], True),
        ([pd.Timestamp("2025-01-01"), pd.Timestamp("2025-01-02")], True),
        ([1, 2, 3, 4, 5], False),
        (["CA", "NY"], False),
        ([True, False], False),
        ([0.5, 1.5], False),
        ([2023, 2025], False),
    ],
)
def test_keys_of_a_calendar_are_known(keys, answer):
    assert is_calendar(Keys(pd.Index(keys), None)) is answer


def test_short_cycles_are_those_of_a_calendar_where_the_column_says_so():
    assert is_calendar(Keys(pd.Index(range(7), name="weekday"), None))
    assert not is_calendar(Keys(pd.Index(range(7), name="grade"), None))
    assert not is_calendar(Keys(pd.Index(range(5), name="weekday"), None))
