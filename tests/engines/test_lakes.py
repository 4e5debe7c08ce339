"""Tables of Delta and Iceberg: the version that there was when they were opened, or no answer."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dpframe
from dpframe import BadType, BadValue, SessionError
from dpframe._frame.sources import recognise_source
from tests.engines.test_tables import EXAMPLES, nasty

pa = pytest.importorskip("pyarrow")
MADE = {
    "delta": ("deltalake", EXAMPLES["Delta table"]),
    "iceberg": ("pyiceberg.catalog.sql", EXAMPLES["Iceberg table"]),
}


@pytest.fixture(params=MADE)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A table of 18 rows in three files."""
    library, made = MADE[request.param]
    pytest.importorskip(library, reason=f"{request.param} needs {library}")
    return made(nasty(), tmp_path)


def written(lake: Any) -> None:
    """More rows, by somebody else and by the table's own object."""
    if hasattr(lake, "append"):
        lake.append(nasty())
        lake.refresh()
    else:
        import_module("deltalake").write_deltalake(lake.table_uri, nasty(), mode="append")
        lake.update_incremental()


def files(lake: Any, folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


@pytest.mark.parametrize("people", [False, True], ids=["rows", "people"])
def test_what_is_written_later_is_another_version_and_is_not_seen(lake, people, tmp_path):
    words = {"unit": "id", "max_rows": 9, "max_groups": 9} if people else {}
    p = dpframe.open(lake, 1000, because="made up", **words)
    before = p.query("s == 'a'").count(epsilon=200)
    written(lake)
    assert p.query("s == 'a'").count(epsilon=200, fresh=True) == before == 2
    q = dpframe.open(lake, 1000, because="made up", version="later", **words)
    assert q.query("s == 'a'").count(epsilon=200) == 4


def test_a_version_whose_files_are_gone_is_refused_for_nothing(lake, tmp_path):
    p = dpframe.open(lake, 1000, because="made up")
    p.query("s == 'a'").count(epsilon=100)
    os.unlink(files(lake, tmp_path)[0])
    with pytest.raises(SessionError, match="cannot be reached"):
        p.query("s == 'b'").count(epsilon=100)
    assert p.budget.spent == 100


def test_a_file_of_a_version_that_is_replaced_is_a_change(lake, tmp_path):
    p = dpframe.open(lake, 1000, because="made up")
    with open(files(lake, tmp_path)[0], "ab") as file:
        file.write(b"more")
    with pytest.raises(SessionError, match="has changed"):
        p.query("s == 'b'").count(epsilon=100)
    assert p.budget.spent == 0


def test_its_files_are_known_by_their_names_however_they_are_opened(lake, tmp_path):
    source = recognise_source(lake)
    as_files = recognise_source([str(f) for f in files(lake, tmp_path)])
    assert source.marks == as_files.marks
    assert len(source.marks) == 3


def test_a_table_that_cannot_be_read_exactly_is_refused_when_it_is_opened(tmp_path):
    delta = pytest.importorskip("deltalake", reason="tables of Delta need deltalake")
    words = {"configuration": {"delta.enableDeletionVectors": "true"}}
    delta.write_deltalake(str(tmp_path / "v"), nasty(), **words)
    with pytest.raises(BadType, match="deletion vectors") as caught:
        dpframe.open(delta.DeltaTable(str(tmp_path / "v")), 1, because="made up")
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_lazy_frame_of_a_lake_is_refused_with_the_table_to_open(tmp_path):
    pytest.importorskip("deltalake", reason="tables of Delta need deltalake")
    pl = pytest.importorskip("polars", reason="LazyFrames need polars")
    EXAMPLES["Delta table"](nasty(), tmp_path)
    with pytest.raises(dpframe.NotOffered, match="DeltaTable"):
        dpframe.open(pl.scan_delta(str(tmp_path / "t")), 1, because="made up")


def test_tables_of_iceberg_without_snapshot_or_with_dots_are_refused(tmp_path):
    catalogs = pytest.importorskip("pyiceberg.catalog", reason="tables of Iceberg need pyiceberg")
    pytest.importorskip("pyiceberg.catalog.sql", reason="a catalog in a file needs sqlalchemy")
    words = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}",
    }
    catalog = catalogs.load_catalog("tests", **words)
    catalog.create_namespace("n")
    empty = catalog.create_table("n.empty", schema=nasty().schema)
    with pytest.raises(BadValue, match="no snapshot"):
        dpframe.open(empty, 1, because="made up")
    dotted = pa.table({"a.b": [1, 2]})
    odd = catalog.create_table("n.odd", schema=dotted.schema)
    odd.append(dotted)
    with pytest.raises(BadType, match="dot in its name"):
        dpframe.open(odd, 1, because="made up")
