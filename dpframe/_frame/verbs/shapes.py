"""Groups, counts of values, pivot tables and crosstabs: each is one release, laid out as pandas lays it out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._answers import answer as _release
from dpframe._answers.layout import Pivot
from dpframe._errors import BadType, BadValue, MissingKeys, NotOffered
from dpframe._frame.column import PrivateColumn
from dpframe._frame.groupby import PrivateGroupBy, check_options
from dpframe._frame.verbs import agg_spec as _specs
from dpframe._frame.verbs import labels as _pivot
from dpframe._frame.verbs.groupings import Groupings
from dpframe._frame.verbs.unlisted import Measured, Unlisted, UnlistedGroupBy
from dpframe._groups.combinations import Sought, lists_tuples, with_rest
from dpframe._groups.keys import (
    EVERY,
    GROUP_CEILING,
    By,
    KeyBy,
    combined_index,
    keys_of,
    need_keys,
    with_options,
)
from dpframe._plans.output import Output
from dpframe._plans.plan import Plan
from dpframe._plans.price import Payment, checked, spell_out
from dpframe._questions.query import Query
from dpframe._questions.question import Release

if TYPE_CHECKING:
    from dpframe._frame.frame import PrivateFrame


class Shapes(Groupings, Unlisted):
    """Groups, and the tables that are made of them."""

    # Groups ---------------------------------------------------------------------------------------------------

    def value_counts(
        self,
        column: Any = EVERY,
        *,
        keys: Any = None,
        other: Any = None,
        sort: bool = True,
        normalize: bool = False,
        ascending: bool = False,
        dropna: bool | None = None,
        bins: Any = None,
        **payment: Unpack[Payment],
    ) -> pd.Series[Any]:
        """How many rows have each of the listed values; the largest (noisy) count first, as pandas sorts.

        ``normalize=True`` divides by the sum of these counts: the same release, as proportions that sum to 1 (a
        noisy count below zero makes a proportion below zero; without a positive sum they are NaN).
        ``dropna=False`` counts nulls as a value of their own, and ``other="elsewhere"`` all values that are neither listed
        nor null.

        Formal guarantee: epsilon-DP for its price; a row is in one group, so the whole vector has sensitivity 1
        (2 under replace-one). Sorting looks at released numbers only; ``sort=False`` keeps the order of the keys.

        >>> df = pd.DataFrame({"state": ["CA", "NY", "CA"]})
        >>> p = df.dp.open(100)
        >>> p.value_counts("state", keys=["NY", "CA", "WA"], epsilon=80)
        state
        CA    2
        NY    1
        WA    0
        Name: count, dtype: int64
        """
        checked(payment)
        for word, flag in (("sort", sort), ("normalize", normalize), ("ascending", ascending)):
            _validate.flag(flag, word)
        if column is EVERY:
            names = list(map(str, self._columns))[:2]
            raise BadType(
                f"value_counts is of one column: p[{names[0] if names else 'x'!r}].value_counts(). Combinations of several: "
                f"p.groupby({names}).size()."
            )
        if bins is not None:
            raise NotOffered("bins= belongs to histogram(column, bins=[...]), which keeps them in order.")
        expr, name = self._named(column)
        outs = (Output("count", "size"),)

        def finish(release: Release, index: pd.Index[Any]) -> pd.Series[Any]:
            counts = _release.values(release, 0)
            order = np.argsort(counts if ascending else -counts, kind="stable") if sort else None
            if normalize:
                layout = Pivot(len(index), normalize="all")
                return _release.proportions(release, layout, index, "proportion", order)
            return _release.series(release, index, "count", order)

        if other is None and dropna is not False and self._unlisted(expr, name, keys):
            found = self._measured([(expr, name)], outs, payment)
            if isinstance(found, Measured):
                return finish(found.release, found.index)
            if isinstance(found, Plan):
                return cast("pd.Series[Any]", found)
            by, frame = found, cast("PrivateFrame", self)
        else:
            known = self._listed_or_found(expr, name, keys, "value_counts", payment)
            if isinstance(known, Plan):
                return cast("pd.Series[Any]", known)
            frame, own = known
            (by,) = cast(
                "tuple[By, ...]", with_rest((KeyBy(expr, with_options(own, expr, None, dropna)),), other)
            )
        query = Query(outs, self._where, (by,))
        return cast("pd.Series[Any]", frame._ask(query, lambda r: finish(r, by.index), payment))

    def groupby(
        self,
        by: Any,
        *,
        keys: Any = None,
        other: Any = None,
        bounds: Any = None,
        as_index: bool = True,
        sort: bool | None = None,
        group_keys: bool = True,
        observed: bool | None = None,
        dropna: bool | None = None,
        level: None = None,
    ) -> PrivateGroupBy:
        """Groups by one column or several; ``keys`` lists the groups that may appear, all of which come back.

        For several columns ``keys`` is a dict by column (or a list of lists), and the groups are all combinations; or a
        list of tuples with a key for each column (or a ``pd.MultiIndex``), and the groups are exactly these. Columns with
        declared keys, cut columns and bools need none. They stand in the order of the list; ``sort=True`` sorts them.
        ``dropna=False`` makes a group of the nulls, as a null on the list does.

        ``other="elsewhere"`` adds one last group for rows whose key is not null and not listed (with several columns a
        dict by column); a person with many rows is bounded after these keys have become one. A ``pd.Grouper(key="t",
        freq="ME")`` makes periods, as `resample` does, between the declared bounds of the column or ``bounds=``.

        In a session with delta columns may be left unlisted: their keys are those that enough people share, found and
        measured in one release for the whole price (docs/guarantees/keys.md); where a choice is asked for, half of the price
        finds them first. The session then knows them, and later questions are ordinary ones.

        Formal guarantee of each release: a row is in one group, by its own cells and public lists, so groups of every kind
        have the sensitivities of docs/guarantees/statistics.md.

        >>> df = pd.DataFrame({"state": ["CA", "NY", "TX"], "sex": ["F", "M", "F"]})
        >>> p = df.dp.open(1000)
        >>> p.groupby(["state", "sex"], keys=[("NY", "M"), ("CA", "F")]).size(epsilon=80)
        state  sex
        NY     M      1
        CA     F      1
        dtype: int64
        >>> p.groupby("state", keys=["CA"], other="elsewhere").size(epsilon=80)
        state
        CA           1
        elsewhere    2
        dtype: int64
        """
        _validate.flag(as_index, "as_index")
        check_options(group_keys, observed, level)
        frame, groups = cast("PrivateFrame", self), self._groups(by, keys, sort, dropna, other, bounds)
        if any(isinstance(one, Sought) for one in groups):
            return UnlistedGroupBy(frame, groups, as_index=as_index)
        return PrivateGroupBy(frame, cast("tuple[By, ...]", groups), as_index=as_index)

    def _levels(
        self,
        by: Any,
        keys: Any,
        sort: bool | None,
        dropna: bool | None,
        verb: str = "groupby",
    ) -> list[KeyBy | Sought]:
        """One grouping a column, with the keys that are given, declared or brought along; else those to be found."""
        names = by if isinstance(by, list) else [by]
        keys = self._by_column(keys) if isinstance(keys, Mapping) else keys
        if not names:
            raise BadValue(f"{verb} needs at least one column.")
        if callable(by) and not isinstance(by, PrivateColumn):
            raise BadType(f"{verb} takes column names, not a function: a function could see the data.")
        if lists_tuples(keys, len(names)):
            raise NotOffered(
                f"{verb} takes keys= column by column here. Combinations are for groupby, then unstack()."
            )
        levels: list[KeyBy | Sought] = []
        for i, column in enumerate(names):
            expr, name = self._named(column)
            if name is not None and name in self._session.snapshot.index.names:
                raise BadValue(
                    f"{name!r} is both a column and an index level, which pandas calls ambiguous. Rename one."
                )
            try:
                own = self._keys(expr, name, keys_of(keys, i, name, len(names)), verb)
            except MissingKeys:
                if verb != "groupby" or not self._searches:
                    raise
                levels.append(Sought(expr, name, sort, dropna))
                continue
            levels.append(KeyBy(expr, with_options(own, expr, sort, dropna)))
        groups = math.prod(len(level.keys) for level in levels if isinstance(level, KeyBy))
        if groups > GROUP_CEILING:
            raise BadValue(
                f"{groups} combinations of keys are more than {GROUP_CEILING}. Group by fewer columns."
            )
        return levels

    # Tables ---------------------------------------------------------------------------------------------------

    def pivot_table(
        self,
        values: Any = None,
        index: Any = None,
        columns: Any = None,
        aggfunc: Any = "mean",
        fill_value: Any = None,
        margins: bool = False,
        dropna: bool | None = None,
        margins_name: str = "All",
        observed: bool | None = None,
        sort: bool | None = None,
        *,
        keys: Any = None,
        bounds: Any = None,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame:
        """A table of aggregates by the keys of some columns, as pandas lays it out, in one release.

        Every listed key has its row or column, in the order of the list, so no cell is missing and ``fill_value`` has
        nothing to fill; ``sort=True`` sorts the keys. Margins are made of what is released, and cost nothing: counts
        and sums add up, and a mean is that of all the rows of its groups.

        Formal guarantee: epsilon-DP for its price, once for the whole table, since a row is in one cell of it
        (docs/guarantees/shapes.md).

        >>> df = pd.DataFrame({"state": ["CA", "NY", "CA"], "smoker": [True, False, False], "age": [30, 41, 50]})
        >>> p = df.dp.open(1e3, bounds={"age": (0, 110)}, keys={"state": ["CA", "NY"]})
        >>> p.pivot_table("age", "state", "smoker", aggfunc="sum", margins=True, epsilon=900)
        smoker  False  True  All
        state
        CA         50    30   80
        NY         41     0   41
        All        91    30  121
        """
        payment = checked(payment)
        _validate.flag(margins, "margins")
        check_options(True, observed, None)
        plan = _pivot.wanted(values, aggfunc, columns is not None, sort is not False)
        down, beside = self._sides(index, columns, keys, sort, dropna, "pivot_table")
        outs = tuple(self._wanted(w.column, w.aggregate, bounds, w.label) for w in plan)
        return cast(
            pd.DataFrame,
            self._pivot(outs, [w.label for w in plan], down, beside, margins, None, margins_name, payment),
        )

    def crosstab(
        self,
        index: Any,
        columns: Any,
        values: Any = None,
        rownames: Any = None,
        colnames: Any = None,
        aggfunc: Any = None,
        margins: bool = False,
        margins_name: str = "All",
        dropna: bool | None = None,
        normalize: Any = False,
        *,
        keys: Any = None,
        bounds: Any = None,
        **payment: Unpack[Payment],
    ) -> pd.DataFrame:
        """How many rows have each pair of keys, as ``pd.crosstab``; of ``values`` an aggregate, if both are given.

        ``index`` and ``columns`` are names of columns, or lists of them. ``normalize=True`` (or ``"index"``,
        ``"columns"``) divides the released counts by their total (or that of their row, or column): NaN where the
        noisy total is not positive. Margins add up.

        Formal guarantee: epsilon-DP for its price; the whole table of counts has sensitivity 1 (2 under replace-one).

        >>> df = pd.DataFrame({"state": ["CA", "NY", "CA"], "smoker": [True, False, False]})
        >>> p = df.dp.open(1000, keys={"state": ["CA", "NY"]})
        >>> p.crosstab("state", "smoker", margins=True, epsilon=900)
        smoker  False  True  All
        state
        CA          1     1    2
        NY          1     0    1
        All         2     1    3
        """
        payment = checked(payment)
        _validate.flag(margins, "margins")
        share = _pivot.normalize(normalize, values is not None)
        if (values is None) != (aggfunc is None):
            raise BadValue("crosstab takes values= and aggfunc= together, or neither for counts of rows.")
        down, beside = self._sides(index, columns, keys, None, dropna, "crosstab")
        out = Output("count", "size")
        if values is not None:
            out = self._wanted(values, _specs.aggregate_name(aggfunc), bounds, aggfunc)
        names = _pivot.names(rownames, down, "rownames"), _pivot.names(colnames, beside, "colnames")
        return cast(
            pd.DataFrame,
            self._pivot((out,), [()], down, beside, margins, share, margins_name, payment, names),
        )

    def _sides(
        self, index: Any, columns: Any, keys: Any, sort: bool | None, dropna: bool | None, verb: str
    ) -> tuple[tuple[By, ...], tuple[By, ...]]:
        """The groupings that stand at the left of a table, and those above it."""
        if index is None:
            raise BadValue(f"{verb} needs index=, a column or a list of columns whose keys are the rows.")
        rows = index if isinstance(index, list) else [index]
        above = columns if isinstance(columns, list) else [] if columns is None else [columns]
        wanted = [*rows, *above]
        if any(isinstance(column, pd.Grouper) for column in wanted):
            levels = self._groups(wanted, keys, sort, dropna, None, None)
        else:
            levels = tuple(self._levels(wanted, keys, sort, dropna, verb))
        sought = [one.name for one in levels if isinstance(one, Sought)]
        if sought:
            raise need_keys(sought[0], verb)
        levels = cast("tuple[By, ...]", levels)
        return levels[: len(rows)], levels[len(rows) :]

    def _pivot(
        self,
        outs: tuple[Output, ...],
        prefixes: list[Any],
        down: tuple[By, ...],
        beside: tuple[By, ...],
        margins: bool,
        share: str | None,
        margin: str,
        payment: Any,
        names: tuple[Any, Any] = (None, None),
    ) -> Any:
        if margins and any(out.aggregate in ("nunique", "people") for out in outs):
            raise NotOffered(
                "distinct values of groups do not add up to those of all: leave margins=True out."
            )
        index, above = cast("pd.Index[Any]", combined_index(down)), combined_index(beside)
        below = margins and share != "columns"
        right = margins and share != "index" and above is not None
        layout = Pivot(len(index), 1 if above is None else len(above), below, right, share)
        index = index if names[0] is None else index.set_names(names[0])
        if above is not None and names[1] is not None:
            above = above.set_names(names[1])
        rows = _pivot.with_margin(index, margin, margins) if below else index
        if right:
            above = _pivot.with_margin(above, margin, margins)
        columns = _pivot.header(prefixes, above)
        query = Query(outs, self._where, (*down, *beside))
        return self._ask(query, lambda r: _release.laid_out(r, layout, rows, columns), payment)


spell_out(Shapes)
