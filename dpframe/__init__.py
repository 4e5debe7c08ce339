"""dpframe: differential privacy for pandas. ``import dpframe`` registers ``.dp`` on DataFrames and Series.

>>> import pandas as pd
>>> import dpframe
>>> df = pd.DataFrame({"age": [30, 41, 55]})
>>> p = df.dp.open(epsilon=1, bounds={"age": (0, 110)})
>>> answer = df.dp.mean("age")
>>> 0 <= answer <= 110
True
"""

from dpframe._accessor import private, register
from dpframe._errors import (
    BadExpression,
    BadType,
    BadValue,
    BudgetError,
    BudgetExceeded,
    DPError,
    LineageError,
    MissingBounds,
    MissingKeys,
    NoSession,
    NotOffered,
    Refused,
    SessionError,
    UnknownColumn,
)
from dpframe._plan import Plan
from dpframe._private import PrivateFrame
from dpframe._release import Estimate

__all__ = [
    "BadExpression",
    "BadType",
    "BadValue",
    "BudgetError",
    "BudgetExceeded",
    "DPError",
    "Estimate",
    "LineageError",
    "MissingBounds",
    "MissingKeys",
    "NoSession",
    "NotOffered",
    "Plan",
    "PrivateFrame",
    "Refused",
    "SessionError",
    "UnknownColumn",
    "private",
]

__version__ = "0.1.0"

register()
