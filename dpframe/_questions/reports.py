"""Reports of rows, each made from its own row alone: the question, and how answers are packed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe import _validate
from dpframe._errors import BadValue, Refused
from dpframe._expr import Expr
from dpframe._groups.keys import KeyBy, Keys, Word
from dpframe._groups.unit import Unit
from dpframe._plans.plan import Part, Plan
from dpframe._questions import entries as _rows
from dpframe._questions.question import AddNoise, Question
from dpframe._statistics.base import Grid
from dpframe._statistics.engine import Engine
from dpframe._types import Array, Raw
from dpframe._validate import Bounds
from dpframe.accounting._filter import Price
from dpframe.accounting.loss import PureDP
from dpframe.mechanisms._base import Form, pure
from dpframe.mechanisms.response import Response, points_for, worst_spread

Codes = NDArray[Any]
# The bits of the grid on which a number is exact before it is rounded at random.
BITS = 31


@dataclass(frozen=True)
class Randomize(Question):
    """The question for a report of each row.

    With people, each of them reports as often as a person may have rows.
    """

    identity: ClassVar[tuple[str, ...]] = ("reports", "expr", "keys", "other", "bounds", "where")

    expr: Expr
    keys: Keys | None
    # The repr of the label for all values that are not listed.
    other: str | None
    bounds: Bounds | None
    where: Expr | None = None
    verb: ClassVar[str] = "randomize"

    def __str__(self) -> str:
        if self.bounds is not None:
            return f"randomize({self.expr}, bounds=({self.bounds.lower:g}, {self.bounds.upper:g}))"
        return f"randomize({self.expr} over {self.values} values)"

    @property
    def values(self) -> int:
        """The number of values that a report may name, for categories."""
        return 0 if self.keys is None else len(self.keys) + (self.other is not None)

    def response(self, epsilon: Fraction) -> Response:
        """Return the randomized response for one report at this epsilon; a tiny epsilon is
        refused."""
        if epsilon < _validate.MIN_EPSILON:
            raise BadValue(
                "a report would have an epsilon below 2**-50. Use a larger epsilon=, or a smaller "
                "max_rows=."
            )
        return Response(epsilon, points_for(epsilon) if self.keys is None else self.values)

    def plan(
        self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]
    ) -> Plan:
        """Return the plan of one randomized report for each row. It is refused where the number of
        rows is private."""
        if not unit.replaces:
            raise Refused(
                "a report for each row shows how many rows there are, and in this session that is "
                "private "
                "(neighbors='add-remove'). If the number of people is public, say so when you "
                "open the session: "
                "open(..., neighbors='replace-one')."
            )
        if price.mechanism != "auto":
            raise BadValue(
                "randomize has its own mechanism (randomized response): leave mechanism= out."
            )
        epsilon = pure(price)
        rows = unit.reach(None)[0]
        mechanism = self.response(epsilon / rows)
        response: Any = mechanism
        part = Part("a report a row", response, 1, 1, 1.0)
        if self.bounds is None:
            alternatives = (
                "the other value"
                if mechanism.k == 2
                else f"one of the {mechanism.k - 1} other values"
            )
            why = f"true with probability {mechanism.truth:.4g}, else {alternatives}"
            # The interval is that of a share of reports, which is widest near a half. It covers
            # rows with values that are not listed.
            share = min(0.5, mechanism.truth)
            deviation = math.sqrt(share * (1 - share)) / mechanism.kept
        else:
            why = (
                f"rounded to {mechanism.k} points without bias, then a uniform one with "
                f"probability {mechanism.lies:.4g}"
            )
            deviation = math.sqrt(worst_spread(mechanism)) * (self.bounds.upper - self.bounds.lower)
        if unit.people:
            why += f"; each person has {rows} reports of epsilon {float(mechanism.epsilon):.4g}"
        estimate = "a frequency" if self.bounds is None else "the mean"
        expected = f"at most ± {1.96 * deviation:.4g} / sqrt(n) in {estimate} of n reports"
        if public_rows:
            expected = (
                f"at most ± {1.96 * deviation / math.sqrt(public_rows):.4g} in {estimate} of all "
                f"{public_rows} reports"
            )
        texts = tuple(map(str, declared))
        return Plan(
            str(self),
            unit.neighbors,
            PureDP(epsilon),
            Fraction(0),
            (part,),
            (),
            1,
            why,
            texts,
            expected,
        )

    def forms(self, plan: Plan, unit: Unit, size: int | None) -> tuple[Form, ...]:
        assert size is not None  # the plan has refused sessions where it is private
        response: Any = plan.parts[0].noise
        reports = size * unit.reach(None)[0]
        return Form((1, count_words(reports, response.k)), "i"), Form((1, 1), "i", reports)

    def run(self, data: Engine, plan: Plan, unit: Unit, noise: AddNoise) -> tuple[Array, ...]:
        """Return the randomized reports of all rows, packed into words, and their number."""
        response: Any = plan.parts[0].noise
        if self.keys is not None:
            entries, blank = _rows.find_places(data, KeyBy(self.expr, self.keys)), 0
            if self.other is not None:
                entries = np.where(entries == 0, response.k, entries.astype(np.int64))
                blank = response.k
        else:
            assert self.bounds is not None
            grid, blank = Grid.for_width(self.bounds, BITS), -1
            entries = _rows.find_steps(data, self.expr, grid)
        if unit.people:
            entries = _rows.take_rows_of_people(
                data, unit.people, unit.reach(None)[0], entries, blank
            )
        width = None if self.keys is not None else grid.width
        return pack_reports(noise(0, entries, width=width), response.k)


# Packing ------------------------------------------------------------------------------------------


def find_report_width(k: int) -> int:
    """Return the bits of a packed report: 1, 2, 4, 8 or 16."""
    return next(bits for bits in (1, 2, 4, 8, 16) if k <= 2**bits)


def pack_reports(codes: Codes, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return randomized reports packed into as few 64-bit words as possible, and their number. Each
    report is an integer below ``k``.

    For example, ten million reports of yes or no take 1.25 MB.
    """
    bits = find_report_width(k)
    if bits == 16:
        cells = codes.astype("<u2").view(np.uint8)
    elif bits == 8:
        cells = codes.astype(np.uint8)
    elif bits == 1:
        cells = np.packbits(codes.astype(np.bool_), bitorder="little")
    else:
        per = 8 // bits
        filled = np.zeros(-(-len(codes) // per) * per, dtype=np.uint8)
        filled[: len(codes)] = codes
        shifts = np.arange(per, dtype=np.uint8) * np.uint8(bits)
        cells = np.bitwise_or.reduce(filled.reshape(-1, per) << shifts, axis=1)
    words = np.zeros(-(-len(cells) // 8) * 8 or 8, dtype=np.uint8)
    words[: len(cells)] = cells
    return words.view("<i8").astype(np.int64).reshape(1, -1), np.array(
        [[len(codes)]], dtype=np.int64
    )


def count_words(size: int, k: int) -> int:
    """Return how many 64-bit words this number of reports needs, which is at least one."""
    return max(1, -(-size * find_report_width(k) // 64))


def unpack_reports(raw: Raw, k: int) -> Codes:
    """Return the reports that `pack_reports` packed: one integer below ``k`` for each row."""
    words, size = raw
    n, bits = int(size[0, 0]), find_report_width(k)
    cells = np.ascontiguousarray(words[0], dtype="<i8").view(np.uint8)
    if bits == 16:
        return cells.view("<u2")[:n]
    if bits == 8:
        return cells[:n]
    if bits == 1:
        return np.unpackbits(cells, count=n, bitorder="little")
    shifts = np.arange(8 // bits, dtype=np.uint8) * np.uint8(bits)
    codes: Codes = ((cells[:, None] >> shifts) & np.uint8(2**bits - 1)).reshape(-1)[:n]
    return codes
