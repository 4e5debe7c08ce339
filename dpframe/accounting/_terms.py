"""The words that a budget is opened with, checked: limits, accountant, population."""

from __future__ import annotations

from fractions import Fraction
from uuid import uuid4

from dpframe import _validate
from dpframe._errors import BadType, BadValue
from dpframe.accounting import ACCOUNTANTS, make_filter
from dpframe.accounting._base import Limits, halved


def rule_for(delta: Fraction) -> str:
    """The accountant where nobody named one."""
    return "tight" if delta else "pure"


def limits_of(epsilon: object, delta: object, accountant: object, reserve: object) -> Limits:
    e, d = _validate.epsilon(epsilon), _validate.delta(delta)
    name = _validate.choice(rule_for(d) if accountant is None else accountant, "accountant", ACCOUNTANTS)
    if not d and name not in ("pure", "tight"):
        raise BadValue(f"accountant={name!r} converts its losses with delta, so it needs delta > 0.")
    kept = halved(name, d) if reserve is None else _validate.delta(reserve, "reserve")
    if kept and kept >= d:
        raise BadValue(f"reserve must be below delta={delta}: the rest of delta converts losses.")
    limits = Limits(e, d, kept)
    if d and limits.conversion < _validate.MIN_DELTA:
        raise BadValue("reserve leaves less than 2**-900 of delta to convert losses. Use a smaller one.")
    rule = make_filter(name, limits)
    if not rule.share(1, rule.start()).epsilon:
        raise BadValue(
            f"epsilon={epsilon} with delta={delta} is too small for accountant={name!r}: nothing would fit."
        )
    return limits


def named_population(population: object, ledger: object) -> str:
    if population is None:
        if ledger is not None:
            check_population(population)
        return f"unnamed-{uuid4().hex}"
    return check_population(population)


def check_population(population: object) -> str:
    if not isinstance(population, str) or not population.strip():
        raise BadType("population= must be a name such as 'patients-2026', and a ledger file needs one.")
    if population != population.encode("utf-8", "ignore").decode():
        raise BadValue("population= must be valid Unicode.")
    return population
