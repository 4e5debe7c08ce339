"""Every verb on every kind of table: what pandas answers, or a refusal that costs nothing. The page says the same."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe._session.session import Session
from dpframe.engines.parts import PartsEngine
from dpframe.engines.sql import SqlEngine
from tests.engines.verbs import (
    CANNOT,
    NEED_UNIT,
    OF_PEOPLE,
    PAGE,
    TABLES,
    UNIT,
    VERBS,
    installed,
    names,
    opened,
    read,
    written,
)

pytest.importorskip("pyarrow")


@pytest.fixture(autouse=True)
def one_key(monkeypatch):
    """Whose groups count is decided by the same hashes on all tables."""
    monkeypatch.setattr(Session, "noise_key", lambda self: b"12345678")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def alike(one: Any, other: Any) -> None:
    """The same answer, but for noise that is next to nothing."""
    if isinstance(one, pd.DataFrame | pd.Series):
        assert type(one) is type(other)
        one, other = (
            x.loc[sorted(x.index, key=str)] for x in (one, other)
        )  # noise decides the order of equal counts
        assert list(map(str, one.index)) == list(map(str, other.index))
        one, other = one.to_numpy(), other.to_numpy()
    if isinstance(one, float | int | np.ndarray) and not isinstance(one, bool):
        first, second = (np.asarray(x, dtype=float) for x in (one, other))
        np.testing.assert_allclose(first, second, rtol=0.05, atol=0.6)
    elif not isinstance(one, dpframe.PrivateFrame):
        assert str(one) == str(other)


@pytest.fixture
def heard(monkeypatch):
    """Who has read the rows: a database that counts, or the engine that reads parts."""
    ways: set[str] = set()

    def hear(kind: Any, name: str, way: str) -> None:
        real = getattr(kind, name)
        monkeypatch.setattr(
            kind, name, lambda *words, **more: (ways.add(way), real(*words, **more))[1]
        )

    hear(SqlEngine, "_rows", "SQL")
    for name in ("reduce", "occurring", "slices", "people"):
        hear(PartsEngine, name, "parts")
    return ways


ANSWERS: dict[tuple[str, bool], Any] = {}


def of_pandas(verb: str, unit: bool, folder: str) -> Any:
    if (verb, unit) not in ANSWERS:
        ANSWERS[verb, unit] = VERBS[verb](opened("pandas", folder, verb, unit))
    return ANSWERS[verb, unit]


@pytest.mark.parametrize("unit", [False, True], ids=["rows", "people"])
@pytest.mark.parametrize(
    "table",
    [
        pytest.param(t, marks=pytest.mark.slow) if t == "Spark DataFrame" else t
        for t in TABLES
        if t != "pandas"
    ],
)
def test_every_verb_answers_as_on_a_frame_or_refuses_for_nothing(table, unit, tmp_path, heard):
    """Read as the page says: counted in SQL, or in parts. How many people there are, a report may ask in SQL first."""
    if not installed(table):
        pytest.skip(f"{TABLES[table][0]} is not installed, or its server")
    wrong = {}
    for i, (verb, ask) in enumerate(VERBS.items()):
        if verb in NEED_UNIT and not unit:
            continue
        folder = tmp_path / str(i)
        folder.mkdir()
        p = opened(table, str(folder), verb, unit)
        refused = verb in CANNOT[table] or (verb in OF_PEOPLE and not unit)
        heard.clear()
        try:
            found = ask(p)
            if refused:
                wrong[verb] = "is answered"
                continue
        except dpframe.DPError as error:
            if not refused or p.budget.spent:
                wrong[verb] = repr(error)
            continue
        ways = {"SQL"} if find_spec("duckdb") or table != "Parquet files" else {"parts"}
        expected = {read(table, verb, unit)} - {""}
        if heard - ({"SQL"} if verb.endswith("randomize") else set()) != (
            ways if expected == {"SQL"} else expected
        ):
            wrong[verb] = f"is read by {heard}"
        try:
            alike(found, of_pandas(verb, unit, str(folder)))
        except AssertionError as error:
            wrong[verb] = str(error)
        p.close()  # a server has so many connections
    assert wrong == {}


def test_every_public_name_is_asked():
    assert set(VERBS) == names()
    assert UNIT["unit"] == "id"


def test_the_page_has_what_was_seen():
    assert PAGE.read_text() == written()
