"""A kind of table is one file: that of docs/develop/add-an-engine.md, put beside the others."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

import dpframe
from dpframe._frame.sources import recognise_source
from dpframe.engines import tables as tables_module
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.parts import PartsEngine
from dpframe.engines.tables import KINDS
from tests.engines.conformance import KEY
from tests.engines.hazard_table import columns
from tests.engines.test_tables import framed, integers, nasty

PAGE = Path(__file__).parents[2] / "docs" / "develop" / "add-an-engine.md"
NAME = "dpframe.engines.tables.feather"


@pytest.fixture
def feather(tmp_path, monkeypatch):
    """The module of the page, in a folder beside those of the package."""
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    (source,) = [block for block in blocks if "register_kind(" in block]
    (tmp_path / "feather.py").write_text(source)
    monkeypatch.setattr(tables_module, "__path__", [*tables_module.__path__, str(tmp_path)])
    kinds = list(KINDS)
    yield importlib.import_module(NAME)
    KINDS[:] = kinds
    sys.modules.pop(NAME)
    delattr(tables_module, "feather")


def test_a_kind_of_table_is_one_file(feather, tmp_path):
    rows = nasty()
    (kind,) = [one for one in KINDS if one.title == "Feather file"]
    frame = framed(rows)
    for people in (False, True):
        source = recognise_source(kind.example(rows, tmp_path))
        assert type(source) is feather.FeatherSource
        found = integers(PartsEngine(source, KEY), source.schema.dtypes, people)
        assert found == integers(PandasEngine(frame, KEY), frame.dtypes, people)


def test_a_session_on_a_new_kind_of_table_notices_new_rows(feather, tmp_path):
    table = feather.make_example(nasty(), tmp_path)
    p = dpframe.open(table, 1000, because="made up")
    assert p.count(epsilon=900) == nasty().num_rows
    feather.make_example(nasty().slice(1), tmp_path)
    with pytest.raises(dpframe.SessionError, match="has changed"):
        p.query("n > 0").count(epsilon=1)


def test_messages_and_tables_name_a_new_kind_of_table(feather):
    with pytest.raises(dpframe.BadType, match="a Feather file"):
        dpframe.open(5, 1, because="made up")
    assert columns()["Feather file"] == "FeatherSource"


def test_the_docstring_of_open_names_every_kind_of_table():
    text = " ".join((dpframe.open.__doc__ or "").split())
    assert [kind.words for kind in KINDS if not kind.database and kind.words not in text] == []
