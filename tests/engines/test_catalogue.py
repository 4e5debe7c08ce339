"""The catalogue of functions: each entry has examples that hold on numpy, and SQL that agrees with numpy on awkward cells."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe import _expr as ex
from dpframe._cells.encoding import encode
from dpframe.engines.functions.times import KERNELS as TIME_KERNELS
from dpframe.engines.sql.databases import SparkDatabase
from tests.engines import spark
from tests.engines.agreement import find_differences, make_frame
from tests.engines.conftest import Frame
from tests.engines.entries import apply_example, write_example
from tests.engines.written import cells_of, connected, in_duckdb, in_postgresql, in_sqlite

DATABASES = ("sqlite", "duckdb", "postgresql", "spark")  # those that CI has
WRITTEN = [op for op in ex.OPS.values() if op.sql is not None]


# Entries ------------------------------------------------------------------------------------------------------


def frame_of(op: Any, cell: Any) -> Frame:
    """Return a table with the cell of an example, and with a null."""
    if op.of == ("other",):
        cell = "-".join(cell)
    dtypes: dict[str, Any] = {"text": "str", "other": "str", "number": "float64"}
    dtype = dtypes.get(op.of[0])
    if op.of[0] in ("time", "duration"):
        series = pd.Series([cell, None]) if cell is not None else pd.Series([None], dtype="M8[us]")
        if cell is None and op.of == ("duration",):
            series = pd.Series([None], dtype="m8[us]")
    else:
        series = pd.Series([cell, None], dtype=dtype)
    return Frame(series.to_frame("x"))


def is_same(found: Any, expected: Any, zone: str | None) -> bool:
    if found is None or expected is None:
        return found is None and expected is None
    if isinstance(expected, pd.Timestamp):
        shown = pd.Timestamp(found)
        return (shown if zone is None else shown.tz_localize("UTC")) == expected
    if isinstance(expected, float):
        return bool(np.isclose(found, expected, rtol=1e-15, atol=0))
    return bool(found == expected)


def find_faults(op: Any) -> list[str]:
    """Return what is wrong with an entry on numpy: no example, no doc, or an example that does not hold."""
    faults = []
    if not op.examples:
        faults.append(f"{op.name} has no examples")
    if not (op.doc.startswith("Return ") and op.doc.endswith(".")):
        faults.append(f"{op.name} needs a doc that begins with Return: {op.doc!r}")
    has_kernel = op.name in TIME_KERNELS
    if (op.value is None) + (not has_kernel) == 2 and op.build is None:
        faults.append(f"{op.name} has no value")
    if op.value is not None and has_kernel:
        faults.append(f"{op.name} has a value and a kernel")
    for example in op.examples:
        f = frame_of(op, example[0])
        e = apply_example(op, example, f["x"])
        found = f.cells(e)[0]
        if not is_same(found, example[-1], e.tz):
            faults.append(f"{op.name}{example[:-1]!r} is {found!r}, and not {example[-1]!r}")
    return faults


@pytest.mark.kept
def test_catalogue_entries_have_examples_that_hold_on_numpy() -> None:
    assert [fault for op in ex.OPS.values() for fault in find_faults(op)] == []


def test_catalogue_entries_without_examples_or_with_wrong_ones_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twins: entries of which one thing is wrong."""
    op = ex.OPS["str.zfill"]
    assert find_faults(replace(op, examples=())) == ["str.zfill has no examples"]
    assert find_faults(replace(op, examples=[("1", 3, "01")])) == [
        "str.zfill('1', 3) is '001', and not '01'"
    ]
    assert find_faults(replace(op, doc="Zeros in front."))
    assert "str.zfill has no value" in find_faults(replace(op, value=None, examples=()))
    broken = replace(op, value=str.rjust)
    monkeypatch.setitem(ex.OPS, op.name, broken)
    assert find_faults(broken)


def test_catalogue_kernels_belong_to_entries() -> None:
    assert {*TIME_KERNELS, *ex.PATTERNS} <= {*ex.OPS}


def test_catalogue_refuses_a_second_entry_of_a_name() -> None:
    with pytest.raises(ValueError, match="already"):
        ex.register(ex.OPS["str.upper"])


def test_catalogue_calls_are_told_apart() -> None:
    """By the encoding that decides what is free: each example is another question, but for second names."""
    columns = {
        kind: ex.Column(place, kind, kind)
        for place, kind in enumerate(("text", "number", "time", "duration"))
    }
    codes: dict[bytes, ex.Expr] = {}
    for op in ex.OPS.values():
        kind = {"other": "text", "bool": "number"}.get(op.of[0], op.of[0])
        for example in op.examples:
            x = columns[kind]
            if op.name in ("dt.tz_convert", "dt.tz_localize"):
                x = replace(x, tz="UTC" if example[0].tz else None)
            e = apply_example(op, example, x)
            assert codes.setdefault(encode(e), e) == e, (op.name, example)
            assert encode(e) == encode(pickle.loads(pickle.dumps(e)))
    assert len(codes) > len(ex.OPS)


# Parameters that differ from those of pandas: what has no meaning here is left out.
DIFFERENT = {"str.replace": "a dict has no order"}


def test_catalogue_parameters_are_those_of_pandas() -> None:
    """What pandas has and an entry lacks is refused before any cell is read, as an unknown word."""
    wrong = []
    for op in ex.OPS.values():
        if op.accessor not in ("str", "dt") or op.attribute or op.name in DIFFERENT:
            continue
        home = pd.Series.str if op.accessor == "str" else pd.Series.dt
        theirs = getattr(home, op.label, None)
        if theirs is None or "*args" in str(inspect.signature(theirs)):
            continue  # pandas makes it from a method of an index
        names = [name for name in inspect.signature(theirs).parameters if name != "self"]
        ours = list(ex.signature_of(op).parameters)[1:]
        if not {*ours} <= {*names} or [n for n in names if n in ours] != ours:
            wrong.append((op.name, ours, names))
    assert wrong == []


def test_catalogue_examples_are_those_of_pandas() -> None:
    """Of texts, where the entry has the name of a method of pandas."""
    wrong = []
    for op in ex.list_ops("str").values():
        for example in op.examples:
            text, method = write_example(op, example), getattr(pd.Series.str, op.label, None)
            if text is None or method is None or op.kind == "other" or example[0] is None:
                continue
            series = pd.Series([example[0]], dtype="str")
            theirs = getattr(series.str, op.label)(*example[1:-1])
            if isinstance(theirs, pd.DataFrame):
                theirs = theirs[0]
            if not is_same(None if pd.isna(theirs[0]) else theirs[0], example[-1], None):
                wrong.append((text, theirs[0], example[-1]))
    assert wrong == []


# SQL ----------------------------------------------------------------------------------------------------------


def test_catalogue_templates_are_for_databases_that_are_tested() -> None:
    named = {
        (op.name, name) for op in WRITTEN if not isinstance(op.sql, str) for name in op.sql or ()
    }
    assert {(op, name) for op, name in named if name not in DATABASES} == set()


def find_wrong_sql(make: Any, name: str, nul: bool = True) -> list[str]:
    """Return the calls of all entries for a database that differ from numpy."""
    frame = make_frame(nul)
    database = make(frame)
    there = [op for op in WRITTEN if isinstance(op.sql, str) or name in (op.sql or ())]
    assert there
    return [wrong for op in there for wrong in find_differences(op, database, frame)]


@pytest.mark.kept
def test_catalogue_sql_agrees_with_numpy_on_sqlite() -> None:
    assert find_wrong_sql(in_sqlite, "sqlite") == []


@pytest.mark.kept
def test_catalogue_sql_agrees_with_numpy_on_duckdb() -> None:
    pytest.importorskip("duckdb", reason="tables in duckdb need duckdb")
    assert find_wrong_sql(in_duckdb, "duckdb") == []


@pytest.mark.extras
def test_catalogue_sql_agrees_with_numpy_on_postgresql(postgres: Any) -> None:
    pytest.importorskip("psycopg", reason="a server is asked with psycopg")
    with connected(postgres):
        assert find_wrong_sql(in_postgresql, "postgresql", nul=False) == []


def in_spark(frame: pd.DataFrame) -> Any:
    session, types = spark.session(), {"integer": "bigint", "double": "double", "text": "string"}
    columns, rows = cells_of(frame, True)
    schema = ", ".join(["row_number bigint", *(f"{name} {types[kind]}" for name, kind in columns)])
    numbered = [(i, *row) for i, row in enumerate(rows)]
    session.createDataFrame(numbered, schema).createOrReplaceTempView("visits")
    return SparkDatabase(session)


@pytest.mark.slow
@pytest.mark.skipif(spark.missing() is not None, reason=str(spark.missing()))
@pytest.mark.filterwarnings("ignore")  # of Spark's own
def test_catalogue_sql_agrees_with_numpy_on_spark() -> None:
    assert find_wrong_sql(in_spark, "spark") == []


# Wrong translations, each of which looks right on a plain text.
WRONG: dict[str, tuple[Any, str, str]] = {
    "begins one character late": (in_sqlite, "str.startswith", "INSTR(SUBSTR({x}, 2), {pat}) = 1"),
    "reads % and _": (in_sqlite, "str.startswith", "{x} LIKE {pat} || '%'"),
    "ends texts at a NUL": (
        in_sqlite,
        "str.startswith",
        "SUBSTR({x}, 1, LENGTH({pat})) = {pat}",
    ),
    "counts bytes": (in_duckdb, "str.len", "STRLEN({x})"),
    "reads % on duckdb": (in_duckdb, "str.endswith", "{x} LIKE '%' || {pat}"),
    "rounds": (in_duckdb, "np.floor", "ROUND({x})"),
    "goes through integers": (in_sqlite, "np.sign", "({x} > 0) - ({x} < 1)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_catalogue_sql_that_is_wrong_is_found(name: str) -> None:
    make, entry, template = WRONG[name]
    if make is in_duckdb:
        pytest.importorskip("duckdb", reason="tables in duckdb need duckdb")
    frame = make_frame()
    broken = replace(ex.OPS[entry], sql=template)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ex.OPS, entry, broken)
        assert find_differences(broken, make(frame), frame)


def test_catalogue_sql_that_is_never_written_is_found() -> None:
    frame = make_frame()
    op = replace(ex.OPS["str.len"], sql={"oracle": "LENGTH({x})"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ex.OPS, op.name, op)
        assert find_differences(op, in_sqlite(frame), frame) == ["str.len is never written"]
