"""How many numbers that no mark calls noise are far off: the table of the README, and quartiles.

    python -m tests.benchmarks.bench_marks [RELEASES]

Each release asks at epsilon 1 for a default share, in a session of its own. A number is off by its
distance from the value of pandas, as a part of that value. The noise is drawn anew in each run.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd

import dpframe
from dpframe.datasets import BOUNDS, KEYS, visits

QUARTILES = [0.25, 0.5, 0.75]
FAR = {"a fifth": 0.2, "30 %": 0.3, "half": 0.5}
QUESTIONS = {
    'groupby("state")["cost"].mean()': lambda t: t.groupby("state")["cost"].mean(),
    'groupby("state")["cost"].quantile([.25, .5, .75])': lambda t: t.groupby("state")[
        "cost"
    ].quantile(QUARTILES),
}


def measure_errors(question: str, releases: int) -> tuple[np.ndarray, int]:
    """Return the relative errors of the numbers without a mark, and how many numbers there were."""
    ask, frame = QUESTIONS[question], visits()
    truth = ask(frame)
    errors = []
    for _ in range(releases):
        answer = ask(frame.copy().dp.open(epsilon=1, bounds=BOUNDS, keys=KEYS, because="a measure"))
        plain = pd.Series(np.asarray(answer, dtype=float), index=answer.index)
        far = (plain - truth).abs() / truth.abs()
        errors.append(far[np.asarray(answer.dp.reliable).ravel().astype(bool)].to_numpy())
    return np.concatenate(errors), releases * len(truth)


def main() -> None:
    """Print for each question how many numbers have no mark, and how many of those are far off."""
    releases = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    warnings.simplefilter("ignore")
    print(f"dpframe {dpframe.__version__}, {releases} releases at epsilon 1, a default share each")
    for question in QUESTIONS:
        errors, numbers = measure_errors(question, releases)
        print(f"\n{question}\n  {numbers} numbers, {len(errors)} without a mark")
        for name, part in FAR.items():
            count = int((errors > part).sum())
            share = f"{count / len(errors):.1%}" if len(errors) else "no number"
            print(f"  off by more than {name:8}: {count:5} = {share}")
        print(f"  the worst: {errors.max():.0%}" if len(errors) else "")


if __name__ == "__main__":
    main()
