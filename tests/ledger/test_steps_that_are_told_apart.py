"""Derived frames that differ far behind the beginning of their words are two frames, and neither gets the other's answers."""

from __future__ import annotations

import pandas as pd
import pytest

import dpframe  # noqa: F401  (registers .dp)
from tests.ledger.people import elsewhere, posix

LONG = [f"questionnaire_2025_wave_{i:02d}_answer_code" for i in range(7)]
LOOKED_UP = [f"lookup_{name}" for name in LONG] + ["place"]


def opened(path=None):
    n = 1000
    columns = {**{name: ["a"] * n for name in LONG}, "home": ["u"] * n, "work": ["v"] * n}
    words = {} if path is None else {"ledger": path, "population": "people"}
    return pd.DataFrame(columns).dp.open(1000, **words)


def merged(p, column):
    table = pd.DataFrame({**{f"lookup_{name}": ["a"] for name in LONG}, "place": ["u"], "w": [1]})
    return p.merge(table, left_on=[*LONG, column], right_on=LOOKED_UP)


def test_merges_whose_keys_differ_at_their_end():
    p = opened()
    by_home, by_work = (merged(p, column).count(epsilon=10) for column in ("home", "work"))
    assert abs(by_home - 1000) < 100
    assert abs(by_work) < 100
    assert len(p.ledger) == 2
    assert merged(p, "work").count(epsilon=10) == by_work
    assert len(p.ledger) == 2


@posix
def test_merges_whose_keys_differ_at_their_end_after_a_restart(path):
    def work(column):
        p = opened(path)
        return int(merged(p, column).count(epsilon=10)), len(p.ledger)

    home, paid = elsewhere(work, "home")
    place, both = elsewhere(work, "work")
    assert (paid, both) == (1, 2)
    assert abs(home - 1000) < 100
    assert abs(place) < 100
    assert elsewhere(work, "work") == (place, 2)
    assert elsewhere(work, "home") == (home, 2)


def last_of_many(change):
    """A public table of many rows, of which the last one differs."""
    table = pd.DataFrame({"home": [f"{'x' * 40}{i}" for i in range(300)] + ["u"], "w": 1})
    return table.assign(**change(table))


TABLES = {
    "a cell": lambda t: {"w": [*t["w"][:-1], 2]},
    "a dtype": lambda t: {"w": t["w"].astype("float64")},
    "a type": lambda t: {"w": pd.Series([*t["w"][:-1], True], dtype=object)},
    "an order": lambda t: {"w": pd.Categorical(["a"] * 301, ordered=True)},
}


@pytest.mark.parametrize("change", TABLES)
def test_public_tables_that_differ_in_one_thing(change):
    p = opened()
    tables = [last_of_many(lambda t: {}), last_of_many(TABLES[change])]
    if change == "an order":
        tables[0] = last_of_many(lambda t: {"w": pd.Categorical(["a"] * 301)})
    if change == "a type":
        tables[0] = tables[0].astype({"w": object})
    for table in (*tables, *tables):
        p.merge(table, on="home").count(epsilon=10)
    assert len(p.ledger) == 2
