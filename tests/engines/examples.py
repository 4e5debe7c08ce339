"""An example of every function of a row, by the registries of the package, and a table of nasty cells of every kind.

`missing` names what stands in a registry and has no example: a new node, function, text or time function, operator, cast or
function of numpy fails a test until it has one here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dpframe import _expr as ex
from dpframe._expr import Column, Expr
from dpframe._frame.columns.traced import list_text_methods
from tests.engines.entries import NUMBERS, PAIRS, UFUNCS, apply_example
from tests.fuzz.cells import NANS
from tests.internals import NODES, NUMPY_FUNCTIONS, TRACED

Columns = Mapping[str, Column]
Example = Callable[[Columns], Expr]

TINY, HUGE = 5e-324, 1.7976931348623157e308
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -1.5,
    2.0,
    2.5,
    TINY,
    -TINY,
    2.2e-308,
    HUGE,
    -HUGE,
    np.inf,
    -np.inf,
    *NANS,
    2.0**53 + 2,
    1e22,
    709.9,
    0.1,
]
LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
TEXTS = [
    "",
    "a",
    "ab-c",
    "A1",
    " x ",
    "ß",
    "Éa",
    "a\nb",
    "²",
    "aaab",
    "a\0",
    "\0",
    "12",
    "-1e5",
    "1e400",
    "2024-02-30",
    "2024-02-29",
    "9999-12-31 23:59:59",
    "0001-01-01",
    "𝒳",
    "e\u0301",
    "x" * 70_000,
    "İ",
    "-" * 300,
    None,
]
HALVES = ["\ud800", "a\udfff"]  # which no text column of Arrow holds
LABELS = [
    *TEXTS,
    *HALVES,
    0,
    -0.0,
    0.0,
    1,
    True,
    1.5,
    Decimal("1e999999"),
    Decimal("NaN"),
    10**400,
    np.nan,
    pd.NA,
    pd.Timestamp("2024-01-01"),
    pd.Interval(0, 1),
    [1],
    {},
    b"a",
    np.float64(2.5),
    np.int8(3),
]
TICKS = [
    0,
    1,
    -1,
    86_400,
    MOST,
    LEAST + 1,
    LEAST,
    1_711_846_800,
    -62_135_596_800,
    253_402_300_799,
    2**40,
    -(2**40),
    1_709_164_800,
]


def _cycled(cells: list[Any], n: int) -> list[Any]:
    return list(itertools.islice(itertools.cycle(cells), n))


def nasty_frame() -> pd.DataFrame:
    """Return a table in which each pair of special numbers has a row, and all others are dealt out."""
    pairs = np.array(list(itertools.product(FLOATS, FLOATS)))
    n = len(pairs)
    flags = _cycled([True, False, None, True, None, False, False], n)
    whole = _cycled([0, 1, -1, 7, -128, 127, 2], n)
    wide = _cycled([0, 1, -1, LEAST, MOST, 2**53 + 1, -7, 3, None, 2], n)
    with np.errstate(all="ignore"):
        singles, halves = pairs[:, 0].astype(np.float32), pairs[:, 1].astype(np.float16)
    ticks = np.array(_cycled(TICKS, n))
    columns: dict[str, Any] = {
        "x": pairs[:, 0],
        "y": pairs[:, 1],
        "f32": singles,
        "f16": halves,
        "i8": np.array(whole, dtype=np.int8),
        "i64": np.array([w or 0 for w in wide]),
        "u64": np.array(_cycled([0, 1, 2**64 - 1, 2**63, 2**53 + 1], n), dtype=np.uint64),
        "b": np.array([bool(f) for f in flags]),
        "masked": pd.array(wide, dtype="Int64"),
        "flag": pd.array(flags, dtype="boolean"),
        "dec": pd.array(
            _cycled([Decimal("1.5"), Decimal("-0.0"), None, Decimal(10) ** 36], n),
            dtype=pd.ArrowDtype(pa.decimal128(38, 1)),
        ),
        "s": pd.Series(_cycled(TEXTS, n), dtype="str"),
        "r": pd.Series(_cycled(TEXTS[::-1], n), dtype=pd.ArrowDtype(pa.large_string())),
        "o": pd.Series(np.fromiter(_cycled(LABELS, n), dtype=object, count=n)),
        "cat": pd.Categorical(_cycled(["a", "b", None, "c-d"], n)),
        "t": pd.Series(ticks.view("M8[s]")),
        "ns": pd.Series(np.array(_cycled(TICKS[::-1], n)).view("M8[ns]")),
        "us": pd.Series(
            np.array(_cycled([*TICKS, 10**15, 1_711_846_800_000_000], n)).view("M8[us]")
        ),
        "z": pd.Series(np.array(_cycled([*TICKS, 10**15, 1_711_846_800_000_000], n)).view("M8[us]"))
        .dt.tz_localize("UTC")
        .dt.tz_convert("Europe/Berlin"),
        "d": pd.Series(np.array(_cycled(TICKS[:7], n)).view("m8[ns]")),
        "ds": pd.Series(np.array(_cycled(TICKS[::-1], n)).view("m8[s]")),
    }
    return pd.DataFrame(columns)


_NUMBER_COLUMNS = ("x", "f32", "f16", "i8", "i64", "u64", "b", "masked", "flag", "dec")
SOME = {
    "time": ("t", "ns", "us", "z"),
    "duration": ("d", "ds"),
    "text": ("s", "r", "o", "cat"),
    "number": _NUMBER_COLUMNS,
}


def _each(kind: str, make: Callable[[Expr], Expr]) -> list[Example]:
    """Return the example of each column of a kind."""
    return [lambda c, name=name: make(c[name]) for name in SOME[kind]]


def _texts(*made: Callable[[Expr], Expr]) -> list[Example]:
    return [one for make in made for one in _each("text", make)]


_TEXT_ARGS: dict[str, list[tuple[Any, ...]]] = {
    **{
        name: [("a",), ("",), ("\ud800",)]
        for name in ("startswith", "endswith", "removeprefix", "removesuffix", "find", "rfind")
    },
    "contains": [("a",), ("a.",), ("A", False), ("a+",)],
    "slice": [(1, None, None), (None, None, -1), (-(10**30), 10**30, 2)],
    "replace": [
        *[("a", "b"), ("", "x" * 50), ("a", "b", 1)],
        (r"(a)\b", r"\1z", -1, None, 0, True),
        (r"\B", "z", 2, None, 0, True),
    ],
    **{name: [(r"a+|\b",), ("[ab]+",)] for name in ("match", "fullmatch", "count")},
    **{name: [(5,), (-(10**4), "ß")] for name in ("ljust", "rjust", "center")},
    "pad": [(5, "both", "\0")],
    "repeat": [(3,), (0,), (-1,), (10_000,)],
    "zfill": [(7,), (10_000,)],
    "slice_replace": [(0, 1, "Z"), (None, -(10**30), None)],
    "get": [(0,), (-1,), (10**30,)],
}
_ENDS = (0.0, -0.0, TINY, -1.0)
_METHODS: dict[str, list[Example]] = {
    "isin": [
        lambda c: ex.is_in(c["x"], [0, 1.5, np.nan, np.inf]),
        lambda c: ex.is_in(c["o"], [1, "a", None, "\ud800"]),
        lambda c: ex.is_in(c["z"], ["2024-03-31 02:30"]),
        lambda c: ex.is_in(c["u64"], [2**63]),
    ],
    "between": [
        lambda c: ex.between(c["x"], -0.0, 0.0),
        lambda c: ex.between(c["d"], "-1h", "1h", "left"),
        lambda c: ex.between(c["us"], "0001-01-01", "9999-12-31"),
    ],
    **{
        name: [
            lambda c, name=name, k=k: ex.METHODS[name](c[k])
            for k in ("x", "s", "o", "t", "d", "flag")
        ]
        for name in ("isna", "isnull", "notna", "notnull")
    },
    "fillna": [
        lambda c: ex.fill(c["x"], -0.0),
        lambda c: ex.fill(c["s"], "\ud800"),
        lambda c: ex.fill(c["z"], "1600-01-01"),
        lambda c: ex.fill(c["d"], "1h"),
        lambda c: ex.fill(c["masked"], 2**63),
        lambda c: ex.fill(c["flag"], True),
        lambda c: ex.fill(c["o"], 1),
    ],
    "clip": [
        *(lambda c, a=a, b=b: ex.clip(c["x"], *sorted((a, b))) for a in _ENDS for b in _ENDS),
        lambda c: ex.clip(c["i64"], -5, 5),
        lambda c: ex.clip(c["u64"], None, 2**63),
        lambda c: ex.clip(c["f32"], -0.0, None),
        lambda c: ex.clip(c["masked"], 0.5),
    ],
    "abs": _each("number", ex.magnitude) + _each("duration", ex.magnitude),
    "round": [lambda c, d=d: ex.round_to(c["x"], d) for d in (0, 1, -1, 16, 300, -300)]
    + [lambda c: ex.round_to(c["f16"], 1)],
    "astype": [
        one
        for to in ("float", "int", "bool")
        for one in _each("number", lambda x, to=to: ex.cast(x, to))
    ]
    + [lambda c: ex.cast(c["x"], "int")],
    "where": [
        lambda c: ex.where(c["x"], c["flag"], c["y"]),
        lambda c: ex.where(c["s"], c["b"], c["r"]),
        lambda c: ex.where(c["t"], c["b"], c["ns"]),
        lambda c: ex.where(c["d"], c["b"], c["ds"]),
        lambda c: ex.where(c["i8"], c["b"], 2**70),
        lambda c: ex.where(c["o"], c["flag"], "z"),
    ],
    "mask": [
        lambda c: ex.mask(c["x"], c["flag"]),
        lambda c: ex.mask(c["masked"], c["b"], -1),
        lambda c: ex.mask(c["b"], c["flag"], c["flag"]),
        lambda c: ex.mask(c["t"], c["b"]),
    ],
}
_DATE_METHODS: dict[str, list[Example]] = {
    **{
        op: [
            one
            for freq in ("D", "7h", "1ns", "100000D")
            for kind in ("time", "duration")
            for one in _each(kind, lambda x, op=op, freq=freq: ex.time_part(x, op, freq))
        ]
        for op in ("floor", "ceil", "round")
    },
    "to_period": [
        one
        for freq in "YAQMWDhH"
        for one in _each("time", lambda x, freq=freq: ex.time_part(x, "to_period", freq))
    ],
    "strftime": [
        one
        for form in ("%Y-%m-%d", "%H:%M:%S.%f %j %U", "%G-%V %A %b %%")
        for one in _each("time", lambda x, form=form: ex.time_part(x, "strftime", form))
    ],
    "tz_convert": [
        lambda c: ex.time_part(c["z"], "tz_convert", "Asia/Tokyo"),
        lambda c: ex.time_part(c["z"], "tz_convert", None),
    ],
    "tz_localize": [
        *(
            lambda c, k=k, zone=zone: ex.time_part(c[k], "tz_localize", zone)
            for k in ("t", "ns", "us")
            for zone in ("Europe/Berlin", "America/New_York", "UTC+02:00")
        ),
        lambda c: ex.time_part(c["z"], "tz_localize", None),
    ],
}


def _paired(make: Callable[[Expr, Expr], Expr]) -> list[Example]:
    """Return examples of two numbers: of a pair, of other dtypes, with a constant on either side."""
    return [
        lambda c: make(c["x"], c["y"]),
        lambda c: make(c["y"], c["f32"]),
        lambda c: make(c["f16"], c["i64"]),
        lambda c: make(c["masked"], c["u64"]),
        *(lambda c, k=k: make(c["x"], ex.constant(k)) for k in (2.0, -0.0, 0.5, -1.0, 3)),
        *(lambda c, k=k: make(ex.constant(k), c["x"]) for k in (2.0, 0.0)),
    ]


def _of_numbers(make: Callable[[Expr], Expr]) -> list[Example]:
    """Return examples of one number, of every dtype, and one in which the sign of a zero shows."""
    return [
        *_each("number", make),
        lambda c: ex.arithmetic("/", ex.constant(1.0), make(ex.negate(c["x"]))),
    ]


def _of_two_conditions(make: Callable[..., Expr]) -> list[Example]:
    return [
        lambda c: make(c["flag"], c["b"]),
        lambda c: make(ex.compare(">", c["x"], c["y"]), c["flag"]),
    ]


_OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "power": "**",
    "float_power": "**",
}
_COMPARISONS = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_CONDITIONS = (
    "logical_and",
    "bitwise_and",
    "logical_or",
    "bitwise_or",
    "logical_xor",
    "bitwise_xor",
)
_OF_CELLS = ("isnan", "isnat", "positive")
_UFUNCS: dict[str, list[Example]] = {
    **{name: _paired(UFUNCS[name]) for name in (*PAIRS, *_OPERATORS, *_COMPARISONS)},
    **{name: _of_two_conditions(UFUNCS[name]) for name in _CONDITIONS},
    **{name: [lambda c, name=name: UFUNCS[name](c["flag"])] for name in ("logical_not", "invert")},
    **{
        name: [lambda c, name=name, k=k: UFUNCS[name](c[k]) for k in ("x", "t", "d")]
        for name in _OF_CELLS
    },
    **{name: _each("number", UFUNCS[name]) for name in ("isfinite", "isinf")},
    **{
        name: _of_numbers(UFUNCS[name])
        for name in (
            *NUMBERS,
            "deg2rad",
            "rad2deg",
            "absolute",
            "fabs",
            "rint",
            "square",
            "reciprocal",
            "negative",
        )
    },
}
# Functions of numpy that are releases, or that are written with others.
_OTHERS = {
    "mean",
    "sum",
    "median",
    "std",
    "var",
    "min",
    "amin",
    "max",
    "amax",
    "quantile",
    "percentile",
    "unique",
    "histogram",
    "histogram2d",
    "corrcoef",
    "cov",
}
_NUMPY: dict[str, list[Example]] = {
    **{name: [] for name in _OTHERS},
    "where": _METHODS["where"],
    "select": _METHODS["where"],
    "clip": _METHODS["clip"],
    "round": _METHODS["round"],
    "around": _METHODS["round"],
    "isclose": [
        lambda c: ex.compare(
            "<=", ex.absolute(ex.arithmetic("-", c["x"], c["y"])), ex.constant(1e-8)
        )
    ],
    "fix": [lambda c: ex.number_function("trunc", c["x"])],
}
_TIMES = [(a, b) for a in ("t", "ns", "us", "z") for b in ("d", "ds")]
_NODES: dict[str, list[Example]] = {
    "Column": [lambda c, k=k: c[k] for k in nasty_frame().columns],
    "Within": [],  # of the rows of a person: tests/engines/test_within.py has them
    "Constant": [
        lambda c, v=v: ex.choose(c["b"], ex.constant(v), None)
        for v in (1, -0.0, 2**70, "\ud800", True, pd.Timestamp("1600-01-01"), pd.Timedelta("1h"))
    ],
    "Compare": [
        one
        for op in _COMPARISONS.values()
        for one in [
            *_paired(lambda x, y, op=op: ex.compare(op, x, y)),
            lambda c, op=op: ex.compare(op, c["s"], c["r"]),
            lambda c, op=op: ex.compare(op, c["s"], ex.constant("a")),
            lambda c, op=op: ex.compare(op, c["t"], c["ns"]),
            lambda c, op=op: ex.compare(op, c["z"], ex.constant("2024-01-01")),
            lambda c, op=op: ex.compare(op, c["d"], c["ds"]),
            lambda c, op=op: ex.compare(op, c["u64"], ex.constant(2**63 + 0.0)),
        ]
    ]
    + [
        lambda c: ex.compare("==", c["o"], c["s"]),
        lambda c: ex.compare("!=", c["o"], c["cat"]),
        lambda c: ex.compare("==", c["o"], ex.constant(1)),
    ],
    "And": _of_two_conditions(ex.logical_and),
    "Or": _of_two_conditions(ex.logical_or),
    "Not": [lambda c: ex.logical_not(c["flag"])],
    "IsNull": _METHODS["isna"],
    "IsIn": _METHODS["isin"],
    "Arithmetic": [
        one for op in ex.ARITHMETIC for one in _paired(lambda x, y, op=op: ex.arithmetic(op, x, y))
    ],
    "Unary": _of_numbers(ex.negate) + _of_numbers(ex.absolute),
    "Round": _METHODS["round"],
    "Clip": _METHODS["clip"],
    "Fill": _METHODS["fillna"],
    "Cast": [
        *_METHODS["astype"],
        lambda c: ex.cast(ex.cast(c["x"], "int"), "str"),
        lambda c: ex.cast(c["i64"], "str"),
        lambda c: ex.cast(c["flag"], "str"),
        lambda c: ex.cast(c["o"], "str"),
    ],
    "Call": [],  # the registry of the catalogue has them
    "Cut": [
        lambda c: ex.cut(c["x"], [-1, -0.0, 1.5]),
        lambda c: ex.cut(c["u64"], [0.0, np.inf], labels=["a"], right=False),
        lambda c: ex.cut(c["masked"], [-(2**63), 0, 2**63]),
    ],
    "MapDict": [
        lambda c: ex.map_dict(c["x"], {0: 1, 1.5: None, np.nan: 3}),
        lambda c: ex.map_dict(c["s"], {"a": "b", None: "\ud800"}),
        lambda c: ex.map_dict(c["o"], {1: 2**63, "a": 0.5}),
        lambda c: ex.map_dict(c["t"], {"1970-01-01": pd.Timestamp("1600-01-01")}),
        lambda c: ex.map_dict(c["b"], {True: False}),
    ],
    "Elapsed": [
        lambda c, a=a, b=b, op=op: ex.operate_on_times(op, c[a], c[b])
        for a, b in _TIMES
        for op in "+-"
    ]
    + [
        lambda c: ex.operate_on_times("-", c["t"], c["ns"]),
        lambda c: ex.operate_on_times("-", c["d"], c["ds"]),
        lambda c: ex.operate_on_times("+", c["ds"], c["ds"]),
    ],
    "Ratio": [
        lambda c, a=a, b=b, op=op: ex.operate_on_times(op, c[a], c[b])
        for a in ("d", "ds")
        for b in ("d", "ds")
        for op in ("/", "//")
    ],
    "If": _METHODS["where"],
}
_OF_PYTHON: dict[str, list[Example]] = {
    **{
        op.label: _texts(lambda x, op=op: ex.text_part(x, op.label))
        for op in list_text_methods().values()
    },
    "str": [lambda c: ex.cast(c["i64"], "str")],
    **{
        name: _each("number", lambda x, name=name: ex.cast(x, name))
        for name in ("int", "float", "bool")
    },
    "abs": _METHODS["abs"],
    "round": _METHODS["round"],
}
_CALLS: dict[str, list[Example]] = {
    "abs": _METHODS["abs"],
    "where": _METHODS["where"],
}

# Examples of entries beside their own, on cells that are not theirs: long texts, halves of characters, all dtypes.
_MORE: dict[str, list[Example]] = {
    **{
        f"str.{name}": _texts(
            *(lambda x, name=name, args=args: ex.text_part(x, name, *args) for args in given)
        )
        for name, given in _TEXT_ARGS.items()
    },
    **{f"np.{name}": _of_numbers(UFUNCS[name]) for name in NUMBERS},
    **{
        f"np.{name}": [
            *_paired(UFUNCS[name]),
            lambda c, name=name: ex.arithmetic(
                "/", ex.constant(1.0), UFUNCS[name](c["x"], ex.negate(c["x"]))
            ),
        ]
        for name in PAIRS
    },
    **{f"dt.{name}": made for name, made in _DATE_METHODS.items()},
    "str.extract": _texts(lambda x: ex.extract(x, r"(a)(.*)")[1]),
    "to_datetime": _texts(
        lambda x: ex.read_moment(x, "%Y-%m-%d"), lambda x: ex.read_moment(x, "%j %y")
    ),
}


def examples_of(op: Any) -> list[Example]:
    """Return the examples of an entry, on the columns of each kind that it takes."""
    kinds = [{"label": "text", "other": "text", "bool": "number"}.get(kind, kind) for kind in op.of]
    made = []
    for kind in dict.fromkeys(kinds):
        for example in op.examples:
            make = lambda x, example=example: apply_example(op, example, x)  # noqa: E731
            zone = op.name in (
                "dt.tz_convert",
                "dt.tz_localize",
            )  # the columns of which are named above
            made += [] if zone else _each(kind, make)
    if op.kind == "other":
        made = [
            lambda c, one=one, ask=ask: ex.text_part(one(c), *ask)
            for one in made
            for ask in (("get", 0), ("get", -1), ("len",))
        ]
    return made


_ENTRIES: dict[str, list[Example]] = {
    name: examples_of(op) + _MORE.get(name, []) for name, op in ex.OPS.items()
}

# Each registry of the package, and its examples.
REGISTRIES: dict[str, tuple[set[str], dict[str, list[Example]]]] = {
    "catalogue": (set(ex.OPS), _ENTRIES),
    "arithmetic": (
        set(ex.ARITHMETIC),
        {op: _paired(lambda x, y, op=op: ex.arithmetic(op, x, y)) for op in _OPERATORS.values()},
    ),
    "casts": (set(ex.CASTS), dict.fromkeys(("float", "int", "bool", "str"), _NODES["Cast"])),
    "methods": (set(ex.METHODS), _METHODS),
    "calls": (set(ex.CALLS), _CALLS),
    "ufuncs": (set(UFUNCS), _UFUNCS),
    "numpy": (set(NUMPY_FUNCTIONS), _NUMPY),
    "nodes": ({node.__name__ for node in NODES}, _NODES),
    "traced": ({f.__name__ for f in (*TRACED, *list_text_methods())}, _OF_PYTHON),
}
# What has no value of a row by itself.
WITHOUT = {("nodes", "Within"), ("nodes", "Call"), *(("numpy", name) for name in _OTHERS)}


def missing() -> list[tuple[str, str]]:
    """Return what stands in a registry of the package and has no example, and examples of what is no longer there."""
    return [
        (registry, name)
        for registry, (there, known) in REGISTRIES.items()
        for name in there ^ known.keys()
        | {n for n in there & known.keys() if not known[n] and (registry, n) not in WITHOUT}
    ]


def examples(registry: str, columns: Columns) -> dict[Expr, str]:
    """Return the different expressions of the examples of a registry, by a text for each."""
    made = {
        name: [make(columns) for make in makes] for name, makes in REGISTRIES[registry][1].items()
    }
    return {e: f"{name}: {e}"[:200] for name, found in made.items() for e in found}


def shared_out(columns: Columns) -> dict[str, dict[Expr, str]]:
    """Return the examples of each registry that are none of a registry before it."""
    seen: set[Expr] = set()
    found = {}
    for registry in REGISTRIES:
        own = {e: text for e, text in examples(registry, columns).items() if e not in seen}
        seen |= own.keys()
        found[registry] = own
    return found
