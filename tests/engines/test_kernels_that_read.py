"""No kernel raises by a cell: each call that reads cells has a reason, and nasty cells meet nasty arguments."""

from __future__ import annotations

import random
import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe import DPError
from dpframe import _expr as ex
from dpframe._expr import Expr
from dpframe.engines.expressions import evaluate
from tests.engines import examples, kernels
from tests.engines.entries import PAIRS, TEXTS, TIMES, UFUNCS

QUESTIONS = 1500  # of the default run


def test_every_call_that_reads_cells_has_a_reason() -> None:
    assert kernels.missing() == {}
    assert kernels.unused() == set()


ARGUMENTS: list[Any] = [
    *(0, 1, -1, 2, 10**30, -(10**30), 2**63, 2**31, 10_000, 10_001, True, False, None),
    *(
        "",
        "a",
        "\0",
        "\ud800",
        "a\udfff",
        "é",
        "x" * 2000,
        "a.",
        "[",
        "(a)|b",
        r"\B",
        r"\b",
        "^a",
        "$",
        r"\1",
        "\\",
        r"\9",
    ),
    *(
        r"(?=a)",
        "(a{1000}){1000}",
        "[a-z]{1000}",
        "%Y-%m-%d",
        "%",
        "%Q",
        "%-d",
        "2024-02-30",
        "9999-12-31",
        "1h",
        "7D",
        "1ns",
    ),
    *("Europe/Berlin", "UTC", "../etc", "left", "both", "M", "Y", "100000D", "-1h", "1e400D"),
    *(
        0.5,
        -0.0,
        np.nan,
        np.inf,
        -np.inf,
        1e308,
        5e-324,
        np.float32(1.5),
        np.int8(3),
        10**400,
        2**64,
    ),
    *(
        pd.NA,
        pd.NaT,
        pd.Timestamp.max,
        pd.Timestamp("1600-01-01"),
        pd.Timestamp(0, tz="UTC"),
        pd.Timedelta.max,
        pd.Timedelta(-1),
    ),
    *(
        [],
        ["a", None],
        [0, 1],
        [np.nan],
        [1, 0],
        {},
        {"a": 1},
        {0: "a", None: "\ud800"},
        {1.5: pd.NaT},
        ("a", "b"),
        (1,),
    ),
    *(
        re.compile("a"),
        re.compile(b"a"),
        re.compile("a", re.DOTALL),
        np.array([1, 2]),
        b"a",
        object(),
        pd.Interval(0, 1),
    ),
]


def written(value: Any) -> Any:
    """An argument as an operand."""
    return value if isinstance(value, Expr) else ex.constant(value)


FUNCTIONS: dict[str, tuple[str, Any, int]] = {
    **{f"str.{m}": ("text", lambda x, *a, m=m: ex.text_part(x, m, *a), 4) for m in TEXTS},
    **{
        f"str.{m}[]": (
            "text",
            lambda x, i, *a, m=m: ex.text_part(ex.text_part(x, m, *a), "get", i),
            3,
        )
        for m in ("split", "rsplit", "partition", "rpartition")
    },
    "str.extract": ("text", lambda x, pat: next(iter(ex.extract(x, pat).values())), 1),
    **{
        f"dt.{m}": (
            "time",
            lambda x, *a, m=m: ex.time_part(x, m, *a),
            0 if ex.OPS[f"dt.{m}"].attribute else 2,
        )
        for m in TIMES
    },
    **{
        f"d.{m}": ("duration", lambda x, *a, m=m: ex.time_part(x, m, *a), 1)
        for m in ("floor", "ceil", "round")
    },
    **{
        f"{kind}.{m}": (kind, lambda x, *a, m=m: ex.METHODS[m](x, *a), 3)
        for m in ex.METHODS
        for kind in ("number", "text", "time", "duration")
    },
    **{
        f"np.{m}": ("number", lambda x, a, m=m: UFUNCS[m](x, written(a)), 1)
        for m in (*PAIRS, "add", "power", "floor_divide", "remainder", "less", "equal")
    },
    **{
        f"{kind} {op}": (kind, lambda x, a, op=op: ex.operate(op, x, written(a)), 1)
        for op in ex.ARITHMETIC
        for kind in ("text", "time", "duration")
    },
    **{
        f"{kind} {op}": (kind, lambda x, a, op=op: ex.compare(op, x, written(a)), 1)
        for op in ("==", "!=", "<", "<=", ">", ">=")
        for kind in ("number", "text", "time", "duration")
    },
    **{f"{kind} map": (kind, ex.map_dict, 1) for kind in ("number", "text", "time")},
    "cut": ("number", ex.cut, 3),
    "to_datetime": ("text", ex.read_moment, 1),
    "to_numeric": ("text", ex.read_number, 0),
}


BY_KIND: dict[str, list[str]] = {
    kind: sorted(name for name, (of, *_) in FUNCTIONS.items() if of == kind)
    for kind in examples.SOME
}


def asked(f: Any, seed: int) -> tuple[str, str]:
    """What comes of one question, of up to three functions: a refusal before any cell is read, an answer, or what was raised."""
    rng = random.Random(seed)
    kind = rng.choice(sorted(BY_KIND))
    e: Any = f.columns[rng.choice(examples.SOME[kind])]
    shown, made = f"seed {seed}: {e}", 0
    for _ in range(rng.randint(1, 3)):
        functions = BY_KIND.get({"bool": "number", "label": "text"}.get(e.kind, e.kind))
        if functions is None:
            break
        name = rng.choice(functions)
        _, make, most = FUNCTIONS[name]
        given = [
            f.columns[rng.choice(list(f.columns))] if rng.random() < 0.15 else rng.choice(ARGUMENTS)
            for _ in range(rng.randint(0, most))
        ]
        shown += f", {name}({', '.join(map(repr, given))[:200]})"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # of pandas, about a word that somebody wrote; none may come of a cell
                e, made = make(e, *given), made + 1
        except DPError:
            continue
        except TypeError as error:  # too few or too many arguments, as Python says it
            if "argument" not in str(error):
                return f"raised {error!r}", shown
        except Exception as error:
            return f"raised {error!r}", shown
    if not made:
        return "refused", shown
    try:
        if e.kind != "other":
            for rows in (slice(0, len(f.frame)), slice(3, 4)):
                evaluate(e, f.leaf, rows, {})
    except Exception as error:
        return f"by a cell {error!r}", shown
    return "answered", shown


@pytest.fixture(scope="module")
def few(framed: Any) -> Any:
    frame = examples.nasty_frame().iloc[:60].reset_index(drop=True)
    frame["s"] = frame["s"].where(frame["s"].str.len() != 70_000, "x" * 10**6)
    return framed(frame)


def ask_many(f: Any, seeds: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for seed in seeds:
        outcome, shown = asked(f, seed)
        assert outcome in ("refused", "answered"), (outcome, shown)
        found[outcome] = found.get(outcome, 0) + 1
    return found


def test_a_question_is_refused_before_a_cell_is_read_or_answered(few: Any) -> None:
    found = ask_many(few, range(QUESTIONS))
    assert min(found.values()) > QUESTIONS / 20


def test_a_function_that_raises_by_a_cell_is_seen(
    few: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: a kernel that raises at one text, in the middle of a column."""
    broken = lambda text: text.encode() and text.lower()  # noqa: E731
    op = replace(ex.OPS["str.lower"], value=broken)
    monkeypatch.setitem(ex.OPS, op.name, op)
    with pytest.raises(AssertionError, match="by a cell"):
        ask_many(few, range(20 * QUESTIONS))


def test_a_call_without_a_reason_is_seen(tmp_path: Any) -> None:
    source = tmp_path / "new.py"
    source.write_text(
        "import pyarrow.compute as pc\n\n\ndef f(cells):\n    return pc.strptime(cells, '%Y').cast('int64')\n"
    )
    assert kernels.calls(source, True) - kernels.KNOWN.keys() == {"pc.strptime"}
