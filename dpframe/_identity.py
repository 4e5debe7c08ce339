"""The tags by which named tuples stand in the encoding of a question (`_cells.encoding`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Tuple = TypeVar("_Tuple", bound=tuple[Any, ...])


def give_tag(tag: str) -> Callable[[type[_Tuple]], type[_Tuple]]:
    """Return a decorator that gives a named tuple its ``identity``. Its fields have an order
    already."""

    def decorate(kind: type[_Tuple]) -> type[_Tuple]:
        named: Any = kind
        named.identity = (tag, *named._fields)
        return kind

    return decorate
