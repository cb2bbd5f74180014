"""The domains of columns, as everybody may know them: ranges on a grid, lists of values, dates,
text.

Domains come from the policy and never from the data (S1). A snapshot holds every value already
moved into its domain: numbers as whole steps of the grid, listed values as their place in the list.
`first` and `last` are the ends of a numeric domain in steps, so that value = steps * step.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import ClassVar

# Steps are summed in 128-bit integers and read from doubles: 2**62 leaves room for both without an
# overflow.
MOST_STEPS = 2**62
# of a stored text, where the policy does not say otherwise; of an identifier; of an owner
LETTERS = 1_000
MOST_LETTERS = 10_000  # that a policy may allow a text to have
MOST_ROWS = 1_000_000  # that one person may have, in a table and whatever is made of it (S21)
MOST_PEOPLE = 2**36  # docs/promise.md assumes fewer
MICROSECOND = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Integers:
    """Whole numbers from lo to hi, both included."""

    lo: int
    hi: int
    yaml: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        if self.lo > self.hi:
            raise ValueError(f"the range ends ({self.hi}) before it begins ({self.lo})")
        _check_steps(self.lo, self.hi)

    @property
    def step(self) -> Fraction:
        return Fraction(1)

    @property
    def first(self) -> int:
        return self.lo

    @property
    def last(self) -> int:
        return self.hi

    @property
    def size(self) -> int:
        return self.hi - self.lo + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Decimals:
    """Multiples of step from lo to hi, both included: cents, tenths of a degree, thousands."""

    lo: Fraction
    hi: Fraction
    step: Fraction
    yaml: ClassVar[str] = "decimal"

    def __post_init__(self) -> None:
        if not Fraction(1, 10**30) <= self.step <= 10**30:
            raise ValueError("the step must be between 1e-30 and 1e30")
        if self.lo > self.hi:
            raise ValueError(f"the range ends ({self.hi}) before it begins ({self.lo})")
        for end in (self.lo, self.hi):
            if end % self.step:
                raise ValueError(
                    f"{write_number(end)} is not a multiple of the step {write_number(self.step)}"
                )
        _check_steps(self.first, self.last)

    @property
    def first(self) -> int:
        return int(self.lo / self.step)

    @property
    def last(self) -> int:
        return int(self.hi / self.step)

    @property
    def size(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Categories:
    """The listed values, all strings or all integers, in the order the curator gave them."""

    values: tuple[str, ...] | tuple[int, ...]
    yaml: ClassVar[str] = "values"

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("the list of values is empty")
        if len({type(value) for value in self.values}) > 1:
            raise ValueError("the list mixes numbers and strings")
        if len(set(self.values)) != len(self.values):
            raise ValueError("a value is listed twice")

    @property
    def size(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Booleans:
    """True or false."""

    yaml: ClassVar[str] = "boolean"

    @property
    def size(self) -> int:
        return 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """Days from lo to hi, both included."""

    lo: date
    hi: date
    yaml: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        if self.lo > self.hi:
            raise ValueError(f"the range ends ({self.hi}) before it begins ({self.lo})")

    @property
    def size(self) -> int:
        return (self.hi - self.lo).days + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Timestamps:
    """Moments lo, lo + step, lo + 2 step, ... up to hi; the step is in seconds. There are no time
    zones: UTC.
    """

    lo: datetime
    hi: datetime
    step: Fraction
    yaml: ClassVar[str] = "timestamp"

    def __post_init__(self) -> None:
        if self.step <= 0 or self.step % MICROSECOND:
            raise ValueError("the step must be a whole number of microseconds")
        if self.lo > self.hi:
            raise ValueError(f"the range ends ({self.hi}) before it begins ({self.lo})")
        if self._span % self.step_microseconds:
            raise ValueError(f"{self.hi} is not a whole number of steps after {self.lo}")

    @property
    def step_microseconds(self) -> int:
        return int(self.step / MICROSECOND)

    @property
    def _span(self) -> int:
        return (self.hi - self.lo) // timedelta(microseconds=1)

    @property
    def size(self) -> int:
        return self._span // self.step_microseconds + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Strings that are not publicly known: as a group key they pass a threshold (S5).

    They have at most so many letters (code points, of at most 4 bytes each): what one person can
    make the engine do is bounded by the policy (S21).
    """

    letters: int = LETTERS
    yaml: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        if not 1 <= self.letters <= MOST_LETTERS:
            raise ValueError(f"a text has 1 to {MOST_LETTERS:,} letters")

    @property
    def size(self) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier:
    """A name or number that points at one person or one row: it may be joined on, never asked
    for.
    """

    yaml: ClassVar[str] = "identifier"

    @property
    def size(self) -> None:
        return None


Domain = Integers | Decimals | Categories | Booleans | Dates | Timestamps | Texts | Identifier
DOMAINS: tuple[type[Domain], ...] = (
    Integers,
    Decimals,
    Categories,
    Booleans,
    Dates,
    Timestamps,
    Texts,
    Identifier,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column as the policy declares it. Any value may be NULL; `nullable` says that NULL is
    meant, so it is a key.

    `format` is how its days or moments are written in the source, where not as ISO 8601 says.
    `cells` are the places in its domain at which its cells begin for synthetic data, and its end,
    where the policy says so.
    """

    name: str
    domain: Domain
    nullable: bool = False
    format: str | None = None
    cells: tuple[int, ...] = ()


def write_number(value: Fraction) -> str:
    """Write a rational the shortest exact way: 0.01 where the decimals end, 1/3 where they do
    not.
    """
    twos = fives = 0
    rest = value.denominator
    while rest % 2 == 0:
        rest = rest // 2
        twos = twos + 1
    while rest % 5 == 0:
        rest = rest // 5
        fives = fives + 1
    if rest != 1:
        return str(value)
    digits = max(twos, fives)
    whole, part = divmod(abs(value.numerator) * 10**digits // value.denominator, 10**digits)
    return ("-" if value < 0 else "") + (f"{whole}.{part:0{digits}}" if digits else str(whole))


def _check_steps(first: int, last: int) -> None:
    if max(abs(first), abs(last)) > MOST_STEPS:
        raise ValueError(
            "the range reaches more than 2^62 steps from zero; declare a larger step or a smaller range"
        )
