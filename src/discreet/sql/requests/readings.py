"""Build exact sums of powers and products, with as many bits as hold them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from discreet.algebra import Expression, Factor, Sum
from discreet.policy.domain import MOST_PEOPLE
from discreet.sql.text.parse import reject, show
from discreet.sql.values.numbers import check_size, grid
from discreet.sql.values.value import Number, Value, careful, widen

COARSE_STEPS = 1 << 15  # of a range, where fourth powers are added up


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRead:
    """The rows that are aggregated: the most that one person has, and which expressions a snapshot
    holds to their range.
    """

    most: int
    held: Callable[[Expression, int, int], bool]

    def total(
        self, value: Value, power: int, where: Expression | None, node: exp.Expression
    ) -> Sum:
        """Return the exact sum of a power of a number; of the power 0, how many rows have it."""
        domain = grid(value)
        check_size(domain.lo, domain.largest**power, node)
        return self.product(
            (self.factor(value.expression, domain.lo, domain.hi, power),), where, node
        )

    def present(self, value: Value, where: Expression | None) -> Sum:
        """Return a reading that counts the rows with a value, whatever kind it is."""
        return Sum((Factor(value.expression, 0, 0, 0, False),), where)

    def factor(self, value: Expression, lo: int, hi: int, power: int) -> Factor:
        return Factor(value, lo, hi, power, clamp=not self.held(value, lo, hi))

    def product(
        self, factors: tuple[Factor, ...], where: Expression | None, node: exp.Expression
    ) -> Sum:
        """Return a sum of products, in bits that hold every sum, whole or partial, of fewer than
        2^36 people.

        Privacy
            S21. A sum that wraps around moves by 2^64 when one person arrives, and one that fails
            tells who did. Fewer than 2^36 people have at most `most` rows each (Relation holds
            every way to make rows to it), so no partial sum is beyond 2^36 * most * largest, in
            whatever order the engine adds; sums of 128 bits come back as decimals of 38 digits.
            Where 64 bits do, the engine adds up twice as fast in them; it would choose them itself
            only after a look at the data's range, which it may not take.
        """
        largest = math.prod(max(abs(each.lo), abs(each.hi)) ** each.power for each in factors)
        reach = largest * max(self.most, 1) * MOST_PEOPLE
        if reach >= 10**38:
            raise reject(
                node,
                f"{show(node)} adds up numbers that are too large for {self.most} rows a person.",
                "Scale them down, CLAMP them, or aggregate per person before joining.",
            )
        return Sum(factors, where, 64 if reach < 2**63 else 128)


def coarse(value: Value) -> Value:
    """Return a number counted from the low end of its range in at most `COARSE_STEPS` steps."""
    domain = grid(value)
    span = max(domain.hi - domain.lo, 1)
    ratio = -(-span // COARSE_STEPS)
    shifted = widen(value.expression, 2 * domain.largest + ratio) - domain.lo
    counted = shifted if ratio == 1 else (2 * shifted + ratio) // (2 * ratio)
    steps = (2 * span + ratio) // (2 * ratio) if ratio > 1 else span
    return Value(
        expression=careful(counted), domain=Number(step=domain.step * ratio, lo=0, hi=steps)
    )


def bernstein(lo: int, width: int, degree: int) -> list[dict[int, int]]:
    """Return polynomials in x, {power: factor}, that are not negative on [lo, lo + width] and
    together make width ** degree.

    The i-th is binomial(degree, i) (x - lo)^i (lo + width - x)^(degree - i).
    """
    found = []
    for place in range(degree + 1):
        factors = [math.comb(degree, place)]
        for _ in range(place):
            factors = _times(factors, -lo, 1)
        for _ in range(degree - place):
            factors = _times(factors, lo + width, -1)
        found.append(dict(enumerate(factors)))
    return found


def _times(factors: list[int], constant: int, slope: int) -> list[int]:
    """Return a polynomial, times constant + slope * x."""
    return [
        constant * one + slope * other
        for one, other in zip([*factors, 0], [0, *factors], strict=True)
    ]


def few_steps(value: Value) -> Value:
    """Return the same number, where its third and fourth powers are small; else `coarse`: what is
    asked of it is the same.
    """
    return value if grid(value).largest <= COARSE_STEPS else coarse(value)
