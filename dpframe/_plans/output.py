"""What a question measures or chooses by, in the words of its plan: frozen, hashable, printable as JSON."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from dpframe._encoding import SHOWN
from dpframe._expr import Expr
from dpframe._groups.keys import By
from dpframe._validate import Bounds


@dataclass(frozen=True, slots=True)
class Output:
    """One number a group: an aggregate of an expression, with the public bounds it is clipped to.

    Of a selection: a candidate, or all of them; ``rounds`` is how many are chosen, and ``moves`` what its owner says
    that one row moves a utility.
    """

    name: Hashable
    aggregate: str
    expr: Expr | None = None
    bounds: Bounds | None = None
    ddof: int = 1
    rounds: int = 1
    moves: float | None = None
    other: Expr | None = None  # the second column of a covariance
    other_bounds: Bounds | None = None
    level: Fraction | None = None  # of a quantile
    resolution: float | None = None  # of a quantile: how far apart its possible answers may be
    said: str = field(default="", compare=False, metadata=SHOWN)  # of a utility: how it was written

    @property
    def clipped(self) -> tuple[tuple[Expr, Bounds], ...]:
        """The expressions it reads between bounds."""
        both = (self.expr, self.bounds), (self.other, self.other_bounds)
        return tuple((expr, pair) for expr, pair in both if expr is not None and pair is not None)

    def to_json(self) -> object:
        record: dict[str, Any] = {}
        if self.other is not None and self.other_bounds is not None:
            record = {"other": self.other.to_json(), "other_bounds": [repr(b) for b in self.other_bounds]}
        record |= {
            "name": str(self.name),
            "aggregate": self.aggregate,
            "expr": self.expr.to_json() if self.expr else None,
            "ddof": self.ddof,
            "bounds": [repr(b) for b in self.bounds] if self.bounds else None,
        }
        # Only where they say something: ledgers know other questions by the record as it always was.
        if self.rounds != 1:
            record["rounds"] = self.rounds
        if self.moves is not None:
            record["moves"] = repr(self.moves)
        if self.level is not None:
            record |= {"level": str(self.level), "resolution": repr(self.resolution)}
        return record

    def __str__(self) -> str:
        if self.other is not None:
            columns = [f"{e}, bounds=({b.lower:g}, {b.upper:g})" for e, b in self.clipped]
            return f"{self.aggregate}({'; '.join(columns)})"
        inner = str(self.expr) if self.expr is not None else ""
        clip = f", bounds=({self.bounds.lower:g}, {self.bounds.upper:g})" if self.bounds else ""
        if self.level is not None:
            inner += f", {float(self.level):.6g}"
        verb = "quantile" if self.aggregate == "tree" else self.aggregate
        rounds = f"{self.rounds}" if self.rounds != 1 else ""
        return f"{verb}({inner}{clip}{rounds})"


class Outputs(Protocol):
    """A question as the planner sees it: outputs of some rows, in groups."""

    @property
    def outputs(self) -> tuple[Output, ...]: ...
    @property
    def by(self) -> tuple[By, ...]: ...
    @property
    def groups(self) -> int: ...
