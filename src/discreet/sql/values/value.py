"""A value: an expression over one row, with its domain, the public set that holds every result.

Interval arithmetic computes the domain. The expression is our own, never the analyst's. The engine
holds numbers as integers, `units` of a public `step`: so sums are exact in any order. It holds
categories as integer codes.
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
# The most for a step's numerator and denominator: both are written into the engine's SQL.
MOST_STEP = 2**110


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """units * step with lo <= units <= hi; the engine holds the integer `units`."""

    step: Fraction
    lo: int
    hi: int

    def __post_init__(self) -> None:
        # Privacy: an empty range would have wrong bounds and sensitivities, so refuse it.
        if self.lo > self.hi:
            raise ValueError(f"the range ends ({self.hi}) before it begins ({self.lo})")
        # Privacy: a factor that is too large for the engine's numbers would fail only if somebody
        # has a row, and the failure would tell it.
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
    """Any text of at most `letters` letters; its values are not public. A VARCHAR in the engine."""

    letters: int = MOST_LETTERS
    size = None


def few_of(
    domain: Number | Category | Flag | Day | Moment | Text,
) -> Number | Category | Flag | Day | Moment | Text:
    """Return a domain of the same kind with few values, for uses in which only the kind counts."""
    match domain:
        case Number():
            return Number(step=domain.step, lo=domain.lo, hi=min(domain.hi, domain.lo + 1))
        case Category(values=values):
            other = max(values, key=_unlike_number)
            return Category(values=tuple(dict.fromkeys((*values[:2], other))))
        case Day():
            return Day(
                lo=domain.lo,
                hi=domain.at(min(domain.size - 1, 1)),
                grain=domain.grain,
                stamp=domain.stamp,
            )
        case Moment():
            step = timedelta(microseconds=int(domain.step * 1_000_000))
            hi = domain.lo + min(domain.hi - domain.lo, step)
            return Moment(lo=domain.lo, hi=hi, step=domain.step)
    return domain


def _unlike_number(value: str | int) -> tuple[bool, int]:
    """Return a rank: the highest is the text that nobody can read as a number or a truth value."""
    text = str(value)
    return not text.replace(".", "").isdigit(), len(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """An identifier: a question may count it or match it, never compute with it.

    `owner` marks the identifier that names the unit. Keys with equal `link`s lead to the owner
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
    """A row-wise expression for the engine, with the public facts about its results.

    `nullable` says that NULL is publicly possible, so that it gets a group of its own. In the data
    any value may be NULL. `constant` marks a literal. `numbering` marks a row number within each
    person's rows: 1, 2, 3, ... `kind` is a column's type in Postgres, if its meaning depends on it.
    """

    expression: Expression
    domain: Domain
    nullable: bool = False
    constant: bool = False
    numbering: bool = False
    kind: Kind | None = None

    @property
    def identity(self) -> Identity:
        """Return the expression and the domain: values with the same pair are the same.

        The expression alone is not enough: x and 2 * x are one expression with different steps, and
        one code may stand for different labels.
        """
        return self.expression, self.domain


Identity = tuple[Expression, Domain]
NULL = Constant(None)
NO_NUMBER = Cast(NULL, "BIGINT")
NO_FLAG = Cast(NULL, "BOOLEAN")


def number(value: Fraction | int) -> Value:
    """Return a constant on the coarsest grid that holds it, so that 0.10 and 0.1 are the same."""
    exact = Fraction(value)
    units = exact.numerator
    domain = Number(step=Fraction(1, exact.denominator), lo=units, hi=units)
    return Value(expression=Constant(units), domain=domain, constant=True)


def widen(expression: Expression, bound: int) -> Cast:
    """Cast an integer to an engine type in which a result of size up to `bound` cannot overflow."""
    kind = "BIGINT" if bound < 2**62 else "HUGEINT"
    return Cast(expression, kind)


def careful(expression: Expression) -> Expression:
    """Return the expression that gives NULL where the original would fail on a row.

    Windows and EXISTS look at several rows; the engine has no TRY for them, so they stay.
    """
    if isinstance(expression, Column | Constant | Careful):
        return expression
    several = any(isinstance(part, Over | Exists | Fold) for part in walk(expression))
    return expression if several else Careful(expression)


def seconds_between(start: datetime, end: datetime) -> Fraction:
    gap = end - start
    microseconds = gap.days * 86_400_000_000 + gap.seconds * 1_000_000 + gap.microseconds
    return Fraction(microseconds, 1_000_000)


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
