"""Private learning: linear and logistic regression on a session (docs/guarantees/learning.md).

>>> import numpy as np, pandas as pd, dpframe
>>> from dpframe.learn import LogisticRegression
>>> age = np.arange(20_000) % 80
>>> df = pd.DataFrame({"age": age, "ill": age > 40})
>>> p = df.dp.open(epsilon=3, delta=1e-6, accountant="pure", bounds={"age": (0, 80)})
>>> model = p.fit(LogisticRegression(epsilon=1), X=["age"], y="ill")
>>> model.score(pd.DataFrame({"age": [20, 60]}), [False, True])
1.0
"""

from __future__ import annotations

from dpframe.learn._models import LinearRegression, LogisticRegression

__all__ = ["LinearRegression", "LogisticRegression"]


def __dir__() -> list[str]:
    return list(__all__)  # completion shows the public names alone
