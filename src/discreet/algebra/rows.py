"""Expressions over one row, and rows that each belong to one person: sources, and queries over
them.

Two private sources meet on their owners or not at all, and the only subquery in an expression is
`Exists`, over rows of the same person.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal as OneOf

OWNER = "#owner"  # the hidden column of every private source: whom a row belongs to

# --- expressions over one row ---------------------------------------------------------------------


class Expression:
    """A value of one row. Every expression is total: NULL where it has no value, and never an
    error.
    """

    __slots__ = ()
    weight: int  # nodes, each counted as often as it would be written

    def __add__(self, other: Operand) -> Call:
        return call("+", self, other)

    def __radd__(self, other: Operand) -> Call:
        return call("+", other, self)

    def __sub__(self, other: Operand) -> Call:
        return call("-", self, other)

    def __mul__(self, other: Operand) -> Call:
        return call("*", self, other)

    def __rmul__(self, other: Operand) -> Call:
        return call("*", other, self)

    def __truediv__(self, other: Operand) -> Call:
        return call("/", self, other)

    def __floordiv__(self, other: Operand) -> Call:
        return call("//", self, other)

    def __mod__(self, other: Operand) -> Call:
        return call("%", self, other)

    def __neg__(self) -> Call:
        return call("negative", self)

    def __lt__(self, other: Operand) -> Call:
        return call("<", self, other)

    def __le__(self, other: Operand) -> Call:
        return call("<=", self, other)

    def __gt__(self, other: Operand) -> Call:
        return call(">", self, other)

    def __ge__(self, other: Operand) -> Call:
        return call(">=", self, other)

    def equals(self, other: Operand) -> Call:
        return call("=", self, other)

    @property
    def is_null(self) -> Call:
        return call("is null", self)

    @property
    def is_known(self) -> Call:
        return call("is not null", self)


@dataclass(frozen=True, slots=True)
class Interval:
    """A length of time: so many of a unit."""

    count: int
    unit: OneOf["microsecond", "second", "day", "month"]


Plain = int | float | str | bool | date | datetime | Interval | None
Operand = Expression | Plain
Kind = OneOf[
    "BIGINT", "INTEGER", "HUGEINT", "DOUBLE", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "TIME"
]


@dataclass(frozen=True, slots=True)
class Column(Expression):
    """A column of a source: `stage` is the name that the source has in its FROM clause."""

    stage: str
    name: str
    weight: int = field(default=1, init=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """A constant, as Python holds it."""

    value: Plain
    # 1, 1.0 and TRUE are equal in Python, and are not one constant
    kind: type = field(init=False, repr=False)
    weight: int = field(default=1, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", type(self.value))


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A function or operator of the vocabulary, applied to expressions over the same row."""

    name: str
    arguments: tuple[Expression, ...]
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", 1 + sum(each.weight for each in self.arguments))


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """A value as another type of the engine."""

    value: Expression
    kind: str
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", 1 + self.value.weight)


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """The value of the first branch whose condition is true; otherwise the last."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        branches = sum(condition.weight + value.weight for condition, value in self.branches)
        object.__setattr__(self, "weight", 1 + branches + self.otherwise.weight)


@dataclass(frozen=True, slots=True)
class Careful(Expression):
    """The same value; should the engine fail on a row all the same, NULL there in a second run (the
    second wall).
    """

    value: Expression
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", 1 + self.value.weight)


@dataclass(frozen=True, slots=True)
class Exists(Expression):
    """A test: the row's own person has a row in another private source that satisfies the
    conditions.

    Equality of owners is no field: the spelling always writes it.
    """

    source: Source
    owner: Column  # of the row outside
    where: tuple[Expression, ...]
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "weight", 1 + weight_of(self.source) + sum(each.weight for each in self.where)
        )


def expression(value: Operand) -> Expression:
    return value if isinstance(value, Expression) else Constant(value)


def call(name: str, *arguments: Operand) -> Call:
    return Call(name, tuple(expression(each) for each in arguments))


def case(*branches: tuple[Operand, Operand], otherwise: Operand = None) -> Case:
    listed = tuple((expression(condition), expression(value)) for condition, value in branches)
    return Case(listed, expression(otherwise))


# --- within one person's rows ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fold(Expression):
    """An aggregate of the vocabulary over one person's rows: only `PerPerson` and `Over` may hold
    one.
    """

    name: str
    arguments: tuple[Expression, ...]
    where: Expression | None = None
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        more = 0 if self.where is None else self.where.weight
        object.__setattr__(self, "weight", 1 + more + sum(each.weight for each in self.arguments))


@dataclass(frozen=True, slots=True)
class Order:
    """A place in an order."""

    value: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """ROWS or RANGE BETWEEN two ends, each written as SQL words and numbers."""

    unit: OneOf["ROWS", "RANGE"]
    start: str
    end: str


@dataclass(frozen=True, slots=True)
class Over(Expression):
    """A window over the rows of the row's own person: the owner is always a part of the
    partition.
    """

    function: Fold
    owner: Column
    partition: tuple[Expression, ...] = ()
    order: tuple[Order, ...] = ()
    frame: Frame | None = None
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        parts = (*self.partition, *(each.value for each in self.order))
        object.__setattr__(
            self, "weight", 1 + self.function.weight + sum(each.weight for each in parts)
        )


# --- sources: what stands after FROM --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scan:
    """A prepared private table: a snapshot holds at most its policy's max_rows rows of each
    person.
    """

    table: str
    stage: str


@dataclass(frozen=True, slots=True)
class PublicScan:
    """A stored public table."""

    table: str
    stage: str


@dataclass(frozen=True, slots=True)
class ConstantTable:
    """A public table that is written out in the question."""

    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[tuple[Plain, ...], ...]
    stage: str


@dataclass(frozen=True, slots=True)
class OwnerJoin:
    """Two private sources, person by person: equality of owners is no field, the spelling always
    writes it.
    """

    left: Source
    right: Source
    on: tuple[Expression, ...] = ()
    outer: bool = False  # rows of the left side without a partner stay


@dataclass(frozen=True, slots=True)
class PublicJoin:
    """A private source beside a public one: a row meets at most `meets` public rows, which the
    query itself enforces.

    `pins` are equalities of an expression of the private row with one of the public row. The
    spelling keeps only the first `meets` public rows of equal pins, so that no row can meet more,
    whatever the public table holds.
    """

    left: Source
    right: PublicScan | ConstantTable
    meets: int
    pins: tuple[tuple[Expression, Expression], ...] = ()
    on: tuple[Expression, ...] = ()
    outer: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """A query over private rows under a name: its columns are the query's, and the owner."""

    query: Query
    stage: str


Source = Scan | OwnerJoin | PublicJoin | Stage


# --- queries: private rows from private rows ------------------------------------------------------

Columns = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Select:
    """Each row by itself: some of them, with other columns. The owner is always one more column."""

    source: Source
    columns: Columns
    where: tuple[Expression, ...] = ()
    distinct: bool = False  # equal rows of one person once


@dataclass(frozen=True, slots=True)
class PerPerson:
    """One row for each person and each combination of keys that the person has."""

    source: Source
    keys: Columns
    columns: Columns
    where: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class UnionAll:
    """The rows of all parts."""

    parts: tuple[Select, ...]


Query = Select | PerPerson | UnionAll


# --- size -----------------------------------------------------------------------------------------

TABLE_WEIGHT = 40  # of a table: the time in which engines plan a query grows fastest with these


def weight_of(source: Source | PublicScan | ConstantTable | Query) -> int:
    """Count the nodes of a source or query, each as often as it would be written; a table counts
    as `TABLE_WEIGHT` nodes.
    """
    match source:
        case Scan() | PublicScan():
            return TABLE_WEIGHT
        case ConstantTable(rows=rows, columns=columns):
            return TABLE_WEIGHT + len(rows) * len(columns)
        case OwnerJoin(left=left, right=right, on=on):
            return 1 + weight_of(left) + weight_of(right) + sum(each.weight for each in on)
        case PublicJoin(left=left, right=right, pins=pins, on=on):
            pinned = sum(ours.weight + theirs.weight for ours, theirs in pins)
            return 1 + weight_of(left) + weight_of(right) + pinned + sum(each.weight for each in on)
        case Stage(query=query):
            return 1 + weight_of(query)
        case Select(source=inner, columns=columns, where=where):
            return (
                weight_of(inner)
                + sum(each.weight for _, each in columns)
                + sum(each.weight for each in where)
            )
        case PerPerson(source=inner, keys=keys, columns=columns, where=where):
            listed = (*(each for _, each in keys), *(each for _, each in columns), *where)
            return weight_of(inner) + sum(each.weight for each in listed)
        case UnionAll(parts=parts):
            return sum(map(weight_of, parts))
