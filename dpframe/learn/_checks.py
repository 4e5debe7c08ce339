"""The refusals of models around a fit: arguments of scikit-learn that mean something else here, and
public data with holes.

All that these errors depend on is public.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe import _pandas
from dpframe._errors import BadType, BadValue, NotOffered
from dpframe._types import Array

_ADVICE = {
    "C": "the regulariser is l2=, the weight of |w|**2 / 2 beside the sum of losses: C=0.1 is l2=10, for features scaled to "
    "[-1, 1]",
    "alpha": "the regulariser is l2=, for features scaled to [-1, 1]",
    "penalty": "the penalty is ridge, with the weight l2=; there is no other",
    "fit_intercept": "an intercept is always fitted; scale and shift the features if it must be 0",
    "solver": "the method is method=, and its solver goes with it",
    "tol": "solvers run until their proof is done",
    "random_state": "noise cannot be repeated: whoever knows the seed knows the data",
    "class_weight": "all rows weigh the same",
    "warm_start": "every fit starts anew",
    "n_jobs": "fits run in one thread",
}
_FITTED = ("coef_", "intercept_", "plan_", "cost_", "l2_", "feature_names_in_", "n_features_in_")
# What statsmodels' results have.
_INFERENCE = ("interval", "conf_int", "summary", "bse", "pvalues", "tvalues", "std_error", "params")
_PROTOCOL = {"get_params", "set_params", "get_metadata_routing"}
PRIVATE_ROWS = (
    "To see how good a model is on private rows, assign its score by hand and ask for a mean: "
    'q = p.assign(z=p["age"] * model.coef_[0] + model.intercept_), then ((q["z"] > 0) == q["y"]).mean(epsilon=0.1) '
    "(docs/how-to/private-regression.md)."
)


def unknown_arguments(model: str, arguments: Mapping[str, object]) -> None:
    """Raise the error about arguments that a model does not have."""
    for name in arguments:
        advice = _ADVICE.get(name)
        raise BadType(f"{model} has no argument {name}=" + (f": {advice}." if advice else "."))


def no_attribute(model: object, name: str) -> AttributeError:
    """Return the error about an attribute that a model does not have. Those that scikit-learn
    expects get an explanation."""
    kind = type(model).__name__
    if name in _PROTOCOL:
        return NotOffered(
            f"{kind} has no {name}: it learns from a session and not from arrays, so pipelines, clones and searches of "
            "scikit-learn do not apply. Its arguments are attributes (model.l2); each value tried on private data is a "
            "fit with a price of its own."
        )
    if name in _INFERENCE:
        return AttributeError(
            f"{kind} has no {name}: no intervals and no standard errors of its coefficients are "
            "stated. It has "
            "model.coef_, model.intercept_, and model.plan_ with the noise and the price."
        )
    meant = f" Write model.{name}_." if f"{name}_" in _FITTED else ""
    return AttributeError(f"{kind!r} object has no attribute {name!r}.{meant}")


def refuse_two_prices(arguments: Mapping[str, object], payment: Mapping[str, object]) -> None:
    """Refuse a price that is given twice: as an argument of the model, and as one of fit."""
    for name in ("epsilon", "delta"):
        if arguments.get(name) is not None and payment.get(name) is not None:
            raise BadValue(
                f"{name}= is given twice, by the model and by fit: leave one of them out."
            )


def public_rows(X: object, names: Array) -> NDArray[np.float64]:
    """Return public feature rows as a matrix of doubles, to predict for. ``names`` are the model's
    features. Nulls and a wrong number of columns are refused."""
    rows = _numbers(X, "X")
    if rows.ndim != 2 or rows.shape[1] != len(names):
        raise BadValue(f"X must have {len(names)} columns: {', '.join(map(str, names))}.")
    return rows


def _numbers(values: object, subject: str) -> NDArray[np.float64]:
    """Return public values as doubles, and refuse nulls and infinities. ``subject`` names them in
    errors."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadType(
            f"{subject} must be finite numbers, a row a row of the same length."
        ) from None
    if not np.isfinite(numbers).all():
        raise BadValue(
            f"{subject} has values that are null or infinite. A fit leaves such rows out, and a prediction cannot: drop or fill "
            "them first."
        )
    return numbers


def public_target(y: object, rows: int, number: bool) -> Array:
    """Return the public target values to score predictions against, one for each row. ``number``
    says that they are numbers, not classes."""
    if not isinstance(
        y, np.ndarray | pd.Series | pd.Index | list | tuple | pd.api.extensions.ExtensionArray
    ):
        kind = "a private column" if hasattr(y, "_frame") else type(y).__name__
        raise BadType(f"y must be a list or a column of public data, not {kind}. {PRIVATE_ROWS}")
    target: Array = _numbers(y, "y") if number else np.asarray(y, dtype=object)
    if target.ndim != 1 or len(target) != rows:
        raise BadValue(
            f"y must be one column of {rows} values, one for each row of X, not of shape {target.shape}."
        )
    if not rows:
        raise BadValue("score needs at least one row of public data.")
    if not number and _pandas.isna(target).any():
        raise BadValue("y has nulls: drop those rows first.")
    return target
