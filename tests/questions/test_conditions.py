"""Normal forms of conditions: equal codes mean equal rows, whatever the cells are."""

import random
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from dpframe._expr._parse import parse
from dpframe._groups.unit import Unit
from dpframe._questions.conditions import code_of_condition
from dpframe._session.data import leaves_of
from dpframe.engines import engine_for

CELLS = {
    "n": pd.array([0, 1, 5, -5, 2**53, 2**53 + 1, -(2**63), None, 7, 6], dtype="Int64"),
    "x": [0.0, -0.0, 5.0, np.nan, np.inf, -np.inf, 1e-310, 5.5, 2.0**53, -5.0],
    "y": [5.0, np.nan, 0.0, np.nan, np.inf, 1.0, 2.0, 5.5, -0.0, 6.0],
    "s": ["a", "b", None, "", "A", "a", "5", "é", "b", "a"],
    "w": [1, 2, 3, 0, -1, 5, 6, 7, 8, 9],
    "f": pd.array(
        [True, False, None, True, False, None, True, True, False, False], dtype="boolean"
    ),
}
ATOMS = [
    *[
        f"{a} {op} {b}"
        for op in ("<", "<=", "==", "!=", ">", ">=")
        for a, b in (("n", "5"), ("x", "y"))
    ],
    *[
        f"{a} {op} {b}"
        for op in ("<", ">=", "==")
        for a, b in (("5.0", "n"), ("y", "x"), ("x", "5"), ("5.0", "x"))
    ],
    *["w.notna()", "x.notna()", "w.isna()"],
    *["n == 9007199254740993", "n == 9007199254740993.0", "x > 0", "x > -0.0", "0.0 < x"],
    *[
        "s == 'a'",
        "s in ['a', 'b']",
        "s in ['b', 'a', 'a']",
        "f",
        "not f",
        "not not f",
        "n in [5, 1]",
        "n in [1, 5]",
    ],
]


def make_conditions(seed, number):
    draw = random.Random(seed)
    texts = list(ATOMS)
    while len(texts) < number:
        one, other = draw.choice(texts[-200:]), draw.choice(ATOMS)
        kind = draw.choice(["and", "or", "not", "turned and", "turned or"])
        if kind == "not":
            texts.append(f"not ({one})")
        else:
            first, second = (other, one) if kind.startswith("turned") else (one, other)
            texts.append(f"({first}) {kind.split()[-1]} ({second})")
    return texts


def read_condition(text, leaves):
    return parse(text, leaves, None).expr


@pytest.mark.parametrize("seed", range(4))
def test_conditions_of_one_code_hold_in_the_same_rows(seed):
    frame = pd.DataFrame(CELLS)
    leaves = leaves_of(frame.columns, list(frame.dtypes))
    engine = engine_for(frame, b"12345678")
    rows = {}
    for text in make_conditions(seed, 700):
        condition = read_condition(text, leaves)
        piece = next(iter(engine.slices((), condition, Unit())))
        mask = np.ones(len(frame), dtype=bool) if piece.mask is None else piece.mask
        rows.setdefault(code_of_condition(condition), []).append((text, mask.tolist()))
    several = [group for group in rows.values() if len({text for text, _ in group}) > 1]
    assert len(several) > 20
    for group in several:
        for (one, first), (other, second) in pairwise(group):
            assert first == second, (one, other)


SAME = [
    ("x > 5 and s == 'a'", "s == 'a' and 5.0 < x"),
    ("x > 5 and (s == 'a' and f)", "(f and x > 5) and s == 'a'"),
    ("x > 5 or f", "f or x > 5 or f"),
    ("not (not f)", "f"),
    ("x < y", "y > x"),
    ("n == 5", "n == 5.0"),
    ("s in ['a', 'b']", "s in ['b', 'a']"),
    ("w.notna() and x > 5", "x > 5"),
]
OTHER = [
    ("n == 9007199254740993", "n == 9007199254740993.0"),
    ("x > 5", "x >= 5"),
    ("x > 5", "not (x <= 5)"),  # a null is in the second
    ("x > 5 and f", "x > 5 or f"),
    ("x < y", "x > y"),
    ("x < y", "y < x"),
    ("x.notna() and f", "f"),
    ("w.isna() and x > 5", "x > 5"),
    ("s == '5'", "n == 5"),
    ("x != 5", "not (x > 5)"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_conditions_in_other_words_have_one_code(one, other):
    frame = pd.DataFrame(CELLS)
    leaves = leaves_of(frame.columns, list(frame.dtypes))
    assert code_of_condition(read_condition(one, leaves)) == code_of_condition(
        read_condition(other, leaves)
    )


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_conditions_that_differ_have_other_codes(one, other):
    frame = pd.DataFrame(CELLS)
    leaves = leaves_of(frame.columns, list(frame.dtypes))
    assert code_of_condition(read_condition(one, leaves)) != code_of_condition(
        read_condition(other, leaves)
    )
