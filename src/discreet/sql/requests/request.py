"""Requests: what one aggregate asks to be measured. The members of `sql.aggregates` derive theirs
from these.

AllRows       the number of rows (in `sql.aggregates.count`)
Single        one number that shares nothing: people, distinct values
Moment        powers of one value up to a degree; moments of the same value share a measurement
Pair          products of powers of two values
PublicChoice  a choice of a public value, not a sum
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import ClassVar, Literal

from sqlglot import exp

from discreet.algebra import Expression, Reading, call
from discreet.budget import Neighbors
from discreet.sql.after.estimates import Linear, NoisyColumn
from discreet.sql.plan import sensitivity
from discreet.sql.plan.sensitivity import Sensitivity
from discreet.sql.requests.readings import RowsRead
from discreet.sql.text.parse import reject, show
from discreet.sql.values.expressions import Scope, translate
from discreet.sql.values.numbers import grid
from discreet.sql.values.unify import as_number
from discreet.sql.values.value import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """What bounds a sensitivity."""

    rows: int  # the most rows of one person
    touched: int  # the most groups of one person
    groups: int  # the number of groups
    neighbors: Neighbors


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateRequest:
    """One aggregate of the question, over the rows that satisfy `condition`."""

    label: str
    condition: Expression | None = None
    chosen: ClassVar[bool] = False  # True if it chooses a public value: then it has no margin

    @property
    def signature(self) -> str:
        """Return a text that is equal for equal requests, however the question writes them."""
        names = [each.name for each in fields(self) if each.name != "label"]
        parts = [getattr(self, name) for name in names]
        identities = [part.identity if isinstance(part, Value) else part for part in parts]
        return repr((type(self).__name__, *identities))

    @property
    def step(self) -> Fraction | None:
        """Return the step of which counts and sums are multiples; None for requests that are not
        linear in noise.
        """
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone(AggregateRequest, ABC):
    """A request that can be answered by one number."""

    @abstractmethod
    def reading(self, rows: RowsRead, node: exp.Expression) -> Reading:
        """Return the reading whose result is the number."""

    @abstractmethod
    def sensitivity(self, extent: Extent) -> Sensitivity:
        """Return how far one person moves the number in all groups together."""

    def additive(self, touched: int) -> bool:
        """Return True if the numbers of several groups add up to the number of their union."""
        return True

    def counts_people(self, rows: int) -> bool:
        """Return True if the number is that of people, given the most rows of one person."""
        return False

    @property
    def step(self) -> Fraction | None:
        return Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Single(Alone):
    """A request for one number that shares nothing with other requests."""

    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a moment in its statistic: how many parts the statistic has, and how each is
    computed from the value.

    A row with v = x - lo adds binomial(d, i) v^i (W - v)^(d - i) to part i, for degree d and width
    W. The parts of one row add up to W^d. They are in this order from the low end on; for degree 1
    the order is reversed. With `with_rows`, one more part at the end counts the rows in which x is
    NULL.
    """

    degree: int
    lo: int
    width: int
    step: Fraction
    with_rows: bool

    @property
    def unit(self) -> Fraction:
        """Return the factor that turns the sum of all parts into a number of rows."""
        return Fraction(1, self.width**self.degree)

    def linear(self, factors: tuple[Fraction, ...], *, rest: Fraction, step: Fraction) -> Linear:
        """Return a combination of the parts; `rest` is the factor of the part of rows without a
        value, if there is one.
        """
        if self.with_rows:
            factors = (*factors, rest)
        return Linear(factors=factors, step=step)

    def count(self, *, rest: Fraction) -> Linear:
        """Return the number of rows with a value; with `rest` not 0, rows without one count too."""
        return self.linear((self.unit,) * (self.degree + 1), rest=rest, step=Fraction(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment(AggregateRequest, ABC):
    """An aggregate of one value, computed from its powers up to `degree`."""

    value: Value
    degree: ClassVar[int]

    @abstractmethod
    def estimate(self, place: Place) -> NoisyColumn:
        """Return the estimate of the aggregate from the parts, whose degree may be higher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corner:
    """The place of a pair in its statistic, whose parts are products of the parts of both values."""

    widths: tuple[int, int]  # for each value: the number of its steps from the low end
    steps: tuple[Fraction, Fraction]  # for each value: the size of a step


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(AggregateRequest, ABC):
    """An aggregate of two values, computed from products of their powers up to `degrees`."""

    value: Value
    other: Value

    @property
    @abstractmethod
    def degrees(self) -> tuple[int, int]:
        """Return the highest power of each value."""

    @abstractmethod
    def estimate(self, corner: Corner) -> NoisyColumn:
        """Return the estimate of the aggregate from the parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicChoice(AggregateRequest):
    """A request to choose a public value by rank or by count."""

    value: Value
    kind: Literal["quantile", "mode"]
    quantiles: tuple[Fraction, ...] = ()
    listed: bool = False
    chosen: ClassVar[bool] = True


Reader = Callable[[exp.Expression, Scope, str, Expression | None], AggregateRequest]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of the family of aggregates: the syntax that it reads, its documentation, its test."""

    names: tuple[str, ...]  # its names in refusals
    tags: tuple[str, ...]  # its tags in tests/sql/plans.sql
    readers: Mapping[type[exp.Expression], Reader] = field(default_factory=dict)
    # readers for functions that the parser does not know, by their names in small letters
    named: Mapping[str, Reader] = field(default_factory=dict)
    # for each class of its estimates: the line in `sql.plan.identity.TABLE`; Linear has one there
    estimates: Mapping[type, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    # its line in docs/language.md: how it is written, what is measured, how far it moves
    line: tuple[str, str, str]
    tolerance: float = 1e-7  # how far its answers without noise may be from DuckDB's
    meaning: str = ""  # a DuckDB macro for the test, if DuckDB lacks the aggregate


def constant_width(extent: Extent, *, width: int, parts: int) -> Sensitivity:
    """Return the sensitivity of parts that add up to at most `width` in each row."""
    return sensitivity.of_parts(
        rows=extent.rows, width=width, parts=parts, groups=extent.groups, neighbors=extent.neighbors
    )


def range_of(value: Value) -> tuple[int, int]:
    """Return the low end and the width (at least 1) of a number's range, in units of its step."""
    domain = grid(value)
    return domain.lo, max(domain.hi - domain.lo, 1)


# --- what members read ----------------------------------------------------------------------------


def argument(node: exp.Expression, scope: Scope) -> Value:
    """Return the value of the only argument of an aggregate."""
    return translate(argument_node(node), scope)


def _without_distinct(node: exp.Expression) -> str:
    """Return what may be written instead of SUM(DISTINCT x), and say where it means another number.

    MIN(x) is MIN(DISTINCT x). A public table may be asked for DISTINCT values, by itself.
    """
    if node.find(exp.MD5, exp.MD5Digest):  # as Looker writes a sum over rows that a join repeats
        return "Sum without the join that repeats rows: SELECT SUM(x) FROM the table of x."
    written = show(node).replace("DISTINCT ", "")
    same = isinstance(node, exp.Min | exp.Max)
    if written.endswith("..."):
        return "Leave DISTINCT out." if same else "Without DISTINCT it is another number."
    if same:
        return f"Write {written}."
    name = written.partition("(")[0].upper()
    return (
        f"{written} is another number: it takes the value of each row, as often as it is there. If"
        f" x is of a public table, ask for it there alone: (SELECT {name}(DISTINCT x) FROM the table)."
    )


def argument_node(node: exp.Expression) -> exp.Expression:
    """Return the only argument of an aggregate."""
    only = node.expressions[0] if isinstance(node, exp.AnonymousAggFunc) else node.this
    if isinstance(only, exp.Distinct):
        raise reject(
            node,
            f"{show(node)}: DISTINCT is answered in COUNT only.",
            _without_distinct(node),
        )
    if isinstance(only, exp.Order):
        raise reject(
            node,
            f"{show(node)}: the order of rows has no meaning here.",
            "Leave ORDER BY out of the aggregate.",
        )
    assert isinstance(only, exp.Expression)
    return only


def number(node: exp.Expression, scope: Scope) -> Value:
    """Return the only argument of an aggregate as a number, or refuse it."""
    return as_number(argument(node, scope), node)


def both(one: Expression | None, other: Expression | None) -> Expression | None:
    """Return the conjunction of two conditions; each may be missing."""
    if one is None:
        return other
    if other is None:
        return one
    return call("AND", one, other)
