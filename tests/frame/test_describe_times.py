"""`describe` says which declared columns its table leaves out."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

from dpframe import PrivacyWarning

BOUNDS = {"age": (0, 10), "date": ("2024-01-01", "2024-12-31"), "stay": ("0h", "500h")}


@pytest.fixture
def df():
    return pd.DataFrame(
        {
            "age": range(10),
            "date": pd.date_range("2024-01-01", periods=10),
            "stay": pd.to_timedelta(range(10), unit="h"),
        }
    )


def test_declared_times_and_durations_are_named(df):
    p = df.dp.open(1000, bounds=BOUNDS, because="a test")
    with pytest.warns(
        PrivacyWarning, match=r"p\['date'\]\.describe\(\), p\['stay'\]\.describe\(\)"
    ):
        answer = p.describe(epsilon=100)
    assert list(answer.columns) == ["age"]
    with pytest.warns(PrivacyWarning, match=r"apart: p\['date'\]\.describe\(\)\."):
        p[["age", "date"]].describe(epsilon=100)


def test_what_is_not_declared_or_not_there_is_not_spoken_of(df):
    p = df.dp.open(1000, bounds={"age": (0, 10)}, because="a test")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "numbers of this answer")
        p.describe(epsilon=100)
    whole = df.assign(age=1.0).dp.open(1000, bounds=BOUNDS, because="a test")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "numbers of this answer")
        whole[["age"]].describe(epsilon=100)
        whole["date"].describe(epsilon=100)
