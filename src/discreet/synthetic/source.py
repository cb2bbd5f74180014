"""A private table as descriptions read it: an expression for each column, and what is counted of
its rows.
"""

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
    """A table as the engine reads it. `lists` are the values that texts are looked up in, by the
    text's column.

    Where rows have a `weight`, those of one person weigh at most `unit` together, and counts are in
    such units.
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
        """Return how much one person's rows count together, at most."""
        return self.max_rows if self.weight is None else self.unit

    @property
    def moved(self) -> Movement:
        """Return how far one person moves the counts of rows by cell."""
        times = 2 if self.neighbors == "change_one" else 1
        return Movement(l1=times * self.most, l2_squared=times * self.most**2)

    @property
    def reading(self) -> Sum:
        """Return what is added up of the rows of `placed` in a cell: one for each, or their
        weights.
        """
        return self.weighing("placed")[1]

    def weighing(self, stage: str) -> tuple[Columns, Sum]:
        """Return the column that a stage over `placed` rows has to carry, and what is added up
        there.
        """
        if self.weight is None:
            return (), Sum()
        factor = Factor(Column(stage, "weight"), 0, self.unit, 1, True)
        return (("weight", Column("placed", "weight")),), Sum((factor,))

    def rows(self, columns: Sequence[str]) -> Source:
        """Return all rows, beside the lists that these columns need."""
        source: Source = self.scan
        for name in columns:
            if name in self.lists:
                text, listed = self.lists[name]
                pins = ((text, Column(listed.stage, "value")),)
                source = PublicJoin(source, listed, 1, pins, outer=True)
        return source

    def placed(self, columns: Sequence[str]) -> tuple[Source, list[Expression]]:
        """Return all rows with the places of some columns' values in their domains, each computed
        once; and these.
        """
        places = tuple(
            (f"p{number}", place_of(self.values[name])) for number, name in enumerate(columns)
        )
        weight = () if self.weight is None else (("weight", self.weight),)
        placed = Stage(Select(self.rows(columns), (*places, *weight)), "placed")
        return placed, [Column("placed", name) for name, _ in places]

    def people(self, column: str) -> Aggregate:
        """Return people per value of a text column, for the threshold; where a person has one row,
        rows are people.
        """
        people: Reading = Sum() if self.max_rows == 1 else Persons()
        return Aggregate(self.rows(()), (self.values[column].expression,), (people,), known=(0,))

    def listing(self, column: str, values: Sequence[str]) -> TableSource:
        """Return the table with a text column as places in a list; a text that is not in it has the
        last place.
        """
        text, stage = self.values[column], f"w{len(self.lists)}"
        place, lists = expression(len(values) - 1), dict(self.lists)
        if len(values) > 1:
            rows = tuple((value, str(index)) for index, value in enumerate(values[:-1]))
            listed = ConstantTable(("value", "place"), ("VARCHAR", "BIGINT"), rows, stage)
            lists[column] = (text.expression, listed)
            place = call("coalesce", Column(stage, "place"), place)
        found = case((text.expression.is_known, place))
        value = Value(
            expression=found, domain=Category(values=tuple(values)), nullable=text.nullable
        )
        return replace(self, values={**self.values, column: value}, lists=lists)


def source_of(policy: Policy, table: Table) -> TableSource:
    """Return a private table as it stands in a snapshot."""
    rows = scan(table, table.name, "t0", frozenset())
    assert isinstance(rows.source, Scan)
    return TableSource(
        scan=rows.source,
        max_rows=table.max_rows,
        neighbors=policy.neighbors,
        values={field.name: field.value for field in rows.fields},
    )
