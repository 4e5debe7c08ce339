"""Exact integer noise: the only randomness of dpframe.

Every function here draws from a law on the integers, and every integer comes out with exactly the
stated probability, provided that `random_bytes` returns independent uniform bits. Nothing is
rounded on the way:

* A uniform number U in [0, 1) is drawn lazily, 63 bits at first, more when they matter.
* A question of the form "is U below p?" is first put to double arithmetic (``+ - * /`` and
  conversions, each correctly rounded, and exact changes of exponent; never the logarithm of a C
  library) with a proven bound on its error. Only when the answer lies outside that bound is it
  believed. Otherwise rigorous integer intervals for p and further bits of U decide.

So a double never decides a doubtful case, and the answer is a function of U alone. No tables, no
buffers: all that is kept of a law is a few constants, so the first draw at a scale costs little
more than the next, threads share no randomness, and a forked child cannot repeat its parent. The
proofs are in ``docs/guarantees/sampling.md``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Final, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpframe._errors import BadValue
from dpframe._sizes import SIZES
from dpframe._types import Array

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]
Reals = NDArray[np.float64]
Real = TypeVar("Real", float, Reals)

# int64 noise stays below this; beyond these scales noise is made of python integers.
_LIMIT: Final = 2**62
INT64_SCALE: Final = 2**48
INT64_VARIANCE: Final = 2**88
# Inversion by doubles is wasteful above this scale: the low bits are drawn apart.
_SPLIT_SCALE: Final = 2**24
# Error allowed to the doubles, relative to the natural size of the quantity
# (docs/guarantees/sampling.md, theorem 2).
_SLACK: Final = 2.0**-42
# 63-bit uniforms below this are too coarse for the bound above.
_COARSE: Final = 2**43
# Scales and variances below 2**-_TINY are that in doubles: the difference drowns in _SLACK.
_TINY: Final = 64
_LN2: Final = 0.6931471805599453  # within 2**-55
_ROOT_HALF: Final = 0.7071067811865476  # within 2**-54
_SERIES: Final = tuple(2.0 / n for n in (15, 13, 11, 9, 7, 5, 3, 1))
_MANTISSA: Final = 2**52 - 1
_EXPONENT_OF_HALF: Final = 1022
_OVERFLOW: Final = "the noise does not fit 62 bits. Use a coarser grid or a larger epsilon."


def random_bytes(n: int) -> bytes:
    """Return `n` uniform bytes of the operating system's generator; nothing else in dpframe reads
    randomness."""
    return os.urandom(n)


def _random_words(n: int) -> Words:
    return np.frombuffer(random_bytes(8 * n), dtype="<u8")


# Rigorous values of exp and ln ----------------------------------------------------------------------------


def exp_interval(num: int, den: int, bits: int) -> tuple[int, int]:
    """Return integers ``lo <= 2**bits exp(-num/den) <= hi`` with ``hi - lo <= 2``, for a quotient
    >= 0. Exact samplers compare random bits with them.

    ``exp(-x) = exp(-x / 2**halvings) ** (2**halvings)``: an alternating series whose terms are
    rounded down (each at most 2 units wrong) at an argument below 1/8, then squarings rounded
    outwards.
    """
    if num >= den * bits:  # exp(-bits) < 2**-bits
        return 0, 1
    halvings = (num // den).bit_length() + 3 + math.isqrt(bits)  # about as many as there are terms
    unit = bits + halvings + bits.bit_length() + 8
    x = (num << unit) // (den << halvings)
    total, term, i = 1 << unit, 1 << unit, 0
    while term:
        i += 1
        term = (term * x >> unit) // i
        total += -term if i & 1 else term
    error = 2 * i + 4  # the terms, the rest of the series, and x itself (less than one unit)
    lo, hi = total - error, total + error
    for _ in range(halvings):
        lo = lo * lo >> unit
        hi = (hi * hi >> unit) + 1
    return max(0, lo >> (unit - bits)), min(1 << bits, (hi >> (unit - bits)) + 1)


def one_minus_exp_interval(num: int, den: int, bits: int) -> tuple[int, int]:
    """Return integers ``lo <= 2**bits (1 - exp(-num/den)) <= hi`` with ``hi - lo <= 2``."""
    lo, hi = exp_interval(num, den, bits)
    return (1 << bits) - hi, (1 << bits) - lo


# ``-ln(x / 2**bits)`` within 2**-46 for 1 <= x <= 2**bits <= 2**64; any finite number for x = 0.
# With x = m 2**k, m in [1/2, 1), ``ln(m / r)`` for r = sqrt(1/2) is ``2 artanh(s)`` with ``s = (m -
# r) / (m + r)``, ``|s| < 0.1716``: nine terms, within 2**-50.


def minus_log(x: Reals, bits: int) -> Reals:
    """Return ``-ln(x / 2**bits)`` for an array of positive doubles.

    Basic operations alone make it, so that its error has a proved bound. Write x as m 2**k with m
    in [1/2, 1). The exponent k gives a multiple of ln 2. With r = sqrt(1/2), the logarithm of m / r
    is the series 2 (s + s**3/3 + s**5/5 + ...) of s = (m - r) / (m + r), by Horner's rule.
    """
    # The bits of a double: the upper ones are the exponent, and the lower ones the mantissa.
    pattern = x.view(np.int64)
    m = (pattern & _MANTISSA | _EXPONENT_OF_HALF << 52).view(np.float64)
    out = (pattern >> 52).astype(np.float64)
    np.subtract(bits + 0.5 + _EXPONENT_OF_HALF, out, out=out)
    out *= _LN2
    s = (m - _ROOT_HALF) / (m + _ROOT_HALF)
    square = s * s
    total = square * (2.0 / 17)
    for coefficient in _SERIES:  # from 2/15 to 2/1
        total += coefficient
        total *= square if coefficient < 2.0 else s
    out -= total
    return out


def minus_log_int(x: int, bits: int) -> float:
    """Return ``-ln(x / 2**bits)`` of one integer, rounded to a double first. It makes the
    operations of `minus_log` in the same order, so both agree."""
    m, exponent = math.frexp(x)
    s = (m - _ROOT_HALF) / (m + _ROOT_HALF)
    q = s * s
    total = (((q * (2.0 / 17) + 2.0 / 15) * q + 2.0 / 13) * q + 2.0 / 11) * q + 2.0 / 9
    total = ((((total * q + 2.0 / 7) * q + 2.0 / 5) * q + 2.0 / 3) * q + 2.0) * s
    return (bits + 0.5 - exponent) * _LN2 - total


# Public laws ----------------------------------------------------------------------------------------------


def discrete_laplace(scale: Fraction, size: int) -> Array:
    """Draw `size` independent integers with P[x] proportional to ``exp(-|x|/scale)``, exactly.

    Any positive rational `scale` will do. The array is int64 for scales below 2**48, with ``|x| <
    2**62`` (an `OverflowError` otherwise, of probability below 2**-20000), and of python integers
    beyond.
    """
    if scale.numerator <= 0:
        raise parameter_error("scale", "positive", scale)
    return _draw(_laplace(scale.numerator, scale.denominator), size)


def discrete_gaussian(variance: Fraction, size: int) -> Array:
    """Draw `size` independent integers with P[x] proportional to ``exp(-x**2 / (2 variance))``,
    exactly.

    Any positive rational `variance` will do; it is the parameter, and the true variance is at most
    that. The array is int64 for variances below 2**88, with ``|x| < 2**62`` (an `OverflowError`
    otherwise, of probability below 2**-20000), and of python integers beyond.
    """
    if variance.numerator <= 0:
        raise parameter_error("variance", "positive", variance)
    return _draw(_gaussian(variance.numerator, variance.denominator), size)


def truncated_laplace(scale: Fraction, cut: int, size: int) -> Array:
    """Draw `size` independent integers of Laplace noise that stays within `cut` of 0.

    They have P[x] proportional to ``exp(-|x|/scale)``, exactly. `scale` is any positive rational,
    and `cut` any whole number from 0 on. On average, at most six attempts make a draw. The array is
    int64 for cuts below 2**62, and of python integers beyond.
    """
    if scale.numerator <= 0:
        raise parameter_error("scale", "positive", scale)
    if cut < 0:
        raise parameter_error("cut", "at least 0", cut)
    return _draw(make_truncated_laplace(scale.numerator, scale.denominator, cut), size)


def geometric(rate: Fraction, size: int) -> Array:
    """Draw `size` independent integers g >= 0 with P[g] = (1 - q) q**g, q = ``exp(-rate)``,
    exactly.

    Any positive rational `rate` will do. The array is int64 for rates above 2**-48, with ``g <
    2**62`` (an `OverflowError` otherwise, of probability below 2**-20000), and of python integers
    for smaller ones.
    """
    if rate.numerator <= 0:
        raise parameter_error("rate", "positive", rate)
    return _draw(_geometric(rate.numerator, rate.denominator), size)


def permutation(size: int) -> Integers:
    """Return the numbers 0 to `size` - 1 in an order that is exactly uniform.

    They are sorted by independent 64-bit keys. Keys without ties are equally likely in every order;
    with a tie (probability below ``size**2 / 2**65``) all keys are drawn anew.
    """
    if size < 0:
        raise parameter_error("size", "at least 0", size)
    while True:
        keys = _random_words(size)
        order = np.argsort(keys)
        ranked = keys[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order.astype(np.int64, copy=False)


def parameter_error(name: str, rule: str, value: object) -> BadValue:
    return BadValue(f"{name} must be {rule}, not {value}.")


# Drawing many ---------------------------------------------------------------------------------------------


class _Sampler(Protocol):
    """One law. `draw_one` makes one draw; `block` makes n attempts at once and returns the draws
    that came of them; `attempts` is how many of them most likely suffice for `size` draws."""

    @property
    def python_ints(self) -> bool: ...

    def draw_one(self) -> int: ...

    def attempts(self, size: int) -> int: ...

    def block(self, n: int) -> Integers: ...


def _draw(sampler: _Sampler, size: int) -> Array:
    """Draw `size` numbers from a sampler: one by one where they are few or exceed 64 bits, else in
    blocks."""
    if size < 0:
        raise parameter_error("size", "at least 0", size)
    if sampler.python_ints:
        return np.array([sampler.draw_one() for _ in range(size)], dtype=object)
    if size <= SIZES.draws_few:
        few = [sampler.draw_one() for _ in range(size)]
        if few and max(map(abs, few)) >= _LIMIT:
            raise OverflowError(_OVERFLOW)
        return np.array(few, dtype=np.int64)
    out = np.empty(size, dtype=np.int64)
    done = 0
    while done < size:
        drawn = sampler.block(min(SIZES.draws, sampler.attempts(size - done)))[: size - done]
        out[done : done + len(drawn)] = drawn
        done += len(drawn)
    return out


def _fit(x: int) -> int:
    if abs(x) >= _LIMIT:
        raise OverflowError(_OVERFLOW)
    return x


# The samplers ---------------------------------------------------------------------------------------------


class _Uniform:
    """A uniform number in [0, 1) of which only the first `bits` binary digits have been drawn so
    far."""

    def __init__(self, digits: int, bits: int) -> None:
        self.digits = digits
        self.bits = bits

    def below(self, interval: Callable[[int], tuple[int, int]]) -> bool:
        """Return whether this uniform number is less than a probability p, exactly. ``interval(b)``
        encloses ``2**b p`` by two integers at most 2 apart. More random bits are drawn until the
        answer is certain."""
        while True:
            lo, hi = interval(self.bits)
            if self.digits + 1 <= lo:
                return True
            if self.digits >= hi:
                return False
            more = 8 * -(-self.bits // 8)
            self.digits = self.digits << more | int.from_bytes(random_bytes(more // 8), "little")
            self.bits += more


class _Inversion(NamedTuple):
    """N = the largest n with U < P[N >= n], for a geometric N or, when `signed`, for the absolute
    value of a discrete Laplace variable, which then gets a sign.

    With q = exp(-num/den) the tail P[N >= n] is q**n, or 2 q**n / (1 + q) for n >= 1. Either way N
    is the integer part of ``scale * -ln U + shift``, which doubles settle unless it is too close to
    an integer. The sign is the lowest bit of the word whose upper 63 bits begin U.
    """

    num: int
    den: int
    signed: bool
    scale: float
    shift: float
    python_ints: bool = False

    @classmethod
    def of(cls, num: int, den: int, *, signed: bool) -> _Inversion:
        """Prepare a sampler by inversion of a geometric law with rate num / den. With ``signed`` it
        is the law's two-sided form, which is discrete Laplace noise."""
        scale = den / num if den << _TINY > num else 2.0**-_TINY
        if not signed:
            return cls(num, den, False, scale, 0.0)
        if num << 4 <= den:
            # -ln((1 + q)/2) is y - ln(cosh(y)) for this y, at most 2**-5: four terms, within 2**-47.
            y = 0.5 / scale
            square = y * y
            return cls(
                num,
                den,
                True,
                scale,
                scale * (y - square * (0.5 - square * (1 / 12 - square / 45))),
            )
        q = exp_interval(num, den, 63)[0]
        return cls(num, den, True, scale, scale * minus_log_int((1 << 63) + q, 64))

    def tail(self, n: int, bits: int) -> tuple[int, int]:
        """Return two integers that enclose ``2**bits P[N >= n]``, at most 2 apart, for n >= 1. N is
        the magnitude that the sampler draws."""
        if not self.signed:
            return exp_interval(n * self.num, self.den, bits)
        more = bits + 8
        lo, hi = exp_interval(n * self.num, self.den, more)
        q_lo, q_hi = exp_interval(self.num, self.den, more)
        unit = 1 << more
        return (lo << bits + 1) // (unit + q_hi), (hi << bits + 1) // (unit + q_lo) + 1

    def resolve(self, digits: int, least: int) -> int:
        """Return the drawn magnitude N by exact comparisons, where doubles cannot decide it.
        `digits` are the first 63 bits of the uniform number U, and N >= `least` is certain
        already."""
        u = _Uniform(digits, 63)
        step = 1
        while u.below(partial(self.tail, least + step)):
            least += step
            step *= 2
        while step > 1:
            step //= 2
            if u.below(partial(self.tail, least + step)):
                least += step
        return least

    def magnitude(self, word: int) -> int:
        """Return the magnitude N that one uniform 64-bit word stands for.

        The upper 63 bits of the word begin U, and N is the integer part of ``scale * -ln U +
        shift``. If that is nearer to a whole number than the error of doubles (``slack``), or U is
        too small, `resolve` finds N exactly.
        """
        digits = word >> 1
        if digits < _COARSE:
            return self.resolve(digits, 0)
        t = minus_log_int(digits, 63) * self.scale + self.shift
        slack = (t + (self.scale + 1.0)) * _SLACK
        n = int(t - slack)  # towards zero: a t - slack below 0 gives 0, and N >= 0 is certain
        return n if n == int(t + slack) else self.resolve(digits, n)

    def magnitudes(self, words: Words) -> Integers:
        """Return the magnitudes that many uniform 64-bit words stand for.

        It is `magnitude` for an array: doubles decide most words, and `resolve` the others.
        """
        digits = words >> np.uint64(1)
        t = minus_log(digits.astype(np.float64), 63)
        t *= self.scale
        t += self.shift
        slack = t + (self.scale + 1.0)
        slack *= _SLACK
        n = (t - slack).astype(np.int64)
        t += slack
        for i in ((n != t.astype(np.int64)) | (digits < _COARSE)).nonzero()[0]:
            least = int(n[i]) if digits[i] >= _COARSE else 0
            n[i] = _fit(self.resolve(int(digits[i]), least))
        return n

    def draw_one(self) -> int:
        word = int.from_bytes(random_bytes(8), "little")
        n = self.magnitude(word)
        return -n if self.signed and word & 1 else n

    def attempts(self, size: int) -> int:
        return size

    def block(self, n: int) -> Integers:
        words = _random_words(n)
        x = self.magnitudes(words)
        return _with_signs(x, words) if self.signed else x


def _with_signs(x: Integers, words: Words) -> Integers:
    minus = (words & np.uint64(1)).astype(np.int64)
    return (x ^ -minus) + minus


class _Split(NamedTuple):
    """The laws of `_Inversion` at scales above 2**24: N = 2**m H + Z for independent H and Z.

    H is geometric at the rate ``2**m num/den``, which lies in [2**-24, 2**-23). Z is uniform on m
    bits and survives with probability ``exp(-Z num/den)``. That is above ``1 - 2**m num/den``, so a
    uniform V of `spare` bits that is at least ``2**m num/den`` says so without arithmetic. A
    `signed` N gets a sign; minus zero is drawn anew. In the methods, ``low`` is Z and ``v`` is V.
    """

    num: int
    den: int
    signed: bool
    python_ints: bool
    high: _Inversion
    m: int
    spare: int
    doubtful: int  # V from here on is safe

    @classmethod
    def of(cls, num: int, den: int, *, signed: bool) -> _Split:
        """Prepare a sampler for a scale that is too large for inversion alone. It draws the high
        part of a number by inversion, and its low ``m`` bits by rejection. The rate is num / den;
        ``signed`` makes it two-sided."""
        # The fewest low bits that leave the high part a scale of at most 2**24.
        m = max(0, den.bit_length() - (_SPLIT_SCALE * num).bit_length())
        while den > _SPLIT_SCALE * num << m:
            m += 1
        spare = max(64, 8 * -(-(m + 40) // 8)) - m  # so that both together fill whole bytes
        return cls(
            num,
            den,
            signed,
            den >= INT64_SCALE * num,
            _Inversion.of(num << m, den, signed=False),
            m,
            spare,
            -(-(num << m + spare) // den),
        )

    def survives(self, low: int, v: int) -> bool:
        """Return whether a Z survives, by exact comparison with V and further random bits."""
        return not _Uniform(v, self.spare).below(
            partial(one_minus_exp_interval, low * self.num, self.den)
        )

    def draw_one(self) -> int:
        """Draw one number: a high part by inversion and low bits by rejection.

        A negative zero is rejected, since zero would else count twice. The loop ends at the first
        number that is not rejected.
        """
        while True:
            word = int.from_bytes(random_bytes(8), "little")
            low_word = int.from_bytes(random_bytes((self.m + self.spare) // 8), "little")
            low, v = low_word & (1 << self.m) - 1, low_word >> self.m
            n = (self.high.magnitude(word) << self.m) + low
            minus = self.signed and word & 1
            if (v >= self.doubtful or self.survives(low, v)) and (n or not minus):
                return -n if minus else n

    def attempts(self, size: int) -> int:
        return size + 1

    def block(self, n: int) -> Integers:
        """Draw at most `n` numbers at once, each from a high part and `m` low bits.

        The high part is drawn by inversion. The low bits are uniform, and a number is kept with
        probability exp(-low num/den), which a uniform ``v`` decides. Rejected ones are left out, so
        the array may be shorter than `n`.
        """
        words = _random_words(2 * n)
        words, low_words = words[:n], words[n:]
        high = self.high.magnitudes(words)
        _fit(int(high.max()) << self.m)
        low = (low_words & np.uint64((1 << self.m) - 1)).astype(np.int64)
        v = low_words >> np.uint64(self.m)
        x = (high << self.m) + low
        # A large v keeps a number, whatever its low bits. The few others are computed exactly.
        keep = v >= self.doubtful
        for i in (~keep).nonzero()[0]:
            keep[i] = self.survives(int(low[i]), int(v[i]))
        if self.signed:
            keep &= (x > 0) | ((words & np.uint64(1)) == 0)  # minus zero is rejected
            x = _with_signs(x, words)
        return x if keep.all() else x[keep]


class _Gaussian(NamedTuple):
    """Rejection from a discrete Laplace variable Y of scale t = floor(sigma) + 1 (Canonne, Kamath,
    Steinke 2020): keep Y with probability exp(-gamma), ``gamma = (|Y| - variance/t)**2 / (2
    variance)``.

    V < exp(-gamma) is ``-ln V > gamma`` for a uniform V. In the methods, ``y`` is Y and ``v`` has
    the first 32 bits of V.
    """

    num: int  # the variance is num / den
    den: int
    t: int
    proposal: _Inversion | _Split
    centre: float
    weight: float
    python_ints: bool
    unit: int  # gamma = (|Y| unit - num)**2 / under
    under: int

    @classmethod
    def of(cls, num: int, den: int) -> _Gaussian:
        """Prepare a sampler of the discrete Gaussian with variance num / den.

        It rejects from discrete Laplace noise whose scale ``t`` is the next whole number above the
        deviation. The constants of gamma are computed once: exactly as (|y| ``unit`` - num)**2 /
        ``under``, and in doubles as (|y| - centre)**2 weight. A tiny variance gets a finite weight.
        """
        t = math.isqrt(num // den) + 1
        unit, under = den * t, 2 * num * den * t**2
        if num >= INT64_VARIANCE * den:  # python integers: the doubles below are not used
            return cls(num, den, t, _laplace(t, 1), 0.0, 0.0, True, unit, under)
        weight = den / (2 * num) if num << _TINY > den else 2.0 ** (_TINY - 1)
        return cls(num, den, t, _laplace(t, 1), num / unit, weight, False, unit, under)

    def gamma(self, y: int) -> tuple[int, int]:
        """Return the gamma of a proposal y as a fraction: numerator and denominator."""
        return (abs(y) * self.unit - self.num) ** 2, self.under

    def survives(self, y: int, v: int) -> bool:
        """Return whether a proposal y is kept, by exact comparison with V and further bits."""
        return _Uniform(v, 32).below(partial(exp_interval, *self.gamma(y)))

    def draw_one(self) -> int:
        """Draw one discrete Gaussian number by rejection from discrete Laplace noise.

        A proposal y is kept if -ln V exceeds gamma by more than the error of doubles (``slack``),
        and rejected if it falls short by more. Between them `survives` decides exactly.
        """
        while True:
            y, v = self.proposal.draw_one(), int.from_bytes(random_bytes(4), "little")
            top = (abs(y) * self.unit - self.num) ** 2
            gamma = top / self.under if top < self.under << 64 else 2.0**64
            ahead = minus_log_int(v + 1, 32) - gamma
            slack = (gamma + 64.0) * _SLACK
            if ahead > slack:
                return y
            if (v == 0 or ahead + 2.0 / (v + 1) >= -slack) and self.survives(y, v):
                return y

    def attempts(self, size: int) -> int:
        return 3 * size // 2 + 8  # three in four are kept, fewer at variances below 1

    def block(self, n: int) -> Integers:
        """Draw at most `n` discrete Gaussian numbers at once. Rejected ones are left out."""
        y = self.proposal.block(n)
        v = np.frombuffer(random_bytes(4 * len(y)), dtype="<u4")
        gamma = np.abs(y).astype(np.float64)
        gamma -= self.centre
        gamma *= gamma
        gamma *= self.weight
        return y[_draw_survivors(gamma, y, v, self.survives)]


def _draw_survivors(
    gamma: Reals, y: Integers, v: Array, survives: Callable[[int, int], bool]
) -> NDArray[np.bool_]:
    """Return a mask of the proposals ``y`` that are kept in rejection sampling, each with
    probability ``exp(-gamma)``.

    ``v`` has the first 32 bits of a uniform number V for each proposal, which is kept if V is below
    ``exp(-gamma)``. Doubles decide where -ln V and gamma differ by more than their error. For the
    others ``survives(y, v)`` decides exactly. `gamma` is overwritten.
    """
    x = v + 1.0
    ahead = minus_log(x, 32)
    ahead -= gamma
    gamma += 64.0
    gamma *= _SLACK
    keep: NDArray[np.bool_] = ahead > gamma
    rest = np.flatnonzero(~keep)
    doubtful = (ahead[rest] + 2.0 / x[rest] >= -gamma[rest]) | (v[rest] == 0)
    for i in rest[doubtful]:
        keep[i] = survives(int(y[i]), int(v[i]))
    return keep


class _TruncatedLaplace(NamedTuple):
    """Discrete Laplace noise within `cut`, by rejection.

    If the cut is a scale or more, `uncut` is the noise without a cut. At least 63 % of it is within
    the cut. Otherwise `uncut` is None, and a uniform y within the cut is drawn. It is kept with
    probability ``exp(-|y| num/den)``, at least ``exp(-1)``.
    """

    num: int  # the rate is num / den
    den: int
    cut: int
    uncut: _Inversion | _Split | None
    bits: int  # of a uniform place
    python_ints: bool

    @classmethod
    def of(cls, num: int, den: int, cut: int) -> _TruncatedLaplace:
        uncut = _laplace(den, num) if cut * num >= den else None
        return cls(num, den, cut, uncut, (2 * cut).bit_length(), cut >= _LIMIT)

    def survives(self, y: int, v: int) -> bool:
        """Return whether a uniform y within the cut is kept.

        ``v`` has the first 32 bits of the uniform number that decides it, and more are drawn if
        they are needed.
        """
        return _Uniform(v, 32).below(partial(exp_interval, abs(y) * self.num, self.den))

    def draw_one(self) -> int:
        """Draw one number within ``cut`` of 0, by rejection.

        With a `uncut` law, draw from it until a number lies within the cut. Else draw a uniform
        number of `bits` bits until it is at most 2 cut; less the cut it is y. Keep y if it
        survives, or begin again.
        """
        while True:
            if self.uncut is not None:
                y = self.uncut.draw_one()
                if abs(y) <= self.cut:
                    return y
                continue
            place = (
                int.from_bytes(random_bytes(-(-self.bits // 8)), "little") & (1 << self.bits) - 1
            )
            if place <= 2 * self.cut:
                y, v = place - self.cut, int.from_bytes(random_bytes(4), "little")
                if self.survives(y, v):
                    return y

    def attempts(self, size: int) -> int:
        return (2 if self.uncut is not None else 4) * size + 8

    def block(self, n: int) -> Integers:
        """Make `n` attempts at once and return the accepted draws."""
        if self.uncut is not None:
            if self.uncut.python_ints:
                return np.array([self.draw_one() for _ in range(n)], dtype=np.int64)
            y = self.uncut.block(n)
            return y[np.abs(y) <= self.cut]
        places = _random_words(n) & np.uint64((1 << self.bits) - 1)
        y = places[places <= np.uint64(2 * self.cut)].astype(np.int64) - self.cut
        v = np.frombuffer(random_bytes(4 * len(y)), dtype="<u4")
        gamma = np.abs(y).astype(np.float64)
        gamma *= self.num / self.den
        return y[_draw_survivors(gamma, y, v, self.survives)]


@lru_cache(maxsize=256)
def _laplace(num: int, den: int) -> _Inversion | _Split:
    return (_Inversion if num <= _SPLIT_SCALE * den else _Split).of(den, num, signed=True)


@lru_cache(maxsize=256)
def make_truncated_laplace(num: int, den: int, cut: int) -> _TruncatedLaplace:
    return _TruncatedLaplace.of(den, num, cut)


@lru_cache(maxsize=256)
def _geometric(num: int, den: int) -> _Inversion | _Split:
    return (_Inversion if den <= _SPLIT_SCALE * num else _Split).of(num, den, signed=False)


@lru_cache(maxsize=256)
def _gaussian(num: int, den: int) -> _Gaussian:
    return _Gaussian.of(num, den)
