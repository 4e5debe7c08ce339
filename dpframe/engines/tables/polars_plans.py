"""Plans of polars, as their JSON has them: what they read, and which hazards they have.

*Formal guarantee.* An operation that is in no list here is taken for one on several rows, and has
to be declared.
"""

from __future__ import annotations

import io
import json
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from dpframe._errors import BadValue
from dpframe.engines.steadiness import FoundHazard

# Parts of a plan that make each row of one row, or that hold no operation.
_ROWWISE = {
    *("Scan", "DataFrameScan", "Select", "HStack", "Filter", "MapFunction", "Cache", "Sort"),
    *("Column", "Literal", "BinaryExpr", "Cast", "Ternary", "Alias", "Function", "Selector", "KeepName", "RenameAlias"),
    *("Field", "Eval", "DataTypeFunction", "Rename", "Unnest", "Rechunk", "Hint", "Equi", "IR"),
}  # fmt: skip
# Functions of a row's own cells. Of those in families all are, but for those beside them.
_OWN_CELLS = {
    *("FillNull", "Abs", "Negate", "Not", "MaxHorizontal", "MinHorizontal", "SumHorizontal", "MeanHorizontal", "AsStruct"),
    *("Replace", "ReplaceStrict", "Coalesce", "Sign", "Exp", "Log", "Log1p", "Clip", "Round", "RoundSF", "Floor", "Ceil"),
    *("Pow", "PowFunction", "Trigonometry", "Atan2", "Hash", "Cut", "Truncate", "Reinterpret", "ToPhysical", "FillNan"),
}  # fmt: skip
_FAMILIES = {
    "Boolean": {"Any", "All", "IsFirstDistinct", "IsLastDistinct", "IsUnique", "IsDuplicated", "HasNulls", "IsEmpty"},
    "StringExpr": {"ConcatVertical"},
    "TemporalExpr": set[str](),
    "ListExpr": {"Sample"},
    "ArrayExpr": {"Sample"},
    "StructExpr": set[str](),
    "BinaryExpr": set[str](),
    "Categorical": set[str](),
    "CategoricalExpr": set[str](),
}  # fmt: skip
_CODE = {
    *("AnonymousFunction", "AnonymousAgg", "AnonymousStreamingAgg", "OpaquePython", "Opaque", "Pipeline", "PythonScan"),
    *("FfiPlugin", "PythonUdf", "FoldHorizontal", "ReduceHorizontal", "CumReduceHorizontal", "CumFoldHorizontal"),
    *("RollingExprMap", "RollingMap", "CustomFunction", "Anonymous", "PluginScan"),
}  # fmt: skip
# Sums, whose doubles threads add in any order; and what reads the order of rows, or takes one of
# several that tie.
_ADDING = {
    "Sum",
    "Mean",
    "Std",
    "Var",
    "Product",
    "Correlation",
    "Skew",
    "Kurtosis",
    "Entropy",
    "Dot",
}
_IN_ORDER = {
    *("First", "Last", "Implode", "AggGroups", "Shift", "ShiftAndFill", "Diff", "FillNullWithStrategy", "RLE", "RLEID"),
    *("ArgMax", "ArgMin", "ArgSort", "ArgUnique", "ArgWhere", "Reverse", "Interpolate", "InterpolateBy", "EwmMean"),
    *("EwmMeanBy", "EwmStd", "EwmVar", "RollingExpr", "RollingExprBy", "Range", "RowIndex", "Gather", "PctChange"),
    *("CumSum", "CumProd", "CumMin", "CumMax", "CumCount", "PeakMin", "PeakMax", "IsFirstDistinct", "IsLastDistinct"),
    *("SearchSorted", "Append", "Extend", "Reshape"),
}  # fmt: skip
_TIES = {"TopKBy", "MaxBy", "MinBy"}
_CHANCE = {"Random", "Sample", "Shuffle"}
_EXACT = re.compile(r"U?Int\d+|Boolean|Decimal")
_COMPARED = {
    "Eq",
    "EqValidity",
    "NotEq",
    "NotEqValidity",
    "Lt",
    "LtEq",
    "Gt",
    "GtEq",
    "LogicalAnd",
    "LogicalOr",
}
_OPTIONS = {"schema", "options", "sort_options", "args", "variant", "mapping", "key", "id"}
_LEAVES = {"Scan", "DataFrameScan", "Literal", "Column", "Selector"}


_BYTES = re.compile(rb"\[[\d,]{64,}\]")  # bytes of rows, or of pickled code
_LEFT_OUT = "bytes"


class _PlanSink(io.RawIOBase):
    """File object that takes the JSON of a plan from polars, without the bytes of the rows in
    it."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[bytes] = []
        self._rest = b""

    def writable(self) -> bool:
        """Return True. A file is asked this before it is written to."""
        return True

    def write(self, piece: Any) -> int:
        """Keep a piece of JSON without its long lists of numbers, which are the bytes of rows.

        A list may begin in one piece and go on in the next.
        """
        text = self._rest + bytes(piece)
        begin = text.rfind(b"[")
        if begin >= 0 and not text[begin + 1 :].strip(b"0123456789,"):
            text, self._rest = text[:begin], text[begin : begin + 100]
        else:
            self._rest = b""
        self._kept.append(_leave_out_bytes(text))
        return len(piece)

    def read_plan(self) -> Any:
        """Return the plan that was written, as Python objects."""
        plan = json.loads(_leave_out_bytes(b"".join(self._kept) + self._rest))
        while (
            isinstance(plan, dict) and "IR" in plan
        ):  # polars wraps a plan whose schema was asked for
            plan = plan["IR"]["dsl"]
        return plan


def _leave_out_bytes(text: bytes) -> bytes:
    return _BYTES.sub(f'"{_LEFT_OUT}"'.encode(), text)


def plan_of(lazy: Any) -> Any:
    """Return the plan of a LazyFrame as Python objects, read from the JSON that polars writes.

    The rows of frames in memory are left out, and no second copy of them is held. A plan that
    polars cannot write is refused.
    """
    sink = _PlanSink()
    with suppress(Exception), warnings.catch_warnings():  # the error of polars is not shown
        warnings.simplefilter("ignore")
        lazy.serialize(sink, format="json")
        return sink.read_plan()
    raise BadValue(
        "this LazyFrame has a plan that polars cannot write down, so that nobody sees what it does: Python code in it cannot be "
        "pickled, or a column holds Python objects. Collect it, and open the frame: dpframe.open(lazy.collect(), ...)."
    )


def paths_in(plan: object) -> list[str]:
    """Return the paths of the files that a polars plan reads."""
    found = []
    for kind, node in _walk_entries(plan):
        if kind == "Paths" and isinstance(node, list):
            found += [p["inner"] if isinstance(p, dict) else p for p in node]
    return [path.removeprefix("file://") for path in found]


def holds_rows(plan: object) -> bool:
    """Return whether a polars plan has a frame in memory."""
    return any(kind == "DataFrameScan" for kind, _ in _walk_operations(plan))


def reads_lake(plan: object) -> bool:
    """Return whether a polars plan reads a table of Delta or Iceberg.

    Such a LazyFrame is refused, since its plan does not tell the version of the table.
    """
    return any(
        "PythonDataset" in (kind, node)
        for kind, node in _walk_entries(plan)
        if isinstance(node, str | dict)
    )


def queries_in(plan: object) -> list[str]:
    """Return the SQL texts in a polars plan that polars has not resolved yet."""
    return [
        node["query"] for kind, node in _walk_operations(plan) if kind == "SQL" and "query" in node
    ]


def hazards_in(plan: object) -> Iterator[FoundHazard]:
    """Yield the hazards of a polars plan, each with the name of its operation.

    Hazards are what makes two scans differ, or makes a row of several rows. An unknown operation
    counts as one on several rows.
    """
    in_order, losing = None, None
    for kind, node in _walk_operations(plan):
        names = _list_operation_names(kind, node)
        for name in names:
            if name in _CHANCE or (name == "Rank" and '"Random"' in json.dumps(node)):
                yield FoundHazard("chance", "RANDOM RANK" if name == "Rank" else name.upper())
            if name == "Slice" or name in _TIES:
                yield FoundHazard("first", name.upper())
            if name in _IN_ORDER or (
                name == "Join" and '"AsOf"' in json.dumps(node.get("options"))
            ):
                in_order = in_order or name
            if name in _ADDING and kind in ("Agg", "Function") and not _adds_exactly(kind, node):
                yield FoundHazard("sums", name.upper())
        yield from _find_node_hazards(kind, node)
        losing = losing or _loses_order(kind, node)
        if any(name in _CODE for name in names) or _has_callback(kind, node):
            yield FoundHazard("code", "Python code in a LazyFrame")
        elif not _is_rowwise(kind, node, names):
            yield FoundHazard("across", names[-1].upper())
    if in_order and losing:
        yield FoundHazard(
            "first", f"{in_order.upper()} after {losing.upper()} without maintain_order=True"
        )


def _find_node_hazards(kind: str, node: object) -> Iterator[FoundHazard]:
    """Yield the hazards that the options of one operation show, such as a slice.

    ``kind`` is the name of the operation, and ``node`` its content in the plan.
    """
    if kind == "Distinct" and isinstance(node, dict):
        options = node.get("options", {})
        if options.get("keep_strategy") == "Any" and options.get("subset"):
            yield FoundHazard("first", "UNIQUE OF SOME COLUMNS, keep='any',")
    if kind == "Scan" and isinstance(node, dict):
        words = node.get("unified_scan_args", {})
        if words.get("pre_slice") is not None:
            yield FoundHazard("first", "SLICE")
        if words.get("row_index") is not None:
            yield FoundHazard("across", "ROWINDEX")
    if kind in ("Sort", "GroupBy", "Distinct") and isinstance(node, dict):
        slices = (node.get("slice"), (node.get("options") or {}).get("slice"))
        if any(one is not None for one in slices):
            yield FoundHazard("first", "SLICE")


def _loses_order(kind: str, node: object) -> str | None:
    """Return the name of an operation that returns rows in any order; None for other operations.

    ``kind`` is its name, and ``node`` its content in the plan.
    """
    if not isinstance(node, dict):
        return None
    if kind in ("Sort", "SortBy"):
        return None if node.get("sort_options", {}).get("maintain_order") else kind
    if kind == "Join":
        words = node.get("options", {}).get("args", {})
        as_of = isinstance(words.get("how"), dict)
        return kind if words.get("maintain_order") in (None, "None") and not as_of else None
    if kind in ("GroupBy", "Distinct", "Union", "MergeSorted"):
        options = {**node, **(node.get("options") or {}), **(node.get("args") or {})}
        return None if options.get("maintain_order") else kind
    return None


def _walk_entries(plan: object) -> Iterator[tuple[str, Any]]:
    """Yield the key and the value of every entry at any depth of a plan."""
    todo = [plan]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            yield from one.items()
        todo += one.values() if isinstance(one, dict) else one if isinstance(one, list) else []


def _walk_operations(plan: object) -> Iterator[tuple[str, Any]]:
    """Yield the name and the content of each operation in a plan and in its expressions."""
    todo = [plan]
    while todo:
        one = todo.pop()
        if isinstance(one, list):
            todo += one
        elif isinstance(one, str):
            if one == "Len":
                yield one, None
        elif isinstance(one, dict) and len(one) == 1 and next(iter(one))[:1].isupper():
            ((kind, node),) = one.items()
            yield kind, node
            todo.append(_find_operands(kind, node))
        elif isinstance(one, dict):
            todo += [value for key, value in one.items() if key not in _OPTIONS]


def _find_operands(kind: str, node: object) -> Any:
    """Return the part of an operation that may hold further operations; None for sources and
    constants."""
    if kind in _LEAVES:
        return None
    if kind in ("Function", "MapFunction", "AnonymousFunction") and isinstance(node, dict):
        return node.get("input")
    return list(node.values()) if kind == "Agg" and isinstance(node, dict) else node


def _list_operation_names(kind: str, node: object) -> list[str]:
    """Return the name of an operation, and then the names of the function that it calls.

    ``kind`` is the name, and ``node`` the content of the operation in the plan. A function in one
    of the `_FAMILIES` is nested: {"Function": {"function": {"StringExpr": "Uppercase"}}} has the
    names ["Function", "StringExpr", "Uppercase"].
    """
    inner = (
        node.get("function")
        if kind in ("Function", "MapFunction") and isinstance(node, dict)
        else None
    )
    inner, names = node if kind == "Agg" else inner, [kind]
    while isinstance(inner, dict) and len(inner) == 1 and len(names) < 3:
        ((name, inner),) = inner.items()
        names.append(name)
        if name not in _FAMILIES:
            return names
    return [*names, inner] if isinstance(inner, str) else names


def _is_rowwise(kind: str, node: Any, names: list[str]) -> bool:
    """Return whether each row of an operation's result follows from one row of its input.

    ``kind`` is the name of the operation, and ``node`` its content in the plan. ``names`` has the
    name of the operation and those of the function that it calls: ["Function", "StringExpr",
    "Uppercase"].
    """
    if kind == "MapFunction":
        return names[-1] in _ROWWISE
    if kind != "Function":
        return kind in _ROWWISE
    # `_FAMILIES` has for each family, such as "StringExpr", the functions that are not rowwise.
    # "IsIn" is rowwise for a list of constants only.
    if len(names) > 2 and names[1] in _FAMILIES:
        constant = names[-1] != "IsIn" or (
            isinstance(node["input"][1], dict) and "Literal" in node["input"][1]
        )
        return constant and names[-1] not in _FAMILIES[names[1]]
    return names[-1] in _OWN_CELLS


def _has_callback(kind: str, node: object) -> bool:
    """Return whether an operation calls Python code.

    The plan holds such code as bytes, which `plan_of` replaces by a mark.
    """
    if not isinstance(node, dict):
        return False
    if kind == "GroupBy" and node.get("apply") is not None:
        return True
    return kind in ("Function", "MapFunction") and f'"{_LEFT_OUT}"' in json.dumps(
        node.get("function")
    )


def _adds_exactly(kind: str, node: object) -> bool:
    """Return whether an aggregate is certainly a sum of integers, decimals or truth values.

    Such a sum is the same in every order of the rows. ``kind`` is the aggregate's name, and
    ``node`` its content in the plan.
    """
    if kind != "Agg" or not isinstance(node, dict):
        return False
    ((name, what),) = node.items()
    if name != "Sum" or not isinstance(what, dict) or len(what) != 1:
        return False
    ((inner, of),) = what.items()
    if inner == "Cast":
        dtype = of.get("dtype", {})
        return _EXACT.search(json.dumps(dtype.get("Literal", ""))) is not None
    if inner == "BinaryExpr":
        return of.get("op") in _COMPARED
    return (
        inner == "Function" and isinstance(of.get("function"), dict) and "Boolean" in of["function"]
    )
