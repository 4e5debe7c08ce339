"""Kernels of single rows: the numbers of texts are Arrow's, and sums those of numpy, to the last bit; as Python has them, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.internals import (
    SIZES,
    Bounds,
    Grid,
    Vector,
    engines_blocks_module,
    engines_columns_module,
    engines_keys_module,
    engines_pandas_module,
    kernels_module,
)

pa = pytest.importorskip("pyarrow", reason="texts of Arrow")
WAYS = [pytest.param("numba", marks=pytest.mark.extras), "python"]
NASTY = [
    "",
    "\0",
    "a",
    "a\0",
    "\0a",
    "aaaaaaa",
    "aaaaaaaa",
    "aaaaaaaa\0",
    "aaaaaaaab",
    "aaaaaaaaab",
    "é",
    "e\u0301",
    "😀" * 9,
]
TEXTS = st.lists(st.none() | st.sampled_from(NASTY) | st.text(max_size=20), max_size=60)


@pytest.fixture(scope="module", params=WAYS)
def way(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numba":
            pytest.importorskip("numba", reason="the extra `fast` is not installed")
        else:
            patch.setattr(kernels_module, "kernel", lambda source: source)
        patch.setattr(SIZES, "kernel_texts", 1)  # which is too small at once, and again
        yield


def encoded(strings: Any) -> tuple[list[Any], list[Any]]:
    found = engines_columns_module._numbered(strings)
    return found.indices.to_pylist(), found.dictionary.to_pylist()


@pytest.mark.parametrize("room", [1, 2, 3, 5, 7, 9, 33])
def test_slots_of_texts_are_a_power_of_two_whatever_the_room_at_first(room, monkeypatch):
    """From a slot the next free one is looked for under a mask, which leads to all slots of a power of two only."""
    seen = []

    def listening(source: Any) -> Any:
        def number(*arguments: Any) -> Any:
            seen.append(len(arguments[8]))
            assert seen[-1] & (seen[-1] - 1) == 0
            return source(*arguments)

        return number if source is kernels_module.number_texts else source

    monkeypatch.setattr(kernels_module, "kernel", listening)
    monkeypatch.setattr(SIZES, "kernel_texts", room)
    texts = pa.array([str(i % 50) for i in range(100)])
    assert encoded(texts) == (
        texts.dictionary_encode().indices.to_pylist(),
        [str(i) for i in range(50)],
    )
    assert seen[0] >= 4 * room


@pytest.mark.usefixtures("way")
@settings(max_examples=200, deadline=None)  # numba compiles
@given(TEXTS, st.integers(0, 9), st.booleans())
@example([None, *NASTY, *NASTY, None], 3, True)
def test_texts_are_numbered_as_arrow_numbers_them(texts, first, wide):
    whole = pa.array(texts, pa.large_string() if wide else pa.string())
    strings = whole.slice(first)
    expected = strings.dictionary_encode()
    assert encoded(strings) == (expected.indices.to_pylist(), expected.dictionary.to_pylist())


@pytest.mark.usefixtures("way")
def test_many_texts_of_which_each_is_another_and_bytes_that_are_no_text():
    rng = np.random.default_rng(5)
    cells = [rng.bytes(int(n)) for n in rng.integers(0, 20, 3000)]
    cells += [cells[i] for i in rng.integers(0, 3000, 500)]
    strings = pa.array(cells, pa.large_binary()).view(pa.large_string())
    found = engines_columns_module._numbered(strings)
    expected = pa.array(cells, pa.large_binary()).dictionary_encode()
    assert found.indices.equals(expected.indices)
    assert found.dictionary.view(pa.large_binary()).equals(expected.dictionary)


def test_texts_that_stand_in_one_slot_are_told_apart(monkeypatch):
    """With a hash that is the same for all, as no salt allows."""
    monkeypatch.setattr(kernels_module, "kernel", lambda source: source)
    monkeypatch.setattr(kernels_module, "_ODD", np.uint64(0))
    monkeypatch.setattr(SIZES, "kernel_texts", 1)
    texts = [
        *NASTY,
        *("a" * i + "\0" * j for i in range(10) for j in range(4)),
        *("b" * 8 + c for c in "xyz"),
    ]
    strings = pa.array([*texts, None, *texts[::-1]], pa.large_string())
    expected = strings.dictionary_encode()
    assert encoded(strings) == (expected.indices.to_pylist(), expected.dictionary.to_pylist())


def test_a_kernel_that_loses_patience_leaves_texts_to_arrow(monkeypatch):
    monkeypatch.setattr(kernels_module, "kernel", lambda source: source)
    monkeypatch.setattr(kernels_module, "_ODD", np.uint64(0))
    monkeypatch.setattr(SIZES, "kernel_texts", 1)
    monkeypatch.setattr(kernels_module, "_SLACK", 1)
    monkeypatch.setattr(kernels_module, "_PATIENCE", 1)
    strings = pa.array([f"text {i}" for i in range(50)] * 2, pa.large_string())
    ends = np.frombuffer(strings.buffers()[1], np.int64)
    data = np.frombuffer(strings.buffers()[2], np.uint8)
    assert (
        kernels_module.numbered(ends, data, np.zeros(0, np.uint8), 0, np.empty(100, np.int32))
        is None
    )
    expected = strings.dictionary_encode()
    assert encoded(strings) == (expected.indices.to_pylist(), expected.dictionary.to_pylist())


BROKEN = {
    "the first eight bytes alone": lambda at: (*at[:1], at[1] * 0, *at[2:]),
    "nulls as texts": lambda at: (*at[:3], at[3][:0], *at[4:]),
    "texts by their lengths": lambda at: (*at[:2], at[2] * 0, *at[3:]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_numbering_is_seen(name, monkeypatch):
    right = kernels_module.number_texts
    broken = lambda *words: right(*BROKEN[name](words))  # noqa: E731
    monkeypatch.setattr(
        kernels_module, "kernel", lambda source: broken if source is right else source
    )
    strings = pa.array([None, *NASTY, *NASTY, "aaaaaaaac" * 3, "aaaaaaaad" * 3, None] * 2).slice(2)
    expected = strings.dictionary_encode()
    assert encoded(strings) != (expected.indices.to_pylist(), expected.dictionary.to_pylist())


CELLS = [
    0.0,
    -0.0,
    2.0,
    0.5,
    1.5,
    2.5,
    np.inf,
    -np.inf,
    1e300,
    -1e300,
    5e-324,
    np.nan,
    4.999999999999999,
    0.49999999999999994,
]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int8, np.uint64, np.bool_])
def test_sums_are_those_of_numpy(dtype, degree):
    rng = np.random.default_rng(degree)
    cells = np.where(rng.random(300) < 0.5, rng.choice(CELLS, 300), rng.normal(1, 4, 300))
    with np.errstate(all="ignore"):
        values = cells if dtype == np.float64 else np.nan_to_num(cells).astype(dtype)
    buckets = (np.arange(300) % 4).astype(np.uint8)
    for bounds in (
        (0.0, 5.0),
        (-3.0, 5.0),
        (2.0, 2.0),
        (-1e300, 1e300),
        (0.0, 5e-324),
        (1e15, 1e15 + 3),
    ):
        grid = Grid.for_width(Bounds(*bounds), 31, degree)
        expected, found = np.zeros((degree + 1, 3), np.int64), np.zeros((degree + 1, 3), np.int64)
        with np.errstate(all="ignore"):
            vector, room = Vector("number", values), np.empty(300)
            engines_pandas_module.add_powers(
                engines_pandas_module.steps_of(vector, grid, None, room), buckets, expected
            )
            engines_blocks_module.add_values(values, buckets, grid, found)
        assert found.tolist() == expected.tolist(), bounds
        assert (expected[0].min() < 0) == (dtype == np.float64)  # there are nulls


@pytest.mark.usefixtures("way")
@given(
    st.integers(-(2**63), 2**63 - 300),
    st.lists(st.integers(0, 200), min_size=1, max_size=40),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_whole_numbers_of_a_range_are_placed_as_numpy_places_them(low, above, at_hand):
    values = np.array([low + a for a in above], dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels_module, "at_hand", lambda rows: at_hand)
        found = engines_keys_module.coded(Vector("number", values))
    known = sorted({*values.tolist()})
    assert found.texts.tolist() == [f"n{n}" for n in known]
    assert found.codes.tolist() == [known.index(n) for n in values.tolist()]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64])
def test_buckets_are_counted_and_looked_up_as_numpy_does(dtype, monkeypatch):
    buckets = np.random.default_rng(0).integers(0, 201, 999).astype(dtype)
    counts = np.bincount(buckets, minlength=241)[1:]
    monkeypatch.setattr(kernels_module, "at_hand", lambda rows: True)
    monkeypatch.setattr(SIZES, "kernel_rows", 0)
    assert engines_pandas_module.tally(buckets, 240).tolist() == counts.tolist()
    table, found = np.arange(201, dtype=np.int16)[::-1].copy(), np.empty(999, np.int16)
    kernels_module.kernel(kernels_module.look_up)(table, buckets, found)
    assert found.tolist() == table[buckets].tolist()
