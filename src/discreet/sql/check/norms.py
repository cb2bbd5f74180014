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
    """How much one person can change the numbers of a statistic in all groups together, by each
    norm.
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
    for true in satisfiable(conditions):
        for chosen in itertools.product(*controls):
            at = dict(zip(degrees, chosen, strict=True))
            row = [contribution(each, true, at, degrees) for each in sums]
            yield tuple(combine(form, row) for form in forms)


def combine(form: Sequence[int], row: Sequence[Fraction]) -> Fraction:
    return sum((factor * read for factor, read in zip(form, row, strict=True)), ZERO)


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
    moves: Sequence[Vector] = vectors
    if neighbors == "change_one":
        pairs = list(itertools.product(vectors, repeat=2))
        moves = [tuple(a - b for a, b in zip(one, other, strict=True)) for one, other in pairs]
        if not one_cell:  # out of one group and into another
            moves += [(*one, *other) for one, other in pairs]
    l1 = max(sum(map(abs, move), ZERO) for move in moves)
    l2_squared = max(sum((number**2 for number in move), ZERO) for move in moves)
    linf = max(abs(number) for move in moves for number in move)
    return Norms(
        l1=math.ceil(rows * l1),
        l2_squared=math.ceil(rows**2 * l2_squared),
        linf=math.ceil(rows * linf),
    )
