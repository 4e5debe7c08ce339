"""Functions of pandas that are given tracked columns and frames: ``pd.cut(p["age"], [0, 65])``,
``pd.crosstab(p["a"], p["b"])``.

numpy asks its arguments whether they have a function of their own; pandas does not. So the
functions of pandas that people give a frame to are wrapped where the package is first used: given
something tracked they are what stands here, given anything else they are what they were.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, MissingKeys, Refused
from dpframe._frame.selection import BoundColumn
from dpframe._frame.tracked import Tracked


def _cut(
    x: Any,
    bins: Any,
    right: Any = True,
    labels: Any = None,
    retbins: Any = False,
    precision: Any = 3,
    include_lowest: Any = False,
    duplicates: Any = "raise",
    ordered: Any = True,
) -> Any:
    """``pd.cut`` at given edges; with ``labels=False`` the numbers of the intervals."""
    _only(
        "cut", retbins=(retbins, False), duplicates=(duplicates, "raise"), ordered=(ordered, True)
    )
    lowest = _validate.flag(include_lowest, "include_lowest")
    if not lowest or not isinstance(right, bool) or not right or isinstance(bins, int | np.integer):
        edges = bins
    else:  # the first interval has its left end too, which pandas shows a little further to the left
        edges = _expr.listed(bins, "cut")
        if not edges:
            raise BadType("cut needs at least two edges, such as [0, 18, 65, 110].")
        first = _expr.constant(edges[0])
        x = x.where(x._new(_expr.compare(">=", x._expr, first)))
        edges = [first.value - 10.0 ** -_digits(precision), *edges[1:]]
    if labels is False:
        labels = range(len(_expr.listed(edges, "cut")) - 1) if not isinstance(edges, int) else None
    return x._new(_expr.cut(x._expr, edges, labels, right))


def _digits(precision: Any) -> int:
    if isinstance(precision, bool) or not isinstance(precision, int) or not 0 <= precision <= 15:
        raise BadType("precision must be a whole number of digits.")
    return precision


def _only(name: str, **given: tuple[Any, Any]) -> None:
    """Refuses words that are not at the one value that they have here."""
    for word, (value, known) in given.items():
        if value is not known and not (type(value) is type(known) and value == known):
            raise BadType(f"pd.{name} of a tracked column has {word}={known!r} and no other.")


def _to_datetime(
    arg: Any,
    errors: Any = "raise",
    dayfirst: Any = False,
    yearfirst: Any = False,
    utc: Any = False,
    format: Any = None,
    exact: Any = True,
    unit: Any = None,
    origin: Any = "unix",
    cache: Any = True,
) -> Any:
    """Texts read as times, by a format or as ISO dates; what is none is null, as with
    ``errors="coerce"``."""
    _only(
        "to_datetime",
        dayfirst=(dayfirst, False),
        yearfirst=(yearfirst, False),
        exact=(exact, True),
        unit=(unit, None),
        origin=(origin, "unix"),
    )
    if not _validate.among(errors, ("raise", "coerce")):
        raise BadType("pd.to_datetime makes null of what is no date: errors='coerce'.")
    found = _expr.moment(arg._expr, format)
    if _validate.flag(utc, "utc"):
        found = _expr.zoned(found, "convert" if found.tz else "localize", "UTC")
    return arg._new(found)


def _to_numeric(
    arg: Any, errors: Any = "raise", downcast: Any = None, dtype_backend: Any = None
) -> Any:
    """Texts read as numbers; what is none is null, as with ``errors="coerce"``."""
    _only("to_numeric", downcast=(downcast, None))
    if not _validate.among(errors, ("raise", "coerce")):
        raise BadType("pd.to_numeric makes null of what is no number: errors='coerce'.")
    return arg if arg._expr.kind in ("number", "bool") else arg._new(_expr.numeral(arg._expr))


def _get_dummies(
    data: Any,
    prefix: Any = None,
    prefix_sep: Any = "_",
    dummy_na: Any = False,
    drop_first: Any = False,
    dtype: Any = None,
) -> Any:
    """A column for each key of a column, which tells the rows that have it."""
    _only("get_dummies", dummy_na=(dummy_na, False), dtype=(dtype, None))
    selection = data._frame._selection
    keys = selection.values(data._expr)
    if keys is None:
        raise MissingKeys(
            f"pd.get_dummies makes a column for each value, and those of {data.name!r} are not declared: open(..., keys={{...}})."
        )
    kept = keys[1:] if _validate.flag(drop_first, "drop_first") else keys
    names = [key if prefix is None else f"{prefix}{prefix_sep}{key}" for key in kept]
    columns = {name: _expr.is_in(data._expr, [key]) for name, key in zip(names, kept, strict=True)}
    return data._frame._new(selection.replace_columns(columns))


def _crosstab(index: Any, columns: Any, *args: Any, **words: Any) -> Any:
    """``p.crosstab`` of tracked columns, or lists of them."""
    first = index[0] if isinstance(index, list) else index
    return first._frame.crosstab(index, columns, *args, **words)


def _of_frames(name: str) -> Callable[..., Any]:
    """The verb of the frame that comes first."""

    def function(frame: Any, *args: Any, **words: Any) -> Any:
        if not isinstance(frame, Tracked):
            raise Refused(
                f"pd.{name} of a tracked column is not offered: it takes a tracked frame, p.{name}(...)."
            )
        return getattr(frame, name)(*args, **words)

    return function


def _refused(advice: str) -> Callable[..., Any]:
    def refuse(given: Any, *args: Any, **words: Any) -> Any:
        raise Refused(advice)

    return refuse


# Of tracked columns, and those of `BOTH` of frames too.
HOOKS: dict[str, Callable[..., Any]] = {
    "cut": _cut,
    "to_datetime": _to_datetime,
    "to_numeric": _to_numeric,
    "get_dummies": _get_dummies,
    "crosstab": _crosstab,
    **{name: _of_frames(name) for name in ("merge", "melt", "pivot_table")},
    **{name: lambda obj: obj.isna() for name in ("isna", "isnull")},
    **{name: lambda obj: obj.notna() for name in ("notna", "notnull")},
    "unique": lambda values: values.unique(),
    "to_timedelta": _refused(
        "a number becomes a duration by no function here. Compare and add numbers: (p['t2'] - p['t1']).dt.days + p['days']."
    ),
    "qcut": _refused(
        "edges that have as many people on either side are a release: edges = p['x'].quantile([0, 0.25, 0.5, 0.75, 1]), then "
        "p['x'].cut(list(edges))."
    ),
    "factorize": _refused(
        "it numbers values in the order of rows. With declared keys: p['x'].map({'a': 0, 'b': 1}); the values are a release, "
        "p['x'].unique()."
    ),
    "concat": _refused(
        "pd.concat puts rows of tables together, which is done before a session is opened: both = pd.concat([a, b]), and "
        "then both.dp.open(1). A column beside the others is p.assign(y=p['x'] + 1)."
    ),
    "pivot": _refused(
        "it copies cells of people. Write p.pivot_table('x', 'a', 'b', aggfunc='mean'): a release."
    ),
}
BOTH = {"merge", "melt", "pivot_table", "isna", "isnull", "notna", "notnull", "concat", "pivot"}


def install() -> None:
    """Wraps the functions of pandas, once."""
    for name, own in HOOKS.items():
        original = getattr(pd, name)
        if not hasattr(original, "_of_tracked"):
            setattr(pd, name, _wrapped(name, original, own))


def _wrapped(name: str, original: Any, own: Callable[..., Any]) -> Any:
    lead = next(iter(signature(original).parameters))

    @wraps(original)
    def function(*args: Any, **words: Any) -> Any:
        first = args[0] if args else words.get(lead)
        inner = first[0] if isinstance(first, list | tuple) and first else first
        if not isinstance(inner, BoundColumn | Tracked):
            return original(*args, **words)
        if isinstance(inner, Tracked) and name not in BOTH:
            raise Refused(
                f"pd.{name} takes one column here, such as pd.{name}(p['x'], ...): a frame has many."
            )
        given = {
            (next(iter(signature(own).parameters)) if k == lead else k): v for k, v in words.items()
        }
        try:
            signature(own).bind(*args, **given)
        except TypeError:
            raise BadType(f"pd.{name} of a tracked column does not take these arguments.") from None
        return own(*args, **given)

    function._of_tracked = own  # type: ignore[attr-defined]  # the mark that it is wrapped
    return function
