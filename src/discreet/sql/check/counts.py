"""Derive how many rows and groups one person can have, from a tree and the policy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from discreet.algebra import (
    OWNER,
    Call,
    Column,
    Constant,
    Exists,
    Expression,
    Fold,
    Over,
    OwnerJoin,
    PerPerson,
    PublicJoin,
    Query,
    Scan,
    Select,
    Source,
    Stage,
    UnionAll,
    conjuncts,
    stages,
    walk,
    with_columns,
)
from discreet.errors import Unproved
from discreet.policy.policy import Policy
from discreet.sql.check.whose import columns_in, private_table

Origins = frozenset[tuple[str, int]]  # sources, each with how many rows of it one person can have


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonCounts:
    """Rows and groups that one person can have, by one policy."""

    policy: Policy
    known: dict[tuple[Stage, str], Origins] = field(default_factory=dict, compare=False, repr=False)

    # --- how many rows ----------------------------------------------------------------------------

    def rows(self, source: Source, where: Sequence[Expression] = ()) -> int:
        """Return how many rows of a source that satisfy the conditions one person can have."""
        match source:
            case Scan(table=table):
                most = private_table(table, self.policy).max_rows
            case OwnerJoin(left=left, right=right, outer=outer):
                most = self.rows(left, where) * max(int(outer), self.rows(right, where))
            case PublicJoin(left=left, meets=meets, outer=outer):
                most = self.rows(left, where) * max(int(outer), meets)
            case Stage(query=query):
                most = self.rows_of(query)
        return min([most, *(limit for _, limit in self.numberings("row_number", source, where))])

    def rows_of(self, query: Query) -> int:
        match query:
            case UnionAll(parts=parts):
                return sum(map(self.rows_of, parts))
            case Select(source=source, where=where, distinct=False):
                return self.rows(source, where)
            case Select(source=source, columns=columns, where=where):
                values = self.values((value for _, value in columns), source)
                return min(self.rows(source, where), values)
            case PerPerson(source=source, keys=keys, where=where):
                values = self.values((value for _, value in keys), source)
                return min(self.rows(source, where), values)

    def numberings(
        self, function: str, source: Source, where: Sequence[Expression]
    ) -> Iterator[tuple[Over, int]]:
        """Yield the windows that number each person's rows of this very source, or rank them, with
        how many places conditions leave: `n <= k`, `n < k`, `n = k`.
        """
        for each in conjuncts(where):
            match each:
                case Call(
                    name="<=" | "<" | "=" as sign,
                    arguments=(Column(stage=stage, name=name), Constant(value=int(k))),
                ) if isinstance(source, Stage) and source.stage == stage:
                    window = self.inside(source, name)
                    if not isinstance(window, Over) or window.partition:
                        continue
                    if window.function == Fold(function, ()):
                        yield window, 1 if sign == "=" else max(int(k) - (sign == "<"), 0)

    def inside(self, source: Source, name: str) -> Expression | None:
        """Return what a column of a stage is computed as, through SELECTs that keep rows as they
        are.
        """
        while isinstance(source, Stage) and isinstance(source.query, Select):
            value, inner = dict(source.query.columns).get(name), source.query.source
            if not isinstance(value, Column) or not isinstance(inner, Stage):
                return value
            if value.stage != inner.stage:
                return value
            source, name = inner, value.name
        return None

    # --- how many groups --------------------------------------------------------------------------

    def values(self, expressions: Iterable[Expression], source: Source) -> int:
        """Return how many combinations of values of these expressions one person's rows can have,
        at most.
        """
        return math.prod(rows for _, rows in self.origins(expressions, source))

    def groups(
        self, keys: Sequence[Expression], source: Source, where: Sequence[Expression]
    ) -> int:
        """Return how many groups of these keys one person's rows can be in."""
        most = min(self.rows(source, where), self.values(keys, source))
        for window, limit in self.numberings("dense_rank", source, where):
            ranked = self.order_of(window, source)
            if all(self.resolve(key, source) in ranked for key in keys):
                most = min(most, limit)
        return most

    def order_of(self, window: Over, source: Source) -> set[Expression]:
        """Return what a window orders rows by: as it is written, and over the rows further in."""
        query = source.query if isinstance(source, Stage) else None
        below = query.source if isinstance(query, Select) else source
        values = {each.value for each in window.order}
        return values | {self.resolve(value, below) for value in values}

    def resolve(self, key: Expression, source: Source) -> Expression:
        """Return a key as an expression over the rows inside the stage that it is read from."""

        def computed_as(column: Column) -> Expression:
            if not isinstance(source, Stage) or column.stage != source.stage:
                return column
            return self.inside(source, column.name) or column

        return with_columns(key, computed_as)

    def origins(self, expressions: Iterable[Expression], source: Source) -> Origins:
        """Return the sources whose rows decide the values of expressions; all rows of the person
        for windows and EXISTS.
        """
        found: Origins = frozenset()
        for part in (part for each in expressions for part in walk(each)):
            if isinstance(part, Over | Exists | Fold):
                found |= {("", self.rows(source))}
            elif isinstance(part, Column):
                found |= self.column_origins(part, source)
        return found

    def column_origins(self, column: Column, source: Source) -> Origins:
        if column.name == OWNER:
            return frozenset()
        match source:
            case Scan(stage=stage, table=table) if stage == column.stage:
                return frozenset({(stage, private_table(table, self.policy).max_rows)})
            case Stage(stage=stage) if stage == column.stage:
                return self.stage_origins(column.name, source)
            case OwnerJoin(left=left) | PublicJoin(left=left) if column.stage in stages(left):
                return self.column_origins(column, left)
            case OwnerJoin(right=right, outer=outer):
                inner = self.column_origins(column, right)
                return _or_null(inner, column) if outer else inner
            case PublicJoin(right=right, meets=meets) if column.stage == right.stage and meets > 1:
                return frozenset({(right.stage, self.rows(source))})
            case PublicJoin(left=left, right=right, outer=outer) if column.stage == right.stage:
                # The one public row that is met is a function of what it is met by.
                met_by = [*(ours for ours, _ in source.pins), *source.on]
                private = [part for each in met_by for part in columns_in(each, left)]
                inner = self.origins(private, left)
                return _or_null(inner, column) if outer else inner
        raise Unproved(f"the plan reads {column.stage}.{column.name}, which is not there")

    def stage_origins(self, name: str, source: Stage) -> Origins:
        # What is used twice in every stage is looked at once in each.
        if (source, name) not in self.known:
            self.known[source, name] = self.inner_origins(name, source)
        return self.known[source, name]

    def inner_origins(self, name: str, source: Stage) -> Origins:
        query = source.query
        if not isinstance(query, Select):
            return frozenset({(source.stage, self.rows_of(query))})
        value = dict(query.columns).get(name)
        if value is None:
            raise Unproved(f"the plan reads {source.stage}.{name}, which is not there")
        # Two uses of one query are different rows: what lies inside is named by its way in.
        inner = self.origins([value], query.source)
        return frozenset((f"{source.stage}.{each}", rows) for each, rows in inner)


def _or_null(found: Origins, column: Column) -> Origins:
    """Return the origins of a column of an outer join's right side: NULL is one more value, and a
    constant there is two.
    """
    if not found:
        return frozenset({(f"{column.stage}.{column.name}", 2)})
    return frozenset((name, rows + 1) for name, rows in found)
