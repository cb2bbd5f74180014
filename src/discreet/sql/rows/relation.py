"""Private relations: rows that each belong to one person, and the facts that sensitivities rest on
(S4).

A relation knows its hidden owner, how many rows one person may have in it, and the domain of every
column. Filters and row-wise projections only add conditions and rename; whatever needs a stage of
its own is nested.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from discreet.algebra import OWNER, Column, Expression, Scan, Select, Source, Stage, owner_of
from discreet.errors import Rejected
from discreet.policy.domain import (
    MOST_ROWS,
    Booleans,
    Categories,
    Dates,
    Decimals,
    Domain,
    Integers,
    Timestamps,
)
from discreet.policy.domain import Texts as DeclaredText
from discreet.policy.owners import Through
from discreet.policy.policy import Table
from discreet.sql.text.parse import reject, show, spell
from discreet.sql.text.postgres import Kind
from discreet.sql.values.value import Category, Day, Flag, Moment, Number, Opaque, Text, Value
from discreet.sql.values.value import Domain as ValueDomain

Origins = frozenset[tuple[str, int]]
ANYTHING: Origins = frozenset({("", 2**62)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A visible column: how it may be called, what it is, and which rows of a person it is a
    function of.

    `origins` are stages (an engine alias, and how many rows a person may have there); one person
    can have no more distinct values in columns than combinations of rows of their origins.
    """

    table: str
    name: str
    value: Value
    origins: Origins
    merged: bool = False  # USING made one column of two: this one is found by its table's name only, and not in *


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """Rows of people: `source` is what stands after FROM, `conditions` what its rows must
    satisfy.
    """

    source: Source
    fields: tuple[Field, ...]
    rows: int
    conditions: tuple[Expression, ...] = ()
    plain: bool = False  # one stored table, as it is
    # the policy's bound on unknown keys a person may touch, not yet enforced
    max_groups: int | None = None
    touched: int | None = None  # the same bound, once only rows of so many keys are left

    def __post_init__(self) -> None:
        # Privacy: S21. Every way to make rows ends here: what is proved of sums, and of one
        # person's work, rests on it.
        if self.rows > MOST_ROWS:
            raise Rejected(
                f"this gives one person up to {self.rows} rows, and {MOST_ROWS} are allowed.",
                hint="Aggregate per person before joining: GROUP BY the owner in a subquery.",
            )

    @property
    def owner(self) -> Column:
        """Whom a row belongs to."""
        return owner_of(self.source)

    def filter(self, condition: Value) -> Relation:
        return replace(self, conditions=(*self.conditions, condition.expression))

    def select(self, fields: Sequence[Field], *, distinct: bool = False) -> Select:
        """Return the rows as a query with these columns, c0, c1, ...; the owner is always one
        more.
        """
        columns = (
            (f"c{index}", field.value.expression)
            for index, field in enumerate(fields)
            if not _is_owner(field)
        )
        return Select(self.source, tuple(columns), self.conditions, distinct)

    def nest(self, alias: str, *, distinct: bool = False) -> Relation:
        """Return the same rows as a stage of their own, under a fresh engine alias."""
        fields = tuple(
            replace(
                field,
                value=replace(field.value, expression=_at(alias, index, field), constant=False),
            )
            for index, field in enumerate(self.fields)
        )
        source = Stage(self.select(self.fields, distinct=distinct), alias)
        return Relation(source=source, fields=fields, rows=self.rows, max_groups=self.max_groups)

    def rename(self, names: Sequence[str]) -> Relation:
        """Return the same rows with other names for their first columns."""
        fields = [
            replace(field, name=name)
            for field, name in zip(self.fields[: len(names)], names, strict=True)
        ]
        return replace(self, fields=(*fields, *self.fields[len(fields) :]))

    def with_name(self, alias: str) -> Relation:
        """Return the same rows under another name."""
        return replace(self, fields=tuple(replace(each, table=alias) for each in self.fields))

    def expand_star(self, table: str) -> list[Field]:
        """Return the columns that * stands for, or table.*."""
        if not table:
            return [each for each in self.fields if not each.merged]
        return [replace(each, merged=False) for each in self.fields if each.table.lower() == table]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """A scope: which column a name means."""

    fields: tuple[Field, ...]
    outer: tuple[Field, ...] = ()  # of the row that a correlated subquery stands beside

    def column(self, node: exp.Column) -> Value:
        return self.field(node).value

    def kind(self, node: exp.Column) -> Kind | None:
        return self.field(node).value.kind

    def origins(self, node: exp.Expression) -> Origins:
        """Return the rows that an expression is a function of; all of a person's, where it has a
        subquery or a window.
        """
        if node.find(exp.Query, exp.Window):
            return ANYTHING
        return frozenset(
            origin for column in node.find_all(exp.Column) for origin in self.field(column).origins
        )

    def field(self, node: exp.Column) -> Field:
        name, table = node.name.lower(), node.table.lower()
        if node.args.get("db") or node.args.get("catalog"):
            raise reject(
                node,
                f"{show(node)} names a schema, and there is none.",
                f"Write {node.table}.{node.name}.",
            )
        for fields in (self.fields, self.outer):
            named = [field for field in fields if field.name.lower() == name]
            found = [
                field
                for field in named
                if (field.table.lower() == table if table else not field.merged)
            ]
            if found:
                break
        beside = None if found or self.outer else _beside(node)
        if beside is not None:
            reason = (
                f"{show(node)} is of another SELECT: a subquery beside each row is not answered."
            )
            raise reject(node, reason, beside)
        if not found:
            raise reject(node, f"there is no column {show(node)} here.", self._hint(node))
        if len({field.value.expression for field in found}) > 1:
            apart = len({field.table for field in found}) > 1
            hint = (
                f"Write {found[0].table}.{found[0].name}."
                if apart
                else "Give them different names."
            )
            raise reject(node, f"{show(node)} could be several columns.", hint)
        return found[0]

    def _hint(self, node: exp.Column) -> str:
        """Say what was meant by a column that is not there."""
        name, columns = node.name.lower(), f"Columns are {self.listing()}."
        if isinstance(node.this, exp.Star):
            return "Write COUNT(*)."
        if (node.this.args.get("quoted") or _is_compared(node)) and not node.table:
            return f"Texts stand between single quotes: '{node.name}'. {columns}"
        if name in ("year", "quarter", "month", "week", "day", "hour", "minute", "second"):
            return (
                f"A part of a date is written first, as a text: DATE_TRUNC('{name}', x). {columns}"
            )
        if name in ("int", "integer", "bigint", "float", "decimal", "varchar", "date"):
            return f"A type is written last: CAST(x AS {name.upper()}). {columns}"
        return columns

    def special(self, node: exp.Expression) -> Value | None:
        return None

    def listing(self) -> str:
        names = list(dict.fromkeys(field.name for field in self.fields if field.table != "#"))
        return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def _is_compared(node: exp.Column) -> bool:
    """Return True if a word stands where a text would: sex = Male, sex IN (Male, Female)."""
    above = node.parent
    listed = isinstance(above, exp.In) and node.arg_key == "expressions"
    return listed or (
        isinstance(above, exp.EQ | exp.NEQ | exp.Like | exp.ILike) and node.arg_key == "expression"
    )


def _beside(node: exp.Column) -> str | None:
    """For a column of a SELECT further out, what to write instead of the subquery beside its
    rows.
    """
    inner = node.find_ancestor(exp.Select)
    outer = inner.find_ancestor(exp.Select) if inner is not None else None
    tables = (
        {}
        if outer is None
        else {each.alias_or_name.lower(): each for each in outer.find_all(exp.Table)}
    )
    named = tables.get(node.table.lower())
    if inner is None or named is None or named.find_ancestor(exp.Select) is not outer:
        return None
    source = inner.args["from_"].this if inner.args.get("from_") else None
    match, item = node.parent, inner.expressions[0].unalias()
    if not isinstance(item, exp.AggFunc):
        return (
            f"Write EXISTS (SELECT 1 FROM t WHERE t.owner = {node.table}.owner AND ...), or a join."
        )
    if not isinstance(source, exp.Table) or not isinstance(match, exp.Predicate):
        return "Join the grouped result: FROM a JOIN (SELECT x, COUNT(*) AS n FROM b GROUP BY x) AS s ON s.x = a.x."
    if not isinstance(match, exp.EQ):
        joined = f"{spell(source)} JOIN {spell(named)} ON {spell(match)}"
        return f"Join instead: SELECT {node.table}.x, {spell(item)} FROM {joined} GROUP BY {node.table}.x."
    key = (match.expression if match.this is node else match.this).name
    grouped = f"SELECT {key}, {spell(item)} AS n FROM {source.name} GROUP BY {key}"
    return f"Join instead: FROM {spell(named)} JOIN ({grouped}) AS s ON s.{key} = {spell(node)}."


def distinct_values(origins: Origins, rows: int) -> int:
    """Return how many distinct values one person can have in columns of these origins, in so many
    rows.
    """
    return min(rows, math.prod(each for _, each in origins))


def _is_owner(field: Field) -> bool:
    return isinstance(field.value.domain, Opaque) and field.value.domain.owner


def _at(alias: str, index: int, field: Field) -> Column:
    """Return a column of a stage."""
    return Column(alias, OWNER if _is_owner(field) else f"c{index}")


def scan(
    table: Table, alias: str, engine_alias: str, links: frozenset[tuple[str, str]]
) -> Relation:
    """All rows of a private table, as a snapshot holds them: clamped, coded, at most max_rows a
    person.
    """
    owner_column = table.visible_owner
    origins = frozenset({(engine_alias, table.max_rows)})
    fields = []
    for column in table.columns.values():
        domain = value_domain(column.domain)
        if isinstance(domain, Opaque):
            domain = Opaque(owner=False, link=_link(table, column.name, links))
        value = Value(
            expression=Column(engine_alias, column.name),
            domain=domain,
            nullable=column.nullable,
            kind=kind_of_domain(column.domain),
        )
        fields.append(Field(table=alias, name=column.name, value=value, origins=origins))
    # the visible owner column is the hidden one, whether or not the policy lists it
    if owner_column is not None:
        value = Value(expression=Column(engine_alias, OWNER), domain=Opaque(owner=True))
        own = Field(table=alias, name=owner_column, value=value, origins=frozenset())
        listed = any(field.name == owner_column for field in fields)
        fields = (
            [own if field.name == owner_column else field for field in fields]
            if listed
            else [own, *fields]
        )
    return Relation(
        source=Scan(table.name, engine_alias),
        fields=tuple(fields),
        rows=table.max_rows,
        plain=True,
        max_groups=table.max_groups,
    )


def _link(table: Table, column: str, links: frozenset[tuple[str, str]]) -> str | None:
    """Return the name of a key that leads to the owner: visits.visit_id, both in visits and in what
    is owned through it.
    """
    if isinstance(table.owner, Through) and table.owner.on == column:
        return f"{table.owner.table}.{column}"
    return f"{table.name}.{column}" if (table.name, column) in links else None


def links_of(tables: Mapping[str, Table]) -> frozenset[tuple[str, str]]:
    """Return the columns of tables through which other tables are owned."""
    return frozenset(
        (table.owner.table, table.owner.on)
        for table in tables.values()
        if isinstance(table.owner, Through)
    )


def kind_of_domain(domain: Domain) -> Kind:
    """Return the type that a declared column has in Postgres."""
    match domain:
        case Integers():
            return "integer" if max(abs(domain.first), abs(domain.last)) < 2**31 else "bigint"
        case Booleans():
            return "boolean"
        case Dates():
            return "date"
    return "other"


def value_domain(domain: Domain) -> ValueDomain:
    """Return what the policy declares, as the analysis uses it."""
    match domain:
        case Integers() | Decimals():
            return Number(step=domain.step, lo=domain.first, hi=domain.last)
        case Categories(values=values):
            return Category(values=tuple(values))
        case Booleans():
            return Flag()
        case Dates(lo=lo, hi=hi):
            return Day(lo=lo, hi=hi)
        case Timestamps(lo=start, hi=end, step=step):
            return Moment(lo=start, hi=end, step=step)
        case DeclaredText(letters=letters):
            return Text(letters=letters)
        case _:  # an identifier
            return Opaque(owner=False)
