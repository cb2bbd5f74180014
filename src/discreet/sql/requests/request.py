"""Requests: what one aggregate asks to be measured. Members of the family say the rest.

AllRows       how many rows there are, whatever is in them
Single        one number of its own: people, distinct values
Moment        powers of one value, up to a degree; several over the same value share a measurement
Pair          products of powers of two values
PublicChoice  a public value that is chosen, and not added up
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
    """Bounds on one person: their rows and the groups that they touch; and how many groups there
    are.
    """

    rows: int
    touched: int
    groups: int
    neighbors: Neighbors


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateRequest:
    """One aggregate that was asked for, over the rows that satisfy `condition`."""

    label: str
    condition: Expression | None = None
    chosen: ClassVar[bool] = False  # a public value that is chosen: it has no margin in value

    @property
    def signature(self) -> str:
        """Return the text that tells it from other requests, however it was written."""
        parts = [getattr(self, each.name) for each in fields(self) if each.name != "label"]
        told = [part.identity if isinstance(part, Value) else part for part in parts]
        return repr((type(self).__name__, *told))

    @property
    def step(self) -> Fraction | None:
        """Return the step of counts and sums, which are linear in noise and multiples of it; None
        for others.
        """
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone(AggregateRequest, ABC):
    """A request that can be answered by one number."""

    @abstractmethod
    def reading(self, rows: RowsRead, node: exp.Expression) -> Reading:
        """Return what is read of the rows."""

    @abstractmethod
    def sensitivity(self, extent: Extent) -> Sensitivity:
        """Return how far one person moves that number in all groups together."""

    def additive(self, touched: int) -> bool:
        """Return True if the numbers of groups add up to that of all of them."""
        return True

    def counts_people(self, rows: int) -> bool:
        """Return True if it is the number of people, where one person has so many rows."""
        return False

    @property
    def step(self) -> Fraction | None:
        return Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Single(Alone):
    """A request for one number that shares nothing with others."""

    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a moment in its statistic: how many parts there are, and how each is made of the
    value.

    Parts go by their place in the range, from the low end: the i-th of degree d makes up
    binomial(d, i) v^i (W - v)^(d - i) of W^d in every row; of degree 1 the high end comes first.
    `with_rows`: a last part counts the rows without a value.
    """

    degree: int
    lo: int
    width: int
    step: Fraction
    with_rows: bool

    @property
    def unit(self) -> Fraction:
        return Fraction(1, self.width**self.degree)

    def linear(self, factors: tuple[Fraction, ...], *, rest: Fraction, step: Fraction) -> Linear:
        """Return a combination of the parts; `rest` is the factor of the last one, if there is
        one.
        """
        every = (*factors, rest) if self.with_rows else factors
        return Linear(factors=every, step=step)

    def count(self, *, rest: Fraction) -> Linear:
        return self.linear((self.unit,) * (self.degree + 1), rest=rest, step=Fraction(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment(AggregateRequest, ABC):
    """An aggregate of one value, computed from its powers up to `degree`."""

    value: Value
    degree: ClassVar[int]

    @abstractmethod
    def estimate(self, place: Place) -> NoisyColumn:
        """Return the aggregate, from parts of its own degree or of a higher one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corner:
    """The place of a pair in its statistic: products of the parts of both values, each in `widths`
    steps from its low end.
    """

    widths: tuple[int, int]
    steps: tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(AggregateRequest, ABC):
    """An aggregate of two values, computed from products of their powers up to `degrees`."""

    value: Value
    other: Value

    @property
    @abstractmethod
    def degrees(self) -> tuple[int, int]: ...

    @abstractmethod
    def estimate(self, corner: Corner) -> NoisyColumn: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicChoice(AggregateRequest):
    """A public value that is chosen by rank or by count."""

    value: Value
    kind: Literal["quantile", "mode"]
    quantiles: tuple[Fraction, ...] = ()
    listed: bool = False
    chosen: ClassVar[bool] = True


Reader = Callable[[exp.Expression, Scope, str, Expression | None], AggregateRequest]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An aggregate of the family: the syntax that it reads, and how it is told and tested."""

    names: tuple[str, ...]  # as refusals list them
    tags: tuple[str, ...]  # as tests/sql/plans.sql calls what it answers
    readers: Mapping[type[exp.Expression], Reader] = field(default_factory=dict)
    # by names, in small letters, that the parser knows not
    named: Mapping[str, Reader] = field(default_factory=dict)
    # Its estimates, with their tags and fields in what a question is known by (`sql.plan.identity`);
    # Linear is known there.
    estimates: Mapping[type, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    # in docs/language.md: how it is written, what is measured, how far it moves
    line: tuple[str, str, str]
    tolerance: float = 1e-7  # of its answers without noise, beside DuckDB's
    meaning: str = ""  # what DuckDB would call a macro, where it has no such aggregate


def constant_width(extent: Extent, *, width: int, parts: int) -> Sensitivity:
    return sensitivity.of_parts(
        rows=extent.rows, width=width, parts=parts, groups=extent.groups, neighbors=extent.neighbors
    )


def range_of(value: Value) -> tuple[int, int]:
    """Return the low end and the width of a number's range, in units of its step."""
    domain = grid(value)
    return domain.lo, max(domain.hi - domain.lo, 1)


# --- what members read ----------------------------------------------------------------------------


def argument(node: exp.Expression, scope: Scope) -> Value:
    """Return the value of the only argument of an aggregate."""
    return translate(argument_node(node), scope)


def argument_node(node: exp.Expression) -> exp.Expression:
    """Return the only argument of an aggregate."""
    only = node.expressions[0] if isinstance(node, exp.AnonymousAggFunc) else node.this
    if isinstance(only, exp.Distinct):
        raise reject(
            node,
            f"{show(node)}: DISTINCT is answered in COUNT only.",
            f"Write {show(node).replace('DISTINCT ', '')}.",
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
    return as_number(argument(node, scope), node)


def both(one: Expression | None, other: Expression | None) -> Expression | None:
    """Return the conjunction of two conditions, of which each may be missing."""
    return (
        call("AND", one, other)
        if one is not None and other is not None
        else one
        if other is None
        else other
    )
