"""``.str`` and ``.dt``: their stub is that of the catalogue, and each part has the signature and the doc of its entry."""

from __future__ import annotations

import inspect

import pandas as pd

from dpframe import _expr as ex
from dpframe._frame.surface import PrivateColumn
from tests.frame.parts_stub import STUB, declared_parts, write_stub

p = pd.DataFrame(
    {
        "s": ["a-b"],
        "t": pd.to_datetime(["2024-02-29"]),
        "d": pd.to_timedelta(["1h"]),
    }
).dp.open(1, because="made up")


def test_parts_stub_is_written_from_the_catalogue() -> None:
    assert STUB.read_text(encoding="utf-8") == write_stub(), "python -m tests.frame.parts_stub"


def test_parts_are_those_of_the_stub() -> None:
    assert set(dir(p["s"].str)) == declared_parts("Texts")
    assert {*dir(p["t"].dt), *dir(p["d"].dt)} == declared_parts("Times")
    assert set(dir(p["t"].dt.isocalendar())) == declared_parts("Weeks")


def test_parts_have_the_signature_and_the_doc_of_their_entry() -> None:
    for column, accessor in (("s", "str"), ("t", "dt"), ("d", "dt")):
        for label, op in ex.list_ops(accessor, p[column]._expr.kind).items():
            part = getattr(getattr(p[column], accessor), label)
            if op.attribute:
                assert isinstance(part, PrivateColumn)
            else:
                assert part.__name__ == label
                assert part.__doc__ == op.doc
                assert inspect.signature(part) == ex.method_signature(op)
    pad = inspect.signature(p["s"].str.pad).parameters
    assert {name: one.default for name, one in pad.items()} == {
        "width": inspect.Parameter.empty,
        "side": "left",
        "fillchar": " ",
    }
