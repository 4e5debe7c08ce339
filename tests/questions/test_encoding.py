"""What decides what is free: an encoding that tells any two questions apart, and of which no part is a text that is shown."""

from __future__ import annotations

import ast
import copy
import dataclasses
import datetime
import importlib
import inspect
import itertools
import os
import pickle
import pkgutil
import random
import subprocess
import sys
from collections import namedtuple
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpframe
from dpframe import _expr as expr_module
from dpframe._cells import encoding as encoding_module
from dpframe._cells.encoding import encode, encoded_fields
from dpframe._expr import Column, Expr
from dpframe._groups.combinations import Tuples
from dpframe._groups.keys import Keys
from dpframe._groups.periods import Periods
from dpframe._groups.unit import Unit
from dpframe._identity import give_tag
from dpframe._plans.aggregates import Output as query_Output
from dpframe._questions.question import Query, Question
from dpframe._session.session import Session
from dpframe.learn import LinearRegression, LogisticRegression
from dpframe.utilities import distance

Call, OPS = expr_module.Call, expr_module.OPS


class Colour(Enum):
    RED = 1
    BLUE = 2


class Loud(str):
    __slots__ = ()


class Odd:
    """Prints what others print too."""

    def __repr__(self):
        return "'x'"

    __str__ = __repr__


class Unhashable:
    __hash__ = None

    def __eq__(self, other):
        raise ValueError("Sesame-Street-123")


A, B = Odd(), Odd()
VALUES = [
    *(None, True, False, 0, 1, -1, 2**64, -(2**64), 255, 256, 0.0, -0.0, 1.0, float("inf"), float("nan"), 1j, 1 + 0j),
    *("", "x", "1", "'x'", "\ud800", "é", "e\u0301", "x\x00", "x\x1fy", b"", b"x", Loud("x"), Colour.RED, Colour.BLUE),
    *((), (None,), ((),), ("x",), ("x", "y"), ("xy",), ("x", ("y",)), [], ["x"], ["x", "y"], {}, {"x": 1}, {"y": 1}, {"x": True}),
    *(frozenset(), frozenset({1}), frozenset({1, 2}), {1}, range(3), range(4), slice(3), slice(0, 3)),
    *(Fraction(1), Fraction(1, 3), Decimal(1), Decimal("1.0"), Decimal("NaN"), Decimal("-0"), Decimal(0)),
    *(np.int64(1), np.int32(1), np.float64(1), np.bool_(True), np.str_("x"), np.datetime64("2024-01-01"), np.datetime64("NaT")),
    *(datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, fold=1), datetime.time(1)),
    *(datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), datetime.timedelta(1), datetime.timedelta(0, 1)),
    *(pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-01").as_unit("ns"), pd.Timestamp("2024-01-01", tz="UTC")),
    *(pd.Timestamp("2024-01-01", tz="Europe/Berlin"), pd.Timestamp("2024-01-01", tz=ZoneInfo("Europe/Rome"))),
    *(pd.Timedelta(1, "s"), pd.Interval(0, 1), pd.Interval(0, 1, "left"), pd.Interval(0.0, 1.0), pd.Period("2024-01", "M")),
    *(pd.NA, pd.NaT, A, B, Odd, Unhashable(), Unhashable(), len, abs),
    *(np.array([1, 2]), np.array([1, 2], dtype="int32"), np.array([[1, 2]]), np.array([1.0, 2.0]), np.array(["x", "y"])),
    *(np.array(["x", "y"], dtype=object), np.array([1, "x"], dtype=object), np.array([], dtype="int64"), np.array([])),
    *(pd.Index([1, 2]), pd.Index([1, 2], name="x"), pd.Index([1.0, 2.0]), pd.Index(["x", "y"]), pd.Index(["x", None])),
    *(pd.Index([1, True], dtype=object), pd.Index([1, 1.0], dtype=object), pd.Index([True, True], dtype=object)),
    *(pd.CategoricalIndex(["x", "y"]), pd.CategoricalIndex(["x", "y"], ordered=True)),
    *(pd.CategoricalIndex(["x", "y"], ["y", "x"]), pd.CategoricalIndex(["x", "y"], name="x")),
    *(pd.date_range("2024", periods=2), pd.date_range("2024", periods=2, tz="UTC"), pd.interval_range(0, 2)),
    *(pd.MultiIndex.from_tuples([(1, "x")]), pd.MultiIndex.from_tuples([(1, "x")], names=["a", None])),
    *(pd.array([1, None]), pd.array([1, 2]), pd.array([True, None]), pd.array(["x", None], dtype="str")),
    *(pd.DataFrame({"x": [1]}), pd.DataFrame({"x": [1.0]}), pd.DataFrame({"y": [1]}), pd.DataFrame({"x": [1, 1]})),
    *(np.dtype("int64"), np.dtype(">i8"), np.dtype("O"), pd.Int64Dtype(), pd.StringDtype(), pd.DatetimeTZDtype("us", "UTC")),
    *(pd.IntervalDtype("int64", "left"), pd.IntervalDtype("int64", "right"), pd.IntervalDtype("float64", "left")),
    *(pd.PeriodDtype("M"), pd.PeriodDtype("D"), pd.SparseDtype("int64", 0), pd.SparseDtype("int64", 1), pd.BooleanDtype()),
    *(Unit(), Unit("replace-one"), Unit(rows=1), Unit(groups=1)),
    # without their lengths these would run into each other
    *((b"ya",), (b"", b"a"), (Unit(rows=1),), (Unit(), "rows", 1)),
]  # fmt: skip


def test_no_two_values_have_one_encoding():
    codes = [encode(v) for v in VALUES]
    for (i, a), (j, b) in itertools.combinations(enumerate(codes), 2):
        assert a != b, (VALUES[i], VALUES[j])


def test_the_same_value_has_the_same_one():
    again = [
        encode(copy.deepcopy(v)) if not isinstance(v, Odd | Unhashable) else encode(v)
        for v in VALUES
    ]
    for value, one, two in zip(VALUES, map(encode, VALUES), again, strict=True):
        assert (one == two) != isinstance(value, Unhashable), value


NAMES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary(),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=2),
    max_leaves=6,
)


def exact(value):
    """A value with the types of all its parts, to be compared."""
    if isinstance(value, tuple):
        return tuple, tuple(map(exact, value))
    if isinstance(value, frozenset):
        return frozenset, frozenset(map(exact, value))
    return type(value), value.hex() if isinstance(value, float) else value


@given(NAMES, NAMES)
def test_names_of_any_kind_are_told_apart(one, other):
    assert (encode(one) == encode(other)) == (exact(one) == exact(other))


@given(
    st.lists(st.text(st.characters(), max_size=3), max_size=4),
    st.lists(st.text(st.characters(), max_size=3), max_size=4),
)
@example(["ab", "c"], ["a", "bc"])
def test_lists_of_texts_do_not_run_into_each_other(one, other):
    assert (encode(one) == encode(other)) == (one == other)
    assert encode(tuple(one)) != encode(one)


@given(st.lists(st.floats(), max_size=40))
def test_many_doubles_are_encoded_as_each_of_them_is(numbers):
    """Both ways to put doubles together give a length, the tag of a list, and what each of them is."""
    body = b"L" + b"".join(map(encode, numbers))
    assert encode(tuple(numbers)).endswith(b"t" + body)
    assert encode((*numbers, None)).endswith(body + encode(None))
    assert encode((*numbers, 1)).endswith(body + encode(1))


def test_what_keeps_its_encoding_keeps_its_own():
    """Equal columns and units that are not alike, and copies, which keep none."""
    names = (1, True, 1.0, "1")
    columns = [Column(0, name, "number") for name in names]
    assert columns[0] == columns[1] == columns[2]
    first = [encode(one) for one in columns]
    assert len(set(first)) == len(names)
    for one, known in zip(columns, first, strict=True):
        assert (
            encode(one)
            == known
            == encode(pickle.loads(pickle.dumps(one)))
            == encode(Column(0, one.name, "number"))
        )
        assert encode(dataclasses.replace(one, position=1)) != known
    unit = Unit("add-remove", (columns[0],), 3, 2)
    assert encode(unit) == encode(unit) != encode(unit.with_limits(4, None))


CODE = """
import datetime, sys
from decimal import Decimal
from fractions import Fraction
import numpy as np, pandas as pd
from dpframe._cells.encoding import digest
print(digest(None, 1, 1.0, "x", ("x", 2), Fraction(1, 3), Decimal("1.0"), np.int8(1), pd.Timestamp("2024-01-01", tz="UTC"),
    frozenset({"a", "b", "c", "d"}), pd.Index(["x", "y"], name="s"), datetime.date(2024, 1, 1)))
"""


def test_encoding_is_the_same_in_other_processes_and_as_ledgers_have_it():
    """A number that changes here makes every ledger pay again: then add a format, and read the old one."""
    for seed in ("1", "2"):
        words = {
            "capture_output": True,
            "text": True,
            "env": {**os.environ, "PYTHONHASHSEED": seed},
        }
        done = subprocess.run([sys.executable, "-c", CODE], check=True, **words)
        assert done.stdout.strip() == PINNED


PINNED = "e2a2f6922c740c3ccafe3158fa5d1b49f0d8a2db5fecbc054b5de0c13822cc96"


# Every field of every frozen class ----------------------------------------------------------------------------


def modules():
    for info in pkgutil.walk_packages(dpframe.__path__, "dpframe."):
        if "__main__" not in info.name:
            try:
                yield importlib.import_module(info.name)
            except ModuleNotFoundError as missing:
                if missing.name not in ("polars", "dask"):  # they come with extras
                    raise


def below(kind):
    yield kind
    for one in kind.__subclasses__():
        yield from below(one)


def frozen_classes():
    """Questions and all that they are made of."""
    list(modules())
    kinds = {k for base in (Expr, Question) for k in below(base)}
    known = {k for module in modules() for k in vars(module).values() if inspect.isclass(k)}
    kinds |= {k for k in known if k.__name__.endswith("By") and dataclasses.is_dataclass(k)}
    kinds |= {
        k
        for k in known
        if k.__name__ in ("Query", "Unit", "Design", "Target", "Loss")
        and dataclasses.is_dataclass(k)
    }
    kinds |= {k for k in known if k.__name__ == "Output" and dataclasses.is_dataclass(k)}
    # With slots=True the class as it was written lives on beside the one that the module has; a toy of a page is in no module.
    own = {k for k in kinds if k.__module__.startswith("dpframe.")}  # and no twin of another test
    return {
        k
        for k in own
        if getattr(sys.modules[k.__module__], k.__name__, None) is k and not inspect.isabstract(k)
    }


# No question has one of these themselves; the last is a statistic.
ABSTRACT = {"_Same", "_Listed", "Expr", "Fit", "Sought", "PeopleBy"}


def asked():
    """Questions with all kinds of parts, as they reach the session."""
    n = 40
    frame = pd.DataFrame(
        {
            "id": [i // 2 for i in range(n)],
            "x": [float(i) for i in range(n)],
            "y": [float(i % 7) for i in range(n)],
            "s": [("a", "b", "c")[i % 3] for i in range(n)],
            "b": [bool(i % 2) for i in range(n)],
            "t": pd.date_range("2024-01-01", periods=n, tz="UTC"),
        }
    )
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        label = Session._label
        patch.setattr(
            Session,
            "_label",
            lambda self, one, place: (seen.append(one), label(self, one, place))[1],
        )
        bounds = {"x": (0, 40), "y": (0, 7), "t": ("2024-01-01", "2024-03-01")}
        p = frame.dp.open(
            1000, 1e-6, unit="id", max_rows=2, max_groups=2, bounds=bounds, neighbors="replace-one"
        ).explain
        p.query("x > 1 and not (y < 2 or b) and s in ['a', 'b']").count()
        p.query("s.isna() | (s.fillna('z') == 'z')").count()
        p.query("(1 if x > 1 else y) > 0 and log(x) > 1 and minimum(x, y) > 2").count()
        p.query("(t - '2024-01-05 00:00+00:00').dt.days > 1 and (t - t) / '1 day' > 0").count()
        p.query(
            "t.dt.floor('h') == t.dt.tz_convert('Asia/Tokyo') and t.dt.strftime('%Y') == '2024'"
        ).count()
        p.query(
            "s.str.match('a+') and s.str.count('b') > 0 and s + 'x' == 'ax' and to_numeric(s) > 1"
        ).count()
        p.query(
            "s.str.split('-').str[0] == 'a' and s.str.split('-').str.len() > 1 and to_datetime(s).isna()"
        ).count()
        p.groupby(p["t"].dt.to_period("M")).size()
        q = p.assign(
            u=-p["x"], r=(p["x"] / 3).round(1), c=p["x"].clip(1, 5), f=p["x"].fillna(0.0), i=p["x"].astype("int"),
            m=p["s"].map({"a": 1, "b": 2}), n=p["s"].str.slice(0, 1), d=p["t"].dt.month, k=p["x"].cut([0, 20, 40]),
        )  # fmt: skip
        (
            q.sum("u", bounds=(-40, 0)),
            q.sum("r"),
            q.sum("c"),
            q.sum("f"),
            q.sum("i"),
            q.sum("m", bounds=(1, 2)),
        )
        q.groupby("n", keys=["a"]).size(), q.groupby("d").size(), q.groupby("k").size()
        p.groupby("s", keys=["a"], other="else").size()
        p.groupby(["s", "b"], keys=[("a", True)]).size()
        p.resample("ME", on="t").size()
        p.histogram("x", bins=[0, 20, 40])
        p[["x", "y"]].cov()
        (
            p.choose([1, 2], distance("x")),
            p.quantile("x", [0.25]),
            p.var("x", ddof=0),
            p.top("s", 2, keys=["a", "b", "c"]),
        )
        p.query("x > 1").sort_values("t").groupby("id")["x"].shift(1).sum((0, 40))
        p.drop_duplicates(["id", "s"]).count()
        p.randomize("s", keys=["a", "b"], other="else"), p.randomize("x")
        p.unique("s"), p.groupby("s").agg(n=("x", "size"), m=("x", "mean"))
        for method in ("gradient", "objective", "output"):
            p.fit(LogisticRegression(method=method), X=["x"], y="b")
        p.fit(LinearRegression(l2=1), X=["x"], y="y")
    return [(one.question, one.unit) for one in seen]


def parts(value, found):
    """One object of each frozen class in a question."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found.setdefault(type(value), []).append(value)
        for one in dataclasses.fields(value):
            parts(getattr(value, one.name), found)
    elif isinstance(value, tuple | list):
        for one in value:
            parts(one, found)
    return found


@pytest.fixture(scope="module")
def found():
    return parts(asked(), {})


def others(value):
    """Values that differ from one as little as may be."""
    if isinstance(value, bool):
        yield not value
        yield int(value)
    elif isinstance(value, str):
        yield value + "x"
        yield value[:-1] + chr(ord(value[-1]) + 1) if value else " "
    elif isinstance(value, int):
        yield value + 1
        yield float(value)
    elif isinstance(value, float):
        yield float(np.nextafter(value, np.inf))
        yield str(value)
    elif isinstance(value, Fraction):
        yield value + Fraction(1, 10**30)
    elif isinstance(value, tuple) and not hasattr(value, "_fields"):
        yield (*value, *(value[:1] or (None,)))
        yield value[1:] if value else (0,)
        for i, one in enumerate(value):
            yield from ((*value[:i], other, *value[i + 1 :]) for other in others(one))
    elif isinstance(value, tuple):
        yield from (
            value._replace(**{name: other})
            for name in value._fields
            for other in others(getattr(value, name))
        )
    elif isinstance(value, Keys):
        yield Keys(value.index[:-1], value.null)
        yield Keys(value.index.rename("another"), value.null)
        yield Keys(value.index, 0 if value.null is None else None)
    elif isinstance(value, Tuples):
        yield Tuples(value.keys, value.places[:0])
    elif isinstance(value, Periods):
        for name in Periods.identity[1:]:
            other = copy.copy(value)
            object.__setattr__(other, name, next(others(getattr(value, name)), "another"))
            other.code = None
            yield other
    elif dataclasses.is_dataclass(value):
        yield None
    elif isinstance(value, pd.Timestamp | pd.Timedelta):
        yield value + pd.Timedelta("1s")
    elif isinstance(value, np.ndarray):
        yield value + 1
    elif isinstance(value, pd.Index):
        yield value[:-1]
    elif value is None:
        yield 0
        yield ""
    else:
        raise AssertionError(f"no other value is known for {type(value)}")


def others_of_field(one, name):
    """Values of a field that differ as little as may be. A call keeps the form of its function."""
    value = getattr(one, name)
    if not isinstance(one, Call):
        yield from others(value)
        return
    args = OPS[one.op].args
    if name == "op":
        yield from (other for other in OPS if other != value and len(OPS[other].args) == len(args))
        return
    for i, part in enumerate(value):
        for other in others(part):
            if name == "operands" or type(other) in args[i].types:
                yield (*value[:i], other, *value[i + 1 :])


def with_field(one, name, value):
    """A frozen object with another field, whether or not it could be."""
    made = object.__new__(type(one))
    for f in dataclasses.fields(one):
        object.__setattr__(made, f.name, getattr(one, f.name))
    object.__setattr__(made, name, value)
    return made


@pytest.mark.kept
def test_every_frozen_class_is_in_some_question(found):
    missing = {k.__name__ for k in frozen_classes() - set(found)} - ABSTRACT
    assert missing == set()
    called = {OPS[one.op].identity[0] for one in found[Call]}
    assert called == {op.identity[0] for op in OPS.values()}


@pytest.mark.kept
def test_changing_any_one_field_changes_the_encoding(found):
    changed = set()
    for kind, objects in found.items():
        for one in objects if kind is Call else objects[:20]:
            for f in dataclasses.fields(one):
                if not f.init or f.metadata.get("shown"):
                    continue
                for other in others_of_field(one, f.name):
                    assert encode(with_field(one, f.name, other)) != encode(one), (kind, f.name)
                    changed.add((kind, f.name))
    wanted = {
        (k, f.name)
        for k in found
        for f in dataclasses.fields(k)
        if f.init and not f.metadata.get("shown")
    }
    assert changed == wanted


def test_only_what_follows_from_others_or_is_shown_is_left_out():
    left = {
        (kind.__name__, f.name)
        for kind in frozen_classes()
        if kind.__name__ not in ABSTRACT and kind is not Call
        for f in dataclasses.fields(kind)
        if f.name not in {name for name, *_ in encoded_fields(kind)}
        and f.name not in ("depth", "size")
    }
    shown = {
        ("Output", "said"),
        ("Output", "keys"),  # of which the expression is a map to places
        ("Constant", "tag"),
        ("BinBy", "index"),
        ("BinBy", "_hash"),  # of the edges
        ("RestBy", "keys"),
        ("Unit", "replaces"),
    }
    # What failures may come to can follow from what is spent; how the question says it is in it.
    failures = {(kind, name) for kind in ("KeySearch", "Finding") for name in ("failure", "alone")}
    failures |= {(kind, "delta") for kind in ("Objective", "Descent")}
    # How an answer is made of what was released is no part of what was asked.
    finishes = {
        (kind.__name__, "finish") for kind in frozen_classes() if issubclass(kind, Question)
    }
    assert left == shown | failures | finishes


def test_identity_of_a_function_has_its_operands_and_arguments():
    """Functions of one tag have one list of fields. Their name, or a text of their own, tells them apart."""
    tags = {}
    for op in OPS.values():
        tags.setdefault(op.identity[0], []).append(op)
    for ops in tags.values():
        known = {"x", "y", "name", "args"} | {arg.name for op in ops for arg in op.args}
        for op in ops:
            names = {name for name in op.identity[1:] if not name.startswith("=")}
            own = len(ops) == 1 or "name" in names or len(names) < len(op.identity) - 1
            assert own, op.name
            assert {"x"} <= names <= known, op.name
            assert "args" in names or {arg.name for arg in op.args} <= names, op.name


def test_lists_of_keys_are_all_that_they_hold():
    follow = {Keys: {"cells"}, Tuples: {"index"}, Periods: set()}  # these follow from the others
    for kind, names in follow.items():
        assert {*kind.identity[1:], "code", "token"} | names == set(kind.__slots__)


@pytest.mark.parametrize("kind", [Keys, Tuples, Periods])
def test_each_part_of_a_list_of_keys_is_in_its_digest(kind):
    def listed(**parts):
        made = object.__new__(kind)
        made.code = None
        for name in kind.identity[1:]:
            setattr(made, name, parts.get(name, 0))
        return encode(made)

    codes = [listed(), *(listed(**{name: 1}) for name in kind.identity[1:])]
    assert len(set(codes)) == len(kind.identity[1:]) + 1


# Names are not identity: tags and places are ---------------------------------------------------------------------


def test_a_field_that_is_added_keeps_the_questions_of_old_ledgers():
    """At its default it is not written, also where the default was given in words."""
    old = dataclasses.make_dataclass(
        "Asked", ["x"], frozen=True, namespace={"identity": ("asked", "x")}
    )
    limit = ("limit", int, dataclasses.field(default=10**6))
    names = {"identity": ("asked", "x", "limit")}
    new = dataclasses.make_dataclass("Asked", ["x", limit], frozen=True, namespace=names)
    assert encode(old(1)) == encode(new(1)) == encode(new(1, int("1000000")))
    assert encode(new(1, 2)) != encode(new(1))


def rename(value, kinds):
    """A copy of a value, all of whose classes and fields have other names."""
    if isinstance(value, tuple) and type(value) is not tuple:
        named = namedtuple(f"Other{len(kinds)}", [f"other_{name}" for name in value._fields])
        kinds.append(give_tag(type(value).identity[0])(named))
        return kinds[-1](*(rename(one, kinds) for one in value))
    if type(value) is tuple:
        return tuple(rename(one, kinds) for one in value)
    if isinstance(value, Keys | Tuples | Periods):
        tag, *names = type(value).identity
        parts = {f"other_{name}": rename(getattr(value, name), kinds) for name in names}
        kinds.append(type(f"Other{len(kinds)}", (), {"identity": (tag, *parts)}))
        made = kinds[-1]()
        vars(made).update(parts, code=None)
        return made
    if not dataclasses.is_dataclass(value):
        return value
    if isinstance(value, Call):
        return rename_call(value, kinds)
    tag, *names = type(value).identity
    known = {f.name: f for f in dataclasses.fields(value)}
    columns = [
        (f"other_{name}", object, dataclasses.field(default=known[name].default)) for name in names
    ]
    identity = {"identity": (tag, *(f"other_{name}" for name in names))}
    # The encoder takes them as they are: the fields stand in another order, too.
    kind = dataclasses.make_dataclass(
        f"Other{len(kinds)}", columns[::-1], frozen=True, kw_only=True, namespace=identity
    )
    kinds.append(kind)
    return kind(**{f"other_{name}": rename(getattr(value, name), kinds) for name in names})


def rename_call(call, kinds):
    """A call as a value of a class of its own, with the tag and the fields of the function."""
    tag, *names = OPS[call.op].identity
    found_tag, known = call.read_identity()
    assert found_tag == tag
    fields = [f"other_{place}" for place in range(len(names))]
    columns = [(name, object, dataclasses.field(default="not given")) for name in fields]
    kind = dataclasses.make_dataclass(
        f"Other{len(kinds)}", columns, frozen=True, namespace={"identity": (tag, *fields)}
    )
    kinds.append(kind)
    return kind(**{f"other_{place}": rename(part, kinds) for place, part in known.items()})


def test_renamed_classes_and_fields_have_the_same_encoding():
    questions, kinds = asked(), []
    for one in questions:
        assert encode(rename(one, kinds)) == encode(one)
    tags = {kind.identity[0] for kind in kinds}
    kept = [k for k in frozen_classes() if k.__name__ not in ABSTRACT and k is not Call]
    assert tags >= {kind.identity[0] for kind in kept}
    assert tags >= {op.identity[0] for op in OPS.values()}
    assert tags >= {"bounds", "span", "sort_key", "keys", "tuples", "periods"}


def test_class_without_an_identity_of_its_own_is_not_its_base():
    """It may have more fields, and is an object that nobody knows."""
    base = dataclasses.make_dataclass(
        "Asked", "x", frozen=True, namespace={"identity": ("asked", "x")}
    )
    below_it = dataclasses.make_dataclass("More", "y", frozen=True, bases=(base,))
    assert encode(below_it(1, 2)) == encode(below_it(1, 2)) != encode(base(1))
    assert encode(below_it(1, 2)) != encode(below_it(1, 3))


def test_another_tag_or_place_has_another_encoding():
    def made(*identity):
        return dataclasses.make_dataclass(
            "Asked", "xy", frozen=True, namespace={"identity": identity}
        )(1, 2)

    codes = {
        encode(made(*identity)) for identity in [("a", "x", "y"), ("a", "y", "x"), ("b", "x", "y")]
    }
    assert len(codes) == 3
    fields = [(name, int, dataclasses.field(default=0)) for name in "xy"]
    kind = dataclasses.make_dataclass(
        "Asked", fields, frozen=True, namespace={"identity": ("a", "x", "y")}
    )
    assert encode(kind(x=5)) != encode(kind(y=5))  # the other one is not written


@pytest.mark.parametrize("names", [("x",), ("x", "y", "y"), ("x", "z"), ("x", "y", "z")])
def test_identity_that_does_not_list_each_field_once_raises(names):
    kind = dataclasses.make_dataclass(
        "Asked", "xy", frozen=True, namespace={"identity": ("asked", *names)}
    )
    with pytest.raises(TypeError, match="must list each of"):
        encode(kind(1, 2))


def test_every_encoded_class_has_its_identity_and_a_tag_of_its_own():
    list(modules())
    kinds = {k for k in frozen_classes() if k.__name__ not in ABSTRACT and k is not Call}
    tagged = {
        k
        for module in modules()
        for k in vars(module).values()
        if "identity" in getattr(k, "__dict__", {})
    }
    kinds |= {k for k in tagged if inspect.isclass(k)}
    kinds.discard(expr_module.Op)  # an entry of the catalogue, which no question holds
    assert all("identity" in vars(k) for k in kinds)
    tags = [k.identity[0] for k in kinds] + list({op.identity[0] for op in OPS.values()})
    assert len(set(tags)) == len(tags) > 50
    assert all(tag.isidentifier() and tag == tag.lower() for tag in tags)
    assert all(len({*k.identity[1:]}) == len(k.identity[1:]) for k in (*kinds, *OPS.values()))
    for kind in kinds:
        if dataclasses.is_dataclass(kind):
            assert encoded_fields(kind) or not dataclasses.fields(kind)


def test_no_class_of_dpframe_is_encoded_by_its_name():
    """The encoder uses names for the enums, dtypes and numbers of others; the only numbers of dpframe are released ones."""
    list(modules())
    assert not [
        k for k in below(pd.api.extensions.ExtensionDtype) if k.__module__.startswith("dpframe.")
    ]
    for kind in [k for k in below(Enum) if k.__module__.startswith("dpframe.")]:
        with pytest.raises(AssertionError, match="its name may change"):
            encode(next(iter(kind)))
    p = pd.DataFrame({"x": [1]}).dp.open(1)
    answer = p.count(epsilon=0.5)
    assert encode(answer) == encode(copy.copy(answer)) != encode(int(answer))
    assert encode(answer) != encode(answer.__class__(int(answer) + 1, answer._plan, answer._raw))
    assert b"Estimate" not in encode(answer)
    assert b"dpframe" not in encode(answer)


# What is shown is not what is compared ------------------------------------------------------------------------

HELPERS = {"repr", "describe", "str", "format", "to_json", "__repr__", "__str__", "dumps", "hash"}


def test_no_display_helper_is_called_by_the_encoder():
    tree = ast.parse(inspect.getsource(encoding_module))
    called = {
        getattr(n.func, "id", getattr(n.func, "attr", ""))
        for n in ast.walk(tree)
        if isinstance(n, ast.Call)
    }
    assert not called & HELPERS
    assert not [n for n in ast.walk(tree) if isinstance(n, ast.JoinedStr | ast.FormattedValue)]
    cut = [ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.Slice)]
    assert set(cut) == {"1:", ":"}  # of an identity its fields, and a column of a frame


@pytest.mark.parametrize(
    ("module", "function"),
    [("_session.session", "_label"), ("_session.derived", "steps"), ("_frame.found", "_question")],
)
def test_labels_tokens_and_keys_of_caches_are_made_by_it_alone(module, function):
    source = inspect.getsource(importlib.import_module(f"dpframe.{module}"))
    made = [
        n
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.FunctionDef) and n.name == function
    ]
    assert made
    for one in made:
        called = {
            getattr(n.func, "id", getattr(n.func, "attr", ""))
            for n in ast.walk(one)
            if isinstance(n, ast.Call)
        }
        assert called & {"digest", "encode"}
        assert not called & (HELPERS)


def test_keys_in_any_order_are_one_release():
    frame = pd.DataFrame({"s": ["a", "b"], "x": [1.0, 2.0]})
    p = frame.dp.open(10)
    draw = random.Random(1)
    answers = []
    for _ in range(5):
        keys = [*"abcdefgh"]
        draw.shuffle(keys)
        answers.append(p.groupby("s", keys=list(keys)).size(epsilon=0.1))
        assert answers[-1].index.tolist() == keys
    assert len(p.ledger) == 1
    assert all(one.to_dict() == answers[0].to_dict() for one in answers)


class Cell:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return "a name"

    def __eq__(self, other):
        return isinstance(other, Cell) and self.text == other.text

    def __hash__(self):
        return hash(self.text)


def test_columns_that_print_alike_are_two():
    frame = pd.DataFrame(
        [[1.0, 5.0]] * 10, columns=pd.Index([Cell("one"), Cell("two")], dtype=object)
    )
    p = frame.dp.open(100)
    for name in frame.columns:
        for _ in range(2):
            p.sum(name, bounds=(0, 10), epsilon=1)
            p.groupby(name, keys=[1.0, 5.0]).size(epsilon=1)
            p.melt(value_vars=[name]).count(epsilon=1)
    assert len(p.ledger) == 6


def test_what_makes_an_answer_is_no_part_of_its_question():
    plain, one, two = (Query((query_Output("rows", "size"),), finish=f) for f in (None, list, len))
    assert plain == one == two
    assert len({plain, one, two}) == 1
    assert encode(plain) == encode(one) == encode(two)
    assert repr(one) == repr(plain)
    assert plain.answer((1, 2)) == (1, 2)
    assert (one.answer((1, 2)), two.answer((1, 2))) == ([1, 2], 2)
