"""Budgets, the prices of questions, and the noise and the errors that follow from them.

All functions here are pure functions of public facts.
"""

# Each module registers the aggregates that it defines.
# Importing a module registers its aggregates.
from dpframe._plans import choices, counts, moments, order  # noqa: F401
