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

# What decides a value: sources and their columns, each with the number of rows that one person can
# have in the source, and the number of values that the column can have.
Origins = frozenset[tuple[str, str, int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonCounts:
    """Counts the rows and groups that one person can have under one policy."""

    policy: Policy
    # the origins of columns of stages, as far as they were derived
    memo: dict[tuple[Stage, str], Origins] = field(default_factory=dict, compare=False, repr=False)

    # --- how many rows ----------------------------------------------------------------------------

    def rows(self, source: Source, where: Sequence[Expression] = ()) -> int:
        """Return the most rows of a source that satisfy the conditions and belong to one person."""
        match source:
            case Scan(table=table):
                most = private_table(table, self.policy).max_rows
            case OwnerJoin(left=left, right=right, on=on, outer=outer):
                partners = max(int(outer), self.rows(right, (*on, *where)))
                most = self.rows(left, where if outer else (*on, *where)) * partners
            case PublicJoin(left=left, meets=meets, outer=outer):
                partners = max(int(outer), meets)
                most = self.rows(left, where) * partners
            case Stage(query=query):
                most = self.rows_of(query)
        for _, limit in self.numberings("row_number", source, where):
            most = min(most, limit)
        return most

    def rows_of(self, query: Query) -> int:
        """Return the most rows of a query that belong to one person."""
        match query:
            case UnionAll(parts=parts):
                return sum(map(self.rows_of, parts))
            case Select(source=source, where=where, distinct=False):
                return self.rows(source, where)
            case Select(source=source, columns=columns, where=where):
                combinations = self.values([value for _, value in columns], source)
                return min(self.rows(source, where), combinations)
            case PerPerson(source=source, keys=keys, where=where):
                combinations = self.values([value for _, value in keys], source)
                return min(self.rows(source, where), combinations)

    def numberings(
        self, function: str, source: Source, where: Sequence[Expression]
    ) -> Iterator[tuple[Over, int]]:
        """Yield the windows that number (or rank) each person's rows of this very source and are
        limited by a condition `n <= k`, `n < k` or `n = k`, each with how many numbers it leaves.
        """
        if not isinstance(source, Stage):
            return
        for condition in conjuncts(where):
            match condition:
                case Call(
                    name="<=" | "<" | "=" as sign,
                    arguments=(Column(stage=stage, name=name), Constant(value=int(k))),
                ) if source.stage == stage:
                    window = self.inside(source, name)
                    if not isinstance(window, Over) or window.partition:
                        continue
                    if window.function == Fold(function, ()):
                        yield window, _numbers_left(sign, int(k))

    def inside(self, source: Source, name: str) -> Expression | None:
        """Return the expression of a stage's column, followed inwards through SELECTs that only
        hand a column on.
        """
        while isinstance(source, Stage) and isinstance(source.query, Select):
            value = dict(source.query.columns).get(name)
            inner = source.query.source
            if not isinstance(value, Column) or not isinstance(inner, Stage):
                return value
            if value.stage != inner.stage:
                return value
            source = inner
            name = value.name
        return None

    # --- how many groups --------------------------------------------------------------------------

    def values(self, expressions: Iterable[Expression], source: Source) -> int:
        """Return the most combinations of values of these expressions in one person's rows."""
        sources = dict[str, tuple[int, int]]()
        for name, _, rows, values in self.origins(expressions, source):
            most, combinations = sources.get(name, (0, 1))
            sources[name] = max(most, rows), combinations * values
        return math.prod(min(rows, values) for rows, values in sources.values())

    def groups(
        self, keys: Sequence[Expression], source: Source, where: Sequence[Expression]
    ) -> int:
        """Return the most groups by these keys that one person's rows can be in."""
        most = min(self.rows(source, where), self.values(keys, source))
        for window, limit in self.numberings("dense_rank", source, where):
            order = self.order_of(window, source)
            if all(self.resolve(key, source) in order for key in keys):
                most = min(most, limit)
        return most

    def order_of(self, window: Over, source: Source) -> set[Expression]:
        """Return the values that a window orders by, as written and as resolved further in."""
        query = source.query if isinstance(source, Stage) else None
        below = query.source if isinstance(query, Select) else source
        values = {place.value for place in window.order}
        return values | {self.resolve(value, below) for value in values}

    def resolve(self, key: Expression, source: Source) -> Expression:
        """Return a key as an expression over the rows inside the stage that it is read from."""

        def definition(column: Column) -> Expression:
            if not isinstance(source, Stage) or column.stage != source.stage:
                return column
            return self.inside(source, column.name) or column

        return with_columns(key, definition)

    def origins(self, expressions: Iterable[Expression], source: Source) -> Origins:
        """Return the sources whose rows decide the values of expressions.

        Windows and EXISTS read all rows of the person, so they count as a source of their own with
        that many rows.
        """
        origins: Origins = frozenset()
        for expression in expressions:
            for part in walk(expression):
                if isinstance(part, Over | Exists | Fold):
                    origins |= {_any(self.rows(source), "")}
                elif isinstance(part, Column):
                    origins |= self.column_origins(part, source)
        return origins

    def column_origins(self, column: Column, source: Source) -> Origins:
        """Return the sources whose rows decide the value of a column."""
        if column.name == OWNER:
            return frozenset()
        match source:
            case Scan(stage=stage, table=table) if stage == column.stage:
                declared = private_table(table, self.policy)
                most = declared.max_rows
                one = declared.columns.get(column.name)
                size = None if one is None else one.domain.size
                values = most if size is None else size + 1  # and NULL
                return frozenset({(stage, column.name, most, values)})
            case Stage(stage=stage) if stage == column.stage:
                return self.stage_origins(column.name, source)
            case OwnerJoin(left=left) | PublicJoin(left=left) if column.stage in stages(left):
                return self.column_origins(column, left)
            case OwnerJoin(right=right, outer=outer):
                inner = self.column_origins(column, right)
                return _add_null(inner, column) if outer else inner
            case PublicJoin(left=left, right=right, meets=meets, outer=outer) if (
                column.stage == right.stage
            ):
                conditions = [each for pin in source.pins for each in pin]
                conditions += source.on
                if meets > 1 or any(map(_reads_other_rows, conditions)):
                    return frozenset({_any(self.rows(source), right.stage)})
                # At most one public row matches: it is a function of the private columns in the
                # conditions of the join.
                private = [part for each in conditions for part in columns_in(each, left)]
                inner = self.origins(private, left)
                return _add_null(inner, column) if outer else inner
        raise Unproved(f"the plan reads {column.stage}.{column.name}, which is not there")

    def stage_origins(self, name: str, source: Stage) -> Origins:
        """Return the sources whose rows decide a stage's column."""
        # Without the memo, columns used twice in each stage would be derived 2^stages times.
        if (source, name) not in self.memo:
            self.memo[source, name] = self.inner_origins(name, source)
        return self.memo[source, name]

    def inner_origins(self, name: str, source: Stage) -> Origins:
        """Derive the sources whose rows decide a stage's column."""
        query = source.query
        if not isinstance(query, Select):
            return frozenset({_any(self.rows_of(query), source.stage)})
        value = dict(query.columns).get(name)
        if value is None:
            raise Unproved(f"the plan reads {source.stage}.{name}, which is not there")
        # Two uses of one query read different rows: name inner sources by the path to them.
        inner = self.origins([value], query.source)
        return frozenset((f"{source.stage}.{each[0]}", *each[1:]) for each in inner)


def _reads_other_rows(expression: Expression) -> bool:
    """Return True if other rows of the person decide a value, and columns that `walk` does not find."""
    return any(isinstance(part, Over | Exists | Fold) for part in walk(expression))


def _numbers_left(sign: str, k: int) -> int:
    """Return how many of the numbers 1, 2, 3, ... satisfy `n <= k`, `n < k` or `n = k`, at most."""
    if sign == "=":
        return 1
    last = k - 1 if sign == "<" else k
    return max(last, 0)


def _add_null(origins: Origins, column: Column) -> Origins:
    """Return the origins of a column of an outer join's right side, where NULL is one more value.

    A column without origins is constant; with NULL it has two values.
    """
    if not origins:
        return frozenset({_any(2, f"{column.stage}.{column.name}")})
    return frozenset((*each[:2], each[2] + 1, each[3] + 1) for each in origins)


def _any(rows: int, source: str) -> tuple[str, str, int, int]:
    """Return the origin of a value that may differ in each of these rows."""
    return source, "", rows, rows
