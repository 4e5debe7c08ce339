"""The models that users fit: arguments in, coefficients in the units of the data out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._errors import BadType, BadValue, BudgetError, MissingKeys
from dpframe._expr import Column, Expr
from dpframe._frame.frame import PrivateFrame
from dpframe._frame.selection import ask_question, selection_of, session_of_frame
from dpframe._frame.signatures import explain_arguments
from dpframe._groups.keys import Word, describe, keys_for
from dpframe._plans.plan import Cost, Plan
from dpframe._plans.price import check_delta, check_payment
from dpframe._questions.question import Release
from dpframe._types import Array
from dpframe._validate import Bounds
from dpframe.learn import _checks
from dpframe.learn._descent import EVERYBODY, Descent
from dpframe.learn._design import Design, Floats, Scaling, Target
from dpframe.learn._fits import Fit, OutputFit
from dpframe.learn._objective import Objective
from dpframe.learn._solve import LOGISTIC, ScoreLoss
from dpframe.learn._statistics import SQUARES, Statistics
from dpframe.mechanisms._coins import rate_of

MOST_FEATURES = 2**12
MOST_STEPS = 2**16


class _Model(ABC):
    """The base of both models: arguments, the question, and predictions from public numbers."""

    method: str
    epsilon: float | None
    delta: float | None
    max_iter: int
    sample: float
    n_features_in_: int

    _methods: tuple[str, ...]

    coef_: Floats
    intercept_: float
    l2_: float
    feature_names_in_: Array
    plan_: Plan

    def __init__(
        self,
        method: str,
        epsilon: float | None,
        delta: float | None,
        l2: float | None,
        norm: float | None,
        clip: float | None,
        max_iter: int,
        sample: float,
        unknown: Mapping[str, object],
    ):
        """Set the arguments of a model, and check them. ``l2`` is the strength of the regulariser;
        ``norm`` and ``clip`` bound the norms of rows and gradients. ``sample`` is the share of
        people drawn for a step. ``unknown`` are other arguments, which are refused."""
        _checks.unknown_arguments(type(self).__name__, unknown)
        self.method, self.epsilon, self.delta = method, epsilon, delta
        self.l2, self.norm, self.clip, self.max_iter, self.sample = l2, norm, clip, max_iter, sample
        self._check()

    def _check(self) -> None:
        """Refuse invalid arguments. They are attributes that may change, so each fit checks
        again."""
        method = _validate.choice(self.method, "method", self._methods)
        if self.epsilon is not None:
            _validate.epsilon(self.epsilon)
        if self.delta is not None:
            _validate.delta(self.delta)
        self.norm, self.clip = _positive(self.norm, "norm"), _positive(self.clip, "clip")
        if self.l2 is not None:
            self.l2 = _validate.real(self.l2, "l2")
            if self.l2 < 0 or 0 < self.l2 < 2.0**-20 or self.l2 > 2.0**100:
                raise BadValue(f"l2 must be 0, or from 2**-20 to 2**100, not {self.l2}.")
        if self.l2 == 0 and method in ("output", "objective"):
            raise BadValue(
                f'method="{method}" needs l2 > 0: without it the minimum may be anywhere, and one person could move it without '
                "bound. Leave l2= out, and it is chosen."
            )
        if self.clip is not None and method != "gradient":
            raise BadValue(
                'clip= is the norm to which gradients are clipped: it is for method="gradient" only.'
            )
        self.max_iter = _validate.positive_int(self.max_iter, "max_iter")
        if self.max_iter > MOST_STEPS:
            raise BadValue(f"max_iter must be at most 2**16, not {self.max_iter}.")
        self.sample = _validate.real(self.sample, "sample")
        if not 0 < self.sample <= 1:
            raise BadValue(f"sample is a probability above 0 and at most 1, not {self.sample}.")

    # The question ---------------------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, *, bounds: Mapping[Any, Any] | None = None, **payment: Any
    ) -> Any:
        """Return this model, fitted to columns of a private frame: ``model.fit(p[["age", "bmi"]],
        p["readmitted"])``. See `PrivateFrame.fit`. ``payment`` has the price, such as
        ``epsilon=``."""
        if not isinstance(X, PrivateFrame):
            raise BadType(
                'X must be columns of a session, p[["age", "bmi"]], and y one of them, p["readmitted"]. This model is for '
                "private data; what is public is for predict and score."
            )
        return X.fit(self, None, y, bounds=bounds, **payment)

    def _fit_on(
        self,
        frame: PrivateFrame,
        X: object,
        y: object,
        bounds: object,
        payment: Mapping[str, object],
    ) -> Any:
        """Return the model fitted to a private frame. ``X`` lists the features' names, ``y`` names
        the target, and ``payment`` has the price."""
        self._check()
        if y is None:
            raise BadValue('fit needs a target: y="column".')
        if isinstance(X, str) or not (X is None or isinstance(X, Sequence | pd.Index)):
            raise BadType("X must be a list of column names.")
        goal, name = selection_of(frame).find_column(y)
        chosen = (
            [c for c in frame.columns if selection_of(frame).columns[c] != goal] if X is None else X
        )
        names = _validate.column_names(chosen, selection_of(frame).columns)
        if not names:
            raise BadValue("X is empty: a model needs at least one feature.")
        if len(names) > MOST_FEATURES:
            raise BadValue(f"{len(names)} features are more than {MOST_FEATURES}.")
        features = [
            (
                selection_of(frame).columns[n],
                selection_of(frame).bounds(selection_of(frame).columns[n], n, bounds),
            )
            for n in names
        ]
        if any(expr == goal for expr, _ in features):
            raise BadValue(f"the target {name!r} is among the features: it would predict itself.")
        target = self._target(frame, goal, name, bounds)
        design = Design(selection_of(frame).where, tuple(features), target, self.norm)
        declarations = [
            *list_declared_bounds(frame, features, bounds),
            *self._list_declared_classes(frame, target, name),
        ]
        if target.bounds is not None:
            declarations += list_declared_bounds(frame, [(goal, target.bounds)], bounds)
        model_price = _without_none({"epsilon": self.epsilon, "delta": self.delta})
        _checks.refuse_two_prices(model_price, payment)
        price = {**model_price, **_without_none(payment)}
        task, price = self._task(frame, design, price)
        unit = session_of_frame(frame).limit_unit(check_payment(price))

        def finish(release: Release) -> _Model:
            """Return the model with the released coefficients set."""
            # The question about statistics does not depend on l2, and is asked without it.
            solver = task if self.l2 is None else replace(task, l2=self.l2)
            self._learn(names, design, solver.coefficients(release.plan, release.raw), release.plan)
            self.l2_ = solver.regulariser(release.plan, unit)
            return self

        return ask_question(frame, task, finish, check_payment(price), declared=tuple(declarations))

    def _task(
        self, frame: PrivateFrame, design: Design, price: dict[str, Any]
    ) -> tuple[Fit, dict[str, Any]]:
        """Return the question for a fit by the model's ``method``, and the price to ask it at."""
        if price.get("mechanism", "auto") != "auto" and self.method in ("objective", "gradient"):
            raise BadValue(f'method="{self.method}" has its own noise: leave mechanism= out.')
        if self.method == "statistics":
            return Statistics(design, SQUARES, None), price
        if self.method == "output":
            return OutputFit(design, self._loss(), self.l2), price
        rate = EVERYBODY if self.method == "objective" else rate_of(self.sample)
        replaces = selection_of(frame).schema.unit.replaces
        if self.method == "gradient" and (rate == EVERYBODY or replaces):
            task = Descent(design, self._loss(), self._l2(), self.clip, self.max_iter, rate)
            return task, {**price, "mechanism": "gaussian"}
        stated = "" if price.get("delta") is not None else "a share"
        failure, price = self._failure(frame, price)
        if self.method == "objective":
            return Objective(design, self._loss(), self.l2, failure, stated), price
        return Descent(
            design, self._loss(), self._l2(), self.clip, self.max_iter, rate, failure, stated
        ), price

    def _failure(
        self, frame: PrivateFrame, price: dict[str, Any]
    ) -> tuple[Fraction, dict[str, Any]]:
        """Return the delta at which a fit is (epsilon, delta)-private, and the price without it. It
        is the given delta, or a share of the session's reserve."""
        budget = session_of_frame(frame).budget
        rest = {k: v for k, v in price.items() if k != "delta"}
        delta_argument, epsilon_argument = price.get("delta"), price.get("epsilon")
        if delta_argument is not None:
            delta = check_delta(delta_argument, budget.rule)
        else:
            e = (
                budget.rule.limits.epsilon / budget.queries
                if epsilon_argument is None
                else _validate.epsilon(epsilon_argument)
            )
            delta = budget.rule.failure_for(e, budget.state)
        if not delta:
            raise BudgetError(
                f'method="{self.method}" needs a delta: its noise is Gaussian inside, and no pure guarantee is known for it. '
                'Open the session with delta > 0 (and a reserve), or use method="output", which is pure where delta is 0.'
            )
        return delta, rest

    def _l2(self) -> float:
        return 1.0 if self.l2 is None else self.l2

    @abstractmethod
    def _loss(self) -> ScoreLoss:
        """Return the loss whose sum over the rows is minimised."""

    @abstractmethod
    def _target(self, frame: PrivateFrame, expr: Expr, name: Hashable, bounds: object) -> Target:
        """Return the target with its bounds or its two classes."""

    def _list_declared_classes(
        self, frame: PrivateFrame, target: Target, name: Hashable
    ) -> list[Word]:
        return []

    # After it -------------------------------------------------------------------------------------------------

    def _learn(self, names: list[Any], design: Design, w: Floats, plan: Plan) -> None:
        """Set the public attributes of a fitted model, such as ``coef_``, in the units of the
        columns. ``w`` has the coefficients of scaled features, intercept first."""
        scales = [Scaling.of(b) for _, b in design.features]
        middles = np.array([s.middle for s in scales])
        halves = np.array([s.half for s in scales])
        self.coef_ = np.where(halves > 0, w[1:] / np.where(halves > 0, halves, 1.0), 0.0)
        self.intercept_ = float(w[0] - self.coef_ @ middles)
        if design.target.bounds is not None:
            goal = Scaling.of(design.target.bounds)
            self.coef_ = self.coef_ * goal.half
            self.intercept_ = self.intercept_ * goal.half + goal.middle
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        self.plan_ = plan

    @property
    def cost_(self) -> Cost:
        """The (epsilon, delta) guarantee of the fit by itself."""
        self._check_is_fitted()
        return self.plan_.cost

    def _check_is_fitted(self) -> None:
        if not hasattr(self, "coef_"):
            raise BadValue("this model is not fitted yet: p.fit(model, X=[...], y=...) first.")

    def _scores(self, X: object) -> Floats:
        """Return the linear scores of public rows ``X``, from which predictions are made. Private
        rows are refused."""
        self._check_is_fitted()
        if isinstance(X, PrivateFrame):
            raise BadType(
                f"predictions are for public data: of private rows each would be a release. {_checks.PRIVATE_ROWS}"
            )
        if isinstance(X, pd.DataFrame):
            names = [_validate.column_name(n, X.columns) for n in self.feature_names_in_]
            X = X[names]
        rows = _checks.public_rows(X, self.feature_names_in_)
        scores: Floats = rows @ self.coef_ + self.intercept_
        return scores

    if not TYPE_CHECKING:  # or every misspelt name would pass for an attribute

        def __getattr__(self, name):
            raise _checks.no_attribute(self, name)

    def __repr__(self) -> str:
        """Return the call that makes this model, with those of its main arguments that are set."""
        arguments = {
            "method": self.method,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "l2": self.l2,
        }
        text = ", ".join(f"{k}={v!r}" for k, v in arguments.items() if v is not None)
        return f"{type(self).__name__}({text})"


class LogisticRegression(_Model):
    """Logistic regression for two classes, ridge included, on a session.

    ``method``: "objective" (the default; needs delta), "output" (pure where a session has no delta)
    or "gradient" (``max_iter`` noisy steps, on everybody or on people drawn with probability
    ``sample``, DP-SGD; gradients are clipped to ``clip``, or to what is typical of their rows).
    With few people for many features "gradient" is the one to take. ``l2``: the weight of |w|**2 /
    2 beside the sum of losses, for features scaled to [-1, 1]; left out, it is chosen from the
    price, and ``l2_`` tells it after the fit. ``norm``: the largest L2 norm of a row's scaled
    features; rows beyond it are scaled back. ``classes``: the two public labels, the second being
    the positive one; left out, the two declared keys, or False and True of a bool, or 0 and 1 of an
    integer dtype with the bounds (0, 1), and any other column is refused. Rows with another label
    do not count. Solvers of the other methods run until their proof is done, whatever ``max_iter``
    says.

    Formal guarantee: (epsilon, delta)-DP for its price: docs/guarantees/learning.md.

    >>> df = pd.DataFrame({"age": np.arange(4000) % 80, "ill": np.arange(4000) % 80 > 40})
    >>> p = df.dp.open(50, bounds={"age": (0, 80)})
    >>> model = LogisticRegression(method="output", epsilon=40).fit(p[["age"]], p["ill"])
    >>> model.predict([[20], [60]])
    array([False,  True])
    """

    _methods = ("objective", "output", "gradient")
    classes_: Array

    def __init__(
        self,
        method: str = "objective",
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        l2: float | None = None,
        norm: float | None = None,
        clip: float | None = None,
        max_iter: int = 100,
        sample: float = 1.0,
        classes: Sequence[object] | None = None,
        **unknown: object,
    ):
        """Set the arguments of the model, which the class describes. ``classes`` are the negative
        and the positive class."""
        super().__init__(method, epsilon, delta, l2, norm, clip, max_iter, sample, unknown)
        self.classes = classes

    def _loss(self) -> ScoreLoss:
        return LOGISTIC

    def _target(self, frame: PrivateFrame, expr: Expr, name: object, bounds: object) -> Target:
        """Return the target with its two public classes. They come from ``classes``, from declared
        keys, from a bool column or from the bounds (0, 1)."""
        declared = (
            selection_of(frame).schema.keys.get(expr.position) if isinstance(expr, Column) else None
        )
        if self.classes is not None:
            keys = keys_for(self.classes, expr, name)
        elif declared is not None:
            keys = declared
        elif expr.kind == "bool":
            keys = keys_for([False, True], expr, name)
        elif (
            expr.kind == "number"
            and expr.integral
            and self._unit_interval(frame, expr, name, bounds)
        ):
            keys = keys_for([0, 1], expr, name)
        else:
            raise MissingKeys(
                f"which two classes {name!r} has must be public: classes=(negative, positive). Without it the target is a bool "
                "column, has two declared keys, or is of an integer dtype with the bounds (0, 1). A number is made a class by "
                f"comparing it: p.assign(high=p[{name!r}] > 50)."
            )
        if len(keys) != 2 or keys.null is not None:
            raise BadValue(
                f"{name!r} needs two classes, neither of them null: classes=(negative, positive)."
            )
        return Target(expr, None, keys)

    @staticmethod
    def _unit_interval(frame: PrivateFrame, expr: Expr, name: object, bounds: object) -> bool:
        """Return whether the bounds of a column are (0, 1), so that a column of whole numbers has
        two classes. ``bounds`` are those given to fit; otherwise the declared ones count."""
        pair = (
            selection_of(frame).by_column(bounds).get(name)
            if isinstance(bounds, Mapping)
            else bounds
        )
        limits = (
            expr.bounds(selection_of(frame).schema.bounds)
            if pair is None
            else _validate.bounds(pair, repr(name))
        )
        return limits is not None and tuple(limits) == (0.0, 1.0)

    def _list_declared_classes(
        self, frame: PrivateFrame, target: Target, name: object
    ) -> list[Word]:
        """Return a list with the declaration of the two classes, for the ledger. It is empty if the
        session knows them already."""
        expr, classes = target.expr, target.classes
        declared = (
            selection_of(frame).schema.keys.get(expr.position) if isinstance(expr, Column) else None
        )
        bounds = expr.bounds(selection_of(frame).schema.bounds)
        if self.classes is None and (
            expr.kind == "bool" or declared is not None or bounds == (0.0, 1.0)
        ):
            return []
        assert classes is not None
        return [Word("keys", f"{name}: {describe(classes.index.tolist())}", "fit")]

    def _learn(self, names: list[Any], design: Design, w: Floats, plan: Plan) -> None:
        super()._learn(names, design, w, plan)
        assert design.target.classes is not None
        self.classes_ = np.asarray(design.target.classes.index)

    def decision_function(self, X: object) -> Floats:
        """Return the score of each row: positive for the second class."""
        return self._scores(X)

    def predict_proba(self, X: object) -> Floats:
        """Return the probabilities of the negative and the positive class for rows of public data.
        There is a row for each row of ``X``."""
        from scipy import special

        positive = special.expit(self._scores(X))
        return np.column_stack([1 - positive, positive])

    def predict(self, X: object) -> Array:
        """Return the more likely class of each row of public data."""
        scores = self._scores(X)
        labels: Array = self.classes_[(scores > 0).astype(np.intp)]
        return labels

    def score(self, X: object, y: object) -> float:
        """Return the share of rows of public data whose class is predicted."""
        predicted = self.predict(X).astype(object)
        return float(np.mean(predicted == _checks.public_target(y, len(predicted), number=False)))


class LinearRegression(_Model):
    """Linear regression, ridge included, on a session.

    ``method``: "statistics" (the default: one noisy release of all sums of products, then exact
    ridge regression), "output", "objective" or "gradient". These three fit Huber's loss: a residual
    counts in full up to ``residual`` times half the width of the bounds of y, and linearly beyond,
    since squares have no bounded slope. ``l2`` is the weight of |w|**2 / 2 beside the sum of half
    squares, for columns scaled to [-1, 1]; left out, it is chosen from the noise. The other
    arguments are those of `LogisticRegression`. The target needs public bounds, too.

    Formal guarantee: epsilon-DP or (epsilon, delta)-DP for its price: docs/guarantees/learning.md.

    >>> df = pd.DataFrame({"area": np.arange(3000) % 80 + 20.0})
    >>> p = df.assign(rent=10 * df.area + 100).dp.open(1e3, bounds={"area": (0, 100), "rent": (0, 2000)})
    >>> model = LinearRegression(epsilon=900, l2=0).fit(p[["area"]], p["rent"])
    >>> model.predict([[50]]).round(-1)
    array([600.])
    """

    residual: float

    _methods = ("statistics", "output", "objective", "gradient")

    def __init__(
        self,
        method: str = "statistics",
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        l2: float | None = None,
        norm: float | None = None,
        clip: float | None = None,
        max_iter: int = 100,
        sample: float = 1.0,
        residual: float = 1.0,
        **unknown: object,
    ):
        """Set the arguments of the model, which the class describes."""
        self.residual = residual
        super().__init__(method, epsilon, delta, l2, norm, clip, max_iter, sample, unknown)

    def _check(self) -> None:
        super()._check()
        self.residual = _validate.real(self.residual, "residual")
        if not 2.0**-20 <= self.residual <= 2.0**20:
            raise BadValue(f"residual must be from 2**-20 to 2**20, not {self.residual}.")

    def _loss(self) -> ScoreLoss:
        return ScoreLoss("huber", self.residual, 1.0)

    def _target(self, frame: PrivateFrame, expr: Expr, name: object, bounds: object) -> Target:
        return Target(expr, selection_of(frame).bounds(expr, name, bounds), None)

    def predict(self, X: object) -> Floats:
        """Return the prediction for each row of public data."""
        return self._scores(X)

    def score(self, X: object, y: object) -> float:
        """Return R squared on public data: 1 less the squared errors over those of the mean."""
        predicted = self.predict(X)
        y = _checks.public_target(y, len(predicted), number=True)
        return float(1 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2))


def _positive(value: float | None, name: str) -> float | None:
    """Return a positive number or None, and refuse numbers outside 2**-100 to 2**100. ``name`` is
    for errors."""
    if value is None:
        return None
    number = _validate.real(value, name)
    if not 2.0**-100 <= number <= 2.0**100:
        raise BadValue(f"{name} must be positive, from 2**-100 to 2**100, not {value}.")
    return number


def _without_none(payment: Mapping[str, object]) -> dict[str, Any]:
    return {k: v for k, v in payment.items() if v is not None}


def list_declared_bounds(
    frame: PrivateFrame, features: list[tuple[Expr, Bounds]], bounds_argument: object
) -> list[Word]:
    """Return declarations, for the ledger, of bounds that fit was given and that the session did
    not know."""
    if bounds_argument is None:
        return []
    declared = selection_of(frame).schema.bounds
    return [
        Word("bounds", f"{expr}: ({pair.lower:g}, {pair.upper:g})", "fit")
        for expr, pair in features
        if pair != expr.bounds(declared)
    ]


for _kind in (LogisticRegression, LinearRegression):
    explain_arguments(_kind, object)
