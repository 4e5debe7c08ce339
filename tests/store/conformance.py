"""What every store does, and what one does that outlives its process: a new one subclasses one of these, and has the tests.

class TestServer(DurableConformance):
    def open(self, path): ...
"""

from __future__ import annotations

import copy
import json
import pickle
import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

from dpframe import Accountant, BadType, BadValue, LedgerError
from dpframe import _ledger as stores_module
from dpframe._ledger import open_store, place_of
from dpframe._ledger.store import MemoryStore
from tests.store.files import add, bodies, output, posix, start, together

BAD_TEXTS = [(b"x", BadType), (None, BadType), (1, BadType), ("\ud800", BadValue)]
ERRORS = [
    ValueError("mine"),
    KeyboardInterrupt(),
    SystemExit(3),
    sqlite3.OperationalError("mine"),
    OSError(5),
]


class StoreConformance:
    """The tests of `dpframe._ledger.store.Store`."""

    def open(self, path: Path) -> Any:
        """The store of this path, made where there is none."""
        raise NotImplementedError

    def is_free(self, store: Any) -> None:
        """Fails where a lock is still held."""

    @pytest.fixture
    def store(self, path):
        return self.open(path)

    def test_entries_come_back_in_order_by_population(self, store):
        assert store.populations() == []
        assert store.entries("people") == []
        first, second = add(store, "1", "2", population="b")
        (third,) = add(store, "3", population="a")
        (fourth,) = add(store, "4", population="b")
        assert [e.id for e in (first, second, third, fourth)] == [1, 2, 3, 4]
        assert store.entries("b") == [first, second, fourth]
        assert store.entries("b", after=second.id) == [fourth]
        assert store.entries("b", after=-5) == store.entries("b")
        assert store.entries("b", after=99) == []
        assert store.entries("nobody") == []
        assert store.populations() == ["b", "a"]
        assert (first.kind, first.body) == ("debit", "1")
        when = datetime.fromisoformat(first.when)
        assert when.utcoffset() == timedelta(0)
        assert len(first.when) == len("2026-01-01T00:00:00.000000+00:00")

    def test_any_unicode_text_is_kept(self, store):
        texts = ["", "\0", "a\0b", "ö€😀", "'; DROP TABLE entries; --", "\r\n", "x" * 100_000]
        for text in texts:
            with store.transaction():
                store.append(text, text, text)
        for text in texts:
            assert [(e.kind, e.body) for e in store.entries(text)] == [(text, text)]
        assert store.populations() == texts

    @pytest.mark.parametrize(("bad", "error"), BAD_TEXTS)
    def test_what_is_no_text_is_refused_and_the_transaction_goes_on(self, store, bad, error):
        with store.transaction():
            for place in range(3):
                with pytest.raises(error):
                    store.append(*["x"] * place, bad, *["x"] * (2 - place))
            store.append("people", "debit", "good")
        assert bodies(store) == ["good"]

    def test_transaction_sees_its_own_appends(self, store):
        add(store, "1")
        with store.transaction():
            store.append("people", "debit", "2")
            store.append("others", "debit", "3")
            assert bodies(store) == ["1", "2"]
            assert store.populations() == ["people", "others"]

    @pytest.mark.parametrize("error", ERRORS)
    def test_error_of_the_caller_undoes_everything_and_stays_what_it_is(self, store, error):
        def fail():
            with store.transaction():
                store.append("people", "debit", "2")
                store.append("others", "debit", "3")
                raise error

        add(store, "1")
        with pytest.raises(type(error)) as caught:
            fail()
        assert caught.value is error
        self.is_free(store)  # the traceback is kept, the lock is not
        assert bodies(store) == ["1"]
        assert store.populations() == ["people"]
        assert add(store, "4")[0].id == 2

    def test_append_and_nesting_are_refused(self, store):
        with pytest.raises(LedgerError, match="inside"):
            store.append("people", "debit", "1")
        with store.transaction():
            store.append("people", "debit", "2")
            with pytest.raises(LedgerError, match="open in this thread"), store.transaction():
                pass
            store.append("people", "debit", "3")
        with pytest.raises(LedgerError, match="inside"):
            store.append("people", "debit", "4")
        assert bodies(store) == ["2", "3"]

    def test_store_and_its_secret_exist_once(self, store, path):
        for twice in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(BadType, match="exists once"):
                twice(store)
        assert len(store.secret) == 32
        assert (
            len({store.secret, self.open(path.with_name("other")).secret, MemoryStore().secret})
            == 3
        )

    def test_threads_take_turns(self, store):
        def work():
            for _ in range(10):
                with store.transaction():
                    store.append("people", "debit", str(len(store.entries("people"))))

        together([threading.Thread(target=work) for _ in range(8)])
        assert bodies(store) == [str(i) for i in range(80)]

    def test_other_threads_see_whole_transactions_only(self, store):
        inside, seen = threading.Event(), []

        def look():
            inside.wait()
            seen.append(bodies(store))

        thread = threading.Thread(target=look)
        thread.start()
        with store.transaction():
            store.append("people", "debit", "1")
            inside.set()
            time.sleep(0.05)
            store.append("people", "debit", "2")
        thread.join()
        assert seen == [["1", "2"]]

    def test_it_says_where_it_is_and_whether_it_stays(self, store):
        assert isinstance(store.place, str)
        assert type(store.durable) is bool
        assert store.busy is False
        with store.transaction():
            assert store.busy is True
        assert store.busy is False


class DurableConformance(StoreConformance):
    """The tests of stores that other processes open, after this one and beside it."""

    code: str  # a program's lines that make ``store`` from ``path``
    # What a store may suffer, by its name: refused by whoever opens it, and by whoever has it open.
    damages: ClassVar[dict[str, Callable[[Path], object]]]
    # What is refused by whoever opens it. A store that is open has read it before, and may go on from there.
    changes: ClassVar[dict[str, Callable[[Path], object]]] = {}

    def ledger(self, path: Path) -> str:
        """What a user gives as ``ledger=``."""
        return str(path)

    def run(self, path: Path, code: str, *args: object) -> Any:
        """A process of its own that runs this code with a ``store``."""
        return start(self.code + code, path, *args)

    def test_it_remembers(self, path):
        store = self.open(path)
        add(store, "1", "2")
        again = self.open(path)
        assert (again.secret, again.entries("people"), again.place) == (
            store.secret,
            store.entries("people"),
            store.place,
        )
        add(again, "3")
        add(store, "4")
        assert bodies(again) == bodies(store) == ["1", "2", "3", "4"]
        assert store.durable

    def test_two_writers_take_turns(self, path):
        self.open(path)
        code = """
for i in range(12):
    with store.transaction():
        store.append("people", "debit", f"{os.getpid()} {len(store.entries('people'))}")
"""
        for process in [self.run(path, code) for _ in range(3)]:
            assert output(process) == []
        found = [body.split() for body in bodies(self.open(path))]
        assert [number for _, number in found] == [str(i) for i in range(36)]
        assert len({name for name, _ in found}) == 3

    @posix
    def test_a_killed_writer_leaves_whole_transactions(self, path):
        add(self.open(path), "1")
        code = """
with store.transaction():
    for i in range(3000):
        store.append("people", "debit", "x" * 3000)
    print("here", flush=True)
    time.sleep(100)
"""
        process = self.run(path, code)
        assert process.stdout.readline() == "here\n"
        process.kill()
        process.communicate()
        store = self.open(path)
        assert bodies(store) == ["1"]
        assert add(store, "2")[0].id == 2
        assert bodies(self.open(path)) == ["1", "2"]

    def test_what_cannot_be_read_is_refused_by_name(self, path):
        """Damaged, empty, or of another version: never a shorter list, and no text of an entry in the error."""
        for name, damage in {**self.damages, **self.changes}.items():
            place = path.with_name(name.replace(" ", "-"))
            store = self.open(place)
            add(store, "Sesame-1", "Sesame-2", "Sesame-3")
            damage(place)
            uses = (
                lambda place=place: self.open(place),
                lambda store=store: bodies(store),
                lambda store=store: add(store, "4"),
            )
            for use in uses if name in self.damages else uses[:1]:
                with pytest.raises(LedgerError) as caught:
                    use()
                assert place.name in str(caught.value), name
                assert "Sesame" not in str(caught.value), name

    def test_it_is_found_by_what_a_user_gives(self, path, monkeypatch):
        """An accountant's budget is one, in this process and in others, whichever way its ledger is named."""
        ledger = self.ledger(path)
        store = open_store(ledger)
        assert type(store) is type(self.open(path)), "`ledger` names a store of another kind"
        assert open_store(ledger) is store
        assert place_of(ledger) == store.place
        assert place_of(store.place) == store.place
        words = {"ledger": ledger, "population": "patients", "bounds": {"x": (0, 40)}}
        df = pd.DataFrame({"x": [float(i) for i in range(30)]})
        answer = df.dp.open(1, **words).mean("x", epsilon=0.25)
        assert json.loads(df.attrs["dpframe"])["ledger"] == store.place
        monkeypatch.setattr(stores_module, "_stores", {})  # as if the process was new
        assert Accountant(1, ledger=store.place, population="patients").budget.spent == 0.25
        again = pd.DataFrame(df.to_dict("list")).dp.open(1, **words)
        assert again.accountant.place == store.place
        assert float(again.mean("x", epsilon=0.25)) == float(answer)
        assert again.budget.spent == 0.25
