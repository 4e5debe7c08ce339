"""Synthetic tables for examples: made from a seed, the same everywhere, about nobody."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe import _pandas
from dpframe._types import Array

__all__ = [
    "BOUNDS",
    "CHAPTERS",
    "DIAGNOSES",
    "GRADES",
    "KEYS",
    "REGIONS",
    "STATES",
    "bids",
    "hospital",
    "patient_visits",
    "register",
    "salaries",
    "study",
    "subsets",
    "town",
    "visits",
]


def __dir__() -> list[str]:
    return list(__all__)  # completion shows the public names alone


STATES = ["CA", "FL", "IL", "MA", "NY", "OH", "TX", "WA"]
DIAGNOSES = ["asthma", "diabetes", "flu", "fracture", "hypertension", "migraine"]

# Public facts about the visits, for the demo, the docs and the notebooks.
BOUNDS = {"age": (0, 110), "cost": (0, 50_000), "days": (0, 60)}
KEYS = {"state": STATES, "diagnosis": DIAGNOSES}

# The diagnoses of `patient_visits`, each with its chapter of a classification.
CHAPTERS = {
    "asthma": "J00-J99",
    "diabetes": "E00-E90",
    "flu": "J00-J99",
    "fracture": "S00-T98",
    "hypertension": "I00-I99",
    "kidney disease": "N00-N99",
    "migraine": "G00-G99",
    "stroke": "I00-I99",
}

# Of `salaries`: regions and grades.
REGIONS = ["Centre", "Coast", "Highlands", "Lakes", "North", "South"]
GRADES = ["assistant", "clerk", "specialist", "manager", "director"]

# The names of `town` are common ones, put together by chance.
FIRST = {
    "F": "Alice Amina Anna Carmen Chloe Elena Emma Fatima Grace Hannah Ines Julia Lucy Maria Mei Nora Olga Priya Sara Zoe",
    "M": "Adam Ahmed Ben Carlos David Emil Felix Hugo Ivan James Karim Leo Liam Marco Noah Omar Paul Ravi Tom Yusuf",
}
LAST = (
    "Abbott Baker Berg Brown Carter Clark Cohen Costa Diaz Evans Fischer Garcia Green Hall Hill Hughes Jones Khan Kim King "
    "Kowalski Larsen Lee Lopez Martin Meyer Moore Murphy Nguyen Novak Park Patel Perez Reed Rossi Sato Silva Singh Smith "
    "Stone Taylor Turner Walker Wang Ward White Wilson Wood Wright Young"
)
ZIPS = ["02138", "02139", "02140", "02141"]


def visits(rows: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Return synthetic hospital visits, one row a person: state, age, smoker, diagnosis, days,
    cost, admitted.

    Older people have more hypertension and diabetes, smokers more asthma; cost grows with days and
    differs by state; one in twenty-five costs is missing.

    >>> visits(3)
      state  age  smoker     diagnosis  days      cost   admitted
    0    NY   48   False  hypertension     3   4758.32 2025-04-04
    1    FL   52   False        asthma    11  14642.72 2025-08-13
    2    CA   63    True  hypertension     2   2457.67 2025-10-06
    """
    rng = np.random.default_rng(seed)
    state = rng.choice(STATES, size=rows, p=[0.24, 0.13, 0.08, 0.06, 0.18, 0.08, 0.18, 0.05])
    age = np.clip(rng.gamma(9.0, 5.4, rows), 0, 109).astype(np.int64)
    smoker = rng.random(rows) < np.where(age < 60, 0.22, 0.12)
    weights = np.stack(
        [
            0.6 + 0.9 * smoker,
            0.2 + age / 70,
            np.full(rows, 1.5),
            0.5 + (age > 70) * 0.6,
            0.1 + age / 45,
            np.full(rows, 0.5),
        ],
        axis=1,
    )
    share = weights.cumsum(axis=1) / weights.sum(axis=1, keepdims=True)
    diagnosis = np.array(DIAGNOSES)[(rng.random(rows)[:, None] > share).sum(axis=1)]
    days = np.minimum(rng.geometric(1 / (1.8 + age / 25)), 90).astype(np.int64)
    level = pd.Series([1.25, 1.0, 1.05, 1.2, 1.3, 0.95, 0.9, 1.1], index=STATES)
    cost = np.round(rng.lognormal(7.1, 0.55, rows) * days**0.8 * level[state].to_numpy(), 2)
    cost[rng.random(rows) < 0.04] = np.nan
    admitted = pd.Timestamp("2025-01-01") + _pandas.to_timedelta(
        rng.integers(0, 365, rows), unit="D"
    )
    return pd.DataFrame(
        {
            "state": state,
            "age": age,
            "smoker": smoker,
            "diagnosis": diagnosis,
            "days": days,
            "cost": cost,
            "admitted": admitted,
        }
    )


def patient_visits(people: int = 5_000, seed: int = 0) -> pd.DataFrame:
    """Return synthetic visits of patients who come several times: one row a visit, about four
    visits a person.

    Most people come once or twice and a few come dozens of times. Those are older, have chronic
    diagnoses and cost more a visit, so that what holds for visits does not hold for people. A
    person keeps age, sex, smoker and, but for one visit in twelve, the state. One cost in thirty is
    missing.

    >>> patient_visits(2)[["patient_id", "date", "state", "age", "diagnosis", "chapter", "cost"]].head(3)
       patient_id       date state  age     diagnosis  chapter      cost
    0      100001 2025-04-19    OH   48  hypertension  I00-I99  2484.25
    1      100001 2025-06-03    OH   48      diabetes  E00-E90  3399.34
    2      100001 2025-06-21    OH   48        asthma  J00-J99  2533.18
    """
    rng = np.random.default_rng([seed, 1])
    age = np.clip(rng.gamma(9.0, 5.4, people), 0, 109).astype(np.int64)
    sex = rng.random(people) < 0.52
    smoker = rng.random(people) < np.where(age < 60, 0.22, 0.12)
    home = rng.choice(len(STATES), people, p=[0.24, 0.13, 0.08, 0.06, 0.18, 0.08, 0.18, 0.05])
    chronic = rng.random(people) < np.clip(age / 260 + 0.1 * smoker, 0, 0.6)
    often = rng.gamma(np.where(chronic, 2.0, 1.2), np.where(chronic, 6.0, 1.0))
    visits = np.minimum(1 + rng.poisson(often), 80)

    person = np.repeat(np.arange(people), visits)
    rows = len(person)
    weights = np.array([[5, 1, 9, 6, 5, 0.3, 4, 0.4], [8, 9, 2, 1, 9, 5, 1, 4]], dtype=float)
    share = (weights / weights.sum(axis=1, keepdims=True)).cumsum(axis=1)
    names = np.array(list(CHAPTERS))
    diagnosis = np.minimum(
        (rng.random(rows)[:, None] > share[chronic[person].astype(int)]).sum(axis=1), len(names) - 1
    )
    away = rng.random(rows) < 1 / 12
    state = np.where(away, rng.integers(0, len(STATES), rows), home[person])
    date = np.datetime64("2025-01-01", "s") + rng.integers(0, 365, rows).astype("timedelta64[D]")
    level = np.array([1.25, 1.0, 1.05, 1.2, 1.3, 0.95, 0.9, 1.1])[state]
    severe = np.array([0.8, 1.1, 0.5, 1.3, 0.8, 2.4, 0.5, 3.0])[diagnosis]
    cost = np.round(
        rng.lognormal(7.6, 0.6, rows) * level * severe * np.where(chronic[person], 1.7, 1.0), 2
    )
    cost[rng.random(rows) < 1 / 30] = np.nan
    number = 100_000 + rng.permutation(people) + 1
    order = np.lexsort((date, number[person]))
    frame = pd.DataFrame(
        {
            "patient_id": number[person],
            "date": date,
            "state": _texts(STATES, state),
            "age": age[person],
            "sex": _texts(["M", "F"], sex[person].astype(int)),
            "smoker": smoker[person],
            "diagnosis": _texts(names, diagnosis),
            "chapter": _texts(list(CHAPTERS.values()), diagnosis),
            "cost": cost,
        }
    )
    return frame.iloc[order].reset_index(drop=True)


def salaries(people: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Return synthetic salaries by region and grade, one row a person. They are right-skewed, with
    few directors and large differences of regions.

    >>> salaries(3)
       region       grade  age  salary
    0  Centre   assistant   46   30500
    1   Coast       clerk   25   47000
    2   Lakes  specialist   32   48300
    """
    rng = np.random.default_rng([seed, 2])
    region = rng.choice(len(REGIONS), people, p=[0.3, 0.22, 0.06, 0.09, 0.18, 0.15])
    age = np.clip(np.round(rng.normal(43, 11.5, people)), 18, 70).astype(np.int64)
    grade = np.clip(np.round(rng.normal(0.4 + age / 32, 0.9, people)), 0, 4).astype(np.int64)
    base = np.array([29_000, 37_000, 55_000, 78_000, 135_000])[grade]
    level = np.array([1.2, 1.1, 0.8, 0.9, 0.95, 1.0])[region]
    salary = base * level * rng.lognormal(0.0, 0.17, people) * (1 + (age - 18) / 300)
    return pd.DataFrame(
        {
            "region": _texts(REGIONS, region),
            "grade": _texts(GRADES, grade),
            "age": age,
            "salary": (np.round(salary / 100) * 100).astype(np.int64),
        }
    )


def bids(bidders: int = 1_000, seed: int = 0) -> pd.DataFrame:
    """Return synthetic bids: the most that each bidder would pay for a song. There are three kinds
    of bidders, so the best price is no average.

    >>> bids(3)
       bidder   bid
    0       1  3.45
    1       2  2.73
    2       3  0.74
    """
    rng = np.random.default_rng([seed, 3])
    kind = rng.choice(3, bidders, p=[0.55, 0.35, 0.10])
    worth = np.array([1.0, 3.0, 8.0])[kind] * rng.lognormal(0.0, 0.22, bidders)
    return pd.DataFrame(
        {"bidder": np.arange(1, bidders + 1), "bid": np.round(np.minimum(worth, 20.0), 2)}
    )


def town(people: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Return everybody in a synthetic small town: name, zip, born, sex; whether they vote; and what
    the hospital knows of its patients.

    Nobody has this table. `register` and `hospital` are what exists of it, and it is here to check
    an attack by. ``diagnosis`` is null for who never was a patient.

    >>> list(town(3).columns)
    ['name', 'zip', 'born', 'sex', 'votes', 'diagnosis', 'cost']
    """
    rng = np.random.default_rng([seed, 4])
    female = rng.random(people) < 0.51
    first = rng.integers(0, 20, people)
    last = rng.choice(50, people, p=_falling(50))
    givens = np.array(FIRST["M"].split() + FIRST["F"].split(), dtype=object)
    names = givens[first + 20 * female] + " " + np.array(LAST.split(), dtype=object)[last]
    days = (np.clip(rng.gamma(4.5, 9.5, people), 0.1, 99) * 365.25).astype(np.int64)
    age = days / 365.25
    patient = rng.random(people) < 0.15 + age / 300
    weights = np.array([2.0, 1.5, 3.0, 1.5, 2.5, 0.5, 1.5, 0.5])
    diagnosis = np.where(patient, rng.choice(len(CHAPTERS), people, p=weights / weights.sum()), -1)
    return pd.DataFrame(
        {
            "name": pd.array(names, dtype="str"),
            "zip": _texts(ZIPS, rng.choice(len(ZIPS), people, p=[0.35, 0.3, 0.2, 0.15])),
            "born": np.datetime64("2025-01-01", "s") - days.astype("timedelta64[D]"),
            "sex": _texts(["M", "F"], female.astype(int)),
            "votes": (age >= 18) & (rng.random(people) < 0.85),
            "diagnosis": _texts(list(CHAPTERS), diagnosis),
            "cost": np.where(patient, np.round(rng.lognormal(8.0, 0.8, people), 2), np.nan),
        }
    )


def register(people: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Return the public register of voters of the synthetic `town`: name, zip, born, sex.

    >>> register(20_000).shape
    (15653, 4)
    """
    everybody = town(people, seed)
    return everybody.loc[everybody["votes"], ["name", "zip", "born", "sex"]].reset_index(drop=True)


def hospital(people: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Return the patients of the synthetic `town` without their names, in another order: zip, born,
    sex, diagnosis, cost.

    >>> "name" in hospital(100)
    False
    """
    everybody = town(people, seed)
    patients = everybody.loc[
        everybody["diagnosis"].notna(), ["zip", "born", "sex", "diagnosis", "cost"]
    ]
    rng = np.random.default_rng([seed, 5])
    return patients.iloc[rng.permutation(len(patients))].reset_index(drop=True)


def study(people: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Return a synthetic medical study, one row a participant: age, smoker, and a lung disease.
    Smokers have the disease five times as often.

    >>> study(20_000).groupby("smoker")["lung_disease"].mean().round(2).tolist()
    [0.03, 0.16]
    """
    rng = np.random.default_rng([seed, 6])
    age = rng.integers(30, 80, people)
    smoker = rng.random(people) < 0.22
    ill = rng.random(people) < np.where(smoker, 0.16, 0.032)
    return pd.DataFrame({"age": age, "smoker": smoker, "lung_disease": ill})


def subsets(people: int, questions: int, seed: int = 0) -> NDArray[np.bool_]:
    """Return random sets of people for the `reconstruct` attack to ask about. There is a row for
    each question and a column for each person, who is in a set by a fair coin.

    A row selects people as it is (``frame[asked[0]]``). To count by all rows at once make numbers
    of the secret first, ``asked @ secret.astype(int)``: of two arrays of bools numpy's ``@`` says
    whether anybody has it, not how many.

    >>> subsets(4, 2).shape
    (2, 4)
    """
    return np.random.default_rng([seed, 7]).random((questions, people)) < 0.5


def _texts(labels: Iterable[str], codes: Array) -> pd.api.extensions.ExtensionArray:
    """Return the label of each code, null for -1, in pandas' own text dtype: only the few labels
    are converted, not each row."""
    return pd.array(list(labels), dtype="str").take(codes, allow_fill=True)


def _falling(n: int) -> NDArray[np.float64]:
    weights = 1 / np.sqrt(np.arange(1.0, n + 1))
    return np.asarray(weights / weights.sum())
