"""What a model says before and after a fit: its classes, its regulariser, its noise in units of the data; what it refuses."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe.learn import LinearRegression, LogisticRegression

ROWS = np.arange(3000)
FRAME = pd.DataFrame(
    {
        "age": 18.0 + ROWS % 78,
        "ill": ROWS % 78 > 40,
        "code": (ROWS % 78 > 40).astype(int),
        "share": ROWS % 101 / 100,
        "percent": ROWS % 101 + 0.0,
        "word": np.where(ROWS % 2, "a", "b"),
        "rent": 10.0 * (ROWS % 78),
    }
)
BOUNDS = {"age": (18, 95), "share": (0, 1), "percent": (0, 100), "rent": (0, 800)}


def opened(**words):
    return FRAME.copy().dp.open(
        1024, 1e-5, accountant="pure", **{"bounds": BOUNDS, "because": "tests"} | words
    )


# Classes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("y", ["percent", "share", "code", "word"])
def test_a_target_that_is_no_two_classes_is_refused_and_charges_nothing(y):
    p = opened()
    for ask in (p, p.explain):
        with pytest.raises(dpframe.MissingKeys, match=r"classes="):
            ask.fit(LogisticRegression("output", epsilon=1), X=["age"], y=y)
    assert p.budget.spent == 0


@pytest.mark.parametrize(
    ("y", "session", "model", "fit", "told", "classes"),
    [
        ("ill", {}, {}, {}, "ill (True against False)", [False, True]),
        ("word", {"keys": {"word": ["a", "b"]}}, {}, {}, "word ('b' against 'a')", ["a", "b"]),
        (
            "percent",
            {"keys": {"percent": [0.0, 100.0]}},
            {},
            {},
            "percent (100.0 against 0.0)",
            [0.0, 100.0],
        ),
        ("code", {"bounds": {**BOUNDS, "code": (0, 1)}}, {}, {}, "code (1 against 0)", [0, 1]),
        ("code", {}, {}, {"bounds": {"code": (0, 1)}}, "code (1 against 0)", [0, 1]),
        ("percent", {}, {"classes": [50.0, 1.0]}, {}, "percent (1.0 against 50.0)", [50.0, 1.0]),
    ],
)
def test_the_plan_says_which_two_classes_are_taken(y, session, model, fit, told, classes):
    p = opened(**session)
    plan = p.explain.fit(LogisticRegression("output", epsilon=1, **model), X=["age"], y=y, **fit)
    assert told in plan.question
    found = p.fit(LogisticRegression("output", epsilon=1, **model), X=["age"], y=y, **fit)
    assert found.classes_.tolist() == classes


def test_what_a_fit_was_told_is_in_the_plan():
    p = opened()
    model = LogisticRegression("output", epsilon=1, classes=["a", "b"])
    plan = p.explain.fit(model, X=["age"], y="word", bounds={"age": (0, 99)})
    assert plan.declared == ("bounds age: (0, 99)", "keys word: ['a', 'b']")
    plan = p.explain.fit(
        LogisticRegression("output", epsilon=1), X=["age"], y="code", bounds={"code": (0, 1)}
    )
    assert plan.declared == ("keys code: [0, 1]",)
    wide = opened(bounds={**BOUNDS, "code": (0, 9)})
    plan = wide.explain.fit(
        LogisticRegression("output", epsilon=1), X=["age"], y="code", bounds={"code": (0, 1)}
    )
    assert plan.declared == ("keys code: [0, 1]",)


# The regulariser and the noise -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["output", "objective", "gradient"])
@pytest.mark.parametrize("l2", [None, 64.0])
def test_the_regulariser_that_was_used_is_told_before_and_after(method, l2):
    p = opened()
    model = LogisticRegression(method, epsilon=1, delta=1e-6, l2=l2, max_iter=5)
    told = re.search(r"l2=([\d.]+)", p.explain.fit(model, X=["age"], y="ill").told)
    p.fit(model, X=["age"], y="ill")
    assert told is not None
    assert float(told[1]) == pytest.approx(model.l2_, rel=1e-3)
    assert model.l2_ == (64 if l2 else model.l2_)
    assert model.l2_ > 0


def test_ridge_of_noisy_statistics_is_reported_and_repeats_the_fit():
    p = opened()
    chosen = p.fit(LinearRegression(epsilon=1), X=["age"], y="rent")
    given = p.fit(LinearRegression(epsilon=1, l2=chosen.l2_), X=["age"], y="rent")
    assert len(p.ledger) == 1
    assert given.coef_ == pytest.approx(chosen.coef_)
    assert f"l2={chosen.l2_:.4g}" in chosen.plan_.told


def test_output_noise_in_units_of_the_data_is_that_of_coefficients():
    p = opened()
    words = {"X": ["age", "share"], "y": "rent", "fresh": True}
    fits = [p.fit(LinearRegression("output", epsilon=1, l2=64), **words).coef_ for _ in range(60)]
    plan = p.explain.fit(LinearRegression("output", epsilon=1, l2=64), **words)
    exact = p.fit(LinearRegression("output", epsilon=900, l2=64), **words).coef_
    for place, name in enumerate(["age", "share"]):
        error = float(re.search(rf"{name} ±([\d.e+-]+)", plan.told)[1])
        off = np.abs(np.array(fits)[:, place] - exact[place])
        assert 0.85 <= np.mean(off < error) < 1
        assert off.max() > error / 2


def test_statistics_say_what_their_noise_does_to_a_coefficient():
    p = opened()
    words = {"X": ["age", "share"], "y": "share2", "fresh": True}
    q = p.assign(share2=p["share"] * 0 + p["ill"] * 0.2)
    fits = [
        q.fit(LinearRegression(epsilon=1, l2=0), bounds={"share2": (-1, 1)}, **words).coef_
        for _ in range(60)
    ]
    told = q.explain.fit(
        LinearRegression(epsilon=1, l2=0), bounds={"share2": (-1, 1)}, **words
    ).told
    for place, name in enumerate(["age", "share"]):
        error = float(re.search(rf"{name} ±([\d.e+-]+)", told)[1]) / (
            len(FRAME) * FRAME[name].var()
        )
        wide = 2 * np.std([fit[place] for fit in fits])
        assert (
            error / 1.6 < wide < error * 1.6
        )  # the other sums add to it, and this target is small


# What is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["C", "penalty", "fit_intercept", "solver", "random_state"])
def test_words_of_sklearn_are_refused_with_what_to_write_instead(word):
    for kind in (LogisticRegression, LinearRegression):
        with pytest.raises(dpframe.BadType, match=rf"no argument {word}=: "):
            kind(**{word: 1})
    with pytest.raises(dpframe.BadType, match=r"l2="):
        LogisticRegression(C=0.1)
    with pytest.raises(dpframe.BadType, match=r"no argument epsilom=\."):
        LogisticRegression(epsilom=1)


def test_a_model_is_no_estimator_of_sklearn_and_says_so():
    model = LogisticRegression()
    with pytest.raises(AttributeError, match="arguments are attributes"):
        model.get_params()
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "nonsense")


def test_a_price_is_given_once():
    p = opened()
    with pytest.raises(dpframe.BadValue, match="given twice"):
        p.fit(LogisticRegression("output", epsilon=1), X=["age"], y="ill", epsilon=0.1)
    assert p.budget.spent == 0


def test_public_rows_with_holes_are_refused():
    p = opened()
    classes = p.fit(LogisticRegression("output", epsilon=1), X=["age"], y="ill")
    numbers = p.fit(LinearRegression(epsilon=1), X=["age"], y="rent")
    for model in (classes, numbers):
        for hole in (None, float("nan"), float("inf"), pd.NA):
            with pytest.raises((dpframe.BadValue, dpframe.BadType)):
                model.predict([[40.0], [hole]])
            with pytest.raises((dpframe.BadValue, dpframe.BadType)):
                model.predict(pd.DataFrame({"age": [40.0, hole]}))
        with pytest.raises(dpframe.BadValue, match="null or infinite"):
            model.predict(pd.DataFrame({"age": [40, None]}, dtype="Int64"))
        with pytest.raises(dpframe.BadType, match="finite numbers"):
            model.predict([["forty"]])
        for wrong in ([1], [1, 0, 1], [[1], [0]], [1, None]):
            with pytest.raises(dpframe.BadValue, match="y "):
                model.score([[40.0], [50.0]], wrong)
        with pytest.raises(dpframe.BadType, match="private"):
            model.score([[40.0]], p["ill"])
        with pytest.raises(dpframe.BadValue, match="at least one row"):
            model.score(np.empty((0, 1)), [])
        assert model.score([[40.0], [90.0]], [0, 1]) <= 1
    assert classes.score([[20.0], [90.0]], pd.Series([False, True], index=[7, 8])) == 1


def test_wrong_arguments_are_refused_without_names_of_classes():
    p = opened()
    model = LogisticRegression(epsilon=1)
    for ask, told in (
        (lambda: model.fit(p[["age"]]), "fit needs y="),
        (lambda: model.predict(), "predict needs X="),
        (
            lambda: model.predict([[0]], 3),
            "predict is given 2 arguments by position, and takes at most 1",
        ),
        (lambda: LinearRegression().score([[0]]), "score needs y="),
        (lambda: model.predict(nobody=1), "predict has no argument nobody="),
    ):
        with pytest.raises(dpframe.BadType, match=re.escape(told)):
            ask()
    assert p.ledger.empty
