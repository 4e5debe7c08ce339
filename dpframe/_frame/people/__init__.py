"""Verbs within a person: groups of each person's own rows, functions of them, and joins of two
tables of the same people."""
