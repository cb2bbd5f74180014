"""How many rows and groups one person can have, derived from a tree and the policy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from discreet.algebra import (
    OWNER,
    Column,
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
    walk,
    with_columns,
)
from discreet.errors import Unproved
from discreet.policy.policy import Policy
from discreet.sql.check.trees import in_source, limits, private_table, stages

Origins = frozenset[tuple[str, int]]  # sources, each with how many rows of it one person can have


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Rows and groups that one person can have, by one policy."""

    policy: Policy
    known: dict[tuple[Stage, str], Origins] = field(default_factory=dict, compare=False, repr=False)

    # --- how many rows ----------------------------------------------------------------------------

    def rows(self, source: Source, where: Sequence[Expression] = ()) -> int:
        """Return how many rows of a source that satisfy the conditions one person can have."""
        match source:
            case Scan(table=table):
                found = private_table(table, self.policy).max_rows
            case OwnerJoin(left=left, right=right, outer=outer):
                found = self.rows(left, where) * max(int(outer), self.rows(right, where))
            case PublicJoin(left=left, meets=meets, outer=outer):
                found = self.rows(left, where) * max(int(outer), meets)
            case Stage(query=query):
                found = self.rows_of(query)
        return min([found, *self.numbered(source, where)])

    def rows_of(self, query: Query) -> int:
        match query:
            case Select(source=source, columns=columns, where=where, distinct=distinct):
                rows = self.rows(source, where)
                return (
                    min(rows, self.values([each for _, each in columns], source))
                    if distinct
                    else rows
                )
            case PerPerson(source=source, keys=keys, where=where):
                return min(
                    self.rows(source, where), self.values([each for _, each in keys], source)
                )
            case UnionAll(parts=parts):
                return sum(self.rows_of(part) for part in parts)

    def numbered(self, source: Source, where: Sequence[Expression]) -> Iterator[int]:
        """Bounds by conditions `row number <= k`, where the number counts each person's rows of
        this very source.
        """
        for name, most in limits(source, where):
            over = self.inside(source, name)
            if (
                isinstance(over, Over)
                and over.function == Fold("row_number", ())
                and not over.partition
            ):
                yield most

    def inside(self, source: Source, name: str) -> Expression | None:
        """Return what a column of a stage is computed as, through SELECTs that keep rows as they
        are.
        """
        while isinstance(source, Stage) and isinstance(source.query, Select):
            found, inner = dict(source.query.columns).get(name), source.query.source
            if (
                not isinstance(found, Column)
                or not isinstance(inner, Stage)
                or found.stage != inner.stage
            ):
                return found
            source, name = inner, found.name
        return None

    # --- how many groups --------------------------------------------------------------------------

    def values(self, expressions: Sequence[Expression], source: Source) -> int:
        """Return how many combinations of values of these expressions one person's rows can have,
        at most.
        """
        found = frozenset[tuple[str, int]]().union(
            *(self.origins(each, source) for each in expressions)
        )
        return math.prod(rows for _, rows in found)

    def touched(
        self, keys: Sequence[Expression], source: Source, where: Sequence[Expression]
    ) -> int:
        """Return how many groups of these keys one person's rows can be in."""
        most = [self.rows(source, where), self.values(keys, source)]
        for name, limit in limits(source, where):
            over = self.inside(source, name)
            if (
                isinstance(over, Over)
                and over.function == Fold("dense_rank", ())
                and not over.partition
            ):
                query = source.query if isinstance(source, Stage) else None
                below = query.source if isinstance(query, Select) else source
                ranked = {
                    part
                    for each in over.order
                    for part in (each.value, self.resolved(each.value, below))
                }
                most += [limit] if all(self.resolved(key, source) in ranked for key in keys) else []
        return min(most)

    def resolved(self, key: Expression, source: Source) -> Expression:
        """A key as an expression over the rows inside the stage that it is read from."""
        stage = source.stage if isinstance(source, Stage) else None
        return with_columns(
            key,
            lambda each: (self.inside(source, each.name) if each.stage == stage else None) or each,
        )

    def origins(self, node: Expression, source: Source) -> Origins:
        """The sources whose rows decide the value of an expression; all rows of the person for
        windows and EXISTS.
        """
        found: Origins = frozenset()
        for part in walk(node):
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
            case OwnerJoin(left=left, right=right, outer=outer):
                if column.stage in stages(left):
                    return self.column_origins(column, left)
                inner = self.column_origins(column, right)
                return _or_null(inner, column) if outer else inner
            case PublicJoin(left=left, right=right, meets=meets, pins=pins, on=on, outer=outer):
                if column.stage in stages(left):
                    return self.column_origins(column, left)
                if column.stage == right.stage and meets > 1:
                    return frozenset({(right.stage, self.rows(source))})
                # the one public row that is met is a function of what it is met by
                if column.stage == right.stage:
                    met = [*(ours for ours, _ in pins), *on]
                    private = [part for each in met for part in walk(each) if in_source(part, left)]
                    inner = frozenset[tuple[str, int]]().union(
                        *(self.origins(part, left) for part in private)
                    )
                    return _or_null(inner, column) if outer else inner
        raise Unproved(f"the plan reads {column.stage}.{column.name}, which is not there")

    def stage_origins(self, name: str, source: Stage) -> Origins:
        # what is used twice in every stage is looked at once in each
        if (source, name) not in self.known:
            query, found = source.query, frozenset({(source.stage, self.rows_of(source.query))})
            if isinstance(query, Select):
                if name not in dict(query.columns):
                    raise Unproved(f"the plan reads {source.stage}.{name}, which is not there")
                inner = self.origins(dict(query.columns)[name], query.source)
                # Two uses of one query are different rows: what lies inside is named by its way in.
                found = frozenset((f"{source.stage}.{each}", rows) for each, rows in inner)
            self.known[source, name] = found
        return self.known[source, name]


def _or_null(found: Origins, column: Column) -> Origins:
    """In an outer join NULL is one more value; a constant of a side that may be missing is two
    values.
    """
    return frozenset((name, rows + 1) for name, rows in found) or frozenset(
        {(f"{column.stage}.{column.name}", 2)}
    )
