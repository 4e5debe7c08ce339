"""The demo is the first thing anybody runs: it answers, shows prices, and keeps its books."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from dpframe.__main__ import main
from dpframe.datasets import BOUNDS, KEYS, visits


def test_demo_asks_every_kind_of_question_and_its_prices_add_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["demo"])
    text = capsys.readouterr().out
    for question in ("count()", "mean(", "histogram(", "argmax(", "groupby("):
        assert question in text
    prices = [float(price) for price in re.findall(r"price epsilon ([\d.]+)", text)]
    spent, total, left = re.search(
        r"([\d.]+) of epsilon ([\d.]+) spent, ([\d.]+) left", text
    ).groups()
    assert len(prices) == 5
    assert sum(prices) == pytest.approx(float(spent))
    assert float(spent) + float(left) == pytest.approx(float(total))


def test_demo_refuses_an_unknown_command() -> None:
    with pytest.raises(SystemExit):
        main(["nothing"])


def test_synthetic_tables_are_the_same_for_a_seed_and_differ_between_seeds() -> None:
    pd.testing.assert_frame_equal(visits(100, seed=3), visits(100, seed=3))
    assert not visits(100, seed=3).equals(visits(100, seed=4))


def test_public_declarations_of_the_visits_are_true_of_almost_all() -> None:
    frame = visits()
    for column, (lower, upper) in BOUNDS.items():
        assert frame[column].dropna().between(lower, upper).mean() > 0.99
    for column, keys in KEYS.items():
        assert set(frame[column]) == set(keys)
