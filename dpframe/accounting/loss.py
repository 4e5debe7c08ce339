"""All kinds of losses by name, and their records. Kinds are never removed or redefined: ledgers
keep them for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from dpframe import _validate
from dpframe._errors import BadType, BadValue
from dpframe.accounting._curves import DiscreteLaplace, Exponential, Laplace, PoissonGaussian
from dpframe.accounting._pairs import (
    ZERO,
    ApproxDP,
    Curve,
    DiscreteGaussian,
    FailingGaussian,
    Floats,
    Gaussian,
    Loss,
    PureDP,
)

__all__ = [
    "KINDS",
    "ZERO",
    "ApproxDP",
    "Curve",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Events",
    "Exponential",
    "FailingGaussian",
    "Floats",
    "Gaussian",
    "Laplace",
    "Loss",
    "PoissonGaussian",
    "PureDP",
    "from_json",
    "loss_from_json",
]

KINDS: dict[str, Callable[..., Loss]] = {
    c.kind: c
    for c in (
        PureDP,
        Laplace,
        DiscreteLaplace,
        Exponential,
        ApproxDP,
        Gaussian,
        DiscreteGaussian,
        FailingGaussian,
        PoissonGaussian,
    )
}

Events = tuple[tuple[Loss, int], ...]


def loss_from_json(data: Mapping[str, object]) -> Loss:
    """Return the privacy loss that a record describes, as `Loss.to_json` wrote it.

    Exact numbers may be text. An unknown kind or unreadable numbers are refused.
    """
    fields = {k: v for k, v in data.items() if k not in ("type", "count")}
    make = KINDS.get(str(data.get("type")))
    if make is None:
        raise BadValue(f"unknown kind of event {data.get('type')!r}. Known are {', '.join(KINDS)}.")
    try:
        return make(**{k: _exact(v) for k, v in fields.items()})
    except (TypeError, ValueError, ZeroDivisionError) as problem:
        raise BadValue(f"an event of kind {data['type']!r} is not readable: {problem}") from None


def _exact(value: object) -> Any:
    if isinstance(value, list):
        return [_exact(v) for v in value]
    return Fraction(value) if isinstance(value, str) else value


def from_json(events: Iterable[Mapping[str, object]]) -> list[tuple[Loss, int]]:
    """Return events from JSON records, as pairs of a loss and a count: ``{"type": "gaussian",
    "sigma": 30, "count": 10}``.

    >>> from_json([{"type": "pure_dp", "epsilon": 0.5, "count": 3}])
    [(PureDP(epsilon=Fraction(1, 2)), 3)]
    """
    if isinstance(events, str | Mapping):
        raise BadType("events are a list of dicts; of a text take json.loads(text) first.")
    return [(loss_from_json(e), _validate.positive_int(e.get("count", 1), "count")) for e in events]
