"""What is behind the door comes out as a result, or as one error that says nothing of the data; no warning comes out."""

from __future__ import annotations

import re
import threading
import traceback
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import DataError
from dpframe._cells import columns
from dpframe._session import door as door_module
from dpframe._session import session as session_module
from dpframe._sizes import SIZES
from dpframe._statistics.base import Powers
from dpframe.audit import replay
from dpframe.engines import fingerprints as sketch_module
from dpframe.engines import reading as reading_module
from dpframe.engines import row_sums as row_sums_module
from dpframe.engines import rows as derive_module
from dpframe.engines.pandas import PandasEngine
from dpframe.learn import LinearRegression
from tests.internals import deaf_to_noise

CELL = "Sesame-Street-123"
BOUNDS = {"x": (0, 10), "y": (0, 10)}

ASK = {
    "size": lambda p: p.count(epsilon=0.1),
    "mean": lambda p: p.mean("x", epsilon=0.1),
    "agg": lambda p: p.groupby("s", keys=["a"]).agg(n=("x", "size"), m=("x", "mean"), epsilon=0.1),
    "nunique": lambda p: p.nunique("s", epsilon=0.1),
    "argmax": lambda p: p.argmax("s", keys=["a", "b"], epsilon=0.1),
    "median": lambda p: p.median("x", epsilon=0.1),
    "tree": lambda p: p.quantile("x", 0.5, method="tree", epsilon=0.1),
    "bounds": lambda p: p.suggest_bounds("x", epsilon=0.1),
    "randomize": lambda p: p.randomize("x", epsilon=0.1),
    "unique": lambda p: p.unique("s", epsilon=0.1),
    "fit": lambda p: p.fit(LinearRegression(l2=1), X=["x"], y="y", epsilon=0.1),
}
DERIVE = {
    "explode": lambda p: p.explode("codes", max_rows=1, max_groups=1),
    "melt": lambda p: p[["x", "y"]].query("x > 1").melt(),
    "merge": lambda p: p.merge(pd.DataFrame({"s": ["a"], "w": [1]}), on="s"),
    "pipe": lambda p: p.pipe(lambda d: d, max_rows=1, max_groups=1),
}


def frame():
    return pd.DataFrame(
        {
            "x": [1.0, 2.0, 3.0],
            "y": [1.0, 2.0, 3.0],
            "s": ["a", CELL, "b"],
            "codes": pd.Series([["a"], [], None], dtype=object),
        }
    )


def opened(**terms):
    return frame().dp.open(
        10, 1e-6, accountant="pure", neighbors="replace-one", bounds=BOUNDS, **terms
    )


def broken(monkeypatch, error):
    """Every column that is read from here on raises, while its cells are at hand."""

    def prepare(series, kind):
        cells = series.tolist()
        try:
            raise ValueError(f"could not convert {cells}")
        except ValueError:
            raise error from None

    for owner in (columns, derive_module, reading_module):
        monkeypatch.setattr(owner, "prepare", prepare)
    monkeypatch.setattr(
        PandasEngine, "reduce", lambda self, *_: prepare(self.table.frame.iloc[:, 2], "text")
    )


def chain(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def held(error):
    """What the frames of an error hold in their variables, below this file."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_globals["__name__"].startswith("dpframe"):
            yield from frame.f_locals.values()


ERRORS = [
    ValueError(CELL),
    dpframe.BadValue(CELL),
    MemoryError(CELL),
    RecursionError(CELL),
    type(CELL, (Exception,), {})(),
]


@pytest.mark.parametrize("verb", [*ASK, *DERIVE])
def test_whatever_is_raised_becomes_one_error_that_says_nothing(verb, monkeypatch):
    asked = {**ASK, **DERIVE}[verb]
    told = set()
    for error in ERRORS:
        p = opened()
        with monkeypatch.context() as patch:
            broken(patch, error)
            with pytest.raises(DataError) as caught:
                asked(p.query("x < 5") if verb in DERIVE else p)
        assert [type(e) for e in chain(caught.value)] == [DataError]
        assert CELL not in "".join(traceback.format_exception(caught.value))
        assert not any(CELL in repr(value) for value in held(caught.value))
        told.add(str(caught.value))
        assert p.budget.spent == (0.1 if verb in ASK else 0)
    assert len(told) == 1


def test_the_text_names_the_verb_and_all_questions_of_a_batch(monkeypatch):
    broken(monkeypatch, ValueError(CELL))
    p = opened()
    with pytest.raises(DataError, match=r"^mean failed while it read the data"):
        p.mean("x")
    with pytest.raises(DataError, match=r"^size, mean, randomize failed"), p.plan_ahead() as batch:
        assert [batch.count(), batch.mean("x", epsilon=0.25), batch.randomize("s", keys=["a", "b"])]


def test_what_failed_stays_charged_and_is_asked_anew(monkeypatch):
    p = opened()
    with monkeypatch.context() as patch:
        broken(patch, ValueError(CELL))
        for paid in (0.25, 0.5):
            with pytest.raises(DataError):
                p.count(epsilon=0.25)
            assert p.budget.spent == paid
    answer = p.count(epsilon=0.25)
    assert (p.budget.spent, len(p.ledger)) == (0.75, 3)
    assert p.count(epsilon=0.25) == answer
    assert p.budget.spent == 0.75


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_is_an_interrupt_and_brings_no_frame_along(monkeypatch, kind):
    p = opened()
    broken(monkeypatch, kind(7))
    with pytest.raises(kind) as caught:
        p.count(epsilon=0.25)
    assert caught.value.args == (7,)
    assert list(chain(caught.value)) == [caught.value]
    assert not any(CELL in repr(value) for value in held(caught.value))
    assert "prepare" not in {
        f.f_code.co_name for f, _ in traceback.walk_tb(caught.value.__traceback__)
    }
    assert p.budget.spent == 0.25


def test_errors_of_the_public_part_show_as_they_are(monkeypatch):
    p = opened()
    monkeypatch.setattr(type(p._session), "plan_with_declarations", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        p.count()
    assert p.ledger.empty


# Warnings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("per_thread", [False, True])
@pytest.mark.parametrize("action", ["error", "always", "default"])
def test_no_warning_comes_out_whatever_the_filters(monkeypatch, action, per_thread):
    monkeypatch.setattr(door_module, "_FILTERS_ARE_PER_THREAD", per_thread)
    p = opened()
    reduce = PandasEngine.reduce

    def warning(*args):
        warnings.warn(f"{CELL} is odd", RuntimeWarning, stacklevel=1)
        warnings.warn_explicit(CELL, DeprecationWarning, "somewhere.py", 1)
        np.float64([1e308]) * 1e10
        return reduce(*args)

    monkeypatch.setattr(PandasEngine, "reduce", warning)
    with np.errstate(all="raise"), warnings.catch_warnings(record=True) as seen:
        for _ in range(3):
            warnings.simplefilter(action)
            deaf_to_noise()
            p.count(epsilon=0.1, fresh=True)
        assert seen == []
    with pytest.warns(UserWarning, match="heard"):
        warnings.warn("heard", UserWarning, stacklevel=1)


@pytest.mark.parametrize("per_thread", [False, True])
@pytest.mark.parametrize("action", ["error", "always"])
def test_warnings_of_worker_threads_do_not_escape(monkeypatch, action, per_thread):
    """Shares of the rows, and shares of the texts of Arrow that are looked up among listed keys."""
    pytest.importorskip("pyarrow", reason="texts are kept without Arrow")
    from pyarrow import compute

    monkeypatch.setattr(door_module, "_FILTERS_ARE_PER_THREAD", per_thread)
    for name, size in {"thread_rows": 1, "threads": 3, "key_block": 1}.items():
        monkeypatch.setattr(SIZES, name, size)
    add, look_up, workers = row_sums_module.add_powers, compute.index_in, dict[str, set[int]]()

    def warn(place):
        if threading.current_thread() is not threading.main_thread():
            workers.setdefault(place, set()).add(threading.get_ident())
        warnings.warn(f"{CELL} is odd", RuntimeWarning, stacklevel=1)
        np.float64([1e308]) * 1e10

    def add_with_warning(*args):
        warn("sums")
        return add(*args)

    def look_up_with_warning(*args, **kwargs):
        warn("keys")
        return look_up(*args, **kwargs)

    adder = row_sums_module.ADDERS[Powers]._replace(add=add_with_warning)
    monkeypatch.setitem(row_sums_module.ADDERS, Powers, adder)
    monkeypatch.setattr(compute, "index_in", look_up_with_warning)
    p = opened()
    with np.errstate(all="raise"), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter(action)
        deaf_to_noise()
        p.sum("x", epsilon=0.1)
        p.groupby("s", keys=["a", "b"]).size(epsilon=0.1)
    assert seen == []
    assert {*workers} == {"sums", "keys"}  # both have warned outside the thread that asks


def test_the_filter_is_one_and_matches_nothing_outside_the_door():
    p = opened()
    with warnings.catch_warnings():
        for _ in range(3):
            warnings.simplefilter("default")
            p.count(epsilon=0.1, fresh=True)
        assert warnings.filters.count(door_module._FILTER) == 1
        pattern = warnings.filters[0][1]
        assert re.match(pattern.pattern, "any text") is None
        assert not pattern.match("any text")


def test_another_thread_is_heard_while_the_door_is_closed(monkeypatch):
    reading, warned = threading.Event(), threading.Event()
    reduce, p = PandasEngine.reduce, opened()

    def slow(*args):
        reading.set()
        assert warned.wait(10)
        return reduce(*args)

    monkeypatch.setattr(PandasEngine, "reduce", slow)
    asking = threading.Thread(target=p.count)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        asking.start()
        assert reading.wait(10)  # now the filter of the door stands before this one
        warnings.warn("heard", UserWarning, stacklevel=1)
    assert [str(w.message) for w in heard] == ["heard"]
    warned.set()
    asking.join()
    assert len(p.ledger) == 1


# Opening, replays, and the owner's switch ---------------------------------------------------------------------


def test_opening_a_ledger_tells_nothing_of_a_cell(monkeypatch, tmp_path):
    def fail(cells):
        raise UnicodeDecodeError("utf-8", CELL.encode(), 0, 1, "no start byte")

    monkeypatch.setattr(sketch_module, "_plain", fail)
    df = frame()[["x", "s"]]
    with pytest.raises(DataError, match=r"^open failed") as caught:
        df.dp.open(1, ledger=tmp_path / "b.db", population="people")
    assert list(chain(caught.value)) == [caught.value]
    assert df.attrs == {}


def test_a_replay_has_the_same_door(monkeypatch):
    one, two = (frame()[["x", "s"]].iloc[:n] for n in (2, 3))
    read = PandasEngine.reduce

    def on_long_frames(self, *args):
        if self.table.rows > 2:
            raise ValueError(CELL)
        return read(self, *args)

    monkeypatch.setattr(PandasEngine, "reduce", on_long_frames)
    found = replay(lambda p: p.count(), one, two, epsilon=1)
    assert any("raises" in problem for problem in found.problems)
    assert CELL not in repr(found)


def test_the_switch_shows_the_cause_and_is_a_declaration(monkeypatch):
    p = opened()
    monkeypatch.setenv(session_module.SWITCH, "1")
    broken(monkeypatch, ValueError(CELL))
    with pytest.raises(DataError) as caught:
        p.count(epsilon=0.1)
    assert CELL in str(caught.value.__cause__)
    assert p.declarations["what"].tolist().count("debug") == 1
    with pytest.raises(DataError):
        p.query("x < 5").explode("codes", max_rows=1, max_groups=1)
    assert p.declarations["what"].tolist().count("debug") == 1
    assert p.budget.spent == float(Fraction(1, 10))
    monkeypatch.setenv(session_module.SWITCH, "0")
    with pytest.raises(DataError) as caught:
        p.count(epsilon=0.1)
    assert caught.value.__cause__ is None


def test_without_the_switch_nothing_is_declared():
    p = opened()
    p.count(epsilon=0.1)
    assert "debug" not in set(p.declarations["what"])
