"""Which session a frame belongs to: the sessions of this process, by the names that frames carry in their attrs."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from dpframe._errors import NoSession
from dpframe._ledger import place_of

if TYPE_CHECKING:
    from dpframe._session.session import Session

ATTR = "dpframe"

# Sessions live here, because an accessor is built anew at every access and attrs are copied.
sessions: dict[str, Session] = {}
closed: list[Session] = []  # without their data


def find(attrs: Mapping[Hashable, Any]) -> Session | None:
    """The session a frame's attrs name; None where they name none."""
    name = attrs.get(ATTR)
    if name is None:
        return None
    session = sessions.get(name) if isinstance(name, str) else None
    if session is None:
        place = elsewhere(attrs)
        if place is not None:
            ledger, population = place
            raise NoSession(
                "this frame names a dpframe session of another process. Its budget is in a file: open it again with the terms "
                f"it had, df.dp.open(..., ledger={ledger!r}, population={population!r})."
            )
        raise NoSession(
            "this frame names a dpframe session that is not in this process: it was closed, or it ended with the "
            "process that opened it. Its budget is gone. If the data has never been asked, remove the name "
            "(del df.attrs['dpframe']) and open a session."
        )
    return session


def same_place(attrs: Mapping[Hashable, Any], file: str | None, population: object) -> bool:
    """Whether the session that a frame names had this ledger and population, in whatever process."""
    place = elsewhere(attrs)
    return place is not None and (place_of(place[0]), place[1]) == (file, population)


def elsewhere(attrs: Mapping[Hashable, Any]) -> tuple[str, str] | None:
    """The ledger file and the population that a frame's session of another process had."""
    try:
        place = json.loads(attrs[ATTR])
        return str(place["ledger"]), str(place["population"])
    except (KeyError, TypeError, ValueError):
        return None
