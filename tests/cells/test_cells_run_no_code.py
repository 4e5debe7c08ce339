"""No code that belongs to a cell runs, whatever is asked: neither a conversion to an array nor a comparison nor a text."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

N = 24


def ran(*_, **__):
    raise RuntimeError("a cell's own code ran: 42")


QUESTIONS = (
    *(
        "array",
        "array_interface",
        "array_struct",
        "eq",
        "ne",
        "lt",
        "hash",
        "repr",
        "str",
        "len",
        "iter",
        "index",
        "int",
    ),
    *(
        "float",
        "bool",
        "getitem",
        "contains",
        "format",
        "bytes",
        "complex",
        "copy",
        "deepcopy",
        "reduce_ex",
        "call",
    ),
)
CODE = {f"__{name}__": ran for name in QUESTIONS}
CODE |= {
    name: property(ran)
    for name in ("__array_interface__", "__array_struct__", "__dataclass_fields__")
}
Hostile = type("Hostile", (), CODE)
HostileText = type("HostileText", (str,), CODE)
HostileNumber = type("HostileNumber", (float,), CODE)
HostileDecimal = type("HostileDecimal", (Decimal,), CODE)
HostileList = type("HostileList", (list,), CODE)


def looped():
    cell = []
    cell += [cell, cell]
    return cell


CELLS = {
    "hostile": Hostile,
    "text": lambda: HostileText("a"),
    "number": lambda: HostileNumber("nan"),
    "decimal": lambda: HostileDecimal("1"),
    "list": lambda: HostileList([1]),
    "in a list": lambda: [Hostile()],
    "in a tuple": lambda: (Hostile(), [Hostile()]),
    "in a dict": lambda: {"a": Hostile()},
    "in an array": lambda: np.fromiter([Hostile()], dtype=object, count=1),
    "signalling": lambda: Decimal("sNaN"),
    "in itself": looped,
    "deep": lambda: eval("[" * 80 + "]" * 80),
    "long": lambda: 2**60_000,
    "far": lambda: Decimal("1e999999"),
    "half a character": lambda: "\ud800",
    "bytes": lambda: b"\xff",
    "far away": lambda: np.datetime64(2**62, "s"),
}


def frame_of(cell):
    """With one hostile cell, among texts, and once in a list."""
    o = np.fromiter([cell(), *["a", "b"] * (N // 2), None], dtype=object, count=N + 2)
    lists = np.fromiter(
        [[cell(), "a"], *[["a"], ["b", "a"]] * (N // 2), None], dtype=object, count=N + 2
    )
    return pd.DataFrame(
        {"id": range(N + 2), "o": pd.Series(o, dtype=object), "l": pd.Series(lists, dtype=object)}
    )


PUBLIC = {"o": ["a", "b"], "k": [1.0, 2.0]}
ASKED = {
    "explode": lambda p: p.explode("o", max_rows=1).count(epsilon=1),
    "explode a list": lambda p: (
        p.explode("l", max_rows=2, max_groups=2).groupby("l", keys=["a"]).size(epsilon=1)
    ),
    "melt": lambda p: p.melt(id_vars=["id"], value_vars=["o", "l"], max_rows=2).count(epsilon=1),
    "merge": lambda p: p.merge(pd.DataFrame(PUBLIC), on="o").sum("k", epsilon=1),
    "left merge": lambda p: p.merge(pd.DataFrame(PUBLIC), on="o", how="left").count("o", epsilon=1),
    "isin": lambda p: p[p["o"].isin(["a", 1, None])].count(epsilon=1),
    "equal": lambda p: p[p["o"] == "a"].count(epsilon=1),
    "of two columns": lambda p: p[p["o"] != p["l"]].count(epsilon=1),
    "null": lambda p: p[p["o"].isna()].count(epsilon=1),
    "map": lambda p: p.assign(m=p["o"].map({"a": 1, None: 2})).sum("m", bounds=(0, 2), epsilon=1),
    "fill": lambda p: p.assign(m=p["o"].fillna("c")).value_counts("m", keys=["c"], epsilon=1),
    "text": lambda p: p[p["o"].str.startswith("a")].count(epsilon=1),
    "listed keys": lambda p: p.groupby("o", keys=["a", None]).size(epsilon=1),
    "other": lambda p: p.groupby("o", keys=["a"], other="rest").size(epsilon=1),
    "combinations": lambda p: p.groupby(["o", "l"], keys=[("a", "b"), ("b", None)]).size(epsilon=1),
    "found keys": lambda p: p.unique("o", epsilon=1),
    "found combinations": lambda p: p.unique(["o", "l"], epsilon=1),
    "argmax": lambda p: p.argmax("o", keys=["a", "b"], epsilon=1),
    "crosstab": lambda p: p.crosstab("o", "l", keys={"o": ["a"], "l": ["b"]}, epsilon=1),
    "nunique": lambda p: p.nunique("o", epsilon=1),
    "describe": lambda p: p.count("l", epsilon=1),
    "pipe": lambda p: p.pipe(lambda d: d, max_rows=1, max_groups=1).count(epsilon=1),
}


def slow(names, *those):
    """Names as parameters; a list that holds itself is copied for a long time by pipe."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in those else name for name in names]


@pytest.mark.parametrize("ask", slow(ASKED, "pipe"))
def test_no_question_runs_them(ask):
    ASKED[ask](
        pd.concat([frame_of(c) for c in CELLS.values()], ignore_index=True).dp.open(
            1000, delta=1e-6
        )
    )


@pytest.mark.parametrize("cell", slow(CELLS, "in itself"))
def test_no_question_runs_it_where_it_is_the_only_one(cell):
    p = frame_of(CELLS[cell]).dp.open(1000, delta=1e-6)
    for ask in ASKED.values():
        ask(p)


@pytest.mark.parametrize("cell", CELLS)
def test_no_question_about_people_that_such_cells_name_runs_it(cell):
    frame = frame_of(CELLS[cell])
    for names in ("o", ["o", "id"], ["l", "o"]):
        p = (
            frame.copy(deep=True)
            .set_axis(pd.RangeIndex(N + 2))
            .dp.open(1000, unit=names, max_rows=2, neighbors="replace-one")
        )
        assert len(p.randomize("id", bounds=(0, 9), epsilon=1)) % 2 == 0
        p.count(epsilon=1)
        p.pipe(lambda d: d).count(epsilon=1)


@pytest.mark.parametrize("people", [None, "o", "l"])
@pytest.mark.parametrize("cell", CELLS)
def test_a_ledger_is_opened(cell, people, tmp_path):
    frame = frame_of(CELLS[cell])
    p = frame.dp.open(
        1, ledger=str(tmp_path / "l.db"), population="p", unit=people, max_rows=people and 1
    )
    assert p.budget.spent == 0


COLUMNS = {
    "binary": lambda: pa.array([b"\xff\xfe", None] * N),
    "binary of a width": lambda: pa.array([b"\xff\xfe", None] * N, type=pa.binary(2)),
    "seconds": lambda: pa.array([2**62, -(2**62)] * N, type=pa.timestamp("s")),
    "zoned": lambda: pa.array([2**62, -(2**62)] * N, type=pa.timestamp("s", "Europe/Vienna")),
    "dates": lambda: pa.array([2**31 - 1, -(2**31)] * N, type=pa.date32()),
    "wide dates": lambda: pa.array([2**62, -(2**62)] * N, type=pa.date64()),
    "durations": lambda: pa.array([2**62, -(2**62)] * N, type=pa.duration("s")),
    "decimals": lambda: pa.array([Decimal(10) ** 37, None] * N),
    "wide decimals": lambda: pa.array([Decimal(10) ** 75, None] * N, type=pa.decimal256(76, 0)),
    "lists": lambda: pa.array([[b"\xff"], [None], None, []] * (N // 2)),
    "structs": lambda: pa.array(
        [{"a": 2**62}, None] * N, type=pa.struct([("a", pa.timestamp("s"))])
    ),
    "views": lambda: pa.array(
        ["a", "a text that is longer than twelve"] * N, type=pa.string_view()
    ),
    "nulls": lambda: pa.nulls(2 * N),
}


@pytest.mark.parametrize("cells", COLUMNS)
def test_a_ledger_is_opened_whatever_the_cells_of_arrow(cells, tmp_path):
    column = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([COLUMNS[cells]()])))
    frame = pd.DataFrame({"x": column, "n": range(2 * N)})
    p = frame.dp.open(1, ledger=str(tmp_path / "l.db"), population="p")
    assert p.budget.spent == 0


def test_a_ledger_is_opened_whatever_the_times(tmp_path):
    frame = pd.DataFrame({"t": np.array([2**62, -(2**62)] * N, dtype="M8[s]"), "n": range(2 * N)})
    assert frame.dp.open(1, ledger=str(tmp_path / "l.db"), population="p").budget.spent == 0
