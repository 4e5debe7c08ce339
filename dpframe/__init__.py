"""dpframe: differential privacy for pandas. ``import dpframe`` registers ``.dp`` on DataFrames and Series.

>>> import pandas as pd
>>> import dpframe
>>> df = pd.DataFrame({"age": [30, 41, 55]})
>>> p = df.dp.open(epsilon=1, bounds={"age": (0, 110)})
>>> answer = df.dp.mean("age")
>>> 0 <= answer <= 110
True
"""

import sys
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

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
    from dpframe._frame.frame import PrivateFrame
    from dpframe._frame.sources import open, sql
    from dpframe._frame.verbs.looking import dummy
    from dpframe._ledger.accountant import Accountant
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
    "private",
    "show_versions",
    "sql",
]

__version__ = "0.1.0"

# Where the public names live; all that is not here is an error. They load when first used, so that importing
# dpframe beside pandas costs next to nothing.
_HOMES = {
    "Accountant": "_ledger.accountant",
    "dummy": "_frame.verbs.looking",
    "open": "_frame.sources",
    "private": "_frame.accessor",
    "show_versions": "__main__",
    "sql": "_frame.sources",
    "Plan": "_plans.plan",
    "PrivateFrame": "_frame.frame",
    "Estimate": "_answers.estimate",
}


_MODULES = ("accounting", "attacks", "audit", "calibrate", "datasets", "learn", "local", "plot", "utilities")


def _loaded(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"dpframe.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'dpframe' has no attribute {name!r}")
    return getattr(import_module(f"dpframe.{_HOMES.get(name, '_errors')}"), name)


if not TYPE_CHECKING:  # to checkers a name that is not listed is an error
    __getattr__ = _loaded


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]


class _FormerModules:
    """An import finder for modules that pickled answers of earlier versions name: it leads to where their classes are now."""

    names: ClassVar = {
        "dpframe._batch": "dpframe._session.batch",
        "dpframe._budget": "dpframe._plans.budget",
        "dpframe._column": "dpframe._frame.column",
        "dpframe._estimate": "dpframe._answers.estimate",
        "dpframe._measured": "dpframe._plans.aggregates",
        "dpframe._plan": "dpframe._plans.plan",
        "dpframe._private": "dpframe._frame.frame",
        "dpframe._release": "dpframe._answers.answer",
        "dpframe._replay": "dpframe.audit._replay",
        "dpframe._suggestions": "dpframe._frame.suggestions",
        "dpframe.accounting.advanced": "dpframe.accounting._sums",
        "dpframe.accounting.gdp": "dpframe.accounting._tight",
        "dpframe.accounting.pure": "dpframe.accounting._sums",
        "dpframe.accounting.rdp": "dpframe.accounting._additive",
        "dpframe.accounting.zcdp": "dpframe.accounting._additive",
        "dpframe.mechanisms.exponential": "dpframe.mechanisms.selection",
        "dpframe.mechanisms.gaussian": "dpframe.mechanisms.noise",
        "dpframe.mechanisms.laplace": "dpframe.mechanisms.noise",
        "dpframe.mechanisms.noisy_max": "dpframe.mechanisms.selection",
        "dpframe.accounting._base": "dpframe.accounting._filter",
        "dpframe.accounting._meter": "dpframe._plans.price",
        "dpframe.accounting._loss": "dpframe.accounting.loss",
        "dpframe.accounting._losses": "dpframe.accounting.loss",
        "dpframe.accounting._normal": "dpframe.accounting.loss",
    }

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in cls.names:
            return None
        return ModuleSpec(name, cls())  # type: ignore[arg-type]  # a loader by its two methods, of no base class

    def create_module(self, spec: ModuleSpec) -> None:
        """The usual empty module."""

    def exec_module(self, module: ModuleType) -> None:
        new = import_module(self.names[module.__name__])
        module.__getattr__ = partial(getattr, new)  # type: ignore[method-assign]  # PEP 562: of a module, not of its type


def _first(data: Any) -> Any:
    """``.dp`` when it is first read: loads the surface, which puts its own accessors in this one's place."""
    import_module("dpframe._frame.accessor").register()
    return data.dp


# pandas-stubs asks for classes here; pandas itself takes any callable.
_frame_accessor: Any = pd.api.extensions.register_dataframe_accessor("dp")
_series_accessor: Any = pd.api.extensions.register_series_accessor("dp")
_frame_accessor(_first)
_series_accessor(_first)


@property  # type: ignore[misc]  # which classes of pandas get below
def _of_groups(groups: Any) -> Any:
    """``.dp`` of groups that pandas made: what says how to make them of a tracked frame."""
    return import_module("dpframe._frame.accessor").of_groups(groups)


for _groups in (pd.api.typing.DataFrameGroupBy, pd.api.typing.SeriesGroupBy, pd.api.typing.Resampler):
    setattr(_groups, "dp", _of_groups)  # noqa: B010  (stubs have none)
sys.meta_path.append(_FormerModules)
