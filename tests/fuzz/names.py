"""What lines of random programs and examples may name, beside the frame.

Only public names of the package are used: `tests/differential.py` asks other checkouts as well.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from dpframe import DPError
from dpframe.learn import LinearRegression, LogisticRegression
from dpframe.utilities import distance, revenue
from tests.fuzz.cells import LONG, flat


class Impossible(DPError):
    """What the generator wrote is no table; the library has not been asked."""


# Public tables ------------------------------------------------------------------------------------


def table(name: Any, keys: Any, values: Any, dtype: Any) -> pd.DataFrame:
    """Return a public table with these keys."""
    listed_keys = list(keys)
    try:
        column = (
            pd.Series(flat(listed_keys), dtype=object)
            if dtype is object
            else pd.Series(listed_keys, dtype=dtype)
        )
        return pd.DataFrame({name: column, "looked": list(values)[: len(listed_keys)]})
    except Exception:
        raise Impossible from None


def public(name: Any, twice: bool = False) -> pd.DataFrame:
    """Return a public table with a row, or two, of each key."""
    keys = ["a", "b", "c", "u", "d"] * (1 + twice)
    return pd.DataFrame({name: keys, "looked": [0.5 * i for i in range(len(keys))]})


# Steps of a private frame -------------------------------------------------------------------------


def person(p: Any) -> list[Any]:
    """Return the columns that name the person, where these are to be seen."""
    return ["id"] if "id" in list(p.columns) else []


def part(p: Any, number: int) -> Any:
    """Return a derived frame: one column under each other, with names of its own."""
    dtypes = {name: p.dtypes[name] for name in p.columns if name not in person(p)}
    one = next(n for n, d in dtypes.items() if is_numeric_dtype(d) and not is_bool_dtype(d))
    return p.melt(
        id_vars=person(p), value_vars=[one], var_name=f"v{number}", value_name=f"y{number}"
    )


def listed(p: Any, name: Any) -> Any:
    return p[[*person(p), name]].explode(name, dtype="str", max_rows=64, max_groups=64)


def own_row(p: Any, rows: int = 1) -> Any:
    (who,) = person(p) or ["id"]
    return p.groupby(who).head(rows)


def inserted(p: Any, column: Any) -> Any:
    q = p.copy()
    q.insert(0, "inserted", column)
    return q


def popped(p: Any, name: Any) -> Any:
    q = p.copy()
    q.pop(name)
    return q


def batch(p: Any, ask: Callable[[Any], Sequence[Any]]) -> list[Any]:
    with p.plan_ahead() as planned:
        places = ask(planned)
    return [place.answer for place in places]


# Functions for `pipe` -----------------------------------------------------------------------------


def same(d: pd.DataFrame) -> pd.DataFrame:
    return d


def copied(d: pd.DataFrame) -> pd.DataFrame:
    return d.copy()


def first_column(d: pd.DataFrame) -> pd.DataFrame:
    return d[[*d.columns[: max(1, d.shape[1] - 1)]]] if "id" not in d else d


def numbered(d: pd.DataFrame) -> pd.DataFrame:
    return d.assign(one=1)


def filtered(d: pd.DataFrame) -> pd.DataFrame:
    return d[np.ones(len(d), dtype=bool)]


def doubled(d: pd.DataFrame) -> pd.DataFrame:
    return d.loc[d.index.repeat(2)] if "id" in d else d


def sliced(d: pd.DataFrame) -> pd.DataFrame:
    return d.iloc[:, ::-1]


NAMES: dict[str, Any] = {
    **{
        helper.__name__: helper
        for helper in (
            *(table, public, person, part, listed, own_row, inserted, popped, batch, same),
            *(copied, first_column, numbered, filtered, doubled, sliced),
        )
    },
    "pd": pd,
    "np": np,
    "nan": np.nan,
    "inf": np.inf,
    "TWO": 2,
    "LONG": LONG,
    "Decimal": Decimal,
    "Timestamp": pd.Timestamp,
    "datetime": datetime,
    "Interval": pd.Interval,
    "distance": distance,
    "revenue": revenue,
    "LinearRegression": LinearRegression,
    "LogisticRegression": LogisticRegression,
}
