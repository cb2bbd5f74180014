"""Trees of `algebra` as SQL: one table of words, and the few forms in which dialects differ.

`Spelling` is DuckDB's dialect. Another is a class derived from it: its own tables of `words` and
`folds`, with all that is in ours, and the methods of the first section, where dialects differ. The
rest is SQL that databases share. The text is written once, when an engine is about to run it, and
is never read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import ClassVar

from discreet.algebra import (
    BEFORE,
    OWNER,
    ROWS,
    TOTAL,
    Aggregate,
    Call,
    Careful,
    Case,
    Cast,
    Column,
    Columns,
    Constant,
    ConstantTable,
    Distinct,
    Exists,
    Expression,
    Factor,
    Fold,
    Interval,
    Nearest,
    Numbers,
    Order,
    Over,
    OwnerJoin,
    PerPerson,
    Persons,
    Plain,
    PublicJoin,
    PublicScan,
    Query,
    Rank,
    Reading,
    Scan,
    Select,
    Source,
    Stage,
    Sum,
    UnionAll,
    key_column,
    number_column,
    owner_of,
)
from discreet.engines.layout import public
from discreet.engines.quoting import literal, name
from discreet.engines.words import FOLDS, WORDS, Word


@dataclass(frozen=True, slots=True)
class Spelling:
    """DuckDB's SQL. `careful` writes TRY around what is `Careful`, for a second run where the first
    one failed.
    """

    careful: bool = False
    words: ClassVar[Mapping[str, Word]] = WORDS
    folds: ClassVar[Mapping[str, Word]] = FOLDS

    # --- where dialects differ --------------------------------------------------------------------

    def name(self, identifier: str) -> str:
        """Write a name, quoted."""
        return name(identifier)

    def private_table(self, table: str) -> str:
        """Return the name of a private table in the snapshot."""
        return self.name(table)

    def step(self, step: str, query: str) -> str:
        """Write a step of WITH that is read again and again: here faster than to store it."""
        return f"{step} AS NOT MATERIALIZED ({query})"

    def wide(self, count: str) -> str:
        """Write a count of which sums and multiples are made, in 128 bits."""
        return count

    def call(self, node: Call) -> str:
        if node.name not in self.words:
            raise TypeError(f"no spelling for the call {node.name}")
        return self.words[node.name](self.all(node.arguments))

    def kind(self, kind: str) -> str:
        """Write a type of `Cast` and `Written`: those of `algebra.Kind`, DECIMAL(p, s), and lists
        of them.
        """
        return kind

    def cast(self, node: Cast) -> str:
        return f"CAST({self.expression(node.value)} AS {self.kind(node.kind)})"

    def attempt(self, value: str) -> str:
        """Write a value that is NULL where the engine fails on it."""
        return f"TRY({value})"

    def constant(self, value: Plain) -> str:
        match value:
            case None:
                return "NULL"
            case bool():
                return "TRUE" if value else "FALSE"
            case int():
                return str(value) if value >= 0 else f"({value})"
            case float():
                return repr(value)
            case datetime():
                return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
            case date():
                return f"DATE '{value.isoformat()}'"
            case Interval(count=count, unit=unit):
                return f"INTERVAL '{count}' {unit.upper()}"
            case str():
                return literal(value)

    def total(self, product: str, bits: int) -> str:
        """Write the sum of whole numbers, exact in so many bits; what fits in 64 need not be
        watched for more.
        """
        return f"{'sum_no_overflow' if bits == 64 else 'sum'}({product})"

    def summand(self, value: str, bits: int) -> str:
        """Write a number that is multiplied and added up in so many bits."""
        return f"CAST({value} AS {self.kind('BIGINT' if bits == 64 else 'HUGEINT')})"

    def together(self, values: Sequence[str]) -> str:
        """Write several values as one, equal where all of them are, also where they are NULL."""
        return f"row({', '.join(values)})"

    def first_of_each(self, relation: str, stage: str, pins: str, most: int) -> str:
        """Write a query of so many rows of each combination of pins, whichever they are."""
        kept = f"QUALIFY row_number() OVER (PARTITION BY {pins}) <= {most}"
        return f"(SELECT * FROM {relation} AS {stage} {kept}) AS {stage}"

    def place(self, node: PublicScan) -> str:
        """Return the name of a public table in the snapshot."""
        return public(node.table)

    def place_in_values(self, place: int) -> str:
        """Write the name that a column of VALUES has."""
        return f"col{place}"

    def wide_cell(self, cell: str, width: int) -> str:
        """Write the place of a cell among wide ones: the whole part of a quotient of
        whole numbers.
        """
        return cell if width == 1 else f"{cell} // {width}"

    def by_all(self, keys: int) -> str:
        """Write GROUP BY all columns of a SELECT that are no aggregates, which are its
        first ones.
        """
        return "GROUP BY ALL"

    # --- expressions ------------------------------------------------------------------------------

    def expression(self, node: Expression) -> str:
        match node:
            case Column(stage=stage, name=column):
                return f"{stage}.{self.name(column)}"
            case Constant(value=value):
                return self.constant(value)
            case Call():
                return self.call(node)
            case Cast():
                return self.cast(node)
            case Case(branches=branches, otherwise=otherwise):
                listed = " ".join(
                    f"WHEN {self.expression(a)} THEN {self.expression(b)}" for a, b in branches
                )
                return f"(CASE {listed} ELSE {self.expression(otherwise)} END)"
            case Careful(value=value):
                if self.careful:
                    return self.attempt(self.expression(value))
                return self.expression(value)
            case Fold():
                return self.fold(node)
            case Over():
                return self.over(node)
            case Exists(source=source, owner=owner, where=where):
                # Privacy: S4. Only rows of the same person decide.
                conditions = [
                    f"{self.expression(owner_of(source))} = {self.expression(owner)}",
                    *self.all(where),
                ]
                return (
                    f"EXISTS (SELECT 1 FROM {self.source(source)} WHERE {' AND '.join(conditions)})"
                )
        raise TypeError(f"no spelling for {type(node).__name__}")

    def fold(self, node: Fold) -> str:
        if node.name not in self.folds:
            raise TypeError(f"no spelling for the aggregate {node.name}")
        return self.folds[node.name](self.all(node.arguments)) + self.filtered(node.where)

    def over(self, node: Over) -> str:
        parts = ", ".join(self.all((node.owner, *node.partition)))
        order = f" ORDER BY {', '.join(map(self.order, node.order))}" if node.order else ""
        frame = (
            ""
            if node.frame is None
            else f" {node.frame.unit} BETWEEN {node.frame.start} AND {node.frame.end}"
        )
        return f"{self.fold(node.function)} OVER (PARTITION BY {parts}{order}{frame})"

    def order(self, order: Order) -> str:
        direction = "DESC" if order.descending else "ASC"
        nulls = "FIRST" if order.nulls_first else "LAST"
        return f"{self.expression(order.value)} {direction} NULLS {nulls}"

    def all(self, nodes: Sequence[Expression]) -> list[str]:
        return [self.expression(each) for each in nodes]

    def filtered(self, where: Expression | None) -> str:
        return "" if where is None else f" FILTER (WHERE {self.expression(where)})"

    def where(self, conditions: Sequence[Expression]) -> str:
        return f" WHERE {' AND '.join(self.all(conditions))}" if conditions else ""

    # --- sources ----------------------------------------------------------------------------------

    def source(self, node: Source) -> str:
        match node:
            case Scan(table=table, stage=stage):
                return f"{self.private_table(table)} AS {stage}"
            case Stage(query=query, stage=stage):
                return f"({self.query(query)}) AS {stage}"
            case OwnerJoin(left=left, right=right, on=on, outer=outer):
                # Privacy: S4. Whatever else the condition says, rows of different people never
                # meet.
                owners = f"{self.expression(owner_of(left))} = {self.expression(owner_of(right))}"
                return self.join(
                    self.source(left), self.source(right), [owners, *self.all(on)], outer
                )
            case PublicJoin(left=left, right=right, pins=pins, on=on, outer=outer):
                conditions = [
                    f"{self.expression(ours)} = {self.expression(theirs)}" for ours, theirs in pins
                ]
                return self.join(
                    self.source(left), self.public(right, node), [*conditions, *self.all(on)], outer
                )

    def join(self, left: str, right: str, conditions: Sequence[str], outer: bool) -> str:
        word = "LEFT JOIN" if outer else "JOIN"
        return f"{left} {word} {right} ON {' AND '.join(conditions) or 'TRUE'}"

    def public(self, node: PublicScan | ConstantTable, join: PublicJoin) -> str:
        """Write a public table with at most `meets` rows of equal pins: no private row can meet
        more.
        """
        inner = self.place(node) if isinstance(node, PublicScan) else self.written(node)
        if not join.pins:
            return f"(SELECT * FROM {inner} AS {node.stage} LIMIT {join.meets}) AS {node.stage}"
        pinned = ", ".join(self.expression(theirs) for _, theirs in join.pins)
        return self.first_of_each(inner, node.stage, pinned, join.meets)

    def written(self, node: ConstantTable) -> str:
        if not node.rows:
            parts = (
                f"CAST(NULL AS {self.kind(kind)}) AS {self.name(each)}"
                for each, kind in zip(node.columns, node.kinds, strict=True)
            )
            return f"(SELECT {', '.join(parts)} WHERE FALSE)"
        rows = (
            ", ".join(
                f"CAST({self.constant(value)} AS {self.kind(kind)})"
                for value, kind in zip(row, node.kinds, strict=True)
            )
            for row in node.rows
        )
        listed = ", ".join(f"({row})" for row in rows)
        columns = ", ".join(
            f"{self.place_in_values(place)} AS {self.name(each)}"
            for place, each in enumerate(node.columns)
        )
        return f"(SELECT {columns} FROM (VALUES {listed}) AS listed)"

    # --- queries ----------------------------------------------------------------------------------

    def query(self, node: Query) -> str:
        match node:
            case Select(source=source, columns=columns, where=where, distinct=distinct):
                head = "SELECT DISTINCT" if distinct else "SELECT"
                listed = [
                    f"{self.expression(owner_of(source))} AS {self.name(OWNER)}",
                    *self.columns(columns),
                ]
                return f"{head} {', '.join(listed)} FROM {self.source(source)}{self.where(where)}"
            case PerPerson(source=source, keys=keys, columns=columns, where=where):
                # Privacy: S4. The owner is always a key, so that rows of different people are never
                # in one group.
                listed = [
                    f"{self.expression(owner_of(source))} AS {self.name(OWNER)}",
                    *self.columns((*keys, *columns)),
                ]
                select = f"SELECT {', '.join(listed)} FROM {self.source(source)}{self.where(where)}"
                return f"{select} {by_place(1 + len(keys))}"
            case UnionAll(parts=parts):
                return " UNION ALL ".join(map(self.query, parts))

    def columns(self, columns: Columns) -> list[str]:
        return [f"{self.expression(value)} AS {self.name(each)}" for each, value in columns]

    def numbers(self, node: Numbers) -> str:
        """Write the query whose result leaves the engine."""
        return self.nearest(node) if isinstance(node, Nearest) else self.aggregate(node)

    def nearest(self, node: Nearest) -> str:
        """Write a query of keys, the cell, its rows, those in cells before it and those of its
        group.
        """
        keys = [key_column(place) for place in range(len(node.counted.keys) - 1)]
        listed = "".join(f"{key}, " for key in keys)
        near = " OR ".join(map(_within, node.ranks))
        steps = [self.step("r", self.cells(node.counted, keys))]
        for step, width in enumerate(node.widths):
            if step == 0:
                first = f"{listed}{self.wide_cell('p', width)} AS b, 0 AS a, 0 AS base"
                counted = f"SELECT {first}, count(*) AS n FROM r {self.by_all(len(keys) + 3)}"
                total = f"sum({self.wide('n')}) OVER ({_partition(keys)})"
            else:
                # Also of keys that are NULL, which is a key like any other where it is meant.
                known = {key_column(place) for place in node.counted.known}
                same = [
                    f"r.{key} {'=' if key in known else 'IS NOT DISTINCT FROM'} w.{key}"
                    for key in keys
                ]
                joined = " AND ".join(
                    [*same, f"{self.wide_cell('r.p', node.widths[step - 1])} = w.b"]
                )
                own = "".join(f"r.{key} AS {key}, " for key in keys)
                counted = (
                    f"SELECT {own}{self.wide_cell('r.p', width)} AS b, w.b AS a, w.before AS base, w.total AS total, "
                    f"count(*) AS n FROM r JOIN w{step - 1} AS w ON {joined} {self.by_all(len(keys) + 4)}"
                )
                total = "total"
            before = (
                f"base + sum({self.wide('n')}) OVER ({_partition([*keys, 'a'])} ORDER BY b) - n"
            )
            ranked = f"SELECT {listed}b, n, {before} AS before, {total} AS total FROM ({counted}) AS counted"
            steps.append(f"w{step} AS (SELECT * FROM ({ranked}) AS ranked WHERE {near})")
        whole = self.kind("BIGINT")
        before = f"CAST(before AS {whole}) AS {BEFORE}"
        total = f"CAST(total AS {whole}) AS {TOTAL}"
        columns = f"{listed}b AS {key_column(len(keys))}, n AS {ROWS}, {before}, {total}"
        return f"WITH {', '.join(steps)} SELECT {columns} FROM w{len(node.widths) - 1}"

    def cells(self, node: Aggregate, keys: Sequence[str]) -> str:
        """Write a query of each row's keys and its cell, p."""
        names = [*keys, "p"]
        listed = ", ".join(
            f"{self.expression(key)} AS {each}" for key, each in zip(node.keys, names, strict=True)
        )
        inner = f"SELECT {listed} FROM {self.source(node.source)}{self.where(node.where)}"
        known = " AND ".join(f"{names[place]} IS NOT NULL" for place in node.known)
        return f"SELECT * FROM ({inner}) AS cells WHERE {known}"

    def aggregate(self, node: Aggregate) -> str:
        """Write one row for each group: keys in their order, then readings in theirs, under names
        of our own.
        """
        keys = [
            f"{self.expression(key)} AS {key_column(place)}" for place, key in enumerate(node.keys)
        ]
        readings = [
            f"{self.reading(each, node)} AS {number_column(place)}"
            for place, each in enumerate(node.readings)
        ]
        select = f"SELECT {', '.join([*keys, *readings])} FROM {self.source(node.source)}{self.where(node.where)}"
        if not keys:
            return select
        known = " AND ".join(f"{key_column(place)} IS NOT NULL" for place in node.known)
        grouped = f"{select} {by_place(len(keys))}"
        return f"SELECT * FROM ({grouped}) AS grouped WHERE {known}" if known else grouped

    def reading(self, node: Reading, aggregate: Aggregate) -> str:
        match node:
            case Sum(factors=()):
                return f"count(*){self.filtered(node.where)}"
            case Sum(factors=factors, bits=bits):
                powers = [self.factor(each) for each in factors for _ in range(each.power)]
                if not powers:
                    return f"count({self.counted(factors)}){self.filtered(node.where)}"
                product = " * ".join(self.summand(each, bits) for each in powers)
                # the engine adds up integers of any size in 128 bits
                if bits == 128 and len(powers) == 1:
                    product = powers[0]
                # a row without one of them adds nothing
                if any(not each.power for each in factors):
                    known = " AND ".join(f"{self.factor(each)} IS NOT NULL" for each in factors)
                    product = f"CASE WHEN {known} THEN {product} END"
                return f"{self.total(product, bits)}{self.filtered(node.where)}"
            case Persons():
                return f"count(DISTINCT {self.expression(owner_of(aggregate.source))}){self.filtered(node.where)}"
            case Distinct(values=values, ends=ends):
                listed = self.all(values)
                if ends is not None:
                    # not LEAST and GREATEST, to which NULL is one of the ends
                    listed = [_between(each, *ends) for each in listed]
                inner = listed[0] if len(listed) == 1 else self.together(listed)
                return f"count(DISTINCT {inner}){self.filtered(node.where)}"

    def factor(self, factor: Factor) -> str:
        value = self.expression(factor.value)
        # What is beyond its range, which the analysis says cannot be, is NULL: half the time of
        # LEAST and GREATEST.
        return _between(value, factor.lo, factor.hi) if factor.clamp else value

    def counted(self, factors: Sequence[Factor]) -> str:
        values = [self.factor(each) for each in factors]
        if len(values) == 1:
            return values[0]
        return f"CASE WHEN {' AND '.join(f'{each} IS NOT NULL' for each in values)} THEN 1 END"


def _between(value: str, lo: int, hi: int) -> str:
    """A value that is held to a range: NULL beyond it."""
    return f"(CASE WHEN {value} BETWEEN {lo} AND {hi} THEN {value} END)"


def by_place(keys: int) -> str:
    """Write GROUP BY the first columns of a SELECT."""
    # Privacy: never by their names. A column of the rows that is called k0 would be grouped by
    # instead of the key.
    return f"GROUP BY {', '.join(str(place + 1) for place in range(keys))}"


def _within(rank: Rank) -> str:
    """Return the condition that a cell is within reach, in units of rank / times,
    which 128 bits hold.
    """
    if rank.reach is None:
        return "TRUE"
    wanted = f"({rank.share} * total + ({rank.shift * rank.times}))"
    reach = rank.reach * rank.times
    return f"({rank.times} * before - {wanted} < {reach} AND {wanted} - {rank.times} * (before + n) < {reach})"


def _partition(keys: Sequence[str]) -> str:
    return f"PARTITION BY {', '.join(keys)}" if keys else ""
