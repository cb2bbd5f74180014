"""Expressions over one row; and sources and queries, whose rows each belong to one person.

Two private sources are joined on their owners only. The only subquery in an expression is `Exists`,
over rows of the same person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal as OneOf

OWNER = "#owner"  # the hidden column of every private source: the person whom a row belongs to

# --- expressions over one row ---------------------------------------------------------------------


class Expression:
    """A value of one row. Every expression is total: it is NULL if it has no value, and never raises."""

    __slots__ = ()
    weight: int  # the number of nodes, each counted as often as SQL would have it

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
    """A length of time: a number of units."""

    count: int
    unit: OneOf["microsecond", "second", "day", "month"]


Plain = int | float | str | bool | date | datetime | Interval | None
Operand = Expression | Plain
Kind = OneOf[
    "BIGINT", "INTEGER", "HUGEINT", "DOUBLE", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "TIME"
]


@dataclass(frozen=True, slots=True)
class Column(Expression):
    """A column of a source; `stage` is the name of the source in its FROM clause."""

    stage: str
    name: str
    weight: int = field(default=1, init=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """A constant, as a value of Python."""

    value: Plain
    # 1, 1.0 and True are equal in Python, but different constants
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
        _set_weight(self, _weights(self.arguments))


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """A value cast to a type of the engine."""

    value: Expression
    kind: str
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _set_weight(self, self.value.weight)


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """The value of the first branch whose condition is true; `otherwise` if there is none."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        branches = sum(condition.weight + value.weight for condition, value in self.branches)
        _set_weight(self, branches + self.otherwise.weight)


@dataclass(frozen=True, slots=True)
class Careful(Expression):
    """The same value. If the engine raises on a row although it should not, a second run gives NULL
    there: this is the second defence behind total expressions.
    """

    value: Expression
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _set_weight(self, self.value.weight)


@dataclass(frozen=True, slots=True)
class Exists(Expression):
    """A condition: the person whom the row belongs to has a row in another private source that
    satisfies `where`.

    Equality of owners is not a field: the spelling always writes it.
    """

    source: Source
    owner: Column  # of the outer row
    where: tuple[Expression, ...]
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _set_weight(self, weight_of(self.source) + _weights(self.where))


def expression(value: Operand) -> Expression:
    """Return a value of Python as a constant; an expression as it is."""
    return value if isinstance(value, Expression) else Constant(value)


def call(name: str, *arguments: Operand) -> Call:
    """Return a function applied to expressions or values of Python."""
    return Call(name, tuple(expression(each) for each in arguments))


def case(*branches: tuple[Operand, Operand], otherwise: Operand = None) -> Case:
    """Return a CASE of (condition, value) branches."""
    pairs = [(expression(condition), expression(value)) for condition, value in branches]
    return Case(tuple(pairs), expression(otherwise))


# --- within one person's rows ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fold(Expression):
    """An aggregate of the vocabulary over one person's rows; only `PerPerson` and `Over` may have
    one.
    """

    name: str
    arguments: tuple[Expression, ...]
    where: Expression | None = None
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        condition = 0 if self.where is None else self.where.weight
        _set_weight(self, condition + _weights(self.arguments))


@dataclass(frozen=True, slots=True)
class Order:
    """One item of an ORDER BY."""

    value: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """ROWS or RANGE BETWEEN two ends; each end is a text of SQL words and numbers."""

    unit: OneOf["ROWS", "RANGE"]
    start: str
    end: str


@dataclass(frozen=True, slots=True)
class Over(Expression):
    """A window over the rows of one person: the owner is always a part of the partition."""

    function: Fold
    owner: Column
    partition: tuple[Expression, ...] = ()
    order: tuple[Order, ...] = ()
    frame: Frame | None = None
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        order = [each.value for each in self.order]
        _set_weight(self, self.function.weight + _weights(self.partition) + _weights(order))


# --- sources: what stands after FROM --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scan:
    """A prepared private table; a snapshot has at most max_rows rows of each person in it."""

    table: str
    stage: str


@dataclass(frozen=True, slots=True)
class PublicScan:
    """A stored public table."""

    table: str
    stage: str


@dataclass(frozen=True, slots=True)
class ConstantTable:
    """A public table whose rows are written out in the SQL."""

    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[tuple[Plain, ...], ...]
    stage: str


@dataclass(frozen=True, slots=True)
class OwnerJoin:
    """A join of two private sources, person by person.

    Equality of owners is not a field: the spelling always writes it.
    """

    left: Source
    right: Source
    on: tuple[Expression, ...] = ()
    outer: bool = False  # rows of the left side without a partner are kept


@dataclass(frozen=True, slots=True)
class PublicJoin:
    """A join of a private source with a public one: a private row meets at most `meets` public rows.
    The query itself enforces this.

    Each pin says that an expression of the private row equals one of the public row. Of public rows
    with equal pins the spelling keeps only the first `meets`. So no private row can meet more,
    whatever the public table has.
    """

    left: Source
    right: PublicScan | ConstantTable
    meets: int
    pins: tuple[tuple[Expression, Expression], ...] = ()
    on: tuple[Expression, ...] = ()
    outer: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """A query over private rows with a name; it has the query's columns, and the owner."""

    query: Query
    stage: str


Source = Scan | OwnerJoin | PublicJoin | Stage


# --- queries: private rows from private rows ------------------------------------------------------

Columns = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Select:
    """Some rows of a source with other columns, each computed from its row. The owner is always one
    more column.
    """

    source: Source
    columns: Columns
    where: tuple[Expression, ...] = ()
    distinct: bool = False  # equal rows of one person appear once


@dataclass(frozen=True, slots=True)
class PerPerson:
    """One row for each person and each combination of keys in the person's rows."""

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
    """Return the number of nodes of a source or query, each counted as often as SQL would have it; a
    table counts as `TABLE_WEIGHT` nodes.
    """
    match source:
        case Scan() | PublicScan():
            return TABLE_WEIGHT
        case ConstantTable(rows=rows, columns=columns):
            return TABLE_WEIGHT + len(rows) * len(columns)
        case OwnerJoin(left=left, right=right, on=on):
            return 1 + weight_of(left) + weight_of(right) + _weights(on)
        case PublicJoin(left=left, right=right, pins=pins, on=on):
            equalities = sum(ours.weight + theirs.weight for ours, theirs in pins)
            return 1 + weight_of(left) + weight_of(right) + equalities + _weights(on)
        case Stage(query=query):
            return 1 + weight_of(query)
        case Select(source=inner, columns=columns, where=where):
            values = [value for _, value in columns]
            return weight_of(inner) + _weights(values) + _weights(where)
        case PerPerson(source=inner, keys=keys, columns=columns, where=where):
            values = [value for _, value in (*keys, *columns)]
            return weight_of(inner) + _weights(values) + _weights(where)
        case UnionAll(parts=parts):
            return sum(map(weight_of, parts))


def _weights(nodes: Sequence[Expression]) -> int:
    return sum(node.weight for node in nodes)


def _set_weight(node: Expression, parts: int) -> None:
    """Set the weight of a frozen node: its parts, and itself."""
    object.__setattr__(node, "weight", 1 + parts)
