"""Where a private table's columns are found: the engine's SQL of each, and whose rows they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from discreet.budget import Neighbors
from discreet.policy import Policy, Table
from discreet.sql.relation import scan
from discreet.sql.values import Coded, Value, literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A table as the engine reads it. `joins` are the lists of values that texts are looked up in."""

    relation: str
    owner: str
    max_rows: int
    neighbors: Neighbors
    values: Mapping[str, Value]
    joins: Mapping[str, str] = field(default_factory=dict)

    def select(self, what: str, columns: Sequence[str]) -> str:
        """An engine query over all rows, with what these columns need."""
        return f"SELECT {what} FROM {self.relation}{''.join(self.joins.get(name, '') for name in columns)}"

    def counted(self, cell: str, columns: Sequence[str], *, below: int | None = None) -> str:
        """Rows per cell; with `below`, of cells under that number alone. Rows that have no cell are in none."""
        return rows_per_cell(self.select(f"CAST({cell} AS BIGINT) AS k0", columns), below=below)

    def people(self, column: str) -> str:
        """People per value of a text column, for the threshold; where a person has one row, rows are people."""
        people = "count(*)" if self.max_rows == 1 else f"count(DISTINCT {self.owner})"
        text = self.values[column].sql
        return self.select(f"{text} AS u0, {people} AS s0", ()) + f" WHERE {text} IS NOT NULL GROUP BY 1"

    def listing(self, column: str, values: Sequence[str]) -> Source:
        """The same table, where a text is its place in a list; what is not in it has the last place."""
        text, found = self.values[column], f"w{len(self.joins)}"
        pairs = ", ".join(f"({literal(value)}, {place})" for place, value in enumerate(values[:-1]))
        place, join = str(len(values) - 1), ""
        if pairs:
            place = f"coalesce({found}.c, {place})"
            join = f" LEFT JOIN (VALUES {pairs}) AS {found}(v, c) ON {found}.v = {text.sql}"
        value = Value(
            sql=f"(CASE WHEN {text.sql} IS NOT NULL THEN {place} END)",
            domain=Coded(values=tuple(values)),
            nullable=text.nullable,
        )
        return replace(self, values={**self.values, column: value}, joins={**self.joins, column: join})


def rows_per_cell(cells: str, *, below: int | None = None) -> str:
    """An engine query that counts the rows of another by their cell, k0."""
    within = "k0 IS NOT NULL" if below is None else f"k0 < {below}"
    return f"SELECT k0, count(*) AS s0 FROM ({cells}) AS cells WHERE {within} GROUP BY k0"


def source_of(policy: Policy, table: Table) -> Source:
    """A private table as it stands in a snapshot."""
    rows = scan(table, table.name, "t0", frozenset())
    return Source(
        relation=rows.source,
        owner=rows.owner,
        max_rows=table.max_rows,
        neighbors=policy.neighbors,
        values={field.name: field.value for field in rows.fields},
    )
