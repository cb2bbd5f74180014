"""A value: an expression over one row, and the public set that its results lie in, by interval
arithmetic.

A `Value` is an expression for the engine (our own, never the analyst's) together with its domain.
Numbers are integers in the engine: `units` of a public `step`, so that sums are exact and
order-free. Categories are integer codes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Literal

from discreet.algebra import Careful, Cast, Column, Constant, Exists, Expression, Fold, Over, walk
from discreet.policy.domain import MOST_LETTERS
from discreet.sql.text.postgres import Kind

Grain = Literal["day", "week", "month", "quarter", "year"]
MOST_STEP = 2**110  # of the numbers that a step is the quotient of: they stand in the engine's SQL


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """units * step with lo <= units <= hi; the engine holds the integer `units`."""

    step: Fraction
    lo: int
    hi: int

    def __post_init__(self) -> None:
        # Privacy: bounds and sensitivities of a range without a value would be nonsense; what made
        # it is refused.
        if self.lo > self.hi:
            raise ValueError(f"the range ends ({self.hi}) before it begins ({self.lo})")
        # Privacy: a factor that no number of the engine holds would fail for those people alone who
        # have a row.
        if max(self.step.numerator, self.step.denominator) >= MOST_STEP:
            raise ValueError("the step is too large or too small")

    def at(self, units: int) -> Fraction:
        return units * self.step

    @property
    def size(self) -> int:
        return self.hi - self.lo + 1

    @property
    def largest(self) -> int:
        return max(abs(self.lo), abs(self.hi))


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """One of finitely many public values; the engine holds its position in `values`."""

    values: tuple[str | int, ...]

    @property
    def size(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """TRUE, FALSE or NULL; a BOOLEAN in the engine."""

    size = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A date between two public ones, at the start of its `grain`; a DATE in the engine."""

    lo: date
    hi: date
    grain: Grain = "day"
    stamp: bool = False  # shown as a timestamp at midnight, as date_trunc does

    @property
    def size(self) -> int:
        return self.index(self.hi) + 1

    def index(self, day: date) -> int:
        """Return the position of a date in this domain, counted in grains from `lo`."""
        match self.grain:
            case "day":
                return (day - self.lo).days
            case "week":
                return (day - self.lo).days // 7
            case "month":
                return (day.year - self.lo.year) * 12 + day.month - self.lo.month
            case "quarter":
                return ((day.year - self.lo.year) * 12 + day.month - self.lo.month) // 3
            case _:  # year
                return day.year - self.lo.year

    def at(self, index: int) -> date:
        """Return the date at a position: the inverse of `index` on grain starts."""
        match self.grain:
            case "day":
                return self.lo + timedelta(days=index)
            case "week":
                return self.lo + timedelta(weeks=index)
            case _:
                months = index * {"month": 1, "quarter": 3, "year": 12}[self.grain]
                year, month = divmod(self.lo.year * 12 + self.lo.month - 1 + months, 12)
                return date(year, month + 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A timestamp between two public ones on a grid of `step` seconds; a TIMESTAMP in the
    engine.
    """

    lo: datetime
    hi: datetime
    step: Fraction

    @property
    def size(self) -> int:
        return math.floor(seconds_between(self.lo, self.hi) / self.step) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Any text of at most so many letters: its values are not public. A VARCHAR in the engine."""

    letters: int = MOST_LETTERS
    size = None


def few_of(
    domain: Number | Category | Flag | Day | Moment | Text,
) -> Number | Category | Flag | Day | Moment | Text:
    """Return the first values of a domain: something of its kind, where the kind is all that
    matters.
    """
    match domain:
        case Number():
            return Number(step=domain.step, lo=domain.lo, hi=min(domain.hi, domain.lo + 1))
        case Category(
            values=values
        ):  # the first, and the one that can least be taken for a number or a truth value
            other = max(
                values,
                key=lambda value: (not str(value).replace(".", "").isdigit(), len(str(value))),
            )
            return Category(values=tuple(dict.fromkeys((*values[:2], other))))
        case Day():
            return Day(
                lo=domain.lo,
                hi=domain.at(min(domain.size - 1, 1)),
                grain=domain.grain,
                stamp=domain.stamp,
            )
        case Moment():
            hi = domain.lo + min(
                domain.hi - domain.lo, timedelta(microseconds=int(domain.step * 1_000_000))
            )
            return Moment(lo=domain.lo, hi=hi, step=domain.step)
    return domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """An identifier: it may be counted or matched, never computed with.

    `owner` marks the one that names the unit; equal `link`s mark keys that lead to the owner
    through the same table.
    """

    owner: bool
    link: str | None = None
    size = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """The literal NULL."""

    size = 0


Domain = Number | Category | Flag | Day | Moment | Text | Opaque | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A row-wise expression: what the engine computes, and what is publicly known of the result.

    `nullable` says that NULL is a public possibility, hence a group of its own; every value may be
    NULL in the data. `constant` marks a literal. `numbering` marks a row number within each
    person's rows: 1, 2, 3, ... `kind` is the type of a column in Postgres, as far as its meaning
    depends on that.
    """

    expression: Expression
    domain: Domain
    nullable: bool = False
    constant: bool = False
    numbering: bool = False
    kind: Kind | None = None

    @property
    def identity(self) -> Identity:
        """Return the pair that tells it from other values: expression and domain.

        x and 2 * x are one expression in units of other steps, as are codes of other labels.
        """
        return self.expression, self.domain


Identity = tuple[Expression, Domain]
NULL = Constant(None)
NO_NUMBER, NO_FLAG = Cast(NULL, "BIGINT"), Cast(NULL, "BOOLEAN")


def number(value: Fraction | int) -> Value:
    """Return a constant: written on the decimal grid that holds it, so that 0.10 and 0.1 are
    one.
    """
    exact = Fraction(value)
    units = exact.numerator
    domain = Number(step=Fraction(1, exact.denominator), lo=units, hi=units)
    return Value(expression=Constant(units), domain=domain, constant=True)


def widen(expression: Expression, bound: int) -> Cast:
    """Cast an integer to a type of the engine in which results up to `bound` in size cannot
    overflow.
    """
    return Cast(expression, "BIGINT" if bound < 2**62 else "HUGEINT")


def careful(expression: Expression) -> Expression:
    """Return the expression with NULL where it would fail on a row. Windows and EXISTS look at
    several rows, and cannot be tried.
    """
    if isinstance(expression, Column | Constant | Careful):
        return expression
    several = any(isinstance(part, Over | Exists | Fold) for part in walk(expression))
    return expression if several else Careful(expression)


def seconds_between(start: datetime, end: datetime) -> Fraction:
    gap = end - start
    return Fraction(
        gap.days * 86_400_000_000 + gap.seconds * 1_000_000 + gap.microseconds, 1_000_000
    )


def grain_start(day: date, grain: Grain) -> date:
    match grain:
        case "day":
            return day
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return date(day.year, (day.month - 1) // 3 * 3 + 1, 1)
        case _:  # year
            return date(day.year, 1, 1)
