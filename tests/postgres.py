"""A PostgreSQL server for tests: made in a temporary folder, asked by its socket and a free port, stopped at the end."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

try:
    import pwd
except ImportError:  # not on Windows
    pwd = None  # type: ignore[assignment]

PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql*/bin",
)
# What the page tells an administrator to grant, for ``format`` with a user.
PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "team-budget.md"
GRANTS = [
    line.replace("colleague;", "{0}")
    for line in PAGE.read_text("utf-8").splitlines()
    if line.startswith("GRANT ")
]
SECRETIVE = "sesame"  # a user who needs a password, by TCP
# A laptop's settings, but for durability, which is what is tested.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "autovacuum": "off",
    "log_statement": "all",
    "log_line_prefix": "%a: ",
}


def missing() -> str | None:
    """Why there is no server; None where one can be started."""
    absent = [name for name in ("sqlalchemy", "psycopg") if find_spec(name) is None]
    if absent:
        return f"{' and '.join(absent)} not installed: pip install -e '.[server]'"
    if pwd is None or programs() is None:
        return "no PostgreSQL server installed: apt-get install postgresql"
    if os.getuid() == 0 and (_owner() is None or shutil.which("runuser") is None):
        return "PostgreSQL does not run as root, and there is no user postgres"
    return None


def programs() -> Path | None:
    """The folder of initdb and pg_ctl; the newest where there are several."""
    found = [
        path for place in PLACES for path in Path("/").glob(place[1:]) if (path / "initdb").exists()
    ]
    beside = shutil.which("initdb")
    found += [Path(beside).resolve().parent] if beside else []
    return max((p for p in found if (p / "pg_ctl").exists()), key=_version, default=None)


def _version(folder: Path) -> tuple[int, ...]:
    told = subprocess.run(
        [folder / "initdb", "--version"], capture_output=True, text=True, check=True
    ).stdout
    return tuple(int(n) for n in told.split()[2].split(".") if n.isdigit())


def _owner() -> Any:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return None


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Postgres:
    """A running server, whose superuser is whoever runs the tests."""

    def __init__(self, copy_of: Postgres | None = None) -> None:
        folder = programs()
        assert folder is not None
        self.bin = folder
        # In memory where there is room: a server syncs often. Short, since the path of a socket has at most 107 letters.
        memory = Path("/dev/shm")
        roomy = (
            memory.is_dir()
            and os.access(memory, os.W_OK)
            and shutil.disk_usage(memory).free > 2**30
        )
        self.folder = Path(tempfile.mkdtemp(prefix="dpframe-", dir=memory if roomy else None))
        self.data, self.port = self.folder / "data", free_port()
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self._made: list[str] = []
        if os.getuid() == 0:
            owner = _owner()
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
            self.folder.chmod(0o755)
        if copy_of is None:
            words = ("--auth=trust", "--encoding=UTF8", "--locale=C", f"--username={self.user}")
            self.run("initdb", "-D", self.data, *words)
            rules = (self.data / "pg_hba.conf").read_text(encoding="utf-8")
            known = f"host all {SECRETIVE} all scram-sha-256\n"  # the first rule that fits counts
            (self.data / "pg_hba.conf").write_text(known + rules, encoding="utf-8")
        else:
            source = ("-h", copy_of.folder, "-p", str(copy_of.port), "-U", self.user)
            self.run("pg_basebackup", "-D", self.data, "-R", "-c", "fast", *source)
        settings = {**SETTINGS, "port": str(self.port), "unix_socket_directories": str(self.folder)}
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        # It ends with this process, however that ends: then its input is closed.
        stop = f"read line; '{self.bin / 'pg_ctl'}' stop -D '{self.data}' -m immediate; exec rm -rf '{self.folder}'"
        self._guard = subprocess.Popen(
            [*self._as_owner, "sh", "-c", stop],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # or what ends the tests would end it before its work
        )
        self.start()

    @property
    def _as_owner(self) -> list[str]:
        return ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []

    def run(self, program: str, *words: object) -> str:
        """What one of the server's programs says. It runs as a user who may run a server."""
        command = [*self._as_owner, str(self.bin / program), *map(str, words)]
        with open(
            self.folder / "said", "a+", encoding="utf-8"
        ) as said:  # a pipe would stay open with the server
            done = subprocess.run(
                command, stdout=said, stderr=said, cwd="/", timeout=120, check=False
            )
            said.seek(0)
            text = said.read()
        assert done.returncode == 0, text[-2000:]
        return text

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def start(self) -> None:
        self.run("pg_ctl", "start", "-w", "-D", self.data, "-l", self.folder / "log")

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "stop", "-w", "-D", self.data, "-m", mode)

    def restart(self, mode: str = "immediate") -> None:
        """What was not on disk is gone, and clients hear nothing."""
        self.run("pg_ctl", "restart", "-w", "-D", self.data, "-m", mode, "-l", self.folder / "log")

    def remove(self) -> None:
        """The end of it, whatever state it is in."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait(timeout=60)
        shutil.rmtree(self.folder, ignore_errors=True)

    # Databases ------------------------------------------------------------------------------------------------

    def url(
        self, database: str, user: str | None = None, password: str | None = None, tcp: bool = False
    ) -> str:
        """What a user gives as ``ledger=``: by the socket, or by the port of this machine."""
        name = quote(user or self.user, safe="") + (
            "" if password is None else ":" + quote(password, safe="")
        )
        if tcp:
            return f"postgresql+psycopg://{name}@127.0.0.1:{self.port}/{quote(database, safe='')}"
        where = f"host={quote(str(self.folder), safe='')}&port={self.port}"
        return f"postgresql+psycopg://{name}@/{quote(database, safe='')}?{where}"

    def create(self, database: str, more: str = "") -> str:
        """The URL of a new database; of the one of this name where the test has made it already."""
        if database not in self._made:
            self.sql("postgres", f'CREATE DATABASE "{database}" {more}')
            self._made.append(database)
        return self.url(database)

    def sql(self, database: str, *statements: str) -> list[Any]:
        """Plain SQL of an administrator, each statement by itself; the rows of the last one."""
        import psycopg

        rows: list[Any] = []
        words = {"host": str(self.folder), "port": self.port, "user": self.user, "dbname": database}
        with psycopg.connect(**words, autocommit=True, client_encoding="utf8") as connection:  # type: ignore[arg-type]
            for statement in statements:
                cursor = connection.execute(statement)  # type: ignore[arg-type]
                rows = cursor.fetchall() if cursor.description else []
        return rows
