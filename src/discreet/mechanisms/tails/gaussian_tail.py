"""Enclose the probability that discrete Gaussian noise reaches t, as narrowly as wished at any
sigma.

At a small sigma the terms are added (`enclose.gaussian`). At a large one there are too many, and the
sum is the integral plus the corrections of Euler and Maclaurin, whose rest is bounded. With y = t /
sigma, phi the normal density,

    P(Z >= t) = 1/2 - phi(y) * (y + y^3 / 3 + y^5 / (3 * 5) + ...)
              + phi(y) / sigma * (1/2 + sum over k <= m of B_2k / (2k)! * He_(2k-1)(y) /
                sigma^(2k-1))  +-  rest,
    rest <= 4 * sqrt((2m)!) / (2 pi sigma)^(2m).

The rest is at most |B_2m| / (2m)! times the integral of |f^(2m)|, f(x) = exp(-x^2 / 2 sigma^2),
over the normaliser. f^(j)(x) = +-He_j(x / sigma) f(x) / sigma^j; |He_j(y)| <= 1.09 sqrt(j!) exp(y^2
/ 4) (Cramer); |B_2m| / (2m)! is below
3.3 / (2 pi)^(2m); and 3.3 * 1.09 * sqrt(pi) / sqrt(2 pi) < 4. The normaliser is sigma * sqrt(2 pi)
* (1 + 2 exp(-2 pi^2 sigma^2) + ...) by Poisson summation: for sigma over 16 its second term is
  below 2^-7000.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, comb, factorial, floor

from discreet.errors import UsageError
from discreet.mechanisms.tails import enclose
from discreet.noise import exact
from discreet.noise.exact import Enclosure

LARGE = 16
MOST_BITS = 6000


def exactly(sigma: Fraction) -> enclose.Tail:
    """Return P(Z >= t) for t >= 1, enclosed."""
    if sigma <= LARGE:
        return enclose.gaussian(sigma)
    return lambda t, bits: _enclose(sigma, t, bits)


def _enclose(sigma: Fraction, t: int, bits: int) -> Enclosure:
    if bits > MOST_BITS:
        raise UsageError(
            f"Tails of discrete Gaussian noise are known down to 2^-{MOST_BITS}, and this asks for less."
        )
    square = Fraction(t * t) / sigma**2
    spare = 64 + int(square)  # the series is as large as the density is small
    work = bits + spare
    two_pi = exact.pi(work + 1)  # in units of half the size: 2 pi
    density = exact.over(exact.exp_minus(square / 2, work), exact.root(two_pi, work), work)
    within = exact.times(density, _series(Fraction(t) / sigma, square, density[1], work), work)
    edge, error = _edge(sigma, t, work)
    at_edge = sorted(Fraction(d * e) / sigma for d in density for e in (edge - error, edge + error))
    half = 1 << (work - 1)
    low = half - within[1] + (floor(at_edge[0]) >> work) - 2
    high = half - within[0] + -(-ceil(at_edge[-1]) >> work) + 2
    return max(0, low >> spare), max(0, -(-high >> spare))


def _series(y: Fraction, square: Fraction, density: int, bits: int) -> Enclosure:
    """Return y + y^3 / 3 + y^5 / (3 * 5) + ...: the normal integral from 0 to y over the density at
    y.
    """
    ratio = exact.rational(square, bits)
    term = exact.rational(y, bits)
    low = 0
    high = 0
    odd = 1
    # What is left out is at most twice its first term, once each term is under half of the one
    # before.
    while term[1] * density >> bits > 1 or ratio[1] >= odd << (bits - 1):
        low = low + term[0]
        high = high + term[1]
        odd = odd + 2
        term = (term[0] * ratio[0] >> bits) // odd, -((-term[1] * ratio[1] >> bits) // odd)
    return low, high + 2 * term[1]


def _edge(sigma: Fraction, t: int, bits: int) -> tuple[int, int]:
    """Return 1/2 + the corrections in units of 2^-bits, and their error (with the rest, times sigma
    / phi).

    g_j = He_j(y) / sigma^j follows g_(j+1) = (t g_j - j g_(j-1)) / sigma^2; each step is rounded by
    less than a unit.
    """
    square = sigma**2
    before = 1 << bits
    here = (t << bits) * square.denominator // square.numerator
    before_error, here_error = 0, 1
    total = 1 << (bits - 1)
    error = 0
    m = _terms(sigma, bits)
    for k in range(1, m + 1):
        c = _coefficient(k)
        total += here * c.numerator // c.denominator
        error += here_error * abs(c.numerator) // c.denominator + 2
        for j in (2 * k - 1, 2 * k):
            after = (t * here - j * before) * square.denominator // square.numerator
            after_error = (
                t * here_error + j * before_error
            ) * square.denominator // square.numerator + 2
            before = here
            here = after
            before_error = here_error
            here_error = after_error
    return total, error


@lru_cache(maxsize=1024)
def _terms(sigma: Fraction, bits: int) -> int:
    """Return the least m whose rest is under a unit of 2^-bits."""
    whole = 6 * int(sigma)  # below 2 pi sigma
    m = 1
    while 16 * factorial(2 * m) << (2 * bits) > whole ** (4 * m):
        m += 1
    return m


@lru_cache(maxsize=1024)
def _coefficient(k: int) -> Fraction:
    """Return B_2k / (2k)!"""
    return _bernoulli(2 * k) / factorial(2 * k)


@lru_cache(maxsize=1024)
def _bernoulli(n: int) -> Fraction:
    if n == 0:
        return Fraction(1)
    return -sum(
        (comb(n + 1, k) * _bernoulli(k) for k in range(n) if k < 2 or k % 2 == 0), Fraction(0)
    ) / (n + 1)
