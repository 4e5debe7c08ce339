"""Regressions of a hostile review: values that reached a dtype, an error, a second answer or a second budget."""

from __future__ import annotations

import gc
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadValue, SessionError
from dpframe._plans.aggregates import fieller
from tests.internals import deaf_to_noise

BIG = 2**53


def opened(frame: Any, **terms: Any) -> Any:
    return frame.dp.open(**{"epsilon": 1000, **terms})


@pytest.mark.parametrize("subtype", ["uint64", "int64"])
@pytest.mark.parametrize("last", [BIG, 0])
def test_a_sparse_column_compares_exactly_whether_or_not_it_has_a_gap(
    subtype: str, last: int
) -> None:
    column = pd.arrays.SparseArray(np.array([BIG] * 10 + [last], dtype=subtype))
    p = opened(pd.DataFrame({"x": column}))
    assert p[p["x"] >= BIG + 1].count(epsilon=400) == 0
    assert list(p.value_counts("x", keys=[BIG + 1, BIG], sort=False, epsilon=400)) == [
        0,
        10 + (last == BIG),
    ]


def test_gaps_of_a_sparse_column_are_nulls_when_it_is_filled_with_null() -> None:
    p = opened(pd.DataFrame({"x": pd.arrays.SparseArray([np.nan, 1.0, np.nan])}))
    assert p.count("x", epsilon=400) == 1
    assert p.sum("x", bounds=(0, 1), epsilon=400) == pytest.approx(1, abs=0.1)


def test_a_question_within_a_question_is_refused_and_costs_nothing() -> None:
    p = opened(pd.DataFrame({"x": range(50)}), epsilon=1)
    inner: list[Any] = []

    def ask(phase: str, info: object) -> None:
        gc.callbacks.remove(ask)
        try:
            inner.append(p.count("x", epsilon=0.9))
        except SessionError as refused:
            inner.append(refused)

    ledger, debit = p._session.accountant, p._session.accountant.debit

    def interrupted(*debited: Any) -> None:  # as a finaliser would between two lines
        gc.callbacks.append(ask)
        gc.collect()
        debit(*debited)

    ledger.debit = interrupted
    p.count(epsilon=0.9)
    assert [type(answer) for answer in inner] == [SessionError]
    assert p.budget.spent == 0.9
    assert len(p.ledger) == 1


@pytest.mark.parametrize("moment", ["9999-12-31", "2024-01-01"])
@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_dates_beyond_the_range_of_the_keys_are_in_no_group(moment: str, unit: str) -> None:
    frame = pd.DataFrame({"t": pd.to_datetime(["2024-01-01", moment]).as_unit(unit)})
    keys = pd.date_range("2024-01-01", periods=2, unit="ns")
    counts = opened(frame).value_counts("t", keys=list(keys), sort=False, epsilon=400)
    assert list(counts) == [1 + (moment == "2024-01-01"), 0]


def test_keys_beyond_the_range_of_the_column_match_nothing() -> None:
    frame = pd.DataFrame({"t": pd.to_datetime(["2024-01-01"]).as_unit("ns")})
    keys = [pd.Timestamp("5000-01-01"), pd.Timestamp("2024-01-01")]
    assert list(opened(frame).value_counts("t", keys=keys, sort=False, epsilon=400)) == [0, 1]


def test_a_closed_session_is_remembered_while_its_frame_lives() -> None:
    frame: Any = pd.DataFrame({"x": [1.0, 2.0]})
    p = frame.dp.open(1)
    p.count(epsilon=1)
    p.close()
    with pytest.raises(SessionError, match="had, a session"):
        pd.DataFrame(frame).dp.open(1)


@pytest.mark.parametrize("cell", ["a", "b"])
def test_a_text_that_would_not_fit_in_memory_is_null(cell: str) -> None:
    p = opened(pd.DataFrame({"s": [cell]}))
    longer = (
        p["s"]
        .str.replace("a", "a" * 10**4)
        .str.replace("a", "a" * 10**4)
        .str.replace("a", "a" * 10**4)
    )
    assert p.assign(s=longer).count("s", epsilon=400) == (cell == "b")


def test_a_bool_made_of_foreign_bytes_is_true_or_false() -> None:
    odd = np.frombuffer(bytes([0, 1, 2, 255]), dtype=np.uint8).view(bool)
    p = opened(pd.DataFrame({"b": odd}))
    assert list(p.value_counts("b", sort=False, epsilon=300)) == [1, 3]
    assert p[p["b"]].count(epsilon=300) == 3


def test_a_rounded_bool_is_a_number() -> None:
    p = opened(pd.DataFrame({"b": [True, False]}))
    with pytest.raises(dpframe.BadType):
        p[p["b"].round(-1)]


@pytest.mark.parametrize("values", [[5e-324, 1.0], [0.5, 1.0], [np.nan, -np.inf]])
def test_no_setting_of_numpy_makes_a_value_raise(values: list[float]) -> None:
    p = opened(pd.DataFrame({"x": values}))
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        deaf_to_noise()
        p.sum("x", bounds=(-1, 1), epsilon=100)
        p.histogram("x", bins=[0, 0.5, 1], epsilon=100)


def test_keys_beyond_a_double_are_refused_before_anything_is_charged() -> None:
    p = opened(pd.DataFrame({"x": [1.0]}))
    with pytest.raises(BadValue, match="beyond"):
        p.value_counts("x", keys=[10**400])
    assert p.budget.spent == 0


def test_a_price_that_adds_up_in_its_own_way_is_charged_all_the_same() -> None:
    class Free(Fraction):
        __add__ = __radd__ = lambda self, other: other

    p = opened(pd.DataFrame({"x": [1.0]}), epsilon=1)
    p.count(epsilon=Free(1))
    assert p.budget.spent == 1
    with pytest.raises(dpframe.BudgetExceeded):
        p.count(epsilon=Free(1), fresh=True)


def test_a_key_that_listens_to_comparisons_is_refused() -> None:
    class Ear:
        def __hash__(self) -> int:
            return hash("alice")

    class Whisper(str):
        pass

    p = opened(pd.DataFrame({"n": pd.Series(["alice", "bob"], dtype=object), "s": ["a", "b"]}))
    for column, key in (("n", Ear()), ("n", Whisper("alice")), ("s", Whisper("a"))):
        with pytest.raises(dpframe.BadType):
            p.value_counts(column, keys=[key])
    assert p.budget.spent == 0


def test_a_ratio_over_a_count_that_came_out_negative_could_be_anything() -> None:
    low, high = fieller(np.array([-100.0]), np.array([-500.0]), 1.0, 0.0, 1.0, 2.0)
    assert (low[0], high[0]) == (-np.inf, np.inf)


def test_intervals_between_neighbouring_doubles_are_not_inverted() -> None:
    p = opened(pd.DataFrame({"x": [1e16]}))
    for _ in range(50):
        low, high = p.mean("x", bounds=(1e16, 1e16 + 2), epsilon=1, fresh=True).interval()
        assert low <= high


def test_the_interval_of_an_enormous_sum_is_given_without_a_warning() -> None:
    p = opened(pd.DataFrame({"x": [1e308]}))
    low, high = p.sum("x", bounds=(0, 1.7e308), epsilon=3).interval()
    assert low < high
