"""A private table for descriptions: an expression for each column, and the reading of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from discreet.algebra import (
    Aggregate,
    Column,
    Columns,
    ConstantTable,
    Expression,
    Factor,
    Persons,
    PublicJoin,
    Reading,
    Scan,
    Select,
    Source,
    Stage,
    Sum,
    call,
    case,
    expression,
)
from discreet.budget import Neighbors
from discreet.mechanisms.shapes import Movement
from discreet.policy.policy import Policy, Table
from discreet.sql.rows.relation import scan
from discreet.sql.values.value import Category, Value
from discreet.synthetic.columns.axis import place_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """A table as the engine reads it.

    `lists` has, by column, a text's expression and the table of values to look it up in. If rows
    have a `weight`, the rows of one person weigh at most `unit` together, and a count of `unit` is
    one row.
    """

    scan: Source
    max_rows: int
    neighbors: Neighbors
    values: Mapping[str, Value]
    lists: Mapping[str, tuple[Expression, ConstantTable]] = field(default_factory=dict)
    weight: Expression | None = None
    unit: int = 1

    @property
    def most(self) -> int:
        """Return the most that one person's rows count together."""
        return self.max_rows if self.weight is None else self.unit

    @property
    def moved(self) -> Movement:
        """Return how far one person moves the counts of rows by cell."""
        times = 2 if self.neighbors == "change_one" else 1
        return Movement(l1=times * self.most, l2_squared=times * self.most**2)

    @property
    def reading(self) -> Sum:
        """Return the sum over the rows of `placed` in a cell: of ones, or of their weights."""
        _, reading = self.weighing("placed")
        return reading

    def weighing(self, stage: str) -> tuple[Columns, Sum]:
        """Return the weight column that a stage over `placed` rows must have, and the sum of the
        weights there.
        """
        if self.weight is None:
            return (), Sum()
        factor = Factor(Column(stage, "weight"), 0, self.unit, 1, True)
        return (("weight", Column("placed", "weight")),), Sum((factor,))

    def rows(self, columns: Sequence[str]) -> Source:
        """Return all rows, joined with the lists that these columns need."""
        source: Source = self.scan
        for name in columns:
            if name in self.lists:
                text, table = self.lists[name]
                pins = ((text, Column(table.stage, "value")),)
                source = PublicJoin(source, table, 1, pins, outer=True)
        return source

    def placed(self, columns: Sequence[str]) -> tuple[Source, list[Expression]]:
        """Return a stage that computes the places of some columns' values in their domains, and the
        columns of these places.
        """
        places = tuple(
            (f"p{number}", place_of(self.values[name])) for number, name in enumerate(columns)
        )
        weight = () if self.weight is None else (("weight", self.weight),)
        stage = Stage(Select(self.rows(columns), (*places, *weight)), "placed")
        return stage, [Column("placed", name) for name, _ in places]

    def people(self, column: str) -> Aggregate:
        """Return the count of people by value of a text column, for the threshold.

        If every person has one row, count rows.
        """
        people: Reading = Sum() if self.max_rows == 1 else Persons()
        return Aggregate(self.rows(()), (self.values[column].expression,), (people,), known=(0,))

    def listing(self, column: str, values: Sequence[str]) -> TableSource:
        """Return the table with a text column as the place in a list of values.

        The last value stands for all texts that are not in the list.
        """
        text = self.values[column]
        stage = f"w{len(self.lists)}"
        place = expression(len(values) - 1)
        lists = dict(self.lists)
        if len(values) > 1:
            rows = tuple((value, str(index)) for index, value in enumerate(values[:-1]))
            table = ConstantTable(("value", "place"), ("VARCHAR", "BIGINT"), rows, stage)
            lists[column] = (text.expression, table)
            place = call("coalesce", Column(stage, "place"), place)
        value = Value(
            expression=case((text.expression.is_known, place)),
            domain=Category(values=tuple(values)),
            nullable=text.nullable,
        )
        return replace(self, values={**self.values, column: value}, lists=lists)


def source_of(policy: Policy, table: Table) -> TableSource:
    """Return a private table of the policy, as a snapshot stores it."""
    rows = scan(table, table.name, "t0", frozenset())
    assert isinstance(rows.source, Scan)
    return TableSource(
        scan=rows.source,
        max_rows=table.max_rows,
        neighbors=policy.neighbors,
        values={field.name: field.value for field in rows.fields},
    )
