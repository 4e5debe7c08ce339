"""Private selection: report noisy max with one-sided geometric noise
(docs/guarantees/noisy-max.md), and the exponential mechanism on integer scores, sampled exactly
(docs/guarantees/exponential.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe._sizes import SIZES
from dpframe._types import Array
from dpframe.accounting import loss as losses
from dpframe.accounting._additive import root_below
from dpframe.accounting._filter import Price
from dpframe.accounting._tight import find_largest_epsilon
from dpframe.accounting.loss import Loss
from dpframe.mechanisms import _sampling
from dpframe.mechanisms._base import Choice, Form, Offer, Shape, pure, register


@register
@dataclass(frozen=True, slots=True)
class NoisyMax(Choice):
    """Choice of the largest score after one-sided geometric noise on each; its index is released,
    and nothing else.

    Formal guarantee: with noise P[G >= t] = exp(-rate * t), the choice is epsilon-private for
    epsilon = rate * shift, where ``shift`` bounds by how much one person can move a score relative
    to any other: the sensitivity where all scores move one way (counts under add-remove), twice
    that otherwise. Ties go by an order drawn afresh, whatever the scores.
    """

    name: ClassVar[str] = "noisy-max"
    proof: ClassVar[str] = "noisy-max.md"
    rate: Fraction

    @staticmethod
    def for_price(shift: int, epsilon: Fraction) -> NoisyMax:
        return NoisyMax(epsilon / shift)

    def release(self, scores: Array) -> Array:
        """Return the index of the score with the largest noisy value, in an array of one. Scores of
        three axes hold many choices: the second axis has the candidates. There is then one choice
        for each position on the two other axes.

        The choices are independent. What one person can do to them adds up, and ``shift`` bounds
        that sum.
        """
        if scores.ndim < 3:
            scores = scores.reshape(1, -1, 1)
        noise = _sampling.geometric(self.rate, scores.size).reshape(scores.shape)
        noisy = scores + noise if noise.dtype != object else scores.astype(object) + noise
        best = noisy == noisy.max(axis=1, keepdims=True)
        if np.count_nonzero(best) > scores.shape[0] * scores.shape[2]:
            # The order is independent of the scores, so given it the shift argument applies.
            order = _sampling.permutation(scores.size).reshape(scores.shape)
            best = np.where(best, order, -1)
        choice: Array = best.argmax(axis=1)
        return choice

    def form(self, shape: Shape) -> Form:
        return Form((shape[0], shape[2]) if len(shape) == 3 else (1, 1), "i")


@register
@dataclass(frozen=True, slots=True)
class NoisyTop(Choice):
    """Choice of the ``rounds`` largest scores: the noisy maximum, then that of the rest, and so on.
    Their indices are released in this order.

    Formal guarantee: each round is a noisy maximum of ``rate * shift`` by itself, over candidates
    that earlier answers have fixed, so all of them together are epsilon-private for epsilon =
    rounds * rate * shift (basic composition, which holds for questions that depend on earlier
    answers).

    >>> NoisyTop(Fraction(50), 2).release(np.array([[3, 9, 4]]))[0].tolist()
    [1, 2]
    """

    name: ClassVar[str] = "noisy-top"
    proof: ClassVar[str] = "noisy-max.md"
    rate: Fraction
    rounds: int

    @staticmethod
    def for_price(shift: int, epsilon: Fraction, rounds: int) -> NoisyTop:
        return NoisyTop(epsilon / (shift * rounds), rounds)

    def release(self, scores: Array) -> Array:
        """Return the indices of the ``rounds`` largest noisy scores, best first, in an array of one
        row. Scores of three axes have the candidates on the second, and groups on the third. Each
        group then has a column of choices; the first axis has one entry.

        The choices of groups are independent, and in each round ``shift`` bounds what one person
        can do to all of them.
        """
        noisy_max = NoisyMax(self.rate)
        remaining_scores = scores.reshape(-1, 1) if scores.ndim < 3 else scores[0]
        remaining = np.broadcast_to(
            np.arange(len(remaining_scores))[:, None], remaining_scores.shape
        )
        chosen = []
        for _ in range(self.rounds):
            place = noisy_max.release(remaining_scores[None])
            chosen.append(np.take_along_axis(remaining, place, axis=0)[0])
            left = np.arange(len(remaining))[:, None] != place
            shape = len(remaining) - 1, remaining.shape[1]
            # Column by column, so that what is left of each stands in its order.
            remaining = remaining.T[left.T].reshape(shape[::-1]).T
            remaining_scores = remaining_scores.T[left.T].reshape(shape[::-1]).T
        choices = np.array(chosen, dtype=np.int64)
        return choices if scores.ndim == 3 else choices.T

    def epsilon_for(self, distance: int) -> Fraction:
        return self.rounds * self.rate * distance

    def form(self, shape: Shape) -> Form:
        return Form((self.rounds, shape[2]) if len(shape) == 3 else (1, self.rounds), "i")

    def ways(self, candidates: int) -> int:
        return candidates * self.rounds


@register
@dataclass(frozen=True, slots=True)
class ExponentialChoice(Choice):
    """Choice of the index i with probability proportional to exp(rate * score[i]); nothing else is
    released.

    Formal guarantee: let ``reach`` bound how much more one person can move one score than another,
    over all pairs of scores. For rate = epsilon / reach all privacy losses of the choice lie in an
    interval of length epsilon that holds 0 (McSherry and Talwar 2007; Durfee and Rogers 2019): it
    is of epsilon-bounded range, hence epsilon-private. The notes' weights exp(epsilon u / S), where
    S bounds the move of each score, are rate = epsilon / S: 2 epsilon-private, since the reach is
    at most 2 S. Every choice has exactly its probability: no weight is ever computed.

    >>> int(ExponentialChoice(Fraction(50)).release(np.array([[3, 9, 4]]))[0, 0])
    1
    """

    name: ClassVar[str] = "exponential"
    proof: ClassVar[str] = "exponential.md"
    named: ClassVar[bool] = True
    rate: Fraction

    @staticmethod
    def for_price(reach: int, epsilon: Fraction) -> ExponentialChoice:
        """Return the largest rate that epsilon pays for."""
        return ExponentialChoice(epsilon / reach)

    def release(self, scores: Array) -> Array:
        """Return the index of the chosen score, in an array of one, by rejection sampling.

        A uniform place is kept if a geometric number with P[G >= t] = exp(-rate t) reaches the
        distance of its score from the largest; otherwise the next place is tried. The first that is
        kept has the law above, and of k tries one is kept on average, or more.
        """
        flat = scores.reshape(-1)
        low, top = int(flat.min()), int(flat.max())
        if top - low >= 2**62:
            flat = flat.astype(object)
        gaps = top - flat
        while True:
            places = _uniform(flat.size, min(max(flat.size, SIZES.tries_few), SIZES.tries))
            accepted = np.flatnonzero(_sampling.geometric(self.rate, places.size) >= gaps[places])
            if accepted.size:
                return places[accepted[:1]].reshape(1, 1)

    def loss(self, distance: int) -> Loss:
        return losses.Exponential(self.epsilon_for(distance))

    @classmethod
    def offer(cls, reach: int, price: Price) -> Offer:
        """Return the exponential mechanism that a price buys, with its privacy loss. ``reach`` is
        the most by which one person moves any score against any other. A bounded range of epsilon
        costs epsilon**2 / 8 in zCDP."""
        epsilon, why = price_range(price)
        return Offer([cls.for_price(reach, epsilon)], losses.Exponential(epsilon), why=why)


def _uniform(below: int, size: int) -> NDArray[np.int64]:
    """Draw up to `size` independent integers, exactly uniform on 0 to `below` - 1. They are
    remainders of 64-bit words. Words beyond the last whole multiple of `below` are left out, with
    probability below 2**-64 times `below`."""
    words = np.frombuffer(_sampling.random_bytes(8 * size), dtype="<u8")
    last = np.uint64(2**64 - 2**64 % below - 1)
    return (words[words <= last] % np.uint64(below)).astype(np.int64)


def ranges_cost_less(price: Price) -> bool:
    """Return whether the accountant counts a bounded range for less than a pure epsilon.

    That is so if it counts in zCDP or in Gaussian privacy, or still has a Gaussian budget.
    """
    if price.rho is not None or price.mu_squared is not None:
        return True
    return price.stake is not None and price.stake.left is not None


def price_range(price: Price) -> tuple[Fraction, str]:
    """Return the epsilon of the exponential mechanism that a price buys, and the reason in words
    for the plan.

    The privacy losses of that mechanism lie in a range of this length, which may cost less than a
    pure epsilon of the same size. Then the price buys a larger epsilon.
    """
    if price.rho is not None:
        epsilon = root_below(8 * price.rho)
        return (
            epsilon,
            f"a range of epsilon {float(epsilon):.4g} costs what this price does in zCDP",
        )
    epsilon, stake = pure(price), price.stake
    if stake is not None and stake.left is not None and stake.cost is not None:
        # The residue alone pays, and takes less for a range than for any release of this epsilon.
        epsilon = max(
            epsilon,
            find_largest_epsilon("ranged", stake.left, stake.cost, stake.epsilon) or epsilon,
        )
    if ranges_cost_less(price):
        return (
            epsilon,
            "the exponential mechanism, whose bounded range most accountants with delta count for less",
        )
    return epsilon, "the exponential mechanism, as asked"
