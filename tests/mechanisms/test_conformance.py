"""What every mechanism on the list promises of itself, against its exact law: a new one adds an example here, and no test.

The one that docs/develop/add-a-mechanism.md builds is among them.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpframe.accounting._filter import Price
from dpframe.mechanisms._base import MECHANISMS, Form, loss_of, mechanism_from
from dpframe.mechanisms._base import names as mechanism_names
from dpframe.mechanisms.noise import GaussianNoise, LaplaceNoise
from dpframe.mechanisms.response import Response
from dpframe.mechanisms.selection import ExponentialChoice, NoisyMax, NoisyTop
from dpframe.mechanisms.threshold import (
    Bar,
    GaussianThreshold,
    LaplaceThreshold,
    TruncatedThreshold,
    TruncatedVector,
)
from tests.test_docs import blocks

PAGE = Path(__file__).parents[2] / "docs" / "develop" / "add-a-mechanism.md"
NAMES: dict[str, Any] = {"__name__": "__page__"}
SOURCE = next(source for _, source in blocks(PAGE) if "@register" in source)
exec(compile(SOURCE, str(PAGE), "exec", dont_inherit=True), NAMES)
Secant = MECHANISMS.pop("secant")  # it is on the list in the tests of this file alone

WIDE = 60  # of the grid of noisy integers: what is beyond has no double
CLOSE = 1 + 1e-9
LEVELS = (0.5, 0.9, 0.95, 0.999)


@dataclass(frozen=True)
class Example:
    """A mechanism, the probabilities of all that may leave of some integers, and pairs of neighbours."""

    mechanism: Any
    law: Callable[[np.ndarray], np.ndarray]
    place: Callable[[np.ndarray], int]  # of what left, in the law
    pairs: tuple[tuple[list[int], list[int]], ...]
    failure: Callable[[int], float] = lambda distance: 0.0  # how often it may tell everything
    least: bool = True  # whether its quantiles are the least there are; larger ones hold too, and make wider intervals


def additive(weights: Callable[[np.ndarray], np.ndarray], **more: Any) -> Any:
    """An example of a noise with these weights on the whole numbers."""
    x = np.arange(-2 * WIDE, 2 * WIDE + 1)
    one = weights(np.abs(x).astype(float)) / weights(np.abs(x).astype(float)).sum()

    def law(integers: np.ndarray) -> np.ndarray:
        found = np.ones(1)
        for n in integers:  # noise is independent, so laws multiply
            found = np.outer(found, one[WIDE - n : 3 * WIDE + 1 - n]).ravel()
        return found

    def place(released: np.ndarray) -> int:
        return int(
            np.ravel_multi_index(
                tuple(int(n) + WIDE for n in released), (2 * WIDE + 1,) * len(released)
            )
        )

    pairs = (([3], [4]), ([3], [5]), ([2, 1], [3, 2]), ([2, 1], [3, 0]), ([0, 5], [2, 5]))
    return lambda mechanism: Example(mechanism, law, place, pairs, **more)


def hidden(rate: float, cut: int, lower: float) -> Callable[[np.ndarray], np.ndarray]:
    """The law of a count that leaves if it is above the cut; place 0 is that it does not."""

    def at(cut: int, n: int) -> np.ndarray:
        x = np.arange(-cut, cut + 1)
        weights = np.exp(-rate * np.abs(x)) / np.exp(-rate * np.abs(x)).sum()
        found = np.zeros(WIDE)
        for step, p in zip(x, weights, strict=True):
            found[n + step if n + step > cut else 0] += p
        return found

    return lambda integers: lower * at(cut - 1, integers[0]) + (1 - lower) * at(cut, integers[0])


def at_the_cut(distance: int) -> float:
    """The probability of the outermost places, of noise between -9 and 9."""
    weights = np.exp(-np.abs(np.arange(-9, 10)) / 2)
    return float(weights[:distance].sum() / weights.sum())


def flips(scores: Any, rate: float) -> np.ndarray:
    """Permute and flip, by going through all orders: the law of a noisy maximum (McKenna and Sheldon 2020)."""
    accept, found = (
        np.exp(-rate * (max(scores) - np.asarray(scores, dtype=float))),
        np.zeros(len(scores)),
    )
    for order in itertools.permutations(range(len(scores))):
        left = 1.0 / math.factorial(len(scores))
        for i in order:
            found[i] += left * accept[i]
            left *= 1 - accept[i]
    return found


def peeled(scores: Any, rate: float) -> np.ndarray:
    """Two noisy maxima, one after the other, as places of a square."""
    k, found = len(scores), np.zeros((len(scores), len(scores)))
    for first, p in enumerate(flips(scores, rate)):
        rest = [i for i in range(k) if i != first]
        found[first, rest] = p * flips([scores[i] for i in rest], rate)
    return found.ravel()


def weighed(scores: Any, rate: float) -> np.ndarray:
    weights = np.exp(rate * (np.asarray(scores, dtype=float) - max(scores)))
    return weights / weights.sum()


def reported(one: Response) -> Callable[[np.ndarray], np.ndarray]:
    return lambda places: one.lies / one.k + one.kept * (np.arange(one.k) == places[0] - 1)


SCORES = (
    ([0, 9, 9, 2], [1, 9, 8, 2]),
    ([5, 0, 0, 0], [4, 1, 1, 1]),
    ([30, 0, 0, 0], [29, 1, 0, 0]),
)
COUNTS = (([1], [2]), ([7], [8]), ([0], [1]))
LAPLACE = additive(lambda x: np.exp(-x / 1.5))
NORMAL = additive(lambda x: np.exp(-(x**2) / 18))
EXAMPLES = [
    LAPLACE(LaplaceNoise(F(3, 2))),
    LAPLACE(LaplaceThreshold(F(3, 2), (Bar(1, 9), Bar(2, 12)))),
    NORMAL(GaussianNoise(F(9))),
    NORMAL(GaussianThreshold(F(9), (Bar(1, 12),))),
    additive(lambda x: 1 / np.cosh(x / 2), least=False)(Secant(F(2))),
    additive(lambda x: np.where(x <= 9, np.exp(-x / 2), 0.0), failure=at_the_cut, least=False)(
        TruncatedVector(F(1, 2), 9, (Bar(1, 10), Bar(2, 14)))
    ),
    *(
        Example(
            TruncatedThreshold(F(1, 2), 6, lower),
            hidden(0.5, 6, float(lower)),
            lambda released: max(int(released[0]), 0),
            COUNTS,
            failure=lambda _, lower=lower: float(hidden(0.5, 6, float(lower))(np.array([1]))[1:].sum()),
        )
        for lower in (F(0), F(1, 4))
    ),
    *(
        Example(one, law, lambda released: int(released[0]), SCORES)
        for one, law in (
            (NoisyMax(F(1, 3)), lambda scores: flips(scores, 1 / 3)),
            (ExponentialChoice(F(1, 3)), lambda scores: weighed(scores, 1 / 3)),
        )
    ),
    Example(
        NoisyTop(F(1, 3), 2), lambda s: peeled(s, 1 / 3), lambda released: 4 * int(released[0]) + int(released[1]), SCORES
    ),
    *(
        Example(one, reported(one), lambda released: int(released[0]), (([1], [2]), ([2], [1])))
        for one in (Response(F(1), 2), Response(F(1, 2), 5))
    ),
]  # fmt: skip
MEASURING = [one for one in EXAMPLES if one.mechanism.measures]
CHOOSING = [one for one in EXAMPLES if one.mechanism.chooses]


def name(example: Any) -> str:
    return str(example.mechanism) if isinstance(example, Example) else str(example)


every = pytest.mark.parametrize("example", EXAMPLES, ids=name)
every_noise = pytest.mark.parametrize("example", MEASURING, ids=name)
every_choice = pytest.mark.parametrize("example", CHOOSING, ids=name)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(MECHANISMS, "secant", Secant)


def test_every_mechanism_has_an_example():
    ours = {name for name, kind in MECHANISMS.items() if kind.__module__.startswith("dpframe.")}
    assert {one.mechanism.name for one in EXAMPLES} == {*ours, "secant"}


def test_names_are_those_of_every_question():
    assert mechanism_names()[:4] == ("auto", "laplace", "gaussian", "exponential")


@every
def test_a_record_is_read_back(example):
    one = example.mechanism
    record = json.loads(json.dumps(one.to_json()))
    assert record["mechanism"] == one.name
    assert mechanism_from({**record, "statistic": "rows", "step": 1.0}) == one
    assert type(mechanism_from(record)) is type(one)


@every
def test_its_law_is_the_one_it_is_judged_by(example):
    start = np.array(example.pairs[0][0])
    given = start if example.mechanism.by_row else start[None, :]
    released = (example.mechanism.release(given) for _ in range(4000))
    drawn = np.array(
        [example.place(one if example.mechanism.by_row else one[0]) for one in released]
    )
    law = example.law(start)
    often = np.flatnonzero(law * len(drawn) >= 10)
    seen = np.array([(drawn == place).sum() for place in often])
    rest, left = len(drawn) - seen.sum(), max(1 - law[often].sum(), 1e-12)
    _, p = stats.chisquare(
        [*seen, rest], np.array([*law[often], left]) / (law[often].sum() + left) * len(drawn)
    )
    assert p > 1e-7
    assert law[drawn].min() > 0


def excess(p: np.ndarray, q: np.ndarray, t: float) -> float:
    """sup over events of P - e**t Q, in either direction."""
    return float(
        max(np.maximum(p - math.exp(t) * q, 0).sum(), np.maximum(q - math.exp(t) * p, 0).sum())
    )


def promised(example: Example, distance: int, t: float) -> float:
    """What the loss of this distance allows of it."""
    loss = example.mechanism.loss(distance)
    if loss.epsilon is not None:
        pure = -math.expm1(t - float(loss.epsilon)) if t < loss.epsilon else 0.0
        return pure + example.failure(distance)
    return float(max(curve.delta(np.array([t]))[0] for curve in loss.curves)) + example.failure(
        distance
    )


STEPS = (0.0, 0.1, 0.3, 1.0, 2.0)


@every
def test_neighbours_are_no_further_apart_than_its_loss(example):
    norm, exceeded = example.mechanism.norm, []
    for one, two in (tuple(map(np.array, pair)) for pair in example.pairs):
        moved = (one != two) if norm.exact.startswith("people") else two - one
        distance = norm.distance(moved)
        p, q = example.law(one), example.law(two)
        epsilon = example.mechanism.loss(distance).epsilon
        for t in (*STEPS, *(() if epsilon is None else (float(epsilon),))):
            allowed = promised(example, distance, t)
            assert excess(p, q, t) <= allowed * CLOSE + 1e-12
            # A person who moves the integers half as far could not have made these two.
            exceeded.append(
                distance > 1
                and excess(p, q, t) > promised(example, distance // 2, t) * CLOSE + 1e-12
            )
    assert any(exceeded) or all(
        norm.distance(np.array(b) - np.array(a)) <= 1 for a, b in example.pairs
    )


@every
def test_what_leaves_has_the_form_that_it_says(example):
    one = example.mechanism
    for shape in (
        ((7,),) if example.mechanism.by_row else ((1, 7), (2, 5)) if one.measures else ((1, 7),)
    ):
        integers = np.arange(1, 1 + math.prod(shape)).reshape(shape) % 3 + 1
        said = one.form(shape)
        released = one.release(np.minimum(integers, getattr(one, "k", 3)))
        assert (released.shape, released.dtype.kind) == (said.shape, said.kind)


def test_choices_of_several_groups_have_a_place_each():
    one = NoisyMax(F(1))
    assert one.form((3, 8, 2)) == Form((3, 2), "i")
    assert one.release(np.zeros((3, 8, 2), dtype=np.int64)).shape == (3, 2)


@pytest.mark.parametrize(
    "one",
    [LaplaceNoise(F(2**70)), GaussianNoise(F(2**140)), LaplaceThreshold(F(2**70), (Bar(1, 9),))],
)
def test_wide_noise_is_made_of_python_s_integers(one):
    assert one.form((1, 3)) == Form((1, 3), "O")
    assert one.release(np.zeros((1, 3), dtype=np.int64)).dtype == object


def centred(example: Example) -> np.ndarray:
    """The law of one noise, with 0 in the middle. Of what is hidden there is none: there it is that of the noise below."""
    one = example.mechanism
    if isinstance(one, TruncatedThreshold):
        x = np.abs(np.arange(-WIDE, WIDE + 1))
        weights = np.where(x <= one.cut, np.exp(-float(one.rate) * x), 0.0)
        return weights / weights.sum()
    return example.law(np.array([0]))


@every_noise
@pytest.mark.parametrize("level", LEVELS)
def test_quantiles_hold_for_sums_of_noises(example, level):
    one, law = example.mechanism, centred(example)
    total = law
    for terms in (1, 2, 3):
        t, middle = one.quantile(level, terms), len(total) // 2
        inside = total[max(0, middle - t) : middle + t + 1].sum()
        assert inside >= level * (1 - 1e-12)
        if terms == 1 and t:  # and one less would not do
            assert total[middle - t + 1 : middle + t].sum() < level or not example.least
        total = np.convolve(total, law)


@every_noise
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("weights", [(1, 1), (1, -3), (5, 2)])
def test_weighted_sums_stay_within_their_reach(example, level, weights):
    one, law = example.mechanism, centred(example)
    x = np.arange(len(law)) - len(law) // 2
    sums = np.abs(np.add.outer(weights[0] * x, weights[1] * x))
    reach = one.reach(level, 2) * one.deviation * math.hypot(*weights)
    assert np.outer(law, law)[sums <= reach].sum() >= level * (1 - 1e-12)
    assert one.deviation**2 >= (law * x**2).sum() * (1 - 1e-9)


def stated(text: str, t: float) -> float:
    """The formula at the end of a tail's text."""
    return float(eval(text.rsplit("at most ", 1)[1], {"exp": math.exp, "t": t}))


@every_noise
def test_noise_falls_off_as_its_text_says(example):
    one, law = example.mechanism, centred(example)
    x = np.abs(np.arange(len(law)) - len(law) // 2)
    assert one.tail(7) == one.tail()
    for t in (0.5, 1.0, 2.0, 3.0) if one.tail() else ():
        # The grid's step is 1 here: t times the scale, rounded up to it.
        assert law[x > math.ceil(t * float(one.scale))].sum() <= stated(one.tail(), t)


@every_choice
def test_choices_fall_short_as_seldom_as_stated(example):
    one = example.mechanism
    assert one.tail() == ""
    for gap in (2, 5, 9, 14, 20):
        scores = np.array([gap, 0, 0, 0])  # any other place is the worst
        short = 1 - example.law(scores).reshape(4, -1)[0].sum()
        ways = float(one.tail(4).split("ln(")[1].split(")")[0])
        t = gap * float(one.rate) - math.log(ways)
        assert short <= min(1.0, stated(one.tail(4), t)) * CLOSE
        if gap >= one.shortfall(4) * float(one.scale):
            assert short <= 0.05


@pytest.mark.parametrize(
    "kind",
    [kind for kind in (*MECHANISMS.values(), Secant) if kind.measures and kind.named],
    ids=lambda k: k.name,
)
@pytest.mark.parametrize(
    "price",
    [
        Price(F(1)),
        Price(None, rho=F(1, 50)),
        Price(F(1, 3), mu_squared=F(1, 90), delta=F(1, 10**6)),
    ],
)
def test_what_a_price_buys_costs_no_more(kind, price):
    distances = [(3, 5), (1, 1), (7, 9)]
    offer = kind.offer(distances, price)
    if offer is None:
        assert kind.refusal(price)
        return
    moved = [
        (n, kind.norm.choose_distance(*both))
        for n, both in zip(offer.noises, distances, strict=True)
    ]
    assert loss_of(moved) == offer.loss
    if offer.loss.epsilon is not None:
        assert offer.loss.epsilon <= price.epsilon
    elif price.rho is not None:
        assert offer.loss.rho <= price.rho
    else:
        assert offer.loss.mu_squared <= price.mu_squared
        assert offer.stated_at == price.delta


@pytest.mark.parametrize(
    "kind",
    [kind for kind in MECHANISMS.values() if kind.chooses and kind.named],
    ids=lambda k: k.name,
)
def test_a_choice_at_a_price_costs_no_more(kind):
    (one,), loss = kind.offer(2, Price(F(1)))[:2]
    assert loss == one.loss(2)
    assert loss.epsilon_at(F(0)) == 1


def test_what_nobody_moves_costs_nothing_and_other_rules_are_not_mixed():
    pure, normal = LaplaceNoise(F(2)), GaussianNoise(F(2))
    assert loss_of([(pure, 0)]) is None
    assert loss_of([(pure, 1), (normal, 1)]) is None
    assert loss_of([(pure, 1), (normal, 0), (NoisyMax(F(1, 2)), 1)]) == loss_of([(pure, 2)])
