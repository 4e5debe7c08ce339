"""A text that is not UTF-8 is a value like any other, whichever engine reads it, or its type is refused at opening."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType
from dpframe._frame.sources import recognise_source

pa = pytest.importorskip("pyarrow")
pq: Any = import_module("pyarrow.parquet")
BAD = b"\xff"


def texts(cells: list[bytes]) -> Any:
    """A column of texts that nobody checks."""
    ends = np.cumsum([0, *map(len, cells)]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(cells), [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(cells))]
    )


def table(cell: bytes, index: Any = None) -> Any:
    numbers = [0, 1, 2] * 300
    plain = texts([[b"a", b"b", cell][i] for i in numbers])
    if index is not None:
        plain = pa.DictionaryArray.from_arrays(pa.array(numbers, index), texts([b"a", b"b", cell]))
    return pa.table({"x": numbers, "s": plain})


def written(folder: Path, made: Any) -> Path:
    pq.write_table(made, folder / "t.parquet", row_group_size=400)
    return folder / "t.parquet"


def scanned(folder: Path, made: Any) -> Any:
    return pytest.importorskip("polars").scan_parquet(written(folder, made))


def in_dataset(folder: Path, made: Any) -> Any:
    return import_module("pyarrow.dataset").dataset(written(folder, made))


def in_feather(folder: Path, made: Any) -> Any:
    import_module("pyarrow.feather").write_feather(
        made, folder / "t.feather", compression="uncompressed"
    )
    return import_module("pyarrow.dataset").dataset(folder / "t.feather", format="feather")


def registered(folder: Path, made: Any) -> Any:
    connection = pytest.importorskip("duckdb").connect()
    connection.register("r", made)
    return connection.sql("select * from r")


ASK: dict[str, Callable[[Any], Any]] = {
    "a condition": lambda p: int(p[p["s"] == "a"].count(epsilon=90)),
    "how many": lambda p: int(p.nunique("s", epsilon=90)),
    "found": lambda p: sorted({"a", "b"} & set(p.unique("s", epsilon=90))),
    "groups": lambda p: p.groupby("s", keys=["a", "b"]).size(epsilon=90).tolist(),
}
EXPECTED = {"a condition": 300, "how many": 3, "found": ["a", "b"], "groups": [300, 300]}
MADE = {
    "pyarrow table": (lambda folder, made: made, None),
    "pyarrow table of dictionaries": (lambda folder, made: made, "int8"),
    "dataset": (in_dataset, None),
    "dataset of dictionaries with the reader's own index": (in_dataset, "int32"),
    "feather of dictionaries": (in_feather, "int8"),
    "LazyFrame": (scanned, None),
    "LazyFrame of dictionaries": (scanned, "int8"),
    "duckdb": (registered, None),
}


@pytest.mark.parametrize("ask", ASK)
@pytest.mark.parametrize("name", MADE)
def test_whether_there_is_such_a_text_makes_no_answer_an_error(name, ask, tmp_path):
    make, index = MADE[name]
    for cell in (b"c", BAD):
        made = make(tmp_path, table(cell, None if index is None else getattr(pa, index)()))
        p = dpframe.open(made, 1000, delta=1e-4, because="an example")
        assert ASK[ask](p) == EXPECTED[ask], cell


@pytest.mark.parametrize("index", [None, "int8", "int32", "int64"])
def test_parquet_files_are_read_here_with_such_texts(index, tmp_path):
    """Dictionaries of texts are read by themselves, row group by row group, beside the other columns."""
    made = table(BAD, None if index is None else getattr(pa, index)())
    source = recognise_source(str(written(tmp_path, made)))
    for columns in ([0, 1], [1, 0], [1], [0]):
        found = pd.concat(list(source.batches(columns)))
        assert list(found.columns) == [made.schema.names[i] for i in columns]
        if 0 in columns:
            assert found["x"].tolist() == [0, 1, 2] * 300
        if 1 in columns:
            cells = pa.chunked_array(found["s"].array._pa_array).cast(pa.large_binary())
            assert cells.to_pylist() == [b"a", b"b", BAD] * 300


def test_dictionaries_with_checked_texts_are_refused_whatever_the_cells(tmp_path):
    for cell in (b"c", BAD):
        with pytest.raises(BadType, match=r"column 's' .*dpframe.open\('folder"):
            dpframe.open(in_dataset(tmp_path, table(cell, pa.int8())), 1, because="an example")
        os.remove(tmp_path / "t.parquet")


def dask_frame(cell: str, dtype: str, convert: bool) -> Any:
    dd = pytest.importorskip("dask.dataframe")
    with import_module("dask").config.set({"dataframe.convert-string": convert}):
        return dd.from_pandas(
            pd.DataFrame({"x": range(18), "s": pd.Series(["a", cell] * 9, dtype=dtype)}),
            npartitions=2,
        )


def test_half_a_character_in_a_dask_frame_is_a_value_or_is_refused():
    for cell in ("c", "\ud800"):
        p = dpframe.open(
            dask_frame(cell, "string[python]", convert=False), 1000, because="an example"
        )
        assert p[p["s"] == "a"].count(epsilon=90) == 9
        assert p["s"].notna().sum(epsilon=90) == 18
        for dtype in ("string[python]", "object"):
            with pytest.raises(BadType, match=r"column 's' .*string\[pyarrow\]"):
                dpframe.open(dask_frame(cell, dtype, convert=True), 1, because="an example")
