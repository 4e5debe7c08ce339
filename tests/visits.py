"""What is declared of the six visits of the fixture ``df``, and what a session has spent."""

from __future__ import annotations

BOUNDS = {"age": (0, 110), "cost": (0, 1000)}
KEYS = {"state": ["CA", "NY"]}


def used(p):
    """What the plain sum of a session has come to, as an exact fraction."""
    return p.budget.rule.pure_spent(p.budget.state)
