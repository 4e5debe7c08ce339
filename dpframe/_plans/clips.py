"""Clips: bounds of a question that cut more than the declarations do, and that its answer names.

Declared bounds are the owner's word on what the values can be, so a clip to them says nothing new.
A question may have narrower bounds. Those of a number of a person, such as the sum of that person's
rows, may follow from ``max_rows``: people with more rows are cut. Both are told beside the answer.

*Formal guarantee.* A clip is a function of the question and of declarations, never of a cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dpframe._expr import WITHIN, Expr, Interval, find_limited_by
from dpframe._plans.aggregates import AGGREGATES, Output
from dpframe._validate import Bounds

# A clip as JSON, with its fields in order.
ClipRecord = tuple[list[str], float, float, str, bool]


class NarrowBounds(NamedTuple):
    """Bounds that cut the values of some outputs.

    ``outputs`` are the names of these outputs, or none where all of them are cut alike. ``noun``
    is what ``max_rows`` cuts: "sizes" or "counts". It is empty for values between two bounds.
    """

    outputs: tuple[str, ...]
    lower: float
    upper: float
    noun: str = ""
    seconds: bool = False  # whether the bounds are in seconds, of durations or times

    def describe(self) -> str:
        """Return the words about this clip beside an answer: "sizes cut at 12 rows a person"."""
        of = f"{', '.join(self.outputs)}: " if self.outputs else ""
        if self.noun:
            rows = f"{self.upper:g} row{'s' * (self.upper != 1)}" if self.noun == "sizes" else ""
            return f"{of}{self.noun} cut at {rows or f'{self.upper:g}'} a person"
        if self.seconds:
            return f"{of}values clipped to narrower bounds than declared"
        return f"{of}values clipped to {self.lower:,.10g} to {self.upper:,.10g}"

    def to_json(self) -> list[object]:
        """Return the clip as a JSON value, for the record of a plan."""
        return [list(self.outputs), self.lower, self.upper, self.noun, self.seconds]

    @classmethod
    def from_json(cls, record: ClipRecord) -> NarrowBounds:
        """Return the clip that `to_json` has recorded."""
        outputs, lower, upper, noun, seconds = record
        return cls(tuple(outputs), lower, upper, noun, seconds)


def find_clips(
    outputs: Iterable[Output],
    declared: Mapping[int, tuple[float, float]],
    seconds: Mapping[Expr, Interval],
    rows: int | None,
) -> tuple[NarrowBounds, ...]:
    """Return the clips that the answer of a question has to name.

    ``declared`` has the declared bounds of columns by position, and ``seconds`` those of durations
    and times. ``rows`` is the ``max_rows`` of the session.
    """
    named: dict[NarrowBounds, list[str]] = {}
    bounded = 0
    for out in outputs:
        if AGGREGATES[out.aggregate].selects:
            continue
        for expr, pair in out.clipped:
            bounded += 1
            known = seconds.get(expr) if out.duration else expr.bounds(declared)
            clip = _find_clip(expr, pair, known, rows, out.duration)
            if clip is not None:
                named.setdefault(clip, []).append(str(out.name))
    if len(named) == 1 and sum(map(len, named.values())) == bounded:
        return tuple(named)  # the same clip of all outputs needs no names
    return tuple(
        NarrowBounds(tuple(dict.fromkeys(names)), clip.lower, clip.upper, clip.noun, clip.seconds)
        for clip, names in named.items()
    )


def _find_clip(
    expr: Expr, pair: Bounds, known: Interval, rows: int | None, seconds: bool
) -> NarrowBounds | None:
    """Return the clip of one column of an output; None where its bounds cut nothing that may be.

    ``known`` are the bounds that follow from the declarations, ``max_rows`` among them.
    """
    limited = find_limited_by(expr, rows)
    if limited is None:
        cuts = known is not None and (pair.lower > known[0] or pair.upper < known[1])
        return NarrowBounds((), pair.lower, pair.upper, seconds=seconds) if cuts else None
    counts = limited is expr and pair.lower == 0 and pair.upper == rows
    noun = ""
    if counts and WITHIN[limited.how].integral is True:
        noun = "sizes" if limited.how == "size" else "counts"
    return NarrowBounds((), pair.lower, pair.upper, noun, seconds)
