"""Tables that were opened before in this process, recognised when they are opened again.

A frame that is loaded again shares no memory with the first one, and nothing in it names a session.
So rows are compared, as ledger files compare them: half of their keyed hashes must agree
(`dpframe._ledger.store.same_table`). A table that is opened for the first time is not read for it.
Rows are hashed once another table has the same columns, dtypes and number of rows.

*Formal guarantee.* Whether `open` warns depends on the cells of two tables, and so is no private
release. It tells that the tables are equal, about, to whoever loaded both of them in one process.
No number is released, and no answer, price or debit depends on it
(docs/guarantees/session.md#a-second-budget).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from functools import lru_cache
from typing import TYPE_CHECKING

from dpframe._errors import DataError, caution
from dpframe._ledger.store import same_table
from dpframe._session.door import read_private
from dpframe.engines.fingerprints import ENOUGH, sample_sketch
from dpframe.mechanisms import _sampling

if TYPE_CHECKING:
    from dpframe._session.session import Session

SECOND_BUDGET = (
    "second budget on a table opened before: go on with the first (accountant=p.accountant), "
    "or keep one with ledger=."
)

FORMS = 64  # how many forms of tables are remembered, with the last sessions of each
TABLES = 16

# The sessions that were opened, by the number of rows and the names of the columns.
_opened: OrderedDict[object, deque[Session]] = OrderedDict()


def recognise_table(session: Session, declared: bool) -> None:
    """Warn if the table of a new session was opened before, with another budget; remember it.

    ``declared`` tells that the owner gave a reason for a second budget. A budget in a ledger file
    is left to the file, which recognises tables by itself. A source is left out, which is known by
    what it reads, and so is a table of a few rows. Those that were opened longest ago are forgotten
    once there are too many.
    """
    data, account = session.data, session.terms.account
    if data.source is not None or data.rows < ENOUGH:
        return
    session.form = data.rows, tuple(data.leaves)
    others = _opened.get(session.form)
    if others is None:
        others = _opened[session.form] = deque(maxlen=TABLES)
    elif not declared and account.place is None:
        alike = [one for one in others if one.data.dtypes == data.dtypes]
        if any(
            _holds_same_rows(one, session) for one in alike if not account.names(one.accountant)
        ):
            caution(SECOND_BUDGET)
    others.append(session)
    _opened.move_to_end(session.form)
    if len(_opened) > FORMS:
        _opened.popitem(last=False)


def remember_before_closing(session: Session) -> None:
    """Sketch the table of a session that is about to let go of its data.

    A table on which nothing was spent is forgotten.
    """
    others = None if session.form is None else _opened.get(session.form)
    if others is not None and session in others:
        if session.accountant.has_debits:
            _sketch_rows(session)
        else:
            others.remove(session)


def _holds_same_rows(one: Session, other: Session) -> bool:
    """Return whether half of the rows that are compared are those of both sessions."""
    sketch = _sketch_rows(one)
    return bool(sketch) and same_table(sketch, _sketch_rows(other))


def _sketch_rows(session: Session) -> list[str]:
    """Return the sketch of some rows of a table, which are read once.

    It is empty if they cannot be read.
    """
    if session.sketch is None:
        try:
            session.sketch = read_private(
                "open", sample_sketch, session.data.snapshot, _draw_secret()
            )
        except DataError:
            session.sketch = []
    return session.sketch


@lru_cache(maxsize=1)
def _draw_secret() -> bytes:
    """Draw the key of the hashes of rows, once a process."""
    return _sampling.random_bytes(16)
