"""Rates and latencies of the exact noise, next to numpy's fast and insecure one.

Run ``python -m tests.benchmarks.bench_sampling`` where dpframe is installed. Rates are the best of five calls
of a million draws, times of repeated calls the best of five averages, times of first calls the median over
scales never seen before.
"""

from __future__ import annotations

import itertools
import statistics
import time
import timeit
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from dpframe.mechanisms import _sampling as sampling

Draw = Callable[[Fraction, int], object]

MILLION = 1_000_000
SCALES = {"1": Fraction(1), "10": Fraction(10), "1000": Fraction(1000), "2^20": Fraction(2**20)}
SCALES |= {"2^30*20/3": Fraction(2**30 * 20, 3), "2^40": Fraction(2**40)}
COUNTS = (1, 50, 100, 150)

LAWS: dict[str, Draw] = {
    "laplace": sampling.discrete_laplace,
    "gaussian": lambda sigma, n: sampling.discrete_gaussian(sigma**2, n),
    "geometric": lambda scale, n: sampling.geometric(1 / scale, n),
}
RNG = np.random.default_rng()
NUMPY: dict[str, Draw] = {
    "laplace": lambda scale, n: RNG.laplace(0.0, float(scale), n),
    "gaussian": lambda sigma, n: RNG.normal(0.0, float(sigma), n),
    "geometric": lambda scale, n: RNG.geometric(-np.expm1(-1 / float(scale)), n),
}


def fresh_scales() -> Iterator[Fraction]:
    """Scales that occur once in this process."""
    return (Fraction(100_003 + 2 * i, 10_007) for i in itertools.count())


def rate(draw: Draw, scale: Fraction) -> float:
    """Million draws a second."""
    return 1.0 / min(timeit.repeat(lambda: draw(scale, MILLION), number=1, repeat=5))


def repeated(draw: Draw, scale: Fraction, n: int) -> float:
    """Microseconds of a call of n draws at a scale in use."""
    return min(timeit.repeat(lambda: draw(scale, n), number=300, repeat=5)) / 300 * 1e6


def first(draw: Draw, scales: Iterator[Fraction], n: int) -> float:
    """Microseconds of the first call of n draws at a scale."""
    times = []
    for scale in itertools.islice(scales, 301):
        start = time.perf_counter()
        draw(scale, n)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def row(*cells: object) -> None:
    print("".join(f"{c:>12.1f}" if isinstance(c, float) else f"{c:>12}" for c in cells), flush=True)


def main() -> None:
    print("million draws a second")
    row("", *(f"{name}{kind}" for name in LAWS for kind in ("", " np")))
    for label, scale in SCALES.items():
        row(label, *(rate(source[name], scale) for name in LAWS for source in (LAWS, NUMPY)))

    print("\nmicroseconds a call, at a scale in use")
    row("", *(f"n={n}{kind}" for n in COUNTS for kind in ("", " np")))
    for name in LAWS:
        row(
            name,
            *(repeated(source[name], Fraction(20), n) for n in COUNTS for source in (LAWS, NUMPY)),
        )

    print("\nmicroseconds a call, the first at its scale")
    row("", *(f"n={n}" for n in COUNTS))
    scales = fresh_scales()
    for name, draw in LAWS.items():
        row(name, *(first(draw, scales, n) for n in COUNTS))

    print("\nmicroseconds a draw, python integers (scale 2^60)")
    for name, draw in LAWS.items():
        row(name, repeated(draw, Fraction(2**60), 1))


if __name__ == "__main__":
    main()
