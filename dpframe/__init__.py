"""dpframe: differential privacy for pandas. ``import dpframe`` registers ``.dp`` on DataFrames and Series.

>>> import pandas as pd
>>> import dpframe
>>> df = pd.DataFrame({"age": [30, 41, 55]})
>>> p = df.dp.open(epsilon=1, bounds={"age": (0, 110)})
>>> answer = df.dp.mean("age")
>>> 0 <= answer <= 110
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from dpframe._accessor import private
    from dpframe._errors import (
        BadExpression,
        BadType,
        BadValue,
        BudgetError,
        BudgetExceeded,
        DataError,
        DPError,
        LedgerError,
        LineageError,
        MissingBounds,
        MissingKeys,
        NoSession,
        NotOffered,
        PrivacyWarning,
        Refused,
        SessionError,
        UnknownColumn,
    )
    from dpframe._estimate import Estimate
    from dpframe._ledger import Accountant
    from dpframe._plan import Plan
    from dpframe._private import PrivateFrame

__all__ = [
    "Accountant",
    "BadExpression",
    "BadType",
    "BadValue",
    "BudgetError",
    "BudgetExceeded",
    "DPError",
    "DataError",
    "Estimate",
    "LedgerError",
    "LineageError",
    "MissingBounds",
    "MissingKeys",
    "NoSession",
    "NotOffered",
    "Plan",
    "PrivacyWarning",
    "PrivateFrame",
    "Refused",
    "SessionError",
    "UnknownColumn",
    "private",
]

__version__ = "0.1.0"

# Where the public names live; all that is not here is an error. They load when first used, so that importing
# dpframe beside pandas costs next to nothing.
_HOMES = {
    "Accountant": "_ledger",
    "private": "_accessor",
    "Plan": "_plan",
    "PrivateFrame": "_private",
    "Estimate": "_estimate",
}


_MODULES = ("accounting", "attacks", "audit", "calibrate", "datasets", "learn", "local", "plot", "utilities")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"dpframe.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'dpframe' has no attribute {name!r}")
    return getattr(import_module(f"dpframe.{_HOMES.get(name, '_errors')}"), name)


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]


def _of_frame(frame: pd.DataFrame) -> Any:
    return import_module("dpframe._accessor").of_frame(frame)


def _of_series(series: "pd.Series[Any]") -> Any:
    return import_module("dpframe._accessor").of_series(series)


# pandas-stubs asks for classes here; pandas itself takes any callable.
_frame_accessor: Any = pd.api.extensions.register_dataframe_accessor("dp")
_series_accessor: Any = pd.api.extensions.register_series_accessor("dp")
_frame_accessor(_of_frame)
_series_accessor(_of_series)
