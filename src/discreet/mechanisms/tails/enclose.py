"""Enclose between integers the probability that noise reaches t. The thresholds for unknown keys
and margins follow from it.

These probabilities are tiny, so an enclosure has hundreds of bits after the point; see
`discreet.noise.exact`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from discreet.noise import exact
from discreet.noise.exact import Enclosure

Tail = Callable[[int, int], Enclosure]
"""P(noise >= t) for t >= 1, enclosed at a number of bits; falls in t."""


def smallest(tail: Tail, *, times: int, delta: Fraction, least: int = 1) -> int:
    """Return the smallest t >= least for which the probability that any of `times` noises reaches t
    is at most delta.
    """
    high = least
    while not _rare(tail, high, times, delta):
        high *= 2
    low = max(least - 1, high // 2)  # too common, or below the least
    if high == least:
        return least
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _rare(tail, middle, times, delta) else (middle, high)
    return high


_PARTS = 256


def smallest_share(tail: Tail, t: int, *, times: int, delta: Fraction) -> Fraction:
    """Return the 256ths of the noises that must go by t, which is rare enough; the others go by t -
    1.
    """
    found: dict[int, tuple[Enclosure, Enclosure]] = {}

    def mixed(share: int, bits: int) -> Enclosure:
        if bits not in found:
            found[bits] = tail(t, bits), tail(t - 1, bits)
        far, near = found[bits]
        low, high = (share * far[end] + (_PARTS - share) * near[end] for end in (0, 1))
        return low // _PARTS, -(-high // _PARTS)

    return Fraction(smallest(mixed, times=times, delta=delta), _PARTS)


def _rare(tail: Tail, t: int, times: int, delta: Fraction) -> bool:
    """Return True if 1 - (1 - tail(t))^times <= delta. Use more bits until both ends of the
    enclosure agree.
    """
    bits = 128 + (delta.denominator // delta.numerator).bit_length() + times.bit_length()
    while True:
        one = 1 << bits
        p = tail(t, bits)
        none = _power((one - min(p[1], one), one - p[0]), times, bits)
        if none[0] * delta.denominator >= (delta.denominator - delta.numerator) << bits:
            return True
        if none[1] * delta.denominator < (delta.denominator - delta.numerator) << bits:
            return False
        bits *= 2


def _power(x: Enclosure, n: int, bits: int) -> Enclosure:
    result = (1 << bits, 1 << bits)
    while n:
        if n & 1:
            result = exact.times(result, x, bits)
        x = exact.times(x, x, bits)
        n >>= 1
    return result


def laplace(scale: Fraction) -> Tail:
    """Return exp(-t / s) / (1 + exp(-1 / s)), for t >= 1."""

    def tail(t: int, bits: int) -> Enclosure:
        work = bits + 8
        r = exact.exp_minus(1 / scale, work)
        p = exact.over(
            exact.exp_minus(t / scale, work), (r[0] + (1 << work), r[1] + (1 << work)), work
        )
        return p[0] >> 8, -(-p[1] >> 8)

    return tail


def truncated_laplace(scale: Fraction, linf: int) -> Tail:
    """Return, as a function of the reach R >= linf, P(Z > R - linf) for discrete Laplace kept
    within ±R.

    r^(R - linf + 1) (1 - r^linf) / (1 + r - 2 r^(R + 1)) with r = exp(-1 / s).
    """

    def tail(reach: int, bits: int) -> Enclosure:
        work = bits + 16
        one = 1 << work
        r = exact.exp_minus(1 / scale, work)
        far = exact.exp_minus((reach + 1) / scale, work)
        near = exact.exp_minus((reach - linf + 1) / scale, work)
        span = exact.exp_minus(linf / scale, work)
        part = exact.times(near, (one - span[1], one - span[0]), work)
        whole = one + r[0] - 2 * far[1], one + r[1] - 2 * far[0]
        p = exact.over(part, whole, work)
        return p[0] >> 16, -(-p[1] >> 16)

    return tail


def gaussian(sigma: Fraction) -> Tail:
    """Return the sum over z >= t of exp(-z^2 / 2 sigma^2) over that of all z; for sigmas that are
    not large.
    """

    def tail(t: int, bits: int) -> Enclosure:
        sums = _gaussian_sums(sigma, bits + 8)
        whole = (1 << bits + 8) + 2 * sums[0][0], (1 << bits + 8) + 2 * sums[0][1]
        p = exact.over(sums[min(t, len(sums)) - 1], whole, bits + 8)
        return p[0] >> 8, -(-p[1] >> 8)

    return tail


@lru_cache(maxsize=8)
def _gaussian_sums(sigma: Fraction, bits: int) -> list[Enclosure]:
    """Return at place t - 1 the sum over z >= t of exp(-z^2 / 2 sigma^2), until not a bit is left
    of it.

    Each term is the one before times exp(-(2 z + 1) / 2 sigma^2), and so is each of these factors
    by exp(-1 / sigma^2).
    """
    work = bits + 64
    step = exact.exp_minus(1 / sigma**2, work)
    term = exact.exp_minus(1 / (2 * sigma**2), work)
    factor = exact.times(term, step, work)  # from z = 1 to z = 2: exp(-3 / 2 sigma^2)
    terms = []
    while term[1] > 1:
        terms.append(term)
        term = exact.times(term, factor, work)
        factor = exact.times(factor, step, work)
    # What is left falls faster than geometrically: under term / (1 - factor), and 1 / (1 - exp(-y))
    # <= 1 + 1 / y.
    rest = 2 + int(sigma**2) // (len(terms) + 1)
    sums = [(0, rest)]
    low = 0
    high = rest
    for least, most in reversed(terms):
        low = low + least
        high = high + most
        sums.append((low, high))
    return [(low >> 64, -(-high >> 64)) for low, high in reversed(sums)]
