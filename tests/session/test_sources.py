"""Sessions on what is not in memory: what has to be said, what is refused before a debit, and what a changed file does."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue, DataError, NotOffered, PrivacyWarning, SessionError
from dpframe._frame.sources import bytes_of, free, recognise_source
from dpframe.engines.tables.arrow import ParquetSource, TableSource

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

BOUNDS = {"age": (0, 110)}
KEYS = {"state": ["CA", "NY", "TX"]}


def visits(rows: int = 300, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "patient": rng.integers(0, 60, rows),
            "age": rng.integers(0, 100, rows).astype(float),
            "state": rng.choice(["CA", "NY", "TX"], rows),
        }
    )


@pytest.fixture
def files(tmp_path):
    for i in range(3):
        pq.write_table(visits(seed=i), tmp_path / f"v{i}.parquet")
    return tmp_path


def opened(source: Any, folder: Any, epsilon: float = 1000, **words: Any) -> Any:
    words = {
        "bounds": BOUNDS,
        "keys": KEYS,
        "ledger": folder / "budget.db",
        "population": "p",
        **words,
    }
    return dpframe.open(source, epsilon, **words)


def rewritten(path: Any, table: Any) -> None:
    """A file with other contents, and surely with another time."""
    before = os.stat(path).st_mtime_ns
    pq.write_table(table, path)
    os.utime(path, ns=(before + 10**9, before + 10**9))


# What has to be said ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["ledger", "population"])
def test_a_source_is_known_by_ledger_and_population_or_by_a_reason(files, missing):
    words = {"ledger": files / "budget.db", "population": "p"}
    del words[missing]
    with pytest.raises(BadValue, match=f"needs {missing}="):
        dpframe.open(str(files), 1, **words)
    assert dpframe.open(str(files), 1, because="made up").budget.spent == 0


def test_an_accountant_brings_its_own(files, tmp_path):
    p = opened(files / "v0.parquet", tmp_path)
    q = dpframe.open(files / "v1.parquet", accountant=p.accountant, bounds=BOUNDS, version="second")
    q.count(epsilon=10)
    assert p.budget.spent == 10


def test_a_pandas_frame_is_opened_as_ever():
    df = visits().to_pandas()
    p = dpframe.open(df, 1, bounds=BOUNDS)
    assert df.dp.budget.spent == p.budget.spent == 0
    with pytest.raises(BadType, match="memory="):
        dpframe.open(visits().to_pandas(), 1, memory="1GB")


def test_words_are_those_of_open(files, tmp_path):
    with pytest.raises(BadType, match="no argument epsilom"):
        dpframe.open(str(files), epsilom=1)
    p = opened(str(files), tmp_path, unit="patient", max_rows=5, max_groups=2, memory="1.5 GiB")
    assert p.open(queries=50).budget.epsilon == 1000
    told = set(p.declarations["value"]) if "value" in p.declarations else set()
    assert any("v0.parquet" in str(v) for v in p.declarations.to_numpy().ravel()), told


@pytest.mark.parametrize(
    ("memory", "size"),
    [(10, 10), ("2GB", 2 * 10**9), ("1.5 GiB", 3 * 2**29), ("7", 7), ("1 k", 1000)],
)
def test_memory_is_a_number_of_bytes(memory, size):
    assert bytes_of(memory) == size


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, "", "GB", "2 apples", None, "0GB"])
def test_memory_that_is_none_is_refused(bad):
    with pytest.raises(BadValue, match="memory="):
        bytes_of(bad)


def test_some_memory_is_free_and_no_more_than_a_process_may_have():
    assert free() > 2**20
    resource = pytest.importorskip("resource")
    code = "import resource as r; r.setrlimit(r.RLIMIT_DATA, (2**30, 2**30)); import dpframe._frame.sources as s; print(s.free())"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert int(told) <= 2**30
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] != 2**30


# What cannot be opened ----------------------------------------------------------------------------------------


def test_what_is_no_file_of_rows_is_refused_without_a_word_of_the_engine(files, tmp_path):
    with pytest.raises(BadValue, match="no file is at"):
        opened(str(files / "nothing*.parquet"), tmp_path)
    (files / "broken.parquet").write_bytes(b"PAR1 Sesame")
    with pytest.raises(
        BadValue, match=r"broken.parquet' cannot be read: it is no Parquet file"
    ) as caught:
        opened(str(files / "*.parquet"), tmp_path)
    assert caught.value.__cause__ is caught.value.__context__ is None
    whole = (files / "v1.parquet").read_bytes()
    (files / "broken.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadValue, match="or a part of one"):
        opened(str(files / "*.parquet"), tmp_path)
    with pytest.raises(NotOffered, match="not on this machine"):
        opened("s3://bucket/visits.parquet", tmp_path)
    with pytest.raises(BadType, match="does not read a int"):
        opened(7, tmp_path)
    assert not (tmp_path / "budget.db").exists()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            lambda t: t.set_column(0, "patient", t["patient"].cast(pa.float64())),
            "'patient' is int64 in .* and double",
        ),
        (lambda t: t.drop_columns(["age"]), "not the same columns: age"),
        (lambda t: t.append_column("more", t["age"]), "not the same columns: more"),
        (
            lambda t: t.select(["age", "patient", "state"]),
            "not their columns in the same order.*union_by_name",
        ),
    ],
)
def test_files_of_another_schema_are_refused(files, tmp_path, change, match):
    pq.write_table(change(visits()), files / "v9.parquet")
    with pytest.raises(BadValue, match=match):
        opened(str(files), tmp_path)


def test_what_reads_tables_is_named_where_it_is_missing(files, monkeypatch):
    monkeypatch.setattr("dpframe._frame.sources.find_spec", lambda name: None)
    with pytest.raises(BadType, match="pip install pyarrow"):
        dpframe.open(str(files), 1, because="made up")


# A second budget ----------------------------------------------------------------------------------------------


def test_a_second_budget_on_the_same_files_is_refused(files, tmp_path):
    p = opened(str(files), tmp_path)
    for again in (
        str(files / "*.parquet"),
        [files / "v1.parquet"],
        str(files / ".." / files.name / "v0.parquet"),
    ):
        with pytest.raises(SessionError, match="shares its data"):
            opened(again, tmp_path, population="q")
    p.count(epsilon=90)
    assert opened(str(files), tmp_path).budget.spent == 90  # the line that opened it
    p.close()
    with pytest.raises(SessionError, match="shares its data"):
        opened(str(files), tmp_path, population="q")


def test_the_same_files_go_on_with_the_same_budget_and_answers(files, tmp_path):
    p = opened(str(files), tmp_path, unit="patient", max_rows=3, max_groups=2)
    first = p.groupby("state").mean("age", epsilon=100)
    p.close()
    again = opened(str(files), tmp_path, unit="patient", max_rows=3, max_groups=2)
    assert again.budget.spent == 100
    assert again.groupby("state").mean("age", epsilon=100).equals(first)
    assert again.budget.spent == 100


@pytest.mark.parametrize("unit", [{}, {"unit": "patient", "max_rows": 1, "max_groups": 1}])
def test_the_ledger_knows_these_people_under_another_name(tmp_path, unit):
    one, other = (
        pa.concat_tables([visits(seed=i) for i in order]) for order in ((0, 1, 2), (2, 0, 1))
    )
    opened(one, tmp_path, **unit).close()
    with pytest.raises(SessionError, match="under another name"):
        opened(other, tmp_path, population="q", **unit)
    assert (
        opened(visits(seed=9), tmp_path, population="q", because="others", **unit).budget.spent == 0
    )


# A source that changes ----------------------------------------------------------------------------------------


def test_a_file_that_was_replaced_costs_nothing_and_says_so(files, tmp_path):
    p = opened(str(files), tmp_path)
    known = p.count(epsilon=100)
    rewritten(files / "v1.parquet", visits(7))
    with pytest.raises(SessionError, match="has changed since it was opened"):
        p.mean("age", epsilon=100)
    os.remove(files / "v2.parquet")
    with pytest.raises(SessionError, match="cannot be reached"):
        p.mean("age", epsilon=100)
    assert p.budget.spent == 100
    assert p.count(epsilon=100) == known  # what was answered is


class Changing(TableSource):
    """A table of which something happens while it is read for the n-th time."""

    def __init__(self, table, happens, turn):
        self.happens, self.turn, self.scans, self.state = happens, turn, 0, 0
        super().__init__(table)

    def _scan(self, names):
        self.scans += 1
        for i, batch in enumerate(super()._scan(names)):
            if i == 1 and self.scans == self.turn:
                self.happens(self)
            yield batch

    def version(self):
        return self.state


def replaced(source):
    source.state += 1


def lost(source):
    raise OSError("No space left on device: Sesame-Street-123")


@pytest.mark.parametrize("happens", [replaced, lost])
@pytest.mark.parametrize("unit", [{}, {"unit": "patient", "max_rows": 3, "max_groups": 2}])
def test_what_goes_wrong_while_it_is_read_leaves_the_debit_and_no_answer(
    tmp_path, monkeypatch, happens, unit
):
    table = pa.concat_tables([visits(seed=i) for i in range(4)])
    source = Changing(table, happens, turn=-1)
    monkeypatch.setattr("dpframe._frame.sources.make_source", lambda table: source)
    p = opened(table, tmp_path, **unit)
    source.turn = source.scans + 1
    with pytest.raises(DataError, match="What was charged stays charged") as caught:
        p.mean("age", epsilon=100)
    assert "Sesame" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert p.budget.spent == 100
    source.state = 0
    p.mean("age", epsilon=100)  # is asked and paid for anew: nothing was kept of what failed
    assert p.budget.spent == 200


def test_a_file_that_is_damaged_inside_leaves_the_debit_and_no_answer(files):
    path = files / "v1.parquet"
    raw = bytearray(path.read_bytes())
    raw[4 : len(raw) // 2] = b"\xff" * (
        len(raw) // 2 - 4
    )  # the columns, and not what is told of them at the end
    path.write_bytes(raw)
    p = dpframe.open(str(files), 1000, because="an example")  # without a ledger nothing is read yet
    with pytest.raises(DataError) as caught:
        p["patient"].count(epsilon=100)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert str(files) not in str(caught.value)
    assert p.budget.spent == 100


# What a source cannot do --------------------------------------------------------------------------------------

REFUSED = {
    "pipe": lambda p: p.pipe(lambda d: d, bounds={}),
    "adopt": lambda p: p.adopt(pd.DataFrame({"patient": [1]}), because="a reason"),
}


@pytest.mark.parametrize("verb", REFUSED)
def test_verbs_that_need_all_rows_at_once_say_what_to_do_instead(files, tmp_path, verb):
    p = opened(str(files), tmp_path, unit="patient", max_rows=3, max_groups=2)
    with pytest.raises(NotOffered, match=r"dpframe\.open"):
        REFUSED[verb](p)
    assert p.budget.spent == 0


def test_reports_stand_in_the_order_of_the_rows(files, tmp_path):
    p = opened(str(files / "v0.parquet"), tmp_path, neighbors="replace-one")
    assert p.randomize("state", epsilon=200).tolist() == visits()["state"].to_pylist()
    with pytest.raises(BadValue, match="public_index"):
        p.randomize("state", epsilon=100, public_index=True)
    pl = pytest.importorskip("polars")
    q = opened(
        pl.scan_parquet(files / "v1.parquet"), tmp_path, neighbors="replace-one", population="q"
    )
    with pytest.raises(NotOffered, match="no fixed"):
        q.randomize("state", epsilon=100)
    assert q.budget.spent == 0


def test_reports_of_rows_in_no_fixed_order_are_refused(files, tmp_path, monkeypatch):
    monkeypatch.setattr(ParquetSource, "ordered", False)
    p = opened(str(files / "v0.parquet"), tmp_path, neighbors="replace-one")
    with pytest.raises(NotOffered, match="no fixed"):
        p.randomize("state", epsilon=100)
    assert p.budget.spent == 0


def test_rows_are_counted_at_open_only_where_their_number_is_public(files, tmp_path):
    class Counted(TableSource):
        def rows(self):
            asked.append(1)
            return super().rows()

    asked: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpframe._frame.sources.make_source", Counted)
        dpframe.open(visits(), 1, because="private")
        assert asked == []
        p = dpframe.open(visits(), 1, neighbors="replace-one", because="public")
        assert asked
    assert "all 300" in str(p.explain.randomize("state", keys=KEYS["state"]))


def test_a_delta_is_compared_with_a_public_number_alone(recwarn):
    dpframe.open(visits(), 1, 1e-3, neighbors="replace-one", because="a delta of a third of 1/n")
    assert [w for w in recwarn if issubclass(w.category, PrivacyWarning)]


# Databases ----------------------------------------------------------------------------------------------------


def test_cells_of_sqlite_that_are_not_of_their_type_are_nulls(tmp_path):
    base = sqlite3.connect(tmp_path / "x.db")
    base.execute("CREATE TABLE t (id INTEGER, x REAL, s TEXT, b BOOLEAN)")
    cells = [
        (1, 1.5, "a", 1),
        ("one", "much", b"\xff", 7),
        (2**60, 3, "\xe9", 0),
        (None, None, None, None),
        (2.5, 1e999, 4, "x"),
    ]
    base.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", cells)
    base.execute("UPDATE t SET s = CAST(x'ff' AS TEXT) WHERE id = 1")
    base.commit()
    p = dpframe.open(dpframe.sql(base, "t"), 1000, because="made up", bounds={"x": (0, 10)})
    found = {c: p[c].count(epsilon=90) for c in ("id", "x", "s", "b")}
    assert found == {"id": 2, "x": 3, "s": 3, "b": 2}
    assert p.query("s == 'é'").count(epsilon=90) == 1
    base.execute("DELETE FROM t WHERE id = 1")
    with pytest.raises(SessionError, match="has changed"):
        p.count(epsilon=1)
    base.close()
    with pytest.raises(SessionError, match="cannot be reached"):
        p.count(epsilon=1)


def test_view_of_sqlite_is_refused_for_its_text_and_what_it_names(tmp_path):
    base = sqlite3.connect(tmp_path / "x.db")
    base.execute("CREATE TABLE t (id INTEGER)")
    base.execute("CREATE VIEW few AS SELECT * FROM t LIMIT 3")
    base.execute("CREATE VIEW over AS SELECT * FROM Few")
    base.execute("CREATE VIEW steady AS SELECT * FROM t WHERE id > 0")
    for name in ("few", "over"):
        with pytest.raises(BadValue, match="LIMIT"):
            dpframe.open(dpframe.sql(base, name), 1, because="made up")
    assert dpframe.open(dpframe.sql(base, "steady"), 1000, because="made up").count(epsilon=90) == 0


def test_a_database_that_is_not_there_is_refused(tmp_path):
    for url, match in [
        (f"sqlite:///{tmp_path}/none.db", "no database is at"),
        ("mysql://host/db", "write the rows to Parquet"),
        (5, "does not read by a int"),
    ]:
        with pytest.raises(dpframe.DPError, match=match):
            dpframe.open(dpframe.sql(url, "t"), 1, because="x")
    sqlite3.connect(tmp_path / "x.db").execute("CREATE TABLE t (odd)").connection.commit()
    with pytest.raises(BadType, match="declares no type"):
        dpframe.open(dpframe.sql(f"sqlite:///{tmp_path}/x.db", "t"), 1, because="x")
    with pytest.raises(BadValue, match="no table 'u'"):
        dpframe.open(dpframe.sql(f"sqlite:///{tmp_path}/x.db", "u"), 1, because="x")


@pytest.mark.filterwarnings("ignore:'json' serialization")
def test_files_of_a_lazy_frame_are_known_by_names_on_this_machine(files, tmp_path, monkeypatch):
    pl = pytest.importorskip("polars")
    lazy = pl.scan_parquet(f"file://{files}/v1.parquet")
    assert recognise_source(lazy).marks == recognise_source(files / "v1.parquet").marks
    p = opened(lazy, tmp_path)
    p.count(epsilon=1)
    rewritten(files / "v1.parquet", visits(5))
    with pytest.raises(SessionError, match="has changed"):
        p.mean("age", epsilon=1)
    assert p.budget.spent == 1
    far = lazy.serialize(format="json").replace("file://", "https://")
    monkeypatch.setattr(
        pl.LazyFrame, "serialize", lambda self, file, format: file.write(far.encode())
    )
    with pytest.raises(NotOffered, match="not on this machine"):
        opened(lazy, tmp_path)


def test_a_lazy_frame_with_python_in_it_is_its_authors_word(files, tmp_path):
    pl = pytest.importorskip("polars")
    lazy = pl.scan_parquet(files / "*.parquet")
    for bad in (lazy.head(5), lazy.select(pl.all().shuffle())):
        with pytest.raises(BadValue, match="gives other rows each time"):
            opened(bad, tmp_path)
    with pytest.raises(BadValue, match="keep='any'"):
        opened(lazy.unique("state"), tmp_path)
    named = files / "a python of limit 3.parquet"
    named.write_bytes((files / "v2.parquet").read_bytes())
    pieces = [
        lazy,
        pl.scan_parquet(named),
        lazy.unique(),
        lazy.unique("state", keep="first", maintain_order=True),
    ]
    coded = [
        *(lazy.map_batches(lambda d: d), lazy.group_by("state").map_groups(lambda d: d, schema=lazy.collect_schema())),
        *(lazy.with_columns(w(pl.col("age") + 0.5)) for w in (
            lambda c: c.map_elements(lambda x: x, return_dtype=pl.Float64),
            lambda c: c.rolling_map(lambda s: s.sum(), window_size=1),
            lambda c: pl.fold(pl.lit(0.0), lambda a, b: a + b, [c]),
            lambda c: pl.reduce(lambda a, b: a + b, [c, c]),
        )),
    ]  # fmt: skip
    for plan, expected in [*((one, False) for one in pieces), *((one, True) for one in coded)]:
        parts = [part for _, part in recognise_source(plan).declared]
        assert any("Python code in a LazyFrame" in part for part in parts) == expected
    with pytest.raises(
        BadValue, match="Python code in a LazyFrame: this is code that dpframe does not see"
    ):
        opened(lazy.map_batches(lambda d: d), tmp_path)
    p = opened(lazy.map_batches(lambda d: d), tmp_path, because="it returns each row as it is")
    assert "Python code in a LazyFrame: it returns each row as it is" in set(
        p.declarations["value"]
    )
    rewritten(files / "v2.parquet", visits(5))
    with pytest.raises(SessionError, match="has changed"):
        p.count(epsilon=1)


def test_a_dask_frame_says_what_its_cells_are(tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    odd = dd.from_dict({"x": [1, 2], "o": [["a"], {}]}, npartitions=1)
    odd["o"] = odd["o"].astype(object)
    with pytest.raises(BadType, match="whose cells may be anything"):
        opened(odd, tmp_path)


@pytest.mark.parametrize("library", ["polars", "dask"])
def test_frames_of_other_libraries_have_the_accessor(library, tmp_path):
    pytest.importorskip(library)
    __import__(f"dpframe.{library}")
    if library == "polars":
        import polars as pl

        tables = [pl.from_arrow(visits()), pl.from_arrow(visits()).lazy()]
    else:
        import dask.dataframe as dd

        tables = [dd.from_pandas(visits().to_pandas(), npartitions=3)]
    for table in tables:
        assert "no dpframe session" in repr(table.dp)
        with pytest.raises(dpframe.NoSession, match=r"table\.dp\.open"):
            table.dp.count()
        p = table.dp.open(1000, because="made up", bounds=BOUNDS)
        assert type(p) is dpframe.PrivateFrame
        assert table.dp.query("age > 50").count(epsilon=90) == p.query("age > 50").count(epsilon=90)
        assert table.dp["age"].count(epsilon=90) == 300
