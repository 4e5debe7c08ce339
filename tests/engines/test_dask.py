"""Frames of dask: the scheduler that there is does the work, whatever it is, and each row is counted once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, DataError
from dpframe.engines.tables.dask import DaskSource

dask = pytest.importorskip("dask", reason="frames of dask need dask")
dd = pytest.importorskip("dask.dataframe", reason="frames of dask need dask")
pytestmark = pytest.mark.filterwarnings(
    "ignore::dpframe.PrivacyWarning"
)  # of questions that are this large
ROWS, PEOPLE = 3000, 200


def rows() -> pd.DataFrame:
    numbers = np.arange(ROWS)
    return pd.DataFrame({"id": numbers % PEOPLE, "x": numbers % 7, "g": numbers % 3})


def opened(frame: Any, people: bool, **words: Any) -> Any:
    unit = {"unit": "id", "max_rows": 15, "max_groups": 3} if people else {}
    known = {"bounds": {"x": (0, 6)}, "keys": {"g": [0, 1, 2]}}
    return dpframe.open(frame, 1000, because="made up", **unit, **known, **words)


def answers(p: Any) -> list[Any]:
    sizes = p.groupby("g").size(epsilon=300).tolist()
    found = p.unique("x", epsilon=300).tolist() if p.budget.delta else list(range(7))
    return [sizes, int(p.nunique("id", epsilon=300)), sorted(found)]


EXPECTED = [[1000, 1000, 1000], PEOPLE, list(range(7))]
COMPUTED: list[int] = []  # rows of partitions


@pytest.mark.parametrize("people", [False, True], ids=["rows", "people"])
def test_partitions_are_counted_by_the_scheduler_and_not_read_here(people, monkeypatch):
    ran: list[int] = []

    def scheduler(graph: Any, keys: Any, **words: Any) -> Any:
        ran.append(1)
        return dask.get(graph, keys, **words)

    monkeypatch.delattr(DaskSource, "_scan")
    monkeypatch.setattr(DaskSource, "__abstractmethods__", frozenset())
    with dask.config.set(scheduler=scheduler):
        p = opened(dd.from_pandas(rows(), npartitions=4), people, delta=1e-6)
        before = len(ran)
        assert answers(p) == EXPECTED
    assert len(ran) > before


@pytest.mark.parametrize("size", [1, 5, 50])
def test_people_are_counted_in_as_many_passes_as_the_memory_makes_needed(size, monkeypatch):
    monkeypatch.setattr(DaskSource, "passes", lambda self, columns: size)
    frame = dd.from_pandas(rows(), npartitions=3)
    frame = frame.map_partitions(lambda part: COMPUTED.append(len(part)) or part, meta=frame._meta)
    with dask.config.set(scheduler="sync"):
        p = opened(frame, True)
        p.count(epsilon=1)
        COMPUTED.clear()
        assert p.groupby("g").size(epsilon=900).tolist() == EXPECTED[0]
    assert len(COMPUTED) == 3 * size


def test_a_frame_that_changes_between_two_scans_answers_nothing():
    state = {"more": 0}

    def grown(part: pd.DataFrame) -> pd.DataFrame:
        return part.iloc[: len(part) - state["more"]]

    frame = dd.from_pandas(rows(), npartitions=3)
    for people in (False, True):
        state["more"] = 0
        with dask.config.set(scheduler="sync"):
            p = opened(frame.map_partitions(grown, meta=frame._meta), people)
            p.count(epsilon=1)
            state["more"] = 1
            with pytest.raises(DataError) as caught:
                p.groupby("g").size(epsilon=100)
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert p.budget.spent == 101


def test_a_partition_of_other_dtypes_answers_nothing():
    def other(part: pd.DataFrame) -> pd.DataFrame:
        return part.astype({"x": "float64"})

    frame = dd.from_pandas(rows(), npartitions=3)
    p = opened(frame.map_partitions(other, meta=frame._meta), False)
    with pytest.raises(DataError):
        p.mean("x", epsilon=1)
    assert p.budget.spent == 1


def test_workers_that_cannot_run_dpframe_are_noticed_before_the_debit():
    def broken(graph: Any, keys: Any, **words: Any) -> Any:
        raise ModuleNotFoundError("No module named 'dpframe'")

    frame = dd.from_pandas(rows(), npartitions=3)
    with dask.config.set(scheduler=broken), pytest.raises(BadType, match="cannot run dpframe"):
        opened(frame, False)


# A cluster ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip(
        "distributed", reason="a cluster of dask is run by distributed"
    )
    words = {"dashboard_address": None, "silence_logs": 60, "host": "127.0.0.1"}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **words) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


def once(fuse: str, part: pd.DataFrame) -> pd.DataFrame:
    """Hands a partition on. While there is a file, the process that finds it removes it and kills itself."""
    try:
        os.unlink(fuse)
    except FileNotFoundError:
        return part
    Path(f"{fuse}.died").write_text("once")
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it lives")


@pytest.mark.filterwarnings("ignore")  # of a cluster's own
@pytest.mark.parametrize("people", [False, True], ids=["rows", "people"])
def test_a_cluster_counts_and_what_a_lost_worker_had_is_counted_once(cluster, people, tmp_path):
    fuse = tmp_path / "fuse"
    frame = dd.from_pandas(rows(), npartitions=6)
    work = import_module("functools").partial(once, str(fuse))
    with cluster.as_current(), dask.config.set(scheduler="distributed"):
        p = opened(frame.map_partitions(work, meta=frame._meta), people, delta=1e-6)
        p.count(epsilon=50)
        fuse.touch()
        assert answers(p) == EXPECTED
    assert Path(f"{fuse}.died").exists()
