"""What the entries of a ledger are made of: the label of a question, the charge of its plans, its answer, and sketches."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpframe._errors import BadValue
from dpframe._plans.plan import Plan
from dpframe.accounting._filter import Charge
from dpframe.accounting.loss import Events, loss_from_json

Declared = tuple[str, str, str]  # what, value, where


class Label(NamedTuple):
    """What makes two questions the same: ``question`` is the question itself, ``key`` has its price as well, and ``paid`` the
    words of its price: what a share of the budget buys can change, and a repeated line stays free all the same.

    All three are digests of one encoding of the question, ``whole``, with which what they find is compared.
    """

    question: str
    key: str
    paid: str
    name: str | None
    version: str | None
    place: int | None = None  # of a fresh question in its batch, which is not to be taken for an equal one
    whole: bytes = b""

    def to_json(self) -> dict[str, Any]:
        """The label as the record of an answer has it."""
        whole = base64.b64encode(zlib.compress(self.whole)).decode()
        return {**self._asdict(), "whole": whole}

    def asks(self, body: dict[str, Any]) -> bool:
        """Whether a record that was found is of this very question."""
        return zlib.decompress(base64.b64decode(body["whole"])) == self.whole


class Table(NamedTuple):
    """What answers are about: a table by its columns and version, and by what it is known again."""

    columns: str
    version: str | None
    rows: list[str]


Names = dict[tuple[str | None, str], tuple[str, str]]  # from version and name to question and key


def found(label: Label, answers: Mapping[str, Any], names: Names) -> Any:
    """What is under one of the keys of a question."""
    return next((answers[k] for k in keys_of(label, names) if k in answers), None)


def keys_of(label: Label, names: Names) -> tuple[str, ...]:
    """The keys under which to look; a name must belong to the same question."""
    if label.name is None or (label.version, label.name) not in names:
        return label.key, label.paid
    question, key = names[label.version, label.name]
    if question != label.question:
        raise taken(label.name)
    return (key,)


def taken(name: str) -> BadValue:
    """A name must belong to the same question."""
    return BadValue(
        f"name={name!r} was given to another question, or its data had another public number of rows. Choose "
        "another name, or say that the data is newer: open(..., version='...')."
    )


def charge_for(plans: Sequence[Plan]) -> Charge:
    """The charge of plans that are one debit."""
    charges = [plan.charge for plan in plans]
    if len(charges) == 1:
        return charges[0]
    losses: Events = tuple(event for charge in charges for event in charge.losses)
    return Charge(losses, sum((charge.delta for charge in charges), Fraction(0)))


def charge_of(body: dict[str, Any]) -> Charge:
    """The charge of a debit's record: what `charge_for` made of its plans."""
    losses = tuple((loss_from_json(plan["loss"]), 1) for plan in body["plans"])
    return Charge(losses, sum((Fraction(plan["stated_at"]) for plan in body["plans"]), Fraction(0)))


# Answers: a plan with its noisy integers -------------------------------------------------------------------


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


# Sketches: of two tables those that share so many hashes hold the same people, or are one --------------------

SHARED = 0.25  # of the people of two frames
SAME = 0.5  # of the rows of one table in two states


def alike(one: list[str], other: list[str]) -> bool:
    """Whether they share a quarter of the smaller one's hashes."""
    if not one or not other:
        return False
    return len(set(one) & set(other)) >= SHARED * min(len(one), len(other))


def same_table(one: list[str], other: list[str]) -> bool:
    """Whether at least half of the rows of the larger of two tables are in both, about; of one without a sketch, all."""
    return len(set(one) & set(other)) >= SAME * max(len(one), len(other))
