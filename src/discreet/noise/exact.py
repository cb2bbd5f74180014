"""Enclose real numbers between integers, to any number of bits: exp, log, pi; and compare them with
uniform reals.

An enclosure of x at `bits` is a pair of integers with low <= 2^bits * x <= high. It is computed
with integers alone, so that it is a theorem about Python's integers and depends on no mathematical
library. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import isqrt

Enclosure = tuple[int, int]
Real = Callable[[int], Enclosure]


def rational(x: Fraction, bits: int) -> Enclosure:
    scaled, rest = divmod(x.numerator << bits, x.denominator)
    return scaled, scaled + (rest > 0)


def times(a: Enclosure, b: Enclosure, bits: int) -> Enclosure:
    """Return the product of two numbers that are not negative."""
    return a[0] * b[0] >> bits, -(-a[1] * b[1] >> bits)


def over(a: Enclosure, b: Enclosure, bits: int) -> Enclosure:
    """Return the quotient of a number that is not negative and a positive one."""
    return (a[0] << bits) // b[1], -((-a[1] << bits) // b[0])


def exp_minus(x: Fraction, bits: int) -> Enclosure:
    """Enclose exp(-x) for x >= 0 within a few units: by Taylor's series at x / 2^halvings < 1/256,
    and then `halvings` squarings.

    Squaring a number in [0, 1] at most doubles its absolute error, and rounding adds one unit, so
    `halvings` guard bits keep the error small. The terms of the series alternate and fall, so its
    rest is smaller than the first term left out.
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x.numerator > x.denominator * (bits + 2):  # below 2^-bits: not a digit is visible
        return 0, 1
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 9)
    work = bits + halvings + 16
    low, high = rational(x / (1 << halvings), work)
    term: Enclosure = (1 << work, 1 << work)
    total, n = [1 << work, 1 << work], 0
    while term[1] > 1:
        n += 1
        term = (term[0] * low >> work) // n, -((-term[1] * high >> work) // n)
        total = (
            [total[0] - term[1], total[1] - term[0]]
            if n % 2
            else [total[0] + term[0], total[1] + term[1]]
        )
    power: Enclosure = (total[0] - 1, total[1] + 1)
    for _ in range(halvings):
        power = times(power, power, work)
    return power[0] >> (work - bits), min(1 << bits, -(-power[1] >> (work - bits)))


def log(x: Fraction, bits: int) -> Enclosure:
    """Enclose the natural logarithm of x > 0 within a few units: x = m * 2^e with m in [2/3, 4/3],
    and log m by atanh.
    """
    above, below = x.numerator, x.denominator
    exponent = above.bit_length() - below.bit_length()
    above = above << max(0, -exponent)
    below = below << max(0, exponent)
    if 3 * above > 4 * below:
        below = below << 1
        exponent = exponent + 1
    elif 3 * above < 2 * below:
        above = above << 1
        exponent = exponent - 1
    work = bits + 16 + abs(exponent).bit_length()
    z = (abs(above - below) << work) // (above + below)  # log m = 2 atanh((m - 1) / (m + 1))
    low, high = _atanh((z, z + 1), work)
    if above < below:
        low, high = -high, -low
    half = _half_log_two(work)
    least, most = half if exponent >= 0 else (half[1], half[0])
    spare = work - bits - 1
    return (low + exponent * least) >> spare, -(-(high + exponent * most) >> spare)


@lru_cache(maxsize=64)
def _half_log_two(bits: int) -> Enclosure:
    return _atanh(rational(Fraction(1, 3), bits), bits)


def _atanh(z: Enclosure, bits: int) -> Enclosure:
    """Enclose atanh(z) for 0 <= z <= 1/3: the sum of z^k / k over odd k, whose rest is below 9/8 of
    its first term.
    """
    square = times(z, z, bits)
    power = z
    low = high = 0
    k = 1
    while power[1] > 1:
        low += power[0] // k
        high += -(-power[1] // k)
        power = times(power, square, bits)
        k += 2
    return low, high + 2


@lru_cache(maxsize=64)
def pi(bits: int) -> Enclosure:
    """Enclose pi by Machin: 16 atan(1/5) - 4 atan(1/239); each series alternates and falls."""
    work = bits + 16
    fifth = _atan_inverse(5, work)
    other = _atan_inverse(239, work)
    return (16 * fifth[0] - 4 * other[1]) >> 16, -(-(16 * fifth[1] - 4 * other[0]) >> 16)


def _atan_inverse(n: int, bits: int) -> Enclosure:
    power = (1 << bits) // n
    k = 1
    total = 0
    while power:
        total += power // k if k % 4 == 1 else -(power // k)
        power //= n * n
        k += 2
    # each of k / 2 terms was cut by less than 2 units, and less than 1 is left out
    return (total - k, total + k)


def root(x: Enclosure, bits: int) -> Enclosure:
    """Return the square root of a number that is not negative."""
    return isqrt(x[0] << bits), isqrt(x[1] << bits) + 1


def less(prefix: int, held: int, more: Callable[[], int], real: Real) -> bool:
    """Return True if a uniform real in [0, 1) is below `real`. Its first `held` bits are `prefix`,
    and `more` draws 64 more.

    The result is exact: it is decided only when all reals with the known bits are on one side. The
    uniform real equals `real` with probability 0, so the loop ends with probability 1 (S12).
    """
    while True:
        low, high = real(held + 32)
        if (prefix + 1) << 32 <= low:
            return True
        if prefix << 32 >= high:
            return False
        prefix = prefix << 64 | more()
        held = held + 64
