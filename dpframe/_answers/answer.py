"""Answers: numbers and pandas objects that know their plan, their interval and their receipt.

A grouped answer is a plain Series or DataFrame. Its receipt is one JSON text in ``attrs``, with the
plan, the noisy integers and where each number stands (`dpframe._answers.layout`). The seal of a
receipt is a digest of values, dtypes and labels: after any change of those the receipt no longer
describes the answer, and is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._answers.estimate import Correlation as Correlation
from dpframe._answers.estimate import FloatEstimate as FloatEstimate
from dpframe._answers.estimate import IntEstimate as IntEstimate
from dpframe._answers.layout import Across, Column, Columns, Grid, Layout, Levels, Pivot
from dpframe._answers.lineage import label_texts
from dpframe._answers.worth import T, blanked, telling
from dpframe._ledger.store import pack, receipt_text
from dpframe._plans.aggregates import Output
from dpframe._plans.durations import check_alike
from dpframe._plans.worth import PART
from dpframe._questions.question import SEVERAL, Release, check_noise_quickly, read_numbers

# Receipts ----------------------------------------------------------------------------------------------------

ANSWER = "dpframe_receipt"  # the key in `attrs` of what a session answered,
REPORTS = "dpframe_reports"  # of reports of rows,
ESTIMATE = "dpframe_estimate"  # and of estimates from them


def receipt_of(answer: Any, kind: str) -> str | None:
    """The text of an answer's receipt; None if it has none of this kind."""
    text = answer.attrs.get(kind)
    return text if isinstance(text, str) else None


class Attrs(dict[Hashable, Any]):
    """The ``attrs`` of an answer as it came. Its receipt is written when somebody does anything
    with the dict: writing takes a tenth of the time of a question, and most answers are read and
    forgotten.

    ``write`` returns the same text whenever it is called. Copies and pickles are plain dicts.
    """

    __slots__ = ("_write",)
    _write: Callable[[], str] | None

    def __init__(self, write: Callable[[], str]):
        super().__init__({ANSWER: ""})
        self._write = write

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return dict, (dict(self),)


def _looking(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of dict that writes the receipt first."""

    def look(self: Attrs, *args: Any, **words: Any) -> Any:
        write = self._write  # read once: another thread may be done with it meanwhile
        if write is not None:
            dict.__setitem__(self, ANSWER, write())
            self._write = None  # only now: a thread that looks in between writes the same
        return method(self, *args, **words)

    return look


# What does not look at what the dict holds.
_BLIND = {
    "__init__",
    "__new__",
    "__len__",
    "__getattribute__",
    "__sizeof__",
    "__class_getitem__",
    "fromkeys",
}
for _name in vars(dict).keys() - _BLIND - {"__doc__", "__hash__"}:
    setattr(Attrs, _name, _looking(getattr(dict, _name)))


def attach_receipt(
    answer: pd.Series[Any] | pd.DataFrame,
    release: Release,
    layout: Layout,
    arrays: Sequence[Any],
    labels: Sequence[Hashable] | None,
    index: pd.Index[Any],
    order: Any = None,
    skip: int = 0,
) -> None:
    """Gives an answer its receipt: a table with columns of these ``labels``, or a Series, which has
    none.

    The columns of a table are sealed one by one too, so that each can be taken alone; the first
    ``skip`` of them are keys. ``order`` is how the rows were rearranged after they were laid out.

    The receipt is written when it is looked at. Whatever can be changed until then, cells, labels
    and names, becomes bytes and texts here; the rest is frozen: the plan with the text of its
    draft, the integers, and what is known of the index.
    """
    plan, known = release.plan, _digest_of(index)
    names: Any = index.names if isinstance(index, pd.MultiIndex) else [index.name]
    written, rows = list(map(repr, names)), known.rows
    cells, texts = list(map(_cells_of, arrays)), list(map(str, labels or ()))
    # Rows are known by their labels, or by their keys, wherever these stand.
    if skip:
        names, rows = cast(Any, labels)[:skip], rows_of(pd.MultiIndex.from_arrays(arrays[:skip]))
    extra: dict[str, Any] = {
        "names": [None if name is None else str(name) for name in names],
        "columns": None
        if labels is None
        else [[label] if type(label) is str else label_texts(label) for label in labels[skip:]],
    }
    if plan._draft is None or plan._draft.cells is not plan.cells:
        plan.text  # noqa: B018  # written once for all, since its cells can be changed

    def write() -> str:
        whole, each = _sealed(known, written, cells, texts)
        fields = {"seal": whole, **extra}
        if release.rule.part != PART:
            fields["reliable"] = release.rule.part
        if plan.most is not None and plan.selects:  # by which choices are judged
            fields["most"] = plan.most
        if layout.computed:
            fields |= {"layout": layout.to_json(), "skip": skip}
        if labels is not None and (texts or layout.computed):
            fields["each"] = each[skip:]
        shape = "laid out series" if layout.computed and labels is None else layout.shape
        places = None if order is None else pack([order[None, :]])
        text = receipt_text(plan, release.raw, shape=shape, order=places, **fields)
        return f'{text[:-1]},"rows":{rows}}}'  # written once for each index

    object.__setattr__(
        answer, "_attrs", Attrs(write)
    )  # the property of pandas would make it a dict


class _Digest(NamedTuple):
    """What receipts say of an index."""

    of: pd.Index[Any]
    digest: bytes
    rows: str


# Answers over the same keys share one index object; held here, so that its id stays its own.
_digests: OrderedDict[int, _Digest] = OrderedDict()
# The names of common dtypes, which numpy is slow to write.
_DTYPES = {np.dtype(kind): np.dtype(kind).name for kind in (np.int64, np.float64)}


def seals(
    arrays: Sequence[Any], labels: Sequence[Hashable], index: pd.Index[Any]
) -> tuple[str, list[str]]:
    """Digests of values, dtypes and labels, so that a receipt goes with one answer only: that of
    all columns, and those of each column with its own label."""
    names, cells = list(map(repr, index.names)), list(map(_cells_of, arrays))
    return _sealed(_digest_of(index), names, cells, list(map(str, labels)))


def _cells_of(column: Any) -> bytes:
    """The values of a column and their dtype as bytes; moments in a zone are objects."""
    array: NDArray[Any] = column if isinstance(column, np.ndarray) else column.to_numpy()
    cells = array.tobytes() if array.dtype != object else "\x1f".join(map(str, array)).encode()
    return (_DTYPES.get(array.dtype) or str(array.dtype)).encode() + cells


def _sealed(
    index: _Digest, names: Sequence[str], columns: Sequence[bytes], labels: Sequence[str]
) -> tuple[str, list[str]]:
    """What `seals` returns, of texts and bytes. ``names`` are those of the index, which can be
    renamed in place."""
    start = hashlib.blake2b(index.digest + "\x1f".join(names).encode(), digest_size=16)
    whole, each = start.copy(), []
    for place, written in enumerate(columns):
        whole.update(written)
        if labels:
            one = start.copy()
            one.update(written + labels[place].encode())
            each.append(one.hexdigest())
    whole.update("\x1f".join(labels).encode())
    return whole.hexdigest(), each


def _digest_of(index: pd.Index[Any]) -> _Digest:
    """What receipts say of an index; of the last few it is known."""
    known = _digests.get(id(index))
    if known is None or known.of is not index:
        digest = hashlib.blake2b(digest_size=16)
        if isinstance(index, pd.IntervalIndex):
            digest.update(
                index.left.to_numpy().tobytes()
                + index.right.to_numpy().tobytes()
                + index.closed.encode()
            )
        elif isinstance(index.dtype, np.dtype) and index.dtype.kind in "iufb":
            digest.update(index.to_numpy().tobytes())
        else:
            digest.update("\x1f".join(map(str, index.to_numpy())).encode())
        several = isinstance(index, pd.MultiIndex)
        levels = cast(Any, index).levels if several else [index]
        texts = [
            list(map(str, level.tolist() if level.dtype.kind in "iu" else level.to_numpy()))
            for level in levels
        ]
        codes = [level.tolist() for level in cast(Any, index).codes] if several else None
        rows = json.dumps({"levels": texts, "codes": codes}, separators=(",", ":"))
        _digests[id(index)] = known = _Digest(index, digest.digest(), rows)
        while len(_digests) > 32:
            _digests.popitem(last=False)
    return known


def rows_of(index: pd.Index[Any]) -> str:
    """The labels of rows, as a receipt has them: the texts of each level, and of several levels the
    places in them."""
    return _digest_of(index).rows


def seal_of(answer: pd.Series[Any] | pd.DataFrame, labelled: bool) -> str:
    """The seal an answer would have. A Series may be renamed, or become the one column of a
    frame."""
    frame = answer.to_frame() if isinstance(answer, pd.Series) else answer
    arrays = [frame.iloc[:, i].to_numpy() for i in range(frame.shape[1])]
    return seals(arrays, list(frame.columns) if labelled else [], answer.index)[0]


# Series and tables -------------------------------------------------------------------------------------------


def values(release: Release, cell: int) -> Any:
    """The numbers of one output, an entry a group."""
    return read_numbers(release.plan, release.raw, cell)


# Every answer gets a view of the index: its names are the user's to change, and the session's own
# must not follow.


def _told(answer: T, release: Release, layout: Layout, values: list[Any]) -> T:
    """An answer as it came, or of a class that says what its numbers are worth, where there is
    something to say."""
    if 0 in answer.shape:
        return answer
    first = check_noise_quickly(release, release.raw, values, SEVERAL) if layout.by_output else None
    quiet = first is not None and not any(first) and not release.plan.caps
    return answer if quiet else telling(answer, release, layout, values, first)


def column(
    release: Release, layout: Layout, index: pd.Index[Any], name: Hashable, order: Any = None
) -> pd.Series[Any]:
    """The one column of a layout as a Series; ``order`` rearranges the rows."""
    values = layout.values(release.plan, release.raw)
    (data,) = blanked(release, layout, values) if release.rule.blank else values
    if data.dtype == object and not any(cell.duration for cell in release.plan.cells):
        data = data.astype(np.float64)  # noise beyond 63 bits, as in a table
    (data,) = layout.zoned(release.plan, [data])
    if order is not None:
        data, index = data[order], index[order]
    answer: pd.Series[Any] = pd.Series(data, index=index.view(), name=name)
    attach_receipt(answer, release, layout, [data], None, index, order)
    return _told(answer, release, layout, values)


def series(
    release: Release, index: pd.Index[Any], name: Hashable, order: Any = None
) -> pd.Series[Any]:
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


def ranked(
    release: Release, index: pd.Index[Any] | None, places: pd.Index[Any], name: Hashable
) -> pd.Series[Any]:
    """Several choices of one column: a row a place, within each group."""
    return column(release, Levels(), below(index, places), name)


def with_keys(answer: Any, keys: Sequence[Any]) -> Any:
    """An answer of places on lists of keys, with these keys in their stead; ``keys`` has None for
    an output of another kind.

    Its receipt is of the same release, and of the answer as it stands now.
    """
    record = json.loads(answer.attrs[ANSWER])
    skip = record.get("skip", 0)
    if isinstance(answer, pd.Series):
        shown: Any = pd.Series(
            keys[0].index.take(answer).array, index=answer.index, name=answer.name
        )
        arrays, labels = [shown.to_numpy()], []
    else:
        shown = answer.copy()
        for place, of in enumerate(keys):
            if of is not None:
                shown.isetitem(skip + place, of.index.take(answer.iloc[:, skip + place]).array)
        arrays, labels = (
            [shown.iloc[:, i].to_numpy() for i in range(shown.shape[1])],
            list(shown.columns),
        )
    record["seal"], each = seals(arrays, labels, shown.index)
    if "each" in record:
        record["each"] = each[skip:]
    shown.attrs = {**answer.attrs, ANSWER: json.dumps(record)}
    return shown


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
    found = values = [
        read_numbers(release.plan, release.raw, i) for i in range(len(release.plan.cells))
    ]
    if release.rule.blank:
        found = blanked(release, Columns(), values)
    # Python integers appear only at prices so small that noise leaves 63 bits; as doubles they are
    # still noise.
    data = [column if column.dtype != object else column.astype(np.float64) for column in found]
    if any(column.dtype.kind == "M" for column in data):
        data = Columns().zoned(release.plan, data)
    # Nobody else has these arrays, so that pandas need not copy them.
    answer = pd.DataFrame(dict(enumerate(data)), index=index.view(), copy=False)
    if all(type(label) is str for label in columns):  # 1 and True would be one entry
        answer.columns = _named(cast("tuple[str, ...]", tuple(columns))).view()
    else:  # as pandas makes them of a dict
        alike = len(set(columns)) < len(columns)
        answer.columns = (
            pd.Index(list(columns)) if alike else pd.DataFrame(dict.fromkeys(columns, ())).columns
        )
    attach_receipt(answer, release, Columns(), data, columns, index)
    return _told(answer, release, Columns(), values)


def laid_out(
    release: Release,
    layout: Layout,
    index: pd.Index[Any],
    columns: pd.Index[Any],
    whole: bool = True,
) -> pd.DataFrame:
    """A table in which outputs and groups stand as a layout says; without ``whole`` counts are
    floats too."""
    values = layout.values(release.plan, release.raw)
    data = blanked(release, layout, values) if release.rule.blank else values
    data = [
        _plain(column) if whole or column.dtype.kind in "mM" else column.astype(np.float64)
        for column in data
    ]
    data = layout.zoned(release.plan, data)
    answer = pd.DataFrame(dict(enumerate(data)), index=index.view())
    answer.columns = columns.view()
    attach_receipt(answer, release, layout, data, list(answer.columns), index)
    return _told(answer, release, layout, values)


def grid(
    outputs: Sequence[Output], places: Sequence[tuple[Hashable, Hashable]], whole: bool = True
) -> Callable[[Release, Any], Any]:
    """A table of outputs, each in the row and the column of its place, in the order in which these
    first appear; of groups one below the other."""
    for one in dict.fromkeys(column for _, column in places):
        check_alike(
            [out for out, (_, column) in zip(outputs, places, strict=True) if column == one]
        )
    rows = list(dict.fromkeys(row for row, _ in places))
    columns = list(dict.fromkeys(column for _, column in places))
    numbers = {place: i for i, place in enumerate(places)}
    layout = Grid(tuple(tuple(numbers.get((row, c), -1) for c in columns) for row in rows))
    index, across = pd.Index(rows, tupleize_cols=False), pd.Index(columns, tupleize_cols=False)
    return lambda r, groups: laid_out(r, layout, below(groups, index), across, whole)


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
    answer.attrs = {}  # it is another answer with the keys
    answer = answer.reset_index(names=list(levels))
    data = [answer.iloc[:, i].to_numpy() for i in range(answer.shape[1])]
    labels, skip = list(answer.columns), len(levels)
    attach_receipt(answer, release, Pivot(len(index)), data, labels, answer.index, skip=skip)
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
