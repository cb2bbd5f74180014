"""Margins have exactly the coverage they claim: summed term by term, and a half-width one step
smaller falls short.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import pytest

from discreet.errors import UsageError
from discreet.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    from_row,
    to_row,
)
from discreet.mechanisms.tails import enclose, gaussian_tail
from discreet.noise import exact
from discreet.noise.table import Mass, gaussian, laplace

BITS = 192
CONFIDENCES = [Fraction(1, 2), Fraction(95, 100), Fraction(999, 1000), 1 - Fraction(1, 10**9)]
SCALES = [Fraction(s) for s in ("1/1000", "1/7", "1", "10/3", "10", "17", "50", "300")]


def mechanism(kind: str, scale: Fraction) -> Any:
    return (
        DiscreteLaplace(scale=scale, l1=Fraction(1))
        if kind == "laplace"
        else DiscreteGaussian(sigma=scale, l2_squared=Fraction(1))
    )


@lru_cache
def sums(mass: Mass) -> list[Fraction]:
    """The sums of the mass over |z| <= h, h = 0, 1, ..., term by term to 180 bits, until not 2^-120
    is left.
    """
    reach, low, found = 1, 1 << BITS, [Fraction(1)]
    while mass.exponent(reach) < 90:
        low += 2 * exact.exp_minus(mass.exponent(reach), BITS)[0]
        found.append(Fraction(low, 1 << BITS))
        reach += 1
    return found


def coverage(mass: Mass, half_width: int) -> Fraction:
    found = sums(mass)
    return found[min(half_width, len(found) - 1)] / found[-1] if half_width >= 0 else Fraction(0)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_margins_are_the_smallest_with_their_coverage(kind: str, scale: Fraction) -> None:
    mass = laplace(scale) if kind == "laplace" else gaussian(scale)
    for confidence in CONFIDENCES:
        margin = mechanism(kind, scale).margin(confidence)
        assert coverage(mass, margin) >= confidence
        assert coverage(mass, margin - 1) < confidence


def test_margins_known_by_heart() -> None:
    """At epsilon 1 the margin 3 covers 1 - 2 e^-4 / (1 + e^-1) = .973, not .95 (S11)."""
    assert mechanism("laplace", Fraction(1)).margin(0.95) == 3
    assert float(coverage(laplace(Fraction(1)), 3)) == pytest.approx(0.9732, abs=1e-4)
    assert mechanism("gaussian", Fraction(10)).margin(0.95) == 20
    assert mechanism("gaussian", Fraction(10**9)).margin(0.95) == 1959963985
    assert mechanism("laplace", Fraction(10**15)).margin(0.95) == 2995732273553991  # 10^15 ln 20
    assert mechanism("gaussian", Fraction(10**40)).margin(0.95) // 10**24 == 19599639845400542


@pytest.mark.parametrize("sigma", [Fraction(33, 2), Fraction(20), Fraction(333, 7), Fraction(100)])
def test_euler_and_maclaurin_agree_with_the_sum(sigma: Fraction) -> None:
    """The enclosure for large sigma holds what adding the terms gives, to 180 bits, from the center
    far out.
    """
    adding, enclosing = enclose.gaussian(sigma), gaussian_tail.exactly(sigma)
    assert sigma > gaussian_tail.LARGE
    for t in (1, 2, int(sigma), int(2 * sigma), int(7 * sigma), int(15 * sigma)):
        summed, enclosed = adding(t, 180), enclosing(t, 180)
        assert max(summed[0], enclosed[0]) <= min(summed[1], enclosed[1])
        assert enclosed[1] - enclosed[0] <= 2


def test_margins_grow_with_the_scale() -> None:
    for kind in ("laplace", "gaussian"):
        margins = [mechanism(kind, Fraction(10**k, 7)).margin(0.95) for k in range(0, 40, 3)]
        assert margins == sorted(margins)
        assert 10**39 // 7 < margins[-1] < 10**39


@pytest.mark.parametrize(
    "confidence", [0, 1, 1.5, -0.1, float("nan"), float("inf"), "0.95", None, True]
)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_a_confidence_lies_between_0_and_1(kind: str, confidence: Any) -> None:
    with pytest.raises(UsageError, match="confidence must be between 0 and 1"):
        mechanism(kind, Fraction(1)).margin(confidence)


@pytest.mark.parametrize("bad", [0, Fraction(-1, 2), 0.5, "1", None, True, float("nan")])
def test_fields_are_positive_rationals(bad: Any) -> None:
    for make in (
        lambda: DiscreteLaplace(scale=bad, l1=Fraction(1)),
        lambda: DiscreteLaplace(scale=Fraction(1), l1=bad),
        lambda: DiscreteGaussian(sigma=bad, l2_squared=Fraction(1)),
        lambda: DiscreteGaussian(sigma=Fraction(1), l2_squared=bad),
    ):
        with pytest.raises(UsageError, match="must be a positive rational number"):
            make()


def test_rows_hold_what_recomputation_needs() -> None:
    for one in (mechanism("laplace", Fraction(3, 7)), mechanism("gaussian", Fraction(10**30))):
        assert from_row(to_row(one)) == one
    assert to_row(mechanism("laplace", Fraction(3, 7))) == {
        "mechanism": "DiscreteLaplace",
        "scale": "3/7",
        "l1": "1",
    }


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"mechanism": "Nothing"},
        {"mechanism": "DiscreteLaplace", "scale": "1"},
        {"mechanism": "DiscreteLaplace", "scale": "1", "l1": "1", "seed": "1"},
        {"mechanism": "DiscreteLaplace", "scale": "-1", "l1": "1"},
    ],
)
def test_other_rows_are_refused(row: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        from_row(row)
