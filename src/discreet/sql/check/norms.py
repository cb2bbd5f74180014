"""Derive how far one row, and so many rows, can move the numbers of a statistic, by each norm."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.algebra import (
    Aggregate,
    Distinct,
    Expression,
    Factor,
    Persons,
    Reading,
    Sum,
)
from discreet.budget import Neighbors
from discreet.errors import Unproved
from discreet.sql.check.exclusive import satisfiable

Vector = tuple[Fraction, ...]
Forms = Sequence[Sequence[int]]  # combinations of readings, by their factors
Variable = tuple[int, Expression]  # a value, and its place among the factors of a sum
ZERO = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Norms:
    """The distance by which one person can move the numbers of a statistic in all groups together,
    by each norm.
    """

    l1: int
    l2_squared: int
    linf: int


def select_readings(aggregate: Aggregate, forms: Forms) -> tuple[list[Reading], Forms]:
    """Return the readings that are in the forms, and the forms as factors of these alone."""
    places = range(len(aggregate.readings))
    places_used = [place for place in places if any(form[place] for form in forms)]
    readings = [aggregate.readings[place] for place in places_used]
    return readings, [[form[place] for place in places_used] for form in forms]


def only_adds(aggregate: Aggregate, forms: Forms) -> bool:
    """Return True if no row makes a number smaller."""
    readings, factors = select_readings(aggregate, forms)
    if all(isinstance(reading, Persons | Distinct) for reading in readings):
        return all(factor >= 0 for form in factors for factor in form)
    return all(number >= 0 for vector in extremes(readings, factors) for number in vector)


def extremes(readings: Sequence[Reading], forms: Forms) -> Iterator[Vector]:
    """Yield vectors whose convex hull holds whatever one row can add to the numbers of a statistic;
    zero is one of them.

    A value x of [lo, hi] to the power p is, in the Bernstein basis of degree d, a convex
    combination of its control values; a product of such powers one of their products. Each value
    may be NULL, each condition false.
    """
    yield (ZERO,) * len(forms)
    sums = [each for each in readings if isinstance(each, Sum)]
    factors = [(place, factor) for each in sums for place, factor in enumerate(each.factors)]
    degrees: dict[Variable, int] = {}  # two places of one value are two variables: more than can be
    for place, factor in factors:
        degrees[place, factor.value] = max(degrees.get((place, factor.value), 0), factor.power)
    # Where a value is beyond its range it is NULL, in all sums of the statistic or in none.
    ranges = {(place, each.value, each.lo, each.hi, each.clamp) for place, each in factors}
    if len(ranges) > len(degrees):
        raise Unproved("a value has two ranges")
    controls = [[None, *range(degree + 1)] for degree in degrees.values()]
    conditions = [each.where for each in sums if each.where is not None]
    combined = [[(place, each) for place, each in enumerate(form) if each] for form in forms]
    for true in satisfiable(conditions):
        for chosen in itertools.product(*controls):
            at = dict(zip(degrees, chosen, strict=True))
            row = [contribution(each, true, at, degrees) for each in sums]
            yield tuple(
                sum((factor * row[place] for place, factor in each), ZERO) for each in combined
            )


def contribution(
    reading: Sum,
    true: Collection[Expression],
    at: Mapping[Variable, int | None],
    degrees: Mapping[Variable, int],
) -> Fraction:
    """Return what a row adds to a sum, given the conditions that are true of it and a choice of
    control points; nothing where the sum's own is false or a factor is NULL.
    """
    if reading.where is not None and reading.where not in true:
        return ZERO
    total = Fraction(1)
    for place, factor in enumerate(reading.factors):
        variable = (place, factor.value)
        chosen = at[variable]
        if chosen is None:
            return ZERO
        total *= control(factor, chosen, degrees[variable])
    return total


def control(factor: Factor, place: int, degree: int) -> Fraction:
    """Return the control value of x^power at a place of the Bernstein basis of a degree on [lo, hi].

    Its blossom: the mean over all choices of `power` of the basis' `degree` arguments, of which
    `place` are hi.
    """
    total = ZERO
    for high in range(factor.power + 1):
        ways = math.comb(place, high) * math.comb(degree - place, factor.power - high)
        total += Fraction(ways * factor.hi**high * factor.lo ** (factor.power - high))
    return total / math.comb(degree, factor.power)


def of_rows(vectors: Sequence[Vector], rows: int, neighbors: Neighbors, *, one_cell: bool) -> Norms:
    """Return the largest norms of what `rows` rows add; for change_one, of the difference of two
    such persons.
    """
    step = math.lcm(*(number.denominator for each in vectors for number in each))
    single = [
        {place: int(number * step) for place, number in enumerate(each) if number}
        for each in dict.fromkeys(vectors)
    ]
    found: list[tuple[int, ...]] = list(map(_sizes, single))
    if neighbors == "change_one":
        most = [2 * max(l1 for l1, _, _ in found), 2 * max(l2 for _, l2, _ in found)]
        found += (_sizes(_less(*pair)) for pair in itertools.combinations(single, 2))
        if not one_cell:  # out of one group and into another
            found.append((*most, 0))
    l1, l2_squared, linf = (max(sizes) for sizes in zip(*found, strict=True))
    return Norms(
        l1=math.ceil(Fraction(rows * l1, step)),
        l2_squared=math.ceil(Fraction(rows**2 * l2_squared, step**2)),
        linf=math.ceil(Fraction(rows * linf, step)),
    )


def _sizes(move: Mapping[int, int]) -> tuple[int, int, int]:
    """Return l1, l2 squared and linf of a vector, of which only what is not zero is there."""
    each = [abs(number) for number in move.values()]
    return sum(each), sum(number**2 for number in each), max(each, default=0)


def _less(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    """Return the difference of two vectors."""
    return {place: one.get(place, 0) - other.get(place, 0) for place in one.keys() | other.keys()}
