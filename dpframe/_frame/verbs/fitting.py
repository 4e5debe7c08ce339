"""``p.fit(model, X=[...], y="col")``: a model of `dpframe.learn` asks its one question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from dpframe._errors import BadType
from dpframe._plans.price import Payment, checked, spell_out


class Fitting:
    """The verb of a tracked frame that fits a model."""

    if TYPE_CHECKING:

        def _usable(self) -> None: ...

    def fit(
        self,
        model: Any,
        X: Any = None,
        y: Any = None,
        *,
        bounds: Mapping[Any, Any] | None = None,
        **payment: Unpack[Payment],
    ) -> Any:
        """A model of `dpframe.learn`, fitted to columns of this frame; it is returned, as scikit-learn does.

        ``X`` lists the features, all other columns if left out; ``y`` is the target. Features are clipped to public bounds,
        declared ones or ``bounds={"age": (0, 110)}``. The price is the model's own ``epsilon=`` and ``delta=``, or given here.

        Formal guarantee: (epsilon, delta)-DP for its price (docs/guarantees/learning.md). Rows with a null in a feature or in
        the target do not count. `explain.fit` shows the plan.

        >>> import pandas as pd
        >>> from dpframe.learn import LinearRegression
        >>> df = pd.DataFrame({"area": [40.0, 60.0, 80.0] * 500, "rent": [500.0, 700.0, 900.0] * 500})
        >>> p = df.dp.open(1e3, bounds={"area": (20, 120), "rent": (0, 2000)})
        >>> model = p.fit(LinearRegression(l2=0), X=["area"], y="rent", epsilon=900)
        >>> model.coef_.round(1), round(model.intercept_)
        (array([10.]), 100)
        """
        self._usable()
        checked(payment)
        own = getattr(model, "_fit_on", None)
        if own is None or isinstance(model, type):
            raise BadType(
                "fit takes a model of dpframe.learn, such as LogisticRegression(epsilon=1): others read rows as they are."
            )
        return own(self, X, y, bounds, payment)


spell_out(Fitting)
