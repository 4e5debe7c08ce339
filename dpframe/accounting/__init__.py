"""Losses, and the accountants that add them: a calculator without data.

>>> from dpframe.accounting import Gaussian, Laplace, epsilon
>>> spent = epsilon([(Gaussian(sigma=30), 10), Laplace(0.1)], delta=1e-6, accountant="pld")
>>> round(spent, 3)
0.503
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from importlib import import_module as _import
from pkgutil import iter_modules as _modules

import numpy as np

from dpframe import _validate
from dpframe._errors import BadType, BadValue
from dpframe.accounting._filter import ACCOUNTANTS, Filter, Limits
from dpframe.accounting._sums import PureSum
from dpframe.accounting._tight import Tight
from dpframe.accounting.loss import (
    ApproxDP,
    DiscreteGaussian,
    DiscreteLaplace,
    Events,
    Exponential,
    Gaussian,
    Laplace,
    Loss,
    PoissonGaussian,
    PureDP,
    from_json,
)

__all__ = [
    "ACCOUNTANTS",
    "ApproxDP",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "Laplace",
    "Loss",
    "PoissonGaussian",
    "PureDP",
    "compare",
    "epsilon",
    "from_json",
]


def __dir__() -> list[str]:
    return list(__all__)  # completion shows the public names alone


for _module in _modules(__path__):  # each puts its rules on the list
    _import(f"{__name__}.{_module.name}")


def make_filter(name: str, limits: Limits) -> Filter:
    """Return an accountant with nothing spent, for the rule of this name and a budget."""
    return ACCOUNTANTS[name](limits)


def named_rule(name: object, delta: Fraction) -> type[Filter]:
    """Return the accounting rule of this name, or the default one for a budget with this delta.

    ``name`` is None if the user named no rule.
    """
    if name is None:
        return Tight if delta else PureSum
    return ACCOUNTANTS[_validate.choice(name, "accountant", ACCOUNTANTS)]


def open_filter(epsilon: object, delta: object, accountant: object, reserve: object) -> Filter:
    """Check the arguments of a new budget, and return its accountant with nothing spent.

    ``accountant`` is the name of a rule, and ``reserve`` the part of delta for outright failures;
    None takes the defaults. A budget too small for anything to fit is refused.
    """
    epsilon_limit, delta_limit = _validate.epsilon(epsilon), _validate.delta(delta)
    kind = named_rule(accountant, delta_limit)
    if not delta_limit and kind.needs_delta:
        raise BadValue(
            f"accountant={kind.name!r} converts its losses with delta, so it needs delta > 0."
        )
    reserved = (
        delta_limit * kind.reserve_share if reserve is None else _validate.delta(reserve, "reserve")
    )
    if reserved and reserved >= delta_limit:
        raise BadValue(f"reserve must be below delta={delta}: the rest of delta converts losses.")
    limits = Limits(epsilon_limit, delta_limit, reserved)
    if delta_limit and limits.conversion < _validate.MIN_DELTA:
        raise BadValue(
            "reserve leaves less than 2**-900 of delta to convert losses. Use a smaller one."
        )
    rule = kind(limits)
    if not rule.share(1, rule.start()).epsilon:
        raise BadValue(
            f"epsilon={epsilon} with delta={delta} is too small for accountant={kind.name!r}: nothing would fit."
        )
    return rule


def as_events(events: Iterable[object]) -> Events:
    """Return events as pairs of a loss and a count, from a list of losses and of such pairs.

    A loss without a count counts once. Anything else is refused.
    """
    if isinstance(events, Loss):
        raise BadType("events are a list: [Gaussian(sigma=30), (Laplace(0.1), 10)].")
    pairs = []
    for event in events:
        loss, count = event if isinstance(event, tuple) and len(event) == 2 else (event, 1)
        if not isinstance(loss, Loss):
            raise BadType(
                f"an event is a loss such as Laplace(0.1), or (loss, count), not {event!r}."
            )
        pairs.append((loss, _validate.positive_int(count, "count")))
    return tuple(pairs)


@np.errstate(all="ignore")  # curves underflow where they say nothing, whatever the caller has set
def epsilon(events: Iterable[object], delta: float = 0, accountant: str = "pld") -> float:
    """Return the epsilon of a list of releases that was fixed in advance, at this delta. It is inf
    if no epsilon holds.

    ``events`` are losses, or pairs of a loss and a count. Formal guarantee: together they are
    (epsilon, delta)-private, by the theorem of the accountant, with all rounding towards a larger
    epsilon. It says nothing of a list that was chosen from earlier answers: that takes a session,
    whose accountant is a filter.

    >>> epsilon([(PureDP(0.1), 10)], accountant="pure")
    1.0
    """
    d = _validate.delta(delta)
    rule = ACCOUNTANTS[_validate.choice(accountant, "accountant", ACCOUNTANTS)]
    return rule.report(as_events(events), d)


@np.errstate(all="ignore")
def compare(events: Iterable[object], delta: float = 0) -> dict[str, float]:
    """Return the epsilon of a list of releases fixed in advance, by the name of each accountant.

    ``events`` are losses, or pairs of a loss and a count.
    """
    listed, d = as_events(events), _validate.delta(delta)
    return {name: rule.report(listed, Fraction(d)) for name, rule in ACCOUNTANTS.items()}
