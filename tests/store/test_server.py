"""The store on a PostgreSQL server, by the tests of all stores, and what a server has to show besides."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.internals import ServerStore
from tests.store.conformance import DurableConformance
from tests.store.files import start

pytestmark = pytest.mark.extras


class TestServer(DurableConformance):
    code = "store = open_store(path)\n"

    @pytest.fixture(autouse=True)
    def running(self, postgres):
        self.server = postgres

    def database(self, path: Path) -> str:
        return f"{hashlib.sha256(str(path.parent).encode()).hexdigest()[:8]}-{path.name}"

    def ledger(self, path: Path) -> str:
        return self.server.create(self.database(path))

    def open(self, path: Path) -> Any:
        return ServerStore(self.ledger(path))

    def run(self, path: Path, code: str, *args: object) -> Any:
        return start(self.code + code, self.ledger(path), *args)

    def is_free(self, store: Any) -> None:
        database = store.place.partition("///")[2].partition("?")[0]
        assert self.server.sql(database, "SELECT 1 FROM dpframe.head FOR UPDATE NOWAIT") == [(1,)]

    def sql(self, *statements: str) -> Any:
        """What somebody does who owns the tables, and may do without the triggers."""
        free = "SET session_replication_role = replica"
        return lambda path: self.server.sql(self.database(path), free, *statements)

    @property
    def damages(self) -> Any:
        return {
            "no head": self.sql("DELETE FROM dpframe.head"),
            "no entries": self.sql("TRUNCATE dpframe.entries"),
            "lost its last entry": self.sql("DELETE FROM dpframe.entries WHERE id = 3"),
            "another version": self.sql("UPDATE dpframe.head SET version = 2"),
            "another program": self.sql(
                "DROP SCHEMA dpframe CASCADE",
                "CREATE SCHEMA dpframe",
                "CREATE TABLE dpframe.head (one text)",
                "CREATE TABLE dpframe.entries (id bigint, body text)",
            ),
            "one table of two": self.sql("DROP TABLE dpframe.entries CASCADE"),
        }

    @property
    def changes(self) -> Any:
        return {
            "a changed entry": self.sql("UPDATE dpframe.entries SET body = 'Sesame-9' WHERE id = 2"),
            "text of no encoding": self.sql(r"UPDATE dpframe.entries SET body = '\xff' WHERE id = 2"),
            "a wide column": self.sql("ALTER TABLE dpframe.entries ADD COLUMN more text"),
            "idle triggers": self.sql("ALTER TABLE dpframe.entries DISABLE TRIGGER kept"),
            "another trigger": self.sql(
                "CREATE OR REPLACE FUNCTION dpframe.head_follows() RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN RETURN NEW; END'"
            ),
            "nothing after a crash": self.sql("ALTER TABLE dpframe.entries SET UNLOGGED"),
            "rows out of sight": self.sql(
                "ALTER TABLE dpframe.entries ADD CHECK (id < 0) NOT VALID",
                "UPDATE dpframe.entries SET id = -id",
            ),
        }
