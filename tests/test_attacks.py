"""Attacks find what they should where a release is exact or nearly so, and nothing where it is private."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, BadValue, BudgetExceeded, UnknownColumn, attacks, datasets

QUASI = ["zip", "born", "sex"]


# The reconstruction that issue 5 asks for ---------------------------------------------------------------------------

PEOPLE = 192


def bits() -> np.ndarray:
    return np.random.default_rng(860).random(PEOPLE) < 0.5


def noises(true: np.ndarray, size: float) -> dict[str, np.ndarray]:
    """Errors of at most ``size``: by chance, as large as allowed, and bent so as to tell the least."""
    rng = np.random.default_rng(2003)
    return {
        "uniform": rng.uniform(-size, size, len(true)),
        "largest": np.where(rng.random(len(true)) < 0.5, size, -size),
        "towards what is expected": np.clip(PEOPLE / 4 - true, -size, size),
    }


def recovered(asked: np.ndarray, answers: np.ndarray, secret: np.ndarray) -> float:
    """The best that either form of the attack does."""
    return max(
        float((attacks.reconstruct(asked, answers, method) == secret).mean())
        for method in ("lp", "least squares")
    )


def private_answers(asked: np.ndarray, secret: np.ndarray, delta: float) -> np.ndarray:
    """The same questions, one after the other, in a session whose whole epsilon is 1."""
    frame = pd.DataFrame({"person": np.arange(len(secret)), "ill": secret})
    p = frame.dp.open(epsilon=1, delta=delta, queries=len(asked))
    answers = [
        p[p["person"].isin(np.flatnonzero(row).tolist()) & p["ill"]].count(epsilon=None)
        for row in asked
    ]
    assert p.budget.fraction > 0.999
    with pytest.raises(BudgetExceeded):
        p.query("ill").count(epsilon=0.05)
    return np.array(answers, dtype=float)


def test_reconstruction_works_below_sqrt_n_and_fails_on_private_answers():
    secret, asked = bits(), datasets.subsets(PEOPLE, 4 * PEOPLE)
    true = asked @ secret.astype(np.int64)
    for name, noise in noises(true, math.sqrt(PEOPLE) / 6).items():
        assert np.abs(noise).max() <= math.sqrt(PEOPLE) / 6
        found = attacks.reconstruct(asked, true + noise)
        assert (found == secret).mean() >= 0.95, name
    for delta in (0.0, 1e-6):
        assert recovered(asked, private_answers(asked, secret, delta), secret) <= 0.65


def test_reconstruction_in_bulk_by_least_squares():
    rng, people = np.random.default_rng(5), 500
    secret, asked = rng.random(people) < 0.3, datasets.subsets(people, 4 * people, seed=1)
    answers = asked @ secret.astype(float) + rng.uniform(-5, 5, len(asked))
    assert asked.size > attacks.LARGE
    assert (attacks.reconstruct(asked, answers) == secret).mean() >= 0.95


def test_reconstruction_fails_without_enough_questions():
    secret, asked = bits(), datasets.subsets(PEOPLE, PEOPLE // 4)
    assert (attacks.reconstruct(asked, asked @ secret.astype(int)) == secret).mean() < 0.95


@pytest.mark.parametrize(
    ("asked", "answers", "method"),
    [
        ([1, 0], [1], "auto"),
        ([[1, 0]], [1, 2], "auto"),
        ([[1, 0]], [math.nan], "auto"),
        ([[1, 0]], [1], "magic"),
    ],
)
def test_reconstruction_turns_away_what_is_no_set_of_questions(asked, answers, method):
    with pytest.raises(BadValue):
        attacks.reconstruct(asked, answers, method)


# Linkage, rows, differences -----------------------------------------------------------------------------------------


def named(found: pd.DataFrame) -> float:
    """The part of the claims that the town says are true."""
    true = datasets.town().dropna(subset="diagnosis")[["name", *QUASI, "diagnosis", "cost"]]
    return len(found.merge(true, on=list(true.columns))) / len(found)


def test_linkage_names_most_patients_who_vote_and_is_nearly_always_right():
    town, hospital = datasets.town(), datasets.hospital()
    found = attacks.link(hospital, datasets.register(), QUASI)
    voting = (town["votes"] & town["diagnosis"].notna()).sum()
    assert len(found) > 0.8 * voting
    assert named(found) > 0.95


def test_coarser_columns_name_fewer_and_still_some():
    tables = []
    for table in (datasets.hospital(), datasets.register()):
        tables.append(table.assign(born=table["born"].dt.to_period("M").astype(str)))
    found = attacks.link(tables[0], tables[1], QUASI)
    exact = attacks.link(datasets.hospital(), datasets.register(), QUASI)
    assert 0 < len(found) < 0.2 * len(exact)


def test_unknown_values_link_to_nobody():
    register = pd.DataFrame({"name": ["a", "b"], "zip": ["1", None]})
    published = pd.DataFrame({"zip": ["1", None, "2"], "ill": [True, False, True]})
    found = attacks.link(published, register, ["zip"])
    assert found.to_dict("list") == {"zip": ["1"], "ill": [True], "name": ["a"]}


def test_a_few_rows_tell_all_about_whoever_is_in_them():
    hospital = datasets.hospital()
    published = attacks.a_few_rows(hospital, 100)
    assert len(published) == 100
    found = attacks.link(published, datasets.register(), QUASI)
    assert len(found) > 40
    assert named(found) > 0.95
    gone = attacks.a_few_rows(hospital.drop(index=published.index), 100)
    assert not set(published.index) & set(
        gone.index
    )  # nobody is published who is not there: no epsilon holds


def test_two_exact_counts_tell_a_secret_and_two_private_ones_do_not():
    staff = datasets.salaries()
    known, secret = ["region", "grade", "age"], "salary >= 120_000"
    alone = staff[attacks.alone(staff, known)]
    p = staff.dp.open(epsilon=1000)
    right = []
    for rich in (True, False):
        row = alone[(alone["salary"] >= 120_000) == rich].iloc[0]
        person = (
            f"region == '{row['region']}' and grade == '{row['grade']}' and age == {row['age']}"
        )
        exact = attacks.difference(lambda c: len(staff.query(c)), secret, person)
        assert exact.others > 100
        assert exact.found == rich
        for _ in range(300):
            told = attacks.difference(
                lambda c: p.query(c).count(epsilon=0.1, fresh=True), secret, person
            )
            right.append((told.found > 0.5) == rich)
    # The person is in one of both counts only, so epsilon 0.1 binds the attacker; 0.08 is four deviations of the rate.
    assert 0.42 < np.mean(right) < attacks.best_guess(0.1) + 0.08


def test_what_a_study_teaches_about_a_smoker_does_not_need_the_smoker():
    study = datasets.study(5000)
    person = study.index[study["smoker"] & ~study["lung_disease"]][0]

    def risks(table: pd.DataFrame) -> tuple[float, float]:
        p = table.copy().dp.open(epsilon=1, keys={"smoker": [True, False]})
        rates = p.groupby("smoker")["lung_disease"].mean(bounds=(0, 1), epsilon=1)
        return rates[True], rates[False]

    both = attacks.participation(risks, study, person)
    for smokers, others in (both.taking_part, both.staying_out):
        assert smokers > 3 * others
    assert abs(both.taking_part[0] - both.staying_out[0]) < 0.02


def test_no_attack_on_a_laplace_count_beats_the_best_guess():
    for epsilon in (0.1, 0.5, 1.0, 3.0):
        right = 1 - math.exp(-epsilon / 2) / 2  # noisy bit above a half or not
        truthful = math.exp(epsilon) / (
            1 + math.exp(epsilon)
        )  # of randomized response, which attains the bound
        assert right < attacks.best_guess(epsilon) == pytest.approx(truthful)


def test_arguments_that_make_no_sense_are_named():
    frame = pd.DataFrame({"zip": ["1"], "born": [1950]})
    with pytest.raises(BadValue, match="list of at least one column"):
        attacks.link(frame, frame, "zip")
    with pytest.raises(UnknownColumn, match="zp"):
        attacks.link(frame, frame, ["zp"])
    with pytest.raises(BadType, match="secret"):
        attacks.difference(len, True, "zip == '1'")
    with pytest.raises(BadValue, match="label of one row"):
        attacks.participation(len, frame, 7)
    with pytest.raises(BadValue, match="negative"):
        attacks.best_guess(-1)


def test_answers_that_are_true_or_false_are_no_counts() -> None:
    """What ``asked @ secret`` is of two arrays of bools; it was taken for counts of 0 and 1, and everybody was wrong."""
    secret, asked = bits(), datasets.subsets(PEOPLE, 4 * PEOPLE)
    with pytest.raises(BadType, match=r"secret.astype\(int\)"):
        attacks.reconstruct(asked, asked @ secret)
    assert (attacks.reconstruct(asked, asked @ secret.astype(int)) == secret).all()
