"""The string language: what pandas' query reads, as far as it is row-wise, and a clear no to everything else."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe import BadExpression, BadType, BadValue, UnknownColumn
from dpframe import _expr as ex
from dpframe._expr import Column, Expr, constant
from dpframe._expr._parse import MAX_LENGTH, Parsed, parse

DTYPES: dict[Hashable, Any] = {
    "age": np.dtype("int64"),
    "cost": np.dtype("float64"),
    "state": pd.StringDtype(),
    "old": np.dtype(bool),
    "when": np.dtype("M8[us]"),
    "blood pressure": np.dtype("float64"),
    "and": np.dtype("float64"),
    "a&b": np.dtype("float64"),
    2020: np.dtype("int64"),
    "größe": np.dtype("float64"),
}
COLUMNS: dict[Hashable, Expr] = {k: Column.of(i, k, t) for i, (k, t) in enumerate(DTYPES.items())}
AGE, COST, STATE, OLD, WHEN = (COLUMNS[k] for k in ("age", "cost", "state", "old", "when"))


def read(text: str, **names: Any) -> Parsed:
    return parse(text, COLUMNS, names.__getitem__)


def over(op: str, x: Expr, value: Any) -> Expr:
    return ex.compare(op, x, constant(value))


ADULT, RICH = over(">", AGE, 18), over(">", COST, 9)

READS: dict[str, Expr] = {
    "age > 18": ADULT,
    "18 < age": ADULT,
    "  age\n  > 18 ": ADULT,
    "age > 18 and cost > 9": ex.logical_and(ADULT, RICH),
    "age > 18 & cost > 9": ex.logical_and(ADULT, RICH),
    "(age > 18) | (cost > 9)": ex.logical_or(ADULT, RICH),
    "age > 18 | cost > 9 & old": ex.logical_or(ADULT, ex.logical_and(RICH, OLD)),
    "not age > 18": ex.logical_not(ADULT),
    "~(age > 18)": ex.logical_not(ADULT),
    "~old": ex.logical_not(OLD),
    "0 < age <= 18": ex.logical_and(over(">", AGE, 0), over("<=", AGE, 18)),
    "age == -5": over("==", AGE, -5),
    "age == +5": over("==", AGE, 5),
    "-cost": ex.negate(COST),
    "cost / 1000": ex.arithmetic("/", COST, constant(1000)),
    "age ** 2 // 3 % 4": ex.arithmetic(
        "%",
        ex.arithmetic("//", ex.arithmetic("**", AGE, constant(2)), constant(3)),
        constant(4),
    ),
    "state == 'a & b | `c` @d'": over("==", STATE, "a & b | `c` @d"),
    'state == "it\'s"': over("==", STATE, "it's"),
    "state == 'it\\'s & so'": over("==", STATE, "it's & so"),
    "state in ['CA', 'NY']": ex.is_in(STATE, ["CA", "NY"]),
    "state not in ('CA', 'NY')": ex.logical_not(ex.is_in(STATE, ["CA", "NY"])),
    "state == ['CA', 'NY']": ex.is_in(STATE, ["CA", "NY"]),
    "state != ['CA', 'NY']": ex.logical_not(ex.is_in(STATE, ["CA", "NY"])),
    "cost in [1, -2.5, None]": ex.is_in(COST, [1, -2.5, None]),
    "`blood pressure` > 1": over(">", COLUMNS["blood pressure"], 1),
    "`and` > 1 and `a&b` > 1": ex.logical_and(
        over(">", COLUMNS["and"], 1), over(">", COLUMNS["a&b"], 1)
    ),
    "`2020` > 1": over(">", COLUMNS[2020], 1),
    "größe > 1": over(">", COLUMNS["größe"], 1),
    "state.isin(['CA'])": ex.is_in(STATE, ["CA"]),
    "age.between(1, 5)": ex.between(AGE, 1, 5),
    "age.between(1, cost, inclusive='left')": ex.between(AGE, 1, COST, "left"),
    "cost.isna()": ex.is_null(COST),
    "cost.isnull()": ex.is_null(COST),
    "cost.notna()": ex.not_null(COST),
    "cost.notnull()": ex.not_null(COST),
    "cost.fillna(0)": ex.fill(COST, 0),
    "cost.clip(0, 5)": ex.clip(COST, 0, 5),
    "cost.clip(upper=5)": ex.clip(COST, None, 5),
    "cost.clip(None, 5)": ex.clip(COST, None, 5),
    "cost.abs().round(1)": ex.round_to(ex.absolute(COST), 1),
    "(cost + 1).round(decimals=1)": ex.round_to(ex.arithmetic("+", COST, constant(1)), 1),
    "state.str.len()": ex.text_part(STATE, "len"),
    "state.str.lower().str.startswith('n')": ex.text_part(
        ex.text_part(STATE, "lower"), "startswith", "n"
    ),
    "state.str.contains('a.b', case=False, regex=True)": ex.text_part(
        STATE, "contains", "a.b", case=False, regex=True
    ),
    "state.str[0:2]": ex.text_part(STATE, "slice", 0, 2),
    "state.str[-1]": ex.text_part(STATE, "get", -1),
    "state.str.replace('a', 'b')": ex.text_part(STATE, "replace", "a", "b"),
    "when.dt.year": ex.time_part(WHEN, "year"),
    "when.dt.day_name() == 'Monday'": over("==", ex.time_part(WHEN, "day_name"), "Monday"),
    "when.dt.normalize()": ex.time_part(WHEN, "normalize"),
    "when >= '2024-01-01'": over(">=", WHEN, "2024-01-01"),
    "old == True": over("==", OLD, True),
    "7": constant(7),
}


@pytest.mark.parametrize("text", READS)
def test_a_string_means_what_pandas_means(text: str) -> None:
    assert read(text).expr == READS[text]
    assert read(text).names == {}


def test_names_are_found_and_handed_back() -> None:
    coast = ["CA", "NY"]
    parsed = read(
        "state in @coast and age > @limit and cost < @limit", coast=coast, limit=18, unused=3
    )
    assert parsed.names == {"coast": coast, "limit": 18}
    assert str(parsed.expr) == "state.isin(['CA', 'NY']) & ((age > 18) & (cost < 18))"


@pytest.mark.parametrize(
    "coast",
    [("a", "b"), {"a", "b"}, frozenset("ab"), np.array(["a", "b"]), pd.Index(["a", "b"])],
    ids=lambda c: type(c).__name__,
)
def test_public_collections_of_many_types_are_lists(coast: Any) -> None:
    for text in ("state in @coast", "state.isin(@coast)", "state == @coast"):
        assert read(text, coast=coast).expr == ex.is_in(STATE, ["a", "b"])
    assert read("age in @r", r=range(3)).expr == ex.is_in(AGE, [0, 1, 2])


@pytest.mark.parametrize("text", ["state in @people", "state.isin(@people)", "state == @people"])
@pytest.mark.parametrize(
    "people", [pd.Series(["a"]), pd.DataFrame({"a": ["a"]})], ids=["Series", "DataFrame"]
)
def test_a_series_could_be_peoples_data(text: str, people: Any) -> None:
    with pytest.raises(BadType, match="people's data"):
        read(text, people=people)


def test_numpy_scalars_and_timestamps_are_constants() -> None:
    assert read("age > @n", n=np.int64(18)).expr == ADULT
    assert read("when > @t", t=pd.Timestamp("2024-01-01")).expr == over(">", WHEN, "2024-01-01")


def test_a_hundred_clauses_are_not_nested() -> None:
    text = " or ".join(f"(age == {i})" for i in range(300))
    assert read(text).expr.depth < 15


# Whatever looks across people, calls code, or means something else: the piece in question, and why not.
REFUSED: dict[str, tuple[type[Exception], str]] = {
    "": (BadExpression, "empty"),
    "age >": (BadExpression, "not one expression"),
    "age > 1; cost > 1": (BadExpression, "not one expression"),
    "x = age + 1": (BadExpression, "assign"),
    "blood pressure > 1": (BadExpression, "backticks"),
    "age > 'a": (BadExpression, "not one expression"),
    "age \0 > 1": (BadExpression, "not one expression"),
    "age > age.mean()": (BadExpression, r"'age.mean\(\)'.*looks across people.*release"),
    "age.rank() > 3": (BadExpression, "looks across people"),
    "age.shift(1) > 3": (BadExpression, "looks across people"),
    "cost == cost.max()": (BadExpression, "looks across people"),
    "age.values > 3": (BadExpression, "looks across people"),
    "age.iloc[0] > 3": (BadExpression, "brackets"),
    "age[0] > 3": (BadExpression, "brackets"),
    "age.__class__": (BadExpression, "__class__"),
    "age.foo()": (BadExpression, r"\.foo"),
    "age.apply(abs)": (BadExpression, "looks across people"),
    "hash(cost) > 1": (BadExpression, r"x\.abs\(\)"),
    "__import__('os').system('x')": (BadExpression, "system"),
    "open('f')": (BadExpression, "functions are not called"),
    "(lambda: 1)() > age": (BadExpression, "functions are not called"),
    "lambda: age": (BadExpression, "lambda"),
    "f'{age}' == state": (BadExpression, "f-string"),
    "(y := age) > 1": (BadExpression, "assignment"),
    "[a for a in age]": (BadExpression, "comprehension"),
    "'a' if old else cost": (BadType, "no one kind"),
    "'a' if age else 'b'": (BadType, "conditions"),
    "log(state)": (BadType, "log needs numbers"),
    "log(age, 2)": (BadExpression, r"arguments here are \(x\)"),
    "minimum(*age)": (BadExpression, "arguments here are"),
    "{'a': 1}": (BadExpression, "dict"),
    "[1, 2]": (BadExpression, "list outside"),
    "age is None": (BadExpression, "isna"),
    "age @ cost": (BadExpression, "arithmetic here is"),
    "age << 2": (BadExpression, "arithmetic here is"),
    "age ^ 2": (BadExpression, "arithmetic here is"),
    "age > 1j": (BadExpression, "constants"),
    "age in cost": (BadExpression, "public list"),
    "age in 5": (BadExpression, "public list"),
    "age.clip(*[1])": (BadExpression, "arguments out"),
    "age.clip(1, 2, 3)": (BadExpression, r"arguments here are \(lower, upper\)"),
    "age.between(1)": (BadExpression, "inclusive"),
    "when.dt.normalize": (BadExpression, "normalize"),
    "when.dt.year()": (BadExpression, "day_name"),
    "age > @nobody": (BadExpression, "no variable"),
    "age > @obj.attr": (BadExpression, "attr"),
    "nope > 1": (UnknownColumn, "@nope"),
    "agee > 1": (UnknownColumn, "Did you mean 'age'"),
    "`agee` > 1": (UnknownColumn, "Did you mean 'age'"),
    "age > 'a'": (BadType, "never equal"),
    "age == None": (BadValue, "isna"),
    "age and old": (BadType, "condition"),
    "state * 'a' == 'b'": (BadType, "numbers"),
    "cost.fillna(age)": (BadType, "constant"),
    "state.str.cat()": (BadType, "rows of people"),
    "state.str.extract('a')": (BadValue, "extract"),
    "age.str.len() > 1": (BadType, "str"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_everything_else_is_refused_by_name(text: str) -> None:
    error, match = REFUSED[text]
    with pytest.raises(error, match=match):
        read(text, obj=object())


def test_the_message_shows_the_users_own_text() -> None:
    with pytest.raises(BadExpression, match=r"'`blood pressure`.mean\(\)'"):
        read("`blood pressure`.mean() > @x", x=3)


@pytest.mark.parametrize(
    "text",
    [
        "a" * (MAX_LENGTH + 1),
        "(" * 3000 + "age" + ")" * 3000,
        "not " * 2000 + "old",
        "~" * 5000 + "old",
        "-" * 5000 + "age",
        "age" + " + 1" * 2000,
        "age" + ".abs()" * 1500,
        "state" + ".str[0:1]" * 1000,
        "[" * 3000 + "]" * 3000,
        "age in " + "[" * 90 + "1" + "]" * 90,
        "age > " + "9" * 5000,
        "age ** 9 ** 9 ** 9 > 1" + " or old" * 10 + " or " + "(" * 500,
    ],
    ids=lambda t: f"{t[:12]}x{len(t)}",
)
def test_no_text_is_too_long_or_too_deep_to_be_refused(text: str) -> None:
    with pytest.raises(BadExpression):
        read(text)


def test_powers_of_constants_are_not_computed() -> None:
    assert read("9 ** 9 ** 9 ** 9 > age").expr.kind == "bool"


def test_stand_ins_never_meet_the_callers_names() -> None:
    columns = {
        "_0_": Column.of(0, "_0_", np.dtype("int64")),
        "a b": Column.of(1, "a b", np.dtype("int64")),
    }
    parsed = parse("`a b` > 1 and _0_ > 2", columns, {}.__getitem__)
    assert str(parsed.expr) == "(`a b` > 1) & (_0_ > 2)"


def test_a_text_must_be_a_text() -> None:
    wrong: Any = 3
    with pytest.raises(BadExpression, match="string"):
        read(wrong)
