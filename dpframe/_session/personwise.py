"""The check that a function works person by person: its results on halves of the people, put
together, are its result on all.

It is a lint, not a proof: a function that looks across people only now and then, or that carries
facts of the data in itself, may pass. No message quotes a cell, and of an error that the function
raised only the name of its type is kept.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType, ModuleType
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

HALVES = 4  # random halves; the other splits are nobody, two people and a few more against the rest, and another order of all
SPLITS = HALVES + 4
_DEEP = 4  # the steps from a function to the frames that it uses, at most
_MUTABLE = set(map(id, (set, dict, bytearray, np.ndarray)))
_COPIED = {*_MUTABLE, id(list), id(tuple)}
_SAFE = set(map(id, (str, int, float, bool, bytes, type(None))))  # whose hash is Python's own
_DEEPEST = 20  # of lists in lists that are copied
_KNOWN = {*sys.stdlib_module_names, "pandas", "numpy", "dpframe"}
_FIX = (
    "Work within a person's rows (groupby of the unit), with constants that are public; or declare what was done: "
    "adopt(other, because='...')."
)


@dataclass
class Check:
    """Check of a function that makes rows person by person, with the frame that it gets and the
    person of each row."""

    call: Callable[[pd.DataFrame], Any]
    name: str
    frame: pd.DataFrame
    unit: Sequence[Hashable]  # the columns that name a person; none where the index does
    owners: NDArray[np.int64]
    session: str  # what attrs say, so that no budget is opened on a part

    def result(self) -> pd.DataFrame:
        """Return the result of the function on all people, or raise if it does not work person by
        person."""
        try:
            return self._result()
        except DPError:
            raise
        except (
            Exception
        ) as problem:  # of cells with code of their own, which are hashed by their text
            failed = type(problem).__name__
        raise BadValue(
            f"what {self.name} returns cannot be compared: a {failed}. Return plain columns."
        )

    def _result(self) -> pd.DataFrame:
        """Run the function on parts of the people, and refuse it if the results are not together
        that on all.

        The parts are nobody, random halves, two people, a few more, and all in another order.
        Return the result on all.
        """
        people = int(self.owners.max(initial=-1)) + 1
        nobody = self._run(np.zeros(0, dtype=np.intp))
        if len(nobody):
            raise self.make_refusal("it makes rows of no people")
        parts = []
        halves = [
            np.frombuffer(_sampling.random_bytes(people), dtype=np.uint8) & 1 for _ in range(HALVES)
        ]
        # A rule about the number of rows (len(d) > 50, groups of at least ten) gives the same on
        # halves of many people, hence the few. Two people and not one: pandas adds up the numbers
        # of a single group in another way, to another last digit.
        for chosen in (*halves, self._few(people, 2), self._few(people, math.isqrt(people))):
            side = chosen[self.owners] == 1
            parts.append([hash_rows(self._run(np.flatnonzero(s))) for s in (side, ~side)])
        result = self._run(np.arange(len(self.frame)))
        whole = hash_rows(result)
        parts.append([hash_rows(self._run(self._another_order()))])
        for part in parts:
            self._compare(whole, part)
        return result

    @staticmethod
    def _few(people: int, size: int) -> NDArray[np.uint8]:
        """Return a marker for each person: 1 for ``size`` people chosen at random, and 0 for the
        others."""
        chosen = np.zeros(people, dtype=np.uint8)
        chosen[_sampling.permutation(people)[:size]] = 1
        return chosen

    def _another_order(self) -> Places:
        """Return a random order of the rows that mixes people and keeps the order of each person's
        own rows."""
        seats = self.owners[_sampling.permutation(len(self.frame))]  # the person of each place
        order = np.empty(len(seats), dtype=np.intp)
        order[np.argsort(seats, kind="stable")] = np.argsort(self.owners, kind="stable")
        return order

    def _run(self, places: Places) -> pd.DataFrame:
        """Call the function on a copy of some rows, and return its result after checking it.

        ``places`` are the positions of the rows. An error of the function is replaced by one that
        names its type alone.
        """
        part = rows_of(self.frame, places)
        if self.unit:
            part.index = pd.RangeIndex(len(part))
        part.attrs["dpframe"] = self.session
        owners = part[list(self.unit)] if self.unit else part.index
        copy = copy_part(part)
        failed, returned = None, None
        try:
            returned = self.call(copy)
        except Exception as problem:
            failed = type(problem).__name__
        # Outside the handler, so that what the function said does not come along.
        if failed is not None:
            raise BadValue(
                f"{self.name} raised a {failed}. It has to work on any of the people, and on nobody: try it on a frame of your "
                "own to see the message, which could quote a cell here."
            )
        if not isinstance(returned, pd.DataFrame):
            raise BadType(f"{self.name} must return a DataFrame, not {type(returned).__name__}.")
        result = normalize_result(returned, self.unit)
        for name in self.unit:  # pandas looks at the cells of an index of objects
            if name in result.columns and self.frame[name].dtype == object:
                result[name] = pd.Series(result[name].array, dtype=object)
        if len(result):
            self._check_people(result, owners)
        return result

    def _check_people(self, result: pd.DataFrame, owners: Any) -> None:
        """Refuse a result with rows of people who were not among those the function was given.

        ``owners`` names the people it was given. A result without the columns that name people is
        refused, too.
        """
        if self.unit:
            missing = [name for name in self.unit if name not in result.columns]
            if missing:
                raise BadValue(explain_missing_unit(missing[0]))
            changed = [n for n in self.unit if result[n].dtype != owners[n].dtype]
            if changed:
                raise BadType(
                    f"{self.name} changes the dtype of the unit column {changed[0]!r}. Keep it as it is."
                )
            all_known = has_only_known_people(result[list(self.unit)], owners)
        else:
            if result.index.nlevels > 1 or result.index.dtype != np.int64:
                raise BadValue(
                    f"{self.name} loses the index, which says whose row each is. Keep it, or open the session with unit=, the "
                    "column that names a person."
                )
            all_known = bool(result.index.isin(owners).all())
        if not all_known:
            raise self.make_refusal("it gives rows to people who are not there")

    def make_refusal(self, why: str) -> Refused:
        return Refused(f"{self.name} does not work person by person: {why}. {_FIX}")

    def _compare(self, whole: Fingerprint, parts: Sequence[Fingerprint]) -> None:
        """Refuse the function if its results on parts of the people are not together its result on
        all.

        ``whole`` is the fingerprint of the result on all people, and ``parts`` are those on
        disjoint parts of them.
        """
        nonempty = [p for p in [whole, *parts] if len(p.rows)]
        for fingerprint in nonempty[1:]:
            if fingerprint.names != nonempty[0].names:
                raise self.make_refusal("its columns depend on which people are there")
            for name, a, b in zip(
                fingerprint.names, nonempty[0].dtypes, fingerprint.dtypes, strict=True
            ):
                if a != b:
                    raise self.make_refusal(
                        f"the dtype of {name!r} depends on which people are there; fix it with astype in the function"
                    )
        together = np.sort(np.concatenate([p.rows for p in parts]))
        if not np.array_equal(together, whole.rows):
            raise self.make_refusal(
                "on parts of the people it does not give the rows that it gives on all"
            )


@dataclass
class Fingerprint:
    """Frame reduced to its columns, dtypes and the sorted hashes of its rows, for comparing
    results."""

    names: list[Hashable]
    dtypes: list[Any]
    rows: NDArray[np.uint64]


def copy_part(part: pd.DataFrame) -> pd.DataFrame:
    """Return a copy of some rows in which lists and other mutable cells are copied, too.

    So the function under check cannot change the frame that was opened.

    Its dtypes are those of the frame, whatever the cells: pandas would call objects that are all
    texts ``str``.
    """
    copy = part.copy()
    for i, dtype in enumerate(part.dtypes):
        if isinstance(dtype, np.dtype) and dtype.kind == "O":
            cells = objects(copy_cell(c, _DEEPEST, {}) for c in part.iloc[:, i].array)
            column: Any = pd.Series(cells, dtype=object, index=part.index)
            copy.isetitem(i, column)
    return copy


def copy_cell(cell: Any, depth: int, copies: dict[tuple[int, int], object]) -> object:
    """Return a copy of a list, tuple, dict, set or array with its elements.

    Any other cell is returned as it is. ``depth`` is how many levels of nesting are still copied.
    ``copies`` holds what was copied so far, by identity and depth. So an object that a cell holds
    in many places, or that holds itself, is copied once at each level.

    No code of other classes runs.
    """
    kind = id(type(cell))
    if not depth or kind not in _COPIED:
        return cell
    known = (id(cell), depth)
    if known not in copies:
        copies[known] = _copy_container(cell, kind, depth - 1, copies)
    return copies[known]


def _copy_container(
    cell: Any, kind: int, depth: int, copies: dict[tuple[int, int], object]
) -> object:
    """Return a copy of a container of this kind, with copies of its elements."""
    if kind == id(list):
        return [copy_cell(element, depth, copies) for element in cell]
    if kind == id(tuple):
        return tuple(copy_cell(element, depth, copies) for element in cell)
    if kind == id(dict) and all(id(type(key)) in _SAFE for key in cell):
        return {key: copy_cell(element, depth, copies) for key, element in cell.items()}
    if kind == id(np.ndarray) and cell.dtype == object:
        found = objects(copy_cell(element, depth, copies) for element in cell.ravel().tolist())
        return found.reshape(cell.shape)
    return cell.copy()


def hash_rows(frame: pd.DataFrame) -> Fingerprint:
    """Return the columns, the dtypes and the sorted hashes of the rows of a frame.

    Equal rows hash alike, whatever their order. The index counts as a column, unless it is a plain
    range.
    """
    rows = np.zeros(len(frame), dtype=np.uint64)
    if isinstance(frame.index.dtype, np.dtype) and not isinstance(frame.index, pd.RangeIndex):
        rows = hashes_of(pd.Series(frame.index.array, dtype=frame.index.dtype))
    with np.errstate(over="ignore"):
        for i in range(frame.shape[1]):
            rows = rows * np.uint64(0x9E3779B97F4A7C15) ^ hashes_of(frame.iloc[:, i])
            rows ^= rows >> np.uint64(29)
    return Fingerprint(list(frame.columns), list(frame.dtypes), np.sort(rows))


def has_only_known_people(result: pd.DataFrame, owners: pd.DataFrame) -> bool:
    """Return whether all people named in ``result`` are among those named in ``owners``."""
    hashes, known_hashes = (_people(frame).hashes for frame in (result, owners))
    return bool(np.isin(hashes, known_hashes).all())


def _people(frame: pd.DataFrame) -> People:
    leaves = [Column.of(i, name, frame.dtypes.iloc[i]) for i, name in enumerate(frame.columns)]
    return people_of([prepare(frame.iloc[:, leaf.position], leaf.kind) for leaf in leaves], b"")


def normalize_result(frame: pd.DataFrame, unit: Sequence[Hashable]) -> pd.DataFrame:
    """Return what a function made, with a plain range as its index if columns name the people.

    ``unit`` has the names of these columns. Named levels of the index become columns. Duplicate
    column names are refused.
    """
    result = frame.copy(deep=False)
    result.attrs = {}
    if not result.columns.is_unique or result.columns.nlevels > 1:
        raise BadValue("the columns of the result must have one name each, and no two the same.")
    if unit:
        levels = [n for n in result.index.names if n is not None and n not in result.columns]
        if len(set(levels)) < len(levels):
            raise BadValue("the levels of the result's index must have names of their own.")
        result = result.reset_index(level=levels) if levels else result
        result.index = pd.RangeIndex(len(result))
    return result


def explain_missing_unit(name: Hashable) -> str:
    """Return the text of the error for a result without a column that names people."""
    return (
        f"a unit column dropped on the way: {name!r} says whose row each is, and must be among the columns, unchanged, before "
        "and after."
    )


def name_of(function: object) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


def find_private_frame(
    function: object, arguments: Sequence[object], private: Callable[[Any], bool]
) -> str | None:
    """Return the name of a private frame that a function uses from outside, as far as its code
    shows.

    ``private`` tells whether a value is such a frame. Return None if no such frame was found. The
    search follows its arguments and the names in its code. From there it follows the functions that
    it calls, values bound to `partial` and to methods, and the contents of containers and plain
    objects, a few steps far.
    """
    todo = [("an argument", a, 0) for a in arguments] + [("", function, 0)]
    visited: set[int] = set()
    while todo:
        name, value, depth = todo.pop()
        if private(value):
            return name or "itself"
        if depth < _DEEP and id(value) not in visited:
            visited.add(id(value))
            todo += [
                (name or inner, inner_value, depth + 1) for inner, inner_value in _contents(value)
            ]
    return None


def _contents(value: object) -> list[tuple[str, Any]]:
    """Return the values that can be reached from a value in one step, each with a name for errors.

    These are arguments bound to it, elements, attributes, and variables in the code of a function.
    """
    if isinstance(value, partial):
        return [("an argument", x) for x in (*value.args, *value.keywords.values())] + [
            ("", value.func)
        ]
    if inspect.ismethod(value):
        return [("its object", value.__self__), ("", value.__func__)]
    if inspect.isfunction(value):
        return [] if str(value.__module__).partition(".")[0] in _KNOWN else _outside(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [("a list", x) for x in value]
    if isinstance(value, dict):
        return [(repr(name), x) for name, x in value.items()]
    plain = not isinstance(
        value, type | ModuleType | pd.DataFrame | pd.Series | pd.Index | np.ndarray
    )
    try:
        attributes = getattr(value, "__dict__", None) if plain else None
    except Exception:  # of somebody else's objects
        return []
    return (
        [(repr(name), x) for name, x in attributes.items()] if isinstance(attributes, dict) else []
    )


def _outside(function: FunctionType) -> list[tuple[str, Any]]:
    """Return the values that a function's code can name: globals, closure variables, defaults.

    A global with the name of an attribute that the code reads is among them: `co_names` holds both.
    """
    global_values = function.__globals__
    named_values = [
        (repr(name), global_values[name])
        for name in sorted(_names(function.__code__))
        if name in global_values
    ]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            named_values.append((repr(name), cell.cell_contents))
        except ValueError:  # a variable without a value yet
            continue
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return named_values + [(f"'default {i}'", value) for i, value in enumerate(defaults)]


def _names(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in a function's code and in functions inside."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*map(_names, inner))
