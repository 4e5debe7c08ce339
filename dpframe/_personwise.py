"""Whether a function works person by person: what it gives on halves of the people, put together, is what it gives on all.

A lint, not a proof: a function that looks across people only now and then, or that carries facts of the data in
itself, may pass. Nothing said here quotes a cell, and nothing is kept of what the function raised but the name of
its type.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._derive import Places
from dpframe._errors import BadType, BadValue, DPError, Refused
from dpframe.mechanisms import _sampling

HALVES = 4  # random ones; beside them nobody, and everybody in another order
SPLITS = HALVES + 2
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
        for _ in range(HALVES):
            bits = np.frombuffer(_sampling.random_bytes(people), dtype=np.uint8) & 1
            side = bits[self.whose] == 1
            parts.append([_fingerprint(self._run(np.flatnonzero(s))) for s in (side, ~side)])
        found = self._run(np.arange(len(self.frame)))
        whole = _fingerprint(found)
        parts.append([_fingerprint(self._run(self._another_order()))])
        for part in parts:
            self._compare(whole, part)
        return found

    def _another_order(self) -> Places:
        """People between each other in a random order, the rows of each in their own."""
        seats = self.whose[_sampling.permutation(len(self.frame))]  # who sits where
        order = np.empty(len(seats), dtype=np.intp)
        order[np.argsort(seats, kind="stable")] = np.argsort(self.whose, kind="stable")
        return order

    def _run(self, places: Places) -> pd.DataFrame:
        part = self.frame.take(places)
        if self.unit:
            part.index = pd.RangeIndex(len(part))
        part.attrs["dpframe"] = self.session
        whose = part[list(self.unit)] if self.unit else part.index
        given = part.copy()
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
                result[name] = result[name].astype(object)
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


def _fingerprint(frame: pd.DataFrame) -> Print:
    """Of the rows with their index labels: equal rows hash alike, whatever their order."""
    rows = np.zeros(len(frame), dtype=np.uint64)
    if isinstance(frame.index.dtype, np.dtype) and not isinstance(frame.index, pd.RangeIndex):
        rows = _hashes(pd.Series(frame.index))
    with np.errstate(over="ignore"):
        for i in range(frame.shape[1]):
            rows = rows * np.uint64(0x9E3779B97F4A7C15) ^ _hashes(frame.iloc[:, i])
            rows ^= rows >> np.uint64(29)
    return Print(list(frame.columns), list(frame.dtypes), np.sort(rows))


def _hashes(column: pd.Series[Any]) -> NDArray[np.uint64]:
    cells = column.reset_index(drop=True)
    null = np.asarray(cells.isna(), dtype=bool)
    found = np.array(_hashes_of(cells), dtype=np.uint64)
    found[null] = np.iinfo(np.uint64).max  # None, NaN and NA are one thing
    return found


def _hashes_of(cells: pd.Series[Any]) -> Any:
    if cells.dtype != object:
        try:
            return pd.util.hash_pandas_object(cells, index=False)
        except Exception:  # lists of Arrow, and whatever else has no hash
            cells = cells.astype(object)
    texts = pd.Series([f"{type(cell).__name__} {cell!r}" for cell in cells], dtype="str")
    return pd.util.hash_pandas_object(texts, index=False)


def _members(found: pd.DataFrame, whose: pd.DataFrame) -> bool:
    present = found[found.notna().all(axis=1)]
    if found.shape[1] == 1:
        return bool(present.iloc[:, 0].isin(whose.iloc[:, 0]).all())
    return bool(pd.MultiIndex.from_frame(present).isin(pd.MultiIndex.from_frame(whose)).all())


def normal(frame: pd.DataFrame, unit: Sequence[Hashable]) -> pd.DataFrame:
    """With the named levels of its index as columns, where the people are named by columns."""
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
    """The name of a private frame that the function uses from outside, as far as its code shows."""
    if any(private(a) for a in arguments):
        return "an argument"
    if not inspect.isfunction(function):
        return None
    outside = {name: function.__globals__.get(name) for name in _globals(function.__code__)}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            outside[name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    outside |= {f"default {i}": value for i, value in enumerate(function.__defaults__ or ())}
    return next((repr(name) for name, value in outside.items() if private(value)), None)


def _globals(code: CodeType) -> set[str]:
    names = {str(i.argval) for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return names.union(*(_globals(c) for c in code.co_consts if isinstance(c, CodeType)))
