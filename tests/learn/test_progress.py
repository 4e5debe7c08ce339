"""The progress of long work: tqdm's, where it is installed and somebody watches."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe import audit, learn
from dpframe._errors import progress


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What tqdm is asked to show."""
    asked: list[dict[str, Any]] = []

    def tqdm(steps: Any, **words: Any) -> Any:
        asked.append({"total": len(steps), **words})
        return steps

    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=tqdm))
    return asked


def test_without_tqdm_it_is_the_loop_and_no_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert list(progress(3, "steps")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


def test_tqdm_is_given_the_public_total_and_waits_a_second(bars: list[dict[str, Any]]) -> None:
    assert list(progress(3, "steps")) == [0, 1, 2]
    assert bars == [{"total": 3, "desc": "steps", "delay": 1.0, "disable": None}]


def test_fits_and_audits_show_their_steps(bars: list[dict[str, Any]]) -> None:
    frame = pd.DataFrame({"x": np.linspace(0, 1, 40), "y": [0, 1] * 20})
    p = frame.dp.open(3, delta=1e-6, bounds={"x": (0, 1)}, keys={"y": [0, 1]})
    p.fit(learn.LogisticRegression(method="gradient", max_iter=7), X=["x"], y="y", epsilon=1)
    assert [(bar["desc"], bar["total"]) for bar in bars] == [("gradient steps", 7)]
    del bars[:]
    made_up = pd.DataFrame({"x": [0.0, 1.0]})
    audit.epsilon_lower_bound(lambda frame: len(frame), made_up, made_up.iloc[1:], n=1000)
    assert {bar["desc"] for bar in bars} == {"draws"}


def test_a_bar_that_cannot_be_drawn_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def tqdm(steps: Any, **words: Any) -> Any:
        raise RuntimeError("no screen")

    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=tqdm))
    assert list(progress(3, "steps")) == [0, 1, 2]


def test_tqdm_itself_is_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    assert list(progress(3, "steps")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")
