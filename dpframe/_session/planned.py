"""The place of an answer in a batch, which stands for the answer when the block has ended."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpframe._errors import SessionError
from dpframe._types import Array


class Planned:
    """Placeholder of an answer in a batch, which stands for the ``answer`` once the block has
    ended.

    From then on it computes, formats, indexes and shows itself as its answer does: ``place + 1``,
    ``place["CA"]``, ``float(place)``, ``place.dp``. Code that asks for a type of pandas takes
    ``place.answer``.
    """

    __pandas_priority__ = 10_000  # pandas leaves ``series + place`` to this class

    def __init__(self, question: str):
        self._question = question
        self._answers: list[Any] = []

    def _fill(self, answer: object) -> None:
        self._answers.append(answer)

    @property
    def answer(self) -> Any:
        """Answer of the question, once the block has ended: what its verb would have returned."""
        if not self._answers:
            raise SessionError(
                f"{self._question} is planned: its answer is there when the with block has ended. Compute with it after the "
                "block, where it is an answer: place + 1, float(place), place.answer."
            )
        return self._answers[0]

    def __repr__(self) -> str:
        return repr(self._answers[0]) if self._answers else f"planned: {self._question}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and not self.__dict__.get("_answers"):
            raise AttributeError(name)  # what copies, notebooks and pandas look for
        return getattr(self.answer, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(dir(self._answers[0]) if self._answers else ())]

    # What Python looks up in a class and not in an object ------------------------------------------------------------

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __len__(self) -> int:
        return len(self.answer)

    def __iter__(self) -> Iterator[object]:
        return iter(self.answer)

    def __getitem__(self, key: object) -> Any:
        return self.answer[key]

    def __contains__(self, key: object) -> bool:
        return key in self.answer

    def __bool__(self) -> bool:
        return bool(self.answer)

    def __int__(self) -> int:
        return int(self.answer)

    def __float__(self) -> float:
        return float(self.answer)

    def __index__(self) -> int:
        return operator.index(self.answer)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.answer, digits)

    def __trunc__(self) -> Any:
        return math.trunc(self.answer)

    def __floor__(self) -> Any:
        return math.floor(self.answer)

    def __ceil__(self) -> Any:
        return math.ceil(self.answer)

    def __abs__(self) -> Any:
        return abs(self.answer)

    def __neg__(self) -> Any:
        return -self.answer

    def __pos__(self) -> Any:
        return +self.answer

    def __invert__(self) -> Any:
        return ~self.answer

    def __format__(self, spec: str) -> str:
        return format(self.answer, spec) if self._answers or spec else repr(self)

    def __str__(self) -> str:
        return str(self._answers[0]) if self._answers else repr(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.answer, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: object, method: str, *inputs: object, **words: object) -> Any:
        return getattr(ufunc, method)(*map(read_planned, inputs), **words)

    # Operators: those of the answer, also with the places of other answers ------------------------------------------

    def __eq__(self, other: object) -> Any:
        return self.answer == read_planned(other)

    def __ne__(self, other: object) -> Any:
        return self.answer != read_planned(other)

    def __lt__(self, other: object) -> Any:
        return self.answer < read_planned(other)

    def __le__(self, other: object) -> Any:
        return self.answer <= read_planned(other)

    def __gt__(self, other: object) -> Any:
        return self.answer > read_planned(other)

    def __ge__(self, other: object) -> Any:
        return self.answer >= read_planned(other)

    def __add__(self, other: object) -> Any:
        return self.answer + read_planned(other)

    def __radd__(self, other: object) -> Any:
        return read_planned(other) + self.answer

    def __sub__(self, other: object) -> Any:
        return self.answer - read_planned(other)

    def __rsub__(self, other: object) -> Any:
        return read_planned(other) - self.answer

    def __mul__(self, other: object) -> Any:
        return self.answer * read_planned(other)

    def __rmul__(self, other: object) -> Any:
        return read_planned(other) * self.answer

    def __truediv__(self, other: object) -> Any:
        return self.answer / read_planned(other)

    def __rtruediv__(self, other: object) -> Any:
        return read_planned(other) / self.answer

    def __floordiv__(self, other: object) -> Any:
        return self.answer // read_planned(other)

    def __rfloordiv__(self, other: object) -> Any:
        return read_planned(other) // self.answer

    def __mod__(self, other: object) -> Any:
        return self.answer % read_planned(other)

    def __rmod__(self, other: object) -> Any:
        return read_planned(other) % self.answer

    def __pow__(self, other: object) -> Any:
        return self.answer ** read_planned(other)

    def __rpow__(self, other: object) -> Any:
        return read_planned(other) ** self.answer

    def __matmul__(self, other: object) -> Any:
        return self.answer @ read_planned(other)

    def __rmatmul__(self, other: object) -> Any:
        return read_planned(other) @ self.answer

    def __and__(self, other: object) -> Any:
        return self.answer & read_planned(other)

    def __rand__(self, other: object) -> Any:
        return read_planned(other) & self.answer

    def __or__(self, other: object) -> Any:
        return self.answer | read_planned(other)

    def __ror__(self, other: object) -> Any:
        return read_planned(other) | self.answer

    def __xor__(self, other: object) -> Any:
        return self.answer ^ read_planned(other)

    def __rxor__(self, other: object) -> Any:
        return read_planned(other) ^ self.answer


def read_planned(value: object) -> Any:
    """Return the answer of a place in a batch, and anything else as it is."""
    return value.answer if isinstance(value, Planned) else value
