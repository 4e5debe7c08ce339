"""The functions of pandas that dpframe replaces, and the originals that it calls itself.

``import dpframe`` replaces the functions in `EXTENDED` in the module ``pandas``, for the whole
process, so that they take tracked columns and frames too: ``pd.cut(p["age"], [0, 18, 65])``. numpy
asks its arguments for a version of their own; pandas has no such protocol for these functions.

A replacement looks at its first argument, or at the first element of a list or tuple. If its class
defines ``__pandas_function__``, that answers. Else pandas' own function gets the same arguments.
``dpframe.options.extend_pandas = False`` puts the originals back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import pandas as pd

# The package calls these originals, which are imported before anything is replaced.
from pandas import concat, cut, factorize, isna, to_timedelta, unique

__all__ = ["concat", "cut", "factorize", "isna", "to_timedelta", "unique"]

EXTENDED = (
    *("concat", "crosstab", "cut", "factorize", "get_dummies", "isna", "isnull", "melt", "merge"),
    *(
        "merge_asof",
        "merge_ordered",
        "notna",
        "notnull",
        "pivot",
        "pivot_table",
        "qcut",
        "to_datetime",
        "to_numeric",
    ),
    *("to_timedelta", "unique"),
)


def extend_pandas() -> None:
    """Replace the functions in `EXTENDED` by versions that take tracked columns and frames."""
    for name in EXTENDED:
        if not hasattr(getattr(pd, name), "pandas_function"):
            setattr(pd, name, _extend(name, getattr(pd, name)))


def restore_pandas() -> None:
    """Put pandas' own functions back."""
    for name in EXTENDED:
        function = getattr(pd, name)
        setattr(pd, name, getattr(function, "pandas_function", function))


def are_functions_extended() -> bool:
    """Return whether the functions in `EXTENDED` take tracked columns and frames."""
    return all(hasattr(getattr(pd, name), "pandas_function") for name in EXTENDED)


def _extend(name: str, original: Any) -> Callable[..., Any]:
    """Return a function of pandas that also takes tracked columns and frames. ``name`` is its name,
    and ``original`` the function of pandas that other arguments go to."""
    lead = next(iter(signature(original).parameters))

    @wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        """Call the first argument's own version of this function if it is a tracked object, and
        pandas otherwise."""
        first: Any = args[0] if args else kwargs.get(lead)
        if isinstance(first, list | tuple) and first:
            first = first[0]
        if hasattr(type(first), "__pandas_function__"):
            return first.__pandas_function__(name, args, kwargs)
        return original(*args, **kwargs)

    # pickle writes a function as its module and name, and looks whether that finds it.
    function.__module__, function.__qualname__ = "pandas", name
    # Functions take any attribute; checkers know none.
    function.pandas_function = original  # type: ignore[attr-defined]
    return function
