"""Answers to one question, many times over: what the statements of the lecture notes about laws are held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd


def drawn(
    ask: Callable[[Any], Any], frame: pd.DataFrame, n: int, price: float, **terms: Any
) -> list[Any]:
    """So many answers to a question, from as many sessions as their price needs."""
    each = int(1000 / price)
    answers: list[Any] = []
    while len(answers) < n:
        p = pd.DataFrame(frame.to_dict("list")).dp.open(1024, **terms)
        answers += [ask(p) for _ in range(min(each, n - len(answers)))]
    return answers
