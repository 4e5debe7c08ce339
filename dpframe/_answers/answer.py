"""Answers: numbers and pandas objects that know their plan, their interval and their receipt.

A grouped answer is a plain Series or DataFrame. Its receipt is one JSON text in ``attrs``, with the plan, the noisy integers and
where each number stands (`dpframe._answers.layout`). The seal of a receipt is a digest of values, dtypes and labels: after any
change of those the receipt no longer describes the answer, and is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe import plot as _plot
from dpframe._answers.derived import Computed, Operators

# Pickles of earlier versions name the kinds of numbers here.
from dpframe._answers.estimate import Correlation as Correlation
from dpframe._answers.estimate import FloatEstimate as FloatEstimate
from dpframe._answers.estimate import IntEstimate as IntEstimate
from dpframe._answers.estimate import only, title_of
from dpframe._answers.layout import Across, Column, Columns, Layout, Levels, Pivot, layout_from
from dpframe._answers.lineage import Kept, Released, deviations_of, ends_of, label_texts, reading
from dpframe._answers.table import Shown, Tabled
from dpframe._errors import BadValue
from dpframe._ledger.store import pack, receipt_text, unpack
from dpframe._plans.plan import Cost, Plan, all_choices, refuse_choices
from dpframe._plans.price import own_errors
from dpframe._questions.question import Release, numbers

# Receipts ----------------------------------------------------------------------------------------------------

ANSWER = "dpframe_receipt"  # the key in `attrs` of what a session answered,
REPORTS = "dpframe_reports"  # of reports of rows,
ESTIMATE = "dpframe_estimate"  # and of estimates from them


def receipt_of(answer: Any, kind: str) -> str | None:
    """The text of an answer's receipt; None if it has none of this kind."""
    text = answer.attrs.get(kind)
    return text if isinstance(text, str) else None


def receipt(
    release: Release,
    layout: Layout,
    arrays: Sequence[Any],
    labels: Sequence[Hashable] | None,
    index: pd.Index[Any],
    order: Any = None,
    skip: int = 0,
) -> str:
    """The receipt of an answer with these columns, or of a Series, which has no ``labels``.

    The columns of a table are sealed one by one too, so that each can be taken alone; the first ``skip`` of them are keys.
    ``order`` is how the rows were rearranged after they were laid out.
    """
    whole, each = seals(arrays, labels or (), index)
    # Rows are known by their labels, or by their keys, wherever these stand.
    names, rows = (
        (cast(Any, labels)[:skip], rows_of(pd.MultiIndex.from_arrays(arrays[:skip])))
        if skip
        else (index.names, _digests[id(index)].rows)
    )
    extra: dict[str, Any] = {
        "seal": whole,
        "names": [None if name is None else str(name) for name in names],
        "columns": None
        if labels is None
        else [[label] if type(label) is str else label_texts(label) for label in labels[skip:]],
    }
    if layout.computed:
        extra |= {"layout": layout.to_json(), "skip": skip}
    if labels is not None and (len(labels) or layout.computed):
        extra["each"] = each[skip:]
    shape = "laid out series" if layout.computed and labels is None else layout.shape
    places = None if order is None else pack([order[None, :]])
    text = receipt_text(release.plan, release.raw, shape=shape, order=places, **extra)
    return f'{text[:-1]},"rows":{rows}}}'  # written once for each index


class _Digest(NamedTuple):
    """What receipts say of an index."""

    of: pd.Index[Any]
    digest: bytes
    rows: str


# Answers over the same keys share one index object; held here, so that its id stays its own.
_digests: OrderedDict[int, _Digest] = OrderedDict()
_DTYPES = {
    np.dtype(kind): np.dtype(kind).name for kind in (np.int64, np.float64)
}  # numpy is slow to write a dtype


def seals(arrays: Sequence[Any], labels: Sequence[Hashable], index: pd.Index[Any]) -> tuple[str, list[str]]:
    """Digests of values, dtypes and labels, so that a receipt goes with one answer only: that of all columns, and those of
    each column with its own label."""
    known = _digests.get(id(index))
    if known is None or known.of is not index:
        digest = hashlib.blake2b(digest_size=16)
        if isinstance(index, pd.IntervalIndex):
            digest.update(
                index.left.to_numpy().tobytes() + index.right.to_numpy().tobytes() + index.closed.encode()
            )
        elif isinstance(index.dtype, np.dtype) and index.dtype.kind in "iufb":
            digest.update(index.to_numpy().tobytes())
        else:
            digest.update("\x1f".join(map(str, index.to_numpy())).encode())
        several = isinstance(index, pd.MultiIndex)
        texts = [
            list(map(str, level.to_numpy())) for level in (cast(Any, index).levels if several else [index])
        ]
        codes = [level.tolist() for level in cast(Any, index).codes] if several else None
        rows = json.dumps({"levels": texts, "codes": codes}, separators=(",", ":"))
        _digests[id(index)] = known = _Digest(index, digest.digest(), rows)
        while len(_digests) > 32:
            _digests.popitem(last=False)
    names = "\x1f".join(map(repr, index.names)).encode()  # an index can be renamed in place
    start = hashlib.blake2b(known.digest + names, digest_size=16)
    whole, each = start.copy(), []
    for place, array in enumerate(arrays):
        cells = array.tobytes() if array.dtype != object else "\x1f".join(map(str, array)).encode()
        written = (_DTYPES.get(array.dtype) or str(array.dtype)).encode() + cells
        whole.update(written)
        if labels:
            one = start.copy()
            one.update(written + str(labels[place]).encode())
            each.append(one.hexdigest())
    whole.update("\x1f".join(map(str, labels)).encode())
    return whole.hexdigest(), each


def rows_of(index: pd.Index[Any]) -> str:
    """The labels of rows, as a receipt has them: the texts of each level, and of several levels the places in them."""
    seals((), (), index)
    return _digests[id(index)].rows


def seal_of(answer: pd.Series[Any] | pd.DataFrame, labelled: bool) -> str:
    """The seal an answer would have. A Series may be renamed, or become the one column of a frame."""
    frame = answer.to_frame() if isinstance(answer, pd.Series) else answer
    arrays = [frame.iloc[:, i].to_numpy() for i in range(frame.shape[1])]
    return seals(arrays, list(frame.columns) if labelled else [], answer.index)[0]


# Series and tables -------------------------------------------------------------------------------------------


def values(release: Release, cell: int) -> Any:
    """The numbers of one output, an entry a group."""
    return numbers(release.plan, release.raw, cell)


# Every answer gets a view of the index: its names are the user's to change, and the session's own must not follow.


def column(
    release: Release, layout: Layout, index: pd.Index[Any], name: Hashable, order: Any = None
) -> pd.Series[Any]:
    """The one column of a layout as a Series; ``order`` rearranges the rows."""
    data = layout.values(release.plan, release.raw)[0]
    data = data if data.dtype != object else data.astype(np.float64)  # noise beyond 63 bits, as in a table
    if order is not None:
        data, index = data[order], index[order]
    answer: pd.Series[Any] = pd.Series(data, index=index.view(), name=name)
    answer.attrs[ANSWER] = receipt(release, layout, [data], None, index, order)
    return answer


def series(release: Release, index: pd.Index[Any], name: Hashable, order: Any = None) -> pd.Series[Any]:
    """One output, a row a group; ``order`` rearranges the rows."""
    return column(release, Column(), index, name, order)


def across(release: Release, index: pd.Index[Any], name: Hashable = None) -> pd.Series[Any]:
    """Several outputs without groups: a row an output."""
    return column(release, Across(), index, name)


def proportions(
    release: Release, layout: Layout, index: pd.Index[Any], name: Hashable, order: Any = None
) -> pd.Series[Any]:
    """Counts divided by their total, a row a group."""
    return column(release, layout, index, name, order)


def levels(
    release: Release, index: pd.Index[Any] | None, given: Sequence[float], name: Hashable
) -> pd.Series[Any]:
    """Several quantiles of one column: a row a level, within each group if there are groups."""
    return column(release, Levels(), below(index, pd.Index(given, dtype=np.float64)), name)


def below(index: pd.Index[Any] | None, rows: pd.Index[Any]) -> pd.Index[Any]:
    """Some rows within each group, if there are groups: a level more."""
    if isinstance(index, pd.MultiIndex):
        # Combinations may be listed ones, so these are their rows and not a product.
        parts = [index.get_level_values(i).repeat(len(rows)) for i in range(index.nlevels)]
        return pd.MultiIndex.from_arrays(
            [*parts, pd.Index(np.tile(rows, len(index)))], names=[*index.names, rows.name]
        )
    return rows if index is None else pd.MultiIndex.from_product([index, rows])


@lru_cache(maxsize=256)
def _named(labels: tuple[str, ...]) -> pd.Index[Any]:
    """Texts as the columns of a table, which pandas takes longer to make than the rest of it."""
    return pd.Index(labels)


def table(release: Release, index: pd.Index[Any], columns: Sequence[Hashable]) -> pd.DataFrame:
    """Several outputs of several groups."""
    found = [numbers(release.plan, release.raw, i) for i in range(len(release.plan.cells))]
    # Python integers appear only at prices so small that noise leaves 63 bits; as doubles they are still noise.
    data = [column if column.dtype != object else column.astype(np.float64) for column in found]
    answer = pd.DataFrame(
        dict(enumerate(data)), index=index.view(), copy=False
    )  # nobody else has these arrays
    if all(type(label) is str for label in columns):  # 1 and True would be one entry
        answer.columns = _named(cast("tuple[str, ...]", tuple(columns))).view()
    else:  # as pandas makes them of a dict
        alike = len(set(columns)) < len(columns)
        answer.columns = (
            pd.Index(list(columns)) if alike else pd.DataFrame(dict.fromkeys(columns, ())).columns
        )
    answer.attrs[ANSWER] = receipt(release, Columns(), data, columns, index)
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
    answer.attrs[ANSWER] = receipt(release, layout, data, list(answer.columns), index)
    return answer


def by_levels(
    release: Release, index: pd.Index[Any], columns: pd.Index[Any], whole: bool = True
) -> pd.DataFrame:
    """Several outputs of several groups, whose names may be pairs: levels of the columns."""
    return laid_out(release, Pivot(len(index)), index, columns, whole)


def flat(
    release: Release, index: pd.Index[Any], columns: Sequence[Hashable], levels: Sequence[Hashable]
) -> pd.DataFrame:
    """Several outputs of several groups, whose keys are columns: ``as_index=False``."""
    answer = table(release, index, columns)
    answer.columns = columns_of(columns)
    answer.attrs.clear()
    answer = answer.reset_index(names=list(levels))
    data = [answer.iloc[:, i].to_numpy() for i in range(answer.shape[1])]
    labels, skip = list(answer.columns), len(levels)
    answer.attrs[ANSWER] = receipt(release, Pivot(len(index)), data, labels, answer.index, skip=skip)
    return answer


def columns_of(labels: Sequence[Hashable]) -> pd.Index[Any]:
    """Labels as pandas would have them: pairs are levels."""
    pairs = [label for label in labels if isinstance(label, tuple)]
    if pairs and len(pairs) == len(labels):
        return pd.MultiIndex.from_tuples(pairs)
    return pd.Index(list(labels), tupleize_cols=False)


def _plain(data: Any) -> Any:
    """Python integers as int64 where they fit, as doubles where noise is wider than that."""
    if data.dtype != object:
        return data
    return data.astype(np.int64 if all(abs(int(x)) < 2**63 for x in data) else np.float64)


class Answer(Operators, Tabled):
    """``answer.dp`` of a released Series or DataFrame, or of what was made of some: its interval, its plan, its cost."""

    def __init__(self, answer: pd.Series[Any] | pd.DataFrame, text: str):
        self._answer, self._text = answer, text
        self._taken: int | None = None  # of a table this column is left
        self._moved: Kept | None = None  # where the answer is no longer, or never was, as it came
        origin: Computed | Released | None = None
        with reading(text, "this answer") as receipt:
            if "derived" in receipt:
                origin = Computed(receipt, text)
            else:
                sealed, self._labelled = receipt["seal"], receipt["shape"] == Columns.shape
                self._layout: Layout = layout_from(receipt)
                if isinstance(answer, pd.Series) and self._labelled:
                    own = seals([answer.to_numpy()], [answer.name], answer.index)[0]
                    self._taken = next(
                        (i for i, one in enumerate(receipt.get("each", ())) if one == own), None
                    )
                if self._taken is None and sealed != seal_of(answer, self._labelled):
                    origin = Released(receipt, text)
        if origin is not None:
            self._moved = Kept(origin, answer)
            self._labelled, self._keys = isinstance(answer, pd.DataFrame), self._moved.keys
            self._layout = origin.layout if isinstance(origin, Released) else Columns()
            self._cells = self._moved.cells
            return
        self._order, self._keys = receipt.get("order"), receipt.get("skip", 0)
        self._plan = Plan.from_json(receipt["plan"])
        self._raw = tuple(unpack(receipt["raw"]))
        alone = self._taken is not None and not self._layout.computed
        self._cells = (self._plan.cells[cast(int, self._taken)],) if alone else self._plan.cells

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the releases that it is made of: one, unless it was computed from several."""
        return (self._plan,) if self._moved is None else self._moved.origin.plans

    @property
    def plan(self) -> Plan:
        """What was asked, with which mechanism, scale and price; of the release that it is made of, if there is one."""
        return only(self.plans)

    @property
    def cost(self) -> Cost:
        """What this release guarantees by itself: ``epsilon`` and ``delta``. The ledger counts it by its accountant.

        Whatever was made of it adds nothing. Refused where it was computed from several releases.
        """
        return self.plan.cost

    def interval(self, level: float = 0.95, at_once: bool = False) -> pd.DataFrame:
        """Columns ``lower`` and ``upper``, a row as the answer has them; for a table, under each column's name.

        Each interval covers the noise of its own number with probability ``level``; with ``at_once`` all of them do, together
        (docs/guarantees/accuracy.md#many-answers-at-once). Choices such as medians have none: NaN beside others. A column
        that is taken from a table keeps its interval.
        """
        level = _validate.level(level)
        refuse_choices(self._cells)
        pairs = self._ends(level, _validate.flag(at_once, "at_once"))
        index = self._answer.index
        if isinstance(self._answer, pd.DataFrame) and self._labelled:
            shown = self._answer.columns[self._keys :]
            parts = [pd.DataFrame({"lower": low, "upper": high}, index=index) for low, high in pairs]
            return pd.concat(parts, axis=1, keys=list(shown))
        low, high = pairs[0]
        return pd.DataFrame({"lower": low, "upper": high}, index=index)

    def _ends(self, level: float, at_once: bool) -> list[Any]:
        """The ends of the interval of each column of numbers."""
        if self._moved is not None:
            return self._moved.ends(level, at_once)
        size = self._answer.size - self._keys * len(self._answer)
        pairs = ends_of(self._plan, self._raw, self._layout, level, at_once, size)
        return self._as_shown([cast(Any, [self._ordered(side) for side in pair]) for pair in pairs])

    def _ordered(self, column: Any) -> Any:
        moved = self._order is not None and isinstance(column, np.ndarray)
        return column[unpack(self._order)[0][0]] if moved else column

    def _as_shown(self, columns: list[Any]) -> list[Any]:
        return columns if self._taken is None else [columns[self._taken]]

    # What tables and operators need.

    def _shown(self, level: float, at_once: bool) -> Shown:
        if self._moved is not None:
            deviations = self._moved.deviations()
        else:
            known = deviations_of(
                self._plan, self._raw, self._layout, len(self._layout.values(self._plan, self._raw))
            )
            deviations = self._as_shown([self._ordered(one) for one in known])
        measure = str(title_of(self._cells[0])) if len(self.plans) == 1 else "value"
        caption = "; ".join(f"{plan.question} ({plan._alone})" for plan in self.plans)
        return Shown(self._answer, self._ends(level, at_once), deviations, caption, measure, self._keys)

    def _kept(self) -> Kept:
        if self._moved is not None:
            return self._moved
        return Kept(Released(json.loads(self._text), self._text), self._answer)

    def _marked(self, answer: Any, receipt: dict[str, Any], keys: int) -> Any:
        labels = None if isinstance(answer, pd.Series) else list(answer.columns)
        index: Any = answer.index
        if labels is not None and keys:
            index = pd.MultiIndex.from_arrays(
                [answer.iloc[:, i].array for i in range(keys)], names=labels[:keys]
            )
        text = json.dumps(
            {
                "version": 1,
                **receipt,
                "skip": keys,
                "names": [None if name is None else str(name) for name in index.names],
                "columns": None if labels is None else [label_texts(label) for label in labels[keys:]],
            },
            separators=(",", ":"),
        )
        answer.attrs[ANSWER] = f'{text[:-1]},"rows":{rows_of(index)}}}'
        return answer

    def _of(self, answer: Any) -> Answer | None:
        text = receipt_of(answer, ANSWER)
        return None if text is None else Answer(answer, text)

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
        return _plot.picture(
            self._answer,
            None if all_choices(self._cells) else self.interval(level, at_once),
            kind=kind,
            ax=ax,
            levels=self._layout.by_level,
            keys=self._keys,
            title=str(title_of(self._cells[0]) if name is None else name),
            options=kwargs,
            apart=isinstance(self._answer, pd.DataFrame) and len({c.aggregate for c in self._cells}) > 1,
        )

    def __repr__(self) -> str:
        if len(self.plans) > 1:
            return f"computed from {len(self.plans)} releases; .interval(), .table(), .plot(), .plans"
        return (
            f"the answer to {self.plan.question}, epsilon {self.plan.epsilon:.4g}; .interval(), .table(), .plan, "
            ".plot(), .cost"
        )


own_errors(Answer, object)
