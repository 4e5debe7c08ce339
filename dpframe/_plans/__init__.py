"""The way from what is asked and a price to noise: statistics, mechanisms, expected errors. Pure functions of public facts."""

from dpframe._plans import moments, order, sums  # noqa: F401  (aggregates enter themselves)
