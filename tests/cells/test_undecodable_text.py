"""Bytes that are no UTF-8 in a column of texts: a value like any other in every storage of Arrow, which equals no key."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

BYTES = [b"a", b"\xff", None, b"a", b"b\xc3", b"b"]


def texts(kind, cells=BYTES):
    wide = {pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}.get(
        kind, pa.binary()
    )
    raw = pa.array(cells, type=wide)
    return pa.Array.from_buffers(kind, len(cells), raw.buffers())


def in_arrow(*chunks):
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array(list(chunks))))


def nested(kind):
    inner = texts(kind, [b"a", b"\xff", b"b\xc3", b"b"]).dictionary_encode()
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0, 2, 3], type=pa.int32()), inner)


FOUR = [b"a", b"\xff", b"b\xc3", b"b"]
COLUMNS = {
    "string": lambda: in_arrow(texts(pa.string())),
    "large string": lambda: in_arrow(texts(pa.large_string())),
    "string view": lambda: in_arrow(texts(pa.string_view())),
    "chunks": lambda: in_arrow(texts(pa.string(), BYTES[:2]), texts(pa.string(), BYTES[2:])),
    "dictionary": lambda: in_arrow(texts(pa.string()).dictionary_encode()),
    "dictionary of large strings": lambda: in_arrow(texts(pa.large_string()).dictionary_encode()),
    "dictionaries in chunks": lambda: in_arrow(
        texts(pa.string(), BYTES[:2]).dictionary_encode(),
        texts(pa.string(), BYTES[2:]).dictionary_encode(),
    ),
    "dictionary of views": lambda: in_arrow(
        pa.DictionaryArray.from_arrays(
            pa.array([0, 1, None, 0, 2, 3]), texts(pa.string_view(), FOUR)
        )
    ),
    "dictionary of a dictionary": lambda: in_arrow(nested(pa.string())),
    "dictionary of a dictionary of large strings": lambda: in_arrow(nested(pa.large_string())),
}
ANSWERS = {
    "count": lambda p: (p.count("s", epsilon=90), 5),
    "keys": lambda p: (p.groupby("s", keys=["a", "b", None]).size(epsilon=90).tolist(), [2, 1, 1]),
    "other": lambda p: (p.groupby("s", keys=["a"], other="rest").size(epsilon=90).tolist(), [2, 3]),
    "isin": lambda p: (p[p["s"].isin(["a", "b"])].count(epsilon=90), 3),
    "not equal": lambda p: (p[p["s"] != "a"].count(epsilon=90), 4),
    "map": lambda p: (
        round(p.assign(m=p["s"].map({"a": 1})).sum("m", bounds=(0, 1), epsilon=90)),
        2,
    ),
    "length": lambda p: (p[p["s"].str.len() == 1].count(epsilon=90), 4),
    "nunique": lambda p: (p.nunique("s", epsilon=90), 4),
    "merge": lambda p: (
        p.merge(pd.DataFrame({"s": ["a", "b"], "z": [1, 2]}), on="s").count(epsilon=90),
        3,
    ),
    "explode": lambda p: (p.assign(n=1).count("s", epsilon=90), 5),
}


@pytest.mark.parametrize("ask", ANSWERS)
@pytest.mark.parametrize("column", COLUMNS)
def test_answers_are_given_and_right(column, ask):
    p = pd.DataFrame({"s": COLUMNS[column](), "n": range(6)}).dp.open(1000)
    answer, truth = ANSWERS[ask](p)
    assert answer == truth


@pytest.mark.parametrize("column", COLUMNS)
def test_people_may_be_named_so(column):
    p = pd.DataFrame({"s": COLUMNS[column](), "x": ["y", "n"] * 3}).dp.open(
        1000, unit="s", max_rows=1, neighbors="replace-one"
    )
    assert len(p.randomize("x", keys=["y", "n"], epsilon=1)) == 4


@pytest.mark.parametrize("column", COLUMNS)
def test_keys_are_found_beside_them(column):
    cells = pd.concat([COLUMNS[column]()] * 200, ignore_index=True)
    assert list(pd.DataFrame({"s": cells}).dp.open(1000, delta=1e-6).unique("s", epsilon=100)) == [
        "a",
        "b",
    ]


@pytest.mark.parametrize("column", COLUMNS)
def test_a_ledger_is_opened(column, tmp_path):
    cells = pd.concat([COLUMNS[column]()] * 10, ignore_index=True)
    frame = pd.DataFrame({"s": cells, "n": range(60)})
    assert frame.dp.open(1, ledger=str(tmp_path / "l.db"), population="p").budget.spent == 0
