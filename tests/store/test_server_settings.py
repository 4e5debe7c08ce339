"""A ledger in a database as its administrator made it: defaults, encodings, rights, triggers, a standby."""

from __future__ import annotations

import time

import pytest

from dpframe import LedgerError
from dpframe._ledger.server import ServerStore
from tests.postgres import GRANTS, Postgres
from tests.store.files import add, bodies

pytestmark = pytest.mark.extras


# Settings, rights, encodings ------------------------------------------------------------------------------------

DEFAULTS = {
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "default_transaction_deferrable": "on",
    "synchronous_commit": "off",
    "idle_in_transaction_session_timeout": "200ms",
    "lock_timeout": "1ms",
    "search_path": "evil",
    "bytea_output": "escape",
    "DateStyle": "German",
    "standard_conforming_strings": "off",
    "client_encoding": "LATIN1",
}


@pytest.mark.parametrize("name", [*DEFAULTS, "all of them"])
def test_defaults_of_a_database_do_not_matter(postgres, database, url, name):
    for setting, value in DEFAULTS.items() if name == "all of them" else [(name, DEFAULTS[name])]:
        postgres.sql("postgres", f"ALTER DATABASE \"{database}\" SET {setting} = '{value}'")
    evil = [
        "CREATE SCHEMA evil",
        "CREATE FUNCTION evil.min(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'",
    ]
    postgres.sql(database, "SET default_transaction_read_only = off", *evil)
    store = ServerStore(url)
    with store.transaction():
        store.append("people\0€", "debit", "a\\b\0'")
        time.sleep(0.3)
        store.append("others", "debit", "2")
        settings = store._ask(
            "SELECT current_setting('synchronous_commit'), current_setting('transaction_isolation')"
        )
        assert [tuple(row) for row in settings] == [("on", "read committed")]
    assert store.populations() == ["people\0€", "others"]
    assert bodies(ServerStore(url), "people\0€") == ["a\\b\0'"]


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "EUC_JP"])
def test_any_text_is_kept_in_a_database_of_any_encoding(postgres, encoding):
    url = postgres.create(
        f"in-{encoding}", f"ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    texts = ["ö€😀", "\0", "a ", "a", "A", "ｱ", "\u00e9", "e\u0301"]
    store = ServerStore(url)
    for text in texts:
        with store.transaction():
            store.append(text, text, text)
    again = ServerStore(url)
    assert again.populations() == texts
    assert [[(e.kind, e.body) for e in again.entries(text)] for text in texts] == [
        [(text, text)] for text in texts
    ]


@pytest.fixture
def analyst(postgres, database, url):
    """A user who may do nothing yet, beside a ledger with an entry."""
    name = f"a{database}"
    postgres.sql("postgres", f"CREATE ROLE {name} LOGIN")
    add(ServerStore(url), "1")
    yield name
    postgres.sql(database, f"DROP OWNED BY {name}")
    postgres.sql("postgres", f"DROP ROLE {name}")


def test_who_uses_a_ledger_needs_three_rights_and_can_do_no_more(postgres, database, analyst):
    import psycopg

    url = postgres.url(database, analyst)
    for grant in GRANTS[:2]:
        with pytest.raises(LedgerError, match="lacks a right"):
            ServerStore(url)
        postgres.sql(database, grant.format(analyst))
    postgres.sql(database, f"GRANT SELECT ON dpframe.head TO {analyst}")
    reader = ServerStore(url)
    assert bodies(reader) == ["1"]  # an auditor
    with pytest.raises(LedgerError, match="lacks a right"):
        add(reader, "2")
    postgres.sql(database, GRANTS[2].format(analyst))
    assert add(reader, "2")[0].id == 2
    words = {
        "host": str(postgres.folder),
        "port": postgres.port,
        "user": analyst,
        "dbname": database,
    }
    for statement in (
        "UPDATE dpframe.entries SET body = ''",
        "DELETE FROM dpframe.entries",
        "TRUNCATE dpframe.entries",
        "UPDATE dpframe.head SET last = 1",
        "UPDATE dpframe.head SET last = last + 1",
        "UPDATE dpframe.head SET secret = ''",
        "DELETE FROM dpframe.head",
        "INSERT INTO dpframe.head VALUES (2, 1, '', 0, '')",
        "INSERT INTO dpframe.entries VALUES (9, '', '', '', '', '')",
        "DROP SCHEMA dpframe CASCADE",
        "ALTER TABLE dpframe.entries DISABLE TRIGGER ALL",
    ):
        with psycopg.connect(**words) as connection, pytest.raises(psycopg.Error):
            connection.execute(statement)
    assert bodies(reader) == ["1", "2"]


APPEND_ONLY = [
    "UPDATE dpframe.entries SET body = '' WHERE id = 1",
    "UPDATE dpframe.entries SET body = '' WHERE id = 99",
    "DELETE FROM dpframe.entries",
    "TRUNCATE dpframe.entries",
    "DELETE FROM dpframe.head",
    "TRUNCATE dpframe.head",
    "UPDATE dpframe.head SET last = 0",
    "UPDATE dpframe.head SET version = 2",
    "UPDATE dpframe.head SET last = last + 1, digest = ''",
    "INSERT INTO dpframe.head VALUES (2, 1, '', 0, '')",
    "INSERT INTO dpframe.entries VALUES (1, '', '', '', '', '')",
    "INSERT INTO dpframe.entries VALUES (3, '', '', '', '', '')",
    "INSERT INTO dpframe.entries VALUES (1, '', '', '', '', '') ON CONFLICT (id) DO UPDATE SET body = ''",
]


@pytest.mark.parametrize("statement", APPEND_ONLY)
def test_triggers_refuse_even_the_owner(postgres, database, url, statement):
    import psycopg

    store = ServerStore(url)
    add(store, "1")
    with pytest.raises(psycopg.Error, match=r"only added to|unique constraint"):
        postgres.sql(database, statement)
    assert bodies(store) == bodies(ServerStore(url)) == ["1"]
    assert add(store, "2")[0].id == 2


def test_user_who_may_not_make_a_ledger_is_told_to_use_an_empty_schema(postgres, database):
    postgres.sql("postgres", f"CREATE ROLE m{database} LOGIN")
    url = postgres.url(database, f"m{database}")
    for _ in range(2):
        with pytest.raises(LedgerError, match="CREATE on the database"):
            ServerStore(url)
    assert not ServerStore.exists(url)
    postgres.sql(database, f"CREATE SCHEMA dpframe AUTHORIZATION m{database}")
    add(ServerStore(url), "1")
    assert ServerStore.exists(url)


def test_a_standby_is_refused_and_the_first_server_is_not(postgres, database, url):
    store = ServerStore(url)
    add(store, "1")
    standby = Postgres(postgres)
    try:
        with pytest.raises(LedgerError, match="standby"):
            ServerStore(standby.url(database))
        with pytest.raises(LedgerError, match="standby"):
            ServerStore.exists(standby.url(database))
    finally:
        standby.remove()
    assert bodies(store) == ["1"]


def test_rows_beside_the_table_are_no_entries(postgres, database, url):
    """A table that inherits has no triggers, and its rows would be read with those of the first."""
    store = ServerStore(url)
    add(store, "1")
    copy = "INSERT INTO public.more SELECT id, stamp, population, kind, 'more'::bytea, digest FROM dpframe.entries"
    postgres.sql(database, "CREATE TABLE public.more () INHERITS (dpframe.entries)", copy)
    for one in (store, ServerStore(url)):
        assert bodies(one) == ["1"]
        assert one.populations() == ["people"]
    assert add(store, "2")[0].id == 2


def test_rows_that_a_user_may_not_see_are_missed(postgres, database, analyst):
    """Row security hides entries without an error."""
    postgres.sql(database, *(grant.format(analyst) for grant in GRANTS))
    store = ServerStore(postgres.url(database, analyst))
    postgres.sql(database, "ALTER TABLE dpframe.entries ENABLE ROW LEVEL SECURITY")
    for use in (
        lambda: bodies(store),
        lambda: add(store, "2"),
        lambda: ServerStore(postgres.url(database, analyst)),
    ):
        with pytest.raises(LedgerError):
            use()


def test_a_user_whose_triggers_are_off_writes_nothing(postgres, database, url):
    ServerStore(url)
    idle = f'ALTER ROLE "{postgres.user}" IN DATABASE "{database}" SET session_replication_role = replica'
    postgres.sql("postgres", idle)
    store = ServerStore(url)
    with pytest.raises(LedgerError, match="not written"):
        add(store, "1")
    assert bodies(store) == []


@pytest.mark.parametrize("when", ["between two uses", "inside"])
def test_a_connection_that_an_administrator_ends(postgres, database, url, when):
    def end():
        one = f"datname = '{database}' AND pid <> pg_backend_pid()"
        assert postgres.sql(
            database, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {one}"
        ) == [(True,)]

    def inside():
        with store.transaction():
            end()
            store.append("people", "debit", "1")

    store = ServerStore(url)
    if when == "inside":
        with pytest.raises(LedgerError, match="does not answer"):
            inside()
    else:
        end()
    assert add(store, "2")[0].id == 1


def test_standby_without_the_last_debit_is_noticed_by_its_clients(postgres, database, link):
    address = f"postgresql://{postgres.user}@127.0.0.1:{link.port}/{database}"
    store = ServerStore(address)
    add(store, "1")
    standby = Postgres(postgres)
    try:
        standby.stop()
        add(store, "2")
        with open(standby.data / "postgresql.auto.conf", "a", encoding="utf-8") as file:
            file.write("primary_conninfo = ''\n")  # it hears no more of the first server
        standby.start()
        standby.run("pg_ctl", "promote", "-w", "-D", standby.data)
        link.target = standby.port
        store._drop()
        for use in (lambda: bodies(store), lambda: add(store, "3")):
            with pytest.raises(LedgerError, match="rolled back"):
                use()
        assert bodies(ServerStore(address)) == ["1"]  # who is new cannot know
    finally:
        standby.remove()
    link.target = postgres.port
    store._drop()
    assert bodies(store) == ["1", "2"]
