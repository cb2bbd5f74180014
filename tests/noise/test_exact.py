"""Enclosures hold what they enclose: checked against Python's decimals, which are correctly
rounded.
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.noise import exact

DIGITS = Context(prec=250)
SLACK = Fraction(1, 10**200)

positive = st.builds(Fraction, st.integers(1, 10**9), st.integers(1, 10**9))
precisions = st.sampled_from([1, 8, 64, 96, 300])


def as_decimal(x: Fraction) -> Decimal:
    return DIGITS.divide(Decimal(x.numerator), Decimal(x.denominator))


def holds(enclosure: exact.Enclosure, value: Decimal, bits: int, *, width: int) -> bool:
    low, high = enclosure
    scaled = Fraction(value) * 2**bits
    return low - SLACK * 2**bits <= scaled <= high + SLACK * 2**bits and high - low <= width


@settings(max_examples=200)
@given(positive, precisions)
def test_exp(x: Fraction, bits: int) -> None:
    x = min(x, Fraction(2000))
    assert holds(exact.exp_minus(x, bits), DIGITS.exp(as_decimal(x).copy_negate()), bits, width=2)


@pytest.mark.parametrize(
    "x", [Fraction(0), Fraction(1, 10**40), Fraction(10**40), Fraction(10**9, 7), Fraction(45)]
)
def test_exp_at_the_ends(x: Fraction) -> None:
    low, high = exact.exp_minus(x, 128)
    assert 0 <= low <= high <= 1 << 128
    assert (low == high == 1 << 128) if x == 0 else high - low <= 2
    assert holds((low, high), DIGITS.exp(as_decimal(x).copy_negate()), 128, width=2)


@settings(max_examples=200)
@given(positive, precisions)
def test_log(x: Fraction, bits: int) -> None:
    assert holds(exact.log(x, bits), DIGITS.ln(as_decimal(x)), bits, width=3)


@pytest.mark.parametrize(
    "x", [Fraction(1), Fraction(1, 2**300), Fraction(2**300 + 1), Fraction(2**80 - 1, 2**80)]
)
def test_log_at_the_ends(x: Fraction) -> None:
    assert holds(exact.log(x, 400), DIGITS.ln(as_decimal(x)), 400, width=3)


@settings(max_examples=50)
@given(st.builds(Fraction, st.integers(0, 10**9), st.just(3 * 10**9)))
def test_atanh_to_its_last_bit(z: Fraction) -> None:
    """The part of `log` that guard bits would hide."""
    logarithm = DIGITS.ln(as_decimal((1 + z) / (1 - z)))
    low, high = exact._atanh(exact.rational(z, 100), 100)
    assert holds((2 * low, 2 * high), logarithm, 100, width=200)


def test_pi_and_roots() -> None:
    digits = "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"
    low, high = exact.pi(300)
    assert low < Fraction(digits) * 2**300 + 1
    assert Fraction(digits) * 2**300 - 1 < high
    assert high - low <= 4
    for n in (5, 239):
        coarse, fine = exact._atan_inverse(n, 100), exact._atan_inverse(n, 300)
        assert coarse[0] << 200 <= fine[0] <= fine[1] <= coarse[1] << 200
    low, high = exact.root(exact.rational(Fraction(2), 200), 200)
    assert low**2 <= 2 << 400 <= high**2
    assert high - low <= 1


@given(positive, positive, precisions)
def test_products_and_quotients(a: Fraction, b: Fraction, bits: int) -> None:
    boxes = exact.rational(a, bits + 60), exact.rational(b, bits + 60)
    for (low, high), value in (
        (exact.times(*boxes, bits + 60), a * b),
        (exact.over(*boxes, bits + 60), a / b),
    ):
        assert low <= value * 2 ** (bits + 60) <= high


def test_less_answers_only_when_every_real_of_the_prefix_agrees() -> None:
    """A third is 0.010101...: a prefix that follows it is decided by the first bits that do not."""
    third = 2**64 // 3
    given: list[int] = []

    def more(*words: int) -> bool:
        left = list(words)

        def take() -> int:
            given.append(left[0])
            return left.pop(0)

        return exact.less(third, 64, take, lambda bits: exact.rational(Fraction(1, 3), bits))

    assert more(third - 1)
    assert not more(third + 1)
    assert more(third, third, third - 1)
    assert not more(third, third, third + 1)
    assert len(given) == 8
    assert exact.less(third - 1, 64, pytest.fail, lambda bits: exact.rational(Fraction(1, 3), bits))
    assert not exact.less(
        third + 1, 64, pytest.fail, lambda bits: exact.rational(Fraction(1, 3), bits)
    )
    assert not exact.less(2**63, 64, pytest.fail, lambda bits: exact.rational(Fraction(1, 2), bits))
    assert exact.less(2**63 - 1, 64, pytest.fail, lambda bits: exact.rational(Fraction(1, 2), bits))
