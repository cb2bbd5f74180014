"""Private relations: rows that each belong to one person, with the facts that sensitivities depend on
(S4).

A relation has a hidden owner column, the most rows of one person, and the domain of every column.
A filter only adds a condition, and a projection only changes the columns. Whatever needs a stage of
its own is nested in one.
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

Origin = tuple[str, str, int, int]
Origins = frozenset[Origin]


def rows_of_stage(stage: str, rows: int) -> Origins:
    """Return the origins of columns of which each may differ in each row of a stage."""
    return frozenset({(stage, "", rows, rows)})


ANYTHING: Origins = rows_of_stage("", 2**62)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A visible column: its names, its value, and what decides the value.

    `origins` are stages and their columns, each with the most rows that one person has in the stage
    and the most values that the column has. In some columns a person has at most as many distinct
    values as there are combinations of rows of their origins' stages; in one stage, also at most as
    many as there are combinations of values of its columns.
    """

    table: str
    name: str
    value: Value
    origins: Origins
    # USING merges two columns into one. The other one is merged: a name finds it only with its table,
    # and * does not include it.
    merged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """Rows of people: those rows of `source` that satisfy `conditions`."""

    source: Source
    fields: tuple[Field, ...]
    rows: int  # the most rows of one person
    conditions: tuple[Expression, ...] = ()
    plain: bool = False  # True for one stored table without changes
    # the policy's limit on a person's unknown keys, not enforced yet
    max_groups: int | None = None
    touched: int | None = None  # the same limit, after other keys' rows were removed

    def __post_init__(self) -> None:
        # Privacy: S21. Everything that makes rows makes a Relation, so this check covers all. The
        # limits of sums, and of the work for one person, depend on it.
        if self.rows > MOST_ROWS:
            raise Rejected(
                f"this gives one person up to {self.rows} rows, and {MOST_ROWS} are allowed.",
                hint="Aggregate per person before joining: GROUP BY the owner in a subquery.",
            )

    @property
    def owner(self) -> Column:
        """Return the hidden column with the person whom a row belongs to."""
        return owner_of(self.source)

    def filter(self, condition: Value) -> Relation:
        """Return the rows that satisfy a condition."""
        return replace(self, conditions=(*self.conditions, condition.expression))

    def select(self, fields: Sequence[Field], *, distinct: bool = False) -> Select:
        """Return the rows as a query with columns c0, c1, ..., and the owner."""
        columns = []
        for index, field in enumerate(fields):
            if not _is_owner(field):
                columns.append((f"c{index}", field.value.expression))
        return Select(self.source, tuple(columns), self.conditions, distinct)

    def nest(self, alias: str, *, distinct: bool = False) -> Relation:
        """Return the same rows as a stage of their own with a fresh engine alias."""
        fields = []
        for index, field in enumerate(self.fields):
            column = _column_of_stage(alias, index, field)
            value = replace(field.value, expression=column, constant=False)
            fields.append(replace(field, value=value))
        source = Stage(self.select(self.fields, distinct=distinct), alias)
        return Relation(
            source=source, fields=tuple(fields), rows=self.rows, max_groups=self.max_groups
        )

    def rename(self, names: Sequence[str]) -> Relation:
        """Return the same rows with other names for their first columns."""
        count = len(names)
        pairs = zip(self.fields[:count], names, strict=True)
        fields = [replace(field, name=name) for field, name in pairs]
        return replace(self, fields=(*fields, *self.fields[count:]))

    def with_name(self, alias: str) -> Relation:
        """Return the same rows as a table of another name."""
        fields = [replace(field, table=alias) for field in self.fields]
        return replace(self, fields=tuple(fields))

    def expand_star(self, table: str) -> list[Field]:
        """Return the columns of * (for an empty name) or of table.*."""
        if not table:
            return [each for each in self.fields if not each.merged]
        return [replace(each, merged=False) for each in self.fields if each.table.lower() == table]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """A scope: it resolves names to columns."""

    fields: tuple[Field, ...]
    outer: tuple[Field, ...] = ()  # columns of the outer row, inside a correlated subquery

    def column(self, node: exp.Column) -> Value:
        """Return the value of the column that a name means."""
        return self.field(node).value

    def kind(self, node: exp.Column) -> Kind | None:
        """Return the type in Postgres of the column that a name means."""
        return self.field(node).value.kind

    def origins(self, node: exp.Expression) -> Origins:
        """Return the stages whose rows decide an expression; with a subquery or a window, any rows
        of the person.
        """
        if node.find(exp.Query, exp.Window):
            return ANYTHING
        origins: set[Origin] = set()
        for column in node.find_all(exp.Column):
            origins |= self.field(column).origins
        return frozenset(origins)

    def field(self, node: exp.Column) -> Field:
        """Return the column that a name means, or refuse the name."""
        if node.args.get("db") or node.args.get("catalog"):
            raise reject(
                node,
                f"{show(node)} names a schema, and there is none.",
                f"Write {node.table}.{node.name}.",
            )
        candidates = _candidates(node, self.fields) or _candidates(node, self.outer)
        if not candidates:
            instead = None if self.outer else _instead_of_subquery(node)
            if instead is not None:
                reason = f"{show(node)} is of another SELECT: a subquery beside each row is not answered."
                raise reject(node, reason, instead)
            raise reject(node, f"there is no column {show(node)} here.", self._hint(node))
        first = candidates[0]
        if len({field.value.expression for field in candidates}) > 1:
            hint = "Give them different names."
            if len({field.table for field in candidates}) > 1:
                hint = f"Write {first.table}.{first.name}."
            raise reject(node, f"{show(node)} could be several columns.", hint)
        return first

    def _hint(self, node: exp.Column) -> str:
        """Return what to write instead of a column that does not exist."""
        name = node.name.lower()
        columns = f"Columns are {self.listing()}."
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
        """Return the value of a window or subquery, which only some scopes allow; None here."""
        return None

    def listing(self) -> str:
        """Return the names of the columns, at most twenty."""
        names = list(dict.fromkeys(field.name for field in self.fields if field.table != "#"))
        return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def _candidates(node: exp.Column, fields: Sequence[Field]) -> list[Field]:
    """Return the columns that a name may mean."""
    name = node.name.lower()
    table = node.table.lower()
    same_name = [field for field in fields if field.name.lower() == name]
    if table:
        return [field for field in same_name if field.table.lower() == table]
    return [field for field in same_name if not field.merged]


def _is_compared(node: exp.Column) -> bool:
    """Return True if a word is written where a text could be: sex = Male, sex IN (Male, Female)."""
    above = node.parent
    if isinstance(above, exp.In):
        return bool(node.arg_key == "expressions")
    if isinstance(above, exp.EQ | exp.NEQ | exp.Like | exp.ILike):
        return bool(node.arg_key == "expression")
    return False


def _instead_of_subquery(node: exp.Column) -> str | None:
    """Return what to write instead of a subquery that uses a column of an outer SELECT; None if this
    column is of none.
    """
    inner = node.find_ancestor(exp.Select)
    outer = inner.find_ancestor(exp.Select) if inner is not None else None
    if inner is None or outer is None:
        return None
    tables = {each.alias_or_name.lower(): each for each in outer.find_all(exp.Table)}
    table = tables.get(node.table.lower())
    if table is None or table.find_ancestor(exp.Select) is not outer:
        return None
    source = inner.args["from_"].this if inner.args.get("from_") else None
    match = node.parent
    item = inner.expressions[0].unalias()
    if not isinstance(item, exp.AggFunc):
        return (
            f"Write EXISTS (SELECT 1 FROM t WHERE t.owner = {node.table}.owner AND ...), or a join."
        )
    if not isinstance(source, exp.Table) or not isinstance(match, exp.Predicate):
        return "Join the grouped result: FROM a JOIN (SELECT x, COUNT(*) AS n FROM b GROUP BY x) AS s ON s.x = a.x."
    if not isinstance(match, exp.EQ):
        join = f"{spell(source)} JOIN {spell(table)} ON {spell(match)}"
        return f"Join instead: SELECT {node.table}.x, {spell(item)} FROM {join} GROUP BY {node.table}.x."
    other = match.expression if match.this is node else match.this
    key = other.name
    groups = f"SELECT {key}, {spell(item)} AS n FROM {source.name} GROUP BY {key}"
    return f"Join instead: FROM {spell(table)} JOIN ({groups}) AS s ON s.{key} = {spell(node)}."


def distinct_values(origins: Origins, rows: int) -> int:
    """Return the most distinct values that one person can have in columns of these origins, in this
    many rows.
    """
    stages = dict[str, tuple[int, int]]()
    for stage, _, most, values in origins:
        stages[stage] = most, stages.get(stage, (most, 1))[1] * values
    return min(rows, math.prod(min(pair) for pair in stages.values()))


def _is_owner(field: Field) -> bool:
    return isinstance(field.value.domain, Opaque) and field.value.domain.owner


def _column_of_stage(alias: str, index: int, field: Field) -> Column:
    """Return the column of a stage that has a field's value."""
    return Column(alias, OWNER if _is_owner(field) else f"c{index}")


def scan(
    table: Table, alias: str, engine_alias: str, links: frozenset[tuple[str, str]]
) -> Relation:
    """Return all rows of a private table in a snapshot: clamped, coded, at most max_rows of each
    person.
    """
    owner_column = table.visible_owner
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
        size = column.domain.size
        values = table.max_rows if size is None else size + 1  # and NULL
        origins = frozenset({(engine_alias, column.name, table.max_rows, values)})
        fields.append(Field(table=alias, name=column.name, value=value, origins=origins))
    # The visible owner column is the hidden one, whether or not the policy lists it.
    if owner_column is not None:
        value = Value(expression=Column(engine_alias, OWNER), domain=Opaque(owner=True))
        own = Field(table=alias, name=owner_column, value=value, origins=frozenset())
        names = [field.name for field in fields]
        if owner_column in names:
            fields[names.index(owner_column)] = own
        else:
            fields.insert(0, own)
    return Relation(
        source=Scan(table.name, engine_alias),
        fields=tuple(fields),
        rows=table.max_rows,
        plain=True,
        max_groups=table.max_groups,
    )


def _link(table: Table, column: str, links: frozenset[tuple[str, str]]) -> str | None:
    """Return the name of a key that leads to the owner: visits.visit_id, in visits and in tables
    that are owned through visits. None for other columns.
    """
    if isinstance(table.owner, Through) and table.owner.on == column:
        return f"{table.owner.table}.{column}"
    return f"{table.name}.{column}" if (table.name, column) in links else None


def links_of(tables: Mapping[str, Table]) -> frozenset[tuple[str, str]]:
    """Return the columns through which other tables are owned, each with its table."""
    owners = [table.owner for table in tables.values()]
    return frozenset((owner.table, owner.on) for owner in owners if isinstance(owner, Through))


def kind_of_domain(domain: Domain) -> Kind:
    """Return the type of a declared column in Postgres."""
    match domain:
        case Integers():
            return "integer" if max(abs(domain.first), abs(domain.last)) < 2**31 else "bigint"
        case Booleans():
            return "boolean"
        case Dates():
            return "date"
    return "other"


def value_domain(domain: Domain) -> ValueDomain:
    """Return the domain of values for a domain that the policy declares."""
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
