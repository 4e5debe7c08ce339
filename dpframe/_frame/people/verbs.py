"""The verbs within a person that a group of columns and a traced column share, installed from the
catalogue `VERBS`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dpframe import _validate
from dpframe._expr import Expr
from dpframe._frame.people.within import CHECKS, VERBS, PersonVerb, build_within
from dpframe._frame.selection import Selection
from dpframe._types import Arguments

if TYPE_CHECKING:
    from dpframe._frame.people.windows import Window

Build = Callable[[Selection, Expr], Expr]  # makes an expression of a column's


class PersonVerbs(ABC):
    """Verbs within a person: those of `VERBS`, and those that take more than one argument."""

    @abstractmethod
    def _make_people(self, verb: PersonVerb, args: Arguments, numeric_only: bool) -> Any:
        """Return what a verb makes that has one value for each person."""

    @abstractmethod
    def _make_rows(self, build: Build) -> Any:
        """Return what is built of each column, with a value for each row."""

    @abstractmethod
    def _make_window(self, rows: int | None, least: int) -> Window:
        """Return windows of some rows; None stands for all rows up to each."""

    def _apply(self, verb: PersonVerb, *args: object, numeric_only: bool = False) -> Any:
        """Return the result of a verb of the catalogue, after checking its arguments.

        ``args`` holds the further argument that some verbs take, such as ``periods``.
        """
        checked = tuple(CHECKS[verb.word](value) for value in args) if verb.word else ()
        if verb.single:
            return self._make_people(verb, checked, numeric_only)
        return self._make_rows(lambda selection, x: verb.build(selection, x, *checked))

    def rank(
        self,
        method: str = "average",
        ascending: bool = True,
        na_option: str = "keep",
        pct: bool = False,
    ) -> Any:
        """Return the rank of each value among the person's own; a null has no rank."""
        _validate.choice(na_option, "na_option", ("keep",))
        name = _validate.choice(method, "method", ("average", "min", "max", "first", "dense"))
        args = name, _validate.flag(ascending, "ascending"), _validate.flag(pct, "pct")
        return self._make_rows(lambda selection, x: build_within(selection, "rank", x, args))

    def expanding(self, min_periods: int = 1) -> Window:
        """Return windows of all of a person's rows up to each: ``expanding().mean()``."""
        return self._make_window(None, _validate.positive_int(min_periods, "min_periods"))


# The method of a verb, by the further argument that it takes. Each has the signature of pandas.


def _method_with_ddof(verb: PersonVerb) -> Callable[..., Any]:
    def method(self: PersonVerbs, ddof: int = verb.default, numeric_only: bool = False) -> Any:
        return self._apply(verb, ddof, numeric_only=numeric_only)

    return method


def _method_with_q(verb: PersonVerb) -> Callable[..., Any]:
    def method(self: PersonVerbs, q: float = verb.default, numeric_only: bool = False) -> Any:
        return self._apply(verb, q, numeric_only=numeric_only)

    return method


def _method_with_periods(verb: PersonVerb) -> Callable[..., Any]:
    def method(self: PersonVerbs, periods: int = verb.default) -> Any:
        return self._apply(verb, periods)

    return method


def _method_with_numeric_only(verb: PersonVerb) -> Callable[..., Any]:
    def method(self: PersonVerbs, numeric_only: bool = False) -> Any:
        return self._apply(verb, numeric_only=numeric_only)

    return method


def _method_without_arguments(verb: PersonVerb) -> Callable[..., Any]:
    def method(self: PersonVerbs) -> Any:
        return self._apply(verb)

    return method


_METHODS = {
    "ddof": _method_with_ddof,
    "q": _method_with_q,
    "periods": _method_with_periods,
    None: _method_with_numeric_only,
}


def _install(verbs: dict[str, PersonVerb]) -> None:
    """Give `PersonVerbs` a method for each verb of the catalogue."""
    for verb in verbs.values():
        plain = verb.word is None and (verb.counts or not verb.single)
        method = (_method_without_arguments if plain else _METHODS[verb.word])(verb)
        method.__name__, method.__qualname__ = verb.name, f"PersonVerbs.{verb.name}"
        method.__doc__ = verb.doc
        setattr(PersonVerbs, verb.name, method)


_install(VERBS)
