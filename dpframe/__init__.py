"""dpframe: differential privacy for pandas. ``import dpframe`` registers ``.dp`` on DataFrames and
Series.

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

from dpframe import _pandas

if TYPE_CHECKING:
    from dpframe import (  # noqa: F401  (for checkers: they load when first used)
        accounting,
        attacks,
        audit,
        calibrate,
        datasets,
        learn,
        local,
        plot,
        utilities,
    )
    from dpframe.__main__ import show_versions
    from dpframe._answers.estimate import Estimate
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
    from dpframe._frame.accessor import private
    from dpframe._frame.sources import open, sql
    from dpframe._frame.surface import PrivateFrame
    from dpframe._frame.verbs.looking import dummy
    from dpframe._ledger.accountant import Accountant
    from dpframe._options import options
    from dpframe._plans.plan import Plan

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
    "dummy",
    "open",
    "options",
    "private",
    "show_versions",
    "sql",
]

__version__ = "0.1.0"

# Where the public names live; all that is not here is an error. They load when first used, so that
# importing dpframe beside pandas costs next to nothing.
_HOMES = {
    "Accountant": "_ledger.accountant",
    "dummy": "_frame.verbs.looking",
    "open": "_frame.sources",
    "options": "_options",
    "private": "_frame.accessor",
    "show_versions": "__main__",
    "sql": "_frame.sources",
    "Plan": "_plans.plan",
    "PrivateFrame": "_frame.surface",
    "Estimate": "_answers.estimate",
}


_MODULES = (
    "accounting",
    "attacks",
    "audit",
    "calibrate",
    "datasets",
    "learn",
    "local",
    "plot",
    "utilities",
)


def load_public_name(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"dpframe.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'dpframe' has no attribute {name!r}")
    return getattr(import_module(f"dpframe.{_HOMES.get(name, '_errors')}"), name)


if not TYPE_CHECKING:  # to checkers a name that is not listed is an error
    __getattr__ = load_public_name


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]


def _first(data: Any) -> Any:
    """``.dp`` when it is first read: loads the surface, which puts its own accessors in this one's
    place."""
    import_module("dpframe._frame.accessor").register()
    return data.dp


# pandas-stubs asks for classes here; pandas itself takes any callable.
_frame_accessor: Any = pd.api.extensions.register_dataframe_accessor("dp")
_series_accessor: Any = pd.api.extensions.register_series_accessor("dp")
_frame_accessor(_first)
_series_accessor(_first)


@property  # type: ignore[misc]  # which classes of pandas get below
def _of_groups(groups: object) -> Any:
    """``.dp`` of groups that pandas made: what says how to make them of a tracked frame."""
    return import_module("dpframe._frame.accessor").of_groups(groups)


for _groups in (
    pd.api.typing.DataFrameGroupBy,
    pd.api.typing.SeriesGroupBy,
    pd.api.typing.Resampler,
):
    setattr(_groups, "dp", _of_groups)  # noqa: B010  (stubs have none)

# Functions of pandas take tracked columns from now on: dpframe.options.extend_pandas is True.
_pandas.extend_pandas()
