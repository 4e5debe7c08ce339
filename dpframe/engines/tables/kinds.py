"""The catalogue of kinds of tables: one entry for each, in the file that reads it.

Messages, the docstring of `dpframe.open`, the table of hazards in the pages and the conformance
tests walk over `KINDS`. ``docs/develop/add-an-engine.md`` adds a kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpframe._errors import BadType, NotOffered
from dpframe.engines.sources import NamedTable, Source

# From rows in a table of pyarrow, and an empty folder, to a table of the kind.
MakeExample = Callable[[Any, Path], Any]


@dataclass(frozen=True, slots=True)
class TableKind:
    """One kind of table that `dpframe.open` takes.

    A table is of this kind if its class, or a class that it inherits from, has one of the names in
    ``types``: package and class, such as ``"polars.LazyFrame"``. So no package is imported to tell
    tables apart. Where ``database`` is set, these are the classes of connections that `dpframe.sql`
    takes, and ``url_schemes`` the beginnings of its URLs. ``read`` then gets connection and table.

    ``source`` answers each hazard of `dpframe.engines.steadiness`. ``example`` puts given rows into
    a table of the kind, for the conformance tests; None if that takes a server.
    """

    title: str  # in the tables of the pages
    words: str  # in messages and docstrings: "a polars LazyFrame"
    types: tuple[str, ...]
    read: Callable[..., Source]
    source: type[Source]
    requires: tuple[str, ...]  # modules that must be installed
    extra: str  # the extra of dpframe that installs them
    example: MakeExample | None
    database: bool = False
    url_schemes: tuple[str, ...] = ()

    def is_installed(self) -> bool:
        """Return whether the packages that this kind of table requires can be imported."""
        return all(_is_module(name) for name in self.requires)

    def check_installed(self) -> None:
        """Raise if a package that this kind of table requires is missing, with the line that
        installs it."""
        missing = [name for name in self.requires if not _is_module(name)]
        if missing:
            raise ModuleNotFoundError(
                f"dpframe.open of {self.words} needs {' and '.join(missing)}: "
                f"pip install 'dpframe[{self.extra}]'"
            )


KINDS: list[TableKind] = []


def register_kind(kind: TableKind) -> TableKind:
    """Add a kind of table to the catalogue, and return it.

    Each module that reads a kind calls this when it is imported.
    """
    KINDS.append(kind)
    return kind


def make_source(table: object) -> Source:
    """Return the source that reads a table given to `dpframe.open`; refuse an unknown class."""
    if isinstance(table, NamedTable):
        return make_named_source(table)
    kind = find_kind(table, database=False)
    if kind is None:
        raise BadType(
            f"dpframe.open does not read a {type(table).__name__}. It takes {list_tables()}, "
            "or dpframe.sql(...)."
        )
    kind.check_installed()
    return kind.read(table)


def make_named_source(named: NamedTable) -> Source:
    """Return the source of a table that `dpframe.sql` names by a URL or by a connection."""
    database, table = named.connection, named.table
    if isinstance(database, str):
        return _make_url_source(database, table)
    kind = find_kind(database, database=True)
    if kind is None:
        raise BadType(
            f"dpframe.sql does not read by a {type(database).__name__}. It takes "
            f"{list_connections()}. Of other databases write the rows to Parquet files."
        )
    kind.check_installed()
    return kind.read(database, table)


def _make_url_source(url: str, table: str) -> Source:
    """Return the source of a table in the database of a URL; refuse an unknown scheme."""
    kind = next((one for one in KINDS if url.startswith(one.url_schemes)), None)
    if kind is None or url.endswith(":///"):
        raise NotOffered(
            f"dpframe.sql does not read {url.partition(':')[0]!r}. It takes {list_connections()}. "
            "Of other databases write the rows to Parquet files, and open those: "
            "dpframe.open('rows.parquet', ...)."
        )
    kind.check_installed()
    return kind.read(url, table)


def find_kind(table: object, database: bool) -> TableKind | None:
    """Return the kind of a table, or of a connection to a database; None for an unknown class.

    ``database`` says that ``table`` is a connection. Base classes are searched too, by name, so
    that no package is imported.
    """
    for base in type(table).__mro__:
        name = f"{base.__module__.partition('.')[0]}.{base.__name__}"
        for kind in KINDS:
            if kind.database == database and name in kind.types:
                return kind
    return None


def list_tables() -> str:
    """Return the kinds of tables that `dpframe.open` takes by themselves, for messages."""
    return "; ".join(kind.words for kind in KINDS if not kind.database)


def list_connections() -> str:
    """Return what `dpframe.sql` takes as a database, for messages."""
    return "; ".join(kind.words for kind in KINDS if kind.database)


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its package is missing
        return False
