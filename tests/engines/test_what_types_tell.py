"""What is known of an expression before any cell is read (an interval, whole numbers, no nulls) holds of every value it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe import _expr as ex
from dpframe._expr import Column, Expr, constant
from tests.engines.entries import apply_example

Constant = ex.Constant
WIDE = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-100, 100),
    st.integers(-20, 20).map(float),
    st.sampled_from([0.0, 0.5, 1.0, -1.0, 1e-300, 1e150, 2.0**53, 2.0**63]),
).map(lambda v: v + 0.0)
TEXTS = st.sampled_from(["a", "b", "Bc", "", None])


@st.composite
def columns(draw: st.DrawFn) -> tuple[pd.DataFrame, dict[str, tuple[float, float]]]:
    """A frame, and bounds that hold its numbers; of some columns there may be none."""
    low, high = sorted((draw(WIDE), draw(WIDE)))
    n = draw(st.integers(1, 5))

    def cells(strategy: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(strategy, min_size=n, max_size=n))

    within = st.one_of(st.sampled_from([low, high]), st.floats(low, high).map(lambda v: v + 0.0))
    frame = pd.DataFrame(
        {
            "x": pd.Series(cells(st.one_of(within, st.just(float("nan")))), dtype="float64"),
            "i": pd.Series(cells(st.integers(-9, 9)), dtype="int64"),
            "m": pd.Series(
                cells(st.one_of(st.integers(-(2**60), 2**60), st.none())), dtype="Int64"
            ),
            "u": pd.Series(cells(st.integers(2**63, 2**64 - 1)), dtype="uint64"),
            "b": cells(st.booleans()),
            "s": pd.Series(cells(TEXTS), dtype="str"),
            "t": pd.Series(
                cells(st.sampled_from(["2023-02-28", "2024-12-31 23:59:59.999", None])),
                dtype="M8[ms]",
            ),
        }
    )
    known = {"x": (low, high), "i": (-9.0, 9.0), "m": (-(2.0**60), 2.0**60)}
    kept = draw(st.sets(st.sampled_from(sorted(known))))
    return frame, {name: pair for name, pair in known.items() if name in kept | {"x"}}


class Maker:
    """Expressions of every kind, with operands of any kind that fits."""

    def __init__(self, draw: Any, column: dict[str, Column]):
        self._draw, self._column, self._depth = draw, column, 0

    def pick(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def column(self, names: str = "ximub") -> Column:
        return self._column[self.pick(*names)]

    def constant(self) -> Any:
        return self._draw(st.one_of(st.integers(-9, 9), WIDE, st.just(2**70)))

    def number(self) -> Expr:
        """An operand of arithmetic."""
        if self._depth == 3 or self.pick(True, False):
            return self.pick(self.column(), self.column(), constant(self.constant()))
        self._depth += 1
        no_numbers = {ex.Cut, ex.IsIn, ex.Elapsed, ex.Call}
        kinds = [kind for kind in MADE if kind not in no_numbers]
        make = self.pick(*kinds, ex.Call)
        made = self.called(("number",)) if make is ex.Call else MADE[make](self)
        self._depth -= 1
        return made

    def called(self, kinds: tuple[str, ...] = ()) -> Expr:
        """A function of the catalogue, by one of its examples; of some kinds of result, or of any."""
        op = self.pick(*(op for op in ex.OPS.values() if not kinds or op.kind in kinds))
        example = self.pick(*op.examples)
        if op.of[0] == "number":
            more = [self.operand()] if len(example) == 3 else []
            return ex.call_function(op.name, self.number(), *more)
        x = {"text": "s", "other": "s", "time": "t"}.get(op.of[0])
        operand: Expr = self.elapsed() if x is None else self._column[x]
        if op.name == "dt.tz_convert" or example[1:-1] == (None,):
            operand = ex.time_part(operand, "tz_localize", "Europe/Berlin")
        return apply_example(op, example, operand)

    def operand(self) -> Expr:
        """A second operand: often a small number, by which quotients and powers have an interval."""
        return self.number() if self.pick(True, False) else constant(self.pick(-7, 0.5, 2, 3))

    def truth(self) -> Expr:
        return self.pick(
            self._column["b"], ex.compare("<", self.column("xim"), constant(self.constant()))
        )

    def clip(self) -> Expr:
        ends = sorted((self.constant(), self.constant()))
        return ex.clip(self.column("ximu"), *(self.pick(end, None) for end in ends))

    def elapsed(self) -> Expr:
        return ex.operate("-", self._column["t"], constant(pd.Timestamp("2024-02-29")))

    def chosen(self) -> Expr:
        side = self.pick(
            constant(self.constant()), constant(None, null=True), self.number(), constant(True)
        )
        return ex.choose(self.truth(), *self.pick((self.number(), side), (side, self.number())))

    def within(self) -> Expr:
        """A number of the rows of each person, of whom ``i`` tells them apart: five rows at most, which all have."""
        how = self.pick(*ex.WITHIN)
        args = {
            **dict.fromkeys(("var", "std", "sem"), (self.pick(0, 1),)),
            "duplicated": (self.pick("first", "last", False),),
            "quantile": (self.pick(0.0, 0.3, 1.0),),
            "nth": (self.pick(-2, 0, 1),),
            "shift": (self.pick(-1, 1, 2),),
            "cumcount": (self.pick(True, False),),
            "rank": (
                self.pick("average", "min", "max", "first", "dense"),
                self.pick(True, False),
                self.pick(True, False),
            ),
        }
        x = self.number() if ex.WITHIN[how].of else None
        where, by = self.pick(None, self.truth()), self.pick((), (self._column["s"],))
        order = self.pick((), (ex.Key(self._column["x"], self.pick(True, False)),))
        return ex.within(
            how, x, (self._column["i"],), where, order, args.get(how, ()), self.pick(5, None), by
        )

    def mapped(self) -> Expr:
        value = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.just(-(2**70)), WIDE)
        values = self._draw(st.lists(value, min_size=2, max_size=2))
        table = ex.map_dict(self._column["s"], dict(zip("ab", values, strict=True)))
        return (
            table
            if table.kind in ("number", "bool")
            else ex.map_dict(self._column["s"], {"a": 3, "b": None})
        )


MADE: dict[type[Expr], Callable[[Maker], Expr]] = {
    Column: lambda make: make.column(),
    Constant: lambda make: constant(make.constant()),
    ex.Arithmetic: lambda make: ex.arithmetic(
        make.pick(*ex.ARITHMETIC), make.number(), make.operand()
    ),
    ex.Unary: lambda make: make.pick(ex.negate, ex.absolute)(make.number()),
    ex.Round: lambda make: ex.round_to(make.number(), make.pick(-300, -3, -1, 0, 1, 2, 20, 300)),
    ex.Compare: lambda make: ex.compare(
        make.pick("==", "!=", "<", ">="), make.number(), make.number()
    ),
    ex.And: lambda make: ex.logical_and(make.truth(), make.truth()),
    ex.Or: lambda make: ex.logical_or(make.truth(), make.truth()),
    ex.Not: lambda make: ex.logical_not(make.truth()),
    ex.IsIn: lambda make: ex.is_in(make.column("xim"), [make.constant(), None]),
    ex.IsNull: lambda make: ex.is_null(make.column("ximubst")),
    ex.Fill: lambda make: ex.fill(make.column("xm"), make.constant()),
    ex.Clip: lambda make: make.clip(),
    ex.Cast: lambda make: ex.cast(make.number(), make.pick("float", "int", "bool")),
    ex.Cut: lambda make: ex.cut(make.number(), [0, 1, 2]),
    ex.MapDict: lambda make: make.mapped(),
    ex.Elapsed: lambda make: make.elapsed(),
    ex.Ratio: lambda make: ex.operate(
        make.pick("/", "//"), make.elapsed(), constant(pd.Timedelta("7h"))
    ),
    ex.If: lambda make: make.chosen(),
    ex.Within: lambda make: make.within(),
    ex.Call: lambda make: make.called(),
}


def test_every_kind_of_expression_is_made_here() -> None:
    kinds = {
        kind for kind in vars(ex).values() if isinstance(kind, type) and issubclass(kind, Expr)
    }
    assert set(MADE) == kinds - {Expr}


def test_bounds_of_a_distance_hold_zero_between_values_of_both_signs(framed: Any) -> None:
    f = framed(pd.DataFrame({"x": [-3.0, 0.0, 2.0]}))
    e = ex.absolute(f["x"])
    assert e.bounds({f["x"].position: (-3.0, 2.0)}) == (0.0, 3.0)
    assert sorted(f.cells(e)) == [0.0, 2.0, 3.0]


@pytest.mark.slow(but=14)
@pytest.mark.parametrize("kind", MADE, ids=lambda kind: kind.__name__)
@settings(max_examples=100, deadline=None)
@given(columns(), st.data())
def test_what_is_known_holds_of_every_value(
    framed: Any, kind: type[Expr], drawn: Any, data: Any
) -> None:
    frame, declared = drawn
    f = framed(frame)
    e = MADE[kind](Maker(data.draw, f.columns))
    cells = f.cells(e)
    values = [c for c in cells if c is not None]
    bounds = e.bounds({f[name].position: pair for name, pair in declared.items()})
    if bounds is not None:
        assert np.isfinite(bounds).all()
        assert all(bounds[0] <= v <= bounds[1] for v in values), (str(e), bounds, values)
    if not e.nullable:
        assert None not in cells, (str(e), cells)
    if e.integral:
        assert all(float(v).is_integer() for v in values if np.isfinite(v)), (str(e), values)
    if e.finite:
        assert np.isfinite(cells).all(), (str(e), cells)
