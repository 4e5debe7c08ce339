"""What may leave the door: how many arrays, of which shape and kind, from public facts alone. A net, checked at every release.

Shapes are as public as a plan: a number of reports that followed cells would tell two neighbours apart whatever the noise. So a
question declares what it returns before it reads, and what is anything else does not leave (docs/guarantees/session.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dpframe._plans.plan import Part
from dpframe._statistics.base import Statistic
from dpframe.mechanisms._base import Mechanism


class Form(NamedTuple):
    """Of one array: its lengths, of which None is an answer by itself, as that of a list of found keys; what it holds, where "i"
    are 64-bit integers, "O" Python's and "U" texts, of any length; and, of a number that is public, the number."""

    shape: tuple[int | None, ...]
    kind: str
    public: int | None = None

    def fits(self, array: Any) -> bool:
        """Whether an array is what was declared."""
        if not isinstance(array, np.ndarray) or array.ndim != len(self.shape):
            return False
        same = all(n is None or n == length for n, length in zip(self.shape, array.shape, strict=True))
        if self.kind == "U":
            right = array.dtype == object and all(type(cell) is str for cell in array.flat)
        else:
            right = array.dtype == (np.int64 if self.kind == "i" else object)
        return same and right and (self.public is None or array.ravel().tolist() == [self.public])


def check(forms: Sequence[Form], raw: Sequence[Any]) -> None:
    """Raise where something else was made than was declared: behind the door, so that nothing but that it failed comes out.

    All lengths that are an answer are the same one: as many counts as keys.
    """
    right = len(forms) == len(raw) and all(form.fits(array) for form, array in zip(forms, raw, strict=True))
    if right:
        pairs = [
            pair for form, a in zip(forms, raw, strict=True) for pair in zip(form.shape, a.shape, strict=True)
        ]
        right = len({made for declared, made in pairs if declared is None}) <= 1
    if not right:
        made = [(getattr(a, "shape", None), getattr(a, "dtype", type(a))) for a in raw]
        raise AssertionError(f"declared was {[tuple(form) for form in forms]}, and made was {made}")


def with_noise(noise: Mechanism, *shape: int | None) -> Form:
    """What a mechanism makes of integers of such a shape, by its parameters alone: Python's where noise is wider than 63 bits."""
    return Form(*noise.form(shape))


def of_part(part: Part, statistic: Statistic, groups: int | None) -> Form:
    """The noisy vector of one statistic of a question with so many groups, or the places that were chosen in it.

    Without a number of groups they are found with their answers, and how many there are is a part of these.
    """
    shape = (statistic.shape(1)[0], None) if groups is None else statistic.shape(groups)
    return with_noise(part.noise, *shape)
