"""Columns of every dtype, tame and wild: what a frame of somebody else may hold.

A `Kind` builds a column of one dtype from any list of its cells, so that neighbours have the same schema. *Wild* cells are
those that go around checks; *marked* ones carry a word or a number that no text may ever show.
"""

# ruff: noqa: E501  (tables: one thing a line)
from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

WORD, NUMBER, YEAR = "Zq9xCanary", 48151623, 2177
MARKS = (
    WORD,
    str(NUMBER),
    str(NUMBER + 1),
    "48_151_623",
    "4.815162",
    f"{YEAR}-07-19",
)  # as texts would show them


@dataclass(frozen=True)
class Kind:
    """A dtype: how its columns are made, and its cells."""

    name: str
    family: str  # what generators may ask of it: number, bool, text, label, time, other
    build: Callable[[Sequence[Any]], Any]
    tame: tuple[Any, ...]
    wild: tuple[Any, ...]
    marked: tuple[Any, ...] = ()
    people: bool = False  # cells that are told apart by Python's equality: they may name people
    whole: bool = False
    bounds: tuple[Any, ...] = ((0, 5), (-3, 9))
    keys: tuple[Any, ...] | None = None  # of questions; None: the tame cells, and wild ones

    @property
    def cells(self) -> tuple[Any, ...]:
        """All of them: places in this tuple are what programs keep."""
        return (*self.tame, *self.wild, *self.marked)


def flat(cells: Sequence[Any]) -> Any:
    """An object array, also of cells that numpy would unpack."""
    found = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):
        found[i] = cell
    return found


# Objects with code of their own -----------------------------------------------------------------------------------------


def _raises(*_: Any, **__: Any) -> Any:
    raise RuntimeError(f"code of a cell ran: {WORD}")


class Hostile:
    """Every way in which a cell can be looked at raises, and quotes the cell."""

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _raises
    __hash__ = __bool__ = __len__ = __iter__ = __int__ = __float__ = __index__ = _raises  # type: ignore[assignment]
    __repr__ = __str__ = __format__ = __array__ = __add__ = __radd__ = __contains__ = _raises  # type: ignore[assignment]
    __getitem__ = __complex__ = __abs__ = __neg__ = __call__ = __round__ = _raises


class Quiet(Hostile):
    """The same, but it can be hashed and printed."""

    __hash__ = object.__hash__  # type: ignore[assignment]
    __repr__ = __str__ = lambda self: WORD  # type: ignore[assignment]


class Wide:
    """What numpy takes for an array, as tensors are, and fails to read."""

    __array__ = _raises


class Shifty:
    """Equal to everything, with another hash each time."""

    count = 0

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        Shifty.count += 1
        return Shifty.count


class EvilStr(str):
    __eq__ = __lt__ = __hash__ = __len__ = __str__ = __repr__ = encode = lower = strip = _raises  # type: ignore[assignment]


class EvilInt(int):
    __eq__ = __lt__ = __hash__ = __int__ = __float__ = __add__ = __repr__ = __index__ = _raises  # type: ignore[assignment]


class EvilFloat(float):
    __eq__ = __lt__ = __hash__ = __float__ = __add__ = __repr__ = _raises  # type: ignore[assignment]


class EvilList(list):  # type: ignore[type-arg]
    __iter__ = __len__ = __eq__ = __getitem__ = __repr__ = __bool__ = _raises  # type: ignore[assignment]


class EvilDate(datetime):
    __eq__ = __hash__ = __str__ = __repr__ = isoformat = utcoffset = _raises  # type: ignore[assignment]


class EvilType(type):
    __hash__ = __eq__ = _raises  # type: ignore[assignment]


class EvilZone(tzinfo):
    """A zone whose answers raise."""

    utcoffset = dst = tzname = fromutc = __repr__ = _raises


OfEvilType = EvilType("OfEvilType", (), {})


def _bits(word: int) -> float:
    return struct.unpack("<d", struct.pack("<Q", word))[0]


NANS = (
    float("nan"),
    _bits(0xFFF8000000000001),
    _bits(0x7FF8DEADBEEF0001),
    _bits(0x7FF0000000000001),
)
LONG = "x" * 70_000
HALF, NUL = "\ud800", "a\0"

# Builders ----------------------------------------------------------------------------------------------------------------


def numpy_of(dtype: str) -> Callable[[Sequence[Any]], Any]:
    return lambda cells: pd.Series(np.array(list(cells), dtype=dtype))


def floats_of(dtype: str) -> Callable[[Sequence[Any]], Any]:
    def build(cells: Sequence[Any]) -> Any:
        with np.errstate(all="ignore"):
            return pd.Series(
                np.array([np.nan if c is None else c for c in cells], dtype="f8").astype(dtype)
            )

    return build


def masked_of(dtype: Any) -> Callable[[Sequence[Any]], Any]:
    return lambda cells: pd.Series(pd.array(list(cells), dtype=dtype))


def arrow_of(kind: Any) -> Callable[[Sequence[Any]], Any]:
    def build(cells: Sequence[Any]) -> Any:
        return _arrow(pa.array(list(cells), type=kind))

    return build


def _arrow(array: Any) -> Any:
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([array])))


def raw_text(dictionary: bool, kind: Any = None) -> Callable[[Sequence[Any]], Any]:
    """Arrow strings whose bytes nobody has checked."""
    kind = pa.string() if kind is None else kind

    def build(cells: Sequence[Any]) -> Any:
        binary = pa.array(
            list(cells), type=pa.large_binary() if kind == pa.large_string() else pa.binary()
        )
        text = pa.Array.from_buffers(kind, len(cells), binary.buffers())
        return _arrow(text.dictionary_encode() if dictionary else text)

    return build


def viewed_text(cells: Sequence[Any]) -> Any:
    return _arrow(pa.array(list(cells), type=pa.string()).cast(pa.string_view()))


def pandas_over_raw(cells: Sequence[Any]) -> Any:
    """The dtype "str", which is Arrow underneath, over unchecked bytes."""
    binary = pa.array(list(cells), type=pa.large_binary())
    text = pa.Array.from_buffers(pa.large_string(), len(cells), binary.buffers())
    dtype = pd.StringDtype("pyarrow", na_value=np.nan)
    return pd.Series(dtype.construct_array_type()(pa.chunked_array([text]), dtype=dtype))


def objects_of(cells: Sequence[Any]) -> Any:
    return pd.Series(flat(cells), dtype=object)


def categories_of(
    categories: Sequence[Any], ordered: bool = False
) -> Callable[[Sequence[Any]], Any]:
    known = {id(c): i for i, c in enumerate(categories)}
    listed = (
        pd.Index(flat(categories))
        if any(type(c) is not type(categories[0]) for c in categories)
        else pd.Index(list(categories))
    )

    def build(cells: Sequence[Any]) -> Any:
        codes = [known.get(id(c), -1) for c in cells]
        return pd.Series(pd.Categorical.from_codes(codes, categories=listed, ordered=ordered))

    return build


def ticks_of(unit: str, zone: str | None = None) -> Callable[[Sequence[Any]], Any]:
    def build(cells: Sequence[Any]) -> Any:
        stamps = pd.DatetimeIndex(np.array(list(cells), dtype="i8").view(f"M8[{unit}]"))
        return pd.Series(stamps if zone is None else stamps.tz_localize("UTC").tz_convert(zone))

    return build


def periods_of(cells: Sequence[Any]) -> Any:
    return pd.Series(pd.PeriodIndex([pd.NaT if c is None else c for c in cells], freq="M"))


def intervals_of(cells: Sequence[Any]) -> Any:
    return pd.Series(
        pd.arrays.IntervalArray.from_tuples(
            [np.nan if c is None else c for c in cells], dtype="interval[float64, right]"
        )
    )


def sparse_of(fill: float) -> Callable[[Sequence[Any]], Any]:
    return lambda cells: pd.Series(
        pd.arrays.SparseArray(np.array(list(cells), dtype="f8"), fill_value=fill)
    )


# The kinds ------------------------------------------------------------------------------------------------------------------


def _ints(low: int, high: int, people: bool = True) -> dict[str, Any]:
    tame = (1, 2, 3, 4, 0, 7)
    wild = tuple(
        dict.fromkeys(
            x
            for x in (
                low,
                high,
                low + 1,
                high - 1,
                -1,
                2**31,
                2**53 + 1,
                2**53,
                2**62,
                2**63,
                2**63 + 1,
                10**6,
                127,
            )
            if low <= x <= high
        )
    )
    marked = (NUMBER,) if high >= NUMBER else ()
    return {
        "family": "number",
        "tame": tame,
        "wild": wild,
        "marked": marked,
        "people": people,
        "whole": True,
    }


def _nullable(words: dict[str, Any]) -> dict[str, Any]:
    return {**words, "wild": (*words["wild"], None)}


_FLOAT: dict[str, Any] = {
    "family": "number",
    "tame": (0.5, 1.0, 2.0, 3.5, -2.0, 0.0),
    "wild": (
        *NANS,
        None,
        np.inf,
        -np.inf,
        -0.0,
        5e-324,
        -5e-324,
        1.7976931348623157e308,
        1e-310,
        2.0**53 + 2,
        2.0**63,
        0.1,
    ),
    "marked": (float(NUMBER),),
    "people": True,
}
_TEXT: dict[str, Any] = {
    "family": "text",
    "tame": ("a", "b", "c", "dd", "Ca", "1"),
    "wild": (
        None,
        "",
        NUL,
        "a\0b",
        "\0",
        "a ",
        "µ",
        "\u2028",
        "İ",
        LONG,
        "nan",
        "None",
        "\U0001f600",
        "a" * 300,
    ),
    "marked": (WORD, f"{WORD}\0"),
    "people": True,
}
_RAW: dict[str, Any] = {
    "family": "text",
    "tame": (b"a", b"b", b"c", b"dd", b"1"),
    "wild": (None, b"", b"\xff", b"\xff\xfe", b"a\xc3", b"\xed\xa0\x80", b"a\0", b"\xc0\x80"),
    "marked": (WORD.encode(), WORD.encode() + b"\xff"),
    "people": True,
    "keys": ("a", "b", "c", "dd", "", NUL),
}
_HALVES: dict[str, Any] = {**_TEXT, "wild": (*_TEXT["wild"], HALF, "a\udcff", "\udfff\ud800")}
_MARKED_OBJECTS = (
    WORD,
    Hostile(),
    Quiet(),
    EvilStr(WORD),
    EvilInt(NUMBER),
    NUMBER,
    WORD.encode(),
    (WORD, NUMBER),
    [WORD],
    {WORD: 1},
)
_MIXED: tuple[Any, ...] = (
    *(None, np.nan, pd.NA, pd.NaT, Decimal("sNaN"), Decimal("NaN"), *NANS),
    *(True, False, 1, 1.0, -0.0, 0, 2**63, 2**63 - 1, 2**64, -(2**63) - 1, 10**400, 2.0**63, np.uint64(2**63), np.int8(1), np.float32(0.1)),
    *(Decimal("1"), Decimal("0.1"), Decimal("1E+1000000"), Decimal("-Infinity"), Fraction(1, 3), 1 + 0j, complex("nan"), np.inf),
    *("", NUL, "a\0b", HALF, LONG, np.str_("a"), "1", b"a", b"\xff", bytearray(b"a")),
    *((1, 2), ("a",), [], ["a"], [["a"]], {"a"}, frozenset(), {"a": 1}, {}, range(3), slice(2)),
    *(np.array(["a", "b"], dtype=object), np.array([1.0, np.nan]), np.zeros((2, 2)), np.array(1.0), pd.Series([1]), pd.DataFrame({"x": [1]})),
    *(pd.Timestamp("2024-02-29"), pd.Timestamp("2024-02-29", tz="Europe/Paris"), datetime(1, 1, 1), datetime(9999, 12, 31, 23), date(2024, 1, 1)),
    *(np.datetime64(10**9, "Y"), np.datetime64("NaT"), np.datetime64(2**62, "D"), np.timedelta64(1, "D"), pd.Timedelta("1D"), timedelta(1)),
    *(pd.Interval(0, 1), pd.Interval(5, 6, "left"), pd.Interval(0, 1, "both"), pd.Interval(pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02"))),
    *(pd.Period("2024-01", "M"), Ellipsis, NotImplemented, int, OfEvilType, OfEvilType(), lambda: 1, object()),
    *(Hostile(), Quiet(), Wide(), Shifty(), EvilStr("a"), EvilInt(1), EvilFloat(1.0), EvilList(["a"]), EvilDate(2024, 1, 1)),
    *([Hostile()], [Wide()], [Shifty()], [[1], [2, 3]], [np.zeros(2), np.zeros(2)], (Wide(), "a"), [EvilList("a")], [pd.NA], [HALF], {1: Hostile()}, [10**400], [2**63, -1], [b"\xff"]),
    datetime(2024, 1, 1, tzinfo=EvilZone()),
)  # fmt: skip
_KEYS = (1, "a", "b", True, 0.5, None, 2**63, NUL, -0.0, "1", Decimal("0.1"))
_SECONDS: dict[str, Any] = {
    "family": "time",
    "tame": tuple(1_704_067_200 + 86_400 * i for i in (0, 1, 2, 31, 40)),
    "marked": (6_549_981_247,),
    "people": True,
    "keys": ("2024-01-01", "2024-01-02", "2024-02-29"),
    "bounds": (("2024-01-01", "2024-03-31"), ("2024-01-02", "2024-01-03")),
}
NAT = -(2**63)
_INTERVALS = (pd.Interval(0, 1), pd.Interval(1, 2), pd.Interval(5, 6, "left"), pd.Interval(0, 1, "both"), pd.Interval(0, 1, "neither"), pd.Interval(pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02")))  # fmt: skip
_MOMENTS = (
    *(
        pd.Timestamp("2024-01-01"),
        datetime(2024, 1, 2),
        date(2024, 1, 3),
        np.datetime64(10**9, "Y"),
        np.datetime64(2**62, "s"),
    ),
    *(
        datetime(9999, 12, 31),
        datetime(1, 1, 1),
        pd.Timestamp("2024-01-01", tz="Asia/Tokyo"),
        pd.Timestamp("2024-01-01", tz="UTC"),
    ),
    *(
        np.datetime64("1600-01-01"),
        pd.Timestamp("2024-01-01").as_unit("s"),
        pd.NaT,
        datetime(2024, 1, 1, tzinfo=EvilZone()),
    ),
)


def _times(unit: str) -> dict[str, Any]:
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    far = (
        2**63 - 1,
        -(2**63) + 1,
        0,
        -1,
        253_402_300_800,
        -62_135_596_801,
        2**60,
        1_711_846_800,
        1_729_990_800,
    )
    inside = tuple(
        x if abs(x) > 2**59 else x * scale for x in far if abs(x) > 2**59 or abs(x * scale) < 2**63
    )
    return {
        **_SECONDS,
        "tame": tuple(x * scale for x in _SECONDS["tame"]),
        "wild": (NAT, *inside),
        "marked": (6_549_981_247 * scale,),
    }


def _zoned(unit: str) -> dict[str, Any]:
    """Moments that a calendar with a zone can name: beyond them pandas itself fails to make the column."""
    words = _times(unit)
    scale = {"s": 1, "us": 10**6, "ns": 10**9}[unit]
    return {**words, "wild": tuple(x for x in words["wild"] if x == NAT or abs(x) < 10**10 * scale)}


_LISTS: dict[str, Any] = {
    "family": "other",
    "tame": (["a"], ["a", "b"], ["c"], ["b", "b"]),
    "wild": (None, [], [None], ["", NUL], [LONG], ["a"] * 200, [None, "a"]),
    "marked": ([WORD],),
}
_CATS = ("a", "b", "c", "unused", "never", NUL, WORD)
_MIXED_CATS = ("a", 1, 2.5, False, (1, 2), NUL, WORD, 2**63, pd.Timestamp("2024-01-01"))
_LIST_CELLS = (["a"], ["a", "b"], ["c"], ("b",), "a")

_ALL = [
    *(Kind(f"int{b}", build=numpy_of(f"int{b}"), **_ints(-(2 ** (b - 1)), 2 ** (b - 1) - 1)) for b in (8, 16, 32, 64)),
    *(Kind(f"uint{b}", build=numpy_of(f"uint{b}"), **_ints(0, 2**b - 1)) for b in (8, 32, 64)),
    Kind("int64 big-endian", build=numpy_of(">i8"), **_ints(-(2**63), 2**63 - 1)),
    *(Kind(n, build=masked_of(n), **_nullable(_ints(lo, hi))) for n, lo, hi in (("Int64", -(2**63), 2**63 - 1), ("UInt64", 0, 2**64 - 1), ("Int8", -128, 127))),
    Kind("int64[pyarrow]", build=arrow_of(pa.int64()), **_nullable(_ints(-(2**63), 2**63 - 1))),
    Kind("uint64[pyarrow]", build=arrow_of(pa.uint64()), **_nullable(_ints(0, 2**64 - 1))),
    Kind("float64", build=floats_of("f8"), **_FLOAT),
    *(Kind(n, build=floats_of(d), **{**_FLOAT, "people": False}) for n, d in (("float32", "f4"), ("float16", "f2"), ("longdouble", "g"), ("float64 big-endian", ">f8"))),
    Kind("Float64", build=masked_of("Float64"), **_FLOAT),
    Kind("double[pyarrow]", build=arrow_of(pa.float64()), **_FLOAT),
    Kind("sparse", build=sparse_of(np.nan), **{**_FLOAT, "people": False, "wild": (np.nan, np.inf, -0.0, 1e308)}),
    Kind("decimal128", "number", arrow_of(pa.decimal128(20, 3)), (Decimal("1.5"), Decimal("2.000"), Decimal("0.125")), (None, Decimal("-0.001"), Decimal("99999999999999999.999"), Decimal(2**53 + 1)), (Decimal(NUMBER),), keys=(1.5, 2, Decimal("0.125"))),
    Kind("bool", "bool", numpy_of("bool"), (True, False), (), bounds=((0, 1),)),
    Kind("boolean", "bool", masked_of("boolean"), (True, False), (None,), bounds=((0, 1),), keys=(True, False, None)),
    Kind("bool[pyarrow]", "bool", arrow_of(pa.bool_()), (True, False), (None,), bounds=((0, 1),), keys=(True, False)),
    Kind("str", build=masked_of("str"), **_TEXT),
    Kind("string[python]", build=masked_of(pd.StringDtype("python")), **_HALVES),
    Kind("string[pyarrow]", build=masked_of(pd.StringDtype("pyarrow")), **_TEXT),
    Kind("string arrow", build=arrow_of(pa.string()), **_TEXT),
    Kind("large_string arrow", build=arrow_of(pa.large_string()), **_TEXT),
    Kind("string_view arrow", build=viewed_text, **_TEXT),
    Kind("dictionary arrow", build=lambda cells: _arrow(pa.array(list(cells), type=pa.string()).dictionary_encode()), **_TEXT),
    Kind("raw string", build=raw_text(False), **_RAW),
    Kind("raw large_string", build=raw_text(False, pa.large_string()), **_RAW),
    Kind("raw dictionary", build=raw_text(True), **_RAW),
    Kind("raw str", build=pandas_over_raw, **_RAW),
    Kind("text objects", build=objects_of, **{**_HALVES, "family": "label"}),
    Kind("objects", "label", objects_of, ("a", "b", 1, 2.5, "c"), _MIXED, _MARKED_OBJECTS, keys=_KEYS),
    Kind("interval objects", "label", objects_of, _INTERVALS[:2], (*_INTERVALS[2:], None, "a", 1), (pd.Interval(0, NUMBER),), keys=_INTERVALS[:2]),
    Kind("moment objects", "label", objects_of, _MOMENTS[:3], (*_MOMENTS[3:], None, "a"), (datetime(YEAR, 7, 19),), keys=_MOMENTS[:2]),
    Kind("number objects", "label", objects_of, (1, 2.5, 3), (2**63, 2**63 - 1, -(2**63) - 1, 2.0**63, 10**400, 10**30, Decimal("0.1"), Decimal("1E+9999"), 0.1, True, -0.0, None, np.uint64(2**64 - 1), "1"), (NUMBER,), keys=(1, 2.5, 2**63, 2**63 - 1, 0.5)),
    Kind("list objects", "lists", objects_of, _LIST_CELLS, _MIXED, _MARKED_OBJECTS, keys=("a", "b", "c")),
    Kind("category", "label", categories_of(_CATS), _CATS[:3], (None, *_CATS[5:6]), _CATS[6:], people=True, keys=("a", "b", "unused", NUL)),
    Kind("category ordered", "label", categories_of((1, 2, 3, 9, NUMBER), True), (1, 2, 3), (None,), (NUMBER,), people=True, keys=(1, 2, 9)),
    Kind("category mixed", "label", categories_of(_MIXED_CATS), _MIXED_CATS[:3], (*_MIXED_CATS[3:6], *_MIXED_CATS[7:], None), _MIXED_CATS[6:7], keys=("a", 1, True, 2**63)),
    *(Kind(f"datetime64[{u}]", build=ticks_of(u), **_times(u)) for u in ("s", "ms", "us", "ns")),
    *(Kind(f"datetime64[{u}, {z}]", build=ticks_of(u, z), **_zoned(u)) for u, z in (("s", "Europe/Paris"), ("ns", "UTC"), ("us", "America/St_Johns"))),
    Kind("timestamp arrow", build=arrow_of(pa.timestamp("us")), **{**_times("us"), "wild": (None, *_times("us")["wild"][1:]), "people": False}),
    Kind("timestamp arrow tz", build=arrow_of(pa.timestamp("s", "Asia/Tokyo")), **{**_zoned("s"), "wild": (None, *_zoned("s")["wild"][1:]), "people": False}),
    Kind("date32", "time", arrow_of(pa.date32()), (19723, 19724, 19754), (None, 2**31 - 1, -(2**31), 0), (75809,), keys=("2024-01-01", "2024-01-02"), bounds=_SECONDS["bounds"]),
    Kind("time64", "other", arrow_of(pa.time64("us")), (0, 1, 10**6), (None, 86_399_999_999)),
    Kind("duration", "other", arrow_of(pa.duration("us")), (0, 1, 10**6), (None, 2**63 - 1, -(2**63))),
    Kind("timedelta64", "other", lambda cells: pd.Series(np.array(list(cells), dtype="i8").view("m8[us]")), (0, 1, 10**6), (NAT, 2**63 - 1)),
    Kind("binary", "other", arrow_of(pa.binary()), (b"a", b"b"), (None, b"", b"\xff\xfe", b"\0"), (WORD.encode(),), people=False),
    Kind("struct", "other", arrow_of(pa.struct({"x": pa.int64(), "y": pa.string()})), ({"x": 1, "y": "a"}, {"x": 2, "y": "b"}), (None, {"x": None, "y": None}), ({"x": NUMBER, "y": WORD},)),
    Kind("null", "other", arrow_of(pa.null()), (None,), ()),
    Kind("period", "other", periods_of, ("2024-01", "2024-02"), (None, "0001-01", "9999-12"), (f"{YEAR}-07",)),
    Kind("interval", "label", intervals_of, ((0.0, 1.0), (1.0, 2.0)), (None, (-np.inf, np.inf), (0.0, 0.0)), ((0.0, float(NUMBER)),), keys=(pd.Interval(0, 1), pd.Interval(1, 2))),
    Kind("complex", "other", numpy_of("c16"), (1 + 1j, 2 + 0j), (complex("nan"), complex("inf"))),
    Kind("list<string>", build=arrow_of(pa.list_(pa.string())), **{**_LISTS, "family": "lists"}),
    Kind("large_list<double>", "lists", arrow_of(pa.large_list(pa.float64())), ([1.0], [1.0, 2.0], [0.5]), (None, [], [None], [np.nan, np.inf, -0.0]), ([float(NUMBER)],), keys=(1.0, 2.0)),
]  # fmt: skip
KINDS: dict[str, Kind] = {k.name: k for k in _ALL}


@dataclass
class Column:
    """A column of a program: its name, its kind, and the places of the cells of two neighbouring frames."""

    name: Any
    kind: Kind
    cells: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))

    def build(self, side: int) -> Any:
        known = self.kind.cells
        return self.kind.build([known[i] for i in self.cells[side]])
