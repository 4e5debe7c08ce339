"""CSVW-EO metadata of a table, which other tools for private tables read: as the content of a card,
and from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dpframe._errors import BadValue
from dpframe._types import Json

# A card's words, as the metadata call them.
NAMES = {
    "unit": "privacyUnit",
    "max_rows": "maxContributions",
    "max_groups": "maxGroupsPerUnit",
    "n": "publicLength",
    "bounds": "minimum",
    "keys": "keyValues",
    "dtype": "datatype",
}
# Names, of which nothing is fetched.
_CONTEXT = ["http://www.w3.org/ns/csvw", "https://w3id.org/csvw-eo-context.jsonld"]
_DTYPES = {
    "string": "str",
    "boolean": "bool",
    **dict.fromkeys(
        ("integer", "long", "int", "short", "positiveInteger", "negativeInteger"), "int64"
    ),
    **dict.fromkeys(("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"), "uint64"),
    **dict.fromkeys(("decimal", "double", "float", "number"), "float64"),
    **dict.fromkeys(("date", "dateTime"), "datetime64[ns]"),
    "dateTimeStamp": "datetime64[ns, UTC]",
    **dict.fromkeys(("duration", "dayTimeDuration"), "timedelta64[ns]"),
}


def to_card(metadata: Mapping[str, object]) -> Json:
    """Convert CSVW-EO metadata of a table into the content of a card that declares the same.

    Facts that a card has no word for, such as shares of nulls or dependencies, are left out.
    """
    table = _without_prefixes(metadata)
    columns = [
        c for c in _list(table.get("tableSchema"), "columns") if isinstance(c, dict) and "name" in c
    ]
    marked = [c["name"] for c in columns if c.get("privacyId") is True]
    unit = table.get("privacyUnit") or (marked[0] if len(marked) == 1 else None)
    content: Json = {}
    if unit is None:
        content["n"] = table.get("publicLength")  # a row is a person
    else:
        groups = [
            c["maxGroupsPerUnit"] for c in columns if isinstance(c.get("maxGroupsPerUnit"), int)
        ]
        content |= {
            "unit": unit,
            "max_rows": table.get("maxContributions"),
            "max_groups": max(groups, default=None),
        }
    content["columns"] = {c["name"]: _present(_column(c)) for c in columns}
    content["combinations"] = list(_combinations(_list(table, "additionalInformation")))
    return _present(content)


def _column(column: Mapping[str, object]) -> Json:
    """Convert the CSVW-EO description of one column into the facts of a card: dtype, bounds and
    keys.

    A fact is None if the metadata do not state it.
    """
    datatype = column.get("datatype")
    datatype = datatype.get("base") if isinstance(datatype, dict) else datatype
    ends = [column.get("minimum"), column.get("maximum")]
    keys = column.get("keyValues")
    if keys is None:
        parts = [p.get("predicate", p) for p in _list(column, "partitions")]
        keys = (
            [p["partitionValue"] for p in parts]
            if all("partitionValue" in p for p in parts)
            else None
        )
    dtype = _DTYPES.get(datatype, datatype) if isinstance(datatype, str) else datatype
    return {"dtype": dtype, "bounds": None if None in ends else ends, "keys": keys or None}


def _combinations(groups: list[Any]) -> Iterator[Json]:
    """Yield the column groups of CSVW-EO metadata as combinations of a card.

    A group without listed values for all its columns is left out.
    """
    for group in groups:
        columns = _list(group, "columnsInGroup")
        rows = _list(group, "keyValues") or [
            p.get("predicate", {}) for p in _list(group, "partitions")
        ]
        if rows and all("partitionValue" in row.get(c, {}) for row in rows for c in columns):
            yield {
                "columns": columns,
                "keys": [[row[c]["partitionValue"] for c in columns] for row in rows],
            }


def _list(table: object, name: str) -> list[Any]:
    value = table.get(name) if isinstance(table, dict) else None
    return value if isinstance(value, list) else []


def _present(content: Json) -> Json:
    return {word: value for word, value in content.items() if value is not None}


def _without_prefixes(metadata: object) -> Any:
    """Return metadata with the prefixes removed from all names, inside lists and dicts too.

    For example ``csvw-eo:bounds.maxContributions`` becomes ``maxContributions``.
    """
    if isinstance(metadata, list):
        return [_without_prefixes(part) for part in metadata]
    if not isinstance(metadata, dict):
        return metadata
    return {
        re.sub(r"^csvw-eo:(?:\w+\.)?", "", n): _without_prefixes(part)
        for n, part in metadata.items()
    }


def of_card(content: Mapping[str, Any]) -> Json:
    """Convert the content of a card into CSVW-EO metadata.

    Facts that the metadata cannot express are left out. A person named by several columns is
    refused.
    """
    unit = content.get("unit")
    if isinstance(unit, list):
        raise BadValue(
            "CSVW-EO metadata name a person by one column: join those of unit= before opening."
        )
    columns = []
    for name, facts in content["columns"].items():
        column: Json = {
            "@type": "Column",
            "name": name,
            "datatype": _datatype(facts["dtype"]),
        }
        if name == unit:
            column["privacyId"] = True
        elif unit is not None and "max_groups" in content:
            column["maxGroupsPerUnit"] = content["max_groups"]
        if "bounds" in facts:
            column["minimum"], column["maximum"] = facts["bounds"]
        keys = facts.get("keys", [])
        keys = (
            list(range(*keys["range"])) if isinstance(keys, dict) else [_plain(key) for key in keys]
        )
        if keys and _all_plain(keys):
            column["keyValues"] = keys
        columns.append(column)
    metadata: Json = {"@context": _CONTEXT, "@type": "Table", "privacyUnit": unit}
    if unit is None:
        metadata["publicLength"] = content.get("n")
    else:
        metadata["maxContributions"] = content.get("max_rows")
    metadata["tableSchema"] = {"columns": columns}
    groups = [
        _group(c["columns"], c["keys"])
        for c in content.get("combinations", ())
        if all(map(_all_plain, c["keys"]))
    ]
    metadata["additionalInformation"] = groups or None
    return _present(metadata)


def _group(columns: list[str], keys: list[list[Any]]) -> Json:
    """Return the CSVW-EO description of a group of columns with listed combinations of keys.

    Each list in ``keys`` has one key for each of ``columns``.
    """
    rows = [
        {name: {"partitionValue": _plain(key)} for name, key in zip(columns, row, strict=True)}
        for row in keys
    ]
    return {"@type": "ColumnGroup", "columnsInGroup": columns, "keyValues": rows}


def _plain(key: object) -> Any:
    return None if key == {"null": True} else key


def _all_plain(keys: list[Any]) -> bool:
    return not any(isinstance(_plain(key), dict) for key in keys)


def _datatype(dtype: str) -> str:
    """Return the CSVW-EO name of a pandas dtype, such as ``"integer"`` for ``"int64"``.

    A dtype without a counterpart becomes ``"string"``.
    """
    if dtype.startswith(("datetime64", "timestamp")):
        return "dateTimeStamp" if "," in dtype or "tz=" in dtype else "dateTime"
    kinds = {
        "bool": "boolean",
        "int": "integer",
        "uint": "unsignedLong",
        "float": "double",
        "double": "double",
    }
    found = re.match(r"[a-z]+", dtype.lower())
    kind = found[0] if found else ""
    return (
        "duration"
        if kind in ("timedelta", "duration")
        else kinds.get(kind.removesuffix("ean"), "string")
    )
