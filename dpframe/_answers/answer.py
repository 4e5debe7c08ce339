"""Answers: numbers and pandas objects that know their plan and their interval.

A grouped answer is a plain Series or DataFrame. Its receipt (the plan and the noisy integers, as one JSON
string in ``attrs``) is bound to the values and the index it came with: after any change it is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd

from dpframe import _drawing, _validate
from dpframe._answers.estimate import Estimate, FloatEstimate, IntEstimate, interval_of, levels_shown
from dpframe._answers.layout import Layout, Pivot, layout_from
from dpframe._errors import BadValue
from dpframe._ledger.records import pack, receipt_text, unpack
from dpframe._plans.aggregates import AGGREGATES
from dpframe._plans.plan import Cost, Plan, all_choices, measured, refuse_choices
from dpframe._questions.question import Release
from dpframe._refusals import own_errors

ATTR = "dpframe_receipt"


def values(release: Release, cell: int) -> Any:
    """The answers of one output, an entry a group, as int64 or float64 by the plan alone."""
    one = release.plan.cells[cell]
    found = AGGREGATES[one.aggregate].value(measured(release.plan, release.raw, one))
    return found if found.dtype == object else found.astype(np.int64 if one.whole else np.float64)


def scalar(release: Release, cell: int = 0) -> Estimate:
    """The answer to a question without groups."""
    value = values(release, cell)[0]
    if release.plan.cells[cell].whole:
        return IntEstimate(int(value), release.plan, release.raw)
    return FloatEstimate(float(value), release.plan, release.raw)


# Every answer gets a view of the index: its names are the user's to change, and the session's own must not follow.


def series(release: Release, index: pd.Index[Any], name: Hashable, order: Any = None) -> pd.Series[Any]:
    """One output, a row a group; ``order`` rearranges the rows."""
    data = _storable(values(release, 0))
    if order is not None:
        data, index = data[order], index[order]
    answer: pd.Series[Any] = pd.Series(data, index=index.view(), name=name)
    answer.attrs[ATTR] = _receipt(release, "series", [data], [], index, order)
    return answer


def across(release: Release, index: pd.Index[Any], name: Hashable = None) -> pd.Series[Any]:
    """Several outputs without groups: a row an output."""
    data = _storable(np.array([values(release, i)[0] for i in range(len(release.plan.cells))]))
    answer: pd.Series[Any] = pd.Series(data, index=index.view(), name=name)
    answer.attrs[ATTR] = _receipt(release, "across", [data], [], index)
    return answer


def table(release: Release, index: pd.Index[Any], columns: Sequence[Hashable]) -> pd.DataFrame:
    """Several outputs of several groups."""
    data = [_storable(values(release, i)) for i in range(len(columns))]
    answer = pd.DataFrame(dict(zip(columns, data, strict=True)), index=index.view())
    answer.attrs[ATTR] = _receipt(release, "table", data, columns, index)
    return answer


def laid_out(
    release: Release,
    layout: Layout,
    index: pd.Index[Any],
    columns: pd.Index[Any],
    whole: bool = True,
) -> pd.DataFrame:
    """A table in which outputs and groups stand as a layout says; without ``whole`` counts are floats too."""
    data = layout.values(release.plan, release.raw)
    data = [_plain(column) if whole else column.astype(np.float64) for column in data]
    answer = pd.DataFrame(dict(enumerate(data)), index=index.view())
    answer.columns = columns.view()
    return _sealed(answer, release, layout, 0)


def flat(
    release: Release, index: pd.Index[Any], columns: Sequence[Hashable], levels: Sequence[Hashable]
) -> pd.DataFrame:
    """Several outputs of several groups, whose keys are columns: ``as_index=False``."""
    answer = table(release, index, columns)
    answer.columns = columns_of(columns)
    answer.attrs.clear()
    answer = answer.reset_index(names=list(levels))
    return _sealed(answer, release, Pivot(len(index)), len(levels))


def proportions(
    release: Release, layout: Pivot, index: pd.Index[Any], name: Hashable, order: Any = None
) -> pd.Series[Any]:
    """Counts divided by their total, a row a group."""
    data, places = layout.values(release.plan, release.raw)[0], None
    if order is not None:
        data, index, places = data[order], index[order], pack([order[None, :]])
    answer: pd.Series[Any] = pd.Series(data, index=index.view(), name=name)
    seal = _seal([data], [], index)
    layouts = {"layout": layout.to_json(), "skip": 0}
    answer.attrs[ATTR] = receipt_text(
        release.plan, release.raw, shape="laid out series", order=places, seal=seal, **layouts
    )
    return answer


def columns_of(labels: Sequence[Hashable]) -> pd.Index[Any]:
    """Labels as pandas would have them: pairs are levels."""
    pairs = [label for label in labels if isinstance(label, tuple)]
    if pairs and len(pairs) == len(labels):
        return pd.MultiIndex.from_tuples(pairs)
    return pd.Index(list(labels), tupleize_cols=False)


def _sealed(answer: pd.DataFrame, release: Release, layout: Layout, skip: int) -> pd.DataFrame:
    seal, shown = _seal_of(answer, "table"), range(skip, answer.shape[1])
    own = [_seal([answer.iloc[:, i].to_numpy()], [answer.columns[i]], answer.index) for i in shown]
    layouts = {"layout": layout.to_json(), "skip": skip, "each": own}
    answer.attrs[ATTR] = receipt_text(
        release.plan, release.raw, shape="table", order=None, seal=seal, **layouts
    )
    return answer


def _plain(data: Any) -> Any:
    """Python integers as int64 where they fit, as doubles where noise is wider than that."""
    if data.dtype != object:
        return data
    return data.astype(np.int64 if all(abs(int(x)) < 2**63 for x in data) else np.float64)


def levels(
    release: Release, index: pd.Index[Any] | None, given: Sequence[float], name: Hashable
) -> pd.Series[Any]:
    """Several quantiles of one column: a row a level, within each group if there are groups."""
    data = np.stack([values(release, i) for i in range(len(given))], axis=1).ravel()
    places: pd.Index[Any] = pd.Index(given, dtype=np.float64)
    if isinstance(index, pd.MultiIndex):
        # Combinations may be listed ones, so these are their rows and not a product.
        parts = [index.get_level_values(i).repeat(len(given)) for i in range(index.nlevels)]
        shares = pd.Index(np.tile(places, len(index)))
        places = pd.MultiIndex.from_arrays([*parts, shares], names=[*index.names, None])
    elif index is not None:
        places = pd.MultiIndex.from_product([index, places])
    answer: pd.Series[Any] = pd.Series(data, index=places, name=name)
    answer.attrs[ATTR] = _receipt(release, "levels", [data], [], places)
    return answer


def _storable(data: Any) -> Any:
    # Python integers appear only at prices so small that noise leaves 63 bits; as doubles they are still noise.
    return data.astype(np.float64) if data.dtype == object else data


def _receipt(
    release: Release,
    shape: str,
    arrays: Sequence[Any],
    labels: Sequence[Hashable],
    index: pd.Index[Any],
    order: Any = None,
) -> str:
    places = None if order is None else pack([order[None, :]])
    seal = _seal(arrays, labels, index)
    own = [_seal([data], [label], index) for data, label in zip(arrays, labels, strict=False)]
    each = {"each": own} if own else {}
    return receipt_text(release.plan, release.raw, shape=shape, order=places, seal=seal, **each)


def _seal(arrays: Sequence[Any], labels: Sequence[Hashable], index: pd.Index[Any]) -> str:
    """A digest of values, dtypes and labels, so that a receipt goes with one answer only."""
    digest = hashlib.blake2b(_index_digest(index), digest_size=16)
    for array in arrays:
        cells = array.tobytes() if array.dtype != object else "\x1f".join(map(str, array)).encode()
        digest.update(str(array.dtype).encode() + cells)
    digest.update("\x1f".join(map(str, labels)).encode())
    return digest.hexdigest()


def _seal_of(answer: pd.Series[Any] | pd.DataFrame, shape: str) -> str:
    """The seal an answer would have. A Series may be renamed, or become the one column of a frame."""
    frame = answer.to_frame() if isinstance(answer, pd.Series) else answer
    arrays = [frame.iloc[:, i].to_numpy() for i in range(frame.shape[1])]
    return _seal(arrays, list(frame.columns) if shape == "table" else [], answer.index)


# Answers over the same keys share one index object; held here, so that its id stays its own.
_digests: OrderedDict[int, tuple[pd.Index[Any], bytes]] = OrderedDict()


def _index_digest(index: pd.Index[Any]) -> bytes:
    names = "\x1f".join(map(repr, index.names)).encode()  # an index can be renamed in place
    known = _digests.get(id(index))
    if known is not None and known[0] is index:
        return known[1] + names
    digest = hashlib.blake2b(digest_size=16)
    if isinstance(index, pd.IntervalIndex):
        digest.update(
            index.left.to_numpy().tobytes() + index.right.to_numpy().tobytes() + index.closed.encode()
        )
    elif isinstance(index.dtype, np.dtype) and index.dtype.kind in "iufb":
        digest.update(index.to_numpy().tobytes())
    else:
        digest.update("\x1f".join(map(str, index.to_numpy())).encode())
    _digests[id(index)] = index, digest.digest()
    while len(_digests) > 32:
        _digests.popitem(last=False)
    return digest.digest() + names


class Answer:
    """``answer.dp`` of a released Series or DataFrame: its interval, its plan, its cost."""

    def __init__(self, answer: pd.Series[Any] | pd.DataFrame, text: str):
        try:
            receipt = json.loads(text)
            seal, shape = receipt["seal"], receipt["shape"]
        except (ValueError, KeyError, TypeError):
            raise BadValue("the receipt of this answer is not one that dpframe wrote.") from None
        self._taken: int | None = None  # of a table this column is left
        if isinstance(answer, pd.Series) and shape == "table":
            own, each = _seal([answer.to_numpy()], [answer.name], answer.index), receipt.get("each", ())
            self._taken = next((i for i, one in enumerate(each) if one == own), None)
        if self._taken is None and seal != _seal_of(answer, shape):
            raise BadValue(
                "the values or the labels of this answer have changed since it was released, so its receipt no "
                "longer describes it. Ask the answer as it came: keep it in a variable of its own."
            )
        self._answer = answer
        self._receipt = receipt
        self._plan = Plan.from_json(receipt["plan"])
        self._raw = tuple(unpack(receipt["raw"]))
        alone = self._taken is not None and "layout" not in receipt
        self._cells = (self._plan.cells[cast(int, self._taken)],) if alone else self._plan.cells

    @property
    def plan(self) -> Plan:
        """What was asked, with which mechanism, scale and price."""
        return self._plan

    @property
    def cost(self) -> Cost:
        """What this release guarantees by itself: ``epsilon`` and ``delta``. The ledger counts it by its accountant."""
        return self._plan.cost

    def interval(self, level: float = 0.95, at_once: bool = False) -> pd.DataFrame:
        """Columns ``lower`` and ``upper``, a row as the answer has them; for a table, under each column's name.

        Each interval covers the noise of its own number with probability ``level``; with ``at_once`` all of them do, together
        (docs/guarantees/accuracy.md#many-answers-at-once). Choices such as medians have none: NaN beside others. A column
        that is taken from a table keeps its interval.
        """
        level = _validate.level(level)
        refuse_choices(self._cells)
        if _validate.flag(at_once, "at_once"):
            # Margins and proportions are numbers beyond those of the groups, so there it is the union bound over what is shown.
            many = 1 - (1 - level) / max(self._answer.size, 1)
            level = min(many, 1 - 2.0**-53) if "layout" in self._receipt else self._plan.level_each(level)
        if "layout" in self._receipt:
            return self._laid_out(level)
        pairs = [interval_of(self._plan, self._raw, i, level) for i in range(len(self._plan.cells))]
        index = self._answer.index
        if self._receipt["shape"] == "across":
            low, high = (np.array([p[side][0] for p in pairs]) for side in (0, 1))
            return pd.DataFrame({"lower": low, "upper": high}, index=index)
        if self._receipt["shape"] == "levels":
            low, high = (np.stack([p[side] for p in pairs], axis=1).ravel() for side in (0, 1))
            return pd.DataFrame({"lower": low, "upper": high}, index=index)
        if self._receipt["shape"] == "series":
            order = self._receipt["order"]
            low, high = pairs[0] if order is None else (side[unpack(order)[0][0]] for side in pairs[0])
            return pd.DataFrame({"lower": low, "upper": high}, index=index)
        return self._columns(pairs, 0)

    def _columns(self, pairs: Sequence[Any], skip: int) -> pd.DataFrame:
        """Both ends under each column's name; of one column that was taken, alone."""
        index = self._answer.index
        if self._taken is not None:
            low, high = pairs[self._taken]
            return pd.DataFrame({"lower": low, "upper": high}, index=index)
        shown = cast(pd.DataFrame, self._answer).iloc[:, skip:]
        parts = [pd.DataFrame({"lower": low, "upper": high}, index=index) for low, high in pairs]
        return pd.concat(parts, axis=1, keys=list(shown.columns))

    def _laid_out(self, level: float) -> pd.DataFrame:
        layout = layout_from(self._receipt["layout"])
        each = levels_shown(self._plan, self._raw, level)
        if each is not None and getattr(layout, "normalize", None) is not None:
            level, each = float(each.min(initial=level)), None  # a total has the noise of all
        pairs = layout.interval(self._plan, self._raw, level)
        if each is not None:
            pairs = [interval_of(self._plan, self._raw, i, level) for i in range(len(pairs))]
        order, index = self._receipt["order"], self._answer.index
        if self._receipt["shape"] == "table":
            return self._columns(pairs, self._receipt["skip"])
        low, high = pairs[0] if order is None else (side[unpack(order)[0][0]] for side in pairs[0])
        return pd.DataFrame({"lower": low, "upper": high}, index=index)

    def plot(
        self,
        kind: str | None = None,
        ax: Any = None,
        level: float = 0.95,
        at_once: bool = False,
        **kwargs: Any,
    ) -> Any:
        """The answer with its intervals, as pandas would plot it; takes and returns matplotlib axes.

        Bars with error bars for groups, bins to scale for a histogram, a line with a band for times and quantiles; or the
        ``kind`` asked for: ``"bar"``, ``"barh"``, ``"hist"`` or ``"line"``. Error bars are `interval` at ``level``, with
        ``at_once`` for all together; quantiles that were chosen have none. The columns of a table have axes each, which come as
        an array, with ``subplots=True``, or if some are counts and others means, say; ``subplots=False`` and ``ax=`` put them
        into one. ``y=`` names columns to draw. Other words go to pandas. It draws what was released and costs nothing.
        """
        if not isinstance(self._answer, pd.Series) and self._answer.shape[1] == 0:
            raise BadValue("this answer has no columns to draw.")
        level = _validate.level(level)
        name = self._answer.name if isinstance(self._answer, pd.Series) else None
        return _drawing.picture(
            self._answer,
            None if all_choices(self._cells) else self.interval(level, at_once),
            kind=kind,
            ax=ax,
            levels=self._receipt["shape"] == "levels",
            keys=self._receipt.get("skip", 0),
            title=str(_title(self._plan.cells[0]) if name is None else name),
            options=kwargs,
            apart=isinstance(self._answer, pd.DataFrame) and len({c.aggregate for c in self._plan.cells}) > 1,
        )

    def __repr__(self) -> str:
        return f"the answer to {self._plan.question}, epsilon {self._plan.epsilon:.4g}; .interval(), .plan, .plot(), .cost"


def _title(cell: Any) -> str:
    """What an answer without a name counts."""
    return "rows" if cell.aggregate == "size" and cell.name == "size" else str(cell.name)


def receipt_of(answer: pd.Series[Any] | pd.DataFrame) -> str | None:
    text = answer.attrs.get(ATTR)
    return text if isinstance(text, str) else None


own_errors(Answer, object)
