"""How far one row, and so many rows, can move the numbers of a statistic, by each norm."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
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
from discreet.sql.check.exclusive import together

Vector = tuple[Fraction, ...]
Forms = Sequence[Sequence[int]]  # combinations of readings, by their factors
Variable = tuple[int, Expression]  # a value, and its place among the factors of a sum


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """How much one person can change the numbers of a statistic in all groups together, by each
    norm.
    """

    l1: int
    l2_squared: int
    linf: int


def used(aggregate: Aggregate, forms: Forms) -> tuple[list[Reading], Forms]:
    """Return the readings that are in the forms, and the forms as factors of these alone."""
    places = [
        place for place in range(len(aggregate.readings)) if any(form[place] for form in forms)
    ]
    readings = [aggregate.readings[place] for place in places]
    return readings, [[form[place] for place in places] for form in forms]


def only_adds(aggregate: Aggregate, forms: Forms) -> bool:
    """Return True if no row makes a number smaller."""
    readings, factors = used(aggregate, forms)
    if all(isinstance(each, Persons | Distinct) for each in readings):
        return all(factor >= 0 for form in factors for factor in form)
    return all(x >= 0 for vector in extremes(readings, factors) for x in vector)


def extremes(readings: Sequence[Reading], forms: Forms) -> Iterator[Vector]:
    """Vectors whose convex hull holds whatever one row can add to the numbers of a statistic; zero
    is one of them.

    A value x of [lo, hi] to the power p is, in the Bernstein basis of degree d, a convex
    combination of its control values; a product of such powers one of their products. Each value
    may be NULL, each condition false.
    """
    sums = [each for each in readings if isinstance(each, Sum)]
    yield (Fraction(0),) * len(forms)
    factors = [(place, factor) for each in sums for place, factor in enumerate(each.factors)]
    degrees: dict[Variable, int] = {}  # two places of one value are two variables: more than can be
    for place, factor in factors:
        degrees[place, factor.value] = max(degrees.get((place, factor.value), 0), factor.power)
    # Where a value is beyond its range it is NULL, in all sums of the statistic or in none.
    if len({(place, each.value, each.lo, each.hi, each.clamp) for place, each in factors}) > len(
        degrees
    ):
        raise Unproved("a value has two ranges")
    places = [[None, *range(degree + 1)] for degree in degrees.values()]
    for holds in together([each.where for each in sums if each.where is not None]):
        for chosen in itertools.product(*places):
            at = dict(zip(degrees, chosen, strict=True))
            met = [each.where is None or each.where in holds for each in sums]
            read = [
                contribution(each, at, degrees) if now else Fraction(0)
                for each, now in zip(sums, met, strict=True)
            ]
            yield tuple(
                sum((f * x for f, x in zip(form, read, strict=True)), Fraction(0)) for form in forms
            )


def contribution(
    reading: Sum, at: Mapping[Variable, int | None], degrees: Mapping[Variable, int]
) -> Fraction:
    """Return what a row adds to a sum at one choice of control points; nothing where a factor is
    NULL.
    """
    total = Fraction(1)
    for place, factor in enumerate(reading.factors):
        variable = (place, factor.value)
        chosen = at[variable]
        if chosen is None:
            return Fraction(0)
        total *= control(factor, chosen, degrees[variable])
    return total


def control(factor: Factor, place: int, degree: int) -> Fraction:
    """The control value of x^power at a place of the Bernstein basis of a degree on [lo, hi].

    Its blossom: the mean over all choices of `power` of the basis' `degree` arguments, of which
    `place` are hi.
    """
    total = Fraction(0)
    for high in range(factor.power + 1):
        ways = math.comb(place, high) * math.comb(degree - place, factor.power - high)
        total += Fraction(ways * factor.hi**high * factor.lo ** (factor.power - high))
    return total / math.comb(degree, factor.power)


def of_rows(vectors: Sequence[Vector], rows: int, neighbors: Neighbors, *, one_cell: bool) -> Bound:
    """The largest norms of what `rows` rows add; for change_one, of the difference of two such
    persons.
    """
    pairs: list[tuple[Vector, Vector]] = [(each, (Fraction(0),) * len(each)) for each in vectors]
    apart = neighbors == "change_one" and not one_cell
    if neighbors == "change_one":
        pairs = [(one, other) for one in vectors for other in vectors]
    l1 = l2_squared = linf = Fraction(0)
    for one, other in pairs:
        moved = [abs(a - b) for a, b in zip(one, other, strict=True)]
        l1, linf = max(l1, sum(moved, Fraction(0))), max(linf, *moved)
        l2_squared = max(l2_squared, sum((each**2 for each in moved), Fraction(0)))
        if apart:  # out of one group and into another
            both = [abs(each) for each in (*one, *other)]
            l1, linf = max(l1, sum(both, Fraction(0))), max(linf, *both)
            l2_squared = max(l2_squared, sum((each**2 for each in both), Fraction(0)))
    return Bound(
        l1=math.ceil(rows * l1),
        l2_squared=math.ceil(rows**2 * l2_squared),
        linf=math.ceil(rows * linf),
    )
