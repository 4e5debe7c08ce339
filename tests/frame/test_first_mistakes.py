"""Mistakes of a first afternoon: each is met by a message, nothing is charged, and the line runs.

Messages of single verbs are tested beside them, forked processes in `test_bad_inputs`, and frames
that were sorted or changed in place in `test_in_place`.
"""

from __future__ import annotations

import pickle
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import DPError, NoSession, PrivacyWarning
from dpframe.datasets import BOUNDS, KEYS, STATES, visits

plt = pytest.importorskip("matplotlib.pyplot")


class Mistake(NamedTuple):
    """A line as it is typed, what its message has to say, and the line that is written instead."""

    typed: str
    said: str
    instead: str


BEFORE_OPENING = [
    Mistake(
        "df.dp.count()",
        "needs an open session. Open one with the whole budget, for example "
        "df.dp.open(epsilon=1, bounds={'age': (0, 110)})",
        "df.dp.open(epsilon=1, bounds={'age': (0, 110)})",
    ),
    Mistake("df.dp.open(epsilon='1')", "a number such as 0.1, not str", "df.dp.open(epsilon=0.1)"),
    Mistake("df.dp.open(eps=1)", "Did you mean 'epsilon'?", "df.dp.open(epsilon=1)"),
    Mistake(
        "df.dp.open(1, bound={'age': (0, 110)})",
        "Did you mean 'bounds'?",
        "df.dp.open(1, bounds={'age': (0, 110)})",
    ),
    Mistake(
        "df.dp.open(1, bounds={'agee': (0, 110)})",
        "no column 'agee'. Did you mean 'age'?",
        "df.dp.open(1, bounds={'age': (0, 110)})",
    ),
    Mistake(
        "df.dp.open(1, bounds={'age': (110, 0)})",
        "bounds of 'age' are reversed: (110, 0)",
        "df.dp.open(1, bounds={'age': (0, 110)})",
    ),
]

AFTER_OPENING = [
    Mistake("p.mean('agee')", "no column 'agee'. Did you mean 'age'?", "p.mean('age')"),
    Mistake("p.meen('age')", "no 'meen'. Did you mean 'mean'?", "p.mean('age')"),
    Mistake(
        "p.mean('cost')",
        "'cost' needs public bounds",
        "p.mean('cost', bounds=(0, 50_000))",
    ),
    Mistake(
        "p.groupby('state').size()",
        "groupby over 'state' needs keys=[...]",
        "p.groupby('state', keys=STATES).size()",
    ),
    Mistake(
        "p.count(epsilon=600)", "The largest epsilon that still fits is 100", "p.count(epsilon=9)"
    ),
    Mistake("p[df['age'] > 65].count()", "p[p['age'] > 30]", "p[p['age'] > 30].count()"),
    Mistake(
        "df[df['age'] > 65].dp.count()",
        'Put .dp first: df.dp.query("age > 0").count(...)',
        'df.dp.query("age > 0").count()',
    ),
    Mistake("df.copy().dp.count()", "Put .dp first: df.dp.query(", "df.dp.count()"),
    Mistake(
        "df.head().dp.mean('age')",
        'Put .dp first: df.dp.query("age > 0").mean(...)',
        'df.dp.query("age > 0").mean("age")',
    ),
    Mistake("p.to_csv('visits.csv')", "it would hand out rows of people", "p.mean('age')"),
    Mistake("len(p)", "Write p.count()", "p.count()"),
    Mistake("[row for row in p.iterrows()]", "Ask for a release instead: p.count()", "p.count()"),
    Mistake("pickle.dumps(p)", "Pickle the answers instead", "pickle.dumps(p.count())"),
    Mistake("df.dp.open(2)", "Use it as df.dp; a second budget", "df.dp.count()"),
    Mistake("np.nanmean(p['age'])", "Ask for a release instead: p.count()", "p.mean('age')"),
    Mistake(
        "p[p['age'] > 65 and p['smoker']]",
        "Combine conditions with &, | and ~",
        "p[(p['age'] > 65) & p['smoker']].count()",
    ),
    Mistake(
        "p[p.age > 65 & p.smoker]",
        "write parentheses: p[(p['age'] > 65) & p['smoker']]",
        "p[(p['age'] > 65) & p['smoker']].count()",
    ),
    Mistake("plt.hist(p['age'])", "p['age'].hist(bins=30)", "p['age'].hist(bins=30)"),
    Mistake(
        "list(p['state'].unique())", "list keys=[...]", "p.groupby('state', keys=STATES).size()"
    ),
    Mistake("p.synthetic(100)", "dpframe.dummy(p)", "dpframe.dummy(p)"),
    Mistake(
        "[rows for _, rows in p.groupby('state', keys=STATES)]",
        "rows of people",
        "[p[p['state'] == s].count() for s in STATES]",
    ),
    Mistake("p['age'][0]", "rows cannot be chosen by", "p['age'][p['age'] > 30].mean()"),
]


def run(line: str, **names: Any) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=dpframe.PrivacyWarning)
        known = {"np": np, "pd": pd, "plt": plt, "pickle": pickle, "dpframe": dpframe}
        known["STATES"] = STATES
        return eval(line, {**known, **names})


@pytest.mark.parametrize("mistake", BEFORE_OPENING, ids=lambda mistake: mistake.typed)
def test_a_mistake_in_opening_names_the_line(mistake):
    df = visits(200)
    with pytest.raises(DPError) as refused:
        run(mistake.typed, df=df)
    assert mistake.said in str(refused.value)
    assert len(str(refused.value)) < 500
    with pytest.raises(NoSession):
        df.dp.count()
    assert run(mistake.instead, df=df).budget.spent == 0


@pytest.mark.parametrize("mistake", AFTER_OPENING, ids=lambda mistake: mistake.typed)
def test_a_mistake_in_asking_costs_nothing_and_names_the_line(mistake):
    df = visits(200)
    p = df.dp.open(100, queries=100, bounds={"age": (0, 110)}, because="mistakes")
    with pytest.raises(DPError) as refused:
        run(mistake.typed, df=df, p=p)
    assert mistake.said in str(refused.value)
    assert p.budget.spent == 0
    assert run(mistake.instead, df=df, p=p) is not None


def test_a_question_asked_twice_is_free_and_the_same():
    p = visits(200).dp.open(10, bounds=BOUNDS, keys=KEYS, because="mistakes")
    first = p.mean("age", epsilon=1)
    assert p.mean("age", epsilon=1) == first
    assert p.budget.spent == 1


def test_a_cell_that_loads_and_opens_is_heard_when_it_runs_again():
    visits(200).dp.open(1, bounds=BOUNDS, keys=KEYS)
    with pytest.warns(PrivacyWarning, match="second budget on a table opened before") as heard:
        visits(200).dp.open(1, bounds=BOUNDS, keys=KEYS)
    (warning,) = heard
    assert "ledger=" in str(warning.message)
    assert len(str(warning.message)) <= 120
