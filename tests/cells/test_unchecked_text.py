"""Arrow takes bytes for text without a look: columns of such text are asked like any other, in melt too."""

from __future__ import annotations

import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow")


def unchecked(cells, dictionary=False):
    binary = pa.array(cells, type=pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(cells), binary.buffers())
    chunk = text.dictionary_encode() if dictionary else text
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([chunk])))


class Tensor:
    """What numpy takes for an array and cannot read."""

    def __array__(self, *args, **words):
        raise RuntimeError("a cell")


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("cell", [b"b", b"\xff", None])
def test_melt_of_unchecked_text_beside_objects(cell, dictionary):
    df = pd.DataFrame(
        {"a": unchecked([b"a", cell], dictionary), "b": pd.Series(["x", Tensor()], dtype=object)}
    )
    melted = df.dp.open(1000).melt(value_vars=["a", "b"])
    assert melted.count("value", epsilon=300) == 4 - (cell is None)
    assert melted.value_counts("value", keys=["a", "x"], sort=False, epsilon=300).tolist() == [1, 1]
