"""Intervals of the population and tests of hypotheses where people have several rows, nulls, limits that bind, and found groups.

The false alarm of each check is below 1e-8. The twins that must fail are a number of values that is rounded apart from their
sum, the interval of the noise alone, and numbers of groups that were found.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpframe
from dpframe._ledger.store import unpack
from dpframe._plans import sampling
from dpframe._questions.question import enclose_output
from dpframe.engines import compiled as compiled_module
from dpframe.engines import limits as limits_module
from dpframe.engines import person_sums as person_sums_module

LEVEL, RISK = 0.95, 1e-8
RUNS, PEOPLE = 200, 600
NULLS = [0.0, 0.3, 0.8]


def generator(*words: Any) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(words).encode()))


def drawn_rows(rng: np.random.Generator, groups: int, people: int, nulls: float) -> pd.DataFrame:
    """Groups of people with 1 to 6 rows each: a size of their own, about which their rows lie; nulls are independent of it."""
    who = np.repeat(np.arange(groups * people), rng.integers(1, 7, groups * people))
    x = (rng.random(groups * people)[who] + rng.random(len(who))) / 2  # of mean 1/2
    x[rng.random(len(who)) < nulls] = np.nan
    return pd.DataFrame({"id": who, "g": who // people, "x": x, "y": rng.random(len(who))})


def opened(df: pd.DataFrame, groups: int, **words: Any) -> Any:
    given: dict[str, Any] = {"keys": {"g": range(groups)}, "max_rows": 6, "max_groups": 1, **words}
    return df.dp.open(
        1000, unit="id", bounds={"x": (0, 1), "y": (0, 1)}, because="drawn anew", **given
    )


def hits(ends: pd.DataFrame, truth: Any) -> int:
    return int(((ends["lower"] <= truth + 1e-9) & (truth - 1e-9 <= ends["upper"])).sum())


def is_covered(found: int, runs: int = RUNS) -> bool:
    """Whether so many hits of all runs are no sign of a coverage below the level."""
    return bool(stats.binom.cdf(found, runs, LEVEL) >= RISK)


def is_level(rejected: int, runs: int) -> bool:
    """Whether so many rejections are no sign of a level above 0.05."""
    return bool(stats.binom.sf(rejected - 1, runs, 1 - LEVEL) >= RISK)


class CountedApart(limits_module.Bound):
    """The twin: the number of a person's values is scaled by all of their rows, and rounded to a whole number."""

    def powers(self, values: Iterator[Any], degree: int, width: int) -> Any:
        blocks = list(values)
        there = np.concatenate([block == block for block in blocks])
        counts = np.bincount(self._pairs.of_row[there], minlength=self._pairs.size)
        found = super().powers(iter(blocks), degree, width)
        of_values = self._add_over_people(lambda at, rows: [self._scale_totals(counts[at], rows)])
        sums = [
            self._add_over_people(lambda at, rows, t=t: [self._scale_totals(t[at], rows)])[0]
            for t in self._sums_of(blocks)
        ]
        found[0] = of_values[0]
        for k, total in enumerate(sums[: len(found) - 1], 1):
            found[k] = total
        return found

    def _sums_of(self, blocks: list[Any]) -> list[Any]:
        a = np.nan_to_num(np.concatenate(blocks))
        sums = [np.bincount(self._pairs.of_row, a**k, minlength=self._pairs.size) for k in (1, 2)]
        return [one.astype(np.int64) for one in sums]


@pytest.fixture
def counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_module, "available", lambda rows: False)
    monkeypatch.setattr(person_sums_module, "Bound", CountedApart)


# Means and counts of people -----------------------------------------------------------------------------------------------


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("epsilon", [0.5, 20.0])
@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("together", [["mean"], ["mean", "std"]], ids=["alone", "with squares"])
def test_means_of_people_with_nulls_cover_that_of_the_population(together, nulls, epsilon):
    p = opened(drawn_rows(generator(nulls), RUNS, PEOPLE, nulls), RUNS)
    answer = p.groupby("g")["x"].agg(together, max_rows=1, epsilon=epsilon)["mean"]
    assert is_covered(hits(answer.dp.interval(LEVEL, of="population"), 0.5))


@pytest.mark.usefixtures("counted_apart")
def test_counts_rounded_apart_from_sums_do_not_cover_the_mean():
    p = opened(drawn_rows(generator(0.3), RUNS, PEOPLE, 0.3), RUNS)
    answer = p.groupby("g")["x"].agg(["mean"], max_rows=1, epsilon=20.0)["mean"]
    assert not is_covered(hits(answer.dp.interval(LEVEL, of="population"), 0.5))


@pytest.mark.parametrize("nulls", NULLS)
def test_numbers_of_people_who_have_a_value_cover_the_one_to_expect(nulls):
    """A person counts if any of their rows has a value: of 1 to 6 rows not all are null."""
    p = opened(drawn_rows(generator("counts", nulls), RUNS, PEOPLE, nulls), RUNS)
    expected = PEOPLE * np.mean([1 - nulls**rows for rows in range(1, 7)])
    answer = p.groupby("g")["x"].count(max_rows=1, epsilon=20.0)
    assert is_covered(hits(answer.dp.interval(LEVEL, of="population"), expected))


def test_quantiles_cover_that_of_the_middle_values_of_people():
    """Of each person one value counts, in the middle of theirs: 9 even ones have a median by the beta law."""
    rng = generator("medians")
    df = pd.DataFrame({"id": np.repeat(np.arange(RUNS * PEOPLE), 9)})
    df["g"], df["x"], df["y"] = df["id"] // PEOPLE, rng.random(len(df)), 0.0
    p, steps = opened(df, RUNS), 64
    answer = p.groupby("g")["x"].quantile(
        [0.9], method="tree", resolution=1 / steps, max_rows=1, epsilon=20.0
    )
    ends = answer.dp.interval(LEVEL, of="population")
    assert is_covered(hits(ends, round(stats.beta(5, 5).ppf(0.9) * steps) / steps))
    assert not is_covered(hits(ends, round(0.9 * steps) / steps))  # the quantile of their rows


# Tests of hypotheses ------------------------------------------------------------------------------------------------------


def means_rejected(runs: int) -> int:
    """Of pairs of groups that are drawn alike but for their nulls, how many have different means by the test."""
    rejected = 0
    for run in range(runs):
        rng = generator("test", run)
        df = pd.concat([drawn_rows(rng, 1, 1500, nulls) for nulls in (0.0, 0.5)], keys=[0, 1])
        df["g"] = df.index.get_level_values(0)
        df["id"] += 10_000 * df["g"]
        p = opened(df.reset_index(drop=True), 2)
        rejected += p.test.means("x", by="g", epsilon=5).pvalue < 1 - LEVEL
    return rejected


def test_groups_that_differ_in_nulls_alone_keep_the_level():
    assert is_level(means_rejected(20), 20)


@pytest.mark.usefixtures("counted_apart")
def test_groups_that_differ_in_nulls_alone_have_counts_of_their_own():
    assert not is_level(means_rejected(7), 7)


@pytest.mark.parametrize("nulls", NULLS)
def test_independent_columns_with_nulls_have_no_correlation(nulls):
    runs = 20
    rejected = near = 0
    for run in range(runs):
        df = drawn_rows(generator("correlation", run), 1, 1500, nulls)
        p = opened(df, 1)
        rejected += p.test.correlation("x", "y", epsilon=5).pvalue < 1 - LEVEL
        near += abs(p["x"].corr(p["y"], max_rows=1, epsilon=20)) < 0.2
    assert is_level(rejected, runs)
    assert near == runs  # beyond five standard errors


# Groups that were found ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found() -> tuple[Any, list[Any]]:
    """Thousands of groups of 15 people to expect, of whom half say yes, and those of them that a threshold shows."""
    rng = generator("found")
    sizes = rng.poisson(15, 8000)
    g = np.repeat([f"k{i:04d}" for i in range(len(sizes))], sizes)
    df = pd.DataFrame({"g": g, "x": rng.random(len(g)) < 0.5})
    p = df.dp.open(1000, 1e-5, because="drawn anew")
    shown = p.groupby("g").size(epsilon=0.5, delta=1e-6, mechanism="laplace")
    return p, list(shown.index)


def test_means_of_groups_that_were_found_cover_those_of_the_population(found):
    """Given who is in a group, its people are draws, whichever groups are looked at."""
    p, keys = found
    assert 50 < len(keys) < 4000
    ends = p.groupby("g", keys=keys)["x"].mean(epsilon=4).dp.interval(LEVEL, of="population")
    assert is_covered(hits(ends, 0.5), len(keys))


def test_numbers_of_groups_that_were_found_do_not_cover_the_one_to_expect(found):
    """The twin: as if nobody had found them."""
    p, keys = found
    answer = p.groupby("g", keys=keys).size(epsilon=4)
    with pytest.raises(dpframe.NotOffered, match="found in the data"):
        answer.dp.interval(LEVEL, of="population")
    raw = unpack(json.loads(answer.attrs["dpframe_receipt"])["raw"])
    plan = replace(answer.dp.plan, selected=None)
    low, high = enclose_output(plan, raw, 0, LEVEL, sampling.About(population=True))
    assert not is_covered(hits(pd.DataFrame({"lower": low, "upper": high}), 15), len(keys))
