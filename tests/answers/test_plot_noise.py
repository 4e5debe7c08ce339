"""Pictures show which numbers are only noise, to those who see no colours as well."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest

from dpframe import BadValue

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BOUNDS = {"delay": (-30, 180), "day": ("2024-01-01", "2024-12-31")}
KEYS = {"origin": ["EWR", "JFK"], "hour": range(8)}


@pytest.fixture(autouse=True)
def closed_afterwards() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    plt.close("all")


def opened(**words: Any) -> Any:
    rng = np.random.default_rng(7)
    n = 8000
    frame = pd.DataFrame(
        {
            "origin": rng.choice(["EWR", "JFK"], n),
            "hour": rng.integers(2, 8, n),  # nobody flies at 0 and 1
            "delay": rng.normal(60, 10, n).round(),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 200, n), "D"),
        }
    )
    return frame.dp.open(epsilon=1000, bounds=BOUNDS, keys=KEYS, **words)


def hollow(ax: Any) -> list[list[bool]]:
    """Which bars of each column are hollow: both hatched and without a colour."""
    columns = [list(each.patches) for each in ax.containers if hasattr(each, "patches")]
    for bar in (bar for each in columns for bar in each):
        assert bool(bar.get_hatch()) == (bar.get_facecolor()[3] == 0)
    return [[bool(bar.get_hatch()) for bar in each] for each in columns]


def legend(ax: Any) -> list[str]:
    return (
        [] if ax.get_legend() is None else [text.get_text() for text in ax.get_legend().get_texts()]
    )


def flagged(answer: Any) -> list[Any]:
    return (~answer.dp.reliable).T.to_numpy().tolist()


@pytest.mark.parametrize("kind", ["bar", "barh"])
def test_bars_of_noise_are_hollow_and_the_legend_says_so(kind: str) -> None:
    answer = opened().groupby("hour")["delay"].mean(epsilon=5)
    ax = answer.dp.plot(kind)
    assert hollow(ax) == [flagged(answer)]
    assert flagged(answer)[2:] == [False] * 6
    assert True in flagged(answer)
    assert legend(ax) == ["only noise"]
    assert ax.get_legend().legend_handles[0].get_hatch()


def test_a_picture_of_good_numbers_is_as_it_was() -> None:
    answer = opened().groupby("origin")["delay"].mean(epsilon=5)
    ax = answer.dp.plot()
    assert hollow(ax) == [[False, False]]
    assert legend(ax) == []


def test_rows_that_were_sorted_keep_their_bars() -> None:
    answer = opened().groupby("hour")["delay"].mean(epsilon=5)
    for changed in (
        answer.sort_values(),
        answer.iloc[::-1],
        answer[answer.dp.reliable],
        answer.dp.round(0),
    ):
        assert hollow(changed.dp.plot()) == [flagged(changed)]


def test_two_keys_have_hollow_bars_in_the_table_of_colours() -> None:
    answer = opened().groupby(["hour", "origin"])["delay"].mean(epsilon=5)
    ax = answer.dp.plot()
    wide = (~answer.dp.reliable).unstack("origin")
    assert hollow(ax) == wide.T.to_numpy().tolist()
    assert legend(ax) == ["EWR", "JFK", "only noise"]
    assert ax.get_legend().get_title().get_text() == "origin"
    colours = [handle.get_facecolor()[3] for handle in ax.get_legend().legend_handles]
    assert colours == [
        1,
        1,
        0,
    ]  # a column is known by its colour, also where its first bar is hollow


def test_keys_that_are_columns_are_no_numbers() -> None:
    answer = (
        opened()
        .groupby("hour", as_index=False)
        .agg(n=("delay", "size"), m=("delay", "mean"), epsilon=5)
    )
    panels = answer.dp.plot()
    flags = (~answer.dp.reliable).iloc[:, 1:].T.to_numpy().tolist()
    assert [hollow(ax)[0] for ax in panels] == flags
    assert [legend(ax) for ax in panels].count(["only noise"]) == 1  # once a figure
    one = answer.dp.plot(y="m")
    assert hollow(one) == [flags[1]]


def test_bins_are_hollow() -> None:
    p = opened()
    answer = p.histogram("delay", bins=np.linspace(-30, 180, 8), epsilon=1)
    for ax in (answer.dp.plot(), p.hist("delay", bins=np.linspace(-30, 180, 8), epsilon=1)):
        assert hollow(ax) == [flagged(answer)]
        assert legend(ax) == ["only noise"]
        assert not hollow(ax)[0][3]
    assert legend(answer.dp.plot(legend=False)) == []


@pytest.mark.parametrize("several", [False, True])
def test_points_of_lines_are_rings(several: bool) -> None:
    days = opened().resample("ME", on="day")
    answer = (
        days["delay"].mean(epsilon=5)
        if not several
        else days["delay"].agg(["mean", "max"], epsilon=9)
    )
    answer = answer if not several else answer[["mean"]]
    ax = answer.dp.plot()
    (rings,) = [
        each
        for each in ax.collections
        if len(each.get_offsets()) > 1 and each.get_facecolor()[0][:3].sum() == 3
    ]
    noise = np.ravel((~answer.dp.reliable).to_numpy())
    line = ax.get_lines()[0]
    assert rings.get_offsets()[:, 1].tolist() == np.ravel(answer.to_numpy())[noise].tolist()
    assert (
        rings.get_offsets()[:, 0].tolist() == np.asarray(line.get_xdata(orig=False))[noise].tolist()
    )
    assert legend(ax)[-1] == "only noise"


def test_what_is_not_shown_has_no_mark() -> None:
    answer = opened(show="nan").groupby("hour")["delay"].mean(epsilon=5)
    assert answer.isna().any()
    ax = answer.dp.plot()
    assert legend(ax) == []


def test_axes_that_were_drawn_on_keep_what_was_there() -> None:
    answer = opened().groupby("hour")["delay"].mean(epsilon=5)
    ax = answer.dp.plot()
    before = hollow(ax)[0]
    good = answer[answer.dp.reliable]
    good.dp.plot(ax=ax)
    assert hollow(ax) == [before, [False] * len(good)]
    answer.dp.plot(ax=ax)
    assert legend(ax) == ["only noise"]


def test_two_scales_mark_nothing_rather_than_another_column() -> None:
    table = opened().groupby("hour")["delay"].agg(["mean", "std"], epsilon=5)
    ax = table.dp.plot(subplots=False, secondary_y=["mean"])
    assert hollow(ax) == [[False] * 8]
    assert "only noise" not in legend(ax)
    assert "only noise" in legend(table.dp.plot(subplots=False))


def test_no_rows_are_no_picture() -> None:
    answer = opened().groupby("hour")["delay"].mean(epsilon=5)
    with pytest.raises(BadValue, match="no rows to draw"):
        answer.iloc[:0].dp.plot()


def test_the_owners_part_decides() -> None:
    answer = opened(reliable=1e-6).groupby("origin")["delay"].mean(epsilon=0.5)
    assert hollow(answer.dp.plot()) == [[True, True]]
