"""Tails enclosed by integers hold the truth as mpmath has it to more digits; a search finds the
first that is rare.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import pytest

from discreet.mechanisms import fields
from discreet.mechanisms.tails import enclose

F = Fraction
BITS = 200


def weights(exponent: Any, end: int) -> Any:
    """The sums from 0, and from each z on, of exp(-exponent(z))."""
    with mpmath.workdps(90):
        masses = [mpmath.exp(-exponent(mpmath.mpf(z))) for z in range(end)]
        sums = [mpmath.mpf(0)]
        for mass in reversed(masses):
            sums.append(sums[-1] + mass)
        return sums[::-1]


def holds(enclosure: tuple[int, int], part: Any, sums: Any) -> bool:
    """Whether it holds `part` of the whole, which is twice the sum from 0 on less the mass of 0."""
    low, high = enclosure
    with mpmath.workdps(90):
        return (
            bool(low <= part / (2 * sums[0] - 1) * mpmath.mpf(2) ** BITS <= high)
            and high - low <= 2
        )


@pytest.mark.parametrize("scale", [F(1, 10), F(1), F(7, 3), F(20)])
def test_the_tail_of_the_discrete_laplace(scale: Fraction) -> None:
    sums = weights(lambda z: z * scale.denominator / scale.numerator, int(200 * scale) + 200)
    for t in (1, 2, 5, 30, 100):
        assert holds(enclose.laplace(scale)(t, BITS), sums[t], sums)


@pytest.mark.parametrize("sigma", [F(1, 3), F(1), F(5, 2), F(12)])
def test_the_tail_of_the_discrete_gaussian(sigma: Fraction) -> None:
    over, under = sigma.denominator**2, 2 * sigma.numerator**2
    sums = weights(lambda z: z * z * over / under, int(30 * sigma) + 30)
    for t in (1, 2, 5, 17, 25):
        assert holds(enclose.gaussian(sigma)(t, BITS), sums[t], sums)


@pytest.mark.parametrize("scale", [F(1, 2), F(3), F(20)])
@pytest.mark.parametrize("linf", [1, 4])
def test_the_tail_of_truncated_noise(scale: Fraction, linf: int) -> None:
    for reach in (linf, linf + 1, 60):
        sums = weights(lambda z: z * scale.denominator / scale.numerator, reach + 1)
        beyond = sums[reach - linf + 1]
        assert holds(enclose.truncated_laplace(scale, linf)(reach, BITS), beyond, sums)


@pytest.mark.parametrize("times", [1, 2, 1000])
@pytest.mark.parametrize("delta", [F(1, 3), F(1, 10**4), F(1, 10**20)])
def test_the_first_that_is_rare_enough(times: int, delta: Fraction) -> None:
    tail = enclose.laplace(F(4))
    t = enclose.smallest(tail, times=times, delta=delta)
    with mpmath.workdps(90):
        spent = [
            1 - (1 - mpmath.mpf(tail(s, 280)[0]) / mpmath.mpf(2) ** 280) ** times
            for s in (t, max(1, t - 1))
        ]
        limit = mpmath.mpf(delta.numerator) / delta.denominator
        assert spent[0] <= limit
        assert t == 1 or spent[1] > limit


def test_a_search_starts_at_its_least() -> None:
    assert enclose.smallest(enclose.laplace(F(1)), times=1, delta=F(1, 3), least=7) == 7
    assert enclose.smallest(enclose.laplace(F(1)), times=1, delta=F(1, 10**9), least=7) == 21


@pytest.mark.parametrize("wrong", [0, 1, -0.5, 1.5, float("nan"), float("inf"), True, None, "0.95"])
def test_a_confidence_is_between_0_and_1(wrong: object) -> None:
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        fields.confidence(wrong)
    assert fields.confidence(0.95) == F(19, 20)
