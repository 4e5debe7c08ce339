"""Opening what is no pandas frame: files, and tables of other engines, by the same words."""

from __future__ import annotations

import os
import re
import warnings
from contextlib import suppress
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, signature
from typing import Any

import pandas as pd

from dpframe._errors import BadType, BadValue, DataError, DPError, NoSession, debugging
from dpframe._frame.accessor import frame_of_session
from dpframe._frame.surface import PrivateFrame
from dpframe._ledger.accountant import Accountant
from dpframe._session.card import Card
from dpframe._session.door import describe_failure, read_private
from dpframe._session.opening import (
    find_or_open_session,
    name_arguments,
    open_again,
    open_session,
    opening,
)
from dpframe._session.terms import Words
from dpframe.engines.sources import NamedTable, Source
from dpframe.engines.steadiness import check_declared
from dpframe.engines.tables import list_tables, make_source

_UNITS = {
    "": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
}
_LEAST = 2**20


def open(
    source: object, *budget: object, memory: int | str | None = None, **words: object
) -> PrivateFrame:
    """Open the budgeted session of files, or of a table that another engine has, by the words of
    ``df.dp.open``.

    ``source`` is {tables}; what `dpframe.sql` returns; or a pandas frame, of which this is
    ``df.dp.open``. Its rows are read in batches, and only the columns that a question
    needs. With ``unit=`` whole people are read in as many passes as ``memory`` makes needed. The
    same line once more returns the session that is there, as long as the table is what it was.

    Formal guarantee: as of ``df.dp.open``. The integers that noise is added to are those of the
    same rows in one frame, whatever the batches, their order and the number of passes. What changes
    when the rows do (sizes and times of files) is fixed here: it is compared before each debit, and
    once more before an answer.

    Parameters
    ----------
    memory
        How much, about, one pass over people may take: bytes, or ``"2GB"``. A quarter of what is free, if left out.
    ledger, population
        As of ``df.dp.open``, and required: that a table elsewhere is the same as another one cannot be proven, so its budget
        has to be known by name. ``because=`` declares why this one needs neither.

    Examples
    --------
    >>> import dpframe
    >>> import pyarrow as pa
    >>> visits = pa.table({"age": [30, 41, 55], "state": ["CA", "NY", "CA"]})
    >>> p = dpframe.open(visits, 1000, bounds={"age": (0, 110)}, because="an example")
    >>> p.query("age > 35").count(epsilon=900) == 2
    True
    """
    given = name_arguments(budget, words)
    if isinstance(source, pd.DataFrame):
        if memory is not None:
            raise BadType("memory= is for sources that are not in memory: a pandas frame is.")
        found: PrivateFrame = source.dp.open(**given)
        return found
    bytes_ = free() // 4 if memory is None else bytes_of(memory)
    if given.get("card") is not None:
        given = {**given, "card": Card.of(given["card"])}
    said_with_card = {**given["card"].words, **given} if "card" in given else given
    check_connection(said_with_card)
    table = recognise_source(source)
    _check_steady(table, said_with_card)
    with opening:
        again = open_again(table, given)
        if again is not None:  # the line that opened it, run once more
            table.close()
            again.memory = max(bytes_, _LEAST)
            return frame_of_session(find_or_open_session(again.schema, given))
        table.memory = max(bytes_, _LEAST)
        # Then it is public.
        if given.get("neighbors") == "replace-one" and given.get("unit") is None:
            table.public_row_count = read_private("open", table.rows)
        p = frame_of_session(find_or_open_session(table.schema, given))
        reasons = [f"{part}: {given['because']}" for _, part in table.declared]
        p.accountant.declare(
            [("source", word, "open") for word in (shorten(table.place), *reasons)]
        )
        return p


# The list is that of the catalogue of kinds of tables.
open.__doc__ = (open.__doc__ or "").replace("{tables}", list_tables())


def sql(database: object, table: str) -> NamedTable:
    """Name a table or a view of a database, to be opened by `dpframe.open`.

    ``database`` is a URL, ``"sqlite:///clinic.db"`` or ``"duckdb:///clinic.duckdb"``, or a
    connection of sqlite3 or duckdb.

    A cell of SQLite that is not of the type that its column declares is a null.

    Examples
    --------
    >>> import dpframe
    >>> import sqlite3
    >>> clinic = sqlite3.connect(":memory:")
    >>> _ = clinic.execute("CREATE TABLE visits (patient INTEGER, cost REAL)")
    >>> _ = clinic.executemany("INSERT INTO visits VALUES (?, ?)", [(1, 10.0), (1, 30.0), (2, 6.0)])
    >>> clinic.commit()
    >>> p = dpframe.open(dpframe.sql(clinic, "visits"), 1000, unit="patient", max_rows=5, max_groups=1, because="an example")
    >>> p.count(epsilon=900) == 3
    True
    """
    if not isinstance(table, str) or not table:
        raise BadType("table must be the name of a table or a view.")
    return NamedTable(database, table)


class OfTable:
    """``.dp`` of a table of another library: `open` opens it, and then this is its session's
    frame."""

    def __init__(self, table: Any):
        self._table = table
        self._opened: PrivateFrame | None = None

    def open(
        self, *budget: object, memory: int | str | None = None, **words: object
    ) -> PrivateFrame:
        """Open a session, as `dpframe.open` of this table does."""
        self._opened = open(self._table, *budget, memory=memory, **words)
        return self._opened

    @property
    def _frame(self) -> PrivateFrame:
        """The tracked frame of the session that this table has; refused without a session."""
        if self._opened is None:
            raise NoSession(
                "this table has no session. If it was made of one that has, ask that one and write the steps behind .dp: "
                "table.dp.query('age > 50').count(). Otherwise open one with the whole budget: table.dp.open(epsilon=1, ...)."
            )
        return self._opened

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._frame, name)

    def __getitem__(self, key: object) -> Any:
        return self._frame[key]

    def __dir__(self) -> list[str]:
        return ["open"] if self._opened is None else dir(self._opened)

    def __repr__(self) -> str:
        """Show the tracked frame, or how to open a session."""
        return (
            "no dpframe session: open one with .dp.open(epsilon=..., ...)"
            if self._opened is None
            else repr(self._opened)
        )


def show_signatures_of_open() -> None:
    """Show the arguments of ``df.dp.open`` in the signatures of `open` and `OfTable.open`."""
    frame, *rest = signature(open_session, eval_str=True).parameters.values()
    extra = signature(open, eval_str=True).parameters["memory"]
    shown: Any = open
    source = Parameter("source", frame.kind, annotation=Any)
    whole = signature(open, eval_str=True)
    shown.__signature__ = whole.replace(parameters=[source, *rest, extra])
    method: Any = OfTable.open
    method.__signature__ = whole.replace(parameters=[source.replace(name="self"), *rest, extra])


show_signatures_of_open()


def recognise_source(table: object) -> Source:
    """Return the source that reads a table of another library.

    A failure of its engine becomes a `DataError` that does not quote it, and warnings are hidden.
    """
    if find_spec("pyarrow") is None:
        raise BadType("what is not a pandas frame is read by pyarrow: pip install pyarrow.")
    failed: Exception | None = None
    try:
        with warnings.catch_warnings():  # nor are its warnings dpframe's
            warnings.simplefilter("ignore")
            found = make_source(table)
            found.given = table
            return found
    except DPError:
        raise
    except Exception as error:
        failed = error if debugging() else None
    raise DataError(describe_failure("open")) from failed


def check_connection(words: Words) -> None:
    """Refuse to open a source outside of memory without a ledger and a population.

    ``words`` are the arguments of `open`. A given accountant or a reason, ``because=``, is enough
    too.
    """
    if words.get("because") is not None or isinstance(words.get("accountant"), Accountant):
        return
    missing = [word for word in ("ledger", "population") if words.get(word) is None]
    if missing:
        raise BadValue(
            f"a source outside of memory needs {' and '.join(f'{word}=' for word in missing)}: nothing proves that two of "
            "them are different tables, so the budget of these people is kept by name. dpframe.open(source, ..., "
            "ledger='budget.db', population='patients'), or declare why not: because='...'."
        )


def _check_steady(table: Source, words: Words) -> None:
    """Close and refuse a table with hazards that the user has not declared by ``because=``.

    ``words`` are the arguments of `open`.
    """
    try:
        check_declared(table.declared, words.get("because"))
    except BadValue:
        table.close()
        raise


def bytes_of(memory: object) -> int:
    """Return a size in bytes, from a number or a text such as ``"2GB"``."""
    if isinstance(memory, int) and not isinstance(memory, bool) and memory > 0:
        return memory
    match = (
        re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", memory)
        if isinstance(memory, str)
        else None
    )
    size = (
        None
        if match is None
        else _UNITS.get(match[2].upper().removesuffix("B") + "B" if match[2] else "")
    )
    if match is None or size is None or not Fraction(match[1]):
        raise BadValue(
            f"memory= must be a number of bytes, or a text such as '2GB', not {memory!r}."
        )
    return max(1, int(Fraction(match[1]) * size))


def free() -> int:
    """Return how many bytes of memory are free, at most what the process may have.

    It is a gigabyte where the system does not tell.
    """
    found = 2**30
    with (
        suppress(OSError, StopIteration, ValueError),
        os.fdopen(os.open("/proc/meminfo", os.O_RDONLY)) as lines,
    ):
        found = 1024 * next(
            int(line.split()[1]) for line in lines if line.startswith("MemAvailable")
        )
    with suppress(ImportError):  # there is no such module on Windows
        resource: Any = import_module("resource")
        limits = (
            resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_DATA, resource.RLIMIT_AS)
        )
        found = min(found, *(limit for limit in limits if limit != resource.RLIM_INFINITY), found)
    return found


def shorten(place: str) -> str:
    """Return a place in one line, for the ledger."""
    first, _, rest = place.partition("\n")
    more = rest.count("\n") + 1 if rest else 0
    return first[:300] + (f" and {more} more" if more else "")
