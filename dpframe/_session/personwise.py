"""Whether a function works person by person: what it gives on halves of the people, put together, is what it gives on all.

A lint, not a proof: a function that looks across people only now and then, or that carries facts of the data in
itself, may pass. Nothing said here quotes a cell, and nothing is kept of what the function raised but the name of
its type.
"""

from __future__ import annotations

import dis
import inspect
import math
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.columns import objects, prepare
from dpframe._errors import BadType, BadValue, DPError, Refused
from dpframe._expr import Column
from dpframe.engines.fingerprints import hashes_of
from dpframe.engines.people import People, people_of
from dpframe.engines.rows import Places, rows_of
from dpframe.mechanisms import _sampling

HALVES = 4  # random ones; beside them nobody, two people and a few more against the others, and everybody in another order
SPLITS = HALVES + 4
_DEEP = 4  # so far from a function to the frames that it uses
_MUTABLE = set(map(id, (set, dict, bytearray, np.ndarray)))
_SAFE = set(map(id, (str, int, float, bool, bytes, type(None))))  # whose hash is Python's own
_DEEPEST = 20  # of lists in lists that are copied
_KNOWN = {*sys.stdlib_module_names, "pandas", "numpy", "dpframe"}
_FIX = (
    "Work within a person's rows (groupby of the unit), with constants that are public; or declare what was done: "
    "adopt(other, because='...')."
)


@dataclass
class Check:
    """A function, the frame it is given, and whose each row is: a code from 0, rows of one person in their order."""

    call: Callable[[pd.DataFrame], Any]
    name: str
    frame: pd.DataFrame
    unit: Sequence[Hashable]  # the columns that name a person; none where the index does
    whose: NDArray[np.int64]
    session: str  # what attrs say, so that no budget is opened on a part

    def result(self) -> pd.DataFrame:
        """What the function makes of all people, if it passes."""
        try:
            return self._result()
        except DPError:
            raise
        except Exception as problem:  # of cells with code of their own, which are hashed by their text
            failed = type(problem).__name__
        raise BadValue(f"what {self.name} returns cannot be compared: a {failed}. Return plain columns.")

    def _result(self) -> pd.DataFrame:
        people = int(self.whose.max(initial=-1)) + 1
        nobody = self._run(np.zeros(0, dtype=np.intp))
        if len(nobody):
            raise self._refused("it makes rows of no people")
        parts = []
        halves = [np.frombuffer(_sampling.random_bytes(people), dtype=np.uint8) & 1 for _ in range(HALVES)]
        # What goes by how many there are (len(d) > 50, groups of at least ten) is the same on halves of many people. Two and not
        # one: pandas adds up the numbers of a single group in another way, to another last digit.
        for some in (*halves, self._few(people, 2), self._few(people, math.isqrt(people))):
            side = some[self.whose] == 1
            parts.append([_fingerprint(self._run(np.flatnonzero(s))) for s in (side, ~side)])
        found = self._run(np.arange(len(self.frame)))
        whole = _fingerprint(found)
        parts.append([_fingerprint(self._run(self._another_order()))])
        for part in parts:
            self._compare(whole, part)
        return found

    @staticmethod
    def _few(people: int, size: int) -> NDArray[np.uint8]:
        some = np.zeros(people, dtype=np.uint8)
        some[_sampling.permutation(people)[:size]] = 1
        return some

    def _another_order(self) -> Places:
        """People between each other in a random order, the rows of each in their own."""
        seats = self.whose[_sampling.permutation(len(self.frame))]  # who sits where
        order = np.empty(len(seats), dtype=np.intp)
        order[np.argsort(seats, kind="stable")] = np.argsort(self.whose, kind="stable")
        return order

    def _run(self, places: Places) -> pd.DataFrame:
        part = rows_of(self.frame, places)
        if self.unit:
            part.index = pd.RangeIndex(len(part))
        part.attrs["dpframe"] = self.session
        whose = part[list(self.unit)] if self.unit else part.index
        given = _own_copy(part)
        failed, found = None, None
        try:
            found = self.call(given)
        except Exception as problem:
            failed = type(problem).__name__
        if failed is not None:  # outside the handler, so that what the function said does not come along
            raise BadValue(
                f"{self.name} raised a {failed}. It has to work on any of the people, and on nobody: try it on a frame of your "
                "own to see the message, which could quote a cell here."
            )
        if not isinstance(found, pd.DataFrame):
            raise BadType(f"{self.name} must return a DataFrame, not {type(found).__name__}.")
        result = normal(found, self.unit)
        for name in self.unit:  # pandas looks at the cells of an index of objects
            if name in result.columns and self.frame[name].dtype == object:
                result[name] = pd.Series(result[name].array, dtype=object)
        if len(result):
            self._check_people(result, whose)
        return result

    def _check_people(self, result: pd.DataFrame, whose: Any) -> None:
        """Each row belongs to one of the people who were there."""
        if self.unit:
            missing = [name for name in self.unit if name not in result.columns]
            if missing:
                raise BadValue(dropped(missing[0]))
            changed = [n for n in self.unit if result[n].dtype != whose[n].dtype]
            if changed:
                raise BadType(
                    f"{self.name} changes the dtype of the unit column {changed[0]!r}. Keep it as it is."
                )
            known = _members(result[list(self.unit)], whose)
        else:
            if result.index.nlevels > 1 or result.index.dtype != np.int64:
                raise BadValue(
                    f"{self.name} loses the index, which says whose row each is. Keep it, or open the session with unit=, the "
                    "column that names a person."
                )
            known = bool(result.index.isin(whose).all())
        if not known:
            raise self._refused("it gives rows to people who are not there")

    def _refused(self, why: str) -> Refused:
        return Refused(f"{self.name} does not work person by person: {why}. {_FIX}")

    def _compare(self, whole: Print, parts: Sequence[Print]) -> None:
        known = [p for p in [whole, *parts] if len(p.rows)]
        for one in known[1:]:
            if one.names != known[0].names:
                raise self._refused("its columns depend on which people are there")
            for name, a, b in zip(one.names, known[0].dtypes, one.dtypes, strict=True):
                if a != b:
                    raise self._refused(
                        f"the dtype of {name!r} depends on which people are there; fix it with astype in the function"
                    )
        together = np.sort(np.concatenate([p.rows for p in parts]))
        if not np.array_equal(together, whole.rows):
            raise self._refused("on parts of the people it does not give the rows that it gives on all")


@dataclass
class Print:
    """A frame as the sorted hashes of its rows."""

    names: list[Hashable]
    dtypes: list[Any]
    rows: NDArray[np.uint64]


def _own_copy(part: pd.DataFrame) -> pd.DataFrame:
    """A copy whose lists are copies too: what the function does to them is not done to the frame that was opened.

    Its dtypes are those of the frame, whatever the cells: pandas would call objects that are all texts ``str``.
    """
    given = part.copy()
    for i, dtype in enumerate(part.dtypes):
        if isinstance(dtype, np.dtype) and dtype.kind == "O":
            cells = objects(_copied(c, _DEEPEST) for c in part.iloc[:, i].array)
            column: Any = pd.Series(cells, dtype=object, index=part.index)
            given.isetitem(i, column)
    return given


def _copied(cell: Any, depth: int) -> Any:
    """A list, dict, set or array of its own, with its own ones inside. No code of another class runs."""
    kind = id(type(cell))
    if not depth:
        return cell
    if kind == id(list):
        return [_copied(one, depth - 1) for one in cell]
    if kind == id(tuple):
        return tuple(_copied(one, depth - 1) for one in cell)
    if kind == id(dict) and all(id(type(key)) in _SAFE for key in cell):
        return {key: _copied(one, depth - 1) for key, one in cell.items()}
    if kind == id(np.ndarray) and cell.dtype == object:
        return objects(_copied(one, depth - 1) for one in cell.ravel().tolist()).reshape(cell.shape)
    return cell.copy() if kind in _MUTABLE else cell


def _fingerprint(frame: pd.DataFrame) -> Print:
    """Hashes of the rows with their index labels: equal rows hash alike, whatever their order."""
    rows = np.zeros(len(frame), dtype=np.uint64)
    if isinstance(frame.index.dtype, np.dtype) and not isinstance(frame.index, pd.RangeIndex):
        rows = hashes_of(pd.Series(frame.index.array, dtype=frame.index.dtype))
    with np.errstate(over="ignore"):
        for i in range(frame.shape[1]):
            rows = rows * np.uint64(0x9E3779B97F4A7C15) ^ hashes_of(frame.iloc[:, i])
            rows ^= rows >> np.uint64(29)
    return Print(list(frame.columns), list(frame.dtypes), np.sort(rows))


def _members(found: pd.DataFrame, whose: pd.DataFrame) -> bool:
    there, known = (_people(frame).hashes for frame in (found, whose))
    return bool(np.isin(there, known).all())


def _people(frame: pd.DataFrame) -> People:
    leaves = [Column.of(i, name, frame.dtypes.iloc[i]) for i, name in enumerate(frame.columns)]
    return people_of([prepare(frame.iloc[:, leaf.position], leaf.kind) for leaf in leaves], b"")


def normal(frame: pd.DataFrame, unit: Sequence[Hashable]) -> pd.DataFrame:
    """The frame with the named levels of its index as columns, where the people are named by columns."""
    found = frame.copy(deep=False)
    found.attrs = {}
    if not found.columns.is_unique or found.columns.nlevels > 1:
        raise BadValue("the columns of the result must have one name each, and no two the same.")
    if unit:
        levels = [n for n in found.index.names if n is not None and n not in found.columns]
        if len(set(levels)) < len(levels):
            raise BadValue("the levels of the result's index must have names of their own.")
        found = found.reset_index(level=levels) if levels else found
        found.index = pd.RangeIndex(len(found))
    return found


def dropped(name: Hashable) -> str:
    return (
        f"a unit column dropped on the way: {name!r} says whose row each is, and must be among the columns, unchanged, before "
        "and after."
    )


def name_of(function: Any) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


def sees_private(function: Any, arguments: Sequence[Any], private: Callable[[Any], bool]) -> str | None:
    """The name of a private frame that the function uses from outside, as far as its code shows.

    Looked at are what it is called with and what its code names, and from there functions that it calls, what `partial`
    and methods are bound to, and what containers and plain objects hold, a few steps far.
    """
    todo = [("an argument", a, 0) for a in arguments] + [("", function, 0)]
    seen: set[int] = set()
    while todo:
        name, value, depth = todo.pop()
        if private(value):
            return name or "itself"
        if depth < _DEEP and id(value) not in seen:
            seen.add(id(value))
            todo += [(name or inner, held, depth + 1) for inner, held in _held(value)]
    return None


def _held(value: Any) -> list[tuple[str, Any]]:
    """What a value gives access to, by names."""
    if isinstance(value, partial):
        return [("an argument", x) for x in (*value.args, *value.keywords.values())] + [("", value.func)]
    if inspect.ismethod(value):
        return [("its object", value.__self__), ("", value.__func__)]
    if inspect.isfunction(value):
        return [] if str(value.__module__).partition(".")[0] in _KNOWN else _outside(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [("a list", x) for x in value]
    if isinstance(value, dict):
        return [(repr(name), x) for name, x in value.items()]
    plain = not isinstance(value, type | ModuleType | pd.DataFrame | pd.Series | pd.Index | np.ndarray)
    try:
        found = getattr(value, "__dict__", None) if plain else None
    except Exception:  # of somebody else's objects
        return []
    return [(repr(name), x) for name, x in found.items()] if isinstance(found, dict) else []


def _outside(function: Any) -> list[tuple[str, Any]]:
    """What the code of a function names: globals, variables of functions around it, defaults."""
    known = function.__globals__
    found = [(repr(name), known[name]) for name in sorted(_globals(function.__code__)) if name in known]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found.append((repr(name), cell.cell_contents))
        except ValueError:  # not filled yet
            continue
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return found + [(f"'default {i}'", value) for i, value in enumerate(defaults)]


def _globals(code: CodeType) -> set[str]:
    names = {str(i.argval) for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return names.union(*(_globals(c) for c in code.co_consts if isinstance(c, CodeType)))
