"""Workers of Spark that die: what they had counted is counted again, and once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dpframe
from tests.engines import spark

pytestmark = [
    pytest.mark.slow,  # Spark takes seconds to start
    pytest.mark.skipif(spark.missing() is not None, reason=str(spark.missing())),
    pytest.mark.filterwarnings("ignore"),  # of Spark's own
]
ROWS, PEOPLE = 3000, 200


def dying(fuse: Path, once: bool) -> Callable[[Any], Iterator[Any]]:
    """Hands rows on. While there is a file, a worker kills itself after some rows: the first one alone, or all."""
    place = str(fuse)

    def work(batches: Any) -> Iterator[Any]:
        for i, batch in enumerate(batches):
            if i and os.path.exists(place):
                if once:
                    os.unlink(place)
                with open(f"{place}.died", "a") as told:
                    told.write(".")
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    return work


@pytest.fixture
def fuse(tmp_path: Path) -> Iterator[Path]:
    """What lets workers die, as long as it is there; their batches are small, so that they die in the midst of their rows."""
    size = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.session().conf.get(size)
    spark.session().conf.set(size, "100")
    yield tmp_path / "fuse"
    spark.session().conf.set(size, before)


def opened(fuse: Path, once: bool, people: bool, **delta: float) -> Any:
    rows = (
        spark.session().range(ROWS).selectExpr(f"id % {PEOPLE} AS id", "id % 7 AS x", "id % 3 AS g")
    )
    words = {"unit": "id", "max_rows": 15, "max_groups": 3} if people else {}
    frame = rows.mapInArrow(dying(fuse, once), rows.schema)
    return dpframe.open(
        frame,
        1000,
        because="made up",
        bounds={"x": (0, 6)},
        keys={"g": [0, 1, 2]},
        **words,
        **delta,
    )


def test_a_session_that_was_stopped_is_seen_before_the_debit(monkeypatch, tmp_path):
    p = opened(tmp_path / "fuse", False, False)
    p.count(epsilon=1)
    spent = p.budget.spent
    monkeypatch.setattr(spark.session().sparkContext, "_jsc", None)  # as stop() leaves it
    with pytest.raises(dpframe.SessionError, match="cannot be reached"):
        p.sum("x", epsilon=1)
    assert p.budget.spent == spent


def test_code_in_a_plan_is_its_authors_word_and_a_plan_without_any_is_not():
    from pyspark.sql import functions

    rows = spark.session().range(20).selectExpr("id", "id % 2 AS x")
    twice = functions.udf(lambda x: 2 * x, "long")
    with_code = [
        *(rows.withColumn("y", twice("x")), rows.mapInArrow(lambda batches: batches, rows.schema)),
        *(
            rows.groupBy("x").applyInPandas(lambda d: d, rows.schema),
            spark.session().createDataFrame(rows.rdd),
        ),
    ]
    plain = [rows.where("x > 0"), rows.groupBy("x").count(), rows.distinct()]
    for frame, expected in [*((f, True) for f in with_code), *((f, False) for f in plain)]:
        p = dpframe.open(frame, 1, because="made up")
        assert (
            p.declarations.astype(str).apply(lambda c: c.str.contains("an RDD")).to_numpy().any()
            == expected
        )


def test_rows_that_are_chosen_by_which_come_first_are_refused():
    rows = spark.session().range(20).selectExpr("id", "id % 2 AS x")
    unsteady = [
        *(rows.dropDuplicates(["x"]), rows.groupBy("x").agg({"id": "first"})),
        *(rows.selectExpr("monotonically_increasing_id() AS m"), rows.selectExpr("uuid() AS u")),
    ]
    for frame in unsteady:
        with pytest.raises(dpframe.BadValue, match=r"not deterministic|gives other rows"):
            dpframe.open(frame, 1, because="made up")


def died(fuse: Path) -> int:
    log = Path(f"{fuse}.died")
    return len(log.read_text()) if log.exists() else 0


@pytest.mark.parametrize("people", [False, True], ids=["rows", "people"])
def test_a_worker_that_dies_is_replaced_and_its_rows_are_counted_once(fuse, people):
    p = opened(fuse, True, people, delta=1e-6)
    asked: list[Callable[[], Any]] = [
        lambda: p.groupby("g").size(epsilon=300).tolist(),
        lambda: p.nunique("id", epsilon=300),
        lambda: sorted(p.unique("x", epsilon=300).tolist()),
    ]
    expected = [[1000, 1000, 1000], PEOPLE, list(range(7))]
    for i, ask in enumerate(asked):
        fuse.touch()
        answer = ask()
        assert died(fuse) == i + 1
        assert answer == expected[i]
    assert len(p.ledger) == 3


def test_where_all_workers_die_nothing_is_answered_and_the_debit_stands(fuse):
    p = opened(fuse, False, True)
    fuse.touch()
    with pytest.raises(dpframe.DataError) as caught:
        p.count(epsilon=100)
    assert died(fuse) >= 4
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert "ython" not in str(caught.value).replace("ython -m", "")
    assert p.budget.spent == 100
    fuse.unlink()
    assert p.query("x == 1").count(epsilon=100) == len(range(1, ROWS, 7))
