"""Build exact sums of powers and products, in enough bits to hold them."""

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

COARSE_STEPS = 1 << 15  # the most steps of a range whose fourth powers are added up


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRead:
    """The rows that are aggregated: the most that one person has, and whether the snapshot keeps an
    expression in a range.
    """

    most: int
    held: Callable[[Expression, int, int], bool]

    def total(
        self, value: Value, power: int, where: Expression | None, node: exp.Expression
    ) -> Sum:
        """Return the exact sum of a power of a number. The power 0 counts the rows in which it is
        not NULL.
        """
        domain = grid(value)
        check_size(domain.lo, domain.largest**power, node)
        factor = self.factor(value.expression, domain.lo, domain.hi, power)
        return self.product((factor,), where, node)

    def present(self, value: Value, where: Expression | None) -> Sum:
        """Return a reading that counts the rows in which a value of any kind is not NULL."""
        return Sum((Factor(value.expression, 0, 0, 0, False),), where)

    def factor(self, value: Expression, lo: int, hi: int, power: int) -> Factor:
        """Return a power of a value as a factor. The query clamps the value unless the snapshot
        keeps it in its range.
        """
        return Factor(value, lo, hi, power, clamp=not self.held(value, lo, hi))

    def product(
        self, factors: tuple[Factor, ...], where: Expression | None, node: exp.Expression
    ) -> Sum:
        """Return a sum of products, in enough bits for every whole or partial sum of fewer than 2^36
        people.

        Privacy
            S21. A sum that wraps around moves by 2^64 when one person arrives; a sum that fails
            tells that somebody arrived. There are fewer than 2^36 people with at most `most` rows
            each (Relation checks this wherever rows are made). So no partial sum is beyond 2^36 *
            most * largest, in whatever order the engine adds. Sums of 128 bits come back as
            decimals of 38 digits. If 64 bits are enough, the engine adds twice as fast. It would
            choose them itself only after it looked at the range of the data, which is forbidden.
        """
        powers = [max(abs(each.lo), abs(each.hi)) ** each.power for each in factors]
        largest = math.prod(powers)
        reach = largest * max(self.most, 1) * MOST_PEOPLE
        if reach >= 10**38:
            raise reject(
                node,
                f"{show(node)} adds up numbers that are too large for {self.most} rows a person.",
                "Scale them down, CLAMP them, or aggregate per person before joining.",
            )
        return Sum(factors, where, 64 if reach < 2**63 else 128)


def coarse(value: Value) -> Value:
    """Return a number as its distance from the low end of its range, in at most `COARSE_STEPS`
    steps.
    """
    domain = grid(value)
    span = max(domain.hi - domain.lo, 1)
    ratio = -(-span // COARSE_STEPS)
    distance: Expression = widen(value.expression, 2 * domain.largest + ratio) - domain.lo
    steps = span
    if ratio > 1:  # to the nearest of the coarser steps
        distance = (2 * distance + ratio) // (2 * ratio)
        steps = (2 * span + ratio) // (2 * ratio)
    return Value(
        expression=careful(distance), domain=Number(step=domain.step * ratio, lo=0, hi=steps)
    )


def bernstein(lo: int, width: int, degree: int) -> list[dict[int, int]]:
    """Return degree + 1 polynomials in x, each as {power: factor}. They are not negative on [lo, lo +
    width], and their sum is width ** degree everywhere.

    The i-th is binomial(degree, i) (x - lo)^i (lo + width - x)^(degree - i).
    """
    polynomials = []
    for place in range(degree + 1):
        factors = [math.comb(degree, place)]
        for _ in range(place):
            factors = _times(factors, -lo, 1)
        for _ in range(degree - place):
            factors = _times(factors, lo + width, -1)
        polynomials.append(dict(enumerate(factors)))
    return polynomials


def _times(factors: list[int], constant: int, slope: int) -> list[int]:
    """Return a polynomial times (constant + slope * x)."""
    same_power = [*factors, 0]
    next_power = [0, *factors]
    pairs = zip(same_power, next_power, strict=True)
    return [constant * same + slope * lower for same, lower in pairs]


def few_steps(value: Value) -> Value:
    """Return the same number if its third and fourth powers are small enough; otherwise the number
    in `coarse` steps. Skewness and kurtosis hardly differ.
    """
    return value if grid(value).largest <= COARSE_STEPS else coarse(value)
