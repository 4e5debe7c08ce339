"""Noises behind released numbers: which independent noises each number has, and the tails of sums.

*Formal guarantee.* A released count or sum is a weighted sum of noisy integers, and a mean is a
ratio of two. The noises of these integers are independent, and their laws are known. `bound_sums`
bounds weighted sums of them (docs/guarantees/intervals.md#weighted-sums-of-answers). Two releases
that may be one release under two names are never taken for independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dpframe._answers.layout import CorrelationTable
from dpframe._answers.released import Released
from dpframe._plans.aggregates import AGGREGATES, Cell, Measured, find_combination
from dpframe._plans.plan import Plan
from dpframe._plans.worth import LEVEL
from dpframe._questions.question import find_shown_levels
from dpframe._types import Array, Floats, Raw
from dpframe.mechanisms.noise import GaussianNoise, LaplaceNoise

Matrix = Any  # a sparse matrix of scipy, with a row for each number
KnownLaw = LaplaceNoise | GaussianNoise

# Sums of more noises than this are bounded by deviations, and not by their own law. So are sums of
# fewer whose noise is as large as this.
_CONVOLVED = 32


class WeightedSum(NamedTuple):
    """Weighted sums of noisy integers: their values, and the weight of each integer in each sum."""

    values: Floats
    weights: Matrix


class LeafForm(NamedTuple):
    """Numbers as sums of noisy integers, or as ratios of two such sums.

    ``blocks`` has a key, a law and the integers of each vector that the weights refer to, one after
    the other.
    """

    blocks: Sequence[tuple[object, KnownLaw, Array]]
    top: WeightedSum
    bottom: WeightedSum | None


def read_form(plan: Plan, raw: Raw, cells: Array, groups: Array, key: object) -> LeafForm | None:
    """Return numbers of a release as weighted sums of its noisy integers, or as ratios of two.

    The numbers are those of the outputs ``cells`` and the ``groups``, by their positions. A
    position of -1 is a missing number. ``key`` identifies the release. Return None if some number
    is of another kind, or if the noise has decided which groups are shown.
    """
    if find_shown_levels(plan, raw, LEVEL) is not None:
        return None
    outputs = {int(i): plan.cells[i] for i in np.unique(cells[cells >= 0])}
    laws: dict[int, KnownLaw] = {}
    for cell in outputs.values():
        law = plan.parts[cell.part].noise
        linear = AGGREGATES[cell.aggregate].combination is not None
        if not (linear or _is_mean(cell)) or not isinstance(law, KnownLaw):
            return None
        laws[cell.part] = law
    ratios = {_is_mean(cell) for cell in outputs.values()}
    if len(ratios) > 1:
        return None
    starts, blocks, size = {}, [], 0
    for part in laws:
        starts[part] = size
        blocks.append(((key, part), laws[part], np.asarray(raw[part])))
        size += raw[part].size
    top, bottom = _Sums(len(cells), size), _Sums(len(cells), size)
    for i, cell in outputs.items():
        measured = Measured(cell, laws[cell.part], raw[cell.part])
        here = np.flatnonzero(cells == i)
        at = here, groups[here], starts[cell.part]
        if _is_mean(cell):
            width = cell.upper - cell.lower
            top.add(measured, {"n": cell.lower, "t1": width}, *at)
            bottom.add(measured, {"n": 1.0}, *at)
        else:
            top.add(measured, find_combination(cell), *at)
    return LeafForm(blocks, top.finish(), bottom.finish() if True in ratios else None)


def read_table_form(source: Released, column: int, rows: Array, key: object) -> LeafForm | None:
    """Return some rows of a column of a released table as sums of its noisy integers, or ratios.

    ``key`` identifies the release. Return None for a table that joins groups, and for numbers that
    are no such sums.
    """
    if source.layout.joins or isinstance(source.layout, CorrelationTable):
        return None
    size = int(np.shape(source.raw[0])[-1])
    numbered: list[Any] = [np.arange(size) + i * size + 1 for i in range(len(source.plan.cells))]
    places = source._place(numbered)[column] - 1
    taken = np.where(rows < 0, -1, np.asarray(places)[rows])
    cells = np.where(taken < 0, -1, taken // size)
    return read_form(source.plan, source.raw, cells, taken % size, key)


def _is_mean(cell: Cell) -> bool:
    return cell.aggregate == "mean" and {"n", "t1"} <= cell.functionals.keys()


class _Sums:
    """Weighted sums of noisy integers, number by number, before they are put together."""

    def __init__(self, numbers: int, size: int):
        self._shape = numbers, size
        self._values = np.full(numbers, math.nan)
        self._entries: list[tuple[Array, Array, Array]] = []

    def add(
        self, m: Measured, combination: dict[str, float], rows: Array, groups: Array, start: int
    ) -> None:
        """Add the same combination of sums for some rows, which belong to these groups.

        ``start`` is the position of the first integer of the vector.
        """
        assert m.raw is not None
        self._values[rows] = np.asarray(m.values(combination), dtype=np.float64)[groups]
        size = m.raw.shape[-1]
        for i, weight in enumerate(m.weights(combination)):
            if weight:
                entries = rows, start + i * size + groups, np.full(len(rows), float(weight))
                self._entries.append(entries)

    def finish(self) -> WeightedSum:
        """Return the sums."""
        if not self._entries:
            return WeightedSum(self._values, sparse.csr_array(self._shape))
        rows, columns, weights = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        return WeightedSum(
            self._values, sparse.csr_array((weights, (rows, columns)), shape=self._shape)
        )


# Tails of sums ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class NoiseTable:
    """Independent noises: the law of each, and the cluster that it belongs to.

    Within a cluster noises are independent. Those of different clusters may be the same.
    """

    laws: tuple[KnownLaw, ...]
    law: Array  # the position of the law of each noise
    cluster: Array
    clusters: int

    @classmethod
    def collect(cls, blocks: Sequence[tuple[KnownLaw, Array]]) -> NoiseTable:
        """Return the noises of vectors of integers, one after the other.

        Vectors of one law may be one vector in two releases where one has all integers of the
        other. These go to different clusters.
        """
        laws = list(dict.fromkeys(law for law, _ in blocks))
        clusters: list[list[tuple[KnownLaw, Array]]] = []
        places = []
        for block in blocks:
            place = next(
                (
                    i
                    for i, known in enumerate(clusters)
                    if not any(_may_be_same(block, other) for other in known)
                ),
                len(clusters),
            )
            clusters += [[]] if place == len(clusters) else []
            clusters[place].append(block)
            places.append(place)
        sizes = [integers.size for _, integers in blocks]
        numbers = [laws.index(law) for law, _ in blocks]
        return cls(
            tuple(laws),
            np.repeat(np.array(numbers, dtype=np.intp), sizes),
            np.repeat(np.array(places, dtype=np.intp), sizes),
            len(clusters),
        )

    @property
    def deviations(self) -> Floats:
        """The standard deviation of each noise."""
        return np.array([law.deviation for law in self.laws] or [0.0])[self.law]

    def reaches(self, level: float) -> Floats:
        """Return a bound for each noise, which holds with probability ``level``."""
        return np.array([_reach_of_one(law, level) for law in self.laws] or [0.0])[self.law]

    def spread(self, level: float) -> float:
        """Return how many deviations bound any weighted sum of continuous noises of these laws."""
        known = [law.spread(level) for law in self.laws]
        return max(known, default=GaussianNoise.spread(level))

    def reach(self, level: float, terms: Array) -> Floats:
        """Return how many deviations bound any weighted sum of ``terms`` noises of one
        cluster."""
        risk, least = 1 - level, min((law.deviation for law in self.laws), default=1.0) or 1.0
        ratio = max(
            (law.continuous_deviation / law.deviation for law in self.laws if law.deviation),
            default=1,
        )
        slack = np.sqrt(terms) / 2 / least
        bounds = (
            self.spread(level) * ratio + slack,
            self.spread(1 - 0.99 * risk) * ratio + math.sqrt(math.log(200 / risk) / 6) / least,
            self.spread(1 - risk / 2) * ratio,
        )
        return np.asarray(np.minimum.reduce(np.broadcast_arrays(*bounds)))


def _may_be_same(one: tuple[KnownLaw, Array], two: tuple[KnownLaw, Array]) -> bool:
    """Return whether two vectors of noisy integers may have the same noise."""
    if one[0] != two[0]:
        return False
    for mine in one[1]:
        for theirs in two[1]:
            few, many = sorted((set(mine.tolist()), set(theirs.tolist())), key=len)
            if few <= many:
                return True
    return False


def _reach_of_one(law: KnownLaw, level: float) -> float:
    return float(law.quantile(level)) if law.deviation else 0.0


def bound_sums(noises: NoiseTable, weights: Matrix, level: float, exact: bool = True) -> Floats:
    """Return a bound for each weighted sum of noises, which holds with probability ``level``.

    ``weights`` has a row for each sum and a column for each noise. Each cluster takes its part of
    the risk. Unless
    ``exact``, the bounds also hold for all sums with smaller weights.
    """
    found = np.zeros(weights.shape[0])
    each = 1 - (1 - level) / max(noises.clusters, 1)
    for cluster in range(noises.clusters):
        here = np.flatnonzero(noises.cluster == cluster)
        found += _bound_independent(noises, weights, here, each, exact)
    return found


def _bound_independent(
    noises: NoiseTable, weights: Matrix, here: Array, level: float, exact: bool
) -> Floats:
    """Return a bound for weighted sums of the independent noises at the positions ``here``.

    The other arguments are those of `bound_sums`.
    """
    part = abs(sparse.csc_array(weights)[:, here]).tocsr()
    part.eliminate_zeros()
    law, risk = noises.law[here], 1 - level
    smooth = np.array([one.continuous_deviation if one.deviation else 0.0 for one in noises.laws])[
        law
    ]
    random = (smooth > 0).astype(float)
    squares = part.multiply(part).tocsr()
    deviation = np.sqrt(squares @ smooth**2)
    bound: Floats = np.minimum.reduce(
        [
            noises.spread(level) * deviation + part @ random / 2,
            noises.spread(1 - 0.99 * risk) * deviation
            + np.sqrt(squares @ random) * math.sqrt(math.log(200 / risk) / 6),
            noises.spread(1 - risk / 2) * deviation,
        ]
    ) * (1 + 1e-9)  # for what rounding took
    terms = np.diff(part.indptr)
    for count in np.unique(terms[(terms > 0) & (terms <= _CONVOLVED)]):
        rows = np.flatnonzero(terms == count)
        places = part.indptr[rows][:, None] + np.arange(count)
        size, kind = part.data[places], law[part.indices[places]]
        one = 1 - risk / int(count)
        apart = np.array([_reach_of_one(each, one) for each in noises.laws])[kind]
        bound[rows] = np.minimum(bound[rows], (size * apart).sum(axis=1))
        alike = (size == size[:, :1]).all(axis=1) & (kind == kind[:, :1]).all(axis=1)
        for i in np.unique(kind[alike, 0]) if exact else ():
            own = noises.laws[i]
            if 0 < own.deviation * count < _CONVOLVED and count > 1:
                at = rows[alike & (kind[:, 0] == i)]
                exact = own.quantile(level, int(count))
                bound[at] = np.minimum(bound[at], part.data[part.indptr[at]] * exact)
    return bound
