"""The protocol of the walk over a statement. The parts of the analysis use it to analyze inner
queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from discreet.sql.after.released import Output, OutputTable
from discreet.sql.after.widths.linear import Form
from discreet.sql.plan.block import Block
from discreet.sql.rows.relation import Relation

Environment = Mapping[str, Relation | OutputTable]  # the tables that WITH names


class Walk(Protocol):
    """The walk over one statement; `analysis.Analysis` implements it."""

    blocks: list[Block]  # what it measures so far

    def query(self, node: exp.Expression, environment: Environment) -> Relation | OutputTable:
        """Return the table that a query stands for: private rows, or a table after noise."""

    def sources(self, node: exp.Select, environment: Environment) -> list[Relation | OutputTable]:
        """Return the tables of a SELECT's FROM clause, in its order."""

    def join_sources(
        self, node: exp.Select, sources: list[Relation | OutputTable]
    ) -> Relation | None:
        """Join the tables of a SELECT to one private relation; return None if no table is
        private.
        """

    def of_public(self, released: OutputTable, node: exp.Expression) -> pa.Table:
        """Evaluate a table that is computed from public ones."""

    def combine(self, output: Output, form: Form) -> Output:
        """Return the column with the half-width of a form of several numbers, the same in every
        row.
        """
