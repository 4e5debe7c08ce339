"""The catalogue of the functions of a row: each is one entry, and all else is computed from it."""

# ruff: noqa: F403  (an entry is made where it stands, and nowhere else)
from dpframe._expr.catalogue.numbers import *
from dpframe._expr.catalogue.ops import *
from dpframe._expr.catalogue.texts import *
from dpframe._expr.catalogue.times import *
