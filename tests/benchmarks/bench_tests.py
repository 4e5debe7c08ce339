"""How often tests of hypotheses find a difference that is there: ``python -m tests.benchmarks.bench_tests [RUNS]``.

Two groups of n people each, and the level 0.05. Without privacy: Welch's test, a chi-square, and Pearson's, by scipy.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import dpframe  # noqa: F401  (frames have .dp then)
from dpframe._answers.hypotheses import are_excluded, make_independence_test, make_shares_test
from dpframe._ledger.store import unpack
from dpframe._plans.plan import get_noisy_sums
from dpframe._plans.sampling import REST, enclose_differences, make_draws
from dpframe._questions.question import Release

ALPHA, SIZES, PRICES = 0.05, (500, 2000, 8000), (0.5, 2.0)
MEANS, SPREAD = (0.40, 0.43), 0.15
SHARES = (0.30, 0.35)
SLOPE = 0.1  # of one column on the other, both of deviation 0.15


def released(x: Any, runs: int, ask: Any, **columns: Any) -> tuple[Any, Any]:
    """One release of all runs, a group each: its plan and its integers."""
    run = np.repeat(np.arange(runs), len(x) // runs)
    df = pd.DataFrame({"x": x, "run": run, **columns})
    p = df.dp.open(1000, bounds=dict.fromkeys(["x", *columns], (0, 1)), keys={"run": range(runs)})
    answer = ask(p.groupby("run"))
    return answer.dp.plan, unpack(json.loads(answer.attrs["dpframe_receipt"])["raw"])


def means(rng: Any, n: int, epsilon: float, runs: int) -> tuple[float, float]:
    """The power of two means, with privacy and without."""
    sides = [np.clip(rng.normal(mean, SPREAD, (runs, n)), 0, 1) for mean in MEANS]
    plain = stats.ttest_ind(*sides, axis=1, equal_var=False).pvalue <= ALPHA
    draws = []
    for x in sides:
        plan, raw = released(
            x.ravel(), runs, lambda g: g["x"].agg(["mean", "std"], epsilon=epsilon)
        )
        draws.append(make_draws(get_noisy_sums(plan, raw, plan.cells[0]), ALPHA / 2))
    low, high = enclose_differences(*draws, ALPHA * REST)
    return float(((low > 0) | (high < 0)).mean()), float(plain.mean())


def tables(rng: Any, n: int, epsilon: float, runs: int) -> tuple[float, float]:
    """The power of independence in a table of two shares."""
    p = pd.DataFrame({"a": [0], "b": [0]}).dp.open(100, keys={"a": [0, 1], "b": [0, 1]})
    plan = p.explain.crosstab("a", "b", epsilon=epsilon)
    found = plain = 0
    for _ in range(runs):
        yes = rng.binomial(n, SHARES)
        counts = np.column_stack([yes, n - yes])
        plain += stats.chi2_contingency(counts, correction=False).pvalue <= ALPHA
        raw = (plan.parts[0].noise.release(counts.ravel()[None]),)
        found += make_independence_test(Release(plan, raw), 2, ("a", "b")).pvalue <= ALPHA
    return found / runs, plain / runs


def shares(rng: Any, n: int, epsilon: float, runs: int) -> tuple[float, float]:
    """The power of two shares, by a test of two proportions."""
    p = pd.DataFrame({"g": [0], "yes": [True]}).dp.open(100, keys={"g": [0, 1]})
    plan = p.explain.groupby("g")["yes"].mean(epsilon=epsilon)
    step = round(1 / max(plan.cells[0].functionals["n"]))
    found = plain = 0
    for _ in range(runs):
        yes = rng.binomial(n, SHARES)
        counts = np.array([n - yes, yes])
        plain += stats.chi2_contingency(counts, correction=False).pvalue <= ALPHA
        raw = (plan.parts[0].noise.release(counts * step),)
        found += make_shares_test(Release(plan, raw), (0, 1), 1 - ALPHA).pvalue <= ALPHA
    return found / runs, plain / runs


def correlations(rng: Any, n: int, epsilon: float, runs: int) -> tuple[float, float]:
    """The power of a correlation of a tenth."""
    x = rng.normal(0, SPREAD, (runs, 2 * n))
    y = SLOPE * x + np.sqrt(1 - SLOPE**2) * rng.normal(0, SPREAD, (runs, 2 * n))
    x, y = (np.clip(each + 0.5, 0, 1) for each in (x, y))
    plain = np.mean([stats.pearsonr(a, b).pvalue <= ALPHA for a, b in zip(x, y, strict=True)])
    plan, raw = released(
        x.ravel(), runs, lambda g: g[["x", "y"]].corr(epsilon=epsilon), y=y.ravel()
    )
    cells = [next(c for c in plan.cells if c.name == name) for name in ("x, x", "x, y", "y, y")]
    return float(
        are_excluded(*(get_noisy_sums(plan, raw, cell) for cell in cells), ALPHA).mean()
    ), float(plain)


def main(runs: int) -> None:
    rng = np.random.default_rng(0)
    kinds = {
        f"means {MEANS[0]:g} and {MEANS[1]:g}, deviation {SPREAD:g} of the bounds": means,
        f"shares {SHARES[0]:g} and {SHARES[1]:g}, `shares`": shares,
        f"shares {SHARES[0]:g} and {SHARES[1]:g}, `independence`": tables,
        f"correlation {SLOPE:g}": correlations,
    }
    print(
        "| test | n in each group |",
        " | ".join(f"epsilon {e:g}" for e in PRICES),
        "| without privacy |",
    )
    print("|---|---|" + "---|" * (len(PRICES) + 1))
    for name, kind in kinds.items():
        for n in SIZES:
            pairs = [kind(rng, n, epsilon, runs) for epsilon in PRICES]
            print(
                f"| {name} | {n} |",
                " | ".join(f"{p[0]:.2f}" for p in pairs),
                f"| {pairs[0][1]:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
