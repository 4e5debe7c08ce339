"""Budgets, what a question may take of them, and which noise and which errors that comes to. Pure
functions of public facts."""

from dpframe._plans import choices, distincts, moments, order  # noqa: F401  (aggregates enter themselves)
