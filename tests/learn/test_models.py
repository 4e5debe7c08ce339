"""Models end to end: how good they are, what they cost, and that nobody's cells change what is said."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

import dpframe
from dpframe.engines.reading import FrameReader
from dpframe.learn import LinearRegression, LogisticRegression
from tests.learn.data import BOUNDS, FEATURES, opened, people

TRAIN, TEST = people(10_000, 1), people(20_000, 2)
PRICE = {"epsilon": 1, "delta": 1e-6}
ALL = [
    *[(LogisticRegression, method) for method in ("objective", "output", "gradient")],
    *[(LinearRegression, method) for method in ("statistics", "objective", "output", "gradient")],
]


def plain_accuracy() -> float:
    """Of the fit that protects nobody."""
    x = np.column_stack([np.ones(len(TRAIN)), TRAIN[FEATURES]])
    s = np.where(TRAIN["y"], 1, -1)

    def loss(w):
        z = s * (x @ w)
        return np.logaddexp(0, -z).sum(), -(s / (1 + np.exp(z))) @ x

    w = optimize.minimize(loss, np.zeros(11), jac=True, method="L-BFGS-B").x
    return float(
        np.mean((np.column_stack([np.ones(len(TEST)), TEST[FEATURES]]) @ w > 0) == TEST["y"])
    )


@pytest.mark.parametrize(
    ("method", "points"), [("objective", 0.02), ("output", 0.04), ("gradient", 0.03)]
)
def test_classes_are_predicted_nearly_as_well_as_without_privacy(method, points):
    model = opened(TRAIN).fit(LogisticRegression(method, **PRICE), X=FEATURES, y="y")
    assert model.score(TEST[FEATURES], TEST["y"]) >= plain_accuracy() - points


@pytest.mark.parametrize("method", ["statistics", "objective", "output", "gradient"])
def test_numbers_are_predicted_nearly_as_well_as_without_privacy(method):
    model = opened(TRAIN).fit(LinearRegression(method, **PRICE), X=FEATURES, y="t")
    x = np.column_stack([np.ones(len(TRAIN)), TRAIN[FEATURES]])
    plain = np.linalg.lstsq(x, TRAIN["t"], rcond=None)[0]
    off = TEST["t"] - np.column_stack([np.ones(len(TEST)), TEST[FEATURES]]) @ plain
    best = 1 - float(np.var(off) / np.var(TEST["t"]))
    assert model.score(TEST[FEATURES], TEST["t"]) >= best - (0.12 if method == "output" else 0.03)


@pytest.mark.parametrize("method", ["output", "statistics"])
def test_without_delta_the_noise_is_pure(method):
    kind, y = (LinearRegression, "t") if method == "statistics" else (LogisticRegression, "y")
    p = opened(TRAIN, delta=0)
    model = p.fit(kind(method, epsilon=1), X=FEATURES, y=y)
    assert model.cost_ == (1.0, 0.0)
    assert model.plan_.mechanism == "laplace"
    assert p.budget.remaining == 0


@pytest.mark.parametrize("method", ["objective", "gradient"])
def test_without_delta_the_others_say_what_to_do(method):
    p = opened(TRAIN.head(10), delta=0)
    with pytest.raises(dpframe.BudgetError, match=r"delta"):
        p.fit(LogisticRegression(method, epsilon=1), X=FEATURES, y="y")
    assert p.budget.spent == 0


@pytest.mark.parametrize(("kind", "method"), ALL)
def test_plan_is_the_same_for_all_data_and_is_what_is_charged(kind, method):
    y = "y" if kind is LogisticRegression else "t"
    model = kind(method, **PRICE)
    plans = [
        opened(frame).explain.fit(model, X=FEATURES, y=y) for frame in (TRAIN, TRAIN.head(0), TEST)
    ]
    assert plans[0] == plans[1] == plans[2]
    p = opened(TRAIN.head(50))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FrameReader, "column", lambda *_: pytest.fail("explain read the data"))
        assert p.explain.fit(model, X=FEATURES, y=y) == plans[0]
    assert not hasattr(model, "coef_")
    p.fit(model, X=FEATURES, y=y)
    assert model.plan_ == plans[0]
    assert model.cost_ == plans[0].cost
    assert model.cost_.epsilon <= 1
    assert model.cost_.delta <= 1e-6
    assert len(p.ledger) == 1


@pytest.mark.parametrize(("kind", "method"), ALL)
def test_no_rows_are_a_valid_private_answer(kind, method):
    y = "y" if kind is LogisticRegression else "t"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = opened(TRAIN.head(0)).fit(kind(method, **PRICE), X=FEATURES[:2], y=y)
    assert np.isfinite(model.coef_).all()
    assert model.coef_.shape == (2,)
    assert isinstance(model.intercept_, float)


@pytest.mark.parametrize(("kind", "method"), ALL)
def test_the_same_question_again_is_free_and_has_the_same_answer(kind, method):
    y = "y" if kind is LogisticRegression else "t"
    p = opened(TRAIN.head(100))
    one = p.fit(kind(method, **PRICE), X=FEATURES[:2], y=y)
    two = kind(method, **PRICE).fit(p[FEATURES[:2]], p[y])
    assert np.array_equal(one.coef_, two.coef_)
    assert len(p.ledger) == 1


def test_a_repeat_is_free_when_a_share_of_what_may_fail_is_another_one():
    df = pd.DataFrame({"x": np.linspace(-1, 1, 400), "y": [False, True] * 200})
    p = df.dp.open(10, 1e-6)

    def fit():
        return LogisticRegression("objective", epsilon=0.2).fit(
            p[["x"]], p["y"], bounds={"x": (-1, 1)}
        )

    first = fit()
    with pytest.warns(UserWarning, match="plain sum"):
        p.count(epsilon=7)  # which ends the residue, and leaves more to failures
    spent = p.budget.fraction
    assert fit().coef_.tolist() == first.coef_.tolist()
    assert p.budget.fraction == spent


def test_another_regulariser_after_the_same_statistics_is_free():
    p = opened(TRAIN)
    fits = [p.fit(LinearRegression(l2=l2, **PRICE), X=FEATURES, y="t") for l2 in (0, None, 1e4)]
    sizes = [float(np.linalg.norm(f.coef_)) for f in fits]
    assert sizes[0] > sizes[1] > sizes[2]
    assert len(p.ledger) == 1


def test_coefficients_are_in_units_of_the_data():
    frame = pd.DataFrame({"a": np.arange(4000) % 100 + 1000.0, "flag": np.arange(4000) % 3 == 0})
    frame["t"] = 5 * frame["a"] - 7 * frame["flag"] + 100
    p = frame.dp.open(1e3, bounds={"a": (1000, 1100), "t": (5000, 6000)})
    model = p.fit(LinearRegression(l2=0, epsilon=900), y="t")
    assert list(model.feature_names_in_) == ["a", "flag"]
    assert model.coef_ == pytest.approx([5, -7], abs=0.02)
    assert model.intercept_ == pytest.approx(100, abs=20)
    public = pd.DataFrame({"flag": [False], "a": [1050.0]})
    assert model.predict(public)[0] == pytest.approx(5350, abs=1)  # by name, in any order
    assert model.predict([[1050.0, 1.0]])[0] == pytest.approx(5343, abs=1)


def test_classes_are_those_that_were_listed_and_other_labels_do_not_count():
    label = np.where(np.arange(4000) % 2, "yes", "no")
    frame = pd.DataFrame({"x": np.arange(4000) % 2 + 0.0, "label": label})
    odd = pd.concat(
        [frame, pd.DataFrame({"x": [0.0] * 4000, "label": ["maybe"] * 4000})], ignore_index=True
    )
    for some in (frame, odd):
        p = some.dp.open(100, bounds={"x": (0, 1)})
        model = p.fit(
            LogisticRegression("output", epsilon=90, l2=4, classes=["no", "yes"]),
            X=["x"],
            y="label",
        )
        assert list(model.classes_) == ["no", "yes"]
        assert list(model.predict([[0], [1]])) == ["no", "yes"]
        assert model.predict_proba([[1]]).sum() == pytest.approx(1)
        assert model.intercept_ == pytest.approx(-model.coef_[0] / 2, abs=0.2)


def test_rows_with_a_null_do_not_count():
    frame = pd.DataFrame({"x": [0.0, 1.0] * 2000, "t": [1.0, 3.0] * 2000})
    holes = pd.DataFrame({"x": [None, 0.5] * 2000, "t": [9.0, None] * 2000})
    p = pd.concat([frame, holes], ignore_index=True).dp.open(
        1e3, bounds={"x": (0, 1), "t": (0, 10)}
    )
    model = p.fit(LinearRegression(l2=0, epsilon=900), X=["x"], y="t")
    assert model.predict([[0], [1]]) == pytest.approx([1, 3], abs=0.05)


def test_a_condition_chooses_the_rows():
    frame = pd.DataFrame(
        {
            "x": [0.0, 1.0] * 4000,
            "t": [1.0, 3.0] * 2000 + [8.0, 8.0] * 2000,
            "k": [0] * 4000 + [1] * 4000,
        }
    )
    p = frame.dp.open(1e3, bounds={"x": (0, 1), "t": (0, 10)}).query("k == 0")
    model = LinearRegression(l2=0).fit(p[["x"]], p["t"], epsilon=900)
    assert model.predict([[0], [1]]) == pytest.approx([1, 3], abs=0.05)


def test_somebody_with_many_rows_weighs_no_more_than_the_limit():
    many = pd.DataFrame({"who": 1, "x": 1.0, "t": 10.0}, index=range(50_000))
    few = pd.DataFrame({"who": np.arange(2, 4002), "x": [0.0, 1.0] * 2000, "t": [1.0, 3.0] * 2000})
    frame = pd.concat([many, few], ignore_index=True)
    p = frame.dp.open(1e3, unit="who", max_rows=2, bounds={"x": (0, 1), "t": (0, 10)})
    for model in (LinearRegression(l2=0), LinearRegression("output", l2=2)):
        p.fit(model, X=["x"], y="t", epsilon=400)
        assert model.predict([[0], [1]]) == pytest.approx([1, 3], abs=0.1)


@pytest.mark.parametrize(("kind", "method"), ALL)
def test_people_with_several_rows_are_fitted_by_every_method(kind, method):
    several = pd.concat([TRAIN.head(4000)] * 3, ignore_index=True).assign(
        who=[i % 4000 for i in range(12_000)]
    )
    y, goal = ("y", 0.8) if kind is LogisticRegression else ("t", 0.8)
    p = opened(several, 40, 4e-6, unit="who", max_rows=2)
    model = p.fit(kind(method, epsilon=20, delta=1e-6), X=FEATURES, y=y)
    assert model.score(TEST[FEATURES], TEST[y]) > goal
    assert "at most 2 rows" in model.plan_.why


def test_fits_can_be_planned_ahead_and_paid_as_one():
    p = opened(TRAIN.head(100))
    with p.plan_ahead() as batch:
        rows = batch.count(epsilon=0.5)
        model = LogisticRegression("output", epsilon=0.5)
        batch.fit(model, X=FEATURES, y="y")
        assert not hasattr(model, "coef_")
    assert rows.answer > 0
    assert model.coef_.shape == (10,)
    assert p.budget.remaining == 0


def test_no_cell_makes_a_fit_warn():
    wild = pd.DataFrame(
        {"x": [np.inf, -np.inf, 1e308, -1e308, 5e-324] * 20, "y": [0, 1, 7, 1, 0] * 20}
    )
    for method in ("objective", "output", "gradient"):
        bounds = {"x": (-1e-3, 1e-3), "y": (0, 1)}
        p = wild.copy().dp.open(9, 1e-5, accountant="pure", bounds=bounds, because="tests")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.isfinite(
                p.fit(LogisticRegression(method, epsilon=1), X=["x"], y="y").coef_
            ).all()


@pytest.mark.parametrize(("kind", "method"), ALL)
@pytest.mark.parametrize("epsilon", [2.0**-40, 2.0**-20, 500])
def test_prices_at_the_ends_of_the_range_are_answered(kind, method, epsilon):
    y = "y" if kind is LogisticRegression else "t"
    p = opened(TRAIN.head(300), 1000, 4e-6)
    model = kind(method, epsilon=epsilon, delta=1e-6, max_iter=5)
    if method == "objective" and epsilon < 1e-9:  # less than the grid of its noise is worth
        with pytest.raises(dpframe.BudgetError, match="too small"):
            p.fit(model, X=FEATURES[:3], y=y)
        return
    p.fit(model, X=FEATURES[:3], y=y)
    assert np.isfinite(model.coef_).all()
    assert model.cost_.epsilon <= epsilon


def test_constant_features_and_constant_bounds_are_no_error():
    frame = pd.DataFrame({"one": 1.0, "x": [0.0, 1.0] * 500, "t": [0.0, 1.0] * 500})
    p = frame.dp.open(1e3, bounds={"one": (1, 1), "x": (0, 1), "t": (0, 1)})
    model = p.fit(LinearRegression(epsilon=900), y="t")
    assert model.coef_[0] == 0
    assert model.predict([[1, 0], [1, 1]]) == pytest.approx([0, 1], abs=0.1)


def test_what_was_given_as_public_is_in_the_ledger():
    p = pd.DataFrame({"x": [1.0], "c": ["a"]}).dp.open(10)
    p.fit(
        LogisticRegression("output", epsilon=1, classes=["a", "b"]),
        X=["x"],
        y="c",
        bounds={"x": (0, 2)},
    )
    assert list(p.declarations["what"]) == ["bounds", "keys"]


def test_bounds_of_the_notes_say_how_many_people_a_model_needs():
    # More people than the order that the notes state for this excess loss, and the measured excess is below it.
    alpha = 0.1
    assert len(TRAIN) > dpframe.calibrate.sgd_n(alpha, 1, 1e-6, dimension=11)
    model = opened(TRAIN).fit(LogisticRegression("gradient", **PRICE), X=FEATURES, y="y")
    x, s = TRAIN[FEATURES].to_numpy(), np.where(TRAIN["y"], 1, -1)

    def loss(w):
        return np.logaddexp(0, -s * (x @ w[1:] + w[0])).mean()

    least = optimize.minimize(loss, np.zeros(11), method="L-BFGS-B").fun
    assert loss(np.r_[model.intercept_, model.coef_]) - least < alpha


# What is refused, before anything is charged ---------------------------------------------------------------------


def small() -> pd.DataFrame:
    return pd.DataFrame(
        {"x": [1.0, 2.0], "z": [1.0, 2.0], "y": [0, 1], "word": ["a", "b"], "t": [1.0, 2.0]}
    )


WRONG = {
    "bounds": lambda p: p.fit(LogisticRegression(), X=["z"], y="y"),
    "target bounds": lambda p: p.fit(LinearRegression(), X=["x"], y="z"),
    "empty": lambda p: p.fit(LogisticRegression(), X=[], y="y"),
    "target among": lambda p: p.fit(LogisticRegression(), X=["x", "t"], y="t"),
    "twice": lambda p: p.fit(LogisticRegression(), X=["x", "x"], y="y"),
    "text": lambda p: p.fit(LogisticRegression(), X=["word"], y="y"),
    "no target": lambda p: p.fit(LogisticRegression(), X=["x"]),
    "unknown": lambda p: p.fit(LogisticRegression(), X=["xx"], y="y"),
    "classes": lambda p: p.fit(LogisticRegression(), X=["x"], y="word"),
    "one class": lambda p: p.fit(LogisticRegression(classes=["a"]), X=["x"], y="word"),
    "three": lambda p: p.fit(LogisticRegression(classes=[0, 1, 2]), X=["x"], y="y"),
    "null": lambda p: p.fit(LogisticRegression(classes=[0, None]), X=["x"], y="y"),
    "string": lambda p: p.fit(LogisticRegression(), X="x", y="y"),
    "class itself": lambda p: p.fit(LogisticRegression, X=["x"], y="y"),
    "a stranger": lambda p: p.fit(object(), X=["x"], y="y"),
    "another frame": lambda p: LogisticRegression().fit(p[["x"]], p.query("t > 1")["y"]),
    "plain": lambda p: LogisticRegression().fit(small()[["x"]], small()["y"]),
    "mechanism": lambda p: p.fit(LogisticRegression(), X=["x"], y="y", mechanism="laplace"),
    "within": lambda p: p.fit(LogisticRegression("output"), X=["x"], y="y", within=0.1),
    "too dear": lambda p: p.fit(LogisticRegression(epsilon=99), X=["x"], y="y"),
    "word": lambda p: p.fit(LogisticRegression(), X=["x"], y="y", epsilom=1),
    "float classes": lambda p: p.fit(LogisticRegression("output", epsilon=1), X=["x"], y="t"),
    "wide classes": lambda p: p.fit(
        LogisticRegression("output", epsilon=1), X=["x"], y="y", bounds={"y": (0, 2)}
    ),
    "two prices": lambda p: p.fit(LogisticRegression(epsilon=1), X=["x"], y="y", epsilon=0.1),
    "two deltas": lambda p: p.fit(
        LinearRegression(delta=1e-7), X=["x"], y="t", epsilon=0.1, delta=1e-7
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_questions_are_refused_for_nothing_whatever_the_cells(wrong):
    told = set()
    for rows in ([0, 1], [], [1, 0]):
        frame = small().iloc[rows].reset_index(drop=True)
        p = frame.dp.open(
            1, 1e-5, bounds={"x": (0, 3), "y": (0, 1), "t": (0, 3)}, accountant="pure"
        )
        with pytest.raises(dpframe.DPError) as caught:
            WRONG[wrong](p)
        told.add((type(caught.value), str(caught.value)))
        assert p.budget.spent == 0
    assert len(told) == 1


@pytest.mark.parametrize(
    "words",
    [
        {"method": "exact"},
        {"l2": 0},
        {"l2": 0, "method": "output"},
        {"l2": -1},
        {"l2": float("nan")},
        {"norm": 0},
        {"norm": float("inf")},
        {"clip": 1},
        {"clip": 0, "method": "gradient"},
        {"max_iter": 0},
        {"max_iter": 1.5},
        {"sample": 0},
        {"sample": 1.5},
        {"epsilon": 0},
        {"delta": 1},
    ],
)
def test_wrong_arguments_of_a_model_are_refused(words):
    with pytest.raises(dpframe.DPError):
        LogisticRegression(**words)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("output", {"l2": -4.0}),
        ("output", {"l2": 1e-300}),
        ("output", {"l2": 0}),
        ("output", {"norm": float("nan")}),
        ("output", {"epsilon": -1}),
        ("output", {"residual": float("inf")}),
        ("gradient", {"clip": -1.0}),
        ("gradient", {"max_iter": -3}),
        ("gradient", {"max_iter": 2.5}),
        ("gradient", {"sample": -1.0}),
    ],
)
def test_attributes_that_were_changed_are_looked_at_again(method, words):
    p = opened(TRAIN.head(20))
    model = LinearRegression(method, **PRICE)
    for name, value in words.items():
        setattr(model, name, value)
    for verb in (p.fit, p.explain.fit):
        with pytest.raises(dpframe.DPError):
            verb(model, X=["x0"], y="t")
    assert p.budget.spent == 0


def test_the_price_is_what_the_model_says():
    p = opened(TRAIN.head(20))
    model = LogisticRegression("output", epsilon=1)
    model.epsilon = 0.25
    p.fit(model, X=["x0"], y="y")
    assert "epsilon=0.25" in repr(model)
    assert p.budget.spent == 0.25


def test_predictions_are_for_public_data_and_for_fitted_models():
    p = opened(TRAIN.head(20))
    with pytest.raises(dpframe.BadValue, match="not fitted"):
        LogisticRegression().predict([[1]])
    model = p.fit(LogisticRegression("output", epsilon=1), X=["x0"], y="y")
    with pytest.raises(dpframe.BadType, match="public data"):
        model.predict(p[["x0"]])
    with pytest.raises(dpframe.BadValue, match="1 columns"):
        model.predict([[1, 2]])
    with pytest.raises(KeyError):
        model.predict(pd.DataFrame({"other": [1.0]}))
    assert BOUNDS["x0"] == (-1, 1)
