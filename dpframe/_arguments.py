"""The arguments of a call that do not fit a verb, explained in plain words.

Python's own message would name classes and functions that a user has never seen. As in pandas, an
argument at its default is the same as no argument, also where a verb does not have it.

Pure: nothing here reads data, and nothing here can spend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import CO_VARARGS, CO_VARKEYWORDS, Parameter, Signature, signature
from types import FunctionType
from typing import Any

from pandas.api.extensions import no_default

from dpframe._errors import BadType, DPError, did_you_mean
from dpframe._refusals import IDLE_WORDS, PANDAS_WORDS

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_NAMELESS = (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL)
_COLLECTED = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def read_defaults(method: object) -> dict[str, object]:
    """Return the default values of a pandas method's arguments, by name. What cannot be called has
    no arguments."""
    if not callable(method):
        return {}
    return {
        p.name: p.default
        for p in signature(method).parameters.values()
        if p.default is not Parameter.empty
    }


def list_idle(verb: FunctionType, defaults: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of pandas that mean nothing to a verb at their default, by name.

    ``defaults`` are those of the pandas method. A verb lacks such an argument, or has another
    default where pandas has None, no default at all, or a word of `IDLE_WORDS`.
    """
    parameters = signature(verb).parameters
    own = {n: p.default for n, p in parameters.items() if p.kind not in _COLLECTED}
    return {
        name: default
        for name, default in defaults.items()
        if name not in own
        or (
            not _is_same(own[name], default)
            and (default in (None, no_default) or default in IDLE_WORDS.get(name, ()))
        )
    }


def drop_idle(named: Mapping[str, Any], idle: Mapping[str, object]) -> dict[str, Any]:
    """Return named arguments without those at a default that means nothing: see `list_idle`."""
    return {n: v for n, v in named.items() if n not in idle or not _is_same(v, idle[n])}


def was_entered(error: TypeError) -> bool:
    """Return whether an error was raised inside a method, so that wrong arguments in the call are
    not the reason.

    To be called where the call of the verb stands, in its ``except`` block.
    """
    trace = error.__traceback__
    return isinstance(error, DPError) or trace is None or trace.tb_next is not None


def correct_arguments(
    verb: FunctionType,
    positional: Sequence[object],
    named: Mapping[str, object],
    defaults: Mapping[str, object],
    given: int = 1,
) -> dict[str, Any]:
    """Return the named arguments of a failed call without those that only pandas has and that
    change nothing. The call is then tried again. ``verb`` is the method, and ``defaults`` are those
    of pandas.

    Raise a `BadType` that names the misfit if there are none of these. ``given`` counts the first
    parameters, which the user does not write.
    """
    parameters = [
        p
        for p in list(signature(verb).parameters.values())[given:]
        if p.kind is not Parameter.VAR_KEYWORD
    ]
    known = {p.name for p in parameters if p.kind not in _NAMELESS}
    takes_all = verb.__code__.co_flags & CO_VARKEYWORDS
    unknown = [] if takes_all else [name for name in named if name not in known]
    harmless = [name for name in unknown if _changes_nothing(name, named[name], defaults)]
    if harmless:
        return {name: value for name, value in named.items() if name not in harmless}
    if unknown:
        raise _unknown_argument(verb.__name__, unknown[0], known, defaults) from None
    raise _misfit(verb.__name__, parameters, positional, named) from None


def _changes_nothing(name: str, value: object, defaults: Mapping[str, object]) -> bool:
    """Return whether an argument that only pandas has can be dropped, since this value changes
    nothing. ``defaults`` are those of the pandas method."""
    harmless = PANDAS_WORDS[name][0] if name in PANDAS_WORDS else ()
    if name in defaults:
        harmless = (*harmless, defaults[name], *IDLE_WORDS.get(name, ()))
    return any(_is_same(value, one) for one in harmless)


def _is_same(first: object, second: object) -> bool:
    """Return whether two argument values are the same object, or equal plain values of the same
    type."""
    return first is second or (
        type(first) is type(second)
        and isinstance(first, bool | int | float | str)
        and first == second
    )


def _unknown_argument(
    verb: str, name: str, known: set[str], defaults: Mapping[str, object]
) -> BadType:
    """Return the error about an argument that a method does not have, with advice if pandas has
    it."""
    if name in PANDAS_WORDS:
        return BadType(f"{name}= is refused here: {PANDAS_WORDS[name][1]}")
    if name in defaults:
        return BadType(
            f"{verb} takes {name}= only with the value that pandas has by default. Leave it out."
        )
    return BadType(f"{verb} has no argument {name}=.{did_you_mean(name, sorted(known), 'It has')}")


def _misfit(
    verb: str,
    parameters: Sequence[Parameter],
    positional: Sequence[object],
    named: Mapping[str, object],
) -> BadType:
    """Return the error that says how the arguments of a call do not fit: too many, given twice, or
    missing."""
    places = [p.name for p in parameters if p.kind in _POSITIONAL]
    if len(positional) > len(places):
        most = (
            f"at most {len(places)} by position: {', '.join(places)}"
            if places
            else "none by position"
        )
        return BadType(
            f"{verb} is given {len(positional)} arguments by position, and takes {most}."
        )
    twice = [name for name in places[: len(positional)] if name in named]
    if twice:
        return BadType(f"{verb} is given {twice[0]} twice, by position and by name.")
    lacking = [
        p.name
        for p in parameters[len(positional) :]
        if p.default is Parameter.empty and p.name not in named
    ]
    return BadType(f"{verb} needs {f'{lacking[0]}=' if lacking else 'other arguments'}.")


# The methods of a class -------------------------------------------------------------------------


def check_methods(
    kind: type,
    like: Sequence[type],
    check: Callable[[FunctionType, Mapping[str, object]], FunctionType],
) -> None:
    """Replace each public method of the class ``kind`` by what ``check`` returns for it.

    ``check`` gets a method and the defaults of the methods of the same name in ``like``, classes of
    pandas. A method under two names is replaced once, and has the defaults of both. A method that
    takes any arguments stays.
    """
    replaced: dict[FunctionType, FunctionType] = {}
    methods = list(public_methods(kind))
    defaults: dict[FunctionType, dict[str, object]] = {}
    for name, method in methods:
        for one in like:
            defaults.setdefault(method, {}).update(read_defaults(getattr(one, name, None)))
    for name, method in methods:
        own = method
        if ~method.__code__.co_flags & (CO_VARARGS | CO_VARKEYWORDS):
            if method not in replaced:
                replaced[method] = check(method, defaults[method])
            own = replaced[method]
            own.__qualname__ = f"{kind.__name__}.{method.__name__}"
            setattr(kind, name, own)
        show_signature(own, method_signature(signature(method), kind))


def public_methods(kind: type) -> Iterator[tuple[str, FunctionType]]:
    """Yield the name and function of each public method of a class that `check_methods` has not
    replaced yet."""
    for name in dir(kind):
        method = getattr(kind, name)
        checked = hasattr(method, "_checks_arguments")
        if isinstance(method, FunctionType) and not name.startswith("_") and not checked:
            yield name, method


def public_functions(kind: type) -> list[FunctionType]:
    """Return the public methods of a class, each once."""
    methods = [getattr(kind, name) for name in dir(kind) if not name.startswith("_")]
    return list(dict.fromkeys(one for one in methods if isinstance(one, FunctionType)))


def method_signature(whole: Signature, kind: type) -> Signature:
    """Return the signature to show for a function that becomes a method of the class ``kind``. Its
    first parameter loses its annotation.

    A function that returns the type of its first argument returns the class.
    """
    first, *rest = whole.parameters.values()
    of_kind = (
        first.annotation is not Parameter.empty and first.annotation == whole.return_annotation
    )
    returns_kind = of_kind or whole.return_annotation == "Self"
    returned = kind.__name__ if returns_kind else whole.return_annotation
    nameless = first.replace(annotation=Parameter.empty)
    return whole.replace(parameters=[nameless, *rest], return_annotation=returned)


def show_signature(function: FunctionType, shown: Signature) -> None:
    """Set the signature that help, completion and `inspect` show for a function."""
    vars(function)["__signature__"] = shown
