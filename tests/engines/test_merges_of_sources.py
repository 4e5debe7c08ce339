"""Two tables of people that are kept outside of memory: the refusal of their merge says what works, and that works."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import NotOffered, Refused

N = 400
LIMITS: dict[str, Any] = {"max_rows": 12, "max_groups": 1}
VISITS: dict[str, Any] = {"unit": "person", "bounds": {"cost": (0, 9)}, **LIMITS}
PEOPLE: dict[str, Any] = {"unit": "person", "bounds": {"age": (0, 90)}, **LIMITS}


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(3)
    visits = pd.DataFrame({"person": rng.integers(0, N, 4 * N), "cost": rng.uniform(0, 9, 4 * N)})
    return visits, pd.DataFrame({"person": np.arange(N), "age": rng.integers(0, 90, N)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "t.db") as connection:
        for name, table in zip(("visits", "people"), tables(), strict=True):
            table.to_sql(name, connection, index=False)
    connection.close()
    return tmp_path


def opened(folder: Path, name: str, terms: dict[str, Any], **words: Any) -> Any:
    own = {
        "ledger": folder / "budget.db",
        "population": str(folder),
        "version": name,
        "epsilon": 500,
    }
    return dpframe.open(dpframe.sql(f"sqlite:///{folder}/t.db", name), **{**own, **terms, **words})


@pytest.mark.parametrize("budget", ["one", "two"])
def test_a_merge_of_two_sources_says_that_they_are_joined_where_they_are(
    folder: Path, budget: str
) -> None:
    p = opened(folder, "visits", VISITS)
    more = {} if budget == "one" else {"population": f"{folder} too", "because": "two"}
    q = opened(folder, "people", PEOPLE, **more)
    with pytest.raises(NotOffered, match="both are kept elsewhere") as refused:
        p.merge(q, on="person")
    assert "accountant" not in str(refused.value)  # one budget would not make it work
    statement = re.search(r"SELECT .*? USING \(person\)", str(refused.value))
    assert statement is not None
    with sqlite3.connect(folder / "t.db") as connection:
        connection.execute(f"CREATE VIEW joined AS {statement[0]}")
    connection.close()
    bounds = {"cost": (0, 9), "age": (0, 90)}
    joined = opened(
        folder,
        "joined",
        {**VISITS, "bounds": bounds, "because": "a visit is joined to its own person"},
    )
    visits, people = tables()
    wanted = visits.merge(people, on="person")["age"].mean()
    assert abs(joined.mean("age", epsilon=100) - wanted) < 2
    assert p.budget.spent == joined.budget.spent == 100  # of one budget


def test_the_line_for_frames_of_polars_works(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="frames of polars are joined by themselves")
    visits, people = (polars.from_pandas(table) for table in tables())
    own: dict[str, Any] = {
        "ledger": tmp_path / "budget.db",
        "population": str(tmp_path),
        "epsilon": 500,
    }
    p = dpframe.open(visits, **own, **VISITS, version="1")
    q = dpframe.open(people, **own, **PEOPLE, version="1")
    with pytest.raises(NotOffered) as refused:
        p.merge(q, on="person")
    line = re.search(r"dpframe\.open\(.*?\.\.\.\)", str(refused.value))
    assert line is not None
    joined: Any = eval(
        line[0].replace("unit='person', ...", "**terms"),
        {
            "dpframe": dpframe,
            "visits": visits,
            "people": people,
            "terms": {**own, **VISITS, "bounds": {"age": (0, 90)}, "version": "1"},
        },
    )
    assert abs(joined.mean("age", epsilon=100) - tables()[1]["age"].mean()) < 9


def test_a_source_beside_a_frame_is_said_to_be_the_one(folder: Path) -> None:
    p = opened(folder, "visits", VISITS)
    q = tables()[1].dp.open(accountant=p.accountant, **PEOPLE, version="people")
    for left, right in ((p, q), (q, p)):
        with pytest.raises(NotOffered, match="one is kept elsewhere"):
            left.merge(right, on="person")
    assert p.budget.spent == 0


def test_merge_of_frames_with_two_budgets_is_refused_with_advice() -> None:
    visits, people = tables()
    p = visits.dp.open(500, **VISITS, because="visits")
    other = people.rename(columns={"person": "who"})
    q = other.copy().dp.open(500, **{**PEOPLE, "unit": "who"}, because="people")
    with pytest.raises(Refused, match=r"accountant=p\.accountant, unit='who'"):
        p.merge(q, left_on="person", right_on="who")
    q = people.copy().dp.open(accountant=p.accountant, **PEOPLE, because="one budget")
    assert (
        abs(p.merge(q, on="person").mean("age", epsilon=100) - visits.merge(people)["age"].mean())
        < 9
    )


def test_rows_that_are_people_beside_others_name_the_person_there_is() -> None:
    visits, people = tables()
    p = visits.dp.open(500, **VISITS, because="visits")
    q = people.dp.open(500, bounds={"age": (0, 90)}, because="people")
    for left, right in ((p, q), (q, p)):
        with pytest.raises(Refused, match=r"open\(unit='person'\)"):
            left.merge(right, on="person")
