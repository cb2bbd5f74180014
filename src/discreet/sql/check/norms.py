"""Derive how far the rows of one person can move the numbers of a statistic, by each norm."""

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
from discreet.algebra.exclusive import satisfiable
from discreet.budget import Neighbors

Vector = tuple[Fraction, ...]
Forms = Sequence[Sequence[int]]  # for each number: the factor of each reading in it
# a value with its place among the factors of a sum, and its range
Variable = tuple[int, Expression, int, int]
ZERO = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Norms:
    """The most that one person can move the numbers of a statistic in all groups, by each norm."""

    l1: int
    l2_squared: int
    linf: int


def select_readings(aggregate: Aggregate, forms: Forms) -> tuple[list[Reading], Forms]:
    """Return the readings that the forms use, and the forms with the factors of these alone."""
    places = range(len(aggregate.readings))
    used = [place for place in places if any(form[place] for form in forms)]
    readings = [aggregate.readings[place] for place in used]
    return readings, [[form[place] for place in used] for form in forms]


def only_adds(aggregate: Aggregate, forms: Forms) -> bool:
    """Return True if no row can make a number smaller."""
    readings, factors = select_readings(aggregate, forms)
    if all(isinstance(reading, Persons | Distinct) for reading in readings):
        return all(factor >= 0 for form in factors for factor in form)
    return all(number >= 0 for vector in extremes(readings, factors) for number in vector)


def extremes(readings: Sequence[Reading], forms: Forms) -> Iterator[Vector]:
    """Yield vectors whose convex hull holds everything that one row can add to the numbers of a
    statistic. The zero vector is one of them.

    Take a value x between lo and hi. In the Bernstein basis of degree d, x^p is a convex
    combination of its control values. So a product of such powers is a convex combination of
    products of control values. Each value may also be NULL, and each condition false.
    """
    yield (ZERO,) * len(forms)
    sums = [each for each in readings if isinstance(each, Sum)]
    # One value in two places, or in two ranges, is two variables: that allows more than can be,
    # never less.
    degrees: dict[Variable, int] = {}
    for variable, factor in (pair for each in sums for pair in _variables(each)):
        degrees[variable] = max(degrees.get(variable, 0), factor.power)
    conditions = [each.where for each in sums if each.where is not None]
    terms = [_nonzero(form) for form in forms]
    for true in satisfiable(conditions):
        # Only the values that are then added up vary: a statistic may have many.
        added = (each for each in sums if each.where is None or each.where in true)
        varied = dict.fromkeys(variable for each in added for variable, _ in _variables(each))
        controls = [[None, *range(degrees[each] + 1)] for each in varied]
        for choice in itertools.product(*controls):
            at = dict(zip(varied, choice, strict=True))
            row = [contribution(each, true, at, degrees) for each in sums]
            yield tuple(_combine(row, each) for each in terms)


def _variables(reading: Sum) -> list[tuple[Variable, Factor]]:
    """Return the factors of a sum, each with the variable that it is a power of."""
    return [
        ((place, each.value, each.lo, each.hi), each) for place, each in enumerate(reading.factors)
    ]


def _nonzero(form: Sequence[int]) -> list[tuple[int, int]]:
    """Return the factors of a form that are not zero, each with its place."""
    return [(place, factor) for place, factor in enumerate(form) if factor]


def _combine(row: Sequence[Fraction], terms: Sequence[tuple[int, int]]) -> Fraction:
    """Return the sum of what a row adds to each reading, times the factors of a form."""
    return sum((factor * row[place] for place, factor in terms), ZERO)


def contribution(
    reading: Sum,
    true: Collection[Expression],
    at: Mapping[Variable, int | None],
    degrees: Mapping[Variable, int],
) -> Fraction:
    """Return what a row adds to a sum, given the conditions that are true in the row and one
    control point for each variable.

    It adds nothing if the sum's own condition is false, or if a factor is NULL.
    """
    if reading.where is not None and reading.where not in true:
        return ZERO
    product = Fraction(1)
    for variable, factor in _variables(reading):
        point = at[variable]
        if point is None:
            return ZERO
        product *= control(factor, point, degrees[variable])
    return product


def control(factor: Factor, place: int, degree: int) -> Fraction:
    """Return the control value of x^power at one place of the Bernstein basis on [lo, hi].

    It is the blossom of x^power: of `degree` arguments `place` are hi and the others lo; take the
    mean of the products of `power` of them, over all choices.
    """
    total = ZERO
    for high in range(factor.power + 1):
        ways = math.comb(place, high) * math.comb(degree - place, factor.power - high)
        total += Fraction(ways * factor.hi**high * factor.lo ** (factor.power - high))
    return total / math.comb(degree, factor.power)


def of_rows(vectors: Sequence[Vector], rows: int, neighbors: Neighbors, *, one_cell: bool) -> Norms:
    """Return the largest norms of what one person with `rows` rows adds; for change_one, of the
    difference between two such persons.

    Each row adds a convex combination of `vectors`.
    """
    step = math.lcm(*(number.denominator for each in vectors for number in each))
    # each vector once, in whole steps, without zeros
    moves = [_in_steps(each, step) for each in dict.fromkeys(vectors)]
    norms = list(map(_norms, moves))
    if neighbors == "change_one":
        most_l1 = max(l1 for l1, _, _ in norms)
        most_l2_squared = max(l2_squared for _, l2_squared, _ in norms)
        for one, other in itertools.combinations(moves, 2):
            norms.append(_norms(_difference(one, other)))
        if not one_cell:  # the first person leaves one group, the second enters another
            norms.append((2 * most_l1, 2 * most_l2_squared, 0))
    l1, l2_squared, linf = (max(each) for each in zip(*norms, strict=True))
    return Norms(
        l1=math.ceil(Fraction(rows * l1, step)),
        l2_squared=math.ceil(Fraction(rows**2 * l2_squared, step**2)),
        linf=math.ceil(Fraction(rows * linf, step)),
    )


def _in_steps(vector: Vector, step: int) -> dict[int, int]:
    """Return the numbers of a vector that are not zero, in units of 1 / step, by their places."""
    return {place: int(number * step) for place, number in enumerate(vector) if number}


def _norms(move: Mapping[int, int]) -> tuple[int, int, int]:
    """Return l1, l2 squared and linf of a vector."""
    sizes = [abs(number) for number in move.values()]
    squares = [size**2 for size in sizes]
    return sum(sizes), sum(squares), max(sizes, default=0)


def _difference(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    places = one.keys() | other.keys()
    return {place: one.get(place, 0) - other.get(place, 0) for place in places}
