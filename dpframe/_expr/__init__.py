"""Expressions: what a cell becomes, given the other cells of its own row, or the rows of its own
person, and nothing else.

An expression is a frozen tree. It knows its kind, whether it can be null, whether it is
integer-valued and how bounds travel through it, all from dtypes and constants: no method here ever
sees a value of the frame. The constructor functions (`compare`, `arithmetic`, `is_in`, ...) check
the kinds; engines evaluate what they return.

*Formal guarantee.* Every node is a function of one row, and `Within` one of the rows of one person.
A filter or a new column made of such nodes changes, when a person is added or removed, that
person's rows only.
"""

# ruff: noqa: F403  (a new node or constructor is entered where it is defined, and nowhere else)
from dpframe._expr._base import *
from dpframe._expr._build import *
from dpframe._expr._calendar import *
from dpframe._expr._choices import *
from dpframe._expr._kinds import *
from dpframe._expr._moments import *
from dpframe._expr._nodes import *
from dpframe._expr._operators import *
from dpframe._expr._patterns import *
from dpframe._expr._ranges import *
from dpframe._expr._within import *
from dpframe._expr.catalogue import *
