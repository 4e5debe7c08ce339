"""One encoding decides what is free: a question as bytes, which no two different questions share.

`encode` is total and injective, and the same in every process for values that mean the same there.
Nothing is cut or rounded, and no object's own text is used. A list of keys becomes its 32-byte
digest, so that questions about many keys stay short.

The code of a value is four things, one after the other: the length of its tag (one byte), the
length of its body (eight bytes, big endian), the tag, and the body. The tag says the type. The body
of a container holds the codes of its parts. All lengths are computed from the bytes, but for a
double, whose body always has eight bytes.

A class of dpframe says in ``identity`` how it is encoded: a tag, and the names of the fields that
count, in a fixed order::

    identity: ClassVar[tuple[str, ...]] = ("compare", "op", "left", "right")

A frozen dataclass becomes the tag and, each with its place in that order, the fields that are not
at their default. So classes and fields may get other names. A tag, a place and a default never
change; a new field has a default and comes last. A named tuple gets its tag from
`_identity.give_tag`. A class whose values have different tags has a method ``read_identity``
instead. It returns the tag of a value, and the fields that are not at their default, by place.
"""

from __future__ import annotations

import datetime
import hashlib
import struct
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from dpframe._sizes import SIZES
from dpframe._types import Array, Index
from dpframe.mechanisms import _sampling

SHOWN = {"shown": True}  # marks a field that does not identify the question: field(metadata=SHOWN)
# The slot for the encoding of a value, in frozen classes whose values stand in many questions.
KEPT = "encoded"
_LONG = 1000  # encodings of so many bytes are not kept
_head = struct.Struct(">BQ").pack
_short = struct.Struct(">BQc").pack
_float = struct.Struct(">BQcd").pack
_FLOAT_HEAD = _head(1, 8) + b"f"
_FLOAT_CELL = np.dtype([("head", (np.bytes_, len(_FLOAT_HEAD))), ("value", ">f8")])
_NONE = _head(1, 0) + b"0"
_FALSE, _TRUE = _head(1, 1) + b"b0", _head(1, 1) + b"b1"
_TEXTS = {str}
_PLAIN = (type(None), bool, int, float, str, pd.Timestamp, datetime.date)


def encode(value: Any) -> bytes:
    """Return the code of a value: bytes that no different value has.

    A ledger recognizes a question by its code, and a question is made of such values. The code has
    the lengths of tag and body, the tag, and the body. This is called for each part of each
    question. So the frequent types are branches of this one function, and the tables below have the
    others.
    """
    kind: Any = type(value)
    body: bytes
    if kind is str:
        body = value.encode("utf-8", "surrogatepass")
        return _short(1, len(body), b"s") + body
    if value is None:
        return _NONE
    # A frozen class: the fields that are not at their default, each with its place.
    if kind in _records:
        tag, class_fields, keeps = _records[kind]
        if keeps and (body := getattr(value, KEPT, b"")):
            return body
        parts = []
        for name, label, default, same in class_fields:
            field_value = getattr(value, name)
            if field_value is not same:
                part = encode(field_value)
                if part != default:
                    parts += [label, part]
        body = b"".join(parts)
        if keeps and len(body) < _LONG:
            body = _head(len(tag), len(body)) + tag + body
            object.__setattr__(value, KEPT, body)
            return body
    elif kind is tuple:
        first = type(value[0]) if value else None
        if (
            (first is str or first is float)
            and first is type(value[-1])
            and {*map(type, value)} == {first}
        ):
            body = _items(value) if first is str else b"L" + _floats(value)
        else:
            body = b"L" + b"".join(map(encode, value))
        return _short(1, len(body), b"t") + body
    elif kind is float:
        return _float(1, 8, b"f", value)
    elif kind is int:
        # As few bytes as it takes, with a sign.
        body = value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
        return _short(1, len(body), b"i") + body
    elif kind is Fraction:
        # Encoded as the tuple of its numerator and denominator, with a tag of its own.
        up, down = value.as_integer_ratio()
        body = b"L" + encode(up) + encode(down)
        body = _short(1, len(body), b"t") + body
        return _short(1, len(body), b"q") + body
    elif kind is bool:
        return _TRUE if value else _FALSE
    elif kind in _named_tuples:
        tag, body = _named_tuples[kind], b"".join(map(encode, value))
    elif kind in _BY_TYPE:
        tag, body = _BY_TYPE[kind](value)
    elif "read_identity" in vars(kind):
        return _encode_by_value(value)
    elif "identity" in vars(kind):  # not that of a base: a class below it may have more fields
        _register_class(kind)
        return encode(value)
    else:
        tag, body = _other(value)
    return _head(len(tag), len(body)) + tag + body


def join_codes(*codes: bytes) -> bytes:
    """Return one string of bytes for a list of codes: their number, their lengths, and the codes.

    No other list of codes has the same bytes.
    """
    number = len(codes)
    return _lengths(number).pack(number, *map(len, codes)) + b"".join(codes)


@cache
def _lengths(number: int) -> struct.Struct:
    """Return the struct of a number and of that many lengths."""
    return struct.Struct(">" + "Q" * (number + 1))


def _floats(values: tuple[float, ...]) -> bytes:
    """Return the bytes that encode doubles, one after the other; many are encoded at once."""
    if len(values) < SIZES.encoded_values:
        return b"".join([_float(1, 8, b"f", value) for value in values])
    cells = np.empty(len(values), _FLOAT_CELL)
    cells["head"], cells["value"] = _FLOAT_HEAD, values
    return cells.tobytes()


def digest(*values: object) -> str:
    """Return the digest of the values: 32 bytes as hexadecimal text."""
    return hashlib.blake2b(encode(values), digest_size=32).hexdigest()


def plain(value: object) -> bool:
    """Return whether a name is a plain scalar, or a tuple of plain scalars.

    Such a name is identified by its text.
    """
    if type(value) is tuple:
        return all(map(plain, value))
    return type(value) in _PLAIN or (isinstance(value, np.generic) and value.dtype.kind in "biufU")


Known = tuple[tuple[str, bytes, bytes | None, Any], ...]
# The frozen dataclasses seen so far: tag, fields, and whether values have a slot for their
# encoding.
_records: dict[type, tuple[bytes, Known, bool]] = {}
_named_tuples: dict[type, bytes] = {}  # the tags of the named tuples seen so far


def _register_class(kind: Any) -> None:
    """Register how values of a class with an ``identity`` are encoded, at the first such value.

    The class is a frozen dataclass, a named tuple or a list of keys.
    """
    head, frozen = kind.identity[0].encode(), is_dataclass(kind)
    if frozen:
        _records[kind] = b"D" + head, encoded_fields(kind), hasattr(kind, KEPT)
    elif issubclass(kind, tuple):
        _named_tuples[kind] = b"N" + head  # `give_tag` names the fields in their order
    else:
        _BY_TYPE[kind] = lambda value: (b"K" + head, _digest_keys(value))


def _encode_by_value(value: Any) -> bytes:
    """Return the bytes that encode a value of a class with a method ``read_identity``.

    The method says which tag and fields the value has. Short bytes are kept in the value.
    """
    body: bytes = getattr(value, KEPT, b"")
    if body:
        return body
    tag, known = value.read_identity()
    body = b"".join([bytes([place]) + encode(part) for place, part in known.items()])
    head = b"D" + tag.encode()
    body = _head(len(head), len(body)) + head + body
    if len(body) < _LONG:
        object.__setattr__(value, KEPT, body)
    return body


@cache
def encoded_fields(kind: Any) -> Known:
    """Return the fields of a class that enter the bytes that encode its values.

    Each is given by its name, its place and default as bytes, and its default. ``kind`` is a
    dataclass with an ``identity``. Fields that ``__init__`` does not take follow from the others.
    Each other one is in ``identity`` or has the mark ``SHOWN``.
    """
    names, known = kind.identity[1:], {f.name: f for f in fields(kind)}
    wanted = {f.name for f in fields(kind) if f.init and not f.metadata.get("shown")}
    if {*names} != wanted or len(names) != len(wanted):
        raise TypeError(
            "the identity of this class must list each of these fields once", kind, sorted(wanted)
        )
    return tuple(
        (name, bytes([place]), _default(known[name]), known[name].default)
        for place, name in enumerate(names)
    )


def _default(dataclass_field: Field[Any]) -> bytes | None:
    return None if dataclass_field.default is MISSING else encode(dataclass_field.default)


def _digest_keys(value: Any) -> bytes:
    """Return the digest of a list of keys, which is computed once and kept in the list."""
    if value.code is None:
        parts = b"".join(encode(getattr(value, name)) for name in value.identity[1:])
        value.code = hashlib.blake2b(parts, digest_size=32).digest()
    code: bytes = value.code
    return code


# Arrays and pandas objects -------------------------------------------------------------------------------------------


def _items(values: Iterable[Any]) -> bytes:
    """Return the body of the bytes that encode a list.

    It has all texts with their lengths, or the codes of the items if some is no text.
    """
    listed = list(values)
    if {*map(type, listed)} == _TEXTS:  # at once, since lists of keys are long
        texts = [v.encode("utf-8", "surrogatepass") for v in listed]
        return (
            b"T" + np.array([len(texts), *map(len, texts)], dtype=">i8").tobytes() + b"".join(texts)
        )
    return b"L" + b"".join(map(encode, listed))


def _array(values: Array | pd.api.extensions.ExtensionArray) -> tuple[bytes, bytes]:
    """Return the tag and the body of the bytes that encode an array: its dtype, shape and cells.

    The tag says the type, and `encode` puts both together.
    """
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "biufcmM":
            head = encode((values.dtype.str, values.shape))
            return b"array", head + np.ascontiguousarray(values).tobytes()
        return b"array", encode((values.dtype.str, values.shape)) + _items(values.ravel().tolist())
    if isinstance(values, pd.Categorical):
        parts = values.codes, values.categories, values.ordered
        return b"categories", b"".join(map(encode, parts))
    ticks = getattr(values, "asi8", None)  # of times
    if ticks is not None:
        return b"moments", encode(values.dtype) + encode(ticks)
    return b"cells", encode(values.dtype) + _items(values.tolist())


def _index(index: Index) -> tuple[bytes, bytes]:
    """Return the tag and the body of the bytes that encode an index: its name and cells.

    Of a MultiIndex these are its levels. The tag says the type, and `encode` puts both together.
    """
    if isinstance(index, pd.MultiIndex):
        levels = [index.get_level_values(i) for i in range(index.nlevels)]
        return b"levels", b"".join(map(encode, levels))
    values = index.to_numpy() if isinstance(index.dtype, np.dtype) else index.array
    return b"index", encode(index.name) + encode(index.dtype) + encode(values)


def _frame(frame: pd.DataFrame) -> tuple[bytes, bytes]:
    """Return the tag and the body of the bytes that encode a frame: its names, dtypes and cells.

    The index of the frame does not count. The tag says the type, and `encode` puts both together.
    """
    columns = [frame.iloc[:, i].array for i in range(frame.shape[1])]
    cells = [c.to_numpy() if isinstance(c.dtype, np.dtype) else c for c in columns]
    return b"frame", b"".join(
        encode(part)
        for c, name in zip(cells, frame.columns, strict=True)
        for part in (name, c.dtype, c)
    )


def _dtype(dtype: Any) -> tuple[bytes, bytes]:
    """Return the tag and the body of the bytes that encode a dtype: its name.

    The tag says the type, and `encode` puts both together. The categories of a categorical are not
    public unless they are declared, so they are left out.
    """
    if isinstance(dtype, np.dtype):
        return b"dtype", encode(dtype.str)
    if isinstance(dtype, pd.IntervalDtype):
        return b"intervals", encode((dtype.subtype, dtype.closed))
    if isinstance(dtype, pd.DatetimeTZDtype):
        return b"zoned", encode((dtype.unit, dtype.tz))
    return b"pandas", encode(type(dtype).__qualname__) + encode(
        None if isinstance(dtype, pd.CategoricalDtype) else dtype.name
    )


def _stamp(moment: pd.Timestamp) -> tuple[bytes, bytes]:
    """Return the tag and the body of the bytes that encode a Timestamp: its ticks in UTC and zone.

    The tag says the type, and `encode` puts both together.
    """
    ticks: Any = (moment if moment.tz is None else moment.tz_convert(None)).asm8
    return b"stamp", encode(
        (int(ticks.astype(np.int64)), np.datetime_data(ticks.dtype)[0], moment.tz)
    )


def _zone(zone: datetime.tzinfo) -> tuple[bytes, bytes]:
    """Return the tag and the body of the bytes that encode a time zone: its name, or its offset.

    The tag says the type, and `encode` puts both together.
    """
    if type(zone) is datetime.timezone:
        return b"offset", encode(zone.utcoffset(None))
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    return (b"zone", encode(name)) if type(name) is str else _opaque(zone)


# Everything else -----------------------------------------------------------------------------------------------------

_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
)


def _other(value: Any) -> tuple[bytes, bytes]:
    """Return the tag and the body of the bytes that encode a value of a type in no table.

    A base class decides, or the value is an object like no other. The tag says the type, and
    `encode` puts both together.
    """
    kind = type(value)
    if isinstance(value, np.generic):
        return b"scalar", encode(
            value.dtype.str
        ) + value.tobytes() if value.dtype.kind in "biufcmMSU" else _opaque(value)[1]
    if isinstance(value, np.dtype | pd.api.extensions.ExtensionDtype):
        return _dtype(value)
    if isinstance(value, pd.Index):
        return _index(value)
    if isinstance(value, np.ndarray | pd.api.extensions.ExtensionArray):
        return _array(value)
    if isinstance(value, datetime.tzinfo):
        return _zone(value)
    if isinstance(value, Enum):
        if kind.__module__.startswith("dpframe."):
            raise AssertionError(kind.__name__ + " is part of a question, and its name may change.")
        return b"enum", encode((kind.__module__, kind.__qualname__, value._name_))
    for base, bare in _BASES:
        # A subclass that compares and hashes as its base does, such as a released number, is
        # encoded as the base is.
        if (
            isinstance(value, base)
            and kind.__eq__ is base.__eq__
            and kind.__hash__ is base.__hash__
        ):
            if kind.__module__.startswith("dpframe."):  # a released number
                return b"released", encode(bare(value))
            return b"like", encode((kind.__module__, kind.__qualname__)) + encode(bare(value))
    return _opaque(value)


_tokens: dict[Any, bytes] = {}


def _opaque(value: object) -> tuple[bytes, bytes]:
    """Return the tag and the body of the bytes that encode an object of an unknown class.

    The body is a random name. Equal objects have one name in this process, and another in every
    other process.
    """
    if is_dataclass(value) and type(value).__module__.startswith("dpframe."):
        raise AssertionError(type(value).__name__ + " is part of a question and has no identity.")
    token_key = (type(value), value)
    try:
        return b"object", _tokens.setdefault(token_key, _sampling.random_bytes(16))
    except Exception:  # it has no hash, or one that fails: it is like nothing else
        return b"object", _sampling.random_bytes(16)


def _decimal(number: Decimal) -> tuple[bytes, bytes]:
    sign, digits, exponent = number.as_tuple()
    return b"decimal", encode((sign, "".join(map(chr, (48 + d for d in digits))), exponent))


def _moment(value: datetime.datetime) -> tuple[bytes, bytes]:
    """Return the tag and the body of the bytes that encode a datetime: its fields and its zone.

    The tag says the type, and `encode` puts both together.
    """
    parts = (
        value.year,
        value.month,
        value.day,
        value.hour,
        value.minute,
        value.second,
        value.microsecond,
    )
    return b"moment", encode((*parts, value.fold, value.tzinfo))


def _time(value: datetime.time) -> tuple[bytes, bytes]:
    return b"time", encode(
        (value.hour, value.minute, value.second, value.microsecond, value.fold, value.tzinfo)
    )


_BY_TYPE: dict[type, Callable[[Any], tuple[bytes, bytes]]] = {
    complex: lambda v: (b"c", struct.pack(">dd", v.real, v.imag)),
    bytes: lambda v: (b"y", v),
    list: lambda v: (b"l", _items(v)),
    dict: lambda v: (b"d", _items(part for pair in v.items() for part in pair)),
    frozenset: lambda v: (b"z", b"".join(sorted(map(encode, v)))),
    set: lambda v: (b"Z", b"".join(sorted(map(encode, v)))),
    range: lambda v: (b"r", encode((v.start, v.stop, v.step))),
    slice: lambda v: (b"x", encode((v.start, v.stop, v.step))),
    Decimal: _decimal,
    datetime.date: lambda v: (b"date", encode((v.year, v.month, v.day))),
    datetime.datetime: _moment,
    datetime.time: _time,
    datetime.timedelta: lambda v: (b"delta", encode((v.days, v.seconds, v.microseconds))),
    pd.Timestamp: _stamp,
    pd.Timedelta: lambda v: (
        b"ticks",
        encode((int(v.asm8.astype(np.int64)), np.datetime_data(v.asm8.dtype)[0])),
    ),
    pd.Interval: lambda v: (b"interval", encode((v.left, v.right, v.closed))),
    pd.Period: lambda v: (b"period", encode((v.ordinal, v.freqstr))),
    type(pd.NA): lambda v: (b"null", b""),
    type(pd.NaT): lambda v: (b"no time", b""),
    pd.DataFrame: _frame,
}
