"""The surface: which verbs tracked frames, columns and groups have, and under which names.

A verb is a function, and each table below says where a user finds it. A frame that explains, or
that plans a batch, is the same class in another mode, so it has the same verbs. The verbs of
aggregates come from `MEASURES`. `surface.pyi` tells type checkers the same; it is generated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
from pandas.api.typing import DataFrameGroupBy, SeriesGroupBy

from dpframe._arguments import read_defaults
from dpframe._frame import randomize, suggestions
from dpframe._frame.column import PrivateColumn
from dpframe._frame.columns import order, votes
from dpframe._frame.columns import steps as cells
from dpframe._frame.frame import PrivateFrame
from dpframe._frame.groups import PrivateGroupBy
from dpframe._frame.help import explain_parameters
from dpframe._frame.people import join as own_rows
from dpframe._frame.people import steps as people
from dpframe._frame.people.groups import group_by_person
from dpframe._frame.signatures import explain_arguments, fill_column, fill_selection, show_as
from dpframe._frame.verbs import (
    adopt,
    agg,
    cards,
    cellwise,
    choose,
    groupings,
    looking,
    measure,
    merge,
    pictures,
    report,
    reshape,
    steps,
    summaries,
    tables,
)

__all__ = ["PrivateColumn", "PrivateFrame", "PrivateGroupBy"]

MEASURED = {name: measure.measure_verb(name) for name in measure.MEASURES}
ORDERED = {name: getattr(order, name) for name in ("quantile", *order.GROUP_DOCS)}

# Frames -----------------------------------------------------------------------------------------

STEPS: dict[str, Any] = {
    "assign": steps.assign,
    "rename": steps.rename,
    "drop": steps.drop,
    "dropna": steps.dropna,
    "fillna": steps.fillna,
    "clip": steps.clip,
    "astype": steps.astype,
    "isin": steps.isin,
    "replace": steps.replace,
    "map": steps.map_,
    "isna": steps.isna,
    "isnull": steps.isna,
    "notna": steps.notna,
    "notnull": steps.notna,
    "cut": steps.cut,
    "sort_values": people.sort_values,
    "duplicated": people.duplicated,
    "drop_duplicates": people.drop_duplicates,
    "card": cards.card,
    "report": report.report,
    "sort_index": steps.sort_index,
    "insert": steps.insert,
    "pop": steps.pop,
    "get": steps.get,
    "copy": steps.copy,
    "filter": steps.filter,
    "select_dtypes": steps.select_dtypes,
    "reindex": steps.reindex,
    "add_prefix": steps.add_prefix,
    "add_suffix": steps.add_suffix,
    "set_axis": steps.set_axis,
    "set_index": steps.set_index,
    "reset_index": steps.reset_index,
    "eval": steps.eval,
    "rename_axis": steps.keep_frame,
    "convert_dtypes": steps.keep_frame,
    "infer_objects": steps.keep_frame,
    "squeeze": steps.squeeze,
    "keys": steps.keys,
    "join": merge.join,
    "where": cellwise.where,
    "mask": cellwise.mask,
    "apply": cellwise.apply,
    "transform": cellwise.transform,
    "abs": cellwise.abs_,
    "round": cellwise.round_,
    "head": looking.head,
    "tail": looking.tail,
    "sample": looking.sample,
    "info": looking.info,
    "explode": reshape.explode,
    "melt": reshape.melt,
    "merge": merge.merge,
    "pipe": adopt.pipe,
    "adopt": adopt.adopt,
    "groupby": groupings.groupby,
    "resample": groupings.resample,
}
RELEASES: dict[str, Any] = {
    "count": measure.count,
    **MEASURED,
    **ORDERED,
    "agg": agg.agg,
    "aggregate": agg.agg,
    "unique": tables.unique,
    "value_counts": tables.value_counts,
    "pivot_table": tables.pivot_table,
    "crosstab": tables.crosstab,
    "counts": summaries.counts,
    "histogram": summaries.histogram,
    "hist": pictures.hist,
    "boxplot": pictures.boxplot,
    "describe": summaries.describe,
    "cov": summaries.cov,
    "corr": summaries.corr,
    "argmax": choose.argmax,
    "top": choose.top,
    "choose": choose.choose,
    "suggest_limits": suggestions.suggest_limits,
    "over_limits": suggestions.over_limits,
    "clipped": suggestions.clipped,
    "suggest_bounds": suggestions.suggest_bounds,
    "randomize": randomize.randomize,
}

# Columns ----------------------------------------------------------------------------------------

COLUMN_STEPS: dict[str, Any] = {
    "dropna": cells.dropna,
    "rename": cells.rename,
    "copy": cells.copy,
    "squeeze": cells.squeeze,
    "sort_values": cells.sort_values,
    "sort_index": cells.sort_values,
    "infer_objects": cells.copy,
    "reset_index": cells.reset_index,
    "to_frame": cells.to_frame,
    "head": cells.head,
    "tail": cells.tail,
    "sample": cells.sample,
    "groupby": cells.groupby,
    "resample": cells.resample,
    "pipe": cells.pipe,
    "mode": choose.mode,
}


class Filled(NamedTuple):
    """A verb of frames that a column has too, with the column filled in."""

    returns: str
    doc: str


# What the verbs of aggregates return for one column.
ANSWERS = {
    "whole": "IntEstimate",
    "number": "FloatEstimate",
    "value": "IntEstimate | FloatEstimate",
}
FILLED: dict[str, Filled] = {
    "count": Filled(ANSWERS["whole"], "Count the non-null values; see `PrivateFrame.count`."),
    **{
        name: Filled(ANSWERS[one.answer], f"See `PrivateFrame.{name}`.")
        for name, one in measure.MEASURES.items()
    },
    **{name: Filled(ANSWERS["value"], f"See `PrivateFrame.{name}`.") for name in ORDERED},
    "quantile": Filled("Any", "See `PrivateFrame.quantile`."),
    "describe": Filled("pd.Series[float]", "See `PrivateFrame.describe`; of one column a Series."),
    "histogram": Filled("pd.Series[int]", "See `PrivateFrame.histogram`."),
    "hist": Filled("Any", "Draw a histogram; see `PrivateFrame.hist`."),
    "value_counts": Filled("pd.Series[Any]", "See `PrivateFrame.value_counts`."),
    "unique": Filled("pd.Index[Any]", "See `PrivateFrame.unique`."),
    "argmax": Filled("Any", "See `PrivateFrame.argmax`."),
    "top": Filled("list[Any]", "See `PrivateFrame.top`."),
    "clipped": Filled(
        "pd.Series[float]", "Estimate which share the bounds clip; see `PrivateFrame.clipped`."
    ),
    "randomize": Filled("pd.Series[Any]", "Report each row; see `PrivateFrame.randomize`."),
}

# Groups -----------------------------------------------------------------------------------------

# Where both have another default, that of the first is not taken.
GROUPS_OF_PANDAS = (SeriesGroupBy, DataFrameGroupBy)

# Verbs of frames that groups have too, with their docstrings. A column left out means those
# that are selected.
SELECTED: dict[str, str] = {
    **{name: one.groups for name, one in measure.MEASURES.items()},
    **{
        name: f"Return the {what} of each group; see `PrivateFrame.{name}`."
        for name, what in order.GROUP_DOCS.items()
    },
    "clipped": "Estimate which share the bounds clip in each group; see `PrivateFrame.clipped`.",
    "quantile": """Return quantiles of each group; see `PrivateFrame.quantile`.

    Of selected columns the first argument is ``q``. An empty group answers some point between the
    bounds.

    >>> df = pd.DataFrame({"state": ["CA", "NY"] * 100, "age": [30, 40] * 100})
    >>> p = df.dp.open(100, bounds={"age": (0, 110)}, keys={"state": ["NY", "CA"]})
    >>> p.groupby("state")["age"].quantile([0.25, 0.75], epsilon=80)
    state
    NY     0.25    40 ± 0
           0.75    40 ± 0
    CA     0.25    30 ± 0
           0.75    30 ± 0
    Name: age, dtype: float64
    """,
}
AGG_OF_GROUPS = """Ask several aggregates in one release with one price.

    ``agg(n=("age", "size"), m=("age", "mean"))``, ``agg({"age": ["mean", "std"], "cost": "sum"})``,
    and of selected columns ``["age"].agg(["mean", "std"])``, each in pandas' shape. Aggregates of
    one column share one vector, so a mean is as accurate beside a count and a sum as alone. The
    keyword arguments of the price are those of `mean`. Of them only ``n`` and ``name`` may also be
    outputs, if they are pairs, or of one column aggregates: ``["age"].agg(avg="mean", n="count")``.
    """
GROUP_VERBS: dict[str, Any] = {
    "argmax": votes.argmax,
    "top": votes.top,
    "agg": agg.agg,
    "aggregate": agg.agg,
    "hist": pictures.hist_of_groups,
}

# Installation -----------------------------------------------------------------------------------


def install(kind: type, verbs: Mapping[str, object]) -> None:
    """Make functions the methods of a class, under these names."""
    for name, function in verbs.items():
        setattr(kind, name, function)


def _fill_columns() -> dict[str, Any]:
    """Return the verbs of frames that a column has too, by name: each asks about the column."""
    found = {}
    for name, filled in FILLED.items():
        function = fill_column(RELEASES[name], read_defaults(getattr(pd.Series, name, None)))
        show_as(function, f"PrivateColumn.{name}", filled.doc, filled.returns)
        found[name] = function
    return found


def _fill_groups() -> dict[str, Any]:
    """Return the verbs of frames that groups have too, by name: each asks about the selected
    columns."""
    found = {}
    for name, doc in SELECTED.items():
        defaults: dict[str, object] = {}
        for like in GROUPS_OF_PANDAS:
            defaults |= read_defaults(getattr(like, name, None))
        function = fill_selection(RELEASES[name], defaults)
        show_as(function, f"PrivateGroupBy.{name}", doc)
        found[name] = function
    return found


install(PrivateFrame, STEPS | RELEASES)
install(PrivateFrame, {"_own_groups": group_by_person, "_merge_people": own_rows.merge_people})
install(PrivateColumn, COLUMN_STEPS | _fill_columns())
install(PrivateGroupBy, GROUP_VERBS | _fill_groups())
for _kind in (PrivateFrame, PrivateColumn, PrivateGroupBy):
    # Installed here, so that a name that is not a verb is an error to type checkers.
    install(_kind, {"__getattr__": vars(_kind)["_find_unknown"]})
explain_arguments(PrivateFrame, pd.DataFrame)
explain_arguments(PrivateColumn, pd.Series)
explain_arguments(PrivateGroupBy, *GROUPS_OF_PANDAS)
show_as(vars(PrivateGroupBy)["agg"], "PrivateGroupBy.agg", AGG_OF_GROUPS)
for _kind in (PrivateFrame, PrivateColumn, PrivateGroupBy):
    explain_parameters(_kind)
