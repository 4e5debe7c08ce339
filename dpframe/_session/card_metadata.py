"""CSVW-EO metadata of a table, which other tools for private tables read: as the content of a card,
and from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dpframe._errors import BadValue

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


def to_card(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a card that says the same. What has no counterpart there (shares of nulls,
    dependencies) is left."""
    table = _without_prefixes(metadata)
    columns = [
        c for c in _list(table.get("tableSchema"), "columns") if isinstance(c, dict) and "name" in c
    ]
    marked = [c["name"] for c in columns if c.get("privacyId") is True]
    unit = table.get("privacyUnit") or (marked[0] if len(marked) == 1 else None)
    content: dict[str, Any] = {}
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


def _column(column: Mapping[str, Any]) -> dict[str, Any]:
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


def _combinations(groups: list[Any]) -> Iterator[dict[str, Any]]:
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


def _list(table: Any, name: str) -> list[Any]:
    value = table.get(name) if isinstance(table, dict) else None
    return value if isinstance(value, list) else []


def _present(content: dict[str, Any]) -> dict[str, Any]:
    return {word: value for word, value in content.items() if value is not None}


def _without_prefixes(metadata: Any) -> Any:
    """Return the names without prefixes: ``csvw-eo:bounds.maxContributions`` is
    ``maxContributions``."""
    if isinstance(metadata, list):
        return [_without_prefixes(part) for part in metadata]
    if not isinstance(metadata, dict):
        return metadata
    return {
        re.sub(r"^csvw-eo:(?:\w+\.)?", "", n): _without_prefixes(part)
        for n, part in metadata.items()
    }


def of_card(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that say what a card does, as far as they have words for it."""
    unit = content.get("unit")
    if isinstance(unit, list):
        raise BadValue(
            "CSVW-EO metadata name a person by one column: join those of unit= before opening."
        )
    columns = []
    for name, facts in content["columns"].items():
        column: dict[str, Any] = {
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
    metadata: dict[str, Any] = {"@context": _CONTEXT, "@type": "Table", "privacyUnit": unit}
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


def _group(columns: list[str], keys: list[list[Any]]) -> dict[str, Any]:
    rows = [
        {name: {"partitionValue": _plain(key)} for name, key in zip(columns, row, strict=True)}
        for row in keys
    ]
    return {"@type": "ColumnGroup", "columnsInGroup": columns, "keyValues": rows}


def _plain(key: Any) -> Any:
    return None if key == {"null": True} else key


def _all_plain(keys: list[Any]) -> bool:
    return not any(isinstance(_plain(key), dict) for key in keys)


def _datatype(dtype: str) -> str:
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
