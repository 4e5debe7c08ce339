"""The card of a table: what is declared of it, as a file that `open` reads."""

from __future__ import annotations

import os
from pathlib import Path

from dpframe import _validate
from dpframe._errors import BadType, BadValue, Refused
from dpframe._frame.tracked import Tracked
from dpframe._frame.verbs.looking import public_dtype
from dpframe._session import card_writing

_FORMATS = {
    "toml": card_writing.as_toml,
    "json": card_writing.as_json,
    "csvw-eo": card_writing.as_metadata,
}


def card(
    self: Tracked, path: str | os.PathLike[str] | None = None, *, format: str | None = None
) -> str:
    """Write the card of the table that was opened, as text: unit, limits, bounds, keys, times,
    version, population, and dtypes.

    Written to a file if ``path`` names one, which ``open(card=path)`` reads. A file that is there
    and says something else is left as it is. What the budget is stands in no card.

    Formal guarantee: a function of what was declared and of names and dtypes alone. Nothing is
    read, so nothing is charged.

    Parameters
    ----------
    path
        A file, or None for the text alone. A name without an ending, as columns have one, is refused but with ``format=``.
    format
        ``"toml"``, ``"json"``, or ``"csvw-eo"``, the metadata of other tools (JSON). From the name of the file if left out:
        ``.json`` is JSON, and all else TOML.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({"age": [30, 41], "state": ["CA", "NY"]})
    >>> p = df.dp.open(1, bounds={"age": (0, 110)}, keys={"state": ["CA", "NY"]})
    >>> print(p.card())
    [columns.age]
    dtype = "int64"
    bounds = [0, 110]
    <BLANKLINE>
    [columns.state]
    dtype = "str"
    keys = ["CA", "NY"]
    <BLANKLINE>
    """
    session = self._session
    if session.data.origin is not None:
        raise Refused(
            "a card is about the table that was opened, and these rows were made of it. Write p.card() of the frame that open() "
            "returned."
        )
    if path is not None and not isinstance(path, str | os.PathLike):
        raise BadType(f"card() writes to the path of a file, not {type(path).__name__}.")
    if path is not None and format is None and not Path(path).suffix:
        name = os.fspath(path)
        raise BadValue(
            f"card({name!r}) would write a file of that name, which has no ending. Write p.card({name + '.toml'!r}), or say what "
            f"stands in it: p.card({name!r}, format='toml'). The text alone is p.card(), and it is of all columns."
        )
    if format is None:
        format = "json" if path is not None and Path(path).suffix == ".json" else "toml"
    _validate.choice(format, "format", tuple(_FORMATS))
    dtypes = [public_dtype(dtype) for dtype in session.data.dtypes]
    text = _FORMATS[format](card_writing.content_of(session.leaves, dtypes, session.terms))
    if path is not None:
        _write(Path(path), text)
    return text


def _write(path: Path, text: str) -> None:
    """Write a text to a new file; refuse to overwrite a file that says something else."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        if path.read_bytes() != text.encode():
            raise BadValue(
                f"{str(path)!r} is there and says something else, which may be somebody's work. Compare it with p.card(), and "
                "delete it first if this one is right."
            ) from None
    except OSError as problem:
        raise BadValue(f"{str(path)!r} cannot be written: {problem.strerror}.") from None
