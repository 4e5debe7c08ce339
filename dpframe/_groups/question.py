"""Questions whose answers are no sums of integers: keys to be found, rows to be randomized, a model to be fitted.

They go through the same door as every other question: a plan with a price, a debit, and only then the data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from dpframe._expr import Expr
from dpframe._groups.keys import By, Output, Word
from dpframe._groups.unit import Unit
from dpframe.accounting._filter import Price

if TYPE_CHECKING:
    from dpframe._plans.forms import Form
    from dpframe._plans.plan import Plan


class Task(ABC):
    """A question with a mechanism of its own. Kinds are frozen dataclasses: equal questions are equal, and hash alike."""

    outputs: ClassVar[tuple[Output, ...]] = ()
    by: ClassVar[tuple[By, ...]] = ()
    groups: ClassVar[int] = 1
    verb: ClassVar[str] = "a question"  # what an error calls it

    if TYPE_CHECKING:  # a field of each kind

        @property
        def where(self) -> Expr | None: ...

    @abstractmethod
    def to_json(self) -> object:
        """All that makes it the question that it is; no data."""

    @abstractmethod
    def __str__(self) -> str:
        """The question as a plan shows it."""

    @abstractmethod
    def plan(self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]) -> Plan:
        """Everything that is known before the data is read: ``Plan(..., cells=(), told="what error to expect")``."""

    @abstractmethod
    def forms(self, plan: Plan, unit: Unit, size: int | None) -> tuple[Form, ...]:
        """What `run` returns, from public facts alone, of which ``size`` is one: the number of people, where it is public."""

    @abstractmethod
    def run(self, engine: Any, plan: Plan, unit: Unit) -> tuple[NDArray[Any], ...]:
        """Read the data and return what may leave, as arrays of whole numbers or of text. Called at the door alone."""
