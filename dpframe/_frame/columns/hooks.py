"""Functions of pandas for tracked columns and frames: ``pd.cut(p["age"], [0, 65])``,
``pd.crosstab(p["a"], p["b"])``.

The functions in `dpframe._pandas` call these for arguments that are tracked.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, MissingKeys, Refused
from dpframe._frame.selection import (
    BoundColumn,
    expression_of,
    frame_of_column,
    name_of,
    selection_of,
    with_expression,
)
from dpframe._frame.tracked import (
    Tracked,
    refuse_bin_count,
    use_own_names,
    with_selection,
    write_source,
)
from dpframe._types import Arguments


def _cut(
    x: Any,
    bins: object,
    right: Any = True,
    labels: Any = None,
    retbins: object = False,
    precision: object = 3,
    include_lowest: object = False,
    duplicates: object = "raise",
    ordered: object = True,
) -> Any:
    """Return the column that ``pd.cut`` makes of a tracked column: the interval that each value is
    in.

    ``bins`` are public edges. With ``labels=False`` the cells are the numbers of the intervals.
    ``retbins``, ``duplicates`` and ``ordered`` must have their defaults.
    """
    _check_options(
        "cut", retbins=(retbins, False), duplicates=(duplicates, "raise"), ordered=(ordered, True)
    )
    lowest = _validate.flag(include_lowest, "include_lowest")
    if not lowest or not isinstance(right, bool) or not right or isinstance(bins, int | np.integer):
        edges = bins
    else:  # the first interval includes its left end, and pandas shows that end a little lower
        edges = _expr.listed(bins, "cut")
        if not edges:
            raise BadType("cut needs at least two edges, such as [0, 18, 65, 110].")
        first = _expr.constant(edges[0])
        x = x.where(with_expression(x, _expr.compare(">=", expression_of(x), first)))
        edges = [first.value - 10.0 ** -_check_digits(precision), *edges[1:]]
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        refuse_bin_count(selection_of(frame_of_column(x)), expression_of(x), int(bins))
    if labels is False:
        labels = range(len(_expr.listed(edges, "cut")) - 1) if not isinstance(edges, int) else None
    return with_expression(x, _expr.cut(expression_of(x), edges, labels, right))


def _qcut(x: Any, q: Any, *args: object, **words: object) -> NoReturn:
    """Refuse edges with as many people on either side, which are a release; say how to ask it."""
    selection, expr = selection_of(frame_of_column(x)), expression_of(x)
    known = expr.bounds(selection.schema.bounds) if expr.kind == "number" else None
    low, high = ("lower", "upper") if known is None else (f"{known[0]:g}", f"{known[1]:g}")
    whole = type(q) is int and 1 < q <= _MOST_QUANTILES
    levels = [round(i / q, 4) for i in range(1, q)] if whole else [0.25, 0.5, 0.75]
    source = write_source(selection, expr)
    raise Refused(
        "edges with as many people on either side are a release, which is asked first: "
        f"pd.cut({source}, sorted({{{low}, *{source}.quantile({levels}), {high}}}))."
    )


def _check_digits(precision: object) -> int:
    """Return a precision that is a whole number of digits."""
    if isinstance(precision, bool) or not isinstance(precision, int) or not 0 <= precision <= 15:
        raise BadType("precision must be a whole number of digits.")
    return precision


def _check_options(name: str, **given: tuple[object, object]) -> None:
    """Raise for an argument that is not at the one value that it can have here."""
    for argument, (value, known) in given.items():
        if value is not known and not (type(value) is type(known) and value == known):
            raise BadType(
                f"pd.{name} of a tracked column takes {argument}={known!r} only, not {value!r}."
            )


def _to_datetime(
    arg: Any,
    errors: object = "raise",
    dayfirst: object = False,
    yearfirst: object = False,
    utc: object = False,
    format: Any = None,
    exact: object = True,
    unit: object = None,
    origin: object = "unix",
    cache: object = True,
) -> Any:
    """Read texts as times, by a format or as ISO dates.

    Other texts become null, as with ``errors="coerce"``.
    """
    _check_options(
        "to_datetime",
        dayfirst=(dayfirst, False),
        yearfirst=(yearfirst, False),
        exact=(exact, True),
        unit=(unit, None),
        origin=(origin, "unix"),
    )
    if not _validate.among(errors, ("raise", "coerce")):
        raise BadType("pd.to_datetime turns texts that are not dates into nulls: errors='coerce'.")
    found = _expr.read_moment(expression_of(arg), format)
    if _validate.flag(utc, "utc"):
        found = _expr.time_part(found, "tz_convert" if found.tz else "tz_localize", "UTC")
    return with_expression(arg, found)


def _to_numeric(
    arg: Any, errors: object = "raise", downcast: object = None, dtype_backend: object = None
) -> Any:
    """Read texts as numbers. Other texts become null, as with ``errors="coerce"``."""
    _check_options("to_numeric", downcast=(downcast, None))
    if not _validate.among(errors, ("raise", "coerce")):
        raise BadType("pd.to_numeric turns texts that are not numbers into nulls: errors='coerce'.")
    return (
        arg
        if expression_of(arg).kind in ("number", "bool")
        else with_expression(arg, _expr.read_number(expression_of(arg)))
    )


def _get_dummies(
    data: Any,
    prefix: object = None,
    prefix_sep: object = "_",
    dummy_na: object = False,
    drop_first: object = False,
    dtype: object = None,
) -> Any:
    """Return a frame with an indicator column for each declared key of a column."""
    _check_options("get_dummies", dummy_na=(dummy_na, False), dtype=(dtype, None))
    selection = selection_of(frame_of_column(data))
    keys = selection.values(expression_of(data))
    if keys is None:
        raise MissingKeys(
            f"pd.get_dummies makes a column for each value, and the values of {data.name!r} are not "
            "declared: open(..., keys={...})."
        )
    kept = keys[1:] if _validate.flag(drop_first, "drop_first") else keys
    names = [key if prefix is None else f"{prefix}{prefix_sep}{key}" for key in kept]
    columns = {
        name: _expr.is_in(expression_of(data), [key]) for name, key in zip(names, kept, strict=True)
    }
    return with_selection(frame_of_column(data), selection.replace_columns(columns))


def _crosstab(index: Any, columns: Any, *args: Any, **words: Any) -> Any:
    """Return ``p.crosstab`` of tracked columns, or lists of them."""
    first = index[0] if isinstance(index, list) else index
    return frame_of_column(first).crosstab(index, columns, *args, **words)


def _make_frame_function(name: str) -> Callable[..., Any]:
    """Return a function that calls the verb of its first argument, a tracked frame."""

    def function(frame: object, *args: object, **words: object) -> Any:
        if not isinstance(frame, Tracked):
            raise Refused(f"pd.{name} takes a tracked frame and not a column: p.{name}(...).")
        return getattr(frame, name)(*args, **words)

    return function


def _make_refusal(advice: str) -> Callable[..., Any]:
    """Return a function that refuses with an advice."""

    def refuse(given: Any, *args: object, **words: object) -> Any:
        first = given[0] if isinstance(given, list | tuple) else given
        if isinstance(first, BoundColumn):
            of, asked = selection_of(frame_of_column(first)), name_of(first)
            raise Refused(use_own_names(advice, of, asked))
        raise Refused(use_own_names(advice, selection_of(first)))

    return refuse


_MOST_QUANTILES = 20  # that a message lists
# Functions of tracked columns. Those in `OF_FRAMES` take tracked frames too.
PANDAS_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cut": _cut,
    "to_datetime": _to_datetime,
    "to_numeric": _to_numeric,
    "get_dummies": _get_dummies,
    "crosstab": _crosstab,
    **{name: _make_frame_function(name) for name in ("merge", "melt", "pivot_table")},
    **{name: lambda obj: obj.isna() for name in ("isna", "isnull")},
    **{name: lambda obj: obj.notna() for name in ("notna", "notnull")},
    "unique": lambda values: values.unique(),
    "to_timedelta": _make_refusal(
        "no function makes a duration of a number here. Compare and add numbers: (p['t2'] - "
        "p['t1']).dt.days + p['days']."
    ),
    "qcut": _qcut,
    "merge_asof": _make_refusal(
        "pd.merge_asof finds the nearest row of a table. A public table is merged by equal keys, "
        "p.merge(table, on='x'); to "
        "meet ranges, cut the column at the table's own edges first: p.assign(band=p['x'].cut([0, "
        "10, 20]))."
    ),
    "merge_ordered": _make_refusal(
        "pd.merge_ordered sorts rows, which have no order here. A public table is merged by equal "
        "keys: "
        "p.merge(table, on='x')."
    ),
    "factorize": _make_refusal(
        "it numbers values in the order of rows. With declared keys: p['x'].map({'a': 0, 'b': 1}); "
        "the values are a release, p['x'].unique()."
    ),
    "concat": _make_refusal(
        "pd.concat puts rows of tables together, which is done before a session is opened: both = "
        "pd.concat([a, b]), and then both.dp.open(1). A column beside the others is p.assign(y=p['x'"
        "] + 1)."
    ),
    "pivot": _make_refusal(
        "it copies cells of people. Write p.pivot_table('x', 'a', 'b', aggfunc='mean'): a release."
    ),
}
_OF_KEYS = ("crosstab", "factorize", "get_dummies", "unique")  # what goes by listed values
OF_FRAMES = {
    "merge",
    "melt",
    "pivot_table",
    "isna",
    "isnull",
    "notna",
    "notnull",
    "concat",
    "pivot",
    "merge_asof",
    "merge_ordered",
}


def call_pandas_function(
    first: BoundColumn | Tracked, name: str, args: Arguments, kwargs: dict[str, Any]
) -> Any:
    """Return what a function of pandas makes of tracked columns or frames.

    `PrivateColumn` and `PrivateFrame` have it as ``__pandas_function__``, which the functions in
    `dpframe._pandas` call.
    """
    if isinstance(first, Tracked) and name not in OF_FRAMES:
        column = "k" if name in _OF_KEYS else "x"
        raise Refused(
            use_own_names(
                f"pd.{name} takes one column here, such as pd.{name}(p['{column}'], ...): a frame "
                "has many.",
                selection_of(first),
            )
        )
    own = PANDAS_FUNCTIONS[name]
    lead = next(iter(signature(getattr(pd, name)).parameters))
    own_lead = next(iter(signature(own).parameters))
    given = {(own_lead if key == lead else key): value for key, value in kwargs.items()}
    try:
        signature(own).bind(*args, **given)
    except TypeError:
        raise BadType(f"pd.{name} of a tracked column does not take these arguments.") from None
    return own(*args, **given)
