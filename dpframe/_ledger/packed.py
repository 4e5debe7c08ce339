"""Receipts: a plan with its noisy integers, as text."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpframe._plans.plan import Plan


def pack(raw: Sequence[Any]) -> list[Any]:
    """Noisy integers as JSON: base64 of little-endian int64, or digits where they are longer; text, one dimension, as it is."""
    packed: list[Any] = []
    for array in raw:
        if array.dtype.kind == "U" or (array.dtype == object and array.ndim == 1):
            packed.append({"text": array.tolist()})
        elif array.dtype == object:
            packed.append([[str(x) for x in row] for row in array])
        else:
            data = base64.b64encode(np.ascontiguousarray(array, dtype="<i8").tobytes()).decode()
            packed.append({"rows": array.shape[0], "data": data})
    return packed


def unpack(packed: Sequence[Any]) -> list[Any]:
    return [_unpacked(p) for p in packed]


def _unpacked(p: Any) -> Any:
    if isinstance(p, list):
        return np.array([[int(x) for x in row] for row in p], dtype=object)
    if "text" in p:
        texts = np.empty(
            len(p["text"]), dtype=object
        )  # a fixed width would cut NULs off, and give all the room of the longest
        texts[:] = p["text"]
        return texts
    return np.frombuffer(base64.b64decode(p["data"]), dtype="<i8").reshape(p["rows"], -1)


def receipt_text(plan: Plan, raw: Sequence[Any], **extra: Any) -> str:
    rest = json.dumps({"raw": pack(raw), **extra}, separators=(",", ":"))
    return f'{{"version":1,"plan":{plan.text},{rest[1:]}'
