"""The address of a ledger on a server: one place, whoever asks; passwords, which are shown nowhere; and the extra it needs."""

from __future__ import annotations

import json
import logging
import traceback
from urllib.parse import quote

import pandas as pd
import pytest

from dpframe import BadValue, LedgerError, SessionError
from dpframe.__main__ import main
from dpframe._ledger import open_store, place_of
from dpframe._ledger.server import ServerStore
from tests.postgres import GRANTS, SECRETIVE
from tests.store.files import output, start

pytestmark = pytest.mark.extras


# URLs and passwords ---------------------------------------------------------------------------------------------

SAME = [
    ("postgresql://host/db", "postgresql+psycopg://host:5432/db"),
    (
        "postgresql://ann:pw@Host.:5432/db?sslmode=require&password=pw2",
        "postgresql+psycopg://host:5432/db",
    ),
    ("POSTGRESQL+PSYCOPG://bob@host/db?connect_timeout=3", "postgresql+psycopg://host:5432/db"),
    ("postgresql://host:5433/a%20b", "postgresql+psycopg://host:5433/a%20b"),
    ("postgresql://[::1]/db", "postgresql+psycopg://[::1]:5432/db"),
    (
        "postgresql:///db?host=/run/x/&port=5433",
        "postgresql+psycopg:///db?host=%2Frun%2Fx&port=5433",
    ),
    ("postgresql:///db?host=other", "postgresql+psycopg://other:5432/db"),
    ("postgresql:///db", "postgresql+psycopg:///db?port=5432"),
]


@pytest.mark.parametrize(("given", "place"), SAME)
def test_a_place_is_a_server_and_a_database_whoever_asks(given, place, monkeypatch):
    pytest.importorskip("sqlalchemy")
    monkeypatch.delenv("PGHOST", raising=False)
    monkeypatch.delenv("PGPORT", raising=False)
    assert place_of(given) == place_of(place) == ServerStore.place_of(given) == place


def test_a_server_that_the_environment_names_is_named(monkeypatch):
    pytest.importorskip("sqlalchemy")
    monkeypatch.setenv("PGHOST", "there")
    monkeypatch.setenv("PGPORT", "99")
    assert place_of("postgresql:///db") == "postgresql+psycopg://there:99/db"
    assert place_of("postgresql://here:1/db") == "postgresql+psycopg://here:1/db"


BAD = [
    "postgresql://ann:Sesame@host",
    "postgresql://ann:Sesame@host/",
    "postgresql://ann:Sesame@host:port/db",
    "postgresql://ann:Ses@ame@host/db",
    "postgresql:/ann:Sesame@host/db",
    "postgresql+psycopg://host1,host2/db?password=Sesame",
    "postgresql+psycopg:///db?host=a&host=b&password=Sesame",
    "postgresql://host/db?service=Sesame",
    "postgresql://a/db?host=b",
]


@pytest.mark.parametrize("bad", BAD)
def test_a_url_of_no_one_database_is_refused_without_its_words(bad):
    pytest.importorskip("sqlalchemy")
    with pytest.raises(BadValue) as caught:
        open_store(bad)
    assert "Sesame" not in str(caught.value)
    assert caught.value.__context__ is caught.value.__cause__ is None


def test_an_address_with_an_unknown_setting_says_so():
    pytest.importorskip("sqlalchemy")
    address = "postgresql://ann:Sesame@127.0.0.1:1/db?no_such=Sesame"
    with pytest.raises(LedgerError, match="setting behind") as caught:
        ServerStore(address)
    assert "Sesame" not in texts_of(caught.value)


def texts_of(error):
    """An error as it is printed, and all that it holds on to."""
    seen, found = set(), []
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        found += [str(error), repr(error.args), "".join(traceback.format_exception(error))]
        error = error.__cause__ or error.__context__
    return "\n".join(found)


def test_an_auditor_prints_the_books(postgres, database, url, capsys):
    df = pd.DataFrame({"x": [float(i) for i in range(30)]})
    df.dp.open(1, ledger=url, population="people", bounds={"x": (0, 40)}).mean(
        "x", epsilon=0.5, name="how much"
    )
    auditor = f"audit{database}"
    postgres.sql("postgres", f"CREATE ROLE {auditor} LOGIN")
    rights = (
        f"{GRANTS[0]}",
        "GRANT SELECT ON dpframe.entries TO {0}",
        "GRANT SELECT ON dpframe.head TO {0}",
    )
    postgres.sql(database, *(right.format(auditor) for right in rights))
    for words in ([], ["--json"]):
        main(["ledger", postgres.url(database, auditor), *words])
        assert "how much" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        main(["ledger", postgres.create(f"{database}-empty")])
    assert "there is no ledger 'postgresql" in str(caught.value.code)
    assert postgres.sql(f"{database}-empty", "SELECT to_regnamespace('dpframe')") == [(None,)]


def test_a_password_is_shown_nowhere(postgres, database, capsys, caplog):
    postgres.sql("postgres", f"CREATE ROLE {SECRETIVE} LOGIN SUPERUSER PASSWORD 'Aladdin€@/:#'")
    caplog.set_level(logging.DEBUG)
    right = postgres.url(database, SECRETIVE, "Aladdin€@/:#", tcp=True)
    wrong = postgres.url(database, SECRETIVE, "Aladdin?", tcp=True)
    nowhere = wrong.replace(str(postgres.port), "1")
    for bad in (wrong, nowhere, right.replace(database, "nothing")):
        with pytest.raises(LedgerError, match="does not answer") as caught:
            ServerStore(bad)
        assert "Aladdin" not in texts_of(caught.value)
    df = pd.DataFrame({"x": [float(i) for i in range(30)]})
    p = df.dp.open(1, ledger=right, population="people", bounds={"x": (0, 40)})
    answer = p.mean("x", epsilon=0.5)
    main(["ledger", right])
    main(["ledger", right, "--json"])
    account = p.accountant
    shown = [
        *(
            repr(p),
            repr(account),
            account.file,
            account.place,
            json.dumps(df.attrs),
            repr(p._session.terms),
        ),
        *(repr(answer), answer.receipt() if callable(getattr(answer, "receipt", None)) else ""),
        *(e.body for e in account._store.entries("people")),
        *(repr(account._store), p._repr_html_() if hasattr(p, "_repr_html_") else ""),
        capsys.readouterr().out,
        caplog.text,
        postgres.log,
    ]
    assert "127.0.0.1" in account.file
    text = "\n".join(map(str, shown)).replace(
        "PASSWORD 'Aladdin€@/:#'", ""
    )  # of the administrator's own statement
    assert "Aladdin" not in text
    assert quote("Aladdin€@/:#", safe="") not in text
    with pytest.raises(SessionError) as caught:
        df.dp.open(2, ledger=right, population="people", bounds={"x": (0, 40)})
    assert "Aladdin" not in texts_of(caught.value)


def test_without_the_extra_a_url_says_what_to_install_and_files_work(path):
    code = """
import sys
sys.modules["sqlalchemy"] = None
import pandas as pd, dpframe
for ask in (
    lambda: dpframe.Accountant(1, ledger="postgresql://ann:Sesame@host/db", population="people"),
    lambda: pd.DataFrame({"x": [1.0]}).dp.open(1, ledger="postgresql://ann:Sesame@host/db", population="people"),
):
    try:
        ask()
    except dpframe.BadValue as error:
        print('pip install "dpframe[server]"' in str(error), "Sesame" in str(error))
print(dpframe.Accountant(1, ledger=path, population="people").budget.remaining)
"""
    assert output(start(code, path)) == ["True", "False", "True", "False", "1.0"]


def test_importing_dpframe_imports_no_driver(path):
    code = "import dpframe\nprint(*{'sqlalchemy', 'psycopg'} & set(sys.modules))\n"
    assert output(start(code, path)) == []
