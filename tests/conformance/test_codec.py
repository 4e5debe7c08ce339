"""Values that are listed meet the cells that they equal, and no others: every dtype, every verb, against plain Python."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe._cells.codec import finder
from dpframe._expr import Column
from dpframe._groups.combinations import RestBy, TupleBy, Tuples
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._questions.question import Query
from dpframe._statistics.base import Rows as stats_Rows
from dpframe.engines.pandas import PandasEngine

EPS = 1000.0  # the noise is 0, but with probability e**-100 or so: answers are divided among few
EXAMPLES = settings(max_examples=12, deadline=None)

# ---- the oracle -----------------------------------------------------------------------------------------------


def value_of(cell: Any) -> Any:
    """What a cell or a listed value is: plain Python, equal where the documented table says so. None is null."""
    if (
        cell is None
        or cell is pd.NA
        or cell is pd.NaT
        or (isinstance(cell, (float, np.floating)) and cell != cell)
    ):
        return None
    if isinstance(cell, (bool, np.bool_)):
        return ("bool", bool(cell))
    if isinstance(cell, (int, np.integer)):
        return Fraction(int(cell))
    if isinstance(cell, (float, np.floating)):
        return Fraction(float(cell)) if math.isfinite(cell) else float(cell)
    if isinstance(cell, Decimal):
        return Fraction(cell)
    if isinstance(cell, (pd.Timestamp, dt.date, np.datetime64)):
        moment = pd.Timestamp(cell)
        naive = moment if moment.tz is None else moment.tz_convert("UTC").tz_localize(None)
        return ("moment", moment.tz is not None, naive.to_pydatetime(warn=False), naive.nanosecond)
    if isinstance(cell, pd.Interval):
        return ("interval", cell.left, cell.right, cell.closed)
    if isinstance(cell, str):
        return ("text", cell)
    return ("nothing", id(cell))


# ---- columns --------------------------------------------------------------------------------------------------


class Kept(NamedTuple):
    """A dtype: cells, the column they make, and values that may be listed for it."""

    cells: list[Any]
    column: Any
    listed: list[Any]


def numpy(dtype: str) -> Any:
    return lambda cells: pd.Series(np.array(cells, dtype=dtype))


def of(dtype: Any) -> Any:
    return lambda cells: pd.Series(cells, dtype=dtype)


def masked(dtype: str) -> Any:
    """pandas itself makes doubles of a list of whole numbers on both sides of 2**63."""
    return lambda cells: pd.Series(
        pd.arrays.IntegerArray(
            np.array([c or 0 for c in cells], dtype=dtype), np.array([c is None for c in cells])
        )
    )


def arrow(kind: Any, encoded: bool = False) -> Any:
    def column(cells: list[Any]) -> pd.Series:
        array = pa.array(cells, type=kind)
        chunk = array.dictionary_encode() if encoded else array
        return pd.Series(
            pd.arrays.ArrowExtensionArray(
                pa.chunked_array([chunk[: len(cells) // 2], chunk[len(cells) // 2 :]])
            )
        )

    return column


def categories(cells: list[Any]) -> pd.Series:
    known = list({(type(c), c): c for c in cells if c is not None}.values())
    if len({hash(c) for c in known}) < len(known):  # pandas has no two equal categories
        known = list(dict.fromkeys(known))
    return pd.Series(pd.Categorical(cells, categories=pd.Index([*known, "nobody"], dtype=object)))


BIG = [
    2**53 - 1,
    2**53,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**63 + 1,
    2**64 - 1,
    2**64,
    -(2**53) - 1,
    -(2**63),
    -(2**63) - 1,
]
NUMBERS = [
    *BIG,
    0,
    1,
    -1,
    2,
    127,
    128,
    255,
    256,
    -128,
    0.0,
    -0.0,
    0.5,
    1.0,
    0.1,
    1e300,
    2.0**53,
    2.0**63,
    2.0**64,
    5e-324,
]
NAN = np.array([0x7FF8000000000001, 0xFFF8000000000000], dtype=np.uint64).view(np.float64).tolist()
TEXTS = ["", "a", "a\0", "a\0b", "a ", "A", "ä", "ä", "1", "nan", "None", "😀", "a" * 300]
ODD = ["\ud800", "\udcff"]  # halves of characters: no keys
DAYS = [
    pd.Timestamp(d)
    for d in ("1970-01-01", "2024-02-29", "2024-02-29 00:00:00.000001", "1677-09-22", "2262-04-11")
]
NANO = [
    *DAYS,
    pd.Timestamp("2024-02-29 00:00:00.000000001"),
    pd.Timestamp("2024-02-29").as_unit("s"),
]
SPANS = [pd.Interval(0, 1), pd.Interval(0, 1, "left"), pd.Interval(0.0, 1.0), pd.Interval(0.5, 1)]
MIXED = [
    *NUMBERS,
    *TEXTS,
    True,
    False,
    Decimal("0.5"),
    Decimal("0.1"),
    Decimal(2**53 + 1),
    DAYS[1],
    *SPANS[:2],
]
MIXED += [DAYS[1].tz_localize("UTC"), DAYS[1].tz_localize("Asia/Tokyo"), dt.date(2024, 2, 29)]
NOTHING = [b"a", [1], (1,), 1j, pd.Timedelta("1s"), object]


def whole(dtype: str) -> list[int]:
    info = np.iinfo(dtype)
    return [n for n in (*BIG, 0, 1, -1, 2, 127, 128, 255, -128) if info.min <= n <= info.max]


def doubles(dtype: str) -> list[float]:
    cells = [
        float(np.array(x, dtype="f8").astype(dtype))
        for x in NUMBERS
        if abs(x) < float(np.finfo(dtype).max)
    ]
    return [*cells, math.inf, -math.inf, *NAN]


def zoned(name: str) -> list[pd.Timestamp]:
    return [d.tz_localize("UTC").tz_convert(name) for d in DAYS[:4]]


KEPT: dict[str, Kept] = {
    d: Kept(whole(d), numpy(d), NUMBERS)
    for d in ("int8", "int16", "int32", "int64", "uint8", "uint64")
}
KEPT |= {
    d: Kept([*whole(d.lower()), None], masked(d.lower()), NUMBERS)
    for d in ("Int8", "Int64", "UInt32", "UInt64")
}
KEPT |= {d: Kept(doubles(d), numpy(d), NUMBERS) for d in ("float16", "float32", "float64")}
KEPT |= {
    f"{d}, big-endian": Kept(whole(d), numpy(f">{d[0]}{int(d[3:]) // 8}"), NUMBERS)
    for d in ("int32", "int64")
}
KEPT |= {
    "Float32": Kept([x for x in doubles("float32") if x == x] + [None], of("Float32"), NUMBERS),
    "Float64": Kept([x for x in doubles("float64") if x == x] + [None], of("Float64"), NUMBERS),
    "int64 of Arrow": Kept([*whole("int64"), None], arrow(pa.int64()), NUMBERS),
    "uint64 of Arrow": Kept([*whole("uint64"), None], arrow(pa.uint64()), NUMBERS),
    "double of Arrow": Kept([*doubles("float64"), None], arrow(pa.float64()), NUMBERS),
    "decimal128": Kept(
        [Decimal("0.50"), Decimal(-3), Decimal("127.00"), None],
        arrow(pa.decimal128(20, 2)),
        [0.5, -3, 127, 1],
    ),
    "bool": Kept([True, False], numpy("bool"), [True, False]),
    "boolean": Kept([True, False, None], of("boolean"), [True, False]),
    "bool of Arrow": Kept([True, False, None], arrow(pa.bool_()), [True, False]),
    "str": Kept([*TEXTS, None], of("str"), TEXTS),
    "string, Python": Kept([*TEXTS, None], of(pd.StringDtype("python")), TEXTS),
    "string, Arrow": Kept([*TEXTS, None], of("string[pyarrow]"), TEXTS),
    "string of Arrow": Kept([*TEXTS, None], arrow(pa.string()), TEXTS),
    "string view": Kept([*TEXTS, None], arrow(pa.string_view()), TEXTS),
    "dictionary of texts": Kept([*TEXTS, None], arrow(pa.string(), True), TEXTS),
    "dictionary of numbers": Kept([*whole("int64"), None], arrow(pa.int64(), True), NUMBERS),
    "objects": Kept([*MIXED, *NAN, *ODD, *NOTHING, None, pd.NA], of(object), MIXED),
    "texts among objects": Kept([*TEXTS, *ODD, None], of(object), TEXTS),
    "numbers among objects": Kept([*NUMBERS, *NAN, None], of(object), NUMBERS),
    "categories": Kept([*MIXED, None], categories, MIXED),
    "categories of texts": Kept([*TEXTS, None], lambda c: of("str")(c).astype("category"), TEXTS),
    "times in ns": Kept([*NANO, pd.NaT], of("datetime64[ns]"), NANO),
    "times in us": Kept([*DAYS, pd.NaT], of("datetime64[us]"), NANO),
    "times in s": Kept([d for d in DAYS if not d.microsecond], of("datetime64[s]"), NANO),
    "zoned times": Kept(
        [*zoned("Europe/Vienna"), pd.NaT], of("datetime64[us, Europe/Vienna]"), zoned("Asia/Tokyo")
    ),
    "times of Arrow": Kept([*DAYS, None], arrow(pa.timestamp("us")), NANO),
    "date32": Kept(
        [dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31), None],
        arrow(pa.date32()),
        NANO,
    ),
}


def expected(cells: list[Any], listed: list[Any], kind: str) -> list[int]:
    """For each cell 1 + the place of the value that it equals, or 0."""
    places = {value_of(k): i for i, k in reversed(list(enumerate(listed, start=1)))}
    return [
        0 if value_of(c) is None and None not in places else places.get(value_of(c), 0)
        for c in cells
    ]


def unequal(values: list[Any]) -> list[Any]:
    """Without those that are equal already, True and 1 included: such lists of keys are refused."""
    found: dict[Any, Any] = {}
    for value in values:
        found.setdefault(number_of(value), value)
    return list(found.values())


@st.composite
def case(draw: st.DrawFn, name: str, null: bool = True) -> tuple[list[Any], list[Any]]:
    kept = KEPT[name]
    cells = draw(st.lists(st.sampled_from(kept.cells), min_size=2, max_size=12))
    listed = unequal(draw(st.lists(st.sampled_from(kept.listed), min_size=1, max_size=8)))
    if null and draw(st.booleans()):
        listed.insert(draw(st.integers(0, len(listed))), None)
    return cells, listed


def frame_of(name: str, cells: list[Any]) -> pd.DataFrame:
    column = KEPT[name].column(cells)
    return pd.DataFrame({"x": column, "one": np.ones(len(cells), dtype=np.int64)})


def leaf_of(frame: pd.DataFrame) -> Column:
    return Column.of(0, "x", frame.dtypes.iloc[0])


# ---- by the integers of the engine ------------------------------------------------------------------------------


def counts(frame: pd.DataFrame, *by: Any) -> list[int]:
    return PandasEngine(frame).reduce(Query((), by=by), {stats_Rows()})[stats_Rows()].tolist()


def tally(places: list[int], groups: int) -> list[int]:
    return [places.count(i) for i in range(1, groups + 1)]


@pytest.mark.parametrize("name", KEPT)
@EXAMPLES
@given(data=st.data())
def test_listed_keys_are_counted_as_python_counts(name, data):
    cells, listed = data.draw(case(name))
    frame = frame_of(name, cells)
    keys = keys_for(listed, leaf_of(frame), "x")
    assert [value_of(k) for k in keys.index] == [value_of(k) for k in listed]
    places = expected(cells, listed, name)
    assert counts(frame, KeyBy(leaf_of(frame), keys)) == tally(places, len(listed))
    rest = RestBy(KeyBy(leaf_of(frame), keys), "the rest of them")
    others = sum(p == 0 and value_of(c) is not None for p, c in zip(places, cells, strict=True))
    assert counts(frame, rest) == [*tally(places, len(listed)), others]


@pytest.mark.parametrize("name", KEPT)
@EXAMPLES
@given(data=st.data())
def test_combinations_are_counted_as_python_counts(name, data):
    cells, listed = data.draw(case(name))
    frame = frame_of(name, cells)
    other = data.draw(st.lists(st.integers(0, 2), min_size=len(cells), max_size=len(cells)))
    frame["y"] = np.array(other, dtype="int8")
    leaves = [leaf_of(frame), Column.of(2, "y", frame.dtypes.iloc[2])]
    rows = [(k, i) for k in listed for i in (1, 2)]
    tuples = Tuples.of(rows, leaves, ["x", "y"])
    places = expected(cells, listed, name)
    truth = [
        sum(p == listed.index(k) + 1 and o == i for p, o in zip(places, other, strict=True))
        for k, i in rows
    ]
    assert counts(frame, TupleBy.of(leaves, tuples)) == truth


@pytest.mark.parametrize("name", KEPT)
@EXAMPLES
@given(data=st.data(), places=st.integers(1, 300))
def test_a_finder_finds_what_python_finds(name, data, places):
    cells, listed = data.draw(case(name))
    frame = frame_of(name, cells)
    vector = PandasEngine(frame).table.column(leaf_of(frame))
    keys = keys_for(listed, leaf_of(frame), "x").index.tolist()
    many = [(None if k is None or k != k else k, i * places) for i, k in enumerate(keys, start=1)]
    assert finder(many)(vector).tolist() == [p * places for p in expected(cells, listed, name)]


# ---- by answers -------------------------------------------------------------------------------------------------

FEW = settings(max_examples=2, deadline=None)


def opened(frame: pd.DataFrame, **terms: Any) -> Any:
    return frame.dp.open(EPS, **terms)


@pytest.mark.parametrize("name", KEPT)
@FEW
@given(data=st.data())
def test_isin_map_and_equality_find_what_python_finds(name, data):
    cells, listed = data.draw(case(name))
    listed = [k for k in listed if not isinstance(k, Decimal)]  # no constants
    p = opened(frame_of(name, cells))
    places = expected(cells, listed, name)
    if listed:
        assert p[p["x"].isin(listed)].count(epsilon=90) == sum(i > 0 for i in places)
        numbered = {k: i for i, k in enumerate(listed, start=1)}
        truth = sum(numbered[listed[i - 1]] for i in places if i)
        assert p.assign(m=p["x"].map(numbered)).sum(
            "m", bounds=(0, 16), epsilon=700
        ) == pytest.approx(truth, abs=0.5)
    for k in [k for k in listed if k is not None][:2]:
        truth = sum(value_of(c) == value_of(k) for c in cells)
        assert p[p["x"] == k].count(epsilon=40) == truth
        assert p[p["x"] != k].count(epsilon=40) == len(cells) - truth


@pytest.mark.parametrize("name", KEPT)
@FEW
@given(data=st.data())
def test_a_merge_finds_what_python_finds(name, data):
    cells, public = (data.draw(case(name, null=False)) for _ in range(2))
    kept = [
        c for c in {repr(value_of(c)): c for c in public[0]}.values() if value_of(c) is not None
    ]
    if not kept:
        return
    table = frame_of(name, kept)[["x"]].assign(k=np.arange(1.0, len(kept) + 1))
    p = opened(frame_of(name, cells[0]))
    equal = {value_of(k): i for i, k in enumerate(kept, start=1) if not nothing(k)}
    truth = sum(equal.get(value_of(c), 0) for c in cells[0] if value_of(c) is not None)
    assert p.merge(table, on="x").sum("k", bounds=(0, 16), epsilon=900) == pytest.approx(
        truth, abs=0.5
    )


@pytest.mark.parametrize("name", KEPT)
@FEW
@given(data=st.data())
def test_found_keys_are_the_values_that_python_counts(name, data):
    cells, _ = data.draw(case(name))
    found = opened(frame_of(name, cells * 300), delta=1e-6).unique("x", epsilon=2)
    truth = unequal(
        [c for c in cells if value_of(c) is not None and not keyless(c, name)]
    )  # True and 1 are one label
    assert len(found) == len(truth)
    assert {number_of(k) for k in found} == {number_of(c) for c in truth}


def number_of(cell: Any) -> Any:
    known = value_of(cell)
    return Fraction(known[1]) if isinstance(known, tuple) and known[0] == "bool" else known


def nothing(cell: Any) -> bool:
    """Whether it is an object of another class, which equals nothing."""
    known = value_of(cell)
    return isinstance(known, tuple) and known[0] == "nothing"


def keyless(cell: Any, name: str) -> bool:
    """What no key is: half a character, an infinity, an object of another class, a time that might not be read back."""
    if isinstance(cell, str):
        return any("\ud800" <= c <= "\udfff" for c in cell)
    if isinstance(cell, float):
        return math.isinf(cell)
    if isinstance(cell, pd.Timestamp | dt.date):
        moment = pd.Timestamp(cell)
        days = (
            moment.to_pydatetime(warn=False).replace(tzinfo=None) - dt.datetime(1970, 1, 1)
        ).days
        last = (
            2**63 / 86_400e9 if name.endswith("ns") else math.inf
        )  # where the ticks of such a column end
        return not -719_161 <= days < 2_932_895 or abs(days) > last - 3
    return nothing(cell)


@pytest.mark.parametrize("name", KEPT)
@FEW
@given(data=st.data())
def test_choices_and_tables_count_what_python_counts(name, data):
    cells, listed = data.draw(case(name, null=False))
    p = opened(frame_of(name, cells * 20))
    places = expected(cells, listed, name)
    table = p.crosstab("x", "one", keys={"x": listed, "one": [1, 2]}, epsilon=300)
    assert table[1].tolist() == [20 * n for n in tally(places, len(listed))]
    best = max(tally(places, len(listed)))
    chosen = p.argmax("x", keys=listed, epsilon=300)
    at = [value_of(k) for k in listed].index(value_of(chosen))
    assert tally(places, len(listed))[at] == best
