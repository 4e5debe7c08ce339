"""Receipts: the JSON texts in ``attrs`` of answers, and the seals that bind them.

A receipt holds the plan, the noisy integers, and where each number stands. Its seal is a digest of
values, dtypes and labels. After any change of those the receipt no longer describes the answer.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, cast

import numpy as np
import pandas as pd

from dpframe._answers.layout import AnswerLayout, ShownColumn
from dpframe._errors import BadValue
from dpframe._ledger.store import pack, receipt_text
from dpframe._plans.worth import PART
from dpframe._questions.question import Release
from dpframe._types import Index, Json, PandasAnswer, Places

# The keys in `attrs`, by what the receipt is of.
ANSWER = "dpframe_receipt"  # an answer of a session
REPORTS = "dpframe_reports"  # reports of rows
FIXED = "dpframe_fixed"  # names and labels of levels with one label, which pandas drops
ESTIMATE = "dpframe_estimate"  # an estimate from such reports
LINE = "dpframe_line"  # no receipt: the line to write for what pandas computed from an answer


def get_receipt(answer: PandasAnswer, kind: str) -> str | None:
    """Return the text of an answer's receipt; None if it has no receipt of this kind."""
    text = answer.attrs.get(kind)
    return text if isinstance(text, str) else None


@contextmanager
def refuse_foreign_receipt(owner: str) -> Iterator[None]:
    """Refuse a receipt that dpframe did not write, if reading it fails inside the block.

    ``owner`` names its object in the message.
    """
    try:
        yield
    except (ValueError, KeyError, TypeError):
        raise BadValue(f"the receipt of {owner} is not one that dpframe wrote.") from None


# Labels -----------------------------------------------------------------------------------------


def to_texts(labels: Index | pd.api.extensions.ExtensionArray | Sequence[Hashable]) -> list[str]:
    """Return labels as texts, as a receipt holds them."""
    return list(map(str, pd.Index(labels).to_numpy()))


def split_label(label: Hashable) -> list[str]:
    """Return the label of a column as texts, one for each of its levels."""
    parts = label if isinstance(label, tuple) else (label,)
    return [text for part in parts for text in to_texts(pd.Index([part], tupleize_cols=False))]


# Seals ------------------------------------------------------------------------------------------


class IndexDigest(NamedTuple):
    """The facts of an index that receipts hold."""

    of: Index
    digest: bytes
    rows: str  # the labels as JSON


# Answers over the same keys share one index object. It is held here, so that its id stays its own.
_digests: OrderedDict[int, IndexDigest] = OrderedDict()
# The names of common dtypes, which numpy is slow to write.
_DTYPES = {np.dtype(kind): np.dtype(kind).name for kind in (np.int64, np.float64)}


def digest_index(index: Index) -> IndexDigest:
    """Return the digest and the labels of an index, for seals and receipts.

    The last few are remembered.
    """
    known = _digests.get(id(index))
    if known is None or known.of is not index:
        if isinstance(index, pd.IntervalIndex):
            ends = index.left.to_numpy().tobytes() + index.right.to_numpy().tobytes()
            cells = ends + index.closed.encode()
        elif isinstance(index.dtype, np.dtype) and index.dtype.kind in "iufb":
            cells = index.to_numpy().tobytes()
        else:
            cells = "\x1f".join(map(str, index.to_numpy())).encode()
        digest = hashlib.blake2b(cells, digest_size=16).digest()
        _digests[id(index)] = known = IndexDigest(index, digest, _write_labels(index))
        while len(_digests) > 32:
            _digests.popitem(last=False)
    return known


def _write_labels(index: Index) -> str:
    """Return the labels of an index as JSON: the texts of each level, and which of them each row
    has."""
    levels, codes = [index], None
    if isinstance(index, pd.MultiIndex):
        levels, codes = list(index.levels), [level.tolist() for level in index.codes]
    texts = [
        list(map(str, level.tolist() if level.dtype.kind in "iu" else level.to_numpy()))
        for level in levels
    ]
    return json.dumps({"levels": texts, "codes": codes}, separators=(",", ":"))


def seal_columns(
    columns: Sequence[ShownColumn], labels: Sequence[Hashable], index: Index
) -> tuple[str, list[str]]:
    """Return the seal of all columns together, and the seal of each column with its label.

    A seal is a digest that shows whether an answer was changed after its release.
    """
    names = "\x1f".join(map(repr, index.names))
    start = hashlib.blake2b(digest_index(index).digest + names.encode(), digest_size=16)
    whole, each = start.copy(), []
    texts = list(map(str, labels))
    for place, column in enumerate(columns):
        array = column if isinstance(column, np.ndarray) else column.to_numpy()
        # Moments in a zone are objects.
        cells = array.tobytes() if array.dtype != object else "\x1f".join(map(str, array)).encode()
        cells = (_DTYPES.get(array.dtype) or str(array.dtype)).encode() + cells
        whole.update(cells)
        if texts:
            one = start.copy()
            one.update(cells + texts[place].encode())
            each.append(one.hexdigest())
    whole.update("\x1f".join(texts).encode())
    return whole.hexdigest(), each


def seal_answer(answer: PandasAnswer, labelled: bool) -> str:
    """Return the seal of an answer as it stands; ``labelled`` says that its columns have labels.

    A Series may be renamed, or become the one column of a frame, and keep its seal.
    """
    frame = answer.to_frame() if isinstance(answer, pd.Series) else answer
    columns = [frame.iloc[:, i].to_numpy() for i in range(frame.shape[1])]
    return seal_columns(columns, list(frame.columns) if labelled else [], answer.index)[0]


# Writing ----------------------------------------------------------------------------------------


def attach_receipt(
    answer: PandasAnswer,
    release: Release,
    layout: AnswerLayout,
    columns: Sequence[ShownColumn],
    labels: Sequence[Hashable] | None,
    index: Index,
    order: Places | None = None,
    skip: int = 0,
) -> None:
    """Give an answer its receipt.

    ``labels`` are those of the columns of a table; a Series has None. The columns of a table are
    sealed one by one too, so that each can be taken alone. The first ``skip`` columns are keys.
    ``order`` tells how the rows were rearranged after they were laid out.
    """
    plan = release.plan
    names: Sequence[Hashable] = index.names
    rows = digest_index(index).rows
    if skip:  # rows are known by their keys, wherever these stand
        names = cast("Sequence[Hashable]", labels)[:skip]
        rows = digest_index(pd.MultiIndex.from_arrays(columns[:skip])).rows
    whole, each = seal_columns(columns, labels or (), index)
    fields: Json = {
        "seal": whole,
        "names": [None if name is None else str(name) for name in names],
        "columns": None
        if labels is None
        else [[label] if type(label) is str else split_label(label) for label in labels[skip:]],
    }
    if release.rule.part != PART:
        fields["reliable"] = release.rule.part
    if plan.most is not None and plan.selects:  # choices are judged by it
        fields["most"] = plan.most
    if layout.computed:
        fields |= {"layout": layout.to_json(), "skip": skip}
    if labels is not None and (labels or layout.computed):
        fields["each"] = each[skip:]
    shape = "laid out series" if layout.computed and labels is None else layout.shape
    places = None if order is None else pack([order[None, :]])
    text = receipt_text(plan, release.raw, shape=shape, order=places, **fields)
    answer.attrs = {ANSWER: f'{text[:-1]},"rows":{rows}}}'}  # the rows are written once an index
