"""The walk as its parts see it: a protocol by which they ask what an inner query means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from discreet.sql.after.released import Output, OutputTable
from discreet.sql.after.widths.linear import Form
from discreet.sql.rows.relation import Relation

Environment = Mapping[str, Relation | OutputTable]  # the tables that WITH names


class Walk(Protocol):
    """The walk over one statement; `analysis.Analysis` is it."""

    def query(self, node: exp.Expression, environment: Environment) -> Relation | OutputTable:
        """Return what a query stands for."""

    def sources(self, node: exp.Select, environment: Environment) -> list[Relation | OutputTable]:
        """Return what a SELECT reads, in the order of its FROM clause and joins."""

    def join_sources(
        self, node: exp.Select, sources: list[Relation | OutputTable]
    ) -> Relation | None:
        """Return the private relation that a SELECT reads, or None when all it reads is public or
        already noisy.
        """

    def of_public(self, released: OutputTable, node: exp.Expression) -> pa.Table:
        """Evaluate a table that is computed from public ones."""

    def combine(self, output: Output, form: Form) -> Output:
        """Return the column with the half-width of a form of several numbers, which is the same in
        every row.
        """
