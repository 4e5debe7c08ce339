"""Reports and their estimates on neighbouring frames lose what they cost; estimates have no bias, and intervals hold."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest

from dpframe import local
from dpframe._answers.reports import ReportEstimates, ReportKind, make_reports
from dpframe._expr import Column
from dpframe._questions.entries import take_rows_of_people
from dpframe.engines.pandas import PandasEngine
from dpframe.mechanisms.response import Response, points_for, round_to_points
from tests.statistical.bounds import loss_bound

DRAWS = 40_000


def drawn(response, place):
    return response.respond(np.full(DRAWS, place))[:, None].astype(float)


# What one report shows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [(1, 2), (0, 1)])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_a_report_loses_no_more_than_its_price(k, pair):
    response = Response(F(1), k)
    assert loss_bound(*(drawn(response, place) for place in pair)) <= 1


@pytest.mark.parametrize("k", [2, 3])
def test_a_report_that_tells_too_much_is_caught(k):
    response = Response(F(3, 2), k)  # a price of 1 that was taken for a half more
    assert loss_bound(drawn(response, 1), drawn(response, 2)) > 1


def test_a_lie_that_spares_the_truth_is_caught():
    """The probability of a uniform report among all, used for one among the others: the broken twin of k values."""
    k, response = 3, Response(F(1), 3)

    def broken(place):
        uniform = response.respond(np.zeros(DRAWS, dtype=int))
        lies = np.random.default_rng(place).random(DRAWS) < (k - 1) / (np.e**1.5 + k - 1)
        found = np.where(lies & (uniform != place - 1), uniform, place - 1)
        return found[:, None].astype(float)

    assert loss_bound(broken(1), broken(2)) > 1


def number(response, steps, width=1000):
    return response.respond(round_to_points(np.full(DRAWS, steps), width, response.k))[
        :, None
    ].astype(float)


@pytest.mark.parametrize("epsilon", [F(1), F(3)])
def test_a_number_loses_no_more_than_its_price(epsilon):
    response = Response(epsilon, points_for(epsilon))
    sides = [number(response, s) for s in (0, 130, 1000, -1)]
    for one, two in ((0, 2), (0, 1), (1, 3), (2, 3)):
        assert loss_bound(sides[one], sides[two]) <= float(epsilon)


def test_a_number_that_tells_too_much_is_caught():
    response = Response(F(3), 2)
    assert loss_bound(number(response, 0), number(response, 1000)) > 2


# What an estimate of two rows shows ---------------------------------------------------------------------------


def estimates(smokers, epsilon, rows=3000):
    """The share of the first value, of frames of two people; of one the value differs."""
    response = Response(epsilon, 2)
    places = np.tile(np.array(smokers), rows)
    codes = response.respond(places).reshape(rows, 2)
    counts = np.stack([(codes == 0).sum(axis=1), (codes == 1).sum(axis=1)], axis=1)
    kind = ReportKind(response)
    return np.array([ReportEstimates(kind, c[None, :]).values()["frequency"][0] for c in counts])[
        :, None
    ]


def test_an_estimate_loses_no_more_than_its_reports_cost():
    assert loss_bound(estimates((1, 1), F(1)), estimates((1, 2), F(1))) <= 1


def test_an_estimate_from_dearer_reports_is_caught():
    assert loss_bound(estimates((1, 1), F(3), 20_000), estimates((1, 2), F(3), 20_000)) > 1


def of_person(own, limit):
    """How many reports say the first value, where all rows of one person have a value of their own; 2 is the price."""
    frame = pd.DataFrame({"id": [7] * 4, "x": [own] * 4})
    engine, person = PandasEngine(frame), Column.of(0, "id", frame["id"].dtype)
    entries = np.where(frame["x"] == "a", 1, 2)
    response, found = Response(F(1), 2), np.empty((4000, 1))
    for i in range(len(found)):
        rows = take_rows_of_people(engine, (person,), limit, entries, 0)
        found[i] = (response.respond(rows) == 0).sum()
    return found


def test_a_person_with_many_rows_loses_the_price_of_those_that_count():
    assert loss_bound(of_person("a", 2), of_person("b", 2)) <= 2


def test_a_person_whose_rows_all_count_is_caught():
    assert loss_bound(of_person("a", 4), of_person("b", 4)) > 2


# Bias and coverage --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def times(full):
    """Repetitions: a smaller share unless pytest was called with ``-m slow``."""
    return 20_000 if full else 1_500


def tables(response, places, times):
    """Counts of the reports of the same rows, drawn several times: one group each."""
    codes = response.respond(np.tile(places, times)).reshape(times, len(places)).astype(np.int64)
    cells = np.arange(times)[:, None] * response.k + codes
    return np.bincount(cells.ravel(), minlength=times * response.k).reshape(times, response.k)


ROWS = {
    "half": (F(1), [1] * 100 + [2] * 100),
    "all the same": (F(1), [1] * 200),
    "few": (F(2), [1] * 3 + [2] * 12),
    "three values": (F(3, 2), [1] * 120 + [2] * 60 + [3] * 20),
    "values nobody listed": (F(1), [1] * 80 + [2] * 40 + [0] * 80),
    "dear": (F(5), [1] * 150 + [2] * 50),
}


@pytest.mark.scaled
@pytest.mark.parametrize("name", ROWS)
def test_frequencies_have_no_bias_and_intervals_hold(name, times):
    epsilon, places = ROWS[name]
    response, n = Response(epsilon, max([*places, 2])), len(places)
    places = np.array(places)
    truth = (
        np.array([np.mean(places == i + 1) for i in range(response.k)])
        + np.mean(places == 0) / response.k
    )
    computed = ReportEstimates(ReportKind(response), tables(response, places, times))
    found = computed.values()["frequency"].reshape(times, response.k)
    deviation = found.std(axis=0) / np.sqrt(times)
    assert (abs(found.mean(axis=0) - truth) < 5 * deviation + 1e-12).all()
    low, high = (side["count"].reshape(times, response.k) for side in computed.ends(0.9))
    covered = ((low <= truth * n + 1e-9) & (truth * n - 1e-9 <= high)).mean(axis=0)
    assert (covered > 0.9 - 4 * np.sqrt(0.09 / times)).all()


@pytest.mark.scaled
@pytest.mark.parametrize("epsilon", [F(1), F(3)])
@pytest.mark.parametrize("n", [20, 400])
def test_means_have_no_bias_and_intervals_hold(epsilon, n, times):
    steps = np.random.default_rng(n).integers(0, 700, n)
    response = Response(epsilon, points_for(epsilon))
    kind = ReportKind(response, bounds=(10.0, 20.0))
    codes = response.respond(round_to_points(np.tile(steps, times), 1000, response.k)).reshape(
        times, n
    )
    cells = np.arange(times)[:, None] * response.k + codes
    counts = np.bincount(cells.ravel(), minlength=times * response.k).reshape(times, response.k)
    computed, truth = ReportEstimates(kind, counts), 10 + steps.mean() / 100
    found = computed.values()["mean"]
    assert abs(found.mean() - truth) < 5 * found.std() / np.sqrt(times)
    low, high = (side["mean"] for side in computed.ends(0.9))
    assert ((low <= truth) & (truth <= high)).mean() > 0.9 - 4 * np.sqrt(0.09 / times)


@pytest.mark.scaled
def test_pairs_of_reports_have_no_bias_and_intervals_hold(times):
    one, two = Response(F(2), 2), Response(F(3), 3)
    first, second = np.array([1] * 150 + [2] * 150), np.array(([1] * 50 + [2] * 60 + [3] * 40) * 2)
    truth = np.array(
        [[np.mean((first == a) & (second == b)) for b in (1, 2, 3)] for a in (1, 2)]
    ).ravel()
    found, covered = [], []
    for _ in range(times // 3):
        cells = np.bincount(one.respond(first) * 3 + two.respond(second), minlength=6).reshape(2, 3)
        computed = ReportEstimates(ReportKind(two), cells, one)
        found.append(computed.values()["frequency"])
        low, high = (side["frequency"] for side in computed.ends(0.9))
        covered.append((low <= truth) & (truth <= high))
    seen = np.array(found)
    assert (abs(seen.mean(axis=0) - truth) < 5 * seen.std(axis=0) / np.sqrt(len(seen))).all()
    assert (np.mean(covered, axis=0) > 0.9 - 4 * np.sqrt(0.09 / len(seen)) - 0.01).all()


def test_reports_as_they_are_would_be_biased():
    response = Response(F(1), 2)
    codes = response.respond(np.ones(100_000, dtype=int))
    reports = make_reports(codes, ReportKind(response), ["a", "b"], None, None, "x")
    assert abs((reports == "a").mean() - 1) > 0.2
    assert abs(local.estimate(reports).loc["a", "frequency"] - 1) < 0.05
