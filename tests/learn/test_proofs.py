"""What the proofs rest on: integers whose norms are bounded, gradients that are certified, sensitivities of real pairs."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe import Refused, audit
from dpframe._groups.keys import keys_for
from dpframe._groups.unit import Unit
from dpframe._validate import Bounds
from dpframe.accounting import _gaussian, pld
from dpframe.accounting._additive import Rdp
from dpframe.accounting._filter import Price
from dpframe.accounting.loss import Gaussian, PoissonGaussian
from dpframe.engines.pandas import PandasEngine
from dpframe.learn import LinearRegression, LogisticRegression
from dpframe.learn import _solve as learn_solve_module
from dpframe.learn._descent import CLIP, Descent, clip_gradients, first_sigma, sampled_sigma, scores
from dpframe.learn._design import UNIT, Design, Target, shrunk
from dpframe.learn._design import DesignRows as Rows
from dpframe.learn._fits import OutputFit
from dpframe.learn._objective import Objective, largest_mu
from dpframe.learn._solve import LOGISTIC, Problem, ScoreLoss, minimise, newton
from dpframe.learn._statistics import Statistics, ridge
from dpframe.mechanisms._coins import rate_of
from dpframe.mechanisms._coins import thrown as coins
from tests.learn.data import BOUNDS, FEATURES, Losses, opened, people

HUBER = ScoreLoss("huber", 0.5, 1.0)
PRICE = Price(Fraction(1), None, Fraction(1, 40), Fraction(1, 10**6))


# Integers ----------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.integers(-UNIT, UNIT), min_size=3, max_size=3), min_size=1, max_size=20),
    st.integers(1, 3 * UNIT**2),
)
def test_norms_of_rows_are_bounded_as_integers(rows, limit):
    before = np.array(rows, dtype=float)
    after = shrunk(before.copy(), limit)
    for old, new in zip(before.astype(int).tolist(), after.astype(int).tolist(), strict=True):
        assert sum(v * v for v in new) <= limit
        if sum(v * v for v in old) <= limit:
            assert new == old
        assert all(abs(a) <= abs(b) and a * b >= 0 for a, b in zip(new, old, strict=True))
    assert (after == np.rint(after)).all()


@settings(max_examples=60)
@given(st.lists(st.lists(st.floats(width=64), min_size=2, max_size=2), min_size=1, max_size=20))
def test_gradients_are_clipped_on_integers_whatever_they_are(rows):
    for row in clip_gradients(np.array(rows)).tolist():
        assert sum(v * v for v in row) <= CLIP**2


def test_a_gradient_that_rounding_would_lift_over_the_bound_is_held():
    # In doubles its norm is just below CLIP; its roundings are above.
    just = np.full((1, 3), CLIP / math.sqrt(3))
    assert np.rint(just).astype(int).tolist() != clip_gradients(just).tolist()
    assert sum(v * v for v in clip_gradients(just)[0].tolist()) <= CLIP**2


def test_nobody_else_moves_what_a_person_adds_to_a_gradient():
    # x @ w rounds the score of a row by its place among the rows. Here the scores are next to a rounding of the gradient.
    fit = Descent(design("number"), ScoreLoss("huber", 1.0, 1.0), None)
    rng, p, step = np.random.default_rng(1), 9, 1 / CLIP
    for _ in range(200):
        row, w = np.rint(rng.uniform(-1, 1, p) * UNIT) / UNIT, rng.normal(size=p) * 0.1
        row[0] = 1.0
        others, y = np.tile(row, (8, 1)), np.zeros(8)
        w[0] += (math.floor((row @ w) / step) + 0.5) * step - row @ w
        x = np.vstack([np.eye(1, p), others])
        without = fit.sum_gradients(Rows(others, y, None), None, w, step, None)
        found = fit.sum_gradients(Rows(x, np.r_[-1.0, y], None), None, w, step, None)
        alone = fit.sum_gradients(Rows(x[:1], -np.ones(1), None), None, w, step, None)
        assert (found - without).tolist() == alone.tolist()


@pytest.mark.parametrize("n", [1, 2, 7, 100, 5000])
def test_scores_and_clipped_gradients_are_functions_of_one_row(n):
    rng = np.random.default_rng(n)
    x, w, wide = rng.normal(size=(n, 37)), rng.normal(size=37), rng.normal(size=(n, 300)) * 2e6
    assert (scores(np.vstack([x[:1], x]), w)[1:] == scores(x, w)).all()
    assert scores(x, w) == pytest.approx(x @ w)
    assert (clip_gradients(np.vstack([wide[:1], wide]))[1:] == clip_gradients(wide)).all()


def test_coins_have_the_rate_that_is_priced():
    assert rate_of(0.25) == 2**14
    assert rate_of(1e-9) == 1
    assert coins(2**16, 1000).all()
    assert abs(coins(2**14, 40_000).mean() - 0.25) < 0.02


# Minima ------------------------------------------------------------------------------------------------------


def exact_gradient(problem: Problem, w: np.ndarray) -> np.ndarray:
    """Of Huber's loss, in rational numbers."""
    point = [Fraction(v) for v in w]
    total = [
        Fraction(problem.l2) * v + Fraction(b) for v, b in zip(point, problem.linear, strict=True)
    ]
    for i, row in enumerate(problem.x):
        x = [Fraction(v) for v in row]
        r = sum((a * b for a, b in zip(x, point, strict=True)), Fraction(0)) - Fraction(
            problem.y[i]
        )
        slope = max(-Fraction(problem.loss.slope), min(Fraction(problem.loss.slope), r))
        weight = Fraction(1 if problem.weights is None else problem.weights[i])
        total = [t + weight * slope * a for t, a in zip(total, x, strict=True)]
    return np.array([float(t) for t in total])


def problems(loss: ScoreLoss, n: int, seed: int, l2: float, weighted: bool) -> Problem:
    rng = np.random.default_rng(seed)
    x = np.rint(rng.uniform(-1, 1, (n, 4)) * UNIT) / UNIT
    y = (
        np.sign(rng.normal(size=n) + x @ [3, 0, -1, 0])
        if loss.name == "logistic"
        else rng.uniform(-1, 1, n)
    )
    return Problem(
        x,
        y,
        np.rint(rng.random(n) * 2**20) / 2**20 if weighted else None,
        loss,
        l2,
        rng.normal(size=4),
    )


@pytest.mark.parametrize("kind", [np.float64, np.longdouble])
def test_the_certificate_covers_the_exact_gradient(kind):
    for seed in range(4):
        problem = problems(HUBER, 1500, seed, 0.5, seed % 2 == 0)
        w = newton(problem, 1e-6)
        exact = float(np.linalg.norm(exact_gradient(problem, w)))
        bound = problem.bound_gradient(w, kind)[1]
        assert exact <= bound <= exact + 1e-9
        sizes = np.abs(problem.slopes(problem.x @ w)).sum()
        assert bound - exact >= 1000 * float(np.finfo(kind).eps) / 2 * sizes
        far = w + 1
        assert (
            float(np.linalg.norm(exact_gradient(problem, far)))
            <= problem.bound_gradient(far, kind)[1]
        )


@pytest.mark.parametrize("loss", [LOGISTIC, HUBER])
@pytest.mark.parametrize("l2", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("n", [0, 1, 5000])
def test_every_minimum_is_certified(loss, l2, n):
    for weighted in (False, True):
        problem = problems(loss, n, 7, l2, weighted)
        w = minimise(problem, 1e-6)
        assert problem.bound_gradient(w)[1] <= 1e-6


@pytest.mark.parametrize("loss", [LOGISTIC, HUBER])
@pytest.mark.parametrize("l2", [2.0**-20, 2.0**100])
def test_minima_of_collinear_columns_are_certified(loss, l2):
    problem = problems(loss, 5000, 3, l2, True)
    problem.x[:, 1], problem.x[:, 2] = problem.x[:, 0], 0.0
    problem.linear = np.zeros(4)
    assert problem.bound_gradient(minimise(problem, 1e-6))[1] <= 1e-6


@pytest.mark.parametrize("other", ["follow_newton_directions", "refine_minimum"])
def test_what_newton_leaves_is_finished_by_others(monkeypatch, other):
    monkeypatch.setattr(learn_solve_module, "newton", lambda problem, gamma: np.full(4, 3.0))
    if other == "refine_minimum":  # nothing but steps along the gradient is left
        monkeypatch.setattr(
            learn_solve_module, "follow_newton_directions", lambda problem, w, gamma: w
        )
        monkeypatch.setattr(np.linalg, "solve", lambda a, b: np.zeros(len(b)))
    problem = problems(LOGISTIC, 50, 1, 5.0, False)
    w = minimise(problem, 1e-4)
    assert problem.bound_gradient(w)[1] <= 1e-4


@pytest.mark.parametrize("residual", [2.0**-20, 1e-3, 1.0])
@pytest.mark.parametrize("y", ["one value", "two values", "any", "a line"])
def test_minima_are_found_whatever_the_cells_are(residual, y):
    # Each of these once took hours, or for ever, for one of the targets and none of the others.
    rng, n = np.random.default_rng(3), 20_000
    x = np.rint(np.column_stack([np.ones(n), rng.uniform(-1, 1, (n, 2))]) * UNIT) / UNIT
    targets = {
        "one value": np.ones(n),
        "two values": np.where(rng.random(n) < 0.5, 1.0, -1.0),
        "any": np.rint(rng.uniform(-1, 1, n) * UNIT) / UNIT,
        "a line": 0.25 + x[:, 1] / 2,
    }
    problem = Problem(x, targets[y], None, ScoreLoss("huber", residual, 1.0), 2.0**-20, np.zeros(3))
    gamma = 2.0**-20 * residual
    assert problem.bound_gradient(minimise(problem, gamma), np.longdouble)[1] <= gamma


def test_the_certificate_in_longer_numbers_adds_them_exactly():
    # Sixteen blocks, of which one adds half a unit in the last place of the sum as a double.
    n = 2**14
    y = np.full(n, -0.75)
    y[:1024] -= 2.0**-50
    problem = Problem(
        np.ones((n, 1)), y, None, ScoreLoss("huber", 1.0, 1.0), 1.0, np.array([0.25 - 2.0**13])
    )
    assert problem.bound_gradient(np.array([-0.25]), np.longdouble)[1] >= 2.0**-40


# Sensitivities: what leaves the data before any noise, on pairs of neighbours ---------------------------------------

CORNERS = [(a, b, t) for a in (-1.0, 0.3, 1.0) for b in (-1.0, 1.0) for t in (-1.0, 1.0)]
BASE = [(0.5, -0.5, 0.2), (-1.0, 1.0, -1.0), (1.0, 1.0, 1.0)]


def design(target: str, norm: float | None = None) -> Design:
    frame = pd.DataFrame([CORNERS[0]], columns=["a", "b", "t"]).assign(who=0)
    leaves = frame.dp.open(1)._session.leaves
    pair = Bounds(-1.0, 1.0)
    goal = Target(leaves["t"], pair, None)
    if target == "class":
        goal = Target(leaves["t"], None, keys_for([-1.0, 1.0], leaves["t"], "t"))
    return Design(None, ((leaves["a"], pair), (leaves["b"], pair)), goal, norm)


def fits(norm=None):
    linear, classes = design("number", norm), design("class", norm)
    return {
        "statistics": Statistics(linear, HUBER, None),
        "output": OutputFit(linear, HUBER, None),
        "logistic": OutputFit(classes, LOGISTIC, 0.5),
        "descent": Descent(linear, HUBER, 1.0, steps=1),
    }


def unnoised(fit, rows, unit):
    """The parts of the plan with the integers to which noise is added."""
    seen = []

    def record(part, integers):
        seen.append((plan.parts[part], integers.copy()))
        return integers

    frame = pd.DataFrame(rows, columns=["a", "b", "t", "who"])
    plan = fit.plan(unit, PRICE, None, ())
    fit.run(PandasEngine(frame), plan, unit, record)
    return seen


def units():
    who = (
        pd.DataFrame({"a": [0.0], "b": [0.0], "t": [0.0], "who": [1]})
        .dp.open(1)
        ._session.leaves["who"]
    )
    for neighbors in ("add-remove", "replace-one"):
        yield Unit(neighbors), 1, neighbors
        yield (
            Unit(neighbors, (who,), 2, None),
            5,
            neighbors,
        )  # somebody has five rows and counts for two


@pytest.mark.parametrize("name", ["statistics", "output", "logistic", "descent"])
@pytest.mark.parametrize("norm", [None, 0.5])
def test_no_pair_of_neighbours_is_further_apart_than_the_plan_says(name, norm):
    for unit, rows, neighbors in units():
        fit = fits(norm)[name]
        base = [(*row, 10 + i) for i, row in enumerate(BASE)]
        mine = [[(*corner, 1)] * rows for corner in CORNERS]
        pairs = (
            [([], m) for m in mine]
            if neighbors == "add-remove"
            else itertools.combinations(mine, 2)
        )
        largest = 0.0
        for one, two in list(pairs)[:40]:
            runs = [unnoised(fit, base + some, unit) for some in (one, two)]
            for (part, first), (_, second) in zip(*runs, strict=True):
                apart = [abs(int(v)) for v in (first - second)[:, 0]]
                assert sum(apart) <= part.l1
                assert sum(v * v for v in apart) <= part.l2_squared
                largest = max(largest, sum(v * v for v in apart) / part.l2_squared)
        assert largest > 0.005  # the bound is about these pairs


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_sensitivities_of_minima_leave_room_for_solver_and_rounding(neighbors):
    """Theorems 1 and 2: what is left of gradients, on both sides, and half a step of each coefficient, on both sides."""
    unit, root = Unit(neighbors), math.sqrt(3)
    output = OutputFit(design("number"), HUBER, 4.0)
    part = output.plan(unit, PRICE, None, ()).parts[0]
    reach = 0.5 * output.design.length
    moved = (2 if unit.replaces else 1) * reach + 2 * 2.0**-20 * reach
    assert math.sqrt(part.l2_squared) >= moved / 4.0 / part.step + root
    assert part.l1 >= root * (moved / 4.0 / part.step + root)
    objective = Objective(design("class"), LOGISTIC, None, Fraction(1, 10**6))
    found = objective.numbers(unit, Fraction(1))
    after = objective.plan(unit, Price(Fraction(1)), None, ()).parts[1]
    assert after.l1 >= root * (2 * found.gamma / found.l2 / found.out + root)
    assert found.gamma >= 2.0**-20 * objective.design.length


# Prices ------------------------------------------------------------------------------------------------------


def test_statistics_solve_ridge_regression():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(100, 3))
    y = x @ [1, 2, 3]
    assert ridge(x.T @ x, x.T @ y, 0.0, 0.0) == pytest.approx([1, 2, 3])
    expected = np.linalg.solve(x.T @ x + 5 * np.eye(3), x.T @ y)
    assert ridge(x.T @ x, x.T @ y, 5.0, 0.0) == pytest.approx(expected)
    broken = x.T @ x - 200 * np.eye(3)  # what noise may make of it
    assert np.isfinite(ridge(broken, x.T @ y, None, 10.0)).all()


def test_loss_of_the_objective_is_twice_the_gaussian_curve():
    mu = largest_mu(1.0, 1e-6, 1)
    assert 2 * _gaussian.delta_at(mu, 1.0) <= 1e-6 <= 2.01 * _gaussian.delta_at(mu, 1.0)
    draws = np.abs(np.random.default_rng(1).normal(size=10**6))
    for directions in (1, 2, 5):
        mu = largest_mu(0.5, 0.05, directions)
        length = np.sqrt(
            sum(np.random.default_rng(i).normal(size=10**5) ** 2 for i in range(directions))
        )
        loss = mu * length + mu * mu / 2
        assert np.maximum(0, 1 - np.exp(0.5 - loss)).mean() <= 0.05 * 1.02
    assert largest_mu(0.5, 0.05, 5) < largest_mu(0.5, 0.05, 2) < largest_mu(0.5, 0.05, 1)
    assert draws.size == 10**6


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_numbers_of_the_objective_add_up_to_the_price(neighbors):
    unit, epsilon = Unit(neighbors), Fraction(1)
    fit = Objective(design("class"), LOGISTIC, None, Fraction(1, 10**6))
    found = fit.numbers(unit, epsilon)
    reach, trace = fit.design.length, fit.design.length**2 / 4
    moved = reach * (2 if unit.replaces else 1)
    mu = moved / found.sigma
    hessian = math.log1p(trace / found.l2)
    assert hessian <= 0.25 * (1 + 1e-9)
    left = 1 - 1 / 32 - hessian
    if unit.replaces:  # two directions: the tail of a length in the plane
        assert math.exp(-((left / mu - mu / 2) ** 2) / 2) <= 1e-6
    else:
        assert 2 * _gaussian.delta_at(mu, left) <= 1e-6
        assert 2 * _gaussian.delta_at(mu * 1.001, left) > 1e-6 * 0.99
    plan = fit.plan(unit, Price(epsilon), None, ())
    first, after = plan.parts
    assert float(first.noise.variance) * first.step**2 >= found.sigma**2
    assert after.l1 / after.noise.scale <= Fraction(1, 32)
    assert plan.cost == (1.0, 1e-6)


def test_people_with_many_rows_pay_for_every_direction():
    unit = next(u for u, rows, n in units() if rows > 1 and n == "add-remove")
    fit = Objective(design("class"), LOGISTIC, None, Fraction(1, 10**6))
    assert fit.numbers(unit, Fraction(1)).sigma > 2 * fit.numbers(Unit(), Fraction(1)).sigma


def test_sampled_steps_have_a_curve_that_another_accountant_confirms():
    delta, rate = Fraction(1, 10**6), Fraction(1, 4)
    sigma = sampled_sigma(Fraction(1), delta, rate, 100)
    first = Gaussian(first_sigma(sigma, 2**14, 100))
    events = [(PoissonGaussian(rate, Fraction(sigma)), 100), (first, 1)]
    assert 0.8 < pld.epsilon(events, float(delta)) <= 1
    assert 0.999 < Rdp.report(events, delta) <= 1
    # The first release takes one part in 32, as a share of mu squared where sampling is forgotten.
    assert float(first.mu_squared) * 31 == pytest.approx(100 * float(rate / Fraction(sigma)) ** 2)
    assert sampled_sigma(Fraction(1), delta, Fraction(1, 8), 100) < sigma < 10 / 0.2367


def test_replaced_people_are_charged_for_every_step():
    one = opened(people(50, 1), neighbors="replace-one")
    plan = one.explain.fit(
        LogisticRegression("gradient", epsilon=1, delta=1e-6, max_iter=4), X=["x0"], y="y"
    )
    assert plan.loss.kind == "discrete_gaussian"
    assert plan.parts[0].l2_squared == 4 * CLIP**2
    assert plan.loss.parts[0][1] == 16 * CLIP**2
    assert [p.l2_squared for p in plan.parts] == [
        d // n for (_, d), n in zip(plan.loss.parts, (4, 1), strict=True)
    ]


def summed(model, frame: pd.DataFrame) -> tuple[float, float, float]:
    """The sum of losses at a fitted model and its least, in scaled units, and the length of the best coefficients."""
    half = np.array([BOUNDS[f][1] for f in FEATURES])
    losses = Losses((frame[FEATURES] / half).assign(y=frame["y"]))
    at = np.r_[model.intercept_, model.coef_ * half]
    n = len(frame)
    return losses.of(at) * n, losses.least * n, float(np.linalg.norm(losses.best))


def test_what_noise_costs_is_within_what_the_page_says():
    frame = people(3000, 5)
    p = opened(frame, 1e3, 5e-4)
    within = {"objective": 0, "output": 0}
    for _ in range(40):
        for method in within:
            model = p.fit(
                LogisticRegression(method, epsilon=1, delta=1e-6), X=FEATURES, y="y", fresh=True
            )
            value, least, length = summed(model, frame)
            if method == "objective":
                words = model.plan_.told.partition("by (")[2]
                noise, own = float(words.split()[0]), float(words.split()[2])
                bound = (noise + own * length) ** 2
            else:
                part, l2 = model.plan_.parts[0], model.l2_
                square = (
                    19.7 * (part.noise.deviation * part.step) ** 2
                )  # chi-squared, 11 degrees, 95 %
                bound = (l2 + len(frame) * 11 / 4) * square / 2 + l2 * length**2 / 2
            within[method] += value - least <= bound
    assert min(within.values()) >= 36  # 95 % are expected, of 40


@settings(max_examples=100, deadline=None)
@given(st.floats(0, 50), st.floats(0.1, 100), st.integers(1, 5), st.integers(0, 99))
def test_bound_of_the_objective_is_reached_by_the_flattest_losses(tilt, l2, p, seed):
    # Losses g . w, which say nothing of curvature: the minimum of g.w + b.w + l2/2 |w|**2 is -(g + b)/l2. The worst g for w
    # of a length is the one with the minimum half way between w and -b/l2.
    rng = np.random.default_rng(seed)
    b, w = rng.normal(size=(2, p))
    most = (
        float(np.linalg.norm(b)) / (2 * math.sqrt(l2))
        + math.sqrt(l2) / 2 * float(np.linalg.norm(w))
    ) ** 2
    for g in (tilt * rng.normal(size=p), -b - l2 / 2 * (w - b / l2)):
        at = -(g + b) / l2
        assert g @ (at - w) <= most * (1 + 1e-9) + 1e-9
    u = -b / np.linalg.norm(b)  # against the noise the two lengths add up
    g = -b - l2 / 2 * (-u - b / l2)
    reached = (float(np.linalg.norm(b)) / (2 * math.sqrt(l2)) + math.sqrt(l2) / 2) ** 2
    assert g @ (-(g + b) / l2 + u) == pytest.approx(reached)


# Ledgers ------------------------------------------------------------------------------------------------------


def test_fits_are_read_back_from_a_ledger_file(tmp_path):
    frame, path = people(200, 3), tmp_path / "budget.db"
    words = {"ledger": path, "population": "people"}
    coefficients = []
    for _ in range(2):
        p = opened(frame, 4, 1e-5, **words)
        fits = [
            LogisticRegression(m, epsilon=1, delta=1e-6)
            for m in ("objective", "output", "gradient")
        ]
        coefficients.append([p.fit(f, X=FEATURES, y="y").coef_ for f in fits])
        assert len(p.ledger) == 3
        p.close()
    assert np.array_equal(*coefficients)


# Replayed -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (LogisticRegression("output", epsilon=1), "y"),
        (LogisticRegression("gradient", epsilon=1, delta=1e-6, max_iter=5, sample=1), "y"),
        (LinearRegression(epsilon=1), "t"),
        (LinearRegression("output", epsilon=1, norm=1), "t"),
    ],
)
def test_replay_finds_every_distance_within_its_sensitivity(model, y):
    frame = people(60, 4)
    words = {"epsilon": 10, "delta": 1e-4, "bounds": BOUNDS, "accountant": "pure"}
    found = audit.replay(
        lambda p: p.fit(model, X=FEATURES, y=y).coef_, frame, frame.iloc[:-1], **words
    )
    assert found.ok, found
    assert found.steps


@pytest.mark.parametrize("method", ["objective", "gradient"])
def test_replay_says_that_it_cannot_judge_objectives_nor_coins(method):
    frame = people(60, 4)
    model = LogisticRegression(method, epsilon=1, delta=1e-6, max_iter=5, sample=0.25)
    with pytest.raises(Refused, match="cannot listen"):
        audit.replay(
            lambda p: p.fit(model, X=FEATURES, y="y").coef_,
            frame,
            frame.iloc[:-1],
            epsilon=10,
            delta=1e-4,
            bounds=BOUNDS,
            accountant="pure",
        )
