"""Receipts: what an answer carries along, as one JSON text in ``attrs``, and the seal that binds it to the answer.

A receipt has the plan, the noisy integers and where each number stands (`dpframe._answers.layout`). Its seal is a digest of
values, dtypes and labels: after any change of those the receipt no longer describes the answer, and is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from dpframe._answers.layout import Layout
from dpframe._errors import BadValue
from dpframe._ledger.records import pack, receipt_text
from dpframe._questions.question import Release

ANSWER = "dpframe_receipt"  # the key in `attrs` of what a session answered,
REPORTS = "dpframe_reports"  # of reports of rows,
ESTIMATE = "dpframe_estimate"  # and of estimates from them


def receipt_of(answer: Any, kind: str) -> str | None:
    """The text of an answer's receipt; None if it has none of this kind."""
    text = answer.attrs.get(kind)
    return text if isinstance(text, str) else None


@contextmanager
def reading(text: str, whose: str) -> Iterator[Any]:
    """A receipt's JSON, to be taken apart: whatever is not as dpframe writes it is one refusal."""
    try:
        yield json.loads(text)
    except (ValueError, KeyError, TypeError):
        raise BadValue(f"the receipt of {whose} is not one that dpframe wrote.") from None


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
    extra: dict[str, Any] = {"seal": whole}
    if layout.computed:
        extra |= {"layout": layout.to_json(), "skip": skip}
    if labels is not None and (len(labels) or layout.computed):
        extra["each"] = each[skip:]
    shape = "laid out series" if layout.computed and labels is None else layout.shape
    places = None if order is None else pack([order[None, :]])
    return receipt_text(release.plan, release.raw, shape=shape, order=places, **extra)


# Answers over the same keys share one index object; held here, so that its id stays its own.
_digests: OrderedDict[int, tuple[pd.Index[Any], bytes]] = OrderedDict()
_DTYPES = {
    np.dtype(kind): np.dtype(kind).name for kind in (np.int64, np.float64)
}  # numpy is slow to write a dtype


def seals(arrays: Sequence[Any], labels: Sequence[Hashable], index: pd.Index[Any]) -> tuple[str, list[str]]:
    """Digests of values, dtypes and labels, so that a receipt goes with one answer only: that of all columns, and those of
    each column with its own label."""
    known = _digests.get(id(index))
    if known is None or known[0] is not index:
        digest = hashlib.blake2b(digest_size=16)
        if isinstance(index, pd.IntervalIndex):
            digest.update(
                index.left.to_numpy().tobytes() + index.right.to_numpy().tobytes() + index.closed.encode()
            )
        elif isinstance(index.dtype, np.dtype) and index.dtype.kind in "iufb":
            digest.update(index.to_numpy().tobytes())
        else:
            digest.update("\x1f".join(map(str, index.to_numpy())).encode())
        _digests[id(index)] = known = index, digest.digest()
        while len(_digests) > 32:
            _digests.popitem(last=False)
    names = "\x1f".join(map(repr, index.names)).encode()  # an index can be renamed in place
    start = hashlib.blake2b(known[1] + names, digest_size=16)
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


def seal_of(answer: pd.Series[Any] | pd.DataFrame, labelled: bool) -> str:
    """The seal an answer would have. A Series may be renamed, or become the one column of a frame."""
    frame = answer.to_frame() if isinstance(answer, pd.Series) else answer
    arrays = [frame.iloc[:, i].to_numpy() for i in range(frame.shape[1])]
    return seals(arrays, list(frame.columns) if labelled else [], answer.index)[0]
